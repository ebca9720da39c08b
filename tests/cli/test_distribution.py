"""The built distribution: one package with its types and data, which works without the rest of the repository."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.support.api.module_service import running_module_service
from tests.support.databases import fresh_database

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres

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
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".pyi", ".json", ".typed")
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
    for needed in needed_distributions(wheel):
        for top in {Path(file).parts[0] for file in needed.files or () if ".." not in Path(file).parts}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(needed.locate_file(top))).resolve())
    with fresh_database(postgres, template) as url, running_module_service(url) as service:
        command = [sys.executable, "-S", "-c", CLIENT_PROGRAM, service.api.base_url]
        printed = json.loads(output_of(command, tmp_path, PYTHONPATH=str(site)))
    assert (printed["names"], printed["reason"]) == (["Stage of the wheel"], "commissioned")
    assert SERVER_ROOMS.isdisjoint(printed["loaded"])
    assert {"psycopg", "sqlalchemy", "fastapi", "starlette", "temporalio", "mcp", "numpy"}.isdisjoint(printed["loaded"])


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
