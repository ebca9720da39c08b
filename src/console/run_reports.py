"""Reports of runs as files: one page that loads nothing and runs nothing, and a zip with its tables beside it. Equal reports
have equal bytes, and each names its own SHA-256."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from statistics import median
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from markupsafe import Markup

import baton
from baton.console.display import duration_text, number_text
from baton.console.plots import NARROW, Series, line_plot
from baton.console.point_plots import Curve, curve_of, picture_of
from baton.console.rendering import shared_templates, static_file
from baton.console.report_archive import report_archive
from baton.console.run_timeline import TimelineRow, timeline
from baton.console.step_window import StepLine, step_line
from baton.domain.data.preview import PreviewPort
from baton.domain.kernel import Document
from baton.domain.procedure.procedure import ENDED
from baton.domain.shared.refusals import Refusal
from baton.domain.views.run_report import ChannelReport, ReportedPhase, ReportFormat, RunReport
from baton.domain.views.run_story import WorkStretch, count_of

HTML, ZIP = "text/html", "application/zip"
FOOT = '<footer class="foot">'  # What stands before it is what the digest is of.
MOST_CHANNELS = 40
SIGNS = {"good": "✓", "look": "▲", "stop": "✗", "plain": "·"}


@dataclass(frozen=True)
class Picture:
    """The picture of a dataset as it stands in the page, or why there is none."""

    source: str | None
    reason: str | None = None


@dataclass(frozen=True)
class PhasePage:
    """A phase as the page shows it."""

    report: ReportedPhase
    seconds: float | None
    held_seconds: float
    plot: Markup | None
    curve: Curve | None
    steps: tuple[StepLine, ...]
    closing: tuple[StepLine, ...]


@dataclass(frozen=True)
class ChannelPage:
    """A channel as the page shows it: its plot and its figures."""

    channel: ChannelReport
    plot: Markup
    low: float
    high: float
    middle: float
    simulated: bool


class RunReports:
    """Writes reports in a thread, one at a time."""

    def __init__(self, previews: PreviewPort, zone: ZoneInfo) -> None:
        self._previews = previews
        self._zone = zone
        self._turn = asyncio.Semaphore(1)

    async def write_report(self, report: RunReport, format: ReportFormat) -> Document:
        """Return a report as a file."""
        async with self._turn:
            pictures = {one.dataset.id: await self._picture(one.files) for one in report.datasets}
            page = await asyncio.to_thread(page_document, report, pictures, self._zone)
            if format is ReportFormat.HTML:
                return page
            content = await asyncio.to_thread(report_archive, report, page.content)
            return Document(ZIP, content, digest=sha256(content).hexdigest())

    async def _picture(self, files: Any) -> Picture:
        if not files:
            return Picture(None)
        try:
            document = await self._previews.preview(files)
        except Refusal as refusal:
            return Picture(None, refusal.detail)
        return Picture(f"data:{document.media_type};base64,{b64encode(document.content).decode()}")


def page_document(report: RunReport, pictures: Mapping[UUID, Picture], zone: ZoneInfo) -> Document:
    """Return a report as a page with its digest in the foot: that of everything above the foot."""
    body = report_page(report, pictures, zone)
    digest = sha256(body.encode()).hexdigest()
    foot = f"{FOOT}Baton {baton.__version__} · SHA-256 of everything above this line: <code>{digest}</code></footer>"
    return Document(HTML, f"{body}{foot}</body></html>\n".encode(), digest=digest)


def report_page(report: RunReport, pictures: Mapping[UUID, Picture], zone: ZoneInfo) -> str:
    """Return the page of a report up to its foot."""
    run, phases = report.run, [phase_page(one, zone) for one in report.phases]
    channels = [channel_page(one, zone) for one in report.channels[:MOST_CHANNELS] if one.readings]
    began = run.started_at if run.witness is None else run.witness.began_at
    ended = run.ended_at or report.so_far or began
    rows = [TimelineRow("The run", report.stretches), *(TimelineRow(one.phase.name, one.stretches) for one in report.phases)]
    shown = {
        "report": report,
        "run": run,
        "began": began,
        "seconds": (ended - began).total_seconds(),
        "held_seconds": held_seconds(report.stretches, ended),
        "summary": summary_of(report, began, ended),
        "timeline": timeline(rows, began, ended, zone, f"What ran and what was held in {run.name}"),
        "phases": phases,
        "channels": channels,
        "more_channels": max(0, len(report.channels) - MOST_CHANNELS),
        "pictures": pictures,
        "nobody": Picture(None),
        "signs": SIGNS,
        "style": Markup(static_file("console.css")[0].decode()),
        "since": lambda at: since_text(at, began),
        "plain": plain_text,
        "times": times_text,
        "count": count_of,
    }
    return shared_templates(zone).render("report.html", shown)


def held_seconds(stretches: Iterable[WorkStretch], until: datetime) -> float:
    """Return how long something was held."""
    return sum(((one.ends or until) - one.begins).total_seconds() for one in stretches if one.held)


def summary_of(report: RunReport, began: datetime, ended: datetime) -> list[str]:
    """Return the sentences that a reader begins with."""
    run, held, lasted = report.run, held_seconds(report.stretches, ended), duration_text((ended - began).total_seconds())
    took, came = ("took", "ended as") if report.so_far is None else ("has taken", "is")
    sentences = [f"It {took} {lasted} and {came} {run.status.value}."]
    if run.hold_count:
        sentences.append(f"It was held {times_text(run.hold_count)}, for {duration_text(held)} in all.")
    if takeovers := sum(one.takeover_count for one in report.phases):
        again = f"Work on it was taken up again {times_text(takeovers)}"
        sentences.append(f"{again}, because a worker was lost or failed.")
    if run.adjustment_count:
        sentences.append(f"Its parameters were changed {times_text(run.adjustment_count)} on the way.")
    left = [f"{len(report.datasets)} dataset{'' if len(report.datasets) == 1 else 's'}"] if report.datasets else []
    readings = sum(len(one.readings) for one in report.channels)
    left += [f"{number_text(readings)} readings"] if readings else []
    if left:
        sentences.append(f"It left {' and '.join(left)}.")
    if run.actuation_kind is not None and run.actuation_kind.value != "Physical":
        sentences.append(f"It was done on {run.actuation_kind.value.lower()} equipment.")
    return sentences


def times_text(count: int) -> str:
    """Return how often something happened."""
    return "once" if count == 1 else f"{count} times"


def phase_page(report: ReportedPhase, zone: ZoneInfo) -> PhasePage:
    """Return a phase as the page shows it."""
    phase, over = report.phase, report.phase.status in ENDED
    ended = phase.ended_at
    seconds = (ended - phase.started_at).total_seconds() if ended and phase.started_at else None
    curve = curve_of(report.points, {})
    plot = None if curve is None or not curve.values else picture_of(report.points, curve, zone)
    lines = [
        tuple(step_line(one.model_dump(mode="json"), over=over) for one in steps)
        for steps in (report.shown_steps, report.shown_closing)
    ]
    return PhasePage(
        report, seconds, held_seconds(report.stretches, ended or phase.last_status_changed_at), plot, curve, *lines
    )


def channel_page(channel: ChannelReport, zone: ZoneInfo) -> ChannelPage:
    """Return a channel as the page shows it."""
    values = [one.value for one in channel.readings]
    points = tuple((one.at.timestamp(), one.value) for one in channel.readings)
    label = f"{channel.name} over time, {len(points)} readings"
    plot = line_plot([Series(channel.name, points, channel.units)], label=label, zone=zone, latest=False, width=NARROW)
    simulated = any(one.simulated for one in channel.readings)
    return ChannelPage(channel, plot, min(values), max(values), median(values), simulated)


def since_text(at: datetime, began: datetime) -> str:
    """Return how long after the beginning something happened."""
    gone = at - began
    return "" if gone < timedelta(seconds=0.5) else f"+ {duration_text(gone.total_seconds())}"


def plain_text(value: object) -> str:
    """Return any plain value as text."""
    match value:
        case None:
            return "none"
        case str():
            return value
        case bool() | int() | float():
            return number_text(value)
    return json.dumps(value, ensure_ascii=False, default=str)
