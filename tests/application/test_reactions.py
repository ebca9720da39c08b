"""Reactions: every event that concerns somebody has its workflow started once, and trouble stays with whoever has it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from application.ports import EventRow, Job
from application.reactions import Dispatcher, ReactionSights
from application.subscribers import BeamLosses, Proposals, RunEndings
from domain.access.actor import RegisterActor
from domain.agent.agent import DeprecateAgent
from domain.agent.debriefing import DEBRIEF
from domain.agent.drafting import DRAFT
from domain.agent.reactions import DismissEventInReaction, ListReactions, ReactionView
from domain.agent.seeded import SEEDED
from domain.decision.decision import RegisterDecision
from domain.kernel import Event
from domain.run.run import RunAborted, RunCompleted
from domain.run.starting import StartRun
from domain.shared.refusals import Refusal
from domain.supply.supply import MarkSupplyUnavailable, RegisterSupply
from infrastructure.memory.engine import MemoryEngine
from tests.application.agencies import Agency, agency
from tests.domain.equipment.assets import LUMEN
from tests.domain.world import new_id


@dataclass
class Follower:
    """A subscriber that starts one workflow for each end of a run, unless something is wrong with it."""

    name: str = "follower"
    workflows: tuple[str, ...] = ("follow",)
    events: tuple[type[Event], ...] = (RunAborted, RunCompleted)
    on: bool = True
    stumbles_over: set[Any] = field(default_factory=set)

    async def enabled(self) -> bool:
        return self.on

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        if event.event_id in self.stumbles_over:
            raise ValueError("this one cannot be read")
        return (Job("follow", f"follow:{event.event_id}", None, once=True, memo={"event_id": str(event.event_id)}),)


class Following:
    """A facility, an engine that only keeps what it is told, and the dispatcher between them."""

    def __init__(self, facility: Agency, *subscribers: Any) -> None:
        self.facility = facility
        self.engine = MemoryEngine()
        self.subscribers = subscribers
        self.dispatcher = self.another()
        sights = ReactionSights(facility.store, self.engine, subscribers)
        ports = {"subscribers": sights.names, "unprocessed": sights.unprocessed}
        ports |= {"open_reactions": sights.open_items, "logged_event": sights.logged}
        facility.people.ports = {**facility.people.ports, **ports}

    def another(self) -> Dispatcher:
        """A dispatcher that knows nothing but the record."""

        async def news(at_most: float) -> None:
            await asyncio.sleep(0)

        facility = self.facility
        return Dispatcher(facility.store, self.engine, facility.clock, new_id, self.subscribers, news)

    async def caught_up(self) -> None:
        for subscriber in self.subscribers:
            while await self.dispatcher.advance(subscriber):
                pass
            await self.dispatcher.advance(subscriber)

    @property
    def started(self) -> list[str]:
        return [job.id for job in self.engine.started]

    async def seen(self, name: str = "follower") -> ReactionView:
        answer = await self.facility.people.ask(ListReactions(subscriber_name=name))
        (view,) = answer.items
        return view  # type: ignore[no-any-return]


async def following(*subscribers: Any) -> Following:
    made = Following(await agency(), *subscribers)
    await made.dispatcher.begin()
    return made


async def test_every_end_of_a_run_is_told_once_and_in_order() -> None:
    made = await following(Follower())
    events = [await made.facility.ended() for _ in range(3)]
    await made.caught_up()
    await made.caught_up()
    assert made.started == [f"follow:{event.event_id}" for event in events]
    view = await made.seen()
    assert (view.unprocessed, view.consecutive_failures, view.enabled) == (0, 0, True)
    assert [item.event_id for item in view.open_items or ()] == [event.event_id for event in events]


async def test_a_dispatcher_that_died_between_start_and_bookmark_repeats_to_no_harm() -> None:
    made = await following(Follower())
    event = await made.facility.ended()
    await made.engine.start(Job("follow", f"follow:{event.event_id}", None, once=True))
    made.engine.end(f"follow:{event.event_id}")
    made.dispatcher = made.another()
    await made.caught_up()
    assert made.started == [f"follow:{event.event_id}"]
    assert (await made.seen()).unprocessed == 0


async def test_whoever_is_off_passes_over_what_happens_for_good() -> None:
    follower = Follower(on=False)
    made = await following(follower)
    await made.facility.ended()
    await made.caught_up()
    assert (await made.seen()).enabled is False
    follower.on = True
    event = await made.facility.ended()
    await made.caught_up()
    assert made.started == [f"follow:{event.event_id}"]


async def test_whoever_subscribes_later_does_not_react_to_the_past() -> None:
    made = Following(await agency(), Follower())
    await made.facility.ended()
    await made.dispatcher.begin()
    event = await made.facility.ended()
    await made.caught_up()
    assert made.started == [f"follow:{event.event_id}"]


async def test_an_engine_that_is_away_loses_nothing() -> None:
    made = await following(Follower())
    event = await made.facility.ended()
    made.engine.reachable = False
    with pytest.raises(Refusal):
        await made.caught_up()
    assert (await made.seen()).open_items is None, "nobody can say what is open"
    assert (await made.seen()).unprocessed == 1
    made.engine.reachable = True
    made.dispatcher = made.another()
    await made.caught_up()
    assert made.started == [f"follow:{event.event_id}"]


class TestStumbling:
    async def test_what_one_cannot_get_past_keeps_no_other_from_going_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = Follower("first"), Follower("second", workflows=("other",))
        made = await following(first, second)
        event = await made.facility.ended()
        first.stumbles_over.add(event.event_id)
        running = asyncio.create_task(made.dispatcher.run())
        monkeypatch.setattr("application.reactions.FIRST_PAUSE", 0.001)
        monkeypatch.setattr("application.reactions.LONGEST_PAUSE", 0.001)
        while (await made.seen("first")).consecutive_failures < 3 or not made.started:
            assert not running.done()
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        stuck = await made.seen("first")
        assert (stuck.unprocessed, stuck.last_error_message) == (1, "ValueError: this one cannot be read")
        assert (await made.seen("second")).unprocessed == 0

    async def test_it_is_dismissed_by_a_person_and_the_rest_goes_on(self) -> None:
        follower = Follower()
        made = await following(follower)
        events = [await made.facility.ended() for _ in range(2)]
        follower.stumbles_over.add(events[0].event_id)
        with pytest.raises(ValueError, match="cannot be read"):
            await made.caught_up()
        command = DismissEventInReaction(subscriber_name="follower", event_id=events[0].event_id, reason="unreadable")
        executed = await made.facility.do(command)
        assert executed.status == 201
        dismissal = made.facility.decisions()[-1]
        assert (dismissal.context, dismissal.choice) == ("ReactionDismissal", "EventDismissed")
        made.dispatcher = made.another()
        await made.caught_up()
        assert made.started == [f"follow:{events[1].event_id}"]

    @pytest.mark.parametrize(
        ("which", "code", "reason"),
        [
            ("past", "EventAlreadyDismissedError", None),
            ("second", "ReactionCannotDismissEventError", "not_next"),
            ("other", "ReactionCannotDismissEventError", "not_matching"),
            ("absent", "DismissalEventNotFoundError", None),
        ],
    )
    async def test_nothing_but_the_next_one_can_be_dismissed(self, which: str, code: str, reason: str | None) -> None:
        made = await following(Follower())
        past = await made.facility.ended()
        await made.caught_up()
        await made.facility.ended()
        second = await made.facility.ended()
        run_id = await made.facility.people.create(StartRun(**made.facility.line.request))
        other = made.facility.store.streams["Run", run_id][0]
        ids = {"past": past.event_id, "second": second.event_id, "other": other.event_id, "absent": new_id()}
        before = (await made.seen()).bookmark
        with pytest.raises(Refusal) as caught:
            await made.facility.do(DismissEventInReaction(subscriber_name="follower", event_id=ids[which], reason="no"))
        assert (caught.value.code, caught.value.reason) == (code, reason)
        assert (await made.seen()).bookmark == before

    async def test_a_subscriber_that_does_not_exist_dismisses_nothing(self) -> None:
        made = await following(Follower())
        with pytest.raises(Refusal) as caught:
            await made.facility.do(DismissEventInReaction(subscriber_name="nobody", event_id=new_id(), reason="no"))
        assert caught.value.code == "SubscriberBookmarkNotFoundError"


async def test_where_it_stands_is_written_down_even_if_nothing_concerns_it() -> None:
    made = await following(Follower())
    await made.facility.people.create(StartRun(**made.facility.line.request))
    await made.caught_up()
    made.dispatcher._saved.clear()
    await made.caught_up()
    assert await made.facility.store.locate(2**62) == tuple(dict((await made.seen()).bookmark).values())


class TestWhoReacts:
    async def test_every_agent_of_the_kind_that_is_in_service(self) -> None:
        facility = await agency()
        rival, retired, drafter = await facility.rival(), await facility.rival(), await facility.rival(DRAFT)
        await facility.do(DeprecateAgent(), retired)
        endings = RunEndings("run_debriefer", DEBRIEF, True, facility.hands, lambda ref: True, "own-site")
        event = await facility.ended()
        jobs = await endings.jobs(event)
        agents = {SEEDED[DEBRIEF.kind].id, rival}
        assert {job.id for job in jobs} == {f"debrief:{agent}:{event.event_id}" for agent in agents}
        assert drafter not in agents
        assert all(job.once for job in jobs)

    async def test_no_agent_whose_model_is_not_configured(self) -> None:
        facility = await agency()
        endings = RunEndings("run_debriefer", DEBRIEF, True, facility.hands, lambda ref: False, "own-site")
        assert await endings.jobs(await facility.ended()) == []

    async def test_the_promoter_to_proposals_alone(self) -> None:
        facility = await agency()
        for context in ("RecipeApproval", "CautionProposal"):
            await facility.do(RegisterDecision(decided_by=await somebody(facility), context=context, choice="ProposeNotice"))
        rows = [facility.store.streams["Decision", decision.id][0] for decision in facility.decisions()]
        jobs = [await Proposals(True, "own-site").jobs(row) for row in rows]
        assert [len(found) for found in jobs] == [0, 1]
        assert jobs[1][0].id == f"promote-caution:{rows[1].stream_id}"

    async def test_the_supervisor_to_a_beam_that_goes_and_to_no_other_supply(self) -> None:
        facility = await agency()
        cryogen = await facility.people.create(RegisterSupply(kind="cryogen", name="Helium", facility_code=LUMEN))
        unseen = await facility.another_beam(known=False)
        losses = BeamLosses(True, facility.hands)
        rows = []
        for supply_id in (facility.line.supply_id, cryogen, unseen):
            await facility.do(MarkSupplyUnavailable(reason="gone"), supply_id)
            rows.append(facility.store.streams["Supply", supply_id][-1])  # type: ignore[index]
        jobs = [await losses.jobs(row) for row in rows]
        assert [len(found) for found in jobs] == [1, 0, 0]
        assert jobs[0][0].id == f"run-supervisor:{rows[0].event_id}"


async def somebody(facility: Agency) -> Any:
    return await facility.people.create(RegisterActor(name="Mira Okafor"))
