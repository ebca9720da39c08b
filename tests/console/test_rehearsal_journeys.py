"""People who type into the form of a start, in a real browser: it is rehearsed meanwhile, and nothing waits for that."""

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page, expect

from tests.api.test_touched_signals import own_signals
from tests.support.console.browser import IN_A_BROWSER, findings_in_both_themes, open_window, watch_faults
from tests.support.console.hall import Hall
from tests.support.service import Api
from tests.support.workflows.step_json import setpoint

pytestmark = IN_A_BROWSER


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with open_window(browser) as window, watch_faults(window) as page:
        yield page


async def turning_recipe(api: Api, hall: Hall) -> str:
    """A recipe that turns a stage to an angle and beyond what its limits allow."""
    await own_signals(hall.line)
    limits = {"address": "bl7:rot", "low": -180.0, "high": 180.0, "reason": "The cable chain ends there."}
    await api.execute(f"/assets/{hall.line.rotary_id}/signal-limits", limits)
    angle = {"type": "number", "minimum": 0, "maximum": 400}
    contract = {"name": "Turn", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"angle": angle}}
    asked = {"code": f"baton.capability.turn_{uuid4().hex[:8]}", **contract, "parameters_schema": schema}
    capability = await api.create("/capabilities", asked)
    steps = [setpoint("bl7:rot", float(value)) for value in range(0, 180, 20)]
    steps += [setpoint("bl7:rot", {"__binding__": "angle"}), setpoint("bl7:rot", 0.0)]
    return await api.create("/recipes", {"name": "Turn", "capability_id": capability, "steps": steps})


async def test_what_is_typed_is_rehearsed_once_the_gates_have_answered(page: Page, api: Api, hall: Hall) -> None:
    recipe_id = await turning_recipe(api, hall)
    await page.goto(f"{api.base_url}/console/start/recipes/{recipe_id}")
    angle, verdict = page.get_by_label(re.compile("Angle")), page.locator("#rehearsal-title")
    await angle.fill("170")
    await expect(verdict).to_contain_text("goes through")
    await angle.fill("190")
    await expect(verdict).to_contain_text("stops")
    await expect(page.locator("#may-go")).to_contain_text("Step 10, set bl7:rot")
    assert await page.locator("#may-go .stops").count() == 1
    assert await page.locator("#may-go .edge").count() == 2
    await page.get_by_label("Tonight at").fill("22:00")
    await expect(page.locator("#may-go")).to_contain_text("What it asks for then")
    await page.wait_for_load_state("networkidle")
    assert await findings_in_both_themes(page) == {}
