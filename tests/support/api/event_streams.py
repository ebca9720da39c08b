"""Readers of live streams: server-sent events as they arrive on a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.service import Api

TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Frame:
    """One event of a stream."""

    id: int
    event: str
    data: dict[str, Any]


@dataclass(frozen=True)
class OpenStream:
    """An open stream."""

    response: httpx.Response
    lines: AsyncIterator[str]

    async def fields(self) -> dict[str, str]:
        """The fields of the next event; comments are passed over."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while (line := await anext(self.lines)) or "data" not in fields:
                name, _, value = line.partition(": ")
                fields |= {name: value} if name else {}
        return fields

    async def frame(self) -> Frame:
        """The next event."""
        fields = await self.fields()
        return Frame(int(fields["id"]), fields["event"], json.loads(fields["data"]))

    async def frames(self, count: int) -> list[Frame]:
        return [await self.frame() for _ in range(count)]


@asynccontextmanager
async def open_feed(
    api: Api, *, last_event_id: int | None = None, headers: dict[str, str] | None = None, **parameters: Any
) -> AsyncIterator[OpenStream]:
    """A reader of the feed, until the block ends."""
    resumed = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
    named = {**api.headers, **resumed, **(headers or {})}
    async with api.client.stream("GET", "/events/stream", params=parameters, headers=named) as response:
        assert response.status_code == 200, (await response.aread()).decode()
        yield OpenStream(response, response.aiter_lines())
