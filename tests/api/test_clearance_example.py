"""A safety form over REST: from the seeded template through review into force, amended, and found in the lists."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.support.api.mcp_clients import agent, sentence_of
from tests.support.api.rest_beamline import bring_into_force, create_plan
from tests.support.service import Api, running_api

CELL, FURNACE = str(uuid4()), str(uuid4())
PROPOSAL = {"kind": "External", "scheme": "proposal", "value": "P-7731"}
FORM = {
    "facility_code": "facility",
    "title": "In-situ tomography of a battery cell",
    "bindings": [{"kind": "Subject", "id": CELL}, {"kind": "Asset", "id": FURNACE}, PROPOSAL],
    "declarations": [
        {
            "target": {"kind": "Subject", "id": CELL},
            "classifications": [{"kind": "NFPA704", "health": 2, "flammability": 3, "instability": 1}],
            "mitigations": ["PPE:gloves"],
            "notes": None,
        }
    ],
    "risk_band": "Yellow",
    "valid_from": "2026-06-01T00:00:00Z",
    "valid_until": "2026-06-08T00:00:00Z",
}
STEP = {"step_index": 0, "role": "BeamlineScientist", "decision": "Approved"}

WAY = [
    *("submit_clearance", "start_clearance_review", "append_clearance_review_step", "approve_clearance"),
    "activate_clearance",
]


async def seeded_template(api: Api) -> str:
    position = await api.execute("/zones", {"name": "Hall"})
    found = await api.get("/clearance-templates", facility_code="facility", code="ESAF", min_position=position)
    (template,) = found.json()["items"]
    assert template["status"] == "Active"
    return str(template["template_id"])


async def refusal(api: Api, path: str, body: Any = None) -> tuple[int, str]:
    response = await api.post(path, body)
    return response.status_code, response.json()["code"]


async def test_a_form_goes_through_review_into_force_and_is_amended(api: Api) -> None:
    form = {**FORM, "template_id": await seeded_template(api)}
    clearance = await api.create("/clearances", form)
    path = f"/clearances/{clearance}"
    await api.execute(f"{path}/submit")
    await api.execute(f"{path}/start-review", {"first_reviewer_role": "BeamlineScientist"})
    assert await refusal(api, f"{path}/approve") == (409, "ClearanceCannotApproveError")
    await api.execute(f"{path}/append-review-step", STEP)
    assert await refusal(api, f"{path}/append-review-step", STEP) == (400, "InvalidClearanceReviewStepIndexError")
    await api.execute(f"{path}/approve")
    await api.execute(f"{path}/activate")

    shown = (await api.get(path)).json()
    assert (shown["status"], shown["risk_band"], shown["valid_until"]) == ("Active", "Yellow", "2026-06-08T00:00:00Z")
    assert sorted(shown["bindings"], key=lambda binding: binding["kind"]) == [
        {"kind": "Asset", "id": FURNACE},
        PROPOSAL,
        {"kind": "Subject", "id": CELL},
    ]
    assert shown["declarations"][0]["classifications"][0] == {
        "kind": "NFPA704",
        "health": 2,
        "flammability": 3,
        "instability": 1,
        "special": None,
    }
    assert [step["decision"] for step in shown["review_steps"]] == ["Approved"]

    amended = await api.post(f"{path}/amend", {**form, "bindings": [{"kind": "Subject", "id": CELL}, PROPOSAL]})
    assert amended.status_code == 201
    child = amended.json()["clearance_id"]
    shown = (await api.get(f"/clearances/{child}")).json()
    assert (shown["status"], shown["parent_id"]) == ("Defined", clearance)
    assert (await api.get(path)).json()["status"] == "Superseded"

    position = {"min_position": amended.headers["X-Baton-Position"]}
    by_subject = (await api.get("/clearances", binds_to_subject_id=CELL, **position)).json()["items"]
    by_asset = (await api.get("/clearances", binds_to_asset_id=FURNACE, template_code="ESAF", **position)).json()["items"]
    assert [item["clearance_id"] for item in by_subject] == [clearance, child]
    assert [item["clearance_id"] for item in by_asset] == [clearance]
    assert by_asset[0]["bindings"] == {"subject_ids": [CELL], "asset_ids": [FURNACE], "run_ids": [], "procedure_ids": []}


async def test_runs_start_under_a_form_only_while_it_is_in_force(api: Api) -> None:
    beamline = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    furnace = await api.create("/assets", {"name": "Furnace", "tier": "Device", "parent_id": beamline})
    cell = await api.create("/subjects", {"name": "Battery cell"})
    await api.execute(f"/assets/{furnace}/activate")
    await api.execute(f"/subjects/{cell}/mount", {"asset_id": furnace, "reason": "loaded"})
    run = {"name": "Charge cycle 1", "plan_id": (await create_plan(api, furnace)).plan_id, "subject_id": cell}
    uncovered = (await api.post("/runs", run)).json()
    assert uncovered["code"] == "RunRequiresActiveClearanceError"
    assert [step["operation"] for step in uncovered["next_steps"]] == ["register_clearance", *WAY]
    assert uncovered["next_steps"][1] == {"operation": WAY[0], "arguments": {}, "needed": ["clearance_id"]}
    register = uncovered["next_steps"][0]
    assert register["arguments"] == {"facility_code": "facility", "bindings": [{"kind": "Subject", "id": cell}]}
    assert register["needed"] == ["template_id", "title"]
    assert (await seeded_template(api)) in uncovered["facts"]["templates"].values()

    week = {"valid_from": now(days=-1), "valid_until": now(days=6), "declarations": []}
    bindings = [{"kind": "Subject", "id": cell}, {"kind": "Asset", "id": furnace}, PROPOSAL]
    form = {**FORM, **week, "template_id": await seeded_template(api), "bindings": bindings}
    clearance = await api.create("/clearances", form)
    path = f"/clearances/{clearance}"
    told = (await api.post("/runs", run)).json()["next_steps"]
    assert [step["operation"] for step in told] == WAY
    assert told[2]["arguments"] == {"clearance_id": clearance, "step_index": 0, "decision": "Approved"}
    assert told[2]["needed"] == ["role"]
    async with agent(api) as client:
        refused = await client.call_tool("activate_clearance", {"clearance_id": clearance})
        assert sentence_of(refused).endswith(f"The way there, as next_steps: {', then '.join(WAY)}.")
    await api.execute(f"{path}/submit")
    await api.execute(f"{path}/start-review", {"first_reviewer_role": "BeamlineScientist"})
    await api.execute(f"{path}/append-review-step", STEP)
    await api.execute(f"{path}/approve")
    approved = await api.post("/runs", run)
    assert (approved.status_code, approved.json()["code"]) == (409, "RunClearanceCoverageMismatchError")
    [found] = approved.json()["facts"]["clearances"]
    assert (found["clearance_id"], found["status"]) == (clearance, "Approved")
    await api.execute(f"{path}/activate")
    assert (await api.post("/runs", run)).status_code == 201

    amended = await api.post(f"{path}/amend", {**form, "title": "Furnace changed"})
    child = amended.json()["clearance_id"]
    assert await refusal(api, "/runs", run) == (409, "RunClearanceCoverageMismatchError")
    await bring_into_force(api, child)
    assert (await api.post("/runs", run)).status_code == 201


async def test_a_form_whose_week_has_not_begun_does_not_count(api: Api) -> None:
    furnace = await api.create("/assets", {"name": "Furnace", "tier": "Unit", "facility_code": "facility"})
    run = {"name": "Charge cycle 1", "plan_id": (await create_plan(api, furnace)).plan_id}
    bindings = [{"kind": "Asset", "id": furnace}]
    common = {**FORM, "template_id": await seeded_template(api), "bindings": bindings, "declarations": []}
    for week in (
        {"valid_from": now(days=1), "valid_until": now(days=8)},
        {"valid_from": now(days=-8), "valid_until": now(days=-1)},
    ):
        await bring_into_force(api, await api.create("/clearances", {**common, **week}))
        assert await refusal(api, "/runs", run) == (409, "RunClearanceCoverageMismatchError")
    await bring_into_force(api, await api.create("/clearances", {**common, "valid_from": None, "valid_until": None}))
    assert (await api.post("/runs", run)).status_code == 201


def now(days: int) -> str:
    """The time so many days from now."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


async def test_a_repeated_amendment_answers_with_the_same_child(api: Api) -> None:
    form = {**FORM, "template_id": await seeded_template(api)}
    clearance = await api.create("/clearances", form)
    for verb, body in (
        ("submit", {}),
        ("start-review", {"first_reviewer_role": "Coordinator"}),
        ("append-review-step", STEP),
        ("approve", {}),
        ("activate", {}),
    ):
        await api.execute(f"/clearances/{clearance}/{verb}", body)
    first, again = [await api.post(f"/clearances/{clearance}/amend", form, Idempotency_Key="amend-1") for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.json(), again.headers["Idempotency-Replayed"]) == (again.json(), "true")


async def test_what_has_the_wrong_shape_is_malformed(api: Api) -> None:
    form = {**FORM, "template_id": await seeded_template(api)}
    for wrong in (
        {"bindings": [{"kind": "Campaign", "id": CELL}]},
        {"bindings": [{"kind": "Subject", "id": CELL, "scheme": "proposal"}]},
        {"valid_from": "2026-06-01T00:00:00"},
        {"status": "Active"},
    ):
        assert (await api.post("/clearances", {**form, **wrong})).status_code == 422


async def test_with_four_eyes_the_author_of_a_form_needs_somebody_else(database_url: str) -> None:
    async with running_api(database_url, clearance_four_eyes=True) as api:
        author_id = await api.create("/actors", {"name": "Mira Okafor"})
        author = api.acting_as(author_id)
        reviewer = api.acting_as(await api.create("/actors", {"name": "Samir Haddad"}))
        clearance = await author.create("/clearances", {**FORM, "template_id": await seeded_template(api)})
        path = f"/clearances/{clearance}"
        assert (await author.get(path)).json()["barred_reviewer_ids"] == [author_id]
        await author.execute(f"{path}/submit")
        await author.execute(f"{path}/start-review", {"first_reviewer_role": "BeamlineScientist"})
        refused = await author.post(f"{path}/append-review-step", STEP)
        assert (refused.status_code, refused.json()["code"]) == (409, "ClearanceCannotAppendReviewStepError")
        assert refused.json()["reason"] == "same_person"
        await reviewer.execute(f"{path}/append-review-step", STEP)
        refused = await author.post(f"{path}/approve")
        assert (refused.json()["code"], refused.json()["reason"]) == ("ClearanceCannotApproveError", "same_person")
        await reviewer.execute(f"{path}/approve")
        await author.execute(f"{path}/activate")
        assert (await author.get(path)).json()["status"] == "Active"
