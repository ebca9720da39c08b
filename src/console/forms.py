"""Forms from declarations: the JSON schema of an input becomes fields with labels, units and limits, and what a browser
sends back becomes JSON again. A form is rendered from the typed values, so that rows and alternatives need no script."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from uuid_utils.compat import uuid7

from baton.api.errors import RequestValidationError
from baton.console.display import words_of
from baton.console.page_queries import Shown
from baton.console.units import parse_quantity
from baton.domain.kernel import Aggregate
from baton.domain.shared.json_schema import Schema, name_in
from baton.domain.shared.logbooks import SHAPE
from baton.domain.shared.naming import plural, referred_aggregate
from baton.domain.shared.units import UnitError

COUNT, FLAG, GIVEN, ADD, REMOVE, SHOW = "_count", "_flag", "_given", "_add", "_remove", "_show"
CONTROLS = (ADD, REMOVE, SHOW)
"""The buttons of a form that change the form itself and send nothing on."""
LONG_TEXT = 300
MOST_ROWS, DEEPEST = 500, 12  # rows of all lists of a form, and how deep they may stand in each other
ROW_NUMBER = re.compile("[0-9]{1,3}")
MISSING = object()
EMPTY: tuple[Any, ...] = ("", False, [], {})
OWN_KINDS = frozenset({"constant", "new_id"})
"""The kinds of field that fill themselves in."""
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
    values: tuple[Any, ...] = ()  # what the options stand for, in JSON
    numeric: bool = False  # whether each line is a number
    clearable: bool = False  # whether it had a value that may be taken away by emptying it

    @property
    def element_id(self) -> str:
        return "field-" + re.sub(r"\W", "-", self.place)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The values of a field that takes several."""
        return tuple(self.value.splitlines())


@dataclass(frozen=True)
class FormReader:
    """Reads schemas and what was typed into their fields, on the clock of the facility."""

    components: Mapping[str, Schema]
    zone: ZoneInfo
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    last_values: Shown = field(default_factory=dict)

    def fields(self, schema: Schema, typed: Typed, owner: Aggregate | None, hidden: Iterable[str] = ()) -> list[FormField]:
        """Return the fields of an object's schema, those that are required first."""
        refuse_too_many_rows(typed)
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
                schema = self.components[name_in(schema["$ref"])]
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            elif "anyOf" in schema and any(one.get("type") == "null" for one in schema["anyOf"]):
                nullable, others = True, [one for one in schema["anyOf"] if one.get("type") != "null"]
                rest = {key: part for key, part in schema.items() if key != "anyOf"}
                schema = {**rest, **others[0]} if len(others) == 1 else {**rest, "oneOf": others}
            else:
                return {**schema, **own}, nullable

    def _field(
        self, name: str, place: str, schema: Schema, required: bool, typed: Typed, owner: Aggregate | None
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
            clearable=nullable and bool(typed.get(place) or typed.get(f"{place}.{GIVEN}")),
        )
        aggregate = referred_aggregate(name, owner) if is_reference(schema) else None
        if aggregate is not None:
            kind = "references" if schema.get("type") == "array" else "reference"
            return replace(shown, kind=kind, refers_to=aggregate.name)
        if is_reference(schema) and schema.get("type") != "array" and shown.value:
            return replace(shown, kind="given_id")
        return self._of_type(shown, schema, typed, owner)

    def kind(self, schema: Schema) -> str:
        """Return the kind of field that a schema without references takes."""
        items = self.resolve(schema.get("items", {}))[0] if schema.get("type") == "array" else {}
        match schema.get("type"):
            case _ if "const" in schema:
                return "constant"
            case _ if "enum" in schema:
                return "choice"
            case _ if self.alternatives(schema):
                return "variants"
            case "boolean":
                return "flag"
            case "integer" | "number":
                return "number"
            case "object" if schema.get("properties"):
                return "group"
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                values, _ = self.resolve(schema["additionalProperties"])
                return "pairs" if values.get("type") == "string" else "json"
            case "array" if "enum" in items:
                return "choices"
            case "array" if items.get("type") in ("string", "integer", "number"):
                return "lines"
            case "array" if items.get("properties") or self.alternatives(items):
                return "rows"
            case "string" if schema.get("format") == "date-time":
                return "time"
            case "string" if schema.get("format") == "uuid7" or schema.get("pattern") == SHAPE:
                return "new_id"
            case "string":
                return "area" if schema.get("maxLength", 0) > LONG_TEXT else "text"
        return "json"

    def _of_type(self, shown: FormField, schema: Schema, typed: Typed, owner: Aggregate | None) -> FormField:
        place, kind = shown.place, self.kind(schema)
        match kind:
            case "constant":
                return replace(shown, kind=kind, value=str(schema["const"]))
            case "new_id":
                return replace(shown, kind=kind, value=shown.value or str(uuid7()))
            case "choice":
                return replace(shown, kind=kind, options=options_in(schema), values=tuple(schema["enum"]))
            case "choices":
                items, _ = self.resolve(schema["items"])
                return replace(shown, kind=kind, options=options_in(items), values=tuple(items["enum"]))
            case "variants":
                return self._alternative_fields(shown, self.alternatives(schema), typed, owner)
            case "flag":
                default = "on" if schema.get("default") is True and f"{place}.{FLAG}" not in typed else ""
                return replace(shown, kind=kind, value=typed.get(place, default))
            case "group":
                return replace(shown, kind=kind, children=self._object_fields(place, schema, typed, owner))
            case "lines":
                items, _ = self.resolve(schema["items"])
                return replace(
                    shown, kind=kind, unit=unit_code(items) or shown.unit, numeric=items["type"] in ("integer", "number")
                )
            case "rows":
                count = row_count(place, typed)
                rows = (self._field(str(i), f"{place}.{i}", schema["items"], True, typed, owner) for i in range(count))
                return replace(shown, kind=kind, children=tuple(rows))
        return replace(shown, kind=kind)

    def type_in(self, schema: Schema, value: Any, place: str = "") -> dict[str, str]:
        """Return JSON as it would be typed into the fields of a schema."""
        schema, _ = self.resolve(schema)
        if value is None:
            return {}
        kind = self.kind(schema) if place else "group"
        match kind:
            case "group":
                return self._typed_members(schema, value, place)
            case "variants":
                tag, chosen = self._chosen_alternative(schema, value)
                return {f"{place}.{SHOW}": tag, **self._typed_members(self.resolve(chosen)[0], value, place)}
            case "rows":
                rows = [self.type_in(schema["items"], one, f"{place}.{i}") for i, one in enumerate(value)]
                return {f"{place}.{COUNT}": str(len(rows)), **{name: text for row in rows for name, text in row.items()}}
            case "lines" | "choices" | "references":
                return {place: "\n".join(plain_text(one) for one in value)}
            case "pairs":
                return {place: "\n".join(f"{name} = {text}" for name, text in value.items())}
            case "flag":
                return {f"{place}.{FLAG}": "1", **({place: "on"} if value else {})}
            case "time":
                at = datetime.fromisoformat(str(value).replace("Z", "+00:00")).astimezone(self.zone)
                return {place: at.replace(tzinfo=None).isoformat()}
            case "json":
                return {place: json.dumps(value, ensure_ascii=False)}
        return {place: plain_text(value)}

    def _typed_members(self, schema: Schema, value: Shown, place: str) -> dict[str, str]:
        known = schema.get("properties", {})
        parts = {name: (known[name], part) for name, part in value.items() if name in known}
        found: dict[str, str] = {}
        for name, (form, part) in parts.items():
            found |= self.type_in(form, part, f"{place}.{name}" if place else name)
        return found

    def _chosen_alternative(self, schema: Schema, value: Shown) -> tuple[str, Schema]:
        """Return the alternative that a value is of."""
        tagged = self.alternatives(schema)
        if "discriminator" in schema:
            tag = str(value[schema["discriminator"]["propertyName"]])
            return tag, tagged[tag]
        for tag, one in tagged.items():
            known = one["properties"]
            tells = all(value.get(name, part["const"]) == part["const"] for name, part in known.items() if "const" in part)
            if tells and value.keys() <= known.keys() and set(one.get("required", ())) <= value.keys():
                return tag, one
        return next(iter(tagged.items()))

    def _object_fields(self, place: str, schema: Schema, typed: Typed, owner: Aggregate | None) -> tuple[FormField, ...]:
        required = set(schema.get("required", ()))
        names = sorted(schema["properties"], key=lambda name: name not in required)
        return tuple(
            self._field(name, f"{place}.{name}", schema["properties"][name], name in required, typed, owner)
            for name in names
        )

    def alternatives(self, schema: Schema) -> dict[str, Schema]:
        """Return the alternatives of a schema by what chooses them; none where it has none that can be told apart."""
        if "discriminator" in schema:
            return {tag: {"$ref": ref} for tag, ref in schema["discriminator"]["mapping"].items()}
        listed: list[Schema] = schema.get("oneOf") or schema.get("anyOf") or []
        options = [self.resolve(one)[0] for one in listed]
        if options and all(one.get("type") == "object" and one.get("properties") for one in options):
            return {str(one.get("title", number)): one for number, one in enumerate(options)}
        return {}

    def _alternative_fields(
        self, shown: FormField, tagged: Mapping[str, Schema], typed: Typed, owner: Aggregate | None
    ) -> FormField:
        options = tuple(Option(tag, words_of(tag)) for tag in tagged)
        chosen = typed.get(f"{shown.place}.{SHOW}", "")
        if chosen not in tagged and not shown.required:
            return replace(shown, kind="variants", options=options, value="")
        chosen = chosen if chosen in tagged else next(iter(tagged))
        schema, _ = self.resolve(tagged[chosen])
        parts = self._object_fields(shown.place, schema, typed, owner)
        parts = tuple(replace(part, kind="constant", value=chosen) if is_tag(part, chosen) else part for part in parts)
        return replace(shown, kind="variants", options=options, value=chosen, children=parts)


def is_tag(part: FormField, chosen: str) -> bool:
    """Return whether a field says which alternative it is in."""
    return part.value == chosen or chosen in {option.value for option in part.options}


def options_in(schema: Schema) -> tuple[Option, ...]:
    """Return the values that a schema allows as options."""
    return tuple(Option(str(one), words_of(one)) for one in schema["enum"])


def label_of(name: str) -> str:
    """Return the label of a field."""
    stem = plural(name.removesuffix("_ids")) if name.endswith("_ids") else name.removesuffix("_id")
    if name == "subject":  # of a token: samples are `subject_id`
        return "Subject"
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


def plain_text(value: object) -> str:
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
    """Return how many rows a list has: as many as its form says, or as something was typed into."""
    if ROW_NUMBER.fullmatch(said := typed.get(f"{place}.{COUNT}", "")):
        return int(said)
    pattern = re.compile(rf"{re.escape(place)}\.({ROW_NUMBER.pattern})(?:\.|$)")
    numbers = [int(found[1]) for name in typed if (found := pattern.match(name))]
    return max(numbers, default=-1) + 1


def refuse_too_many_rows(typed: Typed) -> None:
    """Raise where a form would have more rows, in all its lists, than one page shows."""
    rows: dict[str, int] = {}
    for name, text in typed.items():
        parts = name.split(".", DEEPEST)[:DEEPEST]
        for depth, part in enumerate(parts):
            number = text if part == COUNT else part
            if depth and number.isascii() and number.isdigit():
                place, count = ".".join(parts[:depth]), int(number[:9]) + (part != COUNT)
                rows[place] = max(rows.get(place, 0), count)
    if sum(rows.values()) > MOST_ROWS:
        raise RequestValidationError.at("body", msg=f"A form has {MOST_ROWS} rows at most", type="too_long")


def change_rows(typed: dict[str, str]) -> None:
    """Apply the button of a form that adds or removes a row."""
    refuse_too_many_rows(typed)
    if place := typed.pop(ADD, ""):
        typed[f"{place}.{COUNT}"] = str(row_count(place, typed) + 1)
    if removed := typed.pop(REMOVE, ""):
        place, _, number = removed.rpartition(".")
        rows = [{n: v for n, v in typed.items() if belongs(n, f"{place}.{i}")} for i in range(row_count(place, typed))]
        for row in rows:
            for name in row:
                del typed[name]
        kept = [row for i, row in enumerate(rows) if str(i) != number]
        for new, row in enumerate(kept):
            for name, value in row.items():
                typed[
                    f"{place}.{new}{name[len(place) + 1 :].partition('.')[1]}{name[len(place) + 1 :].partition('.')[2]}"
                ] = value
        typed[f"{place}.{COUNT}"] = str(len(kept))


def belongs(name: str, place: str) -> bool:
    """Return whether a field is the one at a place or inside it."""
    return name == place or name.startswith(f"{place}.")


class FieldFaults(ValueError):
    """What was typed into these fields cannot be read."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{place}: {text}" for place, text in faults.items()))
        self.faults = faults


def read_fields(fields: Sequence[FormField], typed: Typed, zone: ZoneInfo) -> dict[str, object]:
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
            case "new_id":
                return text or shown.value
            case "flag":
                return text != "" if f"{shown.place}.{FLAG}" in typed or text else MISSING
            case "group" | "variants":
                parts = {part.name: read_field(part, typed, zone, faults) for part in shown.children}
                inner = {name: value for name, value in parts.items() if value is not MISSING}
                given = any(inner.get(part.name, "") not in EMPTY for part in shown.children if part.kind not in OWN_KINDS)
                return inner if given or shown.required or shown.value else MISSING
            case "rows":
                rows = [read_field(row, typed, zone, faults) for row in shown.children]
                kept = [{} if row is MISSING else row for row in rows]
                return kept if kept or shown.required else MISSING
            case "references" | "choices" | "lines":
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                read = number_in if shown.numeric else declared_value
                values = [read(line, shown) for line in lines]
                return values if values or shown.required else MISSING
        if not text.strip():
            if shown.clearable and f"{shown.place}.{GIVEN}" in typed:
                return None
            return "" if shown.required and shown.kind in ("text", "area") else MISSING
        match shown.kind:
            case "choice":
                return declared_value(text, shown)
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


def declared_value(text: str, shown: FormField) -> object:
    """Return the value that an option stands for; a text that is none of them stays what it is, and is refused as such."""
    return next((value for value in shown.values if str(value) == text), text)


def instant_in(text: str, zone: ZoneInfo) -> str:
    """Return a time of the facility's clock in UTC."""
    at = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).isoformat().replace("+00:00", "Z")


def errors_by_place(problem: Shown, fields: Sequence[FormField]) -> dict[str, list[str]]:
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
