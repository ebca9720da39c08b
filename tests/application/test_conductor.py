"""How a conductor waits, closes and ends: each time on the record, and however often it is asked, once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton.application.authorization import PrincipalStandings
from baton.application.conduct.conduct_plan import ConductPlans
from baton.application.control import Reading
from baton.application.ports import Batch, StoreUnavailableError, StreamAppend
from baton.domain.kernel import NIL, Call
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductUntilConverged
from baton.domain.operation.conduct.messages import ConductOutcome, ConductVerdict, Finish, lifecycle_failure
from baton.domain.operation.conduct.progress import ABORT_ASKED, HOLD_ASKED
from baton.domain.operation.conduct.results import (
    BestPoint,
    CapturedValue,
    ConductResult,
    Failure,
    LastObjective,
    TerminationReason,
)
from baton.domain.operation.procedure.endings import AbortProcedure, HoldProcedure, TruncateProcedure
from baton.domain.operation.procedure.procedure import (
    HoldCause,
    ProcedureAbortRequested,
    ProcedureConducted,
    ProcedureHeld,
    ProcedureIterationEnded,
    ProcedureOutcomeRecorded,
    ProcedureStatus,
)
from baton.domain.run.run import RunAborted, RunResumed, RunStopped
from baton.domain.shared.writes import Enlist
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.compute.in_memory import Simulated
from baton.testing.store import MemoryStore
from tests.application.loops import (
    ASKED,
    CENTRED,
    HELD_RUN,
    RUN_LIVES,
    asked,
    converged,
    converging,
    passed,
    searching,
    twice,
)
from tests.application.rehearsal import ENDING, STOOD_DOWN, Live, Permits, Rehearsal, Try, measured, rehearsed
from tests.domain.world import OPERATOR, new_id
from tests.timekeeping import LoopTime
from tests.workflows.steps import action, capture, compute, setpoint


async def test_a_score_that_is_asked_for_twice_at_once_weighs_once(rehearsal: Rehearsal) -> None:
    conduct, scores = await rehearsal.opened([setpoint("bl7:a", 3)]), ConductPlans(rehearsal.store)
    first, second = await asyncio.gather(*(scores.score(*conduct.ids) for _ in range(2)))
    assert first == second
    assert first is not None
    assert scores._steps == first.weight == 1


class TestWaitingForTheRun:
    @pytest.mark.parametrize(
        ("event", "verdict"),
        [
            (RunResumed(decided_by_decision_id=None), ConductVerdict.DONE),
            (RunStopped(reason="enough", **ENDING), ConductVerdict.RUN_STOPPED),
            (RunAborted(reason="smoke", **ENDING), ConductVerdict.RUN_ABORTED),
        ],
    )
    async def test_a_phase_waits_until_its_run_goes_on_or_ends(
        self, rehearsal: Rehearsal, event: Any, verdict: ConductVerdict
    ) -> None:
        run_id = await rehearsal.run()
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], run_id=run_id)
        await rehearsal.happens(run_id, HELD_RUN.model_copy())
        attempt = Try()
        waiting = asyncio.create_task(rehearsal.conductor.await_run(*conduct.ids, attempt))
        await rehearsal.time.sleep(1000)
        assert (rehearsal.progress(conduct).phase, rehearsal.progress(conduct).waiting_for) == ("Waiting", "run")
        assert rehearsal.procedure(conduct).status is ProcedureStatus.RUNNING
        await rehearsal.happens(run_id, event.model_copy())
        assert await waiting is verdict
        assert attempt.signs == pytest.approx(1000, abs=2)
        assert (rehearsal.progress(conduct).phase, rehearsal.progress(conduct).waiting_for) == ("Walking", None)
        if verdict is ConductVerdict.DONE:
            assert (await rehearsal.step(conduct)).verdict is ConductVerdict.DONE, "the wait does not count"

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_is_served_meanwhile(self, rehearsal: Rehearsal, requests: Any, verdict: ConductVerdict) -> None:
        run_id = await rehearsal.run()
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], run_id=run_id)
        await rehearsal.happens(run_id, HELD_RUN.model_copy())
        waiting = asyncio.create_task(rehearsal.conductor.await_run(*conduct.ids, Try()))
        await rehearsal.time.sleep(10)
        await asked(rehearsal, conduct, *requests)
        assert await waiting is verdict

    async def test_what_has_ended_waits_for_nothing(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        await rehearsal.relieved().conductor.end(*conduct.ids, STOOD_DOWN, closed=False)
        assert await rehearsal.conductor.await_run(*conduct.ids, Try()) is ConductVerdict.GONE


class TestBeginningToClose:
    async def test_a_pass_that_is_open_is_ended_first(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        failed = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))
        verdict = await twice(rehearsal, conduct, lambda stand: stand.conductor.begin_closing(*conduct.ids, failed))
        assert verdict is ConductVerdict.DONE
        ended = rehearsal.events(conduct)[-1]
        assert (ended.converged, ended.reason) == (None, "lifecycle abort failed: Broken: It broke.")
        assert rehearsal.progress(conduct).phase == "Closing"

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_what_was_asked_for_before_is_served_instead(
        self, rehearsal: Rehearsal, requests: Any, verdict: ConductVerdict
    ) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        await asked(rehearsal, conduct, *requests)
        outcome = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))
        found = await twice(rehearsal, conduct, lambda stand: stand.conductor.begin_closing(*conduct.ids, outcome))
        assert found is verdict
        assert rehearsal.procedure(conduct).current_iteration_index == 1, "whoever ends it ends the pass"

    async def test_what_is_asked_for_afterwards_does_not_take_it_back(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await converged(rehearsal, conduct)
        outcome = ConductOutcome(finish=Finish.COMPLETED)
        assert await rehearsal.conductor.begin_closing(*conduct.ids, outcome) is ConductVerdict.DONE
        await asked(rehearsal, conduct, HoldProcedure)
        assert await rehearsal.relieved().conductor.begin_closing(*conduct.ids, outcome) is ConductVerdict.DONE

    async def test_a_hold_does_not_keep_what_nobody_may_go_on_with_from_closing(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await asked(rehearsal, conduct, HoldProcedure)
        denied = ConductOutcome(
            finish=Finish.FAILED, failure=lifecycle_failure("abort", "UnauthorizedError", "No."), denied=True
        )
        assert await rehearsal.conductor.begin_closing(*conduct.ids, denied) is ConductVerdict.DONE

    @pytest.mark.parametrize(
        ("event", "verdict", "finish"),
        [
            (HELD_RUN, ConductVerdict.DONE, Finish.FAILED),
            (RUN_LIVES[1][0], ConductVerdict.DONE, Finish.FAILED),
            (RUN_LIVES[2][0], ConductVerdict.RUN_ABORTED, Finish.FAILED),
            (RUN_LIVES[1][0], ConductVerdict.DONE, Finish.STOPPED),
            (RUN_LIVES[2][0], ConductVerdict.RUN_ABORTED, Finish.STOPPED),
        ],
    )
    async def test_only_an_aborted_run_keeps_from_closing_what_failed_or_was_stopped(
        self, rehearsal: Rehearsal, event: Any, verdict: ConductVerdict, finish: Finish
    ) -> None:
        run_id = await rehearsal.run()
        conduct = await converging(rehearsal, run_id)
        await rehearsal.happens(run_id, event.model_copy())
        failure = lifecycle_failure("abort", "Broken", "It broke.") if finish is Finish.FAILED else None
        assert (
            await rehearsal.conductor.begin_closing(*conduct.ids, ConductOutcome(finish=finish, failure=failure)) is verdict
        )

    @pytest.mark.parametrize(("event", "verdict"), RUN_LIVES)
    async def test_what_is_done_closes_only_while_its_run_goes_on(
        self, rehearsal: Rehearsal, event: Any, verdict: ConductVerdict
    ) -> None:
        run_id = await rehearsal.run()
        conduct = await converging(rehearsal, run_id)
        await converged(rehearsal, conduct)
        await rehearsal.happens(run_id, event.model_copy())
        assert await rehearsal.conductor.begin_closing(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED)) is verdict
        assert rehearsal.progress(conduct).phase != "Closing"

    async def test_closing_alone_is_not_held_and_asks_no_run(self, rehearsal: Rehearsal) -> None:
        run_id = await rehearsal.run()
        first = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)], run_id=run_id)
        await rehearsal.conductor.end(*first.ids, ConductOutcome(finish=Finish.HALTED), closed=False)
        conduct = await rehearsal.live(AbortProcedure(reason="smoke", run_closing=True), first.procedure_id)
        with pytest.raises(HoldProcedure.Cannot, match="abort is being served"):
            await rehearsal.do(HoldProcedure(reason="lunch"), first.procedure_id)
        await rehearsal.happens(run_id, HELD_RUN.model_copy())
        assert (
            await rehearsal.conductor.begin_closing(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED))
            is ConductVerdict.DONE
        )

    async def test_what_has_ended_does_not_close(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.relieved().conductor.end(*conduct.ids, STOOD_DOWN, closed=False)
        found = await rehearsal.conductor.begin_closing(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED))
        assert found is ConductVerdict.GONE


class TestEnding:
    """Every way in which the main list comes to its end, and what the record says then."""

    async def ended(self, rehearsal: Rehearsal, conduct: Live, outcome: ConductOutcome, closed: bool = True) -> Any:
        """The result that is on the record, once."""
        answer = await twice(rehearsal, conduct, lambda stand: stand.conductor.end(*conduct.ids, outcome, closed))
        assert answer is None
        assert rehearsal.happened(conduct).count("ProcedureConducted") == 1
        progress, procedure = rehearsal.progress(conduct), rehearsal.procedure(conduct)
        assert (progress.phase, procedure.live_conduct_id, procedure.pending_request) == ("Ended", None, None)
        assert not any(kind in (HOLD_ASKED, ABORT_ASKED) for kind, _, _ in rehearsal.store.look_ups)
        return next(event for event in rehearsal.events(conduct) if isinstance(event, ProcedureConducted)).result

    async def test_all_steps_done_completes(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3), setpoint("bl7:a", 4)], [setpoint("bl7:shutter", 0)])
        for index in range(2):
            await rehearsal.step(conduct, index)
        await rehearsal.step(conduct, closing=True)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.COMPLETED, completed_count=2))
        assert result == ConductResult(
            procedure_id=conduct.procedure_id,
            conduct_id=conduct.conduct_id,
            command_name="ConductProcedure",
            succeeded=True,
            completed_count=2,
            actuation_kind=ActuationKind.PHYSICAL,
            substrate_writes={"bl7:a": 4, "bl7:shutter": 0},
        )
        assert rehearsal.happened(conduct)[-2:] == ["ProcedureConducted", "ProcedureCompleted"]
        assert rehearsal.events(conduct)[-1].actuation_kind is ActuationKind.PHYSICAL

    async def test_a_spent_budget_completes_and_says_so(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal, budget={"iterations_remaining": 0})
        outcome = ConductOutcome(finish=Finish.COMPLETED)
        result = await self.ended(rehearsal, conduct, outcome)
        assert (result.succeeded, result.iteration_count) == (True, 0)
        assert result.termination_reason is TerminationReason.ITERATIONS
        assert rehearsal.events(conduct)[-1].termination_reason is TerminationReason.ITERATIONS

    async def test_a_failure_aborts(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3), setpoint("bl7:absent", 3)])
        await rehearsal.step(conduct, 0)
        failure = (await rehearsal.step(conduct, 1)).failure
        outcome = ConductOutcome(finish=Finish.FAILED, failure=failure, completed_count=1)
        result = await self.ended(rehearsal, conduct, outcome)
        assert (result.succeeded, result.failure, result.completed_count, result.held) == (False, failure, 1, False)
        procedure = rehearsal.procedure(conduct)
        assert procedure.status is ProcedureStatus.ABORTED
        assert procedure.last_status_reason == (
            "setpoint[1] bl7:absent failed: ControlNotConnectedError: bl7:absent is not connected."
        )

    @pytest.mark.parametrize(
        ("kind", "error_class", "held"),
        [
            ("setpoint", "ControlTimeoutError", True),
            ("check", "CheckFailedError", True),
            ("action", "ActionOutcomeUnknown", False),
            ("capture", "CheckFailedError", False),
            ("compute", "ComputeJobFailedError", False),
        ],
    )
    async def test_what_can_be_mended_holds_where_that_was_asked_for(
        self, rehearsal: Rehearsal, kind: Any, error_class: str, held: bool
    ) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], how=ConductOrHoldProcedure)
        failure = Failure(step_index=0, source_kind=kind, target="x", error_class=error_class, message="No.")
        await rehearsal.failed(conduct, failure)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.FAILED, failure=failure), closed=not held)
        assert (result.held, result.failure) == (held, failure)
        procedure = rehearsal.procedure(conduct)
        assert procedure.status is (ProcedureStatus.HELD if held else ProcedureStatus.ABORTED)
        assert procedure.hold_cause is (HoldCause.STEP_FAULT if held else None)

    async def test_a_step_that_came_too_late_holds_whatever_its_kind(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([action("park")], how=ConductOrHoldProcedure)
        await rehearsal.time.sleep(301)
        failure = (await rehearsal.step(conduct)).failure
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.FAILED, failure=failure), closed=False)
        assert (result.held, result.failure.error_class, rehearsal.rows()) == (True, "StepInterrupted", [])

    async def test_a_hold_holds_as_whoever_asked_said(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        decision = new_id()
        asking = HoldProcedure(reason="shift change", decided_by_decision_id=decision)
        await rehearsal.do(asking, conduct.procedure_id)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.HELD), closed=False)
        assert (result.held, result.succeeded, result.failure.error_class) == (True, False, "ProcedureHeldByOperator")
        assert (result.failure.source_kind, result.failure.target) == ("lifecycle", "hold")
        held = rehearsal.events(conduct)[-1]
        assert (held.reason, held.cause, held.decided_by_decision_id) == ("shift change", HoldCause.OPERATOR, decision)

    async def test_a_step_that_failed_meanwhile_is_what_is_told(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:absent", 3)])
        failure = (await rehearsal.step(conduct)).failure
        await asked(rehearsal, conduct, HoldProcedure)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.HELD, failure=failure), closed=False)
        assert (result.held, result.failure) == (True, failure)
        assert rehearsal.events(conduct)[-1].reason == "shift change"

    async def test_a_held_pass_is_ended_and_does_not_count(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        await asked(rehearsal, conduct, HoldProcedure)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.HELD), closed=False)
        *_, ended, _, _ = rehearsal.events(conduct)
        assert isinstance(ended, ProcedureIterationEnded)
        assert (ended.converged, ended.reason, result.iteration_count) == (None, "held", 1)
        assert rehearsal.procedure(conduct).consecutive_unconverged_iterations == 0

    async def test_a_hold_that_came_after_closing_began_is_void(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        await rehearsal.walked(conduct)
        await rehearsal.conductor.begin_closing(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED))
        await asked(rehearsal, conduct, HoldProcedure)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.COMPLETED))
        assert (result.held, result.succeeded) == (False, True)
        assert rehearsal.procedure(conduct).status is ProcedureStatus.COMPLETED

    @pytest.mark.parametrize(
        "finish", [Finish.COMPLETED, Finish.FAILED, Finish.HELD, Finish.ABORTED, Finish.HALTED, Finish.CANCELLED]
    )
    async def test_an_abort_beats_everything(self, rehearsal: Rehearsal, finish: Finish) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        await asked(rehearsal, conduct, HoldProcedure, AbortProcedure)
        failure = lifecycle_failure("abort", "Broken", "It broke.") if finish is Finish.FAILED else None
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=finish, failure=failure), closed=False)
        assert (result.succeeded, result.held, result.acquisition_halt) == (False, False, False)
        procedure = rehearsal.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (ProcedureStatus.ABORTED, "shift change")

    async def test_closing_steps_that_an_abort_cut_off_are_told(self, rehearsal: Rehearsal) -> None:
        closing = [setpoint("bl7:absent", 0), setpoint("bl7:shutter", 0), setpoint("bl7:c", 0)]
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], closing)
        await rehearsal.conductor.begin_closing(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED))
        await rehearsal.step(conduct, 0, closing=True)
        await asked(rehearsal, conduct, AbortProcedure)
        outcome = ConductOutcome(finish=Finish.ABORTED, closing_cut_at=1)
        result = await self.ended(rehearsal, conduct, outcome, closed=True)
        assert [(failure.step_index, failure.error_class) for failure in result.closing_failures] == [
            (0, "ControlNotConnectedError"),
            (1, "ClosingCancelled"),
            (2, "ClosingCancelled"),
        ]

    @pytest.mark.parametrize(
        ("finish", "event", "reason"),
        [
            (Finish.STOPPED, RunStopped(reason="enough", **ENDING), "enough"),
            (Finish.ABORTED, RunAborted(reason="smoke", **ENDING), "smoke"),
        ],
    )
    async def test_a_phase_ends_as_its_run_does(self, rehearsal: Rehearsal, finish: Finish, event: Any, reason: str) -> None:
        run_id = await rehearsal.run()
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], run_id=run_id)
        await rehearsal.happens(run_id, event.model_copy())
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=finish))
        assert (result.succeeded, result.failure is None) == (False, False)
        procedure = rehearsal.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (ProcedureStatus.ABORTED, reason)

    async def test_a_halt_leaves_the_procedure_running(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.HALTED), closed=False)
        assert (result.acquisition_halt, result.succeeded, result.held) == (True, False, False)
        assert result.failure.error_class == "AcquisitionResumeRequiresOperator"
        assert rehearsal.happened(conduct)[-1] == "ProcedureConducted"
        assert rehearsal.procedure(conduct).status is ProcedureStatus.RUNNING

    async def test_a_halt_under_a_hold_holds(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        await asked(rehearsal, conduct, HoldProcedure)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.HALTED), closed=False)
        assert (result.acquisition_halt, result.held) == (False, True)
        assert rehearsal.procedure(conduct).status is ProcedureStatus.HELD

    async def test_a_search_that_nobody_steers_any_more_is_held(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal)
        result = await self.ended(rehearsal, conduct, STOOD_DOWN, closed=False)
        assert (result.held, result.failure.error_class) == (True, "SteeringDriverStoodDown")
        held = rehearsal.events(conduct)[-1]
        assert (held.cause, "SteeringDriverStoodDown" in held.reason) == (HoldCause.DRIVER_STOOD_DOWN, True)

    async def test_a_conduct_that_was_cancelled_in_the_engine_aborts(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.CANCELLED), closed=False)
        assert (result.succeeded, result.failure.error_class) == (False, "CancelledError")
        assert rehearsal.procedure(conduct).status is ProcedureStatus.ABORTED
        assert rehearsal.procedure(conduct).current_iteration_index is None

    async def test_closing_alone_ends_aborted_as_was_asked(self, rehearsal: Rehearsal) -> None:
        first = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await rehearsal.conductor.end(*first.ids, STOOD_DOWN, closed=False)
        only = await rehearsal.live(AbortProcedure(reason="put it away", run_closing=True), first.procedure_id)
        await rehearsal.step(only, closing=True)
        await twice(
            rehearsal,
            only,
            lambda stand: stand.conductor.end(*only.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True),
        )
        *_, conducted, aborted = rehearsal.events(only)
        assert (conducted.conduct_id, conducted.result.succeeded) == (only.conduct_id, True)
        assert (aborted.reason, conducted.result.substrate_writes) == ("put it away", {"bl7:shutter": 0})

    async def test_a_conduct_that_goes_on_keeps_what_was_published_before(self, rehearsal: Rehearsal) -> None:
        steps = [compute("reduce", output_uri="file:///a.h5", output_ref_name="reduced"), setpoint("bl7:a", 3)]
        first = await rehearsal.opened(steps)
        await rehearsal.step(first, 0)
        await rehearsal.conductor.end(*first.ids, STOOD_DOWN, closed=False)
        conduct = await rehearsal.live(ConductFromProcedure(re_establishment_boundary=1), first.procedure_id)
        await rehearsal.step(conduct, 1)
        await rehearsal.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED, completed_count=1), closed=True)
        result = rehearsal.events(conduct)[-2].result
        assert (result.outputs["reduced"].uri, result.artifacts) == ("file:///a.h5", ())
        assert (result.re_establishment_boundary, result.actuation_kind) == (1, "Hybrid"), "the program was simulated"

    async def test_measurements_are_those_of_the_last_pass(self, rehearsal: Rehearsal) -> None:
        rehearsal.compute.seed(("look",), *(Simulated(measurements=(measured("offset", value),)) for value in (9.0, 0.1)))
        conduct = await rehearsal.opened(
            [compute("look", capture_name="offset")], how=ConductUntilConverged, conduct=CENTRED
        )
        for _ in range(2):
            index = await passed(rehearsal, conduct, 0)
            await rehearsal.passes.judge(*conduct.ids, index)
        result = await self.ended(rehearsal, conduct, ConductOutcome(finish=Finish.COMPLETED, completed_count=1))
        assert (result.iteration_count, result.measurements) == (2, (measured("offset", 0.1),))


class TestWhatWasLearned:
    """What a result tells of the values that the steps brought."""

    async def result(self, rehearsal: Rehearsal, conduct: Live, outcome: ConductOutcome) -> ConductResult:
        await rehearsal.conductor.end(*conduct.ids, outcome, closed=True)
        ended = next(event for event in rehearsal.events(conduct) if isinstance(event, ProcedureConducted))
        return ended.result

    async def test_captures_are_told_with_unit_and_time(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([capture("bl7:b", "offset")])
        rehearsal.plant.set_reading("bl7:b", Reading(value=1.5, units="mm", sampled_at=rehearsal.time.now()))
        await rehearsal.step(conduct)
        result = await self.result(rehearsal, conduct, ConductOutcome(finish=Finish.COMPLETED))
        assert result.captures == {"offset": CapturedValue(value=1.5, unit="mm", time=rehearsal.time.now())}

    async def test_a_loop_that_did_not_converge_tells_how_far_it_was(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal, cap=1)
        await rehearsal.passes.judge(*conduct.ids, await passed(rehearsal, conduct, 9.0))
        failure = (await rehearsal.passes.start(*conduct.ids)).failure
        result = await self.result(rehearsal, conduct, ConductOutcome(finish=Finish.FAILED, failure=failure))
        told = LastObjective(name="offset", value=9.0, iteration_index=1, expected=0, tolerance=0.5)
        assert (result.succeeded, result.objective) == (False, told)
        ended = next(event for event in rehearsal.events(conduct) if isinstance(event, ProcedureIterationEnded))
        assert ended.measurements == (measured("offset", 9.0),)

    async def test_a_search_tells_its_best_point(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal, budget={"iterations_remaining": 2})
        for reading in (7.5, 3.0):
            index = await passed(rehearsal, conduct, reading)
            await rehearsal.passes.record_outcome(*conduct.ids, index)
            await rehearsal.passes.advise(*conduct.ids, index, Try())
        result = await self.result(rehearsal, conduct, ConductOutcome(finish=Finish.COMPLETED))
        assert result.best == BestPoint(name="sharpness", value=7.5, iteration_index=1, point={"focus": -2.0})
        assert result.termination_reason is TerminationReason.ITERATIONS


class TestDenials:
    """A submitter who may not give one of the commands any more."""

    def withdraw(self, rehearsal: Rehearsal, *commands: str) -> None:
        assert isinstance(rehearsal.permits, Permits)
        rehearsal.permits.withdrawn.update(commands)

    @pytest.mark.parametrize(
        ("command", "finish", "target"),
        [("AbortProcedure", Finish.CANCELLED, "abort"), ("HoldProcedure", Finish.STOOD_DOWN, "abort")],
    )
    async def test_what_was_not_closed_is_to_be_closed_first(
        self, rehearsal: Rehearsal, command: str, finish: Finish, target: str
    ) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        self.withdraw(rehearsal, command)
        outcome = STOOD_DOWN.model_copy(update={"finish": finish})
        failure = await twice(rehearsal, conduct, lambda stand: stand.conductor.end(*conduct.ids, outcome, closed=False))
        assert failure is not None
        assert (failure.source_kind, failure.target, failure.error_class) == ("lifecycle", target, "UnauthorizedError")
        assert rehearsal.procedure(conduct).live_conduct_id == conduct.conduct_id

    @pytest.mark.parametrize("told", [True, False])
    async def test_then_the_service_itself_aborts_and_names_who_it_was(self, rehearsal: Rehearsal, told: bool) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await rehearsal.step(conduct)
        await rehearsal.walked(conduct, closing=True)
        self.withdraw(rehearsal, "CompleteProcedure")
        outcome = ConductOutcome(finish=Finish.COMPLETED, completed_count=1)
        if told:
            failure = await rehearsal.conductor.end(*conduct.ids, outcome, closed=False)
            outcome = outcome.model_copy(update={"failure": failure, "denied": True})
        assert await twice(rehearsal, conduct, lambda stand: stand.conductor.end(*conduct.ids, outcome, True)) is None
        *_, conducted, aborted = rehearsal.events(conduct)
        assert str(rehearsal.caller.principal_id) in aborted.reason
        assert (conducted.result.succeeded, conducted.result.failure.error_class) == (False, "UnauthorizedError")
        assert (conducted.result.completed_count, conducted.result.substrate_writes) == (1, {"bl7:a": 3})
        rows = rehearsal.store.streams["Procedure", conduct.procedure_id]
        assert [row.principal_id for row in rows[-2:]] == [NIL, NIL]

    async def test_under_an_abort_nothing_is_closed_first(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await asked(rehearsal, conduct, AbortProcedure)
        self.withdraw(rehearsal, "AbortProcedure")
        assert await rehearsal.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.ABORTED), closed=False) is None
        assert rehearsal.procedure(conduct).status is ProcedureStatus.ABORTED

    async def test_a_pass_does_not_stay_open(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        self.withdraw(rehearsal, "EndProcedureIteration", "AbortProcedure")
        outcome = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))
        await rehearsal.conductor.end(*conduct.ids, outcome, closed=True)
        assert rehearsal.procedure(conduct).current_iteration_index is None


class TestRefusals:
    async def test_an_end_that_the_procedure_does_not_allow_leaves_its_status(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        held = ProcedureHeld(reason="by hand", cause=HoldCause.OPERATOR, decided_by_decision_id=None, actuation_kind=None)
        await rehearsal.walked(conduct)
        await rehearsal.happens(conduct.procedure_id, held)
        outcome = ConductOutcome(finish=Finish.COMPLETED, completed_count=1)
        assert await twice(rehearsal, conduct, lambda stand: stand.conductor.end(*conduct.ids, outcome, True)) is None
        result = rehearsal.events(conduct)[-1].result
        assert (result.succeeded, result.failure.error_class) == (False, "ProcedureCannotCompleteError")
        assert (result.failure.source_kind, result.failure.target) == ("lifecycle", "complete")
        assert rehearsal.procedure(conduct).status is ProcedureStatus.HELD

    async def test_a_hold_that_is_refused_tells_what_had_failed(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], how=ConductOrHoldProcedure)
        held = ProcedureHeld(reason="by hand", cause=HoldCause.OPERATOR, decided_by_decision_id=None, actuation_kind=None)
        await rehearsal.happens(conduct.procedure_id, held)
        failure = Failure(step_index=0, source_kind="check", target="x", error_class="CheckFailedError", message="No.")
        await rehearsal.failed(conduct, failure)
        await rehearsal.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.FAILED, failure=failure), closed=False)
        result = rehearsal.events(conduct)[-1].result
        assert (result.held, result.succeeded, result.failure) == (False, False, failure)

    async def test_a_procedure_that_was_truncated_meanwhile_is_left_alone(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        await rehearsal.time.sleep(61)
        await rehearsal.do(TruncateProcedure(reason="power cut"), conduct.procedure_id)
        told = rehearsal.happened(conduct)
        assert await rehearsal.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True) is None
        assert rehearsal.happened(conduct) == told


class Interfered(MemoryStore):
    """A store in which somebody else is faster, so often."""

    interference: Callable[[], None] | None = None
    times = 1

    def check(self, batch: Batch) -> None:
        if self.interference is not None and self.times:
            self.times -= 1
            self.interference()
        super().check(batch)


class TestRaces:
    def rival(self, store: MemoryStore, conduct: Live, event: Any, *kinds: str) -> None:
        """Put an event on the procedure's stream just before somebody else does."""
        now, key = conduct.score.started_at, ("Procedure", conduct.procedure_id)
        call = Call(OPERATOR, SYSTEM_HTTP, now, new_id(), new_id())
        stamped = [(new_id(), event.stamped(conduct.procedure_id, now))]
        batch = Batch(call, "Rival", [StreamAppend(*key, len(store.streams[key]), stamped)])
        batch.enlistments = [(Enlist(kind, str(conduct.conduct_id)), conduct.procedure_id) for kind in kinds]
        store.commit(batch, store.stored(batch))

    async def test_an_abort_that_is_asked_for_at_the_last_moment_counts(self, time: LoopTime) -> None:
        store = Interfered()
        raced = rehearsed(time, store=store)
        conduct = await raced.opened([setpoint("bl7:a", 3)])
        await raced.walked(conduct)
        request = ProcedureAbortRequested(conduct_id=conduct.conduct_id, reason="smoke", run_closing=False)
        store.interference = lambda: self.rival(store, conduct, request, ABORT_ASKED)
        await raced.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True)
        procedure = raced.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (ProcedureStatus.ABORTED, "smoke")
        assert raced.happened(conduct).count("ProcedureConducted") == 1

    async def test_a_store_that_is_away_is_no_refusal(self, time: LoopTime) -> None:
        def away() -> None:
            raise StoreUnavailableError("The database cannot be reached.")

        store = Interfered()
        raced = rehearsed(time, store=store)
        conduct = await raced.opened([setpoint("bl7:a", 3)])
        await raced.walked(conduct)
        store.interference = away
        with pytest.raises(StoreUnavailableError):
            await raced.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True)
        assert raced.procedure(conduct).live_conduct_id == conduct.conduct_id
        await raced.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True)
        assert raced.procedure(conduct).status is ProcedureStatus.COMPLETED

    async def test_so_does_one_that_comes_while_the_end_is_decided(self, time: LoopTime) -> None:
        class Late(Permits):
            """Somebody asks for an abort when the conductor has looked, and before its command does."""

            async def authorize(self, caller: Any, command_name: str, surface_id: Any = None) -> Any:
                if command_name == "CompleteProcedure":
                    await raced.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
                return await super().authorize(caller, command_name, surface_id)

        raced = rehearsed(time, permits=Late(PrincipalStandings(MemoryStore())))
        conduct = await raced.opened([setpoint("bl7:a", 3)])
        await raced.walked(conduct)
        await raced.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True)
        assert raced.procedure(conduct).last_status_reason == "smoke"

    async def test_the_service_itself_tries_until_it_is_on_the_record(self, time: LoopTime) -> None:
        store = Interfered()
        raced = rehearsed(time, store=store)
        conduct = await converging(raced)
        await raced.passes.start(*conduct.ids)

        def something_else() -> None:
            outcome = ProcedureOutcomeRecorded(
                iteration_index=1, point={}, measurements=(), succeeded=True, actuation_kind=None
            )
            self.rival(store, conduct, outcome)

        store.times, store.interference = 20, something_else
        await raced.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.HALTED), closed=False)
        told = raced.happened(conduct)
        assert (told.count("ProcedureIterationEnded"), told.count("ProcedureConducted")) == (1, 1)
