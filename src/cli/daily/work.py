"""`run`, `preflight`, `rehearse`, `conduct`, `watch` and `ps`: work is started, asked about and followed."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from typer import Argument, Option, Typer

from baton.cli.daily.calls import parse_value
from baton.cli.daily.completion import complete_asset, complete_plan, complete_recipe, complete_subject
from baton.cli.daily.files import apply_files
from baton.cli.daily.found_work import FoundWork, find_work, live_work
from baton.cli.daily.session import ServiceSession, service_command
from baton.cli.daily.steering import DryRunOption, WorkName, dry_run_lines
from baton.cli.daily.tables import table_lines
from baton.cli.messages import MISUSED, REFUSED, refuse

if TYPE_CHECKING:
    from rich.console import Console

app = Typer()
conduct = Typer()
PlanName = Annotated[str, Argument(metavar="PLAN", help="A plan: its name or id.", autocompletion=complete_plan)]
Parameters = Annotated[list[str] | None, Option("-p", "--parameter", metavar="NAME=VALUE", help="One of its parameters.")]
SubjectName = Annotated[
    str | None, Option("--subject", help="What is measured: its name or id.", autocompletion=complete_subject)
]
WorkTitle = Annotated[str | None, Option("--name", help="What it is to be called; else made of its origin and the time.")]
WatchOption = Annotated[bool, Option("--watch", help="Follow it to its end; exits with 1 where it did not succeed.")]
PlotOption = Annotated[bool, Option("--plot", help="Draw the curve of its points as they come.")]
PlotOfOption = Annotated[
    str | None, Option("--plot-of", metavar="AXIS:VALUE", help="Draw this value over this axis; without it, what suits.")
]
AtOption = Annotated[
    str | None, Option(help="Ask for a later time, such as 22:00 or 2026-12-01T06:00, on this machine's clock.")
]
TableOption = Annotated[bool, Option("--table", help="Print a line for each of its points.")]


@service_command(app)
def run(
    session: ServiceSession,
    plan: PlanName,
    file: Annotated[list[Path] | None, Option("-f", "--file", help="A beamline file that is applied first.")] = None,
    parameter: Parameters = None,
    subject: SubjectName = None,
    recipe: Annotated[
        list[str] | None,
        Option(help="A recipe to conduct, in order; else the only one that fits.", autocompletion=complete_recipe),
    ] = None,
    name: WorkTitle = None,
    watch: WatchOption = False,
    plot: PlotOption = False,
    plot_of: PlotOfOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Start a run on a plan, and have it conducted."""
    given = parse_parameters(parameter)
    if file:
        apply_first(session, file, dry_run)
    options: dict[str, Any] = {"name": name, "subject": subject, "parameters": given}
    thing = session.client.plans[plan]
    started = thing.start(**options, recipes=recipe or None, dry_run=dry_run)
    show_started(session, started, "run", "has started", dry_run=dry_run, watch=watch, plot=drawn(plot, plot_of))


@service_command(app)
def preflight(
    session: ServiceSession,
    plan: PlanName,
    parameter: Parameters = None,
    subject: SubjectName = None,
    recipe: Annotated[
        list[str] | None, Option(help="A recipe to conduct: is data overwritten by it?", autocompletion=complete_recipe)
    ] = None,
    at: AtOption = None,
) -> None:
    """Ask whether a run on a plan could start, now or at a later time; exits with 1 where something refuses it then."""
    given = parse_parameters(parameter)
    moment = None if at is None else coming_time(at, datetime.now(UTC))
    verdict = session.client.plans[plan].preflight(subject=subject, recipes=recipe or None, parameters=given, at=moment)
    session.show(verdict, verdict_lines(verdict) if moment is None else condition_lines(verdict.conditions))
    if not verdict.passed if moment is None else any(failing_conditions(verdict.conditions)):
        raise SystemExit(REFUSED)


@service_command(app)
def rehearse(
    session: ServiceSession,
    target: Annotated[str, Argument(metavar="PLAN|RECIPE", help="A plan or a recipe: its name or id.")],
    parameter: Parameters = None,
    at: AtOption = None,
    start_from: Annotated[str | None, Option("--from", help="last_known or now, which reads the signals.")] = None,
) -> None:
    """Walk a plan or recipe on a twin of its signals; exits with 0 where it goes through, 2 where it may stop, 1 where it
    stops. Nothing moves."""
    from baton.client.refusals import UnknownNameError

    moment = None if at is None else coming_time(at, datetime.now(UTC))
    how: dict[str, Any] = {"parameters": parse_parameters(parameter), "at": moment, "start_from": start_from}
    try:
        found = session.client.plans[target].rehearse(**how)
    except UnknownNameError:
        found = session.client.recipes[target].rehearse(**how)
    rows = condition_lines(found.conditions) if found.conditions else ()
    session.show(found, [found.message, *(f"  {one.detail}" for one in found.gates if not one.passed), *rows])
    if found.verdict != "goes_through":
        raise SystemExit(REFUSED if found.verdict == "stops_at" else MISUSED)


@service_command(conduct, "recipe")
def conduct_recipe(
    session: ServiceSession,
    recipe: Annotated[str, Argument(metavar="RECIPE", help="A recipe: its name or id.", autocompletion=complete_recipe)],
    on: Annotated[list[str], Option("--on", help="An asset it is done on: its name or id.", autocompletion=complete_asset)],
    parameter: Parameters = None,
    name: WorkTitle = None,
    watch: WatchOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Have a recipe conducted on assets, as a procedure of its own; `recipe` may be left out."""
    options: dict[str, Any] = {"on": on, "name": name, "parameters": parse_parameters(parameter)}
    thing = session.client.recipes[recipe]
    started = thing.conduct(**options, dry_run=dry_run)
    show_started(session, started, "procedure", "is conducted", dry_run=dry_run, watch=watch)


def show_started(
    session: ServiceSession, started: Any, kind: str, done: str, *, dry_run: bool, watch: bool, plot: str | bool = False
) -> None:
    """Print what would be recorded, or the work that was started; with `watch`, follow it to its end instead."""
    if dry_run:
        session.show(started, dry_run_lines(started))
        return
    if watch:
        watch_to_end(session, started, plot=plot)
    view = started.get()
    document = {"kind": kind, "id": started.id, "name": view.name, "status": view.status}
    lines = [f"The {kind} {view.name!r} {done}: {started.id}", f"Follow it with: baton watch {started.id}"]
    session.show(document, lines)


@service_command(conduct, "watch")
@service_command(app)
def watch(
    session: ServiceSession,
    name: WorkName,
    plot: PlotOption = False,
    plot_of: PlotOfOption = None,
    table: TableOption = False,
) -> None:
    """Follow a run or procedure to its end and print its result: exits with 0 where it succeeded, 1 where not.

    It exits with 1 too where a closing step was not done.
    """
    work = find_work(session.client, name)
    collection = session.client.runs if work.kind == "run" else session.client.procedures
    watch_to_end(session, collection[work.id], plot=drawn(plot, plot_of), table=table)


@service_command(app)
def ps(session: ServiceSession) -> None:
    """List every run and procedure that is live, and how far it is."""
    rows = [(work, progress_text(session, work)) for work in in_order(list(live_work(session.client)))]
    document = [
        {"kind": work.kind, "id": work.id, "name": work.name, "status": shown_status(work), "since": work.since}
        | {"progress": text}
        for work, text in rows
    ]
    shown = [(work.kind, work.name, shown_status(work), work.since, text, work.id) for work, text in rows]
    session.show(document, table_lines(("KIND", "NAME", "STATUS", "SINCE", "PROGRESS", "ID"), shown, "Nothing is live."))


def shown_status(work: FoundWork) -> str:
    """Return the state of live work; what the engine lost does not run."""
    return "Lost" if work.lost else work.status


def in_order(works: Sequence[FoundWork]) -> Iterator[FoundWork]:
    """Yield runs with their phases behind them, then what belongs to none."""
    runs = [work for work in works if work.kind == "run"]
    for run_work in runs:
        yield run_work
        yield from (work for work in works if work.parent_run_id == run_work.id)
    known = {work.id for work in runs}
    yield from (work for work in works if work.kind == "procedure" and work.parent_run_id not in known)


def progress_text(session: ServiceSession, work: FoundWork) -> str | None:
    """Return how far live work is, in words; of what was lost, what to do about it."""
    if work.lost:
        go_on = f"baton resume {work.id}, or " if work.kind == "procedure" else ""
        return f"the engine does not know its conduct any more: look at the equipment, then {go_on}baton abort {work.id}"
    if work.kind == "procedure":
        view = session.client.call("get_procedure_conduct", procedure_id=work.id)
        return None if view.conduct_id is None else ": ".join(filter(None, (str(view.message), step_words(session, view))))
    conduct_view = session.client.call("get_run_conduct", run_id=work.id)
    places = [one.procedure_id for one in conduct_view.phases]
    if conduct_view.current_procedure_id not in places:
        return None
    return f"phase {places.index(conduct_view.current_procedure_id) + 1} of {len(places)}"


def step_words(session: ServiceSession, view: Any) -> str | None:
    """Return what the step does that a live conduct is at, in words, as far as the caller may see it."""
    from baton.client.refusals import Forbidden

    if view.result is not None or view.step_index is None:
        return None
    place = {"closing": view.phase == "Closing", "first_index": view.step_index, "limit": 1}
    try:
        listed = session.client.call("list_procedure_steps", procedure_id=view.procedure_id, **place)
    except Forbidden:
        return None
    return next((str(one.words) for one in listed.items), None)


def drawn(plot: bool, plot_of: str | None) -> str | bool:
    """Return what is to be drawn: `x:y`, or whether anything is."""
    return plot_of or plot


def watch_to_end(
    session: ServiceSession, thing: Any, console: "Console | None" = None, *, plot: str | bool = False, table: bool = False
) -> NoReturn:
    """Follow a run or a procedure to its end, print its result, and exit with 0 where it succeeded and was closed."""
    from baton.client.wording import unclosed_text

    following = thing.watch(console=console, lines=not session.as_json, plot=plot, table=table)
    result = following.result()
    session.show(result, following.work.result_lines())
    raise SystemExit(0 if result.succeeded and unclosed_text(result) is None else REFUSED)


def verdict_lines(verdict: Any) -> Iterator[str]:
    """Yield what a preflight found: the gates that are closed and why, or that none is."""
    closed = [gate for gate in verdict.gates if not gate.passed]
    for gate in closed:
        yield f"closed: {gate.gate}: {gate.detail or gate.code}" + (f" [{gate.reason}]" if gate.reason else "")
    for caution in verdict.acknowledged_cautions:
        yield f"caution, {caution.severity}: {caution.text_excerpt}"
    for output in verdict.overwrites_registered:
        yield f"caution: {output.uri} would be overwritten, where a registered copy is; name it by {{run}}"
    if verdict.units_unknown:
        yield f"caution: no unit is stated for {', '.join(verdict.units_unknown)}; what is written there is not compared"
    yield (
        f"{len(closed)} of {len(verdict.gates)} gates are closed." if closed else f"All {len(verdict.gates)} gates are open."
    )


def coming_time(text: str, now: datetime) -> datetime:
    """Return a time on the clock of this machine, of a time of day the next one; exit where the text is no time."""
    try:
        of_day = time.fromisoformat(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text).astimezone()
        except ValueError:
            refuse(f"{text!r} is no time; give one like 22:00 or 2026-12-01T06:00.")
    today = now.astimezone().date()
    first, second = (datetime.combine(today + timedelta(days=count), of_day).astimezone() for count in (0, 1))
    return first if first > now else second


def failing_conditions(conditions: Sequence[Any]) -> Iterator[Any]:
    """Yield the conditions without which a start would be refused then, as far as is known."""
    return (one for one in conditions if one.required and one.holds_then == "no")


def condition_lines(conditions: Sequence[Any]) -> Iterator[str]:
    """Yield the conditions of a start, those that fail then first, and who could change each."""
    rows = [
        (one.holds_then, one.holds_now, one.condition, one.about.name, one.until or one.opens_at, change_text(one), one.why)
        for one in conditions
    ]
    yield from table_lines(("THEN", "NOW", "CONDITION", "ABOUT", "CHANGES AT", "BY", "WHY"), rows, "No conditions.")
    failing = sum(1 for _ in failing_conditions(conditions))
    unknown = sum(one.required and one.holds_then == "unknown" for one in conditions)
    yield f"Of what a start needs, {failing} would be missing then, and {unknown} are not known."


def change_text(condition: Any) -> str | None:
    """Return the commands that change a condition, each with those who could give it."""
    return ", ".join(f"{one.command} ({holders_text(one.who)})" for one in condition.change) or None


def holders_text(who: Any) -> str:
    """Return who could give a command: you, groups, and how many in all."""
    named = [*(["you"] if who.you else []), *who.groups]
    return ", ".join(named if who.count is None else [*named, f"{who.count} in all"])


def parse_parameters(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return parameters by their names; values are JSON, or else text."""
    found: dict[str, object] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            refuse(f"{text!r} is no parameter; write it as NAME=VALUE.")
        found[name] = parse_value(value)
    return found


def apply_first(session: ServiceSession, files: Sequence[Path], dry_run: bool) -> None:
    """Apply beamline files, or exit as `baton apply` does where they are refused."""
    if code := apply_files(session, files, dry_run=dry_run):
        raise SystemExit(code)
