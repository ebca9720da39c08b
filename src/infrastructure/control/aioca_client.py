"""Channel Access through EPICS's own compiled library; part of the extra `epics`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aioca
from epicscorelibs.ca import cadef

from baton.application.control import Fence
from baton.infrastructure.control.channel_access import DISCONNECTED, ENUM, Channel, ChannelRefusal, Properties, Sample, Told
from baton.infrastructure.control.epics import sampled

LOST_WITHIN = 1.0
"""Seconds after which a channel counts as lost that went away while a subscription was being made."""


class AiocaClient:
    """Finds servers as the variables EPICS_CA_* say. All clients of one event loop share their channels."""

    async def connect(self, address: str) -> Channel:
        while True:
            await aioca.connect(address, timeout=None)
            known = await aioca.cainfo(address, wait=False, timeout=None)
            if known.state == cadef.cs_conn:
                return Channel(type=known.datatype, count=known.count, readable=known.read, writable=known.write)
            await asyncio.sleep(0)  # the library knows of a loss that this loop hears of in a moment

    async def get(self, address: str) -> Sample:
        async with _answered(address):
            return _sample(await aioca.caget(address, format=aioca.FORMAT_TIME, timeout=None))

    async def properties(self, address: str) -> Properties:
        async with _answered(address):
            told = await aioca.caget(address, format=aioca.FORMAT_CTRL, count=1, timeout=None)
        labels = told.enums if told.datatype == ENUM else ()
        return Properties(units=getattr(told, "units", "") or None, labels=tuple(labels))

    async def put(self, address: str, value: Any, wait: bool, fence: Fence) -> None:
        async with _answered(address):
            if (await aioca.cainfo(address, wait=False, timeout=None)).state != cadef.cs_conn:
                raise ChannelRefusal(DISCONNECTED, f"{address} was lost")
            fence()  # the library sends to a connected channel at once: it awaits nothing before
            await aioca.caput(address, value, wait=wait, timeout=None)

    async def monitor(self, address: str, told: Told) -> Callable[[], Awaitable[None]]:
        def hear(value: Any) -> None:
            told(_sample(value) if value.ok else None)

        subscription = aioca.camonitor(
            address, hear, format=aioca.FORMAT_TIME, all_updates=True, notify_disconnect=True, connect_timeout=LOST_WITHIN
        )

        async def end() -> None:
            subscription.close()

        return end

    async def close(self) -> None:
        aioca.purge_channel_caches()


@asynccontextmanager
async def _answered(address: str) -> AsyncIterator[None]:
    try:
        yield
    except aioca.CANothing as refusal:
        raise ChannelRefusal(refusal.errorcode, cadef.ca_message(refusal.errorcode)) from refusal
    except cadef.CAException as refusal:
        raise ChannelRefusal(refusal.status, cadef.ca_message(refusal.status)) from refusal
    except cadef.Disconnected as refusal:
        raise ChannelRefusal(DISCONNECTED, f"{address} was lost") from refusal


def _sample(value: Any) -> Sample:
    seconds, nanoseconds = value.raw_stamp
    plain = value.tolist() if hasattr(value, "tolist") else str(value) if isinstance(value, str) else value + 0
    return Sample(plain, int(value.status), int(value.severity), sampled(int(seconds), int(nanoseconds)))
