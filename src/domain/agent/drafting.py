"""The draft of a caution: whether the end of a run should warn those who come next. It is a proposal and no caution."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from domain.agent.concluding import Conclusion, Material, Task, Terminal, UnusableAnswerError, run_facts
from domain.agent.prompts import CAUTION_DRAFT, DraftAnswer, DraftChoice, ProposedCaution
from domain.caution.caution import Caution, CautionSeverity, CautionTarget, CautionTargetKind, cautions_on
from domain.recipe.plan import Plan
from domain.run.ending import phases_of
from domain.run.run import Run
from domain.shared.reads import Reads, required

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
    """The run with its phases, what a caution may be about, and the cautions in effect on that."""
    plan = yield from required(Plan, run.plan_id)
    phases = yield from phases_of(run)
    targets = [CautionTarget(kind=CautionTargetKind.ASSET, id=id) for id in sorted(plan.asset_ids)]
    targets += [CautionTarget(kind=CautionTargetKind.PROCEDURE, id=phase.id) for phase in phases]
    at = run.updated_at if terminal is None else terminal.occurred_at
    cautions = (yield from cautions_on(targets, at))[:MOST_CAUTIONS]
    facts = {
        **run_facts(run, terminal, phases),
        "candidates": {
            "assets": sorted(map(str, plan.asset_ids)),
            "procedures": [str(phase.id) for phase in phases],
        },
        "cautions": [caution_facts(caution) for caution in cautions],
    }
    candidates = frozenset((target.kind.value, target.id) for target in targets)
    return Material(facts, candidates, frozenset(caution.id for caution in cautions))


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
