"""The form of something that is to start: the fields of the command that starts it, its parameters by their own schema, and
its phases in order; and what was typed into it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from baton.api.schemas import input_schema
from baton.client.launching import LONGEST_NAME
from baton.console.display import words_of
from baton.console.forms import MISSING, FormField, FormReader, Option, Typed, flatten, plain_text, read_field
from baton.console.judgement import ClosedGate, Remedy
from baton.console.page_queries import Shown
from baton.domain.registry import Operation
from baton.domain.shared.json_schema import Schema
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.schema import check_values, is_closed

PARAMETERS, OTHERS, PHASE = "parameters", "other_parameters", "phase"
UNNAMED = "_name"  # how it is called where no name is typed: said by the form, so that sending it again says the same
MOST_PHASES = 12
OTHER_PARAMETERS = {"type": "object", "description": "Further parameters by their names, which nothing declares."}
Errors = Mapping[str, Sequence[str]]
"""What is wrong with fields, by their places."""


@dataclass(frozen=True)
class LaunchShape:
    """What the form of a launch is made of."""

    name: str  # what is launched
    operation: Operation  # the command that makes the run or the procedure
    hidden: tuple[str, ...]  # its fields that are not typed
    front: tuple[str, ...]  # its fields that are always shown
    parameters: Schema | None
    defaults: Shown = field(default_factory=dict)  # the parameters that count where none are typed
    recipes: Sequence[Shown] = ()  # those that phases are chosen from


@dataclass(frozen=True)
class LaunchForm:
    """The fields of a launch: those in front, its phases in order, its parameters, and those that may stay empty."""

    fields: tuple[FormField, ...]
    phases: tuple[FormField, ...]
    parameters: tuple[FormField, ...]
    more: tuple[FormField, ...]


@dataclass(frozen=True)
class GivenLaunch:
    """What was typed into the form of a launch, and what of it cannot be read."""

    options: Shown
    parameters: Shown
    phases: tuple[str, ...]
    faults: Errors
    places: frozenset[str]  # of every field of the form

    def place(self, errors: Errors) -> Errors:
        """Return errors by the places of fields that are there: what is wrong inside of a field is said of it."""
        found: dict[str, list[str]] = {}
        for place, texts in errors.items():
            parts = place.split(".")
            while len(parts) > 1 and ".".join(parts) not in self.places:
                parts.pop()
            found.setdefault(".".join(parts), []).extend(texts)
        return found


def launch_schema(shape: LaunchShape) -> Schema:
    """Return the schema of everything that is typed: the command's own fields, and the parameters."""
    command, declared = input_schema(shape.operation), shape.parameters
    fields = {name: form for name, form in command["properties"].items() if name not in shape.hidden}
    if declared is not None and declared.get("properties"):
        fields[PARAMETERS] = {**declared, "type": "object"}
    if declared is not None and not is_closed(declared):
        fields[OTHERS] = OTHER_PARAMETERS
    return {**command, "properties": fields, "required": []}


def launch_fields(shape: LaunchShape, typed: Typed, zone: ZoneInfo, **options: Any) -> list[FormField]:
    """Return every field of a launch but its phases, with what was typed."""
    schema = launch_schema(shape)
    return FormReader(schema.get("$defs", {}), zone, **options).fields(schema, typed, shape.operation.aggregate)


def typed_launch(shape: LaunchShape, values: Shown, phases: Sequence[str], zone: ZoneInfo) -> dict[str, str]:
    """Return what would be typed for these values; parameters that nothing declares stand together as JSON."""
    schema = launch_schema(shape)
    known = schema["properties"].get(PARAMETERS, {}).get("properties", {})
    others = {name: value for name, value in values.get(PARAMETERS, {}).items() if name not in known}
    typed = FormReader(schema.get("$defs", {}), zone).type_in(schema, {**values, **({OTHERS: others} if others else {})})
    return {**typed, **{f"{PHASE}.{number}": recipe_id for number, recipe_id in enumerate(phases)}}


def launch_form(shape: LaunchShape, typed: Typed, zone: ZoneInfo, errors: Errors, last: Shown) -> LaunchForm:
    """Return the form of a launch with what was typed, what is wrong with it, and the values of the last time."""
    last_values = {**last, **{f"{PARAMETERS}.{name}": value for name, value in last.get(PARAMETERS, {}).items()}}
    fields = {one.name: one for one in launch_fields(shape, typed, zone, errors=errors, last_values=last_values)}
    parameters = fields.pop(PARAMETERS).children if PARAMETERS in fields else ()
    parameters = tuple(with_default(one, shape.defaults) for one in parameters)
    if OTHERS in fields and not parameters:
        parameters = (fields.pop(OTHERS),)
    fields["name"] = replace(fields["name"], hint=f"Left empty: {shape.name}, with the date and the time.")
    front = tuple(fields.pop(name) for name in shape.front)
    return LaunchForm(front, phase_fields(shape, typed), parameters, tuple(fields.values()))


def with_default(shown: FormField, defaults: Mapping[str, object]) -> FormField:
    """Return the field of a parameter with what counts where it is left empty beside its limits."""
    if shown.name not in defaults or shown.children:
        return shown
    counts = f"plan {plain_text(defaults[shown.name])}"
    return replace(shown, required=False, limits=f"{shown.limits} · {counts}" if shown.limits else counts)


def phase_fields(shape: LaunchShape, typed: Typed) -> tuple[FormField, ...]:
    """Return a field for each phase, and empty ones for more; none where there is no choice."""
    if len(shape.recipes) < 2:
        return ()
    options = tuple(Option(one["recipe_id"], one["name"]) for one in shape.recipes)
    filled = chosen_phases(shape, typed)
    count = min(max(len(options), len(filled) + 1), MOST_PHASES)
    values = (*filled, *[""] * count)[:count]
    return tuple(
        FormField(f"{PHASE}.{number}", f"Phase {number + 1}", "choice", value=value, options=options)
        for number, value in enumerate(values)
    )


def chosen_phases(shape: LaunchShape, typed: Typed) -> tuple[str, ...]:
    """Return the recipes that were chosen, in order."""
    known = {one["recipe_id"] for one in shape.recipes}
    places = (typed.get(f"{PHASE}.{number}", "") for number in range(MOST_PHASES))
    return tuple(one for one in places if one in known)


def read_launch(shape: LaunchShape, typed: Typed, zone: ZoneInfo, now: datetime) -> GivenLaunch:
    """Return what was typed into the form of a launch."""
    faults: dict[str, str] = {}
    found: dict[str, Any] = {}
    fields = launch_fields(shape, typed, zone)
    for one in fields:
        if (value := read_field(one, typed, zone, faults)) not in (MISSING, ""):
            found[one.name] = value
    others = found.pop(OTHERS, {})
    if not isinstance(others, dict):
        faults[OTHERS], others = "this is no JSON object of parameters by their names", {}
    parameters = {**others, **found.pop(PARAMETERS, {})}
    found.setdefault("name", typed.get(UNNAMED) or timed_name(shape.name, now.astimezone(zone)))
    wrong = {**parameter_errors(shape.parameters, parameters), **{place: [text] for place, text in faults.items()}}
    places = frozenset(one.place for one in flatten(fields))
    given = GivenLaunch(found, parameters, chosen_phases(shape, typed), {}, places)
    return replace(given, faults=given.place(wrong))


def timed_name(name: str, at: datetime) -> str:
    """Return a name for what is made of something of this name at a time of the facility's clock."""
    moment = f", {at:%Y-%m-%d %H:%M}"
    return name[: LONGEST_NAME - len(moment)] + moment


def parameter_errors(schema: Schema | None, parameters: Mapping[str, object]) -> dict[str, list[str]]:
    """Return what is wrong with each parameter that was given, by the place of its field."""
    found: dict[str, list[str]] = {}
    for name, form in ((schema or {}).get("properties") or {}).items():
        if name in parameters:
            try:
                check_values({"properties": {name: form}}, {name: parameters[name]}, Invalid)
            except Invalid as refusal:
                found |= errors_of({"path": name, **(refusal.facts or {})}, refusal.detail)
    return found


def errors_of(facts: Mapping[str, object] | None, sentence: str) -> dict[str, list[str]]:
    """Return what a refusal says of one parameter, by the place of its field; nothing where its facts name none."""
    name = (facts or {}).get("binding_name") or (facts or {}).get("path") or "$"
    return {f"{PARAMETERS}.{name}": [sentence]} if name != "$" else {}


def closed_by_fields(name: str, errors: Errors) -> ClosedGate:
    """Return the gate that wrong fields close, with links to them."""
    (place, texts), *others = errors.items()
    label = place.rpartition(".")[2]
    first = texts[0] if texts[0].startswith(label) else f"{words_of(label)}: {texts[0]}"
    sentence = first if not others else f"{first.rstrip('.')}; {len(others)} more cannot stand as typed."
    fields = [FormField(one, words_of(one.rpartition(".")[2]), "text") for one in errors]
    return ClosedGate(name, sentence, tuple(Remedy(one.label, f"#{one.element_id}") for one in fields))
