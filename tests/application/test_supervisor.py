"""The supervisor: beam loss holds exactly the runs that need beam, people are respected, and nothing is remembered."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.application.agents.agent_client import in_process
from baton.application.agents.rule_agents import BeamReader, RunSupervisor
from baton.application.queries import Queries
from baton.application.settings import Settings
from baton.domain.agent.rule_agents import HoldForBeam, SupervisorAction, needs_beam, supervision_decision_id
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.run.run import AbortRun, HoldRun, Run, RunHeld, RunStatus
from baton.domain.shared.reads import Reads, events_of, require
from baton.domain.shared.refusals import Conflict
from baton.domain.start.run_start import ResumeRun, StartRun
from baton.domain.supply.coverage import Outage, outage_in
from baton.domain.supply.supply import (
    DegradeSupply,
    DeregisterSupply,
    MarkSupplyRecovering,
    MarkSupplyUnavailable,
    RestoreSupply,
)
from tests.support.application.memory_agents import MemoryAgents, memory_agents
from tests.support.domain.world import START, new_id
from tests.support.tables import for_each

SUPERVISOR = SEEDED["RunSupervisor"].id
HOUR = timedelta(hours=1)


def supervisor(facility: MemoryAgents, beam: BeamReader = outage_in, stop_after: timedelta | None = None) -> RunSupervisor:
    """One that knows nothing of any other look."""
    people = facility.people
    queries = Queries(people.store, people.authorizer, people.clock, new_id, people.ports)
    seconds = None if stop_after is None else int(stop_after.total_seconds())
    settings = Settings(self_facility_code="own-site", run_supervisor_stop_after_seconds=seconds)
    return RunSupervisor(facility.client, queries, settings, beam)


async def look(facility: MemoryAgents, **fields: Any) -> None:
    facility.clock.now += timedelta(seconds=30)
    await facility.line_kept_permitted()
    await supervisor(facility, **fields).supervise()


async def on(facility: MemoryAgents, **fields: Any) -> UUID:
    """A run that is on."""
    return await facility.people.create(StartRun(**{**facility.line.request, **fields}))


async def beam(facility: MemoryAgents, goes: bool) -> None:
    """The beam goes or comes back."""
    supply_id = facility.line.supply_id
    assert supply_id is not None
    if goes:
        await facility.do(MarkSupplyUnavailable(reason="beam dump"), supply_id)
    else:
        await facility.do(MarkSupplyRecovering(reason="refill"), supply_id)
        await facility.do(RestoreSupply(reason="stored beam"), supply_id)


def run(facility: MemoryAgents, run_id: UUID) -> Run:
    found: Any = facility.store.state((Run.__name__, run_id))
    return found


def choices(facility: MemoryAgents) -> list[str]:
    return [one.choice for one in facility.decisions()]


async def test_a_lost_beam_holds_a_run_that_needs_it_once() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    await look(facility)
    assert choices(facility) == []
    await beam(facility, goes=True)
    for _ in range(3):
        await look(facility)
    assert run(facility, run_id).status is RunStatus.HELD
    (decision,) = facility.decisions()
    assert (decision.context, decision.choice, decision.decided_by) == ("RunSupervision", "Hold", SUPERVISOR)
    held: Any = next(event for event in facility.events(run_id) if isinstance(event, RunHeld))
    assert held.decided_by_decision_id == decision.id
    assert "Unavailable" in held.reason


async def test_every_run_that_needs_beam_is_held_and_no_other() -> None:
    facility = await memory_agents()
    runs = [await on(facility) for _ in range(3)]
    dry = await on(facility, plan_id=await facility.plan_without_beam())
    ended = await on(facility)
    await facility.do(AbortRun(reason="enough"), ended)
    await beam(facility, goes=True)
    await look(facility)
    assert {run(facility, id).status for id in runs} == {RunStatus.HELD}
    assert run(facility, dry).status is RunStatus.RUNNING
    assert len(facility.decisions()) == 3


async def test_a_degraded_beam_holds_nothing() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    assert facility.line.supply_id is not None
    await facility.do(DegradeSupply(reason="half the current"), facility.line.supply_id)
    await look(facility)
    assert run(facility, run_id).status is RunStatus.RUNNING
    assert choices(facility) == []


async def test_a_second_supply_that_still_provides_keeps_runs_going() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    other = await facility.another_beam()
    await beam(facility, goes=True)
    await look(facility)
    assert run(facility, run_id).status is RunStatus.RUNNING
    await facility.do(MarkSupplyUnavailable(reason="that too"), other)
    await look(facility)
    assert run(facility, run_id).status is RunStatus.HELD


async def test_a_new_outage_holds_a_run_anew() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    for _ in range(2):
        await beam(facility, goes=True)
        await look(facility)
        assert run(facility, run_id).status is RunStatus.HELD
        await beam(facility, goes=False)
        await look(facility)
        assert run(facility, run_id).status is RunStatus.HELD, "nobody but a person resumes"
        await facility.line_kept_permitted()
        await facility.do(ResumeRun(), run_id)
    assert choices(facility) == ["Hold", "Hold"]


async def test_a_hold_that_was_decided_and_not_carried_out_is_carried_out() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    await beam(facility, goes=True)
    await facility.revoke_all(SUPERVISOR)
    but_hold = SEEDED["RunSupervisor"].commands - {"HoldRun"}
    await facility.permit(SUPERVISOR, but_hold)
    await look(facility)
    assert (choices(facility), run(facility, run_id).status) == (["Hold"], RunStatus.RUNNING)
    await facility.permit(SUPERVISOR, frozenset({"HoldRun"}))
    await look(facility)
    assert (choices(facility), run(facility, run_id).status) == (["Hold"], RunStatus.HELD)


async def test_without_its_read_grant_it_stands_down() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    await facility.revoke_all(SUPERVISOR)
    await beam(facility, goes=True)
    await look(facility)
    assert (choices(facility), run(facility, run_id).status) == ([], RunStatus.RUNNING)


async def test_a_suspended_supervisor_does_nothing() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    await facility.suspend(SUPERVISOR)
    await beam(facility, goes=True)
    await look(facility)
    assert (choices(facility), run(facility, run_id).status) == ([], RunStatus.RUNNING)


class TestAPersonResumes:
    """The gate lets nobody resume while the supplies say lost; a beam seam of its own shows the rule."""

    async def test_it_is_respected_for_the_rest_of_this_outage(self) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        lost = Outage(new_id(), facility.clock.now, "the orbit interlock is open")

        def from_elsewhere(scope: AssetScope, own: str) -> Reads[Outage | None]:
            return lost
            yield

        await look(facility, beam=from_elsewhere)
        assert run(facility, run_id).status is RunStatus.HELD
        await facility.do(ResumeRun(), run_id)
        for _ in range(3):
            await look(facility, beam=from_elsewhere)
        assert run(facility, run_id).status is RunStatus.RUNNING
        assert choices(facility) == ["Hold", "SupervisionDeferred"]
        lost = Outage(new_id(), facility.clock.now, "open once more")
        await look(facility, beam=from_elsewhere)
        assert run(facility, run_id).status is RunStatus.HELD


class TestStopping:
    async def test_its_own_hold_is_stopped_after_so_long(self) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        await beam(facility, goes=True)
        await look(facility, stop_after=HOUR)
        assert run(facility, run_id).status is RunStatus.HELD
        facility.clock.now += HOUR
        await look(facility, stop_after=HOUR)
        assert run(facility, run_id).status is RunStatus.STOPPED
        assert choices(facility) == ["Hold", "Stop"]

    async def test_what_somebody_else_holds_is_left_alone(self) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        await facility.do(HoldRun(reason="lunch"), run_id)
        await beam(facility, goes=True)
        facility.clock.now += HOUR
        await look(facility, stop_after=HOUR)
        assert (choices(facility), run(facility, run_id).status) == ([], RunStatus.HELD)

    async def test_without_a_limit_it_stays_held(self) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        await beam(facility, goes=True)
        await look(facility)
        facility.clock.now += 100 * HOUR
        await look(facility)
        assert run(facility, run_id).status is RunStatus.HELD


async def test_a_beam_of_which_nothing_is_known_is_not_lost() -> None:
    facility = await memory_agents()
    run_id = await on(facility)
    await facility.another_beam(known=False)
    await facility.do(DeregisterSupply(reason="replaced"), facility.line.supply_id)
    await look(facility)
    assert (choices(facility), run(facility, run_id).status) == ([], RunStatus.RUNNING)


class TestComingLate:
    """A look that was held up, and acts on what was true when it looked."""

    async def held_up(self, facility: MemoryAgents, run_id: UUID) -> HoldForBeam:
        """What the supervisor would do now, kept for later."""
        caller = in_process(SUPERVISOR, new_id())
        found = await facility.client.read(require(Run, run_id), caller)
        scope = await facility.client.read(needs_beam(found), caller)
        assert scope is not None
        outage = await facility.client.read(outage_in(scope, "own-site"), caller)
        assert outage is not None
        decision_id = supervision_decision_id(SupervisorAction.HOLD, run_id, outage, SUPERVISOR)
        return HoldForBeam(decision_id=decision_id, outage_event_id=outage.event_id, reason="lost", beam=outage_in)

    async def is_refused(self, facility: MemoryAgents, late: HoldForBeam, run_id: UUID, reason: str) -> None:
        with pytest.raises(Conflict) as caught:
            await facility.client.execute(late, in_process(SUPERVISOR, new_id()), target_id=run_id)
        assert caught.value.reason == reason
        assert run(facility, run_id).status is RunStatus.RUNNING

    async def test_it_does_not_hold_again_what_a_person_resumed(self) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        await beam(facility, goes=True)
        late = await self.held_up(facility, run_id)
        await look(facility)
        lost = await facility.client.read(events_of(run_id, RunHeld), in_process(SUPERVISOR, new_id()))
        assert [hold.decided_by_decision_id for hold in lost] == [late.decision_id]
        still_out = replace_beam(late)
        await beam(facility, goes=False)
        await facility.line_kept_permitted()
        await facility.do(ResumeRun(), run_id)
        await self.is_refused(facility, late, run_id, "outage_over")
        await self.is_refused(facility, still_out, run_id, "held_before")

    @for_each("lead", range(12))
    async def test_two_looks_side_by_side_hold_once_and_note_nothing_else(self, lead: int) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        await beam(facility, goes=True)

        async def later() -> None:
            for _ in range(lead):
                await asyncio.sleep(0)
            await supervisor(facility).supervise()

        await asyncio.gather(supervisor(facility).supervise(), later())
        assert (choices(facility), run(facility, run_id).status) == (["Hold"], RunStatus.HELD)

    async def test_it_does_not_hold_when_the_beam_is_back(self) -> None:
        facility = await memory_agents()
        run_id = await on(facility)
        await beam(facility, goes=True)
        late = await self.held_up(facility, run_id)
        await beam(facility, goes=False)
        await self.is_refused(facility, late, run_id, "outage_over")


def replace_beam(late: HoldForBeam) -> HoldForBeam:
    """The same, by a seam that still says lost."""

    def lost(scope: AssetScope, own: str) -> Reads[Outage | None]:
        return Outage(late.outage_event_id, START, "the orbit interlock is open")
        yield

    return late.model_copy(update={"beam": lost})
