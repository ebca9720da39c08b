"""Equipment: the tree with both axes of each asset, the page of one asset with its verbs, and its settings as a form."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from baton.console.pages import equipment
from baton.console.pages.asset_settings import difference
from baton.console.signal_rows import signal_addresses, signal_row, value_text
from baton.console.tree_picture import MOST_BOXES, TreeAsset, tree_picture
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.samples import DIALECT, placement_in
from tests.support.console.page_source import PageSource
from tests.support.console.page_text import text_of
from tests.support.service import Api, running_api
from tests.support.tables import for_each

SECONDS = {"type": "number", "minimum": 0, "maximum": 10, "unit": {"system": "udunits", "code": "s"}}
SCHEMA = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {"settle_time": SECONDS, "homed": {"type": "boolean"}, "serial_number": {"type": "string"}},
    "additionalProperties": False,
    "unevaluatedProperties": False,
}
STORED = {"settle_time": 0.2, "serial_number": "A-42"}


@dataclass(frozen=True)
class House:
    """A service with a beamline whose stage is degraded, mounted, warned about, calibrated and in use by a run."""

    api: Api
    line: Beamline
    family_id: str
    position: int

    async def page(self, path: str, **query: Any) -> str:
        answer = await self.api.get(f"/console{path}", position=self.position, **query)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def send_settings(self, **typed: str) -> httpx.Response:
        """Fill in the settings form of the stage and send it; what is not given stays as the page shows it."""
        path = f"/console/assets/{self.line.rotary_id}/settings"
        source = PageSource.of((await self.api.get(path)).text)
        shown = {name: source.value(name) for name in ("form_token", "_key", "settle_time", "serial_number")}
        return await self.api.client.post(path, data={**shown, "homed._flag": "1", **typed}, headers=self.api.headers)

    async def versions(self) -> int:
        """Return how many events are on the stage's record."""
        return len((await self.api.get(f"/assets/{self.line.rotary_id}/history", limit=100)).json()["items"])

    async def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api.get(f"/assets/{self.line.rotary_id}")).json()["settings"]
        return found


@pytest.fixture(scope="module")
async def house(module_database: str) -> AsyncIterator[House]:
    async with running_api(module_database) as api:
        line = await beamline(api)
        stage = f"/assets/{line.rotary_id}"
        family = {"name": "Precise stages", "affordances": ["Rotatable"], "settings_schema": SCHEMA}
        family_id = await api.create("/families", family)
        await api.execute(f"{stage}/add-family", {"family_id": family_id})
        await api.request("PATCH", f"{stage}/settings", json={"settings_patch": STORED})
        await api.execute(f"{stage}/add-alternate-identifier", {"kind": "EPICS_PV", "value": "lum:rot"})
        centre = {"target_id": line.rotary_id, "quantity": "rotation_center"}
        calibration = await api.create("/calibrations", {**centre, "operating_point": {"energy": 25, "optics_config": "5x"}})
        source = {"kind": "Asserted", "asserted_by": await api.create("/actors", {"name": "Mira Okafor"})}
        measured = {"value": {"center": 1024.5}, "status": "Verified", "source": source}
        await api.create(f"/calibrations/{calibration}/revisions", measured)
        warning = {"category": "Wear", "severity": "Warning", "text": "It creaks.", "workaround": "Listen.", "tags": []}
        await api.create("/cautions", {"target": {"kind": "Asset", "id": line.rotary_id}, **warning})
        await line.start_run(subject_id=line.subject_id)
        frame = await api.create("/frames", {"name": "Beam centreline"})
        slot = {"slot_code": "B-SAMPLE-01", "placement": placement_in(frame, z=31400.0, tol_x=0.05)}
        await api.execute(f"/mounts/{await api.create('/mounts', slot)}/install", {"asset_id": line.rotary_id})
        position = await api.execute(f"{stage}/degrade", {"reason": "runout above 1 micron"})
        yield House(api, line, family_id, position)


def rows_of(html: str) -> dict[str, str]:
    """Return the text of each row of the tables of a page, by its first cell."""
    source = PageSource.of(html)
    firsts = [one.text for one in source.all("th") if one.get("scope") == "row"]
    rows = [one.text for one in source.all("tr")]
    return {first: next(row for row in rows if row.startswith(first)) for first in firsts}


async def test_the_tree_shows_both_axes_cautions_work_and_places(house: House) -> None:
    html = await house.page("/equipment")
    rows = rows_of(html)
    stage = next(text for name, text in rows.items() if "Rotary stage" in name)
    assert "✓ Active ▲ Degraded not known Device ▲ 1 about Rotary stage run" in stage
    assert "● Running" in stage
    root = next(text for name, text in rows.items() if name == "Tomography")
    assert "Commissioned" in root
    assert "Imaging hutch" in root
    assert "Needs a look 1" in " ".join(PageSource.of(html).all("section")[0].text.split())
    assert html.count('<svg class="tree"') == 1


async def test_a_part_of_the_tree_has_an_address_and_leads_back(house: House) -> None:
    html = await house.page("/equipment", at=house.line.rotary_id)
    assert list(rows_of(html)) == ["Rotary stage"]
    assert f'href="/console/equipment?at={house.line.unit_id}"' in html


async def test_a_large_tree_is_shown_to_its_next_level(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equipment, "MOST_ROWS", 2)
    html = await house.page("/equipment", at=house.line.unit_id)
    assert len(rows_of(html)) == 3
    assert "Only what is right below is shown" in html


async def test_an_asset_shows_what_is_around_it(house: House) -> None:
    text = text_of(await house.page(f"/assets/{house.line.rotary_id}"))
    for shown in (
        *("Rotary stage ✓ Active ▲ Degraded", "Settle time 0.2 s", "Not set: homed.", "Precise stages rotatable"),
        *("B-SAMPLE-01", "Beam centreline by its mounting face", "x 0 mm ± 0.05 mm", "z 31 400 mm exact"),
        *("Warning Wear It creaks. What to do: Listen.", "Rotation center ✓ Verified at energy 25 keV", "1024.5 pixel"),
        *("Used by run", "EPICS PV lum:rot"),
    ):
        assert shown in text, shown


async def test_a_verb_that_cannot_be_given_says_why(house: House) -> None:
    html = await house.page(f"/assets/{house.line.rotary_id}")
    source = PageSource.of(html)
    links = {one.text: one.get("href") for one in source.all("a") if "button" in one.get("class")}
    assert links["Enter maintenance"].startswith("/console/do/enter_asset_maintenance?asset_id=")
    assert links["Write a caution"].startswith("/console/do/register_caution?target.kind=Asset&target.id=")
    assert links["Settings"].startswith(f"/console/assets/{house.line.rotary_id}/settings")
    closed = [one.text for one in source.all("li")]
    assert "Degrade The asset is Degraded already." in closed
    assert "Activate The asset is Active; this is possible only from Commissioned." in closed


async def test_a_caution_begins_with_what_it_is_about(house: House) -> None:
    page = await house.page("/do/register_caution", **{"target.kind": "Asset", "target.id": house.line.rotary_id})
    assert PageSource.of(page).value("target.id") == house.line.rotary_id or house.line.rotary_id in page


async def test_one_setting_is_changed_in_another_unit_and_the_rest_stays(house: House) -> None:
    before = await house.versions()
    answer = await house.send_settings(settle_time="350 ms")
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(f"/console/assets/{house.line.rotary_id}?")
    assert await house.settings() == {"settle_time": pytest.approx(0.35), "serial_number": "A-42"}
    assert await house.versions() == before + 1
    assert "Settings changed: Settle time" in (await house.api.client.get(answer.headers["location"])).text


async def test_what_cannot_be_set_is_said_beside_its_field(house: House) -> None:
    before = await house.settings()
    for typed, status, sentence in (
        ("11 s", 400, "settle_time must be at most 10 s"),
        ("11 mm", 422, "mm cannot be converted to s; give a number in s, or with its unit"),
    ):
        answer = await house.send_settings(settle_time=typed)
        assert answer.status_code == status, answer.text
        (error,) = [one.text for one in PageSource.of(answer.text).all("span") if one.get("class") == "error"]
        assert sentence in error
        assert PageSource.of(answer.text).value("settle_time") == typed
    assert await house.settings() == before


async def test_nothing_is_sent_where_nothing_was_changed_or_only_tried(house: House) -> None:
    before = await house.settings()
    assert "Nothing was changed." in (await house.send_settings()).text
    tried = await house.send_settings(serial_number="B-1", _check="1")
    assert (tried.status_code, "would be accepted and change Serial number" in tried.text) == (200, True)
    assert await house.settings() == before


async def test_a_setting_is_unset_by_emptying_it_and_a_flag_by_its_box(house: House) -> None:
    assert (await house.send_settings(serial_number="", homed="on")).status_code == 303
    found = await house.settings()
    assert (found.get("homed"), "serial_number" in found) == (True, False)
    assert (await house.send_settings(serial_number="A-42")).status_code == 303
    assert (await house.settings())["homed"] is False


async def test_a_number_whose_unit_has_changed_is_asked_for_again(house: House) -> None:
    schema = {
        **SCHEMA,
        "properties": {**SCHEMA["properties"], "settle_time": {**SECONDS, "unit": {"system": "udunits", "code": "ms"}}},
    }
    version = {"version_tag": "2", "affordances": ["Rotatable"], "settings_schema": schema}
    await house.api.execute(f"/families/{house.family_id}/version", version)
    answer = await house.send_settings(serial_number="C-3")
    source = PageSource.of(answer.text)
    assert (answer.status_code, source.value("_restated")) == (400, "settle_time")
    assert "The unit of settle_time changed" in answer.text
    again = await house.send_settings(serial_number="C-3", _restated="settle_time")
    assert again.status_code == 303, again.text
    assert (await house.settings())["serial_number"] == "C-3"


async def test_a_form_of_another_page_changes_no_setting(house: House) -> None:
    answer = await house.send_settings(form_token="0" * 64, serial_number="evil")
    assert answer.status_code == 403
    assert (await house.settings()).get("serial_number") != "evil"


async def test_signals_are_read_only_on_request_and_a_refusal_is_shown(house: House) -> None:
    loaded = await house.page(f"/assets/{house.line.rotary_id}")
    assert "A worker reads 1 signal while this page is open" in loaded
    waited = await house.page(f"/assets/{house.line.rotary_id}", read="1")
    assert "No worker read the signals in time" in waited


def test_signals_of_an_asset_are_those_it_goes_by_those_with_limits_and_those_asked_for() -> None:
    names = [{"kind": "EPICS_PV", "value": value} for value in ("bl:rot", "bl:cam:")]
    view = {"alternate_identifiers": [*names, {"kind": "SerialNumber", "value": "7"}], "signal_limits": {"bl:rot.VELO": {}}}
    assert signal_addresses(view, "bl:cam:Gain, bl:rot") == ("bl:cam:Gain", "bl:rot", "bl:rot.VELO")


NOTHING_ELSE = dict.fromkeys(("quality_detail", "time", "limits", "control_limits", "route", "error"))
READING = {"address": "x", "value": 2.5, "kind": "Scalar", "unit": "mm", "quality": "Good", **NOTHING_ELSE}


@for_each(
    ("change", "word", "look"),
    [
        ({}, "Good", "good"),
        ({"quality": "Uncertain", "quality_detail": "HIGH alarm"}, "Uncertain", "look"),
        ({"quality": "Bad"}, "Bad", "stop"),
        ({"limits": {"low": 0.0, "high": 2.0}}, "Outside its limits", "look"),
        ({"control_limits": {"low": 0.0, "high": 5.0}}, "Good", "good"),
        ({"quality": None, "value": None, "error": {"code": "X", "detail": "x is not connected."}}, "Not read", "stop"),
    ],
)
def test_a_signal_is_marked_by_its_quality_and_its_limits(change: dict[str, Any], word: str, look: str) -> None:
    row = signal_row({**READING, **change})
    assert (row.word, row.look) == (word, look)


@for_each(
    ("value", "text"),
    [
        (2, "2"),
        (True, "yes"),
        ([1.5, 2], "1.5, 2"),
        ({"kind": "Image", "shape": [30, 40]}, "Image 30 \N{MULTIPLICATION SIGN} 40"),
    ],
)
def test_a_value_stands_in_a_line(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_of_an_object_only_what_differs_is_sent() -> None:
    assert difference({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 5}}) == {"b": {"c": 5, "d": None}}


def tree_of(*groups: int) -> list[TreeAsset]:
    """Return a root with groups of so many assets."""
    nominal = {"lifecycle": "Active", "condition": "Nominal", "href": "/console/assets/x"}
    root = TreeAsset("root", None, "A <root> & more", **nominal)
    tops = [TreeAsset(f"g{g}", "root", f"Group {g}", **nominal) for g in range(len(groups))]
    leaves = [TreeAsset(f"g{g}-{i}", f"g{g}", f"Leaf {i}", **nominal) for g, size in enumerate(groups) for i in range(size)]
    return [root, *tops, *leaves]


@for_each("groups", [(), (1,), (3, 5), (7,) * 7, (200,), (30, 30, 30), (0,) * 90])
def test_a_picture_draws_each_asset_once_or_counts_it(groups: tuple[int, ...]) -> None:
    assets = tree_of(*groups)
    picture = tree_picture(assets, "A tree", "/console/equipment?at=root")
    drawn = ElementTree.fromstring(str(picture.svg)).findall(".//g/a/title")
    assert len(drawn) == min(len(assets), len(assets) - picture.left_out) <= MOST_BOXES
    places = [one.get("transform") for one in ElementTree.fromstring(str(picture.svg)).findall("g")]
    assert len(places) == len(set(places)), "two boxes stand at one place"
    assert picture.left_out == 0 or f"{picture.left_out} more" in picture.svg or " below" in picture.svg


def test_the_graver_axis_gives_a_box_its_look() -> None:
    common = {"id": "a", "parent_id": None, "name": "Stage", "href": "/"}
    looks = [TreeAsset(**common, lifecycle=lifecycle, condition=condition).look for lifecycle, condition in AXES]
    assert looks == ["good", "plain", "look", "stop", "stop"]


AXES = [
    ("Active", "Nominal"),
    ("Commissioned", "Nominal"),
    ("Maintenance", "Nominal"),
    ("Active", "Faulted"),
    ("Decommissioned", "Degraded"),
]
