"""Which provider judges a token, which actor it stands for, and that no token breaks anything."""

import json
import socket
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from baton.application.identity import InvalidTokenError, ProviderUnavailable, TokenFault
from baton.application.ports import StoreUnavailableError
from baton.domain.access.actor import ActorKind
from baton.domain.access.identity_provider import ProviderFacts
from baton.domain.kernel import NIL
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP
from baton.infrastructure.identity import ProviderRegistry
from tests.infrastructure.identity.conftest import MIRA, BindingsInMemory, Registries
from tests.support.domain.world import expect_refusal
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer, base64url, encode_part

ROBOT = UUID("0197a100-0000-7000-8000-000000000002")
ELSEWHERE = "https://elsewhere.example.org"


async def test_a_token_that_names_its_issuer_is_judged_by_the_key_set_where_there_is_one(
    registries: Registries, issuer: Issuer
) -> None:
    introspection = issuer.asked_provider().model_dump(
        include={
            "introspection_url",
            "introspection_client_id",
            "introspection_client_secret",
            "allow_insecure_introspection_url",
        }
    )
    registry = registries(issuer.provider(**introspection))
    await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    assert (issuer.key_set_requests, issuer.introspections) == (1, [])
    await registry.authenticate(issuer.opaque_token(), SYSTEM_HTTP)
    assert (issuer.key_set_requests, len(issuer.introspections)) == (1, 1)


async def test_a_token_that_names_its_issuer_is_asked_about_where_there_is_no_key_set(
    registries: Registries, issuer: Issuer
) -> None:
    registry = registries(issuer.asked_provider())
    token = issuer.token()
    issuer.answers[token] = {"active": True, "sub": "mira-77"}
    assert (await registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA
    assert issuer.key_set_requests == 0


async def test_a_token_of_an_unknown_issuer_is_shown_to_nobody(registries: Registries, issuer: Issuer) -> None:
    registry = registries(issuer.asked_provider())
    with expect_refusal("InvalidTokenError", "wrong_issuer"):
        await registry.authenticate(issuer.token(iss=ELSEWHERE), SYSTEM_HTTP)
    assert issuer.introspections == []


async def test_an_opaque_token_is_malformed_where_nobody_can_be_asked(registry: ProviderRegistry) -> None:
    for token in ("opaque", "one.dot", "a.b.c.d.e"):
        with expect_refusal("InvalidTokenError", "malformed"):
            await registry.authenticate(token, SYSTEM_HTTP)


@pytest.mark.parametrize(
    "token",
    [
        "",
        " ",
        "a" * 8193,
        "two words",
        "line\nbreak",
        "nul\0",
        "tab\t",
        "escape\x1b[31m",
        "naïve",
        "\ud800",
        "=",
        "a=b",
        "..",
        "a.b.c",
        "!!.??.**",
        f"{encode_part({'alg': 'ES256'})}.{encode_part([])}.",
        f"{encode_part([])}.{encode_part({'iss': ELSEWHERE})}.",
        f"{encode_part({'alg': 'ES256'})}.{base64url(b'{')}.",
        f"{encode_part({'alg': 'ES256'})}.{base64url(b'[' * 3000)}.",
    ],
    ids=lambda token: ascii(token[:24]),
)
async def test_what_is_no_token_is_malformed_and_shown_to_nobody(token: str, registries: Registries, issuer: Issuer) -> None:
    registry = registries(issuer.asked_provider())
    with expect_refusal("InvalidTokenError", "malformed"):
        await registry.authenticate(token, SYSTEM_HTTP)
    assert issuer.introspections == []


async def test_the_longest_token_is_still_looked_at(registries: Registries, issuer: Issuer) -> None:
    token = "a" * 8192
    issuer.answers[token] = {"active": True, "sub": "mira-77"}
    assert (await registries(issuer.asked_provider()).authenticate(token, SYSTEM_HTTP)).principal_id == MIRA


@pytest.mark.parametrize(
    ("binding", "kind"),
    [({}, ActorKind.SERVICE_ACCOUNT), ({"kind": "agent"}, ActorKind.AGENT)],
    ids=["its provider's", "own"],
)
async def test_a_configured_binding_comes_before_a_stored_one_and_has_a_kind(
    binding: dict[str, str], kind: ActorKind, registries: Registries, issuer: Issuer, bindings: BindingsInMemory
) -> None:
    configured = {"subject": "mira-77", "actor_id": ROBOT, **binding}
    registry = registries(issuer.provider(principal_kind="service_account", subject_bindings=[configured]))
    bindings.failure = ConnectionError("the store is not asked")
    principal = await registry.authenticate(issuer.token("mira-77"), SYSTEM_HTTP)
    assert (principal.principal_id, principal.kind) == (ROBOT, kind)


async def test_a_stored_binding_has_the_kind_of_its_actor_and_counts_from_the_next_call_on(
    registry: ProviderRegistry, issuer: Issuer, bindings: BindingsInMemory
) -> None:
    token = issuer.token("scan-bridge-7")
    with expect_refusal("InvalidTokenError", "unknown_subject"):
        await registry.authenticate(token, SYSTEM_HTTP)
    bindings.rows[issuer.url, "scan-bridge-7"] = ROBOT, ActorKind.SERVICE_ACCOUNT
    principal = await registry.authenticate(token, SYSTEM_HTTP)
    assert (principal.principal_id, principal.kind) == (ROBOT, ActorKind.SERVICE_ACCOUNT)
    del bindings.rows[issuer.url, "scan-bridge-7"]
    with expect_refusal("InvalidTokenError", "unknown_subject"):
        await registry.authenticate(token, SYSTEM_HTTP)


@pytest.mark.parametrize("subject", ["Mira-77", " mira-77", "mira-77 ", "mira-7"])
async def test_a_subject_matches_exactly_or_not_at_all(subject: str, registry: ProviderRegistry, issuer: Issuer) -> None:
    with expect_refusal("InvalidTokenError", "unknown_subject"):
        await registry.authenticate(issuer.token(subject), SYSTEM_HTTP)


async def test_the_same_subject_of_another_issuer_is_somebody_else(
    registries: Registries, issuer: Issuer, bindings: BindingsInMemory
) -> None:
    bindings.rows = {(ELSEWHERE, "mira-77"): (MIRA, ActorKind.HUMAN)}
    elsewhere = issuer.provider(issuer=ELSEWHERE)
    with expect_refusal("InvalidTokenError", "unknown_subject"):
        await registries(issuer.provider(), elsewhere).authenticate(issuer.token(), SYSTEM_HTTP)


async def test_nobody_becomes_the_service_itself(
    registry: ProviderRegistry, issuer: Issuer, bindings: BindingsInMemory
) -> None:
    bindings.rows[issuer.url, "mira-77"] = NIL, ActorKind.HUMAN
    with expect_refusal("InvalidTokenError", "unknown_subject"):
        await registry.authenticate(issuer.token(), SYSTEM_HTTP)


async def test_a_failing_look_up_says_nothing_of_the_token(
    registry: ProviderRegistry, issuer: Issuer, bindings: BindingsInMemory
) -> None:
    bindings.failure = StoreUnavailableError("The database cannot be reached.")
    with capture_logs() as lines, pytest.raises(StoreUnavailableError):
        await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    assert lines == []


async def test_logs_and_refusals_repeat_nothing_of_the_token(
    registries: Registries, issuer: Issuer, bindings: BindingsInMemory
) -> None:
    registry = registries(issuer.provider())
    marked = {"header": {"kid": "MARKER-kid"}, "sub": "MARKER-sub", "iss": issuer.url, "jti": "MARKER-jti"}
    tokens = [issuer.token(**marked), issuer.token("MARKER-sub"), issuer.token(iss="https://MARKER"), "MARKER.MARKER"]
    issuer.instead = None
    with capture_logs() as lines:
        for token in tokens:
            with pytest.raises(InvalidTokenError) as caught:
                await registry.authenticate(token, SYSTEM_HTTP)
            assert "MARKER" not in f"{caught.value.detail}{caught.value.reason}{caught.value.facts}"
            assert token not in str(caught.value)
    assert "MARKER" not in str(lines)


async def test_an_unreachable_provider_is_named_in_the_log_alone(registries: Registries, issuer: Issuer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        unreachable = f"http://127.0.0.1:{taken.getsockname()[1]}/keys"
        registry = registries(issuer.provider(jwks_url=unreachable))
        with capture_logs() as lines, expect_refusal("KeySetUnavailableError") as caught:
            await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    assert [(line["event"], line["issuer"]) for line in lines] == [("key_set_unavailable", issuer.url)]
    assert issuer.url not in str(caught.value)


async def test_the_registry_tells_what_it_was_configured_with(registries: Registries, issuer: Issuer) -> None:
    binding = {"subject": "mira-77", "actor_id": MIRA}
    elsewhere = issuer.provider(issuer=ELSEWHERE, audiences={SYSTEM_HTTP: "baton"}, subject_bindings=[binding])
    registry = registries(issuer.provider(), elsewhere)
    assert registry.issuers() == tuple(sorted((issuer.url, ELSEWHERE)))
    assert registry.audiences() == {SYSTEM_HTTP: ("baton", HTTP_AUDIENCE), SYSTEM_MCP_STREAMABLE_HTTP: (MCP_AUDIENCE,)}
    assert await registry.identity_provider(ELSEWHERE, "mira-77") == ProviderFacts(known=True, bound=True)
    assert await registry.identity_provider(issuer.url, "mira-77") == ProviderFacts(known=True, bound=False)
    assert await registry.identity_provider(f"{ELSEWHERE}/", "mira-77") == ProviderFacts(known=False, bound=False)


def test_a_registry_is_not_made_of_providers_that_may_not_start(registries: Registries, issuer: Issuer) -> None:
    with pytest.raises(ValueError, match="no audiences"):
        registries(issuer.provider(audiences={}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "alg": st.sampled_from(["ES256", "RS256", "none", "HS256"]) | JSON,
        "typ": st.just("at+jwt") | JSON,
        "kid": st.text(max_size=20) | JSON,
        "crit": JSON,
        "b64": JSON,
    },
)
CLAIMS = st.fixed_dictionaries({}, optional=dict.fromkeys(("sub", "aud", "exp", "iat", "nbf", "jti", "scope", "scp"), JSON))
SIGNED_CLAIMS = {
    "subject": st.text(),
    "audience": st.just(HTTP_AUDIENCE) | JSON,
    **dict.fromkeys(("exp", "iat", "nbf", "jti", "scope", "scp"), JSON),
}


async def verdict_on(registry: ProviderRegistry, token: str) -> str:
    try:
        await registry.authenticate(token, SYSTEM_HTTP)
    except InvalidTokenError as refusal:
        return TokenFault(refusal.reason or "").value
    except ProviderUnavailable as refusal:
        return refusal.code
    return "accepted"


# The registry and its issuer are the same for every example on purpose; each example is one more call.
over_one_registry = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@over_one_registry
@given(token=st.text(st.characters(), max_size=60) | st.text("aA0.-_~+/=", max_size=60))
async def test_any_text_whatever_is_a_refused_token(token: str, registries: Registries, issuer: Issuer) -> None:
    registry = registries(issuer.provider(), issuer.asked_provider(issuer=ELSEWHERE))
    assert await verdict_on(registry, token) in ("malformed", "introspection_inactive", "wrong_issuer")


@over_one_registry
@given(header=HEADERS | JSON, claims=CLAIMS | JSON, signature=st.binary(max_size=80))
async def test_any_unsigned_content_whatever_is_refused(
    header: Any, claims: Any, signature: bytes, registry: ProviderRegistry, issuer: Issuer
) -> None:
    if isinstance(claims, dict):
        claims = {"iss": issuer.url, **claims}
    outcome = await verdict_on(registry, f"{encode_part(header)}.{encode_part(claims)}.{base64url(signature)}")
    assert outcome in ("malformed", "not_access_token_type", "unsupported_algorithm", "bad_signature", "wrong_issuer")


@over_one_registry
@given(claims=st.fixed_dictionaries({}, optional=SIGNED_CLAIMS))
async def test_any_signed_content_whatever_is_judged(
    claims: dict[str, Any], registry: ProviderRegistry, issuer: Issuer
) -> None:
    token = issuer.token(**claims)
    outcome = await verdict_on(registry, token)
    if len(token) <= 8192 and {"subject", "exp", "iat", "audience"}.isdisjoint(claims):
        assert outcome in ("accepted", "not_yet_valid", "malformed")
    else:
        assert outcome in {*(fault.value for fault in TokenFault), "accepted"} - {"bad_signature", "wrong_issuer"}


@over_one_registry
@given(answer=st.dictionaries(st.sampled_from(["active", "sub", "aud", "iss", "exp", "scope", "scp"]), JSON))
async def test_any_introspection_answer_whatever_is_judged(
    answer: dict[str, Any], registries: Registries, issuer: Issuer
) -> None:
    registry = registries(issuer.asked_provider())
    token = issuer.opaque_token()
    issuer.answers[token] = json.loads(json.dumps(answer, allow_nan=True), parse_constant=lambda _: None)
    assert await verdict_on(registry, token) in {*(fault.value for fault in TokenFault), "accepted"} - {"bad_signature"}
