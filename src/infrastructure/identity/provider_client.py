"""Asking an identity provider over HTTP: within time limits, and believing nothing but a JSON object under status 200."""

import asyncio
import json
from functools import cached_property
from typing import Any

import httpx

TIMEOUTS = httpx.Timeout(connect=2, read=5, write=2, pool=2)
DEADLINE = 10.0
"""Seconds for a whole answer: a provider that drips bytes passes every single time limit."""
MAX_ANSWER_BYTES = 1024 * 1024


class ProviderUnreachableError(Exception):
    """A provider gave no usable answer; the message is safe to log."""


class ProviderClient:
    """One pool of connections to all providers. Redirects are not followed: they could lead away from https."""

    def __init__(self, timeouts: httpx.Timeout = TIMEOUTS, deadline: float = DEADLINE) -> None:
        self._timeouts = timeouts
        self._deadline = deadline

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """Opened when a provider is first asked: it reads every certificate there is, and many services have no provider."""
        return httpx.AsyncClient(timeout=self._timeouts, headers={"Accept": "application/json"}, follow_redirects=False)

    async def aclose(self) -> None:
        """Close every connection."""
        if "_http" in vars(self):
            await self._http.aclose()

    async def ask(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        """The JSON object a provider answers with."""
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
