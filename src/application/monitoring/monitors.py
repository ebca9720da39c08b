"""What the monitors share: their account, which gives one command for each observation, their pace, and their signals."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Self, TypeVar
from uuid import UUID

import structlog
from pydantic import ValidationError

from baton.application.caller import Caller, Lease
from baton.application.dropping_queue import DroppingQueue
from baton.application.monitoring.observations import Observer, SignalObservation
from baton.application.ports import IdGenerator, LeaseLostError, Store
from baton.application.service import Service
from baton.application.telemetry import error_location
from baton.domain.access.actor import monitor_id
from baton.domain.kernel import NIL, Command, Query
from baton.domain.shared.refusals import ConcurrencyError, Refusal, Unavailable

log = structlog.get_logger()
T = TypeVar("T")
S = TypeVar("S", bound=Enum)
StatusReports = AsyncGenerator[tuple[S, SignalObservation], None]


@dataclass(frozen=True)
class MonitorIntervals:
    """Seconds between what the monitors repeat, and how long they wait for a first reading."""

    refresh: float = 3.0
    resubscribe: float = 5.0
    retry: float = 1.0
    first_reading: float = 8.0
    sweep: float = 10.0

    def refreshing_within(self, time_to_live: timedelta) -> Self:
        """Return these intervals with refreshes frequent enough that no observation expires between two of them."""
        return replace(self, refresh=min(self.refresh, time_to_live.total_seconds() / 3))


class ReportOutcome(Enum):
    RECORDED = auto()
    REFUSED = auto()
    FAILED = auto()  # store was unavailable or a race was lost: the same report may succeed in a moment


@dataclass
class RepeatedLine:
    """A line of the log that is written once however often it would be repeated."""

    event: str
    facts: dict[str, object]
    repeats: int = 0


@dataclass
class MonitorAccount:
    name: str
    service: Service
    store: Store
    new_id: IdGenerator
    lease: Lease | None = None  # without which nothing is recorded
    _refused: dict[UUID, RepeatedLine] = field(default_factory=dict)  # the latest refusal of each target

    async def ask(self, query: Query[T], on: UUID | None = None) -> T:
        return await self.service.ask(query, self._caller(), target_id=on)

    async def report(
        self, command: type[Command], on: UUID, observation: SignalObservation, *needless: type[Refusal], **further: object
    ) -> ReportOutcome:
        """Record one observation; failures are logged and end here, and a `needless` refusal counts as recorded."""
        source = {"source_kind": observation.source_kind, "source_id": observation.source_id}
        fields = {"new_status": observation.observed_status, "reason": observation.reason, "monitor_ref": source, **further}
        try:
            await self.service.execute(command.model_validate(fields), self._caller(), target_id=on)
        except LeaseLostError:
            raise
        except needless as refusal:
            self._log_once(on, "info", "observation_dropped", code=refusal.code)
            return ReportOutcome.RECORDED
        except Refusal as refusal:
            self._log_once(on, "warning", "observation_refused", code=refusal.code, reason=refusal.reason)
            return ReportOutcome.FAILED if isinstance(refusal, Unavailable | ConcurrencyError) else ReportOutcome.REFUSED
        except ValidationError as error:
            self._log_once(on, "warning", "observation_refused", **error_location(error))
            return ReportOutcome.REFUSED
        except Exception as error:
            log.error("observation_failed", target_id=str(on), **error_location(error))
            return ReportOutcome.FAILED
        self._log_repeats(on)
        return ReportOutcome.RECORDED

    def _log_once(self, on: UUID, level: str, event: str, **facts: object) -> None:
        """Log a refusal when it is the first of its kind for a target; its repeats are counted."""
        known = self._refused.get(on)
        if known is not None and (known.event, known.facts) == (event, facts):
            known.repeats += 1
            return
        self._log_repeats(on)
        self._refused[on] = RepeatedLine(event, facts)
        getattr(log, level)(event, target_id=str(on), **facts)

    def _log_repeats(self, on: UUID) -> None:
        """Log how often the latest refusal of a target was repeated, once it is over."""
        known = self._refused.pop(on, None)
        if known is not None and known.repeats:
            log.info("observation_repeated", target_id=str(on), of=known.event, repeats=known.repeats, **known.facts)

    async def ensure_registered(self, registration: Command, claim: tuple[str, str], pause: float) -> UUID:
        """Return the id that holds this claim, registered now where none does; try until that succeeds."""
        kind, key = claim
        while True:
            try:
                async with self.store.session() as session:
                    if (holder := (await session.holders(kind, [key])).get(key)) is not None:
                        return holder
                executed = await self.service.execute(registration, self._caller())
                aggregate = registration.operation.aggregate
                assert executed.body is not None, "a registration answers with an id"
                assert aggregate is not None
                return UUID(executed.body[aggregate.id_name])
            except Refusal as refusal:
                log.warning("registration_refused", code=refusal.code, reason=refusal.reason)
            await asyncio.sleep(pause)

    def _caller(self) -> Caller:
        return Caller(monitor_id(self.name), NIL, self.new_id(), lease=self.lease)


class ReportPace:
    """When a monitor reports: a change at once, a repeat at the end of the refresh interval, where the latest is never
    dropped. With `unasked`, the latest is reported then even if the signal was silent."""

    def __init__(self, intervals: MonitorIntervals, *, unasked: bool = False) -> None:
        self._intervals = intervals
        self._unasked = unasked
        self._outcome = ReportOutcome.RECORDED
        self._until = 0.0
        self._waiting = False

    @property
    def failed(self) -> bool:
        return self._outcome is ReportOutcome.FAILED

    def due(self, *, changed: bool) -> bool:
        """Return whether to report an observation now; otherwise it waits."""
        self._waiting = not changed and not self.failed and _time() < self._until
        return not self._waiting

    def start_interval(self, outcome: ReportOutcome) -> None:
        """Start the next interval, after a report with this outcome."""
        self._outcome = outcome
        self._until = _time() + self._intervals.refresh

    def pause(self) -> float | None:
        """Return the seconds after which to look at the latest again; None where only a change matters."""
        if self.failed:
            return self._intervals.retry
        return max(0.0, self._until - _time()) if self._waiting or self._unasked else None


def _time() -> float:
    return asyncio.get_running_loop().time()


async def follow_signal(observer: Observer, code: str, statuses: type[S], pace: ReportPace) -> StatusReports[S]:
    """Yield the observations of one thing with their status, and the latest again after each pause."""
    async with (
        aclosing(observer.observe(code)) as observations,
        aclosing(with_status(statuses, code, observations)) as reports,
        aclosing(repeat_latest(reports, pace.pause, alike=lambda one, other: one[0] is other[0])) as latest,
    ):
        async for report in latest:
            yield report


async def repeat_latest(
    stream: AsyncGenerator[T, None], pause: Callable[[], float | None], alike: Callable[[T, T], bool]
) -> AsyncGenerator[T, None]:
    """Yield the items of a stream, and the latest once more whenever the pause passes without another. The stream is read
    ahead: of several alike items that the reader was too slow for, only the last is yielded."""
    queue, latest = DroppingQueue[T](alike), list[T]()
    reading = asyncio.create_task(_read_ahead(stream, queue))
    try:
        while True:
            if await queue.arrive(pause() if latest else None):
                try:
                    latest = [await anext(queue)]
                except StopAsyncIteration:
                    return
            for item in latest:
                yield item
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read_ahead(stream: AsyncGenerator[T, None], queue: DroppingQueue[T]) -> None:
    try:
        async for item in stream:
            queue.put(item)
    except Exception as error:
        queue.end(error)
    finally:
        queue.end()


async def with_status(
    statuses: type[S], code: str, observations: AsyncGenerator[SignalObservation, None]
) -> StatusReports[S]:
    """Yield the observations of one thing, each with the status it reports; others are skipped."""
    known = {status.value: status for status in statuses}
    async for observation in observations:
        if observation.code == code and (status := known.get(observation.observed_status)) is not None:
            yield status, observation
        else:
            log.warning("observation_skipped", code=observation.code, observed_status=observation.observed_status)
