"""Units: which are the same, what a number in one is in another, and which texts are no units."""

import pytest

from baton.domain.shared.units import UnitError, UnitPolicy, carry, convert, is_same_unit, known_unit

SAME = [("mm", "millimeter"), ("um", "µm"), ("um", "micron"), ("deg", "degree"), ("C", "degC"), ("enc", "enc")]
OTHER = [("mm", "um"), ("mm", "Encoder"), ("degree", "rad"), ("counts", "steps"), ("enc", "ticks")]
CONVERTED = [
    *[(1.5, "mm", "um", 1500.0), (250, "nm", "um", 0.25), (180, "degree", "rad", 3.14159265358979)],
    *[(20, "C", "K", 293.15), (8.1, "keV", "eV", 8100.0), (0.1, "mm/s", "um/s", 100.0), (2, "1/s", "Hz", 2.0)],
]
APART = [("mm", "degree"), ("percent", "degree"), ("mm", "Encoder"), ("MM", "mm"), ("Hz", "rpm")]
NO_UNITS = ["", " mm", "m**9**9**9", "10**10", "m m", "__import__('os')", "m" * 65, "m**-12", "(m)", "-", "\N{SNOWMAN}"]


def test_units_that_are_spelled_otherwise_may_be_the_same() -> None:
    assert [pair for pair in SAME if not is_same_unit(*pair)] == []
    assert [pair for pair in OTHER if is_same_unit(*pair)] == []


def test_a_number_is_given_in_another_unit() -> None:
    for number, given, wanted, found in CONVERTED:
        assert convert(number, given, wanted) == pytest.approx(found, rel=1e-12), (number, given, wanted)


def test_what_has_another_dimension_or_root_is_not_converted() -> None:
    for given, wanted in APART:
        with pytest.raises(UnitError, match=f"{given} cannot be converted to {wanted}"):
            convert(1.0, given, wanted)


def test_a_text_that_is_no_plain_product_of_units_is_never_evaluated() -> None:
    for text in NO_UNITS:
        assert known_unit(text) is None, text


def test_a_policy_says_what_becomes_of_another_unit() -> None:
    assert carry([1, (2.5, True), "in"], "mm", "um") == (1000.0, (2500.0, True), "in")
    assert carry(1, "mm", "um", UnitPolicy.IGNORE) == carry(1, "mm", "K", UnitPolicy.IGNORE) == 1
    assert carry(1, "mm", "millimeter", UnitPolicy.REFUSE) == 1
    with pytest.raises(UnitError, match="mm is not um, and UNIT_POLICY lets nothing be converted"):
        carry(1, "mm", "um", UnitPolicy.REFUSE)
