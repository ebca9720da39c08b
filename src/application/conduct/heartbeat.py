"""Work that is heard of while it goes on, and that hears what the record says to it."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from baton.application.conduct.ledger import ConductSignals
from baton.application.ports import StoreUnavailableError
from baton.domain.operation.conduct.messages import ConductVerdict

T = TypeVar("T")

HEARTBEAT_SECONDS = 1.0
"""Seconds between two signs of life."""
LOST_AFTER_SECONDS = 6.0
"""Seconds after which whoever does a step counts as lost."""
STOP_AFTER_SECONDS = LOST_AFTER_SECONDS / 2
"""Seconds without a sign of life after which work stops itself, well before anybody takes it for lost."""


class Attempt(Protocol):
    """One try at a piece of work, which the engine may cancel and have tried again."""

    def alive(self) -> None:
        """Let the engine know that the try goes on."""
        ...

    @property
    def called_off(self) -> bool:
        """Whether the work is not wanted any more; otherwise a cancelled try is followed by another one."""
        ...

    @property
    def given_up(self) -> bool:
        """Whether the engine has only lost sight of this try, and has another one made."""
        ...


class ActivityShield:
    """Sees work through of which the engine has lost sight: what another try finds begun, it waits for."""

    def __init__(self) -> None:
        self._unseen: set[asyncio.Task[Any]] = set()

    async def see_through(self, work: Coroutine[Any, Any, T], attempt: Attempt) -> T:
        """The result of work that is cancelled only if it is not wanted any more, or this process stops."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if attempt.given_up:
                self._unseen.add(task)
                task.add_done_callback(self._seen)
            else:
                task.cancel()
                await asyncio.wait({task})
            raise

    async def close(self) -> None:
        """Stop what still goes on."""
        unseen = list(self._unseen)
        for task in unseen:
            task.cancel()
        await asyncio.gather(*unseen, return_exceptions=True)

    def _seen(self, task: "asyncio.Task[Any]") -> None:
        self._unseen.discard(task)
        if not task.cancelled():
            task.exception()  # the try that follows finds what came of it, or that nothing did


class StoppedByRecord(Exception):
    """The record told the work to stop: an abort was asked for, or the conduct is not live any more."""

    def __init__(self, orders: ConductSignals) -> None:
        super().__init__("the record told the work to stop")
        self.orders = orders

    @property
    def verdict(self) -> ConductVerdict:
        """What that means for the conduct."""
        verdict = self.orders.verdict
        assert verdict is not None, "work is not stopped for nothing"
        return verdict


class HeartbeatLost(Exception):
    """No sign of life could be given for too long, so the work stopped itself; somebody else may take it up."""


def must_stop(orders: ConductSignals) -> bool:
    """Whether orders end work at once: an abort does, a hold waits for the end of the step."""
    return orders.verdict in (ConductVerdict.GONE, ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED)


def boot_time() -> float:
    """Return seconds by a clock that counts while this machine is suspended, too; only Linux offers one, elsewhere it does
    not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class WriteFence:
    """Lets a step act on the plant as long as its last confirmed sign of life is recent, and never again after a refusal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._confirmed_at = -math.inf
        self._closed = False
        self.refused = False
        """Whether something was not sent, whatever its sender made of that."""

    @property
    def silence(self) -> float:
        """Seconds since the last confirmed sign of life was sent."""
        return self.clock() - self._confirmed_at

    def confirm(self, sent_at: float) -> None:
        """Take note that the database has heard a sign of life that was sent at this time."""
        self._confirmed_at = sent_at

    def close(self) -> None:
        """Let nothing pass any more: the step is over, or is to stop."""
        self._closed = True

    def check(self) -> None:
        """Raise where others may have taken the step over, or where it is over."""
        if self._closed or self.refused or self.silence >= STOP_AFTER_SECONDS:
            self.refused = True
            raise HeartbeatLost("The step was not heard of for too long, so nothing was sent to the plant.")


async def run_with_heartbeat(body: Coroutine[Any, Any, T], beat: Callable[[], Coroutine[Any, Any, ConductSignals]], fence: WriteFence) -> T:
    """The result of a body, with a sign of life each second; stopped by the record, or by the lack of any sign.

    The fence knows when the work was heard of. If that is too long ago, somebody may have taken it for lost, and it is not
    begun. It is closed when the body is done or is to stop; a body that was refused a write counts as unheard of.
    """
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
            orders = await send_heartbeat(beat, max(0.1, STOP_AFTER_SECONDS - fence.silence))
            if work.done():
                continue
            if orders is not None and fence.silence <= LOST_AFTER_SECONDS:
                if must_stop(orders):
                    raise StoppedByRecord(orders)
                fence.confirm(sent_at)
            elif fence.silence >= STOP_AFTER_SECONDS:
                raise HeartbeatLost("The database could not be told that the step goes on, so it was stopped.")
    finally:
        fence.close()
        work.cancel()
        await wait_for_end(work, beat)
        if not work.cancelled():
            work.exception()  # it was raised above, or something graver was


async def wait_for_end(work: "asyncio.Future[Any]", beat: Callable[[], Coroutine[Any, Any, ConductSignals]]) -> None:
    """Wait for the end of work that nothing stops any more, with a sign of life each second."""
    while not (await asyncio.wait({work}, timeout=HEARTBEAT_SECONDS))[0]:
        await send_heartbeat(beat, HEARTBEAT_SECONDS)


async def send_heartbeat(beat: Callable[[], Coroutine[Any, Any, ConductSignals]], within: float) -> ConductSignals | None:
    """What the record says to a sign of life; None where it was not heard in time."""
    try:
        return await run_within(beat(), within)
    except (StoreUnavailableError, TimeoutError):
        return None


async def run_within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """The result of work that is not waited for any longer: what hangs may hang when it is cancelled, too."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        raise TimeoutError
    return task.result()
