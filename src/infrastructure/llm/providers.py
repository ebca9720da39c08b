"""Language models over HTTP: one JSON request each, behind the Messages API or a chat-completions API, as configured."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NoReturn

import httpx

from baton.application import language_models as models
from baton.application.language_models import OFFLINE, ChatRequest, ChatResponse, ModelProvider, Usage, chat_response
from baton.application.settings import MODEL_SETTINGS, Settings
from baton.domain.agent.language_model import SETTING, ModelRef
from baton.domain.shared.text import UNWRITABLE
from baton.infrastructure.llm.offline import OfflineModel
from baton.infrastructure.tls import trusted_certificates

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

    async def post(self, body: Mapping[str, object]) -> dict[str, Any]:
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


def parse_object(text: bytes | bytearray | str, otherwise: models.LanguageModelError) -> dict[str, object]:
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


def token_count(usage: object, name: str) -> int:
    number = usage.get(name) if isinstance(usage, dict) else None
    return number if isinstance(number, int) and number > 0 else 0


def text_of(answer: Mapping[str, object], name: str, default: str) -> str:
    found = answer.get(name)
    return found if isinstance(found, str) and found else default


def label_of(answer: Mapping[str, object], name: str, default: str) -> str:
    """Return a provider's name for something, without unwritable characters and never empty, since it is stored."""
    return UNWRITABLE.sub("", text_of(answer, name, default)).strip() or default


TOOL = "give_answer"
UNFINISHED = {
    "max_tokens": "The answer was cut off at the limit of tokens.",
    "model_context_window_exceeded": "The answer was cut off at the end of the model's context.",
    "refusal": "The model refused to answer.",
}


class AnthropicModels:
    def __init__(self, http: httpx.AsyncClient, base_url: str, api_key: str, timeout: float) -> None:
        headers = {"x-api-key": api_key, "anthropic-version": "2023-06-01"}
        self._client = ModelApiClient(http, f"{base_url}/v1/messages", headers, api_key, timeout)

    async def chat(self, request: ChatRequest) -> ChatResponse:
        answer = await self._client.post(_tool_request(request))
        usage, model_id = _messages_usage(answer), label_of(answer, "model", request.model_ref.requested_name)
        stop_reason = label_of(answer, "stop_reason", "unknown")
        given = None if stop_reason in UNFINISHED else _tool_input(answer)
        if given is None:
            fault = UNFINISHED.get(stop_reason, f"The model gave no answer ({stop_reason}).")
            raise models.LanguageModelSchemaValidationError(fault, usage=usage, model_id=model_id)
        return chat_response(request, given, usage=usage, stop_reason=stop_reason, model_id=model_id)


def _tool_request(request: ChatRequest) -> dict[str, object]:
    tool = {
        "name": TOOL,
        "description": "Gives the answer. Use it once, with the whole answer as its input.",
        "input_schema": dict(request.structured_output_schema),
    }
    return {
        "model": request.model_ref.requested_name,
        "max_tokens": request.max_output_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user_message}],
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
    }


def _tool_input(answer: dict[str, object]) -> object:
    blocks = answer.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and (block.get("type"), block.get("name")) == ("tool_use", TOOL):
            return block.get("input")
    return None


def _messages_usage(answer: dict[str, object]) -> Usage:
    """Return what a call took; this provider counts cached tokens apart from the input already."""
    usage = answer.get("usage")
    return Usage(**{counter.name: token_count(usage, counter.name) for counter in fields(Usage)})


BOUNDS = (
    *("minLength", "maxLength", "pattern", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "uniqueItems"),
)  # Keywords that some servers refuse in a strict schema. The model reads them in descriptions, and its answer is checked.
FOREIGN = frozenset({"oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "prefixItems"})
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class OpenAiCompatibleModels:
    def __init__(
        self, http: httpx.AsyncClient, base_url: str, api_key: str, timeout: float, limit_name: str = "max_tokens"
    ) -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = ModelApiClient(http, f"{base_url}/chat/completions", headers, api_key, timeout)
        self._limit_name = limit_name

    async def chat(self, request: ChatRequest) -> ChatResponse:
        answer = await self._client.post(_completion_request(request, self._limit_name))
        usage, model_id = _completions_usage(answer), label_of(answer, "model", request.model_ref.requested_name)
        choices = answer.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        choice = first if isinstance(first, dict) else {}
        stop_reason = label_of(choice, "finish_reason", "unknown")
        message = choice.get("message")
        text = text_of(message, "content", "") if isinstance(message, dict) else ""

        def unusable(fault: str) -> models.LanguageModelSchemaValidationError:
            return models.LanguageModelSchemaValidationError(fault, usage=usage, model_id=model_id)

        if isinstance(message, dict) and (message.get("refusal") or stop_reason == "content_filter"):
            raise unusable("The model refused to answer.")
        if isinstance(message, dict) and stop_reason == "length":
            raise unusable("The answer was cut off at the limit of tokens.")
        if not text.strip():
            raise unusable(f"The model gave no answer ({stop_reason}).")
        given = parse_object(text, unusable("The answer is no JSON object."))
        return chat_response(request, given, usage=usage, stop_reason=stop_reason, model_id=model_id)


def _completion_request(request: ChatRequest, limit_name: str) -> dict[str, object]:
    schema, strict = request.structured_output_schema, can_be_strict(request.structured_output_schema)
    form = {"name": "answer", "strict": strict, "schema": strict_schema(schema) if strict else dict(schema)}
    return {
        "model": request.model_ref.requested_name,
        limit_name: request.max_output_tokens,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user_message}],
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def _completions_usage(answer: Mapping[str, object]) -> Usage:
    """Return what a call took; here the input includes cached tokens, which have a price of their own."""
    usage = answer.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    prompt, cached = token_count(usage, "prompt_tokens"), token_count(details, "cached_tokens")
    output = token_count(usage, "completion_tokens")
    return Usage(input_tokens=max(0, prompt - cached), output_tokens=output, cache_read_input_tokens=min(prompt, cached))


def can_be_strict(schema: Mapping[str, object]) -> bool:
    """Return whether every object in a schema is closed and requires all of its keys, and no keyword is foreign."""
    return schema.get("type") == "object" and all(map(_is_strict, _subschemas(schema)))


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with its bounds moved into the descriptions, and a type wherever values are listed."""
    strict = {key: value for key, value in schema.items() if key not in BOUNDS and key not in ("$schema", "default")}
    if bounds := [f"{name} {schema[name]}" for name in BOUNDS if name in schema]:
        strict["description"] = " ".join([*filter(None, [schema.get("description")]), f"({', '.join(bounds)})"])
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values and "type" not in schema:
        types = list(dict.fromkeys(JSON_TYPES.get(type(value), "object") for value in values))
        strict["type"] = types[0] if len(types) == 1 else types
    for key in ("properties", "$defs"):
        if key in schema:
            strict[key] = {name: strict_schema(inner) for name, inner in schema[key].items()}
    if "items" in schema:
        strict["items"] = strict_schema(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [strict_schema(option) for option in schema["anyOf"]]
    return strict


def _is_strict(schema: Mapping[str, Any]) -> bool:
    if not FOREIGN.isdisjoint(schema):
        return False
    if "properties" not in schema and schema.get("type") != "object":
        return True
    keys = set(schema.get("properties", ()))
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == keys


def _subschemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    for level in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from _subschemas(level)


class ConfiguredModels:
    """The adapters that there are credentials for. They share one pool of connections."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None
        self._providers = self._make_providers()

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def resolve(self, model_ref: ModelRef) -> ModelRef:
        """Return the model that a reference means now; one that names no known setting stays what it is."""
        if model_ref.provider != SETTING or model_ref.model not in MODEL_SETTINGS:
            return model_ref
        chosen: str | None = getattr(self._settings, model_ref.model.lower())
        return OFFLINE if chosen is None else models.parse_model_name(chosen)

    def provider(self, model_ref: ModelRef) -> ModelProvider | None:
        """Return the adapter of a model, or None without an adapter or credentials for it."""
        return self._providers.get(self.resolve(model_ref).provider)

    def steering_model(self) -> tuple[ModelProvider, ModelRef] | None:
        if self._settings.decide_model is None:
            return None
        chosen = models.parse_model_name(self._settings.decide_model)
        provider = self.provider(chosen)
        return None if provider is None else (provider, chosen)

    def _make_providers(self) -> dict[str, ModelProvider]:
        settings, timeout = self._settings, float(self._settings.language_model_timeout_seconds)
        providers: dict[str, ModelProvider] = {OFFLINE.provider: OfflineModel()}
        if settings.anthropic_api_key is not None:
            key = settings.anthropic_api_key.get_secret_value()
            base_url = settings.anthropic_base_url or "https://api.anthropic.com"
            providers["anthropic"] = AnthropicModels(self._client(), base_url, key, timeout)
        server_url, secret = settings.openai_base_url, settings.openai_api_key
        if server_url is not None or secret is not None:
            key = secret.get_secret_value() if secret is not None else ""
            # The provider's own servers know the limit by its new name only, most others by the old one.
            limit_name = "max_completion_tokens" if server_url is None else "max_tokens"
            base_url = server_url or "https://api.openai.com/v1"
            providers["openai"] = OpenAiCompatibleModels(self._client(), base_url, key, timeout, limit_name)
        return providers

    def _client(self) -> httpx.AsyncClient:
        """Return the pool of connections, made when the first adapter needs it: that takes a while."""
        if self._http is None:
            self._http = httpx.AsyncClient(
                verify=trusted_certificates(), headers={"Accept": "application/json"}, follow_redirects=False
            )
        return self._http
