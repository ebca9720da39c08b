"""`baton documents`: lines of JSON, and a run in a Tiled server, read there with what Bluesky's users have."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import h5py
import httpx
import numpy
import pytest

import baton
from baton.infrastructure.wall_clock import new_id
from tests.support.api.rest_beamline import beamline
from tests.support.api.sample_parts.data import content_of, create_camera
from tests.support.service import Api
from tests.support.stack import run_baton
from tests.support.waiting import until

OUTSIDE = Path(f"{sys.prefix}-bluesky") / "bin"
READER = Path(__file__).parents[1] / "support" / "cli" / "tiled_reader.py"
KEY = "tests"
BEGUN = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("frames")


@pytest.fixture(scope="module")
async def tiled_address(files: Path) -> AsyncIterator[str]:
    """The address of a Tiled server of its own, which may read the files."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["serve", "catalog", "--temp", "--read", str(files), "--api-key", KEY, "--port", str(port)]
    quiet = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(str(OUTSIDE / "tiled"), *arguments, stdout=quiet, stderr=quiet)
    address = f"http://127.0.0.1:{port}"

    async def answers() -> bool:
        async with httpx.AsyncClient() as client:
            try:
                return (await client.get(f"{address}/healthz")).is_success
            except httpx.TransportError:
                return False

    try:
        await until(answers, within=300)
        yield address
    finally:
        server.terminate()
        await server.wait()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a person who has Bluesky's packages and the client, and Tiled's key."""
    directory = tmp_path_factory.mktemp("client")
    (directory / "baton").symlink_to(Path(baton.__file__).parent)
    return {**os.environ, "PYTHONPATH": str(directory), "TILED_API_KEY": KEY, "HOME": str(directory)}


async def output_of(environment: dict[str, str], *arguments: str) -> tuple[int | None, str, str]:
    """Run Python where Tiled's client is installed; return the exit code, the output and the errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        str(OUTSIDE / "python"), *arguments, env=environment, stdout=pipe, stderr=pipe
    )
    async with asyncio.timeout(240):
        output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


async def scan(api: Api, files: Path) -> str:
    """A run with ten readings of a channel and a file of five frames."""
    line = await beamline(api)
    run_id = await line.start_run(subject_id=line.subject_id)
    entries: list[dict[str, Any]] = [
        {
            "event_id": str(new_id()),
            "channel_name": "ring current",
            "value": 300.0 - place,
            "units": "mA",
            "sampled_at": (BEGUN + timedelta(seconds=place)).isoformat(),
            "sampling_procedure": "monitor",
        }
        for place in range(10)
    ]
    assert (await api.post(f"/runs/{run_id}/observations", {"entries": entries})).status_code == 200
    with h5py.File(path := files / f"{run_id}.h5", "w") as file:
        file["exchange/data"] = numpy.arange(5 * 4 * 3, dtype="u2").reshape(5, 4, 3)
    content = {**content_of(uuid4().hex), "uri": path.as_uri()}
    dataset_id = await api.create("/datasets", {"name": path.name, **content, "producing_run_id": run_id})
    layout = {"path": "/exchange/data", "count": 5, "shape": [4, 3], "dtype": "<u2"}
    birth = {"dataset_id": dataset_id, "producing_run_id": run_id, "captured_at": BEGUN.isoformat()}
    camera_id = await create_camera(api, uuid4().hex)
    await api.create("/acquisitions", {**birth, "producing_asset_id": camera_id, "evidence": {"frames": layout}})
    return run_id


async def test_documents_are_printed_as_lines_or_as_one_list(api: Api, files: Path) -> None:
    run_id = await scan(api, files)
    await api.execute(f"/runs/{run_id}/complete")

    async def documents(*options: str) -> CompletedProcess[str]:
        return await asyncio.to_thread(run_baton, "documents", "Load step 1", "--url", api.base_url, *options)

    lines = [json.loads(line) for line in (await documents()).stdout.splitlines()]
    assert [lines[0][0], lines[-1][0], len(lines)] == ["start", "stop", 1 + 1 + 10 + 3 + 1]
    assert json.loads((await documents("--json")).stdout) == lines
    if find_spec("tiled") is None:
        refused = await documents("--to-tiled", "http://127.0.0.1:1")
        assert refused.returncode == 2
        assert "which is not installed; install baton-facility[tiled]" in refused.stderr


@pytest.mark.timeout(600)
@pytest.mark.skipif(not (OUTSIDE / "tiled").exists(), reason="Tiled's environment is missing; `make test` makes it")
async def test_a_run_is_read_in_tiled_as_bluesky_writes_it(
    api: Api, tiled_address: str, files: Path, environment: dict[str, str]
) -> None:
    run_id = await scan(api, files)
    write = ("-m", "baton.cli", "documents", run_id, "--to-tiled", tiled_address, "--url", api.base_url)
    code, _, errors = await output_of(environment, *write)
    assert (code, "has not ended" in errors) == (1, True), errors
    await api.execute(f"/runs/{run_id}/complete")
    code, output, errors = await output_of(environment, *write)
    assert code == 0, errors
    assert f"were written to {tiled_address}" in output
    code, output, errors = await output_of(environment, str(READER), tiled_address, run_id)
    assert code == 0, errors
    seen = json.loads(output)
    assert seen["specs"] == ["BlueskyRun"]
    assert (seen["start"]["plan_name"], seen["stop"]["exit_status"]) == ("Spring block", "success")
    [current] = [name for name in seen["streams"] if name.endswith("_monitor")]
    table = seen["streams"][current]
    assert table["ring current"] == [300.0 - place for place in range(10)]
    assert table["seq_num"] == list(range(1, 11))
    assert table["time"] == [(BEGUN + timedelta(seconds=place)).timestamp() for place in range(10)]
    assert seen["streams"]["frames_1"] == {"shape": [5, 4, 3], "last": 59, "dtype": "uint16"}
    code, _, errors = await output_of(environment, *write)
    assert (code, "has this run already" in errors) == (2, True), errors
