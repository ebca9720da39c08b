"""Calendar: what fires when, what became of the last firings, and who comes to visit."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

from baton.console.day_picture import HOURS, MOST_MARKS, DayRow, beginning_of, day_picture, interval_text
from baton.console.display import instant_of, look_of, words_of
from baton.console.page import Context, MenuGroup, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.rehearsals import NOT_REHEARSED, load_rehearsal
from baton.console.verbs import VerbButton, creations_of, form_href, verbs_of
from baton.domain.access.actor import ListActors
from baton.domain.calibration.calibration import ListCalibrations
from baton.domain.safety.clearance import ClearanceStatus
from baton.domain.safety.clearance_views import ListClearances
from baton.domain.schedule.calendar import next_firings
from baton.domain.schedule.schedule import Overlap, ResumeSchedule, Schedule, ScheduleStatus
from baton.domain.schedule.views import CALENDAR, GetSchedule, ListSchedules
from baton.domain.trust.visit import TERMINAL, ListVisits, Visit
from baton.domain.views.conduct_rehearsal import Rehearse

MOST_SCHEDULES, MOST_VISITS = 20, 30
VISITS_AHEAD = timedelta(days=14)
OVERLAPS = {
    Overlap.SKIP: "skips while the last one continues",
    Overlap.BUFFER_ONE: "waits for the last one, at most once",
    Overlap.ALLOW_ALL: "fires even while the last one continues",
}

calendar = page(
    "/calendar",
    "Calendar",
    "Schedules with their next firings, what became of the last ones, and visits.",
    template="calendar.html",
    menu=MenuGroup.RECORD,
)


firing_page = page(
    "/schedules/{schedule_id}/rehearsal",
    "Rehearsal of a schedule",
    "The next firing of a schedule as it would be walked, and what its start asks for.",
    template="firing.html",
    under=calendar,
)


@firing_page.title_from
async def name_schedule(queries: PageQueries) -> str:
    return (await queries.ask(GetSchedule, queries.id("schedule_id"))).name


@firing_page.region("rehearsal", asks=[GetSchedule, Rehearse], template="rehearsal.html")
async def load_firing(queries: PageQueries) -> Context:
    """Load what the next firing of a schedule would come to, at its time; nothing where it fires no more."""
    schedule = await queries.ask(GetSchedule, queries.id("schedule_id"))
    if not schedule.next_firings:
        return {**NOT_REHEARSED, "rehearsal_refusal": "Its calendar names no time to come."}
    return await load_rehearsal(queries, target=schedule.target, at=schedule.next_firings[0])


async def list_schedules(queries: PageQueries) -> tuple[list[Shown], bool]:
    """Return the schedules that may fire, and whether there are more."""
    statuses = (ScheduleStatus.ACTIVE, ScheduleStatus.HELD)
    pages = await asyncio.gather(*(queries.show(ListSchedules, status=one, limit=MOST_SCHEDULES) for one in statuses))
    items = [item for page in pages for item in page["items"]]
    return items[:MOST_SCHEDULES], len(items) > MOST_SCHEDULES or any(page["next_cursor"] for page in pages)


async def load_visits(queries: PageQueries) -> list[Shown]:
    """Return the visits that go on or come, the next one first; none to those who may not list them."""
    ahead: dict[str, Any] = {"planned_from": queries.now, "planned_to": queries.now + VISITS_AHEAD}
    page = await queries.show_if_permitted(ListVisits, **ahead, limit=MOST_VISITS)
    coming = [one for one in (page or {"items": []})["items"] if one["status"] not in TERMINAL]
    return sorted(coming, key=lambda one: str(one["planned_start_at"]))


@dataclass(frozen=True)
class ComingEnd:
    """Something that work may need and that ends within the shown days."""

    kind: str
    id: str
    name: str
    ends_at: datetime


async def load_endings(queries: PageQueries) -> list[ComingEnd]:
    """Return the clearances in force and the calibrations that end within the shown days, the next one first, as far as the
    person may list them."""
    due: dict[str, Any] = {"due_by": queries.now + VISITS_AHEAD, "limit": MOST_VISITS}
    forms = await queries.show_if_permitted(ListClearances, status=ClearanceStatus.ACTIVE, **due) or {"items": ()}
    values = await queries.show_if_permitted(ListCalibrations, **due) or {"items": ()}
    found = [("Clearance", one["clearance_id"], one["title"], one["valid_until"]) for one in forms["items"]]
    found += [
        ("Calibration", one["calibration_id"], words_of(one["quantity"]), one["latest_revision_valid_until"])
        for one in values["items"]
    ]
    endings = [ComingEnd(kind, id, name, ends) for kind, id, name, text in found if (ends := instant_of(text))]
    return sorted((one for one in endings if one.ends_at > queries.now), key=lambda one: one.ends_at)


@calendar.region("endings", asks=[ListVisits], watches=("Clearance", "Calibration"), every=60.0)
async def load_ending_list(queries: PageQueries) -> Context:
    """Load what ends within the shown days."""
    return {"endings": await load_endings(queries), "days": VISITS_AHEAD.days}


@calendar.region("day", asks=[ListSchedules], watches=("Visit", "Clearance", "Calibration"), every=30.0)
async def load_day(queries: PageQueries) -> Context:
    """Load the picture of the next hours."""
    schedules, _ = await list_schedules(queries)
    begins = beginning_of(queries.now)
    ends = begins + timedelta(hours=HOURS)
    rows = [schedule_row(one, queries.now, ends) for one in schedules]
    rows += [row for one in await load_visits(queries) if (row := visit_row(one, begins, ends)) is not None]
    rows += [DayRow(f"{one.name} ends", "look", (one.ends_at,)) for one in await load_endings(queries) if one.ends_at < ends]
    label = f"What fires, what ends and who visits in the next {HOURS} hours"
    return {"picture": day_picture(rows, begins, queries.zone, label) if rows else None, "hours": HOURS}


def schedule_row(schedule: Shown, now: datetime, ends: datetime) -> DayRow:
    """Return the row of a schedule: its firings until the picture ends."""
    status = schedule["status"]
    if status != ScheduleStatus.ACTIVE:
        return DayRow(schedule["name"], look_of(status), note=f"{words_of(status).lower()}, fires not")
    ahead = next_firings(CALENDAR.validate_python(schedule["calendar"]), schedule["time_zone"], now, MOST_MARKS + 1)
    marks = tuple(takewhile(lambda at: at < ends, ahead))
    if len(marks) <= MOST_MARKS:
        return DayRow(schedule["name"], "live", marks, note="" if marks else "not within these hours")
    return DayRow(schedule["name"], "live often", bars=((marks[0], ends),), note=f"about every {interval_text(marks)}")


def visit_row(visit: Mapping[str, object], begins: datetime, ends: datetime) -> DayRow | None:
    """Return the row of a visit, or None where it is later than the picture."""
    start, end = instant_of(visit["planned_start_at"]), instant_of(visit["planned_end_at"])
    if start is None or end is None or start >= ends or end <= begins:
        return None
    name = f"{words_of(visit['type'])} visit"
    return DayRow(name, look_of(visit["status"]), bars=((start, end),))


@calendar.region("schedules", asks=[ListSchedules, GetSchedule], watches=("Procedure", "Run"), every=30.0)
async def load_cards(queries: PageQueries) -> Context:
    """Load every schedule with its firings and its verbs, those first whose last firing was refused."""
    listed, more = await list_schedules(queries)
    schedules = await asyncio.gather(*(queries.show(GetSchedule, one["schedule_id"]) for one in listed))
    ids = sorted({one["run_as"] for one in schedules})
    actors = await queries.show_if_permitted(ListActors, actor_id=ids, limit=100) if ids else None
    names = {one["actor_id"]: one["name"] for one in (actors or {"items": []})["items"]}
    shown = [
        {
            **one,
            "later": describe_firings(one["next_firings"], queries.zone),
            "overlap_words": OVERLAPS[Overlap(one["overlap"])],
            "run_as_name": names.get(one["run_as"]),
            "last": one["last_firings"][0] if one["last_firings"] else None,
            "refused": bool(one["last_firings"]) and one["last_firings"][0]["code"] is not None,
            "verbs": schedule_verbs(one, queries),
        }
        for one in schedules
    ]
    shown.sort(key=lambda one: (not one["refused"], one["next_firings"][0] if one["next_firings"] else "~"))
    return {"schedules": shown, "more": more, "creations": creations_of(Schedule.aggregate, queries)}


def schedule_verbs(schedule: Shown, queries: PageQueries) -> list[VerbButton]:
    """Return the buttons of a schedule; resuming one whose target has changed confirms what is shown of that."""
    buttons = verbs_of(Schedule.aggregate, schedule, queries)
    if (digest := schedule["confirmed_digest"]) is None:
        return buttons
    href = form_href(ResumeSchedule.operation, schedule["id"], confirmed_digest=digest)
    return [
        replace(one, href=href, label="Confirm and resume") if one.operation is ResumeSchedule.operation else one
        for one in buttons
    ]


def describe_firings(firings: Sequence[str], zone: ZoneInfo) -> list[str]:
    """Return the firings after the first one by their hour, and by their day where it is another one."""
    times = [at.astimezone(zone) for one in firings if (at := instant_of(one)) is not None]
    return [at.strftime("%H:%M" if at.date() == times[0].date() else "%a %H:%M") for at in times[1:]]


@calendar.region("visits", asks=[ListVisits], every=60.0)
async def load_visit_cards(queries: PageQueries) -> Context:
    visits = [{**one, "verbs": verbs_of(Visit.aggregate, one, queries)} for one in await load_visits(queries)]
    return {"visits": visits, "days": VISITS_AHEAD.days, "creations": creations_of(Visit.aggregate, queries)}
