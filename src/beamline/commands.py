"""`apply`, `diff`, `export` and `schema` as functions that print and return an exit code: 0 unchanged or done, 1 refused or
not possible, 2 differences in `diff`."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from baton.beamline.addresses import shared_addresses
from baton.beamline.application import PlanApplication, Results
from baton.beamline.changes import ChangePlan, ThingChange, changes, wanted_things, with_default_facility
from baton.beamline.export import UnknownRootError, export_text
from baton.beamline.file import SECTIONS
from baton.beamline.reading import BeamlineFileError, LoadedFile, read_files
from baton.beamline.record import BeamlineRecord, Key, RecordReader
from baton.beamline.rehearsal import rehearsed_plan
from baton.beamline.schema import file_schema
from baton.client import Baton
from baton.client.wording import terminal_text

DONE, REFUSED, DIFFERENT = 0, 1, 2
MOST_LINES = 200  # of a plan that are printed
COLOURS = {"+": "green", "~": "yellow", "-": "red", "!": "bold red", "?": "cyan"}
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Comparison:
    """A record and what files ask to change in it."""

    record: BeamlineRecord
    plan: ChangePlan


def apply_files(
    client: Baton, paths: Sequence[Path], *, dry_run: bool = False, prune: bool = False, yes: bool = False
) -> int:
    """Bring the record to what files say: print the plan, issue the commands, say what was done and what was not."""
    try:
        return apply_content(client, read_files(paths), dry_run=dry_run, prune=prune, yes=yes)
    except BeamlineFileError as error:
        return refuse_files(error)


def apply_content(
    client: Baton, files: Sequence[LoadedFile], *, dry_run: bool = False, prune: bool = False, yes: bool = False
) -> int:
    """Apply files that were read."""
    compared = compare(client, files, prune=prune)
    plan = rehearsed_plan(client, compared.plan, compared.record) if dry_run else compared.plan
    print_plan(plan)
    if not plan.commands:
        print("Nothing to do." if plan.obstacles else "The record says what the file says.")
        return REFUSED if plan.obstacles else DONE
    if dry_run:
        print("Nothing was changed: this was a dry run.")
        return REFUSED if plan.refused else DONE
    if plan.retirements and not yes and not confirm(len(plan.retirements)):
        print("Nothing was changed.")
        return REFUSED
    return say(plan, issue(client, compared, lambda: compare(client, files, prune=prune)))


def diff_files(client: Baton, paths: Sequence[Path], *, prune: bool = False) -> int:
    """Print what applying files would change, and what would be refused; 2 where anything differs, 1 where anything would
    be refused."""
    try:
        plan = rehearse(client, paths, prune=prune)
    except BeamlineFileError as error:
        return refuse_files(error)
    print_plan(plan)
    if not plan.commands and not plan.obstacles:
        print("The record says what the file says.")
    return diff_code(plan)


def rehearse(client: Baton, paths: Sequence[Path], *, prune: bool = False) -> ChangePlan:
    """Return what applying files would change, every command judged as it would be then."""
    compared = compare(client, read_files(paths), prune=prune)
    return rehearsed_plan(client, compared.plan, compared.record)


def diff_code(plan: ChangePlan) -> int:
    """Return the exit code of a comparison."""
    return REFUSED if plan.refused else DIFFERENT if plan.commands or plan.obstacles else DONE


def export_record(client: Baton, root: str | None = None) -> int:
    """Print the record as a beamline file."""
    try:
        text = export_text(whole_record(client), root)
    except UnknownRootError as error:
        print(f"baton: {error}", file=sys.stderr)
        return REFUSED
    sys.stdout.write(text)
    return DONE


def print_schema() -> int:
    """Print the JSON Schema of beamline files."""
    print(json.dumps(file_schema(), indent=1))
    return DONE


def whole_record(client: Baton) -> BeamlineRecord:
    """Read everything on record that a file may hold."""
    reader = RecordReader(client)
    record = reader.list_things(SECTIONS)
    with progress("reading", len(record.things)) as advance:
        reader.read_entries(record.things, advance)
    return record


def compare(client: Baton, files: Sequence[LoadedFile], *, prune: bool = False) -> Comparison:
    """Read what files are about, and work out what is to be done."""
    things = wanted_things(files)
    reader = RecordReader(client)
    record = reader.list_things({thing.section for thing in things} | {"facilities"})
    wanted: dict[Key, None] = {(thing.section, thing.key): None for thing in with_default_facility(things, record.facility)}
    if any(thing.section == "assets" and thing.entry.formerly is not None for thing in things):
        wanted |= dict.fromkeys(key for key in record.things if key[0] == "assets")
    with progress("reading", len(wanted)) as advance:
        reader.read_entries(wanted, advance)
    plan = changes(record, files, prune=prune)
    return Comparison(record, replace(plan, remarks=shared_addresses(client, things, record, plan.moved)))


def issue(client: Baton, compared: Comparison, look_again: Callable[[], Comparison]) -> Results:
    """Issue the commands of a plan. Where some are refused, somebody may do the same at this moment, or have done it: look
    again, and try what is left as long as each round leaves less. What was proposed is not proposed again."""
    done = 0
    while True:
        plan = compared.plan
        with progress("applying", plan.commands) as advance:
            results = PlanApplication(client, plan, compared.record, advance).run()
        results.done = done = done + results.done
        if not results.refused or results.proposed:
            return results
        compared = look_again()
        left = {(one.section, one.key) for one in (*compared.plan.changes, *compared.plan.retirements)}
        results.refused = {key: why for key, why in results.refused.items() if key in left}
        results.skipped = {key: why for key, why in results.skipped.items() if key in left}
        if not 0 < compared.plan.commands < plan.commands:
            return results


def say(plan: ChangePlan, results: Results) -> int:
    """Print what came of a plan, and return the exit code."""
    for (section, key), why in (*results.refused.items(), *results.skipped.items()):
        print_line("!", f"{section}: {key}: {why}")
    for (section, key), why in results.proposed.items():
        print_line("?", f"{section}: {key}: {why}")
    done = f"{results.done} of {plan.commands} commands were carried out."
    if left := sum(map(len, (results.refused, results.skipped, results.proposed, plan.obstacles))):
        print(f"{done} {left} things are not as the file says.")
        return REFUSED
    print(done)
    return DONE


def print_plan(plan: ChangePlan) -> None:
    """Print what is to be done, one line for each command that changes something, coloured on a terminal."""
    for remark in plan.remarks:
        print_line("?", remark)
    lines = list(plan_lines(plan))
    for sign, text in lines[:MOST_LINES]:
        print_line(sign, text)
    if len(lines) > MOST_LINES:
        print(f"... and {len(lines) - MOST_LINES:,} more lines")
    if lines:
        made = sum(one.creates and bool(one.updates) for one in plan.changes)
        changed = sum(not one.creates and bool(one.updates) for one in plan.changes)
        kept = f", {count} that cannot be changed" if (count := len(plan.obstacles) - plan.refused) else ""
        kept += f", {plan.refused} that would be refused" if plan.refused else ""
        print(f"{made:,} to make, {changed:,} to change, {len(plan.retirements):,} to retire{kept}.")


def plan_lines(plan: ChangePlan) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plan with their signs: + made, ~ changed, - retired, ! not possible."""
    for change in (*plan.changes, *plan.retirements):
        yield from change_lines(change)


def change_lines(change: ThingChange) -> Iterator[tuple[str, str]]:
    """Yield the lines of one thing."""
    if change.retires:
        yield "-", f"{change.title}: {change.updates[0].operation}"
        return
    if change.creates and change.updates:
        yield "+", change.title
    else:
        yield from (
            ("~", f"{change.title}: {sentence}") for sentence in dict.fromkeys(one.sentence for one in change.updates)
        )
    yield from (("!", f"{change.title}: {sentence}") for sentence in change.obstacles)


def print_line(sign: str, text: str) -> None:
    """Print one line of a plan."""
    text = terminal_text(text)
    if sys.stdout.isatty():
        Console(highlight=False, emoji=False, soft_wrap=True).print(f"[{COLOURS[sign]}]{sign} {escape(text)}[/]")
    else:
        print(f"{sign} {text}")


def confirm(count: int) -> bool:
    """Ask whether things are to be retired; nobody at a terminal means no."""
    if not sys.stdin.isatty():
        print(f"baton: {count} things would be retired; say so with --yes.", file=sys.stderr)
        return False
    return input(f"Retire {count} things for good? [y/N] ").strip().lower() in ("y", "yes")


def refuse_files(error: BeamlineFileError) -> int:
    """Print what is wrong with files."""
    for fault in error.faults[:MOST_LINES]:
        print(f"baton: {terminal_text(fault)}", file=sys.stderr)
    if len(error.faults) > MOST_LINES:
        print(f"baton: and {len(error.faults) - MOST_LINES:,} more faults.", file=sys.stderr)
    return REFUSED


@contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """Draw a bar on a terminal while commands are given."""
    console = Console(stderr=True, emoji=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal or total < 2) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
