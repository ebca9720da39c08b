"""The declarations every context is written in: state, event, aggregate, command and query. REST route, MCP tool, permission
name, documentation and the table of states and verbs are all derived from them; the registry collects them."""

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from inspect import get_annotations
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Self,
    Unpack,
    get_type_hints,
    overload,
)
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, create_model, model_validator
from typing_extensions import TypeVar

from baton.domain import registry
from baton.domain.registry import REGISTRY, Operation, snake_case
from baton.domain.shared.annotations import marks
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.event_view import EventView
from baton.domain.shared.reads import AskPort, Reads
from baton.domain.shared.refusals import Conflict, Invalid, NextCall, NotFound, Refusal, refusal_class
from baton.domain.shared.text import MayContainPersonalData, Text, hiding_of
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Write

NIL = UUID(int=0)  # The SYSTEM principal, and the surface of in-process callers.
SYSTEM_CONDUIT = UUID(int=0x10)  # The conduit every call goes through.


@dataclass(frozen=True, kw_only=True)
class State:
    """The state of one aggregate: the fold of its stream."""

    aggregate: ClassVar["Aggregate"]
    id: UUID
    created_at: datetime


if TYPE_CHECKING:
    copy_with = replace
else:

    def copy_with(state, /, **values):
        """Return the state with these fields changed: `dataclasses.replace` at a fraction of its cost, for long folds."""
        successor = object.__new__(type(state))
        successor.__dict__.update(state.__dict__)
        successor.__dict__.update(values)
        return successor


def _without(keyword: str) -> Any:
    return lambda schema: schema.pop(keyword, None)


A = TypeVar("A")
_WithRepeats = Field(json_schema_extra=_without("uniqueItems"))  # Repeated items count once and are not refused.
SortedSet = Annotated[frozenset[A], PlainSerializer(lambda values: sorted(values, key=str)), _WithRepeats]
"""A set that is written as a sorted list, so that equal sets have equal bytes."""
IdSet = SortedSet[UUID]


class Value(BaseModel):
    """Immutable data with a checked shape; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


Upcaster = Callable[[dict[str, Any]], dict[str, Any]]  # From the stored payload of one version of an event to the next one.


class Event(BaseModel):
    """Something that happened to one aggregate. Its stream and time are stamped on it when it is decided.
    A stored payload is read for ever: a change of shape raises `version` and brings an upcaster from each older version."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)
    __slots__ = ("_own_id", "caller_id", "caller_surface_id", "occurred_at", "stored_id", "stream_id")
    if TYPE_CHECKING:

        @property
        def stream_id(self) -> UUID: ...
        @property
        def occurred_at(self) -> datetime: ...
        @property
        def stored_id(self) -> UUID: ...
        @property
        def caller_id(self) -> UUID: ...
        @property
        def caller_surface_id(self) -> UUID | None: ...

    aggregate: ClassVar["Aggregate"]
    schema_version: ClassVar[int] = 1  # The version of the payload that this class writes.
    upcasters: ClassVar[Mapping[int, Upcaster]] = {}  # From each older version, the function to the next one.
    leads_to: ClassVar[Enum | None] = None  # The status, where it changes nothing else; `evolve` folds other events.
    dates: ClassVar[str | None] = None  # The state's field for the time of an event with `leads_to`, where there is one.
    personal: ClassVar[frozenset[str]] = frozenset()  # The keys that are free text as a whole.
    withheld: ClassVar[frozenset[str]] = frozenset()  # Those of them that are null without `ReadEventTexts`.
    overwrites: ClassVar[bool] = False  # Whether nothing is left of it once a later event of its type is folded.
    inert: ClassVar[bool] = False  # Whether it never changes the state: it is kept for readers, and passed over by the fold.

    def __init_subclass__(
        cls,
        of: "Aggregate | None" = None,
        version: int = 1,
        upcasters: Mapping[int, Upcaster] | None = None,
        leads_to: Enum | None = None,
        dates: str | None = None,
        overwrites: bool = False,
        inert: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.schema_version = version
        cls.upcasters = upcasters or {}
        cls.leads_to = leads_to
        cls.dates = dates
        cls.overwrites = overwrites
        cls.inert = inert
        if set(cls.upcasters) != set(range(1, version)):
            raise TypeError(f"{cls.__name__} is at version {version}: give an upcaster from each of the versions before it")
        if of is not None:
            cls.aggregate = of
            of.events[cls.__name__] = cls

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        texts = {name: marks(info, MayContainPersonalData) for name, info in cls.model_fields.items()}
        cls.personal = frozenset(name for name, found in texts.items() if found)
        cls.withheld = frozenset(name for name, found in texts.items() if any(not mark.part_of_state for mark in found))

    @classmethod
    def load(cls, payload: str | bytes, version: int) -> Self:
        """Return the event of a stored payload, brought to the version of this class."""
        if version > cls.schema_version:
            raise UnknownEventError(f"{cls.__name__} is stored at version {version}; this build knows {cls.schema_version}")
        if version < cls.schema_version:
            payload = json.dumps(cls.upcast(json.loads(payload), version))
        return cls.__pydantic_validator__.validate_json(payload)  # type: ignore[no-any-return]

    @classmethod
    def upcast(cls, payload: dict[str, object], version: int) -> dict[str, Any]:
        """Return a stored payload of an older version as this class writes it."""
        for older in range(version, cls.schema_version):
            payload = cls.upcasters[older](payload)
        return payload

    @classmethod
    def without_texts(cls, payload: dict[str, object]) -> dict[str, Any]:
        """Return a stored payload with its free texts null, however deep they are."""
        hide = hiding_of(cls)
        redacted: dict[str, object] = payload if hide is None else hide(payload)
        return {**redacted, **dict.fromkeys(cls.withheld)}

    def stamp(self, stream_id: UUID, occurred_at: datetime) -> Self:
        """Note the stream and the time of this event."""
        object.__setattr__(self, "stream_id", stream_id)
        object.__setattr__(self, "occurred_at", occurred_at)
        return self

    def identify(self, id: UUID) -> Self:
        """Note the id to store it under, where a repetition must come to the same one; others get a new one."""
        object.__setattr__(self, "_own_id", id)
        return self

    @property
    def own_id(self) -> UUID | None:
        """The id to store it under, where that follows from its cause."""
        return getattr(self, "_own_id", None)

    def attribute(self, stored_id: UUID, caller_id: UUID, surface_id: UUID | None) -> Self:
        """Note the id it is stored under, and whose command recorded it, on which surface where that is known."""
        object.__setattr__(self, "stored_id", stored_id)
        object.__setattr__(self, "caller_id", caller_id)
        object.__setattr__(self, "caller_surface_id", surface_id)
        return self

    def payload(self) -> str:
        """Return the stored form: the aggregate's id, the event's own keys, the time."""
        own = self.model_dump_json(by_alias=True)[1:-1]
        time = f'"occurred_at":"{instant(self.occurred_at)}"'
        return f'{{"{self.aggregate.id_name}":"{self.stream_id}",{own}{"," if own else ""}{time}}}'


class StoredEvent(NamedTuple):
    """An event as the store keeps it, as far as folding needs it."""

    stream_id: UUID
    version: int
    position: int
    event_type: str
    payload: str
    occurred_at: datetime
    schema_version: int = 1


def instant(time: datetime) -> str:
    """Return a time as it is written everywhere: UTC, ISO 8601."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class Call:
    """Everything a decision may know about a request besides its input: who asks, through what, and when."""

    principal_id: UUID
    surface_id: UUID
    now: datetime
    new_id: UUID
    correlation_id: UUID
    conduit_id: UUID = SYSTEM_CONDUIT
    causation_id: UUID | None = None
    claims: Any = field(default=None, repr=False, compare=False)  # What the token of its caller says; see `TokenClaims`.
    proven_group_ids: frozenset[UUID] = frozenset()  # The groups that the token told, where the call begins long work.
    approved_by: UUID | None = None  # Who approved it, where it was proposed.

    def id_for(self, name: str) -> UUID:
        """Return a further id of this call; the same name gives the same id."""
        return derived_uuid7(int(self.now.timestamp() * 1000), str(self.new_id), name)


class NeededPermissions(NamedTuple):
    """The permissions that a command needs which gives others: `given` are those of all that it stands for, and may be held
    with approval; `issued` are those that its work needs later, as its caller, and are held without."""

    given: tuple[str, ...]
    issued: tuple[str, ...]


Outcome = Sequence[Event | Write]
"""What a decision returns: the events of its own stream in order, and the other writes of the same transaction."""


class Command(Value):
    """A request to change one aggregate: a `Verb` on an existing stream, or a `Creation` of a new one.
    `gather` is the generator of the facts about other aggregates, and refuses references that lead nowhere; `decide` is the
    decision. `examine()`, where there is one, refuses values before the target is looked for; `require(state)` refuses a
    state that the verb cannot work on although its status would allow it; `preparation(state)`, of the class, returns the
    calls that must come before it in a state that allows it; `needs()` returns the permissions that it takes, where it gives
    further commands."""

    Cannot: ClassVar[type[Refusal]]
    operation: ClassVar["Operation"]
    if TYPE_CHECKING:
        examine: ClassVar[Callable[..., None]]
        require: ClassVar[Callable[..., None]]
        preparation: ClassVar[Callable[..., Sequence[NextCall]]]
        needs: ClassVar[Callable[..., NeededPermissions]]
        gather: ClassVar[Callable[..., Reads[Any]]]
        decide: ClassVar[Callable[..., Outcome]]
    else:

        def __class_getitem__(cls, types):
            return cls

    @classmethod
    def cannot(cls, reason: str, detail: str, **facts: object) -> Refusal:
        """Return the refusal of this verb, with its machine cause."""
        return cls.Cannot(detail, reason=reason, facts=facts)


S = TypeVar("S", bound=State, default=Any)
Facts = TypeVar("Facts", default=Any)

if TYPE_CHECKING:

    class Verb(Command, Generic[S]):
        """A command on an existing stream that is decided from its state alone."""

        def decide(self, state: S, call: Call, /) -> Outcome: ...

    class JudgedVerb(Command, Generic[S, Facts]):
        """A command on an existing stream that is decided from its state and from facts about others."""

        def gather(self, state: S, call: Call, /) -> Reads[Facts]: ...
        def decide(self, state: S, call: Call, facts: Facts, /) -> Outcome: ...

    class Creation(Command):
        """A command that begins a stream and is decided from itself alone."""

        def decide(self, call: Call, /) -> Outcome: ...

    class JudgedCreation(Command, Generic[Facts]):
        """A command that begins a stream and is decided from facts about others."""

        def gather(self, call: Call, /) -> Reads[Facts]: ...
        def decide(self, call: Call, facts: Facts, /) -> Outcome: ...

else:
    Verb = JudgedVerb = Creation = JudgedCreation = Command


@dataclass(frozen=True)
class Document:
    """An answer that is a file of another form than the service's own JSON: a manifest, a picture, a foreign record."""

    media_type: str
    content: bytes
    next_cursor: str | None = None  # Where the next page begins, of one that is answered in pages.
    digest: str | None = None  # The SHA-256 that the file itself names.


Answer = TypeVar("Answer", default=Any)
if TYPE_CHECKING:

    class Answered(Generic[Answer]):
        """What is answered, as a type."""

        def answer(self, *known: Any, **_: Any) -> Reads[Answer | AskPort]: ...

else:

    class TypesOnly:
        """Takes parameters that only type checkers read."""

        def __class_getitem__(cls, _):
            return cls

    Answered = TypesOnly


class Query(Answered[Answer], Value):
    """A request to read, and the type of its answer. `answer(state, call)`, or `answer(call)` without a target in the path,
    generates it."""

    operation: ClassVar["Operation"]
    reads_projections: ClassVar[bool] = False  # Whether the answer may be behind the log, and waits for `min_position`.
    of_one_moment: ClassVar[bool] = False  # Whether everything in the answer must be as it was at one moment.
    rehearses: ClassVar[bool] = False  # Whether it decides commands, which then reach nothing outside.
    personal: ClassVar[bool] = False  # Whether the answer depends on who asks, beyond what they may do.


def omittable() -> Any:
    """Return the default of an input key that may be left out but not be null; `model_fields_set` tells whether it came."""
    return Field(default=None, json_schema_extra=_without("default"))


class NamesOnRequest(Query[Answer]):
    """A query whose answer has, where asked for, the names of what it refers to: beside `plan_id` stands `plan`."""

    include: Literal["names"] | None = None


class TimeTravel(NamesOnRequest[Answer]):
    """A query that can look at the past of its stream."""

    as_of: Instant | None = None
    as_of_version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None

    @model_validator(mode="after")
    def _one_past(self) -> Self:
        if self.as_of is not None and self.as_of_version is not None:
            raise ValueError("give as_of or as_of_version, not both")
        return self

    @property
    def travels(self) -> bool:
        """Whether the past is asked for."""
        return self.as_of is not None or self.as_of_version is not None


PageLimit = Annotated[int, Field(ge=1, le=100)]
CursorText = Annotated[str, Field(min_length=1, max_length=500)]
LogPosition = Annotated[int, Field(ge=0, le=2**63 - 1)]


@dataclass(frozen=True)
class HistoryPage:
    """A page of one stream's events, under the aggregate's own id name."""

    id_name: str
    id: UUID
    items: tuple[Mapping[str, Any], ...]
    next_cursor: str | None


class History(NamesOnRequest[HistoryPage]):
    """The events of one stream, oldest first."""

    limit: PageLimit = 50
    cursor: CursorText | None = None


@dataclass(frozen=True, kw_only=True)
class FurtherView(State):
    """A state with what `get_<aggregate>` shows besides it: the base of a class that is derived from the state too."""

    @classmethod
    @abstractmethod
    def load(cls, query: "TimeTravel[Self]", state: Any) -> Reads[Self]:
        """Return the view of a state."""

    @classmethod
    def of(cls, state: State, **further: object) -> Self:
        """Return the view that has everything of a state, and these further fields."""
        view = object.__new__(cls)
        view.__dict__.update(state.__dict__)
        view.__dict__.update(further)
        return view


C = TypeVar("C", bound=Command)
Q = TypeVar("Q", bound=Query)
V = TypeVar("V", bound=FurtherView)


class Aggregate(Generic[S]):
    """A consistency boundary: its state, its events and how they fold, its verbs and its questions."""

    NotFound: type[Refusal]
    AlreadyExists: type[Refusal]
    show: Callable[[State], BaseModel]  # Returns what surfaces show of a state, where `get` declares that.

    def __init__(self, state: type[S], path: str, *, context: str, axis: str = "status", id_name: str | None = None) -> None:
        self.state = state
        self.context = context
        self.path = path
        self.axis = axis
        name = self.name = state.__name__
        self.label = snake_case(name).replace("_", " ")
        self.id_name = id_name or f"{snake_case(name)}_id"
        self.events: dict[str, type[Event]] = {}
        self.operations: list[Operation] = []
        self._invalid: dict[str, type[Refusal]] = {}
        self.absences: dict[UUID, str] = {}  # What is said of ids that stand for something else than a stream of this kind.
        self._fields = frozenset(one.name for one in fields(state))
        required = (one.name for one in fields(state) if one.default is one.default_factory is MISSING)
        self._times = tuple(name for name in required if name.endswith("_at"))
        self._begin: Callable[[Any], S] = self._first_state
        self._evolve: Callable[[S, Any], S] | None = None
        self.NotFound = refusal_class(NotFound, f"{name}NotFoundError", f"There is no {self.label} with this id.", context)
        exists = f"This {self.label} exists already."
        self.AlreadyExists = refusal_class(Conflict, f"{name}AlreadyExistsError", exists, context)
        state.aggregate = self
        REGISTRY.aggregates[name] = self
        self.history = self._query_class(f"Get{name}History", History, f"Every event of one {self.label}, oldest first.")
        events: dict[str, Any] = {"items": (tuple[EventView, ...], ...), "next_cursor": (str | None, ...)}
        self.query(get=f"/{{{self.id_name}}}/history", returns=self._late_form("History", **events))(self.history)

    def begin(self, function: Callable[[Any], S]) -> Callable[[Any], S]:
        """Declare the fold of the first event, where its keys are not simply fields of the state."""
        self._begin = function
        return function

    def _first_state(self, event: Event) -> S:
        """Return the state with the fields of its first event, and the event's time in every other required `..._at`."""
        given = {name: value for name, value in vars(event).items() if name in self._fields}
        return self.state(**{"id": event.stream_id, **dict.fromkeys(self._times, event.occurred_at), **given})

    def evolve(self, function: Callable[[S, Any], S]) -> Callable[[S, Any], S]:
        """Declare the fold of every later event."""
        self._evolve = function
        return function

    def after(self, state: S | None, event: Event) -> S:
        """Return the state after one more event."""
        if state is None:
            return self._begin(event)
        if event.inert:
            return state
        if event.leads_to is not None:
            times = {} if event.dates is None else {event.dates: event.occurred_at}
            return copy_with(state, **{self.axis: event.leads_to}, **times)
        if self._evolve is None:
            raise TypeError(f"{type(event).__name__} cannot follow on a {self.name} stream")
        return self._evolve(state, event)

    def fold(self, events: Iterable[Event], state: S | None = None) -> S | None:
        """Return the state after these events."""
        for event in events:
            state = self.after(state, event)
        return state

    def replay(self, stored: Sequence[StoredEvent], state: S | None = None) -> S | None:
        """Return the state of a stored stream, or the state after further stored events; events that a later one of their
        type overwrites are passed over."""
        latest = {event.event_type: event.version for event in stored}
        try:
            classes = {name: self.event_class(name) for name in latest}
        except UnknownEventError as error:
            error.add_note(f"stream {stored[0].stream_id}")
            raise
        for event in stored:
            kind = classes[event.event_type]
            is_last = state is None or not kind.overwrites or event.version == latest[event.event_type]
            if is_last and not kind.inert:
                loaded = kind.load(event.payload, event.schema_version)
                state = self.after(state, loaded.stamp(event.stream_id, event.occurred_at))
        return state

    def event_class(self, event_type: str) -> type[Event]:
        """Return the class of a stored event; an unknown type fails the load, it is never skipped."""
        try:
            return self.events[event_type]
        except KeyError:
            raise UnknownEventError(f"a {self.name} stream holds the unknown event {event_type}") from None

    def decode(
        self, event_type: str, payload: str | bytes, stream_id: UUID, occurred_at: datetime, schema_version: int = 1
    ) -> Event:
        """Return a stored event as its class reads it."""
        return self.event_class(event_type).load(payload, schema_version).stamp(stream_id, occurred_at)

    def axis_value(self, state: S) -> Enum:
        """Return the value of the state that decides which verbs are allowed."""
        value: Enum = getattr(state, self.axis)
        return value

    def invalid(self, field: str, label: str | None = None) -> type[Refusal]:
        """Return the class that refuses a blank or unfit text of this aggregate: `Invalid<Aggregate><Field>Error`."""
        name = f"Invalid{self.name}{field.title().replace('_', '')}Error"
        if name not in self._invalid:
            meaning = f"The {label or field.replace('_', ' ')} of a {self.label} must be text that is not blank."
            self._invalid[name] = refusal_class(Invalid, name, meaning, self.context)
        return self._invalid[name]

    def text(self, field: str, max_length: int, *, label: str | None = None, personal: bool = False) -> Text:
        """Declare a bounded text whose blankness is refused by the class of `invalid(field)`."""
        return Text(max_length, self.invalid(field, label), label or field.replace("_", " "), personal=personal)

    def creation(self, **options: Unpack[registry.CreationOptions]) -> Callable[[type[C]], type[C]]:
        """Declare a command that begins a stream."""
        if "returns" not in options:
            options["returns"] = self._late_form("Created")
        return self._command("POST", "", creates=True, status=201, **options)

    def command(self, **options: Unpack[registry.CommandOptions]) -> Callable[[type[C]], type[C]]:
        """Declare a command on an existing stream, and the states it is allowed from (all, when not said)."""
        detail: dict[str, Any] = {"status": 204, **options}
        method = next(method for method in ("post", "patch", "put", "delete") if method in detail)
        return self._command(method.upper(), detail.pop(method), **detail)

    def internal_command(
        self, *, creates: bool = False, **options: Unpack[registry.CreationOptions]
    ) -> Callable[[type[C]], type[C]]:
        """Declare a command that only the service itself gives, permitted as `command_name`; no surface has it."""
        path = "" if creates else f"/{{{self.id_name}}}"
        return self._command("POST", path, creates=creates, status=204, surfaced=False, **options)

    def _command(
        self, method: str, path: str, /, *, verb: str | None = None, records: type[Event] | None = None, **options: Any
    ) -> Callable[[type[C]], type[C]]:
        def declare(command: type[C]) -> type[C]:
            command.Cannot = refusal_class(
                Conflict,
                f"{self.name}Cannot{verb or command.__name__.replace(self.name, '', 1)}Error",
                f"`{options.get('name', snake_case(command.__name__))}` is not possible now; the reason says why.",
                options.get("context", self.context),
            )
            if records is not None:
                command.decide = _recorder(command, records)
                options.setdefault("leads_to", records.leads_to)
            self._declare(command, method, path, kind="command", **options)
            return command

        return declare

    def query(
        self, *, get: str = "", post: str | None = None, **options: Unpack[registry.QueryOptions]
    ) -> Callable[[type[Q]], type[Q]]:
        """Declare a query; one whose input does not fit an address is posted."""
        method, path = ("GET", get) if post is None else ("POST", post)

        def declare(query: type[Q]) -> type[Q]:
            self._declare(query, method, path, kind="query", **options)
            return query

        return declare

    @overload
    def get(self, *shown: str, hidden: Collection[str] = ()) -> type[TimeTravel[S]]: ...
    @overload
    def get(self, *, hidden: Collection[str] = (), view: type[V]) -> type[TimeTravel[V]]: ...

    def get(self, *shown: str, hidden: Collection[str] = (), view: Any = None) -> Any:
        """Declare `get_<aggregate>`, whose answer is the state, or a view with more than that. Surfaces show these fields
        and properties of the state, or all fields but the hidden, the id under the aggregate's own name, since when there is
        one, and what the view has besides."""
        added = [one for one in reversed((view or self.state).__mro__) if one not in self.state.__mro__]
        further = tuple(name for one in added for name in get_annotations(one))
        names = shown or tuple(one.name for one in fields(self.state) if one.name not in (*hidden, *further))

        @cache
        def form() -> type[BaseModel]:
            own = {self.id_name: UUID, "created_at": datetime}
            declared = types_of(view or self.state, (*further, *names))
            form: dict[str, Any] = {name: (kind, ...) for name, kind in {**declared, **own}.items()}
            return create_model(f"{self.name}View", __base__=AnswerForm if view is None else Value, **form)

        def show(state: State) -> BaseModel:
            identity = {self.id_name: state.id, "created_at": state.created_at}
            return form().model_construct(**{name: getattr(state, name) for name in (*further, *names)} | identity)

        def answer(query: TimeTravel[Any], state: S, call: Call) -> Reads[Any]:
            return state if view is None else (yield from view.load(query, state))

        self.show = show
        get = self._query_class(f"Get{self.name}", TimeTravel, f"One {self.label}, folded from its stream.", answer=answer)
        return self.query(get=f"/{{{self.id_name}}}", returns=registry.LateForm(form))(get)

    def _late_form(self, name: str, **members: Any) -> registry.LateForm:
        """Return the model of an answer that shows the aggregate's id and these members."""
        form = {self.id_name: (UUID, ...), **members}
        return registry.LateForm(lambda: create_model(f"{self.name}{name}", __base__=AnswerForm, **form))

    def _query_class(self, name: str, base: type[Q], doc: str, **members: object) -> type[Q]:
        return type(name, (base,), {"__doc__": doc, "__module__": self.state.__module__, **members})

    def listing(self, summary: Any, **options: Any) -> Callable[[type[Q]], type[Q]]:
        """Declare a list over the projection of this aggregate's streams."""

        def declare(query: type[Q]) -> type[Q]:
            query.summary = summary  # type: ignore[attr-defined]
            if not hasattr(summary, "relation"):
                summary.relation = f"proj_{self.context}_{snake_case(self.name)}_summary"
                REGISTRY.projections[summary.relation] = registry.Projection(summary, self)
            query.reads_projections = summary.relation in REGISTRY.projections
            item = options.pop("returns", None)
            returns = registry.LateForm(lambda: query.page_form(item))  # type: ignore[attr-defined]
            return self.query(get=options.pop("get", ""), returns=returns, **options)(query)

        return declare

    def _declare(self, input: type[Any], method: str, path: str, /, *, surfaced: bool = True, **options: Any) -> None:
        detail = {"context": self.context, "path": self.path + path, **options}
        operation = registry.operation_of(input, method=method, aggregate=self, **detail)
        if surfaced:
            self.operations.append(operation)
            REGISTRY.declare(operation)
        else:
            REGISTRY.internal.add(operation.command_name)


def values_of(state: State, form: type[BaseModel]) -> dict[str, Any]:
    """Return the values of a state for the fields of a form with the same names, and its id under the aggregate's own."""
    own = {state.aggregate.id_name: state.id}
    return {name: getattr(state, name) for name in form.model_fields if name not in own and hasattr(state, name)} | own


def types_of(state: type[State], names: Iterable[str]) -> dict[str, Any]:
    """Return the declared types of fields and properties of a state."""
    hints = get_type_hints(state, include_extras=True)
    missing = {name: getattr(state, name).fget for name in names if name not in hints}
    hints |= {name: get_type_hints(fget, include_extras=True)["return"] for name, fget in missing.items()}
    return {name: hints[name] for name in names}


def _recorder(command: type[Command], event: type[Event]) -> Callable[..., Outcome]:
    """Return the decision that records one event: the command's own fields, and the caller as the field ending in `_by`."""
    own = [name for name in event.model_fields if name in command.model_fields]
    authors = [name for name in event.model_fields if name not in own]
    if len(authors) > 1 or not all(name.endswith("_by") for name in authors):
        raise TypeError(f"{command.__name__} does not say what {event.__name__} holds: write its decide")

    def decide(self: Command, *known: object) -> Outcome:
        call = next(one for one in known if isinstance(one, Call))
        return [event(**{name: getattr(self, name) for name in own}, **dict.fromkeys(authors, call.principal_id))]

    return decide


class UnknownEventError(Exception):
    """A stored event has no class: this build is older than the log, or the log is damaged."""
