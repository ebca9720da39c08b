"""Run: what a person sees of a run that is on or held, its readings in any unit, its parameters, data and logbook."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID, uuid4

import pytest

from baton.application.caller import Caller
from baton.domain.agent.debrief import RUN_DEBRIEFER_ID
from baton.domain.conduct.run_conduct import RecordRunConductEnd
from baton.infrastructure.wall_clock import new_id
from tests.support.api.data_products import register_copy, register_dataset
from tests.support.api.example_reads import payloads
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.console.page_source import PageSource, load
from tests.support.console.page_text import text_of
from tests.support.service import Api, running_api
from tests.support.workflows.step_json import capture, criterion

BEGAN = datetime(2026, 3, 4, 9, tzinfo=UTC)
STEP = {"kind": "setpoint", "address": "bl7:energy", "value": 25}


@dataclass(frozen=True)
class MeasuredRun:
    """A run with readings, data and notes, and who may see it."""

    line: Beamline
    run_id: str
    position: int
    stranger: Api

    async def page(self, run_id: str = "", **query: Any) -> str:
        path = f"/console/runs/{run_id or self.run_id}"
        answer = await self.line.api.get(path, position=self.position, **query)
        assert answer.status_code == 200, answer.text
        return answer.text


def readings(channel: str, unit: str | None, *values: float) -> list[dict[str, Any]]:
    return [
        {
            "event_id": str(new_id()),
            "channel_name": channel,
            "value": value,
            "units": unit,
            "sampled_at": (BEGAN + timedelta(seconds=10 * number)).isoformat(),
            "sampling_procedure": "monitor",
        }
        for number, value in enumerate(values)
    ]


@pytest.fixture(scope="module")
async def measured_run(module_database: str) -> AsyncIterator[MeasuredRun]:
    settings = {"authorization_mode": "policy", "bootstrap_principal_id": str(uuid4())}
    async with running_api(module_database) as api, running_api(module_database, projecting=False, **settings) as guarded:
        line = await beamline(api)
        run_id = await line.start_run(subject_id=line.subject_id, override_parameters={"exposure": 0.2})
        entries = [*readings("slit gap", "mm", 0.5, 0.6, 0.7), *readings("counts", None, 10.0, 30.0)]
        await api.execute(f"/runs/{run_id}/observations", {"entries": entries})
        await api.execute(f"/runs/{run_id}/hold", {"reason": "The bar slipped."})
        await api.execute(f"/runs/{run_id}/resume")
        changed = {"parameters_patch": {"projections": 900}, "reason": "The beam goes at four."}
        await api.execute(f"/runs/{run_id}/adjust", changed)
        note = {"event_id": str(new_id()), "text": "It was a little cold."}
        await api.execute(f"/runs/{run_id}/logbook", {"entries": [note]})
        dataset_id = await register_dataset(api, producing_run_id=run_id, name="Raw projections")
        await register_copy(api, dataset_id)
        position = await api.execute(f"/runs/{run_id}/hold", {"reason": "The shutter is closed."})
        yield MeasuredRun(line, run_id, position, guarded.acting_as(uuid4()))


async def test_a_held_run_says_why_and_offers_what_it_waits_for(measured_run: MeasuredRun) -> None:
    html = await measured_run.page()
    text = text_of(html)
    assert "▲ Held plan Spring block sample Alloy bar 7" in text
    assert ": The shutter is closed." in text.split("plan Spring block")[0], "the reason stands first"
    assert "The bar slipped. held" in text, "the holds before are listed too"
    links = {one.text: one.get("href") for one in PageSource.of(html).all("a")}
    assert links["Resume"].startswith(f"/console/do/resume_run?run_id={measured_run.run_id}")
    assert links["Run again with changes…"] == f"/console/start/plans/{measured_run.line.plan_id}?from={measured_run.run_id}"
    assert dict(parse_qsl(urlsplit(links["Write a note…"]).query))["entries._count"] == "1"
    assert links["History"] == f"/console/runs/{measured_run.run_id}/history"


async def test_parameters_stand_with_their_units_and_say_where_they_come_from(measured_run: MeasuredRun) -> None:
    text = text_of(await measured_run.page())
    assert "energy 25 as the plan says" in text
    assert "exposure 0.2 s chosen for this run; the plan says 0.1 s" in text
    assert "projections 900 ▲ adjusted" in text
    assert "The beam goes at four." in text


async def test_readings_are_plotted_and_shown_in_another_unit_on_request(measured_run: MeasuredRun) -> None:
    html = await measured_run.page()
    labels = [one.get("aria-label") for one in PageSource.of(html).all("svg")]
    assert labels == [
        "counts over time, 2 readings; the latest is 30",
        "slit gap over time, 3 readings; the latest is 0.7 mm",
    ]
    offered = [one.get("value") for one in PageSource.of(html).all("option")]
    assert offered[0] == "mm"
    assert {"m", "um", "nm"} <= set(offered)
    shown = await measured_run.page(**{"unit.slit gap": "um"})
    assert "slit gap 700 um" in text_of(shown)
    wrong = await measured_run.page(**{"unit.slit gap": "keV"})
    assert "What is measured in mm cannot be shown in keV; choose another unit." in text_of(wrong)
    assert "slit gap 0.7 mm" in text_of(wrong)
    alone = await measured_run.page(channel="counts")
    assert [one.get("aria-label") for one in PageSource.of(alone).all("svg")] == labels[:1]
    assert "This run has no channel nothing." in text_of(await measured_run.page(channel="nothing"))


async def test_data_and_notes_stand_on_the_page(measured_run: MeasuredRun) -> None:
    html = await measured_run.page()
    text = text_of(html)
    assert "Raw projections" in text
    assert "It was a little cold." in text
    (image,) = PageSource.of(html).all("img")
    assert (image.get("alt"), image.get("loading")) == ("Picture of the dataset Raw projections", "lazy")
    picture = await measured_run.line.api.get(image.get("src"))
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/svg+xml"), "its file is not here"


async def test_the_phases_of_a_conducted_run_lead_to_their_pages(measured_run: MeasuredRun) -> None:
    api = measured_run.line.api
    run_id = await measured_run.line.start_run(name="Load step 2")
    names = ("Darks", "Projections")
    phases = [await api.create("/procedures", {"name": name, "kind": "scan", "parent_run_id": run_id}) for name in names]
    conduct = {"command": "conduct_procedure", "steps": [STEP]}
    asked = {"wait": 0, "phases": [{"procedure_id": id, "conduct": conduct} for id in phases]}
    assert (await api.post(f"/runs/{run_id}/conduct", asked)).status_code == 202
    html = await measured_run.page(run_id)
    assert "Darks ○ ahead Projections ○ ahead" in text_of(html)
    links = {one.text: one.get("href") for one in PageSource.of(html).all("a")}
    assert [links[name] for name in names] == [f"/console/procedures/{id}" for id in phases]
    assert "how long it takes is not known" in text_of(html)


async def lose_conduct(api: Api, run_id: str) -> None:
    """Record that the engine does not know of the live conduct of a run any more."""
    conduct_id = UUID((await api.get(f"/runs/{run_id}/conduct")).json()["conduct_id"])
    lost = RecordRunConductEnd.for_lost(conduct_id)
    await api.runtime.service.execute(lost, Caller.system(uuid4()), target_id=UUID(run_id))


async def test_a_lost_run_is_conducted_again_by_the_phases_that_were_left_as_they_were_arranged(
    measured_run: MeasuredRun,
) -> None:
    api, run_id = measured_run.line.api, await measured_run.line.start_run(name="Load step 4")
    align, scan, darks, unlisted = [
        await api.create("/procedures", {"name": name, "kind": "scan", "parent_run_id": run_id})
        for name in ("Align", "Scan", "Darks", "Repeat")
    ]
    loop = {"command": "conduct_until_converged", "convergence_capture_name": "offset", "criterion": criterion(0, 0.5)}
    steps = {"steps": [capture("bl7:energy", "offset")]}
    held = {"command": "conduct_or_hold_procedure", "steps": [STEP], "on_unknown_outcome": "abort"}
    listed = [(darks, held), (align, {**loop, **steps}), (scan, {"command": "conduct_procedure", "steps": [STEP]})]
    asked = {"wait": 0, "phases": [{"procedure_id": id, "conduct": conduct} for id, conduct in listed]}
    accepted = await api.post(f"/runs/{run_id}/conduct", asked)
    assert accepted.status_code == 202, accepted.text
    path = f"/console/do/conduct_run?run_id={run_id}"
    assert "phases.0.procedure_id" not in (await load(api, path)).filled_in(), "a live conduct leaves no phases"
    await api.execute(f"/procedures/{scan}/start")
    await lose_conduct(api, run_id)

    for page in ("/console", "/console/waiting"):
        links = [one.get("href") for one in (await load(api, page)).all("a") if one.text.startswith("Conduct")]
        assert path in links, page
    assert "✗ Nobody conducts it." in text_of(await measured_run.page(run_id))
    equipment = (await api.get("/console/equipment")).text
    assert "Load step 4 ✗ Lost" in text_of(equipment), "what is lost is nowhere said to run"
    form = (await load(api, path)).filled_in()
    assert [form[f"phases.{row}.procedure_id"] for row in (0, 1)] == [darks, align]
    assert "phases.2.procedure_id" not in form, "the scan was started, and the repeat was not to be conducted"
    sent = await api.request("POST", "/console/do/conduct_run", data=form)
    assert sent.status_code == 303, sent.text
    before, after = [body["phases"] for name, body in await payloads(api, f"/runs/{run_id}") if name == "RunConductStarted"]
    assert after == before[:2]
    assert unlisted not in str(after)


async def test_an_aborted_run_says_first_who_when_and_why_and_what_was_not_done(measured_run: MeasuredRun) -> None:
    api = measured_run.line.api
    run_id = await measured_run.line.start_run(name="Load step 3")
    phase = {"name": "Reconstruct", "kind": "scan", "parent_run_id": run_id}
    await api.create("/procedures", phase)
    await api.execute(f"/runs/{run_id}/abort", {"reason": "sample slipped"})
    page = PageSource.of(await measured_run.page(run_id))
    said = next(one.text for one in page.all("p") if "refusal" in one.get("class"))
    assert said.startswith("✗ Aborted ")
    assert said.endswith(": sample slipped")
    assert "Reconstruct ○ not done" in text_of(await measured_run.page(run_id))


async def test_a_debrief_begins_with_the_outcome_and_its_reason_in_plain_words(measured_run: MeasuredRun) -> None:
    api = measured_run.line.api
    run_id = await measured_run.line.start_run(name="Load step 5")
    await api.execute(f"/runs/{run_id}/abort", {"reason": "sample slipped"})
    agent = api.acting_as(RUN_DEBRIEFER_ID)
    chosen = {"decided_by": str(RUN_DEBRIEFER_ID), "context": "RunDebrief", "choice": "OperatorAbort"}
    entry = {"event_id": str(new_id()), "entry_kind": "Debrief", "decision_id": await agent.create("/decisions", chosen)}
    account = "OperatorAbort at 2026-11-18T06:11:00.885710Z."
    await agent.execute(f"/runs/{run_id}/logbook", {"entries": [{**entry, "text": account}]})
    text = text_of(await measured_run.page(run_id))
    assert "✗ Aborted sample slipped operator abort at 06:11:00." in text


async def test_the_slider_leads_to_what_the_run_was_at_an_event(measured_run: MeasuredRun) -> None:
    html = await measured_run.page()
    (slider,) = [one for one in PageSource.of(html).all("form") if "data-slider" in one.attributes]
    assert slider.get("action") == f"/console/runs/{measured_run.run_id}/history"
    past = await measured_run.line.api.get(slider.get("action"), version=1)
    assert past.status_code == 200
    assert "1 500" in text_of(past.text), "as many projections as the plan says"


async def test_who_has_no_grant_sees_nothing_of_a_run(measured_run: MeasuredRun) -> None:
    for id in (measured_run.run_id, str(uuid4())):
        answer = await measured_run.stranger.get(f"/console/runs/{id}")
        assert answer.status_code in (200, 403)
        for text in ("Spring block", "slit gap", "The shutter is closed.", "Raw projections", "0.2 s"):
            assert text not in answer.text


async def test_a_run_that_happens_elsewhere_says_so_and_offers_no_verb_that_nobody_obeys(measured_run: MeasuredRun) -> None:
    api = measured_run.line.api
    witness = api.acting_as(await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"}))
    said = {
        "document_uid": str(uuid4()),
        "plan_id": measured_run.line.plan_id,
        "plan_name": "grid_scan",
        "name": "grid_scan 7",
    }
    now = datetime.now(UTC).isoformat()
    begun = await witness.post("/runs/witness", {**said, "began_at": now, "parameters": {"exposure": -1}})
    run_id = begun.json()["run_id"]
    await witness.execute(f"/runs/{run_id}/witness", {"change": "paused", "at": now})
    text = text_of(page := await measured_run.page(run_id))
    assert "as the Bluesky plan grid_scan" in text
    assert "It is held and ended where it runs." in text
    assert "Its RunEngine is paused since" in text
    assert "It began past a closed gate" in text
    head = page[page.index('id="region-head"') : page.index('id="region-readings"')]
    offered = {element.attributes.get("href", "").split("?")[0] for element in PageSource.of(head).elements}
    verbs = {href.rsplit("/", 1)[1] for href in offered if href.startswith("/console/do/")}
    assert verbs.isdisjoint({"hold_run", "complete_run", "stop_run", "abort_run", "adjust_run", "conduct_run"})
    assert "truncate_run" in verbs
    shown = (await api.get(f"/assets/{measured_run.line.unit_id}/now")).json()["runs"]
    assert {one["run_id"]: one["witnessed"] for one in shown}[run_id] is True


async def test_the_page_of_a_run_elsewhere_tells_its_gates_its_witness_its_pauses_and_its_end(
    measured_run: MeasuredRun,
) -> None:
    api, at = measured_run.line.api, datetime.now(UTC)
    witness = api.acting_as(await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"}))
    said = {
        "document_uid": str(uuid4()),
        "plan_id": measured_run.line.plan_id,
        "name": "count 8",
        "began_at": at.isoformat(),
    }
    begun = await witness.post("/runs/witness", {**said, "parameters": {"exposure": -1}, "override_reason": "new stage"})
    run_id = begun.json()["run_id"]
    standing = {"lag_seconds": 12.4, "refused": 2, "dropped": 1, "events": {"primary": 7}}
    for seconds, change in enumerate(("paused", "resumed", "heard")):
        when = (at + timedelta(seconds=seconds)).isoformat()
        await witness.execute(f"/runs/{run_id}/witness", {"change": change, "at": when, "standing": standing})
    text = text_of(await measured_run.page(run_id))
    for told in ("Refused here ▲ 2 documents", "Dropped there ▲ 1 document", "Behind ▲ 12 s", "Events 7 primary"):
        assert told in text
    assert "They were overridden where it began: new stage" in text
    assert "parameters valid" in text.lower()
    assert "It was never paused" not in text
    end = {"exit_status": "success", "num_points": 9, "streams": {"primary": {"announced": 9, "recorded": 7}}, "thinned": 4}
    await witness.execute(f"/runs/{run_id}/witness", {"change": "ended", "at": at.isoformat(), "end": end})
    text = text_of(await measured_run.page(run_id))
    assert "What the end rests on fewer events came than were announced" in text
    assert "Events of primary 7 came, 9 announced, 9 planned" in text
    assert "4 readings, to ten a second of a channel" in text


async def test_a_run_hands_out_its_documents_whole(measured_run: MeasuredRun) -> None:
    api = measured_run.line.api
    path = f"/console/runs/{measured_run.run_id}/documents.jsonl"
    assert path in {one.get("href") for one in PageSource.of(await measured_run.page()).all("a")}
    run_id, at = await measured_run.line.start_run(), datetime.now(UTC).isoformat()
    reading = {"channel_name": "current", "value": 1.0, "sampled_at": at, "sampling_procedure": "monitor"}
    for _ in range(3):
        entries = [{"event_id": str(new_id()), **reading} for _ in range(500)]
        assert (await api.post(f"/runs/{run_id}/observations", {"entries": entries})).status_code == 200
    answer = await api.get(f"/console/runs/{run_id}/documents.jsonl")
    assert answer.status_code == 200
    assert Counter(json.loads(line)[0] for line in answer.text.splitlines()) == {"start": 1, "descriptor": 1, "event": 1500}


async def test_the_list_of_runs_is_narrowed_to_those_that_happen_elsewhere(measured_run: MeasuredRun) -> None:
    api = measured_run.line.api
    witness = api.acting_as(await api.create("/actors", {"name": "Bluesky at BL8", "kind": "service_account"}))
    said = {"document_uid": str(uuid4()), "plan_id": measured_run.line.plan_id, "name": "count 9"}
    begun = await witness.post("/runs/witness", {**said, "began_at": datetime.now(UTC).isoformat()})
    position = begun.headers["x-baton-position"]
    assert (await api.get("/runs", witnessed=True, min_position=position)).status_code == 200
    page = PageSource.of((await api.get("/console/runs", witnessed="true")).text)
    names = {one.text for one in page.all("a")}
    assert "count 9" in names
    assert "Load step 1" not in names
    [chosen] = [one for one in page.all("select") if one.get("name") == "witnessed"]
    assert "any" in chosen.text
