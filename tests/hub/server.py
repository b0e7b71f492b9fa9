"""The HTTP side: who asks for what, and what is answered."""

import hashlib
import re
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub.answers import Answer, Answers, Asked
from tests.hub.faults import Faults
from tests.hub.repositories import Repositories

TOKEN = "hf_ATokenThatOnlyTheTestHubKnows"  # noqa: S105 - it opens nothing else
PIECE = 64 * 1024


@dataclass
class TestHub:
    """A running server."""

    __test__ = False

    url: str
    token: str
    faults: Faults
    repositories: Repositories
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of every request, in order; an upload is told when it is complete."""
    thread: threading.Thread | None = None

    def wait(self) -> None:
        """Block until interrupted."""
        assert self.thread is not None
        try:
            self.thread.join()
        except KeyboardInterrupt:
            return

    def uploads(self) -> list[str]:
        """Hashes of the LFS objects that were uploaded whole, in order."""
        return [path.removeprefix("/upload/") for method, path in self.requests if method == "PUT"]


@contextmanager
def start(root: Path, port: int = 0, token: str = TOKEN, faults: Faults | None = None) -> Iterator[TestHub]:
    """Serve until the end of the block.

    Args:
        root: folder of its state; what an earlier server left there is served again.
        port: 0 takes a free one.
    """
    server = _Server(("127.0.0.1", port), _Handler)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    hub = server.hub = TestHub(url, token, faults or Faults(), Repositories(root))
    hub.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    hub.thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: TestHub

    def handle_error(self, *_: object) -> None:
        """A client that is killed leaves its requests half-way; anything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _serve(self) -> None:
        hub = self.server.hub
        parts = urlsplit(self.path)
        # The client quotes revisions and folders as one piece.
        path = unquote(parts.path)
        if hub.faults.strikes("drops", path):
            self._break_off()
            return
        if hub.faults.strikes("errors", path):
            self._drain()
            self._send(Answer.error(500, "", "Internal Server Error"))
            return
        if self.command == "PUT":
            self._receive(hub, path)
            return
        asked = Asked(
            method=self.command,
            path=path,
            query={key: values[-1] for key, values in parse_qs(parts.query).items()},
            body=self._drain(),
            authorization=self.headers.get("Authorization", ""),
        )
        hub.requests.append((self.command, path))
        answer = Answers(hub.url, hub.token, hub.faults, hub.repositories).answer(asked)
        if hub.faults.strikes("lost", path):
            self._break_off()
            return
        self._send(answer)

    def _receive(self, hub: TestHub, path: str) -> None:
        """Store an upload if it has the hash that was announced."""
        name = re.fullmatch(r"/upload/([0-9a-f]{64})", path)
        content = bytearray()
        for piece in self._pieces():
            content += piece
            time.sleep(hub.faults.seconds_per_mb * len(piece) / 1e6)
        if name is None or hashlib.sha256(content).hexdigest() != name[1]:
            self._send(Answer.error(400, "", "the object has another hash"))
            return
        if hub.repositories.stored_bytes() + len(content) > hub.faults.room_bytes:
            self._send(Answer.error(507, "", "Insufficient Storage"))
            return
        target = hub.repositories.object(name[1])
        staging = target.with_suffix(f".{threading.get_ident()}")
        staging.write_bytes(content)
        staging.replace(target)
        hub.requests.append(("PUT", path))
        self._send(Answer(200, b""))

    def _pieces(self) -> Iterator[bytes]:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left and (piece := self.rfile.read(min(PIECE, left))):
            left -= len(piece)
            yield piece

    def _break_off(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _drain(self) -> bytes:
        return b"".join(self._pieces())

    def _send(self, answer: Answer) -> None:
        content, status, headers = answer.content, answer.status, dict(answer.headers)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and status == 200:
            first, last = int(asked[1]), int(asked[2] or len(content) - 1)
            status, headers["Content-Range"] = 206, f"bytes {first}-{last}/{len(content)}"
            content = content[first : last + 1]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
