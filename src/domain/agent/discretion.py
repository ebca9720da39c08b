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
    """What finds these people in a text: by full name, by a part of it, by their numbers and identifiers."""
    words: set[str] = set()
    for profile in profiles:
        words.add(profile.name)
        words |= {part for part in re.split(r"[\s,.]+", profile.name) if len(part) >= SHORTEST_NAME and part[0].isupper()}
        words |= {own for own in (profile.email, profile.phone, profile.external_id) if own}
    if not words:
        return None
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return re.compile(r"(?<!\w)(" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")


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
