"""Forms from declarations: the JSON schema of an input becomes fields with labels, units and limits, and what a browser
sends back becomes JSON again. A form is rendered anew from what was typed, so that rows and alternatives need no script."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from baton.console.display import words_of
from baton.console.units import UnitError, parse_quantity
from baton.domain.kernel import Aggregate
from baton.domain.registry import Operation
from baton.domain.shared.field_meanings import describe
from baton.domain.shared.naming import referred_aggregate

COUNT, FLAG, ADD, REMOVE, SHOW = "_count", "_flag", "_add", "_remove", "_show"
CONTROLS = (ADD, REMOVE, SHOW)
"""The buttons of a form that change the form itself and send nothing on."""
LONG_TEXT = 300
MISSING = object()
Schema = dict[str, Any]
Typed = Mapping[str, str]
"""What was typed, by the place of each field; several choices of one field stand on lines of their own."""


@dataclass(frozen=True)
class Option:
    """One choice of a field."""

    value: str
    label: str


@dataclass(frozen=True)
class FormField:
    """One field of a form, or a group of them."""

    place: str
    label: str
    kind: str
    required: bool = False
    value: str = ""
    hint: str = ""
    unit: str | None = None
    limits: str = ""
    options: tuple[Option, ...] = ()
    max_length: int | None = None
    children: tuple["FormField", ...] = ()
    refers_to: str | None = None
    errors: tuple[str, ...] = ()
    last: str | None = None
    name: str = ""

    @property
    def element_id(self) -> str:
        return "field-" + re.sub(r"\W", "-", self.place)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The values of a field that takes several."""
        return tuple(self.value.splitlines())


@cache
def input_schema(operation: Operation) -> Schema:
    """Return the schema of an operation's input with the meaning of each field, made when its form is first asked for."""
    schema: Schema = describe(operation.input.model_json_schema())
    fields = {name: form for name, form in schema.get("properties", {}).items() if name not in operation.internal}
    return {**schema, "properties": fields}


@dataclass(frozen=True)
class FormReader:
    """Reads schemas and what was typed into their fields, on the clock of the facility."""

    components: Mapping[str, Schema]
    zone: ZoneInfo
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    last_values: Mapping[str, Any] = field(default_factory=dict)

    def fields(
        self, schema: Schema, typed: Typed, owner: Aggregate[Any] | None, hidden: Iterable[str] = ()
    ) -> list[FormField]:
        """Return the fields of an object's schema, those that are required first."""
        schema, _ = self.resolve(schema)
        required = set(schema.get("required", ()))
        names = [name for name in schema.get("properties", {}) if name not in set(hidden)]
        names.sort(key=lambda name: name not in required)
        return [self._field(name, name, schema["properties"][name], name in required, typed, owner) for name in names]

    def resolve(self, schema: Schema) -> tuple[Schema, bool]:
        """Return a schema without references and alternatives to null, and whether null was one."""
        nullable = False
        own: Schema = {key: schema[key] for key in ("title", "description", "default", "unit") if key in schema}
        while True:
            if "$ref" in schema:
                schema = self.components[schema["$ref"].rsplit("/", 1)[-1]]
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            elif "anyOf" in schema and any(one.get("type") == "null" for one in schema["anyOf"]):
                nullable, others = True, [one for one in schema["anyOf"] if one.get("type") != "null"]
                rest = {key: part for key, part in schema.items() if key != "anyOf"}
                schema = {**rest, **others[0]} if len(others) == 1 else {**rest, "oneOf": others}
            else:
                return {**schema, **own}, nullable

    def _field(
        self, name: str, place: str, schema: Schema, required: bool, typed: Typed, owner: Aggregate[Any] | None
    ) -> FormField:
        schema, nullable = self.resolve(schema)
        known = place not in typed and "default" in schema and isinstance(schema["default"], int | float | str)
        shown = FormField(
            place=place,
            name=name,
            label=label_of(name),
            kind="text",
            required=required and not nullable,
            value=typed.get(place, str(schema["default"]) if known and not isinstance(schema["default"], bool) else ""),
            hint=hint_of(schema),
            unit=unit_code(schema),
            limits=limits_of(schema),
            max_length=schema.get("maxLength"),
            errors=tuple(self.errors.get(place, ())),
            last=None if place not in self.last_values else plain_text(self.last_values[place]),
        )
        aggregate = referred_aggregate(name, owner) if is_reference(schema) else None
        if aggregate is not None:
            kind = "references" if schema.get("type") == "array" else "reference"
            return replace(shown, kind=kind, refers_to=aggregate.name)
        return self._of_type(shown, schema, typed, owner)

    def _of_type(self, shown: FormField, schema: Schema, typed: Typed, owner: Aggregate[Any] | None) -> FormField:
        place = shown.place
        if "const" in schema:
            return replace(shown, kind="constant", value=str(schema["const"]))
        if "enum" in schema:
            options = tuple(Option(str(one), words_of(one)) for one in schema["enum"])
            return replace(shown, kind="choice", options=options)
        if (tagged := self._alternatives(schema)) is not None:
            return self._alternative_fields(shown, tagged, typed, owner)
        match schema.get("type"):
            case "boolean":
                default = "on" if schema.get("default") is True and f"{place}.{FLAG}" not in typed else ""
                return replace(shown, kind="flag", value=typed.get(place, default))
            case "integer" | "number":
                return replace(shown, kind="number")
            case "object" if schema.get("properties"):
                parts = self._object_fields(place, schema, typed, owner)
                return replace(shown, kind="group", children=parts)
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                values, _ = self.resolve(schema["additionalProperties"])
                return replace(shown, kind="pairs" if values.get("type") == "string" else "json")
            case "array":
                items, _ = self.resolve(schema.get("items", {}))
                if "enum" in items:
                    options = tuple(Option(str(one), words_of(one)) for one in items["enum"])
                    return replace(shown, kind="choices", options=options)
                if items.get("type") in ("string", "integer", "number") and "enum" not in items:
                    return replace(shown, kind="lines", unit=unit_code(items) or shown.unit)
                count = int(typed.get(f"{place}.{COUNT}", "") or row_count(place, typed))
                rows = (self._field(str(i), f"{place}.{i}", schema["items"], False, typed, owner) for i in range(count))
                return replace(shown, kind="rows", children=tuple(rows))
            case "string" if schema.get("format") == "date-time":
                return replace(shown, kind="time")
            case "string":
                return replace(shown, kind="area" if (shown.max_length or 0) > LONG_TEXT else "text")
            case _:
                return replace(shown, kind="json")

    def _object_fields(
        self, place: str, schema: Schema, typed: Typed, owner: Aggregate[Any] | None
    ) -> tuple[FormField, ...]:
        required = set(schema.get("required", ()))
        names = sorted(schema["properties"], key=lambda name: name not in required)
        return tuple(
            self._field(name, f"{place}.{name}", schema["properties"][name], name in required, typed, owner)
            for name in names
        )

    def _alternatives(self, schema: Schema) -> dict[str, Schema] | None:
        """Return the alternatives of a schema by what chooses them; None where it has none that can be told apart."""
        if "discriminator" in schema:
            return {tag: {"$ref": ref} for tag, ref in schema["discriminator"]["mapping"].items()}
        options = [self.resolve(one)[0] for one in schema.get("oneOf", ())]
        if options and all(one.get("type") == "object" and one.get("properties") for one in options):
            return {str(one.get("title", number)): one for number, one in enumerate(options)}
        return None

    def _alternative_fields(
        self, shown: FormField, tagged: Mapping[str, Schema], typed: Typed, owner: Aggregate[Any] | None
    ) -> FormField:
        chosen = typed.get(f"{shown.place}.{SHOW}") or next(iter(tagged))
        schema, _ = self.resolve(tagged.get(chosen, next(iter(tagged.values()))))
        parts = self._object_fields(shown.place, schema, typed, owner)
        parts = tuple(replace(part, kind="constant", value=chosen) if is_tag(part, tagged) else part for part in parts)
        options = tuple(Option(tag, words_of(tag)) for tag in tagged)
        return replace(shown, kind="variants", options=options, value=chosen, children=parts)


def is_tag(part: FormField, tagged: Mapping[str, Schema]) -> bool:
    """Return whether a field is the one that says which alternative it is."""
    return {option.value for option in part.options} >= {part.value} and bool(part.options) and part.name == "kind"


def label_of(name: str) -> str:
    """Return the label of a field."""
    stem = name.removesuffix("_ids") + "s" if name.endswith("_ids") else name.removesuffix("_id")
    return f"{int(name) + 1}." if name.isdigit() else words_of(stem)


def is_reference(schema: Schema) -> bool:
    """Return whether a field holds ids."""
    inner = schema.get("items", schema) if schema.get("type") == "array" else schema
    return isinstance(inner, dict) and inner.get("format") == "uuid"


def unit_code(schema: Schema) -> str | None:
    """Return the code of the unit that a schema declares."""
    unit = schema.get("unit")
    return unit.get("code") if isinstance(unit, dict) else None


def hint_of(schema: Schema) -> str:
    """Return the description of a field on one line; that of a whole input belongs to the form."""
    text = schema.get("description", "")
    return " ".join(text.split()) if isinstance(text, str) and schema.get("type") != "object" else ""


def limits_of(schema: Schema) -> str:
    """Return the limits of a number, in words."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None and abs(most) < 2**31 - 1:
        return f"{plain_text(least)} to {plain_text(most)}"
    if least is not None:
        return f"at least {plain_text(least)}"
    return f"at most {plain_text(most)}" if most is not None and abs(most) < 2**31 - 1 else ""


def plain_text(value: Any) -> str:
    """Return a value as it would be typed."""
    match value:
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case float() if value == int(value) and abs(value) < 1e15:
            return str(int(value))
        case None:
            return ""
        case int() | float():
            return str(value)
    return json.dumps(value, ensure_ascii=False)


def row_count(place: str, typed: Typed) -> int:
    """Return how many rows of a list something was typed into."""
    pattern = re.compile(rf"{re.escape(place)}\.(\d+)(?:\.|$)")
    numbers = [int(found[1]) for name in typed if (found := pattern.match(name))]
    return max(numbers, default=-1) + 1


def change_rows(typed: dict[str, str]) -> None:
    """Apply the button of a form that adds or removes a row."""
    if place := typed.pop(ADD, ""):
        count = int(typed.get(f"{place}.{COUNT}", "") or row_count(place, typed))
        typed[f"{place}.{COUNT}"] = str(count + 1)
    if removed := typed.pop(REMOVE, ""):
        place, _, number = removed.rpartition(".")
        at, count = int(number), int(typed.get(f"{place}.{COUNT}", "") or row_count(place, typed))
        rows = [{n: v for n, v in typed.items() if belongs(n, f"{place}.{i}")} for i in range(count)]
        for row in rows:
            for name in row:
                del typed[name]
        for new, row in enumerate(row for i, row in enumerate(rows) if i != at):
            for name, value in row.items():
                typed[
                    f"{place}.{new}{name[len(place) + 1 :].partition('.')[1]}{name[len(place) + 1 :].partition('.')[2]}"
                ] = value
        typed[f"{place}.{COUNT}"] = str(count - 1)


def belongs(name: str, place: str) -> bool:
    """Return whether a field is the one at a place or inside it."""
    return name == place or name.startswith(f"{place}.")


class FieldFaults(ValueError):
    """What was typed into these fields cannot be read."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{place}: {text}" for place, text in faults.items()))
        self.faults = faults


def read_fields(fields: Sequence[FormField], typed: Typed, zone: ZoneInfo) -> dict[str, Any]:
    """Return what was typed into these fields as JSON; fields that were left empty are left out."""
    faults: dict[str, str] = {}
    found = {one.name: value for one in fields if (value := read_field(one, typed, zone, faults)) is not MISSING}
    if faults:
        raise FieldFaults(faults)
    return found


def read_field(shown: FormField, typed: Typed, zone: ZoneInfo, faults: dict[str, str]) -> Any:
    """Return the value of one field, or that it was left empty; what cannot be read is noted among the faults."""
    text = typed.get(shown.place, "").replace("\r\n", "\n")
    try:
        match shown.kind:
            case "constant":
                return shown.value
            case "flag":
                return text != "" if f"{shown.place}.{FLAG}" in typed or text else MISSING
            case "group" | "variants":
                parts = {part.name: read_field(part, typed, zone, faults) for part in shown.children}
                inner = {name: value for name, value in parts.items() if value is not MISSING}
                given = any(part.kind != "constant" and part.name in inner for part in shown.children)
                return inner if given or shown.required or shown.kind == "variants" else MISSING
            case "rows":
                rows = [read_field(row, typed, zone, faults) for row in shown.children]
                kept = [{} if row is MISSING else row for row in rows]
                return kept if kept or shown.required else MISSING
            case "references" | "choices" | "lines":
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                values: list[Any] = [number_in(line, shown) for line in lines] if shown.unit else lines
                return values if values or shown.required else MISSING
        if not text.strip():
            return "" if shown.required and shown.kind in ("text", "area") else MISSING
        match shown.kind:
            case "number":
                return number_in(text, shown)
            case "time":
                return instant_in(text, zone)
            case "json":
                return json.loads(text)
            case "pairs":
                pairs = (line.partition("=") for line in text.splitlines() if line.strip())
                return {name.strip(): value.strip() for name, _, value in pairs}
    except UnitError as error:
        faults[shown.place] = f"{error}; give a number" + (f" in {shown.unit}, or with its unit" if shown.unit else "")
        return MISSING
    except json.JSONDecodeError as error:
        faults[shown.place] = f"this is no JSON ({error.msg} at character {error.pos + 1})"
        return MISSING
    except ValueError:
        faults[shown.place] = "this is no date and time"
        return MISSING
    return text


def number_in(text: str, shown: FormField) -> int | float:
    """Return the number that was typed, in the declared unit."""
    number = parse_quantity(text, shown.unit)
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def instant_in(text: str, zone: ZoneInfo) -> str:
    """Return a time of the facility's clock in UTC."""
    at = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).isoformat().replace("+00:00", "Z")


def typed_of(value: Any, place: str = "", zone: ZoneInfo | None = None) -> dict[str, str]:
    """Return JSON as it would be typed into the fields of a form."""
    match value:
        case dict() if value:
            return {n: v for key, one in value.items() for n, v in typed_of(one, f"{place}.{key}" if place else key).items()}
        case list() if value and all(isinstance(one, dict) for one in value):
            return {n: v for i, one in enumerate(value) for n, v in typed_of(one, f"{place}.{i}").items()}
        case list():
            return {place: "\n".join(plain_text(one) for one in value)}
        case True:
            return {place: "on", f"{place}.{FLAG}": "1"}
        case False:
            return {f"{place}.{FLAG}": "1"}
        case None:
            return {}
    return {place: plain_text(value)}


def errors_by_place(problem: Mapping[str, Any], fields: Sequence[FormField]) -> dict[str, list[str]]:
    """Return what a refusal says of single fields, by their places; what belongs to none is said of the form."""
    found: dict[str, list[str]] = {}
    places = {one.place for one in flatten(fields)}
    for error in problem.get("errors") or ():
        parts = [str(part) for part in error["loc"][1:]]
        while parts and ".".join(parts) not in places:
            shorter = next(
                (parts[:i] + parts[i + 1 :] for i in range(1, len(parts)) if ".".join(parts[:i] + parts[i + 1 :]) in places),
                None,
            )
            parts = shorter if shorter is not None else parts[:-1]
        if parts:
            found.setdefault(".".join(parts), []).append(error["msg"])
    return found


def flatten(fields: Sequence[FormField]) -> Iterable[FormField]:
    """Yield every field, however deep."""
    for one in fields:
        yield one
        yield from flatten(one.children)
