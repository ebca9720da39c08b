"""What EPICS alarms, times and names mean, and which values fit which signals."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.application.control import ControlValueCoercionError, MalformedControlAddressError, Quality
from baton.infrastructure.control.epics import alarm_text, check_name, quality
from baton.infrastructure.control.signal_values import Element, ValueShape, coerce, sample_time
from tests.support.tables import for_each

SHORT = ValueShape(Element.WHOLE, bounds=(-(2**15), 2**15 - 1))
TEXT = ValueShape(Element.TEXT, length=39)
CHOICE = ValueShape(Element.CHOICE, labels=("Closed", "Open"))
CHARACTERS = ValueShape(Element.CHARACTER, count=10, bounds=(0, 255))


@for_each(
    ("severity", "expected", "said"),
    [
        (0, Quality.GOOD, None),
        (1, Quality.UNCERTAIN, "MINOR HIGH"),
        (2, Quality.UNCERTAIN, "MAJOR HIGH"),
        (3, Quality.BAD, "INVALID HIGH"),
        (4, Quality.BAD, "severity 4 HIGH"),
        (-1, Quality.BAD, "severity -1 HIGH"),
    ],
)
def test_the_severity_of_an_alarm_is_the_quality(severity: int, expected: Quality, said: str | None) -> None:
    assert (quality(severity), alarm_text(severity, "HIGH")) == (expected, said)


def test_a_sample_has_the_time_of_its_source() -> None:
    assert sample_time(1_750_000_000, 250_000_999) == datetime(2025, 6, 15, 15, 6, 40, 250_000, tzinfo=UTC)


@for_each("seconds", [0, 631_152_000])
def test_a_signal_that_was_never_processed_has_no_time(seconds: int) -> None:
    assert sample_time(seconds, 0) is None


@for_each("address", ["", " ", "bl7: x", "bl7:x\n", "bl7:µ", "a\tb"])
def test_a_name_with_blanks_or_strange_characters_is_malformed(address: str) -> None:
    with pytest.raises(MalformedControlAddressError):
        check_name(address)


@for_each("address", ["bl7:x", "bl7:x.VAL$", "XF:31ID-ES{Dif-Ax:X}Mtr.RBV", "BR-C:1[0]<2>;3"])
def test_the_names_that_facilities_use_are_well_formed(address: str) -> None:
    assert check_name(address) == address


@for_each(
    ("value", "form", "held"),
    [
        (5, SHORT, 5),
        (5.0, SHORT, 5),
        (True, SHORT, 1),
        ([5], SHORT, 5),
        (2, ValueShape(Element.REAL), 2.0),
        (5, ValueShape(Element.REAL, count=3), [5.0]),
        ([1, 2.5], ValueShape(Element.REAL, count=0), [1.0, 2.5]),
        ("dark", TEXT, "dark"),
        (25, TEXT, "25"),
        ("Open", CHOICE, 1),
        (0, CHOICE, 0),
        (True, CHOICE, 1),
        (15, ValueShape(Element.CHOICE), 15),
        ("/data", CHARACTERS, [47, 100, 97, 116, 97]),
        (1, ValueShape(Element.TRUTH), True),
    ],
)
def test_a_value_that_fits_is_held_as_the_signal_holds_it(value: Any, form: ValueShape, held: Any) -> None:
    found = coerce("bl7:x", value, form)
    assert (found, type(found)) == (held, type(held))


@for_each(
    ("value", "form"),
    [
        (0.5, SHORT),
        (2**15, SHORT),
        ("5", SHORT),
        (None, SHORT),
        ([1, 2], SHORT),
        ([], SHORT),
        ("x", ValueShape(Element.REAL)),
        ([1, 2, 3], ValueShape(Element.REAL, count=2)),
        ([1, "x"], ValueShape(Element.REAL, count=2)),
        ("x" * 40, TEXT),
        ("é" * 20, TEXT),
        ("a\0b", TEXT),
        (16, ValueShape(Element.CHOICE)),
        ("Ajar", CHOICE),
        (2, CHOICE),
        (-1, CHOICE),
        ("far too long a text", CHARACTERS),
        (2, ValueShape(Element.TRUTH)),
        ({"a": 1}, ValueShape(Element.REAL)),
        (float("nan"), SHORT),
        (float("inf"), CHOICE),
    ],
)
def test_a_value_that_would_be_changed_is_refused(value: Any, form: ValueShape) -> None:
    with pytest.raises(ControlValueCoercionError, match="bl7:x"):
        coerce("bl7:x", value, form)


@given(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers() | st.text(), max_size=4)
    )
)
def test_whatever_is_written_is_held_unchanged_or_refused(value: Any) -> None:
    for form in (SHORT, ValueShape(Element.REAL, count=3), TEXT, CHOICE, CHARACTERS, ValueShape(Element.TRUTH)):
        try:
            held = coerce("bl7:x", value, form)
        except ControlValueCoercionError:
            continue
        if form is SHORT:
            assert held == (value[0] if isinstance(value, list) else value)
        if form is CHOICE:
            assert held in (0, 1)
