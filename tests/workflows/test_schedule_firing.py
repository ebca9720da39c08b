"""Schedules that fire, on a real engine: what they conduct, what refuses them, how they overlap, and whose pause counts."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import ScheduleUpdate, ScheduleUpdateInput
from temporalio.service import RPCError

from baton.activities.heartbeats import EngineAttempt
from baton.application.commands import Commands
from baton.application.ports import Batch, Caller, CommandResult, Job, StreamAppend
from baton.application.schedules.firings import Firings
from baton.application.schedules.schedule_reconciliation import PREFIX, entry_of
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import keeping_schedules
from baton.domain.kernel import NIL, Call
from baton.domain.operation.procedure.procedure import Procedure, ProcedureAborted
from baton.domain.operation.schedule.messages import DueFiring, FiringOrder, FiringVerdict
from baton.domain.operation.schedule.schedule import (
    Schedule,
    ScheduleFired,
    ScheduleFiringRefused,
    ScheduleHeld,
    ScheduleTriggered,
)
from baton.domain.registry import REGISTRY
from baton.domain.run.run import Run, RunAborted
from baton.domain.trust.policy import RevokePolicyGrant
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.runtime import clock, new_id
from baton.infrastructure.temporal.engine import TASK_QUEUE
from tests.api.serving import shared_database
from tests.domain.lives import command
from tests.waiting import until
from tests.workflows.runs import PLANT, Floor, furnished
from tests.workflows.schedules import (
    Timetable,
    crew,
    darks,
    procedure_reaches,
    recipe,
    run_reaches,
    scheduled,
    stored,
    swept,
)
from tests.workflows.stage import OPERATOR, Stage, staged
from tests.workflows.steps import check, setpoint

GATE = check("gate", 1, timeout=60)
"""A step that goes on when the test says so."""
EVERY_TEN = {"every": 10}


@pytest.fixture(scope="module")
def database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    with shared_database(postgres, template) as url:
        yield url


@pytest.fixture(scope="module")
async def floor(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[Floor]:
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": OPERATOR}
    async with staged(database, temporal.address, compute=SimulatedCompute(), **enforced, **PLANT) as stage, swept(stage):
        stage.caller = Caller.system(new_id())
        made = await furnished(stage)
        stage.caller, _ = await crew(stage, REGISTRY.command_names())
        yield made


@pytest.fixture(autouse=True)
async def calm(floor: Floor) -> None:
    """The plant as at the beginning."""
    floor.stage.control.writes.clear()
    await floor.stage.plant.write("gate", 0)


class Died(Exception):
    """The process ended here."""


class MortalCommands(Commands):
    """Commands whose giver dies right after one of them was carried out."""

    def __init__(self, stage: Stage, lives: int) -> None:
        self._real = stage.runtime.commands
        self._lives = lives

    async def execute(self, *given: Any, **named: Any) -> CommandResult:
        executed = await self._real.execute(*given, **named)
        self._lives -= 1
        if not self._lives:
            raise Died
        return executed


def dying_after(stage: Stage, commands: int) -> Firings:
    """Firings in a process that dies after so many commands."""
    runtime, limit = stage.runtime, timedelta(seconds=stage.runtime.settings.conduct_restart_limit_seconds)
    mortal = MortalCommands(stage, commands)
    return Firings(runtime.store, mortal, runtime.service, clock, runtime.conducts, runtime.run_conducts, limit)


def due_now(table: Timetable) -> DueFiring:
    return DueFiring(schedule_id=table.id, scheduled_at=clock().replace(microsecond=0), started_at=clock())


async def plan_target(floor: Floor, *recipes: UUID, **fields: Any) -> dict[str, Any]:
    phases = [{"recipe_id": id, "name": f"Phase {index} of {{count}}"} for index, id in enumerate(recipes)]
    return {"kind": "ConductPlan", "plan_id": floor.plan_id, "name": "Survey {fired_at}", "phases": phases, **fields}


async def test_a_recipe_is_conducted_on_its_calendar_as_whoever_defined_the_schedule(floor: Floor) -> None:
    stage = floor.stage
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])), calendar=EVERY_TEN)
    (fired,) = (await table.outcomes(1))[:1]
    assert isinstance(fired, ScheduleFired)
    assert fired.scheduled_at.timestamp() % 10 == 0
    procedure = await procedure_reaches(stage, fired.procedure_id, "Completed")
    assert (procedure.name, procedure.kind) == (f"Darks {fired.scheduled_at:%Y-%m-%dT%H:%M:%SZ} no. 1", "scheduled")
    due = DueFiring(schedule_id=table.id, scheduled_at=fired.scheduled_at, started_at=fired.scheduled_at)
    assert (fired.procedure_id, procedure.last_conduct_id) == (due.procedure_id(), due.conduct_id)
    async with stage.runtime.store.session() as session:
        registered = (await session.history(Procedure.__name__, fired.procedure_id, 0, 10))[0]
        outcome = (await session.history("Schedule", table.id, 0, 10))[1]
    assert (registered.principal_id, registered.causation_id) == (stage.caller.principal_id, due.id)
    assert (outcome.event_type, outcome.principal_id) == ("ScheduleFired", NIL)
    await table.give("retire_schedule", reason="over")
    with pytest.raises(RPCError, match="not found"):
        await table.engine_view()
    view = await table.view()
    assert view.last_firings[-1].outcome == "Completed"
    assert view.next_firings == ()


async def test_a_run_is_started_on_a_plan_and_its_phases_are_conducted(floor: Floor) -> None:
    stage = floor.stage
    recipes = [await recipe(stage, [setpoint("a", 1)]), await recipe(stage, [setpoint("b", 2)], [setpoint("shutter", 0)])]
    table = await scheduled(stage, await plan_target(floor, *recipes))
    await table.set_off()
    (fired,) = await table.outcomes(1)
    await run_reaches(stage, fired.run_id, "Completed")
    assert stage.control.writes == [("a", 1), ("b", 2), ("shutter", 0)]
    (firing,) = await table.firings()
    assert await table.ends(firing) == FiringVerdict.OPENED.value
    described = await stage.client.get_workflow_handle(firing).describe()
    found = {pair.key.name: pair.value for pair in described.typed_search_attributes if pair.key.name.startswith("Baton")}
    assert found == {
        "BatonFacility": "facility",
        "BatonCommand": "ConductRun",
        "BatonPrincipal": str(stage.caller.principal_id),
        "BatonState": "Ended",
    }
    assert (await table.view()).last_firings[0].outcome == "Completed"


async def test_a_firing_is_repeated_by_as_many_as_like_and_done_once(floor: Floor) -> None:
    stage, firings = floor.stage, floor.stage.runtime.firings
    recipes = [await recipe(stage, [setpoint("a", 1)]), await recipe(stage, [setpoint("a", 2)])]
    for target in (darks(recipes[0]), await plan_target(floor, *recipes)):
        stage.control.writes.clear()
        table = await scheduled(stage, target)
        due = DueFiring(schedule_id=table.id, scheduled_at=clock().replace(microsecond=0), started_at=clock())
        verdicts = await asyncio.gather(*(firings.open(due) for _ in range(6)))
        assert set(verdicts) == {FiringVerdict.OPENED}
        assert await firings.open(due) is FiringVerdict.OPENED
        (fired,) = await table.outcomes(1)
        if fired.run_id is None:
            await procedure_reaches(stage, fired.procedure_id, "Completed")
        else:
            await run_reaches(stage, fired.run_id, "Completed")
        assert await firings.open(due) is FiringVerdict.OPENED
        assert len(await table.outcomes(1)) == 1
        assert stage.control.writes == ([("a", 1)] if fired.run_id is None else [("a", 1), ("a", 2)])


async def test_a_withdrawn_grant_stops_a_schedule_and_is_on_record(floor: Floor) -> None:
    stage = floor.stage
    other, policy_id = await crew(stage, REGISTRY.command_names())
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])), other)
    await stage.do(RevokePolicyGrant(permitted_principal_id=other.principal_id, reason="left"), policy_id)
    await table.set_off()
    (refused,) = await table.outcomes(1)
    assert isinstance(refused, ScheduleFiringRefused)
    assert (refused.code, refused.count) == ("UnauthorizedError", 1)
    assert refused.detail.startswith("RegisterProcedureFromRecipe was refused.")
    (firing,) = await table.firings()
    assert await table.ends(firing) == FiringVerdict.REFUSED.value
    history = await stage.client.get_workflow_handle(firing).fetch_history()
    tries = [event for event in history.events if event.HasField("activity_task_started_event_attributes")]
    assert [event.activity_task_started_event_attributes.attempt for event in tries] == [1], "it is not tried again"
    assert (await table.state()).status == "Active"
    assert stage.control.writes == []


async def test_a_closed_gate_refuses_a_firing_and_leaves_no_run_behind(floor: Floor) -> None:
    stage = floor.stage
    table = await scheduled(stage, await plan_target(floor, await recipe(stage, [setpoint("a", 1)])))
    series = await floor.start()
    await series.lose_beam()
    await table.set_off()
    (refused,) = await table.outcomes(1)
    await series.beam_back()
    assert refused.code in ("RunRequiresAvailableSupplyError", "RunSupplyCoverageMismatchError")
    assert "photon_beam" in refused.detail
    due = DueFiring(schedule_id=table.id, scheduled_at=refused.scheduled_at, started_at=refused.scheduled_at)
    assert await stored(stage, Run, due.run_id) is None
    assert (await table.view()).last_firings[0].outcome == refused.code


@pytest.mark.parametrize("denied", ["ConductRun", "HoldRun"])
async def test_a_run_that_was_started_and_cannot_be_conducted_is_aborted(floor: Floor, denied: str) -> None:
    stage = floor.stage
    other, _ = await crew(stage, REGISTRY.command_names() - {denied})
    table = await scheduled(stage, await plan_target(floor, await recipe(stage, [setpoint("a", 1)])), other)
    await table.set_off()
    (refused,) = await table.outcomes(1)
    assert (refused.code, denied in refused.detail) == ("UnauthorizedError", True)
    due = DueFiring(schedule_id=table.id, scheduled_at=refused.scheduled_at, started_at=refused.scheduled_at)
    await run_reaches(stage, due.run_id, "Aborted")
    async with stage.runtime.store.session() as session:
        *_, last = await session.history(Run.__name__, due.run_id, 0, 100)
    assert (last.event_type, last.principal_id) == (RunAborted.__name__, NIL)
    assert await stage.runtime.firings.open(due) is FiringVerdict.REFUSED
    assert (await stored(stage, Procedure, due.procedure_id())).status == "Aborted", "its phase goes with the run"
    assert stage.control.writes == []


async def test_a_refused_firing_leaves_no_procedure_that_somebody_could_still_start(floor: Floor) -> None:
    stage = floor.stage
    other, _ = await crew(stage, REGISTRY.command_names() - {"ConductProcedure"})
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])), other)
    due = due_now(table)
    with pytest.raises(Died):
        await dying_after(stage, 1).open(due)
    assert (await stored(stage, Procedure, due.procedure_id())).status == "Defined", "the next try finds it"
    assert await stage.runtime.firings.open(due) is FiringVerdict.REFUSED
    (refused,) = await table.outcomes(1)
    async with stage.runtime.store.session() as session:
        *_, last = await session.history(Procedure.__name__, due.procedure_id(), 0, 100)
        *_, outcome = await session.history(Schedule.__name__, table.id, 0, 100)
    assert (last.event_type, last.principal_id) == (ProcedureAborted.__name__, NIL)
    assert last.transaction_id == outcome.transaction_id, "both are written or neither is"
    assert refused.detail in last.payload
    assert await stage.runtime.firings.open(due) is FiringVerdict.REFUSED


async def test_an_asset_in_use_refuses_the_second_of_two_firings_at_once(floor: Floor) -> None:
    stage = floor.stage
    asset = await stage.do(command("register_asset", {"name": "Bench", "tier": "Unit", "facility_code": "facility"}))
    asset_id = asset.body["asset_id"]
    target = darks(await recipe(stage, [GATE]), target_asset_ids=[asset_id])
    table = await scheduled(stage, target, overlap="AllowAll")
    await table.set_off()
    (fired,) = await table.outcomes(1)
    await table.trigger()
    _, refused = await table.outcomes(2)
    assert (refused.code, isinstance(fired, ScheduleFired)) == ("ProcedureCannotConductError", True)
    await stage.plant.write("gate", 1)
    await procedure_reaches(stage, fired.procedure_id, "Completed")


@pytest.mark.parametrize(("overlap", "conducted", "skipped"), [("Skip", 1, 2), ("BufferOne", 2, 1)])
async def test_firings_overlap_as_the_schedule_says(floor: Floor, overlap: str, conducted: int, skipped: int) -> None:
    """A firing lasts until its conduct has ended, and two more come meanwhile."""
    stage = floor.stage
    table = await scheduled(stage, darks(await recipe(stage, [GATE])), overlap=overlap)
    await table.set_off()
    (first,) = await table.outcomes(1)
    await procedure_reaches(stage, first.procedure_id, "Running")
    await until(lambda: clock() - first.scheduled_at > timedelta(seconds=1))
    for _ in range(2):
        await table.set_off()

    async def told() -> bool:
        return bool((await table.engine_view()).info.num_actions_skipped_overlap == skipped)

    await until(told)
    await stage.plant.write("gate", 1)
    outcomes = await table.outcomes(conducted)
    for fired in outcomes:
        await procedure_reaches(stage, fired.procedure_id, "Completed")
    for firing in await table.firings():
        await table.ends(firing)
    await table.keep()
    assert (await table.view()).skipped_count == skipped
    assert len(await table.outcomes(1)) == conducted


async def test_a_held_schedule_fires_on_request_only_and_a_retired_one_never(floor: Floor) -> None:
    stage = floor.stage
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])))
    await table.give("hold_schedule", reason="shutdown")
    assert (await table.engine_view()).schedule.state.paused
    calendar = Job("schedule-firing", f"schedule-firing:{new_id()}", FiringOrder(schedule_id=table.id))
    assert await stage.runtime.engine.start(calendar)
    assert await table.ends(calendar.id) == FiringVerdict.IDLE.value
    assert await table.ends(await table.trigger()) == FiringVerdict.OPENED.value
    (fired,) = await table.outcomes(1)
    await procedure_reaches(stage, fired.procedure_id, "Completed")
    await table.give("retire_schedule", reason="over")
    order = FiringOrder(schedule_id=table.id, trigger_id=new_id(), triggered_at=clock())
    late = Job("schedule-firing", f"schedule-trigger:{new_id()}", order)
    assert await stage.runtime.engine.start(late)
    assert await table.ends(late.id) == FiringVerdict.IDLE.value
    assert len(await table.outcomes(1)) == 1


async def test_a_firing_that_nobody_took_up_in_time_is_recorded_as_missed(floor: Floor) -> None:
    stage, runtime = floor.stage, floor.stage.runtime
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])), catchup_window=30)
    due = DueFiring(schedule_id=table.id, scheduled_at=clock(), started_at=clock() - timedelta(seconds=31))
    assert await runtime.firings.open(due) is FiringVerdict.REFUSED
    (missed,) = await table.outcomes(1)
    assert missed.code == "ScheduleFiringMissedError"
    in_time = due.model_copy(update={"scheduled_at": clock(), "started_at": clock() - timedelta(seconds=29)})
    assert await runtime.firings.open(in_time) is FiringVerdict.OPENED
    await procedure_reaches(stage, in_time.procedure_id(), "Completed")


async def triggered_at(table: Timetable, at: datetime) -> DueFiring:
    """The firing that somebody asked for at a time."""
    call, trigger_id = Call(OPERATOR, SYSTEM_HTTP, at, new_id(), new_id()), new_id()
    async with table.stage.runtime.store.session() as session:
        version = (await session.history(Schedule.__name__, table.id, 0, 1000))[-1].version
        stamped = [(trigger_id, ScheduleTriggered().stamped(table.id, at))]
        append = StreamAppend(Schedule.__name__, table.id, version, stamped)
        await session.append(Batch(call, "TriggerSchedule", [append]))
    return DueFiring(
        schedule_id=table.id, scheduled_at=at, started_at=clock(), trigger_id=trigger_id, correlation_id=call.correlation_id
    )


async def test_a_trigger_that_nobody_recorded_fires_nothing(floor: Floor) -> None:
    stage = floor.stage
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])))
    await table.give("hold_schedule", reason="shutdown")
    real = await triggered_at(table, clock())
    invented = [
        {"trigger_id": new_id(), "triggered_at": clock()},
        {"trigger_id": real.trigger_id, "triggered_at": clock()},
        {"triggered_at": clock()},
    ]
    for said in invented:
        order = FiringOrder(schedule_id=table.id, correlation_id=real.correlation_id, **said)
        id = f"schedule-trigger:{new_id()}"
        handle = await stage.client.start_workflow("schedule-firing", order, id=id, task_queue=TASK_QUEUE)
        assert await handle.result() == FiringVerdict.IDLE
    assert not [event for event in await table.events() if isinstance(event, ScheduleFired | ScheduleFiringRefused)]
    assert stage.control.writes == []


async def test_a_trigger_waits_as_long_as_a_conduct_that_somebody_asks_for_and_no_longer(floor: Floor) -> None:
    stage, runtime = floor.stage, floor.stage.runtime
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])), catchup_window=30)
    limit = timedelta(seconds=runtime.settings.conduct_restart_limit_seconds)
    for late, verdict in ((timedelta(seconds=-5), FiringVerdict.OPENED), (timedelta(seconds=1), FiringVerdict.REFUSED)):
        due = await triggered_at(table, clock() - limit - late)
        assert await runtime.firings.open(due) is verdict
    fired, missed = await table.outcomes(2)
    await procedure_reaches(stage, fired.procedure_id, "Completed")
    assert missed.code == "ScheduleFiringMissedError"
    assert f"it may wait for {limit.total_seconds():.0f} s" in missed.detail


@pytest.mark.parametrize(("verb", "status"), [("hold_schedule", "Held"), ("retire_schedule", "Retired")])
async def test_what_was_begun_ends_where_the_schedule_stops_before_the_conduct_is_open(
    floor: Floor, verb: str, status: str
) -> None:
    stage, runtime = floor.stage, floor.stage.runtime
    table = await scheduled(stage, await plan_target(floor, await recipe(stage, [setpoint("a", 1)])))
    due = due_now(table)
    with pytest.raises(Died):
        await dying_after(stage, 1).open(due)
    await table.give(verb, reason="shutdown")
    assert await runtime.firings.open(due) is FiringVerdict.REFUSED
    await run_reaches(stage, due.run_id, "Aborted")
    (refused,) = await table.outcomes(1)
    assert refused.code == "ScheduleFiringWithdrawnError"
    assert f"was {status} before" in refused.detail
    assert await runtime.firings.open(due) is FiringVerdict.REFUSED
    assert stage.control.writes == []


async def test_what_was_begun_is_not_gone_on_with_when_it_is_too_late(floor: Floor) -> None:
    stage, runtime = floor.stage, floor.stage.runtime
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])), catchup_window=30)
    due = due_now(table)
    with pytest.raises(Died):
        await dying_after(stage, 1).open(due)
    late = due.model_copy(update={"started_at": clock() - timedelta(seconds=31)})
    assert await runtime.firings.open(late) is FiringVerdict.REFUSED
    (missed,) = await table.outcomes(1)
    assert missed.code == "ScheduleFiringMissedError"
    assert (await stored(stage, Procedure, due.procedure_id())).status == "Aborted", "nothing waits for anybody"


async def test_a_schedule_that_is_not_on_record_fires_nothing_and_its_firings_end(floor: Floor) -> None:
    stage = floor.stage
    unknown = Job("schedule-firing", f"schedule-firing:{new_id()}", FiringOrder(schedule_id=new_id()))
    assert await stage.runtime.engine.start(unknown)
    assert await stage.client.get_workflow_handle(unknown.id).result() == FiringVerdict.IDLE.value
    due = DueFiring(schedule_id=unknown.argument.schedule_id, scheduled_at=clock(), started_at=clock())
    await stage.runtime.firings.await_end(due, EngineAttempt())


@pytest.mark.parametrize(("phases", "commands"), [(0, 3), (2, 5)])
async def test_a_firing_lives_through_a_death_after_any_of_its_commands(floor: Floor, phases: int, commands: int) -> None:
    stage, firings = floor.stage, floor.stage.runtime.firings
    recipes = [await recipe(stage, [setpoint("a", value)]) for value in range(max(phases, 1))]
    target = await plan_target(floor, *recipes) if phases else darks(recipes[0])
    for count in range(1, commands + 2):
        stage.control.writes.clear()
        table = await scheduled(stage, target)
        due = due_now(table)
        if count <= commands:
            with pytest.raises(Died):
                await dying_after(stage, count).open(due)
            assert await firings.open(due) is FiringVerdict.OPENED
        else:
            assert await dying_after(stage, count).open(due) is FiringVerdict.OPENED, "these were all"
        if phases:
            await run_reaches(stage, due.run_id, "Completed")
        else:
            await procedure_reaches(stage, due.procedure_id(), "Completed")
        assert stage.control.writes == [("a", value) for value in range(max(phases, 1))]
        assert [type(one) for one in await table.outcomes(1)] == [ScheduleFired]


async def test_a_grant_withdrawn_between_two_tries_ends_the_firing(floor: Floor) -> None:
    stage = floor.stage
    other, policy_id = await crew(stage, REGISTRY.command_names())
    table = await scheduled(stage, await plan_target(floor, await recipe(stage, [setpoint("a", 1)])), other)
    due = due_now(table)
    with pytest.raises(Died):
        await dying_after(stage, 2).open(due)
    await stage.do(RevokePolicyGrant(permitted_principal_id=other.principal_id, reason="left"), policy_id)
    assert await stage.runtime.firings.open(due) is FiringVerdict.REFUSED
    await run_reaches(stage, due.run_id, "Aborted")
    (refused,) = await table.outcomes(1)
    assert (refused.code, stage.control.writes) == ("UnauthorizedError", [])


async def test_a_pause_in_the_engine_holds_the_schedule_and_only_resuming_it_here_counts(floor: Floor) -> None:
    stage = floor.stage
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])))
    await table.handle.pause(note="somebody in the Temporal UI")
    for _ in range(3):
        await table.keep()
    held = [event for event in await table.events() if isinstance(event, ScheduleHeld)]
    assert [event.reason for event in held] == ["paused in the engine"]
    await table.handle.unpause(note="the same person")
    await table.keep()
    assert (await table.engine_view()).schedule.state.paused, "an unpause there resumes nothing"
    await stage.do(command("resume_schedule", {}), table.id)
    for _ in range(3):
        await table.keep()
    assert not (await table.engine_view()).schedule.state.paused, "a resume that had to be told is no pause of anybody"
    assert (await table.state()).status == "Active"
    await table.handle.pause(note="again")
    await table.keep()
    assert (await table.state()).status == "Held"


async def test_what_is_deleted_or_edited_in_the_engine_comes_back_as_recorded(floor: Floor) -> None:
    table = await scheduled(floor.stage, darks(await recipe(floor.stage, [setpoint("a", 1)])))
    recorded = (await table.engine_view()).schedule.spec

    def often(known: ScheduleUpdateInput) -> ScheduleUpdate:
        known.description.schedule.spec.calendars = []
        return ScheduleUpdate(schedule=known.description.schedule)

    await table.handle.update(often)
    await table.keep()
    assert (await table.engine_view()).schedule.spec == recorded
    await table.handle.delete()
    await table.keep()
    assert (await table.engine_view()).schedule.spec == recorded
    assert [type(event).__name__ for event in await table.events()] == ["ScheduleDefined"]


async def test_the_worker_tells_the_engine_of_changes_by_itself(floor: Floor) -> None:
    stage = floor.stage
    table = await scheduled(stage, darks(await recipe(stage, [setpoint("a", 1)])))

    async def paused() -> bool:
        return bool((await table.engine_view()).schedule.state.paused)

    async def awake() -> bool:
        return not await paused()

    async with keeping_schedules(stage.runtime):
        await stage.do(command("hold_schedule", {"reason": "shutdown"}), table.id)
        await until(paused)
        await stage.do(command("resume_schedule", {}), table.id)
        await until(awake)


async def test_the_worker_removes_a_calendar_that_the_record_does_not_know(floor: Floor) -> None:
    runtime = floor.stage.runtime
    table = await scheduled(floor.stage, darks(await recipe(floor.stage, [setpoint("a", 1)])))
    known, lost = f"{PREFIX}{table.id}", f"{PREFIX}{new_id()}"
    await runtime.calendars.put(replace(entry_of(await table.state(), "facility"), id=lost))

    async def listed() -> bool:
        return {known, lost} <= set(await runtime.calendars.listed(PREFIX))

    async def removed() -> bool:
        return lost not in await runtime.calendars.listed(PREFIX)

    await until(listed)
    async with keeping_schedules(runtime):
        await until(removed)
    assert known in await runtime.calendars.listed(PREFIX)
