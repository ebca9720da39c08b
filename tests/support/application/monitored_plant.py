"""A plant in memory, the monitors on it, and what the record makes of it; seconds are shortened, nothing else is."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import orjson

from baton.application.authorization import PermissiveAuthorizer, PolicyAuthorizer, PrincipalStatuses
from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.control import Quality, Reading
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals
from baton.application.monitoring.observations import ControlObserver, permit_signals, supply_signals
from baton.application.monitoring.plant_monitors import EnclosureMonitor, StalePermits, SupplyMonitor
from baton.application.ports import Authorizer, EventRow, Store
from baton.application.queries import Queries
from baton.application.seeds import Seeds
from baton.application.service import Service
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import monitor_in_background
from baton.domain.enclosure.enclosure import (
    NAMES,
    EnclosureContact,
    ObserveEnclosureStatus,
    RegisterEnclosure,
    enclosure_key,
)
from baton.domain.kernel import Command
from baton.domain.supply.supply import ADDRESSES, RegisterSupply, SupplyContact, address_key
from baton.domain.trust.conduit import ConduitVerdict
from baton.domain.trust.policy import Policy
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.postgres.pool import dedicated_connection
from baton.infrastructure.postgres.projections import Projector
from baton.infrastructure.wall_clock import clock, new_id
from baton.testing.ports import MemoryEngine
from baton.testing.store import MemoryStore, MemoryVerdictLog
from tests.support.application.ports import ports_of
from tests.support.domain.world import LENIENT

HUTCH, PERMIT = "Imaging hutch B", "PSS:B:PERMIT"
QUICK = MonitorIntervals(refresh=30, resubscribe=0.05, retry=0.05, first_reading=0.3, sweep=30)
"""Repeats and sweeps only when a test asks for them, everything else at once."""
TIME_TO_LIVE = timedelta(seconds=120)
SYSTEM = Caller.system(UUID(int=7))
BRIDGE = {"source_kind": "Bridge", "source_id": "gateway"}


@dataclass
class MonitoredRecord(ABC):
    """The record of a monitored plant, read by claims and streams, never by a list that may be behind."""

    store: Store
    service: Service

    async def enclosure(self, name: str = HUTCH) -> UUID | None:
        return await self._holder(NAMES, enclosure_key(RegisterEnclosure(name=name, facility_code="facility")))

    async def permits(self, name: str = HUTCH) -> list[str]:
        """Return every permit status recorded of an enclosure, oldest first."""
        return [row[0] for row in await self.observations(name)]

    async def permit(self, name: str = HUTCH) -> str:
        return (["Unknown", *await self.permits(name)])[-1]

    async def observations(self, name: str = HUTCH) -> list[tuple[str, str, str]]:
        """Return every permit recorded of an enclosure: status, reason and source."""
        if (id := await self.enclosure(name)) is None:
            return []
        events = [_payload(row) for row in await self.events("Enclosure", id) if row.event_type == "EnclosurePermitObserved"]
        return [(event["to_status"], event["reason"], event["monitor_ref"]) for event in events]

    async def contact(self, name: str = HUTCH) -> Any:
        """Return when an enclosure was last observed."""
        async with self.store.session() as session:
            rows: Any = await session.records(EnclosureContact, {"enclosure_id": await self.enclosure(name)})
        return rows[0].contacted_at if rows else None

    async def supply(self, **address: Any) -> UUID | None:
        registration = RegisterSupply(**{"kind": "cryogen", "name": "Nitrogen", "facility_code": "facility", **address})
        return await self._holder(ADDRESSES, address_key(registration))

    async def supply_contact(self, **address: Any) -> Any:
        """Return when a supply was last observed."""
        async with self.store.session() as session:
            rows: Any = await session.records(SupplyContact, {"supply_id": await self.supply(**address)})
        return rows[0].contacted_at if rows else None

    async def supply_events(self, **address: Any) -> list[str]:
        """Return the types of everything recorded of a supply, oldest first."""
        id = await self.supply(**address)
        return [] if id is None else [row.event_type for row in await self.events("Supply", id)]

    async def events(self, stream_type: str, id: UUID) -> list[EventRow]:
        async with self.store.session() as session:
            return list(await session.history(stream_type, id, 0, 1000))

    async def do(self, command: Command, on: UUID | None = None) -> UUID | None:
        """Execute a command as the service itself; return the id of what it made."""
        executed = await self.service.execute(command, SYSTEM, target_id=on)
        return UUID(next(iter(executed.body.values()))) if executed.body else None

    async def add_bridged_enclosure(self, name: str, *, age: float, status: str = "Permitted") -> UUID:
        """Register an enclosure that a bridge outside reported so many seconds ago."""
        id = await self.do(RegisterEnclosure(name=name, facility_code="facility"))
        assert id
        await self.observe(id, status)
        await self.age_contact(id, age)
        return id

    async def observe(self, id: UUID, status: str) -> None:
        """Report the permit of an enclosure as the bridge does."""
        await self.do(ObserveEnclosureStatus(new_status=status, reason="as read", monitor_ref=BRIDGE), id)

    @abstractmethod
    async def age_contact(self, id: UUID, seconds: float) -> None:
        """Move the last observation of an enclosure so many seconds into the past."""

    async def sweep(self) -> None:
        """Look for stale permits once, in the lists as they are."""
        await StalePermits(self.account(), clock, TIME_TO_LIVE, 60).sweep()

    def account(self, name: str = "EnclosureMonitor") -> MonitorAccount:
        return MonitorAccount(name, self.service, self.store, new_id)

    async def _holder(self, kind: str, key: str) -> UUID | None:
        async with self.store.session() as session:
            return (await session.holders(kind, [key])).get(key)


@dataclass
class MemoryRecord(MonitoredRecord):
    """The record in memory; its lists are never behind."""

    store: MemoryStore
    settled: set[str] = field(default_factory=set)
    """The enclosures that the monitor has settled since it started last."""

    async def age_contact(self, id: UUID, seconds: float) -> None:
        ((_, row),) = [item for item in self.store.rows.items() if getattr(item[1], "enclosure_id", None) == id]
        assert isinstance(row, EnclosureContact)
        self.store.put(replace(row, contacted_at=row.contacted_at - timedelta(seconds=seconds)))

    def verdict_count(self, command_name: str, decision: str) -> int:
        """Return how often a command of the monitors was judged so."""
        verdicts: Any = self.store.entries[ConduitVerdict.relation]
        return sum((one.command_name, one.decision) == (command_name, decision) for one in verdicts)

    def policy_of(self, principal_id: UUID) -> UUID:
        """Return the policy that names a principal."""
        policies = [stream for stream in self.store.streams if stream[0] == Policy.__name__]
        (found,) = [id for kind, id in policies if str(principal_id) in self.store.streams[kind, id][0].payload]
        return found

    @asynccontextmanager
    async def running_monitors(
        self,
        plant: Simulator,
        intervals: MonitorIntervals = QUICK,
        enclosures: Mapping[str, str] = {HUTCH: PERMIT},
        supplies: Sequence[Mapping[str, Any]] = (),
    ) -> AsyncIterator[None]:
        """Monitor a plant while the block lasts, with the monitors that a worker runs."""
        settings = Settings(app_env="test", monitored_enclosures=dict(enclosures), monitored_supplies=list(supplies))
        permits, nitrogen = settings.monitored_enclosures, settings.monitored_supplies
        self.settled.clear()

        async def report_settled(name: str) -> None:
            self.settled.add(name)

        observer = ControlObserver(plant, permit_signals(permits))
        enclosure_monitor = EnclosureMonitor(self.account(), observer, "facility", permits, report_settled, intervals)
        observer = ControlObserver(plant, supply_signals(nitrogen))
        supply_monitor = SupplyMonitor(self.account("SupplyMonitor"), observer, "facility", nitrogen, intervals)
        tasks = [asyncio.create_task(monitor.run()) for monitor in (enclosure_monitor, supply_monitor)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await enclosure_monitor.stop()


async def seeded_memory(*, enforced: bool = False) -> MemoryRecord:
    """Return a record in memory with the seeds of a deployment; `enforced` judges by policies."""
    store = MemoryStore()
    await Seeds(store, clock, new_id).plant(facility_code="facility", bootstrap_principal_id=None)
    authorizer: Authorizer = PermissiveAuthorizer(PrincipalStatuses(store))
    if enforced:
        authorizer = PolicyAuthorizer(store, MemoryVerdictLog(store))
    facts = {"enclosure_observation_ttl": TIME_TO_LIVE, "monitored_supplies": ()}

    async def deployment() -> Any:
        return SimpleNamespace(**LENIENT, **facts)

    ports = ports_of(deployment=deployment)
    commands = Commands(store, authorizer, clock, new_id, ports)
    queries = Queries(store, authorizer, clock, new_id, ports)
    return MemoryRecord(store, Service(commands, queries, authorizer, MemoryEngine(), {}))


@dataclass
class DatabaseRecord(MonitoredRecord):
    """The record of one database, as a process of the service sees it."""

    runtime: Runtime

    async def age_contact(self, id: UUID, seconds: float) -> None:
        earlier = (
            "UPDATE enclosure_contact SET contacted_at = contacted_at - make_interval(secs => %s) WHERE enclosure_id = %s"
        )
        await self.execute(earlier, seconds, id)

    async def project(self) -> None:
        """Bring the lists up to the end of the log."""
        async with await dedicated_connection(self.runtime.database_url, owner=True) as connection:
            await Projector(self.runtime.database_url).advance(connection)

    async def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement past the service."""
        async with await dedicated_connection(self.runtime.database_url, owner=True) as connection:
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []


@asynccontextmanager
async def running_service(database_url: str, **settings: Any) -> AsyncIterator[DatabaseRecord]:
    """Run a process of the service without anything that monitors."""
    chosen = {"app_env": "test", "monitored_enclosures": {HUTCH: PERMIT}, **settings}
    async with Runtime(Settings(database_url=database_url, database_pool_size=6, **chosen)) as runtime:
        await runtime.plant_seeds()
        yield DatabaseRecord(runtime.store, runtime.service, runtime)


@asynccontextmanager
async def monitored_service(
    database_url: str, plant: Simulator, intervals: MonitorIntervals = QUICK, **settings: Any
) -> AsyncIterator[DatabaseRecord]:
    """Run a process that monitors a plant; a hutch with its permit signal is configured unless said otherwise."""
    async with running_service(database_url, **settings) as record, monitor_in_background(record.runtime, plant, intervals):
        yield record


def bad(value: Any) -> Reading:
    return Reading(value=value, quality=Quality.BAD)


def good(value: Any) -> Reading:
    return Reading(value=value)


def _payload(row: EventRow) -> dict[str, Any]:
    payload: dict[str, Any] = orjson.loads(row.payload)
    return payload
