"""A rehearsal and a conduct agree: they write the same values to the same addresses in the same order, and end alike."""

import asyncio
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.conduct.conduct import ConductProcedure, ConductUntilConverged
from baton.domain.conduct.messages import ConductOutcome
from baton.domain.conduct.pins import VirtualAxis, without_virtual_axes
from baton.domain.conduct.rehearsal import RehearsalVerdict, Rehearsed, RehearsedVerdict
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.equipment.partition import Affine
from baton.domain.equipment.values import SignalLimits
from baton.domain.procedure.procedure import ConductMode
from baton.domain.recipe.expansion import expand
from baton.domain.recipe.step_checks import read_steps
from baton.domain.recipe.steps import wire_form
from tests.support.application.rehearsals import MOTORS, ComparedConduct
from tests.support.domain.conducts import LOOP, SEARCH
from tests.support.fast_clock import skipping_time
from tests.support.workflows.step_json import action, capture, captured_value, check, compute, setpoint, steered_value

AXIS_ID = uuid4()
AXIS = f"asset:{AXIS_ID}"
AXES = {AXIS: VirtualAxis(AXIS_ID, "Focus", Affine(kind="Affine", gain=2.0, offset=0.5), ("bl7:y",), ())}
NUMBERS = st.sampled_from([-5.0, -4.9, -1.0, 0.0, 0.5, 1.5, 2.0, 3.0, 5.0, 5.5])
SIGNALS = st.sampled_from(["bl7:a", "bl7:b", "bl7:c", "bl7:x", "bl7:y"])


class Drawn(NamedTuple):
    """A recipe that was drawn, and how it is conducted."""

    steps: list[dict[str, Any]]
    closing_steps: list[dict[str, Any]]
    mode: ConductMode


@st.composite
def step_lists(draw: st.DrawFn, prefix: str, most: int) -> list[dict[str, Any]]:
    """Draw steps of all five kinds, those on a virtual axis too; references are to what was captured before."""
    steps: list[dict[str, Any]] = []
    captured: list[str] = []
    outputs: list[str] = []
    for index in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["set", "set", "verify", "captured", "axis", "check", "capture", "act", "compute"]))
        address, number = draw(SIGNALS), draw(NUMBERS)
        match kind:
            case "captured" if captured:
                steps.append(setpoint(address, captured_value(draw(st.sampled_from(captured)))))
            case "verify":
                verify = draw(st.sampled_from([True, {"tolerance": 0.01}, {"tolerance": 0.01, "timeout": 5.0}]))
                steps.append(setpoint(address, number, verify=verify))
            case "axis":
                steps.append(setpoint(AXIS, number))
            case "check":
                steps.append(check(address, number, draw(st.sampled_from([0.0, 3.0, 20.0, 20.0]))))
            case "capture":
                captured.append(f"{prefix}{index}")
                steps.append(capture(draw(st.sampled_from([address, "bl7:x.RBV"])), captured[-1]))
            case "act":
                steps.append(
                    action("sweep", axis=draw(st.sampled_from(["bl7:x", "bl7:y"])), start=number, stop=draw(NUMBERS))
                )
            case "compute":
                published: dict[str, Any] = {}
                if prefix == "m":  # each reads what the one before it published
                    read = [{"__output__": outputs[-1]}] if outputs else []
                    outputs.append(f"o{index}")
                    published = {"output_ref_name": outputs[-1], "input_uris": read}
                steps.append(compute("fit", output_uri=f"file:///{prefix}{index}.h5", **published))
            case _:
                steps.append(setpoint(address, number))
    return wire_form(without_virtual_axes(expand(read_steps(steps), {}), AXES))  # type: ignore[return-value]


@st.composite
def recipes(draw: st.DrawFn) -> Drawn:
    mode = draw(st.sampled_from(ConductMode))
    steps = draw(step_lists("m", 12))
    if mode is not ConductMode.FLAT:
        steps = [*steps, capture("bl7:b", "sharpness")]
    if mode is ConductMode.ADVISED:
        steps = [setpoint("bl7:x", steered_value("focus")), *steps]
    return Drawn(steps, draw(step_lists("c", 5)), mode)


HOW: dict[ConductMode, tuple[type[Any], dict[str, Any]]] = {
    ConductMode.FLAT: (ConductProcedure, {}),
    ConductMode.CONVERGED: (ConductUntilConverged, LOOP),
    ConductMode.ADVISED: (ConductUntilAdvised, SEARCH),
}


def compare(drawn: Drawn, limits: dict[str, SignalLimits] | None = None) -> tuple[Rehearsed, ConductOutcome, list[Any]]:
    """Rehearse and conduct the same steps; return both results, and what the conduct wrote."""

    async def run() -> tuple[Rehearsed, ConductOutcome, list[Any]]:
        with skipping_time(asyncio.get_running_loop()) as time:
            compared = ComparedConduct.at(time, limits or MOTORS)
            how, options = HOW[drawn.mode]
            opened = await compared.open(drawn.steps, drawn.closing_steps, how, **options)
            point = {"focus": -2.0} if drawn.mode is ConductMode.ADVISED else None
            rehearsed = await compared.rehearse(opened, drawn.mode, point=point)
            outcome = await compared.conduct(opened, drawn.mode, point)
            return rehearsed, outcome, compared.written.writes

    return asyncio.run(run())


def assert_agree(drawn: Drawn) -> None:
    rehearsed, outcome, writes = compare(drawn)
    if any(step.verdict is RehearsedVerdict.UNKNOWN for step in rehearsed.steps):
        return
    assert [(one.address, one.value) for one in rehearsed.writings] == writes
    assert rehearsed.ends[0].finish is outcome.finish
    if outcome.failure is not None:
        (stop, *_) = [step for step in rehearsed.steps if step.verdict in (RehearsedVerdict.REFUSED, RehearsedVerdict.FAILS)]
        assert outcome.failure.step_index == stop.step_index
        said = (outcome.failure.error_class, outcome.failure.message, outcome.failure.facts)
        assert said == (stop.code, stop.detail, stop.facts or {})


@given(recipes())
@settings(max_examples=25, deadline=None)
def test_a_rehearsal_writes_what_the_conduct_writes_and_ends_as_it_ends(drawn: Drawn) -> None:
    assert_agree(drawn)


@pytest.mark.soak
@given(recipes())
@settings(max_examples=400, deadline=None)
def test_many_rehearsals_agree_with_their_conducts(drawn: Drawn) -> None:
    assert_agree(drawn)


def test_a_limit_that_only_the_conduct_asks_for_is_found_out() -> None:
    drawn = Drawn([setpoint("bl7:x", 4.0), setpoint("bl7:a", 1)], [setpoint("bl7:shutter", 0)], ConductMode.FLAT)
    assert_agree(drawn)
    rehearsed, outcome, writes = compare(drawn, {**MOTORS, "bl7:x": SignalLimits(low=-5, high=3)})
    assert rehearsed.verdict is RehearsalVerdict.STOPS_AT
    assert [one.address for one in rehearsed.writings] == [address for address, _ in writes] == ["bl7:shutter"]
    assert outcome.failure is not None
    assert rehearsed.trouble is not None
    assert rehearsed.trouble.facts == outcome.failure.facts
