"""The life of a campaign as the specification tabulates it."""

from typing import Any
from uuid import UUID

from baton.domain.campaign.campaign import Campaign
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.lifecycles.run import run_begins, run_world
from tests.support.domain.world import World, new_id


def campaign_begins(world: World) -> tuple[UUID, Scene]:
    run_id, _ = run_begins(world)
    series = {"name": "Alloy fatigue series", "intent": "Series", "lead_actor_id": new_id()}
    return world.create(command("register_campaign", series)), Scene(run_id=run_id)


def run_field(scene: Scene) -> dict[str, Any]:
    return {"run_id": scene.run_id}


def removal_fields(scene: Scene) -> dict[str, Any]:
    return {"run_id": scene.run_id, "reason": "wrong sample"}


CAMPAIGN = Lifecycle(
    Campaign.__name__,
    "register_campaign",
    campaign_begins,
    {
        "status": {
            "Planned": "",
            "Active": "start_campaign",
            "Held": "start_campaign hold_campaign",
            "Closed": "start_campaign close_campaign",
            "Abandoned": "abandon_campaign",
        }
    },
    {
        "start_campaign": Verb("Planned", at("Active"), "CampaignCannotStartError"),
        "hold_campaign": Verb("Active", at("Held"), "CampaignCannotHoldError", given=reason_fields),
        "resume_campaign": Verb("Held", at("Active"), "CampaignCannotResumeError"),
        "close_campaign": Verb("Active Held", at("Closed"), "CampaignCannotCloseError"),
        "abandon_campaign": Verb("Planned Active Held", at("Abandoned"), "CampaignCannotAbandonError", given=reason_fields),
        "add_run_to_campaign": Verb("Planned Active Held", {}, "CampaignCannotAddRunError", given=run_field),
        "remove_run_from_campaign": Verb(
            "Planned Active Held",
            {},
            "CampaignCannotRemoveRunError",
            given=removal_fields,
            before=(("add_run_to_campaign", run_field),),
        ),
    },
    run_world,
)

LIVES = (CAMPAIGN,)
STATELESS = ()
