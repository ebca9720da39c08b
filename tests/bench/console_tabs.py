"""Open tabs of the console, in a process of their own: what each of them is sent, and how old it is when it arrives.

It is started with its tabs as JSON, reads a request a line from standard input, and answers each with a line of JSON.
"""

import asyncio
import json
import random
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import httpx

from tests.support.waiting import until

OPENING_SECONDS = 60.0
LONGEST_AGE_SECONDS = 30.0
LONGEST_LINE = 2**24  # bytes of an answer
PROBE_PAUSE = (0.5, 1.5)  # seconds between two probes, at random, so that they meet renderings at any moment


@dataclass(frozen=True)
class TabAddress:
    """A page that somebody looks at."""

    name: str
    at: str
    principal_id: str


@dataclass(frozen=True)
class Probe:
    """Commands by turns, each of which changes what the tabs of a page show; `{mark}` stands for a text of its own."""

    name: str  # of the page whose tabs must show it
    path: str
    bodies: Sequence[tuple[str, Mapping[str, Any]]]  # verbs and bodies
    shown: bool  # whether the mark stands on the page; else the next region that arrives counts


@dataclass
class Tab:
    """One open tab: what it was sent so far."""

    address: TabAddress
    frames: int = 0
    regions: int = 0
    size: int = 0
    troubles: int = 0
    opened: bool = False
    ended: str | None = None
    awaited: bytes | None = None  # what the region must hold that is waited for; b"" for anything
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, client: httpx.AsyncClient) -> None:
        """Take every frame until the stream ends."""
        headers = {"X-Principal-Id": self.address.principal_id, "Accept": "text/event-stream"}
        rest = b""
        async with client.stream("GET", "/console/live", params={"at": self.address.at}, headers=headers) as answer:
            if answer.status_code != 200:
                self.ended = f"{self.address.at}: {answer.status_code}"
                return
            async for chunk in answer.aiter_bytes():
                *frames, rest = (rest + chunk).split(b"\n\n")
                for frame in frames:
                    self._take(frame)
        self.ended = f"{self.address.at}: the stream ended"

    def _take(self, frame: bytes) -> None:
        self.frames += 1
        self.size += len(frame) + 2
        if frame.startswith(b"event: trouble"):
            self.opened = True
            self.troubles += 1
        if frame.startswith(b"event: region"):
            self.opened = True
            self.regions += 1
            if self.awaited is not None and self.awaited in frame:
                self.awaited = None
                self.arrived.set()

    async def wait_for(self, text: bytes, begun: float) -> float | None:
        """Return after how many milliseconds a region with a text arrived; None where it did not in time."""
        self.awaited = text
        self.arrived.clear()
        try:
            async with asyncio.timeout(LONGEST_AGE_SECONDS):
                await self.arrived.wait()
        except TimeoutError:
            self.awaited = None
            return None
        return (time.perf_counter() - begun) * 1000


@dataclass
class TabReaders:
    """All tabs, and a connection to give commands."""

    client: httpx.AsyncClient
    tabs: list[Tab]
    _reading: "list[asyncio.Task[None]]" = field(default_factory=list)

    async def open(self) -> dict[str, Any]:
        """Open every tab, and wait until each of them has shown something, or said that it cannot."""
        for tab in self.tabs:
            reading = asyncio.create_task(tab.read(self.client))
            reading.add_done_callback(partial(note_end, tab))
            self._reading.append(reading)
        await until(lambda: all(tab.opened or tab.ended for tab in self.tabs), within=OPENING_SECONDS)
        troubled = [f"{tab.address.at}: in trouble" for tab in self.tabs if tab.troubles]
        opened = [tab for tab in self.tabs if tab.ended is None]
        well = sum(not tab.troubles for tab in opened)
        return {"open": len(opened), "well": well, "ended": sorted({*self._ends(), *troubled})}

    def count(self) -> dict[str, Any]:
        """Return what was sent since the last count, page by page, for each tab of it."""
        names = dict.fromkeys(tab.address.name for tab in self.tabs)
        counted = {}
        for name in names:
            tabs = [tab for tab in self.tabs if tab.address.name == name]
            sums = {what: sum(getattr(tab, what) for tab in tabs) for what in ("frames", "regions", "size", "troubles")}
            counted[name] = {"tabs": len(tabs), **{what: value / len(tabs) for what, value in sums.items()}}
        for tab in self.tabs:
            tab.frames = tab.regions = tab.size = tab.troubles = 0
        return {"pages": counted, "ended": self._ends()}

    async def probe(self, probe: Probe, count: int) -> dict[str, Any]:
        """Return how old the changes of at least so many commands were when they arrived, in each tab of a page."""
        tabs = [tab for tab in self.tabs if tab.address.name == probe.name and tab.ended is None]
        ages: list[float | None] = []
        for _ in range(-(-count // len(probe.bodies))):  # whole turns, after which everything is as it was
            seen = [age for verb, body in probe.bodies for age in await self._change(probe, verb, body, tabs)]
            ages += seen
            if all(age is None for age in seen):
                break
        return {"ages": [age for age in ages if age is not None], "lost": sum(age is None for age in ages)}

    async def _change(self, probe: Probe, verb: str, body: Mapping[str, Any], tabs: Sequence[Tab]) -> list[float | None]:
        """Return how old one change was when it arrived, in each of these tabs; None where it did not."""
        await asyncio.sleep(random.uniform(*PROBE_PAUSE))
        mark = f"mark-{time.time_ns()}"
        marked = {name: text.replace("{mark}", mark) for name, text in body.items()}
        begun = time.perf_counter()
        waiting = [asyncio.create_task(tab.wait_for(mark.encode() if probe.shown else b"", begun)) for tab in tabs]
        given = await self.client.post(f"{probe.path}/{verb}", json=marked)
        assert given.status_code < 300, given.text
        return await asyncio.gather(*waiting)

    def _ends(self) -> list[str]:
        return sorted({tab.ended for tab in self.tabs if tab.ended is not None})


def note_end(tab: Tab, reader: "asyncio.Task[None]") -> None:
    """Note why the stream of a tab broke, where it did."""
    if not reader.cancelled() and (error := reader.exception()) is not None:
        tab.ended = f"{tab.address.at}: {type(error).__name__}"


@dataclass(frozen=True)
class TabProcess:
    """The process, as the one that started it asks it."""

    process: Process

    async def ask(self, request: str, **fields: Any) -> Any:
        """Return the answer to a request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"request": request, **fields}).encode() + b"\n")
        answer = await self.process.stdout.readline()
        assert answer, "the process of the tabs has ended"
        return json.loads(answer)

    async def probe(self, probe: Probe, count: int) -> Any:
        """Return the ages of what at least so many commands changed."""
        return await self.ask("probe", probe=asdict(probe), count=count)


@asynccontextmanager
async def open_tabs(url: str, addresses: Sequence[TabAddress]) -> AsyncIterator[TabProcess]:
    """These tabs, each of which has shown its page, until the end of the block."""
    start = json.dumps({"url": url, "tabs": [asdict(one) for one in addresses]})
    command = [sys.executable, "-m", "tests.bench.console_tabs", start]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, limit=LONGEST_LINE)
    try:
        yield TabProcess(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def serve(url: str, addresses: Sequence[TabAddress]) -> None:
    """Answer requests until there are no more."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:
        readers = TabReaders(client, [Tab(address) for address in addresses])
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            match request.pop("request"):
                case "open":
                    answer = await readers.open()
                case "count":
                    answer = readers.count()
                case "probe":
                    answer = await readers.probe(Probe(**request["probe"]), request["count"])
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    asyncio.run(serve(given["url"], [TabAddress(**one) for one in given["tabs"]]))
