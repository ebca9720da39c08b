"""Reactions: every event that concerns a subscriber has its workflow started once; trouble stays with that subscriber."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from baton.application.agents.model_agents import Debriefs
from baton.application.agents.rule_agents import Promoter, RunSupervisor
from baton.application.caller import Caller
from baton.application.long_work import TASKS
from baton.application.ports import Batch, Clock, CommandResult, EventRow, Job, StreamAppend
from baton.application.queries import Queries
from baton.application.reactions import Dispatcher, ReactionReader
from baton.application.settings import Settings
from baton.domain.access.actor import ActorKind, ActorRegistered, RegisterActor
from baton.domain.agent.agent import DeprecateAgent
from baton.domain.agent.caution_proposal import DRAFT
from baton.domain.agent.debrief import DEBRIEF
from baton.domain.agent.reactions import DismissEventInReaction, ListReactions, ReactionView
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import RegisterDecision
from baton.domain.kernel import Event
from baton.domain.run.run import RunAborted, RunCompleted
from baton.domain.shared.refusals import Refusal
from baton.domain.start.run_start import StartRun
from baton.domain.supply.supply import MarkSupplyUnavailable, RegisterSupply
from baton.testing.ports import MemoryEngine
from tests.support.application.memory_agents import MemoryAgents, memory_agents
from tests.support.application.ports import ports_of
from tests.support.domain.assets import LUMEN
from tests.support.domain.world import new_id
from tests.support.tables import for_each
from tests.support.waiting import until

PROMOTIONS = [
    ("ProposeNotice", (False, True), ["drafter"]),
    ("ProposeNotice", (True, True), ["drafter", "promoter"]),
    ("ProposeNotice", (True, False), ["promoter"]),
    ("ProposeCaution", (False, True), []),
    ("ProposeCaution", (True, True), ["promoter"]),
    ("NoAction", (False, True), []),
]
"""What is proposed, whether the promoter and drafters promote, and who judges it."""


@dataclass
class Follower:
    """A subscriber that starts one workflow for each end of a run, unless something is wrong with it."""

    reaction: str = "follower"
    workflow: str = "follow"
    wakes_on: tuple[type[Event], ...] = (RunAborted, RunCompleted)
    enabled: bool = True
    stumbles_over: set[Any] = field(default_factory=set)

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        if event.event_id in self.stumbles_over:
            raise ValueError("this one cannot be read")
        return (Job("follow", f"follow:{event.event_id}", None, once=True, memo={"event_id": str(event.event_id)}),)


class TaskFollower(Follower):
    """A subscriber that starts a task of its kind for each end of a run."""

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        return (Job(TASKS, f"{self.workflow}:{event.event_id}", None, once=True, memo={"event_id": str(event.event_id)}),)


class FollowedFacility:
    """A facility, an engine that only keeps what it is told, and the dispatcher between them."""

    def __init__(self, facility: MemoryAgents, *subscribers: Any) -> None:
        self.facility = facility
        self.engine = MemoryEngine()
        self.subscribers = subscribers
        self.dispatcher = self.another()
        sights = ReactionReader(facility.store, self.engine, subscribers)
        facility.people.ports = ports_of(
            facility.people.ports,
            subscriber_names=sights.subscriber_names,
            unprocessed_counts=sights.unprocessed_counts,
            open_items=sights.open_items,
            logged_event=sights.logged_event,
        )

    def another(self, clock: Clock | None = None, news: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Dispatcher:
        """A dispatcher that knows nothing but the record."""
        self.written = 0
        """How often it has written a bookmark down."""

        def counted_id() -> UUID:
            self.written += 1
            return new_id()

        facility = self.facility
        return Dispatcher(facility.store, self.engine, clock or facility.clock, counted_id, self.subscribers, news)

    async def caught_up(self) -> None:
        for subscriber in self.subscribers:
            while await self.dispatcher.advance(subscriber):
                pass
            await self.dispatcher.advance(subscriber)

    @asynccontextmanager
    async def running_dispatcher(self) -> AsyncIterator[None]:
        """Have the dispatcher run by itself meanwhile."""
        running = asyncio.create_task(self.dispatcher.run())
        try:
            yield
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def dismiss(self, event: EventRow, name: str = "follower") -> CommandResult:
        return await self.facility.do(
            DismissEventInReaction(subscriber_name=name, event_id=event.event_id, reason="unreadable")
        )

    async def has_failed(self, times: int = 1, name: str = "follower") -> bool:
        return (await self.view(name)).consecutive_failures >= times

    @property
    def started_ids(self) -> list[str]:
        return [job.id for job in self.engine.started]

    async def view(self, name: str = "follower") -> ReactionView:
        answer = await self.facility.people.ask(ListReactions(subscriber_name=name))
        (view,) = answer.items
        return view  # type: ignore[no-any-return]


async def follow_facility(*subscribers: Any) -> FollowedFacility:
    made = FollowedFacility(await memory_agents(), *subscribers)
    await made.dispatcher.begin()
    return made


async def test_every_end_of_a_run_is_told_once_and_in_order() -> None:
    made = await follow_facility(Follower())
    events = [await made.facility.end_run() for _ in range(3)]
    await made.caught_up()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}" for event in events]
    view = await made.view()
    assert (view.unprocessed, view.consecutive_failures, view.enabled) == (0, 0, True)
    assert [item.event_id for item in view.open_items or ()] == [event.event_id for event in events]


async def test_of_the_tasks_under_way_each_sees_its_own() -> None:
    names = ("catalogue", "registration")
    made = await follow_facility(*(TaskFollower(reaction=name, workflow=name) for name in names))
    event = await made.facility.end_run()
    await made.caught_up()
    for name in names:
        assert [item.workflow_id for item in (await made.view(name)).open_items or ()] == [f"{name}:{event.event_id}"]


async def test_a_dispatcher_that_died_between_start_and_bookmark_repeats_to_no_harm() -> None:
    made = await follow_facility(Follower())
    event = await made.facility.end_run()
    await made.engine.start(Job("follow", f"follow:{event.event_id}", None, once=True))
    made.engine.end(f"follow:{event.event_id}")
    made.dispatcher = made.another()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}"]
    assert (await made.view()).unprocessed == 0


async def test_a_subscriber_that_is_off_passes_over_what_happens_for_good() -> None:
    follower = Follower(enabled=False)
    made = await follow_facility(follower)
    await made.facility.end_run()
    await made.caught_up()
    assert (await made.view()).enabled is False
    follower.enabled = True
    event = await made.facility.end_run()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}"]


@for_each("first", ["worker", "api"])
async def test_a_subscriber_switched_on_after_a_standstill_does_not_react_to_what_happened_meanwhile(first: str) -> None:
    follower = Follower(enabled=False)
    made = await follow_facility(follower)
    await made.caught_up()
    for _ in range(2):
        await made.facility.end_run()
    follower.enabled = True
    made.dispatcher = made.another()
    await (made.caught_up() if first == "worker" else made.dispatcher.begin())
    view = await made.view()
    assert (view.enabled, view.unprocessed) == (True, 0)
    event = await made.facility.end_run()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}"]


async def test_a_subscriber_that_was_on_makes_up_for_a_standstill() -> None:
    made = await follow_facility(Follower())
    await made.caught_up()
    event = await made.facility.end_run()
    made.dispatcher = made.another()
    await made.dispatcher.begin()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}"]


async def test_what_is_in_flight_when_somebody_subscribes_is_not_lost() -> None:
    made = FollowedFacility(await memory_agents(), Follower(wakes_on=(ActorRegistered,)))
    store = made.facility.store
    call, id = Caller.system(new_id()).call(made.facility.clock(), new_id()), new_id()
    event = ActorRegistered(kind=ActorKind.HUMAN).stamp(id, call.now)
    async with store.session("gate") as session:
        await session.append(Batch(call, "RegisterActor", [StreamAppend("Actor", id, 0, [(event_id := new_id(), event)])]))
        await made.facility.end_run()
        await made.dispatcher.begin()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event_id}"]


async def test_catching_up_waits_for_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await follow_facility(Follower(wakes_on=(RunCompleted,)))
    for _ in range(3):
        await made.facility.end_run()
    monkeypatch.setattr("baton.application.reactions.BATCH", 2)
    monkeypatch.setattr("baton.application.reactions.SHORTEST_INTERVAL_SECONDS", 0)
    monkeypatch.setattr("baton.application.reactions.SAVE_SECONDS", 0)
    told: list[float] = []

    async def none(at_most: float) -> None:
        told.append(at_most)
        await asyncio.Event().wait()

    made.dispatcher = made.another(news=none)
    async with made.running_dispatcher():
        await until(lambda: told)
    assert tuple(dict((await made.view()).bookmark).values()) == await made.facility.store.end()


async def test_a_bookmark_is_written_where_something_was_started_and_else_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower = Follower(enabled=False)
    made = await follow_facility(follower)
    made.dispatcher = made.another()
    await made.caught_up()
    before = made.written
    for _ in range(3):
        await made.facility.end_run()
        await made.caught_up()
    assert made.written == before, "nobody waits for the bookmark of one that is off"
    monkeypatch.setattr("baton.application.reactions.SAVE_SECONDS", 0)
    await made.caught_up()
    assert made.written == before + 2
    await made.caught_up()
    assert made.written == before + 2, "it is where it was"
    follower.enabled = True
    await made.facility.end_run()
    await made.caught_up()
    assert (await made.view()).unprocessed == 0


async def test_a_later_subscriber_does_not_react_to_the_past() -> None:
    made = FollowedFacility(await memory_agents(), Follower())
    await made.facility.end_run()
    await made.dispatcher.begin()
    event = await made.facility.end_run()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}"]


@for_each("anew", [True, False])
async def test_an_engine_that_is_away_loses_nothing(anew: bool) -> None:
    made = await follow_facility(Follower())
    event = await made.facility.end_run()
    made.engine.reachable = False
    with pytest.raises(Refusal):
        await made.caught_up()
    assert (await made.view()).open_items is None, "nobody can say what is open"
    assert (await made.view()).unprocessed == 1
    made.engine.reachable = True
    if anew:
        made.dispatcher = made.another()
    await made.caught_up()
    assert made.started_ids == [f"follow:{event.event_id}"]


class TestStumbling:
    async def test_what_one_cannot_get_past_keeps_no_other_from_going_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = Follower("first"), Follower("second", "other")
        made = await follow_facility(first, second)
        event = await made.facility.end_run()
        first.stumbles_over.add(event.event_id)
        monkeypatch.setattr("baton.application.reactions.FIRST_PAUSE", 0.001)
        monkeypatch.setattr("baton.application.reactions.LONGEST_PAUSE", 0.001)
        async with made.running_dispatcher():
            await until(lambda: made.has_failed(3, "first"))
            await until(lambda: made.started_ids)
        stuck = await made.view("first")
        assert stuck.unprocessed == 1
        assert re.fullmatch(r"ValueError at test_reactions.py:\d+", stuck.last_error_message or ""), "it may quote input"
        assert (await made.view("second")).unprocessed == 0

    @for_each("anew", [True, False])
    async def test_it_is_dismissed_by_a_person_and_the_rest_goes_on(self, anew: bool) -> None:
        follower = Follower()
        made = await follow_facility(follower)
        events = [await made.facility.end_run() for _ in range(2)]
        follower.stumbles_over.add(events[0].event_id)
        with pytest.raises(ValueError, match="cannot be read"):
            await made.caught_up()
        assert (await made.dismiss(events[0])).status == 201
        dismissal = made.facility.decisions()[-1]
        assert (dismissal.context, dismissal.choice) == ("ReactionDismissal", "EventDismissed")
        if anew:
            made.dispatcher = made.another()
        await made.caught_up()
        assert made.started_ids == [f"follow:{events[1].event_id}"]

    async def test_a_dismissal_counts_for_a_dispatcher_that_goes_on_from_memory(self) -> None:
        made = await follow_facility(Follower())
        first = await made.facility.end_run()
        await made.caught_up()
        await made.dismiss(await made.facility.end_run())
        last = await made.facility.end_run()
        await made.caught_up()
        assert made.started_ids == [f"follow:{event.event_id}" for event in (first, last)]

    async def test_a_dismissal_ends_the_wait_for_another_try(self, monkeypatch: pytest.MonkeyPatch) -> None:
        follower = Follower()
        made = await follow_facility(follower)
        events = [await made.facility.end_run() for _ in range(2)]
        follower.stumbles_over.add(events[0].event_id)
        monkeypatch.setattr("baton.application.reactions.FIRST_PAUSE", 3600)
        monkeypatch.setattr("baton.application.reactions.LONGEST_PAUSE", 3600)
        monkeypatch.setattr("baton.application.reactions.POLL_SECONDS", 0.001)
        async with made.running_dispatcher():
            await until(made.has_failed)
            await made.dismiss(events[0])
            await until(lambda: made.engine.started)
        assert made.started_ids == [f"follow:{events[1].event_id}"]

    async def test_what_cannot_even_be_noted_ends_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = Follower("first"), Follower("second", "other")
        made = await follow_facility(first, second)
        event = await made.facility.end_run()
        first.stumbles_over.add(event.event_id)
        asked: list[None] = []

        def broken_clock() -> datetime:
            asked.append(None)
            raise OverflowError

        monkeypatch.setattr("baton.application.reactions.FIRST_PAUSE", 0.001)
        monkeypatch.setattr("baton.application.reactions.LONGEST_PAUSE", 0.001)
        second.enabled = False
        made.dispatcher = made.another(clock=broken_clock)
        async with made.running_dispatcher():
            await until(lambda: len(asked) > 3)

    @for_each(
        ("which", "code", "reason"),
        [
            ("past", "EventAlreadyDismissedError", None),
            ("second", "ReactionCannotDismissEventError", "not_next"),
            ("other", "ReactionCannotDismissEventError", "not_matching"),
            ("absent", "DismissalEventNotFoundError", None),
        ],
    )
    async def test_nothing_but_the_next_one_can_be_dismissed(self, which: str, code: str, reason: str | None) -> None:
        made = await follow_facility(Follower())
        past = await made.facility.end_run()
        await made.caught_up()
        await made.facility.end_run()
        second = await made.facility.end_run()
        run_id = await made.facility.people.create(StartRun(**made.facility.line.request))
        other = made.facility.store.streams["Run", run_id][0]
        ids = {"past": past.event_id, "second": second.event_id, "other": other.event_id, "absent": new_id()}
        before = (await made.view()).bookmark
        with pytest.raises(Refusal) as caught:
            await made.facility.do(DismissEventInReaction(subscriber_name="follower", event_id=ids[which], reason="no"))
        assert (caught.value.code, caught.value.reason) == (code, reason)
        assert (await made.view()).bookmark == before

    async def test_a_subscriber_that_does_not_exist_dismisses_nothing(self) -> None:
        made = await follow_facility(Follower())
        with pytest.raises(Refusal) as caught:
            await made.facility.do(DismissEventInReaction(subscriber_name="nobody", event_id=new_id(), reason="no"))
        assert caught.value.code == "SubscriberBookmarkNotFoundError"


async def test_where_it_stands_is_written_down_even_if_nothing_concerns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await follow_facility(Follower())
    await made.facility.people.create(StartRun(**made.facility.line.request))
    await made.caught_up()
    monkeypatch.setattr("baton.application.reactions.SAVE_SECONDS", 0)
    await made.caught_up()
    assert await made.facility.store.end() == tuple(dict((await made.view()).bookmark).values())


class TestWhoReacts:
    async def test_every_agent_of_the_kind_that_is_in_service(self) -> None:
        facility = await memory_agents()
        rival, retired, drafter = await facility.rival(), await facility.rival(), await facility.rival(DRAFT)
        await facility.do(DeprecateAgent(), retired)
        endings = Debriefs(facility.agents, Settings())
        event = await facility.end_run()
        jobs = await endings.jobs(event)
        agents = {SEEDED[DEBRIEF.kind].id, rival}
        assert {job.id for job in jobs} == {f"debrief:{agent}:{event.event_id}" for agent in agents}
        assert drafter not in agents
        assert all(job.once for job in jobs)

    async def test_no_agent_whose_model_is_not_configured(self) -> None:
        facility = await memory_agents()
        facility.models.on = False
        endings = Debriefs(facility.agents, Settings())
        assert await endings.jobs(await facility.end_run()) == []

    async def test_the_promoter_to_proposals_alone(self) -> None:
        facility = await memory_agents()
        for context in ("RecipeApproval", "CautionProposal"):
            await facility.do(RegisterDecision(decided_by=await somebody(facility), context=context, choice="ProposeNotice"))
        rows = [facility.store.streams["Decision", decision.id][0] for decision in facility.decisions()]
        jobs = [await Promoter(facility.client, Settings(caution_promoter_enabled=True)).jobs(row) for row in rows]
        assert [len(found) for found in jobs] == [0, 1]
        assert jobs[1][0].id == f"promote-caution:{rows[1].stream_id}"

    @for_each(("choice", "promotes", "expected"), PROMOTIONS)
    async def test_a_drafter_to_its_own_notices_where_it_promotes(
        self, choice: str, promotes: tuple[bool, bool], expected: list[str]
    ) -> None:
        facility = await memory_agents()
        drafter = await somebody(facility)
        await facility.do(RegisterDecision(decided_by=drafter, context="CautionProposal", choice=choice))
        row = facility.store.streams["Decision", facility.decisions()[-1].id][0]
        by_promoter, by_drafter = promotes
        settings = Settings(caution_promoter_enabled=by_promoter, caution_drafter_promotes=by_drafter)
        proposals = Promoter(facility.client, settings)
        assert proposals.enabled == (by_promoter or by_drafter)
        agents = {"promoter": SEEDED["CautionPromoter"].id, "drafter": drafter}
        jobs = await proposals.jobs(row)
        assert [job.argument.agent_id for job in jobs] == [agents[name] for name in expected]
        assert len({job.id for job in jobs}) == len(jobs)

    async def test_the_supervisor_to_a_beam_that_goes_and_to_no_other_supply(self) -> None:
        facility = await memory_agents()
        cryogen = await facility.people.create(RegisterSupply(kind="cryogen", name="Helium", facility_code=LUMEN))
        unseen = await facility.another_beam(known=False)
        people = facility.people
        queries = Queries(people.store, people.authorizer, people.clock, new_id, people.ports)
        losses = RunSupervisor(facility.client, queries, Settings())
        rows = []
        for supply_id in (facility.line.supply_id, cryogen, unseen):
            await facility.do(MarkSupplyUnavailable(reason="gone"), supply_id)
            rows.append(facility.store.streams["Supply", supply_id][-1])  # type: ignore[index]
        jobs = [await losses.jobs(row) for row in rows]
        assert [len(found) for found in jobs] == [1, 0, 0]
        assert jobs[0][0].id == f"run-supervisor:{rows[0].event_id}"


async def somebody(facility: MemoryAgents) -> Any:
    return await facility.people.create(RegisterActor(name="Mira Okafor"))
