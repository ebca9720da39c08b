"""Many writers at once: one winner a version, serial work under a named lock, and no deadlock that looks like an outage."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.ports import Batch, CommandResult, StoreUnavailableError, StreamAppend
from baton.domain.access.actor import ActorDeactivated, RegisterActor
from baton.domain.access.identity_provider import ProviderFacts
from baton.domain.kernel import Call
from baton.domain.shared.refusals import ConcurrencyError, Refusal
from baton.domain.trust.subject_binding import BindActorSubject
from baton.domain.trust.surface import SYSTEM_HTTP, DefineSurface, SurfaceControl
from baton.domain.trust.visit import (
    CONTROL_LOCK,
    CheckInVisit,
    CompleteVisit,
    RecordVisitArrival,
    StartVisit,
    TakeControlOfSurface,
    Visit,
)
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import OPERATOR, START, CommandCaller, lenient, planned_visit
from tests.support.application.ports import ports_of
from tests.support.domain.world import expect_refusal, new_id
from tests.support.infrastructure.database_observer import Connection, project, rows, until_waiting

WRITERS = 24
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def subject(number: int) -> BindActorSubject:
    return BindActorSubject(issuer="https://login.example.org", subject=f"person-{number}")


class TestOneStream:
    async def test_of_many_writers_who_saw_the_same_version_one_wins(self, database_url: str, owner: Connection) -> None:
        everybody_has_read = asyncio.Barrier(WRITERS)

        async def provider(*arguments: Any) -> ProviderFacts:
            await everybody_has_read.wait()
            return ProviderFacts(known=True, bound=False)

        async with runtime_pool(database_url, WRITERS) as pool:
            client = CommandCaller(PostgresStore(pool), ports=ports_of(identity_provider=provider, deployment=lenient))
            actor = await client.create(RegisterActor(name="Mira"))
            binds = [client.do(subject(number), on=actor) for number in range(WRITERS)]
            outcomes = await asyncio.gather(*binds, return_exceptions=True)
            winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, CommandResult)]
            losers = [outcome for outcome in outcomes if isinstance(outcome, ConcurrencyError)]
            assert (len(winners), len(losers)) == (1, WRITERS - 1)
            assert await client.versions("Actor", actor) == [1, 2]
        bound = await rows(owner, "SELECT subject FROM access_subject_binding")
        assert bound == [(f"person-{winners[0]}",)]

    async def test_many_writers_who_repeat_until_they_win_all_get_in(self, database_url: str, owner: Connection) -> None:
        lost = 0

        async def until_won(client: CommandCaller, visit: UUID) -> int:
            nonlocal lost
            person = client.acting_as(new_id())
            while True:
                try:
                    return (await person.do(CheckInVisit(mode="remote"), on=visit)).position
                except ConcurrencyError:
                    lost += 1

        async with runtime_pool(database_url, 16) as pool:
            client = CommandCaller(PostgresStore(pool))
            visit = await client.create(planned_visit())
            await client.do(RecordVisitArrival(), on=visit)
            positions = await asyncio.gather(*(until_won(client, visit) for _ in range(WRITERS)))
            async with client.store.session() as session:
                stored = await session.load("Visit", [visit])
        assert [row.version for row in stored] == list(range(1, WRITERS + 3))
        assert sorted(positions) == [row.position for row in stored[2:]]
        assert lost > 0
        await project(database_url, owner)
        state: Any = Visit.aggregate.replay(stored)
        shown = await rows(owner, "SELECT visit_id, status, stream_version, arrived_at FROM proj_trust_visit_summary")
        assert shown == [(visit, state.status, WRITERS + 2, state.arrived_at)]
        assert len({entry.actor_id for entry in state.presence_entries}) == WRITERS


class TestDeadlocks:
    async def test_appends_that_cross_lose_a_race_and_nothing_else(
        self, store: PostgresStore, client: CommandCaller, second_connection: Connection, owner: Connection
    ) -> None:
        """One writes a, x, b and the other b, a, while somebody else is about to write x."""
        a, x, b = [await client.create(RegisterActor(name=name)) for name in "axb"]

        def deactivation_batch(*ids: UUID) -> Batch:
            call = Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())
            events = [(id, ActorDeactivated().stamp(id, START)) for id in ids]
            return Batch(call, "Cross", [StreamAppend("Actor", id, 1, [(new_id(), event)]) for id, event in events])

        async def append(batch: Batch) -> int | None:
            async with store.session() as session:
                return await session.append(batch)

        await second_connection.execute(
            "INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, "
            "command_name, correlation_id, occurred_at) SELECT gen_random_uuid(), stream_type, stream_id, 2, event_type, "
            "payload, principal_id, command_name, correlation_id, occurred_at FROM events WHERE stream_id = %s",
            (x,),
        )
        first = asyncio.create_task(append(deactivation_batch(a, x, b)))
        await until_waiting(owner, 1)
        second = asyncio.create_task(append(deactivation_batch(b, a)))
        await until_waiting(owner, 2)
        await second_connection.rollback()
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConcurrencyError", "int"]
        versions = [await client.versions("Actor", id) for id in (a, b)]
        assert versions == [[1, 2], [1, 2]]


class TestConnections:
    async def test_what_a_decision_asks_beside_its_session_needs_no_second_connection(self, database_url: str) -> None:
        """Every connection of the pool is held by a decision when the first of them asks."""
        everybody_decides = asyncio.Barrier(4)

        async def provider(*arguments: Any) -> ProviderFacts:
            await everybody_decides.wait()
            async with store.session() as session:
                assert len(await session.load("Actor", actors[:1])) == 1
            return ProviderFacts(known=True, bound=False)

        async with runtime_pool(database_url, 4) as pool:
            store = PostgresStore(pool)
            client = CommandCaller(store, ports=ports_of(identity_provider=provider, deployment=lenient))
            actors = [await client.create(RegisterActor(name=name)) for name in "abcd"]
            binds = [client.acting_as(actor).do(subject(0), on=actor) for actor in actors]
            async with asyncio.timeout(60):
                outcomes = await asyncio.gather(*binds, return_exceptions=True)
        assert [type(outcome).__name__ for outcome in outcomes].count("CommandResult") == 1

    async def test_nor_does_what_is_read_beside_a_transaction(self, database_url: str) -> None:
        everybody_decides = asyncio.Barrier(4)

        async def read_beside_lock(store: PostgresStore, lock: str, actor: UUID) -> int:
            async with store.session(lock):
                await everybody_decides.wait()
                return len(await store.newer("Actor", {actor: 0}))

        async with runtime_pool(database_url, 4) as pool:
            store = PostgresStore(pool)
            actor = await CommandCaller(store).create(RegisterActor(name="Mira"))
            async with asyncio.timeout(60):
                assert await asyncio.gather(*(read_beside_lock(store, name, actor) for name in "abcd")) == [1] * 4

    async def test_a_task_begun_meanwhile_has_its_own(self, store: PostgresStore, client: CommandCaller) -> None:
        actor = await client.create(RegisterActor(name="Mira"))
        async with store.session(CONTROL_LOCK):
            versions = await asyncio.gather(*(client.versions("Actor", actor) for _ in range(3)))
        assert versions == [[1]] * 3


class TestNamedLocks:
    async def rivals(self, client: CommandCaller, count: int = 2) -> tuple[UUID, list[UUID]]:
        """Visits that have arrived at one surface."""
        surface = await client.create(DefineSurface(name="Endstation A", kind="HTTP"))
        visits = [await client.create(planned_visit(surface)) for _ in range(count)]
        for visit in visits:
            await client.do(RecordVisitArrival(), on=visit)
        return surface, visits

    async def driver(self, client: CommandCaller, surface: UUID) -> UUID | None:
        async with client.store.session() as session:
            found: Any = await session.records(SurfaceControl, {"surface_id": surface})
        return found[0].visit_id if found else None

    async def test_commands_under_one_lock_are_serial(
        self, client: CommandCaller, second_connection: Connection, owner: Connection
    ) -> None:
        """Both wait for the lock before they look, so the second sees what the first wrote."""
        surface, visits = await self.rivals(client)
        await second_connection.execute(LOCK, (CONTROL_LOCK,))
        takes = []
        for number, visit in enumerate(visits, 1):
            takes.append(asyncio.create_task(client.do(TakeControlOfSurface(surface_id=surface), on=visit)))
            await until_waiting(owner, number)
        assert await self.driver(client, surface) is None
        await second_connection.rollback()
        outcomes = await asyncio.gather(*takes, return_exceptions=True)
        won = [visit for visit, outcome in zip(visits, outcomes, strict=True) if isinstance(outcome, CommandResult)]
        lost = [outcome.reason for outcome in outcomes if isinstance(outcome, Refusal)]
        assert (won, lost) == ([await self.driver(client, surface)], ["not_descendant"])

    async def test_a_command_under_a_lock_holds_it_until_its_append_is_committed(
        self, client: CommandCaller, store: PostgresStore, owner: Connection
    ) -> None:
        surface, (visit, _) = await self.rivals(client)
        async with store.session(CONTROL_LOCK):
            take = asyncio.create_task(client.do(TakeControlOfSurface(surface_id=surface), on=visit))
            await until_waiting(owner)
            assert not take.done()
        await take
        assert await self.driver(client, surface) == visit

    async def test_other_commands_do_not_wait_for_it(self, client: CommandCaller, second_connection: Connection) -> None:
        _, (visit, _) = await self.rivals(client)
        await second_connection.execute(LOCK, (CONTROL_LOCK,))
        async with asyncio.timeout(60):
            await client.do(StartVisit(), on=visit)

    async def test_a_refusal_gives_the_lock_back(self, client: CommandCaller) -> None:
        surface, (visit, other) = await self.rivals(client)
        with expect_refusal("VisitCannotCompleteError", "arrived"):
            await client.do(CompleteVisit(), on=visit)
        async with asyncio.timeout(60):
            await client.do(TakeControlOfSurface(surface_id=surface), on=other)

    async def test_a_broken_connection_gives_the_lock_back_and_writes_nothing(
        self, client: CommandCaller, owner: Connection
    ) -> None:
        """The connection breaks after the decision, when the event's id is drawn."""
        surface, (visit, other) = await self.rivals(client)
        ids = iter(ids_after(lambda: terminate_lock_holders(owner)))
        broken = replace(client, new_id=lambda: next(ids))
        with pytest.raises(StoreUnavailableError):
            await broken.do(TakeControlOfSurface(surface_id=surface), on=visit, key="retry-1")
        assert await client.versions("Visit", visit) == [1, 2]
        async with asyncio.timeout(60):
            await client.do(TakeControlOfSurface(surface_id=surface), on=other)
        assert await self.driver(client, surface) == other


def ids_after(event: Callable[[], None]) -> Any:
    """Ids, and something that happens when the first is drawn."""
    event()
    while True:
        yield new_id()


def terminate_lock_holders(owner: Connection) -> None:
    """End every backend that holds an advisory lock, as a crash of its process would, and wait until it is gone."""
    with psycopg.connect(owner.info.dsn, password=owner.info.password, autocommit=True) as connection:
        found = connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert found.fetchall() == [(True,)]
