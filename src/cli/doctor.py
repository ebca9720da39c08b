"""`baton doctor`: looks at everything the service rests on, and says of each what is wrong and how to mend it."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console
from rich.markup import escape

from application.boot_guards import boot_objections, bootstrap_objections, idle_agents
from application.settings import Settings, shown_settings
from cli.findings import Finding, Verdict, ok, warning, wrong
from cli.places import noted_place
from cli.processes import one_line
from cli.refusing import refuse, unreadable
from cli.schedules import examine_schedules
from cli.unfinished import examine_conducts, examine_publications, examine_sweeps
from infrastructure.postgres.pool import OWNER_OPTIONS, RUNTIME_ROLE, Connection

if TYPE_CHECKING:
    from temporalio.client import Client

T = TypeVar("T")

PATIENCE = 5
"""Seconds any server has to answer."""
INSERT_ONLY = ("events", "entries_conduit_verdicts")
LATE, STUCK = 2.0, 30.0
"""Seconds an event may wait for the projections: noticeable, and no longer a matter of load."""
LOST = 75.0
"""Seconds without a poll after which a worker is gone: it asks for work at least once a minute."""
COUNTED = 100_000
STYLES = {"ok": "green", "warning": "yellow", "wrong": "bold red"}


class UnreachableError(Exception):
    """A server that a check needs does not answer; the message says which and why."""

    def __init__(self, server: str, sentence: str) -> None:
        self.server = server
        super().__init__(sentence)


def examine(only: str | None, data_dir: Path) -> int:
    """Print the finding of every check, or of one; answers the exit code."""
    if only is not None and only not in CHECKS:
        refuse(f"There is no check {only}; there are {', '.join(CHECKS)}.")
    return asyncio.run(_examine([only] if only else list(CHECKS), data_dir))


async def _examine(names: list[str], data_dir: Path) -> int:
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    verdicts = []
    async with Doctor(data_dir) as doctor:
        for name in names:
            finding = await doctor.finding(name)
            verdicts.append(finding.verdict)
            style = STYLES[finding.verdict]
            console.print(f"[{style}]{finding.verdict:<8}[/] {name:<12} {escape(finding.sentence)}")
            if name == "settings" and doctor.settings is not None:
                for variable, value in shown_settings(doctor.settings).items():
                    console.print(f"[dim]{'':21} {variable} {escape('unset' if value is None else str(value))}[/]")
    return 1 if Verdict.WRONG in verdicts else 0


class Doctor:
    """Asks the servers that the environment names, or those of the stack that runs on a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.settings: Settings | None = None
        self._unreadable: list[str] = []
        try:
            self.settings = Settings()
        except (SettingsError, ValidationError) as error:
            self._unreadable = unreadable(error)
        self._data_dir = data_dir
        self._open = AsyncExitStack()
        self._connection: Connection | None = None
        self._client: Client | None = None

    async def __aenter__(self) -> "Doctor":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def finding(self, name: str) -> Finding:
        """The finding of one check; what another check answers for is not repeated."""
        try:
            return await CHECKS[name](self)
        except UnreachableError as unreachable:
            if unreachable.server == name:
                return wrong(str(unreachable))
            return warning(f"Not looked at, because {unreachable.server} does not answer; mend that first.")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject):
            return warning("Not looked at, because migrations are missing; mend that first.")

    async def check_settings(self) -> Finding:
        if self.settings is None:
            return wrong(" ".join(self._unreadable))
        objections = boot_objections(self.settings) or await self._bootstrap_objections(self.settings)
        if objections:
            return wrong(" ".join(objections))
        if idle := idle_agents(self.settings):
            return warning(" ".join(idle))
        return ok(f"No process objects to these settings (APP_ENV={self.settings.app_env}).")

    async def _bootstrap_objections(self, settings: Settings) -> list[str]:
        try:
            connection = await self._database()
            rows = await (await connection.execute("SELECT actor_id FROM access_subject_binding")).fetchall()
        except (UnreachableError, psycopg.errors.UndefinedTable):
            return []
        return bootstrap_objections(settings, [row[0] for row in rows])

    async def check_database(self) -> Finding:
        connection = await self._database()
        begun = time.perf_counter()
        version, fsync, commit = await _row(
            connection,
            "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')",
        )
        answered = f"PostgreSQL {version.split()[0]} answers in {1000 * (time.perf_counter() - begun):.1f} ms"
        if "off" in (fsync, commit):
            return warning(
                f"{answered}, but with fsync={fsync} and synchronous_commit={commit} a power cut loses acknowledged "
                "commands; set both to on."
            )
        return ok(f"{answered}.")

    async def check_migrations(self) -> Finding:
        from infrastructure.postgres.form import NewerDatabaseError, has_current_form, known_revisions

        await self._database()
        try:
            if has_current_form(self._database_url()):
                return ok(f"The database is migrated to {known_revisions()[-1]} and every projection is declared as here.")
        except NewerDatabaseError as error:
            return wrong(str(error))
        from infrastructure.postgres.migrate import pending_migrations

        if pending := pending_migrations(self._database_url()):
            missing = f"Migrations {', '.join(sorted(pending))} are not applied"
        else:
            missing = "Projections are declared otherwise than by this build"
        return wrong(f"{missing}; start any process of the service (`baton up`, `baton projector`), it sees to that.")

    async def check_rights(self) -> Finding:
        """Whether the role the service runs as can add to the log, and do nothing else to it."""
        connection = await self._database()
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
        return ok(f"{RUNTIME_ROLE} can read the log and add to it, and nothing else.")

    async def check_projections(self) -> Finding:
        """Whether every projection is built, somebody follows the log, and how far behind the projections are."""
        from application.queries import PROJECTIONS
        from infrastructure.postgres.projections import LEADER_LOCK, bookmark_of, unbuilt

        connection = await self._database()
        missing = await unbuilt(connection)
        (led,) = await _row(
            connection,
            "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND (classid::bigint << 32) + objid::bigint = %s",
            LEADER_LOCK,
        )
        bookmark = await bookmark_of(connection, PROJECTIONS)
        behind, age = await _row(
            connection,
            "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(recorded_at)), 0)::float FROM (SELECT "
            "recorded_at FROM events WHERE (transaction_id, position) > (%s::text::xid8, %s) LIMIT %s) late",
            *(str(bookmark.transaction_id), bookmark.position, COUNTED),
        )
        lag = f"{behind}{' or more' if behind == COUNTED else ''} events behind by {age:.1f} s"
        if not led:
            return wrong(f"Nobody keeps the projections ({lag}); start `baton projector`, or `baton up`.")
        if missing:
            return wrong(
                f"Not built yet: {', '.join(missing)}; the projector fills them when it starts, or run "
                f"`baton projections rebuild {' '.join(missing)}`."
            )
        if age > STUCK:
            return wrong(f"The projections are {lag}; {await self._holding_back(connection)}.")
        if age > LATE:
            return warning(f"The projections are {lag}; look again in a moment, the projector may be catching up.")
        return ok(f"Every projection is built and at position {bookmark.position}, {lag}.")

    async def _holding_back(self, connection: Connection) -> str:
        """What keeps the followers of the log from going on: an open transaction, or the projector itself."""
        found = await connection.execute(
            "SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::int FROM pg_stat_activity "
            "WHERE backend_xid IS NOT NULL AND datname = current_database() AND xact_start < clock_timestamp() - "
            "make_interval(secs => %s) ORDER BY xact_start LIMIT 1",
            (LATE,),
        )
        if row := await found.fetchone():
            return f"a transaction open for {row[1]} s holds them back, end it with SELECT pg_terminate_backend({row[0]})"
        return "read the projector's log, and start it again if it hangs"

    async def check_temporal(self) -> Finding:
        from temporalio.api.workflowservice.v1 import GetSystemInfoRequest

        client = await self._temporal()
        info = await _asked(client.workflow_service.get_system_info, GetSystemInfoRequest())
        return ok(f"Temporal {info.server_version} answers at {self._temporal_address()}.")

    async def check_namespace(self) -> Finding:
        from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
        from temporalio.service import RPCError, RPCStatusCode

        client = await self._temporal()
        try:
            described = await _asked(
                client.workflow_service.describe_namespace, DescribeNamespaceRequest(namespace=client.namespace)
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return wrong(
                f"There is no namespace {client.namespace}; run `temporal operator namespace create --namespace "
                f"{client.namespace}`, or correct TEMPORAL_NAMESPACE."
            )
        days = described.config.workflow_execution_retention_ttl.ToTimedelta() / timedelta(days=1)
        return ok(f"The namespace {client.namespace} is there and keeps finished workflows for {days:g} days.")

    async def check_attributes(self) -> Finding:
        from infrastructure.temporal.attributes import NAMES, command_for, missing

        client = await self._temporal()
        if lacking := await _answered(missing(client)):
            return warning(
                f"The search attributes {', '.join(lacking)} are missing, so nobody finds workflows by them; run "
                f"`{command_for(client.namespace, lacking)}`."
            )
        return ok(f"All {len(NAMES)} search attributes are there.")

    async def check_workers(self) -> Finding:
        from temporalio.api.enums.v1 import TaskQueueType
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

        from infrastructure.temporal.engine import TASK_QUEUE

        client = await self._temporal()
        polled: dict[str, datetime] = {}
        for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
            described = await _asked(
                client.workflow_service.describe_task_queue,
                DescribeTaskQueueRequest(
                    namespace=client.namespace, task_queue=TaskQueue(name=TASK_QUEUE), task_queue_type=kind
                ),
            )
            for poller in described.pollers:
                at = poller.last_access_time.ToDatetime(tzinfo=UTC)
                polled[poller.identity] = max(at, polled.get(poller.identity, at))
        start = "start `baton worker`, or `baton up`"
        if not polled:
            return wrong(f"No worker asks for work on the task queue {TASK_QUEUE}; {start}.")
        ages = {identity: max(0.0, (datetime.now(UTC) - at).total_seconds()) for identity, at in polled.items()}
        told = ", ".join(f"{identity} {age:.0f} s ago" for identity, age in sorted(ages.items(), key=lambda item: item[1]))
        if min(ages.values()) > LOST:
            return wrong(f"Every worker of the task queue {TASK_QUEUE} is lost (last polls: {told}); {start}.")
        if (idle := await self._idle_deployment(client)) is not None:
            return idle
        return ok(f"Workers poll the task queue {TASK_QUEUE} (last polls: {told}).")

    async def _idle_deployment(self, client: "Client") -> Finding | None:
        """What keeps the workers of a named deployment from being given new workflows."""
        from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest
        from temporalio.service import RPCError, RPCStatusCode

        name = self.settings and self.settings.worker_deployment_name
        if not name:
            return None
        request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
        try:
            known = await _asked(client.workflow_service.describe_worker_deployment, request)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return wrong(
                f"No worker of the deployment {name} has asked for work; start one with WORKER_DEPLOYMENT_NAME={name}."
            )
        if known.worker_deployment_info.routing_config.current_deployment_version.build_id:
            return None
        return wrong(
            f"The deployment {name} has no current build, so nobody is given new workflows; run `temporal worker "
            f"deployment set-current-version --namespace {client.namespace} --deployment-name {name} --build-id` with one."
        )

    async def check_sweeps(self) -> Finding:
        return await self._of_work(examine_sweeps)

    async def check_publications(self) -> Finding:
        return await self._of_work(examine_publications)

    async def check_conducts(self) -> Finding:
        """Which conducts are stuck the record tells alone; the engine, where it answers, says why."""
        connection = await self._database()
        try:
            return await _answered(examine_conducts(connection, await self._temporal()))
        except UnreachableError as unreachable:
            if unreachable.server != "temporal":
                raise
            return await examine_conducts(connection, None)

    async def check_schedules(self) -> Finding:
        return await self._of_work(partial(examine_schedules, settings=self.settings))

    async def _of_work(self, examine: "Callable[[Connection, Client], Coroutine[Any, Any, Finding]]") -> Finding:
        return await _answered(examine(await self._database(), await self._temporal()))

    async def check_reactions(self) -> Finding:
        from cli.reacting import examine_reactions

        return await _answered(examine_reactions(await self._database()))

    async def check_monitors(self) -> Finding:
        """Whether somebody observes what is configured, and when each enclosure was last heard of."""
        from infrastructure.postgres.leadership import MONITOR_LOCK, is_led

        connection = await self._database()
        if self.settings is None:
            return warning("Not looked at, because the settings cannot be read; mend that first.")
        enclosures, supplies = self.settings.monitored_enclosures, self.settings.monitored_supplies
        if not enclosures and not supplies:
            return ok("No enclosure and no supply is configured to be monitored.")
        what = f"{len(enclosures)} enclosures and {len(supplies)} supplies"
        if not await is_led(connection, MONITOR_LOCK):
            return wrong(f"Nobody monitors the {what} that are configured; start `baton worker`, or `baton up`.")
        ages = await self._contact_ages(connection, self.settings)
        told = ", ".join(f"{name} {'never' if age is None else f'{age:.0f} s ago'}" for name, age in ages.items())
        limit = self.settings.enclosure_observation_ttl_seconds
        if any(age is None or age > limit for age in ages.values()):
            return wrong(
                f"{what} are monitored, but not every permit was observed within {limit} s (last: {told}); see that the "
                "control system serves their signals, and read the worker's log."
            )
        return ok(f"{what} are monitored" + (f" (permits last observed: {told})." if told else "."))

    async def _contact_ages(self, connection: Connection, settings: Settings) -> dict[str, float | None]:
        """The seconds since each configured enclosure was last observed."""
        from domain.enclosure.enclosure import NAMES, RegisterEnclosure, name_key

        keys = {
            name_key(RegisterEnclosure(name=name, facility_code=settings.self_facility_code)): name
            for name in settings.monitored_enclosures
        }
        found = await connection.execute(
            "SELECT key, extract(epoch FROM clock_timestamp() - contacted_at)::float FROM claims "
            "LEFT JOIN enclosure_contact ON enclosure_id = holder_id WHERE kind = %s AND key = ANY(%s)",
            (NAMES, list(keys)),
        )
        return dict.fromkeys(keys.values()) | {keys[key]: age for key, age in await found.fetchall()}

    def _database_url(self) -> str:
        configured = self.settings.database_url if self.settings else os.environ.get("DATABASE_URL")
        url = configured or noted_place(self._data_dir, "database_url")
        if not url:
            raise UnreachableError(
                "database",
                f"DATABASE_URL is not set and no stack runs on {self._data_dir}; set it, or start one with `baton up`.",
            )
        return url

    async def _database(self) -> Connection:
        if self._connection is None:
            url = self._database_url()
            try:
                self._connection = await psycopg.AsyncConnection.connect(
                    url, autocommit=True, options=OWNER_OPTIONS, connect_timeout=PATIENCE
                )
            except psycopg.Error as error:
                raise UnreachableError(
                    "database", f"The database does not answer: {one_line(error)}. Start it, or correct DATABASE_URL."
                ) from error
            await self._open.enter_async_context(self._connection)
        return self._connection

    def _temporal_address(self) -> str:
        configured = self.settings.temporal_address if self.settings else os.environ.get("TEMPORAL_ADDRESS")
        address = configured or noted_place(self._data_dir, "temporal_address")
        if not address:
            raise UnreachableError(
                "temporal",
                f"TEMPORAL_ADDRESS is not set and no stack runs on {self._data_dir}; set it, or start one with `baton up`.",
            )
        return address

    async def _temporal(self) -> "Client":
        from temporalio.client import Client

        if self._client is None:
            address = self._temporal_address()
            namespace = self.settings.temporal_namespace if self.settings else "default"
            try:
                async with asyncio.timeout(PATIENCE):
                    self._client = await Client.connect(address, namespace=namespace)
            except (RuntimeError, TimeoutError) as error:
                raise UnreachableError(
                    "temporal", f"Temporal does not answer at {address}; start it, or correct TEMPORAL_ADDRESS."
                ) from error
        return self._client


async def _row(connection: Connection, query: str, *values: Any) -> tuple[Any, ...]:
    row = await (await connection.execute(query, values or None)).fetchone()
    assert row is not None, "these queries answer with one row"
    return row


async def _asked(ask: Callable[..., Awaitable[Any]], request: object) -> Any:
    return await _answered(ask(request, timeout=timedelta(seconds=PATIENCE)))


async def _answered(asking: Awaitable[T]) -> T:
    """What Temporal answers; raises UnreachableError where it has stopped to."""
    from temporalio.service import RPCError, RPCStatusCode

    try:
        return await asking
    except RPCError as error:
        if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED):
            raise UnreachableError("temporal", f"Temporal stopped answering ({error}); look again.") from error
        raise


CHECKS: dict[str, Callable[[Doctor], Awaitable[Finding]]] = {
    "settings": Doctor.check_settings,
    "database": Doctor.check_database,
    "migrations": Doctor.check_migrations,
    "rights": Doctor.check_rights,
    "projections": Doctor.check_projections,
    "temporal": Doctor.check_temporal,
    "namespace": Doctor.check_namespace,
    "attributes": Doctor.check_attributes,
    "workers": Doctor.check_workers,
    "sweeps": Doctor.check_sweeps,
    "publications": Doctor.check_publications,
    "conducts": Doctor.check_conducts,
    "reactions": Doctor.check_reactions,
    "schedules": Doctor.check_schedules,
    "monitors": Doctor.check_monitors,
}
