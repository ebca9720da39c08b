"""The API killed under 32 writing clients: what was acknowledged is in the log, nothing is there twice, and it goes on."""

import asyncio
import itertools
from collections import Counter
from uuid import uuid4

import httpx
import psycopg

from tests.support.stack import DEADLINE, Stack
from tests.support.waiting import until

CLIENTS = 32
KILLS = 2
WRITES_BETWEEN = 60


class Writers:
    """Clients that register one actor after the other, each under a key of its own."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._numbers = itertools.count()
        self.names: dict[str, str] = {}
        self.acknowledged: dict[str, str] = {}
        self.stopping = False

    async def write(self) -> None:
        """Send commands until told to stop; one without an answer stays in doubt."""
        while not self.stopping:
            key = str(uuid4())
            self.names[key] = f"Visitor {next(self._numbers)}"
            try:
                answer = await self.send(key)
            except httpx.TransportError:
                continue
            if answer.status_code == 201:
                self.acknowledged[key] = answer.json()["actor_id"]

    async def reach(self, count: int) -> None:
        """Wait until so many commands are acknowledged."""
        await until(lambda: len(self.acknowledged) >= count, DEADLINE)

    async def send(self, key: str) -> httpx.Response:
        return await self._client.post("/actors", json={"name": self.names[key]}, headers={"Idempotency-Key": key})

    async def repeat(self, key: str) -> str:
        """The answer to a command sent once more, as often as it takes."""
        deadline = asyncio.get_running_loop().time() + DEADLINE
        while True:
            answer = await self.send(key)
            if answer.status_code == 201:
                assert key not in self.acknowledged or answer.headers["Idempotency-Replayed"] == "true"
                return str(answer.json()["actor_id"])
            assert answer.json()["code"] == "IdempotencyClaimLostError", answer.text
            assert asyncio.get_running_loop().time() < deadline, answer.text
            await asyncio.sleep(0.1)


async def test_no_acknowledged_command_is_lost_and_none_is_done_twice(stack: Stack) -> None:
    with psycopg.connect(stack.address("database_url")) as connection:
        [before] = connection.execute("SELECT max(position) FROM events").fetchall()
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=stack.address("url"), limits=limits, timeout=DEADLINE) as client:
        writers = Writers(client)
        writing = [asyncio.create_task(writers.write()) for _ in range(CLIENTS)]
        for goal in range(WRITES_BETWEEN, KILLS * WRITES_BETWEEN + 1, WRITES_BETWEEN):
            await writers.reach(goal)
            await asyncio.to_thread(stack.kill, "api")
            health = await client.get("/health")
            assert health.status_code == 200, "a request that comes while the API is away waits for it"
        await writers.reach((KILLS + 1) * WRITES_BETWEEN)
        writers.stopping = True
        await asyncio.gather(*writing)

        doubtful = set(writers.names) - set(writers.acknowledged)
        assert doubtful, "no command was cut off, so nothing was tried"
        answers: dict[str, str] = {}
        keys = iter(writers.names)

        async def repeat_all() -> None:
            for key in keys:
                answers[key] = await writers.repeat(key)

        await asyncio.gather(*(repeat_all() for _ in range(CLIENTS)))

    assert {key: answers[key] for key in writers.acknowledged} == writers.acknowledged
    with psycopg.connect(stack.address("database_url")) as connection:
        rows = connection.execute(
            "SELECT stream_id::text FROM events WHERE event_type = 'ActorRegistered' AND position > %s", before
        )
        registered = Counter(row[0] for row in rows)
        [(profiles,)] = connection.execute(
            "SELECT count(*) FROM access_actor_profile WHERE name LIKE 'Visitor %'"
        ).fetchall()
    assert registered == Counter(answers.values())
    assert set(registered.values()) == {1}
    assert len(registered) == len(writers.names) == profiles
