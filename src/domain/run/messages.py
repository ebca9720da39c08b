"""The messages that the workflow and the activities of a run's conduct exchange; histories record them."""

from enum import StrEnum
from uuid import UUID

from baton.domain.operation.conduct.messages import ConductOrder, Message, OwnedRequest
from baton.domain.operation.conduct.results import Failure
from baton.domain.shared.canonical import derived_uuid7


def phase_conduct_id(conduct_id: UUID, procedure_id: UUID) -> UUID:
    """Return the id of a phase's conduct under the conduct of its run, the same however often it is opened."""
    return derived_uuid7(conduct_id.int >> 80, str(conduct_id), str(procedure_id))


def run_workflow_id(run_id: UUID) -> str:
    """Return the id of the workflow that conducts a run."""
    return f"conduct-run:{run_id}"


class PhaseVerdict(StrEnum):
    """What the record says about a phase, or about the run before it."""

    OPENED = "opened"
    COMPLETED = "completed"
    FAILED = "failed"  # the phase was aborted or truncated, or must not start
    RUN_HELD = "run_held"
    RUN_RESUMED = "run_resumed"
    RUN_ENDED = "run_ended"  # somebody else ended the run
    DENIED = "denied"  # one permission of the submitter was withdrawn
    STOOD_DOWN = "stood_down"  # the submitter may not act at all any more
    GONE = "gone"  # the conduct is not the live one any more; nothing was touched


class PhaseJob(Message):
    """The workflow to start for a phase that was opened, with its search attributes."""

    id: str
    order: ConductOrder
    attributes: dict[str, str]
    summary: str | None


class PhaseReport(Message):
    """How far a phase is."""

    verdict: PhaseVerdict
    failure: Failure | None = None
    job: PhaseJob | None = None  # the workflow to start; None where it was started already


class RunFinish(StrEnum):
    """How the phases ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    ENDED = "ended"  # somebody else ended the run
    DENIED = "denied"
    STOOD_DOWN = "stood_down"
    CANCELLED = "cancelled"  # the workflow was cancelled in the engine
    GONE = "gone"


RUN_FINISH_BY_VERDICT = {
    PhaseVerdict.FAILED: RunFinish.FAILED,
    PhaseVerdict.RUN_ENDED: RunFinish.ENDED,
    PhaseVerdict.DENIED: RunFinish.DENIED,
    PhaseVerdict.STOOD_DOWN: RunFinish.STOOD_DOWN,
    PhaseVerdict.GONE: RunFinish.GONE,
}  # How the phases end at each verdict after which they do not continue.


class RunOutcome(Message):
    """The end of the phases: at which of them, and why where the record does not say."""

    finish: RunFinish
    phase_index: int | None = None
    failure: Failure | None = None


class RunConductRequest(OwnedRequest):
    """One conduct of a run, as the argument of an activity."""

    run_id: UUID
    conduct_id: UUID

    @property
    def workflow_id(self) -> str:
        return run_workflow_id(self.run_id)


class PhaseRequest(RunConductRequest):
    """One phase of a conduct of a run."""

    phase_index: int


class RunConductEnd(RunConductRequest):
    """The argument of `end_run_conduct`."""

    outcome: RunOutcome


class RunConductOrder(Message):
    """The argument of the run's workflow: the conduct, its submitter, and its position once it has begun."""

    run_id: UUID
    conduct_id: UUID
    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    phase_count: int | None = None  # how many phases there are; unknown before the conduct has begun
    phase_index: int = 0
