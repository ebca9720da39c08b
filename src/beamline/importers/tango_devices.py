"""Devices out of Tango: those that a database has as exported, or those that are named, with what each says of itself."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from baton.beamline.importers.drafts import DeviceDraft, SignalRange, family_of_axis, family_of_words
from baton.beamline.importers.sources import UnreadableSourceError

DEVICE = re.compile(r"(?:(?P<server>[\w.-]+:\d+)/)?(?P<name>[^\s/#():]+/[^\s/#():]+/[^\s/#():]+)", re.ASCII)
DATABASE = re.compile(r"(?P<host>[\w.-]+):(?P<port>\d+)", re.ASCII)
OWN_DOMAINS = ("dserver", "sys/database", "sys/access_control", "sys/rest")  # devices of Tango itself
OF_EVERY_DEVICE = {"Init", "State", "Status"}
ANSWER_MILLISECONDS = 3000
MOST_DEVICES = 10_000


def import_tango(database: str | None, devices: Sequence[str]) -> list[DeviceDraft]:
    """Return the devices of a database, or those that are named; one that does not answer is left with a question."""
    try:
        import tango
    except ImportError:
        missing = "This needs the library pytango; install it with `pip install baton-facility[tango]`."
        raise UnreadableSourceError(missing) from None
    names = sorted(set(devices)) if database is None else exported_devices(tango, database)
    if not names:
        raise UnreadableSourceError("There is no device to import; give a database HOST:PORT, or --device.")
    return [draft_of(tango, name, database) for name in names]


def exported_devices(tango: Any, address: str) -> list[str]:
    """Return the names of the devices that a database has as exported, without those of Tango itself."""
    if (found := DATABASE.fullmatch(address)) is None:
        raise UnreadableSourceError(f"{address!r} is no address of a Tango database; write HOST:PORT.")
    try:
        exported = list(tango.Database(found["host"], int(found["port"])).get_device_exported("*"))
    except tango.DevFailed as failure:
        because = first_line(failure)
        raise UnreadableSourceError(
            f"{address} does not answer as a Tango database: {because}; name devices of a server without one with --device."
        ) from None
    if len(exported) > MOST_DEVICES:
        raise UnreadableSourceError(f"{address} has more than {MOST_DEVICES:,} devices; name those to import with --device.")
    return sorted(name for name in exported if not name.lower().startswith(OWN_DOMAINS))


def draft_of(tango: Any, device: str, database: str | None) -> DeviceDraft:
    """Return the device of one name, as its server describes it."""
    if (found := DEVICE.fullmatch(device)) is None:
        raise UnreadableSourceError(f"{device!r} is no device; write domain/family/member, or HOST:PORT/ and that.")
    domain, family_name, member = found["name"].split("/")
    source = f"{device} in Tango"
    try:
        proxy = tango.DeviceProxy(library_name(found, database))
        proxy.set_timeout_millis(ANSWER_MILLISECONDS)
        device_class, attributes, commands = (
            proxy.info().dev_class,
            sorted(proxy.attribute_list_query_ex(), key=lambda one: one.name),
            sorted(proxy.command_list_query(), key=lambda one: one.cmd_name),
        )
    except tango.DevFailed as failure:
        question = f"the device did not answer, so nothing is known of it: {first_line(failure)}"
        return DeviceDraft(
            f"{family_name} {member}", (domain,), signals=(f"tango:{device}",), source=source, questions=(question,)
        )
    units = {one.name: one.unit for one in attributes if one.unit}
    moved = next((units[name] for name in ("Position", "position", "Angle", "angle") if name in units), "")
    words = (device_class, family_name, member)
    family = family_of_axis(moved, *words) if moved else family_of_words(*words)
    own = [name for one in commands if (name := call_text(tango, one)) is not None]
    questions = [f"family guessed from {device_class}" if family else f"no family known for {device_class}"]
    if own:
        questions.append(f"commands: {', '.join(own)}; which of them may a procedure give, and what do they move")
    return DeviceDraft(
        name=f"{family_name} {member}",
        within=(domain,),
        family=family,
        signals=(f"tango:{device}",),
        limits=dict(limits_of(tango, f"tango:{device}", attributes)),
        source=source,
        questions=tuple(questions),
        notes=tuple(f"tango:{device}/{one.name}: {attribute_text(tango, one)}" for one in attributes),
    )


def library_name(device: "re.Match[str]", database: str | None) -> str:
    """Return the name by which the library finds a device."""
    if device["server"]:
        return f"tango://{device['server']}/{device['name']}#dbase=no"
    return f"tango://{database}/{device['name']}" if database else device["name"]


def limits_of(tango: Any, prefix: str, attributes: Iterable[Any]) -> Iterable[tuple[str, SignalRange]]:
    """Yield between which values each attribute that can be written may be set."""
    for one in attributes:
        low, high = bound(one.min_value), bound(one.max_value)
        if one.writable != tango.AttrWriteType.READ and (low is not None or high is not None):
            yield f"{prefix}/{one.name}", SignalRange(low, high, one.unit)


def bound(text: str) -> float | None:
    """Return the number that a limit is; None where it is not specified."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def call_text(tango: Any, command: Any) -> str | None:
    """Return a command with the type of its argument; None for those of every device."""
    if command.cmd_name in OF_EVERY_DEVICE:
        return None
    argument = "" if command.in_type == tango.CmdArgType.DevVoid else str(command.in_type)
    return f"{command.cmd_name}({argument})"


def attribute_text(tango: Any, attribute: Any) -> str:
    """Return what an attribute is, in a line."""
    kind = str(tango.CmdArgType.values[attribute.data_type])
    shape = {tango.AttrDataFormat.SPECTRUM: " list", tango.AttrDataFormat.IMAGE: " image"}.get(attribute.data_format, "")
    access = "read" if attribute.writable == tango.AttrWriteType.READ else "read and written"
    labels = f", one of {', '.join(attribute.enum_labels)}" if len(attribute.enum_labels) else ""
    return f"{kind}{shape}{f' in {attribute.unit}' if attribute.unit else ''}{labels}, {access}"


def first_line(failure: Any) -> str:
    """Return the first sentence of an error stack."""
    return " ".join(failure.args[0].desc.split())[:200].rstrip(".") if failure.args else "no reason was given"
