"""The language-model port: one request, one answer of the shape that was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class ModelRef:
    """Which model is asked, of which provider; a snapshot is asked in its stead where one is pinned."""

    provider: str
    model: str
    snapshot_pin: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """A fixed instruction, what it is to be applied to, and the JSON Schema of the answer."""

    system: str
    user_message: str
    structured_output_schema: Mapping[str, Any]
    model_ref: ModelRef
    max_output_tokens: int = 1024


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a call took, in tokens."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class ChatResponse:
    """An answer that fits its schema, and the model that gave it."""

    parsed: Mapping[str, Any]
    raw_text: str
    usage: Usage
    stop_reason: str
    model_id: str


class LanguageModelError(Exception):
    """The model gave no answer. The message holds no secrets."""


class LanguageModelRateLimitError(LanguageModelError):
    """The provider wants fewer requests."""


class LanguageModelServerError(LanguageModelError):
    """The provider cannot be reached or fails."""


class LanguageModelTimeoutError(LanguageModelError):
    """The answer took too long."""


class LanguageModelAuthenticationError(LanguageModelError):
    """The provider does not accept this deployment."""


class LanguageModelInvalidRequestError(LanguageModelError):
    """The provider does not accept this request."""


class LanguageModelSchemaValidationError(LanguageModelError):
    """The answer does not fit the schema."""


class ModelProvider(Protocol):
    """A provider's models."""

    async def chat(self, request: ChatRequest) -> ChatResponse:
        """One answer; raises LanguageModelError."""
        ...
