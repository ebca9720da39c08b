"""Devices and Bluesky plans of an executor become a beamline file and a draft of what the plans touch."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from baton.beamline.importers.plan_catalogue import ExecutorListing, device_drafts, plan_drafts, plan_sections
from baton.beamline.importers.review_file import review_text
from baton.beamline.importers.touches import PlanDraft, touches_text
from baton.beamline.reading import Source, read_text
from baton.cli.main import app
from baton.domain.recipe.offered_plans import OfferedPlan, PlanTouches

pytestmark = pytest.mark.server

LINE_SCAN = {
    "type": "object",
    "properties": {
        "motor": {"type": "string", "enum": ["stage_x"]},
        "detectors": {"type": "array", "items": {"type": "string", "enum": ["diode", "stage_x"]}},
        "points": {"type": "integer"},
    },
    "required": ["motor", "detectors"],
    "additionalProperties": False,
}
LISTING = ExecutorListing(
    "bl7",
    {
        "line_scan": OfferedPlan(digest="1", description="Measure along a line.", parameters_schema=LINE_SCAN),
        "open": OfferedPlan(digest="2", description="Baton: writes=shutter", touches=PlanTouches(writes={"shutter": ()})),
        "no step": OfferedPlan(digest="3"),
    },
    {"stage_x": ("Movable", "Readable", "SimMotor"), "diode": ("Readable", "SimPointDetector")},
)


def file_text(listing: ExecutorListing = LISTING) -> str:
    return review_text(device_drafts(listing), "BL7", None, plan_sections(listing))


def test_each_device_is_an_asset_and_each_plan_a_capability_a_method_and_a_recipe() -> None:
    text = file_text()
    assert text == file_text(), "twice the same file"
    loaded = read_text(Source("review.yaml", text))
    assert loaded is not None
    assert "# ? family guessed from SimMotor" in text
    assert '- {kind: EPICS_PV, value: "ophyd:stage_x"}' in text
    assert "- code: baton.capability.line_scan" in text
    assert "# ? what it touches is guessed: writes motor, reads detectors" in text
    assert "# ? the plan no step has a name that no step can have" in text
    step = next(line for line in text.splitlines() if "plan:bl7/line_scan" in line)
    assert json.loads(step.partition("- ")[2]) == {
        "kind": "action",
        "name": "plan:bl7/line_scan",
        "params": {name: {"__binding__": name} for name in ("motor", "detectors", "points")},
    }


def test_what_a_docstring_declares_is_not_guessed() -> None:
    assert plan_drafts(LISTING) == {"line_scan": PlanDraft(("motor",), ("detectors",)), "no step": PlanDraft()}
    assert json.loads(
        touches_text({"stage_x": ["ophyd:stage_x"]}, {"line_scan": PlanDraft(("motor",), ("detectors",))})
    ) == {"plans": {"line_scan": {"writes": ["motor"], "reads": ["detectors"]}}, "devices": {"stage_x": ["ophyd:stage_x"]}}


def test_the_draft_is_one_that_executors_read(tmp_path: Path) -> None:
    from baton.application.plan_settings import TouchesFile

    path = tmp_path / "touches.json"
    path.write_text(touches_text({"stage_x": ["ophyd:stage_x"]}, plan_drafts(LISTING)))
    read = TouchesFile.read(path)
    assert read.plans["line_scan"] == PlanTouches(writes={"motor": ()}, reads=("detectors",))
    assert read.devices == {"stage_x": ("ophyd:stage_x",)}


@pytest.mark.parametrize(("kind", "address"), [("blueapi", "http://127.0.0.1:1"), ("queueserver", "tcp://127.0.0.1:1")])
def test_an_executor_that_does_not_answer_is_refused_in_a_sentence(kind: str, address: str) -> None:
    result = CliRunner().invoke(app, ["import", kind, address])
    assert result.exit_code == 1
    assert f"{address} does not answer as a {kind}" in result.stderr


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["blueapi", "queueserver"])
async def test_a_real_executor_is_imported(kind: str, tmp_path: Path) -> None:
    from tests.support.infrastructure import plan_servers

    if missing := plan_servers.missing_part(redis=kind == "queueserver"):
        pytest.skip(missing)
    environment = Path(plan_servers.__file__).with_name("scripted_devices.py").read_text()
    if kind == "blueapi":
        source = ", {kind: deviceManager, module: scripted_plans}"
        running = plan_servers.running_blueapi(tmp_path, environment, source)
    else:
        running = plan_servers.running_queueserver(tmp_path / "server", environment)
    async with running as server:
        command = [sys.executable, "-m", "baton.cli", "import", kind, server.address, "--executor", "bl7"]
        process = await asyncio.create_subprocess_exec(
            *command, "--touches", str(tmp_path / "touches.json"), stdout=asyncio.subprocess.PIPE
        )
        printed = (await process.communicate())[0].decode()
    assert process.returncode == 0
    assert read_text(Source("review.yaml", printed)) is not None
    assert "- name: stage_x" in printed
    assert "- code: baton.capability.line_scan" in printed
    assert '"name": "plan:bl7/line_scan"' in printed
    touches = json.loads((tmp_path / "touches.json").read_text())
    assert touches["devices"]["stage_x"] == ["ophyd:stage_x"]
    if kind == "blueapi":
        assert touches["plans"]["line_scan"] == {"writes": ["motor"], "reads": ["detectors"]}
