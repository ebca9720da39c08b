"""Values in a conduct: sentinels are resolved, readings judged, and results deposited."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from baton.domain.recipe import steps
from baton.domain.recipe.steps import CaptureRef, OutputRef, SteeringRef
from baton.domain.step.results import Artifact, Measured

GOOD, BAD = "Good", "Bad"
FLOAT_NOISE = 1e-6  # of a number: what it may lose on its way through records of single precision


class StepFault(Exception):
    """A step failed by a rule of ours; `label` is what the record calls it, `facts` what programs read of it."""

    label: str

    def __init__(self, label: str, message: str, facts: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.label = label
        self.facts = facts or {}


@dataclass(frozen=True)
class Memory:
    """What earlier steps left: captured numbers, published artifacts, and the coordinates of the pass."""

    captures: Mapping[str, float] = field(default_factory=dict)
    outputs: Mapping[str, Artifact] = field(default_factory=dict)
    coordinates: Mapping[str, Any] = field(default_factory=dict)

    def value(self, operand: object) -> Any:
        """Return the value of an operand."""
        match operand:
            case CaptureRef(capture_name=name):
                if name not in self.captures:
                    raise StepFault("UnresolvedCaptureRef", f"Nothing has been captured as {name}.")
                return self.captures[name]
            case SteeringRef(steering_axis_name=name):
                if name not in self.coordinates:
                    raise StepFault("UnresolvedCaptureRef", f"No coordinate is set on the axis {name}.")
                return self.coordinates[name]
            case OutputRef(output_name=name):
                if name not in self.outputs:
                    raise StepFault("UnresolvedOutputRef", f"No step has published {name}.")
                return self.outputs[name].uri
        return operand


def reference_field(operand: object) -> dict[str, str]:
    """Return the field by which the ledger names the sentinel of a value."""
    match operand:
        case CaptureRef(capture_name=name):
            return {"capture_ref": name}
        case SteeringRef(steering_axis_name=name):
            return {"steering_ref": name}
    return {}


Criterion = steps.RecipeEqualsCriterion | steps.RecipeToleranceCriterion


def meets(criterion: Criterion, expected: Any, value: Any, index: int | None = None) -> bool:
    """Return whether a value meets a criterion; a categorical value is its label or its index."""
    if isinstance(criterion, steps.RecipeToleranceCriterion):
        return is_number(value) and is_number(expected) and abs(value - expected) <= criterion.tolerance
    return json_equal(value, expected) or (index is not None and json_equal(index, expected))


def json_equal(one: object, other: object) -> bool:
    """Return whether two values are equal in JSON: 25 is 25.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(json_equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(json_equal(item, other[key]) for key, item in one.items())
    return bool(one == other)


def is_reached(asked: Any, read: Any, index: int | None = None, tolerance: float = 0.0) -> bool:
    """Return whether a signal reads what was written to it, in any form in which signals hold it: numbers within the
    tolerance and the noise of floats, a choice as its label or its index, a number as text, a text as characters."""
    if isinstance(asked, list | tuple):
        if isinstance(read, list | tuple):
            pairs = zip(asked, read, strict=False)
            return len(asked) == len(read) and all(is_reached(one, other, None, tolerance) for one, other in pairs)
        return len(asked) == 1 and is_reached(asked[0], read, index, tolerance)
    if isinstance(read, list | tuple):
        characters = list(asked.encode()) if isinstance(asked, str) else [asked]
        return is_reached(characters, read[: len(characters)]) and not any(read[len(characters) :])
    number, found = (int(value) if isinstance(value, bool) else value for value in (asked, read))
    if is_number(number) and is_number(found):
        return bool(abs(number - found) <= tolerance + FLOAT_NOISE * max(abs(number), abs(found)))
    if is_number(number) and isinstance(found, str):
        whole = int(number) if isinstance(number, float) and number.is_integer() else number
        return index == whole or found == str(whole)
    return json_equal(number, found)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and steps.is_finite(value)


def capturable_number(value: Any, quality: str, what: str) -> float:
    """Return a value as a number to capture; raise a fault unless it is Good and finite."""
    if quality != GOOD:
        raise StepFault("CheckFailedError", f"{what} has quality {quality}, and only a Good value is captured.")
    if not is_number(value):
        raise StepFault("ControlValueCoercionError", f"{what} is no finite number, and only such a value is captured.")
    number: float = value
    return number


def refuse_refill(name: str, captures: Iterable[str]) -> None:
    """Refuse to fill a slot twice."""
    if name in captures:
        raise StepFault("DuplicateCapture", f"{name} has been captured already; each slot is filled once.")


def deposit_of(
    step: steps.RecipeComputeStep, measurements: Sequence[Measured], artifacts: Sequence[Artifact], memory: Memory
) -> dict[str, object] | None:
    """Return what a compute step leaves for later steps, as its deposit row, or None."""
    if step.capture_name is not None:
        found = [item for item in measurements if item.name == step.capture_name]
        if not found:
            raise StepFault("ComputeMeasurementNotFound", f"The program measured no {step.capture_name}.")
        if len(found) > 1:
            raise StepFault("ComputeMeasurementAmbiguous", f"The program measured {step.capture_name} {len(found)} times.")
        number = capturable_number(found[0].value, found[0].quality, step.capture_name)
        refuse_refill(step.capture_name, memory.captures)
        return {"capture_name": step.capture_name, "captured_value": number}
    if step.output_ref_name is not None:
        if step.output_ref_name in memory.outputs:
            raise StepFault("DuplicateOutput", f"{step.output_ref_name} has been published already.")
        return {"output_ref_name": step.output_ref_name, "artifact": artifacts[0].model_dump(mode="json")}
    return None
