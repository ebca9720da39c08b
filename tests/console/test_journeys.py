"""People at the console, in a real browser on a whole stack: each journey from what somebody sees to what is on record."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.console.browser import (
    IN_A_BROWSER,
    PHONE,
    findings_in_both_themes,
    open_window,
    serious_findings,
    submit_dialog,
    take_pictures,
    watch_faults,
    width_on_phone,
)
from tests.support.console.colleagues import TIDIER, Colleagues, employ_colleagues
from tests.support.console.console_stack import LENA, MIRA, ConsoleStack, running_console_stack
from tests.support.console.furnishing import furnish
from tests.support.console.trouble import TroubledNight
from tests.support.waiting import until

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleStack]:
    """The stack of all journeys; each leaves nothing live behind."""
    with running_console_stack(tmp_path_factory.mktemp("console")) as stack:
        yield stack


@pytest.fixture(scope="module")
async def window(browser: Browser, console: ConsoleStack) -> AsyncIterator[Page]:
    """A window of Mira's, who has signed in; to open one takes longer than to load a page."""
    async with open_window(browser, cookies=console.cookies("mira")) as window:
        yield window


@pytest.fixture(scope="module")
def colleagues(console: ConsoleStack) -> Iterator[Colleagues]:
    """Those who hold some commands only with approval."""
    colleagues = employ_colleagues(console)
    with colleagues.agent, colleagues.noor:
        yield colleagues


@pytest.fixture
async def page(window: Page) -> AsyncIterator[Page]:
    """The window of Mira, empty before and after."""
    async with watch_faults(window) as page:
        yield page


@pytest.fixture
def open_door(console: ConsoleStack) -> Iterator[None]:
    """A door that is open until the test shuts it, or ends: what is conducted waits for that."""
    console.set_door(0)
    yield
    console.set_door(1)


def plan_page(console: ConsoleStack) -> str:
    return f"{console.url}/console/start/plans/{console.client.plans['Fast tomography'].id}"


def recipe_page(console: ConsoleStack) -> str:
    return f"{console.url}/console/start/recipes/{console.client.recipes['Wait, then acquire'].id}"


def status_of(console: ConsoleStack, page: Page) -> str:
    """Return the status on record of the run or procedure that a page is about."""
    kind, id = re.search(r"/console/(runs|procedures)/([0-9a-f-]{36})", page.url).groups()  # type: ignore[union-attr]
    view: Any = console.client.runs[id].get() if kind == "runs" else console.client.procedures[id].get()
    return str(view.status)


async def expect_state(page: Page, state: str) -> None:
    """Wait until the page of a run or a procedure shows it in this state."""
    await expect(page.locator("#region-head .chip").first).to_contain_text(state)


async def start_run(page: Page, console: ConsoleStack, name: str) -> None:
    """Start a run on the page of its plan, and be led to it."""
    await page.goto(plan_page(console))
    await page.get_by_label("Name").fill(name)
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.wait_for_url(re.compile("/console/runs/"))
    await expect(page.get_by_role("heading", level=1)).to_contain_text(name)


async def start_procedure(page: Page, console: ConsoleStack) -> None:
    """Have the recipe that waits conducted by itself, and be led to its conduct."""
    await page.goto(recipe_page(console))
    await page.locator("select[multiple]").first.select_option(value=str(console.client.assets["Tomography"].id))
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    await page.get_by_role("button", name="Start", exact=True).click()
    await page.wait_for_url(re.compile("/console/procedures/"))


async def test_mira_signs_in_at_the_provider_and_out_again(browser: Browser, console: ConsoleStack) -> None:
    async with open_window(browser) as page:
        await page.goto(f"{console.url}/")
        await expect(page).to_have_url(re.compile("/console/login"))
        assert not await serious_findings(page)
        await page.get_by_role("link", name=re.compile("Sign in at")).click()
        await page.get_by_role("link", name=MIRA).click()
        await expect(page).to_have_url(re.compile(r"/console$"))
        await expect(page.get_by_text(MIRA)).to_be_visible()
        await expect(page.get_by_role("heading", name="Tomography")).to_be_visible()
        cookies = {one["name"]: one for one in await page.context.cookies()}
        assert (cookies["baton_session"]["httpOnly"], cookies["baton_session"]["sameSite"]) == (True, "Strict")
        assert await page.evaluate("document.cookie") == ""
        await page.get_by_role("button", name="Sign out").click()
        await expect(page).to_have_url(re.compile("/console/login"))
        await page.goto(f"{console.url}/console/runs")
        await expect(page).to_have_url(re.compile("/console/login"))


async def test_somebody_without_grants_is_told_what_is_missing_and_shown_nothing(
    browser: Browser, console: ConsoleStack
) -> None:
    async with open_window(browser, cookies=console.cookies("lena")) as page:
        await page.goto(f"{console.url}/console")
        await expect(page.get_by_text(LENA)).to_be_visible()
        await expect(page.get_by_text("This takes the permission GetBeamlineNow")).to_be_visible()
        assert "Tomography" not in await page.content()
        await page.goto(f"{console.url}/console/do/hold_everything")
        await expect(page.get_by_text("You may not")).to_be_visible()
        assert not await serious_findings(page)


async def test_a_refused_preflight_is_seen_cured_and_passed(page: Page, console: ConsoleStack) -> None:
    supply = console.client.supplies["Storage ring"]
    await asyncio.to_thread(supply.mark_unavailable, reason="beam dump at 03:04")
    await page.goto(plan_page(console))
    judgement = page.locator("#may-start")
    await expect(judgement.get_by_text(re.compile("1 of \\d+ closed"))).to_be_visible()
    await expect(judgement.get_by_text("Storage ring is Unavailable")).to_be_visible()
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    await page.get_by_label("Start position").fill("740")
    await expect(page.locator("#launch").get_by_text("359.9")).not_to_have_count(0)
    await expect(judgement.get_by_text(re.compile("2 of \\d+ closed"))).to_be_visible()
    await page.get_by_label("Start position").fill("0.5 rad")
    await expect(judgement.get_by_text(re.compile("1 of \\d+ closed"))).to_be_visible()
    await judgement.get_by_role("link", name="Storage ring").first.click()
    await page.get_by_role("link", name="Mark recovering").click()
    await submit_dialog(page, "Mark recovering", Reason="the ring is being filled")
    await page.get_by_role("link", name="Restore").click()
    await submit_dialog(page, "Restore", Reason="100 mA again")
    await page.goto(plan_page(console))
    await expect(judgement.get_by_text(re.compile("all \\d+ open"))).to_be_visible()
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()


OVERTAKE = """() => {
  const send = window.fetch;
  window.fetch = async (address, options) => {
    const answer = await send(address, options), signal = options.signal;
    if (signal.aborted || window.overtaken !== undefined) return answer;
    window.overtaken = false;
    const start = (body) => signal.addEventListener("abort", () => { window.overtaken = true; body.error(signal.reason); });
    setTimeout(() => document.dispatchEvent(new Event("replaced")));
    return new Response(new ReadableStream({ start }), { headers: answer.headers });
  };
}"""  # An answer begins to arrive and does not end, and then something on the page changes.


async def test_a_judgement_that_is_overtaken_while_it_arrives_is_given_up(page: Page, console: ConsoleStack) -> None:
    await page.goto(plan_page(console))
    await page.evaluate(OVERTAKE)
    await page.get_by_label("Start position").fill("740")
    await until(lambda: page.evaluate("window.overtaken"))
    await expect(page.locator("#launch").get_by_text("359.9")).not_to_have_count(0)


@pytest.mark.usefixtures("open_door")
async def test_a_run_is_started_and_its_steps_arrive_in_two_browsers(
    page: Page, browser: Browser, console: ConsoleStack
) -> None:
    await page.goto(plan_page(console))
    await page.get_by_label("Exposure").fill("35 ms")
    start, name = page.get_by_role("button", name="Start", exact=True), page.get_by_label("Name")
    async with page.expect_response(re.compile("/check")):
        await name.fill("Bar 7, load step 1")
    await expect(start).to_be_enabled()
    await start.hover()
    async with page.expect_response(re.compile("/check")) as judged:  # while Start is pressed, which is not lost by it
        await page.mouse.down()
        await name.dispatch_event("input")
    await (await judged.value).finished()
    await page.evaluate("new Promise((done) => setTimeout(done))")
    await page.mouse.up()
    await page.wait_for_url(re.compile("/console/runs/"))
    run = page.url
    async with open_window(browser, cookies=console.cookies("mira"), theme="light") as other:
        await other.goto(f"{console.url}/console")
        await expect(other.get_by_role("link", name="Bar 7, load step 1")).to_be_visible()
        await expect(other.get_by_text(re.compile("of 13|of 14")).first).to_be_visible()
        await page.locator("main").get_by_role("link", name="Twelve projections").first.click()
        await page.wait_for_url(re.compile("/console/procedures/"))
        await expect(page.locator("tr.now")).to_contain_text("bl7:door")
        await expect(page.locator("tr", has_text="✓ done")).to_have_count(2)
        console.set_door(1)
        await expect_state(page, "Completed")
        await expect(page.locator("tr", has_text="✓ done")).to_have_count(14)
        await expect(other.get_by_role("link", name="Bar 7, load step 1")).to_have_count(0)
    await page.goto(run)
    await expect_state(page, "Completed")
    view = console.client.runs[run.rpartition("/")[2][:36]].get()
    assert view.effective_parameters["exposure"] == pytest.approx(0.035)


@pytest.mark.usefixtures("open_door")
async def test_a_run_is_held_with_one_key_resumed_and_aborted(page: Page, console: ConsoleStack) -> None:
    await start_run(page, console, "Bar 7, load step 2")
    await page.keyboard.press("h")
    await expect_state(page, "Held")
    await expect(page.get_by_text("Held from the console.").first).to_be_visible()
    await page.goto(f"{console.url}/console/waiting")
    await expect(page.get_by_role("link", name="Bar 7, load step 2").first).to_be_visible()
    assert await width_on_phone(page) <= PHONE[0]
    await page.get_by_role("link", name="Resume").first.click()
    await submit_dialog(page, "Resume")
    await expect(page.get_by_role("link", name="Bar 7, load step 2")).to_have_count(0)
    await page.goto(f"{console.url}/console")
    await page.keyboard.press("Shift+A")
    await page.get_by_role("link", name="Abort…").first.click()
    await expect(page.get_by_role("dialog").get_by_label("Reason")).to_have_value("From the console.")
    await page.get_by_role("dialog").get_by_role("button", name="sample slipped").click()
    await submit_dialog(page, "Abort")
    await until(lambda: not list(console.client.every("list_runs", status="Running")))
    (run,) = console.client.every("list_runs", name="Bar 7, load step 2")
    view = console.client.runs[run.run_id].get()
    assert (view.status, view.end_reason) == ("Aborted", "Sample slipped.")


@pytest.mark.usefixtures("open_door")
async def test_now_shows_what_people_watch_the_beam_path_and_resumes_a_held_run_with_one_press(
    page: Page, console: ConsoleStack
) -> None:
    await start_run(page, console, "Bar 7, load step 6")
    await page.goto(f"{console.url}/console")
    await expect(page.locator("tr.now")).to_contain_text("Tomography door")
    await page.keyboard.press("h")
    await expect(page.get_by_role("button", name="Resume Bar 7, load step 6")).to_be_visible()
    signals = page.locator("#region-watched li")
    await expect(signals.filter(has_text="Rotation")).to_contain_text(re.compile("30°.*ago", re.S))
    await expect(signals.filter(has_text="Door").locator(".v")).to_have_text("0")
    await expect(signals.filter(has_text="Vacuum").locator(".v")).to_have_text("not known")
    await expect(page.locator("#region-pictures")).to_contain_text("Camera")
    await expect(page.locator("svg.path a")).to_have_count(3)
    await expect(page.locator("svg.path")).to_contain_text("Rotary")
    await page.goto(f"{console.url}/console/equipment")
    await expect(page.get_by_role("row", name="Rotary")).to_contain_text(re.compile("30°.*ago", re.S))
    await page.goto(f"{console.url}/console")
    await page.get_by_role("button", name="Resume Bar 7, load step 6").click()
    await expect(page.get_by_role("button", name="Resume Bar 7, load step 6")).to_have_count(0)
    console.set_door(1)
    await until(lambda: not list(console.client.every("list_runs", status="Running")))
    assert [run.status for run in console.client.every("list_runs", name="Bar 7, load step 6")] == ["Completed"]


async def test_anything_is_found_by_its_name_with_the_keyboard(page: Page, console: ConsoleStack) -> None:
    await page.goto(f"{console.url}/console/health")
    await page.keyboard.press("/")
    await page.keyboard.type("rotar")
    await expect(page.locator("[data-suggestions]").get_by_role("link", name="Rotary")).to_be_visible()
    assert not await serious_findings(page)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile("/console/assets/"))
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Rotary")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("find a run, sample, device")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()


RECORD_NOTICES = """
window.told = [];
window.Notification = class extends EventTarget {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(title, options) { super(); window.told.push([title, options.body]); }
};
"""


@pytest.mark.usefixtures("open_door")
async def test_somebody_is_told_that_what_they_started_is_held(browser: Browser, console: ConsoleStack) -> None:
    async with open_window(browser, cookies=console.cookies("mira")) as own:
        await own.add_init_script(RECORD_NOTICES)
        await start_run(own, console, "Bar 7, load step 7")
        await own.goto(f"{console.url}/console/data")
        await expect(own.get_by_text(re.compile("live, "))).to_be_visible()
        await own.get_by_role("button", name="Notify me").click()
        await expect(own.get_by_role("button", name="Notifies you")).to_be_visible()
        (run,) = console.client.every("list_runs", name="Bar 7, load step 7")
        await asyncio.to_thread(console.client.runs[run.run_id].hold, reason="look at it")
        await until(lambda: own.evaluate("window.told.length"))
        title, text = (await own.evaluate("window.told"))[0]
        assert "Bar 7, load step 7: held run" in title
        assert "look at it" in text
        await asyncio.to_thread(console.client.runs[run.run_id].abort, reason="over")
        await until(lambda: not list(console.client.every("list_runs", status="Held")))


async def test_the_menu_of_a_phone_is_a_sheet(browser: Browser, console: ConsoleStack) -> None:
    async with open_window(browser, cookies=console.cookies("mira"), size=PHONE) as phone:
        await phone.goto(f"{console.url}/console/equipment")
        assert (await phone.locator("header.top").bounding_box() or {})["height"] < 60
        await expect(phone.get_by_role("link", name="Safety")).to_be_hidden()
        await phone.get_by_role("button", name="Menu").click()
        await expect(phone.get_by_role("link", name="Safety")).to_be_visible()
        assert not await serious_findings(phone)
        assert await phone.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        await phone.keyboard.press("Escape")
        await expect(phone.get_by_role("link", name="Safety")).to_be_hidden()


@pytest.mark.usefixtures("open_door")
async def test_a_wait_is_skipped_an_unknown_outcome_resolved_and_the_procedure_resumed(
    page: Page, console: ConsoleStack
) -> None:
    await start_procedure(page, console)
    await page.get_by_role("link", name="Skip wait").click()
    await submit_dialog(page, "Skip wait", Reason="the door is shut, its switch is broken")
    await expect(page.get_by_text("collect").first).to_be_visible()
    await expect(page.locator("tr.now")).to_contain_text("collect")
    await asyncio.to_thread(console.stack.kill, "worker")
    await expect_state(page, "Held")
    await page.get_by_role("link", name="It was done").click()
    await submit_dialog(page, "Resolve step", Reason="the frame is in the file")
    await page.get_by_role("link", name="Take it up").click()
    await submit_dialog(page, "Conduct from")
    await expect_state(page, "Completed")


@pytest.mark.usefixtures("open_door")
async def test_a_page_says_that_the_api_and_the_worker_are_gone_and_comes_back_by_itself(
    page: Page, console: ConsoleStack
) -> None:
    await start_run(page, console, "Bar 7, load step 3")
    await expect(page.get_by_text(re.compile("live, "))).to_be_visible()
    api = console.stack.piece("api")
    api.suspend()
    try:
        await expect(page.get_by_text("connection lost")).to_be_visible()
    finally:
        api.resume()
    await expect(page.get_by_text(re.compile("live, "))).to_be_visible()
    await asyncio.to_thread(console.stack.kill, "api")
    await asyncio.to_thread(console.stack.kill, "worker")
    await expect(page.get_by_text(re.compile("live, "))).to_be_visible()
    console.set_door(1)
    await expect_state(page, "Completed")
    assert status_of(console, page) == "Completed"


@pytest.mark.usefixtures("open_door")
async def test_a_queue_conducts_what_is_added_to_it_and_leads_to_its_runs(page: Page, console: ConsoleStack) -> None:
    queue_id = console.client.open_queue(name="Tonight", asset_id=console.client.assets["Tomography"].id).queue_id
    supply = console.client.supplies["Storage ring"]
    await asyncio.to_thread(supply.mark_unavailable, reason="beam dump at 03:04")
    await page.goto(plan_page(console))
    await page.get_by_label("Name").fill("Bar 9")
    await page.get_by_role("button", name="Add to the queue").click()
    await page.wait_for_url(re.compile("/console/queues/"))
    await expect(page.locator("ol.queue > li").first).to_contain_text("Blocked")
    await expect(page.locator("ol.queue > li").first).to_contain_text("Storage ring is Unavailable")
    await asyncio.to_thread(supply.mark_recovering, reason="the ring is being filled")
    await asyncio.to_thread(supply.restore, reason="100 mA again")
    await expect(page.locator("#region-running").get_by_role("link", name="Bar 9")).to_be_visible()
    await expect(page.locator("#region-running progress")).to_be_visible()
    console.set_door(1)
    await expect(page.locator("#region-ended")).to_contain_text("Completed")
    await page.locator("#region-ended").get_by_role("link", name="Bar 9").click()
    await page.wait_for_url(re.compile("/console/runs/"))
    assert status_of(console, page) == "Completed"
    await asyncio.to_thread(console.client.retire_queue, queue_id, reason="over")


@pytest.mark.usefixtures("open_door")
async def test_a_phone_shows_the_run_and_holds_it(browser: Browser, console: ConsoleStack) -> None:
    async with open_window(browser, size=PHONE, cookies=console.cookies("mira")) as page:
        await start_run(page, console, "Bar 7, load step 4")
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE[0], f"the page is {wide} wide"
        await page.get_by_role("button", name="Hold").click()
        await expect_state(page, "Held")
        assert not await serious_findings(page)
        await page.locator(".halt").get_by_role("link", name="Stop").click()
        await submit_dialog(page, "Stop", Reason="enough for tonight")
        await expect_state(page, "Stopped")


@pytest.mark.usefixtures("open_door")
async def test_everything_can_be_done_with_the_keyboard_alone(page: Page, console: ConsoleStack) -> None:
    await page.goto(plan_page(console))
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    await tab_to(page, "Name")
    await page.keyboard.type("Bar 8")
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    await tab_to(page, "Start")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile("/console/runs/"))
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Bar 8")
    await page.keyboard.press("s")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.type("seen enough")
    await tab_to(page, "Stop", inside="dialog")
    await page.keyboard.press("Enter")
    await expect_state(page, "Stopped")


def condition_of(console: ConsoleStack, asset: str) -> str:
    return str(console.client.assets[asset].get().lifecycle)


async def test_what_an_agent_proposes_arrives_is_read_and_is_approved_with_the_keyboard(
    page: Page, console: ConsoleStack, colleagues: Colleagues
) -> None:
    await page.goto(f"{console.url}/console/approvals")
    await expect(page.get_by_text("Nothing waits for your approval.")).to_be_visible()
    await expect(page.get_by_text(re.compile("live, "))).to_be_visible()
    proposal_id = await asyncio.to_thread(colleagues.propose_maintenance, "Camera")
    card = page.locator("#region-deciding article")
    await expect(card.get_by_role("link", name="Enter maintenance", exact=True)).to_be_visible()
    await expect(card.get_by_role("link", name="Camera", exact=True)).to_be_visible()
    await expect(card).to_contain_text(TIDIER)
    await expect(card).to_contain_text("Approved now, it would record")
    await expect(page.locator("#region-approvals")).to_contain_text("1")
    assert condition_of(console, "Camera") != "Maintenance"
    assert not await findings_in_both_themes(page)
    assert await width_on_phone(page) <= PHONE[0]
    await tab_to(page, "Approve…")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.type("as discussed at the meeting")
    await tab_to(page, "Approve", inside="dialog")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing waits for your approval.")).to_be_visible()
    await page.goto(f"{console.url}/console/proposals/{proposal_id}")
    await expect(page.get_by_text("It was approved and carried out.")).to_be_visible()
    await expect(page.locator("#region-history")).to_contain_text("Proposal carried out")
    assert condition_of(console, "Camera") == "Maintenance"
    assert colleagues.agent.get_work(proposal_id).state == "done"
    await asyncio.to_thread(console.client.assets["Camera"].exit_maintenance)


async def test_who_proposes_may_withdraw_not_approve_and_learns_how_it_ended(
    page: Page, browser: Browser, console: ConsoleStack, colleagues: Colleagues
) -> None:
    async with open_window(browser, cookies=console.cookies("noor")) as own:
        await own.goto(f"{console.url}/console/assets/{console.client.assets['Rotary'].id}")
        await own.get_by_role("link", name="Propose: enter maintenance").click()
        await submit_dialog(own, "Propose: enter maintenance")
        await own.wait_for_url(re.compile("/console/proposals/"))
        await expect(own.get_by_text("Proposed; it waits for approval until")).to_be_visible()
        await expect(own.get_by_role("link", name=re.compile("Withdraw…"))).to_be_visible()
        await expect(own.get_by_role("link", name=re.compile("Approve…"))).to_have_count(0)
        await asyncio.to_thread(console.client.assets["Rotary"].enter_maintenance)
        await expect(own.get_by_text("It would be refused now: ")).to_be_visible()
        await page.goto(own.url)
        await expect(page.get_by_text("It would be refused now: ")).to_be_visible()
        await page.get_by_role("link", name=re.compile("Approve…")).click()
        await submit_dialog(page, "Approve")
        await expect(own.get_by_text("It was approved, and refused when it was carried out.")).to_be_visible()
        assert not await serious_findings(own)
    await asyncio.to_thread(console.client.assets["Rotary"].exit_maintenance)


async def test_an_approval_that_comes_too_late_is_refused_in_its_own_sentence(
    page: Page, console: ConsoleStack, colleagues: Colleagues
) -> None:
    proposal_id = await asyncio.to_thread(colleagues.propose_maintenance, "Camera")
    await page.goto(f"{console.url}/console/waiting")
    await page.get_by_role("link", name=re.compile("Approve… Enter maintenance, Camera")).click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await asyncio.to_thread(colleagues.agent.withdraw_proposal, proposal_id, reason="the camera is needed")
    await page.get_by_role("dialog").get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("ProposalCannotApproveError")
    await page.get_by_role("dialog").get_by_role("link", name="Cancel").click()
    await expect(page.get_by_role("link", name=re.compile("Approve…"))).to_have_count(0)


async def test_a_launch_whose_start_takes_an_approval_is_proposed_as_a_whole(
    browser: Browser, console: ConsoleStack, colleagues: Colleagues
) -> None:
    async with open_window(browser, cookies=console.cookies("noor"), theme="light") as own:
        await own.goto(plan_page(console))
        await expect(own.get_by_text("the launch is proposed as a whole")).to_be_visible()
        await own.get_by_label("Name").fill("Bar 9, proposed")
        await expect(own.get_by_role("button", name="Propose", exact=True)).to_be_enabled()
        await own.get_by_role("button", name="Propose", exact=True).click()
        await own.wait_for_url(re.compile("/console/proposals/"))
        await expect(own.get_by_role("heading", level=1)).to_contain_text("Launch")
        await own.get_by_role("link", name=re.compile("Withdraw…")).click()
        await submit_dialog(own, "Withdraw", Reason="tomorrow is better")
        await expect(own.get_by_text("It was withdrawn before anybody approved it.")).to_be_visible()


async def tab_to(page: Page, name: str, inside: str = "body") -> None:
    """Press Tab until what has this name has the focus."""
    for _ in range(80):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(
            """(inside) => { const at = document.activeElement;
                if (!at.closest(inside)) return "";
                return (at.labels?.[0]?.innerText || at.innerText || at.getAttribute("aria-label") || "").trim(); }""",
            inside,
        )
        if focused.split("\n")[0] == name:
            return
    raise AssertionError(f"{name} is not reached with the keyboard")


OF_EACH_KIND = ("now", "wall", "conduct", "start", "asset", "form", "style")
"""Pages with everything that pages are made of; `style` shows every part. Journeys look at others."""
ON_PHONE = ("now", "run", "conduct", "start", "approvals", "safety", "equipment", "runs", "data")


@pytest.fixture(scope="module")
def places(console: ConsoleStack, colleagues: Colleagues) -> Iterator[dict[str, str]]:
    """The address of every page that a picture is taken of, on a full record with a run under way."""
    console.set_door(0)
    client = console.client
    run_id = client.plans["Fast tomography"].start(name="Bar 7, load step 5", recipes=["Twelve projections"]).id
    furnish(client, run_id, console.files)
    proposal_id = colleagues.propose_maintenance("Camera")
    colleagues.propose_run("Bar 9, load step 1")
    yield things_to_see(console, run_id, proposal_id)
    console.set_door(1)


def things_to_see(console: ConsoleStack, run_id: UUID, proposal_id: UUID) -> dict[str, str]:
    """Return the address of every page that a picture is taken of."""
    client = console.client
    (phase,) = [one.procedure_id for one in client.runs[run_id].get().phases]
    dataset = next(client.every("list_datasets", name="scan_0042.h5")).dataset_id
    return {
        "now": "",
        "wall": "/wall",
        "conduct": f"/procedures/{phase}",
        "run": f"/runs/{run_id}",
        "start-choice": "/start",
        "start": f"/start/plans/{client.plans['Fast tomography'].id}",
        "start-recipe": f"/start/recipes/{client.recipes['Wait, then acquire'].id}",
        "approvals": "/approvals",
        "proposal": f"/proposals/{proposal_id}",
        "runs": "/runs",
        "history": f"/runs/{run_id}/history",
        "data": "/data",
        "dataset": f"/datasets/{dataset}",
        "equipment": "/equipment",
        "asset": f"/assets/{client.assets['Rotary'].id}",
        "settings": f"/assets/{client.assets['Rotary'].id}/settings",
        "safety": "/safety",
        "agents": "/agents",
        "calendar": "/calendar",
        "people": "/people",
        "group": "/people?command=EnterAssetMaintenance",
        "health": "/health",
        "records": "/records",
        "supply": f"/supplies/{client.supplies['Storage ring'].id}",
        "halt": "/halt?verb=abort",
        "form": "/do/register_caution",
        "style": "/style",
    }


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(OF_EACH_KIND, id="of each kind"),
        pytest.param((), id="all", marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_pages_are_accessible_in_both_themes_and_fit_a_phone(
    page: Page, console: ConsoleStack, places: dict[str, str], names: Sequence[str]
) -> None:
    found: dict[str, Any] = {}
    for name in names or places:
        await page.goto(f"{console.url}/console{places[name]}")
        await expect(page.get_by_role("heading", level=1).first).to_be_attached()
        if findings := await findings_in_both_themes(page):
            found[name] = findings
        if name in ON_PHONE and (wide := await width_on_phone(page)) > PHONE[0]:
            found[f"{name} on a phone"] = f"{wide} wide"
        await take_pictures(page, name)
    assert not found, found


@pytest.mark.usefixtures("places")
async def test_everything_that_waits_stands_on_waiting_and_on_now_and_is_accessible(
    page: Page, console: ConsoleStack
) -> None:
    troubles = await TroubledNight(console).bring_about()
    await page.goto(f"{console.url}/console/waiting")
    listed = page.locator("#region-items")
    for one in troubles:
        card = listed.locator("article", has=page.locator(f"h2 a[href='/console{one.page}']"))
        await expect(card.locator("h2")).to_contain_text(one.name)
        await expect(card.locator("p").first).to_contain_text(one.why)
        await expect(card.locator(f"a[href^='/console/do/{one.command}?']")).to_contain_text(one.button)
        await expect(card).to_have_class("panel stop" if one.is_wrong else "panel look")
    looks = await listed.locator("article").evaluate_all("(cards) => cards.map((card) => card.classList[1])")
    assert looks == sorted(looks, reverse=True), "what went wrong comes first"
    await expect(page.locator("#region-deciding").get_by_role("link", name=re.compile("Approve…"))).to_have_count(2)
    await expect_to_be_shown_well(page, "waiting")

    await page.goto(f"{console.url}/console")
    for one in troubles:
        item = page.locator("#region-waiting li", has=page.locator(f"a[href='/console{one.page}']"))
        if one.is_wrong:
            await expect(item).to_contain_text(one.name)
            await expect(item).to_contain_text(one.why)
            await expect(item).to_have_class("stop")
        if one.is_lost:
            card = page.locator("#region-beamlines article", has=page.locator(f"a[href='/console{one.page}']"))
            await expect(card.locator(f"a[href^='/console/do/{one.command}?']").last).to_contain_text(one.button)
            await expect(card).to_have_class("panel stop")
            await expect(card).to_contain_text("Lost")
            await expect(card).not_to_contain_text("Running")
    queues = page.locator("#region-queues section")
    held = re.compile("Held .* by Mira Okafor: search the hutch Resume…")
    await expect(queues.filter(has_text="Weekend").locator(".refusal")).to_contain_text(held)
    await expect(queues.filter(has_text="Tonight")).to_contain_text("is next and blocked: The subject is Received")
    under_way = page.locator("#region-beamlines article.live")
    await expect(under_way.locator("h3")).to_have_text(re.compile("Bar 7, load step 5 ● Running"))
    await expect(under_way.locator("tr.now")).to_contain_text("Wait until Tomography door is 1")
    await expect(page.locator("#region-approvals")).to_contain_text("2")
    picture = page.get_by_role("img", name="Latest picture of Camera")
    await until(lambda: picture.evaluate("(image) => image.naturalWidth"))
    await expect_to_be_shown_well(page, "now-trouble")

    failed, unclosed = (one for one in troubles if one.command.startswith("acknowledge_"))
    await page.goto(f"{console.url}/console{failed.page}")
    await expect(page.locator("#region-head .refusal").first).to_contain_text(
        "by its conduct: phase Projections: step 1, bl7:shutter failed: bl7:shutter refuses to be written."
    )
    await page.goto(f"{console.url}/console{unclosed.page}")
    await expect(page.locator("#region-head .panel.stop")).to_contain_text("1 closing step was not done.")
    await page.get_by_role("link", name=unclosed.button).click()
    await submit_dialog(page, "Acknowledge")
    await page.goto(f"{console.url}/console/waiting")
    await expect(listed.locator("article")).not_to_have_count(0)
    await expect(listed.get_by_role("link", name=unclosed.name)).to_have_count(0)


async def expect_to_be_shown_well(page: Page, name: str) -> None:
    """Expect a page to be accessible in both themes and to fit a phone; take its pictures."""
    assert not await findings_in_both_themes(page)
    assert await width_on_phone(page) <= PHONE[0]
    await take_pictures(page, name)
