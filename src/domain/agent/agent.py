"""An agent and its budget. Its id is that of an actor, and both begin together; another model or version is another agent.
The record runs nothing: workflows read it before they act. Budgets are for the calendar month and day, in UTC."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, Self, assert_never
from uuid import UUID

from pydantic import Field
from pydantic_core import to_jsonable_python

from baton.domain.access.actor import Actor, ActorKind, ActorProfile, ActorRegistered
from baton.domain.agent.language_model import DETERMINISTIC, SETTING, ModelRef, is_approved
from baton.domain.agent.prompts import PROMPTS
from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    FurtherView,
    JudgedCreation,
    Outcome,
    SortedSet,
    State,
    TimeTravel,
    Value,
    Verb,
    copy_with,
)
from baton.domain.shared.annotations import Dollars
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, ask, find_all, members_of
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import FreeText, StateReason, Text
from baton.domain.shared.writes import Also, Enlist, Put, Record

AGENTS_BY_KIND = "agent-kind"  # Look-up kind: the agents of one kind.
MAX_TOOLS = MAX_CAPABILITIES = 32


class AgentStatus(StrEnum):
    DEFINED = "Defined"
    VERSIONED = "Versioned"  # In service.
    SUSPENDED = "Suspended"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, SUSPENDED, DEPRECATED = AgentStatus
NOT_DEPRECATED = (DEFINED, VERSIONED, SUSPENDED)
Names = SortedSet[FreeText]
Cost = Annotated[float, Field(strict=True), Dollars]


class Budget(Value):
    """What an agent may spend by itself; a cap of zero means nothing, none means no limit."""

    monthly_cost_cap: Cost | None
    daily_token_cap: int | None


@dataclass(frozen=True, kw_only=True)
class Agent(State):
    """An agent is the record of one piece of software that acts by itself, with a language model behind it or by rules."""

    kind: str
    name: FreeText
    version: str
    model_ref: ModelRef
    description: FreeText | None
    canonical_uri: str | None
    prompt_template_id: UUID | None
    capabilities: Names
    tools: Names = frozenset()
    budget: Budget | None = None
    status: AgentStatus = DEFINED
    suspension_reason: FreeText | None = None
    """Why the agent was taken out of service."""
    suspended_at: datetime | None = None
    suspended_by: UUID | None = None
    resumed_at: datetime | None = None
    resumed_by: UUID | None = None
    deprecation_reason: FreeText | None = None
    """Why it was taken out of service for good."""
    defined_at: datetime
    versioned_at: datetime | None = None
    deprecated_at: datetime | None = None


agent = Aggregate(Agent, "/agents", context="agent")


class AgentDefined(Event, of=agent):
    """The agent was made known, together with the actor of the same id."""

    kind: str
    name: FreeText
    version: str
    model_ref: ModelRef
    description: FreeText | None
    canonical_uri: str | None
    prompt_template_id: UUID | None
    capabilities: Names


class AgentVersioned(Event, of=agent, leads_to=VERSIONED, dates="versioned_at"):
    """The agent was put into service."""

    version: str


class AgentSuspended(Event, of=agent):
    """The agent was taken out of service until somebody resumes it."""

    reason: StateReason
    suspended_by: UUID


class AgentResumed(Event, of=agent):
    """The agent was put back into service."""

    resumed_by: UUID


class AgentDeprecated(Event, of=agent):
    """The agent was taken out of service for good."""

    reason: FreeText | None


class AgentToolGranted(Event, of=agent):
    """A tool of the agent was declared."""

    tool_name: str


class AgentToolRevoked(Event, of=agent):
    """A tool was taken from the declared ones."""

    tool_name: str


class AgentBudgetUpdated(Event, of=agent, overwrites=True):
    """The caps on what the agent may spend by itself were set; one that is null was lifted."""

    monthly_cost_cap: float | None
    daily_token_cap: int | None


AgentEvent = AgentSuspended | AgentResumed | AgentDeprecated | AgentToolGranted | AgentToolRevoked | AgentBudgetUpdated


@agent.evolve
def evolve(agent: Agent, event: AgentEvent) -> Agent:
    at = event.occurred_at
    match event:
        case AgentSuspended():
            by = event.suspended_by
            return copy_with(agent, status=SUSPENDED, suspension_reason=event.reason, suspended_at=at, suspended_by=by)
        case AgentResumed():
            return copy_with(agent, status=VERSIONED, suspension_reason=None, resumed_at=at, resumed_by=event.resumed_by)
        case AgentDeprecated():
            return copy_with(agent, status=DEPRECATED, deprecation_reason=event.reason, deprecated_at=at)
        case AgentToolGranted():
            return copy_with(agent, tools=agent.tools | {event.tool_name})
        case AgentToolRevoked():
            return copy_with(agent, tools=agent.tools - {event.tool_name})
        case AgentBudgetUpdated():
            return copy_with(agent, budget=budget_of(event.monthly_cost_cap, event.daily_token_cap))
        case _:
            assert_never(event)


def budget_of(monthly_cost_cap: float | None, daily_token_cap: int | None) -> Budget | None:
    """Return both caps, or None where neither is set."""
    if monthly_cost_cap is None and daily_token_cap is None:
        return None
    return Budget(monthly_cost_cap=monthly_cost_cap, daily_token_cap=daily_token_cap)


class InvalidAgentCanonicalUriError(Invalid, context="agent"):
    """An agent's canonical address begins with https:// and has no fragment."""


class InvalidAgentCapabilitiesError(Invalid, context="agent"):
    """An agent claims at most 32 capabilities."""


class InvalidAgentPromptTemplateError(Invalid, context="agent"):
    """The prompt is none that this service has."""


class InvalidToolNameError(Invalid, context="agent"):
    """A tool's name must not be blank."""


class InvalidAgentToolsError(Invalid, context="agent"):
    """An agent has at most 32 tools."""


class InvalidAgentBudgetError(Invalid, context="agent"):
    """A cap is a finite number that is not negative."""


class LanguageModelNotApprovedError(Conflict, context="agent", reason="model_not_approved"):
    """This deployment's agents ask approved models only, and the agent's model is none."""


Capability = Annotated[str, agent.text("capability", 100, personal=True)]
ToolName = Annotated[str, Text(100, InvalidToolNameError, "tool name")]


@agent.creation(refuses=[agent.AlreadyExists])
class DefineAgent(JudgedCreation[bool]):
    """Make an agent known, and with it the actor of the same id that it acts as."""

    kind: Annotated[str, agent.text("kind", 100)]
    """What kind of agent it is, in a word."""
    name: Annotated[str, agent.text("name", 100, personal=True)]
    version: Annotated[str, agent.text("version", 50)]
    """The version of the agent's software."""
    model_ref: ModelRef
    """The language model that the agent asks."""
    description: Annotated[str, agent.text("description", 2000, personal=True)] | None = None
    canonical_uri: Annotated[str, Text(2000, InvalidAgentCanonicalUriError, "canonical address")] | None = None
    prompt_template_id: UUID | None = None
    capabilities: SortedSet[Capability] = frozenset()

    def gather(self, call: Call) -> Reads[bool]:
        """Return whether the model may be asked here."""
        if self.model_ref.provider in (DETERMINISTIC, SETTING):
            return True
        deployment = yield from ask(DeploymentPort.deployment)
        return not deployment.approved_models_only or (yield from is_approved(self.model_ref))

    def decide(self, call: Call, approved: bool) -> Outcome:
        uri = self.canonical_uri
        if uri is not None and (not uri.startswith("https://") or "#" in uri):
            detail = "The canonical address begins with https:// and has no #; correct it or leave it out."
            raise InvalidAgentCanonicalUriError(detail)
        if len(self.capabilities) > MAX_CAPABILITIES:
            detail = f"An agent claims at most {MAX_CAPABILITIES} capabilities; name the ones that matter."
            raise InvalidAgentCapabilitiesError(detail, facts={"count": len(self.capabilities)})
        if self.prompt_template_id is not None and self.prompt_template_id not in PROMPTS:
            known = {str(id): prompt.name for id, prompt in PROMPTS.items()}
            detail = "There is no prompt with this id; take one of those that the service has, or none."
            raise InvalidAgentPromptTemplateError(detail, facts={"known": known})
        if not approved:
            model = f"{self.model_ref.model} of {self.model_ref.provider}"
            detail = f"{model} is no approved model here; have it approved in the catalog of language models first."
            raise LanguageModelNotApprovedError(detail)
        return begin_agent(self, call)


def begin_agent(definition: DefineAgent, call: Call) -> Outcome:
    """Return the beginning of an agent and of its actor, under one id."""
    profile = ActorProfile(call.new_id, definition.name, None, None, None, None, None, call.now, call.now)
    return [
        AgentDefined(**dict(definition)),
        Enlist(AGENTS_BY_KIND, definition.kind),
        Also(Actor, call.new_id, [ActorRegistered(kind=ActorKind.AGENT), Put(profile)]),
    ]


def agents_of_kind(kind: str) -> Reads[tuple[Agent, ...]]:
    """Return every agent of a kind, whatever its status."""
    agents = yield from find_all(Agent, (yield from members_of(AGENTS_BY_KIND, kind)))
    return tuple(agents.values())


@agent.command(post="/{agent_id}/version", allowed=[DEFINED], leads_to=VERSIONED)
class VersionAgent(Verb[Agent]):
    """Put an agent into service."""

    def decide(self, agent: Agent, call: Call) -> Outcome:
        return [AgentVersioned(version=agent.version)]


@agent.command(post="/{agent_id}/suspend", allowed=[VERSIONED], records=AgentSuspended, destructive=True)
class SuspendAgent(Verb[Agent]):
    """Take an agent out of service; what it asks for is refused from its next call on, until somebody resumes it."""

    reason: Annotated[str, agent.text("suspension_reason", 500, label="reason", personal=True)]


@agent.command(post="/{agent_id}/resume", allowed=[SUSPENDED], leads_to=VERSIONED, records=AgentResumed)
class ResumeAgent(Verb[Agent]):
    """Put a suspended agent back into service; what passed meanwhile is not made up for."""


@agent.command(post="/{agent_id}/deprecate", allowed=NOT_DEPRECATED, records=AgentDeprecated, destructive=True)
class DeprecateAgent(Verb[Agent]):
    """Take an agent out of service for good."""

    reason: Annotated[str, agent.text("deprecation_reason", 500, label="reason", personal=True)] | None = None


@agent.command(post="/{agent_id}/tools/grant", allowed=NOT_DEPRECATED, verb="GrantTool")
class GrantToolToAgent(Verb[Agent]):
    """Declare a tool of this agent; what it may do, policies alone decide."""

    tool_name: ToolName

    def decide(self, agent: Agent, call: Call) -> Outcome:
        if self.tool_name in agent.tools:
            return []
        if len(agent.tools) >= MAX_TOOLS:
            raise InvalidAgentToolsError(f"The agent has {MAX_TOOLS} tools already; revoke one first.")
        return [AgentToolGranted(tool_name=self.tool_name)]


@agent.command(post="/{agent_id}/tools/revoke", allowed=NOT_DEPRECATED, verb="RevokeTool")
class RevokeToolFromAgent(Verb[Agent]):
    """Take a tool from the declared ones."""

    tool_name: ToolName

    def decide(self, agent: Agent, call: Call) -> Outcome:
        return [AgentToolRevoked(tool_name=self.tool_name)] if self.tool_name in agent.tools else []


@agent.command(post="/{agent_id}/update-budget", allowed=NOT_DEPRECATED, verb="UpdateBudget")
class UpdateAgentBudget(Verb[Agent]):
    """Set what the agent may spend by itself in a calendar month and day (UTC); null lifts a cap."""

    monthly_cost_cap: Cost | None
    daily_token_cap: Annotated[int, Field(strict=True)] | None

    def decide(self, agent: Agent, call: Call) -> Outcome:
        for name, cap in self:
            if cap is not None and not 0 <= cap <= 2**53:
                detail = f"{name} is negative or beyond all bounds; give 0 to spend nothing, null for no cap."
                raise InvalidAgentBudgetError(detail, facts={"field": name})
        if budget_of(self.monthly_cost_cap, self.daily_token_cap) == agent.budget:
            return []
        return [AgentBudgetUpdated(**dict(self))]


@dataclass(frozen=True, kw_only=True)
class AgentView(FurtherView, Agent):
    """An agent with what its model calls have taken in this calendar month and on this day, in UTC; its past has none."""

    cost_in_month: Cost | None
    """What its own model calls have cost in this calendar month (UTC), in US dollars."""
    tokens_on_day: int | None
    """Number of tokens that its own model calls have used on this calendar day (UTC)."""

    @classmethod
    def load(cls, query: TimeTravel[Self], state: Agent) -> Reads[Self]:
        if query.travels:
            return cls.of(state, cost_in_month=None, tokens_on_day=None)
        spent = yield from ask(AgentPort.spent_amounts, state.id)
        return cls.of(state, cost_in_month=spent.cost_in_month, tokens_on_day=spent.tokens_on_day)


GetAgent = agent.get(view=AgentView)


class AgentSummary(Summary):
    agent_id: UUID
    kind: str
    name: FreeText
    version: str
    status: AgentStatus
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@agent.listing(AgentSummary)
class ListAgents(NamedListQuery[AgentSummary]):
    """Agents in the order they were defined."""

    kind: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    status: AgentStatus | None = None


@dataclass(frozen=True)
class SpendingTurn(Record):
    """The one decision that an agent is spending on now."""

    relation: ClassVar[str] = "spending_turns"
    key: ClassVar[tuple[str, ...]] = ("agent_id",)
    agent_id: UUID
    decision_id: UUID
    taken_at: datetime


class SpentAmounts(NamedTuple):
    """What an agent's calls have taken so far in this month and on this day."""

    cost_in_month: float
    tokens_on_day: int


class AgentPort(Protocol):
    """Knows what agents may call and have spent."""

    async def spent_amounts(self, agent_id: UUID) -> SpentAmounts:
        """Return what an agent has spent in this calendar month and on this day."""

    async def is_model_configured(self, model_ref: ModelRef) -> bool:
        """Return whether this deployment can call a language model."""


class ReachedCap(NamedTuple):
    """The cap that is reached."""

    cap_kind: str
    cap_value: float
    spent: float
    window_start: datetime

    def facts(self) -> dict[str, Any]:
        """Return the cap as it is recorded."""
        return {**to_jsonable_python(self._asdict())}


def month_start(at: datetime) -> datetime:
    """Return when the calendar month of a time began."""
    return day_start(at).replace(day=1)


def day_start(at: datetime) -> datetime:
    """Return when the calendar day of a time began."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def next_month(at: datetime) -> datetime:
    """Return when the calendar month after that of a time begins."""
    return month_start(month_start(at) + timedelta(days=31))


def next_day(at: datetime) -> datetime:
    """Return when the calendar day after that of a time begins."""
    return day_start(at) + timedelta(days=1)


def reached_cap(budget: Budget | None, spent: SpentAmounts, at: datetime) -> ReachedCap | None:
    """Return the first cap that is reached, the monthly one before the daily one; without a budget there is no limit."""
    if budget is None:
        return None
    if budget.monthly_cost_cap is not None and spent.cost_in_month >= budget.monthly_cost_cap:
        return ReachedCap("monthly_cost_cap", budget.monthly_cost_cap, spent.cost_in_month, month_start(at))
    if budget.daily_token_cap is not None and spent.tokens_on_day >= budget.daily_token_cap:
        return ReachedCap("daily_token_cap", budget.daily_token_cap, spent.tokens_on_day, day_start(at))
    return None
