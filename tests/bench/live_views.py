"""How long it takes to see everything that goes on, and to hold all of it, with many runs live.

python -m tests.bench.live_views [--runs 50] [--assets 1000]
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import httpx

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.infrastructure.postgres.migrate import migrate
from tests.bench.__main__ import Bench
from tests.bench.conducts import percentile
from tests.support.api.rest_beamline import beamline
from tests.support.service import Api

LOOKS = 30


async def send_timed(request: httpx.Request, client: httpx.AsyncClient) -> tuple[float, httpx.Response]:
    """The answer to a request, and in how many milliseconds it came."""
    begun = time.perf_counter()
    answer = await client.send(request)
    assert answer.status_code == 200, answer.text
    return (time.perf_counter() - begun) * 1000, answer


async def measure(url: str, runs: int, assets: int) -> None:
    """Print the figures of one service."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        api = Api(client, url, "", {})
        line = await beamline(api)
        for number in range(assets):
            await api.create("/assets", {"name": f"motor {number}", "tier": "Device", "parent_id": line.unit_id})
        for number in range(runs):
            await line.start_run(name=f"Scan {number}")
        looks = [await send_timed(client.build_request("GET", f"/assets/{line.unit_id}/now"), client) for _ in range(LOOKS)]
        times, answer = [one for one, _ in looks], looks[-1][1]
        assert len(answer.json()["runs"]) == runs, len(answer.json()["runs"])
        said = f"p50 {percentile(times, 0.5):.0f} ms, p95 {percentile(times, 0.95):.0f} ms, {len(answer.content):,} bytes"
        print(f"{runs} live runs, {assets} devices: get_beamline_now {said}")
        for title in ("hold_everything", "hold_everything again"):
            held, answer = await send_timed(
                client.build_request("POST", "/hold-everything", json={"reason": "alarm"}), client
            )
            assert len(answer.json()["held"]) == runs, answer.text
            print(f"{title}: {held:.0f} ms")


def main() -> None:
    """Measure on a database of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--assets", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, EmbeddedPostgres(Path(directory) / "postgres") as server:
        migrate(server.url)
        bench = Bench(server.url, 1, quick=True)
        with bench.running_server("baton.cli", "api") as port, bench.running_process("projector"):
            asyncio.run(measure(f"http://127.0.0.1:{port}", options.runs, options.assets))


if __name__ == "__main__":
    main()
