"""Lists: pages without loss or repeat, filters that mean what they say, own writes in sight."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.embedded.postgres import EmbeddedPostgres
from domain.contexts import REGISTRY
from domain.kernel import Operation
from domain.shared.listing import ListQuery
from tests.api.furnishing import SYSTEM_CONDUIT, SYSTEM_HTTP, furnished, placed_in, planned_on
from tests.api.serving import Served, served, shared_database
from tests.conftest import until
from tests.running import Api, running_api

ALL_LISTS = [operation for operation in REGISTRY if issubclass(operation.input, ListQuery)]
PROJECTED = [operation for operation in ALL_LISTS if operation.target is None]
PAGED = [operation for operation in REGISTRY if "cursor" in operation.input.model_fields]
ORDERED = [operation for operation in PAGED if "order" in operation.input.model_fields]
STANDING = set(ListQuery.model_fields)
ZONES = 60


@dataclass(frozen=True)
class Shelf:
    """A service with many different things in it, and a client that blocks."""

    service: Served
    client: httpx.Client
    ids: dict[str, str]
    known: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def path(self, operation: Operation) -> str:
        return operation.path.format(**self.ids)

    def page(self, operation: Operation, **parameters: Any) -> dict[str, Any]:
        response = self.client.get(self.path(operation), params=parameters)
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

    def everything(self, operation: Operation) -> list[dict[str, Any]]:
        """All items of a list, each with everything its own query shows of it."""
        if operation.name not in self.known:
            self.known[operation.name] = [self.whole(operation, item) for item in self.items(operation, limit=100)]
        return self.known[operation.name]

    def whole(self, operation: Operation, item: dict[str, Any]) -> dict[str, Any]:
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
def shelf(postgres: EmbeddedPostgres, template: str) -> Iterator[Shelf]:
    with (
        shared_database(postgres, template) as url,
        served(url) as service,
        httpx.Client(base_url=service.api.base_url, timeout=30) as client,
    ):
        yield Shelf(service, client, service.run(stocked(service.api)))


async def stocked(api: Api) -> dict[str, str]:
    """Several of everything, differing in whatever lists can filter by."""
    ids = await furnished(api)
    other = await furnished(api)
    for number in range(ZONES):
        await api.create("/zones", {"name": f"Zone {number}"})
    await api.create("/actors", {"name": "Scan bridge 7", "kind": "service_account"})
    await api.done(f"/actors/{other['actor_id']}/deactivate")
    await api.create("/conduits", {"name": "Net", "source_zone_id": ids["zone_id"], "target_zone_id": other["zone_id"]})
    await api.create("/surfaces", {"name": "Agents", "kind": "MCP_STREAMABLE_HTTP"})
    await visited(api, ids)
    await catalogued(api, ids, other)
    await built(api, ids, other)
    await supplied(api, other)
    area = {"code": f"area-{uuid4().hex[:8]}", "display_name": "Hall", "kind": "Area", "parent_id": ids["facility_id"]}
    await api.create("/federation/facilities", area)
    position = await api.done(f"/federation/facilities/{other['facility_id']}/decommission")
    assert (await api.get("/zones", min_position=position)).status_code == 200
    return ids


async def visited(api: Api, ids: dict[str, str]) -> None:
    plan = planned_on(ids["surface_id"], ids["policy_id"])
    proposal = {"external_refs": {"proposal": "20260417", "cycle": "2026-2"}}
    await api.create("/visits", {**plan, "type": "staff", "parent_id": ids["visit_id"], **proposal})
    later = {"planned_start_at": "2026-11-01T00:00:00Z", "planned_end_at": "2026-11-03T00:00:00Z"}
    await api.create("/visits", {**plan, **later, "external_refs": {"proposal": "20260999"}})
    over = await api.create("/visits", {**plan, "surface_id": SYSTEM_HTTP, "type": "calibration"})
    await api.done(f"/visits/{over}/cancel", {"reason": "no beam"})


async def catalogued(api: Api, ids: dict[str, str], other: dict[str, str]) -> None:
    camera = await api.create("/families", {"name": f"Camera {uuid4().hex}", "affordances": ["Imageable", "Rotatable"]})
    await api.done(f"/families/{camera}/version", {"version_tag": "2", "affordances": ["Imageable"]})
    await api.done(f"/families/{other['family_id']}/deprecate")
    entry = {"name": "orbis_cam5", "manufacturer": {"name": "ORBIS"}, "declared_family_ids": [camera, ids["family_id"]]}
    await api.create("/models", {**entry, "part_number": "CAM-5"})
    await api.done(f"/models/{other['model_id']}/deprecate")
    await api.create("/assemblies", {"name": "Empty"})
    await api.done(f"/assemblies/{other['assembly_id']}/deprecate")


async def built(api: Api, ids: dict[str, str], other: dict[str, str]) -> None:
    hutch = await api.create("/enclosures", {"name": f"Hutch {uuid4().hex}", "facility_code": "facility"})
    shutter = {"name": "Shutter", "tier": "Component", "parent_id": ids["asset_id"], "located_in_enclosure_id": hutch}
    inventory = {"alternate_identifiers": [{"kind": "InventoryNumber", "value": "INV-7"}]}
    part = await api.create("/assets", {**shutter, **inventory})
    await api.done(f"/assets/{part}/fault", {"reason": "stuck"})
    await api.done(f"/assets/{part}/decommission")
    await api.done(f"/assets/{other['asset_id']}/enter-maintenance")
    bench = {"name": "bench", "parent_id": ids["frame_id"], "placement": placed_in(ids["frame_id"])}
    await api.done(f"/frames/{await api.create('/frames', bench)}/decommission", {"reason": "moved"})
    slot = {"slot_code": f"B-{uuid4().hex}", "parent_id": ids["mount_id"], "placement": placed_in(ids["frame_id"])}
    await api.done(f"/mounts/{await api.create('/mounts', slot)}/decommission", {"reason": "moved"})


async def supplied(api: Api, other: dict[str, str]) -> None:
    site = (await api.get(f"/federation/facilities/{other['facility_id']}")).json()["code"]
    beam = await api.create("/supplies", {"kind": "photon_beam", "name": "Ring", "facility_code": site})
    await api.done(f"/supplies/{beam}/deregister", {"reason": "ring rebuilt"})
    bridge = await api.create("/actors", {"name": "Plant bridge", "kind": "service_account"})
    reading = {"monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:PERMIT"}, "reason": "read"}
    hutch = await api.create("/enclosures", {"name": "Hutch", "facility_code": site})
    permitted = {**reading, "new_status": "Permitted"}
    await api.acting_as(bridge).done(f"/enclosures/{hutch}/observe-status", permitted)
    await api.done(f"/enclosures/{hutch}/decommission", {"reason": "hutch rebuilt"})


@settings(max_examples=40)
@given(limit=st.integers(1, 100), order=st.sampled_from(["asc", "desc"]))
def test_pages_of_any_size_hold_everything_once_and_in_order(shelf: Shelf, limit: int, order: str) -> None:
    zones = REGISTRY.operations["list_zones"]
    pages = list(shelf.pages(zones, limit=limit, order=order))
    assert all(len(page) == limit for page in pages[:-1])
    found = [(item["created_at"], item["zone_id"]) for page in pages for item in page]
    assert len(found) > ZONES
    assert found == sorted(set(found), reverse=order == "desc")
    assert {id for _, id in found} == {zone["zone_id"] for zone in shelf.everything(zones)}


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("operation", ALL_LISTS, ids=lambda operation: operation.name)
def test_every_list_pages_to_its_end_in_its_order(shelf: Shelf, operation: Operation, order: str) -> None:
    def place(item: dict[str, Any]) -> tuple[datetime, str]:
        return instant(item[time_name(operation)]), id_of(operation, item)

    whole = sorted(map(place, shelf.everything(operation)), reverse=order == "desc")
    assert [place(item) for item in shelf.items(operation, limit=2, order=order)] == whole


async def walked(api: Api, path: str, **parameters: Any) -> AsyncIterator[dict[str, Any]]:
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
            position = await api.done("/zones", {"name": f"Zone {number}"})
        assert len((await api.get("/zones", min_position=position)).json()["items"]) == 10
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute("UPDATE proj_trust_zone_summary SET created_at = '2026-10-06T08:00:00Z'")
        for order in ("asc", "desc"):
            found = [item["zone_id"] async for item in walked(api, "/zones", limit=3, order=order)]
            assert found == sorted(found, reverse=order == "desc")
            assert len(found) == 10


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_what_is_there_stays_on_its_page_while_more_arrives(api: Api, order: str) -> None:
    before = {await api.create("/zones", {"name": f"Zone {number}"}) for number in range(7)}
    position = await api.done("/zones", {"name": "Last"})
    page = (await api.get("/zones", limit=2, order=order, min_position=position)).json()
    found = [item["zone_id"] for item in page["items"]]
    while page["next_cursor"] is not None:
        position = await api.done("/zones", {"name": "Newcomer"}) if len(found) < 10 else position
        following = {"cursor": page["next_cursor"], "min_position": position}
        page = (await api.get("/zones", limit=2, order=order, **following)).json()
        found += [item["zone_id"] for item in page["items"]]
    assert before <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("operation", ORDERED, ids=lambda operation: operation.name)
def test_a_cursor_belongs_to_its_order(shelf: Shelf, operation: Operation) -> None:
    handed_out = encoded(f"asc|2026-10-06T08:00:00+00:00|{uuid4()}")
    assert shelf.client.get(shelf.path(operation), params={"cursor": handed_out}).status_code == 200
    refused = shelf.client.get(shelf.path(operation), params={"cursor": handed_out, "order": "desc"})
    assert (refused.status_code, refused.json()["code"]) == (422, "InvalidCursorError")
    assert refused.json()["reason"] == "other_order"


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


GARBAGE = [
    "0",
    "!",
    "🙂",
    encoded("asc"),
    encoded("asc|2026-10-06T08:00:00+00:00|seven"),
    encoded(f"asc|2026-10-06T08:00:00|{uuid4()}"),
    encoded(f"asc|soon|{uuid4()}"),
    encoded(f"up|2026-10-06T08:00:00+00:00|{uuid4()}"),
    encoded("-1|-1"),
    encoded(f"{2**64}"),
    encoded(f"{2**64}|1"),
    encoded("²"),
]


@pytest.mark.parametrize("operation", PAGED, ids=lambda operation: operation.name)
def test_a_cursor_nobody_handed_out_is_refused(shelf: Shelf, operation: Operation) -> None:
    for cursor in GARBAGE:
        refused = shelf.client.get(shelf.path(operation), params={"cursor": cursor})
        assert (refused.status_code, refused.json()["code"]) == (422, "InvalidCursorError"), cursor
        assert refused.json()["reason"] == "malformed"


@settings(max_examples=50)
@given(cursor=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60))
def test_no_text_at_all_breaks_a_list(shelf: Shelf, cursor: str) -> None:
    assert shelf.client.get("/zones", params={"cursor": cursor}).status_code == 422


@pytest.mark.parametrize("operation", PAGED, ids=lambda operation: operation.name)
def test_a_page_holds_1_to_100_items(shelf: Shelf, operation: Operation) -> None:
    for limit in (1, 100):
        assert len(shelf.page(operation, limit=limit)["items"]) <= limit
    for limit in (0, 101, -1, "ten"):
        refused = shelf.client.get(shelf.path(operation), params={"limit": limit})
        assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", "limit"])


def test_a_page_holds_50_items_unless_asked_otherwise(shelf: Shelf) -> None:
    assert len(shelf.page(REGISTRY.operations["list_zones"])["items"]) == 50
    assert len(shelf.page(REGISTRY.operations["list_events"])["items"]) == 50


Value = Any
Asked = dict[str, Value]


@dataclass(frozen=True)
class Filter:
    """What a filter means, said without the code: what an item offers it to ask for, and which items it then keeps."""

    offers: Callable[[dict[str, Any]], list[Asked]]
    keeps: Callable[[dict[str, Any], Asked], bool]


def equal(name: str) -> Filter:
    """The item's own value of that name; a list asks for none of those that have none."""
    return Filter(
        lambda item: [] if item[name] is None else [{name: item[name]}], lambda item, asked: item[name] == asked[name]
    )


def any_of(name: str) -> Filter:
    return Filter(lambda item: [{name: [item[name]]}], lambda item, asked: item[name] in asked[name])


def member(name: str, of: str) -> Filter:
    return Filter(lambda item: [{name: value} for value in item[of]], lambda item, asked: asked[name] in item[of])


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


MEANT: dict[str, dict[str, Filter]] = {
    "list_actors": {"status": equal("status"), "kind": any_of("kind"), "actor_id": any_of("actor_id")},
    "list_zones": {},
    "list_conduits": {"source_zone_id": equal("source_zone_id"), "target_zone_id": equal("target_zone_id")},
    "list_conduit_verdicts": {
        "actor_id": equal("actor_id"),
        "command_name": equal("command_name"),
        "decision": equal("decision"),
    },
    "list_surfaces": {"kind": equal("kind")},
    "list_policies": {"conduit_id": equal("conduit_id"), "surface_id": equal("surface_id")},
    "list_visits": {
        "status": equal("status"),
        "type": any_of("type"),
        "surface_id": equal("surface_id"),
        "policy_id": equal("policy_id"),
        "parent_id": equal("parent_id"),
        "external_ref_scheme external_ref_value": Filter(
            lambda item: [
                {"external_ref_scheme": scheme, "external_ref_value": value}
                for scheme, value in item["external_refs"].items()
            ],
            lambda item, asked: item["external_refs"].get(asked["external_ref_scheme"]) == asked["external_ref_value"],
        ),
        "planned_from": Filter(
            lambda item: [{"planned_from": item["planned_end_at"]}, {"planned_from": item["planned_start_at"]}],
            lambda item, asked: instant(item["planned_end_at"]) >= instant(asked["planned_from"]),
        ),
        "planned_to": Filter(
            lambda item: [{"planned_to": item["planned_start_at"]}, {"planned_to": item["planned_end_at"]}],
            lambda item, asked: instant(item["planned_start_at"]) <= instant(asked["planned_to"]),
        ),
    },
    "list_assets": {
        **{name: equal(name) for name in ("tier", "lifecycle", "condition", "parent_id", "model_id", "facility_code")},
        "located_in_enclosure_id": equal("located_in_enclosure_id"),
        "family_id": member("family_id", "family_ids"),
        "alternate_identifier_kind alternate_identifier_value": Filter(
            lambda item: [
                {"alternate_identifier_kind": one["kind"], "alternate_identifier_value": one["value"]}
                for one in item["alternate_identifiers"]
            ],
            lambda item, asked: (
                {"kind": asked["alternate_identifier_kind"], "value": asked["alternate_identifier_value"]}
                in item["alternate_identifiers"]
            ),
        ),
    },
    "list_families": {
        "status": equal("status"),
        "affordance": member("affordance", "affordances"),
        "role_id": member("role_id", "presented_role_ids"),
    },
    "list_roles": {},
    "list_models": {
        "status": equal("status"),
        "part_number": equal("part_number"),
        "family_id": member("family_id", "declared_family_ids"),
        "manufacturer_name": Filter(
            lambda item: [
                {"manufacturer_name": item["manufacturer"]["name"]},
                {"manufacturer_name": f" {item['manufacturer']['name'].swapcase()} "},
            ],
            lambda item, asked: item["manufacturer"]["name"].lower() == asked["manufacturer_name"].strip().lower(),
        ),
    },
    "list_frames": {"parent_id": equal("parent_id"), "status": equal("status")},
    "list_mounts": {name: equal(name) for name in ("parent_id", "status", "slot_code", "installed_asset_id")},
    "list_assemblies": {
        "status": equal("status"),
        "content_hash": equal("content_hash"),
        "role_id": member("role_id", "presented_role_ids"),
    },
    "list_fixtures": {name: equal(name) for name in ("assembly_id", "surface_id", "assembly_content_hash")},
    "list_facilities": {name: equal(name) for name in ("kind", "status", "parent_id", "code")},
    "list_supplies": {name: equal(name) for name in ("facility_code", "containing_asset_id", "kind", "status")},
    "list_enclosures": {name: equal(name) for name in ("lifecycle", "permit_status", "facility_code")},
}


@pytest.mark.parametrize("operation", ALL_LISTS, ids=lambda operation: operation.name)
def test_no_filter_is_left_out(operation: Operation) -> None:
    filters = {name for names in MEANT.get(operation.name, {}) for name in names.split()}
    assert operation.input.model_fields.keys() - STANDING == filters


@pytest.mark.parametrize("operation", PROJECTED, ids=lambda operation: operation.name)
def test_a_filter_keeps_exactly_what_it_means(shelf: Shelf, operation: Operation) -> None:
    everything = shelf.everything(operation)
    for filter in MEANT[operation.name].values():
        asked = [one for item in everything for one in filter.offers(item)]
        assert asked, "no item tries this filter"
        for one in {str(one): one for one in asked}.values():
            assert kept(shelf, operation, one) == {id_of(operation, item) for item in everything if filter.keeps(item, one)}


@settings(max_examples=15)
@given(data=st.data())
@pytest.mark.parametrize("operation", PROJECTED, ids=lambda operation: operation.name)
def test_filters_hold_together(shelf: Shelf, operation: Operation, data: st.DataObject) -> None:
    everything = shelf.everything(operation)
    meant = [filter for filter in MEANT[operation.name].values() if any(filter.offers(item) for item in everything)]
    chosen = data.draw(st.lists(st.sampled_from(meant), unique=True, max_size=3)) if meant else []
    asked = [data.draw(st.sampled_from([one for item in everything for one in filter.offers(item)])) for filter in chosen]
    wanted = {
        id_of(operation, item)
        for item in everything
        if all(filter.keeps(item, one) for filter, one in zip(chosen, asked, strict=True))
    }
    assert kept(shelf, operation, {name: value for one in asked for name, value in one.items()}) == wanted


def test_a_repeatable_filter_keeps_any_of_its_values(shelf: Shelf) -> None:
    actors = shelf.everything(REGISTRY.operations["list_actors"])
    two = [actor["actor_id"] for actor in actors[:2]]
    assert kept(shelf, REGISTRY.operations["list_actors"], {"actor_id": two}) == set(two)
    assert shelf.client.get("/actors", params={"actor_id": [str(uuid4()) for _ in range(101)]}).status_code == 422


def test_half_a_filter_is_malformed(shelf: Shelf) -> None:
    for path, half in (
        ("/visits", {"external_ref_scheme": "cycle"}),
        ("/visits", {"external_ref_value": "2026-2"}),
        ("/assets", {"alternate_identifier_kind": "EPICS_PV"}),
        ("/assets", {"alternate_identifier_value": "lum:m102"}),
    ):
        assert shelf.client.get(path, params=half).status_code == 422


def kept(shelf: Shelf, operation: Operation, asked: Asked) -> set[str]:
    items = shelf.items(operation, limit=100, **asked)
    assert len(items) == len({id_of(operation, item) for item in items})
    return {id_of(operation, item) for item in items}


def id_of(operation: Operation, item: dict[str, Any]) -> str:
    return str(item[id_name(operation)])


async def test_presence_is_filtered_and_paged(api: Api) -> None:
    visit = await api.create("/visits", planned_on(str(uuid4()), str(uuid4())))
    await api.done(f"/visits/{visit}/record-arrival")
    people = [str(uuid4()) for _ in range(5)]
    for person in people:
        await api.done(f"/visits/{visit}/presence/open", {"actor_id": person, "mode": "physical"})
    for person in people[:2]:
        await api.done(f"/visits/{visit}/presence/close", {"actor_id": person})
    for asked, wanted in (({}, people), ({"open": "true"}, people[2:]), ({"open": "false"}, people[:2])):
        for order in ("asc", "desc"):
            entries = walked(api, f"/visits/{visit}/presence", limit=2, order=order, **asked)
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

        async def seen(**asked: str) -> list[tuple[str, str]]:
            page = (await api.acting_as(person).get(verdicts, actor_id=person, limit=100, **asked)).json()
            return [(verdict["command_name"], verdict["decision"]) for verdict in page["items"]]

        async def written() -> bool:
            return await seen(command_name="ListActors") == [("ListActors", "Deny")] * 2

        await until(written)
        assert await seen(decision="Deny") == [("ListActors", "Deny")] * 2
        assert await seen(command_name="ListZones", decision="Allow") == [("ListZones", "Allow")] * 2
        assert await seen(command_name="ListZones", decision="Deny") == []


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
    before = asyncio.get_running_loop().time()
    assert (await api.get("/zones", min_position=2**62)).status_code == 200
    assert asyncio.get_running_loop().time() - before < 10
