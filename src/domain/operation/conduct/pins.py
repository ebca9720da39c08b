"""The pin of a conduct: the exact steps it walks, derived from what was registered and frozen before it starts."""

from collections.abc import Iterable, Sequence
from typing import Any

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
from baton.domain.recipe.sentinels import CaptureRef
from baton.domain.recipe.step_checks import misshapen, read_steps
from baton.domain.recipe.steps import (
    RecipeComputeStep,
    RecipeStep,
    StepLocation,
    binding_names,
    declared_capture,
    located_steps,
    references,
)
from baton.domain.run.run import Run
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, events_of, records_of, required, run_in_thread
from baton.domain.shared.refusals import Conflict, Invalid, Refusal, Unprocessable
from baton.domain.shared.text import shortened


class ProcedureStepsForbiddenError(Invalid, context="operation"):
    """The steps are those of the recipe or of the pin; none may be sent."""


class ProcedureExpansionRecordNotFoundError(Refusal, context="operation"):
    """The procedure names a recipe, but not what was made of it."""


class ProcedureExpanderVersionMismatchError(Refusal, context="operation"):
    """The procedure was registered by another version of the expansion, which may have read the recipe otherwise."""


class ProcedureExpansionDriftError(Refusal, context="operation"):
    """The recipe does not expand to what was registered."""


class ProcedureClosingCaptureBeforeBoundaryError(Unprocessable, context="operation", reason="capture_missing"):
    """A closing step needs a value that only a step before the boundary captures, and none did."""


class ComputeProgramNotAllowedError(Conflict, context="operation", reason="program_not_allowed"):
    """A step runs a program that this deployment does not allow."""


UNPINNABLE = (
    Recipe.aggregate.NotFound,
    RecipeVersionNotFoundError,
    InvalidProcedureBindingsError,
    UnboundRecipeBindingError,
    ProcedureExpansionOverflowError,
    ProcedureExpansionRecordNotFoundError,
    ProcedureExpanderVersionMismatchError,
    ProcedureExpansionDriftError,
    ProcedureVirtualAxisUnresolvedError,
    ProcedureVirtualAxisOutOfRangeError,
    ProcedureVirtualAxisEvaluationError,
)  # The refusals that keep registered steps from being pinned, whatever was asked for.


def prepare_steps(procedure: Procedure, sent: Sequence[Any], run: Run | None) -> Reads[Expansion]:
    """Return the steps to pin: those of the recorded expansion or, without a recipe, those that were sent."""
    if procedure.recipe_id is None:
        expansion = Expansion(steps=literal_steps(sent), closing_steps=())
    else:
        if sent:
            raise ProcedureStepsForbiddenError("The procedure follows a recipe; conduct it without steps of your own.")
        expansion = yield from recorded_expansion(procedure)
    axes = yield from virtual_axes_of((*expansion.steps, *expansion.closing_steps), run)
    pinned = Expansion(
        steps=without_virtual_axes(expansion.steps, axes), closing_steps=without_virtual_axes(expansion.closing_steps, axes)
    )
    check_step_count(pinned.step_count)
    yield from refuse_unlisted_programs(pinned)
    return pinned


def pinned_steps(pin: ProcedureStepsResolved) -> Reads[Expansion]:
    """Return the steps of a pin; refuse them where a program of theirs is not allowed any more."""
    steps = Expansion(steps=pin.resolved_steps, closing_steps=pin.resolved_closing_steps)
    yield from refuse_unlisted_programs(steps)
    return steps


def literal_steps(sent: Sequence[Any]) -> Any:
    """Return steps that were sent; refuse unbound references, and programs, which come from reviewed recipes only."""
    steps = read_steps(sent)
    for index, step in enumerate(steps):
        place = StepLocation("steps", index)
        if isinstance(step, RecipeComputeStep):
            raise misshapen(place, "kind", "compute_needs_recipe", "must not be compute; programs come from recipes")
        if names := binding_names([step]):
            raise misshapen(place, "", "misplaced_sentinel", f"refers to {names[0]}, and nothing is bound here")
    return expansion_of(steps, (), {}).steps


def recorded_expansion(procedure: Procedure) -> Reads[Expansion]:
    """Return the expansion that was registered; anything else is a fault of the service and refused."""
    records = yield from events_of(procedure.id, ProcedureRecipeExpanded)
    if not records:
        raise ProcedureExpansionRecordNotFoundError("The record of the recipe's expansion is missing; report this.")
    record = records[-1]
    if record.expander_version != EXPANDER_VERSION:
        raise ProcedureExpanderVersionMismatchError(
            f"The procedure was expanded by version {record.expander_version}, this is {EXPANDER_VERSION}; register it anew."
        )
    recipe = yield from required(Recipe, record.recipe_id)
    version = version_of(recipe, record.recipe_version)
    return (yield from run_in_thread(verified_expansion, version.steps, version.closing_steps, record))


def verified_expansion(
    steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], record: ProcedureRecipeExpanded
) -> Expansion:
    """Return the expansion if it hashes to what was recorded."""
    refuse_drift("bindings", bindings_hash(record.bindings), record.bindings_hash)
    expansion = expansion_of(steps, closing_steps, record.bindings)
    refuse_drift("steps", expansion.steps_hash, record.steps_hash)
    return expansion


def refuse_drift(name: str, found: str, kept: str) -> None:
    """Refuse a hash that differs from the recorded one."""
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
            facts={"capture_names": empty},
        )


def allowed_programs(steps: Iterable[RecipeStep]) -> Reads[frozenset[str]]:
    """Return the programs that the deployment allows; none where the steps run none."""
    if not any(isinstance(step, RecipeComputeStep) for step in steps):
        return frozenset()
    deployment = yield from ask(Ports.deployment)
    return deployment.compute_programs


def check_programs(steps: Expansion, allowed: frozenset[str]) -> None:
    """Refuse a step whose program is not among those allowed, by its exact name."""
    for place, step in located_steps(steps.steps, steps.closing_steps):
        if isinstance(step, RecipeComputeStep) and (program := step.command[0]) not in allowed:
            raise ComputeProgramNotAllowedError(
                f"{place} runs {shortened(program)}, which this deployment does not allow; use a program that it does, or "
                "have it added to COMPUTE_PROGRAMS.",
                facts={"program": program, **place._asdict()},
            )


def refuse_unlisted_programs(steps: Expansion) -> Reads[None]:
    """Refuse steps that run a program which the deployment does not allow."""
    check_programs(steps, (yield from allowed_programs((*steps.steps, *steps.closing_steps))))
