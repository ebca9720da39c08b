"""The verbs of a calibration, which has no states: it is defined, and then only gains."""

from typing import Any
from uuid import UUID

from tests.support.domain.calibrations import publishable_revision, publishing_world
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb
from tests.support.domain.world import World, new_id


def calibration_begins(world: World) -> tuple[UUID, Scene]:
    calibration_id, publish = publishable_revision(world)
    return calibration_id, Scene(publish=publish)


def next_value(scene: Scene) -> dict[str, Any]:
    source = {"kind": "Computed", "dataset_id": new_id()}
    superseded = scene.publish.revision_id
    return {"value": {"center": 1024.72}, "status": "Verified", "source": source, "supersedes_revision_id": superseded}


CALIBRATION = Lifecycle(
    "Calibration",
    "define_calibration",
    calibration_begins,
    {},
    {
        "append_calibration_revision": Verb(given=next_value),
        # Accepted now, recorded when it is sent.
        "publish_calibration_revision": Verb(quiet=True, given=lambda scene: scene.publish.model_dump()),
    },
    publishing_world,
)

LIVES = ()
STATELESS = (CALIBRATION,)
