"""From a plan to a run that is conducted, and from a recipe to a procedure that is: the several calls that one wish takes,
as exchanges."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from baton.client.exchanges import ClientSession, Exchange
from baton.client.index import OPERATIONS
from baton.client.refusals import ClientError, Refusal

if TYPE_CHECKING:
    from baton.client.operations import DryRun, Preflight, RunStartedAnswer

PLAN, RECIPE = "Plan", "Recipe"
DEPRECATED = "Deprecated"
LONGEST_KIND = 50
LONGEST_NAME = 200
LONGEST_REASON = 500
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


def call(session: ClientSession, operation: str, /, **arguments: Any) -> Exchange[Any]:
    """Call an operation by its name."""
    return session.call(OPERATIONS[operation], arguments)


def run_request(
    session: ClientSession, plan: Reference, options: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Exchange[dict[str, Any]]:
    """Return the arguments that start a run on a plan, or ask whether it may start: its parameters, what else start_run
    takes, and a name made of the plan's where none is given."""
    plan_id = yield from session.id_of(PLAN, plan)
    request = {"plan_id": plan_id, "override_parameters": dict(parameters)}
    request |= {name: value for name, value in options.items() if value is not None}
    if "name" not in request:
        view = yield from call(session, "get_plan", plan_id=plan_id)
        request["name"] = timed_name(view.name)
    return request


def preflight_plan(
    session: ClientSession, plan: Reference, options: Mapping[str, Any], parameters: Mapping[str, Any]
) -> "Exchange[Preflight]":
    """Ask whether a run on a plan could start now."""
    request = yield from run_request(session, plan, options, parameters)
    verdict: Preflight = yield from call(session, "preflight_run", **request)
    return verdict


def start_plan(
    session: ClientSession,
    plan: Reference,
    chosen: Sequence[Reference] | None,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> "Exchange[RunStartedAnswer]":
    """Start a run on a plan, register a procedure of each recipe as its phase, and have the phases conducted in order.

    Where a phase is refused after the run has started, the run is stopped again.
    """
    request = yield from run_request(session, plan, options, parameters)
    found = yield from load_plan(session, request["plan_id"], chosen)
    started: RunStartedAnswer = yield from call(session, "start_run", **request)
    run_id, registered = started.run_id, []
    try:
        for recipe_id, name in found.phases:
            phase = yield from call(
                session,
                "register_procedure_from_recipe",
                recipe_id=recipe_id,
                name=name,
                kind=found.procedure_kind,
                target_asset_ids=found.plan.asset_ids,
                parent_run_id=run_id,
            )
            registered.append(phase.procedure_id)
        yield from call(session, "conduct_run", run_id=run_id, procedure_ids=registered, wait=0)
    except Refusal as refusal:
        refusal.add_note((yield from stop_started(session, run_id, refusal)))
        raise
    return started


def stop_started(session: ClientSession, run_id: UUID, cause: Refusal) -> Exchange[str]:
    """Stop a run that cannot be conducted; return what became of it, in a sentence."""
    reason = f"Its conduct was refused: {cause.detail}"[:LONGEST_REASON]
    try:
        yield from call(session, "stop_run", run_id=run_id, reason=reason)
    except Refusal as refusal:
        return f"The run {run_id} had started and is still on record as it is: {refusal.detail}"
    return f"The run {run_id} had started and was stopped again."


def load_plan(session: ClientSession, plan_id: UUID, chosen: Sequence[Reference] | None) -> Exchange[PlanToConduct]:
    """Return a plan with its method and the recipes of its phases: those chosen, or the only one that fits."""
    view = yield from call(session, "get_plan", plan_id=plan_id)
    method = yield from call(session, "get_method", method_id=view.method_id)
    capability = yield from call(session, "get_capability", capability_id=method.capability_id)
    rows = yield from session.rows(OPERATIONS["list_recipes"], {"capability_id": method.capability_id})
    phases = yield from chosen_recipes(session, view.name, [row for row in rows if row.status != DEPRECATED], chosen)
    return PlanToConduct(view, method, kind_of(capability.code), phases)


def chosen_recipes(
    session: ClientSession, plan: str, candidates: Sequence[Any], chosen: Sequence[Reference] | None
) -> Exchange[list[tuple[UUID, str]]]:
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


def conduct_recipe(
    session: ClientSession,
    recipe: Reference,
    assets: Sequence[Reference],
    options: Mapping[str, Any],
    bindings: Mapping[str, Any],
) -> Exchange[UUID]:
    """Register a procedure of a recipe on these assets and have it conducted; return its id."""
    request = yield from procedure_request(session, recipe, assets, options, bindings)
    registered = yield from call(session, "register_procedure_from_recipe", **request)
    yield from call(session, "conduct_procedure", procedure_id=registered.procedure_id, wait=0)
    procedure_id: UUID = registered.procedure_id
    return procedure_id


def try_request(session: ClientSession, operation: str, request: Exchange[dict[str, Any]]) -> "Exchange[DryRun]":
    """Return what the first command of a launch would record; what follows needs what it makes, and is not tried."""
    would: DryRun = yield from session.call(OPERATIONS[operation], (yield from request), dry_run=True)
    return would


def procedure_request(
    session: ClientSession,
    recipe: Reference,
    assets: Sequence[Reference],
    options: Mapping[str, Any],
    bindings: Mapping[str, Any],
) -> Exchange[dict[str, Any]]:
    """Return the arguments that register a procedure of a recipe; name and kind are made of the recipe's where not given."""
    recipe_id = yield from session.id_of(RECIPE, recipe)
    request = {"recipe_id": recipe_id, "target_asset_ids": list(assets), "bindings": dict(bindings)}
    request |= {name: value for name, value in options.items() if value is not None}
    if not {"name", "kind"} <= request.keys():
        view = yield from call(session, "get_recipe", recipe_id=recipe_id)
        capability = yield from call(session, "get_capability", capability_id=view.capability_id)
        request = {"name": timed_name(view.name), "kind": kind_of(capability.code), **request}
    return request


def timed_name(name: str) -> str:
    """Return a name for what is made of something of this name now."""
    moment = f", {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    return name[: LONGEST_NAME - len(moment)] + moment


def kind_of(capability_code: str) -> str:
    """Return the kind of a procedure that realises a capability: the last part of its code."""
    return capability_code.rsplit(".", 1)[-1][:LONGEST_KIND]
