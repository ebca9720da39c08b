"""Calendar: the next firings on the facility's clock, refused ones loudly, verbs, a picture of the day, and visits."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.console.day_picture import HOURS, LABEL_WIDTH, WIDTH, DayRow, beginning_of, day_picture
from baton.console.pages.calendar import schedule_row
from baton.domain.schedule.schedule import RecordScheduleFiringRefusal
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.console.page_source import PageSource, load
from tests.support.console.page_text import card
from tests.support.console.staff import ADMIN, ENFORCED, Person, employ
from tests.support.service import running_api

BERLIN = ZoneInfo("Europe/Berlin")
STEPS = [{"kind": "setpoint", "address": "bl7:shutter", "value": 0}]
WHY = "Ines Planner may not do this any more."


@dataclass(frozen=True)
class Office:
    """Somebody who plans, somebody who may only look, and the recipe that is scheduled."""

    planner: Person
    guest: Person
    recipe_id: str
    policy_id: str

    async def define(self, name: str, **calendar: Any) -> str:
        """Schedule the recipe."""
        target = {"kind": "ConductRecipe", "recipe_id": self.recipe_id, "name": f"{name} {{fired_at}}"}
        schedule = {"name": name, "calendar": calendar, "time_zone": "Europe/Berlin", "target": target}
        return await self.planner.api.create("/schedules", schedule)


@pytest.fixture(scope="module")
async def office(module_database: str) -> AsyncIterator[Office]:
    async with running_api(module_database, **ENFORCED, facility_time_zone="Europe/Berlin") as api:
        planner = await employ(api, "Ines Planner", sets=("all",))
        guest = await employ(api, "Gil Guest", sets=("queries",))
        shapes = {"code": "baton.capability.darks", "executor_shapes": ["PROCEDURE"], "required_affordances": []}
        capability = await planner.api.create("/capabilities", {"name": "Darks", **shapes})
        recipe = {"name": "Darks", "capability_id": capability, "steps": STEPS}
        grant = {"name": "Users", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        held = {"permitted_principal_ids": [], "permitted_commands": ["GetVisit"]}
        policy_id = await api.acting_as(ADMIN).create("/policies", {**grant, **held})
        yield Office(planner, guest, await planner.api.create("/recipes", recipe), policy_id)


async def test_a_schedule_shows_when_it_fires_for_whom_and_its_verbs(office: Office) -> None:
    schedule_id = await office.define("Nightly darks", cron=["30 2 * * *"])
    position = await office.planner.api.execute(f"/schedules/{schedule_id}/trigger")
    shown = card(await office.planner.see("/console/calendar", after=position), "Nightly darks")
    assert re.search(r"fires next <b><time [^>]*>\d{4}-\d\d-\d\d 02:30:00</time></b>", shown), "on the facility's clock"
    assert re.search(r"then (\w{3} 02:30(, )?){4}", shown)
    assert "as <b>Ines Planner</b>" in shown
    assert "skips while the last one continues" in shown
    assert ">Darks</a>" in shown
    for verb in ("trigger", "hold", "retire"):
        assert f"/console/do/{verb}_schedule?schedule_id={schedule_id}" in shown
    assert "<b>Resume</b> <span>The schedule is Active; this is possible only from Held.</span>" in shown
    seen = card(await office.guest.see("/console/calendar", after=position), "Nightly darks")
    assert "<b>Trigger</b> <span>You may not: it takes the permission TriggerSchedule. <a" in seen


async def test_a_refused_firing_stands_first_with_its_sentence(office: Office) -> None:
    schedule_id = UUID(await office.define("Refused round", every=3600))
    command = RecordScheduleFiringRefusal(
        firing_id=uuid4(), scheduled_at=datetime(2026, 7, 1, tzinfo=UTC), code="UnauthorizedError", detail=WHY
    )
    async with Runtime(Settings(database_url=office.planner.api.database_url, app_env="test")) as runtime:
        result = await runtime.commands.execute(command, Caller.system(uuid4()), target_id=schedule_id)
    page = await office.planner.see("/console/calendar", after=result.position)
    first = re.findall(r"<article.*?</article>", page)[0]
    assert ">Refused round</a>" in first
    assert WHY in first
    assert 'href="/refusals/UnauthorizedError"' in first
    assert "2026-07-01 02:00:00" in first, "on the facility's clock"


async def test_a_held_schedule_says_so_and_fires_not(office: Office) -> None:
    schedule_id = await office.define("Flat fields", cron=["0 6 * * *"])
    position = await office.planner.api.execute(f"/schedules/{schedule_id}/hold", {"reason": "The camera is away."})
    page = await office.planner.see("/console/calendar", after=position)
    assert "Held: The camera is away." in card(page, "Flat fields")
    assert "fires next" not in card(page, "Flat fields")
    picture = page[page.index("<svg") : page.index("</svg>")]
    assert "Flat fields" in picture
    assert "held, fires not" in picture


async def test_a_schedule_whose_recipe_has_changed_is_confirmed_and_resumed_as_it_was_shown(office: Office) -> None:
    api, known = office.planner.api, (await office.planner.api.get(f"/recipes/{office.recipe_id}")).json()
    recipe_id = await api.create("/recipes", {"name": "Flats", "capability_id": known["capability_id"], "steps": STEPS})
    schedule_id = await replace(office, recipe_id=recipe_id).define("Morning flats", cron=["0 7 * * *"])

    async def version(tag: str) -> int:
        return await api.execute(f"/recipes/{recipe_id}/version", {"version_tag": tag, "steps": STEPS})

    async def confirmation() -> PageSource:
        """Return the form behind the button that confirms what the calendar shows now."""
        shown = PageSource.of(card(await office.planner.see("/console/calendar"), "Morning flats"))
        (button,) = [one for one in shown.all("a") if one.text.startswith("Confirm and resume")]
        return await load(api, button.get("href"))

    await version("2026-1")
    why = {"code": "TargetChangedError", "detail": "The recipe Flats has changed."}
    refusal = RecordScheduleFiringRefusal(firing_id=uuid4(), scheduled_at=datetime(2026, 7, 1, tzinfo=UTC), **why)
    held = await api.runtime.commands.execute(refusal, Caller.system(uuid4()), target_id=UUID(schedule_id))
    shown = card(await office.planner.see("/console/calendar", after=held.position), "Morning flats")
    assert "Held: The recipe Flats has changed." in shown
    assert "was untagged and is 2026-1" in shown
    looked_at = await confirmation()
    await version("2026-2")
    refused = await api.request("POST", "/console/do/resume_schedule", data=looked_at.filled_in())
    assert refused.status_code == 409, refused.text
    assert "/refusals/ScheduleCannotResumeError" in refused.text
    assert (await api.get(f"/schedules/{schedule_id}")).json()["status"] == "Held", "another version was looked at"
    sent = await api.request("POST", "/console/do/resume_schedule", data=(await confirmation()).filled_in())
    assert sent.status_code == 303, sent.text
    view = (await api.get(f"/schedules/{schedule_id}")).json()
    assert (view["status"], view["changes"], view["run_as"]) == ("Active", [], office.planner.id)
    assert [one["version_tag"] for one in view["versions"]] == ["2026-2"]
    after = await office.planner.see("/console/calendar", after=int(sent.headers["location"].rpartition("position=")[2]))
    assert "Confirm and resume" not in card(after, "Morning flats")


async def test_visits_that_go_on_or_come_stand_in_their_order(office: Office) -> None:
    now = datetime.now(UTC)
    for kind, hours in (("user", 30), ("maintenance", -2), ("staff", 24 * 40)):
        period = {"planned_start_at": now + timedelta(hours=hours), "planned_end_at": now + timedelta(hours=hours + 8)}
        plan = {"policy_id": office.policy_id, "surface_id": SYSTEM_HTTP, "type": kind}
        visit_id = await office.planner.api.create("/visits", {**plan, **{k: t.isoformat() for k, t in period.items()}})
    position = await office.planner.api.execute(f"/visits/{visit_id}/cancel", {"reason": "no beam"})
    page = await office.planner.see("/console/calendar", after=position)
    visits = page[page.index('id="region-visits"') :]
    assert re.findall(r'href="/console/visits/[0-9a-f-]+">(\w+) visit</a>', visits) == ["Maintenance", "User"]
    assert "/console/do/record_visit_arrival?visit_id=" in visits
    assert "Maintenance visit" in page[page.index("<svg") : page.index("</svg>")]


def test_the_picture_marks_firings_and_draws_what_fires_often_as_a_band() -> None:
    begins = beginning_of(datetime(2026, 11, 17, 13, 20, 7, tzinfo=UTC))
    assert begins == datetime(2026, 11, 17, 13, 15, tzinfo=UTC)
    firings = tuple(begins + timedelta(hours=number) for number in range(1, 4))
    minutely = {"name": "Often & <b>", "status": "Active", "calendar": {"every": 60}}
    often = schedule_row({**minutely, "time_zone": "Europe/Berlin"}, begins, begins + timedelta(hours=HOURS))
    rows = [DayRow("Rounds", "live", firings), often]
    picture = day_picture(rows, begins, BERLIN, "The day")
    assert picture.count('<path class="firing live"') == len(firings)
    assert picture.count('<rect class="firing live often"') == picture.count("<rect") == 1
    assert "about every 1 min" in picture
    assert "<title>Tue 15:15</title>" in picture, "on the facility's clock"
    assert "Wed 18 Nov" in picture
    assert "Often &amp; &lt;b&gt;" in picture


def test_the_label_at_the_end_of_the_picture_is_not_cut() -> None:
    noon = day_picture([], datetime(2026, 11, 17, 11, tzinfo=UTC), BERLIN, "The day")
    places = [float(x) for x in re.findall(r'<text x="([0-9.]+)"', noon)]
    assert max(places) == WIDTH - LABEL_WIDTH / 2
