"""Reactions: followers of the log that have workflows started for what happened, each event once.

A subscriber does not wait for what it starts: a slow model call never holds back later events. Each has a bookmark of its
own and stumbles alone: what one of them cannot get past keeps no other from going on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID

import structlog

from application.ports import (
    Batch,
    Bookmark,
    Caller,
    Clock,
    Engine,
    EngineUnavailableError,
    EventRow,
    IdGenerator,
    Job,
    Store,
    StoreUnavailableError,
)
from application.telemetry import traced
from domain.agent.reactions import LOCK, LONGEST_ERROR, Logged, OpenItem, Reaction
from domain.kernel import Event
from domain.shared.writes import Put

log = structlog.get_logger()

COMMAND_NAME = "FollowLog"
AT_ONCE = 2000
"""Events of the log that are looked through at a time."""
COUNTED = 5000
"""Events of the log among which the unprocessed ones are counted."""
POLL = 1.0
"""Seconds after which the log is looked at even where nobody was told of news."""
PACE = 0.1
"""Seconds between two looks while much happens that concerns nobody."""
SAVED_EACH = 1.0
"""Seconds after which it is written down how far a subscriber is, where nothing concerned it."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before another try; each is twice as long as the one before."""


class Subscriber(Protocol):
    """Which events somebody reacts to, and with what."""

    name: str
    workflows: tuple[str, ...]
    """The kinds of workflow it starts."""
    events: tuple[type[Event], ...]

    async def enabled(self) -> bool:
        """Whether anything is started at all; whoever is off passes over what happens meanwhile, for good."""
        ...

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        """What is to be started for an event, under ids that follow from it; nothing, for one that does not concern."""
        ...


def names_of(subscriber: Subscriber) -> tuple[str, ...]:
    """The types of the events that concern a subscriber."""
    return tuple(event.__name__ for event in subscriber.events)


def started_by(event: EventRow) -> dict[str, str]:
    """What is kept with a workflow about the event it was started for."""
    return {"event_id": str(event.event_id)}


class Dispatcher:
    """Leads every subscriber through the log; one process does so for all."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock,
        new_id: IdGenerator,
        subscribers: Sequence[Subscriber],
        news: Callable[[float], Awaitable[None]],
    ) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._subscribers = subscribers
        self._news = news
        self._at: dict[str, EventRow] = {}
        """The last event that each subscriber has passed, where that is not written down yet."""
        self._saved: dict[str, float] = {}

    async def run(self) -> None:
        """Follow the log with every subscriber until cancelled."""
        async with asyncio.TaskGroup() as following:
            for subscriber in self._subscribers:
                following.create_task(self._follow(subscriber))

    async def _follow(self, subscriber: Subscriber) -> None:
        pause = 0.0
        while True:
            try:
                more = await self.advance(subscriber)
                pause = 0.0
                if not more:
                    await self._news(POLL)
                    await asyncio.sleep(PACE)
            except Exception as error:
                self._at.pop(subscriber.name, None)
                pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
                await self._stumbled(subscriber, error)
                await asyncio.sleep(pause)

    async def advance(self, subscriber: Subscriber) -> bool:
        """Go on through the log by one batch; false where what is new has been seen."""
        enabled = await subscriber.enabled()
        wanted = names_of(subscriber)
        passed = self._at.get(subscriber.name)
        if passed is None:
            reaction = await self._reaction(subscriber)
            mark = Bookmark(reaction.transaction_id, reaction.position)
        else:
            mark = Bookmark(passed.transaction_id, passed.position)
        rows = await self._store.follow(mark, AT_ONCE, wanted)
        for row in rows:
            self._at[subscriber.name] = row
            if row.event_type in wanted:
                if enabled:
                    for job in await subscriber.jobs(row):
                        await self._engine.start(job)
                await self._save(subscriber, enabled)
        if time.monotonic() - self._saved.get(subscriber.name, 0) > SAVED_EACH:
            await self._save(subscriber, enabled)
        return len(rows) > 1

    async def _reaction(self, subscriber: Subscriber) -> Reaction:
        async with self._store.session() as session:
            rows: Any = await session.records(Reaction, {"subscriber_name": subscriber.name})
        return rows[0] if rows else await self._begun(subscriber)

    async def _begun(self, subscriber: Subscriber) -> Reaction:
        """Begin behind what has happened so far: whoever subscribes does not react to the past."""
        end = await self._store.locate(2**62) or Bookmark(0, 0)
        first = Reaction(subscriber.name, await subscriber.enabled(), *end)
        async with self._store.session(LOCK) as session:
            rows: Any = await session.records(Reaction, {"subscriber_name": subscriber.name})
            if not rows:
                await session.append(self._put(first))
        return rows[0] if rows else first

    async def begin(self) -> None:
        """Give every subscriber its place in the log, before anything happens that concerns it."""
        for subscriber in self._subscribers:
            await self._reaction(subscriber)

    async def _save(self, subscriber: Subscriber, enabled: bool) -> None:
        """Write down how far a subscriber is, unless somebody has moved it further meanwhile."""
        row = self._at.get(subscriber.name)

        def moved(kept: Reaction) -> Reaction | None:
            going_on = recovered(kept, enabled)
            if row is not None and (kept.transaction_id, kept.position) < (row.transaction_id, row.position):
                going_on = replace(
                    going_on,
                    transaction_id=row.transaction_id,
                    position=row.position,
                    last_event_recorded_at=row.recorded_at,
                )
            return None if going_on == kept else going_on

        await self._change(subscriber, moved)
        self._saved[subscriber.name] = time.monotonic()

    async def _stumbled(self, subscriber: Subscriber, error: Exception) -> None:
        """Note on the bookmark what went wrong; where even that fails, the log line has to do."""
        log.warning("reaction_failed", subscriber=subscriber.name, **traced(error))

        def failed(kept: Reaction) -> Reaction:
            return replace(
                kept,
                consecutive_failures=kept.consecutive_failures + 1,
                last_error_at=self._clock(),
                last_error_message=f"{type(error).__name__}: {error}"[:LONGEST_ERROR],
            )

        try:
            await self._change(subscriber, failed)
        except StoreUnavailableError:
            log.warning("reaction_failure_not_noted", subscriber=subscriber.name)

    async def _change(self, subscriber: Subscriber, change: Callable[[Reaction], Reaction | None]) -> None:
        async with self._store.session(LOCK) as session:
            rows: Any = await session.records(Reaction, {"subscriber_name": subscriber.name})
            if rows and (changed := change(rows[0])) is not None:
                await session.append(self._put(changed))

    def _put(self, reaction: Reaction) -> Batch:
        return Batch(Caller.system(self._new_id()).call(self._clock(), self._new_id()), COMMAND_NAME, puts=[Put(reaction)])


def recovered(reaction: Reaction, enabled: bool) -> Reaction:
    """A reaction that goes on."""
    return replace(reaction, enabled=enabled, consecutive_failures=0, last_error_at=None, last_error_message=None)


class ReactionSights:
    """What can be seen of reactions from outside: the ports of their query and of the dismissal."""

    def __init__(self, store: Store, engine: Engine, subscribers: Sequence[Subscriber]) -> None:
        self._store = store
        self._engine = engine
        self._subscribers = {subscriber.name: subscriber for subscriber in subscribers}

    async def names(self, caller: Caller) -> tuple[str, ...]:
        return tuple(self._subscribers)

    async def unprocessed(self, caller: Caller, rows: Sequence[Reaction]) -> Mapping[str, int]:
        """How many events each has still before it, among the next ones of the log."""
        return {row.subscriber_name: len(await self._before(row)) for row in rows}

    async def open_items(self, caller: Caller, names: Sequence[str]) -> Mapping[str, Sequence[OpenItem]] | None:
        """What each has under way; None while the engine cannot be asked."""
        try:
            return {name: await self._engine.open_items(self._subscribers[name].workflows) for name in names}
        except EngineUnavailableError:
            return None

    async def logged(self, caller: Caller, event_id: UUID, reaction: Reaction) -> Logged | None:
        """An event as a dismissal looks at it."""
        row = await self._store.event(event_id)
        if row is None:
            return None
        before = await self._before(reaction)
        return Logged(
            event_id=row.event_id,
            event_type=row.event_type,
            place=(row.transaction_id, row.position),
            recorded_at=row.recorded_at,
            matching=row.event_type in names_of(self._subscribers[reaction.subscriber_name]),
            next_id=before[0].event_id if before else None,
        )

    async def _before(self, reaction: Reaction) -> list[EventRow]:
        wanted = names_of(self._subscribers[reaction.subscriber_name])
        mark = Bookmark(reaction.transaction_id, reaction.position)
        rows = await self._store.follow(mark, COUNTED, wanted)
        return [row for row in rows if row.event_type in wanted]
