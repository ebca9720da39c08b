"""People at the Queue page, in a real browser: items are added, moved, changed and removed while others look on."""

import re
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from openpyxl import Workbook
from playwright.async_api import Browser, Page, expect

from baton.domain.queue.item_records import EndQueueItem, StartQueueItem
from tests.support.console.browser import (
    IN_A_BROWSER,
    PHONE,
    findings_in_both_themes,
    open_window,
    serious_findings,
    submit_dialog,
    take_pictures,
    watch_faults,
)
from tests.support.console.hall import Hall
from tests.support.console.queued import open_queue, record, titles_of, waiting_items
from tests.support.service import Api
from tests.support.waiting import until

pytestmark = IN_A_BROWSER
GOOD = [("title", "exposure"), ("Bar 7", 0.2), ("Bar 8", 0.3)]
WRONG = b"title,exposure,colour\nBar 7,7,red\nBar 8,much,\n"


@pytest.fixture(scope="module")
async def window(browser: Browser) -> AsyncIterator[Page]:
    """One window for all tests: to open it takes longer than to load a page."""
    async with open_window(browser) as window:
        yield window


@pytest.fixture
async def page(window: Page) -> AsyncIterator[Page]:
    async with watch_faults(window) as page:
        yield page


@pytest.fixture
async def queue_id(api: Api, hall: Hall) -> AsyncIterator[str]:
    """A queue with four items that wait."""
    await hall.line.observe("Permitted")
    async with open_queue(api, hall, "Alpha", "Beta", "Gamma", "Delta") as queue_id:
        yield queue_id
    await hall.line.observe("Permitted")


async def look_at(page: Page, api: Api, queue_id: str) -> None:
    """Open the page of a queue, and wait until it is live."""
    await page.goto(f"{api.base_url}/console/queues/{queue_id}")
    await expect(page.get_by_text(re.compile("live, "))).to_be_visible()
    assert await page.locator(".menu [aria-current]").all_inner_texts() == ["Queue"]


async def expect_order(page: Page, *titles: str) -> None:
    """Wait until the items that wait are shown in this order."""
    await expect(page.locator("ol.queue h3")).to_have_text([re.compile(f"^\\s*{title}") for title in titles])


async def open_actions(page: Page, title: str) -> None:
    """Open the actions on an item."""
    actions = row(page, title).locator("details.actions")
    await until(lambda: actions.evaluate("(part) => part.open || part.querySelector('summary').click()"))


def row(page: Page, title: str) -> Any:
    return page.locator("ol.queue > li", has=page.get_by_role("heading", name=title)).first


async def drag(page: Page, title: str, to: str, *, below: bool = False) -> None:
    """Drag an item by its handle above another one, or below it; the list stands still once the item is held."""
    await row(page, to).evaluate("(row) => row.scrollIntoView({ block: 'start' })")

    async def is_held() -> bool:
        await row(page, title).locator("[data-drag]").hover()
        await page.mouse.down()
        if await row(page, title).evaluate("(row) => row.classList.contains('dragged')"):
            return True
        await page.mouse.up()
        return False

    await until(is_held)
    target = await until(row(page, to).bounding_box)
    await page.mouse.move(target["x"] + 30, target["y"] + target["height"] * (0.9 if below else 0.1), steps=5)
    await page.mouse.up()


async def test_what_cannot_start_is_added_from_the_start_form_and_waits_for_its_gate(
    page: Page, api: Api, hall: Hall, queue_id: str
) -> None:
    await hall.line.observe("NotPermitted")
    await look_at(page, api, queue_id)
    await page.get_by_role("link", name="Add…").click()
    await page.get_by_role("link", name="Fast tomography").click()
    await page.get_by_label("Name").fill("Bar 7, load step 1")
    await page.get_by_label("Exposure").fill("35 ms")
    await page.locator("#field-phase-0").select_option(label="Scan")
    await expect(page.locator("#may-start").get_by_text("1 of 20 closed")).to_be_visible()
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    await page.get_by_role("button", name="Add to the queue").click()
    await page.wait_for_url(re.compile(f"/console/queues/{queue_id}"))
    await expect_order(page, "Alpha", "Beta", "Gamma", "Delta", "Bar 7, load step 1")
    await open_actions(page, "Bar 7, load step 1")
    await page.get_by_role("button", name="Move Bar 7, load step 1 to the front").click()
    first = page.locator("ol.queue > li").first
    await expect(first).to_contain_text("Bar 7, load step 1")
    await expect(first.get_by_text("is NotPermitted")).to_be_visible()
    await expect(first.get_by_role("link", name=re.compile("Imaging hutch"))).to_be_visible()
    await hall.line.observe("Permitted")
    await expect(first.get_by_text("is NotPermitted")).to_have_count(0)
    assert (await waiting_items(api, queue_id))[0]["target"]["override_parameters"] == {"exposure": 0.035}


async def test_an_item_is_moved_with_the_keyboard_and_keeps_the_focus(page: Page, api: Api, queue_id: str) -> None:
    await look_at(page, api, queue_id)
    await open_actions(page, "Delta")
    button = page.get_by_role("button", name="Move Delta up")
    await button.focus()
    await page.keyboard.press("Enter")
    await expect_order(page, "Alpha", "Beta", "Delta", "Gamma")
    await expect(button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect_order(page, "Alpha", "Delta", "Beta", "Gamma")
    await open_actions(page, "Alpha")
    await page.get_by_role("button", name="Move Alpha to the end").press("Enter")
    await expect_order(page, "Delta", "Beta", "Gamma", "Alpha")
    assert await titles_of(api, queue_id) == ["Delta", "Beta", "Gamma", "Alpha"]


async def test_a_press_is_not_lost_to_news_that_arrive_before_it_ends(
    page: Page, browser: Browser, api: Api, queue_id: str
) -> None:
    async with open_window(browser) as other:
        await look_at(page, api, queue_id)
        await look_at(other, api, queue_id)
        await open_actions(page, "Beta")
        await open_actions(other, "Delta")
        await row(page, "Beta").get_by_role("link", name=re.compile("Remove")).hover()
        await page.mouse.down()
        await other.get_by_role("button", name="Move Delta up").press("Enter")
        await expect_order(other, "Alpha", "Beta", "Delta", "Gamma")
        await expect_order(page, "Alpha", "Beta", "Gamma", "Delta")
        await page.mouse.up()
        await expect(page.get_by_role("dialog").get_by_role("heading")).to_contain_text("Remove item Beta")
        await expect_order(page, "Alpha", "Beta", "Delta", "Gamma")
        await submit_dialog(page, "Remove item", Reason="It is broken.")
        await expect_order(page, "Alpha", "Delta", "Gamma")


async def test_an_item_is_dragged_up_down_and_let_go(page: Page, browser: Browser, api: Api, queue_id: str) -> None:
    async with open_window(browser, theme="light") as other:
        await look_at(other, api, queue_id)
        await look_at(page, api, queue_id)
        await drag(page, "Delta", "Beta")
        await expect_order(page, "Alpha", "Delta", "Beta", "Gamma")
        await expect_order(other, "Alpha", "Delta", "Beta", "Gamma")
        await drag(page, "Alpha", "Gamma", below=True)
        await expect_order(page, "Delta", "Beta", "Gamma", "Alpha")
        await drag(page, "Beta", "Beta", below=True)
        await expect_order(other, "Delta", "Beta", "Gamma", "Alpha")
    moved = [
        one
        for one in (await api.get(f"/queues/{queue_id}/history")).json()["items"]
        if one["event_type"] == "QueueItemMoved"
    ]
    assert len(moved) == 2


async def test_what_arrives_while_an_item_is_dragged_is_shown_afterwards(page: Page, api: Api, queue_id: str) -> None:
    await look_at(page, api, queue_id)
    handle = await until(row(page, "Gamma").locator("[data-drag]").bounding_box)
    await page.mouse.move(handle["x"] + 5, handle["y"] + 5)
    await page.mouse.down()
    await expect(page.locator(".dragged")).to_have_count(1)
    items = await waiting_items(api, queue_id)
    await api.execute(f"/queues/{queue_id}/remove-item", {"item_id": items[0]["item_id"], "reason": "no sample"})
    await expect(page.locator("#region-ended")).to_contain_text("no sample")
    await expect_order(page, "Alpha", "Beta", "Gamma", "Delta")
    await page.keyboard.press("Escape")
    await expect_order(page, "Beta", "Gamma", "Delta")
    await page.mouse.up()


async def test_who_moves_too_late_sees_the_refusal_and_the_new_order(page: Page, api: Api, queue_id: str) -> None:
    await page.route("**/console/live*", lambda route: route.abort())
    await page.goto(f"{api.base_url}/console/queues/{queue_id}")
    first = UUID((await waiting_items(api, queue_id))[0]["item_id"])
    await record(api, queue_id, StartQueueItem(item_id=first, attempt=1))
    await open_actions(page, "Beta")
    await page.get_by_role("button", name="Move Beta up").click()
    await expect(page.locator("[data-said]")).to_contain_text("The item is Running; only one that waits can be changed")
    await page.unroute("**/console/live*")
    await expect_order(page, "Beta", "Gamma", "Delta")
    await expect(page.locator("#region-running")).to_contain_text("Alpha")
    await expect(page.locator("#region-running").get_by_role("link", name="Alpha")).to_be_visible()
    await record(api, queue_id, EndQueueItem(item_id=first, attempt=1, code="ProcedureAborted", detail="The shutter stuck."))
    await expect(page.locator("#region-ended")).to_contain_text("The shutter stuck.")
    await expect(page.locator("#region-head")).to_contain_text("Held: Alpha: The shutter stuck.")


async def test_an_item_is_edited_duplicated_paused_behind_and_removed(page: Page, api: Api, queue_id: str) -> None:
    await look_at(page, api, queue_id)
    await open_actions(page, "Beta")
    await page.get_by_role("link", name="Edit… Beta").click()
    await submit_dialog(page, "Edit item", Title="Beta, again", Not_before="2030-05-20T14:00:00")
    await expect(row(page, "Beta, again")).to_contain_text("not before 2030-05-20 14:00:00")
    await open_actions(page, "Gamma")
    await page.get_by_role("button", name="Duplicate Gamma").click()
    await expect_order(page, "Alpha", "Beta, again", "Gamma", "Gamma", "Delta")
    await open_actions(page, "Alpha")
    await page.get_by_role("button", name="Pause after Alpha").click()
    await expect(row(page, "Alpha")).to_contain_text("pause after it")
    await open_actions(page, "Delta")
    await page.get_by_role("link", name="Remove… Delta").click()
    await submit_dialog(page, "Remove item", Reason="no sample")
    await expect_order(page, "Alpha", "Beta, again", "Gamma", "Gamma")
    await open_actions(page, "Alpha")
    await page.get_by_role("link", name="Parameters… of Alpha").click()
    await page.get_by_label("Exposure").fill("250 ms")
    await page.get_by_role("button", name="Change the item").click()
    await page.wait_for_url(re.compile(f"/console/queues/{queue_id}"))
    await expect(row(page, "Alpha")).to_contain_text("exposure 0.25")
    items = await waiting_items(api, queue_id)
    assert [one["pause_after"] for one in items] == [True, False, False, False]
    assert (items[0]["target"]["bindings"], items[1]["not_before"]) == ({"exposure": 0.25}, "2030-05-20T12:00:00Z")


async def test_items_are_chosen_and_moved_together(page: Page, api: Api, queue_id: str) -> None:
    await look_at(page, api, queue_id)
    several = page.locator("#several")
    await expect(several).to_be_hidden()
    for title in ("Gamma", "Delta"):
        await page.get_by_role("checkbox", name=f"Choose {title}").check()
    await expect(several).to_contain_text("2 chosen")
    await several.get_by_role("button", name="To the front").click()
    await expect_order(page, "Gamma", "Delta", "Alpha", "Beta")
    await expect(several).to_be_hidden()
    assert await titles_of(api, queue_id) == ["Gamma", "Delta", "Alpha", "Beta"]


async def drop(page: Page, name: str, content: bytes) -> None:
    """Drop a file where spreadsheets are dropped."""
    made = await page.evaluate_handle(
        """([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data; }""",
        [name, content.decode()],
    )
    await page.dispatch_event("[data-drop]", "drop", {"dataTransfer": made})


def workbook_of(rows: list[tuple[Any, ...]]) -> bytes:
    """Return a workbook with these rows, as a spreadsheet program saves it."""
    workbook, saved = Workbook(), BytesIO()
    for cells in rows:
        workbook.active.append(cells)
    workbook.save(saved)
    return saved.getvalue()


async def test_a_spreadsheet_is_dropped_with_its_faults_shown_and_then_added(
    page: Page, api: Api, hall: Hall, queue_id: str
) -> None:
    await look_at(page, api, queue_id)
    await page.get_by_label("What the rows are for").select_option(value=f"plan:{hall.plan_id}")
    await expect(page.locator("#sheet-options")).to_contain_text("template.csv")
    await page.get_by_text("Phases of a plan, assets of a recipe").click()
    await page.locator("#sheet-phase-0").select_option(value=hall.scan_id)
    await drop(page, "bars.csv", WRONG)
    sheet = page.locator("#spreadsheet")
    await expect(sheet.get_by_role("alert")).to_contain_text("bars.csv: 3 faults; nothing was added.")
    await expect(sheet.get_by_text("row 3, column exposure: ")).to_be_visible()
    assert not await serious_findings(page)
    assert len(await waiting_items(api, queue_id)) == 4
    workbook = {"name": "bars.xlsx", "mimeType": "application/octet-stream", "buffer": workbook_of(GOOD)}
    await page.locator("#sheet-file").set_input_files(workbook)  # type: ignore[arg-type]
    await expect(sheet.locator("tbody tr")).to_contain_text(["Bar 7", "Bar 8"])
    await page.get_by_role("button", name="Add 2 rows").click()
    await expect(page.locator("[data-said]")).to_contain_text("2 items added from bars.xlsx")
    await expect(sheet.get_by_role("alert")).to_have_count(0)
    await expect_order(page, "Alpha", "Beta", "Gamma", "Delta", "Bar 7", "Bar 8")


async def test_a_queue_is_held_and_resumed_and_the_overview_says_so(page: Page, api: Api, queue_id: str) -> None:
    await look_at(page, api, queue_id)
    await page.get_by_role("link", name="Hold…").click()
    await submit_dialog(page, "Hold", Reason="the hutch is searched")
    await expect(page.locator("#region-head")).to_contain_text("Held: the hutch is searched")
    await page.goto(f"{api.base_url}/console")
    await expect(page.locator("#region-queues")).to_contain_text("is next, once the queue is resumed")
    await page.locator("#region-queues").get_by_role("link", name="Tonight").click()
    await page.get_by_role("link", name="Resume…").click()
    await submit_dialog(page, "Resume")
    await expect(page.locator("#region-head .chip").first).to_contain_text("Active")


async def test_the_page_fits_a_phone_and_is_accessible_in_both_themes(
    page: Page, browser: Browser, api: Api, hall: Hall, queue_id: str
) -> None:
    items = await waiting_items(api, queue_id)
    ids = [UUID(one["item_id"]) for one in items]
    await api.execute(f"/queues/{queue_id}/remove-item", {"item_id": str(ids[3]), "reason": "The bar is broken."})
    await record(api, queue_id, *(command(item_id=ids[0], attempt=1) for command in (StartQueueItem, EndQueueItem)))
    await record(api, queue_id, StartQueueItem(item_id=ids[1], attempt=1))
    plan = {"kind": "ConductPlan", "name": "Bar 8", "plan_id": hall.plan_id, "subject_id": hall.line.subject_id}
    phase = {"recipe_id": hall.scan_id, "name": "Scan", "target_asset_ids": [hall.line.camera_id]}
    target = {**plan, "override_parameters": {"exposure": 0.25}, "phases": [phase]}
    added = [{"title": f"Bar 8, load step {number}", "target": target, "pause_after": number == 2} for number in (1, 2)]
    assert (await api.post(f"/queues/{queue_id}/add-items", {"items": added})).status_code == 200
    await hall.line.observe("NotPermitted")
    await look_at(page, api, queue_id)
    assert not await findings_in_both_themes(page)
    await take_pictures(page, "queue")
    async with open_window(browser, size=PHONE) as phone:
        await look_at(phone, api, queue_id)
        assert not await serious_findings(phone)
        await take_pictures(phone, "queue-phone")
        wide = await phone.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE[0], f"the page is {wide} wide"
        await drag(phone, "Bar 8, load step 1", "Gamma")
        await expect_order(phone, "Bar 8, load step 1", "Gamma", "Bar 8, load step 2")
        await drag(phone, "Gamma", "Bar 8, load step 1")
        await expect_order(phone, "Gamma", "Bar 8, load step 1", "Bar 8, load step 2")
        await phone.goto(f"{api.base_url}/console")
        await expect(phone.locator("#region-queues")).to_contain_text("is next")
        assert not await serious_findings(phone)
