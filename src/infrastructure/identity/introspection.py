"""Verification of opaque tokens by asking their issuer (RFC 7662); accepted answers are cached for a short time."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

import httpx
import structlog

from baton.application.identity import IntrospectionUnavailableError, InvalidTokenError, TokenFault, VerifiedToken
from baton.application.identity_providers import IdentityProvider
from baton.application.ports import Clock
from baton.infrastructure.identity.provider_client import (
    LEEWAY,
    ProviderClient,
    ProviderUnreachableError,
    time_of,
    verified_token,
)

CACHE_CAPACITY = 1024
CALLS_AT_ONCE = 20
CALL_PAUSE = 0.2  # seconds between calls about unknown tokens beyond CALL_BURST: made-up tokens must not flood the provider

log = structlog.get_logger()

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
            raise IntrospectionUnavailableError

    async def _ask(self, token: str) -> dict[str, Any]:
        client_id, secret = self._provider.introspection_client_id, self._provider.introspection_client_secret
        # RFC 6749 encodes both halves as form values before they go into the Basic header.
        credentials = httpx.BasicAuth(quote_plus(client_id or ""), quote_plus(secret.get_secret_value() if secret else ""))
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            return await self._client.ask("POST", self._provider.introspection_url or "", data=form, auth=credentials)
        except ProviderUnreachableError as error:
            log.warning("introspection_unavailable", issuer=self._provider.issuer, error=str(error))
            raise IntrospectionUnavailableError from None

    def _judge(self, answer: Mapping[str, Any], audience: str, now: datetime) -> VerifiedToken:
        if answer.get("active") is not True:
            raise InvalidTokenError(TokenFault.INTROSPECTION_INACTIVE)
        if answer.get("iss") not in (None, self._provider.issuer):
            raise InvalidTokenError(TokenFault.WRONG_ISSUER)
        meant_for = answer.get("aud")
        if meant_for is not None and audience not in (meant_for if isinstance(meant_for, list) else [meant_for]):
            raise InvalidTokenError(TokenFault.WRONG_AUDIENCE)
        verified = verified_token(self._provider.issuer, answer)
        if verified.expires_at is not None and verified.expires_at + LEEWAY <= now:
            raise InvalidTokenError(TokenFault.EXPIRED)
        begins = time_of(answer, "nbf")
        if begins is not None and begins - LEEWAY > now:
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
