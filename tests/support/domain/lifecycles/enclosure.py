"""The life of an enclosure as the specification tabulates it; its permit status is no state that verbs depend on."""

from typing import Any
from uuid import UUID

from tests.support.domain.assets import LUMEN, facility_world
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, command, reason_fields
from tests.support.domain.world import World


def enclosure_begins(world: World) -> tuple[UUID, Scene]:
    hutch = {"name": "Imaging hutch B", "facility_code": LUMEN}
    return world.create(command("register_enclosure", hutch)), Scene()


def permitted_observation(scene: Scene) -> dict[str, Any]:
    source = {"source_kind": "ProcessVariable", "source_id": "PSS:HUTCH-B:PERMIT"}
    return {"new_status": "Permitted", "monitor_ref": source, "reason": "search complete"}


ENCLOSURE = Lifecycle(
    "Enclosure",
    "register_enclosure",
    enclosure_begins,
    {"lifecycle": {"Active": "", "Decommissioned": "decommission_enclosure"}},
    {
        "observe_enclosure_status": Verb("Active", {}, "EnclosureCannotObserveError", given=permitted_observation),
        "decommission_enclosure": Verb(
            "Active", {"lifecycle": "Decommissioned"}, "EnclosureCannotDecommissionError", given=reason_fields
        ),
    },
    facility_world,
)

LIVES = (ENCLOSURE,)
STATELESS = ()
