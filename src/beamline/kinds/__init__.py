"""Every kind of thing in a beamline file, in the order in which one can refer to another."""

from typing import Any

from baton.beamline.kinds.assets import AssetSection
from baton.beamline.kinds.clearances import ClearanceSection
from baton.beamline.kinds.equipment import (
    AssemblySection,
    EnclosureSection,
    FacilitySection,
    FamilySection,
    ModelSection,
    RoleSection,
    SupplySection,
)
from baton.beamline.kinds.kind import Section
from baton.beamline.kinds.people import (
    ActorSection,
    AgentSection,
    GroupSection,
    PolicySection,
    QueueSection,
    ScheduleSection,
)
from baton.beamline.kinds.recipes import CapabilitySection, MethodSection, PlanSection, PracticeSection, RecipeSection

ASSETS = AssetSection()
KINDS: dict[str, Section[Any]] = {
    kind.section: kind
    for kind in (
        *(FacilitySection(), EnclosureSection(), RoleSection(), FamilySection(), ModelSection(), AssemblySection(), ASSETS),
        *(SupplySection(), CapabilitySection(), MethodSection(), PracticeSection(), PlanSection(), RecipeSection()),
        *(ActorSection(), AgentSection(), GroupSection(), PolicySection(), ScheduleSection(), QueueSection()),
        ClearanceSection(),
    )
}
