"""Stored values: how a patch changes them, and which of them were written in another unit than the schema has now: a value
is in the unit of the schema of its time. Where that has changed, the number means something else and must be set again."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.schema import ELEMENT, Schema, check_values, declared_units, is_closed

Units = Mapping[str, tuple[str, str]]  # The declared units of one schema: dotted property path -> (system, code).


def merge_patch(target: object, patch: object) -> Any:
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


def units_changed(stored: Mapping[str, object], written: Units, now: Units) -> frozenset[str]:
    """Return the stored keys, as dotted paths, whose unit has changed; an array is set, and so named, as a whole."""
    return frozenset(path.partition(f".{ELEMENT}")[0] for path in stored_paths(stored) if written.get(path) != now.get(path))


def stored_paths(value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
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


def paths_set_by(patch: Mapping[str, object], paths: Iterable[str]) -> frozenset[str]:
    """Return which of these paths a patch sets or nulls, themselves or with what contains them."""
    ends = [end for end, value in patched_paths(patch) if not isinstance(value, Mapping)]
    return frozenset(path for path in paths if any(is_within(path, end) for end in ends))


def patched_paths(patch: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """Yield every dotted path a patch mentions, with what it puts there."""
    for key, value in patch.items():
        yield ".".join((*path, key)), value
        if isinstance(value, Mapping):
            yield from patched_paths(value, (*path, key))


def is_within(path: str, outer: str) -> bool:
    """Return whether a path is the outer one or lies in it."""
    return path == outer or path.startswith(f"{outer}.")


def refuse_stale(restated: frozenset[str], patch: Mapping[str, object], refusal: type[Refusal]) -> None:
    """Refuse a patch that neither sets again nor nulls a stored key whose unit changed meanwhile."""
    if stale := sorted(restated - paths_set_by(patch, restated)):
        detail = f"The unit of {', '.join(stale)} changed since it was stored; set it again in the new unit or null it."
        raise refusal(detail, reason="unit_changed", facts={"keys": stale})


def merged_parameters(
    stored: Mapping[str, object], patch: Mapping[str, object], written: Units, schema: Schema | None, refusal: type[Refusal]
) -> tuple[dict[str, Any], bool]:
    """Return stored parameters after a patch, and whether anything changed, even if only the unit of a number.

    `written` are the units of the revision the parameters were stored under; `schema` is the one that holds now.
    """
    restated = stored_in_other_units(stored, written, schema)
    refuse_stale(restated, patch, refusal)
    merged: dict[str, object] = merge_patch(stored, patch)
    check_values(schema, merged, refusal)
    return merged, bool(restated) or canonical_json(merged) != canonical_json(stored)


def stored_in_other_units(stored: Mapping[str, object], written: Units, schema: Schema | None) -> frozenset[str]:
    """Return the stored keys whose unit in the schema differs from the one they were written in.

    Keys that the schema does not admit any more are refused by the check of values instead.
    """
    if schema is None:
        return frozenset()
    names, changed = schema.get("properties", {}), units_changed(stored, written, declared_units(schema))
    return frozenset(path for path in changed if not is_closed(schema) or any(is_within(path, name) for name in names))
