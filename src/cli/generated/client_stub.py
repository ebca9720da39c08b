"""The types of the client's operations and things, for editors and type checkers: `client/operations.pyi`."""

import keyword
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, JsonValue

from baton.cli.generated.answer_types import answer_forms, bare_type, form_fields, form_name, is_form, union_members
from baton.cli.generated.client_index import OTHER_FORMS, STREAMS, collection_name, is_list, makers_of, short_name, verbs_of
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate
from baton.domain.registry import Operation
from baton.domain.shared.listing import Page

PLAIN = {str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes", dict: "dict[str, Any]", object: "object"}
TIMES = {datetime: "dt.datetime", date: "dt.date", AwareDatetime: "dt.datetime"}
OWN_METHODS = {
    "Plan": [
        (
            "start",
            "*, name: str | None = ..., subject: NameOrId | None = ..., campaign: NameOrId | None = ..., "
            "recipes: Sequence[NameOrId] | None = ..., parameters: Mapping[str, Any] | None = ..., **more_parameters: Any",
            "{kind}RunThing",
            "Start a run and have its phases conducted; return the run. Parameters of the run are given by their names.",
        ),
        (
            "preflight",
            "*, name: str | None = ..., subject: NameOrId | None = ..., campaign: NameOrId | None = ..., "
            "parameters: Mapping[str, Any] | None = ..., **more_parameters: Any",
            "Preflight",
            "Ask whether a run with these parameters could start now.",
        ),
    ],
    "Procedure": [("points", "", "Points", "Return what it measured at each place where it set its axes, a row for each.")],
    "Run": [
        ("points", "", "Points", "Return what its phases measured at each place where they set their axes, a row for each.")
    ],
    "Proposal": [
        (
            "look",
            "",
            "{kind}ProposalThing",
            "Return the proposal with what its command would do now, to be approved as it is shown.",
        ),
        (
            "approve",
            "*, digest: str | None = ..., reason: str | None = ..., wait: int = ..., idempotency_key: str | None = ...",
            "ProposalOutcome | ProposalAccepted",
            "Approve the proposal as it was shown, which takes a look at it or the digest of one.",
        ),
    ],
    "Queue": [
        (
            "add_from_table",
            "table: Table, *, plan: NameOrId | None = ..., recipes: Sequence[NameOrId] | None = ..., "
            "recipe: NameOrId | None = ..., on: NameOrId | Sequence[NameOrId] = ..., before: NameOrId | None = ..., "
            "zone: dt.tzinfo | None = ...",
            "list[UUID]",
            "Add an item for each row of a table, all or none, and return their ids: runs on a plan, or procedures of a "
            "recipe on assets. Columns are the parameters; times without a zone are on the clock of `zone`.",
        )
    ],
    "Recipe": [
        (
            "conduct",
            "*, on: NameOrId | Sequence[NameOrId], name: str | None = ..., kind: str | None = ..., "
            "parameters: Mapping[str, Any] | None = ..., **more_parameters: Any",
            "{kind}ProcedureThing",
            "Register a procedure of the recipe on these assets and have it conducted; return the procedure.",
        )
    ],
}  # What things can do besides the operations on them.
WATCHED = {"Run": "RunWatch", "Procedure": "ConductWatch"}
BASES = '''
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

def verb(method: Callable[Concatenate[Any, Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation as a verb of the thing that it is about."""

def maker(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation that is about no thing yet as a verb of a collection."""

def list_of(method: Callable[Concatenate[Any, P], Any], kind: type[T]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Return a list as things, page after page."""

def async_list_of(
    method: Callable[Concatenate[Any, P], Any], kind: type[T]
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """Return a list as things, page after page, for asynchronous programs."""

class Thing:
    """One thing, named by its name or id; `row` is what a list or the call that made it said of it."""

    reference: NameOrId
    row: Any
    @property
    def id(self) -> UUID: ...
    def history(self) -> Iterator[EventView]:
        """Yield every event of the thing, oldest first."""
    def __getattr__(self, name: str) -> Any: ...

class AsyncThing:
    """One thing, named by its name or id; `row` is what a list or the call that made it said of it."""

    reference: NameOrId
    row: Any
    @property
    def id(self) -> Any: ...
    def history(self) -> AsyncIterator[EventView]:
        """Yield every event of the thing, oldest first."""
    def __getattr__(self, name: str) -> Any: ...
'''
HEAD = '''"""The types of every operation, answer and kind of thing; made by `python -m baton.cli.generated_files`."""

import datetime as dt
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeAlias, TypeVar, overload
from uuid import UUID

from rich.console import Console

from baton.client.answers import ServiceAnswer as ServiceAnswer
from baton.client.answers import AnsweredDocument as AnsweredDocument
from baton.client.index import OperationEntry
from baton.client.points import Points
from baton.client.spreadsheets import Table
from baton.client.watching import AsyncConductWatch, AsyncRunWatch, ConductWatch, RunWatch

NameOrId: TypeAlias = UUID | str
'''
PAGE = '''
class Page(ServiceAnswer, Generic[T]):
    """One page of a list; `next_cursor` is None on the last one."""

    items: tuple[T, ...]
    next_cursor: str | None
'''


@dataclass
class Stub:
    """The types that the stub declares: forms of answers, and enumerations, whose values are texts."""

    forms: dict[str, Any] = field(default_factory=dict)
    enums: dict[str, type[Enum]] = field(default_factory=dict)

    def form(self, kind: object) -> str:
        """Return the name of a form, which is declared in the stub."""
        if typing.get_origin(kind) is Page:
            return f"Page[{self.text(typing.get_args(kind)[0], wide=False)}]"
        name = form_name(kind)
        known = self.forms.setdefault(name, kind)
        if name in self.enums or [one.name for one in form_fields(known)] != [one.name for one in form_fields(kind)]:
            raise TypeError(f"two things are called {name}")
        return name

    def enum(self, kind: type[Enum]) -> str:
        """Return the name of an enumeration, which is declared in the stub as its values."""
        if kind.__name__ in self.forms or self.enums.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"two things are called {kind.__name__}")
        return kind.__name__

    def text(self, form: object, *, wide: bool) -> str:
        """Return a type as a text: as it is answered or, where wide, all that is taken for it."""
        is_optional = type(None) in typing.get_args(bare_type(form))
        members = union_members(form)
        texts = dict.fromkeys(part for one in members for part in self.single(one, wide=wide).split(" | "))
        if "Any" in texts:
            return "Any"
        return " | ".join((*texts, *(["None"] if is_optional or not members else [])))

    def single(self, form: Any, *, wide: bool) -> str:
        """Return a type that is no union as a text."""
        origin, arguments = typing.get_origin(form), typing.get_args(form)
        if form is Any or form is JsonValue:
            return "Any"
        if form in PLAIN:
            return PLAIN[form]
        if form in TIMES:
            return f"{TIMES[form]} | str" if wide else TIMES[form]
        if form is UUID:
            return "NameOrId" if wide else "UUID"
        if origin is Literal:
            return f"Literal[{', '.join(repr(plain_value(one)) for one in arguments)}]"
        if origin in (tuple, frozenset, set, list):
            return self.container(origin, arguments, wide=wide)
        if origin in (dict, Mapping):
            inner = ", ".join(self.text(one, wide=False) for one in arguments)
            return f"Mapping[{inner}]" if wide or origin is Mapping else f"dict[{inner}]"
        if origin is Page or is_form(form):
            return "Mapping[str, Any] | ServiceAnswer" if wide else self.form(form)
        if issubclass(form, Enum):
            return self.enum(form)
        raise TypeError(f"nobody knows how to write {form!r}")

    def container(self, origin: Any, arguments: tuple[Any, ...], *, wide: bool) -> str:
        """Return a sequence or set as a text."""
        inner = [self.text(one, wide=wide) for one in arguments if one is not Ellipsis]
        if origin is tuple and Ellipsis not in arguments:
            return f"tuple[{', '.join(inner)}]"
        if origin is tuple:
            return f"Sequence[{inner[0]}]" if wide else f"tuple[{inner[0]}, ...]"
        return f"Collection[{inner[0]}]" if wide else f"{origin.__name__}[{inner[0]}]"


def plain_value(value: object) -> Any:
    """Return the value of a literal as JSON has it."""
    return value.value if isinstance(value, Enum) else value


def signature(stub: Stub, operation: Operation) -> str:
    """Return the parameters of an operation."""
    fields = operation.input.model_fields
    parts = [
        f"{name}: {stub.text(fields[name].annotation if name in fields else UUID, wide=True)}"
        for name in operation.placeholders
    ]
    named = [
        f"{info.alias or name}: {stub.text(info.annotation, wide=True)}{'' if info.is_required() else ' = ...'}"
        for name, info in fields.items()
        if name not in operation.placeholders and name not in operation.internal
    ]
    if operation.kind == "command":
        named.append("idempotency_key: str | None = ...")
    if any(keyword.iskeyword(part.partition(":")[0]) for part in named):
        raise TypeError(f"{operation.name} has a field that no call can name")
    return ", ".join([*parts, *(["*", *named] if named else [])])


def answer(stub: Stub, operation: Operation) -> str:
    """Return the type of an operation's answer."""
    if operation.media_types:
        return "AnsweredDocument"
    return " | ".join(dict.fromkeys(stub.text(one, wide=False) for one in answer_forms(operation))) or "None"


def method(name: str, parameters: str, returns: str, meaning: str, *, awaited: bool, tried: bool = False) -> Iterator[str]:
    """Yield the lines of a method; one that can be tried has a second form, which answers what would be recorded."""
    head = "async def" if awaited else "def"
    inner = f"self, {parameters}" if parameters else "self"
    if tried:
        yield "    @overload"
    yield f"    {head} {name}({inner}) -> {returns}:"
    yield from textwrap.wrap(f'"""{meaning}"""', 117, initial_indent=" " * 8, subsequent_indent=" " * 8)
    if tried:
        yield "    @overload"
        yield f"    {head} {name}(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ..."


def thing_class(aggregate: Aggregate, prefix: str) -> Iterator[str]:
    """Yield the class of one kind of thing: its verbs, and what it can do besides."""
    yield f"class {prefix}{aggregate.name}Thing({prefix}Thing):"
    yield f'    """One {aggregate.label}, named by its name or id."""'
    own = {name for name, *_ in OWN_METHODS.get(aggregate.name, ())}
    for operation in verbs_of(aggregate):
        if operation.name not in STREAMS and short_name(operation, aggregate) not in own:
            yield f"    {short_name(operation, aggregate)} = verb({prefix}Operations.{operation.name})"
    for name, parameters, returns, meaning in OWN_METHODS.get(aggregate.name, ()):
        tried = "recipes" in parameters or "on:" in parameters
        yield from method(name, parameters, returns.format(kind=prefix), meaning, awaited=bool(prefix), tried=tried)
    if aggregate.name in WATCHED:
        watch = f"{prefix}{WATCHED[aggregate.name]}"
        options = "console: Console | None = ..., lines: bool = ..., plot: str | bool = ..., table: bool = ..."
        yield f"    def watch(self, *, {options}) -> {watch}:"
        yield '        """Watch its latest conduct to its end: yields typed frames, and draws a bar."""'


def collection_class(aggregate: Aggregate, prefix: str) -> Iterator[str]:
    """Yield the class of all things of one kind: how they are made, found and listed."""
    thing = f"{prefix}{aggregate.name}Thing"
    yield f"class {prefix}{aggregate.name}Collection:"
    yield f'    """Every {aggregate.label}."""'
    yield f"    def __getitem__(self, reference: NameOrId) -> {thing}: ..."
    yield f"    def {'__aiter__' if prefix else '__iter__'}(self) -> {prefix}Iterator[{thing}]: ..."
    for listing in [one for one in aggregate.operations if is_list(one)][:1]:
        yield f"    list = {'async_' if prefix else ''}list_of({prefix}Operations.{listing.name}, {thing})"
        yield f"    {'async ' if prefix else ''}def to_pandas(self, **filters: object) -> Any: ..."
    for operation in makers_of(aggregate):
        yield f"    {short_name(operation, aggregate)} = maker({prefix}Operations.{operation.name})"


def client_class(stub: Stub, prefix: str) -> Iterator[str]:
    """Yield the class with every operation and every collection."""
    yield f"class {prefix}Operations:"
    yield '    """The operations of the service as methods: what stands in the path comes first, fields follow by name."""'
    for aggregate in aggregates():
        yield f"    {collection_name(aggregate)}: {prefix}{aggregate.name}Collection"
    yield "    def call_method(self, operation: OperationEntry, *places: Any, **fields: Any) -> Any: ..."
    for operation in REGISTRY:
        if operation.name not in STREAMS:
            tried = operation.kind == "command"
            typed = (signature(stub, operation), answer(stub, operation), operation.summary)
            yield from method(operation.name, *typed, awaited=bool(prefix), tried=tried)


def aggregates() -> list[Aggregate]:
    """Return every kind of thing by its name."""
    return [one for _, one in sorted(REGISTRY.aggregates.items())]


def form_classes(stub: Stub) -> Iterator[str]:
    """Yield the forms of answers; writing one may name others."""
    done: set[str] = set()
    while new := [name for name in stub.forms if name not in done]:
        for name in new:
            done.add(name)
            yield f"class {name}(ServiceAnswer):"
            fields = form_fields(stub.forms[name])
            yield from (f"    {one.name}: {stub.text(one.type, wide=False)}" for one in fields)
            yield "" if fields else "    pass"


def stub_text() -> str:
    """Return the whole stub."""
    stub = Stub({form_name(one): one for one in OTHER_FORMS})
    body: list[str] = []
    for prefix in ("", "Async"):
        body += client_class(stub, prefix)
        for aggregate in aggregates():
            body += [*thing_class(aggregate, prefix), *collection_class(aggregate, prefix)]
    body = [*form_classes(stub), *body]
    values = {name: ", ".join(repr(one.value) for one in kind) for name, kind in sorted(stub.enums.items())}
    aliases = [f"{name}: TypeAlias = Literal[{listed}]" for name, listed in values.items()]
    return "\n".join((HEAD, *aliases, BASES, PAGE, *body)) + "\n"
