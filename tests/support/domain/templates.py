"""Verbs to arrange templates with: the ladder from a capability over its methods to a practice."""

from typing import Any
from uuid import UUID

from baton.domain.facility.facility import RegisterFacility
from baton.domain.recipe.capability import DefineCapability
from baton.domain.recipe.method import DefineMethod
from baton.domain.recipe.practice import DefinePractice
from baton.domain.shared.schema import DIALECT, Schema
from tests.support.domain.world import World

SECOND = {"system": "udunits", "code": "s"}
MILLISECOND = {"system": "udunits", "code": "ms"}
MILLIMETRE = {"system": "udunits", "code": "mm"}
WITHOUT_DIALECT = {"type": "object", "properties": {}}


def parameters(*required: str, **properties: Schema) -> Schema:
    """A closed schema of these parameters."""
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }


def acquisition(*, maximum: float = 10, unit: dict[str, str] | None = SECOND) -> Schema:
    """The parameters of an acquisition, with this longest dwell in this unit."""
    dwell = {"type": "number", "minimum": 0.0001, "maximum": maximum}
    return parameters(
        "dwell",
        "repetitions",
        dwell=dwell if unit is None else {**dwell, "unit": unit},
        repetitions={"type": "integer", "minimum": 1},
        retract_position={"type": "number", "unit": MILLIMETRE},
    )


def contract(**fields: Any) -> dict[str, Any]:
    return {
        "code": "baton.capability.acquisition",
        "name": "Acquisition",
        "required_affordances": ["Imageable", "Triggerable"],
        "executor_shapes": ["METHOD", "PROCEDURE"],
        "parameters_schema": acquisition(),
        **fields,
    }


def capability(world: World, **fields: Any) -> UUID:
    return world.create(DefineCapability(**contract(**fields)))


def method(world: World, capability_id: UUID | None = None, **fields: Any) -> UUID:
    realised = capability(world) if capability_id is None else capability_id
    return world.create(DefineMethod(**{"name": "flat_field", "capability_id": realised, **fields}))


def site(world: World) -> UUID:
    return world.create(RegisterFacility(code="lumen", display_name="Lumen Light Source", kind="Site"))


def practice(world: World, method_id: UUID, **fields: Any) -> UUID:
    return world.create(DefinePractice(**{"name": "Flat field, imaging hutch", "method_id": method_id, **fields}))
