"""The programs that recipes of the beamline run: `python -m baton.demo.programs <name>`, with their task in the environment.

Each is given its pictures as `CONDUCT_INPUT_URIS` and its numbers as `CONDUCT_PARAMETERS`. One that measures prints what
it found as its last line, one that makes something writes it to `CONDUCT_OUTPUT_URI`.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import h5py
import numpy as np

from baton.demo.optics import FULL_CURRENT
from baton.demo.phantom import Image
from baton.demo.tomography import absorption, axis_offset, slice_of

NOMINAL_PIXEL = 0.0075
"""Millimetres that a pixel shows by the objective's data sheet. It really shows more, so centring takes several passes."""
LEAST_CURRENT = FULL_CURRENT / 2
"""Milliamperes below which a picture was taken without beam and shows nothing."""


def find_axis() -> None:
    """How far the rotation axis is off the middle: darks, flats and two pictures half a turn apart."""
    darks, flats, *turned = map(pictures_in, inputs())
    before, after = (absorption(pictures, darks, flats)[0].mean(axis=0) for pictures in turned)
    measured("offset", axis_offset(before, after), "px")


def aim_axis() -> None:
    """Where the hexapod must go for the axis to be in the middle, by all that is known."""
    given = parameters()
    measured("target", given["position"] - given["offset"] * NOMINAL_PIXEL, "mm")


def reconstruct() -> None:
    """The sample cut across: darks, flats and a directory of projections, of which those without beam are left out."""
    darks, flats, projections = inputs()
    taken = [read(path) for path in sorted(projections.glob("projection_*.h5"))]
    lit = [one for one in taken if one["currents"][0] > LEAST_CURRENT]
    angles = np.array([one["angles"][0] for one in lit])
    pictures = np.array([one["pictures"][0] for one in lit])
    shadows = absorption(pictures, pictures_in(darks), pictures_in(flats)).mean(axis=1)
    with h5py.File(output(), "w") as file:
        file["slice"], file["shadows"], file["angles"] = slice_of(shadows, angles), shadows, angles
        file.attrs["projections"], file.attrs["without_beam"] = len(lit), len(taken) - len(lit)


def read(path: Path) -> dict[str, Any]:
    """Everything in a file of pictures."""
    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}


def pictures_in(path: Path) -> Image:
    """The pictures in a file."""
    found: Image = read(path)["pictures"].astype(float)
    return found


def inputs() -> list[Path]:
    """What the program is to work on."""
    return [Path(unquote(urlsplit(uri).path)) for uri in json.loads(os.environ["CONDUCT_INPUT_URIS"])]


def output() -> Path:
    """Where the program is to write."""
    return Path(unquote(urlsplit(os.environ["CONDUCT_OUTPUT_URI"]).path))


def parameters() -> dict[str, float]:
    """The numbers that the program is given."""
    given: dict[str, float] = json.loads(os.environ["CONDUCT_PARAMETERS"])
    return given


def measured(name: str, value: float, units: str) -> None:
    """Say what was found, as the service reads it."""
    print(json.dumps({"measurements": [{"name": name, "value": value, "units": units}]}))


PROGRAMS: dict[str, Callable[[], None]] = {"find-axis": find_axis, "aim-axis": aim_axis, "reconstruct": reconstruct}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
