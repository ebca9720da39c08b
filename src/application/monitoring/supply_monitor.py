"""The supply monitor: reports supplies worse or recovering; only a person declares one available again."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

import structlog

from baton.application.control import ControlError
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals, ReportPace, follow_signal
from baton.application.monitoring.observations import Observer
from baton.application.plant import MonitoredSupply
from baton.application.telemetry import error_location
from baton.domain.supply.supply import (
    ADDRESSES,
    MarkSupplyRecovering,
    ObserveSupplyStatus,
    RegisterSupply,
    SupplyStatus,
    address_key,
)

log = structlog.get_logger()

SUPPLY_MONITOR = "SupplyMonitor"


@dataclass
class SupplyMonitor:
    account: MonitorAccount
    observer: Observer
    facility_code: str
    supplies: Iterable[MonitoredSupply]
    intervals: MonitorIntervals

    async def run(self) -> None:
        """Watch every supply until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for supply in self.supplies:
                tasks.create_task(self._watch(supply))

    async def _watch(self, supply: MonitoredSupply) -> None:
        registration = registration_of(supply, self.facility_code)
        claim = (ADDRESSES, address_key(registration))
        id = await self.account.ensure_registered(registration, claim, self.intervals.resubscribe)
        while True:
            try:
                await self._follow(supply.code, id)
                log.warning("supply_observer_ended", supply_id=str(id))
            except ControlError as error:
                log.warning("supply_observer_lost", supply_id=str(id), why=str(error))
            except Exception as error:
                log.error("supply_observer_failed", supply_id=str(id), **error_location(error))
            await asyncio.sleep(self.intervals.resubscribe)

    async def _follow(self, code: str, id: UUID) -> None:
        """Record what is observed until the stream ends; Recovering matters to an Unavailable supply only."""
        pace, reported = ReportPace(self.intervals), None
        async with aclosing(follow_signal(self.observer, code, SupplyStatus, pace)) as observed:
            async for status, observation in observed:
                if pace.due(changed=status is not reported):
                    needless = MarkSupplyRecovering.Cannot
                    pace.start_interval(await self.account.report(ObserveSupplyStatus, id, observation, needless))
                    reported = status


def registration_of(supply: MonitoredSupply, own_facility_code: str) -> RegisterSupply:
    """Return the command that registers a configured supply."""
    code, asset_id = supply.facility_code or own_facility_code, supply.containing_asset_id
    return RegisterSupply(kind=supply.kind, name=supply.name, facility_code=code, containing_asset_id=asset_id)
