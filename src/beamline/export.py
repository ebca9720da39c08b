"""The record as the text of a beamline file: in a stable order, references by the shortest name that is not ambiguous."""

from collections.abc import Mapping
from typing import Any

from baton.beamline.changes import TextIndex
from baton.beamline.file import SECTIONS, FileEntry
from baton.beamline.kinds import KINDS
from baton.beamline.kinds.assets import parent_of
from baton.beamline.kinds.kind import references, rewrite
from baton.beamline.record import BeamlineRecord, Key
from baton.beamline.yaml_text import yaml_text

REACHED_BACK = ("recipes", "plans", "schedules", "queues", "clearances", "supplies")
"""Sections of which a root brings along what refers only to what it has."""


THINGS = frozenset({*SECTIONS, "children"})  # Lists whose entries stand in lines of their own.


class UnknownRootError(Exception):
    """There is no such asset on record."""


def export_text(record: BeamlineRecord, root: str | None = None) -> str:
    """Return everything on record that a file can say, or what belongs to one asset and all below it."""
    entries = own_entries(record) if root is None else entries_below(record, root)
    left_out = [f"# left out: {KINDS[section].label} {key}: {why}" for (section, key), why in sorted(record.unnamed.items())]
    left_out += [
        f"# left out: {len(rivals)} of {section} are called {key}"
        for (section, key), rivals in sorted(record.rivals.items())
        if section in KINDS
    ]
    left_out += [f"# left out: {section}: {why}" for section, why in sorted(record.refused.items()) if section in KINDS]
    comments = "".join(f"{line}\n" for line in left_out) if root is None else ""
    return comments + yaml_text(document(record, entries), THINGS)


def own_entries(record: BeamlineRecord) -> dict[Key, FileEntry]:
    """Return the entries that belong into a file, without those that refer to what is left out."""
    found = {}
    for key, entry in record.entries.items():
        thing = record.things[key]
        if KINDS[key[0]].is_own(thing.row) or (key[0] == "agents" and says_something(entry)):
            found[key] = entry
    return found


def says_something(entry: Any) -> bool:
    """Return whether anything is set for one of the service's own agents."""
    return bool(entry.tools or entry.budget)


def entries_below(record: BeamlineRecord, root: str) -> dict[Key, FileEntry]:
    """Return an asset and all below it, what they refer to, and what is made of nothing else."""
    index = TextIndex()
    for thing in record.things.values():
        index.add(thing.section, thing.texts)
    keys = index.keys("assets", root)
    if len(keys) != 1:
        listed = f"; it may be {', '.join(sorted(keys))}" if keys else ""
        raise UnknownRootError(f"There is no single asset {root!r} on record{listed}.")
    top = next(iter(keys))
    found = {key for key in record.entries if key[0] == "assets" and (key[1] == top or key[1].startswith(f"{top}/"))}
    entries = own_entries(record)
    while True:
        more = {key for key in entries if key not in found and belongs(key, entries[key], found)}
        more |= {need for key in found if key in entries for need in needs_of(key, entries[key]) if need in entries} - found
        if not more:
            return {key: entry for key, entry in entries.items() if key in found}
        found |= more


def needs_of(key: Key, entry: FileEntry) -> set[Key]:
    """Return what an entry refers to, and the asset above."""
    needs = {(section, text) for _, sections, text in references(entry) for section in sections}
    above = parent_of(key[1]) if key[0] == "assets" else None
    return needs if above is None else needs | {("assets", above)}


def belongs(key: Key, entry: FileEntry, found: set[Key]) -> bool:
    """Return whether an entry is made of nothing but what is found already."""
    needs = {need for need in needs_of(key, entry) if need[0] in SECTIONS and need[0] != "facilities"}
    return key[0] in REACHED_BACK and bool(needs) and needs <= found


def document(record: BeamlineRecord, entries: Mapping[Key, FileEntry]) -> dict[str, Any]:
    """Return entries as the plain data of a file."""
    shown = shown_texts(record)
    data: dict[str, object] = {"baton": 1, **({"facility": record.facility} if record.facility else {})}
    for section in SECTIONS:
        own = {key[1]: entry for key, entry in entries.items() if key[0] == section}
        items = asset_items(own, shown) if section == "assets" else [entry_data(own[key], shown) for key in sorted(own)]
        for item in items:
            if item.get("facility") == record.facility:
                item.pop("facility")
        if items:
            data[section] = items
    return data


def asset_items(own: Mapping[str, FileEntry], shown: Mapping[tuple[tuple[str, ...], str], str]) -> list[dict[str, Any]]:
    """Return assets as trees."""
    items = {path: entry_data(own[path], shown) for path in sorted(own)}
    roots = []
    for path, item in items.items():
        above = parent_of(path)
        if above in items:
            items[above].setdefault("children", []).append(item)
        else:
            roots.append(item)
    return roots


def entry_data(entry: FileEntry, shown: Mapping[tuple[tuple[str, ...], str], str]) -> dict[str, Any]:
    """Return an entry as plain data; what is empty or usual is left out."""
    named = rewrite(entry, shown)
    data = named.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    if data.get("lifecycle") == "Active":
        data.pop("lifecycle")
    return {name: value for name, value in data.items() if value not in ([], {})}


def shown_texts(record: BeamlineRecord) -> Mapping[tuple[tuple[str, ...], str], str]:
    """Return what a file calls each thing: the shortest text that means nothing else; assets by their whole path."""
    index = TextIndex()
    for thing in record.things.values():
        index.add(thing.section, thing.texts)
    shown: dict[tuple[str, str], str] = {}
    for (section, key), thing in record.things.items():
        texts = display_texts(section, thing)
        clear = (text for text in texts if index.keys(section, text) == {key})
        shown[section, key] = texts[-1] if section == "assets" else next(clear, texts[-1])
    return ShownTexts(shown)


def display_texts(section: str, thing: Any) -> tuple[str, ...]:
    """Return the texts of a thing as people write them."""
    if section in ("families", "roles"):
        return (thing.row.name,)
    return tuple(map(str, thing.texts))


class ShownTexts(dict[tuple[tuple[str, ...], str], str]):
    """What a file calls things, by the sections a reference may lead to and the key."""

    def __init__(self, shown: Mapping[tuple[str, str], str]) -> None:
        super().__init__()
        self.shown = shown

    def __missing__(self, reference: tuple[tuple[str, ...], str]) -> str:
        sections, key = reference
        return next((self.shown[section, key] for section in sections if (section, key) in self.shown), key)
