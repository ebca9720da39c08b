"""How far the conduct of a run is, for whoever looks: one row for each run, overwritten as the conduct goes on."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AliasChoices, ConfigDict, Field

from baton.domain.kernel import Value
from baton.domain.operation.conduct.progress import Submission
from baton.domain.shared.writes import Record


class RunWaitingFor(StrEnum):
    RUN = "run"
    """The run is held."""
    PHASE = "phase"
    """The phase is held or halted, and somebody must bring it to an end."""
    GATE = "gate"
    """The phase may not start; the run is held until somebody resumes it."""


class Waiting(Value):
    """What the conduct of a run waits for, and why."""

    model_config = ConfigDict(serialize_by_alias=True)

    for_: Annotated[RunWaitingFor, Field(validation_alias=AliasChoices("for", "for_"), serialization_alias="for")]
    procedure_id: UUID | None = None
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class OpenedRunConduct(Submission):
    """A conduct of a run as it was opened, and how many phases it has."""

    relation: ClassVar[str] = "run_conducts"
    command_name: ClassVar[str] = "ConductRun"
    run_id: UUID
    phase_count: int


@dataclass(frozen=True)
class RunConductProgress(Record):
    """Where the latest conduct of a run stands."""

    relation: ClassVar[str] = "run_conduct_progress"
    key: ClassVar[tuple[str, ...]] = ("run_id",)
    run_id: UUID
    conduct_id: UUID
    phase: str
    """Where it stands in the life of conducts; the phases of the run are something else."""
    phase_index: int | None
    waiting: dict[str, Any] | None
    started_at: datetime
    heartbeat_at: datetime | None
    stalled_at: datetime | None = None
    """When the engine was last seen to fail with it again and again; a later sign of life takes that back."""
