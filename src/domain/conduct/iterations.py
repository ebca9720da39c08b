"""The passes of a procedure that repeats its steps: begun and ended one after the other, by hand or by a conduct."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, get_args
from uuid import UUID

from pydantic import Field

from baton.domain.decision.decision import ConfidenceSource
from baton.domain.kernel import Call, Outcome, Query, Verb
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import RUNNING, UNDER_WAY, ConductMode, Procedure, procedure
from baton.domain.registry import Internal
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, events_of
from baton.domain.shared.refusals import Conflict
from baton.domain.start.procedure_start import live_conduct_refusal
from baton.domain.steering.steering import Point, SteeringAdvice
from baton.domain.step.results import Measured, MeasuredPass

Index = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]


class ProcedureIterationLimitReachedError(Conflict, context="operation"):
    """As many passes in a row as patience lasts for have not converged."""


@procedure.command(post="/{procedure_id}/iterations/start", name="start_iteration", verb="StartIteration", allowed=[RUNNING])
class StartProcedureIteration(Verb[Procedure]):
    """Begin the next pass."""

    iteration_index: Index
    point: Annotated[Point | None, Internal()] = None
    advice: Annotated[SteeringAdvice | None, Internal()] = None
    conduct_id: Annotated[UUID | None, Internal()] = None

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if procedure.live_conduct_id != self.conduct_id:
            raise live_conduct_refusal(self, procedure)
        if procedure.current_iteration_index is not None:
            raise self.cannot("iteration_open", f"Iteration {procedure.current_iteration_index} is open; end it first.")
        upcoming = procedure.iteration_count + 1
        if self.iteration_index != upcoming:
            raise self.cannot("index_out_of_turn", f"The next iteration is {upcoming}; give that index.", expected=upcoming)
        cap, streak = procedure.max_consecutive_unconverged_iterations, procedure.consecutive_unconverged_iterations
        if cap is not None and streak >= cap and procedure.conduct_mode is not ConductMode.ADVISED:
            why = f"{streak} passes in a row have not converged, and patience lasts for {cap}"
            raise ProcedureIterationLimitReachedError(
                f"{why}; complete or abort the procedure.", reason="cap_reached", facts={"streak": streak, "cap": cap}
            )
        return [procedures.ProcedureIterationStarted(**{name: value for name, value in self if name != "conduct_id"})]


@procedure.command(post="/{procedure_id}/iterations/end", name="end_iteration", verb="EndIteration", allowed=UNDER_WAY)
class EndProcedureIteration(Verb[Procedure]):
    """End the open pass, and say whether it converged."""

    iteration_index: Index
    converged: bool | None
    reason: Annotated[str, procedure.text("iteration_end_reason", 500, label="reason", personal=True)] | None = None
    advised_stop: Annotated[bool | None, Internal()] = None
    reasoning: Annotated[str | None, Internal()] = None
    confidence: Annotated[float | None, Internal()] = None
    confidence_source: Annotated[ConfidenceSource | None, Internal()] = None
    alternatives: Annotated[tuple[str, ...] | None, Internal()] = None
    model_ref: Annotated[str | None, Internal()] = None
    advised_next_point: Annotated[Point | None, Internal()] = None
    advised_by: Annotated[UUID | None, Internal()] = None
    advice_latency: Annotated[float | None, Internal(), Seconds] = None
    discarded: Annotated[bool, Internal()] = False
    measurements: Annotated[tuple[Measured, ...] | None, Internal()] = None
    conduct_id: Annotated[UUID | None, Internal()] = None

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if procedure.live_conduct_id != self.conduct_id:
            raise live_conduct_refusal(self, procedure)
        if procedure.current_iteration_index != self.iteration_index:
            current = procedure.current_iteration_index
            advice = "start one first." if current is None else f"iteration {current} is."
            raise self.cannot("not_open", f"Iteration {self.iteration_index} is not open; {advice}", open=current)
        return [procedures.ProcedureIterationEnded(**{name: value for name, value in self if name != "conduct_id"})]


class Iteration(AnswerForm):
    """One pass from beginning to end, with what a decider made of it."""

    iteration_index: int
    started_at: datetime
    ended_at: datetime | None = None
    converged: bool | None = None
    reason: str | None = None
    advised_stop: bool | None = None
    """Whether the decider said stop."""
    reasoning: str | None = None
    confidence: float | None = None
    confidence_source: ConfidenceSource | None = None
    alternatives: tuple[str, ...] | None = None
    model_ref: str | None = None
    point: Point | None = None
    measurements: tuple[Measured, ...] | None = None
    advised_next_point: Point | None = None
    """Where the decider wants to measure next: a coordinate for each axis."""
    advised_by: UUID | None = None
    """The actor who advised."""


class Iterations(AnswerForm):
    """Every pass of a procedure."""

    items: tuple[Iteration, ...]


@procedure.query(get="/{procedure_id}/iterations", returns=Iterations)
class ListProcedureIterations(Query[Iterations]):
    """Every pass of the procedure in order."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[Iterations]:
        events = yield from events_of(procedure.id, *MEASURED)
        return Iterations(items=tuple(iterations_of(events)))


MOST_PASSES, MOST_MEASURED = 20, 10  # Passes that a result shows, the last ones, and what it shows of each.
MeasuredEvent = procedures.PassEvent | procedures.ProcedureOutcomeRecorded
MEASURED = get_args(MeasuredEvent)


def measured_passes(events: Iterable[MeasuredEvent]) -> tuple[MeasuredPass, ...]:
    """Return the last passes that measured something, with the first of what they measured."""
    measured = [(one, one.measurements) for one in iterations_of(events) if one.measurements]
    return tuple(
        MeasuredPass(iteration_index=one.iteration_index, point=one.point or {}, measurements=found[:MOST_MEASURED])
        for one, found in measured[-MOST_PASSES:]
    )


def iterations_of(events: Iterable[MeasuredEvent]) -> list[Iteration]:
    """Return the passes that these events describe, in order."""
    found: dict[int, Iteration] = {}
    for event in events:
        index = event.iteration_index
        match event:
            case procedures.ProcedureIterationStarted():
                found[index] = Iteration(iteration_index=index, started_at=event.occurred_at, point=event.point)
            case procedures.ProcedureOutcomeRecorded():
                found[index] = found[index].model_copy(update={"point": event.point, "measurements": event.measurements})
            case procedures.ProcedureIterationEnded():
                ended = {name: value for name, value in event if name in Iteration.model_fields}
                if event.measurements is None:
                    del ended["measurements"]
                found[index] = found[index].model_copy(update={**ended, "ended_at": event.occurred_at})
    return [found[index] for index in sorted(found)]
