"""Foresight and hindsight at size: a function for each measurement, each with its budgets."""

import statistics
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import httpx

from baton.domain.conduct.frames import PER_STEP
from tests.bench.conducts import ConductBench, percentile
from tests.bench.console import process_of
from tests.bench.console_tabs import TabAddress, open_tabs
from tests.support.api.conduct_streams import read_conduct_stream
from tests.support.service import Api
from tests.support.waiting import until

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
        alone.append((await conducts.scan(points))[1])
        procedure_id, rate = await conducts.scan(points, beside=follow)
        read.append(rate)
    what = f"scan of {2 * points:,} steps"
    bench.figure(f"{what}, nobody reads its points", statistics.median(alone), "steps/s")
    bench.figure(f"{what}, somebody reads its points", statistics.median(read), "steps/s")
    share = statistics.median(read) / statistics.median(alone)
    bench.budget(f"{what}: read / not read", share, RATE_SHARE, at_least=True)
    return procedure_id


async def follow(client: httpx.AsyncClient, procedure_id: str) -> None:
    """Read the stream of a conduct to its end."""
    api = Api(client, str(client.base_url), "", {})
    await until(lambda: has_begun(client, procedure_id))
    frames = await read_conduct_stream(api, UUID(procedure_id))
    assert any(frame.event == "point" for frame in frames)


async def has_begun(client: httpx.AsyncClient, procedure_id: str) -> bool:
    """Return whether a conduct of a procedure has been opened."""
    view = (await client.get(f"/procedures/{procedure_id}/conduct")).json()
    return view["conduct_id"] is not None


async def measure_tabs(bench: "Bench", port: int, conducts: ConductBench, points: int) -> None:
    """Have one tab and then many show the plot of a scan while it grows."""
    for count in (1, TABS):
        seen: dict[str, Any] = {}

        async def watch(client: httpx.AsyncClient, procedure_id: str, count: int = count, seen: Any = seen) -> None:
            await until(lambda: has_begun(client, procedure_id))
            address = f"/console/procedures/{procedure_id}"
            addresses = [TabAddress("Conduct", address, str(uuid4())) for _ in range(count)]
            async with open_tabs(str(client.base_url), addresses) as tabs:
                assert (await tabs.ask("open"))["well"] == count
                await tabs.ask("count")
                before, begun = cpu_seconds(port), time.perf_counter()
                await until(lambda: has_ended(client, procedure_id), within=600, longest_pause=0.5)
                seconds = time.perf_counter() - begun
                sent = (await tabs.ask("count"))["pages"]["Conduct"]
                seen |= {"cpu": (cpu_seconds(port) - before) / seconds * 100, "regions": sent["regions"] / seconds}

        await conducts.scan(points, beside=watch)
        tabs = f"{count} {'tab' if count == 1 else 'tabs'} on a scan"
        bench.figure(f"{tabs}: processor of the API", seen["cpu"], "% of a core")
        bench.figure(f"{tabs}: regions for each", seen["regions"], "/s")


async def has_ended(client: httpx.AsyncClient, procedure_id: str) -> bool:
    """Return whether the conduct of a procedure has ended."""
    view = (await client.get(f"/procedures/{procedure_id}/conduct")).json()
    return bool(view["phase"] == "Ended")


def cpu_seconds(port: int) -> float:
    """Return the processor time that the API on a port has taken."""
    times = process_of(port).cpu_times()
    return float(times.user + times.system)
