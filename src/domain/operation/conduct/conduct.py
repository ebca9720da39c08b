"""How a conduct is opened: the record first, in one append, and the engine follows.

Whatever could refuse a conduct refuses it here, before anything is written; everything later is an outcome.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from baton.domain.caution.banner import AcknowledgedCaution
from baton.domain.kernel import Call, Command, Event, Outcome
from baton.domain.operation.conduct.grants import needed_grants, refuse_missing_grants
from baton.domain.operation.conduct.messages import SKIPPED, Mark, StepPlace, target_of
from baton.domain.operation.conduct.pins import ProcedureStepsForbiddenError, check_closing_captures, pinned_steps, prepared
from baton.domain.operation.conduct.progress import ConductPhase, ConductProgress, OpenedConduct, submitted_by
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.procedure.activity_logbook import Activity
from baton.domain.operation.procedure.gates import (
    GATE_REFUSALS,
    Ground,
    acknowledged_cautions,
    ground_of,
    parent_run_of,
    pass_gates,
    why_idle,
)
from baton.domain.operation.procedure.procedure import (
    DEFINED,
    HELD,
    RUNNING,
    ConductMode,
    Convergence,
    Procedure,
    ProcedureActivitiesLogbookOpened,
    ProcedureResumed,
    ProcedureStarted,
    ProcedureStepsResolved,
    procedure,
)
from baton.domain.operation.procedure.registration import check_cap
from baton.domain.operation.procedure.start import (
    RESUMING,
    InvalidProcedureReEstablishmentBoundaryError,
    ResumeProcedure,
    StartProcedure,
    check_boundary,
)
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.step_shapes import Documented
from baton.domain.recipe.steps import PlainCriterion, RecipeStep, Step
from baton.domain.run.run import Run
from baton.domain.shared.logbooks import open_logbook
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Holders, Reads, ask, every, happened
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import Text
from baton.domain.shared.writes import Answer, Claim, Enter, Put

CONDUCTED_ASSETS = "conducted-asset"
"""Claim kind: the procedure whose live conduct has an asset to itself."""

Wait = Annotated[float, Field(strict=True, ge=0, le=60, description="Seconds to wait for the result.")]
Steps = Annotated[tuple[Any, ...], Documented(tuple[Step, ...]), Field(max_length=500)]
Boundary = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
SkipReason = Annotated[str, Text(500, InvalidProcedureReEstablishmentBoundaryError, "skip reason", personal=True)]
Rivals = Mapping[UUID, Procedure]
"""The procedures whose live conducts have target assets to themselves, by asset."""


class ConductAccepted(BaseModel):
    """A conduct that is still under way, with the cautions it was begun under; `get_work` and `get_procedure_conduct` tell
    how it goes."""

    procedure_id: UUID
    conduct_id: UUID
    work_id: UUID
    acknowledged_cautions: tuple[AcknowledgedCaution, ...] = ()


@dataclass(frozen=True)
class Opening:
    """What the opening of a conduct is judged by: the ground it stands on, its steps, and who else has its assets.

    The cautions never refuse it; opening it acknowledges them.
    """

    ground: Ground
    steps: Expansion
    rivals: Rivals
    cautions: tuple[AcknowledgedCaution, ...]


@dataclass(frozen=True)
class TakeUp:
    """What taking a held procedure up is judged by: its opening, where it goes on, and the steps that it leaves out."""

    opening: Opening
    boundary: int
    skipped: range


def rivals_of(procedure: Procedure) -> Reads[dict[UUID, Procedure]]:
    """Whoever conducts on this procedure's target assets now."""
    keys = tuple(map(str, sorted(procedure.target_asset_ids)))
    holders: dict[str, UUID] = (yield Holders(CONDUCTED_ASSETS, keys)) if keys else {}
    found = yield from every(Procedure, holders.values())
    return {UUID(key): found[holder] for key, holder in holders.items() if holder in found and holder != procedure.id}


def refuse_rivals(rivals: Rivals) -> None:
    """Refuse a conduct on an asset that another one has to itself."""
    for asset_id, rival in sorted(rivals.items()):
        raise asset_in_use(asset_id, rival)


def asset_in_use(asset_id: UUID, rival: Procedure | None) -> Refusal:
    """The refusal of a conduct whose asset another one has."""
    facts = {"asset_id": str(asset_id)}
    if rival is not None:
        facts |= {"procedure_id": str(rival.id), "conduct_id": str(rival.live_conduct_id)}
    return ConductProcedure.Cannot(
        "Another conduct has a target asset to itself; wait until it ends, or hold or abort it.",
        reason="asset_in_use",
        facts=facts,
    )


def refuse_live(procedure: Procedure) -> None:
    """Refuse a second conduct beside a live one."""
    if procedure.live_conduct_id is not None:
        raise ConductProcedure.Cannot(
            "A conduct of this procedure is live; wait for it, hold it or abort it.",
            reason="conduct_live",
            facts={"conduct_id": str(procedure.live_conduct_id)},
        )


def refuse_forward(procedure: Procedure) -> None:
    """Refuse to begin where the procedure is not at its beginning."""
    refuse_live(procedure)
    if procedure.status not in (DEFINED, RUNNING):
        raise StartProcedure.Cannot(
            f"The procedure is {procedure.status.value}; a conduct begins with a Defined or Running one.",
            reason=procedure.status.value.lower(),
        )
    if procedure.conduct_mode is not None:
        raise StartProcedure.Cannot(
            "The procedure was conducted and keeps those steps; hold it and take it up again, or register it anew.",
            reason="pinned",
        )
    if procedure.current_iteration_index is not None:
        raise StartProcedure.Cannot("An iteration is open; end it first.", reason="iteration_open")


def refuse_resuming(procedure: Procedure) -> None:
    """Refuse to take up what is not held."""
    refuse_live(procedure)
    if procedure.status is not HELD:
        raise ResumeProcedure.Cannot(
            f"The procedure is {procedure.status.value}; only a Held one is taken up again.",
            reason=procedure.status.value.lower(),
        )


def refuse_other_mode(procedure: Procedure, mode: ConductMode) -> None:
    """Refuse to take up in another way what was conducted, or what never was."""
    if procedure.conduct_mode is not mode:
        if procedure.conduct_mode is None:
            known, command = "never conducted", "resume_procedure"
        else:
            known, command = f"conducted in mode {procedure.conduct_mode.value}", RESUMING[procedure.conduct_mode]
        raise ResumeProcedure.Cannot(
            f"The procedure was {known}; take it up with {command}.", reason="other_mode", facts={"command": command}
        )


def refuse_idle_run(run: Run | None, verb: type[Command]) -> None:
    """Refuse to start or take up a phase whose run does not go on."""
    if (why := why_idle(run)) is not None:
        raise verb.Cannot(why, reason="parent_run_not_running")


def forward(procedure: Procedure, call: Call, sent: tuple[Any, ...]) -> Reads[Opening]:
    """Load what a conduct from the beginning is judged by, and refuse what stands in its way."""
    refuse_forward(procedure)
    run = yield from parent_run_of(procedure)
    refuse_idle_run(run, StartProcedure)
    steps = yield from prepared(procedure, sent, run)
    ground = yield from ground_of(procedure, run, call, resuming=False)
    cautions = yield from acknowledged_cautions(procedure, run, ground)
    return Opening(ground, steps, (yield from rivals_of(procedure)), cautions)


def resuming(procedure: Procedure, call: Call, mode: ConductMode) -> Reads[tuple[Opening, ProcedureStepsResolved]]:
    """Load what a conduct that goes on is judged by, and refuse what stands in its way."""
    refuse_resuming(procedure)
    run = yield from parent_run_of(procedure)
    refuse_idle_run(run, ResumeProcedure)
    refuse_other_mode(procedure, mode)
    pins = yield from happened(procedure.id, ProcedureStepsResolved)
    steps = yield from pinned_steps(pins[-1])
    ground = yield from ground_of(procedure, run, call, resuming=True)
    cautions = yield from acknowledged_cautions(procedure, run, ground)
    return Opening(ground, steps, (yield from rivals_of(procedure)), cautions), pins[-1]


def opening(
    procedure: Procedure, call: Call, command_name: str, rivals: Rivals, counts: tuple[int, int], *events: Event
) -> Outcome:
    """The opening append: these events, the logbook before the last of them, the assets, and where the conduct stands.

    `counts` are the steps of the main list and those that close.
    """
    refuse_rivals(rivals)
    _, logbook = open_logbook(procedure.activity_logbook_id, ProcedureActivitiesLogbookOpened, Activity, call)
    claims = [
        Claim(CONDUCTED_ASSETS, str(asset_id), rival=asset_in_use(asset_id, None))
        for asset_id in sorted(procedure.target_asset_ids)
    ]
    progress = ConductProgress(
        procedure_id=procedure.id,
        conduct_id=call.new_id,
        command_name=command_name,
        phase=ConductPhase.OPENED.value,
        waiting_for=None,
        waiting_until=None,
        step_index=None,
        iteration_index=None,
        started_at=call.now,
        heartbeat_at=None,
        active_at=call.now,
    )
    opened = OpenedConduct(
        procedure_id=procedure.id,
        command_name=command_name,
        step_count=counts[0],
        closing_count=counts[1],
        **submitted_by(call),
    )
    return [*events[:-1], *logbook, events[-1], *claims, Put(opened), Put(progress)]


class Conduct(Command):
    """A command that opens a conduct: after its gates, one append."""

    wait: Wait = 30

    def check_grants(self) -> Reads[None]:
        """Refuse a submitter who may not do all that the conduct will do on their behalf."""
        yield from refuse_missing_grants(needed_grants(self.operation.command_name))

    def opened(self, procedure: Procedure, call: Call, facts: Opening, *events: Event) -> Outcome:
        """What is written, and the address of the conduct."""
        pass_gates(facts.ground)
        accepted = ConductAccepted(
            procedure_id=procedure.id, conduct_id=call.new_id, work_id=call.new_id, acknowledged_cautions=facts.cautions
        )
        counts = (len(facts.steps.steps), len(facts.steps.closing_steps))
        written = opening(procedure, call, self.operation.command_name, facts.rivals, counts, *events)
        return [*written, Answer(accepted.model_dump(mode="json"))]

    def started(self, call: Call, facts: Opening) -> ProcedureStarted:
        return ProcedureStarted(
            conduct_id=call.new_id, command_name=self.operation.command_name, acknowledged_cautions=facts.cautions
        )

    def resumed(
        self, call: Call, facts: Opening, boundary: int, decision_id: UUID | None, cap: int | None = None
    ) -> ProcedureResumed:
        return ProcedureResumed(
            re_establishment_boundary=boundary,
            conduct_id=call.new_id,
            command_name=self.operation.command_name,
            decided_by_decision_id=decision_id,
            max_consecutive_unconverged_iterations=cap,
            acknowledged_cautions=facts.cautions,
        )


def pinned(call: Call, steps: Expansion, mode: ConductMode, convergence: Convergence | None = None) -> Event:
    """The pin of a conduct that begins."""
    return ProcedureStepsResolved(
        conduct_id=call.new_id,
        conduct_mode=mode,
        resolved_steps=steps.steps,
        resolved_closing_steps=steps.closing_steps,
        step_count=steps.step_count,
        steps_hash=steps.steps_hash,
        convergence=convergence,
    )


CONDUCT: dict[str, Any] = {"status": 200, "returns": ConductResult, "work": "conduct", "accepted": ConductAccepted}


class ForwardConduct(Conduct):
    """A conduct of all the steps from the beginning."""

    steps: Steps = ()

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        yield from self.check_grants()
        return (yield from forward(procedure, call, self.steps))

    def decide(self, procedure: Procedure, call: Call, facts: Opening) -> Outcome:
        pin = pinned(call, facts.steps, ConductMode.FLAT)
        return self.opened(procedure, call, facts, pin, self.started(call, facts))


@procedure.command(
    post="/{procedure_id}/conduct",
    reasons=["conduct_live", "asset_in_use"],
    refuses=[*GATE_REFUSALS],
    essential=True,
    **CONDUCT,
)
class ConductProcedure(ForwardConduct):
    """Conduct the steps one after the other; a failure ends in Aborted, and closing steps run either way."""


@procedure.command(post="/{procedure_id}/conduct-or-hold", refuses=[*GATE_REFUSALS], **CONDUCT)
class ConductOrHoldProcedure(ForwardConduct):
    """Conduct the steps; a setpoint or check that fails holds the procedure for a person instead of aborting it."""


@procedure.command(post="/{procedure_id}/reconduct", refuses=[*GATE_REFUSALS], **CONDUCT)
class ConductFromProcedure(Conduct):
    """Take a held procedure up at the first step that is not done, or at an earlier one, to establish what follows afresh.

    Steps are left out only where that is said: with `skip` and a reason.
    """

    re_establishment_boundary: Annotated[
        Boundary | None,
        Field(description="The index of the step to go on at, counted from 0; without it, the first that is not done."),
    ] = None
    skip: Annotated[
        bool, Field(description="Whether steps that are not done may be left out, up to `re_establishment_boundary`.")
    ] = False
    skip_reason: SkipReason | None = None
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[TakeUp]:
        yield from self.check_grants()
        facts, _ = yield from resuming(procedure, call, ConductMode.FLAT)
        first_undone = yield from first_undone_step(procedure)
        boundary = first_undone if self.re_establishment_boundary is None else self.re_establishment_boundary
        check_boundary(boundary, len(facts.steps.steps))
        self.check_skip(boundary, first_undone)
        yield from check_closing_captures(procedure, facts.steps, boundary)
        return TakeUp(facts, boundary, range(first_undone, boundary))

    def check_skip(self, boundary: int, first_undone: int) -> None:
        """Refuse to leave steps out unless that is said, and why."""
        if boundary > first_undone and not (self.skip and self.skip_reason):
            count = boundary - first_undone
            raise InvalidProcedureReEstablishmentBoundaryError(
                f"Step {first_undone} is not done, and going on at {boundary} would leave out {count}; give a boundary of "
                f"at most {first_undone} or none, or say skip and why in skip_reason.",
                reason="would_skip",
                facts={"first_undone_step": first_undone, "skipped_count": count},
            )

    def decide(self, procedure: Procedure, call: Call, facts: TakeUp) -> Outcome:
        resumed = self.resumed(call, facts.opening, facts.boundary, self.decided_by_decision_id)
        if not facts.skipped:
            return self.opened(procedure, call, facts.opening, resumed)
        resumed = resumed.model_copy(update={"skipped_count": len(facts.skipped), "skip_reason": self.skip_reason})
        rows = [self.skipped_row(procedure, call, facts.opening.steps.steps[index], index) for index in facts.skipped]
        return [*self.opened(procedure, call, facts.opening, resumed), Enter(rows)]

    def skipped_row(self, procedure: Procedure, call: Call, step: RecipeStep, index: int) -> Activity:
        """The ledger row of a step that is left out."""
        place = StepPlace(procedure_id=procedure.id, conduct_id=call.new_id, step_index=index)
        logbook_id, _ = open_logbook(procedure.activity_logbook_id, ProcedureActivitiesLogbookOpened, Activity, call)
        says = {"target": target_of(step), "result": SKIPPED, "step_index": index, "conduct_id": str(call.new_id)}
        return Activity.by(
            call,
            self,
            logbook_id,
            event_id=place.row_id(Mark.OUTCOME, 1),
            procedure_id=procedure.id,
            step_kind=step.kind,
            payload={**says, "attempt": 1},
            sampled_at=call.now,
            conduct_id=call.new_id,
            iteration_index=0,
            closing=False,
            step_index=index,
            mark=Mark.OUTCOME.value,
            attempt=1,
            slot=None,
        )


def first_undone_step(procedure: Procedure) -> Reads[int]:
    """The step that the latest conduct of the main list did not come to do: it was held there, failed there or was lost."""
    starts = yield from happened(procedure.id, ProcedureStarted)
    resumptions = yield from happened(procedure.id, ProcedureResumed)
    boundaries = {one.conduct_id: one.re_establishment_boundary for one in resumptions if one.conduct_id is not None}
    conduct_id = [*(one.conduct_id for one in starts if one.conduct_id is not None), *boundaries][-1]
    return boundaries.get(conduct_id, 0) + (yield from ask(Ports.completed_step_count, conduct_id))


@procedure.command(post="/{procedure_id}/converge", refuses=[*GATE_REFUSALS], **CONDUCT)
class ConductUntilConverged(Conduct):
    """Conduct the steps again and again until a captured value meets a criterion; a held loop is taken up the same way."""

    convergence_capture_name: Annotated[str, Field(min_length=1, max_length=100)]
    criterion: PlainCriterion
    steps: Steps = ()
    max_consecutive_unconverged_iterations: Annotated[int, Field(strict=True, le=2**31 - 1)] | None = None
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        yield from self.check_grants()
        if procedure.status is not HELD:
            return (yield from forward(procedure, call, self.steps))
        facts, pin = yield from resuming(procedure, call, ConductMode.CONVERGED)
        if self.steps:
            raise ProcedureStepsForbiddenError("A held loop keeps its steps; take it up without any.")
        kept = pin.convergence
        if kept is None or (kept.capture_name, kept.criterion) != (self.convergence_capture_name, self.criterion):
            raise ResumeProcedure.Cannot(
                "A held loop keeps its criterion; give the same capture name and criterion.", reason="criterion_changed"
            )
        return facts

    def decide(self, procedure: Procedure, call: Call, facts: Opening) -> Outcome:
        cap = self.max_consecutive_unconverged_iterations
        check_cap(cap)
        if procedure.status is HELD:
            return self.opened(procedure, call, facts, self.resumed(call, facts, 0, self.decided_by_decision_id, cap))
        convergence = Convergence(
            capture_name=self.convergence_capture_name,
            criterion=self.criterion,
            max_consecutive_unconverged_iterations=tighter(cap, procedure.max_consecutive_unconverged_iterations),
        )
        pin = pinned(call, facts.steps, ConductMode.CONVERGED, convergence)
        return self.opened(procedure, call, facts, pin, self.started(call, facts))


def tighter(*caps: int | None) -> int | None:
    """The smallest of several caps, any of which may be missing."""
    return min((cap for cap in caps if cap is not None), default=None)
