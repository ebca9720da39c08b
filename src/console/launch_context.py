"""What the page of a launch shows besides its regions: the form with choices and the values of the last time, and the
judgement of what was typed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from baton.client.index import AGGREGATES
from baton.console.actions import MOST_OPTIONS, options_of
from baton.console.display import href_of, instant_of, words_of
from baton.console.forms import FormField, Option
from baton.console.judgement import Judgement, name_of
from baton.console.launch import Launchable, PlanLaunch, RecipeLaunch, is_proposed
from baton.console.launch_form import PARAMETERS, GivenLaunch, launch_form, read_launch, timed_name, typed_launch
from baton.console.page import Context
from baton.console.page_queries import PageQueries, Shown
from baton.console.queueing import CHOSEN, load_item, load_queueing, typed_values
from baton.console.rehearsals import NOT_REHEARSED
from baton.domain.conduct.procedure_views import GetProcedure
from baton.domain.contexts import REGISTRY
from baton.domain.procedure.procedure import ListProcedures, Procedure
from baton.domain.run.run import ListRuns
from baton.domain.run.run_views import GetRun
from baton.domain.subject.subject import IN_PLACE, ListSubjects
from baton.domain.target.start_launch import kind_of
from baton.domain.views.conduct_rehearsal import Rehearse

Row = Shown
RECENT, SEARCHED = 5, 50
KEPT = ("name", "subject_id", "campaign_id", "raid", "external_refs", "pinned_calibration_ids")
"""What a run that is started again with changes has as the earlier one had it, besides its parameters and phases."""
NOTHING: Row = {"items": ()}


async def recent_runs(queries: PageQueries, plan_id: str) -> Sequence[Row]:
    """Return the last runs of a plan, newest first."""
    page = await queries.show_if_permitted(ListRuns, plan_id=plan_id, order="desc", limit=RECENT) or NOTHING
    found: Sequence[Row] = page["items"]
    return found


async def load_last_run(queries: PageQueries, plan_id: str) -> None:
    """Ask about the last run of a plan, so that it is known when the form is made."""
    if recent := await recent_runs(queries, plan_id):
        await asyncio.gather(first_run(queries, recent), phases_of(queries, recent[0]["run_id"]))


async def plan_as_before(queries: PageQueries, launch: PlanLaunch) -> dict[str, str]:
    """Return what is typed into the form of a plan at first: its own parameters and the phases of its last run, or
    everything of the run or of the item of a queue that the address names."""
    plan, again = launch.plan, queries.query.get("from")
    values: dict[str, object] = {PARAMETERS: plan["default_parameters"]}
    earlier = await queries.show_found(GetRun, again) if again else None
    if earlier is not None:
        values = {name: earlier[name] for name in KEPT if earlier[name]}
        values[PARAMETERS] = {**plan["default_parameters"], **earlier["effective_parameters"]}
    if (item := await load_item(queries)) is not None and item["target"].get("plan_id") == plan["plan_id"]:
        own = typed_values(item["target"], plan["default_parameters"])
        return typed_launch(launch.shape, own, [one["recipe_id"] for one in item["target"]["phases"]], queries.zone)
    phases = await last_phases(queries, plan["plan_id"]) if earlier is None else await phases_of(queries, earlier["run_id"])
    return typed_launch(launch.shape, values, phases, queries.zone)


async def plan_context(queries: PageQueries, launch: PlanLaunch, typed: Mapping[str, str], **judged: object) -> Context:
    """Return what the page of a plan shows besides its regions."""
    recent = await recent_runs(queries, launch.plan["plan_id"])
    completed = [one for one in recent if one["status"] == "Completed"]
    last, done = await asyncio.gather(*(first_run(queries, runs) for runs in (recent, completed)))
    before = {} if last is None else {PARAMETERS: last["effective_parameters"], **names_in(last)}
    context = await form_context(queries, launch, typed, before, **judged)
    return {**context, "plan": launch.plan, "method": launch.method, "recipes": launch.recipes, "took": duration_of(done)}


async def first_run(queries: PageQueries, runs: Sequence[Row]) -> Row | None:
    """Return the first of these runs whole."""
    found: Row | None = await queries.show_found(GetRun, runs[0]["run_id"]) if runs else None
    return found


async def last_phases(queries: PageQueries, plan_id: str) -> list[str]:
    """Return the recipes that the last run of a plan conducted, in order."""
    recent = await recent_runs(queries, plan_id)
    return await phases_of(queries, recent[0]["run_id"]) if recent else []


async def phases_of(queries: PageQueries, run_id: str) -> list[str]:
    """Return the recipes that a run conducted, in order."""
    page = await queries.show_if_permitted(ListProcedures, parent_run_id=run_id) or NOTHING
    return [one["recipe_id"] for one in page["items"] if one["recipe_id"]]


def names_in(run: Row) -> dict[str, str]:
    """Return the names of the subject and the campaign of a run, by the fields that choose them."""
    named = {f"{name}_id": (run.get(name) or {}).get("name") for name in ("subject", "campaign")}
    return {field: name for field, name in named.items() if name}


async def recipe_as_before(queries: PageQueries, launch: RecipeLaunch) -> dict[str, str]:
    """Return what is typed into the form of a recipe at first: the assets and the values of the last time, or everything of
    the item of a queue that the address names."""
    if (item := await load_item(queries)) is not None and item["target"].get("recipe_id") == launch.recipe["recipe_id"]:
        return typed_launch(launch.shape, typed_values(item["target"], {}), (), queries.zone)
    last, bindings = await last_procedure(queries, launch)
    values = {"target_asset_ids": last["target_asset_ids"] if last else [], PARAMETERS: bindings}
    return typed_launch(launch.shape, values, (), queries.zone)


async def recipe_context(queries: PageQueries, launch: RecipeLaunch, typed: Mapping[str, str], **judged: object) -> Context:
    """Return what the page of a recipe shows besides its regions."""
    last, bindings = await last_procedure(queries, launch)
    context = await form_context(queries, launch, typed, {PARAMETERS: bindings}, **judged)
    done = await queries.show_found(GetProcedure, last["procedure_id"]) if last and last["status"] == "Completed" else None
    return {**context, "recipe": launch.recipe, "capability": launch.capability, "took": duration_of(done)}


async def procedures_of(queries: PageQueries, launch: RecipeLaunch) -> list[Row]:
    """Return the last procedures of a recipe by itself, among the newest of its kind and the newest of all."""
    kinds = (kind_of(launch.capability["code"]), None)
    asked = (queries.show_if_permitted(ListProcedures, kind=kind, order="desc", limit=SEARCHED) for kind in kinds)
    found = {one["procedure_id"]: one for page in await asyncio.gather(*asked) for one in (page or NOTHING)["items"]}
    own = (one for one in found.values() if one["recipe_id"] == launch.recipe["recipe_id"])
    alone = sorted((one for one in own if one["parent_run_id"] is None), key=lambda one: one["registered_at"], reverse=True)
    return alone[:RECENT]


async def last_procedure(queries: PageQueries, launch: RecipeLaunch) -> tuple[Row | None, Mapping[str, object]]:
    """Return the newest procedure of a recipe, and what was bound for it as far as its history may be read."""
    found = await procedures_of(queries, launch)
    if not found:
        return None, {}
    history = await queries.show_if_permitted(Procedure.aggregate.history, found[0]["procedure_id"], limit=3) or NOTHING
    expanded = [one["payload"] for one in history["items"] if one["event_type"] == "ProcedureRecipeExpanded"]
    return found[0], (expanded[0].get("bindings") or {}) if expanded else {}


def duration_of(done: Row | None) -> Row | None:
    """Return how long something took that is done, and what that was."""
    begun, ended = (instant_of((done or {}).get(name)) for name in ("started_at", "ended_at"))
    if done is None or begun is None or ended is None:
        return None
    kind = "Run" if "run_id" in done else "Procedure"
    href = href_of(kind, done[f"{kind.lower()}_id"])
    return {"seconds": (ended - begun).total_seconds(), "name": done["name"], "href": href}


async def form_context(
    queries: PageQueries, launch: Launchable, typed: Mapping[str, str], last: Mapping[str, object], **judged: object
) -> Context:
    """Return the form of a launch with what was typed, and the judgement of that."""
    blank = launch_form(launch.shape, typed, queries.zone, {}, {})
    given = read_launch(launch.shape, typed, queries.zone, queries.now)
    context, choices = await asyncio.gather(
        judgement_context(queries, launch, given, **judged), choices_of(blank.fields, queries)
    )
    form = launch_form(launch.shape, typed, queries.zone, context["judgement"].errors, last)
    fields = tuple(replace(one, options=choices.get(one.name, one.options)) for one in form.fields)
    shown = tuple(one for one in fields if one.options or one.value or not has_no_choice(one, queries))
    queueing = context["queueing"]
    chosen = typed.get(CHOSEN) or ("" if queueing is None else queueing.chosen)
    return {"form": replace(form, fields=shown), "chosen_queue": chosen, **context}


def has_no_choice(shown: FormField, queries: PageQueries) -> bool:
    """Return whether a field refers to things of a kind that there are none of, as far as the person may see."""
    listing = None if shown.refers_to is None else AGGREGATES[shown.refers_to].lists
    return listing is not None and queries.may(REGISTRY.operations[listing])


async def judgement_context(queries: PageQueries, launch: Launchable, given: GivenLaunch, **judged: Any) -> Context:
    """Return what the template of a judgement shows; each rendering has a key of its own for the start that follows,
    and a name for what starts without one."""
    judgement: Judgement = judged.pop("judgement", None) or await launch.judge(queries, given)
    errors = [(FormField(place, "", "text").element_id, text) for place, texts in judgement.errors.items() for text in texts]
    proposed = is_proposed(launch, queries)
    queueing = None if proposed else await load_queueing(queries)
    shown = {"judgement": judgement, "field_errors": errors, "key": uuid4().hex, "is_proposed": proposed}
    shown["unnamed"] = timed_name(launch.shape.name, queries.now.astimezone(queries.zone))
    shown |= {"queueing": queueing, "may_rehearse": queries.may(Rehearse)}
    return {**shown, **NOT_REHEARSED, "problem": None, "would": None, "rehearsed_at": "", **judged}


async def choices_of(fields: Sequence[FormField], queries: PageQueries) -> dict[str, tuple[Option, ...]]:
    """Return what can be chosen for the fields that refer to other things: the newest of each kind, and what is chosen."""
    referring = [one for one in fields if one.refers_to is not None]
    found = await asyncio.gather(*(options_for(one, queries) for one in referring))
    return {one.name: options for one, options in zip(referring, found, strict=True) if options}


async def options_for(shown: FormField, queries: PageQueries) -> tuple[Option, ...]:
    """Return what can be chosen for one field; of subjects, those that sit on an asset come first."""
    kind = str(shown.refers_to)
    options = await (subject_options(queries) if kind == "Subject" else options_of(kind, queries))
    known = {one.value for one in options}
    chosen = [one for one in shown.chosen if one not in known] if options else []
    return (*[Option(one, await name_of(kind, one, queries)) for one in chosen], *options)


async def subject_options(queries: PageQueries) -> tuple[Option, ...]:
    """Return the newest subjects as options, those first that sit on an asset, however old those are."""
    newest = await queries.show_if_permitted(ListSubjects, order="desc", limit=MOST_OPTIONS)
    pages = [newest or {"items": (), "next_cursor": None}]
    if pages[0]["next_cursor"] is not None:
        pages += await asyncio.gather(*(queries.show(ListSubjects, status=one, order="desc", limit=50) for one in IN_PLACE))
    items = {one["subject_id"]: one for page in pages for one in page["items"]}
    placed = sorted(items.values(), key=lambda one: one["status"] not in IN_PLACE)
    return tuple(Option(one["subject_id"], placed_name(one)) for one in placed)


def placed_name(subject: Row) -> str:
    """Return the name of a subject with its state and the asset that it sits on."""
    asset = (subject.get("mounted_on_asset") or {}).get("name")
    return f"{subject['name']} ({words_of(subject['status'])}{f' on {asset}' if asset else ''})"
