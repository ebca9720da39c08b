"""Reactions: followers of the log that have workflows started for what happened, each event once.

A subscriber does not wait for what it starts: a slow model call never holds back later events. Each has a bookmark of its
own and stumbles alone: what one of them cannot get past keeps no other from going on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

import structlog

from baton.application.ports import (
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
)
from baton.application.record_reader import load_row
from baton.application.telemetry import error_text, error_location
from baton.domain.agent.reactions import LOCK, LONGEST_ERROR, LoggedEvent, OpenItem, Reaction
from baton.domain.kernel import Event
from baton.domain.shared.writes import Put

log = structlog.get_logger()

COMMAND_NAME = "FollowLog"
AT_ONCE = 2000
"""Events of the log that are looked through at a time."""
COUNTED = 1000
"""Unprocessed events up to which they are counted."""
POLL = 1.0
"""Seconds after which the log is looked at even where nobody was told of news."""
PACE = 0.1
"""Seconds between two looks, however much happens."""
SAVED_EACH = 1.0
"""Seconds after which it is written down how far a subscriber is, where nothing was started for it."""
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
        self._kept: dict[str, Reaction] = {}
        """The bookmarks as they were last read or written; one that is not here is read from the record."""
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
                pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
                await self._stumbled(subscriber, error, pause)

    async def advance(self, subscriber: Subscriber) -> bool:
        """Go on through the log by one batch; false where nothing was new."""
        name, wanted = subscriber.name, names_of(subscriber)
        enabled = await subscriber.enabled()
        if name not in self._kept:
            self._kept[name] = await self._taken_up(subscriber)
        rows = await self._store.follow(place(self._at.get(name, self._kept[name])), AT_ONCE, wanted)
        for row in rows:
            started = enabled and row.event_type in wanted and await self._started(subscriber, row)
            self._at[name] = row
            if started:
                await self._save(subscriber, enabled)
        if time.monotonic() - self._saved.get(name, -SAVED_EACH) >= SAVED_EACH:
            await self._save(subscriber, enabled)
        return bool(rows)

    async def _started(self, subscriber: Subscriber, row: EventRow) -> bool:
        """Have started what an event asks for, if anything, unless somebody dismissed it meanwhile."""
        kept = await self._stored(subscriber)
        if kept is not None and place(kept) >= place(row):
            return False
        jobs = await subscriber.jobs(row)
        for job in jobs:
            await self._engine.start(job)
        return bool(jobs)

    async def begin(self) -> None:
        """Give every subscriber its place in the log, before anything happens that concerns it."""
        for subscriber in self._subscribers:
            await self._taken_up(subscriber)

    async def _taken_up(self, subscriber: Subscriber) -> Reaction:
        """A subscriber's bookmark. Whoever is new or was off begins behind what has happened: nobody reacts to the past."""
        enabled = await subscriber.enabled()
        kept = await self._stored(subscriber)
        if kept is not None and (kept.enabled or not enabled):
            return kept
        end = await self._store.end()
        async with self._store.session(LOCK) as session:
            rows = await session.records(Reaction, {"subscriber_name": subscriber.name})
            if not rows:
                begun = Reaction(subscriber.name, enabled, *end)
            elif rows[0].enabled or not enabled:
                return rows[0]
            else:
                transaction_id, position = max(end, place(rows[0]))
                begun = replace(recovered(rows[0], enabled), transaction_id=transaction_id, position=position)
            await session.append(self._put(begun))
        return begun

    async def _save(self, subscriber: Subscriber, enabled: bool) -> None:
        """Write down how far a subscriber is, unless that is known or somebody has moved it further meanwhile."""
        row, known = self._at.get(subscriber.name), self._kept[subscriber.name]

        def moved(kept: Reaction) -> Reaction:
            going_on = recovered(kept, enabled)
            if row is None or place(row) <= place(kept):
                return going_on
            transaction_id, position = place(row)
            return replace(
                going_on, transaction_id=transaction_id, position=position, last_event_recorded_at=row.recorded_at
            )

        if moved(known) != known:
            self._kept[subscriber.name] = await self._change(subscriber, moved) or known
        self._at.pop(subscriber.name, None)
        self._saved[subscriber.name] = time.monotonic()

    async def _stumbled(self, subscriber: Subscriber, error: Exception, pause: float) -> None:
        """Note on the bookmark what went wrong, and wait before another try; a dismissal ends the wait.

        Where it cannot even be noted, the log line has to do.
        """
        log.warning("reaction_failed", subscriber=subscriber.name, **error_location(error))
        self._at.pop(subscriber.name, None)
        self._kept.pop(subscriber.name, None)
        end = time.monotonic() + pause

        def failed(kept: Reaction) -> Reaction:
            return replace(
                kept,
                consecutive_failures=kept.consecutive_failures + 1,
                last_error_at=self._clock(),
                last_error_message=error_text(error)[:LONGEST_ERROR],
            )

        try:
            noted = await self._change(subscriber, failed)
            while (left := end - time.monotonic()) > 0:
                await asyncio.sleep(min(left, POLL))
                if await self._stored(subscriber) != noted:
                    return
        except Exception as another:
            log.warning("reaction_failure_not_noted", subscriber=subscriber.name, **error_location(another))
            await asyncio.sleep(max(end - time.monotonic(), 0))

    async def _stored(self, subscriber: Subscriber) -> Reaction | None:
        return await load_row(self._store, Reaction, subscriber_name=subscriber.name)

    async def _change(self, subscriber: Subscriber, change: Callable[[Reaction], Reaction]) -> Reaction | None:
        """Change a bookmark that nobody else moves meanwhile; answers it as it is then, or None where there is none."""
        async with self._store.session(LOCK) as session:
            rows = await session.records(Reaction, {"subscriber_name": subscriber.name})
            if not rows:
                return None
            changed = change(rows[0])
            if changed != rows[0]:
                await session.append(self._put(changed))
        return changed

    def _put(self, reaction: Reaction) -> Batch:
        return Batch(Caller.system(self._new_id()).call(self._clock(), self._new_id()), COMMAND_NAME, puts=[Put(reaction)])


def recovered(reaction: Reaction, enabled: bool) -> Reaction:
    """A reaction that goes on."""
    return replace(reaction, enabled=enabled, consecutive_failures=0, last_error_at=None, last_error_message=None)


def place(of: Reaction | EventRow) -> Bookmark:
    """Where something stands in the log."""
    return Bookmark(of.transaction_id, of.position)


class ReactionReader:
    """What can be seen of reactions from outside: the ports of their query and of the dismissal."""

    def __init__(self, store: Store, engine: Engine, subscribers: Sequence[Subscriber]) -> None:
        self._store = store
        self._engine = engine
        self._subscribers = {subscriber.name: subscriber for subscriber in subscribers}

    async def subscriber_names(self) -> tuple[str, ...]:
        return tuple(self._subscribers)

    async def unprocessed_counts(self, rows: Sequence[Reaction]) -> Mapping[str, int]:
        """How many events each has still before it, up to so many as are counted."""
        return {row.subscriber_name: len(await self._ahead(row, COUNTED)) for row in rows}

    async def open_items(self, names: Sequence[str]) -> Mapping[str, Sequence[OpenItem] | None]:
        """What each has under way; None for one of which the engine cannot be asked."""
        found = await asyncio.gather(*(self._open(name) for name in names))
        return dict(zip(names, found, strict=True))

    async def _open(self, name: str) -> Sequence[OpenItem] | None:
        try:
            return await self._engine.open_items(self._subscribers[name].workflows)
        except EngineUnavailableError:
            return None

    async def logged_event(self, event_id: UUID, reaction: Reaction) -> LoggedEvent | None:
        """An event as a dismissal looks at it."""
        row = await self._store.event(event_id)
        if row is None:
            return None
        return LoggedEvent(
            event_id=row.event_id,
            event_type=row.event_type,
            place=place(row),
            recorded_at=row.recorded_at,
            matching=row.event_type in names_of(self._subscribers[reaction.subscriber_name]),
            next_id=next(iter(await self._ahead(reaction, 1)), None),
        )

    async def _ahead(self, reaction: Reaction, limit: int) -> Sequence[UUID]:
        wanted = names_of(self._subscribers[reaction.subscriber_name])
        return await self._store.ahead(place(reaction), wanted, limit)
