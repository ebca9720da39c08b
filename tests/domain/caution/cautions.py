"""Verbs to arrange cautions with."""

from typing import Any
from uuid import UUID

from domain.caution.caution import Caution, RegisterCaution, SupersedeCaution
from tests.domain.world import World

DRIFT = "Rotation drifts in the first ten minutes after homing"
WAIT = "Wait ten minutes, then re-home"


def on_asset(id: UUID) -> dict[str, Any]:
    return {"kind": "Asset", "id": id}


def on_procedure(id: UUID) -> dict[str, Any]:
    return {"kind": "Procedure", "id": id}


def note(target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What a caution says."""
    said = {"category": "OperationalWindow", "severity": "Caution", "text": DRIFT, "workaround": WAIT}
    return {"target": target, **said, **fields}


def registered(world: World, target: dict[str, Any], **fields: Any) -> UUID:
    return world.create(RegisterCaution(**note(target, **fields)))


def superseded(world: World, id: UUID, target: dict[str, Any], **fields: Any) -> UUID:
    """The successor of a caution."""
    world.when(SupersedeCaution(**note(target, **fields)), on=id)
    return UUID(world.answer["caution_id"])


def caution_of(world: World, id: UUID) -> Caution:
    state: Caution = world.state(Caution, id)
    return state
