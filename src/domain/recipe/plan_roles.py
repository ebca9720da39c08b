"""The roles of a plan: which of its assets plays which part of the method, and whether it can."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from baton.domain.equipment.assembly import Assembly
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.family import Family
from baton.domain.equipment.fixture import Fixture
from baton.domain.equipment.role import Role
from baton.domain.kernel import Call, JudgedVerb, Outcome, Verb
from baton.domain.recipe.lifecycle import DEFINED
from baton.domain.recipe.method import Method, PortRequirement, RoleName, RoleRequirement
from baton.domain.recipe.plan import Plan, PlanRoleBound, PlanRoleUnbound, plan
from baton.domain.recipe.plan_wires import check_role_endpoints
from baton.domain.shared.reads import Reads, every, existing, required
from baton.domain.shared.refusals import Conflict, NotFound


class PlanRoleAssetNotBoundError(Conflict, context="recipe"):
    """A role is played by an asset of the plan."""


class PlanRoleAlreadyBoundError(Conflict, context="recipe"):
    """The role is bound already."""


class PlanRoleNameNotDeclaredError(Conflict, context="recipe"):
    """The plan's method has no role of this name."""


class PlanRoleFamilyMismatchError(Conflict, context="recipe"):
    """The asset is not of the family that the role asks for."""


class PlanRoleAssetCannotPresentError(Conflict, context="recipe"):
    """Neither a family of the asset nor the assembly of its fixture presents the equipment role that is asked for."""


class PlanRolePortCoverageNotSatisfiedError(Conflict, context="recipe"):
    """The asset lacks a port that the role requires."""


class PlanRoleNotBoundError(NotFound, context="recipe"):
    """No asset is bound to this role."""


def unbound_roles(plan: Plan, method: Method) -> tuple[str, ...]:
    """The roles of the method that must be played and that no asset is bound to, by name."""
    return tuple(
        requirement.role_name
        for requirement in method.required_roles
        if not requirement.optional and plan.asset_in_role(requirement.role_name) is None
    )


@dataclass(frozen=True)
class Contract:
    """An equipment role that is asked for, and what could present it: the asset's families, its fixture's assembly."""

    role: Role
    families: tuple[Family, ...]
    assembly: Assembly | None

    @property
    def kept(self) -> bool:
        """Whether one single family presents the role and has its affordances, or the assembly presents it."""
        role = self.role
        return (self.assembly is not None and role.id in self.assembly.presented_role_ids) or any(
            role.id in family.presented_role_ids and role.required_affordances <= family.affordances
            for family in self.families
        )


def missing_ports(requirement: RoleRequirement, asset: Asset) -> tuple[PortRequirement, ...]:
    """The ports a role requires that the asset does not have to the letter."""
    ports = {(port.name, port.direction, port.signal_type) for port in asset.ports}
    return tuple(
        port for port in requirement.required_ports if (port.port_name, port.direction, port.signal_type) not in ports
    )


def check_player(requirement: RoleRequirement, asset: Asset, contract: Contract | None) -> None:
    """Refuse an asset that is not of the role's family, or cannot present the equipment role it stands for."""
    facts = {"role_name": requirement.role_name, "asset_id": str(asset.id)}
    if requirement.family_id is not None and requirement.family_id not in asset.family_ids:
        raise PlanRoleFamilyMismatchError(
            f"{asset.name} is not of the family that {requirement.role_name} asks for; bind an asset that is.",
            reason="family_mismatch",
            facts={**facts, "family_id": str(requirement.family_id)},
        )
    if contract is not None and not contract.kept:
        raise PlanRoleAssetCannotPresentError(
            f"{asset.name} cannot present {contract.role.name}, neither by one of its families nor by its fixture; "
            "bind an asset that can.",
            reason="cannot_present",
            facts={**facts, "role_id": str(contract.role.id)},
        )
    if missing := missing_ports(requirement, asset):
        ports = ", ".join(f"{port.port_name} ({port.direction.value}, {port.signal_type})" for port in missing)
        raise PlanRolePortCoverageNotSatisfiedError(
            f"{asset.name} lacks ports that {requirement.role_name} requires: {ports}; add them or bind another asset.",
            reason="ports_missing",
            facts={**facts, "missing_ports": [port.model_dump(mode="json") for port in missing]},
        )


@dataclass(frozen=True)
class Casting:
    """What is on record of a role and the asset that is to play it."""

    method: Method
    asset: Asset | None
    role: Role | None
    families: Mapping[UUID, Family]
    assembly: Assembly | None

    def contract(self, requirement: RoleRequirement, asset: Asset) -> Contract | None:
        """The equipment role that a requirement asks for, if it does; what is not on record is 404."""
        if requirement.role_id is None:
            return None
        if self.role is None:
            raise Role.aggregate.NotFound(
                f"There is no role {requirement.role_id}; the method asks for it, correct the method.",
                facts={"missing_ids": [str(requirement.role_id)]},
            )
        if missing := sorted(asset.family_ids - self.families.keys()):
            raise Family.aggregate.NotFound(
                f"There is no family {missing[0]}; the asset {asset.name} names it, correct the asset.",
                facts={"missing_ids": [str(id) for id in missing]},
            )
        return Contract(self.role, tuple(self.families.values()), self.assembly)


@plan.command(post="/{plan_id}/bind-role", allowed=[DEFINED], refuses=[Role.aggregate.NotFound, Family.aggregate.NotFound])
class BindPlanRole(JudgedVerb[Plan, Casting]):
    """Let an asset of the plan play a role of its method; unbind the role first to give it to another."""

    role_name: RoleName
    asset_id: UUID

    def gather(self, plan: Plan, call: Call) -> Reads[Casting]:
        method = yield from required(Method, plan.method_id)
        asset = yield from existing(Asset, self.asset_id)
        requirement = method.required_role(self.role_name)
        if asset is None or requirement is None or requirement.role_id is None:
            return Casting(method, asset, None, {}, None)
        role = yield from existing(Role, requirement.role_id)
        families = yield from every(Family, sorted(asset.family_ids))
        fixture = yield from existing(Fixture, asset.fixture_id)
        assembly = yield from existing(Assembly, None if fixture is None else fixture.assembly_id)
        return Casting(method, asset, role, families, assembly)

    def decide(self, plan: Plan, call: Call, casting: Casting) -> Outcome:
        asset, facts = casting.asset, {"role_name": self.role_name}
        if asset is None or asset.id not in plan.asset_ids:
            raise PlanRoleAssetNotBoundError(
                f"The plan is not bound to asset {self.asset_id}; name one of its own assets.",
                reason="asset_not_bound",
                facts={**facts, "asset_id": str(self.asset_id)},
            )
        if (holder_id := plan.asset_in_role(self.role_name)) is not None:
            raise PlanRoleAlreadyBoundError(
                f"An asset plays {self.role_name} already; unbind the role first.",
                reason="already_bound",
                facts={**facts, "asset_id": str(holder_id)},
            )
        requirement = casting.method.required_role(self.role_name)
        if requirement is None:
            raise PlanRoleNameNotDeclaredError(
                f"The method {casting.method.name} has no role {self.role_name}; name one of those it has.",
                reason="not_declared",
                facts={**facts, "role_names": [role.role_name for role in casting.method.required_roles]},
            )
        check_player(requirement, asset, casting.contract(requirement, asset))
        check_role_endpoints([(requirement, asset.id)], plan.wires)
        return [PlanRoleBound(role_name=self.role_name, asset_id=self.asset_id)]


@plan.command(post="/{plan_id}/unbind-role", allowed=[DEFINED], destructive=True)
class UnbindPlanRole(Verb[Plan]):
    """Leave a role of the plan unplayed again."""

    role_name: RoleName

    def decide(self, plan: Plan, call: Call) -> Outcome:
        if plan.asset_in_role(self.role_name) is None:
            raise PlanRoleNotBoundError(
                f"No asset plays {self.role_name}; read the plan for the roles that are bound.",
                reason="not_bound",
                facts={"role_name": self.role_name},
            )
        return [PlanRoleUnbound(role_name=self.role_name)]
