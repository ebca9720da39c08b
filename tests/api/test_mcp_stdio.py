"""MCP over the standard streams of a process, as a desktop agent starts it."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult

from baton.domain.kernel import NIL
from tests.support.api.mcp_clients import OPEN, refusal, tool_result
from tests.support.api.sample_parts import proposals
from tests.support.service import Api, running_api

STDIO = "00000000-0000-0000-0000-000000000021"
SYSTEM_CONDUIT = "00000000-0000-0000-0000-000000000010"


def mcp_process(program: Path, environment: dict[str, str]) -> Any:
    """Return a process of its own for a client, which writes where this process writes now."""
    server = StdioServerParameters(command=str(program), args=["mcp"], env=environment)
    return stdio_client(server, errlog=sys.stderr)


@asynccontextmanager
async def running_mcp_process(
    program: Path, database_url: str, mode: str = "auto", hear: Any = None, ask: Any = None, **environment: str
) -> AsyncIterator[Client]:
    """A client of a process of its own."""
    environment = {"DATABASE_URL": database_url, "APP_ENV": "test", "MCP_TOOLSET": "all", **environment}
    process = mcp_process(program, environment)
    async with Client(process, mode=mode, message_handler=hear, elicitation_callback=ask) as client:
        yield client


async def test_an_agent_works_over_stdio(database_url: str, baton_program: Path) -> None:
    async with running_mcp_process(baton_program, database_url, "legacy") as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"define_zone", "get_zone", "search_operations", "call_operation"} <= tools
        zone = await tool_result(client, "define_zone", name="Hall", idempotency_key="hall")
        assert await tool_result(client, "define_zone", name="Hall", idempotency_key="hall") == zone
        assert (await tool_result(client, "get_zone", **zone))["name"] == "Hall"
        missing = await refusal(client, "get_zone", zone_id=str(uuid4()))
        assert missing["code"] == "ZoneNotFoundError"
        me = await tool_result(client, "get_my_access")
    assert (me["principal_id"], me["surface_id"]) == (str(NIL), STDIO)


async def test_the_configured_principal_acts_under_the_policies_of_stdio(database_url: str, baton_program: Path) -> None:
    admin = str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        helper = await create_permitted_actor(api.acting_as(admin))
        identity = {"AUTHORIZATION_MODE": "policy", "MCP_STDIO_PRINCIPAL_ID": helper}
        async with running_mcp_process(baton_program, database_url, **identity) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {"search_operations", "call_operation", *OPEN, "define_zone", "get_zone_history"}
            zone = await tool_result(client, "define_zone", name="Hall")
            (event,) = (await tool_result(client, "get_zone_history", **zone))["items"]
            assert event["principal_id"] == helper
            denied = await refusal(client, "list_zones")
    assert (denied["code"], denied["reason"]) == ("UnauthorizedError", "command_not_permitted")


async def test_the_person_at_a_desk_is_asked_within_the_session_before_an_approval_is_given(
    database_url: str, baton_program: Path
) -> None:
    """Over the protocol before 2026 the service asks while the call is under way."""
    asked: list[str] = []

    async def decline(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="decline")

    async with running_api(database_url) as api:
        ids = {
            "conduit_id": SYSTEM_CONDUIT,
            "surface_id": STDIO,
            "actor_id": await api.create("/actors", {"name": "Helper"}),
        }
        await proposals.create_samples(api, ids, "stdio")
        shown = (await api.get(f"/proposals/{ids['proposal_id']}")).json()
    async with running_mcp_process(baton_program, database_url, "legacy", ask=decline) as client:
        arguments = {"proposal_id": ids["proposal_id"], "digest": shown["digest"]}
        refused = await refusal(client, "approve_proposal", **arguments)
        unknown = await refusal(client, "approve_proposal", **{**arguments, "proposal_id": str(uuid4())})
    assert (refused["code"], unknown["code"]) == ("ApprovalNotConfirmedError", "ProposalNotFoundError")
    (message,) = asked
    assert ids["proposal_id"] in message
    assert "Command: AddGroupMember" in message


async def create_permitted_actor(boss: Api) -> str:
    """An actor that a policy on the surface of stdio permits two commands."""
    helper = await boss.create("/actors", {"name": "Helper", "kind": "service_account"})
    grant = {"name": "PageQueries", "conduit_id": SYSTEM_CONDUIT, "surface_id": STDIO, "permitted_principal_ids": [helper]}
    await boss.create("/policies", {**grant, "permitted_commands": ["DefineZone", "GetZoneHistory"]})
    return helper
