"""What agents act with, in memory: the names of people, what was spent, and a language model with prepared answers."""

from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelError, Usage
from baton.domain.access.actor import Actor, ActorKind, ActorProfile
from baton.domain.agent.budget import SpentAmounts, day_start, month_start, next_day, next_month
from baton.domain.agent.redaction import KnownPerson, NameBook, name_book
from baton.domain.decision.inferences import Inference
from baton.infrastructure.llm.model_api import chat_response
from baton.testing.store import MemoryStore

Canned = Mapping[str, Any] | LanguageModelError | Callable[[ChatRequest], Mapping[str, Any]]


class MemoryPeople:
    """The names of people, from the profiles of a store; the book is kept until a profile changes."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._profiles: list[ActorProfile] = []
        self._book = NameBook()

    async def book(self) -> NameBook:
        profiles = [row for row in self._store.records_of(ActorProfile) if isinstance(row, ActorProfile)]
        if profiles != self._profiles:
            self._book = name_book(
                KnownPerson(one.name, one.email, one.phone, one.external_id) for one in profiles if self._is_person(one)
            )
            self._profiles = profiles
        return self._book

    def _is_person(self, profile: ActorProfile) -> bool:
        actor = self._store.state((Actor.__name__, profile.actor_id))
        return not isinstance(actor, Actor) or actor.kind is ActorKind.HUMAN


class MemorySpending:
    """The sums of the calls that agents have recorded themselves, by the time they are accounted to."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def of(self, agent_id: UUID, at: datetime) -> SpentAmounts:
        own = [row for row in self._store.summaries_of(Inference) if isinstance(row, Inference) and row.actor_id == agent_id]
        month = [row for row in own if month_start(at) <= row.occurred_at < next_month(at)]
        day = [row for row in month if day_start(at) <= row.occurred_at < next_day(at)]
        return SpentAmounts(
            sum(row.cost or 0.0 for row in month), sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in day)
        )


class ScriptedModel:
    """Answers from a queue and keeps the requests. Its answers are checked by the schema like any other model's."""

    def __init__(
        self, *answers: Canned, usage: Usage = Usage(input_tokens=100, output_tokens=20), model_id: str = "scripted-1"
    ) -> None:
        self.answers = deque(answers)
        self._usage = usage
        self._model_id = model_id
        self.requests: list[ChatRequest] = []

    async def chat(self, request: ChatRequest) -> ChatResponse:
        self.requests.append(request)
        if not self.answers:
            raise AssertionError("the model was asked more often than it has answers")
        answer = self.answers.popleft()
        if isinstance(answer, LanguageModelError):
            raise answer
        given = answer if isinstance(answer, Mapping) else answer(request)
        return chat_response(request, given, usage=self._usage, stop_reason="end", model_id=self._model_id)
