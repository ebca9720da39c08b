"""How the service behaves towards clients: problems that help, pages of refusals, compression, tags and its version."""

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

import baton
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from tests.support.api.openapi_document import document
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api, running_api

CONDUIT, HTTP = "00000000-0000-0000-0000-000000000010", "00000000-0000-0000-0000-000000000020"


@pytest.fixture(scope="module")
async def api(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Api]:
    """One service for all: nothing here depends on what else is in it."""
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            yield api


async def problem_of(api: Api, path: str, body: Any) -> dict[str, Any]:
    """Return the problem of a request that has the wrong form."""
    answer = await api.post(path, body)
    assert answer.status_code == 422, answer.text
    problem: dict[str, Any] = answer.json()
    return problem


async def test_missing_fields_are_named_with_their_meaning_and_an_example(api: Api) -> None:
    problem = await problem_of(api, "/conduits", {})
    needed = {field["name"]: field for field in problem["needed"]}
    assert needed.keys() == {"name", "source_zone_id", "target_zone_id"}
    assert needed["source_zone_id"]["type"] == "uuid"
    assert all(field["description"].endswith(".") for field in problem["needed"])
    assert needed.keys() <= problem["example"].keys()
    assert problem["detail"].startswith(
        "The request has the wrong form: body.name: A name is needed; body.source_zone_id: A source zone is needed"
    )


async def test_every_operation_says_what_it_needs(api: Api) -> None:
    for operation in (one for one in REGISTRY if not one.name.startswith("stream_")):
        path = operation.path
        for name in operation.placeholders:
            path = path.replace(f"{{{name}}}", "no-id")
        answer = await api.request(operation.method, path, **({"content": b"["} if operation.has_body else {}))
        if answer.status_code == 422:
            problem = answer.json()
            named = [field["name"] for field in problem["needed"]]
            assert operation.target is None or named[0] == operation.target
            assert problem.get("example") == operation.example


async def test_a_name_in_place_of_an_id_is_answered_with_the_candidates(api: Api) -> None:
    first = await api.create("/zones", {"name": "Experiment hall"})
    await api.create("/zones", {"name": "Control room"})
    position = await api.execute("/zones", {"name": "Hall of magnets"})
    assert (await api.get("/zones", min_position=position)).status_code == 200
    ends = {"source_zone_id": "Experiment hall", "target_zone_id": str(uuid4())}
    problem = await problem_of(api, "/conduits", {"name": "Net", **ends})
    assert problem["facts"]["candidates"] == [{"field": "source_zone_id", "id": first, "name": "Experiment hall"}]
    assert "Give source_zone_id as an id, not as a name" in problem["detail"]
    alike = (await api.get("/zones/hall")).json()
    assert sorted(found["name"] for found in alike["facts"]["candidates"]) == ["Experiment hall", "Hall of magnets"]
    unknown = (await api.get("/zones/nothing-like-it")).json()
    assert ("facts" in unknown, "nothing that you may list has such a name" in unknown["detail"]) == (False, True)


async def test_candidates_are_shown_to_those_who_may_list_them(database_url: str, issuer: Issuer) -> None:
    administrator = str(uuid4())
    provider = issuer.provider(subject_bindings=[{"subject": "admin", "actor_id": administrator}])
    settings = {"authorization_mode": "policy", "identity_providers": [provider]}
    async with running_api(database_url, bootstrap_principal_id=administrator, **settings) as api:
        admin = api.with_token(issuer.token("admin"))
        grant = {"name": "Some", "conduit_id": CONDUIT, "surface_id": HTTP, "permitted_principal_ids": [administrator]}
        await admin.create("/policies", {**grant, "permitted_commands": ["DefineZone", "GetZone"]})
        await admin.create("/zones", {"name": "Experiment hall"})
        unseen = (await admin.get("/zones/Experiment hall")).json()
        assert (unseen["code"], "facts" in unseen) == ("RequestValidationError", False)
        position = await admin.execute("/policies", {**grant, "name": "More", "permitted_commands": ["ListZones"]})
        assert (await admin.get("/zones", min_position=position)).status_code == 200
        seen = (await admin.get("/zones/Experiment hall")).json()
        assert [found["name"] for found in seen["facts"]["candidates"]] == ["Experiment hall"]


async def test_every_refusal_has_a_page(api: Api) -> None:
    for code, entry in document()["components"]["x-refusals"].items():
        told = (await api.get(f"/refusals/{code}")).json()
        assert (told["code"], told["status"], told["meaning"]) == (code, entry["status"], entry["description"])
        assert told["advice"].endswith(".")
        assert told["sources"]


async def test_the_type_of_a_problem_leads_to_a_page_in_html_or_json(api: Api) -> None:
    problem = (await api.get(f"/zones/{uuid4()}")).json()
    assert problem["type"] == "/refusals/ZoneNotFoundError"
    page = await api.request("GET", problem["type"], headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    assert "<h1>ZoneNotFoundError</h1>" in page.text
    assert 'href="/docs#/trust/get_zone"' in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    cannot = (await api.get("/refusals/RunCannotHoldError")).json()
    assert {"held", "completed"} <= set(cannot["reasons"])
    assert cannot["operations"] == ["hold_run"]
    for code in ("RefusalCodeNotFoundError", "RouteNotFoundError", "TooManyStreamsError", "EngineUnavailableError"):
        assert (await api.get(f"/refusals/{code}")).status_code == 200
    missing = await api.get("/refusals/NoSuchError")
    assert (missing.status_code, missing.json()["code"]) == (404, "RefusalCodeNotFoundError")


async def test_every_response_names_the_version(api: Api) -> None:
    for method, path in (("GET", "/zones"), ("GET", "/nothing"), ("PUT", "/zones"), ("GET", "/metrics"), ("GET", "/docs")):
        assert (await api.request(method, path)).headers["Baton-Version"] == baton.__version__, path
    async with api.client.stream("GET", "/events/stream") as stream:
        assert stream.headers["Baton-Version"] == baton.__version__
        assert "Content-Encoding" not in stream.headers


async def raw(api: Api, path: str, **headers: str) -> httpx.Response:
    """Return a response whose body is as it came."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with api.client.stream("GET", path, headers=named) as response:
        response.extensions["body"] = b"".join([part async for part in response.aiter_raw()])
    return response


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("identity", False), ("gzip;q=0", False), ("", False)],
)
async def test_what_is_long_is_compressed_where_the_client_takes_it(api: Api, accepted: str, compressed: bool) -> None:
    for path in ("/me", "/openapi.json", "/docs/swagger-ui.css"):
        response = await raw(api, path, Accept_Encoding=accepted)
        body = response.extensions["body"]
        assert (response.headers.get("Content-Encoding") == "gzip") is compressed, path
        assert response.headers["Vary"] == "accept-encoding"
        assert int(response.headers["Content-Length"]) == len(body)
        plain = await raw(api, path, Accept_Encoding="identity")
        assert (gzip.decompress(body) if compressed else body) == plain.extensions["body"]


async def test_what_is_short_is_not_compressed(api: Api) -> None:
    response = await raw(api, "/health", Accept_Encoding="gzip")
    assert ("Content-Encoding" in response.headers, "Vary" in response.headers) == (False, False)


async def test_the_document_is_fetched_again_only_when_it_has_changed(api: Api) -> None:
    first = await api.get("/openapi.json")
    assert json.loads(first.content)["info"]["version"] == baton.__version__
    again = await api.request("GET", "/openapi.json", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    other = await api.request("GET", "/openapi.json", headers={"If-None-Match": 'W/"other"'})
    assert (other.status_code, other.content) == (200, first.content)


async def test_the_front_door_leads_to_the_console(api: Api) -> None:
    door = await api.get("/")
    assert (door.status_code, door.headers["Location"]) == (303, "/console")


async def test_people_sign_in_on_the_page_where_a_provider_says_how(database_url: str, issuer: Issuer) -> None:
    addresses = {"authorization_url": "https://id.example.org/authorize", "token_url": "https://token.example.org/token"}
    provider = issuer.provider(**addresses, public_client_id="baton-docs")
    async with running_api(database_url, projecting=False, identity_providers=[provider]) as api:
        page, document = await api.get("/docs"), (await api.get("/openapi.json")).json()
        back = await api.get("/docs/oauth2-redirect?code=x&state=y")
    assert '"clientId":"baton-docs","usePkceWithAuthorizationCodeGrant":true' in page.text
    assert "connect-src 'self' https://token.example.org;" in page.headers["Content-Security-Policy"]
    assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin-allow-popups"
    flow = document["components"]["securitySchemes"]["sign_in"]["flows"]["authorizationCode"]
    assert (flow["authorizationUrl"], flow["tokenUrl"]) == tuple(addresses.values())
    assert document["security"] == [{"bearer": []}, {"sign_in": []}]
    assert (back.status_code, "Cross-Origin-Opener-Policy" in back.headers) == (200, False)
    assert "script-src 'sha256-" in back.headers["Content-Security-Policy"]
