"""A schedule: something to conduct repeatedly on a calendar, as the principal that defined it. Its stream is the authority;
a schedule of the engine executes it, and rows beside the stream say how far the two agree."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, assert_never
from uuid import UUID, uuid5

from pydantic import Field

from baton.domain.kernel import Aggregate, Call, Command, Event, JudgedCreation, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.launch.launch import LaunchOrigin, StoredTarget
from baton.domain.launch.launch_ids import OwnLaunchIds
from baton.domain.recipe.template_versions import ContentHash, TargetChangedError, TemplateVersion
from baton.domain.schedule.calendar import Calendar, check_calendar
from baton.domain.schedule.messages import Firing
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.reads import Reads, holder_of, permitted_commands, record_of
from baton.domain.shared.refusals import Conflict, Forbidden
from baton.domain.shared.text import FreeText, StateReason
from baton.domain.shared.writes import Claim, Put, Record
from baton.domain.target.half_begun import HalfBegun, load_half_begun
from baton.domain.target.start_launch import ArrangedLaunch
from baton.domain.target.target_checks import TargetSources, check_target, confirmed_versions, load_sources
from baton.domain.target.targets import (
    ConductPlan,
    ConductRecipe,
    InvalidScheduleTargetError,
    Target,
    stored_target,
    target_of,
    with_filled_names,
)

FIRINGS = "schedule-firing"  # Claim kind: a firing whose outcome is on record.
DETAIL = 500  # Characters of a refusal's sentence that are kept.


class ScheduleStatus(StrEnum):
    ACTIVE = "Active"
    HELD = "Held"
    RETIRED = "Retired"


ACTIVE, HELD, RETIRED = ScheduleStatus


class Overlap(StrEnum):
    """What happens when the last firing still continues: nothing, one more after it, or both at once."""

    SKIP = "Skip"
    BUFFER_ONE = "BufferOne"
    ALLOW_ALL = "AllowAll"


class OnChange(StrEnum):
    """What happens when the recipe, plan, practice or method of the target is another version than when it was defined: the
    schedule is held until somebody confirms it, or it follows."""

    HOLD = "hold"
    FOLLOW = "follow"


FOLLOWING = frozenset({"DefineRecipe", "VersionRecipe"})  # What the principal of a schedule that follows must hold.


@dataclass(frozen=True, kw_only=True)
class Schedule(State):
    """A schedule conducts a recipe, or a run on a plan, on a calendar, as the principal that defined it."""

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
    on_change: OnChange = OnChange.HOLD
    versions: tuple[TemplateVersion, ...] = ()  # Of what the target names; none in schedules from before they were kept.
    status: ScheduleStatus = ACTIVE
    last_status_reason: FreeText | None = None
    firing_count: int = 0
    late_count: int = 0  # How many of them nobody took up in time.
    last_firing: Firing | None = None

    @property
    def aim(self) -> ConductRecipe | ConductPlan:
        """The target as it was requested."""
        return target_of(self.target)


schedule = Aggregate(Schedule, "/schedules", context="operation")


class ScheduleDefined(Event, of=schedule, version=2, upcasters={1: dict}):
    """The schedule was defined, and fires from then on."""

    name: FreeText
    calendar: Calendar
    time_zone: str
    overlap: Overlap
    catchup_window: int
    jitter: int
    target: StoredTarget
    run_as: UUID
    surface_id: UUID
    conduit_id: UUID
    on_change: OnChange = OnChange.HOLD
    versions: tuple[TemplateVersion, ...] = ()


class ScheduleHeld(Event, of=schedule):
    """The schedule was kept from firing until somebody resumes it."""

    reason: StateReason


class ScheduleResumed(Event, of=schedule):
    """The schedule was let fire again."""


class ScheduleTargetConfirmed(Event, of=schedule):
    """Somebody confirmed the present versions of what the target names; it is conducted as this principal from then on."""

    versions: tuple[TemplateVersion, ...]
    run_as: UUID
    surface_id: UUID
    conduit_id: UUID


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
    """A firing was refused, by this refusal."""

    code: str
    detail: StateReason


class ScheduleRetired(Event, of=schedule):
    """The schedule was kept from firing for good."""

    reason: StateReason


ScheduleEvent = (
    ScheduleHeld | ScheduleResumed | ScheduleTargetConfirmed | ScheduleFired | ScheduleFiringRefused | ScheduleRetired
)


@schedule.evolve
def evolve(schedule: Schedule, event: ScheduleEvent) -> Schedule:
    match event:
        case ScheduleHeld():
            return copy_with(schedule, status=HELD, last_status_reason=event.reason)
        case ScheduleResumed():
            return copy_with(schedule, status=ACTIVE, last_status_reason=None)
        case ScheduleTargetConfirmed():
            return copy_with(schedule, **dict(event))
        case ScheduleRetired():
            return copy_with(schedule, status=RETIRED, last_status_reason=event.reason)
        case ScheduleFired() | ScheduleFiringRefused():
            return copy_with(schedule, firing_count=event.count, late_count=event.late_count, last_firing=firing_from(event))
        case _:
            assert_never(event)


def firing_from(event: FiringOutcome) -> Firing:
    """Return the firing that an event describes."""
    return Firing(**{name: value for name, value in event if name in Firing.model_fields})


@dataclass(frozen=True)
class ScheduleChange(Record):
    """A change of a schedule that is not applied to the engine yet; the latest one stands for all."""

    relation: ClassVar[str] = "schedule_changes"
    key: ClassVar[tuple[str, ...]] = ("schedule_id",)
    schedule_id: UUID
    change_id: UUID


@dataclass(frozen=True)
class ScheduleEngineState(Record):
    """The state of a schedule in the engine, as reconciliation last wrote and read it."""

    relation: ClassVar[str] = "schedule_standings"
    key: ClassVar[tuple[str, ...]] = ("schedule_id",)
    schedule_id: UUID
    removed: bool = False  # Whether a retired one is gone from the engine.
    paused: bool = False  # Whether a pause that was marked as taken over in the engine is on the record.
    missed_count: int = 0  # Firings that the engine dropped because they were missed for longer than the catch-up window.
    skipped_count: int = 0  # Firings that the engine skipped because an earlier one still went on.
    missed_seen: int = 0  # The engine's own count when last read; it begins again where its schedule was made again.
    skipped_seen: int = 0


class ScheduleFollowNotPermittedError(Forbidden, context="operation", reason="recipes_not_permitted"):
    """Only who may define recipes has a schedule follow what others make of them."""


class ScheduleFiringMissedError(Conflict, context="operation"):
    """Nobody took the firing up in time."""


class ScheduleFiringWithdrawnError(Conflict, context="operation"):
    """The schedule was held or retired before the firing had opened its conduct."""


@schedule.creation(refuses=[schedule.AlreadyExists])
class DefineSchedule(JudgedCreation[tuple[TargetSources, bool]]):
    """Conduct a recipe, or a run on a plan, on a calendar; each firing is authorized as the caller of this command.

    A cron expression has five fields, for the clock of the time zone; an interval counts from the beginning of 1970 UTC.
    """

    name: Annotated[str, schedule.text("name", 200, personal=True)]
    calendar: Calendar
    time_zone: Annotated[str, Field(min_length=1, max_length=100)] = "UTC"
    overlap: Overlap = Overlap.SKIP
    catchup_window: Annotated[int, Field(strict=True, ge=10, le=2**31 - 1), Seconds] = 60
    jitter: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1), Seconds] = 0
    on_change: OnChange = OnChange.HOLD
    """What a changed target does: it is held until confirmed (hold), or continues (follow)."""
    target: Target
    """What to conduct: a recipe, or a run on a plan."""

    def gather(self, call: Call) -> Reads[tuple[TargetSources, bool]]:
        sources = yield from load_sources((self.target,))
        return sources, (yield from permitted_commands()) >= FOLLOWING

    def decide(self, call: Call, facts: tuple[TargetSources, bool]) -> Outcome:
        sources, may_follow = facts
        check_calendar(self.calendar, self.time_zone)
        check_target(self.target, sources, call, InvalidScheduleTargetError)
        if self.on_change is OnChange.FOLLOW and not may_follow:
            needed = " and ".join(sorted(FOLLOWING))
            detail = f"A schedule follows new versions only where you hold {needed}; leave on_change at hold."
            raise ScheduleFollowNotPermittedError(detail)
        defined = ScheduleDefined(
            **{**dict(self), "target": stored_target(self.target)},
            run_as=call.principal_id,
            surface_id=call.surface_id,
            conduit_id=call.conduit_id,
            versions=sources.versions(self.target),
        )
        return [defined, Put(ScheduleEngineState(schedule_id=call.new_id)), change_row(call.new_id, call)]


def change_row(id: UUID, call: Call) -> Put:
    """Return the row that has a schedule reconciled with the engine."""
    return Put(ScheduleChange(id, call.id_for("change")))


@schedule.command(post="/{schedule_id}/hold", allowed=[ACTIVE], leads_to=HELD, attempts=3)
class HoldSchedule(Verb[Schedule]):
    """Fire no more until somebody resumes; a firing that continues is not touched."""

    reason: Annotated[str, schedule.text("hold_reason", 500, label="reason", personal=True)]

    def decide(self, schedule: Schedule, call: Call) -> Outcome:
        return [ScheduleHeld(reason=self.reason), change_row(schedule.id, call)]


@schedule.command(post="/{schedule_id}/resume", allowed=[HELD], leads_to=ACTIVE)
class ResumeSchedule(JudgedVerb[Schedule, TargetSources]):
    """Fire again as the calendar says; what would have fired meanwhile is not made up for.

    Where the target has changed, `confirmed_digest` confirms its present version; firings are authorized as the caller then.
    """

    confirmed_digest: ContentHash | None = None
    """Confirms the present version of its target, as get_schedule shows it."""

    def gather(self, schedule: Schedule, call: Call) -> Reads[TargetSources]:
        return (yield from load_sources([] if self.confirmed_digest is None else [schedule.aim]))

    def decide(self, schedule: Schedule, call: Call, sources: TargetSources) -> Outcome:
        confirmed = []
        if self.confirmed_digest is not None:
            versions = confirmed_versions(self, self.confirmed_digest, sources.versions(schedule.aim))
            by = {"run_as": call.principal_id, "surface_id": call.surface_id, "conduit_id": call.conduit_id}
            confirmed = [ScheduleTargetConfirmed(versions=versions, **by)]
        return [*confirmed, ScheduleResumed(), change_row(schedule.id, call)]


@schedule.command(post="/{schedule_id}/trigger", allowed=[ACTIVE, HELD], records=ScheduleTriggered)
class TriggerSchedule(Verb[Schedule]):
    """Fire once now, beside the calendar and whatever still continues; it is authorized as the schedule always is."""


@schedule.command(post="/{schedule_id}/retire", allowed=[ACTIVE, HELD], destructive=True)
class RetireSchedule(Verb[Schedule]):
    """Fire never again."""

    reason: Annotated[str, schedule.text("retire_reason", 500, label="reason", personal=True)]

    def decide(self, schedule: Schedule, call: Call) -> Outcome:
        return [ScheduleRetired(reason=self.reason), change_row(schedule.id, call)]


def firing_key(schedule_id: UUID, firing_id: UUID) -> str:
    """Return the key by which the outcome of a firing is claimed."""
    return f"{schedule_id} {firing_id}"


class FiringRecord(Command):
    """The outcome of a firing, recorded once however often the command is repeated."""

    firing_id: UUID
    scheduled_at: datetime

    def is_recorded(self, schedule: Schedule) -> Reads[bool]:
        """Return whether it is on record already."""
        return (yield from holder_of(FIRINGS, firing_key(schedule.id, self.firing_id))) is not None

    def once(self, schedule: Schedule, recorded: bool, outcome: Event) -> Outcome:
        """Return the outcome, unless there is one."""
        if recorded:
            return []
        rival = self.cannot("recorded", "The outcome of this firing is on record.")
        known = outcome.identify(uuid5(schedule.id, str(self.firing_id)))
        return [known, Claim(FIRINGS, firing_key(schedule.id, self.firing_id), rival)]


@schedule.internal_command()
class RecordScheduleFiring(FiringRecord, JudgedVerb[Schedule, bool]):
    """Record that a firing opened its conduct."""

    run_id: UUID | None = None
    procedure_id: UUID | None = None

    def gather(self, schedule: Schedule, call: Call) -> Reads[bool]:
        return (yield from self.is_recorded(schedule))

    def decide(self, schedule: Schedule, call: Call, recorded: bool) -> Outcome:
        own = {name: value for name, value in self if name != "firing_id"}
        fired = ScheduleFired(**own, count=schedule.firing_count + 1, late_count=schedule.late_count)
        return self.once(schedule, recorded, fired)


def arranged_firing(schedule: Schedule, at: datetime, *, follows: bool = False) -> ArrangedLaunch:
    """Return what a firing that was due at this time launches; one that follows does so at whatever versions there are."""
    target = with_filled_names(schedule.aim, at, schedule.firing_count + 1)
    versions = () if follows else schedule.versions
    return ArrangedLaunch(target=target, versions=versions, by=LaunchOrigin.SCHEDULE, schedule_id=schedule.id)


@schedule.internal_command()
class RecordScheduleFiringRefusal(FiringRecord, JudgedVerb[Schedule, tuple[bool, HalfBegun]]):
    """Record that a firing was refused, and its launch with it; it is not tried again, and what an earlier release has begun
    of it is aborted. Where its target has changed, the schedule is held until somebody confirms that."""

    code: str
    detail: str

    def gather(self, schedule: Schedule, call: Call) -> Reads[tuple[bool, HalfBegun]]:
        recorded = yield from self.is_recorded(schedule)
        reason = f"The schedule {schedule.name} did not conduct it: {self.detail}"[:DETAIL]
        return recorded, (yield from load_half_begun(OwnLaunchIds(self.firing_id), schedule.aim, reason, call))

    def decide(self, schedule: Schedule, call: Call, facts: tuple[bool, HalfBegun]) -> Outcome:
        recorded, begun = facts
        if recorded:
            return []
        late = schedule.late_count + (self.code == ScheduleFiringMissedError.__name__)
        detail, count = self.detail[:DETAIL], schedule.firing_count + 1
        refused = ScheduleFiringRefused(
            scheduled_at=self.scheduled_at, code=self.code, detail=detail, count=count, late_count=late
        )
        holds = schedule.status is ACTIVE and self.code == TargetChangedError.__name__
        held: Outcome = [ScheduleHeld(reason=detail), change_row(schedule.id, call)] if holds else []
        launch = arranged_firing(schedule, self.scheduled_at).refusal_record(
            self.firing_id, schedule.run_as, self.code, detail
        )
        return [*self.once(schedule, recorded, refused), *held, *begun.ends, launch]


@schedule.internal_command()
class TakeOverSchedulePause(JudgedVerb[Schedule, ScheduleEngineState | None]):
    """Hold a schedule that somebody paused in the engine, until somebody resumes it here."""

    def gather(self, schedule: Schedule, call: Call) -> Reads[ScheduleEngineState | None]:
        return (yield from record_of(ScheduleEngineState, schedule_id=schedule.id))

    def decide(self, schedule: Schedule, call: Call, engine: ScheduleEngineState | None) -> Outcome:
        if schedule.status is not ACTIVE or engine is None or engine.paused:
            return []
        held = ScheduleHeld(reason="paused in the engine")
        return [held, Put(replace(engine, paused=True)), change_row(schedule.id, call)]
