"""Promotion at work: one proposal judged by an agent, and its caution registered where the rule says so."""

import structlog

from baton.application.agents.agent_client import AgentClient, in_process
from baton.domain.agent.decision_records import decision_id_of
from baton.domain.agent.promotion import JUDGING, PromoteByRule, ProposalOrder, promotion_cause
from baton.domain.decision.decision import Decision
from baton.domain.shared.reads import existing, required
from baton.domain.shared.refusals import UnauthorizedError

log = structlog.get_logger()


class Promoter:
    """Promotes harmless proposals as the agent that is told to; decision and caution are one append."""

    def __init__(self, hands: AgentClient, least_confidence: float) -> None:
        self._hands = hands
        self._least_confidence = least_confidence

    async def promote(self, order: ProposalOrder) -> None:
        """Judge a proposal, once; where somebody else promotes it meanwhile it is judged again."""
        proposal_id, agent_id = order.proposal_decision_id, order.agent_id
        caller = in_process(agent_id, order.correlation_id, order.event_id)
        if denied := await self._hands.denied(caller, JUDGING):
            log.warning("promoter_stands_down", agent_id=str(agent_id), denied=denied)
            return
        proposal = await self._hands.read(required(Decision, proposal_id), caller)
        decision_id = decision_id_of(proposal.decided_at, agent_id, promotion_cause(proposal_id))
        command = PromoteByRule(proposal_decision_id=proposal_id, least_confidence=self._least_confidence)
        while await self._hands.read(existing(Decision, decision_id), caller) is None:
            try:
                await self._hands.execute(command, caller, new_id=decision_id)
                return
            except Decision.aggregate.AlreadyExists:
                continue
            except UnauthorizedError as refusal:
                log.error("promoter_denied", agent_id=str(agent_id), proposal_id=str(proposal_id), reason=refusal.reason)
                return
