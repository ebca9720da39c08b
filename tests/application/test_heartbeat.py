"""Work that gives signs of life: who hears of it, what stops it, and what becomes of it then."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from baton.application.conduct.heartbeat import STOPPING, HeartbeatLost, StoppedByRecord, WriteFence, run_with_heartbeat
from baton.application.ports import StoreUnavailableError
from baton.domain.conduct.signals import ConductSignals
from baton.domain.procedure.procedure import PendingRequest
from baton.domain.run.run import RunStatus
from tests.support.fast_clock import LoopTime

GO_ON = ConductSignals()
Beat = Callable[[], Coroutine[Any, Any, ConductSignals]]


class Pulse:
    """What is heard of the work, and what it hears."""

    def __init__(self, time: LoopTime, *answers: Any) -> None:
        self._time = time
        self._answers = list(answers)
        self.beats: list[float] = []

    async def __call__(self) -> ConductSignals:
        """Answer in turn as told, the last answer again and again."""
        self.beats.append(self._time.elapsed_seconds)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, ConductSignals):
            await answer()
            return GO_ON
        return answer


class Work:
    """Something that takes long, and some time to stop."""

    def __init__(self, time: LoopTime, seconds: float = 1000, stopping: float = 0) -> None:
        self._time = time
        self._seconds = seconds
        self._stopping = stopping
        self.begun = False
        self.stopped: float | None = None

    async def do(self) -> str:
        self.begun = True
        try:
            await self._time.sleep(self._seconds)
        except asyncio.CancelledError:
            await self._time.sleep(self._stopping)
            self.stopped = self._time.elapsed_seconds
            raise
        return "done"


def unavailable() -> Exception:
    return StoreUnavailableError("The database cannot be reached.")


async def never() -> None:
    await asyncio.Event().wait()


def attend(body: Any, beat: Beat) -> Any:
    """Work that is attended from now on."""
    return run_with_heartbeat(body, beat, fence_of(asyncio.get_running_loop().time))


def fence_of(clock: Callable[[], float], silence: float = 0) -> WriteFence:
    """A fence of work that was last heard of so many seconds ago."""
    fence = WriteFence(clock)
    fence.confirm(clock() - silence)
    return fence


async def test_short_work_is_done_without_a_sign(time: LoopTime) -> None:
    pulse = Pulse(time, GO_ON)
    assert await attend(Work(time, 0.25).do(), pulse) == "done"
    assert (time.elapsed_seconds, pulse.beats) == (0.25, [])


async def test_long_work_gives_two_signs_each_second(time: LoopTime) -> None:
    pulse = Pulse(time, GO_ON)
    assert await attend(Work(time, 2.75).do(), pulse) == "done"
    assert pulse.beats == [0.5, 1, 1.5, 2, 2.5]


async def test_what_it_fails_with_passes(time: LoopTime) -> None:
    async def fail_later() -> None:
        await time.sleep(1.5)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await attend(fail_later(), Pulse(time, GO_ON))


@pytest.mark.parametrize(
    ("live", "asked", "run"), list(product([True, False], [None, *PendingRequest], [None, *RunStatus])), ids=str
)
def test_an_abort_or_the_end_of_the_conduct_stops_work_and_nothing_else(
    live: bool, asked: PendingRequest | None, run: RunStatus | None
) -> None:
    grave = not live or asked is PendingRequest.ABORT or run is RunStatus.ABORTED
    assert (ConductSignals(live=live, asked=asked, run=run).verdict in STOPPING) is grave


async def test_work_that_is_countermanded_has_stopped_before_anybody_is_told(time: LoopTime) -> None:
    work, orders = Work(time, stopping=20), ConductSignals(asked=PendingRequest.ABORT)
    with pytest.raises(StoppedByRecord) as stopped:
        await attend(work.do(), Pulse(time, GO_ON, orders))
    assert stopped.value.verdict is orders.verdict
    assert (work.stopped, time.elapsed_seconds) == (21, 21)


async def test_a_hold_lets_work_end(time: LoopTime) -> None:
    assert await attend(Work(time, 10).do(), Pulse(time, ConductSignals(asked=PendingRequest.HOLD))) == "done"


async def test_what_is_done_when_the_order_comes_is_done(time: LoopTime) -> None:
    async def slow() -> ConductSignals:
        await time.sleep(0.5)
        return ConductSignals(asked=PendingRequest.ABORT)

    assert await attend(Work(time, 0.75).do(), slow) == "done"


@pytest.mark.parametrize("answer", [unavailable(), never], ids=["unreachable", "no answer"])
async def test_work_that_is_not_heard_of_for_three_seconds_stops_itself(time: LoopTime, answer: Any) -> None:
    work = Work(time)
    with pytest.raises(HeartbeatLost):
        await attend(work.do(), Pulse(time, GO_ON, GO_ON, answer))
    assert work.stopped == 4, "it was last heard of at one"


async def test_one_sign_in_time_is_enough(time: LoopTime) -> None:
    silent = [unavailable()] * 5
    pulse = Pulse(time, *silent, GO_ON, *silent, GO_ON, *silent, GO_ON)
    assert await attend(Work(time, 12).do(), pulse) == "done"


@pytest.mark.parametrize(("seconds", "goes_on"), [(3, True), (10, False)])
async def test_a_worker_that_was_taken_for_lost_meanwhile_stops(time: LoopTime, seconds: float, goes_on: bool) -> None:
    """A process that stood still: another one may be at the same work since the fourth second."""
    suspended: list[float] = []

    async def suspend_once() -> None:
        if not suspended:
            suspended.append(seconds)
            time.suspend(seconds)

    work = Work(time, 60)
    attending = attend(work.do(), Pulse(time, GO_ON, suspend_once))
    if goes_on:
        assert await attending == "done"
        return
    with pytest.raises(HeartbeatLost):
        await attending
    assert work.stopped == 1 + seconds


async def test_cancelling_it_waits_until_the_work_has_stopped(time: LoopTime) -> None:
    work = Work(time, stopping=3)
    attending = asyncio.create_task(attend(work.do(), Pulse(time, GO_ON)))
    await time.sleep(1.5)
    attending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attending
    assert work.stopped == 4.5


async def test_what_it_does_to_stop_is_heard_of(time: LoopTime) -> None:
    work, pulse = Work(time, stopping=8), Pulse(time, GO_ON, ConductSignals(asked=PendingRequest.ABORT))
    with pytest.raises(StoppedByRecord):
        await attend(work.do(), pulse)
    assert work.stopped == 9
    until_it_stopped = [half / 2 for half in range(1, 18)]
    assert pulse.beats in (until_it_stopped, [*until_it_stopped, 9.0]), "one is due at the very moment at which it stops"


async def test_a_sign_that_does_not_even_end_when_it_is_cancelled_is_left_behind(time: LoopTime) -> None:
    async def hang() -> None:
        try:
            await never()
        except asyncio.CancelledError:
            await time.sleep(10)
            raise

    work = Work(time)
    with pytest.raises(HeartbeatLost):
        await attend(work.do(), Pulse(time, GO_ON, GO_ON, hang))
    assert work.stopped == 4


async def test_what_was_marked_too_long_ago_is_not_begun(time: LoopTime) -> None:
    work, pulse = Work(time), Pulse(time, GO_ON)
    with pytest.raises(HeartbeatLost):
        await run_with_heartbeat(work.do(), pulse, fence_of(asyncio.get_running_loop().time, silence=3))
    assert (work.begun, pulse.beats) == (False, [])


class TestTheFence:
    """What work may still send to the plant."""

    async def test_it_is_open_until_the_last_sign_is_three_seconds_old(self, time: LoopTime) -> None:
        fence = fence_of(lambda: time.elapsed_seconds)
        time.suspend(2.9)
        fence.check()
        time.suspend(0.1)
        with pytest.raises(HeartbeatLost):
            fence.check()

    def test_it_is_closed_before_anything_was_heard(self) -> None:
        with pytest.raises(HeartbeatLost):
            WriteFence(lambda: 0.0).check()

    async def test_what_was_refused_once_stays_refused(self, time: LoopTime) -> None:
        fence = fence_of(lambda: time.elapsed_seconds, silence=4)
        with pytest.raises(HeartbeatLost):
            fence.check()
        fence.confirm(time.elapsed_seconds)
        with pytest.raises(HeartbeatLost):
            fence.check()

    async def test_a_sign_counts_from_when_it_was_sent(self, time: LoopTime) -> None:
        """An answer that was long on its way says nothing of the time since."""
        fence = fence_of(lambda: time.elapsed_seconds)

        async def slow() -> ConductSignals:
            await time.sleep(1.5)
            return GO_ON

        work = asyncio.create_task(run_with_heartbeat(Work(time).do(), slow, fence))
        await time.sleep(2.6)
        assert fence.silence == pytest.approx(2.1)
        work.cancel()

    async def test_a_machine_that_was_suspended_is_noticed_although_the_loop_has_not_counted_it(
        self, time: LoopTime
    ) -> None:
        asleep = 0.0
        fence = fence_of(lambda: time.elapsed_seconds + asleep)
        sent: list[float] = []

        async def body() -> None:
            await time.sleep(0.25)
            fence.check()
            sent.append(time.elapsed_seconds)
            await time.sleep(10)

        async def late() -> ConductSignals:
            nonlocal asleep
            asleep = 60.0
            return GO_ON

        with pytest.raises(HeartbeatLost):
            await run_with_heartbeat(body(), late, fence)
        assert (sent, time.elapsed_seconds) == ([0.25], 0.5), "the answer to its sign came a minute after it was sent"

    async def test_a_body_that_makes_light_of_a_refusal_is_stopped_nevertheless(self, time: LoopTime) -> None:
        fence = fence_of(lambda: time.elapsed_seconds)

        async def body() -> str:
            time.suspend(8)
            with suppress(HeartbeatLost):
                fence.check()
            return "all is well"

        with pytest.raises(HeartbeatLost):
            await run_with_heartbeat(body(), Pulse(time, GO_ON), fence)

    async def test_a_body_that_goes_on_after_a_refusal_is_stopped_within_a_second(self, time: LoopTime) -> None:
        fence, work = fence_of(lambda: time.elapsed_seconds), Work(time)

        async def body() -> str:
            time.suspend(4)
            with suppress(HeartbeatLost):
                fence.check()
            return await work.do()

        with pytest.raises(HeartbeatLost):
            await run_with_heartbeat(body(), Pulse(time, GO_ON), fence)
        assert work.stopped is not None
        assert work.stopped <= 5

    async def test_what_a_body_left_behind_finds_it_closed(self, time: LoopTime) -> None:
        fence = fence_of(lambda: time.elapsed_seconds)
        assert await run_with_heartbeat(Work(time, 0.5).do(), Pulse(time, GO_ON), fence) == "done"
        with pytest.raises(HeartbeatLost):
            fence.check()

    async def test_it_is_closed_while_a_body_is_stopped(self, time: LoopTime) -> None:
        fence, open_then = fence_of(lambda: time.elapsed_seconds), []

        async def body() -> None:
            try:
                await time.sleep(10)
            finally:
                with suppress(HeartbeatLost):
                    fence.check()
                    open_then.append(time.elapsed_seconds)

        with pytest.raises(StoppedByRecord):
            await run_with_heartbeat(body(), Pulse(time, ConductSignals(asked=PendingRequest.ABORT)), fence)
        assert open_then == []
