"""The parts of the night: recipes that the service takes, programs that print what they found, and an honest narrator."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import h5py
import httpx
import numpy as np
import pytest
from rich.console import Console

from baton.cli.embedded.process import StartError
from baton.client.operations import ConductResult, ConductView, EndFrame, Failure
from baton.client.watched_work import ConductFrame, WatchedConduct
from baton.client.watching import Watch
from baton.demo import beamline_records, programs
from baton.demo.beamline_processes import BeamlineProcesses
from baton.demo.ioc import save
from baton.demo.narration import Narrator
from baton.demo.night import Night
from baton.demo.optics import AXIS_AT, FOCUS_AT, Beamline
from baton.demo.staff import BEAMLINE, Staff, StageError
from baton.domain.equipment.signals import owning_identifiers
from baton.domain.procedure.touched import touched_signals
from baton.domain.recipe.step_checks import read_closing_steps, read_steps
from baton.infrastructure.plugins import installed_actions

HERE = Path("/data")


@pytest.mark.parametrize(
    "steps",
    [
        beamline_records.DARKS_AND_FLATS,
        beamline_records.centring_steps(HERE),
        beamline_records.FOCUSING,
        beamline_records.projections(HERE),
        beamline_records.reconstruction(HERE),
        beamline_records.ROUND_OF_THE_HALL,
    ],
)
def test_the_service_can_read_every_recipe(steps: list[beamline_records.Step]) -> None:
    assert len(read_steps(steps)) == len(steps)
    assert read_closing_steps(beamline_records.SAMPLE_BACK)


def test_devices_own_what_the_recipes_write_and_the_beamline_the_rest() -> None:
    [unit] = beamline_records.shipped_file("beamline.yaml").content.assets
    devices = {one.value for device in unit.children or () for one in device.identifiers or ()}
    recipes = (
        *beamline_records.DARKS_AND_FLATS,
        *beamline_records.centring_steps(HERE),
        *beamline_records.FOCUSING,
        *beamline_records.projections(HERE),
        *beamline_records.SAMPLE_BACK,
    )
    written = touched_signals(read_steps(recipes), installed_actions().signals).written
    shared = {address for address in written if devices.isdisjoint(owning_identifiers(address))}
    assert shared == {"bl7:sample", "bl7:shutter"}
    assert BEAMLINE["settings"]["UNOWNED_SIGNALS"] == "refuse"


def write_pictures(path: Path, beamline: Beamline, count: int = 1) -> Path:
    """A file of pictures, as the beamline's writer makes it."""
    seen = [beamline.picture(0.02, np.random.default_rng(number)) for number in range(count)]
    save(path, np.array(seen), np.full(count, beamline.angle), np.full(count, beamline.current))
    return path


@pytest.fixture
def give_task(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give a program its task."""

    def give(*inputs: Path, output: Path | None = None, **parameters: float) -> None:
        monkeypatch.setenv("CONDUCT_INPUT_URIS", json.dumps([path.as_uri() for path in inputs]))
        monkeypatch.setenv("CONDUCT_OUTPUT_URI", output.as_uri() if output else "")
        monkeypatch.setenv("CONDUCT_PARAMETERS", json.dumps(parameters))

    return give


def test_the_programs_measure_the_axis_and_say_where_to_go(
    tmp_path: Path, give_task: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    stands = {"hexapod": AXIS_AT + 0.1, "focus": FOCUS_AT}
    darks = write_pictures(tmp_path / "darks.h5", Beamline(sample_in=False, **stands), 3)
    flats = write_pictures(tmp_path / "flats.h5", Beamline(sample_in=False, shutter_open=True, **stands), 3)
    turned = [
        write_pictures(tmp_path / f"{angle}.h5", Beamline(angle=angle, shutter_open=True, **stands)) for angle in (0, 180)
    ]
    give_task(darks, flats, *turned)
    programs.find_axis()
    (offset,) = json.loads(capsys.readouterr().out)["measurements"]
    assert (offset["name"], offset["value"], offset["units"]) == ("offset", pytest.approx(10, abs=0.5), "px")
    give_task(position=AXIS_AT + 0.1, offset=10.0)
    programs.aim_axis()
    (target,) = json.loads(capsys.readouterr().out)["measurements"]
    assert (target["name"], target["units"]) == ("target", "mm")
    assert AXIS_AT < target["value"] < AXIS_AT + 0.1, "nearer, and not there yet"


def test_projections_without_beam_are_left_out_of_the_slice(tmp_path: Path, give_task: Callable[..., None]) -> None:
    stands = {"hexapod": AXIS_AT, "focus": FOCUS_AT}
    darks = write_pictures(tmp_path / "darks.h5", Beamline(sample_in=False, **stands), 3)
    flats = write_pictures(tmp_path / "flats.h5", Beamline(sample_in=False, shutter_open=True, **stands), 3)
    for number in range(6):
        current = 0.0 if number == 2 else 100.0
        seen = Beamline(angle=30.0 * number, shutter_open=True, current=current, **stands)
        write_pictures(tmp_path / f"projection_{number:04}.h5", seen)
    give_task(darks, flats, tmp_path, output=tmp_path / "scan.h5")
    programs.assemble()
    with h5py.File(tmp_path / "scan.h5") as file:
        lengths = {name: len(values) for name, values in file["exchange"].items()}
        assert lengths == {"data": 5, "data_dark": 3, "data_white": 3, "theta": 5}
        assert file["exchange/theta"].attrs["units"] == "degree"
    give_task(tmp_path / "scan.h5", output=tmp_path / "slice.h5")
    programs.reconstruct()
    with h5py.File(tmp_path / "slice.h5") as file:
        assert (file.attrs["projections"], file.attrs["without_beam"]) == (5, 1)
        assert list(file["angles"]) == [0, 30, 90, 120, 150]


PROCEDURE, CONDUCT = uuid4(), uuid4()


@dataclass(frozen=True)
class Onlooker:
    """A user to whom a conduct always looks the same."""

    frames: list[ConductFrame]

    @property
    def procedures(self) -> "dict[UUID, Onlooker]":
        return {PROCEDURE: self}

    def watch(self, console: Console) -> Watch[Any, Any, WatchedConduct]:
        return Watch(self, iter(self.frames), WatchedConduct(), {"console": console, "lines": False})  # type: ignore[arg-type]

    def follow(self, frames: Iterator[ConductFrame]) -> Iterator[ConductFrame]:
        return frames


def open_night(tmp_path: Path, result: ConductResult | None = None) -> Night:
    """A night in which a conduct is at its third step, or has this result."""
    processes = BeamlineProcesses(tmp_path)
    processes.stop()
    night = Night(processes, Narrator(Console(file=StringIO())))
    view = {"procedure_id": PROCEDURE, "conduct_id": CONDUCT, "status": "Running", "message": "step 4 of 10"}
    frames: list[ConductFrame] = [ConductView(**view, step_index=3, step_count=10, result=result)]
    if result is not None:
        frames.append(EndFrame(conduct_id=CONDUCT, result=result, occurred_at=datetime.now(UTC)))
    night.staff = Staff(*[Onlooker(frames)] * 3, agent_token="", witness_token="")  # type: ignore[arg-type]
    return night


def conduct_result(**fields: Any) -> ConductResult:
    known = {"procedure_id": PROCEDURE, "conduct_id": CONDUCT, "command_name": "ConductProcedure", "succeeded": True}
    return ConductResult(**known | fields)


BROKEN = Failure(source_kind="setpoint", target="bl7:rot", error_class="StepInterrupted", message="stuck")
ENDED, FAILED = conduct_result(), conduct_result(succeeded=False, failure=BROKEN)


@pytest.mark.parametrize("result", [ENDED, FAILED])
def test_a_conduct_that_is_over_does_not_go_on(tmp_path: Path, result: ConductResult) -> None:
    open_night(tmp_path).wait_for_share("scan", PROCEDURE, 0.3)
    with pytest.raises(StageError, match="should still go on"):
        open_night(tmp_path, result).wait_for_share("scan", PROCEDURE, 0.3)


@pytest.mark.parametrize("result", [FAILED, conduct_result(closing_failures=[BROKEN])])
def test_only_a_conduct_that_closed_well_has_succeeded(tmp_path: Path, result: ConductResult) -> None:
    assert open_night(tmp_path, ENDED).wait_for_success("scan", PROCEDURE) == ENDED
    with pytest.raises(StageError, match="should succeed"):
        open_night(tmp_path, result).wait_for_success("scan", PROCEDURE)


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    processes = BeamlineProcesses(tmp_path)
    with pytest.raises(StartError, match="holds something other than a demonstration"):
        processes.start()
    processes.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_stage_that_fails_is_named_and_ends_the_night() -> None:
    def succeed(night: list[str]) -> None:
        night.append("well")

    def fail(night: list[str]) -> None:
        raise StageError("the shutter is stuck")

    def lose(night: list[str]) -> None:
        raise httpx.ConnectError("nobody there")

    said = StringIO()
    narrator, night = Narrator(Console(file=said, width=120)), []
    stages = narrator.run_stages([("first", succeed), ("second", fail), ("third", lose)], night)
    narrator.print_summary(stages)
    assert [(stage.succeeded, stage.fault) for stage in stages] == [
        (True, None),
        (False, "the shutter is stuck"),
        (False, None),
    ]
    assert night == ["well"]
    lines = said.getvalue().splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["done", "failed", "not"]
    (gone,) = narrator.run_stages([("third", lose)], night)
    assert gone.fault == "ConnectError: nobody there"
