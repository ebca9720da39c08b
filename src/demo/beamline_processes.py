"""The processes of the demonstration: the beamline's EPICS server and the service, and what people do by hand there."""

import json
import os
import shlex
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.application.settings import Settings
from baton.cli.child_processes import ServiceProcess
from baton.cli.embedded.process import Escalation, OwnedDirectory, StartError, available_ports, wait_until, write_private
from baton.cli.stack_note import stack_address
from baton.demo.beamline_records import PROGRAM
from baton.demo.identity_provider import LOOPBACK, DemoIdentityProvider
from baton.demo.staff import ADMINISTRATOR, BEAMLINE

START_SECONDS = 120.0
STOPPING: Escalation = ((signal.SIGTERM, 150.0), (signal.SIGKILL, 5.0))  # `baton up` stops several servers
SETTINGS: dict[str, Any] = BEAMLINE["settings"] | {"COMPUTE_PROGRAMS": [PROGRAM]}
ADMINISTRATOR_ID: str = SETTINGS["BOOTSTRAP_PRINCIPAL_ID"]  # may do everything at first


class StackProcess(ServiceProcess):
    stopping = STOPPING


class BeamlineProcesses:
    """Everything that runs, in a directory that is emptied first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.data = self.directory / "data"
        self.pictures = self.directory / "pictures"
        self._stack_directory = self.directory / "baton"
        self._owned = OwnedDirectory(self.directory, "The demonstration")
        self._beamline = ServiceProcess("beamline", ["-m", "baton.demo.ioc", str(self.data)], self.directory, self._epics)
        ports = ("--port=0", "--temporal-port=0", "--temporal-ui-port=0")
        up = ["-m", "baton.cli", "up", f"--data-dir={self._stack_directory}", *ports]
        self._stack = StackProcess("service", up, self.directory, self._settings)
        self._port = 0
        self.provider = DemoIdentityProvider()

    def start(self) -> None:
        self._prepare_directory()
        self._port, repeater = available_ports(LOOPBACK, {"Channel Access": 0, "its repeater": 0})
        for name in list(os.environ):  # no server of a real facility is touched
            if name.lower() in Settings.model_fields or name.startswith("EPICS_"):
                del os.environ[name]
        os.environ |= {
            "EPICS_CA_ADDR_LIST": f"{LOOPBACK}:{self._port}",
            "EPICS_CA_AUTO_ADDR_LIST": "NO",
            "EPICS_CA_REPEATER_PORT": str(repeater),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), LOOPBACK),
        }
        processes = (self._beamline, self._stack)
        for process in processes:
            process.start()
        if not wait_until(lambda: "ready in" in self._output() or not all(one.running for one in processes), START_SECONDS):
            raise StartError(f"The service was not ready within {START_SECONDS:.0f} s; see {self._stack.log}.")
        for process in processes:
            if not process.running:
                raise process.start_failure()

    def _prepare_directory(self) -> None:
        marker = self.directory / "demonstration"
        if self.directory.is_dir() and any(self.directory.iterdir()) and not marker.exists():
            raise StartError(f"{self.directory} holds something other than a demonstration; choose another directory.")
        self._owned.acquire(())
        marker.touch()
        own = [self.directory / name for name in ("beamline", "service")]
        for place in (*own, *(lock.parent for lock in self._stack_directory.rglob("server.lock"))):  # own ones stop theirs
            if place.exists():
                leftover = OwnedDirectory(place, f"The {place.name} of an earlier demonstration")
                leftover.acquire(STOPPING)
                leftover.release()
        for path in self.directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        self.data.mkdir()

    def stop(self) -> None:
        for process in (self._stack, self._beamline):
            process.stop()
        self.provider.close()
        self._owned.release()

    @property
    def url(self) -> str:
        return stack_address(self._stack_directory, "url") or ""

    @property
    def links(self) -> list[str]:
        lines = self._output().splitlines()
        links = lines[next(number for number, line in enumerate(lines) if "ready in" in line) + 1 :][:6]
        return [*links, f"  Pictures     {self.pictures}"]

    def example_command(self, token: str) -> str:
        """Return a command to try with a token, which is written to a file that nobody else can read."""
        path = self.directory / "token"
        write_private(path, token)
        return f'curl -s -H "Authorization: Bearer $(cat {shlex.quote(str(path))})" {self.url}/runs'

    def put(self, address: str, value: int) -> None:
        """Write a signal of the beamline or the ring over Channel Access, past the service, as people do by hand."""
        from caproto.sync.client import write

        write(address, value, notify=True, timeout=5, repeater=False)

    @property
    def worker(self) -> int:
        return int((self._stack_directory / "worker" / "server.lock").read_text().split()[0])

    def _output(self) -> str:
        return self._stack.log_file.output()

    def _epics(self) -> Mapping[str, str]:
        return {
            "EPICS_CA_SERVER_PORT": str(self._port),
            "EPICS_CAS_BEACON_ADDR_LIST": LOOPBACK,
            "EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO",
            "EPICS_CAS_BEACON_PORT": os.environ["EPICS_CA_REPEATER_PORT"],
        }

    def _settings(self) -> Mapping[str, str]:
        settings = {
            **SETTINGS,
            "COMPUTE_JOB_DIRECTORY": str(self.directory / "jobs"),
            "DATA_ROOTS": [str(self.data)],
            "LOGBOOK_MIRROR_DIRECTORY": str(self.directory / "logbook"),
            "IDENTITY_PROVIDERS": [self.provider.as_setting(**{ADMINISTRATOR: ADMINISTRATOR_ID})],
        }
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
