"""Bounded access to one HDF5 file: what is looked up stays within the file, and everything that is read is judged by its
declared size before. It runs in the reading process, and imports nothing of the service."""

import math
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

import h5py
import numpy
import pint
from h5py import h5a, h5d, h5f, h5g, h5l, h5o, h5s, h5t, h5z

MAX_VALUES = 1_000_000  # of an array that is read
MAX_TEXT = 4096  # bytes
MAX_PATH, MAX_AXES = 500, 8  # of an array of frames: characters, and axes of one frame
MAX_CHUNK_BYTES = 8 << 20
MAX_CHUNKS = 100_000
CHUNKS_AT_A_TIME = 4096
MAX_LINKS = 1000  # entries that are looked through in one group
MAX_HOPS = 16  # soft links on the way to one object
MAX_WALK = 10_000  # entries that are looked at in a walk through all groups
MAX_DEPTH = 32  # groups within groups on such a walk
PLAIN_LAYOUTS = (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED)
FILTERS = (h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32)
UNIT = re.compile(r"[A-Za-z°µμ]{1,32}")
UNITS: pint.UnitRegistry[float] = pint.UnitRegistry()
Numbers = numpy.ndarray[Any, numpy.dtype[numpy.float64]]


class UnusableError(Exception):
    """Something in the file is there and cannot be used; the message says why, and quotes nothing of the file."""


class Hdf5File:
    """A file that is open for reading."""

    def __init__(self, path: str) -> None:
        self._root = h5g.open(h5f.open(path.encode(), h5f.ACC_RDONLY), b"/")

    def find(self, path: str, start: object = None) -> Any:
        """Return the object under a path of this file, or None; links that leave the file are not followed."""
        parts, place, hops = deque(path.encode().split(b"/")), start or self._root, 0
        while parts:
            name = parts.popleft()
            if name in (b"", b"."):
                continue
            if not isinstance(place, h5g.GroupID) or not place.links.exists(name):
                return None
            match place.links.get_info(name).type:
                case h5l.TYPE_HARD:
                    place = h5o.open(place, name)
                case h5l.TYPE_SOFT:
                    target, hops = place.links.get_val(name), hops + 1
                    if hops > MAX_HOPS or len(target) > MAX_TEXT:
                        raise UnusableError("is a link that leads in a circle or too far")
                    if target.startswith(b"/"):
                        place = self._root
                    parts.extendleft(reversed(target.split(b"/")))
                case _:
                    raise UnusableError("is a link to another file")
        return place

    def group_names(self) -> list[str]:
        """Return the names at the top of the file that are text, in order."""
        if self._root.get_num_objs() > MAX_LINKS:
            raise UnusableError(f"has more than {MAX_LINKS} entries")
        names: list[bytes] = []
        self._root.links.iterate(names.append)
        return sorted(text for name in names if (text := _decode(name)) is not None)

    def arrays(self) -> Iterator[tuple[Any, tuple[int, ...]]]:
        """Yield the arrays of numbers in the file with their shapes, those near its top first. Only hard links are followed,
        no object is looked at twice, and what is deeper or comes later than a walk may go is left out."""
        waiting, seen, left = deque([(self._root, 0)]), {h5o.get_info(self._root).addr}, MAX_WALK
        while waiting and left > 0:
            group, depth = waiting.popleft()
            names = _names_in(group, left)
            left -= len(names)
            for name in names:
                if group.links.get_info(name).type != h5l.TYPE_HARD:
                    continue
                found = h5o.open(group, name)
                if (address := h5o.get_info(found).addr) in seen:
                    continue
                seen.add(address)
                if isinstance(found, h5g.GroupID) and depth < MAX_DEPTH:
                    waiting.append((found, depth + 1))
                elif isinstance(found, h5d.DatasetID) and (shape := _shape_if_plain(found)) is not None:
                    yield found, shape

    def frame_count(self, path: str, start: object = None) -> int | None:
        """Return the length of the first axis of an array of numbers, or None where there is none; nothing is read."""
        if (dataset := self.find(path, start)) is None:
            return None
        shape = _shape_of_numbers(_plain_dataset(dataset))
        if not shape:
            raise UnusableError("is a single number where an array of frames belongs")
        if shape[0] > MAX_VALUES:
            raise UnusableError(f"declares more than {MAX_VALUES} frames")
        return int(shape[0])

    def frame_layout(self, path: str) -> dict[str, object] | None:
        """Return where an array of frames is and what they are like, or None where that cannot be told; nothing is read."""
        try:
            count, dataset = self.frame_count(path), self.find(path)
            if count is None or len(path) > MAX_PATH or not 0 < len(axes := dataset.shape[1:]) <= MAX_AXES or 0 in axes:
                return None
            return {"path": path, "count": count, "shape": [int(length) for length in axes], "dtype": dataset.dtype.str}
        except (UnusableError, TypeError):  # numpy has no such type
            return None

    def numbers(self, path: str, start: object = None) -> Numbers | None:
        """Return a list of finite numbers, or None where there is none."""
        if (dataset := self.find(path, start)) is None:
            return None
        shape = _shape_of_numbers(_plain_dataset(dataset))
        if len(shape) != 1:
            raise UnusableError(f"has {len(shape)} axes where a list belongs")
        _refuse_bombs(dataset, shape)
        if shape[0] and not dataset.get_storage_size():
            raise UnusableError("is declared, and was never written")
        return _read_numbers(dataset, shape)

    def number(self, path: str, start: object = None) -> float | None:
        """Return one finite number, or None where there is none that can be used."""
        try:
            if (dataset := self.find(path, start)) is None:
                return None
            shape = _shape_of_numbers(_plain_dataset(dataset))
            if math.prod(shape) != 1:
                return None
            _refuse_bombs(dataset, shape)
            return float(_read_numbers(dataset, shape).flat[0])
        except UnusableError:
            return None

    def count(self, path: str) -> int | None:
        """Return one whole number that may count frames, or None."""
        number = self.number(path)
        return int(number) if number is not None and number.is_integer() and 0 <= number <= MAX_VALUES else None

    def text(self, path: str, start: object = None) -> str | None:
        """Return one short text, or None where there is none that can be used."""
        try:
            dataset = self.find(path, start)
            if dataset is None or not isinstance(_plain_dataset(dataset).get_type(), h5t.TypeStringID):
                return None
            if (shape := dataset.shape) is None or math.prod(shape) != 1:
                return None
            _refuse_bombs(dataset, shape)
            return _read_text(dataset.get_type(), lambda into, kind: dataset.read(h5s.ALL, h5s.ALL, into, kind), shape)
        except UnusableError:
            return None

    def unit(self, path: str, start: object = None) -> str | None:
        """Return the attribute `units` of an array, or None where it has none; one that is no text is unusable."""
        dataset = self.find(path, start)
        if not h5a.exists(dataset, b"units"):
            return None
        attribute = h5a.open(dataset, b"units")
        kind, shape = attribute.get_type(), attribute.shape
        text = None
        if isinstance(kind, h5t.TypeStringID) and shape is not None and math.prod(shape) == 1:
            text = _read_text(kind, lambda into, memory: attribute.read(into, memory), shape)
        if text is None:
            raise UnusableError("has a unit that is no text")
        return text


def _plain_dataset(dataset: object) -> Any:
    """Return an array whose values are in this file, or refuse it; asking for its shape before would open other files."""
    if not isinstance(dataset, h5d.DatasetID):
        raise UnusableError("is no array")
    creation = dataset.get_create_plist()
    if creation.get_layout() not in PLAIN_LAYOUTS:
        raise UnusableError("is made up of other files or arrays (a virtual dataset)")
    if creation.get_layout() == h5d.CONTIGUOUS and creation.get_external_count():
        raise UnusableError("keeps its values in other files")
    return dataset


def _shape_of_numbers(dataset: Any) -> tuple[int, ...]:
    kind = dataset.get_type()
    if not isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID)) or kind.get_size() > 16:
        raise UnusableError("holds something else where numbers belong")
    if dataset.get_space().get_simple_extent_type() == h5s.NULL:
        raise UnusableError("is empty")
    return tuple(dataset.shape)


def _shape_if_plain(dataset: object) -> tuple[int, ...] | None:
    try:
        return _shape_of_numbers(_plain_dataset(dataset))
    except UnusableError:
        return None


def _names_in(group: Any, limit: int) -> list[bytes]:
    """Return the names in a group, so many at the most."""
    names: list[bytes] = []

    def add(name: bytes) -> bool | None:
        names.append(name)
        return True if len(names) >= limit else None  # which ends the iteration

    group.links.iterate(add)
    return names


def _refuse_bombs(dataset: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array that takes more to read than its content can be worth, by what it declares."""
    if math.prod(shape) > MAX_VALUES or dataset.get_type().get_size() > MAX_TEXT:
        raise UnusableError(f"declares more than {MAX_VALUES} values, or values that are too large")
    refuse_large_pieces(dataset, shape, MAX_CHUNK_BYTES, MAX_CHUNKS)


def refuse_large_pieces(dataset: Any, shape: tuple[int, ...], max_bytes: int, max_count: int) -> None:
    """Refuse an array of which a part of this shape is stored in pieces that are too many, too large, or not what they
    are said to be."""
    creation, item = dataset.get_create_plist(), dataset.get_type().get_size()
    if creation.get_layout() != h5d.CHUNKED:
        return
    chunk = creation.get_chunk()
    if math.prod(chunk) * item > max_bytes:
        raise UnusableError(f"is stored in pieces of more than {max_bytes >> 20} MiB")
    if math.prod(-(-length // piece) for length, piece in zip(shape, chunk, strict=True)) > max_count:
        raise UnusableError(f"is stored in more than {max_count} pieces")
    if {creation.get_filter(place)[0] for place in range(creation.get_nfilters())} - {*FILTERS}:
        raise UnusableError("is compressed by something else than gzip")
    plain = math.prod(chunk) * item
    largest = plain + plain // 1000 + 64  # what gzip makes of content that cannot be compressed
    if dataset.chunk_iter(lambda piece: True if piece.size > largest else None):
        raise UnusableError("has a compressed piece that is larger than its content")


def _read_numbers(dataset: Any, shape: tuple[int, ...]) -> Numbers:
    """Return all values; of a list, so many pieces at a time that the library needs little memory for each."""
    values = numpy.empty(shape, dtype=numpy.float64)
    creation = dataset.get_create_plist()
    if len(shape) != 1 or creation.get_layout() != h5d.CHUNKED:
        dataset.read(h5s.ALL, h5s.ALL, values, h5t.NATIVE_DOUBLE)
        return finite(values)
    stretch = creation.get_chunk()[0] * CHUNKS_AT_A_TIME
    for start in range(0, shape[0], stretch):
        part = values[start : start + stretch]
        stored, memory = dataset.get_space(), h5s.create_simple(part.shape)
        stored.select_hyperslab((start,), part.shape)
        dataset.read(memory, stored, part, h5t.NATIVE_DOUBLE)
    return finite(values)


def finite(values: Numbers) -> Numbers:
    """Return the values, or refuse infinities and what is no number."""
    if not numpy.isfinite(values).all():
        raise UnusableError("holds values that are no numbers")
    return values


def _read_text(kind: Any, read: Any, shape: tuple[int, ...]) -> str | None:
    if kind.is_variable_str():
        values = numpy.empty(shape, dtype=h5py.string_dtype())
        read(values, h5t.py_create(h5py.string_dtype()))
    else:
        if kind.get_size() > MAX_TEXT:
            raise UnusableError(f"is longer than {MAX_TEXT} characters")
        values = numpy.empty(shape, dtype=f"S{kind.get_size()}")
        read(values, kind)
    found = values.flat[0]
    if not isinstance(found, bytes) or len(found) > MAX_TEXT:
        return None
    return (_decode(found.partition(b"\0")[0]) or "").strip() or None


def _decode(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def factor(unit: str, wanted: str) -> float:
    """Return what a number in one unit is multiplied by to be in the wanted one. An angle has no dimension, and neither
    has a count: both must rest on the same root unit."""
    if UNIT.fullmatch(unit) is None:
        raise UnusableError("has a unit that is unknown")
    try:
        own_root, wanted_root = (UNITS.get_root_units(name)[1] for name in (unit, wanted))
    except (pint.PintError, AttributeError, ValueError):
        raise UnusableError("has a unit that is unknown") from None
    if own_root != wanted_root:
        raise UnusableError(f"has a unit that cannot be converted to {wanted}")
    return float(UNITS.convert(1.0, unit, wanted))
