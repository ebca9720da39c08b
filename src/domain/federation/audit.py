"""The decision that is recorded beside every event that makes or ends trust."""

from uuid import UUID

from baton.domain.decision.decision import Decision, DecisionRegistered
from baton.domain.kernel import Call, Event
from baton.domain.shared.writes import Also


def audited(event: type[Event], id: UUID, call: Call) -> Also:
    """Who chose it and what it is about, as a decision of its own in the same transaction."""
    registered = DecisionRegistered(decided_by=call.principal_id, context=event.__name__, choice=str(id))
    return Also(Decision, call.id_for(f"decision {event.__name__}"), [registered])
