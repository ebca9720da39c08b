"""Watched conducts: at every moment of their work a test may do something, or keep them waiting."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from temporalio import activity, client, worker
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from baton.application.conduct.compute import JobSpec, JobStatus
from baton.application.control import WRITE_TIMEOUT, Control, Fence, Reading, always_open
from baton.domain.operation.conduct.messages import JobRequest, PassRequest, StartPassRequest, StepRequest
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.control.simulator import Simulator
from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.conduct_stack import RecordingControl

Watcher = Callable[[ConductMoment], Awaitable[None]]

SIGNAL_TIMEOUT_SECONDS = 0.05
"""Seconds that a silent signal is waited for here, instead of half a minute."""


class ConductWatch(client.Interceptor, worker.Interceptor):
    """Calls the watcher of a procedure at every moment of its conducts, which wait for it."""

    def __init__(self) -> None:
        self.watchers: dict[UUID, Watcher] = {}
        self._doing: ContextVar[tuple[UUID, ConductMoment]] = ContextVar("doing")

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return WatchedActivity(next, self)

    async def tell(self, procedure_id: UUID, moment: ConductMoment) -> None:
        if (watcher := self.watchers.get(procedure_id)) is not None:
            await watcher(moment)

    async def tell_effect(self) -> None:
        """Call the watcher when the work in progress has come to its effect."""
        procedure_id, moment = self._doing.get()
        await self.tell(procedure_id, moment._replace(when="during"))

    def begin(self, procedure_id: UUID, moment: ConductMoment) -> None:
        self._doing.set((procedure_id, moment))


class WatchedActivity(ActivityInboundInterceptor):
    """An activity with the moments before and after it."""

    def __init__(self, next: ActivityInboundInterceptor, watch: ConductWatch) -> None:
        super().__init__(next)
        self._watch = watch

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        procedure_id, moment = moment_of(activity.info().activity_type, input.args[0])
        self._watch.begin(procedure_id, moment)
        await self._watch.tell(procedure_id, moment)
        answer = await super().execute_activity(input)
        await self._watch.tell(procedure_id, moment._replace(when="after"))
        return answer


def moment_of(what: str, request: Any) -> tuple[UUID, ConductMoment]:
    """The moment before a piece of work, by what the work was told."""
    match request:
        case StepRequest(place=place) | JobRequest(place=place):
            return place.procedure_id, ConductMoment("before", what, place.iteration_index, place.closing, place.step_index)
        case StartPassRequest(passes=count) | PassRequest(iteration_index=count):
            return request.procedure_id, ConductMoment("before", what, count)
    return request.procedure_id, ConductMoment("before", what, 0)


class WatchedControl(RecordingControl):
    """A control that calls the watcher before each effect, on a plant whose readings a test can script."""

    def __init__(self, control: Control, plant: Simulator, watch: ConductWatch) -> None:
        super().__init__(control)
        self._plant = plant
        self._watch = watch
        self.series: dict[str, list[Any]] = {}
        """What signals read one after the other."""
        self.arrives: dict[str, Any] = {}
        """What signals come to as soon as somebody follows them."""
        self.breaks: set[str] = set()
        """The signals that are lost as soon as somebody follows them."""
        self.lost: set[str] = set()

    async def read(self, address: str) -> Reading:
        await self._watch.tell_effect()
        if coming := self.series.get(address):
            self._plant.set_reading(address, Reading(value=coming.pop(0)))
        return await super().read(address)

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        self.writes.append((address, value))
        await self._watch.tell_effect()
        await self._control.write(address, value, wait, SIGNAL_TIMEOUT_SECONDS, fence)

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        if address in self.breaks:
            self.lose(address)
        elif address in self.arrives:
            self._plant.set_reading(address, Reading(value=self.arrives[address]))
        async with aclosing(super().subscribe(address)) as readings:
            async for reading in readings:
                yield reading

    def lose(self, address: str) -> None:
        """Lose a signal, until it is set again."""
        self._plant.simulate_disconnect(address)
        self.lost.add(address)


class WatchedCompute(SimulatedCompute):
    """Programs that call the watcher when they begin and end; some cannot be begun, and `refusing` says why."""

    def __init__(self, watch: ConductWatch, refusing: Callable[[JobSpec], Exception | None]) -> None:
        super().__init__()
        self._watch = watch
        self._refusing = refusing

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        await self._watch.tell_effect()
        if (refusal := self._refusing(job)) is not None:
            raise refusal
        return await super().submit(job, fence)

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        await self._watch.tell_effect()
        return await super().await_terminal_state(job_id)


@dataclass
class Gate:
    """Keeps a conduct waiting until it is opened, and says when one waits."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_until_open(self) -> None:
        self.reached.set()
        while not self.opened.is_set():
            activity.heartbeat()
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.opened.wait()
