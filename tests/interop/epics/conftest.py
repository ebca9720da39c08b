"""An IOC of EPICS base, and each adapter a facility runs, on it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from baton.application.control import Control
from baton.infrastructure.control.channel_access import ChannelAccess
from tests.infrastructure.control.conftest import CLIENTS, needs_aioca, needs_p4p
from tests.support.infrastructure.epics_servers import ChannelAccessPorts, SoftIoc

PATIENT = 60.0
"""Seconds to wait for an IOC to be found again; the compiled client searches ten seconds after the loss."""


@pytest.fixture(scope="module")
def soft_ioc(channel_access_ports: ChannelAccessPorts) -> Iterator[SoftIoc]:
    pytest.importorskip("pvxslibs", reason="the libraries of EPICS are not installed; `make interop-epics` does")
    with SoftIoc(channel_access_ports.ioc) as ioc:
        yield ioc


@pytest.fixture(params=[pytest.param("aioca", marks=needs_aioca), pytest.param("p4p", marks=needs_p4p), "caproto"])
def library(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def control(library: str, soft_ioc: SoftIoc) -> AsyncIterator[Control]:
    """Each adapter."""
    control = make_control(library, soft_ioc)
    yield control
    await control.close()


@pytest.fixture
async def observer(library: str, soft_ioc: SoftIoc) -> AsyncIterator[Control]:
    """The same signals over the other protocol."""
    observer = make_control("caproto" if library == "p4p" else "p4p", soft_ioc)
    yield observer
    await observer.close()


def make_control(library: str, ioc: SoftIoc) -> Control:
    if library == "p4p":
        from baton.infrastructure.control.pv_access import PvAccess

        return PvAccess(ioc.pv_access, read_timeout=PATIENT)
    return ChannelAccess(CLIENTS[library](), read_timeout=PATIENT)
