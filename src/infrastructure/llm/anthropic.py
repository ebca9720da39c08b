"""Models behind the Messages API. The model must use a tool whose input is the answer, which gives the answer its shape."""

from dataclasses import fields
from typing import Any

import httpx

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelSchemaValidationError, Usage
from baton.infrastructure.llm.model_api import ModelApiClient, chat_response, label_of, token_count

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
        answer = await self._client.post(_request_body(request))
        usage, model_id = _usage(answer), label_of(answer, "model", request.model_ref.requested_name)
        stop_reason = label_of(answer, "stop_reason", "unknown")
        given = None if stop_reason in UNFINISHED else _tool_input(answer)
        if given is None:
            fault = UNFINISHED.get(stop_reason, f"The model gave no answer ({stop_reason}).")
            raise LanguageModelSchemaValidationError(fault, usage=usage, model_id=model_id)
        return chat_response(request, given, usage=usage, stop_reason=stop_reason, model_id=model_id)


def _request_body(request: ChatRequest) -> dict[str, Any]:
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


def _tool_input(answer: dict[str, Any]) -> Any:
    blocks = answer.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and (block.get("type"), block.get("name")) == ("tool_use", TOOL):
            return block.get("input")
    return None


def _usage(answer: dict[str, Any]) -> Usage:
    """Return what a call took; this provider counts cached tokens apart from the input already."""
    usage = answer.get("usage")
    return Usage(**{counter.name: token_count(usage, counter.name) for counter in fields(Usage)})
