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
    "api_server": {*SLOW, "starlette", "temporalio"},
    "worker": {*SLOW, "jinja2", "starlette", "uvicorn"},
    "projector": {*SLOW, "cryptography", "jinja2", "starlette", "temporalio", "uvicorn"},
    "up": {*SLOW, "baton.domain.contexts", "cryptography", "jinja2", "starlette", "temporalio", "uvicorn"},
}  # what each process must not load before it is used, by the module that it begins with
DRAWS = """
import os, random, uuid
from baton.cli.loader import fork
from baton.infrastructure.wall_clock import new_id
{before}
for _ in range(2):
    os.waitpid(fork(lambda: print(new_id(), uuid.uuid4(), random.random())), 0)
"""


@pytest.fixture
def loader(tmp_path: Path) -> Iterator[Loader]:
    with Loader(tmp_path) as started:
        yield started


@pytest.mark.parametrize("module", WITHOUT)
def test_a_process_loads_slow_libraries_where_it_uses_them(module: str) -> None:
    script = f"import sys, baton.cli.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not WITHOUT[module].intersection(loaded)


@pytest.mark.server
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


@pytest.mark.server
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


@pytest.mark.parametrize("before", ["", "new_id(), uuid.uuid4(), random.random()"])
def test_no_two_forks_draw_the_same_ids(before: str) -> None:
    ran = subprocess.run([sys.executable, "-c", DRAWS.format(before=before)], capture_output=True, text=True, check=True)
    drawn = ran.stdout.split()
    assert len(set(drawn)) == len(drawn) == 6, ran.stdout


@pytest.mark.parametrize(("ending", "code"), [("pass", 0), ("sys.exit(3)", 3), ("sys.exit()", 0), ("1 / 0", 1)])
def test_a_fork_ends_as_a_program_does(ending: str, code: int) -> None:
    script = f"import os, sys\nfrom baton.cli.loader import fork\ndef run():\n    {ending}\n"
    script += "status = os.waitpid(fork(run), 0)[1]\nprint(os.waitstatus_to_exitcode(status))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{code}\n"
    assert ("ZeroDivisionError" in ran.stderr) == (ending == "1 / 0")
