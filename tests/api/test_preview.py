"""Pictures of datasets over REST and MCP: what the file holds pixel by pixel, and every reason why there is none."""

import asyncio
import os
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any
from uuid import uuid4

import httpx
import numpy
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.infrastructure.scans import reader_process
from baton.infrastructure.scans.previews import LocalPreviews
from tests.support.api.data_products import register_copy, register_dataset
from tests.support.api.mcp_clients import agent, refusal
from tests.support.databases import fresh_database
from tests.support.infrastructure.pictures import pixels_of, write_array
from tests.support.service import Api, running_api
from tests.support.stack import clean_environment
from tests.support.waiting import until

STEPS = numpy.array([[[9] * 3] * 2, [[0, 51, 102], [153, 204, 255]], [[9] * 3] * 2], dtype="f4")
"""Three frames of two by three pixels."""
MIDDLE = [[0, 51, 102], [153, 204, 255]]


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@dataclass(frozen=True)
class PictureSite:
    """A service, and the directory whose files it may show."""

    api: Api
    root: Path

    async def register(self, path: Path, **fields: Any) -> str:
        return await register_dataset(self.api, uri=path.as_uri(), **{"byte_size": size_of(path), **fields})

    async def preview(self, dataset_id: str) -> httpx.Response:
        return await self.api.get(f"/datasets/{dataset_id}/preview.png")

    async def refusal_of(self, dataset_id: str) -> tuple[str, str]:
        answer = await self.preview(dataset_id)
        body = answer.json()
        assert (answer.status_code, body["code"]) == (409, "DatasetPreviewUnavailableError")
        return body["reason"], body["detail"]

    def write(self, values: Any = STEPS, **options: Any) -> Path:
        return write_array(self.root / f"{uuid4()}.h5", values, **options)


@pytest.fixture(scope="module")
async def site(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PictureSite]:
    root = tmp_path_factory.mktemp("data")
    with fresh_database(postgres, template) as url:
        async with running_api(url, data_roots=(root,)) as api:
            yield PictureSite(api, root)


async def test_the_middle_frame_is_answered_as_a_picture(site: PictureSite) -> None:
    path = site.write()
    dataset = await site.register(path)
    answer = await site.preview(dataset)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert "content-encoding" not in answer.headers
    assert pixels_of(answer.content) == MIDDLE


async def test_a_file_that_was_overwritten_is_not_shown_as_the_dataset(site: PictureSite) -> None:
    dataset = await site.register(path := site.write())
    write_array(path, STEPS[:, ::-1])
    os.utime(path, (later := time() + 60, later))
    reason, detail = await site.refusal_of(dataset)
    assert (reason, "changed since it was registered (it was written to)" in detail) == ("changed", True)
    other = await site.register(path)
    write_array(path, STEPS[:, :1])
    reason, detail = await site.refusal_of(other)
    assert (reason, "changed since it was registered (it has " in detail) == ("changed", True)


async def test_a_stale_copy_is_not_shown(site: PictureSite) -> None:
    size = size_of(path := site.write())
    dataset = await site.register(path)
    copy = await register_copy(site.api, dataset, uri=path.as_uri(), byte_size=size)
    assert (await site.preview(dataset)).status_code == 200
    await site.api.execute(f"/distributions/{copy}/mark-stale", {"reason": "of another sample"})
    reason, detail = await site.refusal_of(dataset)
    assert (reason, "Stale" in detail) == ("changed", True)


async def test_a_copy_is_shown_where_the_first_place_is_not_a_file_here(site: PictureSite) -> None:
    size = size_of(path := site.write())
    dataset = await register_dataset(site.api, uri="https://data.example/scan.h5", byte_size=size)
    assert (await site.refusal_of(dataset))[0] == "no_file"
    copy = await register_copy(site.api, dataset, uri=path.as_uri(), byte_size=size)
    assert pixels_of((await site.preview(dataset)).content) == MIDDLE
    await site.api.execute(f"/distributions/{copy}/discard", {"reason": "moved"})
    assert (await site.refusal_of(dataset))[0] == "no_file"


async def test_a_discarded_dataset_is_shown_while_its_file_is_there(site: PictureSite) -> None:
    dataset = await site.register(path := site.write())
    await site.api.execute(f"/datasets/{dataset}/discard", {"reason": "of another sample"})
    assert pixels_of((await site.preview(dataset)).content) == MIDDLE
    path.unlink()
    assert (await site.refusal_of(dataset))[0] == "no_file"


async def test_what_has_no_picture_says_why(site: PictureSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outside = await site.register(write_array(tmp_path / "scan.h5", STEPS))
    assert await site.refusal_of(outside) == (
        "no_file",
        "No copy of this dataset is a file that the API can read; put one under its directories of data files (DATA_ROOTS)."
        " The file is outside the directories of data files (DATA_ROOTS).",
    )
    reason, detail = await site.refusal_of(await site.register(site.write(range(20))))
    assert (reason, "two or more axes" in detail) == ("no_picture", True)
    (cut := site.write()).write_bytes(site.write().read_bytes()[:900])
    reason, detail = await site.refusal_of(await site.register(cut))
    assert (reason, "damaged" in detail) == ("unreadable", True)
    reason, detail = await site.refusal_of(await site.register(site.write(compression="lzf")))
    assert (reason, "something else than gzip" in detail) == ("unreadable", True)
    assert (await site.preview(str(uuid4()))).status_code == 404


async def test_an_api_without_the_libraries_says_what_to_install(
    postgres: EmbeddedPostgres, template: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reader_process, "NEEDED", ("h5py", "no_such_library"))
    with fresh_database(postgres, template) as url:
        async with running_api(url, data_roots=(tmp_path,)) as api:
            site = PictureSite(api, tmp_path)
            reason, detail = await site.refusal_of(await site.register(site.write()))
    assert (reason, "install baton-facility[scans]" in detail) == ("reader_missing", True)


async def test_a_model_gets_an_image_to_look_at(site: PictureSite) -> None:
    dataset, empty = await site.register(site.write()), await site.register(site.write(range(20)))
    async with agent(site.api) as client:
        result = await client.call_tool(
            "call_operation", {"name": "get_dataset_preview", "arguments": {"dataset_id": dataset}}
        )
        refused = await refusal(client, "get_dataset_preview", dataset_id=empty)
    sentence, image, _ = result.content
    assert (sentence.type, image.type) == ("text", "image")
    assert sentence.text.startswith("This is a file of type image/png")
    assert image.mime_type == "image/png"
    assert pixels_of(b64decode(image.data)) == MIDDLE
    assert result.structured_content is None
    assert (refused["code"], refused["reason"]) == ("DatasetPreviewUnavailableError", "no_picture")


async def test_the_command_line_writes_a_picture_to_a_file_and_not_to_a_terminal(site: PictureSite, tmp_path: Path) -> None:
    dataset, file = await site.register(site.write()), tmp_path / "preview.png"
    command = [sys.executable, "-m", "baton.cli", "call", "get_dataset_preview", dataset]
    environment = clean_environment(BATON_URL=site.api.base_url, XDG_CONFIG_HOME=str(tmp_path))

    async def run(stdout: int) -> tuple[int | None, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=stdout, stderr=pipe)
        _, errors = await process.communicate()
        return process.returncode, errors.decode()

    with file.open("wb") as output:
        assert await run(output.fileno()) == (0, "")
    assert pixels_of(file.read_bytes()) == MIDDLE
    ours, theirs = os.openpty()
    try:
        code, errors = await run(theirs)
    finally:
        os.close(theirs)
        os.close(ours)
    assert (code, errors.startswith("baton: The answer is no text; write it to a file")) == (2, True)


async def test_pictures_that_take_long_keep_no_database_connection(
    postgres: EmbeddedPostgres, template: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The service has eight connections; with more pictures than that under way, it answers everything else."""
    begun: list[Any] = []
    go_on = asyncio.Event()

    async def wait(previews: LocalPreviews, uris: Any) -> bytes:
        begun.append(uris)
        await go_on.wait()
        return b""

    monkeypatch.setattr(LocalPreviews, "picture", wait)
    with fresh_database(postgres, template) as url:
        async with running_api(url, data_roots=(tmp_path,)) as api:
            site = PictureSite(api, tmp_path)
            dataset = await site.register(tmp_path / "scan.h5")
            waiting = [asyncio.create_task(site.preview(dataset)) for _ in range(12)]
            await until(lambda: len(begun) == len(waiting))
            async with asyncio.timeout(60):
                await api.create("/zones", {"name": "Hall"})
            go_on.set()
            assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}
