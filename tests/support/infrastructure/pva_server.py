"""A real PV Access server, run as a process of its own: its signals come, change and go as standard input says.

Each line in is one command as JSON, each line out its answer. The server listens on loopback only.
"""

import json
import sys
import time
from typing import Any

import numpy
from p4p.nt import NTEnum, NTNDArray, NTScalar, NTTable
from p4p.server import Server, StaticProvider
from p4p.server.thread import SharedPV

CODES = {bool: "?", int: "l", float: "d", str: "s"}


class WriteBehaviour:
    """How a signal takes a write."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said

    def put(self, signal: SharedPV, operation: Any) -> None:
        if refusal := self._said.get("refusal"):
            operation.done(error=refusal)
            return
        time.sleep(self._said.get("delay", 0))
        signal.post(operation.value())
        operation.done()


class ScriptedSignal:
    def __init__(self) -> None:
        self.provider = StaticProvider("played")
        self.signals: dict[str, SharedPV] = {}
        self.forms: dict[str, Any] = {}

    def set(self, address: str, value: Any, **said: Any) -> None:
        """Give a signal this value, and make it first if need be."""
        new = address not in self.forms
        if new:
            self.forms[address] = form(value, said)
        made = fill(self.forms[address], value, said)
        if new:
            self.signals[address] = SharedPV(initial=made, handler=WriteBehaviour(said))
            self.provider.add(address, self.signals[address])
        else:
            self.signals[address].post(made)

    def drop(self, address: str) -> None:
        """Take a signal away from its clients."""
        self.forms.pop(address, None)
        if (signal := self.signals.pop(address, None)) is not None:
            self.provider.remove(address)
            signal.close(destroy=True)

    def value(self, address: str) -> Any:
        """What was written last."""
        value = self.signals[address].current()["value"]
        if hasattr(value, "tolist"):
            return value.tolist()
        return value["index"] if hasattr(value, "items") else value

    def reset(self) -> None:
        """Take away everything."""
        for address in list(self.signals):
            self.drop(address)


def form(value: Any, said: dict[str, Any]) -> Any:
    if said.get("labels"):
        return NTEnum()
    if said.get("image"):
        return NTNDArray()
    if isinstance(value, dict):
        return NTTable([(name, CODES[type(column[0])]) for name, column in value.items()])
    first = value[0] if isinstance(value, list) else value
    code = said.get("code") or CODES[type(first)]
    return NTScalar(f"a{code}" if isinstance(value, list) else code, display=code != "s", control="limits" in said)


def fill(form: Any, value: Any, said: dict[str, Any]) -> Any:
    if said.get("image"):
        made = form.wrap(numpy.array(value, dtype=said["image"]))
    elif labels := said.get("labels"):
        made = form.wrap({"index": labels.index(value), "choices": labels})
    elif isinstance(value, dict):
        made = form.wrap([dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)])
    else:
        made = form.wrap(value)
    stamp = said.get("timestamp") or 0
    made["timeStamp"] = {"secondsPastEpoch": int(stamp), "nanoseconds": round(stamp % 1 * 1e9)}
    made["alarm"] = {"severity": said.get("severity", 0), "status": 0, "message": said.get("status") or ""}
    if limits := said.get("limits"):
        made["control"] = {"limitLow": limits[0], "limitHigh": limits[1]}
    for field in ("units", "description"):
        if field in said:
            made[f"display.{field}"] = said[field]
    return made


if __name__ == "__main__":
    played = ScriptedSignal()
    with Server(providers=[played.provider], isolate=True) as server:
        print(json.dumps(server.conf()), flush=True)
        for line in sys.stdin:
            command = json.loads(line)
            print(json.dumps(getattr(played, command.pop("do"))(**command)), flush=True)
