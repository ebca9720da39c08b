"""Verbs to arrange cautions with."""

from typing import Any
from uuid import UUID

from baton.domain.caution.caution import Caution, RegisterCaution, SupersedeCaution
from baton.domain.equipment.asset import AssetRegistered
from baton.domain.kernel import Event
from baton.domain.procedure.procedure import ProcedureRegistered
from tests.support.domain.world import World

DRIFT = "Rotation drifts in the first ten minutes after homing"
WAIT = "Wait ten minutes, then re-home"


def on_asset(id: UUID) -> dict[str, Any]:
    return {"kind": "Asset", "id": id}


def on_procedure(id: UUID) -> dict[str, Any]:
    return {"kind": "Procedure", "id": id}


def ensure_target_exists(world: World, target: dict[str, Any]) -> None:
    """Register an asset or a procedure under this id, unless there is one."""
    begun: dict[str, Event] = {
        "Asset": AssetRegistered(
            name="Stage",
            tier="Device",
            parent_id=None,
            facility_code=None,
            family_ids=frozenset(),
            model_id=None,
            controller_id=None,
            located_in_enclosure_id=None,
            drawing=None,
            alternate_identifiers=(),
            owners=(),
        ),
        "Procedure": ProcedureRegistered(
            name="Alignment",
            kind="alignment",
            target_asset_ids=frozenset(),
            parent_run_id=None,
            capability_id=None,
            recipe_id=None,
            max_consecutive_unconverged_iterations=None,
        ),
    }
    if not world.streams[target["kind"], target["id"]] and target["kind"] in begun:
        world.given(target["id"], begun[target["kind"]])


def caution_fields(target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The fields of a caution."""
    defaults = {"category": "OperationalWindow", "severity": "Caution", "text": DRIFT, "workaround": WAIT}
    return {"target": target, **defaults, **fields}


def register_caution(world: World, target: dict[str, Any], **fields: Any) -> UUID:
    ensure_target_exists(world, target)
    return world.create(RegisterCaution(**caution_fields(target, **fields)))


def supersede_caution(world: World, id: UUID, target: dict[str, Any], **fields: Any) -> UUID:
    """Supersede a caution and return its successor."""
    world.when(SupersedeCaution(**caution_fields(target, **fields)), on=id)
    return UUID(world.answer["caution_id"])


def caution_of(world: World, id: UUID) -> Caution:
    state: Caution = world.state(Caution, id)
    return state
