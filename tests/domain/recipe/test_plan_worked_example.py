"""Flat field at an imaging beamline: from asking what a plan would lack to a plan with wires, roles and parameters."""

from typing import Any

from baton.domain.equipment.asset import DegradeAsset
from baton.domain.kernel import Event
from baton.domain.recipe.capability import VersionCapability
from baton.domain.recipe.method import (
    AddMethodRequiredRole,
    DefineMethod,
    Method,
    UpdateMethodParametersSchema,
    VersionMethod,
)
from baton.domain.recipe.plan import DefinePlan, UpdatePlanDefaultParameters
from baton.domain.recipe.plan_inspection import InspectPlanBinding
from baton.domain.recipe.plan_parts import AddPlanWire, BindPlanRole, check_wires, unbound_roles
from baton.domain.recipe.practice import DefinePractice
from tests.support.domain.assets import asset_of
from tests.support.domain.payloads import payload
from tests.support.domain.plans import ListedWorld, imaging_hutch
from tests.support.domain.templates import MILLISECOND, acquisition, contract
from tests.support.domain.world import expect_refusal


def test_the_plan_of_a_flat_field() -> None:
    world = ListedWorld()
    hutch = imaging_hutch(world)
    shutter, camera, timing_box = hutch.asset_ids
    world.when(DegradeAsset(reason="hot pixels"), on=camera)
    needs = {"needed_family_ids": [hutch.shutter_family, hutch.camera_family], "needed_supplies": ["photon_beam"]}
    m1 = world.create(DefineMethod(name="flat_field", capability_id=hutch.capability_id, **needs))
    world.when(UpdateMethodParametersSchema(parameters_schema=acquisition(maximum=1)), on=m1)
    trigger = {"port_name": "trigger_in", "direction": "Input", "signal_type": "TTL"}
    detector = {"role_name": "detector", "family_id": hutch.camera_family, "required_ports": [trigger]}
    world.when(AddMethodRequiredRole(requirement=detector), on=m1)
    p1 = world.create(DefinePractice(name="Flat field, imaging hutch", method_id=m1, site_id=hutch.site_id))

    lacking = world.ask(InspectPlanBinding(practice_id=p1, asset_ids=[shutter]))
    assert lacking.binding_status == "MissingFamilies"
    assert lacking.missing_family_ids == (hutch.camera_family,)
    (imageable,) = lacking.missing_affordance_candidates
    (candidate,) = imageable.candidates
    assert imageable.affordance == "Imageable"
    assert (candidate.asset_id, candidate.asset_name) == (camera, "High-speed camera")
    assert (candidate.condition, candidate.lifecycle) == ("Degraded", "Active")

    asked = {"name": "Flat field, spring block", "practice_id": str(p1)}
    asked |= {"window_starts_at": "2026-04-01T08:00:00Z", "window_ends_at": "2026-04-03T08:00:00Z"}
    (defined,) = world.when(DefinePlan(**asked, asset_ids=[shutter, camera, timing_box]))
    l1 = defined.stream_id
    assert payload(defined) == {
        **asked,
        "method_id": str(m1),
        "asset_ids": sorted([str(shutter), str(camera), str(timing_box)]),
        "method_needed_family_ids_snapshot": sorted([str(hutch.shutter_family), str(hutch.camera_family)]),
        "asset_families_snapshot": {
            str(shutter): [str(hutch.shutter_family)],
            str(camera): [str(hutch.camera_family)],
            str(timing_box): [],
        },
    }

    wire = {"source_asset_id": timing_box, "source_port_name": "trigger_out"}
    wire |= {"target_asset_id": camera, "target_port_name": "trigger_in"}
    (wired,) = world.when(AddPlanWire(**wire), on=l1)
    assert payload(wired) == {key: str(value) for key, value in wire.items()}
    with expect_refusal("PlanRoleFamilyMismatchError", "family_mismatch"):
        world.when(BindPlanRole(role_name="detector", asset_id=timing_box), on=l1)
    (bound,) = world.when(BindPlanRole(role_name="detector", asset_id=camera), on=l1)
    assert payload(bound) == {"role_name": "detector", "asset_id": str(camera)}

    def patch_defaults(**patch: Any) -> list[Event]:
        return world.when(UpdatePlanDefaultParameters(default_parameters_patch=patch), on=l1)

    (updated,) = patch_defaults(dwell=0.1, repetitions=20)
    written = {"default_parameters": {"dwell": 0.1, "repetitions": 20}, "parameters_schema_revision": 1}
    assert payload(updated) == written
    with expect_refusal("InvalidPlanDefaultParametersError", "missing_key") as caught:
        patch_defaults(repetitions=None)
    assert (caught.value.status, caught.value.facts) == (400, {"path": "repetitions"})

    in_ms = acquisition(unit=MILLISECOND)
    kept = {key: contract()[key] for key in ("required_affordances", "executor_shapes")}
    contracted = VersionCapability(version_tag="2026-Q3", description=None, parameters_schema=in_ms, **kept)
    world.when(contracted, on=hutch.capability_id)
    world.when(VersionMethod(version_tag="2026-Q3", parameters_schema=in_ms), on=m1)
    with expect_refusal("InvalidPlanDefaultParametersError", "unit_changed") as caught:
        patch_defaults(repetitions=10)
    assert (caught.value.status, caught.value.facts) == (400, {"keys": ["dwell"]})

    plan = hutch.plan(l1)
    assert unbound_roles(plan, world.state(Method, m1)) == ()
    check_wires(plan, {id: asset_of(world, id) for id in plan.asset_ids})
