"""The recipes of the beamline, as an operator would write them: which signals, in which order, and what closes them."""

import sys
from pathlib import Path
from typing import Any

from baton.demo.optics import FULL_CURRENT

Step = dict[str, Any]

PROGRAM = sys.executable
"""What runs our own programs: the interpreter that runs this."""

PROJECTIONS = 110
FRAMES = 10
"""Darks and flats that are averaged."""
CAMERA, WRITER = "bl7:cam1", "bl7:HDF1"
BEAM_IN_TIME = 600.0
"""Seconds that a projection waits for beam."""


def setpoint(address: str, value: Any) -> Step:
    return {"kind": "setpoint", "address": address, "value": value}


def capture(address: str, name: str) -> Step:
    return {"kind": "capture", "address": address, "capture_name": name}


def bound(name: str) -> Step:
    """A value that a procedure, or the run it is a phase of, gives the recipe."""
    return {"__binding__": name}


def captured(name: str) -> Step:
    """A value that an earlier step has found."""
    return {"__capture__": name}


def program(name: str, *inputs: Path, **more: Any) -> Step:
    """One of our own programs."""
    command = [PROGRAM, "-m", "baton.demo.programs", name]
    return {"kind": "compute", "command": command, "input_uris": [path.as_uri() for path in inputs], **more}


def recorded(file: str, series: Any) -> list[Step]:
    """Several pictures into one file."""
    streamed = {"detector": CAMERA, "dwell": bound("exposure"), "events": FRAMES}
    return [
        setpoint(f"{WRITER}:FileName", file),
        setpoint(f"{WRITER}:FileNumber", series),
        {"kind": "action", "name": "stream", "params": streamed},
    ]


def taken(number: int) -> list[Step]:
    """One picture into a file of its own. Taken once more after a crash, it only replaces itself."""
    return [setpoint(f"{WRITER}:FileNumber", number), setpoint(f"{CAMERA}:Acquire", 1)]


def single(file: str | None) -> list[Step]:
    """Prepare the camera for single pictures, and their file where they are kept."""
    kept = [setpoint(f"{WRITER}:FileName", file)] if file else []
    return [
        setpoint(f"{CAMERA}:ImageMode", "Single"),
        setpoint(f"{CAMERA}:AcquireTime", bound("exposure")),
        setpoint(f"{WRITER}:FileWriteMode", "Single"),
        setpoint(f"{WRITER}:AutoSave", "Yes" if file else "No"),
        *kept,
        setpoint("bl7:shutter", "Open"),
    ]


CLOSED = [setpoint("bl7:shutter", "Closed")]


def darks_and_flats() -> list[Step]:
    """Pictures without beam and without sample."""
    return [
        setpoint("bl7:shutter", "Closed"),
        *recorded("darks", bound("series")),
        setpoint("bl7:sample", "Out"),
        setpoint("bl7:shutter", "Open"),
        *recorded("flats", bound("series")),
    ]


SAMPLE_BACK = [setpoint("bl7:sample", "In"), *CLOSED]


def centring(data: Path) -> list[Step]:
    """One pass of centring: two pictures half a turn apart, the offset, and the hexapod moved by it."""
    pictures = [data / name for name in ("darks_0000.h5", "flats_0000.h5", "centring_0000.h5", "centring_0001.h5")]
    return [
        *single("centring"),
        setpoint("bl7:rot", 0.0),
        *taken(0),
        setpoint("bl7:rot", 180.0),
        *taken(1),
        program("find-axis", *pictures, capture_name="offset"),
        capture("bl7:hexapod:x.RBV", "position"),
        program(
            "aim-axis", parameters={"position": captured("position"), "offset": captured("offset")}, capture_name="target"
        ),
        setpoint("bl7:hexapod:x", captured("target")),
    ]


def focusing() -> list[Step]:
    """One look at a focus that somebody advises."""
    return [
        *single(None),
        setpoint("bl7:focus", {"__steering__": "focus"}),
        setpoint(f"{CAMERA}:Acquire", 1),
        capture("bl7:Stats1:Sharpness_RBV", "sharpness"),
    ]


def projections() -> list[Step]:
    """A picture at each of many angles over half a turn, none of them begun without beam."""
    beam = {"kind": "within_tolerance", "expected": FULL_CURRENT, "tolerance": FULL_CURRENT / 2}
    waiting = {"kind": "check", "address": "SR:CURRENT", "criterion": beam, "timeout": BEAM_IN_TIME}
    steps = single("projection")
    for number in range(PROJECTIONS):
        steps += [setpoint("bl7:rot", 180.0 * number / PROJECTIONS), waiting, *taken(number)]
    return steps


def reconstruction(data: Path, result: Path) -> list[Step]:
    """The slice, from everything the run has taken."""
    inputs = (data / "darks_0001.h5", data / "flats_0001.h5", data)
    return [program("reconstruct", *inputs, output_uri=result.as_uri(), output_ref_name="slice")]


def round_of_the_hall() -> list[Step]:
    """What is looked at every so often, whoever is there."""
    return [capture("SR:CURRENT", "ring_current"), capture("bl7:hutch:temperature", "hutch_temperature")]
