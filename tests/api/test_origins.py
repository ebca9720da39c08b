"""Where requests may come from while no token is required: every attack through a browser, over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.api.test_edge import assert_error
from tests.support.api.mcp_clients import FRAME
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer
from tests.support.service import Api, running_api

PLAIN = {"Content-Type": "text/plain"}
EVIL = "http://evil.example"
PATHS = ("/health", "/readyz", "/docs", "/openapi.json", "/metrics", "/zones", "/nothing", "/me", "/events/stream")
FOREIGN_HOSTS = (
    "attacker.example",
    "attacker.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "0.0.0.0",
    "10.0.0.7:8000",
    "[::2]:8000",
    "localhost:8000@evil.example",
    "localhost:8000, evil.example",
    "",
)


@pytest.fixture(scope="module")
async def api(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Api]:
    """One service for all, without tokens."""
    with fresh_database(postgres, template) as url:
        async with running_api(url, projecting=False) as api:
            yield api


async def raw(api: Api, text: str) -> tuple[int, dict[str, str], bytes]:
    """The answer to exactly these bytes."""
    place = urlsplit(api.base_url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(text.encode())
        async with asyncio.timeout(60):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
    finally:
        writer.close()
    return int(head[0].split()[1]), headers, body


async def position(api: Api) -> int:
    """The newest place in the log: what it moves by was done."""
    return await api.execute("/zones", {"name": "Mark"})


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_a_foreign_host_is_refused_on_every_path(api: Api, host: str) -> None:
    for path in PATHS:
        refused = await api.request("GET", path, headers={"Host": host})
        assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_host")
    for path, body in (("/actors", {"name": "Eve"}), ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})):
        refused = await api.request("POST", path, json=body, headers={**FRAME, "Host": host})
        assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "127.8.9.10", "[::1]", "[::1]:8000"])
async def test_loopback_names_are_answered_with_any_port(api: Api, host: str) -> None:
    for path in ("/health", "/zones", "/docs"):
        assert (await api.request("GET", path, headers={"Host": host})).status_code == 200


async def test_a_request_without_a_host_is_refused(api: Api) -> None:
    for version in ("1.0", "1.1"):
        status, _, body = await raw(api, f"GET /health HTTP/{version}\r\n\r\n")
        assert (status, json.loads(body)["reason"]) == (403, "foreign_host")


@pytest.mark.parametrize(
    "origin",
    [EVIL, "https://evil.example", "null", "http://localhost:9999", "http://[::1]x", "https://localhost", "file://"],
)
async def test_a_foreign_origin_is_refused_on_every_path_and_nothing_changes(api: Api, origin: str) -> None:
    before = await position(api)
    for path in PATHS:
        refused = await api.request("GET", path, headers={"Origin": origin})
        assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_origin")
        assert "access-control-allow-origin" not in refused.headers
    for path, body in (
        ("/actors", {"name": "Eve"}),
        ("/policies", {"name": "Mine"}),
        ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "define_zone"}}),
    ):
        for types in (PLAIN, FRAME):
            text = json.dumps(body)
            refused = await api.request("POST", path, content=text, headers={**types, "Origin": origin})
            assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_origin")
    preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    assert (await api.request("OPTIONS", "/actors", headers=preflight)).status_code == 403
    assert await position(api) == before + 1


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
async def test_what_another_site_asks_for_is_refused_also_without_an_origin(api: Api, site: str) -> None:
    for path in PATHS:
        refused = await api.request("GET", path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
        assert_error(refused, 403, "ForeignRequestError", "edge", "cross_site")


async def test_the_services_own_pages_are_answered(api: Api) -> None:
    own = {"Origin": api.base_url, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert (await api.request("POST", "/zones", json={"name": "Hall"}, headers=own)).status_code == 201
    typed = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await api.request("GET", "/docs", headers=typed)).status_code == 200


async def test_a_program_need_not_say_what_its_body_is(api: Api) -> None:
    for types in (PLAIN, {"Content-Type": "application/x-www-form-urlencoded"}, {}):
        answer = await api.request("POST", "/zones", content=b'{"name": "Hall"}', headers=types)
        assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("mark", ["Origin", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Fetch-Site"])
async def test_the_body_of_a_page_is_json_and_called_so(api: Api, mark: str) -> None:
    marks = {mark: {"Origin": api.base_url, "Sec-Fetch-Site": "same-origin"}.get(mark, "cors")}
    for types in (PLAIN, {"Content-Type": "multipart/form-data"}, {}, {"Content-Type": "application/jsonp"}):
        refused = await api.request("POST", "/zones", content=b'{"name": "Hall"}', headers={**types, **marks})
        assert_error(refused, 415, "UnsupportedMediaTypeError", "edge")
    for written in ("application/json", "Application/JSON; charset=utf-8"):
        types = {"Content-Type": written}
        taken = await api.request("POST", "/zones", content=b'{"name": "Hall"}', headers={**types, **marks})
        assert taken.status_code == 201
    actor = await api.create("/actors", {"name": "Mira"})
    assert (await api.request("POST", f"/actors/{actor}/deactivate", headers=marks)).status_code == 204


async def test_the_public_address_is_answered_and_its_pages_are_ours(database_url: str) -> None:
    async with running_api(database_url, public_base_url="https://baton.example.org/east/", projecting=False) as api:
        for host in ("baton.example.org", "Baton.Example.org:8443"):
            own = {"Host": host, "Origin": "https://baton.example.org"}
            assert (await api.request("POST", "/zones", json={"name": "Hall"}, headers=own)).status_code == 201
        for host in ("batonxexample.org", "other.example.org"):
            refused = await api.request("GET", "/health", headers={"Host": host})
            assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_host")


async def test_any_host_answers_under_addresses_and_no_other_names(database_url: str) -> None:
    async with running_api(database_url, any_host=True, projecting=False) as api:
        for host in ("10.0.0.7:8000", "[fe80::1]:8000", "localhost"):
            assert (await api.request("GET", "/zones", headers={"Host": host})).status_code == 200
            refused = await api.request("GET", "/zones", headers={"Host": host, "Origin": EVIL})
            assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_origin")
        refused = await api.request("GET", "/zones", headers={"Host": "attacker.example"})
        assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_host")


async def test_where_tokens_are_required_the_host_is_free_and_pages_still_send_json(
    database_url: str, issuer: Issuer
) -> None:
    mira = "0197a100-0000-7000-8000-00000000000a"
    provider = issuer.provider(subject_bindings=[{"subject": "mira", "actor_id": mira}])
    async with running_api(database_url, identity_providers=[provider], projecting=False) as api:
        bearer = {"Authorization": f"Bearer {issuer.token('mira', audience=HTTP_AUDIENCE)}"}
        elsewhere = {**bearer, "Host": "baton.example.org", "Origin": EVIL, "Sec-Fetch-Site": "cross-site"}
        assert (await api.request("POST", "/zones", json={"name": "Hall"}, headers=elsewhere)).status_code == 201
        refused = await api.request("POST", "/zones", content=b'{"name": "Hall"}', headers={**elsewhere, **PLAIN})
        assert_error(refused, 415, "UnsupportedMediaTypeError", "edge")
        frame = {**FRAME, "Authorization": f"Bearer {issuer.token('mira', audience=MCP_AUDIENCE)}", "Origin": EVIL}
        refused = await api.request("POST", "/mcp", content=b"{}", headers=frame)
        assert_error(refused, 403, "ForeignRequestError", "edge", "foreign_origin")


@pytest.mark.parametrize("name", ["Authorization", "Idempotency-Key", "Host", "Origin", "Content-Type", "X-Principal-Id"])
async def test_a_header_that_could_mean_two_things_stands_once(api: Api, name: str) -> None:
    place = urlsplit(api.base_url).netloc
    values = {"Host": place, "Origin": api.base_url, "X-Principal-Id": "0197a100-0000-7000-8000-00000000000a"}
    line = f"{name}: {values.get(name, 'x')}\r\n"
    host = "" if name == "Host" else f"Host: {place}\r\n"
    status, headers, body = await raw(api, f"POST /zones HTTP/1.1\r\n{host}{line}{line.lower()}Content-Length: 0\r\n\r\n")
    answer: dict[str, Any] = json.loads(body)
    assert (status, answer["code"], headers["content-type"]) == (400, "RepeatedHeaderError", "application/problem+json")
    assert name in answer["detail"]


async def test_other_headers_may_stand_more_than_once(api: Api) -> None:
    place = urlsplit(api.base_url).netloc
    text = f"GET /zones HTTP/1.1\r\nHost: {place}\r\nAccept: text/html\r\nAccept: application/json\r\n\r\n"
    assert (await raw(api, text))[0] == 200
