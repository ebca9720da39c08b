"""What an executor answers is not trusted: it leads nowhere else, and has a bounded size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from baton.application.conduct.plan_executors import MAX_ANSWER_BYTES, PlanExecutorSilentError
from baton.infrastructure.plans.blueapi import Blueapi

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def running_server(head: str, body: bytes = b"") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives everybody the same answer; its address, and the requests that it had."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(head.encode() + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


async def test_an_answer_without_bounds_counts_as_none() -> None:
    async with running_server(HEAD, b'"' + b"x" * (MAX_ANSWER_BYTES + 1) + b'"') as (address, _):
        executor = Blueapi(address)
        with pytest.raises(PlanExecutorSilentError, match="more than"):
            await executor.catalogue()
        await executor.close()


async def test_a_redirect_is_not_followed_and_takes_no_token_along() -> None:
    async with running_server(HEAD, b"{}") as (elsewhere, requests):
        head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}/api/v1/plans\r\nContent-Length: 0\r\n\r\n"
        async with running_server(head) as (address, _):
            executor = Blueapi(address, token="secret")
            with pytest.raises(PlanExecutorSilentError, match="307"):
                await executor.catalogue()
            await executor.close()
    assert requests == []
