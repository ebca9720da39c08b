"""The experiment hall: the beamline's EPICS server and the service as children of ours, and what people do by hand there."""

import json
import os
import shlex
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.application.settings import Settings
from baton.cli.child_processes import Piece
from baton.cli.embedded.process import Escalation, Premises, StartError, available_ports, wait_until, write_private
from baton.cli.stack_address import noted_place
from baton.demo.identity import LOOPBACK, IdentityProvider
from baton.demo.permissions import ADMINISTRATOR
from baton.demo.recipes import PROGRAM

PATIENCE = 120.0
"""Seconds in which everything must be up."""
ADMINISTRATOR_ID = "019a0d00-0000-7000-8000-000000000001"
"""Who may do everything at first, and hands the permissions out."""
TAKEDOWN: Escalation = ((signal.SIGTERM, 150.0), (signal.SIGKILL, 5.0))
"""How long `baton up` may take: as long as all that it takes down may."""
MARK = "demonstration"
"""The file by which a directory is known to be ours to empty."""
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
    "COMPUTE_PROGRAMS": [PROGRAM],
}


class Service(Piece):
    """The whole service, which takes its own servers down one after the other."""

    stopping = TAKEDOWN


class Hall:
    """Everything that runs, in a directory that is emptied first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.data, self.pictures = self.directory / "data", self.directory / "pictures"
        self.slice = self.data / "slice.h5"
        self._service = self.directory / "baton"
        self._premises = Premises(self.directory, "The demonstration")
        self._beamline = Piece("beamline", ["-m", "baton.demo.ioc", str(self.data)], self.directory, self._epics)
        ports = ("--port=0", "--temporal-port=0", "--temporal-ui-port=0")
        up = ["-m", "baton.cli", "up", f"--data-dir={self._service}", *ports]
        self._up = Service("service", up, self.directory, self._settings)
        self._port = 0
        self.provider = IdentityProvider()

    def open(self) -> None:
        """Bring the beamline up, then the service."""
        self._take()
        self._port, repeater = available_ports(LOOPBACK, {"Channel Access": 0, "its repeater": 0})
        leave_out_the_world()
        os.environ |= {
            "EPICS_CA_ADDR_LIST": f"{LOOPBACK}:{self._port}",
            "EPICS_CA_AUTO_ADDR_LIST": "NO",
            "EPICS_CA_REPEATER_PORT": str(repeater),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), LOOPBACK),
        }
        pieces = (self._beamline, self._up)
        for piece in pieces:
            piece.start()
        if not wait_until(lambda: "ready in" in self._said() or not all(piece.running for piece in pieces), PATIENCE):
            raise StartError(f"The service was not ready within {PATIENCE:.0f} s; see {self._up.log}.")
        for piece in pieces:
            if not piece.running:
                raise piece.objection()

    def _take(self) -> None:
        """Take the directory, see out whoever an earlier night left there, and empty it; another's is left alone."""
        mark = self.directory / MARK
        if self.directory.is_dir() and any(self.directory.iterdir()) and not mark.exists():
            raise StartError(f"{self.directory} holds something other than a demonstration; choose another directory.")
        self._premises.take(())
        mark.touch()
        ours = [self.directory / name for name in ("beamline", "service")]
        for place in (*ours, *(lock.parent for lock in self._service.rglob("server.lock"))):  # ours end theirs
            if place.exists():
                left = Premises(place, f"The {place.name} of an earlier demonstration")
                left.take(TAKEDOWN)
                left.leave()
        for path in self.directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        self.data.mkdir()

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
        """Where to look, as the service prints it, and what was made."""
        lines = self._said().splitlines()
        said = lines[next(number for number, line in enumerate(lines) if "ready in" in line) + 1 :][:5]
        return [*said, f"  Pictures     {self.pictures}"]

    def trying(self, token: str) -> str:
        """A command that anybody can try with a token, which is left in a file that nobody else can read."""
        path = self.directory / "token"
        write_private(path, token)
        return f'curl -s -H "Authorization: Bearer $(cat {shlex.quote(str(path))})" {self.url}/runs'

    def search_the_hutch(self) -> None:
        self._press("PSS:B:SEARCH", 1)

    def dump_the_beam(self) -> None:
        self._press("SR:BEAM", 1)

    def refill_the_ring(self) -> None:
        self._press("SR:BEAM", 0)

    @property
    def worker(self) -> int:
        """The process that works now."""
        return int((self._service / "worker" / "server.lock").read_text().split()[0])

    def kill_the_worker(self) -> None:
        """End the worker as a crash would, with no time for last words."""
        os.kill(self.worker, signal.SIGKILL)

    def _press(self, button: str, value: int) -> None:
        """Do something at the beamline or in the ring's control room: over Channel Access, beside the service."""
        from caproto.sync.client import write

        write(button, value, notify=True, timeout=5, repeater=False)

    def _said(self) -> str:
        return self._up.log_file.said()

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


def leave_out_the_world() -> None:
    """Forget every server of a facility that the environment names: none of them is to be played with."""
    for name in list(os.environ):
        if name.lower() in Settings.model_fields or name.startswith("EPICS_"):
            del os.environ[name]
