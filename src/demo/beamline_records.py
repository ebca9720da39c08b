"""The records of the beamline: its equipment, clearances, plan, and its recipes, as an operator would write them: there
`__binding__` refers to a value that the procedure or its run binds, `__capture__` to one that an earlier step captured."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from baton.demo.optics import FULL_CURRENT
from baton.demo.staff import BEAMLINE, Staff, UserClient

Step = dict[str, Any]
PROGRAM = sys.executable  # the interpreter that runs the programs of the recipes
PROJECTIONS = 110
FRAMES = 10  # how many darks and flats are averaged
CAMERA, WRITER = "bl7:cam1", "bl7:HDF1"
SCAN_FILE = "scan.h5"
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
    until = datetime.now(UTC) + SHORT_VALIDITY
    short = activate_clearance(staff.safety_officer, template_id, "Visitor's sample, this evening", unit_id, until)
    capability_id = engineer.create("/capabilities", BEAMLINE["capability"] | SCHEMA)
    plan_id = define_plan(engineer, capability_id, list(devices.values()))
    disk_id = engineer.create("/supplies", {"name": "Disk of beamline 7", "kind": "Storage", "facility_code": FACILITY})
    registration = {"supply_id": disk_id, "capturing_asset_id": devices["Camera"], "raw_outputs": ["scan"]}
    engineer.post(f"/plans/{plan_id}/set-data-registration", {"data_registration": registration})
    recipe_ids = define_recipes(engineer, capability_id, data, result)
    return BeamlineIds(hutch_id, ring_id, unit_id, sample_id, plan_id, short, recipe_ids)


def register_devices(engineer: UserClient, hutch_id: str) -> tuple[str, dict[str, str]]:
    """Register the beamline in its hutch and its devices, which are of models of the starter catalog; return the ids.

    Each device owns its signals, and the beamline the rest of them, such as the shutter's.
    """
    unit = {"name": "Imaging beamline 7", "tier": "Unit", "facility_code": FACILITY, "located_in_enclosure_id": hutch_id}
    unit_id = engineer.create("/assets", {**unit, "alternate_identifiers": [{"kind": "EPICS_PV", "value": "bl7"}]})
    engineer.post(f"/assets/{unit_id}/activate")
    devices = {}
    for name, model in BEAMLINE["devices"].items():
        identifiers = [{"kind": "EPICS_PV", "value": signal} for signal in model["signals"]]
        model_id = engineer.wait_for_row("/models", model["part_number"], "part_number")["model_id"]
        device = {"name": name, "tier": "Device", "parent_id": unit_id, "model_id": model_id}
        devices[name] = engineer.create("/assets", {**device, "alternate_identifiers": identifiers})
        engineer.post(f"/assets/{devices[name]}/activate")
    return unit_id, devices


def activate_clearance(officer: UserClient, template: str, title: str, unit: str, until: datetime | None = None) -> str:
    """Bring a clearance through its review into force, and return its id."""
    bindings = [{"kind": "Asset", "id": unit}]
    clearance: dict[str, Any] = {"template_id": template, "facility_code": FACILITY, "title": title, "bindings": bindings}
    validity = {"valid_until": until.isoformat()} if until else {}
    clearance_id = officer.create("/clearances", {**clearance, **validity})
    review = {"role": "BeamlineScientist", "decision": "Approved", "decided_at": datetime.now(UTC).isoformat()}
    bodies = {"start-review": {"first_reviewer_role": review["role"]}, "append-review-step": {"step_index": 0, **review}}
    for verb in ("submit", "start-review", "append-review-step", "approve", "activate"):
        officer.post(f"/clearances/{clearance_id}/{verb}", bodies.get(verb))
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
    contents: dict[str, tuple[list[Step], list[Step]]] = {
        "Darks and flats": (DARKS_AND_FLATS, SAMPLE_BACK),
        "Centre the rotation axis": (centring_steps(data), CLOSED),
        "Focus the camera": (FOCUSING, CLOSED),
        "Projections": (projections(data), CLOSED),
        "Reconstruct": (reconstruction(data, result), []),
        "Round of the hall": (ROUND_OF_THE_HALL, []),
    }
    recipe = {"capability_id": capability_id}
    return {
        name: engineer.create("/recipes", {"name": name, **recipe, "steps": steps, "closing_steps": closing})
        for name, (steps, closing) in contents.items()
    }


def setpoint(address: str, value: Any) -> Step:
    return {"kind": "setpoint", "address": address, "value": value}


def capture(address: str, name: str) -> Step:
    return {"kind": "capture", "address": address, "capture_name": name}


def program(name: str, *inputs: Path, **more: Any) -> Step:
    command = [PROGRAM, "-m", "baton.demo.programs", name]
    return {"kind": "compute", "command": command, "input_uris": [path.as_uri() for path in inputs], **more}


def record_stream(file: str, series: Any) -> list[Step]:
    streamed = {"detector": CAMERA, "dwell": {"__binding__": "exposure"}, "events": FRAMES}
    return [
        setpoint(f"{WRITER}:FileName", file),
        setpoint(f"{WRITER}:FileNumber", series),
        {"kind": "action", "name": "stream", "params": streamed},
    ]


def take_picture(number: int) -> list[Step]:
    """Return steps that take one picture into its own file; repeated after a crash, they only replace it."""
    return [setpoint(f"{WRITER}:FileNumber", number), setpoint(f"{CAMERA}:Acquire", 1)]


def prepare_single(file: str | None) -> list[Step]:
    """Return steps that prepare the camera for single pictures, with a file name if they are kept."""
    return [
        setpoint(f"{CAMERA}:ImageMode", "Single"),
        setpoint(f"{CAMERA}:AcquireTime", {"__binding__": "exposure"}),
        setpoint(f"{WRITER}:FileWriteMode", "Single"),
        setpoint(f"{WRITER}:AutoSave", "Yes" if file else "No"),
        *([setpoint(f"{WRITER}:FileName", file)] if file else []),
        setpoint("bl7:shutter", "Open"),
    ]


CLOSED = [setpoint("bl7:shutter", "Closed")]
DARKS_AND_FLATS = [
    setpoint("bl7:shutter", "Closed"),
    *record_stream("darks", {"__binding__": "series"}),
    setpoint("bl7:sample", "Out"),
    setpoint("bl7:shutter", "Open"),
    *record_stream("flats", {"__binding__": "series"}),
]
SAMPLE_BACK = [setpoint("bl7:sample", "In"), *CLOSED]


def centring_steps(data: Path) -> list[Step]:
    """Run one pass of centring: two pictures half a turn apart, the offset, and the hexapod moved by it."""
    pictures = [data / name for name in ("darks_0000.h5", "flats_0000.h5", "centring_0000.h5", "centring_0001.h5")]
    captured = {name: {"__capture__": name} for name in ("position", "offset")}
    return [
        *prepare_single("centring"),
        setpoint("bl7:rot", 0.0),
        *take_picture(0),
        setpoint("bl7:rot", 180.0),
        *take_picture(1),
        program("find-axis", *pictures, capture_name="offset"),
        capture("bl7:hexapod:x.RBV", "position"),
        program("aim-axis", parameters=captured, capture_name="target"),
        setpoint("bl7:hexapod:x", {"__capture__": "target"}),
    ]


FOCUSING = [
    *prepare_single(None),
    setpoint("bl7:focus", {"__steering__": "focus"}),
    setpoint(f"{CAMERA}:Acquire", 1),
    capture("bl7:Stats1:Sharpness_RBV", "sharpness"),
]


def projections(data: Path) -> list[Step]:
    """Take a picture at each of many angles over half a turn, none of them without beam, and put them into one scan."""
    beam = {"kind": "within_tolerance", "expected": FULL_CURRENT, "tolerance": FULL_CURRENT / 2}
    wait_for_beam = {"kind": "check", "address": "SR:CURRENT", "criterion": beam, "timeout": 600.0}
    steps = prepare_single("projection")
    for number in range(PROJECTIONS):
        steps += [setpoint("bl7:rot", 180.0 * number / PROJECTIONS), wait_for_beam, *take_picture(number)]
    pictures = (data / "darks_0001.h5", data / "flats_0001.h5", data)
    output = {"output_uri": (data / SCAN_FILE).as_uri(), "output_ref_name": "scan"}
    return [*steps, program("assemble", *pictures, **output)]


def reconstruction(data: Path, result: Path) -> list[Step]:
    return [program("reconstruct", data / SCAN_FILE, output_uri=result.as_uri(), output_ref_name="slice")]


ROUND_OF_THE_HALL = [capture("SR:CURRENT", "ring_current"), capture("bl7:hutch:temperature", "hutch_temperature")]
