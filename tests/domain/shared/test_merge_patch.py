"""Merge patches: the examples of RFC 7396, and what must hold of every patch."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.shared.stored_values import merge_patch
from tests.support.tables import for_each

RFC_7396_EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

leaves = st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
keys = st.sampled_from(["a", "b", "acme.servo_gain"])
targets = st.recursive(leaves, lambda inner: st.dictionaries(keys, inner, max_size=3))
patches = st.recursive(leaves | st.none(), lambda inner: st.dictionaries(keys, inner, max_size=3))


@for_each(("target", "patch", "result"), RFC_7396_EXAMPLES)
def test_the_examples_of_rfc_7396_hold(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_a_dotted_key_is_one_key_and_no_path() -> None:
    merged = merge_patch({"acme": {"servo_gain": 1}}, {"acme.servo_gain": 2})
    assert merged == {"acme": {"servo_gain": 1}, "acme.servo_gain": 2}


@given(targets, patches)
def test_neither_the_target_nor_the_patch_is_changed(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    merge_patch(target, patch)
    assert (target, patch) == before


@given(targets, patches)
def test_a_patch_applied_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(st.dictionaries(keys, targets), st.dictionaries(keys, patches))
def test_null_is_never_stored(target: dict[str, Any], patch: dict[str, Any]) -> None:
    assert None not in _values(merge_patch(target, patch))


def _values(document: Any) -> list[Any]:
    if isinstance(document, dict):
        return [leaf for item in document.values() for leaf in _values(item)]
    return [document]
