"""How soon agents react: from the end of a run to its debrief in the logbook."""

import time

import httpx

from tests.support.api.rest_beamline import beamline
from tests.support.service import Api
from tests.support.waiting import until

DEBRIEFS = 50


async def measure_debriefs(client: httpx.AsyncClient, count: int) -> list[float]:
    """Milliseconds until each of so many runs, one after the other, had its debrief."""
    api = Api(client, str(client.base_url), "", {})
    line = await beamline(api)
    waited = []
    for _ in range(count):
        run_id = await line.start_run()
        started = time.perf_counter()
        await api.execute(f"/runs/{run_id}/abort", {"reason": "encoder offline"})

        async def has_debrief(run_id: str = run_id) -> bool:
            return bool((await api.get(f"/runs/{run_id}/logbook")).json()["items"])

        await until(has_debrief, within=30, longest_pause=0.01)
        waited.append((time.perf_counter() - started) * 1000)
    return waited
