"""Conducting a run over REST: accepted, attached to, refused and read, while no engine takes it up."""

from typing import Any
from uuid import uuid4

import pytest

from tests.support.api.example_reads import payloads, refusal
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api

STEP = {"kind": "setpoint", "address": "bl7:energy", "value": 25}


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


async def phase(line: Beamline, run: str) -> str:
    return await line.api.create("/procedures", {"name": "Flats", "kind": "flat_field", "parent_run_id": run})


async def test_a_conduct_is_accepted_attached_to_and_shown_before_anybody_works_on_it(line: Beamline) -> None:
    run = await line.start_run()
    first, second = await phase(line, run), await phase(line, run)
    held = {"command": "conduct_or_hold_procedure", "steps": [STEP]}
    asked = {"phases": [{"procedure_id": first}, {"procedure_id": second, "conduct": held}], "wait": 0}
    accepted = await line.api.post(f"/runs/{run}/conduct", asked)
    conduct = accepted.json()["conduct_id"]
    assert (accepted.status_code, accepted.json()) == (202, {"run_id": run, "conduct_id": conduct, "work_id": conduct})
    assert "Idempotency-Replayed" not in accepted.headers
    again = await line.api.post(f"/runs/{run}/conduct", asked)
    assert (again.status_code, again.json(), again.headers["Idempotency-Replayed"]) == (202, accepted.json(), "true")
    other = await line.api.post(f"/runs/{run}/conduct", {"procedure_ids": [first], "wait": 0})
    assert refusal(other) == (409, "RunCannotConductError")
    assert (other.json()["reason"], other.json()["facts"]) == ("conduct_live", {"conduct_id": conduct})
    usual = {"command": "conduct_procedure", "steps": []}
    listed = [{"procedure_id": first, "conduct": usual}, {"procedure_id": second, "conduct": held}]
    shown = (await line.api.get(f"/runs/{run}/conduct")).json()
    assert shown.pop("started_at") is not None
    assert shown == {
        "conduct_id": conduct,
        "hold": None,
        "phases": [
            {**phase, "command": phase["conduct"]["command"], "status": "Defined", "conduct_id": None} for phase in listed
        ],
        "current_procedure_id": None,
        "plan_step": None,
        "waiting": None,
        "pending": None,
        "heartbeat_at": None,
        "estimate": {"remaining_seconds": None, "ends_at": None, "basis": "none", "to_cap": False},
        "result": None,
    }
    assert (await line.api.get(f"/runs/{run}")).json()["live_conduct_id"] == conduct
    *_, opened = await payloads(line.api, f"/runs/{run}")
    assert opened == ("RunConductStarted", {"run_id": run, "conduct_id": conduct, "phases": listed})


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"phases": [{"procedure_id": str(uuid4())}], "procedure_ids": [str(uuid4())]},
        {"phases": [{"procedure_id": str(uuid4()), "conduct": {"command": "conduct_until_converged"}}]},
        {"phases": [{"procedure_id": str(uuid4()), "conduct": {"wait": 0}}]},
        {"phases": [{"procedure_id": str(uuid4()), "conduct": {"command": "reconduct"}}]},
    ],
    ids=["nothing", "both", "missing", "wait", "command"],
)
async def test_what_is_no_request_to_conduct_is_refused_at_the_edge(api: Api, asked: dict[str, Any]) -> None:
    answer = await api.post(f"/runs/{uuid4()}/conduct", asked)
    assert refusal(answer) == (422, "RequestValidationError")


async def test_a_run_never_conducted_says_so(line: Beamline) -> None:
    run = await line.start_run()
    shown = await line.api.get(f"/runs/{run}/conduct")
    assert (shown.status_code, shown.json()["conduct_id"], shown.json()["phases"]) == (200, None, [])
    assert refusal(await line.api.get(f"/runs/{uuid4()}/conduct")) == (404, "RunNotFoundError")
