"""A decision that reaches into a second stream: what it writes for that one is written with the first, or not at all."""

from uuid import UUID

import pytest

from baton.domain.access.actor import Actor, ActorDeactivated, ActorKind, ActorRegistered, DeactivateActor, RegisterActor
from baton.domain.kernel import Call, Outcome
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.writes import Also, Answer, Claim, Enlist
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import World, expect_refusal

BADGE, TEAM = "badge", "team"


class TakenBadge(Conflict):
    """Somebody else has this badge."""


class HandOver(DeactivateActor):
    """One actor goes and another comes, who holds the badge and is found in the team."""

    def decide(self, actor: Actor, call: Call) -> Outcome:
        heir = [
            ActorRegistered(kind=ActorKind.HUMAN),
            Claim(BADGE, "7", rival=TakenBadge("Badge 7 is taken.")),
            Enlist(TEAM, "night"),
        ]
        heir_id = call.id_for("heir")
        return [ActorDeactivated(), Enlist(TEAM, "former"), Also(Actor, heir_id, heir), Answer({"actor_id": str(heir_id)})]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def client(store: MemoryStore) -> CommandCaller:
    return CommandCaller(store)


async def test_what_is_claimed_and_enlisted_for_another_stream_is_held_by_it(
    store: MemoryStore, client: CommandCaller
) -> None:
    id = await client.create(RegisterActor(name="Mira"))
    body = (await client.do(HandOver(), on=id)).body
    assert body is not None
    heir_id = UUID(body["actor_id"])
    assert await client.versions("Actor", id) == [1, 2]
    assert await client.versions("Actor", heir_id) == [1]
    async with store.session() as session:
        assert await session.holders(BADGE, ["7"]) == {"7": heir_id}
        assert await session.members(TEAM, ["night", "former"]) == {"night": (heir_id,), "former": (id,)}


async def test_a_rival_of_the_other_stream_refuses_both(store: MemoryStore, client: CommandCaller) -> None:
    first, second = [await client.create(RegisterActor(name=name)) for name in ("Mira", "Noor")]
    await client.do(HandOver(), on=first)
    streams = set(store.streams)
    with expect_refusal(TakenBadge):
        await client.do(HandOver(), on=second)
    assert await client.versions("Actor", second) == [1]
    assert set(store.streams) == streams


def test_a_world_in_memory_does_the_same() -> None:
    world = World()
    first, second = [world.create(RegisterActor(name=name)) for name in ("Mira", "Noor")]
    world.when(HandOver(), on=first)
    heir_id = UUID(world.answer["actor_id"])
    assert world.state(Actor, heir_id).active
    assert (world.claims[BADGE, "7"], world.members[TEAM, "night"]) == (heir_id, {heir_id})
    with expect_refusal(TakenBadge):
        world.when(HandOver(), on=second)
    assert world.state(Actor, second).active
