"""Long work is declared once: a kind that only this test declares is started by its event, found where the engine does not
know of it, and answered, although nothing else names it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any, get_type_hints
from uuid import UUID

import pytest

from baton.activities.bindings import activities_of_all
from baton.application.caller import Caller
from baton.application.commands import Commands, system_batch
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.heartbeat import Attempt
from baton.application.conduct.passes import Passes
from baton.application.conduct.run_conductor import RunConductor
from baton.application.conduct.signal_reader import SignalReader
from baton.application.conduct.step_execution import StepRunner
from baton.application.long_work import KINDS, AwaitedWork, LongWork, TaskWork, marked_methods
from baton.application.ports import EventRow
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import reconcile
from baton.domain.conduct.work_items import GetWork, WorkState
from baton.domain.registry import REGISTRY, OpenedWork
from baton.domain.shared.tasks import Task, queue_task
from baton.domain.trust.zone import DefineZone, ZoneDefined
from baton.infrastructure.wall_clock import clock, new_id
from baton.workflows.activity_stubs import STUBS
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack

CONDUCTING = (Conductor, Passes, StepRunner, RunConductor, SignalReader)
"""What carries out activities beside the kinds of long work: in workers alone."""


ANSWER = get_type_hints(AwaitedWork.answer)["return"]


def declare_greeting() -> type[TaskWork]:
    """Declare long work that greets every zone."""

    @dataclass
    class Greeting(TaskWork):
        workflow = "zone-greeting"
        reaction = "zone_greeting"
        wakes_on = (ZoneDefined,)
        command = DefineZone
        readable_with = "GetZone"
        commands: Commands

        async def concerned_ids(self, event: EventRow) -> Sequence[UUID]:
            await self.begin(event.stream_id)
            return (event.stream_id,)

        async def begin(self, zone_id: UUID) -> None:
            """Put the greeting of a zone on the record, once."""
            if await self.item(zone_id) is None:
                call = Caller.system(new_id()).call(clock(), zone_id)
                row = queue_task(self.workflow, zone_id, {"zone": str(zone_id)}, {"zone_id": str(zone_id)}, call)
                async with self.commands.store.session() as session:
                    await session.append(system_batch(self.command_name, clock, new_id, row))

        async def carry_out(self, task: Task) -> Mapping[str, Any]:
            return {"greeting": f"Good evening, {task.request['zone']}"}

    return Greeting


@pytest.fixture(scope="module")
def greeting_kind() -> Iterator[type[TaskWork]]:
    kind = declare_greeting()
    yield kind
    KINDS.remove(kind)


@pytest.fixture(scope="module")
async def stack(greeting_kind: type[TaskWork], database: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(database, temporal.address) as stack:
        yield stack


async def define_zone(stack: ConductStack) -> UUID:
    return UUID(((await stack.do(DefineZone(name=f"Zone {new_id()}"))).body or {})["zone_id"])


async def answer_of(stack: ConductStack, work_id: UUID) -> dict[str, Any]:
    """Return the answer of some work as `get_work` shows it, once there is one."""

    async def work_done() -> Any:
        found = await stack.ask(GetWork(work_id=work_id))
        return found if found.state is WorkState.DONE else None

    found = await until(work_done)
    assert found.ids == {"zone_id": str(work_id), "work_id": str(work_id)}
    return dict(found.answer)


async def test_a_kind_that_is_declared_starts_with_its_event_and_is_answered(stack: ConductStack) -> None:
    runtime = stack.runtime
    following = asyncio.create_task(runtime.dispatcher().run())
    try:
        zone_id = await define_zone(stack)

        async def is_begun() -> bool:
            return await runtime.works.find_work(zone_id) is not None

        await until(is_begun)
        assert await answer_of(stack, zone_id) == {"greeting": f"Good evening, {zone_id}"}
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
    assert "zone_greeting" in await runtime.reactions.subscriber_names()


async def test_a_kind_that_is_declared_is_started_where_the_engine_does_not_know_of_it(
    stack: ConductStack, greeting_kind: type[TaskWork]
) -> None:
    work: Any = stack.runtime.works.of(greeting_kind)
    zone_id = await define_zone(stack)
    await work.begin(zone_id)
    assert await work.unfinished_ids() == [zone_id]
    assert (await stack.ask(GetWork(work_id=zone_id))).state is WorkState.RUNNING
    comparing = asyncio.create_task(reconcile(stack.runtime))
    try:
        assert await answer_of(stack, zone_id) == {"greeting": f"Good evening, {zone_id}"}
    finally:
        comparing.cancel()
        with suppress(asyncio.CancelledError):
            await comparing
    assert await work.unfinished_ids() == []


def test_every_command_names_work_that_is_declared_and_an_answer_of_it(stack: ConductStack) -> None:
    works = stack.runtime.works
    links = [operation.work for operation in REGISTRY if operation.work is not None]
    assert {kind for link in links for kind in link.kinds} <= set(works)
    opened = [(works[kind], link.answer) for link in links if isinstance(link, OpenedWork) for kind in link.kinds]
    for work, answer in opened:
        assert isinstance(work, AwaitedWork), work
        assert get_type_hints(getattr(work, answer))["return"] == get_type_hints(AwaitedWork.answer)["return"], (
            work,
            answer,
        )


def test_every_activity_is_carried_out_by_one_method_of_the_same_request_and_result(stack: ConductStack) -> None:
    owners = [type(actor) for work in stack.runtime.works.values() for actor in work.actors]
    carried_out = {}
    for owner in {*owners, *CONDUCTING}:
        for method, (activity, _) in marked_methods(owner).items():
            assert activity not in carried_out, activity
            carried_out[activity] = getattr(owner, method)
    assert set(carried_out) == set(STUBS) - {"carry_out_task"}
    for name, method in carried_out.items():
        (*request, result), (*sent, expected) = message_types(method), message_types(STUBS[name])
        assert result == expected, name
        assert len(request) == len(sent), name
        assert all(one == other or issubclass(one, other) for one, other in zip(sent, request, strict=True)), name


def message_types(method: Any) -> list[Any]:
    """Return the types of the request and of the result of an activity."""
    hints = get_type_hints(method)
    given = [hints[name] for name in signature(method).parameters if name != "self"]
    return [*(kind for kind in given if kind is not Attempt), hints["return"]]


def test_every_kind_has_a_name_and_a_bookmark_of_its_own(stack: ConductStack) -> None:
    works = stack.runtime.works
    kinds: list[LongWork] = list(works.values())
    assert len({kind.workflow for kind in KINDS}) == len(KINDS)
    reactions = [kind.reaction for kind in kinds if kind.reaction]
    assert len(set(reactions)) == len(reactions)
    assert [bool(kind.wakes_on) for kind in kinds] == [bool(kind.reaction) for kind in kinds]
    assert len(activities_of_all(works)) + sum(len(marked_methods(one)) for one in CONDUCTING) == len(STUBS)
