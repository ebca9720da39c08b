"""What a conductor does about passes: it begins each, judges or measures it, and ends it, each time on the record.

Everything here may be repeated: the stream says whether it was done already.
"""

from typing import Any
from uuid import UUID

import structlog

from baton.application.conduct.advice import Advisers
from baton.application.conduct.conduct_plan import ConductPlan, ConductPlans
from baton.application.conduct.heartbeat import Attempt
from baton.application.conduct.ledger import Ledger, Tally
from baton.application.conduct.procedure_stream import ConductRecord, refused
from baton.application.conduct.submitters import Submitters
from baton.application.ports import Clock, Store
from baton.application.record_reader import load_row
from baton.domain.operation.conduct.messages import MAX_PASSES, PassDecision, ConductVerdict, lifecycle_failure
from baton.domain.operation.conduct.progress import ConductPhase, ConductProgress
from baton.domain.operation.conduct.results import Failure, Measured
from baton.domain.operation.conduct.step_values import meets
from baton.domain.operation.procedure.iterations import (
    EndProcedureIteration,
    ProcedureIterationLimitReachedError,
    StartProcedureIteration,
)
from baton.domain.operation.procedure.procedure import (
    PendingRequest,
    Procedure,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
    ProcedureOutcomeRecorded,
)
from baton.domain.operation.steering.steered_conduct import RecordProcedureOutcome, spent_budget
from baton.domain.operation.steering.steering import Point, SteeringAdvice, SteeringVerdict
from baton.domain.shared.refusals import ConcurrencyError, UnauthorizedError

log = structlog.get_logger()


class Passes:
    """Turns the loops of conducts through the command path, as whoever asked for them."""

    def __init__(
        self,
        store: Store,
        record: ConductRecord,
        submitters: Submitters,
        clock: Clock,
        ledger: Ledger,
        scores: ConductPlans,
        advisers: Advisers,
    ) -> None:
        self._store = store
        self._record = record
        self._submitters = submitters
        self._clock = clock
        self._ledger = ledger
        self._scores = scores
        self._advisers = advisers

    async def start(self, procedure_id: UUID, conduct_id: UUID) -> PassDecision:
        """Begin the next pass, unless the loop has come to its end or something else stands in the way.

        Where it measures is what was advised last or, where nothing was measured before, where the search begins.
        """
        score, procedure = await self._live(procedure_id, conduct_id)
        if score is None or procedure is None or not score.loops:
            return PassDecision(verdict=ConductVerdict.GONE)
        point: Point | None = None
        if score.steering is not None and procedure.current_iteration_index is None:
            if procedure.iteration_count > score.iterations_before:
                point = (await self._record.happened(score, ProcedureIterationEnded))[-1].advised_next_point
            elif not score.stated_boundary:
                point = score.steering.space.first_point
            if point is None:
                return disbelieved(score, "start_pass")
        return await self._start(score, point, None)

    async def take_up(self, procedure_id: UUID, conduct_id: UUID, attempt: Attempt) -> PassDecision:
        """Ask where a search goes on that has measured before, and begin the pass that measures there.

        What was advised stands on the record with that pass, and nowhere else.
        """
        score, procedure = await self._live(procedure_id, conduct_id)
        if score is None or procedure is None or score.steering is None:
            return PassDecision(verdict=ConductVerdict.GONE)
        if procedure.current_iteration_index is not None:
            begun = (await self._record.happened(score, ProcedureIterationStarted))[-1]
            return PassDecision(verdict=ConductVerdict.DONE, iteration_index=begun.iteration_index, point=begun.point)
        said = await self._advisers.advice(score, procedure, procedure.iteration_count + 1, attempt)
        if isinstance(said, PassDecision):
            return said
        advice, _ = said
        if advice.verdict is SteeringVerdict.STOP:
            return PassDecision(verdict=ConductVerdict.DONE, stop=True)
        return await self._start(score, advice.next_point, advice)

    async def _start(self, score: ConductPlan, point: Point | None, advice: SteeringAdvice | None) -> PassDecision:
        conduct_id = score.conduct_id
        while True:
            procedure = await self._record.procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            if procedure.current_iteration_index is not None:
                begun = (await self._record.happened(score, ProcedureIterationStarted))[-1]
                return PassDecision(verdict=ConductVerdict.DONE, iteration_index=begun.iteration_index, point=begun.point)
            if (turn := await self._before_pass(score, procedure)) is not None:
                return turn
            index = procedure.iteration_count + 1
            command = StartProcedureIteration(iteration_index=index, conduct_id=conduct_id, point=point, advice=advice)
            try:
                await self._record.execute(score, command)
            except UnauthorizedError as denied:
                return await self._denied(score, "start", denied)
            except ProcedureIterationLimitReachedError:
                return PassDecision(verdict=ConductVerdict.FAILED, failure=cap_reached(procedure))
            except (ConcurrencyError, StartProcedureIteration.Cannot):
                continue
            return PassDecision(verdict=ConductVerdict.DONE, iteration_index=index, point=point)
        return PassDecision(verdict=ConductVerdict.GONE)

    async def _before_pass(self, score: ConductPlan, procedure: Procedure) -> PassDecision | None:
        """What keeps a pass from beginning, in the order of the turn."""
        progress = await load_row(self._store, ConductProgress, procedure_id=score.procedure_id)
        if progress is not None and progress.phase == ConductPhase.CLOSING.value:
            return disbelieved(score, "start_pass")
        orders = await self._submitters.orders(self._ledger, score)
        if (verdict := orders.verdict) is not None:
            return PassDecision(verdict=verdict)
        if procedure.iteration_count >= MAX_PASSES:
            message = f"The loop has come to {MAX_PASSES} passes, which none goes beyond."
            return PassDecision(verdict=ConductVerdict.FAILED, failure=lifecycle_failure("abort", "AbsoluteIterationCeilingReached", message))
        if score.convergence is not None:
            cap = score.convergence.max_consecutive_unconverged_iterations
            if cap is not None and procedure.consecutive_unconverged_iterations >= cap:
                return PassDecision(verdict=ConductVerdict.FAILED, failure=cap_reached(procedure))
        if score.steering is None:
            return None
        passes = procedure.iteration_count - score.iterations_before
        if (spent := spent_budget(score.steering, passes, score.started_at, self._clock())) is not None:
            return PassDecision(verdict=ConductVerdict.DONE, stop=True, termination_reason=spent)
        return None

    async def _denied(self, score: ConductPlan, target: str, denied: UnauthorizedError) -> PassDecision:
        """What a denied command means: the submitter stood down, or one permission was withdrawn."""
        if await self._submitters.lost(score.caller):
            return PassDecision(verdict=ConductVerdict.STOOD_DOWN)
        return PassDecision(verdict=ConductVerdict.FAILED, failure=refused(target, denied), denied=True)

    async def judge(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int) -> PassDecision:
        """Whether a pass that was walked to its end has converged, on the record."""
        score = await self._scores.score(procedure_id, conduct_id)
        while score is not None and score.convergence is not None:
            procedure = await self._record.procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            if procedure.current_iteration_index != iteration_index:
                ended = await self._ended(score, iteration_index)
                if ended is None:
                    return disbelieved(score, "judge_pass")
                return PassDecision(verdict=ConductVerdict.DONE, converged=bool(ended.converged))
            if procedure.pending_request is not None:
                return PassDecision(verdict=REQUESTED[procedure.pending_request])
            if not await self._is_walked(score, iteration_index):
                return disbelieved(score, "judge_pass")
            name = score.convergence.capture_name
            measured = await self._captured(score, iteration_index, name)
            if measured is None:
                return PassDecision(verdict=ConductVerdict.FAILED, failure=not_measured(name))
            criterion = score.convergence.criterion
            converged = meets(criterion, criterion.expected, measured)
            tally = await self._ledger.tally(conduct_id, iteration_index, of_pass=True)
            seen = with_captures(tally)
            if (turn := await self._try_end(score, iteration_index, converged=converged, measurements=seen)) is not None:
                return turn
        return PassDecision(verdict=ConductVerdict.GONE)

    async def record_outcome(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int) -> PassDecision:
        """Put on the record what a steered pass measured, once."""
        score, procedure = await self._live(procedure_id, conduct_id)
        if score is None or procedure is None or score.steering is None:
            return PassDecision(verdict=ConductVerdict.GONE)
        begun = (await self._record.happened(score, ProcedureIterationStarted))[-1:]
        if not begun or begun[0].iteration_index != iteration_index or not await self._is_walked(score, iteration_index):
            return disbelieved(score, "record_outcome")
        if procedure.pending_request is not None:
            return PassDecision(verdict=REQUESTED[procedure.pending_request])
        tally = await self._ledger.tally(conduct_id, iteration_index, of_pass=True)
        name, measurements = score.steering.objective_capture_name, tally.measurements
        measured = await self._captured(score, iteration_index, name)
        if measured is None:
            return PassDecision(verdict=ConductVerdict.FAILED, failure=not_measured(name))
        if not any(item.name == name for item in measurements):
            unit = tally.captures[name].unit if name in tally.captures else None
            measurements = (*measurements, Measured(name=name, value=measured, kind="Scalar", units=unit, quality="Good"))
        outcome = ProcedureOutcomeRecorded(
            iteration_index=iteration_index,
            point=begun[0].point or {},
            measurements=measurements,
            succeeded=True,
            actuation_kind=tally.actuation_kind,
        )
        await self._record.as_service(score, RecordProcedureOutcome(outcome=outcome))
        return PassDecision(verdict=ConductVerdict.DONE)

    async def advise(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, attempt: Attempt) -> PassDecision:
        """Have the decider say where to measure next, and end the open pass with what it said."""
        score = await self._scores.score(procedure_id, conduct_id)
        while score is not None and score.steering is not None:
            procedure = await self._record.procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            if procedure.current_iteration_index != iteration_index:
                ended = await self._ended(score, iteration_index)
                return disbelieved(score, "advise_pass") if ended is None else advised_at(ended)
            if not await self._is_walked(score, iteration_index):
                return disbelieved(score, "advise_pass")
            asked = self._clock()
            said = await self._advisers.advice(score, procedure, iteration_index, attempt)
            if isinstance(said, PassDecision):
                return said
            advice, adviser = said
            latency = (self._clock() - asked).total_seconds()
            turn = await self._try_end(score, iteration_index, **provenance(advice, adviser, latency))
            if turn is not None and turn.verdict is not ConductVerdict.DONE:
                return turn
        return PassDecision(verdict=ConductVerdict.GONE)

    async def _is_walked(self, score: ConductPlan, iteration_index: int) -> bool:
        """Whether the ledger shows a pass done to its last step."""
        last = score.last(iteration_index)
        return last is None or await self._ledger.has_passed(last)

    async def _captured(self, score: ConductPlan, iteration_index: int, name: str) -> Any:
        """What a pass has left in a slot; None where it has left nothing."""
        slots = await self._ledger.slots(score.procedure_id, score.conduct_id, iteration_index, 0)
        return next((row.content["value"] for row in slots if row.slot == name and "value" in row.content), None)

    async def _live(self, procedure_id: UUID, conduct_id: UUID) -> tuple[ConductPlan | None, Procedure | None]:
        """The score of a conduct and its procedure; None each where it is not the live one."""
        score = await self._scores.score(procedure_id, conduct_id)
        procedure = None if score is None else await self._record.procedure(score)
        return (score, procedure) if procedure is not None and procedure.live_conduct_id == conduct_id else (None, None)

    async def _try_end(self, score: ConductPlan, iteration_index: int, **fields: Any) -> PassDecision | None:
        """End a pass as the submitter, who must still stand behind it; None where the record is to be looked at again."""
        if await self._submitters.lost(score.caller):
            return PassDecision(verdict=ConductVerdict.STOOD_DOWN)
        command = EndProcedureIteration(
            iteration_index=iteration_index, conduct_id=score.conduct_id, **{"converged": None, **fields}
        )
        try:
            await self._record.execute(score, command)
        except UnauthorizedError as denied:
            return await self._denied(score, "abort", denied)
        except (ConcurrencyError, EndProcedureIteration.Cannot):
            return None
        return PassDecision(verdict=ConductVerdict.DONE, converged=fields.get("converged"))

    async def _ended(self, score: ConductPlan, iteration_index: int) -> ProcedureIterationEnded | None:
        """How a pass of this conduct ended; None where none of this index has."""
        events = await self._record.happened(score, ProcedureIterationEnded)
        known = (event for event in reversed(events) if event.iteration_index == iteration_index)
        return next(known, None) if iteration_index > score.iterations_before else None


def disbelieved(score: ConductPlan, asked: str) -> PassDecision:
    """The answer to what the record does not agree with: nothing is written, and whoever asked for it is gone."""
    log.warning("pass_out_of_turn", procedure_id=str(score.procedure_id), conduct_id=str(score.conduct_id), activity=asked)
    return PassDecision(verdict=ConductVerdict.GONE)


def with_captures(tally: Tally) -> tuple[Measured, ...]:
    """What a pass measured, and what it captured besides."""
    known = {item.name for item in tally.measurements}
    captured = (
        Measured(name=name, value=found.value, kind="Scalar", units=found.unit, quality="Good")
        for name, found in tally.captures.items()
        if name not in known
    )
    return (*tally.measurements, *captured)


REQUESTED = {PendingRequest.HOLD: ConductVerdict.HOLD, PendingRequest.ABORT: ConductVerdict.ABORT}


def not_measured(name: str) -> Failure:
    """The failure of a pass that did not bring what it is judged by."""
    message = f"The pass captured no {name}, by which it is judged."
    return Failure(source_kind="capture", target=name, error_class="ComputeMeasurementNotFound", message=message)


def cap_reached(procedure: Procedure) -> Failure:
    """The failure of a loop whose patience is at its end."""
    streak = procedure.consecutive_unconverged_iterations
    message = f"{streak} passes in a row have not converged, and patience lasts no longer."
    return lifecycle_failure("abort", "ConvergenceIterationCapReached", message)


def advised_at(ended: ProcedureIterationEnded) -> PassDecision:
    """What was advised at the end of a pass that is over already."""
    return PassDecision(verdict=ConductVerdict.DONE, stop=bool(ended.advised_stop), point=ended.advised_next_point)


def provenance(advice: SteeringAdvice, adviser: UUID | None, latency: float) -> dict[str, Any]:
    """What the end of a pass keeps of the advice it was given."""
    return {
        "advised_stop": advice.verdict is SteeringVerdict.STOP,
        "reasoning": advice.rationale,
        "confidence": advice.confidence,
        "confidence_source": advice.confidence_source,
        "alternatives": advice.alternatives or None,
        "model_ref": advice.model_ref,
        "advised_next_point": advice.next_point,
        "advised_by": adviser,
        "advice_latency": latency,
    }
