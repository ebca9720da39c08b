"""What the settlement of a proposal comes to, as a table: by its state and the time."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from baton.domain.kernel import NIL
from baton.domain.trust.proposal import Proposal, ProposalStatus
from baton.domain.trust.settlement import Settlement, SettlementAction, next_action
from tests.support.tables import for_each

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
APPROVER = UUID(int=7)
REST, CARRY_OUT, EXPIRE = map(Settlement, (SettlementAction.REST, SettlementAction.CARRY_OUT, SettlementAction.EXPIRE))
TABLE = [
    (ProposalStatus.OPEN, None, NOW + MINUTE, Settlement(SettlementAction.WAIT, 60)),
    (ProposalStatus.OPEN, None, NOW, EXPIRE),
    (ProposalStatus.OPEN, None, NOW - MINUTE, EXPIRE),
    (ProposalStatus.OPEN, APPROVER, NOW + MINUTE, CARRY_OUT),
    (ProposalStatus.OPEN, APPROVER, NOW - MINUTE, CARRY_OUT),
    *((status, None, NOW - MINUTE, REST) for status in ProposalStatus if status is not ProposalStatus.OPEN),
]


@for_each(("status", "approved_by", "expires_at", "expected"), TABLE)
def test_what_a_settlement_comes_to(
    status: ProposalStatus, approved_by: UUID | None, expires_at: datetime, expected: Settlement
) -> None:
    proposal = Proposal(
        id=UUID(int=1),
        created_at=NOW,
        command_name="DefineZone",
        target_id=None,
        proposed_by=UUID(int=2),
        surface_id=NIL,
        conduit_id=NIL,
        correlation_id=UUID(int=3),
        policy_ids=frozenset(),
        expires_at=expires_at,
        status=status,
        approved_by=approved_by,
    )
    assert next_action(proposal, NOW) == expected


def test_a_proposal_that_the_record_does_not_know_is_left_alone() -> None:
    assert next_action(None, NOW) == REST
