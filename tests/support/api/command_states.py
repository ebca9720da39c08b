"""What is done to fresh objects before a command is given, so that it meets a state that allows it, and a body it accepts.

A command may be listed for several states. Objects are the fresh ones of `samples.py`; a preparation may put others in
their place.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.access.group_members import AddGroupMember
from baton.domain.data.edition import RecordEditionPublication
from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.procedure.endings import HoldProcedure
from baton.domain.operation.procedure.procedure import HoldCause
from baton.infrastructure.wall_clock import new_id
from tests.support.api.sample_parts.data import content_of, create_edition, create_storage
from tests.support.api.sample_parts.federation import create_anchor, open_inbound_permit, receive_artifact
from tests.support.api.sample_parts.proposals import caller_of, propose
from tests.support.api.samples import placement_in, visit_plan
from tests.support.domain.peers import grant
from tests.support.service import Api

Ids = dict[str, str]
Body = dict[str, Any]
Prepare = Callable[[Api, Ids], Awaitable[Body | None]]
"""Brings objects into a state, and returns a body that the command accepts there."""

WHY = {"reason": "shift change"}
STEPS: list[Body] = [
    {"kind": "setpoint", "address": "lum:m102", "value": 20.0},
    {"kind": "check", "address": "lum:m102", "criterion": {"kind": "equals", "expected": 20.0}},
]


@dataclass(frozen=True)
class Preparation:
    """One state in which a command is possible."""

    command: str
    state: str
    prepare: Prepare

    def __str__(self) -> str:
        return f"{self.command} {self.state}"


PREPARATIONS: list[Preparation] = []


def preparation_of(command: str, state: str) -> Callable[[Prepare], Prepare]:
    """Lists a preparation."""

    def add(prepare: Prepare) -> Prepare:
        PREPARATIONS.append(Preparation(command, state, prepare))
        return prepare

    return add


def prepare_after(command: str, state: str, *verbs: tuple[str, Body | None], body: Body | None = None) -> None:
    """Lists a preparation that gives other commands first: the paths of their verbs, and their bodies."""

    @preparation_of(command, state)
    async def give(api: Api, ids: Ids) -> Body | None:
        for path, sent in verbs:
            await post_accepted(api, path.format(**ids), sent)
        return body


async def post_accepted(api: Api, path: str, body: Body | None = None) -> Any:
    """The answer to a request that must succeed, at once or later."""
    answer = await api.post(path, body)
    assert answer.status_code in (200, 201, 202, 204), f"{path}: {answer.text}"
    return answer.json() if answer.content else None


MODEL, SUPPLY, VISIT = "/language-models/{language_model_id}", "/supplies/{supply_id}", "/visits/{visit_id}"
CLEARANCE, CAMPAIGN, RUN = "/clearances/{clearance_id}", "/campaigns/{campaign_id}", "/runs/{run_id}"
PROCEDURE, PERMIT, CREDENTIAL = (
    "/procedures/{procedure_id}",
    "/federation/permits/{permit_id}",
    "/federation/credentials/{credential_id}",
)

prepare_after("reactivate_actor", "deactivated", ("/actors/{actor_id}/deactivate", None))
prepare_after("announce_language_model_retirement", "approved", (f"{MODEL}/approve", None), body=WHY)
prepare_after("retire_language_model", "approved", (f"{MODEL}/approve", None), body=WHY)
prepare_after("exit_asset_maintenance", "in maintenance", ("/assets/{asset_id}/enter-maintenance", None))
prepare_after("resume_agent", "suspended", ("/agents/{agent_id}/suspend", WHY))
prepare_after("mark_supply_recovering", "unavailable", (f"{SUPPLY}/mark-unavailable", WHY), body=WHY)
prepare_after("restore_supply", "degraded", (f"{SUPPLY}/degrade", WHY), body=WHY)
prepare_after("resume_procedure", "held by hand", (f"{PROCEDURE}/hold", WHY), body={})
prepare_after(
    "complete_credential_rotation", "rotating", (f"{CREDENTIAL}/rotation/start", {"new_secret_ref": "file://next"})
)
prepare_after(
    "abort_credential_rotation", "rotating", (f"{CREDENTIAL}/rotation/start", {"new_secret_ref": "file://next"}), body=WHY
)
prepare_after("resume_permit", "suspended", (f"{PERMIT}/suspend", WHY))
prepare_after("hold_campaign", "active", (f"{CAMPAIGN}/start", None), body=WHY)
prepare_after("resume_campaign", "held", (f"{CAMPAIGN}/start", None), (f"{CAMPAIGN}/hold", WHY))
prepare_after("close_campaign", "active", (f"{CAMPAIGN}/start", None))
prepare_after("resume_run", "held", (f"{RUN}/hold", WHY), body={})
prepare_after("stop_run", "held", (f"{RUN}/hold", WHY), body=WHY)
prepare_after("resume_schedule", "held", ("/schedules/{schedule_id}/hold", WHY))
prepare_after("resume_queue", "held", ("/queues/{queue_id}/hold", WHY))
prepare_after("hold_visit", "in progress", (f"{VISIT}/start", None), body=WHY)
prepare_after("resume_visit", "on hold", (f"{VISIT}/start", None), (f"{VISIT}/hold", WHY))
prepare_after("complete_visit", "in progress", (f"{VISIT}/start", None))
prepare_after("abort_visit", "in progress", (f"{VISIT}/start", None), body=WHY)
for verb in ("return", "store", "discard"):
    prepare_after(
        f"{verb}_subject", "removed", ("/subjects/{subject_id}/remove", None), body=None if verb != "discard" else WHY
    )


@preparation_of("add_group_member", "without the member")
async def actor_to_list(api: Api, ids: Ids) -> Body:
    ids["actor_id"] = await api.create("/actors", {"name": "Ada Mensah"})
    return {"actor_id": ids["actor_id"]}


@preparation_of("remove_group_member", "with a member")
async def group_with_member(api: Api, ids: Ids) -> Body:
    return {"actor_id": ids["actor_id"]}


@preparation_of("extend_policy", "without the group")
async def policy_to_extend(api: Api, ids: Ids) -> Body:
    return {"permitted_group_ids": [ids["group_id"]]}


@preparation_of("approve_proposal", "of another")
async def proposal_to_approve(api: Api, ids: Ids) -> Body:
    return {"wait": 0}


@preparation_of("withdraw_proposal", "one's own")
async def own_proposal(api: Api, ids: Ids) -> Body:
    command = AddGroupMember(actor_id=UUID(ids["actor_id"]))
    ids["proposal_id"] = await propose(api, ids, command, ids["group_id"], by=caller_of(api))
    return WHY


@preparation_of("submit_clearance", "defined")
async def defined_clearance(api: Api, ids: Ids) -> None:
    """A clearance without a number of the facility's own."""
    form = {"template_id": ids["template_id"], "facility_code": "facility", "title": "Powder", "risk_band": "Green"}
    bindings = [{"kind": "Asset", "id": ids["asset_id"]}]
    ids["clearance_id"] = await api.create("/clearances", {**form, "bindings": bindings})


@preparation_of("start_clearance_review", "submitted")
async def submitted_clearance(api: Api, ids: Ids) -> Body:
    await defined_clearance(api, ids)
    await post_accepted(api, f"/clearances/{ids['clearance_id']}/submit")
    return {"first_reviewer_role": "BeamlineScientist"}


async def clearance_under_review(api: Api, ids: Ids) -> None:
    """A clearance that is being reviewed."""
    role = await submitted_clearance(api, ids)
    await post_accepted(api, f"/clearances/{ids['clearance_id']}/start-review", role)


@preparation_of("activate_clearance_template", "draft")
async def draft_template(api: Api, ids: Ids) -> None:
    form = {"code": f"SAF-{uuid4().hex[:8]}", "title": "Approval form", "facility_code": "facility"}
    ids["template_id"] = await api.create("/clearance-templates", form)


@preparation_of("activate_asset", "commissioned")
async def commissioned_asset(api: Api, ids: Ids) -> None:
    ids["asset_id"] = await api.create("/assets", {"name": "Hall", "tier": "Unit", "facility_code": "facility"})


@preparation_of("version_agent", "defined")
async def defined_agent(api: Api, ids: Ids) -> None:
    model = {"provider": "acme", "model": "m-1"}
    ids["agent_id"] = await api.create("/agents", {"kind": "Watcher", "name": "Watcher", "version": "1", "model_ref": model})


@preparation_of("mark_supply_available", "unknown")
async def unknown_supply(api: Api, ids: Ids) -> Body:
    air = {"kind": "compressed_air", "name": f"Air {uuid4().hex[:8]}", "facility_code": "facility"}
    ids["supply_id"] = await api.create("/supplies", air)
    return WHY


@preparation_of("mount_subject", "received")
async def received_subject(api: Api, ids: Ids) -> Body:
    ids["subject_id"] = await api.create("/subjects", {"name": "Battery cell"})
    return {"asset_id": ids["asset_id"], **WHY}


@preparation_of("record_visit_arrival", "planned")
async def planned_visit(api: Api, ids: Ids) -> None:
    ids["visit_id"] = await api.create("/visits", visit_plan(ids["surface_id"], ids["policy_id"]))


@preparation_of("activate_permit", "defined")
async def defined_permit(api: Api, ids: Ids) -> None:
    audience = f"registry-{uuid4().hex[:8]}.example"
    signing = {"audience": audience, "purpose": "Signing", "secret_ref": "file://calibration"}
    credential = await api.create("/federation/credentials", {"facility_id": ids["facility_id"], **signing})
    asked = grant(ids["facility_id"], credential, audience=audience)
    ids["permit_id"] = await api.create("/federation/permits", asked)


@preparation_of("reject_clearance", "under review")
async def clearance_to_reject(api: Api, ids: Ids) -> Body:
    await clearance_under_review(api, ids)
    return WHY


@preparation_of("append_clearance_review_step", "under review")
async def clearance_to_review(api: Api, ids: Ids) -> Body:
    await clearance_under_review(api, ids)
    step = {"role": "BeamlineScientist", "decision": "Approved", "decided_at": "2025-05-20T10:00:00Z"}
    return {"step_index": 0, **step}


@preparation_of("approve_clearance", "reviewed")
async def clearance_to_approve(api: Api, ids: Ids) -> Body:
    step = await clearance_to_review(api, ids)
    await post_accepted(api, f"/clearances/{ids['clearance_id']}/append-review-step", step)
    return {}


@preparation_of("activate_clearance", "approved")
async def clearance_to_activate(api: Api, ids: Ids) -> None:
    await clearance_to_approve(api, ids)
    await post_accepted(api, f"/clearances/{ids['clearance_id']}/approve", {})


@preparation_of("assign_clearance_external_id", "without a number")
async def clearance_to_number(api: Api, ids: Ids) -> Body:
    await clearance_under_review(api, ids)
    return {"external_id": uuid4().hex}


@preparation_of("version_model", "defined")
async def model_to_version(api: Api, ids: Ids) -> Body:
    part = {"manufacturer": {"name": "Acme Motion"}, "part_number": f"R-{uuid4().hex[:8]}"}
    return {"name": "acme_r250", **part, "declared_family_ids": [ids["family_id"]], "version_tag": "B"}


async def another_family(api: Api) -> str:
    return await api.create("/families", {"name": f"Linear stage {uuid4().hex[:8]}", "affordances": ["Rotatable"]})


@preparation_of("add_model_family", "defined")
async def model_to_widen(api: Api, ids: Ids) -> Body:
    return {"family_id": await another_family(api)}


@preparation_of("remove_model_family", "of two families")
async def model_to_narrow(api: Api, ids: Ids) -> Body:
    body = await model_to_widen(api, ids)
    await post_accepted(api, f"/models/{ids['model_id']}/add-family", body)
    return body


@preparation_of("add_asset_family", "active")
async def asset_to_widen(api: Api, ids: Ids) -> Body:
    return {"family_id": await another_family(api)}


@preparation_of("remove_asset_family", "of two families")
async def asset_to_narrow(api: Api, ids: Ids) -> Body:
    body = await asset_to_widen(api, ids)
    await post_accepted(api, f"/assets/{ids['asset_id']}/add-family", body)
    return body


@preparation_of("update_frame_placement", "placed")
async def frame_to_move(api: Api, ids: Ids) -> Body:
    base = ids["frame_id"]
    ids["frame_id"] = await api.create("/frames", {"name": "table", "parent_id": base, "placement": placement_in(base)})
    return {"placement": placement_in(base, x=1.5)}


@preparation_of("uninstall_asset", "installed and in no fixture")
async def asset_to_uninstall(api: Api, ids: Ids) -> Body:
    await post_accepted(api, f"/assets/{ids['asset_id']}/fixture/detach", {"fixture_id": ids["fixture_id"]})
    return WHY


@preparation_of("remove_method_required_role", "with a role")
async def method_with_role(api: Api, ids: Ids) -> Body:
    return {"role_name": "stage"}


@preparation_of("reschedule_plan", "defined")
async def plan_to_reschedule(api: Api, ids: Ids) -> Body:
    return {"window_starts_at": "2126-04-01T08:00:00Z", "window_ends_at": "2126-04-03T08:00:00Z"}


@preparation_of("set_plan_data_registration", "defined")
async def plan_to_register_data(api: Api, ids: Ids) -> Body:
    return {"data_registration": {"supply_id": await create_storage(api, f"Disk {uuid4().hex[:8]}")}}


@preparation_of("register_procedure_datasets", "completed")
async def ended_phase(api: Api, ids: Ids) -> Body:
    await post_accepted(api, f"/plans/{ids['plan_id']}/set-data-registration", await plan_to_register_data(api, ids))
    task = {"name": "Flats", "kind": "flat_field", "parent_run_id": ids["run_id"]}
    ids["procedure_id"] = await api.create("/procedures", task)
    for verb in ("start", "complete"):
        await post_accepted(api, f"/procedures/{ids['procedure_id']}/{verb}", {})
    return {"wait": 0}


@preparation_of("unbind_plan_role", "with its role played")
async def plan_with_role(api: Api, ids: Ids) -> Body:
    return {"role_name": "stage"}


@preparation_of("remove_plan_wire", "wired")
async def plan_with_wire(api: Api, ids: Ids) -> Body:
    plan = (await api.get(f"/plans/{ids['plan_id']}")).json()
    (wire,) = plan["wires"]
    return dict(wire)


@preparation_of("remove_asset_port", "with a spare port")
async def asset_with_port(api: Api, ids: Ids) -> Body:
    port = {"port_name": "spare", "direction": "Input", "signal_type": "TTL"}
    await post_accepted(api, f"/assets/{ids['asset_id']}/add-port", port)
    return {"port_name": "spare"}


@preparation_of("remove_asset_alternate_identifier", "with a second one")
async def asset_with_identifier(api: Api, ids: Ids) -> Body:
    body = {"kind": "EPICS_PV", "value": f"lum:{uuid4().hex[:8]}"}
    await post_accepted(api, f"/assets/{ids['asset_id']}/add-alternate-identifier", body)
    return body


@preparation_of("remove_asset_owner", "with an owner")
async def asset_with_owner(api: Api, ids: Ids) -> Body:
    await post_accepted(api, f"/assets/{ids['asset_id']}/add-owner", {"name": "Institute of Metals"})
    return {"name": "Institute of Metals"}


@preparation_of("remove_facility_trust_anchor_credential", "with an anchor")
async def facility_with_anchor(api: Api, ids: Ids) -> Body:
    body = {"credential_id": ids["credential_id"]}
    await post_accepted(api, f"/federation/facilities/{ids['facility_id']}/trust-anchors/add", body)
    return {**body, **WHY}


HEAD: Body = {"new_head_hash": "9f" * 32, "new_sequence_number": 1}
SEAL = "/federation/seals/{facility_id}"
prepare_after("sign_seal_pointer", "live", body=HEAD)
prepare_after("complete_seal_republishing", "republishing", (f"{SEAL}/republishing/start", WHY), body=HEAD)


@preparation_of("initialize_seal", "of a site with two anchors")
async def site_to_seal(api: Api, ids: Ids) -> Body:
    mark = uuid4().hex[:8]
    site = {"code": f"sealed-{mark}", "display_name": "Lumen Light Source", "kind": "Site"}
    facility_id = await api.create("/federation/facilities", site)
    online = await create_anchor(api, facility_id, "SealOnlineSigning", mark)
    root = await create_anchor(api, facility_id, "SealOfflineRoot", mark)
    return {"facility_id": facility_id, "online_credential_id": online, "offline_credential_id": root}


@preparation_of("rotate_seal_online_key", "with an anchor to follow")
async def seal_to_rotate(api: Api, ids: Ids) -> Body:
    following = await create_anchor(api, ids["facility_id"], "SealOnlineSigning", uuid4().hex[:8])
    return {"new_online_credential_id": following, "signed_by_offline_root": True}


@preparation_of("promote_dataset", "of no run")
async def trial_dataset(api: Api, ids: Ids) -> Body:
    ids["dataset_id"] = await api.create("/datasets", {"name": "scan_002.h5", **content_of(uuid4().hex)})
    return WHY


@preparation_of("demote_dataset", "production")
async def production_dataset(api: Api, ids: Ids) -> Body:
    body = await trial_dataset(api, ids)
    await post_accepted(api, f"/datasets/{ids['dataset_id']}/promote", body)
    return body


@preparation_of("seal_edition", "registered")
async def registered_edition(api: Api, ids: Ids) -> Body:
    ids["edition_id"] = await create_edition(api, ids["actor_id"], uuid4().hex)
    return {"license": "CC-BY-4.0"}


@preparation_of("add_dataset_to_edition", "not yet a member")
async def dataset_outside_edition(api: Api, ids: Ids) -> Body:
    await registered_edition(api, ids)
    return {"dataset_id": ids["dataset_id"]}


@preparation_of("remove_dataset_from_edition", "one of two members")
async def dataset_inside_edition(api: Api, ids: Ids) -> Body:
    body = await dataset_outside_edition(api, ids)
    await post_accepted(api, f"/editions/{ids['edition_id']}/add-dataset", body)
    return body


prepare_after("publish_edition", "sealed", body={"wait": 0})


@preparation_of("withdraw_edition", "published")
async def published_edition(api: Api, ids: Ids) -> Body:
    publication = RecordEditionPublication(external_id="10.5072/ed-1", external_id_scheme=ExternalIdScheme.DOI)
    async with Runtime(Settings(database_url=api.database_url, app_env="test")) as runtime:
        await runtime.commands.execute(publication, Caller.system(new_id()), target_id=UUID(ids["edition_id"]))
    return {"withdrawal_reason": "wrong sample", "wait": 0}


@preparation_of("add_run_to_campaign", "not yet a member")
async def run_outside_campaign(api: Api, ids: Ids) -> None:
    ids["run_id"] = await api.create("/runs", {"name": "Overview", "plan_id": ids["plan_id"]})


@preparation_of("release_control_of_surface", "in control")
async def visit_in_control(api: Api, ids: Ids) -> Body:
    await post_accepted(api, f"/visits/{ids['visit_id']}/start")
    body = {"surface_id": ids["surface_id"]}
    await post_accepted(api, f"/visits/{ids['visit_id']}/surface-control/take", body)
    return body


async def defined_procedure(api: Api, ids: Ids) -> None:
    """A procedure that nobody has begun, on nothing that another one holds."""
    task = {"name": "Centre the axis", "kind": "alignment", "target_asset_ids": []}
    ids["procedure_id"] = await api.create("/procedures", task)


CENTRED = {"kind": "within_tolerance", "expected": 0.0, "tolerance": 1.0}
CONVERGENCE: Body = {
    "steps": [{"kind": "capture", "address": "lum:offset", "capture_name": "offset"}],
    "convergence_capture_name": "offset",
    "criterion": CENTRED,
    "max_consecutive_unconverged_iterations": 3,
}
SEARCH: Body = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": 0.0, "upper": 10.0}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller"},
}
MEASURING: list[Body] = [
    {"kind": "setpoint", "address": "lum:focus", "value": {"__steering__": "focus"}},
    {"kind": "capture", "address": "lum:sharpness", "capture_name": "sharpness"},
]


@preparation_of("start_procedure", "defined")
async def procedure_to_start(api: Api, ids: Ids) -> Body:
    await defined_procedure(api, ids)
    return {}


@preparation_of("conduct_procedure", "defined")
@preparation_of("conduct_or_hold_procedure", "defined")
async def procedure_to_conduct(api: Api, ids: Ids) -> Body:
    await defined_procedure(api, ids)
    return {"wait": 0, "steps": STEPS}


@preparation_of("conduct_until_converged", "defined")
async def procedure_to_converge(api: Api, ids: Ids) -> Body:
    await defined_procedure(api, ids)
    return {"wait": 0, **CONVERGENCE}


@preparation_of("conduct_until_advised", "defined")
async def procedure_to_search(api: Api, ids: Ids) -> Body:
    await create_procedure_from_recipe(api, ids, MEASURING)
    return {"wait": 0, **SEARCH}


async def create_procedure_from_recipe(api: Api, ids: Ids, steps: list[Body], **more: Any) -> None:
    """A procedure from a recipe of these steps."""
    realised = {"name": f"Steps {uuid4().hex[:8]}", "capability_id": ids["capability_id"], "steps": steps}
    recipe_id = await api.create("/recipes", realised)
    task = {"name": "Find the focus", "kind": "alignment", **more}
    ids["procedure_id"] = await api.create(f"/recipes/{recipe_id}/procedures", task)


@preparation_of("hold_procedure", "conducted")
@preparation_of("abort_procedure", "conducted")
async def conducted_procedure(api: Api, ids: Ids) -> Body:
    body = await procedure_to_conduct(api, ids)
    ids["conduct_id"] = (await post_accepted(api, f"/procedures/{ids['procedure_id']}/conduct", body))["conduct_id"]
    return WHY


@preparation_of("resolve_procedure_step", "held for an unknown outcome")
async def procedure_to_resolve(api: Api, ids: Ids) -> Body:
    await conducted_procedure(api, ids)
    own = {"procedure_id": ids["procedure_id"], "conduct_id": ids["conduct_id"], "command_name": "ConductProcedure"}
    lost = {"step_index": 0, "source_kind": "action", "target": "expose", "error_class": "ActionOutcomeUnknown"}
    result = ConductResult.model_validate({**own, "succeeded": False, "held": True, "failure": {**lost, "message": "Lost."}})
    hold = HoldProcedure(reason="lost", cause=HoldCause.OUTCOME_UNKNOWN, conducted=result)
    async with Runtime(Settings(database_url=api.database_url, app_env="test")) as runtime:
        await runtime.service.execute(hold, Caller.system(new_id()), target_id=result.procedure_id)
    return {"conduct_id": ids["conduct_id"], "step_index": 0, "outcome": "done", **WHY}


@preparation_of("conduct_run", "running, with a procedure")
async def run_to_conduct(api: Api, ids: Ids) -> Body:
    await create_procedure_from_recipe(api, ids, STEPS, parent_run_id=ids["run_id"])
    return {"wait": 0, "procedure_ids": [ids["procedure_id"]]}


@preparation_of("hold_run", "conducted")
@preparation_of("stop_run", "conducted")
@preparation_of("abort_run", "conducted")
async def conducted_run(api: Api, ids: Ids) -> Body:
    body = await run_to_conduct(api, ids)
    await post_accepted(api, f"/runs/{ids['run_id']}/conduct", body)
    return WHY


@preparation_of("hold_everything", "with a conducted run")
async def another_conducted_run(api: Api, ids: Ids) -> Body:
    ids["run_id"] = await api.create("/runs", {"name": "Load step 2", "plan_id": ids["plan_id"]})
    return await conducted_run(api, ids)


@preparation_of("recheck_received_artifact", "of an unknown key")
async def receive_of_unknown_key(api: Api, ids: Ids) -> None:
    site = {"code": f"site-{uuid4().hex[:8]}", "display_name": "Lumen Light Source", "kind": "Site"}
    facility_id = await api.create("/federation/facilities", site)
    await open_inbound_permit(api, facility_id, "registry.example", "file://not-here-yet")
    ids["received_artifact_id"] = await receive_artifact(api, facility_id)
