"""An agent that knows nothing of the service but tools, answers and refusals brings a run about on an empty one."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.contexts import REGISTRY
from tests.support.api import following_agent
from tests.support.api.following_agent import FollowingAgent
from tests.support.api.mcp_clients import agent
from tests.support.service import Api, running_api
from tests.support.workflows.conduct_stack import OPERATOR, open_conduct_stack

MOST_CALLS = 25
PLANT: dict[str, Any] = {
    "simulated_signals": {"bl7:shutter": 0},
    "simulated_devices": [{"kind": "motor", "address": "bl7:rotary", "velocity": 3600, "units": "deg"}],
}


async def test_an_agent_that_knows_nothing_conducts_a_run_and_reads_who_did_it(
    database_url: str, temporal: EmbeddedTemporal, eventually: Callable[..., Any]
) -> None:
    async with (
        open_conduct_stack(database_url, temporal.address, **PLANT),
        running_api(database_url, temporal_address=temporal.address, mcp_toolset="all") as api,
    ):
        operator = api.acting_as(OPERATOR)
        await eventually(lambda: has_templates(operator))
        async with agent(operator) as client:
            follower = FollowingAgent(client)
            await follower.look()
            conducted = await follower.carry_out("conduct_run")
            assert conducted["succeeded"], conducted
            assert len(follower.calls) <= MOST_CALLS, follower.calls
            assert follower.refused, "it was told nothing that it had to act on"
            events, _ = await follower.call("list_events", {"order": "desc", "limit": 50, "full": True})
            assert {event["principal_id"] for event in events["items"] if event["event_type"] == "RunStarted"} == {
                str(OPERATOR)
            }
            held, done = await follower.call("hold_everything", {"reason": "Smoke in hutch B."})
            assert done
            assert held["held"] == held["refused"] == []


async def has_templates(api: Api) -> bool:
    """Whether the forms that every service starts with are listed."""
    return bool((await api.get("/clearance-templates")).json()["items"])


def test_the_rules_of_the_agent_name_no_operation() -> None:
    source = re.findall(r"[a-z_]+", inspect.getsource(following_agent))
    assert REGISTRY.operations.keys().isdisjoint(source)
