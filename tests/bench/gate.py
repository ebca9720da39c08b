"""The gate of a RunEngine: how long it asks before a run, and how soon a scan waits once its run is Held."""

import asyncio
import os
import time
from datetime import UTC, datetime
from typing import Any

import httpx

from baton_bluesky import BatonGate
from tests.bench.conducts import percentile
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api
from tests.support.waiting import until


def time_preflight(gate: BatonGate, rounds: int) -> list[float]:
    """Return the seconds from the question to the start of each run."""
    from tests.support.witness.scans import Diode, make_engine, steps

    engine, _ = make_engine()
    engine.preprocessors.append(gate)
    seen: dict[str, float] = {}
    engine.msg_hook = lambda message: seen.update({message.command: time.perf_counter()})
    found = []
    for _ in range(rounds):
        engine(steps(Diode(), 1))
        found.append(seen["subscribe"] - seen["wait_for"])
    return found


async def time_holds(line: Beamline, witness: Api, gate: BatonGate, said: list[float], rounds: int) -> list[float]:
    """Return the seconds from each hold to the gate's waiting, in a scan with a checkpoint every 0.1 s."""
    from tests.support.witness.scans import Diode, make_engine, steps

    engine, documents = make_engine()
    engine.preprocessors.append(gate)
    scan = asyncio.create_task(asyncio.to_thread(engine, steps(Diode(), 10_000, 0.1)))
    _, start = await until(lambda: documents and documents[0])
    began_at = datetime.fromtimestamp(start["time"], UTC).isoformat()
    told = {"document_uid": start["uid"], "plan_id": line.plan_id, "name": "steps", "began_at": began_at, "holdable": True}
    run_id = (await witness.post("/runs/witness", told)).json()["run_id"]
    found = []
    for _ in range(rounds):
        events = len(documents)
        await until(lambda events=events: len(documents) > events + 5)
        said.clear()
        began = time.perf_counter()
        await line.api.execute(f"/runs/{run_id}/hold", {"reason": "measured"})
        await until(lambda: said, longest_pause=0.01)
        found.append(said[0] - began)
        await line.api.execute(f"/runs/{run_id}/resume", {})
    await asyncio.to_thread(engine.abort, "measured")
    await asyncio.gather(scan, return_exceptions=True)
    return found


async def measure_gate(bench: Any, port: int) -> None:
    """Measure what a gate costs and how soon it holds, with the budgets."""
    base_url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base_url, timeout=60) as client:
        api = Api(client, base_url, bench.url, {})
        line = await beamline(api)
        account = await api.create("/actors", {"name": "Bluesky, measured", "kind": "service_account"})
        os.environ["BATON_PRINCIPAL_ID"] = account
        said: list[float] = []
        gate = BatonGate(base_url, line.plan_id, tell=lambda _: said.append(time.perf_counter()))
        asked = await asyncio.to_thread(time_preflight, gate, 20 if bench.quick else 200)
        bench.figure("preflight before open_run, p95", percentile(asked, 0.95) * 1000, "ms")
        bench.budget("preflight before open_run, p95 (ms)", percentile(asked, 0.95) * 1000, 150, at_least=False)
        held = await time_holds(line, api.acting_as(account), gate, said, 5 if bench.quick else 30)
        bench.figure("hold to the gate waiting, p95", percentile(held, 0.95), "s")
        bench.budget("hold to the gate waiting, p95 (s)", percentile(held, 0.95), 1.5, at_least=False)
        del os.environ["BATON_PRINCIPAL_ID"]
