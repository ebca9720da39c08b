"""Schedules that fire, on a real engine: what they conduct, what refuses them, how they overlap, and whose pause counts."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import ScheduleUpdate, ScheduleUpdateInput
from temporalio.service import RPCError

from baton.activities.bindings import EngineAttempt
from baton.application.commands import Commands
from baton.application.ports import Batch, CommandResult, Job, StreamAppend
from baton.application.schedules.firings import Firings
from baton.application.schedules.schedule_reconciliation import PREFIX, entry_of
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import keep_schedules_in_background
from baton.domain.kernel import NIL, Call
from baton.domain.launch.launch import Launch
from baton.domain.procedure.procedure import Procedure, ProcedureAborted
from baton.domain.registry import REGISTRY
from baton.domain.run.run import Run, RunAborted
from baton.domain.schedule.messages import DueFiring, FiringOrder, FiringVerdict
from baton.domain.schedule.schedule import Schedule, ScheduleFired, ScheduleFiringRefused, ScheduleHeld, ScheduleTriggered
from baton.domain.trust.policy import RevokePolicyGrant
from baton.domain.trust.proposal import OPEN_PROPOSALS
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.temporal.engine import TASK_QUEUE
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.domain.lifecycle_table import command
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import OPERATOR, ConductStack
from tests.support.workflows.enforcing_stack import open_enforcing_run_stack
from tests.support.workflows.proposal_cases import define_policy
from tests.support.workflows.run_cases import SIGNALS, RunStack
from tests.support.workflows.schedule_cases import (
    ScheduleCase,
    darks_target,
    define_schedule,
    half_begin,
    load_state,
    recipe,
    register_member,
    swept_engine,
    wait_for_procedure,
    wait_for_run,
)
from tests.support.workflows.step_json import check, setpoint

GATE = check("gate", 1, timeout=120)
"""A step that goes on when the test says so."""
EVERY_TEN = {"every": 10}


@pytest.fixture(scope="module")
async def run_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[RunStack]:
    async with open_enforcing_run_stack(database, temporal.address, swept_engine) as run_stack:
        yield run_stack


@pytest.fixture(autouse=True)
def fresh_plant(run_stack: RunStack) -> None:
    """The plant as at the beginning."""
    run_stack.stack.reset_plant(SIGNALS)


class ProcessDied(Exception):
    """The process ended here."""


class MortalCommands(Commands):
    """Commands whose giver dies right after one of them was carried out."""

    def __init__(self, stack: ConductStack, lives: int) -> None:
        self._real = stack.runtime.commands
        self._lives = lives

    async def execute(self, *given: Any, **named: Any) -> CommandResult:
        executed = await self._real.execute(*given, **named)
        self._lives -= 1
        if not self._lives:
            raise ProcessDied
        return executed


def firings_dying_after(stack: ConductStack, commands: int) -> Firings:
    """Firings in a process that dies after so many commands."""
    runtime = stack.runtime
    launches = replace(runtime.launches, commands=MortalCommands(stack, commands))
    return replace(runtime.works.of(Firings), launches=launches)


def due_now(table: ScheduleCase) -> DueFiring:
    return DueFiring(schedule_id=table.id, scheduled_at=clock().replace(microsecond=0), started_at=clock())


async def plan_target(run_stack: RunStack, *recipes: UUID, **fields: Any) -> dict[str, Any]:
    phases = [{"recipe_id": id, "name": f"Phase {index} of {{count}}"} for index, id in enumerate(recipes)]
    return {"kind": "ConductPlan", "plan_id": run_stack.plan_id, "name": "Survey {fired_at}", "phases": phases, **fields}


async def test_a_recipe_is_conducted_on_its_calendar_as_the_one_who_defined_the_schedule(run_stack: RunStack) -> None:
    stack = run_stack.stack
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])), calendar=EVERY_TEN)
    (fired,) = (await table.outcomes(1))[:1]
    assert isinstance(fired, ScheduleFired)
    assert fired.scheduled_at.timestamp() % 10 == 0
    procedure = await wait_for_procedure(stack, fired.procedure_id, "Completed")
    assert (procedure.name, procedure.kind) == (f"Darks {fired.scheduled_at:%Y-%m-%dT%H:%M:%SZ} no. 1", "scheduled")
    due = DueFiring(schedule_id=table.id, scheduled_at=fired.scheduled_at, started_at=fired.scheduled_at)
    assert (fired.procedure_id, procedure.last_conduct_id) == (due.procedure_id(), due.conduct_id)
    async with stack.runtime.store.session() as session:
        registered = (await session.history(Procedure.__name__, fired.procedure_id, 0, 10))[0]
        outcome = (await session.history("Schedule", table.id, 0, 10))[1]
    assert (registered.principal_id, registered.causation_id) == (stack.caller.principal_id, due.id)
    assert (outcome.event_type, outcome.principal_id) == ("ScheduleFired", NIL)
    await table.give("retire_schedule", reason="over")
    with pytest.raises(RPCError, match="not found"):
        await table.engine_view()
    view = await table.view()
    assert view.last_firings[-1].outcome == "Completed"
    assert view.next_firings == ()


async def test_a_run_is_started_on_a_plan_and_its_phases_are_conducted(run_stack: RunStack) -> None:
    stack = run_stack.stack
    recipes = [await recipe(stack, [setpoint("a", 1)]), await recipe(stack, [setpoint("b", 2)], [setpoint("shutter", 0)])]
    table = await define_schedule(stack, await plan_target(run_stack, *recipes))
    await table.fire_now()
    (fired,) = await table.outcomes(1)
    await wait_for_run(stack, fired.run_id, "Completed")
    assert stack.control.writes == [("a", 1), ("b", 2), ("shutter", 0)]
    (firing,) = await table.firings()
    assert await table.wait_for_end(firing) == FiringVerdict.OPENED.value
    described = await stack.client.get_workflow_handle(firing).describe()
    found = {pair.key.name: pair.value for pair in described.typed_search_attributes if pair.key.name.startswith("Baton")}
    assert found == {
        "BatonFacility": "facility",
        "BatonCommand": "ConductRun",
        "BatonPrincipal": str(stack.caller.principal_id),
        "BatonState": "Ended",
    }
    assert (await table.view()).last_firings[0].outcome == "Completed"


async def test_a_firing_is_repeated_by_as_many_as_like_and_done_once(run_stack: RunStack) -> None:
    stack, firings = run_stack.stack, run_stack.stack.runtime.works.of(Firings)
    recipes = [await recipe(stack, [setpoint("a", 1)]), await recipe(stack, [setpoint("a", 2)])]
    for target in (darks_target(recipes[0]), await plan_target(run_stack, *recipes)):
        stack.control.writes.clear()
        table = await define_schedule(stack, target)
        due = DueFiring(schedule_id=table.id, scheduled_at=clock().replace(microsecond=0), started_at=clock())
        verdicts = await asyncio.gather(*(firings.open(due) for _ in range(6)))
        assert set(verdicts) == {FiringVerdict.OPENED}
        assert await firings.open(due) is FiringVerdict.OPENED
        (fired,) = await table.outcomes(1)
        if fired.run_id is None:
            await wait_for_procedure(stack, fired.procedure_id, "Completed")
        else:
            await wait_for_run(stack, fired.run_id, "Completed")
        assert await firings.open(due) is FiringVerdict.OPENED
        assert len(await table.outcomes(1)) == 1
        assert stack.control.writes == ([("a", 1)] if fired.run_id is None else [("a", 1), ("a", 2)])


async def test_a_withdrawn_grant_stops_a_schedule_and_is_on_record(run_stack: RunStack) -> None:
    stack = run_stack.stack
    other, policy_id = await register_member(stack, REGISTRY.command_names())
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])), other)
    await stack.do(RevokePolicyGrant(permitted_principal_id=other.principal_id, reason="left"), policy_id)
    await table.fire_now()
    (refused,) = await table.outcomes(1)
    assert isinstance(refused, ScheduleFiringRefused)
    assert (refused.code, refused.count) == ("UnauthorizedError", 1)
    assert refused.detail.startswith("RegisterProcedureFromRecipe was refused.")
    (firing,) = await table.firings()
    assert await table.wait_for_end(firing) == FiringVerdict.REFUSED.value
    history = await stack.client.get_workflow_handle(firing).fetch_history()
    tries = [event for event in history.events if event.HasField("activity_task_started_event_attributes")]
    assert [event.activity_task_started_event_attributes.attempt for event in tries] == [1], "it is not tried again"
    assert (await table.state()).status == "Active"
    assert stack.control.writes == []


@pytest.mark.parametrize("asked", ["StartRun", "ConductProcedure"])
async def test_what_its_author_holds_only_with_approval_a_schedule_does_not_do(run_stack: RunStack, asked: str) -> None:
    stack = run_stack.stack
    author, _ = await register_member(stack, REGISTRY.command_names() - {asked})
    approval = {"principals": [stack.caller.principal_id]}
    await define_policy(stack, author.principal_id, asked, approval=approval)
    recipe_id = await recipe(stack, [setpoint("a", 1)])
    target = darks_target(recipe_id) if asked == "ConductProcedure" else await plan_target(run_stack, recipe_id)
    table = await define_schedule(stack, target, author)
    await table.fire_now()
    (refused,) = await table.outcomes(1)
    assert isinstance(refused, ScheduleFiringRefused)
    assert (refused.code, refused.detail.startswith(f"{asked} needs the approval")) == ("ApprovalRequiredError", True)
    (firing,) = await table.firings()
    assert await table.wait_for_end(firing) == FiringVerdict.REFUSED.value
    async with stack.runtime.store.session() as session:
        assert not await session.all_members(OPEN_PROPOSALS), "nobody is asked to approve what a schedule wants"
    assert stack.control.writes == []


async def test_a_closed_gate_refuses_a_firing_and_leaves_no_run_behind(run_stack: RunStack) -> None:
    stack = run_stack.stack
    table = await define_schedule(stack, await plan_target(run_stack, await recipe(stack, [setpoint("a", 1)])))
    series = await run_stack.start()
    await series.lose_beam()
    await table.fire_now()
    (refused,) = await table.outcomes(1)
    await series.restore_beam()
    assert refused.code in ("RunRequiresAvailableSupplyError", "RunSupplyCoverageMismatchError")
    assert "photon_beam" in refused.detail
    due = DueFiring(schedule_id=table.id, scheduled_at=refused.scheduled_at, started_at=refused.scheduled_at)
    assert await load_state(stack, Run, due.run_id) is None
    assert (await table.view()).last_firings[0].outcome == refused.code


@pytest.mark.parametrize("denied", ["ConductRun", "HoldRun"])
async def test_a_firing_that_may_not_be_conducted_leaves_nothing_but_its_refusal(run_stack: RunStack, denied: str) -> None:
    stack = run_stack.stack
    other, _ = await register_member(stack, REGISTRY.command_names() - {denied})
    table = await define_schedule(stack, await plan_target(run_stack, await recipe(stack, [setpoint("a", 1)])), other)
    await table.fire_now()
    (refused,) = await table.outcomes(1)
    assert (refused.code, denied in refused.detail) == ("UnauthorizedError", True)
    due = DueFiring(schedule_id=table.id, scheduled_at=refused.scheduled_at, started_at=refused.scheduled_at)
    assert await load_state(stack, Run, due.run_id) is None
    assert await load_state(stack, Procedure, due.procedure_id()) is None
    launch = await load_state(stack, Launch, due.id)
    assert (launch.status, launch.by, launch.schedule_id) == ("Refused", "schedule", table.id)
    assert (launch.code, launch.reason) == (refused.code, refused.detail)
    assert stack.control.writes == []


async def test_a_run_that_an_earlier_release_has_started_and_cannot_conduct_is_aborted(run_stack: RunStack) -> None:
    stack = run_stack.stack
    other, _ = await register_member(stack, REGISTRY.command_names() - {"ConductRun"})
    table = await define_schedule(stack, await plan_target(run_stack, await recipe(stack, [setpoint("a", 1)])), other)
    due = due_now(table)
    await half_begin(stack, due, (await table.state()).aim, 2)
    assert await stack.runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    await wait_for_run(stack, due.run_id, "Aborted")
    async with stack.runtime.store.session() as session:
        *_, last = await session.history(Run.__name__, due.run_id, 0, 100)
    assert (last.event_type, last.principal_id) == (RunAborted.__name__, NIL)
    assert await stack.runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    assert (await load_state(stack, Procedure, due.procedure_id())).status == "Aborted", "its phase goes with the run"
    assert stack.control.writes == []


async def test_a_refused_firing_leaves_no_procedure_that_somebody_could_still_start(run_stack: RunStack) -> None:
    stack = run_stack.stack
    other, _ = await register_member(stack, REGISTRY.command_names() - {"ConductProcedure"})
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])), other)
    due = due_now(table)
    await half_begin(stack, due, (await table.state()).aim, 1)
    assert (await load_state(stack, Procedure, due.procedure_id())).status == "Defined", "the next try finds it"
    assert await stack.runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    (refused,) = await table.outcomes(1)
    async with stack.runtime.store.session() as session:
        *_, last = await session.history(Procedure.__name__, due.procedure_id(), 0, 100)
        *_, outcome = await session.history(Schedule.__name__, table.id, 0, 100)
    assert (last.event_type, last.principal_id) == (ProcedureAborted.__name__, NIL)
    assert last.transaction_id == outcome.transaction_id, "both are written or neither is"
    assert refused.detail in last.payload
    assert await stack.runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED


async def test_an_asset_in_use_refuses_the_second_of_two_firings_at_once(run_stack: RunStack) -> None:
    stack = run_stack.stack
    asset = await stack.do(command("register_asset", {"name": "Bench", "tier": "Unit", "facility_code": "facility"}))
    asset_id = asset.body["asset_id"]
    target = darks_target(await recipe(stack, [GATE]), target_asset_ids=[asset_id])
    table = await define_schedule(stack, target, overlap="AllowAll")
    await table.fire_now()
    (fired,) = await table.outcomes(1)
    await table.trigger()
    _, refused = await table.outcomes(2)
    assert (refused.code, isinstance(fired, ScheduleFired)) == ("ProcedureCannotConductError", True)
    await stack.plant.write("gate", 1)
    await wait_for_procedure(stack, fired.procedure_id, "Completed")


@pytest.mark.parametrize(("overlap", "conducted", "skipped"), [("Skip", 1, 2), ("BufferOne", 2, 1)])
async def test_firings_overlap_as_the_schedule_says(run_stack: RunStack, overlap: str, conducted: int, skipped: int) -> None:
    """A firing lasts until its conduct has ended, and two more come meanwhile."""
    stack = run_stack.stack
    table = await define_schedule(stack, darks_target(await recipe(stack, [GATE])), overlap=overlap)
    await table.fire_now()
    (first,) = await table.outcomes(1)
    await wait_for_procedure(stack, first.procedure_id, "Running")
    await until(lambda: clock() - first.scheduled_at > timedelta(seconds=1))
    for count in (1, 2):  # one at a time: how the engine joins requests that come together is not tested here
        await table.fire_now()
        await until(partial(table.has_postponed, count), 60)
    assert (await table.engine_view()).info.num_actions_skipped_overlap == skipped
    await stack.plant.write("gate", 1)
    outcomes = await table.outcomes(conducted)
    for fired in outcomes:
        await wait_for_procedure(stack, fired.procedure_id, "Completed")
    for firing in await table.firings():
        await table.wait_for_end(firing)
    await table.reconcile()
    assert (await table.view()).skipped_count == skipped
    assert len(await table.outcomes(1)) == conducted


async def test_a_held_schedule_fires_on_request_only_and_a_retired_one_never(run_stack: RunStack) -> None:
    stack = run_stack.stack
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])))
    await table.give("hold_schedule", reason="shutdown")
    assert (await table.engine_view()).schedule.state.paused
    calendar = Job("schedule-firing", f"schedule-firing:{new_id()}", FiringOrder(schedule_id=table.id))
    assert await stack.runtime.engine.start(calendar)
    assert await table.wait_for_end(calendar.id) == FiringVerdict.IDLE.value
    assert await table.wait_for_end(await table.trigger()) == FiringVerdict.OPENED.value
    (fired,) = await table.outcomes(1)
    await wait_for_procedure(stack, fired.procedure_id, "Completed")
    await table.give("retire_schedule", reason="over")
    order = FiringOrder(schedule_id=table.id, trigger_id=new_id(), triggered_at=clock())
    late = Job("schedule-firing", f"schedule-trigger:{new_id()}", order)
    assert await stack.runtime.engine.start(late)
    assert await table.wait_for_end(late.id) == FiringVerdict.IDLE.value
    assert len(await table.outcomes(1)) == 1


async def test_a_firing_that_nobody_took_up_in_time_is_recorded_as_missed(run_stack: RunStack) -> None:
    stack, runtime = run_stack.stack, run_stack.stack.runtime
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])), catchup_window=600)
    due = DueFiring(schedule_id=table.id, scheduled_at=clock(), started_at=clock() - timedelta(seconds=601))
    assert await runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    (missed,) = await table.outcomes(1)
    assert missed.code == "ScheduleFiringMissedError"
    in_time = due.model_copy(update={"scheduled_at": clock(), "started_at": clock() - timedelta(seconds=300)})
    assert await runtime.works.of(Firings).open(in_time) is FiringVerdict.OPENED
    await wait_for_procedure(stack, in_time.procedure_id(), "Completed")


async def triggered_at(table: ScheduleCase, at: datetime) -> DueFiring:
    """The firing that somebody asked for at a time."""
    call, trigger_id = Call(OPERATOR, SYSTEM_HTTP, at, new_id(), new_id()), new_id()
    async with table.stack.runtime.store.session() as session:
        version = (await session.history(Schedule.__name__, table.id, 0, 1000))[-1].version
        stamped = [(trigger_id, ScheduleTriggered().stamp(table.id, at))]
        append = StreamAppend(Schedule.__name__, table.id, version, stamped)
        await session.append(Batch(call, "TriggerSchedule", [append]))
    return DueFiring(
        schedule_id=table.id, scheduled_at=at, started_at=clock(), trigger_id=trigger_id, correlation_id=call.correlation_id
    )


async def test_a_trigger_that_nobody_recorded_fires_nothing(run_stack: RunStack) -> None:
    stack = run_stack.stack
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])))
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
        handle = await stack.client.start_workflow("schedule-firing", order, id=id, task_queue=TASK_QUEUE)
        assert await handle.result() == FiringVerdict.IDLE
    assert not [event for event in await table.events() if isinstance(event, ScheduleFired | ScheduleFiringRefused)]
    assert stack.control.writes == []


async def test_a_trigger_waits_as_long_as_a_conduct_that_somebody_asks_for_and_no_longer(run_stack: RunStack) -> None:
    stack, runtime = run_stack.stack, run_stack.stack.runtime
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])), catchup_window=30)
    limit = timedelta(seconds=runtime.settings.conduct_restart_limit_seconds)
    for late, verdict in ((timedelta(seconds=-60), FiringVerdict.OPENED), (timedelta(seconds=1), FiringVerdict.REFUSED)):
        due = await triggered_at(table, clock() - limit - late)
        assert await runtime.works.of(Firings).open(due) is verdict
    fired, missed = await table.outcomes(2)
    await wait_for_procedure(stack, fired.procedure_id, "Completed")
    assert missed.code == "ScheduleFiringMissedError"
    assert f"it may wait for {limit.total_seconds():.0f} s" in missed.detail


@pytest.mark.parametrize(("verb", "status"), [("hold_schedule", "Held"), ("retire_schedule", "Retired")])
async def test_what_was_begun_ends_where_the_schedule_stops_before_the_conduct_is_open(
    run_stack: RunStack, verb: str, status: str
) -> None:
    stack, runtime = run_stack.stack, run_stack.stack.runtime
    table = await define_schedule(stack, await plan_target(run_stack, await recipe(stack, [setpoint("a", 1)])))
    due = due_now(table)
    await half_begin(stack, due, (await table.state()).aim, 1)
    await table.give(verb, reason="shutdown")
    assert await runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    await wait_for_run(stack, due.run_id, "Aborted")
    (refused,) = await table.outcomes(1)
    assert refused.code == "ScheduleFiringWithdrawnError"
    assert f"was {status} before" in refused.detail
    assert await runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    assert stack.control.writes == []


async def test_what_was_begun_is_not_gone_on_with_when_it_is_too_late(run_stack: RunStack) -> None:
    stack, runtime = run_stack.stack, run_stack.stack.runtime
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])), catchup_window=600)
    due = due_now(table)
    await half_begin(stack, due, (await table.state()).aim, 1)
    late = due.model_copy(update={"started_at": clock() - timedelta(seconds=601)})
    assert await runtime.works.of(Firings).open(late) is FiringVerdict.REFUSED
    (missed,) = await table.outcomes(1)
    assert missed.code == "ScheduleFiringMissedError"
    assert (await load_state(stack, Procedure, due.procedure_id())).status == "Aborted", "nothing waits for anybody"


async def test_a_schedule_that_is_not_on_record_fires_nothing_and_its_firings_end(run_stack: RunStack) -> None:
    stack = run_stack.stack
    unknown = Job("schedule-firing", f"schedule-firing:{new_id()}", FiringOrder(schedule_id=new_id()))
    assert await stack.runtime.engine.start(unknown)
    assert await stack.client.get_workflow_handle(unknown.id).result() == FiringVerdict.IDLE.value
    due = DueFiring(schedule_id=unknown.argument.schedule_id, scheduled_at=clock(), started_at=clock())
    await stack.runtime.works.of(Firings).await_end(due, EngineAttempt())


@pytest.mark.parametrize("phases", [0, 1, pytest.param(2, marks=pytest.mark.soak)])
async def test_a_firing_lives_through_a_death_after_any_of_its_commands(run_stack: RunStack, phases: int) -> None:
    """Its commands are two: the launch, and the record of the firing."""
    commands = 2
    stack, firings = run_stack.stack, run_stack.stack.runtime.works.of(Firings)
    recipes = [await recipe(stack, [setpoint("a", value)]) for value in range(max(phases, 1))]
    target = await plan_target(run_stack, *recipes) if phases else darks_target(recipes[0])
    for count in range(1, commands + 2):
        stack.control.writes.clear()
        table = await define_schedule(stack, target)
        due = due_now(table)
        if count <= commands:
            with pytest.raises(ProcessDied):
                await firings_dying_after(stack, count).open(due)
            assert await firings.open(due) is FiringVerdict.OPENED
        else:
            assert await firings_dying_after(stack, count).open(due) is FiringVerdict.OPENED, "these were all"
        if phases:
            await wait_for_run(stack, due.run_id, "Completed")
        else:
            await wait_for_procedure(stack, due.procedure_id(), "Completed")
        assert stack.control.writes == [("a", value) for value in range(max(phases, 1))]
        assert [type(one) for one in await table.outcomes(1)] == [ScheduleFired]


@pytest.mark.parametrize("phases", [0, 2])
async def test_a_firing_that_an_earlier_release_has_half_begun_comes_to_one_conduct(
    run_stack: RunStack, phases: int
) -> None:
    stack, firings = run_stack.stack, run_stack.stack.runtime.works.of(Firings)
    recipes = [await recipe(stack, [setpoint("a", value)]) for value in range(max(phases, 1))]
    target = await plan_target(run_stack, *recipes) if phases else darks_target(recipes[0])
    for commands in range(1, phases + 2):
        stack.control.writes.clear()
        table = await define_schedule(stack, target)
        due = due_now(table)
        await half_begin(stack, due, (await table.state()).aim, commands)
        assert await firings.open(due) is FiringVerdict.OPENED
        if phases:
            await wait_for_run(stack, due.run_id, "Completed")
        else:
            await wait_for_procedure(stack, due.procedure_id(), "Completed")
        assert stack.control.writes == [("a", value) for value in range(max(phases, 1))]


async def test_a_grant_withdrawn_between_two_tries_ends_the_firing(run_stack: RunStack) -> None:
    stack = run_stack.stack
    other, policy_id = await register_member(stack, REGISTRY.command_names())
    table = await define_schedule(stack, await plan_target(run_stack, await recipe(stack, [setpoint("a", 1)])), other)
    due = due_now(table)
    await half_begin(stack, due, (await table.state()).aim, 2)
    await stack.do(RevokePolicyGrant(permitted_principal_id=other.principal_id, reason="left"), policy_id)
    assert await stack.runtime.works.of(Firings).open(due) is FiringVerdict.REFUSED
    await wait_for_run(stack, due.run_id, "Aborted")
    (refused,) = await table.outcomes(1)
    assert (refused.code, stack.control.writes) == ("UnauthorizedError", [])


async def test_a_pause_in_the_engine_holds_the_schedule_and_only_resuming_it_here_counts(run_stack: RunStack) -> None:
    stack = run_stack.stack
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])))
    await table.handle.pause(note="somebody in the Temporal UI")
    for _ in range(3):
        await table.reconcile()
    held = [event for event in await table.events() if isinstance(event, ScheduleHeld)]
    assert [event.reason for event in held] == ["paused in the engine"]
    await table.handle.unpause(note="the same person")
    await table.reconcile()
    assert (await table.engine_view()).schedule.state.paused, "an unpause there resumes nothing"
    await stack.do(command("resume_schedule", {}), table.id)
    for _ in range(3):
        await table.reconcile()
    assert not (await table.engine_view()).schedule.state.paused, "a resume that had to be told is no pause of anybody"
    assert (await table.state()).status == "Active"
    await table.handle.pause(note="again")
    await table.reconcile()
    assert (await table.state()).status == "Held"


async def test_what_is_deleted_or_edited_in_the_engine_comes_back_as_recorded(run_stack: RunStack) -> None:
    table = await define_schedule(run_stack.stack, darks_target(await recipe(run_stack.stack, [setpoint("a", 1)])))
    recorded = (await table.engine_view()).schedule.spec

    def fire_often(known: ScheduleUpdateInput) -> ScheduleUpdate:
        known.description.schedule.spec.calendars = []
        return ScheduleUpdate(schedule=known.description.schedule)

    await table.handle.update(fire_often)
    await table.reconcile()
    assert (await table.engine_view()).schedule.spec == recorded
    await table.handle.delete()
    await table.reconcile()
    assert (await table.engine_view()).schedule.spec == recorded
    assert [type(event).__name__ for event in await table.events()] == ["ScheduleDefined"]


async def test_the_worker_tells_the_engine_of_changes_by_itself(run_stack: RunStack) -> None:
    stack = run_stack.stack
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])))

    async def is_paused() -> bool:
        return bool((await table.engine_view()).schedule.state.paused)

    async def is_awake() -> bool:
        return not await is_paused()

    async with keep_schedules_in_background(stack.runtime):
        await stack.do(command("hold_schedule", {"reason": "shutdown"}), table.id)
        await until(is_paused)
        await stack.do(command("resume_schedule", {}), table.id)
        await until(is_awake)


async def test_the_worker_removes_a_calendar_that_the_record_does_not_know(run_stack: RunStack) -> None:
    runtime = run_stack.stack.runtime
    table = await define_schedule(run_stack.stack, darks_target(await recipe(run_stack.stack, [setpoint("a", 1)])))
    known, lost = f"{PREFIX}{table.id}", f"{PREFIX}{new_id()}"
    await runtime.calendars.put(replace(entry_of(await table.state(), "facility"), id=lost))

    async def is_listed() -> bool:
        return {known, lost} <= set(await runtime.calendars.list_ids(PREFIX))

    async def is_removed() -> bool:
        return lost not in await runtime.calendars.list_ids(PREFIX)

    await until(is_listed)
    async with keep_schedules_in_background(runtime):
        await until(is_removed)
    assert known in await runtime.calendars.list_ids(PREFIX)
