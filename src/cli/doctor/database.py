"""Checks of what the database tells: its durability, migrations and rights, projections, tasks, reactions and monitors."""

import time
from typing import Any

from baton.application.long_work import reaction_names
from baton.application.queries import PROJECTIONS
from baton.application.settings import Settings
from baton.application.telemetry import TaskTrouble
from baton.cli.doctor import CheckResult, ok, warning, wrong
from baton.cli.startup import one_line
from baton.domain.enclosure.enclosure import NAMES, RegisterEnclosure, enclosure_key
from baton.domain.equipment.signals import SIGNALS
from baton.infrastructure.postgres.adoption import RecordAheadError
from baton.infrastructure.postgres.leadership import (
    MONITOR_LOCK,
    PROJECTIONS_LOCK,
    REACTIONS_LOCK,
    is_led,
    running_processes,
)
from baton.infrastructure.postgres.pool import RUNTIME_ROLE, Connection
from baton.infrastructure.postgres.projections import read_bookmark, unbuilt_projections
from baton.infrastructure.postgres.schema_version import CAN_REWRITE, NewerDatabaseError, has_current_form, known_revisions

INSERT_ONLY = ("events", "entries_conduit_verdicts")
LATE_SECONDS, STUCK_SECONDS = 2.0, 30.0  # an event waits noticeably for the projections, or longer than load explains
COUNTED = 100_000


async def examine_database(connection: Connection) -> CheckResult:
    """Check that the server answers and loses nothing that it has acknowledged."""
    begun = time.perf_counter()
    settings = "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')"
    version, fsync, commit = await _row(connection, settings)
    answered = f"PostgreSQL {version.split()[0]} answers in {1000 * (time.perf_counter() - begun):.1f} ms"
    if "off" in (fsync, commit):
        loss = "a power cut loses acknowledged commands; set both to on"
        return warning(f"{answered}, but with fsync={fsync} and synchronous_commit={commit} {loss}.")
    return ok(f"{answered}.")


def examine_migrations(url: str) -> CheckResult:
    """Check that the database has the form that this build needs."""
    try:
        if has_current_form(url):
            return ok(f"The database is migrated to {known_revisions()[-1]} and every projection is declared as here.")
    except (NewerDatabaseError, RecordAheadError) as error:
        return wrong(str(error))
    from baton.infrastructure.postgres.migrate import pending_migrations  # loads SQLAlchemy

    if pending := pending_migrations(url):
        missing = f"Migrations {', '.join(sorted(pending))} are not applied"
    else:
        missing = "Projections are declared otherwise than by this build"
    return wrong(f"{missing}; start any process of the service (`baton up`, `baton projector`), it sees to that.")


async def examine_rights(connection: Connection) -> CheckResult:
    """Check that the role of the service can add to the log, and do nothing else to it."""
    facts = "count(*) > 0, bool_or(pg_has_role(current_user, oid, 'MEMBER')), bool_or(rolsuper)"
    known, member, superuser = await _row(connection, f"SELECT {facts} FROM pg_roles WHERE rolname = %s", RUNTIME_ROLE)
    if not known:
        return wrong(f"There is no role {RUNTIME_ROLE}; run CREATE ROLE {RUNTIME_ROLE} NOLOGIN and grant its rights.")
    if not member:
        return wrong(f"The user of DATABASE_URL cannot become {RUNTIME_ROLE}; run GRANT {RUNTIME_ROLE} TO that user.")
    if superuser:
        return wrong(f"{RUNTIME_ROLE} is a superuser, so it can rewrite the log; ALTER ROLE {RUNTIME_ROLE} NOSUPERUSER.")
    held = await connection.execute(
        "SELECT name, privilege FROM unnest(%s::text[]) name, "
        "unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE}'::text[]) privilege "
        "WHERE has_table_privilege(%s, name, privilege)",
        (list(INSERT_ONLY), RUNTIME_ROLE),
    )
    rights = set(await held.fetchall())
    wanted = {(name, privilege) for name in INSERT_ONLY for privilege in ("SELECT", "INSERT")}
    if excess := sorted(rights - wanted):
        revoke = "; ".join(f"REVOKE {privilege} ON {name} FROM {RUNTIME_ROLE}" for name, privilege in excess)
        return wrong(f"{RUNTIME_ROLE} can do more to the log than add to it; run {revoke}.")
    if lacking := sorted(wanted - rights):
        grant = "; ".join(f"GRANT {privilege} ON {name} TO {RUNTIME_ROLE}" for name, privilege in lacking)
        return wrong(f"{RUNTIME_ROLE} lacks rights it needs; run {grant}.")
    (rewrites,) = await _row(connection, CAN_REWRITE)
    if rewrites:
        but = "DATABASE_URL logs in as somebody who can rewrite it"
        remedy = f"log in as {RUNTIME_ROLE}, and give the owner's login to the projector as DATABASE_OWNER_URL"
        return warning(f"{RUNTIME_ROLE} can add to the log and nothing else, but {but}; {remedy}.")
    return ok(f"{RUNTIME_ROLE} can read the log and add to it, and nothing else.")


async def examine_projections(connection: Connection) -> CheckResult:
    """Check that every projection is built and kept, and how far behind the log it is."""
    missing = await unbuilt_projections(connection)
    bookmark = await read_bookmark(connection, PROJECTIONS)
    behind, age = await _row(
        connection,
        "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(recorded_at)), 0)::float FROM (SELECT "
        "recorded_at FROM events WHERE (transaction_id, position) > (%s::text::xid8, %s) LIMIT %s) late",
        *(str(bookmark.transaction_id), bookmark.position, COUNTED),
    )
    lag = f"{behind}{' or more' if behind == COUNTED else ''} events behind by {age:.1f} s"
    if not await is_led(connection, PROJECTIONS_LOCK):
        remedy = await remedy_for_unled(connection, "projections", "projector")
        return wrong(f"Nobody keeps the projections ({lag}); {remedy}.")
    if missing:
        remedy = f"the projector fills them when it starts, or run `baton projections rebuild {' '.join(missing)}`"
        return wrong(f"Not built yet: {', '.join(missing)}; {remedy}.")
    if age > STUCK_SECONDS:
        found = await connection.execute(
            "SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::int FROM pg_stat_activity "
            "WHERE backend_xid IS NOT NULL AND datname = current_database() AND xact_start < clock_timestamp() - "
            "make_interval(secs => %s) ORDER BY xact_start LIMIT 1",
            (LATE_SECONDS,),
        )
        remedy = "read the projector's log, and start it again if it hangs"
        if row := await found.fetchone():
            remedy = f"a transaction open for {row[1]} s holds them back, end it with SELECT pg_terminate_backend({row[0]})"
        return wrong(f"The projections are {lag}; {remedy}.")
    if age > LATE_SECONDS:
        return warning(f"The projections are {lag}; look again in a moment, the projector may be catching up.")
    return ok(f"Every projection is built and at position {bookmark.position}, {lag}.")


async def _row(connection: Connection, query: str, *values: object) -> tuple[Any, ...]:
    row = await (await connection.execute(query, values or None)).fetchone()
    assert row is not None, "these queries answer with one row"
    return row


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
    if skewed := [f"{process.name} ({process.clock_skew:+.0f} s)" for process in processes if process.has_wrong_clock]:
        remedy = "times that they record are wrong by as much; set these clocks by the network's time"
        return wrong(f"The clock is not the database's in {', '.join(skewed)}; {remedy}.")
    if dropped := [f"{process.name} ({process.dropped_lines})" for process in processes if process.dropped_lines]:
        remedy = "see that the disk has room and that somebody reads their standard error"
        return warning(f"Log lines could not be written by {', '.join(dropped)}; {remedy}.")
    return ok(f"{names}; every task continues.")


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
    how = f"{'was' if trouble.running else 'waits to be'} started again, {trouble.restarts} times by now"
    return f"{trouble.task} {how} (last: {trouble.because})"


async def examine_reactions(connection: Connection) -> CheckResult:
    """Check that every subscriber advances through the log."""
    states = "SELECT subscriber_name, enabled, consecutive_failures, last_error_message FROM reactions"
    query = f"{states} WHERE subscriber_name = ANY(%s) ORDER BY subscriber_name"
    rows = await (await connection.execute(query, (reaction_names(),))).fetchall()
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


async def examine_signals(connection: Connection) -> CheckResult:
    """Check that no address of the control system is claimed by two assets."""
    shared = "SELECT key FROM lookups WHERE kind = %s GROUP BY key HAVING count(*) > 1 ORDER BY key"
    addresses = [key for (key,) in await (await connection.execute(shared, (SIGNALS,))).fetchall()]
    if not addresses:
        return ok("No address of the control system is claimed by two assets.")
    listed = ", ".join(addresses[:5]) + (f" and {len(addresses) - 5} more" if len(addresses) > 5 else "")
    remedy = "resolve_signals names them; remove the EPICS_PV identifier from all but one"
    return warning(f"Several assets claim {listed}, so that gates and limits count for all of them; {remedy}.")


async def examine_catalogues(connection: Connection, settings: Settings) -> CheckResult:
    """Check that the catalogues outside take what they are told."""
    if settings.scicat_address is None and settings.tiled_directory is None:
        return ok("No catalogue is configured, so datasets are entered into none.")
    pending, refused, error = await _row(
        connection,
        "SELECT count(*) FILTER (WHERE status = 'Pending'), count(*) FILTER (WHERE status = 'Refused'), "
        "max(last_error) FILTER (WHERE status = 'Pending') FROM catalogue_entries WHERE status <> 'Entered'",
    )
    waiting = f"{pending} entries wait for a catalogue"
    if error is not None:
        return warning(f"{waiting} that does not take them now: {one_line(error)}.")
    if refused:
        remedy = "list_catalogue_entries says why; mend that, then retry_catalogue_entry"
        return warning(f"Catalogues refused {refused} datasets, {waiting}; {remedy}.")
    return ok(f"Catalogues refused no dataset, {waiting}.")


async def examine_monitors(connection: Connection, settings: Settings) -> CheckResult:
    """Check that somebody observes what is configured, and each permit was observed lately."""
    enclosures, supplies = settings.monitored_enclosures, settings.monitored_supplies
    if not enclosures and not supplies:
        return ok("No enclosure and no supply is configured to be monitored.")
    what = f"{len(enclosures)} enclosures and {len(supplies)} supplies"
    if not await is_led(connection, MONITOR_LOCK):
        return wrong(f"Nobody monitors the {what} that are configured; {await remedy_for_unled(connection, 'monitoring')}.")
    code = settings.self_facility_code
    keys = {enclosure_key(RegisterEnclosure(name=name, facility_code=code)): name for name in enclosures}
    contacts = await connection.execute(
        "SELECT key, extract(epoch FROM clock_timestamp() - contacted_at)::float FROM claims "
        "LEFT JOIN enclosure_contact ON enclosure_id = holder_id WHERE kind = %s AND key = ANY(%s)",
        (NAMES, list(keys)),
    )
    ages = dict.fromkeys(keys.values()) | {keys[key]: age for key, age in await contacts.fetchall()}
    text = ", ".join(f"{name} {'never' if age is None else f'{age:.0f} s ago'}" for name, age in ages.items())
    limit = settings.monitored_permit_ttl_seconds
    if any(age is None or age > limit for age in ages.values()):
        remedy = "see that the control system serves their signals, and read the worker's log"
        return wrong(f"{what} are monitored, but not every permit was observed within {limit} s (last: {text}); {remedy}.")
    return ok(f"{what} are monitored" + (f" (permits last observed: {text})." if text else "."))
