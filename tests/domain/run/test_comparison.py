"""What was different: surprise is told by how far something lies from the other run, or from what is usual."""

import pytest

from baton.domain.run.comparison import Aspect, Fact, FactKey, Facts, compare

FILTER = FactKey(Aspect.SETPOINT, "bl7:filter in Scan")
CENTRE = FactKey(Aspect.CALIBRATION, "rotation_center of Camera: center")
MOTOR = FactKey(Aspect.DURATION, "setpoint bl7:rotary in Scan")
SHUTTER = FactKey(Aspect.DURATION, "setpoint bl7:shutter in Scan")
CURRENT = FactKey(Aspect.READING, "ring current")
HEIGHT = FactKey(Aspect.CAPTURE, "height in Scan")
SAMPLE = FactKey(Aspect.SAMPLE, "")
EXPOSURE = FactKey(Aspect.PARAMETER, "exposure")


def facts(**over: Fact) -> Facts:
    """A run as most are; captures and readings vary by some per cent from run to run."""
    usual = {
        FILTER: Fact("Al 1 mm"),
        CENTRE: Fact(1024.5),
        MOTOR: Fact(0.8, "s", 200),
        SHUTTER: Fact(0.01, "s", 2),
        CURRENT: Fact(300.0, "mA"),
        HEIGHT: Fact(4.2, "mm"),
        SAMPLE: Fact("Bar 7"),
        EXPOSURE: Fact(0.1, "s"),
    }
    keys = {"filter": FILTER, "centre": CENTRE, "motor": MOTOR, "shutter": SHUTTER, "current": CURRENT}
    keys |= {"height": HEIGHT, "sample": SAMPLE, "exposure": EXPOSURE}
    return {**usual, **{keys[name]: fact for name, fact in over.items()}}


UNLIKE = facts(
    filter=Fact("Cu 0.5 mm"),
    centre=Fact(1031.25),
    motor=Fact(4.0, "s", 200),
    shutter=Fact(0.02, "s", 2),
    current=Fact(290.0, "mA"),
    height=Fact(4.6, "mm"),
    sample=Fact("Bar 8"),
)


def test_one_calibration_one_filter_and_one_slow_motor_come_first() -> None:
    rows = compare(UNLIKE, facts())
    assert {FactKey(row.aspect, row.path) for row in rows[:3]} == {CENTRE, FILTER, MOTOR}
    assert all(row.surprise > 2 * rows[3].surprise for row in rows[:3])


def test_against_twenty_the_same_three_come_first_with_what_is_usual() -> None:
    usual = [
        facts(current=Fact(300.0 + number, "mA"), height=Fact(4.2 + number / 20, "mm"), sample=Fact(f"Bar {number}"))
        for number in range(20)
    ]
    rows = compare(UNLIKE, usual[0], usual)
    assert {FactKey(row.aspect, row.path) for row in rows[:3]} == {CENTRE, FILTER, MOTOR}
    assert {row.path: row.usual for row in rows[:3]} == {CENTRE.path: 1024.5, FILTER.path: "Al 1 mm", MOTOR.path: 0.8}


def test_equal_runs_differ_in_nothing() -> None:
    assert compare(facts(), facts()) == []
    assert compare(facts(), facts(), [facts()] * 20) == []


def test_a_sentence_says_what_differs_and_not_why() -> None:
    [row] = compare(facts(exposure=Fact(0.2, "s")), facts())
    assert row.sentence == "The parameter exposure is 0.2 s here, and 0.1 s there."
    [row] = compare(facts(exposure=Fact(0.2, "s")), facts(), [facts()] * 5)
    assert row.sentence == "The parameter exposure is 0.2 s, where 0.1 s is usual."


@pytest.mark.parametrize("missing", [EXPOSURE, HEIGHT, FILTER])
def test_what_one_run_lacks_is_a_difference(missing: FactKey) -> None:
    less = {key: fact for key, fact in facts().items() if key != missing}
    [row] = compare(less, facts())
    assert (FactKey(row.aspect, row.path), row.this, row.that) == (missing, None, facts()[missing].value)
    [row] = compare(facts(), less)
    assert (row.this, row.that) == (facts()[missing].value, None)


def test_what_is_measured_again_a_little_otherwise_is_no_difference() -> None:
    assert compare(facts(current=Fact(301.0, "mA")), facts()) == []
