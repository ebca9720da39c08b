"""Lists: pages without loss or repeat, filters that mean what they say, own writes in sight."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any
from uuid import uuid4

import httpx
import jsonschema
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared.listing import ListQuery, NamedListQuery
from tests.support.api.list_filters import ONE_VALUED, SHOWN, WHOLE, Asked, filters_of, instant, standing_filters
from tests.support.api.list_samples import CATALOGUES, ZONES, stock_service
from tests.support.api.module_service import ModuleService, running_module_service
from tests.support.api.openapi_document import document
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP, visit_plan
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.tables import for_each
from tests.support.waiting import until

ALL_LISTS = [operation for operation in REGISTRY if issubclass(operation.input, ListQuery)]
FILTERED = [operation for operation in ALL_LISTS if operation.name != "list_conduit_verdicts"]
"""The lists whose filters are tried here; a service that permits everything writes no verdicts."""
PAGED = [one for one in REGISTRY if "cursor" in one.input.model_fields and not one.media_types]
OWN_CURSORS = {"list_calibration_at_risk_results", "list_events"}
"""The lists whose rows are told apart by more than a time and an id."""
ORDERED = [one for one in PAGED if "order" in one.input.model_fields and one.name not in OWN_CURSORS]
PAGING = {"limit", "cursor", "order", "min_position", "include"}
MOST_ASKED = 6
"""How many values of a filter that every list has are tried with one list."""
MOST = {"list_procedure_activities": 500, "list_run_observations": 500}
"""How many items a page may hold, where it is not 100."""


@dataclass(frozen=True)
class StockedService:
    """A service with many different things in it, and a client that blocks."""

    service: ModuleService
    client: httpx.Client
    ids: dict[str, str]
    known: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def path(self, operation: Operation) -> str:
        return operation.path.format(**self.ids)

    def page(self, operation: Operation, **parameters: Any) -> dict[str, Any]:
        response = self.client.get(self.path(operation), params={**WHOLE.get(operation.name, {}), **parameters})
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def pages(self, operation: Operation, **parameters: Any) -> Iterator[list[dict[str, Any]]]:
        """Every page of a list, to its end."""
        page = self.page(operation, **parameters)
        yield page["items"]
        while (cursor := page["next_cursor"]) is not None:
            page = self.page(operation, **parameters, cursor=cursor)
            assert page["next_cursor"] != cursor, "the list does not move on"
            yield page["items"]

    def items(self, operation: Operation, **parameters: Any) -> list[dict[str, Any]]:
        return [item for page in self.pages(operation, **parameters) for item in page]

    def all_items(self, operation: Operation) -> list[dict[str, Any]]:
        """All items of a list, each with everything its own query shows of it."""
        if operation.name not in self.known:
            self.known[operation.name] = [self.whole_item(operation, item) for item in self.items(operation, limit=100)]
        return self.known[operation.name]

    def whole_item(self, operation: Operation, item: dict[str, Any]) -> dict[str, Any]:
        get = REGISTRY.operations.get(f"get_{id_name(operation).removesuffix('_id')}")
        if get is None or operation.target is not None:
            return item
        return {**self.client.get(get.path.format(**item)).json(), **item}


def id_name(operation: Operation) -> str:
    """The column that identifies an item."""
    summary = operation.input.summary  # type: ignore[union-attr]
    return str(next(iter(summary.model_fields)))


def time_name(operation: Operation) -> str:
    return str(operation.input.summary.time)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def stocked_service(postgres: EmbeddedPostgres, template: str) -> Iterator[StockedService]:
    with (
        fresh_database(postgres, template) as url,
        running_module_service(url, **CATALOGUES) as service,
        httpx.Client(base_url=service.api.base_url, timeout=30) as client,
    ):
        yield StockedService(service, client, service.run(stock_service(service.api)))


@settings(max_examples=settings.default.max_examples // 2)
@given(limit=st.integers(1, 100), order=st.sampled_from(["asc", "desc"]))
def test_pages_of_any_size_hold_everything_once_and_in_order(
    stocked_service: StockedService, limit: int, order: str
) -> None:
    zones = REGISTRY.operations["list_zones"]
    pages = list(stocked_service.pages(zones, limit=limit, order=order))
    assert all(len(page) == limit for page in pages[:-1])
    found = [(item["created_at"], item["zone_id"]) for page in pages for item in page]
    assert len(found) > ZONES
    assert found == sorted(set(found), reverse=order == "desc")
    assert {id for _, id in found} == {zone["zone_id"] for zone in stocked_service.all_items(zones)}


@for_each(("operation", "order"), product(ALL_LISTS, ["asc", "desc"]))
def test_every_list_pages_to_its_end_in_its_order(stocked_service: StockedService, operation: Operation, order: str) -> None:
    def place(item: dict[str, Any]) -> tuple[datetime, str]:
        return instant(item[time_name(operation)]), id_of(operation, item)

    whole = sorted(map(place, stocked_service.all_items(operation)), reverse=order == "desc")
    assert [place(item) for item in stocked_service.items(operation, limit=2, order=order)] == whole


async def walk_items(api: Api, path: str, **parameters: Any) -> AsyncIterator[dict[str, Any]]:
    """Every item of a list, page after page."""
    page = (await api.get(path, **parameters)).json()
    while True:
        for item in page["items"]:
            yield item
        if (cursor := page["next_cursor"]) is None:
            return
        page = (await api.get(path, **parameters, cursor=cursor)).json()
        assert page["next_cursor"] != cursor, "the list does not move on"


async def test_items_of_the_same_moment_are_told_apart_by_their_ids(database_url: str) -> None:
    async with running_api(database_url) as api:
        for number in range(9):
            position = await api.execute("/zones", {"name": f"Zone {number}"})
        assert len((await api.get("/zones", min_position=position)).json()["items"]) == 10
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute("UPDATE proj_trust_zone_summary SET created_at = '2026-10-06T08:00:00Z'")
        for order in ("asc", "desc"):
            found = [item["zone_id"] async for item in walk_items(api, "/zones", limit=3, order=order)]
            assert found == sorted(found, reverse=order == "desc")
            assert len(found) == 10


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_what_is_there_stays_on_its_page_while_more_arrives(api: Api, order: str) -> None:
    before = {await api.create("/zones", {"name": f"Zone {number}"}) for number in range(7)}
    position = await api.execute("/zones", {"name": "Last"})
    page = (await api.get("/zones", limit=2, order=order, min_position=position)).json()
    found = [item["zone_id"] for item in page["items"]]
    while page["next_cursor"] is not None:
        position = await api.execute("/zones", {"name": "Newcomer"}) if len(found) < 10 else position
        following = {"cursor": page["next_cursor"], "min_position": position}
        page = (await api.get("/zones", limit=2, order=order, **following)).json()
        found += [item["zone_id"] for item in page["items"]]
    assert before <= set(found)
    assert len(found) == len(set(found))


@for_each("operation", ORDERED)
def test_a_cursor_belongs_to_its_order(stocked_service: StockedService, operation: Operation) -> None:
    handed_out = encode_cursor(f"asc|2026-10-06T08:00:00+00:00|{uuid4()}")
    assert stocked_service.client.get(stocked_service.path(operation), params={"cursor": handed_out}).status_code == 200
    refused = stocked_service.client.get(stocked_service.path(operation), params={"cursor": handed_out, "order": "desc"})
    assert (refused.status_code, refused.json()["code"]) == (422, "InvalidCursorError")
    assert refused.json()["reason"] == "other_order"


def encode_cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


GARBAGE = [
    "0",
    "!",
    "🙂",
    encode_cursor("asc"),
    encode_cursor("asc|2026-10-06T08:00:00+00:00|seven"),
    encode_cursor(f"asc|2026-10-06T08:00:00|{uuid4()}"),
    encode_cursor(f"asc|soon|{uuid4()}"),
    encode_cursor(f"up|2026-10-06T08:00:00+00:00|{uuid4()}"),
    encode_cursor("-1|-1"),
    encode_cursor(f"{2**64}"),
    encode_cursor(f"{2**64}|1"),
    encode_cursor("²"),
]


@for_each(("number", "operation"), enumerate(PAGED))
def test_a_cursor_nobody_handed_out_is_refused(stocked_service: StockedService, number: int, operation: Operation) -> None:
    for cursor in GARBAGE[number % 3 :: 3]:
        refused = stocked_service.client.get(stocked_service.path(operation), params={"cursor": cursor})
        assert (refused.status_code, refused.json()["code"]) == (422, "InvalidCursorError"), cursor
        assert refused.json()["reason"] == "malformed"


@settings(max_examples=50)
@given(cursor=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60))
def test_no_text_at_all_breaks_a_list(stocked_service: StockedService, cursor: str) -> None:
    assert stocked_service.client.get("/zones", params={"cursor": cursor}).status_code == 422


@for_each("operation", PAGED)
def test_a_page_holds_1_to_100_items(stocked_service: StockedService, operation: Operation) -> None:
    most = MOST.get(operation.name, 100)
    for limit in (1, most):
        assert len(stocked_service.page(operation, limit=limit)["items"]) <= limit
    for limit in (0, most + 1, -1, "ten"):
        refused = stocked_service.client.get(stocked_service.path(operation), params={"limit": limit})
        assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["query", "limit"])


def test_a_page_holds_50_items_unless_asked_otherwise(stocked_service: StockedService) -> None:
    assert len(stocked_service.page(REGISTRY.operations["list_zones"])["items"]) == 50
    assert len(stocked_service.page(REGISTRY.operations["list_events"])["items"]) == 50


@for_each("operation", ALL_LISTS)
def test_no_filter_is_left_out(operation: Operation) -> None:
    filters = {name for names in filters_of(operation) for name in names.split()}
    assert operation.input.model_fields.keys() - PAGING - SHOWN == filters


@for_each("operation", FILTERED)
def test_a_filter_keeps_exactly_what_it_means(stocked_service: StockedService, operation: Operation) -> None:
    everything = stocked_service.all_items(operation)
    for name, filter in filters_of(operation).items():
        asked = list({str(one): one for item in everything for one in filter.offers(item)}.values())
        if name in standing_filters(operation):
            asked = asked[:: -(-len(asked) // MOST_ASKED) or 1] + asked[-1:]
        for one in asked:
            assert kept_ids(stocked_service, operation, one) == {
                id_of(operation, item) for item in everything if filter.keeps(item, one)
            }
        telling = [one for one in asked if not all(filter.keeps(item, one) for item in everything)]
        is_telling = bool(telling) != ((operation.name, name) in ONE_VALUED)
        assert is_telling, f"nothing in stock tells {name} from no filter"


@settings(max_examples=settings.default.max_examples // 20 or 1)
@given(data=st.data())
@pytest.mark.parametrize("operation", FILTERED, ids=lambda operation: operation.name)
def test_filters_hold_together(stocked_service: StockedService, operation: Operation, data: st.DataObject) -> None:
    everything = stocked_service.all_items(operation)
    meant = [filter for filter in filters_of(operation).values() if any(filter.offers(item) for item in everything)]
    chosen = data.draw(st.lists(st.sampled_from(meant), unique=True, max_size=3)) if meant else []
    asked = [data.draw(st.sampled_from([one for item in everything for one in filter.offers(item)])) for filter in chosen]
    wanted = {
        id_of(operation, item)
        for item in everything
        if all(filter.keeps(item, one) for filter, one in zip(chosen, asked, strict=True))
    }
    assert kept_ids(stocked_service, operation, {name: value for one in asked for name, value in one.items()}) == wanted


def test_a_repeatable_filter_keeps_any_of_its_values(stocked_service: StockedService) -> None:
    actors = stocked_service.all_items(REGISTRY.operations["list_actors"])
    two = [actor["actor_id"] for actor in actors[:2]]
    assert kept_ids(stocked_service, REGISTRY.operations["list_actors"], {"actor_id": two}) == set(two)
    assert stocked_service.client.get("/actors", params={"actor_id": [str(uuid4()) for _ in range(101)]}).status_code == 422


@for_each(("name", "over"), [("list_campaigns", {"Closed", "Abandoned"}), ("list_cautions", {"Superseded", "Retired"})])
def test_what_is_over_is_listed_only_where_it_is_asked_for(
    stocked_service: StockedService, name: str, over: set[str]
) -> None:
    operation = REGISTRY.operations[name]
    listed = {
        id_of(operation, item) for item in stocked_service.client.get(operation.path, params={"limit": 100}).json()["items"]
    }
    standing = {id_of(operation, item): item["status"] for item in stocked_service.all_items(operation)}
    assert listed == {id for id, status in standing.items() if status not in over} < standing.keys()
    mixed = stocked_service.client.get(operation.path, params={"status": ["all", min(over)]})
    assert mixed.status_code == 422


def test_half_a_filter_is_malformed(stocked_service: StockedService) -> None:
    for path, half in (
        ("/visits", {"external_ref_scheme": "cycle"}),
        ("/visits", {"external_ref_value": "2026-2"}),
        ("/assets", {"alternate_identifier_kind": "EPICS_PV"}),
        ("/assets", {"alternate_identifier_value": "lum:m102"}),
    ):
        assert stocked_service.client.get(path, params=half).status_code == 422


def names_of(stocked_service: StockedService) -> dict[str, str]:
    """What everything that has a name is called, by its id."""
    named = [operation for operation in ALL_LISTS if issubclass(operation.input, NamedListQuery)]
    return {
        id_of(operation, item): item[operation.input.name_column()]  # type: ignore[union-attr]
        for operation in named
        for item in stocked_service.all_items(operation)
    }


def check_form(operation: Operation, answer: dict[str, Any]) -> None:
    """Fail where an answer is not of the form that the OpenAPI document promises."""
    responses = document()["paths"][operation.path][operation.method.lower()]["responses"]
    form = {**responses["200"]["content"]["application/json"]["schema"], "components": document()["components"]}
    jsonschema.Draft202012Validator(form).validate(answer)


def named_ids(data: Any) -> Iterator[tuple[str, str | None]]:
    """Every id that stands beside a name in an answer, however deep."""
    if isinstance(data, dict):
        if data.keys() == {"id", "name"}:
            yield data["id"], data["name"]
        for part in data.values():
            yield from named_ids(part)
    elif isinstance(data, list):
        for part in data:
            yield from named_ids(part)


def without_names(named: Any, plain: Any) -> Any:
    """An answer without the members that the plain one does not have."""
    if isinstance(plain, dict):
        return {key: without_names(named[key], part) for key, part in plain.items()}
    if isinstance(plain, list):
        return [without_names(*pair) for pair in zip(named, plain, strict=True)]
    return named


def test_every_list_names_what_its_items_refer_to_and_changes_nothing_else(stocked_service: StockedService) -> None:
    names, found = names_of(stocked_service), dict[str, str]()
    for operation in ALL_LISTS:
        plain, named = stocked_service.page(operation), stocked_service.page(operation, include="names")
        assert without_names(named["items"], plain["items"]) == plain["items"], operation.name
        check_form(operation, named)
        for id, name in named_ids(named):
            assert name == names.get(id, name), operation.name
            if id in names:
                found[id] = names[id]
    assert len(found) > 30


def test_one_of_everything_shows_its_own_id_and_since_when_it_exists(stocked_service: StockedService) -> None:
    for aggregate in REGISTRY.aggregates.values():
        get = next(one for one in aggregate.operations if one.path == f"{aggregate.path}/{{{aggregate.id_name}}}")
        id = stocked_service.ids.get(aggregate.id_name)
        if id is None:
            continue
        path = get.path.replace(f"{{{aggregate.id_name}}}", id)
        plain, named = (stocked_service.client.get(path, params=asked).json() for asked in ({}, {"include": "names"}))
        assert plain[aggregate.id_name] == id, get.name
        first = stocked_service.client.get(f"{path}/history", params={"limit": 1}).json()["items"][0]
        assert plain["created_at"] == first["occurred_at"], get.name
        assert without_names(named, plain) == plain, get.name
        check_form(get, named)


def kept_ids(stocked_service: StockedService, operation: Operation, asked: Asked) -> set[str]:
    items = stocked_service.items(operation, limit=100, **asked)
    assert len(items) == len({id_of(operation, item) for item in items})
    return {id_of(operation, item) for item in items}


def id_of(operation: Operation, item: dict[str, Any]) -> str:
    return str(item[id_name(operation)])


async def test_presence_is_filtered_and_paged(api: Api) -> None:
    visit = await api.create("/visits", visit_plan(str(uuid4()), str(uuid4())))
    await api.execute(f"/visits/{visit}/record-arrival")
    people = [str(uuid4()) for _ in range(5)]
    for person in people:
        await api.execute(f"/visits/{visit}/presence/open", {"actor_id": person, "mode": "physical"})
    for person in people[:2]:
        await api.execute(f"/visits/{visit}/presence/close", {"actor_id": person})
    for asked, wanted in (({}, people), ({"open": "true"}, people[2:]), ({"open": "false"}, people[:2])):
        for order in ("asc", "desc"):
            entries = walk_items(api, f"/visits/{visit}/presence", limit=2, order=order, **asked)
            found = [entry["actor_id"] async for entry in entries]
            assert found == (wanted if order == "asc" else wanted[::-1])


async def test_verdicts_are_filtered_and_paged(database_url: str) -> None:
    admin, person = str(uuid4()), str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        grant = {"name": "Read", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        reader = {"permitted_principal_ids": [person], "permitted_commands": ["ListConduitVerdicts", "ListZones"]}
        await api.acting_as(admin).create("/policies", {**grant, **reader})
        for path in ("/zones", "/actors", "/zones", "/actors"):
            await api.acting_as(person).get(path)
        verdicts = f"/conduits/{SYSTEM_CONDUIT}/verdicts"

        async def seen_verdicts(**asked: str) -> list[tuple[str, str]]:
            page = (await api.acting_as(person).get(verdicts, actor_id=person, limit=100, **asked)).json()
            return [(verdict["command_name"], verdict["decision"]) for verdict in page["items"]]

        async def is_written() -> bool:
            return await seen_verdicts(command_name="ListActors") == [("ListActors", "Deny")] * 2

        await until(is_written)
        assert await seen_verdicts(decision="Deny") == [("ListActors", "Deny")] * 2
        assert await seen_verdicts(command_name="ListZones", decision="Allow") == [("ListZones", "Allow")] * 2
        assert await seen_verdicts(command_name="ListZones", decision="Deny") == []


async def test_a_writer_sees_its_own_writes(api: Api) -> None:
    for number in range(30):
        response = await api.post("/zones", {"name": f"Zone {number}"})
        newest = {"order": "desc", "limit": 1, "min_position": response.headers["X-Baton-Position"]}
        assert (await api.get("/zones", **newest)).json()["items"][0]["zone_id"] == response.json()["zone_id"]


async def test_many_writers_see_their_own_writes(api: Api) -> None:
    async def write(number: int) -> None:
        response = await api.post("/actors", {"name": f"Actor {number}"})
        own = {"actor_id": response.json()["actor_id"], "min_position": response.headers["X-Baton-Position"]}
        assert len((await api.get("/actors", **own)).json()["items"]) == 1

    await asyncio.gather(*map(write, range(40)))


async def test_a_position_that_never_comes_is_not_waited_for_for_long(api: Api) -> None:
    async with asyncio.timeout(60):
        assert (await api.get("/zones", min_position=2**62)).status_code == 200
