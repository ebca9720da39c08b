"""PV Access against a real server: normative types, alarms, refusals, and servers that vanish."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

pytest.importorskip("p4p", reason="p4p is not installed (extra `epics`)")

from baton.application.control import (
    Control,
    ControlAccessDeniedError,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    MalformedControlAddressError,
    Quality,
    ReadingKind,
)
from baton.infrastructure.control.pv_access import PvAccess
from tests.infrastructure.control.conftest import pv_access_of
from tests.support.infrastructure.epics_servers import EpicsServer
from tests.support.waiting import until


@pytest.fixture
def fleeting_server() -> Iterator[EpicsServer]:
    """A server that a test may kill."""
    with EpicsServer("pva_server") as server:
        yield server


async def readable(control: Control, address: str) -> bool:
    with suppress(ControlNotConnectedError):
        return bool(await control.read(address))
    return False


class TestReading:
    @pytest.mark.parametrize("value", [3, 2.5, "dark", True])
    async def test_a_scalar_has_name_and_units(self, pv_access: PvAccess, pva_server: EpicsServer, value: Any) -> None:
        described = {} if isinstance(value, str) else {"units": "mm", "description": "Stage x"}
        pva_server.tell("set", address="bl7:x", value=value, **described)
        reading = await pv_access.read("bl7:x")
        assert (reading.value, reading.kind) == (value, ReadingKind.SCALAR)
        assert (reading.units, reading.name) == (described.get("units"), described.get("description"))

    @pytest.mark.parametrize("values", [[1, 2], [1.5, 2.5, 3.5], ["a", "b"]])
    async def test_a_scalar_array_is_an_array(self, pv_access: PvAccess, pva_server: EpicsServer, values: list[Any]) -> None:
        pva_server.tell("set", address="bl7:spectrum", value=values)
        reading = await pv_access.read("bl7:spectrum")
        assert (reading.value, reading.kind) == (values, ReadingKind.ARRAY)

    @pytest.mark.parametrize("pixels", ["uint8", "uint16", "int32", "float64"])
    async def test_an_nd_array_is_an_image_in_rows(self, pv_access: PvAccess, pva_server: EpicsServer, pixels: str) -> None:
        rows = [[1, 2, 3], [4, 5, 6]]
        pva_server.tell("set", address="bl7:image", value=rows, image=pixels)
        reading = await pv_access.read("bl7:image")
        assert (reading.value, reading.kind) == (rows, ReadingKind.IMAGE)

    async def test_an_enum_is_its_label_and_its_index(self, pv_access: PvAccess, pva_server: EpicsServer) -> None:
        labels = ["Closed", "Open"]
        pva_server.tell("set", address="bl7:shutter", value="Open", labels=labels)
        reading = await pv_access.read("bl7:shutter")
        assert (reading.value, reading.index, reading.kind) == ("Open", 1, ReadingKind.CATEGORICAL)
        stream = pv_access.subscribe("bl7:shutter")
        await anext(stream)
        pva_server.tell("set", address="bl7:shutter", value="Closed", labels=labels)
        assert (await anext(stream)).value == "Closed"
        await stream.aclose()

    async def test_a_table_is_its_columns(self, pv_access: PvAccess, pva_server: EpicsServer) -> None:
        columns = {"energy": [7.1, 7.2], "element": ["Fe", "Fe"]}
        pva_server.tell("set", address="bl7:edges", value=columns)
        reading = await pv_access.read("bl7:edges")
        assert (reading.value, reading.kind) == (columns, ReadingKind.TABULAR)

    @pytest.mark.parametrize(
        ("severity", "quality", "detail"),
        [
            (0, Quality.GOOD, None),
            (1, Quality.UNCERTAIN, "MINOR HIGH_ALARM"),
            (2, Quality.UNCERTAIN, "MAJOR HIGH_ALARM"),
            (3, Quality.BAD, "INVALID HIGH_ALARM"),
        ],
    )
    async def test_an_alarm_is_the_quality(
        self, pv_access: PvAccess, pva_server: EpicsServer, severity: int, quality: Quality, detail: str | None
    ) -> None:
        pva_server.tell("set", address="bl7:x", value=1.5, severity=severity, status="HIGH_ALARM")
        reading = await pv_access.read("bl7:x")
        assert (reading.quality, reading.quality_detail) == (quality, detail)

    async def test_a_name_with_blanks_is_malformed(self, pv_access: PvAccess) -> None:
        with pytest.raises(MalformedControlAddressError, match="bl7: x"):
            await pv_access.read("bl7: x")


class TestWriting:
    async def test_what_does_not_fit_is_not_sent(self, pv_access: PvAccess, pva_server: EpicsServer) -> None:
        pva_server.tell("set", address="bl7:count", value=3, code="h")
        for value in (1.5, "many", [1, 2], 2**15):
            with pytest.raises(ControlValueCoercionError, match="bl7:count"):
                await pv_access.write("bl7:count", value)
        assert pva_server.tell("value", address="bl7:count") == 3

    async def test_an_image_cannot_be_written(self, pv_access: PvAccess, pva_server: EpicsServer) -> None:
        pva_server.tell("set", address="bl7:image", value=[[1]], image="uint8")
        with pytest.raises(ControlValueCoercionError, match="NTNDArray"):
            await pv_access.write("bl7:image", [[2]])

    async def test_a_server_that_says_no_is_a_rejection(self, pv_access: PvAccess, pva_server: EpicsServer) -> None:
        pva_server.tell("set", address="bl7:x", value=1, refusal="out of range")
        with pytest.raises(ControlWriteRejectedError, match="bl7:x: out of range"):
            await pv_access.write("bl7:x", 2)

    @pytest.mark.parametrize("refusal", ["Put not permitted", "Access denied", "no write access", "Not authorized"])
    async def test_a_server_that_grants_no_access_denies(
        self, pv_access: PvAccess, pva_server: EpicsServer, refusal: str
    ) -> None:
        pva_server.tell("set", address="bl7:x", value=1, refusal=refusal)
        with pytest.raises(ControlAccessDeniedError, match="bl7:x"):
            await pv_access.write("bl7:x", 2)

    async def test_a_write_without_an_answer_is_a_time_out(self, pv_access: PvAccess, pva_server: EpicsServer) -> None:
        pva_server.tell("set", address="bl7:x", value=1, delay=1.0)
        with pytest.raises(ControlTimeoutError, match="bl7:x"):
            await pv_access.write("bl7:x", 2, timeout=0.2)
        with pytest.raises(ControlTimeoutError, match="bl7:nowhere"):
            await pv_access.write("bl7:nowhere", 2, timeout=0.2)
        await until(lambda: pva_server.tell("value", address="bl7:x") == 2)


class TestLosingTheServer:
    async def test_those_who_follow_are_told(self, fleeting_server: EpicsServer) -> None:
        fleeting_server.tell("set", address="bl8:x", value=1)
        control = pv_access_of(fleeting_server).control
        stream = control.subscribe("bl8:x")
        assert (await anext(stream)).value == 1
        fleeting_server.kill()
        with pytest.raises(ControlNotConnectedError, match="bl8:x"):
            await anext(stream)
        await control.close()

    async def test_afterwards_it_is_not_connected(self, fleeting_server: EpicsServer) -> None:
        fleeting_server.tell("set", address="bl8:x", value=1)
        control = pv_access_of(fleeting_server).impatient
        await until(partial(readable, control, "bl8:x"))
        fleeting_server.kill()
        with pytest.raises(ControlNotConnectedError, match="bl8:x"):
            await control.read("bl8:x")
        with pytest.raises((ControlNotConnectedError, ControlTimeoutError), match="bl8:x"):
            await control.write("bl8:x", 2, timeout=0.2)
        await control.close()
