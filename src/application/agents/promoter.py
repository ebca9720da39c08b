"""The promoter at work: one proposal judged, and its caution registered where the rule says so."""

import structlog

from application.agents.hands import Hands, in_process
from domain.agent.promotion import CAUTION_PROMOTER, PromoteByRule, ProposalOrder, promotion_cause
from domain.agent.recording import decision_id_of
from domain.agent.seeded import SEEDED
from domain.decision.decision import Decision
from domain.shared.reads import existing, required
from domain.shared.refusals import UnauthorizedError

log = structlog.get_logger()

ACTING = frozenset({"PromoteCautionProposal"})
"""What it is refused, if it is, when it comes to that."""


class Promoter:
    """Promotes harmless proposals as the seeded agent; decision and caution are one append."""

    def __init__(self, hands: Hands, least_confidence: float) -> None:
        self._hands = hands
        self._least_confidence = least_confidence
        self._agent_id = SEEDED[CAUTION_PROMOTER].id

    async def promote(self, order: ProposalOrder) -> None:
        """Judge a proposal, once; where somebody else promotes it meanwhile it is judged again."""
        proposal_id = order.proposal_decision_id
        caller = in_process(self._agent_id, order.correlation_id, order.event_id)
        if denied := await self._hands.denied(caller, SEEDED[CAUTION_PROMOTER].commands - ACTING):
            log.warning("promoter_stands_down", denied=denied)
            return
        proposal = await self._hands.read(required(Decision, proposal_id), caller)
        decision_id = decision_id_of(proposal.decided_at, self._agent_id, promotion_cause(proposal_id))
        command = PromoteByRule(proposal_decision_id=proposal_id, least_confidence=self._least_confidence)
        while await self._hands.read(existing(Decision, decision_id), caller) is None:
            try:
                await self._hands.execute(command, caller, new_id=decision_id)
                return
            except Decision.aggregate.AlreadyExists:
                continue
            except UnauthorizedError as refusal:
                log.error("promoter_denied", proposal_id=str(proposal_id), reason=refusal.reason)
                return
