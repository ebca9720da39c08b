"""Beamline files at the command line: compared, applied, exported, and applied before a run."""

import json
from pathlib import Path

from tests.support.cli.daily_service import UNIT, DailyService

EVENING = f"""\
baton: 1
assets:
- name: Evening hall
  children:
  - name: Evening stage
capabilities:
- {{code: baton.capability.evening, name: Evening, required_affordances: [], executor_shapes: [METHOD, PROCEDURE]}}
methods:
- {{name: Evening scan, capability: Evening}}
practices:
- {{name: Evening scan here, method: Evening scan, site: facility}}
plans:
- {{name: Evening block, practice: Evening scan here, assets: [Evening stage]}}
recipes:
- name: Evening steps
  capability: Evening
  steps:
  - {{kind: setpoint, address: c, value: 7}}
clearances:
- {{title: Evening work next to {UNIT}, template: ESAF, assets: [Evening hall], in_force: true}}
"""


async def test_a_run_begins_with_the_file_of_its_beamline(daily_service: DailyService, tmp_path: Path) -> None:
    file = tmp_path / "evening.yaml"
    file.write_text(EVENING)
    differing = await daily_service.baton("diff", "-f", str(file), "--json")
    assert (differing.returncode, len(json.loads(differing.stdout))) == (2, 8)
    tried = await daily_service.baton("apply", "-f", str(file), "--dry-run", "--json")
    assert (tried.returncode, json.loads(tried.stdout)["exit_code"]) == (0, 0)
    done = await daily_service.baton("run", "Evening block", "-f", str(file), "--watch", "--json")
    assert (done.returncode, json.loads(done.stdout)["succeeded"]) == (0, True), done.stderr
    assert "+ plan Evening block" in done.stderr
    same = await daily_service.baton("diff", "-f", str(file))
    assert (same.returncode, same.stdout) == (0, "The record says what the file says.\n")
    exported = await daily_service.answer("export", "--root", "Evening hall")
    assert [one["name"] for one in exported["assets"]] == ["Evening hall"]


async def test_a_file_that_cannot_be_read_is_refused_and_starts_nothing(daily_service: DailyService, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("baton: 1\nassets:\n- {nam: x}\n")
    done = await daily_service.baton("run", "Spring block", "-f", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"baton: {file}:3")
    assert await daily_service.answer("ps") == []


async def test_a_file_to_begin_with_is_written_once_and_applies(daily_service: DailyService, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    written = await daily_service.baton("init", str(file))
    assert (written.returncode, f"baton diff -f {file}" in written.stdout) == (0, True)
    assert (await daily_service.baton("diff", "-f", str(file))).returncode == 2, "nothing of it would be refused"
    assert (await daily_service.baton("apply", "-f", str(file))).returncode == 0
    before = file.read_text()
    again = await daily_service.baton("init", str(file))
    assert (again.returncode, again.stderr, file.read_text()) == (
        1,
        f"baton: {file} is there already; name another file.\n",
        before,
    )


async def test_the_catalog_is_loaded_and_the_schema_printed(daily_service: DailyService) -> None:
    loaded = await daily_service.answer("catalog", "load")
    assert loaded == {"exit_code": 0}
    schema = json.loads((await daily_service.baton("schema")).stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
