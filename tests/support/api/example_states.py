"""What is done before the example of an operation is tried, where `command_states.py` does not do it, and what stands for
its placeholders."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from baton.application.caller import Caller
from baton.application.commands import system_batch
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.access.subject_binding import BindActorSubject
from baton.domain.kernel import Command
from baton.domain.operation.conduct.progress import ConductProgress
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.procedure.endings import HoldProcedure
from baton.domain.operation.procedure.iterations import StartProcedureIteration
from baton.domain.operation.steering.steered_conduct import RecordProcedureOutcome
from baton.domain.registry import Operation
from baton.domain.shared.examples import EXAMPLES
from baton.domain.shared.writes import Put
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.api.command_states import (
    PREPARATIONS,
    STEPS,
    Body,
    Ids,
    Prepare,
    commissioned_asset,
    conducted_procedure,
    defined_procedure,
    frame_to_move,
    post_accepted,
    procedure_to_search,
)
from tests.support.api.sample_parts.data import create_camera, create_storage
from tests.support.api.sample_parts.federation import open_inbound_permit
from tests.support.api.samples import SYSTEM_HTTP, placement_in, renew_samples
from tests.support.domain.calibrations import AT_25_KEV
from tests.support.domain.conducts import measured_pass
from tests.support.domain.peers import grant
from tests.support.service import Api

PEER = "alpha-source"
STATES: dict[str, Prepare] = {one.command: one.prepare for one in reversed(PREPARATIONS)}
"""By the name of an operation, what brings its objects into the state that its example needs."""
CALLERS: dict[str, str] = {
    "observe_supply_status": "account_id",
    "observe_enclosure_status": "account_id",
    "publish_calibration_revision": "actor_id",
    "adopt_received_artifact": "actor_id",
}
"""The operations that not every caller may use, and who uses them here."""


def state_for(*names: str) -> Callable[[Prepare], Prepare]:
    """List a preparation for the examples of these operations."""

    def add(prepare: Prepare) -> Prepare:
        STATES.update(dict.fromkeys(names, prepare))
        return prepare

    return add


def state_after(name: str, *verbs: tuple[str, Body | None]) -> None:
    """List a preparation that gives other commands first: the paths of their verbs, and their bodies."""

    @state_for(name)
    async def give(api: Api, ids: Ids) -> None:
        for path, body in verbs:
            await post_accepted(api, path.format(**ids), body)


@asynccontextmanager
async def running_runtime(api: Api, **settings: Any) -> AsyncIterator[Runtime]:
    async with Runtime(Settings(database_url=api.database_url, app_env="test", **settings)) as runtime:
        yield runtime


async def execute_internally(api: Api, command: Command, target_id: str, **settings: Any) -> None:
    """Execute a command as the service itself."""
    async with running_runtime(api, **settings) as runtime:
        await runtime.service.execute(command, Caller.system(new_id()), target_id=UUID(target_id))


async def set_progress(api: Api, procedure_id: str, **changes: Any) -> None:
    """Change how far a conduct has come, as its worker does."""
    async with running_runtime(api) as runtime, runtime.store.session() as session:
        (row,) = await session.records(ConductProgress, {"procedure_id": UUID(procedure_id)})
        await session.append(system_batch("ConductProcedure", clock, new_id, Put(replace(row, **changes))))


ASSET, PLAN, PROCEDURE = "/assets/{asset_id}", "/plans/{plan_id}", "/procedures/{procedure_id}"
ROTARY: Body = {"kind": "EPICS_PV", "value": "bl7:rotary"}
PORTS: list[Body] = [
    {"port_name": "trigger_in", "direction": "Input", "signal_type": "TTL"},
    {"port_name": "trigger_out", "direction": "Output", "signal_type": "TTL"},
]
STATES["decommission_asset"] = commissioned_asset
state_after("remove_asset_port", (f"{ASSET}/add-port", PORTS[0]))
for name in ("remove_asset_alternate_identifier", "set_asset_signal_limits"):
    state_after(name, (f"{ASSET}/add-alternate-identifier", ROTARY))
state_after("bind_plan_role", (f"{PLAN}/unbind-role", {"role_name": "stage"}))
state_after("start_iteration", (f"{PROCEDURE}/iterations/end", {"iteration_index": 1, "converged": False}))


@state_for("unbind_actor_subject")
async def bound_subject(api: Api, ids: Ids) -> None:
    binding = EXAMPLES["unbind_actor_subject"]
    provider = {
        "issuer": binding["issuer"],
        "jwks_url": f"{binding['issuer']}/keys",
        "audiences": {SYSTEM_HTTP: "https://baton.lumen.example"},
    }
    await execute_internally(api, BindActorSubject(**binding), ids["actor_id"], identity_providers=[provider])


@state_for("attach_asset_to_fixture")
async def detached_asset(api: Api, ids: Ids) -> None:
    await post_accepted(api, f"/assets/{ids['asset_id']}/fixture/detach", {"fixture_id": ids["fixture_id"]})


@state_for("add_family_role")
async def another_role(api: Api, ids: Ids) -> None:
    turning = {"description": "Turns things.", "required_affordances": ["Rotatable"]}
    ids["role_id"] = await api.create("/roles", {"name": f"Turntable {uuid4().hex[:8]}", **turning})


@state_for("update_frame_placement")
async def placed_frame(api: Api, ids: Ids) -> None:
    ids["parent_frame_id"] = ids["frame_id"]
    await frame_to_move(api, ids)


@state_for("decommission_frame")
async def empty_frame(api: Api, ids: Ids) -> None:
    ids["frame_id"] = await api.create("/frames", {"name": "Breadboard"})


@state_for("decommission_mount", "install_asset")
async def empty_mount(api: Api, ids: Ids) -> None:
    slot = {"slot_code": f"B-{uuid4().hex[:8]}", "placement": placement_in(ids["frame_id"])}
    ids["mount_id"] = await api.create("/mounts", slot)
    ids["asset_id"] = await api.create("/assets", {"name": "Lens", "tier": "Unit", "facility_code": "facility"})
    await post_accepted(api, f"/assets/{ids['asset_id']}/activate")


@state_for("add_plan_wire")
async def ported_asset(api: Api, ids: Ids) -> None:
    ports = (await api.get(f"/assets/{ids['asset_id']}")).json()["ports"]
    for port in PORTS:
        if port["port_name"] not in {one["name"] for one in ports}:
            await post_accepted(api, f"/assets/{ids['asset_id']}/add-port", port)


@state_for("remove_plan_wire")
async def wired_plan(api: Api, ids: Ids) -> None:
    await ported_asset(api, ids)
    ends = {"source_asset_id": ids["asset_id"], "target_asset_id": ids["asset_id"]}
    ports = {"source_port_name": "trigger_out", "target_port_name": "trigger_in"}
    await post_accepted(api, f"/plans/{ids['plan_id']}/add-wire", {**ends, **ports})


@state_for("get_beamline_now", "hold_everything", "open_queue")
async def root_asset(api: Api, ids: Ids) -> None:
    ids["asset_id"] = await api.create("/assets", {"name": "Microscopy", "tier": "Unit", "facility_code": "facility"})


async def hold_conduct(api: Api, ids: Ids, command_name: str) -> None:
    """Hold the live conduct of a procedure before its first step, as its worker does when somebody asks for it."""
    own = {"procedure_id": ids["procedure_id"], "conduct_id": ids["conduct_id"], "command_name": command_name}
    failure = {"source_kind": "lifecycle", "target": "procedure", "error_class": "ProcedureHeld", "message": "Held."}
    result = ConductResult.model_validate({**own, "succeeded": False, "held": True, "failure": failure})
    await execute_internally(api, HoldProcedure(reason="shift change", conducted=result), ids["procedure_id"])


@state_for("conduct_from_procedure")
async def held_conduct(api: Api, ids: Ids) -> None:
    await conducted_procedure(api, ids)
    await hold_conduct(api, ids, "ConductProcedure")


async def live_search(api: Api, ids: Ids) -> None:
    """A search that is conducted."""
    body = await procedure_to_search(api, ids)
    opened = await post_accepted(api, f"/procedures/{ids['procedure_id']}/steering/conduct", body)
    ids["conduct_id"] = opened["conduct_id"]


@state_for("conduct_until_advised_from")
async def held_search(api: Api, ids: Ids) -> None:
    await live_search(api, ids)
    await hold_conduct(api, ids, "ConductUntilAdvised")


@state_for("advise_procedure")
async def waiting_search(api: Api, ids: Ids) -> None:
    await live_search(api, ids)
    begun = StartProcedureIteration(iteration_index=1, point={"focus": 0.0}, conduct_id=UUID(ids["conduct_id"]))
    for command in (begun, RecordProcedureOutcome(outcome=measured_pass(1))):
        await execute_internally(api, command, ids["procedure_id"])
    deadline = clock() + timedelta(minutes=10)
    await set_progress(api, ids["procedure_id"], waiting_for="advice", waiting_until=deadline, iteration_index=1)


@state_for("skip_procedure_wait")
async def waiting_check(api: Api, ids: Ids) -> None:
    await defined_procedure(api, ids)
    move, check = STEPS
    body = {"wait": 0, "steps": [move, move, {**check, "timeout": 30}]}
    opened = await post_accepted(api, f"/procedures/{ids['procedure_id']}/conduct", body)
    ids["conduct_id"] = opened["conduct_id"]
    await set_progress(api, ids["procedure_id"], phase="Walking", step_index=2)


@state_for("publish_calibration_revision")
async def permitted_publication(api: Api, ids: Ids) -> None:
    """A peer that may be sent calibrations, signed with a key of the own facility."""
    (own,) = (await api.get("/federation/facilities", code="facility")).json()["items"]
    site = {"code": f"site-{uuid4().hex[:8]}", "display_name": "Beta Source", "kind": "Site"}
    ids["facility_id"] = await api.create("/federation/facilities", site)
    key = {"audience": site["code"], "purpose": "Signing", "secret_ref": "file://calibration"}
    credential_id = await api.create("/federation/credentials", {"facility_id": own["facility_id"], **key})
    permit_id = await api.create("/federation/permits", grant(ids["facility_id"], credential_id, audience=site["code"]))
    await post_accepted(api, f"/federation/permits/{permit_id}/activate")


@state_for("register_distribution")
async def dataset_to_copy(api: Api, ids: Ids) -> None:
    content = {name: EXAMPLES["register_dataset"][name] for name in ("name", "uri", "checksum", "byte_size", "encoding")}
    ids["dataset_id"] = await api.create("/datasets", content)


@state_for("promote_caution_proposal")
async def proposed_caution(api: Api, ids: Ids) -> None:
    ids["decision_id"] = ids["caution_proposal_id"]


async def create_account(api: Api, ids: Ids) -> str:
    return await api.create("/actors", {"name": "Plant bridge", "kind": "service_account"})


async def create_storage_supply(api: Api, ids: Ids) -> str:
    return await create_storage(api, f"Archive {uuid4().hex[:8]}")


async def create_camera_asset(api: Api, ids: Ids) -> str:
    return await create_camera(api, uuid4().hex[:8])


async def create_capability(api: Api, ids: Ids) -> str:
    contract = {"name": "Fly scan", "required_affordances": [], "executor_shapes": ["METHOD"]}
    return await api.create("/capabilities", {"code": f"baton.capability.{uuid4().hex[:8]}", **contract})


async def create_recipe(api: Api, ids: Ids) -> str:
    steps = EXAMPLES["define_recipe"]["steps"]
    named = {"name": f"Fly scan {uuid4().hex[:8]}", "capability_id": ids["capability_id"], "steps": steps}
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
    "account_id": create_account,
    "adopting_calibration_id": create_adopting_calibration,
    "camera_asset_id": create_camera_asset,
    "event_id": create_id,
    "peer_facility_id": create_peer,
    "replaced_by_capability_id": create_capability,
    "replaced_by_recipe_id": create_recipe,
    "storage_supply_id": create_storage_supply,
}
"""By the name of a placeholder, what makes one such thing, where `samples.py` has none."""


async def prepare_example(api: Api, operation: Operation, shared: Ids) -> Ids:
    """Return the ids that stand for the placeholders of an operation's example, of objects in a state that allows it."""
    ids = dict(shared)
    if operation.kind == "command" and not operation.creates:
        ids = await renew_samples(api, shared, operation.context)
    if (prepare := STATES.get(operation.name)) is not None:
        named: Body = await prepare(api, ids) or {}
        ids |= {name: value for name, value in named.items() if name.endswith("_id")}
    return ids
