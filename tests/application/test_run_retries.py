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
class RacedStore:
    """A store in which somebody else gets to the run just before each of the first appends."""

    store: Store
    beat: Any
    times: int
    decided: int = field(default=0)

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Any]:
        async with self.store.session(lock) as session:
            yield LateSession(session, self)


@dataclass
class LateSession:
    known: Session
    raced: RacedStore

    def __getattr__(self, name: str) -> Any:
        return getattr(self.known, name)

    async def append(self, batch: Batch) -> int | None:
        self.raced.decided += 1
        if self.raced.decided <= self.raced.times:
            await self.raced.beat()
        return await self.known.append(batch)


@dataclass
class RunInCampaign:
    """A run that is on, and a campaign it is moved into and out of."""

    client: CommandCaller
    run_id: UUID
    campaign_id: UUID

    async def beat(self) -> None:
        """Write the next version of the run."""
        joins = (await self.run()).campaign_id is None
        verb = AddRunToCampaign(run_id=self.run_id) if joins else RemoveRunFromCampaign(run_id=self.run_id, reason="back")
        await self.client.do(verb, on=self.campaign_id)

    async def run(self) -> Run:
        async with self.client.store.session() as session:
            run: Run | None = Run.aggregate.replay(await session.load("Run", [self.run_id]))
        assert run is not None
        return run

    async def decisions_until_won(self, command: Command, times: int) -> int:
        """Return how often a command was decided that lost so many races."""
        store: Any = RacedStore(self.client.store, self.beat, times)
        late = replace(self.client, store=store)
        await late.do(command, on=self.run_id)
        return int(store.decided)


@pytest.fixture
async def run_in_campaign(database_url: str) -> AsyncIterator[RunInCampaign]:
    async with runtime_pool(database_url, 4) as pool:
        client = CommandCaller(PostgresStore(pool))
        run_id, call = new_id(), Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
        async with client.store.session() as session:
            started = NEW.model_copy().stamp(run_id, START)
            await session.append(Batch(call, "StartRun", [StreamAppend("Run", run_id, 0, [(new_id(), started)])]))
        series = RegisterCampaign(name="Series", intent="Series", lead_actor_id=OPERATOR)
        yield RunInCampaign(client, run_id, await client.create(series))


PERSISTENT = {
    RunStatus.HELD: HoldRun(),
    RunStatus.STOPPED: StopRun(reason="enough"),
    RunStatus.ABORTED: AbortRun(reason="smoke"),
}


@pytest.mark.parametrize("status", PERSISTENT, ids=str)
async def test_what_must_not_wait_is_decided_up_to_three_times(run_in_campaign: RunInCampaign, status: RunStatus) -> None:
    assert await run_in_campaign.decisions_until_won(PERSISTENT[status], times=2) == 3
    assert (await run_in_campaign.run()).status is status


@pytest.mark.parametrize("status", PERSISTENT, ids=str)
async def test_after_three_lost_races_the_caller_is_told(run_in_campaign: RunInCampaign, status: RunStatus) -> None:
    with expect_refusal("ConcurrencyError", "version_taken"):
        await run_in_campaign.decisions_until_won(PERSISTENT[status], times=3)
    assert (await run_in_campaign.run()).status is RunStatus.RUNNING


@pytest.mark.parametrize("command", [CompleteRun(), TruncateRun(reason="power cut")], ids=["complete", "truncate"])
async def test_other_endings_are_decided_once(run_in_campaign: RunInCampaign, command: Command) -> None:
    with expect_refusal("ConcurrencyError", "version_taken"):
        await run_in_campaign.decisions_until_won(command, times=1)
    assert (await run_in_campaign.run()).status is RunStatus.RUNNING


async def test_a_decision_taken_again_sees_what_happened_meanwhile(run_in_campaign: RunInCampaign) -> None:
    async def complete() -> None:
        await run_in_campaign.client.do(CompleteRun(), on=run_in_campaign.run_id)

    late = replace(run_in_campaign.client, store=RacedStore(run_in_campaign.client.store, complete, 1))  # type: ignore[arg-type]
    with expect_refusal("RunCannotHoldError", "completed"):
        await late.do(HoldRun(), on=run_in_campaign.run_id)


async def test_readings_that_would_open_the_logbook_look_at_the_run_again(run_in_campaign: RunInCampaign) -> None:
    sample = {"event_id": new_id(), "channel_name": "T", "value": 1.0, "sampled_at": START, "sampling_procedure": "monitor"}
    first = AppendObservations(entries=[sample])
    assert await run_in_campaign.decisions_until_won(first, times=2) == 3
    assert (
        await run_in_campaign.decisions_until_won(AppendObservations(entries=[{**sample, "event_id": new_id()}]), times=1)
        == 1
    )


async def test_readings_whose_run_ends_before_the_logbook_is_open_are_refused(run_in_campaign: RunInCampaign) -> None:
    async def stop() -> None:
        await run_in_campaign.client.do(StopRun(reason="enough"), on=run_in_campaign.run_id)

    late = replace(run_in_campaign.client, store=RacedStore(run_in_campaign.client.store, stop, 1))  # type: ignore[arg-type]
    sample = {"event_id": new_id(), "channel_name": "T", "value": 1.0, "sampled_at": START, "sampling_procedure": "monitor"}
    with expect_refusal("RunObservationLogbookClosedError", "stopped"):
        await late.do(AppendObservations(entries=[sample]), on=run_in_campaign.run_id)
    async with run_in_campaign.client.store.session() as session:
        assert [row.event_type for row in await session.load("Run", [run_in_campaign.run_id])] == [
            "RunStarted",
            "RunStopped",
        ]
