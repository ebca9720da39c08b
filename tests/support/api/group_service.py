"""A service that enforces policies behind two identity providers, with a worker beside it: people come with tokens, and what
their tokens claim makes them members of groups."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from tests.support.api.mcp_clients import MCP
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer
from tests.support.service import Api
from tests.support.workflows.conduct_service import ConductService, open_conduct_service
from tests.support.workflows.conduct_stack import OPERATOR

BOSS = "boss-1"
AUDIENCES = [HTTP_AUDIENCE, MCP_AUDIENCE]


@dataclass(frozen=True)
class Person:
    """Somebody who is registered and has a subject at both identity providers."""

    id: str
    subject: str


@dataclass(frozen=True)
class GroupService:
    """The service, its identity providers, and what makes people, groups and policies."""

    conducts: ConductService
    issuer: Issuer
    other: Issuer

    @property
    def boss(self) -> Api:
        """Somebody who holds everything."""
        return self.with_token(self.issuer.token(BOSS, audience=AUDIENCES))

    def with_token(self, token: str) -> Api:
        api = self.conducts.api
        return api.with_token(token)

    def as_person(self, person: Person, issuer: Issuer | None = None, **claims: Any) -> Api:
        """Return the client of a person whose token says this."""
        return self.with_token((issuer or self.issuer).token(person.subject, audience=AUDIENCES, **claims))

    async def register(self, name: str = "Mira Okafor") -> Person:
        person = Person(await self.boss.create("/actors", {"name": name}), f"subject-{uuid4()}")
        for issuer in (self.issuer, self.other):
            binding = {"issuer": issuer.url, "subject": person.subject}
            await self.boss.execute(f"/actors/{person.id}/subject-bindings/add", binding)
        return person

    async def define_group(self, path: str | None = None, value: str = "", *members: Person) -> str:
        """Define a group of these members, and of everybody whose token of the first issuer has this value there."""
        claim = {} if path is None else {"claim": {"issuer": self.issuer.url, "path": path, "value": value}}
        id = await self.boss.create("/groups", {"name": f"Crew {uuid4()}", **claim})
        for member in members:
            await self.boss.execute(f"/groups/{id}/add-member", {"actor_id": member.id})
        return id

    async def permit(self, groups: list[str], *commands: str, surface_id: str = SYSTEM_HTTP, **more: Any) -> str:
        """Permit groups these commands, and return the policy."""
        grant = {"permitted_principal_ids": [], "permitted_group_ids": groups, "permitted_commands": list(commands)}
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
        return await self.boss.create("/policies", {"name": f"Work {uuid4()}", **place, **grant, **more})

    async def tables_with(self, text: str) -> set[str]:
        """Return the tables of the database in which this text stands anywhere."""
        listed = (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        async with await psycopg.AsyncConnection.connect(self.conducts.api.database_url) as connection:
            names = [name for (name,) in await (await connection.execute(listed)).fetchall()]
            found = set()
            for name in names:
                query = f'SELECT 1 FROM "{name}" AS row WHERE row::text LIKE %s LIMIT 1'
                if await (await connection.execute(query, (f"%{text}%",))).fetchone():  # type: ignore[arg-type]
                    found.add(name)
        return found


def denial(response: httpx.Response) -> str:
    """Return why a caller was refused by policies."""
    assert (response.status_code, response.json()["code"]) == (403, "UnauthorizedError"), response.text
    return str(response.json()["reason"])


@asynccontextmanager
async def open_group_service(
    database_url: str, temporal_address: str, issuer: Issuer, other: Issuer
) -> AsyncIterator[GroupService]:
    """The service until the end of the block."""
    providers = [issuer.provider(subject_bindings=[{"subject": BOSS, "actor_id": str(OPERATOR)}]), other.provider()]
    enforced: dict[str, Any] = {"authorization_mode": "policy", "bootstrap_principal_id": OPERATOR}
    edge = {**enforced, "identity_providers": providers}
    async with open_conduct_service(database_url, temporal_address, service=edge, **enforced) as conducts:
        service = GroupService(conducts, issuer, other)
        everything = {
            "permitted_principal_ids": [str(OPERATOR)],
            "permitted_commands": [],
            "permitted_command_sets": ["all"],
        }
        for surface_id in (SYSTEM_HTTP, MCP):
            place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
            await service.boss.create("/policies", {"name": "Everything", **place, **everything})
        yield service
