"""Checks of the database: durability, migrations, rights, projections."""

import time
from typing import Any

from baton.application.queries import PROJECTIONS
from baton.cli.doctor.findings import CheckResult, ok, warning, wrong
from baton.cli.doctor.tasks import remedy_for_unled
from baton.infrastructure.postgres.leadership import PROJECTIONS_LOCK, is_led
from baton.infrastructure.postgres.pool import RUNTIME_ROLE, Connection
from baton.infrastructure.postgres.projections import read_bookmark, unbuilt_projections
from baton.infrastructure.postgres.schema_version import CAN_REWRITE, NewerDatabaseError, has_current_form, known_revisions

INSERT_ONLY = ("events", "entries_conduit_verdicts")
LATE_SECONDS, STUCK_SECONDS = 2.0, 30.0
"""How long an event may wait for the projections: noticeable, and no longer explained by load."""
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
    except NewerDatabaseError as error:
        return wrong(str(error))
    from baton.infrastructure.postgres.migrate import pending_migrations  # loads SQLAlchemy

    if pending := pending_migrations(url):
        missing = f"Migrations {', '.join(sorted(pending))} are not applied"
    else:
        missing = "Projections are declared otherwise than by this build"
    return wrong(f"{missing}; start any process of the service (`baton up`, `baton projector`), it sees to that.")


async def examine_rights(connection: Connection) -> CheckResult:
    """Check that the role of the service can add to the log, and do nothing else to it."""
    known, member, superuser = await _row(
        connection,
        "SELECT count(*) > 0, bool_or(pg_has_role(current_user, oid, 'MEMBER')), bool_or(rolsuper) "
        "FROM pg_roles WHERE rolname = %s",
        RUNTIME_ROLE,
    )
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
        return warning(
            f"{RUNTIME_ROLE} can add to the log and nothing else, but DATABASE_URL logs in as somebody who can rewrite it; "
            f"log in as {RUNTIME_ROLE}, and give the owner's login to the projector as DATABASE_OWNER_URL."
        )
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
        return wrong(f"The projections are {lag}; {await _holding_back(connection)}.")
    if age > LATE_SECONDS:
        return warning(f"The projections are {lag}; look again in a moment, the projector may be catching up.")
    return ok(f"Every projection is built and at position {bookmark.position}, {lag}.")


async def _holding_back(connection: Connection) -> str:
    """Return what holds the projections back: an open transaction, or the projector itself."""
    found = await connection.execute(
        "SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::int FROM pg_stat_activity "
        "WHERE backend_xid IS NOT NULL AND datname = current_database() AND xact_start < clock_timestamp() - "
        "make_interval(secs => %s) ORDER BY xact_start LIMIT 1",
        (LATE_SECONDS,),
    )
    if row := await found.fetchone():
        return f"a transaction open for {row[1]} s holds them back, end it with SELECT pg_terminate_backend({row[0]})"
    return "read the projector's log, and start it again if it hangs"


async def _row(connection: Connection, query: str, *values: Any) -> tuple[Any, ...]:
    row = await (await connection.execute(query, values or None)).fetchone()
    assert row is not None, "these queries answer with one row"
    return row
