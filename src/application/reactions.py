"""Reactions: followers of the log that start workflows for events, each event once, without waiting for them. Each has a
bookmark of its own and fails alone."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import structlog

from baton.application.commands import system_batch
from baton.application.long_work import TASKS, LongWork
from baton.application.ports import Batch, Bookmark, Clock, Engine, EngineUnavailableError, EventRow, IdGenerator, Store
from baton.application.telemetry import error_location, error_text
from baton.application.unit_of_work import load_row
from baton.domain.agent.reactions import MAX_ERROR_LENGTH, REACTION_LOCK, LoggedEvent, OpenItem, Reaction
from baton.domain.shared.writes import Put

log = structlog.get_logger()
BATCH = 2000  # events of the log that are read at a time
MOST_COUNTED = 1000  # unprocessed events up to which they are counted
POLL_SECONDS = 1.0  # the log is read this often even where no notification came
SHORTEST_INTERVAL_SECONDS = 0.1  # the pause between two reads, however much happens
SAVE_SECONDS = 1.0  # the bookmark of a subscriber that started nothing is saved this often
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before another try; each is twice as long as the one before


def event_types_of(subscriber: LongWork) -> tuple[str, ...]:
    """Return the types of the events that wake a kind of long work."""
    return tuple(event.__name__ for event in subscriber.wakes_on)


@dataclass
class Dispatcher:
    """Leads every subscriber, a kind of long work that events wake, through the log; one process does so for all."""

    store: Store
    engine: Engine
    clock: Clock
    new_id: IdGenerator
    subscribers: Sequence[LongWork]
    wait_for_news: Callable[[float], Awaitable[None]]
    _bookmarks: dict[str, Reaction] = field(default_factory=dict)  # as last read or written
    _passed: dict[str, EventRow] = field(default_factory=dict)  # last event passed, where not saved yet
    _saved_at: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Follow the log with every subscriber until cancelled."""
        async with asyncio.TaskGroup() as following:
            for subscriber in self.subscribers:
                following.create_task(self._follow(subscriber))

    async def _follow(self, subscriber: LongWork) -> None:
        pause = 0.0
        while True:
            try:
                more = await self.advance(subscriber)
                pause = 0.0
                if not more:
                    await self.wait_for_news(POLL_SECONDS)
                await asyncio.sleep(SHORTEST_INTERVAL_SECONDS)
            except Exception as error:
                pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
                await self._record_failure(subscriber, error, pause)

    async def advance(self, subscriber: LongWork) -> bool:
        """Lead a subscriber through one batch of the log; return false where nothing was new."""
        name, wanted, enabled = subscriber.reaction, event_types_of(subscriber), subscriber.enabled
        if name not in self._bookmarks:
            self._bookmarks[name] = await self._load_bookmark(subscriber)
        rows = await self.store.follow(bookmark_of(self._passed.get(name, self._bookmarks[name])), BATCH, wanted)
        for row in rows:
            started = enabled and row.event_type in wanted and await self._start_jobs(subscriber, row)
            self._passed[name] = row
            if started:
                await self._save(subscriber, enabled)
        if time.monotonic() - self._saved_at.get(name, -SAVE_SECONDS) >= SAVE_SECONDS:
            await self._save(subscriber, enabled)
        return bool(rows)

    async def _start_jobs(self, subscriber: LongWork, row: EventRow) -> bool:
        stored = await self._load(subscriber)
        if stored is not None and bookmark_of(stored) >= bookmark_of(row):
            return False
        jobs = await subscriber.jobs(row)
        for job in jobs:
            await self.engine.start(job)
        return bool(jobs)

    async def begin(self) -> None:
        """Give every subscriber its place in the log, before anything happens that concerns it."""
        for subscriber in self.subscribers:
            await self._load_bookmark(subscriber)

    async def _load_bookmark(self, subscriber: LongWork) -> Reaction:
        """Return a subscriber's bookmark; one that is new or was off begins at the end: nobody reacts to the past."""
        enabled, stored = subscriber.enabled, await self._load(subscriber)
        if stored is not None and (stored.enabled or not enabled):
            return stored
        end = await self.store.end()
        async with self.store.session(REACTION_LOCK) as session:
            rows = await session.records(Reaction, {"subscriber_name": subscriber.reaction})
            if not rows:
                begun = Reaction(subscriber.reaction, enabled, *end)
            elif rows[0].enabled or not enabled:
                return rows[0]
            else:
                transaction_id, position = max(end, bookmark_of(rows[0]))
                begun = replace(without_failure(rows[0], enabled), transaction_id=transaction_id, position=position)
            await session.append(self._put(begun))
        return begun

    async def _save(self, subscriber: LongWork, enabled: bool) -> None:
        row, known = self._passed.get(subscriber.reaction), self._bookmarks[subscriber.reaction]

        def move(stored: Reaction) -> Reaction:
            following = without_failure(stored, enabled)
            if row is None or bookmark_of(row) <= bookmark_of(stored):
                return following
            moved = replace(following, transaction_id=row.transaction_id, position=row.position)
            return replace(moved, last_event_recorded_at=row.recorded_at)

        if move(known) != known:
            self._bookmarks[subscriber.reaction] = await self._change(subscriber, move) or known
        self._passed.pop(subscriber.reaction, None)
        self._saved_at[subscriber.reaction] = time.monotonic()

    async def _record_failure(self, subscriber: LongWork, error: Exception, pause: float) -> None:
        log.warning("reaction_failed", subscriber=subscriber.reaction, **error_location(error))
        self._passed.pop(subscriber.reaction, None)
        self._bookmarks.pop(subscriber.reaction, None)
        end = time.monotonic() + pause

        def fail(stored: Reaction) -> Reaction:
            count, message = stored.consecutive_failures + 1, error_text(error)[:MAX_ERROR_LENGTH]
            return replace(stored, consecutive_failures=count, last_error_at=self.clock(), last_error_message=message)

        try:
            recorded = await self._change(subscriber, fail)
            while (left := end - time.monotonic()) > 0:
                await asyncio.sleep(min(left, POLL_SECONDS))
                if await self._load(subscriber) != recorded:
                    return
        except Exception as another:
            log.warning("reaction_failure_not_recorded", subscriber=subscriber.reaction, **error_location(another))
            await asyncio.sleep(max(end - time.monotonic(), 0))

    async def _load(self, subscriber: LongWork) -> Reaction | None:
        return await load_row(self.store, Reaction, subscriber_name=subscriber.reaction)

    async def _change(self, subscriber: LongWork, change: Callable[[Reaction], Reaction]) -> Reaction | None:
        async with self.store.session(REACTION_LOCK) as session:
            rows = await session.records(Reaction, {"subscriber_name": subscriber.reaction})
            if not rows:
                return None
            if (changed := change(rows[0])) != rows[0]:
                await session.append(self._put(changed))
        return changed

    def _put(self, reaction: Reaction) -> Batch:
        return system_batch("FollowLog", self.clock, self.new_id, Put(reaction))


def without_failure(reaction: Reaction, enabled: bool) -> Reaction:
    """Return a reaction without its last failure."""
    return replace(reaction, enabled=enabled, consecutive_failures=0, last_error_at=None, last_error_message=None)


def bookmark_of(row: Reaction | EventRow) -> Bookmark:
    """Return the place of a bookmark or an event in the log."""
    return Bookmark(row.transaction_id, row.position)


class ReactionReader:
    def __init__(self, store: Store, engine: Engine, subscribers: Sequence[LongWork]) -> None:
        self._store = store
        self._engine = engine
        self._subscribers = {subscriber.reaction: subscriber for subscriber in subscribers}

    async def subscriber_names(self) -> tuple[str, ...]:
        return tuple(self._subscribers)

    async def unprocessed_counts(self, rows: Sequence[Reaction]) -> Mapping[str, int]:
        """Return how many events each has still before it, up to MOST_COUNTED."""
        return {row.subscriber_name: len(await self._ahead(row, MOST_COUNTED)) for row in rows}

    async def open_items(self, names: Sequence[str]) -> Mapping[str, Sequence[OpenItem] | None]:
        """Return what each has under way; None while the engine cannot be asked."""
        found = await asyncio.gather(*(self._open(name) for name in names))
        return dict(zip(names, found, strict=True))

    async def _open(self, name: str) -> Sequence[OpenItem] | None:
        kinds = (self._subscribers[name].workflow,)
        try:
            workflows, tasks = [await self._engine.open_items(asked) for asked in (kinds, (TASKS,))]
        except EngineUnavailableError:
            return None
        return [*workflows, *(task for task in tasks if task.workflow_id.partition(":")[0] in kinds)]

    async def logged_event(self, event_id: UUID, reaction: Reaction) -> LoggedEvent | None:
        """Return an event as a dismissal judges it."""
        if (row := await self._store.event(event_id)) is None:
            return None
        return LoggedEvent(
            event_id=row.event_id,
            event_type=row.event_type,
            place=bookmark_of(row),
            recorded_at=row.recorded_at,
            matching=row.event_type in event_types_of(self._subscribers[reaction.subscriber_name]),
            next_id=next(iter(await self._ahead(reaction, 1)), None),
        )

    async def _ahead(self, reaction: Reaction, limit: int) -> Sequence[UUID]:
        wanted = event_types_of(self._subscribers[reaction.subscriber_name])
        return await self._store.ahead(bookmark_of(reaction), wanted, limit)
