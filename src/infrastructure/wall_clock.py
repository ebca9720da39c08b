"""Real time and fresh ids."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import uuid_utils.compat


def clock() -> datetime:
    return datetime.now(UTC)


def new_id() -> UUID:
    return uuid_utils.compat.uuid7()


class WallClock:
    now = staticmethod(clock)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
