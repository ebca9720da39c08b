"""What may happen to a run after its start, and how it stands then."""

from typing import Any

from baton.domain.kernel import Event
from baton.domain.run.run import (
    RunAborted,
    RunAdjusted,
    RunCompleted,
    RunHeld,
    RunResumed,
    RunStatus,
    RunStopped,
    RunTruncated,
)
from tests.support.domain.world import OPERATOR

ENDING: dict[str, Any] = {"decided_by_decision_id": None, "actuation_kind": None}
HELD = RunHeld(reason=None, decided_by_decision_id=None)
RESUMED = RunResumed(decided_by_decision_id=None)
ADJUSTED = RunAdjusted(
    parameters_patch={},
    effective_parameters={},
    parameters_schema_revision=1,
    reason="lower flux",
    adjusted_by=OPERATOR,
    decided_by_decision_id=None,
)
LIVES_OF_RUNS: dict[str, tuple[tuple[Event, ...], RunStatus]] = {
    "running": ((), RunStatus.RUNNING),
    "adjusted": ((ADJUSTED,), RunStatus.RUNNING),
    "held": ((HELD,), RunStatus.HELD),
    "held, adjusted": ((HELD, ADJUSTED), RunStatus.HELD),
    "resumed": ((HELD, RESUMED), RunStatus.RUNNING),
    "completed": ((RunCompleted(actuation_kind=None),), RunStatus.COMPLETED),
    "stopped": ((RunStopped(reason="enough", **ENDING),), RunStatus.STOPPED),
    "aborted": ((RunAborted(reason="smoke", **ENDING),), RunStatus.ABORTED),
    "truncated": ((RunTruncated(reason="power cut", interrupted_at=None, **ENDING),), RunStatus.TRUNCATED),
}
EVENTFUL = [name for name, (events, _) in LIVES_OF_RUNS.items() if events]
"""The lives in which something happens."""


def run_events(name: str) -> tuple[Event, ...]:
    """Fresh events of a run's life: an event is stamped once."""
    return tuple(event.model_copy() for event in LIVES_OF_RUNS[name][0])
