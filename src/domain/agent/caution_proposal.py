"""Proposals of cautions: an agent drafts one at the end of a run, to warn those who come next; an operator promotes it to a
caution, or one of two agents does by a rule for harmless ones. The promoter judges every proposal; where a deployment lets
it, a drafter judges its own. The caution's id is derived from the proposal, so that a proposal becomes at most one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from baton.domain.access.actor import SEEDED_AGENT_IDS, Actor, ActorKind
from baton.domain.agent import conclusions
from baton.domain.agent.agent import Agent
from baton.domain.agent.conclusions import Conclusion, Material, RunEnd, UnusableAnswerError, run_facts
from baton.domain.agent.prompts import CAUTION_DRAFT, DraftAnswer, DraftChoice, ProposedCaution
from baton.domain.caution import caution as cautions
from baton.domain.caution.caution import Caution, CautionTarget, CautionTargetKind, RegisterCaution, check_target
from baton.domain.decision.decision import Decision, RegisterDecision, decision
from baton.domain.kernel import Call, JudgedCreation, JudgedVerb, Outcome, Value
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.plan import Plan
from baton.domain.run.run import Run, phases_of
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, find, find_all, is_permitted, members_of, require, require_if_given
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.text import Blank, writable
from baton.domain.shared.writes import Also, Answer

CAUTION_DRAFTER = "CautionDrafter"
CAUTION_PROMOTER = "CautionPromoter"
PROMOTION_LOCK = "caution-promotion"
"""The lock an agent holds while it judges, so that two proposals about one target are judged one after the other."""
JUDGING_COMMANDS = frozenset({"RecordAgentDecision", "GetDecision", "ListCautions"})
"""The commands an agent must be permitted before it judges a proposal."""
PROMOTE, DEFERRED, CONFLICTED = "Promote", "PromotionDeferred", "PromotionConflicted"
ACTIONABLE = frozenset(DraftChoice) - {DraftChoice.NO_ACTION}
PROPOSAL_KEYS = {"kind": "target_kind", "id": "target_id", "text": "title", "workaround": "body"}
"""The parts of a caution that have another name in a proposal."""
EXCERPT = 200  # How many characters of a caution's texts a model is shown.
SEVERITIES: Mapping[str, cautions.CautionSeverity] = {
    DraftChoice.PROPOSE_NOTICE: cautions.CautionSeverity.NOTICE,
    DraftChoice.PROPOSE_CAUTION: cautions.CautionSeverity.CAUTION,
    DraftChoice.PROPOSE_WARNING: cautions.CautionSeverity.WARNING,
}  # The severity that each choice stands for; a proposal that supersedes a caution may have any.
MAX_CAUTIONS = 100


def draft_material(run: Run, end: RunEnd | None) -> Reads[Material]:
    """Return the run with its phases, what a caution may be about, and the cautions in effect on that.

    A phase is over with its run and does not recur. So a caution is about an asset, a recipe or the plan, and each phase
    says which of them its faults belong to.
    """
    plan = yield from require(Plan, run.plan_id)
    phases = yield from phases_of(run)
    assets = plan.asset_ids.union(*(phase.target_asset_ids for phase in phases))
    recipes = {phase.recipe_id for phase in phases if phase.recipe_id is not None}
    recurring = {CautionTargetKind.ASSET: assets, CautionTargetKind.RECIPE: recipes, CautionTargetKind.PLAN: {plan.id}}
    targets = [CautionTarget(kind=kind, id=id) for kind, ids in recurring.items() for id in sorted(ids)]
    at = run.updated_at if end is None else end.occurred_at
    in_effect = (yield from cautions.cautions_on(targets, at))[:MAX_CAUTIONS]
    known = run_facts(run, end, phases)
    facts = {
        **known,
        "phases": [
            {**facts, "caution_target": recurring_target(phase, plan).model_dump(mode="json")}
            for phase, facts in zip(phases, known["phases"], strict=False)
        ],
        "candidates": {"assets": sorted(map(str, assets)), "recipes": sorted(map(str, recipes)), "plans": [str(plan.id)]},
        "cautions": [caution_facts(caution) for caution in in_effect],
    }
    candidates = frozenset((target.kind.value, target.id) for target in targets)
    return Material(facts, candidates, frozenset(caution.id for caution in in_effect))


def recurring_target(phase: Procedure, plan: Plan) -> CautionTarget:
    """Return what the faults of a phase are noted on, so that the next start meets them: its only asset, recipe or plan."""
    if len(phase.target_asset_ids) == 1:
        return CautionTarget(kind=CautionTargetKind.ASSET, id=min(phase.target_asset_ids))
    if phase.recipe_id is not None:
        return CautionTarget(kind=CautionTargetKind.RECIPE, id=phase.recipe_id)
    return CautionTarget(kind=CautionTargetKind.PLAN, id=plan.id)


def caution_facts(caution: Caution) -> dict[str, Any]:
    """Return what a prompt says about a caution."""
    return {
        "caution_id": str(caution.id),
        "target_kind": caution.target.kind.value,
        "target_id": str(caution.target.id),
        "category": caution.category.value,
        "severity": caution.severity.value,
        "text": caution.text[:EXCERPT],
        "workaround": caution.workaround[:EXCERPT],
    }


def conclude_draft(answer: Mapping[str, object], material: Material) -> Conclusion:
    """Return the conclusion of a model's answer; refuse one that breaks a rule."""
    draft = DraftAnswer.model_validate(dict(answer))
    inputs = {}
    if draft.choice is not DraftChoice.NO_ACTION:
        if draft.proposed_caution is None:
            raise UnusableAnswerError("SchemaViolation")
        check_proposal(draft.choice, draft.proposed_caution, material)
        inputs["proposed_caution"] = draft.proposed_caution.model_dump(mode="json")
    return Conclusion(draft.choice.value, draft.confidence, draft.reasoning, inputs)


def check_proposal(choice: DraftChoice, proposed: ProposedCaution, material: Material) -> None:
    """Refuse a proposal about something the model was not shown, or one that contradicts its choice."""
    if (proposed.target_kind.value, proposed.target_id) not in material.candidates:
        raise UnusableAnswerError("HallucinatedTarget")
    if proposed.severity is not SEVERITIES.get(choice, proposed.severity):
        raise UnusableAnswerError("SeverityMismatch")
    superseded: UUID | None = proposed.supersedes_caution_id
    if (choice is DraftChoice.PROPOSE_SUPERSEDE) != (superseded is not None):
        raise UnusableAnswerError("SchemaViolation")
    if superseded is not None and superseded not in material.cautions:
        raise UnusableAnswerError("HallucinatedCaution")


DRAFT = conclusions.AgentTask(
    kind=CAUTION_DRAFTER,
    workflow="draft-caution",
    context="CautionProposal",
    conflicted="CautionDraftConflicted",
    deferred="CautionDraftDeferred",
    prompt=CAUTION_DRAFT,
    commands=conclusions.CONCLUDING_COMMANDS | {"GetRun", "GetPlan", "ListProcedures", "ListCautions"},
    material=draft_material,
    conclude=conclude_draft,
)


class DecisionNotEmittedByCautionDrafterError(Conflict, context="agent", reason="other_author"):
    """Only what an agent of kind CautionDrafter decided can be promoted."""


class DecisionNotCautionProposalError(Conflict, context="agent", reason="other_context"):
    """The decision proposes no caution."""


class CautionProposalNotActionableError(Conflict, context="agent", reason="nothing_proposed"):
    """The decision is that no caution is called for, or that none could be drafted."""


class CautionProposalMalformedError(Conflict, context="agent", reason="malformed"):
    """The proposal is no caution by the rules for cautions."""


class CautionProposalAlreadyPromotedError(Conflict, context="agent", reason="already_promoted"):
    """The proposal has become a caution before."""


def caution_id_of(proposal: Decision) -> UUID:
    """Return the id of the caution that a proposal becomes."""
    return derived_uuid7(int(proposal.decided_at.timestamp() * 1000), str(proposal.id), "caution:0")


def raw_proposal(inputs: Mapping[str, object] | None) -> Any:
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


def parse_proposal(proposed: Mapping[str, object]) -> RegisterCaution:
    """Return a proposal as a caution; refuse by the keys that the rules for cautions object to."""
    named = {name: proposed.get(PROPOSAL_KEYS.get(name, name)) for name in (*PROPOSAL_KEYS, "category", "severity", "tags")}
    target = {"kind": named.pop("kind"), "id": named.pop("id")}
    try:
        note = RegisterCaution.model_validate({"target": target, **named})
    except ValidationError as error:
        places = [fault["loc"][1] if fault["loc"][0] == "target" else fault["loc"][0] for fault in error.errors()]
        raise malformed_proposal(PROPOSAL_KEYS.get(str(place), str(place)) for place in places) from None
    texts = [("title", note.text), ("body", note.workaround), *(("tags", tag) for tag in note.tags)]
    if unfit := [key for key, text in texts if isinstance(text, Blank) or not writable(text)]:
        raise malformed_proposal(unfit)
    return note


def malformed_proposal(keys: Iterable[str]) -> CautionProposalMalformedError:
    """Return the refusal of a proposal whose values under these keys make no caution."""
    detail = "The proposal does not make a caution; register one by hand instead."
    return CautionProposalMalformedError(detail, facts={"keys": sorted(set(keys))})


class Promotable(NamedTuple):
    """Whether a proposal has become a caution before, the caution it makes, and the one that this would replace."""

    promoted: bool
    note: RegisterCaution
    replaced: Caution | None


@decision.command(post="/{decision_id}/promote", context="agent", status=201, returns=cautions.NewCaution, attempts=3)
class PromoteCautionProposal(JudgedVerb[Decision, Promotable]):
    """Make a caution of what an agent proposed; its author is the caller who promotes it."""

    def gather(self, proposal: Decision, call: Call) -> Reads[Promotable]:
        check_origin(proposal, (yield from find(Agent, proposal.decided_by)))
        note, superseded_id = proposed_caution(proposal)
        yield from check_target(note.target)
        promoted = (yield from find(Caution, caution_id_of(proposal))) is not None
        return Promotable(promoted, note, (yield from require_if_given(Caution, superseded_id)))

    def decide(self, proposal: Decision, call: Call, facts: Promotable) -> Outcome:
        caution_id = {"caution_id": str(caution_id_of(proposal))}
        if facts.promoted:
            detail = f"This proposal is caution {caution_id_of(proposal)} already; supersede or retire that."
            raise CautionProposalAlreadyPromotedError(detail, facts=caution_id)
        return [*promotion_outcome(proposal, call, facts), Answer(caution_id)]


def check_origin(proposal: Decision, author: Agent | None) -> None:
    """Refuse what no drafter wrote, what is no proposal, and what proposes nothing."""
    if author is None or author.kind != CAUTION_DRAFTER:
        detail = f"The decision was not made by an agent of kind {CAUTION_DRAFTER}; register the caution by hand."
        raise DecisionNotEmittedByCautionDrafterError(detail)
    if proposal.context != DRAFT.context:
        detail = f"The decision is of context {proposal.context}, and only {DRAFT.context} proposes cautions."
        raise DecisionNotCautionProposalError(detail)
    if proposal.choice not in ACTIONABLE:
        detail = f"The decision is {proposal.choice}, so there is nothing to promote; register the caution by hand."
        raise CautionProposalNotActionableError(detail)


def promotion_outcome(proposal: Decision, call: Call, facts: Promotable) -> Outcome:
    """Return the new caution and, where it supersedes another one, the end of that."""
    caution_id = caution_id_of(proposal)
    parent_id = None if facts.replaced is None else facts.replaced.id
    written = Also(Caution, caution_id, cautions.registration_of(facts.note.to_event(call, parent_id)))
    if facts.replaced is None:
        return [written]
    if facts.replaced.status is not cautions.ACTIVE:
        raise cautions.SupersedeCaution.Cannot(
            f"The caution to be superseded is {facts.replaced.status.value}; register a new one by hand.",
            reason=facts.replaced.status.value.lower(),
        )
    if facts.replaced.target != facts.note.target:
        detail = "The caution to be superseded is about something else; register a new one by hand."
        raise cautions.SupersedeCaution.Cannot(detail, reason="other_target")
    return [written, Also(Caution, facts.replaced.id, cautions.supersession_of(facts.replaced, caution_id))]


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


@decision.internal_command(creates=True, command_name="RecordAgentDecision", lock=PROMOTION_LOCK)
class PromoteByRule(JudgedCreation[Circumstances]):
    """Judge a proposal as the calling agent, and register the caution in the same append where the rule says so."""

    proposal_decision_id: UUID
    least_confidence: float

    def gather(self, call: Call) -> Reads[Circumstances]:
        proposal = yield from require(Decision, self.proposal_decision_id)
        target = target_of(proposal)
        return Circumstances(
            known=(yield from find(Decision, call.new_id)) is not None,
            proposal=proposal,
            author=(yield from find(Agent, proposal.decided_by)),
            note=(yield from valid_proposal(proposal)),
            promoted=(yield from find(Caution, caution_id_of(proposal))) is not None,
            in_effect=() if target is None else (yield from cautions.cautions_on([target], call.now)),
            withdrawn=() if target is None else (yield from withdrawn_by_people(target, call.principal_id)),
            permitted=(yield from is_permitted(PromoteCautionProposal.operation.command_name)),
        )

    def decide(self, call: Call, facts: Circumstances) -> Outcome:
        if facts.known or not concerns_promoter(facts.proposal, facts.author):
            return []
        choice, reasoning = promotion_choice(facts, self.least_confidence)
        registered = conclusions.agent_decision_event(self._decision(call, facts.proposal, choice, reasoning), call.new_id)
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
    drafted = proposal.context == DRAFT.context and author is not None and author.kind == CAUTION_DRAFTER
    return drafted and proposal.choice in ACTIONABLE and isinstance(raw_proposal(proposal.inputs), dict)


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
    except (CautionProposalMalformedError, cautions.CautionTargetNotFoundError):
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
    withdrawn = yield from find_all(Caution, (yield from members_of(cautions.WITHDRAWN, target.key)))
    own = [one for one in withdrawn.values() if one.authored_by in authors and one.status is cautions.RETIRED]
    retirers = yield from find_all(Actor, (one.retired_by for one in own if one.retired_by is not None))
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
