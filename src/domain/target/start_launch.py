"""The command that launches a plan or a recipe: everything that this takes is decided here, one command after the other, and
written in one transaction. Queues and schedules give it for what they have arranged."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self, cast
from uuid import UUID

from pydantic import Field, JsonValue, model_validator

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.conduct.arranged_conduct import COMMANDS, DEFAULT_ARRANGEMENT, Arrangement, ArrangementInput
from baton.domain.conduct.conduct import (
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
    Wait,
    refuse_rivals_of,
)
from baton.domain.conduct.run_conduct import MAX_PHASES, ConductRun
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, WaitingQuestion
from baton.domain.kernel import Call, IdSet, JudgedCreation, NeededPermissions, Outcome, Value
from baton.domain.launch.launch import Launch, LaunchBegun, LaunchOrigin, LaunchRefused, LaunchRequested, launch
from baton.domain.launch.launch_ids import LaunchIds, OwnLaunchIds
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.conduct_options import ChosenOptions, first_choices
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import Recipe, recipes_in_service
from baton.domain.recipe.template_versions import TemplateVersion, refuse_changed, versions_of
from baton.domain.registry import Internal, OpenedWork
from baton.domain.run.gates import load_plan
from baton.domain.run.run import Run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.further_commands import give
from baton.domain.shared.reads import Reads, find, find_all, require, require_all
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Text, Word, refuse_blank_text
from baton.domain.shared.writes import Also, Answer
from baton.domain.start.fingerprint import RehearsalFingerprint
from baton.domain.start.procedure_start import RUN_ISSUED, issued_commands, needed_grants
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.start.run_start import RunRequest, StartRun
from baton.domain.step.results import ConductResult, RunConductResult
from baton.domain.target.half_begun import join_launch
from baton.domain.target.target_checks import load_templates
from baton.domain.target.targets import (
    MAX_NAME_LENGTH,
    ConductPlan,
    ConductRecipe,
    RecipeConduct,
    Target,
    recipes_of,
    stored_target,
)

MAX_KIND_LENGTH = 50
MAX_DETAIL = 500  # Characters of a refusal's sentence that are kept.
ORIGINS = {
    ActorKind.HUMAN: LaunchOrigin.PERSON,
    ActorKind.AGENT: LaunchOrigin.AGENT,
    ActorKind.SERVICE_ACCOUNT: LaunchOrigin.SERVICE_ACCOUNT,
}
OF_RUN = ("StartRun", "RegisterProcedureFromRecipe", "ConductRun")  # The commands that the launch of a plan stands for.
OF_PLANS = frozenset(
    {
        *("subject_id", "parameters", "phases", "raid", "pinned_calibration_ids", "trigger_source", "external_refs"),
        *("campaign_id", "decided_by_decision_id"),
    }
)  # What only the launch of a plan takes.
OF_RECIPES = frozenset({"bindings", "target_asset_ids", "procedure_kind", "conduct"})  # What only that of a recipe takes.


class InvalidLaunchTargetError(Invalid, context="operation"):
    """What is to be launched is not said in a way that could be done."""


LaunchName = Annotated[str, Text(MAX_NAME_LENGTH, InvalidLaunchTargetError, "name", personal=True)]
LaunchedKind = Annotated[str, Text(MAX_KIND_LENGTH, InvalidLaunchTargetError, "procedure kind")]


class LaunchedPhase(Value):
    """A phase: its recipe, and how it is conducted; its name, kind and assets follow from recipe and plan if left out."""

    recipe_id: UUID
    bindings: dict[str, JsonValue] = {}
    name: LaunchName | None = None
    procedure_kind: LaunchedKind | None = None
    target_asset_ids: Annotated[IdSet, Field(max_length=1000)] | None = None
    conduct: ArrangementInput | None = None


class ArrangedLaunch(Value):
    """What a queue or a schedule launches: a target with its names filled in, and the versions that were arranged."""

    target: Target
    versions: tuple[TemplateVersion, ...] = ()
    by: LaunchOrigin
    queue_id: UUID | None = None
    item_id: UUID | None = None
    schedule_id: UUID | None = None

    def request_event(self, launched_by: UUID, versions: tuple[TemplateVersion, ...]) -> LaunchRequested:
        """Return what records it, as this principal's, at these versions."""
        target, ids = self.target, {name: getattr(self, name) for name in ("by", "queue_id", "item_id", "schedule_id")}
        return LaunchRequested(
            name=target.name,
            plan_id=target.plan_id if isinstance(target, ConductPlan) else None,
            recipe_id=target.recipe_id if isinstance(target, ConductRecipe) else None,
            target=stored_target(target),
            launched_by=launched_by,
            versions=versions,
            **ids,
        )

    def refusal_record(self, id: UUID, launched_by: UUID, code: str, detail: str) -> Also:
        """Return what records that it was refused, so that it was never begun."""
        refused = LaunchRefused(code=code, detail=detail[:MAX_DETAIL])
        return Also(Launch, id, [self.request_event(launched_by, self.versions), refused])


LaunchFacts = tuple[LaunchRequested, LaunchBegun, list[Also]]
"""What a launch records of itself, and what the commands that it stands for write."""


class LaunchAccepted(AnswerForm):
    """What a launch has started, and the cautions it began under; `get_work` and `get_launch` show how it goes."""

    launch_id: UUID
    name: FreeText
    run_id: UUID | None
    procedure_ids: tuple[UUID, ...]
    conduct_id: UUID
    work_id: UUID
    acknowledged_cautions: tuple[AcknowledgedCaution, ...] = ()
    waiting_question: WaitingQuestion = None


@launch.creation(
    name="launch",
    command_name="Launch",
    verb="Start",
    returns=LaunchAccepted | RunConductResult | ConductResult,
    accepted=LaunchAccepted,
    work=OpenedWork("conduct", "conduct-run", asks=True),
    gated=True,
    attempts=3,
    refuses=[
        launch.AlreadyExists,
        *(StartRun, RegisterProcedureFromRecipe, ConductRun, ConductProcedure, ConductOrHoldProcedure),
        *(ConductUntilConverged, ConductUntilAdvised),
    ],
)
class StartLaunch(ChosenOptions, JudgedCreation[LaunchFacts]):
    """Start a plan as a run with its phases, or a recipe as a procedure, and have it conducted: all of it or nothing.

    Give `plan_id` or `recipe_id`. A plan's phases are the only recipe of its capability that is in service, unless they are
    given. With `wait`, the answer is the result of the conduct where it ends in time.
    """

    plan_id: UUID | None = None
    recipe_id: UUID | None = None
    name: Annotated[
        LaunchName | None,
        Field(description="What the run or procedure is called. Left out: the plan or recipe, and the time."),
    ] = None
    subject_id: UUID | None = None
    parameters: Annotated[
        dict[str, JsonValue], Field(description="Parameters of the run, where they differ from the plan's own.")
    ] = {}
    phases: Annotated[tuple[LaunchedPhase, ...], Field(min_length=1, max_length=MAX_PHASES)] | None = None
    raid: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    pinned_calibration_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    trigger_source: Annotated[str, Word(500)] | None = None
    external_refs: Annotated[dict[str, str], Field(max_length=100)] = {}
    campaign_id: UUID | None = None
    decided_by_decision_id: UUID | None = None
    bindings: dict[str, JsonValue] = {}
    target_asset_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    procedure_kind: LaunchedKind | None = None
    conduct: ArrangementInput | None = None
    wait: Wait = 0
    fingerprint: RehearsalFingerprint | None = None
    arranged: Annotated[ArrangedLaunch | None, Internal()] = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if [self.plan_id, self.recipe_id, self.arranged].count(None) != 2:
            raise ValueError("give plan_id or recipe_id, one of them")
        foreign = OF_RECIPES if self.plan_id is not None else OF_PLANS
        if wrong := sorted(self.model_fields_set & foreign):
            raise ValueError(f"{', '.join(wrong)}: not for the launch of a {'plan' if foreign is OF_RECIPES else 'recipe'}")
        return self

    @property
    def starts_run(self) -> bool:
        """Whether it starts a plan, and no recipe by itself."""
        return isinstance(self.arranged.target, ConductPlan) if self.arranged is not None else self.plan_id is not None

    @property
    def arrangements(self) -> list[Arrangement]:
        """How its procedures are conducted, as far as that is said; phases that are not given are one."""
        if self.arranged is not None:
            return [one.arrangement for one in recipes_of(self.arranged.target)]
        said = [phase.conduct for phase in self.phases or ()] or [self.conduct]
        return [one or DEFAULT_ARRANGEMENT for one in said]

    def needs(self) -> NeededPermissions:
        """Return the permissions of all that it stands for; of what a queue or a schedule arranged, its own is not asked."""
        own = () if self.arranged is not None else (self.operation.command_name,)
        conducts = [COMMANDS[one.command].operation.command_name for one in self.arrangements]
        if self.starts_run:
            issued = [*RUN_ISSUED, *(name for conduct in conducts for name in needed_grants(conduct))]
            return NeededPermissions((*own, *OF_RUN), tuple(dict.fromkeys(issued)))
        return NeededPermissions((*own, OF_RUN[1], *conducts), issued_commands(conducts[0]))

    def gather(self, call: Call) -> Reads[LaunchFacts]:
        """Decide every command that it stands for, in order, on the record as the ones before it leave it."""
        if (yield from find(Launch, call.new_id)) is not None:
            raise launch.AlreadyExists(f"The launch {call.new_id} was begun already; get_launch shows how it goes.")
        arranged = self.arranged or ArrangedLaunch(
            target=(yield from self.find_target(call)), by=(yield from origin_of(call))
        )
        templates = (yield from load_templates([arranged.target])).of(arranged.target)
        refuse_changed(arranged.versions, templates)
        requested = arranged.request_event(call.principal_id, versions_of(templates))
        match arranged.target:
            case ConductPlan() as target:
                begun, written = yield from give_plan(target, OwnLaunchIds(call.new_id), call, self.fingerprint)
            case ConductRecipe() as target:
                begun, written = yield from give_recipe(target, OwnLaunchIds(call.new_id), call, self.fingerprint)
        return requested, begun, written

    def decide(self, call: Call, facts: LaunchFacts) -> Outcome:
        requested, begun, written = facts
        own: dict[str, Any] = {"launch_id": call.new_id, "name": requested.name, "work_id": begun.conduct_id}
        answer = LaunchAccepted(**own, **dict(begun), acknowledged_cautions=acknowledged_in(written))
        return [requested, begun, *written, Answer(answer.model_dump(mode="json", exclude={"waiting_question"}))]

    def find_target(self, call: Call) -> Reads[ConductPlan | ConductRecipe]:
        """Return what is asked for with everything that was left out."""
        refuse_blank_text(self)
        if self.plan_id is not None:
            return (yield from self._find_plan(self.plan_id, call))
        assert self.recipe_id is not None, "a launch has a target"
        recipe = yield from require(Recipe, self.recipe_id)
        name = self.name or timed_name(recipe.name, call.now)
        own = {field: getattr(self, field) for field in ("recipe_id", "bindings", "procedure_kind", "conduct")}
        said = LaunchedPhase(**own, name=name, target_asset_ids=self.target_asset_ids)
        (found,) = yield from self._with_defaults([said], frozenset())
        return ConductRecipe(kind="ConductRecipe", **dict(found))

    def _find_plan(self, plan_id: UUID, call: Call) -> Reads[ConductPlan]:
        plan, method = yield from load_plan(plan_id)
        phases = self.phases or ((yield from self._only_phase(plan, method)),)
        asked = {name: getattr(self, name) for name in RunRequest.model_fields if name in type(self).model_fields}
        asked |= {"name": self.name or timed_name(plan.name, call.now), "override_parameters": self.parameters}
        return ConductPlan(kind="ConductPlan", phases=(yield from self._with_defaults(phases, plan.asset_ids)), **asked)

    def _only_phase(self, plan: Plan, method: Method) -> Reads[LaunchedPhase]:
        """Return the only recipe that realises what a plan is for; refuse where there is none, or a choice."""
        found = yield from recipes_in_service(method.capability_id)
        if len(found) == 1:
            return LaunchedPhase(recipe_id=next(iter(found)))
        candidates = {str(id): one.name for id, one in found.items()}
        aim = f"what the plan {plan.name} is for"
        detail = f"No recipe realises {aim}; define one of its capability, or name recipes as phases."
        if found:
            named = "; ".join(f"{name} ({id})" for id, name in candidates.items())
            detail = f"{len(found)} recipes realise {aim}; name those to conduct as phases, in order: {named}."
        raise self.cannot("recipe_choice_needed", detail, candidates=candidates)

    def _with_defaults(
        self, phases: Sequence[LaunchedPhase], asset_ids: frozenset[UUID]
    ) -> Reads[tuple[RecipeConduct, ...]]:
        """Return phases with what follows from their recipes and the assets of the plan, and the options of all of them."""
        recipes = yield from require_all(Recipe, [phase.recipe_id for phase in phases])
        capabilities = yield from require_all(Capability, {recipe.capability_id for recipe in recipes.values()})
        chosen = first_choices(self).model_dump(mode="json")
        return tuple(
            RecipeConduct(
                recipe_id=phase.recipe_id,
                bindings=phase.bindings,
                name=phase.name or recipe.name,
                procedure_kind=phase.procedure_kind or kind_of(capabilities[recipe.capability_id].code),
                target_asset_ids=asset_ids if phase.target_asset_ids is None else phase.target_asset_ids,
                conduct=cast("Arrangement", {**chosen, **(phase.conduct or DEFAULT_ARRANGEMENT).stored_form()}),
            )
            for phase in phases
            for recipe in [recipes[phase.recipe_id]]
        )


def give_plan(
    target: ConductPlan, ids: LaunchIds, call: Call, fingerprint: str | None = None
) -> Reads[tuple[LaunchBegun, list[Also]]]:
    """Start the run, register its phases, and open its conduct, unless the first phase finds an asset in use; what an
    earlier release has begun of it is continued."""
    count, written, rehearsed = len(target.phases), list[Also](), {"fingerprint": fingerprint}
    run = yield from find(Run, ids.run_id)
    procedure_ids = ids.procedure_ids(count) if run is None else ids.former_procedure_ids(count)
    known = yield from find_all(Procedure, procedure_ids)
    if run is None:
        written.append((yield from give(target.start(ids.id).model_copy(update=rehearsed), call, ids.run_id)))
    else:
        written.append((yield from join_launch(run, ids.id, call)))
    for id, phase in zip(procedure_ids, target.phases, strict=True):
        if id not in known:
            written.append((yield from give(phase.registration(ids.run_id, ids.id), call, id)))
        else:
            written.append((yield from join_launch(known[id], ids.id, call)))
    conduct = target.conduct(procedure_ids).model_copy(update=rehearsed)
    written.append((yield from give(conduct, call, ids.conduct_id, on=ids.run_id)))
    phases, runs = (yield from find_all(Procedure, procedure_ids[:1])), (yield from find_all(Run, [ids.run_id]))
    yield from refuse_rivals_of(phases[procedure_ids[0]], runs[ids.run_id], call)
    return LaunchBegun(run_id=ids.run_id, procedure_ids=procedure_ids, conduct_id=ids.conduct_id), written


def give_recipe(
    target: ConductRecipe, ids: LaunchIds, call: Call, fingerprint: str | None = None
) -> Reads[tuple[LaunchBegun, list[Also]]]:
    """Register the procedure and open its conduct; one that an earlier release has registered is conducted."""
    id, written = ids.procedure_id(), list[Also]()
    if (known := (yield from find(Procedure, id))) is None:
        written.append((yield from give(target.registration(launch_id=ids.id), call, id)))
    else:
        written.append((yield from join_launch(known, ids.id, call)))
    conduct = target.conduct_command().model_copy(update={"fingerprint": fingerprint})
    written.append((yield from give(conduct, call, ids.conduct_id, on=id)))
    return LaunchBegun(run_id=None, procedure_ids=(id,), conduct_id=ids.conduct_id), written


def origin_of(call: Call) -> Reads[LaunchOrigin]:
    """Return what kind of caller asks; one without an actor is a person."""
    actor = yield from find(Actor, call.principal_id)
    return LaunchOrigin.PERSON if actor is None else ORIGINS[actor.kind]


def acknowledged_in(written: Sequence[Also]) -> Any:
    """Return the cautions that the given commands have answered with."""
    answers = [effect.body for also in written for effect in also.outcome if isinstance(effect, Answer)]
    return tuple(caution for body in answers for caution in body.get("acknowledged_cautions", ()))


def timed_name(name: str, now: datetime) -> str:
    """Return a name for what is made of something of this name at a time."""
    moment = f", {now:%Y-%m-%d %H:%M:%S}"
    return name[: MAX_NAME_LENGTH - len(moment)] + moment


def kind_of(capability_code: str) -> str:
    """Return the kind of a procedure that realises a capability: the last part of its code."""
    return capability_code.rsplit(".", 1)[-1][:MAX_KIND_LENGTH]
