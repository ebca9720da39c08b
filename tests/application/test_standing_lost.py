"""A conduct whose submitter stood down: nothing more is touched, the service holds it, and somebody else takes it up."""

from typing import Any
from uuid import UUID

import pytest

from baton.application.authorization import PrincipalStatuses
from baton.domain.access.actor import ActorDeactivated, ActorKind, ActorReactivated, ActorRegistered
from baton.domain.agent.agent import AgentDefined, AgentResumed, AgentSuspended, AgentVersioned
from baton.domain.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductUntilConverged
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.ends import FINISHES
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, PassDecision, lifecycle_failure
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.kernel import NIL
from baton.domain.procedure.procedure import MODES, HoldCause, ProcedureHeld, ProcedureIterationEnded, ProcedureStatus
from baton.domain.run.run import RunAborted, RunStopped
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.start.procedure_start import ISSUED
from baton.testing.store import MemoryStore
from tests.support.application.loop_cases import CALLER, CENTRED, HELD_RUN, SEARCH, open_loop, open_search, twice, walk_pass
from tests.support.application.memory_conduct import (
    ENDING,
    MemoryConduct,
    OpenedConduct,
    RevocablePermits,
    WorkAttempt,
    memory_conduct,
)
from tests.support.domain.world import expect_refusal, new_id
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import check, setpoint

STEPS = [setpoint("bl7:a", value) for value in range(1, 13)]
CLOSING = [setpoint("bl7:shutter", 0)]


@pytest.fixture(params=[False, True], ids=["permissive", "enforced"])
def stand(request: Any, time: LoopTime) -> MemoryConduct:
    """A rehearsal in which who stood down is denied everything, and one in which nobody is denied anything."""
    store = MemoryStore()
    return memory_conduct(time, store=store, permits=RevocablePermits(PrincipalStatuses(store), enforced=request.param))


async def register_person(stand: MemoryConduct, kind: ActorKind = ActorKind.HUMAN) -> None:
    """Have somebody on record ask for what follows."""
    await stand.append_events(stand.caller.principal_id, ActorRegistered(kind=kind))


async def register_agent(stand: MemoryConduct) -> None:
    """Have an agent in service ask for what follows."""
    await register_person(stand, ActorKind.AGENT)
    known = {"kind": "other", "name": "Steerer", "version": "1", "description": None, "canonical_uri": None}
    defined = AgentDefined(
        **known,
        model_ref={"provider": "offline", "model": "steerer", "snapshot_pin": None},
        prompt_template_id=None,
        capabilities=(),
    )
    await stand.append_events(stand.caller.principal_id, defined, AgentVersioned(version="1"))


async def deactivate(stand: MemoryConduct) -> None:
    await stand.append_events(stand.caller.principal_id, ActorDeactivated())


async def suspend(stand: MemoryConduct) -> None:
    await stand.append_events(stand.caller.principal_id, AgentSuspended(reason="odd advice", suspended_by=NIL))


async def finish(stand: MemoryConduct, conduct: OpenedConduct, verdict: ConductVerdict, **said: Any) -> ConductOutcome:
    """End a conduct as its workflow would after this verdict."""
    outcome = ConductOutcome(finish=FINISHES[verdict], **said)
    await twice(stand, conduct, lambda stand: stand.conductor.end(conduct.end(outcome, closed=False)))
    return outcome


def hold_event(stand: MemoryConduct, conduct: OpenedConduct) -> ProcedureHeld:
    """How the procedure was held, which the service must have written."""
    assert stand.procedure(conduct).status is ProcedureStatus.HELD
    *_, row = stand.store.streams["Procedure", conduct.procedure_id]
    assert (row.event_type, row.principal_id) == (ProcedureHeld.__name__, NIL)
    event = stand.events(conduct)[-1]
    assert isinstance(event, ProcedureHeld)
    return event


def another(stand: MemoryConduct) -> MemoryConduct:
    """The same facility, where somebody else asks."""
    other = stand.other_worker()
    other.caller = type(stand.caller)(new_id(), stand.caller.surface_id, new_id())
    return other


class TestAtAStep:
    async def test_nothing_is_touched_behind_the_boundary_and_somebody_else_goes_on(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct(STEPS, CLOSING)
        assert (await stand.step(conduct, 0)).verdict is ConductVerdict.DONE
        await deactivate(stand)
        report = await stand.step(conduct, 1)
        assert (report.verdict, await stand.value("bl7:a")) == (ConductVerdict.STOOD_DOWN, 1)
        rows = stand.rows()
        await finish(stand, conduct, report.verdict, completed_count=1)
        event = hold_event(stand, conduct)
        assert event.cause is HoldCause.SUBMITTER_STOOD_DOWN
        assert "SubmitterStoodDown" in event.reason
        assert stand.rows() == rows, "no closing step is walked on a hold"
        result = stand.events(conduct)[-2].result
        assert (result.held, result.succeeded, result.completed_count) == (True, False, 1)
        assert (result.failure.error_class, result.failure.target) == ("SubmitterStoodDown", "hold")
        other = another(stand)
        taken_up = await other.live(ConductFromProcedure(re_establishment_boundary=1), conduct.procedure_id)
        for index in range(1, len(STEPS)):
            assert (await other.step(taken_up, index)).verdict is ConductVerdict.DONE
        done = ConductOutcome(finish=Finish.COMPLETED)
        assert await other.conductor.begin_closing(taken_up.end(done)) is ConductVerdict.DONE
        assert (await other.step(taken_up, 0, closing=True)).verdict is ConductVerdict.DONE
        await other.conductor.end(taken_up.end(done, closed=True))
        assert other.procedure(taken_up).status is ProcedureStatus.COMPLETED

    async def test_what_was_done_before_is_answered_as_it_stands(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct(STEPS)
        first = await stand.step(conduct, 0)
        await deactivate(stand)
        assert await stand.step(conduct, 0, by=stand.worker()) == first

    async def test_somebody_back_in_good_standing_goes_on(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct(STEPS)
        await deactivate(stand)
        assert (await stand.step(conduct, 0)).verdict is ConductVerdict.STOOD_DOWN
        await stand.append_events(stand.caller.principal_id, ActorReactivated())
        assert (await stand.step(conduct, 0)).verdict is ConductVerdict.DONE

    async def test_an_agent_out_of_service_stands_down_and_goes_on_when_it_is_back(self, stand: MemoryConduct) -> None:
        await register_agent(stand)
        conduct = await stand.open_conduct(STEPS)
        await suspend(stand)
        report = await stand.step(conduct, 0)
        await finish(stand, conduct, report.verdict)
        assert hold_event(stand, conduct).cause is HoldCause.SUBMITTER_STOOD_DOWN, "it steers nothing"
        await stand.append_events(stand.caller.principal_id, AgentResumed(resumed_by=NIL), AgentVersioned(version="2"))
        taken_up = await stand.live(ConductFromProcedure(re_establishment_boundary=0), conduct.procedure_id)
        assert (await stand.step(taken_up, 0)).verdict is ConductVerdict.DONE

    async def test_somebody_who_is_not_on_record_goes_on_where_nobody_needs_to_be(self, stand: MemoryConduct) -> None:
        conduct = await stand.open_conduct(STEPS)
        assert (await stand.step(conduct, 0)).verdict is ConductVerdict.DONE

    async def test_closing_steps_are_walked(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct([setpoint("bl7:a", 3)], CLOSING)
        await stand.step(conduct, 0)
        assert (
            await stand.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED))) is ConductVerdict.DONE
        )
        await deactivate(stand)
        assert (await stand.step(conduct, 0, closing=True)).verdict is ConductVerdict.DONE
        await stand.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED, completed_count=1), closed=True))
        assert hold_event(stand, conduct).cause is HoldCause.SUBMITTER_STOOD_DOWN

    async def test_what_is_done_is_not_completed_for_somebody_who_stood_down(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct([setpoint("bl7:a", 3)], CLOSING)
        await stand.step(conduct, 0)
        await deactivate(stand)
        verdict = await stand.conductor.begin_closing(conduct.end(ConductOutcome(finish=Finish.COMPLETED)))
        assert verdict is ConductVerdict.STOOD_DOWN
        await finish(stand, conduct, verdict, completed_count=1)
        assert hold_event(stand, conduct).cause is HoldCause.SUBMITTER_STOOD_DOWN

    async def test_a_run_that_is_held_is_not_waited_for(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        run_id = await stand.run()
        conduct = await stand.open_conduct(STEPS, run_id=run_id)
        await stand.append_events(run_id, HELD_RUN.model_copy())
        await deactivate(stand)
        assert await stand.conductor.await_run(conduct.request, WorkAttempt()) is ConductVerdict.STOOD_DOWN


class TestOtherEnds:
    """Where a conduct ends for another reason, it ends as it would have, only that the service writes it."""

    @pytest.mark.parametrize(("how", "status"), [(None, ProcedureStatus.ABORTED), ("hold", ProcedureStatus.HELD)])
    async def test_a_step_that_failed(self, stand: MemoryConduct, how: Any, status: ProcedureStatus) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct([check("bl7:a", 99)], **({"how": ConductOrHoldProcedure} if how else {}))
        failure = (await stand.step(conduct, 0)).failure
        await deactivate(stand)
        await stand.conductor.end(conduct.end(ConductOutcome(finish=Finish.FAILED, failure=failure), closed=True))
        procedure = stand.procedure(conduct)
        assert procedure.status is status
        assert "CheckFailedError" in (procedure.last_status_reason or "")
        assert stand.store.streams["Procedure", conduct.procedure_id][-1].principal_id == NIL

    @pytest.mark.parametrize(
        ("command", "verdict", "status"),
        [
            (HoldProcedure(reason="lunch"), ConductVerdict.HOLD, ProcedureStatus.HELD),
            (AbortProcedure(reason="lunch"), ConductVerdict.ABORT, ProcedureStatus.ABORTED),
        ],
    )
    async def test_a_request_of_somebody_else(
        self, stand: MemoryConduct, command: Any, verdict: ConductVerdict, status: ProcedureStatus
    ) -> None:
        await register_person(stand)
        conduct = await stand.open_conduct(STEPS)
        await another(stand).do(command, conduct.procedure_id)
        await deactivate(stand)
        assert (await stand.step(conduct, 0)).verdict is verdict
        await finish(stand, conduct, verdict)
        procedure = stand.procedure(conduct)
        assert (procedure.status, procedure.last_status_reason) == (status, "lunch")
        assert procedure.hold_cause in (None, HoldCause.OPERATOR)

    @pytest.mark.parametrize(
        ("event", "verdict"),
        [
            (RunStopped(reason="enough", **ENDING), ConductVerdict.RUN_STOPPED),
            (RunAborted(reason="smoke", **ENDING), ConductVerdict.RUN_ABORTED),
        ],
    )
    async def test_the_end_of_the_run(self, stand: MemoryConduct, event: Any, verdict: ConductVerdict) -> None:
        await register_person(stand)
        run_id = await stand.run()
        conduct = await stand.open_conduct(STEPS, run_id=run_id)
        await stand.append_events(run_id, event.model_copy())
        await deactivate(stand)
        assert (await stand.step(conduct, 0)).verdict is verdict
        await stand.conductor.end(conduct.end(ConductOutcome(finish=FINISHES[verdict]), closed=True))
        assert stand.procedure(conduct).status is ProcedureStatus.ABORTED


class TestInALoop:
    async def test_a_pass_is_not_begun(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await open_loop(stand)
        await deactivate(stand)
        turn = await twice(stand, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn == PassDecision(verdict=ConductVerdict.STOOD_DOWN)
        assert stand.procedure(conduct).iteration_count == 0

    async def test_a_pass_is_not_judged_and_the_service_ends_it(self, stand: MemoryConduct) -> None:
        await register_person(stand)
        conduct = await open_loop(stand, cap=1)
        index = await walk_pass(stand, conduct, 0.1)
        await deactivate(stand)
        turn = await twice(stand, conduct, lambda stand: stand.passes.judge(conduct.pass_request(index)))
        assert turn == PassDecision(verdict=ConductVerdict.STOOD_DOWN)
        await finish(stand, conduct, turn.verdict)
        assert hold_event(stand, conduct).cause is HoldCause.SUBMITTER_STOOD_DOWN
        (ended,) = [event for event in stand.events(conduct) if isinstance(event, ProcedureIterationEnded)]
        assert (ended.converged, ended.discarded) == (None, True)
        assert "SubmitterStoodDown" in (ended.reason or "")
        other = another(stand)
        taken_up = await other.live(ConductUntilConverged(**CENTRED), conduct.procedure_id)
        again = await walk_pass(other, taken_up, 0.1)
        assert (await other.passes.judge(taken_up.pass_request(again))).converged, (
            "a pass that was cut off tries no patience"
        )

    @pytest.mark.parametrize("off", [deactivate, suspend])
    async def test_an_agent_that_steers_is_a_driver_that_stood_down(self, stand: MemoryConduct, off: Any) -> None:
        await register_agent(stand)
        conduct = await open_search(stand)
        index = await walk_pass(stand, conduct, 7.5)
        await stand.passes.record_outcome(conduct.pass_request(index))
        await off(stand)
        turn = await twice(stand, conduct, lambda stand: stand.passes.advise(conduct.pass_request(index), WorkAttempt()))
        assert turn == PassDecision(verdict=ConductVerdict.STOOD_DOWN)
        await finish(stand, conduct, turn.verdict)
        event = hold_event(stand, conduct)
        assert event.cause is HoldCause.DRIVER_STOOD_DOWN
        assert stand.events(conduct)[-2].result.failure.error_class == "SteeringDriverStoodDown"
        other = another(stand)
        taken_up = await other.live(ConductUntilAdvisedFrom(**SEARCH), conduct.procedure_id)
        turn = await other.passes.take_up(taken_up.request, WorkAttempt())
        assert (turn.verdict, turn.iteration_index) == (ConductVerdict.DONE, 2), "what was measured is kept"

    @pytest.mark.parametrize("kind", [ActorKind.HUMAN, ActorKind.SERVICE_ACCOUNT])
    async def test_people_and_machines_are_submitters_that_stood_down(self, stand: MemoryConduct, kind: ActorKind) -> None:
        await register_person(stand, kind)
        conduct = await open_search(stand)
        await deactivate(stand)
        turn = await stand.passes.start(conduct.request)
        await finish(stand, conduct, turn.verdict)
        assert hold_event(stand, conduct).cause is HoldCause.SUBMITTER_STOOD_DOWN

    async def test_it_is_seen_while_advice_is_waited_for(self, stand: MemoryConduct) -> None:
        await register_agent(stand)
        conduct = await open_search(stand, decide=CALLER)
        index = await walk_pass(stand, conduct, 7.5)
        await stand.passes.record_outcome(conduct.pass_request(index))
        await suspend(stand)
        began = stand.time.elapsed_seconds
        turn = await stand.passes.advise(conduct.pass_request(index), WorkAttempt())
        assert (turn.verdict, stand.time.elapsed_seconds - began < 5) == (ConductVerdict.STOOD_DOWN, True)

    async def test_an_agent_versioned_anew_goes_on_with_its_search(self, stand: MemoryConduct) -> None:
        await register_agent(stand)
        conduct = await open_search(stand)
        await suspend(stand)
        turn = await stand.passes.start(conduct.request)
        await finish(stand, conduct, turn.verdict)
        await stand.append_events(stand.caller.principal_id, AgentResumed(resumed_by=NIL), AgentVersioned(version="2"))
        taken_up = await stand.live(ConductUntilAdvisedFrom(**SEARCH), conduct.procedure_id)
        assert (await stand.passes.start(taken_up.request)).verdict is ConductVerdict.DONE


class TestOpening:
    @pytest.mark.parametrize("how", [ConductUntilAdvised, ConductUntilConverged])
    async def test_nothing_is_opened_for_somebody_who_stood_down(self, stand: MemoryConduct, how: Any) -> None:
        await register_person(stand)
        await deactivate(stand)
        opened = open_search if how is ConductUntilAdvised else open_loop
        with expect_refusal(UnauthorizedError, "principal_deactivated"):
            await opened(stand)


class TestGrants:
    """What is asked for when a conduct opens is what it then does as its submitter."""

    @pytest.mark.parametrize("how", ["flat", "converging", "searching"])
    async def test_a_conduct_does_nothing_as_its_submitter_that_was_not_asked_for(self, time: LoopTime, how: str) -> None:
        asked: set[str] = set()

        class WatchedPermits(RevocablePermits):
            async def authorize(self, caller: Any, command_name: str, surface_id: Any = None) -> Any:
                if caller.principal_id != NIL and caller.causation_id is not None:
                    asked.add(command_name)
                return await super().authorize(caller, command_name, surface_id)

        store = MemoryStore()
        stand = memory_conduct(time, store=store, permits=WatchedPermits(PrincipalStatuses(store)))
        for finish in (Finish.COMPLETED, Finish.HELD, Finish.STOPPED):
            conduct = await {
                "flat": lambda: stand.open_conduct(STEPS),
                "converging": lambda: open_loop(stand),
                "searching": lambda: open_search(stand),
            }[how]()
            if how == "flat":
                for index in range(len(STEPS)):
                    await stand.step(conduct, index)
            elif how == "converging":
                await stand.passes.judge(conduct.pass_request(await walk_pass(stand, conduct, 0.1)))
            else:
                advised = PassDecision(verdict=ConductVerdict.DONE)
                while not advised.stop:
                    index = await walk_pass(stand, conduct, 7.5)
                    await stand.passes.record_outcome(conduct.pass_request(index))
                    advised = await stand.passes.advise(conduct.pass_request(index), WorkAttempt())
            if finish is Finish.HELD:
                await stand.do(HoldProcedure(reason="lunch"), conduct.procedure_id)
            failure = lifecycle_failure("abort", "Broken", "It broke.")
            failed = {"finish": Finish.FAILED, "failure": failure} if finish is Finish.STOPPED else {"finish": finish}
            await stand.conductor.end(conduct.end(ConductOutcome(**failed), closed=True))
        assert asked == set(ISSUED[MODES[conduct.plan.command_name]])

    async def test_a_submitter_is_folded_once_however_many_steps_there_are(self, time: LoopTime) -> None:
        standing_of: list[UUID] = []

        class CountingPermits(RevocablePermits):
            async def read_principal_status(self, caller: Any) -> Any:
                standing_of.append(caller.principal_id)
                return await super().read_principal_status(caller)

        store = MemoryStore()
        stand = memory_conduct(time, store=store, permits=CountingPermits(PrincipalStatuses(store)))
        await register_person(stand)
        conduct = await stand.open_conduct(STEPS)
        standing_of.clear()
        for index in range(len(STEPS)):
            assert (await stand.step(conduct, index)).verdict is ConductVerdict.DONE
        assert standing_of == [stand.caller.principal_id]
