"""`hold`, `resume`, `stop`, `abort` and `hold-everything`: steering live work by its name."""

from collections.abc import Iterator
from typing import Annotated, Any

from typer import Argument, Option, Typer

from baton.cli.daily.completion import complete_work
from baton.cli.daily.found_work import FoundWork, find_work
from baton.cli.daily.session import ServiceSession, service_command

app = Typer()
WorkName = Annotated[str, Argument(metavar="NAME", help="A run or procedure: its name or id.", autocompletion=complete_work)]
Reason = Annotated[str | None, Option("--reason", "-m", help="Why, for the record.")]
DryRunOption = Annotated[bool, Option("--dry-run", help="Say what would be recorded, and record nothing.")]
BY_HAND = "from the command line"  # the reason where none is given: nobody who must halt something is kept from it


@service_command(app)
def hold(session: ServiceSession, name: WorkName, reason: Reason = None, dry_run: DryRunOption = False) -> None:
    """Hold a run or procedure at its next step; it continues when somebody resumes it."""
    work = find_work(session.client, name, ("Running",))
    steer(session, work, f"hold_{work.kind}", dry_run, reason=reason or f"held {BY_HAND}")


@service_command(app)
def resume(session: ServiceSession, name: WorkName, dry_run: DryRunOption = False) -> None:
    """Resume a held run; a held procedure is conducted on from the first step that is not done."""
    work = find_work(session.client, name, ("Held",))
    if work.kind == "run":
        steer(session, work, "resume_run", dry_run)
    else:
        steer(session, work, "conduct_from_procedure", dry_run, wait=0)


@service_command(app)
def stop(session: ServiceSession, name: WorkName, reason: Reason = None, dry_run: DryRunOption = False) -> None:
    """Stop a run after its present step, and conduct its closing steps; those of a held procedure, too."""
    work = find_work(session.client, name)
    given = {"reason": reason or f"stopped {BY_HAND}"}
    if work.kind == "run":
        steer(session, work, "stop_run", dry_run, **given)
    else:
        steer(session, work, "abort_procedure", dry_run, **given, run_closing=True)


@service_command(app)
def abort(session: ServiceSession, name: WorkName, reason: Reason = None, dry_run: DryRunOption = False) -> None:
    """Abort a run or procedure at once; nothing is closed."""
    work = find_work(session.client, name)
    steer(session, work, f"abort_{work.kind}", dry_run, reason=reason or f"aborted {BY_HAND}")


@service_command(app, "hold-everything")
def hold_everything(
    session: ServiceSession,
    on: Annotated[str | None, Option("--on", help="Only what works on this asset, by name or id.")] = None,
    reason: Reason = None,
    dry_run: DryRunOption = False,
) -> None:
    """Hold every queue, schedule, run and conduct that you may hold, at once; exits with 1 where one was refused."""
    scope = {} if on is None else {"asset_id": on}
    answer = session.client.call("hold_everything", dry_run=dry_run, reason=reason or f"everything held {BY_HAND}", **scope)
    if dry_run:
        session.show(answer, dry_run_lines(answer))
        return
    session.show(answer, held_lines(answer))
    if answer.refused:
        raise SystemExit(1)


def steer(session: ServiceSession, work: FoundWork, operation: str, dry_run: bool, **fields: Any) -> None:
    """Give one command about a run or procedure, and say what became of it."""
    answer = session.client.call(operation, dry_run=dry_run, **work.target, **fields)
    if dry_run:
        session.show(answer, dry_run_lines(answer))
        return
    status = session.client.call(f"get_{work.kind}", **work.target).status
    document = {"kind": work.kind, "id": work.id, "name": work.name, "command": operation, "status": status}
    session.show(document, [f"The {work.kind} {work.name!r} is {status}{pending_text(work, status, operation)}."])


def pending_text(work: FoundWork, status: str, operation: str) -> str:
    """Return that a request waits for the step in progress, where the state is still as it was."""
    if status == work.status and not operation.startswith("conduct"):
        return f"; it was asked to {operation.partition('_')[0]} and will when its step allows"
    return ""


def held_lines(answer: Any) -> Iterator[str]:
    """Yield what was held and what was not, and first what that comes to."""
    yield answer.message
    for one in answer.held:
        yield f"{'was held already' if one.already else 'asked to hold'}: {one.kind} {one.name!r}"
    for one in answer.refused:
        yield f"refused: {one.kind} {one.name!r}: {one.detail}"
    for one in answer.still_armed:
        names = " or ".join(one.who_can) or "nobody that is known"
        yield f"can still start by itself: {one.kind} {one.name!r}; {names} can hold it"


def dry_run_lines(answer: Any) -> Iterator[str]:
    """Yield what a command would record."""
    if not answer.would:
        yield "It would be accepted, and record nothing."
    for one in answer.would:
        yield f"It would record {one.event_type} in {one.stream} {one.stream_id}."
