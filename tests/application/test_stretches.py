"""Steps that one activity does: each with its own two rows and its own look at the record, as if it were done alone."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from baton.application.authorization import PrincipalStatuses
from baton.application.conduct.ledger import BeginRequest, BeginResult
from baton.application.conduct.step_execution import STRETCH_SECONDS, StepRunner
from baton.application.ports import StoreUnavailableError
from baton.domain.access.actor import ActorDeactivated, ActorKind, ActorRegistered
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductVerdict, Mark, NextStep, StepReport, StretchRequest
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.run.run import RunAborted, RunHeld, RunStopped
from baton.testing.ledger import MemoryLedger
from baton.testing.store import MemoryStore
from tests.support.application.memory_conduct import (
    ELSEWHERE,
    ENDING,
    MemoryConduct,
    OpenedConduct,
    RevocablePermits,
    WorkAttempt,
    memory_conduct,
)
from tests.support.fast_clock import LoopTime
from tests.support.infrastructure.ledger_cases import row
from tests.support.workflows.step_json import action, capture, captured_value, check, setpoint

DONE, FAILED, GONE = ConductVerdict.DONE, ConductVerdict.FAILED, ConductVerdict.GONE
STEPS = [setpoint("bl7:a", value) for value in range(1, 6)]
COUNT = len(STEPS)
Interference = Callable[[], Awaitable[Any]]


class InterferingLedger(MemoryLedger):
    """A ledger before which something happens when a step is about to begin, or when an outcome is about to be stored."""

    before_begin: dict[int, Interference]
    before_settle: dict[int, Interference]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.before_begin, self.before_settle = {}, {}
        self.calls: list[str] = []

    async def begin(self, request: BeginRequest) -> BeginResult:
        self.calls.append(f"begin {request.place.step_index}")
        await self._interfere(self.before_begin, request.place.step_index)
        return await super().begin(request)

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        self.calls.append(f"settle {row.step_index}")
        await self._interfere(self.before_settle, row.step_index)
        return await super().settle(row)

    async def _interfere(self, with_: dict[int, Interference], step_index: int | None) -> None:
        if step_index is not None and (interference := with_.pop(step_index, None)) is not None:
            await interference()


@pytest.fixture
def memory(time: LoopTime) -> MemoryConduct:
    store = MemoryStore()
    permits = RevocablePermits(PrincipalStatuses(store))
    return memory_conduct(time, store=store, permits=permits, make_ledger=InterferingLedger)


def ledger_of(memory: MemoryConduct) -> InterferingLedger:
    assert isinstance(memory.ledger, InterferingLedger)
    return memory.ledger


async def do_stretch(
    memory: MemoryConduct,
    conduct: OpenedConduct,
    count: int = COUNT,
    first: int = 0,
    *,
    closing: bool = False,
    by: StepRunner | None = None,
    attempt: WorkAttempt | None = None,
) -> StepReport:
    """Do so many steps as one activity."""
    place = conduct.at(first, closing=closing)
    await memory.reach(conduct, place, {})
    return await (by or memory.steps).do_stretch(StretchRequest(place=place, count=count), attempt or WorkAttempt())


def marks(memory: MemoryConduct) -> list[tuple[int | None, str | None]]:
    """The step and the mark of every row, in the order in which they were written."""
    return [(row.step_index, row.mark) for row in memory.activities()]


def both_rows(*indices: int) -> list[tuple[int, str]]:
    return [(index, mark) for index in indices for mark in ("in_flight", "outcome")]


class TestAllIsWell:
    async def test_every_step_has_its_two_rows_in_order(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct(STEPS)
        report = await do_stretch(memory, conduct)
        assert (report.verdict, report.done_count, report.next_step) == (DONE, COUNT, None)
        assert marks(memory) == both_rows(*range(COUNT))
        assert (await memory.value("bl7:a"), memory.plant.writes["bl7:a"]) == (5, COUNT)
        assert not memory.steps.at_work

    async def test_it_ends_where_it_was_told_and_says_what_comes_next(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([*STEPS, action("park")])
        report = await do_stretch(memory, conduct, 3)
        assert (report.done_count, report.next_step) == (3, NextStep(label="set bl7:a", timeout_seconds=70, stretch_count=2))
        report = await do_stretch(memory, conduct, 2, first=3)
        assert (report.done_count, report.next_step) == (2, NextStep(label="do park", timeout_seconds=3600))

    async def test_it_ends_when_it_takes_long(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", value) for value in (0.9, 1.8, 2.7, 3.6, 4.5)])
        attempt = WorkAttempt()
        report = await do_stretch(memory, conduct, attempt=attempt)
        assert (report.verdict, report.done_count) == (DONE, 4)
        assert [*dict.fromkeys(attempt.places)][:3] == ["step 1", "step 2", "step 3"], "the engine is told how far it came"
        assert memory.time.elapsed_seconds >= STRETCH_SECONDS
        assert report.next_step == NextStep(label="set bl7:x", timeout_seconds=35)
        assert marks(memory) == both_rows(0, 1, 2, 3), "what was done is stored before it is told"

    async def test_a_step_sees_what_an_earlier_one_of_the_same_stretch_captured(self, memory: MemoryConduct) -> None:
        steps = [
            setpoint("bl7:c", 7),
            capture("bl7:c", "n"),
            setpoint("bl7:a", captured_value("n")),
            setpoint("bl7:c", 9),
            capture("bl7:c", "m"),
            check("bl7:c", captured_value("m")),
            setpoint("bl7:a", captured_value("m")),
        ]
        conduct = await memory.open_conduct(steps)
        report = await do_stretch(memory, conduct, len(steps))
        assert (report.verdict, report.done_count) == (DONE, len(steps))
        written = [row["value"] for row in memory.rows() if row.get("address") == "bl7:a" and row["result"] == "ok"]
        assert (written, await memory.value("bl7:a")) == ([7, 9], 9)

    async def test_steps_without_an_effect_have_one_row_each(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([capture("bl7:b", "n"), check("bl7:b", 1.5), capture("bl7:b", "m")])
        assert (await do_stretch(memory, conduct, 3)).done_count == 3
        assert marks(memory) == [(0, "outcome"), (1, "outcome"), (2, "outcome")]

    async def test_an_outcome_is_stored_with_the_next_beginning(self, memory: MemoryConduct) -> None:
        conduct, ledger = await memory.open_conduct(STEPS), ledger_of(memory)
        await do_stretch(memory, conduct)
        assert ledger.calls == ["begin 0", *(f"{what} {k + d}" for k in range(4) for what, d in WITH_NEXT), "settle 4"]

    async def test_what_was_done_is_not_done_again(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct(STEPS)
        first = await do_stretch(memory, conduct)
        for repeated in (False, True):
            attempt = WorkAttempt(is_repeated=repeated)
            assert await do_stretch(memory, conduct, by=memory.worker(), attempt=attempt) == first
        assert (marks(memory), memory.plant.writes["bl7:a"]) == (both_rows(*range(COUNT)), COUNT)

    async def test_nothing_but_quick_steps_is_done(self, memory: MemoryConduct) -> None:
        done: list[int] = []
        memory.actions["park"] = lambda *given: done.append(1)  # type: ignore[assignment,return-value]
        conduct = await memory.open_conduct([STEPS[0], action("park")])
        assert (await do_stretch(memory, conduct, 2)).verdict is GONE
        assert (marks(memory), done) == (both_rows(0), [])


WITH_NEXT = (("settle", 0), ("begin", 1))
REQUESTS: dict[str, tuple[Callable[[MemoryConduct, OpenedConduct], Awaitable[Any]], ConductVerdict]] = {
    "hold": (
        lambda memory, conduct: memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id),
        ConductVerdict.HOLD,
    ),
    "abort": (lambda memory, conduct: memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id), ConductVerdict.ABORT),
    "standing lost": (
        lambda memory, conduct: memory.append_events(memory.caller.principal_id, ActorDeactivated()),
        ConductVerdict.STOOD_DOWN,
    ),
    "run held": (
        lambda memory, conduct: memory.append_events(run_of(conduct), RunHeld(reason=None, decided_by_decision_id=None)),
        ConductVerdict.RUN_HELD,
    ),
    "run stopped": (
        lambda memory, conduct: memory.append_events(run_of(conduct), RunStopped(reason="enough", **ENDING)),
        ConductVerdict.RUN_STOPPED,
    ),
    "run aborted": (
        lambda memory, conduct: memory.append_events(run_of(conduct), RunAborted(reason="smoke", **ENDING)),
        ConductVerdict.RUN_ABORTED,
    ),
}


def run_of(conduct: OpenedConduct) -> Any:
    assert conduct.plan.run_id is not None
    return conduct.plan.run_id


async def open_phase(memory: MemoryConduct, closing: bool = False) -> OpenedConduct:
    """A phase whose submitter is on record."""
    await memory.append_events(memory.caller.principal_id, ActorRegistered(kind=ActorKind.HUMAN))
    if closing:
        return await memory.open_conduct([setpoint("bl7:c", 1)], STEPS, run_id=await memory.run())
    return await memory.open_conduct(STEPS, run_id=await memory.run())


class TestBetweenTwoSteps:
    @pytest.mark.parametrize("what", REQUESTS)
    @pytest.mark.parametrize("at", range(COUNT))
    async def test_what_is_said_is_in_force_at_the_next_step(self, memory: MemoryConduct, what: str, at: int) -> None:
        conduct, (say, verdict) = await open_phase(memory), REQUESTS[what]
        ledger_of(memory).before_begin[at] = lambda: say(memory, conduct)
        report = await do_stretch(memory, conduct)
        assert (report.verdict, report.done_count) == (verdict, at)
        assert marks(memory) == both_rows(*range(at)), "the step before it is stored, the next one is not begun"
        assert memory.plant.writes.get("bl7:a", 0) == at
        assert not memory.steps.at_work

    @pytest.mark.parametrize("at", range(COUNT))
    async def test_a_held_run_leaves_the_walk_at_the_step_that_was_not_begun(self, memory: MemoryConduct, at: int) -> None:
        conduct, (hold, _) = await open_phase(memory), REQUESTS["run held"]
        ledger_of(memory).before_begin[at] = lambda: hold(memory, conduct)
        report = await do_stretch(memory, conduct)
        assert report.next_step is not None, "the walk goes on there once the run does"
        assert report.next_step == memory.steps.describe(conduct.plan.steps, at)

    @pytest.mark.parametrize("what", REQUESTS)
    @pytest.mark.parametrize("at", range(COUNT))
    async def test_of_closing_steps_only_an_abort_stops_the_rest(self, memory: MemoryConduct, what: str, at: int) -> None:
        conduct, (say, verdict) = await open_phase(memory, closing=True), REQUESTS[what]
        await memory.mark_list_done(conduct)
        ledger_of(memory).before_begin[at] = lambda: say(memory, conduct)
        report = await do_stretch(memory, conduct, closing=True)
        aborted = verdict in (ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED)
        assert (report.verdict, report.done_count) == ((verdict, at) if aborted else (DONE, COUNT))
        assert memory.plant.writes.get("bl7:a", 0) == (at if aborted else COUNT)

    @pytest.mark.parametrize("at", range(1, COUNT))
    async def test_what_is_said_while_a_step_goes_on_is_in_force_at_the_next(self, memory: MemoryConduct, at: int) -> None:
        conduct, (hold, _) = await open_phase(memory), REQUESTS["hold"]
        ledger_of(memory).before_settle[at - 1] = lambda: hold(memory, conduct)
        report = await do_stretch(memory, conduct)
        assert (report.verdict, report.done_count) == (ConductVerdict.HOLD, at)


class TestFailures:
    @pytest.mark.parametrize("at", range(COUNT))
    async def test_a_step_that_fails_ends_it(self, memory: MemoryConduct, at: int) -> None:
        steps = [*STEPS[:at], check("bl7:b", 99), *STEPS[at + 1 :]]
        conduct = await memory.open_conduct(steps)
        report = await do_stretch(memory, conduct)
        assert report.failure is not None
        assert (report.verdict, report.done_count, report.failure.step_index) == (FAILED, at, at)
        assert marks(memory) == [*both_rows(*range(at)), (at, "outcome")]
        assert (await memory.ledger.tally(conduct.conduct_id, 0)).completed_count == at

    async def test_of_closing_steps_all_are_done(self, memory: MemoryConduct) -> None:
        closing = [setpoint("bl7:absent", 1), STEPS[1], check("bl7:b", 99), STEPS[3]]
        conduct = await memory.open_conduct(STEPS[:1], closing)
        await memory.mark_list_done(conduct)
        report = await do_stretch(memory, conduct, len(closing), closing=True)
        assert (report.verdict, report.done_count) == (DONE, len(closing))
        failures = (await memory.ledger.tally(conduct.conduct_id, 0)).closing_failures
        assert [failure.step_index for failure in failures] == [0, 2]

    async def test_a_closing_step_that_fails_last_has_been_passed(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct(STEPS[:1], [STEPS[1], setpoint("bl7:absent", 1)])
        await memory.mark_list_done(conduct)
        report = await do_stretch(memory, conduct, 2, closing=True)
        assert (report.verdict, report.done_count, report.next_step) == (FAILED, 2, None)


class AwayLedger(InterferingLedger):
    """A ledger whose database goes away with the beginning of a step, and comes back after a while."""

    away = False

    def go_away(self, seconds: float) -> Interference:
        async def interfere() -> None:
            self.away = True
            asyncio.get_running_loop().call_later(seconds, setattr, self, "away", False)

        return interfere

    async def begin(self, request: BeginRequest) -> BeginResult:
        result_of = super().begin
        await self._interfere(self.before_begin, request.place.step_index)
        self._refuse()
        return await result_of(request)

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        self._refuse()
        return await super().settle(row)

    async def settle_and_begin(self, row: Activity, request: BeginRequest) -> tuple[Mapping[str, Any], BeginResult]:
        await self._interfere(self.before_begin, request.place.step_index)
        self._refuse()
        return await super().settle_and_begin(row, request)

    async def beat(self, *given: Any) -> Any:
        self._refuse()
        return await super().beat(*given)

    def _refuse(self) -> None:
        if self.away:
            raise StoreUnavailableError("The database cannot be reached.")


class TestAStoreThatIsAway:
    @pytest.mark.parametrize("at", range(COUNT))
    async def test_between_two_steps_what_was_done_is_stored_and_another_try_goes_on(self, time: LoopTime, at: int) -> None:
        memory = memory_conduct(time, make_ledger=AwayLedger)
        conduct, ledger = await memory.open_conduct(STEPS), memory.ledger
        assert isinstance(ledger, AwayLedger)
        ledger.before_begin[at] = ledger.go_away(20)
        with pytest.raises(StoreUnavailableError):
            await do_stretch(memory, conduct)
        assert marks(memory) == both_rows(*range(at)), "its outcome is known nowhere else, and was waited for"
        assert not memory.steps.at_work
        await time.sleep(30)
        report = await do_stretch(memory, conduct, by=memory.worker())
        assert (report.verdict, report.done_count) == (DONE, COUNT)
        assert memory.plant.writes["bl7:a"] == COUNT, "nothing was written twice"


class TestCancellation:
    async def test_what_was_done_is_stored_and_what_went_on_is_cut_off(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([*STEPS[:2], setpoint("bl7:x", 20), STEPS[3]])
        attempt = WorkAttempt(is_cancelled=True)
        running = asyncio.create_task(do_stretch(memory, conduct, 4, attempt=attempt))
        await memory.time.sleep(2.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marks(memory) == both_rows(0, 1, 2)
        assert [row["result"] for row in memory.rows() if row["result"] != "in_flight"] == ["ok", "ok", "failed"]
        assert memory.rows()[-1]["error_class"] == "CancelledError"
        assert not memory.steps.at_work

    @pytest.mark.parametrize("at", range(1, COUNT))
    async def test_between_two_steps_what_was_done_is_stored(self, memory: MemoryConduct, at: int) -> None:
        conduct = await memory.open_conduct(STEPS)
        running: asyncio.Task[Any]

        async def cancel() -> None:
            running.cancel()
            await asyncio.sleep(0)

        ledger_of(memory).before_settle[at - 1] = cancel
        running = asyncio.create_task(do_stretch(memory, conduct))
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marks(memory) == both_rows(*range(at))
        assert not memory.steps.at_work

    async def test_a_try_that_the_engine_has_lost_sight_of_is_seen_through(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([*STEPS[:2], setpoint("bl7:x", 8), STEPS[3]])
        running = asyncio.create_task(do_stretch(memory, conduct, 4, attempt=WorkAttempt(is_abandoned=True)))
        await memory.time.sleep(2.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        report = await do_stretch(memory, conduct, 4)
        assert (report.verdict, report.done_count) == (DONE, 4)
        assert (memory.plant.writes["bl7:x"], memory.plant.writes["bl7:a"]) == (1, 3)


class TestRepetition:
    @pytest.mark.parametrize("at", range(COUNT + 1))
    async def test_another_try_goes_on_behind_what_was_done(self, memory: MemoryConduct, at: int) -> None:
        conduct, ledger = await memory.open_conduct(STEPS), ledger_of(memory)
        if at:
            await do_stretch(memory, conduct, at)
        ledger.calls.clear()
        report = await do_stretch(memory, conduct, attempt=WorkAttempt(is_repeated=True))
        assert (report.verdict, report.done_count, report.next_step) == (DONE, COUNT, None)
        assert (marks(memory), memory.plant.writes["bl7:a"]) == (both_rows(*range(COUNT)), COUNT)
        assert ledger.calls[0] == f"begin {min(at, COUNT - 1)}", "what was done is not looked at one by one"

    async def test_a_step_that_failed_fails_it_again(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([STEPS[0], check("bl7:b", 99), STEPS[2]])
        first = await do_stretch(memory, conduct, 3)
        again = await do_stretch(memory, conduct, 3, attempt=WorkAttempt(is_repeated=True))
        assert (first, again.verdict, again.done_count) == (again, FAILED, 1)


class TestTwoWorkers:
    async def test_on_the_same_stretch_every_step_is_done_once(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct(STEPS)
        workers = memory.steps, memory.worker()
        reports = await asyncio.gather(*(do_stretch(memory, conduct, by=worker) for worker in workers))
        assert [(report.verdict, report.done_count) for report in reports] == [(DONE, COUNT)] * 2
        assert sorted(marks(memory)) == both_rows(*range(COUNT))
        assert memory.plant.writes["bl7:a"] == COUNT
        assert [bool(worker.at_work) for worker in workers] == [False, False]

    async def test_a_stretch_of_a_dead_worker_goes_on_at_the_step_that_was_begun_last(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([*STEPS[:2], setpoint("bl7:x", 1), STEPS[3]])
        lost = asyncio.create_task(do_stretch(memory, conduct, 4, by=memory.worker(ELSEWHERE)))
        await memory.time.sleep(0.5)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        assert marks(memory) == [*both_rows(0, 1), (2, "in_flight")]
        memory.dead.add(ELSEWHERE)
        report = await do_stretch(memory, conduct, 4)
        assert (report.verdict, report.done_count) == (DONE, 4)
        assert (memory.plant.writes["bl7:a"], memory.plant.writes["bl7:x"]) == (3, 2)

    @pytest.mark.parametrize("at", range(1, COUNT))
    async def test_where_another_has_settled_that_a_step_failed_nothing_more_is_begun(
        self, memory: MemoryConduct, at: int
    ) -> None:
        """The outcome that was stored first counts, also for the worker that did the step well but too late."""
        conduct = await memory.open_conduct(STEPS)

        async def fail() -> None:
            says = {"target": "bl7:a", "error_class": "ControlTimeoutError", "message": "No.", "result": "failed"}
            await memory.ledger.settle(row(conduct.at(at - 1), Mark.OUTCOME, 2, **says))

        ledger_of(memory).before_settle[at - 1] = fail
        report = await do_stretch(memory, conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.step_index, report.done_count) == (FAILED, at - 1, at - 1)
        assert memory.plant.writes["bl7:a"] == at
        assert marks(memory) == both_rows(*range(at))
