"""A campaign: a group of runs, which executes nothing and never blocks or changes a member run. Its list of runs is the
authority on membership; campaign and run both record a change of it, in one transaction."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.kernel import (
    Aggregate,
    Call,
    Creation,
    Event,
    IdSet,
    JudgedVerb,
    Outcome,
    SortedSet,
    State,
    Verb,
    copy_with,
)
from baton.domain.run.run import Run, RunAddedToCampaign, RunRemovedFromCampaign
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.listing import NamedListQuery, Summary, Where
from baton.domain.shared.reads import Reads, require
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import FreeText, StateReason, Text
from baton.domain.shared.writes import Also


class CampaignStatus(StrEnum):
    PLANNED = "Planned"
    ACTIVE = "Active"
    HELD = "Held"
    CLOSED = "Closed"
    ABANDONED = "Abandoned"


PLANNED, ACTIVE, HELD, CLOSED, ABANDONED = CampaignStatus
OPEN = (PLANNED, ACTIVE, HELD)  # The states in which runs may join and leave.


class CampaignIntent(StrEnum):
    SERIES = "Series"  # Repeats over time.
    SWEEP = "Sweep"  # Exploration of parameters.
    COORDINATION = "Coordination"  # Several techniques or subjects.
    BLOCK = "Block"  # A scheduling envelope: proposal, beamtime, cycle.


@dataclass(frozen=True, kw_only=True)
class Campaign(State):
    """A campaign groups runs: a time series, a sweep, a study by several techniques or a beamtime."""

    name: FreeText
    intent: CampaignIntent
    lead_actor_id: UUID
    subject_id: UUID | None
    description: FreeText | None
    tags: SortedSet[str]
    external_refs: dict[str, str]
    external_id: str | None
    external_id_scheme: str | None
    run_ids: IdSet = frozenset()
    status: CampaignStatus = PLANNED
    last_status_reason: FreeText | None = None
    registered_at: datetime
    started_at: datetime | None = None
    last_status_changed_at: datetime
    updated_at: datetime

    @property
    def run_count(self) -> int:
        return len(self.run_ids)


campaign = Aggregate(Campaign, "/campaigns", context="campaign")


class CampaignRegistered(Event, of=campaign):
    """The campaign was declared."""

    name: FreeText
    intent: CampaignIntent
    lead_actor_id: UUID
    subject_id: UUID | None
    description: FreeText | None
    tags: SortedSet[str]
    external_refs: dict[str, str]
    external_id: str | None
    external_id_scheme: str | None


class CampaignStarted(Event, of=campaign):
    """The campaign began."""


class CampaignHeld(Event, of=campaign):
    """The campaign was paused; its runs were not touched."""

    reason: StateReason


class CampaignResumed(Event, of=campaign):
    """The campaign went on after a hold."""


class CampaignClosed(Event, of=campaign):
    """The campaign was ended."""


class CampaignAbandoned(Event, of=campaign):
    """The campaign was given up."""

    reason: StateReason


class CampaignRunAdded(Event, of=campaign):
    """A run joined the campaign."""

    run_id: UUID


class CampaignRunRemoved(Event, of=campaign):
    """A run was taken out of the campaign."""

    run_id: UUID
    reason: FreeText


STATUS_AFTER: dict[type[Event], CampaignStatus] = {
    CampaignStarted: ACTIVE,
    CampaignHeld: HELD,
    CampaignResumed: ACTIVE,
    CampaignClosed: CLOSED,
    CampaignAbandoned: ABANDONED,
}


@campaign.evolve
def evolve(campaign: Campaign, event: Event) -> Campaign:
    at = event.occurred_at
    match event:
        case CampaignRunAdded():
            return copy_with(campaign, run_ids=campaign.run_ids | {event.run_id}, updated_at=at)
        case CampaignRunRemoved():
            return copy_with(campaign, run_ids=campaign.run_ids - {event.run_id}, updated_at=at)
        case CampaignStarted():
            campaign = copy_with(campaign, started_at=at)
        case CampaignHeld() | CampaignAbandoned():
            campaign = copy_with(campaign, last_status_reason=event.reason)
    return copy_with(campaign, status=STATUS_AFTER[type(event)], last_status_changed_at=at, updated_at=at)


class InvalidCampaignExternalRefError(Invalid, context="campaign"):
    """An external reference has a scheme of 1 to 50 and a value of 1 to 200 characters, neither of them blank."""


class InvalidCampaignExternalIdError(Invalid, context="campaign"):
    """An external id and its scheme come together, and neither is blank."""


@campaign.creation()
class RegisterCampaign(Creation):
    """Declare a campaign that runs can join."""

    name: Annotated[str, campaign.text("name", 200, personal=True)]
    intent: CampaignIntent
    """What kind of campaign it is: Series, Sweep, Coordination or Block."""
    lead_actor_id: UUID
    subject_id: UUID | None = None
    description: Annotated[str, campaign.text("description", 2000, personal=True)] | None = None
    tags: Annotated[SortedSet[Annotated[str, campaign.text("tag", 50)]], Field(max_length=100)] = frozenset()
    external_refs: Annotated[dict[str, str], Field(max_length=100)] = {}
    external_id: Annotated[str, Text(100, InvalidCampaignExternalIdError, "external id")] | None = None
    external_id_scheme: Annotated[str, Text(50, InvalidCampaignExternalIdError, "external id scheme")] | None = None

    def decide(self, call: Call) -> Outcome:
        refs = trimmed_refs(self.external_refs, InvalidCampaignExternalRefError)
        if (self.external_id is None) != (self.external_id_scheme is None):
            detail = "An external id and its scheme come together; give both or neither."
            raise InvalidCampaignExternalIdError(detail, reason="half_pair")
        return [CampaignRegistered(**{**dict(self), "external_refs": refs})]


@campaign.command(post="/{campaign_id}/start", allowed=[PLANNED], leads_to=ACTIVE, records=CampaignStarted)
class StartCampaign(Verb[Campaign]):
    """Begin the campaign."""


@campaign.command(post="/{campaign_id}/hold", allowed=[ACTIVE], leads_to=HELD, records=CampaignHeld, attempts=3)
class HoldCampaign(Verb[Campaign]):
    """Pause the campaign; its runs are not touched."""

    reason: Annotated[str, campaign.text("hold_reason", 500, label="reason", personal=True)]


@campaign.command(post="/{campaign_id}/resume", allowed=[HELD], leads_to=ACTIVE, records=CampaignResumed)
class ResumeCampaign(Verb[Campaign]):
    """Go on after a hold."""


@campaign.command(post="/{campaign_id}/close", allowed=[ACTIVE, HELD], records=CampaignClosed, destructive=True)
class CloseCampaign(Verb[Campaign]):
    """End the campaign; its runs stay as they are, and so does who belongs to it."""


@campaign.command(post="/{campaign_id}/abandon", allowed=OPEN, records=CampaignAbandoned, destructive=True)
class AbandonCampaign(Verb[Campaign]):
    """Give the campaign up; its runs stay as they are, and so does who belongs to it."""

    reason: Annotated[str, campaign.text("abandon_reason", 500, label="reason", personal=True)]


GetCampaign = campaign.get(hidden=["created_at", "registered_at", "started_at", "last_status_changed_at", "updated_at"])


class CampaignSummary(Summary):
    time: ClassVar[str] = "registered_at"
    campaign_id: UUID
    name: str
    intent: CampaignIntent
    status: CampaignStatus
    lead_actor_id: UUID
    subject_id: UUID | None
    description: str | None
    tags: SortedSet[str]
    external_id: str | None
    external_id_scheme: str | None
    run_count: int
    """Number of runs."""
    registered_at: datetime
    started_at: datetime | None
    last_status_changed_at: datetime
    last_status_reason: str | None
    updated_at: datetime


class ListedCampaignStatus(StrEnum):
    """A status to list, or all of them."""

    PLANNED = "Planned"
    ACTIVE = "Active"
    HELD = "Held"
    CLOSED = "Closed"
    ABANDONED = "Abandoned"
    ALL = "all"


@campaign.listing(CampaignSummary)
class ListCampaigns(NamedListQuery[CampaignSummary]):
    """Campaigns in order of registration, those that are not over unless another status is asked for."""

    status: Annotated[tuple[ListedCampaignStatus, ...], Field(min_length=1)] = tuple(map(ListedCampaignStatus, OPEN))
    intent: CampaignIntent | None = None
    lead_actor_id: UUID | None = None
    subject_id: UUID | None = None
    tag: Annotated[str, Field(min_length=1, max_length=50)] | None = None

    @model_validator(mode="after")
    def _all_alone(self) -> Self:
        if ListedCampaignStatus.ALL in self.status and set(self.status) != {ListedCampaignStatus.ALL}:
            raise ValueError("give status=all alone, or the statuses to list")
        return self

    def where(self) -> Iterator[Where]:
        show_all = ListedCampaignStatus.ALL in self.status
        return (condition for condition in super().where() if not (show_all and condition.column == "status"))


class CampaignRunAlreadyMemberError(Conflict, context="campaign", reason="already_member"):
    """The run belongs to this campaign already."""


class CampaignRunNotMemberError(Conflict, context="campaign", reason="not_member"):
    """The run does not belong to this campaign."""


class RunAlreadyAssignedToCampaignError(Conflict, context="campaign", reason="already_assigned"):
    """The run belongs to another campaign."""


@campaign.command(post="/{campaign_id}/runs/{run_id}/add", allowed=OPEN, verb="AddRun")
class AddRunToCampaign(JudgedVerb[Campaign, Run]):
    """Let a run join, whatever its status; a run belongs to one campaign at a time."""

    run_id: UUID
    """The run that joins."""

    def gather(self, campaign: Campaign, call: Call) -> Reads[Run]:
        return (yield from require(Run, self.run_id))

    def decide(self, campaign: Campaign, call: Call, run: Run) -> Outcome:
        if run.id in campaign.run_ids:
            raise CampaignRunAlreadyMemberError("The run belongs to this campaign already.")
        if run.campaign_id is not None:
            detail = "The run belongs to another campaign; take it out there first."
            raise RunAlreadyAssignedToCampaignError(detail, facts={"campaign_id": str(run.campaign_id)})
        return [CampaignRunAdded(run_id=run.id), Also(Run, run.id, [RunAddedToCampaign(campaign_id=campaign.id)])]


@campaign.command(post="/{campaign_id}/runs/{run_id}/remove", allowed=OPEN, verb="RemoveRun", destructive=True)
class RemoveRunFromCampaign(JudgedVerb[Campaign, Run]):
    """Take a run out; to move it, add it elsewhere afterwards."""

    run_id: UUID
    """The run that leaves."""
    reason: Annotated[str, campaign.text("run_remove_reason", 500, label="reason", personal=True)]

    def gather(self, campaign: Campaign, call: Call) -> Reads[Run]:
        run = yield from require(Run, self.run_id)
        if campaign.status in OPEN and run.id not in campaign.run_ids:
            raise CampaignRunNotMemberError("The run does not belong to this campaign.")
        return run

    def decide(self, campaign: Campaign, call: Call, run: Run) -> Outcome:
        left = RunRemovedFromCampaign(campaign_id=campaign.id, reason=self.reason)
        return [CampaignRunRemoved(run_id=run.id, reason=self.reason), Also(Run, run.id, [left])]
