"""What a target is refused for before its turn comes: references that lead nowhere, names, and bindings that do not fit.
The caller gives the class that refuses: of schedules it is another than of queues."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from baton.domain.calibration.calibration import require_revisions
from baton.domain.decision.decision import Decision
from baton.domain.kernel import Call, Command
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.lifecycle import Template
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.practice import Practice
from baton.domain.recipe.recipe import Recipe
from baton.domain.recipe.step_actions import KnownActions
from baton.domain.recipe.template_versions import TemplateVersion, versions_digest, versions_of
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.reads import Reads, find_all, require_all
from baton.domain.shared.refusals import Conflict, Invalid, Refusal, Unprocessable
from baton.domain.start.run_start import MAX_PINS
from baton.domain.target.targets import COUNT, FIRED_AT, MAX_NAME_LENGTH, ConductPlan, ConductRecipe, filled_name, recipes_of


class TargetTemplates(NamedTuple):
    """The templates that targets name: recipes and plans, and the practices and methods of these."""

    recipes: dict[UUID, Recipe]
    plans: dict[UUID, Plan]
    practices: dict[UUID, Practice]
    methods: dict[UUID, Method]

    def of(self, target: ConductRecipe | ConductPlan) -> tuple[Template, ...]:
        """Return the templates that a target is conducted with."""
        found: list[Template | None] = [self.recipes.get(one.recipe_id) for one in recipes_of(target)]
        if isinstance(target, ConductPlan) and (plan := self.plans.get(target.plan_id)) is not None:
            practice = self.practices.get(plan.practice_id)
            found += [plan, practice, self.methods.get(plan.method_id if practice is None else practice.method_id)]
        return tuple({one.id: one for one in found if one is not None}.values())


def load_templates(targets: Collection[ConductRecipe | ConductPlan]) -> Reads[TargetTemplates]:
    """Load the templates that targets name."""
    recipes = yield from find_all(Recipe, sorted({one.recipe_id for target in targets for one in recipes_of(target)}))
    plans = yield from find_all(Plan, sorted({one.plan_id for one in targets if isinstance(one, ConductPlan)}))
    practices = yield from find_all(Practice, sorted({plan.practice_id for plan in plans.values()}))
    methods = yield from find_all(Method, sorted({practice.method_id for practice in practices.values()}))
    return TargetTemplates(recipes, plans, practices, methods)


class TargetSources(NamedTuple):
    """What targets refer to: their templates, and the capabilities of those that are conducted without a run."""

    templates: TargetTemplates
    capabilities: dict[UUID, Capability]

    def versions(self, target: ConductRecipe | ConductPlan) -> tuple[TemplateVersion, ...]:
        """Return the present versions of the templates that a target is conducted with."""
        return versions_of(self.templates.of(target))


def load_sources(targets: Collection[ConductRecipe | ConductPlan]) -> Reads[TargetSources]:
    """Load what targets refer to; refuse with 404 what is missing."""
    plans = [target for target in targets if isinstance(target, ConductPlan)]
    yield from require_all(Plan, [plan.plan_id for plan in plans])
    yield from require_revisions(frozenset(id for plan in plans for id in plan.pinned_calibration_ids))
    decided = [plan.decided_by_decision_id for plan in plans if plan.decided_by_decision_id is not None]
    yield from require_all(Decision, decided)
    recipes = yield from require_all(Recipe, [one.recipe_id for target in targets for one in recipes_of(target)])
    alone = {target.recipe_id for target in targets if isinstance(target, ConductRecipe)}
    capabilities = yield from find_all(Capability, sorted({recipes[id].capability_id for id in alone}))
    return TargetSources((yield from load_templates(targets)), capabilities)


def confirmed_versions(command: Command, digest: str, present: tuple[TemplateVersion, ...]) -> tuple[TemplateVersion, ...]:
    """Return the present versions, which somebody confirms; refuse where these are not those that were looked at."""
    if digest != versions_digest(present):
        detail = "What this names has changed again since you looked; look at the differences, and confirm what they show."
        raise command.cannot("changed_since", detail)
    return present


def check_target(target: ConductRecipe | ConductPlan, sources: TargetSources, call: Call, invalid: type[Refusal]) -> None:
    """Refuse a target that could never be carried out."""
    check_form(target, call.now, invalid)
    if isinstance(target, ConductRecipe):
        recipe = sources.templates.recipes[target.recipe_id]
        if (capability := sources.capabilities.get(recipe.capability_id)) is not None:
            check_bindings(target, recipe, capability, call, invalid)


def check_form(target: ConductRecipe | ConductPlan, now: datetime, invalid: type[Refusal]) -> None:
    """Refuse names, steps, phases, pins and references by which nothing could be conducted."""
    for one in recipes_of(target):
        check_name(one.name, now, invalid)
        if getattr(one.arrangement, "steps", ()):
            detail = "A recipe brings its own steps; leave out the steps of its conduct."
            raise invalid(detail, reason="steps_forbidden")
    if isinstance(target, ConductPlan):
        if not target.name.strip():
            raise invalid("The name of the run is blank; give it at least one visible character.", reason="blank")
        check_name(target.name, now, invalid)
        if not target.phases:
            detail = "A run without phases has nothing to conduct; list at least one phase."
            raise invalid(detail, reason="phases_missing")
        if (count := len(target.pinned_calibration_ids)) > MAX_PINS:
            detail = f"A run pins at most {MAX_PINS} calibration revisions, and {count} are given."
            raise invalid(detail, reason="too_many")
        trimmed_refs(target.external_refs, invalid)


def check_name(name: str, now: datetime, invalid: type[Refusal]) -> None:
    """Refuse a name that cannot be filled in, or not within its length."""
    if unknown := sorted(set(re.findall(r"{[^{}]*}", name)) - {FIRED_AT, COUNT}):
        detail = f"Nothing is known to be filled in for {unknown[0]}; use {FIRED_AT} or {COUNT}."
        raise invalid(detail, reason="unknown_placeholder", facts={"placeholders": unknown})
    if len(filled_name(name, now, 10**9)) > MAX_NAME_LENGTH:
        detail = f"Filled in, the name {name!r} is longer than {MAX_NAME_LENGTH} characters; shorten it."
        raise invalid(detail, reason="too_long")


def check_bindings(
    target: ConductRecipe, recipe: Recipe, capability: Capability, call: Call, invalid: type[Refusal]
) -> None:
    """Refuse bindings that the recipe cannot be expanded with; whether it is in service is asked in its turn."""
    try:
        registration = target.registration()
        registration.decide(call, registration.source(recipe, capability, {}, frozenset(), KnownActions()))
    except (Invalid, Unprocessable) as refusal:
        cause: dict[str, object] = {"code": refusal.code, "reason": refusal.reason}
        facts = {"cause": cause, **(refusal.facts or {})}
        raise invalid(refusal.detail, reason="bindings_unfit", facts=facts) from None
    except Conflict:
        return
