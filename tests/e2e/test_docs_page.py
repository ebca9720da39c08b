"""The page of the operations in a real browser: under its own policy it shows them, tries one, and asks nothing outside the
service.

The page is given the operations of one context: Swagger UI takes most of a minute of processor time for all of them.
"""

import json
import os
import re
from typing import Any

from playwright.async_api import Browser, Route, expect

from tests.support.console.browser import IN_A_BROWSER, open_window
from tests.support.service import Api

pytestmark = IN_A_BROWSER
CONTEXT = "trust"
OPERATION = f"#operations-{CONTEXT}-define_zone"
REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')


def schemas_of(part: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas that a part of a document refers to, and those that they refer to."""
    found: dict[str, Any] = {}
    waiting = [part]
    while waiting:
        named = {name: schemas[name] for name in REFERENCE.findall(json.dumps(waiting.pop())) if name not in found}
        found |= named
        waiting += named.values()
    return found


async def keep_one_context(route: Route) -> None:
    """Answer the service's own document without the paths and schemas of other contexts."""
    answer = await route.fetch()
    document = await answer.json()
    document["paths"] = {
        path: item
        for path, item in document["paths"].items()
        if any(CONTEXT in operation.get("tags", ()) for operation in item.values() if isinstance(operation, dict))
    }
    document["components"]["schemas"] = schemas_of(document["paths"], document["components"]["schemas"])
    await route.fulfill(response=answer, json=document)


async def test_an_operation_is_tried_from_the_page(api: Api, browser: Browser) -> None:
    said: list[str] = []
    asked: list[str] = []
    async with open_window(browser) as page:
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: asked.append(request.url))
        if "WHOLE_DOCUMENT" not in os.environ:
            await page.route("**/openapi.json", keep_one_context)
        await page.goto(f"{api.base_url}/docs#/{CONTEXT}/define_zone")
        await page.locator(f"{OPERATION} .try-out__btn").click()
        await page.locator(f"{OPERATION} textarea.body-param__text").fill('{"name": "Tried from the page"}')
        await page.locator(f"{OPERATION} button.execute").click()
        status = page.locator(f"{OPERATION} .live-responses-table tbody .response-col_status")
        await expect(status).to_contain_text("201")
    outside = [url for url in asked if not url.startswith((api.base_url, "data:", "blob:", "about:"))]
    assert ([one for one in said if not one.startswith("Deprecated")], outside) == ([], [])
    zones = (await api.get("/zones", order="desc", limit=5)).json()["items"]
    assert "Tried from the page" in [zone["name"] for zone in zones]
