"""Prefect's ephemeral server, in a process that ends with ours: the one that Prefect starts outlives a killed client.

Run as ``python -m flows.server LISTENER_FD PARENT``.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.assets.cache import cache_dir
from pipeline.process import die_with_parent


@contextmanager
def prefect_server() -> Iterator[None]:
    """Let flows run on the server that ``PREFECT_API_URL`` names, else on one that lives as long as this context."""
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    log = cache_dir() / "prefect" / "server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as listener, log.open("ab") as sink:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "flows.server", str(listener.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    try:
        from prefect.settings import PREFECT_API_URL, temporary_settings

        with temporary_settings({PREFECT_API_URL: url}):
            yield
    finally:
        process.terminate()
        process.wait()


def main(listener: int, parent: int) -> None:
    """Serve on a listening socket until terminated."""
    die_with_parent(parent, signal.SIGTERM)
    import uvicorn
    from prefect.server.api.server import create_app

    uvicorn.run(create_app(ephemeral=True, final=True), fd=listener, log_level="error", timeout_graceful_shutdown=2)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
