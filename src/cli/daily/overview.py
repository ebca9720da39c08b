"""`status` and `waiting`: a beamline on one screen, and what waits for a person."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_asset
from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.tables import age_text, in_colour, local_time, table_lines, value_text
from baton.cli.messages import refuse

if TYPE_CHECKING:
    from baton.client.operations import BeamlineNow

app = Typer()
DECOMMISSIONED = "Decommissioned"
OptionalAsset = Annotated[
    str | None, Argument(metavar="[ASSET]", help="A beamline: its name or id; else all.", autocompletion=complete_asset)
]


@service_command(app)
def status(session: ServiceSession, asset: OptionalAsset = None) -> None:
    """Show what is going on at a beamline, on one screen."""
    names = [asset] if asset is not None else root_assets(session)
    if not names:
        refuse("No beamline is on record; register its root asset, or apply a beamline file.")
    views = [session.client.call("get_beamline_now", asset_id=name) for name in names]
    session.show(views if asset is None else views[0], screen_lines(views))


def root_assets(session: ServiceSession) -> list[Any]:
    """Return the ids of every beamline that is not decommissioned."""
    units = session.client.every("list_assets", tier="Unit")
    return [one.asset_id for one in units if one.parent_id is None and one.lifecycle != DECOMMISSIONED]


def screen_lines(views: "list[BeamlineNow]") -> Iterator[str]:
    """Yield the screens of beamlines, with a line between them."""
    for place, view in enumerate(views):
        if place:
            yield ""
        yield from status_lines(view)


def status_lines(now: "BeamlineNow") -> Iterator[str]:
    """Yield one beamline: what is live, what it needs, what warns."""
    yield f"{now.name} at {local_time(now.at)}"
    for run in now.runs:
        yield from run_lines(run, now.at)
    for conduct in now.conducts:
        if conduct.run_id not in {run.run_id for run in now.runs}:
            yield field_line("conduct", f"{conduct.name}: {conduct.message}, by {value_text(conduct.started_by_name)}")
    for lost in now.lost:
        yield field_line("conduct", f"{lost.name}: {in_colour('Lost')} since {local_time(lost.since)}. {lost.message}")
    if not now.runs and not now.conducts and not now.lost:
        yield field_line("run", "nothing is live")
    if now.queue is not None:
        yield from queue_lines(now.queue, now.at)
    for permit in now.permits:
        seen = seen_text(permit.observation_age)
        watched = "" if permit.monitored else ", no monitor"
        remark = f". {permit.remark}" if permit.remark else ""
        yield field_line("permit", f"{permit.name}: {in_colour(permit.permit_status)}, {seen}{watched}{remark}")
    for supply in now.supplies:
        since = f"since {local_time(supply.since)}"
        if supply.monitored or supply.observation_age is not None:
            since += f", {seen_text(supply.observation_age)}"
        why = f" ({supply.reason})" if supply.reason else ""
        yield field_line("supply", f"{supply.name}: {in_colour(supply.status)} {since}{why}")
    for clearance in now.clearances:
        soon = ", soon" if clearance.ends_soon else ""
        until = "without end" if clearance.valid_until is None else f"until {local_time(clearance.valid_until)}{soon}"
        yield field_line("clearance", f"{clearance.title}: in force {until}")
    for caution in now.cautions:
        yield field_line("caution", f"{caution.severity}: {caution.text_excerpt}")
    heard = now.worker.last_heard_at
    last = "none was heard of" if heard is None else f"{now.worker.count}, last heard {age_text(now.at - heard)} ago"
    yield field_line("worker", last)


def seen_text(observation_age: float | None) -> str:
    """Return how long ago something was observed."""
    return "never observed" if observation_age is None else f"seen {age_text(observation_age)} ago"


def run_lines(run: Any, now: datetime) -> Iterator[str]:
    """Yield a live run: how far it is, how long it takes, who started it, why it is held."""
    from baton.client.wording import remaining_text

    phase = None if run.phase is None else f"phase {run.phase.number} of {run.phase.count} ({run.phase.name})"
    closing = "closing step" if run.step is not None and run.step.closing else "step"
    step = None if run.step is None else f"{closing} {run.step.number} of {run.step.count}"
    witnessed = "witnessed" if run.witnessed else None
    parts = (in_colour("Lost" if run.lost else run.status), witnessed, phase, step, remaining_text(run.estimate))
    yield field_line("run", f"{run.name}: {', '.join(part for part in parts if part)}")
    age = age_text(now - run.started_at)
    yield field_line("", f"{run.plan_name}, started {age} ago by {value_text(run.started_by_name)}, {run.run_id}")
    if run.hold is not None:
        why = run.hold.reason or "without a reason"
        yield field_line("", f"held {age_text(now - run.hold.since)} ago by {value_text(run.hold.held_by_name)}: {why}")


def queue_lines(queue: Any, now: datetime) -> Iterator[str]:
    """Yield a queue: whether it starts items, what runs, what is next, which gate keeps it, and who holds it."""
    from baton.client.wording import remaining_text

    why = "" if queue.hold is None else f" ({queue.hold.reason})"
    yield field_line("queue", f"{queue.name}: {in_colour(queue.status)}{why}, {queue.waiting_count} waiting")
    if queue.running is not None:
        parts = (f"runs: {queue.running.title}", remaining_text(queue.running.estimate))
        yield field_line("", ", ".join(part for part in parts if part))
    if queue.next is not None:
        closed = "".join(f"; closed: {gate.detail}" for gate in queue.closed_gates)
        early = "" if queue.next.not_before is None else f", not before {local_time(queue.next.not_before)}"
        yield field_line("", f"next: {queue.next.title}{early}{closed}")
    if queue.hold is not None:
        yield field_line("", f"held {age_text(now - queue.hold.since)} ago by {value_text(queue.hold.held_by_name)}")


def field_line(name: str, text: str) -> str:
    """Return one line of a screen under its name."""
    return f"  {name:<9}  {text}"


@service_command(app, "waiting")
def list_waiting(
    session: ServiceSession,
    on: Annotated[
        str | None, Option("--on", help="Only on this asset: its name or id.", autocompletion=complete_asset)
    ] = None,
    kind: Annotated[str | None, Option(help="Only of this kind.")] = None,
) -> None:
    """List what waits for a person, and the commands that resolve it; those you may not give are in brackets."""
    given = {"asset_id": on, "kind": kind}
    items = list(session.client.every("list_waiting", **{name: value for name, value in given.items() if value is not None}))
    rows = [(one.kind, one.name, one.since, one.why, commands_text(one), one.id) for one in items]
    head = ("KIND", "NAME", "SINCE", "WHY", "COMMANDS", "ID")
    session.show(items, table_lines(head, rows, "Nothing waits for a person."))


def commands_text(item: Any) -> str:
    """Return the commands that resolve something that waits."""
    return ", ".join(one.name if one.permitted else f"({one.name})" for one in item.commands)
