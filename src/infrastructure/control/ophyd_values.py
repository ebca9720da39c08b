"""Values of ophyd-async signals, as the control port has them: what `read` and `describe` say, and what `set` takes."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy

from baton.application.control import ControlLimits, ControlValueCoercionError, Reading, ReadingKind
from baton.infrastructure.control.epics import alarm_text, quality
from baton.infrastructure.control.signal_values import Element, ValueShape, coerce, sample_time

DataKey = Mapping[str, Any]  # what `describe` says of one signal
ELEMENTS = {
    "f": Element.REAL,
    "i": Element.WHOLE,
    "u": Element.WHOLE,
    "b": Element.TRUTH,
    "S": Element.TEXT,
    "U": Element.TEXT,
}
INVALID = 3  # the severity of an alarm that leaves nothing to trust, which the library gives as a negative number


def reading_of(reading: Mapping[str, Any], key: DataKey) -> Reading:
    """Return a reading of a signal."""
    value, choices, index = plain_value(reading["value"]), key.get("choices"), None
    kind = ReadingKind.SCALAR
    if isinstance(value, dict):
        kind = ReadingKind.TABULAR
    elif isinstance(value, list):
        kind = ReadingKind.IMAGE if value and isinstance(value[0], list) else ReadingKind.ARRAY
    elif choices is not None:
        kind, index = ReadingKind.CATEGORICAL, choices.index(value) if value in choices else None
    severity, at = reading.get("alarm_severity", 0), reading.get("timestamp") or 0.0
    severity = INVALID if severity < 0 else severity
    return Reading(
        value=value,
        kind=kind,
        index=index,
        quality=quality(severity),
        quality_detail=alarm_text(severity, ""),
        sampled_at=sample_time(int(at), round(at % 1 * 1e9)),
        units=key.get("units") or None,
    )


def limits_of_key(key: DataKey) -> ControlLimits | None:
    """Return between which values a signal may be set."""
    declared = (key.get("limits") or {}).get("control") or {}
    low, high = declared.get("low"), declared.get("high")
    return ControlLimits.from_declared(-math.inf if low is None else low, math.inf if high is None else high)


def plain_value(value: Any) -> Any:
    """Return a value as plain JSON data."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, numpy.ndarray | numpy.generic):
        return value.tolist()
    if hasattr(value, "model_dump"):
        return {name: plain_value(getattr(value, name)) for name in value.model_dump()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    return value


def encode(address: str, value: object, key: DataKey) -> object:
    """Return a value as `set` takes it, without loss: a choice as its label, whatever named it."""
    choices, kind, dimensions = key.get("choices"), key["dtype"], len(key.get("shape") or ())
    if kind == "array":
        item = key.get("dtype_numpy")
        type = numpy.dtype(item) if isinstance(item, str) else None
        if type is None or type.kind not in ELEMENTS or dimensions > 2:
            raise ControlValueCoercionError(f"{address} holds tables or images that cannot be written from here.")
        shape = _shape(ELEMENTS[type.kind], type, choices)
        elements = _rows(address, value, shape, dimensions)
        if choices:
            return [choices[index] for index in elements]
        return elements if shape.element is Element.TEXT else numpy.array(elements, dtype=type)
    if choices and kind == "string":
        index = coerce(address, value, ValueShape(Element.CHOICE, labels=choices))
        return choices[index] if isinstance(index, int) else index
    item = key.get("dtype_numpy")
    element = {"string": Element.TEXT, "boolean": Element.TRUTH, "integer": Element.WHOLE}.get(kind, Element.REAL)
    return coerce(address, value, _shape(element, numpy.dtype(item) if isinstance(item, str) else None))


def _shape(element: Element, type: "numpy.dtype[Any] | None", choices: list[str] | None = None) -> ValueShape:
    if choices:
        return ValueShape(Element.CHOICE, labels=choices)
    if element is Element.WHOLE and type is not None and type.kind in "iu":
        bounds = numpy.iinfo(type)
        return ValueShape(element, bounds=(int(bounds.min), int(bounds.max)))
    return ValueShape(element)


def _rows(address: str, value: object, shape: ValueShape, dimensions: int) -> list[Any]:
    elements = list(value) if isinstance(value, list | tuple) else [value]
    if dimensions == 2:
        rows = [_rows(address, row, shape, 1) for row in elements]
        if len({len(row) for row in rows}) > 1:
            raise ControlValueCoercionError(f"{address} holds rows of one length.")
        return rows
    return [coerce(address, element, shape) for element in elements]
