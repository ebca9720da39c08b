"""A tomography series with a beam loss over REST, payload for payload and event for event."""

from typing import Any
from uuid import uuid4

import pytest

from baton.infrastructure.wall_clock import new_id
from tests.support.api.callers import AGENT, register_agent
from tests.support.api.data_products import revisions_of_a_centre
from tests.support.api.example_reads import history, payloads, refusal
from tests.support.api.rest_beamline import DEFAULTS, Beamline, beamline, create_plan
from tests.support.service import Api

STALL = {
    "category": "OperationalWindow",
    "severity": "Caution",
    "text": "Stage stalls when cold. " * 20,
    "workaround": "Warm it up for ten minutes",
}


async def versions(api: Api, path: str) -> list[tuple[int, str, dict[str, Any]]]:
    """What a stream says version by version, without its times."""
    return [(version, *said) for version, said in enumerate(await payloads(api, path), 1)]


async def test_a_tomography_series_with_a_beam_loss(api: Api) -> None:
    line = await beamline(api)
    on_stage = {"target": {"kind": "Asset", "id": line.rotary_id}, **STALL, "tags": [], "propagate_to_children": False}
    caution = await api.create("/cautions", on_stage)
    operator_id, pi = [await api.create("/actors", {"name": name}) for name in ("Noor Haddad", "Mira Okafor")]
    await register_agent(api.database_url, AGENT)
    operator, supervisor = api.acting_as(operator_id), api.acting_as(AGENT)

    series = {"name": "Alloy fatigue series", "intent": "Series", "lead_actor_id": pi, "tags": ["tomography", "in-situ"]}
    registered = await operator.post("/campaigns", {**series, "external_refs": {"proposal": "89421"}})
    assert registered.status_code == 201
    c = registered.json()["campaign_id"]
    assert registered.json() == {"campaign_id": c}
    campaign = f"/campaigns/{c}"
    assert (await operator.get(campaign)).json()["status"] == "Planned"
    begun = await operator.post(f"{campaign}/start")
    assert (begun.status_code, begun.content) == (204, b"")
    assert (await operator.get(campaign)).json()["status"] == "Active"

    _, (pixel_size, rotation_centre) = await revisions_of_a_centre(api, 2)
    asked = {
        "name": "Load step 1",
        "plan_id": line.plan_id,
        "subject_id": line.subject_id,
        "campaign_id": c,
        "override_parameters": {"exposure": 0.05},
        "pinned_calibration_ids": [rotation_centre, pixel_size],
    }
    started = await operator.post("/runs", asked, Idempotency_Key="k1")
    assert started.status_code == 201
    r = started.json()["run_id"]
    acknowledged = {
        "caution_id": caution,
        "target_kind": "Asset",
        "target_id": line.rotary_id,
        "category": "OperationalWindow",
        "severity": "Caution",
        "text_excerpt": STALL["text"][:200],
        "workaround_excerpt": STALL["workaround"],
    }
    effective = {"energy": 25, "exposure": 0.05, "projections": 1500}
    answer = {"run_id": r, "effective_parameters": effective, "acknowledged_cautions": [acknowledged]}
    assert started.json() == answer
    again = await operator.post("/runs", asked, Idempotency_Key="k1")
    assert (again.status_code, again.json(), again.headers["Idempotency-Replayed"]) == (201, answer, "true")
    run = f"/runs/{r}"
    [first] = await history(operator, run)
    *_, joined = await history(operator, campaign)
    assert (first["version"], first["event_type"]) == (1, "RunStarted")
    assert (joined["version"], joined["event_type"]) == (3, "CampaignRunAdded")
    assert first["transaction_id"] == joined["transaction_id"]
    assert (await operator.get(campaign)).json()["run_ids"] == [r]

    reading = {
        "event_id": str(new_id()),
        "channel_name": "ring_current",
        "value": 198.7,
        "units": "mA",
        "sampling_procedure": "baseline",
        "sampled_at": "2030-03-04T09:12:00Z",
    }
    for _ in range(2):
        appended = await operator.post(f"{run}/observations", {"entries": [reading]})
        assert (appended.status_code, appended.json()) == (200, {"event_count": 1})

    await operator.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
    lost = {"decided_by": str(AGENT), "context": "RunSupervision", "choice": "Hold"}
    d1 = await supervisor.create("/decisions", lost)
    held = await supervisor.post(f"{run}/hold", {"reason": "beam lost", "decided_by_decision_id": d1})
    assert (held.status_code, held.content) == (204, b"")
    early = await operator.post(f"{run}/complete")
    assert refusal(early) == (409, "RunCannotCompleteError")
    assert early.json()["reason"] == "held"

    dark = await operator.post(f"{run}/resume")
    assert refusal(dark) == (409, "RunSupplyCoverageMismatchError")
    unavailable = {"supply_id": line.supply_id, "status": "Unavailable", "observation_age": None, "monitored": False}
    named = {"run_id": r, "kind": "photon_beam", "supplies": [unavailable]}
    assert dark.json()["facts"] == named
    await operator.execute(f"/supplies/{line.supply_id}/mark-recovering", {"reason": "injecting"})
    await operator.execute(f"/supplies/{line.supply_id}/restore", {"reason": "beam back"})
    assert (await operator.post(f"{run}/resume")).status_code == 204

    patch = {"parameters_patch": {"exposure": 0.08}, "reason": "lower flux after top-up"}
    assert (await operator.post(f"{run}/adjust", patch)).status_code == 204
    unfit = await operator.post(f"{run}/adjust", {**patch, "parameters_patch": {"exposure": "long"}})
    assert refusal(unfit) == (400, "InvalidRunParametersError")

    assert (await operator.post(f"{run}/complete")).status_code == 204
    late = await operator.post(f"{run}/observations", {"entries": [{**reading, "event_id": str(new_id())}]})
    assert refusal(late) == (409, "RunObservationLogbookClosedError")
    note = {"event_id": str(new_id()), "text": "Sample slipped 20 um at the end."}
    noted = await operator.post(f"{run}/logbook", {"entries": [note]})
    assert (noted.status_code, noted.json()) == (200, {"event_count": 1})

    shown = (await operator.get(run)).json()
    own = {"run_id": r}
    unsaid = {"raid": None, "trigger_source": None, "external_refs": {}, "decided_by_decision_id": None}
    adjusted = {**effective, "exposure": 0.08}
    by_hand, revision = {"decided_by_decision_id": None}, {"parameters_schema_revision": 0}
    stream = await versions(operator, run)
    opened = {version: payload.pop("schema")["fields"] for version, _, payload in stream if "schema" in payload}
    assert stream == [
        (
            1,
            "RunStarted",
            {
                **own,
                **asked,
                **unsaid,
                **revision,
                "effective_parameters": effective,
                "pinned_calibration_ids": [pixel_size, rotation_centre],
                "acknowledged_cautions": [acknowledged],
                "launch_id": None,
            },
        ),
        (2, "RunObservationLogbookOpened", {**own, "logbook_id": shown["observation_logbook_id"], "kind": "observation"}),
        (3, "RunHeld", {**own, "reason": "beam lost", "decided_by_decision_id": d1}),
        (4, "RunResumed", {**own, **by_hand}),
        (
            5,
            "RunAdjusted",
            {**own, **patch, **by_hand, **revision, "effective_parameters": adjusted, "adjusted_by": operator_id},
        ),
        (6, "RunCompleted", {**own, "actuation_kind": None}),
        (7, "RunNarrativeLogbookOpened", {**own, "logbook_id": shown["narrative_logbook_id"], "kind": "narrative"}),
    ]
    assert opened[2]["value"] == {"type": "float"}
    assert opened[7]["text"] == {"type": "string"}
    assert [(item["principal_id"], item["command_name"]) for item in await history(operator, run)] == [
        (operator_id, "StartRun"),
        (operator_id, "AppendObservations"),
        (str(AGENT), "HoldRun"),
        (operator_id, "ResumeRun"),
        (operator_id, "AdjustRun"),
        (operator_id, "CompleteRun"),
        (operator_id, "AppendRunLogbookEntries"),
    ]
    assert shown.items() >= {"id": r, "status": "Completed", "effective_parameters": adjusted, "campaign_id": c}.items()
    assert (shown["override_parameters"], shown["adjustment_count"]) == ({"exposure": 0.05}, 1)
    await look_into_the_logbooks(operator, run, reading, note)

    await line.observe("NotPermitted")
    shut = await line.start()
    assert refusal(shut) == (409, "RunRequiresPermittedEnclosureError")
    other = await api.create("/enclosures", {"name": "Furnace hutch", "facility_code": "facility"})
    await line.observe("Permitted", other)
    furnace = {"name": "Furnace", "tier": "Device", "parent_id": line.unit_id, "located_in_enclosure_id": other}
    both = await create_plan(api, line.camera_id, await api.create("/assets", furnace), supplies=("photon_beam",))
    half = await line.start(plan_id=both.plan_id)
    assert refusal(half) == (409, "RunEnclosureCoverageMismatchError")
    [failing] = half.json()["facts"]["enclosures"]
    assert failing.items() >= {"enclosure_id": line.enclosure_id, "permit_status": "NotPermitted"}.items()

    await line.observe("Permitted")
    r2 = await line.start_run()
    assert (await operator.post(f"{campaign}/close")).status_code == 204
    over = await operator.post(f"{campaign}/runs/{r2}/add")
    assert refusal(over) == (409, "CampaignCannotAddRunError")
    late = await line.start(campaign_id=c)
    assert refusal(late) == (409, "RunCannotJoinCampaignError")
    assert await versions(operator, campaign) == [
        (
            1,
            "CampaignRegistered",
            {
                "campaign_id": c,
                **series,
                "subject_id": None,
                "description": None,
                "tags": ["in-situ", "tomography"],
                "external_refs": {"proposal": "89421"},
                "external_id": None,
                "external_id_scheme": None,
            },
        ),
        (2, "CampaignStarted", {"campaign_id": c}),
        (3, "CampaignRunAdded", {"campaign_id": c, "run_id": r}),
        (4, "CampaignClosed", {"campaign_id": c}),
    ]


async def look_into_the_logbooks(operator: Api, run: str, reading: dict[str, Any], note: dict[str, Any]) -> None:
    """One reading, though it was sent twice, and one note; each says who wrote it."""
    [observed] = (await operator.get(f"{run}/observations")).json()["items"]
    assert observed.items() >= {**reading, "simulated": False, "command_name": "AppendObservations"}.items()
    assert observed["actor_id"] == operator.headers["X-Principal-Id"]
    [channel] = (await operator.get(f"{run}/channels")).json()["items"]
    assert channel.items() >= {"channel_name": "ring_current", "count": 1, "latest_value": 198.7, "units": "mA"}.items()
    assert channel["first_recorded_at"] == channel["latest_recorded_at"] == observed["recorded_at"]
    [entry] = (await operator.get(f"{run}/logbook", entry_kind="Note")).json()["items"]
    assert entry.items() >= {**note, "entry_kind": "Note", "decision_id": None}.items()
    assert (await operator.get(f"{run}/logbook", entry_kind="Debrief")).json()["items"] == []


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    return await beamline(fresh_api)


async def test_one_key_is_one_run_however_often_it_is_sent(line: Beamline) -> None:
    asked = {"name": "Load step 1", "plan_id": line.plan_id, "campaign_id": await line.campaign()}
    first, *others = [await line.api.post("/runs", asked, Idempotency_Key="k1") for _ in range(3)]
    assert [other.json() for other in others] == [first.json()] * 2
    changed = await line.api.post("/runs", {**asked, "name": "Load step 2"}, Idempotency_Key="k1")
    assert refusal(changed) == (422, "IdempotencyConflictError")
    elsewhere = await line.api.acting_as(uuid4()).post("/runs", asked, Idempotency_Key="k1")
    started = [first.json()["run_id"], elsewhere.json()["run_id"]]
    assert (await line.api.get(f"/campaigns/{asked['campaign_id']}")).json()["run_ids"] == sorted(started)


async def test_a_refused_start_frees_its_key(line: Beamline) -> None:
    await line.observe("NotPermitted")
    asked = {"name": "Load step 1", "plan_id": line.plan_id}
    shut = await line.api.post("/runs", asked, Idempotency_Key="k1")
    assert refusal(shut) == (409, "RunRequiresPermittedEnclosureError")
    await line.observe("Permitted")
    assert (await line.api.post("/runs", asked, Idempotency_Key="k1")).status_code == 201


async def test_a_preflight_says_what_the_start_would_say_and_starts_nothing(line: Beamline) -> None:
    asked = {"name": "Load step 1", "plan_id": line.plan_id, "override_parameters": {"exposure": 0.05}}
    clear = (await line.api.post("/runs/preflight", asked)).json()
    assert (clear["passed"], clear["effective_parameters"]) == (True, {**DEFAULTS, "exposure": 0.05})
    await line.api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
    await line.observe("NotPermitted")
    barred = (await line.api.post("/runs/preflight", asked)).json()
    closed = {gate["gate"]: gate["code"] for gate in barred["gates"] if not gate["passed"]}
    assert closed == {
        "supply_available": "RunSupplyCoverageMismatchError",
        "enclosure_permitted": "RunRequiresPermittedEnclosureError",
    }
    refused = (await line.start()).json()
    gate = next(gate for gate in barred["gates"] if not gate["passed"])
    assert {key: gate[key] for key in ("code", "reason", "detail", "facts")} == {
        key: refused[key] for key in ("code", "reason", "detail", "facts")
    }
    position = await line.api.execute("/zones", {"name": "Hall"})
    assert (await line.api.get("/runs", min_position=position)).json()["items"] == []


async def test_a_series_is_listed_by_its_campaign(line: Beamline) -> None:
    campaign = await line.campaign()
    runs = [await line.start_run(campaign_id=campaign, name=f"Load step {number}") for number in (1, 2)]
    await line.start_run()
    position = await line.api.execute(f"/runs/{runs[0]}/hold")
    listed = (await line.api.get("/runs", campaign_id=campaign, min_position=position)).json()["items"]
    assert [(item["run_id"], item["status"]) for item in listed] == [(runs[0], "Held"), (runs[1], "Running")]
    await line.api.execute(f"/campaigns/{campaign}/runs/{runs[0]}/remove", {"reason": "wrong sample"})
    position = await line.api.execute(f"/campaigns/{await line.campaign()}/runs/{runs[0]}/add")
    listed = (await line.api.get("/runs", campaign_id=campaign, min_position=position)).json()["items"]
    assert [item["run_id"] for item in listed] == [runs[1]]
    counted = (await line.api.get("/campaigns", status="Planned")).json()["items"]
    assert [item["run_count"] for item in counted] == [1, 1]
