"""A witness that loses one of its parts: the RunEngine, the sender or the service is killed at a moment of the delivery."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from baton_bluesky.journal import BEGINNING, run_journals
from tests.support.api.lossy_proxy import read_message
from tests.support.forked_commands import start_command
from tests.support.infrastructure.epics_servers import free_ports
from tests.support.stack import clean_environment, eventually
from tests.support.waiting import until
from tests.support.witness.engine_process import EngineProcess, running_engine, sender_pid
from tests.support.witness.witnessed_beamline import WitnessedBeamline


class Victim(StrEnum):
    """A part of the chain from the RunEngine to the record."""

    ENGINE = "engine"
    SENDER = "sender"
    SERVICE = "service"


class Moment(StrEnum):
    """A moment of the delivery; with `after`, the service has carried the request out and its answer is lost."""

    BEFORE_BEGIN = "before begin"
    AFTER_BEGIN = "after begin"
    BEFORE_APPEND = "before append"
    AFTER_APPEND = "after append"
    BEFORE_ENDED = "before ended"
    AFTER_ENDED = "after ended"
    AFTER_FILES = "after files"


def kind_of(request: bytes) -> str:
    """Return what a request of a sender is."""
    path = request.split(b" ", 2)[1].decode()
    last = path.rpartition("/")[2]
    if path == "/runs/witness":
        return "begin"
    if last == "witness":
        with suppress(ValueError):
            return str(json.loads(request.partition(b"\r\n\r\n")[2])["change"])
    return {"observations": "append", "register-files": "files"}.get(last, last)


@dataclass
class MomentProxy:
    """A proxy of the service that strikes at a moment, once, and lets nothing through while it does."""

    port: int
    moment: Moment | None = None
    strike: Callable[[], Awaitable[None]] | None = None
    url: str = ""
    is_struck: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass requests on one by one."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, OSError):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.port)
            while True:
                request = await read_message(reader)
                kind = kind_of(request)
                if await self._strike(f"before {kind}"):
                    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.port)
                inner_writer.write(request)
                answer = await read_message(inner_reader)
                if await self._strike(f"after {kind}"):
                    break
                writer.write(answer)
                await writer.drain()
            inner_writer.close()
        writer.close()

    async def _strike(self, moment: str) -> bool:
        if self.moment != moment or self.strike is None:
            return False
        strike, self.strike = self.strike, None
        await strike()
        self.is_struck.set()
        return True


@dataclass
class KillScene:
    """A service in a process of its own, a proxy before it, and the record behind it."""

    line: WitnessedBeamline
    database_url: str
    directory: Path
    proxy: MomentProxy
    service: ForkServerProcess | None = None

    def start_service(self) -> None:
        """Start the service on the port that it always has."""
        said = self.directory / f"service-{uuid4().hex[:6]}"
        environment = clean_environment(DATABASE_URL=self.database_url, APP_ENV="test")
        self.service = start_command(("api", f"--port={self.proxy.port}"), environment, said, said)
        eventually(lambda: said.exists() and "serving on" in said.read_text(), what=lambda: said.read_text())

    def kill_service(self) -> None:
        """Kill the service."""
        assert self.service is not None
        assert self.service.pid is not None
        os.kill(self.service.pid, signal.SIGKILL)
        self.service.join()

    def kill(self, victim: Victim, engine: EngineProcess) -> None:
        """Kill a part; the service comes back, a sender is started by its witness, a RunEngine stays dead."""
        match victim:
            case Victim.ENGINE:
                engine.kill()
            case Victim.SENDER:
                if (pid := sender_pid(engine.journal)) is not None:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            case Victim.SERVICE:
                self.kill_service()
                self.start_service()

    @contextmanager
    def engine(self) -> Iterator[EngineProcess]:
        """A RunEngine whose witness reaches the service through the proxy."""
        directory = self.directory / uuid4().hex
        directory.mkdir()
        told: dict[str, Any] = {"environment": self.line.environment, "observe": "all"}
        with running_engine(directory, self.proxy.url, self.line.plan_id, **told) as engine:
            yield engine

    def uids(self) -> list[str]:
        """Return the uid of every run that was ever recorded as witnessed, once for each time it was."""
        with psycopg.connect(self.database_url) as connection:
            rows = connection.execute("SELECT payload->>'document_uid' FROM events WHERE event_type = 'RunWitnessed'")
            return [row[0] for row in rows]

    async def check_record(self, uid: str, expected: int, status: str) -> None:
        """Check that a run stands once on record, with each of its numbered readings once, and with one end."""
        view = await self.line.ended_run_of(uid)
        assert self.uids().count(uid) == 1
        numbers = [value for channel, value, _ in await self.line.readings(view["id"]) if channel == "stage_x"]
        assert numbers == [float(number) for number in range(expected)]
        assert await self.line.endings(view["id"]) == [f"Run{status}"]


def journaled_uid(journal: Path) -> str | None:
    """Return the uid of the run that is journaled."""
    for run in run_journals(journal):
        records, _ = run.read(BEGINNING)
        if records:
            return str(records[0]["uid"])
    return None


def journaled_events(journal: Path) -> int:
    """Return how many events of the numbered scan are in its journal."""
    [run] = run_journals(journal)
    lines = [line for path in sorted(run.directory.glob("0*.jsonl")) for line in path.read_text().splitlines(keepends=True)]
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return sum(record["kind"] == "event" and "stage_x" in record["v"] for record in records)


@asynccontextmanager
async def kill_scene(line: WitnessedBeamline, database_url: str, directory: Path) -> AsyncIterator[KillScene]:
    """A scene for kills until the block ends."""
    [port] = free_ports(1)
    proxy = MomentProxy(port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    scene = KillScene(line, database_url, directory, proxy)
    await asyncio.to_thread(scene.start_service)
    try:
        yield scene
    finally:
        server.close()
        await asyncio.to_thread(scene.kill_service)


async def play_kill(scene: KillScene, victim: Victim, moment: Moment, events: int = 150) -> None:
    """Kill a part at a moment of a scan, and check what stands on record in the end."""
    with scene.engine() as engine:
        journaled: list[int] = []
        uids: list[str | None] = []

        async def strike() -> None:
            uids.append(await asyncio.to_thread(journaled_uid, engine.journal))
            await asyncio.to_thread(scene.kill, victim, engine)
            journaled.append(await asyncio.to_thread(journaled_events, engine.journal))

        scene.proxy.moment, scene.proxy.strike = moment, strike
        scene.proxy.is_struck = asyncio.Event()
        engine.begin("numbered", num=events)
        async with asyncio.timeout(60):
            await scene.proxy.is_struck.wait()
        uid = uids[0]
        assert uid is not None
        is_cut = victim is Victim.ENGINE and journaled[0] < events
        await scene.check_record(uid, journaled[0] if is_cut else events, "Truncated" if is_cut else "Completed")
        await until(lambda: not run_journals(engine.journal))
