"""How live streams are shared: so many for each principal, some kept for who holds a grant, none for who sees nothing."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from baton.api.errors import TooManyStreamsError
from baton.api.streams import OpenStreams
from baton.application.caller import Caller
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.kernel import NIL
from tests.support.api.approval_service import ApprovalService, open_approval_service
from tests.support.console.live_frames import open_stream
from tests.support.databases import fresh_database
from tests.support.service import Api
from tests.support.waiting import until

SHARE = 20
EVENTS, LIVE = "/events/stream", "/console/live?at=/console"


@pytest.fixture(scope="module")
async def service(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[ApprovalService]:
    with fresh_database(postgres, template) as url:
        async with open_approval_service(url) as service:
            yield service


@asynccontextmanager
async def open_many(api: Api, path: str, count: int) -> AsyncIterator[Counter[int]]:
    """Open streams over so many connections of one principal; yield how many were answered with which status."""
    place, connections = urlsplit(api.base_url), []
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Principal-Id: {api.headers['X-Principal-Id']}\r\n\r\n"
    statuses: Counter[int] = Counter()
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            connections.append(writer)
            writer.write(request.encode())
            statuses[int((await reader.readline()).split()[1])] += 1
        yield statuses
    finally:
        for writer in connections:
            writer.close()


async def answers(api: Api, path: str, status: int) -> bool:
    async with open_many(api, path, 1) as statuses:
        return statuses == {status: 1}


@pytest.mark.parametrize("path", [EVENTS, LIVE])
async def test_one_person_gets_a_share_of_the_streams(service: ApprovalService, path: str) -> None:
    greedy, other = [await service.register(name, "StreamEvents", "GetZone", "GetRun") for name in ("Greedy", "Other")]
    async with open_many(greedy, path, 205) as statuses:
        assert statuses == {200: SHARE, 503: 205 - SHARE}
        for still in (EVENTS, LIVE):
            assert await answers(other, still, 200)
            assert await answers(greedy, still, 503)
    await until(lambda: answers(greedy, path, 200))


@pytest.mark.parametrize("path", [EVENTS, LIVE])
async def test_who_holds_no_grant_gets_none(service: ApprovalService, path: str) -> None:
    nobody = await service.register("Nobody")
    async with open_many(nobody, path, 205) as statuses:
        assert statuses == {403: 205}


async def test_a_refused_stream_says_why_and_what_to_do(service: ApprovalService) -> None:
    greedy, nobody = await service.register("Greedy", "GetRun"), await service.register("Nobody")
    async with open_many(greedy, LIVE, SHARE):
        refused = await greedy.get("/console/live", at="/console")
        assert refused.status_code == 503
        assert f"You have {SHARE} live streams open" in refused.text
        assert "MAX_STREAMS_PER_PRINCIPAL" in refused.text
        async with open_stream(service.boss, "/console"):
            pass
    unseen = await nobody.get("/console/live", at="/console")
    assert unseen.status_code == 403
    assert "ask an administrator" in unseen.text


def test_who_holds_nothing_leaves_the_reserve_to_others() -> None:
    streams, opened = OpenStreams(8, 8, share=2), []

    def open_one(granted: bool) -> str | None:
        async def nothing() -> Any:
            yield b""

        try:
            opened.append(streams.respond(nothing(), Caller(uuid4(), NIL, uuid4()), granted=granted))
        except TooManyStreamsError as refusal:
            return refusal.reason or "all taken"
        return None

    assert [open_one(granted=False) for _ in range(7)] == [None] * 6 + ["reserved"]
    assert [open_one(granted=True) for _ in range(3)] == [None, None, "all taken"]
