"""A launch: one request that starts a plan as a run, or a recipe as a procedure, and has it conducted. It is decided as a
whole and written in one transaction. Its command is in `start_launch.py`; its end is written with that of what it began."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, assert_never
from uuid import UUID

from baton.domain.kernel import Aggregate, Event, State, copy_with
from baton.domain.recipe.conduct_options import CONDUCT_CODES
from baton.domain.recipe.template_versions import TemplateVersion
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.text import FreeText, StateReason, TextsMayContainPersonalData
from baton.domain.shared.writes import Also

StoredTarget = Annotated[
    dict[str, Any], TextsMayContainPersonalData(codes=CONDUCT_CODES | {"procedure_kind"})
]  # What is conducted, as it is kept on an event: a recipe, or a plan with its phases.


class LaunchStatus(StrEnum):
    REQUESTED = "Requested"  # It is being decided; nobody sees it in this state.
    BEGUN = "Begun"
    REFUSED = "Refused"  # Nothing of it was begun; only what a queue or a schedule launches leaves a record of that.
    ENDED = "Ended"


REQUESTED, BEGUN, REFUSED, ENDED = LaunchStatus


class LaunchOrigin(StrEnum):
    """What asked for a launch."""

    PERSON = "person"
    AGENT = "agent"
    SERVICE_ACCOUNT = "service_account"
    QUEUE_ITEM = "queue_item"
    SCHEDULE = "schedule"


class LaunchOutcome(StrEnum):
    """How the run or the procedure ended that a launch started."""

    COMPLETED = "Completed"
    STOPPED = "Stopped"
    ABORTED = "Aborted"
    TRUNCATED = "Truncated"


@dataclass(frozen=True, kw_only=True)
class Launch(State):
    """A launch starts a plan or a recipe, and has it conducted."""

    name: FreeText
    plan_id: UUID | None
    recipe_id: UUID | None
    target: StoredTarget
    by: LaunchOrigin
    launched_by: UUID
    queue_id: UUID | None
    item_id: UUID | None
    schedule_id: UUID | None
    versions: tuple[TemplateVersion, ...]  # Of the recipes, plan, practice and method that it names, when it was decided.
    """The versions of the recipes, plan, practice and method that it names, when it was decided."""
    status: LaunchStatus = REQUESTED
    run_id: UUID | None = None
    procedure_ids: tuple[UUID, ...] = ()
    conduct_id: UUID | None = None
    outcome: LaunchOutcome | None = None
    code: str | None = None  # The class by which it was refused.
    """The class by which it was refused."""
    reason: FreeText | None = None  # Why it was refused, or ended otherwise than completed.
    ended_at: datetime | None = None


launch = Aggregate(Launch, "/launches", context="operation")


class LaunchRequested(Event, of=launch):
    """A plan or a recipe was asked for, at these versions, with everything it takes to conduct it."""

    name: FreeText
    plan_id: UUID | None
    recipe_id: UUID | None
    target: StoredTarget
    by: LaunchOrigin
    launched_by: UUID
    queue_id: UUID | None = None
    item_id: UUID | None = None
    schedule_id: UUID | None = None
    versions: tuple[TemplateVersion, ...] = ()


class LaunchBegun(Event, of=launch):
    """Its run was started, its procedures were registered, and its conduct was opened."""

    run_id: UUID | None
    procedure_ids: tuple[UUID, ...]
    conduct_id: UUID


class LaunchRefused(Event, of=launch):
    """It was refused, and nobody was there to be answered: a queue or a schedule had asked for it."""

    code: str
    detail: StateReason


class LaunchEnded(Event, of=launch):
    """Its run or procedure has ended."""

    outcome: LaunchOutcome
    reason: StateReason | None


@launch.evolve
def evolve(launch: Launch, event: LaunchBegun | LaunchRefused | LaunchEnded) -> Launch:
    match event:
        case LaunchBegun():
            return copy_with(launch, status=BEGUN, **dict(event))
        case LaunchRefused():
            why = {"code": event.code, "reason": event.detail}
            return copy_with(launch, status=REFUSED, ended_at=event.occurred_at, **why)
        case LaunchEnded():
            return copy_with(launch, status=ENDED, ended_at=event.occurred_at, **dict(event))
        case _:
            assert_never(event)


def launch_end(launch_id: UUID | None, outcome: str, reason: str | None) -> list[Also]:
    """Return what records the end of a launch with that of its run or procedure, which must have been read; nothing where
    there is none."""
    if launch_id is None:
        return []
    return [Also(Launch, launch_id, [LaunchEnded(outcome=LaunchOutcome(outcome), reason=reason)])]


GetLaunch = launch.get()


class LaunchSummary(Summary):
    launch_id: UUID
    name: str
    plan_id: UUID | None
    recipe_id: UUID | None
    by: LaunchOrigin
    launched_by: UUID
    queue_id: UUID | None
    item_id: UUID | None
    schedule_id: UUID | None
    status: LaunchStatus
    run_id: UUID | None
    outcome: LaunchOutcome | None
    code: str | None
    created_at: datetime
    ended_at: datetime | None


@launch.listing(LaunchSummary)
class ListLaunches(NamedListQuery[LaunchSummary]):
    """Launches in the order they were asked for."""

    status: LaunchStatus | None = None
    by: LaunchOrigin | None = None
    plan_id: UUID | None = None
    recipe_id: UUID | None = None
    queue_id: UUID | None = None
    schedule_id: UUID | None = None
    launched_by: UUID | None = None
