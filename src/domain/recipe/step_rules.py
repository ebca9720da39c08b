"""What the steps of a recipe owe each other: parameters that exist, slots and outputs filled before they are used.

Steps and closing steps are judged as the one sequence they are walked in; coordinates of a steered loop have no
declaring step and are exempt.
"""

from collections.abc import Iterable, Sequence

from baton.domain.recipe.references import (
    Place,
    Placed,
    binding_names,
    declared_capture,
    declared_output,
    placed,
    references,
)
from baton.domain.recipe.sentinels import CaptureRef, OutputRef
from baton.domain.recipe.step_shapes import InvalidRecipeStepShapeError
from baton.domain.recipe.steps import RecipeStep
from baton.domain.shared.refusals import Unprocessable
from baton.domain.shared.schema import Schema
from baton.domain.shared.text import shortened


class RecipeRequiresCapabilityParametersSchemaError(Unprocessable, context="recipe"):
    """Steps refer to parameters, but the capability declares none."""


class RecipeBindingReferencesUnknownParameterError(Unprocessable, context="recipe"):
    """A step refers to a parameter that the capability's schema does not declare."""


class DuplicateRecipeCaptureError(Unprocessable, context="recipe"):
    """Two steps fill the same slot."""


class UnboundRecipeCaptureError(Unprocessable, context="recipe"):
    """A step uses a slot that no earlier step fills."""


class DuplicateRecipeOutputError(Unprocessable, context="recipe"):
    """Two compute steps publish an artifact under the same name."""


class UnboundRecipeOutputError(Unprocessable, context="recipe"):
    """A compute step reads an output that no earlier compute step publishes."""


def check_steps(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], schema: Schema | None) -> None:
    """Refuse steps that do not hold together, or not with the capability's parameters."""
    sequence = placed(steps, closing_steps)
    check_parameters(sequence, schema)
    check_captures(sequence)
    check_outputs(sequence)


def check_parameters(sequence: Sequence[Placed], schema: Schema | None) -> None:
    """Refuse references to parameters that the schema does not declare at its top level."""
    names = binding_names(step for _, step in sequence)
    if names and schema is None:
        raise RecipeRequiresCapabilityParametersSchemaError(
            f"The capability declares no parameters, but the steps refer to {_listed(names)}; "
            "version the capability with a schema or write literals.",
            facts={"binding_names": list(names)},
        )
    declared = sorted((schema or {}).get("properties", {}))
    if unknown := next((name for name in names if name not in declared), None):
        raise RecipeBindingReferencesUnknownParameterError(
            f"The capability has no parameter {unknown}; use one of those it declares: {_listed(declared) or 'none'}.",
            facts={"binding_name": unknown, "declared_names": declared},
        )


def check_captures(sequence: Sequence[Placed]) -> None:
    """Refuse slots filled twice, then slots used before they are filled."""
    filled: dict[str, Place] = {}
    for place, step in sequence:
        if (name := declared_capture(step)) is None:
            continue
        if name in filled:
            raise DuplicateRecipeCaptureError(
                f"{place} fills the slot {name}, which {filled[name]} fills already; give each slot a name of its own.",
                facts={**place._asdict(), "capture_name": name},
            )
        filled[name] = place
    for place, step in sequence:
        for reference in references(step, CaptureRef):
            name = reference.capture_name
            if name not in filled or not _before(filled[name], place):
                raise UnboundRecipeCaptureError(
                    f"{place} uses the slot {name}, which no earlier step fills; capture it first.",
                    facts={**place._asdict(), "capture_name": name},
                )


def check_outputs(sequence: Sequence[Placed]) -> None:
    """Refuse outputs published twice, read before they are published, or left over beside the one of record."""
    published: dict[str, Place] = {}
    for place, step in sequence:
        if (name := declared_output(step)) is None:
            continue
        if name in published:
            raise DuplicateRecipeOutputError(
                f"{place} publishes the output {name}, which {published[name]} publishes already; give it another name.",
                facts={**place._asdict(), "output_name": name},
            )
        published[name] = place
    loose = dict.fromkeys(published)
    for place, step in sequence:
        for reference in references(step, OutputRef):
            name = reference.output_name
            if name not in published or not _before(published[name], place):
                raise UnboundRecipeOutputError(
                    f"{place} reads the output {name}, which no earlier compute step publishes; publish it first.",
                    facts={**place._asdict(), "output_name": name},
                )
            loose.pop(name, None)
    if published and len(loose) != 1:
        raise InvalidRecipeStepShapeError(
            f"Exactly one output must stay unread as the one of record, but {_listed(loose) or 'none'} would; "
            "read the others in later steps or do not publish them.",
            reason="one_sink",
            facts={"output_names": list(loose)},
        )


def _before(one: Place, other: Place) -> bool:
    """Whether a step comes before another in the sequence; closing steps come after all others."""
    return (one.list != "steps", one.step_index) < (other.list != "steps", other.step_index)


def _listed(names: Iterable[str]) -> str:
    return shortened(", ".join(names))
