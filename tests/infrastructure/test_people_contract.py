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
class KnownPeople:
    """The people of a store, and who makes them known."""

    client: CommandCaller
    people: People

    async def redacted_text(self) -> str:
        return str((await self.people.book()).redact(NAMED))


@pytest.fixture(params=["memory", "postgres"])
async def known_people(request: pytest.FixtureRequest) -> AsyncIterator[KnownPeople]:
    store: Store
    if request.param == "memory":
        store = MemoryStore()
        yield KnownPeople(CommandCaller(store), MemoryPeople(store))
        return
    async with runtime_pool(request.getfixturevalue("database_url"), 2) as pool:
        store = PostgresStore(pool)
        yield KnownPeople(CommandCaller(store), PostgresPeople(store))


async def test_a_book_follows_the_profiles(known_people: KnownPeople) -> None:
    assert await known_people.redacted_text() == NAMED
    contact = {"phone": "0431 8998-12", "external_id": "0000-0002-1825-0097", "external_id_scheme": "orcid"}
    mira = await known_people.client.create(RegisterActor(name="Mira", **contact))
    assert await known_people.redacted_text() == "[someone], Sam, 山田, Rover, [someone]"
    sam = await known_people.client.create(RegisterActor(name="Sam"))
    await known_people.client.do(UpdateActorProfile(name="山田", phone=None), on=mira)
    assert await known_people.redacted_text() == "Mira, [someone], Rover, 0431 899812, [someone]"
    await known_people.client.do(ForgetActor(), on=mira)
    assert await known_people.redacted_text() == NAMED.replace("Sam", "[someone]")
    await known_people.client.do(ForgetActor(), on=sam)
    assert await known_people.redacted_text() == NAMED


async def test_machines_are_no_people(known_people: KnownPeople) -> None:
    await known_people.client.create(RegisterActor(name="Rover", kind="service_account"))
    seeds = Seeds(known_people.client.store, lambda: START, new_id)
    await seeds.plant(facility_code="own-site", bootstrap_principal_id=None)
    said = f"{NAMED}, {', '.join(SEEDED)}"
    assert (await known_people.people.book()).redact(said) == said


async def test_a_book_is_kept_until_a_profile_changes(known_people: KnownPeople) -> None:
    mira = await known_people.client.create(RegisterActor(name="Mira"))
    book = await known_people.people.book()
    assert await known_people.people.book() is book
    await known_people.client.do(UpdateActorProfile(name="Sam"), on=mira)
    renewed = await known_people.people.book()
    assert renewed is not book
    assert await known_people.people.book() is renewed


async def test_a_clock_that_is_behind_hides_no_change(known_people: KnownPeople) -> None:
    mira = await known_people.client.create(RegisterActor(name="Mira"))
    await known_people.client.create(RegisterActor(name="Rover"))
    assert await known_people.redacted_text() == NAMED.replace("Mira", "[someone]").replace("Rover", "[someone]")
    known_people.client.clock.now -= timedelta(hours=1)
    await known_people.client.do(UpdateActorProfile(name="Sam"), on=mira)
    assert await known_people.redacted_text() == NAMED.replace("Sam", "[someone]").replace("Rover", "[someone]")
