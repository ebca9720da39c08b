"""Declared schemas: what may be declared, which values stand under them, how several join, which units are frozen."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.schema import (
    DIALECT,
    MAX_DEPTH,
    Schema,
    changed_units,
    check_declaration,
    check_union,
    check_values,
    declared_units,
)
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

DEGREE = {"system": "udunits", "code": "degree"}
RADIAN = {"system": "udunits", "code": "rad"}


class InvalidSettingsError(Invalid):
    """The refusal that a caller of these functions brings."""


def schema(**properties: Schema) -> Schema:
    return {"$schema": DIALECT, "type": "object", "properties": properties}


def closed_schema(**properties: Schema) -> Schema:
    return {**schema(**properties), "additionalProperties": False, "unevaluatedProperties": False}


def number(**keywords: Any) -> Schema:
    return {"type": "number", **keywords}


def nested_schema(depth: int) -> Schema:
    level: Schema = {"type": "number"}
    for _ in range(depth - 1):
        level = {"type": "object", "properties": {"inner": level}}
    return {"$schema": DIALECT, **level}


def refuse_values(declared: Schema | None, values: dict[str, Any], reason: str | None = None) -> Refusal:
    with expect_refusal(InvalidSettingsError, reason) as caught:
        check_values(declared, values, InvalidSettingsError)
    refusal: Refusal = caught.value
    return refusal


ROTARY = closed_schema(min_position=number(unit=DEGREE), max_position=number(unit=DEGREE), serial_number={"type": "string"})

ACCEPTED: dict[str, Schema | None] = {
    "nothing": None,
    "no constraint": {},
    "an empty object schema": schema(),
    "the worked example": ROTARY,
    "a title and a description": {**schema(), "title": "Stage", "description": "A stage."},
    "a property named like a forbidden keyword": schema(**{"$ref": number(), "oneOf": {"type": "string"}}),
    "properties named like allowed keywords": schema(unit={"type": "string"}, type={"type": "string"}, items=number()),
    "a dotted vendor key": schema(**{"acme.servo_gain": number(minimum=0)}),
    "an inner dialect": schema(inner={"$schema": DIALECT, "type": "object"}),
    "a unit on an integer": schema(turns={"type": "integer", "unit": {"system": "qudt", "code": "REV"}}),
    "a unit with a label": schema(angle=number(unit={**DEGREE, "label": "°"})),
    "a unit on an array of numbers": schema(axes={"type": "array", "items": number(), "unit": DEGREE}),
    "a unit on the elements": schema(axes={"type": "array", "items": number(unit=DEGREE)}),
    "a unit on a number that may be null": schema(angle={"type": ["number", "null"], "unit": DEGREE}),
    "every keyword": schema(
        a={"type": "string", "pattern": "^x", "minLength": 1, "maxLength": 3, "enum": ["x"]},
        b={"type": "array", "items": number(minimum=0, maximum=1), "minItems": 1, "maxItems": 2},
        c={"type": "object", "required": ["d"], "additionalProperties": True, "unevaluatedProperties": False},
    ),
    "the deepest nesting": nested_schema(MAX_DEPTH),
}

REFUSED: dict[str, tuple[Schema, str, str]] = {
    "no dialect": ({"type": "object"}, "wrong_dialect", "$.$schema"),
    "another dialect": ({**schema(), "$schema": "http://json-schema.org/draft-07/schema#"}, "wrong_dialect", "$.$schema"),
    "the dialect with a fragment": ({**schema(), "$schema": f"{DIALECT}#"}, "wrong_dialect", "$.$schema"),
    "a unit without a system": (schema(a=number(unit={"code": "mm"})), "malformed_unit", "$.properties.a.unit"),
    "a unit without a code": (schema(a=number(unit={"system": "ucum"})), "malformed_unit", "$.properties.a.unit"),
    "an empty code": (schema(a=number(unit={"system": "ucum", "code": " "})), "malformed_unit", "$.properties.a.unit"),
    "a fifth system": (schema(a=number(unit={"system": "si", "code": "m"})), "malformed_unit", "$.properties.a.unit"),
    "a second display unit": (schema(a=number(unit={**DEGREE, "display": "rad"})), "malformed_unit", "$.properties.a.unit"),
    "a label that is no text": (schema(a=number(unit={**DEGREE, "label": 1})), "malformed_unit", "$.properties.a.unit"),
    "a unit that is text": (schema(a=number(unit="mm")), "malformed_unit", "$.properties.a.unit"),
    "a unit on text": (schema(a={"type": "string", "unit": DEGREE}), "malformed_unit", "$.properties.a.unit"),
    "a unit on a number or text": (
        schema(a={"type": ["number", "string"], "unit": DEGREE}),
        "malformed_unit",
        "$.properties.a.unit",
    ),
    "a unit on an object": ({**schema(), "unit": DEGREE}, "malformed_unit", "$.unit"),
    "a unit on texts": (
        schema(a={"type": "array", "items": {"type": "string"}, "unit": DEGREE}),
        "malformed_unit",
        "$.properties.a.unit",
    ),
    "a reserved name": (schema(compatible={"type": "string"}), "reserved_property", "$.properties.compatible"),
    "a reserved name within": (
        schema(a={"type": "array", "items": {"type": "object", "properties": {"backend": {}}}}),
        "reserved_property",
        "$.properties.a.items.properties.backend",
    ),
    "properties as a list": ({"$schema": DIALECT, "properties": []}, "malformed_keyword", "$.properties"),
    "a property that is no object": (schema(a=True), "malformed_keyword", "$.properties.a"),
    "items as a list": (schema(a={"items": [{}]}), "malformed_keyword", "$.properties.a.items"),
    "a closing schema": (schema(a={"additionalProperties": {}}), "malformed_keyword", "$.properties.a.additionalProperties"),
    "an unknown type": (schema(a={"type": "float"}), "does_not_compile", "$.properties.a.type"),
    "a broken pattern": (schema(a={"pattern": "("}), "does_not_compile", "$.properties.a.pattern"),
    "an absurd pattern": (schema(a={"pattern": "a{99999999999}"}), "does_not_compile", "$"),
    "a bound that is text": (schema(a={"minimum": "0"}), "does_not_compile", "$.properties.a.minimum"),
    "a bound that is no number": (schema(a={"minimum": float("nan")}), "does_not_compile", "$"),
    "a negative length": (schema(a={"minLength": -1}), "does_not_compile", "$.properties.a.minLength"),
    "too many levels": (nested_schema(MAX_DEPTH + 1), "too_deep", "$" + ".properties.inner" * MAX_DEPTH),
}

FORBIDDEN: dict[str, Any] = {
    "$ref": "#",
    "$dynamicRef": "#",
    "$defs": {},
    "$id": "urn:x",
    "oneOf": [{}],
    "anyOf": [{}],
    "allOf": [{}],
    "not": {},
    "if": {},
    "then": {},
    "else": {},
    "dependentSchemas": {},
    "dependentRequired": {},
    "patternProperties": {},
    "propertyNames": {},
    "prefixItems": [{}],
    "contains": {},
    "const": 1,
    "default": 1,
    "format": "date",
    "multipleOf": 2,
    "exclusiveMinimum": 0,
    "uniqueItems": True,
}


@for_each("declared", ACCEPTED.values())
def test_this_may_be_declared(declared: Schema | None) -> None:
    check_declaration(declared, InvalidSettingsError)


@for_each(("declared", "reason", "path"), REFUSED.values())
def test_this_may_not_be_declared(declared: Schema, reason: str, path: str) -> None:
    with expect_refusal(InvalidSettingsError, reason) as caught:
        check_declaration(declared, InvalidSettingsError)
    assert caught.value.facts["path"] == path


@for_each("keyword", FORBIDDEN)
def test_a_forbidden_keyword_is_refused_at_every_depth(keyword: str) -> None:
    stray = {keyword: FORBIDDEN[keyword]}
    places = {
        f"$.{keyword}": {**schema(), **stray},
        f"$.properties.a.{keyword}": schema(a=stray),
        f"$.properties.a.items.properties.b.{keyword}": schema(a={"items": {"properties": {"b": stray}}}),
    }
    for path, declared in places.items():
        with expect_refusal(InvalidSettingsError, "forbidden_keyword") as caught:
            check_declaration(declared, InvalidSettingsError)
        assert caught.value.facts == {"path": path, "keyword": keyword}


def test_keywords_are_judged_before_units_and_units_before_compilation() -> None:
    broken = schema(a=number(unit={}), b={"pattern": "("}, c={"$ref": "#"})
    with expect_refusal(InvalidSettingsError, "forbidden_keyword"):
        check_declaration(broken, InvalidSettingsError)
    del broken["properties"]["c"]
    with expect_refusal(InvalidSettingsError, "malformed_unit"):
        check_declaration(broken, InvalidSettingsError)


@for_each("declared", [None, {}, ROTARY, {**ROTARY, "required": ["serial_number"]}])
def test_no_values_stand_under_any_schema_and_under_none(declared: Schema | None) -> None:
    check_values(declared, {}, InvalidSettingsError)


def test_values_without_a_schema_are_refused_with_guidance() -> None:
    refusal = refuse_values(None, {"speed": 5, "gain": 1}, "no_schema")
    assert refusal.facts == {"keys": ["gain", "speed"]}
    assert "gain, speed" in refusal.detail
    assert "{}" in refusal.detail


def test_under_the_empty_schema_everything_stands() -> None:
    check_values({}, {"speed": [1, {"deep": None}]}, InvalidSettingsError)


DEMANDING: Schema = {
    **closed_schema(
        angle=number(minimum=-360, maximum=360, unit=DEGREE),
        turns={"type": "integer"},
        mode={"enum": ["rolling", "global"]},
        name={"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        axes={"type": "array", "minItems": 1, "maxItems": 2, "items": closed_schema(gain=number()) | {"required": ["gain"]}},
    ),
    "required": ["angle"],
}


@for_each("values", [{"angle": 360}, {"angle": -0.5, "turns": 1.0}, {"angle": 0, "name": "abcd", "axes": [{"gain": 1}]}])
def test_these_values_stand(values: dict[str, Any]) -> None:
    check_values(DEMANDING, values, InvalidSettingsError)


@for_each(
    ("values", "reason", "path"),
    [
        ({"turns": 1}, "missing_key", "angle"),
        ({"angle": 0, "speed": 5}, "undeclared_key", "speed"),
        ({"angle": True}, "wrong_type", "angle"),
        ({"angle": None}, "wrong_type", "angle"),
        ({"angle": 361}, "above_maximum", "angle"),
        ({"angle": -360.5}, "below_minimum", "angle"),
        ({"angle": float("inf")}, "not_finite", "angle"),
        ({"angle": 0, "turns": 1.5}, "wrong_type", "turns"),
        ({"angle": 0, "turns": False}, "wrong_type", "turns"),
        ({"angle": 0, "mode": "slow"}, "not_in_enum", "mode"),
        ({"angle": 0, "name": "a"}, "too_short", "name"),
        ({"angle": 0, "name": "abcde"}, "too_long", "name"),
        ({"angle": 0, "name": "AB"}, "pattern_mismatch", "name"),
        ({"angle": 0, "axes": []}, "too_few_items", "axes"),
        ({"angle": 0, "axes": [{"gain": 1}] * 3}, "too_many_items", "axes"),
        ({"angle": 0, "axes": [{"gain": 1}, {"gain": "1"}]}, "wrong_type", "axes.1.gain"),
        ({"angle": 0, "axes": [{}]}, "missing_key", "axes.0.gain"),
        ({"angle": 0, "axes": [{"gain": 1, "drift": 1}]}, "undeclared_key", "axes.0.drift"),
        ({"angle": 0, "axes": [{"gain": float("nan")}]}, "not_finite", "axes.0.gain"),
    ],
)
def test_the_first_violation_is_named_with_its_path(values: dict[str, Any], reason: str, path: str) -> None:
    refusal = refuse_values(DEMANDING, values, reason)
    assert refusal.facts == {"path": path}
    assert refusal.detail.startswith(path)


def test_a_limit_is_told_in_its_unit() -> None:
    assert "at most 360 degree" in refuse_values(DEMANDING, {"angle": 400}).detail


def test_of_several_required_keys_the_missing_one_is_named() -> None:
    refusal = refuse_values({**schema(), "required": ["a", "b"]}, {"a": 1}, "missing_key")
    assert refusal.facts == {"path": "b"}


def test_an_inner_dialect_changes_nothing() -> None:
    older = schema(turns={"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"})
    check_values(older, {"turns": 1.0}, InvalidSettingsError)


def test_true_is_not_one_in_an_enumeration() -> None:
    refuse_values(schema(mode={"enum": [1, [0]]}), {"mode": True}, "not_in_enum")
    refuse_values(schema(mode={"enum": [1, [0]]}), {"mode": [False]}, "not_in_enum")
    check_values(schema(mode={"enum": [1, [0]]}), {"mode": 1.0}, InvalidSettingsError)


def refuse_union(schemas: dict[str, Schema | None], values: dict[str, Any], reason: str) -> Refusal:
    with expect_refusal(InvalidSettingsError, reason) as caught:
        check_union(schemas, values, InvalidSettingsError)
    refusal: Refusal = caught.value
    return refusal


LINEAR = closed_schema(max_speed=number(minimum=0), serial_number={"type": "string", "minLength": 3})


def test_without_any_declared_schema_only_no_settings_stand() -> None:
    check_union({}, {}, InvalidSettingsError)
    check_union({"Housing": None}, {}, InvalidSettingsError)
    assert refuse_union({"Housing": None}, {"speed": 5}, "no_schema").facts == {"keys": ["speed"]}


def test_no_settings_stand_even_where_keys_are_required_or_families_clash() -> None:
    check_union({"A": {**ROTARY, "required": ["serial_number"]}}, {}, InvalidSettingsError)
    check_union({"A": schema(a=number()), "B": schema(a={"type": "string"})}, {}, InvalidSettingsError)


def test_the_root_is_closed_once_around_the_keys_of_all_families() -> None:
    families: dict[str, Schema | None] = {"Rotary": ROTARY, "Linear": LINEAR, "Plain": None}
    check_union(families, {"min_position": -360, "max_speed": 2}, InvalidSettingsError)
    assert refuse_union(families, {"min_position": 0, "speed": 5}, "undeclared_key").facts == {
        "path": "speed",
        "keys": ["speed"],
    }


def test_a_root_nobody_closed_is_closed_all_the_same() -> None:
    refuse_union({"A": schema(a=number())}, {"b": 1}, "undeclared_key")


def test_a_pattern_is_judged_however_often_a_text_could_be_read_in_other_ways() -> None:
    """A backtracking engine would need 2**1000 steps, so that the test would never end."""
    with expect_refusal("InvalidSettingsError", "pattern_mismatch"):
        check_values(schema(a={"pattern": "^(a+)+$"}), {"a": "a" * 1000 + "!"}, InvalidSettingsError)


@for_each(("pattern", "fitting", "unfit"), [("b", "abc", "a"), ("^ab$", "ab", "abc"), (r"^\w+$", "Ångström", "a b")])
def test_a_pattern_is_looked_for_anywhere_in_the_text(pattern: str, fitting: str, unfit: str) -> None:
    declared = schema(a={"type": "string", "pattern": pattern})
    check_values(declared, {"a": fitting}, InvalidSettingsError)
    with expect_refusal("InvalidSettingsError", "pattern_mismatch"):
        check_values(declared, {"a": unfit}, InvalidSettingsError)


BACKTRACKING = {
    "^(?=a)(a+)+$": "looks around",
    "(?<!a)b": "looks around",
    r"^(a|b)\1$": "refers back to a group",
    "(?P<x>a)(?P=x)": "refers back to a group",
    "^(?>a+)b$": "has an atomic group",
    "^a++b$": "repeats possessively",
    "^[a-z--b]$": "nests sets",
    r"^a\Z": "only backtracking engines",
    "(?:a{1000}){1000}": "too large",
}


@for_each("pattern", BACKTRACKING)
def test_a_pattern_that_needs_backtracking_is_not_declared(pattern: str) -> None:
    with expect_refusal("InvalidSettingsError", "pattern_needs_backtracking") as caught:
        check_declaration(schema(a={"type": "array", "items": {"pattern": pattern}}), InvalidSettingsError)
    assert caught.value.facts == {"path": "$.properties.a.items.pattern"}
    assert BACKTRACKING[pattern] in caught.value.detail


@for_each("pattern", BACKTRACKING)
def test_a_value_is_refused_without_matching_where_an_old_schema_has_such_a_pattern(pattern: str) -> None:
    with expect_refusal("InvalidSettingsError", "pattern_needs_backtracking") as caught:
        check_values(schema(a={"pattern": pattern}), {"a": "a" * 1000 + "!"}, InvalidSettingsError)
    assert caught.value.detail.startswith("a cannot be judged, since its pattern ")


def test_one_family_without_constraint_opens_the_root_but_relaxes_nothing() -> None:
    families: dict[str, Schema | None] = {"Linear": LINEAR, "Anything": {}}
    check_union(families, {"speed": 5, "max_speed": 1}, InvalidSettingsError)
    assert refuse_union(families, {"speed": 5, "max_speed": -1}, "below_minimum").facts == {
        "path": "max_speed",
        "family": "Linear",
    }


def test_every_family_must_hold_so_the_tightest_bound_wins() -> None:
    families: dict[str, Schema | None] = {"A": schema(a=number(maximum=10)), "B": schema(a=number(maximum=5))}
    check_union(families, {"a": 5}, InvalidSettingsError)
    assert refuse_union(families, {"a": 7}, "above_maximum").facts == {"path": "a", "family": "B"}


def test_required_keys_of_all_families_apply() -> None:
    families: dict[str, Schema | None] = {"A": schema(a=number()), "B": {**schema(b=number()), "required": ["b"]}}
    refuse_union(families, {"a": 1}, "missing_key")


def test_inner_levels_keep_their_own_closure() -> None:
    families: dict[str, Schema | None] = {"A": schema(limits=closed_schema(low=number())), "B": schema(b=number())}
    assert refuse_union(families, {"limits": {"high": 1}}, "undeclared_key").facts == {"path": "limits.high", "family": "A"}


@for_each(
    ("one", "other", "reason", "key"),
    [
        (schema(a=number()), schema(a={"type": "string"}), "type_clash", "a"),
        (schema(a=number()), schema(a={"type": "integer"}), "type_clash", "a"),
        (schema(a=number(unit=DEGREE)), schema(a=number(unit=RADIAN)), "unit_clash", "a"),
        (schema(a=number(unit=DEGREE)), schema(a=number(unit={**DEGREE, "system": "ucum"})), "unit_clash", "a"),
        (schema(a=number(unit=DEGREE)), schema(a=number()), "unit_clash", "a"),
        (schema(o=schema(a=number(unit=DEGREE))), schema(o=schema(a=number(unit=RADIAN))), "unit_clash", "o.a"),
    ],
)
def test_families_that_mean_different_things_by_one_key_clash(one: Schema, other: Schema, reason: str, key: str) -> None:
    refusal = refuse_union({"Rotary": one, "Linear": other}, {"a": 1}, reason)
    assert refusal.facts == {"key": key, "families": ["Linear", "Rotary"]}
    assert all(name in refusal.detail for name in (key, "Linear", "Rotary"))


def test_families_may_share_a_key_that_means_the_same() -> None:
    shared = schema(a=number(unit={**DEGREE, "label": "°"})), schema(a=number(unit=DEGREE))
    check_union({"A": shared[0], "B": shared[1]}, {"a": 1}, InvalidSettingsError)
    types = schema(a={"type": ["number", "null"]}), schema(a={"type": ["null", "number"]})
    check_union({"A": types[0], "B": types[1]}, {"a": 1}, InvalidSettingsError)
    untyped = schema(a={"minimum": 0}), schema(a=number())
    check_union({"A": untyped[0], "B": untyped[1]}, {"a": 1}, InvalidSettingsError)


def test_declared_units_are_found_at_every_depth() -> None:
    declared = schema(
        angle=number(unit={**DEGREE, "label": "°"}),
        limits=schema(low=number(unit=RADIAN)),
        axes={"type": "array", "items": number(unit=DEGREE)},
        foils={"type": "array", "items": schema(thickness=number(unit={"system": "ucum", "code": "um"}))},
        unit={"type": "string"},
    )
    assert declared_units(declared) == {
        "angle": ("udunits", "degree"),
        "limits.low": ("udunits", "rad"),
        "axes.[]": ("udunits", "degree"),
        "foils.[].thickness": ("ucum", "um"),
    }
    assert declared_units(None) == declared_units({}) == {}


@for_each(
    ("before", "after", "changed"),
    [
        (schema(a=number(unit=DEGREE)), schema(a=number(unit=RADIAN)), ("a",)),
        (schema(a=number(unit=DEGREE)), schema(a=number(unit={**DEGREE, "system": "ucum"})), ("a",)),
        (schema(a=number(unit=DEGREE)), schema(a=number()), ("a",)),
        (schema(a=number(unit=DEGREE)), schema(a=number(unit={**DEGREE, "label": "°"}, minimum=0)), ()),
        (schema(a=number()), schema(a=number(unit=DEGREE)), ()),
        (schema(a=number(unit=DEGREE)), schema(), ()),
        (schema(), schema(a=number(unit=DEGREE)), ()),
        (schema(a=number(unit=DEGREE)), None, ()),
        (None, schema(a=number(unit=DEGREE)), ()),
        (schema(a=number(unit=DEGREE)), {}, ()),
        (
            schema(o=schema(b=number(unit=DEGREE), a=number(unit=DEGREE))),
            schema(o=schema(a=number(unit=RADIAN), b=number())),
            ("o.a", "o.b"),
        ),
        (
            schema(a={"type": "array", "items": number(unit=DEGREE)}),
            schema(a={"type": "array", "items": number(unit=RADIAN)}),
            ("a.[]",),
        ),
    ],
)
def test_units_of_properties_that_stay_are_compared(
    before: Schema | None, after: Schema | None, changed: tuple[str, ...]
) -> None:
    assert changed_units(before, after) == changed


KEYS = st.sampled_from(["a", "b", "type", "acme.gain"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([-1.5, 0.0, 1.0, 2.0, 2.5])
LEAVES = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "ab", "abc", "A"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])


def levels(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(KEYS, inner, max_size=3),
            "required": st.lists(KEYS, max_size=2, unique=True),
            "enum": st.lists(LEAVES | st.lists(LEAVES, max_size=1), min_size=2, max_size=4),
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "pattern": st.sampled_from(["^a", "b$", "[A-Z]"]),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "items": inner,
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "additionalProperties": st.booleans(),
            "unevaluatedProperties": st.booleans(),
        },
    )


ROOTS = st.builds(
    lambda level, properties: {**level, "$schema": DIALECT, "type": "object", "properties": properties},
    levels(st.just({})).map(lambda level: {keyword: level[keyword] for keyword in level.keys() - {"enum"}}),
    st.dictionaries(KEYS, st.recursive(levels(st.just({})), levels, max_leaves=4), min_size=1, max_size=3),
)


def near(level: Schema) -> st.SearchStrategy[Any]:
    """Values that often fit a level and sometimes miss it by a little."""
    if not level:
        return VALUES
    options = {
        "number": NUMBERS,
        "integer": NUMBERS,
        "string": st.sampled_from(["", "a", "ab", "abc", "A"]),
        "boolean": st.booleans(),
        "null": st.none(),
        "array": st.lists(near(level.get("items", {})), max_size=3),
        "object": near_object(level),
    }
    types = level.get("type", list(options))
    fitting = [options[type] for type in ([types] if isinstance(types, str) else types)]
    listed = [st.sampled_from(level["enum"])] if "enum" in level else []
    return st.one_of(*fitting, *listed, LEAVES)


def near_object(level: Schema) -> st.SearchStrategy[dict[str, Any]]:
    known = {name: near(inner) for name, inner in level.get("properties", {}).items()}
    strays = st.dictionaries(KEYS, LEAVES, max_size=1)
    return st.builds(lambda stray, fields: stray | fields, st.just({}) | strays, st.fixed_dictionaries({}, optional=known))


CASES = ROOTS.flatmap(lambda root: st.tuples(st.just(root), near_object(root).filter(bool)))
"""A schema, and values that may stand under it."""


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def is_of(value: Any, type: str) -> bool:
    plain = not isinstance(value, bool)
    return {
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "null": value is None,
        "number": plain and isinstance(value, int | float),
        "integer": plain and (isinstance(value, int) or (isinstance(value, float) and value == int(value))),
    }[type]


def holds(level: Schema, value: Any) -> bool:
    """A second, plain reading of the allowed keywords."""
    types = level.get("type", [])
    if types and not any(is_of(value, type) for type in ([types] if isinstance(types, str) else types)):
        return False
    if "enum" in level and not any(same(value, option) for option in level["enum"]):
        return False
    if is_of(value, "number") and not level.get("minimum", value) <= value <= level.get("maximum", value):
        return False
    if isinstance(value, str):
        fits = level.get("minLength", 0) <= len(value) <= level.get("maxLength", len(value))
        return fits and re.search(level.get("pattern", ""), value) is not None
    if isinstance(value, list):
        fits = level.get("minItems", 0) <= len(value) <= level.get("maxItems", len(value))
        return fits and all(holds(level.get("items", {}), item) for item in value)
    if isinstance(value, dict):
        known = level.get("properties", {})
        shut = level.get("additionalProperties", level.get("unevaluatedProperties", True)) is False
        return (
            all(name in value for name in level.get("required", ()))
            and all(holds(known[key], item) for key, item in value.items() if key in known)
            and not (shut and value.keys() - known.keys())
        )
    return True


def accepts(check: Any, declared: Any, values: Any) -> bool:
    try:
        check(declared, values, InvalidSettingsError)
    except InvalidSettingsError:
        return False
    return True


@given(ROOTS)
def test_whatever_is_built_of_allowed_keywords_may_be_declared(declared: Schema) -> None:
    check_declaration(declared, InvalidSettingsError)


@given(CASES)
def test_values_are_judged_as_a_plain_reading_of_the_schema_does(case: tuple[Schema, dict[str, Any]]) -> None:
    declared, values = case
    assert accepts(check_values, declared, values) == holds(declared, values)


@given(CASES)
def test_the_union_of_one_family_is_its_schema_closed_at_the_root(case: tuple[Schema, dict[str, Any]]) -> None:
    declared, values = case
    shut = {**declared, "additionalProperties": False, "unevaluatedProperties": False}
    assert accepts(check_union, {"Only": declared}, values) == holds(shut, values)


@given(CASES, ROOTS)
def test_a_union_accepts_what_every_family_accepts_within_the_keys_of_all(
    case: tuple[Schema, dict[str, Any]], other: Schema
) -> None:
    declared, values = case
    shared = declared["properties"].keys() & other["properties"].keys()
    apart = {**other, "properties": {name: other["properties"][name] for name in other["properties"].keys() - shared}}
    opened = {"additionalProperties": True, "unevaluatedProperties": True}
    known = declared["properties"].keys() | apart["properties"].keys()
    expected = holds({**declared, **opened}, values) and holds({**apart, **opened}, values) and values.keys() <= known
    assert accepts(check_union, {"A": declared, "B": apart}, values) == expected
    assert accepts(check_union, {"B": apart, "A": declared}, values) == expected
