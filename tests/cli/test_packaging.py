"""The package has one name, and everything that says for which Pythons it is says the same."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
JOBS = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]


@pytest.mark.parametrize("name", ["src", "src.domain", "src.client"])
def test_the_directory_is_not_imported_under_its_own_name(name: str) -> None:
    with pytest.raises(ImportError, match="imported as `baton`, not as `src`"):
        importlib.import_module(name)


def test_the_versions_of_python_agree() -> None:
    matrix = JOBS["quick"]["strategy"]["matrix"]["python"]
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if one.startswith("Programming Language :: Python ::")]
    assert named == matrix
    assert PROJECT["requires-python"] == f">={matrix[0]}"
    assert f"--python-version {matrix[0]} " in (ROOT / "Makefile").read_text()


def test_everything_is_tested_on_the_python_of_the_image() -> None:
    image = set(re.findall(r"^FROM python:(\S+)-slim", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    setups = [step["with"] for name in ("everything", "soak") for step in JOBS[name]["steps"] if "with" in step]
    assert {setup["python-version"] for setup in setups} == image
    assert image < set(JOBS["quick"]["strategy"]["matrix"]["python"])
