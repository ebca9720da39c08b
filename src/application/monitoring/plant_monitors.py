"""The permit monitor records what the interlock's signals say of enclosures, and Unknown where a signal is not followed; the
sweep of stale permits records Unknown when the last observation is too old, whatever its source. The supply monitor reports
supplies worse or recovering, and confirms those whose signal can be trusted; only a person declares one available again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from baton.application.control import ControlError
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals, ReportOutcome, ReportPace, follow_signal
from baton.application.monitoring.observations import Observer, SignalObservation, printable
from baton.application.plant import MonitoredSupply
from baton.application.ports import Clock
from baton.application.telemetry import error_location
from baton.domain.enclosure import enclosure as enclosures
from baton.domain.enclosure.enclosure import EnclosurePermitStatus, ObserveEnclosureStatus
from baton.domain.supply import supply as supplies
from baton.domain.supply.supply import RegisterSupply

log = structlog.get_logger()
ENCLOSURE_MONITOR = "EnclosureMonitor"
UNKNOWN = EnclosurePermitStatus.UNKNOWN
LONGEST_REASON = 500
STOP_SECONDS = 2.0  # how long a stopping monitor tries to record that nobody observes any longer
PAGE = 100
SUPPLY_MONITOR = "SupplyMonitor"


@dataclass
class WatchedEnclosure:
    """One enclosure, and the status that its monitor knows to be recorded."""

    name: str
    id: UUID
    pace: ReportPace
    recorded: EnclosurePermitStatus | None = None
    read: asyncio.Event = field(default_factory=asyncio.Event)  # A first reading that says yes or no was recorded
    recording: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass
class EnclosureMonitor:
    """Records the permits of the configured enclosures, and reports when each is settled after the start."""

    account: MonitorAccount
    observer: Observer
    facility_code: str
    names: Iterable[str]
    report_settled: Callable[[str], Awaitable[None]]
    intervals: MonitorIntervals
    _watched: list[WatchedEnclosure] = field(default_factory=list)

    async def run(self) -> None:
        """Watch every enclosure until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name in self.names:
                tasks.create_task(self._watch(name))

    async def stop(self) -> None:
        """Record that nobody observes any longer, as far as that is possible quickly; who leads no more records nothing."""
        leaving = (self._lose(watched, "The monitor stopped.") for watched in self._watched)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(*leaving, return_exceptions=True)

    async def _watch(self, name: str) -> None:
        registration = enclosures.RegisterEnclosure(name=name, facility_code=self.facility_code)
        claim = (enclosures.NAMES, enclosures.enclosure_key(registration))
        id = await self.account.ensure_registered(registration, claim, self.intervals.resubscribe)
        watched = WatchedEnclosure(name, id, ReportPace(self.intervals, unasked=True))
        self._watched.append(watched)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._settle(watched))
            tasks.create_task(self._follow(watched))

    async def _settle(self, watched: WatchedEnclosure) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.intervals.first_reading):
                await watched.read.wait()
        while not watched.read.is_set():
            async with watched.recording:
                if watched.recorded is None:
                    why = "No reading came since the monitor started."
                    await self._record(watched, UNKNOWN, unknown_permit(watched.name, why))
                if watched.recorded is not None:
                    break
            await asyncio.sleep(self.intervals.retry)
        await self.report_settled(watched.name)
        log.info("enclosure_settled", enclosure_id=str(watched.id), permit_status=watched.recorded)

    async def _follow(self, watched: WatchedEnclosure) -> None:
        """Subscribe, again and again; while there is no subscription the permit is Unknown."""
        while True:
            await self._lose(watched, await self._until_lost(watched))
            await asyncio.sleep(self.intervals.retry if watched.pace.failed else self.intervals.resubscribe)

    async def _until_lost(self, watched: WatchedEnclosure) -> str:
        following = follow_signal(self.observer, watched.name, EnclosurePermitStatus, watched.pace)
        try:
            async with aclosing(following) as observed:
                async for status, observation in observed:
                    async with watched.recording:
                        if watched.pace.due(changed=status is not watched.recorded):
                            await self._record(watched, status, observation)
        except ControlError as error:
            return f"The permit signal was lost: {error}"
        except Exception as error:
            log.error("permit_observer_failed", enclosure_id=str(watched.id), **error_location(error))
            return f"The permit's observer failed with {type(error).__name__}."
        return "The permit signal ended."

    async def _lose(self, watched: WatchedEnclosure, why: str) -> None:
        async with watched.recording:
            if watched.recorded is not UNKNOWN:
                log.warning("permit_lost", enclosure_id=str(watched.id), why=why)
                await self._record(watched, UNKNOWN, unknown_permit(watched.name, why))

    async def _record(
        self, watched: WatchedEnclosure, status: EnclosurePermitStatus, observation: SignalObservation
    ) -> None:
        watched.recorded = None  # unknown until the report is answered
        source = {"observed_at": possible_time(observation.observed_at), "nothing_read": observation.nothing_read}
        needless = ObserveEnclosureStatus.Cannot
        outcome = await self.account.report(ObserveEnclosureStatus, watched.id, observation, needless, **source)
        watched.pace.start_interval(outcome)
        if outcome is ReportOutcome.RECORDED:
            watched.recorded = status
            if status is not UNKNOWN:
                watched.read.set()


def possible_time(observed_at: datetime | None) -> datetime | None:
    """Return when a source observed, or None where its clock is so far ahead that the time would be refused: what it
    observes counts all the same."""
    is_ahead = observed_at is not None and observed_at - datetime.now(UTC) > enclosures.CLOCK_LEAD / 2
    return None if is_ahead else observed_at


def unknown_permit(code: str, why: str, source_id: str = ENCLOSURE_MONITOR) -> SignalObservation:
    """Return the service's own observation of a permit that no observer reads."""
    reason = printable(why, LONGEST_REASON)
    return SignalObservation(
        code=code, observed_status=UNKNOWN, reason=reason, source_kind="Monitor", source_id=source_id, nothing_read=True
    )


@dataclass
class StalePermits:
    """Looks for Active enclosures whose last observation is too old; one process does so for all."""

    account: MonitorAccount
    clock: Clock
    time_to_live: timedelta
    interval: float

    async def run(self) -> None:
        """Sweep until cancelled; observers have the first interval to report."""
        while True:
            await asyncio.sleep(self.interval)
            try:
                await self.sweep()
            except Exception as error:
                log.error("permit_sweep_failed", **error_location(error))

    async def sweep(self) -> None:
        """Record Unknown for every enclosure that is unobserved by the list and by its stream."""
        cursor: str | None = None
        while True:
            query = enclosures.ListEnclosures(lifecycle=enclosures.EnclosureLifecycle.ACTIVE, limit=PAGE, cursor=cursor)
            page = await self.account.ask(query)
            for row in page.items:
                age = None if row.last_contact_at is None else (self.clock() - row.last_contact_at).total_seconds()
                if row.permit_status is not UNKNOWN and self._too_old(age):
                    await self._judge(row.enclosure_id)
            if (cursor := page.next_cursor) is None:
                return

    async def _judge(self, id: UUID) -> None:
        enclosure = await self.account.ask(enclosures.GetEnclosure(), id)
        assert isinstance(enclosure, enclosures.EnclosureView), "the present is asked for"
        age, live = enclosure.observation_age, enclosure.lifecycle is enclosures.EnclosureLifecycle.ACTIVE
        if live and enclosure.permit_status is not UNKNOWN and self._too_old(age):
            when = "never" if age is None else f"last {age:.0f} s ago"
            observation = unknown_permit(enclosure.name, f"The permit was observed {when}.", "ObservationAge")
            needless = ObserveEnclosureStatus.Cannot
            await self.account.report(ObserveEnclosureStatus, id, observation, needless, nothing_read=True)

    def _too_old(self, age: float | None) -> bool:
        return age is None or abs(age) > self.time_to_live.total_seconds()


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
        claim = (supplies.ADDRESSES, supplies.address_key(registration))
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
        """Record what is observed until the stream ends, each reading that a rule fits once, since a person's word stands
        until the signal speaks again. In between confirm the supply, as long as its latest reading can be trusted."""
        pace = ReportPace(self.intervals, unasked=True)
        fitting: SignalObservation | None = None  # the latest that a rule fits
        reported: SignalObservation | None = None
        async with aclosing(follow_signal(self.observer, code, supplies.SupplyStatus, pace)) as observed:
            async for status, observation in observed:
                fitting = fitting if status is supplies.UNKNOWN else observation
                if pace.due(changed=_status_of(fitting) != _status_of(reported)):
                    confirmation = replace(observation, observed_status=supplies.UNKNOWN)
                    news = confirmation if fitting is None or fitting is reported else fitting
                    pace.start_interval(await self._report(id, news))
                    reported = reported if pace.failed else fitting

    async def _report(self, id: UUID, observation: SignalObservation) -> ReportOutcome:
        """Record an observation; where the reading cannot be trusted there is nothing to record."""
        if observation.nothing_read:
            return ReportOutcome.RECORDED
        return await self.account.report(supplies.ObserveSupplyStatus, id, observation, confirms=True)


def _status_of(observation: SignalObservation | None) -> str | None:
    return None if observation is None else observation.observed_status


def registration_of(supply: MonitoredSupply, own_facility_code: str) -> RegisterSupply:
    """Return the command that registers a configured supply."""
    code, asset_id = supply.facility_code or own_facility_code, supply.containing_asset_id
    return RegisterSupply(kind=supply.kind, name=supply.name, facility_code=code, containing_asset_id=asset_id)
