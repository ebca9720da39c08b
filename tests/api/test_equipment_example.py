"""A rotary stage from its family to its retirement, over REST; and rivals who want the same thing at the same time."""

import asyncio
from collections import Counter
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.api.example_reads import anonymous, cause
from tests.support.api.samples import DIALECT, placement_in, visit_plan
from tests.support.service import Api

DEGREE = {"type": "number", "unit": {"system": "udunits", "code": "degree"}}
RADIAN = {"type": "number", "unit": {"system": "udunits", "code": "rad"}}
AFFORDANCES = ["Rotatable", "Homeable", "Limitable", "Marking", "Leading", "Reportable"]


def rotary_schema(**properties: Any) -> dict[str, Any]:
    closed = {"additionalProperties": False, "unevaluatedProperties": False}
    texts = {"serial_number": {"type": "string"}, "firmware_version": {"type": "string"}}
    declared = {"min_position": DEGREE, "max_position": DEGREE, **texts, **properties}
    return {"$schema": DIALECT, "type": "object", **closed, "properties": declared}


async def patch_settings(api: Api, asset: str, **patch: Any) -> httpx.Response:
    return await api.request("PATCH", f"/assets/{asset}/settings", json={"settings_patch": patch})


async def test_a_rotary_stage_from_its_family_to_its_retirement(api: Api) -> None:
    await api.create("/federation/facilities", {"code": "lumen", "display_name": "Lumen Light Source", "kind": "Site"})
    family = {"name": "RotaryStage", "affordances": AFFORDANCES, "settings_schema": rotary_schema()}
    rotary_stage = await api.create("/families", family)
    described = {"name": "acme_r250", "manufacturer": {"name": "Acme Motion"}, "part_number": "R-250-AS"}
    model = await api.create("/models", {**described, "declared_family_ids": [rotary_stage]})

    beamline = {"name": "Tomography", "tier": "Unit", "facility_code": "lumen"}
    root = await api.create("/assets", beamline)
    both = await api.post("/assets", {**beamline, "parent_id": root})
    assert cause(both) == (400, "InvalidAssetParentError", "two_anchors")

    hutch = await api.create("/enclosures", {"name": "Imaging hutch B", "facility_code": "lumen"})
    rotary = await api.create(
        "/assets",
        {
            "name": "Rotary",
            "tier": "Device",
            "parent_id": root,
            "model_id": model,
            "located_in_enclosure_id": hutch,
            "alternate_identifiers": [{"kind": "EPICS_PV", "value": "lum:m102"}],
            "owners": [{"name": "Lumen Light Source"}],
        },
    )
    assert (await api.get(f"/assets/{rotary}")).json()["family_ids"] == [rotary_stage]

    await api.execute(f"/assets/{rotary}/activate")
    again = await api.post(f"/assets/{rotary}/activate")
    assert cause(again) == (409, "AssetCannotActivateError", "active")

    set_once = await patch_settings(api, rotary, min_position=-360, max_position=360, serial_number="A-0042")
    assert set_once.status_code == 204
    assert cause(await patch_settings(api, rotary, speed=5)) == (400, "InvalidAssetSettingsError", "undeclared_key")
    restated = {"version_tag": "2", "affordances": AFFORDANCES, "settings_schema": rotary_schema(max_position=RADIAN)}
    await api.execute(f"/families/{rotary_stage}/version", restated)
    stale = await patch_settings(api, rotary, firmware_version="1.2")
    assert cause(stale) == (400, "InvalidAssetSettingsError", "unit_changed")
    assert stale.json()["facts"] == {"keys": ["max_position"]}
    assert (await patch_settings(api, rotary, firmware_version="1.2", max_position=6.28)).status_code == 204

    frame = await api.create("/frames", {"name": "centerline"})
    mount = await api.create("/mounts", {"slot_code": "B-SAMPLE-01", "placement": placement_in(frame)})
    await api.execute(f"/mounts/{mount}/install", {"asset_id": rotary})

    await api.execute(f"/assets/{rotary}/degrade", {"reason": "runout above 1 micron"})
    worn = (await api.get(f"/assets/{rotary}")).json()
    assert (worn["lifecycle"], worn["condition"]) == ("Active", "Degraded")
    for verb, body in (("enter-maintenance", {}), ("exit-maintenance", {}), ("restore", {"reason": "new bearing"})):
        await api.execute(f"/assets/{rotary}/{verb}", body)

    tree = (await api.get(f"/assets/{root}/tree")).json()
    assert [(node["name"], node["depth"]) for node in tree["nodes"]] == [("Tomography", 0), ("Rotary", 1)]
    record = (await api.get(f"/assets/{rotary}/pidinst")).json()
    assert record["identifier"] == {"value": f"urn:uuid:{rotary}", "scheme": "URN"}
    assigned = await api.post(f"/assets/{rotary}/assign-external-id", {"external_id_scheme": "DOI"})
    assert assigned.status_code == 201
    record = (await api.get(f"/assets/{rotary}/pidinst")).json()
    assert record["identifier"] == {"value": assigned.json()["external_id"], "scheme": "DOI"}

    installed = await api.post(f"/assets/{rotary}/decommission")
    assert cause(installed) == (409, "AssetCannotDecommissionError", "installed")
    assert installed.json()["facts"] == {"mount_id": mount}
    await api.execute(f"/mounts/{mount}/uninstall", {"reason": "end of life"})
    await api.execute(f"/assets/{rotary}/decommission")
    late = await patch_settings(api, rotary, firmware_version="1.3")
    assert cause(late) == (409, "AssetCannotUpdateSettingsError", "decommissioned")
    await api.execute(f"/assets/{rotary}/fault", {"reason": "found broken in store"})

    registered, activated, first, second, *rest = await anonymous(api, f"/assets/{rotary}")
    assert registered == (
        "AssetRegistered",
        {
            "name": "Rotary",
            "tier": "Device",
            "parent_id": root,
            "facility_code": None,
            "family_ids": [rotary_stage],
            "model_id": model,
            "controller_id": None,
            "located_in_enclosure_id": hutch,
            "drawing": None,
            "alternate_identifiers": [{"kind": "EPICS_PV", "value": "lum:m102"}],
            "owners": [{"name": "Lumen Light Source", "identifier": None, "identifier_type": None}],
        },
    )
    assert activated == ("AssetActivated", {})
    settings = {"min_position": -360, "max_position": 360, "serial_number": "A-0042"}
    assert first == ("AssetSettingsUpdated", {"settings": settings, "schema_revisions": {rotary_stage: 0}})
    settings |= {"max_position": 6.28, "firmware_version": "1.2"}
    assert second == ("AssetSettingsUpdated", {"settings": settings, "schema_revisions": {rotary_stage: 1}})
    assert rest == [
        ("AssetDegraded", {"reason": "runout above 1 micron"}),
        ("AssetMaintenanceEntered", {}),
        ("AssetMaintenanceExited", {}),
        ("AssetRestored", {"reason": "new bearing"}),
        ("AssetExternalIdAssigned", assigned.json()),
        ("AssetDecommissioned", {}),
        ("AssetFaulted", {"reason": "found broken in store"}),
    ]
    assert await anonymous(api, f"/mounts/{mount}") == [
        (
            "MountRegistered",
            {"slot_code": "B-SAMPLE-01", "parent_id": None, "placement": placement_in(frame), "drawing": None},
        ),
        ("MountAssetInstalled", {"asset_id": rotary}),
        ("MountAssetUninstalled", {"asset_id": rotary, "reason": "end of life"}),
    ]
    assert [event for event, _ in await anonymous(api, f"/families/{rotary_stage}")] == ["FamilyDefined", "FamilyVersioned"]


async def statuses(*requests: Any) -> Counter[tuple[int, str | None, str | None]]:
    """How rivals fared: status, and class and reason of the refused."""
    answers = await asyncio.gather(*requests)
    return Counter((answer.status_code, None, None) if answer.is_success else cause(answer) for answer in answers)


async def beamline_of(api: Api) -> str:
    return await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})


@pytest.mark.parametrize("attempt", range(5))
async def test_two_crossing_relocations_cannot_build_a_cycle(api: Api, attempt: int) -> None:
    root = await beamline_of(api)
    one, other = [
        await api.create("/assets", {"name": name, "tier": "Component", "parent_id": root}) for name in ("One", "Other")
    ]
    fared = await statuses(
        api.post(f"/assets/{one}/relocate", {"to_parent_id": other, "reason": "stacked"}),
        api.post(f"/assets/{other}/relocate", {"to_parent_id": one, "reason": "stacked"}),
    )
    assert fared == {(204, None, None): 1, (409, "AssetCannotRelocateError", "cycle"): 1}
    nodes = (await api.get(f"/assets/{root}/tree")).json()["nodes"]
    assert [node["depth"] for node in nodes] == [0, 1, 2]


async def test_a_ring_of_relocations_leaves_a_tree(api: Api) -> None:
    root = await beamline_of(api)
    ring = [await api.create("/assets", {"name": f"{n}", "tier": "Component", "parent_id": root}) for n in range(8)]
    fared = await statuses(
        *(
            api.post(f"/assets/{asset}/relocate", {"to_parent_id": ring[number - 1], "reason": "shuffled"})
            for number, asset in enumerate(ring)
        )
    )
    assert fared[204, None, None] == 7
    assert len((await api.get(f"/assets/{root}/tree")).json()["nodes"]) == 9


async def test_no_child_slips_under_a_parent_that_is_being_retired(api: Api) -> None:
    for _ in range(5):
        parent = await beamline_of(api)
        part = {"name": "Rotary", "tier": "Device", "parent_id": parent}
        fared = await statuses(api.post("/assets", part), api.post(f"/assets/{parent}/decommission"))
        refused = {
            (409, "AssetCannotRegisterError", "parent_decommissioned"),
            (409, "AssetCannotDecommissionError", "active_children"),
        }
        assert sum(fared[answer] for answer in refused) == 1
        assert sum(fared.values()) == 2


async def test_of_rival_families_one_gets_the_name(api: Api) -> None:
    spellings = ["TiltStage", "tiltstage", " TiltStage ", "TILTSTAGE"] * 4
    fared = await statuses(*(api.post("/families", {"name": name, "affordances": []}) for name in spellings))
    assert fared == {(201, None, None): 1, (409, "FamilyAlreadyExistsError", "name_taken"): 15}


async def test_of_rival_mounts_one_gets_the_asset(api: Api) -> None:
    asset = await beamline_of(api)
    await api.execute(f"/assets/{asset}/activate")
    frame = await api.create("/frames", {"name": "centerline"})
    slots = [
        await api.create("/mounts", {"slot_code": f"B-{number}", "placement": placement_in(frame)}) for number in range(6)
    ]
    fared = await statuses(*(api.post(f"/mounts/{slot}/install", {"asset_id": asset}) for slot in slots))
    assert fared == {(204, None, None): 1, (409, "MountCannotInstallAssetError", "asset_installed_elsewhere"): 5}


async def test_of_rival_assets_one_gets_the_mount(api: Api) -> None:
    frame = await api.create("/frames", {"name": "centerline"})
    slot = await api.create("/mounts", {"slot_code": "B-ONE", "placement": placement_in(frame)})
    assets = [await beamline_of(api) for _ in range(6)]
    for asset in assets:
        await api.execute(f"/assets/{asset}/activate")
    fared = await statuses(*(api.post(f"/mounts/{slot}/install", {"asset_id": asset}) for asset in assets))
    assert fared[204, None, None] == 1
    assert {status for status, *_ in fared} == {204, 409}
    holder = (await api.get(f"/mounts/{slot}")).json()["installed_asset_id"]
    assert holder in assets


async def test_an_asset_is_not_retired_while_it_is_installed(api: Api) -> None:
    frame = await api.create("/frames", {"name": "centerline"})
    for number in range(5):
        asset = await beamline_of(api)
        await api.execute(f"/assets/{asset}/activate")
        slot = await api.create("/mounts", {"slot_code": f"B-INSTALLED-{number}", "placement": placement_in(frame)})
        install, retire = await asyncio.gather(
            api.post(f"/mounts/{slot}/install", {"asset_id": asset}), api.post(f"/assets/{asset}/decommission")
        )
        assert sorted([install.status_code, retire.status_code]) == [204, 409]


async def test_of_rival_visits_one_drives_the_surface(api: Api) -> None:
    console = await api.create("/surfaces", {"name": "Endstation A console", "kind": "HTTP"})
    visits = [await api.create("/visits", visit_plan(console, str(uuid4()))) for _ in range(6)]
    for visit in visits:
        await api.execute(f"/visits/{visit}/record-arrival")
    take = {"surface_id": console}
    fared = await statuses(*(api.post(f"/visits/{visit}/surface-control/take", take) for visit in visits))
    assert fared == {(204, None, None): 1, (409, "VisitCannotTakeControlError", "not_descendant"): 5}
    driver = (await api.get(f"/surfaces/{console}/control")).json()["visit_id"]
    histories = [await anonymous(api, f"/visits/{visit}") for visit in visits]
    taken = [visit for visit, events in zip(visits, histories, strict=True) if len(events) == 3]
    assert taken == [driver]


async def test_of_rival_changes_to_one_stream_each_sees_the_one_before(api: Api) -> None:
    visit = await api.create("/visits", visit_plan(str(uuid4()), str(uuid4())))
    await api.execute(f"/visits/{visit}/record-arrival")
    await api.execute(f"/visits/{visit}/start")
    fared = await statuses(*(api.post(f"/visits/{visit}/hold", {"reason": f"alarm {n}"}) for n in range(8)))
    assert fared[204, None, None] == 1
    assert {answer[1] for answer in fared} <= {None, "VisitCannotHoldError", "ConcurrencyError"}
    assert [event for event, _ in await anonymous(api, f"/visits/{visit}")].count("VisitHeld") == 1
