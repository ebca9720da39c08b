"""The life of a procedure by hand, as the specification tabulates it."""

from typing import Any
from uuid import UUID

from domain.operation.procedure import Procedure, ProcedureIterationStarted
from domain.operation.registering import RegisterProcedure
from tests.domain.lives import Life, Scene, Verb, at, because
from tests.domain.run.lifecycles import run_world
from tests.domain.world import START, World, new_id


def procedure_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(RegisterProcedure(name="Centre the axis", kind="center_alignment")), Scene()


def first(scene: Scene) -> dict[str, Any]:
    return {"iteration_index": 1}


def ended(scene: Scene) -> dict[str, Any]:
    return {"iteration_index": 1, "converged": False}


def one_activity(scene: Scene) -> dict[str, Any]:
    written = {"address": "bl7:energy", "value": 25.0}
    return {"entries": [{"event_id": new_id(), "step_kind": "setpoint", "payload": written, "sampled_at": START}]}


PROCEDURE = Life(
    Procedure.__name__,
    "register_procedure",
    procedure_begins,
    {
        "status": {
            "Defined": "",
            "Running": "start_procedure",
            "Held": "start_procedure hold_procedure",
            "Completed": "start_procedure complete_procedure",
            "Aborted": "start_procedure abort_procedure",
            "Truncated": "start_procedure truncate_procedure",
        }
    },
    {
        "start_procedure": Verb("Defined", at("Running"), "ProcedureCannotStartError"),
        "hold_procedure": Verb("Running", at("Held"), "ProcedureCannotHoldError", given=because),
        "resume_procedure": Verb("Held", at("Running"), "ProcedureCannotResumeError"),
        "complete_procedure": Verb("Running", at("Completed"), "ProcedureCannotCompleteError"),
        "abort_procedure": Verb("Running Held", at("Aborted"), "ProcedureCannotAbortError", given=because),
        "truncate_procedure": Verb("Running Held", at("Truncated"), "ProcedureCannotTruncateError", given=because),
        "start_iteration": Verb("Running", {}, "ProcedureCannotStartIterationError", given=first),
        "end_iteration": Verb(
            "Running Held",
            {},
            "ProcedureCannotEndIterationError",
            given=ended,
            recorded=lambda scene: (ProcedureIterationStarted(iteration_index=1),),
        ),
        "append_activities": Verb("Running", {}, "ProcedureActivitiesLogbookClosedError", given=one_activity),
    },
    run_world,
    also_by=("register_procedure_from_recipe",),
)

LIVES = (PROCEDURE,)
STATELESS = ()
