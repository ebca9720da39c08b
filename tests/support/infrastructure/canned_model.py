"""A language model in memory: canned answers in order, and what was asked."""

from collections.abc import Callable, Mapping
from typing import Any

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelError, Usage

Canned = Mapping[str, Any] | LanguageModelError | Callable[[ChatRequest], Mapping[str, Any]]


class CannedModel:
    """Answers from a queue, whatever the schema says: a decider judges answers itself. The last one is given for ever."""

    def __init__(self, *answers: Canned) -> None:
        self.answers = list(answers)
        self.requests: list[ChatRequest] = []

    async def chat(self, request: ChatRequest) -> ChatResponse:
        self.requests.append(request)
        assert self.answers, "the model was asked more often than it has answers"
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, LanguageModelError):
            raise answer
        parsed = answer if isinstance(answer, Mapping) else answer(request)
        usage = Usage(input_tokens=100, output_tokens=20)
        return ChatResponse(parsed=parsed, usage=usage, stop_reason="end", model_id="m-1-20260301")
