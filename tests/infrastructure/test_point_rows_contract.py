"""The rows that points follow from, asked of the ledger in memory and the one on PostgreSQL alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from baton.application.ports import Store
from baton.domain.conduct.ledger import PointPlace, PointRow, WalkedSpan
from baton.domain.conduct.messages import Mark, StepPlace
from baton.infrastructure.postgres.conduct_reader import PostgresConductReader
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.ledger import MemoryLedger
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller, HandSetClock
from tests.support.domain.world import START
from tests.support.infrastructure.ledger_cases import PORTS, LedgerCase, LedgerConduct, row

AXES = ("x", "y")
FIRST = PointPlace(0, 0, ())


async def no_time(seconds: float) -> None:
    raise AssertionError("nothing here takes time")


@dataclass(frozen=True)
class PointRowCase:
    """A ledger, and who reads the rows of points from it."""

    case: LedgerCase
    reader: MemoryLedger | PostgresConductReader

    async def settle(self, place: StepPlace, kind: str, mark: Mark = Mark.OUTCOME, **says: Any) -> None:
        await self.case.ledger.settle(row(place, mark, kind=kind, **says))

    async def read(
        self, spans: Sequence[WalkedSpan], place: PointPlace = FIRST, limit: int = 100, axes: Sequence[str] = AXES
    ) -> Sequence[PointRow]:
        return await self.reader.point_rows(spans, axes, place, limit)

    async def places(self, *given: Any, **options: Any) -> list[tuple[int, int]]:
        """Return the pass and the step of what is read."""
        return [(one.iteration_index, one.step_index) for one in await self.read(*given, **options)]


@pytest.fixture
def rows(store: Store) -> PointRowCase:
    clock = HandSetClock(datetime.now(UTC))
    client = CommandCaller(store, ports=PORTS, clock=clock)
    if isinstance(store, MemoryStore):
        ledger = MemoryLedger(store, clock)
        return PointRowCase(LedgerCase(client, ledger, no_time), ledger)
    assert isinstance(store, PostgresStore)
    return PointRowCase(LedgerCase(client, PostgresLedger(store), no_time), PostgresConductReader(store))


def whole(conduct: LedgerConduct) -> list[WalkedSpan]:
    return [WalkedSpan(conduct.conduct_id, 0, 1000)]


async def test_rows_say_what_was_set_and_measured(rows: PointRowCase) -> None:
    conduct = await rows.case.open_conduct()
    read = {"value": 1.01, "units": "mm", "quality": "Good"}
    await rows.settle(conduct.at(0), "setpoint", address="x", value=1, unit="um", post_reading=read)
    converted = {"value": 0.001, "unit": "mm"}
    await rows.settle(conduct.at(1), "setpoint", address="y", value=1, unit="um", converted=converted)
    flux = {"value": 5.0, "units": "counts", "quality": "Uncertain"}
    await rows.settle(conduct.at(2), "capture", address="i0", capture_name="flux", captured_value=5.0, reading=flux)
    broken = {"capture_name": "dose", "reading": {"value": "nan", "units": "counts", "quality": "Bad"}}
    await rows.settle(conduct.at(3), "capture", address="i1", result="failed", **broken)
    measured = [{"name": "sum", "value": 7, "kind": "Scalar", "units": "px", "quality": "Good"}]
    await rows.settle(conduct.at(4), "compute", measurements=measured, artifacts=[{"uri": "file:///tmp/fit.h5"}])
    await rows.settle(conduct.at(5), "action", skipped=True, measurements=[])
    found = [one._replace(recorded_at=START, outputs=tuple(one.outputs)) for one in await rows.read(whole(conduct))]
    assert found == [
        PointRow(0, 0, "setpoint", True, START, "x", 1, "mm", 1.01),
        PointRow(0, 1, "setpoint", True, START, "y", 0.001, "mm"),
        PointRow(0, 2, "capture", True, START, "i0", 5.0, "counts", 5.0, "Uncertain", "flux"),
        PointRow(0, 3, "capture", False, START, "i1", None, "counts", "nan", "Bad", "dose"),
        PointRow(0, 4, "compute", True, START, measurements=measured, outputs=("fit.h5",)),
        PointRow(0, 5, "action", False, START),
    ]


async def test_what_tells_of_no_point_is_left_out(rows: PointRowCase) -> None:
    conduct = await rows.case.open_conduct()
    await rows.settle(conduct.at(0), "setpoint", address="shutter", value=1)
    await rows.settle(conduct.at(1), "check", address="beam")
    await rows.settle(conduct.at(2), "action", name="wait")
    await rows.settle(conduct.at(3), "setpoint", Mark.IN_FLIGHT, address="x", value=1)
    await rows.settle(conduct.at(3, closing=True), "capture", address="i0", capture_name="after")
    await rows.settle(conduct.at(4), "capture", address="i0", capture_name="flux")
    assert await rows.places(whole(conduct)) == [(0, 4)]


async def test_reading_begins_at_a_place_with_the_steps_that_set_the_axes_last(rows: PointRowCase) -> None:
    conduct = await rows.case.open_conduct()
    for index in range(1, 4):
        await rows.settle(conduct.at(0, index), "setpoint", address="y", value=index)
        await rows.settle(conduct.at(1, index), "setpoint", address="x", value=index)
        await rows.settle(conduct.at(2, index), "capture", address="i0", capture_name="flux")
    later = [(2, 2), *((3, step) for step in range(3))]
    assert await rows.places(whole(conduct), PointPlace(2, 2, ())) == later
    assert await rows.places(whole(conduct), PointPlace(2, 2, (0, 1))) == [(2, 0), (2, 1), *later]
    assert await rows.places(whole(conduct), PointPlace(2, 2, (0,)), limit=2) == [(2, 0), *later[:2]]


async def test_of_each_conduct_the_steps_are_read_that_no_later_one_walked(rows: PointRowCase) -> None:
    held = await rows.case.open_conduct()
    taken_up = await rows.case.resume_conduct(held, boundary=2)
    for conduct, first in ((held, 0), (taken_up, 2)):
        for index in range(first, 4):
            await rows.settle(conduct.at(index), "capture", address="i0", capture_name=f"{first} {index}")
    spans = [WalkedSpan(held.conduct_id, 0, 2), WalkedSpan(taken_up.conduct_id, 2, 1000)]
    assert [one.capture_name for one in await rows.read(spans)] == ["0 0", "0 1", "2 2", "2 3"]
    assert [one.capture_name for one in await rows.read(spans, limit=3)] == ["0 0", "0 1", "2 2"]
    assert await rows.read([]) == []
