"""A proxy of the service that loses answers: requests are carried out, and the connection is cut instead of answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class LossyProxy:
    """A TCP proxy; `losses` answers are still to be lost, and `requests` are the heads of all that were passed on."""

    host: str
    port: int
    losses: int = 0
    requests: list[str] = field(default_factory=list)
    url: str = ""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass requests on one by one; close where an answer is to be lost."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            inner_reader, inner_writer = await asyncio.open_connection(self.host, self.port)
            while True:
                request = await read_message(reader)
                self.requests.append(request.partition(b"\r\n\r\n")[0].decode())
                inner_writer.write(request)
                answer = await read_message(inner_reader)
                if self.losses:
                    self.losses -= 1
                    break
                writer.write(answer)
                await writer.drain()
            inner_writer.close()
        writer.close()

    def keys(self) -> list[str]:
        """Return the idempotency keys of all requests that had one."""
        lines = (line.partition(": ") for request in self.requests for line in request.splitlines())
        return [value for name, _, value in lines if name.lower() == "idempotency-key"]


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """Return one HTTP message with a body of a declared length, or none."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    return head + await reader.readexactly(int(lengths[0]) if lengths else 0)


@asynccontextmanager
async def running_lossy_proxy(url: str) -> AsyncIterator[LossyProxy]:
    """A proxy of the service at this address until the block ends."""
    host, _, port = url.removeprefix("http://").partition(":")
    proxy = LossyProxy(host, int(port))
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
