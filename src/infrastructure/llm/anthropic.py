"""Models behind the Messages API. The answer's shape is had by a tool that the model must use, whose input is the answer."""

import json
from typing import Any

import httpx

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelSchemaValidationError, Usage, fitting
from baton.infrastructure.llm.wire import Wire, count, label_of

API_VERSION = "2023-06-01"
TOOL = "give_answer"
UNFINISHED = {
    "max_tokens": "The answer was cut off at the limit of tokens.",
    "model_context_window_exceeded": "The answer was cut off at the end of the model's context.",
    "refusal": "The model refused to answer.",
}
"""Why there is no whole answer, by what the provider says stopped it."""


class AnthropicModels:
    """Asks one request at a time, without streaming and without memory."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, api_key: str, timeout: float) -> None:
        headers = {"x-api-key": api_key, "anthropic-version": API_VERSION}
        self._wire = Wire(http, f"{base_url}/v1/messages", headers, api_key, timeout)

    async def chat(self, request: ChatRequest) -> ChatResponse:
        answer = await self._wire.post(body_of(request))
        usage, model_id = usage_of(answer), label_of(answer, "model", request.model_ref.asked)
        stop_reason = label_of(answer, "stop_reason", "unknown")
        if stop_reason in UNFINISHED:
            raise LanguageModelSchemaValidationError(UNFINISHED[stop_reason], usage=usage, model_id=model_id)
        given = tool_input(answer)
        if given is None:
            said = f"The model gave no answer ({stop_reason})."
            raise LanguageModelSchemaValidationError(said, usage=usage, model_id=model_id)
        parsed = fitting(given, request, usage=usage, model_id=model_id)
        return ChatResponse(
            parsed=parsed,
            raw_text=json.dumps(given, ensure_ascii=False),
            usage=usage,
            stop_reason=stop_reason,
            model_id=model_id,
        )


def body_of(request: ChatRequest) -> dict[str, Any]:
    """A request as it is sent."""
    tool = {
        "name": TOOL,
        "description": "Gives the answer. Use it once, with the whole answer as its input.",
        "input_schema": dict(request.structured_output_schema),
    }
    return {
        "model": request.model_ref.asked,
        "max_tokens": request.max_output_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user_message}],
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
    }


def tool_input(answer: dict[str, Any]) -> Any:
    """What the model filled in, or None."""
    blocks = answer.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and (block.get("type"), block.get("name")) == ("tool_use", TOOL):
            return block.get("input")
    return None


def usage_of(answer: dict[str, Any]) -> Usage:
    """What a call took; here what concerns the cache is counted apart from the input already."""
    usage = answer.get("usage")
    return Usage(
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        cache_creation_input_tokens=count(usage, "cache_creation_input_tokens"),
        cache_read_input_tokens=count(usage, "cache_read_input_tokens"),
    )
