"""What is known of a run that happens elsewhere, which Baton records and does not conduct: a Bluesky run."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import IdSet, Value
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.text import MayContainPersonalData
from baton.domain.shared.writes import Record

BLUESKY_RUNS = "bluesky-run"  # Claim kind: the run that records the Bluesky run with this uid.
WITNESSED_ASSETS = "witnessed-asset"  # Look-up kind: the live witnessed runs whose devices belong to an asset.
PAST_GATE = "witnessed-past-gate"  # Look-up kind: the witnessed runs past a closed gate that nobody has written a note on.
STILL_HEARD = timedelta(seconds=60)  # Word from a witness that is younger keeps others from closing the books.
CLAIMS = timedelta(seconds=30)  # Word that is younger keeps conducts from the assets of its devices.
LATE = timedelta(seconds=60)  # A run that began earlier is recorded too late to judge the gates.

Count = Annotated[int, Field(ge=0, le=2**53)]


class WitnessChange(StrEnum):
    DESCRIBED = "described"  # The devices of one of its streams became known.
    PAUSED = "paused"
    RESUMED = "resumed"
    HEARD = "heard"  # Nothing but a sign of life.
    ENDED = "ended"


class ExitStatus(StrEnum):
    SUCCESS = "success"
    ABORT = "abort"
    FAIL = "fail"


class EndEvidence(StrEnum):
    """What the end of a witnessed run rests on."""

    EXIT_STATUS = "exit_status"
    STOPPING = "stopping"  # The RunEngine was told to stop, which it reports as a success.
    MISSING_EVENTS = "missing_events"  # Fewer events came than were announced.


class StreamCount(Value):
    """The events of a stream, by the stop document and as they came."""

    announced: Count | None = None
    """Number of events that the stop document tells of."""
    recorded: Count
    """Number of events that the witness saw."""


Streams = Annotated[dict[str, StreamCount], Field(max_length=200)]


class WitnessedEnd(Value):
    """How a witnessed run ended, by its stop document and by what the witness counted."""

    exit_status: ExitStatus
    """What the stop document says; a stopped run says `success` too."""
    reason: Annotated[str | None, Field(max_length=500), MayContainPersonalData(part_of_state=True)] = None
    """The reason in the stop document."""
    stopped: bool = False
    """Whether the RunEngine was seen to be told to stop."""
    num_points: Count | None = None
    """Number of events that the start document announces."""
    streams: Streams = {}
    """The events of each stream."""
    thinned: Count = 0
    """Number of readings left out to record at most ten a second of a channel."""
    dropped: Count = 0
    """Number of documents that the witness could not keep."""
    left_out: Count = 0
    """Number of values that are no finite numbers."""
    simulated_sources: bool = False
    """Whether a device has an address of a simulation, such as `soft://`."""

    @property
    def evidence(self) -> EndEvidence:
        """What the end rests on."""
        if self.exit_status is ExitStatus.SUCCESS:
            if self.stopped:
                return EndEvidence.STOPPING
            if self.num_points is not None and self.came < self.num_points:
                return EndEvidence.MISSING_EVENTS
        return EndEvidence.EXIT_STATUS

    @property
    def came(self) -> int:
        """Number of events of the primary stream, which `num_points` counts."""
        primary = self.streams.get("primary")
        return 0 if primary is None else primary.recorded


class Witness(Value):
    """What is known of a run that happens elsewhere: which one it is, who witnesses it, and what it allows."""

    document_uid: str
    plan_name: str | None
    """The name of the Bluesky plan."""
    began_at: datetime
    """When the run began, by the clock of its RunEngine."""
    holdable: bool
    """Whether the run waits at its next checkpoint while it is Held."""
    simulated: bool | None
    """Whether it is done on simulated equipment; null where nobody says."""
    late: bool
    """Whether it was recorded too late to judge its gates."""
    witnessed_by: UUID
    """The account that witnesses it."""
    asset_ids: IdSet = frozenset()
    """The assets whose devices it uses, as far as their addresses have owners."""
    paused_since: datetime | None = None
    """Since when its RunEngine is paused; null where it is not."""


class Standing(Value):
    """How a witness is doing: what it could not deliver yet, and what it never will."""

    lag_seconds: Annotated[float, Field(ge=0, le=1e9), Seconds] = 0
    """Seconds between the oldest document that is not delivered and now."""
    refused: Count = 0
    """Number of documents that the service refused."""
    dropped: Count = 0
    """Number of documents that the witness could not keep."""
    events: Annotated[dict[str, Count], Field(max_length=200)] = {}
    """Number of events seen so far, by stream."""

    @classmethod
    def of(cls, contact: "WitnessContact") -> Self:
        """Return how a witness was doing when it last gave word."""
        return cls.model_construct(**{name: getattr(contact, name) for name in cls.model_fields})


@dataclass(frozen=True)
class WitnessContact(Record):
    """When a witness last gave word of a run, how it was doing, and what it saw of the run."""

    relation: ClassVar[str] = "run_witness_contacts"
    key: ClassVar[tuple[str, ...]] = ("run_id",)
    run_id: UUID
    heard_at: datetime
    lag_seconds: float
    refused: int
    dropped: int
    events: dict[str, Any]
    submission_key: UUID | None = None  # The key of the plan step that the run belongs to.
    document_uid: str | None = None
    num_points: int | None = None  # The number of events that the start document announces.
    last_document: str | None = None
    last_document_at: datetime | None = None
    exit_status: str | None = None  # What the stop document says.
    witness_id: UUID | None = None  # The account that gave the word.
