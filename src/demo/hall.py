"""The experiment hall: the beamline's EPICS server and the service as children of ours, and what people do by hand there."""

import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from cli.embedded.process import Premises, StartError, available_ports, wait_until
from cli.keeping import Piece
from cli.places import noted_place
from demo.identity import IdentityProvider
from demo.staffing import ADMINISTRATOR

LOOPBACK = "127.0.0.1"
PATIENCE = 120.0
"""Seconds in which everything must be up."""
ADMINISTRATOR_ID = "019a0d00-0000-7000-8000-000000000001"
"""Who may do everything at first, and hands the permissions out."""
FACILITY, HUTCH, RING = "lumen", "Imaging hutch B", "Storage ring"
SIMULATED = {"substrate": "epics_ca", "simulated": True}
SETTINGS: dict[str, Any] = {
    "AUTHORIZATION_MODE": "policy",
    "REQUIRE_AUTHENTICATED_PRINCIPAL": "true",
    "BOOTSTRAP_PRINCIPAL_ID": ADMINISTRATOR_ID,
    "SELF_FACILITY_CODE": FACILITY,
    "CONTROL_ROUTES": [
        {"prefix": "bl7:", **SIMULATED},
        {"prefix": "SR:", "read_only": True, **SIMULATED},
        {"prefix": "PSS:", "read_only": True, **SIMULATED},
    ],
    "MONITORED_ENCLOSURES": {HUTCH: "PSS:B:PERMIT"},
    "MONITORED_SUPPLIES": [
        {
            "name": RING,
            "kind": "photon_beam",
            "signal": "SR:CURRENT",
            "readings": [{"status": "Unavailable", "below": 10}, {"status": "Recovering", "above": 50}],
        }
    ],
    "RUN_SUPERVISOR_ENABLED": "true",
    "CLEARANCE_EXPIRER_TICK_SECONDS": "5",
    "COMPUTE_SUBSTRATE": "local_process",
}


class Hall:
    """Everything that runs, in a directory that is emptied first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.data, self.pictures = self.directory / "data", self.directory / "pictures"
        self.slice = self.data / "slice.h5"
        self._service = self.directory / "baton"
        self._premises = Premises(self.directory, "The demonstration")
        self._beamline = Piece("beamline", ["-m", "demo.ioc", str(self.data)], self.directory, self._epics)
        ports = ("--port=0", "--temporal-port=0", "--temporal-ui-port=0")
        up = ["-m", "cli", "up", f"--data-dir={self._service}", *ports]
        self._up = Piece("service", up, self.directory, self._settings)
        self._port = 0
        self.provider = IdentityProvider()

    def open(self) -> None:
        """Bring the beamline up, then the service."""
        self._premises.take(())
        for left in (self.data, self.pictures, self._service, self.directory / "jobs", self.directory / "logbook"):
            shutil.rmtree(left, ignore_errors=True)
        self.data.mkdir()
        server, repeater = available_ports(LOOPBACK, {"Channel Access": 0, "its repeater": 0})
        self._port = server
        os.environ |= {
            "EPICS_CA_ADDR_LIST": f"{LOOPBACK}:{server}",
            "EPICS_CA_AUTO_ADDR_LIST": "NO",
            "EPICS_CA_REPEATER_PORT": str(repeater),
        }
        self._beamline.start()
        self._up.start()
        up = lambda: "ready in" in self._said() or not self._up.running or not self._beamline.running  # noqa: E731
        if not wait_until(up, PATIENCE):
            raise StartError(f"The service was not ready within {PATIENCE:.0f} s; see {self._up.log}.")
        for piece in (self._beamline, self._up):
            if not piece.running:
                raise piece.objection()

    def close(self) -> None:
        """Take everything down again."""
        for piece in (self._up, self._beamline):
            piece.stop()
        self.provider.close()
        self._premises.leave()

    @property
    def url(self) -> str:
        return noted_place(self._service, "url") or ""

    @property
    def links(self) -> list[str]:
        """Where to look, as the service prints it."""
        lines = self._said().splitlines()
        return lines[next(number for number, line in enumerate(lines) if "ready in" in line) + 1 :][:5]

    def search_the_hutch(self) -> None:
        self._press("PSS:B:SEARCH", 1)

    def dump_the_beam(self) -> None:
        self._press("SR:BEAM", 1)

    def refill_the_ring(self) -> None:
        self._press("SR:BEAM", 0)

    def kill_the_worker(self) -> float:
        """End the worker as a crash would, with no time for last words; answers when."""
        os.kill(int((self._service / "worker" / "server.lock").read_text().split()[0]), signal.SIGKILL)
        return monotonic()

    def _press(self, signal: str, value: int) -> None:
        """Do something at the beamline or in the ring's control room: over Channel Access, beside the service."""
        from caproto.sync.client import write

        write(signal, value, notify=True, timeout=5, repeater=False)

    def _said(self) -> str:
        return self._up.log.read_text() if self._up.log.exists() else ""

    def _epics(self) -> Mapping[str, str]:
        return {
            "EPICS_CA_SERVER_PORT": str(self._port),
            "EPICS_CAS_BEACON_ADDR_LIST": LOOPBACK,
            "EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO",
            "EPICS_CAS_BEACON_PORT": os.environ["EPICS_CA_REPEATER_PORT"],
        }

    def _settings(self) -> Mapping[str, str]:
        places = {
            "COMPUTE_JOB_DIRECTORY": str(self.directory / "jobs"),
            "LOGBOOK_MIRROR_DIRECTORY": str(self.directory / "logbook"),
        }
        told = {name: value if isinstance(value, str) else json.dumps(value) for name, value in SETTINGS.items()}
        provider = self.provider.configured(**{ADMINISTRATOR: ADMINISTRATOR_ID})
        return {**told, **places, "IDENTITY_PROVIDERS": json.dumps([provider])}
