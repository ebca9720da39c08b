"""The lives of capabilities, methods and practices as the specification tabulates them."""

from typing import Any
from uuid import UUID

from tests.support.domain.assets import family
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.templates import acquisition, capability, contract, method, practice
from tests.support.domain.world import World

CURRENT = "Defined Versioned"


def states_of(name: str) -> dict[str, dict[str, str]]:
    return {"status": {"Defined": "", "Versioned": f"version_{name}", "Deprecated": f"deprecate_{name}"}}


def version_fields(scene: Scene) -> dict[str, Any]:
    return {"version_tag": "2026-Q2"}


def capability_begins(world: World) -> tuple[UUID, Scene]:
    return capability(world), Scene()


def capability_version_fields(scene: Scene) -> dict[str, Any]:
    kept = ("required_affordances", "executor_shapes", "parameters_schema")
    return {**version_fields(scene), "description": None, **{key: contract()[key] for key in kept}}


CAPABILITY = Lifecycle(
    "Capability",
    "define_capability",
    capability_begins,
    states_of("capability"),
    {
        "version_capability": Verb(
            CURRENT, at("Versioned"), "CapabilityCannotVersionError", given=capability_version_fields
        ),
        "deprecate_capability": Verb(CURRENT, at("Deprecated"), "CapabilityCannotDeprecateError", given=reason_fields),
    },
)


def method_begins(world: World) -> tuple[UUID, Scene]:
    return method(world), Scene(family_id=family(world, "Camera"))


def detector(scene: Scene) -> dict[str, Any]:
    return {"requirement": {"role_name": "detector", "family_id": scene.family_id}}


METHOD = Lifecycle(
    "Method",
    "define_method",
    method_begins,
    states_of("method"),
    {
        "update_method_parameters_schema": Verb(given=lambda scene: {"parameters_schema": acquisition(maximum=1)}),
        "add_method_required_role": Verb("Defined", {}, "MethodCannotAddRequiredRoleError", given=detector),
        "remove_method_required_role": Verb(
            "Defined",
            {},
            "MethodCannotRemoveRequiredRoleError",
            given=lambda scene: {"role_name": "detector"},
            before=(("add_method_required_role", detector),),
        ),
        "version_method": Verb(CURRENT, at("Versioned"), "MethodCannotVersionError", given=version_fields),
        "deprecate_method": Verb(CURRENT, at("Deprecated"), "MethodCannotDeprecateError", given=reason_fields),
    },
)


def practice_begins(world: World) -> tuple[UUID, Scene]:
    return practice(world, method(world), family_ids=[family(world, "Camera")]), Scene()


PRACTICE = Lifecycle(
    "Practice",
    "define_practice",
    practice_begins,
    states_of("practice"),
    {
        "version_practice": Verb(CURRENT, at("Versioned"), "PracticeCannotVersionError", given=version_fields),
        "deprecate_practice": Verb(CURRENT, at("Deprecated"), "PracticeCannotDeprecateError", given=reason_fields),
    },
)

LIVES = (CAPABILITY, METHOD, PRACTICE)
STATELESS: tuple[Lifecycle, ...] = ()
