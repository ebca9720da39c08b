"""The life of a subject as the specification tabulates it."""

from typing import Any
from uuid import UUID

from tests.support.domain.assets import facility_world, root
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.world import World


def subject_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(asset_id=root(world))
    world.when(command("activate_asset", {}), on=scene.asset_id)
    return world.create(command("register_subject", {"name": "Catalyst pellet B-12"})), scene


def mount_fields(scene: Scene) -> dict[str, Any]:
    return {"asset_id": scene.asset_id, "reason": "loaded for overview scan"}


SUBJECT = Lifecycle(
    "Subject",
    "register_subject",
    subject_begins,
    {
        "status": {
            "Received": "",
            "Mounted": "mount_subject",
            "Measured": "mount_subject measure_subject",
            "Removed": "remove_subject",
            "Returned": "remove_subject return_subject",
            "Stored": "remove_subject store_subject",
            "Discarded": "remove_subject discard_subject",
        }
    },
    {
        "mount_subject": Verb("Received", at("Mounted"), "SubjectCannotMountError", given=mount_fields),
        "measure_subject": Verb("Mounted", at("Measured"), "SubjectCannotMeasureError"),
        "dismount_subject": Verb("Mounted Measured", at("Received"), "SubjectCannotDismountError", given=reason_fields),
        "remove_subject": Verb("Received Mounted Measured", at("Removed"), "SubjectCannotRemoveError"),
        "return_subject": Verb("Removed", at("Returned"), "SubjectCannotReturnError"),
        "store_subject": Verb("Removed", at("Stored"), "SubjectCannotStoreError"),
        "discard_subject": Verb("Removed", at("Discarded"), "SubjectCannotDiscardError", given=reason_fields),
        "assign_subject_external_id": Verb(given=lambda scene: {"external_id": "10.0000/igsn-b12"}),
    },
    facility_world,
)

LIVES = (SUBJECT,)
STATELESS = ()
