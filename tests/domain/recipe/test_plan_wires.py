"""The wires of a plan: what may be connected, in which order objections are raised, and what holds later."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.equipment.asset_parts import RemoveAssetPort, UpdateAssetPartitionRule
from baton.domain.equipment.values import PortDirection
from baton.domain.recipe.method import RemoveMethodRequiredRole
from baton.domain.recipe.plan import DeprecatePlan, PlanWireAdded, PlanWireRemoved, Wire
from baton.domain.recipe.plan_parts import AddPlanWire, RemovePlanWire, UnbindPlanRole, check_wires, port_named, wires_into
from baton.domain.shared.refusals import Refusal
from tests.support.domain.assets import asset_of
from tests.support.domain.plans import TRIGGER_IN, imaging_hutch, wire_fields
from tests.support.domain.world import World, expect_refusal, new_id

Case = str | Callable[["Bench"], dict[str, Any]]
"""A wire as "asset.port > asset.port", or what is arranged for one."""


class Bench:
    """A plan in which the timing box triggers the camera, and an asset that is no part of it."""

    def __init__(self) -> None:
        self.hutch = hutch = imaging_hutch(World())
        self.world, self.box, self.camera = hutch.world, hutch.timing_box, hutch.camera
        for name in ("spare_out", "gate_out"):
            hutch.port(self.box, name, "Output")
        hutch.port(self.box, "clock_out", "Output", "LVDS")
        hutch.port(self.box, "gate_in")
        hutch.port(self.camera, "sync_in", "Input", "LVDS")
        hutch.port(self.camera, "gate_in")
        hutch.port(self.camera, "busy_out", "Output")
        self.stranger = hutch.asset("Stranger")
        hutch.port(self.stranger, "trigger_in")
        self.gap = hutch.virtual_axis("Gap")
        self.jaws = [hutch.asset(f"Jaw {number}") for number in range(3)]
        for jaw in self.jaws:
            hutch.port(jaw, "position", "Output", "position")
            hutch.port(jaw, "counts", "Output", "counts")
        self.plan_id = hutch.define_plan(asset_ids=[*hutch.asset_ids, self.gap, *self.jaws])
        self.add(self.trigger_wire)

    @property
    def trigger_wire(self) -> dict[str, Any]:
        return wire_fields(self.box, "trigger_out", self.camera, "trigger_in")

    def add(self, wire: dict[str, Any]) -> list[Any]:
        return self.world.when(AddPlanWire(**wire), on=self.plan_id)

    def remove(self, wire: dict[str, Any]) -> list[Any]:
        return self.world.when(RemovePlanWire(**wire), on=self.plan_id)

    def wire(self, case: Case) -> dict[str, Any]:
        if not isinstance(case, str):
            return case(self)
        (source, out), (target, into) = (end.split(".") for end in case.split(" > "))
        return wire_fields(getattr(self, source, new_id()), out, getattr(self, target, new_id()), into)

    def wires(self) -> tuple[Wire, ...]:
        return self.hutch.plan(self.plan_id).wires

    def bind_new_role(self, role: str, asset_id: Any, *ports: dict[str, str]) -> None:
        """Bind an asset to a new role that requires these ports."""
        family_id = next(iter(asset_of(self.world, asset_id).family_ids))
        self.hutch.role(role, family_id=family_id, required_ports=list(ports))
        self.hutch.bind(self.plan_id, asset_id, role)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_wire_is_added_once_and_removed_once(bench: Bench) -> None:
    gated = wire_fields(bench.box, " gate_out ", bench.camera, "gate_in")
    trimmed = {**gated, "source_port_name": "gate_out"}
    assert bench.add(gated) == [PlanWireAdded(**trimmed)]
    assert Wire(**trimmed) in bench.wires()
    assert bench.remove(gated) == [PlanWireRemoved(**trimmed)]
    assert bench.wires() == (Wire(**bench.trigger_wire),)
    with expect_refusal("PlanWireNotFoundError") as caught:
        bench.remove(gated)
    assert caught.value.status == 404


def test_a_source_may_feed_many(bench: Bench) -> None:
    bench.add(wire_fields(bench.box, "trigger_out", bench.camera, "gate_in"))
    bench.add(wire_fields(bench.box, "trigger_out", bench.box, "gate_in"))
    assert [wire.target_port_name for wire in wires_into(bench.wires(), bench.camera)] == ["gate_in", "trigger_in"]


def test_two_ports_of_one_asset_may_be_connected(bench: Bench) -> None:
    assert bench.add(wire_fields(bench.camera, "busy_out", bench.camera, "gate_in"))


def test_wires_change_in_every_state(bench: Bench) -> None:
    bench.world.when(DeprecatePlan(), on=bench.plan_id)
    bench.remove(bench.trigger_wire)
    assert bench.add(bench.trigger_wire)


def test_wires_are_shown_in_one_order(bench: Bench) -> None:
    bench.add(wire_fields(bench.box, "spare_out", bench.camera, "gate_in"))
    bench.add(wire_fields(bench.camera, "busy_out", bench.box, "gate_in"))
    shown = [tuple(dict(wire).values()) for wire in bench.wires()]
    assert shown == sorted(shown)
    assert len(shown) == 3


@pytest.mark.parametrize("end", ["source_port_name", "target_port_name"])
def test_a_port_needs_a_name_of_up_to_a_hundred_characters(bench: Bench, end: str) -> None:
    for command in (AddPlanWire, RemovePlanWire):
        for raw in ("", "x" * 101):
            with pytest.raises(ValidationError):
                command(**{**bench.trigger_wire, end: raw})
        with expect_refusal("InvalidWireError", "blank") as caught:
            bench.world.when(command(**{**bench.trigger_wire, end: "  "}), on=bench.plan_id)
        assert caught.value.status == 400


def that_is_there_without_its_port(bench: Bench) -> dict[str, Any]:
    bench.world.when(RemoveAssetPort(port_name="trigger_in"), on=bench.camera)
    return bench.trigger_wire


def of_two_signals_into_an_axis_without_output(bench: Bench) -> dict[str, Any]:
    bench.world.when(RemoveAssetPort(port_name="out0"), on=bench.gap)
    return wire_fields(bench.jaws[0], "counts", bench.gap, "in0")


def fully_wired(bench: Bench) -> None:
    for number in (0, 1):
        bench.add(wire_fields(bench.jaws[number], "position", bench.gap, f"in{number}"))


def into_an_axis_without_output(bench: Bench) -> dict[str, Any]:
    fully_wired(bench)
    bench.world.when(RemoveAssetPort(port_name="out0"), on=bench.gap)
    return wire_fields(bench.jaws[2], "position", bench.gap, "in2")


def into_an_axis_with_two_outputs(bench: Bench) -> dict[str, Any]:
    bench.hutch.port(bench.gap, "out1", "Output", "position")
    return wire_fields(bench.jaws[0], "position", bench.gap, "in0")


def of_another_signal(bench: Bench) -> None:
    """An input of the axis for counts, wired to a jaw's counts."""
    bench.hutch.port(bench.gap, "in_counts", "Input", "counts")
    bench.add(wire_fields(bench.jaws[0], "counts", bench.gap, "in_counts"))


def into_a_full_axis(bench: Bench) -> dict[str, Any]:
    fully_wired(bench)
    bench.hutch.port(bench.gap, "in_counts", "Input", "counts")
    return wire_fields(bench.jaws[2], "counts", bench.gap, "in_counts")


def into_an_axis_of_another_signal(bench: Bench) -> dict[str, Any]:
    of_another_signal(bench)
    return wire_fields(bench.jaws[1], "position", bench.gap, "in0")


def into_a_full_axis_from_another_than_the_player(bench: Bench) -> dict[str, Any]:
    fully_wired(bench)
    bench.hutch.port(bench.camera, "in2", signal_type="position")
    bench.bind_new_role("detector", bench.camera, {"port_name": "in2", "direction": "Input", "signal_type": "position"})
    return wire_fields(bench.jaws[2], "position", bench.gap, "in2")


def into_another_than_the_player(bench: Bench) -> dict[str, Any]:
    bench.bind_new_role("detector", bench.camera, {"port_name": "gate_in", "direction": "Input", "signal_type": "TTL"})
    return wire_fields(bench.box, "spare_out", bench.box, "gate_in")


def out_of_another_than_the_player(bench: Bench) -> dict[str, Any]:
    bench.hutch.port(bench.hutch.shutter, "spare_out", "Output")
    bench.bind_new_role(
        "opener", bench.hutch.shutter, {"port_name": "spare_out", "direction": "Output", "signal_type": "TTL"}
    )
    return wire_fields(bench.box, "spare_out", bench.camera, "gate_in")


@pytest.mark.parametrize(
    ("case", "refusal"),
    [
        ("nobody.  > camera.trigger_in", "AssetNotFoundError"),
        ("box.spare_out > nobody.trigger_in", "AssetNotFoundError"),
        ("box.  > stranger.trigger_in", "InvalidWireError"),
        ("box.trigger_out > camera.trigger_in", "PlanWireAlreadyExistsError"),
        (that_is_there_without_its_port, "PlanWireAlreadyExistsError"),
        ("box.spare_out > camera.trigger_in", "PlanWireTargetAlreadyConnectedError"),
        ("camera.trigger_in > camera.trigger_in", "PlanWireTargetAlreadyConnectedError"),
        ("camera.busy_out > camera.busy_out", "PlanWireSelfLoopError"),
        ("stranger.trigger_in > stranger.trigger_in", "PlanWireSelfLoopError"),
        ("box.spare_out > stranger.trigger_in", "PlanWireAssetNotBoundError"),
        ("stranger.nowhere > camera.gate_in", "PlanWireAssetNotBoundError"),
        ("box.nowhere > camera.gate_in", "PlanWirePortNotFoundError"),
        ("box.gate_in > camera.nowhere", "PlanWirePortNotFoundError"),
        ("box.gate_in > camera.gate_in", "PlanWireDirectionMismatchError"),
        ("box.clock_out > camera.busy_out", "PlanWireDirectionMismatchError"),
        ("box.spare_out > camera.sync_in", "PlanWireSignalTypeMismatchError"),
        (of_two_signals_into_an_axis_without_output, "PlanWireSignalTypeMismatchError"),
        (into_an_axis_with_two_outputs, "PlanVirtualAxisOutputMismatchError"),
        (into_an_axis_without_output, "PlanVirtualAxisOutputMismatchError"),
        (into_a_full_axis, "PlanVirtualAxisArityMismatchError"),
        (into_an_axis_of_another_signal, "PlanVirtualAxisSignalTypeMismatchError"),
        (into_a_full_axis_from_another_than_the_player, "PlanVirtualAxisArityMismatchError"),
        (into_another_than_the_player, "PlanWireRoleEndpointMismatchError"),
        (out_of_another_than_the_player, "PlanWireRoleEndpointMismatchError"),
    ],
)
def test_a_wire_is_refused_by_the_first_rule_it_breaks(bench: Bench, case: Case, refusal: str) -> None:
    """Where a wire breaks two rules, the earlier one of the gate is named."""
    wire, before = bench.wire(case), bench.wires()
    with expect_refusal(refusal) as caught:
        bench.add(wire)
    assert caught.value.status == {"A": 404, "I": 400, "P": 409}[refusal[0]]
    assert bench.wires() == before


def test_a_refused_wire_names_what_stands_against_it(bench: Bench) -> None:
    with expect_refusal("PlanWireTargetAlreadyConnectedError", "target_connected") as caught:
        bench.add(bench.wire("box.spare_out > camera.trigger_in"))
    expected = {key: str(value) for key, value in bench.trigger_wire.items()}
    assert caught.value.facts["connected"] == expected
    assert caught.value.facts["source_port_name"] == "spare_out"
    with expect_refusal("PlanVirtualAxisArityMismatchError", "arity") as caught:
        bench.add(into_a_full_axis(bench))
    assert caught.value.facts == {"asset_id": str(bench.gap), "arity": 2, "wire_count": 3}


def test_an_axis_may_be_wired_to_fewer_than_its_rule_drives(bench: Bench) -> None:
    assert bench.add(wire_fields(bench.jaws[0], "position", bench.gap, "in0"))


def test_a_solver_rule_takes_any_number_of_wires(bench: Bench) -> None:
    fully_wired(bench)
    solver = {"kind": "SolverReference", "solver_id": "hexapod", "solver_version": "1"}
    rule = {**solver, "solver_transport_kind": "ControllerAPI"}
    bench.world.when(UpdateAssetPartitionRule(partition_rule=rule), on=bench.gap)
    assert bench.add(wire_fields(bench.jaws[2], "position", bench.gap, "in2"))


def test_a_plain_asset_takes_any_number_of_wires_of_any_signals(bench: Bench) -> None:
    bench.world.when(UpdateAssetPartitionRule(partition_rule=None), on=bench.gap)
    fully_wired(bench)
    bench.hutch.port(bench.gap, "in_counts", "Input", "counts")
    assert bench.add(wire_fields(bench.jaws[2], "counts", bench.gap, "in_counts"))


def test_a_wire_whose_source_port_is_gone_says_nothing_about_the_signal_of_an_axis(bench: Bench) -> None:
    of_another_signal(bench)
    bench.world.when(RemoveAssetPort(port_name="counts"), on=bench.jaws[0])
    assert bench.add(wire_fields(bench.jaws[1], "position", bench.gap, "in0"))


def test_a_value_is_shared_out_in_the_order_of_target_ports_then_sources() -> None:
    axis, first, second, third = sorted(new_id() for _ in range(4))
    wires = [
        Wire(**wire_fields(source, "position", target, port))
        for source, target, port in (
            (third, axis, "in1"),
            (second, axis, "in1"),
            (first, axis, "in2"),
            (third, axis, "in0"),
            (first, second, "in0"),
        )
    ]
    expected = [("in0", third), ("in1", second), ("in1", third), ("in2", first)]
    assert [(wire.target_port_name, wire.source_asset_id) for wire in wires_into(wires, axis)] == expected


def test_a_role_binds_no_port_once_it_is_unbound_or_dropped_by_the_method(bench: Bench) -> None:
    wire = into_another_than_the_player(bench)
    bench.world.when(RemoveMethodRequiredRole(role_name="detector"), on=bench.hutch.method_id)
    bench.add(wire)
    bench.remove(wire)
    bench.hutch.role("detector", required_ports=[{**TRIGGER_IN, "port_name": "gate_in"}])
    with expect_refusal("PlanWireRoleEndpointMismatchError"):
        bench.add(wire)
    bench.world.when(UnbindPlanRole(role_name="detector"), on=bench.plan_id)
    assert bench.add(wire)


def test_wires_hold_until_a_port_goes(bench: Bench) -> None:
    plan = bench.hutch.plan(bench.plan_id)

    def assets() -> dict[Any, Any]:
        return {id: asset_of(bench.world, id) for id in plan.asset_ids}

    check_wires(plan, assets())
    bench.world.when(RemoveAssetPort(port_name="trigger_in"), on=bench.camera)
    with expect_refusal("PlanWirePortNotFoundError", "port_not_found") as caught:
        check_wires(plan, assets())
    assert (caught.value.facts["asset_id"], caught.value.facts["port_name"]) == (str(bench.camera), "trigger_in")
    bench.world.given(bench.plan_id, PlanWireAdded(**bench.wire("box.spare_out > stranger.trigger_in")))
    bench.hutch.port(bench.camera, "trigger_in")
    with expect_refusal("PlanWireAssetNotBoundError", "asset_not_bound"):
        check_wires(bench.hutch.plan(bench.plan_id), assets())


ASSETS, PORTS = ("box", "camera", "stranger", "gap"), ("trigger_out", "spare_out", "gate_in", "trigger_in", "in0", "out0")
ENDS = st.tuples(st.sampled_from(ASSETS), st.sampled_from(PORTS), st.sampled_from(ASSETS), st.sampled_from(PORTS))


@given(st.lists(st.tuples(st.booleans(), ENDS), max_size=25))
def test_whatever_is_tried_the_wires_that_stand_obey_the_rules(steps: list[tuple[bool, Any]]) -> None:
    bench = Bench()
    for adding, (source, source_port, target, target_port) in steps:
        wire = wire_fields(getattr(bench, source), source_port, getattr(bench, target), target_port)
        with suppress(Refusal):
            (bench.add if adding else bench.remove)(wire)
    plan = bench.hutch.plan(bench.plan_id)
    targets = [(wire.target_asset_id, wire.target_port_name) for wire in plan.wires]
    assert len(targets) == len(set(targets))
    for wire in plan.wires:
        source = port_named(asset_of(bench.world, wire.source_asset_id), wire.source_port_name)
        target = port_named(asset_of(bench.world, wire.target_asset_id), wire.target_port_name)
        assert source is not None
        assert target is not None
        assert (source.direction, target.direction) == (PortDirection.OUTPUT, PortDirection.INPUT)
        assert source.signal_type == target.signal_type
        assert {wire.source_asset_id, wire.target_asset_id} <= plan.asset_ids
