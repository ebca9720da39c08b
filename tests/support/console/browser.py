"""A real browser that looks at the console, and what is asked of every page: pictures, and an accessibility checker."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ALONE = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
TIMEOUT_MILLISECONDS = 60_000
DESK, PHONE, WALL = (1440, 900), (390, 844), (1920, 1080)
SERIOUS = frozenset({"serious", "critical"})


@dataclass(frozen=True)
class Faults:
    """What a page did that no page should: errors of its script, and what its policy kept it from."""

    seen: list[str]


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """Chromium, until the end of the block."""
    assert BROWSER is not None
    async with async_playwright() as started:
        browser = await started.chromium.launch(executable_path=BROWSER, args=list(ALONE))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def open_window(
    browser: Browser, *, size: tuple[int, int] = DESK, theme: Any = "dark", cookies: list[Any] | None = None
) -> AsyncIterator[Page]:
    """A window of somebody's own, with their cookies; nothing that a script or the policy complains of goes unnoticed."""
    context: BrowserContext = await browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    if cookies:
        await context.add_cookies(cookies)
    page = await context.new_page()
    page.set_default_timeout(TIMEOUT_MILLISECONDS)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"script: {error}"))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    try:
        yield page
    finally:
        await context.close()
    assert not faults, faults


async def serious_findings(page: Page) -> list[str]:
    """Return what the accessibility checker finds serious or worse on a page, each with the elements it is about."""
    results = await Axe().run(page)
    return [
        f"{found['id']}: {found['help']}: {[node['target'] for node in found['nodes']][:3]}"
        for found in results.response["violations"]
        if found["impact"] in SERIOUS
    ]


async def submit_dialog(page: Page, button: str, **fields: str) -> None:
    """Fill in the form in the dialog, and send it."""
    dialog = page.get_by_role("dialog")
    for label, text in fields.items():
        await dialog.get_by_label(label.replace("_", " ")).fill(text)
    await dialog.get_by_role("button", name=button, exact=True).click()
    await expect(dialog).to_be_hidden()


async def take_picture(page: Page, path: Path, *, whole: bool = False) -> None:
    """Take a picture of a page once it stands still."""
    path.parent.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=path, full_page=whole, animations="disabled")
