"""A rehearsal: what each step would come to on a twin, and what that means for the whole."""

from dataclasses import replace
from typing import Any

import pytest

from baton.domain.conduct import rehearsal as rehearsals
from baton.domain.conduct.estimates import StepDuration, walk_of
from baton.domain.conduct.messages import Finish
from baton.domain.conduct.rehearsal import (
    RehearsalBasis,
    RehearsalPart,
    RehearsalVerdict,
    Rehearsed,
    RehearsedVerdict,
    part_times,
    rehearse,
)
from baton.domain.conduct.twin import TwinSignal, TwinValue, ValueSource
from baton.domain.equipment.values import SignalLimits
from baton.domain.procedure.procedure import ConductMode
from baton.domain.recipe.expansion import expansion_of
from baton.domain.recipe.step_checks import read_steps
from baton.domain.shared.action_signals import ActionForecast, ActionSignals
from baton.domain.steering.steering import SteeringSpace
from tests.support.fast_clock import START
from tests.support.tables import for_each
from tests.support.workflows.step_json import action, capture, captured_value, check, compute, setpoint, steered_value

OK, WAITS, REFUSED, FAILS, UNKNOWN = RehearsedVerdict
GOES_THROUGH, MAY_STOP_AT, STOPS_AT = RehearsalVerdict
LIMITED = SignalLimits(low=-10, high=10)
Raw = dict[str, Any]


def known_signal(address: str, value: object, source: ValueSource = ValueSource.READ, **more: Any) -> TwinSignal:
    """A signal whose value is known."""
    return TwinSignal(address, TwinValue(value, source, START), **more)


def limited_signal(address: str, value: object = 0.0) -> TwinSignal:
    """A signal whose owners set limits."""
    return known_signal(address, value, limits={"owners": LIMITED, "control_system": None})


def part(
    steps: list[Raw], closing_steps: tuple[Raw, ...] = (), mode: ConductMode = ConductMode.FLAT, **more: Any
) -> RehearsalPart:
    """A procedure of these steps."""
    expansion = expansion_of(read_steps(steps), read_steps(closing_steps), {})
    walk = replace(walk_of(expansion.steps, expansion.closing_steps), mode=mode)
    return RehearsalPart("any", expansion, walk, **more)


def rehearse_steps(steps: list[Raw], *signals: TwinSignal, closing_steps: tuple[Raw, ...] = (), **basis: Any) -> Rehearsed:
    """The rehearsal of one procedure on these signals."""
    return rehearse(RehearsalBasis((part(steps, closing_steps),), signals, START, **basis))


READ, LEDGER, ASSUMED = ValueSource.READ, ValueSource.LEDGER, ValueSource.ASSUMED
NOT_YET = check("bl7:t", 600.0, 5.0, timeout=60.0)
NEVER = check("bl7:t", 600.0, 5.0)


@for_each(
    ("steps", "signal", "verdict", "whole"),
    {  # by what the last step is
        "a true check": ([NEVER], known_signal("bl7:t", 598.0), OK, GOES_THROUGH),
        "a false check that waits": ([NOT_YET], known_signal("bl7:t", 20.0), WAITS, MAY_STOP_AT),
        "a false check that does not": ([NEVER], known_signal("bl7:t", 20.0), FAILS, STOPS_AT),
        "a check that was false when last known": ([NEVER], known_signal("bl7:t", 20.0, LEDGER), UNKNOWN, MAY_STOP_AT),
        "a check of what the steps themselves set": (
            [setpoint("bl7:t", 20.0), NOT_YET],
            known_signal("bl7:t", 600.0),
            FAILS,
            STOPS_AT,
        ),
        "a check of what nobody knows": ([NEVER], TwinSignal("bl7:t"), UNKNOWN, MAY_STOP_AT),
        "a capture of what nobody knows": ([capture("bl7:t", "t")], TwinSignal("bl7:t"), UNKNOWN, MAY_STOP_AT),
        "a capture of what is no number": ([capture("bl7:t", "t")], known_signal("bl7:t", "open"), FAILS, STOPS_AT),
        "a capture that was filled before": ([capture("bl7:t", "t")] * 2, known_signal("bl7:t", 1.0), FAILS, STOPS_AT),
        "an action that says nothing": ([action("any")], TwinSignal("bl7:t"), UNKNOWN, MAY_STOP_AT),
        "a program": ([compute("fit")], TwinSignal("bl7:t"), OK, GOES_THROUGH),
    }.values(),
)
def test_verdict_of_a_step(steps: list[Raw], signal: TwinSignal, verdict: RehearsedVerdict, whole: RehearsalVerdict) -> None:
    found = rehearse_steps(steps, signal)
    assert (found.steps[-1].verdict, found.verdict) == (verdict, whole)


def test_a_value_beyond_a_limit_is_refused_with_the_failure_of_the_conduct_and_the_closing_steps_follow() -> None:
    steps = [setpoint("bl7:x", value) for value in (9.0, 11.0, 3.0)]
    found = rehearse_steps(steps, limited_signal("bl7:x"), closing_steps=(setpoint("bl7:shutter", 0),))
    assert [(step.closing, step.step_index, step.verdict) for step in found.steps] == [
        (False, 0, OK),
        (False, 1, REFUSED),
        (True, 0, OK),
    ]
    assert found.trouble is not None
    assert found.trouble.code == "SetpointOutOfLimitsError"
    assert found.trouble.detail == "bl7:x was not set to 11.0: its owners allow values from -10.0 to 10.0."
    assert found.trouble.facts == {"address": "bl7:x", "value": 11.0, "low": -10, "high": 10, "whose": "owners"}
    assert found.ends[0].finish is Finish.FAILED
    assert found.near_limits["bl7:x"].margin == -1.0


def test_a_captured_value_inherits_the_mark_of_what_was_captured() -> None:
    steps = [capture("bl7:t", "t"), setpoint("bl7:x", captured_value("t")), setpoint("bl7:y", captured_value("t"))]
    marked = rehearse_steps(steps, known_signal("bl7:t", 4.0, LEDGER), limited_signal("bl7:x"))
    assert [step.source for step in marked.steps] == [LEDGER, LEDGER, LEDGER]
    assert [one.value for one in marked.writings] == [4.0, 4.0]
    unknown = rehearse_steps(steps, TwinSignal("bl7:t"), limited_signal("bl7:x"))
    assert [step.verdict for step in unknown.steps] == [UNKNOWN] * 3
    assumed = rehearse_steps(steps, TwinSignal("bl7:t"), limited_signal("bl7:x"), assumed={"t": 12.0})
    assert [step.verdict for step in assumed.steps] == [OK, REFUSED]
    assert assumed.steps[0].source is ASSUMED


def test_a_search_is_judged_wherever_it_may_go() -> None:
    space = SteeringSpace.model_validate({"axes": [{"name": "focus", "lower": -2, "upper": 12}]})
    search = part([setpoint("bl7:x", steered_value("focus"))], mode=ConductMode.ADVISED, space=space, point={"focus": -2.0})
    found = rehearse(RehearsalBasis((search,), (limited_signal("bl7:x"),), START))
    assert (found.verdict, found.steps[0].facts and found.steps[0].facts["value"]) == (STOPS_AT, 12.0)


def test_a_loop_is_walked_for_one_pass() -> None:
    loop = part([setpoint("bl7:x", 1.0)], (setpoint("bl7:x", 0.0),), mode=ConductMode.CONVERGED)
    found = rehearse(RehearsalBasis((loop,), (limited_signal("bl7:x"),), START))
    assert [one.value for one in found.writings] == [1.0, 0.0]


def test_travel_is_what_an_axis_moves() -> None:
    found = rehearse_steps([setpoint("bl7:x", value) for value in (2.0, -3.0, 1.0)], limited_signal("bl7:x", 1.0))
    travel = found.travel["bl7:x"]
    assert (travel.first, travel.last, travel.lowest, travel.highest) == (1.0, 1.0, -3.0, 2.0)
    assert (travel.distance, travel.moves) == (10.0, 3)


def test_an_action_is_taken_at_its_word_and_leaves_nothing_else_known() -> None:
    says = ActionForecast(3.0, ("file:///a.h5",), (("bl7:x", 4.0),))
    scan = {"scan": ActionSignals(writes=("axis", "camera"), rehearse=lambda params: says)}
    steps = [action("scan", axis="bl7:x", camera="bl7:cam"), check("bl7:x", 4.0), check("bl7:cam:Acquire", 1)]
    found = rehearse_steps(steps, limited_signal("bl7:x"), known_signal("bl7:cam:Acquire", 1), actions=scan)
    assert [step.verdict for step in found.steps] == [OK, OK, UNKNOWN]
    assert (list(found.files), dict(found.action_seconds)) == (["file:///a.h5"], {("action", "scan"): 3.0})
    refusing = {
        "scan": ActionSignals(writes=("axis",), rehearse=lambda params: ActionForecast(refusal=("No", "It may not.", {})))
    }
    refused = rehearse_steps([action("scan", axis="bl7:x")], actions=refusing)
    assert (refused.steps[0].verdict, refused.steps[0].code) == (REFUSED, "No")


def test_an_action_is_asked_with_its_parameters_as_it_takes_them() -> None:
    scan = {"scan": ActionSignals(rehearse=lambda params: ActionForecast(float(type(params["points"]) is list)))}
    assert rehearse_steps([action("scan", points=[1.0, 2.0])], actions=scan).action_seconds == {("action", "scan"): 1.0}


def test_a_part_that_stops_leaves_out_the_rest_of_its_group_alone() -> None:
    stops, goes = part([setpoint("bl7:x", 11.0)]), part([setpoint("bl7:x", 1.0)])
    parts = (stops, goes, replace(goes, group=1))
    found = rehearse(RehearsalBasis(parts, (limited_signal("bl7:x"),), START))
    assert [step.part for step in found.steps] == [0, 2]


def test_more_steps_than_can_be_walked_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsals, "MAX_STEPS", 3)
    found = rehearse_steps([setpoint("bl7:x", 1.0)] * 5)
    assert (len(found.steps), found.cut, found.verdict) == (3, True, MAY_STOP_AT)


def test_times_are_those_of_the_estimates() -> None:
    basis = RehearsalBasis(
        (part([setpoint("bl7:x", 1.0), action("scan")]),), (), START, {("setpoint", "bl7:x"): StepDuration(9, 2.0, 5.0)}
    )
    (times,) = part_times(basis, {("action", "scan"): 10.0})
    assert times.ends_at is not None
    assert times.ends_late_at is not None
    assert ((times.ends_at - START).total_seconds(), (times.ends_late_at - START).total_seconds()) == (12.0, 15.0)


def test_equal_bases_have_equal_fingerprints_and_a_changed_limit_another() -> None:
    basis = RehearsalBasis((part([setpoint("bl7:x", 1.0)]),), (limited_signal("bl7:x"),), START)
    assert replace(basis).fingerprint == basis.fingerprint
    narrower = known_signal("bl7:x", 0.0, limits={"owners": SignalLimits(high=5), "control_system": None})
    assert replace(basis, signals=(narrower,)).fingerprint != basis.fingerprint
