"""The views of schedules, with their next and their last firings."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import TypeAdapter

from baton.domain.kernel import Call, State, TimeTravel, Value, values_of
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.template_versions import (
    TemplateChange,
    TemplateVersion,
    changes_since,
    versions_digest,
    versions_of,
)
from baton.domain.run.run import Run
from baton.domain.schedule import schedule as schedules
from baton.domain.schedule.calendar import Calendar, next_firings
from baton.domain.schedule.messages import Firing
from baton.domain.schedule.schedule import Schedule, ScheduleStatus, schedule
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.listing import NamedListQuery, Page, Summary
from baton.domain.shared.reads import Reads, Rows, find_all, latest_events, record_of
from baton.domain.shared.text import FreeText
from baton.domain.target.target_checks import load_templates
from baton.domain.target.targets import Target

COMING, PAST = 5, 10  # Firings that are shown ahead, and behind.
CALENDAR: TypeAdapter[Calendar] = TypeAdapter(Calendar)
LAST: TypeAdapter[Firing | None] = TypeAdapter(Firing | None)
Outcomes = Mapping[UUID, str]  # The statuses of the procedures and runs that firings opened, by id.


class FiringView(Firing):
    """A firing and what became of it: where its procedure or run stands now, or the refusal by its code."""

    outcome: str


class ScheduleView(Value):
    """A schedule, its next five firings and its last ten, the newest first; its past has none of the engine's counts.

    `changes` is what the target names and is another version now; `confirmed_digest` confirms that to resume_schedule.
    """

    id: UUID
    name: FreeText
    calendar: Calendar
    time_zone: str
    overlap: schedules.Overlap
    catchup_window: Annotated[int, Seconds]
    jitter: Annotated[int, Seconds]
    target: Target
    """What is conducted: a recipe, or a run on a plan."""
    on_change: schedules.OnChange
    """What a changed target does: it is held until confirmed (hold), or continues (follow)."""
    versions: tuple[TemplateVersion, ...]
    """The versions of what its target names, when it was defined or confirmed."""
    changes: tuple[TemplateChange, ...]
    """What its target names and is another version now than when it was defined or confirmed."""
    confirmed_digest: str | None
    """What confirms these changes to resume_schedule; null where there are none."""
    run_as: UUID
    """The actor that each firing is authorized as."""
    surface_id: UUID
    conduit_id: UUID
    status: ScheduleStatus
    last_status_reason: FreeText | None
    firing_count: int
    """Number of firings so far."""
    next_firings: tuple[datetime, ...]
    """When it fires next, five times."""
    last_firings: tuple[FiringView, ...]
    """The latest firings and what became of them."""
    missed_count: int | None
    """Number of firings that were missed."""
    skipped_count: int | None
    schedule_id: UUID
    created_at: datetime


def outcomes_of(firings: Iterable[Firing]) -> Reads[Outcomes]:
    """Return the statuses of the procedures and runs that these firings opened, by id."""
    known = list(firings)
    procedures = yield from find_all(Procedure, [one.procedure_id for one in known if one.procedure_id is not None])
    runs = yield from find_all(Run, [one.run_id for one in known if one.run_id is not None])
    return {id: state.status.value for found in (procedures, runs) for id, state in found.items()}


def outcome_of(firing: Firing, outcomes: Outcomes) -> str:
    """Return the outcome of a firing in a word: a status, or the code of a refusal."""
    if firing.code is not None:
        return firing.code
    id = firing.run_id or firing.procedure_id
    return outcomes[id] if id is not None else ""


@schedule.query(get="/{schedule_id}", returns=ScheduleView)
class GetSchedule(TimeTravel[ScheduleView]):
    """One schedule, folded from its stream, with its next and its last firings."""

    def answer(self, schedule: Schedule, call: Call) -> Reads[ScheduleView]:
        events = yield from latest_events(
            schedule.id,
            schedules.ScheduleFired,
            schedules.ScheduleFiringRefused,
            count=PAST,
            as_of=self.as_of,
            as_of_version=self.as_of_version,
        )
        firings = [schedules.firing_from(event) for event in events]
        outcomes = yield from outcomes_of(firings)
        now = self.as_of or call.now
        engine = None if self.travels else (yield from record_of(schedules.ScheduleEngineState, schedule_id=schedule.id))
        templates = () if self.travels else (yield from load_templates([schedule.aim])).of(schedule.aim)
        changes = changes_since(schedule.versions, templates)
        further = {
            "changes": changes,
            "confirmed_digest": versions_digest(versions_of(templates)) if changes else None,
            "target": schedule.aim,
            "next_firings": upcoming_firings(schedule.status, schedule.calendar, schedule.time_zone, now, COMING),
            "last_firings": tuple(FiringView(**dict(one), outcome=outcome_of(one, outcomes)) for one in firings),
            "missed_count": None if engine is None else engine.missed_count + schedule.late_count,
            "skipped_count": None if engine is None else engine.skipped_count,
        }
        return ScheduleView(**values_of(schedule, ScheduleView) | further)


def upcoming_firings(
    status: ScheduleStatus, calendar: Calendar, time_zone: str, now: datetime, count: int
) -> tuple[datetime, ...]:
    """Return the next firings; only an Active schedule has any."""
    return next_firings(calendar, time_zone, now, count) if status is schedules.ACTIVE else ()


class ScheduleSummary(Summary):
    schedule_id: UUID
    name: FreeText
    calendar: Calendar
    time_zone: str
    status: ScheduleStatus
    last_firing: Firing | None
    created_at: datetime


class ScheduleItem(Value):
    """A schedule in a list, with the outcome of its last firing as in `get_schedule`."""

    schedule_id: UUID
    name: FreeText
    calendar: Calendar
    time_zone: str
    status: ScheduleStatus
    next_firing: datetime | None
    """When it fires next."""
    last_outcome: str | None
    """What became of the last firing."""
    created_at: datetime


@schedule.listing(ScheduleSummary, returns=ScheduleItem)
class ListSchedules(NamedListQuery[ScheduleItem]):
    """Schedules in the order they were defined, with when each fires next and what became of its last firing."""

    status: ScheduleStatus | None = None

    def answer(self, *known: State | Call) -> Reads[Page[Any]]:
        now = next(one.now for one in known if isinstance(one, Call))
        page: Page[ScheduleSummary] = yield Rows(self.summary, self, tuple(self.where()))
        firings = [LAST.validate_python(row.last_firing) for row in page.items]
        outcomes = yield from outcomes_of(one for one in firings if one is not None)
        listed = zip(page.items, firings, strict=True)
        return Page(tuple(schedule_item(row, firing, outcomes, now) for row, firing in listed), page.next_cursor)


def schedule_item(row: ScheduleSummary, last: Firing | None, outcomes: Outcomes, now: datetime) -> ScheduleItem:
    """Return a schedule as it is listed."""
    shown = {name: value for name, value in row if name != "last_firing"}
    calendar, status = CALENDAR.validate_python(row.calendar), ScheduleStatus(row.status)
    ahead = upcoming_firings(status, calendar, row.time_zone, now, 1)
    return ScheduleItem(
        **{**shown, "calendar": calendar, "status": status},
        next_firing=ahead[0] if ahead else None,
        last_outcome=None if last is None else outcome_of(last, outcomes),
    )
