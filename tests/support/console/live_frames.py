"""The live stream of a page, frame by frame."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from tests.support.service import Api


class Frames:
    """The frames of one open stream."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def next(self, event: str, unless: str = "") -> dict[str, Any]:
        """Return the next frame of this kind; fail where one of another kind comes before it."""
        async with asyncio.timeout(60):
            async for line in self._lines:
                assert not unless or line != f"event: {unless}", line
                if line == f"event: {event}":
                    found: dict[str, Any] = json.loads((await anext(self._lines)).removeprefix("data: "))
                    return found
        raise AssertionError("the stream has ended")

    async def next_region(self, name: str) -> dict[str, Any]:
        """Return the next rendering of a region."""
        while (frame := await self.next("region"))["id"] != f"region-{name}":
            pass
        return frame


@asynccontextmanager
async def open_stream(api: Api, address: str) -> AsyncIterator[Frames]:
    """The live stream of the page at an address, until the end of the block."""
    async with api.client.stream("GET", "/console/live", params={"at": address}, headers=api.headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        async with aclosing(answer.aiter_lines()) as lines:
            yield Frames(lines)
