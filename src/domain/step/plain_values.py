"""Values as rows and failures hold them: plain JSON data that stays small."""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from baton.domain.shared.text import shorten

MAX_ARRAY_NUMBERS = 1000  # Numbers of an array that a row holds; of a larger one it holds the shape.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # Characters that no row can hold.


def plain(value: object) -> Any:
    """Return a value as a row can hold it: no NaN, no NUL, of a large array only the shape, and text for what is no JSON."""
    match value:
        case None | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return UNSTORABLE.sub("\ufffd", value)
        case list() | tuple():
            if len(list(islice(leaves(value), MAX_ARRAY_NUMBERS + 1))) > MAX_ARRAY_NUMBERS:
                return {"kind": "Array", "shape": shape(value)}
            return [plain(item) for item in value]
        case Mapping():
            return {plain(str(key)): plain(item) for key, item in value.items()}
    return plain(str(value))


def bounded_value(value: object) -> Any:
    """Return a plain value as facts hold it: of an array the shape, of a text the beginning."""
    if isinstance(value, list):
        return {"kind": "Array", "shape": shape(value)}
    return shorten(value) if isinstance(value, str) else value


def brief(value: object) -> str:
    """Return a plain value in the words of a failure."""
    return shorten(repr(bounded_value(value)))


def shape(value: object) -> list[int]:
    """Return the lengths of a list and of the lists in it."""
    lengths: list[int] = []
    while isinstance(value, list | tuple):
        lengths.append(len(value))
        value = value[0] if value else None
    return lengths


def leaves(value: object) -> Iterator[Any]:
    """Yield the items of a list and of the lists in it."""
    if not isinstance(value, list | tuple) or not value:
        yield value
        return
    for item in value:
        yield from leaves(item)
