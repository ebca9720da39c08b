"""Activities take one request; those that an earlier build scheduled with positional arguments still run after it."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from baton.activities.bindings import EngineAttempt, activities_of
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.passes import Passes
from baton.application.conduct.run_conductor import RunConductor
from baton.application.conduct.step_execution import StepRunner
from baton.application.mint_sweeps import MintSweeps
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.messages import (
    ConductEnd,
    ConductOutcome,
    ConductRequest,
    Finish,
    JobRequest,
    PassRequest,
    StartPassRequest,
    StepPlace,
    StepRequest,
)
from baton.domain.conduct.run_messages import PhaseRequest, RunConductEnd, RunConductRequest, RunOutcome
from baton.domain.equipment.asset_external_id import MintRequest
from baton.infrastructure.temporal.engine import connect
from tests.support.domain.world import new_id

PROCEDURE, CONDUCT = new_id(), new_id()
IDS = {"procedure_id": PROCEDURE, "conduct_id": CONDUCT}
RUN_IDS = {"run_id": PROCEDURE, "conduct_id": CONDUCT}
PLACE = StepPlace(**IDS, step_index=2)
OUTCOME = ConductOutcome(finish=Finish.COMPLETED, completed_count=3)
RUN_OUTCOME = RunOutcome(finish=Finish.COMPLETED)
POINT = {"x": 1.5}
SWEEP, ASSET = new_id(), new_id()
CASES: dict[str, tuple[Any, list[Any], str]] = {
    "brief_conduct": (ConductRequest(**IDS), [PROCEDURE, CONDUCT], "brief"),
    "do_step": (StepRequest(place=PLACE, point=POINT), [PLACE, POINT, None], "do"),
    "collect_job": (JobRequest(place=PLACE, point=POINT, job_id="7"), [PLACE, POINT, "7"], "collect"),
    "await_run": (ConductRequest(**IDS), [PROCEDURE, CONDUCT], "await_run"),
    "start_pass": (StartPassRequest(**IDS, passes=1), [PROCEDURE, CONDUCT, 1, POINT], "start"),
    "judge_pass": (PassRequest(**IDS, iteration_index=4), [PROCEDURE, CONDUCT, 4], "judge"),
    "record_outcome": (PassRequest(**IDS, iteration_index=4), [PROCEDURE, CONDUCT, 4, POINT], "record_outcome"),
    "advise_pass": (PassRequest(**IDS, iteration_index=4), [PROCEDURE, CONDUCT, 4, 1], "advise"),
    "take_up_search": (ConductRequest(**IDS), [PROCEDURE, CONDUCT], "take_up"),
    "begin_closing": (ConductEnd(**IDS, outcome=OUTCOME), [PROCEDURE, CONDUCT, OUTCOME], "begin_closing"),
    "end_conduct": (ConductEnd(**IDS, outcome=OUTCOME, closed=True), [PROCEDURE, CONDUCT, OUTCOME, True], "end"),
    "brief_run_conduct": (RunConductRequest(**RUN_IDS), [PROCEDURE, CONDUCT], "brief"),
    "open_phase": (PhaseRequest(**RUN_IDS, phase_index=1), [PROCEDURE, CONDUCT, 1], "open_phase"),
    "await_run_resumed": (PhaseRequest(**RUN_IDS, phase_index=1), [PROCEDURE, CONDUCT, 1], "await_run"),
    "await_phase": (PhaseRequest(**RUN_IDS, phase_index=1), [PROCEDURE, CONDUCT, 1], "await_phase"),
    "end_run_conduct": (RunConductEnd(**RUN_IDS, outcome=RUN_OUTCOME), [PROCEDURE, CONDUCT, RUN_OUTCOME], "end"),
    "mint_sweep_asset": (MintRequest(sweep_id=SWEEP, asset_id=ASSET), [SWEEP, ASSET], "mint"),
}
"""Every activity that had several arguments: today's request, the arguments of earlier builds, and the method they call."""


class Recorder:
    """A service that records the calls of activities."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> None:
            self.calls.append((name, tuple(one for one in arguments if not isinstance(one, EngineAttempt))))

        return call


@workflow.defn(name="calls-one-activity")
class CallsOneActivity:
    @workflow.run
    async def run(self, name: str, arguments: list[Any]) -> None:
        await workflow.execute_activity(name, args=arguments, start_to_close_timeout=timedelta(seconds=60))


async def test_every_activity_runs_with_its_request_and_with_the_arguments_of_earlier_builds(
    temporal: EmbeddedTemporal,
) -> None:
    client, recorder, queue = await connect(Settings(temporal_address=temporal.address)), Recorder(), "arguments"
    owners = (Conductor, Passes, StepRunner, RunConductor, MintSweeps)
    expected = []
    async with Worker(
        client,
        task_queue=queue,
        workflows=[CallsOneActivity],
        activities=[one for owner in owners for one in activities_of(recorder, owner)],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        for name, (request, earlier, method) in CASES.items():
            call = (method, (request,))
            owner = f"conduct-run:{PROCEDURE}" if isinstance(request, RunConductRequest) else f"conduct:{PROCEDURE}"
            for arguments in ([request], earlier):
                await client.execute_workflow("calls-one-activity", args=[name, arguments], id=owner, task_queue=queue)
            expected += [call, call]
    assert recorder.calls == expected
