"""What came of conducting a run: of each of its phases, and of all of them together."""

from uuid import UUID

from baton.domain.kernel import Value
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.results import Artifact, Failure


class PhaseResult(Value):
    """What came of one phase; one that was not reached has neither conduct nor failure."""

    procedure_id: UUID
    conduct_id: UUID | None = None
    succeeded: bool
    completed_count: int = 0
    skipped_count: int = 0
    """Steps that were left out on request, whenever the phase was taken up."""
    iteration_count: int | None = None
    failure: Failure | None = None
    closing_failures: tuple[Failure, ...] = ()


class RunConductResult(Value):
    """The outcome of one conduct of a run. It succeeded exactly when every phase and the run itself were completed."""

    run_id: UUID
    conduct_id: UUID
    succeeded: bool
    actuation_kind: ActuationKind | None = None
    failure: Failure | None = None
    phases: tuple[PhaseResult, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    outputs: dict[str, Artifact] = {}
