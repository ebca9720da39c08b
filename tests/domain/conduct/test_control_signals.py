"""What is on record about signals: owners, routes, limits, and the live conduct that has them."""

from typing import Any

import pytest
from pydantic import ValidationError

from baton.application.plant import ControlRoute
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.control_signals import ResolvedSignal, ResolveSignals
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.equipment.signals import SetAssetSignalLimits
from tests.support.domain.conducts import end_in_hold, open_conduct, register_procedure_from_recipe
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World
from tests.support.tables import for_each


def resolve(world: World, *addresses: str) -> list[ResolvedSignal]:
    return list(world.ask(ResolveSignals(addresses=addresses)).signals)


def test_each_signal_is_shown_once_with_its_owners_and_limits(line: Beamline) -> None:
    world, camera, shutter = line.world, line.hutch.camera, line.hutch.shutter
    for asset_id in (camera, shutter):
        world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value="hutch:cam"), on=asset_id)
    for asset_id, limits in ((camera, {"low": 1, "high": 9}), (shutter, {"high": 5})):
        world.when(SetAssetSignalLimits(address="hutch:cam:gain", reason="noise", **limits), on=asset_id)
    gain, foreign = resolve(world, "hutch:cam:gain", "foreign", "hutch:cam:gain")
    assert [owner.asset_id for owner in gain.owners] == sorted([camera, shutter])
    assert gain.limits is not None
    assert (gain.limits.low, gain.limits.high, gain.control_limits) == (1, 5, None)
    assert (foreign.address, foreign.owners, foreign.limits, foreign.claims) == ("foreign", (), None, ())


def test_a_signal_is_routed_by_the_longest_prefix_or_not_at_all(line: Beamline) -> None:
    line.world.ports["deployment"].control_routes = (
        ControlRoute(prefix="hutch:", substrate="epics_ca", read_only=True),
        ControlRoute(prefix="hutch:sim:", substrate="in_memory", simulated=True),
    )
    shown = [
        one.route and tuple(one.route.model_dump().values())
        for one in resolve(line.world, "hutch:cam", "hutch:sim:cam", "ring")
    ]
    assert shown == [("epics_ca", False, True), ("in_memory", True, False), None]


def test_the_live_conduct_that_has_an_owner_is_named_until_it_ends(line: Beamline) -> None:
    world, camera = line.world, line.hutch.camera
    world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value="hutch:cam"), on=camera)
    procedure_id = register_procedure_from_recipe(world, target_asset_ids=[camera])
    assert resolve(world, "hutch:cam")[0].claims == ()
    conduct_id = open_conduct(world, ConductProcedure(), on=procedure_id)
    (claim,) = resolve(world, "hutch:cam.VAL")[0].claims
    assert (claim.asset_id, claim.procedure_id, claim.conduct_id) == (camera, procedure_id, conduct_id)
    end_in_hold(world, procedure_id)
    assert resolve(world, "hutch:cam")[0].claims == ()


@for_each("addresses", [[], ["a"] * 1001, [""], ["a" * 301], [" a"], [7]])
def test_a_question_of_the_wrong_form_does_not_reach_the_domain(addresses: list[Any]) -> None:
    with pytest.raises(ValidationError):
        ResolveSignals(addresses=addresses)
