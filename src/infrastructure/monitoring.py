"""The monitors of a process: wired to the control system, and run by one process for all."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial

from baton.application.control import Control
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals
from baton.application.monitoring.observations import ControlObserver, permit_signals, supply_signals
from baton.application.monitoring.permit_monitor import ENCLOSURE_MONITOR, EnclosureMonitor
from baton.application.monitoring.stale_permits import StalePermits
from baton.application.monitoring.supply_monitor import SUPPLY_MONITOR, SupplyMonitor
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, lead, note_settled
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.runtime import Runtime, clock, new_id

INTERVALS = MonitorIntervals()


def monitoring(runtime: Runtime, control: Control, intervals: MonitorIntervals = INTERVALS) -> AbstractAsyncContextManager[None]:
    """Monitor the plant beside whatever else the process does, whenever it is this process's turn."""
    work = partial(monitor, runtime, control, intervals)
    return runtime.supervisor.supervise("monitoring", partial(lead, runtime.database_url, MONITOR_LOCK, work))


async def monitor(runtime: Runtime, control: Control, intervals: MonitorIntervals, connection: Connection) -> None:
    """Observe what is configured and sweep what nobody observes, as the leader of this session, until cancelled."""
    settings = runtime.settings
    await runtime.plant_seeds()

    async def settled(name: str) -> None:
        await note_settled(connection, name)

    def account(name: str) -> MonitorAccount:
        return MonitorAccount(name, runtime.service, runtime.store, new_id)

    time_to_live = timedelta(seconds=settings.enclosure_observation_ttl_seconds)
    facility, supplies, permits = settings.self_facility_code, settings.monitored_supplies, settings.monitored_enclosures
    watch_permits = EnclosureMonitor(
        account(ENCLOSURE_MONITOR),
        ControlObserver(control, permit_signals(permits)),
        facility,
        permits,
        settled,
        intervals.refreshing_within(time_to_live),
    )
    watch_supplies = SupplyMonitor(
        account(SUPPLY_MONITOR), ControlObserver(control, supply_signals(supplies)), facility, supplies, intervals
    )
    sweep = StalePermits(account(ENCLOSURE_MONITOR), clock, time_to_live, intervals.sweep)
    try:
        async with asyncio.TaskGroup() as tasks:
            for work in (watch_permits.run, watch_supplies.run, sweep.run):
                tasks.create_task(work())
    finally:
        if not connection.closed:  # whoever lost the session leads no longer, and another may have spoken since
            await watch_permits.leave()
