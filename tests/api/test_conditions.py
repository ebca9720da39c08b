"""What would have to be true for a run at a later time, over REST: its rows, who can change them, and what asking takes."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.kernel import Query
from baton.domain.views.conduct_rehearsal import Rehearse
from baton.domain.views.run_preflight import PreflightRun
from baton.infrastructure.postgres import pool
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.service import Api, running_api
from tests.support.workflows.step_json import setpoint

MOST_STATEMENTS = 25


def later(**after: int) -> str:
    return (datetime.now(UTC).replace(microsecond=0) + timedelta(**after)).isoformat()


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


async def conditions(line: Beamline, at: str, api: Api | None = None) -> list[dict[str, Any]]:
    asked = {"name": "Load step 1", "plan_id": line.plan_id, "at": at}
    answer = await (api or line.api).post("/runs/preflight", asked)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["conditions"]
    return rows


async def test_a_preflight_for_a_later_time_says_what_would_have_to_be_true(line: Beamline) -> None:
    rows = {one["condition"]: one for one in await conditions(line, later(hours=2))}
    assert (rows["enclosure_permitted"]["holds_now"], rows["enclosure_permitted"]["holds_then"]) == ("yes", "unknown")
    assert rows["clearance_active"]["holds_then"] == "yes"
    assert rows["supply_available"]["change"][0]["who"] == {"groups": [], "count": None, "you": True}
    past = await line.api.post("/runs/preflight", {"name": "x", "plan_id": line.plan_id, "at": later(hours=-1)})
    assert (past.status_code, past.json()["code"], past.json()["reason"]) == (400, "InvalidPreflightTimeError", "past")


async def test_a_visit_its_surface_and_its_people_inform_until_the_end_of_the_visit(line: Beamline) -> None:
    api, begins, ends = line.api, later(hours=-1), later(hours=2)
    person = await api.create("/actors", {"name": "Noor Haddad"})
    surface = await api.create("/surfaces", {"name": "Endstation", "kind": "HTTP"})
    crew = {"name": "Crew", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_commands": ["GetRun"]}
    policy = await api.create("/policies", {**crew, "permitted_principal_ids": [person]})
    plan = {"policy_id": policy, "surface_id": surface, "type": "user", "planned_start_at": begins, "planned_end_at": ends}
    visit = await api.create("/visits", plan)
    await api.execute(f"/visits/{visit}/record-arrival")
    await api.execute(f"/visits/{visit}/presence/open", {"mode": "physical", "actor_id": person})
    position = await api.execute(f"/visits/{visit}/surface-control/take", {"surface_id": surface})
    await api.get("/visits", min_position=position)
    during, after = [
        {one["condition"]: one["holds_then"] for one in await conditions(line, at) if one["about"]["type"] == "Visit"}
        for at in (later(hours=1), ends)
    ]
    assert during == {"visit_window": "yes", "surface_control": "yes", "people": "unknown"}
    assert after == {"visit_window": "no", "surface_control": "no", "people": "no"}


async def test_a_change_says_who_could_give_it(line: Beamline) -> None:
    admin, asking, member = [str(uuid4()), *[await line.api.create("/actors", {"name": name}) for name in ("A", "B")]]
    async with running_api(line.api.database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        chief = api.acting_as(admin)
        group = await chief.create("/groups", {"name": "Machine group"})
        await chief.execute(f"/groups/{group}/add-member", {"actor_id": member})
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        reads = {"permitted_principal_ids": [asking], "permitted_commands": ["PreflightRun"]}
        await chief.create("/policies", {**place, "name": "Asking", **reads})
        marks = {
            "permitted_group_ids": [group],
            "permitted_principal_ids": [],
            "permitted_commands": ["MarkSupplyAvailable"],
        }
        await chief.create("/policies", {**place, "name": "Beam", **marks})
        rows = {one["condition"]: one for one in await conditions(line, later(hours=2), api.acting_as(asking))}
    change = {one["command"]: one["who"] for one in rows["supply_available"]["change"]}
    assert change["mark_supply_available"] == {"groups": ["Machine group"], "count": 1, "you": False}
    assert change["restore_supply"]["count"] in (0, 1)
    assert rows["grants_present"]["holds_then"] == "no"


async def test_the_conditions_of_a_run_take_few_statements(line: Beamline, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = PreflightRun(name="Load step 1", plan_id=UUID(line.plan_id))
    at = datetime.now(UTC) + timedelta(hours=2)
    taken = await count_statements(line, monkeypatch, asked, asked, asked.model_copy(update={"at": at}))
    assert taken[1] < taken[2] <= MOST_STATEMENTS, taken


async def test_the_conditions_of_a_rehearsed_plan_take_few_statements(
    line: Beamline, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = {"name": "Turn", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await line.api.create("/capabilities", {"code": f"baton.capability.t_{uuid4().hex[:8]}", **contract})
    steps = [setpoint("bl7:rot", 1.0)]
    recipe_id = await line.api.create("/recipes", {"name": "Turn", "capability_id": capability, "steps": steps})
    phases = [{"recipe_id": recipe_id, "name": "Turn", "target_asset_ids": [line.rotary_id]}]
    target = {"kind": "ConductPlan", "plan_id": line.plan_id, "name": "Load step 1", "phases": phases}
    asked = Rehearse.model_validate({"target": target, "parts": ["conditions"]})
    taken = await count_statements(line, monkeypatch, asked, asked)
    assert taken[1] <= MOST_STATEMENTS + 2, f"{taken}: its signals are looked up for the gates and for the walk"


async def count_statements(line: Beamline, monkeypatch: pytest.MonkeyPatch, *asked: Query[Any]) -> list[int]:
    """Return the number of statements that each of these takes; the first one also loads what is kept."""
    counted = [0]
    execute, task = psycopg.AsyncConnection.execute, asyncio.current_task()

    async def count(self: Any, *given: Any, **options: Any) -> Any:
        counted[0] += asyncio.current_task() is task
        return await execute(self, *given, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", count)
    monkeypatch.setattr(pool, "TESTED_AFTER_SECONDS", math.inf)
    async with Runtime(Settings(database_url=line.api.database_url, app_env="test")) as runtime:
        taken = []
        for query in asked:
            counted[0] = 0
            await runtime.queries.ask(query, Caller.system(uuid4()))
            taken.append(counted[0])
    return taken
