"""A database that can be cut off: what passes through here is stopped without a word, as by a cable that is pulled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

CHUNK = 65536
NOTICED_AFTER = 6.0  # seconds of silence after which TCP tells the near end, by the time-out that the service sets
SOCKET = ".s.PGSQL.5432"


@dataclass
class Cable:
    """The way to a database, and the address of its near end."""

    url: str
    near_ends: list[asyncio.StreamWriter] = field(default_factory=list)
    _whole: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self) -> None:
        """Let nothing through any more; only the near end is told, in time."""
        self._whole.clear()
        for end in self.near_ends:
            asyncio.get_running_loop().call_later(NOTICED_AFTER, end.transport.abort)

    def mend(self) -> None:
        self._whole.set()

    async def carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Carry what comes until it ends."""
        try:
            while data := await source.read(CHUNK):
                await self._whole.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass  # one end is gone: so is the other
        finally:
            sink.close()


@asynccontextmanager
async def cable_to(url: str, directory: Path) -> AsyncIterator[Cable]:
    """A cable to a database that listens on a socket of this machine, with its near end in a directory."""
    (host,) = parse_qs(urlsplit(url).query)["host"]
    cable = Cable(url.replace(quote(host, safe=""), quote(str(directory), safe="")))
    cable.mend()

    carrying: list[asyncio.Task[None]] = []

    async def connect(near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        cable.near_ends.append(to_near)
        far, to_far = await asyncio.open_unix_connection(f"{host}/{SOCKET}")
        carrying.extend(asyncio.create_task(cable.carry(*way)) for way in ((near, to_far), (far, to_near)))

    async with await asyncio.start_unix_server(connect, directory / SOCKET):
        try:
            yield cable
        finally:
            for task in carrying:
                task.cancel()
            await asyncio.gather(*carrying, return_exceptions=True)
