"""The report of a run as a zip: its page, its steps, points and readings as tables, its events as lines, and an RO-Crate
that describes all of them. Equal reports have equal bytes."""

import json
from collections.abc import Iterator
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from baton.console.point_plots import csv_heading, csv_line, csv_points
from baton.domain.conduct.step_list import ListedStep
from baton.domain.kernel import Event, instant
from baton.domain.views.run_crate import METADATA, run_crate
from baton.domain.views.run_report import RunReport

CSV = "text/csv"
STEP_COLUMNS = ["phase", "list", "step", "kind", "what", "state", "started", "ended", "seconds", "attempts"]
STEP_OUTCOMES = ["reading", "captured", "unit", "error", "message"]
PAGE, STEPS, POINTS, OBSERVATIONS, EVENTS = "report.html", "steps.csv", "points.csv", "observations.csv", "events.jsonl"
FILES = {PAGE: "text/html", STEPS: CSV, POINTS: CSV, OBSERVATIONS: CSV, EVENTS: "application/jsonl"}


def report_archive(report: RunReport, page: bytes) -> bytes:
    """Return the zip of a report with its page."""
    crate = json.dumps(run_crate(report, FILES), ensure_ascii=False, indent=1, default=str)
    contents = {
        METADATA: crate.encode(),
        PAGE: page,
        STEPS: "".join(step_lines(report)).encode(),
        POINTS: "".join(point_tables(report)).encode(),
        OBSERVATIONS: "".join(observation_lines(report)).encode(),
        EVENTS: "".join(event_lines(report)).encode(),
    }
    written = BytesIO()
    with ZipFile(written, "w") as archive:
        for name, content in contents.items():
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return written.getvalue()


def step_lines(report: RunReport) -> Iterator[str]:
    """Yield the steps of all phases as lines, those of loops in their last pass."""
    yield csv_line([*STEP_COLUMNS, *STEP_OUTCOMES])
    for phase in report.phases:
        for name, steps in (("main", phase.steps.main), ("closing", phase.steps.closing)):
            for one in steps:
                yield csv_line([phase.phase.name, name, one.step_index + 1, *step_cells(one)])


def step_cells(step: ListedStep) -> list[str | float | None]:
    """Return what a line says of a step behind its number."""
    reading = step.reading if isinstance(step.reading, str | int | float) else None
    times = [None if at is None else instant(at) for at in (step.started_at, step.ended_at)]
    begun = [step.step.kind, step.label, step.state.value, *times, step.seconds, step.attempt_count]
    return [*begun, reading, step.captured_value, step.unit, step.error_class, step.message]


def point_tables(report: RunReport) -> Iterator[str]:
    """Yield the points of all phases, a table for each, with its name before and an empty line behind it."""
    for phase in report.phases:
        points = phase.every_point
        if points is not None and points.items:
            yield csv_line([phase.phase.name])
            yield csv_heading(points)
            yield csv_points(points, points)
            yield "\r\n"


def observation_lines(report: RunReport) -> Iterator[str]:
    """Yield the readings of all channels as lines."""
    yield csv_line(["channel", "sampled_at", "value", "units", "sampling_procedure", "simulated"])
    for channel in report.channels:
        for one in channel.readings:
            yield csv_line(
                [channel.name, instant(one.at), one.value, one.units, one.sampling_procedure, str(one.simulated).lower()]
            )


def event_lines(report: RunReport) -> Iterator[str]:
    """Yield the events of the run and its phases as lines of JSON, in the order in which they happened."""
    events = [*report.events, *(event for phase in report.phases for event in phase.events)]
    for event in sorted(events, key=lambda one: one.occurred_at):
        yield f"{event_line(report, event)}\n"


def event_line(report: RunReport, event: Event) -> str:
    """Return an event as JSON; free texts are null where its reader may not see them, and people where none are named."""
    payload = json.loads(event.payload())
    shown = payload if report.texts else type(event).without_texts(payload)
    if not report.shows_people:
        shown = {key: None if key.endswith("_by") else value for key, value in shown.items()}
    said = {
        "event_id": str(event.stored_id),
        "stream_type": event.aggregate.name,
        "stream_id": str(event.stream_id),
        "event_type": type(event).__name__,
        "schema_version": event.schema_version,
        "occurred_at": instant(event.occurred_at),
        "principal_id": str(event.caller_id) if report.shows_people else None,
        "payload": shown,
    }
    return json.dumps(said, ensure_ascii=False)
