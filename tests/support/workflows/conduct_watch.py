"""Watched conducts: at every moment of their work a test may do something, or keep them waiting."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from temporalio import activity, client, worker
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from baton.application.conduct.compute import JobSpec, JobStatus
from baton.application.conduct.ledger import BeginRequest, BeginResult
from baton.application.control import WRITE_TIMEOUT, Control, Fence, Reading, always_open
from baton.domain.conduct.messages import JobRequest, PassRequest, StartPassRequest, StepPlace, StepRequest, StretchRequest
from baton.domain.procedure.activity_logbook import Activity
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.conduct_stack import RecordingControl

Watcher = Callable[[ConductMoment], Awaitable[None]]

SIGNAL_TIMEOUT_SECONDS = 0.05
"""Seconds that a silent signal is waited for here, instead of half a minute."""


class ConductWatch(client.Interceptor, worker.Interceptor):
    """Calls the watcher of a procedure at every moment of its conducts, which wait for it."""

    def __init__(self) -> None:
        self.watchers: dict[UUID, Watcher] = {}
        self._doing: ContextVar[CurrentWork] = ContextVar("doing")

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return WatchedActivity(next, self)

    async def tell(self, procedure_id: UUID, moment: ConductMoment) -> None:
        if (watcher := self.watchers.get(procedure_id)) is not None:
            await watcher(moment)

    async def tell_effect(self) -> None:
        """Call the watcher when the work in progress has come to its effect."""
        doing = self._doing.get()
        await self.tell(doing.procedure_id, doing.moment._replace(when="during"))

    async def begin(self, procedure_id: UUID, moment: ConductMoment) -> "CurrentWork":
        """Note what is done now; the steps of a stretch are told one by one."""
        doing = CurrentWork(procedure_id, moment)
        self._doing.set(doing)
        if moment.what != "do_steps":
            await self.tell(procedure_id, moment)
        return doing

    async def begin_step(self, place: StepPlace) -> None:
        """Call the watcher before a step of a stretch, once."""
        doing, moment = self._doing.get(), moment_at(place)
        if doing.is_stretch and doing.moment != moment:
            await self.end_step(doing)
            doing.moment = moment
            await self.tell(doing.procedure_id, moment)

    async def end_step(self, doing: "CurrentWork") -> None:
        if doing.moment.what != "do_steps":
            await self.tell(doing.procedure_id, doing.moment._replace(when="after"))


class CurrentWork:
    """The activity that runs, and the moment that it has come to."""

    def __init__(self, procedure_id: UUID, moment: ConductMoment) -> None:
        self.procedure_id = procedure_id
        self.moment = moment
        self.is_stretch = moment.what == "do_steps"


class WatchedLedger(PostgresLedger):
    """A ledger that calls the watcher before each step of a stretch."""

    def __init__(self, store: PostgresStore, watch: ConductWatch) -> None:
        super().__init__(store)
        self._watch = watch

    async def begin(self, request: BeginRequest) -> BeginResult:
        await self._watch.begin_step(request.place)
        return await super().begin(request)

    async def settle_and_begin(self, row: Activity, request: BeginRequest) -> tuple[Mapping[str, Any], BeginResult]:
        await self._watch.begin_step(request.place)
        return await super().settle_and_begin(row, request)


class WatchedActivity(ActivityInboundInterceptor):
    """An activity with the moments before and after it."""

    def __init__(self, next: ActivityInboundInterceptor, watch: ConductWatch) -> None:
        super().__init__(next)
        self._watch = watch

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        procedure_id, moment = moment_of(activity.info().activity_type, input.args[0])
        doing = await self._watch.begin(procedure_id, moment)
        answer = await super().execute_activity(input)
        await self._watch.end_step(doing)
        return answer


def moment_of(what: str, request: Any) -> tuple[UUID, ConductMoment]:
    """The moment before a piece of work, by what the work was told."""
    match request:
        case StepRequest(place=place) | JobRequest(place=place) | StretchRequest(place=place):
            return place.procedure_id, moment_at(place, what)
        case StartPassRequest(passes=count) | PassRequest(iteration_index=count):
            return request.procedure_id, ConductMoment("before", what, count)
    return request.procedure_id, ConductMoment("before", what, 0)


def moment_at(place: StepPlace, what: str = "do_step") -> ConductMoment:
    """The moment before something is done about a step."""
    return ConductMoment("before", what, place.iteration_index, place.closing, place.step_index)


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
