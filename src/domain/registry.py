"""Operations: commands and queries as every surface sees them, and the registry in which they are all found."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from baton.domain.shared.annotations import marks, text_refusals
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import refuse_blank_text

if TYPE_CHECKING:
    from baton.domain.kernel import Aggregate, Call, Command, Outcome, Query, State

Q = TypeVar("Q", bound="Query")


class Internal:
    """Marks a field that only the service itself may set: no surface shows it, and none takes it."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One command or query as every surface sees it."""

    name: str
    command_name: str
    kind: Literal["command", "query"]
    context: str
    method: str
    path: str
    input: "type[Command] | type[Query]"
    aggregate: "Aggregate[Any] | None" = None
    creates: bool = False
    allowed: frozenset[Enum] | None = None
    """The states it is possible from; all, when not said."""
    state_reason: str | None = None
    """The machine cause of a refusal for the state, where that is not the state's own name."""
    reasons: tuple[str, ...] = ()
    """The machine causes by which it refuses with its own class, besides those for the state."""
    refuses: tuple[type[Refusal], ...] = ()
    """The other classes it refuses with; those of its texts and of a missing target go without saying."""
    status: int = 200
    returns: Any = None
    work: str | None = None
    """The long work that it opens, and whose answer becomes its own."""
    accepted: Any = None
    """What it answers while its long work is still under way."""
    wakes: str | None = None
    """The long work that must hear of what it wrote."""
    fells: str | None = None
    """The long work that it gives up."""
    lock: str | None = None
    """What it holds from before it looks until it has written."""
    attempts: int = 1
    """How often it is decided anew when somebody else changed the same stream first."""
    destructive: bool = False
    """Whether agents are told that it takes something away."""
    callers: tuple[Enum, ...] = ()
    """The kinds of actor that may call this, whatever policies permit; every kind, when not said."""
    mcp: bool = True
    """Whether it is a tool of agents."""
    essential: bool = False
    """Whether agents see its tool without searching for it."""
    open: bool = False
    """Whether every caller may ask it, whatever policies permit."""
    target: str | None = field(init=False)
    path_fields: tuple[str, ...] = field(init=False)
    internal: frozenset[str] = field(init=False)
    """The fields that only the service itself may set."""

    def __post_init__(self) -> None:
        names = tuple(re.findall(r"{(\w+)}", self.path))
        own = tuple(name for name in names if name in self.input.model_fields)
        object.__setattr__(self, "allowed", None if self.allowed is None else frozenset(self.allowed))
        object.__setattr__(self, "reasons", tuple(self.reasons))
        object.__setattr__(self, "refuses", tuple(self.refuses))
        object.__setattr__(self, "callers", tuple(self.callers))
        object.__setattr__(self, "path_fields", own)
        object.__setattr__(
            self, "internal", frozenset(name for name, info in self.input.model_fields.items() if marks(info, Internal))
        )
        object.__setattr__(self, "target", next((name for name in names if name not in own), None))

    @property
    def has_body(self) -> bool:
        """Whether its input comes as a body rather than in the address."""
        return self.method != "GET"

    @property
    def summary(self) -> str:
        """The first line of the input's documentation."""
        return (self.input.__doc__ or self.name).strip().splitlines()[0]

    @property
    def refusals(self) -> tuple[type[Refusal], ...]:
        """Every class of the domain this operation may be refused with."""
        found: dict[type[Refusal], None] = {}
        if self.aggregate and self.target:
            found[self.aggregate.NotFound] = None
        if self.kind == "command" and (self.allowed is not None or self.reasons):
            found[self.input.Cannot] = None  # type: ignore[union-attr]
        found.update(dict.fromkeys((*self.refuses, *text_refusals(self.input))))
        return tuple(found)

    def decision(self, command: "Command", state: "State | None", call: "Call") -> "Reads[Outcome]":
        """The whole judgement of a command, in the order refusals are promised: references, state, values, the rest."""
        known = (call,) if self.target is None else (state, call)
        facts = ((yield from command.gather(*known)),) if hasattr(command, "gather") else ()
        self.check(command, state)
        return command.decide(*known, *facts)

    def check(self, command: "Command", state: "State | None") -> None:
        """Refuse when the state does not allow this verb, then when a text is blank."""
        if state is not None and self.allowed is not None:
            standing = state.aggregate.standing(state)
            if standing not in self.allowed:
                raise command.cannot(
                    self.state_reason or snake_case(standing.value),
                    f"The {state.aggregate.label} is {standing.value}; {self.name} is possible only from "
                    f"{', '.join(sorted(option.value for option in self.allowed)) or 'no state'}.",
                )
        if state is not None and hasattr(command, "require"):
            command.require(state)
        refuse_blank_text(command)


@dataclass(frozen=True)
class Projection:
    """A relation kept up to date from the streams of one aggregate."""

    summary: Any
    aggregate: "Aggregate[Any]"


class Registry:
    """Every declaration of the service; the one place the surfaces are derived from."""

    def __init__(self) -> None:
        self.aggregates: dict[str, Aggregate[Any]] = {}
        self.operations: dict[str, Operation] = {}
        self.projections: dict[str, Projection] = {}
        self.permissions: set[str] = set()
        self.inner: set[str] = set()
        """The names under which commands are permitted that only the service itself gives."""

    def declare(self, operation: Operation) -> None:
        """Adds an operation; its name must be free."""
        if operation.name in self.operations:
            raise TypeError(f"operation {operation.name} is declared twice")
        self.operations[operation.name] = operation

    def command_names(self) -> frozenset[str]:
        """Every name a policy may permit."""
        return frozenset(operation.command_name for operation in self.operations.values()) | self.permissions

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations.values())


REGISTRY = Registry()


def question(path: str, *, context: str, **options: Any) -> "Callable[[type[Q]], type[Q]]":
    """Declares a query that is about no aggregate."""

    def declare(query: "type[Q]") -> "type[Q]":
        query.operation = Operation(
            name=snake_case(query.__name__),
            command_name=query.__name__,
            kind="query",
            context=context,
            method="GET",
            path=path,
            input=query,
            **options,
        )
        REGISTRY.declare(query.operation)
        return query

    return declare


def snake_case(name: str) -> str:
    """`EnterAssetMaintenance` -> `enter_asset_maintenance`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
