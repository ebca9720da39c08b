"""Safety: forms on their way with what they cover and who may judge them, forms in force, hutches and supplies."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.support.console.page_source import PageSource
from tests.support.console.staff import ENFORCED, Person, employ
from tests.support.service import running_api

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Hall:
    """An author, an officer who reviews, and somebody who may only look; and what they find."""

    author: Person
    officer: Person
    guest: Person
    bridge: Person
    template_id: str
    asset_id: str

    async def register(self, title: str, **fields: Any) -> str:
        """Register a form about the asset."""
        bound = [{"kind": "Asset", "id": self.asset_id}, {"kind": "External", "scheme": "proposal", "value": "P-117"}]
        form = {"template_id": self.template_id, "facility_code": "facility", "title": title, "bindings": bound, **fields}
        return await self.author.api.create("/clearances", form)

    async def review(self, clearance_id: str, *decisions: str) -> int:
        """Hand a form in and have it judged; return where that is on the log."""
        path, first = f"/clearances/{clearance_id}", {"first_reviewer_role": "Officer"}
        await self.author.api.execute(f"{path}/submit")
        position = await self.author.api.execute(f"{path}/start-review", first)
        for index, decision in enumerate(decisions):
            step = {"step_index": index, "role": "SafetyOfficer", "decision": decision, "notes": f"Note {index}"}
            position = await self.officer.api.execute(f"{path}/append-review-step", step)
        return position

    async def enforce(self, clearance_id: str) -> int:
        """Take a form through its review into force; return where that is on the log."""
        await self.review(clearance_id, "Approved")
        await self.officer.api.execute(f"/clearances/{clearance_id}/approve", {})
        return await self.author.api.execute(f"/clearances/{clearance_id}/activate")


@pytest.fixture(scope="module")
async def hall(module_database: str) -> AsyncIterator[Hall]:
    async with running_api(module_database, **ENFORCED, clearance_four_eyes=True) as api:
        author = await employ(api, "Ines Author", sets=("all",))
        officer = await employ(api, "Rana Officer", sets=("safety.commands", "queries"))
        guest = await employ(api, "Gil Guest", sets=("queries",))
        bridge = await employ(api, "Bridge", sets=("all",), kind="service_account")
        form = {"code": "ESAF-9", "title": "Safety assessment", "facility_code": "facility"}
        template_id = await author.api.create("/clearance-templates", form)
        await author.api.execute(f"/clearance-templates/{template_id}/activate")
        asset = {"name": "Furnace station", "tier": "Unit", "facility_code": "facility"}
        asset_id = await author.api.create("/assets", asset)
        yield Hall(author, officer, guest, bridge, template_id, asset_id)


async def test_a_form_in_review_says_what_it_covers_who_judged_it_and_who_may_not(hall: Hall) -> None:
    hazard = {
        "target": {"kind": "Asset", "id": hall.asset_id},
        "classifications": [
            {"kind": "NFPA704", "health": 2, "flammability": 3, "instability": 1},
            {"kind": "GHS", "code": "GHS02", "statement_codes": ["H225"]},
        ],
        "mitigations": ["fume hood"],
        "notes": "Below 45 degrees.",
    }
    clearance_id = await hall.register("Lithium cell", declarations=[hazard], risk_band="Yellow")
    position = await hall.review(clearance_id, "RequestedChanges", "Approved")
    page = await hall.officer.see("/console/safety", after=position)
    for text in (
        "Lithium cell",
        "Furnace station",
        "proposal P-117",
        "risk band yellow",
        "NFPA 704 health 2, flammability 3, instability 1; GHS02 (H225)",
        "fume hood",
        "Below 45 degrees.",
        "Requested changes",
        "Note 0",
        "Rana Officer",
        "<b>Ines Author</b>, who may neither review nor approve it",
    ):
        assert text in page, text
    forms = [link.get("href") for link in PageSource.of(page).all("a") if "append_clearance_review_step" in link.get("href")]
    assert forms == [f"/console/do/append_clearance_review_step?clearance_id={clearance_id}&step_index=2"]
    whole = await hall.officer.see(f"/console/clearances/{clearance_id}")
    assert "Lithium cell" in whole
    assert "who may neither review nor approve it" in whole


async def test_verbs_that_cannot_be_given_say_why(hall: Hall) -> None:
    clearance_id = await hall.register("Handed in")
    await hall.author.api.execute(f"/clearances/{clearance_id}/submit")
    page = await hall.guest.see(f"/console/clearances/{clearance_id}")
    assert "<b>Start review</b> <span>You may not: it takes the permission StartClearanceReview. <a" in page
    assert "<b>Approve</b> <span>The clearance is Submitted; this is possible only from Under review.</span>" in page
    assert "/console/do/start_clearance_review" not in page
    assert "/console/do/start_clearance_review" in await hall.author.see(f"/console/clearances/{clearance_id}")


async def test_forms_in_force_stand_in_the_order_in_which_they_end(hall: Hall) -> None:
    ends = {"Next week": NOW + timedelta(days=7), "Tonight": NOW + timedelta(hours=5), "Run out": NOW - timedelta(hours=1)}
    for title, end in ends.items():
        form_id = await hall.register(title, valid_until=end.isoformat())
        await hall.enforce(form_id)
    position = await hall.enforce(await hall.register("For ever"))
    page = await hall.guest.see("/console/safety", after=position)
    force = page[page.index('id="region-force"') : page.index('id="region-drafts"')]
    shown = re.findall(r">(Next week|Tonight|Run out|For ever)</a></b>\s*<span class=\"chip (\w+)\"", force)
    assert shown == [("Run out", "stop"), ("Tonight", "look"), ("Next week", "good"), ("For ever", "good")]
    assert "Over, covers nothing" in force


async def test_hutches_show_their_permit_and_how_old_it_is(hall: Hall) -> None:
    hutch = await hall.author.api.create("/enclosures", {"name": "Hutch B", "facility_code": "facility"})
    reading = {"new_status": "Permitted", "monitor_ref": {"source_kind": "PV", "source_id": "PSS:B"}, "reason": "searched"}
    position = await hall.bridge.api.execute(f"/enclosures/{hutch}/observe-status", reading)
    page = await hall.author.see("/console/safety", after=position)
    tile = page[page.index("Hutch B") : page.index('id="region-supplies"')]
    assert re.search(r"✓</span> Permitted", tile)
    assert re.search(r"observed <time [^>]*data-age>", tile)
    assert "searched" in tile
    assert "no monitor of this service watches it" in tile
    assert "Only a service account reports this: a monitor that reads it from the plant." in tile
    assert "/console/do/observe_enclosure_status" not in page
    assert f"/console/do/decommission_enclosure?enclosure_id={hutch}" in tile


async def test_supplies_show_their_status_reason_and_verbs(hall: Hall) -> None:
    beam = {"kind": "photon_beam", "name": "Ring", "facility_code": "facility"}
    supply = await hall.author.api.create("/supplies", beam)
    reading = {"new_status": "Degraded", "monitor_ref": {"source_kind": "PV", "source_id": "SR:CURRENT"}, "reason": "Low"}
    await hall.bridge.api.execute(f"/supplies/{supply}/observe-status", reading)
    lost = {"reason": "Dumped at three"}
    position = await hall.author.api.execute(f"/supplies/{supply}/mark-unavailable", lost)
    page = await hall.author.see("/console/safety", after=position)
    tile = page[page.index('id="region-supplies"') : page.index('id="region-review"')]
    assert re.search(r"✗</span> Unavailable", tile)
    assert "Dumped at three" in tile
    assert re.search(r"observed <time [^>]*data-age>", tile)
    assert f"/console/do/mark_supply_recovering?supply_id={supply}" in tile
    assert "<b>Restore</b> <span>The supply is Unavailable; this is possible only from Degraded, Recovering.</span>" in tile


async def test_a_form_that_does_not_exist_is_not_found(hall: Hall) -> None:
    assert (await hall.author.api.get(f"/console/clearances/{uuid4()}")).status_code == 404
