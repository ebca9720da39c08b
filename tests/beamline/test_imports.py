"""What a site has written down becomes a file, is reviewed, and is applied: an inventory, a happi database, EPICS databases.

`happi.json` was written by happi 3.0.1 (`Client(database=JSONBackend(path, initialize=True)).create_item(OphydItem, ...)`).
"""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from baton.beamline.catalog import load_catalog
from baton.beamline.commands import DIFFERENT, DONE, apply_files, diff_files
from baton.cli.main import app
from baton.client import Baton

SAMPLES = Path(__file__).parents[1] / "data" / "imports"
COMMANDS = {
    "inventory": ["csv", SAMPLES / "inventory.csv"],
    "happi": ["happi", SAMPLES / "happi.json"],
    "epics": ["epics-db", SAMPLES / "beamline.substitutions", SAMPLES / "beamline.db", "--macro", "BL=BL7"],
}
FOUND = {"inventory": (61, 30), "happi": (59, 59), "epics": (58, 24)}  # devices, and those with a question
QUESTION = re.compile(r"^ *# \? .*\n", re.MULTILINE)


def import_sample(name: str, output: Path) -> str:
    """Import a sample into a file; return what was printed."""
    words = [str(word) for word in COMMANDS[name]]
    result = CliRunner().invoke(app, ["import", *words, "--root", f"Beamline of {name}", "-o", str(output)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.server
@pytest.mark.parametrize("name", COMMANDS)
def test_an_import_is_reviewed_applied_and_then_on_record(
    name: str, baton: Baton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "beamline.yaml"
    printed = import_sample(name, file)
    devices, asked = FOUND[name]
    assert f"{devices} devices are in {file}; {asked} have a question above them." in printed
    text = file.read_text()
    assert len(QUESTION.findall(text)) == asked
    reviewed = re.sub(r"(ono.slit.*(?:\n.*){1,2})\[Monochromator\]", r"\1[Slit]", QUESTION.sub("", text))
    file.write_text(reviewed)
    assert load_catalog(baton) == DONE
    assert diff_files(baton, [file]) == DIFFERENT
    assert apply_files(baton, [file]) == DONE, capsys.readouterr().out
    capsys.readouterr()
    assert diff_files(baton, [file]) == DONE, capsys.readouterr().out


@pytest.mark.server
def test_limits_signals_and_families_of_imported_databases_are_on_record(baton: Baton, tmp_path: Path) -> None:
    file = tmp_path / "beamline.yaml"
    import_sample("epics", file)
    assert load_catalog(baton) == DONE
    assert apply_files(baton, [file]) == DONE
    root = baton.assets["Beamline of epics"].get()
    [axis] = (one for one in baton.every("list_assets", name="Sample rotation") if one.parent_id == root.id)
    view = baton.get_asset(axis.asset_id)
    assert [identifier.value for identifier in view.alternate_identifiers] == ["BL7:SMP:rot"]
    assert {at: (one.low, one.high) for at, one in view.signal_limits.items()} == {"BL7:SMP:rot": (-360, 360)}
    [family_id] = view.family_ids
    assert baton.get_family(family_id).name == "RotaryStage"


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "beamline.yaml"
    file.write_text("mine")
    result = CliRunner().invoke(app, ["import", "happi", str(SAMPLES / "happi.json"), "-o", str(file)])
    assert result.exit_code == 1
    assert "is there already; name another file, or remove it." in result.stderr
    assert file.read_text() == "mine"


def test_a_guessed_mapping_can_be_saved_mended_and_given(tmp_path: Path) -> None:
    inventory = str(SAMPLES / "inventory.csv")
    guessed = CliRunner().invoke(app, ["import", "csv", inventory])
    assert guessed.exit_code == 0
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(guessed.stderr.partition("\n")[2])
    given = CliRunner().invoke(app, ["import", "csv", inventory, "--mapping", str(mapping)])
    assert (given.exit_code, given.stderr, given.stdout) == (0, "", guessed.stdout)
    mapping.write_text("- name")
    refused = CliRunner().invoke(app, ["import", "csv", inventory, "--mapping", str(mapping)])
    assert refused.exit_code == 1
    assert "mapping.yaml is no mapping; write lines such as name: Device." in refused.stderr


def test_a_database_that_cannot_be_read_is_refused_with_its_line() -> None:
    result = CliRunner().invoke(app, ["import", "epics-db", str(SAMPLES / "beamline.db")])
    assert result.exit_code == 1
    assert result.stderr == (
        "baton: beamline.db, line 2: The macro BL has no value; give it with --macro BL=VALUE or in a substitutions file.\n"
    )
    assert result.stdout == ""
