"""Who is calling: tokens of a real issuer at the edge of the running service, on both surfaces."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from baton.application.identity import SENTENCES, TokenFault
from baton.application.seeds import BOOTSTRAP_COMMANDS
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.infrastructure.postgres.test_outage import outage
from tests.support.api.event_streams import open_feed
from tests.support.api.mcp_clients import send_frame
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer, SigningKey
from tests.support.service import Api, running_api
from tests.support.tables import for_each

NIL = str(UUID(int=0))
MIRA = str(uuid4())
METADATA = "/.well-known/oauth-protected-resource"
OPEN = ("/health", "/readyz", "/metrics", METADATA, f"{METADATA}/mcp", "/docs", "/openapi.json")


@dataclass(frozen=True)
class GuardedService:
    """A service behind an identity provider."""

    api: Api
    issuer: Issuer

    async def get(self, path: str, authorization: str | None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        shown = {} if authorization is None else {"Authorization": authorization}
        return await self.api.request("GET", path, headers={**shown, **named})

    async def me(self, subject: str = "mira-77", **headers: str) -> httpx.Response:
        return await self.get("/me", f"Bearer {self.issuer.token(subject)}", **headers)

    def as_subject(self, subject: str, **claims: Any) -> Api:
        return self.api.with_token(self.issuer.token(subject, **claims))


@asynccontextmanager
async def open_guarded_service(
    database_url: str, issuer: Issuer, *providers: Any, **settings: Any
) -> AsyncIterator[GuardedService]:
    known = providers or (issuer.provider(subject_bindings=[{"subject": "mira-77", "actor_id": MIRA}]),)
    async with running_api(database_url, identity_providers=list(known), **settings) as api:
        yield GuardedService(api, issuer)


@pytest.fixture(scope="module")
async def guarded_service(postgres: EmbeddedPostgres, template: str, issuer: Issuer) -> AsyncIterator[GuardedService]:
    with fresh_database(postgres, template) as url:
        async with open_guarded_service(url, issuer) as guarded_service:
            yield guarded_service


def assert_challenged(response: httpx.Response, base_url: str, fault: TokenFault | None = None) -> None:
    """A 401 tells where to get a token and, of one that was refused, why."""
    expected = f'Bearer realm="baton", resource_metadata="{base_url}{METADATA}"'
    if fault is not None:
        expected += f', error="invalid_token", error_description="{fault}"'
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == expected
    body = response.json()
    assert body["code"] == ("UnauthenticatedError" if fault is None else "InvalidTokenError")
    assert body.get("reason") == (fault and fault.value)
    assert body["correlation_id"] == response.headers["X-Correlation-Id"]
    if fault is TokenFault.NOT_ACCESS_TOKEN_TYPE:
        assert "typ JWT" in body["detail"]
    elif fault is not None:
        assert body["detail"] == SENTENCES[fault]


@pytest.mark.parametrize("path", OPEN)
async def test_open_paths_ask_for_nothing(guarded_service: GuardedService, path: str) -> None:
    answer = await guarded_service.get(path, None)
    assert (answer.status_code, answer.headers["X-Content-Type-Options"]) == (200, "nosniff")
    assert (await guarded_service.get(path, "Bearer rubbish")).status_code == 200


@pytest.mark.parametrize("path", ["/health/", "/healthz", "/docs/x", "/openapi.json/x", "/consoles", "/nothing", "//health"])
async def test_what_only_looks_open_is_not(guarded_service: GuardedService, path: str) -> None:
    response = await guarded_service.api.client.send(httpx.Request("GET", guarded_service.api.base_url + path))
    assert_challenged(response, guarded_service.api.base_url)


@for_each("operation", REGISTRY)
async def test_every_operation_asks_for_a_token_before_anything_else(
    guarded_service: GuardedService, operation: Operation
) -> None:
    path = operation.path.replace("{", "").replace("}", "")
    response = await guarded_service.api.request(operation.method, f"{path}?unknown=1", content=b"no json")
    assert_challenged(response, guarded_service.api.base_url)


async def test_the_host_header_opens_nothing(guarded_service: GuardedService) -> None:
    for host in ("localhost/health", "health", "localhost?/health"):
        assert (await guarded_service.get("/zones", None, Host=host)).status_code == 401


async def test_a_body_too_large_is_refused_before_the_token_is_looked_at(database_url: str, issuer: Issuer) -> None:
    async with open_guarded_service(database_url, issuer, max_request_body_size_bytes=10) as guarded_service:
        large = await guarded_service.api.request("POST", "/zones", content=b"x" * 11)
        assert (large.status_code, large.json()["code"]) == (413, "RequestTooLargeError")


@pytest.mark.parametrize("shape", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}", "Bearer\t{}"])
async def test_a_bearer_token_is_taken_however_it_is_spaced(guarded_service: GuardedService, shape: str) -> None:
    me = await guarded_service.get("/me", shape.format(guarded_service.issuer.token()))
    assert (me.status_code, me.json()["principal_id"]) == (200, MIRA)


@pytest.mark.parametrize("shape", ["", "Bearer", "Basic bWlyYTo3Nw==", "{}", "Token {}", "Bearer {} {}", "Bearer,{}"])
async def test_any_other_header_is_malformed(guarded_service: GuardedService, shape: str) -> None:
    token = guarded_service.issuer.token()
    response = await guarded_service.get("/zones", shape.format(token, token))
    assert_challenged(response, guarded_service.api.base_url, TokenFault.MALFORMED)
    assert token not in response.text


Forged = Callable[[Issuer], str]
FAULTS: list[tuple[TokenFault, Forged]] = [
    (TokenFault.BAD_SIGNATURE, lambda issuer: issuer.token(key=forger_of(issuer))),
    (TokenFault.EXPIRED, lambda issuer: issuer.token(exp=int(time.time()) - 60)),
    (TokenFault.NOT_YET_VALID, lambda issuer: issuer.token(nbf=int(time.time()) + 300)),
    (TokenFault.WRONG_AUDIENCE, lambda issuer: issuer.token(audience="https://elsewhere.example.org")),
    (TokenFault.WRONG_AUDIENCE, lambda issuer: issuer.token(audience=MCP_AUDIENCE)),
    (TokenFault.WRONG_ISSUER, lambda issuer: issuer.token(iss="https://elsewhere.example.org")),
    (TokenFault.WRONG_ISSUER, lambda issuer: issuer.token(iss=f"{issuer.url}/")),
    (TokenFault.MALFORMED, lambda issuer: "one-part"),
    (TokenFault.MALFORMED, lambda issuer: "a.b.c"),
    (TokenFault.MALFORMED, lambda issuer: issuer.token() + "x" * 8192),
    (TokenFault.MALFORMED, lambda issuer: issuer.token(sub=None)),
    (TokenFault.MALFORMED, lambda issuer: issuer.token(iat=None)),
    (TokenFault.NOT_ACCESS_TOKEN_TYPE, lambda issuer: issuer.token(header={"typ": "JWT"})),
    (TokenFault.UNKNOWN_SUBJECT, lambda issuer: issuer.token("stranger")),
    (TokenFault.UNSUPPORTED_ALGORITHM, lambda issuer: issuer.token(header={"alg": "HS256"})),
    (TokenFault.UNSUPPORTED_ALGORITHM, lambda issuer: issuer.token(header={"alg": "none"})),
]


def forger_of(issuer: Issuer) -> SigningKey:
    """Another key that claims the published id."""
    return SigningKey(issuer.key.key_id, SigningKey.elliptic().private, issuer.key.algorithm)


@pytest.mark.parametrize(("fault", "forged"), FAULTS, ids=[f"{number}-{fault}" for number, (fault, _) in enumerate(FAULTS)])
async def test_a_token_that_is_not_good_is_refused_with_its_reason(
    guarded_service: GuardedService, fault: TokenFault, forged: Forged
) -> None:
    token = forged(guarded_service.issuer)
    response = await guarded_service.get("/zones", f"Bearer {token}")
    assert_challenged(response, guarded_service.api.base_url, fault)
    assert token not in response.text + str(response.headers)


async def test_a_token_for_one_surface_is_refused_on_the_other(guarded_service: GuardedService) -> None:
    rest, mcp = (f"Bearer {guarded_service.issuer.token(audience=audience)}" for audience in (HTTP_AUDIENCE, MCP_AUDIENCE))
    assert (await guarded_service.get("/me", rest)).status_code == 200
    assert (await guarded_service.get("/me", mcp)).json()["reason"] == "wrong_audience"
    assert (await send_frame(guarded_service.api, "tools/list", Authorization=mcp)).status_code == 200
    assert (await send_frame(guarded_service.api, "tools/list", Authorization=rest)).json()["reason"] == "wrong_audience"
    either = f"Bearer {guarded_service.issuer.token(audience=[HTTP_AUDIENCE, MCP_AUDIENCE])}"
    assert (await guarded_service.get("/me", either)).json()["surface_id"] == SYSTEM_HTTP
    assert (await send_frame(guarded_service.api, "tools/list", Authorization=either)).status_code == 200


async def test_a_surface_without_an_audience_takes_no_token(database_url: str, issuer: Issuer) -> None:
    provider = issuer.provider(audiences={UUID(SYSTEM_HTTP): HTTP_AUDIENCE})
    async with open_guarded_service(database_url, issuer, provider) as guarded_service:
        response = await send_frame(
            guarded_service.api, "tools/list", Authorization=f"Bearer {issuer.token(audience=MCP_AUDIENCE)}"
        )
        assert (response.status_code, response.json()["reason"]) == (401, "wrong_audience")


async def test_nobody_claims_to_be_somebody_where_tokens_are_asked_for(guarded_service: GuardedService) -> None:
    other = str(uuid4())
    assert_challenged(await guarded_service.get("/me", None, X_Principal_Id=other), guarded_service.api.base_url)
    assert (await guarded_service.me(X_Principal_Id=other)).json()["principal_id"] == MIRA
    assert (await guarded_service.me(X_Principal_Id="no uuid")).json()["principal_id"] == MIRA


async def test_without_a_provider_a_client_says_who_it_is(api: Api) -> None:
    assert (await api.get("/me")).json()["principal_id"] == NIL
    person = str(uuid4())
    zone = await api.acting_as(person).create("/zones", {"name": "Hall"})
    assert (await api.get(f"/zones/{zone}/history")).json()["items"][0]["principal_id"] == person


async def test_a_missing_provider_locks_everybody_out_where_tokens_are_required(database_url: str) -> None:
    async with running_api(database_url, require_authenticated_principal=True) as api:
        for headers in ({}, {"X-Principal-Id": MIRA}):
            assert_challenged(await api.request("GET", "/me", headers=headers), api.base_url)
        refused = await api.request("GET", "/me", headers={"Authorization": "Bearer a.b.c"})
        assert refused.status_code == 401


async def test_a_provider_that_is_down_is_no_fault_of_the_token(database_url: str) -> None:
    with Issuer.running_server() as issuer:
        asked = issuer.asked_provider(issuer="https://asked.example.org")
        async with open_guarded_service(database_url, issuer, issuer.provider(), asked) as guarded_service:
            tokens = {"KeySetUnavailableError": issuer.token(), "IntrospectionUnavailableError": issuer.opaque_token()}
            issuer.stop()
            for code, token in tokens.items():
                response = await guarded_service.get("/zones", f"Bearer {token}")
                assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
                assert response.json()["code"] == code
                assert str(issuer.port) not in response.text
                assert "asked.example.org" not in response.text
                assert "WWW-Authenticate" not in response.headers
            issuer.start()


async def test_a_token_without_content_is_asked_about(database_url: str) -> None:
    with Issuer.running_server() as issuer:
        asked = issuer.asked_provider(subject_bindings=[{"subject": "mira-77", "actor_id": MIRA}])
        async with open_guarded_service(database_url, issuer, asked) as guarded_service:
            good = await guarded_service.get("/me", f"Bearer {issuer.opaque_token()}")
            assert good.json()["principal_id"] == MIRA
            bad = await guarded_service.get("/me", f"Bearer {issuer.opaque_token(active=False)}")
            assert_challenged(bad, guarded_service.api.base_url, TokenFault.INTROSPECTION_INACTIVE)


async def test_the_metadata_document_says_where_tokens_come_from(guarded_service: GuardedService) -> None:
    for path, resource in ((METADATA, ""), (f"{METADATA}/mcp", "/mcp")):
        response = await guarded_service.get(path, None)
        assert response.json() == {
            "resource": guarded_service.api.base_url + resource,
            "authorization_servers": [guarded_service.issuer.url],
            "bearer_methods_supported": ["header"],
            "aud_values_supported": [HTTP_AUDIENCE, MCP_AUDIENCE],
            "surface_audiences": {"HTTP": HTTP_AUDIENCE, "MCP_STREAMABLE_HTTP": MCP_AUDIENCE},
        }
        assert response.headers["Cache-Control"] == "no-store"


PROXIED = {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "baton.example.org"}


async def test_addresses_are_those_the_client_knows(database_url: str, guarded_service: GuardedService) -> None:
    async with open_guarded_service(
        database_url, guarded_service.issuer, public_base_url="https://facility.example.org/baton/"
    ) as known:
        described = await known.get(METADATA, None, **PROXIED)
        assert described.json()["resource"] == "https://facility.example.org/baton"
        assert described.headers["Cache-Control"] == "public, max-age=300"
        assert_challenged(await known.get("/zones", None, **PROXIED), "https://facility.example.org/baton")


@pytest.mark.parametrize("proxies", [["127.0.0.0/8"], ["10.0.0.0/8", "127.0.0.1"]])
async def test_trusted_proxies_say_what_the_client_knows(
    database_url: str, guarded_service: GuardedService, proxies: list[str]
) -> None:
    async with open_guarded_service(database_url, guarded_service.issuer, trusted_proxies=proxies) as proxied:
        assert (await proxied.get(METADATA, None, **PROXIED)).json()["resource"] == "https://baton.example.org"
        assert_challenged(await proxied.get("/zones", None, **PROXIED), "https://baton.example.org")
        odd = {**PROXIED, "X_Forwarded_Proto": "javascript"}
        assert (await proxied.get(METADATA, None, **odd)).json()["resource"] == "http://baton.example.org"


@pytest.mark.parametrize("proxies", [[], ["10.0.0.0/8"]])
async def test_nobody_else_says_what_the_client_knows(
    database_url: str, guarded_service: GuardedService, proxies: list[str]
) -> None:
    async with open_guarded_service(database_url, guarded_service.issuer, trusted_proxies=proxies) as direct:
        for forwarded in (PROXIED, {**PROXIED, "X_Forwarded_For": "10.0.0.7"}):
            assert (await direct.get(METADATA, None, **forwarded)).json()["resource"] == direct.api.base_url
            assert_challenged(await direct.get("/zones", None, **forwarded), direct.api.base_url)


async def test_a_header_cannot_smuggle_anything_into_the_challenge(guarded_service: GuardedService) -> None:
    response = await guarded_service.get("/zones", None, X_Forwarded_Host='evil", error="none', X_Forwarded_Proto="https\\")
    challenge = response.headers["WWW-Authenticate"]
    assert challenge.count('"') == 4
    assert "\\" not in challenge


async def test_a_binding_counts_from_the_next_call_until_it_is_gone(guarded_service: GuardedService) -> None:
    mira = guarded_service.as_subject("mira-77")
    noor = await mira.create("/actors", {"name": "Noor", "kind": "service_account"})
    pair = {"issuer": guarded_service.issuer.url, "subject": "noor-9"}
    bindings = f"/actors/{noor}/subject-bindings"
    assert (await guarded_service.me("noor-9")).json()["reason"] == "unknown_subject"
    await mira.execute(f"{bindings}/add", pair)
    me = (await guarded_service.me("noor-9")).json()
    assert (me["principal_id"], me["kind"], me["name"]) == (noor, "service_account", "Noor")
    again = await mira.post(f"{bindings}/add", pair)
    assert (again.status_code, again.json()["reason"]) == (409, "already_bound")
    for other in ("Noor-9", "noor-9 ", " noor-9"):
        assert (await guarded_service.me(other)).json()["reason"] == "unknown_subject"
    await mira.execute(f"{bindings}/remove", pair)
    assert (await guarded_service.me("noor-9")).json()["reason"] == "unknown_subject"
    await mira.execute(f"{bindings}/add", pair)
    assert (await guarded_service.me("noor-9")).status_code == 200
    assert (await mira.request("DELETE", f"/actors/{noor}/profile")).status_code == 204
    assert (await guarded_service.me("noor-9")).json()["reason"] == "unknown_subject"
    late = await mira.post(f"{bindings}/add", pair)
    assert (late.status_code, late.json()["reason"]) == (409, "profile_forgotten")


async def test_a_configured_binding_is_nobodys_to_give_or_take(guarded_service: GuardedService) -> None:
    mira = guarded_service.as_subject("mira-77")
    actor = await mira.create("/actors", {"name": "Somebody"})
    pair = {"issuer": guarded_service.issuer.url, "subject": "mira-77"}
    taken = await mira.post(f"/actors/{actor}/subject-bindings/add", pair)
    assert (taken.status_code, taken.json()["reason"]) == (409, "already_bound")
    kept = await mira.post(f"/actors/{actor}/subject-bindings/remove", pair)
    assert (kept.status_code, kept.json()["reason"]) == (409, "not_bound")
    stranger = await mira.post(f"/actors/{actor}/subject-bindings/add", {**pair, "issuer": "https://elsewhere.example"})
    assert (stranger.status_code, stranger.json()["code"]) == (400, "InvalidActorSubjectError")
    assert (await guarded_service.me()).json()["principal_id"] == MIRA


async def test_bindings_that_cannot_be_read_let_nobody_in(database_url: str, issuer: Issuer) -> None:
    async with open_guarded_service(database_url, issuer) as guarded_service:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute("ALTER TABLE access_subject_binding RENAME TO mislaid")
        failed = await guarded_service.me("noor-9")
        assert (failed.status_code, failed.json()["code"]) == (500, "InternalError")
        assert (await guarded_service.me()).status_code == 200


async def test_a_database_that_is_away_is_no_fault_of_the_token(
    database_url: str, issuer: Issuer, postgres: EmbeddedPostgres
) -> None:
    async with open_guarded_service(database_url, issuer) as guarded_service:
        assert (await guarded_service.me("noor-9")).json()["reason"] == "unknown_subject"
        async with outage(postgres, database_url.partition("?")[0].rsplit("/", 1)[1]):
            unsure = await guarded_service.me("noor-9")
        assert (unsure.status_code, unsure.json()["code"]) == (503, "StoreUnavailableError")
        assert unsure.headers["Retry-After"] == "5"


async def test_me_says_who_i_am_and_what_i_may_do(database_url: str, issuer: Issuer) -> None:
    settings = {"authorization_mode": "policy", "bootstrap_principal_id": MIRA}
    async with open_guarded_service(database_url, issuer, **settings) as guarded_service:
        admin = guarded_service.as_subject("mira-77")
        me, verbs = (await admin.get("/me")).json(), sorted(BOOTSTRAP_COMMANDS)
        (policy,) = me.pop("policies")
        assert (policy["commands"], policy["through_group_ids"], policy["with_approval"]) == (verbs, [], False)
        assert me == {
            "principal_id": MIRA,
            "kind": "human",
            "name": "Bootstrap administrator",
            "surface_id": SYSTEM_HTTP,
            "permitted_commands": verbs,
            "commands_with_approval": [],
            "groups": [],
            "enforced": True,
            "remark": None,
        }
        grant = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [MIRA]}
        verbs = ["BindActorSubject", "DeactivateActor", "ForgetActor", "ListZones"]
        await admin.create("/policies", {"name": "More", **grant, "permitted_commands": verbs})
        noor = await admin.create("/actors", {"name": "Noor"})
        await admin.execute(f"/actors/{noor}/subject-bindings/add", {"issuer": issuer.url, "subject": "noor-9"})
        mine = {**grant, "permitted_principal_ids": [noor]}
        await admin.create("/policies", {"name": "Noor's", **mine, "permitted_commands": ["ListZones"]})
        person = guarded_service.as_subject("noor-9")
        assert (await person.get("/me")).json()["permitted_commands"] == ["ListZones"]
        assert (await person.get("/zones")).status_code == 200
        await admin.execute(f"/actors/{noor}/deactivate")
        assert (await person.get("/me")).json()["permitted_commands"] == []
        refused = await person.get("/zones")
        assert (refused.status_code, refused.json()["reason"]) == (403, "principal_deactivated")


async def test_a_person_without_an_actor_is_somebody_all_the_same(guarded_service: GuardedService) -> None:
    me = (await guarded_service.me()).json()
    assert (me["principal_id"], me["kind"], me["name"]) == (MIRA, None, "not registered")
    beyond_reach = REGISTRY.command_names() - set(me["permitted_commands"])
    for_agents = {"RecordAgentDecision", "RequestDecisionDebrief"}
    for_accounts = {"ObserveEnclosureStatus", "ObserveSupplyStatus", "WitnessRun", "WitnessRunChange"}
    assert beyond_reach == for_agents | for_accounts, "what agents, monitors and witnesses alone can call"


async def test_a_live_stream_ends_with_its_token(guarded_service: GuardedService) -> None:
    brief = guarded_service.as_subject("mira-77", exp=int(time.time()) + 5)
    async with open_feed(brief) as reader, asyncio.timeout(60):
        assert [line async for line in reader.lines]
    assert (await brief.get("/events")).status_code == 200, "clocks are left 30 s, live streams are not"
