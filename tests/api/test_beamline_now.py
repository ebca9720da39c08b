"""What is going on at a beamline, over REST: one answer of one moment, at a cost that does not grow with the equipment."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.views.beamline_now import GetBeamlineNow
from baton.infrastructure.postgres import pool
from tests.support.api.example_reads import cause, refusal
from tests.support.api.rest_beamline import Beamline, beamline, bring_into_force
from tests.support.service import Api

STEPS = [{"kind": "setpoint", "address": "bl7:energy", "value": value} for value in (25, 26, 27)]


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


async def now(api: Api, asset_id: str) -> dict[str, Any]:
    answer = await api.get(f"/assets/{asset_id}/now")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_an_idle_beamline_shows_what_it_stands_on(line: Beamline) -> None:
    caution = {
        "target": {"kind": "Asset", "id": line.rotary_id},
        "category": "Wear",
        "severity": "Notice",
        "text": "The stage squeaks.",
        "workaround": "Drive it slowly.",
    }
    await line.api.create("/cautions", caution)
    cryogen = {"kind": "cryogen", "name": "Dewar", "facility_code": "facility", "containing_asset_id": line.rotary_id}
    dewar = await line.api.create("/supplies", cryogen)
    await line.api.create("/supplies", {**cryogen, "containing_asset_id": await other_root(line.api)})
    shown = await now(line.api, line.unit_id)
    assert (shown["asset_id"], shown["name"]) == (line.unit_id, "Tomography")
    (permit,) = shown["permits"]
    assert (permit["enclosure_id"], permit["permit_status"], permit["monitored"]) == (line.enclosure_id, "Permitted", False)
    assert permit["fresh"]
    assert 0 <= permit["observation_age"] < 60
    assert permit["last_contact_at"] is not None
    assert [(one["supply_id"], one["status"], one["reason"]) for one in shown["supplies"]] == [
        (dewar, "Unknown", None),
        (line.supply_id, "Available", "shutter open"),
    ]
    assert [one["observation_age"] for one in shown["supplies"]] == [None, None]
    (clearance,) = shown["clearances"]
    assert (clearance["valid_until"], clearance["ends_soon"]) == (None, False)
    assert [(one["target_id"], one["severity"]) for one in shown["cautions"]] == [(line.rotary_id, "Notice")]
    assert (shown["runs"], shown["conducts"]) == ([], [])
    assert shown["worker"] == {"count": 0, "last_heard_at": None}


async def other_root(api: Api) -> str:
    return await api.create("/assets", {"name": "Elsewhere", "tier": "Unit", "facility_code": "facility"})


async def test_a_clearance_that_ends_within_a_day_ends_soon(line: Beamline) -> None:
    template = {"code": f"ESAF-{uuid4().hex[:8]}", "title": "Safety form", "facility_code": "facility"}
    template_id = await line.api.create("/clearance-templates", template)
    await line.api.execute(f"/clearance-templates/{template_id}/activate")
    form = {"template_id": template_id, "facility_code": "facility", "bindings": [{"kind": "Asset", "id": line.camera_id}]}
    for title, hours in (("Tonight", 23), ("Next week", 170)):
        until = (datetime.now(UTC) + timedelta(hours=hours)).isoformat()
        clearance_id = await line.api.create("/clearances", {**form, "title": title, "valid_until": until})
        await bring_into_force(line.api, clearance_id)
    shown = await now(line.api, line.unit_id)
    assert [(one["title"], one["ends_soon"]) for one in shown["clearances"]] == [
        ("Tonight", True),
        ("Next week", False),
        ("Tomography", False),
    ]


async def test_a_live_run_shows_how_far_it_is_who_started_it_and_why_it_is_held(line: Beamline) -> None:
    ada = await line.api.create("/actors", {"name": "Ada", "kind": "human"})
    ben = await line.api.create("/actors", {"name": "Ben", "kind": "human"})
    by_ada = Beamline(**{**vars(line), "api": line.api.acting_as(ada)})
    run = await by_ada.start_run(subject_id=line.subject_id)
    (shown,) = (await now(line.api, line.unit_id))["runs"]
    assert (shown["run_id"], shown["status"], shown["plan_name"]) == (run, "Running", "Spring block")
    assert (shown["started_by"], shown["started_by_name"], shown["hold"]) == (ada, "Ada", None)
    assert (shown["phase"], shown["step"], shown["estimate"]) == (None, None, None)

    flats = {"name": "Flats", "kind": "flat_field", "parent_run_id": run, "target_asset_ids": [line.camera_id]}
    phases = [await line.api.create("/procedures", flats) for _ in range(2)]
    listed = [{"procedure_id": id, "conduct": {"command": "conduct_procedure", "steps": STEPS}} for id in phases]
    opened = await by_ada.api.post(f"/runs/{run}/conduct", {"phases": listed, "wait": 0})
    assert opened.status_code == 202, opened.text
    await line.api.acting_as(ben).execute(f"/runs/{run}/hold", {"reason": "top-up"})
    (shown,) = (await now(line.api, line.unit_id))["runs"]
    hold = shown["hold"]
    assert (shown["status"], hold["reason"], hold["held_by"], hold["held_by_name"]) == ("Held", "top-up", ben, "Ben")
    assert shown["conduct_id"] == opened.json()["conduct_id"]
    assert shown["estimate"]["ends_at"] is None

    await line.api.execute(f"/runs/{run}/stop", {"reason": "enough"})
    assert (await now(line.api, line.unit_id))["runs"] == []


async def test_a_live_conduct_shows_its_step_and_what_it_is_asked_for(line: Beamline) -> None:
    aligned = {"name": "Align", "kind": "alignment", "target_asset_ids": [line.camera_id]}
    procedure = await line.api.create("/procedures", aligned)
    accepted = await line.api.post(f"/procedures/{procedure}/conduct", {"steps": STEPS, "wait": 0})
    assert accepted.status_code == 202, accepted.text
    (shown,) = (await now(line.api, line.unit_id))["conducts"]
    assert (shown["procedure_id"], shown["conduct_id"]) == (procedure, accepted.json()["conduct_id"])
    assert (shown["phase"], shown["worker"], shown["started_by_name"]) == ("Opened", "awaited", "not signed in")
    assert (shown["message"], shown["pending_request"]) == ("waiting for a worker to take it up", None)
    asked = await line.api.post(f"/procedures/{procedure}/hold", {"reason": "beam lost"})
    assert asked.status_code == 202, asked.text
    (shown,) = (await now(line.api, line.unit_id))["conducts"]
    assert shown["pending_request"] == "Hold"
    assert (await now(line.api, await other_root(line.api)))["conducts"] == []


async def test_a_part_of_a_beamline_names_the_root_to_ask_for(line: Beamline) -> None:
    answer = await line.api.get(f"/assets/{line.rotary_id}/now")
    assert cause(answer) == (422, "NotABeamlineError", "not_a_root")
    assert answer.json()["detail"] == f"Rotary stage is a part of Tomography; ask for that root, {line.unit_id}."
    assert answer.json()["facts"] == {"root_asset_id": line.unit_id, "name": "Tomography"}
    assert refusal(await line.api.get(f"/assets/{uuid4()}/now")) == (404, "AssetNotFoundError")


async def test_the_number_of_statements_does_not_grow_with_the_tree(line: Beamline, monkeypatch: pytest.MonkeyPatch) -> None:
    await line.start_run()
    counted = [0]
    execute, task = psycopg.AsyncConnection.execute, asyncio.current_task()

    async def count(self: Any, *given: Any, **options: Any) -> Any:
        counted[0] += asyncio.current_task() is task
        return await execute(self, *given, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", count)
    monkeypatch.setattr(pool, "TESTED_AFTER_SECONDS", math.inf)
    async with Runtime(Settings(database_url=line.api.database_url, app_env="test")) as runtime:

        async def statements() -> int:
            counted[0] = 0
            await runtime.queries.ask(GetBeamlineNow(), Caller.system(uuid4()), target_id=UUID(line.unit_id))
            return counted[0]

        await statements()  # The first one also loads what is kept from then on.
        before = await statements()
        assert 10 < before < 30
        parent = line.rotary_id
        for number in range(12):
            hutch = await line.api.create("/enclosures", {"name": f"Cabinet {number}", "facility_code": "facility"})
            device = {"name": f"Axis {number}", "tier": "Device", "parent_id": parent, "located_in_enclosure_id": hutch}
            parent = await line.api.create("/assets", device)
        assert await statements() == before
        assert len((await now(line.api, line.unit_id))["permits"]) == 13
