"""`make bench`: rates and latencies of commands, queries, streams, MCP and projections, beside bare FastAPI in the same run.

python -m tests.bench [--seconds 5] [--quick] [--json bench-results.json]
    [--only observations|conducts|followers|streams|console|queues|start|epics|bluesky|foresight]
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvloop
from rich.console import Console
from rich.table import Table

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.infrastructure.postgres.migrate import migrate
from baton.infrastructure.postgres.projections import rebuild
from tests.bench.agents import DEBRIEFS, measure_debriefs
from tests.bench.client import Measurement, ask_each, load, open_connection, request
from tests.bench.conducts import CONCURRENT, EACH, HOLDS, STEPS, open_conduct_bench, percentile
from tests.bench.console import measure_console
from tests.bench.console_record import Sizes, stock_record
from tests.bench.control_systems import running_ioc
from tests.bench.device_reads import measure_device_reads
from tests.bench.foresight import measure_points
from tests.bench.foresight_rehearsal import measure_rehearsals
from tests.bench.gate import measure_gate
from tests.bench.observations import BATCH, open_observation_bench, start_runs
from tests.bench.queues import (
    ENFORCING,
    ITEMS,
    LONG,
    PROPOSALS,
    QUEUES,
    employ_crew,
    measure_items,
    measure_long_queue,
    measure_proposals,
)
from tests.bench.start import StartBench
from tests.bench.stock import ADJUSTMENTS, ASSETS, EVENTS_EACH, RENAMES, fill, lengthen
from tests.bench.witness import measure_witness
from tests.support.service import Api

REPOSITORY = Path(__file__).resolve().parents[2]
LASTING_PERMITS = {"ENCLOSURE_OBSERVATION_TTL_SECONDS": "86400"}
"""Nobody observes a hutch again while things are measured."""
console = Console()


class Bench:
    """One run: measurements by name, and the ratios that have a budget."""

    def __init__(self, url: str, seconds: float, quick: bool, sizes: Sizes | None = None) -> None:
        self.url = url
        self.seconds = seconds
        self.quick = quick
        self.sizes = sizes or Sizes()
        self.rows: list[dict[str, Any]] = []
        self.budgets: list[dict[str, Any]] = []

    def note(self, name: str, measured: Measurement, **more: Any) -> Measurement:
        row = {
            "name": name,
            "rate": round(measured.rate, 1),
            "p50_ms": round(measured.percentile(0.5), 2),
            "p99_ms": round(measured.percentile(0.99), 2),
            "statuses": measured.statuses,
            **more,
        }
        self.rows.append(row)
        latency = f"p50 {row['p50_ms']:>7.2f}  p99 {row['p99_ms']:>7.2f} ms"
        console.print(f"  {name:<44} {row['rate']:>9,.0f}/s  {latency}  {row['statuses']}")
        return measured

    def figure(self, name: str, value: float, unit: str) -> float:
        self.rows.append({"name": name, "value": round(value, 3), "unit": unit})
        console.print(f"  {name:<44} {value:>11,.2f} {unit}")
        return value

    def budget(self, name: str, value: float, bound: float, *, at_least: bool) -> None:
        met = value >= bound if at_least else value <= bound
        self.budgets.append({"name": name, "value": round(value, 3), "bound": bound, "at_least": at_least, "met": met})

    async def run(self) -> None:
        with (
            self.running_server("tests.bench.baseline") as bare,
            self.running_server("baton.cli", "api") as port,
            self.running_process("projector"),
        ):
            console.rule("beside it: bare FastAPI")
            echo = self.note("bare FastAPI echo, 32 clients", await self.load(bare, 32, lambda: request("GET", "/echo")))
            thing = request("POST", "/things", b'{"name": "Stage"}')
            insert = self.note("bare FastAPI INSERT, 32 clients", await self.load(bare, 32, lambda: thing))
            console.rule("the service")
            health = self.note("health, 32 clients", await self.load(port, 32, lambda: request("GET", "/health")))
            self.budget("health / bare echo", health.rate / echo.rate, 0.5, at_least=True)
            create = await self.commands(port, "empty store")
            self.budget("create / bare INSERT, 32 clients", create.rate / insert.rate, 0.45, at_least=True)
            await self.reads(port)
            await self.one_stream(port)
            await self.stream_lengths(port)
            await self.mcp(port)
            await self.lag(port)
            await self.observations(port)
        console.rule("conducts")
        await self.only_conducts()
        console.rule(f"a store with a past: {ASSETS * EVENTS_EACH:,} events of {ASSETS:,} assets")
        await self.with_a_past(create)

    async def load(self, port: int, clients: int, make: Any) -> Measurement:
        return await load(port, clients, make, seconds=self.seconds)

    async def commands(self, port: int, where: str) -> Measurement:
        body = b'{"name": "Stage", "tier": "Unit", "facility_code": "facility"}'
        create = request("POST", "/zones", b'{"name": "Stage"}')
        last = None
        for clients in (1, 8, 32):
            last = self.note(f"create, {clients} clients, {where}", await self.load(port, clients, lambda: create))
        assets = await self.create_many(port, request("POST", "/assets", body), 500, "asset_id")
        numbers = itertools.count()

        def rename() -> bytes:
            return request("POST", f"/assets/{random.choice(assets)}/rename", b'{"name": "Stage %d"}' % next(numbers))

        for clients in (1, 8, 32):
            self.note(f"transition, {clients} clients, {where}", await self.load(port, clients, rename))
        keyed = itertools.count()
        self.note(
            f"create with idempotency key, 32 clients, {where}",
            await self.load(
                port,
                32,
                lambda: request("POST", "/zones", b'{"name": "Stage"}', Idempotency_Key=f"k{next(keyed)}-{time.time_ns()}"),
            ),
        )
        self._assets = assets
        assert last is not None
        return last

    async def reads(self, port: int) -> None:
        gets = [request("GET", f"/assets/{id}") for id in self._assets]
        for clients in (1, 8, 32):
            self.note(f"get, {clients} clients", await self.load(port, clients, lambda: random.choice(gets)))
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT count(*) FROM proj_trust_zone_summary").fetchone()
            missing = max(0, 10_000 - (row[0] if row else 0))
        await self.create_many(port, request("POST", "/zones", b'{"name": "Stage"}'), missing, "zone_id")
        for clients in (1, 8, 32):
            page = request("GET", "/zones?limit=50&order=desc")
            self.note(f"list of 10k rows, {clients} clients", await self.load(port, clients, lambda page=page: page))

    async def one_stream(self, port: int) -> None:
        asset = self._assets[0]
        numbers = itertools.count()
        measured = await self.load(
            port, 32, lambda: request("POST", f"/assets/{asset}/rename", b'{"name": "One %d"}' % next(numbers))
        )
        self.note("one stream, 32 clients", measured, won=measured.statuses.get(204, 0))

    async def stream_lengths(self, port: int) -> None:
        """A command's cost by the length of its stream; several streams each, so that none grows much meanwhile."""
        body = b'{"name": "Stage", "tier": "Unit", "facility_code": "facility"}'
        await self._stream_lengths(
            "asset, renamed",
            port,
            lambda count: self.create_many(port, request("POST", "/assets", body), count, "asset_id"),
            ("Asset", RENAMES),
            lambda id: request("POST", f"/assets/{id}/rename", b'{"name": "Stage"}'),
        )
        adjustment = b'{"parameters_patch": {"exposure": 5}, "reason": "brighter"}'
        await self._stream_lengths(
            "run, adjusted",
            port,
            lambda count: start_runs(self.url, port, count),
            ("Run", ADJUSTMENTS),
            lambda id: request("POST", f"/runs/{id}/adjust", adjustment),
        )

    async def _stream_lengths(
        self,
        what: str,
        port: int,
        create: Callable[[int], Awaitable[list[str]]],
        written: tuple[str, tuple[str, str]],
        command: Callable[[str], bytes],
    ) -> None:
        medians = {}
        for length, streams in ((10, 50), (1_000, 50), (10_000, 5)):
            ids = await create(streams)
            for id in ids:
                lengthen(self.url, written[0], id, length, written[1])
            first = self.note(f"first command on a stream of {length:,} ({what})", await ask_each(port, map(command, ids)))
            assert set(first.statuses) == {204}, first.statuses
            measured = await load(port, 1, lambda ids=ids: command(random.choice(ids)), seconds=min(self.seconds, 3))
            self.note(f"command on a stream of {length:,} ({what})", measured)
            medians[length] = measured.percentile(0.5)
        self.budget(f"stream of 1,000 / stream of 10 ({what})", medians[1_000] / medians[10], 3, at_least=False)
        self.budget(f"stream of 10,000 / stream of 10 ({what})", medians[10_000] / medians[10], 5, at_least=False)

    async def mcp(self, port: int) -> None:
        frame = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "get_asset", "arguments": {"asset_id": self._assets[0]}},
        }
        headers = {"Accept": "application/json, text/event-stream", "MCP_Protocol_Version": "2025-06-18"}
        call = request("POST", "/mcp", json.dumps(frame).encode(), **headers)
        self.note("MCP call of get_asset, 8 clients", await self.load(port, 8, lambda: call))

    async def lag(self, port: int) -> None:
        """From the acknowledgement of a command to its row in the list, at 100 commands a second."""
        connection = await open_connection(port)
        lags: list[float] = []
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as reader:
            waiting: dict[str, float] = {}
            started, sent = time.perf_counter(), 0
            count = 300 if self.quick else 1000
            while sent < count or waiting:
                if sent < count and time.perf_counter() - started >= sent / 100:
                    _, body = await connection.ask(request("POST", "/zones", b'{"name": "Lag"}'))
                    waiting[json.loads(body)["zone_id"]] = time.perf_counter()
                    sent += 1
                if waiting:
                    cursor = await reader.execute(
                        "SELECT zone_id::text FROM proj_trust_zone_summary WHERE zone_id = ANY(%s::uuid[])", (list(waiting),)
                    )
                    seen_at = time.perf_counter()
                    lags += [seen_at - waiting.pop(row[0]) for row in await cursor.fetchall()]
                await asyncio.sleep(0.001)
        ordered = sorted(lags)
        self.figure("list lag p50, 100 commands/s", statistics.median(ordered) * 1000, "ms")
        p99 = self.figure("list lag p99, 100 commands/s", ordered[int(len(ordered) * 0.99)] * 1000, "ms")
        self.budget("list lag p99 (ms)", p99, 250, at_least=False)

    async def only_observations(self) -> None:
        with self.running_server("baton.cli", "api") as port, self.running_process("projector"):
            await self.observations(port)

    async def observations(self, port: int) -> None:
        """Readings of one run, alone and then while the run is read and another one is written."""
        rows = 20_000 if self.quick else 200_000
        alone = await (await open_observation_bench(self.url, port)).append_readings(rows // 4)
        runs = await open_observation_bench(self.url, port)
        held = await runs.append_readings(rows, runs.holds())
        runs = await open_observation_bench(self.url, port)
        watched = await runs.append_readings(rows, runs.reads_and_holds())
        parts = {f"{rows // 4:,} readings alone": alone, f"{rows:,} readings beside holds": held}
        for where, measured in (parts | {f"{rows:,} readings, watched": watched}).items():
            for name, seen in measured.items():
                self.note(f"{name}, {where}", seen)
            appends = next(iter(measured.values()))
            self.figure(f"readings appended, {where}", appends.rate * BATCH, "rows/s")
        hold = held["hold_run, another run"]
        self.budget("hold beside appended readings, p99 (ms)", hold.percentile(0.99), 100, at_least=False)

    async def only_conducts(self) -> None:
        with (
            tempfile.TemporaryDirectory(prefix="baton-bench-") as directory,
            EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES) as engine,
            self.running_server("baton.cli", "api", TEMPORAL_ADDRESS=engine.address) as port,
        ):
            await self.conducts(port, engine.address)

    async def conducts(self, port: int, address: str) -> None:
        """Durable steps beside empty activities on the same engine; holds, many conducts at once, a killed worker."""
        few = 10 if self.quick else 1
        async with open_conduct_bench(self.url, port, address) as conducts:
            empty = self.figure("empty activity", await conducts.empty_activity(STEPS // few), "ms")
            step = self.figure(f"setpoint in a conduct of {STEPS // few:,}", await conducts.durable_step(STEPS // few), "ms")
            self.budget("durable step / empty activity", step / empty, 0.45, at_least=False)
            self.budget("durable step (ms)", step, 6, at_least=False)
            accepted, in_force = await conducts.holds(HOLDS // few)
            self.figure("hold accepted, p50", percentile(accepted, 0.5), "ms")
            self.budget("hold accepted, p95 (ms)", percentile(accepted, 0.95), 100, at_least=False)
            self.figure("hold in force, p50", percentile(in_force, 0.5), "ms")
            self.figure("hold in force, p95", percentile(in_force, 0.95), "ms")
            rate = await conducts.conduct_many(CONCURRENT // few, EACH)
            self.figure(f"{CONCURRENT // few} conducts at once", rate, "steps/s")
            self.budget(f"{CONCURRENT // few} conducts at once (steps/s)", rate, 250, at_least=True)
            waited = await measure_debriefs(conducts.client, DEBRIEFS // few)
            self.figure("run ended to its debrief in the logbook, p50", percentile(waited, 0.5), "ms")
            self.figure("run ended to its debrief in the logbook, p95", percentile(waited, 0.95), "ms")
            killed = self.figure("worker killed to the next step of its successor", await conducts.restart_after_kill(), "s")
            self.budget("worker killed, restarted, next step (s)", killed, 6, at_least=False)
            taken_over = await conducts.take_over_after_kill()
            self.figure("worker killed to the next step of a second one", taken_over, "s")
            self.budget("worker killed, second one runs, next step (s)", taken_over, 3, at_least=False)

    async def only_epics(self) -> None:
        """Durable steps on an IOC of EPICS base, with each library that reaches it."""
        count = STEPS // 10 if self.quick else STEPS
        with (
            tempfile.TemporaryDirectory(prefix="baton-bench-") as directory,
            EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES) as engine,
            running_ioc() as control_systems,
        ):
            for name, worker, settings, signal in control_systems:
                with self.running_server("baton.cli", "api", TEMPORAL_ADDRESS=engine.address, **settings) as port:
                    async with open_conduct_bench(self.url, port, engine.address, worker, **settings) as conducts:
                        self.figure(f"setpoint, {name}", await conducts.durable_step(count, signal), "ms")

    async def only_queues(self) -> None:
        """Queues, proposals and permissions through a group, in a service that enforces policies."""
        few = 10 if self.quick else 1
        with (
            tempfile.TemporaryDirectory(prefix="baton-bench-") as directory,
            EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES) as engine,
            self.running_server("baton.cli", "api", TEMPORAL_ADDRESS=engine.address, **ENFORCING) as port,
            self.running_process("projector"),
        ):
            async with open_conduct_bench(self.url, port, engine.address, **ENFORCING) as conducts:
                crew = await employ_crew(conducts.client)
                proposed, done = await measure_proposals(crew, PROPOSALS // few)
                for what, waited in (("command to its proposal", proposed), ("approval to the effect", done)):
                    self.figure(f"{what}, p50", percentile(waited, 0.5), "ms")
                    self.figure(f"{what}, p95", percentile(waited, 0.95), "ms")
                for who, api in (("by name", crew.by_name), ("through a group", crew.by_group)):
                    zone = request("POST", "/zones", b'{"name": "Stage"}', X_Principal_Id=api.headers["X-Principal-Id"])
                    for clients in (1, 32):
                        measured = await self.load(port, clients, lambda zone=zone: zone)
                        self.note(f"create, permitted {who}, {clients} clients", measured)
                for queues in (1, QUEUES):
                    rate = await measure_items(crew.administrator, queues, ITEMS // few)
                    self.figure(f"{queues} queues of {ITEMS // few} items of one step", rate, "items/s")
                for what, milliseconds in (await measure_long_queue(crew.administrator, LONG // few)).items():
                    self.figure(f"queue of {LONG // few:,} items: {what}", milliseconds, "ms")

    async def with_a_past(self, empty: Measurement) -> None:
        assets, each = (5_000, 10) if self.quick else (ASSETS, EVENTS_EACH)
        started = time.perf_counter()
        total = fill(self.url, assets, each)
        console.print(f"  filled {total:,} events in {time.perf_counter() - started:.0f} s")
        with self.running_process("projector"):
            await self.catch_up()
        started = time.perf_counter()
        events = await rebuild(self.url, ["proj_equipment_asset_summary"])
        rate = self.figure("projection rebuild", events / (time.perf_counter() - started), "events/s")
        self.budget("projection rebuild (events/s)", rate, 20_000, at_least=True)
        with self.running_server("baton.cli", "api") as port, self.running_process("projector"):
            full = await self.commands(port, "full store")
        self.budget("create, full store / empty store", full.rate / empty.rate, 0.8, at_least=True)

    async def only_followers(self) -> None:
        """A past that no projection shows yet, and a projector that has to catch up with it."""
        fill(self.url, *((5_000, 10) if self.quick else (ASSETS, EVENTS_EACH)))
        with self.running_process("projector"):
            await self.catch_up()

    async def only_streams(self) -> None:
        with self.running_server("baton.cli", "api") as port:
            await self.stream_lengths(port)

    async def only_console(self) -> None:
        """The console's pages on a record of their own; the process that serves them has not seen it before."""
        with (
            tempfile.TemporaryDirectory(prefix="baton-bench-") as directory,
            EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES) as engine,
            self.running_process("projector"),
        ):
            with self.running_server("baton.cli", "api", TEMPORAL_ADDRESS=engine.address) as port:
                started, base_url = time.perf_counter(), f"http://127.0.0.1:{port}"
                async with httpx.AsyncClient(base_url=base_url, timeout=120) as client:
                    record = await stock_record(Api(client, base_url, self.url, {}), self.sizes)
                console.print(f"  {self.sizes} on record after {time.perf_counter() - started:.0f} s")
            with self.running_server("baton.cli", "api", TEMPORAL_ADDRESS=engine.address) as port:
                await measure_console(self, port, record)

    async def only_bluesky(self) -> None:
        """What a witness takes from a RunEngine, how soon the record has it, and what a gate costs."""
        with self.running_server("baton.cli", "api") as port, self.running_process("projector"):
            await measure_witness(self, port)
            await measure_gate(self, port)
        console.rule("beside Bluesky: devices")
        await measure_device_reads(self)

    async def only_foresight(self) -> None:
        """What is told before a conduct, while it continues, and afterwards."""
        with (
            tempfile.TemporaryDirectory(prefix="baton-bench-") as directory,
            EmbeddedTemporal(directory, headless=True, search_attributes=SEARCH_ATTRIBUTES) as engine,
            self.running_server("baton.cli", "api", TEMPORAL_ADDRESS=engine.address) as port,
        ):
            async with open_conduct_bench(self.url, port, engine.address) as conducts:
                await measure_points(self, port, conducts)
                await measure_rehearsals(self, port, conducts.client)

    async def catch_up(self) -> None:
        """Wait until the projector has passed everything there is; what counts is from its first batch on."""
        place = "SELECT position FROM bookmarks WHERE follower = 'projections'"
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:

            async def missing_events() -> int:
                row = await (await connection.execute(f"SELECT max(position) - ({place}) FROM events")).fetchone()
                return row[0] if row else 0

            before = behind = await missing_events()
            while 0 < behind == before:
                await asyncio.sleep(0.05)
                behind = await missing_events()
            started, still = time.perf_counter(), behind
            while still > 0:
                await asyncio.sleep(0.05)
                still = await missing_events()
            seconds = time.perf_counter() - started
        rate = self.figure("projector catching up with the past", behind / max(seconds, 0.001), "events/s")
        self.budget("projector catching up (events/s)", rate, 25_000, at_least=True)

    async def only_start(self) -> None:
        with tempfile.TemporaryDirectory(prefix="baton-start-") as directory:
            for start in StartBench(sys.executable, Path(directory)).measure(1 if self.quick else 5):
                figures = {"processor": start.processor, "wall": start.wall}
                for kind, seconds in figures.items():
                    self.figure(f"{start.name} ({kind})", seconds, "s")
                if start.budget is not None:
                    kind, bound = start.budget
                    self.budget(f"{start.name} ({kind})", figures[kind], bound, at_least=False)

    async def create_many(self, port: int, create: bytes, count: int, id_name: str) -> list[str]:
        connections = [await open_connection(port) for _ in range(8)]
        ids: list[str] = []

        async def one(connection: Any) -> None:
            while len(ids) < count:
                status, body = await connection.ask(create)
                assert status == 201, body
                ids.append(json.loads(body)[id_name])

        await asyncio.gather(*(one(connection) for connection in connections))
        return ids

    @contextmanager
    def running_server(self, module: str, *arguments: str, **environment: str) -> Iterator[int]:
        """A server process of its own on a free port."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", module, *arguments, *(["--port", str(port)] if arguments else [])]
        with self.process(command, PORT=str(port), **environment):
            path = "/health" if arguments else "/echo"
            deadline = time.monotonic() + 60
            while not answers(port, path):
                assert time.monotonic() < deadline, f"{module} did not start"
                time.sleep(0.05)
            yield port

    def running_process(self, name: str) -> Any:
        return self.process([sys.executable, "-m", "baton.cli", name])

    @contextmanager
    def process(self, command: list[str], **environment: str) -> Iterator[None]:
        settings = {**os.environ, "DATABASE_URL": self.url, "LOG_LEVEL": "ERROR", **LASTING_PERMITS, **environment}
        child = subprocess.Popen(command, env=settings, cwd=REPOSITORY)
        try:
            yield
        finally:
            child.terminate()
            child.wait(20)


def answers(port: int, path: str) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def fsync_time(directory: Path) -> float:
    """The median time, in milliseconds, to write and sync 8 KiB: what every commit waits for."""
    times = []
    with open(directory / "fsync", "wb") as file:
        for _ in range(100):
            file.write(b"x" * 8192)
            file.flush()
            started = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--quick", action="store_true", help="a smaller past and shorter loads")
    parts = {"observations": Bench.only_observations, "conducts": Bench.only_conducts}
    parts |= {"followers": Bench.only_followers, "streams": Bench.only_streams, "console": Bench.only_console}
    parts |= {"queues": Bench.only_queues, "start": Bench.only_start, "epics": Bench.only_epics}
    parts |= {"bluesky": Bench.only_bluesky, "foresight": Bench.only_foresight}
    parser.add_argument("--only", choices=list(parts), help="one part of it; the rest is left out")
    Sizes.add_options(parser)
    parser.add_argument("--json", type=Path, default=Path("bench-results.json"))
    arguments = parser.parse_args()
    seconds = min(arguments.seconds, 1.5) if arguments.quick else arguments.seconds
    with (
        tempfile.TemporaryDirectory(prefix="baton-bench-") as directory,
        EmbeddedPostgres(Path(directory) / "postgres") as server,
    ):
        migrate(server.url)
        bench = Bench(server.url, seconds, arguments.quick, Sizes.of(arguments))
        bench.figure("fsync of 8 KiB", fsync_time(Path(directory)), "ms")
        uvloop.run(parts.get(arguments.only, Bench.run)(bench))
    table = Table("budget", "measured", "bound", "met")
    for row in bench.budgets:
        bound = f"{'at least' if row['at_least'] else 'at most'} {row['bound']:,}"
        table.add_row(row["name"], f"{row['value']:,.3f}", bound, "yes" if row["met"] else "NO")
    console.print(table)
    arguments.json.write_text(json.dumps({"measurements": bench.rows, "budgets": bench.budgets}, indent=2))


if __name__ == "__main__":
    main()
