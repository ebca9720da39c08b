"""One section of a beamline file, a kind of thing: what it is called, how it is read from the record, and the commands that
make it, change it and retire it. All of it is pure; commands refer to things by name until they are issued."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from baton.beamline.file import SECTIONS, FileEntry, RefersTo
from baton.domain.shared.canonical import canonical_json, content_hash

REASON = "as the beamline file says"
E = TypeVar("E", bound=FileEntry)
USUAL_DOMAIN_NAMES = {"facility": "facility_code", "version": "version_tag"}


@dataclass(frozen=True)
class Ref:
    """A thing that a command refers to, by its section and key; its id stands there when the command is issued."""

    section: str
    key: str


@dataclass(frozen=True)
class Pin:
    """The content hash that an assembly has when the command is issued."""

    assembly: Ref


@dataclass(frozen=True)
class Update:
    """One command on a thing; `sentence` says what it does. `repeatable` tells that a second one would change nothing, and
    `at` below which part of the entry it stands."""

    operation: str
    arguments: Mapping[str, Any]
    sentence: str
    repeatable: bool = True
    at: tuple[str, ...] = ()


@dataclass(frozen=True)
class Obstacle:
    """A difference that no command can remove, and why."""

    sentence: str


Step = Update | Obstacle


class UnnamedError(Exception):
    """Something on record refers to a thing that a file cannot name; the sentence says which."""


@dataclass(frozen=True)
class RecordedThing:
    """A thing on record: its id, its row in the list, and what a file may call it, the key last."""

    section: str
    id: UUID
    texts: tuple[str, ...]
    row: Any
    live: bool

    @property
    def key(self) -> str:
        return self.texts[-1]


@dataclass
class Names:
    """What a file calls the things of the record, by their ids."""

    known: dict[UUID, RecordedThing] = field(default_factory=dict)
    ambiguous: set[tuple[str, str]] = field(default_factory=set)  # Keys that several live things share.

    def key(self, id: UUID) -> str:
        """Return the key of a thing; raise where a file cannot name it."""
        thing = self.known.get(id)
        if thing is None:
            raise UnnamedError(f"it refers to {id}, which cannot be listed")
        if not thing.live:
            raise UnnamedError(f"it refers to {thing.texts[0]!r} of {thing.section}, which is retired")
        if (thing.section, thing.key) in self.ambiguous:
            raise UnnamedError(f"it refers to {thing.texts[0]!r} of {thing.section}, and several have that name")
        return thing.key

    def optional(self, id: UUID | None) -> str | None:
        """Return the key of a thing, or None where there is none."""
        return None if id is None else self.key(id)

    def keys(self, ids: Iterable[UUID]) -> tuple[str, ...]:
        """Return the keys of things, in order."""
        return tuple(sorted(self.key(id) for id in ids))


class ReferredSection(Generic[E]):
    """A section of things that entries refer to: where they are listed and what a file calls them."""

    section: ClassVar[str]
    label: ClassVar[str]
    lists: ClassVar[str]
    id_name: ClassVar[str]
    retired: ClassVar[frozenset[str]] = frozenset({"Deprecated", "Decommissioned", "Retired"})
    axis: ClassVar[str] = "status"
    told_by: ClassVar[tuple[str, ...]] = ("name",)  # Fields that the texts of a thing are made of.
    domain_names: ClassVar[Mapping[str, str]] = {}  # What commands and answers call fields, where a file says otherwise.

    @property
    def form(self) -> type[E]:
        """The form of the section's entries."""
        return cast("type[E]", SECTIONS[self.section])

    def domain_name(self, name: str) -> str:
        """Return what commands and answers call a field."""
        return self.domain_names.get(name, USUAL_DOMAIN_NAMES.get(name, name))

    def texts(self, entry: E) -> tuple[str, ...]:
        """Return what a file may call a thing, from the shortest to the one that tells it from all others, its key."""
        return (normal(dict(entry)["name"]),)

    def normal(self, text: str) -> str:
        """Return a reference in the form in which texts are compared."""
        return normal(text)

    def recorded_value(self, view: Any, name: str, names: Names) -> Any:
        """Return a field of an answer as a file says it: keys for ids, sets in order."""
        match getattr(view, self.domain_name(name)):
            case UUID() as id:
                return names.key(id)
            case set() | frozenset() as members if any(isinstance(one, UUID) for one in members):
                return names.keys(members)
            case set() | frozenset() as members:
                return tuple(sorted(members))
            case value:
                return value

    def identity(self, row: Any, names: Names) -> E:
        """Return the entry of a row as far as its texts need it."""
        return self.form.model_construct(**{name: self.recorded_value(row, name, names) for name in self.told_by})

    def is_live(self, row: Any) -> bool:
        """Return whether a row is of a thing that is in use; retired ones are passed over."""
        return str(getattr(row, self.axis, "")) not in self.retired


class Section(ReferredSection[E]):
    """A section of things that files hold; each says what is its own. Most fields are copied as they are, under the names
    that `domain_names` gives; fields that need more are handed to `read_entry` and `arguments` by `entry` and `creation`."""

    gets: ClassVar[str | None] = None  # The query of one whole thing; None where its row in the list says everything.
    creates: ClassVar[str]  # The command that makes a thing.
    retires: ClassVar[str | None] = None  # The command that retires one; None where a file never does.
    nullable: ClassVar[frozenset[str]] = frozenset()  # Fields whose null asks for none, rather than for nothing.
    ordered: ClassVar[frozenset[str]] = frozenset()  # Lists whose order counts.
    listed: ClassVar[tuple[str, ...]] = ()  # Lists that a creation gives even where the entry says nothing of them.
    later: ClassVar[Mapping[str, Any]] = {}  # What a creation leaves in the fields that only further commands set.
    unrecorded: ClassVar[frozenset[str]] = frozenset()  # Fields that tell how to apply an entry, and are not on record.
    fixed: ClassVar[tuple[str, ...]] = ()  # Fields that no command changes.
    why_fixed: ClassVar[str] = ""

    def is_own(self, row: Any) -> bool:
        """Return whether a thing belongs into a file; those of the service itself do not."""
        return True

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> E:
        """Return a thing on record as a file would say it, references by key; raise where a file cannot."""
        return self.read_entry(view, names)

    def read_entry(self, view: Any, names: Names, **own: Any) -> E:
        """Return the entry of an answer, whose fields are copied but for those that are given."""
        copied = (name for name in self.form.model_fields if name not in own and name not in self.unrecorded)
        return self.form(**without_none(**{name: self.recorded_value(view, name, names) for name in copied}, **own))

    def creation(self, entry: E) -> tuple[str, dict[str, Any]]:
        """Return the command that makes the thing of an entry."""
        return self.creates, self.arguments(entry)

    def arguments(self, entry: E, **own: Any) -> dict[str, Any]:
        """Return the arguments of a creation, copied but for those that are given under the names of fields; what the entry
        leaves open is left out."""
        others = {*own, *self.later, *self.unrecorded}
        copied = {name: self.argument(entry, name) for name in type(entry).model_fields if name not in others}
        return without_none(**{self.domain_name(name): value for name, value in (copied | own).items()})

    def argument(self, entry: E, name: str) -> Any:
        """Return a field as a command says it: references for keys."""
        value, called = getattr(entry, name), self.domain_name(name)
        sections = dict(marked_fields(type(entry))).get(name) or ()
        section = sections[0] if len(sections) == 1 else "principals"
        if sections and called.endswith("_ids"):
            return refs(section, value)
        if sections and called.endswith("_id"):
            return ref(section, value)
        if name in self.listed:
            return list(value or ())
        return plain(value) if isinstance(value, BaseModel | tuple | Mapping) else value

    def initial(self, entry: E) -> E:
        """Return the entry as its creation alone leaves it."""
        return entry.model_copy(update=self.later)

    def obstacle(self, entry: E) -> str | None:
        """Return why the thing of an entry cannot be made, or None."""
        return None

    def differences(self, old: E, new: E, view: Any) -> Iterator[Step]:
        """Yield the commands that bring what is on record to what the file says, in order. `view` is what was read of it;
        None for a thing that is made by this very plan."""
        yield from self.fixed_fields(old, new)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, Any]] | None:
        """Return the command that retires a thing, or None where a file never does."""
        return None if self.retires is None else (self.retires, {"reason": REASON})

    def asks(self, new: E, name: str) -> bool:
        """Return whether an entry says something about a field."""
        return name in new.model_fields_set and (getattr(new, name) is not None or name in self.nullable)

    def differs(self, old: E, new: E, name: str) -> bool:
        """Return whether the file asks for another value of a field than there is."""
        return self.asks(new, name) and comparable(getattr(old, name), name in self.ordered) != comparable(
            getattr(new, name), name in self.ordered
        )

    def field_changes(self, old: E, new: E, names: Iterable[str]) -> list[str]:
        """Return the fields that differ, each in few words."""
        differ = (name for name in names if self.differs(old, new, name))
        return [shown_change(name, getattr(old, name), getattr(new, name)) for name in differ]

    def wanted_fields(self, old: E, new: E, names: Iterable[str]) -> dict[str, Any]:
        """Return what fields are to be; what the file leaves out stays."""
        return {name: getattr(new if self.asks(new, name) else old, name) for name in names}

    def fixed_fields(self, old: E, new: E) -> Iterator[Obstacle]:
        """Yield an obstacle for each field that differs and that no command changes."""
        yield from (Obstacle(f"{change}: {self.why_fixed}") for change in self.field_changes(old, new, self.fixed))

    def gained_and_lost(self, old: E, new: E, name: str) -> tuple[list[Any], list[Any]]:
        """Return what a list gains and what it loses; nothing where the file does not speak of it."""
        return members_changed(getattr(old, name), getattr(new, name)) if self.asks(new, name) else ([], [])

    def patch(self, operation: str, old: E, new: E, name: str) -> Iterator[Update]:
        """Yield the command that merges what differs into an object."""
        before = getattr(old, name) or {}
        if self.asks(new, name) and (patch := merge_patch_to(before, getattr(new, name) or {})):
            sentence = shown_change(name, {field: before.get(field) for field in patch}, patch)
            yield Update(operation, {f"{name}_patch": patch}, sentence, at=(name,))

    def names_version(self, old: E, new: E) -> bool:
        """Return whether the file names another version than there is."""
        return self.asks(new, "version") and dict(new)["version"] != dict(old)["version"]

    def new_version(self, old: E, new: E, operation: str, content: Mapping[str, Any], changed: list[str]) -> Iterator[Step]:
        """Yield the command that gives content a new version, where it changed or the file names another version. A tag that
        the file does not give follows from the content."""
        given: str | None = dict(new)["version"]
        labelled = self.names_version(old, new)
        if not changed and not labelled:
            return
        if changed and given is not None and not labelled:
            yield Obstacle(f"{'; '.join(changed)}: version {given} names other content on record; raise the version")
            return
        tag = given or f"file-{content_hash(plain(content))[:12]}"
        sentence = "; ".join([*changed, f"version {tag}"])
        yield Update(operation, {"version_tag": tag, **content}, sentence, repeatable=False)


def normal(text: str) -> str:
    """Return a text in the form in which it is compared."""
    return unicodedata.normalize("NFC", text).strip()


def part(text: str) -> str:
    """Return a name as a part of a path."""
    return normal(text).replace("\\", "\\\\").replace("/", "\\/")


def path_of(*parts: str | None) -> str:
    """Return a path of names; those that are None are left out."""
    return "/".join(part(one) for one in parts if one is not None)


def split_path(path: str) -> list[str]:
    """Return the escaped parts of a path."""
    parts, current, escaped = [], "", False
    for character in path:
        if character == "/" and not escaped:
            parts.append(current)
            current = ""
            continue
        current += character
        escaped = character == "\\" and not escaped
    return [*parts, current]


def suffixes(path: str) -> tuple[str, ...]:
    """Return the ends of a path, from its last part to the whole."""
    parts = split_path(path)
    return tuple("/".join(parts[-count:]) for count in range(1, len(parts) + 1))


def plain(value: Any) -> Any:
    """Return a value as JSON data."""
    if isinstance(value, Ref | Pin):
        return repr(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(one) for one in value]
    return to_jsonable_python(value)


def comparable(value: Any, ordered: bool = False) -> Any:
    """Return a form that is equal for values that mean the same; the order of a list counts only where that is said."""
    data = plain(value)
    if isinstance(data, list) and not ordered:
        return sorted({canonical_json(one) for one in data})
    return canonical_json(data)


def short_text(value: Any) -> str:
    """Return a value in few words."""
    data = plain(value)
    text = "none" if data in (None, [], {}) else data if isinstance(data, str) else canonical_json(data).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def shown_change(name: str, old: Any, new: Any) -> str:
    """Return a change of a field in few words."""
    return f"{name} {short_text(old)} -> {short_text(new)}"


def refs(section: str, keys: Iterable[str] | None) -> list[Ref]:
    """Return the references to things of one section."""
    return [Ref(section, key) for key in keys or ()]


def ref(section: str, key: str | None) -> Ref | None:
    """Return the reference to a thing, or None where none is named."""
    return None if key is None else Ref(section, key)


def without_none(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def members_changed(old: Iterable[Any] | None, new: Iterable[Any] | None) -> tuple[list[Any], list[Any]]:
    """Return what a list gains and what it loses."""
    if tuple(old or ()) == tuple(new or ()):
        return [], []
    before = {canonical_json(plain(one)): one for one in old or ()}
    after = {canonical_json(plain(one)): one for one in new or ()}
    return [one for at, one in after.items() if at not in before], [one for at, one in before.items() if at not in after]


def merge_patch_to(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that turns one object into another: a value sets, null deletes, objects merge."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch_to(before, value):
                patch[name] = inner
        elif name not in old or canonical_json(plain(before)) != canonical_json(plain(value)):
            patch[name] = plain(value)
    return patch


@cache
def marked_fields(form: type[FileEntry]) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
    """Return the fields of a form that refer to sections, and with None those that may hold entries that do."""
    found: list[tuple[str, tuple[str, ...] | None]] = []
    for name, info in form.model_fields.items():
        marks = [mark.sections for mark in info.metadata if isinstance(mark, RefersTo)]
        if marks or any(True for _ in nested_forms(info.annotation)):
            found.append((name, marks[0] if marks else None))
    return tuple(found)


def nested_forms(annotation: Any) -> Iterator[type[FileEntry]]:
    """Yield the forms of entries within a field."""
    if isinstance(annotation, type) and issubclass(annotation, FileEntry):
        yield annotation
    for inner in get_args(annotation):
        yield from nested_forms(inner)


def references(entry: FileEntry) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the field, the sections and the text of every reference in an entry, nested entries included."""
    for name, sections in marked_fields(type(entry)):
        value = getattr(entry, name)
        if value is None:
            continue
        if sections is not None:
            texts = [value] if isinstance(value, str) else value.values() if isinstance(value, Mapping) else value
            yield from ((name, sections, text) for text in texts)
        else:
            for one in value if isinstance(value, tuple) else (value,):
                yield from references(one)


def rewrite(entry: E, replace: Mapping[tuple[tuple[str, ...], str], str]) -> E:
    """Return an entry with other texts for its references; what it does not say, it does not say afterwards either."""
    changed: dict[str, Any] = {}
    for name, sections in marked_fields(type(entry)):
        value = getattr(entry, name)
        if value is None:
            continue
        if sections is None:
            nested = tuple(rewrite(one, replace) for one in (value if isinstance(value, tuple) else (value,)))
            changed[name] = nested if isinstance(value, tuple) else nested[0]
        elif isinstance(value, str):
            changed[name] = replace[sections, value]
        elif isinstance(value, Mapping):
            changed[name] = {key: replace[sections, text] for key, text in value.items()}
        else:
            changed[name] = tuple(replace[sections, text] for text in value)
    copy = entry.model_copy()
    copy.__dict__.update(changed)
    return copy
