"""Start: a plan or a recipe, its form with units, limits and the values of the last time, every gate that is asked before it
starts, and the start itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from baton.api.http import Request, Response
from baton.client.exchanges import Exchange
from baton.client.refusals import ClientError, ProposedError
from baton.console.actions import lead_to, lead_to_proposal, typed_in
from baton.console.desk import Desk, query_named
from baton.console.display import href_of
from baton.console.in_process import REFUSALS, InProcessClient
from baton.console.judgement import Remedy
from baton.console.launch import Launch, PlanLaunch, RecipeLaunch, proposed_command, with_keys
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
from baton.domain.kernel import Query
from baton.domain.operation.conduct.conduct import ConductProcedure
from baton.domain.operation.procedure.procedure import ListProcedures
from baton.domain.operation.procedure.registration import RegisterProcedureFromRecipe
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.plan import ListPlans
from baton.domain.recipe.recipe import GetRecipe, ListRecipes
from baton.domain.run.conduct import ConductRun
from baton.domain.run.run import ListRuns
from baton.domain.run.start import PreflightRun, StartRun

if TYPE_CHECKING:
    from baton.console.console import Console

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
    """Load the last runs of the plan, and which gates are closed: when that changes, what is typed is judged anew. A page
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
    proposes = proposed_command(desk, StartRun.operation, ConductRun.operation)
    without_phases = proposes is StartRun.operation
    current = () if without_phases else tuple(one for one in recipes["items"] if one["status"] != NO_LONGER)
    return PlanLaunch(plan, method, current, proposes)


async def read_recipe(desk: Desk) -> Any:
    """Return the recipe that the address names. Its steps may be very many, and are not searched for names."""
    return await desk.ask(GetRecipe, desk.id("recipe_id"), include=None)


async def load_recipe(desk: Desk) -> RecipeLaunch:
    """Return the recipe that the address names, with its capability."""
    recipe = await read_recipe(desk)
    capability = await desk.ask(GET_CAPABILITY, recipe["capability_id"])
    proposes = proposed_command(desk, RegisterProcedureFromRecipe.operation, ConductProcedure.operation)
    return RecipeLaunch(recipe, capability, proposes)


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
    load: Callable[[Desk], Awaitable[Launch]]
    context: Callable[..., Awaitable[Context]]


PLAN = LaunchPage(plan_page, load_plan, plan_context)
RECIPE = LaunchPage(recipe_page, load_recipe, recipe_context)


@handles("POST", "/start/plans/{plan_id}")
async def submit_plan(console: "Console", request: Request, session: ConsoleSession) -> Response:
    """Judge, try or start a plan as it was typed."""
    return await LaunchAnswer(PLAN, console, request, session).give()


@handles("POST", "/start/recipes/{recipe_id}")
async def submit_recipe(console: "Console", request: Request, session: ConsoleSession) -> Response:
    """Judge, try or start a recipe as it was typed."""
    return await LaunchAnswer(RECIPE, console, request, session).give()


@handles("POST", "/start/plans/{plan_id}/check")
async def check_plan(console: "Console", request: Request, session: ConsoleSession) -> Response:
    """Judge a plan while it is typed."""
    return await LaunchAnswer(PLAN, console, request, session).check()


@handles("POST", "/start/recipes/{recipe_id}/check")
async def check_recipe(console: "Console", request: Request, session: ConsoleSession) -> Response:
    """Judge a recipe while it is typed."""
    return await LaunchAnswer(RECIPE, console, request, session).check()


@dataclass(frozen=True)
class LaunchAnswer:
    """Answers what a person does with the form of a launch."""

    shown: LaunchPage
    console: "Console"
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
        client = InProcessClient.of(self.console.parts.edge, self.session.caller)
        wanted, judged, answers = typed.get(DO), dict[str, Any](), dict[str, Any]()
        judgement = await launch.judge(desk, given)
        try:
            if wanted == "rehearse" and not given.faults:
                would = await client.carry_out(launch.rehearse(client.session, given))
                judged = {"would": [one.to_dict() for one in would.would]}
            elif wanted == "start" and judgement.passed:
                key = typed.get(KEY) or uuid4().hex
                to = await client.carry_out(with_keys(launch.start(client.session, given), key, answers))
                return lead_to(self.request, self.session, to, "Started", client.session.position)
            elif wanted == "queue" and not judgement.errors:
                key = typed.get(KEY) or uuid4().hex
                to = await client.carry_out(with_keys(await self._queue(desk, launch, given, typed, client), key, answers))
                return lead_to(self.request, self.session, to, "It is in the queue", client.session.position)
        except ProposedError as error:
            place = (self.console.zone, client.session.position)
            return lead_to_proposal(self.request, self.session, error, *place, before=made_before(answers))
        except REFUSALS as refusal:
            judged = {"problem": problem_of(refusal.detail, refusal.code, refusal, answers), "status": refusal.status}
        except ClientError as error:
            judged = {"problem": problem_of(str(error), None, error, answers), "status": 422}
        status = judged.pop("status", 409 if wanted in ("start", "queue") else 200)
        fresh = {} if answers else {"judgement": judgement}
        return await self._respond(desk, launch, given, typed, {**judged, **fresh}, status)

    async def _queue(
        self, desk: Desk, launch: Launch, given: GivenLaunch, typed: Mapping[str, str], client: InProcessClient
    ) -> Exchange[str]:
        """Return what adds the launch to the chosen queue, or has the item of the address do it."""
        if not (queue_id := typed.get(CHOSEN) or desk.query.get(QUEUE)):
            raise ClientError(CHOOSE)
        if (item := await load_item(desk)) is None and desk.query.get(ITEM):
            raise ClientError(GONE)
        return queue_launch(client.session, launch, given, queue_id, typed.get("name", "").strip(), item)

    async def _read(self, recorded: bool = True) -> tuple[Mapping[str, str], Desk, Launch, GivenLaunch]:
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
        launch: Launch,
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


def made_before(answers: Mapping[str, Any]) -> str:
    """Return what a launch had done before what it proposed at last, in a sentence."""
    if "run_id" in answers.get("start_run", {}):
        return "The run has started, and is not conducted yet. "
    registered = "procedure_id" in answers.get("register_procedure_from_recipe", {})
    return "The procedure is registered, and not conducted yet. " if registered else ""


def problem_of(detail: str, code: str | None, error: Exception, answers: Mapping[str, Any]) -> Row:
    """Return why a start was refused, what became of what it had made by then, and where that is."""
    notes, made = list(getattr(error, "__notes__", ())), None
    if run_id := answers.get("start_run", {}).get("run_id"):
        made = Remedy("Look at the run", href_of("Run", run_id))
    elif procedure_id := answers.get("register_procedure_from_recipe", {}).get("procedure_id"):
        made = Remedy("Look at the procedure", href_of("Procedure", procedure_id))
        notes.append("The procedure is registered and not conducted; it can be conducted from its own page.")
    return {"detail": detail, "code": code, "notes": notes, "made": made}
