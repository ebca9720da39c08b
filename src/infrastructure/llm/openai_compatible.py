"""Models behind a chat-completions API. Strict decoding takes few keywords of JSON Schema; descriptions say the rest."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelSchemaValidationError, Usage
from baton.infrastructure.llm.model_api import ModelApiClient, chat_response, label_of, parse_object, text_of, token_count

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
        answer = await self._client.post(_request_body(request, self._limit_name))
        usage, model_id = _usage(answer), label_of(answer, "model", request.model_ref.requested_name)
        choice = _first_choice(answer)
        stop_reason = label_of(choice, "finish_reason", "unknown")
        message = choice.get("message")
        text = text_of(message, "content", "") if isinstance(message, dict) else ""

        def unusable(fault: str) -> LanguageModelSchemaValidationError:
            return LanguageModelSchemaValidationError(fault, usage=usage, model_id=model_id)

        if isinstance(message, dict) and (message.get("refusal") or stop_reason == "content_filter"):
            raise unusable("The model refused to answer.")
        if isinstance(message, dict) and stop_reason == "length":
            raise unusable("The answer was cut off at the limit of tokens.")
        if not text.strip():
            raise unusable(f"The model gave no answer ({stop_reason}).")
        given = parse_object(text, unusable("The answer is no JSON object."))
        return chat_response(request, given, usage=usage, stop_reason=stop_reason, model_id=model_id)


def _request_body(request: ChatRequest, limit_name: str) -> dict[str, Any]:
    schema, strict = request.structured_output_schema, can_be_strict(request.structured_output_schema)
    form = {"name": "answer", "strict": strict, "schema": strict_schema(schema) if strict else dict(schema)}
    return {
        "model": request.model_ref.requested_name,
        limit_name: request.max_output_tokens,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user_message}],
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def _first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _usage(answer: Mapping[str, Any]) -> Usage:
    """Return what a call took; here the input includes cached tokens, which have a price of their own."""
    usage = answer.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    prompt, cached = token_count(usage, "prompt_tokens"), token_count(details, "cached_tokens")
    return Usage(
        input_tokens=max(0, prompt - cached),
        output_tokens=token_count(usage, "completion_tokens"),
        cache_read_input_tokens=min(prompt, cached),
    )


def can_be_strict(schema: Mapping[str, Any]) -> bool:
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
