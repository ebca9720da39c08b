"""Progress notifications: a call with a progress token gets the state of the conduct while it waits."""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.api.test_mcp_stdio import mcp_process
from tests.support.api.mcp_clients import FRAME, agent, send_frame
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, setpoint, steered_value

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -2, "upper": 2}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "grid_walk", "points_per_axis": 3},
}


class ProgressLog(list[tuple[float, float | None, str | None]]):
    """The progress notifications that an agent got."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((progress, total, message))

    @property
    def messages(self) -> list[str | None]:
        return [message for _, _, message in self]

    def tells(self, place: str) -> bool:
        """Whether a message begins with this place; what follows says how long the rest takes."""
        return any((message or "").startswith(place) for message in self.messages)

    def just_came_to(self, place: str) -> bool:
        """Whether the last message is the first of this place."""
        *before, last = [(message or "").startswith(place) for message in self.messages]
        return last and not any(before)

    def assert_grows(self) -> None:
        values = [progress for progress, _, _ in self]
        assert values == sorted(set(values)), values


async def paused_conduct(
    conduct_service: ConductService, client: Client, progress_log: ProgressLog, procedure_id: UUID
) -> Any:
    """Return the answer of a conduct that pauses until the agent got the progress of its second step."""

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        await progress_log(progress, total, message)
        if progress_log.just_came_to("step 2 of 3"):
            conduct_service.pauses.end()

    steps = [setpoint("a", 1), PAUSE, setpoint("a", 2)]
    arguments = {"procedure_id": str(procedure_id), "steps": steps, "wait": 30}
    answer = await client.call_tool("conduct_procedure", arguments, progress_callback=listen)
    await conduct_service.pauses.wait_until_reached()
    return answer


@ERAS
async def test_an_agent_is_told_where_its_conduct_stands(conduct_service: ConductService, era: str) -> None:
    progress_log, procedure_id = ProgressLog(), await conduct_service.stack.register_procedure()
    async with agent(conduct_service.operator, era) as client:
        answer = await paused_conduct(conduct_service, client, progress_log, procedure_id)
    assert not answer.is_error
    assert answer.structured_content["succeeded"]
    assert answer.meta["baton/status"] == 200
    assert progress_log.tells("step 2 of 3")
    assert {total for _, total, _ in progress_log} == {3}
    progress_log.assert_grows()


async def test_over_stdio_too(conduct_service: ConductService, temporal: EmbeddedTemporal, baton_program: Path) -> None:
    url = conduct_service.api.database_url
    environment = {"DATABASE_URL": url, "APP_ENV": "test", "TEMPORAL_ADDRESS": temporal.address}
    progress_log, procedure_id = ProgressLog(), await conduct_service.stack.register_procedure()
    async with Client(mcp_process(baton_program, environment)) as client:
        answer = await paused_conduct(conduct_service, client, progress_log, procedure_id)
    assert answer.structured_content["succeeded"]
    assert progress_log.tells("step 2 of 3")
    progress_log.assert_grows()


async def test_a_search_tells_what_it_measured_last(conduct_service: ConductService) -> None:
    steps = [setpoint("a", steered_value("focus")), capture("b", "sharpness"), PAUSE]
    procedure_id = await conduct_service.stack.register_from_recipe(steps)
    progress_log = ProgressLog()

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        await progress_log(progress, total, message)
        if message is not None and message.startswith(f"iteration {len(ended) + 1}, step 3 of 3"):
            ended.append(message)
            conduct_service.pauses.end()

    ended: list[str] = []
    async with agent(conduct_service.operator) as client:
        arguments = {"procedure_id": str(procedure_id), **SEARCH, "wait": 30}
        answer = await client.call_tool("conduct_until_advised", arguments, progress_callback=listen)
    assert answer.structured_content is not None
    assert answer.structured_content["iteration_count"] == 3
    assert ended == [f"iteration {index}, step 3 of 3, sharpness 1.5 in iteration {index}" for index in (1, 2, 3)]
    assert {total for _, total, _ in progress_log} == {None}
    progress_log.assert_grows()
    for _ in ended:
        await conduct_service.pauses.wait_until_reached()


async def test_progress_is_told_through_call_operation_too(conduct_service: ConductService) -> None:
    progress_log, procedure_id = ProgressLog(), await conduct_service.stack.register_procedure()

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        await progress_log(progress, total, message)
        if progress_log.just_came_to("step 1 of 1"):
            conduct_service.pauses.end()

    arguments = {"procedure_id": str(procedure_id), "steps": [PAUSE], "wait": 30}
    async with agent(conduct_service.operator) as client:
        call = {"name": "conduct_procedure", "arguments": arguments, "idempotency_key": str(procedure_id)}
        answer = await client.call_tool("call_operation", call, progress_callback=listen)
    await conduct_service.pauses.wait_until_reached()
    assert answer.structured_content is not None
    assert answer.structured_content["succeeded"]
    assert progress_log.tells("step 1 of 1")
    progress_log.assert_grows()


async def test_a_call_without_a_progress_token_is_answered_in_one_piece(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    arguments = {"procedure_id": str(procedure_id), "steps": [setpoint("a", 1)], "wait": 30}
    answer = await send_frame(conduct_service.operator, "tools/call", {"name": "conduct_procedure", "arguments": arguments})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["structuredContent"]["succeeded"]


async def test_a_frame_that_asks_for_progress_is_answered_by_a_stream_that_ends_with_the_answer(
    conduct_service: ConductService,
) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    call = {"name": "conduct_procedure", "arguments": {"procedure_id": str(procedure_id), "steps": [PAUSE]}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**call, "_meta": {"progressToken": "mine"}}}
    headers, lines = {**conduct_service.operator.headers, **FRAME}, []
    async with conduct_service.operator.client.stream("POST", "/mcp", json=frame, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if '"step 1 of 1' in line and not any('"step 1 of 1' in before for before in lines):
                conduct_service.pauses.end()
            lines.append(line)
    await conduct_service.pauses.wait_until_reached()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "X-Correlation-Id" in answer.headers
    frames = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [frame.get("method", "answer") for frame in frames] == ["notifications/progress"] * (len(frames) - 1) + ["answer"]
    assert len(frames) > 1, "there was no progress"
    assert all(frame["params"]["progressToken"] == "mine" for frame in frames[:-1])
    assert frames[-1]["result"]["structuredContent"]["succeeded"]


async def test_a_client_that_takes_no_streams_is_answered_all_the_same(conduct_service: ConductService) -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "get_my_access", "arguments": {}, "_meta": {"progressToken": 1}}
    headers = {**FRAME, "Accept": "application/json"}
    answer = await conduct_service.api.request("POST", "/mcp", json={**frame, "params": params}, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert not answer.json()["result"].get("isError")


@ERAS
async def test_a_conduct_goes_on_when_its_caller_goes_away(conduct_service: ConductService, era: str) -> None:
    procedure_id, progress_log = await conduct_service.stack.register_procedure(), ProgressLog()
    arguments = {"procedure_id": str(procedure_id), "steps": [PAUSE, setpoint("a", 7)], "wait": 60}
    async with agent(conduct_service.operator, era) as client:
        with pytest.raises(MCPError):
            await client.call_tool("conduct_procedure", arguments, progress_callback=progress_log, read_timeout_seconds=0.5)
    await conduct_service.pauses.wait_until_reached()
    conduct_service.pauses.end()
    conduct_id = (await conduct_service.stack.procedure(procedure_id)).last_conduct_id
    assert conduct_id is not None
    assert (await conduct_service.result(conduct_id))["succeeded"]


async def test_a_client_that_hangs_up_at_once_leaves_nothing_behind(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    call = {"name": "conduct_procedure", "arguments": {"procedure_id": str(procedure_id), "steps": [PAUSE], "wait": 60}}
    era = "io.modelcontextprotocol/protocolVersion"
    meta = {"progressToken": 1, era: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**call, "_meta": meta}})
    headers = {**FRAME, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": call["name"]}
    lines = [f"{name}: {value}" for name, value in {**headers, "Host": "localhost", "Content-Length": len(body)}.items()]
    host, port = conduct_service.api.base_url.removeprefix("http://").split(":")
    assert not open_requests()
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", body]).encode())
    await until(open_requests)
    writer.close()
    await until(lambda: not open_requests())
    await conduct_service.pauses.wait_until_reached()
    conduct_service.pauses.end()


def open_requests() -> list[str]:
    """The requests that this process's service is still answering."""
    return [task.get_name() for task in asyncio.all_tasks() if "run_asgi" in repr(task.get_coro())]
