"""Start: the form of a plan or a recipe, what the gates say of it while it is filled in, and the start itself."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.api.data_products import register_copy, register_dataset
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.console.hall import PARAMETERS, Hall, open_hall
from tests.support.console.page_source import PageSource, load
from tests.support.console.staff import ADMIN, ENFORCED, employ
from tests.support.service import Api, running_api


@pytest.fixture
async def permit_work(hall: Hall) -> AsyncIterator[None]:
    """Have the hutch searched, and again afterwards."""
    await hall.line.observe("Permitted")
    yield
    await hall.line.observe("Permitted")


async def send(api: Api, path: str, form: dict[str, str], **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.request("POST", path, data=form, headers=named)


def text_of(page: PageSource, id: str) -> str:
    """Return the text of the element with this id."""
    return next(element.text for element in page.elements if element.get("id") == id)


def typed_into(page: PageSource, id: str) -> str:
    """Return what stands in a field: its value, or the option that is chosen."""
    element = next(element for element in page.elements if element.get("id") == id)
    if element.tag != "select":
        return element.get("value")
    within = page.elements[page.elements.index(element) + 1 :]
    options = [one for one in within if one.tag == "option"]
    return next((one.text for one in options if "selected" in one.attributes), "")


def links_of(page: PageSource) -> dict[str, str]:
    return {link.text: link.get("href") for link in page.all("a")}


def start_button(page: PageSource) -> Any:
    return next(element for element in page.elements if element.get("id") == "launch-start")


async def run_of(api: Api, answer: httpx.Response) -> dict[str, Any]:
    """Return the run that the answer to a start leads to."""
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"].partition("?")[0]
    assert address.startswith("/console/runs/")
    shown = await api.get(address.removeprefix("/console"))
    assert shown.status_code == 200, shown.text
    found: dict[str, Any] = shown.json()
    return found


STARTING = ("PreflightRun", "GetPlan", "GetMethod", "GetCapability", "GetRecipe", "ListRecipes", "ListRuns", "ListPlans")
HOLDING = ("GetProposal", "ListProcedures", "AbortRun", "CompleteRun", "HoldRun", "StopRun")
ENDING = ("AbortProcedure", "CompleteProcedure", "HoldProcedure")


@dataclass(frozen=True)
class Shift:
    """A beamline where policies are enforced, and what makes people who may start something only with approval."""

    hall: Hall
    boss: Api

    async def employ(self, held: tuple[str, ...], with_approval: str) -> Api:
        """Somebody who holds these commands, and one only with the approval of the boss."""
        id = await self.boss.create("/actors", {"name": "Guest"})
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [id]}
        approval = {"principals": [self.boss.headers["X-Principal-Id"]]}
        await self.boss.create("/policies", {"name": "Held", **place, "permitted_commands": [*STARTING, *HOLDING, *held]})
        asking = {"name": "Asking", **place, "permitted_commands": [with_approval], "approval": approval}
        await self.boss.create("/policies", asking)
        return self.boss.acting_as(id)


@pytest.fixture(scope="module")
async def shift(api: Api) -> AsyncIterator[Shift]:
    hall = await open_hall(api)  # of its own: no worker ends the conducts that other tests launch
    async with running_api(api.database_url, projecting=False, **ENFORCED) as guarded:
        boss = guarded.acting_as(ADMIN)
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [ADMIN]}
        everything = {"permitted_commands": [], "permitted_command_sets": ["all"]}
        await boss.create("/policies", {"name": "Everything", **place, **everything})
        yield Shift(hall, boss)


async def test_plans_and_recipes_are_found_by_their_names(api: Api, hall: Hall) -> None:
    found = links_of(await load(api, "/console/start", q="fast", position=hall.position))
    assert found["Fast tomography"] == hall.path
    assert "Scan" not in found
    assert links_of(await load(api, "/console/start"))["Scan"] == f"/console/start/recipes/{hall.scan_id}"
    none = await load(api, "/console/start", q="slow")
    assert any(one.text.startswith("No plan has") for one in none.all("p"))


@pytest.mark.usefixtures("permit_work")
async def test_the_form_shows_units_limits_own_values_and_those_of_the_last_time(api: Api, hall: Hall) -> None:
    campaign = await hall.line.campaign()
    asked = {"subject_id": hall.line.subject_id, "campaign_id": campaign, "override_parameters": {"exposure": 0.25}}
    started = await api.post("/runs", {"name": "Bar 7", "plan_id": hall.plan_id, **asked})
    run = started.json()["run_id"]
    page = await load(api, hall.path, position=started.headers["X-Baton-Position"])
    assert text_of(page, "field-parameters-exposure-about") == "s · 0.001 to 2 · plan 0.1 · last time 0.25"
    assert typed_into(page, "field-parameters-exposure") == "0.1"
    assert text_of(page, "field-subject_id-about").startswith("last time Alloy bar 7")
    again = await load(api, hall.path, **{"from": run})
    assert [typed_into(again, f"field-{name}") for name in ("name", "subject_id", "parameters-exposure")] == [
        "Bar 7",
        "Alloy bar 7 (Mounted on Rotary stage)",
        "0.25",
    ]
    assert typed_into(again, "field-campaign_id").startswith("Alloy fatigue series")
    await api.execute(f"/runs/{run}/stop", {"reason": "enough"})


@pytest.mark.usefixtures("permit_work")
async def test_a_closed_gate_has_its_sentence_and_a_link_to_what_opens_it(api: Api, hall: Hall) -> None:
    page = await load(api, hall.path)
    await hall.line.observe("NotPermitted")
    judged = await send(api, f"{hall.path}/check", hall.form(page), X_Fragment="1")
    assert judged.status_code == 200
    assert "<!doctype" not in judged.text
    found = PageSource.of(judged.text)
    assert text_of(found, "may-start-title") == "May it start? ✗ 1 of 20 closed"
    (gate,) = (one for one in found.all("li") if "Enclosure permitted" in one.text)
    assert "is NotPermitted" in gate.text
    assert f"/console/enclosures/{hall.line.enclosure_id}" in links_of(found).values()
    assert "disabled" in start_button(found).attributes
    await hall.line.observe("Permitted")
    open_again = PageSource.of((await send(api, f"{hall.path}/check", hall.form(page), X_Fragment="1")).text)
    assert text_of(open_again, "may-start-title") == "May it start? ✓ all 20 open"
    assert "disabled" not in start_button(open_again).attributes


@pytest.mark.usefixtures("permit_work")
@pytest.mark.parametrize(
    ("typed", "said"),
    [("35 kg", "kg cannot be converted to s"), ("3", "exposure must be at most 2 s"), ("much", "this is no number")],
)
async def test_a_wrong_value_stands_beside_its_field_and_is_not_sent_on(api: Api, hall: Hall, typed: str, said: str) -> None:
    before = (await api.get("/runs", plan_id=hall.plan_id)).json()["items"]
    form = hall.form(await load(api, hall.path), _do="start", **{"parameters.exposure": typed})
    answer = await send(api, hall.path, form)
    assert answer.status_code == 409
    page = PageSource.of(answer.text)
    assert said in text_of(page, "field-parameters-exposure-about")
    assert typed_into(page, "field-parameters-exposure") == typed
    judged = PageSource.of((await send(api, f"{hall.path}/check", form, X_Fragment="1")).text)
    (error,) = (one for one in judged.elements if one.get("data-field-error"))
    assert (error.get("data-field-error"), said in error.text) == ("field-parameters-exposure", True)
    assert (await api.get("/runs", plan_id=hall.plan_id)).json()["items"] == before


@pytest.mark.usefixtures("permit_work")
async def test_a_start_makes_the_run_in_the_declared_units_and_leads_to_it(api: Api, hall: Hall) -> None:
    page = await load(api, hall.path)
    typed = {"parameters.exposure": "35 ms", "parameters.binning": "4", "parameters.angles": "0\n90.5"}
    form = hall.form(page, _do="start", **typed, **{"phase.0": hall.flats_id, "phase.2": hall.scan_id})
    assert form["_name"].startswith("Fast tomography, 20")
    form["_name"] = "Fast tomography, 2024-02-29 23:59"  # a page that waited starts one run, however often it is sent
    answer = await send(api, hall.path, form)
    run = await run_of(api, answer)
    assert run["override_parameters"] == {"exposure": 0.035, "binning": 4, "angles": [0, 90.5]}
    assert run["name"] == form["_name"]
    assert [phase["name"] for phase in run["phases"]] == ["Flats", "Scan"]
    assert run["live_conduct_id"] is not None
    again = await send(api, hall.path, form, X_Fragment="1")
    assert again.json()["said"] == "Started"
    assert run["run_id"] in again.json()["to"]
    chosen = await load(api, hall.path, position=answer.headers["location"].rpartition("position=")[2])
    assert [typed_into(chosen, f"field-phase-{number}") for number in (0, 1)] == ["Flats", "Scan"]


@pytest.mark.usefixtures("permit_work")
async def test_a_dry_run_says_what_would_be_recorded_and_does_nothing(api: Api, hall: Hall) -> None:
    before = (await api.get("/runs", plan_id=hall.plan_id)).json()["items"]
    form = hall.form(await load(api, hall.path), _do="rehearse", **{"parameters.exposure": "50 ms"})
    answer = await send(api, hall.path, form)
    assert answer.status_code == 200
    (said,) = (one.text for one in PageSource.of(answer.text).elements if one.get("class") == "rehearsed")
    assert "Exposure0.05" in said
    assert said.startswith("✓ It would be accepted, and record launch requested, launch begun, run started, ")
    assert (await api.get("/runs", plan_id=hall.plan_id)).json()["items"] == before


@pytest.mark.usefixtures("permit_work")
async def test_a_form_of_another_session_is_refused(api: Api, hall: Hall) -> None:
    form = {**hall.form(await load(api, hall.path), _do="start"), "form_token": "0" * 64}
    for path in (hall.path, f"{hall.path}/check"):
        answer = await send(api, path, form)
        assert (answer.status_code, "load the page again" in answer.text) == (403, True)


@pytest.mark.usefixtures("permit_work")
async def test_without_the_permission_to_start_the_page_says_which_is_missing(shift: Shift, hall: Hall) -> None:
    visitor = (await employ(shift.boss, "Visitor", sets=("queries",))).api
    page = await load(visitor, hall.path)
    assert "disabled" in start_button(page).attributes
    assert links_of(page)["Who holds StartRun"] == "/console/people?command=StartRun"
    refused = await send(visitor, hall.path, hall.form(page, _do="start"))
    assert (refused.status_code, "StartRun" in refused.text) == (409, True)


@pytest.mark.usefixtures("permit_work")
async def test_a_recipe_by_itself_becomes_a_procedure_that_is_conducted(api: Api, hall: Hall) -> None:
    path = f"/console/start/recipes/{hall.scan_id}"
    page = await load(api, path)
    assert text_of(page, "field-parameters-exposure-about") == "s · 0.001 to 2 ✗ " + (
        "Nothing is bound to exposure, which the steps refer to; add it to the bindings."
    )
    form = {"form_token": page.value("form_token"), "_key": page.value("_key"), "_do": "start"}
    form |= {"parameters.exposure": "20 ms", "target_asset_ids": hall.line.rotary_id, "name": "By hand"}
    answer = await send(api, path, form)
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"].partition("?")[0]
    shown = (await api.get(address.removeprefix("/console"))).json()
    assert (shown["name"], shown["recipe_id"], shown["target_asset_ids"]) == ("By hand", hall.scan_id, [hall.line.rotary_id])
    assert shown["last_conduct_id"] is not None
    last = await load(api, path, position=answer.headers["location"].rpartition("position=")[2])
    assert text_of(last, "field-parameters-exposure-about") == "s · 0.001 to 2 · last time 0.02"


@pytest.mark.usefixtures("permit_work")
async def test_a_recipe_that_is_refused_leaves_nothing(api: Api, hall: Hall) -> None:
    path = f"/console/start/recipes/{hall.scan_id}"
    page = await load(api, path)
    await hall.line.observe("NotPermitted")
    form = {"form_token": page.value("form_token"), "_key": page.value("_key"), "_do": "start"}
    form |= {"parameters.exposure": "20 ms", "target_asset_ids": hall.line.rotary_id, "name": "Refused scan"}
    answer = await send(api, path, form, X_Fragment="1")
    assert answer.status_code == 409, answer.text
    assert "NotPermitted" in answer.text
    end = await api.runtime.store.last_position()
    assert (await api.get("/procedures", name="Refused scan", min_position=end)).json()["items"] == []


async def submit(shift: Shift, guest: Api, path: str, form: dict[str, str]) -> httpx.Response:
    cookies = "; ".join(f"{name}={value}" for name, value in guest.client.cookies.items())
    return await send(guest, path, form, cookie=cookies)


LAUNCHING = ("Launch", "StartRun", "RegisterProcedureFromRecipe", "ConductRun", "ConductProcedure", *ENDING)


@pytest.mark.parametrize("asking", ["Launch", "StartRun", "ConductRun"])
async def test_where_anything_of_a_launch_takes_an_approval_the_whole_is_proposed(shift: Shift, asking: str) -> None:
    await shift.hall.line.observe("Permitted")
    guest = await shift.employ(tuple(name for name in LAUNCHING if name != asking), asking)
    page = await load(guest, shift.hall.path, position=shift.hall.position)
    assert text_of(page, "launch-start") == "Propose"
    assert "the launch is proposed as a whole" in text_of(page, "may-start")
    form = {**shift.hall.form(page, name=f"Proposed run {asking}"), "_do": "start"}
    answer = await submit(shift, guest, shift.hall.path, form)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith("/console/proposals/")
    assert (await shift.boss.get("/runs", name=f"Proposed run {asking}")).json()["items"] == []
    id = answer.headers["location"].removeprefix("/console/proposals/")[:36]
    assert (await shift.boss.get(f"/proposals/{id}")).json()["command_name"] == "Launch"


async def test_what_a_launch_stands_for_is_missing_before_it_is_given(shift: Shift) -> None:
    await shift.hall.line.observe("Permitted")
    guest = await shift.employ(tuple(name for name in LAUNCHING if name != "ConductProcedure"), "Launch")
    page = await load(guest, shift.hall.path, position=shift.hall.position)
    assert links_of(page)["Who holds ConductProcedure"] == "/console/people?command=ConductProcedure"
    assert "disabled" in start_button(page).attributes


async def test_settings_that_take_an_approval_are_proposed(shift: Shift) -> None:
    guest = await shift.employ(("GetAsset", "GetAssetIntegrationView"), "UpdateAssetSettings")
    asset = shift.hall.line.rotary_id
    family = {"name": "Stages", "affordances": ["Rotatable"], "settings_schema": PARAMETERS}
    added = {"family_id": await shift.boss.create("/families", family)}
    await shift.boss.execute(f"/assets/{asset}/add-family", added)
    path = f"/console/assets/{asset}/settings"
    page = await load(guest, path)
    form = {"form_token": page.value("form_token"), "_key": page.value("_key"), "exposure": "0.2"}
    answer = await submit(shift, guest, path, form)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith("/console/proposals/")


async def test_where_a_registration_takes_an_approval_the_launch_of_a_recipe_is_proposed(shift: Shift) -> None:
    guest = await shift.employ(("Launch", "ConductProcedure", *ENDING), "RegisterProcedureFromRecipe")
    path = f"/console/start/recipes/{shift.hall.scan_id}"
    page = await load(guest, path)
    assert text_of(page, "launch-start") == "Propose"
    form = {"form_token": page.value("form_token"), "_key": page.value("_key"), "name": "Proposed scan", "_do": "start"}
    form |= {"target_asset_ids": shift.hall.line.unit_id, "parameters.exposure": "0.1"}
    answer = await submit(shift, guest, path, form)
    assert answer.status_code == 303, answer.text
    id = answer.headers["location"].removeprefix("/console/proposals/")[:36]
    assert (await shift.boss.get(f"/proposals/{id}")).json()["command_name"] == "Launch"


@pytest.mark.usefixtures("permit_work")
async def test_a_recipe_that_would_overwrite_registered_data_is_a_caution(api: Api, hall: Hall) -> None:
    dataset = await register_dataset(api, name="Last night")
    await register_copy(api, dataset)
    uri = (await api.get(f"/datasets/{dataset}")).json()["uri"]
    recipe = (await api.get(f"/recipes/{hall.scan_id}")).json()
    write = {"kind": "compute", "command": ["recon"], "output_uri": uri}
    fields = {"name": "Reconstruct", "capability_id": recipe["capability_id"], "steps": [write]}
    made = await api.post("/recipes", fields)
    page = await load(api, hall.path, position=made.headers["X-Baton-Position"])
    form = hall.form(page, **{"phase.0": made.json()["recipe_id"], "_do": "check"})
    checked = await send(api, hall.path, form)
    assert f"A recipe writes to <code>{uri}</code>, where a registered copy is." in checked.text
    safe = await send(api, hall.path, hall.form(page, _do="check"))
    assert "where a registered copy is" not in safe.text
