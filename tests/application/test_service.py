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
from baton.domain.operation.conduct.conduct import ConductProcedure
from baton.domain.operation.procedure.endings import AbortProcedure, HoldProcedure, TruncateProcedure
from baton.domain.operation.procedure.procedure import ProcedureStatus
from baton.domain.operation.procedure.registration import RegisterProcedure
from baton.domain.operation.procedure.start import StartProcedure
from baton.domain.registry import REGISTRY
from baton.domain.shared.refusals import Conflict
from baton.testing.ports import MemoryEngine
from tests.support.application.memory_conduct import MemoryConduct
from tests.support.domain.world import new_id
from tests.support.fast_clock import LoopTime
from tests.support.infrastructure.ledger_cases import PORTS
from tests.support.workflows.step_json import setpoint


@dataclass
class Conducting:
    """Long work that is done when a test says so, and who looked at it when."""

    time: LoopTime
    workflow: str = "conduct"
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
        self.looks.append(self.time.passed)
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
class Desk:
    """A service, its engine, and the work that is asked of both."""

    memory: MemoryConduct
    service: Service
    engine: MemoryEngine
    work: Conducting

    async def procedure(self) -> UUID:
        return await self.memory.made(RegisterProcedure(name="Alignment", kind="alignment"))

    async def do(self, command: Any, on: UUID, **options: Any) -> Any:
        return await self.service.execute(command, self.memory.caller, target_id=on, **options)

    async def found(self, id: UUID) -> Any:
        """The procedure as anybody reads it."""
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
def desk(memory: MemoryConduct, time: LoopTime) -> Desk:
    return at_a_desk(memory, time, MemoryEngine())


def at_a_desk(memory: MemoryConduct, time: LoopTime, engine: MemoryEngine) -> Desk:
    work = Conducting(time)
    queries = Queries(memory.store, memory.permits, time, new_id, PORTS)
    service = Service(memory.commands, queries, memory.permits, engine, {"conduct": work})
    return Desk(memory, service, engine, work)


class TestAttending:
    async def test_what_is_done_in_time_is_answered(self, desk: Desk, time: LoopTime) -> None:
        asking = asyncio.create_task(desk.conduct())
        await time.sleep(10)
        desk.work.done = {"succeeded": True}
        executed = await asking
        assert (executed.status, executed.body, executed.replayed) == (200, {"succeeded": True}, False)
        assert time.passed == pytest.approx(10, abs=0.5)

    async def test_what_takes_longer_is_answered_by_its_ids(self, desk: Desk, time: LoopTime) -> None:
        id = await desk.procedure()
        executed = await desk.conduct(id, wait=5.0)
        assert (executed.status, executed.body["procedure_id"]) == (202, str(id))
        assert executed.body["work_id"] == executed.body["conduct_id"]
        assert time.passed == 5, "not a moment longer"

    async def test_whoever_does_not_wait_is_answered_at_once(self, desk: Desk, time: LoopTime) -> None:
        executed = await desk.conduct(wait=0.0)
        assert (executed.status, time.passed) == (202, 0)
        assert [job.argument for job in desk.engine.started] == [UUID(executed.body["work_id"])], "it is under way"

    async def test_the_longer_it_takes_the_less_often_it_is_looked_at(self, desk: Desk) -> None:
        await desk.conduct(wait=30.0)
        looks = desk.work.looks[1:]
        gaps = [later - earlier for earlier, later in itertools.pairwise(looks)]
        assert gaps[0] == pytest.approx(0.02)
        assert gaps[5] == pytest.approx(0.02 * 1.3**5)
        assert max(gaps) == pytest.approx(0.5)
        assert gaps[:-1] == sorted(gaps[:-1]), "the last one ends with the wait"
        assert len(gaps) < 80

    async def test_the_engine_is_told_once(self, desk: Desk) -> None:
        await desk.conduct(wait=30.0)
        assert (len(desk.engine.started), len(desk.work.jobs)) == (1, 1)

    async def test_whoever_listens_hears_every_change_once(self, desk: Desk, time: LoopTime) -> None:
        heard: list[tuple[float, WorkProgress]] = []

        async def told(progress: WorkProgress) -> None:
            heard.append((time.passed, progress))

        asking = asyncio.create_task(desk.conduct(on_progress=told))
        steps = [WorkProgress(done, 3, f"step {done + 1:g} of 3") for done in range(3)]
        for step in (steps[0], steps[0], steps[1], steps[2]):
            desk.work.says = step
            await time.sleep(2)
        desk.work.done = {}
        await asking
        assert [progress for _, progress in heard] == steps
        assert [moment for moment, _ in heard] == pytest.approx([0, 4, 6], abs=0.5)

    async def test_where_nothing_can_be_said_nothing_is(self, desk: Desk) -> None:
        async def told(progress: WorkProgress) -> None:
            raise AssertionError("nothing was to be said")

        await desk.conduct(on_progress=told)

    async def test_the_refusal_that_it_ended_with_is_raised(self, desk: Desk, time: LoopTime) -> None:
        asking = asyncio.create_task(desk.conduct())
        await time.sleep(1)
        desk.work.done = Conflict("It came to nothing.", reason="nothing")
        with pytest.raises(Conflict):
            await asking


class TestRepeating:
    async def test_a_repeat_attaches_to_the_same_work(self, desk: Desk) -> None:
        id = await desk.procedure()
        first = await desk.conduct(id, wait=0.0, key="once")
        again = await desk.conduct(id, wait=0.0, key="once")
        assert (first.status, again.status, again.replayed) == (202, 202, True)
        assert again.body == first.body

    async def test_once_it_is_done_a_repeat_is_answered_at_once(self, desk: Desk, time: LoopTime) -> None:
        id = await desk.procedure()
        await desk.conduct(id, wait=0.0, key="once")
        desk.work.done = {"succeeded": True}
        desk.engine.started.clear()
        desk.work.jobs.clear()
        again = await desk.conduct(id, wait=0.0, key="once")
        assert (again.status, again.body, again.replayed) == (200, {"succeeded": True}, True)
        assert (time.passed, desk.engine.started, desk.work.jobs) == (0, [], []), "nobody is told anything"


class TestWaking:
    async def test_an_engine_that_cannot_be_reached_loses_nothing(self, desk: Desk, time: LoopTime) -> None:
        desk.engine.reachable = False
        id = await desk.procedure()
        executed = await desk.conduct(id, wait=5.0)
        assert (executed.status, time.passed) == (202, 5)
        procedure = await desk.found(id)
        assert str(procedure.live_conduct_id) == executed.body["conduct_id"]

    async def test_an_engine_that_hangs_keeps_nobody_waiting(self, memory: MemoryConduct, time: LoopTime) -> None:
        class Hanging(MemoryEngine):
            async def start(self, job: Job) -> bool:
                await time.sleep(5)
                return await super().start(job)

        desk = at_a_desk(memory, time, Hanging())
        id = await desk.procedure()
        assert (await desk.conduct(id, wait=0.0)).status == 202
        assert time.passed == 0.5
        assert (await desk.do(HoldProcedure(reason="shift change"), id)).status == 202
        assert time.passed == 1
        await time.sleep(5)
        assert len(desk.engine.started) == 1, "it goes on by itself"

    async def test_what_the_engine_could_not_be_told_for_no_known_reason_is_logged_and_refused_to_nobody(
        self, memory: MemoryConduct, time: LoopTime
    ) -> None:
        class Broken(MemoryEngine):
            async def start(self, job: Job) -> bool:
                raise RuntimeError("s3cret")

        desk = at_a_desk(memory, time, MemoryEngine())
        id = await desk.live()
        broken = at_a_desk(memory, time, Broken())
        with capture_logs() as lines:
            assert (await broken.do(HoldProcedure(reason="shift change"), id)).status == 202
        assert [(line["event"], line["error"]) for line in lines] == [("engine_call_failed", "RuntimeError")]
        assert "s3cret" not in str(lines)

    async def test_what_has_just_ended_is_out_of_the_way_in_a_moment(self, desk: Desk, time: LoopTime) -> None:
        desk.work.succeeds = True
        await desk.engine.start(Job("conduct", "conduct:one", "the one before"))
        asking = asyncio.create_task(desk.conduct(wait=30.0))
        await time.sleep(0.12)
        desk.engine.end("conduct:one")
        await time.sleep(1)
        desk.work.done = {}
        executed = await asking
        assert [job.argument for job in desk.engine.started] == ["the one before", desk.work.jobs[0]]
        assert executed.status == 200

    async def test_what_stands_in_nobodys_way_is_left_alone(self, desk: Desk, time: LoopTime) -> None:
        await desk.engine.start(Job("conduct", "conduct:one", "the same"))
        await desk.conduct(wait=0.0)
        assert ([job.argument for job in desk.engine.started], len(desk.work.jobs)) == (["the same"], 1)
        assert time.passed == 0

    async def test_where_there_is_nothing_to_tell_the_engine_is_not_told(self, desk: Desk) -> None:
        desk.work.to_tell = False
        await desk.conduct(wait=0.0)
        assert desk.engine.started == []

    @pytest.mark.parametrize("request_", [HoldProcedure, AbortProcedure])
    async def test_a_request_wakes_the_conduct_that_is_to_serve_it(self, desk: Desk, request_: Any) -> None:
        id = await desk.live()
        executed = await desk.do(request_(reason="shift change"), id)
        assert (executed.status, desk.work.jobs) == (202, [UUID(executed.body["conduct_id"])])

    @pytest.mark.parametrize("request_", [HoldProcedure, AbortProcedure])
    async def test_it_is_on_the_record_whether_or_not_the_engine_can_be_reached(self, desk: Desk, request_: Any) -> None:
        id = await desk.live()
        desk.engine.reachable = False
        assert (await desk.do(request_(reason="shift change"), id)).status == 202

    async def test_where_no_conduct_is_live_nobody_is_woken(self, desk: Desk) -> None:
        id = await desk.procedure()
        await desk.do(StartProcedure(), id)
        assert (await desk.do(HoldProcedure(reason="shift change"), id)).status == 204
        assert (desk.work.jobs, desk.engine.started) == ([], [])


class TestFelling:
    async def test_the_engine_drops_what_the_record_has_given_up(self, desk: Desk, time: LoopTime) -> None:
        id = await desk.live()
        workflow_id = f"conduct:{id}"
        await desk.engine.start(Job("conduct", workflow_id, None))
        await time.sleep(61)
        await desk.do(TruncateProcedure(reason="power cut"), id)
        assert await desk.engine.look(workflow_id) is EngineView.ABSENT

    async def test_a_truncation_that_is_refused_drops_nothing(self, desk: Desk) -> None:
        id = await desk.live()
        workflow_id = f"conduct:{id}"
        await desk.engine.start(Job("conduct", workflow_id, None))
        with pytest.raises(Conflict):
            await desk.do(TruncateProcedure(reason="power cut"), id)
        assert await desk.engine.look(workflow_id) is EngineView.OPEN

    async def test_it_is_given_up_whether_or_not_the_engine_can_be_reached(self, desk: Desk, time: LoopTime) -> None:
        id = await desk.live()
        await time.sleep(61)
        desk.engine.reachable = False
        await desk.do(TruncateProcedure(reason="power cut"), id)
        procedure = await desk.found(id)
        assert procedure.status is ProcedureStatus.TRUNCATED
