"""What `docs/developing.md` shows is run: each block is put where the page says it belongs, and used."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from inspect import unwrap
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from baton.api.authentication import Authentication
from baton.api.edge import OperationRoutes, make_application
from baton.api.mcp.toolbox import Toolbox
from baton.api.mcp.tools import tool_of
from baton.api.openapi import registry_document
from baton.api.rest import OperationEndpoint
from baton.application.authorization import PermissiveAuthorizer
from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.queries import Queries
from baton.application.service import Service
from baton.application.settings import McpToolset, Settings
from baton.domain.registry import Registry
from baton.domain.trust.surface import SYSTEM_MCP_STREAMABLE_HTTP
from baton.infrastructure.identity import ProviderClient, ProviderRegistry
from baton.infrastructure.wall_clock import clock, new_id
from baton.testing.ports import MemoryEngine
from baton.testing.store import MemoryStore
from tests.domain import test_state_tables as tables
from tests.support.documents.fenced_blocks import code_of
from tests.support.documents.shift_aggregate import aggregate_source, declared_aggregate
from tests.support.domain.world import OPERATOR

BLOCKS = code_of(Path("docs/developing.md"))


def test_every_block_is_run_below() -> None:
    assert {heading: len(blocks) for heading, blocks in BLOCKS.items()} == {"An aggregate": 1, "A verb": 3}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """The registry while the aggregate, with its verb put in before its questions, is a part of the domain."""
    module = aggregate_source()
    event, command, _ = BLOCKS["A verb"]
    questions = module.index("GetShift = ")
    source = "\n\n".join((module[:questions], event, command, module[questions:]))
    with declared_aggregate(source, tmp_path_factory.mktemp("domain")) as registry:
        yield registry


@dataclass(frozen=True)
class MemoryService:
    """The service in memory, over REST and over MCP."""

    rest: httpx.AsyncClient
    tools: Toolbox

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.tools.call(tool, arguments, Caller(OPERATOR, SYSTEM_MCP_STREAMABLE_HTTP, new_id()))
        assert not result.is_error, result.content
        return result.structured_content

    async def create(self, path: str, **fields: Any) -> str:
        answer = await self.rest.post(path, json=fields)
        assert answer.status_code == 201, answer.text
        return str(next(iter(answer.json().values())))


class NoBindings:
    """No token is bound to an actor."""

    async def actor_of(self, issuer: str, subject: str) -> None:
        return None


@pytest.fixture
async def memory_service(registry: Registry) -> AsyncIterator[MemoryService]:
    """The service in memory with the operations of the page."""
    store, authorizer = MemoryStore(), PermissiveAuthorizer()
    commands = Commands(store, authorizer, clock, new_id, {})
    service = Service(commands, Queries(store, authorizer, clock, new_id, {}), authorizer, MemoryEngine(), {})
    client = ProviderClient()
    authentication = Authentication(Settings(app_env="test"), ProviderRegistry((), NoBindings(), client, clock))
    limits = 1_000_000, asyncio.Event()
    operations = OperationRoutes(authentication, *limits)
    shown = [operation for operation in registry if operation.path.startswith(("/shifts", "/actors"))]
    for operation in shown:
        endpoint = OperationEndpoint(operation, service)
        operations.add(operation.method, operation.path, endpoint, operation.name, operation.context)
    app = make_application(operations, authentication, *limits)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as rest:
        yield MemoryService(rest, Toolbox(shown, service, McpToolset.ALL))
    await client.aclose()


async def test_the_aggregate_and_its_verb_are_there_over_rest_and_mcp(memory_service: MemoryService) -> None:
    leader_id = await memory_service.create("/actors", name="Mira Okafor")
    shift_id = await memory_service.create("/shifts", name="Nigth", leader_id=leader_id, hours=8)
    renamed = await memory_service.rest.post(f"/shifts/{shift_id}/rename", json={"name": "Night"})
    assert renamed.status_code == 204
    await memory_service.call("begin_shift", shift_id=shift_id)
    shown = (await memory_service.rest.get(f"/shifts/{shift_id}")).json()
    assert shown == {
        "id": shift_id,
        "shift_id": shift_id,
        "created_at": shown["created_at"],
        "name": "Night",
        "leader_id": leader_id,
        "hours": 8,
        "status": "On",
    }
    (listed,) = (await memory_service.call("list_shifts", status="On"))["items"]
    assert (listed["shift_id"], listed["name"]) == (shift_id, "Night")
    history = (await memory_service.rest.get(f"/shifts/{shift_id}/history")).json()["items"]
    assert [event["event_type"] for event in history] == ["ShiftPlanned", "ShiftRenamed", "ShiftBegun"]
    assert (await memory_service.rest.get(f"/shifts/{shift_id}", params={"as_of_version": 1})).json()["name"] == "Nigth"


async def test_what_the_aggregate_refuses_it_refuses_in_its_own_words(memory_service: MemoryService) -> None:
    nobody = await memory_service.rest.post("/shifts", json={"name": "Night", "leader_id": str(UUID(int=7)), "hours": 8})
    assert (nobody.status_code, nobody.json()["code"]) == (404, "ActorNotFoundError")
    leader_id = await memory_service.create("/actors", name="Mira Okafor")
    blank = await memory_service.rest.post("/shifts", json={"name": " ", "leader_id": leader_id, "hours": 8})
    assert (blank.status_code, blank.json()["code"]) == (400, "InvalidShiftNameError")
    shift_id = await memory_service.create("/shifts", name="Night", leader_id=leader_id, hours=8)
    await memory_service.call("begin_shift", shift_id=shift_id)
    late = await memory_service.rest.post(f"/shifts/{shift_id}/rename", json={"name": "Late"})
    assert (late.status_code, late.json()["code"], late.json()["context"]) == (409, "ShiftCannotRenameError", "shift")


async def test_a_verb_that_changes_nothing_records_nothing(memory_service: MemoryService) -> None:
    leader_id = await memory_service.create("/actors", name="Mira Okafor")
    shift_id = await memory_service.create("/shifts", name="Night", leader_id=leader_id, hours=8)
    assert (await memory_service.rest.post(f"/shifts/{shift_id}/rename", json={"name": "Night"})).status_code == 204
    assert len((await memory_service.call("get_shift_history", shift_id=shift_id))["items"]) == 1


def test_surfaces_permissions_and_documentation_follow_from_the_declarations(registry: Registry) -> None:
    names = {"plan_shift", "begin_shift", "rename_shift", "get_shift", "list_shifts", "get_shift_history"}
    assert {operation.name for operation in registry.aggregates["Shift"].operations} == names
    assert {"PlanShift", "RenameShift"} <= registry.command_names()
    assert tool_of(registry.operations["rename_shift"].input).input_schema["required"] == ["shift_id", "name"]
    only = Registry()
    only.operations = {name: registry.operations[name] for name in names}
    paths = registry_document(only)["paths"]
    assert "ShiftCannotRenameError" in paths["/shifts/{shift_id}/rename"]["post"]["x-refusals"]
    assert "proj_shift_shift_summary" in registry.projections


def test_the_life_in_the_table_is_the_life_of_the_aggregate(registry: Registry) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS["A verb"][2], names)
    life = names["SHIFT"]
    for standing in life.states():
        for name in life.verbs:
            unwrap(tables.test_a_verb_succeeds_exactly_where_it_is_allowed)(life, standing, name)
        unwrap(tables.test_every_state_is_reached_by_its_own_verbs)(life, standing)
    unwrap(tables.test_no_state_is_missing_from_the_tables)(life)
    declared = {operation.name for operation in registry.aggregates["Shift"].operations if operation.kind == "command"}
    assert declared == {life.creation, *life.verbs}
