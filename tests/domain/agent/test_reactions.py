"""Reactions seen from outside: how far each subscriber is, and which event may be dismissed."""

from datetime import timedelta
from typing import Any

import pytest

from baton.domain.agent.reactions import DismissEventInReaction, ListReactions, LoggedEvent, OpenItem, Reaction
from tests.support.domain.agents import decision_of
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id

STUCK = new_id()
BEFORE = Reaction(
    "run_debriefer",
    True,
    transaction_id=700,
    position=41,
    last_event_recorded_at=START,
    consecutive_failures=3,
    last_error_at=START,
    last_error_message="EngineUnavailableError: no route",
)


def logged_event(**fields: Any) -> LoggedEvent:
    """The event that the subscriber stumbles over, unless said otherwise."""
    place = {"place": (705, 44), "recorded_at": START + timedelta(minutes=1)}
    return LoggedEvent(
        **{"event_id": STUCK, "event_type": "RunAborted", **place, "matching": True, "next_id": STUCK, **fields}
    )


@pytest.fixture
def world() -> World:
    world = World()
    world.records[Reaction, "run_debriefer"] = BEFORE
    world.ports["subscriber_names"] = ("run_debriefer", "caution_promoter")
    world.ports["logged_event"] = lambda event_id, reaction: logged_event() if event_id == STUCK else None
    return world


def dismissal(**fields: Any) -> DismissEventInReaction:
    defaults = {"subscriber_name": "run_debriefer", "event_id": STUCK, "reason": "the run's plan is gone"}
    return DismissEventInReaction(**{**defaults, **fields})


def bookmark(world: World) -> Reaction:
    row = world.records[Reaction, "run_debriefer"]
    assert isinstance(row, Reaction)
    return row


def test_a_dismissal_is_a_decision_and_moves_the_bookmark_onto_the_event(world: World) -> None:
    decision_id = world.create(dismissal())
    decision = decision_of(world, decision_id)
    assert (decision.decided_by, decision.context, decision.choice) == (OPERATOR, "ReactionDismissal", "EventDismissed")
    assert decision.reasoning is not None
    for word in ("run_debriefer", "RunAborted", str(STUCK), "the run's plan is gone"):
        assert word in decision.reasoning
    assert decision.inputs == {
        "subscriber_name": "run_debriefer",
        "event_id": str(STUCK),
        "event_type": "RunAborted",
        "event_cursor": [705, 44],
        "previous_cursor": [700, 41],
    }
    assert bookmark(world) == Reaction(
        "run_debriefer", True, transaction_id=705, position=44, last_event_recorded_at=START + timedelta(minutes=1)
    )


def test_a_second_dismissal_comes_too_late(world: World) -> None:
    world.create(dismissal())
    before = len(world.streams)
    with expect_refusal("EventAlreadyDismissedError"):
        world.create(dismissal())
    assert len(world.streams) == before


@pytest.mark.parametrize("place", [(700, 41), (700, 40), (699, 999)])
def test_what_the_subscriber_is_past_cannot_be_dismissed(world: World, place: tuple[int, int]) -> None:
    world.ports["logged_event"] = lambda *asked: logged_event(place=place, next_id=new_id())
    with expect_refusal("EventAlreadyDismissedError"):
        world.create(dismissal())
    assert bookmark(world) == BEFORE


def test_what_does_not_concern_the_subscriber_cannot_be_dismissed(world: World) -> None:
    world.ports["logged_event"] = lambda *asked: logged_event(event_type="RunHeld", matching=False, next_id=new_id())
    with expect_refusal("ReactionCannotDismissEventError", "not_matching"):
        world.create(dismissal())
    assert bookmark(world) == BEFORE


def test_only_the_next_event_can_be_dismissed(world: World) -> None:
    earlier = new_id()
    world.ports["logged_event"] = lambda *asked: logged_event(next_id=earlier)
    with expect_refusal("ReactionCannotDismissEventError", "not_next") as caught:
        world.create(dismissal())
    assert caught.value.facts == {"next_event_id": str(earlier)}
    assert bookmark(world) == BEFORE


def test_a_subscriber_that_nobody_knows_is_named_first_and_then_such_an_event(world: World) -> None:
    world.records[Reaction, "long_gone"] = Reaction("long_gone", True, transaction_id=1, position=1)
    for name in ("stranger", "long_gone"):
        with expect_refusal("SubscriberBookmarkNotFoundError"):
            world.create(dismissal(subscriber_name=name, event_id=new_id(), reason=" "))
    with expect_refusal("DismissalEventNotFoundError"):
        world.create(dismissal(event_id=new_id(), reason=" "))


def test_a_dismissal_has_a_reason(world: World) -> None:
    with expect_refusal("InvalidDismissalReasonError"):
        world.create(dismissal(reason="  "))
    assert bookmark(world) == BEFORE


def test_a_dismissal_keeps_the_bookmark_from_moving_meanwhile() -> None:
    assert DismissEventInReaction.operation.lock == "reactions"


class TestTheList:
    ITEM = OpenItem(event_id=STUCK, workflow_id=f"debrief:{new_id()}", started_at=START, attempt=4, last_error="no model")

    @pytest.fixture
    def world(self, world: World) -> World:
        world.records[Reaction, "caution_promoter"] = Reaction("caution_promoter", False, transaction_id=1, position=1)
        world.records[Reaction, "long_gone"] = Reaction("long_gone", False, transaction_id=1, position=1)
        world.ports["unprocessed_counts"] = lambda rows: {row.subscriber_name: row.position for row in rows}
        world.ports["open_items"] = lambda names: {name: [self.ITEM] if name == "run_debriefer" else [] for name in names}
        return world

    def list_reactions(self, world: World, **fields: Any) -> dict[str, dict[str, Any]]:
        found = world.ask(ListReactions(**fields))
        assert found.next_cursor is None
        return {item.subscriber_name: item.model_dump(mode="json") for item in found.items}

    def test_every_subscriber_with_its_place_and_its_work(self, world: World) -> None:
        assert self.list_reactions(world) == {
            "run_debriefer": {
                "subscriber_name": "run_debriefer",
                "enabled": True,
                "bookmark": {"transaction_id": 700, "position": 41},
                "unprocessed": 41,
                "last_event_recorded_at": "2026-10-06T08:00:00Z",
                "consecutive_failures": 3,
                "last_error_at": "2026-10-06T08:00:00Z",
                "last_error_message": "EngineUnavailableError: no route",
                "open_items": [self.ITEM.model_dump(mode="json")],
            },
            "caution_promoter": {
                "subscriber_name": "caution_promoter",
                "enabled": False,
                "bookmark": {"transaction_id": 1, "position": 1},
                "unprocessed": 1,
                "last_event_recorded_at": None,
                "consecutive_failures": 0,
                "last_error_at": None,
                "last_error_message": None,
                "open_items": [],
            },
        }

    def test_one_of_them_by_name(self, world: World) -> None:
        assert self.list_reactions(world, subscriber_name="caution_promoter").keys() == {"caution_promoter"}
        for unknown in ("stranger", "long_gone"):
            assert self.list_reactions(world, subscriber_name=unknown) == {}

    def test_that_the_engine_cannot_be_asked(self, world: World) -> None:
        world.ports["open_items"] = lambda names: dict.fromkeys(names) | {"run_debriefer": [self.ITEM]}
        shown = self.list_reactions(world)
        assert len(shown["run_debriefer"]["open_items"]) == 1
        assert shown["caution_promoter"]["open_items"] is None

    def test_a_dismissed_event_no_longer_shows(self, world: World) -> None:
        world.create(dismissal())
        item = self.list_reactions(world)["run_debriefer"]
        assert item["bookmark"] == {"transaction_id": 705, "position": 44}
        assert (item["consecutive_failures"], item["last_error_at"], item["last_error_message"]) == (0, None, None)
