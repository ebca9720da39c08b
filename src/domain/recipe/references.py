"""What steps declare and refer to: the slots and outputs they fill, and every sentinel with the place it stands at."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, assert_never

from baton.domain.recipe.sentinels import BindingRef, Sentinel
from baton.domain.recipe.steps import (
    RecipeActionStep,
    RecipeCaptureStep,
    RecipeCheckStep,
    RecipeComputeStep,
    RecipeSetpointStep,
    RecipeStep,
)

T = TypeVar("T", bound=Sentinel)


class Place(NamedTuple):
    """Where a step stands: in which list, at which index."""

    list: str
    step_index: int

    def __str__(self) -> str:
        return f"{self.list}[{self.step_index}]"


Placed = tuple[Place, RecipeStep]


def placed(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep]) -> list[Placed]:
    """Both lists as the one sequence they are walked in."""
    lists = {"steps": steps, "closing_steps": closing_steps}
    return [(Place(name, index), step) for name, listed in lists.items() for index, step in enumerate(listed)]


def operands(step: RecipeStep) -> Iterator[tuple[str, Any]]:
    """Every value of a step that a sentinel may stand for, with its path."""
    match step:
        case RecipeSetpointStep():
            yield "value", step.value
        case RecipeActionStep():
            for key, value in step.params.items():
                yield f"params.{key}", value
        case RecipeCheckStep():
            yield "criterion.expected", step.criterion.expected
        case RecipeCaptureStep():
            return
        case RecipeComputeStep():
            for index, uri in enumerate(step.input_uris):
                yield f"input_uris.{index}", uri
            for key, value in step.parameters.items():
                yield f"parameters.{key}", value
        case _:
            assert_never(step)


def names_in(step: RecipeStep) -> Iterator[tuple[str, str]]:
    """The address and the names in a step, with their paths; how a parameter is called is its schema's business."""
    for field in ("address", "name", "capture_name", "output_ref_name"):
        if (name := getattr(step, field, None)) is not None:
            yield field, name
    for path, value in operands(step):
        if isinstance(value, Sentinel) and not isinstance(value, BindingRef):
            for name in dict(value).values():
                yield path, name


def references(step: RecipeStep, kind: type[T]) -> Iterator[T]:
    """The sentinels of one kind in a step."""
    return (value for _, value in operands(step) if isinstance(value, kind))


def declared_capture(step: RecipeStep) -> str | None:
    """The slot a step fills, if any."""
    return step.capture_name if isinstance(step, RecipeCaptureStep | RecipeComputeStep) else None


def declared_output(step: RecipeStep) -> str | None:
    """The output a step publishes its artifact as, if any."""
    return step.output_ref_name if isinstance(step, RecipeComputeStep) else None


def binding_names(steps: Iterable[RecipeStep]) -> tuple[str, ...]:
    """The parameters that steps leave to the operator, in alphabetical order."""
    return tuple(sorted({reference.name for step in steps for reference in references(step, BindingRef)}))
