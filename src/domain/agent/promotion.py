"""How a proposal becomes a caution: an operator promotes it, or one of two agents does by a rule for harmless ones.

The promoter judges every proposal; where a deployment lets it, a drafter judges its own. The caution's id is derived from
the proposal, so that a proposal becomes at most one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.access.principals import SEEDED_AGENT_IDS
from baton.domain.agent.agent import Agent
from baton.domain.agent.caution_draft import CAUTION_DRAFTER, DRAFT, SEVERITIES
from baton.domain.agent.decision_records import agent_decision_event
from baton.domain.agent.prompts import DraftChoice
from baton.domain.caution.caution import (
    ACTIVE,
    RETIRED,
    WITHDRAWN,
    Caution,
    CautionTarget,
    CautionTargetNotFoundError,
    NewCaution,
    RegisterCaution,
    SupersedeCaution,
    cautions_on,
    check_target,
    registration_of,
    supersession_of,
)
from baton.domain.decision.decision import Decision, RegisterDecision, decision
from baton.domain.kernel import Call, JudgedCreation, JudgedVerb, Outcome, Value
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, every, existing, is_permitted, members_of, required
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.text import Blank, writable
from baton.domain.shared.writes import Also, Answer

CAUTION_PROMOTER = "CautionPromoter"
PROMOTION_LOCK = "caution-promotion"
"""The lock an agent holds while it judges, so that two proposals about one target are judged one after the other."""
JUDGING_COMMANDS = frozenset({"RecordAgentDecision", "GetDecision", "ListCautions"})
"""The commands an agent must be permitted before it judges a proposal."""
PROMOTE = "Promote"
DEFERRED = "PromotionDeferred"
CONFLICTED = "PromotionConflicted"
ACTIONABLE = frozenset(DraftChoice) - {DraftChoice.NO_ACTION}
PROPOSAL_KEYS = {"kind": "target_kind", "id": "target_id", "text": "title", "workaround": "body"}
"""The parts of a caution that have another name in a proposal."""


class DecisionNotEmittedByCautionDrafterError(Conflict, context="agent"):
    """Only what an agent of kind CautionDrafter decided can be promoted."""


class DecisionNotCautionProposalError(Conflict, context="agent"):
    """The decision proposes no caution."""


class CautionProposalNotActionableError(Conflict, context="agent"):
    """The decision is that no caution is called for, or that none could be drafted."""


class CautionProposalMalformedError(Conflict, context="agent"):
    """The proposal is no caution by the rules for cautions."""


class CautionProposalAlreadyPromotedError(Conflict, context="agent"):
    """The proposal has become a caution before."""


def caution_id_of(proposal: Decision) -> UUID:
    """Return the id of the caution that a proposal becomes."""
    return derived_uuid7(int(proposal.decided_at.timestamp() * 1000), str(proposal.id), "caution:0")


def raw_proposal(inputs: Mapping[str, Any] | None) -> Any:
    """Return what a decision proposes, as it was written, or None."""
    return (inputs or {}).get("proposed_caution")


def proposed_caution(proposal: Decision) -> tuple[RegisterCaution, UUID | None]:
    """Return the caution that is proposed, by the rules for cautions, and the id of the one it supersedes."""
    proposed = raw_proposal(proposal.inputs)
    if not isinstance(proposed, Mapping):
        raise malformed_proposal(["proposed_caution"])
    note = parse_proposal(proposed)
    superseded = proposed.get("supersedes_caution_id")
    try:
        superseded_id = None if superseded is None else UUID(str(superseded))
    except ValueError:
        raise malformed_proposal(["supersedes_caution_id"]) from None
    if (proposal.choice == DraftChoice.PROPOSE_SUPERSEDE) != (superseded_id is not None):
        raise malformed_proposal(["supersedes_caution_id"])
    if note.severity is not SEVERITIES.get(proposal.choice, note.severity):
        raise malformed_proposal(["severity"])
    return note, superseded_id


def parse_proposal(proposed: Mapping[str, Any]) -> RegisterCaution:
    """Return a proposal as a caution; refuse by the keys that the rules for cautions object to."""
    named = {name: proposed.get(name) for name in ("category", "severity", "tags")}
    target = {"kind": proposed.get("target_kind"), "id": proposed.get("target_id")}
    try:
        note = RegisterCaution.model_validate(
            {"target": target, "text": proposed.get("title"), "workaround": proposed.get("body"), **named}
        )
    except ValidationError as error:
        places = [fault["loc"][1] if fault["loc"][0] == "target" else fault["loc"][0] for fault in error.errors()]
        raise malformed_proposal(PROPOSAL_KEYS.get(str(place), str(place)) for place in places) from None
    texts = [("title", note.text), ("body", note.workaround), *(("tags", tag) for tag in note.tags)]
    if unfit := [key for key, text in texts if isinstance(text, Blank) or not writable(text)]:
        raise malformed_proposal(unfit)
    return note


def malformed_proposal(keys: Iterable[str]) -> CautionProposalMalformedError:
    """Return the refusal of a proposal whose values under these keys make no caution."""
    return CautionProposalMalformedError(
        "The proposal does not make a caution; register one by hand instead.",
        reason="malformed",
        facts={"keys": sorted(set(keys))},
    )


class Promotable(NamedTuple):
    """Whether a proposal has become a caution before, the caution it makes, and the one that this would replace."""

    promoted: bool
    note: RegisterCaution
    replaced: Caution | None


@decision.command(post="/{decision_id}/promote", context="agent", status=201, returns=NewCaution, attempts=3)
class PromoteCautionProposal(JudgedVerb[Decision, Promotable]):
    """Make a caution of what an agent proposed; its author is the caller who promotes it."""

    def gather(self, proposal: Decision, call: Call) -> Reads[Promotable]:
        check_origin(proposal, (yield from existing(Agent, proposal.decided_by)))
        note, superseded_id = proposed_caution(proposal)
        yield from check_target(note.target)
        promotion_outcome = (yield from existing(Caution, caution_id_of(proposal))) is not None
        replaced = None if superseded_id is None else (yield from required(Caution, superseded_id))
        return Promotable(promotion_outcome, note, replaced)

    def decide(self, proposal: Decision, call: Call, facts: Promotable) -> Outcome:
        if facts.promoted:
            raise CautionProposalAlreadyPromotedError(
                f"This proposal is caution {caution_id_of(proposal)} already; supersede or retire that.",
                reason="already_promoted",
                facts={"caution_id": str(caution_id_of(proposal))},
            )
        return [*promotion_outcome(proposal, call, facts), Answer({"caution_id": str(caution_id_of(proposal))})]


def check_origin(proposal: Decision, author: Agent | None) -> None:
    """Refuse what no drafter wrote, what is no proposal, and what proposes nothing."""
    if author is None or author.kind != CAUTION_DRAFTER:
        raise DecisionNotEmittedByCautionDrafterError(
            f"The decision was not made by an agent of kind {CAUTION_DRAFTER}; register the caution by hand.",
            reason="other_author",
        )
    if proposal.context != DRAFT.context:
        raise DecisionNotCautionProposalError(
            f"The decision is of context {proposal.context}, and only {DRAFT.context} proposes cautions.",
            reason="other_context",
        )
    if proposal.choice not in ACTIONABLE:
        raise CautionProposalNotActionableError(
            f"The decision is {proposal.choice}, so there is nothing to promote; register the caution by hand.",
            reason="nothing_proposed",
        )


def promotion_outcome(proposal: Decision, call: Call, facts: Promotable) -> Outcome:
    """Return the new caution and, where it supersedes another one, the end of that."""
    caution_id = caution_id_of(proposal)
    parent_id = None if facts.replaced is None else facts.replaced.id
    written = Also(Caution, caution_id, registration_of(facts.note.to_event(call, parent_id)))
    if facts.replaced is None:
        return [written]
    if facts.replaced.status is not ACTIVE:
        raise SupersedeCaution.Cannot(
            f"The caution to be superseded is {facts.replaced.status.value}; register a new one by hand.",
            reason=facts.replaced.status.value.lower(),
        )
    if facts.replaced.target != facts.note.target:
        raise SupersedeCaution.Cannot(
            "The caution to be superseded is about something else; register a new one by hand.", reason="other_target"
        )
    return [written, Also(Caution, facts.replaced.id, supersession_of(facts.replaced, caution_id))]


@dataclass(frozen=True)
class Circumstances:
    """The facts that the rule of promotion judges."""

    known: bool  # Whether it has decided about this proposal before.
    proposal: Decision
    author: Agent | None
    note: RegisterCaution | None  # The proposed caution, where it obeys the rules for cautions and its target exists.
    promoted: bool
    in_effect: tuple[Caution, ...]
    withdrawn: tuple[Caution, ...]  # Cautions of such agents on this target that a person has retired.
    permitted: bool


@decision.inner(creates=True, command_name="RecordAgentDecision", lock=PROMOTION_LOCK)
class PromoteByRule(JudgedCreation[Circumstances]):
    """Judge a proposal as the calling agent, and register the caution in the same append where the rule says so."""

    proposal_decision_id: UUID
    least_confidence: float

    def gather(self, call: Call) -> Reads[Circumstances]:
        proposal = yield from required(Decision, self.proposal_decision_id)
        target = target_of(proposal)
        return Circumstances(
            known=(yield from existing(Decision, call.new_id)) is not None,
            proposal=proposal,
            author=(yield from existing(Agent, proposal.decided_by)),
            note=(yield from valid_proposal(proposal)),
            promoted=(yield from existing(Caution, caution_id_of(proposal))) is not None,
            in_effect=() if target is None else (yield from cautions_on([target], call.now)),
            withdrawn=() if target is None else (yield from withdrawn_by_people(target, call.principal_id)),
            permitted=(yield from is_permitted(PromoteCautionProposal.operation.command_name)),
        )

    def decide(self, call: Call, facts: Circumstances) -> Outcome:
        if facts.known or not concerns_promoter(facts.proposal, facts.author):
            return []
        choice, reasoning = promotion_choice(facts, self.least_confidence)
        registered = agent_decision_event(self._decision(call, facts.proposal, choice, reasoning), call.new_id)
        if choice != PROMOTE or facts.note is None:
            return [registered]
        return [registered, *promotion_outcome(facts.proposal, call, Promotable(False, facts.note, None))]

    def _decision(self, call: Call, proposal: Decision, choice: str, reasoning: str) -> RegisterDecision:
        kind = CAUTION_DRAFTER if call.principal_id == proposal.decided_by else CAUTION_PROMOTER
        proposed = raw_proposal(proposal.inputs)
        return RegisterDecision(
            decided_by=call.principal_id,
            context="CautionPromotion",
            choice=choice,
            parent_id=proposal.id,
            rule=f"agent:{kind}:v1",
            reasoning=reasoning,
            inputs={
                "proposal_decision_id": str(proposal.id),
                "proposal_choice": proposal.choice,
                **{name: proposed.get(name) for name in ("severity", "target_kind", "target_id")},
            },
        )


def concerns_promoter(proposal: Decision, author: Agent | None) -> bool:
    """Return whether a decision is a proposal that an agent judges at all."""
    return (
        proposal.context == DRAFT.context
        and author is not None
        and author.kind == CAUTION_DRAFTER
        and proposal.choice in ACTIONABLE
        and isinstance(raw_proposal(proposal.inputs), dict)
    )


def promotion_choice(facts: Circumstances, least_confidence: float) -> tuple[str, str]:
    """Return the agent's choice, and why: only harmless, certain, new proposals become cautions without a person."""
    proposal = facts.proposal
    if proposal.choice != DraftChoice.PROPOSE_NOTICE:
        return DEFERRED, f"{proposal.choice} is for a person to promote; only notices are promoted by rule."
    if proposal.confidence is None or proposal.confidence < least_confidence:
        return DEFERRED, f"The proposal's confidence is below {least_confidence}; a person decides."
    if facts.in_effect:
        return CONFLICTED, "A caution is in effect on this target; a person decides whether another one is needed."
    if facts.note is None:
        return DEFERRED, "The proposal does not make a caution by the rules for cautions."
    if any(caution.category is facts.note.category for caution in facts.withdrawn):
        return DEFERRED, "A person has retired such a caution on this target before; a person decides."
    if not facts.permitted:
        return DEFERRED, "The agent is not permitted to promote."
    if facts.promoted:
        return CONFLICTED, "Somebody has promoted this proposal before."
    return PROMOTE, "A notice with enough confidence, on a target without a caution in effect."


def valid_proposal(proposal: Decision) -> Reads[RegisterCaution | None]:
    """Return the proposed caution, or None where it makes none."""
    try:
        note, _ = proposed_caution(proposal)
        yield from check_target(note.target)
    except (CautionProposalMalformedError, CautionTargetNotFoundError):
        return None
    return note


def target_of(proposal: Decision) -> CautionTarget | None:
    """Return what a proposal is about, or None where that cannot be read."""
    proposed = raw_proposal(proposal.inputs)
    try:
        return CautionTarget(kind=proposed["target_kind"], id=proposed["target_id"])
    except (ValidationError, KeyError, TypeError):
        return None


def withdrawn_by_people(target: CautionTarget, author_id: UUID) -> Reads[tuple[Caution, ...]]:
    """Return the cautions of this author, or of the service's own agents, on a target that a person has retired."""
    authors = SEEDED_AGENT_IDS | {author_id}
    withdrawn = yield from every(Caution, (yield from members_of(WITHDRAWN, target.key)))
    own = [one for one in withdrawn.values() if one.authored_by in authors and one.status is RETIRED]
    retirers = yield from every(Actor, (one.retired_by for one in own if one.retired_by is not None))
    machines = {id for id, actor in retirers.items() if actor.kind is not ActorKind.HUMAN}
    return tuple(one for one in own if one.retired_by not in machines)


def promotion_cause(proposal_id: UUID) -> str:
    """Return the cause that the id of an agent's decision about a proposal is derived from."""
    return f"promotion:{proposal_id}"


class ProposalOrder(Value):
    """The message that asks an agent to judge a proposal."""

    proposal_decision_id: UUID
    event_id: UUID  # The event that registered it.
    agent_id: UUID
    correlation_id: UUID
