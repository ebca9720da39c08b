"""Structural subset: whether a method's parameter schema stays within that of its capability, keyword by keyword up to the
first violation. A keyword that only one side has is none, so a method may leave a bound out; what it may not do is widen
one, invent a parameter, drop a mandatory one or open what is closed."""

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from baton.domain.shared.schema import CLOSING, Schema, types_of, unit_of
from baton.domain.shared.text import shorten

LOWER_BOUNDS = ("minimum", "minLength", "minItems")
UPPER_BOUNDS = ("maximum", "maxLength", "maxItems")


@dataclass(frozen=True)
class Violation:
    """Where the inner schema leaves the outer one, by which rule, and what to say about it."""

    rule: str
    path: str
    saying: str


def first_violation(inner: Schema | None, outer: Schema | None) -> Violation | None:
    """The first place where the inner schema leaves the outer one; none declared, or `{}` outside, constrains nothing."""
    if inner is None or not outer:
        return None
    return next(_violations(inner, outer, "$"), None)


def _violations(inner: Schema, outer: Schema, path: str) -> Iterator[Violation]:
    both = inner.keys() & outer.keys()
    if "type" in both and types_of(inner) != types_of(outer):
        yield Violation("1", f"{path}.type", f"the type must be {' or '.join(sorted(types_of(outer)))}")
    offered = outer.get("properties", {})
    for name, level in inner.get("properties", {}).items():
        place = f"{path}.properties.{name}"
        if name in offered:
            yield from _violations(level, offered[name], place)
        else:
            yield Violation("2", place, f"there is no parameter {name}")
    yield from _required_violations(inner, outer, path)
    if "enum" in both:
        options = set(map(_identity, outer["enum"]))
        for value in inner["enum"]:
            if _identity(value) not in options:
                yield Violation("4", f"{path}.enum", f"{_quoted_value(value)} is not among the values")
    for keyword in LOWER_BOUNDS:
        if keyword in both and inner[keyword] < outer[keyword]:
            yield Violation("5", f"{path}.{keyword}", f"{keyword} is {outer[keyword]}")
    for keyword in UPPER_BOUNDS:
        if keyword in both and inner[keyword] > outer[keyword]:
            yield Violation("6", f"{path}.{keyword}", f"{keyword} is {outer[keyword]}")
    if "pattern" in both and inner["pattern"] != outer["pattern"]:
        yield Violation("7", f"{path}.pattern", f"the pattern is {_quoted_value(outer['pattern'])}")
    if "unit" in both and unit_of(inner) != unit_of(outer):
        yield Violation("8", f"{path}.unit", f"the unit is {outer['unit']['code']} of {outer['unit']['system']}")
    for keyword in sorted(CLOSING):
        if outer.get(keyword) is False and inner.get(keyword) is not False:
            yield Violation("9", f"{path}.{keyword}", f"{keyword} is false")
    if "items" in both:
        yield from _violations(inner["items"], outer["items"], f"{path}.items")


def _required_violations(inner: Schema, outer: Schema, path: str) -> Iterator[Violation]:
    offered, kept = outer.get("properties", {}), frozenset(inner.get("required", ()))
    for name in inner.get("required", ()):
        if name not in offered:
            yield Violation("3", f"{path}.required", f"there is no parameter {name} to require")
    for name in outer.get("required", ()):
        if name not in kept:
            yield Violation("3b", f"{path}.required", f"{name} is mandatory")


def _identity(value: object) -> Hashable:
    """What is the same for equal JSON values and for no others; true is not 1, and 1 is 1.0."""
    match value:
        case bool():
            return bool, value
        case dict():
            return dict, frozenset((key, _identity(item)) for key, item in value.items())
        case list():
            return list, tuple(map(_identity, value))
        case _:
            plain: Hashable = value
            return plain


def _quoted_value(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False))
