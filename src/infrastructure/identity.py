"""Identity providers: who a bearer token stands for. Signed tokens are verified with the keys that their issuer publishes
(RFC 9068), opaque ones by asking their issuer (RFC 7662); accepted answers are cached for a short time."""

import asyncio
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote_plus
from uuid import UUID

import httpx
import jwt
import structlog

from baton.application import identity
from baton.application.identity import IdentityProvider, InvalidTokenError, TokenFault, TokenVerifier, VerifiedToken
from baton.application.ports import Clock
from baton.domain.access.identity_provider import ProviderFacts
from baton.domain.kernel import NIL
from baton.domain.shared.text import UNSTORABLE
from baton.infrastructure.tls import trusted_certificates

log = structlog.get_logger()

TIMEOUTS = httpx.Timeout(connect=2, read=5, write=2, pool=2)
DEADLINE = 10.0  # seconds for a whole answer: a provider that sends single bytes passes every other time limit
MAX_ANSWER_BYTES = 1024 * 1024


class ProviderUnreachableError(Exception):
    """A provider gave no usable answer; the message is safe to log."""


class ProviderClient:
    """One pool of connections to all providers; redirects are not followed, since they could lead away from https."""

    def __init__(self, timeouts: httpx.Timeout = TIMEOUTS, deadline: float = DEADLINE) -> None:
        self._timeouts = timeouts
        self._deadline = deadline

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """Open the client when a provider is first asked: it reads all certificates, and many services have no provider."""
        return httpx.AsyncClient(
            verify=trusted_certificates(),
            timeout=self._timeouts,
            headers={"Accept": "application/json"},
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        if "_http" in vars(self):
            await self._http.aclose()

    async def ask(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        """Return the JSON object that a provider answers with."""
        try:
            async with asyncio.timeout(self._deadline), self._http.stream(method, url, **content) as response:
                if response.status_code != 200:
                    raise ProviderUnreachableError(f"status {response.status_code}")
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER_BYTES:
                        raise ProviderUnreachableError("answer is too long")
            answer = json.loads(body)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
            raise ProviderUnreachableError(type(error).__name__) from None
        if not isinstance(answer, dict):
            raise ProviderUnreachableError("answer is no JSON object")
        return answer


LEEWAY = timedelta(seconds=30)  # allowed difference between the clocks of issuer and service


def verified_token(issuer: str, claims: Mapping[str, object]) -> VerifiedToken:
    """Return the token that these claims describe; refuse a missing subject or an impossible time."""
    if not isinstance(subject := claims.get("sub"), str) or not subject or UNSTORABLE.search(subject):
        raise InvalidTokenError(TokenFault.MALFORMED)
    return VerifiedToken(issuer, subject, scopes_of(claims), time_of(claims, "exp"), claims)


def scopes_of(claims: Mapping[str, object]) -> frozenset[str]:
    """Return the scopes in `scope` (separated by spaces) or else in `scp` (a text or a list)."""
    match claims.get("scope") or claims.get("scp"):
        case str() as text:
            return frozenset(text.split())
        case list() as scopes:
            return frozenset(scope for scope in scopes if isinstance(scope, str))
        case _:
            return frozenset()


def time_of(claims: Mapping[str, Any], name: str) -> datetime | None:
    """Return the time in a claim, or None without the claim; refuse what is no time."""
    if claims.get(name) is None:
        return None
    try:
        return datetime.fromtimestamp(int(claims[name]), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise InvalidTokenError(TokenFault.MALFORMED) from None


KEY_LIFETIME = timedelta(minutes=5)
FETCH_PAUSE = 0.2  # seconds between two fetches of one key set, so that made-up key ids cannot flood the provider
ACCESS_TOKEN_TYPES = ("at+jwt", "application/at+jwt")
TYPE_TEXT = re.compile(r"[A-Za-z0-9+./_-]{1,40}")  # a type of token that is repeated in a sentence
OPTIONS: Any = {"require": ["iss", "exp", "aud", "sub", "iat"], "enforce_minimum_key_length": True}
FAULTS: tuple[tuple[type[jwt.PyJWTError], TokenFault], ...] = (
    (jwt.InvalidSignatureError, TokenFault.BAD_SIGNATURE),
    (jwt.InvalidKeyError, TokenFault.BAD_SIGNATURE),
    (jwt.InvalidAlgorithmError, TokenFault.UNSUPPORTED_ALGORITHM),
    (jwt.ExpiredSignatureError, TokenFault.EXPIRED),
    (jwt.ImmatureSignatureError, TokenFault.NOT_YET_VALID),
    (jwt.InvalidAudienceError, TokenFault.WRONG_AUDIENCE),
    (jwt.InvalidIssuerError, TokenFault.WRONG_ISSUER),
)

KeyTable = dict[tuple[str | None, str], jwt.PyJWK]  # by key id and algorithm; an only key also under None


class JwtVerifier:
    def __init__(self, provider: IdentityProvider, keys: "KeySet") -> None:
        self._issuer = provider.issuer
        self._algorithms = provider.allowed_algorithms
        self._types = ACCESS_TOKEN_TYPES if provider.require_access_token_type else (*ACCESS_TOKEN_TYPES, "jwt", None)
        self._keys = keys

    async def verify(self, token: str, audience: str) -> VerifiedToken:
        key_id, algorithm = self._header(token)
        if (key := await self._keys.find(key_id, algorithm)) is None:
            raise InvalidTokenError(TokenFault.BAD_SIGNATURE)
        try:
            expected: dict[str, Any] = {"algorithms": [algorithm], "audience": audience, "issuer": self._issuer}
            claims = jwt.decode(token, key, **expected, leeway=LEEWAY, options=OPTIONS)
        except jwt.PyJWTError as error:
            fault = next((fault for kind, fault in FAULTS if isinstance(error, kind)), TokenFault.MALFORMED)
            raise InvalidTokenError(fault) from None
        return verified_token(self._issuer, claims)

    def _header(self, token: str) -> tuple[str | None, str]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise InvalidTokenError(TokenFault.MALFORMED) from None
        algorithm, kind = header.get("alg"), header.get("typ")
        if algorithm not in self._algorithms:
            raise InvalidTokenError(TokenFault.UNSUPPORTED_ALGORITHM)
        if (kind.lower() if isinstance(kind, str) else kind) not in self._types:
            raise InvalidTokenError(TokenFault.NOT_ACCESS_TOKEN_TYPE, self._type_sentence(kind))
        return header.get("kid"), algorithm

    def _type_sentence(self, kind: object) -> str:
        """Return why a token of this type is refused, and which setting would admit it, if one does."""
        shown = f"typ {kind}" if isinstance(kind, str) and TYPE_TEXT.fullmatch(kind) else "no typ that is known"
        said = f"The header of this token has {'no typ' if kind is None else shown}, where an access token has at+jwt"
        if kind is not None and str(kind).lower() != "jwt":
            return f"{said}; send the access token."
        setting = "have an administrator set require_access_token_type to false for this issuer in IDENTITY_PROVIDERS"
        return f"{said}; send the access token, or, where its issuer marks access tokens so, {setting}."


class KeySet:
    """The published keys of one issuer, cached for five minutes; one fetch serves all, even if a request is cancelled."""

    def __init__(self, provider: IdentityProvider, client: ProviderClient, now: Clock) -> None:
        self._provider = provider
        self._client = client
        self._now = now
        self._keys: KeyTable = {}
        self._fresh_until = now()
        self._next_fetch = 0.0
        self._fetching: asyncio.Task[bool] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        if self._now() >= self._fresh_until or (key_id, algorithm) not in self._keys:
            await self._refresh()
        return self._keys.get((key_id, algorithm))

    async def _refresh(self) -> None:
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._end_fetch)
        if not await asyncio.shield(self._fetching):
            raise identity.KeySetUnavailableError

    def _end_fetch(self, fetching: asyncio.Task[bool]) -> None:
        self._fetching = None

    async def _fetch(self) -> bool:
        """Replace the keys by those published now; on failure keep the old ones for their time and return False."""
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(self._next_fetch - clock())
        self._next_fetch = clock() + FETCH_PAUSE
        fetched_at = self._now()
        try:
            document = await self._client.ask("GET", self._provider.jwks_url or "")
            self._keys = key_table(document, self._provider.allowed_algorithms)
        except ProviderUnreachableError as error:
            log.warning("key_set_unavailable", issuer=self._provider.issuer, error=str(error))
            return False
        self._fresh_until = fetched_at + KEY_LIFETIME
        return True


def key_table(document: dict[str, object], algorithms: Iterable[str]) -> KeyTable:
    """Return the keys of a published set (RFC 7517) that can verify signatures of these algorithms."""
    if not isinstance(published := document.get("keys"), list):
        raise ProviderUnreachableError("answer is no key set")
    table: KeyTable = {}
    for algorithm in algorithms:
        fitting = [key for entry in published if (key := _key(entry, algorithm)) is not None]
        table |= {(key.key_id, algorithm): key for key in fitting if isinstance(key.key_id, str)}
        if len(fitting) == 1:
            table[None, algorithm] = fitting[0]
    return table


def _key(published: object, algorithm: str) -> jwt.PyJWK | None:
    if not isinstance(published, dict) or "d" in published:
        return None
    if published.get("use", "sig") != "sig" or published.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(published, algorithm)
        key.Algorithm.prepare_key(key.key)
    except jwt.PyJWTError:
        return None
    return key


TOKEN_TYPES: Mapping[str, frozenset[str]] = {
    "token_type": frozenset({"bearer", "dpop", "access_token", "urn:ietf:params:oauth:token-type:access_token"}),
    "typ": frozenset({*ACCESS_TOKEN_TYPES, "jwt", "bearer", "dpop"}),
    "token_use": frozenset({"access"}),
}
"""What issuers call an access token, by the member of an answer (RFC 7662, Keycloak, Cognito) in which they say its kind."""
CACHE_CAPACITY = 1024
CALLS_AT_ONCE = 20
CALL_PAUSE = (
    0.2  # seconds between calls about unknown tokens beyond CALLS_AT_ONCE: made-up tokens must not flood the provider
)

CacheKey = tuple[bytes, str]  # SHA-256 of the token, and the audience it was accepted for


class IntrospectionVerifier:
    def __init__(self, provider: IdentityProvider, client: ProviderClient, now: Clock) -> None:
        self._provider = provider
        self._client = client
        self._now = now
        self._lifetime = timedelta(seconds=provider.introspection_cache_ttl_seconds)
        self._accepted = AcceptedTokens()
        self._calls: dict[CacheKey, asyncio.Task[VerifiedToken]] = {}
        self._next_call = 0.0

    async def verify(self, token: str, audience: str) -> VerifiedToken:
        """Return the issuer's answer about a token, cached or now; concurrent requests share one call."""
        key = hashlib.sha256(token.encode()).digest(), audience
        if (accepted := self._accepted.get(key, self._now())) is not None:
            return accepted
        if key not in self._calls:
            if not self._accepted.forget(key):
                self._count_call()
            self._calls[key] = asyncio.create_task(self._ask_and_judge(token, key))
            self._calls[key].add_done_callback(lambda call: self._end_call(key, call))
        return await asyncio.shield(self._calls[key])

    async def _ask_and_judge(self, token: str, key: CacheKey) -> VerifiedToken:
        asked_at = self._now()
        verified = self._judge(await self._ask(token), key[1], asked_at)
        ends = asked_at + self._lifetime
        self._accepted.put(key, verified, min(ends, verified.expires_at or ends))
        return verified

    def _end_call(self, key: CacheKey, call: asyncio.Task[VerifiedToken]) -> None:
        del self._calls[key]
        if not call.cancelled():
            call.exception()  # retrieved, so that asyncio does not report it: all who wait got it

    def _count_call(self) -> None:
        now = asyncio.get_running_loop().time()
        self._next_call = max(self._next_call, now - CALLS_AT_ONCE * CALL_PAUSE) + CALL_PAUSE
        if self._next_call > now:
            self._next_call -= CALL_PAUSE
            log.warning("introspection_limited", issuer=self._provider.issuer)
            raise identity.IntrospectionUnavailableError

    async def _ask(self, token: str) -> dict[str, Any]:
        client_id, secret = self._provider.introspection_client_id, self._provider.introspection_client_secret
        # RFC 6749 encodes both halves as form values before they go into the Basic header.
        credentials = httpx.BasicAuth(quote_plus(client_id or ""), quote_plus(secret.get_secret_value() if secret else ""))
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            return await self._client.ask("POST", self._provider.introspection_url or "", data=form, auth=credentials)
        except ProviderUnreachableError as error:
            log.warning("introspection_unavailable", issuer=self._provider.issuer, error=str(error))
            raise identity.IntrospectionUnavailableError from None

    def _judge(self, answer: Mapping[str, object], audience: str, now: datetime) -> VerifiedToken:
        if answer.get("active") is not True:
            raise InvalidTokenError(TokenFault.INTROSPECTION_INACTIVE)
        for name, accepted in TOKEN_TYPES.items():
            if (kind := answer.get(name)) is not None and str(kind).lower() not in accepted:
                raise InvalidTokenError(TokenFault.NOT_ACCESS_TOKEN_TYPE)
        if answer.get("iss") not in (None, self._provider.issuer):
            raise InvalidTokenError(TokenFault.WRONG_ISSUER)
        meant_for = answer.get("aud")
        if meant_for is not None and audience not in (meant_for if isinstance(meant_for, list) else [meant_for]):
            raise InvalidTokenError(TokenFault.WRONG_AUDIENCE)
        verified = verified_token(self._provider.issuer, answer)
        if verified.expires_at is not None and verified.expires_at + LEEWAY <= now:
            raise InvalidTokenError(TokenFault.EXPIRED)
        if (begins := time_of(answer, "nbf")) is not None and begins - LEEWAY > now:
            raise InvalidTokenError(TokenFault.NOT_YET_VALID)
        return verified


class AcceptedTokens:
    """Accepted answers, each valid for its time; beyond the capacity the least recently used one goes."""

    def __init__(self, capacity: int = CACHE_CAPACITY) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[CacheKey, tuple[VerifiedToken, datetime]] = OrderedDict()

    def get(self, key: CacheKey, now: datetime) -> VerifiedToken | None:
        if key not in self._entries:
            return None
        token, ends = self._entries[key]
        self._entries.move_to_end(key)
        return token if now < ends else None

    def forget(self, key: CacheKey) -> bool:
        return self._entries.pop(key, None) is not None

    def put(self, key: CacheKey, token: VerifiedToken, ends: datetime) -> None:
        self._entries[key] = token, ends
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


MAX_TOKEN_LENGTH = 8192
TOKEN_FORM = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # a bearer token (RFC 6750): no blanks, ASCII only


class ProviderRegistry:
    def __init__(
        self, providers: Sequence[IdentityProvider], bindings: identity.SubjectBindings, client: ProviderClient, now: Clock
    ) -> None:
        if objections := list(identity.provider_objections(providers)):
            raise ValueError(" ".join(objections))
        self._providers = {provider.issuer: provider for provider in providers}
        self._bindings = bindings
        self._by_keys = {one.issuer: JwtVerifier(one, KeySet(one, client, now)) for one in providers if one.jwks_url}
        self._by_asking = {one.issuer: IntrospectionVerifier(one, client, now) for one in providers if one.introspection_url}
        self._configured = {
            (provider.issuer, binding.subject): (binding.actor_id, binding.kind or provider.principal_kind)
            for provider in providers
            for binding in provider.subject_bindings
        }

    async def authenticate(self, token: str, surface_id: UUID) -> identity.VerifiedPrincipal:
        provider, verifier = self._verifier(token)
        if (audience := provider.audiences.get(surface_id)) is None:
            raise InvalidTokenError(TokenFault.WRONG_AUDIENCE)
        verified = await verifier.verify(token, audience)
        pair = verified.issuer, verified.subject
        bound = self._configured.get(pair) or await self._bindings.actor_of(*pair)
        if bound is None or bound[0] == NIL:
            raise InvalidTokenError(TokenFault.UNKNOWN_SUBJECT)
        return identity.VerifiedPrincipal(*pair, verified.scopes, verified.expires_at, verified.claims, *bound)

    async def identity_provider(self, issuer: str, subject: str) -> ProviderFacts:
        return ProviderFacts(issuer in self._providers, (issuer, subject) in self._configured, bool(self._providers))

    def issuers(self) -> tuple[str, ...]:
        return tuple(sorted(self._providers))

    def audiences(self) -> Mapping[UUID, tuple[str, ...]]:
        """Return the audiences accepted on each surface, sorted; surfaces that accept none are left out."""
        accepted: dict[UUID, set[str]] = {}
        for provider in self._providers.values():
            for surface_id, audience in provider.audiences.items():
                accepted.setdefault(surface_id, set()).add(audience)
        return {surface_id: tuple(sorted(accepted[surface_id])) for surface_id in sorted(accepted)}

    def _verifier(self, token: str) -> tuple[IdentityProvider, TokenVerifier]:
        if len(token) > MAX_TOKEN_LENGTH or not TOKEN_FORM.fullmatch(token):
            raise InvalidTokenError(TokenFault.MALFORMED)
        if token.count(".") == 2:
            issuer = _claimed_issuer(token)
            if issuer not in self._providers:
                raise InvalidTokenError(TokenFault.WRONG_ISSUER)
            return self._providers[issuer], self._by_keys.get(issuer) or self._by_asking[issuer]
        if not self._by_asking:
            raise InvalidTokenError(TokenFault.MALFORMED)
        issuer, verifier = next(iter(self._by_asking.items()))
        return self._providers[issuer], verifier


def _claimed_issuer(token: str) -> str:
    """Return the issuer that a token names, which is not proven yet."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise InvalidTokenError(TokenFault.MALFORMED) from None
    if not isinstance(issuer := claims.get("iss"), str):
        raise InvalidTokenError(TokenFault.MALFORMED)
    return issuer
