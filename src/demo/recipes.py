"""The recipes of the beamline, as an operator would write them: steps and closing steps."""

import sys
from pathlib import Path
from typing import Any

from baton.demo.optics import FULL_CURRENT

Step = dict[str, Any]

PROGRAM = sys.executable  # the interpreter that runs the programs of the recipes
PROJECTIONS = 110
FRAMES = 10  # how many darks and flats are averaged
CAMERA, WRITER = "bl7:cam1", "bl7:HDF1"


def setpoint(address: str, value: Any) -> Step:
    return {"kind": "setpoint", "address": address, "value": value}


def capture(address: str, name: str) -> Step:
    return {"kind": "capture", "address": address, "capture_name": name}


def binding(name: str) -> Step:
    """Return a reference to a value that the procedure, or its run, binds."""
    return {"__binding__": name}


def captured_value(name: str) -> Step:
    """Return a reference to a value that an earlier step captured."""
    return {"__capture__": name}


def program(name: str, *inputs: Path, **more: Any) -> Step:
    command = [PROGRAM, "-m", "baton.demo.programs", name]
    return {"kind": "compute", "command": command, "input_uris": [path.as_uri() for path in inputs], **more}


def record_stream(file: str, series: Any) -> list[Step]:
    streamed = {"detector": CAMERA, "dwell": binding("exposure"), "events": FRAMES}
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
    kept = [setpoint(f"{WRITER}:FileName", file)] if file else []
    return [
        setpoint(f"{CAMERA}:ImageMode", "Single"),
        setpoint(f"{CAMERA}:AcquireTime", binding("exposure")),
        setpoint(f"{WRITER}:FileWriteMode", "Single"),
        setpoint(f"{WRITER}:AutoSave", "Yes" if file else "No"),
        *kept,
        setpoint("bl7:shutter", "Open"),
    ]


CLOSED = [setpoint("bl7:shutter", "Closed")]


def darks_and_flats() -> list[Step]:
    return [
        setpoint("bl7:shutter", "Closed"),
        *record_stream("darks", binding("series")),
        setpoint("bl7:sample", "Out"),
        setpoint("bl7:shutter", "Open"),
        *record_stream("flats", binding("series")),
    ]


SAMPLE_BACK = [setpoint("bl7:sample", "In"), *CLOSED]


def centring(data: Path) -> list[Step]:
    """Run one pass of centring: two pictures half a turn apart, the offset, and the hexapod moved by it."""
    pictures = [data / name for name in ("darks_0000.h5", "flats_0000.h5", "centring_0000.h5", "centring_0001.h5")]
    return [
        *prepare_single("centring"),
        setpoint("bl7:rot", 0.0),
        *take_picture(0),
        setpoint("bl7:rot", 180.0),
        *take_picture(1),
        program("find-axis", *pictures, capture_name="offset"),
        capture("bl7:hexapod:x.RBV", "position"),
        program(
            "aim-axis",
            parameters={"position": captured_value("position"), "offset": captured_value("offset")},
            capture_name="target",
        ),
        setpoint("bl7:hexapod:x", captured_value("target")),
    ]


def focusing() -> list[Step]:
    return [
        *prepare_single(None),
        setpoint("bl7:focus", {"__steering__": "focus"}),
        setpoint(f"{CAMERA}:Acquire", 1),
        capture("bl7:Stats1:Sharpness_RBV", "sharpness"),
    ]


def projections() -> list[Step]:
    """Take a picture at each of many angles over half a turn, none of them without beam."""
    beam = {"kind": "within_tolerance", "expected": FULL_CURRENT, "tolerance": FULL_CURRENT / 2}
    wait_for_beam = {"kind": "check", "address": "SR:CURRENT", "criterion": beam, "timeout": 600.0}
    steps = prepare_single("projection")
    for number in range(PROJECTIONS):
        steps += [setpoint("bl7:rot", 180.0 * number / PROJECTIONS), wait_for_beam, *take_picture(number)]
    return steps


def reconstruction(data: Path, result: Path) -> list[Step]:
    inputs = (data / "darks_0001.h5", data / "flats_0001.h5", data)
    return [program("reconstruct", *inputs, output_uri=result.as_uri(), output_ref_name="slice")]


def round_of_the_hall() -> list[Step]:
    return [capture("SR:CURRENT", "ring_current"), capture("bl7:hutch:temperature", "hutch_temperature")]
