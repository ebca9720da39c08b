"""What was different: two runs, or a run and those that completed before it, as facts under the same names, and how
surprising each difference is. It says what differs, never why."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import Any, NamedTuple

from pydantic import Field

from baton.domain.shared.answer_form import AnswerForm

FEWEST = 5  # Values from which a usual one is told.
MOST_ROWS = 200
SMALLEST = 0.02  # Measured values that differ by less than this share are taken for equal.
SPREAD = 1.4826  # What a median deviation is multiplied by to estimate a standard deviation.
USUAL_SPREAD = 3.0  # Deviations from the median at which a number is half as surprising as one can be.
NOTICED_SECONDS = 2.0  # A difference of so many seconds in all is half as surprising as a long one.

Scalar = float | int | bool | str | None


class Aspect(StrEnum):
    """What two runs are compared by."""

    CALIBRATION = "calibration"
    RECIPE = "recipe"
    PARAMETER = "parameter"
    SETTING = "setting"
    SETPOINT = "setpoint"
    MODEL = "model"
    CONDITION = "condition"
    SUPPLY = "supply"
    CAUTION = "caution"
    PLAN = "plan"
    STEPS = "steps"
    DURATION = "duration"
    WAIT = "wait"
    HOLD = "hold"
    DEVIATION = "deviation"
    CAPTURE = "capture"
    READING = "reading"
    DRIVER = "driver"
    SAMPLE = "sample"


WEIGHTS: Mapping[Aspect, float] = {
    Aspect.CALIBRATION: 0.95,
    Aspect.RECIPE: 0.9,
    Aspect.PLAN: 0.9,
    Aspect.CONDITION: 0.9,
    Aspect.SETPOINT: 0.88,
    Aspect.SETTING: 0.88,
    Aspect.PARAMETER: 0.88,
    Aspect.MODEL: 0.85,
    Aspect.SUPPLY: 0.85,
    Aspect.DURATION: 0.95,
    Aspect.DEVIATION: 0.8,
    Aspect.STEPS: 0.7,
    Aspect.HOLD: 0.7,
    Aspect.CAUTION: 0.6,
    Aspect.CAPTURE: 0.6,
    Aspect.READING: 0.6,
    Aspect.WAIT: 0.5,
    Aspect.DRIVER: 0.4,
    Aspect.SAMPLE: 0.2,
}
"""How surprising the largest difference of an aspect is: what somebody chose says more than what follows from it."""
MEASURED = frozenset(
    {Aspect.DURATION, Aspect.WAIT, Aspect.CAPTURE, Aspect.READING, Aspect.DEVIATION, Aspect.HOLD, Aspect.STEPS}
)
"""What varies from run to run although nobody has changed anything."""
TIMED = frozenset({Aspect.DURATION, Aspect.WAIT})


class FactKey(NamedTuple):
    """What a fact is about: the same key in two runs means the same thing."""

    aspect: Aspect
    path: str


class Fact(NamedTuple):
    """What a run says under a key: its value, the unit of that and, of a duration, how often it took that long."""

    value: Scalar
    unit: str | None = None
    times: int = 1


Facts = Mapping[FactKey, Fact]


class ComparedRow(AnswerForm):
    """One thing that differs."""

    aspect: Aspect
    """What the two are compared by here."""
    path: str
    """What it is about: a parameter, a signal, a step, a channel."""
    this: Any
    """The value in this run; null where it has none."""
    that: Any
    """The value in the other run; null where it has none."""
    usual: Any = None
    """The value that runs usually have here: a median, or the most frequent one; null without enough runs."""
    unit: str | None = None
    surprise: float = Field(ge=0, le=1, description="How surprising the difference is, as a fraction of what could be.")
    sentence: str
    """What differs, in a sentence."""


def compare(this: Facts, that: Facts, usual: Sequence[Facts] = ()) -> list[ComparedRow]:
    """Return what differs between two runs or, where others are given, from those; the most surprising first."""
    rows = []
    for key in sorted({*this, *that}):
        row = compare_fact(key, this.get(key), that.get(key), [one[key] for one in usual if key in one], len(usual))
        if row is not None:
            rows.append(row)
    return sorted(rows, key=lambda row: (-row.surprise, row.aspect, row.path))[:MOST_ROWS]


def compare_fact(
    key: FactKey, this: Fact | None, that: Fact | None, usual: Sequence[Fact], run_count: int
) -> ComparedRow | None:
    """Return how one fact differs; None where it does not."""
    known = this or that
    assert known is not None, "a key comes from one of the two"
    values = [one.value for one in usual]
    if run_count >= FEWEST:
        surprise, middle = surprise_among(key, this, values, run_count)
    else:
        surprise, middle = surprise_of_pair(key, this, that), None
    if surprise <= 0:
        return None
    mine, other = None if this is None else this.value, None if that is None else that.value
    return ComparedRow(
        aspect=key.aspect,
        path=key.path,
        this=mine,
        that=other,
        usual=middle,
        unit=known.unit,
        surprise=round(min(surprise, 1.0), 3),
        sentence=sentence_of(key, this, that, middle),
    )


def surprise_of_pair(key: FactKey, this: Fact | None, that: Fact | None) -> float:
    """Return how surprising it is that one run says this and the other that."""
    weight = WEIGHTS[key.aspect]
    if this is None or that is None:
        return weight * (0.5 if key.aspect in MEASURED else 0.9)
    if this.value == that.value:
        return 0.0
    if not (is_number(this.value) and is_number(that.value)):
        return weight
    mine, other = float(this.value), float(that.value)  # type: ignore[arg-type]
    share = abs(mine - other) / max(abs(mine), abs(other))
    if key.aspect not in MEASURED:
        return weight * (0.9 + 0.1 * share)
    if share < SMALLEST:
        return 0.0
    if key.aspect in TIMED:
        gone = abs(mine - other) * max(this.times, that.times)
        return weight * share * gone / (gone + NOTICED_SECONDS)
    return weight * share * share


def surprise_among(key: FactKey, this: Fact | None, values: Sequence[Scalar], run_count: int) -> tuple[float, Scalar]:
    """Return how surprising a value is among those of other runs, and what is usual there."""
    weight, numbers = WEIGHTS[key.aspect], [float(one) for one in values if is_number(one)]  # type: ignore[arg-type]
    if this is None:
        return weight * len(values) / run_count * 0.9, usual_word(values)
    if is_number(this.value) and len(numbers) >= FEWEST:
        middle = median(numbers)
        spread = SPREAD * median(abs(one - middle) for one in numbers)
        spread = max(spread, abs(middle) * (SMALLEST / 2 if key.aspect in MEASURED else 1e-9), 1e-12)
        away = abs(float(this.value) - middle) / spread  # type: ignore[arg-type]
        if this.value == middle or away < 1:
            return 0.0, middle
        surprise = weight * away / (away + USUAL_SPREAD)
        if key.aspect in TIMED:
            gone = abs(float(this.value) - middle) * this.times  # type: ignore[arg-type]
            surprise *= gone / (gone + NOTICED_SECONDS)
        return surprise, middle
    alike = sum(one == this.value for one in values)
    rare = 1 - alike / run_count
    return (weight * rare if rare > 0.5 else 0.0), usual_word(values)


def usual_word(values: Sequence[Scalar]) -> Scalar:
    """Return the most frequent of these values."""
    if not values:
        return None
    numbers = [float(one) for one in values if is_number(one)]  # type: ignore[arg-type]
    return median(numbers) if len(numbers) == len(values) else Counter(values).most_common(1)[0][0]


def is_number(value: Scalar) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


WORDS: Mapping[Aspect, str] = {
    Aspect.CALIBRATION: "The calibration {path} has {this}",
    Aspect.RECIPE: "The phase {path} has {this}",
    Aspect.PLAN: "The {path} is {this}",
    Aspect.PARAMETER: "The parameter {path} is {this}",
    Aspect.SETTING: "The setting {path} is {this}",
    Aspect.SETPOINT: "{path} was set to {this}",
    Aspect.MODEL: "The model of {path} is {this}",
    Aspect.CONDITION: "{path} was {this}",
    Aspect.SUPPLY: "The supply {path} was {this}",
    Aspect.CAUTION: "The caution {path!r} was {this}",
    Aspect.STEPS: "{path} was done {this} times",
    Aspect.DURATION: "{path} took {this} in the middle",
    Aspect.WAIT: "{path} took {this} in the middle",
    Aspect.HOLD: "The run was held {this} times",
    Aspect.DEVIATION: "{path} read otherwise than written {this} times",
    Aspect.CAPTURE: "The captured {path} is {this}",
    Aspect.READING: "The channel {path} reads {this} in the middle",
    Aspect.DRIVER: "The run was begun by {this}",
    Aspect.SAMPLE: "The sample is {this}",
}


def sentence_of(key: FactKey, this: Fact | None, that: Fact | None, usual: Scalar) -> str:
    """Return what differs in a sentence, which says no cause."""
    unit = next((one.unit for one in (this, that) if one is not None and one.unit), None)
    here = "nothing" if this is None else value_text(this.value, unit)
    said = WORDS[key.aspect].format(path=key.path, this=here)
    if usual is not None:
        return f"{said}, where {value_text(usual, unit)} is usual."
    return f"{said} here, and {'nothing' if that is None else value_text(that.value, unit)} there."


def value_text(value: Scalar, unit: str | None) -> str:
    """Return a value with its unit."""
    text = "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if unit is None else f"{text} {unit}"


def flat_facts(aspect: Aspect, values: Mapping[str, Any], before: str = "") -> Iterable[tuple[FactKey, Fact]]:
    """Yield a fact for each scalar in nested values, under a path of their names."""
    for name, value in values.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from flat_facts(aspect, value, f"{path}.")
        elif isinstance(value, str | int | float | None):
            yield FactKey(aspect, path), Fact(value)
        else:
            yield FactKey(aspect, path), Fact(str(value))
