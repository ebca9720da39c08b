"""What only the ledger on PostgreSQL can get wrong: a step that waits for another must not go by what was before."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

from baton.domain.conduct.endings import HoldProcedure, TruncateProcedure
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.progress import WaitingFor
from baton.domain.procedure.procedure import Procedure
from baton.infrastructure.postgres import ledger as statements
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.pool import Connection, Pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller, HandSetClock
from tests.support.domain.world import new_id
from tests.support.infrastructure.database_observer import rows, until_waiting
from tests.support.infrastructure.ledger_cases import PORTS, LedgerCase, LedgerConduct, begin_request, row

LOCK = "SELECT FROM conduct_progress WHERE procedure_id = %s FOR UPDATE"


async def no_time(seconds: float) -> None:
    raise AssertionError("nothing here takes time")


@pytest.fixture
def case(store: PostgresStore) -> LedgerCase:
    client = CommandCaller(store, ports=PORTS, clock=HandSetClock(datetime.now(UTC)))
    return LedgerCase(client, PostgresLedger(store), no_time)


@pytest.fixture
async def conduct(case: LedgerCase) -> LedgerConduct:
    return await case.open_conduct()


class TestTheFence:
    """Everything that waits here has looked at the database before somebody else was done with it."""

    async def test_a_truncation_that_commits_meanwhile_lets_nothing_begin(
        self, case: LedgerCase, conduct: LedgerConduct, second_connection: Connection, owner: Connection
    ) -> None:
        await second_connection.execute(LOCK, (conduct.procedure_id,))
        case.client.clock.now += timedelta(seconds=61)
        truncating = asyncio.create_task(case.client.do(TruncateProcedure(reason="power cut"), on=conduct.procedure_id))
        await until_waiting(owner, 1)
        beginning = asyncio.create_task(case.ledger.begin(begin_request(conduct.at(0))))
        await until_waiting(owner, 2)
        await second_connection.rollback()
        await truncating
        standing = await beginning
        assert (standing.live, standing.marked) == (False, False)
        assert await rows(owner, "SELECT mark FROM entries_procedure_activities") == []
        assert (await case.progress(conduct)).phase == "Ended"

    async def test_a_truncation_that_comes_second_finds_what_was_begun(
        self, case: LedgerCase, conduct: LedgerConduct, second_connection: Connection, owner: Connection
    ) -> None:
        await second_connection.execute(LOCK, (conduct.procedure_id,))
        beginning = asyncio.create_task(case.ledger.begin(begin_request(conduct.at(0))))
        await until_waiting(owner, 1)
        case.client.clock.now += timedelta(seconds=61)
        truncating = asyncio.create_task(case.client.do(TruncateProcedure(reason="power cut"), on=conduct.procedure_id))
        await until_waiting(owner, 2)
        await second_connection.rollback()
        assert (await beginning).marked
        await truncating
        assert await rows(owner, "SELECT mark FROM entries_procedure_activities") == [("in_flight",)]

    async def test_of_two_that_waited_for_the_same_step_one_marks_and_the_other_sees_it(
        self, case: LedgerCase, conduct: LedgerConduct, second_connection: Connection, owner: Connection
    ) -> None:
        place = conduct.at(0)
        await second_connection.execute(LOCK, (conduct.procedure_id,))
        rivals = [asyncio.create_task(case.ledger.begin(begin_request(place))) for _ in range(2)]
        await until_waiting(owner, 2)
        await second_connection.rollback()
        standings = await asyncio.gather(*rivals)
        assert sorted(standing.marked for standing in standings) == [False, True]
        (late,) = [standing for standing in standings if not standing.marked]
        assert [found.event_id for found in late.rows] == [place.row_id(Mark.IN_FLIGHT, 1)]
        assert late.silence is not None

    async def test_what_was_settled_meanwhile_is_not_repeated(
        self, case: LedgerCase, conduct: LedgerConduct, second_connection: Connection, owner: Connection
    ) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        await second_connection.execute(LOCK, (conduct.procedure_id,))
        settling = asyncio.create_task(case.ledger.settle(row(place, Mark.OUTCOME, value=3)))
        await until_waiting(owner, 1)
        repeating = asyncio.create_task(case.ledger.begin(begin_request(place, attempt=2, again=True)))
        await until_waiting(owner, 2)
        await second_connection.rollback()
        await settling
        standing = await repeating
        assert not standing.marked
        assert {found.mark for found in standing.rows} == {"in_flight", "outcome"}

    async def test_what_is_settled_with_the_next_beginning_waits_for_others_and_sees_what_they_did(
        self, case: LedgerCase, conduct: LedgerConduct, second_connection: Connection, owner: Connection
    ) -> None:
        await case.begin_step(conduct.at(0))
        await second_connection.execute(LOCK, (conduct.procedure_id,))
        outcome = row(conduct.at(0), Mark.OUTCOME)
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await case.client.do(HoldProcedure(reason="shift change"), on=conduct.procedure_id)
        going_on = asyncio.create_task(case.ledger.settle_and_begin(outcome, begin_request(conduct.at(1), watched=watched)))
        await until_waiting(owner, 1)
        await second_connection.rollback()
        settled, begun = await going_on
        assert (settled["result"], begun.moved, begun.marked) == ("ok", True, False)

    async def test_rivals_that_settle_and_begin_do_not_lock_each_other_out(
        self, case: LedgerCase, conduct: LedgerConduct, second_connection: Connection, owner: Connection
    ) -> None:
        await case.begin_step(conduct.at(0))
        await second_connection.execute(LOCK, (conduct.procedure_id,))
        rivals: list[Any] = [
            asyncio.create_task(
                case.ledger.settle_and_begin(
                    row(conduct.at(0), Mark.OUTCOME, attempt=number, value=number), begin_request(conduct.at(1))
                )
            )
            for number in (1, 2)
        ]
        rivals.append(asyncio.create_task(case.ledger.begin(begin_request(conduct.at(1)))))
        await until_waiting(owner, 3)
        await second_connection.rollback()
        (first, one), (second, two), three = await asyncio.gather(*rivals)
        assert first == second
        assert [one.marked, two.marked, three.marked].count(True) == 1


class CountingConnection:
    """A connection that counts what is asked of it."""

    def __init__(self, connection: Connection, asked: list[str]) -> None:
        self._connection = connection
        self._asked = asked

    async def execute(self, query: str, *given: Any, **options: Any) -> Any:
        self._asked.append(query)
        return await self._connection.execute(query, *given, **options)


class CountingStore(PostgresStore):
    """A store that keeps what is asked of its database."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.asked: list[str] = []

    @asynccontextmanager
    async def connection(self, *, writing: bool = False) -> AsyncIterator[Any]:
        async with super().connection(writing=writing) as connection:
            yield CountingConnection(connection, self.asked)


class TestRoundTrips:
    async def test_each_thing_costs_one(self, case: LedgerCase, conduct: LedgerConduct, pool: Pool) -> None:
        store = CountingStore(pool)
        ledger, place = PostgresLedger(store), conduct.at(0)
        effect = place.row_id(Mark.IN_FLIGHT, 1)
        ids = conduct.procedure_id, conduct.conduct_id
        for asking in (
            ledger.begin(begin_request(place)),
            ledger.beat(place, effect),
            ledger.settle(row(place, Mark.OUTCOME)),
            ledger.slots(*ids, 0, 0),
            ledger.mark_waiting(*ids, WaitingFor.RUN, None),
            ledger.mark_walking(*ids),
            ledger.begin_closing(*ids),
        ):
            store.asked.clear()
            await asking
            assert len(store.asked) == 1, store.asked

    async def test_an_outcome_and_the_next_beginning_go_together(
        self, case: LedgerCase, conduct: LedgerConduct, pool: Pool
    ) -> None:
        store = CountingStore(pool)
        ledger = PostgresLedger(store)
        await ledger.begin(begin_request(conduct.at(0)))
        store.asked.clear()
        _, begun = await ledger.settle_and_begin(row(conduct.at(0), Mark.OUTCOME), begin_request(conduct.at(1)))
        assert (begun.marked, store.asked) == (True, [statements.BEGIN])

    async def test_only_what_stood_already_costs_another(self, case: LedgerCase, conduct: LedgerConduct, pool: Pool) -> None:
        store = CountingStore(pool)
        ledger, place, ids = PostgresLedger(store), conduct.at(0), (conduct.procedure_id, conduct.conduct_id)
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await ledger.settle(row(place, Mark.OUTCOME))
        store.asked.clear()
        await ledger.settle(row(place, Mark.OUTCOME, attempt=2))
        assert len(store.asked) == 2
        await case.client.do(HoldProcedure(reason="shift change"), on=conduct.procedure_id)
        store.asked.clear()
        assert (await ledger.begin_closing(*ids, watched)).moved
        assert len(store.asked) == 2


MANY = """
INSERT INTO entries_procedure_activities (event_id, procedure_id, logbook_id, actor_id, command_name, step_kind, payload,
    sampled_at, conduct_id, correlation_id, occurred_at, iteration_index, closing, step_index, mark, attempt, slot)
SELECT gen_random_uuid(), p.id, p.id, p.id, 'ConductProcedure', (ARRAY['setpoint', 'action', 'compute', 'check'])[1 + s % 4],
    '{"result": "ok", "address": "bl7:x", "value": 1, "writes": [["bl7:y", 2]], "actuation_kind": "Physical"}', now(), p.id,
    p.id, now(), i, false, s, m, 1, CASE WHEN m = 'outcome' AND s % 10 = 0 THEN 'slot' || s END
FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 100)) p, generate_series(0, 19) s, generate_series(1, 10) i,
    unnest(ARRAY['in_flight', 'outcome']) m;
INSERT INTO conduct_progress (procedure_id, conduct_id, command_name, phase, started_at, active_at)
SELECT gen_random_uuid(), gen_random_uuid(), 'ConductProcedure', 'Ended', now(), now() FROM generate_series(1, 20000);
INSERT INTO lookups SELECT (ARRAY['conduct-hold', 'conduct-abort', 'phase'])[1 + n % 3], gen_random_uuid()::text,
    gen_random_uuid() FROM generate_series(1, 20000) n;
INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name,
    correlation_id, occurred_at)
SELECT gen_random_uuid(), 'Run', r.id, v, 'RunHeld', '{}', r.id, 'HoldRun', r.id, now()
FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 400)) r, generate_series(1, 50) v;
ANALYZE;
"""
STATEMENTS = [
    "BEGIN",
    "SETTLE",
    "STORED",
    "HAS_PASSED",
    "PASSED_STEPS",
    "BEGUN_BEFORE",
    "BEAT",
    "CLOSE",
    "IS_LIVE",
    "WAIT",
    "SLOTS",
    "ALL_OUTCOMES",
    "PASS_OUTCOMES",
    "WRITTEN",
    "KINDS",
]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a plan."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def test_the_statement_that_begins_steps_is_short_enough_for_the_driver_to_keep() -> None:
    assert len(statements.BEGIN) <= MAX_CACHED_STATEMENT_LENGTH


async def test_no_statement_reads_a_table_from_end_to_end(owner: Connection) -> None:
    """Planned as the owner, whom nothing keeps from reading whole tables."""
    await owner.execute(MANY)
    ((procedure_id, conduct_id),) = await rows(
        owner, "SELECT procedure_id, conduct_id FROM entries_procedure_activities LIMIT 1"
    )
    ((run_id,),) = await rows(owner, "SELECT stream_id FROM events WHERE stream_type = 'Run' LIMIT 1")
    conduct = LedgerConduct(procedure_id, conduct_id)
    place = conduct.at(5, iteration_index=3)
    given: dict[str, Any] = {
        **place.model_dump(),
        **statements.watch_values([("Run", run_id, 50), ("Procedure", procedure_id, 3)]),
        "monitor": 1,
        "may": True,
        "pause": 300.0,
        "again": False,
        "marker": statements.row_document(row(place, Mark.IN_FLIGHT)),
        "row": statements.row_document(row(place, Mark.OUTCOME)),
        "mark": "outcome",
        "effect": new_id(),
        "phase": "Waiting",
        "for": "run",
        "until": None,
        "since": None,
        "boundary": 7,
        "judged": True,
        "count": 200,
        "follows": True,
        "first": False,
        "before": 1,
        "news": None,
    }
    client = psycopg.AsyncClientCursor(owner)
    for name in STATEMENTS:
        for iteration in (0, 3):
            statement = f"EXPLAIN (FORMAT JSON) {getattr(statements, name)}"
            await client.execute(statement, {**given, "iteration_index": iteration})
            (((plan,),),) = await client.fetchall()
            reads = [(node["Node Type"], node["Relation Name"]) for node in nodes(plan["Plan"]) if "Relation Name" in node]
            assert [read for read in reads if read[0] == "Seq Scan"] == [], f"{name}: {reads}"
            assert reads, f"{name} reads nothing"
