"""An agent that finds the focus over MCP, in a process of its own: `python -m baton.demo.focus_agent <url> <procedure>`.

Its token comes as `BATON_TOKEN`, where nobody else sees it.

It keeps nothing between two questions: what it advises follows from the evidence it is shown. Coarse looks over the whole
travel, fine ones around the best of them, then the top of a parabola through the best, until the next look would be
where the last one was.
"""

import asyncio
import json
import os
import sys
from typing import Any

import httpx2
import numpy as np
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

OBJECTIVE, AXIS = "sharpness", "focus"
TRAVEL = (-2.0, 2.0)
COARSE = (-2.0, -1.0, 0.0, 1.0, 2.0)
FINE = (-0.6, -0.3, 0.3, 0.6)
NEAR = 0.31
"""Millimetres around the best look in which a parabola describes the sharpness."""
CLOSE_ENOUGH = 0.02
"""Millimetres between two looks that show the same."""
ENOUGH = 15
PATIENCE = 0.05
DESIGN: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": OBJECTIVE},
    "space": {"axes": [{"name": AXIS, "lower": TRAVEL[0], "upper": TRAVEL[1]}]},
    "objective_capture_name": OBJECTIVE,
    "decide": {"substrate": "caller", "advice_timeout": 30},
    "wait": 0,
}


def advice_on(observations: list[dict[str, Any]]) -> dict[str, Any]:
    """What to look at next, or that it is enough."""
    seen = [(one["point"][AXIS], objective_in(one)) for one in observations]
    if len(seen) < len(COARSE):
        return look_at(COARSE[len(seen)])
    if (fine := len(seen) - len(COARSE)) < len(FINE):
        return look_at(best_of(seen[: len(COARSE)]) + FINE[fine])
    if abs((top := top_of(seen)) - seen[-1][0]) < CLOSE_ENOUGH or len(seen) == ENOUGH:
        return {"verdict": "Stop", "rationale": f"The focus is at {seen[-1][0]:.3f} mm after {len(seen)} looks."}
    return look_at(top)


def objective_in(observation: dict[str, Any]) -> float:
    return next(float(one["value"]) for one in observation["measurements"] if one["name"] == OBJECTIVE)


def best_of(seen: list[tuple[float, float]]) -> float:
    """Where it was sharpest."""
    return max(seen, key=lambda look: look[1])[0]


def top_of(seen: list[tuple[float, float]]) -> float:
    """The top of the parabola through the logarithms of what was seen around the best point."""
    best = best_of(seen)
    points, values = np.array([look for look in seen if abs(look[0] - best) < NEAR]).T
    curvature, slope, _ = np.polyfit(points, np.log(values), 2)
    return float(-slope / (2 * curvature)) if curvature < 0 else best


def look_at(focus: float) -> dict[str, Any]:
    return {"verdict": "Measure", "next_point": {AXIS: float(np.clip(focus, *TRAVEL))}}


async def steer(url: str, procedure_id: str) -> None:
    """Ask for the conduct and advise it to its end; every piece of advice is a line of output."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ['BATON_TOKEN']}"}, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await client.call_tool(tool, {"procedure_id": procedure_id, **arguments})
            if answer.is_error:
                raise SystemExit(f"{tool} was refused: {answer.content}")
            return answer.structured_content

        await call("conduct_until_advised", **DESIGN)
        while (await call("get_procedure"))["live_conduct_id"] is not None:
            question = await call("get_procedure_steering")
            if question["waiting"]:
                advice = advice_on(question["evidence"]["observations"])
                await call("advise_procedure", iteration_index=question["iteration_index"], advice=advice)
                print(json.dumps(advice), flush=True)
            await asyncio.sleep(PATIENCE)


if __name__ == "__main__":
    asyncio.run(steer(*sys.argv[1:]))
