"""An agent of somebody else's steers an alignment over MCP, dies in the middle of it, and another one goes on."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.procedure.procedure import HoldCause, ProcedureOutcomeRecorded, ProcedureStatus
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import capture, setpoint, steered_value

SIGNALS = {"stage:x": 0, "stage:y": 0}
TOP = {"stage:x": 0.7, "stage:y": -0.4}
SHARPNESS = {"kind": "peak", "address": "camera:sharpness", "centres": TOP, "width": 1.2, "height": 10, "noise": 0.05}
PASS = [
    setpoint("stage:x", steered_value("x")),
    setpoint("stage:y", steered_value("y")),
    capture("camera:sharpness", "sharpness"),
]
BEFORE_ITS_DEATH = 4


@asynccontextmanager
async def running_agent(api: Api, procedure_id: UUID, tool: str, advice_timeout: int) -> AsyncIterator[Process]:
    """An agent at work, and killed in the end if it still is."""
    given = [api.base_url, str(procedure_id), tool, str(advice_timeout)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.api.steering_agent", *given), stdout=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def outcomes(stack: ConductStack, procedure_id: UUID) -> list[ProcedureOutcomeRecorded]:
    return [event for event in await stack.events(procedure_id) if isinstance(event, ProcedureOutcomeRecorded)]


@pytest.mark.timeout(600)
async def test_another_agent_goes_on_with_a_search_and_measures_no_point_twice(
    database_url: str, temporal: EmbeddedTemporal
) -> None:
    plant = {"simulated_signals": SIGNALS, "simulated_devices": (SHARPNESS,)}
    async with (
        open_conduct_stack(database_url, temporal.address, **plant) as stack,
        running_api(database_url, projecting=False, temporal_address=temporal.address) as api,
    ):
        procedure_id = await stack.register_from_recipe(PASS)
        async with running_agent(api, procedure_id, "conduct_until_advised", 10) as first:
            assert first.stdout is not None
            for _ in range(BEFORE_ITS_DEATH):
                assert await first.stdout.readline(), "the agent ended by itself"

        async def is_held() -> bool:
            return (await stack.procedure(procedure_id)).status is ProcedureStatus.HELD

        await until(is_held)
        procedure = await stack.procedure(procedure_id)
        assert (procedure.hold_cause, procedure.current_iteration_index) == (HoldCause.DRIVER_STOOD_DOWN, None)
        measured_before = len(await outcomes(stack, procedure_id))
        assert measured_before >= BEFORE_ITS_DEATH

        async with running_agent(api, procedure_id, "conduct_until_advised_from", 120) as second:
            async with asyncio.timeout(300):
                assert await second.wait() == 0
        assert (await stack.procedure(procedure_id)).status is ProcedureStatus.COMPLETED
        found = await outcomes(stack, procedure_id)
        points = [(outcome.point["x"], outcome.point["y"]) for outcome in found]
        assert len(points) > measured_before
        assert sorted(set(points)) == sorted(points), points
        best = max(found, key=lambda outcome: outcome.measurements[0].value)
        assert (best.point["x"], best.point["y"]) == pytest.approx((0.7, -0.4), abs=0.15)
