"""Thinning: as many of a row of points as a reader can use, so that no spike is lost."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def thin(points: Sequence[T], most: int, height: Callable[[T], float | None]) -> list[T]:
    """Return at most so many points, in order: of each stretch its lowest and its highest, or its first where none has a
    height."""
    if len(points) <= most:
        return list(points)
    stretches, kept = max(1, most // 2), list[T]()
    for number in range(stretches):
        part = points[number * len(points) // stretches : (number + 1) * len(points) // stretches]
        heights = [(found, index) for index, one in enumerate(part) if (found := height(one)) is not None]
        kept += [part[index] for index in sorted({min(heights)[1], max(heights)[1]})] if heights else part[:1]
    return kept
