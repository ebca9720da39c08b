"""The records of the beamline: its equipment, clearances, plan, and its recipes, as an operator would write them: there
`__binding__` refers to a value that the procedure or its run binds, `__capture__` to one that an earlier step captured."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

from baton.beamline.commands import apply_content
from baton.beamline.file import BeamlineFile, ClearanceEntry
from baton.beamline.reading import LoadedFile, Source, read_text
from baton.demo.optics import FULL_CURRENT
from baton.demo.staff import BEAMLINE, Staff, StaffMember, StageError

Step = dict[str, Any]
PROGRAM = sys.executable  # the interpreter that runs the programs of the recipes
PROJECTIONS = 110
FRAMES = 10  # how many darks and flats are averaged
CAMERA, WRITER = "bl7:cam1", "bl7:HDF1"
SCAN_FILE, SLICE_FILE = "{date}_{run}_scan.h5", "{subject}_{run}_slice.h5"  # each run has its own
SETTINGS = BEAMLINE["settings"]
FACILITY, UNIT, VISITOR = SETTINGS["SELF_FACILITY_CODE"], "Imaging beamline 7", "Visitor's sample, this evening"
STAGE, PLAN = "Rotation stage", "Alloy bars"
SHORT_VALIDITY = timedelta(seconds=45)  # of the clearance of a visitor's sample: it ends before the night does


@dataclass(frozen=True)
class BeamlineIds:
    hutch_id: UUID
    ring_id: UUID
    unit_id: UUID
    sample_id: UUID
    next_sample_id: UUID
    plan_id: UUID
    short_clearance_id: UUID
    recipe_ids: dict[str, UUID]


def register_beamline(staff: Staff, data: Path) -> BeamlineIds:
    """Put the beamline on record, from its files; the devices are of models of the starter catalog."""
    engineer, officer = staff.engineer, staff.safety_officer
    [hutch], [ring] = SETTINGS["MONITORED_ENCLOSURES"], SETTINGS["MONITORED_SUPPLIES"]
    hutch_id = engineer.wait_for_row("list_enclosures", name=hutch).enclosure_id
    ring_id = engineer.wait_for_row("list_supplies", name=ring["name"]).supply_id
    engineer.mark_supply_available(ring_id, reason="100 mA, looked at in the control room")
    apply(engineer, shipped_file("beamline.yaml"), recipes_file(data))
    sample_id = engineer.register_subject(name="Alloy bar 7").subject_id
    engineer.mount_subject(sample_id, asset_id=STAGE, reason="loaded for the night")
    next_sample_id = engineer.register_subject(name="Alloy bar 8").subject_id
    stage_id = engineer.wait_for_row("list_assets", name=STAGE).asset_id
    engineer.register_caution(target={"kind": "Asset", "id": str(stage_id)}, **BEAMLINE["caution"])
    apply(officer, shipped_file("clearances.yaml"), visitor_file(datetime.now(UTC) + SHORT_VALIDITY))
    return BeamlineIds(
        hutch_id,
        ring_id,
        engineer.wait_for_row("list_assets", name=UNIT).asset_id,
        sample_id,
        next_sample_id,
        engineer.wait_for_row("list_plans", name=PLAN).plan_id,
        officer.wait_for_row("list_clearances", name=VISITOR).clearance_id,
        {row.name: row.recipe_id for row in engineer.every("list_recipes")},
    )


def apply(member: StaffMember, *files: LoadedFile) -> None:
    """Apply beamline files as somebody; what is refused ends the night."""
    with redirect_stdout(StringIO()) as said:
        code = apply_content(member, files)
    if code:
        raise StageError(said.getvalue())


def shipped_file(name: str) -> LoadedFile:
    return read_text(Source(name, resources.files(__package__).joinpath(name).read_text()))


def visitor_file(until: datetime) -> LoadedFile:
    """Return the form of a visitor's sample, which ends before the night does."""
    form = ClearanceEntry(
        title=VISITOR, template="ESAF", facility=FACILITY, assets=(UNIT,), valid_until=until, in_force=True
    )
    return LoadedFile(Source("visitor", ""), BeamlineFile(clearances=(form,)))


def recipes_file(data: Path) -> LoadedFile:
    contents: dict[str, tuple[list[Step], list[Step]]] = {
        "Darks and flats": (DARKS_AND_FLATS, SAMPLE_BACK),
        "Centre the rotation axis": (centring_steps(data), CLOSED),
        "Focus the camera": (FOCUSING, CLOSED),
        "Projections": (projections(data), CLOSED),
        "Reconstruct": (reconstruction(data), []),
        "Round of the hall": (ROUND_OF_THE_HALL, []),
    }
    recipes = [
        {
            "name": name,
            "capability": "Absorption tomography",
            "steps": steps,
            "closing_steps": closing,
            **PLOTS.get(name, {}),
        }
        for name, (steps, closing) in contents.items()
    ]
    return LoadedFile(Source("recipes", ""), BeamlineFile.model_validate({"recipes": recipes}))


def setpoint(address: str, value: object) -> Step:
    return {"kind": "setpoint", "address": address, "value": value}


def capture(address: str, name: str) -> Step:
    return {"kind": "capture", "address": address, "capture_name": name}


def program(name: str, *input_uris: str, **more: object) -> Step:
    command = [PROGRAM, "-m", "baton.demo.programs", name]
    return {"kind": "compute", "command": command, "input_uris": input_uris, **more}


def uri_of(data: Path, file: str) -> str:
    """Return the address of a data file, whose name may hold template words."""
    return f"{data.as_uri()}/{file}"


def record_stream(file: str, series: object) -> list[Step]:
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
    *record_stream("darks_{run}", {"__binding__": "series"}),
    setpoint("bl7:sample", "Out"),
    setpoint("bl7:shutter", "Open"),
    *record_stream("flats_{run}", {"__binding__": "series"}),
]
SAMPLE_BACK = [setpoint("bl7:sample", "In"), *CLOSED]


def centring_steps(data: Path) -> list[Step]:
    """Run one pass of centring: two pictures half a turn apart, the offset, and the hexapod moved by it."""
    names = ("darks_no-run_0000.h5", "flats_no-run_0000.h5", "centring_0000.h5", "centring_0001.h5")
    pictures = [uri_of(data, name) for name in names]
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


PLOTS = {"Projections": {"plot": {"x": "bl7:rot", "y": ["brightness"], "kind": "line"}}}


def projections(data: Path) -> list[Step]:
    """Take a picture at each of many angles over half a turn, none of them without beam, and put them into one scan."""
    beam = {"kind": "within_tolerance", "expected": FULL_CURRENT, "tolerance": FULL_CURRENT / 2}
    wait_for_beam = {"kind": "check", "address": "SR:CURRENT", "criterion": beam, "timeout": 600.0}
    steps = prepare_single("projection")
    for number in range(PROJECTIONS):
        steps += [setpoint("bl7:rot", 180.0 * number / PROJECTIONS), wait_for_beam, *take_picture(number)]
        steps.append(capture("bl7:Stats1:MeanValue_RBV", f"brightness_{number:03}"))
    pictures = (uri_of(data, "darks_{run}_0001.h5"), uri_of(data, "flats_{run}_0001.h5"), data.as_uri())
    output = {"output_uri": uri_of(data, SCAN_FILE), "output_ref_name": "scan"}
    return [*steps, program("assemble", *pictures, **output)]


def reconstruction(data: Path) -> list[Step]:
    return [program("reconstruct", uri_of(data, SCAN_FILE), output_uri=uri_of(data, SLICE_FILE), output_ref_name="slice")]


ROUND_OF_THE_HALL = [capture("SR:CURRENT", "ring_current"), capture("bl7:hutch:temperature", "hutch_temperature")]
