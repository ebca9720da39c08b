"""Agents on the whole stack: they take their turns, through kills and restarts, with no memory of their own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.support.api.rest_beamline import Beamline, beamline, brought_into_force
from tests.support.service import Api
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.support.workflows.agent_stack import EXPIRER, SUPERVISOR

TURNS = {"RUN_SUPERVISOR_ENABLED": "true", "RUN_SUPERVISOR_TICK_SECONDS": "1", "CLEARANCE_EXPIRER_TICK_SECONDS": "1"}
PATIENCE = 60


async def read(api: Api, path: str, **parameters: Any) -> Any:
    answer = await api.get(path, **parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def stands(api: Api, path: str, status: str) -> bool:
    return bool((await read(api, path))["status"] == status)


async def decisions(api: Api, context: str) -> list[tuple[str, str]]:
    """Who decided what in a context."""
    return [(row["decided_by"], row["choice"]) for row in (await read(api, "/decisions", context=context))["items"]]


async def decided(api: Api, context: str, expected: list[tuple[str, str]]) -> bool:
    """Whether a context lists exactly these decisions; lists come a moment behind the record."""
    return await decisions(api, context) == expected


def short_lived(line: Beamline, template_id: str) -> dict[str, Any]:
    """A clearance that runs out before anybody has looked at it twice."""
    end = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    bindings = [{"kind": "Asset", "id": line.unit_id}]
    form = {"template_id": template_id, "facility_code": "facility", "title": "Short", "bindings": bindings}
    return {**form, "valid_until": end}


async def test_they_go_on_through_kills_and_a_restart_of_everything(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "data", TURNS).ready()
    try:
        async with httpx.AsyncClient(base_url=stack.place("url"), timeout=30, verify=False) as client:
            api = Api(client, stack.place("url"), "", {})
            line = await beamline(api)
            template = await api.create("/clearance-templates", {"code": "S", "title": "S", "facility_code": "facility"})
            await api.done(f"/clearance-templates/{template}/activate")
            run_id = await line.started()
            stack.piece("worker").kill()
            stack.piece("temporal").kill()
            clearance = await api.create("/clearances", short_lived(line, template))
            await brought_into_force(api, clearance)
            await api.done(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
            await until(lambda: stands(api, f"/runs/{run_id}", "Held"), PATIENCE)
            await until(lambda: stands(api, f"/clearances/{clearance}", "Expired"), PATIENCE)
            await until(lambda: decisions(api, "ClearanceExpiry"), PATIENCE)
            await api.done(f"/supplies/{line.supply_id}/mark-recovering", {"reason": "refill"})
            await api.done(f"/supplies/{line.supply_id}/restore", {"reason": "stored beam"})
            await api.done(f"/runs/{run_id}/resume")
            await api.done(f"/runs/{run_id}/abort", {"reason": "rotary stage encoder offline"})
        ports = stack.ports
        assert stack.end() == []
        stack = Stack(tmp_path / "data", TURNS, ports).ready()
        async with httpx.AsyncClient(base_url=stack.place("url"), timeout=30, verify=False) as client:
            api = Api(client, stack.place("url"), "", {})
            line = replace(line, api=api, monitor=replace(line.monitor, client=client))
            await line.observe("Permitted")
            second = await line.started()
            await until(lambda: decisions(api, "RunDebrief"), PATIENCE)
            await api.done(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "another dump"})
            await until(lambda: stands(api, f"/runs/{second}", "Held"), PATIENCE)
            await until(lambda: decided(api, "RunSupervision", [(SUPERVISOR, "Hold")] * 2), PATIENCE)
            await until(lambda: decided(api, "ClearanceExpiry", [(EXPIRER, "Expire")]), PATIENCE)
            assert len(await decisions(api, "RunDebrief")) == 1
            assert await stands(api, f"/runs/{run_id}", "Aborted")
    finally:
        stack.remove()
