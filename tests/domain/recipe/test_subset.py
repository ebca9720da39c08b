"""The structural subset: every rule by example, the illustration, and what an accepted schema promises."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.recipe.subset import first_violation
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.schema import DIALECT, Schema, check_declaration, check_values, is_closed
from tests.support.domain.schemas import schema_levels
from tests.support.domain.templates import MILLISECOND, SECOND, acquisition
from tests.support.tables import for_each

KEV = {"system": "udunits", "code": "keV"}
EV = {"system": "udunits", "code": "eV"}


class InvalidSchemaError(Invalid):
    """The refusal that a caller of these functions brings."""


def root(**keywords: Any) -> Schema:
    return {"$schema": DIALECT, "type": "object", **keywords}


def energy(**keywords: Any) -> Schema:
    return root(properties={"energy": keywords})


def number(minimum: float | None = None, maximum: float | None = None, **keywords: Any) -> Schema:
    bounds = {"minimum": minimum, "maximum": maximum}
    return energy(type="number", **{name: bound for name, bound in bounds.items() if bound is not None}, **keywords)


ILLUSTRATION = [
    pytest.param(number(5, 40, unit=KEV), number(8, 25, unit=KEV), None, id="narrower bounds"),
    pytest.param(number(5, 40, unit=KEV), number(8, 60, unit=KEV), "6", id="a wider bound"),
    pytest.param(number(unit=KEV), number(unit=EV), "8", id="another unit"),
    pytest.param(energy(enum=["a", "b", "c"]), energy(enum=["a", "c"]), None, id="fewer values"),
    pytest.param(root(), number(), "2", id="a parameter the capability does not have"),
    pytest.param(
        root(properties={"exposure": {}}, required=["exposure"]), root(properties={}), "3b", id="a mandatory one dropped"
    ),
    pytest.param(number(5, 40), number(), None, id="bounds left out"),
]


@for_each(("outer", "inner", "rule"), ILLUSTRATION)
def test_the_illustration(outer: Schema, inner: Schema, rule: str | None) -> None:
    violation = first_violation(inner, outer)
    assert (violation and violation.rule) == rule


@for_each(
    ("inner", "outer"),
    [(None, acquisition()), (acquisition(), None), (acquisition(), {}), (None, None), (None, {}), ({}, None), ({}, {})],
)
def test_nothing_is_compared_where_one_side_is_missing_or_the_outer_one_constrains_nothing(
    inner: Schema | None, outer: Schema | None
) -> None:
    assert first_violation(inner, outer) is None


ACCEPTED = {
    "the same schema": (acquisition(), acquisition()),
    "the same types in another order": (energy(type=["null", "number"]), energy(type=["number", "null"])),
    "one type and a list of it": (energy(type=["number"]), energy(type="number")),
    "a type only outside": (energy(), energy(type="number")),
    "a type only inside": (energy(type="number"), energy()),
    "a parameter left out": (root(properties={}), number()),
    "more required than outside": (root(properties={"energy": {}}, required=["energy"]), energy()),
    "equal numbers among the values": (energy(enum=[1, {"a": [2.0]}]), energy(enum=[{"a": [2]}, 1.0, 3])),
    "values only inside": (energy(enum=[1]), energy()),
    "values only outside": (energy(), energy(enum=[1])),
    "a unit only inside": (number(unit=KEV), number()),
    "a unit only outside": (number(), number(unit=KEV)),
    "another label": (number(unit={**KEV, "label": "E"}), number(unit=KEV)),
    "closed where the capability is open": (root(additionalProperties=False), root()),
    "titles and descriptions": (
        root(title="T", description="one", properties={"energy": {"title": "E", "$schema": DIALECT}}),
        root(description="other", properties={"energy": {"description": "e"}}),
    ),
    "no items": (energy(type="array"), energy(type="array", items={"type": "number"})),
    "an inner {} under an open schema without mandatory keys": ({}, number()),
    "equal bounds": (energy(minLength=2, maxItems=3), energy(minLength=2.0, maxItems=3)),
}


@for_each(("inner", "outer"), ACCEPTED.values())
def test_a_schema_within_its_capability_is_accepted(inner: Schema, outer: Schema) -> None:
    assert first_violation(inner, outer) is None


def regions(**keywords: Any) -> Schema:
    return energy(type="array", items={"type": "object", "properties": {"width": keywords}})


CLOSED, GAIN = root(additionalProperties=False), "$.properties.energy.properties.gain"
WIDTH = "$.properties.energy.items.properties.width.maximum"
REFUSED = {
    "another type": (energy(type="string"), energy(type="number"), "1", "$.properties.energy.type"),
    "an integer for a number": (energy(type="integer"), energy(type="number"), "1", "$.properties.energy.type"),
    "fewer types": (energy(type=["number"]), energy(type=["number", "null"]), "1", "$.properties.energy.type"),
    "another root type": ({"$schema": DIALECT, "type": "array"}, root(), "1", "$.type"),
    "an unknown parameter": (root(properties={"gain": {}}), number(), "2", "$.properties.gain"),
    "an unknown one within": (energy(properties={"gain": {}}), energy(properties={}), "2", GAIN),
    "one within what says nothing of properties": (energy(properties={"gain": {}}), energy(), "2", GAIN),
    "requiring what is not there": (root(required=["gain"]), root(), "3", "$.required"),
    "dropping what is mandatory": (number(), {**number(), "required": ["energy"]}, "3b", "$.required"),
    "a value too much": (energy(enum=["a", "d"]), energy(enum=["a", "b"]), "4", "$.properties.energy.enum"),
    "true for one": (energy(enum=[True]), energy(enum=[1]), "4", "$.properties.energy.enum"),
    "zero for false within": (energy(enum=[[0]]), energy(enum=[[False]]), "4", "$.properties.energy.enum"),
    "an object with a key more": (energy(enum=[{"a": 1}]), energy(enum=[{}]), "4", "$.properties.energy.enum"),
    "a longer list": (energy(enum=[[1, 2]]), energy(enum=[[1]]), "4", "$.properties.energy.enum"),
    "a lower minimum": (energy(minimum=4.9), energy(minimum=5), "5", "$.properties.energy.minimum"),
    "a shorter text": (energy(minLength=1), energy(minLength=2), "5", "$.properties.energy.minLength"),
    "a shorter array": (energy(minItems=1), energy(minItems=2), "5", "$.properties.energy.minItems"),
    "a higher maximum": (energy(maximum=41), energy(maximum=40), "6", "$.properties.energy.maximum"),
    "a longer text": (energy(maxLength=3), energy(maxLength=2), "6", "$.properties.energy.maxLength"),
    "a longer array": (energy(maxItems=3), energy(maxItems=2), "6", "$.properties.energy.maxItems"),
    "another pattern": (energy(pattern="^aa"), energy(pattern="^a"), "7", "$.properties.energy.pattern"),
    "another unit code": (number(unit=EV), number(unit=KEV), "8", "$.properties.energy.unit"),
    "another unit system": (number(unit={**KEV, "system": "ucum"}), number(unit=KEV), "8", "$.properties.energy.unit"),
    "opening by silence": (root(), CLOSED, "9", "$.additionalProperties"),
    "opening by word": (root(additionalProperties=True), CLOSED, "9", "$.additionalProperties"),
    "closing by the other word": (CLOSED, root(unevaluatedProperties=False), "9", "$.unevaluatedProperties"),
    "a wider bound in an array": (regions(maximum=3), regions(maximum=2), "6", WIDTH),
    "an inner {} under a closed schema": ({}, CLOSED, "9", "$.additionalProperties"),
    "an inner {} that drops what is mandatory": ({}, {**number(), "required": ["energy"]}, "3b", "$.required"),
}


@for_each(("inner", "outer", "rule", "path"), REFUSED.values())
def test_a_schema_beyond_its_capability_is_refused_by_rule_and_path(
    inner: Schema, outer: Schema, rule: str, path: str
) -> None:
    violation = first_violation(inner, outer)
    assert violation is not None
    assert (violation.rule, violation.path) == (rule, path)


def test_the_first_violation_is_the_one_of_the_first_rule() -> None:
    outer = root(properties={"a": {"type": "number", "maximum": 1}}, required=["a"], additionalProperties=False)
    inner = root(properties={"a": {"type": "number", "maximum": 2}, "b": {}})
    found = []
    for mend in (
        lambda: inner["properties"]["a"].update(maximum=1),
        lambda: inner["properties"].pop("b"),
        lambda: inner.update(required=["a"]),
        lambda: inner.update(additionalProperties=False),
    ):
        violation = first_violation(inner, outer)
        assert violation is not None
        found.append(violation.rule)
        mend()
    assert found == ["6", "2", "3b", "9"]
    assert first_violation(inner, outer) is None


SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 3, 1.5, "", "a", "ab", "ba"])
NAMES = st.sampled_from(["a", "b", "c"])
KINDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "number": {"minimum": st.integers(0, 2), "maximum": st.integers(1, 3)},
    "string": {"minLength": st.integers(0, 2), "maxLength": st.integers(0, 2), "pattern": st.sampled_from(["^a", "b$"])},
    "array": {"minItems": st.integers(0, 2), "maxItems": st.integers(0, 2)},
    "object": {
        "required": st.lists(NAMES, unique=True, max_size=2),
        "additionalProperties": st.sampled_from([False, False, True]),
        "unevaluatedProperties": st.sampled_from([False, False, True]),
    },
}
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from([*KINDS, "integer", ["number", "string"]]),
    "enum": st.lists(SCALARS, min_size=1, max_size=4),
}
KEYWORDS = {**COMMON, **{keyword: values for kind in KINDS.values() for keyword, values in kind.items()}}
SHARED = KEYWORDS.keys() - KINDS["object"].keys()
"""The keywords that are compared only where both sides have them."""


@st.composite
def levels(draw: st.DrawFn, kind: str | None = None, depth: int = 2) -> Schema:
    """One level of a schema with keywords that go together, and what is below it."""
    kind = kind or draw(st.sampled_from([*KINDS, "object"] if depth else ["number", "string"]))
    usual = draw(st.sets(st.sampled_from([*KINDS[kind]]))) | ({"type"} if draw(st.integers(0, 3)) else {"enum"})
    level: Schema = {keyword: draw(KEYWORDS[keyword]) for keyword in sorted(usual)}
    if "type" in level:
        level["type"] = kind
    if depth and kind == "object":
        level["properties"] = draw(st.dictionaries(NAMES, levels(depth=depth - 1), max_size=2))
    if depth and kind == "array":
        level["items"] = draw(levels(depth=depth - 1))
    return level


@st.composite
def variations(draw: st.DrawFn, outer: Schema) -> Schema:
    """A schema that differs from another one in at most two places, so that single rules decide about it."""
    inner = deepcopy(outer)
    for _ in range(draw(st.integers(0, 2))):
        level = draw(st.sampled_from(list(schema_levels(inner))))
        properties = level.get("properties", {})
        match draw(st.sampled_from(["change", "change", "change", "add", "drop", "declare", "forget"])):
            case "change" if present := sorted(level.keys() & KEYWORDS.keys()):
                keyword = draw(st.sampled_from(present))
                level[keyword] = draw(KEYWORDS[keyword])
            case "add":
                keyword = draw(st.sampled_from(sorted(KEYWORDS)))
                level.setdefault(keyword, draw(KEYWORDS[keyword]))
            case "drop" if level:
                del level[draw(st.sampled_from(sorted(level)))]
            case "declare" if "properties" in level:
                properties.setdefault(draw(NAMES), draw(levels(depth=0)))
            case "forget" if properties:
                del properties[draw(st.sampled_from(sorted(properties)))]
    return inner


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """A method's schema and the capability's beside it, each of one parameter."""
    outer = draw(levels())
    return energy(**draw(variations(outer))), energy(**outer)


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that have good chances under this schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "number":
            return st.sampled_from([0, 1, 2, 3, 1.5])
        case "string":
            return st.text("ab", max_size=3)
        case "array":
            return st.lists(values_of(schema.get("items", {})), max_size=3)
        case "object":
            properties = {name: values_of(level) for name, level in schema.get("properties", {}).items()}
            needed = {name: properties.pop(name, SCALARS) for name in schema.get("required", ())}
            undeclared = {name: SCALARS for name in ("z", "c") if name not in needed and name not in properties}
            return st.fixed_dictionaries(needed, optional={**properties, **undeclared})
    return SCALARS


def is_accepted(schema: Schema, value: dict[str, Any]) -> bool:
    try:
        check_values(schema, value, InvalidSchemaError)
    except Refusal:
        return False
    return True


def says_at_least(inner: Schema, outer: Schema) -> bool:
    """Whether the inner schema speaks wherever the outer one does.

    It has every keyword of the outer one that is compared only where both have it, it does not take back with
    `additionalProperties` what it closes with `unevaluatedProperties`, and each property it leaves out it also keeps
    out, by being closed; the same on every level both have.
    """
    if not (SHARED | {"items"}) & outer.keys() <= inner.keys():
        return False
    if inner.get("unevaluatedProperties") is False and not is_closed(inner):
        return False
    mine, others = inner.get("properties", {}), outer.get("properties", {})
    if not others.keys() <= mine.keys() and not is_closed(inner):
        return False
    below = [(mine[name], others[name]) for name in mine.keys() & others.keys()]
    below += [(inner["items"], outer["items"])] if "items" in outer else []
    return all(says_at_least(*pair) for pair in below)


@settings(max_examples=2 * settings().max_examples)
@given(data=st.data())
def test_what_an_accepted_schema_that_says_as_much_admits_its_capability_admits_too(data: st.DataObject) -> None:
    inner, outer = data.draw(pairs())
    for schema in (inner, outer):
        check_declaration(schema, InvalidSchemaError)
    if first_violation(inner, outer) is not None or not says_at_least(inner, outer):
        return
    for value in data.draw(st.lists(values_of(inner), min_size=5, max_size=5)):
        if is_accepted(inner, value):
            assert is_accepted(outer, value), value


@given(levels("object").flatmap(lambda outer: st.tuples(variations(outer), st.just(outer))))
def test_no_parameter_is_invented_and_none_that_is_mandatory_dropped(pair: tuple[Schema, Schema]) -> None:
    """What holds of every accepted schema, however little it says."""
    inner, outer = pair
    if first_violation(inner, outer) is None:
        assert inner.get("properties", {}).keys() <= outer.get("properties", {}).keys()
        assert set(outer.get("required", ())) <= set(inner.get("required", ())) <= outer.get("properties", {}).keys()


@given(levels("object"))
def test_every_schema_whose_mandatory_parameters_are_declared_is_within_itself(level: Schema) -> None:
    declares = all(set(one.get("required", ())) <= one.get("properties", {}).keys() for one in schema_levels(level))
    assert (first_violation(level, level) is None) == (not level or declares)


WEAKER = {
    "a bound left out": (number(), number(5, 40), {"energy": 99}),
    "values left out": (energy(), energy(enum=[1]), {"energy": 2}),
    "a type left out": (energy(), energy(type="number"), {"energy": "high"}),
    "a pattern left out": (energy(), energy(pattern="^a"), {"energy": "b"}),
    "items left out": (energy(type="array"), energy(type="array", items={"type": "number"}), {"energy": ["x"]}),
    "an open schema that leaves a parameter out": (root(properties={}), number(5, 40), {"energy": 99}),
    "a closed schema opened by the other word": (
        root(additionalProperties=True, unevaluatedProperties=False),
        root(unevaluatedProperties=False),
        {"anything": 1},
    ),
}


@for_each(("inner", "outer", "value"), WEAKER.values())
def test_an_accepted_schema_that_says_less_may_admit_more(inner: Schema, outer: Schema, value: dict[str, Any]) -> None:
    assert first_violation(inner, outer) is None
    assert not says_at_least(inner, outer)
    assert is_accepted(inner, value)
    assert not is_accepted(outer, value)


def test_a_parameter_is_not_converted_by_a_change_of_unit() -> None:
    violation = first_violation(acquisition(unit=MILLISECOND), acquisition(unit=SECOND))
    assert violation is not None
    assert violation.saying == "the unit is s of udunits"
