"""Work that sends a heartbeat while it runs, and that the record can stop."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from baton.application.ports import StoreUnavailableError
from baton.domain.conduct.messages import ConductVerdict
from baton.domain.conduct.signals import ConductSignals

T = TypeVar("T")
Beat = Callable[[], Coroutine[Any, Any, ConductSignals]]  # sends a heartbeat, and returns what the record says
# the verdicts that end work at once: an abort does, a hold waits for the end of the step
STOPPING = (ConductVerdict.GONE, ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED)
HEARTBEAT_SECONDS = 0.5
ENGINE_BEAT_SECONDS = 1.0  # between two heartbeats to the engine, each of which costs it a write
LOST_AFTER_SECONDS = 4.0  # silence after which others take a step's worker for lost
PULSE_SECONDS, STILL_SECONDS = 0.25, 1.0  # between two beats of a process, and between two of one that stood still
STOP_AFTER_SECONDS = LOST_AFTER_SECONDS - 1  # silence after which work stops itself, well before others take it for lost


class Attempt(Protocol):
    """One attempt at a piece of work, which the engine may cancel and retry."""

    def heartbeat(self, place: str | None = None) -> None:
        """Tell the engine that the attempt is alive, and where it is."""

    @property
    def is_repeated(self) -> bool:
        """Return whether an earlier attempt may have done a part of it."""

    @property
    def is_cancelled(self) -> bool:
        """Return whether the work is not wanted any more; otherwise another attempt follows a cancelled one."""

    @property
    def is_abandoned(self) -> bool:
        """Return whether the engine has only lost sight of this attempt, and makes another one."""


class ActivityShield:
    """Finishes work that the engine has lost sight of: another attempt finds it begun and waits for it."""

    def __init__(self) -> None:
        self._abandoned: set[asyncio.Task[object]] = set()

    async def run(self, work: Coroutine[object, object, T], attempt: Attempt) -> T:
        """Return the result of work that is cancelled only if it is not wanted any more, or this process stops."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if attempt.is_abandoned:
                self._abandoned.add(task)
                task.add_done_callback(self._discard)
            else:
                task.cancel()
                await asyncio.wait({task})
            raise

    async def close(self) -> None:
        """Stop what still runs."""
        for task in self._abandoned:
            task.cancel()
        await asyncio.gather(*self._abandoned, return_exceptions=True)

    def _discard(self, task: "asyncio.Task[Any]") -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # the next attempt finds its outcome, or that there is none


@dataclass
class Beats:
    """Heartbeats to the engine, and the place that they name."""

    place: str | None = None


@asynccontextmanager
async def keep_beating(attempt: Attempt) -> AsyncIterator[Beats]:
    """Tell the engine regularly that this process works on an attempt; what it may do, only the ledger says."""
    beats = Beats()

    async def beat() -> None:
        while True:
            await asyncio.sleep(ENGINE_BEAT_SECONDS)
            attempt.heartbeat(beats.place)

    beating = asyncio.create_task(beat())
    try:
        yield beats
    finally:
        beating.cancel()


class StoppedByRecord(Exception):
    """The record stopped the work: an abort was asked for, or the conduct is not live any more."""

    def __init__(self, verdict: ConductVerdict) -> None:
        super().__init__("the record stopped the work")
        self.verdict = verdict


class WaitSkipped(Exception):
    """A person has ended the wait of a check, and put its outcome into the ledger."""


class HeartbeatLost(Exception):
    """No heartbeat could be sent for too long, so the work stopped itself; another worker may take over."""


def boot_time() -> float:
    """Return seconds by a clock that also counts while this machine is suspended, where there is one (on Linux)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Pulse:
    """Beats while this process runs, so that it can tell whether it stood still: suspended, or too busy to do anything."""

    def __init__(self, clock: Callable[[], float] = boot_time) -> None:
        self._clock = clock
        self._beat_at = clock()
        self._woken = 0  # how often it went on after standing still

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self._beat()
            await asyncio.sleep(PULSE_SECONDS)

    def begin(self) -> Callable[[], bool]:
        """Return what says whether this process stood still since now."""
        self._beat()
        before = self._woken

        def stood_still() -> bool:
            self._beat()
            return self._woken > before

        return stood_still

    def _beat(self) -> None:
        now = self._clock()
        self._woken += now - self._beat_at >= STILL_SECONDS
        self._beat_at = now


class WriteFence:
    """Lets a step act on the plant while its last confirmed heartbeat is recent, and never again after a refusal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._confirmed_at = -math.inf
        self._closed = False
        self.refused = False  # whether a write was refused, whatever its sender made of that

    @property
    def silence(self) -> float:
        """Return the seconds since the last confirmed heartbeat was sent."""
        return self.clock() - self._confirmed_at

    def confirm(self, sent_at: float) -> None:
        """Record that the database has received a heartbeat that was sent at this time."""
        self._confirmed_at = sent_at

    def without_writes(self) -> "WriteFence":
        """Return a fence with the same heartbeats, for what comes before or behind the step's own effect."""
        other = WriteFence(self.clock)
        other.confirm(self._confirmed_at)
        return other

    def close(self) -> None:
        """Refuse every further write: the step is over, or must stop."""
        self._closed = True

    def check(self) -> None:
        """Raise HeartbeatLost where another worker may have taken the step over, or where it is over."""
        if self._closed or self.refused or self.silence >= STOP_AFTER_SECONDS:
            self.refused = True
            raise HeartbeatLost("The step was not heard of for too long, so nothing was sent to the plant.")


async def run_with_heartbeat(body: Coroutine[object, object, T], beat: Beat, fence: WriteFence) -> T:
    """Return the result of a body that sends heartbeats; stop it by the record, or for lack of a heartbeat. If
    the fence's last heartbeat is too old, another worker may have taken over, and the body does not begin. The fence is
    closed when the body is done or must stop; a body that was refused a write counts as one without heartbeat."""
    if fence.silence >= STOP_AFTER_SECONDS:
        body.close()
        raise HeartbeatLost("The step was marked as begun too long ago, so it was not begun.")
    work = asyncio.ensure_future(body)
    try:
        while True:
            done, _ = await asyncio.wait({work}, timeout=HEARTBEAT_SECONDS)
            if fence.refused:
                raise HeartbeatLost("The step was not heard of when it was to write, so it was stopped.")
            if done:
                return work.result()
            sent_at = fence.clock()
            signals = await send_heartbeat(beat, max(0.1, STOP_AFTER_SECONDS - fence.silence))
            if work.done():
                continue
            if signals is not None and fence.silence <= LOST_AFTER_SECONDS:
                if signals.verdict is not None and signals.verdict in STOPPING:
                    raise StoppedByRecord(signals.verdict)
                fence.confirm(sent_at)
            elif fence.silence >= STOP_AFTER_SECONDS:
                raise HeartbeatLost("The database could not be told that the step continues, so it was stopped.")
    finally:
        fence.close()
        work.cancel()
        await wait_for_end(work, beat)
        if not work.cancelled():
            work.exception()  # it was raised above, or something graver was


async def wait_for_end(work: "asyncio.Future[Any]", beat: Beat) -> None:
    """Wait for the end of work that nothing stops any more, with heartbeats."""
    while not (await asyncio.wait({work}, timeout=HEARTBEAT_SECONDS))[0]:
        await send_heartbeat(beat, HEARTBEAT_SECONDS)


async def send_heartbeat(beat: Beat, within: float) -> ConductSignals | None:
    """Return what the record answers to a heartbeat; None where it did not answer in time."""
    try:
        return await run_within(beat(), within)
    except (StoreUnavailableError, TimeoutError):
        return None


async def run_within(work: Coroutine[object, object, T], seconds: float) -> T:
    """Return the result of work, or raise TimeoutError at once: what hangs may also hang when it is cancelled."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        raise TimeoutError
    return task.result()
