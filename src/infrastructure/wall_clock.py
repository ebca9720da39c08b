"""The wall clock."""

import asyncio
from datetime import UTC, datetime


class WallClock:
    """Real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
