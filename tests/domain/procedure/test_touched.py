"""Which signals steps touch: by their kind, and by what actions declare of their parameters."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.application.conduct.actions import declared_signals, touches
from baton.domain.procedure.touched import TouchedSignals, known_values, touched_signals
from baton.domain.recipe.step_checks import read_steps
from baton.domain.shared.action_signals import ActionSignals
from baton.domain.steering.steering import SteeringAxis, SteeringSpace
from baton.infrastructure.actions.acquisition import BUILT_IN, camera_signal, writer_signal
from baton.infrastructure.plugins import ActionRegistry
from tests.support.tables import for_each
from tests.support.workflows.step_json import action, capture, captured_value, check, compute, setpoint, steered_value

BUILT_IN_SIGNALS = ActionRegistry(BUILT_IN).signals
PICTURE = {"detector": "bl7:cam1:", "dwell": 0.1, "trigger_mode": "Internal", "repetitions": 1}


def touched_by(*steps: dict[str, Any], **actions: ActionSignals) -> TouchedSignals:
    return touched_signals(read_steps(steps), {**BUILT_IN_SIGNALS, **actions})


CASES: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    (setpoint("a", 1), ("a",), ()),
    (setpoint("a", captured_value("n")), ("a",), ()),
    (setpoint("a", steered_value("x"), verify=True), ("a",), ()),
    (setpoint("a", 1, verify={"tolerance": 0.1, "address": "a:rbv"}), ("a",), ("a:rbv",)),
    (check("a", 1), (), ("a",)),
    (capture("a", "n"), (), ("a",)),
    (compute("fit"), (), ()),
    (action("collect", **PICTURE), ("bl7:cam1:",), ()),
    (action("discrete", **PICTURE, axis="bl7:x", points=[1], wait=0), ("bl7:cam1:", "bl7:x"), ()),
    (action("continuous", **PICTURE, axis="bl7:x", start=0, stop=1), ("bl7:cam1:", "bl7:x"), ()),
    (action("stream", detector="bl7:cam1:", dwell=1, events=1), ("bl7:HDF1", "bl7:cam1:"), ()),
    (action("stream", dwell=1, events=1), ("action:stream",), ()),
    (action("collect", detector=7), ("action:collect",), ()),
    (action("bake", heater="bl7:heater"), ("action:bake",), ()),
]


@for_each(("step", "written", "read"), CASES)
def test_a_step_touches(step: dict[str, Any], written: tuple[str, ...], read: tuple[str, ...]) -> None:
    assert touched_by(step) == TouchedSignals(written=written, read=read)


def test_every_built_in_action_declares_the_signals_it_writes() -> None:
    assert BUILT_IN_SIGNALS.keys() == BUILT_IN.keys()
    written = touched_by(action("stream", detector="bl7:cam1", dwell=1, events=1)).written
    for signal in (camera_signal("bl7:cam1", "Acquire"), writer_signal("bl7:cam1", "Capture")):
        assert any(signal.startswith(f"{address}:") for address in written)


def test_a_parameter_may_hold_several_addresses_or_none() -> None:
    signals = ActionSignals(writes=("axes",), reads=("monitors",))
    moved = action("move", axes=["bl7:y", "bl7:x"], monitors="bl7:current")
    assert touched_by(moved, move=signals) == TouchedSignals(written=("bl7:x", "bl7:y"), read=("bl7:current",))
    assert touched_by(action("move"), move=signals) == TouchedSignals()
    assert touched_by(action("move"), move=ActionSignals()) == TouchedSignals(), "it says that it touches nothing"


@for_each("value", [7, {"a": "b"}, ["bl7:x", 7], True])
def test_what_holds_no_address_counts_as_undeclared(value: Any) -> None:
    assert touched_by(action("move", axes=value), move=ActionSignals(writes=("axes",))).written == ("action:move",)


def test_a_body_is_declared_where_it_is_written() -> None:
    @touches(writes=["heater"], reads=["probe"])
    async def bake(*_: Any) -> dict[str, Any]:
        return {}

    async def older(*_: Any) -> dict[str, Any]:
        return {}

    assert declared_signals(bake) == ActionSignals(("heater",), ("probe",))
    assert declared_signals(older) is None


ADDRESSES = st.sampled_from(["a", "b", "a.RBV", "c:d"])
STEPS = st.lists(
    st.one_of(
        st.builds(lambda at: setpoint(at, 1), ADDRESSES),
        st.builds(lambda at: check(at, 1), ADDRESSES),
        st.builds(lambda at: capture(at, "n"), ADDRESSES),
    ),
    max_size=8,
)


@given(STEPS)
def test_everything_is_listed_once_and_what_is_written_is_not_listed_as_read(steps: list[dict[str, Any]]) -> None:
    found = touched_by(*steps)
    written = {step["address"] for step in steps if step["kind"] == "setpoint"}
    assert list(found.written) == sorted(written)
    assert list(found.read) == sorted({step["address"] for step in steps} - written)


SPACE = SteeringSpace(
    axes=(SteeringAxis(name="x", lower=-1.0, upper=2.0), SteeringAxis(name="gain", choices=(1.0, "high", 4.0)))
)


@for_each(
    ("value", "space", "known"),
    [
        (5, None, [5]),
        (True, None, []),
        ("Open", None, []),
        (captured_value("n"), SPACE, []),
        (steered_value("x"), None, []),
        (steered_value("x"), SPACE, [-1.0, 2.0]),
        (steered_value("gain"), SPACE, [1.0, 4.0]),
    ],
)
def test_the_numbers_that_are_known_beforehand(value: Any, space: SteeringSpace | None, known: list[float]) -> None:
    (step,) = read_steps([setpoint("a", value)])
    assert list(known_values(step, space)) == known  # type: ignore[arg-type]
