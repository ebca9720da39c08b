"""An outside agent that steers a search over MCP: a process of its own, which may be killed.

It keeps nothing: what it advises follows from the evidence alone, so that another one can take its place.
python -m tests.support.api.steering_agent <url> <procedure id> conduct_until_advised|conduct_until_advised_from <seconds>
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
import numpy as np
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

OBJECTIVE = "sharpness"
DESIGN: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": OBJECTIVE},
    "space": {"axes": [{"name": "x", "lower": -2.0, "upper": 2.0}, {"name": "y", "lower": -2.0, "upper": 2.0}]},
    "objective_capture_name": OBJECTIVE,
    "wait": 0,
}
LATTICE = [(x, y) for x in (-1.5, 0.0, 1.5) for y in (-1.5, 0.0, 1.5)]
"""Where it looks first, to have something to model."""
ENOUGH = 13


def advice_on(observations: list[Any]) -> dict[str, Any]:
    """A coarse lattice first, then the top of a paraboloid through the logarithms of what was measured."""
    seen = {(seen["point"]["x"], seen["point"]["y"]) for seen in observations}
    if (left := [point for point in LATTICE if point not in seen]) and len(observations) < ENOUGH:
        return measuring_advice(*left[0])
    if len(observations) >= ENOUGH:
        return {"verdict": "Stop", "rationale": f"{len(observations)} points were measured."}
    x, y = top(observations)
    while (x, y) in seen:
        x += 0.01
    return measuring_advice(x, y)


def measuring_advice(x: float, y: float) -> dict[str, Any]:
    return {"verdict": "Measure", "next_point": {"x": float(x), "y": float(y)}}


def top(observations: list[Any]) -> tuple[float, float]:
    """Where the paraboloid is highest, within the space; near the best point seen where it has no top."""
    points = np.array([[seen["point"]["x"], seen["point"]["y"]] for seen in observations])
    values = np.array([next(m["value"] for m in seen["measurements"] if m["name"] == OBJECTIVE) for seen in observations])
    heights, weights = np.log(np.maximum(values, 1e-3)), np.maximum(values, 1e-3)
    x, y = points.T
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    (_, bx, by, axx, ayy, axy), *_ = np.linalg.lstsq(terms * weights[:, None], heights * weights, rcond=None)
    curvature = np.array([[2 * axx, axy], [axy, 2 * ayy]])
    if np.any(np.linalg.eigvalsh(curvature) >= 0):
        best = points[np.argmax(values)]
        return tuple(np.clip(best + 0.1 * (len(observations) % 3 - 1), -2, 2))  # type: ignore[return-value]
    return tuple(np.clip(np.linalg.solve(curvature, [-bx, -by]), -2, 2))  # type: ignore[return-value]


async def steer(url: str, procedure_id: str, tool: str, advice_timeout: str) -> None:
    """Ask for the conduct, which waits so many seconds for advice, and advise it until it has come to its end."""
    async with (
        httpx2.AsyncClient(timeout=30, verify=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):

        async def call(name: str, **arguments: Any) -> Any:
            answer = await client.call_tool(name, {"procedure_id": procedure_id, **arguments})
            assert not answer.is_error, answer.content
            return answer.structured_content

        await call(tool, **DESIGN, decide={"substrate": "caller", "advice_timeout": int(advice_timeout)})
        while (await call("get_procedure"))["live_conduct_id"] is not None:
            question = await call("get_procedure_steering")
            if question["waiting"]:
                advice = advice_on(question["evidence"]["observations"])
                asked = {name: question[name] for name in ("iteration_index", "question")}
                await call("advise_procedure", **asked, advice=advice)
                print(json.dumps(advice), flush=True)
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(steer(*sys.argv[1:]))
