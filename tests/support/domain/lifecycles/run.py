"""The life of a run as the specification tabulates it."""

from typing import Any
from uuid import UUID

from baton.domain.agent.debrief import RUN_DEBRIEFER
from baton.domain.procedure.procedure import ProcedureCompleted, ProcedureRegistered, ProcedureStarted
from baton.domain.recipe.plan import DataRegistration, Plan, PlanDataRegistrationSet
from baton.domain.run.run import Run, RunStarted, RunWitnessed
from baton.domain.start.registration import RegisterProcedure
from baton.domain.start.run_start import StartRun
from tests.support.domain.agents import seed_agent
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.run_beamline import beamline
from tests.support.domain.world import START, World, new_id


def run_world() -> World:
    world = beamline().world
    world.ports["is_model_configured"] = True
    seed_agent(world, RUN_DEBRIEFER)
    return world


def run_begins(world: World) -> tuple[UUID, Scene]:
    """A run with one phase, which is Completed: held, it can be completed for that."""
    (plan_id,) = (id for name, id in world.streams if name == Plan.__name__)
    run_id = world.create(StartRun(name="Load step 1", plan_id=plan_id))
    phase = world.create(RegisterProcedure(name="Flat field", kind="flat_field", parent_run_id=run_id))
    started = ProcedureStarted(conduct_id=None, command_name=None)
    world.given(phase, started, ProcedureCompleted(actuation_kind=None, termination_reason=None))
    return run_id, Scene(phase_id=new_id())


def run_started() -> RunStarted:
    """The event of a run that begins."""
    return RunStarted(
        name="Load step 1",
        plan_id=new_id(),
        subject_id=None,
        raid=None,
        override_parameters={},
        effective_parameters={},
        parameters_schema_revision=1,
        pinned_calibration_ids=frozenset(),
        trigger_source=None,
        external_refs={},
        acknowledged_cautions=(),
        campaign_id=None,
        decided_by_decision_id=None,
    )


def run_witnessed(plan_id: UUID, witnessed_by: UUID) -> RunWitnessed:
    """The event by which a run that happens elsewhere is recorded."""
    return RunWitnessed(
        name="count 42",
        plan_id=plan_id,
        subject_id=None,
        document_uid="5f1c",
        plan_name="count",
        began_at=START,
        holdable=True,
        simulated=None,
        late=False,
        override_parameters={},
        effective_parameters={},
        parameters_schema_revision=1,
        external_refs={},
        metadata={},
        acknowledged_cautions=(),
        gates=(),
        override_reason=None,
        witnessed_by=witnessed_by,
    )


def as_witnessed(world: World, run_id: UUID, scene: Scene) -> None:
    """Have the run be one that happens elsewhere, of a plan that says how files are registered."""
    started, *later = world.streams[Run.__name__, run_id]
    world.streams[Run.__name__, run_id].clear()
    world.given(run_id, run_witnessed(started.plan_id, world.principal_id))
    world.streams[Run.__name__, run_id] += later
    world.given(started.plan_id, PlanDataRegistrationSet(data_registration=DataRegistration(supply_id=new_id())))


def one_word(scene: Scene) -> dict[str, Any]:
    return {"change": "heard", "at": START}


def one_file(scene: Scene) -> dict[str, Any]:
    return {"files": [{"uri": "file:///data/scan_42.h5"}]}


def one_phase_to_come(world: World, run_id: UUID, scene: Scene) -> None:
    """Register a phase of the run that has not begun."""
    unsaid = {"capability_id": None, "recipe_id": None, "max_consecutive_unconverged_iterations": None}
    task = {"name": "Projections", "kind": "projections", "target_asset_ids": frozenset(), "parent_run_id": run_id}
    world.given(scene.phase_id, ProcedureRegistered(**task, **unsaid))


def that_phase(scene: Scene) -> dict[str, Any]:
    return {"procedure_ids": [scene.phase_id]}


def one_sample(scene: Scene) -> dict[str, Any]:
    sample = {"event_id": new_id(), "channel_name": "ring_current", "value": 198.7, "units": "mA"}
    return {"entries": [{**sample, "sampling_procedure": "baseline", "sampled_at": START}]}


def one_note(scene: Scene) -> dict[str, Any]:
    return {"entries": [{"event_id": new_id(), "text": "Sample slipped 20 um at the end."}]}


def adjustment_fields(scene: Scene) -> dict[str, Any]:
    return {"parameters_patch": {"dwell": 0.08}, "reason": "lower flux after top-up"}


RUN = Lifecycle(
    Run.__name__,
    "start_run",
    run_begins,
    {
        "status": {
            "Running": "",
            "Held": "hold_run",
            "Completed": "complete_run",
            "Stopped": "stop_run",
            "Aborted": "abort_run",
            "Truncated": "truncate_run",
        }
    },
    {
        "hold_run": Verb("Running", at("Held"), "RunCannotHoldError"),
        "resume_run": Verb("Held", at("Running"), "RunCannotResumeError"),
        "conduct_run": Verb(
            "Running", {}, "RunCannotConductError", "run_not_running", given=that_phase, arranged=one_phase_to_come
        ),
        "complete_run": Verb("Running Held", at("Completed"), "RunCannotCompleteError"),
        "stop_run": Verb("Running Held", at("Stopped"), "RunCannotStopError", given=reason_fields),
        "abort_run": Verb("Running Held", at("Aborted"), "RunCannotAbortError", given=reason_fields),
        "truncate_run": Verb("Running Held", at("Truncated"), "RunCannotTruncateError", given=reason_fields),
        "acknowledge_run": Verb("Completed Stopped Aborted Truncated", {}, "RunCannotAcknowledgeError"),
        "adjust_run": Verb("Running Held", {}, "RunCannotAdjustError", given=adjustment_fields),
        "append_observations": Verb("Running Held", {}, "RunObservationLogbookClosedError", given=one_sample),
        "append_run_logbook_entries": Verb(given=one_note),
        # It is asked for in a row beside the run, and written by an agent later.
        "regenerate_run_debrief": Verb(quiet=True),
        "witness_run_change": Verb(quiet=True, given=one_word, arranged=as_witnessed),
        "register_run_files": Verb(
            "Completed Stopped Aborted Truncated",
            refusal="RunCannotRegisterFilesError",
            quiet=True,
            given=one_file,
            arranged=as_witnessed,
        ),
    },
    run_world,
    also_by=("witness_run",),
)

LIVES = (RUN,)
STATELESS = ()
