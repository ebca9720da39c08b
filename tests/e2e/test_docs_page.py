"""The page of the operations in a real browser: under its own policy it shows them, tries one, and asks nothing outside the
service."""

import shutil
from collections.abc import AsyncIterator

import pytest

from tests.support.service import Api

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="there is no browser on this machine; install chromium"),
    pytest.mark.timeout(300),
]
ALONE = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
TIMEOUT_MILLISECONDS = 120_000
"""Milliseconds that a page has on a busy machine."""
OPERATION = "#operations-trust-define_zone"


@pytest.fixture
async def page() -> AsyncIterator[playwright.Page]:
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(executable_path=BROWSER, args=ALONE)
        page = await browser.new_page()
        page.set_default_timeout(TIMEOUT_MILLISECONDS)
        yield page
        await browser.close()


async def test_an_operation_is_tried_from_the_page(api: Api, page: playwright.Page) -> None:
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{api.base_url}/docs#/trust/define_zone")
    await page.locator(f"{OPERATION} .try-out__btn").click()
    await page.locator(f"{OPERATION} textarea.body-param__text").fill('{"name": "Tried from the page"}')
    await page.locator(f"{OPERATION} button.execute").click()
    status = page.locator(f"{OPERATION} .live-responses-table tbody .response-col_status")
    await playwright.expect(status).to_contain_text("201", timeout=TIMEOUT_MILLISECONDS)
    outside = [url for url in asked if not url.startswith((api.base_url, "data:", "blob:"))]
    assert ([one for one in said if not one.startswith("Deprecated")], outside) == ([], [])
    zones = (await api.get("/zones", order="desc", limit=5)).json()["items"]
    assert "Tried from the page" in [zone["name"] for zone in zones]
