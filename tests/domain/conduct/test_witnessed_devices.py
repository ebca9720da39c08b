"""The devices of a run that happens elsewhere: conducts keep away from them while its witness gives word."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.live_work import load_live_work
from baton.domain.conduct.preflight import PreflightProcedure, ProcedurePreflight
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.run.run import Run
from baton.domain.run.witness import CLAIMS
from baton.domain.run.witnessing import WitnessRunChange
from baton.domain.shared.gates import GateVerdict
from baton.domain.start.run_witness import WitnessRun
from tests.support.domain.conducts import register_procedure_from_recipe
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import expect_refusal


@pytest.fixture
def line() -> Beamline:
    line = beamline()
    identifier = {"kind": "EPICS_PV", "value": "BL7:M1"}
    line.world.when(AddAssetAlternateIdentifier(**identifier), on=line.hutch.camera)
    return line


def witnessed_run(line: Beamline, **over: Any) -> UUID:
    """A run elsewhere that uses the camera."""
    asked = {"document_uid": "5f1c", "plan_id": line.plan_id, "name": "count 42", "began_at": line.world.now, **over}
    line.world.when(WitnessRun(**asked))
    run_id = UUID(line.world.answer["run_id"])
    sources = ("ca://BL7:M1", "soft://nobody")
    line.world.when(WitnessRunChange(change="described", at=line.world.now, sources=sources), on=run_id)
    return run_id


def procedure_on_the_camera(line: Beamline) -> UUID:
    return register_procedure_from_recipe(line.world, target_asset_ids=[line.hutch.camera])


def is_unclaimed(line: Beamline, procedure_id: UUID) -> bool:
    """Return whether preflight says that nothing else has the targets to itself."""
    return verdict_on_targets(line, procedure_id).passed


def verdict_on_targets(line: Beamline, procedure_id: UUID) -> GateVerdict:
    """Return what preflight says of others that have the targets to themselves."""
    answer: ProcedurePreflight = line.world.ask(PreflightProcedure(), on=procedure_id)
    return next(gate for gate in answer.gates if gate.gate == "targets_unclaimed")


def test_a_conduct_is_refused_while_a_run_elsewhere_uses_its_asset(line: Beamline) -> None:
    run_id, procedure_id = witnessed_run(line), procedure_on_the_camera(line)
    assert not is_unclaimed(line, procedure_id)
    with expect_refusal("ProcedureCannotConductError", "asset_in_use") as caught:
        line.world.when(ConductProcedure(), on=procedure_id)
    assert caught.value.facts == {"asset_id": str(line.hutch.camera), "run_id": str(run_id)}
    end = {"exit_status": "success"}
    line.world.when(WitnessRunChange(change="ended", at=line.world.now, end=end), on=run_id)
    line.world.when(ConductProcedure(), on=procedure_id)


def test_a_run_elsewhere_keeps_nothing_once_its_witness_is_silent(line: Beamline) -> None:
    run_id, procedure_id = witnessed_run(line), procedure_on_the_camera(line)
    line.world.now += CLAIMS
    assert is_unclaimed(line, procedure_id)
    assert "count 42" in str(verdict_on_targets(line, procedure_id).detail), "it is shown all the same"
    line.world.when(WitnessRunChange(change="heard", at=line.world.now), on=run_id)
    assert not is_unclaimed(line, procedure_id)


def test_a_deployment_may_let_conducts_use_the_devices_of_runs_elsewhere(line: Beamline) -> None:
    witnessed_run(line)
    deployment = dict(vars(line.world.ports["deployment"]))
    line.world.ports["deployment"] = SimpleNamespace(**{**deployment, "witnessed_runs_claim": False})
    verdict = verdict_on_targets(line, procedure_on_the_camera(line))
    assert verdict.passed
    assert verdict.detail == "A RunEngine uses what this is for or writes to, and keeps no conduct away: count 42."


def test_a_run_recorded_late_keeps_nothing(line: Beamline) -> None:
    run_id = witnessed_run(line, began_at=line.world.now - timedelta(hours=2))
    state: Run = line.world.state(Run, run_id)
    assert state.used_asset_ids == {line.hutch.camera}
    procedure_id = procedure_on_the_camera(line)
    line.world.when(WitnessRunChange(change="heard", at=line.world.now - timedelta(hours=1)), on=run_id)
    assert is_unclaimed(line, procedure_id), "its witness does not know that it is under way"
    assert shown_runs(line) == []


def test_a_run_recorded_late_that_is_under_way_is_live(line: Beamline) -> None:
    run_id, procedure_id = witnessed_run(line, began_at=line.world.now - timedelta(hours=2)), procedure_on_the_camera(line)
    line.world.when(WitnessRunChange(change="heard", at=line.world.now), on=run_id)
    assert not is_unclaimed(line, procedure_id)
    assert shown_runs(line) == [run_id]
    line.world.when(WitnessRunChange(change="ended", at=line.world.now, end={"exit_status": "success"}), on=run_id)
    assert is_unclaimed(line, procedure_id)
    assert shown_runs(line) == []


def shown_runs(line: Beamline) -> list[UUID]:
    """Return the live runs, which those who look at the beamline see and a hold of everything names."""
    return [one.run.id for one in line.world.fulfil(load_live_work(None)).runs]
