"""The expirer's rule: an Active clearance whose validity has run out is expired, and who did it says so."""

from datetime import datetime
from uuid import UUID

from baton.domain.agent.decision_records import decision_id_of
from baton.domain.decision.decision import RegisterDecision
from baton.domain.kernel import Value, instant
from baton.domain.safety.clearance import ACTIVE, Clearance

CLEARANCE_EXPIRER = "ClearanceExpirer"
EXPIRY = "ClearanceExpiry"
REASON = "The clearance's validity has run out."


class DuePage(Value):
    """Clearances that have run out, and where more of them are."""

    clearance_ids: tuple[UUID, ...] = ()
    next_cursor: str | None = None


def is_due(clearance: Clearance, now: datetime) -> bool:
    """Whether a clearance is to be expired now; one without an end never is."""
    return clearance.status is ACTIVE and clearance.valid_until is not None and clearance.valid_until <= now


def expiry_of(clearance_id: UUID, valid_until: datetime, agent_id: UUID) -> UUID:
    """The id of the decision that expires a clearance."""
    return decision_id_of(valid_until, agent_id, f"expire:{clearance_id}")


def expired(clearance_id: UUID, valid_until: datetime, agent_id: UUID) -> RegisterDecision:
    """The decision as it is put on record."""
    return RegisterDecision(
        decided_by=agent_id,
        context=EXPIRY,
        choice="Expire",
        rule=f"agent:{CLEARANCE_EXPIRER}:v1",
        reasoning=REASON,
        inputs={"clearance_id": str(clearance_id), "valid_until": instant(valid_until)},
    )
