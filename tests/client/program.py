"""A program as a user of the client writes it: forty operations, by methods and by names. It is checked by mypy and run."""

from dataclasses import dataclass
from uuid import UUID

from baton.client import AsyncBaton, Baton
from baton.client.operations import Preflight, RunConductResult

EXPOSURE = {"type": "number", "minimum": 0.001, "unit": {"system": "udunits", "code": "s"}}
PARAMETERS = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"exposure": EXPOSURE},
    "additionalProperties": False,
    "unevaluatedProperties": False,
}


@dataclass(frozen=True)
class BuiltBeamline:
    """What the program has put on record."""

    plan: str
    recipe: str
    unit_id: UUID
    stage_id: UUID
    hutch_id: UUID
    run_id: UUID


def build_beamline(b: Baton, mark: str, monitor: Baton) -> BuiltBeamline:
    """Put a beamline on record on which a plan can be started, start and end a run by hand, and look at everything."""
    facility = next(iter(b.facilities.list(code="facility")))
    hutch_id = b.register_enclosure(name=f"Hutch {mark}", facility_code="facility").enclosure_id
    unit_id = b.register_asset(
        name=f"Beamline {mark}", tier="Unit", facility_code="facility", located_in_enclosure_id=hutch_id
    ).asset_id
    stage_id = b.register_asset(name=f"Stage {mark}", tier="Device", parent_id=unit_id).asset_id
    b.activate_asset(stage_id)
    b.add_asset_alternate_identifier(stage_id, kind="EPICS_PV", value=f"{mark}:rotary")
    b.rename_asset(stage_id, name=f"Rotary stage {mark}")
    b.assets[f"Rotary stage {mark}"].enter_maintenance()
    b.assets[f"Rotary stage {mark}"].exit_maintenance()
    supply_id = b.register_supply(name=f"Beam {mark}", kind=f"beam_{mark}", facility_code="facility").supply_id
    b.mark_supply_available(supply_id, reason="shutters open")
    template_id = b.define_clearance_template(code=f"ESAF-{mark}", title="Safety form", facility_code="facility").template_id
    b.activate_clearance_template(template_id)
    clearance_id = b.register_clearance(
        template_id=template_id,
        facility_code="facility",
        title=f"Load frame {mark}",
        bindings=[{"kind": "Asset", "id": str(unit_id)}],
    ).clearance_id
    b.submit_clearance(clearance_id)
    b.start_clearance_review(clearance_id, first_reviewer_role="BeamlineScientist")
    b.append_clearance_review_step(clearance_id, step_index=0, role="BeamlineScientist", decision="Approved")
    b.approve_clearance(clearance_id)
    b.activate_clearance(clearance_id)
    monitor.observe_enclosure_status(
        hutch_id,
        new_status="Permitted",
        reason="searched",
        monitor_ref={"source_kind": "ProcessVariable", "source_id": "PSS:7B:PERMIT"},
    )
    capability_id = b.define_capability(
        code=f"baton.capability.scan_{mark}",
        name=f"Scan {mark}",
        required_affordances=[],
        executor_shapes=["METHOD", "PROCEDURE"],
        parameters_schema=PARAMETERS,
    ).capability_id
    method_id = b.define_method(
        name=f"Tomography {mark}",
        capability_id=capability_id,
        needed_supplies=[f"beam_{mark}"],
        parameters_schema=PARAMETERS,
    ).method_id
    practice_id = b.define_practice(name=f"At 7B {mark}", method_id=method_id, site_id=facility.id).practice_id
    plan = f"Tomography {mark}"
    plan_id = b.define_plan(name=plan, practice_id=practice_id, asset_ids=[stage_id]).plan_id
    b.update_plan_default_parameters(plan_id, default_parameters_patch={"exposure": 0.1})
    recipe = f"Quarter turn {mark}"
    b.define_recipe(
        name=recipe,
        capability_id=capability_id,
        steps=[{"kind": "setpoint", "address": "a", "value": {"__binding__": "exposure"}}],
        closing_steps=[{"kind": "setpoint", "address": "c", "value": 0}],
    )
    verdict: Preflight = b.preflight_run(name="Load step 1", plan_id=plan)
    assert verdict.passed, [gate.detail for gate in verdict.gates if not gate.passed]
    run_id = b.start_run(name=f"Load step 1 {mark}", plan_id=plan).run_id
    b.hold_run(run_id, reason="sample slipped")
    assert b.get_run(run_id).status == "Held"
    b.resume_run(run_id)
    b.adjust_run(run_id, parameters_patch={"exposure": 0.2}, reason="too dark")
    assert b.list_run_logbook_entries(run_id).items == ()
    assert b.get_run_conduct(run_id).conduct_id is None
    b.complete_run(run_id)
    assert next(event.event_type for event in b.runs[run_id].history()) == "RunStarted"
    assert b.get_plan(plan).default_parameters == {"exposure": 0.1}
    assert b.get_asset(stage_id).parent_id == unit_id
    assert b.get_clearance(clearance_id).status == "Active"
    assert {row.name for row in b.list_recipes(capability_id=capability_id).items} == {recipe}
    assert b.get_method(method_id).capability_id == capability_id
    assert b.get_capability(capability_id).name == f"Scan {mark}"
    assert b.get_supply(f"Beam {mark}").status == "Available"
    assert b.get_enclosure(f"Hutch {mark}").permit_status == "Permitted"
    assert {node.asset_id for node in b.get_asset_tree(unit_id).nodes} >= {stage_id}
    assert "StartRun" in b.get_my_access().permitted_commands
    assert b.list_events(limit=1).items[0].position > 0
    return BuiltBeamline(plan, recipe, unit_id, stage_id, hutch_id, run_id)


def scan(b: Baton, built: BuiltBeamline) -> RunConductResult:
    """Start a run of the plan and follow it to its end."""
    return b.plans[built.plan].start(exposure=0.02).watch().result()


async def look_around(b: AsyncBaton, built: BuiltBeamline) -> list[str]:
    """Look at what the program has put on record, and start a run that is followed to its end."""
    plan = await b.get_plan(built.plan)
    assert plan.name == built.plan
    stage = await b.assets[built.stage_id].get()
    assert stage.parent_id == built.unit_id
    names = [run.row.name async for run in b.runs.list(plan_id=built.plan)]
    events = [event.event_type async for event in b.runs[built.run_id].history()]
    assert events[-1] == "RunCompleted"
    run = await b.plans[built.plan].start(exposure=0.03)
    result = await run.watch().result()
    assert result.succeeded
    would = await b.rename_asset(built.stage_id, name="Never called so", dry_run=True)
    assert [one.event_type for one in would.would] == ["AssetRenamed"]
    return names
