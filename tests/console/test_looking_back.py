"""Looking back, in a real browser: what the night was like, how each run ended and why, and which data is right."""

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.api.data_products import register_copy, register_dataset
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.console.browser import (
    IN_A_BROWSER,
    PHONE,
    findings_in_both_themes,
    open_window,
    submit_dialog,
    take_pictures,
    watch_faults,
    width_on_phone,
)
from tests.support.infrastructure.pictures import write_array
from tests.support.service import Api, running_api

pytestmark = IN_A_BROWSER
MIRA, SLIPPED = "Mira Okafor", "sample slipped"
FRAME = [[0, 51, 102], [153, 204, 255]]


@dataclass(frozen=True)
class Night:
    """A night on record: a run that was completed, one that was held and aborted, and one that is on."""

    line: Beamline
    mira: Api
    person_id: str
    completed_id: str
    aborted_id: str
    live_id: str
    logbook: Path

    def address(self, path: str) -> str:
        return f"{self.mira.base_url}/console{path}"


@pytest.fixture(scope="module")
async def night(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Night]:
    root, logbook = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("logbook")
    settings = {"facility_time_zone": "Europe/Berlin", "data_roots": (root,), "logbook_mirror_directory": logbook}
    async with running_api(module_database, **settings) as api:
        line = await beamline(api)
        person_id = await api.create("/actors", {"name": MIRA})
        mira = api.acting_as(person_id)
        ids = []
        for number in (1, 2, 3):
            asked = {"name": f"Bar 7, load step {number}", "plan_id": line.plan_id, "subject_id": line.subject_id}
            ids.append(await mira.create("/runs", asked))
        file = write_array(root / "scan.h5", FRAME)
        named = {"uri": file.as_uri(), "byte_size": os.stat(file).st_size, "subject_id": line.subject_id}
        await register_copy(api, await register_dataset(api, name="scan.h5", producing_run_id=ids[0], **named))
        await mira.execute(f"/runs/{ids[0]}/complete")
        await mira.execute(f"/runs/{ids[1]}/hold", {"reason": "the beam is gone"})
        await mira.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "the ring was dumped"})
        for verb in ("mark-recovering", "restore"):
            await mira.execute(f"/supplies/{line.supply_id}/{verb}", {"reason": "injected again"})
        await mira.execute(f"/runs/{ids[1]}/abort", {"reason": SLIPPED})
        yield Night(line, mira, person_id, *ids, logbook)


@pytest.fixture(scope="module")
async def window(browser: Browser, night: Night) -> AsyncIterator[Page]:
    """One window of Mira's for all tests."""
    async with open_window(browser) as window:
        await window.set_extra_http_headers(night.mira.headers)
        yield window


@pytest.fixture
async def page(window: Page) -> AsyncIterator[Page]:
    async with watch_faults(window) as page:
        yield page


async def expect_to_be_shown_well(page: Page, name: str) -> None:
    """Expect a page to be accessible in both themes and to fit a phone; take its pictures."""
    assert not await findings_in_both_themes(page)
    assert await width_on_phone(page) <= PHONE[0]
    await take_pictures(page, name)


async def test_a_shift_says_what_happened_and_is_handed_over_with_one_press(page: Page, night: Night) -> None:
    await page.goto(night.address("/shift"))
    story = page.locator("#region-story")
    await expect(story.locator("svg rect.span")).to_have_count(3)
    happened = story.locator("ol.told li")
    await expect(happened).to_have_text(
        [
            re.compile("● Mounted Alloy bar 7 on Rotary stage: loaded"),
            re.compile(rf"▲ Held Bar 7, load step 2: the beam is gone .*{MIRA}"),
            re.compile(rf"✗ Beam lost Beam .*: the ring was dumped .*{MIRA}"),
            re.compile(rf"✗ Aborted Bar 7, load step 2: {SLIPPED} +{MIRA}"),
        ]
    )
    await expect(story.locator("tbody tr").nth(1)).to_contain_text(f"✗ Aborted {SLIPPED}")
    await expect_to_be_shown_well(page, "shift")
    await page.get_by_role("button", name="Hand over to the logbook").click()
    await expect(page.get_by_text("Handed over to the logbook facility.")).to_be_visible()
    [written] = (night.logbook / "facility").iterdir()
    assert re.search(rf"\d\d:\d\d Aborted: Bar 7, load step 2: {SLIPPED} \({MIRA}\)", written.read_text())


async def test_a_shift_since_one_was_here_last_begins_when_one_left(page: Page, night: Night) -> None:
    await page.goto(night.address("/shift"))
    await expect(page.get_by_role("link", name="Since you were last here")).to_be_hidden()
    await page.evaluate("localStorage.setItem('seen', String(Date.now() - 3 * 3600 * 1000))")
    await page.goto(night.address("/shift"))
    await page.get_by_role("link", name="Since you were last here").click()
    begins = await page.get_by_label("From").input_value()
    assert await page.evaluate("(text) => Math.abs(Date.now() - Date.parse(text)) < 26 * 3600 * 1000", begins)
    await expect(page.locator("#region-story tbody tr")).to_have_count(3)
    await page.evaluate("localStorage.clear()")


async def test_runs_say_how_they_ended_and_why_and_are_narrowed_with_one_press(page: Page, night: Night) -> None:
    await page.goto(night.address("/runs"))
    rows = page.locator("#region-rows tbody tr")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(1)).to_contain_text(f"✗ Aborted {SLIPPED} ({MIRA})")
    await expect(rows.nth(0)).to_contain_text("so far")
    picture = rows.nth(2).locator("img")
    await expect(picture).to_have_js_property("naturalWidth", len(FRAME[0]))
    await expect_to_be_shown_well(page, "runs")
    await page.get_by_role("link", name="Aborted", exact=True).click()
    await expect(rows).to_have_count(1)
    await page.get_by_role("link", name="Mine").click()
    await expect(rows).to_have_text([re.compile("Bar 7, load step 2")])
    table = await night.mira.get("/console/runs.csv", status="Aborted", by=night.person_id)
    assert table.headers["content-type"].startswith("text/csv")
    heading, line = table.text.splitlines()
    assert heading.startswith("run,name,status,plan,sample,started")
    assert line.endswith(f"{MIRA},{MIRA},{SLIPPED}")


async def test_a_copy_is_checked_from_the_list_of_data_without_a_form(page: Page, night: Night) -> None:
    await page.goto(night.address("/data"))
    row = page.locator("#region-datasets tr", has=page.get_by_role("link", name="scan.h5"))
    await expect(row).to_contain_text("▲ never checked")
    await expect(row).to_contain_text("2.5 kB")
    await expect(page.locator("#region-datasets h2")).to_contain_text("Bar 7, load step 1")
    await expect_to_be_shown_well(page, "data-list")
    await row.get_by_role("button", name="Check").click()
    await expect(page.locator("[data-said]")).to_contain_text("check: done")
    await expect(page.get_by_role("dialog")).to_be_hidden()


async def test_a_sample_says_where_it_is_and_what_was_measured_of_it(page: Page, night: Night) -> None:
    await page.goto(night.address(f"/subjects/{night.line.subject_id}"))
    await expect(page.locator("#region-head")).to_contain_text(re.compile("on .*, part of Tomography"))
    await expect(page.locator("#region-runs tbody tr")).to_have_count(3)
    await expect(page.locator("#region-data")).to_contain_text("scan.h5")
    await expect_to_be_shown_well(page, "sample")
    taken_in = await night.mira.create("/subjects", {"name": "Bar 8"})
    await page.goto(night.address(f"/subjects/{taken_in}"))
    await expect(page.locator("#region-head")).to_contain_text("mounted nowhere")
    assert "none" not in await page.locator("main").inner_text()
    await page.locator("#region-head .button").first.click()
    await page.get_by_role("dialog").get_by_label("Asset").select_option(value=night.line.rotary_id)
    await submit_dialog(page, "Mount", Reason="next sample")
    await expect(page.locator("#region-head")).to_contain_text("on Rotary stage, part of Tomography")


async def test_a_history_shows_what_each_event_changed_and_folds_the_bookkeeping(page: Page, night: Night) -> None:
    await page.goto(night.address(f"/runs/{night.aborted_id}/history"))
    region = page.locator("#region-events")
    await expect(region.locator("ol.events > li")).to_have_text(
        [re.compile("Run started"), re.compile("Run held: the beam is gone"), re.compile(f"Run aborted: {SLIPPED}")]
    )
    await expect(region.locator("h2").nth(1)).to_contain_text(re.compile("Run aborted .*Held.*→.*Aborted"))
    changed = region.locator("tbody tr")
    await expect(changed.filter(has_text="End reason")).to_contain_text(SLIPPED)
    await expect(changed.filter(has_text="Plan")).to_have_count(0)
    await expect(region.locator("table")).not_to_contain_text(re.compile("[0-9a-f]{8}-[0-9a-f]{4}-"))
    await expect_to_be_shown_well(page, "run-history")
