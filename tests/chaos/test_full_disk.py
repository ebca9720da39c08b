"""A disk that is full for a while: commands are refused as unavailable, and everything goes on by itself afterwards."""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.stack import Stack, eventually, running_stack

SIZE = "400m"
BLOCK = bytes(2**20)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk], check=False).returncode
    ):
        pytest.skip("a file system can be mounted by root alone, and not in every container")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


class Writers:
    """Register actors and look at the list, as fast as answers come."""

    def __init__(self, stack: Stack, count: int) -> None:
        self.answers: Counter[tuple[int, str | None]] = Counter()
        self.acknowledged: set[str] = set()
        self._url = stack.address("url")
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _write(self, writer: int) -> None:
        with httpx.Client(base_url=self._url, timeout=30) as client:
            count = 0
            while not self._stopping.is_set():
                count += 1
                name = f"Visitor {writer}.{count} {'x' * 150}"
                try:
                    answer = client.post("/actors", json={"name": name})
                except httpx.TransportError:  # the API itself was started again
                    continue
                if answer.status_code == 201:
                    self.acknowledged.add(answer.json()["actor_id"])
                    self.answers[201, None] += 1
                else:
                    code = answer.json().get("code") if "json" in answer.headers.get("content-type", "") else answer.text
                    self.answers[answer.status_code, code] += 1

    def written_count(self) -> int:
        return len(self.acknowledged)


def fill(disk: Path) -> Path:
    """Take all the space that is left."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for block in (BLOCK, b"x"):
            try:
                while True:
                    file.write(block)
            except OSError:
                continue
    return filler


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.soak)])
def test_everything_goes_on_when_there_is_space_again(small_disk: Path, count: int) -> None:
    with running_stack(small_disk / "data") as stack, Writers(stack, count) as writers:
        eventually(lambda: writers.written_count() > 20, what=stack.output)
        filler = fill(small_disk)

        def is_refused() -> bool:
            with filler.open("ab", buffering=0) as file, suppress(OSError):  # what others gave back
                file.write(BLOCK)
            return writers.answers[503, "StoreUnavailableError"] > 5

        try:
            eventually(is_refused, 90, lambda: writers.answers)
        finally:
            filler.unlink()
        before = writers.written_count()
        eventually(lambda: writers.written_count() > before + 20, 90, lambda: (writers.answers, stack.output()))

        def is_whole() -> bool:
            answer = stack.client.get("/readyz")
            return answer.status_code == 200 and "unled_tasks" not in answer.json()

        eventually(is_whole, 60, lambda: (stack.client.get("/readyz").text, stack.output()))
        assert stack.process.is_alive()
        assert {status for status, _ in writers.answers} <= {201, 503}, writers.answers
        assert {code for status, code in writers.answers if status == 503} == {"StoreUnavailableError"}
    with EmbeddedPostgres(small_disk / "data" / "postgres") as server, psycopg.connect(server.owner_url) as connection:
        rows = connection.execute("SELECT stream_id::text FROM events WHERE event_type = 'ActorRegistered'").fetchall()
        assert writers.acknowledged <= {row[0] for row in rows}
