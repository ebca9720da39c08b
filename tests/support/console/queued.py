"""A queue over REST with items of a recipe, and what the service records about them, for the pages of queues."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.kernel import Command
from tests.support.console.hall import Hall
from tests.support.service import Api


@asynccontextmanager
async def open_queue(api: Api, hall: Hall, *titles: str) -> AsyncIterator[str]:
    """The queue of the hall's beamline with items of these titles, retired in the end."""
    queue_id = await api.create("/queues", {"name": "Tonight", "asset_id": hall.line.unit_id})
    if titles:
        await add_items(api, hall, queue_id, *titles)
    try:
        yield queue_id
    finally:
        await api.execute(f"/queues/{queue_id}/retire", {"reason": "over"})


def scan_target(hall: Hall, exposure: float) -> dict[str, Any]:
    """A target that conducts the recipe with an exposure."""
    bound = {"recipe_id": hall.scan_id, "bindings": {"exposure": exposure}, "target_asset_ids": [hall.line.camera_id]}
    return {"kind": "ConductRecipe", "name": "Scan {count}", **bound}


async def add_items(api: Api, hall: Hall, queue_id: str, *titles: str) -> list[str]:
    """Add items of these titles, and return their ids."""
    items = [{"title": title, "target": scan_target(hall, 0.1)} for title in titles]
    answer = await api.post(f"/queues/{queue_id}/add-items", {"items": items})
    assert answer.status_code == 200, answer.text
    added: list[str] = answer.json()["item_ids"]
    return added


async def record(api: Api, queue_id: str, *commands: Command) -> None:
    """Record as the service itself what became of items."""
    async with Runtime(Settings(database_url=api.database_url, app_env="test")) as runtime:
        for command in commands:
            await runtime.commands.execute(command, Caller.system(uuid4()), target_id=UUID(queue_id))


async def waiting_items(api: Api, queue_id: str) -> list[dict[str, Any]]:
    """The items that wait, in order, as they are on record."""
    items: list[dict[str, Any]] = (await api.get(f"/queues/{queue_id}")).json()["items"]
    return [one for one in items if one["status"] != "Running"]


async def titles_of(api: Api, queue_id: str) -> list[str]:
    return [one["title"] for one in await waiting_items(api, queue_id)]
