"""A beamline on which runs start, with a plan, its parameters and two recipes, as the pages of starts and queues need it."""

from dataclasses import dataclass
from uuid import uuid4

from baton.domain.shared.schema import DIALECT
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.console.page_source import PageSource
from tests.support.service import Api

EXPOSURE = {"type": "number", "minimum": 0.001, "maximum": 2, "unit": {"system": "udunits", "code": "s"}}
PARAMETERS = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {
        "exposure": EXPOSURE,
        "binning": {"type": "integer", "enum": [1, 2, 4]},
        "angles": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["exposure"],
    "additionalProperties": False,
}
DEFAULTS = {"exposure": 0.1, "binning": 2}
STEPS = [{"kind": "setpoint", "address": "bl7:exposure", "value": {"__binding__": "exposure"}}]


@dataclass(frozen=True)
class Hall:
    """A beamline on which everything lets a run start, a plan with parameters, and two recipes that realise it."""

    line: Beamline
    plan_id: str
    flats_id: str
    scan_id: str
    position: str  # where all of this is on the log

    @property
    def path(self) -> str:
        return f"/console/start/plans/{self.plan_id}"

    def form(self, page: PageSource, **typed: str) -> dict[str, str]:
        """Return what a browser sends of the form of the plan, with what is typed into it."""
        hidden = {name: page.value(name) for name in ("form_token", "_key", "_name")}
        return {**hidden, "phase.0": self.scan_id, "parameters.exposure": "0.1", "parameters.binning": "2", **typed}


async def open_hall(api: Api) -> Hall:
    """Put such a hall on record."""
    line, mark = await beamline(api), uuid4().hex[:8]
    contract = {"name": "Imaging", "required_affordances": [], "executor_shapes": ["METHOD", "PROCEDURE"]}
    code = f"baton.capability.imaging_{mark}"
    capability = await api.create("/capabilities", {"code": code, **contract, "parameters_schema": PARAMETERS})
    technique = {"name": "tomography", "capability_id": capability, "needed_supplies": ["photon_beam"]}
    method = await api.create("/methods", {**technique, "parameters_schema": PARAMETERS})
    site = {"code": f"site-{mark}", "display_name": "Lumen Light Source", "kind": "Site"}
    adopted = {"method_id": method, "site_id": await api.create("/federation/facilities", site)}
    practice = await api.create("/practices", {"name": "Tomography, imaging hutch", **adopted})
    bound = {"name": "Fast tomography", "practice_id": practice, "asset_ids": [line.rotary_id, line.camera_id]}
    plan = await api.create("/plans", bound)
    patch = {"default_parameters_patch": DEFAULTS}
    assert (await api.request("PATCH", f"/plans/{plan}/default-parameters", json=patch)).status_code == 204
    steps = {"capability_id": capability, "steps": STEPS}
    flats, scan = [await api.create("/recipes", {"name": name, **steps}) for name in ("Flats", "Scan")]
    return Hall(line, plan, flats, scan, str(await api.execute(f"/plans/{plan}/version", {"version_tag": "2026-1"})))
