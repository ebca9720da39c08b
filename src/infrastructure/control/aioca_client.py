"""Channel Access through EPICS's own compiled library; part of the extra `epics`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aioca
from epicscorelibs.ca import cadef

from baton.application.control import ControlLimits, Fence
from baton.infrastructure.control import channel_access as ca
from baton.infrastructure.control.channel_access import OnSample
from baton.infrastructure.control.signal_values import sample_time


class AiocaClient:
    """A client that finds servers by the variables EPICS_CA_*. All clients of one event loop share their channels."""

    async def connect(self, address: str) -> ca.ChannelInfo:
        while True:
            await aioca.connect(address, timeout=None)
            info = await aioca.cainfo(address, wait=False, timeout=None)
            if info.state == cadef.cs_conn:
                return ca.ChannelInfo(type=info.datatype, count=info.count, readable=info.read, writable=info.write)
            await asyncio.sleep(0)  # the library knows of a loss before this loop does

    async def get(self, address: str) -> ca.ChannelSample:
        async with _translate_errors(address):
            return _sample(await aioca.caget(address, format=aioca.FORMAT_TIME, timeout=None))

    async def properties(self, address: str) -> ca.ChannelProperties:
        async with _translate_errors(address):
            declared = await aioca.caget(address, format=aioca.FORMAT_CTRL, count=1, timeout=None)
        labels = declared.enums if declared.datatype == ca.ENUM else ()
        low, high = (float(getattr(declared, f"{side}_ctrl_limit", 0)) for side in ("lower", "upper"))
        limits = ControlLimits.from_declared(low, high)
        return ca.ChannelProperties(units=getattr(declared, "units", "") or None, labels=tuple(labels), limits=limits)

    async def put(self, address: str, value: object, wait: bool, fence: Fence) -> None:
        async with _translate_errors(address):
            if (await aioca.cainfo(address, wait=False, timeout=None)).state != cadef.cs_conn:
                raise ca.ChannelRefusal(ca.DISCONNECTED, f"{address} was lost")
            fence()  # the library sends to a connected channel at once: it awaits nothing before
            await aioca.caput(address, value, wait=wait, timeout=None)

    async def monitor(self, address: str, on_sample: OnSample) -> Callable[[], Awaitable[None]]:
        def receive(value: Any) -> None:
            on_sample(_sample(value) if value.ok else None)

        # a channel that goes away while it is being subscribed to counts as lost after a second
        subscription = aioca.camonitor(
            address, receive, format=aioca.FORMAT_TIME, all_updates=True, notify_disconnect=True, connect_timeout=1.0
        )

        async def end() -> None:
            subscription.close()

        return end

    async def close(self) -> None:
        aioca.purge_channel_caches()


@asynccontextmanager
async def _translate_errors(address: str) -> AsyncIterator[None]:
    try:
        yield
    except aioca.CANothing as refusal:
        raise ca.ChannelRefusal(refusal.errorcode, cadef.ca_message(refusal.errorcode)) from refusal
    except cadef.CAException as refusal:
        raise ca.ChannelRefusal(refusal.status, cadef.ca_message(refusal.status)) from refusal
    except cadef.Disconnected as refusal:
        raise ca.ChannelRefusal(ca.DISCONNECTED, f"{address} was lost") from refusal


def _sample(value: Any) -> ca.ChannelSample:
    seconds, nanoseconds = value.raw_stamp
    plain = value.tolist() if hasattr(value, "tolist") else str(value) if isinstance(value, str) else value + 0
    return ca.ChannelSample(plain, int(value.status), int(value.severity), sample_time(int(seconds), int(nanoseconds)))
