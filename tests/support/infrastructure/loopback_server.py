"""What servers on loopback share that stand for services outside: answers in JSON, no log, a port of their own."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """A handler that answers in JSON and logs nothing."""

    protocol_version = "HTTP/1.1"
    media_type = "application/json"

    def say(self, status: int, content: Any, **headers: str) -> None:
        """Answer with bytes as they are, or with anything else as JSON."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.begin(status, len(body), **headers)
        if body:  # without one the answer is whole already, and its reader may be gone
            self.wfile.write(body)

    def begin(self, status: int, length: int, **headers: str) -> None:
        """Begin an answer of so many bytes."""
        self.send_response(status)
        for name, value in {"Content-Length": str(length), "Content-Type": self.media_type, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler], release: Callable[[], None]) -> Iterator[str]:
    """Serve on a free port until the end of the block, and yield the address; then release what still waits."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        release()
        server.shutdown()
        server.server_close()
        thread.join(10)
