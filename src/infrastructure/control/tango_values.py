"""Tango's addresses, declarations and values, as the control port has them."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tango import (
    AttrDataFormat,
    AttributeInfoEx,
    AttrQuality,
    AttrWriteType,
    CmdArgType,
    CommandInfo,
    DevError,
    DeviceAttribute,
    DevState,
)

from baton.application import control
from baton.application.control import ControlLimits, ControlValueCoercionError, Quality, Reading, ReadingKind
from baton.infrastructure.control.signal_values import Element, ValueShape, coerce, sample_time

NAME = r"[^\s/#():]+"
ADDRESS = re.compile(
    rf"tango:(?:(?P<server>[\w.-]+:\d+)/)?(?P<device>{NAME}/{NAME}/{NAME})/(?P<member>[^\s/#().]+)(?P<call>\(\))?", re.ASCII
)
STATES = tuple(state.name for state in DevState.values.values())
SCALARS = {
    CmdArgType.DevBoolean: ValueShape(Element.TRUTH),
    CmdArgType.DevShort: ValueShape(Element.WHOLE, bounds=(-(2**15), 2**15 - 1)),
    CmdArgType.DevLong: ValueShape(Element.WHOLE),
    CmdArgType.DevLong64: ValueShape(Element.WHOLE, bounds=(-(2**63), 2**63 - 1)),
    CmdArgType.DevUChar: ValueShape(Element.WHOLE, bounds=(0, 2**8 - 1)),
    CmdArgType.DevUShort: ValueShape(Element.WHOLE, bounds=(0, 2**16 - 1)),
    CmdArgType.DevULong: ValueShape(Element.WHOLE, bounds=(0, 2**32 - 1)),
    CmdArgType.DevULong64: ValueShape(Element.WHOLE, bounds=(0, 2**64 - 1)),
    CmdArgType.DevFloat: ValueShape(Element.REAL),
    CmdArgType.DevDouble: ValueShape(Element.REAL),
    CmdArgType.DevString: ValueShape(Element.TEXT),
    CmdArgType.DevState: ValueShape(Element.CHOICE, labels=STATES),
}
ARRAYS = {
    CmdArgType.DevVarBooleanArray: CmdArgType.DevBoolean,
    CmdArgType.DevVarShortArray: CmdArgType.DevShort,
    CmdArgType.DevVarLongArray: CmdArgType.DevLong,
    CmdArgType.DevVarLong64Array: CmdArgType.DevLong64,
    CmdArgType.DevVarCharArray: CmdArgType.DevUChar,
    CmdArgType.DevVarUShortArray: CmdArgType.DevUShort,
    CmdArgType.DevVarULongArray: CmdArgType.DevULong,
    CmdArgType.DevVarULong64Array: CmdArgType.DevULong64,
    CmdArgType.DevVarFloatArray: CmdArgType.DevFloat,
    CmdArgType.DevVarDoubleArray: CmdArgType.DevDouble,
    CmdArgType.DevVarStringArray: CmdArgType.DevString,
}
QUALITIES = {
    AttrQuality.ATTR_VALID: (Quality.GOOD, None),
    AttrQuality.ATTR_CHANGING: (Quality.GOOD, "CHANGING"),
    AttrQuality.ATTR_WARNING: (Quality.UNCERTAIN, "WARNING"),
    AttrQuality.ATTR_ALARM: (Quality.UNCERTAIN, "ALARM"),
}
KINDS = {AttrDataFormat.SPECTRUM: ReadingKind.ARRAY, AttrDataFormat.IMAGE: ReadingKind.IMAGE}
NOT_CONNECTED = frozenset(
    {
        "API_AttrNotFound",
        "API_CommandNotFound",
        "API_ServerNotRunning",
        "API_CantConnectToDevice",
        "API_CantConnectToDatabase",
        "API_DeviceNotExported",
        "API_DeviceNotDefined",
        "API_TangoHostNotSet",
        "API_EventTimeout",
        "DB_DeviceNotDefined",
        "API_CorbaException",
    }
)
TIMED_OUT = "API_DeviceTimedOut"
DENIED = "API_ReadOnlyMode"


@dataclass(frozen=True)
class TangoAddress:
    """An attribute or a command, and the name by which the library finds its device."""

    whole: str
    device: str
    member: str
    is_command: bool


@dataclass(frozen=True)
class TangoDeclaration:
    """What a device declares of an attribute or a command: what it takes, and what its values are."""

    info: AttributeInfoEx | CommandInfo
    shape: ValueShape | None
    dimensions: int = 0
    writable: bool = True
    labels: tuple[str, ...] = ()
    units: str | None = None
    limits: ControlLimits | None = None


def parse_address(address: str) -> TangoAddress:
    """Return what an address names: `tango:domain/family/member/attribute`, with `host:port/` before it where there is no
    database, with `()` behind it for a command."""
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise control.MalformedControlAddressError(
            f"{address!r} is no Tango address; write tango:domain/family/member/attribute or tango:host:port/... of it, "
            "and () behind a command."
        )
    server, device = found["server"], found["device"]
    name = f"tango://{server}/{device}#dbase=no" if server else device
    return TangoAddress(address, name, found["member"], found["call"] is not None)


def declaration_of_attribute(info: AttributeInfoEx) -> TangoDeclaration:
    """Return what an attribute takes and tells."""
    labels = {CmdArgType.DevState: STATES, CmdArgType.DevEnum: tuple(info.enum_labels)}.get(info.data_type, ())
    shape = SCALARS.get(info.data_type)
    if info.data_type == CmdArgType.DevEnum:
        shape = ValueShape(Element.CHOICE, labels=labels)
    dimensions = {AttrDataFormat.SPECTRUM: 1, AttrDataFormat.IMAGE: 2}.get(info.data_format, 0)
    low, high = (_bound(text, open_end) for text, open_end in ((info.min_value, -math.inf), (info.max_value, math.inf)))
    return TangoDeclaration(
        info=info,
        shape=shape,
        dimensions=dimensions,
        writable=info.writable != AttrWriteType.READ,
        labels=labels,
        units=info.unit or None,
        limits=ControlLimits.from_declared(low, high),
    )


def declaration_of_command(info: CommandInfo) -> TangoDeclaration:
    """Return what a command takes; None as its shape stands for no argument, or for one that JSON does not have."""
    element = ARRAYS.get(info.in_type)
    return TangoDeclaration(info=info, shape=SCALARS.get(element or info.in_type), dimensions=0 if element is None else 1)


def encode(address: TangoAddress, value: object, declared: TangoDeclaration) -> object:
    """Return a value as the library takes it, without loss."""
    if address.is_command and declared.info.in_type == CmdArgType.DevVoid:
        if value is not None:
            raise ControlValueCoercionError(f"{address.whole} takes no argument; write null.")
        return None
    if declared.shape is None:
        raise ControlValueCoercionError(f"{address.whole} is of a type that cannot be written from here.")
    most = 0 if address.is_command else declared.info.max_dim_x
    encoded = _encode(address.whole, value, declared.shape, declared.dimensions, most)
    if declared.shape.labels is STATES:
        return _map_elements(encoded, lambda index: DevState.values[index])
    return encoded


def _encode(address: str, value: object, shape: ValueShape, dimensions: int, most: int) -> object:
    if dimensions == 0:
        return coerce(address, value, shape)
    elements = list(value) if isinstance(value, list | tuple) else [value]
    if most and dimensions == 1 and len(elements) > most:
        raise ControlValueCoercionError(f"{address} holds {most} elements; {len(elements)} were given.")
    rows = [_encode(address, element, shape, dimensions - 1, most) for element in elements]
    if dimensions == 2 and len({len(row) for row in rows if isinstance(row, list)}) > 1:
        raise ControlValueCoercionError(f"{address} holds rows of one length.")
    return rows


def _map_elements(value: object, change: Callable[[Any], object]) -> object:
    return [_map_elements(one, change) for one in value] if isinstance(value, list) else change(value)


def _bound(text: str, open_end: float) -> float:
    try:
        return float(text)
    except ValueError:
        return open_end


def reading_of(address: str, attribute: DeviceAttribute, declared: TangoDeclaration) -> Reading:
    """Return a value of an attribute; one of invalid quality has none."""
    kind = KINDS.get(attribute.data_format, ReadingKind.CATEGORICAL if declared.labels else ReadingKind.SCALAR)
    quality, detail = QUALITIES.get(attribute.quality, (Quality.BAD, "INVALID"))
    plain, index = None, None
    if quality is not Quality.BAD:
        if declared.shape is None:
            raise ControlValueCoercionError(f"{address} is of type {attribute.type}, which is not read here.")
        plain, index = _plain(attribute.value, declared.labels)
    at = attribute.time
    return Reading(
        value=plain,
        kind=kind,
        index=index,
        quality=quality,
        quality_detail=detail,
        sampled_at=sample_time(at.tv_sec, at.tv_usec * 1000 + at.tv_nsec),
        units=declared.units,
    )


def _plain(value: Any, labels: tuple[str, ...]) -> tuple[Any, int | None]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(element, labels)[0] for element in value] if labels else _rows(value), None
    if labels:
        index = int(value)
        return labels[index] if 0 <= index < len(labels) else str(index), index
    return value, None


def _rows(value: Iterable[Any]) -> list[Any]:
    return [_rows(one) if isinstance(one, tuple | list) else one for one in value]


def translate(
    address: str, errors: Iterable[DevError], refused: type[control.ControlError], silence: str
) -> control.ControlError:
    """Return the port's error of an error stack."""
    stack = list(errors)
    reasons = {error.reason for error in stack}
    if TIMED_OUT in reasons:
        return control.ControlTimeoutError(f"{address} {silence}.")
    cause = " ".join(stack[0].desc.split())[:500] if stack else "no reason was given"
    if reasons & NOT_CONNECTED:
        return control.ControlNotConnectedError(f"{address} is not connected: {cause}.")
    if DENIED in reasons:
        return control.ControlAccessDeniedError(f"{address}: {cause}.")
    return refused(f"{address}: {cause}.")
