"""A picture of the path of a pattern: its points in the order they are visited, drawn before anything moves."""

from markupsafe import Markup
from pydantic import TypeAdapter

from baton.console.plots import MOST_POINTS, Series, line_plot
from baton.domain.recipe.patterns import AnyPattern, Pattern, pattern_points

PATTERN: TypeAdapter[AnyPattern] = TypeAdapter(Pattern)


def pattern_picture(given: object) -> Markup:
    """Return the path of a pattern: over the last axis and the first one or, with one axis, over the points in order."""
    pattern = PATTERN.validate_python(given)
    points = pattern_points(pattern)
    first, last = pattern.axes[0], pattern.axes[-1]
    if len(pattern.axes) == 1:
        path, across = [(float(number), one.positions[0]) for number, one in enumerate(points, 1)], "point"
    else:
        path, across = [(one.positions[-1], one.positions[0]) for one in points], last.address
    up = f"{first.address} in {first.unit}" if first.unit else first.address
    shown = f"the first {MOST_POINTS} of {len(points)} points" if len(points) > MOST_POINTS else f"{len(points)} points"
    label = f"The path of {shown}: {up} upwards, {across} to the right"
    plot = line_plot(
        [Series(first.address, tuple(path[:MOST_POINTS]))],
        label=label,
        x_label=across,
        dots=True,
        counted=len(pattern.axes) == 1,
        latest=False,
    )
    return Markup('<figure>{}<figcaption class="faint">{}.</figcaption></figure>').format(plot, label)
