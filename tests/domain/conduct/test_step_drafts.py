"""Drafts of the steps of patterns: what they say of the steps, and that they refuse what a definition refuses."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.estimates import EstimateBasis, StepDuration
from baton.domain.conduct.step_drafts import DraftSteps, StepDraft
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.equipment.signals import SetAssetSignalLimits, SignalLimits
from baton.domain.recipe.steps import wire_form
from tests.support.domain.assets import facility_world, part, root
from tests.support.domain.flat_field import Raw, capture
from tests.support.domain.world import World, expect_refusal

X: Raw = {"address": "bl7:x", "start": 0, "stop": 2}
LINE: Raw = {"kind": "line", "axes": [X], "num": 3}


@pytest.fixture
def world() -> World:
    return facility_world()


def draft(world: World, **fields: Any) -> StepDraft:
    answer: StepDraft = world.ask(DraftSteps(pattern={**LINE, **fields}))
    return answer


def stage(world: World) -> UUID:
    """An asset in service that owns the axis."""
    id = part(world, root(world))
    world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value="bl7:x"), on=id)
    return id


def test_a_draft_has_the_steps_and_what_they_touch(world: World) -> None:
    owner_id = stage(world)
    world.when(SetAssetSignalLimits(address="bl7:x", high=5.0, reason="cable"), on=owner_id)
    answer = draft(world, at_point=[capture("signal_{n}", address="bl7:diode")], returns=True)
    assert [step["kind"] for step in wire_form(answer.steps)] == ["capture", *["setpoint", "capture"] * 3]
    assert (answer.point_count, answer.step_count, len(answer.closing_steps)) == (3, 8, 1)
    assert (answer.touched.written, answer.touched.read) == (("bl7:x",), ("bl7:diode",))
    (signal,) = answer.written_signals
    assert (signal.address, signal.owner_ids, signal.limits) == ("bl7:x", (owner_id,), SignalLimits(high=5.0))


def test_the_estimate_is_that_of_the_ledger(world: World) -> None:
    assert draft(world).estimate.basis is EstimateBasis.NONE
    world.ports["step_durations"] = {("setpoint", "bl7:x"): StepDuration(count=9, median=2.0, p90=3.0)}
    found = draft(world).estimate
    assert (found.remaining_seconds, found.basis, found.ends_at) == (6.0, EstimateBasis.HISTORY, None)


def test_a_signal_that_nobody_owns_has_no_owners_and_no_limits(world: World) -> None:
    (signal,) = draft(world).written_signals
    assert (signal.owner_ids, signal.limits) == ((), None)


def test_an_axis_without_limits_is_refused_where_the_deployment_asks_for_them(world: World) -> None:
    owner_id = stage(world)
    world.ports["deployment"].strict_limits = True
    with expect_refusal("UnlimitedPatternAxisError", "no_limits") as caught:
        draft(world)
    assert caught.value.facts == {"addresses": ["bl7:x"]}
    world.when(SetAssetSignalLimits(address="bl7:x", high=5.0, reason="cable"), on=owner_id)
    assert draft(world).point_count == 3
