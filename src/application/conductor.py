"""What a conductor does between the steps: it begins, turns from pass to pass, closes and ends, each time on the record.

Everything here may be repeated: the stream says whether it was done already.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from application.commands import Commands
from application.deciders import FAULTS, Deciders, advice_from
from application.ledger import Ledger, Orders
from application.ports import Authorizer, Caller, Clock, Store
from application.pulse import Attempt
from application.scores import Score, Scores
from application.steps import Steps
from application.unit import decoded
from domain.access.actor import Actor, ActorKind, ActorStatus
from domain.kernel import Command, Event
from domain.operation.actuation import merged_kind
from domain.operation.deciding import CallerDecide
from domain.operation.iterations import (
    EndProcedureIteration,
    ProcedureIterationLimitReachedError,
    StartProcedureIteration,
)
from domain.operation.judging import meets
from domain.operation.procedure import (
    ConductMode,
    HoldCause,
    PendingRequest,
    Procedure,
    ProcedureAbortRequested,
    ProcedureAdvised,
    ProcedureHoldRequested,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
    ProcedureOutcomeRecorded,
)
from domain.operation.progress import WaitingFor
from domain.operation.results import Artifact, ConductResult, Failure, Measured, TerminationReason
from domain.operation.steered import RecordProcedureOutcome, advice_given, evidence_of, remaining
from domain.operation.steering import Point, SteeringAdvice, SteeringVerdict
from domain.operation.stopping import (
    EXPIRED,
    AbortProcedure,
    CompleteProcedure,
    HoldProcedure,
    RecordConductEnd,
    given_up,
)
from domain.operation.walking import (
    CEILING,
    REASON,
    Briefing,
    Finish,
    Outcome,
    Place,
    Turn,
    Verdict,
    failure_of,
    holds,
    lifecycle,
    reason_of,
)
from domain.run.run import Run, RunAborted, RunStatus, RunStopped
from domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError

E = TypeVar("E", bound=Event)

POLL = 1.0
"""Seconds between two looks at the record while a conduct waits."""
FIRST_POLL = 0.05
"""Seconds before the first look for advice, which a program may give at once; the longer it takes, the more."""


class Conductor:
    """Acts for conducts through the command path, as whoever asked for them."""

    def __init__(
        self,
        store: Store,
        commands: Commands,
        authorizer: Authorizer,
        clock: Clock,
        ledger: Ledger,
        scores: Scores,
        steps: Steps,
        deciders: Deciders,
        facility_code: str,
    ) -> None:
        self._store = store
        self._commands = commands
        self._authorizer = authorizer
        self._clock = clock
        self._ledger = ledger
        self._scores = scores
        self._steps = steps
        self._deciders = deciders
        self._facility_code = facility_code

    async def brief(self, procedure_id: UUID, conduct_id: UUID) -> Briefing | None:
        """What there is to conduct; None where the conduct is not the live one, or it was left too long to begin."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None:
            return None
        if self._clock() - score.started_at > timedelta(seconds=self._steps.limits.restart):
            result = given_up(procedure_id, conduct_id, score.command_name, EXPIRED)
            await self._inner(score, RecordConductEnd(result=result, abort_reason=reason_of(EXPIRED)))
            return None
        await self._ledger.wait(procedure_id, conduct_id, None)
        procedure = await self._procedure(score)
        if (left_open := procedure.current_iteration_index) is not None:
            await self._end_pass(score, left_open, None, "The conduct that began it was lost.")
        measured = await self._happened(score, ProcedureOutcomeRecorded) if score.steering is not None else ()
        return Briefing(
            command_name=score.command_name,
            mode=score.mode,
            step_count=len(score.steps),
            closing_count=len(score.closing_steps),
            boundary=score.boundary,
            ahead=self._steps.ahead(score.steps[score.boundary] if score.boundary < len(score.steps) else None),
            closing_ahead=self._steps.ahead(score.closing_steps[0] if score.closing_steps else None),
            loop_ahead=self._steps.ahead(score.steps[0] if score.steps else None),
            asks_first=bool(measured),
            asset_ids=score.target_asset_ids,
            run_id=score.run_id,
            facility_code=self._facility_code,
            advised_from_outside=score.steering is not None and isinstance(score.steering.decide, CallerDecide),
            first_point=None if score.steering is None else score.steering.space.first_point,
        )

    async def start_pass(self, procedure_id: UUID, conduct_id: UUID, passes: int, point: Point | None) -> Turn:
        """Begin the next pass, unless the loop has come to its end or something else stands in the way."""
        score = await self._scores.score(procedure_id, conduct_id)
        return Turn(verdict=Verdict.GONE) if score is None else await self._start_pass(score, passes, point, None)

    async def take_up(self, procedure_id: UUID, conduct_id: UUID, attempt: Attempt) -> Turn:
        """Ask where a search goes on that has measured before, and begin the pass that measures there.

        What was advised stands on the record with that pass, and nowhere else.
        """
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None or score.steering is None:
            return Turn(verdict=Verdict.GONE)
        procedure = await self._procedure(score)
        if procedure.live_conduct_id != conduct_id:
            return Turn(verdict=Verdict.GONE)
        if procedure.current_iteration_index is not None:
            begun = (await self._happened(score, ProcedureIterationStarted))[-1]
            return Turn(verdict=Verdict.DONE, iteration_index=begun.iteration_index, point=begun.point)
        said = await self._advice(score, procedure, procedure.iteration_count + 1, 0, attempt)
        if isinstance(said, Turn):
            return said
        advice, _ = said
        if advice.verdict is SteeringVerdict.STOP:
            return Turn(verdict=Verdict.DONE, stop=True)
        return await self._start_pass(score, 0, advice.next_point, advice)

    async def _start_pass(self, score: Score, passes: int, point: Point | None, advice: SteeringAdvice | None) -> Turn:
        conduct_id = score.conduct_id
        while True:
            procedure = await self._procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            if (begun := procedure.current_iteration_index) is not None:
                return Turn(verdict=Verdict.DONE, iteration_index=begun, point=point)
            if (turn := await self._before_pass(score, procedure, passes)) is not None:
                return turn
            index = procedure.iteration_count + 1
            command = StartProcedureIteration(iteration_index=index, conduct_id=conduct_id, point=point, advice=advice)
            try:
                await self._execute(score, command)
            except UnauthorizedError as denied:
                return Turn(verdict=Verdict.FAILED, failure=refused("start", denied), denied=True)
            except ProcedureIterationLimitReachedError:
                return Turn(verdict=Verdict.FAILED, failure=cap_reached(procedure))
            except (ConcurrencyError, StartProcedureIteration.Cannot):
                continue
            return Turn(verdict=Verdict.DONE, iteration_index=index, point=point)
        return Turn(verdict=Verdict.GONE)

    async def _before_pass(self, score: Score, procedure: Procedure, passes: int) -> Turn | None:
        """What keeps a pass from beginning, in the order of the turn."""
        orders = await self._ledger.beat(place_of(score), None, score.run_id)
        if (verdict := ordered(orders)) is not None:
            return Turn(verdict=verdict)
        if procedure.iteration_count >= CEILING:
            message = f"The loop has come to {CEILING} passes, which none goes beyond."
            return Turn(verdict=Verdict.FAILED, failure=lifecycle("abort", "AbsoluteIterationCeilingReached", message))
        if score.convergence is not None:
            cap = score.convergence.max_consecutive_unconverged_iterations
            if cap is not None and procedure.consecutive_unconverged_iterations >= cap:
                return Turn(verdict=Verdict.FAILED, failure=cap_reached(procedure))
        if score.steering is None:
            return None
        if (standing_down := await self._stood_down(score)) is not None:
            return Turn(verdict=Verdict.HOLD, stood_down=True, failure=standing_down)
        left = remaining(score.steering, passes, score.started_at, self._clock())
        if left.iterations_remaining == 0:
            return Turn(verdict=Verdict.DONE, stop=True, termination_reason=TerminationReason.ITERATIONS)
        if left.wall_clock_remaining == 0:
            return Turn(verdict=Verdict.DONE, stop=True, termination_reason=TerminationReason.WALL_CLOCK)
        return None

    async def _stood_down(self, score: Score) -> Failure | None:
        """Why an agent that steers must not go on; people and machines are not asked again."""
        async with self._store.session() as session:
            rows = await session.load(Actor.__name__, [score.principal_id])
        actor: Actor | None = Actor.aggregate.replay(rows)
        if actor is None or actor.kind is not ActorKind.AGENT:
            return None
        verdict = await self._authorizer.authorize(self._caller(score), score.command_name)
        if actor.status is ActorStatus.ACTIVE and verdict.reason != "agent_not_versioned":
            return None
        return stood_down("The agent that steers is not in service any more.")

    async def judge(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int) -> Turn:
        """Whether a pass that was walked to its end has converged, on the record."""
        score = await self._scores.score(procedure_id, conduct_id)
        while score is not None and score.convergence is not None:
            procedure = await self._procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            if procedure.current_iteration_index != iteration_index:
                ended = await self._ended(score, iteration_index)
                return Turn(verdict=Verdict.DONE, converged=bool(ended.converged))
            if procedure.pending_request is not None:
                return Turn(verdict=REQUESTED[procedure.pending_request])
            name = score.convergence.capture_name
            slots = await self._ledger.slots(procedure_id, conduct_id, iteration_index, 0)
            found = next((row.content["value"] for row in slots if row.slot == name and "value" in row.content), None)
            if found is None:
                return Turn(verdict=Verdict.FAILED, failure=not_measured(name))
            criterion = score.convergence.criterion
            converged = meets(criterion, criterion.expected, found)
            if (turn := await self._try_end(score, iteration_index, converged=converged)) is not None:
                return turn
        return Turn(verdict=Verdict.GONE)

    async def record_outcome(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, point: Point) -> Turn:
        """Put on the record what a steered pass measured, once."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None or score.steering is None:
            return Turn(verdict=Verdict.GONE)
        procedure = await self._procedure(score)
        if procedure.live_conduct_id != conduct_id:
            return Turn(verdict=Verdict.GONE)
        if procedure.pending_request is not None:
            return Turn(verdict=REQUESTED[procedure.pending_request])
        tally = await self._ledger.tally(procedure_id, conduct_id, iteration_index)
        name, measurements = score.steering.objective_capture_name, tally.measurements
        slots = await self._ledger.slots(procedure_id, conduct_id, iteration_index, 0)
        found = next((row.content["value"] for row in slots if row.slot == name and "value" in row.content), None)
        if found is None:
            return Turn(verdict=Verdict.FAILED, failure=not_measured(name))
        if not any(item.name == name for item in measurements):
            measurements = (*measurements, Measured(name=name, value=found, kind="Scalar", quality="Good"))
        outcome = ProcedureOutcomeRecorded(
            iteration_index=iteration_index,
            point=point,
            measurements=measurements,
            succeeded=True,
            actuation_kind=tally.actuation_kind,
        )
        await self._inner(score, RecordProcedureOutcome(outcome=outcome))
        return Turn(verdict=Verdict.DONE)

    async def advise(
        self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, passes: int, attempt: Attempt
    ) -> Turn:
        """Have the decider say where to measure next, and end the open pass with what it said."""
        score = await self._scores.score(procedure_id, conduct_id)
        while score is not None and score.steering is not None:
            procedure = await self._procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            if procedure.current_iteration_index != iteration_index:
                return advised_at(await self._ended(score, iteration_index))
            asked = self._clock()
            said = await self._advice(score, procedure, iteration_index, passes, attempt)
            if isinstance(said, Turn):
                return said
            advice, adviser = said
            latency = (self._clock() - asked).total_seconds()
            ended = await self._try_end(score, iteration_index, **provenance(advice, adviser, latency))
            if ended is not None and ended.verdict is not Verdict.DONE:
                return ended
        return Turn(verdict=Verdict.GONE)

    async def _advice(
        self, score: Score, procedure: Procedure, iteration_index: int, passes: int, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | Turn:
        """What the decider says, and who it is where that is somebody; a decider that fails fails the conduct."""
        assert score.steering is not None, "only a steered conduct is advised"
        try:
            return await self._said(score, procedure, iteration_index, passes, attempt)
        except FAULTS as fault:
            failure = Failure(
                source_kind="decide",
                target=score.steering.objective_capture_name,
                error_class=type(fault).__name__,
                message=str(fault)[:REASON],
            )
            return Turn(verdict=Verdict.FAILED, failure=failure)

    async def _said(
        self, score: Score, procedure: Procedure, iteration_index: int, passes: int, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | Turn:
        """The advice and who gave it; or what came up while it was waited for."""
        assert score.steering is not None, "only a steered conduct is advised"
        decide = score.steering.decide
        if isinstance(decide, CallerDecide):
            within = procedure.current_iteration_index is not None
            return await self._told(score, iteration_index, within, decide, attempt)
        outcomes = await self._happened(score, ProcedureOutcomeRecorded)
        left = remaining(score.steering, passes, score.started_at, self._clock())
        decider = await self._deciders.decider(decide)
        asking = asyncio.ensure_future(advice_from(decider, evidence_of(procedure, score.steering, outcomes, left)))
        try:
            while not (await asyncio.wait({asking}, timeout=POLL))[0]:
                attempt.alive()
                orders = await self._ledger.beat(place_of(score), None, score.run_id)
                if (verdict := ordered(orders)) in (Verdict.ABORT, Verdict.RUN_ABORTED, Verdict.GONE):
                    return Turn(verdict=verdict)
            return await asking, None
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await decider.close()

    async def _told(
        self, score: Score, iteration_index: int, within: bool, decide: CallerDecide, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | Turn:
        """What an outside decider says, as soon as it does; a hold or an abort is served while it is waited for."""
        deadline = await self._deadline(score, iteration_index, decide)
        await self._ledger.wait(score.procedure_id, score.conduct_id, WaitingFor.ADVICE, deadline)
        heard = await self._listened(score, iteration_index, within, deadline, attempt)
        await self._ledger.wait(score.procedure_id, score.conduct_id, None)
        return heard

    async def _listened(
        self, score: Score, iteration_index: int, within: bool, deadline: datetime, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | Turn:
        """What is said until the deadline, looked for again and again."""
        pause = FIRST_POLL
        while True:
            attempt.alive()
            events = await self._happened(score, ProcedureIterationStarted, ProcedureAdvised)
            said = advice_given(events, score.conduct_id, iteration_index, within=within)
            if said is not None:
                return said.advice, said.advised_by
            orders = await self._ledger.beat(place_of(score), None, score.run_id)
            if (verdict := ordered(orders)) is not None and verdict is not Verdict.RUN_HELD:
                return Turn(verdict=verdict)
            if self._clock() >= deadline:
                return Turn(verdict=Verdict.HOLD, stood_down=True, failure=stood_down("Nobody advised in time."))
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, POLL)

    async def _deadline(self, score: Score, iteration_index: int, decide: CallerDecide) -> datetime:
        """Until when advice is waited for: counted from what was recorded last, so that a restart grants no more."""
        outcomes = [
            one for one in await self._happened(score, ProcedureOutcomeRecorded) if one.iteration_index == iteration_index
        ]
        since = outcomes[-1].occurred_at if outcomes else score.started_at
        return since + timedelta(seconds=decide.advice_timeout)

    async def await_run(self, procedure_id: UUID, conduct_id: UUID, attempt: Attempt) -> Verdict:
        """Wait while the parent run is held; answers what the conduct is to do then."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None:
            return Verdict.GONE
        await self._ledger.wait(procedure_id, conduct_id, WaitingFor.RUN)
        verdict: Verdict | None = Verdict.RUN_HELD
        while verdict is Verdict.RUN_HELD:
            attempt.alive()
            verdict = ordered(await self._ledger.beat(place_of(score), None, score.run_id))
            if verdict is Verdict.RUN_HELD:
                await asyncio.sleep(POLL)
        await self._ledger.wait(procedure_id, conduct_id, None)
        return verdict or Verdict.DONE

    async def begin_closing(self, procedure_id: UUID, conduct_id: UUID, outcome: Outcome) -> Verdict:
        """Close the open pass and mark that closing begins, unless something was asked for before."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None:
            return Verdict.GONE
        run_id = None if score.closing_only else score.run_id
        orders = await self._ledger.begin_closing(procedure_id, conduct_id, run_id, may_hold=not outcome.denied)
        verdict = ordered(orders)
        if verdict in (Verdict.GONE, Verdict.ABORT, Verdict.RUN_ABORTED, Verdict.HOLD):
            return verdict
        await self._close_pass(score, outcome)
        return Verdict.DONE

    async def end(self, procedure_id: UUID, conduct_id: UUID, outcome: Outcome, closed: bool) -> Failure | None:
        """Put the end of a conduct on the record.

        Where its submitter may not end it, the service does, naming who that was; but what was not closed must be closed
        before, and then the failure is answered and nothing is written.
        """
        score = await self._scores.score(procedure_id, conduct_id)
        while score is not None:
            procedure = await self._procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            await self._close_pass(score, outcome)
            try:
                await (self._record_denied if outcome.denied else self._record_end)(score, procedure, outcome)
            except UnauthorizedError as denied:
                failure = refused("complete" if outcome.finish is Finish.COMPLETED else "abort", denied)
                outcome = outcome.model_copy(update={"denied": True, "failure": failure})
                if not closed and procedure.pending_request is not PendingRequest.ABORT:
                    return failure
            except ConcurrencyError:
                continue
            except Refusal as refusal:
                procedure = await self._procedure(score)
                if procedure.live_conduct_id == conduct_id and refusal.reason != "request_pending":
                    await self._record_refused(score, procedure, outcome, refusal)
        self._scores.forget(conduct_id)
        return None

    async def _record_end(self, score: Score, procedure: Procedure, outcome: Outcome) -> None:
        """The command that the end of the conduct comes to."""
        if procedure.pending_request is PendingRequest.ABORT:
            asked = (await self._happened(score, ProcedureAbortRequested))[-1]
            aborted = outcome.model_copy(update={"finish": Finish.ABORTED})
            result = await self._told_result(score, procedure, aborted)
            await self._execute(score, AbortProcedure(reason=asked.reason, conducted=result))
            return
        if procedure.pending_request is PendingRequest.HOLD and outcome.finish is Finish.HALTED:
            outcome = outcome.model_copy(update={"finish": Finish.HELD})
        result = await self._told_result(score, procedure, outcome)
        match outcome.finish:
            case Finish.COMPLETED if score.closing_only:
                asked = (await self._happened(score, ProcedureAbortRequested))[-1]
                await self._execute(score, AbortProcedure(reason=asked.reason, conducted=result))
            case Finish.COMPLETED:
                await self._execute(score, CompleteProcedure(conducted=result))
            case Finish.HELD | Finish.STOOD_DOWN:
                await self._hold(score, procedure, outcome, result)
            case Finish.FAILED if holds(score.command_name, outcome.failure):
                await self._hold(score, procedure, outcome, result)
            case Finish.HALTED:
                await self._inner(score, RecordConductEnd(result=result))
            case Finish.FAILED | Finish.ABORTED | Finish.STOPPED | Finish.CANCELLED:
                await self._execute(score, AbortProcedure(reason=await self._why(score, outcome), conducted=result))
            case Finish.GONE:
                raise AssertionError("what is gone has ended")

    async def _hold(self, score: Score, procedure: Procedure, outcome: Outcome, result: ConductResult) -> None:
        """Leave the procedure Held: for whoever asked, for a step that failed, or because nobody steers any more."""
        if procedure.pending_request is PendingRequest.HOLD:
            asked = (await self._happened(score, ProcedureHoldRequested))[-1]
            command = HoldProcedure(
                reason=asked.reason, decided_by_decision_id=asked.decided_by_decision_id, conducted=result
            )
        else:
            assert outcome.failure is not None, "nobody asked, so something failed"
            cause = HoldCause.DRIVER_STOOD_DOWN if outcome.finish is Finish.STOOD_DOWN else HoldCause.STEP_FAULT
            command = HoldProcedure(reason=reason_of(outcome.failure), cause=cause, conducted=result)
        await self._execute(score, command)

    async def _why(self, score: Score, outcome: Outcome) -> str:
        """The reason of an abort that nobody asked the procedure for."""
        if outcome.finish is Finish.CANCELLED:
            return "conduct cancelled"
        if outcome.finish in (Finish.STOPPED, Finish.ABORTED) and score.run_id is not None:
            async with self._store.session() as session:
                wanted = [event.__name__ for event in (RunStopped, RunAborted)]
                rows = await session.load_of(Run.__name__, score.run_id, wanted)
            ending: Any = decoded(Run.aggregate, rows[-1])
            return str(ending.reason)
        assert outcome.failure is not None, "an abort has a reason"
        return reason_of(outcome.failure)

    async def _record_denied(self, score: Score, procedure: Procedure, outcome: Outcome) -> None:
        """End what its submitter may not end any more, as the service itself."""
        assert outcome.failure is not None, "something was denied"
        result = await self._told_result(score, procedure, outcome)
        reason = f"The principal {score.principal_id} may not go on with this: {outcome.failure.message}"[:REASON]
        await self._inner(score, RecordConductEnd(result=ended_badly(result), abort_reason=reason))

    async def _record_refused(self, score: Score, procedure: Procedure, outcome: Outcome, refusal: Refusal) -> None:
        """End a conduct whose last command was refused; the status stays, and the first failure is what is told."""
        target = "complete" if outcome.finish is Finish.COMPLETED else "abort"
        failure = outcome.failure or lifecycle(target, refusal.code, refusal.detail)
        result = await self._told_result(score, procedure, outcome.model_copy(update={"failure": failure}))
        await self._inner(score, RecordConductEnd(result=ended_badly(result)))

    async def _told_result(self, score: Score, procedure: Procedure, outcome: Outcome) -> ConductResult:
        """The result as the ledger and the outcome have it."""
        loop = score.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)
        tally = await self._ledger.tally(score.procedure_id, score.conduct_id, procedure.iteration_count if loop else 0)
        outputs = {**(await self._kept(score) if score.resumed else {}), **tally.outputs}
        closing = {failure.step_index: failure for failure in (*self._cut(score, outcome), *tally.closing_failures)}
        result = self._result(score, outcome)
        return result.model_copy(
            update={
                "iteration_count": procedure.iteration_count if loop else None,
                "actuation_kind": merged_kind((procedure.actuation_kind, tally.actuation_kind)),
                "measurements": tally.measurements,
                "artifacts": tally.artifacts,
                "outputs": outputs,
                "substrate_writes": dict(tally.substrate_writes),
                "closing_failures": tuple(closing[index] for index in sorted(closing, key=lambda index: index or 0)),
            }
        )

    async def _kept(self, score: Score) -> dict[str, Artifact]:
        """The outputs of earlier conducts that a conduct which goes on has found."""
        rows = await self._ledger.slots(score.procedure_id, score.conduct_id, 0, score.boundary)
        return {
            row.slot: Artifact(**row.content["artifact"]) for row in rows if "artifact" in row.content and not row.closing
        }

    def _cut(self, score: Score, outcome: Outcome) -> Sequence[Failure]:
        """The closing steps that an abort kept from being done."""
        if outcome.closing_cut_at is None:
            return ()
        left = list(enumerate(score.closing_steps))[outcome.closing_cut_at :]
        message = "An abort stopped the closing steps before this one."
        return [failure_of(step, index, "ClosingCancelled", message) for index, step in left]

    def _result(self, score: Score, outcome: Outcome) -> ConductResult:
        held = outcome.finish in (Finish.HELD, Finish.STOOD_DOWN) or (
            outcome.finish is Finish.FAILED and holds(score.command_name, outcome.failure)
        )
        failure = outcome.failure or UNASKED.get(outcome.finish)
        return ConductResult(
            procedure_id=score.procedure_id,
            conduct_id=score.conduct_id,
            command_name=score.command_name,
            succeeded=failure is None,
            completed_count=outcome.completed_count,
            failure=failure,
            held=held,
            acquisition_halt=outcome.finish is Finish.HALTED,
            re_establishment_boundary=score.stated_boundary,
            termination_reason=outcome.termination_reason,
        )

    async def _close_pass(self, score: Score, outcome: Outcome) -> None:
        """End a pass that is still open, before anything else ends."""
        procedure = await self._procedure(score)
        while (index := procedure.current_iteration_index) is not None and procedure.live_conduct_id == score.conduct_id:
            failed = outcome.failure is not None and outcome.finish is not Finish.HELD
            reason = reason_of(outcome.failure) if failed and outcome.failure else outcome.finish.value
            await self._end_pass(score, index, None, reason)
            procedure = await self._procedure(score)

    async def _end_pass(self, score: Score, index: int, converged: bool | None, reason: str) -> None:
        """End a pass by the service itself: whoever may not end a conduct must not leave its pass open."""
        command = EndProcedureIteration(
            iteration_index=index, converged=converged, reason=reason[:REASON], conduct_id=score.conduct_id
        )
        await self._inner(score, command)

    async def _try_end(self, score: Score, iteration_index: int, **fields: Any) -> Turn | None:
        """End a pass as the submitter; None where the record moved meanwhile and is to be looked at again."""
        command = EndProcedureIteration(
            iteration_index=iteration_index, conduct_id=score.conduct_id, **{"converged": None, **fields}
        )
        try:
            await self._execute(score, command)
        except UnauthorizedError as denied:
            return Turn(verdict=Verdict.FAILED, failure=refused("abort", denied), denied=True)
        except (ConcurrencyError, EndProcedureIteration.Cannot):
            return None
        return Turn(verdict=Verdict.DONE, converged=fields.get("converged"))

    async def _ended(self, score: Score, iteration_index: int) -> ProcedureIterationEnded:
        events = await self._happened(score, ProcedureIterationEnded)
        return next(event for event in reversed(events) if event.iteration_index == iteration_index)

    async def _execute(self, score: Score, command: Command) -> None:
        await self._commands.execute(command, self._caller(score), target_id=score.procedure_id)

    async def _inner(self, score: Score, command: Command) -> None:
        """Give a command as the service itself, until it is on the record."""
        caller = Caller.system(score.correlation_id)
        while True:
            try:
                await self._commands.execute(command, caller, target_id=score.procedure_id)
                return
            except ConcurrencyError:
                await asyncio.sleep(0)

    def _caller(self, score: Score) -> Caller:
        return Caller(
            principal_id=score.principal_id,
            surface_id=score.surface_id,
            conduit_id=score.conduit_id,
            correlation_id=score.correlation_id,
            causation_id=score.conduct_id,
        )

    async def _procedure(self, score: Score) -> Procedure:
        async with self._store.session() as session:
            rows = await session.load(Procedure.__name__, [score.procedure_id])
        procedure: Procedure | None = Procedure.aggregate.replay(rows)
        assert procedure is not None, "a conduct has a procedure"
        return procedure

    async def _happened(self, score: Score, *events: type[E]) -> Sequence[E]:
        async with self._store.session() as session:
            rows = await session.load_of(Procedure.__name__, score.procedure_id, [event.__name__ for event in events])
        return [decoded(Procedure.aggregate, row) for row in rows]  # type: ignore[misc]


REQUESTED = {PendingRequest.HOLD: Verdict.HOLD, PendingRequest.ABORT: Verdict.ABORT}
UNASKED = {
    Finish.HELD: lifecycle("hold", "ProcedureHeldByOperator", "The procedure was held as asked."),
    Finish.ABORTED: lifecycle("abort", "ProcedureAborted", "The conduct was aborted as asked."),
    Finish.STOPPED: lifecycle("abort", "RunStopped", "The parent run was stopped."),
    Finish.CANCELLED: lifecycle("abort", "CancelledError", "The conduct was cancelled in the engine."),
    Finish.HALTED: lifecycle(
        "hold",
        "AcquisitionResumeRequiresOperator",
        "The next step was begun by an earlier conduct and is not repeated; settle it by hand first.",
    ),
}
"""What a result says of an end that no step failed in."""


def ordered(orders: Orders) -> Verdict | None:
    """What the record says to a conduct, the gravest first; None where it may go on."""
    if not orders.live:
        return Verdict.GONE
    if orders.asked is PendingRequest.ABORT:
        return Verdict.ABORT
    if orders.run is RunStatus.ABORTED:
        return Verdict.RUN_ABORTED
    if orders.asked is PendingRequest.HOLD:
        return Verdict.HOLD
    if orders.run is RunStatus.STOPPED:
        return Verdict.RUN_STOPPED
    return None if orders.run in (None, RunStatus.RUNNING) else Verdict.RUN_HELD


def place_of(score: Score) -> Place:
    """A conduct between two steps."""
    return Place(procedure_id=score.procedure_id, conduct_id=score.conduct_id, step_index=0)


def not_measured(name: str) -> Failure:
    """The failure of a pass that did not bring what it is judged by."""
    message = f"The pass captured no {name}, by which it is judged."
    return Failure(source_kind="capture", target=name, error_class="ComputeMeasurementNotFound", message=message)


def cap_reached(procedure: Procedure) -> Failure:
    """The failure of a loop whose patience is at its end."""
    streak = procedure.consecutive_unconverged_iterations
    message = f"{streak} passes in a row have not converged, and patience lasts no longer."
    return lifecycle("abort", "ConvergenceIterationCapReached", message)


def stood_down(message: str) -> Failure:
    """Why a search waits for somebody to steer it."""
    return lifecycle("hold", "SteeringDriverStoodDown", message)


def refused(target: str, denied: UnauthorizedError) -> Failure:
    """The failure of a conduct whose submitter was denied one of its commands."""
    return lifecycle(target, "UnauthorizedError", denied.detail)


def ended_badly(result: ConductResult) -> ConductResult:
    """The result of a conduct that did not come to the end it was bound for."""
    return result.model_copy(update={"succeeded": False, "held": False})


def advised_at(ended: ProcedureIterationEnded) -> Turn:
    """What was advised at the end of a pass that is over already."""
    return Turn(verdict=Verdict.DONE, stop=bool(ended.advised_stop), point=ended.advised_next_point)


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
