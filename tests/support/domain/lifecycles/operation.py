"""The lives of a procedure, by hand and under conducts, a schedule and a queue, as the specification tabulates them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from baton.domain.conduct.conduct import ConductProcedure, ConductUntilConverged
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.kernel import Command, Event
from baton.domain.launch.launch import Launch, LaunchBegun, LaunchEnded, LaunchRefused
from baton.domain.procedure.procedure import HELD, Procedure, ProcedureIterationStarted
from baton.domain.queue.queue import Queue
from baton.domain.recipe.plan import DataRegistration, Plan, PlanDataRegistrationSet
from baton.domain.schedule.schedule import Schedule
from baton.domain.start.procedure_start import ResumeProcedure
from baton.domain.target.start_launch import ArrangedLaunch
from tests.support.domain.assets import facility_world
from tests.support.domain.conducts import (
    BY_CALLER,
    FOCUS_STEPS,
    LOOP,
    SEARCH,
    WAITING_CHECK,
    open_and_hold,
    open_and_lose,
    open_conduct,
    procedure_of,
    register_procedure_from_recipe,
    set_progress,
    wait_for_advice,
)
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.lifecycles.run import run_started, run_world
from tests.support.domain.queues import add_items, item_of, open_queue
from tests.support.domain.schedules import darks, define_schedule, recipe
from tests.support.domain.world import START, World, new_id


def procedure_begins(world: World) -> tuple[UUID, Scene]:
    """A procedure with a recipe, which can be conducted in every mode."""
    return register_procedure_from_recipe(world, [*FOCUS_STEPS, WAITING_CHECK]), Scene()


def first_iteration(scene: Scene) -> dict[str, Any]:
    return {"iteration_index": 1}


def iteration_end_fields(scene: Scene) -> dict[str, Any]:
    return {"iteration_index": 1, "converged": False}


def open_iteration(world: World, id: UUID, scene: Scene) -> None:
    world.given(id, ProcedureIterationStarted(iteration_index=1))


def one_activity(scene: Scene) -> dict[str, Any]:
    written = {"address": "bl7:energy", "value": 25.0}
    return {"entries": [{"event_id": new_id(), "step_kind": "setpoint", "payload": written, "sampled_at": START}]}


def from_the_start(scene: Scene) -> dict[str, Any]:
    return {"re_establishment_boundary": 0}


def loop(scene: Scene) -> dict[str, Any]:
    return LOOP


def search(scene: Scene) -> dict[str, Any]:
    return SEARCH


def search_by_caller(scene: Scene) -> dict[str, Any]:
    return BY_CALLER


def stop(scene: Scene) -> dict[str, Any]:
    return {"iteration_index": 1, "advice": {"verdict": "Stop"}}


def arrange_waiting(world: World, id: UUID, scene: Scene) -> None:
    wait_for_advice(world, id)


def hold_under(conduct: Command) -> Callable[[World, UUID, Scene], None]:
    """Return an arrangement in which a Held procedure is held under this conduct."""

    def arrange(world: World, id: UUID, scene: Scene) -> None:
        if procedure_of(world, id).status is HELD:
            world.when(ResumeProcedure(), on=id)
            open_and_hold(world, conduct, on=id)

    return arrange


def hold_unknown(world: World, id: UUID, scene: Scene) -> None:
    """Let a conduct of a Held procedure end with a step of which nobody knows whether it was done."""
    world.when(ResumeProcedure(), on=id)
    scene.conduct_id = open_and_lose(world, ConductProcedure(), on=id)


def verdict(scene: Scene) -> dict[str, Any]:
    place = {"conduct_id": getattr(scene, "conduct_id", new_id()), "step_index": 1}
    return {**place, "outcome": "done", "reason": "the image is there"}


def happen(world: World, id: UUID, event: Event) -> None:
    """Let something happen to an aggregate that no verb of its own does."""
    world.given(id, event)


def arrange_check(world: World, id: UUID, scene: Scene) -> None:
    scene.conduct_id = open_conduct(world, ConductProcedure(), on=id)
    set_progress(world, id, phase="Walking", step_index=2)


def skip(scene: Scene) -> dict[str, Any]:
    return {"conduct_id": getattr(scene, "conduct_id", new_id()), "step_index": 2, "reason": "warm enough"}


def arrange_registration(world: World, id: UUID, scene: Scene) -> None:
    """Let the procedure be a phase of a run whose plan says how files are registered."""
    (plan_id,) = (id for name, id in world.streams if name == Plan.__name__)
    world.given(plan_id, PlanDataRegistrationSet(data_registration=DataRegistration(supply_id=new_id())))
    run_id = new_id()
    world.given(run_id, run_started().model_copy(update={"plan_id": plan_id}))
    stream = world.streams[Procedure.__name__, id]
    stream[0] = stream[0].model_copy(update={"parent_run_id": run_id}).stamp(id, stream[0].occurred_at)


START_REFUSED, RESUME_REFUSED = "ProcedureCannotStartError", "ProcedureCannotResumeError"
PROCEDURE = Lifecycle(
    Procedure.__name__,
    "register_procedure_from_recipe",
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
        "start_procedure": Verb("Defined", at("Running"), START_REFUSED),
        "hold_procedure": Verb("Running", at("Held"), "ProcedureCannotHoldError", given=reason_fields),
        "resume_procedure": Verb("Held", at("Running"), RESUME_REFUSED),
        "complete_procedure": Verb("Running", at("Completed"), "ProcedureCannotCompleteError"),
        "abort_procedure": Verb("Running Held", at("Aborted"), "ProcedureCannotAbortError", given=reason_fields),
        "truncate_procedure": Verb("Running Held", at("Truncated"), "ProcedureCannotTruncateError", given=reason_fields),
        "acknowledge_procedure": Verb(),
        "start_iteration": Verb("Running", {}, "ProcedureCannotStartIterationError", given=first_iteration),
        "end_iteration": Verb(
            "Running Held", {}, "ProcedureCannotEndIterationError", given=iteration_end_fields, arranged=open_iteration
        ),
        "append_activities": Verb("Running", {}, "ProcedureActivitiesLogbookClosedError", given=one_activity),
        "conduct_procedure": Verb("Defined Running", at("Running"), START_REFUSED),
        "conduct_or_hold_procedure": Verb("Defined Running", at("Running"), START_REFUSED),
        "conduct_from_procedure": Verb(
            "Held", at("Running"), RESUME_REFUSED, given=from_the_start, arranged=hold_under(ConductProcedure())
        ),
        "conduct_until_converged": Verb(
            "Defined Running Held",
            at("Running"),
            START_REFUSED,
            given=loop,
            arranged=hold_under(ConductUntilConverged(**LOOP)),
        ),
        "conduct_until_advised": Verb("Defined Running", at("Running"), START_REFUSED, given=search),
        "conduct_until_advised_from": Verb(
            "Held", at("Running"), RESUME_REFUSED, given=search, arranged=hold_under(ConductUntilAdvised(**SEARCH))
        ),
        "advise_procedure": Verb(
            "Running",
            {},
            "ProcedureCannotAdviseError",
            given=stop,
            before=(("conduct_until_advised", search_by_caller),),
            arranged=arrange_waiting,
        ),
        "resolve_procedure_step": Verb("Held", {}, "ProcedureCannotResolveStepError", given=verdict, arranged=hold_unknown),
        "register_procedure_datasets": Verb(
            "Completed Aborted Truncated",
            {},
            "ProcedureCannotRegisterDatasetsError",
            quiet=True,
            arranged=arrange_registration,
        ),
        "skip_procedure_wait": Verb("Running", {}, "ProcedureCannotSkipWaitError", given=skip, arranged=arrange_check),
    },
    run_world,
    also_by=("register_procedure",),
)

SCHEDULE = Lifecycle(
    Schedule.__name__,
    "define_schedule",
    lambda world: (define_schedule(world), Scene()),
    {"status": {"Active": "", "Held": "hold_schedule", "Retired": "retire_schedule"}},
    {
        "hold_schedule": Verb("Active", at("Held"), "ScheduleCannotHoldError", given=reason_fields),
        "resume_schedule": Verb("Held", at("Active"), "ScheduleCannotResumeError"),
        "trigger_schedule": Verb("Active Held", {}, "ScheduleCannotTriggerError"),
        "retire_schedule": Verb("Active Held", at("Retired"), "ScheduleCannotRetireError", given=reason_fields),
    },
)


def queue_begins(world: World) -> tuple[UUID, Scene]:
    """A queue in which two items wait."""
    id = open_queue(world)
    first, second = add_items(world, id, "Darks", "More darks")
    return id, Scene(first=first, second=second, recipe=item_of(world, id, first).target["recipe_id"])


def another_item(scene: Scene) -> dict[str, Any]:
    return {"items": [{"title": "Flats", "target": darks(UUID(scene.recipe))}]}


def to_the_front(scene: Scene) -> dict[str, Any]:
    return {"item_id": scene.second, "before_item_id": scene.first}


def new_title(scene: Scene) -> dict[str, Any]:
    return {"item_id": scene.first, "title": "Darks again"}


def first_removed(scene: Scene) -> dict[str, Any]:
    return {"item_id": scene.first, "reason": "the sample is gone"}


QUEUE = Lifecycle(
    Queue.__name__,
    "open_queue",
    queue_begins,
    {"status": {"Active": "", "Held": "hold_queue", "Retired": "retire_queue"}},
    {
        "add_queue_items": Verb("Active Held", {}, "QueueCannotAddItemsError", given=another_item),
        "move_queue_item": Verb("Active Held", {}, "QueueCannotMoveItemError", given=to_the_front),
        "edit_queue_item": Verb("Active Held", {}, "QueueCannotEditItemError", given=new_title),
        "remove_queue_item": Verb("Active Held", {}, "QueueCannotRemoveItemError", given=first_removed),
        "hold_queue": Verb("Active", at("Held"), "QueueCannotHoldError", given=reason_fields),
        "resume_queue": Verb("Held", at("Active"), "QueueCannotResumeError"),
        "retire_queue": Verb("Active Held", at("Retired"), "QueueCannotRetireError", given=reason_fields),
    },
    facility_world,
)


def launch_begins(world: World) -> tuple[UUID, Scene]:
    """What is recorded first of the launch of a recipe."""
    arranged = ArrangedLaunch(target=darks(recipe(world)), by="queue_item", queue_id=new_id(), item_id=new_id())
    world.given(id := new_id(), arranged.request_event(world.principal_id, ()))
    return id, Scene()


LAUNCH = Lifecycle(
    Launch.__name__,
    "launch",
    launch_begins,
    {"status": {"Requested": "", "Begun": "begin", "Refused": "refuse", "Ended": "begin end"}},
    {},
    from_elsewhere={
        "begin": lambda world, id, scene: happen(world, id, LaunchBegun(run_id=None, procedure_ids=(), conduct_id=new_id())),
        "refuse": lambda world, id, scene: happen(
            world, id, LaunchRefused(code="UnauthorizedError", detail="It was denied.")
        ),
        "end": lambda world, id, scene: happen(world, id, LaunchEnded(outcome="Completed", reason=None)),
    },
)  # Its command writes the first two events together; the others are written with what it started, or did not.

LIVES = (PROCEDURE, SCHEDULE, QUEUE, LAUNCH)
STATELESS = ()
