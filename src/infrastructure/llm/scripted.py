"""A model that says what it was told to say, for rehearsals and tests."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelError, Usage, fitting

Canned = Mapping[str, Any] | LanguageModelError | Callable[[ChatRequest], Mapping[str, Any]]
"""An answer, an error to raise, or what makes the answer to a request."""
USED = Usage(input_tokens=100, output_tokens=20)


class ScriptedModel:
    """Answers from a queue and keeps what it was asked. Answers are judged by the schema, as everybody's are."""

    def __init__(self, *answers: Canned, usage: Usage = USED, model_id: str = "scripted-1") -> None:
        self._answers = deque(answers)
        self._usage = usage
        self._model_id = model_id
        self.requests: list[ChatRequest] = []

    async def chat(self, request: ChatRequest) -> ChatResponse:
        self.requests.append(request)
        if not self._answers:
            raise AssertionError("the model was asked more often than it has answers")
        answer = self._answers.popleft()
        if isinstance(answer, LanguageModelError):
            raise answer
        given = answer if isinstance(answer, Mapping) else answer(request)
        parsed = fitting(given, request, usage=self._usage, model_id=self._model_id)
        return ChatResponse(
            parsed=parsed, raw_text=json.dumps(given), usage=self._usage, stop_reason="end", model_id=self._model_id
        )
