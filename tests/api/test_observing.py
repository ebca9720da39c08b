"""Who may say what the plant reads: service accounts over REST, and nobody else by any way."""

import ast
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.enclosure.enclosure import EnclosurePermitStatus
from baton.domain.kernel import Command
from baton.domain.registry import Operation
from baton.domain.shared.annotations import models_in
from baton.domain.supply.supply import SupplyStatus
from tests.support.api.callers import PRETENDERS, ServiceCallers, open_service_callers
from tests.support.api.mcp_clients import agent, refusal, tool_result
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api
from tests.support.tables import for_each

SOURCE = Path(__file__).parents[2] / "src"
READING = {"monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:PERMIT"}, "reason": "read"}
OBSERVED = {"supplies": "Unavailable", "enclosures": "Permitted"}
"""What is observed, and a status that a service account may report of it."""
OBSERVING = {"observe_supply_status": SupplyStatus, "observe_enclosure_status": EnclosurePermitStatus}


@dataclass(frozen=True)
class Plant:
    """A service in one mode of authorization, with a supply and an enclosure nobody has observed."""

    callers: ServiceCallers
    ids: dict[str, str]
    enforced: bool

    async def observe(self, api: Api, kind: str, id: str | None = None, **headers: str) -> httpx.Response:
        path = f"/{kind}/{id or self.ids[kind]}/observe-status"
        return await api.post(path, {**READING, "new_status": OBSERVED[kind]}, **headers)

    async def assert_untouched(self) -> None:
        for kind, id in self.ids.items():
            assert len((await self.callers.operator.get(f"/{kind}/{id}/history")).json()["items"]) == 1
        assert (await self.callers.operator.get(f"/enclosures/{self.ids['enclosures']}")).json()["observation_age"] is None


@pytest.fixture(scope="module", params=["permissive", "policy"])
async def plant(request: pytest.FixtureRequest, postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Plant]:
    with Issuer.running_server() as issuer, fresh_database(postgres, template) as url:
        async with open_service_callers(url, issuer, authorization_mode=request.param) as callers:
            air = {"kind": "compressed_air", "name": "Ring main", "facility_code": "facility"}
            supply = await callers.operator.create("/supplies", air)
            hutch = await callers.operator.create("/enclosures", {"name": "Hutch", "facility_code": "facility"})
            yield Plant(callers, {"supplies": supply, "enclosures": hutch}, request.param == "policy")


def assert_barred(response: httpx.Response) -> None:
    assert (response.status_code, response.json()["code"]) == (403, "UnauthorizedError")
    assert response.json()["reason"] in ("caller_kind_not_permitted", "agent_not_versioned")


@for_each("kind", OBSERVED)
@for_each("subject", PRETENDERS)
async def test_nobody_but_a_service_account_reports_a_status(plant: Plant, subject: str, kind: str) -> None:
    pretender = plant.callers.as_subject(subject)
    assert_barred(await plant.observe(pretender, kind))
    assert_barred(await plant.observe(pretender, kind, Idempotency_Key="reading"))
    assert_barred(await plant.observe(pretender, kind, X_Principal_Id=plant.callers.bridge_id))
    await plant.assert_untouched()


@for_each("kind", OBSERVED)
@for_each("subject", PRETENDERS)
async def test_whether_there_is_such_a_thing_is_not_said_to_others(plant: Plant, subject: str, kind: str) -> None:
    assert_barred(await plant.observe(plant.callers.as_subject(subject), kind, str(uuid4())))
    assert (await plant.observe(plant.callers.bridge, kind, str(uuid4()))).status_code == 404


@for_each("kind", OBSERVED)
async def test_without_a_token_nothing_is_reported(plant: Plant, kind: str) -> None:
    assert (await plant.observe(plant.callers.api, kind)).status_code == 401
    assert (await plant.observe(plant.callers.api, kind, X_Principal_Id=plant.callers.bridge_id)).status_code == 401


@for_each("kind", OBSERVED)
async def test_a_service_account_needs_the_permission_all_the_same(plant: Plant, kind: str) -> None:
    callers = plant.callers
    other = await callers.operator.create("/actors", {"name": "Other bridge", "kind": "service_account"})
    pair = {"issuer": callers.issuer.url, "subject": f"other bridge of {kind}"}
    await callers.operator.execute(f"/actors/{other}/subject-bindings/add", pair)
    answer = await plant.observe(callers.as_subject(pair["subject"]), kind, str(uuid4()))
    assert (answer.status_code, answer.json().get("reason")) == (
        (403, "principal_not_permitted") if plant.enforced else (404, None)
    )


@for_each("subject", ["bridge", *PRETENDERS])
async def test_no_tool_reports_a_status(plant: Plant, subject: str) -> None:
    async with agent(plant.callers.over_mcp(subject)) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert not tools & OBSERVING.keys()
        found = await tool_result(client, "search_operations", words="observe status of an enclosure or supply")
        assert not {operation["name"] for operation in found["operations"]} & OBSERVING.keys()
        for name, kind, id_name in (
            ("observe_supply_status", "supplies", "supply_id"),
            ("observe_enclosure_status", "enclosures", "enclosure_id"),
        ):
            arguments = {id_name: plant.ids[kind], **READING, "new_status": OBSERVED[kind]}
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, arguments)
            body = await refusal(client, "call_operation", name=name, arguments=arguments)
            assert body["code"] == "UnknownOperationError", name
    await plant.assert_untouched()


@pytest.mark.parametrize("kind", OBSERVED)
async def test_without_a_provider_a_name_alone_makes_nobody_a_service_account(api: Api, kind: str) -> None:
    path = f"/{kind}/{uuid4()}/observe-status"
    person = await api.create("/actors", {"name": "Mira"})
    bridge = await api.create("/actors", {"name": "Bridge", "kind": "service_account"})
    reading = {**READING, "new_status": OBSERVED[kind]}
    for pretender in (api, api.acting_as("00000000-0000-0000-0000-000000000000"), api.acting_as(uuid4())):
        assert_barred(await pretender.post(path, reading))
    assert_barred(await api.acting_as(person).post(path, reading))
    assert (await api.acting_as(bridge).post(path, reading)).status_code == 404


async def test_a_new_enclosure_or_supply_is_unknown_whatever_its_maker_says(plant: Plant) -> None:
    hutch = {"name": "Hutch C", "facility_code": "facility"}
    vacuum = {"kind": "vacuum", "name": "Rough line", "facility_code": "facility"}
    for path, body in (("/enclosures", hutch), ("/supplies", vacuum)):
        for key in ("status", "permit_status", "new_status", "lifecycle"):
            answer = await plant.callers.bridge.post(path, {**body, key: "Permitted"})
            assert answer.status_code == 422


def fields_of(model: Any) -> Iterator[Any]:
    """The annotation of every field of an input, however deep."""
    for info in model.model_fields.values():
        yield info.annotation
        for nested in models_in(info.annotation):
            yield from fields_of(nested)


def mentions(annotation: Any, kind: type[Any]) -> bool:
    return annotation is kind or any(mentions(part, kind) for part in getattr(annotation, "__args__", ()))


@for_each("status", [EnclosurePermitStatus, SupplyStatus])
def test_no_other_command_can_be_given_a_status(status: type[Any]) -> None:
    able = {
        operation.name
        for operation in REGISTRY
        if issubclass(operation.input, Command) and any(mentions(field, status) for field in fields_of(operation.input))
    }
    assert able == {name for name, kind in OBSERVING.items() if kind is status}


@pytest.mark.parametrize("operation", [REGISTRY.operations[name] for name in OBSERVING], ids=lambda one: one.name)
def test_a_status_is_reported_by_service_accounts_and_no_tool(operation: Operation) -> None:
    assert [kind.value for kind in operation.callers] == ["service_account"]
    assert not operation.mcp


def test_only_an_observation_writes_a_permit() -> None:
    written = [
        (path.relative_to(SOURCE).as_posix(), owner.name)
        for path in SOURCE.rglob("*.py")
        if "EnclosurePermitObserved" in path.read_text()
        for owner in ast.walk(ast.parse(path.read_text()))
        if isinstance(owner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(owner)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        if getattr(node.func, "id", getattr(node.func, "attr", None)) == "EnclosurePermitObserved"
    ]
    enclosure = "domain/enclosure/enclosure.py"
    assert written == [(enclosure, "ObserveEnclosureStatus"), (enclosure, "decide")]
