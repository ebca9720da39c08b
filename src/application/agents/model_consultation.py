"""How an agent consults its language model: within its budget, at a known price, about facts that name nobody."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import structlog
from pydantic import ValidationError

from baton.application.agents.agent_client import AgentClient
from baton.application.caller import Caller
from baton.application.commands import Commands, system_batch
from baton.application.language_models import (
    OFFLINE,
    ChatRequest,
    LanguageModelError,
    ModelProvider,
    Models,
    Usage,
    chat_with_retry,
)
from baton.application.ports import Batch, Clock, People, Spending
from baton.domain.agent.agent import Agent, SpendingTurn, reached_cap
from baton.domain.agent.conclusions import AgentTask, Conclusion, Material, RunEnd, UnusableAnswerError
from baton.domain.agent.language_model import ModelRef, Pricing, price_of
from baton.domain.agent.prompts import PROMPTS, Prompt
from baton.domain.decision.decision import Span
from baton.domain.run.run import Run
from baton.domain.shared.writes import Drop, Put

LOCK = "spending-turns"
FORGOTTEN_AFTER = timedelta(minutes=45)  # longer than three attempts at an answer take, each as long as may be
log = structlog.get_logger()
MOST_CALLS = 32  # model calls that one process has open at once, so that conducts do not wait for them
FREE = Pricing(input=0, output=0, cache_write=0, cache_read=0)


@dataclass
class BudgetLock:
    commands: Commands

    async def take(self, agent_id: UUID, decision_id: UUID) -> bool:
        """Take the lock for a decision; return false while another one holds it."""
        async with self.commands.store.session(LOCK) as session:
            rows = await session.records(SpendingTurn, {"agent_id": agent_id})
            now = self.commands.clock()
            if rows and rows[0].decision_id != decision_id and now - rows[0].taken_at < FORGOTTEN_AFTER:
                return False
            await session.append(self._batch(Put(SpendingTurn(agent_id, decision_id, now))))
            return True

    async def release(self, agent_id: UUID, decision_id: UUID) -> None:
        """Release the lock, if this decision holds it."""
        async with self.commands.store.session() as session:
            own = {"agent_id": agent_id, "decision_id": decision_id}
            await session.append(self._batch(Drop(SpendingTurn, own)))

    def _batch(self, row: Put | Drop) -> Batch:
        return system_batch("TakeSpendingTurn", self.commands.clock, self.commands.new_id, row)


class BusyError(Exception):
    """No further model may be asked now; the caller has to try again later."""


@dataclass(frozen=True)
class Occasion:
    """Why an agent concludes now: about which run and which end of it, for which decision, as of when."""

    run: Run
    terminal: RunEnd | None
    decision_id: UUID
    at: datetime
    inputs: Mapping[str, Any]
    automatic: bool = True  # whether nobody asked for it, so that the agent's caps count
    parent_id: UUID | None = None


@dataclass(frozen=True)
class ConsultationResult:
    """A conclusion, or the name of the obstacle; and the model calls that were made."""

    conclusion: Conclusion | None = None
    failure: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[Span, ...] = ()


@dataclass
class ModelConsultation:
    client: AgentClient
    models: Models
    spending: Spending
    people: People
    lock: BudgetLock
    open_calls: int = 0
    unpriced: set[ModelRef] = field(default_factory=set)  # models without a price, each logged once

    @asynccontextmanager
    async def reserve_call(self, agent: Agent, occasion: Occasion) -> AsyncIterator[None]:
        """Hold one of this process's calls and, for an agent that minds its budget, the agent's lock; raise BusyError."""
        if self.open_calls >= MOST_CALLS:
            raise BusyError("So many models are being asked that another has to wait.")
        self.open_calls += 1
        try:
            if agent.budget is None or not occasion.automatic:
                yield
                return
            if not await self.lock.take(agent.id, occasion.decision_id):
                raise BusyError("The agent minds its budget and asks one model at a time.")
            yield
            await self.lock.release(agent.id, occasion.decision_id)
        finally:
            self.open_calls -= 1

    def is_configured(self, ref: ModelRef) -> bool:
        """Return whether a model can be asked here."""
        return self.models.provider(self.models.resolve(ref)) is not None

    async def consult(self, task: AgentTask, agent: Agent, caller: Caller, occasion: Occasion) -> ConsultationResult:
        """Ask the agent's model about a run, unless there is an obstacle."""
        prompt = PROMPTS.get(agent.prompt_template_id) if agent.prompt_template_id is not None else None
        if prompt is None or prompt.answer is not task.prompt.answer:
            return ConsultationResult(failure="PromptTemplateNotFound")
        ref = self.models.resolve(agent.model_ref)
        price = await self._price(ref, caller)
        if (obstacle := await self._obstacle(agent, price, occasion)) is not None:
            return obstacle
        if (provider := self.models.provider(ref)) is None:
            return ConsultationResult(failure="LanguageModelUnavailableError")
        material = await self.client.read(task.material(occasion.run, occasion.terminal), caller)
        material = replace(material, facts=(await self.people.book()).redact(material.facts))
        call = ChatAttempt(self.client.commands.clock, provider, request_of(prompt, ref, material), agent, price, occasion)
        return await call.make(task, material)

    async def _price(self, ref: ModelRef, caller: Caller) -> Pricing | None:
        price = await self.client.read(price_of(ref.provider, ref.model), caller)
        if price is None and ref.provider == OFFLINE.provider:
            return FREE
        if price is None and ref not in self.unpriced:
            self.unpriced.add(ref)
            log.warning("model_without_price", provider=ref.provider, model=ref.model)
        return price

    async def _obstacle(self, agent: Agent, price: Pricing | None, occasion: Occasion) -> ConsultationResult | None:
        if (budget := agent.budget) is None:
            return None
        if price is None and budget.monthly_cost_cap is not None:
            return ConsultationResult(failure="PriceUnknown")
        if not occasion.automatic:
            return None
        reached = reached_cap(budget, await self.spending.of(agent.id, occasion.at), occasion.at)
        return None if reached is None else ConsultationResult(failure="BudgetExhausted", facts=reached.facts())


def request_of(prompt: Prompt, ref: ModelRef, material: Material) -> ChatRequest:
    """Return the prompt, applied to what is known of a run."""
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
    clock: Clock
    provider: ModelProvider
    request: ChatRequest
    agent: Agent
    price: Pricing | None
    occasion: Occasion

    async def make(self, task: AgentTask, material: Material) -> ConsultationResult:
        """Make the call; what it cost is kept even where it failed."""
        began = self.clock()
        try:
            response = await chat_with_retry(self.provider, self.request, asyncio.sleep)
        except LanguageModelError as error:
            log.warning("model_failed", agent_id=str(self.agent.id), error=type(error).__name__, message=str(error))
            calls = () if error.usage is None else (self._span(error.usage, error.model_id, None, began),)
            return ConsultationResult(failure=type(error).__name__, calls=calls)
        calls = (self._span(response.usage, response.model_id, response.stop_reason, began),)
        try:
            return ConsultationResult(task.conclude(response.parsed, material), calls=calls)
        except UnusableAnswerError as error:
            return ConsultationResult(failure=str(error), calls=calls)
        except ValidationError:
            return ConsultationResult(failure="SchemaViolation", calls=calls)

    def _span(self, usage: Usage, model_id: str | None, stop_reason: str | None, began: datetime) -> Span:
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
    """Return the cost of a call, in the currency of the catalog."""
    return (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_creation_input_tokens * price.cache_write
        + usage.cache_read_input_tokens * price.cache_read
    ) / 1_000_000  # prices are per million
