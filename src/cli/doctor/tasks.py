"""Checks of what the running processes do: their tasks, the reactions to the log, and the monitors."""

from baton.application.settings import Settings
from baton.application.telemetry import TaskTrouble
from baton.cli.composition.agents import SUBSCRIBERS
from baton.cli.doctor.findings import CheckResult, ok, warning, wrong
from baton.cli.startup import one_line
from baton.domain.enclosure.enclosure import NAMES, RegisterEnclosure, enclosure_key
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, REACTIONS_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.postgres.process_reports import running_processes

FOLLOWING = """
SELECT subscriber_name, enabled, consecutive_failures, last_error_message FROM reactions
WHERE subscriber_name = ANY(%s) ORDER BY subscriber_name
"""


async def examine_processes(connection: Connection) -> CheckResult:
    """Check that every task of every process runs and every log line is written."""
    processes = await running_processes(connection)
    if not processes:
        return warning("No process has reported lately, so none runs on this database; start them, or `baton up`.")
    names = ", ".join(process.name for process in processes)
    troubles = [(process.name, trouble) for process in processes for trouble in process.troubles]
    if troubles:
        text = "; ".join(f"{_describe(trouble)} in {name}" for name, trouble in troubles)
        finding = warning if all(trouble.running for _, trouble in troubles) else wrong
        return finding(f"Of the tasks of {names}: {text}. Read the log of that process for `task_ended`.")
    if dropped := [f"{process.name} ({process.dropped_lines})" for process in processes if process.dropped_lines]:
        remedy = "see that the disk has room and that somebody reads their standard error"
        return warning(f"Log lines could not be written by {', '.join(dropped)}; {remedy}.")
    return ok(f"{names}; every task goes on.")


async def remedy_for_unled(connection: Connection, task: str, kind: str = "worker") -> str:
    """Return the remedy where nobody leads a task: start a process of this kind, or look at those that run."""
    processes = [process for process in await running_processes(connection) if process.kind == kind]
    if not processes:
        return f"start `baton {kind}`, or `baton up`"
    names = ", ".join(process.name for process in processes)
    text = [_describe(trouble) for process in processes for trouble in process.troubles if trouble.task == task]
    because = f" ({text[0]})" if text else ""
    return f"{names} runs and does not lead{because}, so look again in a moment, then read its log and start it again"


def _describe(trouble: TaskTrouble) -> str:
    return (
        f"{trouble.task} {'was' if trouble.running else 'waits to be'} started again, {trouble.restarts} times by now "
        f"(last: {trouble.because})"
    )


async def examine_reactions(connection: Connection) -> CheckResult:
    """Check that every subscriber advances through the log."""
    rows = await (await connection.execute(FOLLOWING, (list(SUBSCRIBERS),))).fetchall()
    if not rows:
        return ok("Nobody has subscribed to the log yet; the first start of the API sees to that.")
    if not await is_led(connection, REACTIONS_LOCK):
        remedy = await remedy_for_unled(connection, "reactions")
        return wrong(f"Nobody reacts to what happens, so agents and triggers wait; {remedy}.")
    failing = [row for row in rows if row[1] and row[2]]
    if stuck := [f"{name} ({failures} times: {one_line(error)})" for name, _, failures, error in failing]:
        remedy = "an event that cannot be got past is dismissed with dismiss_event_in_reaction"
        return wrong(f"Not going on: {', '.join(stuck)}. Mend what it says; {remedy}.")
    off = [name for name, enabled, _, _ in rows if not enabled]
    return ok(f"{len(rows)} subscribers follow the log" + (f"; switched off: {', '.join(off)}." if off else "."))


async def examine_monitors(connection: Connection, settings: Settings) -> CheckResult:
    """Check that somebody observes what is configured, and each permit was observed lately."""
    enclosures, supplies = settings.monitored_enclosures, settings.monitored_supplies
    if not enclosures and not supplies:
        return ok("No enclosure and no supply is configured to be monitored.")
    what = f"{len(enclosures)} enclosures and {len(supplies)} supplies"
    if not await is_led(connection, MONITOR_LOCK):
        return wrong(f"Nobody monitors the {what} that are configured; {await remedy_for_unled(connection, 'monitoring')}.")
    ages = await _contact_ages(connection, settings)
    text = ", ".join(f"{name} {'never' if age is None else f'{age:.0f} s ago'}" for name, age in ages.items())
    limit = settings.enclosure_observation_ttl_seconds
    if any(age is None or age > limit for age in ages.values()):
        remedy = "see that the control system serves their signals, and read the worker's log"
        return wrong(f"{what} are monitored, but not every permit was observed within {limit} s (last: {text}); {remedy}.")
    return ok(f"{what} are monitored" + (f" (permits last observed: {text})." if text else "."))


async def _contact_ages(connection: Connection, settings: Settings) -> dict[str, float | None]:
    """Return the seconds since each configured enclosure was last observed."""
    keys = {
        enclosure_key(RegisterEnclosure(name=name, facility_code=settings.self_facility_code)): name
        for name in settings.monitored_enclosures
    }
    found = await connection.execute(
        "SELECT key, extract(epoch FROM clock_timestamp() - contacted_at)::float FROM claims "
        "LEFT JOIN enclosure_contact ON enclosure_id = holder_id WHERE kind = %s AND key = ANY(%s)",
        (NAMES, list(keys)),
    )
    return dict.fromkeys(keys.values()) | {keys[key]: age for key, age in await found.fetchall()}
