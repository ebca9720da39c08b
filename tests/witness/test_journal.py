"""The journal on disk: whole lines, a ceiling, a full or read-only disk, and locks that tell who lives."""

import errno
import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from baton_bluesky import BatonWitness, journal
from baton_bluesky.journal import (
    BEGINNING,
    JournalWriter,
    Position,
    RunJournal,
    is_locked,
    read_document,
    run_journals,
    try_lock,
    write_whole,
)
from tests.support.stack import eventually
from tests.support.witness.documents import BEGAN, scan_documents

SETTINGS = {"address": "http://127.0.0.1:1"}


def event(number: int, at: float = BEGAN) -> dict[str, Any]:
    """Return a record of an event."""
    return {"kind": "event", "v": {"x": float(number)}, "s": number, "t": at}


def everything(run: RunJournal) -> list[dict[str, Any]]:
    """Return all records of a run."""
    found, position = list[dict[str, Any]](), BEGINNING
    while True:
        records, position = run.read(position, 200)
        if not records:
            return found
        found += records


def only_run(directory: Path) -> RunJournal:
    """Return the only run that is journaled here."""
    [run] = run_journals(directory)
    return run


def test_what_is_appended_is_read_in_its_order(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, SETTINGS)
    for number in range(500):
        assert writer.append("run", event(number), "primary")
    writer.flush()
    assert [record["s"] for record in everything(only_run(tmp_path))] == list(range(500))
    assert writer.journaled == 500


def test_only_its_owner_can_look_into_a_journal(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "own", SETTINGS)
    writer.append("run", event(1), wait=5)
    paths = [tmp_path / "own", *(tmp_path / "own").rglob("*")]
    assert {oct(path.stat().st_mode & 0o777) for path in paths if path.is_dir()} == {"0o700"}
    assert {oct(path.stat().st_mode & 0o777) for path in paths if path.is_file()} == {"0o600"}


def test_a_last_line_without_its_end_is_not_read_and_the_next_one_stands_by_itself(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, SETTINGS, name="follower")
    writer.append("run", event(1), wait=5, is_last=True)
    run = only_run(tmp_path)
    with (run.directory / "000000.jsonl").open("ab") as file:
        file.write(b'{"kind": "eve')
    assert [record["s"] for record in everything(run)] == [1]
    again = JournalWriter(tmp_path / "other", SETTINGS)  # another process takes the directory up
    again.directory, again.name = tmp_path, "follower"
    again.append("run", event(2), wait=5)
    assert [record["s"] for record in everything(run)] == [1, 2]
    assert run.unreadable > 0


def test_segments_are_deleted_once_they_are_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 1_000)
    monkeypatch.setattr(journal, "LINES_AT_ONCE", 5)
    writer = JournalWriter(tmp_path, SETTINGS)
    for number in range(100):
        writer.append("run", event(number), "primary")
    writer.flush()
    run = only_run(tmp_path)
    segments = run.segments()
    assert len(segments) > 3
    run.discard_before(Position(segments[2], 0))
    assert run.segments() == segments[2:]
    assert everything(run)[-1]["s"] == 99, "reading begins where the journal does"


def test_a_nearly_full_journal_keeps_one_event_a_second_and_a_full_one_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LINES_AT_ONCE", 10)
    writer = JournalWriter(tmp_path, SETTINGS, ceiling=20_000)
    writer.append("run", {"kind": "start"}, wait=5)
    for number in range(2_000):
        writer.append("run", event(number, BEGAN + number / 10), "primary", BEGAN + number / 10)
    writer.append("run", {"kind": "stop"}, wait=5)
    records = everything(only_run(tmp_path))
    assert [records[0]["kind"], records[-1]["kind"]] == ["start", "stop"]
    assert records[-1]["dropped"] == writer.dropped["primary"] > 0
    assert len(records) - 2 + writer.dropped["primary"] == 2_000
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl")) + 2_000 > 20_000
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl")) < 22_000
    gaps = [int(after["t"]) - int(before["t"]) for before, after in pairwise(records[1:-1])]
    assert {0, 1} <= set(gaps), "events come ten a second, and later one a second"


def test_a_full_disk_stops_nothing_and_keeps_starts_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, full = os.write, [True]

    def write_until_full(descriptor: int, text: bytes) -> int:
        if full[0]:
            if len(text) > 10:
                write(descriptor, text[:7])  # a part of it fits
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, text)

    monkeypatch.setattr(journal, "QUEUED_DOCUMENTS", 100)
    monkeypatch.setattr(journal.os, "write", write)
    writer = JournalWriter(tmp_path, SETTINGS)
    writer.append("run", {"kind": "start"}, wait=5)
    monkeypatch.setattr(journal.os, "write", write_until_full)
    for number in range(300):
        writer.append("run", event(number), "primary")
    began = time.monotonic()
    writer.append("run", {"kind": "stop"}, wait=0.05)
    assert time.monotonic() - began < 1
    eventually(lambda: "No space left" in str(writer.last_error))
    assert writer.dropped["primary"] >= 200
    full[0] = False
    eventually(lambda: everything(only_run(tmp_path))[-1]["kind"] == "stop")
    records = everything(only_run(tmp_path))
    assert (records[0]["kind"], records[-1]["dropped"]) == ("start", writer.dropped["primary"])
    assert len(records) - 2 + writer.dropped["primary"] == 300


def test_a_directory_that_cannot_be_made_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    witness = BatonWitness("http://127.0.0.1:1", "plan", journal=tmp_path / "file" / "journal", starts_sender=False)
    for name, document in scan_documents():
        witness(name, document)
    eventually(lambda: witness.standing().last_error)
    assert (witness.standing().journaled, witness.standing().faults) == (0, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="Root writes everywhere, so no directory is read-only to it.")
def test_a_read_only_directory_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir(mode=0o500)
    witness = BatonWitness("http://127.0.0.1:1", "plan", journal=tmp_path / "journal", starts_sender=False)
    for name, document in scan_documents():
        witness(name, document)
    eventually(lambda: "Permission" in str(witness.standing().last_error))


def test_a_lock_tells_whether_another_process_lives(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = f"from baton_bluesky.journal import *; from pathlib import Path; import sys; assert try_lock(Path({str(path)!r})) is not None; print('held', flush=True); sys.stdin.read()"  # noqa: E501
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert is_locked(path)
        assert try_lock(path) is None
        process.kill()
    assert not is_locked(path)
    assert try_lock(path) is not None


def test_a_document_is_replaced_whole_and_one_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    write_whole(tmp_path / "standing.json", {"sent": 1})
    write_whole(tmp_path / "standing.json", {"sent": 2}, durable=True)
    assert read_document(tmp_path / "standing.json") == {"sent": 2}
    (tmp_path / "torn.json").write_text(json.dumps({"sent": 3})[:-2])
    assert read_document(tmp_path / "torn.json") == read_document(tmp_path / "missing.json") == {}
