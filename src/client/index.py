"""The index of the service: its operations, kinds of things, forms of answers and refusals, as far as a caller has to know
them. `operations.json` holds it, which is made from the declarations when the package is built; it is read at first use."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

E = TypeVar("E")
INDEX = Path(__file__).with_name("operations.json")
Kind = str | list[Any] | None  # how a value is read: None as JSON has it, a text is a scalar or a form, a list a container


@dataclass(frozen=True)
class ArgumentEntry:
    """One argument of an operation."""

    required: bool = False
    text: Literal["always", "or null", ""] = ""  # whether nothing but a text fits
    refers_to: str | None = None  # the kind of things with names that its ids are of


@dataclass(frozen=True, eq=False)
class OperationEntry:
    """One command or query as a caller sees it."""

    name: str
    kind: Literal["command", "query"]
    method: str
    path: str
    input: str  # the class that declares it
    permission: str
    summary: str
    source: str | None = None
    target: str | None = None  # the placeholder of the path for the thing that it is about
    target_kind: str | None = None  # the kind of that thing, where things of it have names
    arguments: Mapping[str, ArgumentEntry] = field(default_factory=dict)
    returns: Kind = None
    accepted: Kind = None  # what it answers while its long work is under way
    media_types: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    streams: bool = False  # whether it never answers as a whole

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        """The names of the path's placeholders, in order."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def has_body(self) -> bool:
        """Whether its arguments go into a body rather than into the address."""
        return self.method != "GET"

    @property
    def reads_own_writes(self) -> bool:
        """Whether it can wait until it shows what was recorded up to a position."""
        return "min_position" in self.arguments

    def referred_kind(self, argument: str) -> str | None:
        """Return the kind of things with names that an argument refers to."""
        if argument == self.target:
            return self.target_kind
        return self.arguments[argument].refers_to if argument in self.arguments else None


@dataclass(frozen=True, eq=False)
class AggregateEntry:
    """One kind of thing: what it is called, how it is listed, and its operations by their short names."""

    name: str
    label: str
    id_name: str
    axis: str
    collection: str
    name_field: str | None = None  # the member of a listed item that people call it by
    lists: str | None = None
    verbs: Mapping[str, str] = field(default_factory=dict)
    makers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class FormEntry:
    """One form of an answer: how each of its fields is read, and which values tell it from other forms."""

    name: str
    fields: Mapping[str, Kind] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    json_names: Mapping[str, str] = field(default_factory=dict)  # where they are others
    marks: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def keys(self) -> dict[str, tuple[str, Kind]]:
        """The fields with their kinds by their names in JSON."""
        return {self.json_names.get(name, name): (name, kind) for name, kind in self.fields.items()}


@dataclass(frozen=True)
class KnownRefusal:
    """One refusal: its status, what it means, and where it is declared."""

    code: str
    status: int
    meaning: str = ""
    sources: tuple[str, ...] = ()


class Entries(Mapping[str, E], Generic[E]):
    """One section of the index by name; an entry is made when it is first asked for."""

    def __init__(self, section: str, make: Callable[[str, dict[str, Any]], E]) -> None:
        self._section = section
        self._make = make
        self._made: dict[str, E] = {}

    def __getitem__(self, name: str) -> E:
        if name not in self._made:
            self._made[name] = self._make(name, index_document()[self._section][name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(index_document()[self._section])

    def __len__(self) -> int:
        return len(index_document()[self._section])


@cache
def index_document() -> dict[str, Any]:
    """Return the index as it is stored."""
    try:
        content = INDEX.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{INDEX} is missing; make it with: python -m baton.cli.generated_files") from None
    document: dict[str, Any] = json.loads(content)
    return document


def operation_entry(name: str, stored: dict[str, Any]) -> OperationEntry:
    """Return an operation of the index."""
    arguments = {one: ArgumentEntry(**about) for one, about in stored.get("arguments", {}).items()}
    return OperationEntry(name, **{**stored, "arguments": arguments})


OPERATIONS: Entries[OperationEntry] = Entries("operations", operation_entry)
AGGREGATES: Entries[AggregateEntry] = Entries("aggregates", lambda name, stored: AggregateEntry(name, **stored))
FORMS: Entries[FormEntry] = Entries("forms", lambda name, stored: FormEntry(name, **stored))
REFUSALS: Entries[KnownRefusal] = Entries("refusals", lambda code, stored: KnownRefusal(code, **stored))


@cache
def collections() -> dict[str, str]:
    """Return the name of every kind of thing by that of its collection."""
    return {AGGREGATES[name].collection: name for name in AGGREGATES}
