"""Crates: an edition as a zip with the files that are as registered, and with what they come from."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from baton.domain.data.crate import METADATA, CrateDraft, GetEditionCrate
from baton.infrastructure.crates import LocalCrates
from baton.infrastructure.data_files import DataFiles
from tests.support.domain.datasets import promoted_dataset, storage, verified_copy
from tests.support.domain.editions import creator, edition_world, registered_edition, sealed_edition
from tests.support.domain.world import World, expect_refusal

BYTES = b"raw frames"
CHECKSUM = {"algorithm": "sha256", "value": hashlib.sha256(BYTES).hexdigest()}


@pytest.fixture
def world() -> World:
    return edition_world()


def draft_with(world: World, path: Path, **copy: Any) -> CrateDraft:
    """A crate of two datasets, one made of the other, whose copies are at this path and somewhere else."""
    disk = storage(world)
    known = {"uri": f"file://{path}", "checksum": CHECKSUM, "byte_size": len(BYTES), **copy}
    raw = promoted_dataset(world, name="raw", **known)
    made = promoted_dataset(world, name="volume", derived_from=[raw])
    verified_copy(world, raw, disk, **known)
    verified_copy(world, made, disk, uri="https://data.example/volume.h5")
    id = sealed_edition(world, raw, made, creator_ids=[creator(world, "Mira Okafor")], license="CC-BY-4.0")
    asked = world.ask(GetEditionCrate(), on=id)
    (draft,) = asked.arguments
    assert isinstance(draft, CrateDraft)
    return draft


async def unpack(draft: CrateDraft, path: Path, **limits: int) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of a packed crate, and its entities by their ids."""
    packed = await LocalCrates(DataFiles([path.parent]), **limits).pack(draft)
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(files.pop(METADATA))
    return files, {one["@id"]: one for one in document["@graph"]}


async def test_a_crate_has_its_files_and_where_they_come_from(world: World, tmp_path: Path) -> None:
    path = tmp_path / "scan 1.h5"
    path.write_bytes(BYTES)
    draft = draft_with(world, tmp_path / "scan%201.h5")
    files, entities = await unpack(draft, path)
    ((name, content),) = files.items()
    assert (name.rsplit("/", 1)[1], content) == ("scan 1.h5", BYTES)
    root = entities["./"]
    assert len(root["datePublished"]) == len("2026-10-06")
    assert name in [one["@id"] for one in root["hasPart"]]
    raw, volume = entities[name], next(one for one in entities.values() if one.get("name") == "volume")
    assert "contentUrl" not in raw
    assert volume["contentUrl"] == "https://data.example/volume.h5"
    assert volume["isBasedOn"] == [{"@id": name}]
    mentioned = {one["@id"] for entity in entities.values() for one in references_in(entity)}
    assert {one for one in mentioned if not one.startswith("https://")} <= entities.keys(), "everything is described"


@pytest.mark.parametrize("case", ["changed", "gone", "too large"])
async def test_a_file_that_cannot_be_packed_is_named_alone(world: World, tmp_path: Path, case: str) -> None:
    path = tmp_path / "scan.h5"
    if case != "gone":
        path.write_bytes(BYTES if case == "too large" else b"other data")
    limits = {"most_bytes": 3} if case == "too large" else {}
    files, entities = await unpack(draft_with(world, path), path, **limits)
    assert not files
    raw = next(one for one in entities.values() if one.get("name") == "raw")
    assert "contentUrl" not in raw, "an address of a file system leads nobody anywhere"
    assert raw["sha256"] == CHECKSUM["value"]


def test_an_edition_that_is_not_sealed_has_no_crate(world: World) -> None:
    id = registered_edition(world)
    with expect_refusal("EditionManifestNotFoundError", "not_sealed"):
        world.ask(GetEditionCrate(), on=id)


def references_in(part: Any) -> list[dict[str, str]]:
    """Every reference to another entity in a part of one."""
    if isinstance(part, dict) and part.keys() == {"@id"}:
        return [part]
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [one for inner in parts for one in references_in(inner)]
