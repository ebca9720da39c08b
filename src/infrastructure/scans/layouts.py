"""The two layouts of scan files, and what is read of each. Frames are never read: their number is the length of an axis."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy

from baton.infrastructure.scans.hdf5 import Hdf5File, Numbers, UnusableError, factor, finite

T = TypeVar("T")

DEGREE = "degree"
PHASES = {"Start": 1, "End": 1, "Both": 2, "None": 0}  # how often flats or darks are taken in a mode
IMAGE_KINDS = ("projection_count", "flat_count", "dark_count", "invalid_count")  # in the order of their image keys


class ScanFaultError(Exception):
    """A file is no scan that can be ingested, for one of the reasons of the refusal."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def describe(file: Hdf5File) -> dict[str, Any]:
    """Return what a scan file says of itself; what it does not tell is left out."""
    frames = require_usable("/exchange/data", partial(file.frame_count, "/exchange/data"))
    told = _nxtomo(file) if frames is None else _data_exchange(file, frames)
    return {name: value for name, value in told.items() if value is not None}


def require_usable(name: str, read: Callable[[], T], reason: str = "unrecognized") -> T:
    """Return something that the layout needs, or say what is wrong with it."""
    try:
        return read()
    except UnusableError as fault:
        raise ScanFaultError(reason, f"{name} {fault}; write the file again.") from None


def _data_exchange(file: Hdf5File, projections: int) -> dict[str, object]:
    flats, darks = (
        require_usable(path, partial(file.frame_count, path)) or 0
        for path in ("/exchange/data_white", "/exchange/data_dark")
    )
    angles = _angles(file, "/exchange/theta")
    if len(angles) != projections:
        detail = f"/exchange/theta has {len(angles)} angles for {projections} projections; write one for each, then ingest."
        raise ScanFaultError("structurally_incomplete", detail)
    acquisition = "/process/acquisition"
    commanded = file.count(f"{acquisition}/rotation/num_angles")
    quantities, unclear = _quantities(
        file,
        energy=("/measurement/instrument/monochromator/energy", "keV"),
        pixel_size=("/measurement/instrument/detector/pixel_size", "um"),
    )
    return {
        "layout": "DataExchange",
        "projection_count": projections,
        "flat_count": flats,
        "dark_count": darks,
        "invalid_count": 0,
        **_angle_facts(angles),
        "commanded_projection_count": commanded,
        "commanded_flat_count": _commanded_count(file, f"{acquisition}/flat_fields", "flat"),
        "commanded_dark_count": _commanded_count(file, f"{acquisition}/dark_fields", "dark"),
        "start_date_raw": file.text(f"{acquisition}/start_date"),
        "quantities": quantities,
        "unchecked": _unchecked_parts(file.unit("/exchange/theta"), commanded, unclear),
        "frames": file.frame_layout("/exchange/data"),
    }


def _commanded_count(file: Hdf5File, group: str, kind: str) -> int | None:
    """Return how many flats or darks were asked for: their number, as often as they are taken."""
    number, mode = file.count(f"{group}/num_{kind}_fields"), file.text(f"{group}/{kind}_field_mode")
    return number * PHASES[mode] if number is not None and mode in PHASES else None


def _nxtomo(file: Hdf5File) -> dict[str, object]:
    names = require_usable("The top of the file", file.group_names)
    entries = [name for name in names if require_usable("An entry at the top of the file", partial(_is_nxtomo, file, name))]
    if not entries:
        detail = "It has neither /exchange/data nor an entry of the definition NXtomo; ingest takes these two layouts."
        raise ScanFaultError("unrecognized", detail)
    if len(entries) > 1:
        raise ScanFaultError("unrecognized", "It has several entries of the definition NXtomo; ingest takes files with one.")
    entry = file.find(entries[0])
    frames = require_usable("instrument/detector/data", partial(file.frame_count, "instrument/detector/data", entry))
    if frames is None:
        raise ScanFaultError("unrecognized", "instrument/detector/data is missing from the NXtomo entry; write it first.")
    keys = require_usable("instrument/detector/image_key", partial(file.numbers, "instrument/detector/image_key", entry))
    if keys is None or len(keys) != frames:
        detail = "instrument/detector/image_key is missing, or is not one key for each frame; write the file again."
        raise ScanFaultError("unrecognized", detail)
    if not numpy.isin(keys, range(len(IMAGE_KINDS))).all():
        raise ScanFaultError(
            "unrecognized", "instrument/detector/image_key holds another key than 0, 1, 2 or 3; correct it."
        )
    angles = _angles(file, "sample/rotation_angle", entry)
    if len(angles) != frames:
        detail = "sample/rotation_angle is not one angle for each frame; write the angles, then ingest the file."
        raise ScanFaultError("structurally_incomplete", detail)
    quantities, unclear = _quantities(
        file,
        entry,
        pixel_size_x=("instrument/detector/x_pixel_size", "um"),
        pixel_size_y=("instrument/detector/y_pixel_size", "um"),
    )
    return {
        "layout": "NXtomo",
        **{name: int((keys == key).sum()) for key, name in enumerate(IMAGE_KINDS)},
        **_angle_facts(angles[keys == 0]),
        "start_date_raw": file.text("start_time", entry),
        "quantities": quantities,
        "unchecked": _unchecked_parts(file.unit("sample/rotation_angle", entry), None, unclear),
        "frames": file.frame_layout(f"/{entries[0]}/instrument/detector/data"),
    }


def _is_nxtomo(file: Hdf5File, name: str) -> bool:
    try:
        return file.text("definition", file.find(name)) == "NXtomo"
    except UnusableError:
        return False  # a link to elsewhere is no entry of this file


def _angles(file: Hdf5File, path: str, entry: object = None) -> Numbers:
    """Return angles in degrees; those without a unit are in degrees already."""

    def read() -> Numbers | None:
        values = file.numbers(path, entry)
        if values is None:
            return None
        unit = file.unit(path, entry)
        return values if unit is None else finite(values * factor(unit, DEGREE))

    try:
        angles = require_usable(path, read, "structurally_incomplete")
    except (OSError, RuntimeError, ValueError, KeyError) as error:  # what h5py makes of the library's failures
        detail = f"{path} cannot be read; the file is damaged, or still being written."
        raise ScanFaultError("structurally_incomplete", detail) from error
    if angles is None:
        detail = f"{path} is missing; write the angles of the projections, then ingest the file."
        raise ScanFaultError("structurally_incomplete", detail)
    return angles


def _angle_facts(angles: Numbers) -> dict[str, object]:
    if not len(angles):
        return {"projection_angle_count": 0}
    return {
        "projection_angle_count": len(angles),
        "projection_angle_first": float(angles[0]),
        "projection_angle_last": float(angles[-1]),
    }


def _quantities(
    file: Hdf5File, entry: object = None, **wanted: tuple[str, str]
) -> tuple[dict[str, dict[str, object]], list[str]]:
    """Return the positive quantities among these that the file has together with their unit, and the names of those that it
    has in another way."""
    found: dict[str, dict[str, object]] = {}
    unclear = []
    for name, (path, unit) in wanted.items():
        try:
            value = file.number(path, entry)
            own = None if value is None else file.unit(path, entry)
            if value is not None and own is not None and math.isfinite(converted := value * factor(own, unit)) and value > 0:
                found[name] = {"value": converted, "unit": unit}
            elif value is not None:
                unclear.append(name)
        except UnusableError:
            unclear.append(name)
    return found, unclear


def _unchecked_parts(angle_unit: str | None, commanded: int | None, unclear: Sequence[str]) -> list[str]:
    """Return what of a file nobody looked at, or what it does not say clearly enough."""
    unstated = {"angle_unit": angle_unit, "commanded_counts": commanded}
    return ["frame_values", *(name for name, value in unstated.items() if value is None), *unclear]
