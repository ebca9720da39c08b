"""How far a conduct is, for whoever looks: one row for each procedure, overwritten as the conduct goes on.

It is no record of anything: what was done is in the ledger, and what came of it on the stream.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from baton.domain.kernel import Call
from baton.domain.shared.writes import Record

HOLD_ASKED = "conduct-hold"
"""Look-up kind: a live conduct that is to be held. Its ledger reads this before every row of the main list."""
ABORT_ASKED = "conduct-abort"
"""Look-up kind: a live conduct that is to be aborted."""


class ConductPhase(StrEnum):
    OPENED = "Opened"
    """On the record; no worker has taken it up."""
    WALKING = "Walking"
    WAITING = "Waiting"
    CLOSING = "Closing"
    ENDED = "Ended"
    STALLED = "Stalled"
    """The engine cannot make progress with it, and says so."""


class WaitingFor(StrEnum):
    RUN = "run"
    ADVICE = "advice"


@dataclass(frozen=True)
class Submission(Record):
    """A conduct as it was opened, and on whose behalf."""

    key: ClassVar[tuple[str, ...]] = ("conduct_id",)
    conduct_id: UUID
    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID

    def submitted(self) -> dict[str, Any]:
        """Which conduct it is and on whose behalf, for whoever is told of it."""
        return {field.name: getattr(self, field.name) for field in fields(Submission)}


def submitted_by(call: Call) -> dict[str, Any]:
    """The conduct that a call opens, and on whose behalf."""
    return {
        "conduct_id": call.new_id,
        "principal_id": call.principal_id,
        "surface_id": call.surface_id,
        "conduit_id": call.conduit_id,
        "correlation_id": call.correlation_id,
    }


@dataclass(frozen=True)
class OpenedConduct(Submission):
    """A conduct of a procedure as it was opened: how, and how much there is to do."""

    relation: ClassVar[str] = "conducts"
    procedure_id: UUID
    command_name: str
    step_count: int
    closing_count: int


@dataclass(frozen=True)
class ConductProgress(Record):
    """Where the latest conduct of a procedure stands."""

    relation: ClassVar[str] = "conduct_progress"
    key: ClassVar[tuple[str, ...]] = ("procedure_id",)
    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    phase: str
    waiting_for: str | None
    waiting_until: datetime | None
    step_index: int | None
    iteration_index: int | None
    started_at: datetime
    heartbeat_at: datetime | None
    active_at: datetime
    """When the conduct was opened, wrote its last ledger row or stopped waiting: what the restart limit counts from."""
    stalled_at: datetime | None = None
    """When the engine was last seen to fail with it again and again; a later sign of life takes that back."""

    @property
    def standing(self) -> ConductPhase:
        """Where it stands for whoever looks."""
        stalled = self.stalled_at is not None and self.stalled_at > (self.heartbeat_at or self.started_at)
        return ConductPhase.STALLED if stalled and self.phase != ConductPhase.ENDED else ConductPhase(self.phase)


@dataclass(frozen=True)
class FilledSlot(Record):
    """A capture or output that a conduct's ledger holds; the relation is a view of the ledger."""

    relation: ClassVar[str] = "conduct_slots"
    key: ClassVar[tuple[str, ...]] = ("entry_id",)
    entry_id: UUID
    procedure_id: UUID
    conduct_id: UUID
    iteration_index: int
    closing: bool
    step_index: int
    slot: str
    content: dict[str, Any]
    """`{"value": number}` for a capture, `{"artifact": {...}}` for an output."""
    recorded_at: datetime
