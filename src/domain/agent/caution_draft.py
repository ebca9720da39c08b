"""The draft of a caution: whether the end of a run should warn those who come next. A draft is a proposal, no caution."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from baton.domain.agent.conclusions import AgentTask, Conclusion, Material, RunEnd, UnusableAnswerError, run_facts
from baton.domain.agent.prompts import CAUTION_DRAFT, DraftAnswer, DraftChoice, ProposedCaution
from baton.domain.caution.caution import Caution, CautionSeverity, CautionTarget, CautionTargetKind, cautions_on
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.recipe.plan import Plan
from baton.domain.run.endings import phases_of
from baton.domain.run.run import Run
from baton.domain.shared.reads import Reads, required

CAUTION_DRAFTER = "CautionDrafter"
EXCERPT = 200  # How many characters of a caution's texts a model is shown.
SEVERITIES: Mapping[str, CautionSeverity] = {
    DraftChoice.PROPOSE_NOTICE: CautionSeverity.NOTICE,
    DraftChoice.PROPOSE_CAUTION: CautionSeverity.CAUTION,
    DraftChoice.PROPOSE_WARNING: CautionSeverity.WARNING,
}  # The severity that each choice stands for; a proposal that supersedes a caution may have any.
MAX_CAUTIONS = 100


def draft_material(run: Run, end: RunEnd | None) -> Reads[Material]:
    """Return the run with its phases, what a caution may be about, and the cautions in effect on that.

    A phase is over with its run and does not recur. So a caution is about an asset, a recipe or the plan, and each phase
    says which of them its faults belong to.
    """
    plan = yield from required(Plan, run.plan_id)
    phases = yield from phases_of(run)
    assets = plan.asset_ids.union(*(phase.target_asset_ids for phase in phases))
    recipes = {phase.recipe_id for phase in phases if phase.recipe_id is not None}
    targets = [CautionTarget(kind=CautionTargetKind.ASSET, id=id) for id in sorted(assets)]
    targets += [CautionTarget(kind=CautionTargetKind.RECIPE, id=id) for id in sorted(recipes)]
    targets.append(CautionTarget(kind=CautionTargetKind.PLAN, id=plan.id))
    at = run.updated_at if end is None else end.occurred_at
    cautions = (yield from cautions_on(targets, at))[:MAX_CAUTIONS]
    known = run_facts(run, end, phases)
    facts = {
        **known,
        "phases": [
            {**facts, "caution_target": recurring_target(phase, plan).model_dump(mode="json")}
            for phase, facts in zip(phases, known["phases"], strict=False)
        ],
        "candidates": {"assets": sorted(map(str, assets)), "recipes": sorted(map(str, recipes)), "plans": [str(plan.id)]},
        "cautions": [caution_facts(caution) for caution in cautions],
    }
    candidates = frozenset((target.kind.value, target.id) for target in targets)
    return Material(facts, candidates, frozenset(caution.id for caution in cautions))


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


def conclude_draft(answer: Mapping[str, Any], material: Material) -> Conclusion:
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


DRAFT = AgentTask(
    kind=CAUTION_DRAFTER,
    workflow="draft-caution",
    context="CautionProposal",
    conflicted="CautionDraftConflicted",
    deferred="CautionDraftDeferred",
    prompt=CAUTION_DRAFT,
    commands=frozenset(
        {
            *("RequestDecisionDebrief", "RecordAgentDecision", "AppendInferences"),
            *("GetRun", "GetPlan", "ListProcedures", "ListCautions"),
        }
    ),
    material=draft_material,
    conclude=conclude_draft,
)
