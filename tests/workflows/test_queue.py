"""Queues on a real engine: what they conduct, in which order, what blocks or refuses their items, and who wins a race."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.ports import CommandResult
from baton.application.queues import QueueRunner
from baton.cli.worker import start_unfinished
from baton.domain.launch.launch import Launch
from baton.domain.procedure.procedure import Procedure, ProcedureStatus
from baton.domain.queue.item_records import StartQueueItem
from baton.domain.queue.items import ItemLaunch
from baton.domain.queue.messages import QueueOrder
from baton.domain.registry import REGISTRY
from baton.domain.run.run import Run
from baton.domain.shared.refusals import Refusal
from baton.domain.trust.policy import RevokePolicyGrant
from baton.infrastructure.temporal.engine import TASK_QUEUE
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.domain.lifecycle_table import command
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.queue_cases import QueueCase, open_queue
from tests.support.workflows.run_cases import RunStack
from tests.support.workflows.schedule_cases import half_begin, load_state, recipe, register_member
from tests.support.workflows.step_json import check, setpoint

GATE = check("gate", 1, timeout=120)
"""A step that goes on when the test says so."""


def write(recipe_id: UUID, **fields: Any) -> dict[str, Any]:
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Write no. {count}", **fields}


def survey(run_stack: RunStack, *recipes: UUID, **fields: Any) -> dict[str, Any]:
    phases = [{"recipe_id": id, "name": f"Phase {index} of {{count}}"} for index, id in enumerate(recipes)]
    return {"kind": "ConductPlan", "plan_id": run_stack.plan_id, "name": "Survey {count}", "phases": phases, **fields}


def written_values(stack: ConductStack, address: str = "a") -> list[Any]:
    """Return what was written to a signal, in order, as the plant saw it."""
    return [value for target, value in stack.control.writes if target == address]


async def test_items_are_conducted_one_after_the_other_as_who_added_them(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    recipes = [await recipe(stack, [setpoint("a", number)]) for number in range(1, 4)]
    targets = [write(recipes[0]), survey(run_stack, recipes[1]), write(recipes[2])]
    author, _ = await register_member(stack, REGISTRY.command_names())
    items = await queue.add(*targets, caller=author)
    ended = await queue.wait_until_idle()
    assert [(item.item_id, item.status) for item in ended.ended] == [(id, "Completed") for id in items]
    assert written_values(stack) == [1, 2, 3]
    first, second, third = ended.ended
    assert (first.procedure_id, third.procedure_id) == (first.launch.procedure_id(), third.launch.procedure_id())
    run = await load_state(stack, Run, second.launch.run_id)
    assert (run.status, run.name) == ("Completed", "Survey 2")
    procedure = await load_state(stack, Procedure, first.launch.procedure_id())
    assert procedure.name == "Write no. 1"
    async with stack.runtime.store.session() as session:
        rows = await session.history(Procedure.__name__, procedure.id, 0, 10)
    assert rows[0].principal_id == author.principal_id
    assert [item.started_at for item in ended.ended] == sorted(item.started_at for item in ended.ended if item.started_at)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("queues", "items"), [(2, 3), pytest.param(5, 100, marks=pytest.mark.soak)])
async def test_queues_complete_their_items_beside_each_other_and_each_in_its_order(
    stack: ConductStack, queues: int, items: int
) -> None:
    opened = [await open_queue(stack) for _ in range(queues)]
    for number, queue in enumerate(opened):
        await queue.add(*([write(await recipe(stack, [setpoint("a", number)]))] * items))
    for number, queue in enumerate(opened):
        ended = (await queue.wait_until_idle(800)).ended
        assert [(item.number, item.status, item.attempt) for item in ended] == [
            (place, "Completed", 1) for place in range(1, items + 1)
        ]
        starts, ends = [item.started_at for item in ended], [item.ended_at for item in ended]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False) if end and start)
        assert written_values(stack).count(number) == items


async def test_a_closed_gate_blocks_the_first_item_until_it_opens(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    id = await recipe(stack, [setpoint("a", 5)])
    await lose_beam(run_stack)
    first, second = await queue.add(survey(run_stack, id), write(id))
    blocked = await queue.wait_for(first, "Blocked")
    assert blocked.code == "RunSupplyCoverageMismatchError"
    assert blocked.detail is not None
    assert "photon_beam" in blocked.detail
    assert (await queue.item(second)).status == "Waiting", "nobody overtakes"
    forecast = (await queue.view()).forecast[0]
    assert [(gate.code, gate.may_pass) for gate in forecast.closed_gates] == [(blocked.code, True)]
    assert await load_state(stack, Run, ItemLaunch(first, 1).run_id) is None
    await restore_beam(run_stack)
    item = await queue.wait_for(first, "Running", "Completed")
    assert item.attempt == 1
    assert [one.status for one in (await queue.wait_until_idle()).ended] == ["Completed", "Completed"]


async def lose_beam(run_stack: RunStack) -> None:
    await run_stack.stack.do(command("mark_supply_unavailable", {"reason": "beam dump"}), run_stack.supply_id)


async def restore_beam(run_stack: RunStack) -> None:
    await run_stack.stack.do(command("mark_supply_recovering", {"reason": "injecting"}), run_stack.supply_id)
    await run_stack.stack.do(command("restore_supply", {"reason": "beam back"}), run_stack.supply_id)


async def test_a_claimed_asset_blocks_until_it_is_free(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    camera = (await queue.state()).asset_id
    rival = await stack.register_from_recipe([GATE], target_asset_ids=[camera])
    await stack.do(command("conduct_procedure", {"wait": 0}), rival)
    (item_id,) = await queue.add(write(await recipe(stack, [setpoint("a", 6)]), target_asset_ids=[camera]))
    blocked = await queue.wait_for(item_id, "Blocked")
    assert (blocked.code, blocked.attempt) == ("ProcedureCannotConductError", 1)
    await stack.plant.write("gate", 1)
    assert (await queue.wait_for(item_id, "Completed")).attempt == 1
    assert written_values(stack) == [6]


async def test_what_is_held_has_not_ended_and_the_next_waits(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    held, plain = await recipe(stack, [GATE, setpoint("a", 1)]), await recipe(stack, [setpoint("a", 2)])
    first, second = await queue.add(write(held), write(plain))
    running = await queue.wait_for(first, "Running")
    procedure_id = running.launch.procedure_id()
    await until_conducted(stack, procedure_id)
    await stack.do(command("hold_procedure", {"reason": "look"}), procedure_id)
    await stack.wait_for_status(procedure_id, ProcedureStatus.HELD)
    assert [(await queue.item(one)).status for one in (first, second)] == ["Running", "Waiting"]
    await stack.plant.write("gate", 1)
    await stack.do(command("conduct_from_procedure", {"wait": 0}), procedure_id)
    assert [item.status for item in (await queue.wait_until_idle()).ended] == ["Completed", "Completed"]
    assert written_values(stack) == [1, 2]


async def until_conducted(stack: ConductStack, procedure_id: UUID) -> None:
    async def is_open() -> bool:
        found = await load_state(stack, Procedure, procedure_id)
        return found is not None and found.live_conduct_id is not None

    await until(is_open)


@pytest.mark.parametrize(("on_failure", "status"), [("hold", "Held"), ("continue", "Active")])
async def test_a_withdrawn_grant_refuses_an_item(stack: ConductStack, on_failure: str, status: str) -> None:
    queue = await open_queue(stack, on_failure=on_failure)
    await queue.give("hold_queue", reason="not yet")
    author, policy_id = await register_member(stack, REGISTRY.command_names())
    id = await recipe(stack, [setpoint("a", 3)])
    (refused,) = await queue.add(write(id), caller=author)
    (other,) = await queue.add(write(id))
    revoked = RevokePolicyGrant(permitted_principal_id=author.principal_id, reason="left")
    await stack.runtime.service.execute(revoked, Caller.system(new_id()), target_id=policy_id)
    await queue.give("resume_queue", reason="go")
    item = await queue.wait_for(refused, "Refused")
    assert item.code == "UnauthorizedError"
    assert (await queue.wait_until_idle()).status == status
    assert (await queue.item(other)).status == ("Waiting" if status == "Held" else "Completed")
    assert written_values(stack) == ([] if status == "Held" else [3])


async def test_a_deprecated_plan_or_recipe_refuses_an_item(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack, on_failure="continue")
    await queue.give("hold_queue", reason="not yet")
    id, gone = await recipe(stack, [setpoint("a", 4)]), await recipe(stack, [setpoint("a", 7)])
    plan = (await stack.ask(command_query("get_plan"), run_stack.plan_id)).practice_id
    made = {"name": "Old", "practice_id": plan, "asset_ids": [await new_asset(stack)]}
    old_plan = UUID((await stack.do(command("define_plan", made))).body["plan_id"])
    first, second, third = await queue.add(survey(run_stack, id, plan_id=old_plan), write(gone), write(id))
    await stack.do(command("deprecate_plan", {}), old_plan)
    await stack.do(command("deprecate_recipe", {}), gone)
    await queue.give("resume_queue", reason="go")
    await queue.wait_until_idle()
    found = [await queue.item(one) for one in (first, second, third)]
    assert [(item.status, item.code) for item in found] == [
        ("Refused", "RunBoundPlanDeprecatedError"),
        ("Refused", "ProcedureBoundRecipeDeprecatedError"),
        ("Completed", None),
    ]
    assert await load_state(stack, Run, found[0].launch.run_id) is None
    assert written_values(stack) == [4]


def command_query(name: str) -> Any:
    return REGISTRY.operations[name].input()


async def new_asset(stack: ConductStack) -> UUID:
    asked = {"name": f"Camera {new_id()}", "tier": "Unit", "facility_code": "facility"}
    return UUID((await stack.do(command("register_asset", asked))).body["asset_id"])


@pytest.mark.parametrize(("on_failure", "status"), [("hold", "Held"), ("continue", "Active")])
async def test_a_failed_item_holds_the_queue_or_does_not(stack: ConductStack, on_failure: str, status: str) -> None:
    queue = await open_queue(stack, on_failure=on_failure)
    failing, fine = await recipe(stack, [check("gate", 1)]), await recipe(stack, [setpoint("a", 2)])
    first, second = await queue.add(write(failing), write(fine))
    item = await queue.wait_for(first, "Failed")
    assert item.code == "ProcedureAborted"
    assert item.detail
    held = await queue.wait_until_idle()
    assert held.status == status
    assert held.last_status_reason == (f"item 0: {item.detail}" if status == "Held" else None)
    assert (await queue.item(second)).status == ("Waiting" if status == "Held" else "Completed")


async def test_a_run_that_fails_fails_its_item(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    (item_id,) = await queue.add(survey(run_stack, await recipe(stack, [check("gate", 1)])))
    item = await queue.wait_for(item_id, "Failed")
    assert (item.code, (await queue.state()).status) == ("RunAborted", "Held")
    assert item.detail is not None
    assert item.detail.startswith("phase Phase 0 of 1")


async def test_what_somebody_ended_is_stopped_and_not_failed(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack, on_failure="continue")
    gated = await recipe(stack, [GATE])
    run, procedure = await queue.add(survey(run_stack, gated), write(gated))
    first = await queue.wait_for(run, "Running")
    await until(lambda: live_conduct(stack, Run, first.launch.run_id))
    await stack.do(command("stop_run", {"reason": "enough for tonight"}), first.launch.run_id)
    stopped = await queue.wait_for(run, "Stopped")
    assert (stopped.code, stopped.detail) == ("RunStopped", "enough for tonight")
    second = await queue.wait_for(procedure, "Running")
    await until(lambda: live_conduct(stack, Procedure, second.launch.procedure_id()))
    await stack.do(command("abort_procedure", {"reason": "the sample slipped"}), second.launch.procedure_id())
    assert (await queue.wait_for(procedure, "Stopped")).code == "ProcedureAborted"


async def live_conduct(stack: ConductStack, state: type[Any], id: UUID) -> Any:
    found = await load_state(stack, state, id)
    return found and found.live_conduct_id


async def test_a_queue_pauses_behind_an_item_and_goes_on_when_it_is_resumed(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    id = await recipe(stack, [setpoint("a", 2)])
    (first,) = await queue.add(write(id), pause_after=True)
    (second,) = await queue.add(write(id))
    held = await queue.wait_until(lambda queue: queue.status == "Held")
    assert (held.last_status_reason, (await queue.item(second)).status) == ("Paused behind item 0.", "Waiting")
    assert (await queue.item(first)).status == "Completed"
    await queue.give("resume_queue")
    await queue.wait_for(second, "Completed")


async def test_an_item_waits_for_its_time_and_nobody_overtakes(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    id = await recipe(stack, [setpoint("a", 2)])
    at = clock() + timedelta(seconds=3)
    (first,) = await queue.add(write(id), not_before=at)
    (second,) = await queue.add(write(id))
    ended = await queue.wait_until_idle()
    assert [item.item_id for item in ended.ended] == [first, second]
    assert ended.ended[0].started_at is not None
    assert ended.ended[0].started_at >= at
    (third,) = await queue.add(write(id), not_before=clock() + timedelta(hours=1))
    await queue.give("edit_queue_item", item_id=third, not_before=None)
    await queue.wait_for(third, "Completed")


async def test_an_edited_target_is_conducted_as_who_edited_it(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    await queue.give("hold_queue", reason="not yet")
    author, policy_id = await register_member(stack, REGISTRY.command_names())
    id = await recipe(stack, [setpoint("a", 3)])
    (item_id,) = await queue.add(write(id), caller=author)
    revoked = RevokePolicyGrant(permitted_principal_id=author.principal_id, reason="left")
    await stack.runtime.service.execute(revoked, Caller.system(new_id()), target_id=policy_id)
    await queue.give("edit_queue_item", item_id=item_id, target=write(await recipe(stack, [setpoint("a", 9)])))
    await queue.give("resume_queue")
    await queue.wait_for(item_id, "Completed")
    assert written_values(stack) == [9]


async def test_what_is_under_way_goes_on_when_the_queue_is_retired(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    first, second = await queue.add(write(await recipe(stack, [GATE])), write(await recipe(stack, [setpoint("a", 1)])))
    await queue.wait_for(first, "Running")
    await queue.give("retire_queue", reason="over")
    await stack.plant.write("gate", 1)
    await queue.wait_for(first, "Completed")
    assert ((await queue.item(second)).status, written_values(stack)) == ("Removed", [])
    await queue.workflow.result()


@pytest.mark.parametrize("rounds", [4, pytest.param(30, marks=pytest.mark.soak)])
async def test_what_races_with_the_start_of_an_item_wins_or_is_refused(stack: ConductStack, rounds: int) -> None:
    queue = await open_queue(stack, on_failure="continue")
    one, other = await recipe(stack, [setpoint("a", 1)]), await recipe(stack, [setpoint("a", 2)])
    for number in range(rounds):
        verb = ("remove_queue_item", "edit_queue_item", "move_queue_item")[number % 3]
        stack.control.writes.clear()
        await queue.give("hold_queue", reason="set up")
        (item_id,) = await queue.add(write(one))
        fields = {"remove_queue_item": {"reason": "no"}, "edit_queue_item": {"target": write(other)}}.get(verb, {})
        behind = [] if verb != "move_queue_item" else await queue.add(write(other))
        _, outcome = await asyncio.gather(
            queue.give("resume_queue"), give_after(3 * number, queue, verb, item_id=item_id, **fields)
        )
        await queue.wait_until_idle()
        item, wrote = await queue.item(item_id), written_values(stack)
        if outcome is None:
            expected = {"remove_queue_item": ("Removed", []), "edit_queue_item": ("Completed", [2])}
            assert (item.status, wrote) == expected.get(verb, ("Completed", [2, 1]))
        else:
            assert outcome.reason in ("running", "completed"), outcome
            assert (item.status, wrote) == ("Completed", [1, *([2] * len(behind))])
        assert item.attempt == 1


async def give_after(looks: int, queue: QueueCase, verb: str, **fields: Any) -> Refusal | None:
    """Give a command after so many looks at the queue, which take longer where everything does; return its refusal."""
    for _ in range(looks):
        await queue.state()
    try:
        await queue.give(verb, **fields)
    except Refusal as refusal:
        return refusal
    return None


async def test_a_queue_that_the_engine_has_lost_is_started_from_the_record(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    first, second = await queue.add(write(await recipe(stack, [GATE])), write(await recipe(stack, [setpoint("a", 1)])))
    await queue.wait_for(first, "Running")
    await until_conducted(stack, (await queue.item(first)).launch.procedure_id())
    await queue.workflow.terminate()
    work = stack.runtime.service.works["queue"]
    assert queue.id in await work.unfinished_ids()
    await start_unfinished(stack.runtime, work)
    await stack.plant.write("gate", 1)
    await queue.wait_for(second, "Completed")
    assert written_values(stack) == [1]
    await queue.workflow.result()
    assert queue.id not in await work.unfinished_ids()


async def test_nothing_is_done_for_a_workflow_that_the_record_does_not_know(stack: ConductStack) -> None:
    unknown = QueueOrder(queue_id=new_id())
    await stack.client.execute_workflow("queue", unknown, id=unknown.workflow_id, task_queue=TASK_QUEUE)


class ProcessDied(Exception):
    """The process ended here."""


class MortalCommands(Commands):
    """Commands whose giver dies right after one of them was carried out."""

    def __init__(self, commands: Commands, lives: int) -> None:
        super().__init__(**{field.name: getattr(commands, field.name) for field in fields(commands)})
        self._lives = lives

    async def execute(self, *given: Any, **named: Any) -> CommandResult:
        executed = await super().execute(*given, **named)
        self._lives -= 1
        if not self._lives:
            raise ProcessDied
        return executed


def runner_dying_after(stack: ConductStack, commands: int) -> QueueRunner:
    """Turns in a process that dies after so many commands."""
    mortal = MortalCommands(stack.runtime.commands, commands)
    launches = replace(stack.runtime.launches, commands=mortal)
    return replace(stack.runtime.works.of(QueueRunner), commands=mortal, launches=launches)


@pytest.mark.parametrize(("kind", "deaths"), [("recipe", range(1, 4)), ("plan", range(1, 4))])
async def test_a_turn_that_dies_at_any_command_or_is_taken_many_times_at_once_opens_one_conduct(
    run_stack: RunStack, kind: str, deaths: Sequence[int]
) -> None:
    stack = run_stack.stack
    id = await recipe(stack, [setpoint("a", 8)])
    target = write(id) if kind == "recipe" else survey(run_stack, id)
    for lives in deaths:
        stack.control.writes.clear()
        queue = await open_queue(stack)
        order = QueueOrder(queue_id=queue.id)
        (item_id,) = await queue.add(target)
        turns = [runner_dying_after(stack, lives), *([stack.runtime.works.of(QueueRunner)] * 3)]
        outcomes = await asyncio.gather(*(one.start_next(order) for one in turns), return_exceptions=True)
        assert [one for one in outcomes if isinstance(one, BaseException) and not isinstance(one, ProcessDied)] == []
        item = await queue.wait_for(item_id, "Completed")
        assert (item.attempt, written_values(stack)) == (1, [8])
        await queue.workflow.result()


async def test_a_refused_attempt_leaves_nothing_open(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    author, _ = await register_member(stack, REGISTRY.command_names() - {"ConductRun"})
    (item_id,) = await queue.add(survey(run_stack, await recipe(stack, [setpoint("a", 8)])), caller=author)
    item = await queue.wait_for(item_id, "Refused")
    assert item.code == "UnauthorizedError"
    assert await load_state(stack, Run, item.launch.run_id) is None
    assert await load_state(stack, Procedure, item.launch.procedure_id()) is None
    launch = await load_state(stack, Launch, item.launch.id)
    assert (launch.status, launch.code, launch.item_id) == ("Refused", item.code, item_id)
    assert written_values(stack) == []


async def test_an_item_that_an_earlier_release_has_half_begun_comes_to_one_run(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    await queue.give("hold_queue", reason="set up")
    (item_id,) = await queue.add(survey(run_stack, await recipe(stack, [setpoint("a", 8)])))
    item = await queue.item(item_id)
    await half_begin(stack, item.launch, item.aim, 2)
    await queue.give("resume_queue")
    assert (await queue.wait_for(item_id, "Completed")).attempt == 1
    assert written_values(stack) == [8]


async def test_an_asset_that_is_taken_between_judgement_and_opening_blocks_and_is_tried_again(stack: ConductStack) -> None:
    queue = await open_queue(stack)
    await queue.give("hold_queue", reason="set up")
    asset_id = (await queue.state()).asset_id
    rival = await stack.register_from_recipe([GATE], target_asset_ids=[asset_id])
    (item_id,) = await queue.add(write(await recipe(stack, [setpoint("a", 8)]), target_asset_ids=[asset_id]))
    await queue.give("resume_queue")
    start = StartQueueItem(item_id=item_id, attempt=1)
    await asyncio.gather(
        stack.do(command("conduct_procedure", {"wait": 0}), rival),
        stack.runtime.commands.execute(start, Caller.system(new_id()), target_id=queue.id),
        return_exceptions=True,
    )
    await stack.plant.write("gate", 1)
    item = await queue.wait_for(item_id, "Completed")
    first = await load_state(stack, Procedure, ItemLaunch(item_id, 1).procedure_id())
    assert (item.attempt, first.status) == (1, "Completed"), "what was refused had made nothing"
    assert written_values(stack) == [8]
