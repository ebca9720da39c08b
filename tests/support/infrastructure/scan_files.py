"""Scan files as instruments write them, in both layouts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy

CAPTURED = "2026-07-01T12:00:00+02:00"
ACQUISITION = "process/acquisition"


def write_data_exchange(
    path: Path,
    *,
    projections: int = 1500,
    flats: int | None = 20,
    darks: int | None = 20,
    angles: Any = None,
    unit: Any = None,
    start: str | None = CAPTURED,
    commanded: Mapping[str, Any] | None = None,
    frame: tuple[int, int] = (2, 2),
) -> Path:
    """Write a file in the Data CallScript layout; its frames are declared, and not written."""
    theta = numpy.linspace(0, 180, projections) if angles is None else angles
    with h5py.File(path, "w") as file:
        for name, count in (("data", projections), ("data_white", flats), ("data_dark", darks)):
            if count is not None:
                file.create_dataset(f"exchange/{name}", (count, *frame), dtype="u2")
        file["exchange/theta"] = theta
        if unit is not None:
            file["exchange/theta"].attrs["units"] = unit
        if start is not None:
            file[f"{ACQUISITION}/start_date"] = start
        for name, value in (commanded or {}).items():
            file[f"{ACQUISITION}/{name}"] = value
    return path


def write_nxtomo(
    path: Path, *, keys: Any = None, angles: Any = None, start: str | None = CAPTURED, frames: int | None = None
) -> Path:
    """Write a file in the NXtomo layout: two darks, three flats, five projections and an invalid frame."""
    image_keys = numpy.array([2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 3]) if keys is None else keys
    with h5py.File(path, "w") as file:
        entry = file.create_group("entry0000")
        entry.attrs["NX_class"] = "NXentry"
        entry["definition"] = "NXtomo"
        if start is not None:
            entry["start_time"] = start
        detector = entry.create_group("instrument/detector")
        detector.create_dataset("data", (len(image_keys) if frames is None else frames, 2, 2), dtype="u2")
        detector["image_key"] = image_keys
        detector["x_pixel_size"] = 6.5e-6
        detector["x_pixel_size"].attrs["units"] = "m"
        detector["y_pixel_size"] = 6.5
        entry["sample/rotation_angle"] = numpy.arange(len(image_keys)) * 10.0 if angles is None else angles
    return path
