"""The draft of the steps of a pattern, with what a conduct of them would touch and how long it would take."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.estimates import Estimate, load_estimate
from baton.domain.equipment.signals import SignalLimits, tightest_limits
from baton.domain.kernel import Call, Query
from baton.domain.procedure.touched import TouchedSignals, load_written_signals
from baton.domain.recipe.expansion import ProcedureExpansionOverflowError
from baton.domain.recipe.patterns import Pattern, UnlimitedPatternAxisError, load_pattern_steps, point_count
from baton.domain.recipe.recipe import Steps, recipe
from baton.domain.recipe.step_checks import (
    DuplicateRecipeCaptureError,
    DuplicateRecipeOutputError,
    InvalidRecipeStepShapeError,
    UnboundRecipeCaptureError,
    UnboundRecipeOutputError,
    check_references,
)
from baton.domain.recipe.steps import located_steps
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads


class DraftedSignal(AnswerForm):
    """A signal that steps write, the assets in service that own it, and the limits that they set on it."""

    address: str
    owner_ids: tuple[UUID, ...]
    """The assets in service that own the signal."""
    limits: Annotated[SignalLimits | None, Field(description="The limits that its owners set; null where none does.")]


class StepDraft(AnswerForm):
    """The steps of a pattern, the signals that they touch, and how long they take."""

    steps: Steps
    closing_steps: Steps
    point_count: int
    """Number of points."""
    step_count: int
    """Number of steps, closing steps included."""
    touched: Annotated[TouchedSignals, Field(description="The signals that a conduct would write and read.")]
    written_signals: tuple[DraftedSignal, ...]
    """Each signal that is written, with its owners and their limits."""
    estimate: Annotated[Estimate, Field(description="How long a conduct of the steps would take.")]


REFUSALS = [
    UnlimitedPatternAxisError,
    ProcedureExpansionOverflowError,
    InvalidRecipeStepShapeError,
    DuplicateRecipeCaptureError,
    UnboundRecipeCaptureError,
    DuplicateRecipeOutputError,
    UnboundRecipeOutputError,
]  # What a definition with the pattern would be refused with, too.


@recipe.query(post="/draft-steps", returns=StepDraft, refuses=REFUSALS)
class DraftSteps(Query[StepDraft]):
    """The flat list of steps that a pattern of points becomes, and what it would touch; nothing is written.

    define_recipe and version_recipe take the same pattern in place of steps.
    """

    pattern: Pattern
    """A line, grid, list or grid around a position, and the steps at each point."""

    def answer(self, call: Call) -> Reads[StepDraft]:
        drafted = yield from load_pattern_steps(self.pattern)
        check_references(located_steps(*drafted))
        every_step = (*drafted.steps, *drafted.closing_steps)
        signals = yield from load_written_signals(every_step)
        written = (
            DraftedSignal(
                address=address, owner_ids=tuple(owner.id for owner in owners), limits=tightest_limits(address, owners)
            )
            for address, owners in sorted(signals.owners.items())
        )
        return StepDraft(
            steps=drafted.steps,
            closing_steps=drafted.closing_steps,
            point_count=point_count(self.pattern),
            step_count=len(every_step),
            touched=signals.touched,
            written_signals=tuple(written),
            estimate=(yield from load_estimate(*drafted)),
        )
