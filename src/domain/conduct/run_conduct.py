"""How a run conducts its phases: opened in one append to the record; each phase is then a conduct of its own.

Everything that can refuse the conduct does so before anything is written; everything later is an outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.conduct import progress as records
from baton.domain.conduct.arranged_conduct import DEFAULT_ARRANGEMENT, ArrangementInput, arranged_command
from baton.domain.conduct.conduct import ConductProcedure, Wait, tighter
from baton.domain.conduct.estimates import (
    UNLIMITED,
    ConductTimePort,
    ConductWalk,
    Estimate,
    conduct_estimate,
    estimate_walk,
    start_position,
    sum_estimates,
    walk_of,
)
from baton.domain.conduct.holds import HoldNow, hold_of_run
from baton.domain.conduct.messages import lifecycle_failure
from baton.domain.conduct.pins import UNPINNABLE, literal_steps, prepare_steps, words_of
from baton.domain.conduct.plan_progress import PlanStepView, running_plan
from baton.domain.conduct.progress import OpenedRunConduct, RunConductProgress, RunWait
from baton.domain.conduct.rehearsal_basis import refuse_outdated_steps
from baton.domain.conduct.steered_conduct import SteeringView, WaitingQuestion, load_waiting_question
from baton.domain.conduct.views import PendingRequestView, pending_since, pending_view
from baton.domain.kernel import Call, JudgedVerb, Outcome, Query, Value, omittable
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import COMPLETED, DEFINED, UNDER_WAY, Procedure
from baton.domain.recipe.conduct_options import ChosenOptions, first_choices
from baton.domain.registry import OpenedWork
from baton.domain.run.run import (
    RUNNING,
    ListedPhase,
    Run,
    RunConducted,
    RunConductStarted,
    RunHeld,
    RunStatus,
    refuse_witnessed,
    run,
)
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask, events_of, find_all, latest_events, record_of, require, require_all
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, Refusal, Unprocessable
from baton.domain.shared.writes import Answer, Put
from baton.domain.start.fingerprint import RehearsalFingerprint, StepsBasis
from baton.domain.start.procedure_start import GATE_REFUSALS, RUN_ISSUED, needed_grants, refuse_missing_grants
from baton.domain.step.results import CONDUCT_LOST, ConductResult, Failure, PhaseResult, RunConductResult, merged_kind

MAX_PHASES = 32

JUDGED_LATER = (*GATE_REFUSALS, ConductProcedure.Cannot)  # What may change until a phase has its turn: not asked before.


class RunPhaseMismatchError(Conflict, context="run"):
    """A procedure cannot be conducted as a phase of this run, or not as asked."""


class Phase(Value):
    """A procedure to conduct, and how; where that is not said, its steps once from beginning to end."""

    procedure_id: UUID
    conduct: ArrangementInput | None = None


class RunConductAccepted(AnswerForm):
    """A conduct that is still under way; `get_work` and `get_run_conduct` tell how it goes."""

    run_id: UUID
    conduct_id: UUID
    work_id: UUID
    waiting_question: WaitingQuestion = None


def load_opening(run: Run, conduct_id: UUID) -> Reads[RunConductStarted]:
    """Return the event that opened a conduct of the run."""
    openings = yield from events_of(run.id, RunConductStarted)
    return next(opening for opening in openings if opening.conduct_id == conduct_id)


def phases_left(run: Run) -> Reads[list[ListedPhase]]:
    """Return the phases of the run's latest conduct that were not started, in its order and as they were arranged."""
    (opening,) = yield from latest_events(run.id, RunConductStarted, count=1)
    found = yield from find_all(Procedure, [phase.procedure_id for phase in opening.phases])
    return [phase for phase in opening.phases if found[phase.procedure_id].status is DEFINED]


def mismatch(reason: str, detail: str, procedure: Procedure, **facts: object) -> RunPhaseMismatchError:
    """Return the refusal of a phase."""
    return RunPhaseMismatchError(detail, reason=reason, facts={"procedure_id": str(procedure.id), **facts})


def check_phases(run: Run, phases: Sequence[Procedure]) -> None:
    """Refuse a procedure that is no phase of this run, then one that is not Defined."""
    for phase in phases:
        if phase.parent_run_id != run.id:
            raise mismatch("not_a_phase", f"{phase.name} is no phase of this run; register it with the run.", phase)
    for phase in phases:
        if phase.status is not DEFINED:
            detail = f"{phase.name} is {phase.status.value}; leave it out, or register it again."
            raise mismatch("not_defined", detail, phase, status=phase.status.value)


def check_arrangement(listed: ListedPhase, phase: Procedure, call: Call) -> Reads[None]:
    """Refuse a phase that its command would refuse to open, apart from gates, which are judged in its turn."""
    command = arranged_command(listed.conduct)
    try:
        yield from command.operation.decision(command, phase, call)
    except JUDGED_LATER:
        return
    except UNPINNABLE as refusal:
        raise unfit("pin_not_rebuildable", phase, refusal) from None
    except (Invalid, NotFound, Conflict, Unprocessable) as refusal:
        raise unfit("conduct_unfit", phase, refusal) from None


def unfit(reason: str, phase: Procedure, refusal: Refusal) -> RunPhaseMismatchError:
    """Return the refusal of a phase that its own command refuses."""
    cause = {"code": refusal.code, "reason": refusal.reason, "detail": refusal.detail}
    return mismatch(reason, f"{phase.name} cannot be conducted like this: {refusal.detail}", phase, cause=cause)


@run.command(
    post="/{run_id}/conduct",
    status=200,
    returns=RunConductResult,
    accepted=RunConductAccepted,
    work=OpenedWork("conduct-run", asks=True),
    attempts=3,
)
class ConductRun(ChosenOptions, JudgedVerb[Run, UUID | None]):
    """Conduct phases of the run one after the other, then complete it; the first phase that fails aborts it.

    Options given here hold for every phase whose own `conduct` does not choose them.

    A repeat by the same principal with the same phases attaches to the conduct that is live.
    """

    phases: Annotated[tuple[Phase, ...], Field(min_length=1, max_length=MAX_PHASES)] = omittable()
    procedure_ids: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MAX_PHASES)] = omittable()
    wait: Wait = 30
    fingerprint: RehearsalFingerprint | None = None

    @model_validator(mode="after")
    def _listed_once(self) -> Self:
        if (self.phases is None) == (self.procedure_ids is None):
            raise ValueError("give phases or procedure_ids, one of them")
        ids = self.procedure_ids or [phase.procedure_id for phase in self.phases]
        if len(set(ids)) < len(ids):
            raise ValueError("a procedure is conducted once; list it once")
        return self

    def listed_phases(self) -> tuple[ListedPhase, ...]:
        phases = self.phases or tuple(Phase(procedure_id=id) for id in self.procedure_ids)
        chosen = first_choices(self).model_dump(mode="json")
        arranged = [(one.procedure_id, (one.conduct or DEFAULT_ARRANGEMENT).stored_form()) for one in phases]
        return tuple(ListedPhase(procedure_id=id, conduct={**chosen, **conduct}) for id, conduct in arranged)

    def gather(self, run: Run, call: Call) -> Reads[UUID | None]:
        """Refuse a conduct that cannot begin; return the live conduct that this one repeats, or None."""
        refuse_witnessed(self, run)
        listed = self.listed_phases()
        if run.live_conduct_id is not None and (yield from self._repeats(run, run.live_conduct_id, listed, call)):
            return run.live_conduct_id
        yield from refuse_missing_grants(self.grants(listed))
        if run.status is not RUNNING:
            raise self.cannot("run_not_running", f"The run is {run.status.value}; conduct one that is Running.")
        if run.live_conduct_id is not None:
            detail = "Another conduct of this run is live; wait for it, or stop or abort the run."
            raise self.cannot("conduct_live", detail, conduct_id=str(run.live_conduct_id))
        found = yield from require_all(Procedure, [phase.procedure_id for phase in listed])
        phases = [found[phase.procedure_id] for phase in listed]
        check_phases(run, phases)
        for phase, procedure in zip(listed, phases, strict=True):
            yield from check_arrangement(phase, procedure, call)
        if self.fingerprint is not None:
            yield from self._refuse_outdated(run, listed, phases)
        return None

    def _refuse_outdated(self, run: Run, listed: Sequence[ListedPhase], phases: Sequence[Procedure]) -> Reads[None]:
        """Refuse phases whose steps, or what is known of their signals, are not as in the rehearsal that it names."""
        parts = []
        for phase, procedure in zip(listed, phases, strict=True):
            steps = yield from prepare_steps(procedure, (), run)
            parts.append(StepsBasis(steps, words_of(procedure, run), space=arranged_command(phase.conduct).searched))
        yield from refuse_outdated_steps(self.fingerprint, parts)

    def grants(self, listed: Sequence[ListedPhase]) -> tuple[str, ...]:
        """Return the permissions that conducting these phases and ending the run needs, besides that of this command."""
        phases = [needed_grants(arranged_command(phase.conduct).operation.command_name) for phase in listed]
        return (*RUN_ISSUED, *(name for names in phases for name in names))

    def _repeats(self, run: Run, conduct_id: UUID, listed: Sequence[ListedPhase], call: Call) -> Reads[bool]:
        opened = yield from record_of(OpenedRunConduct, conduct_id=conduct_id)
        if opened is None or opened.principal_id != call.principal_id:
            return False
        return (yield from load_opening(run, conduct_id)).phases == listed

    def decide(self, run: Run, call: Call, repeated: UUID | None) -> Outcome:
        conduct_id = repeated or call.new_id
        ids = RunConductAccepted(run_id=run.id, conduct_id=conduct_id, work_id=conduct_id).model_dump(
            mode="json", exclude_none=True
        )
        if repeated is not None:
            return [Answer(ids, replayed=True)]
        listed = self.listed_phases()
        opened = OpenedRunConduct(run_id=run.id, phase_count=len(listed), **records.submission_fields(call))
        progress = RunConductProgress(run_id=run.id, conduct_id=conduct_id, started_at=call.now)
        return [RunConductStarted(conduct_id=conduct_id, phases=listed), Put(opened), Put(progress), Answer(ids)]


PhaseResults = Sequence[tuple[Procedure, Sequence[ConductResult]]]  # Each phase with its conducts' results, oldest first.


def load_phase_results(run: Run, conduct_id: UUID) -> Reads[PhaseResults]:
    """Load the phases of a conduct with their results."""
    opening = yield from load_opening(run, conduct_id)
    found = yield from find_all(Procedure, [phase.procedure_id for phase in opening.phases])
    results: list[tuple[Procedure, Sequence[ConductResult]]] = []
    for phase in opening.phases:
        ends = yield from events_of(phase.procedure_id, procedures.ProcedureConducted)
        results.append((found[phase.procedure_id], [end.result for end in ends]))
    return results


def failure_of(phase: Procedure, ends: Sequence[ConductResult]) -> Failure | None:
    """Return why a phase failed or is halted: the failure of its last conduct, or how it was ended."""
    if phase.status in (DEFINED, COMPLETED) or phase.live_conduct_id is not None:
        return None
    last = ends[-1] if ends else None
    if last is not None and last.failure is not None:
        only_paused = (last.held or last.acquisition_halt) and last.failure.source_kind == "lifecycle"
        if phase.status in UNDER_WAY or not only_paused:
            return last.failure
    if phase.status in UNDER_WAY:
        return None
    return lifecycle_failure("abort", f"Procedure{phase.status.value}", phase.last_status_reason or "It was given up.")


def run_conduct_result(
    run: Run, conduct_id: UUID, results: PhaseResults, failure: Failure | None, failed_id: UUID | None
) -> RunConductResult:
    """Return the result of a conduct; a failure that no phase has on its own record is given."""
    phases = tuple(phase_result(phase, ends, failure if phase.id == failed_id else None) for phase, ends in results)
    first = failure or next((phase.failure for phase in phases if phase.failure is not None), None)
    if first is None and not (run.status is RunStatus.COMPLETED and all(phase.succeeded for phase in phases)):
        message = f"The run is {run.status.value}, and not by this conduct."
        first = lifecycle_failure("complete", f"Run{run.status.value}", message)
    every_end = [end for _, ends in results for end in ends]
    return RunConductResult(
        run_id=run.id,
        conduct_id=conduct_id,
        succeeded=first is None,
        actuation_kind=merged_kind(phase.actuation_kind for phase, _ in results),
        failure=first,
        phases=phases,
        artifacts=tuple(artifact for end in every_end for artifact in end.artifacts),
        outputs={name: artifact for end in every_end for name, artifact in end.outputs.items()},
    )


def phase_result(phase: Procedure, ends: Sequence[ConductResult], failure: Failure | None) -> PhaseResult:
    """Return the result of one phase, by its last conduct where there were several."""
    names = ("completed_count", "iteration_count", "closing_failures", "captures", "passes")
    return PhaseResult(
        procedure_id=phase.id,
        conduct_id=phase.last_conduct_id,
        succeeded=phase.status is COMPLETED,
        skipped_count=phase.skipped_count,
        failure=failure if phase.status is DEFINED else failure_of(phase, ends),
        **{name: getattr(end, name) for end in ends[-1:] for name in names},
    )


@run.internal_command()
class RecordRunConductEnd(JudgedVerb[Run, tuple[RunConductProgress | None, PhaseResults | None]]):
    """Record the end of a conduct of the run, with the result that the record of its phases gives."""

    conduct_id: UUID
    failure: Failure | None = None  # What went wrong, where no phase has it on its record.
    failed_id: UUID | None = None  # The phase that could not even start for it.

    @classmethod
    def for_lost(cls, conduct_id: UUID) -> Self:
        """Return the end of a conduct that nobody works on any more; the run is left to a person."""
        message = "The engine does not know of this conduct any more; look at its phases before going on."
        return cls(conduct_id=conduct_id, failure=lifecycle_failure("conduct", CONDUCT_LOST, message))

    @classmethod
    def for_expired(cls, conduct_id: UUID) -> Self:
        """Return the end of a conduct that nobody began in time; no phase was touched."""
        message = "No worker took the conduct up in time; no phase was touched."
        return cls(conduct_id=conduct_id, failure=lifecycle_failure("start", "ConductStartExpired", message))

    def gather(self, run: Run, call: Call) -> Reads[tuple[RunConductProgress | None, PhaseResults | None]]:
        progress = yield from record_of(RunConductProgress, run_id=run.id, conduct_id=self.conduct_id)
        live = run.live_conduct_id == self.conduct_id
        return progress, (yield from load_phase_results(run, self.conduct_id)) if live else None

    def decide(self, run: Run, call: Call, facts: tuple[RunConductProgress | None, PhaseResults | None]) -> Outcome:
        progress, results = facts
        if results is None:
            return []
        over = [] if progress is None else [Put(replace(progress, phase=records.ConductPhase.ENDED.value, waiting=None))]
        result = run_conduct_result(run, self.conduct_id, results, self.failure, self.failed_id)
        return [RunConducted(conduct_id=self.conduct_id, succeeded=result.succeeded, result=result), *over]


class PhaseView(AnswerForm):
    """A phase of a conduct as it stands now."""

    procedure_id: UUID
    command: str
    conduct: dict[str, Any]
    status: procedures.ProcedureStatus
    conduct_id: UUID | None


class RunConductView(AnswerForm):
    """The latest conduct of a run; one that never was conducted has none."""

    conduct_id: UUID | None = None
    hold: HoldNow | None = None
    """Why the run is held, since when and by whom; null where it is not."""
    phases: tuple[PhaseView, ...] = ()
    current_procedure_id: UUID | None = None
    """The phase that is conducted now."""
    waiting: RunWait | None = None
    """What it waits for, or whether it waits."""
    pending: PendingRequestView | None = None  # What a hold of the run, or a request to its current phase, waits for there.
    plan_step: PlanStepView | None = None
    """The Bluesky plan that the step of its current phase waits for."""
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    estimate: Annotated[
        Estimate | None,
        Field(description="How long the phases that are not over take together. Null where the conduct has ended."),
    ] = None
    result: RunConductResult | None = None


def run_estimate(
    run: Run, opening: RunConductStarted, phases: Mapping[UUID, Procedure], progress: RunConductProgress, now: datetime
) -> Reads[Estimate]:
    """Return how long a live conduct of a run will still take; the clock stands where the run or its phase stands."""
    parts: list[Estimate] = []
    stands = run.status is not RUNNING or progress.waiting is not None
    for listed in opening.phases:
        phase = phases[listed.procedure_id]
        part = yield from phase_estimate(listed, phase, now)
        if part is not None:
            parts.append(part)
            stands = stands or (phase.status is not DEFINED and part.ends_at is None)
    return sum_estimates(parts, None if stands else now)


def phase_estimate(listed: ListedPhase, phase: Procedure, now: datetime) -> Reads[Estimate | None]:
    """Return how long a phase will take or, where it has begun, will still take; None where it is over."""
    if phase.status is not DEFINED:
        progress = yield from record_of(records.ConductProgress, procedure_id=phase.id)
        return None if progress is None else (yield from conduct_estimate(phase, progress, now))
    command: Any = arranged_command(listed.conduct)
    sent = getattr(command, "steps", ())
    known = walk_of(literal_steps(sent), ()) if sent else (yield from ask(ConductTimePort.registered_walk, phase.id))
    walk = replace(
        known or ConductWalk((), ()),
        mode=procedures.MODES[command.operation.command_name],
        unconverged_cap=tighter(
            getattr(command, "max_consecutive_unconverged_iterations", None), phase.max_consecutive_unconverged_iterations
        ),
        budget=getattr(command, "budget", None) or UNLIMITED,
    )
    durations = yield from ask(ConductTimePort.step_durations, walk.keys)
    return estimate_walk(walk, durations, start_position(walk, phase))


def pending_in(run: Run, phase: Procedure, now: datetime) -> Reads[PendingRequestView | None]:
    """Return a request to a phase, or a hold of its run, that is not in force yet because the phase is at a step."""
    progress = yield from record_of(records.ConductProgress, procedure_id=phase.id)
    if progress is None or phase.live_conduct_id != progress.conduct_id:
        return None
    if phase.pending_request is not None:
        return (yield from pending_view(phase, progress, phase.pending_request, now))
    if run.status is not RunStatus.HELD or progress.waiting_for == records.WaitingFor.RUN.value:
        return None
    (held,) = yield from latest_events(run.id, RunHeld, count=1)
    return (yield from pending_since(held.occurred_at, procedures.PendingRequest.HOLD, phase, progress, now))


def load_phase_question(progress: RunConductProgress, now: datetime) -> Reads[SteeringView | None]:
    """Return what the current phase of a live conduct waits to be advised on; None where it asks nothing."""
    if progress.phase_index is None:
        return None
    opening = yield from load_opening((yield from require(Run, progress.run_id)), progress.conduct_id)
    return (yield from load_waiting_question(opening.phases[progress.phase_index].procedure_id, now))


def running_plan_of(phase: Procedure, now: datetime) -> Reads[PlanStepView | None]:
    """Return the plan that the live conduct of a phase waits for."""
    progress = yield from record_of(records.ConductProgress, procedure_id=phase.id)
    if progress is None or phase.live_conduct_id != progress.conduct_id:
        return None
    return (yield from running_plan(progress, now))


@run.query(get="/{run_id}/conduct", returns=RunConductView)
class GetRunConduct(Query[RunConductView]):
    """How the latest conduct of a run goes, phase by phase, what it waits for and its result."""

    of_one_moment: ClassVar[bool] = True

    def answer(self, run: Run, call: Call) -> Reads[RunConductView]:
        openings = yield from events_of(run.id, RunConductStarted)
        hold = yield from hold_of_run(run)
        if not openings:
            return RunConductView(hold=hold)
        opening = openings[-1]
        ends = yield from events_of(run.id, RunConducted)
        found = yield from find_all(Procedure, [phase.procedure_id for phase in opening.phases])
        progress = yield from record_of(RunConductProgress, run_id=run.id, conduct_id=opening.conduct_id)
        live = progress if run.live_conduct_id == opening.conduct_id else None
        index = None if live is None else live.phase_index
        current = None if index is None else opening.phases[index].procedure_id
        listed = [(phase.conduct, found[phase.procedure_id]) for phase in opening.phases]
        return RunConductView(
            conduct_id=opening.conduct_id,
            hold=hold,
            phases=tuple(
                PhaseView(
                    procedure_id=phase.id,
                    command=conduct["command"],
                    conduct=conduct,
                    status=phase.status,
                    conduct_id=phase.last_conduct_id,
                )
                for conduct, phase in listed
            ),
            current_procedure_id=current,
            waiting=None if live is None or live.waiting is None else RunWait(**live.waiting),
            pending=None if current is None else (yield from pending_in(run, found[current], call.now)),
            plan_step=None if current is None else (yield from running_plan_of(found[current], call.now)),
            started_at=opening.occurred_at,
            heartbeat_at=None if progress is None else progress.heartbeat_at,
            estimate=None if live is None else (yield from run_estimate(run, opening, found, live, call.now)),
            result=next((end.result for end in ends if end.conduct_id == opening.conduct_id), None),
        )
