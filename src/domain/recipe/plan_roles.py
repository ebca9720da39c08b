"""The roles of a plan: which asset plays which role of the method, and whether it can."""

from collections.abc import Mapping
from typing import NamedTuple
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


class PlanRoleAssetNotBoundError(Conflict, context="recipe", reason="asset_not_bound"):
    """A role is played by an asset of the plan."""


class PlanRoleAlreadyBoundError(Conflict, context="recipe", reason="already_bound"):
    """The role is bound already."""


class PlanRoleNameNotDeclaredError(Conflict, context="recipe", reason="not_declared"):
    """The plan's method has no role of this name."""


class PlanRoleFamilyMismatchError(Conflict, context="recipe", reason="family_mismatch"):
    """The asset is not of the family that the role asks for."""


class PlanRoleAssetCannotPresentError(Conflict, context="recipe", reason="cannot_present"):
    """Neither a family of the asset nor the assembly of its fixture presents the equipment role that is asked for."""


class PlanRolePortCoverageNotSatisfiedError(Conflict, context="recipe", reason="ports_missing"):
    """The asset lacks a port that the role requires."""


class PlanRoleNotBoundError(NotFound, context="recipe", reason="not_bound"):
    """No asset is bound to this role."""


def unbound_roles(plan: Plan, method: Method) -> tuple[str, ...]:
    """Return the names of required roles of the method that no asset is bound to."""
    return tuple(
        requirement.role_name
        for requirement in method.required_roles
        if not requirement.optional and plan.asset_in_role(requirement.role_name) is None
    )


def missing_ports(requirement: RoleRequirement, asset: Asset) -> tuple[PortRequirement, ...]:
    """Return the ports a role requires that the asset does not have exactly."""
    ports = {(port.name, port.direction, port.signal_type) for port in asset.ports}
    return tuple(
        port for port in requirement.required_ports if (port.port_name, port.direction, port.signal_type) not in ports
    )


class RoleCandidate(NamedTuple):
    """An asset for a role, and what could present the equipment role: its families, the assembly of its fixture."""

    method: Method
    asset: Asset | None
    role: Role | None
    families: Mapping[UUID, Family]
    assembly: Assembly | None


def check_presents(requirement: RoleRequirement, asset: Asset, candidate: RoleCandidate) -> None:
    """Refuse an asset unless one of its families presents the role with its affordances, or its assembly presents it."""
    role, families = candidate.role, candidate.families
    if role is None:
        raise Role.aggregate.NotFound(
            f"There is no role {requirement.role_id}; the method asks for it, correct the method.",
            facts={"missing_ids": [str(requirement.role_id)]},
        )
    if missing := sorted(asset.family_ids - families.keys()):
        raise Family.aggregate.NotFound(
            f"There is no family {missing[0]}; the asset {asset.name} names it, correct the asset.",
            facts={"missing_ids": [str(id) for id in missing]},
        )
    if candidate.assembly is not None and role.id in candidate.assembly.presented_role_ids:
        return
    presenting = (family for family in families.values() if role.id in family.presented_role_ids)
    if not any(role.required_affordances <= family.affordances for family in presenting):
        raise PlanRoleAssetCannotPresentError(
            f"{asset.name} cannot present {role.name}, neither by one of its families nor by its fixture; "
            "bind an asset that can.",
            facts={"role_name": requirement.role_name, "asset_id": str(asset.id), "role_id": str(role.id)},
        )


def check_player(requirement: RoleRequirement, asset: Asset, candidate: RoleCandidate) -> None:
    """Refuse an asset that is not of the role's family, cannot present its equipment role, or lacks its ports."""
    facts = {"role_name": requirement.role_name, "asset_id": str(asset.id)}
    if requirement.family_id is not None and requirement.family_id not in asset.family_ids:
        raise PlanRoleFamilyMismatchError(
            f"{asset.name} is not of the family that {requirement.role_name} asks for; bind an asset that is.",
            facts={**facts, "family_id": str(requirement.family_id)},
        )
    if requirement.role_id is not None:
        check_presents(requirement, asset, candidate)
    if missing := missing_ports(requirement, asset):
        ports = ", ".join(f"{port.port_name} ({port.direction.value}, {port.signal_type})" for port in missing)
        raise PlanRolePortCoverageNotSatisfiedError(
            f"{asset.name} lacks ports that {requirement.role_name} requires: {ports}; add them or bind another asset.",
            facts={**facts, "missing_ports": [port.model_dump(mode="json") for port in missing]},
        )


@plan.command(post="/{plan_id}/bind-role", allowed=[DEFINED])
class BindPlanRole(JudgedVerb[Plan, RoleCandidate]):
    """Let an asset of the plan play a role of its method; unbind the role first to give it to another."""

    role_name: RoleName
    asset_id: UUID

    def gather(self, plan: Plan, call: Call) -> Reads[RoleCandidate]:
        method = yield from required(Method, plan.method_id)
        asset = yield from existing(Asset, self.asset_id)
        requirement = method.required_role(self.role_name)
        if asset is None or requirement is None or requirement.role_id is None:
            return RoleCandidate(method, asset, None, {}, None)
        role = yield from existing(Role, requirement.role_id)
        families = yield from every(Family, sorted(asset.family_ids))
        fixture = yield from existing(Fixture, asset.fixture_id)
        assembly = yield from existing(Assembly, None if fixture is None else fixture.assembly_id)
        return RoleCandidate(method, asset, role, families, assembly)

    def decide(self, plan: Plan, call: Call, candidate: RoleCandidate) -> Outcome:
        asset, facts = candidate.asset, {"role_name": self.role_name}
        if asset is None or asset.id not in plan.asset_ids:
            raise PlanRoleAssetNotBoundError(
                f"The plan is not bound to asset {self.asset_id}; name one of its own assets.",
                facts={**facts, "asset_id": str(self.asset_id)},
            )
        if (holder_id := plan.asset_in_role(self.role_name)) is not None:
            raise PlanRoleAlreadyBoundError(
                f"An asset plays {self.role_name} already; unbind the role first.",
                facts={**facts, "asset_id": str(holder_id)},
            )
        requirement = candidate.method.required_role(self.role_name)
        if requirement is None:
            raise PlanRoleNameNotDeclaredError(
                f"The method {candidate.method.name} has no role {self.role_name}; name one of those it has.",
                facts={**facts, "role_names": [role.role_name for role in candidate.method.required_roles]},
            )
        check_player(requirement, asset, candidate)
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
                facts={"role_name": self.role_name},
            )
        return [PlanRoleUnbound(role_name=self.role_name)]
