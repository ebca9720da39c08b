"""The roles of a plan: who may play them, in which order objections are raised, and which are left unplayed."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.equipment.assembly import DefineAssembly
from baton.domain.equipment.asset import AssetAttachedToFixture, AssetFamilyAdded
from baton.domain.equipment.asset_parts import RemoveAssetPort
from baton.domain.equipment.family import AddFamilyRole, FamilyVersioned
from baton.domain.equipment.fixture import FixtureRegistered
from baton.domain.equipment.role import DefineRole
from baton.domain.recipe.method import Method, MethodRequiredRoleAdded
from baton.domain.recipe.plan import PlanRoleBound, PlanRoleUnbound, VersionPlan
from baton.domain.recipe.plan_parts import BindPlanRole, UnbindPlanRole, unbound_roles
from baton.domain.shared.refusals import Refusal
from tests.support.domain.assets import family
from tests.support.domain.plans import TRIGGER_IN, PlanHutch, imaging_hutch
from tests.support.domain.world import World, expect_refusal, new_id

Case = Callable[[PlanHutch, UUID], tuple[str, UUID]]


@pytest.fixture
def hutch() -> PlanHutch:
    made = imaging_hutch(World())
    made.role(required_ports=[TRIGGER_IN])
    return made


def contract(hutch: PlanHutch, *affordances: str) -> UUID:
    """An equipment role that asks for these affordances."""
    asked = affordances or ("Imageable", "Triggerable")
    return hutch.world.create(DefineRole(name="Detector", description="Detects.", required_affordances=asked))


def presenting_family(hutch: PlanHutch, role_id: UUID, *affordances: str) -> UUID:
    """A family that presents a role, and may have lost affordances since."""
    asked = ("Imageable", "Triggerable")
    family_id = family(hutch.world, f"Presenter of {len(affordances)}", None, *asked)
    hutch.world.when(AddFamilyRole(role_id=role_id), on=family_id)
    now = {"affordances": affordances, "settings_schema": None, "settings_schema_revision": 0}
    hutch.world.given(family_id, FamilyVersioned(version_tag="2", **now))
    return family_id


def in_fixture(hutch: PlanHutch, asset_id: UUID, *role_ids: UUID) -> None:
    """Attach an asset to a fixture whose assembly presents these roles."""
    assembly_id = hutch.world.create(DefineAssembly(name="Sample tower", presented_role_ids=role_ids))
    fixture_id = new_id()
    made = {"assembly_content_hash": "0" * 64, "surface_id": new_id(), "slot_asset_bindings": ()}
    hutch.world.given(fixture_id, FixtureRegistered(assembly_id=assembly_id, parameter_overrides={}, **made))
    hutch.world.given(asset_id, AssetAttachedToFixture(fixture_id=fixture_id))


def test_a_role_is_bound_once_and_unbound_once(hutch: PlanHutch) -> None:
    plan_id = hutch.define_plan()
    assert hutch.bind(plan_id, hutch.camera, " detector ") == [PlanRoleBound(role_name="detector", asset_id=hutch.camera)]
    assert hutch.plan(plan_id).asset_in_role("detector") == hutch.camera
    unbind = UnbindPlanRole(role_name="detector")
    assert hutch.world.when(unbind, on=plan_id) == [PlanRoleUnbound(role_name="detector")]
    with expect_refusal("PlanRoleNotBoundError") as caught:
        hutch.world.when(unbind, on=plan_id)
    assert caught.value.status == 404
    hutch.bind(plan_id, hutch.camera)


def test_an_asset_may_play_several_roles_shown_by_name(hutch: PlanHutch) -> None:
    for name in ("viewer", "beam_monitor"):
        hutch.role(name)
    plan_id = hutch.define_plan()
    for name in ("viewer", "detector", "beam_monitor"):
        hutch.bind(plan_id, hutch.camera, name)
    shown = [(one.role_name, one.asset_id) for one in hutch.plan(plan_id).role_bindings]
    assert shown == [(name, hutch.camera) for name in ("beam_monitor", "detector", "viewer")]


def stranger_to_a_bound_role(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    hutch.bind(plan_id, hutch.camera)
    return "detector", hutch.asset("Stranger")


def bound_role(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    hutch.bind(plan_id, hutch.camera)
    return "detector", hutch.camera


def bound_role_that_the_method_dropped(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    hutch.world.given(plan_id, PlanRoleBound(role_name="viewer", asset_id=hutch.camera))
    return "viewer", hutch.camera


def require_role(hutch: PlanHutch, role_id: UUID) -> None:
    asked = {"role_name": "viewer", "family_id": None, "role_id": role_id, "optional": False}
    hutch.world.given(hutch.method_id, MethodRequiredRoleAdded(required_ports=[TRIGGER_IN], **asked))


def of_an_unknown_contract(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    require_role(hutch, new_id())
    return of_a_family_nobody_knows(hutch, plan_id)


def of_a_family_nobody_knows(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    if hutch.world.state(Method, hutch.method_id).required_role("viewer") is None:
        require_role(hutch, contract(hutch))
    hutch.world.given(hutch.timing_box, AssetFamilyAdded(family_id=new_id()))
    return "viewer", hutch.timing_box


def without_presenter(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    require_role(hutch, contract(hutch))
    return "viewer", hutch.timing_box


def with_affordances_of_one_and_presentation_of_another(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    role_id = contract(hutch)
    require_role(hutch, role_id)
    lapsed = presenting_family(hutch, role_id, "Imageable")
    hutch.world.given(hutch.camera, AssetFamilyAdded(family_id=lapsed))
    return "viewer", hutch.camera


def in_a_fixture_of_another_role(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    require_role(hutch, contract(hutch))
    other = hutch.world.create(DefineRole(name="Mover", description="Moves.", required_affordances=[]))
    in_fixture(hutch, hutch.camera, other)
    return "viewer", hutch.camera


def wired_elsewhere(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    hutch.port(hutch.shutter, "trigger_in")
    hutch.wire(plan_id, hutch.timing_box, "trigger_out", hutch.shutter, "trigger_in")
    return "detector", hutch.camera


def without_its_port(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    hutch.world.when(RemoveAssetPort(port_name="trigger_in"), on=hutch.camera)
    return wired_elsewhere(hutch, plan_id)


def fed_from_elsewhere(hutch: PlanHutch, plan_id: UUID) -> tuple[str, UUID]:
    hutch.role("driver", required_ports=[{"port_name": "trigger_out", "direction": "Output", "signal_type": "TTL"}])
    hutch.port(hutch.camera, "trigger_out", "Output")
    hutch.wire(plan_id, hutch.timing_box, "trigger_out", hutch.camera, "trigger_in")
    return "driver", hutch.camera


@pytest.mark.parametrize(
    ("case", "refusal", "status"),
    [
        (lambda hutch, plan_id: ("detector", new_id()), "PlanRoleAssetNotBoundError", 409),
        (stranger_to_a_bound_role, "PlanRoleAssetNotBoundError", 409),
        (bound_role, "PlanRoleAlreadyBoundError", 409),
        (bound_role_that_the_method_dropped, "PlanRoleAlreadyBoundError", 409),
        (lambda hutch, plan_id: ("Detector", hutch.timing_box), "PlanRoleNameNotDeclaredError", 409),
        (lambda hutch, plan_id: ("detector", hutch.timing_box), "PlanRoleFamilyMismatchError", 409),
        (of_an_unknown_contract, "RoleNotFoundError", 404),
        (of_a_family_nobody_knows, "FamilyNotFoundError", 404),
        (without_presenter, "PlanRoleAssetCannotPresentError", 409),
        (with_affordances_of_one_and_presentation_of_another, "PlanRoleAssetCannotPresentError", 409),
        (in_a_fixture_of_another_role, "PlanRoleAssetCannotPresentError", 409),
        (without_its_port, "PlanRolePortCoverageNotSatisfiedError", 409),
        (wired_elsewhere, "PlanWireRoleEndpointMismatchError", 409),
        (fed_from_elsewhere, "PlanWireRoleEndpointMismatchError", 409),
    ],
)
def test_a_binding_is_refused_by_the_first_rule_it_breaks(hutch: PlanHutch, case: Case, refusal: str, status: int) -> None:
    """Where a binding breaks two rules, the earlier one of the gate is named."""
    plan_id = hutch.define_plan()
    role_name, asset_id = case(hutch, plan_id)
    before = hutch.plan(plan_id)
    with expect_refusal(refusal) as caught:
        hutch.bind(plan_id, asset_id, role_name)
    assert caught.value.status == status
    assert hutch.plan(plan_id) == before


@pytest.mark.parametrize("command", [BindPlanRole(role_name=" ", asset_id=new_id()), UnbindPlanRole(role_name=" ")])
def test_the_state_is_judged_first_then_a_blank_name(hutch: PlanHutch, command: Any) -> None:
    plan_id = hutch.define_plan()
    with expect_refusal("InvalidRoleNameError", "blank"):
        hutch.world.when(command, on=plan_id)
    hutch.world.when(VersionPlan(version_tag="2026-Q2"), on=plan_id)
    with expect_refusal(command.Cannot, "versioned"):
        hutch.world.when(command, on=plan_id)


def test_every_port_that_is_missing_is_named_to_the_letter(hutch: PlanHutch) -> None:
    hutch.role("viewer", required_ports=[{**TRIGGER_IN, "signal_type": "ttl"}, {**TRIGGER_IN, "port_name": "gate_in"}])
    plan_id = hutch.define_plan()
    hutch.port(hutch.camera, "gate_in", "Output")
    with expect_refusal("PlanRolePortCoverageNotSatisfiedError", "ports_missing") as caught:
        hutch.bind(plan_id, hutch.camera, "viewer")
    assert caught.value.facts["missing_ports"] == [
        {**TRIGGER_IN, "port_name": "gate_in"},
        {**TRIGGER_IN, "signal_type": "ttl"},
    ]


def test_one_family_that_presents_the_role_and_keeps_its_contract_will_do(hutch: PlanHutch) -> None:
    role_id = contract(hutch)
    require_role(hutch, role_id)
    hutch.world.when(AddFamilyRole(role_id=role_id), on=hutch.camera_family)
    plan_id = hutch.define_plan()
    assert hutch.bind(plan_id, hutch.camera, "viewer")


def test_in_a_fixture_whose_assembly_presents_the_role_affordances_are_not_looked_at(hutch: PlanHutch) -> None:
    role_id = contract(hutch, "Rotatable")
    require_role(hutch, role_id)
    in_fixture(hutch, hutch.camera, role_id)
    plan_id = hutch.define_plan()
    assert hutch.bind(plan_id, hutch.camera, "viewer")


def test_a_role_that_must_be_played_and_is_not_is_known_by_name(hutch: PlanHutch) -> None:
    hutch.role("viewer", optional=True)
    hutch.role("beam_monitor")
    plan_id = hutch.define_plan()

    def roles_left() -> tuple[str, ...]:
        return unbound_roles(hutch.plan(plan_id), hutch.world.state(Method, hutch.method_id))

    assert roles_left() == ("beam_monitor", "detector")
    hutch.bind(plan_id, hutch.camera, "beam_monitor")
    assert roles_left() == ("detector",)
    hutch.bind(plan_id, hutch.camera)
    assert roles_left() == ()


NAMES = st.sampled_from(["trigger_in", "gate_in"])


@settings(max_examples=30)
@given(st.sets(NAMES), st.sampled_from(["camera", "shutter"]), NAMES)
def test_wire_and_role_agree_whichever_comes_first(required: set[str], wired: str, target_port: str) -> None:
    def refusals(*, wire_first: bool) -> list[str]:
        hutch = imaging_hutch(World())
        hutch.port(hutch.camera, "gate_in")
        for name in ("trigger_in", "gate_in"):
            hutch.port(hutch.shutter, name)
        hutch.role(required_ports=[{**TRIGGER_IN, "port_name": name} for name in sorted(required)])
        plan_id = hutch.define_plan()
        steps = [
            lambda: hutch.wire(plan_id, hutch.timing_box, "trigger_out", getattr(hutch, wired), target_port),
            lambda: hutch.bind(plan_id, hutch.camera),
        ]
        caught = []
        for step in steps if wire_first else reversed(steps):
            try:
                step()
            except Refusal as refusal:
                caught.append(refusal.code)
        return caught

    expected = ["PlanWireRoleEndpointMismatchError"] if wired == "shutter" and target_port in required else []
    assert refusals(wire_first=True) == refusals(wire_first=False) == expected
