"""Reads: what a decision or an answer may ask to know, as plain data. The domain does no I/O: a rule that looks beyond its
own stream is a generator that yields these requests and receives the answers, `family = yield from required(Family, id)`."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple
from uuid import UUID

from baton.domain.shared.refusals import Refusal

if TYPE_CHECKING:
    from baton.domain.kernel import Event, State
    from baton.domain.shared.listing import ListQuery, Summary, Where
    from baton.domain.shared.writes import Also, Record

S = TypeVar("S", bound="State")
R = TypeVar("R", bound="Record")
E = TypeVar("E", bound="Event")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True)
class Streams:
    """The folded states of several streams of one kind; absent ones are left out."""

    state: type["State"]
    ids: tuple[UUID, ...]


@dataclass(frozen=True)
class PastEvents:
    """The events of these types on some streams of one kind, oldest first on each."""

    state: type["State"]
    ids: tuple[UUID, ...]
    events: tuple[type["Event"], ...]


@dataclass(frozen=True)
class LatestEvents:
    """The last few events of these types on one stream, newest first; of those up to a version or a time, if given."""

    state: type["State"]
    id: UUID
    events: tuple[type["Event"], ...]
    count: int
    as_of: datetime | None = None
    as_of_version: int | None = None


@dataclass(frozen=True)
class Holders:
    """Who holds each of these uniqueness claims; unclaimed keys are left out."""

    kind: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class AllHolders:
    """Who holds a uniqueness claim of this kind, whatever the key, in ascending order."""

    kind: str


@dataclass(frozen=True)
class Members:
    """The stream ids enlisted under each of these look-up keys, in ascending order; keys without any are left out."""

    kind: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class AllMembers:
    """The stream ids enlisted under any key of this kind, in ascending order."""

    kind: str


@dataclass(frozen=True)
class TextPart:
    """Any text that holds this one, in upper or lower case."""

    text: str


@dataclass(frozen=True)
class Descendants:
    """The stream ids enlisted under the id of a stream, those under each of them, and so on, level by level, as far down as
    asked; in ascending order in each level."""

    kind: str
    id: UUID
    max_depth: int


@dataclass(frozen=True)
class Records:
    """The rows of a mutable relation whose columns equal these values (a tuple means any of) or hold this `TextPart`."""

    record: type["Record"]
    where: Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """One page of a relation."""

    summary: type["Summary"]
    query: "ListQuery"
    where: "tuple[Where, ...]"


@dataclass(frozen=True)
class Permission:
    """Whether the caller also holds another permission, or this one on another surface."""

    command_name: str
    surface_id: UUID | None = None


@dataclass(frozen=True)
class Grants:
    """Which of these permissions the caller does not hold, and why it may not act at all, if so."""

    command_names: tuple[str, ...]


@dataclass(frozen=True)
class PermittedCommands:
    """Every command that the caller may call on its surface."""


@dataclass(frozen=True)
class OwnAccess:
    """What the caller may do on its surface and why: its groups, and the policies that name it."""


@dataclass(frozen=True)
class AskPort:
    """What a method of one of the `Ports` answers to plain arguments. A query whose answer may take long answers with this
    itself: then the port is asked once the record is read, and no connection waits for it."""

    method: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class RunInThread:
    """The result of a pure function that may take long, computed where it blocks nobody else."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Suppose:
    """Has these writes count as done at this time, for every state, event, claim and look-up by key that is read behind it
    in this unit of work. Nothing is written by it, and what is compared when the decision is written is what was stored."""

    also: "Also"
    at: datetime


Rights = Permission | Grants | PermittedCommands | OwnAccess
Enlisted = Members | AllMembers | Descendants
Claimed = Holders | AllHolders
Read = Streams | PastEvents | LatestEvents | Claimed | Enlisted | Records | Rows | Rights | AskPort | RunInThread | Suppose
Reads = Generator[Read, Any, T]


def find_all(state: type[S], ids: Iterable[UUID]) -> Reads[dict[UUID, S]]:
    """Return the states that exist among these ids."""
    wanted = tuple(dict.fromkeys(ids))
    if not wanted:
        return {}
    found: dict[UUID, S] = yield Streams(state, wanted)
    return found


def find(state: type[S], id: UUID | None) -> Reads[S | None]:
    """Return the state under this id, or None."""
    return None if id is None else (yield from find_all(state, (id,))).get(id)


def require(state: type[S], id: UUID, refusal: type[Refusal] | None = None) -> Reads[S]:
    """Return the state under this id; refuse with 404 where there is none."""
    return (yield from require_all(state, (id,), refusal))[id]


def require_if_given(state: type[S], id: UUID | None, refusal: type[Refusal] | None = None) -> Reads[S | None]:
    """Return the state under this id, where one is given; refuse with 404 where there is none."""
    return None if id is None else (yield from require(state, id, refusal))


def require_all(state: type[S], ids: Iterable[UUID], refusal: type[Refusal] | None = None) -> Reads[dict[UUID, S]]:
    """Return the states under all these ids; a refusal names the first missing one, and has all of them in its facts."""
    ordered = sorted(set(ids))
    found = yield from find_all(state, ordered)
    if missing := [id for id in ordered if id not in found]:
        aggregate = state.aggregate
        detail = f"There is no {aggregate.label} {missing[0]}; check the id or list what exists."
        raise (refusal or aggregate.NotFound)(
            aggregate.absences.get(missing[0], detail), facts={"missing_ids": [str(id) for id in missing]}
        )
    return found


def events_of(id: UUID, *events: type[E]) -> Reads[tuple[E, ...]]:
    """Return the events of these types on one stream, oldest first."""
    return (yield from events_of_all((id,), *events))


def events_of_all(ids: Iterable[UUID], *events: type[E]) -> Reads[tuple[E, ...]]:
    """Return the events of these types on some streams of one kind, oldest first on each."""
    found: tuple[E, ...] = yield PastEvents(events[0].aggregate.state, tuple(dict.fromkeys(ids)), events)
    return found


def latest_events(
    id: UUID, *events: type[E], count: int, as_of: datetime | None = None, as_of_version: int | None = None
) -> Reads[tuple[E, ...]]:
    """Return the last events of these types on one stream, newest first, however long it is."""
    found: tuple[E, ...] = yield LatestEvents(events[0].aggregate.state, id, events, count, as_of, as_of_version)
    return found


def holder_of(kind: str, key: str) -> Reads[UUID | None]:
    """Return the stream that holds a uniqueness claim, or None."""
    found: dict[str, UUID] = yield Holders(kind, (key,))
    return found.get(key)


def all_holders_of(kind: str) -> Reads[tuple[UUID, ...]]:
    """Return the streams that hold a claim of this kind, whatever the key."""
    found: tuple[UUID, ...] = yield AllHolders(kind)
    return found


def members_of(kind: str, *keys: object) -> Reads[tuple[UUID, ...]]:
    """Return the streams enlisted under any of these look-up keys, in ascending order."""
    found = yield from members_by_key(kind, *keys)
    return tuple(sorted({id for ids in found.values() for id in ids}))


def members_by_key(kind: str, *keys: object) -> Reads[dict[str, tuple[UUID, ...]]]:
    """Return the streams enlisted under each of these look-up keys; keys without any are left out."""
    if not keys:
        return {}
    found: dict[str, tuple[UUID, ...]] = yield Members(kind, tuple(map(str, keys)))
    return found


def all_members_of(kind: str) -> Reads[tuple[UUID, ...]]:
    """Return the streams enlisted under this kind of look-up, whatever the key."""
    found: tuple[UUID, ...] = yield AllMembers(kind)
    return found


def records_of(record: type[R], **where: object) -> Reads[tuple[R, ...]]:
    """Return the rows of a mutable relation with these values (a tuple means any of), in key order."""
    found: tuple[R, ...] = yield Records(record, where)
    return found


def record_of(record: type[R], **where: object) -> Reads[R | None]:
    """Return one row of a mutable relation, or None."""
    return next(iter((yield from records_of(record, **where))), None)


def is_permitted(command_name: str, surface_id: UUID | None = None) -> Reads[bool]:
    """Return whether the caller also holds this permission; the answer is recorded like any verdict."""
    allowed: bool = yield Permission(command_name, surface_id)
    return allowed


def missing_grants(*command_names: str) -> Reads[tuple[str | None, tuple[str, ...]]]:
    """Return why the caller may not act at all, if so, and which of these permissions it lacks; neither is recorded."""
    found: tuple[str | None, tuple[str, ...]] = yield Grants(command_names)
    return found


def permitted_commands() -> Reads[frozenset[str]]:
    """Return every command that the caller may call on its surface; nothing is recorded."""
    found: frozenset[str] = yield PermittedCommands()
    return found


def ask(method: Callable[[Any, *Ts], Awaitable[T]], *arguments: *Ts) -> Reads[T]:
    """Return the answer of a port: `yield from ask(DeploymentPort.deployment)`."""
    answer: T = yield AskPort(method, arguments)
    return answer


def run_in_thread(function: Callable[[*Ts], T], *arguments: *Ts) -> Reads[T]:
    """Return the result of a pure function that may take long."""
    result: T = yield RunInThread(function, arguments)
    return result
