"""`queue`: what is to be done next at a beamline is added from spreadsheets, shown, put in order, held and resumed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_asset, complete_plan, complete_queue, complete_recipe
from baton.cli.daily.session import ServiceSession, require_consent, service_command
from baton.cli.daily.steering import BY_HAND, DryRunOption, Reason, dry_run_lines
from baton.cli.daily.tables import in_colour, local_time, table_lines
from baton.cli.messages import refuse

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from baton.client.operations import QueueView
    from baton.client.table_items import RowItem

app = Typer(no_args_is_help=True, help="What is to be done next at a beamline, in order.")
QueueName = Annotated[str, Argument(metavar="QUEUE", help="A queue: its name or id.", autocompletion=complete_queue)]
ItemName = Annotated[str, Argument(metavar="ITEM", help="An item that waits: its title or id.")]
BeforeItem = Annotated[str | None, Option("--before", metavar="ITEM", help="An item that waits: its title or id.")]
LONGEST_VALUES = 60


@service_command(app)
def add(
    session: ServiceSession,
    queue: QueueName,
    file: Annotated[Path, Argument(metavar="FILE", help="A spreadsheet, .csv or .xlsx: a heading, and a row an item.")],
    plan: Annotated[
        str | None, Option(help="The plan that every row is a run on: its name or id.", autocompletion=complete_plan)
    ] = None,
    recipe: Annotated[
        list[str] | None,
        Option(
            help="With a plan, a recipe to conduct, in order; else the recipe of every row.", autocompletion=complete_recipe
        ),
    ] = None,
    on: Annotated[
        list[str] | None,
        Option("--on", help="An asset that a recipe is done on: its name or id.", autocompletion=complete_asset),
    ] = None,
    before: BeforeItem = None,
    time_zone: Annotated[
        str | None, Option(help="Zone of times that have none, such as Europe/Berlin; else they are refused.")
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Add an item for each row of a spreadsheet, all or none.

    Columns are the parameters of one plan or recipe by their names, and title, not_before, pause_after and, of a plan,
    subject; an empty cell leaves its parameter out.
    """
    options = target_options(plan, recipe or [], on or [])
    zone = None if time_zone is None else find_zone(time_zone)
    from baton.client.queue_items import table_request
    from baton.client.spreadsheets import read_table_file

    client, table = session.client, read_table_file(file)
    request = client.carry_out(table_request(client.session, queue, table, **options, before=before, zone=zone))
    answer = client.call("add_queue_items", dry_run=dry_run, **request.arguments)
    if dry_run:
        session.show(answer, [*row_lines(request.items), *dry_run_lines(answer)])
        return
    added = [
        {"row": item.row, "title": item.title, "item_id": id}
        for item, id in zip(request.items, answer.item_ids, strict=True)
    ]
    document = {"queue_id": request.arguments["queue_id"], "item_ids": answer.item_ids, "items": added}
    session.show(document, added_lines(queue, len(added)))


def target_options(plan: str | None, recipes: Sequence[str], assets: Sequence[str]) -> dict[str, Any]:
    """Return what the rows are for, or exit where that is not said."""
    if plan is not None:
        if assets:
            refuse("A plan says itself on which assets it is done; leave out --on.")
        return {"plan": plan, "recipes": list(recipes) or None}
    if len(recipes) != 1 or not assets:
        refuse("Say what the rows are for: --plan NAME, or one --recipe NAME with --on ASSET.")
    return {"recipe": recipes[0], "assets": list(assets)}


def find_zone(name: str) -> "ZoneInfo":
    """Return the time zone of this name, or exit where there is none."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        refuse(f"There is no time zone {name!r}; name one like Europe/Berlin or UTC.")


def row_lines(items: "Sequence[RowItem]") -> Iterator[str]:
    """Yield the items that rows have become."""
    rows = [
        (one.row, one.title, one.subject, one.not_before, "yes" if one.pause_after else None, values_text(one))
        for one in items
    ]
    yield from table_lines(("ROW", "TITLE", "SUBJECT", "NOT BEFORE", "PAUSE AFTER", "PARAMETERS"), rows, "No rows.")


def values_text(item: "RowItem") -> str:
    """Return the parameters of a row, shortened."""
    text = ", ".join(f"{name}={value}" for name, value in item.parameters.items())
    return text if len(text) <= LONGEST_VALUES else f"{text[: LONGEST_VALUES - 3]}..."


def added_lines(queue: str, count: int) -> Iterator[str]:
    """Yield what was added, and how to look at it."""
    yield f"{count} items were added to the queue {queue!r}." if count != 1 else f"1 item was added to the queue {queue!r}."
    yield f"Look at it with: baton queue show {queue!r}"


@service_command(app, "list")
def list_queues(session: ServiceSession) -> None:
    """List every queue that is not retired: its status, and how many items wait."""
    found = [one for one in session.client.every("list_queues", include="names") if one.status != "Retired"]
    rows = [
        (
            one.name,
            name_of(one, "asset"),
            one.status,
            one.waiting_count,
            "blocked" if one.blocked else "running" if one.running_item_id is not None else None,
            one.queue_id,
        )
        for one in found
    ]
    head = ("NAME", "ASSET", "STATUS", "WAITING", "FIRST", "ID")
    session.show(found, table_lines(head, rows, "There is no queue; open one with `baton call open_queue`."))


@service_command(app)
def show(session: ServiceSession, queue: QueueName) -> None:
    """Show a queue: what runs, what waits in which order, why it is blocked, and when it is expected."""
    view = session.client.call("get_queue", queue_id=queue, include="names")
    session.show(view, queue_lines(view))


def queue_lines(view: "QueueView") -> Iterator[str]:
    """Yield a queue: its status, and its items that have not ended."""
    why = f" ({view.last_status_reason})" if view.last_status_reason else ""
    yield f"{view.name}: {in_colour(view.status)}{why}"
    forecasts = {one.item_id: one for one in view.forecast}
    rows = [
        (
            place,
            item.title,
            item.status,
            blocked_text(item, forecasts.get(item.item_id)),
            item.started_at or getattr(forecasts.get(item.item_id), "expected_start", None),
            getattr(forecasts.get(item.item_id), "expected_end", None),
            added_by_text(item),
            item.item_id,
        )
        for place, item in enumerate(view.items, start=1)
    ]
    head = ("PLACE", "TITLE", "STATUS", "WHY", "START", "END", "ADDED BY", "ID")
    yield from table_lines(head, rows, "Nothing waits.")


def blocked_text(item: Any, forecast: Any) -> str | None:
    """Return why an item does not start: what blocks it, the gates that are closed, its earliest time, or its pause."""
    closed = [] if forecast is None else [gate.detail for gate in forecast.closed_gates]
    reasons = list(dict.fromkeys(filter(None, (item.detail, *closed))))
    if item.not_before is not None and item.started_at is None:
        reasons.append(f"not before {local_time(item.not_before)}")
    if item.pause_after:
        reasons.append("the queue is held behind it")
    return "; ".join(reasons) or None


def added_by_text(item: Any) -> str:
    """Return who added an item: by name where that may be read."""
    return getattr(item, "added_by_name", None) or ("not signed in" if item.added_by.int == 0 else str(item.added_by))


def name_of(row: Any, member: str) -> Any:
    """Return the name of what a row refers to, or its id where the name is not known."""
    known = getattr(row, member, None)
    name = known.get("name") if isinstance(known, dict) else getattr(known, "name", None)
    return name or getattr(row, f"{member}_id")


@service_command(app)
def hold(session: ServiceSession, queue: QueueName, reason: Reason = None, dry_run: DryRunOption = False) -> None:
    """Start no more items of a queue until somebody resumes it; the one under way continues."""
    steer_queue(session, queue, "hold_queue", dry_run, reason=reason or f"held {BY_HAND}")


@service_command(app)
def resume(session: ServiceSession, queue: QueueName, reason: Reason = None, dry_run: DryRunOption = False) -> None:
    """Start items of a held queue again, with the first that waits."""
    steer_queue(session, queue, "resume_queue", dry_run, **({} if reason is None else {"reason": reason}))


@service_command(app)
def move(
    session: ServiceSession,
    queue: QueueName,
    item: ItemName,
    before: BeforeItem = None,
    last: Annotated[bool, Option("--last", help="To the end.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Move an item that waits before another one, or to the end."""
    if last == (before is not None):
        refuse("Say where it is to stand: --before ITEM, or --last.")
    item_id = find_item(session, queue, item)
    before_id = None if before is None else find_item(session, queue, before)
    steer_queue(session, queue, "move_queue_item", dry_run, item_id=item_id, before_item_id=before_id)


@service_command(app)
def remove(
    session: ServiceSession, queue: QueueName, item: ItemName, reason: Reason = None, dry_run: DryRunOption = False
) -> None:
    """Take an item that waits out of a queue; it is not conducted."""
    item_id = find_item(session, queue, item)
    steer_queue(session, queue, "remove_queue_item", dry_run, item_id=item_id, reason=reason or f"removed {BY_HAND}")


@service_command(app, "confirm")
def confirm_item(
    session: ServiceSession,
    queue: QueueName,
    item: ItemName,
    digest: Annotated[str | None, Option("--digest", help="What you looked at, by the digest that was shown.")] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Confirm what is shown without being asked.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Let an item whose recipe, plan, practice or method has changed be conducted as that is now, and as you."""
    item_id = find_item(session, queue, item)
    confirmed = digest or look_at_changes(session, queue, item_id, yes)
    steer_queue(session, queue, "edit_queue_item", dry_run, item_id=item_id, confirmed_digest=confirmed)


def look_at_changes(session: ServiceSession, queue: str, item_id: UUID, yes: bool) -> str:
    """Show what has changed of an item's target, and return the digest of that once the person wants it."""
    view = session.client.call("get_queue", queue_id=queue, include="names")
    closed = [gate for one in view.forecast if one.item_id == item_id for gate in one.closed_gates]
    changed = next((gate for gate in closed if gate.reason == "target_changed"), None)
    if changed is None:
        refuse("Nothing is to be confirmed: what the item names is as it was, or it is not among the first that wait.")
    if not session.as_json:
        session.show(changed, [changed.detail])
    digest = str(changed.facts["confirmed_digest"])
    require_consent(session, "Confirm it?", digest, yes)
    return digest


def find_item(session: ServiceSession, queue: str, item: str) -> UUID:
    """Return the id of the one item that waits with this title; an id is its own."""
    from baton.client.queue_items import item_id_of

    return session.client.carry_out(item_id_of(session.client.session, queue, item))


def steer_queue(session: ServiceSession, queue: str, operation: str, dry_run: bool, **fields: Any) -> None:
    """Give one command about a queue, and show the queue as it is then."""
    answer = session.client.call(operation, dry_run=dry_run, queue_id=queue, **fields)
    if dry_run:
        session.show(answer, dry_run_lines(answer))
        return
    view = session.client.call("get_queue", queue_id=queue, include="names")
    session.show(view, queue_lines(view))
