"""EPICS servers as children of a test: started on free ports of loopback, told what to serve, and killed."""

import os
import socket
from typing import NamedTuple, Self

from tests.support.infrastructure.scripted_server import ScriptedServer


class EpicsServer(ScriptedServer):
    """A server of EPICS signals."""


class ChannelAccessPorts(NamedTuple):
    """The port of a server for all tests, of one that comes and goes, and of an IOC of EPICS base."""

    lasting: int
    fleeting: int
    ioc: int


def channel_access_on_loopback(port: int) -> dict[str, str]:
    """Return the variables of a server that is searched for at this port."""
    return {
        "EPICS_CA_SERVER_PORT": str(port),
        "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1",
        "EPICS_CAS_BEACON_ADDR_LIST": "127.0.0.1",
        "EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO",
        "EPICS_CAS_BEACON_PORT": os.environ["EPICS_CA_REPEATER_PORT"],
    }


def channel_access_server(port: int) -> EpicsServer:
    """A Channel Access server that is searched for at this port."""
    return EpicsServer("ca_server", channel_access_on_loopback(port))


class SoftIoc:
    """An IOC of EPICS base with the records of `soft_ioc.db`, which is killed and started again at the same ports."""

    def __init__(self, channel_access_port: int) -> None:
        (port,) = free_ports(1)
        self.pv_access = {
            "EPICS_PVA_ADDR_LIST": "127.0.0.1",
            "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVA_BROADCAST_PORT": str(port),
        }
        """The variables of its PV Access clients."""
        self._environment = {
            **channel_access_on_loopback(channel_access_port),
            "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
            "EPICS_PVAS_SERVER_PORT": "0",
            "EPICS_PVAS_BROADCAST_PORT": str(port),
            "EPICS_PVAS_BEACON_ADDR_LIST": "127.0.0.1",
            "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO",
            "PVXS_QSRV_ENABLE": "YES",
        }
        self.start()

    def start(self) -> None:
        self._server = EpicsServer("soft_ioc", self._environment)

    def kill(self) -> None:
        self._server.kill()

    def restart(self) -> None:
        self.kill()
        self.start()

    def put(self, address: str, value: object) -> None:
        """Put a value at the IOC's own shell."""
        assert self._server.tell("put", address=address, value=value) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has, over UDP."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
