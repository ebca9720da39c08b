"""How a run conducts its phases: the record first, in one append; each phase is then a conduct of its own.

Whatever could refuse the conduct refuses it before anything is written; everything later is an outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import BaseModel, Field, model_validator

from baton.domain.kernel import Call, JudgedVerb, Outcome, Query, Value, omitted
from baton.domain.operation.conduct.actuation import merged_kind
from baton.domain.operation.conduct.conduct import ConductProcedure, Wait
from baton.domain.operation.conduct.grants import RUN_ISSUED, needed_grants, refuse_missing_grants
from baton.domain.operation.conduct.messages import lifecycle_failure
from baton.domain.operation.conduct.pins import PIN_REFUSALS, ProcedureStepsForbiddenError
from baton.domain.operation.conduct.programs import ComputeProgramNotAllowedError
from baton.domain.operation.conduct.progress import ConductPhase, ConductProgress, WaitingFor, submitted_by
from baton.domain.operation.conduct.results import ConductResult, Failure
from baton.domain.operation.conduct.views import PendingRequestView, pending_view, waiting_since
from baton.domain.operation.procedure.gates import (
    ProcedureAssetDecommissionedError,
    ProcedureEnclosureCoverageMismatchError,
    ProcedureRequiresAvailableSupplyError,
    ProcedureRequiresPermittedEnclosureError,
    ProcedureSupplyCoverageMismatchError,
)
from baton.domain.operation.procedure.procedure import (
    COMPLETED,
    DEFINED,
    UNDER_WAY,
    PendingRequest,
    Procedure,
    ProcedureConducted,
    ProcedureStatus,
)
from baton.domain.operation.schedule.arranged_conduct import USUALLY, Arranged, arranged
from baton.domain.recipe.step_shapes import InvalidRecipeStepShapeError
from baton.domain.run.progress import OpenedRunConduct, RunConductProgress, Waiting
from baton.domain.run.results import PhaseResult, RunConductResult
from baton.domain.run.run import RUNNING, ListedPhase, Run, RunConducted, RunConductStarted, RunHeld, RunStatus, run
from baton.domain.shared.reads import Reads, every, happened, latest, record_of, required_all
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, Refusal, Unprocessable
from baton.domain.shared.writes import Answer, Put

MOST_PHASES = 32

HOLDING = (
    ProcedureRequiresAvailableSupplyError,
    ProcedureSupplyCoverageMismatchError,
    ProcedureRequiresPermittedEnclosureError,
    ProcedureEnclosureCoverageMismatchError,
)
"""The gates that hold the run when a phase is to start, until somebody resumes it."""
JUDGED_LATER = (*HOLDING, ProcedureAssetDecommissionedError, ConductProcedure.Cannot)
"""What may have changed by the time a phase has its turn, and is not asked before."""
UNFIT = (ProcedureStepsForbiddenError, InvalidRecipeStepShapeError, ComputeProgramNotAllowedError)
UNPINNED = tuple(refusal for refusal in PIN_REFUSALS if refusal not in UNFIT)
"""What keeps the steps of a phase from being had as they were registered, whatever was asked for."""


class RunPhaseMismatchError(Conflict, context="run"):
    """A procedure cannot be conducted as a phase of this run, or not as asked."""


class Phase(Value):
    """A procedure to conduct, and how; where that is not said, its steps once from beginning to end."""

    procedure_id: UUID
    conduct: Arranged | None = None

    def listed(self) -> ListedPhase:
        return ListedPhase(procedure_id=self.procedure_id, conduct=(self.conduct or USUALLY).written())


class RunConductAccepted(BaseModel):
    """A conduct that is still under way; `get_work` and `get_run_conduct` tell how it goes."""

    run_id: UUID
    conduct_id: UUID
    work_id: UUID


def opening_of(run: Run, conduct_id: UUID) -> Reads[RunConductStarted]:
    """How a conduct of the run was opened."""
    openings = yield from happened(run.id, RunConductStarted)
    return next(opening for opening in openings if opening.conduct_id == conduct_id)


def mismatch(reason: str, detail: str, procedure: Procedure, **facts: Any) -> RunPhaseMismatchError:
    """The refusal of a phase."""
    return RunPhaseMismatchError(detail, reason=reason, facts={"procedure_id": str(procedure.id), **facts})


def check_standing(run: Run, phases: Sequence[Procedure]) -> None:
    """Refuse what is no phase of this run, then what is not at its beginning."""
    for phase in phases:
        if phase.parent_run_id != run.id:
            raise mismatch("not_a_phase", f"{phase.name} is no phase of this run; register it with the run.", phase)
    for phase in phases:
        if phase.status is not DEFINED:
            detail = f"{phase.name} is {phase.status.value}; leave it out, or register it anew."
            raise mismatch("not_defined", detail, phase, status=phase.status.value)


def check_fitting(listed: ListedPhase, phase: Procedure, call: Call) -> Reads[None]:
    """Refuse a phase that the command listed for it would refuse to open, gates apart: those are judged in its turn."""
    command = arranged(listed.conduct)
    try:
        yield from command.operation.decision(command, phase, call)
    except JUDGED_LATER:
        return
    except UNPINNED as refusal:
        raise unfit("pin_not_rebuildable", phase, refusal) from None
    except (Invalid, NotFound, Conflict, Unprocessable) as refusal:
        raise unfit("conduct_unfit", phase, refusal) from None


def unfit(reason: str, phase: Procedure, refusal: Refusal) -> RunPhaseMismatchError:
    """The refusal of a phase that its own command refuses."""
    cause = {"code": refusal.code, "reason": refusal.reason, "detail": refusal.detail}
    return mismatch(reason, f"{phase.name} cannot be conducted like this: {refusal.detail}", phase, cause=cause)


@run.command(
    post="/{run_id}/conduct",
    status=200,
    returns=RunConductResult,
    accepted=RunConductAccepted,
    work="conduct-run",
    attempts=3,
    essential=True,
)
class ConductRun(JudgedVerb[Run, UUID | None]):
    """Conduct phases of the run one after the other, then complete it; the first phase that fails aborts it.

    A repeat by the same principal with the same phases attaches to the conduct that is live.
    """

    phases: Annotated[tuple[Phase, ...], Field(min_length=1, max_length=MOST_PHASES)] = omitted()
    procedure_ids: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MOST_PHASES)] = omitted()
    wait: Wait = 30

    @model_validator(mode="after")
    def _listed_once(self) -> Self:
        if (self.phases is None) == (self.procedure_ids is None):
            raise ValueError("give phases or procedure_ids, one of them")
        ids = self.procedure_ids or [phase.procedure_id for phase in self.phases]
        if len(set(ids)) < len(ids):
            raise ValueError("a procedure is conducted once; list it once")
        return self

    def listed(self) -> tuple[ListedPhase, ...]:
        phases = self.phases or tuple(Phase(procedure_id=id) for id in self.procedure_ids)
        return tuple(phase.listed() for phase in phases)

    def gather(self, run: Run, call: Call) -> Reads[UUID | None]:
        """Refuse what stands in the way; the answer is the conduct that this one repeats, if it does."""
        listed = self.listed()
        if run.live_conduct_id is not None and (yield from self._repeats(run, run.live_conduct_id, listed, call)):
            return run.live_conduct_id
        yield from refuse_missing_grants(self.grants(listed))
        if run.status is not RUNNING:
            raise self.cannot("run_not_running", f"The run is {run.status.value}; conduct one that is Running.")
        if run.live_conduct_id is not None:
            raise self.cannot(
                "conduct_live",
                "Another conduct of this run is live; wait for it, or stop or abort the run.",
                conduct_id=str(run.live_conduct_id),
            )
        found = yield from required_all(Procedure, [phase.procedure_id for phase in listed])
        phases = [found[phase.procedure_id] for phase in listed]
        check_standing(run, phases)
        for phase, procedure in zip(listed, phases, strict=True):
            yield from check_fitting(phase, procedure, call)
        return None

    def grants(self, listed: Sequence[ListedPhase]) -> tuple[str, ...]:
        """The permissions it takes to conduct these phases and to bring the run to its end."""
        phases = [needed_grants(arranged(phase.conduct).operation.command_name) for phase in listed]
        return (self.operation.command_name, *RUN_ISSUED, *(name for names in phases for name in names))

    def _repeats(self, run: Run, conduct_id: UUID, listed: Sequence[ListedPhase], call: Call) -> Reads[bool]:
        opened = yield from record_of(OpenedRunConduct, conduct_id=conduct_id)
        if opened is None or opened.principal_id != call.principal_id:
            return False
        opening = yield from opening_of(run, conduct_id)
        return opening.phases == listed

    def decide(self, run: Run, call: Call, repeated: UUID | None) -> Outcome:
        conduct_id = repeated or call.new_id
        ids = RunConductAccepted(run_id=run.id, conduct_id=conduct_id, work_id=conduct_id).model_dump(mode="json")
        if repeated is not None:
            return [Answer(ids, replayed=True)]
        listed = self.listed()
        opened = OpenedRunConduct(run_id=run.id, phase_count=len(listed), **submitted_by(call))
        progress = RunConductProgress(
            run_id=run.id,
            conduct_id=conduct_id,
            phase=ConductPhase.OPENED.value,
            phase_index=None,
            waiting=None,
            started_at=call.now,
            heartbeat_at=None,
        )
        return [RunConductStarted(conduct_id=conduct_id, phases=listed), Put(opened), Put(progress), Answer(ids)]


Ends = Mapping[UUID, Sequence[ConductResult]]
"""What came of every conduct of each phase, oldest first."""


@dataclass(frozen=True)
class Course:
    """What the phases of a conduct have come to."""

    phases: tuple[Procedure, ...]
    ends: Ends


def course_of(run: Run, conduct_id: UUID) -> Reads[Course]:
    """Load what the phases of a live conduct have come to."""
    opening = yield from opening_of(run, conduct_id)
    found = yield from every(Procedure, [phase.procedure_id for phase in opening.phases])
    ends: dict[UUID, list[ConductResult]] = {}
    for id in found:
        ends[id] = [end.result for end in (yield from happened(id, ProcedureConducted))]
    return Course(tuple(found[phase.procedure_id] for phase in opening.phases), ends)


def failure_of(phase: Procedure, ends: Sequence[ConductResult]) -> Failure | None:
    """Why a phase came to nothing, or not yet to an end: what its last conduct says, or else how it was ended."""
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


def result_of(
    run: Run, conduct_id: UUID, course: Course, failure: Failure | None, failed_id: UUID | None
) -> RunConductResult:
    """What came of a conduct; a failure that no phase has on its own record is given."""
    phases = tuple(
        phase_result(phase, course.ends[phase.id], failure if phase.id == failed_id else None) for phase in course.phases
    )
    first = failure or next((phase.failure for phase in phases if phase.failure is not None), None)
    if first is None and not (run.status is RunStatus.COMPLETED and all(phase.succeeded for phase in phases)):
        first = lifecycle_failure(
            "complete", f"Run{run.status.value}", f"The run is {run.status.value}, and not by this conduct."
        )
    brought = [end for phase in course.phases for end in course.ends[phase.id]]
    return RunConductResult(
        run_id=run.id,
        conduct_id=conduct_id,
        succeeded=first is None,
        actuation_kind=merged_kind(phase.actuation_kind for phase in course.phases),
        failure=first,
        phases=phases,
        artifacts=tuple(artifact for end in brought for artifact in end.artifacts),
        outputs={name: artifact for end in brought for name, artifact in end.outputs.items()},
    )


def phase_result(phase: Procedure, ends: Sequence[ConductResult], failure: Failure | None) -> PhaseResult:
    """What came of one phase, by its last conduct where there were several."""
    last = ends[-1] if ends else None
    return PhaseResult(
        procedure_id=phase.id,
        conduct_id=phase.last_conduct_id,
        succeeded=phase.status is COMPLETED,
        completed_count=0 if last is None else last.completed_count,
        skipped_count=phase.skipped_count,
        iteration_count=None if last is None else last.iteration_count,
        failure=failure if phase.status is DEFINED else failure_of(phase, ends),
        closing_failures=() if last is None else last.closing_failures,
    )


@run.inner()
class RecordRunConductEnd(JudgedVerb[Run, tuple[RunConductProgress | None, Course | None]]):
    """Record the end of a conduct of the run; what came of it is put together from the record of its phases."""

    conduct_id: UUID
    failure: Failure | None = None
    """What went wrong, where no phase has it on its record."""
    failed_id: UUID | None = None
    """The phase that could not even start for it."""

    @classmethod
    def lost(cls, conduct_id: UUID) -> Self:
        """The end of a conduct that nobody works on any more; where the run stands is left to a person."""
        message = "The engine does not know of this conduct any more; look at its phases before going on."
        return cls(conduct_id=conduct_id, failure=lifecycle_failure("conduct", "ConductLost", message))

    @classmethod
    def expired(cls, conduct_id: UUID) -> Self:
        """The end of a conduct that nobody began in time: no phase was touched, and the run stands where it stood."""
        message = "No worker took the conduct up in time; no phase was touched."
        return cls(conduct_id=conduct_id, failure=lifecycle_failure("start", "ConductStartExpired", message))

    def gather(self, run: Run, call: Call) -> Reads[tuple[RunConductProgress | None, Course | None]]:
        progress = yield from record_of(RunConductProgress, run_id=run.id, conduct_id=self.conduct_id)
        live = run.live_conduct_id == self.conduct_id
        return progress, (yield from course_of(run, self.conduct_id)) if live else None

    def decide(self, run: Run, call: Call, facts: tuple[RunConductProgress | None, Course | None]) -> Outcome:
        progress, course = facts
        if course is None:
            return []
        over = [] if progress is None else [Put(replace(progress, phase=ConductPhase.ENDED.value, waiting=None))]
        result = result_of(run, self.conduct_id, course, self.failure, self.failed_id)
        return [RunConducted(conduct_id=self.conduct_id, succeeded=result.succeeded, result=result), *over]


class PhaseView(BaseModel):
    """A phase of a conduct as it stands now."""

    procedure_id: UUID
    command: str
    status: ProcedureStatus
    conduct_id: UUID | None


class RunConductView(BaseModel):
    """The latest conduct of a run; one that never was conducted has none."""

    conduct_id: UUID | None = None
    phases: tuple[PhaseView, ...] = ()
    current_procedure_id: UUID | None = None
    waiting: Waiting | None = None
    pending: PendingRequestView | None = None
    """What a hold of the run, or a request to its current phase, still waits for in that phase."""
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    result: RunConductResult | None = None


def pending_in(run: Run, phase: Procedure, now: datetime) -> Reads[PendingRequestView | None]:
    """What was asked of a phase, or of its run, and is not in force yet because the phase is at a step."""
    progress = yield from record_of(ConductProgress, procedure_id=phase.id)
    if progress is None or phase.live_conduct_id != progress.conduct_id:
        return None
    if phase.pending_request is not None:
        return (yield from pending_view(phase, progress, phase.pending_request, now))
    if run.status is not RunStatus.HELD or progress.waiting_for == WaitingFor.RUN.value:
        return None
    (held,) = yield from latest(run.id, RunHeld, count=1)
    return (yield from waiting_since(held.occurred_at, PendingRequest.HOLD, phase, progress, now))


@run.query(get="/{run_id}/conduct", returns=RunConductView, essential=True)
class GetRunConduct(Query):
    """How the latest conduct of a run goes, phase by phase, what it waits for and what came of it."""

    of_one_moment: ClassVar[bool] = True

    def answer(self, run: Run, call: Call) -> Reads[RunConductView]:
        openings = yield from happened(run.id, RunConductStarted)
        if not openings:
            return RunConductView()
        opening = openings[-1]
        ends = yield from happened(run.id, RunConducted)
        found = yield from every(Procedure, [phase.procedure_id for phase in opening.phases])
        progress = yield from record_of(RunConductProgress, run_id=run.id, conduct_id=opening.conduct_id)
        live = progress if run.live_conduct_id == opening.conduct_id else None
        index = None if live is None else live.phase_index
        current = None if index is None else opening.phases[index].procedure_id
        return RunConductView(
            conduct_id=opening.conduct_id,
            phases=tuple(
                PhaseView(
                    procedure_id=phase.procedure_id,
                    command=phase.conduct["command"],
                    status=found[phase.procedure_id].status,
                    conduct_id=found[phase.procedure_id].last_conduct_id,
                )
                for phase in opening.phases
            ),
            current_procedure_id=current,
            waiting=None if live is None or live.waiting is None else Waiting(**live.waiting),
            pending=None if current is None else (yield from pending_in(run, found[current], call.now)),
            started_at=opening.occurred_at,
            heartbeat_at=None if progress is None else progress.heartbeat_at,
            result=next((end.result for end in ends if end.conduct_id == opening.conduct_id), None),
        )
