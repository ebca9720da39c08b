"""What the monitors share: their way into the service, their pace, and what they follow.

Monitors are long-lived tasks. Each observation is one ordinary command, authorized as the monitor's own service account.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Self, TypeVar
from uuid import UUID

import structlog
from pydantic import ValidationError

from baton.application.latest_queue import LatestQueue
from baton.application.monitoring.observations import SignalObservation, Observer
from baton.application.ports import Caller, IdGenerator, Store
from baton.application.service import Service
from baton.application.telemetry import error_location
from baton.domain.access.seeded_actors import monitor_id
from baton.domain.kernel import NIL, Command, Query
from baton.domain.shared.refusals import ConcurrencyError, Refusal, Unavailable

log = structlog.get_logger()

T = TypeVar("T")
S = TypeVar("S", bound=Enum)


@dataclass(frozen=True)
class MonitorIntervals:
    """Seconds between what the monitors do again, and how long they wait for a first reading."""

    refresh: float = 20.0
    resubscribe: float = 5.0
    retry: float = 1.0
    first_reading: float = 8.0
    sweep: float = 10.0

    def refreshing_within(self, time_to_live: timedelta) -> Self:
        """These intervals with repeats frequent enough that an observation does not grow old between two of them."""
        return replace(self, refresh=min(self.refresh, time_to_live.total_seconds() / 3))


class ReportOutcome(Enum):
    """What became of one report."""

    RECORDED = auto()
    REFUSED = auto()
    FAILED = auto()
    """The store was away or somebody else was faster: the same report may succeed in a moment."""


class MonitorAccount:
    """A monitor's way into the service: its own service account, calling from inside the process."""

    def __init__(self, name: str, service: Service, store: Store, new_id: IdGenerator) -> None:
        self._principal_id = monitor_id(name)
        self._service = service
        self._store = store
        self._new_id = new_id

    async def ask(self, query: Query, on: UUID | None = None) -> Any:
        """Answer a query."""
        return await self._service.ask(query, self._caller(), target_id=on)

    async def report(
        self, form: type[Command], on: UUID, observation: SignalObservation, needless: type[Refusal], **further: Any
    ) -> ReportOutcome:
        """Record one observation; what goes wrong is logged and ends here. Refused as needless, nothing is owed."""
        source = {"source_kind": observation.source_kind, "source_id": observation.source_id}
        said = {"new_status": observation.observed_status, "reason": observation.reason, "monitor_ref": source, **further}
        try:
            await self._service.execute(form.model_validate(said), self._caller(), target_id=on)
        except needless:
            log.info("observation_dropped", target_id=str(on), code=needless.__name__)
        except Refusal as refusal:
            log.warning("observation_refused", target_id=str(on), code=refusal.code, reason=refusal.reason)
            return ReportOutcome.FAILED if isinstance(refusal, Unavailable | ConcurrencyError) else ReportOutcome.REFUSED
        except ValidationError as error:
            log.warning("observation_refused", target_id=str(on), **error_location(error))
            return ReportOutcome.REFUSED
        except Exception as error:
            log.error("observation_failed", target_id=str(on), **error_location(error))
            return ReportOutcome.FAILED
        return ReportOutcome.RECORDED

    async def registered(self, registration: Command, claim: tuple[str, str], pause: float) -> UUID:
        """The id of whatever holds this claim, registered now where nothing does; tried until it succeeds."""
        kind, key = claim
        while True:
            try:
                async with self._store.session() as session:
                    if (holder := (await session.holders(kind, [key])).get(key)) is not None:
                        return holder
                executed = await self._service.execute(registration, self._caller())
                assert executed.body is not None, "a registration answers with an id"
                (id,) = executed.body.values()
                return UUID(id)
            except Refusal as refusal:
                log.warning("registration_refused", code=refusal.code, reason=refusal.reason)
            await asyncio.sleep(pause)

    def _caller(self) -> Caller:
        return Caller(self._principal_id, NIL, self._new_id())


class ReportPace:
    """When a monitor reports: a change at once, what is known already only when the refresh interval has passed.

    A signal may repeat itself many times a second. What is passed over waits for the end of the interval, so the last of it
    is never dropped. With `unasked`, the latest is reported then even if the signal kept silent.
    """

    def __init__(self, intervals: MonitorIntervals, *, unasked: bool = False) -> None:
        self._intervals = intervals
        self._unasked = unasked
        self._outcome = ReportOutcome.RECORDED
        self._until = 0.0
        self._waiting = False

    @property
    def failed(self) -> bool:
        """Whether the last report failed."""
        return self._outcome is ReportOutcome.FAILED

    def due(self, *, changed: bool) -> bool:
        """Whether to report now what was observed; else it waits."""
        self._waiting = not changed and not self.failed and _time() < self._until
        return not self._waiting

    def reported(self, outcome: ReportOutcome) -> None:
        """Count from a report that came to this."""
        self._outcome, self._until = outcome, _time() + self._intervals.refresh

    def pause(self) -> float | None:
        """Seconds after which to look at the latest again; none where only news matter."""
        if self.failed:
            return self._intervals.retry
        return max(0.0, self._until - _time()) if self._waiting or self._unasked else None


def _time() -> float:
    return asyncio.get_running_loop().time()


async def followed(
    observer: Observer, code: str, statuses: type[S], pace: ReportPace
) -> AsyncGenerator[tuple[S, SignalObservation], None]:
    """What is observed of one thing, with the status it reports; the latest again after each pause."""
    async with (
        aclosing(observer.observe(code)) as observations,
        aclosing(understood(statuses, code, observations)) as reports,
        aclosing(repeated(reports, pace.pause, alike=lambda said, report: said[0] is report[0])) as latest,
    ):
        async for report in latest:
            yield report


async def repeated(
    stream: AsyncGenerator[T, None], pause: Callable[[], float | None], alike: Callable[[T, T], bool]
) -> AsyncGenerator[T, None]:
    """The items of a stream, and the latest once more whenever the pause passes without another.

    The stream is read ahead: of several alike that its reader was too slow for, only the last is given.
    """
    news, latest = LatestQueue[T](alike), list[T]()
    reading = asyncio.create_task(_read(stream, news))
    try:
        while True:
            if await news.arrive(pause() if latest else None):
                try:
                    latest = [await anext(news)]
                except StopAsyncIteration:
                    return
            for item in latest:
                yield item
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(stream: AsyncGenerator[T, None], news: LatestQueue[T]) -> None:
    try:
        async for item in stream:
            news.put(item)
    except Exception as error:
        news.end(error)
    finally:
        news.end()


async def understood(
    statuses: type[S], code: str, observations: AsyncGenerator[SignalObservation, None]
) -> AsyncGenerator[tuple[S, SignalObservation], None]:
    """The observations about what was asked, each with the status it reports; others are skipped."""
    known = {status.value: status for status in statuses}
    async for observation in observations:
        if observation.code == code and (status := known.get(observation.observed_status)) is not None:
            yield status, observation
        else:
            log.warning("observation_skipped", code=observation.code, observed_status=observation.observed_status)
