"""An agent that finds the focus over MCP: `python -m baton.demo.focus_agent <url> <procedure>`, with `BATON_TOKEN`. It looks
at coarse points, at fine ones around the best, then at the top of a parabola, until it stays there."""

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
NEAR = 0.31  # millimetres around the best point in which a parabola describes the sharpness
CLOSE_ENOUGH = 0.02  # millimetres between two points that show the same
MOST_POINTS = 15
DESIGN: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": OBJECTIVE},
    "space": {"axes": [{"name": AXIS, "lower": TRAVEL[0], "upper": TRAVEL[1]}]},
    "objective_capture_name": OBJECTIVE,
    "decide": {"substrate": "caller", "advice_timeout": 30},
    "wait": 0,
}


def next_advice(observations: list[dict[str, Any]]) -> dict[str, Any]:
    values = [{m["name"]: m["value"] for m in one["measurements"]}[OBJECTIVE] for one in observations]
    seen = [(one["point"][AXIS], float(value)) for one, value in zip(observations, values, strict=True)]
    if len(seen) < len(COARSE):
        return measure_at(COARSE[len(seen)])
    if (fine := len(seen) - len(COARSE)) < len(FINE):
        return measure_at(best_point(seen[: len(COARSE)]) + FINE[fine])
    if abs((top := parabola_top(seen)) - seen[-1][0]) < CLOSE_ENOUGH or len(seen) == MOST_POINTS:
        return {"verdict": "Stop", "rationale": f"The focus is at {seen[-1][0]:.3f} mm after {len(seen)} looks."}
    return measure_at(top)


def best_point(seen: list[tuple[float, float]]) -> float:
    return max(seen, key=lambda look: look[1])[0]


def parabola_top(seen: list[tuple[float, float]]) -> float:
    """Return the top of the parabola through the logarithms of the values around the best point."""
    best = best_point(seen)
    points, values = np.array([look for look in seen if abs(look[0] - best) < NEAR]).T
    curvature, slope, _ = np.polyfit(points, np.log(values), 2)
    return float(-slope / (2 * curvature)) if curvature < 0 else best


def measure_at(focus: float) -> dict[str, Any]:
    return {"verdict": "Measure", "next_point": {AXIS: float(np.clip(focus, *TRAVEL))}}


async def steer(url: str, procedure_id: str) -> None:
    """Start the conduct, once a person has approved, and advise it to its end; print every advice as a line."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ['BATON_TOKEN']}"}, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await client.call_tool(tool, {"procedure_id": procedure_id, **arguments})
            if answer.is_error:
                raise SystemExit(f"{tool} was refused: {answer.content}")
            return answer.structured_content

        async def wait_for_approval(work_id: str) -> None:
            while work := (await client.call_tool("get_work", {"work_id": work_id})).structured_content or {}:
                if work["state"] == "failed":
                    raise SystemExit(f"nobody approved: {work['error']['detail']}")
                if work["state"] == "done":
                    return
                await asyncio.sleep(0.05)

        accepted = await call("conduct_until_advised", **DESIGN)
        if "proposal_id" in accepted:  # it waits for a person
            await wait_for_approval(accepted["work_id"])
        while (await call("get_procedure"))["live_conduct_id"] is not None:
            question = await call("get_procedure_steering")
            if question["waiting"]:
                advice = next_advice(question["evidence"]["observations"])
                await call("advise_procedure", iteration_index=question["iteration_index"], advice=advice)
                print(json.dumps(advice), flush=True)
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(steer(*sys.argv[1:]))
