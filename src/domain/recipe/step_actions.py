"""The actions that steps name: which there are, and whether one accepts the parameters of a step. A process knows those of
the packages that are installed beside it; a worker keeps a row of those that it has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from baton.domain.kernel import Call, Query, Value
from baton.domain.recipe.offered_plans import PLAN_PREFIX, OfferedPlan, PlanExecutorCatalogue, PlanTouches
from baton.domain.recipe.steps import BindingRef, RecipeActionStep, RecipeStep, StepLocation, located_steps, references
from baton.domain.registry import standalone_query
from baton.domain.shared.action_signals import ActionForecast, ActionSignals
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.json_schema import map_levels
from baton.domain.shared.reads import Reads, ask, record_of
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.schema import KEYWORDS, Schema, violations_of
from baton.domain.shared.text import shorten

JUDGED = KEYWORDS | {"default"}  # What a schema may say that values are judged by.
OWN_ACTIONS = "@actions"  # The row of what workers have themselves; no executor of the settings can be called so.


class ActionNotOfferedError(Conflict, context="recipe", reason="action_unknown"):
    """A step names an action that no worker has."""


class ActionParametersInvalidError(Invalid, context="recipe", reason="action_parameters"):
    """A step gives an action parameters that it does not accept."""


@dataclass(frozen=True)
class KnownActions:
    """The actions that this process has, and the row of those that a worker has; None where no worker has reported."""

    own: Mapping[str, ActionSignals] = field(default_factory=dict)
    reported: PlanExecutorCatalogue | None = None

    @cached_property
    def offers(self) -> dict[str, OfferedPlan]:
        """What is known of every action, by its name."""
        rows = {} if self.reported is None else self.reported.plans
        return {name: OfferedPlan.model_validate(row) for name, row in rows.items()} | {
            name: offered_action(signals) for name, signals in self.own.items()
        }

    def is_offered(self, name: str) -> bool | None:
        """Return whether there is an action; None where nobody has reported."""
        return True if name in self.own else None if self.reported is None else name in self.reported.plans

    def objection(self, step: RecipeActionStep) -> str | None:
        """Return the sentence by which an action would refuse the parameters of a step; None where nobody knows of any."""
        params = sent_params(step)
        own = self.own.get(step.name)
        if own is not None and (said := forecast(own, params)) is not None:
            return None if said.refusal is None else said.refusal[1]
        offer = self.offers.get(step.name)
        found = () if offer is None else violations_of(judged_part(offer.parameters_schema), params)
        return next((f"Its parameter {shorten('.'.join(one.place))} {one.sentence}." for one in found), None)


def offered_action(signals: ActionSignals | None, description: str | None = None) -> OfferedPlan:
    """Return the offer of an action, by what it declares."""
    signals = signals or ActionSignals(description=description)
    schema = {} if signals.parameters is None else without_titles(signals.parameters())
    return OfferedPlan(
        digest=content_hash(schema),
        description=signals.description,
        parameters_schema=schema,
        touches=PlanTouches(writes=dict.fromkeys(signals.writes, ()), reads=signals.reads),
    )


def without_titles(schema: Mapping[str, Any]) -> Schema:
    """Return a schema without the titles that programs give to properties by themselves."""
    plain: Schema = map_levels(dict(schema), lambda level: {key: part for key, part in level.items() if key != "title"})
    return plain


def judged_part(schema: Schema) -> Schema:
    """Return a schema that values can be judged by: a level that says more than schemas may say here accepts anything."""
    judged: Schema = map_levels(schema, lambda level: level if level.keys() <= JUDGED else {})
    return judged


def forecast(signals: ActionSignals, params: Mapping[str, Any]) -> ActionForecast | None:
    """Return what an action says that it would do; None where it does not say, or fails to."""
    try:
        return None if signals.rehearse is None else signals.rehearse(params)
    except Exception:  # A site's own code.
        return None


def action_steps(
    steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep]
) -> Iterator[tuple[StepLocation, RecipeActionStep]]:
    """Yield the steps that name an action of a worker, which a Bluesky plan is not."""
    for place, step in located_steps(steps, closing_steps):
        if isinstance(step, RecipeActionStep) and not step.name.startswith(PLAN_PREFIX):
            yield place, step


def sent_params(step: RecipeActionStep) -> dict[str, Any]:
    """Return the parameters of a step as its action is given them."""
    params: dict[str, Any] = step.model_dump(mode="json")["params"]
    return params


def action_names(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep]) -> set[str]:
    """Return the names of the actions that steps name."""
    return {step.name for _, step in action_steps(steps, closing_steps)}


def sent_action_names(raw: Iterable[object]) -> set[str]:
    """Return the names of the actions in steps as they were sent, as far as those have the form of one."""
    steps = (item for item in raw if isinstance(item, Mapping) and item.get("kind") == "action")
    return {name for step in steps if isinstance(name := step.get("name"), str) and not name.startswith(PLAN_PREFIX)}


def load_actions(names: Set[str]) -> Reads[KnownActions]:
    """Load what is known of these actions; nothing where there are none."""
    if not names:
        return KnownActions()
    own = (yield from ask(DeploymentPort.deployment)).action_signals
    reported = None if names <= own.keys() else (yield from record_of(PlanExecutorCatalogue, executor=OWN_ACTIONS))
    return KnownActions(own, reported)


def check_actions(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], known: KnownActions) -> None:
    """Refuse a step that names no action, or whose action does not accept its parameters, as far as both are known."""
    for place, step in action_steps(steps, closing_steps):
        facts: dict[str, Any] = {"action": step.name, **place._asdict()}
        if known.is_offered(step.name) is False:
            names = sorted(known.offers)
            detail = f"{place} names the action {shorten(step.name)}, which no worker has; there are {', '.join(names)}."
            raise ActionNotOfferedError(detail, facts={**facts, "actions": names})
        if any(references(step, BindingRef)) or (objection := known.objection(step)) is None:
            continue
        detail = f"{place}: {step.name} does not accept its parameters. {objection} {parameter_names(known, step.name)}"
        raise ActionParametersInvalidError(detail, facts=facts)


def parameter_names(known: KnownActions, name: str) -> str:
    """Return the sentence on the parameters that an action has."""
    schema = known.offers[name].parameters_schema
    names = [f"{one}{'' if one in schema.get('required', ()) else ' (optional)'}" for one in schema.get("properties", {})]
    return f"It has {', '.join(names)}; see list_actions." if names else "See list_actions."


def unconfirmed_actions(steps: Sequence[RecipeStep], closing_steps: Sequence[RecipeStep], known: KnownActions) -> str | None:
    """Return a remark on the actions that nobody can tell to be there; None where there are none."""
    names = sorted({step.name for _, step in action_steps(steps, closing_steps) if known.is_offered(step.name) is None})
    return f"No worker has reported its actions, so nobody knows whether it has {', '.join(names)}." if names else None


class ActionView(Value):
    """One action that steps can name."""

    name: str
    """The name of the action, for a step."""
    description: str | None
    """What it does."""
    parameters_schema: dict[str, Any] | None
    """The schema of its parameters; null where it declares none."""
    writes: tuple[str, ...]
    """Its parameters that hold the addresses it writes to."""
    reads: tuple[str, ...]
    """Its parameters that hold the addresses it only reads."""
    offered: bool | None
    """Whether a worker has it; null where no worker has reported."""


class StepActions(Value):
    """Every action that steps can name, and the programs; there are so few that they come on one page."""

    items: tuple[ActionView, ...]
    programs: tuple[str, ...]
    """The programs that compute steps may run here."""
    heard_at: datetime | None
    """When a worker last reported its actions."""
    next_cursor: None = None


@standalone_query("/actions", context="recipe", returns=StepActions)
class ListActions(Query[StepActions]):
    """The actions that steps can name, each with its parameters, and the programs that are allowed.

    list_plan_executors has the Bluesky plans."""

    name: Annotated[str | None, Field(min_length=1, max_length=100, description="Only the action of this name.")] = None

    def answer(self, call: Call) -> Reads[StepActions]:
        deployment = yield from ask(DeploymentPort.deployment)
        reported = yield from record_of(PlanExecutorCatalogue, executor=OWN_ACTIONS)
        known = KnownActions(deployment.action_signals, reported)
        offers = {name: offer for name, offer in sorted(known.offers.items()) if self.name in (None, name)}
        return StepActions(
            items=tuple(action_view(name, offer, reported) for name, offer in offers.items()),
            programs=tuple(sorted(deployment.compute_programs)),
            heard_at=None if reported is None else reported.heard_at,
        )


def action_view(name: str, offer: OfferedPlan, reported: PlanExecutorCatalogue | None) -> ActionView:
    """Return what is shown of an action."""
    touches = offer.touches or PlanTouches()
    return ActionView(
        name=name,
        description=offer.description,
        parameters_schema=offer.parameters_schema or None,
        writes=tuple(touches.writes),
        reads=touches.reads,
        offered=None if reported is None else name in reported.plans,
    )
