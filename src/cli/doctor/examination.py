"""The checks of `baton doctor` in their order, and the servers that they ask."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import psycopg
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console
from rich.markup import escape
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from baton.application.boot_guards import boot_objections, bootstrap_objections, idle_agents
from baton.application.settings import PidMinter, RecordedSettings, Settings, shown_settings
from baton.cli.doctor import CheckResult, CheckStatus, bluesky, control, database, engine, ok, warning, wrong
from baton.cli.messages import refuse
from baton.cli.stack_note import read_note, stack_address
from baton.cli.startup import one_line, settings_faults
from baton.domain.step.results import Actuation, actuation_of
from baton.domain.trust.policy import NOT_ENFORCED
from baton.infrastructure.plugins import KINDS, PluginUnusableError, plugin_objections
from baton.infrastructure.postgres.pool import OWNER_OPTIONS, Connection
from baton.infrastructure.temporal.engine import connection_options

ANSWER_SECONDS = 5
STYLES = {CheckStatus.OK: "green", CheckStatus.WARNING: "yellow", CheckStatus.WRONG: "bold red"}
REACHES = {
    Actuation.INERT: "no route can be written to, so nothing is moved",
    Actuation.SIMULATED: "every route that can be written to is declared simulated",
    Actuation.REACHABLE: "a route to real equipment can be written to; whether it answers is not asked here",
}


class UnreachableError(Exception):
    """A server that a check needs does not answer; the message says which and why."""

    def __init__(self, server: str, sentence: str) -> None:
        super().__init__(sentence)
        self.server = server


def examine(only: str | None, data_dir: Path, *, as_json: bool = False) -> int:
    """Print the result of every check, or of one, as lines or as JSON; return the exit code."""
    if only is not None and only not in CHECKS:
        refuse(f"There is no check {only}; there are {', '.join(CHECKS)}.")
    results = asyncio.run(_examine([only] if only else list(CHECKS), data_dir, quiet=as_json))
    if as_json:
        checks = {name: {"status": one.status.value, "sentence": one.sentence} for name, one in results.items()}
        print(json.dumps(checks, indent=2, ensure_ascii=False))
    return 1 if CheckStatus.WRONG in (one.status for one in results.values()) else 0


async def _examine(names: list[str], data_dir: Path, *, quiet: bool) -> dict[str, CheckResult]:
    console = Console(highlight=False, soft_wrap=True, emoji=False, quiet=quiet)
    results: dict[str, CheckResult] = {}
    async with aclosing(Doctor(data_dir)) as doctor:
        for name in names:
            results[name] = result = await doctor.check(name)
            console.print(f"[{STYLES[result.status]}]{result.status:<8}[/] {name:<12} {escape(result.sentence)}")
            if name == "settings" and doctor.settings is not None:
                for variable, value in shown_settings(doctor.settings).items():
                    console.print(f"[dim]{'':21} {variable} {escape('unset' if value is None else str(value))}[/]")
    return results


class Doctor:
    """Checks the stack on a data directory under its own settings, or the servers that the environment names; without a
    data directory, those of the settings it is given."""

    def __init__(self, data_dir: Path | None, settings: Settings | None = None) -> None:
        self.settings = settings
        self._faults: list[str] = []
        self._differing: list[str] = []  # the variables that this shell sets otherwise than the stack
        self._data_dir = data_dir
        self._connection: Connection | None = None
        self._client: Client | None = None
        if data_dir is not None:
            self._find_settings(data_dir)

    def _find_settings(self, data_dir: Path) -> None:
        """Read the settings of the environment, and take those of the stack on the data directory where one runs."""
        try:
            self.settings = Settings()
        except (SettingsError, ValidationError) as error:
            self._faults = settings_faults(error)
        if isinstance(recorded := read_note(data_dir).get("settings"), dict):
            with suppress(ValidationError):  # recorded by another release
                there = RecordedSettings.of(recorded)
                if self.settings is not None:
                    here, shown = shown_settings(self.settings), shown_settings(there)
                    chosen = sorted(name.upper() for name in self.settings.model_fields_set)
                    self._differing = [name for name in chosen if here[name] != shown[name]]
                self.settings = there
                self._faults = []

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def check(self, name: str) -> CheckResult:
        """Return the result of one check; a fault that another check reports is not repeated."""
        try:
            return await CHECKS[name](self)
        except UnreachableError as unreachable:
            if unreachable.server == name:
                return wrong(str(unreachable))
            return warning(f"Not looked at, because {unreachable.server} does not answer; mend that first.")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject):
            return warning("Not looked at, because migrations are missing; mend that first.")
        except RPCError as error:
            if error.status not in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED):
                raise
            if name == "temporal":
                return wrong(f"Temporal stopped answering ({error}); look again.")
            return warning("Not looked at, because temporal does not answer; mend that first.")

    async def check_settings(self) -> CheckResult:
        if self.settings is None:
            return wrong(" ".join(self._faults))
        if objections := boot_objections(self.settings) or await self._bootstrap_objections(self.settings):
            return wrong(" ".join(objections))
        if self._differing:
            stack = f"the stack on {self._data_dir}, whose settings these are"
            remedy = "unset them here, or start the stack again with them"
            return warning(f"This shell sets {', '.join(self._differing)} otherwise than {stack}; {remedy}.")
        doubts = [*misspelt_settings(os.environ), *missing_directories(self.settings), *idle_agents(self.settings)]
        if doubts:
            return warning(" ".join(doubts))
        return ok(f"No process objects to these settings (APP_ENV={self.settings.app_env}).")

    async def _bootstrap_objections(self, settings: Settings) -> list[str]:
        try:
            connection = await self.database()
            rows = await (await connection.execute("SELECT actor_id FROM access_subject_binding")).fetchall()
        except (UnreachableError, psycopg.errors.UndefinedTable):
            return []
        return bootstrap_objections(settings, [row[0] for row in rows])

    async def check_migrations(self) -> CheckResult:
        await self.database()
        return database.examine_migrations(self._address("database", "database_url"))

    async def check_conducts(self) -> CheckResult:
        """The record alone tells which conducts are stuck; the engine, where it answers, adds why."""
        connection = await self.database()
        try:
            return await engine.examine_conducts(connection, await self.temporal())
        except (UnreachableError, RPCError):
            return await engine.examine_conducts(connection, None)

    async def check_monitors(self) -> CheckResult:
        connection = await self.database()
        return UNREADABLE if self.settings is None else await database.examine_monitors(connection, self.settings)

    async def check_catalogues(self) -> CheckResult:
        connection = await self.database()
        return UNREADABLE if self.settings is None else await database.examine_catalogues(connection, self.settings)

    async def check_control(self) -> CheckResult:
        connection = await self.database()
        return UNREADABLE if self.settings is None else await control.examine_control(connection, self.settings)

    async def check_bluesky(self) -> CheckResult:
        connection = await self.database()
        return UNREADABLE if self.settings is None else await bluesky.examine_bluesky(connection, self.settings)

    async def ask_database(self, examine: Callable[[Connection], Awaitable[CheckResult]]) -> CheckResult:
        return await examine(await self.database())

    async def ask_temporal(self, examine: Callable[[Client], Awaitable[CheckResult]]) -> CheckResult:
        return await examine(await self.temporal())

    async def check_schedules(self) -> CheckResult:
        return await engine.examine_schedules(await self.database(), await self.temporal(), self.settings)

    async def check_work(self, what: str, workflow: str, query: str) -> CheckResult:
        return await engine.examine_work(await self.database(), await self.temporal(), what, workflow, query)

    async def ask_settings(self, examine: Callable[[Settings], CheckResult]) -> CheckResult:
        return UNREADABLE if self.settings is None else examine(self.settings)

    async def database(self) -> Connection:
        """Return the connection to the database, opened on first use."""
        if self._connection is None:
            url = self._address("database", "database_url")
            try:
                self._connection = await psycopg.AsyncConnection.connect(
                    url, autocommit=True, options=OWNER_OPTIONS, connect_timeout=ANSWER_SECONDS
                )
            except psycopg.Error as error:
                sentence = f"The database does not answer: {one_line(error)}. Start it, or correct DATABASE_URL."
                raise UnreachableError("database", sentence) from error
        return self._connection

    async def temporal(self) -> Client:
        """Return the client of Temporal, connected on first use."""
        if self._client is None:
            address = self._address("temporal", "temporal_address")
            options = {} if self.settings is None else connection_options(self.settings)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    self._client = await Client.connect(address, **options)
            except (RuntimeError, TimeoutError) as error:
                sentence = f"Temporal does not answer at {address}; start it, or correct TEMPORAL_ADDRESS."
                raise UnreachableError("temporal", sentence) from error
        return self._client

    def _address(self, server: str, setting: str) -> str:
        """Return the address of a server: that of the stack on the data directory, or the one that is set."""
        variable = setting.upper()
        configured: str | None = getattr(self.settings, setting) if self.settings else os.environ.get(variable)
        address = (None if self._data_dir is None else stack_address(self._data_dir, setting)) or configured
        if not address:
            sentence = f"{variable} is not set and no stack runs on {self._data_dir}; set it, or start one with `baton up`."
            raise UnreachableError(server, sentence)
        return address


def misspelt_settings(environment: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each variable that nobody reads and that is spelt nearly as a setting is."""
    known = [name.upper() for name in Settings.model_fields]
    for name in sorted(set(environment) - set(known)):
        if like := get_close_matches(name, known, n=1, cutoff=0.9):
            yield f"{name} is no setting, and nobody reads it; did you mean {like[0]}?"


def missing_directories(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each directory of the settings that is not on this machine, where nothing makes it."""
    named = {"tiled_directory": (settings.tiled_directory,), "signing_key_directory": (settings.signing_key_directory,)}
    for name, paths in {**named, "data_roots": settings.data_roots}.items():
        for path in paths:
            if path is not None and not path.is_dir():
                yield f"{name.upper()} names {path}, which is no directory on this machine; make it, or correct the setting."


def examine_minter(settings: Settings) -> CheckResult:
    """Tell who issues persistent identifiers."""
    place = f"{settings.datacite_prefix} at {settings.datacite_address}"
    issuers: dict[str, str] = {
        PidMinter.NONE: "persistent identifiers are not minted, and requests for one are refused",
        PidMinter.DEVELOPMENT: "identifiers are made up under prefixes for testing",
        PidMinter.DATACITE: f"DOIs are registered under {place}",
    }
    issuer = issuers.get(settings.pid_minter, "identifiers are issued by the minter of an installed package")
    return ok(f"PID_MINTER={settings.pid_minter}: {issuer}.")


async def check_plugins(doctor: Doctor) -> CheckResult:
    """List what installed packages offer, each loaded once, and name what cannot be used."""
    faults = [] if doctor.settings is None else plugin_objections(doctor.settings)
    listed = []
    for kind in KINDS:
        with suppress(PluginUnusableError):  # a name that is offered twice is among the objections
            for name, point in kind.offers().items():
                package = "" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
                listed.append(f"{kind.noun} {name}{package}")
                try:
                    kind.load(point)
                except PluginUnusableError as error:
                    faults.append(str(error))
    if faults:
        return wrong(" ".join(faults))
    return ok(f"Installed packages offer {'; '.join(listed)}." if listed else "No installed package offers a plugin.")


def examine_actuation(settings: Settings) -> CheckResult:
    """Tell what writes can reach."""
    actuation = actuation_of(settings.control_routes, settings.control_writes_enabled)
    return ok(f"Actuation is {actuation.value}: {REACHES[actuation]}.")


def examine_policies(settings: Settings) -> CheckResult:
    """Tell whether policies are enforced."""
    return ok("Policies are enforced: a call needs one that permits it." if settings.enforced else NOT_ENFORCED)


UNREADABLE = warning("Not looked at, because the settings cannot be read; mend that first.")
UNFINISHED_SWEEPS = "SELECT sweep_id FROM equipment_mint_sweep WHERE status = 'Running'"
UNFINISHED_PUBLICATIONS = "SELECT receipt_id FROM calibration_publication WHERE status IN ('Running', 'Sending')"
CHECKS: dict[str, Callable[[Doctor], Awaitable[CheckResult]]] = {
    "settings": Doctor.check_settings,
    "database": lambda doctor: doctor.ask_database(database.examine_database),
    "migrations": Doctor.check_migrations,
    "rights": lambda doctor: doctor.ask_database(database.examine_rights),
    "processes": lambda doctor: doctor.ask_database(database.examine_processes),
    "projections": lambda doctor: doctor.ask_database(database.examine_projections),
    "temporal": lambda doctor: doctor.ask_temporal(engine.examine_server),
    "namespace": lambda doctor: doctor.ask_temporal(engine.examine_namespace),
    "attributes": lambda doctor: doctor.ask_temporal(engine.examine_attributes),
    "workers": lambda doctor: doctor.ask_temporal(partial(engine.examine_workers, settings=doctor.settings)),
    "sweeps": lambda doctor: doctor.check_work("mint sweeps", "mint-sweep", UNFINISHED_SWEEPS),
    "publications": lambda doctor: doctor.check_work("publications", "calibration-publication", UNFINISHED_PUBLICATIONS),
    "conducts": Doctor.check_conducts,
    "reactions": lambda doctor: doctor.ask_database(database.examine_reactions),
    "schedules": Doctor.check_schedules,
    "monitors": Doctor.check_monitors,
    "signals": lambda doctor: doctor.ask_database(database.examine_signals),
    "catalogues": Doctor.check_catalogues,
    "control": Doctor.check_control,
    "bluesky": Doctor.check_bluesky,
    "minter": lambda doctor: doctor.ask_settings(examine_minter),
    "actuation": lambda doctor: doctor.ask_settings(examine_actuation),
    "policies": lambda doctor: doctor.ask_settings(examine_policies),
    "plugins": check_plugins,
}
