"""The picture of a file: the middle frame of the largest array in it, in shades of grey. It runs in the reading process, and
imports nothing of the service."""

import math
from base64 import b64encode
from functools import partial
from typing import Any

import numpy
from h5py import h5s, h5t

from baton.infrastructure.scans.hdf5 import Hdf5File, Numbers, UnusableError, refuse_large_pieces
from baton.infrastructure.scans.layouts import ScanFaultError, require_usable
from baton.infrastructure.scans.png import LONGEST_SIDE

MAX_CHUNK_BYTES = 128 << 20  # of a frame, which is often one piece
MAX_CHUNKS = 20_000  # of a frame; it is read at once, and the library needs memory for each
MIDDLE_GREY = 128
CLIPPED = 0.01  # the part of all values that may be darker than black, and brighter than white


def draw(file: Hdf5File) -> dict[str, Any]:
    """Return the picture of a file: its sides, and its pixels line by line."""
    arrays = (found for found in file.arrays() if len(found[1]) > 1 and math.prod(found[1]) > 0)
    largest = max(arrays, key=lambda found: math.prod(found[1]), default=None)
    if largest is None:
        detail = "The file holds no array of numbers with two or more axes; there is nothing to show of it."
        raise ScanFaultError("unrecognized", detail)
    pixels = shades(require_usable("Its largest array", partial(middle_frame, *largest), "unreadable"))
    height, width = pixels.shape
    return {"width": width, "height": height, "pixels": b64encode(pixels.tobytes()).decode()}


def middle_frame(dataset: Any, shape: tuple[int, ...]) -> Numbers:
    """Return every so many values of the last two axes, at the middle of all others, so that the picture is small."""
    *outer, height, width = shape
    step = -(-max(height, width) // LONGEST_SIDE)
    values = numpy.empty((-(-height // step), -(-width // step)), dtype=numpy.float64)
    ones = (1,) * len(outer)
    refuse_large_pieces(dataset, (*ones, height, width), MAX_CHUNK_BYTES, MAX_CHUNKS)
    if not dataset.get_storage_size():
        raise UnusableError("is declared, and was never written")
    stored = dataset.get_space()
    start = (*(length // 2 for length in outer), 0, 0)
    stored.select_hyperslab(start, (*ones, *values.shape), (*ones, step, step))
    dataset.read(h5s.create_simple(values.shape), stored, values, h5t.NATIVE_DOUBLE)
    return values


def shades(values: Numbers) -> numpy.ndarray[Any, numpy.dtype[numpy.uint8]]:
    """Return numbers as shades from 0 to 255; what is no number counts as the lowest."""
    halves = values / 2  # so that the distance of any two is a number
    known = halves[numpy.isfinite(halves)]
    if not known.size:
        return numpy.full(values.shape, MIDDLE_GREY, dtype=numpy.uint8)
    halves[~numpy.isfinite(halves)] = known.min()
    ordered = numpy.sort(halves, axis=None)  # numpy.percentile loads a module, which nothing confined can
    clipped = int(CLIPPED * ordered.size)
    dark, bright = ordered[clipped], ordered[-1 - clipped]
    if dark == bright:  # all but a few values are the same
        dark, bright = ordered[0], ordered[-1]
    if dark == bright:
        return numpy.full(values.shape, MIDDLE_GREY, dtype=numpy.uint8)
    return numpy.rint(numpy.interp(halves, (dark, bright), (0, 255))).astype(numpy.uint8)
