"""How a witness talks to the service: who it is, what it does not follow, and what it takes as no answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from baton_bluesky import BatonWitness, service
from baton_bluesky.service import BatonService, NoServiceError, credentials

SECRET = "a-secret-token"


class Answering(BaseHTTPRequestHandler):
    """Answers by the path: with the headers it got, with a redirect, or with too much."""

    protocol_version = "HTTP/1.1"
    connections: set[Any] = set()

    def do_GET(self) -> None:
        self.connections.add(self.client_address)
        status, body = 200, f'{{"token": "{self.headers.get("Authorization")}"}}'
        if self.path == "/moved":
            status = 307
        elif self.path == "/big":
            body = "x" * 2_000
        elif self.path == "/page":
            status, body = 502, "<html>"
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/closing":
            self.close_connection = True  # without saying so
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def answering_server() -> Iterator[str]:
    """The address of a server, until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Answering.connections = set()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_token_comes_from_a_file_or_a_variable_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("BL7_TOKEN", "of a variable")
    monkeypatch.delenv("BATON_TOKEN", raising=False)
    monkeypatch.delenv("BATON_TOKEN_FILE", raising=False)
    monkeypatch.delenv("BATON_PRINCIPAL_ID", raising=False)
    assert credentials(str(file)) == {"Authorization": f"Bearer {SECRET}"}
    assert credentials("BL7_TOKEN") == {"Authorization": "Bearer of a variable"}
    assert credentials(None) == {}
    monkeypatch.setenv("BATON_PRINCIPAL_ID", "0197a100-0000-7000-8000-00000000000a")
    assert credentials(None) == {"X-Principal-Id": "0197a100-0000-7000-8000-00000000000a"}
    monkeypatch.setenv("BATON_TOKEN_FILE", str(file))
    assert credentials(None) == {"Authorization": f"Bearer {SECRET}"}


def test_nothing_that_is_printed_shows_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_TOKEN", SECRET)
    witness = BatonWitness("https://baton.example", "plan", journal=tmp_path, starts_sender=False)
    assert SECRET not in repr(witness) + repr(vars(witness)) + repr(BatonService("https://baton.example"))


def test_a_connection_is_kept_and_opened_again_where_it_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_TOKEN", SECRET)
    with answering_server() as url:
        asked = BatonService(url)
        assert [asked.get("/").body["token"] for _ in range(3)] == [f"Bearer {SECRET}"] * 3
        assert len(Answering.connections) == 1
        assert asked.get("/closing").status == 200
        assert asked.get("/").status == 200
        assert len(Answering.connections) == 2
        asked.disconnect()


def test_a_redirect_is_not_followed_and_a_page_of_a_proxy_is_an_answer() -> None:
    with answering_server() as url:
        asked = BatonService(url)
        with pytest.raises(NoServiceError, match="redirect to /elsewhere, which is not followed"):
            asked.get("/moved")
        assert asked.get("/page").sentence == "502: <html>"
        asked.disconnect()


def test_an_answer_without_end_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_ANSWER", 1_000)
    with answering_server() as url, pytest.raises(NoServiceError, match="more than 1,000 bytes"):
        BatonService(url).get("/big")


@pytest.mark.parametrize("address", ["baton.example", "ftp://baton.example", "", "file:///etc/passwd"])
def test_what_is_no_address_of_a_service_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is no address of a service"):
        BatonService(address)


def test_where_nobody_listens_there_is_no_service() -> None:
    with pytest.raises(NoServiceError, match="ConnectionRefusedError"):
        BatonService("http://127.0.0.1:9").get("/")
