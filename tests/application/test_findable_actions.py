"""An action that a site makes findable: begun once, collected by any worker, paused and stopped where that is asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from baton.application.conduct.actions import (
    ActionCall,
    ActionHeld,
    ActionOutcomeUnknown,
    ActionResult,
    FindableAction,
    NotBegun,
    Token,
    Wish,
)
from baton.application.conduct.plan_executors import PlanExecutorBusyError
from baton.domain.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, JobRequest, StepRequest
from baton.domain.step.results import ActuationKind, Measured
from tests.support.application.memory_conduct import MemoryConduct, OpenedConduct, WorkAttempt, memory_conduct
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import action


@dataclass
class Firing:
    """One firing in a kiln elsewhere."""

    seconds_left: float
    paused: bool = False
    stopped: bool = False


@dataclass
class Kiln:
    """A kiln elsewhere, which outlives every worker and counts what it was told to fire."""

    time: LoopTime
    firings: dict[str, Firing] = field(default_factory=dict)
    starts: int = 0
    forgets: bool = False
    busy: bool = False

    def fire(self, key: str, seconds: float) -> None:
        self.starts += 1
        self.firings[key] = Firing(seconds)

    async def run(self) -> None:
        while True:
            await self.time.sleep(1)
            for firing in self.firings.values():
                if not firing.paused and not firing.stopped:
                    firing.seconds_left -= 1


@dataclass(frozen=True)
class Fire:
    """A site's own action, which fires the kiln."""

    kiln: Kiln
    loses_answers: bool = False

    async def submit(self, call: ActionCall) -> str:
        if self.kiln.busy:
            raise PlanExecutorBusyError("The kiln is full; wait until it is empty.", {"kiln": "east"})
        call.fence()
        self.kiln.fire(str(call.key), call.params["seconds"])
        if self.loses_answers:
            await asyncio.get_running_loop().create_future()
        return str(call.key)

    async def find(self, call: ActionCall) -> str | NotBegun | None:
        if self.kiln.forgets:
            return None
        return str(call.key) if str(call.key) in self.kiln.firings else NotBegun({"note": "again"})

    async def collect(self, call: ActionCall, job_id: str) -> ActionResult:
        firing = self.kiln.firings[job_id]
        while firing.seconds_left > 0:
            if firing.stopped:
                raise ActionOutcomeUnknown("The firing ended early, and nobody knows how hot it was.")
            if call.wish() is Wish.STOP:
                break
            if call.wish() is Wish.HOLD:
                firing.paused = True
                raise ActionHeld
            await call.time.sleep(0.5)
        hottest = Measured(name="hottest", value=1200.0, kind="Scalar", units="degC", quality="Good")
        return ActionResult({"fired": firing.seconds_left <= 0}, (hottest,))

    async def stop(self, call: ActionCall, job_id: str) -> None:
        self.kiln.firings[job_id].stopped = True

    async def resume(self, call: ActionCall, job_id: str) -> None:
        self.kiln.firings[job_id].paused = False


class PreparedFire(Fire):
    """The same action with a token, which says in which book the firing is."""

    actuation_kind = ActuationKind.SIMULATED

    async def prepare(self, call: ActionCall) -> Token:
        return {"book": len(self.kiln.firings)}


@pytest.fixture
async def kiln(time: LoopTime) -> AsyncIterator[Kiln]:
    kiln = Kiln(time)
    running = asyncio.create_task(kiln.run())
    yield kiln
    running.cancel()


@pytest.fixture
def memory(time: LoopTime, kiln: Kiln) -> MemoryConduct:
    return memory_conduct(time, actions={"fire": Fire(kiln), "prepared": PreparedFire(kiln)})


def fire(seconds: float = 30, name: str = "fire") -> dict[str, Any]:
    return action(name, seconds=seconds)


async def left_by_lost_worker(memory: MemoryConduct, kiln: Kiln, name: str = "fire") -> OpenedConduct:
    """A conduct whose worker died between the beginning of the firing and its answer."""
    kinds = {"fire": Fire, "prepared": PreparedFire}
    losing = memory_conduct(memory.time, store=memory.store, actions={name: kinds[name](kiln, loses_answers=True)})
    conduct = await memory.open_conduct([fire(name=name)])
    dying = asyncio.create_task(losing.worker("gone/3/3").do(StepRequest(place=conduct.at(0)), WorkAttempt()))
    while not kiln.starts:
        await memory.time.sleep(0.1)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    memory.dead.add("gone/3/3")
    return conduct


def outcome(memory: MemoryConduct) -> Mapping[str, Any]:
    return memory.rows()[-1]


def test_what_a_site_writes_is_recognized(kiln: Kiln) -> None:
    assert isinstance(Fire(kiln), FindableAction)


async def test_it_is_begun_and_collected_in_two_rows(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await memory.open_conduct([fire()])
    assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
    assert memory.marks() == [("action", "in_flight", "in_flight"), ("action", "outcome", "ok")]
    assert outcome(memory)["result_data"] == {"fired": True}
    assert [one["name"] for one in outcome(memory)["measurements"]] == ["hottest"]
    assert (kiln.starts, memory.time.elapsed_seconds) == (1, pytest.approx(30, abs=1))


async def test_what_was_prepared_is_in_the_ledger_before_it_begins(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await memory.open_conduct([fire(1, "prepared")])
    await memory.step(conduct)
    assert (memory.rows()[0]["token"], outcome(memory)["actuation_kind"]) == ({"book": 0}, "Simulated")


@pytest.mark.parametrize("name", ["fire", "prepared"])
async def test_another_worker_finds_it_where_the_first_was_lost(memory: MemoryConduct, kiln: Kiln, name: str) -> None:
    conduct = await left_by_lost_worker(memory, kiln, name)
    report = await memory.step(conduct, attempt=WorkAttempt(is_repeated=True))
    assert (report.verdict, kiln.starts) == (ConductVerdict.DONE, 1)


async def test_what_never_began_is_begun_by_another_worker(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await left_by_lost_worker(memory, kiln)
    kiln.firings.clear()
    report = await memory.step(conduct, attempt=WorkAttempt(is_repeated=True))
    assert (report.verdict, [row["attempt"] for row in memory.rows()]) == (ConductVerdict.DONE, [1, 2, 2])
    assert memory.rows()[1]["token"] == {"note": "again"}


async def test_what_nobody_finds_has_an_unknown_outcome(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await left_by_lost_worker(memory, kiln)
    kiln.forgets = True
    report = await memory.step(conduct, attempt=WorkAttempt(is_repeated=True))
    assert report.failure is not None
    assert (report.failure.error_class, kiln.starts) == ("ActionOutcomeUnknown", 1)


async def test_the_wait_continues_in_another_worker(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await memory.open_conduct([fire()])
    begun = await memory.worker("gone/3/3").do(StepRequest(place=conduct.at(0)), WorkAttempt())
    assert begun.job_id is not None
    request = JobRequest(place=conduct.at(0), job_id=begun.job_id)
    dying = asyncio.create_task(memory.worker("gone/3/3").collect(request, WorkAttempt()))
    await memory.time.sleep(10)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    report = await memory.steps.collect(request, WorkAttempt(is_repeated=True))
    assert (report.verdict, kiln.starts) == (ConductVerdict.DONE, 1)
    assert memory.time.elapsed_seconds == pytest.approx(30, abs=1.5)


async def test_a_refusal_begins_nothing_and_may_be_tried_again(memory: MemoryConduct, kiln: Kiln) -> None:
    kiln.busy = True
    conduct = await memory.open_conduct([fire(1)], how=ConductOrHoldProcedure)
    report = await memory.step(conduct)
    assert report.failure is not None
    assert (report.failure.error_class, report.failure.facts) == ("PlanExecutorBusyError", {"kiln": "east"})
    await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.FAULTED, failure=report.failure)))
    kiln.busy = False
    resumed = await memory.live(ConductFromProcedure(re_establishment_boundary=0), conduct.procedure_id)
    assert ((await memory.step(resumed)).verdict, kiln.starts) == (ConductVerdict.DONE, 1)


async def test_a_hold_pauses_it_and_taking_up_continues_it(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await memory.open_conduct([fire()])
    held = asyncio.create_task(memory.step(conduct))
    await memory.time.sleep(10)
    await memory.do(HoldProcedure(reason="look"), conduct.procedure_id)
    assert (await held).verdict is ConductVerdict.HOLD
    assert [firing.paused for firing in kiln.firings.values()] == [True]
    assert memory.marks() == [("action", "in_flight", "in_flight")], "what is paused has no outcome yet"
    await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.HELD)))
    await memory.time.sleep(1000)
    resumed = await memory.live(ConductFromProcedure(re_establishment_boundary=0), conduct.procedure_id)
    report = await memory.step(resumed)
    assert (report.verdict, kiln.starts) == (ConductVerdict.DONE, 1)
    assert memory.time.elapsed_seconds == pytest.approx(1030, abs=5)


async def test_an_abort_stops_it(memory: MemoryConduct, kiln: Kiln) -> None:
    conduct = await memory.open_conduct([fire()])
    stopped = asyncio.create_task(memory.step(conduct))
    await memory.time.sleep(10)
    await memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
    assert (await stopped).verdict is ConductVerdict.ABORT
    assert [firing.stopped for firing in kiln.firings.values()] == [True]
    assert (outcome(memory)["error_class"], memory.time.elapsed_seconds) == ("CancelledError", pytest.approx(11, abs=1))
