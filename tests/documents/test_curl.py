"""What takes the place of curl answers what curl answers."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.documents.fenced_blocks import ROOT


class Mirror(BaseHTTPRequestHandler):
    """Answers what was asked of it; a stream goes on until whoever listens has had enough."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        said = f"{self.command} {self.path} {self.headers.get('X-Principal-Id')} {self.headers.get('Content-Type')} {asked}"
        self.send_response_only(204 if "nothing" in self.path else 201)
        self.send_header("x-baton-position", "7")
        self.send_header("connection", "close")
        self.end_headers()
        if "nothing" not in self.path:
            self.wfile.write(said.encode())
        if "stream" in self.path:
            self.wfile.flush()
            self.server.over.wait(20)  # type: ignore[attr-defined]

    do_GET = do_POST = do_PATCH = answer

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        server.over = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.over.set()  # type: ignore[attr-defined]
        server.shutdown()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl to compare with")
@pytest.mark.parametrize(
    "arguments",
    [
        ["-s", "{place}/runs?plan_id=1&limit=2"],
        ["-si", "{place}/runs", "-H", "X-Principal-Id: mira", "-d", '{"name": "é"}'],
        ["-si", "-X", "POST", "http://{place}/nothing"],
        ["-s", "-X", "PATCH", "{place}/plans", "-d", "{}", "-H", "Content-Type: application/json"],
        ["-sN", "--max-time", "0.5", "{place}/stream"],
    ],
)
def test_it_answers_what_curl_answers(place: str, arguments: list[str]) -> None:
    asked = [argument.format(place=place) if "{place}" in argument else argument for argument in arguments]
    ours = subprocess.run(
        [sys.executable, "-m", "tests.support.documents.curl", *asked], cwd=ROOT, capture_output=True, check=False
    )
    curls = subprocess.run(["curl", *asked], capture_output=True, check=False)
    assert (ours.stdout, ours.returncode) == (curls.stdout, curls.returncode), ours.stderr
