"""Readings at scale: one run takes hundreds of thousands of them while it is read and listed, and another is written."""

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import orjson
import uuid_utils.compat

from tests.bench.client import Measurement, open_connection, request
from tests.support.api.rest_beamline import beamline
from tests.support.service import Api

BATCH = 500
CHANNELS = 20
APPENDERS = 4

Requests = dict[tuple[str, ...], Iterator[bytes]]


@dataclass(frozen=True)
class ObservationBench:
    """A service with a run that is observed, and one that somebody holds and resumes meanwhile."""

    port: int
    observed: str
    other: str

    async def append_readings(self, rows: int, meanwhile: Requests | None = None) -> dict[str, Measurement]:
        """What everybody saw, from the first reading to the last; the requests of one client take turns."""
        path = f"/runs/{self.observed}/observations"
        appends = iter([request("POST", path, batch()) for _ in range(rows // BATCH)])
        over = asyncio.Event()
        watching = {names: asyncio.create_task(self._ask(asked, over)) for names, asked in (meanwhile or {}).items()}
        started = time.perf_counter()
        parts = await asyncio.gather(*(self._ask(appends, over) for _ in range(APPENDERS)))
        seconds = time.perf_counter() - started
        over.set()
        latencies = [latency for part in parts for latency in part.latencies]
        seen = {f"append_observations, {BATCH} each": Measurement(seconds, latencies, {200: len(latencies)})}
        for names, task in watching.items():
            seen |= split_by_name(names, await task)
        return seen

    def holds(self) -> Requests:
        """The other run is held and resumed, over and over."""
        verbs = [request("POST", f"/runs/{self.other}/{verb}", b"{}") for verb in ("hold", "resume")]
        return {("hold_run, another run", "resume_run, another run"): itertools.cycle(verbs)}

    def reads_and_holds(self) -> Requests:
        """The run that is observed is read and listed, and the other one held and resumed, over and over."""
        run = f"/runs/{self.observed}"
        newest, of_channel = (
            f"{run}/observations?order=desc&limit=100",
            f"{run}/observations?channel_name=channel_7&limit=100",
        )
        return {
            ("get_run",): itertools.repeat(request("GET", run)),
            ("list_run_observations, the newest 100",): itertools.repeat(request("GET", newest)),
            ("list_run_observations, one channel",): itertools.repeat(request("GET", of_channel)),
            ("list_run_channels",): itertools.repeat(request("GET", f"{run}/channels")),
            **self.holds(),
        }

    async def _ask(self, requests: Iterator[bytes], over: asyncio.Event) -> Measurement:
        """Ask one after the other, until there is nothing more to ask or it is over."""
        connection = await open_connection(self.port)
        latencies: list[float] = []
        statuses: dict[int, int] = {}
        started = time.perf_counter()
        for asked in requests:
            if over.is_set():
                break
            before = time.perf_counter()
            status, body = await connection.ask(asked)
            assert status in (200, 204), body
            latencies.append(time.perf_counter() - before)
            statuses[status] = statuses.get(status, 0) + 1
        connection.close()
        return Measurement(time.perf_counter() - started, latencies, statuses)


def split_by_name(names: tuple[str, ...], measured: Measurement) -> dict[str, Measurement]:
    """What was measured of requests that took turns, each for itself."""
    parts = {name: measured.latencies[place :: len(names)] for place, name in enumerate(names)}
    [status] = measured.statuses
    return {name: Measurement(measured.seconds, part, {status: len(part)}) for name, part in parts.items()}


async def open_observation_bench(url: str, port: int) -> ObservationBench:
    """Two runs on a beamline of their own."""
    return ObservationBench(port, *await start_runs(url, port, 2))


async def start_runs(url: str, port: int, count: int) -> list[str]:
    """Start so many runs on a beamline of their own."""
    base_url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base_url, timeout=30) as client:
        line = await beamline(Api(client, base_url, url, {}))
        return [await line.start_run() for _ in range(count)]


def batch() -> bytes:
    """As many readings as one request may hold, spread over the channels."""
    taken = {"units": "mA", "sampling_procedure": "monitor", "sampled_at": "2026-10-06T09:12:00.125Z"}
    entries = [
        {"event_id": str(uuid_utils.compat.uuid7()), "channel_name": f"channel_{n % CHANNELS}", "value": n / 7, **taken}
        for n in range(BATCH)
    ]
    return orjson.dumps({"entries": entries})
