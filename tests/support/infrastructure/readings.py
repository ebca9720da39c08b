"""Readings as an append would store them."""

from typing import Any
from uuid import UUID

from baton.domain.run.logbooks import StoredReading
from tests.support.domain.world import OPERATOR, START, new_id


def reading(run_id: UUID, **fields: Any) -> StoredReading:
    """A temperature of a run."""
    written = {"logbook_id": run_id, "actor_id": OPERATOR, "command_name": "AppendObservations", "correlation_id": run_id}
    sampled = {"sampling_procedure": "monitor", "simulated": False, "sampled_at": START, "occurred_at": START}
    taken = {"event_id": new_id(), "channel_name": "T_sample", "value": 293.1, "units": "K"}
    return StoredReading(run_id=run_id, causation_id=None, **{**written, **sampled, **taken, **fields})
