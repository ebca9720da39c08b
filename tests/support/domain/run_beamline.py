"""A beamline on which a run can start, and for every gate one thing that keeps it from starting."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from baton.domain.campaign.campaign import AbandonCampaign, RegisterCampaign
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus
from baton.domain.equipment.asset_parts import RemoveAssetFamily, RemoveAssetPort
from baton.domain.equipment.asset_tree import DecommissionAsset, RelocateAsset
from baton.domain.recipe.plan import DeprecatePlan, UpdatePlanDefaultParameters
from baton.domain.run.run import Run
from baton.domain.start.run_start import StartRun
from baton.domain.subject.subject import MountSubject, RegisterSubject
from baton.domain.supply.supply import MarkSupplyAvailable, MarkSupplyUnavailable, RegisterSupply
from baton.domain.views.run_preflight import Preflight, PreflightRun
from tests.support.domain.assets import LUMEN, enclosure, facility_world
from tests.support.domain.calibrations import append_revision, rotation_center
from tests.support.domain.clearances import binding, clearance_in_status, template
from tests.support.domain.plans import PlanHutch, imaging_hutch
from tests.support.domain.world import World, new_id

TTL = timedelta(seconds=120)
AT_30_KEV = {"energy": 30, "optics_config": "5x"}
SEARCHED = {"reason": "search complete", "monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:B:SEARCHED"}}
DEFAULTS = {"dwell": 0.1, "repetitions": 20}


@dataclass
class Beamline:
    """An imaging hutch with beam, a searched enclosure, an active clearance and a mounted subject."""

    world: World
    hutch: PlanHutch
    enclosure_id: UUID
    plan_id: UUID
    subject_id: UUID
    campaign_id: UUID
    supply_id: UUID | None = None
    request: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> "Beamline":
        world = self.world.copy()
        return replace(self, world=world, hutch=replace(self.hutch, world=world), request=self.request.copy())

    def start(self, **fields: Any) -> UUID:
        return self.world.create(StartRun(**{**self.request, **fields}))

    def preflight(self, **fields: Any) -> Preflight:
        answer: Preflight = self.world.ask(PreflightRun(**{**self.request, **fields}))
        return answer

    def run(self, id: UUID) -> Run:
        state: Run = self.world.state(Run, id)
        return state

    def observe(self, status: str = "Permitted") -> None:
        self.world.when(ObserveEnclosureStatus(new_status=status, **SEARCHED), on=self.enclosure_id)

    def lose_beam(self) -> None:
        assert self.supply_id is not None
        self.world.when(MarkSupplyUnavailable(reason="beam dump"), on=self.supply_id)


def beamline(*broken: str) -> Beamline:
    """A beamline on which everything lets a run start, except for these gates."""
    return _built_beamline(broken).copy()


@cache
def _beamline_without_gates() -> Beamline:
    """A beamline to which neither clearance, supply, permit, sample nor player of a role was added yet."""
    world = facility_world()
    del world.claims["facility-code", LUMEN]
    world.ports["deployment"].enclosure_observation_ttl = TTL
    hutch = imaging_hutch(world)
    hutch.role()
    plan_id = hutch.define_plan()
    hutch.wire(plan_id, hutch.timing_box, "trigger_out", hutch.camera, "trigger_in")
    world.when(UpdatePlanDefaultParameters(default_parameters_patch=DEFAULTS), on=plan_id)
    enclosure_id = enclosure(world)
    world.when(RelocateAsset(located_in_enclosure_id=enclosure_id, reason="it stands there"), on=hutch.beamline)
    subject_id = world.create(RegisterSubject(name="Catalyst pellet B-12"))
    series = {"name": "Alloy fatigue series", "intent": "Series", "lead_actor_id": new_id()}
    made = Beamline(
        world=world,
        hutch=hutch,
        enclosure_id=enclosure_id,
        plan_id=plan_id,
        subject_id=subject_id,
        campaign_id=world.create(RegisterCampaign(**series)),
    )
    made.request = {"name": "Load step 1", "plan_id": plan_id, "subject_id": subject_id, "campaign_id": made.campaign_id}
    return made


@cache
def _built_beamline(broken: tuple[str, ...]) -> Beamline:
    made = _beamline_without_gates().copy()
    world, hutch = made.world, made.hutch
    if "clearance_present" not in broken:
        status = "Approved" if "clearance_active" in broken else "Active"
        form = {"template_id": template(world, facility_code=LUMEN), "facility_code": LUMEN}
        clearance_in_status(world, status, bindings=[binding("Asset", hutch.beamline)], **form)
    if "supply_present" not in broken:
        beam = {"kind": "photon_beam", "name": "Beam", "facility_code": LUMEN}
        made.supply_id = world.create(RegisterSupply(**beam))
        if "supply_available" not in broken:
            world.when(MarkSupplyAvailable(reason="shutter open"), on=made.supply_id)
    made.observe("NotPermitted" if "enclosure_permitted" in broken else "Permitted")
    if "subject_mounted" not in broken:
        world.when(MountSubject(asset_id=hutch.camera, reason="loaded"), on=made.subject_id)
    if "roles_played" not in broken:
        hutch.bind(made.plan_id, hutch.camera)
    for gate, breaking in GATE_BREAKERS.items():
        if gate in broken:
            breaking(made)
    return made


def set_bad_parameters(made: Beamline) -> None:
    made.request["override_parameters"] = {"dwell": "long"}


def remove_trigger_port(made: Beamline) -> None:
    made.world.when(RemoveAssetPort(port_name="trigger_out"), on=made.hutch.timing_box)


def remove_shutter_family(made: Beamline) -> None:
    made.world.when(RemoveAssetFamily(family_id=made.hutch.shutter_family), on=made.hutch.shutter)


def decommission_timing_box(made: Beamline) -> None:
    made.world.when(DecommissionAsset(), on=made.hutch.timing_box)


def pin_too_much(made: Beamline) -> None:
    calibration_id = rotation_center(made.world)
    made.request["pinned_calibration_ids"] = [append_revision(made.world, calibration_id) for _ in range(65)]


def pin_lapsed_revision(made: Beamline) -> None:
    made.world.ports["deployment"].lapsed_calibrations_refused = True
    ends = made.world.now + timedelta(seconds=5)
    pinned = append_revision(made.world, rotation_center(made.world, operating_point=AT_30_KEV), valid_until=ends)
    made.request["pinned_calibration_ids"] = [*made.request.get("pinned_calibration_ids", ()), pinned]
    made.world.now = ends


GATE_BREAKERS: dict[str, Callable[[Beamline], None]] = {
    "plan_current": lambda made: made.world.when(DeprecatePlan(), on=made.plan_id) and None,
    "families_covered": remove_shutter_family,
    "parameters_valid": set_bad_parameters,
    "wires_connected": remove_trigger_port,
    "assets_in_service": decommission_timing_box,
    "campaign_open": lambda made: made.world.when(AbandonCampaign(reason="no beam"), on=made.campaign_id) and None,
    "name_given": lambda made: made.request.update(name="   "),
    "pins_bounded": pin_too_much,
    "calibrations_valid": pin_lapsed_revision,
    "refs_bounded": lambda made: made.request.update(external_refs={"proposal": " "}),
}
REFUSALS = {
    "clearance_present": "RunRequiresActiveClearanceError",
    "clearance_active": "RunClearanceCoverageMismatchError",
    "supply_present": "RunRequiresAvailableSupplyError",
    "supply_available": "RunSupplyCoverageMismatchError",
    "enclosure_permitted": "RunRequiresPermittedEnclosureError",
    "plan_current": "RunBoundPlanDeprecatedError",
    "subject_mounted": "RunSubjectNotMountableError",
    "assets_in_service": "RunPlanAssetDecommissionedError",
    "families_covered": "RunFamiliesNotSatisfiedError",
    "parameters_valid": "InvalidRunParametersError",
    "wires_connected": "PlanWirePortNotFoundError",
    "roles_played": "RunRequiredRolesUnboundError",
    "campaign_open": "RunCannotJoinCampaignError",
    "name_given": "InvalidRunNameError",
    "pins_bounded": "InvalidPinnedCalibrationsError",
    "calibrations_valid": "RunCalibrationLapsedError",
    "refs_bounded": "InvalidRunExternalRefError",
}
"""The gates in the order the specification gives them, each with its refusal."""
IMPLIED = {"clearance_present": "clearance_active", "supply_present": "supply_available"}
"""Where nothing is there, nothing is in force either."""
