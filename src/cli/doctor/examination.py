"""The examination: one check after the other, each on the servers that it needs."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psycopg
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console
from rich.markup import escape

from baton.application.boot_guards import boot_objections, bootstrap_objections, idle_agents
from baton.application.settings import RecordedSettings, Settings, shown_settings
from baton.cli.doctor.configuration import examine_actuation, examine_minter
from baton.cli.doctor.findings import Finding, Verdict, ok, warning, wrong
from baton.cli.doctor.schedules import examine_schedules
from baton.cli.doctor.unfinished_work import examine_conducts, examine_publications, examine_sweeps
from baton.cli.processes import one_line
from baton.cli.stack_address import noted_place, noted_settings
from baton.cli.startup_errors import refuse, unreadable
from baton.infrastructure.postgres.pool import OWNER_OPTIONS, Connection

if TYPE_CHECKING:
    from temporalio.client import Client

T = TypeVar("T")

PATIENCE = 5
"""Seconds any server has to answer."""
UNREADABLE = warning("Not looked at, because the settings cannot be read; mend that first.")
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
    """Asks the servers of the stack on a data directory, under its settings, or those that the environment names."""

    def __init__(self, data_dir: Path) -> None:
        self.settings: Settings | None = None
        self._unreadable: list[str] = []
        self._differing: list[str] = []
        """The variables that are set here otherwise than for the stack."""
        try:
            self.settings = Settings()
        except (SettingsError, ValidationError) as error:
            self._unreadable = unreadable(error)
        self._data_dir = data_dir
        if (noted := noted_settings(data_dir)) is not None:
            with suppress(ValidationError):  # that of another release
                self._take_settings(RecordedSettings.of(noted))
        self._open = AsyncExitStack()
        self._connection: Connection | None = None
        self._client: Client | None = None

    def _take_settings(self, recorded: Settings) -> None:
        """Look at the stack under its own settings, and see where those of this shell differ."""
        if self.settings is not None:
            here, there = shown_settings(self.settings), shown_settings(recorded)
            chosen = sorted(name.upper() for name in self.settings.model_fields_set)
            self._differing = [name for name in chosen if here[name] != there[name]]
        self.settings, self._unreadable = recorded, []

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
        if self._differing:
            return warning(
                f"This shell sets {', '.join(self._differing)} otherwise than the stack on {self._data_dir}, whose settings "
                "these are; unset them here, or start the stack again with them."
            )
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
        from baton.cli.doctor.database import examine_database

        return await examine_database(await self._database())

    async def check_migrations(self) -> Finding:
        from baton.cli.doctor.database import examine_migrations

        await self._database()
        return examine_migrations(self._database_url())

    async def check_rights(self) -> Finding:
        from baton.cli.doctor.database import examine_rights

        return await examine_rights(await self._database())

    async def check_processes(self) -> Finding:
        from baton.cli.doctor.processes import examine_processes

        return await examine_processes(await self._database())

    async def check_projections(self) -> Finding:
        from baton.cli.doctor.database import examine_projections

        return await examine_projections(await self._database())

    async def check_temporal(self) -> Finding:
        from baton.cli.doctor.engine import examine_server

        return await _answered(examine_server(await self._temporal()))

    async def check_namespace(self) -> Finding:
        from baton.cli.doctor.engine import examine_namespace

        return await _answered(examine_namespace(await self._temporal()))

    async def check_attributes(self) -> Finding:
        from baton.cli.doctor.engine import examine_attributes

        return await _answered(examine_attributes(await self._temporal()))

    async def check_workers(self) -> Finding:
        from baton.cli.doctor.engine import examine_workers

        deployment_name = self.settings.worker_deployment_name if self.settings else None
        return await _answered(examine_workers(await self._temporal(), deployment_name))

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

    async def check_minter(self) -> Finding:
        return self._of_settings(examine_minter)

    async def check_actuation(self) -> Finding:
        return self._of_settings(examine_actuation)

    def _of_settings(self, examine: Callable[[Settings], Finding]) -> Finding:
        return UNREADABLE if self.settings is None else examine(self.settings)

    async def check_reactions(self) -> Finding:
        from baton.cli.doctor.reactions import examine_reactions

        return await examine_reactions(await self._database())

    async def check_schedules(self) -> Finding:
        return await self._of_work(partial(examine_schedules, settings=self.settings))

    async def _of_work(self, examine: "Callable[[Connection, Client], Awaitable[Finding]]") -> Finding:
        return await _answered(examine(await self._database(), await self._temporal()))

    async def check_monitors(self) -> Finding:
        from baton.cli.doctor.monitors import examine_monitors

        connection = await self._database()
        if self.settings is None:
            return UNREADABLE
        return await examine_monitors(connection, self.settings)

    def _database_url(self) -> str:
        return self._place("database", "database_url")

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

    async def _temporal(self) -> "Client":
        from temporalio.client import Client

        from baton.infrastructure.temporal.engine import connection_options

        if self._client is None:
            address = self._place("temporal", "temporal_address")
            options = {} if self.settings is None else connection_options(self.settings)
            try:
                async with asyncio.timeout(PATIENCE):
                    self._client = await Client.connect(address, **options)
            except (RuntimeError, TimeoutError) as error:
                raise UnreachableError(
                    "temporal", f"Temporal does not answer at {address}; start it, or correct TEMPORAL_ADDRESS."
                ) from error
        return self._client

    def _place(self, server: str, setting: str) -> str:
        """Where a server is: as the stack that runs on the data directory has noted it, or as set."""
        variable = setting.upper()
        configured: str | None = getattr(self.settings, setting) if self.settings else os.environ.get(variable)
        place = noted_place(self._data_dir, setting) or configured
        if not place:
            raise UnreachableError(
                server, f"{variable} is not set and no stack runs on {self._data_dir}; set it, or start one with `baton up`."
            )
        return place


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
    "processes": Doctor.check_processes,
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
    "minter": Doctor.check_minter,
    "actuation": Doctor.check_actuation,
}
