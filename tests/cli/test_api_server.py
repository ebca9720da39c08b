"""The API as a process of its own: whom it listens to, and how it ends."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.api.mcp_clients import FRAME
from tests.support.stack import baton, clean_environment

EVERYWHERE = "--host=0.0.0.0"


@contextmanager
def serving(database_url: str, *options: str, **environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A running API and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "baton.cli", "api", "--port=0", *options],
        env=clean_environment(DATABASE_URL=database_url, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as api:
        try:
            assert api.stdout is not None
            yield api, api.stdout.readline().removeprefix("serving on ").strip()
        finally:
            api.terminate()
            api.wait(30)


def test_an_api_that_is_told_to_stop_ends_its_streams_in_order(database_url: str) -> None:
    with serving(database_url) as (api, url), httpx.stream("GET", f"{url}/events/stream", timeout=30) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": stream of committed events"
        api.terminate()
        list(lines)  # one that is cut off instead raises


async def test_an_api_that_is_told_to_stop_answers_those_who_wait_for_long_work(database_url: str) -> None:
    """Nobody works here, so both conducts would be waited for until their time is over."""
    with serving(database_url) as (api, url):
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            first, second = [await registered(client) for _ in range(2)]
            asked = {"steps": [{"kind": "setpoint", "address": "a", "value": 1}], "wait": 60}
            rest = asyncio.create_task(client.post(f"/procedures/{first}/conduct", json=asked))
            tool = asyncio.create_task(called(client, "conduct_procedure", procedure_id=second, **asked))
            for procedure_id in (first, second):
                await opened(client, procedure_id)
            told_at = time.monotonic()
            api.terminate()
            answers = await asyncio.gather(rest, tool)
            assert time.monotonic() - told_at < 2.5  # of which 0.1 s are the server's own, and a busy machine takes the rest
    assert (answers[0].status_code, answers[0].json().keys() >= {"work_id", "conduct_id"}) == (202, True)
    result = answers[1].json()["result"]
    assert (answers[1].status_code, result["_meta"]["baton/status"], result.get("isError", False)) == (200, 202, False)
    assert result["structuredContent"]["work_id"]


async def registered(client: httpx.AsyncClient) -> str:
    answer = await client.post("/procedures", json={"name": "Align", "kind": "alignment"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["procedure_id"])


async def called(client: httpx.AsyncClient, tool: str, **arguments: Any) -> httpx.Response:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return await client.post("/mcp", content=json.dumps(frame), headers=FRAME)


async def opened(client: httpx.AsyncClient, procedure_id: str) -> None:
    """Wait until a conduct is on record."""
    deadline = time.monotonic() + 30
    while (await client.get(f"/procedures/{procedure_id}")).json()["status"] == "Defined":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def test_nobody_else_is_listened_to_without_tokens_unless_that_is_meant(database_url: str, tmp_path: Path) -> None:
    for command in (["api", "--port=0"], ["up", f"--data-dir={tmp_path}", "--port=0"]):
        ran = baton(*command, EVERYWHERE, DATABASE_URL=database_url)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "Whoever reaches 0.0.0.0 could do everything" in ran.stderr
        assert "--insecure-any-host" in ran.stderr


def test_every_start_that_listens_to_anybody_says_so(database_url: str) -> None:
    with serving(database_url, EVERYWHERE, "--insecure-any-host") as (api, url):
        assert httpx.get(f"{url}/health").status_code == 200
        api.terminate()
        assert api.stderr is not None
        lines = api.stderr.read().splitlines()
    assert [line for line in lines if line.startswith("baton: Whoever reaches 0.0.0.0 can do everything")]
    assert [line for line in lines if '"insecure_any_host"' in line]
