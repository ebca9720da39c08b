"""How an agent consults its language model: within its budget, at a known price, about facts that name nobody."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID, uuid5

import structlog
from pydantic import ValidationError

from baton.application.agents.agent_client import AgentClient
from baton.application.agents.budget_lock import BudgetLock
from baton.application.agents.ports import People, Spending
from baton.application.language_models import OFFLINE, ChatRequest, LanguageModelError, ModelProvider, Usage, asked
from baton.application.ports import Caller, Clock
from baton.domain.agent.agent import Agent
from baton.domain.agent.budget import BUDGET_EXHAUSTED, PRICE_UNKNOWN, exhausted
from baton.domain.agent.conclusions import Conclusion, Material, Task, Terminal, UnusableAnswerError
from baton.domain.agent.language_model import Pricing, price_of
from baton.domain.agent.model_ref import ModelRef
from baton.domain.agent.prompts import PROMPTS, Prompt
from baton.domain.decision.inferences import Span
from baton.domain.run.run import Run

log = structlog.get_logger()

PROMPT_NOT_FOUND = "PromptTemplateNotFound"
NOT_CONFIGURED = "LanguageModelUnavailableError"
BROKEN_SCHEMA = "SchemaViolation"
MILLION = 1_000_000
MOST_CALLS = 32
"""Models that one process asks at once: what is conducted must not wait for them."""
FREE = Pricing(input=0, output=0, cache_write=0, cache_read=0)


class BusyError(Exception):
    """Somebody has to come again later."""


class Models(Protocol):
    """The language models of this deployment."""

    def resolve(self, ref: ModelRef) -> ModelRef:
        """The model that is meant now, where a setting says which."""
        ...

    def provider(self, ref: ModelRef) -> ModelProvider | None:
        """Where a model is asked; None where it is not configured."""
        ...


@dataclass(frozen=True)
class Occasion:
    """Why an agent concludes now: about which run and which end of it, for which decision, as of when."""

    run: Run
    terminal: Terminal | None
    decision_id: UUID
    at: datetime
    inputs: Mapping[str, Any]
    automatic: bool = True
    """Whether nobody asked for it, so that the agent's caps count."""
    parent_id: UUID | None = None


@dataclass(frozen=True)
class ConsultationResult:
    """What came of it: a conclusion, or the name of what was in the way; and the calls that were made."""

    concluded: Conclusion | None = None
    failure: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[Span, ...] = ()


class ModelConsultation:
    """Asks the models of agents."""

    def __init__(self, hands: AgentClient, clock: Clock, models: Models, spending: Spending, people: People, turns: BudgetLock) -> None:
        self._hands = hands
        self._turns = turns
        self._calling = 0
        self._clock = clock
        self._models = models
        self._spending = spending
        self._people = people
        self._unpriced: set[ModelRef] = set()
        """The models whose price was missed, which is said once of each."""

    @asynccontextmanager
    async def turn(self, agent: Agent, occasion: Occasion) -> AsyncIterator[None]:
        """Have a place among the calls of this process and, for an agent that minds its budget, all calls to itself.

        Whoever finds none comes again: raises BusyError.
        """
        if self._calling >= MOST_CALLS:
            raise BusyError("So many models are being asked that another has to wait.")
        self._calling += 1
        try:
            if agent.budget is None or not occasion.automatic:
                yield
                return
            if not await self._turns.take(agent.id, occasion.decision_id):
                raise BusyError("The agent minds its budget and asks one model at a time.")
            yield
            await self._turns.give_back(agent.id, occasion.decision_id)
        finally:
            self._calling -= 1

    async def done(self, agent_id: UUID, decision_id: UUID) -> None:
        """Give back a turn that whoever had it could not give back any more."""
        await self._turns.give_back(agent_id, decision_id)

    def configured(self, ref: ModelRef) -> bool:
        """Whether a model can be asked here."""
        return self._models.provider(self._models.resolve(ref)) is not None

    async def consult(self, task: Task, agent: Agent, caller: Caller, occasion: Occasion) -> ConsultationResult:
        """Ask the agent's model about a run, unless something is in the way."""
        prompt = PROMPTS.get(agent.prompt_template_id) if agent.prompt_template_id is not None else None
        if prompt is None or prompt.answer is not task.prompt.answer:
            return ConsultationResult(failure=PROMPT_NOT_FOUND)
        ref = self._models.resolve(agent.model_ref)
        price = await self._price(ref, caller)
        if (obstacle := await self._obstacle(agent, price, occasion)) is not None:
            return obstacle
        provider = self._models.provider(ref)
        if provider is None:
            return ConsultationResult(failure=NOT_CONFIGURED)
        material = await self._material(task, occasion, caller)
        call = ChatAttempt(self._clock, provider, request_of(prompt, ref, material), agent, price, occasion)
        return await call.made(task, material)

    async def _price(self, ref: ModelRef, caller: Caller) -> Pricing | None:
        """What a model costs by the catalog; rules cost nothing, catalogued or not."""
        price = await self._hands.read(price_of(ref.provider, ref.model), caller)
        if price is None and ref.provider == OFFLINE.provider:
            return FREE
        if price is None and ref not in self._unpriced:
            self._unpriced.add(ref)
            log.warning("model_without_price", provider=ref.provider, model=ref.model)
        return price

    async def _obstacle(self, agent: Agent, price: Pricing | None, occasion: Occasion) -> ConsultationResult | None:
        """Why the agent may not spend anything: nobody knows what it would be, or a cap is reached."""
        budget = agent.budget
        if budget is None:
            return None
        if price is None and budget.monthly_cost_cap is not None:
            return ConsultationResult(failure=PRICE_UNKNOWN)
        if not occasion.automatic:
            return None
        reached = exhausted(budget, await self._spending.of(agent.id, occasion.at), occasion.at)
        return None if reached is None else ConsultationResult(failure=BUDGET_EXHAUSTED, facts=reached.facts())

    async def _material(self, task: Task, occasion: Occasion, caller: Caller) -> Material:
        """What the model is shown, with everybody in it blanked."""
        material = await self._hands.read(task.material(occasion.run, occasion.terminal), caller)
        return replace(material, facts=(await self._people.book()).discreet(material.facts))


def request_of(prompt: Prompt, ref: ModelRef, material: Material) -> ChatRequest:
    """The prompt, applied to what is known of a run."""
    return ChatRequest(
        purpose=prompt.name,
        system=prompt.system,
        user_message=json.dumps(material.facts, ensure_ascii=False),
        structured_output_schema=prompt.schema,
        model_ref=ref,
        max_output_tokens=prompt.max_output_tokens,
    )


@dataclass(frozen=True)
class ChatAttempt:
    """One call of a model."""

    clock: Clock
    provider: ModelProvider
    request: ChatRequest
    agent: Agent
    price: Pricing | None
    occasion: Occasion

    async def made(self, task: Task, material: Material) -> ConsultationResult:
        """Make the call; whatever it took is kept, even where nothing came of it."""
        began = self.clock()
        try:
            response = await asked(self.provider, self.request, asyncio.sleep)
        except LanguageModelError as error:
            log.warning("model_failed", agent_id=str(self.agent.id), error=type(error).__name__, said=str(error))
            calls = () if error.usage is None else (self._span(error.usage, error.model_id, None, began),)
            return ConsultationResult(failure=type(error).__name__, calls=calls)
        calls = (self._span(response.usage, response.model_id, response.stop_reason, began),)
        try:
            return ConsultationResult(task.conclude(response.parsed, material), calls=calls)
        except UnusableAnswerError as error:
            return ConsultationResult(failure=error.failure, calls=calls)
        except ValidationError:
            return ConsultationResult(failure=BROKEN_SCHEMA, calls=calls)

    def _span(self, usage: Usage, model_id: str | None, stop_reason: str | None, began: datetime) -> Span:
        """The call as the inference logbook keeps it, as of the time it is accounted to."""
        ref = self.request.model_ref
        cached = usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        return Span(
            event_id=uuid5(self.occasion.decision_id, "inference:0"),
            occurred_at=self.occasion.at,
            operation_name="chat",
            provider_name=ref.provider,
            request_model=ref.model,
            response_model=None if model_id is None else model_id.strip()[:200] or None,
            duration=max(0.0, (self.clock() - began).total_seconds() * 1000),
            finish_reasons=() if stop_reason is None or not stop_reason.strip() else (stop_reason.strip()[:100],),
            request_max_tokens=self.request.max_output_tokens,
            input_tokens=usage.input_tokens + cached,
            output_tokens=usage.output_tokens,
            cost=0.0 if self.price is None else cost_of(usage, self.price),
            agent_id=str(self.agent.id),
            agent_name=self.agent.name,
        )


def cost_of(usage: Usage, price: Pricing) -> float:
    """What a call cost, in the currency of the catalog."""
    return (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_creation_input_tokens * price.cache_write
        + usage.cache_read_input_tokens * price.cache_read
    ) / MILLION
