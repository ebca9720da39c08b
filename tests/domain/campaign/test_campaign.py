"""Campaigns: what they hold together, and that they leave their runs alone."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.campaign.campaign import (
    AbandonCampaign,
    AddRunToCampaign,
    Campaign,
    CloseCampaign,
    HoldCampaign,
    RegisterCampaign,
    RemoveRunFromCampaign,
    ResumeCampaign,
    StartCampaign,
)
from baton.domain.run.run import CompleteRun, Run, RunStatus
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World, expect_refusal, new_id


def register_campaign(world: World, **fields: Any) -> UUID:
    series = {"name": "Alloy fatigue series", "intent": "Series", "lead_actor_id": new_id()}
    return world.create(RegisterCampaign(**{**series, **fields}))


def campaign_of(line: Beamline, id: UUID) -> Campaign:
    state: Campaign = line.world.state(Campaign, id)
    return state


def test_a_campaign_is_registered_as_asked_for(line: Beamline) -> None:
    made = campaign_of(
        line,
        register_campaign(
            line.world,
            tags=["in-situ", "tomography"],
            external_refs={"proposal": "89421"},
            external_id="10.0000/c1",
            external_id_scheme="DOI",
        ),
    )
    assert made.tags == {"in-situ", "tomography"}
    assert (made.external_refs, made.external_id) == ({"proposal": "89421"}, "10.0000/c1")


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"name": " "}, "InvalidCampaignNameError"),
        ({"description": " "}, "InvalidCampaignDescriptionError"),
        ({"tags": [" "]}, "InvalidCampaignTagError"),
        ({"external_refs": {"": "x"}}, "InvalidCampaignExternalRefError"),
        ({"external_id": "10.0000/c1"}, "InvalidCampaignExternalIdError"),
        ({"external_id_scheme": "DOI"}, "InvalidCampaignExternalIdError"),
    ],
    ids=["name", "description", "tag", "reference", "id without scheme", "scheme without id"],
)
def test_values_are_refused_by_their_own_class(line: Beamline, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        register_campaign(line.world, **fields)


def test_a_run_belongs_to_one_campaign_at_a_time(line: Beamline) -> None:
    first, second, run_id = register_campaign(line.world), register_campaign(line.world), line.start(campaign_id=None)
    line.world.when(AddRunToCampaign(run_id=run_id), on=first)
    assert line.run(run_id).campaign_id == first
    with expect_refusal("CampaignRunAlreadyMemberError"):
        line.world.when(AddRunToCampaign(run_id=run_id), on=first)
    with expect_refusal("RunAlreadyAssignedToCampaignError"):
        line.world.when(AddRunToCampaign(run_id=run_id), on=second)
    line.world.when(RemoveRunFromCampaign(run_id=run_id, reason="wrong series"), on=first)
    assert line.run(run_id).campaign_id is None
    line.world.when(AddRunToCampaign(run_id=run_id), on=second)
    assert campaign_of(line, second).run_ids == {run_id}


def test_a_run_that_has_ended_may_still_join_and_leave(line: Beamline) -> None:
    made, run_id = register_campaign(line.world), line.start(campaign_id=None)
    line.world.when(CompleteRun(), on=run_id)
    line.world.when(AddRunToCampaign(run_id=run_id), on=made)
    line.world.when(RemoveRunFromCampaign(run_id=run_id, reason="wrong series"), on=made)


def test_leaving_is_refused_in_order(line: Beamline) -> None:
    made, run_id = register_campaign(line.world), line.start(campaign_id=None)
    with expect_refusal("RunNotFoundError"):
        line.world.when(RemoveRunFromCampaign(run_id=new_id(), reason=" "), on=made)
    with expect_refusal("CampaignRunNotMemberError"):
        line.world.when(RemoveRunFromCampaign(run_id=run_id, reason=" "), on=made)
    line.world.when(AddRunToCampaign(run_id=run_id), on=made)
    with expect_refusal("InvalidCampaignRunRemoveReasonError"):
        line.world.when(RemoveRunFromCampaign(run_id=run_id, reason=" "), on=made)


def test_nothing_cascades(line: Beamline) -> None:
    run_id = line.start()
    line.world.when(StartCampaign(), on=line.campaign_id)
    line.world.when(HoldCampaign(reason="no beam"), on=line.campaign_id)
    line.start(name="Load step 2")
    line.world.when(AbandonCampaign(reason="no beam for a week"), on=line.campaign_id)
    made: Run = line.run(run_id)
    assert (made.status, made.campaign_id) == (RunStatus.RUNNING, line.campaign_id)


def test_only_hold_and_abandon_leave_a_reason(line: Beamline) -> None:
    made = register_campaign(line.world)
    line.world.when(StartCampaign(), on=made)
    started_at = line.world.now
    line.world.when(HoldCampaign(reason="no beam"), on=made)
    line.world.when(ResumeCampaign(), on=made)
    line.world.when(CloseCampaign(), on=made)
    state = campaign_of(line, made)
    assert (state.last_status_reason, state.started_at) == ("no beam", started_at)
    assert state.last_status_changed_at == line.world.now
