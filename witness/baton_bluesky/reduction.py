"""Documents as plain data of a bounded size, whatever they hold: nothing big is copied or read, and nothing raises.

`reduce_document` is for every document but events, whose numbers `reduce_numbers` takes.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

MAX_TEXT = 1_000  # Characters.
MAX_DOCUMENT = 65_536  # Bytes of JSON, about.
MAX_DEPTH = 8
MAX_KEY = 255  # Characters.
MAX_DATA_KEYS = 200  # Of a descriptor.
MAX_INTEGER = 2**63

PLAN_KEYS = ("plan_name", "plan_type", "plan_args", "detectors", "motors", "num_points", "num_intervals", "scan_id", "hints")
DEFAULT_KEYS = (*PLAN_KEYS, "versions", "beamline", "proposal", "sample", "instrument_session", "baton")
"""Keys of a start document that go along as metadata; others only when they are named."""

UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
UNNAMEABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_OMITTED = object()


class Reduction:
    """One document as it is reduced: the room that is left, and what was left out."""

    def __init__(self) -> None:
        self.room = MAX_DOCUMENT
        """Bytes that are left."""
        self.left_out = 0
        """Number of values that are no finite numbers, or for which there was no room."""

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return plain data for a value; what is neither number, text, list nor mapping becomes its kind and shape."""
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            self.room -= 5
            return value
        if kind is int or kind is float:
            return self._number(value)
        if self.room <= 0:
            return self._omit()
        if isinstance(value, dict):
            return self._plain_mapping(value, depth) if depth < MAX_DEPTH else self._kind_of(value)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth) if depth < MAX_DEPTH else self._kind_of(value)
        return self._unusual(value)

    def _text(self, value: str) -> Any:
        if self.room <= 0:
            return self._omit()
        if len(value) > MAX_TEXT:
            value = value[:MAX_TEXT]
        if not value.isprintable():
            value = UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value)
        self.room -= len(value) + 4 if value.isascii() else 6 * len(value) + 4
        return value

    def _number(self, value: float) -> Any:
        if not -MAX_INTEGER < value < MAX_INTEGER and (type(value) is int or not math.isfinite(value)):
            return self._omit()
        if value != value:
            return self._omit()
        self.room -= 20
        return value

    def _omit(self) -> Any:
        self.left_out += 1
        return _OMITTED

    def _plain_mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self.room -= 2
        reduced: dict[str, Any] = {}
        for place, (key, item) in enumerate(dict.items(value)):
            if self.room <= 0:
                self.left_out += dict.__len__(value) - place
                break
            if type(key) is not str:
                if type(key) is not int or not -MAX_INTEGER < key < MAX_INTEGER:
                    self.left_out += 1
                    continue
                key = str(key)
            if len(key) > MAX_KEY or not key:
                self.left_out += 1
                continue
            if not key.isprintable():
                key = UNNAMEABLE.sub("\N{REPLACEMENT CHARACTER}", key)
            self.room -= len(key) + 4 if key.isascii() else 6 * len(key) + 4
            if (plain := self.plain(item, depth + 1)) is not _OMITTED:
                reduced[key] = plain
        return reduced

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        self.room -= 2
        reduced: list[Any] = []
        iterate = list.__iter__ if isinstance(value, list) else tuple.__iter__
        for item in iterate(value):  # type: ignore[arg-type]
            if self.room <= 0:
                self.left_out += 1
                break
            plain = self.plain(item, depth + 1)
            self.room -= 2
            reduced.append(None if plain is _OMITTED else plain)
        return reduced

    def _unusual(self, value: Any) -> Any:
        """Return the number or text that a value is by another type, else its kind and shape."""
        try:
            if (number := plain_number(value)) is not None:
                return self._number(number)
            if isinstance(value, str):
                return self._text(str.__str__(value))
        except Exception:
            return self._omit()
        return self._kind_of(value)

    def _kind_of(self, value: Any) -> dict[str, Any]:
        self.room -= 60
        return {"kind": type(value).__name__[:60], "shape": shape_of(value)}


def plain_number(value: Any) -> int | float | bool | None:
    """Return the finite or infinite number that a scalar is, or None; an array is not read."""
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return value  # type: ignore[no-any-return]
    if kind is str or kind is list or kind is dict or value is None:
        return None
    if getattr(kind, "__module__", "") == "numpy":
        if getattr(value, "shape", None) != () or getattr(value, "dtype", None) is None or value.dtype.kind not in "biuf":
            return None
        item = value.item()
        return item if isinstance(item, bool | int | float) else float(item)
    if isinstance(value, bool | int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else None


def shape_of(value: Any) -> list[int] | None:
    """Return the shape of an array, or the length of what has one; None where neither can be read."""
    try:
        shape = getattr(value, "shape", None)
        if shape is None:
            shape = (len(value),)
        return [int(size) for size in tuple(shape)[:MAX_DEPTH]]
    except Exception:
        return None


def reduce_document(document: Any) -> tuple[dict[str, Any], int]:
    """Return a document as plain data, and the number of values left out; what is no mapping is an empty document."""
    if not isinstance(document, dict):
        return {}, 1
    reduction = Reduction()
    plain = reduction.plain(document)
    return plain, reduction.left_out


def reduce_numbers(data: Any, timestamps: Any) -> tuple[dict[str, Any], dict[str, float], int]:
    """Return the numbers of an event's data, their timestamps, and the number of those that are not finite."""
    numbers: dict[str, Any] = {}
    times: dict[str, float] = {}
    left_out = 0
    for key, value in dict.items(data):
        kind = type(value)
        if kind is not float and kind is not int and kind is not bool:
            value = plain_number(value)
            if value is None:
                continue
        if (
            not -MAX_INTEGER < value < MAX_INTEGER and (isinstance(value, int) or not math.isfinite(value))
        ) or value != value:
            left_out += 1
            continue
        if type(key) is not str or not 0 < len(key) <= MAX_KEY or len(numbers) >= MAX_DATA_KEYS:
            left_out += 1
            continue
        if not key.isprintable():
            key = UNNAMEABLE.sub("\N{REPLACEMENT CHARACTER}", key)
        numbers[key] = value
        at = timestamps.get(key) if type(timestamps) is dict else None
        if type(at) is float and math.isfinite(at):
            times[key] = at
    return numbers, times, left_out


def chosen_metadata(start: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the keys of a start document that go along: names of people are none of them."""
    return {key: start[key] for key in keys if key in start}
