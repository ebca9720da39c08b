"""Patterns of points, as `draft_steps`, `define_recipe` and `version_recipe` take them. An axis is a mapping with its
`address`, its positions and, where they are needed, `unit` and `verify`."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

Axis = Mapping[str, object]
Pattern = dict[str, object]


class PointOptions(TypedDict, total=False):
    """The steps at each point, the seconds to wait before them, and whether the axes return to where they were."""

    at_point: Sequence[Mapping[str, object]]
    settle_seconds: float
    returns: bool


def line(*axes: Axis, num: int, **options: Unpack[PointOptions]) -> Pattern:
    """Return points along a line: the axes go from `start` to `stop` together."""
    return {"kind": "line", "axes": axes, "num": num, **options}


def grid(*axes: Axis, snaked: bool = False, **options: Unpack[PointOptions]) -> Pattern:
    """Return points on a grid: each axis goes from `start` to `stop` in `num` positions, the last axis fastest."""
    return {"kind": "grid", "axes": axes, "snaked": snaked, **options}


def points(*axes: Axis, **options: Unpack[PointOptions]) -> Pattern:
    """Return points from lists: the axes go through their `positions` together."""
    return {"kind": "list", "axes": axes, **options}


def around(*axes: Axis, snaked: bool = False, **options: Unpack[PointOptions]) -> Pattern:
    """Return points on a grid around a position: each axis goes through a `span` around its `centre` in `num` positions."""
    return {"kind": "around", "axes": axes, "snaked": snaked, **options}
