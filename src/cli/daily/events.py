"""`events`: what was recorded, and what is being recorded."""

import json
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer

from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.tables import local_time, plain_line

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
    count: Annotated[int, Option("-n", "--count", min=0, max=100, help="How many of the latest come first.")] = 10,
) -> None:
    """Print the latest events, and with -f those to come; with --json, one document each while it follows."""
    filters = {"event_type": tuple(type or ()), "stream_type": tuple(stream or ())}
    latest = latest_events(session, filters, count)
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
