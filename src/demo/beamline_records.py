"""The beamline on record: what it consists of, what may be done with it, and how."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from baton.demo import recipes
from baton.demo.beamline_processes import FACILITY, HUTCH, RING
from baton.demo.people import Person
from baton.demo.permissions import Staff

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXPOSURE = {"type": "number", "minimum": 0.001, "maximum": 10, "unit": {"system": "udunits", "code": "s"}}
PARAMETERS = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {"exposure": EXPOSURE, "series": {"type": "integer", "minimum": 0}},
    "additionalProperties": False,
    "unevaluatedProperties": False,
}
DEFAULTS = {"exposure": 0.02, "series": 1}
SHORT_VALIDITY = timedelta(seconds=45)
"""How long the clearance of a visitor's sample holds, which is over before the night is."""
FAMILIES = ("Camera", "Hexapod", "RotaryStage")
MODELS = {
    "Rotation stage": ("R-250-AS", "bl7:rot"),
    "Hexapod": ("HEX-300", "bl7:hexapod:x"),
    "Camera": ("CAM-5", "bl7:cam1"),
}
"""The devices that are of a catalog model, by its part number, and the signals they are worked by."""


@dataclass(frozen=True)
class Site:
    """The ids of what the night is about."""

    staff: Staff
    hutch_id: str
    ring_id: str
    unit_id: str
    sample_id: str
    plan_id: str
    short_clearance_id: str
    recipe_ids: dict[str, str]


def furnished(staff: Staff, data: Path, result: Path) -> Site:
    """Everything that must be on record before anybody can work."""
    engineer = staff.engineer
    hutch_id = engineer.named("/enclosures", HUTCH)["enclosure_id"]
    ring_id = engineer.named("/supplies", RING)["supply_id"]
    engineer.post(f"/supplies/{ring_id}/mark-available", {"reason": "100 mA, looked at in the control room"})
    unit_id, devices = equipped(engineer, hutch_id)
    sample_id = engineer.create("/subjects", {"name": "Alloy bar 7"})
    engineer.post(f"/subjects/{sample_id}/mount", {"asset_id": devices["Rotation stage"], "reason": "loaded for the night"})
    engineer.create("/cautions", caution(devices["Rotation stage"]))
    template_id = staff.safety_officer.named("/clearance-templates", "ESAF", "code")["template_id"]
    cleared(staff.safety_officer, template_id, "Tomography of alloy bars", unit_id)
    short = cleared(
        staff.safety_officer, template_id, "Visitor's sample, this evening", unit_id, datetime.now(UTC) + SHORT_VALIDITY
    )
    capability_id = engineer.create("/capabilities", capability())
    return Site(
        staff,
        hutch_id,
        ring_id,
        unit_id,
        sample_id,
        planned(engineer, capability_id, list(devices.values())),
        short,
        written(engineer, capability_id, data, result),
    )


def equipped(engineer: Person, hutch_id: str) -> tuple[str, dict[str, str]]:
    """The beamline in its hutch, and its devices, which are of models of the starter catalog."""
    unit = {"name": "Imaging beamline 7", "tier": "Unit", "facility_code": FACILITY, "located_in_enclosure_id": hutch_id}
    unit_id = engineer.create("/assets", unit)
    engineer.post(f"/assets/{unit_id}/activate")
    devices = {}
    for name, (part_number, signal) in MODELS.items():
        worked_by = [{"kind": "EPICS_PV", "value": signal}]
        model_id = engineer.named("/models", part_number, "part_number")["model_id"]
        device = {"name": name, "tier": "Device", "parent_id": unit_id, "model_id": model_id}
        devices[name] = engineer.create("/assets", {**device, "alternate_identifiers": worked_by})
        engineer.post(f"/assets/{devices[name]}/activate")
    return unit_id, devices


def caution(asset_id: str) -> dict[str, Any]:
    """What everybody should know of the rotation stage."""
    return {
        "target": {"kind": "Asset", "id": asset_id},
        "category": "OperationalWindow",
        "severity": "Caution",
        "text": "The stage runs out of true by half a micron when it is cold.",
        "workaround": "Turn it a few times before a long scan.",
        "tags": ["rotation"],
        "propagate_to_children": False,
    }


def cleared(safety_officer: Person, template_id: str, title: str, unit_id: str, until: datetime | None = None) -> str:
    """A clearance that was reviewed and is in force."""
    bindings = [{"kind": "Asset", "id": unit_id}]
    asked: dict[str, Any] = {"template_id": template_id, "facility_code": FACILITY, "title": title, "bindings": bindings}
    validity = {"valid_until": until.isoformat()} if until else {}
    clearance_id = safety_officer.create("/clearances", {**asked, **validity})
    looked_at = {"role": "BeamlineScientist", "decision": "Approved", "decided_at": datetime.now(UTC).isoformat()}
    for verb, body in (
        ("submit", {}),
        ("start-review", {"first_reviewer_role": "BeamlineScientist"}),
        ("append-review-step", {"step_index": 0, **looked_at}),
        ("approve", {}),
        ("activate", {}),
    ):
        safety_officer.post(f"/clearances/{clearance_id}/{verb}", body)
    return clearance_id


def capability() -> dict[str, Any]:
    """What the beamline can do, whoever does it."""
    return {
        "code": "baton.capability.tomography",
        "name": "Absorption tomography",
        "required_affordances": ["Rotatable", "Imageable"],
        "executor_shapes": ["METHOD", "PROCEDURE"],
        "parameters_schema": PARAMETERS,
    }


def planned(engineer: Person, capability_id: str, asset_ids: list[str]) -> str:
    """From the method to a plan on these devices."""
    method = {
        "name": "absorption_tomography",
        "capability_id": capability_id,
        "needed_family_ids": sorted(engineer.named("/families", name)["family_id"] for name in FAMILIES),
        "needed_supplies": ["photon_beam"],
        "parameters_schema": PARAMETERS,
    }
    site_id = engineer.named("/federation/facilities", FACILITY, "code")["facility_id"]
    adopted = {"method_id": engineer.create("/methods", method), "site_id": site_id}
    practice_id = engineer.create("/practices", {"name": "Tomography, imaging hutch B", **adopted})
    plan_id = engineer.create("/plans", {"name": "Alloy bars", "practice_id": practice_id, "asset_ids": asset_ids})
    engineer.patch(f"/plans/{plan_id}/default-parameters", {"default_parameters_patch": DEFAULTS})
    return plan_id


def written(engineer: Person, capability_id: str, data: Path, result: Path) -> dict[str, str]:
    """The recipes by which the beamline is worked."""
    contents: dict[str, tuple[list[recipes.Step], list[recipes.Step]]] = {
        "Darks and flats": (recipes.darks_and_flats(), recipes.SAMPLE_BACK),
        "Centre the rotation axis": (recipes.centring(data), recipes.CLOSED),
        "Focus the camera": (recipes.focusing(), recipes.CLOSED),
        "Projections": (recipes.projections(), recipes.CLOSED),
        "Reconstruct": (recipes.reconstruction(data, result), []),
        "Round of the hall": (recipes.round_of_the_hall(), []),
    }
    return {
        name: engineer.create(
            "/recipes", {"name": name, "capability_id": capability_id, "steps": steps, "closing_steps": closing}
        )
        for name, (steps, closing) in contents.items()
    }
