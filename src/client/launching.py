"""Launches of plans and recipes by their names, and what plans and recipes say of themselves, as exchanges."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from baton.client.exchanges import CallScript, ClientSession
from baton.client.index import OPERATIONS
from baton.client.refusals import ClientError, Refusal

if TYPE_CHECKING:
    from baton.client.operations import Preflight

PLAN, RECIPE = "Plan", "Recipe"
LAUNCH, CHOICE_NEEDED = "launch", "recipe_choice_needed"
DEPRECATED = "Deprecated"
LONGEST_KIND = 50
LONGEST_NAME = 200
Reference = str | UUID  # a name or an id


class RecipeChoiceError(ClientError, LookupError):
    """A plan does not say by itself which recipes its run conducts; `candidates` are those of its capability."""

    def __init__(self, detail: str, candidates: dict[str, str]) -> None:
        super().__init__(detail)
        self.candidates = candidates


class PlanToConduct(NamedTuple):
    """A plan, its method, and what is registered for a run on it: the kind of the procedures, and their recipes."""

    plan: Any
    method: Any
    procedure_kind: str
    phases: list[tuple[UUID, str]]  # the ids of the recipes with their names


def call(session: ClientSession, operation: str, /, **arguments: Any) -> CallScript[Any]:
    """Call an operation by its name."""
    return session.call(OPERATIONS[operation], arguments)


def run_request(
    session: ClientSession, plan: Reference, options: Mapping[str, Any], parameters: Mapping[str, Any]
) -> CallScript[dict[str, Any]]:
    """Return the arguments that ask whether a run may start on a plan: its parameters, what else preflight_run takes, and a
    name made of the plan's where none is given."""
    plan_id = yield from session.id_of(PLAN, plan)
    request = {"plan_id": plan_id, "override_parameters": dict(parameters), **given_options(options)}
    if "name" not in request:
        view = yield from call(session, "get_plan", plan_id=plan_id)
        request["name"] = timed_name(view.name)
    return request


def preflight_plan(
    session: ClientSession, plan: Reference, options: Mapping[str, Any], parameters: Mapping[str, Any]
) -> "CallScript[Preflight]":
    """Ask whether a run on a plan could start now."""
    request = yield from run_request(session, plan, options, parameters)
    verdict: Preflight = yield from call(session, "preflight_run", **request)
    return verdict


def rehearse_plan(
    session: ClientSession,
    plan: Reference,
    chosen: Sequence[Reference] | None,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
    how: Mapping[str, Any],
) -> CallScript[Any]:
    """Rehearse a run on a plan with these recipes as its phases, or with the only one that fits."""
    plan_id = yield from session.id_of(PLAN, plan)
    found = yield from load_plan(session, plan_id, chosen)
    own = {"procedure_kind": found.procedure_kind, "target_asset_ids": list(found.plan.asset_ids)}
    target = {
        "kind": "ConductPlan",
        "plan_id": plan_id,
        "name": found.plan.name,
        "override_parameters": dict(parameters),
        "phases": [{"recipe_id": recipe_id, "name": name, **own} for recipe_id, name in found.phases],
        **given_options(options),
    }
    return (yield from call(session, "rehearse", target=target, **given_options(how)))


def rehearse_recipe(
    session: ClientSession,
    recipe: Reference,
    assets: Sequence[Reference],
    bindings: Mapping[str, Any],
    how: Mapping[str, Any],
) -> CallScript[Any]:
    """Rehearse a recipe on these assets, as a procedure of its own."""
    recipe_id = yield from session.id_of(RECIPE, recipe)
    view = yield from call(session, "get_recipe", recipe_id=recipe_id)
    asset_ids = []
    for asset in assets:
        asset_id = yield from session.id_of("Asset", asset)
        asset_ids.append(asset_id)
    target = {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": view.name, "bindings": dict(bindings)}
    target["target_asset_ids"] = asset_ids
    return (yield from call(session, "rehearse", target=target, **given_options(how)))


def launch_plan(
    session: ClientSession,
    plan: Reference,
    chosen: Sequence[Reference] | None,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
    *,
    dry_run: bool = False,
) -> CallScript[Any]:
    """Launch a plan: a run with these recipes as its phases, or with the only one that fits."""
    plan_id = yield from session.id_of(PLAN, plan)
    request = {"plan_id": plan_id, "parameters": dict(parameters), **given_options(options)}
    if chosen is not None:
        found = yield from load_plan(session, plan_id, chosen)
        request["phases"] = [{"recipe_id": recipe_id} for recipe_id, _ in found.phases]
    try:
        return (yield from session.call(OPERATIONS[LAUNCH], request, dry_run=dry_run))
    except Refusal as refusal:
        if refusal.reason != CHOICE_NEEDED:
            raise
        raise RecipeChoiceError(refusal.detail, dict((refusal.facts or {})["candidates"])) from refusal


def launch_recipe(
    session: ClientSession,
    recipe: Reference,
    assets: Sequence[Reference],
    options: Mapping[str, Any],
    bindings: Mapping[str, Any],
    *,
    dry_run: bool = False,
) -> CallScript[Any]:
    """Launch a recipe on these assets, as a procedure of its own."""
    request = {"recipe_id": recipe, "target_asset_ids": list(assets), "bindings": dict(bindings), **given_options(options)}
    return (yield from session.call(OPERATIONS[LAUNCH], request, dry_run=dry_run))


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the options that are given."""
    return {name: value for name, value in options.items() if value is not None}


def load_plan(session: ClientSession, plan_id: UUID, chosen: Sequence[Reference] | None) -> CallScript[PlanToConduct]:
    """Return a plan with its method and the recipes of its phases: those chosen, or the only one that fits."""
    view = yield from call(session, "get_plan", plan_id=plan_id)
    method = yield from call(session, "get_method", method_id=view.method_id)
    capability = yield from call(session, "get_capability", capability_id=method.capability_id)
    rows = yield from session.rows(OPERATIONS["list_recipes"], {"capability_id": method.capability_id})
    phases = yield from chosen_recipes(session, view.name, [row for row in rows if row.status != DEPRECATED], chosen)
    return PlanToConduct(view, method, kind_of(capability.code), phases)


def chosen_recipes(
    session: ClientSession, plan: str, candidates: Sequence[Any], chosen: Sequence[Reference] | None
) -> CallScript[list[tuple[UUID, str]]]:
    """Return the recipes of the phases, ids with names: those chosen, or the only one that fits the plan."""
    names = {str(row.recipe_id): row.name for row in candidates}
    if chosen is None:
        if len(candidates) == 1:
            return [(candidates[0].recipe_id, candidates[0].name)]
        if not candidates:
            detail = f"No recipe realises what the plan {plan} is for; define one of its capability, or name recipes."
            raise RecipeChoiceError(detail, names)
        listed = "; ".join(f"{name} ({id})" for id, name in names.items())
        detail = f"{len(candidates)} recipes realise what the plan {plan} is for; name those to conduct, in order: {listed}."
        raise RecipeChoiceError(detail, names)
    found: list[tuple[UUID, str]] = []
    for one in chosen:
        fitting = [row.recipe_id for row in candidates if row.name == one]
        recipe_id = fitting[0] if len(fitting) == 1 else (yield from session.id_of(RECIPE, one))
        if (name := names.get(str(recipe_id))) is None:
            name = (yield from call(session, "get_recipe", recipe_id=recipe_id)).name
        found.append((recipe_id, name))
    return found


def timed_name(name: str) -> str:
    """Return a name for what is made of something of this name now."""
    moment = f", {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    return name[: LONGEST_NAME - len(moment)] + moment


def kind_of(capability_code: str) -> str:
    """Return the kind of a procedure that realises a capability: the last part of its code."""
    return capability_code.rsplit(".", 1)[-1][:LONGEST_KIND]
