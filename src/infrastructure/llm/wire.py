"""One question over HTTP: asked in time, and every way it can fail told apart."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import httpx

from baton.application.language_models import (
    HIDDEN,
    LanguageModelAuthenticationError,
    LanguageModelError,
    LanguageModelInvalidRequestError,
    LanguageModelRateLimitError,
    LanguageModelServerError,
    LanguageModelTimeoutError,
)
from baton.domain.shared.text import UNWRITABLE

MAX_ANSWER_BYTES = 4 * 1024 * 1024
PATIENCE = httpx.Timeout(None, connect=10)
"""Who cannot be reached is known soon; how long an answer may take is a matter of the whole call."""


class Wire:
    """Posts JSON to one provider. Bodies are never logged; of an error's, nothing but the provider's own message is kept."""

    def __init__(self, http: httpx.AsyncClient, url: str, headers: Mapping[str, str], secret: str, timeout: float) -> None:
        self._http = http
        self._url = url
        self._headers = headers
        self._secret = secret
        self._timeout = timeout

    async def post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object a provider answers with; the time limit holds for the whole of it, however it drips."""
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream("POST", self._url, json=body, headers=self._headers, timeout=PATIENCE) as response,
            ):
                text = await read(response)
        except TimeoutError:
            raise LanguageModelTimeoutError(f"The model did not answer within {self._timeout:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LanguageModelServerError(self._told(f"{type(error).__name__}: {error}")) from None
        if response.status_code != 200:
            self._refuse(response, text)
        return parsed_object(text, LanguageModelServerError("The provider's answer is no JSON object."))

    def _refuse(self, response: httpx.Response, text: bytes) -> NoReturn:
        said = self._told(f"status {response.status_code}: {message_in(text)}")
        match response.status_code:
            case 429:
                limited = LanguageModelRateLimitError(said)
                limited.retry_after = retry_after(response)
                raise limited
            case 401 | 403:
                raise LanguageModelAuthenticationError(said)
            case status if status >= 500:
                raise LanguageModelServerError(said)
        raise LanguageModelInvalidRequestError(said)

    def _told(self, text: str) -> str:
        """A text without this deployment's own key, whatever that looks like."""
        return text.replace(self._secret, HIDDEN) if self._secret else text


async def read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise LanguageModelServerError("The provider's answer is too long.")
    return bytes(body)


def parsed_object(text: bytes | str, otherwise: LanguageModelError) -> dict[str, Any]:
    """The JSON object in a text, or else this error."""
    try:
        answer = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise otherwise from None
    if not isinstance(answer, dict):
        raise otherwise
    return answer


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def message_in(text: bytes) -> str:
    """What a provider says about a refusal; providers agree on where they say it, and servers of one's own may not."""
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, RecursionError):
        return "no message"


def retry_after(response: httpx.Response) -> float | None:
    """How many seconds a provider asks to wait, where it says so in seconds."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def count(usage: Any, name: str) -> int:
    """A number of tokens; what a provider does not count counts as none."""
    number = usage.get(name) if isinstance(usage, dict) else None
    return number if isinstance(number, int) and number > 0 else 0


def text_of(answer: Mapping[str, Any], name: str, otherwise: str) -> str:
    """A text in an answer, or what stands for it where the provider gives none."""
    found = answer.get(name)
    return found if isinstance(found, str) and found else otherwise


def label_of(answer: Mapping[str, Any], name: str, otherwise: str) -> str:
    """A name that a provider gives something, without what cannot be written; it is kept, so it is never empty."""
    return UNWRITABLE.sub("", text_of(answer, name, otherwise)).strip() or otherwise
