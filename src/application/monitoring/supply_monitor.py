"""The supply monitor: records what the plant's signals say of the configured supplies.

A monitor may report a supply worse, or recovering; that it is there again is a person's word. Where signals say nothing, the
last status stands.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from uuid import UUID

import structlog

from baton.application.control import ControlError
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals, ReportPace, followed
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


class SupplyMonitor:
    """Watches the configured supplies, each by its own signal."""

    def __init__(
        self,
        account: MonitorAccount,
        observer: Observer,
        facility_code: str,
        supplies: Iterable[MonitoredSupply],
        intervals: MonitorIntervals,
    ) -> None:
        self._account = account
        self._observer = observer
        self._facility_code = facility_code
        self._supplies = tuple(supplies)
        self._intervals = intervals

    async def run(self) -> None:
        """Watch every supply until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for supply in self._supplies:
                tasks.create_task(self._watch(supply))

    async def _watch(self, supply: MonitoredSupply) -> None:
        registration = registration_of(supply, self._facility_code)
        claim = (ADDRESSES, address_key(registration))
        id = await self._account.registered(registration, claim, self._intervals.resubscribe)
        while True:
            try:
                await self._follow(supply.code, id)
                log.warning("supply_observer_ended", supply_id=str(id))
            except ControlError as error:
                log.warning("supply_observer_lost", supply_id=str(id), why=str(error))
            except Exception as error:
                log.error("supply_observer_failed", supply_id=str(id), **error_location(error))
            await asyncio.sleep(self._intervals.resubscribe)

    async def _follow(self, code: str, id: UUID) -> None:
        """Record what is observed until the stream ends.

        Recovering says no more than that the signal is clear, which matters to an Unavailable supply only.
        """
        pace, said = ReportPace(self._intervals), None
        async with aclosing(followed(self._observer, code, SupplyStatus, pace)) as observed:
            async for status, observation in observed:
                if pace.due(changed=status is not said):
                    needless = MarkSupplyRecovering.Cannot
                    pace.reported(await self._account.report(ObserveSupplyStatus, id, observation, needless))
                    said = status


def registration_of(supply: MonitoredSupply, own_facility_code: str) -> RegisterSupply:
    """The command that makes a configured supply known."""
    return RegisterSupply(
        kind=supply.kind,
        name=supply.name,
        facility_code=supply.facility_code or own_facility_code,
        containing_asset_id=supply.containing_asset_id,
    )
