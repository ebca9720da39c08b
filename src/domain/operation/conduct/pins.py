"""The pin of a conduct: the steps it walks, had again to the letter from what was registered, frozen before it starts."""

from collections.abc import Sequence
from typing import Any

from baton.domain.operation.conduct.programs import ComputeProgramNotAllowedError, refuse_foreign_programs
from baton.domain.operation.conduct.progress import FilledSlot
from baton.domain.operation.conduct.virtual_axes import (
    ProcedureVirtualAxisEvaluationError,
    ProcedureVirtualAxisOutOfRangeError,
    ProcedureVirtualAxisUnresolvedError,
    virtual_axes_of,
    without_virtual_axes,
)
from baton.domain.operation.procedure.procedure import Procedure, ProcedureRecipeExpanded, ProcedureStepsResolved
from baton.domain.recipe.expansion import (
    EXPANDER_VERSION,
    Expansion,
    InvalidProcedureBindingsError,
    ProcedureExpansionOverflowError,
    UnboundRecipeBindingError,
    bindings_hash,
    check_step_count,
    expansion_of,
)
from baton.domain.recipe.recipe import Recipe, RecipeVersionNotFoundError, version_of
from baton.domain.recipe.references import Place, binding_names, declared_capture, references
from baton.domain.recipe.sentinels import CaptureRef
from baton.domain.recipe.step_shapes import InvalidRecipeStepShapeError, misshapen, read_steps
from baton.domain.recipe.steps import RecipeComputeStep, RecipeStep
from baton.domain.run.run import Run
from baton.domain.shared.reads import Reads, happened, records_of, required, run_in_thread
from baton.domain.shared.refusals import Invalid, Refusal, Unprocessable


class ProcedureStepsForbiddenError(Invalid, context="operation"):
    """The steps are those of the recipe or of the pin; none may be sent."""


class ProcedureExpansionRecordNotFoundError(Refusal, context="operation"):
    """The procedure names a recipe, but not what was made of it."""


class ProcedureExpanderVersionMismatchError(Refusal, context="operation"):
    """The procedure was registered by another version of the expansion, which may have read the recipe otherwise."""


class ProcedureExpansionDriftError(Refusal, context="operation"):
    """The recipe does not expand to what was registered."""


class ProcedureClosingCaptureBeforeBoundaryError(Unprocessable, context="operation"):
    """A closing step needs a value that only a step before the boundary captures, and none did."""


PIN_REFUSALS = (
    Recipe.aggregate.NotFound,
    RecipeVersionNotFoundError,
    ProcedureStepsForbiddenError,
    InvalidRecipeStepShapeError,
    InvalidProcedureBindingsError,
    UnboundRecipeBindingError,
    ProcedureExpansionOverflowError,
    ProcedureExpansionRecordNotFoundError,
    ProcedureExpanderVersionMismatchError,
    ProcedureExpansionDriftError,
    ProcedureVirtualAxisUnresolvedError,
    ProcedureVirtualAxisOutOfRangeError,
    ProcedureVirtualAxisEvaluationError,
    ComputeProgramNotAllowedError,
)
"""Everything that can stand in the way of a pin."""


def prepared(procedure: Procedure, sent: Sequence[Any], run: Run | None) -> Reads[Expansion]:
    """The steps to pin: those of the recorded expansion or, without a recipe, those that were sent."""
    if procedure.recipe_id is None:
        expansion = Expansion(steps=literal_steps(sent), closing_steps=())
    else:
        if sent:
            raise ProcedureStepsForbiddenError("The procedure follows a recipe; conduct it without steps of your own.")
        expansion = yield from expanded_again(procedure)
    axes = yield from virtual_axes_of((*expansion.steps, *expansion.closing_steps), run)
    pinned = Expansion(
        steps=without_virtual_axes(expansion.steps, axes), closing_steps=without_virtual_axes(expansion.closing_steps, axes)
    )
    check_step_count(pinned.step_count)
    yield from refuse_foreign_programs(pinned)
    return pinned


def pinned_steps(pin: ProcedureStepsResolved) -> Reads[Expansion]:
    """The steps of a pin that is taken up; refused where a program of theirs is not allowed any more."""
    steps = Expansion(steps=pin.resolved_steps, closing_steps=pin.resolved_closing_steps)
    yield from refuse_foreign_programs(steps)
    return steps


def literal_steps(sent: Sequence[Any]) -> Any:
    """Steps that were sent as they are: nothing left to bind, and no program that nobody has reviewed."""
    steps = read_steps(sent)
    for index, step in enumerate(steps):
        place = Place("steps", index)
        if isinstance(step, RecipeComputeStep):
            raise misshapen(place, "kind", "compute_needs_recipe", "must not be compute; programs come from recipes")
        if names := binding_names([step]):
            raise misshapen(place, "", "misplaced_sentinel", f"refers to {names[0]}, and nothing is bound here")
    return expansion_of(steps, (), {}).steps


def expanded_again(procedure: Procedure) -> Reads[Expansion]:
    """What the recipe expanded to when the procedure was registered; anything else is a fault of ours, never a pass."""
    records = yield from happened(procedure.id, ProcedureRecipeExpanded)
    if not records:
        raise ProcedureExpansionRecordNotFoundError("The record of the recipe's expansion is missing; report this.")
    record = records[-1]
    if record.expander_version != EXPANDER_VERSION:
        raise ProcedureExpanderVersionMismatchError(
            f"The procedure was expanded by version {record.expander_version}, this is {EXPANDER_VERSION}; register it anew."
        )
    recipe = yield from required(Recipe, record.recipe_id)
    version = version_of(recipe, record.recipe_version)
    return (yield from run_in_thread(checked, version.steps, version.closing_steps, record))


def checked(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], record: ProcedureRecipeExpanded) -> Expansion:
    """The expansion, if it is what was recorded."""
    refuse_drift("bindings", bindings_hash(record.bindings), record.bindings_hash)
    expansion = expansion_of(steps, closing_steps, record.bindings)
    refuse_drift("steps", expansion.steps_hash, record.steps_hash)
    return expansion


def refuse_drift(name: str, found: str, kept: str) -> None:
    """Refuse what is not what was recorded."""
    if found != kept:
        raise ProcedureExpansionDriftError(
            f"The {name} do not hash to what was recorded; register the procedure anew and report this.",
            reason=f"{name}_differ",
        )


def check_closing_captures(procedure: Procedure, pin: Expansion, boundary: int) -> Reads[None]:
    """Refuse to go on from behind the only step that captures what a closing step needs, unless it was captured before."""
    needed = {reference.capture_name for step in pin.closing_steps for reference in references(step, CaptureRef)}
    missing = needed - {declared_capture(step) for step in (*pin.steps[boundary:], *pin.closing_steps)}
    if not missing:
        return
    filled = yield from records_of(FilledSlot, procedure_id=procedure.id)
    if empty := sorted(missing - {row.slot for row in filled if not row.closing and row.step_index < boundary}):
        raise ProcedureClosingCaptureBeforeBoundaryError(
            f"A closing step needs {', '.join(empty)}, captured by no step from {boundary} on; give a lower boundary.",
            reason="capture_missing",
            facts={"capture_names": empty},
        )
