"""The permit monitor: records what the interlock's signals say of the configured enclosures.

The record is never better than what is observed: while a signal is not followed, its enclosure is Unknown.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from baton.application.control import ControlError
from baton.application.monitoring.monitors import MonitorAccount, MonitorIntervals, ReportOutcome, ReportPace, followed
from baton.application.monitoring.observations import SignalObservation, Observer, printable
from baton.application.telemetry import error_location
from baton.domain.enclosure.enclosure import (
    NAMES,
    EnclosurePermitStatus,
    ObserveEnclosureStatus,
    RegisterEnclosure,
    name_key,
)

log = structlog.get_logger()

ENCLOSURE_MONITOR = "EnclosureMonitor"
UNKNOWN = EnclosurePermitStatus.UNKNOWN
LONGEST_REASON = 500
FAREWELL = 2.0
"""Seconds that a monitor which is told to stop has to say that nobody observes any longer."""


@dataclass
class WatchedEnclosure:
    """One enclosure, and what its monitor knows to be recorded of it."""

    name: str
    id: UUID
    pace: ReportPace
    recorded: EnclosurePermitStatus | None = None
    read: asyncio.Event = field(default_factory=asyncio.Event)
    """A first reading that says yes or no was recorded."""
    recording: asyncio.Lock = field(default_factory=asyncio.Lock)


class EnclosureMonitor:
    """Records the permits of the configured enclosures, and tells when each is settled after the start."""

    def __init__(
        self,
        account: MonitorAccount,
        observer: Observer,
        facility_code: str,
        names: Iterable[str],
        settled: Callable[[str], Awaitable[None]],
        intervals: MonitorIntervals,
    ) -> None:
        self._account = account
        self._observer = observer
        self._facility_code = facility_code
        self._names = tuple(names)
        self._settled = settled
        self._intervals = intervals
        self._watched: list[WatchedEnclosure] = []

    async def run(self) -> None:
        """Watch every enclosure until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name in self._names:
                tasks.create_task(self._watch(name))

    async def leave(self) -> None:
        """Record that nobody observes any longer, as far as that is possible quickly."""
        if not self._watched:
            return
        leaving = [asyncio.create_task(self._lose(watched, "The monitor stopped.")) for watched in self._watched]
        _, late = await asyncio.wait(leaving, timeout=FAREWELL)
        for task in late:
            task.cancel()

    async def _watch(self, name: str) -> None:
        registration = RegisterEnclosure(name=name, facility_code=self._facility_code)
        claim = (NAMES, name_key(registration))
        id = await self._account.registered(registration, claim, self._intervals.resubscribe)
        watched = WatchedEnclosure(name, id, ReportPace(self._intervals, unasked=True))
        self._watched.append(watched)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._settle(watched))
            tasks.create_task(self._follow(watched))

    async def _settle(self, watched: WatchedEnclosure) -> None:
        """Wait for a first reading that says yes or no; where none comes in time, the permit is recorded as Unknown."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._intervals.first_reading):
                await watched.read.wait()
        while not watched.read.is_set():
            async with watched.recording:
                if watched.recorded is None:
                    why = "No reading came since the monitor started."
                    await self._record(watched, UNKNOWN, unknown(watched.name, why))
                if watched.recorded is not None:
                    break
            await asyncio.sleep(self._intervals.retry)
        await self._settled(watched.name)
        log.info("enclosure_settled", enclosure_id=str(watched.id), permit_status=watched.recorded)

    async def _follow(self, watched: WatchedEnclosure) -> None:
        """Subscribe, again and again; while there is no subscription the permit is Unknown."""
        while True:
            await self._lose(watched, await self._until_lost(watched))
            await asyncio.sleep(self._intervals.retry if watched.pace.failed else self._intervals.resubscribe)

    async def _until_lost(self, watched: WatchedEnclosure) -> str:
        """Record what is observed, and repeat it while nothing changes; answers why it came to an end."""
        following = followed(self._observer, watched.name, EnclosurePermitStatus, watched.pace)
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
        """Record that the permit is not known, unless that was recorded last."""
        async with watched.recording:
            if watched.recorded is not UNKNOWN:
                log.warning("permit_lost", enclosure_id=str(watched.id), why=why)
                await self._record(watched, UNKNOWN, unknown(watched.name, why))

    async def _record(self, watched: WatchedEnclosure, status: EnclosurePermitStatus, observation: SignalObservation) -> None:
        watched.recorded = None  # until the report is answered, nobody knows what the record says
        outcome = await self._account.report(
            ObserveEnclosureStatus,
            watched.id,
            observation,
            needless=ObserveEnclosureStatus.Cannot,
            observed_at=observation.observed_at,
            nothing_read=observation.nothing_read,
        )
        watched.pace.reported(outcome)
        if outcome is ReportOutcome.RECORDED:
            watched.recorded = status
            if status is not UNKNOWN:
                watched.read.set()


def unknown(code: str, why: str, source_id: str = ENCLOSURE_MONITOR) -> SignalObservation:
    """What the service itself says of a permit where no observer does."""
    reason = printable(why, LONGEST_REASON)
    return SignalObservation(
        code=code, observed_status=UNKNOWN, reason=reason, source_kind="Monitor", source_id=source_id, nothing_read=True
    )
