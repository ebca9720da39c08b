"""What is done to fresh objects before an operation is tried, so that it meets a state that allows it: mostly other
operations, called with their examples. Objects are those of `samples.py`; a step may put others in their place."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx

from baton.application.caller import Caller
from baton.application.commands import system_batch
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.iterations import StartProcedureIteration
from baton.domain.conduct.progress import ConductProgress
from baton.domain.conduct.steered_conduct import RecordProcedureOutcome
from baton.domain.contexts import REGISTRY
from baton.domain.data.edition import RecordEditionPublication
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import HoldCause
from baton.domain.registry import Operation
from baton.domain.shared.examples import EXAMPLES, PLACEHOLDER, fill
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.writes import Put
from baton.domain.step.results import ConductResult
from baton.domain.trust.group_members import AddGroupMember
from baton.domain.trust.subject_binding import BindActorSubject
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.api.sample_parts.data import create_camera, create_edition, create_storage
from tests.support.api.sample_parts.federation import create_anchor, open_inbound_permit, receive_artifact
from tests.support.api.sample_parts.proposals import caller_of, propose
from tests.support.api.samples import SYSTEM_HTTP, renew_samples
from tests.support.domain.calibrations import AT_25_KEV
from tests.support.domain.conducts import measured_pass
from tests.support.domain.peers import grant
from tests.support.service import Api

Ids = dict[str, str]
Step = str | Callable[[Api, Ids], Awaitable[None]]
"""An operation, called with its example, or what else is done."""
PEER = "alpha-source"
CALLERS: dict[str, str] = {
    "observe_supply_status": "account_id",
    "observe_enclosure_status": "account_id",
    "witness_run": "account_id",
    "witness_run_change": "account_id",
    "publish_calibration_revision": "actor_id",
    "adopt_received_artifact": "actor_id",
}
"""The operations that not every caller may use, and who uses them here."""
UNIQUE = {"define_clearance_template": "code", "define_family": "name", "define_role": "name", "register_mount": "slot_code"}
"""The field of an example that may be used once."""


def mark() -> str:
    return uuid4().hex[:8]


async def execute_internally(api: Api, command: Command, target_id: str) -> None:
    """Execute a command as the service itself."""
    await api.runtime.service.execute(command, Caller.system(new_id()), target_id=UUID(target_id))


async def set_progress(api: Api, procedure_id: str, **changes: Any) -> None:
    """Change how far a conduct has come, as its worker does."""
    async with api.runtime.store.session() as session:
        (row,) = await session.records(ConductProgress, {"procedure_id": UUID(procedure_id)})
        await session.append(system_batch("ConductProcedure", clock, new_id, Put(replace(row, **changes))))


async def bind_subject(api: Api, ids: Ids) -> None:
    binding = EXAMPLES["unbind_actor_subject"]
    address = {"issuer": binding["issuer"], "jwks_url": f"{binding['issuer']}/keys"}
    provider = {**address, "audiences": {SYSTEM_HTTP: "https://baton.lumen.example"}}
    settings = Settings(database_url=api.database_url, app_env="test", identity_providers=[provider])
    async with Runtime(settings) as runtime:
        command, caller = BindActorSubject(**binding), Caller.system(new_id())
        await runtime.service.execute(command, caller, target_id=UUID(ids["actor_id"]))


async def propose_oneself(api: Api, ids: Ids) -> None:
    command = AddGroupMember(actor_id=UUID(ids["actor_id"]))
    ids["proposal_id"] = await propose(api, ids, command, ids["group_id"], by=caller_of(api))


async def witness_run(api: Api, ids: Ids) -> None:
    """Record a run that happens elsewhere, as the account that tells its changes."""
    ids.setdefault("account_id", await MAKERS["account_id"](api, ids))
    plan = {"plan_id": ids["plan_id"], "document_uid": mark(), "name": "count 42", "began_at": "2026-10-06T08:00:00Z"}
    answer = await api.acting_as(ids["account_id"]).post("/runs/witness", plan)
    assert answer.status_code == 201, answer.text
    ids["run_id"] = answer.json()["run_id"]


async def end_witnessed_run(api: Api, ids: Ids) -> None:
    await witness_run(api, ids)
    over = {"change": "ended", "at": "2026-10-06T08:05:00Z", "end": {"exit_status": "success"}}
    await api.acting_as(ids["account_id"]).execute(f"/runs/{ids['run_id']}/witness", over)


async def register_root(api: Api, ids: Ids) -> None:
    ids["asset_id"] = await api.create("/assets", {"name": "Microscopy", "tier": "Unit", "facility_code": "facility"})


async def place_frame(api: Api, ids: Ids) -> None:
    ids["parent_frame_id"] = ids["frame_id"]
    await call_example(api, "register_frame", ids)


async def add_ports(api: Api, ids: Ids) -> None:
    ports = (await api.get(f"/assets/{ids['asset_id']}")).json()["ports"]
    for name, direction in (("trigger_in", "Input"), ("trigger_out", "Output")):
        if name not in {one["name"] for one in ports}:
            port = {"port_name": name, "direction": direction, "signal_type": "TTL"}
            await api.execute(f"/assets/{ids['asset_id']}/add-port", port)


async def register_air(api: Api, ids: Ids) -> None:
    air = {"kind": "compressed_air", "name": f"Air {mark()}", "facility_code": "facility"}
    ids["supply_id"] = await api.create("/supplies", air)


async def define_permit(api: Api, ids: Ids) -> None:
    audience = f"registry-{mark()}.example"
    signing = {"audience": audience, "purpose": "Signing", "secret_ref": "file://calibration"}
    credential = await api.create("/federation/credentials", {"facility_id": ids["facility_id"], **signing})
    ids["permit_id"] = await api.create("/federation/permits", grant(ids["facility_id"], credential, audience=audience))


async def permit_publication(api: Api, ids: Ids) -> None:
    """Let a peer be sent calibrations, signed with a key of the own facility."""
    (own,) = (await api.get("/federation/facilities", code="facility")).json()["items"]
    ids["facility_id"] = await register_site(api)
    key = {"audience": mark(), "purpose": "Signing", "secret_ref": "file://calibration"}
    credential = await api.create("/federation/credentials", {"facility_id": own["facility_id"], **key})
    asked = grant(ids["facility_id"], credential, audience=key["audience"])
    ids["permit_id"] = await api.create("/federation/permits", asked)


async def register_site(api: Api) -> str:
    site = {"code": f"site-{mark()}", "display_name": "Beta Source", "kind": "Site"}
    return await api.create("/federation/facilities", site)


async def anchor_site(api: Api, ids: Ids) -> None:
    ids["facility_id"] = await register_site(api)
    for name, purpose in (("online", "SealOnlineSigning"), ("offline", "SealOfflineRoot")):
        ids[f"{name}_credential_id"] = await create_anchor(api, ids["facility_id"], purpose, mark())


async def add_anchor(api: Api, ids: Ids) -> None:
    ids["new_online_credential_id"] = await create_anchor(api, ids["facility_id"], "SealOnlineSigning", mark())


async def receive_of_unknown_key(api: Api, ids: Ids) -> None:
    facility_id = await register_site(api)
    await open_inbound_permit(api, facility_id, "registry.example", "file://not-here-yet")
    ids["received_artifact_id"] = await receive_artifact(api, facility_id)


async def register_dataset(api: Api, ids: Ids) -> None:
    """Register a dataset of no run."""
    content = {name: EXAMPLES["register_dataset"][name] for name in ("name", "uri", "checksum", "byte_size", "encoding")}
    ids["dataset_id"] = await api.create("/datasets", {**content, "allow_duplicate": True})


async def register_edition(api: Api, ids: Ids) -> None:
    ids["edition_id"] = await create_edition(api, ids["actor_id"], mark())


async def record_publication(api: Api, ids: Ids) -> None:
    publication = RecordEditionPublication(external_id="10.5072/ed-1", external_id_scheme=ExternalIdScheme.DOI)
    await execute_internally(api, publication, ids["edition_id"])


async def choose_caution_proposal(api: Api, ids: Ids) -> None:
    ids["decision_id"] = ids["caution_proposal_id"]


async def register_procedure(api: Api, ids: Ids) -> None:
    """Register a procedure on nothing that another one holds."""
    ids["procedure_id"] = await api.create("/procedures", {"name": "Centre the axis", "kind": "alignment"})


async def register_phase(api: Api, ids: Ids) -> None:
    phase = {"name": "Flats", "kind": "flat_field", "parent_run_id": ids["run_id"]}
    ids["procedure_id"] = await api.create("/procedures", phase)


async def register_from_recipe(api: Api, ids: Ids, steps: list[dict[str, Any]], **fields: Any) -> None:
    realised = {"name": f"Steps {mark()}", "capability_id": ids["capability_id"], "steps": steps}
    recipe_id = await api.create("/recipes", realised)
    task = {"name": "Find the focus", "kind": "alignment", **fields}
    ids["procedure_id"] = await api.create(f"/recipes/{recipe_id}/procedures", task)


async def register_search(api: Api, ids: Ids) -> None:
    move = {"kind": "setpoint", "address": "bl7:focus", "value": {"__steering__": "focus"}}
    look = {"kind": "capture", "address": "bl7:sharpness", "capture_name": "sharpness"}
    await register_from_recipe(api, ids, [move, look])


async def register_run_procedure(api: Api, ids: Ids) -> None:
    move = {"kind": "setpoint", "address": "bl7:focus", "value": 4.2}
    await register_from_recipe(api, ids, [move], parent_run_id=ids["run_id"])


def hold_conduct(command_name: str, cause: HoldCause | None = None, **failure: Any) -> Step:
    """Return a step that holds the live conduct of a procedure for a failure, as its worker does."""

    async def hold(api: Api, ids: Ids) -> None:
        own = {"procedure_id": ids["procedure_id"], "conduct_id": ids["conduct_id"], "command_name": command_name}
        told = {"message": "Held.", **failure}
        result = ConductResult.model_validate({**own, "succeeded": False, "held": True, "failure": told})
        why = {} if cause is None else {"cause": cause}
        await execute_internally(api, HoldProcedure(reason="held", conducted=result, **why), ids["procedure_id"])

    return hold


BY_HAND = {"source_kind": "lifecycle", "target": "procedure", "error_class": "ProcedureHeld"}
LOST = {"step_index": 0, "source_kind": "action", "target": "expose", "error_class": "ActionOutcomeUnknown"}


async def wait_for_advice(api: Api, ids: Ids) -> None:
    begun = StartProcedureIteration(iteration_index=1, point={"focus": 0.0}, conduct_id=UUID(ids["conduct_id"]))
    for command in (begun, RecordProcedureOutcome(outcome=measured_pass(1))):
        await execute_internally(api, command, ids["procedure_id"])
    deadline = clock() + timedelta(minutes=10)
    await set_progress(api, ids["procedure_id"], waiting_for="advice", waiting_until=deadline, iteration_index=1)


async def wait_at_check(api: Api, ids: Ids) -> None:
    await set_progress(api, ids["procedure_id"], phase="Walking", step_index=2)


async def conduct(api: Api, ids: Ids) -> None:
    """Have a procedure conducted on a signal that no asset owns, up to a check that waits."""
    move = {"kind": "setpoint", "address": "free:m102", "value": 20.0}
    check = {"kind": "check", "address": "free:m102", "criterion": {"kind": "equals", "expected": 20.0}, "timeout": 30}
    ids["procedure_id"] = await api.create("/procedures", {"name": "Centre the axis", "kind": "alignment"})
    opened = await api.post(f"/procedures/{ids['procedure_id']}/conduct", {"wait": 0, "steps": [move, move, check]})
    assert opened.status_code == 202, opened.text
    ids["conduct_id"] = opened.json()["conduct_id"]


CLEARANCE_UNDER_REVIEW = ("register_clearance", "submit_clearance", "start_clearance_review")
CONDUCTED_RUN = (register_run_procedure, "conduct_run")
STEPS: dict[str, tuple[Step, ...]] = {
    "reactivate_actor": ("deactivate_actor",),
    "unbind_actor_subject": (bind_subject,),
    "add_group_member": ("register_actor",),
    "withdraw_proposal": (propose_oneself,),
    "record_visit_arrival": ("register_visit",),
    **dict.fromkeys(("hold_visit", "complete_visit", "abort_visit"), ("start_visit",)),
    "resume_visit": ("start_visit", "hold_visit"),
    "release_control_of_surface": ("start_visit", "take_control_of_surface"),
    **dict.fromkeys(
        ("activate_asset", "decommission_asset", "get_beamline_now", "get_beam_time", "open_queue"), (register_root,)
    ),
    "set_asset_overview": (register_root,),
    "exit_asset_maintenance": ("enter_asset_maintenance",),
    "add_asset_family": ("define_family",),
    "remove_asset_family": ("define_family", "add_asset_family"),
    "remove_asset_port": ("add_asset_port",),
    "remove_asset_alternate_identifier": ("add_asset_alternate_identifier",),
    "set_asset_signal_limits": ("add_asset_alternate_identifier",),
    "remove_asset_owner": ("add_asset_owner",),
    "attach_asset_to_fixture": ("detach_asset_from_fixture",),
    "uninstall_asset": ("detach_asset_from_fixture",),
    **dict.fromkeys(("decommission_mount", "install_asset"), ("register_mount", register_root, "activate_asset")),
    "add_family_role": ("define_role",),
    "add_model_family": ("define_family",),
    "remove_model_family": ("define_family", "add_model_family"),
    "update_frame_placement": (place_frame,),
    "decommission_frame": ("register_frame",),
    "mark_supply_available": (register_air,),
    "mark_supply_recovering": ("mark_supply_unavailable",),
    "restore_supply": ("degrade_supply",),
    "activate_clearance_template": ("define_clearance_template",),
    "submit_clearance": ("register_clearance",),
    "start_clearance_review": ("register_clearance", "submit_clearance"),
    "append_clearance_review_step": CLEARANCE_UNDER_REVIEW,
    "reject_clearance": CLEARANCE_UNDER_REVIEW,
    "assign_clearance_external_id": CLEARANCE_UNDER_REVIEW,
    "approve_clearance": (*CLEARANCE_UNDER_REVIEW, "append_clearance_review_step"),
    "activate_clearance": (*CLEARANCE_UNDER_REVIEW, "append_clearance_review_step", "approve_clearance"),
    "mount_subject": ("register_subject",),
    **dict.fromkeys(("return_subject", "store_subject", "discard_subject"), ("remove_subject",)),
    "bind_plan_role": ("unbind_plan_role",),
    "add_plan_wire": (add_ports,),
    "remove_plan_wire": (add_ports, "add_plan_wire"),
    "resume_run": ("hold_run",),
    "stop_run": ("hold_run",),
    "acknowledge_run": ("start_run", "stop_run"),
    "conduct_run": (register_run_procedure,),
    "hold_run": CONDUCTED_RUN,
    "abort_run": CONDUCTED_RUN,
    "hold_everything": ("start_run", *CONDUCTED_RUN, register_root),
    "add_run_to_campaign": ("start_run",),
    **dict.fromkeys(("hold_campaign", "close_campaign"), ("start_campaign",)),
    "resume_campaign": ("start_campaign", "hold_campaign"),
    "resume_procedure": ("hold_procedure",),
    "start_iteration": ("end_iteration",),
    **dict.fromkeys(("start_procedure", "conduct_procedure", "conduct_or_hold_procedure"), (register_procedure,)),
    "conduct_until_converged": (register_procedure,),
    "hold_procedure": (conduct,),
    "abort_procedure": (conduct,),
    "skip_procedure_wait": (conduct, wait_at_check),
    "resolve_procedure_step": (conduct, hold_conduct("ConductProcedure", HoldCause.OUTCOME_UNKNOWN, **LOST)),
    "conduct_from_procedure": (conduct, hold_conduct("ConductProcedure", **BY_HAND)),
    "conduct_until_advised": (register_search,),
    "conduct_until_advised_from": (
        *(register_search, "conduct_until_advised"),
        hold_conduct("ConductUntilAdvised", **BY_HAND),
    ),
    "advise_procedure": (register_search, "conduct_until_advised", wait_for_advice),
    "register_procedure_datasets": (
        *("set_plan_data_registration", register_phase),
        *("start_procedure", "complete_procedure"),
    ),
    "register_run_files": ("set_plan_data_registration", end_witnessed_run),
    "resume_schedule": ("hold_schedule",),
    "witness_run_change": (witness_run,),
    "resume_queue": ("hold_queue",),
    "promote_caution_proposal": (choose_caution_proposal,),
    "version_agent": ("define_agent",),
    "resume_agent": ("suspend_agent",),
    "announce_language_model_retirement": ("approve_language_model",),
    "retire_language_model": ("approve_language_model",),
    "publish_calibration_revision": (permit_publication, "activate_permit"),
    "promote_dataset": (register_dataset,),
    "demote_dataset": (register_dataset, "promote_dataset"),
    "mint_dataset_external_id": (register_dataset, "promote_dataset"),
    "register_distribution": (register_dataset,),
    "seal_edition": (register_edition,),
    "add_dataset_to_edition": (register_edition,),
    "remove_dataset_from_edition": (register_edition, "add_dataset_to_edition"),
    "withdraw_edition": (record_publication,),
    "complete_credential_rotation": ("start_credential_rotation",),
    "abort_credential_rotation": ("start_credential_rotation",),
    "remove_facility_trust_anchor_credential": ("add_facility_trust_anchor_credential",),
    "activate_permit": (define_permit,),
    "resume_permit": ("suspend_permit",),
    "recheck_received_artifact": (receive_of_unknown_key,),
    "initialize_seal": (anchor_site,),
    "rotate_seal_online_key": (add_anchor,),
    "complete_seal_republishing": ("start_seal_republishing",),
}
"""By the name of an operation, what brings its objects into a state that allows it, where they are not made in one."""


async def create_capability(api: Api, ids: Ids) -> str:
    contract = {"name": "Fly scan", "required_affordances": [], "executor_shapes": ["METHOD"]}
    return await api.create("/capabilities", {"code": f"baton.capability.{mark()}", **contract})


async def create_recipe(api: Api, ids: Ids) -> str:
    steps = EXAMPLES["define_recipe"]["steps"]
    named = {"name": f"Fly scan {mark()}", "capability_id": ids["capability_id"], "steps": steps}
    return await api.create("/recipes", named)


async def create_peer(api: Api, ids: Ids) -> str:
    facility_id = await api.create("/federation/facilities", {"code": PEER, "display_name": "Alpha Source", "kind": "Site"})
    await open_inbound_permit(api, facility_id, "alpha.example")
    return facility_id


async def create_adopting_calibration(api: Api, ids: Ids) -> str:
    same = {"quantity": "rotation_center", "operating_point": AT_25_KEV}
    return await api.create("/calibrations", {"target_id": str(new_id()), **same})


async def create_id(api: Api, ids: Ids) -> str:
    return str(new_id())


MAKERS: dict[str, Callable[[Api, Ids], Awaitable[str]]] = {
    "account_id": lambda api, ids: api.create("/actors", {"name": "Plant bridge", "kind": "service_account"}),
    "adopting_calibration_id": create_adopting_calibration,
    "camera_asset_id": lambda api, ids: create_camera(api, mark()),
    "event_id": create_id,
    "peer_facility_id": create_peer,
    "replaced_by_capability_id": create_capability,
    "replaced_by_recipe_id": create_recipe,
    "storage_supply_id": lambda api, ids: create_storage(api, f"Archive {mark()}"),
}
"""By the name of a placeholder, what makes one such thing, where `samples.py` has none."""


async def prepare_operation(api: Api, operation: Operation, shared: Ids) -> Ids:
    """Return the ids that an operation is tried with, of objects in a state that allows it."""
    ids = dict(shared)
    if operation.kind == "command" and not operation.creates:
        ids = await renew_samples(api, shared, operation)
    await bring_into_state(api, operation.name, ids)
    return ids


async def bring_into_state(api: Api, name: str, ids: Ids) -> None:
    """Take the steps that come before an operation."""
    for step in STEPS.get(name, ()):
        await (call_example(api, step, ids) if isinstance(step, str) else step(api, ids))


async def call_example(api: Api, name: str, ids: Ids) -> None:
    """Call an operation with its example, which must succeed; ids in the answer are known from then on."""
    operation = REGISTRY.operations[name]
    arguments = await example_arguments(api, operation, ids)
    if (field := UNIQUE.get(name)) is not None:
        arguments[field] += f"-{mark()}"
    answer = await call(api, operation, arguments)
    assert answer.is_success, f"{name}: {answer.text}"
    answered = answer.json() if answer.content else {}
    ids |= {field: value for field, value in answered.items() if field.endswith("_id")}


async def example_arguments(api: Api, operation: Operation, ids: Ids) -> dict[str, Any]:
    """Return the example of an operation, once there is all that it and its caller refer to."""
    needed = {*PLACEHOLDER.findall(str(operation.example))}
    if operation.name in CALLERS:
        needed.add(CALLERS[operation.name])
    for name in sorted(needed - ids.keys()):
        ids[name] = await MAKERS[name](api, ids)
    arguments: dict[str, Any] = fill(operation.example, ids.__getitem__)
    if operation.name == "approve_proposal":
        arguments["digest"] = (await api.get(f"/proposals/{ids['proposal_id']}")).json()["digest"]
    return arguments


async def call(api: Api, operation: Operation, arguments: dict[str, Any]) -> httpx.Response:
    """Return the answer to a request with these arguments; of a stream, its head."""
    path = operation.path.format(**arguments)
    fields = {name: value for name, value in arguments.items() if name not in operation.placeholders}
    if operation.has_body:
        return await api.request(operation.method, path, json=fields)
    if not operation.name.startswith("stream_"):
        return await api.request(operation.method, path, params=fields)
    async with api.client.stream("GET", path, params=fields) as answer:
        return answer
