"""What refuses a conduct before it is opened: by which class, for which reason, in which order."""

import itertools
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure, ConductUntilConverged
from baton.domain.conduct.endings import RecordConductEnd
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus
from baton.domain.equipment.asset_tree import DecommissionAsset, RelocateAsset
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import (
    RUNNING,
    ConductMode,
    ProcedureAbortRequested,
    ProcedureCompleted,
    ProcedureConducted,
    ProcedureIterationStarted,
    ProcedureResumed,
    ProcedureStarted,
)
from baton.domain.run.run import HoldRun
from baton.domain.step.results import ConductResult
from baton.domain.supply.supply import DegradeSupply
from tests.support.domain.assets import enclosure
from tests.support.domain.conducts import (
    BEGINNING,
    FORWARD,
    GOING_ON,
    LOOP,
    SEARCH,
    STEPS,
    conduct_result,
    open_and_hold,
    open_conduct,
    procedure_of,
    register_procedure,
    register_procedure_from_recipe,
)
from tests.support.domain.run_beamline import SEARCHED, Beamline, beamline
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each
from tests.support.workflows.step_json import criterion


class Phase:
    """A procedure on three assets of a running run, and for everything that can keep it from being conducted a way to
    bring that about."""

    def __init__(self) -> None:
        self.line = beamline()
        self.world = self.line.world
        self.run_id = self.line.start()
        hutch = self.line.hutch
        self.fields = {"parent_run_id": self.run_id, "target_asset_ids": [hutch.camera, hutch.shutter, hutch.timing_box]}

    def occupy(self) -> None:
        rival = register_procedure(self.world, target_asset_ids=[self.line.hutch.camera])
        self.world.when(ConductProcedure(steps=STEPS), on=rival)

    def hold_run(self) -> None:
        self.world.when(HoldRun(), on=self.run_id)

    def lose_target(self) -> None:
        del self.world.streams["Asset", self.line.hutch.shutter]

    def scrap_target(self) -> None:
        self.world.when(DecommissionAsset(), on=self.line.hutch.timing_box)

    def apply_obstacle(self, id: UUID, obstacle: str) -> None:
        conduct_id = new_id()
        opening = ProcedureStarted(conduct_id=conduct_id, command_name="ConductProcedure")
        closing = ProcedureAbortRequested(conduct_id=conduct_id, reason="smoke", run_closing=True)
        resumed = ProcedureResumed(
            re_establishment_boundary=0, conduct_id=None, command_name=None, decided_by_decision_id=None
        )
        completed = ProcedureCompleted(actuation_kind=None, termination_reason=None)
        result = ConductResult(procedure_id=id, conduct_id=conduct_id, command_name="ConductProcedure", succeeded=True)
        actions: dict[str, Callable[[], Any]] = {
            "asset in use": self.occupy,
            "pinned": lambda: self.world.given(id, opening, ProcedureConducted(conduct_id=conduct_id, result=result)),
            "live": lambda: self.world.given(id, opening),
            "closing live": lambda: self.world.given(id, closing),
            "iteration open": lambda: self.world.given(id, ProcedureIterationStarted(iteration_index=1)),
            "completed": lambda: self.world.given(id, completed),
            "not held": lambda: self.world.given(id, resumed),
            "run held": self.hold_run,
            "target missing": self.lose_target,
            "target scrapped": self.scrap_target,
            "no beam": self.line.lose_beam,
            "not permitted": lambda: self.line.observe("NotPermitted"),
        }
        actions[obstacle]()


ARRANGED = ["asset in use", "pinned", "live", "closing live", "iteration open", "completed", "not held", "run held"]
"""What has to be brought about before the rest."""
Refused = tuple[str, int, str | None]
GROUND: dict[str, Refused] = {
    "target scrapped": ("ProcedureAssetDecommissionedError", 409, "asset_decommissioned"),
    "no beam": ("ProcedureSupplyCoverageMismatchError", 409, None),
    "not permitted": ("ProcedureRequiresPermittedEnclosureError", 409, None),
    "asset in use": ("ProcedureCannotConductError", 409, "asset_in_use"),
}
BEFORE_A_BEGINNING: dict[str, Refused] = {
    "live": ("ProcedureCannotConductError", 409, "conduct_live"),
    "completed": ("ProcedureCannotStartError", 409, "completed"),
    "pinned": ("ProcedureCannotStartError", 409, "pinned"),
    "iteration open": ("ProcedureCannotStartError", 409, "iteration_open"),
    "run held": ("ProcedureCannotStartError", 409, "parent_run_not_running"),
    "steps": ("InvalidRecipeStepShapeError", 422, "unknown_kind"),
    "target missing": ("AssetNotFoundError", 404, None),
    **GROUND,
}
BEFORE_GOING_ON: dict[str, Refused] = {
    "closing live": ("ProcedureCannotConductError", 409, "conduct_live"),
    "not held": ("ProcedureCannotResumeError", 409, "running"),
    "run held": ("ProcedureCannotResumeError", 409, "parent_run_not_running"),
    "other mode": ("ProcedureCannotResumeError", 409, "other_mode"),
    "target missing": ("AssetNotFoundError", 404, None),
    "changed": ("", 0, None),
    **GROUND,
}
"""What stands in the way of a conduct, in the order in which it is told."""


def obstruct_phase(phase: Phase, id: UUID, obstacles: list[str]) -> None:
    """Apply every obstacle on the list, in an order in which that is possible."""
    for obstacle in sorted(obstacles, key=lambda name: ARRANGED.index(name) if name in ARRANGED else len(ARRANGED)):
        if obstacle not in ("steps", "other mode", "changed"):
            phase.apply_obstacle(id, obstacle)


@for_each("how", FORWARD)
@for_each("obstacle", BEFORE_A_BEGINNING)
def test_what_keeps_a_conduct_from_beginning_is_told_in_order(obstacle: str, how: str) -> None:
    standing = list(BEFORE_A_BEGINNING)[list(BEFORE_A_BEGINNING).index(obstacle) :]
    phase = Phase()
    id = register_procedure(phase.world, **phase.fields)
    obstruct_phase(phase, id, standing)
    command = FORWARD[how]([{"kind": "dance"}] if "steps" in standing else STEPS)
    code, status, reason = BEFORE_A_BEGINNING[obstacle]
    with expect_refusal(code, reason) as caught:
        phase.world.when(command, on=id)
    assert caught.value.status == status


BEYOND = ConductFromProcedure(re_establishment_boundary=3)
LOOSER = ConductUntilConverged(**{**LOOP, "criterion": criterion(1.0, 0.1)})
ELSEWHERE = ConductUntilAdvisedFrom(**{**SEARCH, "objective": {"kind": "Explore"}})
CHANGED: dict[ConductMode, tuple[Command, str, int]] = {
    ConductMode.FLAT: (BEYOND, "InvalidProcedureReEstablishmentBoundaryError", 400),
    ConductMode.CONVERGED: (LOOSER, "ProcedureCannotResumeError", 409),
    ConductMode.ADVISED: (ELSEWHERE, "ProcedureSteeringDesignMismatchError", 422),
}
"""What no held conduct goes on with."""


BEGUN_INSTEAD = ("not held", ConductMode.CONVERGED)
"""A loop that is not held does not go on by its command, but would begin."""


@for_each(("obstacle", "mode"), [cell for cell in itertools.product(BEFORE_GOING_ON, ConductMode) if cell != BEGUN_INSTEAD])
def test_what_keeps_a_conduct_from_going_on_is_told_in_order(obstacle: str, mode: ConductMode) -> None:
    standing = list(BEFORE_GOING_ON)[list(BEFORE_GOING_ON).index(obstacle) :]
    phase = Phase()
    id = register_procedure_from_recipe(phase.world, **phase.fields)
    other = BEGINNING[ConductMode.FLAT if mode is ConductMode.ADVISED else ConductMode.ADVISED]
    open_and_hold(phase.world, other if "other mode" in standing else BEGINNING[mode], on=id)
    obstruct_phase(phase, id, standing)
    changed, code, status = CHANGED[mode]
    command, reason = changed if "changed" in standing else GOING_ON[mode], None
    if obstacle != "changed":
        code, status, reason = BEFORE_GOING_ON[obstacle]
    with expect_refusal(code, reason) as caught:
        phase.world.when(command, on=id)
    assert caught.value.status == status


def test_an_unknown_parent_run_is_not_found(world: World) -> None:
    id = register_procedure(world, parent_run_id=new_id())
    with expect_refusal("RunNotFoundError"):
        world.when(ConductProcedure(), on=id)


def test_missing_targets_are_all_named(world: World) -> None:
    gone = sorted([new_id(), new_id()])
    id = register_procedure(world, target_asset_ids=gone)
    with expect_refusal("AssetNotFoundError") as caught:
        world.when(ConductProcedure(), on=id)
    assert caught.value.facts == {"missing_ids": [str(one) for one in gone]}


def test_scrapped_targets_are_all_named(line: Beamline) -> None:
    gone = sorted([line.hutch.timing_box, line.hutch.shutter])
    id = register_procedure(line.world, target_asset_ids=[*gone, line.hutch.camera])
    for one in gone:
        line.world.when(DecommissionAsset(), on=one)
    with expect_refusal("ProcedureAssetDecommissionedError") as caught:
        line.world.when(ConductProcedure(), on=id)
    assert caught.value.facts == {"asset_ids": [str(one) for one in gone]}


def test_some_enclosures_that_do_not_permit_are_told_from_all(line: Beamline) -> None:
    cabinet = enclosure(line.world, "Optics hutch A")
    line.world.when(RelocateAsset(located_in_enclosure_id=cabinet, reason="it stands there"), on=line.hutch.timing_box)
    line.world.when(ObserveEnclosureStatus(new_status="NotPermitted", **SEARCHED), on=cabinet)
    id = register_procedure(line.world, target_asset_ids=[line.hutch.timing_box])
    with expect_refusal("ProcedureEnclosureCoverageMismatchError"):
        line.world.when(ConductProcedure(), on=id)


def test_a_phase_needs_the_enclosures_of_its_runs_plan_too(line: Beamline) -> None:
    alone, phase = register_procedure(line.world), register_procedure(line.world, parent_run_id=line.start())
    line.observe("NotPermitted")
    line.world.when(ConductProcedure(), on=alone)
    with expect_refusal("ProcedureRequiresPermittedEnclosureError"):
        line.world.when(ConductProcedure(), on=phase)


def test_a_degraded_supply_is_enough_to_go_on_and_not_to_begin(line: Beamline) -> None:
    run_id = line.start()
    held, fresh = register_procedure(line.world, parent_run_id=run_id), register_procedure(line.world, parent_run_id=run_id)
    open_and_hold(line.world, ConductProcedure(steps=STEPS), on=held)
    assert line.supply_id is not None
    line.world.when(DegradeSupply(reason="half the current"), on=line.supply_id)
    line.world.when(ConductFromProcedure(re_establishment_boundary=0), on=held)
    with expect_refusal("ProcedureSupplyCoverageMismatchError"):
        line.world.when(ConductProcedure(steps=STEPS), on=fresh)


def test_a_second_conduct_beside_a_live_one_is_told_which(world: World) -> None:
    id = register_procedure_from_recipe(world)
    conduct_id = open_conduct(world, ConductProcedure(), on=id)
    for command in (*BEGINNING.values(), *GOING_ON.values()):
        with expect_refusal("ProcedureCannotConductError", "conduct_live") as caught:
            world.when(command, on=id)
        assert caught.value.facts == {"conduct_id": str(conduct_id)}


@pytest.mark.parametrize("mode", ConductMode)
def test_what_was_conducted_is_not_begun_again(world: World, mode: ConductMode) -> None:
    id = register_procedure_from_recipe(world)
    open_conduct(world, BEGINNING[mode], on=id)
    world.when(RecordConductEnd(result=conduct_result(world, id, succeeded=False, acquisition_halt=True)), on=id)
    assert procedure_of(world, id).status is RUNNING
    for command in BEGINNING.values():
        with expect_refusal("ProcedureCannotStartError", "pinned"):
            world.when(command, on=id)


@pytest.mark.parametrize("how", [*FORWARD, "advise"])
def test_steps_are_not_sent_for_a_recipe(world: World, how: str) -> None:
    id = register_procedure_from_recipe(world)
    if how == "advise":
        with pytest.raises(ValidationError, match="steps"):
            ConductUntilAdvised(**SEARCH, steps=STEPS)
        return
    with expect_refusal("ProcedureStepsForbiddenError") as caught:
        world.when(FORWARD[how](STEPS), on=id)
    assert caught.value.status == 400


@for_each(
    ("fields", "place"),
    [
        ({"wait": -1}, "wait"),
        ({"wait": 60.5}, "wait"),
        ({"wait": "5"}, "wait"),
        ({"wait": True}, "wait"),
        ({"steps": [STEPS[0]] * 501}, "steps"),
        ({"conduct_id": str(new_id())}, "conduct_id"),
        ({"re_establishment_boundary": 0}, "re_establishment_boundary"),
    ],
)
def test_a_request_of_another_form_is_refused_at_the_edge(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError, match=place):
        ConductProcedure(**fields)


@for_each("boundary", [-1, 0.5, "0", True])
def test_a_boundary_is_a_whole_number(boundary: Any) -> None:
    with pytest.raises(ValidationError, match="re_establishment_boundary"):
        ConductFromProcedure(re_establishment_boundary=boundary)
