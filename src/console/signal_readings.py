"""Live signal values for pages. A live page never waits for the control system: it shows what was last read of its signals,
and has them read again while somebody looks; one question at a time is put to the workers, however many pages are open."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from weakref import WeakKeyDictionary

import structlog

from baton.application.telemetry import error_location
from baton.console.page_queries import PageQueries, Shown
from baton.domain.conduct.control_signals import ReadSignals
from baton.domain.shared.refusals import Refusal
from baton.infrastructure.wall_clock import clock

log = structlog.get_logger()
AGAIN_SECONDS = 5.0  # between two readings of the same signals
FORGET_SECONDS = 60.0  # after which signals that no page shows any more are forgotten
UNREADABLE = "The signals cannot be read at the moment; the log of the service says why."


@dataclass(frozen=True)
class LatestReadings:
    """What a worker last read of some signals, or the sentence that says why none did."""

    at: datetime
    signals: Sequence[Shown] = ()
    refusal: str | None = None


class SignalBoard:
    """The latest readings of the signals that pages of this process show, by their addresses."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, ...], LatestReadings] = {}
        self._reading: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(1)

    def look(self, queries: PageQueries, addresses: tuple[str, ...]) -> LatestReadings | None:
        """Return what was last read of these signals, None where that is yet to come; have them read again where due."""
        queries.require([ReadSignals.operation])
        self._latest = {
            key: one for key, one in self._latest.items() if (queries.now - one.at).total_seconds() < FORGET_SECONDS
        }
        latest = self._latest.get(addresses)
        if latest is None or (queries.now - latest.at).total_seconds() >= AGAIN_SECONDS:
            self._begin(queries, addresses)
        return latest

    async def read(self, queries: PageQueries, addresses: tuple[str, ...]) -> LatestReadings | None:
        """Return what is read of these signals now, for a person who asks for just that and waits."""
        queries.require([ReadSignals.operation])
        await asyncio.shield(self._begin(queries, addresses))
        return self._latest.get(addresses)

    def _begin(self, queries: PageQueries, addresses: tuple[str, ...]) -> "asyncio.Task[None]":
        if addresses not in self._reading:
            self._reading[addresses] = asyncio.create_task(self._read(queries, addresses))
        return self._reading[addresses]

    async def _read(self, queries: PageQueries, addresses: tuple[str, ...]) -> None:
        """Have a worker read signals, as the person who looks."""
        own_desk = replace(queries, turns=asyncio.Semaphore(1), position=0, _answers={})
        try:
            async with self._turn:
                answer = await own_desk.show(ReadSignals, addresses=addresses)
            self._latest[addresses] = LatestReadings(clock(), signals=tuple(answer["signals"]))
        except Refusal as refusal:
            self._latest[addresses] = LatestReadings(clock(), refusal=refusal.detail)
        except Exception as error:
            log.warning("console_signals_unread", **error_location(error))
            self._latest[addresses] = LatestReadings(clock(), refusal=UNREADABLE)
        finally:
            self._reading.pop(addresses, None)


BOARDS: "WeakKeyDictionary[asyncio.Event, SignalBoard]" = WeakKeyDictionary()
"""The board of each service of this process; a service is known by the event that it stops with."""


def board_of(queries: PageQueries) -> SignalBoard:
    """Return the board of the service that a queries asks."""
    return BOARDS.setdefault(queries.service.stopping, SignalBoard())
