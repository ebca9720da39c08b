"""What a schema asks for, in a few words; longer forms have a name, and a section of their own on the page."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from baton.domain.shared.text import PERSONAL_MARK, TRIMMED, VISIBLE

Schema = Mapping[str, Any]
REF = "{model}"
INLINE_CHOICES = 4
"""The most choices that are listed in place; longer lists have a name."""
FIELD_HEAD = ("field", "is", "left out", "means")


class Forms:
    """The named forms of one page: described once, and linked to from every place that uses them."""

    def __init__(self, definitions: Mapping[str, Schema], given: Iterable[Schema]) -> None:
        self._definitions = definitions
        self._mentioned_names: list[str] = []
        self._given = set(self._reachable_names(given))

    def words(self, schema: Schema) -> str:
        """Return what a value must be."""
        match schema:
            case {"$ref": name}:
                return self._reference(name)
            case {"anyOf": options} | {"oneOf": options}:
                return " or ".join(dict.fromkeys(self.words(option) for option in options))
            case {"const": value}:
                return code(value)
            case {"enum": values}:
                return " or ".join(map(code, values))
            case {"type": "array"}:
                return f"list{bounds(schema, 'Items')} of {self.words(schema.get('items', {}))}"
            case {"type": "object"}:
                return self._object(schema)
            case {"type": kind}:
                return scalar(kind, schema)
        return "any JSON"

    def fields(self, schema: Schema, without: Iterable[str] = ()) -> Iterator[tuple[str, str, str, str]]:
        """Each field: its name, what it must be, what holds when it is left out, and what it means."""
        required = schema.get("required", ())
        for name, form in schema.get("properties", {}).items():
            if name not in without:
                left = "required" if name in required else left_out(form)
                yield name, self.words(form), left, paragraph(form.get("description", ""))

    def field_list(self, schema: Schema, without: Iterable[str] = ()) -> str:
        """Return the fields in one line."""
        return ", ".join(f"`{name}` {words}" for name, words, *_ in self.fields(schema, without))

    def resolve(self, schema: Schema) -> Schema:
        """Return the schema that a reference names, or the schema itself."""
        return self._definitions[schema["$ref"]] if "$ref" in schema else schema

    def section(self) -> Iterator[str]:
        """The forms that were mentioned, and those that they mention."""
        for name in self._mentioned_names:  # grows while they are described
            form = self._definitions[name]
            yield f"### {title(name)}"
            if description := form.get("description"):
                yield paragraph(description)
            if not form.get("properties"):
                yield f"Is {self.words(form)}."
            elif name in self._given:
                yield table(FIELD_HEAD, self.fields(form))
            else:
                yield f"Has {self.field_list(form)}."

    def _reference(self, name: str) -> str:
        form = self._definitions[name]
        if not form or len(form.get("enum", range(INLINE_CHOICES + 1))) <= INLINE_CHOICES:
            return self.words(form)
        if name not in self._mentioned_names:
            self._mentioned_names.append(name)
        return f"[{title(name)}](#{anchor(name)})"

    def _reachable_names(self, schemas: Iterable[Schema]) -> Iterator[str]:
        """Yield the names of the forms that these schemas refer to: what is given rather than answered with."""
        pending: list[Any] = list(schemas)
        seen: set[str] = set()
        while pending:
            match pending.pop():
                case {"$ref": name} if name not in seen:
                    seen.add(name)
                    pending.append(self._definitions[name])
                    yield name
                case dict() as parts:
                    pending += parts.values()
                case list() as parts:
                    pending += parts

    def _object(self, schema: Schema) -> str:
        match schema.get("additionalProperties"):
            case {**form} if form:
                return f"object{bounds(schema, 'Properties')} of {self.words(form)}"
        return f"object{bounds(schema, 'Properties')}"


def scalar(kind: str, schema: Schema) -> str:
    """A text, a number or a truth."""
    match kind, schema.get("format"):
        case "string", "uuid":
            return "id"
        case "string", "date-time":
            return "time"
        case "string", _:
            return f"{'free text' if schema.get(PERSONAL_MARK) else 'text'}{bounds(schema, 'Length')}{pattern(schema)}"
        case "null", _:
            return "null"
        case _:
            return f"{kind}{numbers(schema)}"


def bounds(schema: Schema, what: str) -> str:
    """How long it may be, or how many there may be."""
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    match least, most:
        case None, None:
            return ""
        case _, None:
            return f" ({least} or more)"
    return f" ({least})" if least == most else f" ({least or 0} to {most})"


def pattern(schema: Schema) -> str:
    """What it must look like, unless it only must not be blank."""
    return f" like `{schema['pattern']}`" if schema.get("pattern", VISIBLE) not in (VISIBLE, TRIMMED) else ""


def numbers(schema: Schema) -> str:
    """Between which numbers it must be."""
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[name]}" for name, sign in signs.items() if name in schema]
    return f" {' and '.join(limits)}" if limits else ""


def left_out(form: Schema) -> str:
    """What holds when a field is not given."""
    return code(form["default"]) if "default" in form else "may be"


def code(value: Any) -> str:
    """A value as it is written."""
    return f"`{value if isinstance(value, str) and value else json.dumps(value)}`"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table, or nothing where it would have no rows."""
    head, lines = list(head), [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join((f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines)) if lines else ""


def paragraph(text: str) -> str:
    """A docstring without its line breaks; its paragraphs stay."""
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def title(name: str) -> str:
    """The name of a form as it is shown."""
    return name.replace("-Input", " (given)").replace("-Output", " (answered)")


def anchor(name: str) -> str:
    """Where a heading of this name is found on its page."""
    return title(name).lower().replace("(", "").replace(")", "").replace(" ", "-")
