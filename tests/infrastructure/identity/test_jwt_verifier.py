"""Tokens that carry their own proof: what is refused and why, and how the issuer's keys are kept."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from baton.domain.access.actor import ActorKind
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP
from baton.infrastructure.identity import FETCH_PAUSE, TIMEOUTS, ProviderRegistry, ProviderUnreachableError, key_table
from tests.infrastructure.identity.conftest import MIRA, Registries, SettableClock
from tests.support.domain.world import expect_refusal
from tests.support.infrastructure.identity_provider import (
    HTTP_AUDIENCE,
    MCP_AUDIENCE,
    Issuer,
    SigningKey,
    base64url,
    dripping_answer,
    encode_part,
    wait_until,
)


def from_now(seconds: int) -> int:
    return int(time.time()) + seconds


async def until(reached: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, reached)


async def test_a_genuine_token_stands_for_its_actor(registry: ProviderRegistry, issuer: Issuer) -> None:
    expiry = from_now(300)
    principal = await registry.authenticate(issuer.token(exp=expiry, scope="runs:read runs:hold"), SYSTEM_HTTP)
    assert (principal.principal_id, principal.kind) == (MIRA, ActorKind.HUMAN)
    assert (principal.issuer, principal.subject) == (issuer.url, "mira-77")
    assert principal.scopes == {"runs:read", "runs:hold"}
    assert principal.expires_at == datetime.fromtimestamp(expiry, UTC)


async def test_a_principal_does_not_show_its_subject(registry: ProviderRegistry, issuer: Issuer) -> None:
    assert "mira-77" not in repr(await registry.authenticate(issuer.token(), SYSTEM_HTTP))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another service's audience": ({"audience": "https://other.example.org"}, "wrong_audience"),
    "an audience that only begins alike": ({"audience": HTTP_AUDIENCE + "/"}, "wrong_audience"),
    "an audience that is no text": ({"audience": [HTTP_AUDIENCE, 7]}, "wrong_audience"),
    "expired beyond the leeway": ({"exp": -40}, "expired"),
    "not before a later time": ({"nbf": 40}, "not_yet_valid"),
    "issued in the future": ({"iat": 40}, "not_yet_valid"),
    "no expiry": ({"exp": None}, "malformed"),
    "no time of issue": ({"iat": None}, "malformed"),
    "no audience": ({"audience": None}, "malformed"),
    "no subject": ({"sub": None}, "malformed"),
    "an empty subject": ({"sub": ""}, "malformed"),
    "a subject that is no text": ({"sub": 77}, "malformed"),
    "no issuer": ({"iss": None}, "malformed"),
    "an issuer that is no text": ({"iss": 1}, "malformed"),
    "an expiry beyond all calendars": ({"exp": 10**15}, "malformed"),
    "an expiry that is no number": ({"exp": "soon"}, "malformed"),
    "a critical extension nobody knows": ({"header": {"crit": ["mood"], "mood": 1}}, "malformed"),
    "a key id that is no text": ({"header": {"kid": 7}}, "malformed"),
    "no algorithm": ({"header": {"alg": None}}, "unsupported_algorithm"),
    "an algorithm of another family": ({"header": {"alg": "RS256"}}, "bad_signature"),
    "an algorithm that was not allowed": ({"header": {"alg": "ES384"}}, "unsupported_algorithm"),
    "an algorithm that is no text": ({"header": {"alg": ["ES256"]}}, "unsupported_algorithm"),
}
TIMES = ("exp", "nbf", "iat")


@pytest.mark.parametrize("case", REFUSED)
async def test_a_signed_token_is_refused_for(case: str, registry: ProviderRegistry, issuer: Issuer) -> None:
    changes, reason = REFUSED[case]
    claims = {
        name: from_now(value) if name in TIMES and type(value) is int and value < 10**6 else value
        for name, value in changes.items()
    }
    with expect_refusal("InvalidTokenError", reason):
        await registry.authenticate(issuer.token(**claims), SYSTEM_HTTP)


@pytest.mark.parametrize(
    "claims", [{"exp": -20}, {"nbf": 20}, {"iat": 20}, {"nbf": -5}], ids=["exp -20", "nbf +20", "iat +20", "nbf -5"]
)
async def test_clocks_may_differ_by_half_a_minute(
    claims: dict[str, int], registry: ProviderRegistry, issuer: Issuer
) -> None:
    token = issuer.token(**{name: from_now(offset) for name, offset in claims.items()})
    assert (await registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA


async def test_one_of_several_audiences_is_enough(registry: ProviderRegistry, issuer: Issuer) -> None:
    token = issuer.token(audience=["https://other.example.org", HTTP_AUDIENCE])
    assert (await registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA


async def test_a_token_for_one_surface_is_refused_on_another(registry: ProviderRegistry, issuer: Issuer) -> None:
    for audience, own, other in (
        (HTTP_AUDIENCE, SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP),
        (MCP_AUDIENCE, SYSTEM_MCP_STREAMABLE_HTTP, SYSTEM_HTTP),
    ):
        token = issuer.token(audience=audience)
        assert (await registry.authenticate(token, own)).principal_id == MIRA
        with expect_refusal("InvalidTokenError", "wrong_audience"):
            await registry.authenticate(token, other)


async def test_a_surface_without_an_audience_accepts_no_token_and_asks_nobody(
    registry: ProviderRegistry, issuer: Issuer
) -> None:
    with expect_refusal("InvalidTokenError", "wrong_audience"):
        await registry.authenticate(issuer.token(), SYSTEM_MCP_STDIO)
    assert issuer.key_set_requests == 0


@pytest.mark.parametrize("claimed", ["https://elsewhere.example.org", "slash"])
async def test_an_issuer_matches_exactly_or_not_at_all(claimed: str, registry: ProviderRegistry, issuer: Issuer) -> None:
    with expect_refusal("InvalidTokenError", "wrong_issuer"):
        await registry.authenticate(issuer.token(iss=f"{issuer.url}/" if claimed == "slash" else claimed), SYSTEM_HTTP)
    assert issuer.key_set_requests == 0


@pytest.mark.parametrize(
    ("kind", "strictly", "leniently"),
    [
        ("at+jwt", True, True),
        ("AT+JWT", True, True),
        ("application/at+jwt", True, True),
        ("JWT", False, True),
        ("jwt", False, True),
        (None, False, True),
        ("id+jwt", False, False),
        ("", False, False),
        (["at+jwt"], False, False),
    ],
)
async def test_the_type_tells_access_tokens_from_others(
    kind: Any, strictly: bool, leniently: bool, registries: Registries, issuer: Issuer
) -> None:
    for required, accepted in ((True, strictly), (False, leniently)):
        registry = registries(issuer.provider(require_access_token_type=required))
        token = issuer.token(header={"typ": kind})
        if accepted:
            assert (await registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA
        else:
            with expect_refusal("InvalidTokenError", "not_access_token_type") as refused:
                await registry.authenticate(token, SYSTEM_HTTP)
            assert ("require_access_token_type" in refused.value.detail) is leniently
            assert ("typ JWT" in refused.value.detail) is (kind == "JWT")


async def test_an_unsigned_token_is_refused_without_asking_for_keys(registry: ProviderRegistry, issuer: Issuer) -> None:
    _, payload, _ = issuer.token().split(".")
    for spelling in ("none", "None", "NONE"):
        with expect_refusal("InvalidTokenError", "unsupported_algorithm"):
            await registry.authenticate(f"{encode_part({'typ': 'at+jwt', 'alg': spelling})}.{payload}.", SYSTEM_HTTP)
    assert issuer.key_set_requests == 0


async def test_a_published_key_is_no_shared_secret(registry: ProviderRegistry, issuer: Issuer) -> None:
    public = issuer.key.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _, payload, _ = issuer.token().split(".")
    signing_input = f"{encode_part({'typ': 'at+jwt', 'alg': 'HS256', 'kid': issuer.key.key_id})}.{payload}"
    signature = base64url(hmac.new(public, signing_input.encode(), hashlib.sha256).digest())
    with expect_refusal("InvalidTokenError", "unsupported_algorithm"):
        await registry.authenticate(f"{signing_input}.{signature}", SYSTEM_HTTP)


async def test_a_changed_token_has_a_bad_signature(registry: ProviderRegistry, issuer: Issuer) -> None:
    header, _, signature = issuer.token("mira-77").split(".")
    _, payload, _ = issuer.token("someone-else").split(".")
    with expect_refusal("InvalidTokenError", "bad_signature"):
        await registry.authenticate(f"{header}.{payload}.{signature}", SYSTEM_HTTP)


async def test_a_foreign_key_under_a_known_id_has_a_bad_signature(registry: ProviderRegistry, issuer: Issuer) -> None:
    forger = SigningKey(issuer.key.key_id, SigningKey.elliptic().private, "ES256")
    with expect_refusal("InvalidTokenError", "bad_signature"):
        await registry.authenticate(issuer.token(key=forger), SYSTEM_HTTP)


async def test_a_token_without_key_id_is_verified_by_the_only_key_there_is(registries: Registries, issuer: Issuer) -> None:
    token = issuer.token(header={"kid": None})
    assert (await registries(issuer.provider()).authenticate(token, SYSTEM_HTTP)).principal_id == MIRA
    issuer.published.append(SigningKey.elliptic())
    with expect_refusal("InvalidTokenError", "bad_signature"):
        await registries(issuer.provider()).authenticate(token, SYSTEM_HTTP)


async def test_rsa_keys_verify_too_unless_they_are_weak(registries: Registries, issuer: Issuer) -> None:
    strong = SigningKey.rsa()
    for key, accepted in ((strong, True), (replace(strong, algorithm="PS256"), True), (SigningKey.rsa(bits=1024), False)):
        issuer.published = [key]
        registry = registries(issuer.provider(allowed_algorithms=[key.algorithm]))
        if accepted:
            assert (await registry.authenticate(issuer.token(key=key), SYSTEM_HTTP)).principal_id == MIRA
        else:
            with expect_refusal("InvalidTokenError", "bad_signature"):
                await registry.authenticate(issuer.token(key=key), SYSTEM_HTTP)


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, set()),
        ({"scope": "a b  c"}, {"a", "b", "c"}),
        ({"scp": "a b"}, {"a", "b"}),
        ({"scp": ["a", "b", 3]}, {"a", "b"}),
        ({"scope": {"a": 1}}, set()),
    ],
)
async def test_scopes_are_carried(
    claims: dict[str, Any], scopes: set[str], registry: ProviderRegistry, issuer: Issuer
) -> None:
    assert (await registry.authenticate(issuer.token(**claims), SYSTEM_HTTP)).scopes == scopes


async def test_keys_are_kept_for_five_minutes(registry: ProviderRegistry, issuer: Issuer, clock: SettableClock) -> None:
    for seconds, requests in ((0, 1), (299, 1), (1, 2), (10, 2)):
        clock.advance(seconds)
        await registry.authenticate(issuer.token(), SYSTEM_HTTP)
        assert issuer.key_set_requests == requests


async def test_a_withdrawn_key_stops_counting_when_the_keys_are_fetched_again(
    registry: ProviderRegistry, issuer: Issuer, clock: SettableClock
) -> None:
    withdrawn = issuer.key
    await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    issuer.rotate()
    assert (await registry.authenticate(issuer.token(key=withdrawn), SYSTEM_HTTP)).principal_id == MIRA
    clock.advance(300)
    with expect_refusal("InvalidTokenError", "bad_signature"):
        await registry.authenticate(issuer.token(key=withdrawn), SYSTEM_HTTP)


async def test_after_a_rotation_one_refetch_finds_the_new_key(registry: ProviderRegistry, issuer: Issuer) -> None:
    await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    for rotation in (1, 2):
        issuer.rotate()
        for _ in range(3):
            assert (await registry.authenticate(issuer.token(), SYSTEM_HTTP)).principal_id == MIRA
        assert issuer.key_set_requests == 1 + rotation


async def test_a_key_id_nobody_publishes_is_a_bad_signature_after_one_refetch(
    registry: ProviderRegistry, issuer: Issuer
) -> None:
    await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    with expect_refusal("InvalidTokenError", "bad_signature"):
        await registry.authenticate(issuer.token(key=SigningKey.elliptic()), SYSTEM_HTTP)
    assert issuer.key_set_requests == 2


async def test_a_first_token_with_an_unknown_key_id_costs_one_fetch(registry: ProviderRegistry, issuer: Issuer) -> None:
    with expect_refusal("InvalidTokenError", "bad_signature"):
        await registry.authenticate(issuer.token(key=SigningKey.elliptic()), SYSTEM_HTTP)
    assert issuer.key_set_requests == 1


async def test_made_up_key_ids_do_not_turn_the_service_against_its_issuer(
    registry: ProviderRegistry, issuer: Issuer
) -> None:
    forged = [issuer.token(key=SigningKey.elliptic()) for _ in range(30)]
    outcomes = await asyncio.gather(*(registry.authenticate(token, SYSTEM_HTTP) for token in forged), return_exceptions=True)
    assert {getattr(outcome, "reason", outcome) for outcome in outcomes} == {"bad_signature"}
    assert issuer.key_set_requests == 1


async def test_an_issuer_is_asked_for_its_keys_only_so_often(registry: ProviderRegistry, issuer: Issuer) -> None:
    began = time.monotonic()
    for _ in range(3):
        with expect_refusal("InvalidTokenError", "bad_signature"):
            await registry.authenticate(issuer.token(key=SigningKey.elliptic()), SYSTEM_HTTP)
    assert time.monotonic() - began >= 2 * FETCH_PAUSE
    assert issuer.key_set_requests == 3


async def test_many_callers_share_one_fetch_and_a_silent_issuer_holds_up_nobody_else(
    registries: Registries, issuer: Issuer
) -> None:
    registry = registries(issuer.provider())
    known = issuer.token()
    await registry.authenticate(known, SYSTEM_HTTP)
    issuer.silence()
    issuer.rotate()
    waiting = [asyncio.create_task(registry.authenticate(issuer.token(), SYSTEM_HTTP)) for _ in range(20)]
    await until(lambda: issuer.key_set_requests == 2)
    assert (await registry.authenticate(known, SYSTEM_HTTP)).principal_id == MIRA
    assert not any(task.done() for task in waiting)
    issuer.speak()
    assert {principal.principal_id for principal in await asyncio.gather(*waiting)} == {MIRA}
    assert issuer.key_set_requests == 2


async def test_a_caller_who_gives_up_does_not_spoil_the_fetch_for_others(registry: ProviderRegistry, issuer: Issuer) -> None:
    issuer.silence()
    first, second = (asyncio.create_task(registry.authenticate(issuer.token(), SYSTEM_HTTP)) for _ in range(2))
    await until(lambda: issuer.key_set_requests == 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    issuer.speak()
    assert (await second).principal_id == MIRA
    assert issuer.key_set_requests == 1


async def test_while_the_issuer_is_down_known_keys_count_and_unknown_ones_are_unavailable(
    registries: Registries, clock: SettableClock
) -> None:
    with Issuer.running_server() as fleeting:
        registry = registries(fleeting.provider(subject_bindings=[{"subject": "mira-77", "actor_id": MIRA}]))
        await registry.authenticate(fleeting.token(), SYSTEM_HTTP)
        fleeting.stop()
        assert (await registry.authenticate(fleeting.token(), SYSTEM_HTTP)).principal_id == MIRA
        with expect_refusal("KeySetUnavailableError") as caught:
            await registry.authenticate(fleeting.token(key=SigningKey.elliptic()), SYSTEM_HTTP)
        assert (caught.value.status, caught.value.retry_after) == (503, 5)
        assert fleeting.url not in caught.value.detail
        clock.advance(301)
        with expect_refusal("KeySetUnavailableError"):
            await registry.authenticate(fleeting.token(), SYSTEM_HTTP)
        fleeting.start()
        assert (await registry.authenticate(fleeting.token(), SYSTEM_HTTP)).principal_id == MIRA


WRONG_ANSWERS: dict[str, Response] = {
    "an error": PlainTextResponse("sorry", 500),
    "a page not found": PlainTextResponse("sorry", 404),
    "a redirect to its keys": RedirectResponse("/moved/keys"),
    "a web page": PlainTextResponse("<html></html>"),
    "a list": JSONResponse([]),
    "an object without keys": JSONResponse({"keys": "none"}),
    "JSON nested beyond reason": PlainTextResponse("[" * 100_000),
    "an answer beyond reason": JSONResponse({"keys": [], "padding": " " * 2_000_000}),
}


@pytest.mark.parametrize("case", WRONG_ANSWERS)
async def test_a_key_set_is_unavailable_when_its_issuer_answers_with(
    case: str, registry: ProviderRegistry, issuer: Issuer
) -> None:
    issuer.instead = WRONG_ANSWERS[case]
    with expect_refusal("KeySetUnavailableError"):
        await registry.authenticate(issuer.token(), SYSTEM_HTTP)
    issuer.instead = None
    assert (await registry.authenticate(issuer.token(), SYSTEM_HTTP)).principal_id == MIRA


async def test_an_issuer_that_does_not_answer_in_time_is_unavailable(
    impatient_registries: Registries, issuer: Issuer
) -> None:
    registry = impatient_registries(issuer.provider())
    issuer.silence()
    with expect_refusal("KeySetUnavailableError"):
        await registry.authenticate(issuer.token(), SYSTEM_HTTP)


async def test_an_answer_that_never_ends_is_none(impatient_registries: Registries, issuer: Issuer) -> None:
    registry = impatient_registries(issuer.provider())
    issuer.instead = dripping_answer()
    with expect_refusal("KeySetUnavailableError"):
        await registry.authenticate(issuer.token(), SYSTEM_HTTP)


def test_providers_get_the_promised_time_limits() -> None:
    assert TIMEOUTS.as_dict() == {"connect": 2, "read": 5, "write": 2, "pool": 2}


def test_keys_for_encryption_private_keys_and_unusable_ones_are_passed_over() -> None:
    good, other, leaked = SigningKey.elliptic().public_key(), SigningKey.elliptic().public_key(), SigningKey.elliptic()
    document = {
        "keys": [
            "no object",
            {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "short"},
            {**other, "use": "enc", "kid": "encryption"},
            {**other, "alg": "ES384", "kid": "another algorithm"},
            {**jwt.get_algorithm_by_name("ES256").to_jwk(leaked.private, as_dict=True), "kid": "private"},
            SigningKey("another curve", ec.generate_private_key(ec.SECP384R1()), "ES384").public_key(),
            good,
        ]
    }
    assert set(key_table(document, ["RS256", "ES256"])) == {(good["kid"], "ES256"), (None, "ES256")}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEY_MEMBERS = {
    "kty": st.sampled_from(["RSA", "EC", "OKP", "oct"]) | JSON,
    "crv": st.sampled_from(["P-256", "P-384", "Ed25519"]) | JSON,
    **{name: st.binary(max_size=70).map(base64url) | JSON for name in ("n", "e", "x", "y", "k")},
    **dict.fromkeys(("kid", "use", "alg", "key_ops"), JSON),
}


@given(st.fixed_dictionaries({}, optional={"keys": st.lists(st.fixed_dictionaries({}, optional=KEY_MEMBERS)) | JSON}))
def test_no_published_key_set_breaks_the_reader(document: dict[str, Any]) -> None:
    try:
        table = key_table(document, ["RS256", "PS384", "ES256", "ES512", "EdDSA"])
    except ProviderUnreachableError:
        assert not isinstance(document.get("keys"), list)
    else:
        assert all(algorithm in ("RS256", "PS384", "ES256", "ES512", "EdDSA") for _, algorithm in table)
