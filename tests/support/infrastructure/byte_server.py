"""A real server on loopback that serves bytes in ranges, counts what was asked of it, or misbehaves."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Handler(BaseHTTPRequestHandler):
    """Answers HEAD and ranges of bytes."""

    protocol_version = "HTTP/1.1"
    bytes_server: "ByteServer"
    disable_nagle_algorithm = True

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        served = self.bytes_server
        with served.lock:
            served.asked.append((self.command, self.path, self.headers.get("Range")))
            served.headers.append(dict(self.headers))
        if (behave := served.behaviours.get(self.path)) is not None:
            behave(self)
        elif (content := served.contents.get(self.path)) is None:
            self.send(404)
        elif self.command == "HEAD":
            self.send(200, **{"Content-Length": len(content)})
        else:
            self.send_range(content)

    def send_range(self, content: bytes, **headers: Any) -> None:
        """Send the range that is asked for."""
        first, last = self.asked_range
        part = content[first : last + 1]
        self.send(206, part, **{"Content-Range": f"bytes {first}-{last}/{len(content)}", **headers})

    @property
    def asked_range(self) -> tuple[int, int]:
        found = RANGE.fullmatch(self.headers["Range"])
        assert found is not None, "only ranges are asked for"
        return int(found[1]), int(found[2])

    def send(self, status: int, body: bytes = b"", **headers: Any) -> None:
        """Send an answer; a length that is given is not corrected."""
        self.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Length": len(body), **named}.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


class QuietServer(ThreadingHTTPServer):
    """A server that says nothing of clients that went away."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        return


@dataclass
class ByteServer:
    """The bytes under each path, what is done instead under some, and everything that was asked."""

    contents: dict[str, bytes] = field(default_factory=dict)
    behaviours: dict[str, Callable[[Handler], None]] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    """Set at the end, so that nobody is kept waiting by an answer that never comes."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reads(self, path: str) -> int:
        """Return how often the bytes under a path were begun to be read."""
        with self.lock:
            return sum(method == "HEAD" and asked == path for method, asked, _ in self.asked)


@contextmanager
def running_byte_server(contents: dict[str, bytes] | None = None) -> Iterator[ByteServer]:
    """A server on a free port, until the end of the block."""
    served = ByteServer(dict(contents or {}))
    handler = type("ServedBytes", (Handler,), {"bytes_server": served})
    with QuietServer(("127.0.0.1", 0), handler) as server:
        served.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            served.released.set()
            server.shutdown()
            thread.join()
