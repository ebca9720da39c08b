"""What every ledger promises, asked of the one in memory and the one on PostgreSQL alike."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.conduct.conduct_record import RecordWatch, StepPlans
from baton.application.conduct.ledger import BeatReply, BeginRequest
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.access.actor import Actor, ActorKind, ActorRegistered, DeactivateActor, RegisterActor
from baton.domain.agent.agent import Agent, AgentVersioned
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import CompleteProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductVerdict, Mark, StepPlace
from baton.domain.conduct.plan_progress import PlacedPlanNews
from baton.domain.conduct.progress import FilledSlot, WaitingFor
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus, RegisterEnclosure
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.facility.facility import RegisterFacility
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import Run
from baton.domain.start.registration import RegisterProcedure
from baton.domain.step.results import ActuationKind, Failure, Measured
from baton.infrastructure.postgres.leadership import MONITOR_LOCK
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.ledger import MemoryLedger
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller, HandSetClock
from tests.support.databases import with_database
from tests.support.domain.run_lives import EVENTFUL, HELD, run_events
from tests.support.domain.world import new_id
from tests.support.infrastructure.ledger_cases import PORTS, STEPS, LedgerCase, LedgerConduct, begin_request, row


@pytest.fixture(scope="module")
def shared_database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """One database for all tests here: each has procedures of its own, and sees no others."""
    name = f"ledger_{os.getpid()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield with_database(postgres.url, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
async def shared_store(shared_database: str) -> AsyncIterator[PostgresStore]:
    async with runtime_pool(shared_database, 8) as pool:
        yield PostgresStore(pool)


@pytest.fixture(params=["memory", "postgres"])
def case(request: pytest.FixtureRequest, shared_database: str, shared_store: PostgresStore) -> LedgerCase:
    clock = HandSetClock(datetime.now(UTC))
    if request.param == "postgres":
        client = CommandCaller(shared_store, ports=PORTS, clock=clock)
        let_pass, begin_term = partial(set_back, shared_database), partial(lead_on_postgres, shared_store)
        return LedgerCase(client, PostgresLedger(shared_store), let_pass, begin_term)

    async def let_pass(seconds: float) -> None:
        clock.now += timedelta(seconds=seconds)

    async def lead_in_memory(term: int | None) -> None:
        store.leases = {} if term is None else {MONITOR_LOCK: term}

    store = MemoryStore()
    client = CommandCaller(store, ports=PORTS, clock=clock)
    return LedgerCase(client, MemoryLedger(store, clock), let_pass, lead_in_memory)


async def lead_on_postgres(store: PostgresStore, term: int | None) -> None:
    renewed_at = "-infinity" if term is None else "now"
    row = """INSERT INTO leases VALUES (%s, %s, 0, %s) ON CONFLICT (lock) DO UPDATE
        SET term = excluded.term, renewed_at = excluded.renewed_at"""
    async with store.connection() as connection:
        await connection.execute(row, (MONITOR_LOCK, term or 0, renewed_at))


async def set_back(url: str, seconds: float) -> None:
    """Have everything that a ledger knows of have happened so much earlier."""
    times = {
        "conduct_progress": ("started_at", "heartbeat_at", "active_at", "effect_beat_at"),
        "entries_procedure_activities": ("recorded_at",),
    }
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for table, columns in times.items():
            earlier = ", ".join(f"{column} = {column} - make_interval(secs => {seconds})" for column in columns)
            await connection.execute(f"UPDATE {table} SET {earlier}")


@pytest.fixture
async def conduct(case: LedgerCase) -> LedgerConduct:
    return await case.open_conduct()


async def request(case: LedgerCase, conduct: LedgerConduct) -> None:
    """Ask something of a live conduct."""
    await case.client.do(HoldProcedure(reason="shift change"), on=conduct.procedure_id)


class TestMonitor:
    """A step that rests on what a monitor reads begins only while that monitor leads."""

    async def test_nothing_begins_by_the_term_of_one_that_leads_no_more(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.lead(5)
        standing = await case.ledger.begin(begin_request(conduct.at(0), monitor_term=4))
        assert (standing.live, standing.marked, standing.moved) == (True, False, True)
        assert (await case.ledger.begin(begin_request(conduct.at(0), monitor_term=5))).marked

    async def test_nothing_begins_while_nobody_leads(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.lead(5)
        await case.lead(None)
        standing = await case.ledger.begin(begin_request(conduct.at(0), monitor_term=5))
        assert (standing.live, standing.marked, standing.moved) == (True, False, True)
        assert (await case.ledger.begin(begin_request(conduct.at(0)))).marked, "what rests on no monitor begins"


class TestWatchedStreams:
    """A step begins only where no stream that is watched says more than was read."""

    async def test_a_step_begins_where_nothing_new_was_said(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        actor_id = await case.client.create(RegisterActor(name="Mira Okafor"))
        watched = (await case.version(Procedure, conduct.procedure_id), await case.version(Actor, actor_id))
        standing = await case.ledger.begin(begin_request(conduct.at(0), watched=watched))
        assert (standing.marked, standing.moved) == (True, False)

    @pytest.mark.parametrize("position", range(3))
    async def test_nothing_begins_where_one_of_them_has_moved(
        self, case: LedgerCase, conduct: LedgerConduct, position: int
    ) -> None:
        before, actor_id = await case.progress(conduct), await case.client.create(RegisterActor(name="Mira Okafor"))
        known = [await case.version(Procedure, conduct.procedure_id), await case.version(Run, await case.run())]
        known.insert(position, await case.version(Actor, actor_id))
        await case.client.do(DeactivateActor(), on=actor_id)
        standing = await case.ledger.begin(begin_request(conduct.at(0), watched=known))
        assert (standing.live, standing.marked, standing.moved, standing.rows) == (True, False, True, ())
        assert (await case.ledger.begin(begin_request(conduct.at(0), marker=None))).rows == ()
        assert (await case.progress(conduct)).active_at == before.active_at, "nothing was done"

    async def test_a_stream_that_was_empty_when_it_was_read_moves_with_its_first_event(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        agent_id = new_id()
        watched = [await case.version(Agent, agent_id)]
        assert not (await case.ledger.begin(begin_request(conduct.at(0), marker=None, watched=watched))).moved
        await case.append_events(agent_id, AgentVersioned(version="1"))
        assert (await case.ledger.begin(begin_request(conduct.at(0), marker=None, watched=watched))).moved

    async def test_one_id_may_have_streams_of_two_types(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        agent_id = new_id()
        await case.append_events(agent_id, AgentVersioned(version="1"))
        watched = [("Actor", agent_id, 0), ("Agent", agent_id, 1)]
        assert (await case.ledger.begin(begin_request(conduct.at(0), watched=watched))).marked

    async def test_what_is_asked_of_the_conduct_moves_its_procedure(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await request(case, conduct)
        standing = await case.ledger.begin(begin_request(conduct.at(0), watched=watched))
        assert (standing.marked, standing.moved, standing.live) == (False, True, True)

    async def test_what_is_asked_of_another_conduct_is_no_hindrance(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await request(case, await case.open_conduct())
        await case.begin_step(conduct.at(0), watched=watched)

    @pytest.mark.parametrize("life", EVENTFUL)
    async def test_whatever_happens_to_its_run_is_news(self, case: LedgerCase, conduct: LedgerConduct, life: str) -> None:
        run_id = await case.run()
        watched = [await case.version(Run, run_id)]
        assert not (await case.ledger.begin(begin_request(conduct.at(0), marker=None, watched=watched))).moved
        await case.append_events(run_id, *run_events(life))
        assert (await case.ledger.begin(begin_request(conduct.at(0), watched=watched))).moved

    async def test_closing_steps_watch_too(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await request(case, conduct)
        standing = await case.ledger.begin(begin_request(conduct.at(0, closing=True), watched=watched))
        assert (standing.marked, standing.moved) == (False, True)


class TestBeginning:
    async def test_a_step_that_nothing_stands_in_the_way_of_is_marked(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        standing = await case.ledger.begin(begin_request(conduct.at(3, iteration_index=2)))
        assert (standing.live, standing.marked, standing.rows) == (True, True, ())
        assert (standing.moved, standing.out_of_turn, standing.late) == (False,) * 3
        progress = await case.progress(conduct)
        assert (progress.phase, progress.step_index, progress.iteration_index) == ("Walking", 3, 2)

    async def test_it_is_marked_once(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        again = await case.ledger.begin(begin_request(place))
        assert not again.marked
        (found,) = again.rows
        assert (found.event_id, found.mark, found.attempt) == (place.row_id(Mark.IN_FLIGHT, 1), "in_flight", 1)
        assert found.payload == {"result": "in_flight", "worker": "here"}

    async def test_a_step_without_an_effect_leaves_no_row(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(4)
        for _ in range(2):
            standing = await case.ledger.begin(begin_request(place, marker=None))
            assert (standing.live, standing.marked, standing.rows) == (True, False, ())
        assert (await case.progress(conduct)).step_index == 4

    async def test_passes_closing_and_conducts_have_places_of_their_own(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        other = await case.open_conduct()
        for place in (conduct.at(0), conduct.at(0, 1), conduct.at(0, 2), conduct.at(0, closing=True), other.at(0)):
            await case.begin_step(place)
        assert (await case.progress(conduct)).phase == "Closing"

    async def test_of_rivals_at_the_same_place_one_marks_and_the_others_see_it(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        place = conduct.at(0)
        standings = await asyncio.gather(*(case.ledger.begin(begin_request(place)) for _ in range(6)))
        assert [standing.marked for standing in standings].count(True) == 1
        seen = [[found.event_id for found in standing.rows] for standing in standings if not standing.marked]
        assert seen == [[place.row_id(Mark.IN_FLIGHT, 1)]] * 5

    async def test_of_rivals_at_the_same_repetition_one_marks(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        again = begin_request(place, attempt=2, again=True)
        standings = await asyncio.gather(*(case.ledger.begin(again) for _ in range(6)))
        assert [standing.marked for standing in standings].count(True) == 1
        seen = [[found.attempt for found in standing.rows] for standing in standings if not standing.marked]
        assert seen == [[1, 2]] * 5


def turn(place: StepPlace, *, first: bool = False, **how: Any) -> BeginRequest:
    """A step that is to begin only if it is its turn."""
    return begin_request(place, first=first, **how)


class TestTurns:
    """A step begins only where the record shows what comes before it."""

    async def test_the_first_step_begins(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        assert (await case.ledger.begin(turn(conduct.at(3), first=True))).marked

    @pytest.mark.parametrize(("result", "may_begin"), [("ok", True), ("skipped", True), ("failed", False)])
    async def test_another_one_behind_an_outcome_that_lets_it(
        self, case: LedgerCase, conduct: LedgerConduct, result: str, may_begin: bool
    ) -> None:
        await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, result=result))
        standing = await case.ledger.begin(turn(conduct.at(1)))
        assert (standing.marked, standing.out_of_turn, standing.live) == (may_begin, not may_begin, True)
        assert await case.ledger.has_passed(conduct.at(0)) is may_begin

    async def test_what_only_began_lets_nothing_begin(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(0))
        before = await case.progress(conduct)
        standing = await case.ledger.begin(turn(conduct.at(1)))
        assert (standing.out_of_turn, standing.marked, await case.progress(conduct)) == (True, False, before)
        assert not await case.ledger.has_passed(conduct.at(0))

    async def test_nor_does_a_failed_deposit_or_the_outcome_of_another_list(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, kind="compute"))
        await case.ledger.settle(row(conduct.at(0), Mark.DEPOSIT, kind="compute", **failure("DuplicateOutput")))
        await case.ledger.settle(row(conduct.at(4, closing=True), Mark.OUTCOME))
        await case.ledger.settle(row((await case.open_conduct()).at(4), Mark.OUTCOME))
        for index in (1, 5):
            assert (await case.ledger.begin(turn(conduct.at(index)))).out_of_turn

    async def test_what_was_passed_is_counted_up_to_the_first_that_was_not(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        first = conduct.at(2)
        assert await case.ledger.passed_count(first, 5) == 0
        for index, result in ((2, "ok"), (3, "skipped"), (4, "failed"), (5, "ok"), (6, "ok")):
            await case.ledger.settle(row(conduct.at(index), Mark.OUTCOME, result=result))
        await case.begin_step(conduct.at(7))
        await case.ledger.settle(row(conduct.at(2, 1), Mark.OUTCOME))
        counts = [(index, await case.ledger.passed_count(conduct.at(index), 5)) for index in range(1, 8)]
        assert counts == [(1, 0), (2, 2), (3, 1), (4, 0), (5, 2), (6, 1), (7, 0)]
        assert await case.ledger.passed_count(first, 1) == 1, "no more than it was asked for"
        assert await case.ledger.passed_count(conduct.at(2, 1), 5) == 1, "a pass has outcomes of its own"

    async def test_of_closing_steps_those_that_failed_were_passed_too(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        for index, says in enumerate(({}, failure("ControlTimeoutError"), {})):
            await case.ledger.settle(row(conduct.at(index, closing=True), Mark.OUTCOME, **says))
        assert await case.ledger.passed_count(conduct.at(0, closing=True), 9) == 3

    async def test_a_failed_deposit_is_not_passed(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, kind="compute"))
        await case.ledger.settle(row(conduct.at(0), Mark.DEPOSIT, kind="compute", **failure("DuplicateOutput")))
        assert await case.ledger.passed_count(conduct.at(0), 2) == 0

    async def test_closing_steps_follow_whatever_came_of_the_one_before(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        first, second = conduct.at(0, closing=True), conduct.at(1, closing=True)
        assert (await case.ledger.begin(turn(first, first=True))).out_of_turn, "nothing closes yet"
        await case.ledger.begin_closing(*_ids(conduct))
        assert (await case.ledger.begin(turn(second))).out_of_turn
        assert (await case.ledger.begin(turn(first, first=True))).marked
        await case.ledger.settle(row(first, Mark.OUTCOME, **failure("ControlTimeoutError")))
        assert (await case.ledger.begin(turn(second))).marked

    async def test_no_main_step_begins_once_closing_has(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.ledger.begin_closing(*_ids(conduct))
        await case.ledger.mark_walking(*_ids(conduct))
        assert (await case.ledger.begin(turn(conduct.at(0), first=True))).out_of_turn
        assert (await case.progress(conduct)).phase == "Closing"


class TestWhoIsLive:
    async def test_a_conduct_that_was_never_opened_begins_nothing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        stranger = LedgerConduct(conduct.procedure_id, new_id())
        standing = await case.ledger.begin(begin_request(stranger.at(0)))
        assert (standing.live, standing.marked) == (False, False)

    async def test_nor_does_one_that_has_ended(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        standing = await case.ledger.begin(begin_request(conduct.at(0)))
        assert (standing.live, standing.marked) == (False, False)

    async def test_nor_does_one_that_another_has_followed(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        later = await case.resume_conduct(conduct)
        assert not (await case.ledger.begin(begin_request(conduct.at(0)))).live
        await case.begin_step(later.at(0))


class TestTheRestartLimit:
    async def test_a_worker_that_stood_still_for_too_long_does_not_go_on(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.let_pass(400)
        standing = await case.ledger.begin(begin_request(conduct.at(0), longest_pause=300))
        assert (standing.late, standing.marked, standing.live) == (True, False, True)

    async def test_without_a_limit_it_does(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.let_pass(100_000)
        await case.begin_step(conduct.at(0))

    async def test_every_row_counts_as_doing_something(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.let_pass(200)
        await case.begin_step(place, longest_pause=300)
        await case.let_pass(200)
        await case.ledger.settle(row(place, Mark.OUTCOME))
        await case.let_pass(200)
        await case.begin_step(conduct.at(1), longest_pause=300)

    async def test_a_wait_does_not_count(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.ledger.mark_waiting(conduct.procedure_id, conduct.conduct_id, WaitingFor.RUN, None)
        await case.let_pass(10_000)
        await case.ledger.mark_walking(conduct.procedure_id, conduct.conduct_id, case.client.clock.now)
        await case.begin_step(conduct.at(0), longest_pause=300)

    @pytest.mark.parametrize("since", [400, None], ids=["went on too long ago", "nothing says that it may go on"])
    async def test_what_was_to_go_on_long_ago_has_stood_still(
        self, case: LedgerCase, conduct: LedgerConduct, since: float | None
    ) -> None:
        await case.ledger.mark_waiting(conduct.procedure_id, conduct.conduct_id, WaitingFor.RUN, None)
        await case.let_pass(10_000)
        resumed = None if since is None else case.client.clock.now - timedelta(seconds=since)
        await case.ledger.mark_walking(conduct.procedure_id, conduct.conduct_id, resumed)
        assert (await case.ledger.begin(begin_request(conduct.at(0), longest_pause=300))).late

    async def test_a_sign_of_life_is_not_enough(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.let_pass(400)
        await case.ledger.beat(conduct.at(0), None)
        assert (await case.ledger.begin(begin_request(conduct.at(0), longest_pause=300))).late


class TestOnce:
    """What must not be done again where an earlier conduct began it."""

    @pytest.mark.parametrize("kind", ["action", "compute"])
    @pytest.mark.parametrize("mark", [Mark.IN_FLIGHT, Mark.OUTCOME])
    async def test_what_an_earlier_conduct_began_is_known(self, case: LedgerCase, kind: str, mark: Mark) -> None:
        earlier = await case.open_conduct()
        if mark is Mark.IN_FLIGHT:
            await case.begin_step(earlier.at(5), kind=kind)
        else:
            await case.ledger.settle(row(earlier.at(5), mark, kind=kind))
        conduct = await case.resume_conduct(earlier)
        assert await case.ledger.was_begun_before(conduct.at(5))
        assert (await case.ledger.begin(begin_request(conduct.at(5), marker=None))).rows == ()

    async def test_of_everything_else_nothing_is(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.begin_step(earlier.at(5), kind="setpoint")
        await case.begin_step(earlier.at(7, closing=True), kind="action")
        conduct = await case.resume_conduct(earlier)
        begun = [await case.ledger.was_begun_before(conduct.at(index)) for index in (5, 7, 8)]
        assert begun == [False, False, False]

    async def test_what_an_earlier_conduct_left_out_was_not_begun(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.ledger.settle(row(earlier.at(5), Mark.OUTCOME, kind="action", result="skipped"))
        conduct = await case.resume_conduct(earlier)
        assert not await case.ledger.was_begun_before(conduct.at(5))

    async def test_what_the_conduct_itself_began_is_in_its_rows(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(5), kind="action")
        again = await case.ledger.begin(begin_request(conduct.at(5), kind="action"))
        assert (await case.ledger.was_begun_before(conduct.at(5)), len(again.rows)) == (False, 1)

    @pytest.mark.parametrize(("said", "begun"), [("done", True), ("not_done", False)])
    async def test_what_a_person_said_was_not_done_may_be_done(self, case: LedgerCase, said: str, begun: bool) -> None:
        earlier = await case.open_conduct()
        await case.begin_step(earlier.at(5), kind="action")
        await case.ledger.settle(row(earlier.at(5), Mark.VERDICT, kind="action", result=said))
        conduct = await case.resume_conduct(earlier)
        assert await case.ledger.was_begun_before(conduct.at(5)) is begun

    async def test_what_refused_to_begin_may_be_done(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.begin_step(earlier.at(5), kind="action")
        await case.ledger.settle(row(earlier.at(5), Mark.OUTCOME, kind="action", result="failed", begun=False))
        conduct = await case.resume_conduct(earlier)
        assert not await case.ledger.was_begun_before(conduct.at(5))
        assert await case.ledger.left_under_way(conduct.at(5)) is None

    async def test_what_an_earlier_conduct_left_without_an_outcome_is_found(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.begin_step(earlier.at(5), kind="action")
        assert await case.ledger.left_under_way(earlier.at(5)) is None, "it is this conduct's own"
        conduct = await case.resume_conduct(earlier)
        left = await case.ledger.left_under_way(conduct.at(5))
        assert left is not None
        assert (left["result"], await case.ledger.left_under_way(conduct.at(6))) == ("in_flight", None)

    async def test_what_a_person_has_spoken_for_is_not_left(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.begin_step(earlier.at(5), kind="action")
        await case.ledger.settle(row(earlier.at(5), Mark.VERDICT, kind="action", result="not_done"))
        conduct = await case.resume_conduct(earlier)
        assert await case.ledger.left_under_way(conduct.at(5)) is None


class TestRepeating:
    async def test_attempts_are_numbered(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        second = await case.ledger.begin(begin_request(place, attempt=2, again=True))
        assert (second.marked, [found.attempt for found in second.rows]) == (True, [1])
        third = await case.ledger.begin(begin_request(place, attempt=3, again=True))
        assert (third.marked, [found.attempt for found in third.rows]) == (True, [1, 2])

    async def test_an_outcome_stands_whatever_the_attempt(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        await case.ledger.settle(row(place, Mark.OUTCOME, value=3))
        again = await case.ledger.begin(begin_request(place, attempt=2, again=True))
        assert not again.marked
        assert {found.mark: found.payload["result"] for found in again.rows} == {"in_flight": "in_flight", "outcome": "ok"}

    async def test_a_deposit_is_found_beside_its_outcome(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.begin_step(place, kind="compute")
        await case.ledger.settle(row(place, Mark.OUTCOME, kind="compute"))
        await case.publish_artifact(place, "image", "file:///a.h5")
        standing = await case.ledger.begin(begin_request(place, marker=None))
        assert {found.mark for found in standing.rows} == {"in_flight", "outcome", "deposit"}

    async def test_a_repetition_is_kept_back_by_what_keeps_back_the_first_time(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await request(case, conduct)
        again = await case.ledger.begin(begin_request(place, attempt=2, again=True, watched=watched))
        assert (again.marked, again.moved, len(again.rows)) == (False, True, 1)


class TestSignsOfLife:
    async def test_a_row_tells_its_age_and_how_long_its_worker_was_silent(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        await case.let_pass(1000)
        standing = await case.ledger.begin(begin_request(place))
        assert standing.rows[0].age == pytest.approx(1000, abs=300)
        assert standing.silence == pytest.approx(1000, abs=300)

    async def test_a_beat_is_a_sign_of_life(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        await case.let_pass(1000)
        await case.ledger.beat(place, place.row_id(Mark.IN_FLIGHT, 1))
        standing = await case.ledger.begin(begin_request(place))
        assert standing.rows[0].age == pytest.approx(1000, abs=300)
        assert standing.silence == pytest.approx(0, abs=300)

    @pytest.mark.parametrize("effect_id", [None, new_id()])
    async def test_that_of_somebody_else_is_none(self, case: LedgerCase, conduct: LedgerConduct, effect_id: Any) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        await case.let_pass(1000)
        await case.ledger.beat(place, effect_id)
        assert (await case.ledger.begin(begin_request(place))).silence == pytest.approx(1000, abs=300)

    async def test_of_an_attempt_that_another_has_followed_nobody_is_heard(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        first, second = conduct.at(0), conduct.at(1)
        await case.begin_step(first)
        await case.begin_step(second)
        assert (await case.ledger.begin(begin_request(first))).silence is None
        assert (await case.ledger.begin(begin_request(second))).silence is not None

    async def test_what_nobody_began_nobody_does(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        assert (await case.ledger.begin(begin_request(conduct.at(0), marker=None))).silence is None

    async def test_work_in_progress_hears_that_there_is_news(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        run_id = await case.run()
        watched = [await case.version(Procedure, conduct.procedure_id), await case.version(Run, run_id)]
        beat = partial(case.ledger.beat, conduct.at(0), None)
        assert await beat(watched) == BeatReply(True)
        await case.append_events(run_id, HELD.model_copy())
        assert await beat(watched) == BeatReply(True, moved=True)
        assert await beat([watched[0], await case.version(Run, run_id)]) == BeatReply(True), "it was read since"
        await request(case, conduct)
        assert await beat(watched[:1]) == BeatReply(True, moved=True)
        assert await beat() == BeatReply(True), "nothing is watched"

    async def test_and_that_it_is_not_live_any_more(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        for versions in ((), watched):
            assert not (await case.ledger.beat(conduct.at(0), None, versions)).live

    async def test_a_beat_keeps_what_was_last_heard_of_a_plan(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        own = place.model_dump(include={"conduct_id", "iteration_index", "closing", "step_index"})
        said = {"name": "plan:bl7/scan", "key": new_id(), "job_id": "4", "environment": None, "phase": "running"}
        times = {"answered_at": None, "changed_at": case.client.clock()}
        news = PlacedPlanNews.model_validate({**own, **said, **times, "message": "", "run_uids": ()})
        await case.ledger.beat(place, None, (), news)
        await case.ledger.beat(place, None)
        assert PlacedPlanNews.model_validate((await case.progress(conduct)).plan_step) == news

    async def test_a_beat_is_seen_on_the_conduct(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        assert (await case.progress(conduct)).heartbeat_at is None
        await case.ledger.beat(conduct.at(0), None)
        assert (await case.progress(conduct)).heartbeat_at is not None


class TestTheRecord:
    """What the record says is read with the versions by which the ledger finds it outdated, gates that are watched too."""

    async def test_it_is_read_again_when_there_is_news_and_not_before(self, case: LedgerCase) -> None:
        conduct, observe = await self.open_in_hutch(case)
        place, watch = conduct.at(0), RecordWatch(case.client.commands, case.client.clock)
        plan = await StepPlans(case.client.store).load(place)
        assert plan is not None
        first = await watch.read(plan)
        assert {name for name, _, _ in first.versions} == {"Procedure", "Asset", "Enclosure"}
        assert (first.signals.verdict, await watch.poll(plan)) == (None, first)
        await case.begin_step(place, watched=first.versions)
        await observe("NotPermitted")
        standing = await case.ledger.begin(begin_request(conduct.at(1), watched=first.versions))
        assert (standing.marked, standing.moved) == (False, True)
        assert (await watch.beat(case.ledger, plan, place, None)).verdict is ConductVerdict.GATE_CLOSED
        await request(case, conduct)
        assert (await watch.beat(case.ledger, plan, place, None)).verdict is ConductVerdict.HOLD
        last = await watch.read(plan)
        assert not (await case.ledger.beat(place, None, last.versions)).moved

    async def open_in_hutch(self, case: LedgerCase) -> tuple[LedgerConduct, Any]:
        """A conduct of something that stands in an enclosure, and how that is observed."""
        code, monitor_id = f"site-{new_id().hex[-12:]}", new_id()
        await case.append_events(monitor_id, ActorRegistered(kind=ActorKind.SERVICE_ACCOUNT))
        await case.client.create(RegisterFacility(code=code, display_name=code, kind="Site"))
        hutch = await case.client.create(RegisterEnclosure(name="Hutch", facility_code=code))
        where = {"facility_code": code, "located_in_enclosure_id": hutch}
        stage = await case.client.create(RegisterAsset(name="Stage", tier="Unit", **where))

        async def observe(status: str) -> None:
            seen = {"reason": "search", "monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:SEARCHED"}}
            await case.client.acting_as(monitor_id).do(ObserveEnclosureStatus(new_status=status, **seen), on=hutch)

        await observe("Permitted")
        task = RegisterProcedure(name="Alignment", kind="alignment", target_asset_ids=frozenset({stage}))
        procedure_id = await case.client.create(task)
        executed = await case.client.do(ConductProcedure(steps=STEPS), on=procedure_id)
        return LedgerConduct(procedure_id, UUID((executed.body or {})["conduct_id"])), observe


class TestSettling:
    async def test_what_came_of_a_step_is_answered(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        outcome = row(conduct.at(0), Mark.OUTCOME, address="bl7:x", value=[1, 2.5, None, {"a": True}])
        assert await case.ledger.settle(outcome) == outcome.payload

    async def test_the_first_outcome_stands_and_is_what_everybody_is_answered(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        place = conduct.at(0)
        first = await case.ledger.settle(row(place, Mark.OUTCOME, attempt=2, value=1))
        again = await case.ledger.settle(row(place, Mark.OUTCOME, attempt=2, value=2))
        older = await case.ledger.settle(row(place, Mark.OUTCOME, attempt=1, result="failed"))
        assert first == again == older
        assert first["value"] == 1

    async def test_of_rivals_that_settle_at_once_one_stands(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        rows = [row(place, Mark.OUTCOME, attempt=number, value=number) for number in range(1, 7)]
        answers = await asyncio.gather(*map(case.ledger.settle, rows))
        assert answers == [answers[0]] * 6

    async def test_a_deposit_stands_beside_its_outcome(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(0)
        outcome = await case.ledger.settle(row(place, Mark.OUTCOME, kind="compute", job_id="7"))
        deposit = await case.ledger.settle(row(place, Mark.DEPOSIT, kind="compute", captured_value=3))
        assert (outcome["job_id"], deposit["captured_value"]) == ("7", 3)
        assert await case.ledger.settle(row(place, Mark.DEPOSIT, kind="compute", captured_value=4)) == deposit

    async def test_what_was_done_is_kept_although_the_conduct_is_not_live_any_more(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.begin_step(conduct.at(0))
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, address="bl7:x", value=3))
        tally = await case.ledger.tally(conduct.conduct_id, 0)
        assert tally.substrate_writes == {"bl7:x": 3}

    @pytest.mark.parametrize("value", ["a\0b", {"deep": ["\0"]}])
    async def test_what_no_database_takes_is_refused(self, case: LedgerCase, conduct: LedgerConduct, value: Any) -> None:
        with pytest.raises((ValueError, psycopg.DataError)):
            await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, value=value))
        assert (await case.ledger.begin(begin_request(conduct.at(0), marker=None))).rows == ()


class TestSettlingAndBeginning:
    """The outcome of one step and the beginning of the next, stored together or not at all."""

    async def at_second(self, case: LedgerCase, conduct: LedgerConduct, says: Any = None, **how: Any) -> Any:
        """Settle the first step, and begin the second in its turn."""
        outcome = row(conduct.at(0), Mark.OUTCOME, **{"address": "bl7:m0", "value": 0, **(says or {})})
        return await case.ledger.settle_and_begin(outcome, turn(conduct.at(1), **how))

    async def marks(self, case: LedgerCase, place: StepPlace) -> list[str]:
        return sorted(found.mark for found in (await case.ledger.begin(begin_request(place, marker=None))).rows)

    async def test_both_are_stored(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(0))
        await case.let_pass(1000)
        before = await case.progress(conduct)
        settled, begun = await self.at_second(case, conduct, longest_pause=300)
        assert (settled["result"], settled["value"]) == ("ok", 0)
        assert (begun.live, begun.marked, begun.moved, begun.out_of_turn, begun.rows) == (True, True, False, False, ())
        progress = await case.progress(conduct)
        assert (progress.phase, progress.step_index) == ("Walking", 1)
        assert progress.active_at > before.active_at
        assert await self.marks(case, conduct.at(0)) == ["in_flight", "outcome"]
        assert await self.marks(case, conduct.at(1)) == ["in_flight"]
        silence = (await case.ledger.begin(begin_request(conduct.at(1), marker=None))).silence
        assert silence == pytest.approx(0, abs=300)

    async def test_the_next_is_not_begun_where_a_stream_has_moved_and_the_outcome_is_kept(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.begin_step(conduct.at(0))
        watched = [await case.version(Procedure, conduct.procedure_id)]
        await request(case, conduct)
        settled, begun = await self.at_second(case, conduct, watched=watched)
        assert (settled["result"], begun.marked, begun.moved) == ("ok", False, True)
        assert await case.ledger.has_passed(conduct.at(0))
        assert await self.marks(case, conduct.at(1)) == []

    async def test_the_next_is_not_begun_where_another_worker_has_settled_that_the_step_failed(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        for attempt in (1, 2):
            await case.begin_step(conduct.at(0), attempt=attempt, again=attempt > 1)
        failed = await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, 2, **failure("ControlTimeoutError")))
        settled, begun = await self.at_second(case, conduct)
        assert settled == failed
        assert (begun.marked, begun.out_of_turn) == (False, True)
        assert await self.marks(case, conduct.at(1)) == []

    async def test_it_is_begun_where_another_worker_has_settled_that_it_was_done(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        done = await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, 2, value=7))
        settled, begun = await self.at_second(case, conduct)
        assert (settled, begun.marked) == (done, True)

    @pytest.mark.parametrize(("closing", "may_begin"), [(False, False), (True, True)])
    async def test_what_failed_is_followed_in_closing_alone(
        self, case: LedgerCase, conduct: LedgerConduct, closing: bool, may_begin: bool
    ) -> None:
        if closing:
            await case.ledger.begin_closing(*_ids(conduct))
        places = [conduct.at(index, closing=closing) for index in (0, 1)]
        failed = row(places[0], Mark.OUTCOME, **failure("ControlTimeoutError"))
        _, begun = await case.ledger.settle_and_begin(failed, turn(places[1]))
        assert (begun.marked, begun.out_of_turn) == (may_begin, not may_begin)

    async def test_a_place_out_of_turn_is_not_begun_and_the_outcome_is_kept(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        outcome = row(conduct.at(0), Mark.OUTCOME)
        settled, begun = await case.ledger.settle_and_begin(outcome, turn(conduct.at(2)))
        assert (settled, begun.out_of_turn, begun.marked) == (outcome.payload, True, False)
        assert await case.ledger.has_passed(conduct.at(0))

    async def test_the_outcome_is_kept_although_the_conduct_is_not_live_any_more(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.begin_step(conduct.at(0))
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        settled, begun = await self.at_second(case, conduct)
        assert (settled["result"], begun.live, begun.marked) == ("ok", False, False)
        assert (await case.ledger.tally(conduct.conduct_id, 0)).substrate_writes == {"bl7:m0": 0}

    async def test_where_the_outcome_cannot_be_stored_nothing_is_begun(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.begin_step(conduct.at(0))
        with pytest.raises((ValueError, psycopg.DataError)):
            await self.at_second(case, conduct, {"value": "a\0b"})
        assert await self.marks(case, conduct.at(0)) == ["in_flight"]
        assert await self.marks(case, conduct.at(1)) == []

    async def test_where_the_next_cannot_be_marked_nothing_is_settled(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await case.begin_step(conduct.at(0))
        with pytest.raises((ValueError, psycopg.DataError)):
            await self.at_second(case, conduct, marker=row(conduct.at(1), Mark.IN_FLIGHT, value="a\0b"))
        assert await self.marks(case, conduct.at(0)) == ["in_flight"]

    async def test_a_step_without_an_effect_follows_like_any_other(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        settled, begun = await self.at_second(case, conduct, marker=None)
        assert (settled["result"], begun.live, begun.marked, begun.out_of_turn) == ("ok", True, False, False)
        assert (await case.progress(conduct)).step_index == 1

    async def test_repeated_it_changes_nothing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        first, begun = await self.at_second(case, conduct)
        again, seen = await self.at_second(case, conduct, {"value": 9})
        assert (again, begun.marked, seen.marked) == (first, True, False)
        assert [found.mark for found in seen.rows] == ["in_flight"]

    async def test_of_rivals_one_begins_the_next_and_all_are_answered_the_same_outcome(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        answers = await asyncio.gather(*(self.at_second(case, conduct, {"value": number}) for number in range(6)))
        assert [settled for settled, _ in answers] == [answers[0][0]] * 6
        assert [begun.marked for _, begun in answers].count(True) == 1


class TestClosing:
    async def close(self, case: LedgerCase, conduct: LedgerConduct, *watched: Any) -> BeatReply:
        return await case.ledger.begin_closing(*_ids(conduct), watched)

    async def test_it_begins_where_nothing_is_watched(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(7))
        assert await self.close(case, conduct) == BeatReply(True)
        progress = await case.progress(conduct)
        assert (progress.phase, progress.step_index) == ("Closing", None)

    async def test_it_begins_where_nothing_new_was_said(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        assert await self.close(case, conduct, await case.version(Procedure, conduct.procedure_id)) == BeatReply(True)
        assert (await case.progress(conduct)).phase == "Closing"

    async def test_what_was_asked_for_before_keeps_it_from_beginning(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        watched = await case.version(Procedure, conduct.procedure_id)
        await request(case, conduct)
        assert await self.close(case, conduct, watched) == BeatReply(True, moved=True)
        assert (await case.progress(conduct)).phase == "Opened"

    @pytest.mark.parametrize("life", EVENTFUL)
    async def test_so_does_whatever_happens_to_its_run(self, case: LedgerCase, conduct: LedgerConduct, life: str) -> None:
        run_id = await case.run()
        watched = await case.version(Run, run_id)
        await case.append_events(run_id, *run_events(life))
        assert await self.close(case, conduct, watched) == BeatReply(True, moved=True)
        assert (await case.progress(conduct)).phase == "Opened"

    async def test_what_must_not_begin_may_only_have_begun(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        assert await case.ledger.begin_closing(*_ids(conduct), None) == BeatReply(True, moved=True)
        assert (await case.progress(conduct)).phase == "Opened"
        await self.close(case, conduct)
        assert await case.ledger.begin_closing(*_ids(conduct), None) == BeatReply(True)

    async def test_repeated_it_has_begun_whatever_is_asked_for_since(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        watched = await case.version(Procedure, conduct.procedure_id)
        await self.close(case, conduct, watched)
        await case.begin_step(conduct.at(2, closing=True))
        await request(case, conduct)
        assert await self.close(case, conduct, watched) == BeatReply(True)
        assert (await case.progress(conduct)).step_index == 2, "the step that it is at stays"

    async def test_a_conduct_that_has_ended_does_not_close(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        assert (await self.close(case, conduct)).live is False
        assert (await case.progress(conduct)).phase == "Ended"


class TestWaiting:
    async def test_what_is_waited_for_is_said_until_it_goes_on(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        until = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
        await case.ledger.mark_waiting(conduct.procedure_id, conduct.conduct_id, WaitingFor.ADVICE, until)
        progress = await case.progress(conduct)
        assert (progress.phase, progress.waiting_for, progress.waiting_until) == ("Waiting", "advice", until)
        await case.ledger.mark_walking(conduct.procedure_id, conduct.conduct_id)
        progress = await case.progress(conduct)
        assert (progress.phase, progress.waiting_for, progress.waiting_until) == ("Walking", None, None)

    async def test_a_step_that_begins_waits_for_nothing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.ledger.mark_waiting(conduct.procedure_id, conduct.conduct_id, WaitingFor.RUN, None)
        await case.begin_step(conduct.at(0))
        progress = await case.progress(conduct)
        assert (progress.phase, progress.waiting_for) == ("Walking", None)

    async def test_a_conduct_that_has_ended_waits_for_nothing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        await case.ledger.mark_waiting(conduct.procedure_id, conduct.conduct_id, WaitingFor.RUN, None)
        progress = await case.progress(conduct)
        assert (progress.phase, progress.waiting_for) == ("Ended", None)


class TestSlots:
    async def slots(
        self, case: LedgerCase, conduct: LedgerConduct, iteration_index: int = 0, boundary: int = 0
    ) -> list[Any]:
        """What is found, by name: a number, or where an output is."""
        found = await case.ledger.slots(conduct.procedure_id, conduct.conduct_id, iteration_index, boundary)
        return [
            (slot.slot, slot.content["artifact"]["uri"] if "artifact" in slot.content else slot.content["value"])
            for slot in found
        ]

    async def test_a_step_finds_what_its_own_pass_has_left(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.capture_value(conduct.at(0, 1), "offset", 3.2)
        await case.capture_value(conduct.at(0, 2), "offset", 0.9)
        await case.capture_value(conduct.at(1, 2), "angle", 1)
        assert await self.slots(case, conduct, 1) == [("offset", 3.2)]
        assert await self.slots(case, conduct, 2) == [("angle", 1), ("offset", 0.9)]
        assert await self.slots(case, conduct, 3) == []

    async def test_a_slot_says_who_filled_it_when(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        place = conduct.at(4)
        await case.capture_value(place, "offset", 3.2)
        (slot,) = await case.ledger.slots(conduct.procedure_id, conduct.conduct_id, 0, 0)
        assert (slot.entry_id, slot.step_index, slot.closing) == (place.row_id(Mark.OUTCOME, 1), 4, False)
        assert (slot.procedure_id, slot.conduct_id, slot.recorded_at.tzinfo is None) == (*_ids(conduct), False)

    async def test_what_fills_no_slot_is_not_found(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(0))
        await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, captured_value=3))
        assert await self.slots(case, conduct) == []

    async def test_closing_finds_what_the_main_list_and_closing_left(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.capture_value(conduct.at(0), "offset", 3.2)
        await case.capture_value(conduct.at(0, closing=True), "residual", 0.1)
        found = await case.ledger.slots(*_ids(conduct), 0, 0)
        assert [(slot.slot, slot.closing) for slot in found] == [("offset", False), ("residual", True)]

    async def test_closing_a_loop_finds_what_the_last_pass_left(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.capture_value(conduct.at(0, 1), "offset", 3.2)
        await case.capture_value(conduct.at(1, 1), "angle", 7)
        await case.capture_value(conduct.at(0, 2), "offset", 0.3)
        await case.capture_value(conduct.at(0, closing=True), "residual", 0.1)
        assert await self.slots(case, conduct) == [("offset", 0.3), ("residual", 0.1)]
        await case.begin_step(conduct.at(0, 3))
        assert await self.slots(case, conduct) == [("residual", 0.1)], "the last pass has left nothing"

    async def test_earlier_conducts_have_left_what_stands_before_the_boundary(self, case: LedgerCase) -> None:
        first = await case.open_conduct()
        await case.capture_value(first.at(2), "offset", 3.2)
        await case.capture_value(first.at(5), "angle", 7)
        conduct = await case.resume_conduct(first, 5)
        assert await self.slots(case, conduct, boundary=5) == [("offset", 3.2)]
        assert await self.slots(case, conduct, boundary=6) == [("angle", 7), ("offset", 3.2)]
        assert await self.slots(case, conduct, boundary=0) == []

    async def test_later_fillings_win(self, case: LedgerCase) -> None:
        first = await case.open_conduct()
        await case.capture_value(first.at(2), "offset", 3.2)
        second = await case.resume_conduct(first, 0)
        await case.capture_value(second.at(2), "offset", 0.9)
        third = await case.resume_conduct(second, 3)
        assert await self.slots(case, third, boundary=3) == [("offset", 0.9)]
        await case.capture_value(third.at(4), "offset", 0.3)
        assert await self.slots(case, third, boundary=3) == [("offset", 0.3)]

    async def test_what_closing_left_in_an_earlier_conduct_is_gone(self, case: LedgerCase) -> None:
        first = await case.open_conduct()
        await case.capture_value(first.at(0, closing=True), "residual", 0.1)
        conduct = await case.resume_conduct(first, 5)
        assert await self.slots(case, conduct, boundary=5) == []

    async def test_a_pass_that_begins_anew_finds_nothing_of_earlier_ones(self, case: LedgerCase) -> None:
        first = await case.open_conduct()
        await case.capture_value(first.at(0, 1), "offset", 3.2)
        conduct = await case.resume_conduct(first)
        assert await self.slots(case, conduct, 2) == []

    async def test_closing_alone_finds_what_the_last_passes_of_a_loop_left(self, case: LedgerCase) -> None:
        first = await case.open_conduct()
        await case.capture_value(first.at(0, 1), "offset", 3.2)
        await case.capture_value(first.at(0, 2), "offset", 0.3)
        conduct = await case.resume_conduct(first)
        assert await self.slots(case, conduct, boundary=10) == [("offset", 0.3)]

    async def test_captures_and_outputs_of_one_name_are_apart(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.capture_value(conduct.at(0), "centre", 3.2)
        await case.publish_artifact(conduct.at(1), "centre", "file:///centre.h5")
        assert await self.slots(case, conduct) == [("centre", 3.2), ("centre", "file:///centre.h5")]

    async def test_other_procedures_have_slots_of_their_own(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        other = await case.open_conduct()
        await case.capture_value(other.at(0), "offset", 3.2)
        assert await self.slots(case, conduct, boundary=10) == []

    async def test_slots_are_also_found_as_rows_of_their_relation(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.capture_value(conduct.at(0), "offset", 3.2)
        await case.publish_artifact(conduct.at(1), "image", "file:///a.h5")
        async with case.client.store.session() as session:
            found: Any = await session.records(FilledSlot, {"procedure_id": conduct.procedure_id})
        assert sorted(found, key=lambda slot: slot.slot) == sorted(
            await case.ledger.slots(*_ids(conduct), 0, 0), key=lambda slot: slot.slot
        )


class TestTally:
    async def tally(self, case: LedgerCase, conduct: LedgerConduct, iteration_index: int = 0) -> Any:
        return await case.ledger.tally(conduct.conduct_id, iteration_index)

    async def outcome(self, case: LedgerCase, place: Any, kind: str = "setpoint", **says: Any) -> None:
        await case.ledger.settle(row(place, Mark.OUTCOME, kind=kind, **says))

    async def test_a_conduct_that_did_nothing_brought_nothing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        tally = await self.tally(case, conduct)
        assert (tally.measurements, tally.artifacts, tally.outputs, tally.substrate_writes) == ((), (), {}, {})
        assert (tally.actuation_kind, tally.closing_failures) == (None, ())

    async def test_measurements_and_artifacts_are_those_of_the_given_pass_in_the_order_of_steps(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        for iteration, index, value in [(1, 0, 3.2), (2, 3, 9.0), (2, 1, 0.9)]:
            await self.outcome(
                case,
                conduct.at(index, iteration),
                "compute",
                measurements=[measurement("offset", value)],
                artifacts=[artifact(f"file:///{value}")],
            )
        tally = await self.tally(case, conduct, 2)
        assert [item.value for item in tally.measurements] == [0.9, 9.0]
        assert [item.uri for item in tally.artifacts] == ["file:///0.9", "file:///9.0"]
        assert tally.measurements[0] == Measured(name="offset", value=0.9, kind="Scalar", units="px", quality="Good")

    async def test_what_closing_measured_is_not_among_them(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        closing = conduct.at(0, closing=True)
        await self.outcome(
            case, closing, "compute", measurements=[measurement("offset", 1)], artifacts=[artifact("file:///a")]
        )
        await case.publish_artifact(closing, "image", "file:///a")
        tally = await self.tally(case, conduct)
        assert (tally.measurements, tally.artifacts, tally.outputs) == ((), (), {})

    async def test_outputs_are_found_by_name(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.publish_artifact(conduct.at(0), "dark", "file:///dark.h5")
        await case.publish_artifact(conduct.at(1), "flat", "file:///flat.h5")
        tally = await self.tally(case, conduct)
        assert {name: found.uri for name, found in tally.outputs.items()} == {
            "dark": "file:///dark.h5",
            "flat": "file:///flat.h5",
        }

    async def test_a_failed_deposit_publishes_nothing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.ledger.settle(row(conduct.at(0), Mark.DEPOSIT, kind="compute", **failure("DuplicateOutput")))
        tally = await self.tally(case, conduct)
        assert (tally.outputs, tally.closing_failures) == ({}, ())

    async def test_writes_are_in_the_order_of_the_first_and_hold_the_last(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        for iteration, (address, value) in enumerate([("bl7:x", 1), ("bl7:a", 2), ("bl7:x", 3)], 1):
            await self.outcome(case, conduct.at(0, iteration), address=address, value=value)
        await self.outcome(case, conduct.at(0, closing=True), address="bl7:shutter", value=0)
        await self.outcome(case, conduct.at(1, closing=True), address="bl7:a", value=9)
        written = (await self.tally(case, conduct, 3)).substrate_writes
        assert list(written.items()) == [("bl7:x", 3), ("bl7:a", 9), ("bl7:shutter", 0)]

    async def test_what_failed_before_it_was_sent_has_written_nothing(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await self.attempt(case, conduct.at(1), 1)
        await self.outcome(case, conduct.at(1), address="bl7:x", value=1, **failure("ControlNotConnectedError"))
        await self.outcome(case, conduct.at(2), "check", address="bl7:x", value=1)
        assert (await self.tally(case, conduct)).substrate_writes == {}

    async def attempt(self, case: LedgerCase, place: Any, value: Any, attempt: int = 1, address: str = "bl7:x") -> None:
        """Mark that a write begins."""
        marker = row(place, Mark.IN_FLIGHT, attempt, address=address, value=value)
        assert (await case.ledger.begin(begin_request(place, marker=marker, again=attempt > 1))).marked

    async def test_a_write_of_which_nothing_is_known_but_its_beginning_is_of_unknown_outcome(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await self.outcome(case, conduct.at(0), address="bl7:x", value=49.0)
        await self.attempt(case, conduct.at(1), 50.0)
        written = (await self.tally(case, conduct)).substrate_writes
        assert written == {"bl7:x": {"outcome": "unknown", "values": [49.0, 50.0]}}

    async def test_an_attempt_before_the_one_that_failed_may_have_been_written(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await self.outcome(case, conduct.at(0), address="bl7:x", value=49.0)
        for attempt in (1, 2):
            await self.attempt(case, conduct.at(1), 50.0, attempt)
        lost = row(conduct.at(1), Mark.OUTCOME, 2, address="bl7:x", value=50.0, **failure("ControlNotConnectedError"))
        await case.ledger.settle(lost)
        written = (await self.tally(case, conduct)).substrate_writes
        assert written == {"bl7:x": {"outcome": "unknown", "values": [49.0, 50.0]}}

    async def test_a_write_that_was_sent_and_never_confirmed_is_of_unknown_outcome(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await self.attempt(case, conduct.at(0), 1)
        await self.outcome(case, conduct.at(0), address="bl7:x", value=1, sent=True, **failure("ControlTimeoutError"))
        written = (await self.tally(case, conduct)).substrate_writes
        assert written == {"bl7:x": {"outcome": "unknown", "values": [1]}}

    async def test_a_later_attempt_that_was_confirmed_settles_it(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        for attempt in (1, 2):
            await self.attempt(case, conduct.at(0), 50.0, attempt)
        await case.ledger.settle(row(conduct.at(0), Mark.OUTCOME, 2, address="bl7:x", value=50.0))
        assert (await self.tally(case, conduct)).substrate_writes == {"bl7:x": 50.0}

    async def test_a_later_write_to_the_same_address_settles_it_too(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await self.attempt(case, conduct.at(0), 1)
        await self.outcome(case, conduct.at(0), address="bl7:x", value=1, sent=True, **failure("ControlTimeoutError"))
        await self.attempt(case, conduct.at(0, closing=True), 0)
        await self.outcome(case, conduct.at(0, closing=True), address="bl7:x", value=0)
        assert (await self.tally(case, conduct)).substrate_writes == {"bl7:x": 0}

    async def test_a_value_that_was_there_already_is_not_in_doubt(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await self.outcome(case, conduct.at(0), address="bl7:x", value=5)
        await self.attempt(case, conduct.at(1), 5)
        assert (await self.tally(case, conduct)).substrate_writes == {"bl7:x": 5}

    async def test_what_was_read_back_stands_beside_what_was_written(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        read = {"post_reading": {"value": 100.0, "kind": "Scalar", "units": "mm"}}
        await self.outcome(case, conduct.at(0), address="bl7:x", value=500, verify=True, deviates=True, **read)
        await self.outcome(
            case, conduct.at(1), address="bl7:a", value=1, verify={"tolerance": 1, "address": "bl7:a:RBV"}, **read
        )
        tally = await self.tally(case, conduct)
        assert tally.substrate_writes == {
            "bl7:x": {"written": 500, "read": 100.0, "unit": "mm"},
            "bl7:a": {"written": 1, "read": 100.0, "unit": "mm", "read_from": "bl7:a:RBV"},
        }
        deviation = {"step_index": 0, "closing": False, "address": "bl7:x", "asked": 500, "read": 100.0, "unit": "mm"}
        assert [one.model_dump() for one in tally.deviations] == [deviation]

    async def test_what_was_written_and_did_not_take_was_written(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await self.attempt(case, conduct.at(0), 500)
        read = {"post_reading": {"value": 100.0, "kind": "Scalar"}, "verify": {"tolerance": 1}, "confirmed": True}
        facts = {"facts": {"asked": 500, "read": 100.0}}
        await self.outcome(
            case, conduct.at(0), address="bl7:x", value=500, **read, **facts, **failure("SetpointNotReachedError")
        )
        tally = await self.tally(case, conduct)
        assert tally.substrate_writes == {"bl7:x": {"written": 500, "read": 100.0}}
        assert tally.failure is not None
        assert tally.failure.facts == {"asked": 500, "read": 100.0}

    async def test_what_was_tried_since_it_was_read_back_is_in_doubt(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        read = {"post_reading": {"value": 49.0, "kind": "Scalar"}, "verify": True}
        await self.outcome(case, conduct.at(0), address="bl7:x", value=49.0, **read)
        await self.attempt(case, conduct.at(1), 50.0)
        written = (await self.tally(case, conduct)).substrate_writes
        assert written == {"bl7:x": {"outcome": "unknown", "values": [49.0, 50.0]}}

    async def test_what_an_action_sent_and_saw_no_confirmation_of_is_told_so(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        says = {"writes": [["bl7:x", 1], ["bl7:a", 2]], "unconfirmed": [["bl7:x", 3], ["bl7:x", 4], ["bl7:cam", 1]]}
        await self.outcome(case, conduct.at(0), "action", **says, **failure("ControlTimeoutError"))
        assert (await self.tally(case, conduct)).substrate_writes == {
            "bl7:x": {"outcome": "unknown", "values": [1, 3, 4]},
            "bl7:a": 2,
            "bl7:cam": {"outcome": "unknown", "values": [1]},
        }

    async def test_what_an_action_wrote_counts(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await self.outcome(case, conduct.at(0), "action", writes=[["bl7:x", 1], ["bl7:cam", "Idle"], ["bl7:a", 3]])
        await self.outcome(case, conduct.at(1), address="bl7:cam", value="Done")
        await self.outcome(case, conduct.at(2), "action", writes=[])
        await self.outcome(case, conduct.at(3), "action", writes=[["bl7:a", 4]], **failure("RuntimeError"))
        written = (await self.tally(case, conduct)).substrate_writes
        assert list(written.items()) == [("bl7:x", 1), ("bl7:cam", "Done"), ("bl7:a", 4)]

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ([1, 2, 3], {"kind": "Array", "shape": [3]}),
            ([[1, 2], [3, 4], [5, 6]], {"kind": "Array", "shape": [3, 2]}),
            ([], {"kind": "Array", "shape": [0]}),
            ({"energy": [1], "counts": [2]}, {"kind": "Tabular", "shape": [2]}),
            ({"kind": "Array", "shape": [5000]}, {"kind": "Array", "shape": [5000]}),
            ("in", None),
            (2.5, None),
            (True, None),
            (None, None),
        ],
    )
    async def test_what_is_no_scalar_is_given_by_kind_shape_and_row(
        self, case: LedgerCase, conduct: LedgerConduct, value: Any, shown: dict[str, Any] | None
    ) -> None:
        place, other = conduct.at(0), conduct.at(1)
        await self.outcome(case, place, address="bl7:x", value=value)
        await self.outcome(case, other, "compute", measurements=[measurement("offset", value)])
        tally = await self.tally(case, conduct)
        written, found = tally.substrate_writes["bl7:x"], tally.measurements[0].value
        if shown is None:
            assert written is found is value or written == found == value
        else:
            assert written == {**shown, "entry_id": str(place.row_id(Mark.OUTCOME, 1))}
            assert found == {**shown, "entry_id": str(other.row_id(Mark.OUTCOME, 1))}

    @pytest.mark.parametrize(
        ("kinds", "merged"),
        [
            (["Physical", "Physical"], ActuationKind.PHYSICAL),
            (["Simulated"], ActuationKind.SIMULATED),
            (["Physical", "Simulated"], ActuationKind.HYBRID),
            (["Hybrid", "Physical"], ActuationKind.HYBRID),
            ([], None),
        ],
    )
    async def test_kinds_are_merged_over_all_passes_without_closing(
        self, case: LedgerCase, conduct: LedgerConduct, kinds: list[str], merged: ActuationKind | None
    ) -> None:
        for iteration, kind in enumerate(kinds, 1):
            await self.outcome(case, conduct.at(0, iteration), "check", actuation_kind=kind)
        await self.outcome(case, conduct.at(1, 1), "check")
        await self.outcome(case, conduct.at(0, closing=True), "check", actuation_kind="Simulated")
        assert (await self.tally(case, conduct, len(kinds))).actuation_kind is merged

    async def test_every_failure_of_closing_is_told_in_order(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await self.outcome(case, conduct.at(0), **failure("ControlTimeoutError"))
        await self.outcome(case, conduct.at(2, closing=True), **failure("ControlWriteRejectedError"))
        await self.outcome(case, conduct.at(1, closing=True), address="bl7:a", value=1)
        await self.outcome(case, conduct.at(0, closing=True), "compute")
        await case.ledger.settle(
            row(conduct.at(0, closing=True), Mark.DEPOSIT, kind="compute", **failure("DuplicateOutput"))
        )
        told = (await self.tally(case, conduct)).closing_failures
        assert [(one.step_index, one.source_kind, one.error_class) for one in told] == [
            (0, "compute", "DuplicateOutput"),
            (2, "setpoint", "ControlWriteRejectedError"),
        ]
        assert told[1] == Failure(
            step_index=2,
            source_kind="setpoint",
            target="bl7:shutter",
            error_class="ControlWriteRejectedError",
            message="It did not.",
        )

    async def test_nothing_of_another_conduct_is_among_it(self, case: LedgerCase) -> None:
        first = await case.open_conduct()
        await self.outcome(case, first.at(0), address="bl7:x", value=1, actuation_kind="Physical")
        await case.publish_artifact(first.at(1), "image", "file:///a.h5")
        tally = await self.tally(case, await case.resume_conduct(first, 5))
        assert (tally.substrate_writes, tally.outputs, tally.actuation_kind) == ({}, {}, None)


def measurement(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "kind": "Scalar", "units": "px", "quality": "Good"}


def artifact(uri: str) -> dict[str, Any]:
    return {"uri": uri, "checksum_algorithm": "sha256", "checksum_value": "0" * 64, "byte_size": 1}


def failure(error_class: str) -> dict[str, Any]:
    return {"result": "failed", "target": "bl7:shutter", "error_class": error_class, "message": "It did not."}


def _ids(conduct: LedgerConduct) -> Any:
    return conduct.procedure_id, conduct.conduct_id
