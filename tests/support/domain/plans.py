"""Verbs to arrange plans with: an imaging hutch, its shutter, camera and timing box, and a practice to bind them to."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import UUID

from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import ActivateAsset
from baton.domain.equipment.asset_parts import AddAssetPort, UpdateAssetPartitionRule
from baton.domain.recipe.method import AddMethodRequiredRole
from baton.domain.recipe.plan import DefinePlan, Plan
from baton.domain.recipe.plan_parts import AddPlanWire, BindPlanRole
from baton.domain.shared.listing import Cursor, Order, Page, Summary, Where
from baton.domain.shared.reads import Rows
from tests.support.domain.assets import family, part, root
from tests.support.domain.templates import acquisition, capability, method, practice, site
from tests.support.domain.world import World

WINDOW = {"window_starts_at": "2026-04-01T08:00:00Z", "window_ends_at": "2026-04-03T08:00:00Z"}
TRIGGER_IN = {"port_name": "trigger_in", "direction": "Input", "signal_type": "TTL"}
TRIGGER_OUT = {"port_name": "trigger_out", "direction": "Output", "signal_type": "TTL"}


class ListedWorld(World):
    """A world that answers lists too, as a projection that has seen everything would."""

    def _read(self, request: Any) -> Any:
        match request:
            case Rows(summary, query, where):
                after = query.after()
                mark = None if after is None else (after.time, after.id)
                rows = [row for row in self._rows(summary) if all(_holds(row, condition) for condition in where)]
                rows = [row for row in rows if mark is None or _place(row) > mark]
                page = rows[: query.limit]
                hidden = set(summary.hidden())
                items = tuple(summary.model_construct(**row.model_dump(exclude=hidden)) for row in page)
                return Page(items, _cursor(query.order, page[-1]) if len(rows) > len(page) else None)
            case _:
                return super()._read(request)

    def _rows(self, summary: type[Summary]) -> list[Summary]:
        aggregate = REGISTRY.projections[summary.relation].aggregate
        ids = [id for name, id in self.streams if name == aggregate.name]
        return sorted((summary.of(self.state(aggregate.state, id)) for id in ids), key=_place)


def _cursor(order: Order, last: Summary) -> str:
    time, id = _place(last)
    return str(Cursor(order=order, time=time, id=id))


def _place(row: Any) -> tuple[Any, Any]:
    return row.created_at, getattr(row, next(iter(type(row).model_fields)))


def _holds(row: Summary, condition: Where) -> bool:
    assert condition.test in ("has", "has_any")
    wanted = {condition.value} if condition.test == "has" else set(condition.value)
    return bool(wanted & getattr(row, condition.column))


@dataclass
class PlanHutch:
    """What stands in the hutch, and the ladder of templates a plan hangs on."""

    world: World
    site_id: UUID
    beamline: UUID
    shutter_family: UUID
    camera_family: UUID
    shutter: UUID
    camera: UUID
    timing_box: UUID
    capability_id: UUID
    method_id: UUID
    practice_id: UUID

    @property
    def asset_ids(self) -> list[UUID]:
        return [self.shutter, self.camera, self.timing_box]

    def plan_fields(self, **fields: Any) -> dict[str, Any]:
        return {"name": "Spring block", "practice_id": self.practice_id, "asset_ids": self.asset_ids, **fields}

    def define_plan(self, **fields: Any) -> UUID:
        return self.world.create(DefinePlan(**self.plan_fields(**fields)))

    def plan(self, id: UUID) -> Plan:
        state: Plan = self.world.state(Plan, id)
        return state

    def asset(self, name: str, *family_ids: UUID) -> UUID:
        return part(self.world, self.beamline, name=name, family_ids=family_ids)

    def port(self, asset_id: UUID, name: str, direction: str = "Input", signal_type: str = "TTL") -> None:
        port = {"port_name": name, "direction": direction, "signal_type": signal_type}
        self.world.when(AddAssetPort(**port), on=asset_id)

    def virtual_axis(self, name: str = "Gap", *, outputs: int = 1, **rule: Any) -> UUID:
        """A virtual axis with three inputs and as many outputs."""
        axis = self.asset(name)
        made = rule or {"kind": "Aggregation", "aggregator_kind": "Difference", "constituent_count": 2}
        self.world.when(UpdateAssetPartitionRule(partition_rule=made), on=axis)
        for number in range(3):
            self.port(axis, f"in{number}", signal_type="position")
        for number in range(outputs):
            self.port(axis, f"out{number}", "Output", "position")
        return axis

    def role(self, name: str = "detector", **requirement: Any) -> None:
        """A role of the method; for a camera, unless said otherwise."""
        target = requirement if {"family_id", "role_id"} & requirement.keys() else {"family_id": self.camera_family}
        command = AddMethodRequiredRole(requirement={"role_name": name, **requirement, **target})
        self.world.when(command, on=self.method_id)

    def wire(self, plan_id: UUID, source: UUID, source_port: str, target: UUID, target_port: str) -> list[Any]:
        return self.world.when(AddPlanWire(**wire_fields(source, source_port, target, target_port)), on=plan_id)

    def bind(self, plan_id: UUID, asset_id: UUID, role_name: str = "detector") -> list[Any]:
        return self.world.when(BindPlanRole(role_name=role_name, asset_id=asset_id), on=plan_id)


def wire_fields(source: UUID, source_port: str, target: UUID, target_port: str) -> dict[str, Any]:
    return {
        "source_asset_id": source,
        "source_port_name": source_port,
        "target_asset_id": target,
        "target_port_name": target_port,
    }


def imaging_hutch(world: World) -> PlanHutch:
    """A shutter that can be triggered, a camera that takes images, and a timing box of no family."""
    hutch = _built_hutch()
    world.adopt(hutch.world)
    return replace(hutch, world=world)


@cache
def _built_hutch() -> PlanHutch:
    world = World()
    site_id = site(world)
    beamline = root(world)
    shutter_family = family(world, "Shutter", None, "Triggerable")
    camera_family = family(world, "Camera", None, "Imageable", "Triggerable")
    acquiring = capability(world)
    flat_field = method(
        world,
        acquiring,
        needed_family_ids=[shutter_family, camera_family],
        needed_supplies=["photon_beam"],
        parameters_schema=acquisition(maximum=1),
    )
    hutch = PlanHutch(
        world=world,
        site_id=site_id,
        beamline=beamline,
        shutter_family=shutter_family,
        camera_family=camera_family,
        shutter=part(world, beamline, name="Shutter", family_ids=[shutter_family]),
        camera=part(world, beamline, name="High-speed camera", family_ids=[camera_family]),
        timing_box=part(world, beamline, name="Timing box"),
        capability_id=acquiring,
        method_id=flat_field,
        practice_id=practice(world, flat_field, site_id=site_id),
    )
    world.when(ActivateAsset(), on=hutch.camera)
    world.when(AddAssetPort(**TRIGGER_IN), on=hutch.camera)
    world.when(AddAssetPort(**TRIGGER_OUT), on=hutch.timing_box)
    return hutch
