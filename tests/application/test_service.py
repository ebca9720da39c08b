"""Long work as its callers see it: handed to the engine, attended for a while, and never lost with either."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from baton.application.ports import EngineView, Job, WorkItem, WorkProgress
from baton.application.queries import Queries
from baton.application.service import Service
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure, TruncateProcedure
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.registry import REGISTRY
from baton.domain.shared.refusals import Conflict
from baton.domain.start.procedure_start import StartProcedure
from baton.domain.start.registration import RegisterProcedure
from baton.testing.ports import MemoryEngine
from tests.support.application.memory_conduct import MemoryConduct
from tests.support.domain.world import new_id
from tests.support.fast_clock import LoopTime
from tests.support.infrastructure.ledger_cases import PORTS
from tests.support.workflows.step_json import setpoint


@dataclass
class PreparedWork:
    """Long work that is done when a test says so, and who looked at it when."""

    time: LoopTime
    workflow: str = "conduct"
    listens: bool = False
    succeeds: bool = False
    to_tell: bool = True
    done: Mapping[str, Any] | Exception | None = None
    says: WorkProgress | None = None
    looks: list[float] = field(default_factory=list)
    jobs: list[UUID] = field(default_factory=list)

    async def job(self, work_id: UUID) -> Job | None:
        self.jobs.append(work_id)
        return Job("conduct", "conduct:one", work_id, succeeds=self.succeeds) if self.to_tell else None

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        self.looks.append(self.time.elapsed_seconds)
        if isinstance(self.done, Exception):
            raise self.done
        return self.done

    async def unfinished_ids(self) -> Sequence[UUID]:
        return ()

    async def item(self, work_id: UUID) -> WorkItem | None:
        return None

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        return self.says


@dataclass
class ServiceDesk:
    """A service, its engine, and the work that is asked of both."""

    memory: MemoryConduct
    service: Service
    engine: MemoryEngine
    work: PreparedWork

    async def procedure(self) -> UUID:
        return await self.memory.create(RegisterProcedure(name="Alignment", kind="alignment"))

    async def do(self, command: Any, on: UUID, **options: Any) -> Any:
        return await self.service.execute(command, self.memory.caller, target_id=on, **options)

    async def read_procedure(self, id: UUID) -> Any:
        """Return the procedure as anybody reads it."""
        query = REGISTRY.operations["get_procedure"].input
        return await self.service.ask(query(), self.memory.caller, target_id=id)  # type: ignore[arg-type]

    async def conduct(self, on: UUID | None = None, wait: float = 30.0, **options: Any) -> Any:
        """Ask for a conduct."""
        command = ConductProcedure(steps=(setpoint("bl7:a", 1),), wait=wait)
        return await self.do(command, on or await self.procedure(), **options)

    async def live(self) -> UUID:
        """A procedure whose conduct is under way."""
        id = await self.procedure()
        await self.conduct(id, wait=0.0)
        self.engine.started.clear()
        self.work.jobs.clear()
        return id


@pytest.fixture
def service_desk(memory: MemoryConduct, time: LoopTime) -> ServiceDesk:
    return service_desk_of(memory, time, MemoryEngine())


def service_desk_of(memory: MemoryConduct, time: LoopTime, engine: MemoryEngine) -> ServiceDesk:
    work = PreparedWork(time)
    queries = Queries(memory.store, memory.permits, time, new_id, PORTS)
    service = Service(memory.commands, queries, memory.permits, engine, {"conduct": work})
    return ServiceDesk(memory, service, engine, work)


class TestAttending:
    async def test_what_is_done_in_time_is_answered(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        asking = asyncio.create_task(service_desk.conduct())
        await time.sleep(10)
        await service_desk.procedure()
        recorded = (await service_desk.memory.store.end()).position
        service_desk.work.done = {"succeeded": True}
        executed = await asking
        assert (executed.status, executed.body, executed.replayed) == (200, {"succeeded": True}, False)
        assert time.elapsed_seconds == pytest.approx(10, abs=0.5)
        assert executed.position == recorded, "a list with this position shows what the work recorded"

    async def test_what_takes_longer_is_answered_by_its_ids(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        id = await service_desk.procedure()
        executed = await service_desk.conduct(id, wait=5.0)
        assert (executed.status, executed.body["procedure_id"]) == (202, str(id))
        assert executed.body["work_id"] == executed.body["conduct_id"]
        assert time.elapsed_seconds == 5, "not a moment longer"

    async def test_a_caller_that_does_not_wait_is_answered_at_once(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        executed = await service_desk.conduct(wait=0.0)
        assert (executed.status, time.elapsed_seconds) == (202, 0)
        assert [job.argument for job in service_desk.engine.started] == [UUID(executed.body["work_id"])], "it is under way"

    async def test_the_longer_it_takes_the_less_often_it_is_looked_at(self, service_desk: ServiceDesk) -> None:
        await service_desk.conduct(wait=30.0)
        looks = service_desk.work.looks[1:]
        gaps = [later - earlier for earlier, later in itertools.pairwise(looks)]
        assert gaps[0] == pytest.approx(0.03)
        assert gaps[5] == pytest.approx(0.03 * 1.5**5)
        assert max(gaps) == pytest.approx(0.5)
        assert gaps[:-1] == sorted(gaps[:-1]), "the last one ends with the wait"
        assert len(gaps) < 80

    async def test_the_engine_is_told_once(self, service_desk: ServiceDesk) -> None:
        await service_desk.conduct(wait=30.0)
        assert (len(service_desk.engine.started), len(service_desk.work.jobs)) == (1, 1)

    async def test_a_listener_hears_every_change_once(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        heard: list[tuple[float, WorkProgress]] = []

        async def note_progress(progress: WorkProgress) -> None:
            heard.append((time.elapsed_seconds, progress))

        asking = asyncio.create_task(service_desk.conduct(on_progress=note_progress))
        steps = [WorkProgress(done, 3, f"step {done + 1:g} of 3") for done in range(3)]
        for step in (steps[0], steps[0], steps[1], steps[2]):
            service_desk.work.says = step
            await time.sleep(2)
        service_desk.work.done = {}
        await asking
        assert [progress for _, progress in heard] == steps
        assert [moment for moment, _ in heard] == pytest.approx([0, 4, 6], abs=0.5)

    async def test_where_nothing_can_be_said_nothing_is(self, service_desk: ServiceDesk) -> None:
        async def note_progress(progress: WorkProgress) -> None:
            raise AssertionError("nothing was to be said")

        await service_desk.conduct(on_progress=note_progress)

    async def test_the_refusal_that_it_ended_with_is_raised(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        asking = asyncio.create_task(service_desk.conduct())
        await time.sleep(1)
        service_desk.work.done = Conflict("It came to nothing.", reason="nothing")
        with pytest.raises(Conflict):
            await asking


class TestRepeating:
    async def test_a_repeat_attaches_to_the_same_work(self, service_desk: ServiceDesk) -> None:
        id = await service_desk.procedure()
        first = await service_desk.conduct(id, wait=0.0, key="once")
        again = await service_desk.conduct(id, wait=0.0, key="once")
        assert (first.status, again.status, again.replayed) == (202, 202, True)
        assert again.body == first.body

    async def test_once_it_is_done_a_repeat_is_answered_at_once(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        id = await service_desk.procedure()
        await service_desk.conduct(id, wait=0.0, key="once")
        service_desk.work.done = {"succeeded": True}
        service_desk.engine.started.clear()
        service_desk.work.jobs.clear()
        again = await service_desk.conduct(id, wait=0.0, key="once")
        assert (again.status, again.body, again.replayed) == (200, {"succeeded": True}, True)
        assert (time.elapsed_seconds, service_desk.engine.started, service_desk.work.jobs) == (0, [], []), (
            "nobody is told anything"
        )


class TestWaking:
    async def test_an_engine_that_cannot_be_reached_loses_nothing(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        service_desk.engine.reachable = False
        id = await service_desk.procedure()
        executed = await service_desk.conduct(id, wait=5.0)
        assert (executed.status, time.elapsed_seconds) == (202, 5)
        procedure = await service_desk.read_procedure(id)
        assert str(procedure.live_conduct_id) == executed.body["conduct_id"]

    async def test_an_engine_that_hangs_keeps_nobody_waiting(self, memory: MemoryConduct, time: LoopTime) -> None:
        class HangingEngine(MemoryEngine):
            async def start(self, job: Job) -> bool:
                await time.sleep(5)
                return await super().start(job)

        service_desk = service_desk_of(memory, time, HangingEngine())
        id = await service_desk.procedure()
        assert (await service_desk.conduct(id, wait=0.0)).status == 202
        assert time.elapsed_seconds == 0.5
        assert (await service_desk.do(HoldProcedure(reason="shift change"), id)).status == 202
        assert time.elapsed_seconds == 1
        await time.sleep(5)
        assert len(service_desk.engine.started) == 1, "it goes on by itself"

    async def test_what_the_engine_could_not_be_told_for_no_known_reason_is_logged_and_refused_to_nobody(
        self, memory: MemoryConduct, time: LoopTime
    ) -> None:
        class BrokenEngine(MemoryEngine):
            async def start(self, job: Job) -> bool:
                raise RuntimeError("s3cret")

        service_desk = service_desk_of(memory, time, MemoryEngine())
        id = await service_desk.live()
        broken = service_desk_of(memory, time, BrokenEngine())
        with capture_logs() as lines:
            assert (await broken.do(HoldProcedure(reason="shift change"), id)).status == 202
        assert [(line["event"], line["error"]) for line in lines] == [("engine_call_failed", "RuntimeError")]
        assert "s3cret" not in str(lines)

    async def test_what_has_just_ended_is_out_of_the_way_in_a_moment(
        self, service_desk: ServiceDesk, time: LoopTime
    ) -> None:
        service_desk.work.succeeds = True
        await service_desk.engine.start(Job("conduct", "conduct:one", "the one before"))
        asking = asyncio.create_task(service_desk.conduct(wait=30.0))
        await time.sleep(0.12)
        service_desk.engine.end("conduct:one")
        await time.sleep(1)
        service_desk.work.done = {}
        executed = await asking
        assert [job.argument for job in service_desk.engine.started] == ["the one before", service_desk.work.jobs[0]]
        assert executed.status == 200

    async def test_what_stands_in_nobodys_way_is_left_alone(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        await service_desk.engine.start(Job("conduct", "conduct:one", "the same"))
        await service_desk.conduct(wait=0.0)
        assert ([job.argument for job in service_desk.engine.started], len(service_desk.work.jobs)) == (["the same"], 1)
        assert time.elapsed_seconds == 0

    async def test_where_there_is_nothing_to_tell_the_engine_is_not_told(self, service_desk: ServiceDesk) -> None:
        service_desk.work.to_tell = False
        await service_desk.conduct(wait=0.0)
        assert service_desk.engine.started == []

    @pytest.mark.parametrize("request_", [HoldProcedure, AbortProcedure])
    async def test_a_request_wakes_the_conduct_that_is_to_serve_it(self, service_desk: ServiceDesk, request_: Any) -> None:
        id = await service_desk.live()
        executed = await service_desk.do(request_(reason="shift change"), id)
        assert (executed.status, service_desk.work.jobs) == (202, [UUID(executed.body["conduct_id"])])

    @pytest.mark.parametrize("request_", [HoldProcedure, AbortProcedure])
    async def test_it_is_on_the_record_whether_or_not_the_engine_can_be_reached(
        self, service_desk: ServiceDesk, request_: Any
    ) -> None:
        id = await service_desk.live()
        service_desk.engine.reachable = False
        assert (await service_desk.do(request_(reason="shift change"), id)).status == 202

    async def test_where_no_conduct_is_live_nobody_is_woken(self, service_desk: ServiceDesk) -> None:
        id = await service_desk.procedure()
        await service_desk.do(StartProcedure(), id)
        assert (await service_desk.do(HoldProcedure(reason="shift change"), id)).status == 204
        assert (service_desk.work.jobs, service_desk.engine.started) == ([], [])


class TestFelling:
    async def test_the_engine_drops_what_the_record_has_given_up(self, service_desk: ServiceDesk, time: LoopTime) -> None:
        id = await service_desk.live()
        workflow_id = f"conduct:{id}"
        await service_desk.engine.start(Job("conduct", workflow_id, None))
        await time.sleep(61)
        await service_desk.do(TruncateProcedure(reason="power cut"), id)
        assert await service_desk.engine.view(workflow_id) is EngineView.ABSENT

    async def test_a_truncation_that_is_refused_drops_nothing(self, service_desk: ServiceDesk) -> None:
        id = await service_desk.live()
        workflow_id = f"conduct:{id}"
        await service_desk.engine.start(Job("conduct", workflow_id, None))
        with pytest.raises(Conflict):
            await service_desk.do(TruncateProcedure(reason="power cut"), id)
        assert await service_desk.engine.view(workflow_id) is EngineView.OPEN

    async def test_it_is_given_up_whether_or_not_the_engine_can_be_reached(
        self, service_desk: ServiceDesk, time: LoopTime
    ) -> None:
        id = await service_desk.live()
        await time.sleep(61)
        service_desk.engine.reachable = False
        await service_desk.do(TruncateProcedure(reason="power cut"), id)
        procedure = await service_desk.read_procedure(id)
        assert procedure.status is ProcedureStatus.TRUNCATED
