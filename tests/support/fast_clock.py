"""Time that passes at once while nothing else is waited for."""

import asyncio
import heapq
import itertools
import math
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from selectors import BaseSelector
from typing import Any

START = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
IDLE_TURNS = 20
"""Turns of the event loop after which nothing can go on without time passing."""


class SimulatedTime:
    """A clock that moves to the next waiting sleeper as soon as everything else has come to rest."""

    def __init__(self) -> None:
        self._now = START
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._moving = False

    def now(self) -> datetime:
        return self._now

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the start."""
        return (self._now - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), next(self._order), awake))
        self._move()
        await awake

    def _move(self, turns: int = IDLE_TURNS, again: bool = False) -> None:
        if self._moving and not again:
            return
        self._moving = True
        if turns:
            asyncio.get_running_loop().call_soon(self._move, turns - 1, True)
            return
        self._moving = False
        if self._sleepers:
            due, _, awake = heapq.heappop(self._sleepers)
            if not awake.done():
                self._now = max(self._now, due)
                awake.set_result(None)
            if self._sleepers:
                self._move()


class LoopTime:
    """The clock of an event loop that has given up real time: a wait for a time ends as soon as everything else rests.

    What everybody awaits by the loop's own means goes by it: sleeps, time-outs and intervals.
    """

    def __init__(self, selector: "_Skipping") -> None:
        self._selector = selector
        self._began = selector.moment

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_seconds)

    def __call__(self) -> datetime:
        return self.now()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the start."""
        return self._selector.moment - self._began

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def suspend(self, seconds: float) -> None:
        """Have the whole process stand still so long, as if it had been stopped."""
        self._selector.moment += seconds


class _Skipping:
    """A selector that never waits for time: it lets time pass, except while a thread is at work for the loop."""

    def __init__(self, selector: BaseSelector, moment: float) -> None:
        self._selector = selector
        self.moment = moment
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout <= 0 or self.threads:
            return self._selector.select(timeout)
        ready = self._selector.select(0)
        if not ready:
            self.moment += timeout
        return ready

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)


@contextmanager
def skipping_time(loop: Any) -> Iterator[LoopTime]:
    """Have a loop skip the time in which nothing happens; afterwards real time goes on from there."""
    selector, in_thread = loop._selector, loop.run_in_executor
    skipping = _Skipping(selector, math.ceil(loop.time()))

    def run_in_thread(executor: Executor | None, function: Any, *given: Any) -> Any:
        skipping.threads += 1
        working = in_thread(executor, function, *given)
        working.add_done_callback(note_done)
        return working

    def note_done(working: Any) -> None:
        skipping.threads -= 1

    loop._selector, loop.time, loop.run_in_executor = skipping, lambda: skipping.moment, run_in_thread
    try:
        yield LoopTime(skipping)
    finally:
        ahead = skipping.moment - time.monotonic()
        loop._selector, loop.time = selector, lambda: time.monotonic() + ahead
        del loop.run_in_executor
