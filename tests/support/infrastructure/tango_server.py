"""A real Tango device server, without a database unless TANGO_HOST names one, as a process of its own on loopback.

Its attributes come, change and go as standard input says: each line in is one command as JSON, each line out its answer.
An attribute is never removed, since the library now and then crashes behind that; one that is gone fails as if it were.
"""

import json
import os
import select
import socket
import sys
import time
from typing import Any

import tango
from tango import AttrQuality, AttrWriteType
from tango.server import Device, attribute, command, run

DEVICE = "bl7/test/1"
QUALITIES = {0: AttrQuality.ATTR_VALID, 1: AttrQuality.ATTR_WARNING, 2: AttrQuality.ATTR_ALARM, 3: AttrQuality.ATTR_INVALID}
TYPES = {bool: bool, int: int, float: float, str: str}
LONG_AGO = 1.0
"""The time of an attribute that gives none, since Tango takes 0 for now."""
PUTS: list[tuple[float, str, Any]] = []
"""Everything that clients have written: when by the clock that counts suspended time, what, which value."""


class PlayedDevice(Device):
    """A device whose attributes are made by script."""

    def init_device(self) -> None:
        super().init_device()
        self.set_state(tango.DevState.ON)
        self.played: dict[str, dict[str, Any]] = {}

    @command(dtype_in=float, dtype_out=float)
    def Home(self, speed: float) -> float:
        """Note that it was called, as slowly as the script says."""
        PUTS.append((now(), "Home", speed))
        time.sleep(self.played.get("Home", {}).get("seconds", 0))
        return speed

    @command
    def Reset(self) -> None:
        """Note that it was called."""
        PUTS.append((now(), "Reset", None))

    @command
    def Fail(self) -> None:
        """Raise what a device of its own raises."""
        raise RuntimeError("the drive is off")

    def read_played(self, attr: Any) -> Any:
        told = self.played[attr.get_name()]
        if told["gone"]:
            raise_not_found(attr.get_name())
        return told["value"], told["timestamp"], told["quality"]

    def write_played(self, attr: Any) -> None:
        told, value = self.played[attr.get_name()], plain(attr.get_write_value())
        if told["gone"]:
            raise_not_found(attr.get_name())
        PUTS.append((now(), attr.get_name(), value))
        if path := os.environ.get("PUTS_FILE"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps([attr.get_name(), value]) + "\n")
        if told["rejecting"]:
            raise RuntimeError("not now")
        told["value"], told["quality"] = value, AttrQuality.ATTR_VALID
        time.sleep(told["seconds"])
        self.push(attr.get_name())

    def push(self, name: str) -> None:
        told = self.played[name]
        if told["pushed"]:
            self.push_change_event(name, told["value"], told["timestamp"], told["quality"])


class Script:
    """The commands of standard input."""

    def __init__(self, device: PlayedDevice) -> None:
        self.device = device

    def set(self, address: str, value: Any, **said: Any) -> None:
        """Give an attribute this value; make it first if need be."""
        device, told = self.device, self.device.played.get(address)
        if told is None or "pushed" not in told:
            self.make(address, value, said)
            told = device.played[address] = {"pushed": said.get("pushed", True)}
        told["rejecting"], told["seconds"] = said.get("rejecting", False), said.get("seconds", 0)
        told["gone"] = False
        told["value"] = said["labels"].index(value) if said.get("labels") else value
        told["timestamp"] = said.get("timestamp") or LONG_AGO
        told["quality"] = QUALITIES[said.get("severity") or 0] if not said.get("changing") else AttrQuality.ATTR_CHANGING
        if not said.get("unheard"):
            device.push(address)

    def make(self, address: str, value: Any, said: dict[str, Any]) -> None:
        first = value[0] if isinstance(value, list) else value
        first = first[0] if isinstance(first, list) else first
        options: dict[str, Any] = {"dtype": TYPES[type(first)], "fget": self.device.read_played}
        if labels := said.get("labels"):
            options |= {"dtype": "DevEnum", "enum_labels": labels}
        elif isinstance(value, list):
            deep = isinstance(value[0], list)
            options |= {"dtype": ((options["dtype"],),) if deep else (options["dtype"],), "max_dim_x": 10}
            options |= {"max_dim_y": 10} if deep else {}
        if not said.get("read_only"):
            options |= {"access": AttrWriteType.READ_WRITE, "fset": self.device.write_played}
        if limits := said.get("limits"):
            low, high = limits
            if low < high:  # the server itself refuses others
                options |= {"min_value": low, "max_value": high}
        if units := said.get("units"):
            options["unit"] = units
        if "polled" in said:
            options["polling_period"] = said["polled"]
        self.device.add_attribute(attribute(name=address, **options))
        if said.get("pushed", True):
            self.device.set_change_event(address, True, False)

    def slow(self, name: str, seconds: float) -> None:
        """Let a command take so long."""
        self.device.played[name] = {"seconds": seconds}

    def drop(self, address: str) -> None:
        """Take an attribute away from its clients, after everything it said."""
        told = self.device.played.setdefault(address, {})
        told["gone"] = True
        if told.get("pushed"):
            try:
                raise_not_found(address)
            except tango.DevFailed as gone:
                self.device.push_change_event(address, gone)

    def value(self, address: str) -> Any:
        """What was written last."""
        return self.device.played[address]["value"]

    def puts(self) -> list[tuple[float, str, Any]]:
        """What clients have written so far."""
        return PUTS

    def reset(self) -> None:
        """Forget what was written, and be quick again."""
        self.device.played.pop("Home", None)
        PUTS.clear()


def raise_not_found(address: str) -> None:
    tango.Except.throw_exception("API_AttrNotFound", f"{address} attribute not found", "played")


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, tuple) else value


class Reader:
    """Standard input, read between the requests of clients: attributes come and go in the server's own thread."""

    def __init__(self) -> None:
        self.script: Script | None = None

    def begin(self, port: int) -> None:
        self.script = Script(tango.Util.instance().get_device_by_name(DEVICE))
        print(json.dumps({"port": port, "device": DEVICE}), flush=True)

    def obey(self) -> bool:
        """Do what the next line says; return whether the server ends."""
        if self.script is None or not select.select([sys.stdin.fileno()], [], [], 0.05)[0]:
            return False
        if not (line := sys.stdin.readline()):
            return True
        told = json.loads(line)
        print(json.dumps(getattr(self.script, told.pop("do"))(**told)), flush=True)
        return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def main() -> None:
    port = int(os.environ.get("TANGO_SERVER_PORT") or free_port())
    alone = [] if "TANGO_HOST" in os.environ else ["-nodb", "-dlist", DEVICE]
    arguments = ["played", "test", *alone, "-ORBendPoint", f"giop:tcp:127.0.0.1:{port}"]
    reader = Reader()
    run(
        (PlayedDevice,),
        args=arguments,
        msg_stream=None,
        event_loop=reader.obey,
        post_init_callback=lambda: reader.begin(port),
    )


if __name__ == "__main__":
    main()
