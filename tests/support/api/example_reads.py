"""What an example reads again and again: how a request was refused, and what a stream says."""

from typing import Any

import httpx

from tests.support.service import Api


def refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def cause(response: httpx.Response) -> tuple[int, str, str | None]:
    body = response.json()
    return response.status_code, body["code"], body.get("reason")


async def history(api: Api, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await api.get(f"{path}/history", limit=100)).json()["items"]
    return items


async def payloads(api: Api, path: str) -> list[tuple[str, dict[str, Any]]]:
    """What a stream says, without its times."""
    return [
        (item["event_type"], {key: value for key, value in item["payload"].items() if key != "occurred_at"})
        for item in await history(api, path)
    ]


async def anonymous(api: Api, path: str) -> list[tuple[str, dict[str, Any]]]:
    """What a stream says, without its id and times."""
    events = await payloads(api, path)
    id_name = next(name for name in events[0][1] if name.endswith("_id"))
    return [(event, {key: value for key, value in payload.items() if key != id_name}) for event, payload in events]
