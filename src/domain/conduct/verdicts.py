"""What a person may decide about a step of a conduct: whether one with an unknown outcome was done, and that a check need
not wait any longer. Each decision is an event of the procedure and a row of the ledger, which the conductor obeys."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.conduct import decided_row, verdict_on
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.progress import ConductPhase, ConductProgress
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import HELD, RUNNING, PendingRequest, Procedure, procedure
from baton.domain.recipe.steps import RecipeCheckStep, RecipeStep
from baton.domain.shared.reads import Reads, latest_events, record_of
from baton.domain.shared.writes import Enter
from baton.domain.step.results import PlacedStep, StepVerdict

Index = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]


def pinned_step(procedure: Procedure, step_index: int) -> Reads[RecipeStep | None]:
    """Return a step of the main list as it was pinned; None where there is none."""
    pins = yield from latest_events(procedure.id, procedures.ProcedureStepsResolved, count=1)
    steps = pins[0].resolved_steps if pins else ()
    return steps[step_index] if step_index < len(steps) else None


@procedure.command(post="/{procedure_id}/conduct/resolve", allowed=[HELD], reasons=["not_unknown", "already_resolved"])
class ResolveProcedureStep(JudgedVerb[Procedure, RecipeStep | None]):
    """Say whether a step whose outcome is unknown was done.

    Then the held procedure can be taken up: behind the step where it was done, at it where it was not.
    """

    conduct_id: UUID
    step_index: Index
    closing: Annotated[bool, Field(description="Always false: an unknown closing step does not hold a procedure.")] = False
    iteration_index: Annotated[Index, Field(description="The index of the pass, counted from 1; 0 outside passes.")] = 0
    outcome: StepVerdict
    """Whether the step was done (it continues behind it) or not_done (it is done again)."""
    reason: Annotated[str, procedure.text("resolve_reason", 500, label="reason", personal=True)]

    def gather(self, procedure: Procedure, call: Call) -> Reads[RecipeStep | None]:
        return (yield from pinned_step(procedure, self.step_index))

    def decide(self, procedure: Procedure, call: Call, step: RecipeStep | None) -> Outcome:
        at = PlacedStep(conduct_id=self.conduct_id, iteration_index=self.iteration_index, step_index=self.step_index)
        unknown = procedure.unknown_step
        if unknown is None:
            raise self.cannot("not_unknown", "The procedure was not held for an unknown outcome; take it up, or abort it.")
        if step is None or self.closing or at != unknown:
            detail = f"The outcome of step {unknown.step_index} of the last conduct is unknown; give its place."
            raise self.cannot("not_unknown", detail, **unknown.model_dump())
        if (known := verdict_on(procedure, at)) is not None:
            detail = f"The step was resolved as {known.value} already; take the procedure up, or abort it."
            raise self.cannot("already_resolved", detail, outcome=known)
        row = decided_row(self, procedure, call, at, step, Mark.VERDICT, result=self.outcome.value)
        return [procedures.ProcedureStepResolved(**dict(at), outcome=self.outcome, reason=self.reason), Enter([row])]


WaitFacts = tuple[ConductProgress | None, RecipeStep | None]


@procedure.command(post="/{procedure_id}/conduct/skip", allowed=[RUNNING], attempts=3, reasons=["not_waiting"])
class SkipProcedureWait(JudgedVerb[Procedure, WaitFacts]):
    """End the wait of the check at which the conduct stands, as if it had come true.

    Gates of enclosures and supplies are no checks, and are never skipped.
    """

    conduct_id: UUID
    step_index: Index
    iteration_index: Annotated[Index, Field(description="The index of the pass, counted from 1; 0 outside passes.")] = 0
    reason: Annotated[str, procedure.text("skip_reason", 500, label="reason", personal=True)]

    def gather(self, procedure: Procedure, call: Call) -> Reads[WaitFacts]:
        progress = yield from record_of(ConductProgress, procedure_id=procedure.id)
        return progress, (yield from pinned_step(procedure, self.step_index))

    def decide(self, procedure: Procedure, call: Call, facts: WaitFacts) -> Outcome:
        progress, step = facts
        if procedure.pending_request is PendingRequest.ABORT:
            raise self.cannot("request_pending", "The conduct is being aborted; nothing is left to skip.")
        over = self.cannot("not_waiting", "The conduct does not wait in this check; look where it is.")
        at = PlacedStep(conduct_id=self.conduct_id, iteration_index=self.iteration_index, step_index=self.step_index)
        if progress is None or not stands_at(procedure, progress, at):
            raise over
        if not isinstance(step, RecipeCheckStep) or not step.timeout:
            raise self.cannot("not_waiting", "The step is no check that waits; only the wait of a check can be skipped.")
        row = decided_row(self, procedure, call, at, step, Mark.OUTCOME, result="ok", skipped=True)
        return [procedures.ProcedureWaitSkipped(**dict(at), reason=self.reason), Enter([row], rival=over)]


def stands_at(procedure: Procedure, progress: ConductProgress, at: PlacedStep) -> bool:
    """Return whether the live conduct is at this step of its main list."""
    place = (progress.conduct_id, progress.iteration_index or 0, progress.step_index)
    walking = progress.phase == ConductPhase.WALKING.value and procedure.live_conduct_id == at.conduct_id
    return walking and place == (at.conduct_id, at.iteration_index, at.step_index)
