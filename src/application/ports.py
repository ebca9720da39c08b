"""The ports of every side effect, and the plain data that crosses them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from baton.domain.agent.reactions import OpenItem
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Call, Event, StoredEvent
from baton.domain.shared.listing import ListQuery, Page, Summary, Where
from baton.domain.shared.logbooks import Entry
from baton.domain.shared.refusals import Unavailable
from baton.domain.shared.writes import Claim, Delist, Drop, Enlist, Put, Record, Release
from baton.domain.trust.authorization import AuthzResult

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Caller:
    """Who is calling, through which surface, as part of which work: the envelope of every command and query."""

    principal_id: UUID
    surface_id: UUID
    correlation_id: UUID
    causation_id: UUID | None = None
    conduit_id: UUID = SYSTEM_CONDUIT
    expires_at: datetime | None = None
    completing: bool = False
    """Whether an agent completes what it held the lease for before it was suspended; no transport can say so."""

    @classmethod
    def system(cls, correlation_id: UUID) -> "Caller":
        """The service itself; only in-process code can form this caller."""
        return cls(principal_id=NIL, surface_id=NIL, correlation_id=correlation_id)

    @classmethod
    def of(cls, call: Call) -> "Caller":
        """Return the caller that made a call."""
        return cls(call.principal_id, call.surface_id, call.correlation_id, call.causation_id, call.conduit_id)

    def call(self, now: datetime, new_id: UUID) -> Call:
        """One call of this caller, as decisions and answers see it."""
        return Call(
            principal_id=self.principal_id,
            surface_id=self.surface_id,
            conduit_id=self.conduit_id,
            correlation_id=self.correlation_id,
            causation_id=self.causation_id,
            now=now,
            new_id=new_id,
        )


class StoreUnavailableError(Unavailable):
    """The database cannot be reached; repeat the request, with the same idempotency key if it was a command."""


class Clock(Protocol):
    def __call__(self) -> datetime: ...


class IdGenerator(Protocol):
    def __call__(self) -> UUID: ...


class EventRow(NamedTuple):
    """A stored event with its whole envelope, as histories and feeds show it."""

    position: int
    transaction_id: int
    event_id: UUID
    stream_type: str
    stream_id: UUID
    version: int
    event_type: str
    schema_version: int
    payload: str
    principal_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime
    surface_id: UUID | None
    """The surface that the call came through, nil for in-process ones; null for events from before it was kept."""


class Bookmark(NamedTuple):
    """A place in the log; places are compared as pairs, because positions may become visible out of order."""

    transaction_id: int
    position: int


@dataclass(frozen=True)
class StreamAppend:
    """Events to follow on a stream whose last known version is `after`."""

    stream_type: str
    stream_id: UUID
    after: int
    events: Sequence[tuple[UUID, Event]]


@dataclass(frozen=True)
class KeyClaim:
    """One use of an idempotency key: whose, through what, for which exact request, since when."""

    principal_id: UUID
    key: str
    surface_id: UUID
    command_name: str
    fingerprint: str
    claimed_at: datetime


@dataclass(frozen=True)
class CommandResult:
    """A command's answer."""

    status: int
    body: Mapping[str, Any] | None
    position: int
    replayed: bool = False


@dataclass
class Batch:
    """Everything one command writes; all of it or nothing."""

    call: Call
    command_name: str
    appends: list[StreamAppend] = field(default_factory=list)
    claims: list[tuple[Claim, UUID]] = field(default_factory=list)
    releases: list[tuple[Release, UUID]] = field(default_factory=list)
    enlistments: list[tuple[Enlist, UUID]] = field(default_factory=list)
    delistments: list[tuple[Delist, UUID]] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    entries: list[Sequence[Entry]] = field(default_factory=list)
    outcome: tuple[KeyClaim, CommandResult] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing but an idempotency outcome would be written."""
        rows = self.puts or self.drops or self.entries
        return not (self.appends or self.claims or self.releases or self.enlistments or self.delistments or rows)


class Session(Protocol):
    """One command's or query's view of the store; under a named lock it is one transaction from lock to append."""

    async def load(self, stream_type: str, ids: Sequence[UUID]) -> Sequence[StoredEvent]:
        """The events of these streams, each in version order; what a later event of its type overwrites may be left out,
        and so may the payload of an event that never changes the state."""
        ...

    async def load_of(self, stream_type: str, id: UUID, event_types: Sequence[str]) -> Sequence[EventRow]:
        """The events of these types on a stream in version order, whole and with their envelopes."""
        ...

    async def load_latest(
        self,
        stream_type: str,
        id: UUID,
        event_types: Sequence[str],
        count: int,
        as_of: datetime | None = None,
        as_of_version: int | None = None,
    ) -> Sequence[EventRow]:
        """The last few events of these types on a stream, newest first; of its past, where one is named."""
        ...

    async def load_past(
        self, stream_type: str, id: UUID, as_of: datetime | None, as_of_version: int | None
    ) -> Sequence[StoredEvent]:
        """The events of a stream up to a version, or up to the highest version that had occurred by a time."""
        ...

    async def history(self, stream_type: str, id: UUID, after_version: int, limit: int) -> Sequence[EventRow]: ...
    async def holders(self, kind: str, keys: Sequence[str]) -> dict[str, UUID]: ...
    async def members(self, kind: str, *keys: str) -> tuple[UUID, ...]: ...
    async def enlisted(self, kind: str) -> tuple[UUID, ...]: ...
    async def records(self, record: type[R], where: Mapping[str, Any]) -> tuple[R, ...]: ...
    async def page(self, summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> Page[Summary]: ...

    async def append(self, batch: Batch) -> int | None:
        """Write a batch and answer its highest position; a lost race raises ConcurrencyError or the claim's rival.

        Where the batch finishes an idempotency key that somebody else took over meanwhile, IdempotencyClaimLostError.
        """
        ...


class Store(Protocol):
    """The event store and the rows written with it."""

    def session(self, lock: str | None = None) -> AbstractAsyncContextManager[Session]: ...

    def snapshot(self) -> AbstractAsyncContextManager[Session]:
        """A session that only reads, and sees everything as it was at one moment."""
        ...

    async def claim_key(self, claim: KeyClaim, stale_before: datetime) -> CommandResult | None:
        """Claim an idempotency key, or answer its stored outcome; raises the two idempotency refusals."""
        ...

    async def release_key(self, claim: KeyClaim) -> None:
        """Give a claimed key back; one that was taken over or finished stays as it is."""
        ...

    async def newer(
        self, stream_type: str, known: Mapping[UUID, int], look_up: tuple[str, str] | None = None
    ) -> Sequence[StoredEvent]:
        """The events behind these known versions, and all events of further streams enlisted under a look-up key."""
        ...

    async def follow(self, after: Bookmark, limit: int, only: Sequence[str] | None = None) -> Sequence[EventRow]:
        """Committed events behind a bookmark in commit-safe order; one still in flight is never skipped.

        Of so many events, `only` asks for those of these types; the last one comes in any case, to go on from.
        """
        ...

    async def event(self, event_id: UUID) -> EventRow | None:
        """One event by its id."""
        ...

    async def locate(self, position: int) -> Bookmark | None:
        """The bookmark of a position, or of the newest visible one before it; None before the first."""
        ...

    async def end(self) -> Bookmark:
        """The bookmark of the last event that a follower would be given now; what is still in flight comes behind it."""
        ...

    async def ahead(self, after: Bookmark, only: Sequence[str], limit: int) -> Sequence[UUID]:
        """The ids of the next committed events of these types behind a bookmark, in commit-safe order."""
        ...

    async def passed(self, follower: str, position: int) -> bool:
        """Whether a follower's bookmark has passed a position."""
        ...


@dataclass(frozen=True)
class FoldedStanding:
    """Whether a principal may act at all, and the versions of its streams that say so."""

    principal_id: UUID
    objection: str | None = None
    actor_version: int | None = None
    agent_version: int | None = None
    """The versions are None where nothing was read: of the service itself, and of an agent where the principal is none."""

    @property
    def is_agent(self) -> bool:
        return self.agent_version is not None


class Authorizer(Protocol):
    """The authorization seam."""

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        """Judge one call and record the verdict."""
        ...

    async def permitted(self, caller: Caller) -> frozenset[str]:
        """Every command the caller may call on its surface; records nothing."""
        ...

    async def standing(self, caller: Caller) -> FoldedStanding:
        """Whether the caller may act at all, whatever it was permitted, by the very latest event; records nothing."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far work has come, of how much where that is known, and what it is at."""

    done: float
    total: float | None
    message: str


class EngineUnavailableError(Unavailable):
    """The workflow engine cannot be reached; what was recorded goes on as soon as it can."""


@dataclass(frozen=True)
class Job:
    """A workflow to be run: its kind, the id that only one has at a time, what it is told, and how people find it."""

    workflow: str
    id: str
    argument: Any
    """Nothing is told where this is None."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Search attributes."""
    summary: str | None = None
    succeeds: bool = False
    """Whether an earlier job may still have the id for a moment."""
    once: bool = False
    """Whether none is ever started again under this id, not even after its end."""
    memo: Mapping[str, str] = field(default_factory=dict)
    """What is kept with it for people who look at it."""


class EngineView(StrEnum):
    """What the engine knows of a workflow."""

    ABSENT = "absent"
    """None is open under this id."""
    OPEN = "open"
    STALLED = "stalled"
    """It is open, and again and again fails to go on."""


class Engine(Protocol):
    """The workflow engine: follows the record, never leads it. Everything raises EngineUnavailableError."""

    async def start(self, job: Job) -> bool:
        """Start a workflow; false where one is open under its id, or was and `once` is enough: that one is left alone."""
        ...

    async def look(self, id: str) -> EngineView:
        """What the engine knows of the workflow under this id."""
        ...

    async def terminate(self, id: str, reason: str) -> None:
        """End the workflow under this id at once, if one is open."""
        ...

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        """What is open of these kinds of workflow and was started for an event, the oldest first, as far as a page goes."""
        ...


@dataclass(frozen=True)
class WorkItem:
    """One piece of long work, for whoever asks after it: whose it is, what it is about, and the ids of its answer."""

    principal_id: UUID
    readable_with: str
    """The permission with which others may ask after it too."""
    ids: Mapping[str, Any]
    correlation_id: UUID | None = None
    """That of the request which began it."""


class Work(Protocol):
    """One kind of long work: its workflow, and where its answer appears."""

    workflow: str

    async def job(self, work_id: UUID) -> Job | None:
        """How the engine is told of it; None where there is nothing to tell any more."""
        ...

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        """The answer, once the work is done; raises the refusal it ended with."""
        ...

    async def unfinished(self) -> Sequence[UUID]:
        """What the record says is under way and the engine may not know of."""
        ...

    async def item(self, work_id: UUID) -> WorkItem | None:
        """What the work is; None where it is of another kind, or of none."""
        ...

    async def progress(self, work_id: UUID) -> Progress | None:
        """How far it is; None where nothing can be said."""
        ...


class VerdictLog(Protocol):
    """Where verdicts are recorded, best effort: a failure is logged and never changes a decision."""

    def record(self, caller: Caller, surface_id: UUID, command_name: str, result: AuthzResult) -> None: ...
