"""The actions of a worker, as it reports them to the processes that judge steps."""

import pytest

from baton.cli.worker import keep_catalogues_in_background
from baton.domain.recipe.step_actions import ActionNotOfferedError, ListActions, StepActions
from baton.infrastructure.plugins import installed_actions
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.step_json import action


async def test_what_no_worker_reports_is_refused_once_one_has_reported(stack: ConductStack) -> None:
    baking = [action("bake", heater="bl7:heater")]
    assert await stack.register_from_recipe(baking), "before, nobody knows"

    async def list_actions() -> StepActions:
        told: StepActions = await stack.ask(ListActions())
        return told

    async def is_reported() -> bool:
        return (await list_actions()).heard_at is not None

    async with keep_catalogues_in_background(stack.runtime, (), installed_actions()):
        await until(is_reported)
    assert {one.name: one.offered for one in (await list_actions()).items} == dict.fromkeys(installed_actions().names, True)
    with pytest.raises(ActionNotOfferedError, match="there are collect, continuous, discrete, settle, stream"):
        await stack.register_from_recipe(baking)
