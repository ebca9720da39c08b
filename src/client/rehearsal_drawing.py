"""A rehearsal as a notebook draws it: the verdict, and a line for each axis between its limits."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, MARGIN = 560, 90, 8
MOST_AXES = 6
INK, EDGE = "#1d5fa8", "#a8211a"


def is_rehearsal(members: Mapping[str, Any]) -> bool:
    """Return whether an answer is that of a rehearsal."""
    return {"travel", "walked_count", "message"} <= members.keys()


def rehearsal_html(members: Mapping[str, Any]) -> str:
    """Return the verdict of a rehearsal in a sentence, and the lines of the axes that move."""
    limits = {one.address: [each for each in (one.limits, one.control_limits) if each] for one in members["twin"]}
    moved = [one for one in members["travel"] if getattr(one, "course", None)]  # An earlier release tells none.
    drawn = "".join(axis_html(one, limits.get(one.address, [])) for one in moved[:MOST_AXES])
    return f"<p>{escape(str(members['message']))}</p>{drawn}"


def axis_html(axis: Any, limits: Sequence[Any]) -> str:
    """Return the line of one axis over the steps, with its limits as dashed edges."""
    edges = [value for one in limits for value in (one.low, one.high) if value is not None]
    values = [float(value) for _, value in axis.course]
    low, high = min([*values, *edges]), max([*values, *edges])
    span, last = (high - low) or 1.0, max(axis.course[-1][0], 1)

    def up(value: float) -> float:
        return float(round(HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2 * MARGIN), 1))

    lines = "".join(f'<path d="M0 {up(edge)}H{WIDTH}" stroke="{EDGE}" stroke-dasharray="6 3"/>' for edge in edges)
    path = " ".join(corners([(round(step / last * WIDTH, 1), up(float(value))) for step, value in axis.course]))
    picture = (
        f'<svg width="{WIDTH}" height="{HEIGHT}" fill="none">{lines}<path d="{path}" stroke="{INK}" stroke-width="2"/></svg>'
    )
    unit = f" {axis.unit}" if axis.unit else ""
    return f"<div>{escape(axis.address)}: {min(values):g} to {max(values):g}{escape(unit)}</div>{picture}"


def corners(places: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield the path of a value that stays as it is until it is set again."""
    x, y = places[0]
    yield f"M{x} {y}"
    yield from (f"H{x}V{y}" for x, y in places[1:])
