"""Plain data as YAML: block style, short values in one line, the same text for the same data."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

WIDTH = 110  # characters of a value that is written in one line
PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_.()/+-]*(?: [A-Za-z0-9_.()/+-]+)*")
WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})  # Those of YAML 1.1 too, for other readers.


def yaml_text(data: Mapping[str, object], things: Collection[str] = ()) -> str:
    """Return an object as a YAML document; objects in the lists of these names stand in lines of their own."""
    return "".join(f"{line}\n" for line in object_lines(data, things)) if data else "{}\n"


def object_lines(data: Mapping[str, object], things: Collection[str]) -> Iterator[str]:
    """Yield the lines of an object."""
    for name, value in data.items():
        head = f"{scalar(name)}:"
        if name in things and isinstance(value, list | tuple) and value:
            yield head
            yield from list_lines(value, things, apart=True)
        elif len(line := one_line(value)) + len(head) < WIDTH or not (value and isinstance(value, Mapping | list | tuple)):
            yield f"{head} {line}"
        elif isinstance(value, Mapping):
            yield head
            yield from (f"  {line}" for line in object_lines(value, things))
        else:
            yield head
            yield from list_lines(value, things)


def list_lines(data: Sequence[object], things: Collection[str], apart: bool = False) -> Iterator[str]:
    """Yield the lines of a list; an object begins in the line of its dash."""
    for item in data:
        if not (apart and isinstance(item, Mapping)) and len(line := one_line(item)) < WIDTH:
            yield f"- {line}"
            continue
        lines = inner_lines(item, things)
        yield f"- {next(lines)}"
        yield from (f"  {line}" for line in lines)


def inner_lines(value: object, things: Collection[str]) -> Iterator[str]:
    """Yield the lines of an item of a list."""
    if isinstance(value, Mapping) and value:
        yield from object_lines(value, things)
    elif isinstance(value, list | tuple) and value:
        yield from list_lines(value, things)
    else:
        yield one_line(value)


def one_line(value: object) -> str:
    """Return a value in flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(name)}: {one_line(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(one_line, value)) + "]"
    return scalar(value)


def scalar(value: object) -> str:
    """Return a scalar; a text stands plain only where no reader can take it for something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    if PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    return '"' + "".join(map(quoted_character, value)) + '"'


def quoted_character(character: str) -> str:
    """Return a character as it stands in a quoted text."""
    if character in '"\\':
        return f"\\{character}"
    if character == " " or character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
