"""Clients that keep a connection for nothing: requests that do not arrive, and answers that nobody takes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
import psycopg
import pytest

from baton.api.streams import POOL_SHARE
from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.api.test_edge import assert_error
from tests.support.api.event_streams import open_feed
from tests.support.api.samples import visit_plan
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.waiting import until

FOLLOWING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_snapshot_xmin%' AND pid <> pg_backend_pid()
"""
LIMIT = 0.5
BEYOND_BUFFERS = 300
"""Events that make a feed longer than what the system itself keeps for a socket that nobody reads."""


@pytest.fixture(scope="module")
async def api(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Api]:
    """A service without patience."""
    with fresh_database(postgres, template) as url:
        async with running_api(url, projecting=False, client_timeout_seconds=LIMIT) as api:
            yield api


@asynccontextmanager
async def open_connection(api: Api) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    place = urlsplit(api.base_url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def drip(writer: asyncio.StreamWriter, text: bytes) -> None:
    """Send a request as slowly as possible, as long as anybody listens."""
    for letter in text:
        writer.write(bytes([letter]))
        await asyncio.sleep(LIMIT / 10)


WHOLE = b'POST /zones HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n\r\n{"name": "Hall"}'
HEAD = WHOLE.index(b"{")


async def test_a_request_that_does_not_arrive_is_cut_off_and_told_so(api: Api) -> None:
    parts = product([0, 1, 20, HEAD - 1, HEAD, len(WHOLE) - 1], [False, True])
    async with asyncio.TaskGroup() as clients:
        for sent, dripping in parts:
            clients.create_task(assert_cut_off(api, sent, dripping))


async def assert_cut_off(api: Api, sent: int, dripping: bool) -> None:
    """Send the beginning of a request, and slowly some of its rest, and expect to be refused."""
    async with open_connection(api) as (reader, writer), asyncio.timeout(60):
        writer.write(WHOLE[:sent])
        rest = asyncio.create_task(drip(writer, WHOLE[sent:-1] if dripping else b""))
        answer = await reader.read()
        rest.cancel()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head
    refusal: dict[str, Any] = json.loads(body)
    assert (refusal["code"], refusal["context"]) == ("RequestTimeoutError", "edge")
    assert refusal["detail"].endswith(".")


async def test_a_client_that_takes_its_time_between_requests_is_served(api: Api) -> None:
    async with open_connection(api) as (reader, writer), asyncio.timeout(60):
        for _ in range(3):
            writer.write(WHOLE)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 201 ")
            await reader.readuntil(b"}")
            await asyncio.sleep(LIMIT * 1.5)


async def test_what_is_waited_for_here_is_no_fault_of_the_client(api: Api) -> None:
    async with open_feed(api) as reader:
        await reader.frame()
        await asyncio.sleep(LIMIT * 2)
        zone = await api.create("/zones", {"name": "Hall"})
        while (await reader.frame()).data["stream_id"] != zone:
            pass


@asynccontextmanager
async def silent_readers(api: Api, count: int) -> AsyncIterator[list[socket.socket]]:
    """So many readers of the whole feed that take nothing of it, once each was answered or left waiting."""
    place = urlsplit(api.base_url)
    loop, readers = asyncio.get_running_loop(), list[socket.socket]()
    try:
        for _ in range(count):
            reader = socket.socket()
            readers.append(reader)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            reader.setblocking(False)
            await loop.sock_connect(reader, (place.hostname, place.port))
            await loop.sock_sendall(reader, b"GET /events/stream?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield readers
    finally:
        for reader in readers:
            reader.close()


async def fill(api: Api, events: int) -> None:
    """A log of events of some twenty kilobytes each."""
    long = {"external_refs": {f"{number:050}": "x" * 200 for number in range(80)}}
    for _ in range(events):
        await api.create("/visits", {**visit_plan(str(uuid4()), str(uuid4())), **long})


@pytest.fixture(scope="module")
async def filled_database(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """A database whose feed is longer than what the system keeps for a socket that nobody reads."""
    with fresh_database(postgres, template) as url:
        async with running_api(url, projecting=False) as api:
            await fill(api, BEYOND_BUFFERS)
        yield url


async def test_a_stream_that_nobody_reads_is_ended_and_makes_room_for_another(filled_database: str) -> None:
    settings = {"client_timeout_seconds": LIMIT, "max_open_streams": 3}
    async with running_api(filled_database, projecting=False, **settings) as api, silent_readers(api, 3):
        await until(lambda: is_full(api), within=60)
        await until(lambda: has_room(api), within=60)


async def is_full(api: Api) -> bool:
    async with api.client.stream("GET", "/events/stream") as answer:
        if answer.status_code == 200:
            return False
        await answer.aread()
        assert_error(answer, 503, "TooManyStreamsError", "edge")
        assert answer.headers["Retry-After"] == "5"
        return True


async def has_room(api: Api) -> bool:
    return not await is_full(api)


async def test_readers_that_do_not_read_leave_the_database_and_the_memory_to_others(filled_database: str) -> None:
    async with running_api(filled_database, projecting=False, max_streams_per_principal=100) as api:
        before = psutil.Process().memory_info().rss
        grown, reading = [0], [0]
        async with (
            await psycopg.AsyncConnection.connect(filled_database, autocommit=True) as connection,
            silent_readers(api, 100),
        ):
            for _ in range(40):
                await api.create("/zones", {"name": "Hall"})
                grown.append(psutil.Process().memory_info().rss - before)
                reading += await (await connection.execute(FOLLOWING)).fetchone() or ()
            assert (await api.get("/readyz")).status_code == 200
        assert max(reading) <= 8 // POOL_SHARE
        assert max(grown) < 100 * 2**20
