"""Bounded text: length at the edge, blankness in its turn, trimmed in store; and names that count as the same."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from baton.domain.kernel import SortedSet, Value
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import PERSONAL_MARK, TRIMMED, Text, Word, name_key, refuse_blank_text, unnameable_character
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each


class InvalidLabelError(Invalid):
    """A label must not be blank."""


Label = Annotated[str, Text(5, InvalidLabelError, "label")]


class Leaf(Value):
    label: Label


class Tree(Value):
    label: Label = "root"
    note: Annotated[str, Text(10, InvalidLabelError, "note", personal=True)] | None = None
    leaves: tuple[Leaf, ...] = ()
    labels: SortedSet[Label] = frozenset()
    named: dict[str, Label] = {}
    extra: dict[str, Any] = {}


@for_each("raw", ["", "123456", "     x", "x     "])
def test_a_raw_length_out_of_bounds_is_malformed(raw: str) -> None:
    with pytest.raises(ValidationError):
        Leaf(label=raw)


def test_length_counts_characters_and_not_bytes() -> None:
    assert Leaf(label="😀" * 5).label == "😀" * 5


def test_what_is_stored_is_trimmed() -> None:
    assert Leaf(label=" a b ").label == "a b"


@for_each(
    "fields",
    [
        {"label": " \t\n "},
        {"note": "\u2003"},
        {"leaves": [{"label": "fine"}, {"label": "  "}]},
        {"labels": ["fine", " "]},
        {"named": {"key": " "}},
    ],
)
def test_blank_text_is_refused_by_its_own_class_wherever_it_stands(fields: dict[str, Any]) -> None:
    tree = Tree(**fields)
    with expect_refusal(InvalidLabelError, "blank"):
        refuse_blank_text(tree)


def test_text_without_a_bound_may_be_blank() -> None:
    refuse_blank_text(Tree(extra={"comment": "", "nested": [" ", {"deeper": ""}]}))


def test_free_text_is_marked_in_the_documentation() -> None:
    properties = Tree.model_json_schema()["properties"]
    assert PERSONAL_MARK in str(properties["note"])
    assert PERSONAL_MARK not in str(properties["label"])


@given(st.text(min_size=1, max_size=5))
def test_a_text_is_trimmed_or_refused_and_nothing_else(raw: str) -> None:
    leaf = Leaf(label=raw)
    assert leaf.label == raw.strip()
    if raw.strip() and unnameable_character(raw.strip()) is None:
        refuse_blank_text(leaf)
    else:
        with expect_refusal(InvalidLabelError):
            refuse_blank_text(leaf)


class Spoken(Value):
    word: Annotated[str, Word(5)]


@given(st.text(max_size=7))
def test_a_word_is_taken_exactly_where_its_schema_admits_it(raw: str) -> None:
    if is_valid(raw, Spoken.model_json_schema()["properties"]["word"]):
        assert Spoken(word=raw).word == raw.strip() != ""
    else:
        with pytest.raises(ValidationError):
            Spoken(word=raw)


@for_each("blank", [" ", "\t\n", "\x1c", "\u2003"])
def test_a_blank_word_is_malformed(blank: str) -> None:
    with pytest.raises(ValidationError):
        Spoken(word=blank)


@given(st.text(max_size=5))
def test_the_pattern_of_trimmed_text_admits_what_trimming_leaves_as_it_is(raw: str) -> None:
    for text in (raw, raw.strip()):
        assert is_valid(text, {"pattern": TRIMMED}) == (text == text.strip() != "")


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@for_each("other", ["RotaryStage", " rotarystage ", "ROTARYSTAGE"])
def test_names_that_differ_in_case_or_margin_are_the_same(other: str) -> None:
    assert name_key(other) == name_key("RotaryStage")


def test_names_that_look_the_same_are_the_same() -> None:
    assert name_key("Ge\u0301rard") == name_key("G\u00e9rard")
    assert name_key("RotaryStage") != name_key("Rotary Stage")


@for_each("character", ["\r", "\n", "\t", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u2066"])
def test_a_name_with_a_control_character_is_refused_in_its_turn(character: str) -> None:
    leaf = Leaf(label=f"a{character}b")
    assert leaf.label == f"a{character}b", "what was stored before loads as it is"
    with expect_refusal("InvalidLabelError", "control_character") as caught:
        refuse_blank_text(Tree(leaves=[leaf]))
    assert f"U+{ord(character):04X}" in caught.value.detail


@for_each("text", ["Ångst", "测试", "שלום", "a\u200fb", "👩\u200d🔬", " a\r\n"])
def test_ordinary_text_of_any_language_is_a_name(text: str) -> None:
    refuse_blank_text(Leaf(label=text))


def test_a_reason_runs_over_lines() -> None:
    class Reasoned(Value):
        reason: Annotated[str, Text(50, InvalidLabelError, "reason")]

    refuse_blank_text(Reasoned(reason="First line.\n\tSecond."))
