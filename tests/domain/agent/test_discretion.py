"""What a model is shown names nobody, and is otherwise what it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.access.actor import ActorProfile
from domain.agent.discretion import BLANKED, discreet, people_in
from domain.kernel import instant
from tests.domain.world import START, new_id


def profile(name: str, email: str | None = None, phone: str | None = None, external_id: str | None = None) -> ActorProfile:
    return ActorProfile(new_id(), name, email, phone, None, external_id, None, created_at=START, updated_at=START)


MIRA = profile("Mira Okafor", "m.okafor@example.org", "0431 8998-12", "0000-0002-1825-0097")
PEOPLE = people_in([MIRA, profile("Li Wu"), profile("Jan van der Berg"), profile("Okafor, Sam")])


def said(text: Any) -> Any:
    return discreet(text, PEOPLE)


@pytest.mark.parametrize(
    "name",
    [
        *("Mira Okafor", "mira okafor", "MIRA OKAFOR", "Mira", "Okafor", "OKAFOR", "Li Wu", "Berg", "Sam"),
        *("m.okafor@example.org", "someone.else@lab.example", "0431 8998-12", "+49 431 8998-0", "+1 (555) 123/4567"),
        "0000-0002-1825-0097",
    ],
)
@pytest.mark.parametrize(
    "sentence", ["{} stopped it", "asked by {}", "({})", "{}'s sample", "stage moved: {}, then beam", "{}"]
)
def test_whoever_is_named_is_blanked(name: str, sentence: str) -> None:
    assert said(sentence.format(name)) == sentence.format(BLANKED)


@pytest.mark.parametrize(
    "text",
    [
        *("Miranda", "Okaforite", "the van drove", "der Strahl", "a sample of Li", "Wu"),
        *("2026-10-06T08:00:00Z", "2026-10-06T08:00:00+02:00", "198.7 mA", "+1.5 mm", "-12", "1e+10", "360 frames"),
        *("rotary stage encoder offline", "lum:m102", "10 um/s", "25 keV at 5x"),
    ],
)
def test_what_is_no_person_stays(text: str) -> None:
    assert said(text) == text


def test_ids_stay_whatever_digits_they_have() -> None:
    for _ in range(200):
        assert said(id := str(new_id())) == id


def test_nested_data_keeps_its_shape_and_its_keys() -> None:
    told = {
        "run_name": "Okafor overnight",
        "phases": [{"name": "Flat field", "failure": {"message": "held by Mira", "step_index": 3}}, None],
        "Mira": {"gain": 2, "on": True, "dwell": 0.1, "at": instant(START), "tags": ("Sam", "beam")},
    }
    assert said(told) == {
        "run_name": f"{BLANKED} overnight",
        "phases": [{"name": "Flat field", "failure": {"message": f"held by {BLANKED}", "step_index": 3}}, None],
        "Mira": {"gain": 2, "on": True, "dwell": 0.1, "at": instant(START), "tags": [BLANKED, "beam"]},
    }


def test_where_nobody_is_known_addresses_are_blanked_all_the_same() -> None:
    assert people_in([]) is None
    assert discreet(["write to a@b.example", "call +49 431 8998-0", "Mira"], None) == [
        f"write to {BLANKED}",
        f"call {BLANKED}",
        "Mira",
    ]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False), st.lists))
def test_numbers_stay(value: Any) -> None:
    assert said(value) == value
