"""Whoever is not permitted a query learns nothing from it, not even whether an id exists: every query, REST and MCP."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cli.embedded.postgres import EmbeddedPostgres
from domain.contexts import REGISTRY
from domain.kernel import Operation
from tests.api.agents import MCP, agent, done, refusal
from tests.api.furnishing import SYSTEM_CONDUIT, SYSTEM_HTTP, furnished
from tests.api.serving import shared_database
from tests.conftest import until
from tests.running import Api, running_api

ARGUMENTS: dict[str, dict[str, str]] = {
    "get_actor": {},
    "get_actor_history": {},
    "get_actor_profile": {},
    "list_actors": {},
    "get_zone": {},
    "get_zone_history": {},
    "list_zones": {},
    "get_conduit": {},
    "get_conduit_history": {},
    "list_conduits": {},
    "list_conduit_verdicts": {},
    "get_surface": {},
    "get_surface_control": {},
    "get_surface_history": {},
    "list_surfaces": {},
    "get_policy": {},
    "get_policy_history": {},
    "list_policies": {},
    "evaluate_policy": {
        "evaluated_principal_id": "{actor_id}",
        "evaluated_command_name": "GetVisit",
        "evaluated_conduit_id": "{conduit_id}",
        "evaluated_surface_id": "{surface_id}",
    },
    "list_permissions": {
        "evaluated_principal_id": "{actor_id}",
        "evaluated_conduit_id": "{conduit_id}",
        "evaluated_surface_id": "{surface_id}",
    },
    "get_visit": {},
    "get_visit_history": {},
    "list_visits": {},
    "list_visit_presence": {},
    "get_facility": {},
    "get_facility_history": {},
    "list_facilities": {},
    "get_asset": {},
    "get_asset_history": {},
    "get_asset_integration_view": {},
    "get_asset_mint_sweep": {},
    "get_asset_pidinst": {},
    "get_asset_tree": {},
    "list_assets": {},
    "get_family": {},
    "get_family_history": {},
    "list_families": {},
    "list_affordances": {},
    "get_role": {},
    "get_role_history": {},
    "list_roles": {},
    "get_model": {},
    "get_model_history": {},
    "list_models": {},
    "get_frame": {},
    "get_frame_history": {},
    "list_frames": {},
    "get_mount": {},
    "get_mount_history": {},
    "list_mounts": {},
    "get_assembly": {},
    "get_assembly_history": {},
    "list_assemblies": {},
    "get_fixture": {},
    "get_fixture_history": {},
    "get_fixture_pidinst": {},
    "list_fixtures": {},
    "list_events": {},
    "stream_events": {},
}
"""Every query that needs a permission, with what it must be asked besides the ids in its path."""
OPEN = {"get_my_access"}
QUERIES = [operation for operation in REGISTRY if operation.name in ARGUMENTS]
BY_ID = [operation for operation in QUERIES if "{" in operation.path]
TOOLS = [operation for operation in QUERIES if operation.mcp]


@dataclass(frozen=True)
class House:
    """A service that enforces policies, with one of everything in it."""

    permitted: Api
    stranger: Api
    ids: dict[str, str]

    def path(self, operation: Operation, ids: dict[str, str] | None = None) -> str:
        return operation.path.format(**(ids or self.ids))

    def arguments(self, operation: Operation) -> dict[str, str]:
        return {name: value.format(**self.ids) for name, value in ARGUMENTS[operation.name].items()}

    def tool_arguments(self, operation: Operation) -> dict[str, Any]:
        named = [name for name in (operation.target, *operation.path_fields) if name]
        return {**{name: self.ids[name] for name in named}, **self.arguments(operation)}


@pytest.fixture(scope="module")
async def house(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[House]:
    """One person holds every permission on both surfaces; another one is known to the service and holds none."""
    admin, enforced = str(uuid4()), {"authorization_mode": "policy"}
    with shared_database(postgres, template) as url:
        async with running_api(url, bootstrap_principal_id=admin, **enforced) as api:
            boss = api.acting_as(admin)
            owner = await boss.create("/actors", {"name": "Owner"})
            stranger = await boss.create("/actors", {"name": "Stranger"})
            for surface_id in (SYSTEM_HTTP, MCP):
                grant = {"name": "Everything", "conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
                holders = {"permitted_principal_ids": [owner], "permitted_commands": [], "permitted_command_sets": ["all"]}
                await boss.create("/policies", {**grant, **holders})
            permitted = api.acting_as(owner)
            yield House(permitted, api.acting_as(stranger), await furnished(permitted))


def test_no_query_is_left_out() -> None:
    queries = {operation.name for operation in REGISTRY if operation.kind == "query"}
    assert queries == ARGUMENTS.keys() | OPEN
    assert {operation.name for operation in REGISTRY if operation.open} == OPEN


@pytest.mark.parametrize("operation", QUERIES, ids=lambda operation: operation.name)
async def test_the_permitted_are_answered_and_the_stranger_is_refused(house: House, operation: Operation) -> None:
    path, arguments = house.path(operation), house.arguments(operation)
    assert (await answer(house.permitted, path, arguments)).status_code == 200
    assert_denied(await answer(house.stranger, path, arguments))


@pytest.mark.parametrize("operation", BY_ID, ids=lambda operation: operation.name)
async def test_a_stranger_cannot_tell_whether_an_id_exists(house: House, operation: Operation) -> None:
    nothing = {name: str(uuid4()) for name in house.ids}
    path, arguments = house.path(operation, nothing), house.arguments(operation)
    assert (await answer(house.permitted, path, arguments)).status_code == 404
    missing = await answer(house.stranger, path, arguments)
    existing = await answer(house.stranger, house.path(operation), arguments)
    assert_denied(missing)
    assert without_correlation(missing) == without_correlation(existing)


@pytest.mark.parametrize("operation", TOOLS, ids=lambda operation: operation.name)
async def test_the_tool_refuses_as_the_query_does(house: House, operation: Operation) -> None:
    arguments = house.tool_arguments(operation)
    async with agent(house.permitted) as client:
        await done(client, operation.name, **arguments)
    async with agent(house.stranger) as client:
        body = await refusal(client, operation.name, **arguments)
    assert (body["code"], body["reason"]) == ("UnauthorizedError", "principal_not_permitted")
    assert body["context"] == operation.context


async def test_what_needs_no_permission_says_that_there_is_none(house: House) -> None:
    me = (await house.stranger.get("/me")).json()
    assert me["permitted_commands"] == []
    async with agent(house.stranger) as client:
        assert (await done(client, "get_my_access"))["permitted_commands"] == []


async def test_a_refused_reader_stands_in_the_verdict_log(house: House) -> None:
    stranger = house.stranger.headers["X-Principal-Id"]
    correlation = (await house.stranger.get("/zones")).json()["correlation_id"]

    async def recorded() -> list[Any]:
        denied = {"actor_id": stranger, "decision": "Deny", "order": "desc"}
        verdicts = (await house.permitted.get(f"/conduits/{SYSTEM_CONDUIT}/verdicts", **denied)).json()["items"]
        return [verdict for verdict in verdicts if verdict["correlation_id"] == correlation]

    (verdict,) = await until(recorded)  # type: ignore[misc]
    assert (verdict["command_name"], verdict["reason"]) == ("ListZones", "principal_not_permitted")
    assert verdict["determining_policies"] == []


async def answer(api: Api, path: str, arguments: dict[str, str]) -> httpx.Response:
    """The head of an answer, and its body where it ends by itself."""
    async with api.client.stream("GET", path, params=arguments, headers=api.headers) as response:
        if response.headers["content-type"] != "text/event-stream":
            await response.aread()
        return response


def assert_denied(response: httpx.Response) -> None:
    assert response.status_code == 403
    assert response.json()["code"] == "UnauthorizedError"
    assert response.json()["reason"] == "principal_not_permitted"


def without_correlation(response: httpx.Response) -> dict[str, Any]:
    return {name: value for name, value in response.json().items() if name != "correlation_id"}
