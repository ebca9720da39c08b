"""What every ledger promises, asked of the one in memory and the one on PostgreSQL alike."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from baton.application.conduct.ledger import BeginRequest, ClosingRequest, ConductSignals, Precedence
from baton.application.ports import FoldedStanding
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.access.actor import DeactivateActor, RegisterActor
from baton.domain.agent.agent import AgentVersioned
from baton.domain.kernel import Event
from baton.domain.operation.conduct.messages import Mark, StepPlace
from baton.domain.operation.conduct.progress import FilledSlot, WaitingFor
from baton.domain.operation.conduct.results import ActuationKind, Failure, Measured
from baton.domain.operation.procedure.endings import AbortProcedure, CompleteProcedure, HoldProcedure
from baton.domain.operation.procedure.procedure import PendingRequest, ProcedureIterationEnded, ProcedureIterationStarted
from baton.domain.run.run import (
    RunAborted,
    RunAdjusted,
    RunCompleted,
    RunHeld,
    RunResumed,
    RunStatus,
    RunStopped,
    RunTruncated,
)
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.ledger import MemoryLedger
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import OPERATOR, CommandCaller, HandSetClock
from tests.support.databases import with_database
from tests.support.domain.world import new_id
from tests.support.infrastructure.ledger_cases import PORTS, LedgerCase, LedgerConduct, begin_request, row

NOT_RUNNING = frozenset(RunStatus) - {RunStatus.RUNNING}


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
        return LedgerCase(client, PostgresLedger(shared_store), lambda seconds: set_back(shared_database, seconds))

    async def let_pass(seconds: float) -> None:
        clock.now += timedelta(seconds=seconds)

    store = MemoryStore()
    return LedgerCase(CommandCaller(store, ports=PORTS, clock=clock), MemoryLedger(store, clock), let_pass)


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


async def request(case: LedgerCase, conduct: LedgerConduct, *requests: PendingRequest) -> None:
    """Ask these things of a live conduct."""
    for request in requests:
        command = HoldProcedure if request is PendingRequest.HOLD else AbortProcedure
        await case.client.do(command(reason="shift change"), on=conduct.procedure_id)


HOLD, ABORT = PendingRequest
ENDING: dict[str, Any] = {"decided_by_decision_id": None, "actuation_kind": None}
HELD = RunHeld(reason=None, decided_by_decision_id=None)
RESUMED = RunResumed(decided_by_decision_id=None)
ADJUSTED = RunAdjusted(
    parameters_patch={},
    effective_parameters={},
    parameters_schema_revision=1,
    reason="lower flux",
    adjusted_by=OPERATOR,
    decided_by_decision_id=None,
)
LIVES_OF_RUNS: dict[str, tuple[tuple[Event, ...], RunStatus]] = {
    "running": ((), RunStatus.RUNNING),
    "adjusted": ((ADJUSTED,), RunStatus.RUNNING),
    "held": ((HELD,), RunStatus.HELD),
    "held, adjusted": ((HELD, ADJUSTED), RunStatus.HELD),
    "resumed": ((HELD, RESUMED), RunStatus.RUNNING),
    "completed": ((RunCompleted(actuation_kind=None),), RunStatus.COMPLETED),
    "stopped": ((RunStopped(reason="enough", **ENDING),), RunStatus.STOPPED),
    "aborted": ((RunAborted(reason="smoke", **ENDING),), RunStatus.ABORTED),
    "truncated": ((RunTruncated(reason="power cut", interrupted_at=None, **ENDING),), RunStatus.TRUNCATED),
}


def run_events(name: str) -> tuple[Event, ...]:
    """Fresh events of a run's life: an event is stamped once."""
    return tuple(event.model_copy() for event in LIVES_OF_RUNS[name][0])


class TestTheSubmitter:
    """A step begins only for somebody whose streams say no more than was folded, and nothing against them."""

    async def test_a_step_begins_for_somebody_in_good_standing(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        actor_id = await case.client.create(RegisterActor(name="Mira Okafor"))
        standing = await case.ledger.begin(begin_request(conduct.at(0), submitter=FoldedStanding(actor_id, None, 1)))
        assert (standing.marked, standing.stood_down, standing.submitter_moved) == (True, False, False)

    async def test_nothing_begins_where_a_stream_has_moved(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        actor_id = await case.client.create(RegisterActor(name="Mira Okafor"))
        await case.client.do(DeactivateActor(), on=actor_id)
        standing = await case.ledger.begin(begin_request(conduct.at(0), submitter=FoldedStanding(actor_id, None, 1)))
        assert (standing.marked, standing.submitter_moved, standing.rows) == (False, True, ())

    async def test_an_agent_has_two_streams(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        agent_id = new_id()
        await case.append_events(agent_id, AgentVersioned(version="1"))
        for versions, moved in (((0, 0), True), ((0, 1), False), ((0, None), False), ((None, None), False)):
            submitter = FoldedStanding(agent_id, None, *versions)
            standing = await case.ledger.begin(begin_request(conduct.at(0), marker=None, submitter=submitter))
            assert standing.submitter_moved == moved

    async def test_nothing_begins_for_somebody_who_stood_down(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        submitter = FoldedStanding(new_id(), "principal_deactivated", 0)
        standing = await case.ledger.begin(begin_request(conduct.at(0), submitter=submitter))
        assert (standing.marked, standing.stood_down) == (False, True)
        assert (await case.ledger.begin(begin_request(conduct.at(0)))).rows == ()


class TestBeginning:
    async def test_a_step_that_nothing_stands_in_the_way_of_is_marked(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        standing = await case.ledger.begin(begin_request(conduct.at(3, iteration_index=2)))
        assert (standing.live, standing.marked, standing.rows) == (True, True, ())
        assert (standing.asked, standing.run, standing.late, standing.begun_before) == (None, None, False, False)
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


def turn(place: StepPlace, *, first: bool = False, point: Any = None, **how: Any) -> BeginRequest:
    """A step that is to begin only if it is its turn."""
    return begin_request(place, precedence=Precedence(first=first, point=point or {}), **how)


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

    async def test_closing_steps_follow_whatever_came_of_the_one_before(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        first, second = conduct.at(0, closing=True), conduct.at(1, closing=True)
        assert (await case.ledger.begin(turn(first, first=True, hold_blocks=False))).out_of_turn, "nothing closes yet"
        await case.ledger.begin_closing(ClosingRequest(procedure_id=conduct.procedure_id, conduct_id=conduct.conduct_id))
        assert (await case.ledger.begin(turn(second, hold_blocks=False))).out_of_turn
        assert (await case.ledger.begin(turn(first, first=True, hold_blocks=False))).marked
        await case.ledger.settle(row(first, Mark.OUTCOME, **failure("ControlTimeoutError")))
        assert (await case.ledger.begin(turn(second, hold_blocks=False))).marked

    async def test_no_main_step_begins_once_closing_has(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.ledger.begin_closing(ClosingRequest(procedure_id=conduct.procedure_id, conduct_id=conduct.conduct_id))
        await case.ledger.mark_walking(*_ids(conduct))
        assert (await case.ledger.begin(turn(conduct.at(0), first=True))).out_of_turn
        assert (await case.progress(conduct)).phase == "Closing"

    async def test_a_pass_is_the_open_one_and_measures_where_it_was_begun(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        point = {"focus": -2.0}
        await case.append_events(conduct.procedure_id, ProcedureIterationStarted(iteration_index=1, point=point))
        for place, said in [(conduct.at(0, 2), point), (conduct.at(0, 1), {}), (conduct.at(0, 1), {"focus": 9.0})]:
            assert (await case.ledger.begin(turn(place, first=True, point=said))).out_of_turn
        assert (await case.ledger.begin(turn(conduct.at(0, 1), first=True, point={"focus": -2}))).marked
        await case.append_events(
            conduct.procedure_id, ProcedureIterationEnded(iteration_index=1, converged=None, reason=None)
        )
        assert (await case.ledger.begin(turn(conduct.at(0, 1), first=True, point=point))).out_of_turn


class TestRequests:
    @pytest.mark.parametrize(("requests", "served"), [((HOLD,), HOLD), ((ABORT,), ABORT), ((HOLD, ABORT), ABORT)])
    async def test_nothing_is_begun_while_a_request_is_unserved(
        self, case: LedgerCase, conduct: LedgerConduct, requests: tuple[PendingRequest, ...], served: PendingRequest
    ) -> None:
        await request(case, conduct, *requests)
        standing = await case.ledger.begin(begin_request(conduct.at(0)))
        assert (standing.marked, standing.asked, standing.live) == (False, served, True)
        assert (await case.ledger.begin(begin_request(conduct.at(0), marker=None))).rows == ()

    async def test_a_hold_does_not_keep_closing_steps_from_being_done(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await request(case, conduct, HOLD)
        standing = await case.ledger.begin(begin_request(conduct.at(0, closing=True), hold_blocks=False))
        assert (standing.marked, standing.asked) == (True, None)

    async def test_an_abort_does(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await request(case, conduct, ABORT)
        standing = await case.ledger.begin(begin_request(conduct.at(0, closing=True), hold_blocks=False))
        assert (standing.marked, standing.asked) == (False, ABORT)

    async def test_what_is_asked_of_another_conduct_is_no_hindrance(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await request(case, await case.open_conduct(), ABORT)
        await case.begin_step(conduct.at(0))


class TestTheParentRun:
    @pytest.mark.parametrize("life", LIVES_OF_RUNS)
    async def test_the_main_list_goes_on_only_while_it_is_running(
        self, case: LedgerCase, conduct: LedgerConduct, life: str
    ) -> None:
        status = LIVES_OF_RUNS[life][1]
        run_id = await case.run(*run_events(life))
        standing = await case.ledger.begin(begin_request(conduct.at(0), run_id=run_id, run_blocks=NOT_RUNNING))
        assert (standing.run, standing.marked) == (status, status is RunStatus.RUNNING)

    @pytest.mark.parametrize("life", LIVES_OF_RUNS)
    async def test_closing_stops_only_where_it_was_aborted(
        self, case: LedgerCase, conduct: LedgerConduct, life: str
    ) -> None:
        status = LIVES_OF_RUNS[life][1]
        run_id, aborted = await case.run(*run_events(life)), frozenset({RunStatus.ABORTED})
        standing = await case.ledger.begin(
            begin_request(conduct.at(0, closing=True), run_id=run_id, run_blocks=aborted, hold_blocks=False)
        )
        assert (standing.run, standing.marked) == (status, status is not RunStatus.ABORTED)


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
        await case.ledger.beat(conduct.at(0), None, None)
        assert (await case.ledger.begin(begin_request(conduct.at(0), longest_pause=300))).late


class TestOnce:
    """A step that must not be done again where an earlier conduct began it."""

    @pytest.mark.parametrize("kind", ["action", "compute"])
    @pytest.mark.parametrize("mark", [Mark.IN_FLIGHT, Mark.OUTCOME])
    async def test_what_an_earlier_conduct_began_is_not_begun(self, case: LedgerCase, kind: str, mark: Mark) -> None:
        earlier = await case.open_conduct()
        if mark is Mark.IN_FLIGHT:
            await case.begin_step(earlier.at(5), kind=kind)
        else:
            await case.ledger.settle(row(earlier.at(5), mark, kind=kind))
        conduct = await case.resume_conduct(earlier)
        standing = await case.ledger.begin(begin_request(conduct.at(5), kind=kind, once=True))
        assert (standing.begun_before, standing.marked, standing.rows) == (True, False, ())

    async def test_everything_else_is(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.begin_step(earlier.at(5), kind="setpoint")
        await case.begin_step(earlier.at(6), kind="action")
        await case.begin_step(earlier.at(7, closing=True), kind="action")
        conduct = await case.resume_conduct(earlier)
        for place in (conduct.at(5), conduct.at(7), conduct.at(8)):
            await case.begin_step(place, kind="action", once=True)
        await case.begin_step(conduct.at(6), kind="action")

    async def test_what_an_earlier_conduct_left_out_was_not_begun(self, case: LedgerCase) -> None:
        earlier = await case.open_conduct()
        await case.ledger.settle(row(earlier.at(5), Mark.OUTCOME, kind="action", result="skipped"))
        conduct = await case.resume_conduct(earlier)
        assert (await case.ledger.begin(begin_request(conduct.at(5), kind="action", once=True))).marked

    async def test_what_the_conduct_itself_began_is_in_its_rows(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(5), kind="action", once=True)
        again = await case.ledger.begin(begin_request(conduct.at(5), kind="action", once=True))
        assert (again.begun_before, len(again.rows)) == (False, 1)


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
        await request(case, conduct, HOLD)
        again = await case.ledger.begin(begin_request(place, attempt=2, again=True))
        assert (again.marked, again.asked) == (False, HOLD)


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
        await case.ledger.beat(place, place.row_id(Mark.IN_FLIGHT, 1), None)
        standing = await case.ledger.begin(begin_request(place))
        assert standing.rows[0].age == pytest.approx(1000, abs=300)
        assert standing.silence == pytest.approx(0, abs=300)

    @pytest.mark.parametrize("effect_id", [None, new_id()])
    async def test_that_of_somebody_else_is_none(self, case: LedgerCase, conduct: LedgerConduct, effect_id: Any) -> None:
        place = conduct.at(0)
        await case.begin_step(place)
        await case.let_pass(1000)
        await case.ledger.beat(place, effect_id, None)
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

    @pytest.mark.parametrize(
        ("requests", "served"), [((), None), ((HOLD,), HOLD), ((ABORT,), ABORT), ((HOLD, ABORT), ABORT)]
    )
    @pytest.mark.parametrize("life", [None, "running", "held", "aborted"])
    async def test_work_in_progress_hears_what_the_record_says(
        self,
        case: LedgerCase,
        conduct: LedgerConduct,
        requests: tuple[PendingRequest, ...],
        served: PendingRequest | None,
        life: str | None,
    ) -> None:
        run_id = None if life is None else await case.run(*run_events(life))
        await request(case, conduct, *requests)
        orders = await case.ledger.beat(conduct.at(0), None, run_id)
        assert orders == ConductSignals(True, served, None if life is None else LIVES_OF_RUNS[life][1])

    async def test_and_that_it_is_not_live_any_more(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.client.do(CompleteProcedure(conducted=conduct.result), on=conduct.procedure_id)
        assert await case.ledger.beat(conduct.at(0), None, None) == ConductSignals(False)

    async def test_and_what_became_of_its_submitter(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        actor_id = await case.client.create(RegisterActor(name="Mira Okafor"))
        known = FoldedStanding(actor_id, None, 1)
        beat = partial(case.ledger.beat, conduct.at(0), None, None)
        assert await beat(known) == ConductSignals(True)
        assert await beat(replace(known, objection="principal_deactivated")) == ConductSignals(True, stood_down=True)
        await case.client.do(DeactivateActor(), on=actor_id)
        assert await beat(known) == ConductSignals(True, submitter_moved=True)
        assert await beat() == ConductSignals(True), "nobody is asked about"

    async def test_a_beat_is_seen_on_the_conduct(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        assert (await case.progress(conduct)).heartbeat_at is None
        await case.ledger.beat(conduct.at(0), None, None)
        assert (await case.progress(conduct)).heartbeat_at is not None


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


class TestClosing:
    async def close(
        self, case: LedgerCase, conduct: LedgerConduct, run_id: Any = None, may_hold: bool = True, blocks: Any = NOT_RUNNING
    ) -> ConductSignals:
        ids = {"procedure_id": conduct.procedure_id, "conduct_id": conduct.conduct_id}
        return await case.ledger.begin_closing(ClosingRequest(**ids, run_id=run_id, may_hold=may_hold, run_blocks=blocks))

    async def test_it_begins_once_nothing_is_asked_for(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await case.begin_step(conduct.at(7))
        assert await self.close(case, conduct) == ConductSignals(True)
        progress = await case.progress(conduct)
        assert (progress.phase, progress.step_index) == ("Closing", None)

    @pytest.mark.parametrize(("requests", "served"), [((HOLD,), HOLD), ((ABORT,), ABORT), ((HOLD, ABORT), ABORT)])
    async def test_what_was_asked_for_before_is_served_instead(
        self, case: LedgerCase, conduct: LedgerConduct, requests: tuple[PendingRequest, ...], served: PendingRequest
    ) -> None:
        await request(case, conduct, *requests)
        assert await self.close(case, conduct) == ConductSignals(True, served)
        assert (await case.progress(conduct)).phase == "Opened"

    async def test_a_hold_does_not_count_where_the_conduct_cannot_be_held(
        self, case: LedgerCase, conduct: LedgerConduct
    ) -> None:
        await request(case, conduct, HOLD)
        assert await self.close(case, conduct, may_hold=False) == ConductSignals(True)
        assert (await case.progress(conduct)).phase == "Closing"

    async def test_an_abort_counts_there_too(self, case: LedgerCase, conduct: LedgerConduct) -> None:
        await request(case, conduct, HOLD, ABORT)
        assert await self.close(case, conduct, may_hold=False) == ConductSignals(True, ABORT)

    @pytest.mark.parametrize("blocks", [NOT_RUNNING, frozenset({RunStatus.ABORTED})], ids=["any", "aborted"])
    @pytest.mark.parametrize("life", LIVES_OF_RUNS)
    async def test_a_run_that_blocks_it_keeps_it_from_beginning(
        self, case: LedgerCase, conduct: LedgerConduct, life: str, blocks: frozenset[RunStatus]
    ) -> None:
        status = LIVES_OF_RUNS[life][1]
        orders = await self.close(case, conduct, await case.run(*run_events(life)), blocks=blocks)
        assert orders == (ConductSignals(True, None, status) if status in blocks else ConductSignals(True))
        assert ((await case.progress(conduct)).phase == "Closing") is (status not in blocks)

    @pytest.mark.parametrize("request_", [HOLD, ABORT])
    async def test_repeated_it_has_begun_whatever_is_asked_for_since(
        self, case: LedgerCase, conduct: LedgerConduct, request_: PendingRequest
    ) -> None:
        await self.close(case, conduct)
        await case.begin_step(conduct.at(2, closing=True))
        await request(case, conduct, request_)
        assert await self.close(case, conduct) == ConductSignals(True)
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
