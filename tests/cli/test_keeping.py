"""What is kept running: pieces that die are started again, with longer and longer pauses where they keep dying."""

import sys
from pathlib import Path

import pytest

from cli.embedded.process import wait_until
from cli.keeping import Keeper, Piece

DEADLINE = 20.0
BEGUN = "from pathlib import Path; p = Path('begun'); p.write_text(p.read_text() + 'x' if p.exists() else 'x')\n"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def piece(directory: Path, script: str) -> Piece:
    return Piece("piece", ["-c", script], directory, lambda: {"COLOUR": "green"})


def starts(directory: Path) -> int:
    return len((directory / "begun").read_text()) if (directory / "begun").exists() else 0


def test_a_piece_that_dies_is_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = piece(tmp_path, BEGUN + "import time; time.sleep(60 if len(p.read_text()) > 1 else 0)")
    keeper = Keeper("the piece", kept)
    kept.start()
    try:
        assert wait_until(lambda: (keeper.look(), starts(tmp_path) == 2 and kept.running)[1], DEADLINE)
        assert capsys.readouterr().err == "the piece ended unexpectedly; starting it again\n"
    finally:
        kept.stop()
    assert not kept.running


def test_a_piece_that_keeps_dying_is_not_started_all_the_time(tmp_path: Path) -> None:
    kept = piece(tmp_path, BEGUN)
    keeper = Keeper("the piece", kept)
    kept.start()
    assert not wait_until(lambda: (keeper.look(), starts(tmp_path) > 4)[1], 2.5)
    assert starts(tmp_path) >= 2
    kept.stop()


def test_a_piece_gets_its_environment_on_top_of_ours_and_writes_a_log_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHAPE", "round")
    kept = piece(tmp_path, "import os; print(os.environ['COLOUR'], os.environ['SHAPE'])")
    kept.start()
    assert wait_until(lambda: not kept.running, DEADLINE)
    kept.stop()
    assert kept.log.read_text() == "green round\n"
    assert kept.log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("script", "objection"),
    [
        ("from cli.refusing import refuse; refuse('It is Monday; wait.', 'It rains.')", "It is Monday; wait.\nIt rains."),
        ("raise SystemError('oil')", "The piece ended while it was starting; the end of "),
    ],
)
def test_why_a_piece_ended_is_told_in_its_own_sentences_or_from_its_log(tmp_path: Path, script: str, objection: str) -> None:
    kept = piece(tmp_path, f"import sys; sys.path[:] = {sys.path!r}\n{script}")
    kept.start()
    assert wait_until(lambda: not kept.running, DEADLINE)
    kept.stop()
    assert str(kept.objection()).startswith(objection)
