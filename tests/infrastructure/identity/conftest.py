"""A running issuer, a clock to set, bindings in memory and registries over them."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import pytest

from baton.domain.access.actor import ActorKind
from baton.infrastructure.identity import ProviderClient, ProviderRegistry
from tests.support.infrastructure.identity_provider import Issuer

MIRA = UUID("0197a100-0000-7000-8000-000000000001")


@dataclass
class SettableClock:
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class BindingsInMemory:
    """Stored bindings, as a dictionary; a failure set on it is raised instead of an answer."""

    rows: dict[tuple[str, str], tuple[UUID, ActorKind]] = field(default_factory=dict)
    failure: Exception | None = None

    async def actor_of(self, issuer: str, subject: str) -> tuple[UUID, ActorKind] | None:
        if self.failure is not None:
            raise self.failure
        return self.rows.get((issuer, subject))


Registries = Callable[..., ProviderRegistry]


@pytest.fixture(scope="session")
def running_issuer() -> Iterator[Issuer]:
    with Issuer.running_server() as issuer:
        yield issuer


@pytest.fixture
def issuer(running_issuer: Issuer) -> Issuer:
    running_issuer.reset()
    return running_issuer


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def bindings(issuer: Issuer) -> BindingsInMemory:
    return BindingsInMemory({(issuer.url, "mira-77"): (MIRA, ActorKind.HUMAN)})


@pytest.fixture(scope="session")
async def client() -> AsyncIterator[ProviderClient]:
    async with aclosing(ProviderClient()) as client:
        yield client


@pytest.fixture(scope="session")
async def impatient_client() -> AsyncIterator[ProviderClient]:
    """A client that gives up after a fraction of a second."""
    async with aclosing(ProviderClient(httpx.Timeout(0.3), deadline=0.6)) as client:
        yield client


@pytest.fixture
def registries(client: ProviderClient, clock: SettableClock, bindings: BindingsInMemory) -> Registries:
    """Makes registries."""
    return lambda *providers: ProviderRegistry(providers, bindings, client, clock)


@pytest.fixture
def impatient_registries(impatient_client: ProviderClient, clock: SettableClock, bindings: BindingsInMemory) -> Registries:
    """Makes registries that soon give up on a provider."""
    return lambda *providers: ProviderRegistry(providers, bindings, impatient_client, clock)


@pytest.fixture
def registry(registries: Registries, issuer: Issuer) -> ProviderRegistry:
    """A registry that knows the issuer by its key set."""
    return registries(issuer.provider())
