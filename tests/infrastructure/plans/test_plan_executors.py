"""Executors of Bluesky plans: each adapter against its real server, by the same contract; and what the contract rests on."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from baton.application.conduct.actions import ActionCall, ActionHeld, ActionResult, NotBegun, Wish
from baton.application.conduct.plan_executors import (
    POLL_SECONDS,
    PlanAction,
    PlanChangedError,
    PlanEndedElsewhereError,
    PlanExecutor,
    PlanExecutorBusyError,
    PlanExecutorSilentError,
    PlanExecutorUnavailableError,
    PlanFailedError,
    PlanJob,
    PlanOutcomeUnknown,
    PlanPhase,
    PlanRejectedError,
)
from baton.application.monitoring.plan_catalogues import PlanCatalogues
from baton.application.plan_settings import PlanExecutorSettings
from baton.domain.recipe.offered_plans import PlanExecutorCatalogue, PlanTouches
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.plans.blueapi import Blueapi
from baton.infrastructure.plans.configured import make_executor
from baton.infrastructure.plans.in_memory import MemoryExecutor
from baton.infrastructure.plans.queueserver import Queueserver
from baton.infrastructure.wall_clock import WallClock, clock
from tests.support.infrastructure.plan_servers import (
    PlanServer,
    free_port,
    missing_part,
    running_blueapi,
    running_queueserver,
)
from tests.support.waiting import until

pytestmark = pytest.mark.server

KINDS = ("in_memory", "queueserver", "blueapi")
LONG = 60.0  # seconds: a plan that is ended before it ends by itself


@pytest.fixture(scope="module")
async def queueserver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PlanServer]:
    if why := missing_part(redis=True):
        pytest.skip(why)
    async with running_queueserver(tmp_path_factory.mktemp("queueserver")) as server:
        yield server


@pytest.fixture(scope="module")
async def blueapi(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PlanServer]:
    if why := missing_part(redis=False):
        pytest.skip(why)
    async with running_blueapi(tmp_path_factory.mktemp("blueapi")) as server:
        yield server


@dataclass
class ExecutorCase:
    """An executor, its plan that counts its starts, and what is wished of a call."""

    kind: str
    executor: PlanExecutor
    server: PlanServer | None
    wish: Wish = Wish.CONTINUE
    notes: list[str] = field(default_factory=list)

    @property
    def plan(self) -> str:
        return "wait" if self.server is None else "count_start"

    @property
    def action(self) -> PlanAction:
        return PlanAction("bl7", self.plan, self.executor, True, self.kind != "blueapi", 600)

    def call(self, seconds: float = 0.2, **params: Any) -> ActionCall:
        """A call of the plan under a key of its own."""
        key = uuid4()
        given = {"seconds": seconds, **params} | ({} if self.server is None else {"note": str(key)})
        return ActionCall(key=key, params=given, control=Simulator(), time=WallClock(), wish=lambda: self.wish)

    async def begin(self, call: ActionCall) -> tuple[ActionCall, str]:
        """Prepare and begin a call; return it with its token, and the id of its job."""
        call = replace(call, token=await self.action.prepare(call))
        return call, await self.action.submit(call)

    async def carry_out(self, call: ActionCall) -> ActionResult:
        """Have a plan carried out."""
        return await self.action.collect(*(await self.begin(call)))

    async def phase(self, call: ActionCall, job_id: str) -> PlanPhase:
        return (await self.executor.state(self.action.job(call), job_id)).phase

    async def wait_for(self, phase: PlanPhase, call: ActionCall, job_id: str) -> None:
        async def is_there() -> bool:
            return await self.phase(call, job_id) is phase

        await until(is_there)

    def starts(self, call: ActionCall) -> int:
        """How often the plan of a call was started."""
        if self.server is None:
            assert isinstance(self.executor, MemoryExecutor)
            return int(call.key in self.executor.runs)
        return self.server.count(str(call.key))


Place = tuple[str, PlanServer | None]  # a kind of executor, and its server


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> Place:
    return request.param, None if request.param == "in_memory" else request.getfixturevalue(request.param)


@pytest.fixture(params=["in_memory", "queueserver"])
def pausing_place(request: pytest.FixtureRequest) -> Place:
    return request.param, None if request.param == "in_memory" else request.getfixturevalue(request.param)


@asynccontextmanager
async def open_case(kind: str, server: PlanServer | None) -> AsyncIterator[ExecutorCase]:
    """An executor that has nothing to do."""
    executor: PlanExecutor = MemoryExecutor()
    if server is not None:
        executor = (Queueserver if kind == "queueserver" else Blueapi)(server.address)
        await until_idle(executor)
    yield ExecutorCase(kind, executor, server)
    await executor.close()


@pytest.fixture
async def case(place: Place) -> AsyncIterator[ExecutorCase]:
    async with open_case(*place) as case:
        yield case


@pytest.fixture
async def holdable_case(pausing_place: Place) -> AsyncIterator[ExecutorCase]:
    async with open_case(*pausing_place) as case:
        yield case


@pytest.fixture
async def queue_case(queueserver: PlanServer) -> AsyncIterator[ExecutorCase]:
    async with open_case("queueserver", queueserver) as case:
        yield case


@pytest.fixture
async def blueapi_case(blueapi: PlanServer) -> AsyncIterator[ExecutorCase]:
    async with open_case("blueapi", blueapi) as case:
        yield case


async def until_idle(executor: PlanExecutor) -> None:
    """Wait until an executor has nothing to do."""

    async def is_idle() -> bool:
        if isinstance(executor, Queueserver):
            status = await executor._ask("status")
            return bool(status["manager_state"] == "idle" and status["re_state"] == "idle")
        assert isinstance(executor, Blueapi)
        return (await executor._ask("GET", "/worker/state"))[1] == "IDLE"

    await until(is_idle)


class TestContract:
    async def test_a_plan_is_carried_out_once(self, case: ExecutorCase) -> None:
        call = case.call()
        result = await case.carry_out(call)
        assert case.starts(call) == 1
        if case.kind != "queueserver":
            assert (result.data["result"], [one.value for one in result.measurements]) == (0.2, [0.2])
        else:
            assert len(result.data["run_uids"]) == 1  # type: ignore[arg-type]

    async def test_a_plan_is_found_under_its_key_while_it_runs_and_when_it_has_ended(self, case: ExecutorCase) -> None:
        call, job_id = await case.begin(case.call(1))
        assert await case.action.find(call) == job_id
        await case.action.collect(call, job_id)
        assert (await case.action.find(call), case.starts(call)) == (job_id, 1)

    async def test_a_plan_that_was_not_begun_is_not_found(self, case: ExecutorCase) -> None:
        call = case.call()
        call = replace(call, token=await case.action.prepare(call))
        found = await case.action.find(call)
        assert (found is None) if case.kind == "queueserver" else isinstance(found, NotBegun)
        assert case.starts(call) == 0

    async def test_a_plan_that_fails_says_why(self, case: ExecutorCase) -> None:
        call = case.call(fails=True)
        with pytest.raises(PlanFailedError, match="told to fail"):
            await case.carry_out(call)
        assert case.starts(call) == 1

    async def test_a_busy_executor_takes_nothing(self, case: ExecutorCase) -> None:
        first, job_id = await case.begin(case.call(1.5))
        await case.wait_for(PlanPhase.RUNNING, first, job_id)
        second = case.call()
        with pytest.raises(PlanExecutorBusyError):
            await case.begin(second)
        await case.action.collect(first, job_id)
        assert (case.starts(first), case.starts(second)) == (1, 0)

    async def test_an_unknown_plan_is_refused(self, case: ExecutorCase) -> None:
        with pytest.raises(PlanRejectedError):
            await replace(case.action, plan="absent").prepare(case.call())

    async def test_a_plan_that_is_not_the_pinned_one_is_not_begun(self, case: ExecutorCase) -> None:
        with pytest.raises(PlanChangedError) as changed:
            await case.action.prepare(replace(case.call(), pinned="0" * 64))
        assert changed.value.facts["pinned"] == "0" * 64

    async def test_an_abort_ends_it_at_once(self, case: ExecutorCase) -> None:
        call, job_id = await case.begin(case.call(LONG))
        await case.wait_for(PlanPhase.RUNNING, call, job_id)
        await case.action.stop(call, job_id)
        assert (await case.phase(call, job_id), case.starts(call)) == (PlanPhase.ENDED, 1)

    async def test_a_stop_ends_it_as_it_was_asked_to(self, case: ExecutorCase) -> None:
        call, job_id = await case.begin(case.call(LONG))
        await case.wait_for(PlanPhase.RUNNING, call, job_id)
        case.wish = Wish.STOP
        result = await case.action.collect(call, job_id)
        assert result.data["ended"] in ("stopped", "interrupted")
        assert case.starts(call) == 1

    async def test_a_catalogue_is_kept_as_a_row(self, case: ExecutorCase) -> None:
        row = await PlanCatalogues({"bl7": case.executor}, Rows(), clock).ask("bl7")
        offered = row.find_plan(case.plan)
        assert offered is not None
        assert (row.trouble, row.heard_at is not None, row.environment is not None) == (None, True, True)
        assert offered.parameters_schema["properties"]["seconds"]["type"] == "number"
        if case.server is not None:
            assert (offered.touches, offered.gated) == (PlanTouches(reads=("note",)), True)
            assert row.activity in ("manager idle, RunEngine idle", "worker IDLE"), "whatever it did before"


@dataclass
class DenyingExecutor(MemoryExecutor):
    """An executor under load, which pauses a plan and says that it does not, or says nothing in time."""

    answers: bool = True
    paused: asyncio.Event = field(default_factory=asyncio.Event)

    async def pause(self, job: PlanJob, job_id: str) -> bool:
        await super().pause(job, job_id)
        self.paused.set()
        if not self.answers:
            raise PlanExecutorSilentError("re_pause had no answer within 5 s")
        return False


class Rows:
    """The rows of executors, none of which was stored."""

    async def put(self, row: PlanExecutorCatalogue) -> None:
        raise AssertionError("nothing is stored")

    async def catalogue(self, executor: str) -> PlanExecutorCatalogue | None:
        return None


class TestHolds:
    """Rule 65: a hold at a checkpoint, in a long wait, and while somebody else pauses at the executor."""

    async def test_a_hold_pauses_it_and_it_is_resumed(self, holdable_case: ExecutorCase) -> None:
        call, job_id = await holdable_case.begin(holdable_case.call(3))
        await holdable_case.wait_for(PlanPhase.RUNNING, call, job_id)
        holdable_case.wish = Wish.HOLD
        with pytest.raises(ActionHeld):
            await holdable_case.action.collect(call, job_id)
        assert await holdable_case.phase(call, job_id) is PlanPhase.PAUSED
        holdable_case.wish = Wish.CONTINUE
        await holdable_case.action.resume(call, job_id)
        await holdable_case.action.collect(call, job_id)
        assert holdable_case.starts(call) == 1

    async def test_what_the_executor_refuses_for_a_while_is_asked_for_again(self, queue_case: ExecutorCase) -> None:
        lock = {"environment": True, "lock_key": "somebody", "user": "Somebody"}
        call, job_id = await queue_case.begin(queue_case.call(LONG))
        await queue_case.wait_for(PlanPhase.RUNNING, call, job_id)
        queue_case.wish = Wish.HOLD
        assert await asks(queue_case, "lock", lock)
        collecting = asyncio.create_task(queue_case.action.collect(call, job_id))
        assert not await asks(queue_case, "re_pause", {"option": "deferred"})
        await asyncio.wait([collecting], timeout=3 * POLL_SECONDS)
        assert await asks(queue_case, "unlock", {"lock_key": "somebody"})
        with pytest.raises(ActionHeld):
            await collecting
        assert await asks(queue_case, "lock", lock)
        resuming = asyncio.create_task(queue_case.action.resume(call, job_id))
        await asyncio.wait([resuming], timeout=3 * POLL_SECONDS)
        assert not resuming.done()
        assert await asks(queue_case, "unlock", {"lock_key": "somebody"})
        await resuming
        await queue_case.wait_for(PlanPhase.RUNNING, call, job_id)
        await queue_case.action.stop(call, job_id)

    @pytest.mark.parametrize("answer", ["no", "none"])
    async def test_a_pause_is_taken_back_whatever_the_executor_answered_to_it(self, answer: str) -> None:
        executor = DenyingExecutor(answers=answer == "no")
        case = ExecutorCase("in_memory", executor, None)
        call, job_id = await case.begin(case.call(LONG))
        case.wish = Wish.HOLD
        collecting = asyncio.create_task(case.action.collect(call, job_id))
        await executor.paused.wait()
        case.wish = Wish.CONTINUE  # before the pause was seen
        await case.wait_for(PlanPhase.RUNNING, call, job_id)
        case.wish = Wish.STOP
        assert (await collecting).data["ended"] == "stopped"

    async def test_a_plan_without_checkpoints_is_never_paused(self, queue_case: ExecutorCase) -> None:
        call, job_id = await queue_case.begin(queue_case.call(2, checkpoints=False))
        queue_case.wish = Wish.HOLD
        result = await queue_case.action.collect(replace(call, token={"checkpoints": False}), job_id)
        assert "ended" not in result.data

    async def test_a_pause_by_somebody_else_is_waited_for(self, queue_case: ExecutorCase) -> None:
        call, job_id = await queue_case.begin(queue_case.call(3))
        await queue_case.wait_for(PlanPhase.RUNNING, call, job_id)
        collecting = asyncio.create_task(queue_case.action.collect(call, job_id))
        await until(lambda: asks(queue_case, "re_pause", {"option": "deferred"}))
        await queue_case.wait_for(PlanPhase.PAUSED, call, job_id)
        assert not collecting.done()
        await until(lambda: asks(queue_case, "re_resume"))
        await collecting
        assert queue_case.starts(call) == 1

    async def test_an_abort_by_somebody_else_is_told_as_that(self, queue_case: ExecutorCase) -> None:
        call, job_id = await queue_case.begin(queue_case.call(LONG))
        await queue_case.wait_for(PlanPhase.RUNNING, call, job_id)
        other = asyncio.create_task(queue_case.action.stop(call, job_id))
        with pytest.raises(PlanEndedElsewhereError) as ended:
            await queue_case.action.collect(call, job_id)
        await other
        assert ended.value.facts["end"] == "aborted"


async def asks(case: ExecutorCase, method: str, params: Mapping[str, Any] | None = None) -> bool:
    """Ask a queueserver as another client does."""
    assert isinstance(case.executor, Queueserver)
    return bool((await case.executor._ask(method, params)).get("success"))


MOMENTS: dict[str, dict[str, Any]] = {
    "at a checkpoint": {"seconds": 8},
    "in a long exposure": {"seconds": 8, "exposure": 4.0},
    "without checkpoints": {"seconds": 8, "checkpoints": False},
    "paused by somebody else": {"seconds": 8},
}


@pytest.mark.soak
@pytest.mark.parametrize("moment", MOMENTS)
class TestEveryMoment:
    """Rule 65: hold, resume, stop and abort at a checkpoint, far from one, without any, and while somebody else pauses."""

    @pytest.fixture(params=["queueserver", "blueapi"])
    def real_place(self, request: pytest.FixtureRequest) -> Place:
        return request.param, request.getfixturevalue(request.param)

    @pytest.fixture
    async def real_case(self, real_place: Place) -> AsyncIterator[ExecutorCase]:
        async with open_case(*real_place) as case:
            yield case

    async def begin(self, case: ExecutorCase, moment: str) -> tuple[ActionCall, str]:
        """Begin a plan, and wait for the moment."""
        call, job_id = await case.begin(case.call(**MOMENTS[moment]))
        await case.wait_for(PlanPhase.RUNNING, call, job_id)
        await until(lambda: case.starts(call) == 1)
        if moment == "without checkpoints":
            call = replace(call, token={**call.token, "checkpoints": False})
        if moment == "paused by somebody else":
            await case.executor.pause(case.action.job(call), job_id)
            await case.wait_for(PlanPhase.PAUSED, call, job_id)
        return call, job_id

    async def test_an_abort_ends_it_at_once(self, real_case: ExecutorCase, moment: str) -> None:
        call, job_id = await self.begin(real_case, moment)
        began = time.monotonic()
        await real_case.action.stop(call, job_id)
        assert await real_case.phase(call, job_id) is PlanPhase.ENDED
        assert (real_case.starts(call), time.monotonic() - began < 6) == (1, True)

    async def test_a_stop_ends_it_early(self, real_case: ExecutorCase, moment: str) -> None:
        call, job_id = await self.begin(real_case, moment)
        real_case.wish = Wish.STOP
        result = await real_case.action.collect(call, job_id)
        assert (result.data["ended"] in ("stopped", "aborted", "interrupted"), real_case.starts(call)) == (True, 1)

    async def test_a_hold_pauses_it_where_it_can_and_it_continues(self, real_case: ExecutorCase, moment: str) -> None:
        call, job_id = await self.begin(real_case, moment)
        real_case.wish = Wish.HOLD
        if moment != "without checkpoints" and real_case.kind == "queueserver":
            with pytest.raises(ActionHeld):
                await real_case.action.collect(call, job_id)
            assert await real_case.phase(call, job_id) is PlanPhase.PAUSED
            real_case.wish = Wish.CONTINUE
            await real_case.action.resume(call, job_id)
        elif moment == "paused by somebody else":
            collecting = asyncio.create_task(real_case.action.collect(call, job_id))
            assert (await asyncio.wait({collecting}, timeout=3))[1], "it waits for those who paused it"
            real_case.wish = Wish.STOP  # blueapi resumes no plan that was paused there
            assert (await collecting).data["ended"] == "interrupted"
            return
        result = await real_case.action.collect(call, job_id)
        assert ("ended" in result.data, real_case.starts(call)) == (False, 1)


class TestExclusiveQueueserver:
    """Rule 32: with the lock, what was not found was never begun."""

    @pytest.fixture
    async def exclusive(self, queue_case: ExecutorCase) -> AsyncIterator[ExecutorCase]:
        assert queue_case.server is not None
        executor = Queueserver(queue_case.server.address, exclusive=True)
        yield ExecutorCase("queueserver", executor, queue_case.server)
        if (epoch := await executor._held_epoch()) is not None:
            await executor._ask("unlock", {"lock_key": f"baton-{epoch}"})
        await executor.close()

    async def test_what_was_not_begun_is_known_not_to_be(self, exclusive: ExecutorCase) -> None:
        call = exclusive.call()
        call = replace(call, token=await exclusive.action.prepare(call))
        found = await exclusive.action.find(call)
        assert isinstance(found, NotBegun)
        with pytest.raises(PlanExecutorBusyError):
            await exclusive.action.submit(call)
        assert exclusive.starts(call) == 0, "a late request of the earlier epoch is refused"
        again = replace(call, token=found.token)
        await exclusive.action.collect(again, await exclusive.action.submit(again))
        assert exclusive.starts(call) == 1

    async def test_nobody_else_begins_anything(self, exclusive: ExecutorCase, queue_case: ExecutorCase) -> None:
        await exclusive.carry_out(exclusive.call())
        with pytest.raises(PlanExecutorBusyError):
            await queue_case.begin(queue_case.call())


async def test_an_executor_that_is_not_there_is_silent() -> None:
    for executor in (Queueserver(f"tcp://127.0.0.1:{free_port()}"), Blueapi(f"http://127.0.0.1:{free_port()}")):
        with pytest.raises(PlanExecutorSilentError):
            await executor.catalogue()
        await executor.close()


@pytest.mark.soak
async def test_a_closed_environment_is_opened_where_the_settings_say_so(queue_case: ExecutorCase) -> None:
    assert queue_case.server is not None
    executor = queue_case.executor
    assert isinstance(executor, Queueserver)
    await executor._ask("environment_close")

    async def is_closed() -> bool:
        status = await executor._ask("status")
        return not status["worker_environment_exists"] and status["manager_state"] == "idle"

    await until(is_closed)
    with pytest.raises(PlanExecutorUnavailableError):
        await queue_case.begin(queue_case.call())
    declared = {"name": "bl7", "kind": "queueserver", "address": queue_case.server.address, "simulated": True}
    settings = PlanExecutorSettings.model_validate({**declared, "open_environment": True})
    opening = ExecutorCase("queueserver", make_executor(settings), queue_case.server)
    call = opening.call()
    await opening.carry_out(call)
    await opening.executor.close()
    assert opening.starts(call) == 1


class TestFactsOfBlueapi:
    """F 5, which rules 31 and 36 rest on, and F 6, which rules 28 and 29 rest on."""

    @pytest.fixture
    async def http(self, blueapi: PlanServer) -> AsyncIterator[httpx.AsyncClient]:
        async with httpx.AsyncClient(base_url=f"{blueapi.address}/api/v1", timeout=10) as client:
            yield client

    async def test_f5_a_task_is_begun_once(self, http: httpx.AsyncClient, blueapi_case: ExecutorCase) -> None:
        call = blueapi_case.call(1.5)
        call = replace(call, token=await blueapi_case.action.prepare(call))
        begin = {"task_id": call.token["task_id"]}
        first, second = [(await http.put("/worker/task", json=begin)).status_code for _ in range(2)]
        await blueapi_case.action.collect(call, str(call.token["task_id"]))
        third = (await http.put("/worker/task", json=begin)).status_code
        assert (first, second, third, blueapi_case.starts(call)) == (200, 409, 404, 1)

    async def test_f5_a_client_chooses_neither_id_nor_metadata(self, http: httpx.AsyncClient) -> None:
        task = {"name": "positive", "params": {"number": 1}, "instrument_session": "x", "task_id": "mine", "metadata": {}}
        assert (await http.post("/tasks", json=task)).status_code == 422

    async def test_f6_constraints_of_annotated_fields_are_neither_shown_nor_enforced(
        self, http: httpx.AsyncClient, blueapi_case: ExecutorCase
    ) -> None:
        offered = (await blueapi_case.executor.catalogue()).plans["positive"]
        assert offered.parameters_schema["properties"]["number"] == {"title": "Number", "type": "integer"}
        task = {"name": "positive", "params": {"number": -1}, "instrument_session": "x"}
        assert (await http.post("/tasks", json=task)).status_code == 201

    async def test_f6_a_docstring_is_served_whole(self, http: httpx.AsyncClient) -> None:
        description = (await http.get("/plans/count_start")).json()["description"]
        assert "Baton: reads=note gated" in description
        assert "It touches nothing." in description

    async def test_f5_a_pause_leaves_the_task_complete_with_an_error(
        self, http: httpx.AsyncClient, blueapi_case: ExecutorCase
    ) -> None:
        call, job_id = await blueapi_case.begin(blueapi_case.call(2))
        await blueapi_case.executor.pause(blueapi_case.action.job(call), job_id)
        await blueapi_case.wait_for(PlanPhase.PAUSED, call, job_id)
        task = (await http.get(f"/tasks/{job_id}")).json()
        assert (task["is_complete"], task["outcome"]["type"]) == (True, "RunEngineInterrupted")
        await blueapi_case.executor.abort(blueapi_case.action.job(call), job_id, "the test is over")
        await until_idle(blueapi_case.executor)
        with pytest.raises(PlanOutcomeUnknown):
            await blueapi_case.action.collect(call, job_id)


class TestFactsOfQueueserver:
    """F 7, which rules 32 and 37 rest on, and F 6, which rule 29 rests on."""

    async def test_f7_the_id_of_a_client_is_replaced_and_a_key_is_not_deduplicated(self, queue_case: ExecutorCase) -> None:
        assert isinstance(queue_case.executor, Queueserver)
        item = {"item_type": "plan", "name": "positive", "kwargs": {"number": 1}, "item_uid": "mine"}
        request = {"item": {**item, "meta": {"baton": {"key": "one"}}}, "user": "test", "user_group": "primary"}
        uids = set()
        for _ in range(2):
            await until_idle(queue_case.executor)
            uids.add((await queue_case.executor._ask("queue_item_execute", request))["item"]["item_uid"])
        assert len(uids - {"mine"}) == 2

    async def test_f7_an_abort_is_refused_unless_the_plan_is_paused(self, queue_case: ExecutorCase) -> None:
        call, job_id = await queue_case.begin(queue_case.call(LONG))
        await queue_case.wait_for(PlanPhase.RUNNING, call, job_id)
        assert not await asks(queue_case, "re_abort")
        await queue_case.action.stop(call, job_id)

    async def test_f6_the_first_paragraph_of_a_docstring_is_served(self, queue_case: ExecutorCase) -> None:
        assert isinstance(queue_case.executor, Queueserver)
        offered = await queue_case.executor._ask("plans_allowed", {"user_group": "primary"})
        description = offered["plans_allowed"]["count_start"]["description"]
        assert "Baton: reads=note gated" in description
        assert "It touches nothing." not in description

    async def test_f7_an_item_of_the_queue_that_is_aborted_returns_to_its_front_under_another_id(
        self, queue_case: ExecutorCase
    ) -> None:
        assert isinstance(queue_case.executor, Queueserver)
        ask, meta = queue_case.executor._ask, {"baton": {"key": str(uuid4())}}
        item = {"item_type": "plan", "name": "count_start", "kwargs": {"seconds": LONG}, "meta": meta}
        added = await ask("queue_item_add", {"item": item, "user": "test", "user_group": "primary"})
        await ask("queue_start")

        async def is_running() -> bool:
            return bool((await ask("status"))["re_state"] == "running")

        await until(is_running)
        await until(lambda: asks(queue_case, "re_pause", {"option": "immediate"}))
        await until(lambda: asks(queue_case, "re_abort"))
        await until_idle(queue_case.executor)
        [again] = (await ask("queue_get"))["items"]
        await ask("queue_clear")
        assert (again["meta"], again["item_uid"] == added["item"]["item_uid"]) == (meta, False)
