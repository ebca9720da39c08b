"""A run: one execution of a plan, made to leave a dataset of record. Its assets are those of the plan."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, assert_never
from uuid import UUID

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.kernel import Aggregate, Event, IdSet, State, Value, Verb, changed
from baton.domain.operation.conduct.actuation import ActuationKind, merged_kind
from baton.domain.operation.conduct.results import ConductEnded, RunConductResult
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.logbooks import LogbookOpened
from baton.domain.shared.text import FreeText, MayContainPersonalData, TextsMayContainPersonalData


class RunStatus(StrEnum):
    RUNNING = "Running"
    HELD = "Held"
    COMPLETED = "Completed"  # Done as intended.
    STOPPED = "Stopped"  # Ended early by choice; the data up to there is good.
    ABORTED = "Aborted"  # Ended in an emergency; the data is suspect.
    TRUNCATED = "Truncated"  # Died by itself, and the books were closed later.


RUNNING, HELD, COMPLETED, STOPPED, ABORTED, TRUNCATED = RunStatus
LIVE = (RUNNING, HELD)

Parameters = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Run(State):
    """A run is one execution of a plan, whose reason to exist is to leave a dataset of record."""

    name: FreeText
    plan_id: UUID
    subject_id: UUID | None
    raid: str | None
    status: RunStatus = RUNNING
    override_parameters: Parameters
    effective_parameters: Parameters
    parameters_schema_revision: int  # The revision of the method's schema that the effective parameters were written under.
    pinned_calibration_ids: IdSet
    external_refs: dict[str, str]
    trigger_source: FreeText | None
    campaign_id: UUID | None
    hold_count: int = 0
    last_held_at: datetime | None = None
    last_hold_reason: FreeText | None = None
    adjustment_count: int = 0
    last_adjusted_at: datetime | None = None
    last_adjusted_by: UUID | None = None
    observation_logbook_id: UUID | None = None
    narrative_logbook_id: UUID | None = None
    live_conduct_id: UUID | None = None
    actuation_kind: ActuationKind | None = None
    running_since: datetime
    updated_at: datetime

    @property
    def override_parameters_present(self) -> bool:
        return bool(self.override_parameters)


run = Aggregate(Run, "/runs", context="run")


class RunStarted(Event, of=run):
    """The run passed every gate and began, under these parameters and past these cautions."""

    name: FreeText
    plan_id: UUID
    subject_id: UUID | None
    raid: str | None
    override_parameters: Parameters
    effective_parameters: Parameters
    parameters_schema_revision: int
    pinned_calibration_ids: IdSet
    trigger_source: FreeText | None
    external_refs: dict[str, str]
    acknowledged_cautions: Annotated[tuple[AcknowledgedCaution, ...], MayContainPersonalData()]
    campaign_id: UUID | None
    decided_by_decision_id: UUID | None


class ListedPhase(Value):
    """A procedure that the run is to conduct, with the command that opens it and that command's own fields."""

    procedure_id: UUID
    conduct: Annotated[dict[str, Any], TextsMayContainPersonalData(codes=frozenset({"command", "kind", "substrate"}))]


class RunConductStarted(Event, of=run):
    """A conduct of these phases was opened."""

    conduct_id: UUID
    phases: tuple[ListedPhase, ...]


class RunHeld(Event, of=run):
    """The run was paused."""

    reason: FreeText | None
    decided_by_decision_id: UUID | None


class RunResumed(Event, of=run):
    """The run passed the gates of resuming and went on."""

    decided_by_decision_id: UUID | None


class RunAdjusted(Event, of=run):
    """Parameters of the run were changed; those in `effective_parameters` govern it from then on."""

    parameters_patch: Parameters
    effective_parameters: Parameters
    parameters_schema_revision: int
    reason: FreeText
    adjusted_by: UUID
    decided_by_decision_id: UUID | None


class RunAddedToCampaign(Event, of=run):
    """The run joined a campaign."""

    campaign_id: UUID


class RunRemovedFromCampaign(Event, of=run):
    """The run was taken out of its campaign."""

    campaign_id: UUID
    reason: FreeText


class RunObservationLogbookOpened(LogbookOpened, of=run):
    """The logbook of the run's readings was opened."""


class RunNarrativeLogbookOpened(LogbookOpened, of=run):
    """The logbook of what people and agents write about the run was opened."""


class RunConducted(ConductEnded, of=run):
    """A conduct of the run came to its end, and this came of it."""

    result: RunConductResult


class RunCompleted(Event, of=run):
    """The run was done as intended."""

    actuation_kind: ActuationKind | None


class RunStopped(Event, of=run):
    """The run was ended early by choice; what it measured so far is good."""

    reason: FreeText
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None


class RunAborted(Event, of=run):
    """The run was ended in an emergency; what it measured is suspect."""

    reason: FreeText
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None


class RunTruncated(Event, of=run):
    """The books were closed on a run that had died by itself."""

    reason: FreeText
    interrupted_at: datetime | None
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None


RunEvent = (
    RunConductStarted
    | RunHeld
    | RunResumed
    | RunAdjusted
    | RunAddedToCampaign
    | RunRemovedFromCampaign
    | RunObservationLogbookOpened
    | RunNarrativeLogbookOpened
    | RunConducted
    | RunCompleted
    | RunStopped
    | RunAborted
    | RunTruncated
)


@run.begin
def begin(event: RunStarted) -> Run:
    known = {name: value for name, value in event if name not in ("acknowledged_cautions", "decided_by_decision_id")}
    at = event.occurred_at
    return Run(id=event.stream_id, created_at=at, running_since=at, updated_at=at, **known)


@run.evolve
def evolve(run: Run, event: RunEvent) -> Run:
    match event:
        case RunConductStarted():
            run = changed(run, live_conduct_id=event.conduct_id)
        case RunHeld():
            count = run.hold_count + 1
            run = changed(run, status=HELD, hold_count=count, last_held_at=event.occurred_at, last_hold_reason=event.reason)
        case RunResumed():
            run = changed(run, status=RUNNING, running_since=event.occurred_at)
        case RunAdjusted():
            run = changed(
                run,
                effective_parameters=event.effective_parameters,
                parameters_schema_revision=event.parameters_schema_revision,
                adjustment_count=run.adjustment_count + 1,
                last_adjusted_at=event.occurred_at,
                last_adjusted_by=event.adjusted_by,
            )
        case RunAddedToCampaign():
            run = changed(run, campaign_id=event.campaign_id)
        case RunRemovedFromCampaign():
            run = changed(run, campaign_id=None)
        case RunObservationLogbookOpened():
            return changed(run, observation_logbook_id=event.logbook_id)
        case RunNarrativeLogbookOpened():
            return changed(run, narrative_logbook_id=event.logbook_id)
        case RunConducted():
            kind = merged_kind((run.actuation_kind, event.result.actuation_kind))
            live = None if event.conduct_id == run.live_conduct_id else run.live_conduct_id
            run = changed(run, live_conduct_id=live, actuation_kind=kind)
        case RunCompleted() | RunStopped() | RunAborted() | RunTruncated():
            kind = merged_kind((run.actuation_kind, event.actuation_kind))
            run = changed(run, status=ENDINGS[type(event)], actuation_kind=kind)
        case _:
            assert_never(event)
    return changed(run, updated_at=event.occurred_at)


ENDINGS: dict[type[Event], RunStatus] = {
    RunCompleted: COMPLETED,
    RunStopped: STOPPED,
    RunAborted: ABORTED,
    RunTruncated: TRUNCATED,
}


@run.command(post="/{run_id}/hold", allowed=[RUNNING], records=RunHeld, attempts=3, essential=True)
class HoldRun(Verb[Run]):
    """Pause the run; it goes on only when somebody resumes it."""

    reason: Annotated[str, run.text("hold_reason", 500, label="reason", personal=True)] | None = None
    decided_by_decision_id: UUID | None = None


run.get(
    hidden=(
        *("created_at", "parameters_schema_revision", "hold_count", "last_held_at", "last_hold_reason"),
        *("running_since", "updated_at"),
    )
)

RunSummary = Summary.from_state(
    run,
    "name plan_id subject_id raid status campaign_id pinned_calibration_ids override_parameters_present adjustment_count "
    "last_adjusted_by created_at running_since updated_at",
)


@run.listing(RunSummary, essential=True)
class ListRuns(ListQuery):
    """Runs in the order they were started."""

    status: RunStatus | None = None
    plan_id: UUID | None = None
    subject_id: UUID | None = None
    campaign_id: UUID | None = None
