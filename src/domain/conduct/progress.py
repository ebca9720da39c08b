"""The progress of conducts: one row for each procedure or run, overwritten as its conduct continues.
These rows are no record: what was done is in the ledger, and the result is on the stream."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AliasChoices, ConfigDict, Field

from baton.domain.kernel import Call, Value
from baton.domain.shared.writes import Record

HOLD_ASKED = "conduct-hold"
"""Look-up kind: a live conduct that is to be held. Its ledger reads this before every row of the main list."""
ABORT_ASKED = "conduct-abort"  # Look-up kind: a live conduct that is to be aborted.
LOST_CONDUCTS = "conduct-lost"  # Look-up kind: the procedures whose conduct the engine lost, until somebody acts on it.
CLOSING_FAILED = "conduct-closing-failed"
"""Look-up kind: the procedures with a closing step that failed, until somebody says that they have looked at it."""


class ConductPhase(StrEnum):
    OPENED = "Opened"  # On the record; no worker has taken it up.
    WALKING = "Walking"
    WAITING = "Waiting"
    CLOSING = "Closing"
    ENDED = "Ended"
    STALLED = "Stalled"  # The engine cannot make progress with it, and says so.


class WaitingFor(StrEnum):
    RUN = "run"
    ADVICE = "advice"


class RunWaitingFor(StrEnum):
    RUN = "run"  # The run is held.
    PHASE = "phase"  # The phase is held or halted, and somebody must bring it to an end.
    GATE = "gate"  # The phase may not start; the run is held until somebody resumes it.


class RunWait(Value):
    """What the conduct of a run waits for, and why."""

    model_config = ConfigDict(serialize_by_alias=True)

    for_: Annotated[RunWaitingFor, Field(validation_alias=AliasChoices("for", "for_"), serialization_alias="for")]
    procedure_id: UUID | None = None
    code: str | None = None
    """The class name of the refusal."""
    detail: str | None = None


@dataclass(frozen=True)
class Submission(Record):
    """A conduct as it was opened, and its submitter."""

    key: ClassVar[tuple[str, ...]] = ("conduct_id",)
    conduct_id: UUID
    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    proven_group_ids: list[UUID] = field(default_factory=list, kw_only=True)  # The groups that its submitter's token told.

    def submission(self) -> dict[str, Any]:
        """Return the ids of the conduct and of its submitter."""
        return {one.name: getattr(self, one.name) for one in fields(Submission)}


def submission_fields(call: Call) -> dict[str, Any]:
    """Return the ids of the conduct that a call opens, and of its submitter."""
    submitter = {name: getattr(call, name) for name in ("principal_id", "surface_id", "conduit_id", "correlation_id")}
    return {"conduct_id": call.new_id, **submitter, "proven_group_ids": sorted(call.proven_group_ids)}


@dataclass(frozen=True)
class OpenedConduct(Submission):
    """A conduct of a procedure as it was opened: how, and how much there is to do."""

    relation: ClassVar[str] = "conducts"
    procedure_id: UUID
    command_name: str
    step_count: int
    closing_count: int
    takeover_count: int = 0  # How often work on it was attempted again, because its worker was lost or failed.


@dataclass(frozen=True)
class OpenedRunConduct(Submission):
    """A conduct of a run as it was opened, and its number of phases."""

    relation: ClassVar[str] = "run_conducts"
    command_name: ClassVar[str] = "ConductRun"
    run_id: UUID
    phase_count: int


@dataclass(frozen=True, kw_only=True)
class Progress(Record):
    """The position of a conduct and its heartbeat, overwritten as it continues."""

    conduct_id: UUID
    phase: str = ConductPhase.OPENED.value  # The phase in the life of a conduct; the phases of a run are something else.
    started_at: datetime
    heartbeat_at: datetime | None = None
    stalled_at: datetime | None = None  # When the engine was last seen to fail repeatedly; a later heartbeat overrides that.


@dataclass(frozen=True, kw_only=True)
class ConductProgress(Progress):
    """The progress of the latest conduct of a procedure."""

    relation: ClassVar[str] = "conduct_progress"
    key: ClassVar[tuple[str, ...]] = ("procedure_id",)
    procedure_id: UUID
    command_name: str
    waiting_for: str | None = None
    waiting_until: datetime | None = None
    step_index: int | None = None
    iteration_index: int | None = None
    active_at: datetime
    """When the conduct was opened, wrote its last ledger row or stopped waiting: what the restart limit counts from."""
    plan_step: dict[str, Any] | None = None  # What was last heard of a Bluesky plan that one of its steps has carried out.

    @property
    def shown_phase(self) -> ConductPhase:
        """The phase as it is shown: Stalled where the engine fails with it."""
        stalled = self.stalled_at is not None and self.stalled_at > (self.heartbeat_at or self.started_at)
        return ConductPhase.STALLED if stalled and self.phase != ConductPhase.ENDED else ConductPhase(self.phase)


@dataclass(frozen=True, kw_only=True)
class RunConductProgress(Progress):
    """The progress of the latest conduct of a run."""

    relation: ClassVar[str] = "run_conduct_progress"
    key: ClassVar[tuple[str, ...]] = ("run_id",)
    run_id: UUID
    phase_index: int | None = None
    waiting: dict[str, Any] | None = None


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
    content: dict[str, Any]  # `{"value": number}` for a capture, `{"artifact": {...}}` for an output.
    recorded_at: datetime
