"""How often a verb on a run decides again when somebody else was first, on the real store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from baton.application.ports import Batch, Session, Store, StreamAppend
from baton.domain.campaign.campaign import AddRunToCampaign, RegisterCampaign, RemoveRunFromCampaign
from baton.domain.kernel import Call, Command
from baton.domain.run.logbooks import AppendObservations
from baton.domain.run.run import AbortRun, CompleteRun, HoldRun, Run, RunStatus, StopRun, TruncateRun
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import OPERATOR, START, CommandCaller, new_id
from tests.support.domain.lifecycles.run import run_started
from tests.support.domain.world import expect_refusal

NEW = run_started()


@dataclass
class Beaten:
    """A store in which somebody else gets to the run just before each of the first appends."""

    store: Store
    beat: Any
    times: int
    decided: int = field(default=0)

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Any]:
        async with self.store.session(lock) as session:
            yield Late(session, self)


@dataclass
class Late:
    known: Session
    beaten: Beaten

    def __getattr__(self, name: str) -> Any:
        return getattr(self.known, name)

    async def append(self, batch: Batch) -> int | None:
        self.beaten.decided += 1
        if self.beaten.decided <= self.beaten.times:
            await self.beaten.beat()
        return await self.known.append(batch)


@dataclass
class RunInCampaign:
    """A run that is on, and a campaign it is moved into and out of."""

    calling: CommandCaller
    run_id: UUID
    campaign_id: UUID

    async def beat(self) -> None:
        """Write the next version of the run."""
        joins = (await self.run()).campaign_id is None
        verb = AddRunToCampaign(run_id=self.run_id) if joins else RemoveRunFromCampaign(run_id=self.run_id, reason="back")
        await self.calling.do(verb, on=self.campaign_id)

    async def run(self) -> Run:
        async with self.calling.store.session() as session:
            run: Run | None = Run.aggregate.replay(await session.load("Run", [self.run_id]))
        assert run is not None
        return run

    async def beaten(self, command: Command, times: int) -> int:
        """How often a command was decided that lost so many races."""
        store: Any = Beaten(self.calling.store, self.beat, times)
        late = replace(self.calling, store=store)
        await late.do(command, on=self.run_id)
        return int(store.decided)


@pytest.fixture
async def hall(database_url: str) -> AsyncIterator[RunInCampaign]:
    async with runtime_pool(database_url, 4) as pool:
        calling = CommandCaller(PostgresStore(pool))
        run_id, call = new_id(), Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
        async with calling.store.session() as session:
            started = NEW.model_copy().stamp(run_id, START)
            await session.append(Batch(call, "StartRun", [StreamAppend("Run", run_id, 0, [(new_id(), started)])]))
        series = RegisterCampaign(name="Series", intent="Series", lead_actor_id=OPERATOR)
        yield RunInCampaign(calling, run_id, await calling.create(series))


PERSISTENT = {
    RunStatus.HELD: HoldRun(),
    RunStatus.STOPPED: StopRun(reason="enough"),
    RunStatus.ABORTED: AbortRun(reason="smoke"),
}


@pytest.mark.parametrize("status", PERSISTENT, ids=str)
async def test_what_must_not_wait_is_decided_up_to_three_times(hall: RunInCampaign, status: RunStatus) -> None:
    assert await hall.beaten(PERSISTENT[status], times=2) == 3
    assert (await hall.run()).status is status


@pytest.mark.parametrize("status", PERSISTENT, ids=str)
async def test_after_three_lost_races_the_caller_is_told(hall: RunInCampaign, status: RunStatus) -> None:
    with expect_refusal("ConcurrencyError", "version_taken"):
        await hall.beaten(PERSISTENT[status], times=3)
    assert (await hall.run()).status is RunStatus.RUNNING


@pytest.mark.parametrize("command", [CompleteRun(), TruncateRun(reason="power cut")], ids=["complete", "truncate"])
async def test_other_endings_are_decided_once(hall: RunInCampaign, command: Command) -> None:
    with expect_refusal("ConcurrencyError", "version_taken"):
        await hall.beaten(command, times=1)
    assert (await hall.run()).status is RunStatus.RUNNING


async def test_a_decision_taken_again_sees_what_happened_meanwhile(hall: RunInCampaign) -> None:
    async def completed() -> None:
        await hall.calling.do(CompleteRun(), on=hall.run_id)

    late = replace(hall.calling, store=Beaten(hall.calling.store, completed, 1))  # type: ignore[arg-type]
    with expect_refusal("RunCannotHoldError", "completed"):
        await late.do(HoldRun(), on=hall.run_id)


async def test_readings_that_would_open_the_logbook_look_at_the_run_again(hall: RunInCampaign) -> None:
    sample = {"event_id": new_id(), "channel_name": "T", "value": 1.0, "sampled_at": START, "sampling_procedure": "monitor"}
    first = AppendObservations(entries=[sample])
    assert await hall.beaten(first, times=2) == 3
    assert await hall.beaten(AppendObservations(entries=[{**sample, "event_id": new_id()}]), times=1) == 1


async def test_readings_whose_run_ends_before_the_logbook_is_open_are_refused(hall: RunInCampaign) -> None:
    async def stopped() -> None:
        await hall.calling.do(StopRun(reason="enough"), on=hall.run_id)

    late = replace(hall.calling, store=Beaten(hall.calling.store, stopped, 1))  # type: ignore[arg-type]
    sample = {"event_id": new_id(), "channel_name": "T", "value": 1.0, "sampled_at": START, "sampling_procedure": "monitor"}
    with expect_refusal("RunObservationLogbookClosedError", "stopped"):
        await late.do(AppendObservations(entries=[sample]), on=hall.run_id)
    async with hall.calling.store.session() as session:
        assert [row.event_type for row in await session.load("Run", [hall.run_id])] == ["RunStarted", "RunStopped"]
