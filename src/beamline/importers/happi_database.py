"""Devices out of a happi database: the JSON file in which a site keeps what its Python objects are made of."""

import json
from pathlib import Path

from baton.beamline.importers.drafts import DeviceDraft, family_of_axis, family_of_words
from baton.beamline.importers.sources import UnreadableSourceError, read_text

PLACES = ("functional_group", "location_group")


def import_happi(path: Path) -> list[DeviceDraft]:
    """Return the active devices of a happi database."""
    try:
        database = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnreadableSourceError(f"{path.name} is no JSON: {error}.") from None
    if not isinstance(database, dict) or not all(isinstance(entry, dict) for entry in database.values()):
        raise UnreadableSourceError(f"{path.name} is no happi database; it is an object of entries by their names.")
    drafts = [draft_of(key, entry) for key, entry in database.items() if entry.get("active", True)]
    if not drafts:
        raise UnreadableSourceError(f"{path.name} has no active entry.")
    return drafts


def draft_of(key: str, entry: dict[str, object]) -> DeviceDraft:
    """Return the device of one entry."""
    name, device_class = text(entry, "name") or key, text(entry, "device_class")
    description = text(entry, "documentation")
    kind = device_class.rpartition(".")[2]
    family = family_of_axis("", name, description) if kind == "EpicsMotor" else family_of_words(kind, name, description)
    prefix = text(entry, "prefix")
    questions = [f"family guessed from {device_class or name}" if family else f"no family known for {device_class or name}"]
    questions += [] if prefix else ["no prefix in happi, so no signal of this device is known"]
    return DeviceDraft(
        name=name,
        within=tuple(place for part in PLACES if (place := text(entry, part)))[:1],
        family=family,
        serial_number=text(entry, "serial_number") or None,
        inventory_number=text(entry, "inventory_number") or None,
        signals=(prefix.rstrip(":"),) if prefix else (),
        description=description,
        source=f"{key} in happi",
        questions=tuple(questions),
    )


def text(entry: dict[str, object], name: str) -> str:
    """Return a text of an entry, empty where it has none; happi writes `N/A` for that."""
    value = entry.get(name)
    said = value.strip() if isinstance(value, str) else ""
    return "" if said == "N/A" else said
