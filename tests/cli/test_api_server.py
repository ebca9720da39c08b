"""The API as a process of its own: which addresses it listens on, how it goes on after a pause, and how it stops."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.api.mcp_clients import FRAME
from tests.support.forked_commands import forked_command
from tests.support.stack import DEADLINE, clean_environment, eventually, run_baton
from tests.support.waiting import until

ANY_HOST = "--host=0.0.0.0"
PAUSE_SECONDS = 6
"""Longer than the server beneath keeps an idle connection, where it is not told otherwise."""


@contextmanager
def running_api_process(directory: Path, database_url: str, *options: str) -> Iterator[tuple[ForkServerProcess, str]]:
    """A running `baton api` and its address; it writes to the files `stdout` and `stderr`."""
    stdout, stderr = directory / "stdout", directory / "stderr"
    environment = clean_environment(DATABASE_URL=database_url)
    with forked_command(("api", "--port=0", *options), environment, stdout, stderr) as process:
        eventually(lambda: stdout.exists() and stdout.read_text().endswith("\n"), what=lambda: stderr.read_text())
        yield process, stdout.read_text().removeprefix("serving on ").strip()
        process.terminate()
        process.join(DEADLINE)
        assert process.exitcode is not None, stderr.read_text()


def test_an_api_that_is_told_to_stop_ends_its_streams_in_order(database_url: str, tmp_path: Path) -> None:
    with (
        running_api_process(tmp_path, database_url) as (process, url),
        httpx.stream("GET", f"{url}/events/stream", timeout=DEADLINE) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines) == ": stream of committed events"
        process.terminate()
        list(lines)  # one that is cut off instead raises


async def test_an_api_that_is_told_to_stop_answers_those_who_wait_for_long_work(database_url: str, tmp_path: Path) -> None:
    """No worker runs, so both would be answered after a minute; what is not answered when the API stops is cut off."""
    with running_api_process(tmp_path, database_url) as (process, url):
        async with httpx.AsyncClient(base_url=url, timeout=DEADLINE) as client:
            first, second = [await register_procedure(client) for _ in range(2)]
            body = {"steps": [{"kind": "setpoint", "address": "a", "value": 1}], "wait": 60}
            rest = asyncio.create_task(client.post(f"/procedures/{first}/conduct", json=body))
            tool = asyncio.create_task(call_tool(client, "conduct_procedure", procedure_id=second, **body))
            for procedure_id in (first, second):
                await wait_until_conducted(client, procedure_id)
            process.terminate()
            answers = await asyncio.gather(rest, tool)
    assert (answers[0].status_code, answers[0].json().keys() >= {"work_id", "conduct_id"}) == (202, True)
    result = answers[1].json()["result"]
    assert (answers[1].status_code, result["_meta"]["baton/status"], result.get("isError", False)) == (200, 202, False)
    assert result["structuredContent"]["work_id"]


async def register_procedure(client: httpx.AsyncClient) -> str:
    answer = await client.post("/procedures", json={"name": "Align", "kind": "alignment"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["procedure_id"])


async def call_tool(client: httpx.AsyncClient, tool: str, **arguments: Any) -> httpx.Response:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return await client.post("/mcp", content=json.dumps(frame), headers=FRAME)


async def wait_until_conducted(client: httpx.AsyncClient, procedure_id: str) -> None:
    """Wait until a conduct of the procedure is on record."""

    async def has_conduct() -> bool:
        return bool((await client.get(f"/procedures/{procedure_id}")).json()["status"] != "Defined")

    await until(has_conduct, within=DEADLINE)


def test_an_api_that_was_suspended_answers_what_came_meanwhile(database_url: str, tmp_path: Path) -> None:
    """What else is due after the pause, such as closing what is idle, must not come before the request that waits."""
    with (
        running_api_process(tmp_path, database_url) as (process, url),
        httpx.Client(base_url=url, timeout=DEADLINE) as client,
        ThreadPoolExecutor() as threads,
    ):
        assert client.get("/health").status_code == 200
        suspended = psutil.Process(process.pid)
        suspended.suspend()
        answer = threads.submit(client.get, "/health")
        wait([answer], PAUSE_SECONDS)
        suspended.resume()
        assert answer.result(DEADLINE).status_code == 200


def test_nobody_else_is_listened_to_without_tokens_unless_that_is_meant(database_url: str, tmp_path: Path) -> None:
    for command in (["api", "--port=0"], ["up", f"--data-dir={tmp_path}", "--port=0"]):
        ran = run_baton(*command, ANY_HOST, DATABASE_URL=database_url)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "Whoever reaches 0.0.0.0 could do everything" in ran.stderr
        assert "--insecure-any-host" in ran.stderr


def test_every_start_that_listens_to_anybody_says_so(database_url: str, tmp_path: Path) -> None:
    with running_api_process(tmp_path, database_url, ANY_HOST, "--insecure-any-host") as (_, url):
        assert httpx.get(f"{url}/health").status_code == 200
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert [line for line in lines if line.startswith("baton: Whoever reaches 0.0.0.0 can do everything")]
    assert [line for line in lines if '"insecure_any_host"' in line]
