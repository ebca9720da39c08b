"""Steps in the words of equipment: what each does, by the names of the assets that own its signals. Every surface shows a
step in these words, and the address beside them as small print."""

import json
from collections.abc import Iterable, Mapping
from typing import assert_never

from baton.domain.equipment.asset import Asset
from baton.domain.equipment.signals import owners_of, owning_identifiers, signal_identifiers
from baton.domain.equipment.values import value_field
from baton.domain.recipe import steps
from baton.domain.recipe.steps import RecipeStep, Sentinel
from baton.domain.shared.reads import Reads

LONGEST_VALUE = 120  # characters
EXACT = 1e15  # below it a whole number is written out
DEGREES = frozenset({"deg", "Deg", "DEG", "degree", "degrees", "°"})
UNIT_SIGNS = {"um": "µm", "micrometer": "µm", "degC": "°C", "celsius": "°C", "C": "°C", "percent": "%", "angstrom": "Å"}
"""The signs of units that have another name in files and in the control system."""
SENTINELS: dict[type[Sentinel], str] = {
    steps.BindingRef: "the parameter",
    steps.CaptureRef: "the captured",
    steps.SteeringRef: "the advised",
    steps.OutputRef: "the output",
}
SignalNames = Mapping[str, str]
"""What signals are called, by their addresses."""


def step_words(step: RecipeStep, names: SignalNames, unit: str | None = None) -> str:
    """Return what a step does, in words; the unit is that of its signal, where the step names none."""
    match step:
        case steps.RecipeSetpointStep():
            read, named = " and read it back" if step.verify else "", names.get(step.address, f"Set {step.address}")
            return f"{named} to {with_unit(operand_words(step.value), step.unit or unit)}{read}"
        case steps.RecipeActionStep():
            given = ", ".join(f"{name} {param_words(value, names)}" for name, value in step.params.items())
            return f"Do {step.name}" + (f" with {given}" if given else "")
        case steps.RecipeCheckStep():
            wanted = with_unit(criterion_words(step.criterion), step.unit or unit)
            if step.timeout:
                return f"Wait until {shown_name(step.address, names)} is {wanted}, {span_words(step.timeout)} at most"
            return f"Check that {shown_name(step.address, names)} is {wanted}"
        case steps.RecipeCaptureStep():
            return f"Read {shown_name(step.address, names)} as {step.capture_name}" + (
                f" in {step.unit}" if step.unit else ""
            )
        case steps.RecipeComputeStep():
            left = step.capture_name or step.output_ref_name
            return f"Run {' '.join(step.command)}" + (f" for {left}" if left else "")
        case _:
            assert_never(step)


def address_of_step(step: RecipeStep) -> str | None:
    """Return the address of the signal that a step is about; None for one that is about none."""
    match step:
        case steps.RecipeSetpointStep() | steps.RecipeCheckStep() | steps.RecipeCaptureStep():
            return step.address
        case _:
            return None


def addresses_in(listed: Iterable[RecipeStep]) -> set[str]:
    """Return the addresses that steps name, and the texts of actions that may be addresses."""
    found = {address for step in listed if (address := address_of_step(step)) is not None}
    actions = (step for step in listed if isinstance(step, steps.RecipeActionStep))
    return found | {value for step in actions for value in step.params.values() if isinstance(value, str) and ":" in value}


def signal_names(addresses: Iterable[str]) -> Reads[SignalNames]:
    """Return what signals are called by the assets that own them; one that nobody owns is left out."""
    owners = yield from owners_of(tuple(sorted(addresses)))
    return {address: name_of_signal(address, found) for address, found in owners.items() if found}


def name_of_signal(address: str, owners: tuple[Asset, ...]) -> str:
    """Return the name of the owners of a signal; where it is one of several that they have, with the rest of its address."""
    held = {one for owner in owners for one in signal_identifiers(owner.alternate_identifiers)}
    identifier = next(one for one in owning_identifiers(address) if one in held)
    rest = "" if value_field(identifier) == value_field(address) else address.removeprefix(identifier).strip(":./")
    named = " and ".join(owner.name for owner in owners)
    return f"{named} {rest}" if rest else named


def shown_name(address: str, names: SignalNames) -> str:
    """Return what a signal is called; its address where it has no name."""
    return names.get(address, address)


def with_unit(text: str, unit: str | None) -> str:
    """Return a value with its unit: an angle without a space, everything else with one."""
    if not unit:
        return text
    return f"{text}°" if unit in DEGREES else f"{text} {UNIT_SIGNS.get(unit, unit)}"


def criterion_words(criterion: steps.RecipeEqualsCriterion | steps.RecipeToleranceCriterion) -> str:
    """Return what a reading is judged by, in words."""
    expected = operand_words(criterion.expected)
    return f"{expected} ± {criterion.tolerance:.6g}" if isinstance(criterion, steps.RecipeToleranceCriterion) else expected


def param_words(value: object, names: SignalNames) -> str:
    """Return a parameter of an action in words; an address by the name of its signal."""
    return names.get(value, value) if isinstance(value, str) else operand_words(value)


def operand_words(value: object) -> str:
    """Return a value of a step, or what it will be taken from."""
    match value:
        case Sentinel():
            (name,) = dict(value).values()
            return f"{SENTINELS[type(value)]} {name}"
        case {"kind": str(kind), "shape": shape} if isinstance(shape, list | tuple):
            return f"{kind} of {' by '.join(map(str, shape))}"
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return str(int(value)) if value == int(value) and abs(value) < EXACT else f"{value:.6g}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def span_words(seconds: float) -> str:
    """Return how long a wait may be, in words."""
    if seconds < 60:
        return f"{seconds:.6g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
