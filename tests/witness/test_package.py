"""The distribution `baton-bluesky`: light, of the repository's version, and not in the service's."""

import subprocess
import sys
import tomllib
from pathlib import Path

import baton
import baton_bluesky

ROOT = Path(__file__).parents[2]
LOADED = "import sys, baton_bluesky; baton_bluesky.BatonWitness; print(*sorted(sys.modules))"
PACKED = """
import sys, setuptools
from distutils.core import run_setup
print("baton_bluesky" in run_setup("setup.py", script_args=sys.argv[1:], stop_after="init").packages)
"""
NETWORK = {"socket", "ssl", "http.client", "urllib.request", "asyncio"}


def output_of(program: str, *arguments: str, directory: Path = ROOT) -> str:
    """Return what a program prints in an interpreter of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=directory).stdout.strip()


def test_importing_it_loads_the_standard_library_and_no_network() -> None:
    names = set(output_of(LOADED, directory=ROOT / "witness").split())
    before = set(output_of("import sys; print(*sorted(sys.modules))").split())
    assert NETWORK & names == set()
    assert {name.partition(".")[0] for name in names - before} <= {*sys.stdlib_module_names, "baton_bluesky"}


def test_it_has_the_version_of_the_service() -> None:
    assert baton_bluesky.__version__ == baton.__version__


def test_it_needs_nothing_and_lies_in_no_wheel_of_the_service() -> None:
    described = tomllib.loads((ROOT / "witness" / "pyproject.toml").read_text())["project"]
    assert (described["name"], described["dependencies"]) == ("baton-bluesky", [])
    assert (output_of(PACKED, "bdist_wheel"), output_of(PACKED, "editable_wheel")) == ("False", "True")
