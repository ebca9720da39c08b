"""Tokens that only their issuer can judge: what it is asked, what its answers lead to, and how long they are kept."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from baton.application.identity import VerifiedToken
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP
from baton.infrastructure.identity import CALLS_AT_ONCE, AcceptedTokens, ProviderRegistry
from tests.infrastructure.identity.conftest import MIRA, Registries, SettableClock
from tests.support.domain.world import expect_refusal
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer, dripping_answer

NOON = datetime(2026, 10, 6, 12, 0, tzinfo=UTC)


@pytest.fixture
def introspecting_registry(registries: Registries, issuer: Issuer) -> ProviderRegistry:
    return registries(issuer.asked_provider())


async def test_the_issuer_is_asked_as_the_standard_says(introspecting_registry: ProviderRegistry, issuer: Issuer) -> None:
    token = issuer.opaque_token(scope="runs:read")
    principal = await introspecting_registry.authenticate(token, SYSTEM_HTTP)
    assert issuer.introspections == [{"token": token, "token_type_hint": "access_token"}]
    assert (principal.principal_id, principal.issuer, principal.scopes) == (MIRA, issuer.url, {"runs:read"})
    assert principal.expires_at is None


@pytest.mark.parametrize(
    "answer",
    [
        *({}, {"aud": HTTP_AUDIENCE}, {"aud": ["x", HTTP_AUDIENCE]}, {"iss": "own"}, {"exp": -20}),
        *({"token_type": "Bearer"}, {"token_type": "access_token"}, {"typ": "Bearer"}, {"typ": "at+jwt"}),
        {"token_use": "access"},
    ],
    ids=[
        *("nothing more", "its audience", "its audience among others", "its issuer", "an expiry within the leeway"),
        *("a bearer token", "an access token", "Keycloak's type", "the standard's type", "Cognito's use"),
    ],
)
async def test_an_active_token_is_accepted_with(
    answer: dict[str, Any], introspecting_registry: ProviderRegistry, issuer: Issuer
) -> None:
    told = dict(answer)
    if "iss" in told:
        told["iss"] = issuer.url
    if "exp" in told:
        told["exp"] += int(time.time())
    assert (await introspecting_registry.authenticate(issuer.opaque_token(**told), SYSTEM_HTTP)).principal_id == MIRA


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"active": False}, "introspection_inactive"),
        ({"active": "true"}, "introspection_inactive"),
        ({"active": 1}, "introspection_inactive"),
        ({"active": None}, "introspection_inactive"),
        ({"aud": MCP_AUDIENCE}, "wrong_audience"),
        ({"aud": []}, "wrong_audience"),
        ({"aud": {HTTP_AUDIENCE: True}}, "wrong_audience"),
        ({"iss": "https://elsewhere.example.org"}, "wrong_issuer"),
        ({"iss": 7}, "wrong_issuer"),
        ({"sub": None}, "malformed"),
        ({"sub": 77}, "malformed"),
        ({"sub": "nobody-here"}, "unknown_subject"),
        ({"exp": 1}, "expired"),
        ({"exp": "soon"}, "malformed"),
        ({"exp": 10**15}, "malformed"),
        ({"nbf": 2**33}, "not_yet_valid"),
        ({"nbf": "soon"}, "malformed"),
        ({"token_type": "refresh_token"}, "not_access_token_type"),
        ({"token_type": "urn:ietf:params:oauth:token-type:id_token"}, "not_access_token_type"),
        ({"token_type": 7}, "not_access_token_type"),
        ({"typ": "Refresh"}, "not_access_token_type"),
        ({"typ": "ID"}, "not_access_token_type"),
        ({"token_use": "id"}, "not_access_token_type"),
    ],
)
async def test_a_token_is_refused_when_its_issuer_says(
    answer: dict[str, Any], reason: str, introspecting_registry: ProviderRegistry, issuer: Issuer
) -> None:
    token = issuer.opaque_token(**{"subject": answer.get("sub", "mira-77"), **answer})
    with expect_refusal("InvalidTokenError", reason):
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)


async def test_a_token_the_issuer_never_saw_is_inactive(introspecting_registry: ProviderRegistry) -> None:
    with expect_refusal("InvalidTokenError", "introspection_inactive"):
        await introspecting_registry.authenticate("made-up", SYSTEM_HTTP)


async def test_a_good_answer_is_kept_for_its_time(registries: Registries, issuer: Issuer, clock: SettableClock) -> None:
    introspecting_registry = registries(issuer.asked_provider(introspection_cache_ttl_seconds=5))
    token = issuer.opaque_token()
    for seconds, asked in ((0, 1), (4.9, 1), (0.1, 2), (1, 2)):
        clock.advance(seconds)
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)
        assert len(issuer.introspections) == asked


async def test_half_a_minute_is_the_usual_time(
    introspecting_registry: ProviderRegistry, issuer: Issuer, clock: SettableClock
) -> None:
    token = issuer.opaque_token()
    for seconds, asked in ((0, 1), (29, 1), (1, 2)):
        clock.advance(seconds)
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)
        assert len(issuer.introspections) == asked


async def test_no_answer_is_kept_past_the_tokens_expiry(
    introspecting_registry: ProviderRegistry, issuer: Issuer, clock: SettableClock
) -> None:
    token = issuer.opaque_token(exp=int(clock.now.timestamp()) + 10)
    await introspecting_registry.authenticate(token, SYSTEM_HTTP)
    clock.advance(11)
    issuer.answers[token] = {"active": False}
    with expect_refusal("InvalidTokenError", "introspection_inactive"):
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)


async def test_a_revoked_token_works_no_longer_than_the_kept_answer(
    introspecting_registry: ProviderRegistry, issuer: Issuer, clock: SettableClock
) -> None:
    token = issuer.opaque_token()
    await introspecting_registry.authenticate(token, SYSTEM_HTTP)
    issuer.answers[token] = {"active": False}
    assert (await introspecting_registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA
    clock.advance(30)
    with expect_refusal("InvalidTokenError", "introspection_inactive"):
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)


async def test_a_token_counts_from_its_time_on(
    introspecting_registry: ProviderRegistry, issuer: Issuer, clock: SettableClock
) -> None:
    begins = int(clock.now.timestamp()) + 40
    token = issuer.opaque_token(nbf=begins)
    with expect_refusal("InvalidTokenError", "not_yet_valid"):
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)
    clock.advance(10)
    assert (await introspecting_registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA


async def test_made_up_tokens_do_not_turn_the_service_against_its_provider(
    introspecting_registry: ProviderRegistry, issuer: Issuer, clock: SettableClock
) -> None:
    known = issuer.opaque_token()
    await introspecting_registry.authenticate(known, SYSTEM_HTTP)
    before = len(issuer.introspections)
    made_up = [introspecting_registry.authenticate(f"made-up-{number}", SYSTEM_HTTP) for number in range(200)]
    answers = await asyncio.gather(*made_up, return_exceptions=True)
    told = Counter(type(answer).__name__ for answer in answers)
    assert told.keys() == {"InvalidTokenError", "IntrospectionUnavailableError"}
    assert told["InvalidTokenError"] == len(issuer.introspections) - before <= CALLS_AT_ONCE + 5
    clock.advance(60)
    assert (await introspecting_registry.authenticate(known, SYSTEM_HTTP)).principal_id == MIRA


async def test_everybody_who_shows_the_same_token_at_once_gets_one_answer(
    introspecting_registry: ProviderRegistry, issuer: Issuer
) -> None:
    token = issuer.opaque_token()
    shown = await asyncio.gather(*(introspecting_registry.authenticate(token, SYSTEM_HTTP) for _ in range(100)))
    assert {principal.principal_id for principal in shown} == {MIRA}
    assert len(issuer.introspections) == 1


async def test_refusals_are_never_kept(introspecting_registry: ProviderRegistry, issuer: Issuer) -> None:
    token = issuer.opaque_token(active=False)
    for _ in range(2):
        with expect_refusal("InvalidTokenError", "introspection_inactive"):
            await introspecting_registry.authenticate(token, SYSTEM_HTTP)
    issuer.answers[token]["active"] = True
    assert (await introspecting_registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA
    assert len(issuer.introspections) == 3


async def test_an_answer_kept_for_one_surface_says_nothing_about_another(
    introspecting_registry: ProviderRegistry, issuer: Issuer
) -> None:
    token = issuer.opaque_token(aud=HTTP_AUDIENCE)
    await introspecting_registry.authenticate(token, SYSTEM_HTTP)
    with expect_refusal("InvalidTokenError", "wrong_audience"):
        await introspecting_registry.authenticate(token, SYSTEM_MCP_STREAMABLE_HTTP)


UNUSABLE: dict[str, Response] = {
    "an error": PlainTextResponse("sorry", 500),
    "bad credentials": PlainTextResponse("who are you", 401),
    "no content": Response(status_code=204),
    "created": JSONResponse({"active": True, "sub": "mira-77"}, 201),
    "a redirect": RedirectResponse("/moved/introspect"),
    "a web page": PlainTextResponse("<html></html>"),
    "a list": JSONResponse([True]),
}


@pytest.mark.parametrize("case", UNUSABLE)
async def test_introspection_is_unavailable_when_the_issuer_answers_with(
    case: str, introspecting_registry: ProviderRegistry, issuer: Issuer
) -> None:
    issuer.instead = UNUSABLE[case]
    with expect_refusal("IntrospectionUnavailableError") as caught:
        await introspecting_registry.authenticate(issuer.opaque_token(), SYSTEM_HTTP)
    assert (caught.value.status, caught.value.retry_after) == (503, 5)
    assert issuer.url not in caught.value.detail


async def test_wrong_credentials_of_the_service_are_its_own_trouble(registries: Registries, issuer: Issuer) -> None:
    introspecting_registry = registries(issuer.asked_provider(introspection_client_secret="outdated"))
    with expect_refusal("IntrospectionUnavailableError"):
        await introspecting_registry.authenticate(issuer.opaque_token(), SYSTEM_HTTP)


async def test_an_issuer_that_does_not_answer_in_time_is_unavailable(
    impatient_registries: Registries, issuer: Issuer
) -> None:
    issuer.silence()
    with expect_refusal("IntrospectionUnavailableError"):
        await impatient_registries(issuer.asked_provider()).authenticate(issuer.opaque_token(), SYSTEM_HTTP)


async def test_an_answer_that_never_ends_is_none(impatient_registries: Registries, issuer: Issuer) -> None:
    issuer.instead = dripping_answer()
    with expect_refusal("IntrospectionUnavailableError"):
        await impatient_registries(issuer.asked_provider()).authenticate(issuer.opaque_token(), SYSTEM_HTTP)


async def test_while_the_issuer_is_down_kept_answers_count_and_other_tokens_are_unavailable(registries: Registries) -> None:
    with Issuer.running_server() as fleeting:
        introspecting_registry = registries(
            fleeting.asked_provider(subject_bindings=[{"subject": "mira-77", "actor_id": MIRA}])
        )
        token = fleeting.opaque_token()
        await introspecting_registry.authenticate(token, SYSTEM_HTTP)
        fleeting.stop()
        assert (await introspecting_registry.authenticate(token, SYSTEM_HTTP)).principal_id == MIRA
        with expect_refusal("IntrospectionUnavailableError"):
            await introspecting_registry.authenticate(fleeting.opaque_token(), SYSTEM_HTTP)


def accepted_token(subject: str = "mira-77") -> VerifiedToken:
    return VerifiedToken("https://id.example.org", subject, frozenset(), None, {})


def test_when_too_many_answers_are_kept_the_least_recently_used_goes() -> None:
    kept = AcceptedTokens(capacity=2)
    first, second, third = ((name, HTTP_AUDIENCE) for name in (b"1", b"2", b"3"))
    later = NOON + timedelta(seconds=30)
    kept.put(first, accepted_token("1"), later)
    kept.put(second, accepted_token("2"), later)
    kept.get(first, NOON)
    kept.put(third, accepted_token("3"), later)
    assert [kept.get(key, NOON) for key in (first, second, third)] == [accepted_token("1"), None, accepted_token("3")]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 40)), max_size=60))
def test_no_answer_is_given_after_its_time_and_never_more_than_the_capacity_kept(steps: list[tuple[int, bool, int]]) -> None:
    kept, ends, now = AcceptedTokens(capacity=4), dict[int, datetime](), NOON
    for token, puts, seconds in steps:
        now += timedelta(seconds=seconds)
        key = bytes([token]), HTTP_AUDIENCE
        if puts:
            ends[token] = now + timedelta(seconds=30)
            kept.put(key, accepted_token(str(token)), ends[token])
        elif (answer := kept.get(key, now)) is not None:
            assert answer.subject == str(token)
            assert now < ends[token]
    assert sum(kept.get((bytes([token]), HTTP_AUDIENCE), now) is not None for token in range(10)) <= 4
