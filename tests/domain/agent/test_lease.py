"""The lease on the end of a run: one holder of each kind, for ever, known to every caller."""

import json
from itertools import permutations
from uuid import UUID, uuid5

import pytest

from baton.domain.agent.conclusions import DecisionDebriefRequested, RequestDecisionDebrief, lease_holder
from baton.domain.kernel import Event, instant
from baton.domain.run.run import AbortRun, RunAddedToCampaign
from tests.support.domain.agents import drafter, set_approved_models, versioned_agent
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import World, expect_refusal, new_id

END = new_id()


@pytest.fixture
def line() -> Beamline:
    line = beamline()
    set_approved_models(line.world)
    return line


@pytest.fixture
def run_id(line: Beamline) -> UUID:
    run_id = line.start()
    line.world.when(AbortRun(reason="rotary stage encoder offline"), on=run_id)
    return run_id


def request_lease(world: World, run_id: UUID, agent_id: UUID, end: UUID = END) -> tuple[list[Event], UUID]:
    """Request the lease as an agent, and return the events and the holder."""
    world.principal_id = agent_id
    events = world.when(RequestDecisionDebrief(terminal_event_id=end), on=run_id)
    return events, UUID(world.answer["agent_id"])


def test_the_first_who_asks_holds_the_lease(line: Beamline, run_id: UUID) -> None:
    agent_id, before = versioned_agent(line.world), line.run(run_id)
    (marker,), holder = request_lease(line.world, run_id, agent_id)
    assert (holder, marker.own_id) == (agent_id, uuid5(run_id, f"lease:{END}:{agent_id}"))
    assert line.run(run_id) == before
    assert json.loads(marker.payload()) == {
        "run_id": str(run_id),
        "debriefer_agent_id": str(agent_id),
        "debriefer_kind": "RunDebriefer",
        "terminal_event_id": str(END),
        "occurred_at": instant(line.world.now),
    }


def test_a_rival_of_the_kind_hears_who_was_first_and_writes_nothing(line: Beamline, run_id: UUID) -> None:
    first, second = versioned_agent(line.world), versioned_agent(line.world, name="Third debriefer")
    request_lease(line.world, run_id, first)
    for _ in range(2):
        assert request_lease(line.world, run_id, second) == ([], first)
    assert request_lease(line.world, run_id, first) == ([], first)


def test_a_lease_of_another_kind_is_invisible(line: Beamline, run_id: UUID) -> None:
    debriefer, second = versioned_agent(line.world), versioned_agent(line.world, name="Third debriefer")
    drafting = drafter(line.world)
    request_lease(line.world, run_id, debriefer)
    (marker,), holder = request_lease(line.world, run_id, drafting)
    assert (holder, marker.debriefer_kind) == (drafting, "CautionDrafter")  # type: ignore[attr-defined]
    assert request_lease(line.world, run_id, second) == ([], debriefer)


def test_each_end_of_a_run_has_a_lease_of_its_own(line: Beamline, run_id: UUID) -> None:
    first, second = versioned_agent(line.world), versioned_agent(line.world, name="Third debriefer")
    request_lease(line.world, run_id, first)
    (_,), holder = request_lease(line.world, run_id, second, new_id())
    assert holder == second


def test_what_else_happens_to_the_run_is_no_rival(line: Beamline, run_id: UUID) -> None:
    agent_id = versioned_agent(line.world)
    line.world.given(run_id, RunAddedToCampaign(campaign_id=new_id()))
    (_,), holder = request_lease(line.world, run_id, agent_id)
    assert holder == agent_id


def test_only_agents_take_leases(line: Beamline, run_id: UUID) -> None:
    with expect_refusal("AgentNotFoundError"):
        line.world.when(RequestDecisionDebrief(terminal_event_id=END), on=run_id)


def test_the_first_marker_in_scope_decides_whatever_else_there_is() -> None:
    own, rival, other_end = (
        DecisionDebriefRequested(debriefer_agent_id=new_id(), debriefer_kind=kind, terminal_event_id=end)
        for kind, end in (("RunDebriefer", END), ("RunDebriefer", END), ("RunDebriefer", new_id()))
    )
    other_kind = DecisionDebriefRequested(
        debriefer_agent_id=new_id(), debriefer_kind="CautionDrafter", terminal_event_id=END
    )
    for markers in permutations((own, rival, other_end, other_kind)):
        first = own if markers.index(own) < markers.index(rival) else rival
        assert lease_holder(markers, "RunDebriefer", END) == first.debriefer_agent_id
        assert lease_holder(markers, "CautionDrafter", END) == other_kind.debriefer_agent_id
    assert lease_holder((), "RunDebriefer", END) is None
    assert lease_holder((other_end, other_kind), "RunDebriefer", END) is None
