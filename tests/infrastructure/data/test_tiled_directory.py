"""The directory that Tiled serves: links to files under the data roots, and nothing that leads elsewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from baton.application.ports import CatalogueRefusedError, CatalogueUnavailableError
from baton.domain.data.catalogue import CataloguedDataset
from baton.domain.data.dataset import DatasetStatus
from baton.domain.data.distribution import DistributionStatus
from baton.domain.data.values import Checksum, ChecksumAlgorithm, Encoding
from baton.infrastructure.catalogues import tiled_walker
from baton.infrastructure.catalogues.tiled_directory import TiledDirectory, link_path, metadata_path, safe_name
from baton.infrastructure.data_files import DataFiles
from tests.support.domain.lifecycles.run import run_started
from tests.support.domain.world import START, new_id
from tests.support.infrastructure.catalogued_datasets import copy_at, shown_dataset, with_dataset
from tests.support.tables import for_each

TILED = os.environ.get("TILED_COMMAND") or shutil.which("tiled")
NASTY_NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    ".hidden",
    "a/b\\c",
    "a\nb",
    "名" * 80,
    "x" * 200,
    "\u202egnp",
    "a.b.c",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def tiled(tmp_path: Path, root: Path) -> TiledDirectory:
    return TiledDirectory(tmp_path / "tiled", DataFiles([root]))


def place(tmp_path: Path, shown: CataloguedDataset) -> Path:
    return tmp_path / "tiled" / link_path(shown)


def written(root: Path, name: str = "scan_001.h5") -> str:
    (root / name).write_bytes(b"frames")
    return (root / name).as_uri()


async def test_a_dataset_is_a_link_to_its_file_with_its_metadata_beside_it(
    tiled: TiledDirectory, tmp_path: Path, root: Path
) -> None:
    shown = shown_dataset(written(root))
    assert await tiled.enter(shown)
    link = place(tmp_path, shown)
    assert link == tmp_path / "tiled" / "lumen" / "2026" / "no-run" / f"scan_001_{shown.dataset.id}.h5"
    assert link.readlink() == root / "scan_001.h5"
    metadata = json.loads(metadata_path(link).read_text())
    assert (metadata["name"], metadata["intent"]) == ("scan_001.h5", "Trial")
    assert sorted(path.name for path in link.parent.iterdir()) == [metadata_path(link).name, link.name]


async def test_a_run_has_a_folder_of_its_own(tiled: TiledDirectory, tmp_path: Path, root: Path) -> None:
    run = run_started().aggregate.fold([run_started().model_copy(update={"name": "Pellet/12"}).stamp(new_id(), START)])
    shown = shown_dataset(written(root))._replace(run=run)
    await tiled.enter(shown)
    assert place(tmp_path, shown).parent.name == f"Pellet_12_{run.id}"


async def test_entering_again_leaves_one_link_and_follows_a_better_copy(
    tiled: TiledDirectory, tmp_path: Path, root: Path
) -> None:
    shown = shown_dataset(written(root))
    plain, verified = (copy_at(shown, written(root, name)) for name in ("a.h5", "b.h5"))
    await tiled.enter(shown)
    await tiled.enter(shown._replace(copies=(plain,)))
    assert place(tmp_path, shown).readlink() == root / "a.h5"
    await tiled.enter(shown._replace(copies=(plain, replace(verified, status=DistributionStatus.VERIFIED))))
    assert place(tmp_path, shown).readlink() == root / "b.h5"
    assert len(list(place(tmp_path, shown).parent.iterdir())) == 2


@pytest.mark.parametrize("how", ["discarded", "stale", "elsewhere"])
async def test_what_is_not_to_be_shown_any_more_disappears_and_its_bytes_stay(
    tiled: TiledDirectory, tmp_path: Path, root: Path, how: str
) -> None:
    shown = shown_dataset(written(root))
    await tiled.enter(shown)
    stale = replace(copy_at(shown, shown.dataset.uri), status=DistributionStatus.STALE)
    now = {
        "discarded": with_dataset(shown, status=DatasetStatus.DISCARDED),
        "stale": shown._replace(copies=(stale,)),
        "elsewhere": shown._replace(copies=(copy_at(shown, "s3://bucket/scan_001.h5"),)),
    }[how]
    for _ in range(2):
        assert not await tiled.enter(now)
    assert not place(tmp_path, shown).parent.exists()
    assert (root / "scan_001.h5").read_bytes() == b"frames"


@pytest.mark.parametrize("name", NASTY_NAMES)
async def test_no_name_leads_out_of_the_directory_or_is_hidden(
    tiled: TiledDirectory, tmp_path: Path, root: Path, name: str
) -> None:
    shown = shown_dataset(written(root), name=name)
    await tiled.enter(shown)
    (link,) = (path for path in (tmp_path / "tiled").rglob("*") if path.is_symlink())
    assert link.parent == tmp_path / "tiled" / "lumen" / "2026" / "no-run"
    assert link.name.endswith(f"_{shown.dataset.id}.h5")
    assert link.name.count(".") == 1, "Tiled takes what follows the first dot for the form of the file"
    assert not link.name.startswith(".")


@pytest.mark.parametrize("where", ["outside", "linked", "missing", "directory"])
async def test_only_files_under_the_data_roots_are_linked(
    tiled: TiledDirectory, tmp_path: Path, root: Path, where: str
) -> None:
    (tmp_path / "secret.h5").write_bytes(b"not yours")
    (root / "linked.h5").symlink_to(tmp_path / "secret.h5")
    (root / "directory.h5").mkdir()
    outside = (tmp_path / "secret.h5").as_uri()
    shown = shown_dataset(outside if where == "outside" else f"{root.as_uri()}/{where}.h5")
    with pytest.raises(CatalogueRefusedError, match="retry the entry") as refused:
        await tiled.enter(shown)
    assert str(tmp_path) not in str(refused.value)
    assert not place(tmp_path, shown).parent.exists()


async def test_a_link_that_replaces_a_file_on_its_way_is_resolved(tiled: TiledDirectory, tmp_path: Path, root: Path) -> None:
    written(root, "real.h5")
    (root / "alias.h5").symlink_to(root / "real.h5")
    shown = shown_dataset((root / "alias.h5").as_uri())
    await tiled.enter(shown)
    assert place(tmp_path, shown).readlink() == root / "real.h5"


async def test_a_directory_of_files_and_a_file_elsewhere_have_no_entry(tiled: TiledDirectory, root: Path) -> None:
    tree = Checksum(algorithm=ChecksumAlgorithm.SHA256_TREE, value="ab" * 32)
    assert not await tiled.enter(shown_dataset(root.as_uri(), checksum=tree))
    assert not await tiled.enter(shown_dataset("https://archive.example/1.h5"))


async def test_a_directory_that_cannot_be_written_is_tried_again(tmp_path: Path, root: Path) -> None:
    (tmp_path / "tiled").write_text("in the way")
    with pytest.raises(CatalogueUnavailableError, match="TILED_DIRECTORY") as unavailable:
        await TiledDirectory(tmp_path / "tiled", DataFiles([root])).enter(shown_dataset(written(root)))
    assert str(tmp_path) not in unavailable.value.detail


@for_each(
    ("media_type", "uri", "suffix"),
    [
        ("application/x-hdf5", "file:///data/x.nxs", ".h5"),
        ("image/tiff", "file:///data/x", ".tif"),
        ("application/x-own", "file:///data/x.own", ".own"),
        ("application/x-own", "file:///data/x.o%2Fwn", ""),
    ],
)
def test_the_suffix_says_the_form_of_the_file(media_type: str, uri: str, suffix: str) -> None:
    shown = shown_dataset(uri, name="x", encoding=Encoding(media_type=media_type, conforms_to=frozenset()))
    assert link_path(shown).suffix == suffix


def test_a_name_of_nothing_usable_is_replaced() -> None:
    assert [safe_name(name) for name in ("", "...", "/")] == ["unnamed"] * 3


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[httpx.Client]:
    """A Tiled server over a directory, asked once it has looked through it."""
    assert TILED is not None
    environment = {**os.environ, "PYTHONPATH": str(Path(tiled_walker.__file__).parents[3])}
    command = [TILED, "serve", "directory", str(directory), "--api-key", "secret", "--port", "0", *options]
    log = directory.parent / "tiled.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as server:
        try:
            deadline = time.monotonic() + 60
            while "Indexing complete" not in log.read_text():
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            (address,) = re.findall(r"Uvicorn running on \S*(http://[0-9.:]+)", log.read_text())
            with httpx.Client(base_url=f"{address}/api/v1", headers={"Authorization": "Apikey secret"}) as client:
                yield client
        finally:
            server.terminate()


@pytest.mark.skipif(TILED is None, reason="Tiled is not installed (124 packages); name its command in TILED_COMMAND")
@pytest.mark.parametrize("walker", [False, True])
async def test_tiled_reads_the_directory(tiled: TiledDirectory, tmp_path: Path, root: Path, walker: bool) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(root / "scan_001.h5", "w") as file:
        file["counts"] = [3, 1, 2]
    shown = shown_dataset((root / "scan_001.h5").as_uri())
    gone = shown_dataset((root / "scan_001.h5").as_uri(), name="gone")
    for one in (shown, gone, with_dataset(gone, status=DatasetStatus.DISCARDED)):
        await tiled.enter(one)
    options = ("--walker", "baton.infrastructure.catalogues.tiled_walker:walk") if walker else ()
    node = f"lumen/2026/no-run/scan_001_{shown.dataset.id}"
    with serving(tmp_path / "tiled", *options) as client:
        listed: dict[str, Any] = client.get("/search/lumen/2026/no-run").json()
        assert [one["id"] for one in listed["data"]] == [node.rpartition("/")[2]]
        assert client.get(f"/array/full/{node}/counts", params={"format": "application/json"}).json() == [3, 1, 2]
        metadata = client.get(f"/metadata/{node}").json()["data"]["attributes"]["metadata"]
        assert metadata.get("baton", {}).get("dataset_id") == (str(shown.dataset.id) if walker else None)


def test_the_walker_needs_nothing_of_the_service() -> None:
    script = "import sys; sys.modules['pydantic'] = None; import baton.infrastructure.catalogues.tiled_walker"
    subprocess.run([sys.executable, "-c", script], check=True)
