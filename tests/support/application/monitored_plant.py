"""A plant in memory, the monitors on it, and what the record makes of it; seconds are shortened, nothing else is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from baton.application.control import Quality, Reading
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals
from baton.application.ports import Caller, EventRow
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import monitor_in_background
from baton.domain.enclosure.enclosure import NAMES, EnclosureContact, RegisterEnclosure, enclosure_key
from baton.domain.kernel import Command
from baton.domain.supply.supply import ADDRESSES, RegisterSupply, address_key
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.postgres.pool import dedicated_connection
from baton.infrastructure.postgres.projections import Projector
from baton.infrastructure.wall_clock import new_id

HUTCH, PERMIT = "Imaging hutch B", "PSS:B:PERMIT"
QUICK = MonitorIntervals(refresh=30, resubscribe=0.05, retry=0.05, first_reading=0.3, sweep=30)
"""Repeats and sweeps only when a test asks for them, everything else at once."""
SYSTEM = Caller.system(UUID(int=7))


@dataclass
class MonitoredRecord:
    """The record of one database, read by claims and streams, never by a list that may be behind."""

    runtime: Runtime

    async def enclosure(self, name: str = HUTCH) -> UUID | None:
        return await self._holder(NAMES, enclosure_key(RegisterEnclosure(name=name, facility_code="facility")))

    async def permits(self, name: str = HUTCH) -> list[str]:
        """Every permit status recorded of an enclosure, oldest first."""
        return [row[0] for row in await self.observations(name)]

    async def permit(self, name: str = HUTCH) -> str:
        return (["Unknown", *await self.permits(name)])[-1]

    async def observations(self, name: str = HUTCH) -> list[tuple[str, str, str]]:
        """Every permit recorded of an enclosure: status, reason and source."""
        if (id := await self.enclosure(name)) is None:
            return []
        events = [_payload(row) for row in await self.events("Enclosure", id) if row.event_type == "EnclosurePermitObserved"]
        return [(event["to_status"], event["reason"], event["monitor_ref"]) for event in events]

    async def contact(self, name: str = HUTCH) -> Any:
        """When an enclosure was last observed."""
        async with self.runtime.store.session() as session:
            rows: Any = await session.records(EnclosureContact, {"enclosure_id": await self.enclosure(name)})
        return rows[0].contacted_at if rows else None

    async def supply(self, **address: Any) -> UUID | None:
        registration = RegisterSupply(**{"kind": "cryogen", "name": "Nitrogen", "facility_code": "facility", **address})
        return await self._holder(ADDRESSES, address_key(registration))

    async def supply_events(self, **address: Any) -> list[str]:
        """The types of everything recorded of a supply, oldest first."""
        id = await self.supply(**address)
        return [] if id is None else [row.event_type for row in await self.events("Supply", id)]

    async def events(self, stream_type: str, id: UUID) -> list[EventRow]:
        async with self.runtime.store.session() as session:
            return list(await session.history(stream_type, id, 0, 1000))

    async def do(self, command: Command, on: UUID | None = None) -> UUID | None:
        """Carry out a command as the service itself; answers the id of what it made."""
        executed = await self.runtime.service.execute(command, SYSTEM, target_id=on)
        return UUID(next(iter(executed.body.values()))) if executed.body else None

    async def projected(self) -> None:
        """Bring the lists up to the end of the log."""
        url = self.runtime.settings.database_url
        assert url
        async with await dedicated_connection(url, owner=True) as connection:
            await Projector(url).advance(connection)

    async def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement past the service."""
        url = self.runtime.settings.database_url
        assert url
        async with await dedicated_connection(url, owner=True) as connection:
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []

    def account(self, name: str = "EnclosureMonitor") -> MonitorAccount:
        return MonitorAccount(name, self.runtime.service, self.runtime.store, new_id)

    async def _holder(self, kind: str, key: str) -> UUID | None:
        async with self.runtime.store.session() as session:
            return (await session.holders(kind, [key])).get(key)


@asynccontextmanager
async def running(database_url: str, **settings: Any) -> AsyncIterator[MonitoredRecord]:
    """A process of the service without anything that monitors."""
    chosen = {"app_env": "test", "monitored_enclosures": {HUTCH: PERMIT}, **settings}
    async with Runtime(Settings(database_url=database_url, database_pool_size=6, **chosen)) as runtime:
        await runtime.plant_seeds()
        yield MonitoredRecord(runtime)


@asynccontextmanager
async def monitored(
    database_url: str, plant: Simulator, intervals: MonitorIntervals = QUICK, **settings: Any
) -> AsyncIterator[MonitoredRecord]:
    """A process that monitors a plant; a hutch with its permit signal is configured unless said otherwise."""
    async with running(database_url, **settings) as record, monitor_in_background(record.runtime, plant, intervals):
        yield record


def bad(value: Any) -> Reading:
    return Reading(value=value, quality=Quality.BAD)


def good(value: Any) -> Reading:
    return Reading(value=value)


def _payload(row: EventRow) -> dict[str, Any]:
    payload: dict[str, Any] = orjson.loads(row.payload)
    return payload
