"""A plan from devices and steps in one command: everything that a launch needs is decided here, one command after the other,
and written in one transaction."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.equipment.asset import ActivateAsset, Asset, AssetName, AssetTier
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.values import AlternateIdentifier, AlternateIdentifierKind
from baton.domain.facility.facility import own_facility
from baton.domain.kernel import Call, JudgedCreation, NeededPermissions, Outcome, Value
from baton.domain.recipe.capability import CODE_PREFIX, DefineCapability, ExecutorShape
from baton.domain.recipe.method import DefineMethod
from baton.domain.recipe.plan import DefinePlan, plan
from baton.domain.recipe.practice import DefinePractice
from baton.domain.recipe.recipe import DefineRecipe, GivenPattern
from baton.domain.recipe.step_checks import RawSteps
from baton.domain.shared.further_commands import give
from baton.domain.shared.reads import Reads, require
from baton.domain.shared.schema import Schema
from baton.domain.shared.writes import Also, Answer

GIVEN = (RegisterAsset, ActivateAsset, DefineCapability, DefineMethod, DefinePractice, DefinePlan, DefineRecipe)
"""The commands that setting up a plan stands for."""


class SetUpDevice(Value):
    """A device of a plan: one that is registered, or a new one with its name and address."""

    asset_id: UUID | None = None
    """A registered device; leave out name and address then."""
    name: AssetName | None = None
    """What people call the new device."""
    address: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The address that the new device owns, with all below it, such as bl7:rot."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.asset_id is None) == (self.name is None) or (self.name is None) != (self.address is None):
            raise ValueError("give asset_id, or name and address")
        return self


class PlanSetUp(Value):
    """What a plan was set up with; `launch` with its plan_id starts it."""

    plan_id: UUID
    recipe_id: UUID
    capability_id: UUID
    method_id: UUID
    practice_id: UUID
    asset_ids: tuple[UUID, ...]
    """Its devices, in the order they were given."""


SetUpFacts = tuple[PlanSetUp, Sequence[Any], list[Also]]
"""The ids of everything, what the plan's own stream gets, and what the other commands write."""


@plan.creation(name="set_up_plan", path="/plan-setups", verb="SetUp", returns=PlanSetUp, refuses=GIVEN)
class SetUpPlan(JudgedCreation[SetUpFacts]):
    """Make a launchable plan of devices and steps, with its capability, method, practice and recipe: all or nothing."""

    name: Annotated[str, plan.text("name", 180)]
    """What the plan and all that is made for it are called."""
    devices: Annotated[tuple[SetUpDevice, ...], Field(min_length=1, max_length=100)]
    """The devices, in the order of the plan."""
    steps: RawSteps = ()
    """The steps of the scan; list_actions has the actions they can name."""
    closing_steps: RawSteps = ()
    pattern: GivenPattern = None
    parameters_schema: Schema | None = None

    def needs(self) -> NeededPermissions:
        """Return the permissions of all that it stands for."""
        return NeededPermissions((self.operation.command_name, *(one.operation.command_name for one in GIVEN)), ())

    def gather(self, call: Call) -> Reads[SetUpFacts]:
        """Decide every command that it stands for, in order, on the record as the ones before it leave it."""
        facility, written = (yield from own_facility()), list[Also]()
        if facility is None:
            raise self.cannot("no_facility", "This deployment has no facility of its own; register_facility with its code.")
        made = PlanSetUp(
            plan_id=call.new_id,
            asset_ids=tuple(one.asset_id or call.id_for(f"device {at}") for at, one in enumerate(self.devices)),
            **{f"{part}_id": call.id_for(part) for part in ("recipe", "capability", "method", "practice")},
        )
        for id, device in zip(made.asset_ids, self.devices, strict=True):
            if device.name is None or device.address is None:
                yield from require(Asset, id)
                continue
            address = AlternateIdentifier(kind=AlternateIdentifierKind.EPICS_PV, value=device.address)
            own: dict[str, Any] = {"facility_code": facility.code, "alternate_identifiers": (address,)}
            written.append((yield from give(RegisterAsset(name=device.name, tier=AssetTier.UNIT, **own), call, id)))
            written.append((yield from give(ActivateAsset(), call, id, on=id)))
        schema: dict[str, Any] = {"parameters_schema": self.parameters_schema}
        contract: dict[str, Any] = {"required_affordances": frozenset(), "executor_shapes": frozenset(ExecutorShape)}
        lists = {name: getattr(self, name) for name in ("steps", "closing_steps", "pattern")}
        capability = DefineCapability(code=capability_code(self.name), name=self.name, **contract, **schema)
        method = DefineMethod(name=self.name, capability_id=made.capability_id, **schema)
        practice = DefinePractice(name=self.name, method_id=made.method_id, site_id=facility.id)
        recipe = DefineRecipe(name=self.name, capability_id=made.capability_id, **lists)
        for id, command in (
            (made.capability_id, capability),
            (made.method_id, method),
            (made.practice_id, practice),
            (made.recipe_id, recipe),
        ):
            written.append((yield from give(command, call, id)))
        bound = DefinePlan(name=self.name, practice_id=made.practice_id, asset_ids=frozenset(made.asset_ids))
        return made, (yield from give(bound, call, made.plan_id)).outcome, written

    def decide(self, call: Call, facts: SetUpFacts) -> Outcome:
        made, own, written = facts
        return [*own, *written, Answer(made.model_dump(mode="json"))]


def capability_code(name: str) -> str:
    """Return the code of the capability that a plan of this name is made for."""
    return CODE_PREFIX + (re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "plan")
