"""Names of outputs: template words are replaced when steps are pinned, and what would be overwritten is said before."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from baton.domain.conduct.preflight import PreflightProcedure, ProcedurePreflight
from baton.domain.data.distribution import DiscardDistribution
from baton.domain.procedure.procedure import ConductMode, ProcedureStepsResolved
from baton.domain.step.output_names import OverwrittenOutput, template_words
from tests.support.domain.conducts import BEGINNING, procedure_of, register_procedure_from_recipe
from tests.support.domain.datasets import CONTENT, registered_copy, registered_dataset, storage
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World, new_id
from tests.support.workflows.step_json import action, capture, compute, setpoint

RECON = "/opt/recon/bin/recon"
STEPS = [
    setpoint("cam:FileName", "scan_{run}"),
    setpoint("cam:AcquireTime", 0.1),
    action("stream", path="/data/{date}/{subject}", frames=3, note={"kept": "{run}"}),
    capture("cam:Count", "count"),
    compute(RECON, input_uris=["file:///data/scan_{run}.h5"], output_uri="file:///data/{date}_{subject}_{run}_{other}.h5"),
]


def allow(world: World) -> None:
    world.ports["deployment"].compute_programs = frozenset([RECON])


def preflight(world: World, id: UUID) -> ProcedurePreflight:
    answer: ProcedurePreflight = world.ask(PreflightProcedure(), on=id)
    return answer


def pinned_steps(world: World, id: UUID) -> list[dict[str, Any]]:
    [pin] = [one for one in world.streams["Procedure", id] if isinstance(one, ProcedureStepsResolved)]
    return [step.model_dump(mode="json") for step in pin.resolved_steps]


def test_the_outputs_of_a_phase_are_named_by_its_run_its_sample_and_the_day(world: World, line: Beamline) -> None:
    allow(world)
    run_id = line.start()
    id = register_procedure_from_recipe(world, STEPS, [], parent_run_id=run_id)
    world.when(BEGINNING[ConductMode.FLAT], on=id)
    name, _, streamed, _, written = pinned_steps(world, id)
    part, sample = str(run_id)[-12:], str(line.run(run_id).subject_id)[-12:]
    assert name["value"] == f"scan_{part}"
    assert written["input_uris"] == [f"file:///data/scan_{part}.h5"]
    day = line.run(run_id).created_at.date().isoformat()
    assert written["output_uri"] == f"file:///data/{day}_{sample}_{part}_{{other}}.h5", "what is no template word stays"
    assert streamed["params"] == {"path": f"/data/{day}/{sample}", "frames": 3, "note": {"kept": "{run}"}}


def test_template_words_are_parts_of_ids_and_the_day_in_utc() -> None:
    run_id, subject_id, at = new_id(), new_id(), datetime.fromisoformat("2026-11-19T01:00+02:00")
    assert template_words(run_id, subject_id, at) == {
        "run": str(run_id)[-12:],
        "subject": str(subject_id)[-12:],
        "date": "2026-11-18",
    }
    absent = {"run": "no-run", "subject": "no-subject", "date": "2026-11-18"}
    assert template_words(None, None, at.astimezone(UTC)) == absent


def test_the_preflight_of_a_procedure_says_which_registered_copies_its_steps_would_overwrite(world: World) -> None:
    allow(world)
    steps = [compute(RECON, output_uri=uri) for uri in (CONTENT["uri"], "file:///data/free.h5")]
    id = register_procedure_from_recipe(world, steps, [])
    assert preflight(world, id).overwrites_registered == ()
    copy = registered_copy(world, registered_dataset(world), storage(world))
    verdict = preflight(world, id)
    assert verdict.overwrites_registered == (OverwrittenOutput(uri=CONTENT["uri"], distribution_ids=(copy,)),)
    assert verdict.passed, "a caution closes no gate"
    world.when(DiscardDistribution(reason="moved away"), on=copy)
    assert preflight(world, id).overwrites_registered == ()


def test_the_preflight_of_a_run_says_what_the_recipes_of_its_phases_would_overwrite(world: World, line: Beamline) -> None:
    allow(world)
    outputs = ("file:///data/{run}.h5", CONTENT["uri"])
    ids = [register_procedure_from_recipe(world, [compute(RECON, output_uri=uri)], []) for uri in outputs]
    named, fixed = (procedure_of(world, id).recipe_id for id in ids)
    copy = registered_copy(world, registered_dataset(world), storage(world))
    assert line.preflight().overwrites_registered == ()
    assert line.preflight(recipe_ids=[named]).overwrites_registered == ()
    expected = (OverwrittenOutput(uri=CONTENT["uri"], distribution_ids=(copy,)),)
    assert line.preflight(recipe_ids=[named, fixed]).overwrites_registered == expected
