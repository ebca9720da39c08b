"""EPICS servers on loopback, one of each kind for all tests of a worker, and clients that find only them."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec

import pytest

from baton.infrastructure.control.channel_access import ChannelAccess, ChannelAccessClient
from tests.support.infrastructure.control_plants import (
    IMPATIENT,
    PATIENT,
    ServedPlant,
    WiredPlant,
    routed_plant,
    simulated_plant,
)
from tests.support.infrastructure.epics_servers import ChannelAccessPorts, EpicsServer, channel_access_server
from tests.support.infrastructure.ophyd_plants import ophyd_over_aioca, soft_ophyd_plant
from tests.support.infrastructure.scripted_server import ScriptedServer

needs_p4p = pytest.mark.skipif(find_spec("p4p") is None, reason="p4p is not installed (extra `epics`)")
TANGO_PLANTS = itertools.count()
needs_pytango = pytest.mark.skipif(find_spec("tango") is None, reason="pytango is not installed (extra `tango`)")
needs_ophyd = pytest.mark.skipif(find_spec("ophyd_async") is None, reason="ophyd-async is not installed (extra `ophyd`)")
needs_aioca = pytest.mark.skipif(find_spec("aioca") is None, reason="aioca is not installed (extra `epics`)")


@pytest.fixture(scope="session")
def ca_server_of_all(channel_access_ports: ChannelAccessPorts) -> Iterator[EpicsServer]:
    with channel_access_server(channel_access_ports.lasting) as server:
        yield server


@pytest.fixture
def ca_server(ca_server_of_all: EpicsServer) -> Iterator[EpicsServer]:
    """A Channel Access server without signals."""
    yield ca_server_of_all
    ca_server_of_all.tell("reset")


@pytest.fixture(scope="session")
def pva_server_of_all() -> Iterator[EpicsServer]:
    with EpicsServer("pva_server") as server:
        yield server


@pytest.fixture
def pva_server(pva_server_of_all: EpicsServer) -> Iterator[EpicsServer]:
    """A PV Access server without signals."""
    yield pva_server_of_all
    pva_server_of_all.tell("reset")


@pytest.fixture(scope="session")
def tango_server_of_all() -> Iterator[ScriptedServer]:
    with ScriptedServer("tango_server") as server:
        yield server


@pytest.fixture
def tango_server(tango_server_of_all: ScriptedServer) -> Iterator[ScriptedServer]:
    """A Tango device whose attributes are yet to come."""
    yield tango_server_of_all
    tango_server_of_all.tell("reset")


@pytest.fixture
def x() -> str:
    """The name of an attribute that no other test has."""
    return f"x{next(TANGO_PLANTS)}"


def caproto_client() -> ChannelAccessClient:
    from baton.infrastructure.control.caproto_client import CaprotoClient

    return CaprotoClient()


def aioca_client() -> ChannelAccessClient:
    from baton.infrastructure.control.aioca_client import AiocaClient

    return AiocaClient()


CLIENTS: dict[str, Callable[[], ChannelAccessClient]] = {"caproto": caproto_client, "aioca": aioca_client}


@pytest.fixture(params=["caproto", pytest.param("aioca", marks=needs_aioca)])
async def ca_client(request: pytest.FixtureRequest, ca_server: EpicsServer) -> AsyncIterator[ChannelAccessClient]:
    """Each client library of Channel Access."""
    client = CLIENTS[request.param]()
    yield client
    await client.close()


@pytest.fixture
def channel_access(ca_client: ChannelAccessClient) -> ChannelAccess:
    return ChannelAccess(ca_client, read_timeout=PATIENT)


@pytest.fixture
def impatient_control(ca_client: ChannelAccessClient) -> ChannelAccess:
    """The same, for what is not there."""
    return ChannelAccess(ca_client, read_timeout=IMPATIENT)


@pytest.fixture(
    params=[
        "simulator",
        "routed simulator",
        "caproto",
        pytest.param("aioca", marks=needs_aioca),
        pytest.param("p4p", marks=needs_p4p),
        pytest.param("tango", marks=needs_pytango),
        pytest.param("ophyd", marks=needs_ophyd),
        pytest.param("ophyd over aioca", marks=[needs_ophyd, needs_aioca]),
    ]
)
async def wired_plant(request: pytest.FixtureRequest) -> AsyncIterator[WiredPlant]:
    """Every adapter of the control port, with its plant."""
    match request.param:
        case "simulator":
            made = simulated_plant()
        case "routed simulator":
            made = routed_plant()
        case "p4p":
            made = pv_access_of(request.getfixturevalue("pva_server"))
        case "tango":
            made = tango_of(request.getfixturevalue("tango_server"))
        case "ophyd":
            made = soft_ophyd_plant()
        case "ophyd over aioca":
            made = ophyd_over_aioca(request.getfixturevalue("ca_server"))
        case library:
            client, plant = CLIENTS[library](), ServedPlant(request.getfixturevalue("ca_server"))
            patient, impatient_control = (ChannelAccess(client, read_timeout=timeout) for timeout in (PATIENT, IMPATIENT))
            made = WiredPlant(patient, impatient_control, plant)
    yield made
    await made.control.close()
    await made.impatient.close()


def pv_access_of(server: EpicsServer) -> WiredPlant:
    """The adapter of PV Access on one server."""
    from baton.application.control import ControlNotConnectedError, ControlTimeoutError
    from baton.infrastructure.control.pv_access import PvAccess

    here = {name: value for name, value in server.ready.items() if name.startswith("EPICS_PVA_")}
    return WiredPlant(
        PvAccess(here, read_timeout=PATIENT),
        PvAccess(here, read_timeout=IMPATIENT),
        ServedPlant(server),
        no_value=ControlNotConnectedError,
        no_writable=ControlTimeoutError,
        tells_silence=False,
        counts=False,
    )


def tango_of(server: ScriptedServer) -> WiredPlant:
    """The adapter of Tango on one device."""
    from baton.infrastructure.control.tango import TangoControl

    device = f"tango:127.0.0.1:{server.ready['port']}/{server.ready['device']}"
    number = next(TANGO_PLANTS)  # an attribute keeps its type while its server runs
    return WiredPlant(
        TangoControl(read_timeout=PATIENT, probe_seconds=0.2),
        TangoControl(read_timeout=IMPATIENT, probe_seconds=0.2),
        ServedPlant(server, lambda address: address.rpartition("/")[2]),
        tells_silence=False,
        counts=False,
        signal=f"{device}/shutter{number}",
        other_signal=f"{device}/other{number}",
        too_high="WARNING",
    )


@pytest.fixture
async def tango_plant(tango_server: ScriptedServer) -> AsyncIterator[WiredPlant]:
    made = tango_of(tango_server)
    yield made
    await made.control.close()
    await made.impatient.close()


@pytest.fixture
async def pv_access(pva_server: EpicsServer) -> AsyncIterator[object]:
    made = pv_access_of(pva_server)
    yield made.control
    await made.control.close()
