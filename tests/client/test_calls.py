"""Calls of the client: names for ids, refusals as their own classes, keys that make repeats harmless, other versions."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

import baton.api.errors
from baton.client import AsyncBaton, Baton
from baton.client import refusals as client_refusals
from baton.client.exchanges import ClientSession, NoAnswer, Wait
from baton.client.index import FORMS, OPERATIONS, REFUSALS
from baton.client.refusals import (
    AmbiguousNameError,
    ArgumentsError,
    Conflict,
    InvalidAddressError,
    NotBatonError,
    NotFound,
    Refusal,
    ServiceUnreachableError,
    UnknownNameError,
)
from baton.client.requests import HttpRequest, HttpResponse, parse, request_of
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared import refusals as domain_refusals
from tests.support.api.lossy_proxy import running_lossy_proxy
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.tables import for_each


@pytest.fixture(scope="module")
async def service(postgres: Any, template: str) -> AsyncIterator[Api]:
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            yield api


@pytest.fixture(scope="module")
async def client(service: Api) -> AsyncIterator[AsyncBaton]:
    async with AsyncBaton(service.base_url) as client:
        yield client


async def register_stage(client: AsyncBaton, name: str) -> UUID:
    return (await client.register_asset(name=name, tier="Unit", facility_code="facility")).asset_id


async def test_a_list_shows_what_the_same_client_did_before(client: AsyncBaton) -> None:
    name = f"Stage {uuid4()}"
    asset_id = await register_stage(client, name)
    assert [row.asset_id for row in (await client.list_assets(name=name)).items] == [asset_id]


async def test_a_name_stands_for_an_id_in_the_path_and_in_fields(client: AsyncBaton) -> None:
    name = f"Stage {uuid4()}"
    asset_id = await register_stage(client, name)
    child = await client.register_asset(name=f"Camera {uuid4()}", tier="Device", parent_id=name)
    assert (await client.get_asset(child.asset_id)).parent_id == asset_id
    await client.assets[name].activate()
    assert (await client.get_asset(name)).lifecycle == "Active"


async def test_a_name_of_several_things_is_refused_with_the_candidates(client: AsyncBaton) -> None:
    name = f"Stage {uuid4()}"
    ids = {str(await register_stage(client, name)), str(await register_stage(client, name))}
    with pytest.raises(AmbiguousNameError) as refused:
        await client.get_asset(name)
    assert refused.value.candidates.keys() == ids
    assert all(id in str(refused.value) for id in ids)


async def test_a_name_that_nothing_has_is_refused_with_names_like_it(client: AsyncBaton) -> None:
    mark = uuid4().hex[:8]
    await register_stage(client, f"Rotary {mark}")
    with pytest.raises(UnknownNameError, match=f"There is no asset called '{mark}'. Did you mean 'Rotary {mark}'?"):
        await client.get_asset(mark)


async def test_a_name_that_is_spelt_wrongly_is_refused_with_the_name_that_is_meant(client: AsyncBaton) -> None:
    mark = uuid4().hex[:8]
    await register_stage(client, f"First {mark}")
    with pytest.raises(UnknownNameError, match=f"Did you mean 'First {mark}'"):
        await client.get_asset(f"Frist {mark}")


async def test_an_asset_is_named_by_its_path(client: AsyncBaton) -> None:
    hall, unit = f"Hall {uuid4()}", f"Unit {uuid4()}"
    ids = {}
    for parent in (hall, unit):
        await register_stage(client, parent)
        ids[parent] = (await client.register_asset(name="A/B camera", tier="Device", parent_id=parent)).asset_id
    assert (await client.get_asset(f"{unit}/A\\/B camera")).id == ids[unit]
    mounted = await client.register_asset(name="Lens", tier="Device", parent_id=f"{hall}/A\\/B camera")
    assert (await client.get_asset(f"{hall}/A\\/B camera/Lens")).id == mounted.asset_id
    with pytest.raises(UnknownNameError):
        await client.get_asset(f"{unit}/Lens")


async def test_a_refusal_is_an_exception_of_its_own_class(client: AsyncBaton) -> None:
    asset_id = await register_stage(client, f"Stage {uuid4()}")
    with pytest.raises(client_refusals.AssetCannotExitMaintenanceError) as refused:
        await client.exit_asset_maintenance(asset_id)
    refusal = refused.value
    assert isinstance(refusal, Conflict)
    assert isinstance(refusal, Refusal)
    assert refusal.reason
    assert refusal.problem is not None
    assert refusal.problem["detail"] == refusal.detail
    assert refusal.problem["correlation_id"]
    way = {"operation": "activate_asset", "arguments": {"asset_id": str(asset_id)}, "needed": []}
    assert refusal.next_steps == (way,)
    with pytest.raises(NotFound):
        await client.get_asset(uuid4())


async def test_unknown_and_missing_arguments_are_refused_before_anything_is_sent() -> None:
    unreachable = AsyncBaton("http://127.0.0.1:1")
    with pytest.raises(ArgumentsError) as refused:
        await unreachable.call("register_asset", nmae="Stage", colour="red", tier="Unit")
    assert refused.value.faults.keys() == {"nmae", "colour", "name"}
    assert refused.value.faults["nmae"] == "is not known, did you mean name"
    assert refused.value.faults["name"] == "is needed"
    assert "register_asset does not take these arguments: nmae is not known" in str(refused.value)
    with pytest.raises(ArgumentsError, match="hold_run does not take these arguments: run_id must be an id or a name"):
        await unreachable.call("hold_run", run_id=7, reason="none")
    with pytest.raises(AttributeError, match="There is no operation or collection no_such"):
        unreachable.no_such  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="A run has no verb jump"):
        unreachable.runs["x"].jump  # noqa: B018


async def test_a_value_that_does_not_fit_is_refused_by_the_service(client: AsyncBaton) -> None:
    with pytest.raises(client_refusals.RequestValidationError, match=r"body\.tier") as refused:
        await client.call("register_asset", name="Stage", tier="Nonsense")
    assert refused.value.problem is not None
    assert refused.value.problem["errors"][0]["loc"] == ["body", "tier"]


async def test_a_service_that_is_not_there_is_said_soon() -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(ServiceUnreachableError, match=r"No service answers at http://127\.0\.0\.1:1"):
        await AsyncBaton("http://127.0.0.1:1").list_runs()
    assert asyncio.get_running_loop().time() - began < 5
    with pytest.raises(InvalidAddressError, match="nonsense is no URL"):
        Baton("nonsense")


async def test_an_answer_that_was_lost_is_asked_for_again_with_the_same_key_and_nothing_is_done_twice(service: Api) -> None:
    async with running_lossy_proxy(service.base_url) as proxy, AsyncBaton(proxy.url) as client:
        asset_id = await register_stage(client, f"Stage {uuid4()}")
        proxy.losses, proxy.requests = 2, []
        await client.rename_asset(asset_id, name="Renamed once")
        assert proxy.losses == 0
        assert len(proxy.keys()) == 3
        assert len(set(proxy.keys())) == 1
        events = [event.event_type async for event in client.assets[asset_id].history()]
        assert events.count("AssetRenamed") == 1
        proxy.losses, proxy.requests = 1, []
        other_id = await register_stage(client, name := f"Stage {uuid4()}")
        assert len(proxy.keys()) == 2
        assert [row.asset_id for row in (await client.list_assets(name=name)).items] == [other_id]


async def test_the_blocking_client_repeats_lost_answers_too(service: Api) -> None:
    async with running_lossy_proxy(service.base_url) as proxy:
        name = f"Stage {uuid4()}"

        def register() -> tuple[UUID, list[UUID]]:
            with Baton(proxy.url) as client:
                client.list_assets(limit=1)
                proxy.losses = 2
                asset_id = client.register_asset(name=name, tier="Unit", facility_code="facility").asset_id
                return asset_id, [asset.id for asset in client.assets.list(name=name)]

        asset_id, listed = await asyncio.to_thread(register)
        assert listed == [asset_id]
        assert proxy.losses == 0


async def test_a_key_that_was_given_is_the_one_that_is_sent(client: AsyncBaton) -> None:
    name, key = f"Stage {uuid4()}", uuid4().hex
    made = [
        await client.register_asset(name=name, tier="Unit", facility_code="facility", idempotency_key=key) for _ in range(2)
    ]
    assert made[0] == made[1]


async def test_names_of_what_an_answer_refers_to_are_kept(client: AsyncBaton) -> None:
    parent = f"Stage {uuid4()}"
    parent_id = await register_stage(client, parent)
    child = await client.register_asset(name=f"Camera {uuid4()}", tier="Device", parent_id=parent_id)
    view = await client.get_asset(child.asset_id, include="names")
    assert view.to_dict()["parent"] == {"id": str(parent_id), "name": parent}
    assert not hasattr(await client.get_asset(child.asset_id), "parent")


async def test_everything_of_a_kind_is_listed_page_after_page(client: AsyncBaton) -> None:
    mark = uuid4().hex[:8]
    made = {await register_stage(client, f"Many {mark} {number}") for number in range(5)}
    found = [thing async for thing in client.assets.list(q=mark, limit=2)]
    assert {thing.reference for thing in found} == made
    assert {thing.name for thing in found} == {f"Many {mark} {number}" for number in range(5)}


def drive(session: ClientSession, request: HttpRequest, *replies: HttpResponse | NoAnswer) -> tuple[Any, list[Any]]:
    """Carry out a delivery with these replies; return its end, and all that was asked for."""
    exchange, rest = session.deliver(request), list(replies)
    asked: list[Any] = []
    reply: Any = None
    while True:
        try:
            step = exchange.send(reply)
        except StopIteration as end:
            return end.value, asked
        asked.append(step)
        reply = None if isinstance(step, Wait) else rest.pop(0)


def refusal_response(status: int, code: str, **headers: str) -> HttpResponse:
    return HttpResponse(status, headers, json.dumps({"code": code, "detail": "Not now."}).encode())


def test_a_service_that_asks_for_patience_is_asked_again() -> None:
    request = request_of(OPERATIONS["list_runs"], {})
    busy = refusal_response(503, "StoreUnavailableError", **{"retry-after": "1"})
    working = refusal_response(409, "IdempotencyClaimLostError")
    done = HttpResponse(200, {}, b"{}")
    end, asked = drive(ClientSession("http://x"), request, busy, working, done)
    assert end is done
    assert [type(one) for one in asked] == [HttpRequest, Wait, HttpRequest, Wait, HttpRequest]
    assert asked[1] == Wait(1.0)
    conflict = refusal_response(409, "RunCannotHoldError")
    assert drive(ClientSession("http://x"), request, conflict)[0] is conflict


PAGE = OPERATIONS["list_supplies"].returns


def supply_item() -> dict[str, Any]:
    """Return a row of the list of supplies as the service writes it."""
    samples = {"datetime": "2026-01-01T00:00:00Z", "uuid": str(uuid4()), None: "text"}
    return {name: samples[str(kind) if kind else None] for name, kind in FORMS["SupplyItem"].fields.items()}


def test_keys_that_a_newer_service_adds_are_passed_over() -> None:
    page = parse(PAGE, json.dumps({"items": [{**supply_item(), "newer": 1}], "next_cursor": None, "also": {}}).encode())
    assert type(page).__name__ == "Page[SupplyItem]"
    assert not hasattr(page.items[0], "newer")


def test_what_an_older_service_leaves_out_is_none_and_what_is_unknown_stays_as_it_came() -> None:
    item = supply_item()
    supply_id = item["supply_id"]
    del item["name"]
    page = parse(PAGE, json.dumps({"items": [{**item, "status": "Sublimated"}], "next_cursor": None}).encode())
    (row,) = page.items
    assert (row.supply_id, row.name, row.status) == (UUID(supply_id), None, "Sublimated")


@for_each("content", [b"<html>", b'{"welcome": "to nginx"}', b"[]"])
def test_what_is_no_answer_of_the_service_is_refused(content: bytes) -> None:
    with pytest.raises(NotBatonError):
        parse(PAGE, content)


def test_a_refusal_that_is_newer_than_the_client_is_one_of_its_status() -> None:
    refusal = client_refusals.refusal_of(409, json.dumps({"code": "FromTheFutureError", "detail": "No."}).encode())
    assert isinstance(refusal, Conflict)
    assert refusal.code == "FromTheFutureError"


def test_every_refusal_of_the_edge_is_known_with_its_status() -> None:
    edge = {
        name: one.status
        for name, one in vars(baton.api.errors).items()
        if isinstance(one, type) and issubclass(one, domain_refusals.Refusal) and one.__module__ == baton.api.errors.__name__
    }
    assert edge.items() <= {code: one.status for code, one in REFUSALS.items()}.items()


def test_the_families_of_refusals_are_those_of_the_domain() -> None:
    known = {family.__name__: (status, family.__doc__) for status, family in client_refusals.FAMILIES.items()}
    assert known == {name: (one.status, one.__doc__) for name in known if (one := getattr(domain_refusals, name))}
    for code, refusal in REFUSALS.items():
        declared = getattr(domain_refusals, code, None)
        assert declared is None or declared.status == refusal.status == getattr(client_refusals, code).status


EXEMPLIFIED = [one for one in REGISTRY if not OPERATIONS[one.name].streams and one.example is not None]


@pytest.mark.parametrize("operation", EXEMPLIFIED, ids=lambda one: one.name)
def test_the_example_of_every_operation_makes_a_request(operation: Operation) -> None:
    text = json.dumps(operation.example)
    for placeholder in {part.split(">")[0] for part in text.split("<")[1:]}:
        text = text.replace(f"<{placeholder}>", "01a1e0ec-7e38-726a-b45e-64339a39cd17")
    request = request_of(OPERATIONS[operation.name], json.loads(text), key="k")
    assert "{" not in request.path
    assert (request.body is not None) == operation.has_body
