"""Shift: what happened from one time to another, last night above all. Runs, supplies and permits on one time axis, and in
sentences what was held, refused, lost and warned of, to be handed over to the logbook of the facility."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from baton.api.http import Request, Response
from baton.client.refusals import ProposedError
from baton.console.actions import lead_to, lead_to_proposal, safe_path, typed_in
from baton.console.display import SIGNS, duration_text, instant_of, look_of, reason_text, shown_status, words_of
from baton.console.in_process import REFUSALS, InProcessClient, entry_of
from baton.console.page import Context, MenuGroup, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.waiting import SHARED, load_first_waiting, wrong_first
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.shift_picture import Bar, EventMark, Lane, shift_picture
from baton.console.shift_story import WANTED, Envelope, Happening, happenings_in, states_in
from baton.console.stretch import SHIFT, Stretch, last_night, stretch_of, today, written_time
from baton.domain.data.dataset import ListDatasets
from baton.domain.decision.decision import RegisterDecision
from baton.domain.equipment.asset_tree import GetAssetTree
from baton.domain.recipe.plan import GetPlan
from baton.domain.run.run import HELD, RUNNING, ListRuns, RunStatus
from baton.domain.shared.refusals import Conflict
from baton.domain.supply.coverage import PHOTON_BEAM
from baton.domain.supply.supply import GetSupply
from baton.domain.views.event_log import ListEvents
from baton.infrastructure.publishing import FileMirror

MOST_RUNS, MOST_PAGES, PAGE = 200, 3, 100
EARLIER_RUNS = 20  # Runs before the stretch that are looked at, since they may have ended in it.
ENDS = {"Stopped": "Stopped", "Aborted": "Aborted", "Truncated": "Found dead and closed"}
"""The ends of runs that are told, in words."""
HANDOVER = "ShiftHandover"  # The context of the decision that a handover is on record as.
LONGEST_TEXT = 5000
CUT = "\n… The rest is on the page of the shift."

shift = page(
    "/shift",
    "Shift",
    "What happened last night, or from any time to another: runs, holds, refusals, losses of beam, cautions.",
    template="shift.html",
    menu=MenuGroup.RECORD,
)


class NoLogbookError(Conflict):
    """Nothing can be handed over where no logbook is configured."""


@dataclass(frozen=True)
class ShiftRun:
    """A run of a shift: its number, when it was on, how it ended, by whom and why."""

    number: int
    id: str
    name: str
    status: str
    begins: datetime
    ends: datetime | None
    plan_id: str
    started_by: str
    ended_by: str
    why: str

    @classmethod
    def of(cls, number: int, row: Shown) -> "ShiftRun":
        status = str(getattr(shown_status(row), "value", shown_status(row)))
        begins = instant_of(row["created_at"])
        assert begins is not None, "every run was started"
        why = row["last_hold_reason"] if status == HELD.value else row["end_reason"]
        names = (row["started_by_name"] or "", row["ended_by_name"] or "")
        told = reason_text(why or "").rstrip(".")
        return cls(
            number, row["run_id"], row["name"], status, begins, instant_of(row["ended_at"]), row["plan_id"], *names, told
        )

    @property
    def look(self) -> str:
        return look_of(self.status)

    @property
    def text(self) -> str:
        """What stands in its bar: its number, and a sign where it did not complete."""
        return f"{self.number}" if self.status == RunStatus.COMPLETED.value else f"{self.number} {SIGNS[self.look]}"

    def seconds(self, now: datetime) -> float:
        """Return how long it was on."""
        return ((self.ends or now) - self.begins) / timedelta(seconds=1)


@dataclass(frozen=True)
class Story:
    """A stretch of time: its runs, and what happened in it."""

    stretch: Stretch
    zone: ZoneInfo
    runs: tuple[ShiftRun, ...]
    more_runs: bool
    events: tuple[Envelope, ...]
    more_events: bool
    happenings: tuple[Happening, ...]
    supplies: Mapping[str, Shown]
    beamlines: Mapping[str, str]  # By plan.
    dataset_count: int | None
    more_datasets: bool
    left: tuple[Shown, ...]  # What waits for a person now.

    @property
    def measured_seconds(self) -> float:
        """How long at least one run was on."""
        spans = sorted(self.stretch.clip(run.begins, run.ends) for run in self.runs)
        total, until = timedelta(), self.stretch.begins
        for begins, ends in spans:
            total += max(ends - max(begins, until), timedelta())
            until = max(until, ends)
        return total / timedelta(seconds=1)

    @property
    def measured_share(self) -> float:
        return self.measured_seconds / (self.stretch.length / timedelta(seconds=1))

    @property
    def outcomes(self) -> str:
        """How many runs are in each state."""
        counts = Counter(run.status for run in self.runs)
        return " · ".join(f"{count} {words_of(status).lower()}" for status, count in counts.most_common())

    @property
    def losses(self) -> tuple[Happening, ...]:
        """The losses of beam."""
        return tuple(one for one in self.happenings if one.words == "Beam lost")

    @property
    def holds(self) -> tuple[Happening, ...]:
        """The holds of runs."""
        return tuple(one for one in self.happenings if one.words == "Held")

    def seconds_of(self, happenings: Iterable[Happening]) -> float:
        """Return how long these lasted together."""
        return sum(one.seconds(self.stretch.ends) for one in happenings)


async def load_story(queries: PageQueries) -> Story:
    """Return the story of the stretch that the address names, as far as the person may see it."""
    stretch = stretch_of(queries)
    (rows, more_runs), (events, more_events), datasets = await asyncio.gather(
        load_runs(queries, stretch), load_events(queries, stretch), load_datasets(queries, stretch)
    )
    runs = tuple(ShiftRun.of(number, row) for number, row in enumerate(rows, 1))
    supplies, beamlines = await asyncio.gather(load_supplies(queries, events), load_beamlines(queries, runs))
    kinds = {id: str(view["kind"]) for id, view in supplies.items()}
    told = (stretch, queries.zone, runs, more_runs, tuple(events), more_events)
    happenings = tuple(with_ends(happenings_in(events, kinds), runs, stretch))
    count, more = (None, False) if datasets is None else (len(datasets["items"]), datasets["next_cursor"] is not None)
    waiting = await load_first_waiting(queries, SHARED) if stretch.lasts else None
    left = tuple(wrong_first(waiting["items"])) if waiting is not None else ()
    return Story(*told, happenings, supplies, beamlines, count, more, left)


def with_ends(happenings: Iterable[Happening], runs: Sequence[ShiftRun], stretch: Stretch) -> list[Happening]:
    """Return what happened with the ends of runs that were not completed, which end their holds too."""
    ends = {run.id: run.ends for run in runs}
    closed = [
        replace(one, until=ends.get(one.id)) if one.about == "Run" and one.until is None else one for one in happenings
    ]
    told = [
        Happening(run.ends, run.look, ENDS[run.status], "Run", run.id, run.name, run.why, run.ended_by)
        for run in runs
        if run.status in ENDS and run.ends is not None and run.ends <= stretch.ends
    ]
    return sorted((*closed, *told), key=lambda one: one.at)


async def load_runs(queries: PageQueries, stretch: Stretch) -> tuple[list[Shown], bool]:
    """Return the runs that were on in a stretch, in the order they began, and whether there were more."""
    among: dict[str, Any] = {"created_from": stretch.begins, "created_to": stretch.ends, "order": "desc"}
    earlier = await queries.show(ListRuns, created_to=stretch.begins, order="desc", limit=EARLIER_RUNS)
    found = {row["run_id"]: row for row in earlier["items"]}
    cursor = None
    for _ in range(MOST_RUNS // PAGE):
        answer = await queries.show(ListRuns, **among, limit=PAGE, cursor=cursor)
        found |= {row["run_id"]: row for row in answer["items"]}
        if (cursor := answer["next_cursor"]) is None:
            break
    for status in (RUNNING, HELD):
        answer = await queries.show(ListRuns, status=status, created_to=stretch.ends, limit=PAGE)
        found |= {row["run_id"]: row for row in answer["items"]}
    shown = [row for row in found.values() if (ended := instant_of(row["ended_at"])) is None or ended >= stretch.begins]
    ordered = sorted(shown, key=lambda row: (row["created_at"], row["run_id"]))
    return ordered, cursor is not None and len(shown) >= MOST_RUNS


async def load_events(queries: PageQueries, stretch: Stretch) -> tuple[list[Envelope], bool]:
    """Return the events that are told, the latest of them where there are very many, and whether there were more."""
    found: list[Envelope] = []
    among: dict[str, Any] = {"since": stretch.begins, "event_type": WANTED, "order": "desc", "limit": PAGE}
    until = {} if stretch.lasts else {"until": stretch.ends}
    cursor = None
    for _ in range(MOST_PAGES):
        answer = await queries.show(ListEvents, **among, **until, cursor=cursor)
        found += answer["items"]
        if (cursor := answer["next_cursor"]) is None:
            break
    return found, cursor is not None


async def load_datasets(queries: PageQueries, stretch: Stretch) -> Shown | None:
    """Return the datasets that were registered in a stretch; None where the person may not list them."""
    within = {"created_from": stretch.begins, "created_to": stretch.ends}
    return await queries.show_if_permitted(ListDatasets, **within, limit=PAGE)


async def load_supplies(queries: PageQueries, events: Sequence[Envelope]) -> dict[str, Shown]:
    """Return the supplies that changed, by their ids, as far as the person may see them."""
    ids = list(dict.fromkeys(one["stream_id"] for one in events if one["stream_type"] == "Supply"))
    views = await asyncio.gather(*(queries.show_found(GetSupply, id) for id in ids))
    return {id: view for id, view in zip(ids, views, strict=True) if view is not None}


async def load_beamlines(queries: PageQueries, runs: Sequence[ShiftRun]) -> dict[str, str]:
    """Return the names of the beamlines that plans are for, as far as the person may see them."""
    ids = list(dict.fromkeys(run.plan_id for run in runs))
    names = await asyncio.gather(*(load_beamline(queries, id) for id in ids))
    return {id: name for id, name in zip(ids, names, strict=True) if name}


async def load_beamline(queries: PageQueries, plan_id: str) -> str | None:
    """Return the name of the asset that everything of a plan is part of."""
    plan = await queries.show_found(GetPlan, plan_id, include=None)
    if plan is None or not plan["asset_ids"]:
        return None
    above = await queries.show_found(GetAssetTree, min(plan["asset_ids"]), direction="ancestors")
    return None if above is None else str(above["nodes"][-1]["name"])


@shift.region(
    "story", asks=[ListRuns, ListEvents], watches=("Supply", "Enclosure", "Queue", "Caution", "Subject"), every=30.0
)
async def load_story_region(queries: PageQueries) -> Context:
    story = await load_story(queries)
    lanes = lanes_of(story)
    label = (
        f"{len(story.runs)} runs, the supplies and what happened, on one time axis; the lists below say the same in words"
    )
    return {
        "story": story,
        "picture": shift_picture(lanes, story.stretch.on_axis, queries.zone, label) if lanes else None,
        "now": queries.now,
        "signs": SIGNS,
    }


def lanes_of(story: Story) -> list[Lane]:
    """Return the lanes of the picture: runs by beamline, what changed of supplies and permits, and everything else."""
    lanes = [lane for name, runs in by_beamline(story).items() for lane in run_lanes(name, runs, story)]
    changed: dict[str, list[Envelope]] = {}
    for event in sorted(story.events, key=lambda one: (one["occurred_at"], one["position"])):
        if "from_status" in event["payload"]:
            changed.setdefault(event["stream_id"], []).append(event)
    for id, events in changed.items():
        states = states_in(events, story.stretch.on_axis.begins, story.stretch.on_axis.ends)
        is_beam = story.supplies.get(id, {}).get("kind") == PHOTON_BEAM
        name = "Beam" if is_beam else str((events[0].get("stream") or {}).get("name") or words_of(events[0]["stream_type"]))
        bars = [Bar(one.begins, one.ends, one.look, f"{name}: {one.words}") for one in states]
        lanes.append(Lane(name, bars, thin=True))
    marks = [EventMark(one.at, one.look, happening_line(one, story)) for one in story.happenings]
    return [*lanes, Lane("Events", marks=marks)] if marks else lanes


def by_beamline(story: Story) -> dict[str, list[ShiftRun]]:
    """Return the runs by the name of their beamline."""
    found: dict[str, list[ShiftRun]] = {}
    for run in story.runs:
        found.setdefault(story.beamlines.get(run.plan_id, "Runs"), []).append(run)
    return dict(sorted(found.items()))


def run_lanes(name: str, runs: Sequence[ShiftRun], story: Story) -> list[Lane]:
    """Return the runs of a beamline in as few lanes as hold them beside each other."""
    lanes: list[list[ShiftRun]] = []
    for run in runs:
        free = next((lane for lane in lanes if (lane[-1].ends or story.stretch.ends) <= run.begins), None)
        if free is None:
            lanes.append([run])
        else:
            free.append(run)
    return [
        Lane(
            name if number == 0 else "",
            [
                Bar(*story.stretch.on_axis.clip(one.begins, one.ends), one.look, run_line(one, story), one.text)
                for one in lane
            ],
        )
        for number, lane in enumerate(lanes)
    ]


def clock_text(at: datetime, zone: ZoneInfo) -> str:
    """Return a time of day."""
    return at.astimezone(zone).strftime("%H:%M")


def run_line(run: ShiftRun, story: Story) -> str:
    """Return a run in one line of plain text."""
    begins, ends = clock_text(run.begins, story.zone), clock_text(run.ends, story.zone) if run.ends else "now"
    took = f", {duration_text(run.seconds(run.ends))}" if run.ends else ""
    who = f", started by {run.started_by}" if run.started_by else ""
    ended = f" by {run.ended_by}" if run.why and run.ended_by else ""
    why = f"{ended}: {run.why}" if run.why else ""
    return f"{begins}-{ends} {run.name}{who}{took}, {words_of(run.status).lower()}{why}"


def happening_line(one: Happening, story: Story) -> str:
    """Return what happened in one line of plain text."""
    why = f": {one.why}" if one.why else ""
    lasted = ""
    if one.lasted:
        lasted = f", {duration_text(one.seconds(one.until))}" if one.until else ", still so"
    who = f" ({one.who})" if one.who else ""
    return f"{clock_text(one.at, story.zone)} {one.words}: {one.name}{why}{lasted}{who}"


def text_of(story: Story) -> str:
    """Return a shift as plain text, for a logbook."""
    begins, ends = (at.astimezone(story.zone) for at in (story.stretch.begins, story.stretch.ends))
    facts = ["No run"]
    if story.runs:
        count = f"{len(story.runs)}{' or more' if story.more_runs else ''}"
        facts = [f"{count} {'run' if count == '1' else 'runs'} ({story.outcomes})"]
        facts.append(f"measured {duration_text(story.measured_seconds)} ({story.measured_share:.0%})")
    if story.losses:
        facts.append(f"beam lost {duration_text(story.seconds_of(story.losses))}, {times_text(len(story.losses))}")
    if story.dataset_count:
        facts.append(f"{story.dataset_count}{' or more' if story.more_datasets else ''} datasets")
    lines = [f"Shift from {begins:%a %d %b %Y %H:%M} to {ends:%a %d %b %H:%M %Z}", f"{'; '.join(facts)}."]
    if story.left:
        lines += ["", "Left", *(f"{one['name']}: {reason_text(one['why'])}" for one in story.left)]
    if story.happenings:
        lines += ["", "What happened", *(happening_line(one, story) for one in story.happenings)]
    if story.runs:
        lines += ["", "Runs", *(f"{run.number}. {run_line(run, story)}" for run in story.runs)]
    text = "\n".join(lines)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - len(CUT)].rsplit("\n", 1)[0] + CUT


def times_text(count: int) -> str:
    """Return how often something happened."""
    return "once" if count == 1 else f"{count} times"


@shift.loads(asks=[])
async def load_page(queries: PageQueries) -> Context:
    stretch, now, zone = stretch_of(queries), queries.now, queries.zone
    night, day = last_night(now, zone), today(now, zone)
    choices = {
        "Last night": address(night, zone),
        "Today": address(day, zone),
        f"The last {SHIFT // timedelta(hours=1)} hours": "/console/shift",
    }
    may_hand_over = queries.may(RegisterDecision.operation)
    text = text_of(await load_story(queries)) if queries.may(ListRuns, ListEvents) else None
    times = {name: written_time(at, zone) for name, at in (("begins", stretch.begins), ("ends", stretch.ends))}
    return {"stretch": stretch, "choices": choices, "text": text, "may_hand_over": may_hand_over, **times}


def address(stretch: Stretch, zone: ZoneInfo) -> str:
    """Return the address of the page about a stretch."""
    until = "" if stretch.lasts else f"&to={written_time(stretch.ends, zone)}"
    return f"/console/shift?from={written_time(stretch.begins, zone)}{until}"


@handles("POST", "/shift/hand-over")
async def hand_over(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Put the text of a shift on record as a decision of the person, and copy it to the logbook of the facility."""
    typed = typed_in(await request.body())
    settings = console.parts.host.settings
    if settings.logbook_mirror_directory is None:
        raise NoLogbookError("No logbook is configured here, so nothing was handed over; take the text along.")
    client = InProcessClient.of(console.parts.operations, session.caller)
    given = {"decided_by": str(session.caller.principal_id), "context": HANDOVER, "choice": "Handed over"}
    told = {**given, "reasoning": typed.get("text", "")}
    try:
        made = await client.carry_out(client.session.call(entry_of(RegisterDecision.operation), told))
    except ProposedError as error:
        return lead_to_proposal(request, session, error, console.zone, client.session.position)
    except REFUSALS as refusal:
        return await console.refusal_page(request, session, refusal, session.caller)
    logbook = console.rules.logbook or ""
    copied = await FileMirror(settings.logbook_mirror_directory, ()).mirror_decision(
        made.decision_id, told["reasoning"], logbook
    )
    said = f"Handed over to the logbook {logbook}." if copied else "It is on record; the logbook could not be written."
    return lead_to(request, session, safe_path(typed.get("back")) or "/console/shift", said, client.session.position)
