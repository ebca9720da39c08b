"""What control-room staff see of a conduct in Temporal's own pages, in a real browser; nothing of it comes from outside."""

import base64
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.domain.operation.conduct.conduct import ConductProcedure
from baton.domain.operation.conduct.messages import conduct_workflow_id
from baton.domain.operation.conduct.progress import ConductProgress
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.run_cases import PLANT, SIGNALS, StartedRun, build_run_stack
from tests.support.workflows.step_json import check, setpoint

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="there is no browser on this machine; install chromium"),
    pytest.mark.timeout(300),
]

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "temporal-ui.png"
WANTED = "BATON_PICTURES"
"""Set this variable and the picture of the documentation is taken anew."""
ALONE = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
TIMEOUT_MILLISECONDS = 90_000
"""Milliseconds that a page has on a busy machine."""
WIDTH = 1440


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedTemporal]:
    """A workflow engine with its pages."""
    with EmbeddedTemporal(tmp_path_factory.mktemp("temporal"), search_attributes=SEARCH_ATTRIBUTES) as server:
        yield server


@pytest.fixture
async def stack(database_url: str, pages: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    plant = {**PLANT, "simulated_signals": {**SIGNALS, "bl7:energy": 0, "bl7:energy:rbv": 0, "bl7:shutter": 0}}
    async with open_conduct_stack(database_url, pages.address, **plant) as stack:
        yield stack


@pytest.fixture
async def browser() -> AsyncIterator[playwright.Browser]:
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(executable_path=BROWSER, args=ALONE)
        yield browser
        await browser.close()


async def start_waiting_phase(series: StartedRun) -> UUID:
    """A phase that has done its first step and waits for its run."""
    stack = series.stack
    arrived = check("bl7:energy:rbv", 25, timeout=60)
    phase = await series.recipe_phase([setpoint("bl7:energy", 25), arrived, setpoint("bl7:shutter", 1)])
    await stack.do(ConductProcedure(wait=0), phase)
    await series.wait_for_ledger_rows(phase, 2)
    await series.give("hold_run", reason="beam dump")
    await stack.plant.write("bl7:energy:rbv", 25)

    async def is_waiting() -> bool:
        async with stack.runtime.store.session() as session:
            rows = await session.records(ConductProgress, {"procedure_id": phase})
        return bool(rows) and vars(rows[0])["waiting_for"] == "run"

    await until(is_waiting)
    return phase


async def test_a_waiting_conduct_says_what_it_waits_for_and_which_steps_it_did(
    stack: ConductStack, pages: EmbeddedTemporal, browser: playwright.Browser
) -> None:
    phase = await start_waiting_phase(await (await build_run_stack(stack)).start())
    known = await stack.client.get_workflow_handle(conduct_workflow_id(phase)).describe()
    page = await browser.new_page(viewport={"width": WIDTH, "height": 1100})
    page.set_default_timeout(TIMEOUT_MILLISECONDS)
    outside: list[str] = []

    async def block_outside(route: playwright.Route) -> None:
        if route.request.url.startswith((str(pages.ui_url), "data:", "blob:")):
            await route.continue_()
        else:
            outside.append(route.request.url)
            await route.abort()

    await page.route("**/*", block_outside)
    address = f"{pages.ui_url}/namespaces/default/workflows/{quote(known.id, safe='')}/{known.run_id}"

    await page.goto(f"{address}/user-metadata")
    told = [page.frame_locator("iframe").nth(place).locator("body") for place in (0, 1)]
    await playwright.expect(told[0]).to_contain_text(
        "alignment · steps · watching enclosure · ConductProcedure", timeout=TIMEOUT_MILLISECONDS
    )
    await playwright.expect(told[1]).to_contain_text(
        "Waiting: waiting for the run to be resumed", timeout=TIMEOUT_MILLISECONDS
    )
    details = await page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": 660})

    await page.goto(f"{address}/timeline")
    for summary in ("do_step • step 1/3 · set bl7:energy", "do_step • step 2/3 · check bl7:energy:rbv"):
        await page.get_by_text(summary).first.wait_for()
    timeline = page.get_by_role("heading", name="Timeline")
    await timeline.scroll_into_view_if_needed()
    place = await timeline.bounding_box()
    assert place is not None
    steps = await page.screenshot(clip={"x": 0, "y": place["y"] - 20, "width": WIDTH, "height": 280})
    assert outside == []

    if WANTED in os.environ:
        await page.unroute("**/*")
        shown = "".join(f'<img src="data:image/png;base64,{base64.b64encode(part).decode()}">' for part in (details, steps))
        await page.set_viewport_size({"width": WIDTH, "height": 100})
        await page.set_content(f'<body style="margin:0;font-size:0">{shown}</body>')
        PICTURE.parent.mkdir(exist_ok=True)
        await page.screenshot(path=PICTURE, full_page=True)
