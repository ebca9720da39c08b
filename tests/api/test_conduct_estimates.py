"""How long a conduct will take, as it is seen from outside: before it starts, while it goes on, held and taken up again."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from tests.api.test_mcp_progress import ProgressLog
from tests.support.api.conduct_streams import open_conduct_stream
from tests.support.api.mcp_clients import agent
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, check, criterion, setpoint

STEPS = [setpoint("a", 3), PAUSE, check("a", 3)]
CLOSING = [setpoint("c", 0)]


async def read(conduct_service: ConductService, procedure_id: UUID, what: str) -> dict[str, Any]:
    answer = await conduct_service.operator.get(f"/procedures/{procedure_id}/{what}")
    assert answer.status_code == 200, answer.text
    estimate: dict[str, Any] = answer.json()["estimate"]
    return estimate


async def conduct_whole(conduct_service: ConductService) -> UUID:
    """Conduct the steps of a recipe from beginning to end."""
    procedure_id = await conduct_service.stack.register_from_recipe(STEPS, CLOSING)
    conduct_id = await conduct_service.conduct(procedure_id)
    await conduct_service.pauses.wait_until_reached()
    conduct_service.pauses.end()
    assert (await conduct_service.result(conduct_id))["succeeded"]
    return procedure_id


async def test_every_outcome_says_how_long_its_step_took(conduct_service: ConductService) -> None:
    procedure_id = await conduct_whole(conduct_service)
    rows = [row for row in await conduct_service.stack.ledger(procedure_id) if row["mark"] == "outcome"]
    assert [row["target"] for row in rows] == ["a", "pause", "a", "c"]
    assert all(row["seconds"] > 0 for row in rows)
    begun = [row for row in await conduct_service.stack.ledger(procedure_id) if row["mark"] == "in_flight"]
    assert not any("seconds" in row for row in begun)


async def test_a_second_conduct_is_estimated_by_the_first_and_a_hold_stops_the_clock(
    conduct_service: ConductService,
) -> None:
    ended_id = await conduct_whole(conduct_service)
    assert await read(conduct_service, ended_id, "conduct") is None
    procedure_id = await conduct_service.stack.register_from_recipe(STEPS, CLOSING)
    whole = await read(conduct_service, procedure_id, "preflight")
    assert (whole["basis"], whole["ends_at"], whole["to_cap"]) == ("history", None, False)
    assert whole["remaining_seconds"] > 0
    conduct_id = await conduct_service.conduct(procedure_id)
    await conduct_service.pauses.wait_until_reached()
    going_on = await read(conduct_service, procedure_id, "conduct")
    assert going_on["basis"] == "history"
    assert going_on["remaining_seconds"] <= whole["remaining_seconds"]
    assert going_on["ends_at"] is not None
    await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})
    assert (await read(conduct_service, procedure_id, "conduct"))["ends_at"] is None
    conduct_service.pauses.end()
    assert (await conduct_service.result(conduct_id))["held"]
    held = await read(conduct_service, procedure_id, "conduct")
    assert (held["basis"], held["ends_at"]) == ("history", None)
    assert 0 < held["remaining_seconds"] < whole["remaining_seconds"]
    assert await read(conduct_service, procedure_id, "preflight") == held, "what remains is what taking it up would take"


async def test_the_stream_begins_with_an_estimate(conduct_service: ConductService) -> None:
    await conduct_whole(conduct_service)
    procedure_id, conduct_id = await conduct_service.start_conduct(*STEPS)
    await conduct_service.pauses.wait_until_reached()
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        assert (await reader.next_frame()).data["estimate"]["basis"] == "history"
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)


async def test_a_reader_gets_a_fresh_estimate_once_in_a_while(conduct_service: ConductService) -> None:
    await conduct_whole(conduct_service)
    procedure_id, conduct_id = await conduct_service.start_conduct(*STEPS)
    await conduct_service.pauses.wait_until_reached()
    runtime, caller = conduct_service.stack.runtime, Caller.system(conduct_id)
    for interval, expected in ((timedelta(0), ["snapshot"]), (timedelta(hours=1), [])):
        feed = replace(runtime.conduct_feed, estimate_interval=interval)
        watch = await feed.latest(procedure_id)
        assert watch is not None
        assert [frame.kind for frame in await feed.poll(watch, caller)] == ["snapshot", "step"]
        assert [frame.kind for frame in await feed.poll(watch, caller)] == expected
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)


async def test_a_loop_is_estimated_to_its_cap_and_says_so(conduct_service: ConductService) -> None:
    await conduct_whole(conduct_service)
    loop = {"convergence_capture_name": "offset", "criterion": criterion(9)}
    steps = [capture("b", "offset"), PAUSE]
    capped, conduct_id = await conduct_service.start_conduct(
        *steps, how="converge", max_consecutive_unconverged_iterations=3, **loop
    )
    await conduct_service.pauses.wait_until_reached()
    found = await read(conduct_service, capped, "conduct")
    assert (found["basis"], found["to_cap"]) == ("history", True)
    assert found["remaining_seconds"] > 0
    endless, endless_id = await conduct_service.start_conduct(*steps, how="converge", **loop)
    await conduct_service.pauses.wait_until_reached()
    assert (await read(conduct_service, endless, "conduct")) == {
        "remaining_seconds": None,
        "ends_at": None,
        "basis": "none",
        "to_cap": False,
    }
    for procedure_id, id in ((capped, conduct_id), (endless, endless_id)):
        await conduct_service.operator.post(f"/procedures/{procedure_id}/abort", {"reason": "enough"})
        assert await conduct_service.result(id)
        assert await read(conduct_service, procedure_id, "conduct") is None


async def test_an_agent_is_told_how_long_the_rest_takes(conduct_service: ConductService) -> None:
    await conduct_whole(conduct_service)
    progress_log, procedure_id = ProgressLog(), await conduct_service.stack.register_procedure()

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        await progress_log(progress, total, message)
        if progress_log.just_came_to("step 2 of 3"):
            conduct_service.pauses.end()

    async with agent(conduct_service.operator) as client:
        arguments = {"procedure_id": str(procedure_id), "steps": STEPS, "wait": 30}
        answer = await client.call_tool("conduct_procedure", arguments, progress_callback=listen)
    assert not answer.is_error
    await conduct_service.pauses.wait_until_reached()
    assert any(message is not None and message.endswith(" s left") for message in progress_log.messages), progress_log
