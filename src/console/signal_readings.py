"""Live signal values for pages. A live page never waits for the control system: it shows what was last read of its signals,
and has them read again while somebody looks; one question at a time is put to the workers, however many pages are open."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
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
TREND_SECONDS = 1800.0  # of which the numbers that were read are kept
UNREADABLE = "The signals cannot be read at the moment; the log of the service says why."


@dataclass(frozen=True)
class LatestReadings:
    """What a worker last read of some signals, or the sentence that says why none did."""

    at: datetime
    signals: Sequence[Shown] = ()
    refusal: str | None = None


Trend = tuple[tuple[float, float], ...]
"""The numbers that were read of a signal, each with the second since 1970 at which it was."""


class SignalBoard:
    """The latest readings of the signals that pages of this process show, by their addresses, and what was read before."""

    def __init__(self) -> None:
        self._trends: dict[str, Trend] = {}
        self._latest: dict[tuple[str, ...], LatestReadings] = {}
        self._reading: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(1)

    def latest(self, queries: PageQueries, addresses: tuple[str, ...]) -> LatestReadings | None:
        """Return what was last read of these signals, and have nothing read."""
        queries.require([ReadSignals.operation])
        return self._latest.get(addresses)

    def trend(self, address: str) -> Trend:
        """Return the numbers that were read of a signal in the last half hour, as far as pages showed it."""
        return self._trends.get(address, ())

    def look(self, queries: PageQueries, addresses: tuple[str, ...], again: float = AGAIN_SECONDS) -> LatestReadings | None:
        """Return what was last read of these signals, None where that is yet to come; have them read again where due."""
        queries.require([ReadSignals.operation])
        self._latest = {
            key: one for key, one in self._latest.items() if (queries.now - one.at).total_seconds() < FORGET_SECONDS
        }
        latest = self._latest.get(addresses)
        if latest is None or (queries.now - latest.at).total_seconds() >= again:
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
            self._continue_trends(answer["signals"], clock().timestamp())
        except Refusal as refusal:
            self._latest[addresses] = LatestReadings(clock(), refusal=refusal.detail)
        except Exception as error:
            log.warning("console_signals_unread", **error_location(error))
            self._latest[addresses] = LatestReadings(clock(), refusal=UNREADABLE)
        finally:
            self._reading.pop(addresses, None)

    def _continue_trends(self, signals: Sequence[Shown], now: float) -> None:
        """Add the numbers that were just read, and forget what is older than a trend."""
        numbers = {one["address"]: float(one["value"]) for one in signals if is_number(one["value"])}
        for address in {*self._trends, *numbers}:
            kept = tuple(point for point in self._trends.get(address, ()) if now - point[0] < TREND_SECONDS)
            self._trends[address] = (*kept, (now, numbers[address])) if address in numbers else kept
        self._trends = {address: trend for address, trend in self._trends.items() if trend}


def is_number(value: object) -> bool:
    """Return whether a value can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


BOARDS: "WeakKeyDictionary[asyncio.Event, SignalBoard]" = WeakKeyDictionary()
"""The board of each service of this process; a service is known by the event that it stops with."""


def board_of(queries: PageQueries) -> SignalBoard:
    """Return the board of the service that a queries asks."""
    return BOARDS.setdefault(queries.service.stopping, SignalBoard())


def read_lately(queries: PageQueries, addresses: tuple[str, ...], again: float = AGAIN_SECONDS) -> LatestReadings | None:
    """Return what was last read of signals. A live page has them read again; one that is loaded waits for none."""
    board = board_of(queries)
    return board.latest(queries, addresses) if queries.recorded else board.look(queries, addresses, again)
