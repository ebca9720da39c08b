"""One of everything, made over REST: what tests that go through all operations work with."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from baton.domain.registry import Operation
from tests.support.api.sample_parts import (
    agent,
    calibration,
    caution,
    data,
    decision,
    enclosure,
    federation,
    operation,
    plan,
    proposals,
    recipe,
    recipe_ladder,
    run,
    safety,
    subject,
    supply,
)
from tests.support.service import Api

Ids = dict[str, str]
SYSTEM_CONDUIT = "00000000-0000-0000-0000-000000000010"
SYSTEM_HTTP = "00000000-0000-0000-0000-000000000020"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ROTARY_SCHEMA = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {"serial_number": {"type": "string"}, "gain": {"type": "number"}},
}
POSE = dict.fromkeys((f"{part}{axis}" for part in ("", "r", "tol_", "tol_r") for axis in "xyz"), 0.0)


def placement_in(frame_id: str, **numbers: float) -> dict[str, Any]:
    """A placement in a frame."""
    return {**POSE, **numbers, "parent_frame_id": frame_id, "reference_surface": "MountingFace"}


def visit_plan(surface_id: str, policy_id: str) -> dict[str, Any]:
    """The plan of a visit."""
    period = {"planned_start_at": "2026-10-06T08:00:00+02:00", "planned_end_at": "2026-10-08T08:00:00+02:00"}
    return {"policy_id": policy_id, "surface_id": surface_id, "type": "user", **period}


async def create_trust_samples(api: Api, ids: Ids, mark: str) -> None:
    """An actor who is present at a visit, and what the visit rests on."""
    ids["actor_id"] = await api.create("/actors", {"name": "Mira Okafor", "email": "m.okafor@example.org"})
    ids["zone_id"] = await api.create("/zones", {"name": "Experiment hall"})
    ends = {"source_zone_id": ids["zone_id"], "target_zone_id": ids["zone_id"]}
    ids["conduit_id"] = await api.create("/conduits", {"name": "Hall network", **ends})
    ids["surface_id"] = await api.create("/surfaces", {"name": "Endstation A console", "kind": "HTTP"})
    ids["policy_id"] = await api.create(
        "/policies",
        {
            "name": "Shift crew",
            "conduit_id": ids["conduit_id"],
            "surface_id": ids["surface_id"],
            "permitted_principal_ids": [ids["actor_id"]],
            "permitted_commands": ["GetVisit"],
        },
    )
    ids["visit_id"] = await api.create("/visits", visit_plan(ids["surface_id"], ids["policy_id"]))
    await api.execute(f"/visits/{ids['visit_id']}/record-arrival")
    await api.execute(f"/visits/{ids['visit_id']}/presence/open", {"mode": "physical", "actor_id": ids["actor_id"]})


async def create_catalog_samples(api: Api, ids: Ids, mark: str) -> None:
    """A family that can play a role, and a model of it."""
    turning = {"description": "Turns things.", "required_affordances": ["Rotatable"]}
    ids["role_id"] = await api.create("/roles", {"name": f"Spinner {mark}", **turning})
    rotary = {"name": f"RotaryStage {mark}", "affordances": ["Rotatable"], "settings_schema": ROTARY_SCHEMA}
    ids["family_id"] = await api.create("/families", rotary)
    await api.execute(f"/families/{ids['family_id']}/add-role", {"role_id": ids["role_id"]})
    described = {"manufacturer": {"name": "Acme Motion"}, "part_number": f"R-{mark}"}
    ids["model_id"] = await api.create(
        "/models", {"name": "acme_r250", **described, "declared_family_ids": [ids["family_id"]]}
    )


async def create_equipment_samples(api: Api, ids: Ids, mark: str) -> None:
    """An asset of the model, installed, and bound into a fixture."""
    unit = {"name": "Tomography", "tier": "Unit", "facility_code": "facility"}
    ids["root_asset_id"] = await api.create("/assets", unit)
    ids["asset_id"] = await api.create(
        "/assets",
        {
            "name": "Rotary",
            "tier": "Device",
            "parent_id": ids["root_asset_id"],
            "model_id": ids["model_id"],
            "alternate_identifiers": [{"kind": "EPICS_PV", "value": f"lum:{mark}"}],
            "owners": [{"name": "Lumen Light Source"}],
        },
    )
    await api.execute(f"/assets/{ids['asset_id']}/activate")
    ids["frame_id"] = await api.create("/frames", {"name": "centerline"})
    slot = {"slot_code": f"B-SAMPLE-{mark}", "placement": placement_in(ids["frame_id"])}
    ids["mount_id"] = await api.create("/mounts", slot)
    await api.execute(f"/mounts/{ids['mount_id']}/install", {"asset_id": ids["asset_id"]})
    place = {"slot_name": "stage", "required_family_ids": [ids["family_id"]], "cardinality": "Exactly1"}
    ids["assembly_id"] = await api.create(
        "/assemblies", {"name": "Sample tower", "required_slots": [place], "presented_role_ids": [ids["role_id"]]}
    )
    bindings = [{"slot_name": "stage", "asset_id": ids["asset_id"]}]
    ids["fixture_id"] = await api.create(f"/assemblies/{ids['assembly_id']}/fixtures", {"slot_asset_bindings": bindings})
    await api.execute(f"/assets/{ids['asset_id']}/fixture/attach", {"fixture_id": ids["fixture_id"]})
    sweep = await api.post("/assets/mint-missing-external-ids", {"wait": 0, "facility_code": f"none-{mark}"})
    assert sweep.status_code in (200, 202), sweep.text
    ids["sweep_id"] = ids["work_id"] = sweep.json()["sweep_id"]


SampleMaker = Callable[[Api, Ids, str], Awaitable[None]]

CONTEXTS: dict[SampleMaker, tuple[str, ...]] = {
    create_trust_samples: ("access", "trust"),
    proposals.create_samples: ("access", "trust"),
    federation.create_samples: ("federation",),
    federation.create_exchange_samples: ("federation",),
    create_catalog_samples: ("equipment",),
    create_equipment_samples: ("equipment",),
    supply.create_samples: ("supply",),
    enclosure.create_samples: ("enclosure",),
    safety.create_samples: ("safety",),
    caution.create_samples: ("caution",),
    subject.create_samples: ("subject",),
    recipe_ladder.create_samples: ("recipe",),
    plan.create_samples: ("recipe",),
    recipe.create_samples: ("recipe",),
    run.create_samples: ("run", "campaign"),
    operation.create_samples: ("operation",),
    decision.create_samples: ("decision",),
    agent.create_samples: ("agent",),
    calibration.create_samples: ("calibration",),
    data.create_samples: ("data",),
    data.create_edition_samples: ("data",),
}
"""Whose objects are made by what, in an order in which each finds what it refers to."""
MADE_BY: dict[str, SampleMaker] = {}
"""By the name of an id, what makes such an object, once there is one."""


async def create_samples(api: Api) -> Ids:
    """Create a set of objects that refer to each other, and return the map from the name of an id to the id."""
    ids: Ids = {}
    mark = uuid4().hex[:8]
    for make in CONTEXTS:
        known = set(ids)
        await make(api, ids, mark)
        MADE_BY.update(dict.fromkeys(ids.keys() - known, make))
    return ids


async def renew_samples(api: Api, ids: Ids, operation: Operation) -> Ids:
    """Return the same set with a fresh object for an operation and those made with it, or of its context where it has none;
    they refer to the others."""
    fresh, mark = dict(ids), uuid4().hex[:8]
    own = operation.aggregate and MADE_BY.get(operation.aggregate.id_name)
    for make, contexts in CONTEXTS.items():
        if make is own or (own is None and operation.context in contexts):
            await make(api, fresh, mark)
    assert fresh != ids, f"nothing makes objects for {operation.name}"
    return fresh
