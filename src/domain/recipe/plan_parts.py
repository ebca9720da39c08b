"""The parts of a plan: its wires, checked when one is added and when a run starts, and which asset plays which role."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from baton.domain.equipment.assembly import Assembly
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.family import Family
from baton.domain.equipment.fixture import Fixture
from baton.domain.equipment.partition import arity
from baton.domain.equipment.role import Role
from baton.domain.equipment.values import Port, PortDirection
from baton.domain.kernel import Call, JudgedVerb, Outcome, Verb
from baton.domain.recipe.lifecycle import DEFINED
from baton.domain.recipe.method import Method, PortRequirement, RoleName, RoleRequirement
from baton.domain.recipe.plan import Plan, PlanRoleBound, PlanRoleUnbound, PlanWireAdded, PlanWireRemoved, Wire, plan
from baton.domain.shared.reads import Reads, find, find_all, require, require_all
from baton.domain.shared.refusals import Conflict, NotFound


class PlanWireAlreadyExistsError(Conflict, context="recipe", reason="already_present"):
    """The plan has this wire already."""


class PlanWireTargetAlreadyConnectedError(Conflict, context="recipe", reason="target_connected"):
    """Another wire ends at this port; a port may be the target of one wire only."""


class PlanWireSelfLoopError(Conflict, context="recipe", reason="self_loop"):
    """A wire cannot end at the port it starts from."""


class PlanWireAssetNotBoundError(Conflict, context="recipe", reason="asset_not_bound", passing=True):
    """A wire connects assets of the plan only."""


class PlanWirePortNotFoundError(Conflict, context="recipe", reason="port_not_found", passing=True):
    """An asset has no port of the name that a wire gives."""


class PlanWireDirectionMismatchError(Conflict, context="recipe", reason="direction"):
    """A wire leads from an output to an input."""


class PlanWireSignalTypeMismatchError(Conflict, context="recipe", reason="signal_type"):
    """A wire connects ports of one signal type."""


class PlanVirtualAxisOutputMismatchError(Conflict, context="recipe", reason="output_ports"):
    """A virtual axis has exactly one output port."""


class PlanVirtualAxisArityMismatchError(Conflict, context="recipe", reason="arity"):
    """A virtual axis takes no more wires than its partition rule drives axes."""


class PlanVirtualAxisSignalTypeMismatchError(Conflict, context="recipe", reason="signal_type"):
    """Everything wired into a virtual axis sends one signal type."""


class PlanWireRoleEndpointMismatchError(Conflict, context="recipe", reason="role_endpoint"):
    """A port that a role requires must be that of the asset bound to the role."""


class PlanWireNotFoundError(NotFound, context="recipe", reason="not_present"):
    """The plan has no such wire."""


def check_wires(plan: Plan, assets: Mapping[UUID, Asset]) -> None:
    """Refuse a plan with a wire that does not hold any more: an asset is not bound, or a port is gone."""
    for wire in plan.wires:
        ports_of(wire, plan, assets)


def ports_of(wire: Wire, plan: Plan, assets: Mapping[UUID, Asset]) -> tuple[Port, Port]:
    """Return the two ports a wire connects; refuse a wire with an unbound asset or a missing port."""
    for asset_id in (wire.source_asset_id, wire.target_asset_id):
        if asset_id not in plan.asset_ids:
            detail = f"The plan is not bound to asset {asset_id}; wire its own assets, or define a plan with this one too."
            raise PlanWireAssetNotBoundError(detail, facts={**_facts(wire), "asset_id": str(asset_id)})
    source, target = assets[wire.source_asset_id], assets[wire.target_asset_id]
    return _port(wire, source, wire.source_port_name), _port(wire, target, wire.target_port_name)


def _port(wire: Wire, asset: Asset, name: str) -> Port:
    if (port := port_named(asset, name)) is None:
        detail = f"{asset.name} has no port {name}; add it to the asset or take another one."
        raise PlanWirePortNotFoundError(detail, facts={**_facts(wire), "asset_id": str(asset.id), "port_name": name})
    return port


def port_named(asset: Asset, name: str) -> Port | None:
    """Return the port of this name, or None."""
    return next((port for port in asset.ports if port.name == name), None)


def check_free(wire: Wire, plan: Plan) -> None:
    """Refuse a wire that is there already, ends where another does, or goes nowhere; a source may feed many."""
    if wire in plan.wires:
        raise PlanWireAlreadyExistsError("The plan has this wire already; nothing to add.", facts=_facts(wire))
    end = (wire.target_asset_id, wire.target_port_name)
    if rival := next((one for one in plan.wires if (one.target_asset_id, one.target_port_name) == end), None):
        detail = f"Another wire ends at {wire.target_port_name} already; remove that one first or take another port."
        raise PlanWireTargetAlreadyConnectedError(detail, facts={**_facts(wire), "connected": _facts(rival)})
    if (wire.source_asset_id, wire.source_port_name) == end:
        detail = f"The wire ends at {wire.source_port_name}, where it starts; connect two ports."
        raise PlanWireSelfLoopError(detail, facts=_facts(wire))


def check_signal(wire: Wire, source: Port, target: Port) -> None:
    """Refuse a wire between ports of unfit directions or signal types."""
    if (source.direction, target.direction) != (PortDirection.OUTPUT, PortDirection.INPUT):
        ends = f"{source.name} is an {source.direction.value}, {target.name} an {target.direction.value}"
        facts = {"source_direction": source.direction.value, "target_direction": target.direction.value}
        detail = f"{ends}; lead the wire from an Output to an Input."
        raise PlanWireDirectionMismatchError(detail, facts={**_facts(wire), **facts})
    if source.signal_type != target.signal_type:
        ends = f"{source.name} sends {source.signal_type}, {target.name} takes {target.signal_type}"
        facts = {"source_signal_type": source.signal_type, "target_signal_type": target.signal_type}
        raise PlanWireSignalTypeMismatchError(f"{ends}; connect ports of one signal type.", facts={**_facts(wire), **facts})


def wires_into(wires: Iterable[Wire], asset_id: UUID) -> tuple[Wire, ...]:
    """Return the wires that end at an asset; for a virtual axis, in the order of its rule."""
    ending = (wire for wire in wires if wire.target_asset_id == asset_id)
    return tuple(sorted(ending, key=lambda wire: (wire.target_port_name, wire.source_asset_id)))


def check_virtual_axis(axis: Asset, wires: Sequence[Wire], assets: Mapping[UUID, Asset]) -> None:
    """Refuse more or other wires into a virtual axis than its partition rule can drive; `wires` are all that end at it.

    Fewer are no fault yet. A wire whose source port is gone meanwhile says nothing about the signal.
    """
    if axis.partition_rule is None:
        return
    count, facts = len(wires), {"asset_id": str(axis.id)}
    outputs = sorted(port.name for port in axis.ports if port.direction is PortDirection.OUTPUT)
    if len(outputs) != 1:
        detail = f"The virtual axis {axis.name} has {len(outputs)} output ports; give it exactly one."
        raise PlanVirtualAxisOutputMismatchError(detail, facts={**facts, "output_port_names": outputs})
    if (most := arity(axis.partition_rule)) is not None and count > most:
        detail = f"The rule of {axis.name} drives {most} axes and {count} would be wired into it; remove a wire first."
        raise PlanVirtualAxisArityMismatchError(detail, facts={**facts, "arity": most, "wire_count": count})
    sources = (port_named(assets[wire.source_asset_id], wire.source_port_name) for wire in wires)
    if len(signals := sorted({port.signal_type for port in sources if port is not None})) > 1:
        detail = f"{', '.join(signals)} would be wired into {axis.name}; wire sources of one signal type into it."
        raise PlanVirtualAxisSignalTypeMismatchError(detail, facts={**facts, "signal_types": signals})


def check_role_endpoints(bound: Iterable[tuple[RoleRequirement, UUID]], wires: Sequence[Wire]) -> None:
    """Refuse a wire that takes a port which a role requires from another asset than the one that plays the role."""
    for requirement, asset_id in bound:
        role, ports = requirement.role_name, {(port.port_name, port.direction) for port in requirement.required_ports}
        for wire in wires:
            source = (wire.source_port_name, PortDirection.OUTPUT, wire.source_asset_id)
            target = (wire.target_port_name, PortDirection.INPUT, wire.target_asset_id)
            for name, direction, wired_id in (source, target):
                if (name, direction) in ports and wired_id != asset_id:
                    other = "another asset than the one bound to the role; wire that asset or bind the other"
                    detail = f"The role {role} requires {name}, and the wire takes it from {other}."
                    facts = {**_facts(wire), "role_name": role, "asset_id": str(asset_id)}
                    raise PlanWireRoleEndpointMismatchError(detail, facts=facts)


def _facts(wire: Wire) -> dict[str, object]:
    return wire.model_dump(mode="json")


WireFacts = tuple[Mapping[UUID, Asset], Method]  # The assets at the ends of a new wire and of those it joins; the method.


@plan.command(post="/{plan_id}/add-wire")
class AddPlanWire(Wire, JudgedVerb[Plan, WireFacts]):
    """Connect an output of one asset of the plan to an input of another: a source may feed many, a target takes one."""

    def gather(self, plan: Plan, call: Call) -> Reads[WireFacts]:
        joined = (wire.source_asset_id for wire in wires_into(plan.wires, self.target_asset_id))
        assets = yield from require_all(Asset, (self.source_asset_id, self.target_asset_id, *joined))
        return assets, (yield from require(Method, plan.method_id))

    def decide(self, plan: Plan, call: Call, facts: WireFacts) -> Outcome:
        (assets, method), wire = facts, Wire(**dict(self))
        check_free(wire, plan)
        source, target = ports_of(wire, plan, assets)
        check_signal(wire, source, target)
        axis = assets[wire.target_asset_id]
        check_virtual_axis(axis, wires_into((*plan.wires, wire), axis.id), assets)
        roles = ((role, plan.asset_in_role(role.role_name)) for role in method.required_roles)
        check_role_endpoints(((role, asset_id) for role, asset_id in roles if asset_id is not None), [wire])
        return [PlanWireAdded(**dict(wire))]


@plan.command(post="/{plan_id}/remove-wire", destructive=True)
class RemovePlanWire(Wire, Verb[Plan]):
    """Take a connection out of the plan."""

    def decide(self, plan: Plan, call: Call) -> Outcome:
        wire = Wire(**dict(self))
        if wire not in plan.wires:
            raise PlanWireNotFoundError("The plan has no such wire; read the plan for those it has.", facts=_facts(wire))
        return [PlanWireRemoved(**dict(wire))]


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
    required_names = (role.role_name for role in method.required_roles if not role.optional)
    return tuple(name for name in required_names if plan.asset_in_role(name) is None)


def missing_ports(role: RoleRequirement, asset: Asset) -> tuple[PortRequirement, ...]:
    """Return the ports a role requires that the asset does not have exactly."""
    ports = {(port.name, port.direction, port.signal_type) for port in asset.ports}
    return tuple(port for port in role.required_ports if (port.port_name, port.direction, port.signal_type) not in ports)


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
        detail = f"There is no role {requirement.role_id}; the method asks for it, correct the method."
        raise Role.aggregate.NotFound(detail, facts={"missing_ids": [str(requirement.role_id)]})
    if missing := sorted(asset.family_ids - families.keys()):
        detail = f"There is no family {missing[0]}; the asset {asset.name} names it, correct the asset."
        raise Family.aggregate.NotFound(detail, facts={"missing_ids": [str(id) for id in missing]})
    if candidate.assembly is not None and role.id in candidate.assembly.presented_role_ids:
        return
    presenting = (family for family in families.values() if role.id in family.presented_role_ids)
    if not any(role.required_affordances <= family.affordances for family in presenting):
        detail = f"{asset.name} cannot present {role.name}, neither by one of its families nor by its fixture"
        facts = {"role_name": requirement.role_name, "asset_id": str(asset.id), "role_id": str(role.id)}
        raise PlanRoleAssetCannotPresentError(f"{detail}; bind an asset that can.", facts=facts)


def check_player(requirement: RoleRequirement, asset: Asset, candidate: RoleCandidate) -> None:
    """Refuse an asset that is not of the role's family, cannot present its equipment role, or lacks its ports."""
    facts = {"role_name": requirement.role_name, "asset_id": str(asset.id)}
    if requirement.family_id is not None and requirement.family_id not in asset.family_ids:
        detail = f"{asset.name} is not of the family that {requirement.role_name} asks for; bind an asset that is."
        raise PlanRoleFamilyMismatchError(detail, facts={**facts, "family_id": str(requirement.family_id)})
    if requirement.role_id is not None:
        check_presents(requirement, asset, candidate)
    if missing := missing_ports(requirement, asset):
        ports = ", ".join(f"{port.port_name} ({port.direction.value}, {port.signal_type})" for port in missing)
        detail = f"{asset.name} lacks ports that {requirement.role_name} requires: {ports}; add them or bind another asset."
        lacking = [port.model_dump(mode="json") for port in missing]
        raise PlanRolePortCoverageNotSatisfiedError(detail, facts={**facts, "missing_ports": lacking})


@plan.command(post="/{plan_id}/bind-role", allowed=[DEFINED])
class BindPlanRole(JudgedVerb[Plan, RoleCandidate]):
    """Let an asset of the plan play a role of its method; unbind the role first to give it to another."""

    role_name: RoleName
    asset_id: UUID
    """The asset of the plan that plays the role."""

    def gather(self, plan: Plan, call: Call) -> Reads[RoleCandidate]:
        method = yield from require(Method, plan.method_id)
        asset = yield from find(Asset, self.asset_id)
        requirement = method.required_role(self.role_name)
        if asset is None or requirement is None or requirement.role_id is None:
            return RoleCandidate(method, asset, None, {}, None)
        role = yield from find(Role, requirement.role_id)
        families = yield from find_all(Family, sorted(asset.family_ids))
        fixture = yield from find(Fixture, asset.fixture_id)
        assembly = yield from find(Assembly, None if fixture is None else fixture.assembly_id)
        return RoleCandidate(method, asset, role, families, assembly)

    def decide(self, plan: Plan, call: Call, candidate: RoleCandidate) -> Outcome:
        asset, facts = candidate.asset, {"role_name": self.role_name}
        if asset is None or asset.id not in plan.asset_ids:
            detail = f"The plan is not bound to asset {self.asset_id}; name one of its own assets."
            raise PlanRoleAssetNotBoundError(detail, facts={**facts, "asset_id": str(self.asset_id)})
        if (holder_id := plan.asset_in_role(self.role_name)) is not None:
            detail = f"An asset plays {self.role_name} already; unbind the role first."
            raise PlanRoleAlreadyBoundError(detail, facts={**facts, "asset_id": str(holder_id)})
        if (requirement := candidate.method.required_role(self.role_name)) is None:
            detail = f"The method {candidate.method.name} has no role {self.role_name}; name one of those it has."
            names = [role.role_name for role in candidate.method.required_roles]
            raise PlanRoleNameNotDeclaredError(detail, facts={**facts, "role_names": names})
        check_player(requirement, asset, candidate)
        check_role_endpoints([(requirement, asset.id)], plan.wires)
        return [PlanRoleBound(role_name=self.role_name, asset_id=self.asset_id)]


@plan.command(post="/{plan_id}/unbind-role", allowed=[DEFINED], destructive=True)
class UnbindPlanRole(Verb[Plan]):
    """Leave a role of the plan unplayed again."""

    role_name: RoleName

    def decide(self, plan: Plan, call: Call) -> Outcome:
        if plan.asset_in_role(self.role_name) is None:
            detail = f"No asset plays {self.role_name}; read the plan for the roles that are bound."
            raise PlanRoleNotBoundError(detail, facts={"role_name": self.role_name})
        return [PlanRoleUnbound(role_name=self.role_name)]
