"""What can be launched from a form: a plan, which becomes a run, or a recipe, which becomes a procedure; whether it may
start as it was typed, and the one command that starts it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from baton.api.errors import RequestValidationError
from baton.client.exchanges import CallScript
from baton.client.queue_items import bindings_in
from baton.client.requests import HttpRequest
from baton.console.display import href_of
from baton.console.judgement import ClosedGate, Judgement, Remedy, closed_gate, gate_words, missing_grants
from baton.console.launch_form import PHASE, Errors, GivenLaunch, LaunchShape, closed_by_fields, errors_of
from baton.console.page_queries import PageQueries, Shown
from baton.domain.kernel import NeededPermissions
from baton.domain.shared.json_schema import Schema
from baton.domain.shared.refusals import Refusal
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.start.run_start import StartRun
from baton.domain.target.start_launch import StartLaunch, kind_of
from baton.domain.views.run_preflight import PreflightRun

T = TypeVar("T")
IDEMPOTENCY_KEY = "Idempotency-Key"
GRANTS = "grants_present"  # the gate of permissions, which is judged here for the launch as a whole
VALID, CHOSEN, REGISTERED = "Parameters valid", "Recipes chosen", "Registration accepted"
GATES_ASKED_LATER = "Whether the hutch, the supplies and the equipment allow it is asked when it starts."
MOST_TRIED_STEPS = 500  # a longer list takes too long to be bound and checked at every keystroke
PROPOSED = "You may launch this only with approval: the launch is proposed as a whole, and nothing of it is done before."
LONG_LIST = "Its list of steps is too long to be checked while you type; a dry run checks it."
GATES_NOT_SHOWN = "Its gates are asked when it starts; showing them before takes the permission PreflightRun."


class Launchable(Protocol):
    """Something that can be launched from a form."""

    @property
    def shape(self) -> LaunchShape: ...

    @property
    def needs(self) -> NeededPermissions:
        """The permissions that its launch takes."""

    async def judge(self, queries: PageQueries, given: GivenLaunch) -> Judgement:
        """Return whether it may start as it was typed."""

    def request(self, given: GivenLaunch) -> dict[str, Any]:
        """Return the fields of the command that launches it."""

    def address(self, launched: Mapping[str, object]) -> str:
        """Return the address of what was started, by the answer."""


def launch_command(launch: Launchable, given: GivenLaunch) -> StartLaunch:
    """Return the command that launches what was typed; refuse what it does not take."""
    try:
        return StartLaunch.model_validate(launch.request(given))
    except ValidationError as error:
        raise RequestValidationError.of(error, "body") from None


def is_proposed(launch: Launchable, queries: PageQueries) -> bool:
    """Return whether the launch becomes a proposal: something of it is held only with approval."""
    return not queries.held.with_approval.isdisjoint(launch.needs.given)


def lacking_grants(launch: Launchable, queries: PageQueries) -> tuple[str, ...]:
    """Return the permissions that are missing: of what it stands for, those not held even with approval."""
    given = [name for name in launch.needs.given if name not in queries.held.with_approval]
    return tuple(name for name in dict.fromkeys((*given, *launch.needs.issued)) if name not in queries.permitted)


@dataclass(frozen=True)
class PlanLaunch:
    """A plan with its method, and the recipes that realise what it is for."""

    plan: Shown
    method: Shown
    recipes: Sequence[Shown]

    @cached_property
    def shape(self) -> LaunchShape:
        return LaunchShape(
            name=self.plan["name"],
            operation=StartRun.operation,
            hidden=("plan_id", "override_parameters", "decided_by_decision_id", "fingerprint"),
            front=("name", "subject_id", "campaign_id"),
            parameters=self.method["parameters_schema"],
            defaults=self.plan["default_parameters"],
            recipes=self.recipes,
        )

    @cached_property
    def needs(self) -> NeededPermissions:
        return StartLaunch(plan_id=self.plan["plan_id"]).needs()

    def overrides(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters that differ from the plan's own; all, where those were written under another schema."""
        defaults = self.plan["default_parameters"]
        if self.plan["parameters_schema_revision"] != self.method["parameters_schema_revision"]:
            return dict(parameters)
        return {name: value for name, value in parameters.items() if name not in defaults or defaults[name] != value}

    async def judge(self, queries: PageQueries, given: GivenLaunch) -> Judgement:
        lacking = missing_grants(lacking_grants(self, queries), queries)
        own = [gate for gate in (self._unchosen(given), lacking) if gate is not None]
        proposal = PROPOSED if is_proposed(self, queries) else ""
        if not queries.may(PreflightRun):
            return Judgement(tuple(own), (), (), given.faults, GATES_NOT_SHOWN, proposal)
        overrides = self.overrides(given.parameters)
        candidates = [one["recipe_id"] for one in self.recipes]
        recipes = [id for id in candidates if id in given.phases or len(candidates) == 1]
        try:
            answer = await queries.show(
                PreflightRun,
                plan_id=self.plan["plan_id"],
                override_parameters=overrides,
                recipe_ids=recipes,
                **given.options,
            )
        except Refusal as refusal:
            return not_judged(refusal, own, given.faults)
        asked = [one for one in answer["gates"] if one["gate"] != GRANTS]
        refused = [one for one in asked if not one["passed"]]
        closed = [*await asyncio.gather(*(closed_gate(one, queries) for one in refused)), *own]
        errors = given.faults
        for one in refused:
            if one["gate"] == "parameters_valid" and not errors:
                errors = given.place(errors_of(one["facts"], one["detail"]))
        if errors:
            closed = [*(one for one in closed if one.name != VALID), closed_by_fields(VALID, errors)]
        shut = {one.name for one in closed}
        passed = dict.fromkeys((gate_words(GRANTS), *(gate_words(one["gate"]) for one in asked), CHOSEN))
        names = tuple(name for name in passed if name not in shut)
        overwritten = tuple(one["uri"] for one in answer["overwrites_registered"])
        cautions = tuple(answer["acknowledged_cautions"])
        judged = Judgement(tuple(closed), names, cautions, errors, proposal=proposal, overwritten=overwritten)
        return replace(judged, unknown_units=tuple(answer["units_unknown"]))

    def _unchosen(self, given: GivenLaunch) -> ClosedGate | None:
        """Return the gate that a choice of recipes closes which is not made."""
        if given.phases or len(self.recipes) == 1:
            return None
        name = self.shape.name
        if self.recipes:
            sentence = f"{len(self.recipes)} recipes realise what {name} is for; choose those to conduct, in order."
            return ClosedGate(CHOSEN, sentence, (Remedy("Phases", f"#field-{PHASE}-0"),))
        by_hand = Remedy("Start the run by hand…", f"/console/do/start_run?plan_id={self.plan['plan_id']}")
        sentence = f"No recipe realises what {name} is for; define one of its capability, or start the run by hand."
        return ClosedGate(CHOSEN, sentence, (by_hand,))

    def request(self, given: GivenLaunch) -> dict[str, Any]:
        phases = {"phases": [{"recipe_id": id} for id in given.phases]} if given.phases else {}
        asked = {"plan_id": self.plan["plan_id"], "parameters": self.overrides(given.parameters)}
        return {**given.options, **asked, **phases}

    def address(self, launched: Mapping[str, object]) -> str:
        return href_of("Run", launched["run_id"])


@dataclass(frozen=True)
class RecipeLaunch:
    """A recipe with the capability that it realises."""

    recipe: Shown
    capability: Shown

    @cached_property
    def shape(self) -> LaunchShape:
        return LaunchShape(
            name=self.recipe["name"],
            operation=RegisterProcedureFromRecipe.operation,
            hidden=("recipe_id", "bindings", "parent_run_id", "max_consecutive_unconverged_iterations"),
            front=("name", "target_asset_ids"),
            parameters=self._bound_parameters(),
        )

    @cached_property
    def needs(self) -> NeededPermissions:
        return StartLaunch(recipe_id=self.recipe["recipe_id"]).needs()

    def _bound_parameters(self) -> Schema | None:
        """Return the schema of the parameters that the steps leave open, in the order that the capability has them."""
        declared = (self.capability["parameters_schema"] or {}).get("properties", {})
        wanted = set(bindings_in((self.recipe["steps"], self.recipe["closing_steps"])))
        names = [*(name for name in declared if name in wanted), *sorted(wanted - declared.keys())]
        fields = {name: declared.get(name, {}) for name in names}
        return {"type": "object", "properties": fields, "required": names, "additionalProperties": False} if names else None

    async def judge(self, queries: PageQueries, given: GivenLaunch) -> Judgement:
        gate = missing_grants(lacking_grants(self, queries), queries)
        proposal = PROPOSED if is_proposed(self, queries) else ""
        closed, names = ([gate], []) if gate is not None else ([], [gate_words(GRANTS)])
        errors, register = given.faults, self.shape.operation
        if errors:
            closed.append(closed_by_fields(VALID, errors))
        elif queries.may(register) and len(self.recipe["steps"]) > MOST_TRIED_STEPS:
            return Judgement(tuple(closed), tuple(names), (), errors, f"{LONG_LIST} {GATES_ASKED_LATER}", proposal)
        elif queries.may(register):
            try:
                await self._try(queries, given)
                names.append(REGISTERED)
            except RequestValidationError as refusal:
                return not_judged(refusal, closed, errors)
            except Refusal as refusal:
                errors = given.place(errors_of(refusal.facts, refusal.detail))
                closed.append(closed_by_fields(REGISTERED, errors) if errors else ClosedGate(REGISTERED, refusal.detail))
        return Judgement(tuple(closed), tuple(names), (), errors, GATES_ASKED_LATER, proposal)

    async def _try(self, queries: PageQueries, given: GivenLaunch) -> None:
        """Register the procedure without doing it."""
        kind = kind_of(self.capability["code"])
        own = {"recipe_id": self.recipe["recipe_id"], "bindings": dict(given.parameters)}
        try:
            command = RegisterProcedureFromRecipe.model_validate({"kind": kind, **given.options, **own})
        except ValidationError as error:
            raise RequestValidationError.of(error, "body") from None
        await queries.service.dry_run(command, queries.caller)

    def request(self, given: GivenLaunch) -> dict[str, Any]:
        options = {"procedure_kind" if name == "kind" else name: value for name, value in given.options.items()}
        return {**options, "recipe_id": self.recipe["recipe_id"], "bindings": dict(given.parameters)}

    def address(self, launched: Shown) -> str:
        return href_of("Procedure", launched["procedure_ids"][0])


def not_judged(refusal: Refusal, closed: Sequence[ClosedGate], errors: Errors) -> Judgement:
    """Return the judgement of what cannot be asked about: it names something that is not there, or has the wrong form."""
    faults = {".".join(map(str, one["loc"][1:])): [one["msg"]] for one in getattr(refusal, "errors", ())}
    gate = closed_by_fields("Request understood", faults) if faults else ClosedGate("Request understood", refusal.detail)
    return Judgement((*closed, gate), errors={**errors, **faults})


def with_keys(exchange: CallScript[T], key: str) -> CallScript[T]:
    """Carry out an exchange whose commands have keys made of a form's own, so that a form that is sent twice does one
    thing."""
    answer: object = None
    numbers: dict[str, int] = {}
    while True:
        try:
            request = exchange.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(request, HttpRequest) and (own := request.headers.get(IDEMPOTENCY_KEY)) is not None:
            number = numbers.setdefault(own, len(numbers))
            request = replace(request, headers={**request.headers, IDEMPOTENCY_KEY: f"{key}-{number}"})
        answer = yield request
