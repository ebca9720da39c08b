"""MCP as agents use it: the same operations, answers and refusals as REST, over streamable HTTP."""

import json
from typing import Any
from uuid import uuid4

import pytest
from mcp.shared.exceptions import MCPError

from baton.domain.contexts import REGISTRY
from tests.support.api.mcp_clients import FRAME, MCP, OPEN, agent, refusal, send_frame, text_of, tool_result
from tests.support.service import Api, running_api

FINDERS = {"search_operations", "call_operation"}
SYSTEM_CONDUIT = "00000000-0000-0000-0000-000000000010"
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


@ERAS
async def test_every_operation_is_a_tool_under_its_own_name(api: Api, era: str) -> None:
    async with agent(api, era, toolset="all") as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
    assert tools == {operation.name for operation in REGISTRY if operation.mcp} | FINDERS
    assert "stream_events" not in tools


@ERAS
async def test_what_an_agent_does_is_what_rest_shows(api: Api, era: str) -> None:
    async with agent(api, era) as client:
        mira = (await tool_result(client, "register_actor", name="Mira Okafor", kind="human"))["actor_id"]
        assert await tool_result(client, "get_actor", actor_id=mira) == (await api.get(f"/actors/{mira}")).json()
        left = await client.call_tool("deactivate_actor", {"actor_id": mira})
        assert (left.structured_content, text_of(left)) == ({}, "Done: deactivate_actor.\n{}")
        assert left.meta is not None
        listed = await tool_result(client, "list_actors", actor_id=[mira], min_position=left.meta["baton/position"])
        assert listed == (await api.get("/actors", actor_id=mira)).json()
        assert [item["status"] for item in listed["items"]] == ["deactivated"]
        history = await tool_result(client, "get_actor_history", actor_id=mira)
        assert history == (await api.get(f"/actors/{mira}/history")).json()
        past = await tool_result(client, "get_actor", actor_id=mira, as_of_version=1)
        assert past.items() >= {"id": mira, "kind": "human", "active": True}.items()


async def test_a_command_answers_in_meta_what_rest_answers_in_headers(api: Api) -> None:
    trace = uuid4()
    async with agent(api, traceparent=f"00-{trace.hex}-00f067aa0ba902b7-01") as client:
        result = await client.call_tool("define_zone", {"name": "Hall"})
        assert result.structured_content is not None
        history = await tool_result(client, "get_zone_history", zone_id=result.structured_content["zone_id"])
    (event,) = history["items"]
    assert result.meta is not None
    assert result.meta["baton/correlation_id"] == event["correlation_id"] == str(trace)
    assert (result.meta["baton/position"], result.meta["baton/status"]) == (event["position"], 201)
    assert "baton/replayed" not in result.meta


async def test_refusals_have_the_body_that_rest_gives_them(api: Api) -> None:
    mira = await api.create("/actors", {"name": "Mira"})
    await api.execute(f"/actors/{mira}/deactivate")
    nobody = str(uuid4())
    cases: list[tuple[str, dict[str, Any], str, str, dict[str, Any] | None, int]] = [
        ("define_zone", {"name": "  "}, "POST", "/zones", {"name": "  "}, 400),
        ("register_actor", {"name": "X", "kind": "agent"}, "POST", "/actors", {"name": "X", "kind": "agent"}, 400),
        ("get_actor", {"actor_id": nobody}, "GET", f"/actors/{nobody}", None, 404),
        ("deactivate_actor", {"actor_id": nobody}, "POST", f"/actors/{nobody}/deactivate", {}, 404),
        ("deactivate_actor", {"actor_id": mira}, "POST", f"/actors/{mira}/deactivate", {}, 409),
        ("list_actors", {"cursor": "!"}, "GET", "/actors?cursor=!", None, 422),
    ]
    async with agent(api) as client:
        for tool, arguments, method, path, body, status in cases:
            answer = await api.request(method, path, json=body)
            assert answer.status_code == status
            said, expected = await refusal(client, tool, **arguments), answer.json()
            assert said.pop("correlation_id") != expected.pop("correlation_id")
            assert said.pop("instance") != expected.pop("instance")
            assert said == expected


WRONG_FORMS: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("define_zone", {"name": "Hall", "colour": "red"}, ["colour"], "extra_forbidden"),
    ("define_zone", {}, ["name"], "missing"),
    ("define_zone", {"name": 5}, ["name"], "string_type"),
    ("define_zone", {"name": "x" * 201}, ["name"], "string_too_long"),
    ("define_zone", {"name": "a\0b"}, [], "string_nul"),
    ("define_zone", {"name": "Hall", "idempotency_key": ""}, ["idempotency_key"], "key_length"),
    ("define_zone", {"name": "Hall", "idempotency_key": None}, ["idempotency_key"], "key_length"),
    ("define_zone", {"name": "Hall", "idempotency_key": "a\nb"}, ["idempotency_key"], "key_length"),
    ("get_zone", {}, ["zone_id"], "missing"),
    ("get_zone", {"zone_id": "here"}, ["zone_id"], "uuid_parsing"),
    ("get_zone", {"zone_id": 5}, ["zone_id"], "uuid_parsing"),
    ("get_zone", {"zone_id": str(uuid4()), "idempotency_key": "k"}, ["idempotency_key"], "extra_forbidden"),
    ("list_zones", {"limit": "5"}, ["limit"], "int_type"),
    ("list_zones", {"limit": 101}, ["limit"], "less_than_equal"),
    ("list_actors", {"kind": "human"}, ["kind"], "tuple_type"),
    ("search_operations", {}, ["words"], "missing"),
    ("call_operation", {"name": "define_zone", "arguments": {"nam": "x"}}, ["name"], "missing"),
]


async def test_arguments_of_the_wrong_form_are_refused(api: Api) -> None:
    async with agent(api) as client:
        for tool, arguments, loc, kind in WRONG_FORMS:
            body = await refusal(client, tool, **arguments)
            assert body["code"] == "RequestValidationError"
            assert (tool, body["errors"][0]["loc"], body["errors"][0]["type"]) == (tool, ["arguments", *loc], kind)
        unknown = await refusal(client, "define_zone", name="Hall", colour="red")
        assert unknown["detail"].endswith("colour: There is no such field. define_zone takes name.")


async def test_numbers_that_no_store_holds_are_refused(api: Api) -> None:
    frame = (
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_zones", "arguments": {"limit": 7}}}'
    )
    for number in ("NaN", "-Infinity", "1e999", "9" * 40):
        answer = await api.request("POST", "/mcp", content=frame.replace("7", number), headers=FRAME)
        result = answer.json()["result"]
        assert result["isError"], number
        assert json.loads(result["content"][0]["text"].split("\n")[2])["code"] == "RequestValidationError"


async def test_a_repeated_idempotency_key_is_answered_from_the_first_call(api: Api) -> None:
    async with agent(api) as client:
        first = await client.call_tool("define_zone", {"name": "Hall", "idempotency_key": "hall"})
        again = await client.call_tool("define_zone", {"name": "Hall", "idempotency_key": "hall"})
        through = await client.call_tool(
            "call_operation", {"name": "define_zone", "arguments": {"name": "Hall"}, "idempotency_key": "hall"}
        )
        assert first.structured_content == again.structured_content == through.structured_content
        assert again.meta is not None
        assert again.meta["baton/replayed"] is True
        other = await refusal(client, "define_zone", name="Annex", idempotency_key="hall")
    assert other["code"] == "IdempotencyConflictError"


async def test_a_key_used_over_rest_is_another_key(api: Api) -> None:
    hall = (await api.post("/zones", {"name": "Hall"}, Idempotency_Key="hall")).json()
    async with agent(api) as client:
        assert await tool_result(client, "define_zone", name="Hall", idempotency_key="hall") != hall


async def test_long_work_answers_its_ids_at_once_when_asked_to(api: Api) -> None:
    async with agent(api) as client:
        sweep = await client.call_tool("mint_missing_asset_external_ids", {"wait": 0, "idempotency_key": "sweep"})
        again = await client.call_tool("mint_missing_asset_external_ids", {"wait": 0, "idempotency_key": "sweep"})
    assert sweep.structured_content is not None
    assert sweep.structured_content.keys() == {"sweep_id", "work_id"}
    assert again.structured_content == sweep.structured_content
    assert sweep.meta is not None
    assert again.meta is not None
    assert (sweep.meta["baton/status"], again.meta["baton/replayed"]) == (202, True)


async def test_an_unknown_tool_is_a_fault_of_the_protocol(api: Api) -> None:
    async with agent(api) as client:
        with pytest.raises(MCPError, match="search_operations"):
            await client.call_tool("observe_everything", {})
        with pytest.raises(MCPError):
            await client.call_tool("stream_events", {})


async def test_operations_are_found_by_words_and_called_by_name(api: Api) -> None:
    async with agent(api) as client:
        found = (await tool_result(client, "search_operations", words="deactivate actors"))["operations"]
        assert found[0]["name"] == "deactivate_actor"
        assert found[0]["kind"] == "command"
        assert "input_schema" not in found[0]
        assert (await tool_result(client, "search_operations", query="deactivate actors"))["operations"] == found
        (hold,) = (await tool_result(client, "search_operations", words="hold_run", limit=1))["operations"]
        assert (hold["needed"], hold["optional"]) == (["run_id"], ["reason", "decided_by_decision_id"])
        (only,) = (await tool_result(client, "search_operations", words="get zone", limit=1, input_schemas=True))[
            "operations"
        ]
        assert only["name"] == "get_zone"
        assert only["input_schema"]["required"] == ["zone_id"]
        part = {"words": "define_recipe", "limit": 1, "part": "RecipeCaptureStep"}
        (only,) = (await tool_result(client, "search_operations", **part))["operations"]
        assert only["input_schema"]["required"] == ["kind", "address", "capture_name"]
        by_code = (await tool_result(client, "search_operations", words="VisitCannotHoldError", kind="command"))[
            "operations"
        ]
        assert by_code[0]["name"] == "hold_visit"
        assert not (await tool_result(client, "search_operations", words="xylophone"))["operations"]
        zone = await tool_result(client, "call_operation", name="define_zone", arguments={"name": "Hall"})
        shown = await tool_result(client, "call_operation", name="get_zone", arguments=zone)
        assert shown["name"] == "Hall"
        unknown = await refusal(client, "call_operation", name="stream_events")
        assert unknown["code"] == "UnknownOperationError"
        twice = {"name": "define_zone", "arguments": {"name": "A", "idempotency_key": "a"}, "idempotency_key": "b"}
        assert (await refusal(client, "call_operation", **twice))["errors"][0]["type"] == "repeated"


async def test_a_principal_is_shown_the_tools_its_policies_permit_and_no_verdict_is_written(
    database_url: str, eventually: Any
) -> None:
    admin = str(uuid4())
    policy_mode = {"authorization_mode": "policy", "bootstrap_principal_id": admin, "mcp_toolset": "all"}
    async with running_api(database_url, **policy_mode) as api:
        boss = api.acting_as(admin)
        helper = await boss.create("/actors", {"name": "Helper", "kind": "service_account"})
        grant = {
            "name": "Agents",
            "conduit_id": SYSTEM_CONDUIT,
            "surface_id": MCP,
            "permitted_principal_ids": [helper],
            "permitted_commands": ["DefineZone", "GetZone", "ListConduitVerdicts"],
        }
        async with agent(api.acting_as(helper)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == OPEN | FINDERS
            closed = await refusal(client, "define_zone", name="Hall")
            assert (closed["code"], closed["reason"]) == ("UnauthorizedError", "no_applicable_policy")
            policy = await boss.create("/policies", grant)
            own = {"define_zone", "get_zone", "list_conduit_verdicts"} | OPEN
            assert {tool.name for tool in (await client.list_tools()).tools} == own | FINDERS
            found = (await tool_result(client, "search_operations", words="zone", limit=50))["operations"]
            assert {operation["name"] for operation in found} <= own
            me = await tool_result(client, "get_my_access")
            assert (me["surface_id"], me["permitted_commands"]) == (MCP, sorted(grant["permitted_commands"]))
            assert [one["commands"] for one in me["policies"]] == [None], "each is listed once"
            await tool_result(client, "define_zone", name="Hall")
            denied = await refusal(client, "define_surface", name="Console", kind="HTTP")
            through = await refusal(client, "call_operation", name="list_zones")
            assert denied["reason"] == through["reason"] == "command_not_permitted"
            on_rest = (await api.acting_as(helper).get("/zones")).json()
            assert through["code"] == on_rest["code"] == "UnauthorizedError"
            assert on_rest["reason"] == "principal_not_permitted"

            async def verdicts() -> list[dict[str, Any]]:
                page = await tool_result(client, "list_conduit_verdicts", conduit_id=SYSTEM_CONDUIT, actor_id=helper)
                return list(page["items"])

            last = await eventually(lambda: latest_verdicts(verdicts))
            judged = [verdict["command_name"] for verdict in last if verdict["surface_id"] == MCP]
            names = [name for name in judged if name != "ListConduitVerdicts"]
            assert names == ["DefineZone", "DefineZone", "DefineSurface", "ListZones"]
            await boss.execute(f"/policies/{policy}/revoke-grant", {"permitted_principal_id": helper, "reason": "over"})
            assert {tool.name for tool in (await client.list_tools()).tools} == OPEN | FINDERS


async def latest_verdicts(verdicts: Any) -> list[dict[str, Any]] | None:
    """The verdicts, as soon as that of the last call is written."""
    found: list[dict[str, Any]] = await verdicts()
    return found if [verdict["command_name"] for verdict in found].count("ListZones") == 2 else None


async def test_any_replica_answers_any_frame(api: Api) -> None:
    begun = await send_frame(
        api,
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    )
    assert begun.json()["result"]["serverInfo"]["name"] == "baton"
    assert "mcp-session-id" not in begun.headers
    called = await send_frame(api, "tools/call", {"name": "define_zone", "arguments": {"name": "Hall"}})
    assert called.headers["content-type"] == "application/json"
    result = called.json()["result"]
    assert result["structuredContent"].keys() == {"zone_id"}
    assert result["_meta"]["baton/correlation_id"] == called.headers["X-Correlation-Id"]


async def test_the_list_of_tools_is_one_page(api: Api) -> None:
    async with agent(api) as client:
        assert (await client.list_tools()).next_cursor is None
        with pytest.raises(MCPError, match="one page"):
            await client.list_tools(cursor="2")


async def test_other_methods_are_refused_because_there_is_no_stream_to_open(api: Api) -> None:
    for method in ("GET", "DELETE"):
        answer = await api.request(method, "/mcp", headers=FRAME)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        assert answer.json()["code"] == "MethodNotAllowedError"


async def test_a_frame_larger_than_allowed_is_refused(database_url: str) -> None:
    async with running_api(database_url, max_request_body_size_bytes=2000) as api:
        small = await send_frame(api, "tools/list")
        assert small.status_code == 200
        frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 2000}}).encode()

        async def body_parts() -> Any:
            yield frame[:1500]
            yield frame[1500:]

        for content in (frame, body_parts()):
            refused = await api.request("POST", "/mcp", content=content, headers=FRAME)
            assert refused.status_code == 413
            assert refused.json()["code"] == "RequestTooLargeError"
            assert refused.json()["correlation_id"] == refused.headers["X-Correlation-Id"]


async def test_pages_of_other_sites_are_refused(api: Api) -> None:
    for origin in ("https://evil.example", "null", "http://localhost.evil.example:8000", "http://[evil"):
        refused = await send_frame(api, "tools/list", origin=origin)
        assert (refused.status_code, refused.json()["code"]) == (403, "ForeignRequestError")


async def test_pages_of_this_service_are_welcome(database_url: str) -> None:
    async with running_api(database_url, public_base_url="https://baton.example.org/east/") as api:
        for origin in ("https://baton.example.org", api.base_url):
            assert (await send_frame(api, "tools/list", origin=origin)).status_code == 200


async def test_a_malformed_principal_is_refused_as_on_rest(api: Api) -> None:
    refused = await send_frame(api, "tools/list", X_Principal_Id="somebody")
    assert (refused.status_code, refused.json()["code"]) == (422, "RequestValidationError")


async def test_calls_are_counted_by_operation(api: Api) -> None:
    async with agent(api) as client:
        await tool_result(client, "call_operation", name="define_zone", arguments={"name": "Hall"})
        await refusal(client, "get_zone", zone_id=str(uuid4()))
    counted = (await api.get("/metrics")).text
    assert 'baton_requests_total{operation="define_zone",status="201"}' in counted
    assert 'baton_requests_total{operation="get_zone",status="404"}' in counted
