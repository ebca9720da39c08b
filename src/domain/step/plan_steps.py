"""Bluesky plans as steps: what is known of the executors that carry them out, and whether a step may have one carried out.
Such a step is an action whose name is `plan:<executor>/<plan>`. A worker keeps what each executor offers in rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Protocol
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.kernel import Call, Query, Value
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.offered_plans import PLAN_PREFIX, PlanExecutorCatalogue, PlanTouches
from baton.domain.recipe.steps import RecipeActionStep, RecipeStep, StepLocation, located_steps
from baton.domain.registry import standalone_query
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, records_of
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.schema import violations_of
from baton.domain.shared.text import shorten

HEARD_OF_LATE = timedelta(minutes=10)  # An executor that was heard longer ago is not counted on.
TOUCHES_WORDS = ("writes", "reads")


class PausePolicy(StrEnum):
    GATE = "gate"  # The gate in its environment waits at the next checkpoint.
    NATIVE = "native"  # The executor pauses and resumes by itself.
    NONE = "none"  # A plan runs to its end.


class DeclaredPlanExecutor(Protocol):
    """What a deployment declares of an executor."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def exclusive(self) -> bool: ...
    @property
    def pause(self) -> PausePolicy | None: ...
    @property
    def timeouts(self) -> Mapping[str, float]: ...
    @property
    def declared_touches(self) -> Mapping[str, PlanTouches]: ...
    @property
    def device_addresses(self) -> Mapping[str, tuple[str, ...]]: ...


class PlanNews(Value):
    """What a worker last heard of a plan that it waits for."""

    name: str
    key: UUID
    job_id: str
    environment: str | None
    phase: str | None
    message: str
    run_uids: tuple[str, ...]
    answered_at: datetime | None
    changed_at: datetime


class SubmittedPlan(NamedTuple):
    """A step that had a Bluesky plan carried out: its procedure, and the key of its submission."""

    procedure_id: UUID
    submission_key: UUID


class PlanStepPort(Protocol):
    """Knows the steps that have Bluesky plans carried out."""

    async def submitted_plan(self, submission_key: str | None, task_id: str | None) -> SubmittedPlan | None:
        """Return the step that was submitted under this key, or as this task of a blueapi."""


class PlanNotAllowedError(Conflict, context="operation", reason="plan_not_allowed"):
    """A step has a Bluesky plan carried out that its executor does not offer here."""


class PlanParametersInvalidError(Invalid, context="operation", reason="plan_parameters"):
    """The parameters of a Bluesky plan do not satisfy its schema."""


class PlanName(str):
    """The name of an action that is a Bluesky plan."""

    @property
    def executor(self) -> str:
        return self.removeprefix(PLAN_PREFIX).partition("/")[0]

    @property
    def plan(self) -> str:
        return self.removeprefix(PLAN_PREFIX).partition("/")[2]


def plan_name(step: RecipeStep) -> PlanName | None:
    """Return the plan that a step has carried out; None where it is no such step."""
    is_plan = isinstance(step, RecipeActionStep) and step.name.startswith(PLAN_PREFIX)
    return PlanName(step.name) if isinstance(step, RecipeActionStep) and is_plan else None


def plan_timeout(declared: Iterable[DeclaredPlanExecutor], name: PlanName, default: float) -> float:
    """Return how many seconds a plan may take, by the settings of its executor."""
    found = (one.timeouts.get(name.plan) for one in declared if one.name == name.executor)
    return next((seconds for seconds in found if seconds is not None), default)


@dataclass(frozen=True)
class KnownExecutor:
    """An executor by its settings and by what it was heard to offer."""

    declared: DeclaredPlanExecutor
    catalogue: PlanExecutorCatalogue | None

    def touches(self, plan: str) -> tuple[PlanTouches, str] | None:
        """Return what a plan touches, and whether settings or docstring say so; None where neither does."""
        if (told := self.declared.declared_touches.get(plan)) is not None:
            return told, "settings"
        offered = None if self.catalogue is None else self.catalogue.find_plan(plan)
        return None if offered is None or offered.touches is None else (offered.touches, "docstring")

    def addresses(self, named: str, params: Mapping[str, object]) -> tuple[str, ...]:
        """Return the addresses that a parameter, or a device, stands for."""
        value = params.get(named, named)
        devices = value if isinstance(value, list | tuple) else (value,)
        if not all(isinstance(device, str) for device in devices):
            raise ValueError(f"{named} names no device")
        known = self.declared.device_addresses
        return tuple(one for device in devices for one in known.get(str(device), (f"ophyd:{device}",)))


@dataclass(frozen=True)
class PlanSteps:
    """The Bluesky plans among the steps of a procedure, with what is known of their executors."""

    located: tuple[tuple[StepLocation, RecipeActionStep], ...] = ()
    executors: Mapping[str, KnownExecutor] | None = None
    now: datetime | None = None

    def executor(self, name: PlanName) -> KnownExecutor | None:
        """Return the executor of a plan; None where there is none of this name."""
        return (self.executors or {}).get(name.executor)

    @property
    def digests(self) -> dict[str, str]:
        """The digests of the plans as they are offered now, by the names of the actions."""
        found: dict[str, str] = {}
        for _, step in self.located:
            executor = self.executor(PlanName(step.name))
            if executor is not None and executor.catalogue is not None:
                offered = executor.catalogue.find_plan(PlanName(step.name).plan)
                found |= {} if offered is None else {step.name: offered.digest}
        return found


def load_plan_steps(steps: Expansion, call: Call) -> Reads[PlanSteps]:
    """Load what is known of the executors of these steps; nothing where none of them is a plan."""
    located = located_steps(steps.steps, steps.closing_steps)
    plans = tuple((place, one) for place, one in located if isinstance(one, RecipeActionStep) and plan_name(one))
    if not plans:
        return PlanSteps()
    return PlanSteps(plans, (yield from known_executors({PlanName(step.name).executor for _, step in plans})), call.now)


def known_executors(names: Iterable[str]) -> Reads[dict[str, KnownExecutor]]:
    """Return the executors of these names, as far as the deployment declares them."""
    wanted = set(names)
    deployment = yield from ask(DeploymentPort.deployment)
    declared = {one.name: one for one in deployment.plan_executors if one.name in wanted}
    rows = (yield from records_of(PlanExecutorCatalogue, executor=tuple(sorted(declared)))) if declared else ()
    heard = {row.executor: row for row in rows}
    return {name: KnownExecutor(one, heard.get(name)) for name, one in declared.items()}


def refuse_unknown_plans(plans: PlanSteps) -> None:
    """Refuse a plan that the deployment does not allow, whose executor was not heard of late, or that is not there."""
    for place, step in plans.located:
        name = PlanName(step.name)
        executor = plans.executor(name)
        if executor is None:
            why, reason = "no executor of this name is configured; add it to PLAN_EXECUTORS", "executor_unknown"
        elif name.plan not in executor.declared.timeouts:
            why, reason = "this deployment does not allow it; have it added to the `plans` of its executor", "not_allowed"
        elif (catalogue := executor.catalogue) is None or catalogue.heard_at is None:
            why, reason = "its executor has not answered yet; see that it runs, and that a worker does", "not_heard"
        elif plans.now is not None and plans.now - catalogue.heard_at > HEARD_OF_LATE:
            at = f"{catalogue.heard_at:%H:%M:%S} UTC"
            why, reason = f"its executor was last heard at {at}; see that it runs, and that a worker does", "not_heard"
        elif name.plan not in catalogue.plans:
            why, reason = "its executor does not offer it; open its environment, or correct the name", "plan_missing"
        else:
            continue
        facts = {"executor": name.executor, "plan": name.plan, "step": place._asdict()}
        raise PlanNotAllowedError(f"{place} has {shorten(name)} carried out: {why}.", reason=reason, facts=facts)


def refuse_invalid_parameters(plans: PlanSteps) -> None:
    """Refuse parameters that the schema of their plan does not accept."""
    for place, step in plans.located:
        name = PlanName(step.name)
        executor = plans.executor(name)
        offered = None if executor is None or executor.catalogue is None else executor.catalogue.find_plan(name.plan)
        if offered is None:
            continue
        params: dict[str, JsonValue] = step.model_dump(mode="json")["params"]
        for violation in violations_of(offered.parameters_schema, params):
            at = ".".join(violation.place)
            facts = {"executor": name.executor, "plan": name.plan, "path": at, "step": place._asdict()}
            detail = f"{place} has {shorten(name)} carried out: its parameter {shorten(at)} {violation.sentence}."
            raise PlanParametersInvalidError(detail, facts=facts)


def parse_touches(description: str | None) -> tuple[PlanTouches | None, frozenset[str]]:
    """Return what the line `Baton: writes=motor:start:stop,shutter reads=detectors gated` of a docstring's first paragraph
    declares, and its other words; nothing where there is none."""
    paragraph = (description or "").strip().split("\n\n")[0]
    line = next((one.strip() for one in paragraph.splitlines() if one.strip().startswith("Baton:")), None)
    if line is None:
        return None, frozenset()
    words = line.removeprefix("Baton:").split()
    said = dict(word.split("=", 1) for word in words if "=" in word)
    others = frozenset(word for word in words if word.partition("=")[0] not in TOUCHES_WORDS)
    if not said.keys() & set(TOUCHES_WORDS):
        return None, others
    writes = [entry.split(":") for entry in said.get("writes", "").split(",") if entry]
    reads = tuple(entry.split(":")[0] for entry in said.get("reads", "").split(",") if entry)
    return PlanTouches(writes={name: tuple(values) for name, *values in writes}, reads=reads), others


class TouchedNames(Value):
    """The signals that a Bluesky plan touches, and who says so."""

    writes: tuple[str, ...]
    """The parameters or devices that it writes."""
    reads: tuple[str, ...]
    """The parameters or devices that it only reads."""
    declared_by: str
    """Whether the settings or the docstring of the plan declare it."""


class OfferedPlanView(Value):
    """One Bluesky plan that steps may have carried out."""

    name: str
    """The name of the action, for a step."""
    offered: bool
    """Whether the executor offers it."""
    description: str | None
    """What its docstring says."""
    parameters_schema: dict[str, Any] | None
    """The schema of its parameters; null where the executor does not offer it."""
    touches: TouchedNames | None
    """What it touches; null where nobody declares it, so that it counts as a write to a signal that nobody owns."""


class PlanExecutorView(Value):
    """One executor of Bluesky plans, as a worker last heard it."""

    executor: str
    """Its name in PLAN_EXECUTORS."""
    kind: str
    """Which kind of executor it is."""
    simulated: bool
    exclusive: bool
    """Whether the service holds its lock, so that nobody else can begin anything there."""
    answers: bool
    """Whether it answered when it was last asked."""
    heard_at: datetime | None
    """When it last answered."""
    age_seconds: Annotated[float | None, Field(description="Seconds since it last answered.")]
    trouble: str | None
    """Why it did not answer when it was last asked."""
    version: str | None
    """Which release it says it is."""
    environment: str | None
    """The environment that is open there; null where none is."""
    plans: tuple[OfferedPlanView, ...]
    """The Bluesky plans that the settings allow."""
    not_allowed: tuple[str, ...]
    """The names of further plans that it offers."""


class PlanExecutors(Value):
    """Every executor of the settings; there are so few that they come on one page."""

    items: tuple[PlanExecutorView, ...]
    next_cursor: None = None


@standalone_query("/plan-executors", context="operation", returns=PlanExecutors)
class ListPlanExecutors(Query[PlanExecutors]):
    """The executors of Bluesky plans, whether they answer, and what each plan takes and touches."""

    executor: Annotated[str | None, Field(min_length=1, max_length=50, description="Only the executor of this name.")] = None

    def answer(self, call: Call) -> Reads[PlanExecutors]:
        declared = (yield from ask(DeploymentPort.deployment)).plan_executors
        known = yield from known_executors(one.name for one in declared if self.executor in (None, one.name))
        return PlanExecutors(items=tuple(executor_view(one, call.now) for one in known.values()))


def executor_view(known: KnownExecutor, now: datetime) -> PlanExecutorView:
    """Return what is shown of an executor."""
    declared, row = known.declared, known.catalogue
    heard_at = None if row is None else row.heard_at
    return PlanExecutorView(
        executor=declared.name,
        kind=str(declared.kind),
        simulated=declared.simulated,
        exclusive=declared.exclusive,
        answers=row is not None and row.heard_at is not None and row.trouble is None,
        heard_at=heard_at,
        age_seconds=None if heard_at is None else max(0.0, (now - heard_at).total_seconds()),
        trouble=None if row is None else row.trouble,
        version=None if row is None else row.version,
        environment=None if row is None else row.environment,
        plans=tuple(plan_views(known)),
        not_allowed=() if row is None else tuple(sorted(row.plans.keys() - set(declared.timeouts))),
    )


def plan_views(known: KnownExecutor) -> Iterator[OfferedPlanView]:
    """Yield what is shown of each plan that the settings allow."""
    for plan in sorted(known.declared.timeouts):
        offered = None if known.catalogue is None else known.catalogue.find_plan(plan)
        told = known.touches(plan)
        names = None
        if told is not None:
            names = TouchedNames(writes=tuple(told[0].writes), reads=told[0].reads, declared_by=told[1])
        yield OfferedPlanView(
            name=f"{PLAN_PREFIX}{known.declared.name}/{plan}",
            offered=offered is not None,
            description=None if offered is None else offered.description,
            parameters_schema=None if offered is None else offered.parameters_schema,
            touches=names,
        )
