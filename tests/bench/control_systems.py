"""An IOC of EPICS base to conduct on, and the worker and the settings of each library that reaches it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.bench.conducts import WORKER
from tests.support.infrastructure.epics_servers import SoftIoc, free_ports

WITHOUT_AIOCA = "import runpy, sys; sys.modules['aioca'] = None; runpy.run_module('baton.cli', run_name='__main__')"


class ControlSystem(NamedTuple):
    name: str
    worker: list[str]
    settings: dict[str, str]
    signal: str


@contextmanager
def running_ioc() -> Iterator[list[ControlSystem]]:
    """An IOC on loopback, and how it is reached; the plant in memory comes first, to compare with."""
    port, repeater = free_ports(2)
    os.environ |= {
        "EPICS_CA_ADDR_LIST": f"127.0.0.1:{port}",
        "EPICS_CA_AUTO_ADDR_LIST": "NO",
        "EPICS_CA_REPEATER_PORT": str(repeater),
    }
    with SoftIoc(port) as ioc:
        over_ca, over_pva = (
            {"CONTROL_ROUTES": json.dumps([{"prefix": "ioc:", "substrate": substrate}]), **ioc.pv_access}
            for substrate in ("epics_ca", "epics_pva")
        )
        yield [
            ControlSystem("the plant in memory", WORKER, {}, "a"),
            ControlSystem("Channel Access, aioca", WORKER, over_ca, "ioc:count"),
            ControlSystem("PV Access, p4p", WORKER, over_pva, "ioc:count"),
            ControlSystem("Channel Access, caproto", [sys.executable, "-c", WITHOUT_AIOCA, "worker"], over_ca, "ioc:count"),
        ]
