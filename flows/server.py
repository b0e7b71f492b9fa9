"""Prefect's server, in a process that ends with ours: the one that Prefect starts outlives a killed client.

Run as ``python -m flows.server LISTENER_FD PARENT [ui]``.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pipeline.assets.cache import cache_dir
from pipeline.errors import UserError
from pipeline.process import die_with_parent


@contextmanager
def prefect_server(ui_port: int | None = None) -> Iterator[None]:
    """Let flows run on the server that ``PREFECT_API_URL`` names, else on one that lives as long as this context.

    Args:
        ui_port: serve the UI as well, and schedules, at this port.

    Raises:
        UserError: if the port is taken, or if that server stops before the flows do.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    log = cache_dir() / "prefect" / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    what = ["ui"] if ui_port else []
    with _listen(ui_port or 0) as listener, log.open("ab") as sink:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "flows.server", str(listener.fileno()), str(os.getpid()), *what],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
            env={**os.environ, "PREFECT_SERVER_UI_API_URL": url},
        )
    try:
        from prefect.settings import PREFECT_API_URL, temporary_settings

        with temporary_settings({PREFECT_API_URL: url}), nullcontext() if ui_port else _without_events():
            yield
    except UserError:
        raise
    except Exception as error:
        if process.poll() is None:
            raise
        told = f"Prefect's server stopped with exit code {process.returncode}; see {log}"
        raise UserError(f"{told}. What is done is kept: run the same command again to go on") from error
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _without_events() -> Iterator[None]:
    """Let the client send no events: nobody reads them, and it would wait at its end for a server that is gone."""
    from prefect.events.clients import NullEventsClient
    from prefect.events.worker import EventsWorker

    EventsWorker.set_client_override(NullEventsClient)
    try:
        yield
    finally:
        EventsWorker.set_client_override(None)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise UserError(
            f"port {port} cannot be used ({why}); give another one with --port, or name the server that is there: "
            "PREFECT_API_URL=http://HOST:PORT/api"
        ) from None


def main(listener: int, parent: int, ui: bool) -> None:
    """Serve on a listening socket until terminated."""
    die_with_parent(parent, signal.SIGTERM)
    import uvicorn
    from prefect.server.api.server import create_app

    uvicorn.run(create_app(ephemeral=not ui, final=True), fd=listener, log_level="error", timeout_graceful_shutdown=2)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["ui"])
