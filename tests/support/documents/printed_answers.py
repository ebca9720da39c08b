"""Answers as a reader sees them: JSON laid out to fit the page, and `...` for what is left out."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

LEFT_OUT = "..."
WIDTH = 120
EVENT_DATA = "data: "


class MisfitError(Exception):
    """An answer does not have the parts that a document shows of it."""


@dataclass(frozen=True)
class TextLine:
    """A line that is not JSON."""

    line: str


@dataclass(frozen=True)
class JsonLine:
    """A JSON value, alone or behind the `data:` of an event stream."""

    value: Any
    prefix: str = ""


Part = TextLine | JsonLine
Alike = Callable[[str, str], bool]
"""Whether two texts are the same but for what differs between two runs."""


def parts_of(answer: str) -> list[Part]:
    """An answer in its parts; JSON may go over several lines."""
    lines, parts = answer.splitlines(), []
    while lines:
        parts.append(part_at(lines))
    return parts


def part_at(lines: list[str]) -> Part:
    """The part that begins with the first of these lines, which is taken off them."""
    prefix = EVENT_DATA if lines[0].startswith(EVENT_DATA) else ""
    if lines[0].removeprefix(prefix)[:1] in ("{", "["):
        for count in range(1, 2 if prefix else len(lines) + 1):
            try:
                value = json.loads(mark_omissions("\n".join(lines[:count]).removeprefix(prefix)))
            except ValueError:
                continue
            del lines[:count]
            return JsonLine(value, prefix)
    return TextLine(lines.pop(0))


def mark_omissions(text: str) -> str:
    """JSON in which what is left out is marked in a way that JSON allows."""
    written, opened, quoted, at = [], [], False, 0
    while at < len(text):
        sign = text[at]
        if not quoted and text.startswith(LEFT_OUT, at):
            written.append('"...":"..."' if opened[-1:] == ["{"] else '"..."')
            at += len(LEFT_OUT)
            continue
        if sign == '"':
            quoted = not quoted
        elif sign == "\\" and quoted:
            written.append(sign)
            at += 1
            sign = text[at : at + 1]
        elif not quoted and sign in "{[":
            opened.append(sign)
        elif not quoted and sign in "}]" and opened:
            opened.pop()
        written.append(sign)
        at += 1
    return "".join(written)


def fit_answer(document: str, answer: str, are_alike: Alike) -> list[Part]:
    """Return the parts of an answer that a document shows; raise where it lacks one, or has more and nothing is left out."""
    return list(fit_parts(parts_of(document), parts_of(answer), are_alike))


def fit_parts(shapes: Sequence[Part], parts: Sequence[Part], are_alike: Alike) -> Iterator[Part]:
    gap, left = False, list(parts)
    for shape in shapes:
        if shape == TextLine(LEFT_OUT):
            gap = True
            yield shape
            continue
        while True:
            if not left:
                raise MisfitError(f"nothing is like {one_line(shape)}")
            part = left.pop(0)
            try:
                found = fit_part(shape, part, are_alike)
            except MisfitError:
                found = None
            if found is not None and (not gap or are_alike(one_line(shape), one_line(found))):
                break
            if not gap:
                raise MisfitError(f"{one_line(part)} is not like {one_line(shape)}")
        gap = False
        yield found
    if left and not gap:
        raise MisfitError(f"there is more: {one_line(left[0])}")


def fit_part(shape: Part, part: Part, are_alike: Alike) -> Part:
    match shape, part:
        case TextLine(), TextLine():
            return part
        case JsonLine(prefix=prefix), JsonLine() if part.prefix == prefix:
            return replace(part, value=prune_value(shape.value, part.value, are_alike))
    raise MisfitError(f"{one_line(part)} is not like {one_line(shape)}")


def prune_value(shape: Any, value: Any, are_alike: Alike) -> Any:
    """A value with no more in it than a shape has."""
    match shape, value:
        case dict(), dict():
            if missing := [name for name in shape if name != LEFT_OUT and name not in value]:
                raise MisfitError(f"there is no {missing[0]}")
            if LEFT_OUT not in shape and (more := [name for name in value if name not in shape]):
                raise MisfitError(f"there is {more[0]} too")
            return {
                name: prune_value(part, value[name], are_alike) if name != LEFT_OUT else part for name, part in shape.items()
            }
        case list(), list():
            shapes = [TextLine(LEFT_OUT) if part == LEFT_OUT else JsonLine(part) for part in shape]
            found = fit_parts(shapes, [JsonLine(part) for part in value], are_alike)
            return [part.value if isinstance(part, JsonLine) else LEFT_OUT for part in found]
        case str(), str() if shape.endswith(LEFT_OUT) and shape != LEFT_OUT and len(value) >= len(shape):
            return value[: len(shape) - len(LEFT_OUT)] + LEFT_OUT
        case _:
            return value


def one_line(part: Part) -> str:
    """A part in one line, to be compared."""
    match part:
        case TextLine():
            return part.line.rstrip()
        case JsonLine():
            return part.prefix + one_line_json(part.value)


def one_line_json(value: Any) -> str:
    """JSON in one line, with what is left out as it is shown."""
    match value:
        case dict():
            return "{" + ", ".join(member_text(name, one_line_json(part)) for name, part in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(one_line_json, value)) + "]"
        case "...":
            return LEFT_OUT
        case _:
            return json.dumps(value, ensure_ascii=False)


def member_text(name: str, text: str) -> str:
    """A member of an object; what is left out has no name."""
    return text if name == LEFT_OUT else f"{json.dumps(name)}: {text}"


def page_lines(parts: Sequence[Part]) -> list[str]:
    """Return the lines of an answer as a document shows them."""
    lines = []
    for part in parts:
        match part:
            case JsonLine(prefix=""):
                lines += json_lines(part.value)
            case _:
                lines.append(one_line(part))
    return lines


def json_lines(value: Any, indent: int = 0) -> list[str]:
    """Return JSON in as few lines as fit the page."""
    whole = one_line_json(value)
    if indent + len(whole) < WIDTH or not value or not isinstance(value, dict | list):
        return [whole]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = [opening]
    for name, part, behind in members(value):
        written = [one_line_json(part)]
        if indent + len(member_text(name, written[0])) > WIDTH - 2:
            written = json_lines(part, indent + 1)
        written[-1] += behind
        first, rest = member_text(name, written[0]) if isinstance(value, dict) else written[0], written[1:]
        if lines[-1] == opening:
            lines[-1] += first
        elif indent + len(lines[-1]) + 1 + len(first) <= WIDTH and not rest:
            lines[-1] += " " + first
        else:
            lines.append(" " + first)
        lines += [" " + line for line in rest]
    lines[-1] += closing
    return lines


def members(value: Any) -> Iterator[tuple[str, Any, str]]:
    """What is in an object or a list, and what stands behind it."""
    inside = list(value.items()) if isinstance(value, dict) else [("", part) for part in value]
    for number, (name, part) in enumerate(inside, 1):
        yield name, part, "," if number < len(inside) else ""
