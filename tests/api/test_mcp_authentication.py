"""Who an agent is: a token on every frame where an identity provider is configured."""

from typing import Any
from uuid import uuid4

import pytest

from tests.support.api.mcp_clients import MCP, agent, send_frame, tool_result
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer
from tests.support.service import running_api

HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
FRAMES: list[tuple[str, dict[str, Any]]] = [
    ("initialize", HANDSHAKE),
    ("ping", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "get_my_access"}),
    ("no/such/method", {}),
]


async def test_every_frame_needs_a_token_meant_for_mcp(database_url: str) -> None:
    helper = str(uuid4())
    with Issuer.running_server() as issuer:
        provider = issuer.provider(subject_bindings=[{"subject": "helper", "actor_id": helper}])
        async with running_api(database_url, identity_providers=[provider]) as api:
            metadata = f'resource_metadata="{api.base_url}/.well-known/oauth-protected-resource/mcp"'
            for method, params in FRAMES:
                bare = await send_frame(api, method, params, X_Principal_Id=helper)
                assert (bare.status_code, bare.json()["code"]) == (401, "UnauthenticatedError")
                assert bare.headers["WWW-Authenticate"] == f'Bearer realm="baton", {metadata}'
                foreign = await send_frame(api, method, params, Authorization=bearer(issuer, HTTP_AUDIENCE))
                assert (foreign.status_code, foreign.json()["reason"]) == (401, "wrong_audience")
                assert 'error="invalid_token"' in foreign.headers["WWW-Authenticate"]
                welcome = await send_frame(api, method, params, Authorization=bearer(issuer, MCP_AUDIENCE))
                assert welcome.status_code == 200
            described = (await api.get("/.well-known/oauth-protected-resource/mcp")).json()
            assert described["resource"] == f"{api.base_url}/mcp"
            async with agent(api, Authorization=bearer(issuer, MCP_AUDIENCE)) as client:
                me = await tool_result(client, "get_my_access")
            assert (me["principal_id"], me["surface_id"]) == (helper, MCP)


async def test_an_agent_without_a_token_does_not_get_in(database_url: str) -> None:
    with Issuer.running_server() as issuer:
        async with running_api(database_url, identity_providers=[issuer.provider()]) as api:
            for era in ("legacy", "auto"):
                with pytest.raises(ExceptionGroup):
                    async with agent(api, era):
                        pytest.fail("connected without a token")


async def test_an_unreachable_provider_is_said_so(database_url: str) -> None:
    with Issuer.running_server() as issuer:
        async with running_api(database_url, identity_providers=[issuer.provider()]) as api:
            token = bearer(issuer, MCP_AUDIENCE)
            issuer.stop()
            unsure = await send_frame(api, "tools/list", Authorization=token)
            issuer.start()
    assert (unsure.status_code, unsure.json()["code"]) == (503, "KeySetUnavailableError")
    assert unsure.headers["Retry-After"] == "5"


def bearer(issuer: Issuer, audience: str) -> str:
    return f"Bearer {issuer.token('helper', audience=audience)}"
