"""The programs that recipes run, with their task in `CONDUCT_*`: `python -m baton.demo.programs <name>`. A measurement is
printed as the last line, a file is written to `CONDUCT_OUTPUT_URI`."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import h5py
import numpy as np

from baton.demo.optics import FULL_CURRENT, Image, positions

LEAST_TRANSMISSION = 1e-3


def absorption(pictures: Image, darks: Image, flats: Image) -> Image:
    """Return how much of the beam the sample absorbed: the logarithm of flats over pictures, both without darks."""
    dark = darks.mean(axis=0)
    beam = np.clip(flats.mean(axis=0) - dark, 1, None)
    absorbed: Image = -np.log(np.clip((pictures - dark) / beam, LEAST_TRANSMISSION, None))
    return absorbed


def axis_offset(before: Image, after: Image) -> float:
    """Return how many pixels the rotation axis is off the middle. Half a turn mirrors a projection at the axis, so `after`
    mirrored at the middle is `before` shifted by twice the offset."""
    size = 2 * len(before)
    likeness = np.fft.irfft(np.fft.rfft(before, size) * np.conj(np.fft.rfft(after[::-1], size)), size)
    best = int(np.argmax(likeness))
    low, top, high = (likeness[(best + step) % size] for step in (-1, 0, 1))
    between = 0.5 * (low - high) / (low - 2 * top + high)
    shift = best - size if best > size // 2 else best
    return float(shift + between) / 2


def reconstruct_slice(projections: Image, angles: Image) -> Image:
    """Return the sample cut across, by filtered back projection; the rotation axis is in the middle of each projection."""
    count = projections.shape[1]
    across = positions(count)
    x, y = np.meshgrid(across, -across)
    density = np.zeros((count, count))
    frequencies = np.fft.rfftfreq(2 * count, 2 / count)  # each is weighted by itself and the highest, mostly noise, damped
    weights = frequencies * np.cos(np.pi * np.linspace(0, 0.5, len(frequencies)))
    filtered = np.fft.irfft(np.fft.rfft(projections, 2 * count, axis=1) * weights, 2 * count, axis=1)[:, :count]
    for projection, angle in zip(filtered, np.radians(angles), strict=True):
        density += np.interp(x * np.cos(angle) + y * np.sin(angle), across, projection)
    density *= np.pi / len(angles)
    density[x**2 + y**2 > 1] = 0
    return density


def likeness(one: Image, other: Image) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


NOMINAL_PIXEL = 0.0075  # by the data sheet; really it is more, so centring takes several passes
LEAST_CURRENT = FULL_CURRENT / 2  # milliamperes below which a picture counts as taken without beam


def find_axis() -> None:
    """Measure how far the rotation axis is off the middle, from darks, flats and two pictures half a turn apart."""
    darks, flats, *turned = map(pictures_in, inputs())
    before, after = (absorption(pictures, darks, flats)[0].mean(axis=0) for pictures in turned)
    print_measurement("offset", axis_offset(before, after), "px")


def aim_axis() -> None:
    given: dict[str, float] = json.loads(os.environ["CONDUCT_PARAMETERS"])
    print_measurement("target", given["position"] - given["offset"] * NOMINAL_PIXEL, "mm")


def assemble() -> None:
    """Put darks, flats and a directory of projections into one scan of the Data Exchange layout. Projections without beam
    are left out."""
    darks, flats, projections = inputs()
    taken = [read_file(path) for path in sorted(projections.glob("projection_*.h5"))]
    lit = [one for one in taken if one["currents"][0] > LEAST_CURRENT]
    with h5py.File(file_path(os.environ["CONDUCT_OUTPUT_URI"]), "w") as file:
        exchange = file.create_group("exchange")
        exchange["data"] = np.array([one["pictures"][0] for one in lit])
        exchange["data_dark"], exchange["data_white"] = pictures_in(darks), pictures_in(flats)
        exchange["theta"] = np.array([one["angles"][0] for one in lit])
        exchange["theta"].attrs["units"] = "degree"
        file.attrs["implements"] = "exchange"
        file.attrs["without_beam"] = len(taken) - len(lit)


def reconstruct() -> None:
    """Reconstruct a slice from a scan."""
    (scan,) = inputs()
    with h5py.File(scan) as file:
        taken = {name: np.asarray(file["exchange"][name][()], dtype=np.float64) for name in file["exchange"]}
        without_beam = int(file.attrs["without_beam"])
    shadows = absorption(taken["data"], taken["data_dark"], taken["data_white"]).mean(axis=1)
    with h5py.File(file_path(os.environ["CONDUCT_OUTPUT_URI"]), "w") as file:
        file["slice"], file["shadows"], file["angles"] = reconstruct_slice(shadows, taken["theta"]), shadows, taken["theta"]
        file.attrs["projections"], file.attrs["without_beam"] = len(shadows), without_beam


def read_file(path: Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}


def pictures_in(path: Path) -> Image:
    return np.asarray(read_file(path)["pictures"], dtype=np.float64)


def inputs() -> list[Path]:
    return [file_path(uri) for uri in json.loads(os.environ["CONDUCT_INPUT_URIS"])]


def file_path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def print_measurement(name: str, value: float, units: str) -> None:
    print(json.dumps({"measurements": [{"name": name, "value": value, "units": units}]}))


PROGRAMS: dict[str, Callable[[], None]] = {
    "find-axis": find_axis,
    "aim-axis": aim_axis,
    "assemble": assemble,
    "reconstruct": reconstruct,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
