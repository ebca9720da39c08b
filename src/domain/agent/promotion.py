"""How a proposal becomes a caution: by an operator's word, or by a rule for harmless ones that two agents may follow.

The promoter judges every proposal; where a deployment lets it, a drafter judges its own. The caution's id follows from the
proposal, so a proposal becomes at most one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.agent.agent import Agent
from baton.domain.agent.caution_draft import CAUTION_DRAFTER, DRAFT, SEVERITIES
from baton.domain.agent.decision_records import decided
from baton.domain.agent.prompts import DraftChoice
from baton.domain.agent.seeded_ids import SEEDED_IDS
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
    enlisted,
    superseded,
)
from baton.domain.decision.decision import Decision, RegisterDecision, decision
from baton.domain.kernel import Call, JudgedCreation, JudgedVerb, Outcome, Value
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, every, existing, members_of, permitted, required
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.text import Blank, writable
from baton.domain.shared.writes import Also, Answer

CAUTION_PROMOTER = "CautionPromoter"
LOCK = "caution-promotion"
"""What an agent holds while it judges, so that two proposals about one target are judged one after the other."""
JUDGING = frozenset({"RecordAgentDecision", "GetDecision", "ListCautions"})
"""What an agent must be permitted before it judges a proposal."""
PROMOTION = "CautionPromotion"
PROMOTE = "Promote"
DEFERRED = "PromotionDeferred"
CONFLICTED = "PromotionConflicted"
ACTIONABLE = frozenset(choice.value for choice in DraftChoice) - {DraftChoice.NO_ACTION.value}
WRITTEN_AS = {"kind": "target_kind", "id": "target_id", "text": "title", "workaround": "body"}
"""What a proposal calls the parts of a caution that have another name there."""


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
    """The id of the caution that a proposal becomes."""
    return derived_uuid7(int(proposal.decided_at.timestamp() * 1000), str(proposal.id), "caution:0")


def proposal_in(inputs: Mapping[str, Any] | None) -> Any:
    """What a decision proposes, as it was written; None where it proposes nothing."""
    return (inputs or {}).get("proposed_caution")


def note_of(proposal: Decision) -> tuple[RegisterCaution, UUID | None]:
    """The caution that is proposed, by the rules for cautions, and the one it takes the place of."""
    proposed = proposal_in(proposal.inputs)
    if not isinstance(proposed, Mapping):
        raise malformed(["proposed_caution"])
    note = written_out(proposed)
    superseded_id = successor_of(proposed)
    if (proposal.choice == DraftChoice.PROPOSE_SUPERSEDE.value) != (superseded_id is not None):
        raise malformed(["supersedes_caution_id"])
    severity = next((own for choice, own in SEVERITIES.items() if choice.value == proposal.choice), note.severity)
    if severity is not note.severity:
        raise malformed(["severity"])
    return note, superseded_id


def written_out(proposed: Mapping[str, Any]) -> RegisterCaution:
    """A proposal as a caution; refused by the keys that the rules for cautions object to."""
    try:
        note = RegisterCaution.model_validate(
            {
                "target": {"kind": proposed.get("target_kind"), "id": proposed.get("target_id")},
                "category": proposed.get("category"),
                "severity": proposed.get("severity"),
                "text": proposed.get("title"),
                "workaround": proposed.get("body"),
                "tags": proposed.get("tags"),
            }
        )
    except ValidationError as error:
        places = [fault["loc"][1] if fault["loc"][0] == "target" else fault["loc"][0] for fault in error.errors()]
        raise malformed(WRITTEN_AS.get(str(place), str(place)) for place in places) from None
    texts = [("title", note.text), ("body", note.workaround), *(("tags", tag) for tag in note.tags)]
    if unfit := [key for key, text in texts if isinstance(text, Blank) or not writable(text)]:
        raise malformed(unfit)
    return note


def successor_of(proposed: Mapping[str, Any]) -> UUID | None:
    """The caution that a proposal would take the place of, if it names one."""
    named = proposed.get("supersedes_caution_id")
    try:
        return None if named is None else UUID(str(named))
    except ValueError:
        raise malformed(["supersedes_caution_id"]) from None


def malformed(keys: Iterable[str]) -> CautionProposalMalformedError:
    return CautionProposalMalformedError(
        "The proposal does not make a caution; register one by hand instead.",
        reason="malformed",
        facts={"keys": sorted(set(keys))},
    )


@dataclass(frozen=True)
class Promotable:
    """Whether a proposal has become a caution before, the caution it makes, and the one that would replace."""

    promoted: bool
    note: RegisterCaution
    replaced: Caution | None


@decision.command(post="/{decision_id}/promote", context="agent", status=201, returns=NewCaution, attempts=3)
class PromoteCautionProposal(JudgedVerb[Decision, Promotable]):
    """Make a caution of what an agent proposed; its author is whoever promotes it."""

    def gather(self, proposal: Decision, call: Call) -> Reads[Promotable]:
        author = yield from existing(Agent, proposal.decided_by)
        check_origin(proposal, author)
        note, superseded_id = note_of(proposal)
        yield from check_target(note.target)
        promoted = (yield from existing(Caution, caution_id_of(proposal))) is not None
        replaced = None if superseded_id is None else (yield from required(Caution, superseded_id))
        return Promotable(promoted, note, replaced)

    def decide(self, proposal: Decision, call: Call, facts: Promotable) -> Outcome:
        if facts.promoted:
            raise CautionProposalAlreadyPromotedError(
                f"This proposal is caution {caution_id_of(proposal)} already; supersede or retire that.",
                reason="already_promoted",
                facts={"caution_id": str(caution_id_of(proposal))},
            )
        return [*promoted(proposal, call, facts), Answer({"caution_id": str(caution_id_of(proposal))})]


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


def promoted(proposal: Decision, call: Call, facts: Promotable) -> Outcome:
    """The new caution and, where it takes the place of another one, the end of that."""
    caution_id = caution_id_of(proposal)
    parent_id = None if facts.replaced is None else facts.replaced.id
    written = Also(Caution, caution_id, enlisted(facts.note.written(call, parent_id)))
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
    return [written, Also(Caution, facts.replaced.id, superseded(facts.replaced, caution_id))]


@dataclass(frozen=True)
class Circumstances:
    """What the rule of promotion looks at."""

    known: bool
    """Whether it has decided about this proposal before."""
    proposal: Decision
    author: Agent | None
    note: RegisterCaution | None
    """What is proposed, where that obeys the rules for cautions and what it is about exists."""
    promoted: bool
    in_effect: tuple[Caution, ...]
    withdrawn: tuple[Caution, ...]
    """Cautions of such agents on this target that a person has retired."""
    permitted: bool


@decision.inner(creates=True, command_name="RecordAgentDecision", lock=LOCK)
class PromoteByRule(JudgedCreation[Circumstances]):
    """Judge a proposal as the calling agent, and register the caution in the same append where the rule says so."""

    proposal_decision_id: UUID
    least_confidence: float

    def gather(self, call: Call) -> Reads[Circumstances]:
        proposal = yield from required(Decision, self.proposal_decision_id)
        author = yield from existing(Agent, proposal.decided_by)
        target = target_of(proposal)
        note = yield from sound_note(proposal)
        return Circumstances(
            known=(yield from existing(Decision, call.new_id)) is not None,
            proposal=proposal,
            author=author,
            note=note,
            promoted=(yield from existing(Caution, caution_id_of(proposal))) is not None,
            in_effect=() if target is None else (yield from cautions_on([target], call.now)),
            withdrawn=() if target is None else (yield from withdrawn_by_people(target, call.principal_id)),
            permitted=(yield from permitted(PromoteCautionProposal.operation.command_name)),
        )

    def decide(self, call: Call, facts: Circumstances) -> Outcome:
        if facts.known or not concerns_promoter(facts.proposal, facts.author):
            return []
        choice, reasoning = judged(facts, self.least_confidence)
        registered = decided(self._decision(call, facts.proposal, choice, reasoning), call.new_id)
        if choice != PROMOTE or facts.note is None:
            return [registered]
        return [registered, *promoted(facts.proposal, call, Promotable(False, facts.note, None))]

    def _decision(self, call: Call, proposal: Decision, choice: str, reasoning: str) -> RegisterDecision:
        kind = CAUTION_DRAFTER if call.principal_id == proposal.decided_by else CAUTION_PROMOTER
        proposed = proposal_in(proposal.inputs)
        named = ("severity", "target_kind", "target_id")
        return RegisterDecision(
            decided_by=call.principal_id,
            context=PROMOTION,
            choice=choice,
            parent_id=proposal.id,
            rule=f"agent:{kind}:v1",
            reasoning=reasoning,
            inputs={
                "proposal_decision_id": str(proposal.id),
                "proposal_choice": proposal.choice,
                **{name: proposed.get(name) for name in named},
            },
        )


def concerns_promoter(proposal: Decision, author: Agent | None) -> bool:
    """Whether there is anything to be judged about a decision at all."""
    return (
        proposal.context == DRAFT.context
        and author is not None
        and author.kind == CAUTION_DRAFTER
        and proposal.choice in ACTIONABLE
        and isinstance(proposal_in(proposal.inputs), dict)
    )


def judged(facts: Circumstances, least_confidence: float) -> tuple[str, str]:
    """The agent's choice, and why: only harmless, certain, new proposals become cautions without a person."""
    proposal = facts.proposal
    if proposal.choice != DraftChoice.PROPOSE_NOTICE.value:
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


def sound_note(proposal: Decision) -> Reads[RegisterCaution | None]:
    """What is proposed, where that makes a caution."""
    try:
        note, _ = note_of(proposal)
        yield from check_target(note.target)
    except (CautionProposalMalformedError, CautionTargetNotFoundError):
        return None
    return note


def target_of(proposal: Decision) -> CautionTarget | None:
    """What a proposal is about, where that can be read."""
    proposed = proposal_in(proposal.inputs)
    try:
        return CautionTarget(kind=proposed["target_kind"], id=proposed["target_id"])
    except (ValidationError, KeyError, TypeError):
        return None


def withdrawn_by_people(target: CautionTarget, author_id: UUID) -> Reads[tuple[Caution, ...]]:
    """The cautions of this author, or of the service's own agents, on a target that a person has retired."""
    authors = SEEDED_IDS | {author_id}
    found = yield from every(Caution, (yield from members_of(WITHDRAWN, target.key)))
    own = [one for one in found.values() if one.authored_by in authors and one.status is RETIRED]
    retirers = yield from every(Actor, (one.retired_by for one in own if one.retired_by is not None))
    machines = {id for id, actor in retirers.items() if actor.kind is not ActorKind.HUMAN}
    return tuple(one for one in own if one.retired_by not in machines)


def promotion_cause(proposal_id: UUID) -> str:
    """What the id of an agent's decision about a proposal follows from."""
    return f"promotion:{proposal_id}"


class ProposalOrder(Value):
    """What an agent is to judge."""

    proposal_decision_id: UUID
    event_id: UUID
    """With which it was registered."""
    agent_id: UUID
    correlation_id: UUID
