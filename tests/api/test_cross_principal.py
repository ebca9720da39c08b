"""A caller without permission learns nothing from a query, not even whether an id exists: every query, REST and MCP."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import jsonschema_rs
import pytest
from pydantic import TypeAdapter

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared.schema import DIALECT
from tests.support.api.mcp_clients import agent, call_tool_once, document_of, json_of, text_of, tool_result
from tests.support.api.policy_service import PolicyService, open_policy_service
from tests.support.api.samples import SYSTEM_CONDUIT
from tests.support.databases import fresh_database
from tests.support.service import Api
from tests.support.tables import for_each
from tests.support.waiting import until

OPEN = {"get_my_access", "get_holders", "withdraw_proposal"}
OF_THE_PLANT = {"read_signals"}
"""What a worker answers, of which there is none here."""
OF_SEVERAL = {"compare_runs"}
"""What needs several runs of a plan, of which one is here."""
OF_NO_ID = {"draft_steps", "resolve_signals", "read_signals", "rehearse_commands"}
"""What has a body without an id in it, and answers about anything."""
QUERIES = [operation for operation in REGISTRY if operation.kind == "query" and operation.name not in OPEN]
BY_ID = [one for one in QUERIES if "{" in one.path or (one.has_body and one.name not in OF_NO_ID)]
TOOLS = [operation for operation in QUERIES if operation.mcp and operation.name not in OF_THE_PLANT | OF_SEVERAL]


@pytest.fixture(scope="module")
async def policy_service(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PolicyService]:
    """One person holds every permission on both surfaces; another one is known to the service and holds none."""
    with fresh_database(postgres, template) as url:
        async with open_policy_service(url, tmp_path_factory.mktemp("outbox")) as policy_service:
            yield policy_service


def test_only_what_is_about_the_caller_and_who_may_do_what_needs_no_permission() -> None:
    assert {operation.name for operation in REGISTRY if operation.open} == OPEN


@for_each("operation", QUERIES)
async def test_a_stranger_is_refused_and_cannot_tell_whether_an_id_exists(
    policy_service: PolicyService, operation: Operation
) -> None:
    path, arguments = policy_service.path(operation), policy_service.arguments(operation)
    permitted = await answer(policy_service.permitted, operation, path, arguments)
    expected = 503 if operation.name in OF_THE_PLANT else 409 if operation.name in OF_SEVERAL else 200
    assert permitted.status_code == expected, permitted.text
    existing = await answer(policy_service.stranger, operation, path, arguments)
    assert_denied(existing)
    if operation not in BY_ID:
        return
    nothing = {name: str(uuid4()) for name in policy_service.ids}
    nowhere = policy_service.path(operation, nothing), policy_service.arguments(operation, nothing)
    assert (await answer(policy_service.permitted, operation, *nowhere)).status_code == 404
    missing = await answer(policy_service.stranger, operation, *nowhere)
    assert_denied(missing)
    assert without_correlation(missing) == without_correlation(existing)


@for_each("operation", TOOLS)
async def test_the_tool_answers_and_refuses_as_the_query_does(policy_service: PolicyService, operation: Operation) -> None:
    arguments = policy_service.tool_arguments(operation) | ({"full": True} if operation.name == "list_events" else {})
    permitted = await call_tool_once(policy_service.permitted, operation.name, **arguments)
    assert not permitted.is_error, text_of(permitted)
    if operation.media_types:
        assert document_of(permitted).mime_type in operation.media_types
    else:
        assert json_of(permitted) == permitted.structured_content
        form = TypeAdapter(operation.returns).json_schema(mode="serialization")
        jsonschema_rs.validate({"$schema": DIALECT, **form}, permitted.structured_content)
    denied = await call_tool_once(policy_service.stranger, operation.name, **arguments)
    assert denied.is_error, text_of(denied)
    assert denied.structured_content is None
    body = json_of(denied)
    assert (body["code"], body["reason"]) == ("UnauthorizedError", "principal_not_permitted")
    assert body["context"] == operation.context


async def test_what_needs_no_permission_says_that_there_is_none(policy_service: PolicyService) -> None:
    me = (await policy_service.stranger.get("/me")).json()
    assert me["permitted_commands"] == []
    async with agent(policy_service.stranger) as client:
        assert (await tool_result(client, "get_my_access"))["permitted_commands"] == []


async def test_a_refused_reader_stands_in_the_verdict_log(policy_service: PolicyService) -> None:
    stranger = policy_service.stranger.headers["X-Principal-Id"]
    correlation = (await policy_service.stranger.get("/zones")).json()["correlation_id"]

    async def recorded_verdicts() -> list[Any]:
        denied = {"actor_id": stranger, "decision": "Deny", "order": "desc"}
        verdicts = (await policy_service.permitted.get(f"/conduits/{SYSTEM_CONDUIT}/verdicts", **denied)).json()["items"]
        return [verdict for verdict in verdicts if verdict["correlation_id"] == correlation]

    (verdict,) = await until(recorded_verdicts)  # type: ignore[misc]
    assert (verdict["command_name"], verdict["reason"]) == ("ListZones", "principal_not_permitted")
    assert verdict["determining_policies"] == []


async def answer(api: Api, operation: Operation, path: str, arguments: dict[str, Any]) -> httpx.Response:
    """The head of an answer, and its body where it ends by itself."""
    asked = {"json": arguments} if operation.has_body else {"params": arguments}
    async with api.client.stream(operation.method, path, headers=api.headers, **asked) as response:
        if response.headers["content-type"] != "text/event-stream":
            await response.aread()
        return response


def assert_denied(response: httpx.Response) -> None:
    assert response.status_code == 403
    assert response.json()["code"] == "UnauthorizedError"
    assert response.json()["reason"] == "principal_not_permitted"


def without_correlation(response: httpx.Response) -> dict[str, Any]:
    """The body of a response without what names the request itself."""
    return {name: value for name, value in response.json().items() if name not in ("correlation_id", "instance")}
