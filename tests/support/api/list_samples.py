"""Several of everything, made over REST and differing in whatever lists can filter by."""

from itertools import product
from typing import Any
from uuid import UUID, uuid4

import psycopg

from baton.application.caller import Caller
from baton.domain.access.group import RenameGroup
from baton.domain.target.start_launch import StartLaunch
from baton.infrastructure.wall_clock import new_id
from tests.support.api.mcp_clients import agent, tool_result
from tests.support.api.operation_states import call_example, witness_run
from tests.support.api.sample_parts.agent import create_agent
from tests.support.api.sample_parts.data import content_of, create_edition, create_storage, record_attestation
from tests.support.api.sample_parts.federation import receive_artifact
from tests.support.api.sample_parts.proposals import GONE, caller_of, expire, propose, settle
from tests.support.api.samples import SYSTEM_HTTP, create_samples, placement_in, visit_plan
from tests.support.domain.artifacts import OTHER_KEY
from tests.support.domain.language_models import entry
from tests.support.service import Api

ZONES = 60
Ids = dict[str, str]


MOVED_ON = (
    *("deactivate_actor", "remove_group_member", "reject_proposal", "retire_group", "stop_run", "abandon_campaign"),
    *("measure_subject", "complete_procedure", "retire_schedule", "discard_dataset", "discard_distribution"),
    *("deprecate_language_model", "suspend_agent", "retire_caution", "deprecate_clearance_template", "revoke_permit"),
    *("revoke_credential", "start_seal_republishing", "version_capability", "version_method", "deprecate_plan"),
    *("deprecate_practice", "deprecate_recipe", "deprecate_family", "deprecate_model", "deprecate_assembly"),
    "enter_asset_maintenance",
)
"""What is done to the second set of samples, so that lists have objects elsewhere in their lives."""
MOVED = ("remove_queue_item", "hold_queue", "mark_distribution_stale", "approve_language_model")
"""What is done to the first set."""


async def stock_service(api: Api) -> Ids:
    """The ids of one of everything, among others of its kind that are elsewhere in their lives."""
    ids = await create_samples(api)
    other = await create_samples(api)
    for place, names in ((other, MOVED_ON), (ids, MOVED)):
        for name in names:
            await call_example(api, name, place)
    for number in range(ZONES):
        await api.create("/zones", {"name": f"Zone {number}"})
    await witness_run(
        api, {**ids, "account_id": await api.create("/actors", {"name": "Scan bridge 7", "kind": "service_account"})}
    )
    await api.create("/conduits", {"name": "Net", "source_zone_id": ids["zone_id"], "target_zone_id": other["zone_id"]})
    await api.create("/surfaces", {"name": "Agents", "kind": "MCP_STREAMABLE_HTTP"})
    await api.create("/language-models", entry(provider="bolt", archivability="Pinned", served_via="InHouse"))
    site = (await api.get(f"/federation/facilities/{other['facility_id']}")).json()["code"]
    await stock_visits(api, ids)
    await stock_access(api, ids, other)
    await stock_runs(api, ids)
    await stock_procedures(api, ids)
    await stock_launches(api, ids)
    await stock_calibrations(api, other)
    await stock_data(api, ids)
    await stock_catalogue_entries(api, ids, other)
    await stock_decisions(api, ids, other)
    await stock_agents(api, ids)
    await stock_cautions(api, ids)
    await stock_clearances(api, ids, site)
    await stock_federation(api, ids)
    await stock_recipes(api, ids)
    await stock_catalog(api, ids)
    await stock_equipment(api, ids)
    await stock_supplies(api, site)
    area = {"code": f"area-{uuid4().hex[:8]}", "display_name": "Hall", "kind": "Area", "parent_id": ids["facility_id"]}
    await api.create("/federation/facilities", area)
    position = await api.execute(f"/federation/facilities/{other['facility_id']}/decommission")
    assert (await api.get("/zones", min_position=position)).status_code == 200
    return ids


async def stock_visits(api: Api, ids: Ids) -> None:
    plan = visit_plan(ids["surface_id"], ids["policy_id"])
    proposal = {"external_refs": {"proposal": "20260417", "cycle": "2026-2"}}
    await api.create("/visits", {**plan, "type": "staff", "parent_id": ids["visit_id"], **proposal})
    later = {"planned_start_at": "2026-11-01T00:00:00Z", "planned_end_at": "2026-11-03T00:00:00Z"}
    await api.create("/visits", {**plan, **later, "external_refs": {"proposal": "20260999"}})
    over = await api.create("/visits", {**plan, "surface_id": SYSTEM_HTTP, "type": "calibration"})
    await api.execute(f"/visits/{over}/cancel", {"reason": "no beam"})


async def stock_access(api: Api, ids: Ids, other: Ids) -> None:
    """Groups and proposals in every state, and a policy that changed."""
    claim = {"issuer": "https://id.lumen.example", "path": "groups", "value": "bl7-users"}
    users = await api.create("/groups", {"name": "Users", "claim": claim})
    await api.execute(f"/groups/{users}/rename", {"name": "Visiting users"})
    await api.execute(f"/policies/{other['policy_id']}/extend", {"permitted_group_ids": [users]})
    await api.execute(f"/policies/{other['policy_id']}/revoke-grant", {"permitted_group_id": users, "reason": "over"})
    rename = RenameGroup(name="Staff")

    async def propose_rename(by: str) -> str:
        return await propose(api, ids, rename, ids["group_id"], by=by)

    own = await propose_rename(caller_of(api))
    await api.execute(f"/proposals/{own}/withdraw", {"reason": "not needed"})
    await settle(api, await propose_rename(ids["actor_id"]))
    await settle(api, await propose_rename(other["actor_id"]), refusal=GONE)
    await expire(api, await propose_rename(other["actor_id"]))


async def stock_runs(api: Api, ids: Ids) -> None:
    """Runs and what they leave behind, the campaigns they are in and the subjects they look at."""
    subject = await api.create("/runs", {"name": "Overview", "plan_id": ids["plan_id"], "subject_id": ids["subject_id"]})
    await api.execute(f"/runs/{subject}/hold", {"reason": "beam dump"})
    reading = {"channel_name": "hutch_temperature", "value": 23.1, "sampled_at": "2026-10-06T09:13:00Z"}
    for number in range(3):
        entry = {**reading, "event_id": str(new_id()), "sampling_procedure": "monitor", "value": 23.0 + number}
        await api.execute(f"/runs/{ids['run_id']}/observations", {"entries": [entry]})
    await api.execute(f"/runs/{ids['run_id']}/logbook", {"entries": [{"event_id": str(new_id()), "text": "Realigned."}]})
    sweep = {"name": "Sweep", "intent": "Sweep", "lead_actor_id": str(uuid4()), "subject_id": ids["subject_id"]}
    await api.execute(f"/campaigns/{await api.create('/campaigns', {**sweep, 'tags': ['in-situ', 'load']})}/start")
    await api.create("/campaigns", {**sweep, "subject_id": str(uuid4()), "tags": ["load"]})
    await api.create("/subjects", {"name": "Battery cell"})


async def stock_procedures(api: Api, ids: Ids) -> None:
    doing = {"event_id": str(new_id()), "step_kind": "check", "payload": {}, "sampled_at": "2026-10-06T09:14:00Z"}
    await api.execute(f"/procedures/{ids['procedure_id']}/activities", {"entries": [doing]})
    phases = [{"recipe_id": ids["recipe_id"], "name": "Flats", "conduct": {"command": "conduct_or_hold_procedure"}}]
    survey = {"kind": "ConductPlan", "plan_id": ids["plan_id"], "name": "Survey {count}", "phases": phases}
    hourly = await api.create("/schedules", {"name": "Hourly survey", "calendar": {"every": 3600}, "target": survey})
    await api.execute(f"/schedules/{hourly}/trigger")
    await api.execute(f"/schedules/{hourly}/hold", {"reason": "shutdown"})


async def stock_launches(api: Api, ids: Ids) -> None:
    """Launches that a person, a queue and a schedule asked for, one of which has ended."""
    phases = [{"recipe_id": ids["recipe_id"]}]
    answer = await api.post("/launches", {"plan_id": ids["plan_id"], "name": "Overview", "phases": phases})
    assert answer.status_code == 201, answer.text
    await api.execute(f"/runs/{answer.json()['run_id']}/stop", {"reason": "enough"})
    target = {"kind": "ConductRecipe", "recipe_id": ids["recipe_id"], "name": "Darks"}
    for by in ({"by": "queue_item", **{name: ids[name] for name in ("queue_id", "item_id")}}, {"by": "schedule"}):
        known = by if "queue_id" in by else {**by, "schedule_id": ids["schedule_id"]}
        author = Caller(UUID(ids["actor_id"]), UUID(SYSTEM_HTTP), new_id())
        await api.runtime.commands.execute(StartLaunch(arranged={"target": target, **known}), author, new_id=new_id())


async def stock_calibrations(api: Api, other: Ids) -> None:
    lens = {"quantity": "magnification", "operating_point": {"objective_designation": "5x", "energy": 25}}
    await api.create("/calibrations", {"target_id": other["asset_id"], **lens})
    axis = {"quantity": "rotation_center", "operating_point": {"energy": 25, "optics_config": "5x"}}
    center = await api.create("/calibrations", {"target_id": str(uuid4()), **axis})
    source = {"kind": "Measured", "procedure_id": str(uuid4())}
    value = {"value": {"center": 1022.1}, "status": "Provisional", "source": source}
    await api.execute(f"/calibrations/{center}/revisions", {**value, "valid_until": "2999-01-01T00:00:00Z"})
    third = await api.create("/calibrations", {"target_id": str(uuid4()), **axis})
    await api.execute(f"/calibrations/{third}/revisions", {**value, "valid_until": "2999-06-01T00:00:00Z"})


async def stock_data(api: Api, ids: Ids) -> None:
    raw = {"name": "scan_002.h5", **content_of(uuid4().hex)}
    await api.execute(f"/datasets/{await api.create('/datasets', raw)}/promote", {"reason": "checked"})
    archive = {"dataset_id": ids["dataset_id"], "supply_id": await create_storage(api, f"Archive {uuid4().hex}")}
    copy = (await api.get(f"/distributions/{ids['distribution_id']}")).json()
    same = {name: copy[name] for name in ("checksum", "byte_size", "encoding")}
    for protocol in ("S3", "Globus"):
        place = {"uri": f"s3://archive/{uuid4().hex}", "access_protocol": protocol}
        await api.create("/distributions", {**archive, **same, **place})
    await record_attestation(api, ids["distribution_id"], b"others")
    birth = (await api.get(f"/acquisitions/{ids['acquisition_id']}")).json()
    await api.create("/acquisitions", {name: birth[name] for name in ("dataset_id", "producing_asset_id", "captured_at")})
    for fields in ({"kind": "DataCite"}, {"publisher_facility_code": "elsewhere"}):
        await create_edition(api, ids["actor_id"], uuid4().hex, **fields)


CATALOGUES = {
    "tiled_directory": "/nowhere/tiled",
    "scicat_address": "http://127.0.0.1:1/api/v3",
    "scicat_token": "t0ken",
    "scicat_owner_group": "bl7",
    "scicat_contact_email": "data@lumen.example",
}
"""Settings of a service that enters datasets into both catalogues."""


async def stock_catalogue_entries(api: Api, ids: Ids, other: Ids) -> None:
    """Entries that nobody has begun with, and some that a catalogue refused."""
    for dataset_id, catalogue in product((ids["dataset_id"], other["dataset_id"]), ("SciCat", "Tiled")):
        request = {"catalogue": catalogue, "wait": 0}
        assert (await api.post(f"/datasets/{dataset_id}/retry-catalogue-entry", request)).status_code == 202
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        refused = "UPDATE catalogue_entries SET status = 'Refused', attempts = 1, last_error = 'no' WHERE dataset_id = %s"
        await connection.execute(refused, (other["dataset_id"],))


async def stock_decisions(api: Api, ids: Ids, other: Ids) -> None:
    child = {"parent_id": ids["decision_id"], "override_kind": "correction", "rule": "shift rule 4", "confidence": 0.2}
    await api.create("/decisions", {"decided_by": other["actor_id"], "context": "RunHold", "choice": "hold", **child})
    await api.create("/decisions", {"decided_by": ids["actor_id"], "context": "RunHold", "choice": "go on"})
    span = {"event_id": str(uuid4()), "occurred_at": "2026-10-06T07:59:00Z", "operation_name": "execute_tool"}
    entries = [{**span, "provider_name": "acme", "request_model": "m-1", "tool_name": "get_run"}]
    await api.execute(f"/decisions/{ids['decision_id']}/inferences", {"entries": entries})


async def stock_agents(api: Api, ids: Ids) -> None:
    """Agents in every state, and what can be done about what they decide."""
    mark = uuid4().hex[:8]
    idle = {"kind": "Watcher", "name": "Watcher", "version": "1", "model_ref": {"provider": "acme", "model": "m-1"}}
    await api.create("/agents", idle)
    over = await create_agent(api, "Watcher", mark)
    await api.execute(f"/agents/{over}/deprecate", {"reason": "nobody read it"})
    await api.create(f"/decisions/{ids['caution_proposal_id']}/promote", {})
    asked = await api.post(f"/runs/{ids['run_id']}/regenerate-debrief", {"wait": 0})
    assert asked.status_code == 202, asked.text
    stuck = {"event_id": ids["logged_event_id"], "reason": "written before the rule"}
    await api.create(f"/reactions/{ids['subscriber_name']}/dismiss-event", stuck)


async def stock_cautions(api: Api, ids: Ids) -> None:
    wear: dict[str, Any] = {
        "target": {"kind": "Procedure", "id": ids["procedure_id"]},
        "category": "Wear",
        "severity": "Warning",
        "text": "The shutter sticks",
        "workaround": "Open it by hand",
        "tags": ["shutter", "manual"],
        "expires_at": "2127-01-01T00:00:00Z",
    }
    author = api.acting_as(ids["actor_id"])
    worn = await author.create("/cautions", wear)
    await author.create(f"/cautions/{worn}/supersede", {**wear, "severity": "Notice", "tags": []})


async def stock_clearances(api: Api, ids: Ids, site: str) -> None:
    template = await api.create("/clearance-templates", {"code": "SAF", "title": "Approval form", "facility_code": site})
    await api.execute(f"/clearance-templates/{template}/activate")
    form = {"template_id": template, "facility_code": site, "title": "Powder", "risk_band": "Green"}
    bindings = [{"kind": kind, "id": str(uuid4())} for kind in ("Subject", "Subject", "Run", "Procedure")]
    await api.create("/clearances", {**form, "bindings": bindings, "valid_until": "2127-01-01T00:00:00Z"})
    asset = [{"kind": "Asset", "id": ids["asset_id"]}]
    await api.execute(f"/clearances/{await api.create('/clearances', {**form, 'bindings': asset})}/submit")


async def stock_federation(api: Api, ids: Ids) -> None:
    inbound = {"kind": "Inbound", "inbound_allowed_artifact_kinds": ["CalibrationRevision"]}
    grant = (await api.get(f"/federation/permits/{ids['permit_id']}")).json()
    asked = ("peer_facility_id", "audience", "purpose", "allowed_credential_ids", "allowed_payload_types")
    scope = {name: grant[name] for name in (*asked, "allowed_artifact_kinds", "abi_tier_floor", "expires_at")}
    await api.create("/federation/permits", {**scope, "direction": "Inbound", "terms": inbound})
    token = {"audience": "registry.example", "purpose": "Authentication", "secret_ref": "file://token"}
    await api.create("/federation/credentials", {"facility_id": ids["facility_id"], **token})
    await receive_artifact(api, ids["facility_id"], key=OTHER_KEY)


async def stock_recipes(api: Api, ids: Ids) -> None:
    """The ladder from capabilities to plans, each in more than one state."""
    contract = {"required_affordances": ["Rotatable"], "executor_shapes": ["METHOD"]}
    code = f"baton.capability.alignment_{uuid4().hex[:8]}"
    old = await api.create("/capabilities", {"code": code, "name": "Alignment", **contract})
    await api.create("/methods", {"name": "by_eye", "capability_id": old})
    await api.execute(f"/capabilities/{old}/deprecate", {"replaced_by_capability_id": ids["capability_id"]})
    narrow = {"name": "Flat field", "method_id": ids["method_id"], "family_ids": [ids["family_id"]]}
    await api.create("/practices", narrow)
    await api.create("/plans", {"name": "Again", "practice_id": ids["practice_id"], "asset_ids": [ids["asset_id"]]})


async def stock_catalog(api: Api, ids: Ids) -> None:
    camera = await api.create("/families", {"name": f"Camera {uuid4().hex}", "affordances": ["Imageable", "Rotatable"]})
    await api.execute(f"/families/{camera}/version", {"version_tag": "2", "affordances": ["Imageable"]})
    entry = {"name": "orbis_cam5", "manufacturer": {"name": "ORBIS"}, "declared_family_ids": [camera, ids["family_id"]]}
    await api.create("/models", {**entry, "part_number": "CAM-5"})
    await api.create("/assemblies", {"name": "Empty"})


async def stock_equipment(api: Api, ids: Ids) -> None:
    """Equipment in several states, and a fixture that came over the other surface."""
    hutch = await api.create("/enclosures", {"name": f"Hutch {uuid4().hex}", "facility_code": "facility"})
    shutter = {"name": "Shutter", "tier": "Component", "parent_id": ids["asset_id"], "located_in_enclosure_id": hutch}
    inventory = {"alternate_identifiers": [{"kind": "InventoryNumber", "value": "INV-7"}]}
    part = await api.create("/assets", {**shutter, **inventory})
    await api.execute(f"/assets/{part}/fault", {"reason": "stuck"})
    await api.execute(f"/assets/{part}/decommission")
    bench = {"name": "bench", "parent_id": ids["frame_id"], "placement": placement_in(ids["frame_id"])}
    await api.execute(f"/frames/{await api.create('/frames', bench)}/decommission", {"reason": "moved"})
    slot = {"slot_code": f"B-{uuid4().hex}", "parent_id": ids["mount_id"], "placement": placement_in(ids["frame_id"])}
    await api.execute(f"/mounts/{await api.create('/mounts', slot)}/decommission", {"reason": "moved"})
    empty = await api.create("/assemblies", {"name": "Nothing but frames"})
    async with agent(api) as client:
        await tool_result(client, "register_fixture", assembly_id=empty, slot_asset_bindings=[])


async def stock_supplies(api: Api, site: str) -> None:
    beam = await api.create("/supplies", {"kind": "photon_beam", "name": "Ring", "facility_code": site})
    await api.execute(f"/supplies/{beam}/deregister", {"reason": "ring rebuilt"})
    bridge = await api.create("/actors", {"name": "Plant bridge", "kind": "service_account"})
    reading = {"monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:PERMIT"}, "reason": "read"}
    hutch = await api.create("/enclosures", {"name": "Hutch", "facility_code": site})
    permitted = {**reading, "new_status": "Permitted"}
    await api.acting_as(bridge).execute(f"/enclosures/{hutch}/observe-status", permitted)
    await api.execute(f"/enclosures/{hutch}/decommission", {"reason": "hutch rebuilt"})
