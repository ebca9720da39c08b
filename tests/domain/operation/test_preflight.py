"""The preflight of a procedure: every gate in order, and for each command exactly what that command would say."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.equipment.asset_tree import DecommissionAsset
from domain.kernel import Call, Command
from domain.operation.carrying_out import ResumeProcedure, StartProcedure
from domain.operation.conducting import ConductFromProcedure, ConductProcedure, ConductUntilConverged
from domain.operation.preflight import NOT_JUDGED, PreflightProcedure, ProcedurePreflight
from domain.operation.procedure import Procedure
from domain.operation.registering import RegisterProcedure
from domain.operation.stopping import CompleteProcedure, HoldProcedure
from domain.run.run import HoldRun
from domain.shared.refusals import Refusal
from domain.supply.supply import DegradeSupply
from tests.domain.operation.conducts import left_held
from tests.domain.run.beamline import Beamline, beamline
from tests.domain.world import new_id
from tests.workflows.steps import criterion, setpoint

STARTING = [
    "status_allowed",
    "conduct_allowed",
    "parent_run_running",
    "steps_prepared",
    "targets_found",
    "targets_in_service",
    "supplies_available",
    "enclosures_permitted",
    "targets_unclaimed",
]
RESUMING = ["programs_allowed" if name == "steps_prepared" else name for name in STARTING]
STEPS = (setpoint("bl7:energy", 25.0),)
LOOP: dict[str, Any] = {"convergence_capture_name": "offset", "criterion": criterion(0, 0.5)}


def phase(line: Beamline, **fields: Any) -> UUID:
    """A procedure within a run, on the timing box."""
    task = {"name": "Centre the axis", "kind": "center_alignment", "target_asset_ids": [line.hutch.timing_box]}
    return line.world.create(RegisterProcedure(**{"parent_run_id": line.start(), **task, **fields}))


def preflight(line: Beamline, id: UUID) -> ProcedurePreflight:
    answer: ProcedurePreflight = line.world.ask(PreflightProcedure(), on=id)
    return answer


def refusal_of(line: Beamline, command: Command, id: UUID) -> Refusal | None:
    """What a command would be refused with now; nothing is written."""
    world = line.world
    call = Call(world.principal_id, world.surface_id, world.now, new_id(), new_id())
    try:
        world.fulfil(command.operation.decision(command, world.state(Procedure, id), call))
    except Refusal as refusal:
        return refusal
    return None


COMMANDS: dict[str, Command] = {
    "start_procedure": StartProcedure(),
    "conduct_procedure": ConductProcedure(steps=STEPS),
    "resume_procedure": ResumeProcedure(by_hand=True),
    "conduct_from_procedure": ConductFromProcedure(re_establishment_boundary=0),
    "conduct_until_converged": ConductUntilConverged(**LOOP),
}


def assert_true(line: Beamline, id: UUID) -> None:
    """What the preflight says of each command is what the command says."""
    answer = preflight(line, id)
    for verdict in answer.commands:
        refusal = refusal_of(line, COMMANDS[verdict.command], id)
        assert verdict.passed == (refusal is None), (verdict, refusal)
        if refusal is not None:
            (gate,) = (one for one in answer.gates if one.gate == verdict.refused_by)
            assert verdict.command in gate.asked_by
            assert (gate.code, gate.reason, gate.detail) == (refusal.code, refusal.reason, refusal.detail)
    assert answer.passed == all(verdict.passed for verdict in answer.commands)


BREAKS: dict[str, Any] = {
    "run held": lambda line, id: line.world.when(HoldRun(), on=parent_of(line, id)),
    "asset scrapped": lambda line, id: line.world.when(DecommissionAsset(), on=line.hutch.timing_box),
    "beam lost": lambda line, id: line.lose_beam(),
    "beam weak": lambda line, id: line.world.when(DegradeSupply(reason="half"), on=line.supply_id),
    "hutch open": lambda line, id: line.observe("NotPermitted"),
}


def parent_of(line: Beamline, id: UUID) -> UUID:
    parent_id: UUID = line.world.state(Procedure, id).parent_run_id
    return parent_id


def rival(line: Beamline) -> UUID:
    """Another procedure whose conduct has the timing box to itself."""
    task = {"name": "Time it", "kind": "timing", "target_asset_ids": [line.hutch.timing_box]}
    id = line.world.create(RegisterProcedure(**task))
    line.world.when(ConductProcedure(steps=STEPS), on=id)
    return id


def defined(line: Beamline) -> UUID:
    return phase(line)


def started(line: Beamline) -> UUID:
    id = phase(line)
    line.world.when(StartProcedure(), on=id)
    return id


def completed(line: Beamline) -> UUID:
    id = started(line)
    line.world.when(CompleteProcedure(), on=id)
    return id


def conducted(line: Beamline) -> UUID:
    id = phase(line)
    line.world.when(ConductProcedure(steps=STEPS), on=id)
    return id


def held_by_hand(line: Beamline) -> UUID:
    id = started(line)
    line.world.when(HoldProcedure(reason="lunch"), on=id)
    return id


def held_conduct(line: Beamline) -> UUID:
    id = conducted(line)
    left_held(line.world, id)
    return id


def held_loop(line: Beamline) -> UUID:
    id = phase(line)
    line.world.when(ConductUntilConverged(**LOOP, steps=STEPS), on=id)
    left_held(line.world, id)
    return id


STANDINGS = [defined, started, completed, conducted, held_by_hand, held_conduct, held_loop]


@settings(max_examples=60)
@given(standing=st.sampled_from(STANDINGS), broken=st.sets(st.sampled_from(sorted(BREAKS))), clash=st.booleans())
def test_a_preflight_passes_exactly_where_the_command_would(standing: Any, broken: set[str], clash: bool) -> None:
    line = beamline()
    id = standing(line)
    if clash and standing is not conducted:
        rival(line)
    if {"beam lost", "beam weak"} <= broken:
        broken.remove("beam weak")
    for name in sorted(broken):
        BREAKS[name](line, id)
    assert_true(line, id)


@pytest.mark.parametrize(("standing", "names"), [(defined, STARTING), (held_conduct, RESUMING)])
def test_there_is_one_row_for_each_gate_in_the_order_of_the_gates(standing: Any, names: list[str]) -> None:
    line = beamline()
    answer = preflight(line, standing(line))
    assert answer.passed
    assert [gate.gate for gate in answer.gates] == names
    assert answer.resuming == (names is RESUMING)


def test_a_held_procedure_names_the_command_that_takes_it_up() -> None:
    line = beamline()
    for standing, commands in (
        (held_by_hand, []),
        (held_conduct, ["conduct_from_procedure"]),
        (held_loop, ["conduct_until_converged"]),
    ):
        answer = preflight(line, standing(line))
        assert [verdict.command for verdict in answer.commands] == ["resume_procedure", *commands]


def test_gates_name_what_they_ask_about() -> None:
    line = beamline()
    id = phase(line)
    asked = {gate.gate: gate.subjects for gate in preflight(line, id).gates}
    box = (line.hutch.timing_box,)
    assert asked["parent_run_running"] == (parent_of(line, id),)
    assert asked["targets_found"] == asked["targets_in_service"] == asked["targets_unclaimed"] == box
    assert asked["supplies_available"] == (line.supply_id,)
    assert asked["enclosures_permitted"] == (line.enclosure_id,)


def test_a_claimed_asset_is_in_the_way_of_a_conduct_only_and_names_who_has_it() -> None:
    line = beamline()
    id, other = phase(line), rival(line)
    answer = preflight(line, id)
    assert [(one.command, one.passed) for one in answer.commands] == [
        ("start_procedure", True),
        ("conduct_procedure", False),
    ]
    claimed = answer.gates[-1]
    assert (claimed.gate, claimed.code, claimed.reason) == (
        "targets_unclaimed",
        "ProcedureCannotConductError",
        "asset_in_use",
    )
    assert claimed.facts is not None
    assert claimed.facts["procedure_id"] == str(other)


@pytest.mark.parametrize(
    ("fields", "gate", "code"),
    [
        ({"target_asset_ids": [new_id()]}, "targets_found", "AssetNotFoundError"),
        ({"parent_run_id": new_id()}, "parent_run_running", "RunNotFoundError"),
    ],
)
def test_what_rests_on_something_missing_is_not_judged(fields: dict[str, Any], gate: str, code: str) -> None:
    line = beamline()
    id = phase(line, **fields)
    answer = preflight(line, id)
    shut = {one.gate: one for one in answer.gates if not one.passed}
    assert shut.pop(gate).code == code
    assert {one.reason for one in shut.values()} == {NOT_JUDGED}
    assert set(shut) <= {"targets_found", "targets_in_service", "supplies_available", "enclosures_permitted"}
    assert_true(line, id)


def test_asking_changes_nothing() -> None:
    line = beamline()
    id = phase(line)
    before = {key: len(events) for key, events in line.world.streams.items()}, dict(line.world.claims)
    preflight(line, id)
    assert ({key: len(events) for key, events in line.world.streams.items()}, dict(line.world.claims)) == before
