"""What a person may decide about a step of a conduct, over REST and MCP; a worker dies in the middle of an action."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

import baton.cli.worker
from tests.support.api.mcp_clients import agent, refusal, tool_result
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import check, setpoint

STEPS = [setpoint("a", 1), PAUSE, setpoint("a", 2)]
NEVER = check("c", 99, timeout=600)


@pytest.fixture
def _cut_off_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker that is told to stop cut off what it does."""
    monkeypatch.setattr(baton.cli.worker, "SHUTDOWN_GRACE", timedelta(seconds=0.1))


async def lose_action(service: ConductService, **fields: Any) -> tuple[UUID, UUID]:
    """Conduct these steps until the worker is lost in the middle of the action; return the procedure and the conduct."""
    procedure_id, conduct_id = await service.start_conduct(*STEPS, **fields)
    await service.pauses.wait_until_reached()
    await service.stack.stop_worker()
    await service.stack.start_worker()
    await service.result(conduct_id)
    return procedure_id, conduct_id


async def procedure_of(service: ConductService, procedure_id: UUID) -> dict[str, Any]:
    shown: dict[str, Any] = (await service.operator.get(f"/procedures/{procedure_id}")).json()
    return shown


@pytest.mark.usefixtures("_cut_off_at_once")
@pytest.mark.parametrize(("outcome", "repeats"), [("done", 0), ("not_done", 1)])
async def test_a_lost_action_is_held_for_a_person_and_repeated_only_where_it_was_not_done(
    conduct_service: ConductService, outcome: str, repeats: int
) -> None:
    service = conduct_service
    procedure_id, conduct_id = await lose_action(service, on_unknown_outcome="hold")
    held = await procedure_of(service, procedure_id)
    unknown = {"conduct_id": str(conduct_id), "iteration_index": 0, "step_index": 1}
    assert (held["status"], held["hold_cause"], held["unknown_step"]) == ("Held", "OutcomeUnknown", unknown)
    place, again = f"/procedures/{procedure_id}/conduct/resolve", f"/procedures/{procedure_id}/reconduct"
    refused = await service.operator.post(again, {"wait": 0})
    assert (refused.status_code, refused.json()["reason"]) == (409, "outcome_unknown")
    verdict = {**unknown, "outcome": outcome, "reason": "looked at the detector"}
    assert (await service.operator.post(place, verdict)).status_code == 204
    second = await service.operator.post(place, verdict)
    assert (second.json()["code"], second.json()["reason"]) == ("ProcedureCannotResolveStepError", "already_resolved")
    later = await service.conduct(procedure_id, "reconduct")
    for _ in range(repeats):
        await service.pauses.wait_until_reached()
        service.pauses.end()
    result = await service.result(later)
    assert (result["succeeded"], result["completed_count"]) == (True, 1 + repeats)
    assert result["resolved_steps"] == [{**unknown, "outcome": outcome}]
    assert [value for address, value in service.stack.control.writes if address == "a"][-2:] == [1, 2]
    rows = [row for row in await service.stack.ledger(procedure_id) if row["mark"] == "verdict"]
    assert [(row["kind"], row["result"]) for row in rows] == [("action", outcome)]


@pytest.mark.usefixtures("_cut_off_at_once")
async def test_without_that_choice_a_lost_action_aborts(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await lose_action(conduct_service)
    aborted = await procedure_of(conduct_service, procedure_id)
    assert (aborted["status"], aborted["unknown_step"]) == ("Aborted", None)
    verdict = {"conduct_id": str(conduct_id), "step_index": 1, "outcome": "done", "reason": "so"}
    late = await conduct_service.operator.post(f"/procedures/{procedure_id}/conduct/resolve", verdict)
    assert (late.status_code, late.json()["reason"]) == (409, "aborted")


async def wait_in_check(service: ConductService, step_index: int) -> tuple[UUID, UUID]:
    """Open a conduct that waits in a check at this step for something that never comes."""
    steps = [setpoint("a", 1)] * step_index
    procedure_id, conduct_id = await service.start_conduct(*steps, NEVER, setpoint("a", 7))

    async def stands() -> bool:
        view = (await service.operator.get(f"/procedures/{procedure_id}/conduct")).json()
        return bool(view["phase"] == "Walking" and view["step_index"] == step_index)

    await until(stands)
    return procedure_id, conduct_id


async def test_the_wait_of_a_check_is_skipped_and_told(conduct_service: ConductService) -> None:
    service = conduct_service
    procedure_id, conduct_id = await wait_in_check(service, 1)
    place = f"/procedures/{procedure_id}/conduct/skip"
    skip = {"conduct_id": str(conduct_id), "step_index": 1, "reason": "warm enough"}
    wrong = await service.operator.post(place, {**skip, "step_index": 0})
    assert (wrong.status_code, wrong.json()["reason"]) == (409, "not_waiting")
    assert (await service.operator.post(place, skip)).status_code == 204
    result = await service.result(conduct_id)
    skipped = {"conduct_id": str(conduct_id), "iteration_index": 0, "step_index": 1}
    assert (result["succeeded"], result["completed_count"], result["skipped_waits"]) == (True, 3, [skipped])
    (row,) = [row for row in await service.stack.ledger(procedure_id) if row["kind"] == "check"]
    assert (row["result"], row["skipped"]) == ("ok", True)
    stream = f"/procedures/{procedure_id}/conduct/stream"
    frames = (await service.operator.request("GET", stream, headers={"Last-Event-ID": f"{conduct_id}:0"})).text
    assert [state in frames for state in ('"state":"ok"', '"state":"skipped"', '"state":"failed"')] == [True, True, False]
    late = await service.operator.post(place, skip)
    assert (late.status_code, late.json()["reason"]) == (409, "completed")


async def test_agents_decide_with_tools_of_their_own(conduct_service: ConductService) -> None:
    service = conduct_service
    procedure_id, conduct_id = await wait_in_check(service, 0)
    place = {"procedure_id": str(procedure_id), "conduct_id": str(conduct_id), "step_index": 0}
    async with agent(service.operator) as client:
        unheld = await refusal(client, "resolve_procedure_step", **place, outcome="done", reason="so")
        assert (unheld["code"], unheld["reason"]) == ("ProcedureCannotResolveStepError", "running")
        early = await refusal(client, "skip_procedure_wait", **{**place, "step_index": 1}, reason="so")
        assert (early["code"], early["reason"]) == ("ProcedureCannotSkipWaitError", "not_waiting")
        await tool_result(client, "skip_procedure_wait", **place, reason="warm enough")
    assert (await service.result(conduct_id))["succeeded"]


async def test_what_was_chosen_is_shown_before_and_during_a_conduct(conduct_service: ConductService) -> None:
    service = conduct_service
    task = {"name": "Centre", "kind": "alignment", "watch": ["supply"]}
    procedure_id = UUID(await service.operator.create("/procedures", task))
    before = (await service.operator.get(f"/procedures/{procedure_id}/preflight")).json()
    assert before["options"] == {"watch": ["supply"], "on_unknown_outcome": "abort"}
    conduct_id = await service.conduct(procedure_id, "conduct-or-hold", steps=[setpoint("a", 1)])
    await service.result(conduct_id)
    shown = (await service.operator.get(f"/procedures/{procedure_id}/conduct")).json()
    assert (shown["options"], shown["hold_lapsed"]) == ({"watch": ["supply"], "on_unknown_outcome": "hold"}, False)
