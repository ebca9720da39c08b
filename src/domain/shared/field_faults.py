"""What is wrong with a field, in words that a person understands, by the rule of its model that is broken."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from baton.domain.shared.naming import plural

MOST_CHOICES = 8  # that a sentence names; of more it names those that are like what was given
CHOICE = re.compile(r"'([^']*)'")
Limits = Mapping[str, Any]
EXPECTED = {
    "string": "A text is expected",
    "int": "A whole number is expected",
    "float": "A number is expected",
    "decimal": "A number is expected",
    "bool": "True or false is expected",
    "uuid": "An id is expected",
    "datetime": "A time with date and offset is expected, such as 2026-10-06T08:00:00+02:00",
    "timezone": "A time needs its offset, such as 2026-10-06T08:00:00+02:00",
    "list": "A list is expected",
    "tuple": "A list is expected",
    "set": "A list is expected",
    "frozen": "A list is expected",
    "dict": "An object is expected",
    "model": "An object is expected",
}
"""What is expected, by the first word of those rules that are about the type of a value."""
TYPE_RULES = re.compile("_(type|parsing|from_float|set_type|aware|from_date_parsing|attributes_type)$")
BOUNDS: Mapping[str, Callable[[Limits], str]] = {
    "greater_than": lambda limits: f"It must be more than {limits['gt']}",
    "greater_than_equal": lambda limits: f"It must be at least {limits['ge']}",
    "less_than": lambda limits: f"It must be less than {limits['lt']}",
    "less_than_equal": lambda limits: f"It must be at most {limits['le']}",
    "string_too_long": lambda limits: f"It has more than {limits['max_length']} characters",
    "too_short": lambda limits: f"It needs at least {limits['min_length']} entries",
    "too_long": lambda limits: f"It takes at most {limits['max_length']} entries",
    "finite_number": lambda limits: "A finite number is expected",
}


def fault_text(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a field by a fault that pydantic found, as a sentence without its point. It never repeats
    what was sent."""
    rule, limits = fault["type"], fault.get("ctx") or {}
    name = next((part for part in reversed(fault["loc"]) if isinstance(part, str)), "")
    if rule == "missing" or (rule == "string_too_short" and limits["min_length"] == 1):
        return needed_text(name)
    if rule == "extra_forbidden":
        return "There is no such field"
    if rule == "string_too_short":
        return f"It needs at least {limits['min_length']} characters"
    if rule in ("enum", "literal_error", "union_tag_invalid"):
        return choice_text(
            limits.get("expected") or limits["expected_tags"], fault.get("input"), limits.get("discriminator")
        )
    if rule in BOUNDS:
        return BOUNDS[rule](limits)
    if (expected := EXPECTED.get(rule.partition("_")[0])) is not None and TYPE_RULES.search(rule):
        return expected
    return str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip(".")


def needed_text(name: str) -> str:
    """Return that a field is needed, by its name in words: `reason` -> `A reason is needed`."""
    thing = plural(name.removesuffix("_ids")) if name.endswith("_ids") else name.removesuffix("_id")
    words = thing.replace("_", " ").strip() or "value"
    if words.endswith("s") and not words.endswith("ss"):
        return f"{words[0].upper()}{words[1:]} are needed"
    return f"{'An' if words[0] in 'aeiou' else 'A'} {words} is needed"


def choice_text(expected: str, given: object, discriminator: str | None) -> str:
    """Return which choices a field has: all of a few, and of many those that are like what was given."""
    choices = CHOICE.findall(expected)
    if isinstance(given, Mapping):
        given = given.get((discriminator or "").strip("'"))
    like = get_close_matches(given, choices, n=3) if isinstance(given, str) else []
    if len(choices) <= MOST_CHOICES:
        meant = f"; did you mean {like[0]}" if like else ""
        return f"It must be {' or '.join(filter(None, (', '.join(choices[:-1]), choices[-1])))}{meant}"
    return f"It is none of the {len(choices)} choices" + (f"; did you mean {' or '.join(like)}" if like else "")
