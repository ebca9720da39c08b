"""The book of names, asked of every store: people and nobody else, as their profiles are now."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from baton.application.ports import People, Store
from baton.application.seeds import Seeds
from baton.domain.access.actor import ForgetActor, RegisterActor, UpdateActorProfile
from baton.domain.agent.seeded_agents import SEEDED
from baton.infrastructure.postgres.agent_data import PostgresPeople
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.ports import MemoryPeople
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import START, new_id

NAMED = "Mira, Sam, 山田, Rover, 0431 899812, 0000-0002-1825-0097"


@dataclass
class Known:
    """The people of a store, and who makes them known."""

    calling: CommandCaller
    people: People

    async def told(self) -> str:
        return str((await self.people.book()).redact(NAMED))


@pytest.fixture(params=["memory", "postgres"])
async def known(request: pytest.FixtureRequest) -> AsyncIterator[Known]:
    store: Store
    if request.param == "memory":
        store = MemoryStore()
        yield Known(CommandCaller(store), MemoryPeople(store))
        return
    async with runtime_pool(request.getfixturevalue("database_url"), 2) as pool:
        store = PostgresStore(pool)
        yield Known(CommandCaller(store), PostgresPeople(store))


async def test_a_book_follows_the_profiles(known: Known) -> None:
    assert await known.told() == NAMED
    contact = {"phone": "0431 8998-12", "external_id": "0000-0002-1825-0097", "external_id_scheme": "orcid"}
    mira = await known.calling.create(RegisterActor(name="Mira", **contact))
    assert await known.told() == "[someone], Sam, 山田, Rover, [someone]"
    sam = await known.calling.create(RegisterActor(name="Sam"))
    await known.calling.do(UpdateActorProfile(name="山田", phone=None), on=mira)
    assert await known.told() == "Mira, [someone], Rover, 0431 899812, [someone]"
    await known.calling.do(ForgetActor(), on=mira)
    assert await known.told() == NAMED.replace("Sam", "[someone]")
    await known.calling.do(ForgetActor(), on=sam)
    assert await known.told() == NAMED


async def test_machines_are_no_people(known: Known) -> None:
    await known.calling.create(RegisterActor(name="Rover", kind="service_account"))
    seeds = Seeds(known.calling.store, lambda: START, new_id)
    await seeds.plant(facility_code="own-site", bootstrap_principal_id=None)
    said = f"{NAMED}, {', '.join(SEEDED)}"
    assert (await known.people.book()).redact(said) == said


async def test_a_book_is_kept_until_a_profile_changes(known: Known) -> None:
    mira = await known.calling.create(RegisterActor(name="Mira"))
    book = await known.people.book()
    assert await known.people.book() is book
    await known.calling.do(UpdateActorProfile(name="Sam"), on=mira)
    renewed = await known.people.book()
    assert renewed is not book
    assert await known.people.book() is renewed


async def test_a_clock_that_is_behind_hides_no_change(known: Known) -> None:
    mira = await known.calling.create(RegisterActor(name="Mira"))
    await known.calling.create(RegisterActor(name="Rover"))
    assert await known.told() == NAMED.replace("Mira", "[someone]").replace("Rover", "[someone]")
    known.calling.clock.now -= timedelta(hours=1)
    await known.calling.do(UpdateActorProfile(name="Sam"), on=mira)
    assert await known.told() == NAMED.replace("Sam", "[someone]").replace("Rover", "[someone]")
