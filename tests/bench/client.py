"""A load generator that costs little itself: keep-alive connections, raw requests, latencies of every answer."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Measurement:
    """What a load of requests gave."""

    seconds: float
    latencies: list[float] = field(repr=False)
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """The latency, in milliseconds, that this share of the answers stayed below."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request in flight."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator or self._answer is None:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            if line[:15].lower() == b"content-length:":
                length = int(line[15:])
        if len(rest) >= length:
            self._buffer = rest[length:]
            answer, self._answer = self._answer, None
            answer.set_result((int(head[9:12]), rest[:length]))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError())

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """A request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    if body:
        lines.append("Content-Type: application/json")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def open_connection(port: int) -> Connection:
    _, protocol = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return protocol


async def ask_each(port: int, requests: Iterable[bytes]) -> Measurement:
    """Ask one after the other, each once."""
    connection = await open_connection(port)
    latencies: list[float] = []
    statuses: dict[int, int] = {}
    started = time.perf_counter()
    for asked in requests:
        before = time.perf_counter()
        status, _ = await connection.ask(asked)
        latencies.append(time.perf_counter() - before)
        statuses[status] = statuses.get(status, 0) + 1
    connection.close()
    return Measurement(time.perf_counter() - started, latencies, statuses)


async def load(port: int, clients: int, make: Callable[[], bytes], *, seconds: float) -> Measurement:
    """Ask from so many clients at once for so long; a short warm-up before it does not count."""
    connections = [await open_connection(port) for _ in range(clients)]
    latencies: list[float] = []
    statuses: dict[int, int] = {}
    clock = time.perf_counter
    warm, end = clock() + 0.3, clock() + 0.3 + seconds

    async def one(connection: Connection) -> None:
        while (started := clock()) < end:
            status, _ = await connection.ask(make())
            if started > warm:
                latencies.append(clock() - started)
                statuses[status] = statuses.get(status, 0) + 1

    await asyncio.gather(*(one(connection) for connection in connections))
    for connection in connections:
        connection.close()
    return Measurement(seconds, latencies, statuses)
