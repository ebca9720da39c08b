"""The offline model: answers made by rules from the data of a request, the same whenever the same is asked."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from baton.application.language_models import (
    NOTHING_USED,
    OFFLINE,
    ChatRequest,
    ChatResponse,
    LanguageModelInvalidRequestError,
    Purpose,
    fitting,
)
from baton.infrastructure.llm.offline_debrief import debriefed
from baton.infrastructure.llm.offline_draft import drafted

RULES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    Purpose.RUN_DEBRIEF: debriefed,
    Purpose.CAUTION_DRAFT: drafted,
}


class OfflineModel:
    """Has rules for a few purposes, uses no tokens and reaches nobody."""

    async def chat(self, request: ChatRequest) -> ChatResponse:
        rule = RULES.get(request.purpose)
        if rule is None:
            raise LanguageModelInvalidRequestError(f"The offline model has no rules for {request.purpose}.")
        answer = required_only(rule(facts_in(request.user_message)), request.structured_output_schema)
        parsed = fitting(answer, request, usage=NOTHING_USED, model_id=OFFLINE.model)
        return ChatResponse(
            parsed=parsed,
            raw_text=json.dumps(answer, ensure_ascii=False),
            usage=NOTHING_USED,
            stop_reason="end",
            model_id=OFFLINE.model,
        )


def facts_in(message: str) -> dict[str, Any]:
    """The object in a message. Numbers stay as they are written, so that they can be repeated to the digit."""
    try:
        facts = json.loads(message, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise LanguageModelInvalidRequestError("The message is no JSON object.")
    return facts


def required_only(answer: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without empty keys that the schema does not ask for."""
    required = schema.get("required", ())
    return {key: value for key, value in answer.items() if value is not None or key in required}
