"""An adviser over REST that waits: each advice is answered with the next question and its evidence, the last by the end."""

from typing import Any

import pytest

from baton.application.plant import SimulatedMotor
from baton.infrastructure.control.devices import Motor
from tests.support.api.example_reads import cause
from tests.support.waiting import until
from tests.support.workflows.conduct_service import ConductService
from tests.support.workflows.step_json import capture, setpoint, steered_value

SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -2, "upper": 2}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller", "advice_timeout": 60},
}
STEPS = [setpoint("a", steered_value("focus")), capture("a", "sharpness")]


async def test_an_adviser_is_answered_with_the_next_evidence_and_then_with_the_end(conduct_service: ConductService) -> None:
    api = conduct_service.operator
    procedure_id = await conduct_service.stack.register_from_recipe(STEPS)
    conduct_id = await conduct_service.conduct(procedure_id, "steering/conduct", **SEARCH, first_point={"focus": 0.5})

    async def pending_question() -> dict[str, Any] | None:
        shown: dict[str, Any] = (await api.get(f"/procedures/{procedure_id}/steering")).json()
        return shown if shown["waiting"] else None

    question = await until(pending_question)
    points = []
    for focus in (1.0, 1.5):
        advice = {"verdict": "Measure", "next_point": {"focus": focus}}
        named = {name: question[name] for name in ("iteration_index", "question")}
        answer = await api.post(f"/procedures/{procedure_id}/steering/advise", {**named, "advice": advice, "wait": 20})
        assert answer.status_code == 200, answer.text
        assert int(answer.headers["X-Baton-Position"]) > 0
        followed = answer.json()
        assert (followed["waiting"], followed["ended"], followed["result"]) == (True, False, None)
        assert followed["question"] == question["question"] + 1
        points = [one["point"]["focus"] for one in followed["evidence"]["observations"]]
        question = followed
    assert points == [0.5, 1.0, 1.5], "it began where it was asked to"

    named = {name: question[name] for name in ("iteration_index", "question")}
    stop = {**named, "advice": {"verdict": "Stop", "rationale": "It is sharp."}, "wait": 20}
    answer = await api.post(f"/procedures/{procedure_id}/steering/advise", stop)
    assert answer.status_code == 200, answer.text
    end = answer.json()
    assert (end["waiting"], end["ended"], end["conduct_id"]) == (False, True, str(conduct_id))
    assert (end["result"]["succeeded"], end["result"]["best"]["point"]) == (True, {"focus": 1.5})
    assert end["result"]["termination_reason"] == "It is sharp."
    late = await api.post(f"/procedures/{procedure_id}/steering/advise", stop)
    assert cause(late) == (409, "ProcedureCannotAdviseError", "completed")


@pytest.mark.parametrize("surface", ["conduct", "launch"])
async def test_a_caller_who_waits_is_answered_with_the_question_that_the_conduct_asks(
    conduct_service: ConductService, surface: str
) -> None:
    api, stack = conduct_service.operator, conduct_service.stack
    procedure_id = await stack.register_from_recipe(STEPS)
    path, asked = f"/procedures/{procedure_id}/steering/conduct", {**SEARCH, "wait": 30}
    if surface == "launch":
        recipe_id = (await stack.procedure(procedure_id)).recipe_id
        conduct = {"command": "conduct_until_advised", **SEARCH}
        path, asked = "/launches", {"recipe_id": str(recipe_id), "conduct": conduct, "wait": 30}
    answer = await api.post(path, asked)
    assert answer.status_code == 202, answer.text
    question = answer.json()["waiting_question"]
    steering = f"/procedures/{question['procedure_id']}/steering"
    shown = (await api.get(steering)).json()
    assert (question["evidence"]["observations"], question["waiting"]) == (shown["evidence"]["observations"], True)
    assert {name: question[name] for name in ("question", "deadline")} == {
        name: shown[name] for name in ("question", "deadline")
    }
    named = {name: question[name] for name in ("iteration_index", "question")}
    stop = await api.post(f"{steering}/advise", {**named, "advice": {"verdict": "Stop"}, "wait": 20})
    assert stop.json()["ended"] is True, stop.text


async def test_an_adviser_that_does_not_wait_long_enough_is_told_so(conduct_service: ConductService) -> None:
    """The step that measures lasts until the test lets it end."""
    api = conduct_service.operator
    procedure_id = await conduct_service.stack.register_from_recipe(
        [*STEPS, {"kind": "action", "name": "pause", "params": {}}]
    )
    conduct_service.pauses.end()
    conduct_id = await conduct_service.conduct(procedure_id, "steering/conduct", **SEARCH)

    async def pending_question() -> dict[str, Any] | None:
        shown: dict[str, Any] = (await api.get(f"/procedures/{procedure_id}/steering")).json()
        return shown if shown["waiting"] else None

    question = await until(pending_question)
    advice = {"iteration_index": question["iteration_index"], "advice": {"verdict": "Measure", "next_point": {"focus": 1.0}}}
    answer = await api.post(f"/procedures/{procedure_id}/steering/advise", {**advice, "wait": 0.1})
    ids = {"procedure_id": str(procedure_id), "conduct_id": str(conduct_id), "work_id": str(conduct_id)}
    assert (answer.status_code, answer.json()) == (202, ids)
    conduct_service.pauses.end()
    await until(pending_question)
    stop = {"iteration_index": 2, "advice": {"verdict": "Stop"}}
    answer = await api.post(f"/procedures/{procedure_id}/steering/advise", stop)
    assert (answer.status_code, answer.content) == (204, b"")
    await conduct_service.wait_until_over(conduct_id)


async def test_a_space_beyond_the_limits_of_the_control_system_is_refused_before_anything_moves(
    conduct_service: ConductService,
) -> None:
    conduct_service.stack.plant.add(Motor(SimulatedMotor(address="stage", position=0.0, lower=-1, upper=1)))
    steps = [setpoint("stage", steered_value("focus")), capture("stage", "sharpness")]
    procedure_id = await conduct_service.stack.register_from_recipe(steps)
    path = f"/procedures/{procedure_id}/steering/conduct"
    refused = await conduct_service.operator.post(path, {**SEARCH, "wait": 0})
    assert cause(refused) == (400, "InvalidSearchSpaceError", "outside_limits")
    assert refused.json()["facts"].items() >= {"axis": "focus", "low": -1.0, "whose": "control_system"}.items()
    narrowed = {"axes": [{"name": "focus", "lower": -1, "upper": 1}]}
    assert (await conduct_service.operator.post(path, {**SEARCH, "space": narrowed, "wait": 0})).status_code == 202
