"""The life of a supply as the specification tabulates it."""

from typing import Any
from uuid import UUID

from tests.support.domain.assets import LUMEN, facility_world
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.world import World


def supply_begins(world: World) -> tuple[UUID, Scene]:
    nitrogen = {"kind": "cryogen", "name": "Station B nitrogen drop", "facility_code": LUMEN}
    return world.create(command("register_supply", nitrogen)), Scene()


def unavailable_observation(scene: Scene) -> dict[str, Any]:
    source = {"source_kind": "ProcessVariable", "source_id": "LN:DEWAR:LEVEL"}
    return {"new_status": "Unavailable", "monitor_ref": source, "reason": "level below limit"}


SUPPLY = Lifecycle(
    "Supply",
    "register_supply",
    supply_begins,
    {
        "status": {
            "Unknown": "",
            "Available": "mark_supply_available",
            "Degraded": "degrade_supply",
            "Unavailable": "mark_supply_unavailable",
            "Recovering": "mark_supply_unavailable mark_supply_recovering",
            "Decommissioned": "deregister_supply",
        }
    },
    {
        "mark_supply_available": Verb("Unknown", at("Available"), "SupplyCannotMarkAvailableError", given=reason_fields),
        "degrade_supply": Verb(
            "Unknown Available Recovering", at("Degraded"), "SupplyCannotDegradeError", given=reason_fields
        ),
        "mark_supply_unavailable": Verb(
            "Unknown Available Degraded Recovering",
            at("Unavailable"),
            "SupplyCannotMarkUnavailableError",
            given=reason_fields,
        ),
        "mark_supply_recovering": Verb(
            "Unavailable", at("Recovering"), "SupplyCannotMarkRecoveringError", given=reason_fields
        ),
        "restore_supply": Verb("Recovering Degraded", at("Available"), "SupplyCannotRestoreError", given=reason_fields),
        "deregister_supply": Verb(
            "Unknown Available Degraded Unavailable Recovering",
            at("Decommissioned"),
            "SupplyCannotDeregisterError",
            given=reason_fields,
        ),
        "observe_supply_status": Verb(
            "Unknown Available Degraded Unavailable Recovering",
            at("Unavailable"),
            "SupplyCannotMarkUnavailableError",
            quiet=True,
            given=unavailable_observation,
        ),
    },
    facility_world,
)

LIVES = (SUPPLY,)
STATELESS = ()
