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
from baton.client.exchanges import Exchange
from baton.client.refusals import ClientError
from baton.console.actions import lead_to, lead_to_waiting, typed_in
from baton.console.desk import Desk, query_named
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
from baton.console.queueing import CHOOSE, CHOSEN, GONE, ITEM, QUEUE, load_item, queue_launch
from baton.console.rendering import html_response
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.domain.kernel import Query
from baton.domain.procedure.procedure import ListProcedures
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.plan import ListPlans
from baton.domain.recipe.recipe import GetRecipe, ListRecipes
from baton.domain.run.run import ListRuns
from baton.domain.start.run_start import PreflightRun

LISTED, MOST_RECIPES = 25, 100
MOST_PAGES = 4  # of a list that are read for something that may still be used
DO, KEY = "_do", "_key"
NO_LONGER = DEPRECATED.value
GET_PLAN, GET_METHOD, GET_CAPABILITY = map(query_named, ("get_plan", "get_method", "get_capability"))
GATED = ("Asset", "Campaign", "Caution", "Clearance", "Enclosure", "Method", "Plan", "Recipe", "Subject", "Supply")
"""The streams whose events may open or close a gate of a start."""

start = page("/start", "Start", "Plans and recipes that can be started.", template="start.html", menu=MenuGroup.WORK)
plan_page = page("/start/plans/{plan_id}", "Start a plan", "A plan and what starts it.", template="start/plan.html")
recipe_page = page(
    "/start/recipes/{recipe_id}", "Start a recipe", "A recipe and what starts it.", template="start/recipe.html"
)


@start.region("plans", asks=[ListPlans])
async def load_plans(desk: Desk) -> Context:
    return await load_current(desk, ListPlans, desk.query.get("plans"))


@start.region("recipes", asks=[ListRecipes])
async def load_recipes(desk: Desk) -> Context:
    return await load_current(desk, ListRecipes, desk.query.get("recipes"))


async def load_current(desk: Desk, listing: type[Query], cursor: str | None) -> Context:
    """Load plans or recipes that may still be used, newest first, and where the list goes on."""
    items: list[Row] = []
    for _ in range(MOST_PAGES):
        answer = await desk.ask(listing, limit=LISTED, order="desc", cursor=cursor or None, q=desk.query.get("q") or None)
        items, cursor = [one for one in answer["items"] if one["status"] != NO_LONGER], answer["next_cursor"]
        if items or cursor is None:
            break
    return {"items": items, "next_cursor": cursor}


@plan_page.title_from
async def name_plan(desk: Desk) -> str:
    return str((await desk.ask(GET_PLAN, desk.id("plan_id")))["name"])


@recipe_page.title_from
async def name_recipe(desk: Desk) -> str:
    return str((await read_recipe(desk))["name"])


@plan_page.region("recent", asks=[ListRuns], watches=GATED, every=5.0, template="start/runs.html")
async def load_runs(desk: Desk) -> Context:
    """Load the last runs of the plan and the closed gates: when these change, the typed values are judged again. A page
    that is just being made has been judged already."""
    plan_id = str(desk.id("plan_id"))
    asked = None if desk.recorded else await desk.ask_if_permitted(PreflightRun, plan_id=plan_id, name="May it start?")
    gates = [f"{one['gate']}:{one['reason']}" for one in asked["gates"] if not one["passed"]] if asked else []
    cautions = [one["caution_id"] for one in asked["acknowledged_cautions"]] if asked else []
    return {"runs": await recent_runs(desk, plan_id), "plan_id": plan_id, "mark": " ".join((*gates, *cautions))}


@recipe_page.region("recent", asks=[ListProcedures, GetRecipe, GET_CAPABILITY], template="start/procedures.html")
async def load_procedures(desk: Desk) -> Context:
    return {"procedures": await procedures_of(desk, await load_recipe(desk))}


async def load_plan(desk: Desk) -> PlanLaunch:
    """Return the plan that the address names, with its method and its recipes."""
    plan = await desk.ask(GET_PLAN, desk.id("plan_id"))
    method = await desk.ask(GET_METHOD, plan["method_id"])
    recipes = await desk.ask(ListRecipes, capability_id=method["capability_id"], limit=MOST_RECIPES)
    return PlanLaunch(plan, method, tuple(one for one in recipes["items"] if one["status"] != NO_LONGER))


async def read_recipe(desk: Desk) -> Any:
    """Return the recipe that the address names. Its steps may be very many, and are not searched for names."""
    return await desk.ask(GetRecipe, desk.id("recipe_id"), include=None)


async def load_recipe(desk: Desk) -> RecipeLaunch:
    """Return the recipe that the address names, with its capability."""
    recipe = await read_recipe(desk)
    return RecipeLaunch(recipe, await desk.ask(GET_CAPABILITY, recipe["capability_id"]))


@plan_page.loads(asks=[GET_PLAN, GET_METHOD, ListRecipes])
async def load_plan_form(desk: Desk) -> Context:
    plan_id = str(desk.id("plan_id"))
    launch, _ = await asyncio.gather(load_plan(desk), load_last_run(desk, plan_id))
    return await plan_context(desk, launch, await plan_as_before(desk, launch))


@recipe_page.loads(asks=[GetRecipe, GET_CAPABILITY])
async def load_recipe_form(desk: Desk) -> Context:
    launch = await load_recipe(desk)
    return await recipe_context(desk, launch, await recipe_as_before(desk, launch))


@dataclass(frozen=True)
class LaunchPage:
    """A page that starts something: what is started, and what the page shows besides its regions."""

    page: ConsolePage
    load: Callable[[Desk], Awaitable[Launchable]]
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


@dataclass(frozen=True)
class LaunchAnswer:
    """Answers what a person does with the form of a launch."""

    shown: LaunchPage
    console: ConsoleShell
    request: Request
    session: ConsoleSession

    async def check(self) -> Response:
        """Answer whether what is typed may start, and record no verdict: the form is judged over and over."""
        typed, desk, launch, given = await self._read(recorded=False)
        return await self._respond(desk, launch, given, typed, {})

    async def give(self) -> Response:
        """Answer a button of the form: start, add to a queue, try without doing it, or judge. What is wrong is not sent on,
        and only to a queue what is closed."""
        typed, desk, launch, given = await self._read()
        wanted, key, judged = typed.get(DO), typed.get(KEY) or uuid4().hex, dict[str, Any]()
        judgement = await launch.judge(desk, given)
        try:
            if wanted == "rehearse" and not given.faults:
                would = await desk.service.dry_run(launch_command(launch, given), desk.caller)
                judged = {"would": [one.model_dump(mode="json") for one in would.would]}
            elif wanted == "start" and judgement.passed:
                result = await desk.service.execute(launch_command(launch, given), desk.caller, key=key)
                return self._lead_on(launch, result)
            elif wanted == "queue" and not judgement.errors:
                client = InProcessClient.of(self.console.parts.edge, self.session.caller)
                to = await client.carry_out(with_keys(await self._queue(desk, launch, given, typed, client), key))
                return lead_to(self.request, self.session, to, "It is in the queue", client.session.position)
        except REFUSALS as refusal:
            judged = {"problem": {"detail": refusal.detail, "code": refusal.code}, "status": refusal.status}
        except ClientError as error:
            judged = {"problem": {"detail": str(error), "code": None}, "status": 422}
        status = judged.pop("status", 409 if wanted in ("start", "queue") else 200)
        return await self._respond(desk, launch, given, typed, {**judged, "judgement": judgement}, status)

    def _lead_on(self, launch: Launchable, result: CommandResult) -> Response:
        """Lead to what was started, or to the proposal that the launch became."""
        assert result.body is not None, "a launch is answered"
        if is_proposal(result):
            until = datetime.fromisoformat(result.body["expires_at"]).astimezone(self.console.zone)
            return lead_to_waiting(self.request, self.session, UUID(result.body["proposal_id"]), until, result.position)
        return lead_to(self.request, self.session, launch.address(result.body), "Started", result.position)

    async def _queue(
        self, desk: Desk, launch: Launchable, given: GivenLaunch, typed: Mapping[str, str], client: InProcessClient
    ) -> Exchange[str]:
        """Return what adds the launch to the chosen queue, or has the item of the address do it."""
        if not (queue_id := typed.get(CHOSEN) or desk.query.get(QUEUE)):
            raise ClientError(CHOOSE)
        if (item := await load_item(desk)) is None and desk.query.get(ITEM):
            raise ClientError(GONE)
        return queue_launch(client.session, launch, given, queue_id, typed.get("name", "").strip(), item)

    async def _read(self, recorded: bool = True) -> tuple[Mapping[str, str], Desk, Launchable, GivenLaunch]:
        """Return what was typed, a desk, and the launch that it is read for; refuse a form of another session."""
        typed = typed_in(await self.request.body())
        self.session.check_form(typed)
        desk = self.console.desk_of(self.request, self.session)
        desk.recorded = recorded
        desk.require(self.shown.page.needs)
        launch = await self.shown.load(desk)
        return typed, desk, launch, read_launch(launch.shape, typed, desk.zone, desk.now)

    async def _respond(
        self,
        desk: Desk,
        launch: Launchable,
        given: GivenLaunch,
        typed: Mapping[str, str],
        judged: Mapping[str, Any],
        status: int = 200,
    ) -> Response:
        """Return the judgement: to a script as the part of the page that shows it, otherwise within the page."""
        if self.request.header(b"x-fragment") is not None:
            context = await judgement_context(desk, launch, given, **judged)
            return html_response(self.console.templates.render("start/judgement.html", context), status)
        own = await self.shown.context(desk, launch, typed, **judged)
        return await self.console.page_response(self.request, self.session, self.shown.page, desk, own, status)
