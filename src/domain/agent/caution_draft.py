"""The draft of a caution: whether the end of a run should warn those who come next. It is a proposal and no caution."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from baton.domain.agent.conclusions import Conclusion, Material, Task, Terminal, UnusableAnswerError, run_facts
from baton.domain.agent.prompts import CAUTION_DRAFT, DraftAnswer, DraftChoice, ProposedCaution
from baton.domain.caution.caution import Caution, CautionSeverity, CautionTarget, CautionTargetKind, cautions_on
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.recipe.plan import Plan
from baton.domain.run.endings import phases_of
from baton.domain.run.run import Run
from baton.domain.shared.reads import Reads, required

CAUTION_DRAFTER = "CautionDrafter"
EXCERPT = 200
"""Characters of a caution's texts that a model is shown."""
SEVERITIES: Mapping[DraftChoice, CautionSeverity] = {
    DraftChoice.PROPOSE_NOTICE: CautionSeverity.NOTICE,
    DraftChoice.PROPOSE_CAUTION: CautionSeverity.CAUTION,
    DraftChoice.PROPOSE_WARNING: CautionSeverity.WARNING,
}
"""The severity that a choice stands for; a successor may have any."""
MOST_CAUTIONS = 100


def draft_material(run: Run, terminal: Terminal | None) -> Reads[Material]:
    """The run with its phases, what a caution may be about, and the cautions in effect on that.

    A phase is over with its run and nobody meets it again. So a caution is about an asset, a recipe or the plan, and what
    each phase's faults are to be noted on is said with it.
    """
    plan = yield from required(Plan, run.plan_id)
    phases = yield from phases_of(run)
    assets = plan.asset_ids.union(*(phase.target_asset_ids for phase in phases))
    recipes = {phase.recipe_id for phase in phases if phase.recipe_id is not None}
    targets = [CautionTarget(kind=CautionTargetKind.ASSET, id=id) for id in sorted(assets)]
    targets += [CautionTarget(kind=CautionTargetKind.RECIPE, id=id) for id in sorted(recipes)]
    targets.append(CautionTarget(kind=CautionTargetKind.PLAN, id=plan.id))
    at = run.updated_at if terminal is None else terminal.occurred_at
    cautions = (yield from cautions_on(targets, at))[:MOST_CAUTIONS]
    known = run_facts(run, terminal, phases)
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
    """What the faults of a phase are noted on, so that the next start meets them: its only asset, its recipe or the plan."""
    if len(phase.target_asset_ids) == 1:
        return CautionTarget(kind=CautionTargetKind.ASSET, id=min(phase.target_asset_ids))
    if phase.recipe_id is not None:
        return CautionTarget(kind=CautionTargetKind.RECIPE, id=phase.recipe_id)
    return CautionTarget(kind=CautionTargetKind.PLAN, id=plan.id)


def caution_facts(caution: Caution) -> dict[str, Any]:
    return {
        "caution_id": str(caution.id),
        "target_kind": caution.target.kind.value,
        "target_id": str(caution.target.id),
        "category": caution.category.value,
        "severity": caution.severity.value,
        "text": caution.text[:EXCERPT],
        "workaround": caution.workaround[:EXCERPT],
    }


def concluded_draft(answer: Mapping[str, Any], material: Material) -> Conclusion:
    draft = DraftAnswer.model_validate(dict(answer))
    proposed = draft.proposed_caution
    if draft.choice is DraftChoice.NO_ACTION:
        return Conclusion(draft.choice.value, draft.confidence, draft.reasoning)
    if proposed is None:
        raise UnusableAnswerError("SchemaViolation")
    check_proposal(draft.choice, proposed, material)
    return Conclusion(
        draft.choice.value, draft.confidence, draft.reasoning, {"proposed_caution": proposed.model_dump(mode="json")}
    )


def check_proposal(choice: DraftChoice, proposed: ProposedCaution, material: Material) -> None:
    """Refuse a proposal about something the model was not shown, or one that contradicts its choice."""
    if (proposed.target_kind.value, proposed.target_id) not in material.candidates:
        raise UnusableAnswerError("HallucinatedTarget")
    severity = SEVERITIES.get(choice)
    if severity is not None and proposed.severity is not severity:
        raise UnusableAnswerError("SeverityMismatch")
    superseded: UUID | None = proposed.supersedes_caution_id
    if (choice is DraftChoice.PROPOSE_SUPERSEDE) != (superseded is not None):
        raise UnusableAnswerError("SchemaViolation")
    if superseded is not None and superseded not in material.cautions:
        raise UnusableAnswerError("HallucinatedCaution")


DRAFT = Task(
    kind=CAUTION_DRAFTER,
    workflow="draft-caution",
    context="CautionProposal",
    conflicted="CautionDraftConflicted",
    deferred="CautionDraftDeferred",
    prompt=CAUTION_DRAFT,
    commands=frozenset(
        {
            "RequestDecisionDebrief",
            "RecordAgentDecision",
            "AppendInferences",
            "GetRun",
            "GetPlan",
            "ListProcedures",
            "ListCautions",
        }
    ),
    material=draft_material,
    conclude=concluded_draft,
)
