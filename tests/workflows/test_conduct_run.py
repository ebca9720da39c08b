"""Runs conducted from end to end: phases in order, what holds them up, what ends them, and what is recorded of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.conduct.conduct_work import ProcedureConductWork, Reconciler, RunConductWork
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import open_conduct_engine
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure, TruncateProcedure
from baton.domain.conduct.messages import ConductVerdict, conduct_workflow_id
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.conduct.run_messages import PhaseRequest, phase_conduct_id, run_workflow_id
from baton.domain.conduct.steered_conduct import (
    AdviseProcedure,
    ConductUntilAdvised,
    ConductUntilAdvisedFrom,
    GetProcedureSteering,
)
from baton.domain.conduct.work_items import GetWork, WorkView
from baton.domain.kernel import NIL, SYSTEM_CONDUIT
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.registry import REGISTRY
from baton.domain.run.logbooks import ListRunObservations
from baton.domain.run.run import FAILED_RUNS, AbortRun, CompleteRun, HoldRun, RunAborted, RunHeld, RunStatus, StopRun
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.start.run_start import ResumeRun
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.views.waiting import ListWaiting, WaitingKind
from baton.infrastructure.control.simulator import SimulatedFault
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.domain.world import expect_refusal
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.enforcing_stack import open_enforcing_run_stack
from tests.support.workflows.run_cases import RunStack, StartedRun
from tests.support.workflows.schedule_cases import register_member
from tests.support.workflows.step_json import capture, check, compute, criterion, setpoint, steered_value

OPEN_GATE = check("gate", 1, timeout=120)
"""A step that goes on when the test says so."""


@pytest.fixture(scope="module")
async def run_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[RunStack]:
    async with open_enforcing_run_stack(database, temporal.address) as run_stack:
        yield run_stack


@pytest.fixture
async def series(run_stack: RunStack) -> StartedRun:
    return await run_stack.start()


def phase_by(procedure_id: UUID, *steps: Any, command: str = "conduct_procedure", **fields: Any) -> dict[str, Any]:
    """A phase with its steps and the command that conducts them."""
    return {"procedure_id": procedure_id, "conduct": {"command": command, "steps": steps, **fields}}


async def start_two_phases(series: StartedRun, *steps: Any, closing: Any = (), rows: int) -> tuple[UUID, UUID]:
    """Two phases under way: the first has come as far as its ledger has rows, the second waits for its turn."""
    first = await series.recipe_phase(steps, closing)
    second = await series.recipe_phase([setpoint("c", 9)])
    accepted = await series.conduct(first, second, wait=0)
    assert accepted.status == 202
    await series.wait_for_ledger_rows(first, rows)
    return first, second


async def test_phases_are_conducted_in_order_and_the_run_is_completed(series: StartedRun) -> None:
    first, second = await series.phase(), await series.recipe_phase([setpoint("b", 2)], [setpoint("shutter", 0)])
    done = await series.conduct(phase_by(first, setpoint("a", 1), capture("a", "found")), second)
    assert (done.status, done.replayed) == (200, False)
    [found] = [phase["captures"].pop("found") for phase in done.body["phases"] if phase["captures"]]
    assert (found["value"], found["time"] is not None) == (1.0, True)
    assert series.stack.control.writes == [("a", 1), ("b", 2), ("shutter", 0)]
    assert await series.event_types() == ["RunStarted", "RunConductStarted", "RunCompleted", "RunConducted"]
    run = await series.run()
    assert (run.status, run.live_conduct_id, run.actuation_kind) == (RunStatus.COMPLETED, None, "Physical")
    conduct_id = UUID(done.body["conduct_id"])
    phases = [
        {
            "procedure_id": str(id),
            "conduct_id": str(phase_conduct_id(conduct_id, id)),
            "succeeded": True,
            "completed_count": count,
            "skipped_count": 0,
            "iteration_count": None,
            "failure": None,
            "closing_failures": [],
            "captures": {},
            "passes": [],
        }
        for id, count in ((first, 2), (second, 1))
    ]
    assert done.body == {
        "run_id": str(series.run_id),
        "conduct_id": str(conduct_id),
        "succeeded": True,
        "actuation_kind": "Physical",
        "failure": None,
        "phases": phases,
        "artifacts": [],
        "outputs": {},
    }
    view = await series.view()
    assert [(phase.status, phase.command) for phase in view.phases] == [("Completed", "conduct_procedure")] * 2
    assert view.result is not None
    assert view.result.phases[0].captures["found"].value == 1.0
    assert view.result.model_copy(update={"phases": ()}).model_dump(mode="json") == {**done.body, "phases": []}


async def test_loops_are_phases_too_and_all_they_bring_is_told(series: StartedRun) -> None:
    looked = await series.recipe_phase([setpoint("a", steered_value("focus")), capture("sharpness", "sharpness")])
    search = {
        "command": "conduct_until_advised",
        "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
        "space": {"axes": [{"name": "focus", "lower": 0, "upper": 2}]},
        "objective_capture_name": "sharpness",
        "decide": {"substrate": "grid_walk", "points_per_axis": 3},
    }
    settled = await series.phase()
    within = {"convergence_capture_name": "seen", "criterion": criterion(2, 0.1)}
    kept = await series.recipe_phase([compute("reduce", output_uri="file:///reduced.h5", output_ref_name="reduced")])
    done = await series.conduct(
        {"procedure_id": looked, "conduct": search},
        phase_by(settled, capture("a", "seen"), command="conduct_until_converged", **within),
        kept,
    )
    assert done.body["succeeded"], done.body
    assert [phase["iteration_count"] for phase in done.body["phases"]] == [3, 1, None]
    assert [len(phase["passes"]) for phase in done.body["phases"]] == [3, 1, 0]
    assert [one["point"] for one in done.body["phases"][0]["passes"]] == [{"focus": 0.0}, {"focus": 1.0}, {"focus": 2.0}]
    assert [artifact["uri"] for artifact in done.body["artifacts"]] == ["file:///reduced.h5"]
    assert done.body["outputs"] == {"reduced": done.body["artifacts"][0]}
    readings = await series.stack.ask(ListRunObservations(), series.run_id)
    named = [(one.channel_name, one.sampling_procedure) for one in readings.items]
    assert named == [*[("sharpness", "capture")] * 3, ("seen", "capture")]
    assert (done.body["actuation_kind"], (await series.run()).actuation_kind) == ("Hybrid", "Hybrid")


async def test_holding_the_run_pauses_the_phase_at_its_next_step_until_the_run_is_resumed(series: StartedRun) -> None:
    stack = series.stack
    first, _ = await start_two_phases(series, setpoint("a", 1), OPEN_GATE, setpoint("b", 2), rows=2)
    await stack.do(HoldRun(reason="top-up"), series.run_id)
    await stack.plant.write("gate", 1)
    await wait_for_its_run(stack, first)
    view = await series.wait_until_waiting_for("run")
    assert (view.current_procedure_id, view.phases[0].status) == (first, ProcedureStatus.RUNNING)
    assert stack.control.writes == [("a", 1)]
    await stack.do(ResumeRun(), series.run_id)
    assert (await series.result())["succeeded"]
    assert stack.control.writes == [("a", 1), ("b", 2), ("c", 9)]


async def wait_for_its_run(stack: ConductStack, procedure_id: UUID) -> None:
    async def is_waiting() -> bool:
        async with stack.runtime.pool.connection() as connection:
            found = await connection.execute(
                "SELECT waiting_for = 'run' FROM conduct_progress WHERE procedure_id = %s", [procedure_id]
            )
            return bool((await found.fetchone() or (False,))[0])

    await until(is_waiting)


@pytest.mark.parametrize("ending", ["resumed", "stopped"])
async def test_a_run_that_is_held_during_the_last_step_keeps_the_phase_from_closing(series: StartedRun, ending: str) -> None:
    stack = series.stack
    first, _ = await start_two_phases(series, setpoint("a", 1), OPEN_GATE, closing=[setpoint("shutter", 0)], rows=2)
    await stack.do(HoldRun(reason="top-up"), series.run_id)
    await stack.plant.write("gate", 1)
    await wait_for_its_run(stack, first)
    assert stack.control.writes == [("a", 1)]
    if ending == "resumed":
        await stack.do(ResumeRun(), series.run_id)
        assert (await series.result())["succeeded"]
        assert stack.control.writes == [("a", 1), ("shutter", 0), ("c", 9)]
    else:
        await stack.do(StopRun(reason="enough"), series.run_id)
        assert (await series.result())["failure"]["error_class"] == "RunStopped"
        assert stack.control.writes == [("a", 1), ("shutter", 0)]
        phase = await stack.procedure(first)
        assert (phase.status, phase.last_status_reason) == (ProcedureStatus.ABORTED, "enough")


SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": 0.0, "upper": 2.0}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller", "advice_timeout": 60},
}


async def advise(stack: ConductStack, procedure_id: UUID, **advice: Any) -> None:
    """Say where to measure, as soon as that is asked."""

    async def asked_iteration() -> int | None:
        index: int | None = (await stack.ask(GetProcedureSteering(), procedure_id)).iteration_index
        return index

    index = await until(asked_iteration)
    await stack.do(AdviseProcedure(iteration_index=index, advice=advice), procedure_id)


async def test_a_search_that_is_taken_up_waits_while_its_run_is_held(series: StartedRun) -> None:
    stack = series.stack
    id = await series.recipe_phase([setpoint("a", steered_value("focus")), capture("sharpness", "sharpness")])
    await stack.do(ConductUntilAdvised(**SEARCH, wait=0), id)

    async def is_asking() -> bool:
        return bool((await stack.ask(GetProcedureSteering(), id)).waiting)

    await until(is_asking)
    await stack.do(HoldProcedure(reason="lunch"), id)
    await stack.wait_for_status(id, ProcedureStatus.HELD)
    await stack.do(ConductUntilAdvisedFrom(**SEARCH, wait=0), id)
    await until(is_asking)
    await stack.do(HoldRun(reason="top-up"), series.run_id)
    await advise(stack, id, verdict="Measure", next_point={"focus": 0.5})
    await wait_for_its_run(stack, id)
    await stack.do(ResumeRun(), series.run_id)
    await advise(stack, id, verdict="Stop")
    await stack.wait_for_status(id, ProcedureStatus.COMPLETED)
    assert stack.control.writes == [("a", 0.0), ("a", 0.5)]


async def test_a_caller_who_waits_for_a_run_is_answered_with_the_question_of_its_phase(series: StartedRun) -> None:
    stack = series.stack
    id = await series.recipe_phase([setpoint("a", steered_value("focus")), capture("sharpness", "sharpness")])
    asked = await series.conduct({"procedure_id": id, "conduct": {"command": "conduct_until_advised", **SEARCH}})
    question = (asked.body or {})["waiting_question"]
    shown = (await stack.ask(GetProcedureSteering(), id)).model_dump(mode="json")
    assert (asked.status, question["waiting"], question["procedure_id"]) == (202, True, str(id))
    assert (question["question"], question["conduct_id"]) == (shown["question"], shown["conduct_id"])
    await advise(stack, id, verdict="Stop")
    assert (await series.result())["succeeded"]


async def test_a_phase_that_is_cancelled_goes_no_further_although_its_step_is_done_before_it_hears_of_it(
    series: StartedRun,
) -> None:
    stack = series.stack
    first, _ = await start_two_phases(series, *[setpoint("b", number) for number in range(300)], rows=10)
    await stack.client.get_workflow_handle(conduct_workflow_id(first)).cancel()
    assert (await series.result())["succeeded"] is False
    assert (await stack.procedure(first)).last_status_reason == "conduct cancelled"
    assert len(stack.control.writes) < 300


async def test_aborting_the_run_cancels_the_phase_and_closes_nothing(series: StartedRun) -> None:
    stack = series.stack
    first, second = await start_two_phases(series, OPEN_GATE, closing=[setpoint("shutter", 0)], rows=0)
    await series.wait_until_conducted(first)
    await stack.do(AbortRun(reason="smoke in the hutch"), series.run_id)
    result = await series.result()
    assert (result["succeeded"], result["phases"][0]["succeeded"], result["phases"][1]["conduct_id"]) == (False, False, None)
    phase = await stack.procedure(first)
    assert (phase.status, phase.last_status_reason) == (ProcedureStatus.ABORTED, "smoke in the hutch")
    assert (await stack.procedure(second)).status is ProcedureStatus.DEFINED
    assert stack.control.writes == []
    assert (await series.event_types())[-2:] == ["RunAborted", "RunConducted"]
    assert not await waits_for_a_look(series), "somebody asked for that end"


async def waits_for_a_look(series: StartedRun) -> bool:
    """Tell whether the run is listed as one that failed."""
    async with series.stack.runtime.store.session() as session:
        return series.run_id in await session.all_members(FAILED_RUNS)


async def test_stopping_the_run_ends_the_phase_at_its_next_step_and_closes(series: StartedRun) -> None:
    stack = series.stack
    steps = (setpoint("a", 1), OPEN_GATE, setpoint("b", 2))
    first, second = await start_two_phases(series, *steps, closing=[setpoint("shutter", 0)], rows=2)
    await stack.do(StopRun(reason="enough statistics"), series.run_id)
    await stack.plant.write("gate", 1)
    result = await series.result()
    assert (result["succeeded"], result["failure"]["error_class"]) == (False, "RunStopped")
    phase = await stack.procedure(first)
    assert (phase.status, phase.last_status_reason) == (ProcedureStatus.ABORTED, "enough statistics")
    assert stack.control.writes == [("a", 1), ("shutter", 0)]
    assert (await stack.procedure(second)).status is ProcedureStatus.DEFINED
    run = await series.run()
    assert (run.status, run.actuation_kind) == (RunStatus.STOPPED, "Physical")


async def test_a_phase_that_is_held_is_waited_for_until_somebody_takes_it_up_again(series: StartedRun) -> None:
    stack = series.stack
    first, second = await series.phase(), await series.recipe_phase([setpoint("c", 9)])
    await series.conduct(
        phase_by(first, setpoint("a", 1), check("b", 5), command="conduct_or_hold_procedure"), second, wait=0
    )
    view = await series.wait_until_waiting_for("phase", procedure_id=first, code="StepFault")
    assert view.waiting is not None
    assert "CheckFailedError" in (view.waiting.detail or "")
    assert (await series.run()).status is RunStatus.RUNNING
    await stack.plant.write("b", 5)
    await stack.do(ConductFromProcedure(re_establishment_boundary=1, wait=60), first)
    result = await series.result()
    assert result["succeeded"]
    assert result["phases"][0]["conduct_id"] != str(phase_conduct_id(UUID(result["conduct_id"]), first))
    assert stack.control.writes == [("a", 1), ("c", 9)]


async def test_a_phase_whose_conduct_was_lost_is_waited_for_until_somebody_ends_it(series: StartedRun) -> None:
    stack, runtime = series.stack, series.stack.runtime
    first, _ = await start_two_phases(series, setpoint("a", 1), OPEN_GATE, rows=2)
    await stack.client.get_workflow_handle(conduct_workflow_id(first)).terminate()
    await Reconciler([runtime.works.of(ProcedureConductWork)], runtime.engine, clock, timedelta(seconds=300)).compare()
    await series.wait_until_waiting_for("phase", procedure_id=first, code="ConductLost")
    await stack.do(AbortProcedure(reason="nobody knows"), first)
    result = await series.result()
    assert (result["succeeded"], result["failure"]["error_class"]) == (False, "ConductLost")
    assert (await series.run()).status is RunStatus.ABORTED


async def test_the_first_phase_that_fails_aborts_the_run_and_the_rest_is_left(series: StartedRun) -> None:
    stack = series.stack
    stack.plant.simulate_fault("b", SimulatedFault.REJECTING)
    first, second, third = [await series.recipe_phase([setpoint(signal, 1)], name=signal.upper()) for signal in "abc"]
    done = await series.conduct(first, second, third)
    failure = {
        "step_index": 0,
        "source_kind": "setpoint",
        "target": "b",
        "error_class": "ControlWriteRejectedError",
        "message": "b refuses to be written.",
    }
    assert (done.status, done.body["succeeded"], done.body["failure"]) == (200, False, failure)
    assert [(phase["succeeded"], phase["failure"]) for phase in done.body["phases"]] == [
        (True, None),
        (False, failure),
        (False, None),
    ]
    (aborted,) = [event for event in await series.events() if isinstance(event, RunAborted)]
    assert aborted.reason == "phase B: setpoint[0] b failed: ControlWriteRejectedError: b refuses to be written."
    assert aborted.actuation_kind == "Physical"
    assert (await stack.procedure(third)).status is ProcedureStatus.DEFINED
    assert await waits_for_a_look(series)


async def test_a_gate_that_stays_closed_holds_the_run_and_is_asked_again_when_it_is_resumed(series: StartedRun) -> None:
    stack = series.stack
    first, second = await start_two_phases(series, OPEN_GATE, rows=0)
    await series.wait_until_conducted(first)
    await series.lose_beam()
    await stack.plant.write("gate", 1)
    view = await series.wait_until_waiting_for("gate", procedure_id=second, code="ProcedureSupplyCoverageMismatchError")
    await series.wait_for_status(RunStatus.HELD)
    (held,) = [event for event in await series.events() if isinstance(event, RunHeld)]
    assert view.waiting is not None
    assert held.reason == view.waiting.detail
    with expect_refusal("RunSupplyCoverageMismatchError"):
        await stack.do(ResumeRun(), series.run_id)
    assert (await series.view()).waiting == view.waiting
    await series.restore_beam()
    await stack.do(ResumeRun(), series.run_id)
    assert (await series.result())["succeeded"]
    assert stack.control.writes == [("c", 9)]


async def test_a_phase_that_must_not_start_fails_the_run(series: StartedRun) -> None:
    stack = series.stack
    first, second = await start_two_phases(series, OPEN_GATE, rows=0)
    await series.give("start_procedure", second)
    await series.give("complete_procedure", second)
    await stack.plant.write("gate", 1)
    result = await series.result()
    failure = result["failure"]
    assert (failure["source_kind"], failure["target"], failure["error_class"]) == (
        "lifecycle",
        "start",
        "ProcedureCannotStartError",
    )
    assert (await series.run()).status is RunStatus.ABORTED
    assert (await stack.procedure(first)).status is ProcedureStatus.COMPLETED


async def test_a_run_that_is_held_when_all_is_done_is_completed_when_it_is_resumed(series: StartedRun) -> None:
    stack = series.stack
    await hold_at_the_end(series)
    await stack.do(ResumeRun(), series.run_id)
    assert (await series.result())["succeeded"]
    assert (await series.event_types())[-4:] == ["RunHeld", "RunResumed", "RunCompleted", "RunConducted"]


async def test_a_run_that_is_held_when_all_is_done_may_be_completed_by_hand(series: StartedRun) -> None:
    await hold_at_the_end(series)
    await series.stack.do(CompleteRun(), series.run_id)
    assert (await series.result())["succeeded"]
    assert (await series.event_types())[-3:] == ["RunHeld", "RunCompleted", "RunConducted"]


async def hold_at_the_end(series: StartedRun) -> None:
    """A run that was held while its only phase was closing, which is finished all the same."""
    stack = series.stack
    only = await series.recipe_phase([setpoint("a", 1)], [OPEN_GATE, setpoint("shutter", 0)])
    await series.conduct(only, wait=0)
    await series.wait_for_ledger_rows(only, 2)

    async def is_closing() -> bool:
        async with stack.runtime.pool.connection() as connection:
            found = await connection.execute("SELECT phase FROM conduct_progress WHERE procedure_id = %s", [only])
            return await found.fetchone() == ("Closing",)

    await until(is_closing)
    await stack.do(HoldRun(), series.run_id)
    await stack.plant.write("gate", 1)
    await stack.wait_for_status(only, ProcedureStatus.COMPLETED)
    await series.wait_until_waiting_for("run")


async def test_a_repeat_attaches_and_anything_else_is_refused_while_the_conduct_is_live(series: StartedRun) -> None:
    stack = series.stack
    first, second = await series.recipe_phase([OPEN_GATE]), await series.recipe_phase([setpoint("a", 1)])
    accepted = await series.conduct(first, wait=0, key="k1")
    ids = {"run_id": str(series.run_id), "conduct_id": accepted.body["conduct_id"], "work_id": accepted.body["conduct_id"]}
    assert (accepted.status, accepted.body, accepted.replayed) == (202, ids, False)
    for key in ("k1", None, "k2"):
        again = await series.conduct(first, wait=0, key=key)
        assert (again.status, again.body, again.replayed) == (202, ids, True), key
    with expect_refusal("RunCannotConductError", "conduct_live"):
        await series.conduct(first, second)
    own = stack.caller
    stack.caller, _ = await register_member(stack, REGISTRY.command_names())
    with expect_refusal("RunCannotConductError", "conduct_live"):
        await series.conduct(first)
    stack.caller = own
    await stack.plant.write("gate", 1)
    result = await series.result()
    for key in ("k1", "k2"):
        last = await series.conduct(first, wait=0, key=key)
        assert (last.status, last.body, last.replayed) == (200, result, True)
    assert (await series.event_types()).count("RunConductStarted") == 1


async def test_a_conduct_goes_on_where_it_stood_when_its_worker_comes_back(series: StartedRun) -> None:
    stack = series.stack
    first, second = await series.phase(), await series.recipe_phase([setpoint("c", 9)])
    await series.conduct(
        phase_by(first, setpoint("a", 1), check("b", 5), command="conduct_or_hold_procedure"), second, wait=0
    )
    await series.wait_until_waiting_for("phase")
    await stack.stop_worker()
    await stack.do(AbortProcedure(reason="not today"), first)
    assert (await series.run()).status is RunStatus.RUNNING
    await stack.start_worker()
    result = await series.result()
    assert (result["failure"]["error_class"], (await series.run()).status) == ("CheckFailedError", RunStatus.ABORTED)
    assert stack.control.writes == [("a", 1)]


async def test_a_conduct_opened_while_nobody_works_begins_when_somebody_does(series: StartedRun) -> None:
    stack = series.stack
    await stack.stop_worker()
    only = await series.recipe_phase([setpoint("a", 1)])
    accepted = await series.conduct(only, wait=0)
    assert accepted.status == 202
    view = await series.view()
    assert (view.heartbeat_at, view.current_procedure_id, view.phases[0].status) == (None, None, ProcedureStatus.DEFINED)
    await stack.start_worker()
    assert (await series.result())["succeeded"]


async def test_what_is_tried_twice_at_once_is_done_once(series: StartedRun) -> None:
    """A worker that was taken for lost may still be at it when the next one takes over."""
    stack = series.stack
    await stack.stop_worker()
    only = await series.recipe_phase([setpoint("a", 1)])
    conduct_id = UUID((await series.conduct(only, wait=0)).body["conduct_id"])
    async with open_conduct_engine(stack.runtime, stack.control) as wired:
        conductor = wired.run_conductor
        request = PhaseRequest(run_id=series.run_id, conduct_id=conduct_id, phase_index=0)
        assert await asyncio.gather(*(conductor.brief(request) for _ in range(2))) == [1, 1]
        opened = await asyncio.gather(*(conductor.open_phase(request) for _ in range(4)))
        assert {report.verdict for report in opened} == {ConductVerdict.DONE}
        assert len({report.job.order.conduct_id for report in opened if report.job is not None}) == 1
        assert (await stack.event_types(only)).count("ProcedureStarted") == 1
        await stack.start_worker()
        assert (await series.result())["succeeded"]
        assert await conductor.brief(request) is None
        assert (await conductor.open_phase(request)).verdict is ConductVerdict.GONE
    assert (await series.event_types()).count("RunConducted") == 1


async def test_a_conduct_that_is_cancelled_in_the_engine_aborts_the_run_and_its_phase(series: StartedRun) -> None:
    stack = series.stack
    first, _ = await start_two_phases(series, OPEN_GATE, closing=[setpoint("shutter", 0)], rows=0)
    await series.wait_until_conducted(first)
    await stack.client.get_workflow_handle(run_workflow_id(series.run_id)).cancel()
    result = await series.result()
    assert (result["succeeded"], result["failure"]["error_class"]) == (False, "CancelledError")
    (aborted,) = [event for event in await series.events() if isinstance(event, RunAborted)]
    assert aborted.reason == "conduct cancelled"
    phase = await stack.procedure(first)
    assert (phase.status, phase.last_status_reason) == (ProcedureStatus.ABORTED, "conduct cancelled")
    assert stack.control.writes == []


async def test_a_conduct_that_the_engine_has_lost_leaves_its_phase_to_go_on_and_the_run_to_a_person(
    series: StartedRun,
) -> None:
    stack = series.stack
    first, second = await start_two_phases(series, OPEN_GATE, rows=0)
    await series.wait_until_conducted(first)
    conduct_id = (await series.run()).live_conduct_id
    assert conduct_id is not None
    await stack.client.get_workflow_handle(run_workflow_id(series.run_id)).terminate()
    runtime = stack.runtime
    await Reconciler([runtime.works.of(RunConductWork)], runtime.engine, clock, timedelta(seconds=300)).compare()
    result = await series.result()
    assert (result["failure"]["error_class"], (await series.run()).status) == ("ConductLost", RunStatus.RUNNING)
    await stack.plant.write("gate", 1)
    await stack.wait_for_status(first, ProcedureStatus.COMPLETED)
    assert await runtime.works.of(RunConductWork).answer(conduct_id) == result
    (waiting,) = (await stack.ask(ListWaiting(kind=(WaitingKind.LOST_CONDUCT,)))).items
    assert (waiting.id, waiting.about, waiting.name) == (series.run_id, "Run", (await series.run()).name)
    left = {"procedure_id": str(second), "conduct": {"command": "conduct_procedure", "steps": []}}
    assert [(one.name, one.arguments.get("phases")) for one in waiting.commands] == [
        ("get_run_conduct", None),
        ("conduct_run", [left]),
        ("abort_run", None),
    ]
    assert (await series.conduct(second)).body["succeeded"]
    run = await series.run()
    assert (run.status, run.lost) == (RunStatus.COMPLETED, False)


async def test_a_conduct_that_nobody_began_in_time_is_given_up_and_the_run_stands_where_it_stood(
    series: StartedRun, database: str, temporal: EmbeddedTemporal
) -> None:
    stack = series.stack
    await stack.stop_worker()
    only = await series.recipe_phase([setpoint("a", 1)])
    await series.conduct(only, wait=1.1)
    async with open_conduct_stack(database, temporal.address, conduct_restart_limit_seconds=1):
        result = await series.result()
    await stack.start_worker()
    assert (result["failure"]["target"], result["failure"]["error_class"]) == ("start", "ConductStartExpired")
    run = await series.run()
    assert (run.status, run.live_conduct_id) == (RunStatus.RUNNING, None)
    assert (await stack.procedure(only)).status is ProcedureStatus.DEFINED


@pytest.mark.parametrize(
    ("denied", "written"), [("ConductOrHoldProcedure", [("a", 1)]), ("CompleteRun", [("a", 1), ("b", 2)])]
)
async def test_what_its_submitter_may_not_do_any_more_the_service_ends_by_name(
    series: StartedRun, denied: str, written: list[Any]
) -> None:
    stack = series.stack
    first, second = await series.recipe_phase([setpoint("a", 1), OPEN_GATE]), await series.recipe_phase([setpoint("b", 2)])
    scientist, withdraw = await register_losing_member(stack, denied)
    phases = [{"procedure_id": first}, {"procedure_id": second, "conduct": {"command": "conduct_or_hold_procedure"}}]
    command = ConductRun(phases=phases, wait=0)
    await stack.runtime.service.execute(command, scientist, target_id=series.run_id)
    await series.wait_for_ledger_rows(first, 2)
    await withdraw()
    await stack.plant.write("gate", 1)
    failure = (await series.result())["failure"]
    assert (failure["source_kind"], failure["error_class"]) == ("lifecycle", "UnauthorizedError")
    (aborted,) = [event for event in await series.events() if isinstance(event, RunAborted)]
    assert str(scientist.principal_id) in aborted.reason
    async with stack.runtime.store.session() as session:
        history = await session.history("Run", series.run_id, 0, 10)
    assert next(row for row in history if row.event_type == "RunAborted").principal_id == NIL
    assert stack.control.writes == written


async def register_losing_member(stack: ConductStack, denied: str) -> tuple[Caller, Callable[[], Awaitable[Any]]]:
    """Somebody who may do everything, and how one permission is withdrawn from them."""
    scientist, _ = await register_member(stack, REGISTRY.command_names() - {denied})
    grant = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [scientist.principal_id]}
    policy = await stack.do(DefinePolicy(name="For now", **grant, permitted_commands=[denied]))
    revoking = RevokePolicyGrant(permitted_principal_id=scientist.principal_id, reason="moved on")
    return scientist, partial(stack.do, revoking, UUID((policy.body or {})["policy_id"]))


@pytest.mark.parametrize("denied", ["CompleteProcedure", "AbortProcedure"])
async def test_a_permission_withdrawn_from_somebody_in_good_standing_aborts_their_procedure(
    series: StartedRun, denied: str
) -> None:
    stack = series.stack
    id = await stack.register_from_recipe([setpoint("a", 1), OPEN_GATE, check("b", 7)][: 2 + (denied == "AbortProcedure")])
    scientist, withdraw = await register_losing_member(stack, denied)
    await stack.runtime.service.execute(ConductProcedure(wait=0), scientist, target_id=id)
    await series.wait_for_ledger_rows(id, 2)
    await withdraw()
    await stack.plant.write("gate", 1)
    await stack.wait_for_status(id, ProcedureStatus.ABORTED)
    reason = (await stack.procedure(id)).last_status_reason or ""
    assert (str(scientist.principal_id) in reason, f"{denied} was refused" in reason) == (True, True)


async def test_nothing_is_opened_for_somebody_who_may_not_bring_it_to_its_end(series: StartedRun) -> None:
    stack = series.stack
    lacking = {"CompleteProcedure", "HoldProcedure", "CompleteRun", "EndProcedureIteration"}
    submitter, _ = await register_member(stack, REGISTRY.command_names() - lacking)
    alone, phase = await stack.register_from_recipe([setpoint("a", 1)]), await series.recipe_phase([setpoint("a", 1)])
    ending = {"CompleteProcedure", "HoldProcedure"}
    looped = {"command": "conduct_until_converged", "convergence_capture_name": "b", "criterion": criterion(0)}
    asked: list[tuple[Any, UUID, set[str]]] = [
        (ConductProcedure(), alone, ending),
        (ConductRun(procedure_ids=(phase,)), series.run_id, {*ending, "CompleteRun"}),
        (ConductRun(phases=[{"procedure_id": phase, "conduct": looped}]), series.run_id, lacking),
    ]
    for command, target_id, missing in asked:
        with expect_refusal(UnauthorizedError, "grants_missing") as caught:
            await stack.runtime.service.execute(command, submitter, target_id=target_id)
        assert caught.value.facts == {"missing": sorted(missing)}
    assert [(await stack.procedure(id)).status for id in (alone, phase)] == [ProcedureStatus.DEFINED] * 2
    assert (await series.event_types(), stack.control.writes) == (["RunStarted"], [])


async def test_nothing_follows_a_truncation_although_the_engine_goes_on(series: StartedRun) -> None:
    """The record is written first; what the workflow still tries, the ledger does not let it."""
    stack = series.stack
    id = await stack.register_from_recipe([setpoint("a", 1), OPEN_GATE, setpoint("a", 2)], [setpoint("shutter", 0)])
    await stack.do(ConductProcedure(wait=0), id)
    await series.wait_for_ledger_rows(id, 2)
    before = await stack.ledger(id)

    async def is_truncated() -> bool:
        """Give up a conduct that seems silent, and tell the engine nothing; the worker may show a sign of life first."""
        async with stack.runtime.pool.connection() as connection:
            await connection.execute(
                "UPDATE conduct_progress SET heartbeat_at = heartbeat_at - interval '61 s' WHERE procedure_id = %s", [id]
            )
        try:
            await stack.runtime.commands.execute(TruncateProcedure(reason="it hangs"), stack.caller, target_id=id)
        except TruncateProcedure.Cannot:
            return False
        return True

    await until(is_truncated)
    await stack.plant.write("gate", 1)
    handle = stack.client.get_workflow_handle(f"conduct:{id}")
    await handle.result()
    assert (await stack.event_types(id))[-2:] == ["ProcedureConducted", "ProcedureTruncated"]
    assert stack.control.writes == [("a", 1)]
    later = (await stack.ledger(id))[len(before) :]
    assert {row["step_index"] for row in later} <= {1}, "no step is begun, the one in progress may say what came of it"


async def test_a_tomography_series_with_a_beam_loss_is_conducted(series: StartedRun) -> None:
    stack, now = series.stack, clock()
    sample = {"event_id": new_id(), "channel_name": "ring_current", "value": 198.7, "sampling_procedure": "baseline"}
    await series.give("append_observations", entries=[{**sample, "sampled_at": now}])
    await series.lose_beam()
    await stack.do(HoldRun(reason="beam lost"), series.run_id)
    await series.restore_beam()
    await stack.do(ResumeRun(), series.run_id)
    await series.give("adjust_run", parameters_patch={"exposure": 0.08}, reason="lower flux after top-up")
    flat_field = await series.recipe_phase([setpoint("shutter", 0), setpoint("a", 1)], [setpoint("shutter", 1)])
    projected = compute("reconstruct", output_uri="file:///projections.h5", output_ref_name="projections")
    projections = await series.recipe_phase([setpoint("b", 1), OPEN_GATE, setpoint("b", 2), projected])
    held = {"procedure_id": projections, "conduct": {"command": "conduct_or_hold_procedure"}}
    accepted = await series.conduct(flat_field, held, wait=0)
    conduct_id = accepted.body["conduct_id"]
    assert (accepted.status, accepted.body) == (
        202,
        {"run_id": str(series.run_id), "conduct_id": conduct_id, "work_id": conduct_id},
    )
    assert (await series.event_types())[5] == "RunConductStarted"
    with expect_refusal("RunCannotCompleteError", "conduct_live"):
        await stack.do(CompleteRun(), series.run_id)
    await series.wait_for_ledger_rows(projections, 2)
    await stack.do(HoldRun(), series.run_id)
    await stack.plant.write("gate", 1)
    await wait_for_its_run(stack, projections)
    view = await series.wait_until_waiting_for("run")
    assert (view.current_procedure_id, stack.control.writes[-1]) == (projections, ("b", 1))
    await stack.do(ResumeRun(), series.run_id)
    result = await series.result()
    assert (await series.event_types())[6:] == ["RunHeld", "RunResumed", "RunCompleted", "RunConducted"]
    work: WorkView = await stack.ask(GetWork(work_id=conduct_id))
    assert (work.state, work.answer) == ("done", result)
    assert (result["succeeded"], [artifact["uri"] for artifact in result["artifacts"]]) == (True, ["file:///projections.h5"])
    with expect_refusal("RunObservationLogbookClosedError"):
        await series.give("append_observations", entries=[{**sample, "event_id": new_id(), "sampled_at": now}])
