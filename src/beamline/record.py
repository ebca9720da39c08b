"""The record as a beamline file would say it, read through the client: lists in pages of 100, then what is needed whole."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from time import monotonic, sleep
from typing import Any, get_args
from uuid import UUID

from pydantic import TypeAdapter

from baton.beamline.file import SECTIONS, FileEntry, RefersTo
from baton.beamline.kinds import KINDS
from baton.beamline.kinds.kind import Names, RecordedThing, ReferredSection, UnnamedError, nested_forms, part, suffixes
from baton.beamline.kinds.lookups import LOOKUPS
from baton.client import Baton
from baton.client.answers import ServiceAnswer
from baton.client.refusals import Forbidden
from baton.domain.contexts import REGISTRY
from baton.domain.facility.facility import FacilityKind, FacilityStatus

ALL_KINDS: dict[str, ReferredSection[Any]] = {**LOOKUPS, **KINDS}
AT_ONCE = 8  # requests under way at the same time
ASSETS_AT_ONCE = 250  # assets that one request reads whole
FIRST_START_SECONDS = 15.0  # how long a service that has just begun may take to fill its lists
Key = tuple[str, str]  # A section and a key in it.


@dataclass(frozen=True)
class AssetOnRecord:
    """What is known of an asset besides its entry: the families that its model declares."""

    model_families: frozenset[str]


@dataclass
class BeamlineRecord:
    """What is on record: things by section and key, and of those that were read whole, their entries."""

    names: Names = field(default_factory=Names)
    things: dict[Key, RecordedThing] = field(default_factory=dict)  # Those that are in use and alone under their key.
    rivals: dict[Key, list[RecordedThing]] = field(default_factory=dict)  # Keys that several in use share.
    retired: Counter[Key] = field(default_factory=Counter)  # How many of a key were retired.
    entries: dict[Key, FileEntry] = field(default_factory=dict)
    views: dict[Key, Any] = field(default_factory=dict)
    unnamed: dict[Key, str] = field(default_factory=dict)  # What a file cannot say, and why.
    refused: dict[str, str] = field(default_factory=dict)  # Sections that the caller may not list, and why.
    facility: str | None = None  # The only site in use.

    def add(self, thing: RecordedThing) -> None:
        """Add a thing under its key."""
        key = (thing.section, thing.key)
        self.names.known[thing.id] = thing
        if not thing.live:
            self.retired[key] += 1
        elif key in self.rivals:
            self.rivals[key].append(thing)
        elif key in self.things:
            self.rivals[key] = [self.things.pop(key), thing]
            self.names.ambiguous.add(key)
        else:
            self.things[key] = thing


@cache
def referred_sections(form: type[FileEntry]) -> frozenset[str]:
    """Return the sections that entries of this form refer to, nested entries included."""
    found: set[str] = set()
    for info in form.model_fields.values():
        found.update(section for mark in info.metadata if isinstance(mark, RefersTo) for section in mark.sections)
        nested = {one for one in nested_forms(info.annotation) if one is not form}
        found.update(section for one in nested for section in referred_sections(one))
    return frozenset(found)


def needed_sections(sections: Iterable[str]) -> list[str]:
    """Return these sections and all that they refer to, in the order in which they can be named."""
    needed, rest = set[str](), set(sections)
    while rest:
        needed |= rest
        rest = {one for section in rest if section in SECTIONS for one in referred_sections(SECTIONS[section])} - needed
    return [section for section in ALL_KINDS if section in needed]


@cache
def form_adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def declared_form(form: object, answer: ServiceAnswer) -> Any:
    """Return an answer of the client in the model that the domain declares for it."""
    return form_adapter(form).validate_python(answer.to_dict(), extra="ignore")


class RecordReader:
    """Reads the record of a service."""

    def __init__(self, client: Baton) -> None:
        self.client = client
        self.record = BeamlineRecord()

    def list_things(self, sections: Iterable[str]) -> BeamlineRecord:
        """List these sections and all that they refer to."""
        needed = needed_sections(sections)
        self.catch_up()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            listed = dict(zip(needed, pool.map(self.rows, needed), strict=True))
        for section in needed:
            if section == "assets":
                self.add_assets(listed[section])
            else:
                self.add_rows(section, listed[section])
        own = (row for row in listed.get("facilities", ()) if row.kind is FacilityKind.SITE)
        sites = [row for row in own if row.status is FacilityStatus.ACTIVE]
        self.record.facility = sites[0].code if len(sites) == 1 else None
        return self.record

    def catch_up(self) -> None:
        """Have lists show everything that is recorded by now, where the caller may read the log."""
        with suppress(Forbidden):
            newest = self.client.call("list_events", order="desc", limit=1, payloads=False).items
            self.client.session.position = max([self.client.session.position, *(event.position for event in newest)])
        deadline = monotonic() + FIRST_START_SECONDS
        while not self.client.call("list_facilities", limit=1).items and monotonic() < deadline:
            sleep(0.2)  # every service has its own facility: its lists are being filled for the first time

    def rows(self, section: str) -> list[Any]:
        """Return every row of a list; none where the caller may not list it."""
        listing = ALL_KINDS[section].lists
        form = get_args(REGISTRY.operations[listing].returns)[0]
        try:
            return [declared_form(form, row) for row in self.client.every(listing)]
        except Forbidden as refusal:
            self.record.refused[section] = refusal.detail
            return []

    def add_rows(self, section: str, rows: Iterable[object]) -> None:
        """Add the things of a list."""
        kind = ALL_KINDS[section]
        for row in rows:
            id, live = getattr(row, kind.id_name), kind.is_live(row)
            try:
                texts = kind.texts(kind.identity(row, self.record.names))
            except UnnamedError as error:
                if live:
                    self.record.unnamed[section, getattr(row, "name", str(id))] = str(error)
                continue
            self.record.add(RecordedThing(section, id, texts, row, live))

    def add_assets(self, rows: Collection[Any]) -> None:
        """Add the assets under their paths."""
        by_id = {row.asset_id: row for row in rows}
        paths: dict[UUID, str] = {}

        def path(id: UUID) -> str:
            if id not in paths:
                row = by_id[id]
                above = path(row.parent_id) + "/" if row.parent_id in by_id else ""
                paths[id] = above + part(row.name)
            return paths[id]

        kind = KINDS["assets"]
        for row in rows:
            texts = suffixes(path(row.asset_id))
            self.record.add(RecordedThing("assets", row.asset_id, texts, row, kind.is_live(row)))

    def read_entries(self, keys: Iterable[Key], advance: Callable[[int], None] = lambda count: None) -> None:
        """Read these things whole; what a file cannot say is noted with the reason."""
        wanted: dict[str, list[RecordedThing]] = defaultdict(list)
        for key in keys:
            if key in self.record.things and key[0] in KINDS:
                wanted[key[0]].append(self.record.things[key])
        assets = wanted.pop("assets", [])
        chunks = [assets[start : start + ASSETS_AT_ONCE] for start in range(0, len(assets), ASSETS_AT_ONCE)]
        single = [thing for things in wanted.values() for thing in things]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for things, contents in zip(chunks, pool.map(self.contents, chunks), strict=True):
                for thing in things:
                    self.note(thing, contents[thing.id])
                advance(len(things))
            for thing, view in zip(single, pool.map(self.view, single), strict=True):
                self.note(thing, view)
                advance(1)

    def contents(self, things: Collection[RecordedThing]) -> Mapping[UUID, Any]:
        """Return assets whole, by their ids."""
        answer = self.ask("read_assets", asset_ids=[thing.id for thing in things])
        return {one.asset_id: one for one in answer.items}

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Return the answer of a query in the domain's own models, which entries are made of."""
        return declared_form(REGISTRY.operations[operation].returns, self.client.call(operation, **arguments))

    def view(self, thing: RecordedThing) -> Any:
        """Return one thing whole; its row where that says everything."""
        kind = KINDS[thing.section]
        wanted: dict[str, object] = {kind.id_name: thing.id}
        return thing.row if kind.gets is None else self.ask(kind.gets, **wanted)

    def note(self, thing: RecordedThing, view: Any) -> None:
        """Keep the entry of a thing, or why there can be none."""
        key, record = (thing.section, thing.key), self.record
        try:
            record.entries[key] = KINDS[thing.section].entry(view, thing, record.names)
        except UnnamedError as error:
            record.unnamed[key] = str(error)
        record.views[key] = view if thing.section != "assets" else AssetOnRecord(self.model_families(view.model_id))

    def model_families(self, model_id: UUID | None) -> frozenset[str]:
        """Return the families that a model declares."""
        model = None if model_id is None else self.record.names.known.get(model_id)
        ids = () if model is None else model.row.declared_family_ids
        return frozenset(self.record.names.known[id].key for id in ids if id in self.record.names.known)
