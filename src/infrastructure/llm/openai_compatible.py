"""Models behind a chat-completions API: a provider's, a gateway's, or a server of the facility's own."""

from collections.abc import Mapping
from typing import Any

import httpx

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelSchemaValidationError, Usage, fitting
from baton.infrastructure.llm.strict_schemas import can_be_strict, strict_form
from baton.infrastructure.llm.wire import Wire, count, label_of, parsed_object, text_of

FORMAT = "answer"


class OpenAiCompatibleModels:
    """Asks one request at a time, without streaming and without memory."""

    def __init__(
        self, http: httpx.AsyncClient, base_url: str, api_key: str, timeout: float, limit_name: str = "max_tokens"
    ) -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._wire = Wire(http, f"{base_url}/chat/completions", headers, api_key, timeout)
        self._limit_name = limit_name

    async def chat(self, request: ChatRequest) -> ChatResponse:
        answer = await self._wire.post(body_of(request, self._limit_name))
        usage, model_id = usage_of(answer), label_of(answer, "model", request.model_ref.asked)
        choice = first_choice(answer)
        stop_reason = label_of(choice, "finish_reason", "unknown")

        def unfit(said: str) -> LanguageModelSchemaValidationError:
            return LanguageModelSchemaValidationError(said, usage=usage, model_id=model_id)

        message = choice.get("message")
        if not isinstance(message, dict):
            raise unfit(f"The model gave no answer ({stop_reason}).")
        if message.get("refusal") or stop_reason == "content_filter":
            raise unfit("The model refused to answer.")
        if stop_reason == "length":
            raise unfit("The answer was cut off at the limit of tokens.")
        text = text_of(message, "content", "")
        if not text.strip():
            raise unfit(f"The model gave no answer ({stop_reason}).")
        parsed = fitting(
            parsed_object(text, unfit("The answer is no JSON object.")), request, usage=usage, model_id=model_id
        )
        return ChatResponse(parsed=parsed, raw_text=text, usage=usage, stop_reason=stop_reason, model_id=model_id)


def body_of(request: ChatRequest, limit_name: str) -> dict[str, Any]:
    """A request as it is sent; a schema that strict mode does not take goes as it is, and judges answers all the same."""
    schema, strict = request.structured_output_schema, can_be_strict(request.structured_output_schema)
    form = {"name": FORMAT, "strict": strict, "schema": strict_form(schema) if strict else dict(schema)}
    return {
        "model": request.model_ref.asked,
        limit_name: request.max_output_tokens,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user_message}],
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def usage_of(answer: Mapping[str, Any]) -> Usage:
    """What a call took. Here the input includes what came from the cache, which has a price of its own."""
    usage = answer.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    prompt, cached = count(usage, "prompt_tokens"), count(details, "cached_tokens")
    return Usage(
        input_tokens=max(0, prompt - cached),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_input_tokens=min(prompt, cached),
    )
