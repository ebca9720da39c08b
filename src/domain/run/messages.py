"""How a run drives its phases: the words that its conductor and those who act for it exchange, all of them small."""

from enum import StrEnum
from uuid import UUID

from baton.domain.operation.conduct.messages import ConductOrder, Message
from baton.domain.operation.conduct.results import Failure
from baton.domain.shared.canonical import derived_uuid7


def phase_conduct_id(conduct_id: UUID, procedure_id: UUID) -> UUID:
    """The conduct of a phase under the conduct of its run: the same however often it is opened."""
    return derived_uuid7(conduct_id.int >> 80, str(conduct_id), str(procedure_id))


class PhaseVerdict(StrEnum):
    """What there is to say of a phase, or of the run before it."""

    OPENED = "opened"
    COMPLETED = "completed"
    FAILED = "failed"
    """It was aborted or truncated, or must not start."""
    RUN_HELD = "run_held"
    RUN_RESUMED = "run_resumed"
    RUN_ENDED = "run_ended"
    """Somebody brought the run to its end."""
    DENIED = "denied"
    """The submitter may not go on with this any more."""
    STOOD_DOWN = "stood_down"
    """The submitter may not act at all any more."""
    GONE = "gone"
    """The conduct is not the live one any more; nothing was touched."""


class PhaseJob(Message):
    """A conduct that was opened for a phase, for the engine to take up, and how people find it there."""

    id: str
    order: ConductOrder
    attributes: dict[str, str]
    summary: str | None


class PhaseReport(Message):
    """What came of a phase so far."""

    verdict: PhaseVerdict
    failure: Failure | None = None
    job: PhaseJob | None = None
    """What the engine is to take up; none where it has done so already."""


class RunFinish(StrEnum):
    """How the phases came to their end."""

    COMPLETED = "completed"
    FAILED = "failed"
    ENDED = "ended"
    """Somebody else brought the run to its end."""
    DENIED = "denied"
    STOOD_DOWN = "stood_down"
    CANCELLED = "cancelled"
    """The engine was told to cancel the conduct."""
    GONE = "gone"


class RunOutcome(Message):
    """The end of the phases: at which of them, and why where it is not on the record."""

    finish: RunFinish
    phase_index: int | None = None
    failure: Failure | None = None


RUN_FINISH_BY_VERDICT = {
    PhaseVerdict.FAILED: RunFinish.FAILED,
    PhaseVerdict.RUN_ENDED: RunFinish.ENDED,
    PhaseVerdict.DENIED: RunFinish.DENIED,
    PhaseVerdict.STOOD_DOWN: RunFinish.STOOD_DOWN,
    PhaseVerdict.GONE: RunFinish.GONE,
}
"""Where phases end that do not go on."""


class RunConductOrder(Message):
    """What the conductor of a run is told: which conduct, on whose behalf, and where it stands if it has begun."""

    run_id: UUID
    conduct_id: UUID
    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    phase_count: int | None = None
    """How many phases there are; not known before the conduct has begun."""
    phase_index: int = 0
