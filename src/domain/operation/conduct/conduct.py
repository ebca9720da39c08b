"""How a conduct is opened: in one append to the record, which the engine follows.

Everything that can refuse a conduct does so here, before anything is written; everything later is an outcome.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, Field

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.kernel import Call, Command, Event, JudgedVerb, Outcome
from baton.domain.operation.conduct.messages import SKIPPED, Mark, StepPlace, target_of
from baton.domain.operation.conduct.pins import (
    ProcedureStepsForbiddenError,
    check_closing_captures,
    pinned_steps,
    prepare_steps,
)
from baton.domain.operation.conduct.progress import ConductProgress, OpenedConduct, submission_fields
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.procedure.activity_logbook import Activity
from baton.domain.operation.procedure.gates import (
    GATES,
    acknowledged_cautions,
    needed_grants,
    parent_run_of,
    procedure_preconditions,
    refuse_idle_run,
    refuse_missing_grants,
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
from baton.domain.recipe.step_checks import DocumentedForm
from baton.domain.recipe.steps import PlainCriterion, RecipeStep, Step
from baton.domain.run.gates import Preconditions
from baton.domain.run.run import Run
from baton.domain.shared.gates import pass_gates
from baton.domain.shared.logbooks import open_logbook
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Holders, Reads, ask, events_of, every
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import Text
from baton.domain.shared.writes import Answer, Claim, Enter, Put

CONDUCTED_ASSETS = "conducted-asset"  # Claim kind: the procedure whose live conduct has an asset to itself.

Wait = Annotated[float, Field(strict=True, ge=0, le=60, description="Seconds to wait for the result.")]
Steps = Annotated[tuple[Any, ...], DocumentedForm(tuple[Step, ...]), Field(max_length=500)]
Boundary = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
SkipReason = Annotated[str, Text(500, InvalidProcedureReEstablishmentBoundaryError, "skip reason", personal=True)]
Rivals = Mapping[UUID, Procedure]  # The procedures whose live conducts have target assets to themselves, by asset.


class ConductAccepted(BaseModel):
    """A conduct under way, with the cautions it began under; `get_work` and `get_procedure_conduct` show its progress."""

    procedure_id: UUID
    conduct_id: UUID
    work_id: UUID
    acknowledged_cautions: tuple[AcknowledgedCaution, ...] = ()


class Opening(NamedTuple):
    """What the opening of a conduct is judged by; the cautions never refuse it, opening it acknowledges them."""

    preconditions: Preconditions
    steps: Expansion
    rivals: Rivals
    cautions: tuple[AcknowledgedCaution, ...]


def rivals_of(procedure: Procedure) -> Reads[dict[UUID, Procedure]]:
    """Return the procedures whose live conducts have target assets of this one, by asset."""
    keys = tuple(map(str, sorted(procedure.target_asset_ids)))
    holders: dict[str, UUID] = (yield Holders(CONDUCTED_ASSETS, keys)) if keys else {}
    found = yield from every(Procedure, holders.values())
    return {UUID(key): found[holder] for key, holder in holders.items() if holder in found and holder != procedure.id}


def refuse_rivals(rivals: Rivals) -> None:
    """Refuse a conduct on an asset that another one has to itself."""
    for asset_id, rival in sorted(rivals.items()):
        raise asset_in_use(asset_id, rival)


def asset_in_use(asset_id: UUID, rival: Procedure | None) -> Refusal:
    """Return the refusal of a conduct whose asset another one has."""
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


def refuse_begun(procedure: Procedure) -> None:
    """Refuse to conduct a procedure from the beginning that is not at its beginning."""
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


def refuse_not_held(procedure: Procedure) -> None:
    """Refuse to resume a procedure that is not Held."""
    refuse_live(procedure)
    if procedure.status is not HELD:
        raise ResumeProcedure.Cannot(
            f"The procedure is {procedure.status.value}; only a Held one is taken up again.",
            reason=procedure.status.value.lower(),
        )


def refuse_other_mode(procedure: Procedure, mode: ConductMode) -> None:
    """Refuse to resume a procedure in another mode than it was conducted in."""
    if procedure.conduct_mode is not mode:
        if procedure.conduct_mode is None:
            known, command = "never conducted", "resume_procedure"
        else:
            known, command = f"conducted in mode {procedure.conduct_mode.value}", RESUMING[procedure.conduct_mode]
        raise ResumeProcedure.Cannot(
            f"The procedure was {known}; take it up with {command}.", reason="other_mode", facts={"command": command}
        )


def load_opening(procedure: Procedure, run: Run | None, call: Call, steps: Expansion, *, resuming: bool) -> Reads[Opening]:
    """Load what any opening is judged by besides its steps."""
    facts = yield from procedure_preconditions(procedure, run, call, resuming=resuming)
    cautions = yield from acknowledged_cautions(procedure, run, facts)
    return Opening(facts, steps, (yield from rivals_of(procedure)), cautions)


def load_first_opening(procedure: Procedure, call: Call, sent: tuple[Any, ...]) -> Reads[Opening]:
    """Load what a conduct from the beginning is judged by; refuse one that cannot begin."""
    refuse_begun(procedure)
    run = yield from parent_run_of(procedure)
    refuse_idle_run(run, StartProcedure)
    steps = yield from prepare_steps(procedure, sent, run)
    return (yield from load_opening(procedure, run, call, steps, resuming=False))


def load_resumption(procedure: Procedure, call: Call, mode: ConductMode) -> Reads[tuple[Opening, ProcedureStepsResolved]]:
    """Load what a conduct that resumes is judged by, and its pin; refuse one that cannot resume."""
    refuse_not_held(procedure)
    run = yield from parent_run_of(procedure)
    refuse_idle_run(run, ResumeProcedure)
    refuse_other_mode(procedure, mode)
    pins = yield from events_of(procedure.id, ProcedureStepsResolved)
    steps = yield from pinned_steps(pins[-1])
    return (yield from load_opening(procedure, run, call, steps, resuming=True)), pins[-1]


def open_conduct(
    procedure: Procedure, call: Call, command_name: str, rivals: Rivals, counts: tuple[int, int], *events: Event
) -> Outcome:
    """Return what opens a conduct: its events, the logbook before the last of them, claims on its assets, and its rows.

    `counts` are the numbers of steps of the main list and of closing steps.
    """
    refuse_rivals(rivals)
    _, logbook = open_logbook(procedure.activity_logbook_id, ProcedureActivitiesLogbookOpened, Activity, call)
    claims = [
        Claim(CONDUCTED_ASSETS, str(asset_id), rival=asset_in_use(asset_id, None))
        for asset_id in sorted(procedure.target_asset_ids)
    ]
    ids: dict[str, Any] = {"procedure_id": procedure.id, "command_name": command_name}
    progress = ConductProgress(**ids, conduct_id=call.new_id, started_at=call.now, active_at=call.now)
    opened = OpenedConduct(**ids, step_count=counts[0], closing_count=counts[1], **submission_fields(call))
    return [*events[:-1], *logbook, events[-1], *claims, Put(opened), Put(progress)]


class Conduct(Command):
    """A command that opens a conduct: after its gates, one append."""

    wait: Wait = 30

    def check_grants(self) -> Reads[None]:
        """Refuse a submitter who may not do all that the conduct will do on their behalf."""
        yield from refuse_missing_grants(needed_grants(self.operation.command_name))

    def open(self, procedure: Procedure, call: Call, facts: Opening, *events: Event) -> Outcome:
        """Pass the gates and return what is written and answered."""
        pass_gates(GATES, facts.preconditions)
        accepted = ConductAccepted(
            procedure_id=procedure.id, conduct_id=call.new_id, work_id=call.new_id, acknowledged_cautions=facts.cautions
        )
        counts = (len(facts.steps.steps), len(facts.steps.closing_steps))
        written = open_conduct(procedure, call, self.operation.command_name, facts.rivals, counts, *events)
        return [*written, Answer(accepted.model_dump(mode="json"))]

    def started_event(self, call: Call, facts: Opening) -> ProcedureStarted:
        return ProcedureStarted(
            conduct_id=call.new_id, command_name=self.operation.command_name, acknowledged_cautions=facts.cautions
        )

    def resumed_event(
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


def pin_event(call: Call, steps: Expansion, mode: ConductMode, convergence: Convergence | None = None) -> Event:
    """Return the event that pins the steps of a conduct."""
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


class ForwardConduct(Conduct, JudgedVerb[Procedure, Opening]):
    """A conduct of all the steps from the beginning."""

    steps: Steps = ()

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        yield from self.check_grants()
        return (yield from load_first_opening(procedure, call, self.steps))

    def decide(self, procedure: Procedure, call: Call, facts: Opening) -> Outcome:
        pin = pin_event(call, facts.steps, ConductMode.FLAT)
        return self.open(procedure, call, facts, pin, self.started_event(call, facts))


@procedure.command(post="/{procedure_id}/conduct", reasons=["conduct_live", "asset_in_use"], essential=True, **CONDUCT)
class ConductProcedure(ForwardConduct):
    """Conduct the steps one after the other; a failure ends in Aborted, and closing steps run either way."""


@procedure.command(post="/{procedure_id}/conduct-or-hold", **CONDUCT)
class ConductOrHoldProcedure(ForwardConduct):
    """Conduct the steps; a setpoint or check that fails holds the procedure for a person instead of aborting it."""


@procedure.command(post="/{procedure_id}/reconduct", **CONDUCT)
class ConductFromProcedure(Conduct, JudgedVerb[Procedure, tuple[Opening, int, range]]):
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

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Opening, int, range]]:
        yield from self.check_grants()
        opening, _ = yield from load_resumption(procedure, call, ConductMode.FLAT)
        first_undone = yield from first_undone_step(procedure)
        boundary = first_undone if self.re_establishment_boundary is None else self.re_establishment_boundary
        check_boundary(boundary, len(opening.steps.steps))
        if boundary > first_undone and not (self.skip and self.skip_reason):
            count = boundary - first_undone
            raise InvalidProcedureReEstablishmentBoundaryError(
                f"Step {first_undone} is not done, and going on at {boundary} would leave out {count}; give a boundary of "
                f"at most {first_undone} or none, or say skip and why in skip_reason.",
                reason="would_skip",
                facts={"first_undone_step": first_undone, "skipped_count": count},
            )
        yield from check_closing_captures(procedure, opening.steps, boundary)
        return opening, boundary, range(first_undone, boundary)

    def decide(self, procedure: Procedure, call: Call, facts: tuple[Opening, int, range]) -> Outcome:
        opening, boundary, skipped = facts
        resumed_event = self.resumed_event(call, opening, boundary, self.decided_by_decision_id)
        if not skipped:
            return self.open(procedure, call, opening, resumed_event)
        resumed_event = resumed_event.model_copy(update={"skipped_count": len(skipped), "skip_reason": self.skip_reason})
        rows = [self.skipped_row(procedure, call, opening.steps.steps[index], index) for index in skipped]
        return [*self.open(procedure, call, opening, resumed_event), Enter(rows)]

    def skipped_row(self, procedure: Procedure, call: Call, step: RecipeStep, index: int) -> Activity:
        """Return the ledger row of a step that is left out."""
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
    """Return the first step that the latest conduct of the main list did not complete."""
    starts = yield from events_of(procedure.id, ProcedureStarted)
    resumptions = yield from events_of(procedure.id, ProcedureResumed)
    boundaries = {one.conduct_id: one.re_establishment_boundary for one in resumptions if one.conduct_id is not None}
    conduct_id = [*(one.conduct_id for one in starts if one.conduct_id is not None), *boundaries][-1]
    return boundaries.get(conduct_id, 0) + (yield from ask(Ports.completed_step_count, conduct_id))


@procedure.command(post="/{procedure_id}/converge", **CONDUCT)
class ConductUntilConverged(Conduct, JudgedVerb[Procedure, Opening]):
    """Conduct the steps again and again until a captured value meets a criterion; a held loop is taken up the same way."""

    convergence_capture_name: Annotated[str, Field(min_length=1, max_length=100)]
    criterion: PlainCriterion
    steps: Steps = ()
    max_consecutive_unconverged_iterations: Annotated[int, Field(strict=True, le=2**31 - 1)] | None = None
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        yield from self.check_grants()
        if procedure.status is not HELD:
            return (yield from load_first_opening(procedure, call, self.steps))
        facts, pin = yield from load_resumption(procedure, call, ConductMode.CONVERGED)
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
            return self.open(procedure, call, facts, self.resumed_event(call, facts, 0, self.decided_by_decision_id, cap))
        convergence = Convergence(
            capture_name=self.convergence_capture_name,
            criterion=self.criterion,
            max_consecutive_unconverged_iterations=tighter(cap, procedure.max_consecutive_unconverged_iterations),
        )
        pin = pin_event(call, facts.steps, ConductMode.CONVERGED, convergence)
        return self.open(procedure, call, facts, pin, self.started_event(call, facts))


def tighter(*caps: int | None) -> int | None:
    """Return the smallest of the caps that are given."""
    return min((cap for cap in caps if cap is not None), default=None)
