"""Every kind of thing in a beamline file, in the order in which one can refer to another."""

from typing import Any

from baton.beamline.kinds.assets import AssetThings
from baton.beamline.kinds.clearances import ClearanceThings
from baton.beamline.kinds.equipment import (
    AssemblyThings,
    EnclosureThings,
    FacilityThings,
    FamilyThings,
    ModelThings,
    RoleThings,
    SupplyThings,
)
from baton.beamline.kinds.kind import Kind
from baton.beamline.kinds.people import ActorThings, AgentThings, GroupThings, PolicyThings, ScheduleThings
from baton.beamline.kinds.recipes import CapabilityThings, MethodThings, PlanThings, PracticeThings, RecipeThings

ASSETS = AssetThings()
KINDS: dict[str, Kind[Any]] = {
    kind.section: kind
    for kind in (
        *(FacilityThings(), EnclosureThings(), RoleThings(), FamilyThings(), ModelThings(), AssemblyThings(), ASSETS),
        *(SupplyThings(), CapabilityThings(), MethodThings(), PracticeThings(), PlanThings(), RecipeThings()),
        *(ActorThings(), AgentThings(), GroupThings(), PolicyThings(), ScheduleThings(), ClearanceThings()),
    )
}
