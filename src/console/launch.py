"""Launches: whether something may start as it was typed, and the client's own exchange that starts it. A plan becomes a run
that is conducted; a recipe becomes a procedure that is."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import ValidationError

from baton.api.errors import RequestValidationError
from baton.client import launching
from baton.client.exchanges import ClientSession, Exchange
from baton.client.queue_items import bindings_in
from baton.client.requests import HttpRequest, HttpResponse
from baton.console.desk import Desk
from baton.console.display import href_of
from baton.console.forms import Schema
from baton.console.in_process import entry_of
from baton.console.judgement import ClosedGate, Judgement, Remedy, closed_gate, gate_words, missing_grants
from baton.console.launch_form import PHASE, Errors, GivenLaunch, LaunchShape, closed_by_fields, errors_of
from baton.domain.operation.conduct.conduct import ConductProcedure
from baton.domain.operation.procedure.registration import RegisterProcedureFromRecipe
from baton.domain.operation.procedure.start import needed_grants
from baton.domain.registry import Operation
from baton.domain.run.conduct import ConductRun
from baton.domain.run.start import PreflightRun, StartRun
from baton.domain.shared.refusals import Refusal

if TYPE_CHECKING:
    from baton.client.operations import DryRun

T = TypeVar("T")
IDEMPOTENCY_KEY = "Idempotency-Key"
VALID, CHOSEN, REGISTERED = "Parameters valid", "Recipes chosen", "Registration accepted"
GATES_ASKED_LATER = "Whether the hutch, the supplies and the equipment allow it is asked when it starts."
MOST_TRIED_STEPS = 500  # a longer list takes too long to be bound and checked at every keystroke
PROPOSED = {
    StartRun.operation.name: "You may start a run only with approval, so its start alone is proposed. Once that is approved,"
    " the run is on record without phases: register and conduct those from its own page.",
    ConductRun.operation.name: "You may have a run conducted only with approval: the run starts at once and its phases are"
    " registered; that they are conducted is proposed.",
    RegisterProcedureFromRecipe.operation.name: "You may register a procedure only with approval, so that alone is proposed."
    " Once it is approved, the procedure is on record and not conducted: conduct it from its own page.",
    ConductProcedure.operation.name: "You may have a procedure conducted only with approval: it is registered at once, and"
    " that it is conducted is proposed.",
}  # What is said of a launch, by the command of it that becomes a proposal.
LONG_LIST = "Its list of steps is too long to be checked while you type; a dry run checks it."
GATES_NOT_SHOWN = "Its gates are asked when it starts; showing them before takes the permission PreflightRun."


class Launch(Protocol):
    """Something that can be started from a form."""

    @property
    def shape(self) -> LaunchShape: ...

    @property
    def proposes(self) -> Operation | None:
        """The command of it that becomes a proposal; None where it starts at once."""

    async def judge(self, desk: Desk, given: GivenLaunch) -> Judgement:
        """Return whether it may start as it was typed."""

    def start(self, session: ClientSession, given: GivenLaunch) -> Exchange[str]:
        """Start it, and return the address of what was started."""

    def rehearse(self, session: ClientSession, given: GivenLaunch) -> "Exchange[DryRun]":
        """Return what starting it would record first."""


@dataclass(frozen=True)
class PlanLaunch:
    """A plan with its method, and the recipes that realise what it is for; none where only its start is proposed."""

    plan: Mapping[str, Any]
    method: Mapping[str, Any]
    recipes: Sequence[Mapping[str, Any]]
    proposes: Operation | None = None

    @cached_property
    def shape(self) -> LaunchShape:
        return LaunchShape(
            name=self.plan["name"],
            operation=StartRun.operation,
            hidden=("plan_id", "override_parameters", "decided_by_decision_id"),
            front=("name", "subject_id", "campaign_id"),
            parameters=self.method["parameters_schema"],
            defaults=self.plan["default_parameters"],
            recipes=self.recipes,
        )

    def overrides(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that differ from the plan's own; all, where those were written under another schema."""
        defaults = self.plan["default_parameters"]
        if self.plan["parameters_schema_revision"] != self.method["parameters_schema_revision"]:
            return dict(parameters)
        return {name: value for name, value in parameters.items() if name not in defaults or defaults[name] != value}

    async def judge(self, desk: Desk, given: GivenLaunch) -> Judgement:
        register = RegisterProcedureFromRecipe.operation.command_name
        only_start = starts_by_proposal(self)
        conducting = () if only_start else (self._unchosen(given), missing_grants([register], desk))
        own = [gate for gate in conducting if gate is not None]
        proposal = proposal_sentence(self)
        if not desk.may(PreflightRun):
            return Judgement(tuple(own), (), (), given.faults, GATES_NOT_SHOWN, proposal)
        overrides = self.overrides(given.parameters)
        candidates = [one["recipe_id"] for one in self.recipes]
        recipes = [id for id in candidates if id in given.phases or len(candidates) == 1]
        try:
            answer = await desk.ask(
                PreflightRun,
                plan_id=self.plan["plan_id"],
                override_parameters=overrides,
                recipe_ids=recipes,
                **given.options,
            )
        except Refusal as refusal:
            return not_judged(refusal, own, given.faults)
        asked = [one for one in answer["gates"] if not (only_start and one["gate"] == "grants_present")]
        refused = [one for one in asked if not one["passed"] and not is_closed_by_proposal(one, self)]
        closed = [*await asyncio.gather(*(closed_gate(one, desk) for one in refused)), *own]
        errors = given.faults
        for one in refused:
            if one["gate"] == "parameters_valid" and not errors:
                errors = given.place(errors_of(one["facts"], one["detail"]))
        if errors:
            closed = [*(one for one in closed if one.name != VALID), closed_by_fields(VALID, errors)]
        shut = {one.name for one in closed}
        chosen = () if only_start else (CHOSEN,)
        passed = dict.fromkeys((*(gate_words(one["gate"]) for one in asked), *chosen))
        names = tuple(name for name in passed if name not in shut)
        overwritten = tuple(one["uri"] for one in answer["overwrites_registered"])
        cautions = tuple(answer["acknowledged_cautions"])
        return Judgement(tuple(closed), names, cautions, errors, proposal=proposal, overwritten=overwritten)

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

    def start(self, session: ClientSession, given: GivenLaunch) -> Exchange[str]:
        overrides, chosen = self.overrides(given.parameters), [] if starts_by_proposal(self) else list(given.phases) or None
        started = yield from launching.start_plan(session, self.plan["plan_id"], chosen, given.options, overrides)
        return href_of("Run", started.run_id)

    def rehearse(self, session: ClientSession, given: GivenLaunch) -> "Exchange[DryRun]":
        overrides = self.overrides(given.parameters)
        request = launching.run_request(session, self.plan["plan_id"], given.options, overrides)
        return (yield from launching.try_request(session, "start_run", request))


@dataclass(frozen=True)
class RecipeLaunch:
    """A recipe with the capability that it realises."""

    recipe: Mapping[str, Any]
    capability: Mapping[str, Any]
    proposes: Operation | None = None

    @cached_property
    def shape(self) -> LaunchShape:
        return LaunchShape(
            name=self.recipe["name"],
            operation=RegisterProcedureFromRecipe.operation,
            hidden=("recipe_id", "bindings", "parent_run_id"),
            front=("name", "target_asset_ids"),
            parameters=self._bound_parameters(),
        )

    def _bound_parameters(self) -> Schema | None:
        """Return the schema of the parameters that the steps leave open, in the order that the capability has them."""
        declared = (self.capability["parameters_schema"] or {}).get("properties", {})
        wanted = set(bindings_in((self.recipe["steps"], self.recipe["closing_steps"])))
        names = [*(name for name in declared if name in wanted), *sorted(wanted - declared.keys())]
        fields = {name: declared.get(name, {}) for name in names}
        return {"type": "object", "properties": fields, "required": names, "additionalProperties": False} if names else None

    async def judge(self, desk: Desk, given: GivenLaunch) -> Judgement:
        register = self.shape.operation
        needed = () if starts_by_proposal(self) else (register.command_name, *needed_grants("ConductProcedure"))
        proposed = None if self.proposes is None else self.proposes.command_name
        gate = missing_grants((name for name in needed if name != proposed), desk)
        proposal = proposal_sentence(self)
        closed, names = ([gate], []) if gate is not None else ([], [gate_words("grants_present")])
        errors = given.faults
        if errors:
            closed.append(closed_by_fields(VALID, errors))
        elif desk.may(register) and len(self.recipe["steps"]) > MOST_TRIED_STEPS:
            return Judgement(tuple(closed), tuple(names), (), errors, f"{LONG_LIST} {GATES_ASKED_LATER}", proposal)
        elif desk.may(register):
            try:
                await self._try(desk, given)
                names.append(REGISTERED)
            except RequestValidationError as refusal:
                return not_judged(refusal, closed, errors)
            except Refusal as refusal:
                errors = given.place(errors_of(refusal.facts, refusal.detail))
                closed.append(closed_by_fields(REGISTERED, errors) if errors else ClosedGate(REGISTERED, refusal.detail))
        return Judgement(tuple(closed), tuple(names), (), errors, GATES_ASKED_LATER, proposal)

    async def _try(self, desk: Desk, given: GivenLaunch) -> None:
        """Register the procedure without doing it."""
        try:
            command = RegisterProcedureFromRecipe.model_validate(self.request(given))
        except ValidationError as error:
            raise RequestValidationError.of(error, "body") from None
        await desk.service.dry_run(command, desk.caller)

    def request(self, given: GivenLaunch) -> dict[str, Any]:
        """Return what registers a procedure of the recipe."""
        kind, bound = launching.kind_of(self.capability["code"]), dict(given.parameters)
        return {"kind": kind, **given.options, "recipe_id": self.recipe["recipe_id"], "bindings": bound}

    def start(self, session: ClientSession, given: GivenLaunch) -> Exchange[str]:
        options = {name: value for name, value in given.options.items() if name != "target_asset_ids"}
        assets = given.options.get("target_asset_ids", ())
        started = launching.conduct_recipe(session, self.recipe["recipe_id"], assets, options, given.parameters)
        return href_of("Procedure", (yield from started))

    def rehearse(self, session: ClientSession, given: GivenLaunch) -> "Exchange[DryRun]":
        would: DryRun = yield from session.call(entry_of(self.shape.operation), self.request(given), dry_run=True)
        return would


def proposed_command(desk: Desk, *commands: Operation) -> Operation | None:
    """Return the first of the commands of a launch that becomes a proposal; what would follow it is not done then."""
    return next((one for one in commands if desk.proposes(one)), None)


def starts_by_proposal(launch: Launch) -> bool:
    """Return whether the very first command of a launch becomes a proposal, so that nothing else is done."""
    return launch.proposes is not None and launch.proposes is launch.shape.operation


def proposal_sentence(launch: Launch) -> str:
    """Return what is said of a launch of which a command becomes a proposal."""
    return "" if launch.proposes is None else PROPOSED[launch.proposes.name]


def is_closed_by_proposal(verdict: Mapping[str, Any], launch: Launch) -> bool:
    """Return whether a gate is closed only since a command of the launch is not held at once, but becomes a proposal."""
    missing = (verdict["facts"] or {}).get("missing")
    return launch.proposes is not None and missing == [launch.proposes.command_name]


def not_judged(refusal: Refusal, closed: Sequence[ClosedGate], errors: Errors) -> Judgement:
    """Return the judgement of what cannot be asked about: it names something that is not there, or has the wrong form."""
    faults = {".".join(map(str, one["loc"][1:])): [one["msg"]] for one in getattr(refusal, "errors", ())}
    gate = closed_by_fields("Request understood", faults) if faults else ClosedGate("Request understood", refusal.detail)
    return Judgement((*closed, gate), errors={**errors, **faults})


def with_keys(exchange: Exchange[T], key: str, answers: dict[str, Any]) -> Exchange[T]:
    """Carry out an exchange whose commands have keys made of a form's own, so that a form that is sent twice starts one
    thing; what each command answered is kept by its name."""
    answer: Any = None
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
        if isinstance(request, HttpRequest) and request.operation.kind == "command" and isinstance(answer, HttpResponse):
            answers[request.operation.name] = json.loads(answer.content) if answer.is_success and answer.content else {}
