"""The wires of a plan: which ports may be connected, checked when a wire is added and again when a run starts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from baton.domain.equipment.asset import Asset
from baton.domain.equipment.partition import arity
from baton.domain.equipment.values import Port, PortDirection
from baton.domain.kernel import Call, JudgedVerb, Outcome, Verb
from baton.domain.recipe.method import Method, RoleRequirement
from baton.domain.recipe.plan import Plan, PlanWireAdded, PlanWireRemoved, Wire, plan
from baton.domain.shared.reads import Reads, required, required_all
from baton.domain.shared.refusals import Conflict, NotFound


class PlanWireAlreadyExistsError(Conflict, context="recipe", reason="already_present"):
    """The plan has this wire already."""


class PlanWireTargetAlreadyConnectedError(Conflict, context="recipe", reason="target_connected"):
    """Another wire ends at this port; a port may be the target of one wire only."""


class PlanWireSelfLoopError(Conflict, context="recipe", reason="self_loop"):
    """A wire cannot end at the port it starts from."""


class PlanWireAssetNotBoundError(Conflict, context="recipe", reason="asset_not_bound"):
    """A wire connects assets of the plan only."""


class PlanWirePortNotFoundError(Conflict, context="recipe", reason="port_not_found"):
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
            raise PlanWireAssetNotBoundError(
                f"The plan is not bound to asset {asset_id}; wire its own assets, or define a plan with this one too.",
                facts={**_facts(wire), "asset_id": str(asset_id)},
            )
    source, target = assets[wire.source_asset_id], assets[wire.target_asset_id]
    return _port(wire, source, wire.source_port_name), _port(wire, target, wire.target_port_name)


def _port(wire: Wire, asset: Asset, name: str) -> Port:
    if (port := port_named(asset, name)) is None:
        raise PlanWirePortNotFoundError(
            f"{asset.name} has no port {name}; add it to the asset or take another one.",
            facts={**_facts(wire), "asset_id": str(asset.id), "port_name": name},
        )
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
        raise PlanWireTargetAlreadyConnectedError(
            f"Another wire ends at {wire.target_port_name} already; remove that one first or take another port.",
            facts={**_facts(wire), "connected": _facts(rival)},
        )
    if (wire.source_asset_id, wire.source_port_name) == end:
        raise PlanWireSelfLoopError(
            f"The wire ends at {wire.source_port_name}, where it starts; connect two ports.", facts=_facts(wire)
        )


def check_signal(wire: Wire, source: Port, target: Port) -> None:
    """Refuse a wire between ports of unfit directions or signal types."""
    if (source.direction, target.direction) != (PortDirection.OUTPUT, PortDirection.INPUT):
        raise PlanWireDirectionMismatchError(
            f"{source.name} is an {source.direction.value}, {target.name} an {target.direction.value}; "
            "lead the wire from an Output to an Input.",
            facts={**_facts(wire), "source_direction": source.direction.value, "target_direction": target.direction.value},
        )
    if source.signal_type != target.signal_type:
        raise PlanWireSignalTypeMismatchError(
            f"{source.name} sends {source.signal_type}, {target.name} takes {target.signal_type}; "
            "connect ports of one signal type.",
            facts={**_facts(wire), "source_signal_type": source.signal_type, "target_signal_type": target.signal_type},
        )


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
    outputs = sorted(port.name for port in axis.ports if port.direction is PortDirection.OUTPUT)
    if len(outputs) != 1:
        raise PlanVirtualAxisOutputMismatchError(
            f"The virtual axis {axis.name} has {len(outputs)} output ports; give it exactly one.",
            facts={"asset_id": str(axis.id), "output_port_names": outputs},
        )
    most = arity(axis.partition_rule)
    if most is not None and len(wires) > most:
        raise PlanVirtualAxisArityMismatchError(
            f"The rule of {axis.name} drives {most} axes and {len(wires)} would be wired into it; remove a wire first.",
            facts={"asset_id": str(axis.id), "arity": most, "wire_count": len(wires)},
        )
    sources = (port_named(assets[wire.source_asset_id], wire.source_port_name) for wire in wires)
    signals = sorted({port.signal_type for port in sources if port is not None})
    if len(signals) > 1:
        raise PlanVirtualAxisSignalTypeMismatchError(
            f"{', '.join(signals)} would be wired into {axis.name}; wire sources of one signal type into it.",
            facts={"asset_id": str(axis.id), "signal_types": signals},
        )


def check_role_endpoints(bound: Iterable[tuple[RoleRequirement, UUID]], wires: Sequence[Wire]) -> None:
    """Refuse a wire that takes a port which a role requires from another asset than the one that plays the role."""
    for requirement, asset_id in bound:
        required_ports = {(port.port_name, port.direction) for port in requirement.required_ports}
        for wire in wires:
            ends = (
                (wire.source_port_name, PortDirection.OUTPUT, wire.source_asset_id),
                (wire.target_port_name, PortDirection.INPUT, wire.target_asset_id),
            )
            for name, direction, wired_id in ends:
                if (name, direction) in required_ports and wired_id != asset_id:
                    raise PlanWireRoleEndpointMismatchError(
                        f"The role {requirement.role_name} requires {name}, and the wire takes it from another asset than "
                        "the one bound to the role; wire that asset or bind the other.",
                        facts={**_facts(wire), "role_name": requirement.role_name, "asset_id": str(asset_id)},
                    )


def _facts(wire: Wire) -> dict[str, Any]:
    return wire.model_dump(mode="json")


WireFacts = tuple[Mapping[UUID, Asset], Method]
"""The assets at the ends of a new wire and of those it joins, and the method with its roles."""


@plan.command(post="/{plan_id}/add-wire")
class AddPlanWire(Wire, JudgedVerb[Plan, WireFacts]):
    """Connect an output of one asset of the plan to an input of another: a source may feed many, a target takes one."""

    def gather(self, plan: Plan, call: Call) -> Reads[WireFacts]:
        joined = (wire.source_asset_id for wire in wires_into(plan.wires, self.target_asset_id))
        assets = yield from required_all(Asset, (self.source_asset_id, self.target_asset_id, *joined))
        method = yield from required(Method, plan.method_id)
        return assets, method

    def decide(self, plan: Plan, call: Call, facts: WireFacts) -> Outcome:
        assets, method = facts
        wire = Wire(**dict(self))
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
