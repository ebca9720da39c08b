"""The language-model port: one request, one answer that fits a schema, and how often a request is repeated."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from baton.domain.agent.language_model import ModelRef
from baton.domain.shared.text import UNWRITABLE, writable

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

ATTEMPTS = 3
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds before the second attempt, and before any attempt at most
OFFLINE = ModelRef(provider="offline", model="rules-1")  # the model that answers by rules, without a network
PROVIDERS = ("anthropic", "openai", "offline")
NAMED_MODEL = re.compile(r"(?P<provider>[a-z]+)/(?P<model>[^@\s]+)(@(?P<pin>[^@\s]+))?")
KEY_LIKE = re.compile(
    r"\b(?:Bearer|Basic)\s+[^\s\"',]+"
    r"|\b(?:api[-_ ]?key(?: provided)?|token|secret|password|authorization)[\"']?\s*[:=]\s*[\"']?[^\s\"',]+"
    r"|\b(?:sk|pk|rk|gsk|xai|hf|ghp)[-_][^\s\"',]{6,}"
    r"|\b(?:AIza|key-)[A-Za-z0-9_-]{16,}"
    r"|\b(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{32,}",
    re.IGNORECASE,
)
HIDDEN = "***"


class Purpose(StrEnum):
    """What a model is asked for; it is not sent to the model."""

    RUN_DEBRIEF = "run-debrief"
    CAUTION_DRAFT = "caution-draft"
    STEERING = "steering"


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """A fixed instruction, what it is to be applied to, and the JSON Schema of the answer."""

    purpose: str
    system: str
    user_message: str
    structured_output_schema: Mapping[str, Any]
    model_ref: ModelRef
    max_output_tokens: int = 1024


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The tokens of a call, each counted once: tokens of a cache are not counted as input too."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


NOTHING_USED = Usage(input_tokens=0, output_tokens=0)


@dataclass(frozen=True, kw_only=True)
class ChatResponse:
    """An answer that fits its schema, and the model that gave it."""

    parsed: Mapping[str, Any]
    usage: Usage
    stop_reason: str
    model_id: str


class LanguageModelError(Exception):
    """The model gave no usable answer; the message is short and holds no secrets, and `usage` is what the call cost."""

    def __init__(self, message: str = "", *, usage: Usage | None = None, model_id: str | None = None) -> None:
        super().__init__(without_secrets(message))
        self.usage = usage
        self.model_id = model_id


class LanguageModelRateLimitError(LanguageModelError):
    """The provider wants fewer requests, and may say for how many seconds."""

    retry_after: float | None = None


class LanguageModelServerError(LanguageModelError):
    """The provider cannot be reached or fails."""


class LanguageModelTimeoutError(LanguageModelError):
    """The answer took too long."""


class LanguageModelAuthenticationError(LanguageModelError):
    """The provider does not accept this deployment."""


class LanguageModelInvalidRequestError(LanguageModelError):
    """The provider does not accept this request."""


class LanguageModelSchemaValidationError(LanguageModelError):
    """The answer does not fit the schema: it is malformed, cut off, refused or empty."""


TRANSIENT = (LanguageModelRateLimitError, LanguageModelServerError, LanguageModelTimeoutError)


class ModelProvider(Protocol):
    """A provider's models."""

    async def chat(self, request: ChatRequest) -> ChatResponse:
        """Return one answer; raise LanguageModelError."""


class Models(Protocol):
    """The language models of this deployment."""

    def resolve(self, ref: ModelRef) -> ModelRef:
        """Return the model that a reference to a setting means now."""

    def provider(self, ref: ModelRef) -> ModelProvider | None:
        """Return the provider of a model; None where it is not configured."""


async def chat_with_retry(
    provider: ModelProvider, request: ChatRequest, sleep: Callable[[float], Awaitable[None]]
) -> ChatResponse:
    """Return the answer to a request, repeated where that may help; raise the LanguageModelError of the last attempt."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await provider.chat(request)
        except TRANSIENT as error:
            await sleep(pause_after(attempt, error))
    return await provider.chat(request)


def pause_after(attempt: int, error: LanguageModelError) -> float:
    """Return the seconds to wait after a failed attempt: twice as long each time, or as long as the provider asks for."""
    wanted = error.retry_after if isinstance(error, LanguageModelRateLimitError) else None
    return min(LONGEST_WAIT, max(FIRST_WAIT * float(2**attempt), wanted or 0.0))


def chat_response(request: ChatRequest, answer: object, *, usage: Usage, stop_reason: str, model_id: str) -> ChatResponse:
    """Return an answer that can be stored and fits the request's schema; raise an error that does not quote it."""
    if not isinstance(answer, Mapping):
        detail = "The answer is no JSON object."
    elif not writable(answer):
        detail = "The answer holds control characters or broken surrogates."
    elif fault := next(validator(json.dumps(request.structured_output_schema, sort_keys=True)).iter_errors(answer), None):
        place = ".".join(map(str, fault.absolute_path)) or "the answer"
        detail = f"The answer does not fit its schema: {place} breaks {fault.validator}."
    else:
        return ChatResponse(parsed=answer, usage=usage, stop_reason=stop_reason, model_id=model_id)
    raise LanguageModelSchemaValidationError(detail, usage=usage, model_id=model_id)


@lru_cache(maxsize=64)
def validator(schema: str) -> "Draft202012Validator":
    """Return the validator of a schema, given as sorted JSON text."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))


def without_secrets(text: str) -> str:
    """Return an error's text without anything that looks like a key or cannot be written, cut to a log line."""
    return KEY_LIKE.sub(HIDDEN, UNWRITABLE.sub(" ", text))[:200]


def parse_model_name(text: str) -> ModelRef:
    """Return the model that a setting names as `provider/model` or `provider/model@pin`; raise ValueError."""
    parts = NAMED_MODEL.fullmatch(text.strip())
    if parts is None:
        raise ValueError("is no model; write provider/model, or provider/model@pin")
    if parts["provider"] not in PROVIDERS:
        raise ValueError(f"names the provider {parts['provider']}; choose one of {', '.join(PROVIDERS)}")
    try:
        ref = ModelRef(provider=parts["provider"], model=parts["model"], snapshot_pin=parts["pin"])
    except ValidationError:
        raise ValueError("is too long; a model has up to 200 characters, a pin up to 100") from None
    if ref.provider == OFFLINE.provider and ref != OFFLINE:
        raise ValueError(f"names an offline model that there is not; write {OFFLINE.provider}/{OFFLINE.model}")
    return ref
