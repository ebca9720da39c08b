"""What every event store promises, asked of the one in memory and the one on PostgreSQL alike."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.caller import Lease
from baton.application.ports import Batch, Bookmark, CommandResult, FactsRead, KeyClaim, LeaseLostError, Store, StreamAppend
from baton.application.queries import LOG_END, place_of
from baton.domain.access.actor import (
    Actor,
    ActorDeactivated,
    ActorKind,
    ActorProfile,
    ActorProfileUpdated,
    ActorReactivated,
    ActorRegistered,
    ListActors,
    SubjectBinding,
)
from baton.domain.access.proposal_content import ProposalContent
from baton.domain.contexts import REGISTRY
from baton.domain.decision.decision import Inference, ListInferences
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.family import FamilyDefined, ListFamilies
from baton.domain.kernel import Call, Event
from baton.domain.shared.listing import Order, Page, Where
from baton.domain.shared.reads import LatestEvents, TextPart
from baton.domain.shared.refusals import ConcurrencyError, Conflict, IdempotencyClaimLostError, IdempotencyConflictError
from baton.domain.shared.writes import Claim, Delist, Drop, Enlist, Enter, Put, Release
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.visit import ListVisits, VisitArrived, VisitHeld, VisitRegistered, VisitStarted
from baton.domain.trust.zone import ListZones, ZoneDefined
from baton.domain.views.event_log import ListEvents
from baton.infrastructure.postgres.pool import dedicated_connection, runtime_pool
from baton.infrastructure.postgres.projections import Projector
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.store import MemoryStore
from tests.support.domain.world import OPERATOR, new_id

NOW = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BEGINNING = Bookmark(0, 0)


@dataclass
class StoreUnderTest:
    """A store under test, everything it holds, and how its lists catch up with its log."""

    store: Store
    contents: Callable[[], Awaitable[Any]]
    settle: Callable[[], Awaitable[None]]
    announced: list[None]
    begin_term: Callable[[Lease], Awaitable[None]]  # as whoever takes over does

    async def append(self, *appends: StreamAppend, now: datetime = NOW, **parts: Any) -> int | None:
        async with self.store.session() as session:
            return await session.append(batch(*appends, now=now, **parts))

    async def load(self, id: UUID, stream_type: str = "Actor") -> Any:
        async with self.store.session() as session:
            return await session.load(stream_type, [id])

    async def versions(self, id: UUID, stream_type: str = "Actor") -> list[int]:
        return [row.version for row in await self.load(id, stream_type)]

    async def page(self, query: Any) -> Page[Any]:
        async with self.store.session() as session:
            return await session.page(query.summary, query, tuple(query.where()))


@pytest.fixture(params=["memory", "postgres"])
async def tested_store(request: pytest.FixtureRequest) -> AsyncIterator[StoreUnderTest]:
    announced: list[None] = []
    if request.param == "memory":
        memory = MemoryStore(lambda: announced.append(None))

        async def begin(lease: Lease) -> None:
            memory.leases |= [lease]

        yield StoreUnderTest(memory, lambda: contents_in_memory(memory), nothing_to_do, announced, begin)
        return
    url = request.getfixturevalue("database_url")
    async with runtime_pool(url, 8) as pool:
        store = PostgresStore(pool, lambda: announced.append(None))
        yield StoreUnderTest(
            store, lambda: contents_on_postgres(url), lambda: project(url), announced, partial(lease_on_postgres, url)
        )


async def nothing_to_do() -> None:
    """A store whose lists are folded on the spot is always settled."""


async def contents_in_memory(store: MemoryStore) -> Any:
    streams = {key: tuple(rows) for key, rows in store.streams.items()}
    return streams, dict(store.claims), set(store.look_ups), dict(store.rows), dict(store.keys)


async def contents_on_postgres(url: str) -> Any:
    tables = ("events", "claims", "lookups", "idempotency", "access_actor_profile", "access_subject_binding")
    async with await psycopg.AsyncConnection.connect(url) as connection:
        return {
            name: await (await connection.execute(f"SELECT * FROM {name} ORDER BY {name}::text")).fetchall()
            for name in tables
        }


async def lease_on_postgres(url: str, lease: Lease) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        row = "INSERT INTO leases VALUES (%s, %s, 0, now()) ON CONFLICT (lock) DO UPDATE SET term = excluded.term"
        await connection.execute(row, lease)


async def project(url: str) -> None:
    projector = Projector(url)
    async with await dedicated_connection(url, owner=True) as connection:
        while await projector.advance(connection):
            pass


def batch(*appends: StreamAppend, now: datetime = NOW, **parts: Any) -> Batch:
    call = Call(OPERATOR, SYSTEM_HTTP, now, new_id(), new_id())
    return Batch(call, "DoSomething", list(appends), **parts)


def to(id: UUID, after: int, *events: Event, now: datetime = NOW) -> StreamAppend:
    """These events behind version `after` of a stream."""
    return StreamAppend(events[0].aggregate.name, id, after, [(new_id(), event.stamp(id, now)) for event in events])


def actor_registered() -> ActorRegistered:
    return ActorRegistered(kind=ActorKind.HUMAN)


def profile(id: UUID, name: str = "Mira Okafor") -> ActorProfile:
    return ActorProfile(id, name, None, None, None, None, None, created_at=NOW, updated_at=NOW)


def subject_binding(subject: str, actor_id: UUID) -> SubjectBinding:
    return SubjectBinding("https://login.example.org", subject, actor_id, created_at=NOW)


def key_claim(key: str = "retry-1", **changes: Any) -> KeyClaim:
    return replace(KeyClaim(OPERATOR, key, SYSTEM_HTTP, "RegisterActor", "a" * 64, NOW), **changes)


def conflict(what: str = "the name") -> Conflict:
    return Conflict(f"Somebody holds {what} already; choose another.", reason="taken")


class TestStreams:
    async def test_appended_events_come_back_byte_for_byte(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        events = [
            VisitRegistered(
                policy_id=new_id(),
                surface_id=new_id(),
                type="user",
                planned_start_at=NOW,
                planned_end_at=NOW + timedelta(days=2),
                parent_id=None,
                external_refs={"z": 'Müller-Straße "5"', "a": "β-line\n\t\\ 20260417", "empty": ""},
            ),
            VisitArrived(),
            VisitHeld(reason="beam dump \u2028 \x7f 🛑"),
        ]
        written = [event.stamp(id, NOW).payload() for event in events]
        position = await tested_store.append(to(id, 0, *events))
        rows = await tested_store.load(id, "Visit")
        assert [row.payload for row in rows] == written
        assert [(row.stream_id, row.version, row.event_type, row.occurred_at) for row in rows] == [
            (id, 1, "VisitRegistered", NOW),
            (id, 2, "VisitArrived", NOW),
            (id, 3, "VisitHeld", NOW),
        ]
        assert rows[0].position < rows[1].position < rows[2].position == position

    async def test_who_led_once_writes_nothing_any_more(self, tested_store: StoreUnderTest) -> None:
        first, second = Lease(7, 1), Lease(7, 2)
        await tested_store.begin_term(first)
        await tested_store.append(to(id := new_id(), 0, actor_registered()), lease=first)
        await tested_store.begin_term(second)
        before = await tested_store.contents()
        with pytest.raises(LeaseLostError):
            await tested_store.append(to(id, 1, ActorDeactivated(reason="late")), lease=first)
        with pytest.raises(LeaseLostError):
            await tested_store.append(puts=[Put(profile(id))], lease=first)
        assert await tested_store.contents() == before
        await tested_store.append(to(id, 1, ActorDeactivated(reason="in time")), lease=second)
        assert await tested_store.versions(id) == [1, 2]

    async def test_the_envelope_holds_who_what_and_why(self, tested_store: StoreUnderTest) -> None:
        id, cause, approver = new_id(), new_id(), new_id()
        call = Call(OPERATOR, SYSTEM_HTTP, NOW, new_id(), new_id(), causation_id=cause, approved_by=approver)
        append = to(id, 0, actor_registered())
        async with tested_store.store.session() as session:
            await session.append(Batch(call, "RegisterActor", [append]))
            (row,) = await session.history("Actor", id, 0, 10)
        assert (row.event_id, row.principal_id, row.command_name) == (append.events[0][0], OPERATOR, "RegisterActor")
        assert (row.correlation_id, row.causation_id, row.schema_version) == (call.correlation_id, cause, 1)
        assert (row.surface_id, row.approved_by) == (SYSTEM_HTTP, approver)
        assert row.recorded_at.tzinfo is not None

    async def test_what_nobody_had_to_approve_names_no_approver(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()))
        async with tested_store.store.session() as session:
            (row,) = await session.history("Actor", id, 0, 10)
        assert row.approved_by is None

    async def test_versions_are_dense_over_many_appends(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered(), ActorDeactivated()))
        await tested_store.append(to(id, 2, ActorReactivated()))
        await tested_store.append(to(id, 3, ActorDeactivated(), ActorReactivated()))
        assert await tested_store.versions(id) == [1, 2, 3, 4, 5]

    async def test_several_streams_load_together_each_in_order(self, tested_store: StoreUnderTest) -> None:
        first, second, absent = new_id(), new_id(), new_id()
        await tested_store.append(to(second, 0, actor_registered(), ActorDeactivated()))
        await tested_store.append(to(first, 0, actor_registered()))
        async with tested_store.store.session() as session:
            rows = await session.load("Actor", [second, absent, first])
        assert [(row.stream_id, row.version) for row in rows] == [(first, 1), (second, 1), (second, 2)]

    async def test_a_stream_that_is_known_is_loaded_from_the_known_version_on(self, tested_store: StoreUnderTest) -> None:
        """That version itself comes too, so that a reader sees whether it knows the same stream."""
        first, second, ahead = new_id(), new_id(), new_id()
        await tested_store.append(to(first, 0, actor_registered(), ActorDeactivated(), ActorReactivated()))
        await tested_store.append(to(second, 0, actor_registered(), ActorDeactivated()))
        await tested_store.append(to(ahead, 0, actor_registered()))
        async with tested_store.store.session() as session:
            rows = await session.load("Actor", [second, ahead, first], {first: 2, ahead: 5})
        assert [(row.stream_id, row.version) for row in rows] == [(first, 2), (first, 3), (second, 1), (second, 2)]

    async def test_streams_of_different_types_may_share_an_id(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()), to(id, 0, ZoneDefined(name="Hutch")))
        assert await tested_store.versions(id) == await tested_store.versions(id, "Zone") == [1]

    async def test_a_stale_version_loses(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()))
        with pytest.raises(ConcurrencyError) as lost:
            await tested_store.append(to(id, 0, ActorDeactivated()))
        assert lost.value.reason == "version_taken"
        assert await tested_store.versions(id) == [1]

    async def test_a_repeated_event_id_loses(self, tested_store: StoreUnderTest) -> None:
        append = to(new_id(), 0, actor_registered())
        await tested_store.append(append)
        other = new_id()
        repeated = StreamAppend("Actor", other, 0, [(append.events[0][0], actor_registered().stamp(other, NOW))])
        with pytest.raises(ConcurrencyError):
            await tested_store.append(repeated)
        assert await tested_store.versions(other) == []

    async def test_an_append_to_several_streams_is_one_transaction(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        position = await tested_store.append(
            to(first, 0, actor_registered()), to(second, 0, actor_registered(), ActorDeactivated())
        )
        rows = await tested_store.store.follow(BEGINNING, 10)
        assert [(row.stream_id, row.version) for row in rows] == [(first, 1), (second, 1), (second, 2)]
        assert len({row.transaction_id for row in rows}) == 1
        assert rows[-1].position == position

    async def test_an_append_to_several_streams_is_all_or_nothing(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(to(second, 0, actor_registered()))
        before = await tested_store.contents()
        with pytest.raises(ConcurrencyError):
            await tested_store.append(to(first, 0, actor_registered()), to(second, 0, actor_registered()))
        assert await tested_store.contents() == before


class TestAllOrNothing:
    """A batch that is refused for one reason leaves none of its other parts behind."""

    async def write_actor(self, tested_store: StoreUnderTest) -> tuple[UUID, UUID]:
        """An actor with a claim, a look-up, a profile and a binding, and a key in flight."""
        holder, rival = new_id(), new_id()
        await tested_store.append(
            to(holder, 0, actor_registered()),
            claims=[(Claim("name", "gate", conflict()), holder)],
            enlistments=[(Enlist("kind", "human"), holder)],
            puts=[Put(profile(holder)), Put(subject_binding("mira", holder))],
        )
        assert await tested_store.store.claim_key(key_claim(), NOW - SECOND) is None
        return holder, rival

    def batch_parts(self, holder: UUID, rival: UUID, *appends: StreamAppend, **more: Any) -> dict[str, Any]:
        return {
            "claims": [(Claim("name", "door", conflict()), rival), *more.get("claims", ())],
            "releases": [(Release("name", "gate"), holder)] if not more.get("claims") else [],
            "enlistments": [(Enlist("kind", "human"), rival)],
            "delistments": [(Delist("kind", "human"), holder)],
            "puts": [Put(profile(rival, "Rival")), *more.get("puts", ())],
            "drops": [Drop(ActorProfile, {"actor_id": holder})],
            "outcome": (more.get("key", key_claim()), CommandResult(201, {"actor_id": str(rival)}, 0)),
        }

    async def test_when_a_version_is_taken(self, tested_store: StoreUnderTest) -> None:
        holder, rival = await self.write_actor(tested_store)
        before = await tested_store.contents()
        with pytest.raises(ConcurrencyError):
            await tested_store.append(
                to(rival, 0, actor_registered()), to(holder, 0, ActorDeactivated()), **self.batch_parts(holder, rival)
            )
        assert await tested_store.contents() == before

    async def test_when_a_claim_is_held(self, tested_store: StoreUnderTest) -> None:
        holder, rival = await self.write_actor(tested_store)
        refusal = conflict("the gate")
        parts = self.batch_parts(holder, rival, claims=[(Claim("name", "gate", refusal), rival)])
        before = await tested_store.contents()
        with pytest.raises(Conflict) as caught:
            await tested_store.append(to(rival, 0, actor_registered()), **parts)
        assert caught.value is refusal
        assert await tested_store.contents() == before

    async def test_when_a_row_has_a_rival(self, tested_store: StoreUnderTest) -> None:
        holder, rival = await self.write_actor(tested_store)
        refusal = conflict("the subject")
        parts = self.batch_parts(holder, rival, puts=[Put(subject_binding("mira", rival), rival=refusal)])
        before = await tested_store.contents()
        with pytest.raises(Conflict) as caught:
            await tested_store.append(to(rival, 0, actor_registered()), **parts)
        assert caught.value is refusal
        assert await tested_store.contents() == before

    async def test_when_the_key_was_taken_over(self, tested_store: StoreUnderTest) -> None:
        holder, rival = await self.write_actor(tested_store)
        later = key_claim(claimed_at=NOW + 61 * SECOND)
        assert await tested_store.store.claim_key(later, NOW + SECOND) is None
        before = await tested_store.contents()
        with pytest.raises(IdempotencyClaimLostError):
            await tested_store.append(to(rival, 0, actor_registered()), **self.batch_parts(holder, rival))
        assert await tested_store.contents() == before

    async def test_and_the_same_batch_without_a_rival_is_written_whole(self, tested_store: StoreUnderTest) -> None:
        holder, rival = await self.write_actor(tested_store)
        await tested_store.append(to(rival, 0, actor_registered()), **self.batch_parts(holder, rival))
        async with tested_store.store.session() as session:
            assert await session.holders("name", ["gate", "door"]) == {"door": rival}
            assert await session.members("kind", ["human"]) == {"human": (rival,)}
            found: Any = await session.records(ActorProfile, {"actor_id": (holder, rival)})
            assert [row.name for row in found] == ["Rival"]
        replayed = await tested_store.store.claim_key(key_claim(), NOW - SECOND)
        assert replayed is not None
        assert replayed.body == {"actor_id": str(rival)}

    async def test_followers_hear_what_was_written_and_nothing_else(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()))
        assert len(tested_store.announced) == 1
        with pytest.raises(ConcurrencyError):
            await tested_store.append(to(id, 0, actor_registered()))
        await tested_store.load(id)
        assert len(tested_store.announced) == 1


class TestClaims:
    async def test_a_released_key_can_be_claimed_by_another(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(to(first, 0, actor_registered()), claims=[(Claim("name", "gate", conflict()), first)])
        with pytest.raises(Conflict):
            await tested_store.append(
                to(second, 0, actor_registered()), claims=[(Claim("name", "gate", conflict()), second)]
            )
        await tested_store.append(to(first, 1, ActorDeactivated()), releases=[(Release("name", "gate"), first)])
        await tested_store.append(to(second, 0, actor_registered()), claims=[(Claim("name", "gate", conflict()), second)])
        async with tested_store.store.session() as session:
            assert await session.holders("name", ["gate"]) == {"gate": second}

    async def test_nobody_releases_what_another_holds(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(to(first, 0, actor_registered()), claims=[(Claim("name", "gate", conflict()), first)])
        await tested_store.append(to(second, 0, actor_registered()), releases=[(Release("name", "gate"), second)])
        async with tested_store.store.session() as session:
            assert await session.holders("name", ["gate"]) == {"gate": first}

    async def test_the_refusal_is_that_of_the_key_that_is_held(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(
            to(first, 0, actor_registered()), claims=[(Claim("serial", "7 (a, b)", conflict()), first)]
        )
        refusals = {key: conflict(key) for key in ("7", "7 (a, b)", "a, b")}
        claims = [(Claim("serial", key, refusal), second) for key, refusal in refusals.items()]
        with pytest.raises(Conflict) as caught:
            await tested_store.append(to(second, 0, actor_registered()), claims=claims)
        assert caught.value is refusals["7 (a, b)"]

    async def test_the_same_key_of_another_kind_is_free(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(to(first, 0, actor_registered()), claims=[(Claim("name", "gate", conflict()), first)])
        await tested_store.append(to(second, 0, actor_registered()), claims=[(Claim("code", "gate", conflict()), second)])
        async with tested_store.store.session() as session:
            assert await session.holders("name", ["gate", "unclaimed"]) == {"gate": first}
            assert await session.holders("code", ["gate"]) == {"gate": second}
            assert (await session.all_holders("name"), await session.all_holders("unheard")) == ((first,), ())

    async def test_of_many_rivals_for_one_key_one_wins(self, tested_store: StoreUnderTest) -> None:
        ids = [new_id() for _ in range(8)]
        claims = [
            tested_store.append(to(id, 0, actor_registered()), claims=[(Claim("name", "gate", conflict()), id)])
            for id in ids
        ]
        outcomes = await asyncio.gather(*claims, return_exceptions=True)
        winners = [id for id, outcome in zip(ids, outcomes, strict=True) if isinstance(outcome, int)]
        losers = [outcome for outcome in outcomes if not isinstance(outcome, int)]
        assert len(winners) == 1
        assert [getattr(loser, "reason", loser) for loser in losers] == ["taken"] * 7
        async with tested_store.store.session() as session:
            assert await session.holders("name", ["gate"]) == {"gate": winners[0]}
            assert {row.stream_id for row in await session.load("Actor", ids)} == set(winners)


class TestFacts:
    """An append that rests on facts is written while they stand, and not at all when one has changed."""

    async def read(self, tested_store: StoreUnderTest) -> tuple[UUID, FactsRead]:
        """An actor that is enlisted, and what is known of it and of a stream that does not exist."""
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()), enlistments=[(Enlist("kind", "human"), id)])
        return id, FactsRead([("Actor", id, 1), ("Visit", new_id(), 0)], [("kind", ("human", "robot"), (id,))])

    async def refuse(self, tested_store: StoreUnderTest, facts: FactsRead) -> None:
        before, rival = await tested_store.contents(), new_id()
        enlistments = [(Enlist("kind", "dog"), rival)]
        with pytest.raises(ConcurrencyError) as refused:
            await tested_store.append(to(rival, 0, actor_registered()), enlistments=enlistments, facts=facts)
        assert refused.value.reason == "facts_changed"
        assert await tested_store.contents() == before

    async def test_what_still_stands_lets_pass(self, tested_store: StoreUnderTest) -> None:
        id, facts = await self.read(tested_store)
        await tested_store.append(to(new_id(), 0, actor_registered()), facts=facts)
        await tested_store.append(to(id, 1, ActorDeactivated()), facts=facts)
        assert await tested_store.versions(id) == [1, 2]

    async def test_a_stream_that_moved_refuses(self, tested_store: StoreUnderTest) -> None:
        id, facts = await self.read(tested_store)
        await tested_store.append(to(id, 1, ActorDeactivated()))
        await self.refuse(tested_store, facts)

    async def test_a_stream_that_came_to_be_refuses(self, tested_store: StoreUnderTest) -> None:
        _, facts = await self.read(tested_store)
        absent = facts.streams[1][1]
        await tested_store.append(to(absent, 0, VisitStarted()))
        await self.refuse(tested_store, facts)

    @pytest.mark.parametrize("key", ["human", "robot"])
    async def test_another_stream_under_a_key_refuses(self, tested_store: StoreUnderTest, key: str) -> None:
        _, facts = await self.read(tested_store)
        other = new_id()
        await tested_store.append(to(other, 0, actor_registered()), enlistments=[(Enlist("kind", key), other)])
        await self.refuse(tested_store, facts)

    async def test_a_stream_that_left_its_key_refuses(self, tested_store: StoreUnderTest) -> None:
        id, facts = await self.read(tested_store)
        await tested_store.append(delistments=[(Delist("kind", "human"), id)])
        await self.refuse(tested_store, facts)


class TestLookUps:
    async def test_enlisted_streams_are_found_in_ascending_order(self, tested_store: StoreUnderTest) -> None:
        ids = [new_id() for _ in range(3)]
        for id in reversed(ids):
            await tested_store.append(to(id, 0, actor_registered()), enlistments=[(Enlist("policy-of", "http"), id)])
        async with tested_store.store.session() as session:
            assert await session.members("policy-of", ["http"]) == {"http": tuple(ids)}
            assert await session.members("policy-of", ["mcp"]) == {}
            assert await session.members("supply-of", ["http"]) == {}

    async def test_several_keys_are_looked_up_at_once_and_each_has_its_streams(self, tested_store: StoreUnderTest) -> None:
        first, second, other = sorted(new_id() for _ in range(3))
        places = [(second, "a"), (second, "b"), (first, "b"), (other, "c")]
        enlistments = [(Enlist("kind", key), id) for id, key in places]
        await tested_store.append(*(to(id, 0, actor_registered()) for id in (first, second, other)), enlistments=enlistments)
        async with tested_store.store.session() as session:
            assert await session.members("kind", ["b", "a", "b", "unheard"]) == {"a": (second,), "b": (first, second)}
            assert await session.members("kind", []) == {}
            assert await session.all_members("kind") == (first, second, other)
            assert await session.all_members("unheard") == ()

    async def test_what_is_below_a_stream_is_found_level_by_level(self, tested_store: StoreUnderTest) -> None:
        root, first, second, third, elsewhere = sorted(new_id() for _ in range(5))
        below = {first: root, second: root, third: second, elsewhere: new_id()}
        enlistments = [(Enlist("child", str(parent)), id) for id, parent in below.items()]
        enlistments.append((Enlist("other", str(root)), elsewhere))
        await tested_store.append(*(to(id, 0, actor_registered()) for id in below), enlistments=enlistments)
        async with tested_store.store.session() as session:
            assert await session.descendants("child", root, 50) == ((first, second), (third,))
            assert await session.descendants("child", root, 1) == ((first, second),)
            assert await session.descendants("child", third, 50) == ()

    async def test_enlisting_twice_is_enlisting_once(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()), enlistments=[(Enlist("kind", "k"), id)])
        await tested_store.append(to(id, 1, ActorDeactivated()), enlistments=[(Enlist("kind", "k"), id)])
        async with tested_store.store.session() as session:
            assert await session.members("kind", ["k"]) == {"k": (id,)}

    async def test_delisting_takes_out_one_stream_from_one_key(self, tested_store: StoreUnderTest) -> None:
        stays, goes = new_id(), new_id()
        both = [(Enlist("kind", key), id) for key in ("a", "b") for id in (stays, goes)]
        await tested_store.append(to(stays, 0, actor_registered()), to(goes, 0, actor_registered()), enlistments=both)
        await tested_store.append(to(goes, 1, ActorDeactivated()), delistments=[(Delist("kind", "a"), goes)])
        async with tested_store.store.session() as session:
            assert await session.members("kind", ["a", "b"]) == {"a": (stays,), "b": tuple(sorted((stays, goes)))}


class TestRecords:
    async def test_a_put_row_comes_back_as_its_record(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        whole = ActorProfile(id, "Mira", "m@example.org", None, "Institut für Physik", "0000-1", "orcid", NOW, NOW + SECOND)
        await tested_store.append(to(id, 0, actor_registered()), puts=[Put(whole)])
        async with tested_store.store.session() as session:
            assert await session.records(ActorProfile, {"actor_id": id}) == (whole,)
            assert await session.records(ActorProfile, {"actor_id": new_id()}) == ()

    async def test_a_row_of_documents_comes_back_as_it_was(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        opened = ProposalContent(id, None, {"name": "Hütte", "limits": [1, 2.5, None]}, [{"stream": "Zone", "payload": {}}])
        closed = replace(opened, request=None, refusal={"code": "ZoneNotFoundError", "reason": None})
        for number, content in enumerate((opened, closed)):
            event = actor_registered() if number == 0 else ActorDeactivated()
            await tested_store.append(to(id, number, event), puts=[Put(content)])
            async with tested_store.store.session() as session:
                assert await session.records(ProposalContent, {"proposal_id": id}) == (content,)

    async def test_putting_again_replaces(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()), puts=[Put(profile(id, "Old"))])
        update = to(id, 1, ActorProfileUpdated(updated_fields=("name",)))
        await tested_store.append(update, puts=[Put(profile(id, "New"))])
        async with tested_store.store.session() as session:
            assert await session.records(ActorProfile, {"actor_id": id}) == (profile(id, "New"),)

    async def test_a_rival_refuses_only_where_the_row_exists(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(
            to(first, 0, actor_registered()), puts=[Put(subject_binding("mira", first), rival=conflict())]
        )
        with pytest.raises(Conflict) as caught:
            await tested_store.append(
                to(second, 0, actor_registered()), puts=[Put(subject_binding("mira", second), rival=conflict("mira"))]
            )
        assert "mira" in caught.value.detail
        await tested_store.append(
            to(second, 0, actor_registered()), puts=[Put(subject_binding("noor", second), rival=conflict())]
        )
        async with tested_store.store.session() as session:
            rows: Any = await session.records(SubjectBinding, {"actor_id": (first, second)})
        assert [(row.subject, row.actor_id) for row in rows] == [("mira", first), ("noor", second)]

    async def test_rows_are_found_by_every_condition_together(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        rows = [subject_binding("a", first), subject_binding("b", first), subject_binding("c", second)]
        await tested_store.append(
            to(first, 0, actor_registered()), to(second, 0, actor_registered()), puts=[Put(row) for row in reversed(rows)]
        )
        async with tested_store.store.session() as session:
            assert await session.records(SubjectBinding, {"actor_id": first, "subject": "b"}) == (rows[1],)
            assert await session.records(SubjectBinding, {"subject": ("c", "a", "z")}) == (rows[0], rows[2])
            assert await session.records(SubjectBinding, {"subject": ()}) == ()
            assert await session.records(SubjectBinding, {"subject": TextPart("B")}) == (rows[1],)
            assert await session.records(SubjectBinding, {"subject": TextPart("%")}) == ()
            assert await session.records(SubjectBinding, {"actor_id": second, "subject": "b"}) == ()

    async def test_dropping_deletes_every_row_that_matches(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        rows = [subject_binding("a", first), subject_binding("b", first), subject_binding("c", second)]
        profiles = [profile(first), profile(second)]
        await tested_store.append(
            to(first, 0, actor_registered()),
            to(second, 0, actor_registered()),
            puts=[Put(row) for row in (*rows, *profiles)],
        )
        forgotten = {"actor_id": first}
        await tested_store.append(
            to(first, 1, ActorDeactivated()), drops=[Drop(SubjectBinding, forgotten), Drop(ActorProfile, forgotten)]
        )
        async with tested_store.store.session() as session:
            assert await session.records(SubjectBinding, {"actor_id": (first, second)}) == (rows[2],)
            assert await session.records(ActorProfile, {"actor_id": (first, second)}) == (profiles[1],)


class TestThePast:
    async def life(self, tested_store: StoreUnderTest) -> UUID:
        """Three versions, the third dated before the second: clocks of two processes differ."""
        id = new_id()
        for after, (event, seconds) in enumerate(
            [(actor_registered(), 10), (ActorDeactivated(), 20), (ActorReactivated(), 15)]
        ):
            time = NOW + seconds * SECOND
            await tested_store.append(to(id, after, event, now=time), now=time)
        return id

    @pytest.mark.parametrize(("version", "seen"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (9, [1, 2, 3])])
    async def test_by_version(self, tested_store: StoreUnderTest, version: int, seen: list[int]) -> None:
        id = await self.life(tested_store)
        async with tested_store.store.session() as session:
            rows = await session.load_past("Actor", id, None, version)
        assert [row.version for row in rows] == seen

    @pytest.mark.parametrize(("seconds", "seen"), [(9, []), (10, [1]), (14, [1]), (15, [1, 2, 3]), (99, [1, 2, 3])])
    async def test_by_time_up_to_the_highest_version_that_had_occurred(
        self, tested_store: StoreUnderTest, seconds: int, seen: list[int]
    ) -> None:
        id = await self.life(tested_store)
        async with tested_store.store.session() as session:
            rows = await session.load_past("Actor", id, NOW + seconds * SECOND, None)
        assert [row.version for row in rows] == seen

    async def test_a_stream_that_never_began_has_no_past(self, tested_store: StoreUnderTest) -> None:
        async with tested_store.store.session() as session:
            assert not await session.load_past("Actor", new_id(), NOW, None)
            assert not await session.load_past("Actor", new_id(), None, 1)

    @pytest.mark.parametrize(
        ("past", "seen"),
        [
            ({}, [3, 2]),
            ({"as_of_version": 2}, [2, 1]),
            ({"as_of": NOW + 14 * SECOND}, [1]),
            ({"as_of": NOW + 15 * SECOND}, [3, 2]),
            ({"as_of": NOW}, []),
        ],
    )
    async def test_the_last_of_some_types_come_newest_first(
        self, tested_store: StoreUnderTest, past: dict[str, Any], seen: list[int]
    ) -> None:
        id = await self.life(tested_store)
        types = (ActorRegistered, ActorDeactivated, ActorReactivated)
        async with tested_store.store.session() as session:
            rows = await session.load_latest(LatestEvents(Actor, id, types, 2, **past))
            others = await session.load_latest(LatestEvents(Actor, id, types[:2], 9, **past))
        assert [row.version for row in rows] == seen
        assert 3 not in [row.version for row in others]

    async def test_history_pages_by_version(self, tested_store: StoreUnderTest) -> None:
        id = await self.life(tested_store)
        async with tested_store.store.session() as session:
            first = await session.history("Actor", id, 0, 2)
            second = await session.history("Actor", id, first[-1].version, 2)
            end = await session.history("Actor", id, second[-1].version, 2)
        assert [[row.version for row in rows] for rows in (first, second, end)] == [[1, 2], [3], []]
        assert first[0].event_type == "ActorRegistered"


class TestNewer:
    async def test_only_what_is_behind_the_known_versions(self, tested_store: StoreUnderTest) -> None:
        first, second = new_id(), new_id()
        await tested_store.append(to(first, 0, actor_registered(), ActorDeactivated(), ActorReactivated()))
        await tested_store.append(to(second, 0, actor_registered()))
        rows = await tested_store.store.newer("Actor", {first: 1, second: 1, new_id(): 0})
        assert [(row.stream_id, row.version) for row in rows] == [(first, 2), (first, 3)]
        assert not await tested_store.store.newer("Actor", {first: 3, second: 1})
        assert not await tested_store.store.newer("Actor", {})

    async def test_all_of_streams_that_were_enlisted_meanwhile(self, tested_store: StoreUnderTest) -> None:
        known, fresh, elsewhere = sorted(new_id() for _ in range(3))
        for id, key in ((known, "http"), (fresh, "http"), (elsewhere, "mcp")):
            await tested_store.append(
                to(id, 0, actor_registered(), ActorDeactivated()), enlistments=[(Enlist("policy-of", key), id)]
            )
        rows = await tested_store.store.newer("Actor", {known: 1}, ("policy-of", "http"))
        assert [(row.stream_id, row.version) for row in rows] == [(known, 2), (fresh, 1), (fresh, 2)]

    async def test_only_streams_of_the_type_asked_for(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        await tested_store.append(to(id, 0, actor_registered()), to(id, 0, ZoneDefined(name="Hutch")))
        assert [row.event_type for row in await tested_store.store.newer("Zone", {id: 0})] == ["ZoneDefined"]


class TestIdempotencyKeys:
    """The table of idempotency, row by row; the lock is stale after sixty seconds."""

    stale = NOW - 60 * SECOND

    async def finish_request(self, tested_store: StoreUnderTest, claim: KeyClaim) -> CommandResult:
        """A claimed key whose request created something."""
        assert await tested_store.store.claim_key(claim, self.stale) is None
        id = new_id()
        executed = CommandResult(201, {"actor_id": str(id), "nested": {"value": 25.0, "none": None}}, 0)
        position = await tested_store.append(to(id, 0, actor_registered()), outcome=(claim, executed))
        assert position is not None
        return replace(executed, position=position)

    async def test_first_use_claims_the_key(self, tested_store: StoreUnderTest) -> None:
        assert await tested_store.store.claim_key(key_claim(), self.stale) is None

    async def test_a_finished_request_is_replayed_with_its_position(self, tested_store: StoreUnderTest) -> None:
        executed = await self.finish_request(tested_store, key_claim())
        for _ in range(2):
            again = key_claim(claimed_at=NOW + SECOND)
            assert await tested_store.store.claim_key(again, self.stale) == replace(executed, replayed=True)

    async def test_a_request_that_wrote_no_event_is_replayed_too(self, tested_store: StoreUnderTest) -> None:
        claim, executed = key_claim(), CommandResult(204, None, 17)
        await tested_store.store.claim_key(claim, self.stale)
        assert await tested_store.append(outcome=(claim, executed)) is None
        assert await tested_store.store.claim_key(claim, self.stale) == replace(executed, replayed=True)

    async def test_another_request_under_a_finished_key_conflicts(self, tested_store: StoreUnderTest) -> None:
        await self.finish_request(tested_store, key_claim())
        with pytest.raises(IdempotencyConflictError) as refused:
            await tested_store.store.claim_key(key_claim(fingerprint="b" * 64), self.stale)
        assert refused.value.status == 422

    @pytest.mark.parametrize("fingerprint", ["a" * 64, "b" * 64])
    async def test_a_key_in_flight_is_lost_whatever_the_request(
        self, tested_store: StoreUnderTest, fingerprint: str
    ) -> None:
        await tested_store.store.claim_key(key_claim(), self.stale)
        with pytest.raises(IdempotencyClaimLostError) as refused:
            await tested_store.store.claim_key(key_claim(fingerprint=fingerprint, claimed_at=NOW + SECOND), self.stale)
        assert refused.value.status == 409

    async def test_of_many_claims_at_once_one_gets_the_key(self, tested_store: StoreUnderTest) -> None:
        claims = [
            tested_store.store.claim_key(key_claim(claimed_at=NOW + number * SECOND), self.stale) for number in range(8)
        ]
        outcomes = await asyncio.gather(*claims, return_exceptions=True)
        assert sum(outcome is None for outcome in outcomes) == 1
        assert sum(isinstance(outcome, IdempotencyClaimLostError) for outcome in outcomes) == 7

    async def test_a_released_key_is_free_for_any_request(self, tested_store: StoreUnderTest) -> None:
        await tested_store.store.claim_key(key_claim(), self.stale)
        await tested_store.store.release_key(key_claim())
        assert await tested_store.store.claim_key(key_claim(fingerprint="b" * 64), self.stale) is None

    async def test_releasing_does_not_forget_a_finished_request(self, tested_store: StoreUnderTest) -> None:
        executed = await self.finish_request(tested_store, key_claim())
        await tested_store.store.release_key(key_claim())
        assert await tested_store.store.claim_key(key_claim(), self.stale) == replace(executed, replayed=True)

    async def test_the_same_key_of_another_principal_or_surface_is_independent(self, tested_store: StoreUnderTest) -> None:
        await self.finish_request(tested_store, key_claim())
        assert await tested_store.store.claim_key(key_claim(principal_id=new_id()), self.stale) is None
        assert await tested_store.store.claim_key(key_claim(surface_id=new_id()), self.stale) is None
        assert await tested_store.store.claim_key(key_claim("another"), self.stale) is None

    async def test_a_stale_lock_is_taken_over_by_any_request(self, tested_store: StoreUnderTest) -> None:
        await tested_store.store.claim_key(key_claim(), self.stale)
        with pytest.raises(IdempotencyClaimLostError):
            await tested_store.store.claim_key(key_claim(claimed_at=NOW + 60 * SECOND), NOW)
        later = key_claim(claimed_at=NOW + 61 * SECOND, fingerprint="b" * 64)
        assert await tested_store.store.claim_key(later, NOW + SECOND) is None
        with pytest.raises(IdempotencyClaimLostError):
            await tested_store.store.claim_key(key_claim(claimed_at=NOW + 62 * SECOND), NOW + 2 * SECOND)

    async def test_a_finished_request_never_goes_stale(self, tested_store: StoreUnderTest) -> None:
        executed = await self.finish_request(tested_store, key_claim())
        much_later = key_claim(claimed_at=NOW + timedelta(days=1))
        assert await tested_store.store.claim_key(much_later, NOW + timedelta(hours=23)) == replace(executed, replayed=True)

    async def test_a_request_that_was_taken_over_can_neither_finish_nor_release(self, tested_store: StoreUnderTest) -> None:
        slow, quick, id = key_claim(), key_claim(claimed_at=NOW + 61 * SECOND), new_id()
        await tested_store.store.claim_key(slow, self.stale)
        await tested_store.store.claim_key(quick, NOW + SECOND)
        done = CommandResult(201, {"actor_id": str(id)}, 0)
        with pytest.raises(IdempotencyClaimLostError):
            await tested_store.append(to(id, 0, actor_registered()), outcome=(slow, done))
        await tested_store.store.release_key(slow)
        assert await tested_store.versions(id) == []
        await tested_store.append(to(id, 0, actor_registered()), outcome=(quick, done))
        with pytest.raises(IdempotencyClaimLostError):
            await tested_store.append(to(new_id(), 0, actor_registered()), outcome=(slow, done))
        replayed = await tested_store.store.claim_key(slow, self.stale)
        assert replayed is not None
        assert replayed.body == done.body


class TestFollowing:
    async def test_the_log_is_followed_in_commit_order_without_gap_or_repeat(self, tested_store: StoreUnderTest) -> None:
        ids = [new_id() for _ in range(7)]
        for id in ids:
            await tested_store.append(to(id, 0, actor_registered(), ActorDeactivated()))
        seen, bookmark = [], BEGINNING
        while rows := await tested_store.store.follow(bookmark, 3):
            assert len(rows) <= 3
            seen += rows
            bookmark = Bookmark(rows[-1].transaction_id, rows[-1].position)
        assert [(row.stream_id, row.version) for row in seen] == [(id, version) for id in ids for version in (1, 2)]
        assert seen == sorted(seen, key=lambda row: (row.transaction_id, row.position))

    async def test_a_position_resolves_to_its_bookmark(self, tested_store: StoreUnderTest) -> None:
        first = await tested_store.append(to(new_id(), 0, actor_registered()))
        last = await tested_store.append(to(new_id(), 0, actor_registered()))
        assert first is not None
        assert last is not None
        bookmark = await tested_store.store.locate(first)
        assert bookmark is not None
        assert [row.position for row in await tested_store.store.follow(bookmark, 10)] == [last]
        assert await tested_store.store.locate(last + 1) == await tested_store.store.locate(last)
        assert await tested_store.store.locate(0) is None

    async def test_the_projections_pass_what_they_have_shown(self, tested_store: StoreUnderTest) -> None:
        position = await tested_store.append(to(new_id(), 0, actor_registered()))
        assert position is not None
        await tested_store.settle()
        assert await tested_store.store.has_passed("projections", position)
        assert not await tested_store.store.has_passed("projections", position + 1)

    async def test_an_open_transaction_holds_followers_back_until_it_ends(self, tested_store: StoreUnderTest) -> None:
        held, free = new_id(), new_id()
        async with tested_store.store.session("gate") as session:
            await session.append(batch(to(held, 0, actor_registered())))
            await tested_store.append(to(free, 0, actor_registered()))
            assert not await tested_store.store.follow(BEGINNING, 10)
            assert await tested_store.versions(held) == []
            assert await tested_store.versions(free) == [1]
        assert [row.stream_id for row in await tested_store.store.follow(BEGINNING, 10)] == [held, free]

    async def test_an_open_transaction_that_fails_leaves_the_others(self, tested_store: StoreUnderTest) -> None:
        held, free = new_id(), new_id()

        async def interrupt() -> None:
            async with tested_store.store.session("gate") as session:
                await session.append(batch(to(held, 0, actor_registered())))
                await tested_store.append(to(free, 0, actor_registered()))
                raise InterruptedError

        with pytest.raises(InterruptedError):
            await interrupt()
        assert [row.stream_id for row in await tested_store.store.follow(BEGINNING, 10)] == [free]

    async def test_only_what_concerns_the_reader_comes_and_where_it_ends(self, tested_store: StoreUnderTest) -> None:
        ids = [new_id() for _ in range(4)]
        async with tested_store.store.session() as session:
            for id in ids:
                await session.append(batch(to(id, 0, actor_registered())))
            await session.append(batch(to(ids[1], 1, ActorDeactivated())))
            await session.append(batch(to(ids[2], 1, ActorDeactivated())))
            await session.append(batch(to(ids[2], 2, ActorReactivated())))
        everything = await tested_store.store.follow(BEGINNING, 100)
        some = await tested_store.store.follow(BEGINNING, 100, ["ActorDeactivated"])
        assert [(row.event_type, row.stream_id) for row in some] == [
            ("ActorDeactivated", ids[1]),
            ("ActorDeactivated", ids[2]),
            ("ActorReactivated", ids[2]),
        ]
        assert some[-1] == everything[-1], "a follower that goes on from there passes over nothing and reads nothing twice"
        assert await tested_store.store.follow(BEGINNING, 3, ["ActorDeactivated"]) == [everything[2]]
        assert not await tested_store.store.follow(
            Bookmark(some[-1].transaction_id, some[-1].position), 100, ["ActorDeactivated"]
        )

    async def test_an_event_is_found_by_its_id(self, tested_store: StoreUnderTest) -> None:
        async with tested_store.store.session() as session:
            await session.append(batch(to(new_id(), 0, actor_registered())))
        (row,) = await tested_store.store.follow(BEGINNING, 10)
        assert await tested_store.store.event(row.event_id) == row
        assert await tested_store.store.event(new_id()) is None

    async def test_the_end_is_where_followers_stop_and_what_is_in_flight_comes_behind_it(
        self, tested_store: StoreUnderTest
    ) -> None:
        assert (await tested_store.store.end(), await tested_store.store.last_position()) == (BEGINNING, 0)
        await tested_store.append(to(new_id(), 0, actor_registered(), ActorDeactivated()))
        *_, last = await tested_store.store.follow(BEGINNING, 10)
        end = Bookmark(last.transaction_id, last.position)
        assert await tested_store.store.end() == end
        held, free = new_id(), new_id()
        async with tested_store.store.session("gate") as session:
            await session.append(batch(to(held, 0, actor_registered())))
            await tested_store.append(to(free, 0, actor_registered()))
            assert await tested_store.store.end() == end
            committed = await tested_store.store.last_position()
        rows = await tested_store.store.follow(end, 10)
        assert [row.stream_id for row in rows] == [held, free]
        assert rows[-1].position == committed, "what is committed counts although followers cannot see it yet"

    async def test_the_log_is_read_backwards_without_what_is_in_flight(self, tested_store: StoreUnderTest) -> None:
        for _ in range(3):
            await tested_store.append(to(new_id(), 0, actor_registered(), ActorDeactivated()))
        forwards = list(await tested_store.store.follow(BEGINNING, 10))
        async with tested_store.store.session("gate") as session:
            await session.append(batch(to(new_id(), 0, actor_registered())))
            await tested_store.append(to(new_id(), 0, actor_registered()))
            backwards, bookmark = list[Any](), LOG_END
            while rows := await tested_store.store.search(ListEvents(order=Order.DESC), bookmark, 4):
                backwards += rows
                bookmark = place_of(rows[-1])
        assert backwards == forwards[::-1]

    async def test_the_log_is_searched_by_who_called_and_by_time(self, tested_store: StoreUnderTest) -> None:
        await tested_store.append(to(new_id(), 0, actor_registered(), ActorDeactivated()))
        store, rows = tested_store.store, list(await tested_store.store.follow(BEGINNING, 10))
        assert list(await store.search(ListEvents(principal_id=rows[0].principal_id), BEGINNING, 10)) == rows
        for nobody in ({"principal_id": new_id()}, {"correlation_id": new_id()}, {"asset_id": new_id()}):
            assert not await store.search(ListEvents.model_validate(nobody), BEGINNING, 10)
        assert await store.at_time(rows[0].recorded_at) == place_of(rows[0])
        assert await store.at_time(rows[-1].recorded_at + timedelta(days=1)) is None

    async def test_what_is_ahead_is_told_by_id(self, tested_store: StoreUnderTest) -> None:
        ids = [new_id() for _ in range(3)]
        for id in ids:
            await tested_store.append(to(id, 0, actor_registered(), ActorDeactivated()))
        rows = await tested_store.store.follow(BEGINNING, 10)
        wanted = [row for row in rows if row.event_type == "ActorDeactivated"]
        assert await tested_store.store.ahead(BEGINNING, ["ActorDeactivated"], 10) == [row.event_id for row in wanted]
        assert await tested_store.store.ahead(BEGINNING, ["ActorDeactivated"], 1) == [wanted[0].event_id]
        assert await tested_store.store.ahead(BEGINNING, ["ActorReactivated"], 10) == []
        first = Bookmark(wanted[0].transaction_id, wanted[0].position)
        async with tested_store.store.session("gate") as session:
            await session.append(batch(to(new_id(), 0, actor_registered())))
            await tested_store.append(to(ids[0], 2, ActorReactivated(), ActorDeactivated()))
            assert await tested_store.store.ahead(first, ["ActorDeactivated"], 10) == [row.event_id for row in wanted[1:]]
        assert len(await tested_store.store.ahead(first, ["ActorDeactivated"], 10)) == 3


class TestNamedLocks:
    async def test_a_session_that_fails_after_its_append_wrote_nothing(self, tested_store: StoreUnderTest) -> None:
        id = new_id()
        before = await tested_store.contents()

        async def interrupt() -> None:
            async with tested_store.store.session("gate") as session:
                await session.append(batch(to(id, 0, actor_registered()), puts=[Put(profile(id))]))
                raise InterruptedError

        with pytest.raises(InterruptedError):
            await interrupt()
        assert await tested_store.contents() == before
        assert tested_store.announced == []

    async def test_sessions_under_one_lock_are_serial(self, tested_store: StoreUnderTest) -> None:
        id, order = new_id(), []

        async def add(name: str, entered: asyncio.Event, go_on: asyncio.Event) -> None:
            async with tested_store.store.session("gate") as session:
                order.append(f"{name} enters")
                entered.set()
                await go_on.wait()
                after = len(await session.load("Actor", [id]))
                await session.append(batch(to(id, after, ActorDeactivated() if after else actor_registered())))
                order.append(f"{name} leaves")

        first_entered, second_entered, go_on, at_once = (asyncio.Event() for _ in range(4))
        at_once.set()
        first = asyncio.create_task(add("first", first_entered, go_on))
        await first_entered.wait()
        second = asyncio.create_task(add("second", second_entered, at_once))
        async with tested_store.store.session("another"):
            assert order == ["first enters"]
        go_on.set()
        await asyncio.gather(first, second)
        assert order == ["first enters", "first leaves", "second enters", "second leaves"]
        assert await tested_store.versions(id) == [1, 2]

    async def test_a_lock_is_free_after_a_failure(self, tested_store: StoreUnderTest) -> None:
        with pytest.raises(InterruptedError):
            async with tested_store.store.session("gate"):
                raise InterruptedError
        async with asyncio.timeout(60), tested_store.store.session("gate"):
            pass


class TestLists:
    async def actors(self, tested_store: StoreUnderTest) -> list[UUID]:
        """Five actors a second apart, the last two at the same moment; the second is deactivated."""
        ids = sorted(new_id() for _ in range(5))
        for id, seconds in zip(ids, (0, 1, 2, 3, 3), strict=True):
            time = NOW + seconds * SECOND
            kind = ActorKind.SERVICE_ACCOUNT if id == ids[0] else ActorKind.HUMAN
            await tested_store.append(to(id, 0, ActorRegistered(kind=kind), now=time), now=time)
        await tested_store.append(to(ids[1], 1, ActorDeactivated()))
        await tested_store.settle()
        return ids

    async def visits(self, tested_store: StoreUnderTest) -> list[UUID]:
        ids = [new_id() for _ in range(3)]
        for number, id in enumerate(ids):
            begun = NOW + timedelta(days=number)
            event = VisitRegistered(
                policy_id=id,
                surface_id=ids[0],
                type=("user", "staff", "maintenance")[number],
                planned_start_at=begun,
                planned_end_at=begun + timedelta(hours=8),
                parent_id=ids[0] if number else None,
                external_refs={"proposal": f"P{number}", "cycle": "2026-2"},
            )
            await tested_store.append(to(id, 0, event, now=begun), now=begun)
        await tested_store.append(to(ids[2], 1, VisitArrived(), VisitStarted()))
        await tested_store.settle()
        return ids

    @pytest.mark.parametrize("order", ["asc", "desc"])
    @pytest.mark.parametrize("limit", [1, 2, 4, 5, 6])
    async def test_pages_cover_everything_once_in_order(self, tested_store: StoreUnderTest, order: str, limit: int) -> None:
        ids = await self.actors(tested_store)
        found, cursor = [], None
        while True:
            page = await tested_store.page(ListActors(order=order, limit=limit, cursor=cursor))
            assert len(page.items) <= limit
            found += [row.actor_id for row in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert found == (ids if order == "asc" else ids[::-1])

    async def test_a_listed_row_shows_the_state(self, tested_store: StoreUnderTest) -> None:
        ids = await self.actors(tested_store)
        (row,) = (await tested_store.page(ListActors(status="deactivated"))).items
        assert (row.actor_id, row.kind, row.status, row.created_at) == (ids[1], "human", "deactivated", NOW + SECOND)

    async def test_filters_hold_together(self, tested_store: StoreUnderTest) -> None:
        ids = await self.actors(tested_store)
        active_people = ListActors(status="active", kind=("human", "agent"), actor_id=(ids[0], ids[1], ids[3]))
        assert [row.actor_id for row in (await tested_store.page(active_people)).items] == [ids[3]]

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            ({}, [0, 1, 2]),
            ({"status": "InProgress"}, [2]),
            ({"type": ("user", "maintenance")}, [0, 2]),
            ({"external_ref_scheme": "proposal", "external_ref_value": "P1"}, [1]),
            ({"external_ref_scheme": "cycle", "external_ref_value": "2026-2"}, [0, 1, 2]),
            ({"external_ref_scheme": "proposal", "external_ref_value": "2026-2"}, []),
            ({"planned_from": NOW + timedelta(hours=8)}, [0, 1, 2]),
            ({"planned_from": NOW + timedelta(hours=9)}, [1, 2]),
            ({"planned_to": NOW + timedelta(days=1)}, [0, 1]),
            ({"planned_from": NOW + timedelta(hours=9), "planned_to": NOW + timedelta(days=1)}, [1]),
        ],
    )
    async def test_each_kind_of_condition(
        self, tested_store: StoreUnderTest, filters: dict[str, Any], found: list[int]
    ) -> None:
        ids = await self.visits(tested_store)
        page = await tested_store.page(ListVisits(**filters))
        assert [row.visit_id for row in page.items] == [ids[number] for number in found]

    async def test_an_optional_column_is_filtered_by_equality(self, tested_store: StoreUnderTest) -> None:
        ids = await self.visits(tested_store)
        page = await tested_store.page(ListVisits(parent_id=ids[0]))
        assert [row.visit_id for row in page.items] == ids[1:]

    @pytest.mark.parametrize(("seconds", "found"), [(-1, [0, 1, 2]), (0, [0, 1])])
    async def test_a_time_is_after_another_or_there_is_none(
        self, tested_store: StoreUnderTest, seconds: int, found: list[int]
    ) -> None:
        ids = await self.visits(tested_store)
        after = Where("arrived_at", "after_or_null", NOW + seconds * SECOND)
        assert [row.visit_id for row in await self.list_items(tested_store, ListVisits(), after)] == [
            ids[number] for number in found
        ]

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [("Rotatable", [0]), ("Rotatable Limitable", [0, 1]), ("Homeable", [0, 1]), ("Marking Imageable", []), ("", [])],
    )
    async def test_a_set_has_any_of_some_values(self, tested_store: StoreUnderTest, wanted: str, found: list[int]) -> None:
        families = [["Rotatable", "Homeable"], ["Homeable", "Limitable"], []]
        ids = [new_id() for _ in families]
        for number, (id, affordances) in enumerate(zip(ids, families, strict=True)):
            time = NOW + number * SECOND
            event = FamilyDefined(name=f"Family {number}", affordances=affordances, settings_schema=None)
            await tested_store.append(to(id, 0, event, now=time), now=time)
        await tested_store.settle()
        any_of = Where("affordances", "has_any", tuple(map(Affordance, wanted.split())))
        assert [row.family_id for row in await self.list_items(tested_store, ListFamilies(), any_of)] == [
            ids[n] for n in found
        ]

    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            ({"name": "Hutch B"}, [0]),
            ({"name": "hutch b"}, []),
            ({"q": "HUTCH"}, [0, 1]),
            ({"q": "Ärm"}, [2]),
            ({"q": "100%_"}, [2]),
            ({"q": "h%b"}, []),
            ({"q": "h_tch"}, []),
            ({"q": "\\"}, [1]),
            ({"q": "h", "name": "Hutch B"}, [0]),
            ({"created_from": NOW + SECOND}, [1, 2]),
            ({"created_to": NOW + SECOND}, [0]),
            ({"created_from": NOW + SECOND, "created_to": NOW + 2 * SECOND}, [1]),
        ],
    )
    async def test_things_are_found_by_name_and_time(
        self, tested_store: StoreUnderTest, asked: dict[str, Any], found: list[int]
    ) -> None:
        ids = [new_id() for _ in range(3)]
        for number, name in enumerate(["Hutch B", "hutch \\ C", "Nachtwärme 100%_"]):
            time = NOW + number * SECOND
            await tested_store.append(to(ids[number], 0, ZoneDefined(name=name), now=time), now=time)
        await tested_store.settle()
        assert [row.zone_id for row in (await tested_store.page(ListZones(**asked))).items] == [ids[n] for n in found]

    async def list_items(self, tested_store: StoreUnderTest, query: Any, *conditions: Where) -> tuple[Any, ...]:
        async with tested_store.store.session() as session:
            return (await session.page(query.summary, query, conditions)).items

    async def test_every_projection_lists_nothing_in_an_empty_store(self, tested_store: StoreUnderTest) -> None:
        for operation in REGISTRY:
            if (summary := getattr(operation.input, "summary", None)) is not None:
                async with tested_store.store.session() as session:
                    page = await session.page(summary, operation.input.model_construct(), ())
                assert page == Page((), None), operation.name


class TestLogbooks:
    """Rows beside the streams: written with the events, kept once, never changed."""

    def entry(self, **changes: Any) -> Inference:
        common = {"event_id": new_id(), "logbook_id": new_id(), "actor_id": OPERATOR, "command_name": "AppendInferences"}
        said = {
            "operation_name": "chat",
            "provider_name": "acme",
            "request_model": "m-1",
            "finish_reasons": ("stop", "length"),
        }
        made = dict.fromkeys(Inference.model_fields) | common | said
        made |= {"decision_id": new_id(), "correlation_id": new_id(), "occurred_at": NOW, "messages": {"prompt": ["why?"]}}
        return Inference(**made | changes)

    async def list_inferences(self, tested_store: StoreUnderTest) -> tuple[Any, ...]:
        return (await tested_store.page(ListInferences())).items

    async def test_rows_come_back_as_they_went_in(self, tested_store: StoreUnderTest) -> None:
        rows = [self.entry(occurred_at=NOW + number * SECOND, cost=0.25, input_tokens=number) for number in range(3)]
        await tested_store.append(entries=[Enter(rows)])
        found = await self.list_inferences(tested_store)
        assert all(row.recorded_at is not None for row in found)
        assert [Inference.model_validate({**dict(row), "recorded_at": None}) for row in found] == rows

    async def test_a_row_whose_id_is_taken_refuses_where_it_has_a_rival(self, tested_store: StoreUnderTest) -> None:
        first, refusal = self.entry(cost=1.0), conflict("the row")
        await tested_store.append(entries=[Enter([first], rival=refusal)])
        before = await tested_store.contents()
        with pytest.raises(Conflict) as caught:
            await tested_store.append(to(new_id(), 0, actor_registered()), entries=[Enter([first], rival=refusal)])
        assert caught.value is refusal
        assert await tested_store.contents() == before

    async def test_the_first_row_of_an_id_is_kept(self, tested_store: StoreUnderTest) -> None:
        first = self.entry(cost=1.0)
        await tested_store.append(entries=[Enter([first, first.model_copy(update={"cost": 2.0})])])
        await tested_store.append(entries=[Enter([first.model_copy(update={"cost": 3.0}), self.entry(cost=4.0)])])
        assert sorted(row.cost for row in await self.list_inferences(tested_store)) == [1.0, 4.0]

    async def test_a_lost_race_leaves_no_rows(self, tested_store: StoreUnderTest) -> None:
        actor = new_id()
        await tested_store.append(to(actor, 0, actor_registered()))
        with pytest.raises(ConcurrencyError):
            await tested_store.append(to(actor, 0, ActorDeactivated()), entries=[Enter([self.entry()])])
        assert await self.list_inferences(tested_store) == ()
