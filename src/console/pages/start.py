"""Start: a plan or a recipe, its form with units, limits and the values of the last time, every gate that is asked before it
starts, and the start itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from baton.api.http import Request, Response
from baton.application.ports import CommandResult
from baton.application.service import is_proposal
from baton.client.exchanges import CallScript
from baton.client.refusals import ClientError
from baton.console.actions import lead_to, lead_to_waiting, typed_in
from baton.console.in_process import REFUSALS, InProcessClient
from baton.console.launch import Launchable, PlanLaunch, RecipeLaunch, launch_command, with_keys
from baton.console.launch_context import (
    Row,
    judgement_context,
    load_last_run,
    plan_as_before,
    plan_context,
    procedures_of,
    recent_runs,
    recipe_as_before,
    recipe_context,
)
from baton.console.launch_form import GivenLaunch, read_launch
from baton.console.page import ConsolePage, Context, MenuGroup, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.queueing import CHOOSE, CHOSEN, GONE, ITEM, QUEUE, load_item, queue_launch
from baton.console.rehearsals import NOT_REHEARSED, coming_time, load_rehearsal
from baton.console.rendering import html_response
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.domain.kernel import Query
from baton.domain.procedure.procedure import ListProcedures
from baton.domain.recipe.capability import GetCapability
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.method import GetMethod
from baton.domain.recipe.plan import GetPlan, ListPlans
from baton.domain.recipe.recipe import GetRecipe, ListRecipes
from baton.domain.run.run import ListRuns
from baton.domain.views.run_preflight import PreflightRun

LISTED, MOST_RECIPES = 25, 100
MOST_PAGES = 4  # of a list that are read for something that may still be used
DO, KEY, AT = "_do", "_key", "_at"
NO_LONGER = DEPRECATED.value
GATED = ("Asset", "Campaign", "Caution", "Clearance", "Enclosure", "Method", "Plan", "Recipe", "Subject", "Supply")
"""The streams whose events may open or close a gate of a start."""

start = page("/start", "Start", "Plans and recipes that can be started.", template="start.html", menu=MenuGroup.WORK)
plan_page = page("/start/plans/{plan_id}", "Start a plan", "A plan and what starts it.", template="start/plan.html")
recipe_page = page(
    "/start/recipes/{recipe_id}", "Start a recipe", "A recipe and what starts it.", template="start/recipe.html"
)


@start.region("plans", asks=[ListPlans])
async def load_plans(queries: PageQueries) -> Context:
    return await load_current(queries, ListPlans, queries.query.get("plans"))


@start.region("recipes", asks=[ListRecipes])
async def load_recipes(queries: PageQueries) -> Context:
    return await load_current(queries, ListRecipes, queries.query.get("recipes"))


async def load_current(queries: PageQueries, listing: type[Query], cursor: str | None) -> Context:
    """Load plans or recipes that may still be used, newest first, and where the list continues."""
    items: list[Row] = []
    for _ in range(MOST_PAGES):
        answer = await queries.show(
            listing, limit=LISTED, order="desc", cursor=cursor or None, q=queries.query.get("q") or None
        )
        items, cursor = [one for one in answer["items"] if one["status"] != NO_LONGER], answer["next_cursor"]
        if items or cursor is None:
            break
    return {"items": items, "next_cursor": cursor}


@plan_page.title_from
async def name_plan(queries: PageQueries) -> str:
    return (await queries.ask(GetPlan, queries.id("plan_id"))).name


@recipe_page.title_from
async def name_recipe(queries: PageQueries) -> str:
    return (await queries.ask(GetRecipe, queries.id("recipe_id"), include=None)).name


@plan_page.region("recent", asks=[ListRuns], watches=GATED, every=5.0, template="start/runs.html")
async def load_runs(queries: PageQueries) -> Context:
    """Load the last runs of the plan and the closed gates: when these change, the typed values are judged again. A page
    that is just being made has been judged already."""
    plan_id = str(queries.id("plan_id"))
    asked = (
        None if queries.recorded else await queries.show_if_permitted(PreflightRun, plan_id=plan_id, name="May it start?")
    )
    gates = [f"{one['gate']}:{one['reason']}" for one in asked["gates"] if not one["passed"]] if asked else []
    cautions = [one["caution_id"] for one in asked["acknowledged_cautions"]] if asked else []
    return {"runs": await recent_runs(queries, plan_id), "plan_id": plan_id, "mark": " ".join((*gates, *cautions))}


@recipe_page.region("recent", asks=[ListProcedures, GetRecipe, GetCapability], template="start/procedures.html")
async def load_procedures(queries: PageQueries) -> Context:
    return {"procedures": await procedures_of(queries, await load_recipe(queries))}


async def load_plan(queries: PageQueries) -> PlanLaunch:
    """Return the plan that the address names, with its method and its recipes."""
    plan = await queries.show(GetPlan, queries.id("plan_id"))
    method = await queries.show(GetMethod, plan["method_id"])
    recipes = await queries.show(ListRecipes, capability_id=method["capability_id"], limit=MOST_RECIPES)
    return PlanLaunch(plan, method, tuple(one for one in recipes["items"] if one["status"] != NO_LONGER))


async def read_recipe(queries: PageQueries) -> Shown:
    """Return the recipe that the address names. Its steps may be very many, and are not searched for names."""
    return await queries.show(GetRecipe, queries.id("recipe_id"), include=None)


async def load_recipe(queries: PageQueries) -> RecipeLaunch:
    """Return the recipe that the address names, with its capability."""
    recipe = await read_recipe(queries)
    return RecipeLaunch(recipe, await queries.show(GetCapability, recipe["capability_id"]))


@plan_page.loads(asks=[GetPlan, GetMethod, ListRecipes])
async def load_plan_form(queries: PageQueries) -> Context:
    plan_id = str(queries.id("plan_id"))
    launch, _ = await asyncio.gather(load_plan(queries), load_last_run(queries, plan_id))
    return await plan_context(queries, launch, await plan_as_before(queries, launch))


@recipe_page.loads(asks=[GetRecipe, GetCapability])
async def load_recipe_form(queries: PageQueries) -> Context:
    launch = await load_recipe(queries)
    return await recipe_context(queries, launch, await recipe_as_before(queries, launch))


@dataclass(frozen=True)
class LaunchPage:
    """A page that starts something: what is started, and what the page shows besides its regions."""

    page: ConsolePage
    load: Callable[[PageQueries], Awaitable[Launchable]]
    context: Callable[..., Awaitable[Context]]


PLAN = LaunchPage(plan_page, load_plan, plan_context)
RECIPE = LaunchPage(recipe_page, load_recipe, recipe_context)


@handles("POST", "/start/plans/{plan_id}")
async def submit_plan(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Judge, try or start a plan as it was typed."""
    return await LaunchAnswer(PLAN, console, request, session).give()


@handles("POST", "/start/recipes/{recipe_id}")
async def submit_recipe(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Judge, try or start a recipe as it was typed."""
    return await LaunchAnswer(RECIPE, console, request, session).give()


@handles("POST", "/start/plans/{plan_id}/check")
async def check_plan(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Judge a plan while it is typed."""
    return await LaunchAnswer(PLAN, console, request, session).check()


@handles("POST", "/start/recipes/{recipe_id}/check")
async def check_recipe(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Judge a recipe while it is typed."""
    return await LaunchAnswer(RECIPE, console, request, session).check()


@handles("POST", "/start/plans/{plan_id}/rehearse")
async def rehearse_plan(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Rehearse a plan while it is typed."""
    return await LaunchAnswer(PLAN, console, request, session).rehearse()


@handles("POST", "/start/recipes/{recipe_id}/rehearse")
async def rehearse_recipe(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Rehearse a recipe while it is typed."""
    return await LaunchAnswer(RECIPE, console, request, session).rehearse()


@dataclass(frozen=True)
class LaunchAnswer:
    """Answers what a person does with the form of a launch."""

    shown: LaunchPage
    console: ConsoleShell
    request: Request
    session: ConsoleSession

    async def check(self) -> Response:
        """Answer whether what is typed may start, and record no verdict: the form is judged over and over."""
        typed, queries, launch, given = await self._read(recorded=False)
        return await self._respond(queries, launch, given, typed, {})

    async def rehearse(self) -> Response:
        """Answer what would come of what is typed, and record no verdict either."""
        typed, queries, launch, given = await self._read(recorded=False)
        return html_response(
            self.console.templates.render("rehearsal.html", await self._walk(queries, launch, given, typed))
        )

    async def _walk(
        self, queries: PageQueries, launch: Launchable, given: GivenLaunch, typed: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the rehearsal of what is typed, at the time of day that is typed; of wrong fields there is none."""
        shown = {**NOT_REHEARSED, "rehearsed_at": typed.get(AT, "")}
        if given.faults:
            return shown
        at = coming_time(typed.get(AT, ""), queries.now, queries.zone)
        return {**shown, **await load_rehearsal(queries, launch=launch_command(launch, given), at=at)}

    async def give(self) -> Response:
        """Answer a button of the form: start, add to a queue, try without doing it, or judge. What is wrong is not sent on,
        and only to a queue what is closed."""
        typed, queries, launch, given = await self._read()
        wanted, key, judged = typed.get(DO), typed.get(KEY) or uuid4().hex, dict[str, Any]()
        judgement = await launch.judge(queries, given)
        try:
            if wanted == "walk":
                judged = await self._walk(queries, launch, given, typed)
            elif wanted == "rehearse" and not given.faults:
                would = await queries.service.dry_run(launch_command(launch, given), queries.caller)
                judged = {"would": [one.model_dump(mode="json") for one in would.would]}
            elif wanted == "start" and judgement.passed:
                result = await queries.service.execute(launch_command(launch, given), queries.caller, key=key)
                return self._lead_on(launch, result)
            elif wanted == "queue" and not judgement.errors:
                client = InProcessClient.of(self.console.parts.operations, self.session.caller)
                to = await client.carry_out(with_keys(await self._queue(queries, launch, given, typed, client), key))
                return lead_to(self.request, self.session, to, "It is in the queue", client.session.position)
        except REFUSALS as refusal:
            judged = {"problem": {"detail": refusal.detail, "code": refusal.code}, "status": refusal.status}
        except ClientError as error:
            judged = {"problem": {"detail": str(error), "code": None}, "status": 422}
        status = judged.pop("status", 409 if wanted in ("start", "queue") else 200)
        return await self._respond(queries, launch, given, typed, {**judged, "judgement": judgement}, status)

    def _lead_on(self, launch: Launchable, result: CommandResult) -> Response:
        """Lead to what was started, or to the proposal that the launch became."""
        assert result.body is not None, "a launch is answered"
        if is_proposal(result):
            until = datetime.fromisoformat(result.body["expires_at"]).astimezone(self.console.zone)
            return lead_to_waiting(self.request, self.session, UUID(result.body["proposal_id"]), until, result.position)
        return lead_to(self.request, self.session, launch.address(result.body), "Started", result.position)

    async def _queue(
        self, queries: PageQueries, launch: Launchable, given: GivenLaunch, typed: Mapping[str, str], client: InProcessClient
    ) -> CallScript[str]:
        """Return what adds the launch to the chosen queue, or has the item of the address do it."""
        if not (queue_id := typed.get(CHOSEN) or queries.query.get(QUEUE)):
            raise ClientError(CHOOSE)
        if (item := await load_item(queries)) is None and queries.query.get(ITEM):
            raise ClientError(GONE)
        return queue_launch(client.session, launch, given, queue_id, typed.get("name", "").strip(), item)

    async def _read(self, recorded: bool = True) -> tuple[Mapping[str, str], PageQueries, Launchable, GivenLaunch]:
        """Return what was typed, a queries, and the launch that it is read for; refuse a form of another session."""
        typed = typed_in(await self.request.body())
        self.session.check_form(typed)
        queries = self.console.queries_of(self.request, self.session)
        queries.recorded = recorded
        queries.require(self.shown.page.needs)
        launch = await self.shown.load(queries)
        return typed, queries, launch, read_launch(launch.shape, typed, queries.zone, queries.now)

    async def _respond(
        self,
        queries: PageQueries,
        launch: Launchable,
        given: GivenLaunch,
        typed: Mapping[str, str],
        judged: Mapping[str, object],
        status: int = 200,
    ) -> Response:
        """Return the judgement: to a script as the part of the page that shows it, otherwise within the page."""
        if self.request.header(b"x-fragment") is not None:
            context = await judgement_context(queries, launch, given, **judged)
            return html_response(self.console.templates.render("start/judgement.html", context), status)
        own = await self.shown.context(queries, launch, typed, **judged)
        return await self.console.page_response(self.request, self.session, self.shown.page, queries, own, status)
