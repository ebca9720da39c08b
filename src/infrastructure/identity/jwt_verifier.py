"""Verification of signed access tokens (RFC 9068) with the keys that their issuer publishes."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import jwt
import structlog

from baton.application.identity import InvalidTokenError, KeySetUnavailableError, TokenFault, VerifiedToken
from baton.application.identity_providers import IdentityProvider
from baton.application.ports import Clock
from baton.infrastructure.identity.provider_client import LEEWAY, ProviderClient, ProviderUnreachableError, verified_token

KEY_LIFETIME = timedelta(minutes=5)
FETCH_PAUSE = 0.2  # seconds between two fetches of one key set, so that made-up key ids cannot flood the provider
ACCESS_TOKEN_TYPES = ("at+jwt", "application/at+jwt")
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

log = structlog.get_logger()

KeyTable = dict[tuple[str | None, str], jwt.PyJWK]  # by key id and algorithm; an only key also under None


class JwtVerifier:
    def __init__(self, provider: IdentityProvider, keys: "KeySet") -> None:
        self._issuer = provider.issuer
        self._algorithms = provider.allowed_algorithms
        self._types = ACCESS_TOKEN_TYPES if provider.require_access_token_type else (*ACCESS_TOKEN_TYPES, "jwt", None)
        self._keys = keys

    async def verify(self, token: str, audience: str) -> VerifiedToken:
        key_id, algorithm = self._header(token)
        key = await self._keys.find(key_id, algorithm)
        if key is None:
            raise InvalidTokenError(TokenFault.BAD_SIGNATURE)
        try:
            expected: dict[str, Any] = {"algorithms": [algorithm], "audience": audience, "issuer": self._issuer}
            claims = jwt.decode(token, key, **expected, leeway=LEEWAY, options=OPTIONS)
        except jwt.PyJWTError as error:
            raise InvalidTokenError(_fault_of(error)) from None
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
            raise InvalidTokenError(TokenFault.MALFORMED)
        return header.get("kid"), algorithm


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
            raise KeySetUnavailableError

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


def key_table(document: dict[str, Any], algorithms: Iterable[str]) -> KeyTable:
    """Return the keys of a published set (RFC 7517) that can verify signatures of these algorithms."""
    published = document.get("keys")
    if not isinstance(published, list):
        raise ProviderUnreachableError("answer is no key set")
    table: KeyTable = {}
    for algorithm in algorithms:
        fitting = [key for entry in published if (key := _key(entry, algorithm)) is not None]
        table |= {(key.key_id, algorithm): key for key in fitting if isinstance(key.key_id, str)}
        if len(fitting) == 1:
            table[None, algorithm] = fitting[0]
    return table


def _key(published: Any, algorithm: str) -> jwt.PyJWK | None:
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


def _fault_of(error: jwt.PyJWTError) -> TokenFault:
    return next((fault for kind, fault in FAULTS if isinstance(error, kind)), TokenFault.MALFORMED)
