"""A RunEngine in a process of its own, told from outside which plan to run."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from baton_bluesky.journal import SENDER_LOCK, STANDING, is_locked, read_document
from tests.support.stack import clean_environment

Documents = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Scan:
    """What came of a plan: its documents, how the RunEngine ended it, and the states in between."""

    documents: Documents
    error: str | None
    states: list[str]
    seconds: float

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the documents of a kind."""
        return [document for name, document in self.documents if name == kind]

    @property
    def uid(self) -> str:
        """The uid of its start document."""
        return str(self.of("start")[0]["uid"])

    def numbers(self) -> list[tuple[str, float, datetime]]:
        """Return every number of its events, with its channel and when it was taken."""
        return sorted(
            (key, float(value), datetime.fromtimestamp(event["timestamps"][key], UTC))
            for event in self.of("event")
            for key, value in event["data"].items()
            if isinstance(value, int | float)
        )


@dataclass
class EngineProcess:
    """A running RunEngine."""

    process: "subprocess.Popen[str]"
    journal: Path

    def begin(self, plan: str, **given: Any) -> None:
        """Have a plan run, without waiting for its end."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"run": plan, **given}) + "\n")
        self.process.stdin.flush()

    async def answer(self) -> dict[str, Any]:
        """Return the next answer."""
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        assert line, f"the RunEngine ended with {self.process.wait()}"
        return dict(json.loads(line))

    async def run(self, plan: str, **given: Any) -> Scan:
        """Run a plan to its end."""
        self.begin(plan, **given)
        answer = await self.answer()
        return Scan([(name, document) for name, document in answer.pop("documents")], **answer)

    async def ask_standing(self) -> dict[str, Any]:
        """Return how its witness is doing."""
        self.begin("standing")
        return await self.answer()

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


def sender_pid(journal: Path) -> int | None:
    """Return the process that sends a journal, where one does."""
    pid = read_document(journal / STANDING).get("pid") if is_locked(journal / SENDER_LOCK) else None
    return int(pid) if pid else None


def end_sender(journal: Path, kind: int = signal.SIGTERM) -> None:
    """Have the sender of a journal end, where one runs."""
    if (pid := sender_pid(journal)) is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, kind)


@contextmanager
def running_engine(
    directory: Path, address: str | None = None, plan: str = "", environment: Mapping[str, str] | None = None, **options: Any
) -> Iterator[EngineProcess]:
    """A RunEngine whose data lie in a directory, witnessed where there is an address, until the block ends."""
    journal = directory / "journal"
    told: dict[str, Any] = {"directory": str(directory)}
    if address is not None:
        told |= {"address": address, "plan": plan, "options": {"journal": str(journal), **options}}
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "engine.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.witness.engine", json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=clean_environment(**(environment or {})),
        )
    engine = EngineProcess(process, journal)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "the RunEngine did not start"
        yield engine
    finally:
        engine.kill()
        end_sender(journal)
