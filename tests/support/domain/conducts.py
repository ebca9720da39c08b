"""Verbs to arrange conducts with: something to conduct, how a conduct comes to its end, and what it waits for."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

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
from baton.domain.conduct.progress import ConductProgress, FilledSlot, OpenedConduct, WaitingFor
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import (
    ABORTED,
    COMPLETED,
    HELD,
    RUNNING,
    ConductMode,
    HoldCause,
    Procedure,
    ProcedureOutcomeRecorded,
    ProcedureStatus,
)
from baton.domain.recipe.capability import CODE_PREFIX
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.start.procedure_start import ResumeProcedure
from baton.domain.start.registration import RegisterProcedure, RegisterProcedureFromRecipe
from baton.domain.step.results import ConductResult, Failure, Measured
from tests.support.domain.templates import capability
from tests.support.domain.world import World, new_id
from tests.support.workflows.step_json import capture, check, criterion, setpoint, steered_value

Raw = dict[str, Any]

FOCUS_STEPS = [setpoint("bl7:focus", steered_value("focus")), capture("bl7:camera:sharpness", "sharpness")]
"""One pass of a search for the focus."""
WAITING_CHECK = check("bl7:furnace", 600.0, 5.0, timeout=3600)
CLOSE_SHUTTER = [setpoint("bl7:shutter", 0)]
LOOP: Raw = {"convergence_capture_name": "sharpness", "criterion": criterion(1.0, 0.05)}
SEARCH: Raw = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -2, "upper": 2}]},
    "objective_capture_name": "sharpness",
}
BY_CALLER: Raw = {**SEARCH, "decide": {"substrate": "caller", "advice_timeout": 600}}
STEPS = [setpoint("bl7:energy", 25.0), capture("bl7:camera:sharpness", "sharpness")]
FORWARD: dict[str, Callable[..., Command]] = {
    "conduct": lambda steps=(): ConductProcedure(steps=steps),
    "conduct or hold": lambda steps=(): ConductOrHoldProcedure(steps=steps),
    "converge": lambda steps=(): ConductUntilConverged(**LOOP, steps=steps),
}
"""The commands that take steps with them."""
BEGINNING: dict[ConductMode, Command] = {
    ConductMode.FLAT: ConductProcedure(),
    ConductMode.CONVERGED: ConductUntilConverged(**LOOP),
    ConductMode.ADVISED: ConductUntilAdvised(**SEARCH),
}
"""A command that conducts a recipe from the beginning, in each mode."""
GOING_ON: dict[ConductMode, Command] = {
    ConductMode.FLAT: ConductFromProcedure(re_establishment_boundary=0),
    ConductMode.CONVERGED: ConductUntilConverged(**LOOP),
    ConductMode.ADVISED: ConductUntilAdvisedFrom(**SEARCH),
}
"""The command that takes it up again."""
ENDINGS: dict[str, tuple[Callable[[ConductResult], Command], tuple[str, ...], ProcedureStatus]] = {
    "complete": (
        lambda result: CompleteProcedure(conducted=result),
        ("ProcedureConducted", "ProcedureCompleted"),
        COMPLETED,
    ),
    "hold": (
        lambda result: HoldProcedure(reason="stuck", cause=HoldCause.STEP_FAULT, conducted=result),
        ("ProcedureConducted", "ProcedureHeld"),
        HELD,
    ),
    "abort": (
        lambda result: AbortProcedure(reason="stuck", conducted=result),
        ("ProcedureConducted", "ProcedureAborted"),
        ABORTED,
    ),
    "halt": (lambda result: RecordConductEnd(result=result), ("ProcedureConducted",), RUNNING),
    "deny": (
        lambda result: RecordConductEnd(result=result, abort_reason="withdrawn"),
        ("ProcedureConducted", "ProcedureAborted"),
        ABORTED,
    ),
}
"""How a conduct comes to its end: what that appends, and where it leaves the procedure."""
STOPS: dict[str, Callable[[ConductResult], Command]] = {
    "conduct": lambda result: ConductProcedure(),
    "take up": lambda result: ConductFromProcedure(re_establishment_boundary=1),
    "hold": lambda result: HoldProcedure(reason="lunch"),
    "resume": lambda result: ResumeProcedure(by_hand=True),
    "abort": lambda result: AbortProcedure(reason="smoke"),
    "close": lambda result: AbortProcedure(reason="smoke", run_closing=True),
    "truncate": lambda result: TruncateProcedure(reason="power cut"),
    **{f"{name} itself": ending for name, (ending, _, _) in ENDINGS.items()},
}
"""Commands that may come to a conducted procedure in any order, each made from the conduct's result."""


def register_procedure(world: World, **fields: Any) -> UUID:
    """Register a procedure whose steps come with the request that conducts it."""
    return world.create(RegisterProcedure(**{"name": "Set the energy", "kind": "beam_mode_change", **fields}))


def register_procedure_from_recipe(
    world: World, steps: list[Raw] = FOCUS_STEPS, closing_steps: list[Raw] = CLOSE_SHUTTER, **fields: Any
) -> UUID:
    """Register a procedure from a recipe of these steps."""
    realised = capability(world, code=f"{CODE_PREFIX}{new_id()}", executor_shapes=["PROCEDURE"])
    asked = {"name": "focus_recipe", "capability_id": realised, "steps": steps, "closing_steps": closing_steps}
    task = {"name": "Focus", "kind": "focus_search", "recipe_id": world.create(DefineRecipe(**asked))}
    return world.create(RegisterProcedureFromRecipe(**{**task, **fields}))


def open_conduct(world: World, command: Command, on: UUID) -> UUID:
    """Open a conduct by this command and return its id."""
    world.when(command, on=on)
    return UUID(world.answer["conduct_id"])


def procedure_of(world: World, id: UUID) -> Procedure:
    state: Procedure = world.state(Procedure, id)
    return state


def progress_of(world: World, id: UUID) -> ConductProgress:
    row = world.records[ConductProgress, id]
    assert isinstance(row, ConductProgress)
    return row


def conduct_row(world: World, conduct_id: UUID) -> OpenedConduct:
    row = world.records[OpenedConduct, conduct_id]
    assert isinstance(row, OpenedConduct)
    return row


def set_progress(world: World, id: UUID, **fields: Any) -> None:
    """Set these fields of the live conduct's progress row."""
    world.records[ConductProgress, id] = replace(progress_of(world, id), **fields)


def wait_for_advice(world: World, id: UUID, until: datetime | None = None) -> None:
    """Let the live conduct wait for advice on where to measure next."""
    deadline = until or world.now + timedelta(seconds=600)
    set_progress(world, id, waiting_for=WaitingFor.ADVICE.value, waiting_until=deadline)


def fill_slot(world: World, id: UUID, slot: str, step_index: int, closing: bool = False) -> None:
    """Fill a slot in the ledger of the latest conduct."""
    entry_id = new_id()
    world.records[FilledSlot, entry_id] = FilledSlot(
        entry_id=entry_id,
        procedure_id=id,
        conduct_id=progress_of(world, id).conduct_id,
        iteration_index=0,
        closing=closing,
        step_index=step_index,
        slot=slot,
        content={"value": 1.5},
        recorded_at=world.now,
    )


def measured_pass(iteration_index: int, value: float = 1.5, **fields: Any) -> ProcedureOutcomeRecorded:
    """The recorded outcome of a steered pass."""
    sharpness = Measured(name="sharpness", value=value, kind="Scalar", quality="Good")
    defaults = {"point": {"focus": value}, "measurements": (sharpness,), "succeeded": True, "actuation_kind": None}
    return ProcedureOutcomeRecorded(iteration_index=iteration_index, **{**defaults, **fields})


def conduct_result(world: World, id: UUID, **fields: Any) -> ConductResult:
    """The result of the live conduct."""
    row = progress_of(world, id)
    defaults = {"procedure_id": id, "conduct_id": row.conduct_id, "command_name": row.command_name, "succeeded": True}
    return ConductResult.model_validate({**defaults, **fields})


def latest(world: World, id: UUID) -> ConductResult:
    """The latest conduct's result, live or not; without any, the result of an unknown conduct."""
    conduct_id = procedure_of(world, id).last_conduct_id or new_id()
    return ConductResult(procedure_id=id, conduct_id=conduct_id, command_name="ConductProcedure", succeeded=True)


def end_in_hold(world: World, id: UUID, **fields: Any) -> None:
    """End the live conduct in a hold."""
    result = conduct_result(world, id, **{"succeeded": False, "held": True, **fields})
    world.when(HoldProcedure(reason="shift change", conducted=result), on=id)


def open_and_lose(
    world: World, command: Command, on: UUID, cause: HoldCause = HoldCause.OUTCOME_UNKNOWN, **fields: Any
) -> UUID:
    """Open a conduct, end it in a hold for its second step, whose outcome is unknown, and return its id."""
    conduct_id, step_index = open_conduct(world, command, on), 1
    lost = Failure(
        step_index=step_index, source_kind="action", target="expose", error_class="ActionOutcomeUnknown", message="Lost."
    )
    result = conduct_result(world, on, succeeded=False, held=True, failure=lost, completed_count=step_index, **fields)
    world.when(HoldProcedure(reason="lost", cause=cause, conducted=result), on=on)
    return conduct_id


def open_and_hold(world: World, command: Command, on: UUID) -> UUID:
    """Open a conduct, end it in a hold, and return its id."""
    conduct_id = open_conduct(world, command, on)
    end_in_hold(world, on)
    return conduct_id
