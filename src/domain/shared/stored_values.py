"""Stored values: how a patch changes them, and which of them were written in another unit than the schema has now.

A value is in the unit of the schema revision of its time. Where a schema has changed a unit since, the number under it
means something else, and must be set again before it is used.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from baton.domain.shared.schema import ELEMENT

Units = Mapping[str, tuple[str, str]]  # The declared units of one schema: dotted property path -> (system, code).


def merge_patch(target: Any, patch: Any) -> Any:
    """Return the target after an RFC 7396 merge patch: a value replaces, null deletes, objects merge recursively."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def units_changed(stored: Mapping[str, Any], written: Units, now: Units) -> frozenset[str]:
    """Return the stored keys, as dotted paths, that have another unit now than the one they were written in.

    An array is set as a whole, so it stands for what is in it.
    """
    return frozenset(path.partition(f".{ELEMENT}")[0] for path in stored_paths(stored) if written.get(path) != now.get(path))


def stored_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the dotted path of everything in stored values, as schemas spell it."""
    match value:
        case Mapping():
            for key, item in value.items():
                yield ".".join((*path, key))
                yield from stored_paths(item, (*path, key))
        case list() | tuple():
            for item in value:
                yield ".".join((*path, ELEMENT))
                yield from stored_paths(item, (*path, ELEMENT))


def paths_set_by(patch: Mapping[str, Any], paths: Iterable[str]) -> frozenset[str]:
    """Return which of these paths a patch sets or nulls, themselves or with what contains them."""
    ends = [end for end, value in patched_paths(patch) if not isinstance(value, Mapping)]
    return frozenset(path for path in paths if any(is_within(path, end) for end in ends))


def patched_paths(patch: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every dotted path a patch mentions, with what it puts there."""
    for key, value in patch.items():
        yield ".".join((*path, key)), value
        if isinstance(value, Mapping):
            yield from patched_paths(value, (*path, key))


def is_within(path: str, outer: str) -> bool:
    """Return whether a path is the outer one or lies in it."""
    return path == outer or path.startswith(f"{outer}.")
