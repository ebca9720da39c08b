"""Parameters: declared by capabilities and methods, given by plans and runs.

A stored number is in the unit of the schema revision it was written under. Where the unit has changed since, the number must
be set again before it is used; nothing is ever converted.
"""

from collections.abc import Mapping
from typing import Any

from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.schema import Schema, changed_units, check_values, declared_units, is_closed
from baton.domain.shared.stored_values import Units, is_within, merge_patch, paths_set_by, units_changed


class InvalidCapabilityParametersSchemaError(Invalid, context="recipe"):
    """The parameter schema names the wrong dialect, uses a keyword outside the allowed set or does not compile."""


class InvalidMethodParametersSchemaError(Invalid, context="recipe"):
    """The parameter schema may not be declared as it is, or changes a unit in place."""


def check_units_kept(before: Schema | None, after: Schema | None) -> None:
    """Refuse a schema that changes in place the unit of a property it keeps."""
    if altered := changed_units(before, after):
        raise InvalidMethodParametersSchemaError(
            f"The unit of {', '.join(altered)} would change in place; use version_method with the new schema instead.",
            reason="unit_changed",
            facts={"keys": list(altered)},
        )


def merged_parameters(
    stored: Mapping[str, Any], patch: Mapping[str, Any], *, written: Units, schema: Schema | None, refusal: type[Refusal]
) -> tuple[dict[str, Any], bool]:
    """Return stored parameters after a patch, and whether anything changed, be it only the unit of a number.

    `written` are the units of the revision the parameters were stored under; `schema` is the one that holds now. A key whose
    unit changed meanwhile must be set again or nulled by the patch.
    """
    restated = stored_in_other_units(stored, written, schema)
    if stale := sorted(restated - paths_set_by(patch, restated)):
        raise refusal(
            f"The unit of {', '.join(stale)} changed since it was stored; set it again in the new unit or null it.",
            reason="unit_changed",
            facts={"keys": stale},
        )
    merged: dict[str, Any] = merge_patch(stored, patch)
    check_values(schema, merged, refusal)
    return merged, bool(restated) or canonical_json(merged) != canonical_json(stored)


def stored_in_other_units(stored: Mapping[str, Any], written: Units, schema: Schema | None) -> frozenset[str]:
    """Return the stored keys, as dotted paths, whose unit in the schema differs from the one they were written in.

    Keys that the schema does not admit any more are refused by the check of values instead.
    """
    if schema is None:
        return frozenset()
    names = schema.get("properties", {})
    return frozenset(
        path
        for path in units_changed(stored, written, declared_units(schema))
        if not is_closed(schema) or any(is_within(path, name) for name in names)
    )
