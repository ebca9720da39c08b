"""The beamline in a process of its own, for the tests of a module."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.infrastructure.epics_servers import free_ports


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def ioc(data: Path) -> Iterator[None]:
    server, repeater = free_ports(2)
    served = {
        "EPICS_CA_SERVER_PORT": str(server),
        "EPICS_CAS_BEACON_ADDR_LIST": "127.0.0.1",
        "EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO",
        "EPICS_CAS_BEACON_PORT": str(repeater),
    }
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EPICS_CA_ADDR_LIST", f"127.0.0.1:{server}")
        environment.setenv("EPICS_CA_AUTO_ADDR_LIST", "NO")
        environment.setenv("EPICS_CA_REPEATER_PORT", str(repeater))
        process = subprocess.Popen(
            [sys.executable, "-m", "baton.demo.ioc", str(data)],
            env={**os.environ, **served, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.DEVNULL,
        )
        yield
        process.kill()
        process.wait()
