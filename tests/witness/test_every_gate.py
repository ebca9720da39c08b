"""Each gate of start_run, closed by itself, keeps a scan from beginning; with its sentence, and without a document."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.support.api.rest_beamline import Beamline, beamline, create_plan
from tests.support.service import running_api
from tests.support.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.soak]


class Scene:
    """A beamline, the plan that a gate asks by, and the metadata of the scan."""

    def __init__(self, line: Beamline) -> None:
        self.line, self.api, self.plan_id = line, line.api, line.plan_id
        self.metadata: dict[str, Any] = {}

    async def unit_of_its_own(self) -> str:
        """Return an asset that no clearance covers."""
        return await self.api.create(
            "/assets", {"name": f"Bench {uuid4().hex[:6]}", "tier": "Unit", "facility_code": "facility"}
        )

    async def plan_of(self, **method: Any) -> str:
        """Return a plan with the beamline's assets, for a method of its own."""
        capability = {"code": f"baton.capability.c{uuid4().hex[:8]}", "name": "Imaging", "required_affordances": []}
        capability_id = await self.api.create("/capabilities", {**capability, "executor_shapes": ["METHOD"]})
        method_id = await self.api.create("/methods", {"name": "tomography", "capability_id": capability_id, **method})
        site = {"code": f"site-{uuid4().hex[:8]}", "display_name": "Lumen", "kind": "Site"}
        adopted = {"method_id": method_id, "site_id": await self.api.create("/federation/facilities", site)}
        practice = await self.api.create("/practices", {"name": "Tomography here", **adopted})
        assets = [self.line.rotary_id, self.line.camera_id]
        return await self.api.create("/plans", {"name": "Block", "practice_id": practice, "asset_ids": assets})


async def close_enclosure(scene: Scene) -> None:
    await scene.line.observe("NotPermitted")


async def take_beam(scene: Scene) -> None:
    await scene.api.execute(f"/supplies/{scene.line.supply_id}/mark-unavailable", {"reason": "beam dump"})


async def need_helium(scene: Scene) -> None:
    scene.plan_id = (await create_plan(scene.api, scene.line.rotary_id, supplies=("liquid_helium",))).plan_id


async def leave_clearance(scene: Scene) -> None:
    scene.plan_id = (await create_plan(scene.api, await scene.unit_of_its_own())).plan_id


async def expire_clearance(scene: Scene) -> None:
    [clearance] = (await scene.api.get("/clearances")).json()["items"]
    await scene.api.execute(f"/clearances/{clearance['clearance_id']}/expire", {"reason": "the week is over"})


async def deprecate_plan(scene: Scene) -> None:
    await scene.api.execute(f"/plans/{scene.plan_id}/deprecate", {"reason": "another one"})


async def name_unmounted_subject(scene: Scene) -> None:
    await scene.api.create("/subjects", {"name": "Foil 9"})

    async def is_listed() -> bool:
        return bool((await scene.api.get("/subjects", name="Foil 9")).json()["items"])

    await until(is_listed)
    scene.metadata["sample"] = "Foil 9"


async def decommission_camera(scene: Scene) -> None:
    await scene.api.execute(f"/assets/{scene.line.camera_id}/decommission")


async def give_bad_parameters(scene: Scene) -> None:
    scene.metadata["plan_args"] = {"exposure": -4}


async def leave_role_open(scene: Scene) -> None:
    meant = {"name": f"Watcher {uuid4().hex[:6]}", "description": "It sees the sample.", "required_affordances": []}
    role = await scene.api.create("/roles", meant)
    plan = (await scene.api.get(f"/plans/{scene.plan_id}")).json()
    requirement = {"role_name": "detector", "role_id": role}
    await scene.api.execute(f"/methods/{plan['method_id']}/add-required-role", {"requirement": requirement})


async def remove_wired_port(scene: Scene) -> None:
    ends = ((scene.line.rotary_id, "trigger_out", "Output"), (scene.line.camera_id, "trigger_in", "Input"))
    for id, name, direction in ends:
        port = {"port_name": name, "direction": direction, "signal_type": "TTL"}
        await scene.api.execute(f"/assets/{id}/add-port", port)
    wire = {"source_asset_id": ends[0][0], "source_port_name": "trigger_out"}
    wire |= {"target_asset_id": ends[1][0], "target_port_name": "trigger_in"}
    await scene.api.execute(f"/plans/{scene.plan_id}/add-wire", wire)
    await scene.api.execute(f"/assets/{ends[0][0]}/remove-port", {"port_name": "trigger_out"})


async def lose_family(scene: Scene) -> None:
    family = await scene.api.create("/families", {"name": f"Cameras {uuid4().hex[:6]}", "affordances": []})
    await scene.api.execute(f"/assets/{scene.line.camera_id}/add-family", {"family_id": family})
    scene.plan_id = await scene.plan_of(needed_family_ids=[family])
    await scene.api.execute(f"/assets/{scene.line.camera_id}/remove-family", {"family_id": family})


CLOSERS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "enclosure_permitted": close_enclosure,
    "supply_available": take_beam,
    "supply_present": need_helium,
    "clearance_present": leave_clearance,
    "clearance_active": expire_clearance,
    "plan_current": deprecate_plan,
    "subject_mounted": name_unmounted_subject,
    "assets_in_service": decommission_camera,
    "parameters_valid": give_bad_parameters,
    "roles_played": leave_role_open,
    "wires_connected": remove_wired_port,
    "families_covered": lose_family,
}


@pytest.mark.parametrize("gate", CLOSERS)
async def test_a_gate_that_is_closed_by_itself_keeps_a_scan_from_beginning(database_url: str, gate: str) -> None:
    from baton_bluesky import BatonGate, BatonGateClosed
    from tests.support.witness.scans import Diode, make_engine, steps

    async with running_api(database_url) as api:
        account = await api.create("/actors", {"name": "Bluesky", "kind": "service_account"})
        os.environ["BATON_PRINCIPAL_ID"] = account
        scene = Scene(await beamline(api))
        engine, documents = make_engine()
        engine.preprocessors.append(BatonGate(api.base_url, scene.plan_id))
        await asyncio.to_thread(engine, steps(Diode()))
        begun = len(documents)
        assert begun == 6, "every gate is open"
        await CLOSERS[gate](scene)
        engine.preprocessors[:] = [BatonGate(api.base_url, scene.plan_id)]
        with pytest.raises(BatonGateClosed) as closed:
            await asyncio.to_thread(engine, steps(Diode(), **scene.metadata))
        assert len(documents) == begun
        asked = {"name": "steps", "plan_id": scene.plan_id, "override_parameters": scene.metadata.get("plan_args", {})}
        if "sample" in scene.metadata:
            [subject] = (await api.get("/subjects", name="Foil 9")).json()["items"]
            asked["subject_id"] = subject["subject_id"]
        verdicts = (await api.post("/runs/preflight", asked)).json()["gates"]
        assert gate in {one["gate"] for one in verdicts if not one["passed"]}
        assert closed.value.sentences == tuple(one["detail"] for one in verdicts if not one["passed"])
