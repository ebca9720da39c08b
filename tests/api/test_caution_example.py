"""A caution from its registration to its retirement, over REST; and rivals who want to replace the same one."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from baton.domain.kernel import NIL
from tests.api.test_equipment_example import beamline_of
from tests.support.api.concurrent_requests import send_at_once
from tests.support.api.example_reads import anonymous, cause
from tests.support.api.rest_beamline import create_clearance, create_plan
from tests.support.service import Api
from tests.support.waiting import until


def drift(asset_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "target": {"kind": "Asset", "id": asset_id},
        "category": "OperationalWindow",
        "severity": "Caution",
        "text": "Rotation drifts in the first ten minutes after homing",
        "workaround": "Wait ten minutes, then re-home",
        "tags": ["rotary"],
        "expires_at": "2126-12-31T00:00:00Z",
        "propagate_to_children": True,
        **fields,
    }


async def part_of(api: Api, parent_id: str, name: str) -> str:
    return await api.create("/assets", {"name": name, "tier": "Device", "parent_id": parent_id})


async def list_caution_ids(api: Api, **filters: Any) -> list[str]:
    page = await api.get("/cautions", limit=100, **filters)
    assert page.status_code == 200, page.text
    return [item["caution_id"] for item in page.json()["items"]]


async def test_a_caution_from_its_registration_to_its_retirement(api: Api) -> None:
    unit = await beamline_of(api)
    sample_stage = await part_of(api, unit, "Sample stage")
    rotary = await part_of(api, sample_stage, "Rotary")
    written = await api.post("/cautions", drift(sample_stage))
    assert written.status_code == 201
    first = written.json()["caution_id"]
    banner = {"target_kind": "Asset", "target_id": rotary, "in_effect": True, "inherited": True, "min_severity": "Caution"}
    assert await list_caution_ids(api, **banner, min_position=written.headers["X-Baton-Position"]) == [first]

    await create_clearance(api, unit)
    plan = await create_plan(api, rotary)
    started = await api.post("/runs", {"name": "Overview scan", "plan_id": plan.plan_id})
    assert started.status_code == 201
    inherited = {
        "caution_id": first,
        "target_kind": "Asset",
        "target_id": sample_stage,
        "category": "OperationalWindow",
        "severity": "Caution",
        "text_excerpt": "Rotation drifts in the first ten minutes after homing",
        "workaround_excerpt": "Wait ten minutes, then re-home",
    }
    assert started.json()["acknowledged_cautions"] == [inherited]
    [(event, payload)] = await anonymous(api, f"/runs/{started.json()['run_id']}")
    assert (event, payload["acknowledged_cautions"]) == ("RunStarted", [inherited])

    replaced = await api.post(f"/cautions/{first}/supersede", drift(sample_stage, severity="Warning"))
    assert replaced.status_code == 201
    second = replaced.json()["caution_id"]
    assert replaced.json() == {"caution_id": second}
    old = (await api.get(f"/cautions/{first}")).json()
    assert (old["status"], old["superseded_by_caution_id"]) == ("Superseded", second)
    elsewhere = await api.post(f"/cautions/{second}/supersede", drift(rotary))
    assert cause(elsewhere) == (400, "InvalidCautionSupersedeTargetError", "other_target")
    assert await list_caution_ids(api, **banner, min_position=replaced.headers["X-Baton-Position"]) == [second]

    position = await api.execute(f"/cautions/{second}/retire", {"reason": "Resolved"})
    again = await api.post(f"/cautions/{second}/retire", {"reason": "Resolved"})
    assert cause(again) == (409, "CautionCannotRetireError", "retired")
    assert await list_caution_ids(api, min_position=position) == []
    assert await list_caution_ids(api, status="all") == [first, second]
    assert await list_caution_ids(api, status=["Retired", "Active"]) == [second]

    said = {**drift(sample_stage), "authored_by": str(NIL), "parent_id": None}
    assert await anonymous(api, f"/cautions/{first}") == [
        ("CautionRegistered", said),
        ("CautionSuperseded", {"superseded_by_caution_id": second}),
    ]
    assert await anonymous(api, f"/cautions/{second}") == [
        ("CautionRegistered", {**said, "severity": "Warning", "parent_id": first}),
        ("CautionRetired", {"reason": "Resolved", "retired_by": str(NIL)}),
    ]


async def test_a_conduct_acknowledges_what_is_said_of_its_recipe(api: Api) -> None:
    unit = await beamline_of(api)
    contract = {"code": "baton.capability.flats", "name": "Flats", "required_affordances": []}
    capability = await api.create("/capabilities", {**contract, "executor_shapes": ["PROCEDURE"]})
    steps = [{"kind": "setpoint", "address": "bl7:shutter", "value": 1}]
    recipe = await api.create("/recipes", {"name": "Flats", "capability_id": capability, "steps": steps})
    task = {"name": "Flats", "kind": "flats", "target_asset_ids": [unit]}
    procedure = await api.create(f"/recipes/{recipe}/procedures", task)
    note = drift(recipe, target={"kind": "Recipe", "id": recipe}, propagate_to_children=False)
    caution = await api.create("/cautions", note)
    nowhere = await api.post("/cautions", drift(recipe, target={"kind": "Plan", "id": recipe}))
    assert cause(nowhere) == (404, "CautionTargetNotFoundError", None)

    preflight = (await api.get(f"/procedures/{procedure}/preflight")).json()
    assert preflight["passed"]
    assert [one["caution_id"] for one in preflight["acknowledged_cautions"]] == [caution]
    accepted = await api.post(f"/procedures/{procedure}/conduct", {"wait": 0})
    assert accepted.status_code == 202, accepted.text
    assert accepted.json()["acknowledged_cautions"] == preflight["acknowledged_cautions"]
    started = dict(await anonymous(api, f"/procedures/{procedure}"))["ProcedureStarted"]
    assert started["acknowledged_cautions"] == preflight["acknowledged_cautions"]
    position = accepted.headers["X-Baton-Position"]
    assert await list_caution_ids(api, target_kind="Recipe", target_id=recipe, min_position=position) == [caution]


async def test_a_list_keeps_what_its_filters_mean(fresh_api: Api) -> None:
    beamline = await beamline_of(fresh_api)
    table = await part_of(fresh_api, beamline, "Table")
    stage = await part_of(fresh_api, table, "Stage")
    own = await fresh_api.create("/cautions", drift(stage, severity="Notice", tags=["cold"], expires_at=None))
    near = await fresh_api.create("/cautions", drift(table, propagate_to_children=False))
    far = await fresh_api.create("/cautions", drift(beamline, severity="Warning", category="Wear"))
    gone = await fresh_api.create("/cautions", drift(stage))
    position = await fresh_api.execute(f"/cautions/{gone}/retire", {"reason": "WrongTarget"})
    await list_caution_ids(fresh_api, min_position=position)
    on_stage = {"target_kind": "Asset", "target_id": stage}
    expected = [
        ({}, [own, near, far]),
        (on_stage, [own]),
        ({**on_stage, "inherited": True}, [own, far]),
        ({**on_stage, "inherited": True, "status": "all"}, [own, far, gone]),
        ({**on_stage, "inherited": True, "status": "all", "in_effect": True}, [own, far]),
        ({**on_stage, "inherited": True, "min_severity": "Caution"}, [far]),
        ({"target_kind": "Procedure"}, []),
        ({"severity": ["Notice", "Warning"]}, [own, far]),
        ({"min_severity": "Warning"}, [far]),
        ({"category": "Wear"}, [far]),
        ({"tag": "cold"}, [own]),
        ({"authored_by": str(NIL)}, [own, near, far]),
        ({"authored_by": stage}, []),
        ({"in_effect": True}, [own, near, far]),
    ]
    for filters, found in expected:
        assert await list_caution_ids(fresh_api, **filters) == found, filters


async def test_a_caution_that_is_over_stays_active_and_is_no_longer_in_effect(api: Api) -> None:
    stage = await beamline_of(api)
    soon = datetime.now(UTC) + timedelta(seconds=2)
    expiring = await api.create("/cautions", drift(stage, expires_at=soon.isoformat()))
    lasting = await api.create("/cautions", drift(stage, expires_at=None))

    async def is_over() -> bool:
        return await list_caution_ids(api, target_id=stage, in_effect=True) == [lasting]

    await until(is_over)
    assert await list_caution_ids(api, target_id=stage) == [expiring, lasting]
    assert (await api.get(f"/cautions/{expiring}")).json()["status"] == "Active"


async def test_filters_that_do_not_agree_are_malformed(api: Api) -> None:
    for filters in (
        {"severity": "Notice", "min_severity": "Notice"},
        {"status": ["all", "Active"]},
        {"status": "Expired"},
        {"inherited": True},
        {"inherited": True, "target_kind": "Asset"},
        {"inherited": True, "target_kind": "Procedure", "target_id": str(NIL)},
    ):
        assert (await api.get("/cautions", **filters)).status_code == 422, filters


async def test_of_two_rivals_who_supersede_a_caution_one_wins_and_nothing_of_the_other_stays(fresh_api: Api) -> None:
    stage = await beamline_of(fresh_api)
    caution = await fresh_api.create("/cautions", drift(stage))
    answers = await send_at_once(
        fresh_api.database_url,
        fresh_api.post(f"/cautions/{caution}/supersede", drift(stage, text="Drift is worse when cold")),
        fresh_api.post(f"/cautions/{caution}/supersede", drift(stage, text="Drift is gone")),
    )
    won, lost = sorted(answers, key=lambda answer: answer.status_code)
    assert won.status_code == 201
    assert cause(lost) == (409, "ConcurrencyError", "version_taken")
    winner = won.json()["caution_id"]
    async with await psycopg.AsyncConnection.connect(fresh_api.database_url) as connection:
        events = await connection.execute(
            "SELECT stream_id, version, event_type FROM events WHERE stream_type = 'Caution' ORDER BY version, position"
        )
        assert {(str(id), *rest) for id, *rest in await events.fetchall()} == {
            (caution, 1, "CautionRegistered"),
            (winner, 1, "CautionRegistered"),
            (caution, 2, "CautionSuperseded"),
        }
        look_ups = await connection.execute("SELECT key, stream_id FROM lookups WHERE kind = 'caution-target'")
        assert await look_ups.fetchall() == [(f"Asset {stage}", UUID(winner))]
    assert (await fresh_api.get(f"/cautions/{caution}")).json()["superseded_by_caution_id"] == winner
    late = await fresh_api.post(f"/cautions/{caution}/supersede", drift(stage))
    assert cause(late) == (409, "CautionCannotSupersedeError", "superseded")
