"""How a conductor waits, closes and ends: each time on the record, and however often it is asked, once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton.application.authorization import PrincipalStatuses
from baton.application.caller import Caller
from baton.application.conduct.conduct_record import StepPlans
from baton.application.control import Reading
from baton.application.ports import Batch, StoreUnavailableError, StreamAppend
from baton.application.queries import Queries
from baton.domain.access.actor import RegisterActor
from baton.domain.conduct.conduct import (
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
)
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure, TruncateProcedure
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, lifecycle_failure
from baton.domain.conduct.progress import ABORT_ASKED, HOLD_ASKED
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.decision.decision import RegisterDecision
from baton.domain.kernel import NIL, Call
from baton.domain.procedure.procedure import (
    HoldCause,
    ProcedureAbortRequested,
    ProcedureConducted,
    ProcedureHeld,
    ProcedureIterationEnded,
    ProcedureOutcomeRecorded,
    ProcedureStatus,
)
from baton.domain.run.run import AbortRun, RunAborted, RunResumed, RunStopped
from baton.domain.shared.writes import Enlist
from baton.domain.step.results import (
    ActuationKind,
    BestPoint,
    CapturedValue,
    ConductResult,
    Failure,
    LastObjective,
    TerminationReason,
)
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.views.waiting import ListWaiting, WaitingKind
from baton.infrastructure.compute.in_memory import SimulatedOutcome
from baton.testing.store import MemoryStore
from tests.support.application.loop_cases import (
    ASKED,
    CENTRED,
    HELD_RUN,
    RUN_LIVES,
    open_loop,
    open_search,
    request,
    twice,
    walk_last_pass,
    walk_pass,
)
from tests.support.application.memory_conduct import (
    ENDING,
    STOOD_DOWN,
    MemoryConduct,
    OpenedConduct,
    RevocablePermits,
    WorkAttempt,
    measurement,
    memory_conduct,
)
from tests.support.domain.world import OPERATOR, new_id
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import action, capture, compute, setpoint


async def test_a_score_that_is_asked_for_twice_at_once_weighs_once(memory: MemoryConduct) -> None:
    conduct, plans = await memory.open_conduct([setpoint("bl7:a", 3)]), StepPlans(memory.store)
    first, second = await asyncio.gather(*(plans.load(conduct.request) for _ in range(2)))
    assert first == second
    assert first is not None
    assert plans._step_count == first.total_steps == 1


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
        self, memory: MemoryConduct, event: Any, verdict: ConductVerdict
    ) -> None:
        run_id = await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], run_id=run_id)
        await memory.append_events(run_id, HELD_RUN.model_copy())
        attempt = WorkAttempt()
        waiting = asyncio.create_task(memory.conductor.await_run(conduct.request, attempt))
        await memory.time.sleep(1000)
        assert (memory.progress(conduct).phase, memory.progress(conduct).waiting_for) == ("Waiting", "run")
        assert memory.procedure(conduct).status is ProcedureStatus.RUNNING
        await memory.append_events(run_id, event.model_copy())
        assert await waiting is verdict
        assert attempt.signs == pytest.approx(1000, abs=2)
        assert (memory.progress(conduct).phase, memory.progress(conduct).waiting_for) == ("Walking", None)
        if verdict is ConductVerdict.DONE:
            assert (await memory.step(conduct)).verdict is ConductVerdict.DONE, "the wait does not count"

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_is_served_meanwhile(
        self, memory: MemoryConduct, requests: Any, verdict: ConductVerdict
    ) -> None:
        run_id = await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], run_id=run_id)
        await memory.append_events(run_id, HELD_RUN.model_copy())
        waiting = asyncio.create_task(memory.conductor.await_run(conduct.request, WorkAttempt()))
        await memory.time.sleep(10)
        await request(memory, conduct, *requests)
        assert await waiting is verdict

    async def test_what_has_ended_waits_for_nothing(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert await memory.conductor.await_run(conduct.request, WorkAttempt()) is ConductVerdict.GONE


class TestBeginningToClose:
    async def test_a_pass_that_is_open_is_ended_first(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        failed = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))
        verdict = await twice(memory, conduct, lambda stand: stand.conductor.begin_closing(conduct.end(failed)))
        assert verdict is ConductVerdict.DONE
        ended = memory.events(conduct)[-1]
        assert (ended.converged, ended.reason) == (None, "lifecycle abort failed: Broken: It broke.")
        assert memory.progress(conduct).phase == "Closing"

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_what_was_asked_for_before_is_served_instead(
        self, memory: MemoryConduct, requests: Any, verdict: ConductVerdict
    ) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        await request(memory, conduct, *requests)
        outcome = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))
        found = await twice(memory, conduct, lambda stand: stand.conductor.begin_closing(conduct.end(outcome)))
        assert found is verdict
        assert memory.procedure(conduct).current_iteration_index == 1, "ending it ends the pass"

    async def test_what_is_asked_for_afterwards_does_not_take_it_back(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await walk_last_pass(memory, conduct)
        outcome = ConductOutcome(finish=Finish.COMPLETED)
        assert await memory.conductor.begin_closing(conduct.end(outcome)) is ConductVerdict.DONE
        await request(memory, conduct, HoldProcedure)
        assert await memory.other_worker().conductor.begin_closing(conduct.end(outcome)) is ConductVerdict.DONE

    async def test_a_hold_does_not_keep_what_nobody_may_go_on_with_from_closing(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await request(memory, conduct, HoldProcedure)
        failure = lifecycle_failure("abort", "UnauthorizedError", "No.")
        denied = ConductOutcome(finish=Finish.DENIED, failure=failure)
        assert await memory.conductor.begin_closing(conduct.end(denied)) is ConductVerdict.DONE

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
        self, memory: MemoryConduct, event: Any, verdict: ConductVerdict, finish: Finish
    ) -> None:
        run_id = await memory.run()
        conduct = await open_loop(memory, run_id)
        await memory.append_events(run_id, event.model_copy())
        failure = lifecycle_failure("abort", "Broken", "It broke.") if finish is Finish.FAILED else None
        assert await memory.conductor.begin_closing(conduct.end(ConductOutcome(finish=finish, failure=failure))) is verdict

    @pytest.mark.parametrize(("event", "verdict"), RUN_LIVES)
    async def test_what_is_done_closes_only_while_its_run_goes_on(
        self, memory: MemoryConduct, event: Any, verdict: ConductVerdict
    ) -> None:
        run_id = await memory.run()
        conduct = await open_loop(memory, run_id)
        await walk_last_pass(memory, conduct)
        await memory.append_events(run_id, event.model_copy())
        assert await memory.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED))) is verdict
        assert memory.progress(conduct).phase != "Closing"

    async def test_closing_alone_is_not_held_and_asks_no_run(self, memory: MemoryConduct) -> None:
        run_id = await memory.run()
        first = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)], run_id=run_id)
        await memory.conductor.end(first.end(ConductOutcome(finish=Finish.HALTED), closed=False))
        conduct = await memory.live(AbortProcedure(reason="smoke", run_closing=True), first.procedure_id)
        with pytest.raises(HoldProcedure.Cannot, match="abort is being served"):
            await memory.do(HoldProcedure(reason="lunch"), first.procedure_id)
        await memory.append_events(run_id, HELD_RUN.model_copy())
        assert (
            await memory.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED))) is ConductVerdict.DONE
        )

    async def test_what_has_ended_does_not_close(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        found = await memory.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED)))
        assert found is ConductVerdict.GONE


class TestEnding:
    """Every way in which the main list comes to its end, and what the record says then."""

    async def end_twice(
        self, memory: MemoryConduct, conduct: OpenedConduct, outcome: ConductOutcome, closed: bool = True
    ) -> Any:
        """The result that is on the record, once."""
        answer = await twice(memory, conduct, lambda stand: stand.conductor.end(conduct.end(outcome, closed)))
        assert answer is None
        assert memory.event_types(conduct).count("ProcedureConducted") == 1
        progress, procedure = memory.progress(conduct), memory.procedure(conduct)
        assert (progress.phase, procedure.live_conduct_id, procedure.pending_request) == ("Ended", None, None)
        assert not any(kind in (HOLD_ASKED, ABORT_ASKED) for kind, _, _ in memory.store.look_ups)
        return next(event for event in memory.events(conduct) if isinstance(event, ProcedureConducted)).result

    async def test_all_steps_done_completes(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3), setpoint("bl7:a", 4)], [setpoint("bl7:shutter", 0)])
        for index in range(2):
            await memory.step(conduct, index)
        await memory.step(conduct, closing=True)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.COMPLETED, completed_count=2))
        assert result == ConductResult(
            procedure_id=conduct.procedure_id,
            conduct_id=conduct.conduct_id,
            command_name="ConductProcedure",
            succeeded=True,
            completed_count=2,
            actuation_kind=ActuationKind.PHYSICAL,
            substrate_writes={"bl7:a": 4, "bl7:shutter": 0},
        )
        assert memory.event_types(conduct)[-2:] == ["ProcedureConducted", "ProcedureCompleted"]
        assert memory.events(conduct)[-1].actuation_kind is ActuationKind.PHYSICAL

    async def test_a_spent_budget_completes_and_says_so(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory, budget={"iterations_remaining": 0})
        outcome = ConductOutcome(finish=Finish.COMPLETED)
        result = await self.end_twice(memory, conduct, outcome)
        assert (result.succeeded, result.iteration_count) == (True, 0)
        assert result.termination_reason is TerminationReason.ITERATIONS
        assert memory.events(conduct)[-1].termination_reason is TerminationReason.ITERATIONS

    async def test_a_failure_aborts(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3), setpoint("bl7:absent", 3)])
        await memory.step(conduct, 0)
        failure = (await memory.step(conduct, 1)).failure
        outcome = ConductOutcome(finish=Finish.FAILED, failure=failure, completed_count=1)
        result = await self.end_twice(memory, conduct, outcome)
        assert (result.succeeded, result.failure, result.completed_count, result.held) == (False, failure, 1, False)
        procedure = memory.procedure(conduct)
        assert procedure.status is ProcedureStatus.ABORTED
        assert procedure.last_status_reason == (
            "setpoint[1] bl7:absent failed: ControlNotConnectedError: bl7:absent is not connected."
        )

    @pytest.mark.parametrize(
        ("kind", "error_class", "cause"),
        [
            ("setpoint", "ControlTimeoutError", HoldCause.STEP_FAULT),
            ("check", "CheckFailedError", HoldCause.STEP_FAULT),
            ("action", "ActionOutcomeUnknown", HoldCause.OUTCOME_UNKNOWN),
            ("compute", "ComputeOutcomeUnknown", HoldCause.OUTCOME_UNKNOWN),
            ("action", "ControlTimeoutError", None),
            ("capture", "CheckFailedError", None),
            ("compute", "ComputeJobFailedError", None),
        ],
    )
    async def test_what_can_be_mended_holds_where_that_was_asked_for(
        self, memory: MemoryConduct, kind: Any, error_class: str, cause: HoldCause | None
    ) -> None:
        held = cause is not None
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], how=ConductOrHoldProcedure)
        failure = Failure(step_index=0, source_kind=kind, target="x", error_class=error_class, message="No.")
        await memory.record_failure(conduct, failure)
        result = await self.end_twice(
            memory, conduct, ConductOutcome(finish=Finish.FAILED, failure=failure), closed=not held
        )
        assert (result.held, result.failure) == (held, failure)
        procedure = memory.procedure(conduct)
        assert procedure.status is (ProcedureStatus.HELD if held else ProcedureStatus.ABORTED)
        assert procedure.hold_cause is cause

    async def test_a_step_that_came_too_late_holds_whatever_its_kind(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([action("park")], how=ConductOrHoldProcedure)
        await memory.time.sleep(301)
        failure = (await memory.step(conduct)).failure
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.FAILED, failure=failure), closed=False)
        assert (result.held, result.failure.error_class, memory.rows()) == (True, "StepInterrupted", [])

    async def test_a_hold_holds_as_its_caller_said(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        decider = await memory.create(RegisterActor(name="Noor Haddad"))
        decision = await memory.create(RegisterDecision(decided_by=decider, context="ShiftChange", choice="Hold"))
        asking = HoldProcedure(reason="shift change", decided_by_decision_id=decision)
        await memory.do(asking, conduct.procedure_id)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.HELD), closed=False)
        assert (result.held, result.succeeded, result.failure.error_class) == (True, False, "ProcedureHeldByOperator")
        assert (result.failure.source_kind, result.failure.target) == ("lifecycle", "hold")
        held = memory.events(conduct)[-1]
        assert (held.reason, held.cause, held.decided_by_decision_id) == ("shift change", HoldCause.OPERATOR, decision)

    async def test_a_step_that_failed_meanwhile_is_what_is_told(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:absent", 3)])
        failure = (await memory.step(conduct)).failure
        await request(memory, conduct, HoldProcedure)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.HELD, failure=failure), closed=False)
        assert (result.held, result.failure) == (True, failure)
        assert memory.events(conduct)[-1].reason == "shift change"

    async def test_a_held_pass_is_ended_and_does_not_count(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        await request(memory, conduct, HoldProcedure)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.HELD), closed=False)
        *_, ended, _, _ = memory.events(conduct)
        assert isinstance(ended, ProcedureIterationEnded)
        assert (ended.converged, ended.reason, result.iteration_count) == (None, "held", 1)
        assert memory.procedure(conduct).consecutive_unconverged_iterations == 0

    async def test_a_hold_that_came_after_closing_began_is_void(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await memory.mark_list_done(conduct)
        await memory.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED)))
        await request(memory, conduct, HoldProcedure)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.COMPLETED))
        assert (result.held, result.succeeded) == (False, True)
        assert memory.procedure(conduct).status is ProcedureStatus.COMPLETED

    @pytest.mark.parametrize(
        "finish", [Finish.COMPLETED, Finish.FAILED, Finish.HELD, Finish.ABORTED, Finish.HALTED, Finish.CANCELLED]
    )
    async def test_an_abort_beats_everything(self, memory: MemoryConduct, finish: Finish) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await request(memory, conduct, HoldProcedure, AbortProcedure)
        failure = lifecycle_failure("abort", "Broken", "It broke.") if finish is Finish.FAILED else None
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=finish, failure=failure), closed=False)
        assert (result.succeeded, result.held, result.acquisition_halt) == (False, False, False)
        procedure = memory.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (ProcedureStatus.ABORTED, "shift change")

    async def test_closing_steps_that_an_abort_cut_off_are_told(self, memory: MemoryConduct) -> None:
        closing = [setpoint("bl7:absent", 0), setpoint("bl7:shutter", 0), setpoint("bl7:c", 0)]
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], closing)
        await memory.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED)))
        await memory.step(conduct, 0, closing=True)
        await request(memory, conduct, AbortProcedure)
        outcome = ConductOutcome(finish=Finish.ABORTED, closing_cut_at=1)
        result = await self.end_twice(memory, conduct, outcome, closed=True)
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
    async def test_a_phase_ends_as_its_run_does(
        self, memory: MemoryConduct, finish: Finish, event: Any, reason: str
    ) -> None:
        run_id = await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], run_id=run_id)
        await memory.append_events(run_id, event.model_copy())
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=finish))
        assert (result.succeeded, result.failure is None) == (False, False)
        procedure = memory.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (ProcedureStatus.ABORTED, reason)

    async def test_a_halt_leaves_the_procedure_running(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.HALTED), closed=False)
        assert (result.acquisition_halt, result.succeeded, result.held) == (True, False, False)
        assert result.failure.error_class == "AcquisitionResumeRequiresOperator"
        assert memory.event_types(conduct)[-1] == "ProcedureConducted"
        assert memory.procedure(conduct).status is ProcedureStatus.RUNNING

    async def test_a_halt_under_a_hold_holds(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await request(memory, conduct, HoldProcedure)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.HALTED), closed=False)
        assert (result.acquisition_halt, result.held) == (False, True)
        assert memory.procedure(conduct).status is ProcedureStatus.HELD

    async def test_a_search_that_nobody_steers_any_more_is_held(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        result = await self.end_twice(memory, conduct, STOOD_DOWN, closed=False)
        assert (result.held, result.failure.error_class) == (True, "SteeringDriverStoodDown")
        held = memory.events(conduct)[-1]
        assert (held.cause, "SteeringDriverStoodDown" in held.reason) == (HoldCause.DRIVER_STOOD_DOWN, True)

    async def test_a_conduct_that_was_cancelled_in_the_engine_aborts(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.CANCELLED), closed=False)
        assert (result.succeeded, result.failure.error_class) == (False, "CancelledError")
        assert memory.procedure(conduct).status is ProcedureStatus.ABORTED
        assert memory.procedure(conduct).current_iteration_index is None

    async def test_closing_alone_ends_aborted_as_was_asked(self, memory: MemoryConduct) -> None:
        first = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await memory.conductor.end(first.end(STOOD_DOWN, closed=False))
        only = await memory.live(AbortProcedure(reason="put it away", run_closing=True), first.procedure_id)
        await memory.step(only, closing=True)
        await twice(
            memory, only, lambda stand: stand.conductor.end(only.end(ConductOutcome(finish=Finish.COMPLETED), closed=True))
        )
        *_, conducted, aborted = memory.events(only)
        assert (conducted.conduct_id, conducted.result.succeeded) == (only.conduct_id, True)
        assert (aborted.reason, conducted.result.substrate_writes) == ("put it away", {"bl7:shutter": 0})

    async def test_a_conduct_that_goes_on_keeps_what_was_published_before(self, memory: MemoryConduct) -> None:
        steps = [compute("reduce", output_uri="file:///a.h5", output_ref_name="reduced"), setpoint("bl7:a", 3)]
        first = await memory.open_conduct(steps)
        await memory.step(first, 0)
        await memory.conductor.end(first.end(STOOD_DOWN, closed=False))
        conduct = await memory.live(ConductFromProcedure(re_establishment_boundary=1), first.procedure_id)
        await memory.step(conduct, 1)
        await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED, completed_count=1), closed=True))
        result = memory.events(conduct)[-2].result
        assert (result.outputs["reduced"].uri, result.artifacts) == ("file:///a.h5", ())
        assert (result.re_establishment_boundary, result.actuation_kind) == (1, "Hybrid"), "the program was simulated"

    async def test_measurements_are_those_of_the_last_pass(self, memory: MemoryConduct) -> None:
        memory.compute.seed(
            ("look",), *(SimulatedOutcome(measurements=(measurement("offset", value),)) for value in (9.0, 0.1))
        )
        conduct = await memory.open_conduct(
            [compute("look", capture_name="offset")], how=ConductUntilConverged, conduct=CENTRED
        )
        for _ in range(2):
            index = await walk_pass(memory, conduct, 0)
            await memory.passes.judge(conduct.pass_request(index))
        result = await self.end_twice(memory, conduct, ConductOutcome(finish=Finish.COMPLETED, completed_count=1))
        assert (result.iteration_count, result.measurements) == (2, (measurement("offset", 0.1),))


class TestWhatWasLearned:
    """What a result tells of the values that the steps brought."""

    async def result(self, memory: MemoryConduct, conduct: OpenedConduct, outcome: ConductOutcome) -> ConductResult:
        await memory.conductor.end(conduct.end(outcome, closed=True))
        ended = next(event for event in memory.events(conduct) if isinstance(event, ProcedureConducted))
        return ended.result

    async def test_captures_are_told_with_unit_and_time(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([capture("bl7:b", "offset")])
        memory.plant.set_reading("bl7:b", Reading(value=1.5, units="mm", sampled_at=memory.time.now()))
        await memory.step(conduct)
        result = await self.result(memory, conduct, ConductOutcome(finish=Finish.COMPLETED))
        assert result.captures == {"offset": CapturedValue(value=1.5, unit="mm", time=memory.time.now())}

    async def test_a_loop_that_did_not_converge_tells_how_far_it_was(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory, cap=1)
        await memory.passes.judge(conduct.pass_request(await walk_pass(memory, conduct, 9.0)))
        failure = (await memory.passes.start(conduct.request)).failure
        result = await self.result(memory, conduct, ConductOutcome(finish=Finish.FAILED, failure=failure))
        told = LastObjective(name="offset", value=9.0, iteration_index=1, expected=0, tolerance=0.5)
        assert (result.succeeded, result.objective) == (False, told)
        ended = next(event for event in memory.events(conduct) if isinstance(event, ProcedureIterationEnded))
        assert ended.measurements == result.passes[0].measurements == (measurement("offset", 9.0),)

    async def test_a_search_tells_its_best_point(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory, budget={"iterations_remaining": 2})
        for reading in (7.5, 3.0):
            index = await walk_pass(memory, conduct, reading)
            await memory.passes.record_outcome(conduct.pass_request(index))
            await memory.passes.advise(conduct.pass_request(index), WorkAttempt())
        result = await self.result(memory, conduct, ConductOutcome(finish=Finish.COMPLETED))
        assert result.best == BestPoint(name="sharpness", value=7.5, iteration_index=1, point={"focus": -2.0})
        assert result.termination_reason is TerminationReason.ITERATIONS
        told = [(one.iteration_index, one.point, [item.value for item in one.measurements]) for one in result.passes]
        assert told == [(1, {"focus": -2.0}, [7.5]), (2, {"focus": 0.0}, [3.0])]


class TestDenials:
    """A submitter who may not give one of the commands any more."""

    def withdraw(self, memory: MemoryConduct, *commands: str) -> None:
        assert isinstance(memory.permits, RevocablePermits)
        memory.permits.withdrawn.update(commands)

    @pytest.mark.parametrize("finish", [Finish.HELD, Finish.FAULTED])
    async def test_what_was_not_closed_is_to_be_closed_first(self, memory: MemoryConduct, finish: Finish) -> None:
        how = ConductOrHoldProcedure if finish is Finish.FAULTED else ConductProcedure
        conduct = await memory.open_conduct([setpoint("bl7:absent", 3)], [setpoint("bl7:shutter", 0)], how=how)
        said: dict[str, Any] = {}
        if finish is Finish.HELD:
            await request(memory, conduct, HoldProcedure)
        else:
            said["failure"] = (await memory.step(conduct)).failure
        self.withdraw(memory, "HoldProcedure")
        outcome = ConductOutcome(finish=finish, **said)
        failure = await twice(memory, conduct, lambda stand: stand.conductor.end(conduct.end(outcome, closed=False)))
        assert failure is not None
        assert (failure.source_kind, failure.target, failure.error_class) == ("lifecycle", "abort", "UnauthorizedError")
        assert memory.procedure(conduct).live_conduct_id == conduct.conduct_id

    async def test_after_a_cancellation_nothing_is_closed_first(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        self.withdraw(memory, "AbortProcedure")
        outcome = ConductOutcome(finish=Finish.CANCELLED)
        assert await twice(memory, conduct, lambda stand: stand.conductor.end(conduct.end(outcome, closed=False))) is None
        *_, conducted, aborted = memory.events(conduct)
        assert str(memory.caller.principal_id) in aborted.reason
        assert (conducted.result.succeeded, conducted.result.failure.error_class) == (False, "UnauthorizedError")

    async def test_a_search_without_its_driver_is_held_by_the_service_whatever_its_submitter_may(
        self, memory: MemoryConduct
    ) -> None:
        conduct = await open_search(memory)
        self.withdraw(memory, "HoldProcedure", "AbortProcedure")
        assert await twice(memory, conduct, lambda stand: stand.conductor.end(conduct.end(STOOD_DOWN))) is None
        procedure = memory.procedure(conduct)
        assert (procedure.status, procedure.hold_cause) == (ProcedureStatus.HELD, HoldCause.DRIVER_STOOD_DOWN)
        assert memory.store.streams["Procedure", conduct.procedure_id][-1].principal_id == NIL

    @pytest.mark.parametrize("told", [True, False])
    async def test_then_the_service_itself_aborts_and_names_who_it_was(self, memory: MemoryConduct, told: bool) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await memory.step(conduct)
        await memory.mark_list_done(conduct, closing=True)
        self.withdraw(memory, "CompleteProcedure")
        outcome = ConductOutcome(finish=Finish.COMPLETED, completed_count=1)
        if told:
            failure = await memory.conductor.end(conduct.end(outcome, closed=False))
            outcome = outcome.model_copy(update={"failure": failure, "finish": Finish.DENIED})
        assert await twice(memory, conduct, lambda stand: stand.conductor.end(conduct.end(outcome, True))) is None
        *_, conducted, aborted = memory.events(conduct)
        assert str(memory.caller.principal_id) in aborted.reason
        assert (conducted.result.succeeded, conducted.result.failure.error_class) == (False, "UnauthorizedError")
        assert (conducted.result.completed_count, conducted.result.substrate_writes) == (1, {"bl7:a": 3})
        rows = memory.store.streams["Procedure", conduct.procedure_id]
        assert [row.principal_id for row in rows[-2:]] == [NIL, NIL]

    async def test_under_an_abort_nothing_is_closed_first(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await request(memory, conduct, AbortProcedure)
        self.withdraw(memory, "AbortProcedure")
        assert await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.ABORTED), closed=False)) is None
        assert memory.procedure(conduct).status is ProcedureStatus.ABORTED

    async def test_a_pass_does_not_stay_open(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        self.withdraw(memory, "EndProcedureIteration", "AbortProcedure")
        outcome = ConductOutcome(finish=Finish.FAILED, failure=lifecycle_failure("abort", "Broken", "It broke."))
        await memory.conductor.end(conduct.end(outcome, closed=True))
        assert memory.procedure(conduct).current_iteration_index is None


class TestRefusals:
    async def test_an_end_that_the_procedure_does_not_allow_leaves_its_status(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        held = ProcedureHeld(reason="by hand", cause=HoldCause.OPERATOR, decided_by_decision_id=None, actuation_kind=None)
        await memory.mark_list_done(conduct)
        await memory.append_events(conduct.procedure_id, held)
        outcome = ConductOutcome(finish=Finish.COMPLETED, completed_count=1)
        assert await twice(memory, conduct, lambda stand: stand.conductor.end(conduct.end(outcome, True))) is None
        result = memory.events(conduct)[-1].result
        assert (result.succeeded, result.failure.error_class) == (False, "ProcedureCannotCompleteError")
        assert (result.failure.source_kind, result.failure.target) == ("lifecycle", "complete")
        assert memory.procedure(conduct).status is ProcedureStatus.HELD

    async def test_a_hold_that_is_refused_tells_what_had_failed(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], how=ConductOrHoldProcedure)
        held = ProcedureHeld(reason="by hand", cause=HoldCause.OPERATOR, decided_by_decision_id=None, actuation_kind=None)
        await memory.append_events(conduct.procedure_id, held)
        failure = Failure(step_index=0, source_kind="check", target="x", error_class="CheckFailedError", message="No.")
        await memory.record_failure(conduct, failure)
        await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.FAILED, failure=failure), closed=False))
        result = memory.events(conduct)[-1].result
        assert (result.held, result.succeeded, result.failure) == (False, False, failure)

    async def test_a_procedure_that_was_truncated_meanwhile_is_left_alone(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await memory.time.sleep(61)
        await memory.do(TruncateProcedure(reason="power cut"), conduct.procedure_id)
        told = memory.event_types(conduct)
        assert await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED), closed=True)) is None
        assert memory.event_types(conduct) == told


class RacedStore(MemoryStore):
    """A store in which somebody else is faster, so often."""

    interference: Callable[[], None] | None = None
    times = 1

    def check(self, batch: Batch) -> None:
        if self.interference is not None and self.times:
            self.times -= 1
            self.interference()
        super().check(batch)


class TestRaces:
    def rival(self, store: MemoryStore, conduct: OpenedConduct, event: Any, *kinds: str) -> None:
        """Put an event on the procedure's stream just before somebody else does."""
        now, key = conduct.plan.started_at, ("Procedure", conduct.procedure_id)
        call = Call(OPERATOR, SYSTEM_HTTP, now, new_id(), new_id())
        stamped = [(new_id(), event.stamp(conduct.procedure_id, now))]
        batch = Batch(call, "Rival", [StreamAppend(*key, len(store.streams[key]), stamped)])
        batch.enlistments = [(Enlist(kind, str(conduct.conduct_id)), conduct.procedure_id) for kind in kinds]
        store.commit(batch, store.event_rows(batch))

    async def test_an_abort_that_is_asked_for_at_the_last_moment_counts(self, time: LoopTime) -> None:
        store = RacedStore()
        raced = memory_conduct(time, store=store)
        conduct = await raced.open_conduct([setpoint("bl7:a", 3)])
        await raced.mark_list_done(conduct)
        request = ProcedureAbortRequested(conduct_id=conduct.conduct_id, reason="smoke", run_closing=False)
        store.interference = lambda: self.rival(store, conduct, request, ABORT_ASKED)
        await raced.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED), closed=True))
        procedure = raced.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (ProcedureStatus.ABORTED, "smoke")
        assert raced.event_types(conduct).count("ProcedureConducted") == 1

    async def test_a_store_that_is_away_is_no_refusal(self, time: LoopTime) -> None:
        def away() -> None:
            raise StoreUnavailableError("The database cannot be reached.")

        store = RacedStore()
        raced = memory_conduct(time, store=store)
        conduct = await raced.open_conduct([setpoint("bl7:a", 3)])
        await raced.mark_list_done(conduct)
        store.interference = away
        with pytest.raises(StoreUnavailableError):
            await raced.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED), closed=True))
        assert raced.procedure(conduct).live_conduct_id == conduct.conduct_id
        await raced.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED), closed=True))
        assert raced.procedure(conduct).status is ProcedureStatus.COMPLETED

    async def test_so_does_one_that_comes_while_the_end_is_decided(self, time: LoopTime) -> None:
        class Late(RevocablePermits):
            """Somebody asks for an abort when the conductor has looked, and before its command does."""

            async def authorize(self, caller: Any, command_name: str, surface_id: Any = None) -> Any:
                if command_name == "CompleteProcedure":
                    await raced.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
                return await super().authorize(caller, command_name, surface_id)

        raced = memory_conduct(time, permits=Late(PrincipalStatuses(MemoryStore())))
        conduct = await raced.open_conduct([setpoint("bl7:a", 3)])
        await raced.mark_list_done(conduct)
        await raced.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED), closed=True))
        assert raced.procedure(conduct).last_status_reason == "smoke"

    async def test_the_service_itself_tries_until_it_is_on_the_record(self, time: LoopTime) -> None:
        store = RacedStore()
        raced = memory_conduct(time, store=store)
        conduct = await open_loop(raced)
        await raced.passes.start(conduct.request)

        def something_else() -> None:
            outcome = ProcedureOutcomeRecorded(
                iteration_index=1, point={}, measurements=(), succeeded=True, actuation_kind=None
            )
            self.rival(store, conduct, outcome)

        store.times, store.interference = 20, something_else
        await raced.conductor.end(conduct.end(ConductOutcome(finish=Finish.HALTED), closed=False))
        told = raced.event_types(conduct)
        assert (told.count("ProcedureIterationEnded"), told.count("ProcedureConducted")) == (1, 1)


@pytest.mark.parametrize("aborted", [True, False], ids=["aborted by a person", "failed by itself"])
async def test_a_run_waits_for_somebody_only_where_its_phase_failed_by_itself(memory: MemoryConduct, aborted: bool) -> None:
    run_id = await memory.run()
    phase_id = await memory.register_procedure([setpoint("bl7:a", 3)], parent_run_id=run_id)
    run_conduct = (await memory.do(ConductRun(procedure_ids=(phase_id,)), run_id)).body or {}
    conduct = await memory.live(ConductProcedure(), phase_id)
    await memory.time.sleep(1)
    if aborted:
        person = await memory.create(RegisterActor(name="Mira Okafor"))
        caller = Caller(person, SYSTEM_HTTP, new_id())
        await memory.commands.execute(AbortProcedure(reason="wrong sample"), caller, target_id=phase_id)
        await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.ABORTED)))
    else:
        failure = Failure(step_index=0, source_kind="setpoint", target="bl7:a", error_class="Rejected", message="No.")
        await memory.record_failure(conduct, failure)
        await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.FAILED, failure=failure), closed=True))
    assert memory.procedure(conduct).status is ProcedureStatus.ABORTED
    await memory.do(AbortRun(reason="phase Alignment: it ended", conduct_id=run_conduct["conduct_id"]), run_id)
    queries = Queries(memory.store, memory.commands.authorizer, memory.time, new_id, memory.ports())
    waiting = await queries.ask(ListWaiting(kind=(WaitingKind.FAILED_RUN,)), memory.caller)
    assert [one.id for one in waiting.items] == ([] if aborted else [run_id])
