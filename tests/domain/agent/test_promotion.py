"""How a proposal becomes a caution: the operator's checks in their order, and the promoter's gate row by row."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.agent.caution_proposal import PromoteByRule, PromoteCautionProposal, promotion_cause
from baton.domain.agent.conclusions import decision_id_of
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.caution.caution import TARGETED, CautionStatus, RetireCaution
from baton.domain.decision.decision import Decision
from baton.domain.shared.canonical import derived_uuid7
from tests.support.domain.agents import (
    agent_world,
    decision_of,
    drafter,
    person,
    register_decision,
    seed_agent,
    versioned_agent,
)
from tests.support.domain.caution_proposals import BODY, TITLE, proposal_fields, proposed_caution
from tests.support.domain.cautions import caution_of, ensure_target_exists, on_asset, register_caution
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id

STAGE = new_id()


@pytest.fixture
def world() -> World:
    world = agent_world()
    person(world)
    ensure_target_exists(world, on_asset(STAGE))
    return world


def proposal(world: World, choice: str = "ProposeNotice", **fields: Any) -> UUID:
    return register_decision(world, drafter(world), **proposal_fields(choice, STAGE, **fields))


def promote_proposal(world: World, proposal_id: UUID) -> UUID:
    assert world.when(PromoteCautionProposal(), on=proposal_id) == [], "the decision stays as it was"
    return UUID(world.answer["caution_id"])


def id_of(world: World, proposal_id: UUID) -> UUID:
    """The caution that a proposal becomes, as the specification derives it."""
    at = decision_of(world, proposal_id).decided_at
    return derived_uuid7(int(at.timestamp()) * 1000, str(proposal_id), "caution:0")


class TestAnOperatorPromotes:
    @pytest.mark.parametrize("choice", ["ProposeNotice", "ProposeCaution", "ProposeWarning"])
    def test_a_proposal_becomes_a_caution_by_its_author(self, world: World, choice: str) -> None:
        proposal_id = proposal(world, choice)
        caution_id = promote_proposal(world, proposal_id)
        assert caution_id == id_of(world, proposal_id)
        made = caution_of(world, caution_id)
        proposed = proposed_caution(choice, STAGE)
        assert (made.text, made.workaround, made.tags) == (TITLE, BODY, {"rotary"})
        assert (made.category, made.severity) == (proposed["category"], proposed["severity"])
        assert (made.target.kind, made.target.id) == ("Asset", STAGE)
        assert (made.expires_at, made.propagate_to_children, made.parent_id) == (None, False, None)
        assert (made.authored_by, made.status) == (OPERATOR, CautionStatus.ACTIVE)
        assert caution_id in world.members[TARGETED, f"Asset {STAGE}"]

    def test_it_is_promoted_once(self, world: World) -> None:
        proposal_id = proposal(world)
        caution_id = promote_proposal(world, proposal_id)
        with expect_refusal("CautionProposalAlreadyPromotedError", "already_promoted") as caught:
            promote_proposal(world, proposal_id)
        assert caught.value.facts == {"caution_id": str(caution_id)}
        world.when(RetireCaution(reason="Resolved"), on=caution_id)
        with expect_refusal("CautionProposalAlreadyPromotedError"):
            promote_proposal(world, proposal_id)

    def test_a_successor_and_the_end_of_the_old_one_come_together(self, world: World) -> None:
        old = register_caution(world, on_asset(STAGE))
        proposal_id = proposal(world, "ProposeSupersede", supersedes_caution_id=str(old))
        new = promote_proposal(world, proposal_id)
        assert (caution_of(world, new).parent_id, caution_of(world, new).status) == (old, CautionStatus.ACTIVE)
        assert caution_of(world, old).status is CautionStatus.SUPERSEDED
        assert caution_of(world, old).superseded_by_caution_id == new
        assert world.members[TARGETED, f"Asset {STAGE}"] == {new}
        with expect_refusal("CautionProposalAlreadyPromotedError"):
            promote_proposal(world, proposal_id)

    def test_only_an_active_caution_is_superseded(self, world: World) -> None:
        old = register_caution(world, on_asset(STAGE))
        proposal_id = proposal(world, "ProposeSupersede", supersedes_caution_id=str(old))
        world.when(RetireCaution(reason="Resolved"), on=old)
        with expect_refusal("CautionCannotSupersedeError", "retired"):
            promote_proposal(world, proposal_id)
        assert ("Caution", id_of(world, proposal_id)) not in world.streams

    def test_only_a_caution_on_the_same_target_is_superseded(self, world: World) -> None:
        old = register_caution(world, on_asset(new_id()))
        with expect_refusal("CautionCannotSupersedeError", "other_target"):
            promote_proposal(world, proposal(world, "ProposeSupersede", supersedes_caution_id=str(old)))
        assert caution_of(world, old).status is CautionStatus.ACTIVE

    def test_a_proposal_may_say_what_a_caution_may(self, world: World) -> None:
        short = proposal(world, body="Home it.", tags=[f"tag {number}" for number in range(20)])
        made = caution_of(world, promote_proposal(world, short))
        assert (made.workaround, len(made.tags)) == ("Home it.", 20)


class TestAnOperatorIsRefused:
    def test_for_a_proposal_that_no_drafter_made(self, world: World) -> None:
        with expect_refusal("DecisionNotEmittedByCautionDrafterError", "other_author"):
            promote_proposal(world, register_decision(world, OPERATOR, **proposal_fields("ProposeNotice", STAGE)))
        debriefer = versioned_agent(world)
        with expect_refusal("DecisionNotEmittedByCautionDrafterError"):
            promote_proposal(world, register_decision(world, debriefer, **proposal_fields("ProposeNotice", STAGE)))

    @pytest.mark.parametrize("choice", ["NoAction", "CautionDraftConflicted", "CautionDraftDeferred", "Anything"])
    def test_for_a_decision_that_proposes_nothing(self, world: World, choice: str) -> None:
        with expect_refusal("CautionProposalNotActionableError", "nothing_proposed"):
            promote_proposal(world, proposal(world, choice))

    @pytest.mark.parametrize(
        ("wrong", "keys"),
        [
            ({"target_kind": "Run"}, ["target_kind"]),
            ({"target_id": "the stage"}, ["target_id"]),
            ({"category": "Weather"}, ["category"]),
            ({"severity": "Danger"}, ["severity"]),
            ({"title": "  "}, ["title"]),
            ({"title": "t" * 2001}, ["title"]),
            ({"body": ""}, ["body"]),
            ({"body": "b" * 2001, "title": None}, ["body", "title"]),
            ({"tags": "rotary"}, ["tags"]),
            ({"tags": [" "]}, ["tags"]),
            ({"tags": None}, ["tags"]),
            ({"title": "The stage\x00 slips", "body": BODY + "\x1b"}, ["body", "title"]),
            ({"tags": ["rotary", "stage\x00"]}, ["tags"]),
            ({"supersedes_caution_id": "the old one"}, ["supersedes_caution_id"]),
            ({"supersedes_caution_id": str(new_id())}, ["supersedes_caution_id"]),
            ({"severity": "Warning"}, ["severity"]),
        ],
    )
    def test_for_what_the_rules_for_cautions_refuse(self, world: World, wrong: dict[str, Any], keys: list[str]) -> None:
        proposal_id = proposal(world, **wrong)
        with expect_refusal("CautionProposalMalformedError", "malformed") as caught:
            promote_proposal(world, proposal_id)
        assert caught.value.facts == {"keys": keys}

    @pytest.mark.parametrize("inputs", [None, {}, {"proposed_caution": None}, {"proposed_caution": ["x"]}])
    def test_for_a_choice_without_a_proposal(self, world: World, inputs: Any) -> None:
        with expect_refusal("CautionProposalMalformedError") as caught:
            promote_proposal(
                world, register_decision(world, drafter(world), "CautionProposal", "ProposeNotice", inputs=inputs)
            )
        assert caught.value.facts == {"keys": ["proposed_caution"]}

    def test_for_a_successor_that_names_no_predecessor(self, world: World) -> None:
        with expect_refusal("CautionProposalMalformedError") as caught:
            promote_proposal(world, proposal(world, "ProposeSupersede"))
        assert caught.value.facts == {"keys": ["supersedes_caution_id"]}

    def test_for_a_target_that_nobody_knows(self, world: World) -> None:
        with expect_refusal("CautionTargetNotFoundError"):
            promote_proposal(world, proposal(world, target_id=str(new_id())))

    def test_for_a_predecessor_that_nobody_knows(self, world: World) -> None:
        with expect_refusal("CautionNotFoundError"):
            promote_proposal(world, proposal(world, "ProposeSupersede", supersedes_caution_id=str(new_id())))

    def test_in_the_order_that_is_promised(self, world: World) -> None:
        """Every proposal breaks its own check and all that follow; the first one that it breaks is named."""
        broken = proposal_fields("NoAction", STAGE, title=" ")
        by_a_person = {**broken, "context": "RunDebrief"}
        with expect_refusal("DecisionNotEmittedByCautionDrafterError"):
            promote_proposal(world, register_decision(world, OPERATOR, **by_a_person))
        drafting = drafter(world)
        with expect_refusal("DecisionNotCautionProposalError", "other_context"):
            promote_proposal(world, register_decision(world, drafting, **by_a_person))
        with expect_refusal("CautionProposalNotActionableError"):
            promote_proposal(world, register_decision(world, drafting, **broken))
        missing = {"title": " ", "supersedes_caution_id": str(new_id())}
        with expect_refusal("CautionProposalMalformedError"):
            promote_proposal(
                world, register_decision(world, drafting, **proposal_fields("ProposeSupersede", STAGE, **missing))
            )


class Promoter:
    """The seeded promoter, called about one proposal."""

    def __init__(self, world: World, agent_id: UUID | None = None) -> None:
        self.world = world
        self.agent_id = agent_id or seed_agent(world, "CautionPromoter")

    def judge(self, proposal_id: UUID, least_confidence: float = 0.7) -> Decision | None:
        """Return the promoter's decision about a proposal, or None."""
        world, id = self.world, self.decision_id(proposal_id)
        caller, world.principal_id = world.principal_id, self.agent_id
        world.when(PromoteByRule(proposal_decision_id=proposal_id, least_confidence=least_confidence), opening=id)
        world.principal_id = caller
        judged: Decision | None = world.state(Decision, id)
        return judged

    def choice(self, proposal_id: UUID, least_confidence: float = 0.7) -> str | None:
        judged = self.judge(proposal_id, least_confidence)
        return None if judged is None else judged.choice

    def decision_id(self, proposal_id: UUID) -> UUID:
        at = decision_of(self.world, proposal_id).decided_at
        return decision_id_of(at, self.agent_id, promotion_cause(proposal_id))

    def has_promoted(self, proposal_id: UUID) -> bool:
        return bool(self.world.streams.get(("Caution", id_of(self.world, proposal_id))))


@pytest.fixture
def promoter(world: World) -> Promoter:
    return Promoter(world)


class TestThePromoter:
    def test_promotes_a_notice_with_enough_confidence_on_a_free_target(self, world: World, promoter: Promoter) -> None:
        proposal_id = proposal(world)
        judged = promoter.judge(proposal_id)
        assert judged is not None
        assert (judged.context, judged.choice, judged.parent_id) == ("CautionPromotion", "Promote", proposal_id)
        assert (judged.decided_by, judged.confidence, judged.rule) == (promoter.agent_id, None, "agent:CautionPromoter:v1")
        assert judged.inputs == {
            "proposal_decision_id": str(proposal_id),
            "proposal_choice": "ProposeNotice",
            "severity": "Notice",
            "target_kind": "Asset",
            "target_id": str(STAGE),
        }
        made = caution_of(world, id_of(world, proposal_id))
        assert (made.authored_by, made.text, made.severity) == (promoter.agent_id, TITLE, "Notice")

    def test_writes_decision_and_caution_in_one_append(self, world: World, promoter: Promoter) -> None:
        proposal_id = proposal(world)
        promoter.judge(proposal_id)
        decision, *_ = world.streams["Decision", promoter.decision_id(proposal_id)]
        caution, *_ = world.streams["Caution", id_of(world, proposal_id)]
        assert world.call is not None
        assert decision.occurred_at == caution.occurred_at == world.call.now
        assert decision.own_id == uuid5(promoter.decision_id(proposal_id), "event:0")

    def test_decides_once_whatever_changes_afterwards(self, world: World, promoter: Promoter) -> None:
        proposal_id = proposal(world, confidence=0.5)
        assert promoter.choice(proposal_id) == "PromotionDeferred"
        before = dict(world.streams)
        assert promoter.choice(proposal_id, least_confidence=0.1) == "PromotionDeferred"
        assert dict(world.streams) == before
        assert not promoter.has_promoted(proposal_id)

    def test_defers_what_is_about_nothing_on_record(self, world: World, promoter: Promoter) -> None:
        assert promoter.choice(proposal(world, target_id=str(new_id()))) == "PromotionDeferred"

    def test_is_asked_under_the_name_that_agents_record_by(self) -> None:
        assert PromoteByRule.operation.command_name == "RecordAgentDecision"
        assert promotion_cause(STAGE) == f"promotion:{STAGE}"
        assert SEEDED["CautionPromoter"].commands >= {"RecordAgentDecision", "PromoteCautionProposal"}


def test_what_is_no_proposal_of_a_drafter_is_skipped(world: World, promoter: Promoter) -> None:
    author, notice = drafter(world), proposal_fields("ProposeNotice", STAGE)
    skipped = [
        *(proposal(world, choice) for choice in ("NoAction", "CautionDraftConflicted", "CautionDraftDeferred")),
        register_decision(world, author, **{**notice, "context": "RunDebrief"}),
        *(register_decision(world, other, **notice) for other in (OPERATOR, versioned_agent(world))),
        *(
            register_decision(world, author, "CautionProposal", "ProposeNotice", inputs=inputs, confidence=0.9)
            for inputs in (None, {}, {"proposed_caution": None}, {"proposed_caution": "a caution"})
        ),
    ]
    assert [promoter.choice(one) for one in skipped] == [None] * len(skipped)


class TestTheGate:
    """Each row by itself, and then the order of all of them."""

    @pytest.mark.parametrize("choice", ["ProposeCaution", "ProposeWarning"])
    def test_only_a_notice_is_promoted(self, world: World, promoter: Promoter, choice: str) -> None:
        proposal_id = proposal(world, choice, confidence=1.0)
        assert promoter.choice(proposal_id) == "PromotionDeferred"
        assert not promoter.has_promoted(proposal_id)

    def test_no_successor_is_promoted(self, world: World, promoter: Promoter) -> None:
        old = register_caution(world, on_asset(STAGE))
        successor = proposal(world, "ProposeSupersede", severity="Notice", supersedes_caution_id=str(old))
        assert promoter.choice(successor) == "PromotionDeferred"
        assert caution_of(world, old).status is CautionStatus.ACTIVE

    @pytest.mark.parametrize(
        ("confidence", "least", "expected"),
        [
            (None, 0.0, "PromotionDeferred"),
            (0.69, 0.7, "PromotionDeferred"),
            (0.7, 0.7, "Promote"),
            (0.89, 0.9, "PromotionDeferred"),
            (0.0, 0.0, "Promote"),
        ],
    )
    def test_the_confidence_is_there_and_reaches_the_least(
        self, world: World, promoter: Promoter, confidence: float | None, least: float, expected: str
    ) -> None:
        assert promoter.choice(proposal(world, confidence=confidence), least) == expected

    @pytest.mark.parametrize("severity", ["Notice", "Caution", "Warning"])
    def test_no_caution_of_any_severity_is_in_effect_on_the_target(
        self, world: World, promoter: Promoter, severity: str
    ) -> None:
        register_caution(world, on_asset(STAGE), severity=severity, category="Calibration")
        proposal_id = proposal(world)
        assert promoter.choice(proposal_id) == "PromotionConflicted"
        assert not promoter.has_promoted(proposal_id)

    def test_cautions_elsewhere_expired_or_retired_are_in_nobodys_way(self, world: World, promoter: Promoter) -> None:
        register_caution(world, on_asset(new_id()))
        register_caution(world, {"kind": "Procedure", "id": STAGE})
        register_caution(world, on_asset(STAGE), expires_at=world.now + timedelta(seconds=2))
        world.when(RetireCaution(reason="Resolved"), on=register_caution(world, on_asset(STAGE)))
        world.now += timedelta(minutes=1)
        assert promoter.choice(proposal(world)) == "Promote"

    @pytest.mark.parametrize("wrong", [{"title": " "}, {"severity": "Warning"}, {"target_id": "the stage"}, {"tags": None}])
    def test_the_proposal_makes_a_caution(self, world: World, promoter: Promoter, wrong: dict[str, Any]) -> None:
        proposal_id = proposal(world, **wrong)
        assert promoter.choice(proposal_id) == "PromotionDeferred"
        assert not promoter.has_promoted(proposal_id)

    def retire_promoted_caution(self, world: World, promoter: Promoter, by: UUID) -> None:
        """Retire a caution that the promoter made before."""
        earlier = proposal(world)
        assert promoter.choice(earlier) == "Promote"
        caller, world.principal_id = world.principal_id, by
        world.when(RetireCaution(reason="NoLongerApplies"), on=id_of(world, earlier))
        world.principal_id = caller

    def test_what_a_person_retired_is_not_promoted_again(self, world: World, promoter: Promoter) -> None:
        self.retire_promoted_caution(world, promoter, OPERATOR)
        assert promoter.choice(proposal(world)) == "PromotionDeferred"

    def test_what_a_person_retired_of_another_category_or_target_does_not_count(
        self, world: World, promoter: Promoter
    ) -> None:
        self.retire_promoted_caution(world, promoter, OPERATOR)
        assert promoter.choice(proposal(world, category="Wiring")) == "Promote"
        other = new_id()
        ensure_target_exists(world, on_asset(other))
        assert promoter.choice(proposal(world, target_id=str(other))) == "Promote"

    def test_what_a_machine_retired_does_not_count(self, world: World, promoter: Promoter) -> None:
        bridge = new_id()
        world.given(bridge, ActorRegistered(kind=ActorKind.SERVICE_ACCOUNT))
        self.retire_promoted_caution(world, promoter, bridge)
        assert promoter.choice(proposal(world)) == "Promote"

    def test_what_others_wrote_and_a_person_retired_does_not_count(self, world: World, promoter: Promoter) -> None:
        world.when(RetireCaution(reason="Resolved"), on=register_caution(world, on_asset(STAGE), category="Wear"))
        assert promoter.choice(proposal(world)) == "Promote"

    def test_the_promoter_is_permitted(self, world: World, promoter: Promoter) -> None:
        world.denied.add("PromoteCautionProposal")
        proposal_id = proposal(world)
        assert promoter.choice(proposal_id) == "PromotionDeferred"
        assert not promoter.has_promoted(proposal_id)

    def test_nobody_promoted_it_before(self, world: World, promoter: Promoter) -> None:
        proposal_id = proposal(world)
        caution_id = promote_proposal(world, proposal_id)
        world.when(RetireCaution(reason="Resolved"), on=caution_id)
        assert promoter.choice(proposal_id) == "PromotionConflicted"
        assert len(world.streams["Caution", caution_id]) == 2

    def test_the_rows_are_judged_in_order(self, world: World, promoter: Promoter) -> None:
        """Whatever fails first is what is said, however much fails after it."""
        self.retire_promoted_caution(world, promoter, OPERATOR)
        blocking = register_caution(world, on_asset(STAGE))
        world.denied.add("PromoteCautionProposal")

        def judgement(choice: str = "ProposeNotice", **fields: Any) -> str:
            judged = promoter.judge(proposal(world, choice, **fields))
            assert judged is not None
            return f"{judged.choice}: {judged.reasoning}"

        judgements = [
            judgement("ProposeCaution", confidence=0.1, title=" "),
            judgement(confidence=0.1, title=" "),
            judgement(title=" "),
        ]
        world.when(RetireCaution(reason="Resolved"), on=blocking)
        judgements += [judgement(title=" "), judgement()]
        judgements += [judgement(category="Wiring")]
        world.denied.clear()
        judgements += [judgement(category="Wiring")]
        deferred, conflicted = "PromotionDeferred: ", "PromotionConflicted: "
        assert [one[: one.index(": ") + 2] for one in judgements] == [
            *(deferred, deferred, conflicted, deferred, deferred, deferred),
            "Promote: ",
        ]
        assert len(set(judgements)) == len(judgements), "each row gives a reason of its own"


class TestADrafterThatPromotes:
    def test_makes_a_caution_of_its_own_notice_and_says_so_itself(self, world: World) -> None:
        author = drafter(world)
        proposal_id = register_decision(world, author, **proposal_fields("ProposeNotice", STAGE))
        judged = Promoter(world, author).judge(proposal_id)
        assert judged is not None
        assert (judged.choice, judged.decided_by, judged.rule) == ("Promote", author, "agent:CautionDrafter:v1")
        assert caution_of(world, id_of(world, proposal_id)).authored_by == author

    def test_and_the_promoter_make_one_caution(self, world: World, promoter: Promoter) -> None:
        author = drafter(world)
        proposal_id = register_decision(world, author, **proposal_fields("ProposeNotice", STAGE))
        assert promoter.choice(proposal_id) == "Promote"
        assert Promoter(world, author).choice(proposal_id) == "PromotionConflicted"

    def test_does_not_bring_back_what_a_person_retired_of_the_promoter(self, world: World, promoter: Promoter) -> None:
        author = drafter(world)
        first, second = (register_decision(world, author, **proposal_fields("ProposeNotice", STAGE)) for _ in range(2))
        promoter.judge(first)
        world.when(RetireCaution(reason="Resolved"), on=id_of(world, first))
        assert Promoter(world, author).choice(second) == "PromotionDeferred"
