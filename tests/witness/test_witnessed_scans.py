"""A RunEngine that nobody changed but for one line: its scans are runs, its numbers readings, its files datasets."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.databases import fresh_database
from tests.support.service import running_api
from tests.support.stack import run_baton
from tests.support.waiting import until
from tests.support.witness.engine_process import EngineProcess, Scan, running_engine
from tests.support.witness.witnessed_beamline import WitnessedBeamline, witnessed_beamline
from tests.support.workflows.conduct_stack import open_conduct_stack

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("frames")


@dataclass(frozen=True)
class EnforcingService:
    """A beamline, and the address of a service that lets its witness do what it was granted and nothing else."""

    line: WitnessedBeamline
    url: str
    granted: dict[str, Any]


@pytest.fixture(scope="module")
async def service(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, data_root: Path
) -> AsyncIterator[EnforcingService]:
    enforcing = {"authorization_mode": "policy", "temporal_address": temporal.address}
    with fresh_database(postgres, template) as url:
        async with (
            open_conduct_stack(url, temporal.address, data_roots=[data_root], authorization_mode="policy"),
            running_api(url) as api,
            running_api(url, projecting=False, **enforcing) as strict,
        ):
            granted = await grant(api.base_url)
            yield EnforcingService(await witnessed_beamline(api, granted["actor_id"]), strict.base_url, granted)


async def grant(url: str) -> dict[str, Any]:
    """Return what `baton witness grant` says."""
    arguments = ("witness", "grant", "Bluesky at BL7", "--json", f"--url={url}")
    done = await asyncio.to_thread(run_baton, *arguments)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def line(service: EnforcingService) -> WitnessedBeamline:
    return service.line


@pytest.fixture(scope="module")
def engine(service: EnforcingService, data_root: Path) -> Iterator[EngineProcess]:
    told = {"environment": service.line.environment, "observe": "all"}
    with running_engine(data_root, service.url, service.line.plan, **told) as engine:
        yield engine


async def test_a_person_cannot_be_made_a_witness(service: EnforcingService) -> None:
    await service.line.api.create("/actors", {"name": "Ravi Shah"})
    arguments = ("witness", "grant", "Ravi Shah", f"--url={service.line.api.base_url}")
    done = await asyncio.to_thread(run_baton, *arguments)
    assert done.returncode == 2
    assert done.stderr == "baton: Ravi Shah is the name of another kind of actor (human); choose a name of its own.\n"


async def test_a_second_grant_changes_nothing(service: EnforcingService) -> None:
    again = await grant(service.line.api.base_url)
    assert again == {**service.granted, "is_new": False}
    assert service.granted["is_new"]


@pytest.mark.parametrize("plan", ["count", "scan", "rel_scan", "grid_scan"])
async def test_a_scan_of_a_run_engine_is_a_run_with_every_reading_once(
    line: WitnessedBeamline, engine: EngineProcess, plan: str
) -> None:
    scan = await engine.run(plan)
    run = await line.ended_run(scan)
    assert (run["status"], run["witness"]["plan_name"]) == ("Completed", plan)
    assert await line.readings(run["id"]) == scan.numbers()
    assert await line.endings(run["id"]) == ["RunCompleted"]
    assert (run["external_refs"]["bluesky"], run["actuation_kind"]) == (scan.uid, None)
    assert run["witness"]["asset_ids"] == ([] if plan == "count" else [line.stage_id])


@pytest.mark.parametrize(
    ("plan", "status", "reason"),
    [
        ("rewound", "Completed", None),
        ("stopped", "Stopped", "The RunEngine was told to stop."),
        ("aborted", "Aborted", "The RunEngine aborted it."),
        ("failed", "Aborted", "the motor stalled"),
    ],
)
async def test_a_run_ends_on_record_as_it_did_in_the_run_engine(
    line: WitnessedBeamline, engine: EngineProcess, plan: str, status: str, reason: str | None
) -> None:
    scan = await engine.run(plan)
    run = await line.ended_run(scan)
    assert (run["status"], run["end_reason"]) == (status, reason)
    assert await line.readings(run["id"]) == scan.numbers(), "what was measured again after a rewind stands beside"


async def test_the_frames_of_a_detector_become_a_dataset_with_its_acquisition(
    line: WitnessedBeamline, engine: EngineProcess, data_root: Path
) -> None:
    scan = await engine.run("frames")
    run, dataset = await wait_for_dataset(line, scan)
    [uri] = {one["uri"] for one in scan.of("stream_resource")}
    view = (await line.api.get(f"/datasets/{dataset['dataset_id']}")).json()
    assert (view["uri"], view["byte_size"]) == (uri, sizes_below(data_root)[uri])
    path = f"/datasets/{dataset['dataset_id']}/provenance"
    by_kind = {node["kind"]: node for node in (await line.api.get(path)).json()["nodes"]}
    assert (by_kind["run"]["id"], by_kind["run"]["details"]["witnessed"]) == (run["id"], True)
    [acquisition] = (await line.api.get("/acquisitions", dataset_id=dataset["dataset_id"])).json()["items"]
    captured = (await line.api.get(f"/acquisitions/{acquisition['acquisition_id']}")).json()
    assert captured["producing_asset_id"] == line.camera_id
    assert captured["evidence"]["data_keys"]["blob"] == {
        "frames_found": 2,
        "path": "/entry/data/data",
        "chunk_shape": [1, 240, 320],
    }


async def test_a_fly_scan_without_events_is_a_run_with_its_frames(line: WitnessedBeamline, engine: EngineProcess) -> None:
    scan = await engine.run("fly")
    run, dataset = await wait_for_dataset(line, scan)
    assert (run["status"], dataset["producing_run_id"]) == ("Completed", run["id"])
    assert scan.of("event") == []


async def test_nothing_was_refused_and_everything_was_understood(engine: EngineProcess) -> None:
    standing = await engine.ask_standing()
    assert (standing["refused"], standing["dropped"], standing["faults"], standing["last_error"]) == (0, {}, {}, None)


async def wait_for_dataset(line: WitnessedBeamline, scan: Scan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the run of a scan and its only dataset, once it is on record."""
    run = await line.ended_run(scan)

    async def datasets() -> list[dict[str, Any]]:
        found = (await line.api.get("/datasets", producing_run_id=run["id"])).json()["items"]
        return list(found)

    [dataset] = await until(datasets)
    return run, dataset


def sizes_below(directory: Path) -> dict[str, int]:
    """Return the size of each frame file, by the address that documents give it."""
    return {f"file://localhost{path}": path.stat().st_size for path in directory.glob("*.h5")}
