"""The loader and the pieces that it forks: they end as programs do, and with it; what the service loads when it starts."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from baton.cli.child_processes import Restarter
from baton.cli.embedded.process import StartError, wait_until
from baton.cli.loader import Loader, Piece
from tests.support.stack import is_alive

pytestmark = pytest.mark.server

DEADLINE = 60.0
NO_SERVERS = {"DATABASE_URL": "", "DATABASE_OWNER_URL": "", "TEMPORAL_ADDRESS": ""}
SLOW = {
    "alembic",
    "fastapi",
    "h5py",
    "jsonschema",
    "mcp",
    "numpy",
    "openpyxl",
    "opentelemetry",
    "pint",
    "scipy",
    "sqlalchemy",
}
WITHOUT = {
    "up": {*SLOW, "baton.domain.contexts", "cryptography", "jinja2", "starlette", "temporalio", "uvicorn"},
    "projector": {*SLOW, "cryptography", "jinja2", "starlette", "temporalio", "uvicorn"},
    "worker": {*SLOW, "jinja2", "starlette", "uvicorn"},
    "api_server": {*SLOW, "temporalio"} - {"fastapi", "opentelemetry"},  # FastAPI loads the interface of the latter
}  # what each process must not load before it is used, by the module that it begins with; one after the other loads more
LOADS = """
import importlib, os, sys
def report(module):
    importlib.import_module(f"baton.cli.{module}")
    print(module, *sys.modules, flush=True)
for module in sys.argv[1:3]:
    report(module)
for module in sys.argv[3:]:
    if not os.fork():
        report(module)
        os._exit(0)
    os.wait()
"""
FORKS = """
import os, random, sys, uuid
from baton.cli.loader import fork
from baton.infrastructure.wall_clock import new_id
def draw():
    print("drawn", new_id(), uuid.uuid4(), random.random())
for _ in range(2):
    for _ in range(2):
        os.waitpid(fork(draw), 0)
    draw()
for ending in ("pass", "sys.exit(3)", "sys.exit()", "1 / 0"):
    status = os.waitpid(fork(lambda: exec(ending)), 0)[1]
    print("ended", os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loader]:
    with Loader(tmp_path_factory.mktemp("loader")) as started:
        yield started


def output_of(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)


def test_a_process_loads_slow_libraries_where_it_uses_them() -> None:
    reports = [line.split() for line in output_of(LOADS, *WITHOUT).stdout.splitlines()]
    assert [module for module, *_ in reports] == [*WITHOUT]
    assert {module: found for module, *loaded in reports if (found := WITHOUT[module].intersection(loaded))} == {}


def test_a_piece_that_refuses_to_run_is_heard(
    loader: Loader, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baton.cli.child_processes.SHORTEST_PAUSE", 0.02)
    piece = Piece(loader, "worker", {}, tmp_path, lambda: NO_SERVERS)
    restarter = Restarter("the worker", piece)
    restarter.starts = 0
    piece.start()
    assert wait_until(lambda: not piece.running, DEADLINE)
    assert piece.end_text == "exit code 2"
    assert piece.has_refused
    with pytest.raises(StartError, match=r"^DATABASE_URL is not set; point it at a PostgreSQL, or use `baton up`"):
        restarter.check()
    piece.stop()


def test_pieces_end_with_their_loader_and_the_next_one_starts_another(loader: Loader, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a database that never answers
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/baton"
        piece = Piece(loader, "projector", {}, tmp_path, lambda: {**NO_SERVERS, "DATABASE_URL": url})
        piece.start()
        processes = [psutil.Process(loader.pid), psutil.Process(piece.pid)]
        processes[0].kill()
        assert wait_until(lambda: not any(map(is_alive, processes)), DEADLINE)
        assert not piece.running
        assert piece.end_text == "with the process that forked it"
        piece.stop()
        piece.start()
        assert piece.running
        assert psutil.Process(piece.pid).ppid() == loader.pid
        piece.stop()
        assert piece.end_text == "did not start"


def test_a_fork_draws_ids_of_its_own_and_ends_as_a_program_does() -> None:
    ran = output_of(FORKS)
    lines = [line.split() for line in ran.stdout.splitlines()]
    drawn = [one for kind, *found in lines if kind == "drawn" for one in found]
    assert len(set(drawn)) == len(drawn) == 18, ran.stdout
    assert [code for kind, code, *_ in lines if kind == "ended"] == ["0", "3", "0", "1"]
    assert ran.stderr.count("ZeroDivisionError") == 1
