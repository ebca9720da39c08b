"""What every request meets before its operation does: size, form, route, correlation, idempotency, error bodies."""

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
import structlog

from baton.api.errors import Problem
from baton.api.parsing import repeatable_fields
from baton.application.settings import Settings
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP, placement_in, visit_plan
from tests.support.service import Api, running_api
from tests.support.tables import for_each
from tests.support.waiting import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
MARK = "Mira-Okafor-77"
SOMETHING = "0197a100-0000-7000-8000-00000000000a"
WITH_BODY = [operation for operation in REGISTRY if operation.has_body]
IN_ADDRESS = [operation for operation in REGISTRY if not operation.has_body]


def assert_error(
    response: httpx.Response, status: int, code: str, context: str, reason: str | None = None
) -> dict[str, Any]:
    """Assert the one error body that every refusal has, and return it."""
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"], body["context"], body.get("reason")) == (status, code, context, reason)
    assert body["correlation_id"] == response.headers["X-Correlation-Id"]
    assert body.keys() <= Problem.model_fields.keys()
    assert response.headers["content-type"] == "application/problem+json"
    assert (body["type"], body["status"]) == (f"/refusals/{code}", status)
    assert body["instance"] == f"urn:uuid:{body['correlation_id']}"
    assert all(body[sentence].endswith(".") for sentence in ("title", "detail")), body
    assert ("errors" in body) is (code == "RequestValidationError")
    assert all(fault.keys() == {"loc", "msg", "type"} for fault in body.get("errors", ()))
    return body


def assert_malformed(response: httpx.Response, context: str, *loc: str) -> None:
    body = assert_error(response, 422, "RequestValidationError", context)
    assert list(loc) in [fault["loc"][: len(loc)] for fault in body["errors"]], body


@pytest.fixture
async def narrow_service(database_url: str) -> AsyncIterator[Api]:
    """A service that takes 200 bytes at most."""
    async with running_api(database_url, projecting=False, max_request_body_size_bytes=200) as api:
        yield api


def zone_of(size: int) -> bytes:
    """A body of exactly this many bytes."""
    return json.dumps({"name": "z" * (size - len('{"name": ""}'))}).encode()


async def test_a_body_of_the_largest_size_is_taken(narrow_service: Api) -> None:
    assert (await narrow_service.request("POST", "/zones", content=zone_of(200))).status_code == 201


async def test_a_larger_body_is_refused_by_its_announced_size(narrow_service: Api) -> None:
    response = await narrow_service.request("POST", "/zones", content=zone_of(201))
    assert_error(response, 413, "RequestTooLargeError", "edge")


async def test_a_larger_body_is_refused_while_it_arrives(narrow_service: Api) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, 201, 50):
            yield zone_of(201)[start : start + 50]

    response = await narrow_service.request("POST", "/zones", content=chunks())
    assert "content-length" not in response.request.headers
    assert_error(response, 413, "RequestTooLargeError", "trust")


@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"[]", b'"name"', b"null", b'{"name": "\xff"}', b'{"name": "\\ud800"}', b"name=Hall", b"[" * 100_000],
    ids=["cut off", "empty", "list", "text", "null", "no utf-8", "half a character", "form", "nested without end"],
)
async def test_a_body_that_is_no_json_object_is_malformed(api: Api, content: bytes) -> None:
    assert_malformed(await api.request("POST", "/zones", content=content), "trust", "body")


@pytest.mark.parametrize(
    "content",
    [
        b'{"name": "Hall", "name": "Hutch"}',
        b'{"name": "Hall", "n\\u0061me": "Hutch"}',
        b'{"name": "a\\u003ab", "name": "Hutch"}',
        b'{"name": "a\\u003Ab\\u003a", "name": "Hutch:"}',
        b'{"name": {"x": [{"y": 1, "y": 1}]}}',
    ],
)
async def test_a_key_stands_once_in_an_object(api: Api, content: bytes) -> None:
    body = assert_error(await api.request("POST", "/zones", content=content), 422, "RequestValidationError", "trust")
    assert body["errors"] == [{"loc": ["body"], "msg": "An object names a key twice; give it once", "type": "repeated"}]


async def test_a_key_stands_once_also_where_the_path_names_fields(api: Api) -> None:
    content = b'{"slot_asset_bindings": [], "slot_asset_bindings": []}'
    assert_malformed(await api.request("POST", f"/assemblies/{uuid4()}/fixtures", content=content), "equipment", "body")


async def test_a_key_stands_once_also_in_a_frame(api: Api) -> None:
    call = b'{"name": "define_zone", "arguments": {"name": "Hall", "name": "Hutch"}}'
    twice = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": %b}' % call
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert_malformed(await api.request("POST", "/mcp", content=twice, headers=headers), "edge", "body")


@pytest.mark.parametrize("name", ["a:b", 'a":"b', "a\\:", "::::", "h\u003a\u00e4", "\u00e4\u20ac\U0001f600:"])
async def test_colons_are_only_letters(api: Api, name: str) -> None:
    for ascii in (True, False):
        body = json.dumps({"name": name}, ensure_ascii=ascii).encode()
        assert (await api.request("POST", "/zones", content=body)).status_code == 201
        spelled = body.replace(b'{"name"', b'{"\\u006eame"')
        assert (await api.request("POST", "/zones", content=spelled)).status_code == 201


async def test_no_answer_is_taken_for_something_else_and_pages_reach_nothing_outside(api: Api) -> None:
    for path in ("/zones", "/health", "/docs", "/metrics", "/nothing"):
        assert (await api.get(path)).headers["X-Content-Type-Options"] == "nosniff"
    page = await api.get("/docs")
    policy = dict(part.split(" ", 1) for part in page.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in str(policy)
    (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy["script-src"] == f"'self' 'sha256-{digest}'"
    assert page.headers["Referrer-Policy"] == "no-referrer"


async def test_an_unknown_field_is_malformed(api: Api) -> None:
    assert_malformed(await api.post("/zones", {"name": "Hall", "colour": "red"}), "trust", "body", "colour")
    assert_malformed(await api.get("/zones", colour="red"), "trust", "query", "colour")


async def test_a_nested_unknown_field_is_malformed(api: Api) -> None:
    frame = await api.create("/frames", {"name": "centerline"})
    placed = {**placement_in(frame), "units": "mm"}
    response = await api.post("/mounts", {"slot_code": "B-1", "placement": placed})
    assert_malformed(response, "equipment", "body", "placement", "units")


async def test_types_are_not_guessed(api: Api) -> None:
    assert_malformed(await api.post("/zones", {"name": 7}), "trust", "body", "name")
    frame = await api.create("/frames", {"name": "centerline"})
    response = await api.post("/mounts", {"slot_code": "B-1", "placement": {**placement_in(frame), "x": "1.5"}})
    assert_malformed(response, "equipment", "body", "placement", "x")


@pytest.mark.parametrize(
    "time",
    ["2026-10-06T08:00:00", "2026-10-06", "1780000000", "soon", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"],
)
async def test_a_time_needs_an_offset_and_a_year_that_can_be_written(api: Api, time: str) -> None:
    plan = visit_plan(str(uuid4()), str(uuid4()))
    assert_malformed(await api.post("/visits", {**plan, "planned_start_at": time}), "trust", "body", "planned_start_at")
    assert_malformed(await api.get("/visits", planned_from=time), "trust", "query", "planned_from")
    assert_malformed(await api.get(f"/surfaces/{SYSTEM_HTTP}", as_of=time), "trust", "query", "as_of")


async def test_equal_moments_are_equal_whatever_their_offset(api: Api) -> None:
    plan = visit_plan(str(uuid4()), str(uuid4()))
    visit = (await api.get(f"/visits/{await api.create('/visits', plan)}")).json()
    assert (visit["planned_start_at"], visit["planned_end_at"]) == ("2026-10-06T06:00:00Z", "2026-10-08T06:00:00Z")


async def test_what_no_database_can_hold_is_malformed(api: Api) -> None:
    assert_malformed(await api.request("POST", "/zones", content=b'{"name": "a\\u0000b"}'), "trust", "body")
    assert_malformed(await api.request("GET", "/models?part_number=a%00b"), "equipment", "query", "part_number")
    asset = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    for number in (b"1e400", b"-1e400", b"[1e400]"):
        body = b'{"settings_patch": {"gain": %b}}' % number
        assert_malformed(await api.request("PATCH", f"/assets/{asset}/settings", content=body), "equipment", "body")


async def test_a_path_that_names_no_id_is_malformed(api: Api) -> None:
    assert_malformed(await api.get("/zones/seven"), "trust", "path", "zone_id")
    assert_malformed(await api.post("/actors/seven/deactivate"), "access", "path", "actor_id")


async def test_a_field_that_the_path_names_is_not_given_twice(api: Api) -> None:
    bindings = {"slot_asset_bindings": [], "assembly_id": str(uuid4())}
    assert_malformed(await api.post(f"/assemblies/{uuid4()}/fixtures", bindings), "equipment", "body", "assembly_id")


async def test_a_command_takes_no_query_parameters(api: Api) -> None:
    assert_malformed(await api.request("POST", "/zones?name=Hall", json={"name": "Hall"}), "trust", "query")


async def test_a_parameter_is_given_once_unless_any_of_its_values_may_match(api: Api) -> None:
    assert_malformed(await api.request("GET", "/visits?status=Planned&status=Arrived"), "trust", "query", "status")
    assert (await api.request("GET", "/visits?type=user&type=staff")).status_code == 200


async def test_there_is_an_error_body_where_nothing_is(api: Api) -> None:
    for path in ("/nothing", "/zones/", f"/zones/{uuid4()}/nothing", "/docs/nothing"):
        assert_error(await api.get(path), 404, "RouteNotFoundError", "edge")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/zones", "GET, POST"),
        ("PUT", f"/zones/{SOMETHING}", "GET"),
        ("OPTIONS", "/actors", "GET, POST"),
        ("GET", "/assets/mint-missing-external-ids", "POST"),
        ("POST", f"/actors/{SOMETHING}/profile", "DELETE, GET, PATCH"),
    ],
)
async def test_another_method_is_refused_with_those_there_are(api: Api, method: str, path: str, allow: str) -> None:
    response = await api.request(method, path)
    assert_error(response, 405, "MethodNotAllowedError", "edge")
    assert response.headers["Allow"] == allow


async def test_a_trace_runs_through_answer_and_events(api: Api) -> None:
    response = await api.post("/zones", {"name": "Hall"}, traceparent=f"00-{TRACE}-b7ad6b7169203331-01")
    assert response.headers["X-Correlation-Id"] == str(UUID(TRACE))
    history = (await api.get(f"/zones/{response.json()['zone_id']}/history")).json()["items"]
    assert [item["correlation_id"] for item in history] == [str(UUID(TRACE))]


@pytest.mark.parametrize(
    "parent", ["", "00", f"00-{TRACE[:-1]}-b7ad6b7169203331-01", f"00-{'0' * 32}-b7-01", f"00-{'x' * 32}-b7-01"]
)
async def test_without_a_trace_each_request_has_an_id_of_its_own(api: Api, parent: str) -> None:
    ids = [(await api.request("GET", "/zones", headers={"traceparent": parent})).headers["X-Correlation-Id"] for _ in "ab"]
    assert ids[0] != ids[1]
    assert {UUID(id).version for id in ids} == {7}


async def test_the_refused_are_correlated_too(api: Api) -> None:
    response = await api.request("GET", "/nothing", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
    assert response.headers["X-Correlation-Id"] == response.json()["correlation_id"] == str(UUID(TRACE))


async def test_a_command_answers_with_its_position(api: Api) -> None:
    position = await api.execute(
        "/conduits", {"name": "Net", "source_zone_id": str(uuid4()), "target_zone_id": str(uuid4())}
    )
    newest = (await api.get("/conduits", order="desc", limit=1, min_position=position)).json()["items"][0]
    events = (await api.get(f"/conduits/{newest['conduit_id']}/history")).json()["items"]
    assert max(event["position"] for event in events) == position


async def test_a_command_that_changes_nothing_answers_with_what_it_looked_at(api: Api) -> None:
    asset = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    position = await api.execute(f"/assets/{asset}/degrade", {"reason": "runout"})
    await api.create("/zones", {"name": "Something later"})
    assert await api.execute(f"/assets/{asset}/degrade", {"reason": "still"}) == position


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb"])
async def test_a_key_is_of_1_to_255_printable_characters(api: Api, key: str) -> None:
    response = await api.post("/zones", {"name": "Hall"}, Idempotency_Key=key)
    assert_malformed(response, "trust", "header", "Idempotency-Key")
    assert (await api.post("/zones", {"name": "Hall"}, Idempotency_Key="k" * 255)).status_code == 201


async def test_a_repeat_is_answered_from_memory(api: Api) -> None:
    first = await api.post("/zones", {"name": "Once"}, Idempotency_Key="once")
    again = await api.post("/zones", {"name": "Once"}, Idempotency_Key="once")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["X-Baton-Position"] == first.headers["X-Baton-Position"]
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (None, "true")
    newest = {"order": "desc", "min_position": first.headers["X-Baton-Position"]}
    assert [zone["name"] for zone in (await api.get("/zones", **newest)).json()["items"]].count("Once") == 1


async def test_every_kind_of_command_can_be_repeated(api: Api) -> None:
    actor = await api.create("/actors", {"name": "Mira"})
    for method, path, body in (
        ("PATCH", f"/actors/{actor}/profile", {"email": "m@example.org"}),
        ("POST", f"/actors/{actor}/deactivate", {}),
        ("DELETE", f"/actors/{actor}/profile", {}),
    ):
        key = {"Idempotency-Key": path + method}
        assert (await api.request(method, path, json=body, headers=key)).status_code == 204
        again = await api.request(method, path, json=body, headers=key)
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (204, "true")
    types = [event["event_type"] for event in (await api.get(f"/actors/{actor}/history")).json()["items"]]
    assert types == ["ActorRegistered", "ActorProfileUpdated", "ActorDeactivated", "ActorProfileForgotten"]


async def test_the_same_request_may_be_spelled_differently(api: Api) -> None:
    one, other = str(uuid4()), str(uuid4())
    policy = {"name": "Nobody", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_commands": []}
    first = await api.post("/policies", {**policy, "permitted_principal_ids": [one, other]}, Idempotency_Key="sets")
    again = await api.post("/policies", {**policy, "permitted_principal_ids": [other, one, one]}, Idempotency_Key="sets")
    assert again.json() == first.json()
    frame = await api.create("/frames", {"name": "centerline"})
    slot = {"slot_code": "B-1", "placement": placement_in(frame)}
    first = await api.post("/mounts", slot, Idempotency_Key="numbers")
    written = json.dumps(slot).replace("0.0", "0").replace("B-1", "\\u0042-1").encode()
    again = await api.request("POST", "/mounts", content=written, headers={"Idempotency-Key": "numbers"})
    assert (again.status_code, again.json()) == (201, first.json())


async def test_a_key_stands_for_one_request(api: Api) -> None:
    first = await api.create("/actors", {"name": "Mira"})
    second = await api.create("/actors", {"name": "Noor"})
    assert (await api.post(f"/actors/{first}/deactivate", Idempotency_Key="one request")).status_code == 204
    for path, body in (
        (f"/actors/{second}/deactivate", {}),
        (f"/actors/{first}/reactivate", {}),
        ("/zones", {"name": "Hall"}),
    ):
        response = await api.post(path, body, Idempotency_Key="one request")
        context = "trust" if path == "/zones" else "access"
        assert_error(response, 422, "IdempotencyConflictError", context, "other_request")


async def test_a_key_belongs_to_its_principal(api: Api) -> None:
    answers = [
        await api.acting_as(uuid4()).post("/zones", {"name": name}, Idempotency_Key="shared") for name in ("Hall", "Hutch")
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert all("Idempotency-Replayed" not in answer.headers for answer in answers)


async def test_a_refusal_is_not_remembered(api: Api) -> None:
    root = {"name": "Tomography", "tier": "Unit", "facility_code": "lumen"}
    assert (await api.post("/assets", root, Idempotency_Key="refused")).status_code == 404
    assert (await api.post("/assets", {**root, "facility_code": "elsewhere"}, Idempotency_Key="refused")).status_code == 404
    await api.create("/federation/facilities", {"code": "lumen", "display_name": "Lumen", "kind": "Site"})
    done = await api.post("/assets", root, Idempotency_Key="refused")
    assert (done.status_code, "Idempotency-Replayed" in done.headers) == (201, False)


@asynccontextmanager
async def hold_lock(api: Api, lock: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A named lock of the command path, held by somebody else until the block ends."""
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        await connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (lock,))
        yield connection


async def test_a_key_in_flight_is_taken_whatever_is_asked(api: Api) -> None:
    root = {"name": "Tomography", "tier": "Unit", "facility_code": "facility"}
    async with hold_lock(api, "asset-tree") as connection:
        first = asyncio.create_task(api.post("/assets", root, Idempotency_Key="held"))

        async def is_claimed() -> Any:
            return await (await connection.execute("SELECT true FROM idempotency WHERE key = 'held'")).fetchone()

        await until(is_claimed)
        for path, body, context in (("/assets", root, "equipment"), ("/zones", {"name": "Hall"}, "trust")):
            rival = await api.post(path, body, Idempotency_Key="held")
            assert_error(rival, 409, "IdempotencyClaimLostError", context, "in_flight")
            assert rival.headers["Retry-After"] == "1"
        assert not first.done()
    created = await first
    again = await api.post("/assets", root, Idempotency_Key="held")
    assert (again.status_code, again.json(), again.headers["Idempotency-Replayed"]) == (201, created.json(), "true")


@asynccontextmanager
async def missing_table(api: Api) -> AsyncIterator[None]:
    """The database lacks a table that appending a policy needs."""
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        await connection.execute("ALTER TABLE lookups RENAME TO mislaid")
        try:
            yield
        finally:
            await connection.execute("ALTER TABLE mislaid RENAME TO lookups")


async def test_an_unforeseen_failure_says_nothing_of_the_inside_and_keeps_its_key(api: Api) -> None:
    policy = {"name": MARK, "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    policy |= {"permitted_principal_ids": [], "permitted_commands": []}
    async with missing_table(api):
        failed = await api.post("/policies", policy, Idempotency_Key="failed")
    body = assert_error(failed, 500, "InternalError", "trust")
    assert "lookups" not in failed.text
    assert MARK not in failed.text
    assert "facts" not in body
    unknown = await api.post("/policies", policy, Idempotency_Key="failed")
    assert_error(unknown, 409, "IdempotencyClaimLostError", "trust", "in_flight")


@asynccontextmanager
async def full_disk(api: Api, state: str = "disk_full") -> AsyncIterator[None]:
    """The database takes no event: its disk is full, or something else is wrong with it."""
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        raising = f"BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '{state}'; END"
        await connection.execute(f"CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ {raising} $$")
        await connection.execute("CREATE TRIGGER no_space BEFORE INSERT ON events EXECUTE FUNCTION no_space()")
        try:
            yield
        finally:
            await connection.execute("DROP FUNCTION no_space CASCADE")


@contextmanager
def full_log() -> Iterator[None]:
    """Log lines go to a device that is full."""
    before = structlog.get_config()
    with open("/dev/full", "w", buffering=1) as device:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(device))
        try:
            yield
        finally:
            structlog.configure(**before)
            with suppress(OSError):
                device.close()


@pytest.mark.parametrize("state", ["disk_full", "io_error", "out_of_memory", "read_only_sql_transaction", "internal_error"])
async def test_a_database_without_space_is_unavailable_and_well_again_afterwards(api: Api, state: str) -> None:
    async with full_disk(api, state):
        with full_log():
            refused = await api.post("/zones", {"name": "Hall"}, Idempotency_Key=f"full-{state}")
    assert_error(refused, 503, "StoreUnavailableError", "trust")
    assert refused.headers["Retry-After"] == "5"
    again = await api.post("/zones", {"name": "Hall"})
    assert again.status_code == 201


async def test_an_unforeseen_failure_has_its_body_although_nothing_can_be_logged(api: Api) -> None:
    async with missing_table(api):
        with full_log():
            policy = {"name": MARK, "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
            policy |= {"permitted_principal_ids": [], "permitted_commands": []}
            failed = await api.post("/policies", policy)
    assert_error(failed, 500, "InternalError", "trust")


async def test_a_stale_key_is_taken_over(database_url: str) -> None:
    async with running_api(database_url, projecting=False, idempotency_lock_stale_seconds=30) as api:
        async with missing_table(api):
            policy = {"name": "Nobody", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
            policy |= {"permitted_principal_ids": [], "permitted_commands": []}
            assert (await api.post("/policies", policy, Idempotency_Key="k")).status_code == 500
        async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
            await connection.execute("UPDATE idempotency SET locked_at = locked_at - interval '31 seconds'")
        done = await api.post("/policies", policy, Idempotency_Key="k")
        assert (done.status_code, "Idempotency-Replayed" in done.headers) == (201, False)


async def test_the_unauthorized_never_reach_the_memory(database_url: str) -> None:
    admin, person = str(uuid4()), str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        denied = await api.acting_as(person).post("/zones", {"name": "Hall"}, Idempotency_Key="k")
        assert_error(denied, 403, "UnauthorizedError", "trust", "principal_not_permitted")
        grant = {"name": "Zones", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
        holders = {"permitted_principal_ids": [person], "permitted_commands": ["DefineZone"]}
        policy = await api.acting_as(admin).create("/policies", {**grant, **holders})
        first = await api.acting_as(person).post("/zones", {"name": "Hall"}, Idempotency_Key="k")
        assert (first.status_code, "Idempotency-Replayed" in first.headers) == (201, False)
        revoke = {"permitted_principal_id": person, "reason": "over"}
        await api.acting_as(admin).execute(f"/policies/{policy}/revoke-grant", revoke)
        again = await api.acting_as(person).post("/zones", {"name": "Hall"}, Idempotency_Key="k")
        assert again.status_code == 403


async def test_the_other_kinds_of_refusal_have_the_same_body(api: Api) -> None:
    assert_error(await api.post("/zones", {"name": " "}), 400, "InvalidZoneNameError", "trust", "blank")
    assert_error(await api.get(f"/zones/{uuid4()}"), 404, "ZoneNotFoundError", "trust")
    actor = await api.create("/actors", {"name": "Mira"})
    own = await api.acting_as(actor).post(f"/actors/{actor}/reactivate")
    assert_error(own, 403, "UnauthorizedError", "access", "self_reactivation")
    again = await api.post(f"/actors/{actor}/reactivate")
    assert_error(again, 409, "ActorCannotReactivateError", "access", "active")
    missing = str(uuid4())
    unknown = await api.post("/models", {**MODEL, "declared_family_ids": [missing]})
    body = assert_error(unknown, 404, "FamilyNotFoundError", "equipment")
    assert body["facts"] == {"missing_ids": [missing]}
    assert_error(await api.get("/zones", cursor="x"), 422, "InvalidCursorError", "trust", "malformed")


MODEL = {"name": "acme_r250", "manufacturer": {"name": "Acme Motion"}, "part_number": "R-250-AS"}


async def test_a_wrong_principal_header_is_malformed(api: Api) -> None:
    response = await api.request("GET", "/zones", headers={"X-Principal-Id": MARK})
    assert_malformed(response, "trust", "header", "X-Principal-Id")
    assert MARK not in response.text


WRONG_VALUES = ([MARK], {"kind": MARK}, {"x": MARK}, MARK * 200, [{"kind": MARK, "name": MARK * 200}], 7)


@for_each(("number", "operation"), enumerate(WITH_BODY))
async def test_a_malformed_body_is_never_echoed(api: Api, number: int, operation: Operation) -> None:
    """Each operation meets some of the wrong values, in turn: fields of the same type meet all of them."""
    path = operation.path.format_map(AnyId())
    fields = [name for name in operation.input.model_fields if name not in operation.path_fields]
    for wrong in WRONG_VALUES[number % 3 :: 3]:
        response = await api.request(operation.method, path, json=dict.fromkeys(fields, wrong))
        unread = (503,) if operation.name == "read_signals" else ()  # a list of texts is right, and there is no worker
        assert response.status_code in (404, 422, 400, 409, *unread), response.text
        assert MARK not in response.text
    response = await api.request(operation.method, path, json={"unknown": MARK})
    assert (response.status_code, MARK in response.text) == (422, False)


@for_each(("number", "operation"), enumerate(IN_ADDRESS))
async def test_a_malformed_question_is_never_echoed(api: Api, number: int, operation: Operation) -> None:
    path = operation.path.format_map(AnyId())
    names = sorted(operation.input.model_fields.keys() - repeatable_fields(operation.input) - set(operation.path_fields))
    questions = [dict.fromkeys([*names, "unknown"], MARK)]
    if names:
        questions.append({names[number % len(names)]: f"{MARK}\0"})
    for question in questions:
        response = await api.request("GET", path, params=question)
        assert (response.status_code, MARK in response.text) == (422, False)


class AnyId(dict[str, str]):
    """An id for whatever a path asks for."""

    def __missing__(self, name: str) -> str:
        return str(uuid4())


async def test_the_console_is_added_when_it_is_first_asked_for_by_several_at_once_too(database_url: str) -> None:
    async with running_api(database_url, projecting=False) as api:
        paths = ("/", "/console", "/console/nowhere", "/console")
        first = await asyncio.gather(*(api.request("GET", path) for path in paths))
        assert [answer.status_code for answer in first] == [303, 200, 404, 200]
        assert "There is no page at this address" in first[2].text
        assert first[2].headers["content-type"].startswith("text/html")
        assert (await api.request("GET", "/console")).status_code == 200


async def test_each_request_is_a_line_of_the_log_with_nothing_personal_in_it(database_url: str) -> None:
    async with running_api(database_url, projecting=False, access_log=True) as api:
        with structlog.testing.capture_logs() as lines:
            made = await api.post("/actors", {"name": MARK})
            await api.get("/actors", q=MARK)
    told = [line for line in lines if line["event"] == "request"]
    assert [(line["operation"], line["method"], line["status"]) for line in told] == [
        ("register_actor", "POST", 201),
        ("list_actors", "GET", 200),
    ]
    assert told[0]["correlation_id"] == made.headers["X-Correlation-Id"]
    assert told[0].keys() == {"event", "log_level", "operation", "method", "status", "milliseconds", "correlation_id"}
    assert MARK not in repr(told)


@pytest.mark.parametrize(("tier", "chosen", "logged"), [("prod", None, True), ("prod", False, False), ("test", None, False)])
def test_requests_are_logged_in_the_production_tier_unless_it_is_said(tier: str, chosen: bool | None, logged: bool) -> None:
    assert Settings(app_env=tier, access_log=chosen).requests_logged is logged
