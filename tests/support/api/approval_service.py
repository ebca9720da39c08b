"""A service that enforces policies, where one person holds commands only with approval and others may approve."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from tests.support.api.mcp_clients import MCP
from tests.support.api.sample_parts.proposals import approve as approve_shown
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.service import Api, running_api

PROPOSING = [*("GetProposal", "ListProposals", "GetProposalHistory"), *("GetWork", "ListWaiting", "ListZones", "ListEvents")]
DECIDING = [*PROPOSING, "ApproveProposal", "RejectProposal", "ReadEventTexts"]
PROPOSED = ["DefineZone", "DeactivateActor", "RegisterActor", "HoldEverything"]


@dataclass(frozen=True)
class ApprovalService:
    """Who works there, each as a client, and what makes policies."""

    boss: Api  # holds everything
    proposer: Api  # holds PROPOSED only with approval
    approver: Api  # is named by the policy and holds the commands
    second: Api  # another such one
    powerless: Api  # is named by the policy and does not hold the commands
    bystander: Api  # holds the commands and is not named
    policy_id: str  # the one that permits with approval, on the surface of REST
    settings: dict[str, Any]  # of the service

    def settle_meanwhile(self) -> AbstractAsyncContextManager[None]:
        """Carry out what is approved meanwhile, as a worker does."""
        return settle_beside(self.boss.database_url, self.settings)

    def id_of(self, api: Api) -> str:
        return api.headers["X-Principal-Id"]

    async def define_policy(self, name: str, people: list[str], commands: list[str], **more: Any) -> str:
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        grant = {"permitted_principal_ids": people, "permitted_commands": commands}
        return await self.boss.create("/policies", {"name": name, **place, **grant, **more})

    async def register(self, name: str, *commands: str) -> Api:
        """Register a person who holds these commands, and return their client."""
        id = await self.boss.create("/actors", {"name": name})
        if commands:
            await self.define_policy(name, [id], list(commands))
        return self.boss.acting_as(id)

    async def propose(self, path: str = "/zones", body: Any = None, api: Api | None = None) -> dict[str, Any]:
        """Give a command that becomes a proposal, and return the answer."""
        response = await (api or self.proposer).post(path, body if body is not None else {"name": f"Zone {uuid4()}"})
        assert response.status_code == 202, response.text
        return dict(response.json())


async def approve(api: Api, proposed: Mapping[str, Any], **fields: Any) -> httpx.Response:
    """Approve a proposal as it is shown now."""
    return await approve_shown(api, proposed["proposal_id"], **fields)


@asynccontextmanager
async def open_approval_service(database_url: str, *, settles: bool = True) -> AsyncIterator[ApprovalService]:
    """The service with everybody in it; what is approved is carried out beside it, as by a worker, where it settles."""
    admin = str(uuid4())
    enforced: dict[str, Any] = {"authorization_mode": "policy", "bootstrap_principal_id": admin}
    settling = settle_beside(database_url, enforced) if settles else nullcontext()
    async with running_api(database_url, **enforced) as api, settling:
        boss = api.acting_as(admin)
        names = ("Proposer", "Approver", "Second approver", "Powerless", "Bystander")
        ids = {name: await boss.create("/actors", {"name": name}) for name in names}
        people = [api.acting_as(ids[name]) for name in names]
        approvers = [ids[name] for name in ("Approver", "Second approver", "Powerless")]
        policies = {}
        everything = {"permitted_principal_ids": [admin], "permitted_commands": [], "permitted_command_sets": ["all"]}
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        await boss.create("/policies", {"name": "Everything", **place, **everything})
        for surface_id in (SYSTEM_HTTP, MCP):
            place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
            grants: list[tuple[str, list[str], list[str], dict[str, Any]]] = [
                ("Proposing", [ids["Proposer"]], PROPOSING, {}),
                ("Deciding", [*approvers, ids["Bystander"]], DECIDING, {}),
                ("Holding", [ids["Approver"], ids["Second approver"], ids["Bystander"]], PROPOSED, {}),
                ("With approval", [ids["Proposer"]], PROPOSED, {"approval": {"principals": [*approvers, ids["Proposer"]]}}),
            ]
            for name, holders, commands, more in grants:
                grant = {"permitted_principal_ids": holders, "permitted_commands": commands, **more}
                policies[surface_id, name] = await boss.create("/policies", {"name": name, **place, **grant})
        yield ApprovalService(boss, *people, policies[SYSTEM_HTTP, "With approval"], enforced)


@asynccontextmanager
async def settle_beside(database_url: str, settings: dict[str, Any]) -> AsyncIterator[None]:
    """Settle every proposal there is, again and again, in a process of its own as far as the record can tell."""

    async def settle_all(runtime: Runtime) -> None:
        while True:
            for id in await runtime.proposals.unfinished_ids():
                await runtime.proposals.settle(id)
            await asyncio.sleep(0.02)

    async with Runtime(Settings(database_url=database_url, app_env="test", **settings)) as runtime:
        task = asyncio.create_task(settle_all(runtime))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
