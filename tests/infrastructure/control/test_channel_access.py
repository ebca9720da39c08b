"""Channel Access against a real server: types, alarms, access, refusals, and servers that vanish."""

import asyncio
import socket
from collections.abc import Iterator

import caproto
import pytest

from baton.application.control import (
    ControlAccessDeniedError,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    MalformedControlAddressError,
    Quality,
    ReadingKind,
)
from baton.infrastructure.actions.acquisition import collect
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from baton.infrastructure.wall_clock import WallClock
from tests.support.infrastructure.epics_servers import ChannelAccessPorts, EpicsServer, channel_access_server, free_ports
from tests.support.waiting import until

NO_ACCESS, READ_ONLY, WRITE_ONLY = 0, 1, 2


@pytest.fixture
def fleeting_server(channel_access_ports: ChannelAccessPorts) -> Iterator[EpicsServer]:
    """A server that a test may kill."""
    with channel_access_server(channel_access_ports.fleeting) as server:
        yield server


def answer_a_search_for_nothing(port: int) -> None:
    """Say once that a signal is served at a port where nobody listens."""
    (nobody,) = free_ports(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as searched:
        searched.bind(("127.0.0.1", port))
        searched.settimeout(10)
        data, asking = searched.recvfrom(4096)
        role = caproto.Broadcaster(our_role=caproto.SERVER)
        (search,) = [command for command in role.recv(data, asking) if isinstance(command, caproto.SearchRequest)]
        found = caproto.SearchResponse(nobody, None, search.cid, caproto.DEFAULT_PROTOCOL_VERSION)
        searched.sendto(bytes(caproto.VersionResponse(caproto.DEFAULT_PROTOCOL_VERSION)) + bytes(found), asking)


class TestReading:
    async def test_numbers_have_units(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:x", value=1.5, units="mm")
        reading = await channel_access.read("bl7:x")
        assert (reading.value, reading.units) == (1.5, "mm")

    async def test_a_choice_is_its_label_and_its_index(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:shutter", value="Open", labels=["Closed", "Open"])
        reading = await channel_access.read("bl7:shutter")
        assert (reading.value, reading.index, reading.kind) == ("Open", 1, ReadingKind.CATEGORICAL)
        stream = channel_access.subscribe("bl7:shutter")
        assert (await anext(stream)).value == "Open"
        ca_server.tell("set", address="bl7:shutter", value="Closed")
        assert (await anext(stream)).value == "Closed"
        await stream.aclose()

    @pytest.mark.parametrize("values", [[1.5, 2.5, 3.5], [1, 2], ["a", "b"]])
    async def test_an_array_is_as_long_as_what_it_holds(
        self, channel_access: ChannelAccess, ca_server: EpicsServer, values: list[object]
    ) -> None:
        ca_server.tell("set", address="bl7:spectrum", value=values, length=10)
        reading = await channel_access.read("bl7:spectrum")
        assert (reading.value, reading.kind) == (values, ReadingKind.ARRAY)

    async def test_characters_are_their_codes(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:file", value=[104, 105], characters=True)
        assert (await channel_access.read("bl7:file")).value == [104, 105]

    @pytest.mark.parametrize(
        ("severity", "quality"), [(0, Quality.GOOD), (1, Quality.UNCERTAIN), (2, Quality.UNCERTAIN), (3, Quality.BAD)]
    )
    async def test_an_alarm_is_the_quality(
        self, channel_access: ChannelAccess, ca_server: EpicsServer, severity: int, quality: Quality
    ) -> None:
        ca_server.tell("set", address="bl7:x", value=1.5, severity=severity, status="HIHI" if severity else None)
        reading = await channel_access.read("bl7:x")
        assert reading.quality is quality
        assert (reading.quality_detail or "").endswith("HIHI" if severity else "")

    async def test_what_may_not_be_read_is_denied(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:secret", value=1, rights=WRITE_ONLY)
        with pytest.raises(ControlAccessDeniedError, match="bl7:secret"):
            await channel_access.read("bl7:secret")
        with pytest.raises(ControlAccessDeniedError, match="bl7:secret"):
            await anext(channel_access.subscribe("bl7:secret"))

    async def test_a_name_with_blanks_is_malformed(self, channel_access: ChannelAccess) -> None:
        with pytest.raises(MalformedControlAddressError, match="bl7: x"):
            await channel_access.read("bl7: x")

    async def test_many_signals_are_read_at_once(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        for number in range(50):
            ca_server.tell("set", address=f"bl7:{number}", value=number)
        readings = await asyncio.gather(*(channel_access.read(f"bl7:{number}") for number in range(50)))
        assert [reading.value for reading in readings] == list(range(50))


class TestWriting:
    async def test_a_text_fills_a_signal_of_characters(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:file", value=[1], characters=True)
        await channel_access.write("bl7:file", "/data/a.h5")
        assert bytes(ca_server.tell("value", address="bl7:file")).decode() == "/data/a.h5"

    async def test_what_does_not_fit_is_not_sent(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:count", value=3)
        for value in (1.5, "many", [1, 2], 2**40):
            with pytest.raises(ControlValueCoercionError):
                await channel_access.write("bl7:count", value)
        assert ca_server.tell("value", address="bl7:count") == 3

    async def test_what_may_only_be_written_is_written(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:trigger", value=0, rights=WRITE_ONLY)
        await channel_access.write("bl7:trigger", 1)
        assert ca_server.tell("value", address="bl7:trigger") == 1

    @pytest.mark.parametrize("rights", [NO_ACCESS, READ_ONLY])
    async def test_what_may_not_be_written_is_denied(
        self, channel_access: ChannelAccess, ca_server: EpicsServer, rights: int
    ) -> None:
        ca_server.tell("set", address="bl7:x", value=1, rights=rights)
        with pytest.raises(ControlAccessDeniedError, match="bl7:x"):
            await channel_access.write("bl7:x", 2)
        assert ca_server.tell("value", address="bl7:x") == 1

    async def test_a_server_that_says_no_is_a_rejection(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        ca_server.tell("set", address="bl7:x", value=1, rejecting=True)
        with pytest.raises(ControlWriteRejectedError, match="bl7:x"):
            await channel_access.write("bl7:x", 2)

    async def test_a_server_that_does_not_confirm_is_a_time_out(
        self, channel_access: ChannelAccess, ca_server: EpicsServer
    ) -> None:
        ca_server.tell("set", address="bl7:x", value=1, hanging=True)
        await channel_access.read("bl7:x")  # it is connected; what is waited for is the confirmation
        with pytest.raises(ControlTimeoutError, match="bl7:x"):
            await channel_access.write("bl7:x", 2, timeout=0.2)
        assert ca_server.tell("value", address="bl7:x") == 2

    async def test_without_waiting_no_confirmation_is_needed(
        self, channel_access: ChannelAccess, ca_server: EpicsServer
    ) -> None:
        ca_server.tell("set", address="bl7:x", value=1, hanging=True)
        await channel_access.read("bl7:x")  # it is connected; what is waited for is the confirmation
        await channel_access.write("bl7:x", 2, wait=False, timeout=0.2)
        await until(lambda: ca_server.tell("value", address="bl7:x") == 2)


class TestActions:
    async def test_a_camera_is_worked_by_its_labels(self, channel_access: ChannelAccess, ca_server: EpicsServer) -> None:
        signals = {
            "TriggerMode": {"value": "Internal", "labels": ["Internal", "ExternalEdge", "ExternalLevel"]},
            "TriggerSource": {"value": ""},
            "AcquireTime": {"value": 0.5},
            "ImageMode": {"value": "Single", "labels": ["Single", "Multiple", "Continuous"]},
            "NumImages": {"value": 1},
            "Acquire": {"value": "Done", "labels": ["Done", "Acquire"]},
            "DetectorState_RBV": {"value": "Idle", "labels": ["Idle", "Acquire"]},
        }
        for name, signal in signals.items():
            ca_server.tell("set", address=f"bl7:cam1:{name}", **signal)
        params = {"trigger_mode": "ExternalLevel", "source": "zebra", "repetitions": 3, "dwell": 0.01}
        acquiring = asyncio.ensure_future(collect(channel_access, WallClock(), {"detector": "bl7:cam1", **params}))
        await until(lambda: acquiring.done() or ca_server.tell("value", address="bl7:cam1:Acquire") == "Acquire")
        told = {name: ca_server.tell("value", address=f"bl7:cam1:{name}") for name in list(signals)[:5]}
        assert told == {
            "TriggerMode": "ExternalLevel",
            "TriggerSource": "zebra",
            "AcquireTime": 0.01,
            "ImageMode": "Multiple",
            "NumImages": 3,
        }
        ca_server.tell("set", address="bl7:cam1:Acquire", value="Done")
        assert (await acquiring)["state"] == "Idle"


class TestLosingTheServer:
    async def test_those_who_follow_are_told(self, channel_access: ChannelAccess, fleeting_server: EpicsServer) -> None:
        fleeting_server.tell("set", address="bl8:x", value=1)
        stream = channel_access.subscribe("bl8:x")
        assert (await anext(stream)).value == 1
        fleeting_server.kill()
        with pytest.raises(ControlNotConnectedError, match="bl8:x"):
            await anext(stream)

    async def test_a_write_that_waits_for_its_confirmation_is_told(
        self, channel_access: ChannelAccess, fleeting_server: EpicsServer
    ) -> None:
        fleeting_server.tell("set", address="bl8:x", value=1, hanging=True)
        writing = asyncio.ensure_future(channel_access.write("bl8:x", 2, timeout=20))
        await until(lambda: fleeting_server.tell("value", address="bl8:x") == 2 or writing.done())
        fleeting_server.kill()
        with pytest.raises(ControlNotConnectedError, match="bl8:x"):
            await writing

    async def test_afterwards_it_is_not_connected(
        self, channel_access: ChannelAccess, impatient_control: ChannelAccess, fleeting_server: EpicsServer
    ) -> None:
        fleeting_server.tell("set", address="bl8:x", value=1)
        await channel_access.read("bl8:x")
        fleeting_server.kill()
        for _ in range(2):
            with pytest.raises(ControlNotConnectedError, match="bl8:x"):
                await impatient_control.read("bl8:x")
        with pytest.raises(ControlNotConnectedError, match="bl8:x"):
            await channel_access.write("bl8:x", 2, timeout=0.2)

    async def test_a_server_that_is_back_is_found_again_with_its_new_labels(
        self, channel_access: ChannelAccess, fleeting_server: EpicsServer, channel_access_ports: ChannelAccessPorts
    ) -> None:
        fleeting_server.tell("set", address="bl8:mode", value="A", labels=["A", "B"])
        stream = channel_access.subscribe("bl8:mode")
        assert (await anext(stream)).value == "A"
        fleeting_server.kill()
        with pytest.raises(ControlNotConnectedError):
            await anext(stream)
        with channel_access_server(channel_access_ports.fleeting) as returned:
            returned.tell("set", address="bl8:mode", value="D", labels=["C", "D"])
            assert (await channel_access.read("bl8:mode")).value == "D"

    async def test_a_server_that_is_gone_before_it_could_be_connected_to_is_looked_for_again(
        self, channel_access: ChannelAccess, channel_access_ports: ChannelAccessPorts
    ) -> None:
        reading = asyncio.ensure_future(channel_access.read("bl8:x"))
        await asyncio.to_thread(answer_a_search_for_nothing, channel_access_ports.fleeting)
        with channel_access_server(channel_access_ports.fleeting) as server:
            server.tell("set", address="bl8:x", value=7)
            assert (await reading).value == 7

    async def test_other_servers_go_on(
        self, channel_access: ChannelAccess, fleeting_server: EpicsServer, ca_server: EpicsServer
    ) -> None:
        fleeting_server.tell("set", address="bl8:x", value=1)
        ca_server.tell("set", address="bl7:x", value=1)
        lost, kept = channel_access.subscribe("bl8:x"), channel_access.subscribe("bl7:x")
        await anext(lost)
        await anext(kept)
        fleeting_server.kill()
        with pytest.raises(ControlNotConnectedError):
            await anext(lost)
        ca_server.tell("set", address="bl7:x", value=2)
        assert (await anext(kept)).value == 2
        await kept.aclose()


@pytest.mark.usefixtures("channel_access_ports")
@pytest.mark.parametrize("turns", range(6))
async def test_a_client_is_closed_however_little_of_it_is_open(turns: int) -> None:
    client = CaprotoClient()
    connecting = asyncio.create_task(client.connect("bl7:unknown"))
    for _ in range(turns):
        await asyncio.sleep(0)
    await client.close()
    connecting.cancel()
    await asyncio.wait([connecting])
