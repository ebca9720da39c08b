"""Proxies of an executor of Bluesky plans that disturb one request: it, or its answer, is lost, late or comes twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

import httpx
import zmq
import zmq.asyncio

from tests.support.api.lossy_proxy import read_message

DELAY_SECONDS = 10.0
Forward = Callable[[bytes], Awaitable[bytes]]  # sends a request on, and returns its answer


class Disturbance(StrEnum):
    ANSWER_LOST = "answer lost"
    ANSWER_LATE = "answer late"
    REQUEST_LATE = "request late"  # its sender has given it up by then
    REQUEST_TWICE = "request twice"


@dataclass
class UnreliableProxy:
    """A proxy that disturbs the request of a number, counted from when it was last armed."""

    address: str = ""
    disturbance: Disturbance | None = None
    chosen: int = -1
    requests: list[str] = field(default_factory=list)
    _late: set[asyncio.Task[bytes]] = field(default_factory=set)

    def arm(self, disturbance: Disturbance, chosen: int) -> None:
        """Disturb this request of those that follow."""
        self.disturbance, self.chosen, self.requests = disturbance, chosen, []

    @property
    def was_met(self) -> bool:
        """Whether the chosen request came."""
        return len(self.requests) > self.chosen

    async def settle(self) -> None:
        """Wait for what is still to arrive."""
        await asyncio.gather(*self._late, return_exceptions=True)

    async def carry(self, name: str, request: bytes, forward: Forward) -> bytes | None:
        """Carry one request and return its answer; None where it has none in time."""
        self.requests.append(name)
        if len(self.requests) - 1 != self.chosen:
            return await forward(request)
        match self.disturbance:
            case Disturbance.ANSWER_LOST:
                await forward(request)
                return None
            case Disturbance.ANSWER_LATE:
                answer = await forward(request)
                await asyncio.sleep(DELAY_SECONDS)
                return answer
            case Disturbance.REQUEST_LATE:
                late = asyncio.create_task(self._forward_late(request, forward))
                self._late.add(late)
                return None
            case _:
                first = await forward(request)
                await forward(request)
                return first

    async def _forward_late(self, request: bytes, forward: Forward) -> bytes:
        await asyncio.sleep(DELAY_SECONDS)
        return await forward(request)


@asynccontextmanager
async def unreliable_queueserver(address: str) -> AsyncIterator[UnreliableProxy]:
    """A proxy of the manager's control socket."""
    context = zmq.asyncio.Context()
    front = context.socket(zmq.ROUTER)
    proxy = UnreliableProxy(f"tcp://127.0.0.1:{front.bind_to_random_port('tcp://127.0.0.1')}")

    async def forward(request: bytes) -> bytes:
        behind = context.socket(zmq.REQ)
        try:
            behind.connect(address)
            await behind.send(request)
            return bytes(await behind.recv())
        finally:
            behind.close(linger=0)

    async def answer(identity: bytes, request: bytes) -> None:
        if (found := await proxy.carry(str(len(request)), request, forward)) is not None:
            await front.send_multipart([identity, b"", found])

    async def serve() -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                identity, _, request = await front.recv_multipart()
                tasks.create_task(answer(identity, request))

    serving = asyncio.create_task(serve())
    try:
        yield proxy
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        context.destroy(linger=0)


@asynccontextmanager
async def unreliable_blueapi(address: str) -> AsyncIterator[UnreliableProxy]:
    """A proxy of the REST API, for one request of each connection at a time."""
    url, proxy = httpx.URL(address), UnreliableProxy()

    async def forward(request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(url.host, url.port)
        try:
            writer.write(request)
            return await read_message(reader)
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await read_message(reader)
                answer = await proxy.carry(request.partition(b" HTTP")[0].decode(), request, forward)
                if answer is None:
                    await asyncio.sleep(DELAY_SECONDS)
                    break
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
