"""Operations: commands and queries as every surface sees them, and the registry that holds them all."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, get_args
from uuid import UUID

from baton.domain.derived_refusals import reasons_of, refusals_of
from baton.domain.next_steps import steps_to_command
from baton.domain.shared.annotations import marks, text_refusals
from baton.domain.shared.examples import EXAMPLES
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import Refusal, UnauthorizedError
from baton.domain.shared.text import refuse_blank_text

if TYPE_CHECKING:
    from baton.domain.kernel import Aggregate, Call, Command, Event, Outcome, Query, State

Q = TypeVar("Q", bound="Query")


class Internal:
    """Marks a field that only the service itself may set: no surface shows it, and none takes it."""


@dataclass(frozen=True)
class LateForm:
    """A model that is made when it is first read; most processes read few."""

    make: Callable[[], Any]


class WorkLink:
    """The long work that a command does something to: its kind, or one of several, which answer of it is waited for, and
    whether a question that it asks meanwhile ends the wait."""

    def __init__(self, *kinds: str, answer: str = "answer", asks: bool = False) -> None:
        self.kinds, self.answer, self.asks = kinds, answer, asks


class OpenedWork(WorkLink):
    """The command opens it, and its answer becomes that of the command."""


class WokenWork(WorkLink):
    """The command gives a conduct something to do, and does not wait for it."""


class EndedWork(WorkLink):
    """The command gives up the work of its target, whose workflow is terminated."""


class QuestionOptions(TypedDict, total=False):
    """What the declaration of any operation may say; `Operation` explains each."""

    returns: Any
    media_types: Sequence[str]
    refuses: "Sequence[type[Refusal] | type[Command]]"
    callers: Sequence[Enum]
    mcp: bool
    open: bool


class QueryOptions(QuestionOptions, total=False):
    """What the declaration of a query of an aggregate may say."""

    name: str
    command_name: str
    context: str
    path: str


class CreationOptions(QueryOptions, total=False):
    """What the declaration of a command that begins a stream may say."""

    stream_id_field: str
    verb: str
    records: "type[Event]"
    allowed: Collection[Enum]
    leads_to: Enum
    state_reason: str
    reasons: Sequence[str]
    work: WorkLink
    accepted: Any
    lock: str
    gated: bool
    attempts: int
    destructive: bool


class CommandOptions(CreationOptions, total=False):
    """What the declaration of a command on an existing stream may say; one of the methods gives its path."""

    post: str
    patch: str
    put: str
    delete: str
    status: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """One command or query as every surface sees it."""

    name: str
    command_name: str
    kind: Literal["command", "query"]
    context: str
    method: str
    path: str
    input: "type[Command] | type[Query]"
    aggregate: "Aggregate | None" = None
    creates: bool = False
    stream_id_field: str | None = None  # The field that is the id of the stream it begins, where that id is not a new one.
    allowed: Collection[Enum] | None = None  # The states it is possible from; all, when not said.
    leads_to: Enum | None = None  # The state that it brings its target to, where that is always the same one.
    state_reason: str | None = None  # The machine cause of a refusal for the state, where that is not the state's own name.
    reasons: Sequence[str] = ()  # The machine causes of its own refusal class that its rules do not spell out.
    refuses: "Sequence[type[Refusal] | type[Command]]" = ()  # Those its rules do not name: of ports, of verbs it stands for.
    status: int = 200
    declared_form: Any = None  # The model of its answer, or the `LateForm` of that.
    media_types: Sequence[str] = ()  # The forms of the `Document` that it answers, where it answers one.
    work: WorkLink | None = None  # The long work that it opens, wakes or ends.
    accepted: Any = None  # The model of its answer while its long work is still under way.
    lock: str | None = None  # The lock it holds from before it reads until it has written.
    gated: bool = False  # Whether everything that it was judged by must still stand when it is written.
    attempts: int = 1  # How often it is decided again when another command changed the same stream first.
    destructive: bool = False  # Whether agents are warned that it takes something away.
    callers: Sequence[Enum] = ()  # The kinds of actor that may call it, whatever policies permit; every kind, when not said.
    mcp: bool = True  # Whether it is a tool of agents.
    open: bool = False  # Whether every active caller may call it, whatever policies permit.

    @cached_property
    def returns(self) -> Any:
        """The model of its answer."""
        return self.declared_form.make() if isinstance(self.declared_form, LateForm) else self.declared_form

    @cached_property
    def target(self) -> str | None:
        """The name of the path's placeholder for the stream it is about."""
        return next((name for name in self.placeholders if name not in self.input.model_fields), None)

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        """The fields of the input that stand in the path."""
        return tuple(name for name in self.placeholders if name in self.input.model_fields)

    @cached_property
    def internal(self) -> frozenset[str]:
        """The fields that only the service itself may set."""
        return frozenset(name for name, info in self.input.model_fields.items() if marks(info, Internal))

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        """The names of the path's placeholders, in order."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def opens_work(self) -> bool:
        """Whether it opens long work, whose answer becomes its own."""
        return isinstance(self.work, OpenedWork)

    @cached_property
    def answers_at_once(self) -> bool:
        """Whether the answer while its long work is under way is a whole one, unless its caller waits for the work."""
        return self.accepted is not None and self.accepted in get_args(self.returns)

    @property
    def reads_own_writes(self) -> bool:
        """Whether it can wait until it shows what was recorded up to a position."""
        return "min_position" in self.input.model_fields

    @property
    def has_body(self) -> bool:
        """Whether its input comes as a body rather than in the address."""
        return self.method != "GET"

    @property
    def summary(self) -> str:
        """The first line of the input's documentation."""
        return (self.input.__doc__ or self.name).strip().splitlines()[0]

    @cached_property
    def example(self) -> dict[str, Any] | None:
        """The arguments of an example call, with ids as placeholders such as `<asset_id>`; None where none is known."""
        example = {**{name: f"<{name}>" for name in self.placeholders}, **EXAMPLES.get(self.name, {})}
        needed = (info.alias or name for name, info in self.input.model_fields.items() if info.is_required())
        return example if example.keys() >= set(needed) else None

    @cached_property
    def own_reasons(self) -> tuple[str, ...]:
        """The machine causes by which it refuses with its own class, besides those for the state."""
        return tuple(dict.fromkeys((*self.reasons, *(reasons_of(self.input) if self.kind == "command" else ()))))

    @cached_property
    def refusals(self) -> tuple[type[Refusal], ...]:
        """Every class of the domain this operation may be refused with, besides a missing permission."""
        classes = [self.aggregate.NotFound] if self.aggregate and self.target else []
        if self.kind == "command":
            if self.allowed is not None or self.own_reasons:
                classes.append(self.input.Cannot)  # type: ignore[union-attr]
            classes += refusals_of(self.input)
        for one in self.refuses:
            classes += (one,) if issubclass(one, Refusal) else one.operation.refusals
        classes += text_refusals(self.input)
        return tuple(one for one in dict.fromkeys(classes) if one is not UnauthorizedError or one in self.refuses)

    def begun_stream(self, command: "Command", call: "Call") -> UUID:
        """Return the id of the stream that a creation begins."""
        id: UUID = call.new_id if self.stream_id_field is None else getattr(command, self.stream_id_field)
        return id

    def decision(self, command: "Command", state: "State | None", call: "Call") -> "Reads[Outcome]":
        """Judge a command in the order refusals are promised: references, state, values, the rest."""
        known = (call,) if self.target is None else (state, call)
        facts = ((yield from command.gather(*known)),) if defines(type(command), "gather") else ()
        try:
            self.check(command, state)
            return command.decide(*known, *facts)
        except Refusal as refusal:
            if state is not None and type(refusal) is command.Cannot:
                refusal.next_steps = steps_to_command(command, state)
            raise

    def check(self, command: "Command", state: "State | None") -> None:
        """Refuse when the state does not allow this verb, then when a text is blank."""
        if state is not None and self.allowed is not None:
            current = state.aggregate.axis_value(state)
            if current not in self.allowed:
                raise command.cannot(
                    self.state_reason or snake_case(current.value),
                    f"The {state.aggregate.label} is {current.value}; {self.name} is possible only from "
                    f"{', '.join(sorted(option.value for option in self.allowed)) or 'no state'}.",
                )
        if state is not None and defines(type(command), "require"):
            command.require(state)
        refuse_blank_text(command)


@cache
def defines(command: "type[Command]", hook: str) -> bool:
    """Return whether a class of commands has an optional method; asking a pydantic object each time would cost 10 µs."""
    return hasattr(command, hook)


@dataclass(frozen=True)
class Projection:
    """A relation kept up to date from the streams of one aggregate."""

    summary: Any
    aggregate: "Aggregate"


class Registry:
    """Every declaration of the service; the one place the surfaces are derived from."""

    def __init__(self) -> None:
        self.aggregates: dict[str, Aggregate] = {}
        self.operations: dict[str, Operation] = {}
        self.projections: dict[str, Projection] = {}
        self.permissions: set[str] = set()
        self.internal: set[str] = set()  # The names under which commands are permitted that only the service itself gives.

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


def standalone_query(
    path: str, *, context: str, method: str = "GET", **options: Unpack[QuestionOptions]
) -> "Callable[[type[Q]], type[Q]]":
    """Declares a query that is about no aggregate."""

    def declare(query: "type[Q]") -> "type[Q]":
        REGISTRY.declare(operation_of(query, kind="query", context=context, method=method, path=path, **options))
        return query

    return declare


def operation_of(input: "type[Command] | type[Query]", **options: Any) -> Operation:
    """Give an input its operation, under the name of its class unless another is said."""
    detail = {"name": snake_case(input.__name__), "command_name": input.__name__, **options}
    detail["declared_form"] = detail.pop("returns", None)
    input.operation = Operation(input=input, **detail)
    return input.operation


def snake_case(name: str) -> str:
    """`EnterAssetMaintenance` -> `enter_asset_maintenance`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
