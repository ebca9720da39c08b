"""Rehearsals as pages show them: the verdict in a sentence, when it ends, a bar in time, a line for each axis between its
limits, the steps, the files, and the conditions of a later start."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from baton.console.display import href_of, instant_of
from baton.console.judgement import gate_words
from baton.console.page import Context
from baton.console.page_queries import PageQueries, Shown
from baton.console.rehearsal_pictures import AxisCourse, TimedPart, axis_picture, time_bar
from baton.console.step_window import SHOWN_STEPS
from baton.domain.conduct.rehearsal import RehearsalVerdict, RehearsedVerdict
from baton.domain.contexts import REGISTRY
from baton.domain.shared.refusals import Refusal
from baton.domain.views.conduct_rehearsal import Rehearse

MOST_AXES, MOST_FILES = 6, 12
NOT_REHEARSED: Context = {"rehearsed": None, "rehearsal_refusal": None}
VERDICTS = {
    RehearsalVerdict.GOES_THROUGH: ("good", "✓", "goes through"),
    RehearsalVerdict.MAY_STOP_AT: ("look", "▲", "may stop"),
    RehearsalVerdict.STOPS_AT: ("stop", "✗", "stops"),
}  # How each verdict looks, its sign and its words.
STEP_VERDICTS = {
    RehearsedVerdict.OK: ("good", "✓"),
    RehearsedVerdict.WAITS: ("look", "…"),
    RehearsedVerdict.UNKNOWN: ("look", "▲"),
    RehearsedVerdict.REFUSED: ("stop", "✗"),
    RehearsedVerdict.FAILS: ("stop", "✗"),
}
HOLDINGS = {"yes": ("good", "✓"), "unknown": ("look", "▲"), "no": ("stop", "✗")}


async def load_rehearsal(queries: PageQueries, **asked: object) -> Context:
    """Return what the template of a rehearsal shows; nothing where the person may not ask for one."""
    if not queries.may(Rehearse):
        return NOT_REHEARSED
    try:
        answer = await queries.show(Rehearse, limit=SHOWN_STEPS, **asked)
    except Refusal as refusal:
        return {**NOT_REHEARSED, "rehearsal_refusal": refusal.detail}
    return {**NOT_REHEARSED, **rehearsal_context(answer, queries.zone)}


def rehearsal_context(answer: Shown, zone: ZoneInfo) -> Context:
    """Return an answer as its template shows it."""
    look, sign, word = VERDICTS[RehearsalVerdict(answer["verdict"])]
    begins, ends = instant_of(answer["phases"][0]["begins_at"] if answer["phases"] else None), known_end(answer)
    return {
        "rehearsed": answer,
        "look": look,
        "sign": sign,
        "word": word,
        "sentence": sentence_of(answer),
        "seconds": None if begins is None or ends is None else (ends - begins).total_seconds(),
        "ends_at": ends,
        "bar": bar_of(answer, zone),
        "axes": [{"axis": axis, "picture": axis_picture(axis, answer["walked_count"])} for axis in axes_of(answer)],
        "more_axes": max(0, len(answer["travel"]) - MOST_AXES),
        "rows": [{**step, "shown": STEP_VERDICTS[RehearsedVerdict(step["verdict"])]} for step in answer["steps"]],
        "files": answer["files"][:MOST_FILES],
        "more_files": max(0, len(answer["files"]) - MOST_FILES),
        "conditions": [condition_row(one) for one in answer["conditions"]],
    }


def sentence_of(answer: Shown) -> str:
    """Return the verdict in a sentence: the step that decides it and why, or what the answer says."""
    if (step := answer["trouble"]) is None:
        return str(answer["message"])
    which = "Closing step" if step["closing"] else "Step"
    return f"{which} {step['step_index'] + 1}, {step['label']}: {step['detail']}"


def known_end(answer: Shown) -> datetime | None:
    """Return when it would end, as far as the times of all its procedures are known."""
    ends = [instant_of(one["ends_at"]) for one in answer["phases"]]
    return None if not ends or None in ends else ends[-1]


def bar_of(answer: Shown, zone: ZoneInfo) -> object:
    """Return the bar of the procedures whose times are known, with what lapses meanwhile; None where none is known."""
    parts = [
        TimedPart(one["name"], begins, ends)
        for one in answer["phases"]
        if (begins := instant_of(one["begins_at"])) and (ends := instant_of(one["ends_at"]))
    ]
    if not parts:
        return None
    parts += [
        TimedPart(f"waits: {one['label']}", begins, begins + timedelta(seconds=one["seconds"]), "look")
        for one in answer["waits"]
        if (begins := instant_of(one["begins_at"]))
    ]
    lapses = [(at, gate_words(one["condition"])) for one in answer["conditions"] if (at := instant_of(one["until"]))]
    ends = max(part.ends_at for part in parts)
    within = [(at, what) for at, what in lapses if parts[0].begins_at <= at <= ends]
    count = len(answer["phases"])
    said = f"{count} procedures in time" if count > 1 else f"{parts[0].name} in time"
    return time_bar(parts, within, zone, said)


def axes_of(answer: Shown) -> Sequence[AxisCourse]:
    """Return the axes that move, with their limits; that of the trouble first, then those that come near a limit."""
    trouble = answer["trouble"]
    facts = (trouble or {}).get("facts") or {}
    near = {one["address"] for one in answer["limits"]}
    signals = {one["address"]: one for one in answer["twin"]}
    found = []
    for one in answer["travel"]:
        limits = [each for name in ("limits", "control_limits") if (each := signals.get(one["address"], {}).get(name))]
        lows, highs = ([each[side] for each in limits if each[side] is not None] for side in ("low", "high"))
        stops = facts.get("address") == one["address"] and isinstance(facts.get("value"), int | float)
        stop = (float(answer["walked_count"]), float(facts["value"])) if stops else None
        edges = (max(lows, default=None), min(highs, default=None))
        found.append(AxisCourse(one["address"], one["unit"], [(x, y) for x, y in one["course"]], edges, stop))
    found.sort(key=lambda axis: (axis.stop is None, axis.address not in near))
    return found[:MOST_AXES]


def condition_row(one: Shown) -> dict[str, Any]:
    """Return a condition of a later start, with a link to what it is about and those who can change it."""
    about, kind = one["about"], one["about"]["type"]
    href = href_of(kind, about["id"]) if about["id"] is not None and kind in REGISTRY.aggregates else None
    changes = [
        {"command": each["command"], "you": each["who"]["you"], "count": each["who"]["count"]} for each in one["change"]
    ]
    return {**one, "words": gate_words(one["condition"]), "href": href, "shown": HOLDINGS[one["holds_then"]], "by": changes}


def coming_time(text: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return when the clock of the facility shows a time of day next; None where the text is none."""
    try:
        of_day = time.fromisoformat(text)
    except ValueError:
        return None
    today = now.astimezone(zone).date()
    first, second = (datetime.combine(today + timedelta(days=count), of_day, zone) for count in (0, 1))
    return first if first > now else second
