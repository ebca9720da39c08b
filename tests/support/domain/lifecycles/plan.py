"""The life of a plan as the specification tabulates it."""

from typing import Any
from uuid import UUID

from baton.domain.supply.supply import RegisterSupply
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.plans import TRIGGER_IN, WINDOW, imaging_hutch, wire_fields
from tests.support.domain.world import World

CURRENT = "Defined Versioned"


def plan_begins(world: World) -> tuple[UUID, Scene]:
    hutch = imaging_hutch(world)
    hutch.role(required_ports=[TRIGGER_IN])
    storage = world.create(RegisterSupply(name="Disk of beamline 7", kind="Storage", facility_code="lumen"))
    scene = Scene(camera=hutch.camera, timing_box=hutch.timing_box, storage=storage)
    return world.create(command("define_plan", hutch.plan_fields())), scene


def trigger_wire(scene: Scene) -> dict[str, Any]:
    return wire_fields(scene.timing_box, "trigger_out", scene.camera, "trigger_in")


def detector_binding(scene: Scene) -> dict[str, Any]:
    return {"role_name": "detector", "asset_id": scene.camera}


def spring_window(scene: Scene) -> dict[str, Any]:
    return WINDOW


def storage(scene: Scene) -> dict[str, Any]:
    return {"data_registration": {"supply_id": scene.storage}}


def version_fields(scene: Scene) -> dict[str, Any]:
    return {"version_tag": "2026-Q2"}


PLAN = Lifecycle(
    "Plan",
    "define_plan",
    plan_begins,
    {"status": {"Defined": "", "Versioned": "version_plan", "Deprecated": "deprecate_plan"}},
    {
        "reschedule_plan": Verb(CURRENT, {}, "PlanCannotRescheduleError", given=spring_window),
        "set_plan_data_registration": Verb(CURRENT, {}, "PlanCannotSetDataRegistrationError", given=storage),
        "update_plan_default_parameters": Verb(
            given=lambda scene: {"default_parameters_patch": {"dwell": 0.1, "repetitions": 20}}
        ),
        "add_plan_wire": Verb(given=trigger_wire),
        "remove_plan_wire": Verb(given=trigger_wire, before=(("add_plan_wire", trigger_wire),)),
        "bind_plan_role": Verb("Defined", {}, "PlanCannotBindRoleError", given=detector_binding),
        "unbind_plan_role": Verb(
            "Defined",
            {},
            "PlanCannotUnbindRoleError",
            given=lambda scene: {"role_name": "detector"},
            before=(("bind_plan_role", detector_binding),),
        ),
        "version_plan": Verb(CURRENT, at("Versioned"), "PlanCannotVersionError", given=version_fields),
        "deprecate_plan": Verb(CURRENT, at("Deprecated"), "PlanCannotDeprecateError", given=reason_fields),
    },
)

LIVES = (PLAN,)
STATELESS: tuple[Lifecycle, ...] = ()
