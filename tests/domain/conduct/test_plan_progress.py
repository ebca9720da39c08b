"""Where the Bluesky plan of a step is, as it is shown: by its executor, by a witness, and where nobody says."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.estimates import step_key
from baton.domain.conduct.ledger import LedgerPart, StepRow
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.plan_progress import PlanStepView
from baton.domain.conduct.views import ConductView, GetProcedureConduct
from baton.domain.kernel import Call
from baton.domain.procedure.procedure import HoldCause
from baton.domain.recipe.offered_plans import PlanExecutorCatalogue
from baton.domain.recipe.steps import RecipeActionStep
from baton.domain.run.run import TruncateRun
from baton.domain.run.witness import ExitStatus, Standing, StreamCount, WitnessChange, WitnessedEnd
from baton.domain.run.witnessing import WitnessRunChange
from baton.domain.start.registration import RegisterProcedure
from baton.domain.start.run_witness import WitnessRun
from baton.domain.step.plan_steps import SubmittedPlan
from baton.domain.step.results import ConductResult
from baton.domain.views.waiting import WaitingKind, silent_plans
from tests.support.domain.conducts import progress_of, set_progress
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import expect_refusal, new_id
from tests.support.workflows.step_json import action

STEPS = tuple(action("collect", detector="cam") for _ in range(3))
KEY = UUID("0197a100-0000-7000-8000-0000000000aa")
PLAN = {"name": "plan:bl7/scan", "key": str(KEY), "job_id": "item 4", "environment": "env 1", "phase": "running"}


@pytest.fixture
def line() -> Beamline:
    """A beamline with an executor that does something else."""
    line = beamline()
    line.world.ports |= {"measured_objective": None, "submitted_plan": None}
    more = {"action_timeout": 600.0, "compute_timeout": 900.0, "plan_executors": ()}
    line.world.ports["deployment"] = SimpleNamespace(**{**vars(line.world.ports["deployment"]), **more})
    row = {"executor": "bl7", "asked_at": line.world.now, "heard_at": line.world.now, "trouble": None, "version": "1"}
    known = PlanExecutorCatalogue(**row, environment="env 2", plans={}, devices=[], activity="manager idle, RunEngine idle")
    line.world.records[PlanExecutorCatalogue, "bl7"] = known
    return line


def conducted_procedure(line: Beamline, **news: Any) -> UUID:
    """A procedure whose conduct waits for a plan in its second step."""
    id = line.world.create(RegisterProcedure(name="Scan", kind="scan"))
    line.world.when(ConductProcedure(steps=STEPS), on=id)
    at = {"conduct_id": str(progress_of(line.world, id).conduct_id), "iteration_index": 0, "closing": False, "step_index": 1}
    times = {"answered_at": line.world.now.isoformat(), "changed_at": line.world.now.isoformat()}
    plan = {**PLAN, "message": "", "run_uids": [], **times, **at, **news}
    set_progress(line.world, id, phase="Walking", step_index=1, heartbeat_at=line.world.now, plan_step=plan)
    line.world.ports["submitted_plan"] = SubmittedPlan(id, KEY)
    return id


def view(line: Beamline, id: UUID) -> ConductView:
    answer: ConductView = line.world.ask(GetProcedureConduct(), on=id)
    return answer


def plan_of(line: Beamline, id: UUID) -> PlanStepView:
    plan = view(line, id).plan_step
    assert plan is not None
    return plan


def witness(line: Beamline, num_points: int | None = 50) -> UUID:
    """Have a witness tell of the start of the plan's run, and return the run that records it."""
    metadata = {"baton": {"key": str(KEY)}} | ({} if num_points is None else {"num_points": num_points})
    asked = {"document_uid": "5f1c", "plan_id": line.plan_id, "name": "scan 4", "began_at": line.world.now}
    line.world.when(WitnessRun(**asked, metadata=metadata))
    return UUID(line.world.answer["run_id"])


def tell(line: Beamline, run_id: UUID, change: WitnessChange, **fields: Any) -> None:
    line.world.when(WitnessRunChange(change=change, at=line.world.now, **fields), on=run_id)


def test_without_a_witness_the_progress_of_a_plan_is_not_known(line: Beamline) -> None:
    seen = view(line, conducted_procedure(line))
    assert seen.message == "step 2 of 3, plan scan at bl7 as item 4: its progress is not known"
    assert seen.plan_step is not None
    assert (seen.plan_step.phase, seen.plan_step.events, seen.plan_step.num_points) == ("running", None, None)


def test_events_are_counted_by_a_witness_that_speaks_of_the_step(line: Beamline) -> None:
    id = conducted_procedure(line)
    run_id = witness(line)
    assert view(line, id).message == "step 2 of 3, plan scan at bl7 as item 4: 0 of 50 events"
    tell(line, run_id, WitnessChange.HEARD, standing=Standing(events={"primary": 12}))
    plan = plan_of(line, id)
    assert (plan.events, plan.num_points, plan.run_uids, plan.last_document) == (12, 50, ("5f1c",), "event")
    tell(line, run_id, WitnessChange.PAUSED)
    assert plan_of(line, id).text == "plan scan at bl7 as item 4: 12 of 50 events"


def test_a_witness_without_an_announced_number_counts_what_came(line: Beamline) -> None:
    id = conducted_procedure(line)
    tell(line, witness(line, None), WitnessChange.HEARD, standing=Standing(events={"primary": 7}))
    assert plan_of(line, id).text.endswith(": 7 events")


def test_what_was_heard_of_another_step_is_not_shown(line: Beamline) -> None:
    id = conducted_procedure(line)
    set_progress(line.world, id, step_index=2)
    assert (view(line, id).plan_step, view(line, id).message) == (None, "step 3 of 3")


def test_a_plan_is_silent_after_two_minutes_without_answer_change_and_document(line: Beamline) -> None:
    id = conducted_procedure(line)
    run_id, began = witness(line), line.world.now
    line.world.now = began + timedelta(seconds=100)
    tell(line, run_id, WitnessChange.HEARD, standing=Standing(events={"primary": 1}))
    heard = line.world.now
    tell(line, run_id, WitnessChange.HEARD, standing=Standing(events={"primary": 1}))
    line.world.now = heard + timedelta(seconds=119)
    assert (plan_of(line, id).silent_since, silent(line)) == (None, [])
    line.world.now = heard + timedelta(seconds=120)
    assert plan_of(line, id).silent_since == heard
    (waiting,) = silent(line)
    assert (waiting.kind, waiting.id, waiting.since) == (WaitingKind.SILENT_PLAN, id, heard)
    assert "look at bl7. Known: plan scan at bl7 as item 4: 1 of 50 events, silent since" in waiting.why
    set_progress(line.world, id, phase="Waiting", waiting_for="run")
    assert silent(line) == [], "a conduct that waits for its run asks nothing of its plan"


def silent(line: Beamline) -> list[Any]:
    call = Call(line.world.principal_id, line.world.surface_id, line.world.now, new_id(), new_id())
    found: list[Any] = line.world.fulfil(silent_plans(call))
    return found


def test_a_plan_with_unknown_outcome_shows_all_that_a_person_needs(line: Beamline) -> None:
    id = conducted_procedure(line)
    run_id = witness(line)
    conduct_id = progress_of(line.world, id).conduct_id
    begun = {"name": "plan:bl7/scan", "submission_key": str(KEY), "token": {"environment": "env 1"}}
    facts = {"run_uids": ["77aa"], "phase": "lost", "executor_says": "gone"}
    rows = [
        StepRow(conduct_id, 1, mark, 1, new_id(), line.world.now, payload)
        for mark, payload in (
            (Mark.IN_FLIGHT, begun),
            (Mark.OUTCOME, {"result": "failed", "job_id": "item 4", "facts": facts}),
        )
    ]
    line.world.ports["ledger_part"] = LedgerPart(rows, {conduct_id: 1}, ())
    own = {
        "procedure_id": id,
        "conduct_id": conduct_id,
        "command_name": "ConductProcedure",
        "succeeded": False,
        "held": True,
    }
    lost = {"step_index": 1, "source_kind": "action", "target": "plan:bl7/scan", "error_class": "PlanOutcomeUnknown"}
    result = ConductResult.model_validate({**own, "failure": {**lost, "message": "Lost."}})
    line.world.when(HoldProcedure(reason="lost", cause=HoldCause.OUTCOME_UNKNOWN, conducted=result), on=id)
    end = WitnessedEnd(exit_status=ExitStatus.SUCCESS, streams={"primary": StreamCount(announced=50, recorded=50)})
    tell(line, run_id, WitnessChange.ENDED, end=end)
    plan = plan_of(line, id)
    assert (plan.executor, plan.key, plan.job_id, plan.phase, plan.message) == ("bl7", KEY, "item 4", "lost", "gone")
    assert (plan.environment_then, plan.environment_now) == ("env 1", "env 2")
    assert (plan.run_uids, plan.events, plan.num_points) == (("77aa", "5f1c"), 50, 50)
    assert (plan.last_document, plan.exit_status, plan.executor_now) == ("stop", "success", "manager idle, RunEngine idle")
    assert "its stop document says success; the executor says now: manager idle, RunEngine idle" in plan.evidence


def test_estimates_know_a_plan_by_its_executor_and_its_name() -> None:
    step = RecipeActionStep.model_validate(action("plan:bl7/scan", num=5))
    assert step_key(step) == ("action", "plan:bl7/scan")


def test_the_death_of_the_run_engine_of_a_step_ends_no_run_that_is_conducted_here(line: Beamline) -> None:
    run_id = line.start()
    id = line.world.create(RegisterProcedure(name="Scan", kind="scan", parent_run_id=run_id))
    line.world.ports["submitted_plan"] = SubmittedPlan(id, KEY)
    assert witness(line) == run_id
    with expect_refusal("RunCannotTruncateError", "not_witnessed"):
        line.world.when(TruncateRun(reason="Its RunEngine is gone."), on=run_id)
    line.world.principal_id = new_id()
    line.world.when(TruncateRun(reason="The beam dump took everything."), on=run_id)
