"""How a process rehearses: one walk at a time, in a thread, and equal ones from memory for a moment."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from baton.application.telemetry import error_location
from baton.domain.conduct.rehearsal import (
    RehearsalBasis,
    RehearsalsBusyError,
    Rehearsed,
    TimedRehearsal,
    forecast_action,
    part_times,
    rehearse,
)
from baton.domain.shared.action_signals import ActionForecast, ActionSignals

log = structlog.get_logger()
WAIT_SECONDS = 2.0  # how long a rehearsal waits for those before it
KEPT_SECONDS = 10.0
MAX_KEPT = 4
ACTION_SECONDS = 0.2  # how long an action may take to say what it would do


@dataclass(frozen=True)
class Rehearsals:
    """Walks rehearsals, one at a time."""

    clock: Callable[[], float] = time.monotonic
    wait_seconds: float = WAIT_SECONDS
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _kept: dict[str, tuple[float, Rehearsed]] = field(default_factory=dict)  # by fingerprint, with when each was walked

    async def rehearse(self, basis: RehearsalBasis) -> TimedRehearsal:
        """Return the rehearsal; a walk that its caller has given up holds the others off until it has ended."""
        return await asyncio.shield(asyncio.ensure_future(self._in_turn(basis)))

    async def _in_turn(self, basis: RehearsalBasis) -> TimedRehearsal:
        try:
            async with asyncio.timeout(self.wait_seconds):
                await self._lock.acquire()
        except TimeoutError:
            detail = "Other rehearsals are under way; ask again in a few seconds."
            raise RehearsalsBusyError(detail) from None
        try:
            return await asyncio.to_thread(self._walk, basis)
        finally:
            self._lock.release()

    def _walk(self, basis: RehearsalBasis) -> TimedRehearsal:
        fingerprint, now = str(basis.fingerprint), self.clock()
        walked_at, known = self._kept.get(fingerprint, (now, None))
        if known is None or now - walked_at >= KEPT_SECONDS:
            known = rehearse(basis, ask_action)
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[fingerprint] = now, known
        return TimedRehearsal(known, tuple(part_times(basis, known.action_seconds)), fingerprint)


def ask_action(name: str, signals: ActionSignals, params: Mapping[str, Any]) -> ActionForecast | None:
    """Return what an action says that it would do; None where it fails to say, or takes too long."""
    began = time.perf_counter()
    try:
        says = forecast_action(name, signals, params)
    except Exception as error:  # a site's own code
        log.warning("action_rehearsal_failed", action=name, **error_location(error))
        return None
    if (seconds := time.perf_counter() - began) > ACTION_SECONDS:
        log.warning("action_rehearsal_slow", action=name, seconds=round(seconds, 3))
        return None
    return says
