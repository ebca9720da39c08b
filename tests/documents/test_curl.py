"""The replacement of curl answers what curl answers."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.documents.fenced_blocks import ROOT
from tests.support.tables import for_each


class Mirror(BaseHTTPRequestHandler):
    """Answers with what it was asked; a stream stays open until the client closes it."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        text = f"{self.command} {self.path} {self.headers.get('X-Principal-Id')} {self.headers.get('Content-Type')} {body}"
        self.send_response_only(204 if "nothing" in self.path else 201)
        self.send_header("x-baton-position", "7")
        self.send_header("connection", "close")
        self.end_headers()
        if "nothing" not in self.path:
            self.wfile.write(text.encode())
        if "stream" in self.path:
            self.wfile.flush()
            self.server.over.wait(20)  # type: ignore[attr-defined]

    do_GET = do_POST = do_PATCH = answer

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server that answers with what it was asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        server.over = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.over.set()  # type: ignore[attr-defined]
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl to compare with")
@for_each(
    "arguments",
    [
        ["-s", "{address}/runs?plan_id=1&limit=2"],
        ["-si", "{address}/runs", "-H", "X-Principal-Id: mira", "-d", '{"name": "é"}'],
        ["-si", "-X", "POST", "http://{address}/nothing"],
        ["-s", "-X", "PATCH", "{address}/plans", "-d", "{}", "-H", "Content-Type: application/json"],
        ["-sN", "--max-time", "0.5", "{address}/stream"],
    ],
)
def test_it_answers_what_curl_answers(address: str, arguments: list[str]) -> None:
    command_options = [argument.format(address=address) if "{address}" in argument else argument for argument in arguments]
    ours = subprocess.run(
        [sys.executable, "-m", "tests.support.documents.curl", *command_options], cwd=ROOT, capture_output=True, check=False
    )
    curls = subprocess.run(["curl", *command_options], capture_output=True, check=False)
    assert (ours.stdout, ours.returncode) == (curls.stdout, curls.returncode), ours.stderr
