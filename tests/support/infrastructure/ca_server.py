"""A real Channel Access server, run as a process of its own: its signals come, change and go as standard input says.

Each line in is one command as JSON, each line out its answer. The server listens on loopback only.
"""

import asyncio
import json
import logging
import sys
import time
from contextlib import suppress
from typing import Any

import caproto
from caproto.asyncio.server import Context, VirtualCircuit
from caproto.server.common import Subscription

TYPES = {bool: caproto.ChannelInteger, int: caproto.ChannelInteger, float: caproto.ChannelDouble, str: caproto.ChannelString}
NEVER = (0, 0)
"""The time of a signal that was never processed."""
PUTS: list[tuple[float, str, str]] = []
"""Everything that clients have put: when by the clock that counts suspended time, who, where."""


class ScriptedChannel:
    """A channel whose manners can be chosen."""

    spoken: asyncio.Event
    address = ""
    rights = caproto.AccessRights.READ | caproto.AccessRights.WRITE
    rejecting = False
    hanging = False
    drive_limits: tuple[float, float] | None = None

    def check_access(self, hostname: str, username: str) -> caproto.AccessRights:
        return self.rights

    async def verify_value(self, data: Any) -> Any:
        """Cut what is written to the drive limits without a word, as records of EPICS base do."""
        if self.drive_limits is None:
            return await super().verify_value(data)  # type: ignore[misc]
        return min(max(data, self.drive_limits[0]), self.drive_limits[1])

    async def auth_read(self, *arguments: Any, **options: Any) -> Any:
        await self.spoken.wait()
        return await super().auth_read(*arguments, **options)  # type: ignore[misc]

    async def auth_write(self, hostname: str, username: str, *arguments: Any, **options: Any) -> Any:
        if self.rejecting:
            raise ValueError("not now")
        PUTS.append((time.clock_gettime(time.CLOCK_BOOTTIME), username, self.address))
        written = await super().auth_write(hostname, username, *arguments, **options)  # type: ignore[misc]
        if self.hanging:
            await asyncio.Event().wait()
        return written

    async def subscribe(self, queue: Any, sub_spec: Any, sub: Subscription) -> None:
        if self.spoken.is_set():
            await super().subscribe(queue, sub_spec, sub)  # type: ignore[misc]
        else:
            self._queues[queue][sub_spec.channel_filter.sync][sub_spec.data_type_name].add(sub_spec)  # type: ignore[attr-defined]


class Circuit(VirtualCircuit):
    """A circuit that knows what those who follow were sent last."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sent: dict[int, Any] = {}

    async def send(self, *commands: Any) -> None:
        await super().send(*commands)
        self.sent |= {each.subscriptionid: each for each in commands if isinstance(each, caproto.EventAddResponse)}

    def has_sent_everything(self) -> bool:
        followed = [sub.subscriptionid for subs in self.subscriptions.values() for sub in subs]
        return all(self.sent.get(id) is updates[-1] for id in followed if (updates := self.unexpired_updates.get(id)))


class Server:
    def __init__(self) -> None:
        self.channels: dict[str, Any] = {}
        self.context = Context(self.channels, ["127.0.0.1"])
        self.context.CircuitClass = Circuit

    async def set(self, address: str, value: Any, **said: Any) -> None:
        """Give a signal this value and, where it is said, this unit; make it first if need be."""
        channel = self.channels.get(address)
        if channel is None:
            channel = self.channels[address] = make_channel(value, said)
            channel.address = address
        elif "units" in said:
            channel._data["units"] = said["units"]
        stamp = said.get("timestamp")
        alarm = {
            "status": caproto.AlarmStatus[said.get("status") or "NO_ALARM"],
            "severity": caproto.AlarmSeverity(said.get("severity", 0)),
        }
        channel.spoken.set()
        await channel.write(
            bytes(value) if said.get("characters") else value, timestamp=NEVER if stamp is None else stamp, **alarm
        )

    async def silent(self, address: str) -> None:
        """Make a signal that has no value yet."""
        self.channels[address] = channel = make_channel(0, {})
        channel.spoken.clear()

    async def drop(self, address: str) -> None:
        """Take a signal away from its clients, after everything it said is on its way."""
        while not self.context.subscription_queue.empty() or not all(  # noqa: ASYNC110
            circuit.has_sent_everything() for circuit in self.context.circuits
        ):
            await asyncio.sleep(0.001)
        await self._taken_away(frozenset([address]))

    async def _taken_away(self, addresses: frozenset[str]) -> None:
        for address in addresses:
            self.channels.pop(address, None)
        for circuit in list(self.context.circuits):
            with suppress(Exception):  # a client that is gone need not be told
                for channel in list(circuit.circuit.channels.values()):
                    if channel.name in addresses:
                        await circuit.send(channel.disconnect())

    async def subscriptions(self, address: str) -> int:
        """How many follow a signal."""
        channel = self.channels.get(address)
        return sum(len(subs) for spec, subs in self.context.subscriptions.items() if channel and spec.db_entry is channel)

    async def value(self, address: str) -> Any:
        """What was written last."""
        value = self.channels[address].value
        return list(value) if isinstance(value, bytes) else value.tolist() if hasattr(value, "tolist") else value

    async def puts(self) -> list[tuple[float, str, str]]:
        """What clients have put so far."""
        return PUTS

    async def reset(self) -> None:
        """Take away everything."""
        for channel in self.channels.values():
            channel.spoken.set()
        await self._taken_away(frozenset(self.channels))

    async def run(self) -> None:
        serving = asyncio.create_task(self.context.run())
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while not self.context.udp_socks:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        print(json.dumps({"port": self.context.port}), flush=True)
        while line := await lines.readline():
            command = json.loads(line)
            print(json.dumps(await getattr(self, command.pop("do"))(**command)), flush=True)
        serving.cancel()


def make_channel(value: Any, said: dict[str, Any]) -> Any:
    first = value[0] if isinstance(value, list) else value
    options: dict[str, Any] = {"value": value}
    base = TYPES[type(first)]
    if labels := said.get("labels"):
        base, options["enum_strings"] = caproto.ChannelEnum, labels
    elif said.get("characters"):
        base, options["max_length"] = caproto.ChannelByte, 100
        options["value"] = bytes(value)
    elif isinstance(value, list):
        options["max_length"] = said.get("length", 10)
    if units := said.get("units"):
        options["units"] = units
    if limits := said.get("limits"):
        options["lower_ctrl_limit"], options["upper_ctrl_limit"] = limits
    channel: Any = type(f"Played{base.__name__}", (ScriptedChannel, base), {})(**options)
    channel.spoken = asyncio.Event()
    channel.spoken.set()
    channel.rejecting, channel.hanging = said.get("rejecting", False), said.get("hanging", False)
    if "drive_limits" in said:
        channel.drive_limits = tuple(said["drive_limits"])
    if "rights" in said:
        channel.rights = caproto.AccessRights(said["rights"])
    return channel


async def main() -> None:
    await Server().run()


if __name__ == "__main__":
    logging.disable()
    asyncio.run(main())
