"""HTTP client of identity providers, which accepts only a JSON object with status 200 in time, and the claims of tokens."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import httpx

from baton.application.identity import InvalidTokenError, TokenFault, VerifiedToken

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
        return httpx.AsyncClient(timeout=self._timeouts, headers={"Accept": "application/json"}, follow_redirects=False)

    async def aclose(self) -> None:
        if "_http" in vars(self):
            await self._http.aclose()

    async def ask(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        """Return the JSON object that a provider answers with."""
        try:
            async with asyncio.timeout(self._deadline), self._http.stream(method, url, **content) as response:
                body = await _body(response)
            answer = json.loads(body)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
            raise ProviderUnreachableError(type(error).__name__) from None
        if not isinstance(answer, dict):
            raise ProviderUnreachableError("answer is no JSON object")
        return answer


async def _body(response: httpx.Response) -> bytes:
    if response.status_code != 200:
        raise ProviderUnreachableError(f"status {response.status_code}")
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise ProviderUnreachableError("answer is too long")
    return bytes(body)


LEEWAY = timedelta(seconds=30)  # allowed difference between the clocks of issuer and service


def verified_token(issuer: str, claims: Mapping[str, Any]) -> VerifiedToken:
    """Return the token that these claims describe; refuse a missing subject or an impossible time."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise InvalidTokenError(TokenFault.MALFORMED)
    return VerifiedToken(issuer, subject, scopes_of(claims), time_of(claims, "exp"))


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
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
