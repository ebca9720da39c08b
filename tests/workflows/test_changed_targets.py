"""What is arranged is conducted as it was when it was arranged: who may write recipes and may conduct nothing has nothing
written as the owner of a queued item or of a schedule, until somebody confirms the new version."""

from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.queues import QueueRunner
from baton.domain.queue.messages import QueueOrder
from baton.domain.queue.queue import EditQueueItem
from baton.domain.recipe.plan import Plan, UpdatePlanDefaultParameters
from baton.domain.recipe.recipe import VersionRecipe
from baton.domain.registry import REGISTRY
from baton.domain.run.run import Run
from baton.domain.schedule.schedule import ScheduleFired, ScheduleFiringRefused, ScheduleFollowNotPermittedError
from baton.domain.shared.refusals import UnauthorizedError
from tests.support.domain.world import expect_refusal
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.queue_cases import QueueCase, open_queue
from tests.support.workflows.run_cases import RunStack
from tests.support.workflows.schedule_cases import define_schedule, load_state, recipe, register_member, wait_for_procedure
from tests.support.workflows.step_json import setpoint

WRITING = {one.command_name for one in REGISTRY if one.context == "recipe" and one.kind == "command"}


def write(recipe_id: UUID) -> dict[str, Any]:
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Write no. {count}"}


def survey(run_stack: RunStack, recipe_id: UUID) -> dict[str, Any]:
    phases = [{"recipe_id": recipe_id, "name": "Phase"}]
    return {"kind": "ConductPlan", "plan_id": run_stack.plan_id, "name": "Survey {count}", "phases": phases}


async def register_writer(stack: ConductStack) -> Caller:
    """Register somebody who may write recipes, and may conduct nothing and change no queue."""
    writer, _ = await register_member(stack, WRITING)
    return writer


async def version(stack: ConductStack, writer: Caller, recipe_id: UUID, value: float, tag: str = "evil") -> None:
    """Give a recipe other steps."""
    command = VersionRecipe(version_tag=tag, steps=(setpoint("a", value),))
    await stack.runtime.service.execute(command, writer, target_id=recipe_id)


async def confirming_digest(queue: QueueCase) -> str:
    """Return the digest that the queue shows beside what has changed."""
    (gate,) = [one for one in (await queue.view()).forecast[0].closed_gates if one.gate == "target_unchanged"]
    assert gate.reason == "target_changed"
    return str((gate.facts or {})["confirmed_digest"])


@pytest.mark.parametrize("kind", ["recipe", "plan"])
async def test_an_item_waits_whose_recipe_somebody_else_versioned_until_it_is_confirmed(
    run_stack: RunStack, kind: str
) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    owner, _ = await register_member(stack, REGISTRY.command_names())
    recipe_id = await recipe(stack, [setpoint("a", 1)])
    await queue.give("hold_queue", reason="not yet")
    (item,) = await queue.add(write(recipe_id) if kind == "recipe" else survey(run_stack, recipe_id), caller=owner)
    writer = await register_writer(stack)
    await version(stack, writer, recipe_id, 666)
    await queue.give("resume_queue")
    blocked = await queue.wait_for(item, "Blocked")
    assert blocked.code == "TargetChangedError"
    assert blocked.detail is not None
    assert "the recipe steps was untagged (" in blocked.detail
    assert "and is evil (" in blocked.detail
    assert stack.control.writes == []
    with expect_refusal(UnauthorizedError, "command_not_permitted"):
        await queue.give("edit_queue_item", writer, item_id=item, confirmed_digest=await confirming_digest(queue))
    await queue.give("edit_queue_item", owner, item_id=item, confirmed_digest=await confirming_digest(queue))
    done = await queue.wait_for(item, "Completed")
    assert done.added_by == owner.principal_id
    assert stack.control.writes == [("a", 666)]


async def test_a_confirmation_is_of_what_was_looked_at(stack: ConductStack) -> None:
    queue, writer = await open_queue(stack), await register_writer(stack)
    recipe_id = await recipe(stack, [setpoint("a", 1)])
    await queue.give("hold_queue", reason="not yet")
    (item,) = await queue.add(write(recipe_id))
    await version(stack, writer, recipe_id, 2)
    looked_at = await confirming_digest(queue)
    await version(stack, writer, recipe_id, 666, "again")
    with expect_refusal(EditQueueItem.Cannot, "changed_since"):
        await queue.give("edit_queue_item", item_id=item, confirmed_digest=looked_at)
    await queue.give("resume_queue")
    await queue.wait_for(item, "Blocked")
    assert stack.control.writes == []


async def test_a_target_that_is_given_again_is_the_present_version(stack: ConductStack) -> None:
    queue, writer = await open_queue(stack), await register_writer(stack)
    recipe_id = await recipe(stack, [setpoint("a", 1)])
    (first,) = await queue.add(write(recipe_id), not_before="2036-01-01T00:00:00Z")
    await version(stack, writer, recipe_id, 2)
    await queue.give("edit_queue_item", item_id=first, target=write(recipe_id), not_before=None)
    await queue.wait_for(first, "Completed")
    assert stack.control.writes == [("a", 2)]


async def test_changed_defaults_of_a_plan_are_another_content(run_stack: RunStack) -> None:
    stack, queue = run_stack.stack, await open_queue(run_stack.stack)
    await queue.give("hold_queue", reason="not yet")
    (item,) = await queue.add(survey(run_stack, await recipe(stack, [setpoint("a", 1)])))
    before = await load_plan_defaults(run_stack)
    await change_defaults(run_stack, {"energy": 999})
    await queue.give("resume_queue")
    blocked = await queue.wait_for(item, "Blocked")
    assert (blocked.code, "the plan " in (blocked.detail or "")) == ("TargetChangedError", True)
    assert await load_state(stack, Run, blocked.launch.run_id) is None, "not even a run was started"
    await change_defaults(run_stack, before)
    await queue.give("remove_queue_item", item_id=item, reason="seen")


async def test_a_version_between_judgement_and_opening_is_found_by_the_command(stack: ConductStack) -> None:
    queue, writer = await open_queue(stack), await register_writer(stack)
    recipe_id = await recipe(stack, [setpoint("a", 1)])
    await queue.give("hold_queue", reason="not yet")
    (item,) = await queue.add(write(recipe_id))
    runtime = stack.runtime

    class OvertakenRunner(QueueRunner):
        """Between its judgement and the opening somebody versions the recipe."""

        async def _open(self, queue: Any, item: Any) -> Any:
            if item.status == "Running" and not stack.control.writes:
                await version(stack, writer, recipe_id, 666, f"evil {item.attempt}")
            return await super()._open(queue, item)

    await stack.stop_worker()
    try:
        await queue.give("resume_queue")
        runner = OvertakenRunner(runtime.store, runtime.commands, runtime.launches, "facility")
        await runner.start_next(QueueOrder(queue_id=queue.id))
        blocked = await queue.item(item)
        assert (blocked.status, blocked.code) == ("Blocked", "TargetChangedError")
    finally:
        await stack.start_worker()
    assert stack.control.writes == []


async def test_a_schedule_is_held_whose_target_has_changed_until_it_is_confirmed(stack: ConductStack) -> None:
    writer, recipe_id = await register_writer(stack), await recipe(stack, [setpoint("a", 1)])
    table = await define_schedule(stack, write(recipe_id))
    await version(stack, writer, recipe_id, 666)
    await table.fire_now()
    (refused,) = await table.outcomes(1)
    assert isinstance(refused, ScheduleFiringRefused)
    assert refused.code == "TargetChangedError"
    view = await table.view()
    assert (view.status, view.last_status_reason) == ("Held", refused.detail)
    (change,) = view.changes
    assert (change.kind, change.name, change.was.version_tag, change.now.version_tag) == ("Recipe", "steps", None, "evil")
    assert stack.control.writes == []
    await table.give("resume_schedule")
    await table.wait_for_end(await table.trigger())
    assert (await table.state()).status == "Held", "resuming it confirms nothing"
    await table.give("resume_schedule", confirmed_digest=view.confirmed_digest)
    assert (await table.view()).changes == ()
    await table.trigger()
    fired = (await table.outcomes(3))[-1]
    assert isinstance(fired, ScheduleFired)
    await wait_for_procedure(stack, fired.procedure_id, "Completed")
    assert stack.control.writes == [("a", 666)]


async def test_a_schedule_follows_where_its_author_may_define_recipes_too(stack: ConductStack) -> None:
    recipe_id, writer = await recipe(stack, [setpoint("a", 1)]), await register_writer(stack)
    narrow, _ = await register_member(stack, REGISTRY.command_names() - {"VersionRecipe"})
    with expect_refusal(ScheduleFollowNotPermittedError, "recipes_not_permitted"):
        await define_schedule(stack, write(recipe_id), narrow, on_change="follow")
    table = await define_schedule(stack, write(recipe_id), on_change="follow")
    await version(stack, writer, recipe_id, 2)
    await table.fire_now()
    (fired,) = await table.outcomes(1)
    assert isinstance(fired, ScheduleFired)


async def load_plan_defaults(run_stack: RunStack) -> dict[str, Any]:
    return dict((await load_state(run_stack.stack, Plan, run_stack.plan_id)).default_parameters)


async def change_defaults(run_stack: RunStack, patch: dict[str, Any]) -> None:
    await run_stack.stack.do(UpdatePlanDefaultParameters(default_parameters_patch=patch), run_stack.plan_id)
