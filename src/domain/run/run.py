"""A run: one execution of a plan, made to leave a dataset of record, with the assets of the plan; and how it ends."""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind, Appearance, appearance, names_of
from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.decision.decision import Decision
from baton.domain.kernel import Aggregate, Call, Command, Event, IdSet, JudgedVerb, Outcome, State, Value, Verb, copy_with
from baton.domain.launch.launch import Launch, launch_end
from baton.domain.procedure.procedure import PHASES, Procedure, ProcedureStatus, aborted_by
from baton.domain.recipe.conduct_options import CONDUCT_CODES
from baton.domain.registry import Internal
from baton.domain.run.witness import STILL_HEARD, WITNESSED_ASSETS, Witness, WitnessChange, WitnessContact, WitnessedEnd
from baton.domain.shared.gates import GateVerdict
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.logbooks import LogbookOpened
from baton.domain.shared.reads import (
    Reads,
    events_of_all,
    find,
    find_all,
    latest_events,
    members_of,
    record_of,
    require_if_given,
)
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import (
    FreeText,
    MayContainPersonalData,
    StateReason,
    TextsMayContainPersonalData,
    refuse_blank_text,
)
from baton.domain.shared.times import Instant, check_told_time
from baton.domain.shared.writes import Delist, Enlist
from baton.domain.step.results import CONDUCT_LOST, ActuationKind, ConductEnded, RunConductResult, merged_kind


class RunStatus(StrEnum):
    RUNNING = "Running"
    HELD = "Held"
    COMPLETED = "Completed"  # Done as intended.
    STOPPED = "Stopped"  # Ended early by choice; the data up to there is good.
    ABORTED = "Aborted"  # Ended in an emergency; the data is suspect.
    TRUNCATED = "Truncated"  # Died by itself, and the books were closed later.


RUNNING, HELD, COMPLETED, STOPPED, ABORTED, TRUNCATED = RunStatus
LIVE = (RUNNING, HELD)
LIVE_RUNS = "run-live"  # Look-up kind: the runs that have not ended, by plan.
FAILED_RUNS = "run-failed"  # Look-up kind: the runs that failed by themselves, until somebody wrote a note or looked.
GIVEN_UP = (ProcedureStatus.ABORTED, ProcedureStatus.TRUNCATED)  # The ends of a phase that end its run's conduct.

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
    launch_id: UUID | None = None  # The launch that started it.
    hold_count: int = 0
    last_held_at: datetime | None = None
    last_hold_reason: FreeText | None = None
    """Why it was held last; null where nobody said, or it never was."""
    end_reason: FreeText | None = None  # Why it was stopped, aborted or truncated.
    """Why it was stopped, aborted or truncated; null for other runs."""
    ended_at: datetime | None = None
    adjustment_count: int = 0
    """Number of times that the parameters were adjusted."""
    last_adjusted_at: datetime | None = None
    """When the parameters were last adjusted."""
    last_adjusted_by: UUID | None = None
    """The actor who last adjusted the parameters."""
    observation_logbook_id: UUID | None = None
    """The logbook of readings."""
    narrative_logbook_id: UUID | None = None
    """The logbook of notes and debriefs."""
    live_conduct_id: UUID | None = None
    lost: bool = False  # Whether the engine lost its latest conduct, so that nobody conducts it.
    actuation_kind: ActuationKind | None = None
    witness: Witness | None = None
    """What is known of a run that happens elsewhere and is recorded here; null for one of the service's own."""
    running_since: datetime
    """When it was started, or resumed last."""
    updated_at: datetime

    @property
    def witnessed(self) -> bool:
        """Whether it happens elsewhere, and is only recorded here."""
        return self.witness is not None

    @property
    def used_asset_ids(self) -> IdSet:
        """The assets whose devices it uses elsewhere."""
        return frozenset() if self.witness is None else self.witness.asset_ids

    @property
    def override_parameters_present(self) -> bool:
        return bool(self.override_parameters)


run = Aggregate(Run, "/runs", context="run")


class RunStarted(Event, of=run, version=2, upcasters={1: dict}):
    """The run passed every gate and began, under these parameters and past these cautions; since version 2 with its
    launch."""

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
    launch_id: UUID | None = None


class RunWitnessed(Event, of=run, version=2, upcasters={1: dict}):
    """A run that happens elsewhere is recorded, with the verdicts of the gates, which none of them could enforce."""

    name: FreeText
    plan_id: UUID
    subject_id: UUID | None
    document_uid: str
    plan_name: str | None
    began_at: datetime
    holdable: bool
    simulated: bool | None
    late: bool
    override_parameters: Parameters
    effective_parameters: Parameters
    parameters_schema_revision: int
    external_refs: dict[str, str]
    metadata: Annotated[dict[str, Any], TextsMayContainPersonalData()]
    acknowledged_cautions: Annotated[tuple[AcknowledgedCaution, ...], MayContainPersonalData()]
    gates: Annotated[tuple[GateVerdict, ...] | None, MayContainPersonalData()]
    override_reason: Annotated[str | None, MayContainPersonalData()]
    witnessed_by: UUID


class RunWitnessChanged(Event, of=run):
    """The witness of a run told that its devices became known, that it was paused or resumed, or how it ended."""

    change: WitnessChange
    at: datetime
    sources: tuple[str, ...] = ()
    asset_ids: IdSet = frozenset()
    end: WitnessedEnd | None = None


class ListedPhase(Value):
    """A procedure that the run is to conduct, with the command that opens it and that command's own fields."""

    procedure_id: UUID
    conduct: Annotated[dict[str, Any], TextsMayContainPersonalData(codes=CONDUCT_CODES)]


class RunConductStarted(Event, of=run):
    """A conduct of these phases was opened."""

    conduct_id: UUID
    phases: tuple[ListedPhase, ...]


class RunLaunched(Event, of=run):
    """The run, which an earlier release had started, continued as a part of this launch."""

    launch_id: UUID


class RunHeld(Event, of=run):
    """The run was paused."""

    reason: StateReason | None
    decided_by_decision_id: UUID | None


class RunResumed(Event, of=run):
    """The run passed the gates of resuming and continued."""

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


class RunConducted(ConductEnded, of=run, version=4, upcasters={1: dict, 2: dict, 3: dict}):
    """A conduct of the run came to its end, and this came of it; since version 2 with the facts of failures, since version 3
    with the captures of its phases, since version 4 with what their passes measured."""

    result: RunConductResult


class RunCompleted(Event, of=run):
    """The run was done as intended."""

    actuation_kind: ActuationKind | None


class RunStopped(Event, of=run):
    """The run was ended early by choice; what it measured so far is good."""

    reason: StateReason
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None


class RunAborted(Event, of=run):
    """The run was ended in an emergency; what it measured is suspect."""

    reason: StateReason
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None


class RunTruncated(Event, of=run):
    """The books were closed on a run that had died by itself."""

    reason: StateReason
    interrupted_at: datetime | None
    decided_by_decision_id: UUID | None
    actuation_kind: ActuationKind | None


class RunAcknowledged(Event, of=run, inert=True):
    """Somebody has looked at how the run ended."""

    acknowledged_by: UUID


RunEnded = RunCompleted | RunStopped | RunAborted | RunTruncated
RunConductEvent = RunLaunched | RunConductStarted | RunConducted
RunCampaignEvent = RunAddedToCampaign | RunRemovedFromCampaign
RunLogbookOpened = RunObservationLogbookOpened | RunNarrativeLogbookOpened
RunBegun = RunStarted | RunWitnessed
BEGINNINGS: tuple[type[RunBegun], ...] = (RunStarted, RunWitnessed)
RunEvent = (
    RunHeld | RunResumed | RunAdjusted | RunWitnessChanged | RunConductEvent | RunCampaignEvent | RunLogbookOpened | RunEnded
)
ENDINGS: dict[type[Event], RunStatus] = {
    RunCompleted: COMPLETED,
    RunStopped: STOPPED,
    RunAborted: ABORTED,
    RunTruncated: TRUNCATED,
}


STATE_FIELDS = frozenset(field.name for field in fields(Run))


@run.begin
def begin(event: RunBegun) -> Run:
    at = event.occurred_at
    known: dict[str, Any] = {name: value for name, value in event if name in STATE_FIELDS}
    if isinstance(event, RunWitnessed):
        told = {name: value for name, value in event if name in Witness.model_fields}
        unsaid = dict.fromkeys(("raid", "trigger_source", "campaign_id"))
        known = {**unsaid, **known, "pinned_calibration_ids": frozenset(), "witness": Witness.model_construct(**told)}
    return Run(**{**known, "id": event.stream_id, "created_at": at, "running_since": at, "updated_at": at})


@run.evolve
def evolve(run: Run, event: RunEvent) -> Run:
    match event:
        case RunLaunched():
            run = copy_with(run, launch_id=event.launch_id)
        case RunConductStarted():
            run = copy_with(run, live_conduct_id=event.conduct_id, lost=False)
        case RunHeld():
            count = run.hold_count + 1
            run = copy_with(
                run, status=HELD, hold_count=count, last_held_at=event.occurred_at, last_hold_reason=event.reason
            )
        case RunResumed():
            run = copy_with(run, status=RUNNING, running_since=event.occurred_at)
        case RunWitnessChanged():
            run = copy_with(run, witness=witness_after(run.witness, event))
        case RunAdjusted():
            parameters, revision = event.effective_parameters, event.parameters_schema_revision
            run = copy_with(run, effective_parameters=parameters, parameters_schema_revision=revision)
            count, at = run.adjustment_count + 1, event.occurred_at
            run = copy_with(run, adjustment_count=count, last_adjusted_at=at, last_adjusted_by=event.adjusted_by)
        case RunAddedToCampaign():
            run = copy_with(run, campaign_id=event.campaign_id)
        case RunRemovedFromCampaign():
            run = copy_with(run, campaign_id=None)
        case RunObservationLogbookOpened():
            return copy_with(run, observation_logbook_id=event.logbook_id)
        case RunNarrativeLogbookOpened():
            return copy_with(run, narrative_logbook_id=event.logbook_id)
        case RunConducted():
            kind = merged_kind((run.actuation_kind, event.result.actuation_kind))
            run = copy_with(run, actuation_kind=kind)
            if event.conduct_id == run.live_conduct_id:
                lost = event.result.failure is not None and event.result.failure.error_class == CONDUCT_LOST
                run = copy_with(run, live_conduct_id=None, lost=lost and run.status in LIVE)
        case RunCompleted() | RunStopped() | RunAborted() | RunTruncated():
            kind = merged_kind((run.actuation_kind, event.actuation_kind))
            reason = None if isinstance(event, RunCompleted) else event.reason
            run = copy_with(run, status=ENDINGS[type(event)], actuation_kind=kind, end_reason=reason, lost=False)
            run = copy_with(run, ended_at=event.occurred_at)
        case _:
            assert_never(event)
    return copy_with(run, updated_at=event.occurred_at)


def witness_after(witness: Witness | None, event: RunWitnessChanged) -> Witness | None:
    """Return what is known of a run that happens elsewhere after one more word from its witness."""
    if witness is None:
        return None
    match event.change:
        case WitnessChange.DESCRIBED:
            return witness.model_copy(update={"asset_ids": witness.asset_ids | event.asset_ids})
        case WitnessChange.PAUSED:
            return witness.model_copy(update={"paused_since": event.at})
        case WitnessChange.RESUMED | WitnessChange.ENDED:
            return witness.model_copy(update={"paused_since": None})
        case WitnessChange.HEARD:
            return witness
        case _:
            assert_never(event.change)


def refuse_witnessed(command: Command, run: Run) -> None:
    """Refuse a verb on a run that happens elsewhere and would not obey it."""
    if run.witness is not None:
        detail = "The run happens in a RunEngine, and is only recorded here; do this where it runs."
        raise command.cannot("witnessed", detail, document_uid=run.witness.document_uid)


def refuse_unheld(command: Command, run: Run) -> None:
    """Refuse to hold a run that happens elsewhere and does not wait while it is Held."""
    if run.witness is None or not run.witness.holdable:
        refuse_witnessed(command, run)


@run.command(post="/{run_id}/hold", allowed=[RUNNING], leads_to=HELD, records=RunHeld, attempts=3)
class HoldRun(JudgedVerb[Run, Decision | None]):
    """Pause the run; it continues only when somebody resumes it."""

    reason: Annotated[str, run.text("hold_reason", 500, label="reason", personal=True)] | None = None
    decided_by_decision_id: UUID | None = None

    def require(self, run: Run) -> None:
        refuse_unheld(self, run)

    def gather(self, run: Run, call: Call) -> Reads[Decision | None]:
        return (yield from require_if_given(Decision, self.decided_by_decision_id))


class RunSummary(Summary):
    run_id: UUID
    name: str
    plan_id: UUID
    subject_id: UUID | None
    raid: str | None
    status: RunStatus
    campaign_id: UUID | None
    launch_id: UUID | None
    pinned_calibration_ids: IdSet
    override_parameters_present: bool
    """Whether the run has parameters of its own."""
    adjustment_count: int
    last_adjusted_by: UUID | None
    created_at: datetime
    running_since: datetime
    updated_at: datetime
    lost: bool
    witnessed: bool
    last_hold_reason: FreeText | None
    end_reason: FreeText | None
    ended_at: datetime | None


class RunItem(RunSummary):
    """A run in a list, with who started and who ended it."""

    started_by: UUID
    started_by_name: str | None
    ended_by: UUID | None
    ended_by_name: str | None


@run.listing(RunSummary, returns=RunItem)
class ListRuns(NamedListQuery[RunItem]):
    """Runs in the order they were started."""

    run_id: Annotated[tuple[UUID, ...], Field(max_length=100)] = ()
    """Only these runs."""
    status: RunStatus | None = None
    plan_id: UUID | None = None
    subject_id: UUID | None = None
    campaign_id: UUID | None = None
    launch_id: UUID | None = None
    witnessed: bool | None = None

    def present(self, rows: tuple[Any, ...]) -> Reads[tuple[RunItem, ...]]:
        found = (yield from events_of_all((row.run_id for row in rows), *BEGINNINGS, *ENDINGS)) if rows else ()
        began: dict[UUID, Appearance] = {}
        ended: dict[UUID, Appearance] = {}
        for event in found:
            (began if isinstance(event, BEGINNINGS) else ended)[event.stream_id] = appearance(event)
        names = yield from names_of((*began.values(), *ended.values()))
        return tuple(
            RunItem(
                **dict(row),
                started_by=began[row.run_id][0],
                started_by_name=names[began[row.run_id]],
                ended_by=end and end[0],
                ended_by_name=end and names[end],
            )
            for row in rows
            for end in (ended.get(row.run_id),)
        )


Phases = tuple[Procedure, ...]


class InvalidRunInterruptedAtError(Invalid, context="run"):
    """A run cannot have been interrupted in the future, nor before it started."""


def phases_of(run: Run) -> Reads[Phases]:
    """Return the phases of a run in order of registration."""
    found = yield from find_all(Procedure, (yield from members_of(PHASES, run.id)))
    return tuple(found.values())


def kind_of(run: Run, phases: Phases) -> ActuationKind | None:
    """Return what the run was done on so far."""
    return merged_kind((run.actuation_kind, *(phase.actuation_kind for phase in phases)))


def load_end(run: Run) -> Reads[Phases]:
    """Return the phases of a run that is to end, and have its launch read, whose end is written with it."""
    yield from find(Launch, run.launch_id)
    return (yield from phases_of(run))


def end_of(run: Run, ended: RunEnded) -> Outcome:
    """Return what ends a run, which is then no longer among the live ones, and its launch."""
    reason = None if isinstance(ended, RunCompleted) else ended.reason
    free = [Delist(WITNESSED_ASSETS, str(id)) for id in sorted(run.used_asset_ids)]
    return [ended, Delist(LIVE_RUNS, str(run.plan_id)), *free, *launch_end(run.launch_id, ENDINGS[type(ended)], reason)]


def refuse_live(command: Command, run: Run, phases: Phases, own: UUID | None = None) -> None:
    """Refuse to end a run under a conduct that is still at work, unless it is the run's own that ends it."""
    live = [phase for phase in phases if phase.live_conduct_id is not None]
    if live or run.live_conduct_id != own:
        detail = "A conduct of this run is live; wait for it, or stop or abort the run."
        conduct_id = None if run.live_conduct_id is None else str(run.live_conduct_id)
        ids = [str(phase.id) for phase in live]
        raise command.cannot("conduct_live", detail, procedure_ids=ids, conduct_id=conduct_id)


@run.command(post="/{run_id}/complete", allowed=LIVE, leads_to=COMPLETED)
class CompleteRun(JudgedVerb[Run, Phases]):
    """Complete the run as intended; a held one only once it has phases and every one of them is Completed."""

    conduct_id: Annotated[UUID | None, Internal()] = None  # The run's own conduct, which completes it unless it is held.

    def require(self, run: Run) -> None:
        refuse_witnessed(self, run)

    def gather(self, run: Run, call: Call) -> Reads[Phases]:
        return (yield from load_end(run))

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        completed = RunCompleted(actuation_kind=kind_of(run, phases))
        undone = [phase for phase in phases if phase.status is not ProcedureStatus.COMPLETED]
        if run.status is HELD and phases and not undone and self.conduct_id is None:
            return end_of(run, completed)
        refuse_live(self, run, phases, self.conduct_id)
        if run.status is HELD and not undone:
            raise self.cannot("held", "The run is Held; resume it, or stop or abort it.")
        if run.status is HELD:
            detail = "The run is Held, and not every phase of it is Completed; resume it, or stop or abort it."
            raise self.cannot("phase_not_completed", detail, procedure_ids=[str(phase.id) for phase in undone])
        return end_of(run, completed)


class RunEnding(JudgedVerb[Run, Phases]):
    """A verb that ends a run early; a blank reason is refused before the status."""

    decided_by_decision_id: UUID | None = None

    def gather(self, run: Run, call: Call) -> Reads[Phases]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        refuse_blank_text(self)
        return (yield from load_end(run))


@run.command(post="/{run_id}/stop", allowed=LIVE, attempts=3, destructive=True)
class StopRun(RunEnding):
    """End the run early by choice; what it measured so far is good."""

    reason: Annotated[str, run.text("stop_reason", 500, label="reason", personal=True)]

    def require(self, run: Run) -> None:
        refuse_witnessed(self, run)

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        return end_of(run, RunStopped(**dict(self), actuation_kind=kind_of(run, phases)))


def is_abort_of_person(run: Run, phases: Phases) -> Reads[bool]:
    """Return whether the latest conduct of a run ended because a person aborted its phase, and nothing failed by itself."""
    openings = yield from latest_events(run.id, RunConductStarted, count=1)
    listed = {one.procedure_id for opening in openings for one in opening.phases}
    ended = [phase for phase in phases if phase.id in listed and phase.status in GIVEN_UP]
    for phase in ended:
        principal_id = yield from aborted_by(phase)
        actor = yield from find(Actor, principal_id)
        if principal_id is None or (actor is not None and actor.kind is not ActorKind.HUMAN):
            return False
    return bool(ended)


@run.command(post="/{run_id}/abort", allowed=LIVE, attempts=3, destructive=True)
class AbortRun(JudgedVerb[Run, tuple[Phases, bool]]):
    """End the run in an emergency; what it measured is suspect."""

    decided_by_decision_id: UUID | None = None
    reason: Annotated[str, run.text("abort_reason", 500, label="reason", personal=True)]
    conduct_id: Annotated[UUID | None, Internal()] = None  # The run's own conduct, which aborts it where it fails.

    def require(self, run: Run) -> None:
        refuse_witnessed(self, run)

    def gather(self, run: Run, call: Call) -> Reads[tuple[Phases, bool]]:
        """Return the phases, and whether the run failed by itself: its conduct aborts it, and no person aborted a phase."""
        yield from require_if_given(Decision, self.decided_by_decision_id)
        refuse_blank_text(self)
        phases = yield from load_end(run)
        return phases, self.conduct_id is not None and not (yield from is_abort_of_person(run, phases))

    def decide(self, run: Run, call: Call, facts: tuple[Phases, bool]) -> Outcome:
        phases, failed = facts
        own = {name: value for name, value in self if name != "conduct_id"}
        ended = end_of(run, RunAborted(**own, actuation_kind=kind_of(run, phases)))
        return [*ended, Enlist(FAILED_RUNS, "")] if failed else ended


@run.command(post="/{run_id}/truncate", allowed=LIVE, destructive=True)
class TruncateRun(RunEnding):
    """Close the books on a run that died by itself, with the best guess of when."""

    reason: Annotated[str, run.text("truncate_reason", 500, label="reason", personal=True)]
    interrupted_at: Instant | None = None

    def gather(self, run: Run, call: Call) -> Reads[Phases]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        refuse_blank_text(self)
        if self.interrupted_at is not None and run.witness is None:  # a witnessed run has its own clock
            at, now, since = self.interrupted_at, call.now, run.created_at
            check_told_time(at, InvalidRunInterruptedAtError, now, since, "the start of the run")
        yield from self.refuse_still_heard(run, call)
        return (yield from load_end(run))

    def refuse_still_heard(self, run: Run, call: Call) -> Reads[None]:
        """Refuse to close the books on a run whose witness still gives word, unless the witness itself does it; and to a
        witness those of a run that is conducted here, which the death of a RunEngine does not end."""
        contact = (yield from record_of(WitnessContact, run_id=run.id)) if run.status in LIVE else None
        if contact is None:
            return
        if run.witness is None:
            if contact.witness_id == call.principal_id:
                detail = "The run is one of the service's own, in which a plan was a step; the end of its conduct ends it."
                raise self.cannot("not_witnessed", detail)
        elif call.principal_id != run.witness.witnessed_by and call.now - contact.heard_at < STILL_HEARD:
            detail = (
                "Its witness still gives word of this run; end it where it runs, or wait until a minute passed without word."
            )
            raise self.cannot("still_heard", detail, heard_at=contact.heard_at.isoformat())

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        refuse_live(self, run, phases, run.live_conduct_id)
        return end_of(run, RunTruncated(**dict(self), actuation_kind=kind_of(run, phases)))


@run.command(post="/{run_id}/acknowledge", allowed=tuple(ENDINGS.values()))
class AcknowledgeRun(Verb[Run]):
    """Say that you have looked at how the run ended: a failed one does not wait for anybody any more."""

    def decide(self, run: Run, call: Call) -> Outcome:
        return [RunAcknowledged(acknowledged_by=call.principal_id), Delist(FAILED_RUNS, "")]
