"""Writes the types of the client's operations and things: `python -m tests.documents.client_stub`."""

import ast
import keyword
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, ForwardRef, Literal, Union
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, JsonValue
from typing_extensions import TypeAliasType

from baton.client.exchanges import lists_of
from baton.client.operations import STREAMS
from baton.client.things import collections, makers_of, verbs_of
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, Document
from baton.domain.registry import Operation

ROOT = Path(__file__).parents[2]
STUB = ROOT / "src" / "client" / "operations.pyi"
PLAIN = {str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes", dict: "dict[str, Any]", object: "object"}
TIMES = {datetime: "datetime", date: "date", AwareDatetime: "datetime"}
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
    "Queue": [
        (
            "add_from_table",
            "table: Table, *, plan: NameOrId | None = ..., recipes: Sequence[NameOrId] | None = ..., "
            "recipe: NameOrId | None = ..., on: NameOrId | Sequence[NameOrId] = ..., before: NameOrId | None = ..., "
            "zone: tzinfo | None = ...",
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
STREAMS: tuple[str, ...]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

def verb(method: Callable[Concatenate[Any, Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation as a verb of the thing that it is about."""

def maker(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation that is about no thing yet as a verb of a collection."""

def listing(method: Callable[Concatenate[Any, P], Any], kind: type[T]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Return a list as things, page after page."""

def async_listing(
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
HEAD = '''"""The types of every operation and of every kind of thing; written by `python -m tests.documents.client_stub`."""
'''


@dataclass
class Stub:
    """The types that the stub names: what it imports, declares itself, and calls by an alias."""

    imports: dict[str, str] = field(default_factory=dict)
    forms: dict[str, type[BaseModel]] = field(default_factory=dict)
    enums: dict[str, type[Enum]] = field(default_factory=dict)

    def name_of(self, kind: type[Any]) -> str:
        """Return the name of a class, which is imported, or declared here where no module has it."""
        if is_importable(kind):
            if self.imports.setdefault(kind.__name__, kind.__module__) != kind.__module__ or kind.__name__ in self.forms:
                raise TypeError(f"two things are called {kind.__name__}")
        else:
            known = self.forms.setdefault(kind.__name__, kind)
            if kind.__name__ in self.imports or list(known.model_fields) != list(kind.model_fields):
                raise TypeError(f"two things are called {kind.__name__}")
        return kind.__name__

    def enum_name(self, kind: type[Enum]) -> str:
        """Return the name of an enumeration whose values may be given as texts."""
        self.enums[self.name_of(kind)] = kind
        return f"{kind.__name__}Name"

    def text(self, form: Any, *, wide: bool) -> str:
        """Return a type as a text: as it is answered or, where wide, all that is taken for it."""
        form = bare(form)
        origin, arguments = typing.get_origin(form), typing.get_args(form)
        if form is None or form is type(None):
            return "None"
        if form is Any or form is JsonValue:
            return "Any"
        if form in PLAIN:
            return PLAIN[form]
        if form in TIMES:
            return f"{TIMES[form]} | str" if wide else TIMES[form]
        if form is UUID:
            return "NameOrId" if wide else "UUID"
        if origin is Literal:
            return f"Literal[{', '.join(map(repr, arguments))}]"
        if origin in (Union, types.UnionType):
            return self.union(arguments, wide=wide)
        if origin is tuple and arguments[-1] is Ellipsis:
            inner = self.text(arguments[0], wide=wide)
            return f"Sequence[{inner}]" if wide else f"tuple[{inner}, ...]"
        if origin is tuple:
            return f"tuple[{', '.join(self.text(one, wide=wide) for one in arguments)}]"
        if origin in (frozenset, set, list):
            inner = self.text(arguments[0], wide=wide)
            return f"Collection[{inner}]" if wide else f"{origin.__name__}[{inner}]"
        if origin in (dict, Mapping):
            inner = ", ".join(self.text(one, wide=False) for one in arguments)
            return f"Mapping[{inner}]" if wide or origin is Mapping else f"dict[{inner}]"
        if origin is not None:
            return f"{self.name_of(origin)}[{', '.join(self.text(one, wide=wide) for one in arguments)}]"
        if issubclass(form, Enum):
            return self.enum_name(form) if wide else self.name_of(form)
        if issubclass(form, BaseModel) and wide:
            return f"{self.name_of(form)} | Mapping[str, Any]" if is_importable(form) else "Mapping[str, Any]"
        if issubclass(form, BaseModel) or is_dataclass(form):
            return self.name_of(form)
        raise TypeError(f"nobody knows how to write {form!r}")

    def union(self, members: Collection[Any], *, wide: bool) -> str:
        texts = dict.fromkeys(part for one in members for part in self.text(one, wide=wide).split(" | "))
        return "Any" if "Any" in texts else " | ".join(sorted(texts, key=lambda text: text == "None"))


def bare(form: Any) -> Any:
    """Return a type without its marks and aliases."""
    while True:
        if typing.get_origin(form) is typing.Annotated:
            form = typing.get_args(form)[0]
        elif isinstance(form, TypeAliasType) and form is not JsonValue:
            form = form.__value__
        elif isinstance(form, typing.NewType):
            form = form.__supertype__
        elif isinstance(form, ForwardRef):
            return Any
        else:
            return form


def is_importable(kind: type[Any]) -> bool:
    """Return whether a module declares this class under its name, rather than making it."""
    module = sys.modules[kind.__module__]
    return getattr(module, kind.__qualname__, None) is kind and kind.__name__ in declared_classes(str(module.__file__))


@cache
def declared_classes(path: str) -> frozenset[str]:
    """Return the names of the classes that a module declares."""
    return frozenset(node.name for node in ast.parse(Path(path).read_text()).body if isinstance(node, ast.ClassDef))


def signature(stub: Stub, operation: Operation) -> str:
    """Return the parameters of an operation."""
    fields = operation.input.model_fields
    parts = [
        f"{name}: {stub.text(fields[name].annotation if name in fields else UUID, wide=True)}"
        for name in operation.placeholders
    ]
    named = [
        f"{name}: {stub.text(info.annotation, wide=True)}{'' if info.is_required() else ' = ...'}"
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
        return stub.text(Document, wide=False)
    answers = [one for one in (operation.returns, operation.accepted) if one is not None]
    return stub.union(answers, wide=False) if answers else "None"


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


def thing_class(aggregate: Aggregate[Any], prefix: str) -> Iterator[str]:
    """Yield the class of one kind of thing: its verbs, and what it can do besides."""
    yield f"class {prefix}{aggregate.name}Thing({prefix}Thing):"
    yield f'    """One {aggregate.label}, named by its name or id."""'
    for verb, operation in verbs_of(aggregate).items():
        if operation.name not in STREAMS:
            yield f"    {verb} = verb({prefix}Operations.{operation.name})"
    for name, parameters, returns, meaning in OWN_METHODS.get(aggregate.name, ()):
        tried = "recipes" in parameters or "on:" in parameters
        yield from method(name, parameters, returns.format(kind=prefix), meaning, awaited=bool(prefix), tried=tried)
    if aggregate.name in WATCHED:
        watch = f"{prefix}{WATCHED[aggregate.name]}"
        yield f"    def watch(self, *, console: Console | None = ..., lines: bool = ...) -> {watch}:"
        yield '        """Watch its latest conduct to its end: yields typed frames, and draws a bar."""'


def collection_class(aggregate: Aggregate[Any], prefix: str) -> Iterator[str]:
    """Yield the class of all things of one kind: how they are made, found and listed."""
    thing = f"{prefix}{aggregate.name}Thing"
    yield f"class {prefix}{aggregate.name}Collection:"
    yield f'    """Every {aggregate.label}."""'
    yield f"    def __getitem__(self, reference: NameOrId) -> {thing}: ..."
    yield f"    def {'__aiter__' if prefix else '__iter__'}(self) -> {prefix}Iterator[{thing}]: ..."
    for listing in list(lists_of(aggregate))[:1]:
        yield f"    list = {'async_' if prefix else ''}listing({prefix}Operations.{listing.name}, {thing})"
    for verb, operation in makers_of(aggregate).items():
        yield f"    {verb} = maker({prefix}Operations.{operation.name})"


def client_class(stub: Stub, prefix: str) -> Iterator[str]:
    """Yield the class with every operation and every collection."""
    yield f"class {prefix}Operations:"
    yield '    """The operations of the service as methods: what stands in the path comes first, fields follow by name."""'
    for name, aggregate in collections().items():
        yield f"    {name}: {prefix}{aggregate.name}Collection"
    yield "    def call_method(self, operation: Operation, *places: Any, **fields: Any) -> Any: ..."
    for operation in REGISTRY:
        if operation.name not in STREAMS:
            tried = operation.kind == "command"
            typed = (signature(stub, operation), answer(stub, operation), operation.summary)
            yield from method(operation.name, *typed, awaited=bool(prefix), tried=tried)


def form_classes(stub: Stub) -> Iterator[str]:
    """Yield the forms of answers that no module declares by name; writing one may name others."""
    done: set[str] = set()
    while new := [name for name in stub.forms if name not in done]:
        for name in new:
            done.add(name)
            yield f"class {name}(BaseModel):"
            fields = stub.forms[name].model_fields
            yield from (f"    {one}: {stub.text(info.annotation, wide=False)}" for one, info in fields.items())
            yield "" if fields else "    pass"


def stub_text() -> str:
    """Return the whole stub, formatted."""
    stub = Stub()
    body: list[str] = []
    for prefix in ("", "Async"):
        body += client_class(stub, prefix)
        for aggregate in collections().values():
            body += [*thing_class(aggregate, prefix), *collection_class(aggregate, prefix)]
    body = [*form_classes(stub), *body]
    aliases = [
        f"{name}Name: TypeAlias = {name} | Literal[{', '.join(repr(one.value) for one in kind)}]"
        for name, kind in sorted(stub.enums.items())
    ]
    lines = [HEAD, *import_lines(stub), "", "NameOrId: TypeAlias = UUID | str", *aliases, "", BASES, *body]
    return format_source("\n".join(lines) + "\n")


def import_lines(stub: Stub) -> Iterator[str]:
    yield "from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence"
    yield "from datetime import date, datetime, tzinfo"
    yield "from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, overload"
    yield "from uuid import UUID"
    yield "from pydantic import BaseModel"
    yield "from rich.console import Console"
    yield "from baton.client.spreadsheets import Table"
    yield "from baton.client.watching import AsyncConductWatch, AsyncRunWatch, ConductWatch, RunWatch"
    yield "from baton.domain.registry import Operation"
    yield "from baton.domain.shared.dry_run import DryRun"
    yield "from baton.domain.shared.event_view import EventView"
    known = {"DryRun", "EventView"}
    yield from (f"from {module} import {name}" for name, module in sorted(stub.imports.items()) if name not in known)


def format_source(text: str) -> str:
    """Return a source as the formatter of the tree lays it out, its imports in order."""
    for command in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--config", str(ROOT / "pyproject.toml")]
        done = subprocess.run(
            [*ruff, "--stdin-filename", str(STUB), "-"], input=text, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr + done.stdout[-2000:])
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub_text())
