"""The built distribution: one package with its types and data, which works without the rest of the repository."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.server
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built as for a release."""
    place = tmp_path_factory.mktemp("wheel")
    copy = place / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):
        (copy / name).symlink_to(ROOT / name)
    (copy / "baton").symlink_to("src")
    output_of(
        [sys.executable, "-c", "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])", str(place)],
        copy,
    )
    (built,) = place.glob("*.whl")
    return built


def output_of(command: Sequence[str], directory: Path, **environment: str) -> str:
    """Return what a command prints; it must succeed."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=environment or None)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_brings_one_package_whole_with_its_types_and_data(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"baton"}
    sources = {
        path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".json", ".typed")
    }
    assert {f"baton/{path}" for path in sources} <= names
    assert "baton/py.typed" in names


def test_it_works_away_from_the_repository(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = "import baton, baton.domain.contexts, baton.cli.main; print(baton.__file__); print(baton.__version__)"
    printed = output_of([sys.executable, "-c", program], tmp_path, PYTHONPATH=str(tmp_path / "site")).splitlines()
    assert Path(printed[0]).is_relative_to(tmp_path)
    version = output_of([sys.executable, "-m", "baton.cli", "--version"], tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert version.strip() == printed[1]


def test_a_command_whose_part_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    """As in an environment with the command line alone: the import of a server's library fails."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pydantic_settings'] = None\n")
    command = [sys.executable, "-m", "baton.cli", "doctor"]
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "This command needs pydantic_settings, which is not installed; "
        "install baton-facility[server], and [embedded] for `baton up`."
    ]
