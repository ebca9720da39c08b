"""What runs are started on over REST: plans, clearances in force, and a tomography beamline that has everything."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from tests.support.api.samples import DIALECT
from tests.support.service import Api

EXPOSURE = {"type": "number", "minimum": 0.001, "unit": {"system": "udunits", "code": "s"}}
PARAMETERS = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {"energy": {"type": "number"}, "exposure": EXPOSURE, "projections": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
    "unevaluatedProperties": False,
}
DEFAULTS = {"energy": 25, "exposure": 0.1, "projections": 1500}
SEARCHED = {"monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:B:PERMIT"}, "reason": "read"}
APPROVED = {"role": "BeamlineScientist", "decision": "Approved"}


@dataclass(frozen=True)
class PlanWithTemplates:
    """A plan and the templates it hangs on."""

    plan_id: str
    method_id: str
    capability_id: str


async def create_plan(
    api: Api,
    *asset_ids: str,
    supplies: tuple[str, ...] = (),
    parameters: dict[str, Any] | None = None,
    defaults: dict[str, Any] | None = None,
) -> PlanWithTemplates:
    """A plan that binds these assets to a method of its own."""
    mark = uuid4().hex[:8]
    contract = {
        "name": "Imaging",
        "required_affordances": [],
        "executor_shapes": ["METHOD", "PROCEDURE"],
        "parameters_schema": parameters,
    }
    capability = await api.create("/capabilities", {"code": f"baton.capability.imaging_{mark}", **contract})
    technique = {"name": "tomography", "capability_id": capability, "needed_supplies": supplies}
    method = await api.create("/methods", {**technique, "parameters_schema": parameters})
    site = {"code": f"site-{mark}", "display_name": "Lumen Light Source", "kind": "Site"}
    adopted = {"method_id": method, "site_id": await api.create("/federation/facilities", site)}
    practice = await api.create("/practices", {"name": "Tomography, imaging hutch", **adopted})
    plan = await api.create("/plans", {"name": "Spring block", "practice_id": practice, "asset_ids": asset_ids})
    if defaults is not None:
        patch = {"default_parameters_patch": defaults}
        patched = await api.request("PATCH", f"/plans/{plan}/default-parameters", json=patch)
        assert patched.status_code == 204, patched.text
    return PlanWithTemplates(plan, method, capability)


async def create_clearance(api: Api, *asset_ids: str, facility_code: str = "facility") -> str:
    """A clearance in force for these assets."""
    form = {"code": f"ESAF-{uuid4().hex[:8]}", "title": "Safety form", "facility_code": facility_code}
    template = await api.create("/clearance-templates", form)
    await api.execute(f"/clearance-templates/{template}/activate")
    bindings = [{"kind": "Asset", "id": id} for id in asset_ids]
    registered = {"template_id": template, "facility_code": facility_code, "title": "Tomography", "bindings": bindings}
    clearance = await api.create("/clearances", registered)
    await bring_into_force(api, clearance)
    return clearance


async def bring_into_force(api: Api, clearance_id: str) -> None:
    """Lead a clearance through its review."""
    for verb, body in (
        ("submit", {}),
        ("start-review", {"first_reviewer_role": "BeamlineScientist"}),
        ("append-review-step", {"step_index": 0, **APPROVED}),
        ("approve", {}),
        ("activate", {}),
    ):
        await api.execute(f"/clearances/{clearance_id}/{verb}", body)


@dataclass(frozen=True)
class Beamline:
    """A rotary stage and a camera in a searched hutch, with beam, a clearance, a mounted subject and a plan."""

    api: Api
    monitor: Api
    unit_id: str
    rotary_id: str
    camera_id: str
    enclosure_id: str
    supply_id: str
    subject_id: str
    plan_id: str

    async def start(self, **fields: Any) -> httpx.Response:
        return await self.api.post("/runs", {"name": "Load step 1", "plan_id": self.plan_id, **fields})

    async def start_run(self, **fields: Any) -> str:
        """The id of a run that is on."""
        answer = await self.start(**fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run_id"])

    async def campaign(self) -> str:
        series = {"name": "Alloy fatigue series", "intent": "Series", "lead_actor_id": str(uuid4())}
        return await self.api.create("/campaigns", series)

    async def observe(self, status: str, enclosure_id: str | None = None) -> None:
        await self.monitor.execute(
            f"/enclosures/{enclosure_id or self.enclosure_id}/observe-status", {"new_status": status, **SEARCHED}
        )


async def beamline(api: Api) -> Beamline:
    """A beamline on which everything lets a run start."""
    monitor = await api.create("/actors", {"name": "Interlock bridge", "kind": "service_account"})
    mark = uuid4().hex[:8]
    hutch = await api.create("/enclosures", {"name": f"Imaging hutch {mark}", "facility_code": "facility"})
    beam = {"kind": "photon_beam", "name": f"Beam {mark}", "facility_code": "facility"}
    supply = await api.create("/supplies", beam)
    await api.execute(f"/supplies/{supply}/mark-available", {"reason": "shutter open"})
    tomography = {"name": "Tomography", "tier": "Unit", "facility_code": "facility", "located_in_enclosure_id": hutch}
    unit = await api.create("/assets", tomography)
    rotary = await api.create("/assets", {"name": "Rotary stage", "tier": "Device", "parent_id": unit})
    camera = await api.create("/assets", {"name": "Camera", "tier": "Device", "parent_id": unit})
    await api.execute(f"/assets/{rotary}/activate")
    await create_clearance(api, unit)
    subject = await api.create("/subjects", {"name": "Alloy bar 7"})
    await api.execute(f"/subjects/{subject}/mount", {"asset_id": rotary, "reason": "loaded"})
    plan = await create_plan(api, rotary, camera, supplies=("photon_beam",), parameters=PARAMETERS, defaults=DEFAULTS)
    made = Beamline(api, api.acting_as(monitor), unit, rotary, camera, hutch, supply, subject, plan.plan_id)
    await made.observe("Permitted")
    return made
