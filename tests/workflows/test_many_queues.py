"""Five queues of a hundred items at once: all of them completed, each in its order, each once."""

from collections.abc import AsyncIterator

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.queue_cases import QueueCase, open_queue, reacting_queues
from tests.support.workflows.schedule_cases import recipe
from tests.support.workflows.step_json import setpoint

QUEUES, ITEMS = 5, 100
PLANT = {
    "control_routes": ({"prefix": "", "substrate": "in_memory"},),
    "simulated_signals": {f"motor {number}": 0 for number in range(QUEUES)},
}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
async def stack(database_url: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(database_url, temporal.address, **PLANT) as stack, reacting_queues(stack):
        yield stack


async def test_five_queues_of_a_hundred_items_are_completed_in_order(stack: ConductStack) -> None:
    queues: list[QueueCase] = []
    for number in range(QUEUES):
        queue = await open_queue(stack)
        id = await recipe(stack, [setpoint(f"motor {number}", 1)])
        target = {"kind": "ConductRecipe", "recipe_id": id, "name": "Move no. {count}"}
        await queue.add(*([target] * ITEMS))
        queues.append(queue)
    for number, queue in enumerate(queues):
        ended = (await queue.wait_until_idle(800)).ended
        assert [(item.number, item.status, item.attempt) for item in ended] == [
            (place, "Completed", 1) for place in range(1, ITEMS + 1)
        ]
        starts, ends = [item.started_at for item in ended], [item.ended_at for item in ended]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False) if end and start)
        moved = [value for address, value in stack.control.writes if address == f"motor {number}"]
        assert len(moved) == ITEMS
