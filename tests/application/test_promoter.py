"""The promoter and the operator: a proposal becomes one caution at most, and never without the decision that says so."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from baton.application.agents.rule_agents import Promoter
from baton.application.settings import Settings
from baton.domain.agent.caution_proposal import DRAFT, PromoteCautionProposal, ProposalOrder, caution_id_of
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.caution.caution import Caution, RegisterCaution, RetireCaution
from baton.domain.decision.decision import Decision
from baton.domain.shared.refusals import Refusal
from tests.application.test_model_agents import conclude
from tests.support.application.memory_agents import MemoryAgents, memory_agents
from tests.support.application.memory_agents import order as told
from tests.support.tables import for_each

PROMOTER = SEEDED["CautionPromoter"].id
REASONING = "The stage made a noise before it stopped, and will again."


def proposal(
    facility: MemoryAgents, choice: str = "ProposeNotice", confidence: float = 0.9, **fields: Any
) -> dict[str, Any]:
    proposed = {
        "target_kind": "Asset",
        "target_id": str(facility.line.hutch.camera),
        "category": "Wear",
        "severity": choice.removeprefix("Propose") if choice != "ProposeSupersede" else "Caution",
        "title": "The camera's shutter sticks when it is cold",
        "body": "Let it run for ten minutes with the lid closed before the first exposure.",
        "tags": ["camera"],
        "supersedes_caution_id": None,
        **fields,
    }
    return {"choice": choice, "confidence": confidence, "reasoning": REASONING, "proposed_caution": proposed}


async def facility_with_proposal(
    choice: str = "ProposeNotice", confidence: float = 0.9, **fields: Any
) -> tuple[MemoryAgents, Decision]:
    """A facility, and what its drafter has proposed."""
    facility = await memory_agents()
    return facility, await propose(facility, choice, confidence, **fields)


async def propose(facility: MemoryAgents, choice: str = "ProposeNotice", confidence: float = 0.9, **fields: Any) -> Decision:
    facility.models.model.answers.append(proposal(facility, choice, confidence, **fields))
    event = await facility.end_run()
    await conclude(facility, told(event, task=DRAFT))
    decision = facility.decisions()[-1]
    assert decision.choice == choice
    return decision


async def promote(
    facility: MemoryAgents, decision: Decision, least: float = 0.7, agent_id: UUID = PROMOTER
) -> tuple[str, Caution | None]:
    """What the promoter, or another agent, made of a proposal."""
    (row, *_) = facility.store.streams[Decision.__name__, decision.id]
    order = ProposalOrder(
        proposal_decision_id=decision.id, event_id=row.event_id, agent_id=agent_id, correlation_id=row.correlation_id
    )
    await Promoter(facility.client, Settings(caution_promoter_min_confidence=least)).promote(order)
    found = [one for one in facility.decisions() if one.context == "CautionPromotion" and one.parent_id == decision.id]
    caution: Any = facility.store.state((Caution.__name__, caution_id_of(decision)))
    assert len(found) <= 1
    return found[0].choice if found else "", caution


async def test_a_sure_notice_becomes_a_caution_with_its_decision() -> None:
    facility, decision = await facility_with_proposal()
    choice, caution = await promote(facility, decision)
    assert choice == "Promote"
    assert caution is not None
    assert (caution.authored_by, caution.parent_id, caution.expires_at) == (PROMOTER, None, None)
    assert (caution.text, caution.propagate_to_children) == ("The camera's shutter sticks when it is cold", False)
    row = facility.store.streams[Caution.__name__, caution.id][-1]
    (promotion,) = (one for one in facility.decisions() if one.context == "CautionPromotion")
    assert facility.store.streams[Decision.__name__, promotion.id][0].transaction_id == row.transaction_id
    assert (promotion.confidence, promotion.rule) == (None, "agent:CautionPromoter:v1")
    await promote(facility, decision)
    assert len(facility.store.streams[Caution.__name__, caution.id]) == 1


@for_each(("choice", "confidence"), [("ProposeCaution", 0.99), ("ProposeWarning", 0.99), ("ProposeNotice", 0.69)])
async def test_what_a_person_must_decide_is_deferred(choice: str, confidence: float) -> None:
    facility, decision = await facility_with_proposal(choice, confidence)
    assert await promote(facility, decision) == ("PromotionDeferred", None)


async def test_a_caution_in_effect_on_the_target_is_a_conflict() -> None:
    facility, decision = await facility_with_proposal()
    await facility.do(
        RegisterCaution(
            target={"kind": "Asset", "id": facility.line.hutch.camera},
            category="Wiring",
            severity="Notice",
            text="The cable is loose",
            workaround="Push it in",
        )
    )
    assert await promote(facility, decision) == ("PromotionConflicted", None)


async def test_what_a_person_retired_does_not_come_back_by_rule() -> None:
    facility, first = await facility_with_proposal()
    _, caution = await promote(facility, first)
    assert caution is not None
    await facility.do(RetireCaution(reason="Resolved"), caution.id)
    second = await propose(facility)
    assert await promote(facility, second) == ("PromotionDeferred", None)
    other = await propose(facility, category="Calibration")
    assert (await promote(facility, other))[0] == "Promote", "another category is another matter"


async def test_without_leave_to_promote_it_is_deferred() -> None:
    facility, decision = await facility_with_proposal()
    await facility.revoke_all(PROMOTER)
    await facility.permit(PROMOTER, SEEDED["CautionPromoter"].commands - {"PromoteCautionProposal"})
    assert await promote(facility, decision) == ("PromotionDeferred", None)


async def test_a_promoter_that_is_off_says_nothing() -> None:
    facility, decision = await facility_with_proposal()
    await facility.suspend(PROMOTER)
    assert await promote(facility, decision) == ("", None)


async def test_what_is_no_proposal_is_passed_over() -> None:
    facility = await memory_agents(
        {"choice": "NoAction", "confidence": 0.9, "reasoning": REASONING, "proposed_caution": None}
    )
    await conclude(facility, told(await facility.end_run(), task=DRAFT))
    assert await promote(facility, facility.decisions()[-1]) == ("", None)


async def test_two_proposals_about_one_target_at_once_make_one_caution() -> None:
    facility, first = await facility_with_proposal()
    second = await propose(facility)
    said = await asyncio.gather(promote(facility, first), promote(facility, second))
    assert sorted(choice for choice, _ in said) == ["Promote", "PromotionConflicted"]


async def test_a_drafter_with_the_grant_promotes_its_own_notice_once() -> None:
    facility, decision = await facility_with_proposal()
    drafter = decision.decided_by
    choice, caution = await promote(facility, decision, agent_id=drafter)
    assert caution is not None
    assert (choice, caution.authored_by) == ("Promote", drafter)
    await promote(facility, decision, agent_id=drafter)
    assert len(facility.store.streams[Caution.__name__, caution.id]) == 1


async def test_a_drafter_without_the_grant_promotes_nothing() -> None:
    facility, decision = await facility_with_proposal()
    drafter = decision.decided_by
    await facility.revoke_all(drafter)
    await facility.permit(drafter, SEEDED["CautionDrafter"].commands - {"PromoteCautionProposal"})
    assert await promote(facility, decision, agent_id=drafter) == ("PromotionDeferred", None)


class TestTheOperator:
    async def test_promotes_once(self) -> None:
        facility, decision = await facility_with_proposal("ProposeWarning")
        executed = await facility.do(PromoteCautionProposal(), decision.id)
        assert executed.body == {"caution_id": str(caution_id_of(decision))}
        with pytest.raises(Refusal) as caught:
            await facility.do(PromoteCautionProposal(), decision.id)
        assert caught.value.code == "CautionProposalAlreadyPromotedError"

    async def test_and_the_promoter_at_once_make_one_caution(self) -> None:
        facility, decision = await facility_with_proposal()

        async def operator() -> str:
            try:
                await facility.do(PromoteCautionProposal(), decision.id)
            except Refusal as refusal:
                return refusal.code
            return "promoted"

        said, (choice, caution) = await asyncio.gather(operator(), promote(facility, decision))
        assert caution is not None
        assert (said, choice) in {("promoted", "PromotionConflicted"), ("CautionProposalAlreadyPromotedError", "Promote")}
        assert len(facility.store.streams[Caution.__name__, caution.id]) == 1
