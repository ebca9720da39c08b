"""What control-room staff see of a conduct in Temporal's own pages, in a real browser; nothing of it comes from outside."""

import base64
import os
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from playwright.async_api import Browser, Page, expect

import baton.cli.worker
from baton.application.caller import Caller
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.domain.conduct.conduct import ConductOrHoldProcedure, ConductProcedure
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.conduct.progress import ConductProgress
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus, RegisterEnclosure
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.procedure.procedure import ProcedureStatus
from baton.infrastructure.plugins import ActionRegistry
from baton.infrastructure.wall_clock import new_id
from tests.support.console.browser import IN_A_BROWSER, open_window
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, PausingAction
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.run_cases import PLANT, SIGNALS, StartedRun, build_run_stack
from tests.support.workflows.step_json import check, setpoint

pytestmark = IN_A_BROWSER

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "temporal-ui.png"
WANTED = "BATON_PICTURES"
"""Set this variable and the picture of the documentation is taken anew."""
WIDTH = 1440
FOLLOW = "(address) => document.body.appendChild(Object.assign(document.createElement('a'), { href: address })).click()"


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


@pytest.fixture(scope="module")
async def window(browser: Browser) -> AsyncIterator[Page]:
    """A window for all tests, which has the scripts of the pages once it has seen one."""
    async with open_window(browser, size=(WIDTH, 1100), foreign=True) as window:
        yield window


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


@dataclass(frozen=True)
class WorkflowPage:
    """The pages of one workflow; nothing of them comes from outside."""

    page: Page
    address: str
    asked: list[str]

    async def open(self, view: str) -> None:
        """Show a view of the workflow; from another one by a link, since to load all scripts again takes seconds."""
        if self.page.url == "about:blank":
            await self.page.goto(f"{self.address}/{view}")
        else:
            await self.page.evaluate(FOLLOW, f"{self.address}/{view}")
            await self.page.wait_for_url(re.compile(f"/{view}"))

    async def read_details(self, title: str, details: str) -> bytes:
        """Wait for the title and the present details, and return their picture."""
        await self.open("user-metadata")
        told = [self.page.frame_locator("iframe").nth(place).locator("body") for place in (0, 1)]
        await expect(told[0]).to_contain_text(title)
        await expect(told[1]).to_contain_text(details)
        return await self.take_picture(0, 660)

    async def read_timeline(self, *summaries: str) -> bytes:
        """Wait for activities with these summaries, and return the picture of the timeline."""
        await self.open("timeline")
        for summary in summaries:
            await self.page.get_by_text(summary).first.wait_for()
        timeline = self.page.get_by_role("heading", name="Timeline")
        await timeline.scroll_into_view_if_needed()
        place = await timeline.bounding_box()
        assert place is not None
        return await self.take_picture(place["y"] - 20, 280)

    async def take_picture(self, top: float, height: float) -> bytes:
        """Return a picture of this part of the page, where the variable is set."""
        clip: Any = {"x": 0, "y": top, "width": WIDTH, "height": height}
        return await self.page.screenshot(clip=clip) if WANTED in os.environ else b""

    async def keep(self, path: Path, *parts: bytes) -> None:
        """Keep pictures as one, where the variable is set."""
        inside = (self.address.partition("/namespaces/")[0], "data:", "blob:", "about:")
        assert [url for url in self.asked if not url.startswith(inside)] == []
        if WANTED not in os.environ:
            return
        shown = "".join(f'<img src="data:image/png;base64,{base64.b64encode(part).decode()}">' for part in parts)
        await self.page.set_viewport_size({"width": WIDTH, "height": 100})
        await self.page.set_content(f'<body style="margin:0;font-size:0">{shown}</body>')
        path.parent.mkdir(exist_ok=True)
        await self.page.screenshot(path=path, full_page=True)


async def open_pages(stack: ConductStack, procedure_id: UUID, pages: EmbeddedTemporal, window: Page) -> WorkflowPage:
    """Open the engine's pages of a conduct."""
    known = await stack.client.get_workflow_handle(conduct_workflow_id(procedure_id)).describe()
    asked: list[str] = []
    window.on("request", lambda request: asked.append(request.url))
    address = f"{pages.ui_url}/namespaces/default/workflows/{quote(known.id, safe='')}/{known.run_id}"
    return WorkflowPage(window, address, asked)


async def test_a_waiting_conduct_says_what_it_waits_for_and_which_steps_it_did(
    stack: ConductStack, pages: EmbeddedTemporal, window: Page
) -> None:
    phase = await start_waiting_phase(await (await build_run_stack(stack)).start())
    shown = await open_pages(stack, phase, pages, window)
    title = "alignment · steps · watching enclosure · ConductProcedure"
    details = await shown.read_details(title, "Waiting: waiting for the run to be resumed")
    steps = await shown.read_timeline("do_step • step 1/3 · set bl7:energy", "do_step • step 2/3 · check bl7:energy:rbv")
    await shown.keep(PICTURE, details, steps)


async def test_a_stretch_can_be_read_and_that_a_gate_has_closed(
    stack: ConductStack, pages: EmbeddedTemporal, window: Page, tmp_path: Path
) -> None:
    enclosure = await stack.do(RegisterEnclosure(name="Optics hutch", facility_code="facility"))
    enclosure_id = UUID((enclosure.body or {})["enclosure_id"])
    await observe(stack, enclosure_id, "Permitted")
    place = {"tier": "Unit", "facility_code": "facility", "located_in_enclosure_id": enclosure_id}
    owned = [{"kind": "EPICS_PV", "value": "bl7:energy"}]
    await stack.do(RegisterAsset(name="Monochromator", **place, alternate_identifiers=owned))
    arrived = check("bl7:energy:rbv", 25, timeout=60)
    steps = [*(setpoint("bl7:energy", value) for value in range(6)), arrived, setpoint("bl7:energy", 7)]
    procedure_id = await stack.register_from_recipe(steps)
    await stack.do(ConductProcedure(wait=0), procedure_id)
    await until(lambda: is_at_step(stack, procedure_id, 6))
    await observe(stack, enclosure_id, "NotPermitted")
    await stack.plant.write("bl7:energy:rbv", 25)
    await until(lambda: is_held(stack, procedure_id))
    shown = await open_pages(stack, procedure_id, pages, window)
    title = "alignment · steps · Monochromator · watching enclosure · ConductProcedure"
    details = await shown.read_details(title, "Ended: held, because a watched gate has closed")
    summaries = ("do_steps • steps 1-6/8 · set bl7:energy", "do_step • step 7/8 · check bl7:energy:rbv")
    await shown.keep(tmp_path / "gate.png", details, await shown.read_timeline(*summaries))


async def test_an_unknown_outcome_can_be_read(
    database_url: str, pages: EmbeddedTemporal, window: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(baton.cli.worker, "SHUTDOWN_GRACE", timedelta(seconds=0.1))
    pauses = PausingAction()
    registry = ActionRegistry({"pause": pauses})
    async with open_conduct_stack(database_url, pages.address, actions=registry, simulated_signals={"a": 0}) as stack:
        procedure_id = await stack.register_from_recipe([setpoint("a", 1), PAUSE, setpoint("a", 2)])
        await stack.do(ConductOrHoldProcedure(wait=0), procedure_id)
        await pauses.wait_until_reached()
        await stack.stop_worker()
        await stack.start_worker()
        await until(lambda: is_held(stack, procedure_id))
        shown = await open_pages(stack, procedure_id, pages, window)
        title = "alignment · steps · watching enclosure · ConductOrHoldProcedure"
        details = await shown.read_details(title, "Ended: held, because nobody knows whether a step was done")
        timeline = await shown.read_timeline("do_step • step 1/3 · set a", "do_step • step 2/3 · do pause")
        await shown.keep(tmp_path / "unknown.png", details, timeline)


async def observe(stack: ConductStack, enclosure_id: UUID, status: str) -> None:
    """Report the permit of a hutch as the interlock does."""
    monitor = {"source_kind": "ProcessVariable", "source_id": "PSS:A:SEARCHED"}
    command = ObserveEnclosureStatus(new_status=status, reason="search", monitor_ref=monitor)
    await stack.runtime.commands.execute(command, Caller.system(new_id()), target_id=enclosure_id)


async def is_at_step(stack: ConductStack, procedure_id: UUID, step_index: int) -> bool:
    async with stack.runtime.store.session() as session:
        rows = await session.records(ConductProgress, {"procedure_id": procedure_id})
    return bool(rows) and rows[0].step_index == step_index


async def is_held(stack: ConductStack, procedure_id: UUID) -> bool:
    procedure = await stack.procedure(procedure_id)
    return procedure.status is ProcedureStatus.HELD and procedure.live_conduct_id is None
