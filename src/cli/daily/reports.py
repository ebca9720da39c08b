"""`report`, `compare` and `beam-time`: a run as one page, what was different in it, and where the time went."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_asset, complete_work
from baton.cli.daily.documents import RunName
from baton.cli.daily.found_work import find_work
from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.tables import local_time, table_lines
from baton.cli.messages import REFUSED, refuse

if TYPE_CHECKING:
    from baton.client.operations import BeamTime

app = Typer()
OutputFile = Annotated[
    Path | None, Option("-o", "--output", metavar="FILE", help="Where to write it; - is the standard output.")
]
AsZip = Annotated[bool, Option("--zip", help="With its tables, its events and an RO-Crate.")]
NoNames = Annotated[bool, Option("--no-names", help="Leave people out.")]


@service_command(app)
def report(
    session: ServiceSession, run: RunName, output: OutputFile = None, zip: AsZip = False, no_names: NoNames = False
) -> None:
    """Write everything on record about a run as one page."""
    found = find_work(session.client, run)
    if found.kind != "run":
        refuse(f"{found} is no run; name the run that it belongs to.")
    form = "zip" if zip else "html"
    document = session.client.call("get_run_report", run_id=found.id, format=form, names=not no_names)
    file = output or Path(f"run-{str(found.id)[-12:]}.{form}")
    if str(file) == "-":
        sys.stdout.buffer.write(document.content)
        return
    try:
        file.write_bytes(document.content)
    except OSError as error:
        refuse(f"{file} cannot be written: {error.strerror}; name another file.", code=REFUSED)
    written = {"run_id": str(found.id), "file": str(file), "bytes": len(document.content)}
    session.show(written, [f"The report of {found} is in {file}."])


OtherRun = Annotated[
    str | None, Argument(metavar="[RUN]", help="Another run; else the last that completed.", autocompletion=complete_work)
]
AmongTwenty = Annotated[bool, Option("--usual", help="Compare it with the last twenty that completed.")]


@service_command(app)
def compare(session: ServiceSession, run: RunName, other: OtherRun = None, usual: AmongTwenty = False) -> None:
    """Show what was different in a run, the most surprising first; it says what differs, not why."""
    found = find_work(session.client, run)
    if found.kind != "run":
        refuse(f"{found} is no run; name the run that it belongs to.")
    asked: dict[str, Any] = {"run_id": found.id, "baseline": "completed_20" if usual else "last_completed"}
    if other is not None:
        asked["with_run_id"] = find_work(session.client, other).id
    told = session.client.call("compare_runs", **asked)
    rows = [(f"{row.surprise:.2f}", row.aspect, row.sentence) for row in told.rows]
    lines = [f"{found.name}, compared with {told.with_name}", *([] if told.remark is None else [told.remark])]
    session.show(told, [*lines, *table_lines(("SURPRISE", "ABOUT", "WHAT DIFFERS"), rows, "Nothing differs.")])


BeamlineName = Annotated[
    str, Argument(metavar="BEAMLINE", help="A root asset: its name or id.", autocompletion=complete_asset)
]
LastDays = Annotated[int, Option("--days", min=1, max=400, help="How many days back.")]
OfWeek = Annotated[bool, Option("--week", help="The last seven days, day by day.")]
Grouping = Annotated[str | None, Option("--by", help="cause, day, week or plan.")]
AsCsv = Annotated[bool, Option("--csv", help="Print a table for spreadsheets.")]


@service_command(app, "beam-time")
def beam_time(
    session: ServiceSession,
    beamline: BeamlineName,
    days: LastDays = 1,
    week: OfWeek = False,
    by: Grouping = None,
    csv: AsCsv = False,
) -> None:
    """Show where the time of a beamline went: used, or lost to beam, equipment, gates or people."""
    ends = datetime.now(UTC)
    begins = ends - timedelta(days=7 if week else days)
    asked: dict[str, Any] = {"asset_id": beamline, "since": begins, "until": ends, "by": by or ("day" if week else "cause")}
    if csv:
        sys.stdout.write(session.client.call("get_beam_time", **asked, format="csv").content.decode())
        return
    told = session.client.call("get_beam_time", **asked)
    session.show(told, time_lines(told))


def time_lines(told: "BeamTime") -> Iterator[str]:
    """Yield where time went: the states of all of it, then the groups."""
    yield f"{told.name}, {local_time(told.since)} to {local_time(told.until)}"
    rows = [(one.state, one.counts_as, duration(one.seconds), f"{one.share:.0%}", one.count) for one in told.states]
    yield from table_lines(("STATE", "COUNTS AS", "TIME", "SHARE", "NUMBER"), rows, "No time was scheduled.")
    if told.beam is not None:
        yield f"The beam was there for {told.beam.availability:.1%}, with {told.beam.outage_count} outages."
    yield ""
    groups = [
        (group.group, duration(group.seconds), ", ".join(f"{one.state} {one.share:.0%}" for one in group.states))
        for group in told.groups
    ]
    yield from table_lines((told.by.upper(), "TIME", "OF WHICH"), groups, "")


def duration(seconds: float) -> str:
    """Return a duration in hours and minutes, or in seconds where it is short."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"
