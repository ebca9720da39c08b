"""What waits for a person, over REST: each thing with why, since when, and the commands that resolve it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.application.caller import Caller
from baton.domain.conduct.endings import LOST, HoldProcedure, RecordConductEnd
from baton.domain.data.attestation import ByteReading, CompleteAttestation
from baton.domain.kernel import SYSTEM_CONDUIT, Command
from baton.domain.procedure.procedure import HoldCause
from baton.domain.queue.item_records import BlockQueueItem
from baton.domain.run.run import AbortRun
from baton.domain.schedule.schedule import RecordScheduleFiringRefusal
from baton.domain.step.results import ConductResult
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.wall_clock import new_id
from tests.support.api.data_products import register_copy, register_dataset, verify_copies
from tests.support.api.example_reads import refusal
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.sample_parts.agent import proposal
from tests.support.domain.caution_proposals import TITLE
from tests.support.service import Api, running_api

STEP = {"kind": "setpoint", "address": "bl7:energy", "value": 25}


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    return await beamline(fresh_api)


async def list_waiting(api: Api, **filters: Any) -> list[dict[str, Any]]:
    """Everything that waits, once the lists show all that was recorded."""
    mark = await api.post("/zones", {"name": f"Mark {uuid4()}"})
    answer = await api.get("/waiting", min_position=mark.headers["X-Baton-Position"], **filters)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def execute_as_service(api: Api, command: Command, target_id: str) -> None:
    await api.runtime.service.execute(command, Caller.system(uuid4()), target_id=UUID(target_id))


def commands(item: dict[str, Any]) -> list[str]:
    return [command["name"] for command in item["commands"]]


async def hold_with_unknown_outcome(api: Api, asset_id: str) -> str:
    """A procedure that is held since nobody knows whether its first step was done."""
    procedure = await api.create("/procedures", {"name": "Expose", "kind": "flats", "target_asset_ids": [asset_id]})
    accepted = await api.post(f"/procedures/{procedure}/conduct", {"steps": [STEP], "wait": 0})
    own = {"procedure_id": procedure, "conduct_id": accepted.json()["conduct_id"], "command_name": "ConductProcedure"}
    lost = {"step_index": 0, "source_kind": "action", "target": "expose", "error_class": "ActionOutcomeUnknown"}
    result = ConductResult.model_validate({**own, "succeeded": False, "held": True, "failure": {**lost, "message": "Lost."}})
    hold = HoldProcedure(reason="lost", cause=HoldCause.OUTCOME_UNKNOWN, conducted=result)
    await execute_as_service(api, hold, procedure)
    return procedure


async def test_everything_that_waits_is_listed_the_newest_last_with_what_resolves_it(line: Beamline) -> None:
    api = line.api
    run = await line.start_run()
    await api.execute(f"/runs/{run}/hold", {"reason": "top-up"})
    by_hand = await api.create("/procedures", {"name": "Align", "kind": "alignment", "target_asset_ids": [line.camera_id]})
    await api.execute(f"/procedures/{by_hand}/start")
    await api.execute(f"/procedures/{by_hand}/hold", {"reason": "lunch"})
    unknown = await hold_with_unknown_outcome(api, line.camera_id)
    await api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
    await api.execute(f"/supplies/{line.supply_id}/mark-recovering", {"reason": "ramping"})
    clearance = await submit_clearance(api, line.rotary_id)
    proposed = await proposal(api, uuid4().hex[:8], UUID(line.rotary_id), "ProposeWarning")
    schedule = await refuse_firing(api, line.camera_id)

    listed = await list_waiting(api)
    assert [(one["kind"], one["id"], one["name"], one["asset_id"]) for one in listed] == [
        ("refused_firing", schedule, "Nightly darks", line.camera_id),  # It was due in the past.
        ("held_run", run, "Load step 1", None),
        ("held_procedure", by_hand, "Align", line.camera_id),
        ("unknown_outcome", unknown, "Expose", line.camera_id),
        ("supply_recovering", line.supply_id, listed[4]["name"], None),
        ("clearance_in_review", clearance, "Lasers", line.rotary_id),
        ("caution_proposal", proposed, TITLE, line.rotary_id),
    ]
    plan = (await api.get(f"/plans/{line.plan_id}")).json()
    assert (listed[1]["asset_ids"], listed[1]["held_by_name"]) == (sorted(plan["asset_ids"]), "not signed in")
    whys = ["Mira Okafor may not do this any more.", "top-up", "lunch", "lost", "ramping"]
    assert [one["why"] for one in listed[:5]] == whys
    assert list(map(commands, listed)) == [
        ["trigger_schedule", "hold_schedule", "retire_schedule"],
        ["resume_run", "stop_run", "abort_run"],
        ["resume_procedure", "abort_procedure"],
        ["resolve_procedure_step", "abort_procedure"],
        ["restore_supply", "degrade_supply", "mark_supply_unavailable"],
        ["start_clearance_review"],
        ["promote_caution_proposal", "rate_decision"],
    ]
    resume = {"name": "resume_run", "permitted": True, "method": "POST", "path": f"/runs/{run}/resume"}
    assert listed[1]["commands"][0] == {**resume, "arguments": {"run_id": run}}
    about = ["Schedule", "Run", "Procedure", "Procedure", "Supply", "Clearance", "Decision"]
    assert [one["about"] for one in listed] == about
    times = [one["since"] for one in listed]
    assert times == sorted(times)


async def submit_clearance(api: Api, asset_id: str) -> str:
    template = {"code": f"ESAF-{uuid4().hex[:8]}", "title": "Safety form", "facility_code": "facility"}
    template_id = await api.create("/clearance-templates", template)
    await api.execute(f"/clearance-templates/{template_id}/activate")
    form = {"template_id": template_id, "facility_code": "facility", "bindings": [{"kind": "Asset", "id": asset_id}]}
    clearance = await api.create("/clearances", {**form, "title": "Lasers"})
    await api.execute(f"/clearances/{clearance}/submit")
    return clearance


async def refuse_firing(api: Api, asset_id: str) -> str:
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await api.create("/capabilities", {"code": f"baton.capability.{uuid4().hex}", "name": "Darks", **shapes})
    recipe = await api.create("/recipes", {"name": "darks", "capability_id": capability, "steps": [STEP]})
    target = {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Darks", "target_asset_ids": [asset_id]}
    asked = {"name": "Nightly darks", "calendar": {"cron": ["0 2 * * *"]}, "target": target}
    schedule = await api.create("/schedules", asked)
    why = {"code": "UnauthorizedError", "detail": "Mira Okafor may not do this any more."}
    refused = RecordScheduleFiringRefusal(firing_id=uuid4(), scheduled_at=datetime(2025, 7, 1, 2, tzinfo=UTC), **why)
    await execute_as_service(api, refused, schedule)
    return schedule


async def test_what_is_resolved_waits_no_more(line: Beamline) -> None:
    api = line.api
    run = await line.start_run()
    await api.execute(f"/runs/{run}/hold", {"reason": "top-up"})
    procedure = await hold_with_unknown_outcome(api, line.camera_id)
    rated, promoted = [await proposal(api, uuid4().hex[:8], UUID(line.rotary_id)) for _ in range(2)]
    clearance = await submit_clearance(api, line.rotary_id)
    assert len(await list_waiting(api)) == 5

    await api.execute(f"/runs/{run}/resume")
    lost = (await api.get(f"/procedures/{procedure}")).json()["unknown_step"]
    await api.execute(f"/procedures/{procedure}/conduct/resolve", {**lost, "outcome": "done", "reason": "seen"})
    await api.execute(f"/decisions/{rated}/rate", {"rating": "ignored"})
    await api.create(f"/decisions/{promoted}/promote", {})
    await api.execute(f"/clearances/{clearance}/start-review", {"first_reviewer_role": "Safety"})
    left = await list_waiting(api)
    assert [(one["kind"], one["id"]) for one in left] == [("held_procedure", procedure), ("clearance_in_review", clearance)]
    assert commands(left[0]) == ["conduct_from_procedure", "abort_procedure"]
    assert commands(left[1]) == ["append_clearance_review_step", "approve_clearance", "reject_clearance"]


async def test_the_list_is_filtered_by_asset_and_kind_and_comes_in_pages(line: Beamline) -> None:
    api, other = line.api, await beamline(line.api)
    for place in (line, other):
        for _ in range(2):
            run = await place.start_run()
            await api.execute(f"/runs/{run}/hold", {"reason": "top-up"})
    await api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
    await api.execute(f"/supplies/{line.supply_id}/mark-recovering", {"reason": "ramping"})
    everything = await list_waiting(api)
    assert len(everything) == 5
    runs = await list_waiting(api, kind="held_run")
    assert len(runs) == 4
    for place, own in ((line, runs[:2]), (other, runs[2:])):
        assert await list_waiting(api, kind="held_run", asset_id=place.camera_id) == own
        shown = await list_waiting(api, asset_id=place.unit_id)
        assert [one["kind"] for one in shown] == ["held_run", "held_run", "supply_recovering"], "it is of the whole facility"
    paged: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await api.get("/waiting", limit=2, **({"cursor": cursor} if cursor else {}))).json()
        assert len(page["items"]) <= 2
        paged += page["items"]
        cursor = page["next_cursor"]
    assert paged == everything
    assert refusal(await api.get("/waiting", cursor="nonsense")) == (422, "InvalidCursorError")
    assert refusal(await api.get("/waiting", kind="nonsense")) == (422, "RequestValidationError")
    assert refusal(await api.get("/waiting", asset_id=str(uuid4()))) == (404, "AssetNotFoundError")


async def test_each_command_says_whether_the_caller_holds_it(line: Beamline) -> None:
    run = await line.start_run()
    await line.api.execute(f"/runs/{run}/hold", {"reason": "top-up"})
    await list_waiting(line.api)
    admin, operator = str(uuid4()), str(uuid4())
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": admin}
    async with running_api(line.api.database_url, projecting=False, **enforced) as guarded:
        grant = {"conduit_id": str(SYSTEM_CONDUIT), "surface_id": str(SYSTEM_HTTP), "permitted_principal_ids": [operator]}
        permitted = {"name": "Looking", **grant, "permitted_commands": ["ListWaiting", "ResumeRun"]}
        await guarded.acting_as(admin).create("/policies", permitted)
        (held,) = (await guarded.acting_as(operator).get("/waiting")).json()["items"]
        assert {one["name"]: one["permitted"] for one in held["commands"]} == {
            "resume_run": True,
            "stop_run": False,
            "abort_run": False,
        }


def summary_of(item: dict[str, Any]) -> tuple[str, str, str, str]:
    return item["kind"], item["about"], item["id"], item["name"]


async def add_item(api: Api, queue: str, asset_id: str, title: str = "Darks") -> UUID:
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await api.create("/capabilities", {"code": f"baton.capability.{uuid4().hex}", "name": "Darks", **shapes})
    recipe = await api.create("/recipes", {"name": "darks", "capability_id": capability, "steps": [STEP]})
    target = {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Darks", "target_asset_ids": [asset_id]}
    added = await api.post(f"/queues/{queue}/add-items", {"items": [{"title": title, "target": target}]})
    return UUID(added.json()["item_ids"][0])


async def test_a_held_queue_and_one_whose_first_item_is_blocked_wait_for_a_person(line: Beamline) -> None:
    api = line.api
    queue = await api.create("/queues", {"name": "Tonight", "asset_id": line.unit_id})
    item_id = await add_item(api, queue, line.camera_id)
    in_use = BlockQueueItem(item_id=item_id, attempt=1, code="ProcedureCannotConductError", detail="Another has it.")
    await execute_as_service(api, in_use, queue)
    assert await list_waiting(api) == [], "what another conduct has comes free by itself"
    unmounted = {"code": "RunSubjectNotMountableError", "detail": "The subject is Received; mount it first."}
    await execute_as_service(api, BlockQueueItem(item_id=item_id, attempt=1, **unmounted), queue)
    (blocked,) = await list_waiting(api, asset_id=line.camera_id)
    assert summary_of(blocked) == ("blocked_queue_item", "Queue", queue, "Darks in Tonight")
    assert (blocked["why"], blocked["asset_id"]) == (unmounted["detail"], line.unit_id)
    assert commands(blocked) == ["edit_queue_item", "remove_queue_item", "hold_queue"]
    assert blocked["commands"][1]["arguments"] == {"queue_id": queue, "item_id": str(item_id)}
    ada = await api.create("/actors", {"name": "Ada"})
    await api.acting_as(ada).execute(f"/queues/{queue}/hold", {"reason": "search the hutch"})
    (held,) = await list_waiting(api)
    assert (summary_of(held), held["why"]) == (("held_queue", "Queue", queue, "Tonight"), "search the hutch")
    assert (held["held_by"], held["held_by_name"], held["asset_ids"]) == (ada, "Ada", [line.unit_id])
    hold = (await api.get(f"/assets/{line.unit_id}/now")).json()["queue"]["hold"]
    by_ada = {"held_by": ada, "held_by_name": "Ada", "since": held["since"], "reason": "search the hutch"}
    assert hold == by_ada == (await api.get(f"/queues/{queue}")).json()["hold"]
    assert commands(held) == ["resume_queue", "retire_queue"]
    await api.execute(f"/queues/{queue}/remove-item", {"item_id": str(item_id), "reason": "no sample"})
    await api.execute(f"/queues/{queue}/resume", {})
    assert await list_waiting(api) == []


async def fail_run(line: Beamline) -> str:
    """A run that its own conduct aborted."""
    run = await line.start_run()
    await execute_as_service(line.api, AbortRun(reason="phase Scan: the camera is off", conduct_id=uuid4()), run)
    return run


async def test_a_failed_run_waits_until_somebody_wrote_a_note_or_looked(line: Beamline) -> None:
    api = line.api
    asked_for = await line.start_run()
    await api.execute(f"/runs/{asked_for}/abort", {"reason": "wrong sample"})
    looked_at, noted = await fail_run(line), await fail_run(line)
    failed = await list_waiting(api)
    assert list(map(summary_of, failed)) == [("failed_run", "Run", id, "Load step 1") for id in (looked_at, noted)]
    assert failed[0]["why"] == "phase Scan: the camera is off"
    assert commands(failed[0]) == ["acknowledge_run", "append_run_logbook_entries", "get_run_conduct"]
    await api.execute(f"/runs/{looked_at}/acknowledge")
    author = (await api.get(f"/runs/{looked_at}/history")).json()["items"][-1]
    assert author["event_type"] == "RunAcknowledged"
    await api.execute(f"/runs/{noted}/logbook", {"entries": [{"event_id": str(new_id()), "text": "Cable replaced."}]})
    assert await list_waiting(api) == []
    live = await line.start_run()
    assert refusal(await api.post(f"/runs/{live}/acknowledge")) == (409, "RunCannotAcknowledgeError")


async def conduct_and_end(api: Api, asset_id: str, **result: Any) -> str:
    """A procedure whose conduct ended with this result."""
    procedure = await api.create("/procedures", {"name": "Align", "kind": "alignment", "target_asset_ids": [asset_id]})
    accepted = await api.post(f"/procedures/{procedure}/conduct", {"steps": [STEP], "wait": 0})
    own = {"procedure_id": procedure, "conduct_id": accepted.json()["conduct_id"], "command_name": "ConductProcedure"}
    await execute_as_service(api, RecordConductEnd(result=ConductResult.model_validate({**own, **result})), procedure)
    return procedure


async def test_a_closing_step_that_failed_waits_until_somebody_looked(line: Beamline) -> None:
    shutter = {"step_index": 0, "source_kind": "setpoint", "target": "bl7:shutter", "error_class": "ControlTimeoutError"}
    ended = {"succeeded": True, "closing_failures": [{**shutter, "message": "It did not close."}]}
    procedure = await conduct_and_end(line.api, line.camera_id, **ended)
    (open,) = await list_waiting(line.api, kind="closing_failed")
    assert summary_of(open) == ("closing_failed", "Procedure", procedure, "Align")
    assert open["why"] == "Closing step of bl7:shutter failed: It did not close."
    assert commands(open) == ["acknowledge_procedure", "get_procedure_conduct"]
    await line.api.execute(f"/procedures/{procedure}/acknowledge")
    assert await list_waiting(line.api, kind="closing_failed") == []


@pytest.mark.parametrize("way", ["abort", "hold", "truncate", "complete"])
async def test_a_lost_conduct_waits_until_somebody_acts_and_is_nowhere_said_to_run(line: Beamline, way: str) -> None:
    api = line.api
    lost = await conduct_and_end(api, line.camera_id, succeeded=False, failure=LOST)
    (open,) = await list_waiting(api, asset_id=line.unit_id)
    assert (summary_of(open), open["why"]) == (("lost_conduct", "Procedure", lost, "Align"), LOST.message)
    assert commands(open) == ["get_procedure_conduct", "conduct_from_procedure", "abort_procedure"]
    assert open["commands"][0]["method"] == "GET"
    now = (await api.get(f"/assets/{line.unit_id}/now")).json()
    (found,) = now["lost"]
    assert (found["procedure_id"], found["since"], found["resumed_by"]) == (lost, open["since"], "conduct_from_procedure")
    assert (await api.get(f"/procedures/{lost}")).json()["lost"]
    assert [one["lost"] for one in (await api.get("/procedures", status="Running")).json()["items"]] == [True]
    await api.execute(f"/procedures/{lost}/{way}", {} if way == "complete" else {"reason": "looked at it"})
    assert [one["kind"] for one in await list_waiting(api)] == (["held_procedure"] if way == "hold" else [])
    assert (await api.get(f"/assets/{line.unit_id}/now")).json()["lost"] == []
    assert not (await api.get(f"/procedures/{lost}")).json()["lost"]


async def test_a_copy_that_was_found_wrong_waits_until_it_is_right_or_gone(line: Beamline) -> None:
    api = line.api
    dataset = await register_dataset(api, name="Darks of Monday")
    wrong, said = await register_copy(api, dataset), await register_copy(api, dataset)
    await api.execute(f"/distributions/{said}/mark-stale", {"reason": "disk array lost"})
    reading = ByteReading(verifier_kind="PosixChecksum", digest="0" * 64, byte_size=7)
    found = CompleteAttestation(distribution_id=UUID(wrong), reading=reading)
    await api.runtime.service.execute(found, Caller.system(uuid4()))
    (open,) = await list_waiting(api)
    assert summary_of(open) == ("wrong_copy", "Distribution", wrong, "Darks of Monday")
    assert open["why"].endswith(": The bytes were read, and have another checksum than the dataset.")
    assert [(one["name"], one["arguments"]) for one in open["commands"]] == [
        ("discard_distribution", {"distribution_id": wrong}),
        ("record_attestation", {"dataset_id": dataset, "distribution_id": wrong}),
    ]
    await verify_copies(api, wrong)
    assert await list_waiting(api) == []
