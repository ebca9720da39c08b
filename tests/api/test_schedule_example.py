"""Schedules over REST and MCP: defined, refused, held, triggered, retired, shown and remembered, while no engine runs."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from baton.application.caller import Caller
from baton.domain.recipe.template_versions import TargetChangedError
from baton.domain.schedule.schedule import RecordScheduleFiringRefusal
from tests.support.api.example_reads import cause, payloads
from tests.support.api.mcp_clients import MCP, agent, refusal, tool_result
from tests.support.service import Api, running_api
from tests.support.tables import for_each
from tests.support.workflows.step_json import setpoint

STEPS = [setpoint("bl7:shutter", 1)]
ADMIN = uuid4()


async def recipe(api: Api) -> str:
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await api.create("/capabilities", {"code": f"baton.capability.{uuid4().hex}", "name": "Darks", **shapes})
    return await api.create("/recipes", {"name": "darks", "capability_id": capability, "steps": STEPS})


def nightly(recipe_id: str, **fields: Any) -> dict[str, Any]:
    target = {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Darks {fired_at}"}
    return {"name": "Nightly darks", "calendar": {"cron": ["0 2 * * *"]}, "target": target, **fields}


async def refuse_firing(api: Api, schedule_id: str, code: str = "UnauthorizedError") -> None:
    """A firing of the schedule came to nothing."""
    why = {"code": code, "detail": "Mira Okafor may not do this any more."}
    command = RecordScheduleFiringRefusal(firing_id=uuid4(), scheduled_at=datetime(2027, 7, 1, 2, tzinfo=UTC), **why)
    await api.runtime.commands.execute(command, Caller.system(uuid4()), target_id=UUID(schedule_id))


async def test_a_schedule_from_its_definition_to_its_retirement(api: Api) -> None:
    recipe_id = await recipe(api)
    owner = str(uuid4())
    asked = nightly(recipe_id, time_zone="Europe/Berlin", overlap="BufferOne", catchup_window=600, jitter=30)
    id = await api.acting_as(owner).create("/schedules", asked)
    shown = (await api.get(f"/schedules/{id}")).json()
    coming = [datetime.fromisoformat(time) for time in shown.pop("next_firings")]
    assert len(coming) == 5
    assert {time.astimezone(UTC).hour for time in coming} <= {0, 1}
    conduct = {"command": "conduct_procedure", "steps": []}
    filled_in = {"bindings": {}, "procedure_kind": "scheduled", "target_asset_ids": [], "conduct": conduct}
    assert shown == {
        **asked,
        "id": id,
        "schedule_id": id,
        "created_at": shown["created_at"],
        "target": {**asked["target"], **filled_in},
        "run_as": owner,
        "surface_id": "00000000-0000-0000-0000-000000000020",
        "conduit_id": "00000000-0000-0000-0000-000000000010",
        "on_change": "hold",
        "versions": shown["versions"],
        "changes": [],
        "confirmed_digest": None,
        "status": "Active",
        "last_status_reason": None,
        "firing_count": 0,
        "last_firings": [],
        "missed_count": 0,
        "skipped_count": 0,
    }
    await refuse_firing(api, id)
    await api.execute(f"/schedules/{id}/hold", {"reason": "shutdown"})
    assert cause(await api.post(f"/schedules/{id}/hold", {"reason": "again"})) == (409, "ScheduleCannotHoldError", "held")
    held = (await api.get(f"/schedules/{id}")).json()
    assert (held["status"], held["last_status_reason"], held["next_firings"]) == ("Held", "shutdown", [])
    assert (held["firing_count"], [one["outcome"] for one in held["last_firings"]]) == (1, ["UnauthorizedError"])
    before = (await api.get(f"/schedules/{id}", as_of_version=1)).json()
    assert (before["status"], before["last_firings"], before["missed_count"]) == ("Active", [], None)
    await api.execute(f"/schedules/{id}/trigger")
    await api.execute(f"/schedules/{id}/resume")
    position = await api.execute(f"/schedules/{id}/retire", {"reason": "new detector"})
    for verb in ("trigger", "resume"):
        answer = await api.post(f"/schedules/{id}/{verb}")
        assert cause(answer) == (409, f"ScheduleCannot{verb.capitalize()}Error", "retired")
    (item,) = (await api.get("/schedules", status="Retired", min_position=position)).json()["items"]
    assert item.pop("created_at") is not None
    assert item == {
        "schedule_id": id,
        "name": "Nightly darks",
        "calendar": {"cron": ["0 2 * * *"]},
        "time_zone": "Europe/Berlin",
        "status": "Retired",
        "next_firing": None,
        "last_outcome": "UnauthorizedError",
    }
    happened = [event for event, _ in await payloads(api, f"/schedules/{id}")]
    assert happened == [
        "ScheduleDefined",
        "ScheduleFiringRefused",
        "ScheduleHeld",
        "ScheduleTriggered",
        "ScheduleResumed",
        "ScheduleRetired",
    ]


@for_each(
    ("change", "told"),
    [
        ({"calendar": {"cron": ["61 2 * * *"]}}, (400, "InvalidScheduleCalendarError", "minute")),
        ({"calendar": {"cron": []}}, (400, "InvalidScheduleCalendarError", "cron")),
        ({"calendar": {"every": 5}}, (400, "InvalidScheduleCalendarError", "every")),
        ({"time_zone": "Mars/Olympus"}, (400, "InvalidScheduleCalendarError", "time_zone")),
        ({"name": " "}, (400, "InvalidScheduleNameError", "blank")),
        ({"name": ""}, (422, "RequestValidationError", None)),
        ({"catchup_window": 5}, (422, "RequestValidationError", None)),
        ({"calendar": {"every": 60, "cron": ["0 2 * * *"]}}, (422, "RequestValidationError", None)),
        ({"run_as": str(uuid4())}, (422, "RequestValidationError", None)),
    ],
)
async def test_what_cannot_be_scheduled_is_refused_and_leaves_nothing(
    fresh_api: Api, change: dict[str, Any], told: tuple[Any, ...]
) -> None:
    answer = await fresh_api.post("/schedules", nightly(await recipe(fresh_api), **change))
    assert cause(answer) == told
    missing = await fresh_api.post("/schedules", nightly(str(uuid4())))
    assert cause(missing)[:2] == (404, "RecipeNotFoundError")
    assert (await fresh_api.get("/schedules")).json()["items"] == []


async def test_an_agent_schedules_and_reads_on(api: Api) -> None:
    async with agent(api) as client:
        made = await tool_result(client, "define_schedule", **nightly(await recipe(api)))
        await tool_result(client, "hold_schedule", schedule_id=made["schedule_id"], reason="beam dump")
        shown = await tool_result(client, "get_schedule", schedule_id=made["schedule_id"])
    assert (shown["status"], shown["last_status_reason"]) == ("Held", "beam dump")


async def test_texts_of_a_schedule_are_for_those_who_may_read_them(database_url: str) -> None:
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": str(ADMIN)}
    async with running_api(database_url, **enforced) as api:
        admin, reader = api.acting_as(ADMIN), api.acting_as(uuid4())
        place = {"conduit_id": "00000000-0000-0000-0000-000000000010", "surface_id": "00000000-0000-0000-0000-000000000020"}
        everything = {"permitted_commands": ["ReadEventTexts"], "permitted_command_sets": ["all"]}
        await admin.create("/policies", {"name": "All", **place, **everything, "permitted_principal_ids": [str(ADMIN)]})
        seeing = {
            "permitted_commands": ["GetScheduleHistory"],
            "permitted_principal_ids": [reader.headers["X-Principal-Id"]],
        }
        await admin.create("/policies", {"name": "Readers", **place, **seeing})
        id = await admin.create("/schedules", nightly(await recipe(admin)))
        await refuse_firing(api, id)
        (_, defined), (_, refused) = await payloads(reader, f"/schedules/{id}")
        target = defined["target"]
        assert (defined["name"], target["name"]) == (None, None)
        assert refused["detail"] == "Mira Okafor may not do this any more.", "a refusal's reason is part of what it explains"
        assert (target["kind"], target["conduct"]["command"]) == ("ConductRecipe", "conduct_procedure")
        assert (defined["run_as"], refused["code"]) == (str(ADMIN), "UnauthorizedError")
        (_, defined), (_, refused) = await payloads(admin, f"/schedules/{id}")
        assert (defined["name"], refused["detail"]) == ("Nightly darks", "Mira Okafor may not do this any more.")


async def test_a_changed_target_is_shown_to_an_agent_and_confirmed_as_it_was_shown(api: Api) -> None:
    recipe_id, confirming = await recipe(api), api.acting_as(uuid4())
    id = await api.acting_as(uuid4()).create("/schedules", nightly(recipe_id))
    await api.execute(f"/recipes/{recipe_id}/version", {"version_tag": "2026-1", "steps": STEPS})
    await refuse_firing(api, id, TargetChangedError.__name__)
    async with agent(confirming) as client:
        looked_at = await tool_result(client, "get_schedule", schedule_id=id)
        (change,) = looked_at["changes"]
        seen = (looked_at["status"], change["kind"], change["was"]["version_tag"], change["now"]["version_tag"])
        assert seen == ("Held", "Recipe", None, "2026-1")
        other = [setpoint("bl7:shutter", 666)]
        await api.execute(f"/recipes/{recipe_id}/version", {"version_tag": "2026-2", "steps": other})
        digest = looked_at["confirmed_digest"]
        refused = await refusal(client, "resume_schedule", schedule_id=id, confirmed_digest=digest)
        assert (refused["code"], refused["reason"]) == ("ScheduleCannotResumeError", "changed_since")
        shown = await tool_result(client, "get_schedule", schedule_id=id)
        assert (shown["status"], shown["versions"]) == ("Held", looked_at["versions"]), "nothing was confirmed"
        await tool_result(client, "resume_schedule", schedule_id=id, confirmed_digest=shown["confirmed_digest"])
        confirmed = await tool_result(client, "get_schedule", schedule_id=id)
    assert (confirmed["status"], confirmed["changes"], confirmed["confirmed_digest"]) == ("Active", [], None)
    assert [one["version_tag"] for one in confirmed["versions"]] == ["2026-2"]
    by = (confirming.headers["X-Principal-Id"], MCP)
    assert (confirmed["run_as"], confirmed["surface_id"]) == by, "it fires as who confirmed it"
