"""The built distribution: one package with its types and data, which works without the rest of the repository."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from baton.cli.generated_files import GENERATED_FILES as GENERATED
from tests.support.api.module_service import running_module_service
from tests.support.databases import fresh_database

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a source tree without links and without generated files, as an archive has it."""
    place = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", place / "tree" / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / "tree")
    for name in GENERATED:
        (place / "tree" / "src" / name).unlink(missing_ok=True)
    return wheel_of(place / "tree", place)


def wheel_of(tree: Path, place: Path) -> Path:
    """Return the wheel of a source tree."""
    program = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
    output_of([sys.executable, "-c", program, str(place)], tree)
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
    files = (path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file())
    sources = {path for path in files if "__pycache__" not in path.parts}
    assert {f"baton/{path}" for path in sources} <= names
    assert {"baton/py.typed", *(f"baton/{name}" for name in GENERATED)} <= names


@pytest.mark.soak
def test_the_link_in_a_tree_changes_nothing_of_it(wheel: Path, tmp_path: Path) -> None:
    tree = wheel.parent / "tree"  # with the generated files that the first build has left there
    (tree / "baton").symlink_to("src")
    with ZipFile(wheel) as archive, ZipFile(wheel_of(tree, tmp_path)) as other:
        assert other.namelist() == archive.namelist()
        assert [name for name in archive.namelist() if archive.read(name) != other.read(name)] == []


def test_it_works_away_from_the_repository(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = "import baton, baton.domain.contexts, baton.cli.main; print(baton.__file__); print(baton.__version__)"
    printed = output_of([sys.executable, "-c", program], tmp_path, PYTHONPATH=str(tmp_path / "site")).splitlines()
    assert Path(printed[0]).is_relative_to(tmp_path)
    version = output_of([sys.executable, "-m", "baton.cli", "--version"], tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert version.strip() == printed[1]


CLIENT_PROGRAM = """
import json, sys
from baton.client import Baton
from baton.client.refusals import AssetCannotExitMaintenanceError
with Baton(sys.argv[1]) as b:
    b.register_asset(name="Stage of the wheel", tier="Unit", facility_code="facility")
    try:
        b.assets["Stage of the wheel"].exit_maintenance()
    except AssetCannotExitMaintenanceError as refusal:
        reason = refusal.reason
    names = [asset.name for asset in b.assets.list(q="of the wheel")]
loaded = sorted({name.partition(".")[0] for name in sys.modules} | {name for name in sys.modules if name.count(".") == 1})
print(json.dumps({"names": names, "reason": reason, "loaded": loaded}))
"""
SERVER_ROOMS = {f"baton.{room}" for room in ("application", "infrastructure", "workflows", "activities", "api", "testing")}


def needed_distributions(wheel: Path) -> Iterator[Distribution]:
    """Yield what installing a wheel without extras brings, as far as this machine has it."""
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        archive.extractall(wheel.parent / "metadata", [name])
    waiting, seen = list(PathDistribution(wheel.parent / "metadata" / Path(name).parent).requires or ()), set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(requirement.name)
        found = distribution(requirement.name)
        yield found
        waiting += found.requires or ()


def test_the_client_works_where_nothing_but_its_own_dependencies_is_installed(
    wheel: Path, tmp_path: Path, postgres: "EmbeddedPostgres", template: str
) -> None:
    site = tmp_path / "site"
    with ZipFile(wheel) as archive:
        archive.extractall(site)
    brought = list(needed_distributions(wheel))
    assert {"pydantic", "fastapi", "temporalio", "psycopg"}.isdisjoint(one.metadata["Name"].lower() for one in brought)
    for needed in brought:
        for top in {Path(file).parts[0] for file in needed.files or () if ".." not in Path(file).parts}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(needed.locate_file(top))).resolve())
    with fresh_database(postgres, template) as url, running_module_service(url) as service:
        command = [sys.executable, "-S", "-c", CLIENT_PROGRAM, service.api.base_url]
        printed = json.loads(output_of(command, tmp_path, PYTHONPATH=str(site)))
    assert (printed["names"], printed["reason"]) == (["Stage of the wheel"], "commissioned")
    assert SERVER_ROOMS.isdisjoint(printed["loaded"])
    assert {"psycopg", "sqlalchemy", "fastapi", "starlette", "temporalio", "mcp", "numpy"}.isdisjoint(printed["loaded"])
    assert {"baton.domain", "pydantic", "jsonschema", "ruamel", "openpyxl", "rich"}.isdisjoint(printed["loaded"])


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("pydantic_settings", ["doctor"], "baton-facility[server], and [embedded] for `baton up`"),
        ("ruamel", ["apply", "-f", "beamline.yaml"], "baton-facility[files]"),
        ("pydantic", ["schema"], "baton-facility[files]"),
    ],
    ids=["the server", "files to apply", "their schema"],
)
def test_a_command_whose_part_is_not_installed_says_what_to_install(
    module: str, arguments: list[str], extra: str, tmp_path: Path
) -> None:
    """As in an environment with the command line alone: the import of a library of an extra fails."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules['{module}'] = None\n")
    command = [sys.executable, "-m", "baton.cli", *arguments]
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"This command needs {module}")
    assert done.stderr.endswith(f", which is not installed; install {extra}.\n")
    assert len(done.stderr.splitlines()) == 1
