"""Simulated signals in memory: the control port without a plant, and the hooks that play the plant's part."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from application.control import ControlNotConnectedError, ControlTimeoutError, Reading


class Simulator:
    """Signals by address. An address nobody set is not connected; a connected one may still lack a value."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._readings: dict[str, Reading | None] = {}
        self._subscribers: dict[str, list[asyncio.Queue[Reading | Exception | None]]] = defaultdict(list)
        for address, value in (values or {}).items():
            self.set_reading(address, Reading(value=value))

    async def read(self, address: str) -> Reading:
        if (reading := self._connected(address)) is None:
            raise ControlTimeoutError(f"{address} has no value yet.")
        return reading

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        current = self._connected(address)
        news: asyncio.Queue[Reading | Exception | None] = asyncio.Queue()
        self._subscribers[address].append(news)
        try:
            if current is not None:
                yield current
            while (item := await news.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self._subscribers[address].remove(news)

    def set_reading(self, address: str, reading: Reading) -> None:
        """Connect a signal if need be, and give it this value."""
        self._readings[address] = reading
        self._tell(address, reading)

    def simulate_connect(self, address: str) -> None:
        """Connect a signal that has no value yet."""
        self._readings.setdefault(address, None)

    def simulate_disconnect(self, address: str) -> None:
        """Lose a signal: its value is gone and its subscriptions break."""
        self._readings.pop(address, None)
        self._tell(address, _not_connected(address))

    def simulate_end(self, address: str) -> None:
        """End the subscriptions of a signal in good order; it stays connected."""
        self._tell(address, None)

    def subscriptions(self, address: str) -> int:
        """How many follow a signal."""
        return len(self._subscribers[address])

    def _connected(self, address: str) -> Reading | None:
        if address not in self._readings:
            raise _not_connected(address)
        return self._readings[address]

    def _tell(self, address: str, item: Reading | Exception | None) -> None:
        for news in self._subscribers[address]:
            news.put_nowait(item)


def _not_connected(address: str) -> ControlNotConnectedError:
    return ControlNotConnectedError(f"{address} is not connected.")
