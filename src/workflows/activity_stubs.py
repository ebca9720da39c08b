"""The activities as workflows call them: by reference, with one typed argument and one typed result.
`baton.activities` implements these classes. A method's name is the activity's name in histories, so it must not change."""

from inspect import iscoroutinefunction
from typing import Protocol, TypeVar

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    from baton.domain.agent.caution_proposal import ProposalOrder
    from baton.domain.agent.conclusions import ConclusionOrder, LeaseResult
    from baton.domain.agent.rule_agents import DuePage
    from baton.domain.conduct import messages as conduct
    from baton.domain.conduct.control_signals import ReadSignalsRequest, SignalSamples
    from baton.domain.conduct.run_messages import PhaseReport, PhaseRequest, RunConductEnd, RunConductRequest
    from baton.domain.queue.messages import ItemRequest, QueueOrder, TurnReport
    from baton.domain.schedule.messages import DueFiring, FiringVerdict
    from baton.domain.shared.tasks import TaskRequest
    from baton.domain.step.results import Failure

Stubs = TypeVar("Stubs")


def declare_activities(stubs: type[Stubs]) -> type[Stubs]:
    """Declare every method of a class of stubs as an activity of that name."""
    for method in filter(iscoroutinefunction, vars(stubs).values()):
        activity.defn(method)
    return stubs


@declare_activities
class ConductActivityStubs(Protocol):
    """The activities of a procedure's conduct."""

    async def brief_conduct(self, request: conduct.ConductRequest) -> conduct.ConductStart | None: ...
    async def do_step(self, request: conduct.StepRequest) -> conduct.StepReport: ...
    async def do_steps(self, request: conduct.StretchRequest) -> conduct.StepReport: ...
    async def collect_job(self, request: conduct.JobRequest) -> conduct.StepReport: ...
    async def await_run(self, request: conduct.ConductRequest) -> conduct.ConductVerdict: ...
    async def start_pass(self, request: conduct.StartPassRequest) -> conduct.PassDecision: ...
    async def judge_pass(self, request: conduct.PassRequest) -> conduct.PassDecision: ...
    async def record_outcome(self, request: conduct.PassRequest) -> conduct.PassDecision: ...
    async def advise_pass(self, request: conduct.PassRequest) -> conduct.PassDecision: ...
    async def take_up_search(self, request: conduct.ConductRequest) -> conduct.PassDecision: ...
    async def begin_closing(self, request: conduct.ConductEnd) -> conduct.ConductVerdict: ...
    async def end_conduct(self, request: conduct.ConductEnd) -> Failure | None: ...


@declare_activities
class RunConductActivityStubs(Protocol):
    """The activities of a run's conduct."""

    async def brief_run_conduct(self, request: RunConductRequest) -> int | None: ...
    async def open_phase(self, request: PhaseRequest) -> PhaseReport: ...
    async def await_run_resumed(self, request: PhaseRequest) -> PhaseReport: ...
    async def await_phase(self, request: PhaseRequest) -> PhaseReport: ...
    async def end_run_conduct(self, request: RunConductEnd) -> conduct.ConductVerdict: ...


@declare_activities
class ScheduleFiringActivityStubs(Protocol):
    """The activities of a schedule's firing."""

    async def open_firing(self, due: DueFiring) -> FiringVerdict: ...
    async def await_firing(self, due: DueFiring) -> None: ...


@declare_activities
class QueueActivityStubs(Protocol):
    """The activities of a queue."""

    async def take_turn(self, order: QueueOrder) -> TurnReport: ...
    async def await_item(self, request: ItemRequest) -> None: ...


@declare_activities
class SignalActivityStubs(Protocol):
    """The activity that reads signals."""

    async def read_signals(self, request: ReadSignalsRequest) -> SignalSamples: ...


@declare_activities
class AgentActivityStubs(Protocol):
    """The activities of agents."""

    async def take_lease(self, order: ConclusionOrder) -> LeaseResult: ...
    async def conclude(self, order: ConclusionOrder) -> bool: ...
    async def write_up_debrief(self, order: ConclusionOrder) -> None: ...
    async def regenerate_debrief(self, decision_id: str) -> None: ...
    async def promote_caution(self, order: ProposalOrder) -> None: ...
    async def supervise_runs(self) -> None: ...
    async def due_clearances(self, after: str | None) -> DuePage: ...
    async def expire_clearance(self, clearance_id: str) -> None: ...


@declare_activities
class ProposalActivityStubs(Protocol):
    """The activity of proposals."""

    async def settle_proposal(self, proposal_id: str) -> float | None: ...


class MintRequest(conduct.Message):
    """One asset of a mint sweep."""

    sweep_id: str
    asset_id: str


@declare_activities
class MintSweepActivityStubs(Protocol):
    """The activities of a mint sweep."""

    async def mint_sweep_candidates(self, sweep_id: str) -> list[str]: ...
    async def mint_sweep_asset(self, request: MintRequest) -> None: ...
    async def mint_sweep_finish(self, sweep_id: str) -> None: ...


@declare_activities
class CalibrationPublicationActivityStubs(Protocol):
    """The activities of a calibration's publication."""

    async def sign_calibration_publication(self, receipt_id: str) -> bool: ...
    async def send_calibration_publication(self, receipt_id: str) -> bool: ...
    async def record_calibration_publication(self, receipt_id: str) -> None: ...


@declare_activities
class TaskActivityStubs(Protocol):
    """The activity of tasks."""

    async def carry_out_task(self, request: TaskRequest) -> None: ...
