"""What leaves the facility in a prompt names nobody: people known here, addresses and telephone numbers are blanked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.access.actor import ActorProfile

BLANKED = "[someone]"
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
TELEPHONE = re.compile(r"\+\d[\d ()/-]{6,}\d")
SHORTEST_NAME = 3
"""Letters of a part of a name that is looked for by itself."""


def people_in(profiles: Iterable[ActorProfile]) -> re.Pattern[str] | None:
    """What finds these people in a text: by full name, by a part of it, by their numbers and identifiers.

    A part counts as a name only where it is written as one: "mark" is no person.
    """
    forms: dict[str, str] = {}
    for profile in profiles:
        parts = (part for part in re.split(r"[\s,.]+", profile.name) if len(part) >= SHORTEST_NAME and part[0].isupper())
        forms |= {form: re.escape(form) for part in parts for form in (part, part.upper())}
        own = (profile.name, profile.email, profile.phone, profile.external_id)
        forms |= {word: f"(?i:{re.escape(word)})" for word in own if word}
    if not forms:
        return None
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile(r"(?<!\w)(" + "|".join(forms[form] for form in longest_first) + r")(?!\w)")


def discreet(value: Any, people: re.Pattern[str] | None) -> Any:
    """Plain data with everybody in its texts blanked; keys stay as they are."""
    match value:
        case str():
            known = value if people is None else people.sub(BLANKED, value)
            return TELEPHONE.sub(BLANKED, ADDRESS.sub(BLANKED, known))
        case Mapping():
            return {key: discreet(item, people) for key, item in value.items()}
        case Sequence():
            return [discreet(item, people) for item in value]
    return value
