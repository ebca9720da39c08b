"""The messages that the workflow and the activities of a run's conduct exchange; histories record them."""

from typing import Self
from uuid import UUID

from baton.domain.conduct.messages import (
    ConductOrder,
    ConductOutcome,
    ConductVerdict,
    Finish,
    Message,
    OwnedRequest,
    StepReport,
)
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.step.results import Failure


def phase_conduct_id(conduct_id: UUID, procedure_id: UUID) -> UUID:
    """Return the id of a phase's conduct under the conduct of its run, the same however often it is opened."""
    return derived_uuid7(conduct_id.int >> 80, str(conduct_id), str(procedure_id))


def run_workflow_id(run_id: UUID) -> str:
    """Return the id of the workflow that conducts a run."""
    return f"conduct-run:{run_id}"


class PhaseJob(Message):
    """The workflow to start for a phase that was opened, with its search attributes."""

    id: str
    order: ConductOrder
    attributes: dict[str, str]
    summary: str | None


class PhaseReport(Message):
    """How far a phase is."""

    verdict: ConductVerdict
    failure: Failure | None = None
    job: PhaseJob | None = None  # the workflow to start; None where it was started already

    def as_step(self) -> StepReport:
        """Return it as the report of a step."""
        return StepReport(verdict=self.verdict, failure=self.failure)


class RunOutcome(Message):
    """The end of the phases: at which of them, and why where the record does not say."""

    finish: Finish
    phase_index: int | None = None
    failure: Failure | None = None

    @classmethod
    def of(cls, outcome: ConductOutcome, phase_index: int) -> Self:
        """Return the outcome of a walk that ended at this phase."""
        index = None if outcome.finish in (Finish.COMPLETED, Finish.CANCELLED) else phase_index
        return cls(finish=outcome.finish, phase_index=index, failure=outcome.failure)


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
