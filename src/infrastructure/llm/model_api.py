"""One JSON request to a model provider over HTTP, and the parts of answers that providers have in common."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import httpx

from baton.application import language_models as models
from baton.application.language_models import ChatRequest, ChatResponse, Usage
from baton.domain.shared.text import UNWRITABLE

MAX_ANSWER_BYTES = 4 * 1024 * 1024
HTTP_TIMEOUT = httpx.Timeout(None, connect=10)  # the whole call has its own time limit


class ModelApiClient:
    """Posts JSON to one provider. Bodies are never logged; of an error's, only the provider's own message is kept."""

    def __init__(self, http: httpx.AsyncClient, url: str, headers: Mapping[str, str], secret: str, timeout: float) -> None:
        self._http = http
        self._url = url
        self._headers = headers
        self._secret = secret
        self._timeout = timeout

    async def post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON object a provider answers with; the time limit holds for the whole answer."""
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream("POST", self._url, json=body, headers=self._headers, timeout=HTTP_TIMEOUT) as response,
            ):
                text = bytearray()
                async for part in response.aiter_bytes():
                    text += part
                    if len(text) > MAX_ANSWER_BYTES:
                        raise models.LanguageModelServerError("The provider's answer is too long.")
        except TimeoutError:
            raise models.LanguageModelTimeoutError(f"The model did not answer within {self._timeout:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise models.LanguageModelServerError(self._without_secret(f"{type(error).__name__}: {error}")) from None
        if response.status_code != 200:
            self._refuse(response, text)
        return parse_object(text, models.LanguageModelServerError("The provider's answer is no JSON object."))

    def _refuse(self, response: httpx.Response, text: bytes | bytearray) -> NoReturn:
        message = self._without_secret(f"status {response.status_code}: {_error_message(text)}")
        match response.status_code:
            case 429:
                limited = models.LanguageModelRateLimitError(message)
                limited.retry_after = _retry_after(response)
                raise limited
            case 401 | 403:
                raise models.LanguageModelAuthenticationError(message)
            case status if status >= 500:
                raise models.LanguageModelServerError(message)
        raise models.LanguageModelInvalidRequestError(message)

    def _without_secret(self, text: str) -> str:
        return text.replace(self._secret, models.HIDDEN) if self._secret else text


def chat_response(request: ChatRequest, answer: Any, *, usage: Usage, stop_reason: str, model_id: str) -> ChatResponse:
    """Return an answer that fits the request's schema, or raise LanguageModelSchemaValidationError."""
    parsed = models.checked_answer(answer, request, usage=usage, model_id=model_id)
    return ChatResponse(parsed=parsed, usage=usage, stop_reason=stop_reason, model_id=model_id)


def parse_object(text: bytes | bytearray | str, otherwise: models.LanguageModelError) -> dict[str, Any]:
    """Return the JSON object in a text, or raise this error."""
    try:
        answer = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise otherwise from None
    if not isinstance(answer, dict):
        raise otherwise
    return answer


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _error_message(text: bytes | bytearray) -> str:
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, RecursionError):
        return "no message"


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def token_count(usage: Any, name: str) -> int:
    number = usage.get(name) if isinstance(usage, dict) else None
    return number if isinstance(number, int) and number > 0 else 0


def text_of(answer: Mapping[str, Any], name: str, default: str) -> str:
    found = answer.get(name)
    return found if isinstance(found, str) and found else default


def label_of(answer: Mapping[str, Any], name: str, default: str) -> str:
    """Return a provider's name for something, without unwritable characters and never empty, since it is stored."""
    return UNWRITABLE.sub("", text_of(answer, name, default)).strip() or default
