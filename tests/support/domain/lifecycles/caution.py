"""The life of a caution as the specification tabulates it."""

from typing import Any
from uuid import UUID

from tests.support.domain.cautions import ensure_target_exists, on_asset
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command
from tests.support.domain.world import World, new_id


def caution_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(asset_id=new_id())
    ensure_target_exists(world, on_asset(scene.asset_id))
    return world.create(command("register_caution", drift(scene))), scene


def drift(scene: Scene) -> dict[str, Any]:
    texts = {"text": "Rotation drifts after homing", "workaround": "Wait ten minutes", "tags": ["rotary"]}
    target = {"kind": "Asset", "id": scene.asset_id}
    return {"target": target, "category": "OperationalWindow", "severity": "Caution", **texts}


CAUTION = Lifecycle(
    "Caution",
    "register_caution",
    caution_begins,
    {"status": {"Active": "", "Superseded": "supersede_caution", "Retired": "retire_caution"}},
    {
        "supersede_caution": Verb("Active", at("Superseded"), "CautionCannotSupersedeError", given=drift),
        "retire_caution": Verb(
            "Active", at("Retired"), "CautionCannotRetireError", given=lambda scene: {"reason": "Resolved"}
        ),
    },
)

LIVES = (CAUTION,)
STATELESS = ()
