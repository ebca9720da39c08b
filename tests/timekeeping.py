"""Time that passes as fast as nobody waits for anything else."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
IDLE_TURNS = 20
"""Turns of the event loop in which everybody who can go on has done so."""


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
    def passed(self) -> float:
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
