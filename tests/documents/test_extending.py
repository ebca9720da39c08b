"""What `docs/extending.md` shows is carried out: each block is put where the page says it belongs, and used."""

import asyncio
import importlib
import inspect
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest

import baton.domain
from baton.api.authentication import Authentication
from baton.api.edge import Edge
from baton.api.mcp.server import Toolbox
from baton.api.mcp.tools import tool_of
from baton.api.openapi import openapi_document
from baton.api.rest import OperationEndpoint
from baton.application.authorization import PermissiveAuthorizer
from baton.application.commands import Commands
from baton.application.conduct.actions import InvalidActionParametersError, perform
from baton.application.conduct.deciders import advice_from
from baton.application.control import ControlNotConnectedError, ControlTimeoutError, ControlWriteRejectedError
from baton.application.plant import ControlRoute, Substrate
from baton.application.ports import Caller
from baton.application.queries import Queries
from baton.application.service import Service
from baton.application.settings import McpToolset, Settings
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Registry
from baton.domain.trust.surface import SYSTEM_MCP_STREAMABLE_HTTP
from baton.infrastructure.actions.registry import installed_actions
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.identity.provider_client import ProviderClient
from baton.infrastructure.identity.registry import ProviderRegistry
from baton.infrastructure.runtime import clock, new_id
from baton.testing.engine import MemoryEngine
from baton.testing.store import MemoryStore
from tests.documents.blocks import code_of
from tests.documents.line_controller import LineController
from tests.domain import test_state_tables as tables
from tests.domain.operation.searching import PLANE, evidence, observation, searched
from tests.domain.world import OPERATOR
from tests.infrastructure.actions.packages import installed
from tests.infrastructure.control import test_control_contract as control_contract
from tests.infrastructure.control.plants import Wired
from tests.timekeeping import SimulatedTime

BLOCKS = code_of(Path("docs/extending.md"))


def test_every_block_is_carried_out_below() -> None:
    counted = {heading: len(blocks) for heading, blocks in BLOCKS.items()}
    assert counted == {"An aggregate": 1, "A verb": 3, "A decider": 1, "An action": 2, "A control adapter": 1}


def loaded(code: str, name: str) -> SimpleNamespace:
    """What a block defines."""
    names: dict[str, Any] = {"__name__": name}
    exec(compile(code, f"<{name} in docs/extending.md>", "exec"), names)
    return SimpleNamespace(**names)


def shift_module() -> str:
    """The module of the aggregate, with the verb put in: its event and fold where the fold was, its command behind."""
    (module,) = BLOCKS["An aggregate"]
    event, command, _ = BLOCKS["A verb"]
    fold, rest = module.index("@shift.evolve"), module.index("class InvalidShiftNameError")
    questions = module.index("shift.get(")
    return "\n\n".join((module[:fold], event, module[rest:questions], command, module[questions:]))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """The registry as it is while the aggregate is a part of the domain; afterwards it has never been there."""
    place = tmp_path_factory.mktemp("domain")
    (place / "shift").mkdir()
    (place / "shift" / "__init__.py").touch()
    (place / "shift" / "shift.py").write_text(shift_module())
    with pytest.MonkeyPatch.context() as patch:
        for name in ("aggregates", "operations", "projections", "permissions"):
            patch.setattr(REGISTRY, name, getattr(REGISTRY, name).copy())
        patch.setattr(baton.domain, "__path__", [*baton.domain.__path__, str(place)])
        importlib.import_module("baton.domain.shift.shift")
        yield REGISTRY
        del sys.modules["baton.domain.shift.shift"], sys.modules["baton.domain.shift"], baton.domain.shift  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Served:
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
    """Nobody has a token."""

    async def actor_of(self, issuer: str, subject: str) -> None:
        return None


@pytest.fixture
async def served(registry: Registry) -> AsyncIterator[Served]:
    store, everybody = MemoryStore(), PermissiveAuthorizer()
    commands = Commands(store, everybody, clock, new_id, {})
    service = Service(commands, Queries(store, everybody, clock, new_id, {}), everybody, MemoryEngine(), {})
    client = ProviderClient()
    authentication = Authentication(Settings(app_env="test"), ProviderRegistry((), NoBindings(), client, clock))
    edge = Edge(None, authentication, 1_000_000, asyncio.Event())
    shown = [operation for operation in registry if operation.path.startswith(("/shifts", "/actors"))]
    for operation in shown:
        edge.add(operation.method, operation.path, OperationEndpoint(operation, service), operation.name, operation.context)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=edge), base_url="http://localhost") as rest:
        yield Served(rest, Toolbox(shown, service, McpToolset.ALL))
    await client.aclose()


async def test_the_aggregate_and_its_verb_are_there_over_rest_and_mcp(served: Served) -> None:
    leader_id = await served.create("/actors", name="Mira Okafor")
    shift_id = await served.create("/shifts", name="Nigth", leader_id=leader_id)
    renamed = await served.rest.post(f"/shifts/{shift_id}/rename", json={"name": "Night"})
    assert renamed.status_code == 204
    await served.call("begin_shift", shift_id=shift_id)
    assert (await served.rest.get(f"/shifts/{shift_id}")).json() == {
        "id": shift_id,
        "name": "Night",
        "leader_id": leader_id,
        "status": "On",
    }
    (listed,) = (await served.call("list_shifts", status="On"))["items"]
    assert (listed["shift_id"], listed["name"]) == (shift_id, "Night")
    history = (await served.rest.get(f"/shifts/{shift_id}/history")).json()["items"]
    assert [event["event_type"] for event in history] == ["ShiftPlanned", "ShiftRenamed", "ShiftBegun"]
    assert (await served.rest.get(f"/shifts/{shift_id}", params={"as_of_version": 1})).json()["name"] == "Nigth"


async def test_what_the_aggregate_refuses_it_refuses_in_its_own_words(served: Served) -> None:
    nobody = await served.rest.post("/shifts", json={"name": "Night", "leader_id": str(UUID(int=7))})
    assert (nobody.status_code, nobody.json()["code"]) == (404, "ActorNotFoundError")
    leader_id = await served.create("/actors", name="Mira Okafor")
    blank = await served.rest.post("/shifts", json={"name": " ", "leader_id": leader_id})
    assert (blank.status_code, blank.json()["code"]) == (400, "InvalidShiftNameError")
    shift_id = await served.create("/shifts", name="Night", leader_id=leader_id)
    await served.call("begin_shift", shift_id=shift_id)
    late = await served.rest.post(f"/shifts/{shift_id}/rename", json={"name": "Late"})
    assert (late.status_code, late.json()["code"], late.json()["context"]) == (409, "ShiftCannotRenameError", "shift")


async def test_a_verb_that_changes_nothing_records_nothing(served: Served) -> None:
    leader_id = await served.create("/actors", name="Mira Okafor")
    shift_id = await served.create("/shifts", name="Night", leader_id=leader_id)
    assert (await served.rest.post(f"/shifts/{shift_id}/rename", json={"name": "Night"})).status_code == 204
    assert len((await served.call("get_shift_history", shift_id=shift_id))["items"]) == 1


def test_surfaces_permissions_and_documentation_follow_from_the_declarations(registry: Registry) -> None:
    names = {"plan_shift", "begin_shift", "rename_shift", "get_shift", "list_shifts", "get_shift_history"}
    assert {operation.name for operation in registry.aggregates["Shift"].operations} == names
    assert {"PlanShift", "RenameShift"} <= registry.command_names()
    assert tool_of(registry.operations["rename_shift"].input).input_schema["required"] == ["shift_id", "name"]
    only = Registry()
    only.operations = {name: registry.operations[name] for name in names}
    paths = openapi_document(only, Settings(app_env="test"))["paths"]
    assert "ShiftCannotRenameError" in paths["/shifts/{shift_id}/rename"]["post"]["responses"]["409"]["description"]
    assert "proj_shift_shift_summary" in registry.projections


def test_the_life_in_the_table_is_the_life_of_the_aggregate(registry: Registry) -> None:
    life = loaded(BLOCKS["A verb"][2], "tests.domain.shift.lifecycles").SHIFT
    for standing in life.standings():
        for name in life.verbs:
            tables.test_a_verb_succeeds_exactly_where_it_is_allowed(life, standing, name)
        tables.test_every_state_is_reached_by_its_own_verbs(life, standing)
    tables.test_no_state_is_missing_from_the_tables(life)
    declared = {operation.name for operation in registry.aggregates["Shift"].operations if operation.kind == "command"}
    assert declared == {life.creation, *life.verbs}


async def test_a_package_offers_the_action_and_the_plant_is_baked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, offered = BLOCKS["An action"]
    points = tomllib.loads(offered)["project"]["entry-points"]["baton.actions"]
    installed(tmp_path, monkeypatch, code, *(f"{name} = {place}" for name, place in points.items()))
    actions, time = installed_actions(), SimulatedTime()
    plant = Simulator({"bl7:heater": 20}, time=time)
    params = {"heater": "bl7:heater", "temperature": 120}
    assert await perform(actions, "bake", params, plant, time, 7200) == {"temperature": 120}
    assert time.passed >= 3600
    assert plant.effects().writes["bl7:heater"] == 2
    assert (await plant.read("bl7:heater")).value == 20
    with pytest.raises(InvalidActionParametersError, match="up to 200"):
        await perform(actions, "bake", {**params, "temperature": 900}, plant, time, 7200)


@pytest.fixture
async def wired() -> AsyncIterator[Wired]:
    """The control adapter of the page, and a controller that speaks its language."""
    shown = loaded(BLOCKS["A control adapter"][0], "baton.infrastructure.control.lines")
    async with LineController.running() as controller:
        control = shown.LineControl("127.0.0.1", controller.port)
        yield Wired(control, control, controller, tells_silence=False, counts=False)


KEPT = [
    (control_contract.TestReading, "test_a_time_the_source_does_not_give_is_not_invented"),
    (control_contract.TestReading, "test_an_unknown_address_is_not_connected"),
    (control_contract.TestReading, "test_a_lost_signal_has_no_value_any_more"),
    (control_contract.TestReading, "test_a_blank_address_is_malformed"),
    (control_contract.TestWriting, "test_what_was_written_is_read"),
    (control_contract.TestWriting, "test_an_unconfirmed_write_arrives_too"),
    (control_contract.TestWriting, "test_a_signal_that_is_not_there_cannot_be_written"),
    (control_contract.TestWriting, "test_a_lost_signal_cannot_be_written"),
    (control_contract.TestWriting, "test_those_who_follow_hear_what_was_written"),
    (control_contract.TestFences, "test_a_write_whose_fence_is_closed_sends_nothing"),
    (control_contract.TestFences, "test_it_is_asked_once_for_a_write_that_arrives"),
    (control_contract.TestFollowing, "test_the_present_value_comes_first_and_then_the_changes"),
    (control_contract.TestFollowing, "test_an_unknown_address_raises_at_the_first_item"),
    (control_contract.TestFollowing, "test_a_disconnect_raises_and_is_never_a_silent_pause"),
    (control_contract.TestFollowing, "test_a_signal_that_is_back_can_be_followed_again"),
    (control_contract.TestFollowing, "test_everybody_who_follows_hears_everything"),
    (control_contract.TestFollowing, "test_signals_do_not_touch_each_other"),
    (control_contract.TestClosing, "test_closing_may_be_repeated"),
]
"""What the page's adapter keeps of the contract. It announces nothing, so what comes and goes between two looks is lost."""


@pytest.mark.parametrize(("promises", "name"), KEPT, ids=lambda part: getattr(part, "__name__", part))
async def test_the_control_adapter_keeps_promises_of_the_port(wired: Wired, promises: type[Any], name: str) -> None:
    promise = getattr(promises(), name)
    known = {"control": wired.control, "impatient": wired.impatient, "plant": wired.plant, "wired": wired}
    for case in cases_of(promise):
        given = {
            parameter: value for parameter, value in known.items() if parameter in inspect.signature(promise).parameters
        }
        await promise(**given, **case)


def cases_of(promise: Any) -> list[Mapping[str, Any]]:
    """The values that a test of the contract is parametrized by."""
    for mark in getattr(promise, "pytestmark", ()):
        names, cases = mark.args
        if isinstance(names, str):
            return [{names: case} for case in cases]
        return [dict(zip(names, case, strict=True)) for case in cases]
    return [{}]


async def test_the_control_adapter_stands_behind_a_route(wired: Wired) -> None:
    routed = RoutedControl([ControlRoute(prefix="bl7:", substrate=Substrate.EPICS_CA)], {Substrate.EPICS_CA: wired.control})
    wired.plant.offer("bl7:m1.RBV", 2.5)
    assert (await routed.read("bl7:m1.RBV")).value == 2.5
    with pytest.raises(ControlWriteRejectedError, match="it is a readback"):
        await routed.write("bl7:m1.RBV", 3)


async def test_the_control_adapter_tells_a_controller_that_is_gone_from_one_that_is_slow(wired: Wired) -> None:
    shown = type(wired.control)
    with pytest.raises(ControlNotConnectedError, match="does not answer"):
        await shown("127.0.0.1", 1).read("bl7:m1")
    with pytest.raises(ControlTimeoutError, match="within 0 s"):
        await wired.control.write("bl7:m1", 1, timeout=0)


async def test_the_decider_measures_the_centre_and_stops() -> None:
    decider = loaded(BLOCKS["A decider"][0], "baton.infrastructure.decide.centre").CentreDecider()
    found = await searched(decider.advise_next, PLANE, lambda point: 1.0, 10)
    assert [seen.point for seen in found] == [{"focus": -2, "tilt": 0}, {"focus": 0, "tilt": 5}]


async def test_the_decider_remembers_nothing_and_its_advice_can_be_followed() -> None:
    decider = loaded(BLOCKS["A decider"][0], "baton.infrastructure.decide.centre").CentreDecider()
    known = [evidence(PLANE, [observation({"focus": number, "tilt": 5.0})] * number) for number in (0, 1, 2, 0)]
    advice = [await advice_from(decider, one) for one in known]
    assert advice[0] == advice[-1]
    await decider.close()
    await decider.close()
