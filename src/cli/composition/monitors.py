"""The monitors of a worker: wired to the control system; one worker of all runs them."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial

from baton.application.control import Control
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals
from baton.application.monitoring.observations import ControlObserver, permit_signals, supply_signals
from baton.application.monitoring.permit_monitor import ENCLOSURE_MONITOR, EnclosureMonitor, StalePermits
from baton.application.monitoring.supply_monitor import SUPPLY_MONITOR, SupplyMonitor
from baton.cli.composition.runtime import Runtime
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, lead, mark_settled
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.wall_clock import clock, new_id

INTERVALS = MonitorIntervals()


def monitor_in_background(
    runtime: Runtime, control: Control, intervals: MonitorIntervals = INTERVALS
) -> AbstractAsyncContextManager[None]:
    """Monitor the plant while the block lasts, in one worker of all."""
    work = partial(monitor, runtime, control, intervals)
    return runtime.supervisor.supervise("monitoring", partial(lead, runtime.database_url, MONITOR_LOCK, work))


async def monitor(runtime: Runtime, control: Control, intervals: MonitorIntervals, connection: Connection) -> None:
    """Observe what is configured and expire stale permits, as the leader of this session, until cancelled."""
    settings = runtime.settings
    await runtime.plant_seeds()

    def account(name: str) -> MonitorAccount:
        return MonitorAccount(name, runtime.service, runtime.store, new_id)

    time_to_live = timedelta(seconds=settings.enclosure_observation_ttl_seconds)
    facility, supplies, permits = settings.self_facility_code, settings.monitored_supplies, settings.monitored_enclosures
    note_settled, refreshing = partial(mark_settled, connection), intervals.refreshing_within(time_to_live)
    observer = ControlObserver(control, permit_signals(permits))
    enclosures = account(ENCLOSURE_MONITOR)
    watch_permits = EnclosureMonitor(enclosures, observer, facility, permits, note_settled, refreshing)
    observer = ControlObserver(control, supply_signals(supplies))
    watch_supplies = SupplyMonitor(account(SUPPLY_MONITOR), observer, facility, supplies, intervals)
    sweep = StalePermits(enclosures, clock, time_to_live, intervals.sweep)
    try:
        async with asyncio.TaskGroup() as tasks:
            for work in (watch_permits.run, watch_supplies.run, sweep.run):
                tasks.create_task(work())
    finally:
        if not connection.closed:  # without the session this worker leads no longer, and another may have written since
            await watch_permits.stop()
