"""`events`: what was recorded, and what is being recorded."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer

from baton.cli.daily.completion import complete_asset
from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.tables import local_time, plain_line
from baton.cli.messages import refuse

if TYPE_CHECKING:
    from baton.client.operations import EventView

app = Typer()


@service_command(app)
def events(
    session: ServiceSession,
    follow: Annotated[bool, Option("--follow", "-f", help="Go on with what is recorded from now on.")] = False,
    type: Annotated[list[str] | None, Option("--type", help="A type of event, such as RunHeld; may be repeated.")] = None,
    stream: Annotated[
        list[str] | None, Option("--stream", help="Only of Run, Procedure, Asset ...; may be repeated.")
    ] = None,
    since: Annotated[datetime | None, Option(help="Only from this time on, on this machine's clock.")] = None,
    until: Annotated[datetime | None, Option(help="Only before this time, on this machine's clock.")] = None,
    by: Annotated[str | None, Option("--by", help="Only what this person, agent or account did: a name or id.")] = None,
    on: Annotated[
        str | None, Option("--on", help="Only of this asset, or naming it: its name or id.", autocompletion=complete_asset)
    ] = None,
    count: Annotated[int, Option("-n", "--count", min=0, max=100, help="How many of the latest come first.")] = 10,
) -> None:
    """Print the latest events, and with -f those to come; with --json, one document each while it follows."""
    filters: dict[str, Any] = {"event_type": tuple(type or ()), "stream_type": tuple(stream or ())}
    times = {name: time.astimezone() for name, time in (("since", since), ("until", until)) if time is not None}
    search = times | {name: id for name, id in (("principal_id", by), ("asset_id", on)) if id is not None}
    if follow and search:
        refuse("--since, --until, --by and --on search what is recorded already; leave out --follow.")
    latest = latest_events(session, filters | search, count)
    if not follow:
        session.show(latest, map(event_line, latest))
        return
    after = latest[-1].position if latest else newest_position(session)
    for one in latest:
        print_event(session, one)
    for one in session.client.follow_events(**filters, after=after):
        print_event(session, one)


def latest_events(session: ServiceSession, filters: dict[str, Any], count: int) -> "list[EventView]":
    """Return the latest events, oldest first."""
    if count == 0:
        return []
    page = session.client.call("list_events", order="desc", limit=count, **filters)
    return list(reversed(page.items))


def newest_position(session: ServiceSession) -> int:
    """Return the position of the newest event that the caller may see."""
    page = session.client.call("list_events", order="desc", limit=1)
    return int(page.items[0].position) if page.items else 0


def print_event(session: ServiceSession, event: "EventView") -> None:
    """Print one event, as a line of JSON or of text."""
    from baton.client.wording import terminal_json

    print(
        terminal_json(json.dumps(event.to_dict(), ensure_ascii=False, separators=(",", ":")))
        if session.as_json
        else plain_line(event_line(event)),
        flush=True,
    )


def event_line(event: "EventView") -> str:
    """Return an event in one line: its place, its time, what it was, of what, by whom."""
    by = event.principal_name or event.principal_id
    of = f"{event.stream_type} {event.stream_id}"
    return f"{event.position:>8}  {local_time(event.recorded_at)}  {event.event_type}  {of}  {by}"
