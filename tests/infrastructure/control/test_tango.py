"""Tango against a real device server: values, commands, refusals, servers that vanish and come back."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tango", reason="pytango is not installed (extra `tango`)")

from baton.application.control import (
    ControlLimits,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    MalformedControlAddressError,
    Quality,
    ReadingKind,
)
from baton.infrastructure.control.tango import TangoControl
from baton.infrastructure.control.tango_values import STATES, parse_address
from tests.support.infrastructure.control_plants import WiredPlant
from tests.support.infrastructure.scripted_server import ScriptedServer
from tests.support.infrastructure.tango_server import free_port
from tests.support.waiting import until

pytestmark = pytest.mark.server


def device_of(server: ScriptedServer) -> str:
    return f"tango:127.0.0.1:{server.ready['port']}/{server.ready['device']}"


@pytest.fixture
def device(tango_server: ScriptedServer) -> str:
    return device_of(tango_server)


@pytest.fixture
def tango(tango_plant: WiredPlant) -> TangoControl:
    assert isinstance(tango_plant.control, TangoControl)
    return tango_plant.control


@pytest.fixture
def fleeting_server() -> Iterator[ScriptedServer]:
    """A server that a test may kill."""
    with ScriptedServer("tango_server") as server:
        yield server


class TestAddresses:
    def test_a_device_is_found_in_the_database_or_at_its_server(self) -> None:
        assert parse_address("tango:bl7/mot/1/Position").device == "bl7/mot/1"
        assert parse_address("tango:ctl-7:45678/bl7/mot/1/Position").device == "tango://ctl-7:45678/bl7/mot/1#dbase=no"
        assert parse_address("tango:bl7/mot/1/Position").member == "Position"
        assert parse_address("tango:bl7/mot/1/Home()").is_command

    @pytest.mark.parametrize(
        "address",
        ["bl7/mot/1/x", "tango:bl7/mot/x", "tango:a/b/c/d/e", "tango:h:1/b/c/d", "tango:a/b/c/d(1)", "tango:a/b/c/d e"],
    )
    async def test_others_are_malformed(self, tango: TangoControl, address: str) -> None:
        with pytest.raises(MalformedControlAddressError):
            await tango.read(address)


class TestReading:
    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            (True, ReadingKind.SCALAR),
            ("dark", ReadingKind.SCALAR),
            ([1, 2], ReadingKind.ARRAY),
            (["a", "b"], ReadingKind.ARRAY),
            ([[1.5, 2.0], [3.0, 4.0]], ReadingKind.IMAGE),
        ],
    )
    async def test_values_are_plain_data(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, value: Any, kind: ReadingKind, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=value)
        reading = await tango.read(f"{device}/{x}")
        assert (reading.value, reading.kind) == (value, kind)
        assert json.dumps(reading.value)

    @pytest.mark.parametrize(
        ("said", "quality", "detail"),
        [
            ({"severity": 0}, Quality.GOOD, None),
            ({"changing": True}, Quality.GOOD, "CHANGING"),
            ({"severity": 1}, Quality.UNCERTAIN, "WARNING"),
            ({"severity": 2}, Quality.UNCERTAIN, "ALARM"),
            ({"severity": 3}, Quality.BAD, "INVALID"),
        ],
    )
    async def test_the_quality_is_tangos_and_an_invalid_value_is_none(
        self,
        tango: TangoControl,
        tango_server: ScriptedServer,
        device: str,
        said: dict[str, Any],
        quality: Quality,
        detail: str | None,
        x: str,
    ) -> None:
        tango_server.tell("set", address=x, value=2.5, units="mm", **said)
        reading = await tango.read(f"{device}/{x}")
        assert (reading.quality, reading.quality_detail, reading.units) == (quality, detail, "mm")
        assert reading.value == (None if quality is Quality.BAD else 2.5)

    async def test_the_state_is_a_choice_and_the_status_a_text(self, tango: TangoControl, device: str) -> None:
        state, status = await tango.read(f"{device}/State"), await tango.read(f"{device}/Status")
        assert state.kind is ReadingKind.CATEGORICAL
        assert state.index is not None
        assert state.value == STATES[state.index] in {"ON", "ALARM"}, "Tango derives an alarm from the attributes"
        assert isinstance(status.value, str)

    async def test_a_command_has_no_value(self, tango: TangoControl, device: str) -> None:
        with pytest.raises(MalformedControlAddressError, match="is a command"):
            await tango.read(f"{device}/Reset()")

    async def test_a_limit_on_one_side_is_one(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=1.0, limits=[0.0, 4.0])
        assert await tango.limits(f"{device}/{x}") == ControlLimits(0.0, 4.0)
        assert await tango.limits(f"{device}/Reset()") is None


class TestWriting:
    async def test_a_read_only_attribute_is_refused_before_the_fence(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=1.0, read_only=True)
        asked: list[None] = []
        with pytest.raises(ControlWriteRejectedError, match="is read-only"):
            await tango.write(f"{device}/{x}", 2.0, fence=lambda: asked.append(None))
        assert asked == []

    @pytest.mark.parametrize(("said", "value"), [({"limits": [0.0, 4.0]}, 5.0), ({"rejecting": True}, 1.0)])
    async def test_what_the_device_refuses_is_rejected_in_its_words(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, said: dict[str, Any], value: float, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=1.0, **said)
        with pytest.raises(ControlWriteRejectedError, match=r"not now|above the maximum"):
            await tango.write(f"{device}/{x}", value)

    @pytest.mark.parametrize(
        ("before", "value"),
        [(1.0, "two"), (1, 1.5), (1, 2**70), (True, 2), ([1.0], list(range(11))), ([[1.0]], [[1.0, 2.0], [3.0]])],
    )
    async def test_what_does_not_fit_is_refused_before_the_fence(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, before: Any, value: Any, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=before)
        asked: list[None] = []
        with pytest.raises(ControlValueCoercionError):
            await tango.write(f"{device}/{x}", value, fence=lambda: asked.append(None))
        assert asked == []

    async def test_an_image_is_written_in_rows(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=[[1.0, 2.0]])
        await tango.write(f"{device}/{x}", [[1, 2, 3], [4, 5, 6]])
        assert (await tango.read(f"{device}/{x}")).value == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

    async def test_a_command_takes_its_argument_or_null(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str
    ) -> None:
        await tango.write(f"{device}/Home()", 2)
        await tango.write(f"{device}/Reset()", None)
        assert [put[1:] for put in tango_server.tell("puts")] == [["Home", 2.0], ["Reset", None]]
        for address, value in ((f"{device}/Home()", None), (f"{device}/Home()", "fast"), (f"{device}/Reset()", 1)):
            with pytest.raises(ControlValueCoercionError):
                await tango.write(address, value)
        with pytest.raises(ControlWriteRejectedError, match="the drive is off"):
            await tango.write(f"{device}/Fail()", None)
        with pytest.raises(ControlNotConnectedError):
            await tango.write(f"{device}/Absent()", None)

    async def test_a_command_that_takes_too_long_may_have_had_its_effect(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str
    ) -> None:
        tango_server.tell("slow", name="Home", seconds=1.0)
        with pytest.raises(ControlTimeoutError, match="did not confirm"):
            await tango.write(f"{device}/Home()", 2, timeout=0.3)
        assert [put[1:] for put in tango_server.tell("puts")] == [["Home", 2.0]]

    async def test_a_caller_that_is_gone_before_the_send_sends_nothing(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, x: str
    ) -> None:
        """The server is stopped, so that the write is at its ping when its caller goes."""
        tango_server.tell("set", address=x, value=1.0)
        await tango.write(f"{device}/{x}", 2.0)
        os.kill(tango_server.process.pid, signal.SIGSTOP)
        try:
            writing = asyncio.create_task(tango.write(f"{device}/{x}", 3.0))
            await until(lambda: tango._idle[parse_address(f"{device}/{x}").device] == [])
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        finally:
            os.kill(tango_server.process.pid, signal.SIGCONT)
        await tango.write(f"{device}/{x}", 4.0)
        assert [put[2] for put in tango_server.tell("puts")] == [2.0, 4.0]


class TestServers:
    async def test_a_killed_server_is_announced_within_three_seconds(self, fleeting_server: ScriptedServer) -> None:
        control, address = TangoControl(), f"{device_of(fleeting_server)}/x"
        fleeting_server.tell("set", address="x", value=1.0)
        stream = control.subscribe(address)
        await anext(stream)
        fleeting_server.kill()
        killed_at = time.monotonic()
        with pytest.raises(ControlNotConnectedError, match="x is not connected"):
            await anext(stream)
        assert time.monotonic() - killed_at < 3
        await control.close()

    async def test_a_server_that_hangs_is_announced_as_well(self, fleeting_server: ScriptedServer) -> None:
        control, address = TangoControl(), f"{device_of(fleeting_server)}/x"
        fleeting_server.tell("set", address="x", value=1.0)
        stream = control.subscribe(address)
        await anext(stream)
        os.kill(fleeting_server.process.pid, signal.SIGSTOP)
        stopped_at = time.monotonic()
        with pytest.raises(ControlNotConnectedError):
            await anext(stream)
        assert time.monotonic() - stopped_at < 3
        fleeting_server.kill()
        await control.close()

    async def test_a_change_that_was_pushed_to_nobody_is_read(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=1.0)
        stream = tango.subscribe(f"{device}/{x}")
        assert (await anext(stream)).value == 1.0
        tango_server.tell("set", address=x, value=2.0, unheard=True)
        assert (await anext(stream)).value == 2.0

    async def test_an_attribute_without_events_is_polled(
        self, tango: TangoControl, tango_server: ScriptedServer, device: str, x: str
    ) -> None:
        tango_server.tell("set", address=x, value=1.0, pushed=False)
        stream = tango.subscribe(f"{device}/{x}")
        assert (await anext(stream)).value == 1.0
        tango_server.tell("set", address=x, value=2.0)
        assert (await anext(stream)).value == 2.0
        tango_server.tell("drop", address=x)
        with pytest.raises(ControlNotConnectedError):
            await anext(stream)

    async def test_a_write_that_was_lost_with_its_server_is_not_sent_to_the_one_that_is_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        puts = tmp_path / "puts"
        monkeypatch.setenv("PUTS_FILE", str(puts))
        monkeypatch.setenv("TANGO_SERVER_PORT", str(free_port()))
        control = TangoControl()
        with ScriptedServer("tango_server") as server:
            server.tell("set", address="x", value=1.0, seconds=30)
            address = f"{device_of(server)}/x"
            writing = asyncio.create_task(control.write(address, 2.0))
            await until(puts.exists)
            server.kill()
            with ScriptedServer("tango_server") as back:
                back.tell("set", address="x", value=1.0)
                with pytest.raises((ControlNotConnectedError, ControlTimeoutError)):
                    await writing

                async def is_read_again() -> bool:
                    with suppress(ControlNotConnectedError):
                        return (await control.read(address)).value == 1.0
                    return False

                await until(is_read_again)
                await control.write(address, 3.0)
                assert puts.read_text().splitlines() == ['["x", 2.0]', '["x", 3.0]']
        await control.close()
