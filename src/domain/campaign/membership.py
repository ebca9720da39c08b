"""Who belongs to a campaign: runs join and leave it, and both streams say so in one transaction or neither does."""

from typing import Annotated
from uuid import UUID

from baton.domain.campaign.campaign import OPEN, Campaign, CampaignRunAdded, CampaignRunRemoved, campaign
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.run.run import Run, RunAddedToCampaign, RunRemovedFromCampaign
from baton.domain.shared.reads import Reads, required
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.writes import Also


class CampaignRunAlreadyMemberError(Conflict, context="campaign"):
    """The run belongs to this campaign already."""


class CampaignRunNotMemberError(Conflict, context="campaign"):
    """The run does not belong to this campaign."""


class RunAlreadyAssignedToCampaignError(Conflict, context="campaign"):
    """The run belongs to another campaign."""


@campaign.command(post="/{campaign_id}/runs/{run_id}/add", allowed=OPEN, verb="AddRun")
class AddRunToCampaign(JudgedVerb[Campaign, Run]):
    """Let a run join, whatever its status; a run belongs to one campaign at a time."""

    run_id: UUID

    def gather(self, campaign: Campaign, call: Call) -> Reads[Run]:
        return (yield from required(Run, self.run_id))

    def decide(self, campaign: Campaign, call: Call, run: Run) -> Outcome:
        if run.id in campaign.run_ids:
            raise CampaignRunAlreadyMemberError("The run belongs to this campaign already.", reason="already_member")
        if run.campaign_id is not None:
            raise RunAlreadyAssignedToCampaignError(
                "The run belongs to another campaign; take it out there first.",
                reason="already_assigned",
                facts={"campaign_id": str(run.campaign_id)},
            )
        joined = RunAddedToCampaign(campaign_id=campaign.id)
        return [CampaignRunAdded(run_id=run.id), Also(Run, run.id, [joined])]


@campaign.command(post="/{campaign_id}/runs/{run_id}/remove", allowed=OPEN, verb="RemoveRun", destructive=True)
class RemoveRunFromCampaign(JudgedVerb[Campaign, Run]):
    """Take a run out; to move it, add it elsewhere afterwards."""

    run_id: UUID
    reason: Annotated[str, campaign.text("run_remove_reason", 500, label="reason", personal=True)]

    def gather(self, campaign: Campaign, call: Call) -> Reads[Run]:
        run = yield from required(Run, self.run_id)
        if campaign.status in OPEN and run.id not in campaign.run_ids:
            raise CampaignRunNotMemberError("The run does not belong to this campaign.", reason="not_member")
        return run

    def decide(self, campaign: Campaign, call: Call, run: Run) -> Outcome:
        left = RunRemovedFromCampaign(campaign_id=campaign.id, reason=self.reason)
        return [CampaignRunRemoved(run_id=run.id, reason=self.reason), Also(Run, run.id, [left])]
