"""The ports of every side effect, and the plain data that crosses them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from baton.application.caller import Caller, Lease
from baton.application.fold_cache import FoldCache
from baton.domain.agent.agent import SpentAmounts
from baton.domain.agent.reactions import OpenItem
from baton.domain.agent.redaction import NameBook
from baton.domain.data.attestation import ByteReading
from baton.domain.data.catalogue import CataloguedDataset
from baton.domain.data.scan import ScanDescription
from baton.domain.kernel import Call, Event, Outcome, StoredEvent
from baton.domain.schedule.calendar import Calendar
from baton.domain.schedule.schedule import Overlap
from baton.domain.shared.citation import Citation, MintedIdentifier
from baton.domain.shared.deployment import CatalogueName
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.listing import ListQuery, Page, Summary, Where
from baton.domain.shared.reads import LatestEvents
from baton.domain.shared.refusals import ConcurrencyError, IdempotencyClaimLostError, IdempotencyConflictError, Unavailable
from baton.domain.shared.signatures import Signature
from baton.domain.shared.writes import Also, Claim, Delist, Drop, Enlist, Enter, Put, Record, Release
from baton.domain.trust.authorization import Access, AuthzResult
from baton.domain.views.event_log import ListEvents

R = TypeVar("R", bound=Record)
A = TypeVar("A")
NOTHING_KNOWN: Mapping[UUID, int] = MappingProxyType({})
Clock = Callable[[], datetime]
IdGenerator = Callable[[], UUID]


class StoreUnavailableError(Unavailable):
    """The database cannot be reached; repeat the request, with the same idempotency key if it was a command."""


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
    surface_id: UUID | None  # nil for in-process calls; null for events from before it was kept
    approved_by: UUID | None  # who approved the command, where it was proposed


class Bookmark(NamedTuple):
    """A place in the log; places are compared as pairs, because positions may become visible out of order."""

    transaction_id: int
    position: int


@dataclass(frozen=True)
class StreamAppend:
    """Events to follow on a stream whose last version is `after`: the known one, or what an append before it leaves."""

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
    status: int
    body: Mapping[str, Any] | None
    position: int
    replayed: bool = False


@dataclass(frozen=True)
class FactsRead:
    """What a decision rests on: the last versions of the streams it read, and the streams it found under look-up keys."""

    streams: Sequence[tuple[str, UUID, int]]
    members: Sequence[tuple[str, Sequence[str], Sequence[UUID]]]


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
    entries: list[Enter] = field(default_factory=list)
    outcome: tuple[KeyClaim, CommandResult] | None = None
    facts: FactsRead | None = None  # what must still stand when it is written, its own streams apart
    lease: Lease | None = None  # what its writer must still hold

    @property
    def empty(self) -> bool:
        """Whether nothing but an idempotency outcome would be written."""
        rows = self.puts or self.drops or self.entries
        return not (self.appends or self.claims or self.releases or self.enlistments or self.delistments or rows)

    def add(self, outcome: Outcome, stream_id: UUID, version: Callable[[str, UUID], int], new_id: IdGenerator) -> None:
        """Add the outcome of one stream; `version` returns the last version seen of a stream."""
        if events := [effect for effect in outcome if isinstance(effect, Event)]:
            name = events[0].aggregate.name
            stamped = [(event.own_id or new_id(), event.stamp(stream_id, self.call.now)) for event in events]
            before = [append for append in self.appends if (append.stream_type, append.stream_id) == (name, stream_id)]
            after = before[-1].after + len(before[-1].events) if before else version(name, stream_id)
            self.appends.append(StreamAppend(name, stream_id, after, stamped))
        for effect in outcome:
            match effect:
                case Claim():
                    self.claims.append((effect, stream_id))
                case Release():
                    self.releases.append((effect, stream_id))
                case Enlist():
                    self.enlistments.append((effect, stream_id))
                case Delist():
                    self.delistments.append((effect, stream_id))
                case Put():
                    self.puts.append(effect)
                case Drop():
                    self.drops.append(effect)
                case Enter():
                    self.entries.append(effect)
                case Also(_, other, others):
                    self.add(others, other, version, new_id)


class Session(Protocol):
    """One command's or query's view of the store; under a named lock it is one transaction from lock to append."""

    folds: FoldCache  # of the store, for all of its sessions

    async def load(
        self, stream_type: str, ids: Sequence[UUID], known: Mapping[UUID, int] = NOTHING_KNOWN
    ) -> Sequence[StoredEvent]:
        """Return the events of streams in version order; of one whose state is known, from the known version on. Overwritten
        events and payloads without effect may be left out."""

    async def load_of(self, stream_type: str, ids: Sequence[UUID], event_types: Sequence[str]) -> Sequence[EventRow]:
        """Return the events of these types on streams, of each in version order, with their envelopes."""

    async def load_latest(self, wanted: LatestEvents) -> Sequence[EventRow]:
        """Return the last few events that are wanted of a stream, newest first; of its past, where one is named."""

    async def load_past(
        self, stream_type: str, id: UUID, as_of: datetime | None, as_of_version: int | None
    ) -> Sequence[StoredEvent]:
        """Return the events of a stream up to a version, or up to the highest version that had occurred by a time."""

    async def history(self, stream_type: str, id: UUID, after_version: int, limit: int) -> Sequence[EventRow]: ...
    async def holders(self, kind: str, keys: Sequence[str]) -> dict[str, UUID]: ...
    async def all_holders(self, kind: str) -> tuple[UUID, ...]: ...
    async def members(self, kind: str, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]: ...
    async def all_members(self, kind: str) -> tuple[UUID, ...]: ...
    async def descendants(self, kind: str, id: UUID, max_depth: int) -> tuple[tuple[UUID, ...], ...]: ...
    async def records(self, record: type[R], where: Mapping[str, object]) -> tuple[R, ...]: ...
    async def page(self, summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> Page[Summary]: ...

    async def append(self, batch: Batch) -> int | None:
        """Write a batch and return its highest position; raise ConcurrencyError for a lost race or for facts that changed,
        the claim's rival, or IdempotencyClaimLostError where another request took over the idempotency key it finishes."""


class Store(Protocol):
    """The event store and the rows written with it."""

    def session(self, lock: str | None = None) -> AbstractAsyncContextManager[Session]: ...

    def snapshot(self) -> AbstractAsyncContextManager[Session]:
        """Open a session that only reads, and sees everything as it was at one moment."""

    async def claim_key(self, claim: KeyClaim, stale_before: datetime) -> CommandResult | None:
        """Claim an idempotency key, or return its stored result; raise the two idempotency refusals."""

    async def release_key(self, claim: KeyClaim) -> None:
        """Release a claimed key; one that was taken over or finished stays as it is."""

    async def newer(
        self, stream_type: str, known: Mapping[UUID, int], look_up: tuple[str, str] | None = None
    ) -> Sequence[StoredEvent]:
        """Return the events behind these known versions, and all events of other streams enlisted under a look-up key."""

    async def follow(self, after: Bookmark, limit: int, only: Sequence[str] | None = None) -> Sequence[EventRow]:
        """Return committed events behind a bookmark in commit-safe order; one still in flight is never skipped. With `only`,
        those of these types among so many events; the last one comes in any case, to go on from."""

    async def search(self, query: ListEvents, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        """Return committed events behind a bookmark in the query's order, those of the caller, the request and the asset
        that it asks for; what is still in flight is not among them."""

    async def at_time(self, time: datetime) -> Bookmark | None:
        """Return the place of the first event that was recorded at this time or later; None where there is none."""

    async def event(self, event_id: UUID) -> EventRow | None:
        """Return one event by its id."""

    async def locate(self, position: int) -> Bookmark | None:
        """Return the bookmark of a position, or of the newest visible one before it; None before the first."""

    async def end(self) -> Bookmark:
        """Return the bookmark of the last event that a follower can see; what is still in flight comes behind it."""

    async def last_position(self) -> int:
        """Return the position of the committed event that comes last to followers; 0 where there is none."""

    async def ahead(self, after: Bookmark, only: Sequence[str], limit: int) -> Sequence[UUID]:
        """Return the ids of the next committed events of these types behind a bookmark, in commit-safe order."""

    async def has_passed(self, follower: str, position: int) -> bool:
        """Return whether a follower's bookmark has passed a position."""


@dataclass(frozen=True)
class JudgedPrincipal:
    """Whether a principal may act at all, and the versions of its streams that say so."""

    principal_id: UUID
    objection: str | None = None
    actor_version: int | None = None
    agent_version: int | None = None  # None where nothing was read, as for the service itself

    @property
    def is_agent(self) -> bool:
        return self.agent_version is not None


class Authorizer(Protocol):
    """Judges every call."""

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        """Judge one call and record the verdict."""

    async def permitted_commands(self, caller: Caller) -> frozenset[str]:
        """Return every command the caller may call on its surface without approval; record nothing."""

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        """Return the groups that the token of a caller tells, not those that list it: what it begins continues as theirs."""

    async def access(self, caller: Caller) -> Access:
        """Return what the caller may do on its surface and why; record nothing."""

    async def read_principal_status(self, caller: Caller) -> JudgedPrincipal:
        """Return whether the caller may act at all, by the very latest event; record nothing."""


@dataclass(frozen=True)
class WorkProgress:
    done: float
    total: float | None
    message: str


class LeaseLostError(Exception):
    """Another process leads now, and nothing was written; what was led here ends."""


class EngineUnavailableError(Unavailable):
    """The workflow engine cannot be reached; recorded work continues as soon as it can."""


@dataclass(frozen=True)
class Job:
    """A workflow to be run: its type, an id that only one has at a time, its argument, and how people find it."""

    workflow: str
    id: str
    argument: Any  # the workflow gets no argument where this is None
    attributes: Mapping[str, str] = field(default_factory=dict)  # search attributes
    summary: str | None = None
    succeeds: bool = False  # whether an earlier job may still have the id for a moment
    once: bool = False  # whether none is ever started again under this id, not even after its end
    news: bool = False  # whether one that is open under this id is told that there is news for it
    memo: Mapping[str, str] = field(default_factory=dict)  # notes for people who look at it in the engine


class EngineView(StrEnum):
    ABSENT = "absent"  # none is open under this id
    OPEN = "open"
    STALLED = "stalled"  # it is open, and fails again and again


class Engine(Protocol):
    """The workflow engine: follows the record, never leads it. Everything raises EngineUnavailableError."""

    async def start(self, job: Job) -> bool:
        """Start a workflow; return false where one is open under its id, or ever was and `once` is set. With `news` the open
        one is told instead, and true is returned: one of the two sees everything that is on the record by then."""

    async def view(self, id: str) -> EngineView:
        """Return the state of the workflow under this id."""

    async def terminate(self, id: str, reason: str) -> None:
        """Terminate the workflow under this id, if one is open."""

    async def answer(self, job: Job, returns: type[A], seconds: float) -> A:
        """Run a workflow for so many seconds at most, and return its result, where one comes."""

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        """Return the open workflows of these types that were started for an event, oldest first, up to one page."""


@dataclass(frozen=True)
class WorkItem:
    """One piece of long work, as its readers see it: its owner, its permission and the ids of its answer."""

    principal_id: UUID
    readable_with: str  # the permission with which others may read it too
    ids: Mapping[str, Any]
    correlation_id: UUID | None = None  # that of the request which began it


class StallRecord(Protocol):
    """Where it is recorded that the engine fails with a conduct."""

    async def mark_stalled(self, progress: type[Record], conduct_id: UUID) -> None:
        """Mark a conduct that is live; any other is left alone."""


class VerdictLog(Protocol):
    """Records verdicts, best effort: a failure is logged and never changes a decision."""

    def record(self, caller: Caller, surface_id: UUID, command_name: str, result: AuthzResult) -> None: ...


def lost_race() -> ConcurrencyError:
    """Return the refusal of a write to a record that was changed since it was read."""
    detail = "Somebody else changed this record first; read it again and repeat the request."
    return ConcurrencyError(detail, reason="version_taken")


FACTS_CHANGED = "facts_changed"


def changed_facts() -> ConcurrencyError:
    """Return the refusal of a write whose decision rests on something that has changed since it was read."""
    detail = "What this was judged by changed meanwhile; repeat the request."
    return ConcurrencyError(detail, reason=FACTS_CHANGED)


def still_in_flight() -> IdempotencyClaimLostError:
    """Return the refusal of a repeat that comes while the first request is being worked on."""
    detail = "A request with this idempotency key is still being worked on; repeat it in a second."
    return IdempotencyClaimLostError(detail, reason="in_flight")


def other_request() -> IdempotencyConflictError:
    """Return the refusal of a key that was used for another request."""
    detail = "This idempotency key was used for another request; take a fresh key for a new request."
    return IdempotencyConflictError(detail, reason="other_request")


class Minter(Protocol):
    """Issues identifiers. Everything may be repeated: the same suffix is the same identifier, issued once."""

    @property
    def schemes(self) -> frozenset[ExternalIdScheme]:
        """The schemes of the identifiers it issues."""

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        """Issue the identifier with this suffix, or find the one we issued before; its metadata is then as given. Raise
        ExternalIdMintError, and ExternalIdMintingNotConfiguredError where the metadata name no landing page. One whose
        attribute `drafts` is true is also asked for metadata that are not `findable`, and only reserves the identifier."""

    async def tombstone(self, scheme: ExternalIdScheme, value: str, reason: str) -> None:
        """Remove an identifier from the registry's catalog, once; it keeps its page. Raise ExternalIdMintError."""

    async def aclose(self) -> None:
        """Close every connection."""


class ByteSource(Protocol):
    """Reads the bytes of copies where they are."""

    async def read(self, uri: str) -> ByteReading:
        """Return digest and number of the bytes under a URI, or why they cannot be read; raise nothing on their account."""

    async def aclose(self) -> None:
        """Close every connection."""


class ScanFile(Protocol):
    """A scan file that is open for reading; everything that is wrong with it is an InvalidScanFileError."""

    byte_size: int
    digested_bytes: int  # how far `digest` is

    async def describe(self) -> ScanDescription:
        """Return what the file says of itself; ScanReaderMissingError where nothing here can read it."""

    async def digest(self) -> str:
        """Return the SHA-256 of all bytes as hexadecimal digits."""

    async def refuse_changed(self) -> None:
        """Refuse a file that was written to or replaced since it was opened."""


class ScanFiles(Protocol):
    """The scan files that can be read here."""

    def open(self, uri: str) -> AbstractAsyncContextManager[ScanFile]:
        """Open the file under a URI, or raise InvalidScanFileError."""


class SigningFailedError(Exception):
    """Nothing was signed. The message is one sentence for the caller; it never names the secret reference."""


class SendingFailedError(Exception):
    """Nothing was sent, for certain; any other failure leaves open whether it was, and is tried again."""


class Signer(Protocol):
    """Signs with keys that it alone can reach."""

    async def sign(self, secret_ref: str, content: bytes) -> Signature:
        """Return a signature over these bytes by the key that the reference points to; raise SigningFailedError."""


class Publisher(Protocol):
    """Sends artifacts to peers, each receipt once."""

    async def is_sent(self, receipt_id: UUID) -> bool:
        """Return whether the artifact of this receipt was sent already."""

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        """Send an artifact; a receipt that was sent already is recognised. Raise SendingFailedError."""


class PeerClient(Protocol):
    """Fetches what peers published."""

    async def fetch(self, facility_code: str, receipt_id: UUID, content_hash: str, uri: str | None = None) -> bytes:
        """Return an artifact whose canonical bytes have this SHA-256; raise ArtifactFetchError for any other."""


class People(Protocol):
    """The people with a profile, whose names are kept from language models."""

    async def book(self) -> NameBook:
        """Return the present names of people; the same book until a profile changes."""


class Spending(Protocol):
    """Sums of the model calls that agents have recorded themselves."""

    async def of(self, agent_id: UUID, at: datetime) -> SpentAmounts:
        """Return what an agent has spent in the calendar month and on the calendar day of this time, in UTC."""


class LogbookMirror(Protocol):
    """Copies narratives out once their decisions are committed; it retries and logs by itself and never raises."""

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> bool:
        """Copy the narrative of a decision, unchanged and once, to a logbook of the outside system; return whether it is
        there."""


class CatalogueRefusedError(Exception):
    """A catalogue does not take a dataset as it is; the message says why, and what mends it."""


class CatalogueUnavailableError(Unavailable):
    """A catalogue gives no answer now, and is told again; with the reason `failed` it may still take other datasets. The
    detail names nothing of the dataset."""


class Catalogue(Protocol):
    """A catalogue outside. Everything may be repeated: a dataset is shown once, however often it is entered."""

    name: CatalogueName

    async def enter(self, shown: CataloguedDataset) -> bool:
        """Have the catalogue show a dataset as it is; return false where it has nothing to show of it. Raise
        CatalogueRefusedError or CatalogueUnavailableError."""

    async def aclose(self) -> None:
        """Close every connection."""


class CalendarRefusedError(Exception):
    """The engine refuses a calendar; no request fails by it, so people read of it in the log."""


@dataclass(frozen=True)
class CalendarEntry:
    """A workflow to be started on a calendar, with everything the engine is to know of it."""

    id: str
    workflow: str
    calendar: Calendar
    argument: Any = None  # the workflow's argument; none where this is None
    time_zone: str = "UTC"
    overlap: Overlap = Overlap.SKIP
    catchup_window: int = 60  # seconds for which a missed firing is made up for
    jitter: int = 0
    paused: bool = False
    note: str = ""
    lifts: frozenset[str] = field(default=frozenset(), compare=False)
    """Notes of the pauses that end where this is not paused; one with any other note is a person's, and stays."""
    attributes: Mapping[str, str] = field(default_factory=dict)  # search attributes of what is started
    summary: str | None = None

    @property
    def workflow_id(self) -> str:
        """Return the prefix of the started workflows' ids; the engine adds the time."""
        return f"{self.workflow}:{self.id.partition(':')[2] or self.id}"

    def over(self, paused: bool, note: str) -> "CalendarEntry":
        """Return the entry as it replaces an existing one: with a pause that is not ours to end."""
        return replace(self, paused=True, note=note) if paused and not self.paused and note not in self.lifts else self


@dataclass(frozen=True)
class CalendarView:
    as_defined: bool  # whether it is as it would be put, apart from a pause
    paused: bool
    note: str  # the note of the last pause or unpause
    missed_count: int  # firings dropped because they were missed for too long, since the entry was made
    skipped_count: int  # firings skipped because an earlier one still went on
    next_times: tuple[datetime, ...]


class Calendars(Protocol):
    """The calendars of the workflow engine. Everything raises EngineUnavailableError."""

    async def put(self, entry: CalendarEntry) -> None:
        """Put exactly this entry into the engine, apart from a person's pause; raise CalendarRefusedError."""

    async def view(self, entry: CalendarEntry) -> CalendarView | None:
        """Return the state of an entry; None where the engine has none under its id."""

    async def remove(self, id: str) -> None:
        """Remove the entry under this id; work that it has started continues."""

    async def list_ids(self, prefix: str) -> Sequence[str]:
        """Return the ids of all entries that begin like this; one that was just put may be missing."""
