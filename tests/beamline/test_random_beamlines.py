"""For any beamline: a file is applied once, an export of the record changes nothing, and says the same again."""

import os
from pathlib import Path

import pytest

from baton.beamline.commands import DONE, apply_files, diff_files, export_record
from baton.beamline.yaml_text import yaml_text
from baton.client import Baton
from tests.support.random_beamlines import random_beamline
from tests.support.seeds import SEED

ASSETS = int(os.environ.get("RANDOM_BEAMLINE_ASSETS", "150"))


@pytest.mark.timeout(900)
def test_export_and_apply_change_nothing(empty_baton: Baton, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, exported = tmp_path / "random.yaml", tmp_path / "exported.yaml"
    file.write_text(yaml_text(random_beamline(SEED, ASSETS)))
    code = apply_files(empty_baton, [file])
    printed = capsys.readouterr()
    assert code == DONE, (SEED, printed.out[-2000:], printed.err[-2000:])
    position = empty_baton.session.position
    assert diff_files(empty_baton, [file]) == DONE, (SEED, capsys.readouterr().out)
    capsys.readouterr()
    assert export_record(empty_baton) == DONE
    text = capsys.readouterr().out
    exported.write_text(text)
    assert "# left out" not in text
    assert apply_files(empty_baton, [exported]) == DONE, (SEED, capsys.readouterr().out)
    assert capsys.readouterr().out.splitlines() == ["The record says what the file says."], SEED
    assert empty_baton.session.position == position, "nothing was recorded"
    assert export_record(empty_baton) == DONE
    assert capsys.readouterr().out == text, SEED
