"""Runs that happen in a RunEngine are recorded: once, with what the gates say, and ended where they run."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from baton.infrastructure.wall_clock import new_id
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api
from tests.support.waiting import until


class Scene:
    """A beamline, the account of a witness, and a document uid of the test's own."""

    def __init__(self, line: Beamline, operator: Api, witness: Api) -> None:
        self.line, self.operator, self.witness = line, operator, witness

    def start(self, **over: Any) -> dict[str, Any]:
        """What a witness says of a run that begins now."""
        said = {
            "document_uid": str(uuid4()),
            "plan_id": self.line.plan_id,
            "plan_name": "count",
            "name": "count 42, bl7",
            "began_at": datetime.now(UTC).isoformat(),
            "subject_id": self.line.subject_id,
            "metadata": {"plan_name": "count", "num_points": 3},
            "external_refs": {"bluesky_scan": "42"},
        }
        return {**said, **over}

    async def begin(self, **over: Any) -> str:
        answer = await self.witness.post("/runs/witness", self.start(**over))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run_id"])

    async def tell(self, run_id: str, change: str, at: datetime | None = None, **over: Any) -> None:
        body = {"change": change, "at": (at or datetime.now(UTC)).isoformat(), **over}
        answer = await self.witness.post(f"/runs/{run_id}/witness", body)
        assert answer.status_code == 204, answer.text

    async def run(self, run_id: str) -> dict[str, Any]:
        return dict((await self.operator.get(f"/runs/{run_id}")).json())


@pytest.fixture(scope="module")
async def scene(api: Api) -> Scene:
    line = await beamline(api)
    operator = await api.create("/actors", {"name": "Noor Haddad"})
    witness = await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"})
    return Scene(line, api.acting_as(operator), api.acting_as(witness))


def end_of(status: str = "success", **over: Any) -> dict[str, Any]:
    """Return what a witness says of the end of a run."""
    streams = {"primary": {"announced": 3, "recorded": 3}}
    return {"end": {"exit_status": status, "streams": streams, "num_points": 3, **over}}


async def test_a_run_elsewhere_is_recorded_once_with_its_readings_and_its_end(scene: Scene) -> None:
    said = scene.start()
    first, again, later = await asyncio.gather(
        scene.witness.post("/runs/witness", said),
        scene.witness.post("/runs/witness", said),
        scene.witness.post("/runs/witness", {**said, "name": "another name", "metadata": {}}),
    )
    assert [one.status_code for one in (first, again, later)] == [201, 201, 201]
    assert first.json() == again.json() == later.json() == {"run_id": first.json()["run_id"], "procedure_id": None}
    run_id = first.json()["run_id"]
    sample = {"channel_name": "det", "value": 4.2, "sampling_procedure": "monitor", "sampled_at": said["began_at"]}
    reading = {"entries": [{"event_id": str(new_id()), **sample}]}
    for _ in range(2):
        assert (await scene.witness.post(f"/runs/{run_id}/observations", reading)).status_code == 200
    at = datetime.now(UTC)
    for _ in range(2):
        await scene.tell(run_id, "paused", at)
    assert (await scene.run(run_id))["witness"]["paused_since"] == at.isoformat().replace("+00:00", "Z")
    await scene.tell(run_id, "resumed")
    for _ in range(2):
        await scene.tell(run_id, "ended", at, **end_of())
    view = await scene.run(run_id)
    assert (view["status"], view["witness"]["paused_since"], view["actuation_kind"]) == ("Completed", None, None)
    assert (await scene.operator.get(f"/runs/{run_id}/observations")).json()["items"][0]["value"] == 4.2
    events = (await scene.operator.get(f"/runs/{run_id}/history")).json()["items"]
    kinds = [one["event_type"] for one in events]
    assert kinds == [
        *("RunWitnessed", "RunObservationLogbookOpened", "RunWitnessChanged", "RunWitnessChanged"),
        *("RunWitnessChanged", "RunCompleted"),
    ]
    assert all(gate["passed"] for gate in events[0]["payload"]["gates"])


async def test_a_repeated_change_is_left_as_it_is(scene: Scene) -> None:
    run_id, at = await scene.begin(), datetime.now(UTC)
    for _ in range(2):
        await scene.tell(run_id, "paused", at)
        await scene.tell(run_id, "resumed", at + timedelta(seconds=1))
    assert (await scene.run(run_id))["witness"]["paused_since"] is None
    history = (await scene.operator.get(f"/runs/{run_id}/history")).json()["items"]
    assert [one["payload"]["change"] for one in history if one["event_type"] == "RunWitnessChanged"] == ["paused", "resumed"]


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        (end_of(), "Completed", None),
        (end_of(stopped=True), "Stopped", "The RunEngine was told to stop."),
        (end_of(num_points=9), "Stopped", "3 of 9 announced events came."),
        (end_of("abort"), "Aborted", "The RunEngine aborted it."),
        (end_of("fail", reason="motor stalled"), "Aborted", "motor stalled"),
    ],
)
async def test_what_the_stop_document_says_and_what_was_seen_decide_the_end(
    scene: Scene, end: dict[str, Any], status: str, reason: str | None
) -> None:
    run_id = await scene.begin(holdable=True)
    held = await scene.operator.post(f"/runs/{run_id}/hold", {"reason": "the beam is weak"})
    assert held.status_code == 204
    await scene.tell(run_id, "ended", **end)
    view = await scene.run(run_id)
    assert (view["status"], view["end_reason"]) == (status, reason)


async def test_gates_are_recorded_and_wait_for_a_note_of_a_person(scene: Scene) -> None:
    strange = {"parameters": {"exposure": -4, "energy": 30, "unheard_of": True}}
    run_id = await scene.begin(**strange, override_reason="commissioning of the new stage")
    view = await scene.run(run_id)
    assert (view["status"], view["override_parameters"]) == ("Running", {"energy": 30})
    [began] = (await scene.operator.get(f"/runs/{run_id}/history")).json()["items"]
    closed = [gate for gate in began["payload"]["gates"] if not gate["passed"]]
    assert [gate["gate"] for gate in closed] == ["parameters_valid"]

    async def reasons_to_look() -> list[str]:
        """Return why the run waits for a person."""
        items = (await scene.operator.get("/waiting", kind="witnessed_past_gate")).json()["items"]
        return [item["why"] for item in items if item["id"] == run_id]

    (why,) = await reasons_to_look()
    assert "commissioning of the new stage" in why
    assert closed[0]["detail"] in why
    note = {"entries": [{"event_id": str(new_id()), "text": "Looked at it; the values are those of the test."}]}
    assert (await scene.witness.post(f"/runs/{run_id}/logbook", note)).status_code == 200
    assert await reasons_to_look(), "the witness itself cannot settle it"
    note["entries"][0]["event_id"] = str(new_id())
    assert (await scene.operator.post(f"/runs/{run_id}/logbook", note)).status_code == 200
    assert await reasons_to_look() == []


async def test_arguments_that_the_schema_does_not_name_close_no_gate(scene: Scene) -> None:
    run_id = await scene.begin(parameters={"detectors": ["camera"], "num": 5, "energy": 30})
    [began] = (await scene.operator.get(f"/runs/{run_id}/history")).json()["items"]
    assert [gate["gate"] for gate in began["payload"]["gates"] if not gate["passed"]] == []
    assert began["payload"]["override_parameters"] == {"energy": 30}
    waiting = (await scene.operator.get("/waiting", kind="witnessed_past_gate")).json()["items"]
    assert run_id not in [item["id"] for item in waiting]


async def test_a_run_that_began_long_ago_says_nothing_of_gates_and_is_not_live(scene: Scene) -> None:
    run_id = await scene.begin(began_at=(datetime.now(UTC) - timedelta(hours=3)).isoformat(), holdable=True)
    [began] = (await scene.operator.get(f"/runs/{run_id}/history")).json()["items"]
    assert (began["payload"]["gates"], began["payload"]["late"]) == (None, True)
    now = (await scene.operator.get(f"/assets/{scene.line.unit_id}/now")).json()
    assert run_id not in [one["run_id"] for one in now["runs"]]
    refused = await scene.operator.post(f"/runs/{run_id}/hold", {"reason": "too late"})
    assert (refused.status_code, refused.json()["reason"]) == (409, "witnessed")
    await scene.tell(run_id, "ended", **end_of())
    assert (await scene.run(run_id))["status"] == "Completed"


async def test_a_run_that_is_told_late_and_still_under_way_is_named_by_a_hold_of_everything(scene: Scene) -> None:
    run_id = await scene.begin(began_at=(datetime.now(UTC) - timedelta(hours=3)).isoformat())
    await scene.tell(run_id, "heard")
    now = (await scene.operator.get(f"/assets/{scene.line.unit_id}/now")).json()
    assert run_id in [one["run_id"] for one in now["runs"]]
    answer = (await scene.operator.post("/hold-everything", {"reason": "drill"})).json()
    assert {one["id"]: one["reason"] for one in answer["refused"]}[run_id] == "witnessed"
    await scene.tell(run_id, "ended", **end_of())


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("complete", {}),
        ("stop", {"reason": "enough"}),
        ("abort", {"reason": "smoke"}),
        ("hold", {"reason": "wait"}),
        ("adjust", {"parameters_patch": {"energy": 20}, "reason": "lower"}),
        ("conduct", {"procedure_ids": [str(uuid4())]}),
    ],
)
async def test_a_verb_that_nobody_would_obey_is_refused(scene: Scene, verb: str, body: dict[str, Any]) -> None:
    run_id = await scene.begin()
    answer = await scene.operator.post(f"/runs/{run_id}/{verb}", body)
    assert (answer.status_code, answer.json()["reason"]) == (409, "witnessed")
    assert (await scene.run(run_id))["status"] == "Running"


async def test_hold_everything_names_a_run_that_would_not_obey(scene: Scene) -> None:
    free, held = await scene.begin(), await scene.begin(holdable=True)
    answer = (await scene.operator.post("/hold-everything", {"reason": "drill"})).json()
    assert {one["id"]: one["reason"] for one in answer["refused"]}[free] == "witnessed"
    assert held in [one["id"] for one in answer["held"]]

    async def offered_commands() -> list[str]:
        """Return the commands that the held run waits for."""
        items = (await scene.operator.get("/waiting", kind="held_run")).json()["items"]
        return [command["name"] for one in items if one["id"] == held for command in one["commands"]]

    assert await until(offered_commands) == ["resume_run", "truncate_run"], "what nobody would obey is not offered"
    for one in (free, held):
        await scene.tell(one, "ended", **end_of())


async def test_the_books_are_closed_by_the_witness_or_a_minute_after_its_last_word(scene: Scene) -> None:
    run_id = await scene.begin()
    dead = {"reason": "The RunEngine's process ended.", "interrupted_at": "2020-01-01T00:00:00Z"}
    refused = await scene.operator.post(f"/runs/{run_id}/truncate", dead)
    assert (refused.status_code, refused.json()["reason"]) == (409, "still_heard")
    assert (await scene.witness.post(f"/runs/{run_id}/truncate", dead)).status_code == 204
    assert (await scene.run(run_id))["status"] == "Truncated"
    await scene.tell(run_id, "ended", **end_of())
    assert (await scene.run(run_id))["status"] == "Truncated", "what has ended on record is left as it is"


async def test_only_the_account_that_began_a_run_tells_its_changes(scene: Scene, api: Api) -> None:
    run_id = await scene.begin()
    other = api.acting_as(await api.create("/actors", {"name": "Another witness", "kind": "service_account"}))
    body = {"change": "paused", "at": datetime.now(UTC).isoformat()}
    refused = await other.post(f"/runs/{run_id}/witness", body)
    assert (refused.status_code, refused.json()["reason"]) == (409, "other_witness")
    for path, given in ((f"/runs/{run_id}/witness", body), ("/runs/witness", scene.start())):
        denied = await scene.operator.post(path, given)
        assert (denied.status_code, denied.json()["reason"]) == (403, "caller_kind_not_permitted")
    own = (await scene.operator.post("/runs", {"name": "ours", "plan_id": scene.line.plan_id})).json()["run_id"]
    refused = await scene.witness.post(f"/runs/{own}/witness", body)
    assert (refused.status_code, refused.json()["reason"]) == (409, "not_witnessed")


@pytest.mark.parametrize(
    "bad",
    [
        {"metadata": {"text": "x" * 70_000}},
        {"parameters": {"text": "x" * 70_000}},
        {"document_uid": ""},
        {"began_at": "yesterday"},
        {"plan_id": str(uuid4())},
        {"external_refs": "none"},
        {"strange": 1},
    ],
)
async def test_a_start_that_cannot_be_right_is_refused(scene: Scene, bad: dict[str, Any]) -> None:
    answer = await scene.witness.post("/runs/witness", scene.start(**bad))
    assert answer.status_code in (400, 404, 422)


async def test_a_change_says_what_it_is_about(scene: Scene) -> None:
    run_id, at = await scene.begin(), datetime.now(UTC).isoformat()
    for bad in ({"change": "ended"}, {"change": "paused", **end_of()}, {"change": "described"}):
        answer = await scene.witness.post(f"/runs/{run_id}/witness", {"at": at, **bad})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidRunWitnessChangeError")
