"""A schedule: something to conduct on a calendar, again and again, as whoever defined it.

The stream is the record and the authority; a calendar of the engine executes it. When it fires is in `calendar`, what it
then does in `scheduled`, and how it is shown in `schedule_views`.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, assert_never
from uuid import UUID, uuid5

from pydantic import Field

from baton.domain.kernel import (
    Aggregate,
    Call,
    Command,
    Event,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    State,
    Value,
    Verb,
    changed,
)
from baton.domain.operation.procedure.procedure import DEFINED, Procedure, ProcedureAborted
from baton.domain.operation.schedule.calendar import Calendar, check_calendar
from baton.domain.operation.schedule.calendar_state import ScheduleChange, ScheduleStanding
from baton.domain.operation.schedule.schedule_action import (
    ConductPlan,
    ConductRecipe,
    Target,
    check_target,
    recipes_of,
    target_of,
    unfit,
    written,
)
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import Recipe
from baton.domain.shared.reads import Reads, every, existing, holder_of, record_of, required, required_all
from baton.domain.shared.refusals import Conflict, Invalid, Unprocessable
from baton.domain.shared.text import FreeText, TextsMayContainPersonalData
from baton.domain.shared.units import Seconds
from baton.domain.shared.writes import Also, Claim, Put

FIRINGS = "schedule-firing"
"""Claim kind: a firing whose outcome is on record."""
PAUSED_IN_THE_ENGINE = "paused in the engine"
DETAIL = 500
"""Characters of a refusal's sentence that are kept."""


class ScheduleStatus(StrEnum):
    ACTIVE = "Active"
    HELD = "Held"
    RETIRED = "Retired"


ACTIVE, HELD, RETIRED = ScheduleStatus


class Overlap(StrEnum):
    """What happens when the last firing still goes on: nothing, one more after it, or both at once."""

    SKIP = "Skip"
    BUFFER_ONE = "BufferOne"
    ALLOW_ALL = "AllowAll"


class Firing(Value):
    """What became of a firing: what it set going, or by what it was refused."""

    scheduled_at: datetime
    run_id: UUID | None = None
    procedure_id: UUID | None = None
    code: str | None = None
    detail: FreeText | None = None


@dataclass(frozen=True, kw_only=True)
class Schedule(State):
    """A schedule conducts a recipe, or a run on a plan, on a calendar, as whoever defined it."""

    name: FreeText
    calendar: Calendar
    time_zone: str
    overlap: Overlap
    catchup_window: int
    jitter: int
    target: dict[str, Any]
    run_as: UUID
    surface_id: UUID
    conduit_id: UUID
    status: ScheduleStatus = ACTIVE
    last_status_reason: FreeText | None = None
    firing_count: int = 0
    late_count: int = 0
    """How many of them nobody took up in time."""
    last_firing: Firing | None = None

    @property
    def aim(self) -> ConductRecipe | ConductPlan:
        """The target as it was asked for."""
        return target_of(self.target)


schedule = Aggregate(Schedule, "/schedules", context="operation")


class ScheduleDefined(Event, of=schedule):
    """The schedule was defined, and fires from then on."""

    name: FreeText
    calendar: Calendar
    time_zone: str
    overlap: Overlap
    catchup_window: int
    jitter: int
    target: Annotated[
        dict[str, Any], TextsMayContainPersonalData(codes=frozenset({"command", "kind", "procedure_kind", "substrate"}))
    ]
    run_as: UUID
    surface_id: UUID
    conduit_id: UUID


class ScheduleHeld(Event, of=schedule):
    """The schedule was kept from firing until somebody resumes it."""

    reason: FreeText


class ScheduleResumed(Event, of=schedule):
    """The schedule was let fire again."""


class ScheduleTriggered(Event, of=schedule, inert=True):
    """Somebody had the schedule fire once, beside its calendar."""


class FiringOutcome(Event):
    """What became of a firing that was not idle; `count` is its number, `late_count` how many nobody took up in time."""

    scheduled_at: datetime
    count: int
    late_count: int = 0


class ScheduleFired(FiringOutcome, of=schedule, overwrites=True):
    """A firing opened its conduct."""

    run_id: UUID | None
    procedure_id: UUID | None


class ScheduleFiringRefused(FiringOutcome, of=schedule, overwrites=True):
    """A firing came to nothing, by this refusal."""

    code: str
    detail: FreeText


class ScheduleRetired(Event, of=schedule):
    """The schedule was kept from firing for good."""

    reason: FreeText


ScheduleEvent = ScheduleHeld | ScheduleResumed | ScheduleFired | ScheduleFiringRefused | ScheduleRetired


@schedule.begin
def begin(event: ScheduleDefined) -> Schedule:
    return Schedule(id=event.stream_id, created_at=event.occurred_at, **dict(event))


@schedule.evolve
def evolve(schedule: Schedule, event: ScheduleEvent) -> Schedule:
    match event:
        case ScheduleHeld():
            return changed(schedule, status=HELD, last_status_reason=event.reason)
        case ScheduleResumed():
            return changed(schedule, status=ACTIVE, last_status_reason=None)
        case ScheduleRetired():
            return changed(schedule, status=RETIRED, last_status_reason=event.reason)
        case ScheduleFired() | ScheduleFiringRefused():
            return changed(schedule, firing_count=event.count, late_count=event.late_count, last_firing=became(event))
        case _:
            assert_never(event)


def became(event: FiringOutcome) -> Firing:
    """What an event says became of a firing."""
    return Firing(**{name: value for name, value in event if name in Firing.model_fields})


class ScheduleFiringMissedError(Conflict, context="operation"):
    """Nobody took the firing up in time."""


class ScheduleFiringWithdrawnError(Conflict, context="operation"):
    """The schedule was held or retired before the firing had opened its conduct."""


@dataclass(frozen=True)
class Sources:
    """What the procedures of a target are registered from."""

    recipes: dict[UUID, Recipe]
    capability: Capability | None
    """That of the recipe, where the target is one."""


@schedule.creation(refuses=[schedule.AlreadyExists])
class DefineSchedule(JudgedCreation[Sources]):
    """Conduct a recipe, or a run on a plan, on a calendar; each firing is authorized as the caller of this command.

    A cron expression has five fields, for the clock of the time zone; an interval counts from the beginning of 1970 UTC.
    """

    name: Annotated[str, schedule.text("name", 200, personal=True)]
    calendar: Calendar
    time_zone: Annotated[str, Field(min_length=1, max_length=100)] = "UTC"
    overlap: Overlap = Overlap.SKIP
    catchup_window: Annotated[int, Field(strict=True, ge=10, le=2**31 - 1), Seconds] = 60
    jitter: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1), Seconds] = 0
    target: Target

    def gather(self, call: Call) -> Reads[Sources]:
        if isinstance(self.target, ConductPlan):
            yield from required(Plan, self.target.plan_id)
        recipes = yield from required_all(Recipe, [one.recipe_id for one in recipes_of(self.target)])
        capability = None
        if isinstance(self.target, ConductRecipe):
            capability = yield from existing(Capability, recipes[self.target.recipe_id].capability_id)
        return Sources(recipes, capability)

    def decide(self, call: Call, sources: Sources) -> Outcome:
        check_calendar(self.calendar, self.time_zone)
        check_target(self.target, call.now)
        if isinstance(self.target, ConductRecipe) and sources.capability is not None:
            check_bound(self.target, sources.recipes[self.target.recipe_id], sources.capability, call)
        defined = ScheduleDefined(
            **{**dict(self), "target": written(self.target)},
            run_as=call.principal_id,
            surface_id=call.surface_id,
            conduit_id=call.conduit_id,
        )
        return [defined, Put(ScheduleStanding(schedule_id=call.new_id)), changes(call.new_id, call)]


def check_bound(target: ConductRecipe, recipe: Recipe, capability: Capability, call: Call) -> None:
    """Refuse bindings that the recipe cannot be expanded with; whether it is in service is asked when it fires."""
    try:
        registration = target.registration(call.now, 1)
        registration.decide(call, registration.origin(recipe, capability, None, frozenset()))
    except (Invalid, Unprocessable) as refusal:
        cause = {"code": refusal.code, "reason": refusal.reason}
        raise unfit("bindings_unfit", refusal.detail, cause=cause, **(refusal.facts or {})) from None
    except Conflict:
        return


def changes(id: UUID, call: Call) -> Put:
    """What tells the keeper of the engine's calendars to look at a schedule."""
    return Put(ScheduleChange(id, call.id_for("change")))


@schedule.command(post="/{schedule_id}/hold", allowed=[ACTIVE], attempts=3)
class HoldSchedule(Verb[Schedule]):
    """Fire no more until somebody resumes; a firing that goes on is not touched."""

    reason: Annotated[str, schedule.text("hold_reason", 500, label="reason", personal=True)]

    def decide(self, schedule: Schedule, call: Call) -> Outcome:
        return [ScheduleHeld(reason=self.reason), changes(schedule.id, call)]


@schedule.command(post="/{schedule_id}/resume", allowed=[HELD])
class ResumeSchedule(Verb[Schedule]):
    """Fire again as the calendar says; what would have fired meanwhile is not made up for."""

    def decide(self, schedule: Schedule, call: Call) -> Outcome:
        return [ScheduleResumed(), changes(schedule.id, call)]


@schedule.command(post="/{schedule_id}/trigger", allowed=[ACTIVE, HELD])
class TriggerSchedule(Verb[Schedule]):
    """Fire once now, beside the calendar and whatever still goes on; it is authorized as the schedule always is."""

    def decide(self, schedule: Schedule, call: Call) -> Outcome:
        return [ScheduleTriggered()]


@schedule.command(post="/{schedule_id}/retire", allowed=[ACTIVE, HELD], destructive=True)
class RetireSchedule(Verb[Schedule]):
    """Fire never again."""

    reason: Annotated[str, schedule.text("retire_reason", 500, label="reason", personal=True)]

    def decide(self, schedule: Schedule, call: Call) -> Outcome:
        return [ScheduleRetired(reason=self.reason), changes(schedule.id, call)]


def firing_key(schedule_id: UUID, firing_id: UUID) -> str:
    """The key by which the outcome of a firing is claimed."""
    return f"{schedule_id} {firing_id}"


class FiringRecord(Command):
    """The outcome of a firing, put on record once, whoever repeats it."""

    firing_id: UUID
    scheduled_at: datetime

    def is_recorded(self, schedule: Schedule) -> Reads[bool]:
        """Whether it is on record already."""
        return (yield from holder_of(FIRINGS, firing_key(schedule.id, self.firing_id))) is not None

    def once(self, schedule: Schedule, recorded: bool, outcome: Event) -> Outcome:
        """The outcome, unless there is one."""
        if recorded:
            return []
        rival = self.cannot("recorded", "The outcome of this firing is on record.")
        known = outcome.known_as(uuid5(schedule.id, str(self.firing_id)))
        return [known, Claim(FIRINGS, firing_key(schedule.id, self.firing_id), rival)]


@schedule.inner()
class RecordScheduleFiring(FiringRecord):
    """Record that a firing opened its conduct."""

    run_id: UUID | None = None
    procedure_id: UUID | None = None

    def gather(self, schedule: Schedule, call: Call) -> Reads[bool]:
        return (yield from self.is_recorded(schedule))

    def decide(self, schedule: Schedule, call: Call, recorded: bool) -> Outcome:
        fired = ScheduleFired(
            scheduled_at=self.scheduled_at,
            run_id=self.run_id,
            procedure_id=self.procedure_id,
            count=schedule.firing_count + 1,
            late_count=schedule.late_count,
        )
        return self.once(schedule, recorded, fired)


@schedule.inner()
class RecordScheduleFiringRefusal(FiringRecord):
    """Record that a firing was refused, and abort with it what it registered and did not open; it is not tried again."""

    code: str
    detail: str
    procedure_ids: tuple[UUID, ...] = ()
    """What the firing may have registered."""

    def gather(self, schedule: Schedule, call: Call) -> Reads[tuple[bool, tuple[Procedure, ...]]]:
        recorded = yield from self.is_recorded(schedule)
        registered = yield from every(Procedure, self.procedure_ids)
        return recorded, tuple(procedure for procedure in registered.values() if procedure.status is DEFINED)

    def decide(self, schedule: Schedule, call: Call, facts: tuple[bool, tuple[Procedure, ...]]) -> Outcome:
        recorded, unopened = facts
        refused = ScheduleFiringRefused(
            scheduled_at=self.scheduled_at,
            code=self.code,
            detail=self.detail[:DETAIL],
            count=schedule.firing_count + 1,
            late_count=schedule.late_count + (self.code == ScheduleFiringMissedError.__name__),
        )
        aborted = f"The schedule {schedule.name} did not conduct it: {self.detail}"[:DETAIL]
        return [
            *self.once(schedule, recorded, refused),
            *(Also(Procedure, one.id, [ProcedureAborted(reason=aborted, actuation_kind=None)]) for one in unopened),
        ]


@schedule.inner()
class TakeOverSchedulePause(JudgedVerb[Schedule, ScheduleStanding | None]):
    """Hold a schedule that somebody paused in the engine, until somebody resumes it here."""

    def gather(self, schedule: Schedule, call: Call) -> Reads[ScheduleStanding | None]:
        return (yield from record_of(ScheduleStanding, schedule_id=schedule.id))

    def decide(self, schedule: Schedule, call: Call, standing: ScheduleStanding | None) -> Outcome:
        if schedule.status is not ACTIVE or standing is None or standing.paused:
            return []
        taken = Put(replace(standing, paused=True))
        return [ScheduleHeld(reason=PAUSED_IN_THE_ENGINE), taken, changes(schedule.id, call)]
