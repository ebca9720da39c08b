"""Parameters: which values stand under a schema, and what becomes of stored ones when a unit changes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.schema import DIALECT, Schema, declared_units
from baton.domain.shared.stored_values import merged_parameters, stored_in_other_units
from tests.support.domain.templates import MILLISECOND, SECOND, acquisition, parameters
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each


class InvalidParametersError(Invalid):
    """The refusal that a caller of these functions brings."""


def merge_under(
    stored: dict[str, Any], patch: dict[str, Any], schema: Schema | None, before: Schema | None = None
) -> tuple[dict[str, Any], bool]:
    """Merge values stored under one schema with a patch under another (the same, when only one is given)."""
    written = declared_units(schema if before is None else before)
    return merged_parameters(stored, patch, written=written, schema=schema, refusal=InvalidParametersError)


def patch_refusal(
    stored: dict[str, Any], patch: dict[str, Any], schema: Schema | None, before: Schema | None = None
) -> Refusal:
    with expect_refusal(InvalidParametersError) as caught:
        merge_under(stored, patch, schema, before)
    refusal: Refusal = caught.value
    return refusal


VALUES = {"dwell": 0.1, "repetitions": 20}
VALUE_TABLE = [
    pytest.param(None, {}, None, id="no schema, no values"),
    pytest.param(None, {"dwell": 1, "gain": 2}, ("no_schema", None), id="no schema, values"),
    pytest.param(acquisition(), {}, None, id="a schema with mandatory keys, no values"),
    pytest.param({}, {}, None, id="no constraint, no values"),
    pytest.param({}, {"anything": [1, None, {"a": "b"}]}, None, id="no constraint, values"),
    pytest.param(acquisition(), VALUES, None, id="a schema, values under it"),
    pytest.param(acquisition(), {**VALUES, "dwell": 11}, ("above_maximum", "dwell"), id="a schema, a value beyond it"),
    pytest.param(acquisition(), {"dwell": 1}, ("missing_key", "repetitions"), id="a schema, a mandatory key missing"),
    pytest.param(acquisition(), {**VALUES, "gain": 2}, ("undeclared_key", "gain"), id="a schema, a key too much"),
    pytest.param(acquisition(), {"dwell": "1", "repetitions": 1}, ("wrong_type", "dwell"), id="a schema, a wrong type"),
]


@for_each(("schema", "values", "verdict"), VALUE_TABLE)
def test_values_stand_under_their_schema(
    schema: Schema | None, values: dict[str, Any], verdict: tuple[str, str | None] | None
) -> None:
    if verdict is None:
        assert merge_under({}, values, schema)[0] == values
        return
    refusal = patch_refusal({}, values, schema)
    reason, path = verdict
    assert (refusal.status, refusal.reason) == (400, reason)
    assert refusal.facts is not None
    assert refusal.facts.get("path") == path


def test_values_without_a_schema_are_named_and_the_way_out_is_too() -> None:
    refusal = patch_refusal({}, {"gain": 2, "dwell": 1}, None)
    assert refusal.facts == {"keys": ["dwell", "gain"]}
    assert "dwell, gain" in refusal.detail
    assert "declare one ({} for no constraint)" in refusal.detail


def test_a_violation_is_named_by_its_path_in_the_values() -> None:
    region = {"type": "object", "properties": {"width": {"type": "integer"}}}
    schema = parameters(regions={"type": "array", "items": region})
    refusal = patch_refusal({}, {"regions": [{"width": 1}, {"width": "2"}]}, schema)
    assert refusal.facts == {"path": "regions.1.width"}


def test_a_patch_sets_deletes_and_merges_and_says_whether_anything_is_new() -> None:
    assert merge_under({}, {}, acquisition()) == ({}, False)
    assert merge_under({}, VALUES, acquisition()) == (VALUES, True)
    assert merge_under(VALUES, {"dwell": 0.1}, acquisition()) == (VALUES, False)
    assert merge_under(VALUES, {"dwell": 0.2}, acquisition()) == ({**VALUES, "dwell": 0.2}, True)
    assert merge_under(VALUES, {"dwell": None, "repetitions": None}, acquisition()) == ({}, True)
    nested = {"roi": {"x": 1, "y": 2}}
    assert merge_under(nested, {"roi": {"y": None, "w": 3}}, {}) == ({"roi": {"x": 1, "w": 3}}, True)


def test_a_mandatory_key_cannot_be_taken_from_values_that_stay() -> None:
    assert patch_refusal(VALUES, {"repetitions": None}, acquisition()).reason == "missing_key"


def test_a_stored_number_is_not_used_in_another_unit_than_it_was_stored_in() -> None:
    refusal = patch_refusal(VALUES, {"repetitions": 5}, acquisition(unit=MILLISECOND), before=acquisition())
    assert (refusal.status, refusal.reason, refusal.facts) == (400, "unit_changed", {"keys": ["dwell"]})
    assert "dwell" in refusal.detail


def test_a_number_set_again_is_new_even_when_it_is_the_same_number() -> None:
    assert merge_under(VALUES, {"dwell": 0.1}, acquisition(unit=MILLISECOND), before=acquisition()) == (VALUES, True)


def test_a_number_whose_unit_changed_may_be_nulled() -> None:
    schema = {**acquisition(unit=MILLISECOND), "required": []}
    assert merge_under(VALUES, {"dwell": None}, schema, before=acquisition()) == ({"repetitions": 20}, True)


@for_each(
    ("patch", "unit"),
    [*(({}, {"system": system, "code": "s"}) for system in ("ucum", "qudt")), ({"repetitions": "many"}, MILLISECOND)],
)
def test_the_code_of_another_system_is_another_unit_and_looked_at_before_values(
    patch: dict[str, Any], unit: dict[str, str]
) -> None:
    assert patch_refusal(VALUES, patch, acquisition(unit=unit), before=acquisition()).reason == "unit_changed"


def test_another_label_is_the_same_unit() -> None:
    assert merge_under(VALUES, {}, acquisition(unit={**SECOND, "label": "seconds"}), before=acquisition()) == (VALUES, False)


def test_only_stored_keys_have_a_unit_to_lose() -> None:
    assert merge_under({"repetitions": 1}, {"dwell": 1}, acquisition(unit=MILLISECOND), before=acquisition())[1]


def test_a_key_the_schema_does_not_admit_any_more_is_undeclared() -> None:
    without = parameters(repetitions={"type": "integer"})
    assert patch_refusal(VALUES, {}, without, before=acquisition()).reason == "undeclared_key"


@for_each("schema", [{}, {"$schema": DIALECT, "type": "object"}])
def test_a_key_an_open_schema_knows_nothing_of_has_lost_its_unit(schema: Schema) -> None:
    assert patch_refusal(VALUES, {}, schema, before=acquisition()).facts == {"keys": ["dwell"]}


def test_without_a_schema_all_stored_keys_must_go() -> None:
    refusal = patch_refusal(VALUES, {"dwell": None}, None, before=acquisition())
    assert (refusal.reason, refusal.facts) == ("no_schema", {"keys": ["repetitions"]})
    assert merge_under(VALUES, {"dwell": None, "repetitions": None}, None, before=acquisition()) == ({}, True)


def test_an_array_and_a_dotted_key_have_units_too() -> None:
    def schema(unit: dict[str, str]) -> Schema:
        number = {"type": "number", "unit": unit}
        return parameters(**{"dwells": {"type": "array", "items": number}, "acme.delay": number})

    stored = {"dwells": [1, 2], "acme.delay": 3}
    assert patch_refusal(stored, {}, schema(MILLISECOND), before=schema(SECOND)).facts == {"keys": ["acme.delay", "dwells"]}
    patch = {"dwells": [1000], "acme.delay": 3000}
    assert merge_under(stored, patch, schema(MILLISECOND), before=schema(SECOND)) == (patch, True)


UNITS = st.sampled_from([SECOND, MILLISECOND, None])
NAMES = ("dwell", "delay", "settle")


def timing(units: dict[str, dict[str, str] | None]) -> Schema:
    return parameters(
        **{name: {"type": "number", **({} if unit is None else {"unit": unit})} for name, unit in units.items()}
    )


@given(
    before=st.fixed_dictionaries(dict.fromkeys(NAMES, UNITS)),
    after=st.fixed_dictionaries(dict.fromkeys(NAMES, UNITS)),
    stored=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)),
    patch=st.dictionaries(st.sampled_from(NAMES), st.none() | st.integers(0, 3)),
)
def test_no_number_is_ever_carried_into_another_unit(
    before: dict[str, Any], after: dict[str, Any], stored: dict[str, int], patch: dict[str, int | None]
) -> None:
    carried = [name for name in stored if name not in patch and before[name] != after[name]]
    if carried:
        assert patch_refusal(stored, patch, timing(after), timing(before)).facts == {"keys": sorted(carried)}
        return
    values, new = merge_under(stored, patch, timing(after), timing(before))
    assert values == {name: value for name, value in {**stored, **patch}.items() if value is not None}
    if not new:
        assert values == stored
        assert not stored_in_other_units(stored, declared_units(timing(before)), timing(after))
