"""A real browser that looks at the console, and what is asked of every page: pictures, and an accessibility checker."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no window, and takes three quarters of the processor time."""
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
ALONE = (
    *("--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-quic", "--disable-sync"),
)
TIMEOUT_MILLISECONDS = 120_000
"""How long a page may take on a busy machine."""
expect.set_options(timeout=TIMEOUT_MILLISECONDS)
IN_A_BROWSER = [
    pytest.mark.server,
    pytest.mark.skipif(BROWSER is None, reason="there is no browser on this machine; install chromium"),
    pytest.mark.timeout(600),
]
"""What marks the modules whose tests look at pages."""
PICTURES = Path(__file__).parents[3] / "docs" / "pictures" / "console"
"""Where the pictures of the documentation are; `TAKE_PICTURES=1 pytest --soak tests/console -k accessible` takes them."""
DESK, PHONE, WALL = (1440, 900), (390, 844), (1920, 1080)
SERIOUS = frozenset({"serious", "critical"})


@asynccontextmanager
async def open_browser(*options: str) -> AsyncIterator[Browser]:
    """Chromium, until the end of the block."""
    assert BROWSER is not None
    async with async_playwright() as started:
        browser = await started.chromium.launch(executable_path=BROWSER, args=[*ALONE, *options])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def open_window(
    browser: Browser,
    *,
    size: tuple[int, int] = DESK,
    theme: Any = "dark",
    cookies: list[Any] | None = None,
    foreign: bool = False,
) -> AsyncIterator[Page]:
    """A window of somebody's own, with their cookies, in which nothing moves by itself; foreign pages may complain."""
    viewport: Any = {"width": size[0], "height": size[1]}
    context: BrowserContext = await browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce")
    try:
        if cookies:
            await context.add_cookies(cookies)
        page = await context.new_page()
        page.set_default_timeout(TIMEOUT_MILLISECONDS)
        async with nullcontext() if foreign else watch_faults(page):
            yield page
    finally:
        await context.close()


@asynccontextmanager
async def watch_faults(page: Page) -> AsyncIterator[Page]:
    """A page about which nothing that a script or its policy complains of goes unnoticed; it is empty in the end."""
    faults: list[str] = []

    def note_error(error: object) -> None:
        faults.append(f"script: {error}")

    def note_message(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            faults.append(message.text)

    page.on("pageerror", note_error)
    page.on("console", note_message)
    try:
        yield page
    finally:
        page.remove_listener("pageerror", note_error)
        page.remove_listener("console", note_message)
    await page.goto("about:blank")
    assert not faults, faults


async def serious_findings(page: Page, *rules: str) -> list[str]:
    """Return what the accessibility checker finds serious or worse on a page, by these rules or all, each with the elements
    it is about."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    violations = await page.evaluate("async (options) => (await axe.run(options)).violations", options)
    return [
        f"{found['id']}: {found['help']}: {[node['target'] for node in found['nodes']][:3]}"
        for found in violations
        if found["impact"] in SERIOUS
    ]


async def findings_in_both_themes(page: Page) -> dict[str, list[str]]:
    """Return what is serious on a page in the dark theme, and in the light one, where nothing but contrasts can differ."""
    dark = await serious_findings(page)
    await page.emulate_media(color_scheme="light")
    light = await serious_findings(page, "color-contrast")
    await page.emulate_media(color_scheme="dark")
    return {theme: found for theme, found in (("dark", dark), ("light", light)) if found}


async def width_on_phone(page: Page) -> int:
    """Return how wide a page is in a window as narrow as a phone."""
    size = page.viewport_size
    await page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    wide: int = await page.evaluate("document.documentElement.scrollWidth")
    if size is not None:
        await page.set_viewport_size(size)
    return wide


async def submit_dialog(page: Page, button: str, **fields: str) -> None:
    """Fill in the form in the dialog, and send it."""
    dialog = page.get_by_role("dialog")
    for label, text in fields.items():
        await dialog.get_by_label(label.replace("_", " ")).fill(text)
    await dialog.get_by_role("button", name=button, exact=True).click()
    await expect(dialog).to_be_hidden()


HIDE_DIRECTORIES = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/file:\\S*\\/files\\//g, "file:///data/");
}"""  # Where the files of a test are is nothing to look at.


async def take_pictures(page: Page, name: str) -> None:
    """Take the pictures of the documentation of a page in both themes and on a phone, where they are asked for."""
    if not os.environ.get("TAKE_PICTURES"):
        return
    await page.evaluate(HIDE_DIRECTORIES)
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        await page.screenshot(path=PICTURES / f"{name}-{theme}.png", animations="disabled")
    if (phone := PICTURES / f"{name}-phone.png").exists():
        await page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        await page.screenshot(path=phone, animations="disabled")
        await page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
