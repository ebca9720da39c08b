"""What the monitors share: their way into the service, their pace, and streams that repeat themselves.

Monitors are long-lived tasks. Each observation is one ordinary command, authorized as the monitor's own service account.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Self, TypeVar
from uuid import UUID

import structlog
from pydantic import ValidationError

from application.observations import Observation
from application.ports import Caller, IdGenerator, Store
from application.seeds import monitor_id
from application.service import Service
from application.telemetry import traced
from domain.kernel import NIL, Command, Query
from domain.shared.refusals import ConcurrencyError, Refusal, Unavailable

log = structlog.get_logger()

T = TypeVar("T")
S = TypeVar("S", bound=Enum)


@dataclass(frozen=True)
class Intervals:
    """Seconds between what the monitors do again, and how long they wait for a first reading."""

    refresh: float = 20.0
    resubscribe: float = 5.0
    retry: float = 1.0
    first_reading: float = 8.0
    sweep: float = 10.0

    def refreshing_within(self, time_to_live: timedelta) -> Self:
        """These intervals with repeats frequent enough that an observation does not grow old between two of them."""
        return replace(self, refresh=min(self.refresh, time_to_live.total_seconds() / 3))


class Outcome(Enum):
    """What became of one report."""

    RECORDED = auto()
    REFUSED = auto()
    FAILED = auto()
    """The store was away or somebody else was faster: the same report may succeed in a moment."""


class Account:
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
        self, form: type[Command], on: UUID, observation: Observation, needless: type[Refusal], **further: Any
    ) -> Outcome:
        """Record one observation; what goes wrong is logged and ends here. Refused as needless, nothing is owed."""
        source = {"source_kind": observation.source_kind, "source_id": observation.source_id}
        said = {"new_status": observation.observed_status, "reason": observation.reason, "monitor_ref": source, **further}
        try:
            await self._service.execute(form.model_validate(said), self._caller(), target_id=on)
        except needless:
            log.info("observation_dropped", target_id=str(on), code=needless.__name__)
        except Refusal as refusal:
            log.warning("observation_refused", target_id=str(on), code=refusal.code, reason=refusal.reason)
            return Outcome.FAILED if isinstance(refusal, Unavailable | ConcurrencyError) else Outcome.REFUSED
        except ValidationError as error:
            log.warning("observation_refused", target_id=str(on), **traced(error))
            return Outcome.REFUSED
        except Exception as error:
            log.error("observation_failed", target_id=str(on), **traced(error))
            return Outcome.FAILED
        return Outcome.RECORDED

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


async def repeated(stream: AsyncGenerator[T, None], pause: Callable[[], float | None]) -> AsyncGenerator[T, None]:
    """Every item of a stream, and the latest once more whenever the pause passes without another."""
    latest: list[T] = []
    upcoming = asyncio.ensure_future(anext(stream))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=pause())
            if done:
                try:
                    latest = [upcoming.result()]
                except StopAsyncIteration:
                    return
                upcoming = asyncio.ensure_future(anext(stream))
            for item in latest:
                yield item
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)


def understood(statuses: type[S], code: str, observation: Observation) -> S | None:
    """The status an observation reports, if it is about what was asked and a status there is; else it is skipped."""
    if observation.code == code:
        with suppress(ValueError):
            return statuses(observation.observed_status)
    log.warning("observation_skipped", code=observation.code, observed_status=observation.observed_status)
    return None
