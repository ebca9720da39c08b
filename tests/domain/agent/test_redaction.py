"""What a model is shown names nobody, and is otherwise what it was."""

import sys
import unicodedata
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.agent.redaction import BLANKED, KnownPerson, NameBook, name_book
from baton.domain.kernel import instant
from tests.support.domain.world import START, new_id
from tests.support.tables import for_each

MIRA = KnownPerson("Mira Okafor", "m.okafor@example.org", "0431 8998-12", "0000-0002-1825-0097")
JOSE = KnownPerson("José Müller-Straße", "jo@lab", "4711", "u77")
OZLEM = KnownPerson("Özlem I\u015f\u0131k")
ABROAD = ("山田太郎", "김철수", "王 明", "佐藤・マリア", "สมชาย ใจดี", "मीरा शर्मा", "Олег Йолкин")
PLAIN = ("Li Wu", "Jan van der Berg", "Okafor, Sam", "J. O'Neil")
BOOK = name_book([MIRA, JOSE, OZLEM, KnownPerson("Bea Ada", external_id="7c1d"), *map(KnownPerson, (*PLAIN, *ABROAD))])


def redacted_text(text: Any) -> Any:
    return BOOK.redact(text)


def decomposed_text(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@for_each(
    "name",
    [
        *("Mira Okafor", "mira okafor", "MIRA OKAFOR", "Mira", "Okafor", "OKAFOR", "okafor", "Berg", "Sam", "Bea"),
        *("mira.okafor", "okafor_mira", "Okafor, Sam", "Mi\xadra", "\uff2f\uff4bafor", "J. O'Neil", "O\u2019Neil"),
        *("Li Wu", "li wu", "Li", "WU", "José", "Jose", "JOSÉ", decomposed_text("José"), "muller", "strasse"),
        *("Özlem", "ozlem", "ISIK", "\u0131\u015f\u0131k", "ОЛЕГ", decomposed_text("Йолкин"), "मीरा", "शर्मा"),
        *("m.okafor@example.org", "someone.else@lab.example", "jo@lab", "+49 431 8998-0", "+1 (555) 123/4567"),
        *("0431 8998-12", "0431/899812", "0000-0002-1825-0097", "0000 0002 1825 0097", "7c1d", "U77"),
    ],
)
@for_each(
    "sentence", ["{} stopped it", "asked by {}", "({})", "{}'s sample", "stage moved: {}, then beam", "{}", "at 5\n{}\nleft"]
)
def test_named_people_are_blanked(name: str, sentence: str) -> None:
    assert redacted_text(sentence.format(name)) == sentence.format(BLANKED)


@for_each(
    ("text", "expected"),
    [
        ("山田太郎が止めた", "[someone]が止めた"),
        ("昨日山田さんが止めた", "昨日[someone]さんが止めた"),
        ("太郎に聞く", "[someone]に聞く"),
        ("김철수가 멈췄다", "[someone]가 멈췄다"),
        (decomposed_text("김철수가"), "[someone]가"),
        ("철수에게", "[someone]에게"),
        ("王明停了束流", "[someone]停了束流"),
        ("マリアが", "[someone]が"),
        ("สมชายหยุดมัน", "[someone]หยุดมัน"),
        ("Mira山田", "[someone]"),
    ],
)
def test_names_in_scripts_without_spaces_are_found_inside_other_text(text: str, expected: str) -> None:
    assert redacted_text(text) == expected


@for_each(
    "text",
    [
        *("Miranda", "Okaforite", "a sample of li", "wu", "o and j", "J axis", "明日", "王水", "停了束流"),
        *("2026-10-06T08:00:00Z", "2026-10-06T08:00:00+02:00", "198.7 mA", "+1.5 mm", "-12", "1e+10", "360 frames", "4711"),
        *("rotary stage encoder offline", "lum:m102", "10 um/s", "25 keV at 5x", decomposed_text("für Élan")),
    ],
)
def test_what_is_no_person_stays(text: str) -> None:
    assert redacted_text(text) == text


@for_each("name", ["Okafor", "okafor", "Mira_Okafor", "Li"])
def test_a_name_may_be_part_of_another_word(name: str) -> None:
    assert redacted_text(f"{name}_run3 and run3_{name} and {name}3") == f"{BLANKED}_run3 and run3_{BLANKED} and {BLANKED}3"


def test_a_word_that_is_also_a_name_is_blanked() -> None:
    assert redacted_text("the van drove to der Strahl") == f"the {BLANKED} drove to {BLANKED} Strahl"


def test_names_apart_are_blanked_apart() -> None:
    assert redacted_text("Mira and Sam\nBea; Okafor") == f"{BLANKED} and {BLANKED}\n{BLANKED}; {BLANKED}"


def test_ids_stay_whatever_letters_and_digits_they_have() -> None:
    made = ("bea00000-0000-7000-8000-ada000000000", "00000000-7c1d-7000-8000-000000000000")
    for id in [*(str(new_id()) for _ in range(200)), *made]:
        assert redacted_text(f"run_{id}_{id.upper()} of {id}") == f"run_{id}_{id.upper()} of {id}"


def test_a_time_after_a_number_does_not_save_it() -> None:
    assert "8998" not in redacted_text("call +49 431 8998-0 2026-10-06T08:00:00Z")


def test_somebody_whose_identifier_is_an_id_is_blanked_all_the_same() -> None:
    id = str(new_id())
    assert name_book([KnownPerson("Mira", external_id=id)]).redact(f"asked by {id}") == f"asked by {BLANKED}"


def test_nested_data_keeps_its_shape_and_its_keys() -> None:
    nested = {
        "run_name": "Okafor overnight",
        "phases": [{"name": "Flat field", "failure": {"message": "held by Mira", "step_index": 3}}, None],
        "Mira": {"gain": 2, "on": True, "dwell": 0.1, "at": instant(START), "tags": ("Sam", "beam")},
    }
    assert redacted_text(nested) == {
        "run_name": f"{BLANKED} overnight",
        "phases": [{"name": "Flat field", "failure": {"message": f"held by {BLANKED}", "step_index": 3}}, None],
        "Mira": {"gain": 2, "on": True, "dwell": 0.1, "at": instant(START), "tags": [BLANKED, "beam"]},
    }


def test_where_nobody_is_known_addresses_are_blanked_all_the_same() -> None:
    assert name_book([]) == NameBook()
    assert NameBook().redact(["write to a@b.example", "call +49 431 8998-0", "Mira"]) == [
        f"write to {BLANKED}",
        f"call {BLANKED}",
        "Mira",
    ]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False), st.lists))
def test_numbers_stay(value: Any) -> None:
    assert redacted_text(value) == value


@given(st.text(), st.sampled_from(["Mira", "okafor", "山田太郎", "0000-0002-1825-0097", "m.okafor@example.org"]), st.text())
def test_nothing_around_a_name_hides_it(before: str, name: str, after: str) -> None:
    assert name not in redacted_text(f"{before} {name} {after}")


@pytest.fixture(scope="module")
def large_book() -> NameBook:
    """The book of ten thousand people with names of their own."""
    return book_of(10_000)


def book_of(count: int) -> NameBook:
    numbers = [f"{number:06}" for number in range(count)]
    words = [number.translate(str.maketrans("0123456789", "abcdefghij")).title() for number in numbers]
    many = [
        KnownPerson(f"{word} Kin{word}", f"{word}@lab", f"0431 {number}", f"0000-0002-{number}")
        for word, number in zip(words, numbers, strict=True)
    ]
    return name_book([*many, *map(KnownPerson, ABROAD)])


@pytest.mark.slow
@for_each("words", ["beam lost at 12:00, ", "0000-0002-", "a.", "+1 ", "1 ", "a@", "a_", "山", "2026-10-06 aaaaaa "])
def test_the_work_grows_with_the_text_and_not_with_the_people(large_book: NameBook, words: str) -> None:
    assert large_book.redact("asked by kinaaabcd") == f"asked by {BLANKED}"
    text = words * (1500 // len(words))
    once = calls_to_redact(large_book, text)
    assert once <= 1.1 * calls_to_redact(book_of(10), text)
    assert calls_to_redact(large_book, text * 4) <= 4.4 * once


def calls_to_redact(book: NameBook, text: str) -> int:
    """Return how many functions are called, in Python and in C, to redact a text."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        book.redact(text)
    finally:
        sys.setprofile(before)
    return calls
