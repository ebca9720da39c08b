"""Everybody who may come to the service behind real tokens: a person, an agent, a machine account, and pretenders."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from baton.application.ports import Batch, StreamAppend
from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.agent.agent import AgentVersioned, DefineAgent, begin_agent
from baton.domain.agent.language_model import ModelRef
from baton.domain.kernel import NIL, Call
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.api.mcp_clients import MCP
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.domain.world import START, new_id
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer
from tests.support.service import Api, running_api

OPERATOR, AGENT, GHOST = uuid4(), uuid4(), uuid4()
BINDINGS = [
    {"subject": "operator", "actor_id": str(OPERATOR)},
    {"subject": "agent", "actor_id": str(AGENT), "kind": "agent"},
    {"subject": "person said to be a machine", "actor_id": str(OPERATOR), "kind": "service_account"},
    {"subject": "agent said to be a machine", "actor_id": str(AGENT), "kind": "service_account"},
    {"subject": "machine without an actor", "actor_id": str(GHOST), "kind": "service_account"},
]
"""The tokens the issuer's deployment knows; the machine account's own is bound at run time."""
PRETENDERS = [binding["subject"] for binding in BINDINGS]
"""Everybody but the machine account."""


@dataclass(frozen=True)
class ServiceCallers:
    """A service and the tokens of those who call it; `bridge` is the machine account."""

    api: Api
    issuer: Issuer
    bridge_id: str

    def as_subject(self, subject: str, audience: str = HTTP_AUDIENCE) -> Api:
        return self.api.with_token(self.issuer.token(subject, audience=audience))

    def over_mcp(self, subject: str) -> Api:
        return self.as_subject(subject, MCP_AUDIENCE)

    @property
    def operator(self) -> Api:
        return self.as_subject("operator")

    @property
    def bridge(self) -> Api:
        return self.as_subject("bridge")


@asynccontextmanager
async def open_service_callers(database_url: str, issuer: Issuer, **settings: Any) -> AsyncIterator[ServiceCallers]:
    """A service with its callers; where policies are enforced, each of them holds every permission on both surfaces."""
    provider = issuer.provider(subject_bindings=BINDINGS)
    async with running_api(database_url, identity_providers=[provider], bootstrap_principal_id=OPERATOR, **settings) as api:
        await register_agent(database_url, AGENT)
        callers = ServiceCallers(api, issuer, "")
        operator = callers.operator
        bridge_id = await operator.create("/actors", {"name": "Plant bridge", "kind": "service_account"})
        everybody = [str(id) for id in (OPERATOR, AGENT, GHOST)] + [bridge_id]
        for surface_id in (SYSTEM_HTTP, MCP):
            grant = {"name": "Everything", "conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
            holders = {"permitted_principal_ids": everybody, "permitted_commands": [], "permitted_command_sets": ["all"]}
            await operator.create("/policies", {**grant, **holders})
        await operator.execute(f"/actors/{bridge_id}/subject-bindings/add", {"issuer": issuer.url, "subject": "bridge"})
        yield ServiceCallers(api, issuer, bridge_id)


async def register_agent(database_url: str, id: UUID) -> None:
    """An agent in service under an id that tokens are bound to beforehand, as its definition would leave it in the log."""
    call = Call(NIL, NIL, START, id, new_id())
    rules = ModelRef(provider="deterministic", model="agent:Alignment:v1")
    definition = DefineAgent(kind="Alignment", name="Alignment", version="1", model_ref=rules)
    agent, *_ = begin_agent(definition, call)
    born = [(new_id(), event.stamp(id, START)) for event in (agent, AgentVersioned(version="1"))]
    actor = [(new_id(), ActorRegistered(kind=ActorKind.AGENT).stamp(id, START))]
    async with runtime_pool(database_url, 1) as pool, PostgresStore(pool).session() as session:
        begun = [StreamAppend("Agent", id, 0, born), StreamAppend("Actor", id, 0, actor)]
        await session.append(Batch(call, "DefineAgent", begun))
