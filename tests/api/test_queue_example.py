"""Queues over REST and MCP: opened, filled, reordered, held, retired, shown and remembered, while no engine runs."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.application.caller import Caller
from baton.domain.kernel import Command
from baton.domain.queue.item_records import BlockQueueItem, EndQueueItem, RefuseQueueItem, StartQueueItem
from tests.support.api.example_reads import cause, payloads
from tests.support.api.mcp_clients import agent, tool_result
from tests.support.service import Api, running_api
from tests.support.workflows.step_json import setpoint

STEPS = [setpoint("bl7:shutter", 1)]
ADMIN = uuid4()
CLOSED = {"code": "ProcedureAssetNotReadyError", "detail": "Camera is Faulted; have it repaired."}


async def recipe(api: Api) -> str:
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await api.create("/capabilities", {"code": f"baton.capability.{uuid4().hex}", "name": "Darks", **shapes})
    return await api.create("/recipes", {"name": "darks", "capability_id": capability, "steps": STEPS})


async def open_queue(api: Api, **fields: Any) -> str:
    """Open the queue of a new beamline."""
    root = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    return await api.create("/queues", {"name": "Tonight", "asset_id": root, **fields})


def darks(recipe_id: str, title: str = "Darks", **fields: Any) -> dict[str, Any]:
    target = {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Darks {count}"}
    return {"title": title, "target": target, **fields}


async def add_items(api: Api, id: str, *items: dict[str, Any], **fields: Any) -> list[str]:
    answer = await api.post(f"/queues/{id}/add-items", {"items": items, **fields})
    assert answer.status_code == 200, answer.text
    added: list[str] = answer.json()["item_ids"]
    return added


async def record(api: Api, id: str, *commands: Command) -> None:
    """Record as the service itself what became of items."""
    for command in commands:
        await api.runtime.commands.execute(command, Caller.system(uuid4()), target_id=UUID(id))


async def shown_titles(api: Api, id: str) -> list[str]:
    return [f"{item['title']} {item['status']}" for item in (await api.get(f"/queues/{id}")).json()["items"]]


async def test_a_queue_from_its_opening_to_its_retirement(api: Api) -> None:
    recipe_id, owner = await recipe(api), str(uuid4())
    id = await open_queue(api, on_failure="continue")
    a, b = await add_items(api.acting_as(owner), id, darks(recipe_id, "a"), darks(recipe_id, "b", pause_after=True))
    (c,) = await add_items(api, id, darks(recipe_id, "c"), before_item_id=b)
    await api.execute(f"/queues/{id}/move-item", {"item_id": c, "before_item_id": a})
    await api.execute(f"/queues/{id}/edit-item", {"item_id": a, "title": "again"})
    assert await shown_titles(api, id) == ["c Waiting", "again Waiting", "b Waiting"]
    shown = (await api.get(f"/queues/{id}")).json()
    conduct = {"command": "conduct_procedure", "steps": []}
    filled_in = {"bindings": {}, "procedure_kind": "queued", "target_asset_ids": [], "conduct": conduct}
    assert shown["items"][1] == {
        "item_id": a,
        "number": 1,
        "title": "again",
        "target": {**darks(recipe_id)["target"], **filled_in},
        "added_by": owner,
        "surface_id": "00000000-0000-0000-0000-000000000020",
        "conduit_id": "00000000-0000-0000-0000-000000000010",
        "not_before": None,
        "pause_after": False,
        "versions": shown["items"][1]["versions"],
        "status": "Waiting",
        "attempt": 1,
        "estimate": shown["forecast"][1]["estimate"],
        **dict.fromkeys(("run_id", "procedure_id", "code", "detail", "started_at", "ended_at")),
    }
    (version,) = shown["items"][1]["versions"]
    assert (version["kind"], version["template_id"], version["version_tag"]) == ("Recipe", recipe_id, None)
    first = shown["forecast"][0]
    assert (first["item_id"], first["closed_gates"], first["estimate"]["basis"]) == (c, [], "none")
    one = {"item_id": UUID(c), "attempt": 1}
    await record(api, id, BlockQueueItem(**one, **CLOSED))
    (blocked,) = (await api.get(f"/queues/{id}/items", status="Blocked")).json()["items"]
    assert (blocked["item_id"], blocked["code"], blocked["detail"]) == (c, CLOSED["code"], CLOSED["detail"])
    await record(api, id, StartQueueItem(**one), EndQueueItem(**one, code="ProcedureAborted", detail="The shutter stuck."))
    await record(api, id, RefuseQueueItem(item_id=UUID(a), attempt=1, code="UnauthorizedError", detail="It may not."))
    await record(api, id, *(command(item_id=UUID(b), attempt=1) for command in (StartQueueItem, EndQueueItem)))
    held = (await api.get(f"/queues/{id}")).json()
    assert (held["status"], held["last_status_reason"], held["items"]) == ("Held", "Paused behind b.", [])
    assert [(item["title"], item["status"]) for item in held["last_items"]] == [
        ("b", "Completed"),
        ("again", "Refused"),
        ("c", "Failed"),
    ]
    answer = await api.post(f"/queues/{id}/remove-item", {"item_id": a, "reason": "over"})
    assert cause(answer) == (409, "QueueCannotRemoveItemError", "refused")
    await api.execute(f"/queues/{id}/resume", {"reason": "seen"})
    d, e = await add_items(api, id, darks(recipe_id, "d"), darks(recipe_id, "e"))
    await api.execute(f"/queues/{id}/remove-item", {"item_id": d, "reason": "no sample"})
    await api.execute(f"/queues/{id}/hold", {"reason": "search"})
    position = await api.execute(f"/queues/{id}/retire", {"reason": "over"})
    (row,) = (await api.get("/queues", status="Retired", min_position=position)).json()["items"]
    assert (row["queue_id"], row["waiting_count"], row["blocked"], row["running_item_id"]) == (id, 0, False, None)
    (gone,) = [item for item in (await api.get(f"/queues/{id}")).json()["last_items"] if item["item_id"] == e]
    assert (gone["status"], gone["detail"]) == ("Removed", "over")
    before = (await api.get(f"/queues/{id}", as_of_version=2)).json()
    assert ([item["title"] for item in before["items"]], before["forecast"]) == (["a", "b"], [])
    assert [event for event, _ in await payloads(api, f"/queues/{id}")] == [
        *("QueueOpened", "QueueItemsAdded", "QueueItemsAdded", "QueueItemMoved", "QueueItemEdited", "QueueItemBlocked"),
        *("QueueItemStarted", "QueueItemFailed", "QueueItemRefused", "QueueItemStarted", "QueueItemCompleted", "QueueHeld"),
        *("QueueResumed", "QueueItemsAdded", "QueueItemRemoved", "QueueHeld", "QueueRetired"),
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"title": " "}, (400, "InvalidQueueItemTitleError", "blank")),
        ({"target": {"name": "{shift}"}}, (400, "InvalidQueueItemTargetError", "unknown_placeholder")),
        ({"target": {"name": " "}}, (400, "InvalidQueueItemTargetError", "blank")),
        ({"target": {"bindings": {"dwell": 1}}}, (400, "InvalidQueueItemTargetError", "bindings_unfit")),
        ({"target": {"recipe_id": str(uuid4())}}, (404, "RecipeNotFoundError", None)),
    ],
)
async def test_what_cannot_be_queued_is_refused_and_leaves_nothing(
    api: Api, change: dict[str, Any], expected: tuple[int, str, str | None]
) -> None:
    fit, id = darks(await recipe(api)), await open_queue(api)
    unfit = {**fit, **change, "target": {**fit["target"], **change.get("target", {})}}
    answer = await api.post(f"/queues/{id}/add-items", {"items": [fit, unfit]})
    assert cause(answer) == expected
    assert await shown_titles(api, id) == []


async def test_an_asset_has_one_queue(api: Api) -> None:
    id = await open_queue(api)
    asset_id = (await api.get(f"/queues/{id}")).json()["asset_id"]
    answer = await api.post("/queues", {"name": "Another", "asset_id": asset_id})
    assert cause(answer) == (409, "AssetHasQueueError", "queue_open")
    part = await api.create("/assets", {"name": "Rotary", "tier": "Device", "parent_id": asset_id})
    answer = await api.post("/queues", {"name": "Of a part", "asset_id": part})
    assert cause(answer) == (422, "NotABeamlineError", "not_a_root")
    await api.execute(f"/queues/{id}/retire", {"reason": "over"})
    again = await api.create("/queues", {"name": "Another", "asset_id": asset_id})
    position = await api.execute(f"/queues/{again}/hold", {"reason": "wait"})
    rows = (await api.get("/queues", asset_id=asset_id, min_position=position)).json()["items"]
    assert [(row["queue_id"], row["status"]) for row in rows] == [(id, "Retired"), (again, "Held")]


async def test_a_repeat_of_the_same_request_adds_nothing(api: Api) -> None:
    id, body = await open_queue(api), {"items": [darks(await recipe(api))]}
    answers = [await api.post(f"/queues/{id}/add-items", body, Idempotency_Key="shift 12") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert await shown_titles(api, id) == ["Darks Waiting"]


async def test_an_agent_fills_a_queue_and_reads_on(api: Api) -> None:
    async with agent(api) as client:
        id = await open_queue(api)
        added = await tool_result(client, "add_queue_items", queue_id=id, items=[darks(await recipe(api))])
        await tool_result(client, "hold_queue", queue_id=id, reason="beam dump")
        shown = await tool_result(client, "get_queue", queue_id=id)
    assert ([item["item_id"] for item in shown["items"]], shown["status"]) == (added["item_ids"], "Held")


async def test_texts_of_a_queue_are_for_those_who_may_read_them(database_url: str) -> None:
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": str(ADMIN)}
    async with running_api(database_url, **enforced) as api:
        admin, reader = api.acting_as(ADMIN), api.acting_as(uuid4())
        place = {"conduit_id": "00000000-0000-0000-0000-000000000010", "surface_id": "00000000-0000-0000-0000-000000000020"}
        everything = {"permitted_commands": ["ReadEventTexts"], "permitted_command_sets": ["all"]}
        await admin.create("/policies", {"name": "All", **place, **everything, "permitted_principal_ids": [str(ADMIN)]})
        seeing = {"permitted_commands": ["GetQueueHistory"], "permitted_principal_ids": [reader.headers["X-Principal-Id"]]}
        await admin.create("/policies", {"name": "Readers", **place, **seeing})
        id = await open_queue(admin)
        (item_id,) = await add_items(admin, id, darks(await recipe(admin), "Darks of Mira Okafor"))
        await admin.execute(f"/queues/{id}/remove-item", {"item_id": item_id, "reason": "Mira Okafor left"})
        (_, opened), (_, added), (_, removed) = await payloads(reader, f"/queues/{id}")
        assert (opened["name"], added["items"][0]["title"], removed["reason"]) == (None, None, None)
        target = added["items"][0]["target"]
        assert (target["name"], target["kind"]) == (None, "ConductRecipe")
        _, (_, added), (_, removed) = await payloads(admin, f"/queues/{id}")
        assert (added["items"][0]["title"], removed["reason"]) == ("Darks of Mira Okafor", "Mira Okafor left")
