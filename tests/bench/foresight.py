"""Foresight and hindsight at size: a function for each measurement, each with its budgets."""

import asyncio
import statistics
import time
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import httpx

from baton.domain.conduct.frames import PER_STEP
from tests.bench.conducts import ConductBench, percentile
from tests.bench.console import process_of
from tests.bench.console_tabs import TabAddress, open_tabs
from tests.support.api.conduct_streams import read_conduct_stream
from tests.support.service import Api

if TYPE_CHECKING:
    from tests.bench.__main__ import Bench

POINTS = 5_000  # of a conduct of 10,000 steps: a setpoint and a capture each
PAGE_MILLISECONDS, RATE_SHARE, TABS = 30, 0.98, 50
LOOKS = 20
ROUNDS = 3


async def measure_points(bench: "Bench", port: int, conducts: ConductBench) -> None:
    """Measure what points cost: pages of them, the conduct that leaves them, and tabs that show them."""
    few = 10 if bench.quick else 1
    procedure_id = await measure_reader(bench, conducts, POINTS // few, ROUNDS if few == 1 else 1)
    await measure_pages(bench, port, conducts.client, procedure_id, POINTS // few)
    await measure_tabs(bench, port, conducts, POINTS // few)


async def measure_pages(bench: "Bench", port: int, client: httpx.AsyncClient, procedure_id: str, points: int) -> None:
    """Ask for a page of 1,000 points behind the middle of the conduct, and for all of them thinned."""
    path = f"/procedures/{procedure_id}/points"
    middle = points * PER_STEP  # two steps a point
    pages = {"page of 1,000 points": {"limit": 1000, "after": middle}, "2,000 points of all, thinned": {"thin": 2000}}
    for name, query in pages.items():
        processor, waited = await time_answers(port, client, path, query)
        bench.figure(f"{name}, p50", percentile(waited, 0.5), "ms")
        bench.figure(f"{name}, processor time of the API", processor, "ms")
        if "limit" in query:
            bench.budget(f"{name}, processor time (ms)", processor, PAGE_MILLISECONDS, at_least=False)


async def time_answers(port: int, client: httpx.AsyncClient, path: str, query: dict[str, int]) -> tuple[float, list[float]]:
    """Return the processor time that an answer takes of the API, and how long each was waited for, in milliseconds."""
    waited = list[float]()
    await client.get(path, params=query)
    before = cpu_seconds(port)
    for _ in range(LOOKS):
        begun = time.perf_counter()
        answer = await client.get(path, params=query)
        waited.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, answer.text
    return (cpu_seconds(port) - before) / LOOKS * 1000, waited


async def measure_reader(bench: "Bench", conducts: ConductBench, points: int, rounds: int) -> str:
    """Conduct a scan without a reader of its stream and with one, by turns; return the procedure of the last."""
    alone, read = list[float](), list[float]()
    for _ in range(rounds):
        alone.append(2 * points / await conducts.conduct_scan(await conducts.register_scan(points)))
        procedure_id = await conducts.register_scan(points)
        reading = asyncio.create_task(read_points(conducts.client, procedure_id))
        read.append(2 * points / await conducts.conduct_scan(procedure_id))
        assert await reading >= points, "everything is told"
    what = f"scan of {2 * points:,} steps"
    bench.figure(f"{what}, nobody reads its points", statistics.median(alone), "steps/s")
    bench.figure(f"{what}, somebody reads its points", statistics.median(read), "steps/s")
    share = statistics.median(read) / statistics.median(alone)
    bench.budget(f"{what}: read / not read", share, RATE_SHARE, at_least=True)
    return procedure_id


async def read_points(client: httpx.AsyncClient, procedure_id: str) -> int:
    """Read the stream of a conduct to its end, and return the number of points that came."""
    api = Api(client, str(client.base_url), "", {})
    return sum(frame.event == "point" for frame in await read_conduct_stream(api, UUID(procedure_id)))


async def measure_tabs(bench: "Bench", port: int, conducts: ConductBench, points: int) -> None:
    """Have one tab and then many show the plot of a scan while it grows."""
    for count in (1, TABS):
        procedure_id = await conducts.register_scan(points)
        address = f"/console/procedures/{procedure_id}"
        addresses = [TabAddress("Conduct", address, str(uuid4())) for _ in range(count)]
        async with open_tabs(str(conducts.client.base_url), addresses) as tabs:
            assert (await tabs.ask("open"))["well"] == count
            await tabs.ask("count")
            before = cpu_seconds(port)
            seconds = await conducts.conduct_scan(procedure_id)
            sent = (await tabs.ask("count"))["pages"]["Conduct"]
        name = f"{count} {'tab' if count == 1 else 'tabs'} on a scan"
        bench.figure(f"{name}: processor of the API", (cpu_seconds(port) - before) / seconds * 100, "% of a core")
        bench.figure(f"{name}: regions for each", sent["regions"] / seconds, "/s")


def cpu_seconds(port: int) -> float:
    """Return the processor time that the API on a port has taken."""
    times = process_of(port).cpu_times()
    return float(times.user + times.system)
