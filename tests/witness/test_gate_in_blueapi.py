"""A plan that blueapi serves waits while its run is Held, and its task ends as a success."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.witness.outside import blueapi_server

pytestmark = pytest.mark.server
PLANS = Path(__file__).parents[1] / "support/witness/gated_plans.py"


class Line(NamedTuple):
    """A service with a beamline, a blueapi whose plans ask there, and what its documents say."""

    api: Api
    beamline: Beamline
    witness: Api
    blueapi: httpx.AsyncClient
    log: Path

    async def begin(self, **params: Any) -> str:
        """Have blueapi begin the plan, and return the task."""
        asked = {"name": "gated_steps", "params": params, "instrument_session": "cm1-1"}
        task = (await self.blueapi.post("/api/v1/tasks", json=asked)).json()["task_id"]
        begun = await self.blueapi.put("/api/v1/worker/task", json={"task_id": task})
        assert begun.status_code == 200, begun.text
        return str(task)

    async def task(self, id: str) -> dict[str, Any]:
        return dict((await self.blueapi.get(f"/api/v1/tasks/{id}")).json())

    def documents(self, name: str) -> list[list[str]]:
        """Return the time, uid and exit status of each document of a kind."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split()[1:] for line in lines if line.startswith(f"{name} ")]


@pytest.fixture(scope="module")
async def line(postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Line]:
    directory = tmp_path_factory.mktemp("blueapi")
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            made = await beamline(api)
            account = await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"})
            told = {
                "GATE_SERVICE": api.base_url,
                "GATE_PLAN": made.plan_id,
                "GATE_DOCUMENTS": str(directory / "documents"),
                "BATON_PRINCIPAL_ID": account,
            }
            served = blueapi_server(directory, {"gated_plans": PLANS.read_text()}, **told)
            with_server = await asyncio.to_thread(served.__enter__)
            try:
                async with httpx.AsyncClient(base_url=with_server, timeout=30) as client:
                    yield Line(api, made, api.acting_as(account), client, directory / "documents")
            finally:
                await asyncio.to_thread(served.__exit__, None, None, None)


async def test_f11_a_held_scan_waits_in_blueapi_and_its_task_ends_as_a_success(line: Line) -> None:
    """Rules 36 and 40 rest on it: blueapi's own pause marks the task as failed."""
    task = await line.begin(num=40)
    [[began, uid, _]] = await until(lambda: line.documents("start"), 60)
    began_at = datetime.fromtimestamp(float(began), UTC).isoformat()
    said = {"document_uid": uid, "plan_id": line.beamline.plan_id, "name": "gated_steps", "began_at": began_at}
    run_id = (await line.witness.post("/runs/witness", {**said, "holdable": True})).json()["run_id"]
    await line.api.execute(f"/runs/{run_id}/hold", {"reason": "the beam is weak"})
    await until(lambda: is_quiet(line), 60)
    state = (await line.blueapi.get("/api/v1/worker/state")).json()
    held = await line.task(task)
    assert (state, held["is_complete"], held["errors"]) == ("RUNNING", False, [])
    await line.api.execute(f"/runs/{run_id}/resume", {})

    async def is_complete() -> bool:
        return bool((await line.task(task))["is_complete"])

    await until(is_complete, 60)
    ended = await line.task(task)
    assert (ended["errors"], ended["outcome"]["outcome"], ended["outcome"]["result"]) == ([], "success", uid)
    assert len(line.documents("event")) == 40
    assert line.documents("stop")[-1][2] == "success"


def is_quiet(line: Line) -> bool:
    """Return whether no event came for a second, which is ten times the time between two."""
    events = line.documents("event")
    return bool(events) and time.time() - float(events[-1][0]) > 1


async def test_a_closed_gate_fails_the_task_before_there_is_a_document(line: Line) -> None:
    begun = len(line.documents("start"))
    await line.beamline.observe("NotPermitted")
    task = await line.begin(num=3)

    async def is_complete() -> bool:
        return bool((await line.task(task))["is_complete"])

    await until(is_complete, 60)
    await line.beamline.observe("Permitted")
    ended = await line.task(task)
    assert ended["outcome"]["outcome"] == "error"
    assert "The interlock does not permit work" in str(ended["outcome"])
    assert len(line.documents("start")) == begun


async def test_blueapi_serves_a_gated_plan_with_its_schema_and_its_line(line: Line) -> None:
    """Rule 29 rests on it: executors serve docstrings, and the schema follows the signature behind the decorators."""
    plan = (await line.blueapi.get("/api/v1/plans/gated_steps")).json()
    assert plan["schema"]["properties"]["num"] == {"title": "Num", "type": "integer"}
    assert plan["schema"]["required"] == ["num"]
    first, line_of_baton = plan["description"].split("\n\n")[0].splitlines()
    assert first == "Read a clock, with a checkpoint before each reading."
    assert line_of_baton == "Baton: writes=stage reads=camera gated"
