"""What is to be done so that the record says what a file says: a pure function of both, in the order of what needs what."""

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from baton.beamline.file import SECTIONS, AssetEntry
from baton.beamline.kinds import KINDS
from baton.beamline.kinds.assets import parent_of
from baton.beamline.kinds.kind import REASON, Obstacle, Ref, Update, part, references, rewrite, suffixes
from baton.beamline.reading import BeamlineFileError, LoadedFile
from baton.beamline.record import ALL_KINDS, BeamlineRecord, Key

NEVER_RETIRED = frozenset({"actors", "policies", "facilities", "roles"})


@dataclass(frozen=True)
class EntryPlace:
    """Where an entry stands, worked out only where it is said."""

    file: LoadedFile
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        return self.file.source.place(self.path)

    def below(self, *parts: str | int) -> "EntryPlace":
        """Return the place of a part of the entry."""
        return EntryPlace(self.file, (*self.path, *parts))


@dataclass(frozen=True)
class WantedThing:
    """An entry of a file under its key; an asset without what hangs below it."""

    section: str
    key: str
    texts: tuple[str, ...]
    entry: Any
    place: EntryPlace
    parent: str | None = None  # path of the asset above

    @property
    def name(self) -> str:
        """What people call it."""
        return name_of(self.section, self.entry, self.key)


def name_of(section: str, thing: Any, key: str) -> str:
    """Return what people call a thing: assets go by their path."""
    names = (getattr(thing, name, None) for name in ("name", "title", "code"))
    return key if section == "assets" else next((str(name) for name in names if name), key)


@dataclass(frozen=True)
class ThingChange:
    """What is to be done with one thing: commands one after the other, and what none can do."""

    section: str
    key: str
    updates: tuple[Update, ...] = ()
    obstacles: tuple[str, ...] = ()
    creates: bool = False
    retires: bool = False
    generation: int = 0  # How many of this key were retired before.
    needs: frozenset[Key] = frozenset()
    name: str = ""  # What people call it.
    place: EntryPlace | None = None

    def place_of(self, update: Update) -> str:
        """Return where the entry says what a command is to do, before a sentence; nothing for what no entry says."""
        return "" if self.place is None else f"{self.place.below(*update.at)}: "

    @property
    def title(self) -> str:
        """What kind of thing it is, and its name."""
        return f"{KINDS[self.section].label} {self.name or self.key}"


@dataclass(frozen=True)
class ChangePlan:
    """All that is to be done: what is made and changed, and then what is retired, in this order."""

    changes: tuple[ThingChange, ...] = ()
    retirements: tuple[ThingChange, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)  # Paths of assets that have another one on record.
    remarks: tuple[str, ...] = ()  # What somebody should know, and no command changes.
    refused: int = 0  # How many changes would be refused.

    @property
    def commands(self) -> int:
        """How many commands there are."""
        return sum(len(one.updates) for one in (*self.changes, *self.retirements))

    @property
    def obstacles(self) -> list[str]:
        """What cannot be changed, and why."""
        return [f"{one.title}: {sentence}" for one in self.changes for sentence in one.obstacles]


@dataclass
class TextIndex:
    """The things that a text may mean, of the file and of the record."""

    texts: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, section: str, texts: Iterable[str]) -> None:
        """Add a thing by its texts; its key is the last."""
        known = tuple(texts)
        for text in known:
            self.texts[section, text].add(known[-1])

    def keys(self, section: str, text: str) -> set[str]:
        """Return the keys that a text may mean; a whole key means itself."""
        normal = ALL_KINDS[section].normal(text)
        found = self.texts.get((section, normal), set())
        return {normal} if normal in found else found


def wanted_things(files: Iterable[LoadedFile]) -> list[WantedThing]:
    """Return the entries of files, assets one by one."""
    found: list[WantedThing] = []
    for file in files:
        for section in SECTIONS:
            for index, entry in enumerate(getattr(file.content, section)):
                place = EntryPlace(file, (section, index))
                if section == "assets":
                    found += asset_things(entry, None, place)
                else:
                    texts = KINDS[section].texts(entry)
                    found.append(WantedThing(section, texts[-1], texts, entry, place))
    return found


def asset_things(entry: AssetEntry, parent: str | None, place: EntryPlace) -> Iterator[WantedThing]:
    """Yield an asset and everything below it."""
    path = part(entry.name) if parent is None else f"{parent}/{part(entry.name)}"
    own = entry.model_copy(update={"children": None})
    yield WantedThing("assets", path, suffixes(path), own, place, parent)
    for index, child in enumerate(entry.children or ()):
        yield from asset_things(child, path, place.below("children", index))


def with_default_facility(things: Iterable[WantedThing], facility: str | None) -> Iterator[WantedThing]:
    """Yield the things with the service's only site as facility of those that name none."""
    for thing in things:
        names_one = "facility" in type(thing.entry).model_fields and thing.parent is None
        if names_one and thing.entry.facility is None and facility is not None:
            entry = thing.entry.model_copy(update={"facility": facility})
            texts = thing.texts if thing.section == "assets" else KINDS[thing.section].texts(entry)
            yield replace(thing, key=texts[-1], texts=texts, entry=entry)
        else:
            yield thing


def recorded_key(thing: WantedThing, record: BeamlineRecord, moved: Mapping[str, str]) -> str:
    """Return the key that a thing has on record: an asset may have another name or place there."""
    if thing.section != "assets" or ("assets", thing.key) in record.things:
        return thing.key
    if thing.entry.formerly is not None:
        return str(thing.entry.formerly)
    if thing.parent is not None and thing.parent in moved:
        return f"{moved[thing.parent]}/{part(thing.entry.name)}"
    return thing.key


def resolve(things: list[WantedThing], record: BeamlineRecord) -> list[WantedThing]:
    """Return the things with keys for all their references; raise every reference that leads nowhere or to several."""
    index = TextIndex()
    for recorded in (*record.things.values(), *(rivals[0] for rivals in record.rivals.values())):
        index.add(recorded.section, recorded.texts)
    for thing in things:
        index.add(thing.section, thing.texts)
    faults, found = [], []
    seen: dict[Key, WantedThing] = {}
    for thing in things:
        key = (thing.section, thing.key)
        if key in seen:
            faults.append(f"{thing.place}: {KINDS[thing.section].label} {thing.key} stands here and at {seen[key].place}.")
        seen.setdefault(key, thing)
        if key in record.rivals:
            ids = ", ".join(str(one.id) for one in record.rivals[key])
            faults.append(
                f"{thing.place}: several of {thing.section} are called {thing.key} on record ({ids}); retire all but one."
            )
        replaced: dict[tuple[tuple[str, ...], str], str] = {}
        for name, sections, text in references(thing.entry):
            keys = {(section, one) for section in sections for one in index.keys(section, text)}
            if len(keys) == 1 and next(iter(keys)) not in record.rivals:
                replaced[sections, text] = next(iter(keys))[1]
            else:
                faults.append(f"{thing.place}: {name}: {reference_fault(sections, text, keys, index, record)}")
                replaced[sections, text] = text
        found.append(replace(thing, entry=rewrite(thing.entry, replaced)))
    if faults:
        raise BeamlineFileError(faults)
    return found


def reference_fault(sections: tuple[str, ...], text: str, keys: set[Key], index: TextIndex, record: BeamlineRecord) -> str:
    """Return why a reference means no single thing."""
    labels = " or ".join(ALL_KINDS[section].label for section in sections)
    if len(keys) > 1:
        return f"{text!r} may be {', '.join(sorted(key for _, key in keys))}; write it out."
    if keys:
        return f"several of {next(iter(keys))[0]} are called {text!r} on record; retire all but one."
    if unlisted := [record.refused[section] for section in sections if section in record.refused]:
        return f"there is no {labels} {text!r} in the file, and the record cannot be asked: {unlisted[0]}"
    known = [one for section, one in index.texts if section in sections]
    like = difflib.get_close_matches(text, known, 3)
    hint = f"; did you mean {' or '.join(map(repr, like))}?" if like else "."
    return f"there is no {labels} {text!r}, neither in the file nor on record{hint}"


def changes(record: BeamlineRecord, files: Iterable[LoadedFile], *, prune: bool = False) -> ChangePlan:
    """Return what is to be done so that the record says what the files say; with `prune`, also what is to be retired."""
    things = resolve(list(with_default_facility(wanted_things(files), record.facility)), record)
    moved: dict[str, str] = {}
    planned: list[ThingChange] = []
    named: set[Key] = set()
    known = record.things.keys() | {(thing.section, thing.key) for thing in things}
    for thing in things:
        at = recorded_key(thing, record, moved)
        if at != thing.key:
            moved[thing.key] = at
        named.add((thing.section, at))
        change = compare(thing, at, record, known)
        if change.updates or change.obstacles:
            planned.append(change)
    retirements = tuple(retired_things(things, named, record)) if prune else ()
    return ChangePlan(tuple(planned), retirements, moved)


def compare(thing: WantedThing, at: str, record: BeamlineRecord, known: Collection[Key]) -> ThingChange:
    """Return what is to be done with one thing."""
    kind = KINDS[thing.section]
    named = {(section, text) for _, sections, text in references(thing.entry) for section in sections}
    needs = {key for key in named if key in known}
    if thing.parent is not None:
        needs.add(("assets", thing.parent))
    needs.discard((thing.section, thing.key))
    key = (thing.section, at)
    common: dict[str, Any] = {"section": thing.section, "key": thing.key, "needs": frozenset(needs), "name": thing.name}
    common["place"] = thing.place
    if key in record.unnamed:
        return ThingChange(**common, obstacles=(f"what is on record cannot be compared: {record.unnamed[key]}",))
    if key not in record.things:
        return creation(thing, at, record, common)
    steps = [*moves(thing, at), *kind.differences(record.entries[key], thing.entry, record.views[key])]
    return ThingChange(**common, **updates_and_obstacles(steps))


def creation(thing: WantedThing, at: str, record: BeamlineRecord, common: dict[str, Any]) -> ThingChange:
    """Return how a thing is made, and brought to what its entry says."""
    kind, entry = KINDS[thing.section], thing.entry
    if at != thing.key:
        return ThingChange(**common, obstacles=(f"formerly {at}: there is no such asset on record",))
    if (why := kind.obstacle(entry)) is not None:
        return ThingChange(**common, obstacles=(why,))
    if "facility" in type(entry).model_fields and thing.parent is None and entry.facility is None:
        return ThingChange(**common, obstacles=("it names no facility, and there is not just one; add `facility`",))
    operation, arguments = kind.creation(entry)
    if thing.parent is not None:
        arguments = {**arguments, "parent_id": Ref("assets", thing.parent)}
        arguments.pop("facility_code", None)
    steps = [Update(operation, arguments, ""), *kind.differences(kind.initial(entry), entry, None)]
    generation = record.retired[thing.section, thing.key]
    return ThingChange(**common, **updates_and_obstacles(steps), creates=True, generation=generation)


def moves(thing: WantedThing, at: str) -> Iterator[Update]:
    """Yield the commands that rename and move an asset; one below an asset that moves goes along."""
    if thing.section != "assets" or at == thing.key or thing.entry.formerly is None:
        return
    before, after = parent_of(at), thing.parent
    if suffixes(at)[0] != suffixes(thing.key)[0]:
        yield Update("rename_asset", {"name": thing.entry.name}, f"name {suffixes(at)[0]} -> {thing.entry.name}")
    if before != after:
        goal = {"to_parent_id": None if after is None else Ref("assets", after), "reason": REASON}
        yield Update("relocate_asset", goal, f"below {before} -> {after}")


def updates_and_obstacles(steps: Iterable[Update | Obstacle]) -> dict[str, Any]:
    """Return the commands and the obstacles apart."""
    known = list(steps)
    return {
        "updates": tuple(one for one in known if isinstance(one, Update)),
        "obstacles": tuple(one.sentence for one in known if isinstance(one, Obstacle)),
    }


def retired_things(things: list[WantedThing], named: set[Key], record: BeamlineRecord) -> Iterator[ThingChange]:
    """Yield what the files do not name and is to be retired: of each section that they have, and of assets below the roots
    that they have, the deepest first."""
    sections = {thing.section for thing in things}
    roots = {thing.key for thing in things if thing.section == "assets" and thing.parent is None}
    order = [section for section in reversed(SECTIONS) if section in sections - NEVER_RETIRED]
    for section in order:
        kind = KINDS[section]
        left = [one for key, one in record.things.items() if key[0] == section and key not in named and kind.is_own(one.row)]
        if section == "assets":
            left = [one for one in left if suffixes_root(one.key) in roots]
        for thing in sorted(left, key=lambda one: (-len(one.texts), one.key)):
            if (command := kind.retirement(thing)) is not None:
                update = Update(command[0], command[1], "retire")
                yield ThingChange(
                    section, thing.key, (update,), retires=True, name=name_of(thing.section, thing.row, thing.key)
                )


def suffixes_root(path: str) -> str:
    """Return the root of an asset's path."""
    parent = parent_of(path)
    return path if parent is None else suffixes_root(parent)
