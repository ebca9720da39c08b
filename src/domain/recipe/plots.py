"""The plot of a recipe: which values are drawn over which axis while it is conducted, and by which names they are known."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from baton.domain.kernel import Value
from baton.domain.recipe.steps import Address, Name, RecipeStep, wire_form
from baton.domain.shared.refusals import Invalid

Listed = Mapping[str, Any]  # A step of a list as it is stored.
NUMBERED = "0123456789"
MOST_VALUES = 4  # of one plot


class PlotShape(StrEnum):
    LINE = "line"
    GRID = "grid"
    SCATTER = "scatter"
    PASSES = "passes"


class InvalidRecipePlotError(Invalid, context="recipe"):
    """The plot of a recipe names an axis or a value that its steps do not have."""


class RecipePlot(Value):
    """What is drawn of the points of a recipe."""

    x: Address
    """The axis that is drawn over: the address of a setpoint, such as bl7:rotary."""
    y: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_VALUES)]
    """The values that are drawn: names of captures."""
    kind: PlotShape | None = None
    """How they are drawn: line, grid, scatter or passes; left out, as the steps suggest."""


def check_plot(plot: RecipePlot, steps: Sequence[RecipeStep]) -> None:
    """Refuse a plot over what no step sets, or of what no step captures."""
    listed = wire_form(steps)
    if plot.x not in {one["address"] for one in listed if one["kind"] == "setpoint"}:
        detail = f"No step sets {plot.x}, so nothing can be plotted over it; name the address of a setpoint."
        raise InvalidRecipePlotError(detail, reason="not_an_axis", facts={"name": plot.x})
    names = value_names(listed)
    for name in plot.y:
        if name not in names and name not in names.values():
            detail = f"No step captures {name}, so it cannot be plotted; name a capture of the recipe."
            raise InvalidRecipePlotError(detail, reason="not_captured", facts={"name": name})


def value_names(steps: Iterable[Listed]) -> dict[str, str]:
    """Return the value that each capture belongs to: its own name or, of captures from one signal or program that differ by
    a number at the end, what they have in common. A list names each capture once, and a scan captures the same often."""
    together: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        if (name := step.get("capture_name")) is not None:
            source = step.get("address") or step["command"][0]
            together.setdefault((source, name.rstrip(NUMBERED).rstrip(" _-.") or name), []).append(name)
    counts: dict[str, int] = {}
    for _, base in together:
        counts[base] = counts.get(base, 0) + 1
    every = {name for names in together.values() for name in names}
    return {
        name: base if len(names) > 1 and counts[base] == 1 and (base not in every or base in names) else name
        for (_, base), names in together.items()
        for name in names
    }
