"""The preflight of a procedure: every gate in order, and for each command exactly what that command would say."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.conduct import (
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
)
from baton.domain.conduct.endings import (
    AbortProcedure,
    CompleteProcedure,
    HoldProcedure,
    RecordConductEnd,
    TruncateProcedure,
)
from baton.domain.conduct.estimates import ConductWalk, Estimate, EstimateBasis, StepDuration
from baton.domain.conduct.iterations import StartProcedureIteration
from baton.domain.conduct.preflight import STEERED_CONDUCTS, PreflightProcedure, ProcedurePreflight
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.equipment.asset import COMMISSIONED, ActivateAsset, Asset, EnterAssetMaintenance, FaultAsset
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.equipment.signals import SetAssetSignalLimits
from baton.domain.kernel import Call, Command
from baton.domain.procedure.procedure import MODES, ConductMode, Procedure
from baton.domain.registry import REGISTRY
from baton.domain.run.run import HoldRun
from baton.domain.safety.clearance import ExpireClearance
from baton.domain.shared.gates import NOT_JUDGED
from baton.domain.shared.refusals import Refusal
from baton.domain.start.procedure_start import GATES, ISSUED, RUN_ISSUED, ResumeProcedure, StartProcedure
from baton.domain.start.procedure_start import RESUMING as RESUMING_COMMANDS
from baton.domain.start.registration import RegisterProcedure
from baton.domain.supply.supply import DegradeSupply
from tests.support.domain.conducts import SEARCH, conduct_result, end_in_hold, procedure_of, register_procedure_from_recipe
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import World, new_id
from tests.support.tables import for_each
from tests.support.workflows.step_json import criterion, setpoint

STARTING = [
    "grants_present",
    "status_allowed",
    "conduct_allowed",
    "parent_run_running",
    "steps_prepared",
    "targets_found",
    "signals_owned",
    "units_agree",
    "setpoints_within_limits",
    "targets_in_service",
    "assets_ready",
    "supplies_available",
    "enclosures_permitted",
    "clearance_in_force",
    "targets_unclaimed",
]
RESUMING = [*STARTING[:4], "conduct_unpinned", "outcome_known", "programs_allowed", *STARTING[5:]]
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
    "conduct_procedure": ConductProcedure(),
    "conduct_or_hold_procedure": ConductOrHoldProcedure(),
    "resume_procedure": ResumeProcedure(),
    "conduct_from_procedure": ConductFromProcedure(re_establishment_boundary=0),
    "conduct_until_converged": ConductUntilConverged(**LOOP),
    "conduct_until_advised": ConductUntilAdvised(**SEARCH),
    "conduct_until_advised_from": ConductUntilAdvisedFrom(**SEARCH),
}
"""Every command that begins a procedure or takes it up."""


def assert_true(line: Beamline, id: UUID) -> None:
    """What the preflight says of each command is what the command says; one that it does not list is refused."""
    answer = preflight(line, id)
    verdicts = {verdict.command: verdict for verdict in answer.commands}
    for name, command in COMMANDS.items():
        refusal, verdict = refusal_of(line, command, id), verdicts.get(name)
        if verdict is None:
            assert refusal is not None, name
            continue
        assert verdict.passed == (refusal is None), (verdict, refusal)
        if refusal is not None:
            (gate,) = (one for one in answer.gates if one.gate == verdict.refused_by and name in one.asked_by)
            assert (gate.code, gate.reason, gate.detail) == (refusal.code, refusal.reason, refusal.detail)
    usual = [answer.taken_up_by] if answer.taken_up_by else ["start_procedure", "conduct_procedure"]
    assert answer.passed == all(verdicts[name].passed for name in usual)


BREAKS: dict[str, Any] = {
    "run held": lambda line, id: line.world.when(HoldRun(), on=parent_of(line, id)),
    "asset faulted": lambda line, id: line.world.when(FaultAsset(reason="smoke"), on=line.hutch.timing_box),
    "asset maintained": lambda line, id: maintain(line, line.hutch.timing_box),
    "asset scrapped": lambda line, id: line.world.when(DecommissionAsset(), on=line.hutch.timing_box),
    "beam lost": lambda line, id: line.lose_beam(),
    "beam weak": lambda line, id: line.world.when(DegradeSupply(reason="half"), on=line.supply_id),
    "hutch open": lambda line, id: line.observe("NotPermitted"),
    "clearance over": lambda line, id: end_clearances(line),
    "owner faulted": lambda line, id: own_signals(line) or line.world.when(FaultAsset(reason="slip"), on=line.hutch.camera),
    "setpoint limited": lambda line, id: own_signals(line) or line.world.when(LIMIT, on=line.hutch.camera),
    "unowned refused": lambda line, id: setattr(line.world.ports["deployment"], "unowned_signals_allowed", False),
}


def maintain(line: Beamline, asset_id: UUID) -> None:
    if line.world.state(Asset, asset_id).lifecycle is COMMISSIONED:
        line.world.when(ActivateAsset(), on=asset_id)
    line.world.when(EnterAssetMaintenance(), on=asset_id)


def own_signals(line: Beamline) -> None:
    """The camera owns every signal of the steps."""
    identifier = {"kind": "EPICS_PV", "value": "bl7"}
    if not line.world.state(Asset, line.hutch.camera).alternate_identifiers:
        line.world.when(AddAssetAlternateIdentifier(**identifier), on=line.hutch.camera)


LIMIT = SetAssetSignalLimits(address="bl7:energy", high=20.0, reason="mirror")


def end_clearances(line: Beamline) -> None:
    for name, id in [key for key in line.world.streams if key[0] == "Clearance"]:
        assert name == "Clearance"
        line.world.when(ExpireClearance(reason="over"), on=id)


def parent_of(line: Beamline, id: UUID) -> UUID:
    parent_id: UUID = line.world.state(Procedure, id).parent_run_id
    return parent_id


def rival(line: Beamline) -> UUID:
    """Another procedure whose conduct has the timing box to itself."""
    task = {"name": "Time it", "kind": "timing", "target_asset_ids": [line.hutch.timing_box]}
    id = line.world.create(RegisterProcedure(**task))
    line.world.when(ConductProcedure(steps=STEPS), on=id)
    return id


def phase_with_recipe(line: Beamline) -> UUID:
    box = line.hutch.timing_box
    return register_procedure_from_recipe(line.world, parent_run_id=line.start(), target_asset_ids=[box])


def halt_conduct(world: World, id: UUID) -> None:
    world.when(RecordConductEnd(result=conduct_result(world, id, succeeded=False)), on=id)


CONDUCT = ConductProcedure(steps=STEPS)
STANDINGS: dict[str, list[Command | Callable[[World, UUID], object]]] = {
    "defined": [],
    "with a recipe": [],
    "started": [StartProcedure()],
    "in a pass": [StartProcedure(), StartProcedureIteration(iteration_index=1)],
    "completed": [StartProcedure(), CompleteProcedure()],
    "aborted": [StartProcedure(), AbortProcedure(reason="smoke")],
    "truncated": [StartProcedure(), TruncateProcedure(reason="power cut")],
    "conducted": [CONDUCT],
    "halted": [CONDUCT, halt_conduct],
    "held by hand": [StartProcedure(), HoldProcedure(reason="lunch")],
    "held conduct": [CONDUCT, end_in_hold],
    "held loop": [ConductUntilConverged(**LOOP, steps=STEPS), end_in_hold],
    "held search": [ConductUntilAdvised(**SEARCH), end_in_hold],
    "resumed by hand": [CONDUCT, end_in_hold, ResumeProcedure(by_hand=True)],
}
"""What happened to a phase, by where that leaves it."""


def phase_in(line: Beamline, standing: str) -> UUID:
    id = phase_with_recipe(line) if standing in ("with a recipe", "held search") else phase(line)
    for event in STANDINGS[standing]:
        if isinstance(event, Command):
            line.world.when(event, on=id)
        else:
            event(line.world, id)
    return id


PERMISSIONS = {
    name: REGISTRY.operations[name].command_name
    for name in ("start_procedure", *STEERED_CONDUCTS, "resume_procedure", *RESUMING_COMMANDS.values())
}
GRANTS = sorted({name for names in ISSUED.values() for name in names} | set(PERMISSIONS.values()))


@for_each("standing", STANDINGS)
def test_every_command_is_foretold_in_every_state(standing: str) -> None:
    line = beamline()
    assert_true(line, phase_in(line, standing))


@given(
    standing=st.sampled_from(sorted(STANDINGS)),
    broken=st.sets(st.sampled_from(sorted(BREAKS))),
    clash=st.booleans(),
    denied=st.sets(st.sampled_from(ISSUED[ConductMode.ADVISED]), max_size=2),
)
def test_a_preflight_passes_exactly_where_the_command_would(
    standing: str, broken: set[str], clash: bool, denied: set[str]
) -> None:
    line = beamline()
    id = phase_in(line, standing)
    line.world.denied = denied
    if clash and procedure_of(line.world, id).live_conduct_id is None:
        line.world.denied = set()
        rival(line)
        line.world.denied = denied
    if {"beam lost", "beam weak"} <= broken:
        broken.remove("beam weak")
    for name in sorted(broken):
        BREAKS[name](line, id)
    assert_true(line, id)


@for_each(("standing", "names"), [("defined", STARTING), ("held conduct", RESUMING)])
def test_there_is_one_row_for_each_gate_in_the_order_of_the_gates(standing: str, names: list[str]) -> None:
    line = beamline()
    answer = preflight(line, phase_in(line, standing))
    assert answer.passed
    assert [gate.gate for gate in answer.gates] == names
    assert answer.resuming == (names is RESUMING)


@for_each(
    ("standing", "command"),
    [
        ("held by hand", "resume_procedure"),
        ("held conduct", "conduct_from_procedure"),
        ("held loop", "conduct_until_converged"),
        ("held search", "conduct_until_advised_from"),
    ],
)
def test_a_held_procedure_names_the_command_that_takes_it_up(standing: str, command: str) -> None:
    line = beamline()
    answer = preflight(line, phase_in(line, standing))
    assert (answer.taken_up_by, answer.passed) == (command, True)
    by_hand = answer.commands[0]
    assert (by_hand.command, by_hand.passed) == ("resume_procedure", command == "resume_procedure")
    if not by_hand.passed:
        (pinned,) = (gate for gate in answer.gates if gate.gate == by_hand.refused_by)
        assert (pinned.reason, pinned.facts) == ("conduct_pinned", {"command": command})


def test_what_is_not_held_is_taken_up_by_nothing() -> None:
    line = beamline()
    assert preflight(line, phase(line)).taken_up_by is None


class TestGrants:
    @for_each("command_name", [name for name in PERMISSIONS.values() if name in MODES])
    @for_each("missing", [["HoldProcedure"], ["CompleteProcedure", "StartProcedureIteration"]])
    def test_a_conduct_is_not_opened_for_a_submitter_who_may_not_bring_it_to_its_end(
        self, command_name: str, missing: list[str]
    ) -> None:
        line = beamline()
        name = next(name for name, permission in PERMISSIONS.items() if permission == command_name)
        held = {ConductMode.FLAT: "held conduct", ConductMode.CONVERGED: "held loop", ConductMode.ADVISED: "held search"}
        goes_on = name in ("conduct_from_procedure", "conduct_until_advised_from")
        id = phase_in(line, held[MODES[command_name]] if goes_on else "with a recipe")
        command = COMMANDS[name]
        if name == "conduct_until_converged":
            command = ConductUntilConverged(**{**LOOP, "convergence_capture_name": "sharpness"})
        assert refusal_of(line, command, id) is None
        line.world.denied = set(missing)
        refusal = refusal_of(line, command, id)
        needed = [grant for grant in missing if grant in ISSUED[MODES[command_name]]]
        assert refusal is not None
        assert (refusal.code, refusal.reason) == ("UnauthorizedError", "grants_missing")
        assert refusal.facts == {"missing": needed}

    def test_the_gate_says_to_each_command_what_it_lacks(self) -> None:
        line = beamline()
        id = phase(line)
        line.world.denied = {"StartProcedure", "EndProcedureIteration"}
        rows = [gate for gate in preflight(line, id).gates if gate.gate == "grants_present"]
        assert {row.asked_by: (row.facts or {}).get("missing") for row in rows} == {
            ("start_procedure",): ["StartProcedure"],
            ("conduct_procedure", "conduct_or_hold_procedure"): None,
            ("conduct_until_converged",): ["EndProcedureIteration"],
        }

    def test_every_grant_that_is_asked_for_is_a_command(self) -> None:
        assert set(GRANTS) | set(RUN_ISSUED) <= REGISTRY.command_names()


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
    assert {one.command for one in answer.commands if one.passed} == {"start_procedure"}
    claimed = answer.gates[-1]
    assert claimed.gate == "targets_unclaimed"
    assert (claimed.code, claimed.reason) == ("ProcedureCannotConductError", "asset_in_use")
    assert claimed.facts is not None
    assert claimed.facts["procedure_id"] == str(other)


@for_each(
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
    assert set(shut) <= {"targets_found", *(gate.name for gate in GATES)}
    assert_true(line, id)


def test_it_says_how_long_a_conduct_would_take_where_its_steps_are_known() -> None:
    line = beamline()
    world = line.world
    step, shut = ("setpoint", "bl7:focus"), ("setpoint", "bl7:shutter")
    world.ports["step_durations"] = {key: StepDuration(count=1, median=10.0, p90=10.0) for key in (step, shut)}
    id = register_procedure_from_recipe(world)
    partly = Estimate(remaining_seconds=20, basis=EstimateBasis.PARTLY)
    assert preflight(line, id).estimate == partly, "its capture was never done"
    assert preflight(line, phase(line)).estimate is None, "its steps come with the request"
    world.when(ConductProcedure(), on=id)
    assert preflight(line, id).estimate is None, "it is under way"
    end_in_hold(world, id)
    world.ports |= {"conduct_walk": ConductWalk((step, step, step), (shut,)), "completed_step_count": 1}
    assert preflight(line, id).estimate == Estimate(remaining_seconds=30, basis=EstimateBasis.HISTORY)
