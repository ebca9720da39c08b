"""A sweep whose workers are killed or suspended while they read: every copy is checked, none is recorded twice, and only
what was being read at that moment is read again. What was read, a server in this process counts."""

import asyncio
import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.application.attestations import AT_ONCE
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.data.attestation import AttestDistributions
from tests.support.application.data_copies import FRAMES, DataRecord
from tests.support.forked_commands import forked_command
from tests.support.infrastructure.byte_server import ByteServer, Handler, running_byte_server
from tests.support.seeds import SEED
from tests.support.stack import clean_environment
from tests.support.waiting import until

DEADLINE = 120.0


class ReadLimit:
    """Lets so many copies be read, so that no worker is done before it is killed; others wait until more may be."""

    def __init__(self) -> None:
        self._left = 0
        self._changed = threading.Condition()

    def allow(self, count: int) -> None:
        """Let so many copies be recorded at least: some readers are gone, or killed before they record."""
        with self._changed:
            self._left = count + 2 * AT_ONCE
            self._changed.notify_all()

    def serve(self, handler: Handler) -> None:
        if handler.command == "GET":
            return handler.send_range(FRAMES)
        with self._changed:
            assert self._changed.wait_for(lambda: self._left > 0, DEADLINE)
            self._left -= 1
        return handler.send(200, **{"Content-Length": len(FRAMES)})


class SweptStack:
    """A record, a server with the bytes, an engine, and workers in processes of their own."""

    def __init__(self, record: DataRecord, server: ByteServer, environment: dict[str, str], directory: Path) -> None:
        self.record = record
        self.server = server
        self.limit = ReadLimit()
        self._environment = environment
        self._directory = directory

    def worker(self, name: str) -> AbstractContextManager[ForkServerProcess]:
        """A worker until the end of the block, where it is killed."""
        files = (self._directory / f"{name}.out", self._directory / f"{name}.err")
        return forked_command(("worker",), self._environment, *files)

    async def begin(self, count: int) -> UUID:
        """Register so many copies, and begin a sweep over all of them."""
        self.server.behaviours |= {f"/{number}": self.limit.serve for number in range(count)}
        await self.record.copies([f"{self.server.url}/{number}" for number in range(count)])
        service = self.record.runtime.service
        accepted = await service.execute(AttestDistributions(wait=0), Caller.system(UUID(int=9)))
        assert accepted.status == 202, accepted
        assert accepted.body is not None
        return UUID(accepted.body["work_id"])

    async def recorded_count(self) -> int:
        async with self.record.runtime.pool.connection() as connection:
            found = await connection.execute("SELECT count(*) FROM events WHERE event_type = 'AttestationRecorded'")
            row = await found.fetchone()
        assert row is not None
        return int(row[0])

    async def events_by_copy(self) -> Counter[tuple[str, str]]:
        """Return how often each copy was attested, and became Verified."""
        query = (
            "SELECT payload ->> 'distribution_id', event_type, count(*) FROM events "
            "WHERE event_type IN ('AttestationRecorded', 'DistributionVerified') GROUP BY 1, 2"
        )
        async with self.record.runtime.pool.connection() as connection:
            rows = await (await connection.execute(query)).fetchall()
        return Counter({(copy, event_type): count for copy, event_type, count in rows})

    async def answer(self, sweep_id: UUID) -> Any:
        return await self.record.sweeps.answer(sweep_id)

    def reads(self) -> Counter[str]:
        """Return how often each copy's bytes were begun to be read."""
        with self.server.lock:
            return Counter(path for method, path, _ in self.server.asked if method == "HEAD")


@asynccontextmanager
async def swept_stack(database_url: str, temporal: EmbeddedTemporal, directory: Path) -> AsyncIterator[SweptStack]:
    with running_byte_server() as server:
        environment = clean_environment(
            DATABASE_URL=database_url,
            TEMPORAL_ADDRESS=temporal.address,
            APP_ENV="test",
            VERIFIER_ALLOWED_HOSTS=json.dumps([f"127.0.0.1:{server.port}"]),
        )
        settings = Settings(
            database_url=database_url, temporal_address=temporal.address, app_env="test", database_pool_size=8
        )
        async with Runtime(settings) as runtime:
            await runtime.plant_seeds()
            yield SweptStack(await DataRecord.begin(runtime), server, environment, directory)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("copies", "kills"), [(40, 2), pytest.param(1000, 5, marks=pytest.mark.soak)])
async def test_a_sweep_survives_killed_workers_and_checks_every_copy_once(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path, copies: int, kills: int
) -> None:
    moments = random.Random(SEED)
    async with swept_stack(database_url, temporal, tmp_path) as stack:
        sweep_id = await stack.begin(copies)
        for number in range(kills):
            before = await stack.recorded_count()
            more = moments.randint(1, (copies - before) // (kills - number + 1))
            stack.limit.allow(more)
            with stack.worker(f"doomed-{number}"):
                await until(lambda wanted=before + more: has_recorded(stack, wanted), DEADLINE, 0.005)
        assert await stack.recorded_count() < copies
        stack.limit.allow(copies)
        with stack.worker("last"):
            answer = await until(lambda: stack.answer(sweep_id), DEADLINE)
        named = {"match_count": copies, "mismatch_count": 0, "unreachable_count": 0, "skipped_count": 0}
        assert answer == {"sweep_id": str(sweep_id), **named, "not_matched": []}
        counted, reads = await stack.events_by_copy(), stack.reads()
    assert (len(counted), set(counted.values())) == (2 * copies, {1}), f"seed {SEED}"
    assert len(reads) == copies
    repeated = {path: count for path, count in reads.items() if count > 1}
    assert sum(repeated.values()) - len(repeated) <= kills * AT_ONCE, f"read again: {repeated} (seed {SEED})"


async def has_recorded(stack: SweptStack, wanted: int) -> bool:
    return await stack.recorded_count() >= wanted


@pytest.mark.timeout(300)
async def test_a_worker_that_was_suspended_in_a_sweep_records_nothing_a_second_time(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    count = 30
    async with swept_stack(database_url, temporal, tmp_path) as stack:
        sweep_id = await stack.begin(count)
        stack.limit.allow(10)
        with stack.worker("sleeper") as sleeper:
            await until(lambda: has_recorded(stack, 10), DEADLINE, 0.005)
            assert sleeper.pid is not None
            os.kill(sleeper.pid, signal.SIGSTOP)
            assert await stack.recorded_count() < count
            stack.limit.allow(count)
            with stack.worker("other"):
                answer = await until(lambda: stack.answer(sweep_id), DEADLINE)
            os.kill(sleeper.pid, signal.SIGCONT)
            os.kill(sleeper.pid, signal.SIGTERM)  # It ends what it was at before it goes.
            await asyncio.to_thread(sleeper.join, DEADLINE)
            assert sleeper.exitcode is not None
        counted, reads = await stack.events_by_copy(), stack.reads()
    assert answer["match_count"] == count
    assert (len(counted), set(counted.values())) == (2 * count, {1})
    assert sum(reads.values()) <= count + 2 * AT_ONCE
