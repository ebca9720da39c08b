"""A run from its preflight to its end as an agent sees it whose list shows the tools of an operator."""

from typing import Any

from baton.infrastructure.wall_clock import new_id
from tests.support.api.callers import AGENT, register_agent
from tests.support.api.mcp_clients import agent, refusal, tool_result
from tests.support.api.rest_beamline import beamline
from tests.support.service import running_api

FIRST = {
    "preflight_run",
    "launch",
    "hold_run",
    "resume_run",
    "adjust_run",
    "stop_run",
    "abort_run",
    "list_runs",
    "get_run",
    "append_run_logbook_entries",
}


async def test_a_run_from_its_preflight_to_its_end(database_url: str) -> None:
    await register_agent(database_url, AGENT)
    async with running_api(database_url, mcp_toolset="operator") as api:
        line = await beamline(api)
        asked: dict[str, Any] = {"name": "Load step 1", "plan_id": line.plan_id}
        async with agent(api.acting_as(AGENT)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} >= FIRST
            assert (await tool_result(client, "preflight_run", **asked))["passed"]
            run_id = (await tool_result(client, "start_run", **asked, idempotency_key="k1"))["run_id"]
            assert (await tool_result(client, "start_run", **asked, idempotency_key="k1"))["run_id"] == run_id
            await tool_result(client, "hold_run", run_id=run_id, reason="beam lost")
            await api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
            dark = await refusal(client, "resume_run", run_id=run_id)
            assert (dark["code"], dark["facts"]["kind"]) == ("RunSupplyCoverageMismatchError", "photon_beam")
            await api.execute(f"/supplies/{line.supply_id}/mark-recovering", {"reason": "injecting"})
            await api.execute(f"/supplies/{line.supply_id}/degrade", {"reason": "half the current"})
            await tool_result(client, "resume_run", run_id=run_id)
            await tool_result(client, "adjust_run", run_id=run_id, parameters_patch={"exposure": 0.2}, reason="less flux")
            note = {"event_id": str(new_id()), "text": "Half the flux after the dump."}
            await tool_result(client, "append_run_logbook_entries", run_id=run_id, entries=[note])
            assert (await tool_result(client, "list_run_channels", run_id=run_id))["items"] == []
            ended = await client.call_tool("complete_run", {"run_id": run_id})
            position = (ended.meta or {})["baton/position"]
            [listed] = (await tool_result(client, "list_runs", plan_id=line.plan_id, min_position=position))["items"]
            assert (listed["run_id"], listed["status"], listed["adjustment_count"]) == (run_id, "Completed", 1)
        shown = (await api.get(f"/runs/{run_id}/history")).json()["items"]
        assert {item["principal_id"] for item in shown} == {str(AGENT)}
