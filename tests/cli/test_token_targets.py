"""Where the shell sends a token: to an address that its user chose, and nowhere else."""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from baton.cli.daily import completion
from baton.cli.daily.session import DEFAULT_URL, ServiceSession
from tests.support.stack import run_baton

TOKEN = "a-token-of-mine"


@pytest.fixture(autouse=True)
def nothing_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No profiles, no address, and a working directory of our own."""
    for name in ("BATON_URL", "BATON_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("BATON_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str | None]]]:
    """A port where somebody listens, and the `Authorization` of each request that came."""
    received: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers["Authorization"])
            body = json.dumps({"items": [], "next_cursor": None}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, received
    server.shutdown()
    server.server_close()


@contextmanager
def noted_stack(directory: Path, url: str) -> Iterator[Path]:
    """A data directory whose note says that a stack runs at this address."""
    directory.mkdir(mode=0o755)
    (directory / "stack.json").write_text(json.dumps({"url": url}))
    with (directory / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory


def tokens_sent(port: int, received: list[str | None], *directory: str) -> list[str | None]:
    """Return what a command and a completion send where a stack is noted."""
    received.clear()
    run_baton("ps", *directory, BATON_TOKEN=TOKEN, XDG_CONFIG_HOME=os.environ["XDG_CONFIG_HOME"])
    options = {"data_dir": Path(directory[1])} if directory else {}
    completion.listed_names(options, "/plans", "x")
    assert len(received) >= 2, "both have asked somebody"
    return sorted(set(received), key=str)


def test_a_stack_of_this_user_on_this_machine_gets_it(tmp_path: Path, listener: tuple[int, list[str | None]]) -> None:
    with noted_stack(tmp_path / ".baton", f"http://127.0.0.1:{listener[0]}") as directory:
        assert tokens_sent(*listener, "--data-dir", str(directory)) == [f"Bearer {TOKEN}"]


def test_an_address_of_another_machine_gets_none(tmp_path: Path, listener: tuple[int, list[str | None]]) -> None:
    with noted_stack(tmp_path / ".baton", f"http://0.0.0.0:{listener[0]}") as directory:
        assert tokens_sent(*listener, "--data-dir", str(directory)) == [None]


def test_a_note_that_anybody_may_have_written_gets_none(tmp_path: Path, listener: tuple[int, list[str | None]]) -> None:
    with noted_stack(tmp_path / ".baton", f"http://127.0.0.1:{listener[0]}") as directory:
        directory.chmod(0o777)
        assert tokens_sent(*listener, "--data-dir", str(directory)) == [None]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory to somebody else")
@pytest.mark.parametrize("given", [".", "stack.json"])
def test_a_note_of_somebody_else_gets_none(tmp_path: Path, listener: tuple[int, list[str | None]], given: str) -> None:
    with noted_stack(tmp_path / ".baton", f"http://127.0.0.1:{listener[0]}") as directory:
        os.chown(directory / given, 65534, 65534)
        assert tokens_sent(*listener, "--data-dir", str(directory)) == [None]


def test_the_usual_address_gets_none_until_somebody_names_it() -> None:
    assert ServiceSession.open(token=TOKEN).token is None
    assert completion.completion_target({}) == (DEFAULT_URL, None)
    assert ServiceSession.open(url=DEFAULT_URL, token=TOKEN).token == TOKEN
    assert completion.completion_target({"url": DEFAULT_URL}) == (DEFAULT_URL, TOKEN)
    assert ServiceSession.open(token=TOKEN).has_withheld_token
