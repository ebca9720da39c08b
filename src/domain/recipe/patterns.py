"""Patterns, from which recipes get their steps: points along a line, on a grid, from a list or around a position, over one
to four axes, and the steps that are done at each. A pattern becomes a flat list, and only that list is conducted."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Annotated, Any, Literal, NamedTuple, Self, assert_never

from pydantic import Field, StrictFloat, model_validator

from baton.domain.equipment.signals import owners_of, tightest_limits
from baton.domain.kernel import Value
from baton.domain.recipe.expansion import MAX_STEPS, check_step_count
from baton.domain.recipe.step_checks import read_closing_steps, read_steps
from baton.domain.recipe.steps import Address, DeclaredUnit, RecipeStep, Verify, wire_form
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, run_in_thread
from baton.domain.shared.refusals import Conflict

SETTLE = "settle"  # The built-in action that waits.
MARKS = "ijkl"  # What stands in names of captures for the place along each axis.
RawStep = dict[str, object]
PointCount = Annotated[int, Field(strict=True, ge=2, le=MAX_STEPS)]


class UnlimitedPatternAxisError(Conflict, context="recipe", reason="no_limits"):
    """An axis of a pattern has no limits, where the deployment asks for them."""


class PatternAxis(Value):
    """A signal that is set at every point of a pattern."""

    address: Address
    """The signal that is set, such as bl7:rotary."""
    unit: DeclaredUnit = None
    """The unit of the positions, such as mm; without it, that of the signal."""
    verify: Verify = False


class LineAxis(PatternAxis):
    """An axis that goes from one end to the other."""

    start: StrictFloat
    """The first position, in the unit of the axis."""
    stop: StrictFloat
    """The last position, in the unit of the axis."""


class GridAxis(LineAxis):
    """An axis that goes from one end to the other in this number of positions."""

    num: PointCount
    """Number of positions, both ends included."""


class ListAxis(PatternAxis):
    """An axis that goes to these positions, one after the other."""

    positions: Annotated[tuple[StrictFloat, ...], Field(min_length=1, max_length=MAX_STEPS)]
    """The positions in their order, in the unit of the axis."""


class AroundAxis(PatternAxis):
    """An axis that goes from half a span below a position to half a span above it."""

    centre: StrictFloat
    """The position in the middle, in the unit of the axis."""
    span: Annotated[StrictFloat, Field(gt=0)]
    """The distance between both ends, in the unit of the axis."""
    num: PointCount
    """Number of positions, both ends included."""


Snaked = Annotated[bool, Field(strict=True, description="Whether each axis but the first turns back instead of returning.")]


class PatternForm(Value):
    """The axes of a pattern, the steps at its points, and the way back."""

    kind: str
    axes: tuple[PatternAxis, ...]
    at_point: Annotated[tuple[RecipeStep, ...], Field(max_length=100)] = ()
    """The steps at each point. In names of captures, {n} is the point and {i} to {l} are the places on the axes, from 1."""
    settle_seconds: Annotated[StrictFloat, Field(ge=0, le=600), Seconds] = 0.0
    """The seconds to wait at each point before its steps."""
    returns: Annotated[bool, Field(strict=True)] = False
    """Whether the closing steps return the axes to where they were."""

    @model_validator(mode="after")
    def _distinct_axes(self) -> Self:
        addresses = [axis.address for axis in self.axes]
        if len(set(addresses)) < len(addresses):
            raise ValueError("two axes have the same address; give each signal once")
        return self


class LinePattern(PatternForm):
    """Points along a line: all axes go from start to stop together."""

    kind: Literal["line"]
    axes: Annotated[tuple[LineAxis, ...], Field(min_length=1, max_length=4)]
    num: PointCount
    """Number of points, both ends included."""


class GridPattern(PatternForm):
    """Points on a grid: the last axis goes through all of its positions at each position of those before it."""

    kind: Literal["grid"]
    axes: Annotated[tuple[GridAxis, ...], Field(min_length=1, max_length=4)]
    snaked: Snaked = False


class ListPattern(PatternForm):
    """Points from lists: all axes go to their positions together."""

    kind: Literal["list"]
    axes: Annotated[tuple[ListAxis, ...], Field(min_length=1, max_length=4)]

    @model_validator(mode="after")
    def _even_lists(self) -> Self:
        if len({len(axis.positions) for axis in self.axes}) > 1:
            raise ValueError("the axes have different numbers of positions; give each the same number")
        return self


class AroundPattern(PatternForm):
    """Points on a grid around a position, such as the one that a measurement gave."""

    kind: Literal["around"]
    axes: Annotated[tuple[AroundAxis, ...], Field(min_length=1, max_length=4)]
    snaked: Snaked = False


AnyPattern = LinePattern | GridPattern | ListPattern | AroundPattern
Pattern = Annotated[AnyPattern, Field(discriminator="kind")]


class PatternPoint(NamedTuple):
    """A point of a pattern: the place along each axis, counted from 0, and the position there."""

    places: tuple[int, ...]
    positions: tuple[float, ...]


class PatternSteps(NamedTuple):
    """The steps of a pattern, and those that return its axes to where they were."""

    steps: tuple[RecipeStep, ...]
    closing_steps: tuple[RecipeStep, ...]


def positions_between(start: float, stop: float, num: int) -> tuple[float, ...]:
    """Return evenly spaced positions, of which the last is exactly the stop."""
    return (*(start + place * (stop - start) / (num - 1) for place in range(num - 1)), stop)


def axis_positions(pattern: AnyPattern) -> list[tuple[float, ...]]:
    """Return the positions of each axis, in the order of their places."""
    match pattern:
        case LinePattern():
            return [positions_between(axis.start, axis.stop, pattern.num) for axis in pattern.axes]
        case GridPattern():
            return [positions_between(axis.start, axis.stop, axis.num) for axis in pattern.axes]
        case ListPattern():
            return [axis.positions for axis in pattern.axes]
        case AroundPattern():
            ends = [(axis.centre - axis.span / 2, axis.centre + axis.span / 2, axis.num) for axis in pattern.axes]
            return [positions_between(*end) for end in ends]
        case _:
            assert_never(pattern)


def grid_places(counts: Sequence[int], *, snaked: bool) -> list[tuple[int, ...]]:
    """Return the places of a grid in the order they are visited; snaked, only one axis moves between two points."""
    places: list[tuple[int, ...]] = [()]
    for count in counts:
        ways = (range(count), range(count)[:: -1 if snaked else 1])
        places = [(*outer, place) for index, outer in enumerate(places) for place in ways[index % 2]]
    return places


def pattern_points(pattern: AnyPattern) -> list[PatternPoint]:
    """Return the points of a pattern in the order they are visited."""
    paths = axis_positions(pattern)
    if isinstance(pattern, GridPattern | AroundPattern):
        visited = grid_places([len(path) for path in paths], snaked=pattern.snaked)
    else:
        visited = [(place,) * len(paths) for place in range(len(paths[0]))]
    return [
        PatternPoint(places, tuple(path[place] for path, place in zip(paths, places, strict=True))) for places in visited
    ]


def point_count(pattern: AnyPattern) -> int:
    """Return the number of points of a pattern."""
    match pattern:
        case LinePattern():
            return pattern.num
        case ListPattern():
            return len(pattern.axes[0].positions)
        case GridPattern() | AroundPattern():
            return prod(axis.num for axis in pattern.axes)
        case _:
            assert_never(pattern)


def step_count(pattern: AnyPattern) -> int:
    """Return the number of steps and closing steps that a pattern becomes."""
    at_each = len(pattern.axes) + (pattern.settle_seconds > 0) + len(pattern.at_point)
    return point_count(pattern) * at_each + 2 * len(pattern.axes) * pattern.returns


def pattern_steps(pattern: AnyPattern) -> PatternSteps:
    """Return the flat lists that a pattern becomes; refuse more steps than a procedure may have."""
    check_step_count(step_count(pattern))
    slots = [f"return_{mark}" for mark in MARKS] if pattern.returns else []
    homes = list(zip(pattern.axes, slots, strict=False))
    pause: list[RawStep] = [{"kind": "action", "name": SETTLE, "params": {"seconds": pattern.settle_seconds}}]
    at_point = wire_form(pattern.at_point)
    steps = [_with_unit({"kind": "capture", "address": axis.address, "capture_name": slot}, axis) for axis, slot in homes]
    for number, point in enumerate(pattern_points(pattern), 1):
        marks = {f"{{{mark}}}": str(place + 1) for mark, place in zip(MARKS, point.places, strict=False)}
        steps += [_setpoint(axis, position) for axis, position in zip(pattern.axes, point.positions, strict=True)]
        steps += pause if pattern.settle_seconds else []
        steps += [_at_point(raw, {"{n}": str(number), **marks}) for raw in at_point]
    closing = [_setpoint(axis, {"__capture__": slot}) for axis, slot in homes]
    return PatternSteps(read_steps(steps), read_closing_steps(closing))


def load_pattern_steps(pattern: AnyPattern) -> Reads[PatternSteps]:
    """Return what a pattern becomes; refuse an axis without limits, where the deployment asks for them."""
    if (yield from ask(DeploymentPort.deployment)).strict_limits:
        owners = yield from owners_of([axis.address for axis in pattern.axes])
        if free := [address for address, owning in owners.items() if tightest_limits(address, owning) is None]:
            detail = f"No owner sets limits on {', '.join(free)}; set them with set_asset_signal_limits, or change the axis."
            raise UnlimitedPatternAxisError(detail, facts={"addresses": free})
    return (yield from run_in_thread(pattern_steps, pattern))


def _setpoint(axis: PatternAxis, value: object) -> RawStep:
    verify = axis.model_dump(mode="json")["verify"]
    return _with_unit({"kind": "setpoint", "address": axis.address, "value": value, "verify": verify}, axis)


def _with_unit(raw: RawStep, axis: PatternAxis) -> RawStep:
    return raw if axis.unit is None else {**raw, "unit": axis.unit}


def _at_point(raw: Mapping[str, object], marks: Mapping[str, str]) -> RawStep:
    """Return a step as it is at one point."""
    name = raw.get("capture_name")
    named = {"capture_name": _fill(name, marks)} if isinstance(name, str) else {}
    return {key: _fill_references(value, marks) for key, value in raw.items()} | named


def _fill_references(value: Any, marks: Mapping[str, str]) -> Any:
    """Return a value in which each reference to a capture names that of one point."""
    match value:
        case {"__capture__": str() as name}:
            return {"__capture__": _fill(name, marks)}
        case dict():
            return {key: _fill_references(item, marks) for key, item in value.items()}
        case _:
            return value


def _fill(name: str, marks: Mapping[str, str]) -> str:
    for mark, place in marks.items():
        name = name.replace(mark, place)
    return name
