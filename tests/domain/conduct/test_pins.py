"""Pins: the steps of a procedure derived again exactly, and virtual axes taken apart before anything starts."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.calibration.calibration import AppendCalibrationRevision, DefineCalibration
from baton.domain.conduct.pins import prepare_steps
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.procedure.procedure import Procedure, ProcedureRecipeExpanded
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.steps import wire_form
from baton.domain.run.run import Run
from baton.domain.start.registration import RegisterProcedure
from tests.domain.start.test_registration import recipe, register
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import expect_refusal, new_id

ENERGY = {"kind": "setpoint", "address": "bl7:energy", "value": 25.0}


def register_from_recipe(line: Beamline) -> UUID:
    return line.world.create(register(recipe(line)))


def pin(line: Beamline, id: UUID, sent: list[Any] | None = None, run: Run | None = None) -> Expansion:
    procedure: Procedure = line.world.state(Procedure, id)
    expansion: Expansion = line.world.fulfil(prepare_steps(procedure, sent or [], run))
    return expansion


def test_a_recipe_expands_again_to_what_was_registered(line: Beamline) -> None:
    id = register_from_recipe(line)
    pinned = pin(line, id)
    assert wire_form(pinned.steps)[0]["params"] == {"dwell": 0.1, "repetitions": 2}
    (record,) = line.world.streams["Procedure", id][1:]
    assert isinstance(record, ProcedureRecipeExpanded)
    assert pinned.steps_hash == record.steps_hash


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"bindings_hash": "0" * 64}, "ProcedureExpansionDriftError"),
        ({"bindings": {}}, "ProcedureExpansionDriftError"),
        ({"steps_hash": "0" * 64}, "ProcedureExpansionDriftError"),
        ({"expander_version": 0}, "ProcedureExpanderVersionMismatchError"),
        ({"recipe_version": "never"}, "RecipeVersionNotFoundError"),
    ],
    ids=["hash of bindings", "bindings", "steps", "expander", "version"],
)
def test_what_cannot_be_pinned_faithfully_again_is_refused(line: Beamline, changes: dict[str, Any], refusal: str) -> None:
    id = register_from_recipe(line)
    stream = line.world.streams["Procedure", id]
    (record,) = (event for event in stream if isinstance(event, ProcedureRecipeExpanded))
    stream[stream.index(record)] = record.model_copy(update=changes)
    with expect_refusal(refusal):
        pin(line, id)


def test_without_the_record_of_its_expansion_a_recipe_is_not_expanded(line: Beamline) -> None:
    id = register_from_recipe(line)
    del line.world.streams["Procedure", id][1:]
    with expect_refusal("ProcedureExpansionRecordNotFoundError") as caught:
        pin(line, id)
    assert caught.value.status == 500


def register_by_hand(line: Beamline) -> UUID:
    return line.world.create(RegisterProcedure(name="Set the energy", kind="beam_mode_change"))


def test_steps_that_are_sent_are_pinned_as_they_are(line: Beamline) -> None:
    capture = {"kind": "capture", "address": "bl7:x.RBV", "capture_name": "home"}
    back = {"kind": "setpoint", "address": "bl7:x", "value": {"__capture__": "home"}, "verify": False}
    pinned = pin(line, register_by_hand(line), [capture, back])
    assert wire_form(pinned.steps) == [capture, back]
    assert pinned.closing_steps == ()


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"kind": "compute", "command": ["rm"]}, "compute_needs_recipe"),
        ({**ENERGY, "value": {"__binding__": "energy"}}, "misplaced_sentinel"),
        ({"kind": "dance"}, "unknown_kind"),
    ],
    ids=["program", "binding", "unknown"],
)
def test_unreviewed_programs_and_open_bindings_are_not_sent(line: Beamline, step: dict[str, Any], reason: str) -> None:
    with expect_refusal("InvalidRecipeStepShapeError", reason):
        pin(line, register_by_hand(line), [step])


def gap(line: Beamline, **rule: Any) -> tuple[dict[str, Any], Run]:
    """A step on a virtual axis that two blades are wired into, and the run whose plan wires them."""
    hutch = line.hutch
    axis = hutch.virtual_axis(**rule)
    blades = [hutch.asset(name) for name in ("Left blade", "Right blade")][: 1 if rule else 2]
    plan_id = hutch.define_plan(asset_ids=[*hutch.asset_ids, axis, *blades])
    for number, blade in enumerate(blades):
        hutch.port(blade, "position_out", "Output", "position")
        named = {"kind": "EPICS_PV", "value": f"bl7:blade{number}"}
        line.world.when(AddAssetAlternateIdentifier(**named), on=blade)
        hutch.wire(plan_id, blade, "position_out", axis, f"in{number}")
    hutch.bind(plan_id, hutch.camera)
    run_id = line.start(plan_id=plan_id, campaign_id=None, override_parameters={})
    return {"kind": "setpoint", "address": f"virtual-axis://{axis}", "value": 4.0}, line.run(run_id)


def test_a_virtual_axis_becomes_its_constituents_in_wiring_order(line: Beamline) -> None:
    step, run = gap(line)
    pinned = pin(line, register_by_hand(line), [ENERGY, step], run)
    assert [(one["address"], one["value"]) for one in wire_form(pinned.steps)] == [
        ("bl7:energy", 25.0),
        ("bl7:blade0", -2.0),
        ("bl7:blade1", 2.0),
    ]


@pytest.mark.parametrize("value", ["wide", True, {"__capture__": "gap"}], ids=["text", "switch", "slot"])
def test_a_virtual_axis_takes_a_number_that_is_known(line: Beamline, value: Any) -> None:
    step, run = gap(line)
    with expect_refusal("ProcedureVirtualAxisOutOfRangeError"):
        pin(line, register_by_hand(line), [{**step, "value": value}], run)


def test_a_virtual_axis_needs_a_run_that_says_its_wiring(line: Beamline) -> None:
    step, _ = gap(line)
    with expect_refusal("ProcedureVirtualAxisUnresolvedError"):
        pin(line, register_by_hand(line), [step])


@pytest.mark.parametrize("address", ["virtual-axis://here", f"virtual-axis://{new_id()}"], ids=["no id", "no asset"])
def test_an_unknown_virtual_axis_is_refused(line: Beamline, address: str) -> None:
    _, run = gap(line)
    with expect_refusal("ProcedureVirtualAxisUnresolvedError"):
        pin(line, register_by_hand(line), [{**ENERGY, "address": address}], run)


def test_an_axis_without_an_address_of_its_own_leaves_it_unresolved(line: Beamline) -> None:
    step, run = gap(line)
    (blade,) = (id for name, id in line.world.streams if name == "Asset" and asset_name(line, id) == "Left blade")
    line.world.when(AddAssetAlternateIdentifier(kind="EPICS_PV", value="bl7:other"), on=blade)
    with expect_refusal("ProcedureVirtualAxisUnresolvedError") as caught:
        pin(line, register_by_hand(line), [step], run)
    assert "2 EPICS_PV" in caught.value.detail


def asset_name(line: Beamline, id: UUID) -> str:
    name: str = line.world.state(Asset, id).name
    return name


def test_a_table_follows_the_revision_it_pins(line: Beamline) -> None:
    curve = {"target_id": new_id(), "quantity": "energy_position_curve", "operating_point": {"axis_designation": "mono"}}
    calibration_id = line.world.create(DefineCalibration(**curve))
    points = [{"energy": 20, "position": 1.0}, {"energy": 30, "position": 3.0}]
    source = {"kind": "Measured", "procedure_id": str(new_id())}
    line.world.when(AppendCalibrationRevision(value={"points": points}, status="Verified", source=source), on=calibration_id)
    revision_id = line.world.answer["revision_id"]
    table = {"kind": "LookupTable", "calibration_id": calibration_id, "calibration_revision_id": revision_id}
    step, run = gap(line, **table, extrapolation_kind="Error")
    (one,) = wire_form(pin(line, register_by_hand(line), [{**step, "value": 25}], run).steps)
    assert (one["address"], one["value"]) == ("bl7:blade0", 2.0)
    with expect_refusal("ProcedureVirtualAxisOutOfRangeError"):
        pin(line, register_by_hand(line), [{**step, "value": 40}], run)


def test_a_captured_number_counts_in_the_unit_that_it_was_captured_in(line: Beamline) -> None:
    kept = {"kind": "capture", "address": "bl7:gap", "capture_name": "gap", "unit": "mm"}
    used = {"kind": "setpoint", "address": "bl7:gap", "value": {"__capture__": "gap"}}
    pinned = pin(line, register_by_hand(line), [ENERGY, kept, used])
    assert [one.get("unit") for one in wire_form(pinned.steps)] == [None, "mm", "mm"]

    with expect_refusal("UnitMismatchError"):
        pin(line, register_by_hand(line), [kept, {**used, "unit": "um"}])


def test_a_virtual_axis_is_commanded_in_the_unit_of_its_rule_and_sets_its_axes_in_theirs(line: Beamline) -> None:
    units = {"input_unit": {"system": "udunits", "code": "mm"}, "output_unit": {"system": "udunits", "code": "degree"}}
    step, run = gap(line, kind="Affine", gain=2.0, **units)
    (driven,) = wire_form(pin(line, register_by_hand(line), [{**step, "value": 4000.0, "unit": "um"}], run).steps)
    assert (driven["address"], driven["value"], driven["unit"]) == ("bl7:blade0", 8.0, "degree")
    with expect_refusal("UnitMismatchError"):
        pin(line, register_by_hand(line), [{**step, "unit": "keV"}], run)


def test_a_tolerance_on_a_virtual_axis_is_shared_out_in_the_units_of_its_constituents(line: Beamline) -> None:
    step, run = gap(line)
    verify = {"tolerance": 0.25, "timeout": 5.0}
    both = wire_form(pin(line, register_by_hand(line), [{**step, "verify": verify}], run).steps)
    assert [one["verify"] for one in both] == [{"tolerance": 0.125, "timeout": 5.0}] * 2

    units = {"input_unit": {"system": "udunits", "code": "mm"}, "output_unit": {"system": "udunits", "code": "degree"}}
    step, run = gap(line, kind="Affine", gain=-2.0, offset=7.0, **units)
    micron = {**step, "verify": {"tolerance": 500.0, "unit": "um"}}
    (driven,) = wire_form(pin(line, register_by_hand(line), [micron], run).steps)
    assert (driven["unit"], driven["verify"]) == ("degree", {"tolerance": 1.0, "unit": "degree"})
    with expect_refusal("UnitMismatchError"):
        pin(line, register_by_hand(line), [{**step, "verify": {"tolerance": 0.1, "unit": "keV"}}], run)


@pytest.mark.parametrize(
    ("rule", "verify"),
    [
        ({"kind": "Aggregation", "aggregator_kind": "Product"}, {"tolerance": 0.1}),
        ({"kind": "Affine"}, {"tolerance": 0.1, "address": "bl7:gap.RBV"}),
        ({"kind": "Affine"}, {"tolerance": 0.1, "unit": "mm"}),
    ],
    ids=["no tolerance of each", "a signal of the whole", "no unit to carry it from"],
)
def test_a_tolerance_that_cannot_be_shared_out_is_refused(line: Beamline, rule: Any, verify: Any) -> None:
    step, run = gap(line, **rule)
    with expect_refusal("ProcedureVirtualAxisVerifyError", "verify"):
        pin(line, register_by_hand(line), [{**step, "verify": verify}], run)
