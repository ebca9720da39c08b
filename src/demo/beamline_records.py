"""The records of the beamline: its equipment, clearances, plan and recipes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from baton.demo import recipes
from baton.demo.staff import BEAMLINE, Staff, UserClient

SETTINGS = BEAMLINE["settings"]
FACILITY, SCHEMA = SETTINGS["SELF_FACILITY_CODE"], {"parameters_schema": BEAMLINE["parameters_schema"]}
SHORT_VALIDITY = timedelta(seconds=45)  # of the clearance of a visitor's sample: it ends before the night does


@dataclass(frozen=True)
class BeamlineIds:
    hutch_id: str
    ring_id: str
    unit_id: str
    sample_id: str
    plan_id: str
    short_clearance_id: str
    recipe_ids: dict[str, str]


def register_beamline(staff: Staff, data: Path, result: Path) -> BeamlineIds:
    engineer = staff.engineer
    [hutch], [ring] = SETTINGS["MONITORED_ENCLOSURES"], SETTINGS["MONITORED_SUPPLIES"]
    hutch_id = engineer.wait_for_row("/enclosures", hutch)["enclosure_id"]
    ring_id = engineer.wait_for_row("/supplies", ring["name"])["supply_id"]
    engineer.post(f"/supplies/{ring_id}/mark-available", {"reason": "100 mA, looked at in the control room"})
    unit_id, devices = register_devices(engineer, hutch_id)
    sample_id = engineer.create("/subjects", {"name": "Alloy bar 7"})
    engineer.post(f"/subjects/{sample_id}/mount", {"asset_id": devices["Rotation stage"], "reason": "loaded for the night"})
    engineer.create("/cautions", {"target": {"kind": "Asset", "id": devices["Rotation stage"]}, **BEAMLINE["caution"]})
    template_id = staff.safety_officer.wait_for_row("/clearance-templates", "ESAF", "code")["template_id"]
    activate_clearance(staff.safety_officer, template_id, "Tomography of alloy bars", unit_id)
    short = activate_clearance(
        staff.safety_officer, template_id, "Visitor's sample, this evening", unit_id, datetime.now(UTC) + SHORT_VALIDITY
    )
    capability_id = engineer.create("/capabilities", BEAMLINE["capability"] | SCHEMA)
    plan_id = define_plan(engineer, capability_id, list(devices.values()))
    recipe_ids = define_recipes(engineer, capability_id, data, result)
    return BeamlineIds(hutch_id, ring_id, unit_id, sample_id, plan_id, short, recipe_ids)


def register_devices(engineer: UserClient, hutch_id: str) -> tuple[str, dict[str, str]]:
    """Register the beamline in its hutch and its devices, which are of models of the starter catalog; return the ids."""
    unit = {"name": "Imaging beamline 7", "tier": "Unit", "facility_code": FACILITY, "located_in_enclosure_id": hutch_id}
    unit_id = engineer.create("/assets", unit)
    engineer.post(f"/assets/{unit_id}/activate")
    devices = {}
    for name, model in BEAMLINE["devices"].items():
        identifiers = [{"kind": "EPICS_PV", "value": model["signal"]}]
        model_id = engineer.wait_for_row("/models", model["part_number"], "part_number")["model_id"]
        device = {"name": name, "tier": "Device", "parent_id": unit_id, "model_id": model_id}
        devices[name] = engineer.create("/assets", {**device, "alternate_identifiers": identifiers})
        engineer.post(f"/assets/{devices[name]}/activate")
    return unit_id, devices


def activate_clearance(
    safety_officer: UserClient, template_id: str, title: str, unit_id: str, until: datetime | None = None
) -> str:
    """Bring a clearance through its review into force, and return its id."""
    bindings = [{"kind": "Asset", "id": unit_id}]
    clearance: dict[str, Any] = {"template_id": template_id, "facility_code": FACILITY, "title": title, "bindings": bindings}
    validity = {"valid_until": until.isoformat()} if until else {}
    clearance_id = safety_officer.create("/clearances", {**clearance, **validity})
    review = {"role": "BeamlineScientist", "decision": "Approved", "decided_at": datetime.now(UTC).isoformat()}
    for verb, body in (
        ("submit", {}),
        ("start-review", {"first_reviewer_role": "BeamlineScientist"}),
        ("append-review-step", {"step_index": 0, **review}),
        ("approve", {}),
        ("activate", {}),
    ):
        safety_officer.post(f"/clearances/{clearance_id}/{verb}", body)
    return clearance_id


def define_plan(engineer: UserClient, capability_id: str, asset_ids: list[str]) -> str:
    families = sorted(engineer.wait_for_row("/families", name)["family_id"] for name in BEAMLINE["families"])
    method = {**BEAMLINE["method"], **SCHEMA, "capability_id": capability_id, "needed_family_ids": families}
    site_id = engineer.wait_for_row("/federation/facilities", FACILITY, "code")["facility_id"]
    adopted = {"method_id": engineer.create("/methods", method), "site_id": site_id}
    practice_id = engineer.create("/practices", {"name": "Tomography, imaging hutch B", **adopted})
    plan_id = engineer.create("/plans", {"name": "Alloy bars", "practice_id": practice_id, "asset_ids": asset_ids})
    engineer.patch(f"/plans/{plan_id}/default-parameters", {"default_parameters_patch": BEAMLINE["default_parameters"]})
    return plan_id


def define_recipes(engineer: UserClient, capability_id: str, data: Path, result: Path) -> dict[str, str]:
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
