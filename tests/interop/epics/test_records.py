"""Records of EPICS base with each adapter: values, choices, arrays, alarms, limits, access, confirmations, lost IOCs."""

import asyncio
from typing import Any

import pytest

from baton.application.control import (
    Control,
    ControlAccessDeniedError,
    ControlLimits,
    ControlNotConnectedError,
    ControlWriteRejectedError,
    Quality,
    ReadingKind,
)
from tests.support.infrastructure.epics_servers import SoftIoc
from tests.support.waiting import until

SCALAR, CHOICE, ARRAY = ReadingKind.SCALAR, ReadingKind.CATEGORICAL, ReadingKind.ARRAY


class TestValues:
    @pytest.mark.parametrize(
        ("record", "written", "read", "kind"),
        [
            ("ioc:x", [1.5, -2.25], [1.5, -2.25], SCALAR),
            ("ioc:count", [7, -8], [7, -8], SCALAR),
            ("ioc:sample", ["Si 111", ""], ["Si 111", ""], SCALAR),
            ("ioc:shutter", ["Open", "Closed", 1, 0], ["Open", "Closed", "Open", "Closed"], CHOICE),
            ("ioc:mode", ["Readout", 1, "Idle"], ["Readout", "Acquire", "Idle"], CHOICE),
            ("ioc:spectrum", [[1.5, 2.5], [0.5 * n for n in range(1000)], []], None, ARRAY),
            ("ioc:counts", [[1, -2, 3], [4]], None, ARRAY),
            ("ioc:names", [["Fe", "Cu"], ["Si"]], None, ARRAY),
            ("ioc:file", ["/data/a.h5", [47, 98]], [list(b"/data/a.h5"), [47, 98]], ARRAY),
        ],
    )
    async def test_what_is_written_is_read_over_both_protocols(
        self, control: Control, observer: Control, record: str, written: list[Any], read: list[Any] | None, kind: ReadingKind
    ) -> None:
        for value, expected in zip(written, read or written, strict=True):
            await control.write(record, value)
            for each in (control, observer):
                reading = await each.read(record)
                assert (reading.value, reading.kind, reading.quality) == (expected, kind, Quality.GOOD)

    async def test_a_record_says_its_units_and_its_drive_limits(self, control: Control, library: str) -> None:
        reading = await control.read("ioc:x")
        assert (reading.units, reading.name) == ("mm", "Stage x" if library == "p4p" else None)
        assert await control.limits("ioc:x") == ControlLimits(-100.0, 100.0)
        assert await control.limits("ioc:count") is None

    async def test_fields_of_a_record_are_signals(self, control: Control) -> None:
        description, scan = await control.read("ioc:x.DESC"), await control.read("ioc:x.SCAN")
        assert (description.value, scan.value, scan.index) == ("Stage x", "Passive", 0)


class TestAlarms:
    @pytest.mark.parametrize(
        ("record", "value", "quality", "detail"),
        [
            ("ioc:x", 0, Quality.GOOD, None),
            ("ioc:x", 60, Quality.UNCERTAIN, "MINOR HIGH"),
            ("ioc:x", 85, Quality.UNCERTAIN, "MAJOR HIHI"),
            ("ioc:x", -95, Quality.BAD, "INVALID LOLO"),
            ("ioc:mode", "Error", Quality.UNCERTAIN, "MAJOR STATE"),
        ],
    )
    async def test_the_alarm_of_a_record_is_the_quality(
        self, control: Control, record: str, value: Any, quality: Quality, detail: str | None
    ) -> None:
        await control.write(record, value)
        reading = await control.read(record)
        assert (reading.value, reading.quality, reading.quality_detail) == (value, quality, detail)

    async def test_a_record_that_never_had_a_value_is_bad_and_has_no_time(self, control: Control) -> None:
        reading = await control.read("ioc:unset")
        assert (reading.quality, reading.quality_detail, reading.sampled_at) == (Quality.BAD, "INVALID UDF", None)

    async def test_those_who_follow_hear_of_alarms(self, control: Control, soft_ioc: SoftIoc) -> None:
        soft_ioc.put("ioc:x", 0)
        stream = control.subscribe("ioc:x")
        heard = [await anext(stream)]
        for value in (60, 85, -95, 1):
            soft_ioc.put("ioc:x", value)
            heard.append(await anext(stream))
        await stream.aclose()
        assert [(each.value, each.quality_detail) for each in heard] == [
            (0, None),
            (60, "MINOR HIGH"),
            (85, "MAJOR HIHI"),
            (-95, "INVALID LOLO"),
            (1, None),
        ]
        assert {each.units for each in heard} == {"mm"}


class TestFollowing:
    async def test_choices_come_with_their_labels(self, control: Control, soft_ioc: SoftIoc) -> None:
        soft_ioc.put("ioc:mode", 0)
        stream = control.subscribe("ioc:mode")
        heard = [await anext(stream)]
        for index in (2, 3, 1):
            soft_ioc.put("ioc:mode", index)
            heard.append(await anext(stream))
        await stream.aclose()
        assert [(each.index, each.value) for each in heard] == [(0, "Idle"), (2, "Readout"), (3, "Error"), (1, "Acquire")]

    async def test_arrays_come_as_long_as_they_are(self, control: Control, observer: Control) -> None:
        await observer.write("ioc:spectrum", [0.5])
        stream = control.subscribe("ioc:spectrum")
        assert (await anext(stream)).value == [0.5]
        for values in ([1.5, 2.5, 3.5], [4.5]):
            await observer.write("ioc:spectrum", values)
            reading = await anext(stream)
            assert (reading.value, reading.kind, reading.units) == (values, ARRAY, "counts")
        await stream.aclose()


class TestWriting:
    async def test_a_confirmed_write_has_processed_the_records_behind_it(self, control: Control) -> None:
        before = (await control.read("ioc:motor:position")).value
        await control.write("ioc:motor", before + 1)
        assert (await control.read("ioc:motor:position")).value == before + 1

    async def test_a_record_that_takes_no_puts_rejects_them(self, control: Control) -> None:
        with pytest.raises(ControlWriteRejectedError, match="ioc:disabled"):
            await control.write("ioc:disabled", 2)
        assert (await control.read("ioc:disabled")).value == 1

    async def test_access_security_denies_a_write(self, control: Control) -> None:
        with pytest.raises(ControlAccessDeniedError, match="ioc:protected"):
            await control.write("ioc:protected", 2)
        assert (await control.read("ioc:protected")).value == 1


class TestLosingTheIoc:
    async def test_a_monitor_ends_with_the_ioc_and_follows_the_one_that_is_back(
        self, control: Control, soft_ioc: SoftIoc
    ) -> None:
        soft_ioc.put("ioc:mode", 1)
        stream = control.subscribe("ioc:mode")
        assert (await anext(stream)).value == "Acquire"
        soft_ioc.kill()
        with pytest.raises(ControlNotConnectedError, match="ioc:mode"):
            await anext(stream)
        soft_ioc.start()
        stream = control.subscribe("ioc:mode")
        assert (await anext(stream)).value == "Idle"
        soft_ioc.put("ioc:mode", 2)
        assert (await anext(stream)).value == "Readout"
        await stream.aclose()

    async def test_a_write_that_was_lost_with_the_ioc_is_not_sent_to_the_one_that_is_back(
        self, control: Control, soft_ioc: SoftIoc
    ) -> None:
        asked: list[None] = []
        soft_ioc.restart()
        await control.read("ioc:motor")
        soft_ioc.put("ioc:motor:move.DLY1", 600)
        writing = asyncio.ensure_future(control.write("ioc:motor", 5, timeout=90, fence=lambda: asked.append(None)))

        async def has_arrived() -> bool:
            return (await control.read("ioc:motor")).value == 5

        await until(has_arrived)
        soft_ioc.restart()
        with pytest.raises(ControlNotConnectedError, match="ioc:motor"):
            await writing
        assert ((await control.read("ioc:motor")).value, asked) == (0, [None])
