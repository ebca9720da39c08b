"""A controller that answers one line with one line of JSON: the plant behind the control adapter that the documents show."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from baton.application.control import Reading


class LineController:
    """Signals by address, over TCP."""

    def __init__(self) -> None:
        self.port = 0
        self._signals: dict[str, Any] = {}

    def set_reading(self, address: str, reading: Reading) -> None:
        self._signals[address] = reading.value

    def offer(self, address: str, value: Any, labels: list[str] | None = None) -> None:
        self._signals[address] = value

    def simulate_connect(self, address: str) -> None:
        raise NotImplementedError("this controller has no signals without a value")

    def simulate_disconnect(self, address: str) -> None:
        del self._signals[address]

    def subscriptions(self, address: str) -> int:
        raise NotImplementedError("this controller does not know who follows")

    def answer(self, line: str) -> dict[str, Any]:
        address, verb, *value = line.split(maxsplit=2)
        if address not in self._signals:
            return {"unknown": address}
        if verb == "set" and address.endswith(".RBV"):
            return {"refused": "it is a readback"}
        if verb == "set":
            self._signals[address] = json.loads(value[0])
        return {"value": self._signals[address]}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(self.answer((await reader.readline()).decode())).encode() + b"\n")
        await writer.drain()
        writer.close()

    @classmethod
    @asynccontextmanager
    async def open_controller(cls) -> AsyncIterator["LineController"]:
        """A controller on a port of its own."""
        controller = cls()
        async with await asyncio.start_server(controller._serve, "127.0.0.1", 0) as server:
            controller.port = server.sockets[0].getsockname()[1]
            yield controller
