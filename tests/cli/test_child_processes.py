"""The processes of `baton up`: those that die are started again, with longer and longer pauses where they keep dying."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from baton.cli.child_processes import MAX_STARTS, Restarter, ServiceProcess
from baton.cli.embedded.process import KEPT_LOGS, LogFile, StartError, wait_until
from baton.cli.messages import MESSAGE_PREFIX
from baton.cli.startup import DATABASE_FAULT

pytestmark = pytest.mark.server
DEADLINE = 60.0
PAUSE = 0.02
NOTE_START = "import time; open('starts', 'a').write(f'{time.monotonic()}\\n')\n"


@pytest.fixture(autouse=True)
def _short_pauses_in_this_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("baton.cli.child_processes.SHORTEST_PAUSE", PAUSE)


def piece(directory: Path, script: str) -> ServiceProcess:
    """A process that runs this script."""
    return ServiceProcess("piece", ["-c", script], directory, lambda: {"COLOUR": "green"})


def start_times(directory: Path) -> list[float]:
    """Return when a piece was started, as its script noted."""
    notes = directory / "starts"
    return [float(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def test_a_piece_that_dies_is_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = piece(tmp_path, NOTE_START + "time.sleep(60 if len(open('starts').readlines()) > 1 else 0)")
    restarter = Restarter("the piece", kept)
    kept.start()
    try:
        assert wait_until(lambda: (restarter.check(), len(start_times(tmp_path)) == 2 and kept.running)[1], DEADLINE)
        assert capsys.readouterr().err == "the piece ended unexpectedly (exit code 0); starting it again\n"
    finally:
        kept.stop()
    assert not kept.running


def test_a_piece_that_keeps_dying_is_not_started_all_the_time(tmp_path: Path) -> None:
    kept = piece(tmp_path, NOTE_START)
    restarter = Restarter("the piece", kept)
    kept.start()
    assert wait_until(lambda: (restarter.check(), len(start_times(tmp_path)) == 6)[1], DEADLINE)
    kept.stop()
    gaps = [after - before for before, after in pairwise(start_times(tmp_path))]
    assert all(gap >= PAUSE * 2**number for number, gap in enumerate(gaps, 1)), gaps


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
        ("from baton.cli.messages import refuse; refuse('It is May; wait.', 'It rains.')", "It is May; wait.\nIt rains."),
        ("raise SystemError('oil')", "The piece ended while it was starting (exit code 1); the end of "),
    ],
)
def test_why_a_piece_ended_is_told_in_its_own_sentences_or_from_its_log(tmp_path: Path, script: str, objection: str) -> None:
    kept = piece(tmp_path, f"import sys; sys.path[:] = {sys.path!r}\n{script}")
    kept.start()
    assert wait_until(lambda: not kept.running, DEADLINE)
    assert str(kept.start_failure()).startswith(objection)


def start_failure(kept: ServiceProcess) -> str:
    """Return what is said of a piece that cannot be started."""
    restarter = Restarter("the piece", kept)
    restarter.starts = 0
    kept.start()
    try:
        with pytest.raises(StartError) as refused:
            wait_until(lambda: bool(restarter.check()), DEADLINE)
        return refused.value.sentence
    finally:
        kept.stop()


def test_a_piece_that_is_killed_while_it_starts_is_started_a_few_times_and_then_its_end_is_told(tmp_path: Path) -> None:
    sentence = start_failure(piece(tmp_path, NOTE_START + "import os; os.kill(os.getpid(), 9)"))
    assert sentence.startswith("The piece ended while it was starting (killed by SIGKILL); the end of ")
    assert len(start_times(tmp_path)) == MAX_STARTS


@pytest.mark.parametrize(("sentence", "starts"), [("It rains.", 1), (f"{DATABASE_FAULT}: it is away.", MAX_STARTS)])
def test_a_piece_that_refuses_is_believed_at_once_unless_its_database_may_come_back(
    tmp_path: Path, sentence: str, starts: int
) -> None:
    script = f"{NOTE_START}raise SystemExit({MESSAGE_PREFIX + sentence!r})"
    assert start_failure(piece(tmp_path, script)) == sentence
    assert len(start_times(tmp_path)) == starts


def test_a_log_keeps_what_earlier_lives_said_and_an_end_is_told_from_the_last_life_alone(tmp_path: Path) -> None:
    kept = piece(tmp_path, "import os; print('life', os.getpid(), 'baton: it rains' if False else '')")
    for _ in range(3):
        kept.start()
        assert wait_until(lambda: not kept.running, DEADLINE)
        kept.stop()
    assert kept.log.read_text().count("life") == 3
    assert kept.log_file.output().count("life") == 1


def test_a_log_that_grows_large_is_rotated_while_its_writer_has_it_open_and_several_are_kept(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", max_bytes=100)
    with log.path.open("ab", buffering=0) as writer:
        for number in range(KEPT_LOGS + 3):
            writer.write(b"%d %s\n" % (number, b"x" * 120))
            log.rotate()
        writer.write(b"the last line\n")
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["log", *(f"log.{number}" for number in range(1, KEPT_LOGS + 1))]
    assert log.path.read_text() == "the last line\n"
    assert [(tmp_path / f"log.{number}").read_text()[0] for number in range(1, KEPT_LOGS + 1)] == list("76543")
    assert log.path.with_name("log.1").stat().st_mode & 0o077 == 0


def test_a_log_that_cannot_be_copied_stays_as_it_is(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log", max_bytes=10)
    log.path.write_text("more than ten bytes")
    (tmp_path / "log.new").mkdir()
    log.rotate()
    assert log.path.read_text() == "more than ten bytes"
