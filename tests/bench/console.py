"""The console at size: how soon each page answers, how soon a browser shows it, and what fifty open tabs cost commands.

python -m tests.bench --only console [--runs 100000] [--assets 1000] [--steps 10000] [--tabs 50] [--quick]
"""

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import psutil
from playwright.async_api import Browser
from playwright.async_api import Error as BrowserError
from playwright.async_api import Page as Window
from rich.console import Console
from rich.table import Table

from baton.api.edge import Routes
from baton.console import pages  # noqa: F401  # every page declares itself
from baton.console.page import PAGES, ConsolePage
from baton.domain.kernel import NIL
from tests.bench.client import request
from tests.bench.conducts import percentile
from tests.bench.console_record import ConsoleRecord
from tests.bench.console_tabs import Probe, TabAddress, TabProcess, open_tabs
from tests.support.console.browser import BROWSER, open_browser, open_window
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.bench.__main__ import Bench

FIRST_BYTE_MILLISECONDS, LOAD_MILLISECONDS, COMMAND_SHARE = 100, 500, 0.9
CLIENTS = 32
SETTLE_SECONDS = 6.0  # after tabs were opened: longer than renderings ever rest
QUIET_SECONDS = 10.0
LOADS = 5  # that a browser makes of each page, after the first
IN_BROWSER = ("Now", "Runs", "Conduct", "Equipment")
SHARES = {"Now": 0.4, "Runs": 0.2, "Conduct": 0.2}  # of the tabs; the others are on other pages
OTHER_TABS = ("Run", "Waiting", "Equipment", "Safety", "Data", "Asset")
DERIVED = frozenset({"list.html", "thing.html"})  # templates of pages that nobody has written by hand
NO_TABS, ONE_PERSON, MANY_PEOPLE = "no tabs", "tabs of one person", "tabs of as many people"
WATCH = """
new MutationObserver((changes, observer) => {
  if (!document.querySelector(".region > *")) return;
  window.firstRegion = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
TIMES = """() => {
  const [entry] = performance.getEntriesByType("navigation");
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  return { load: entry.loadEventEnd, region: window.firstRegion ?? null, paint: paint ? paint.startTime : null };
}"""
console = Console(width=130)


@dataclass(frozen=True)
class Look:
    """A page at one address."""

    name: str
    address: str
    page: ConsolePage


@dataclass
class TabFigures:
    """What was measured in one situation: the API's CPU in percent of a core, the rates of commands round by round, and
    what each tab of a page was sent in the last round: tabs, regions and KiB a second, troubles."""

    quiet: list[float] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)
    frames: dict[str, dict[str, tuple[int, float, float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ConsoleBench:
    """A running service with its record, and the process that serves its pages."""

    bench: "Bench"
    client: httpx.AsyncClient
    port: int
    process: Any
    record: ConsoleRecord
    looks: Mapping[str, Look]

    async def measure(self) -> None:
        """Measure the pages one by one, then in a browser, then beside commands."""
        console.rule("pages")
        await self.pages()
        console.rule("in a browser")
        await self.browser()
        console.rule("open tabs")
        async with self.record.moving_conduct():
            await self.tabs()
            await self.ages()

    async def pages(self) -> None:
        """Ask for each page, one request after the other; that is done once for all of them before anything counts."""
        table = Table("page")
        for name in ("first ms", "p50 ms", "p95 ms", "bytes", "gzip", "CPU ms"):
            table.add_column(name, justify="right")
        firsts = {look.name: (await self._ask(look))[0] for look in self.looks.values()}
        for look in self.looks.values():
            first = firsts[look.name]
            await self._ask(look)
            before = self.cpu_seconds()
            answers = [await self._ask(look) for _ in range(self.record.sizes.requests)]
            cpu = (self.cpu_seconds() - before) / len(answers) * 1000
            status, size, packed = answers[-1][1]
            if status != 200:
                self.bench.budget(f"{look.name} answers, status", status, 200, at_least=False)
                continue
            times = [milliseconds for milliseconds, _ in answers]
            p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
            row = {"address": look.address, "first_ms": round(first, 1), "p50_ms": round(p50, 1)}
            row |= {"p95_ms": round(p95, 1), "bytes": size, "gzip_bytes": packed, "cpu_ms": round(cpu, 1)}
            self.bench.rows.append({"name": f"page {look.name}", **row})
            self.bench.budget(f"first byte of {look.name}, p50 (ms)", p50, FIRST_BYTE_MILLISECONDS, at_least=False)
            figures = (f"{first:,.0f}", f"{p50:,.1f}", f"{p95:,.1f}", f"{size:,}", f"{packed:,}", f"{cpu:,.1f}")
            table.add_row(look.name, *figures)
        console.print(table)

    async def _ask(self, look: Look) -> tuple[float, tuple[int, int, int]]:
        """Return after how many milliseconds a page began, its status, and its bytes as they are and as they were sent."""
        begun = time.perf_counter()
        async with self.client.stream("GET", look.address, headers={"Accept-Encoding": "gzip"}) as answer:
            chunks = answer.aiter_bytes()
            content = await anext(chunks)
            began = (time.perf_counter() - begun) * 1000
            async for chunk in chunks:
                content += chunk
            return began, (answer.status_code, len(content), answer.num_bytes_downloaded)

    async def browser(self) -> None:
        """Load pages in a browser; the first time, nothing of the console is in its cache."""
        if BROWSER is None:
            console.print("  there is no browser here: left out")
            return
        async with open_browser() as browser:
            for look in (self.looks[name] for name in IN_BROWSER if name in self.looks):
                try:
                    first, *others = await self._load(browser, look)
                except (AssertionError, BrowserError) as error:
                    console.print(f"  {look.name}: {str(error).splitlines()[0]}")
                    continue
                self.bench.figure(f"{look.name} in a browser, first load", first["load"], "ms")
                for what, name in (("load", "load"), ("region", "first region"), ("paint", "first paint")):
                    times = [one[what] for one in others if one[what] is not None]
                    if times:
                        self.bench.figure(f"{look.name} in a browser, {name} p50", percentile(times, 0.5), "ms")
                loads = [one["load"] for one in others]
                self.bench.budget(
                    f"{look.name} in a browser, load p50 (ms)", percentile(loads, 0.5), LOAD_MILLISECONDS, at_least=False
                )

    async def _load(self, browser: Browser, look: Look) -> list[dict[str, Any]]:
        """Return when a page was loaded and when its first region was there, each time it was navigated to."""
        loads = []
        async with open_window(browser) as window:
            await window.add_init_script(WATCH)
            for _ in range(LOADS + 1):
                answer = await window.goto(f"{self.client.base_url}{look.address}", wait_until="load")
                assert answer is not None
                assert answer.ok, f"{look.address} answers {answer.status}"
                loads.append(await until(partial(load_times, window)))
                await window.goto("about:blank")
        return loads

    async def tabs(self) -> None:
        """Give commands without any tab, beside those of one person, and beside those of as many people, by turns."""
        found = {situation: TabFigures() for situation in (NO_TABS, ONE_PERSON, MANY_PEOPLE)}
        for _ in range(self.record.sizes.rounds):
            for situation, figures in found.items():
                async with self.open_tabs(situation) as tabs:
                    await self._measure_beside(tabs, situation, figures)
        for situation, figures in found.items():
            self.bench.figure(f"CPU of the API, no commands, {situation}", statistics.median(figures.quiet), "% of a core")
            for name, rates in figures.rates.items():
                rate = self.bench.figure(f"{name}, median of the rounds, {situation}", statistics.median(rates), "/s")
                if situation != NO_TABS:
                    share = rate / statistics.median(found[NO_TABS].rates[name])
                    self.bench.budget(f"{name}, {situation} / {NO_TABS}", share, COMMAND_SHARE, at_least=True)
        console.print(frame_table(found))

    async def _measure_beside(self, tabs: TabProcess | None, situation: str, figures: TabFigures) -> None:
        """Measure the CPU of the API while nothing is asked of it, then commands, and what each tab is sent meanwhile."""
        before, begun = self.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(QUIET_SECONDS)
        figures.quiet.append((self.cpu_seconds() - before) / (time.perf_counter() - begun) * 100)
        await self._note_frames(tabs, situation, figures, "no commands", time.perf_counter() - begun)
        begun = time.perf_counter()
        for name, make in (("create", self._create()), ("transition", self._rename())):
            measured = await self.bench.load(self.port, CLIENTS, make)
            self.bench.note(f"{name}, {CLIENTS} clients, {situation}", measured)
            figures.rates.setdefault(name, []).append(measured.rate)
        await self._note_frames(tabs, situation, figures, "beside commands", time.perf_counter() - begun)

    async def _note_frames(
        self, tabs: TabProcess | None, situation: str, figures: TabFigures, when: str, seconds: float
    ) -> None:
        if tabs is not None:
            counted = await tabs.ask("count")
            self.bench.rows.append({"name": f"frames, {situation}, {when}", "seconds": round(seconds, 1), **counted})
            figures.frames[when] = {
                page: (sent["tabs"], sent["regions"] / seconds, sent["size"] / seconds / 1024, sent["troubles"])
                for page, sent in counted["pages"].items()
            }

    async def ages(self) -> None:
        """Change what is shown, and see how old it is when it arrives: with nothing else going on, and beside commands."""
        for situation in (ONE_PERSON, MANY_PEOPLE):
            async with self.open_tabs(situation) as tabs:
                assert tabs is not None
                for probe in self._probes():
                    seen = await tabs.probe(probe, self.record.sizes.probes)
                    self._note_ages(f"{probe.name}, {situation}", seen)
        async with self.open_tabs(MANY_PEOPLE) as tabs:
            assert tabs is not None
            for probe in self._probes():
                asked = asyncio.create_task(tabs.probe(probe, max(1, self.record.sizes.probes // 3)))
                create = self._create()
                while not asked.done():
                    await self.bench.load(self.port, CLIENTS, create)
                self._note_ages(f"{probe.name}, {MANY_PEOPLE}, beside commands", await asked)

    @asynccontextmanager
    async def open_tabs(self, situation: str) -> AsyncIterator[TabProcess | None]:
        """The tabs of a situation, until the end of the block; None for none."""
        if situation == NO_TABS:
            yield None
            return
        people = [str(NIL if situation == ONE_PERSON else uuid4()) for _ in range(self.record.sizes.tabs)]
        addresses = [TabAddress(look.name, look.address, who) for look, who in zip(self._mix(), people, strict=False)]
        async with open_tabs(str(self.client.base_url), addresses) as tabs:
            opened = await tabs.ask("open")
            if opened["ended"]:
                console.print(f"  {opened['open']} of {len(addresses)} tabs are open; {'; '.join(opened['ended'])}")
                self.bench.budget(f"{situation}, open and without trouble", opened["well"], len(addresses), at_least=True)
            await asyncio.sleep(SETTLE_SECONDS)
            await tabs.ask("count")
            yield tabs

    def _mix(self) -> Iterator[Look]:
        """Yield the pages that tabs are on, in the shares that they have."""
        counts = {name: round(share * self.record.sizes.tabs) for name, share in SHARES.items() if name in self.looks}
        for name, count in counts.items():
            yield from itertools.repeat(self.looks[name], count)
        yield from itertools.cycle([self.looks[name] for name in OTHER_TABS if name in self.looks])

    def _probes(self) -> Iterable[Probe]:
        root, held = self.record.ids["asset_id"], self.record.held_run_id
        yield Probe("Now", f"/assets/{root}", [("rename", {"name": "Beamline {mark}"})], shown=True)
        turns: Sequence[Any] = [("resume", {}), ("hold", {"reason": "The beam is away: {mark}"})]
        yield Probe("Runs", f"/runs/{held}", turns, shown=False)

    def _note_ages(self, name: str, seen: Mapping[str, Any]) -> None:
        ages = seen["ages"]
        if seen["lost"]:
            console.print(f"  {name}: {seen['lost']} changes did not arrive in time")
        if ages:
            self.bench.figure(f"age of a change on {name}, p50", percentile(ages, 0.5), "ms")
            self.bench.figure(f"age of a change on {name}, p95", percentile(ages, 0.95), "ms")

    def cpu_seconds(self) -> float:
        """Return the CPU time that the API has taken."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def _create(self) -> Any:
        create = request("POST", "/zones", b'{"name": "Stage"}')
        return lambda: create

    def _rename(self) -> Any:
        numbers, ids = itertools.count(), self.record.renamed_ids
        return lambda: request("POST", f"/assets/{random.choice(ids)}/rename", b'{"name": "Part %d"}' % next(numbers))


def console_addresses(record: ConsoleRecord) -> dict[str, str]:
    """Return the addresses that are measured, by name."""
    ids, sizes = record.ids, record.sizes
    run, conduct = f"/runs/{ids['run_id']}", f"/procedures/{ids['procedure_id']}"
    named = {
        "Now": "",
        "Start": "/start",
        "Start a plan": f"/start/plans/{ids['plan_id']}",
        "Start a recipe": f"/start/recipes/{ids['recipe_id']}",
        "Waiting": "/waiting",
        "Runs": "/runs",
        "Runs, behind half of them": f"/runs?cursor={record.middle_cursor()}",
        "Runs, by a name": f"/runs?q=Scan+{sizes.runs // 3}",
        "Runs, by a status": "/runs?status=Aborted",
        "Run": run,
        "Run, its history": f"{run}/history",
        "Conduct": conduct,
        "Conduct, its first steps": f"{conduct}?{WINDOW}=1",
        "Conduct, its middle steps": f"{conduct}?{WINDOW}={sizes.steps // 2}",
        "Conduct, its last steps": f"{conduct}?{WINDOW}={max(1, sizes.steps - 59)}",
        "Equipment": "/equipment",
        "Asset": f"/assets/{ids['asset_id']}",
        "Asset, a device": f"/assets/{record.renamed_ids[-1]}",
        "Data": "/data",
        "Dataset": f"/datasets/{ids['dataset_id']}",
        "Safety": "/safety",
        "Agents": "/agents",
        "Calendar": "/calendar",
        "People": "/people",
        "Health": "/health",
        "Records": "/records",
    }
    return {name: f"/console{path}" for name, path in named.items()}


WINDOW = "from"  # what the address of a conduct names the first step by that is shown, counted from 1


def find_looks(record: ConsoleRecord) -> dict[str, Look]:
    """Return what there is to look at: the pages that are named here, and every other one of the menu."""
    routes: Routes[ConsolePage] = Routes()
    for one in PAGES:
        routes.add("GET", one.path, one)
    addresses = console_addresses(record)
    addresses |= {one.title: one.path for group in PAGES.menu().values() for one in group if one.title not in addresses}
    looks: dict[str, Look] = {}
    for name, address in addresses.items():
        match = routes.match("GET", address.partition("?")[0])
        if not isinstance(match, tuple):
            console.print(f"  skipped: there is no page {name} ({address})")
            continue
        looks[name] = Look(name, address, match[0])
    derived = [look.name for look in looks.values() if look.page.template in DERIVED]
    console.print(f"  derived from declarations, not written by hand: {', '.join(derived) or 'none'}")
    return looks


async def load_times(window: Window) -> dict[str, Any] | None:
    """Return when a page was loaded and when there was something to see; None where it is not loaded yet."""
    seen: dict[str, Any] = await window.evaluate(TIMES)
    return seen if seen["load"] else None


def frame_table(found: Mapping[str, TabFigures]) -> Table:
    """Return what each tab was sent, page by page."""
    table = Table("page", "tabs", title="regions/s and KiB/s a tab")
    columns = [(situation, when) for situation, figures in found.items() for when in figures.frames]
    for situation, when in columns:
        table.add_column(f"{situation}, {when}", justify="right")
    measured = [found[situation].frames[when] for situation, when in columns]
    for page, (tabs, *_) in measured[0].items() if measured else ():
        sent = [figures[page] for figures in measured]
        cells = [
            f"{regions:.2f}  {size:,.1f}" + f"  {troubles:.0f} troubles" * bool(troubles)
            for _, regions, size, troubles in sent
        ]
        table.add_row(page, str(tabs), *cells)
    return table


def process_of(port: int) -> Any:
    """Return the process that was started to serve a port."""
    return next(child for child in psutil.Process().children() if str(port) in child.cmdline())


async def measure_console(bench: "Bench", port: int, record: ConsoleRecord) -> None:
    """Measure the pages of a service that has a record to show."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        made = ConsoleBench(bench, client, port, process_of(port), record, find_looks(record))
        await made.measure()
