"""What is conducted in its turn: a recipe, or a run on a plan with its phases. Schedules take these forms as they are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue, TypeAdapter

from baton.domain.kernel import IdSet, Value, instant
from baton.domain.operation.launch.arranged_conduct import DEFAULT_ARRANGEMENT, Arrangement, ArrangementInput
from baton.domain.operation.procedure.registration import RegisterProcedureFromRecipe
from baton.domain.recipe.template_versions import TemplateVersion
from baton.domain.run.conduct import MAX_PHASES, ConductRun, Phase
from baton.domain.run.start import RunRequest, StartRun
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text, TextsMayContainPersonalData

MAX_NAME_LENGTH = 200
FIRED_AT, COUNT = "{fired_at}", "{count}"  # The placeholders of a name: when it was due or started, and its number.


class InvalidScheduleTargetError(Invalid, context="operation"):
    """What the schedule is to do is not said in a way that could be done."""


class RecipeConduct(Value):
    """A procedure to register from a recipe, and how it is conducted; where that is not said, its steps once."""

    recipe_id: UUID
    bindings: dict[str, JsonValue] = {}
    name: Annotated[str, Text(MAX_NAME_LENGTH, InvalidScheduleTargetError, "name", personal=True)]
    procedure_kind: Annotated[str, Text(50, InvalidScheduleTargetError, "procedure kind")] = "scheduled"
    target_asset_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    conduct: ArrangementInput | None = None

    @property
    def arrangement(self) -> Arrangement:
        return self.conduct or DEFAULT_ARRANGEMENT

    def registration(
        self, fired_at: datetime, count: int, run_id: UUID | None = None, versions: Sequence[TemplateVersion] = ()
    ) -> RegisterProcedureFromRecipe:
        """Return the command that registers the procedure, from the recipe at one of these versions where it is among them;
        its name is filled in with a time and a number."""
        own = {name: getattr(self, name) for name in ("recipe_id", "bindings", "target_asset_ids")}
        name, kind = filled_name(self.name, fired_at, count), self.procedure_kind
        return RegisterProcedureFromRecipe(
            **own, name=name, kind=kind, parent_run_id=run_id, arranged_versions=tuple(versions)
        )


class ConductRecipe(RecipeConduct):
    """Register a procedure from a recipe and conduct it."""

    kind: Literal["ConductRecipe"]


class ConductPlan(RunRequest):
    """Start a run with all its gates, register its phases, and conduct them; what they leave unbound the run binds."""

    kind: Literal["ConductPlan"]
    phases: Annotated[tuple[RecipeConduct, ...], Field(max_length=MAX_PHASES)]

    def start(self, fired_at: datetime, count: int, versions: Sequence[TemplateVersion] = ()) -> StartRun:
        """Return the command that starts the run, on the plan and the method at one of these versions where they are among
        them; its name is filled in with a time and a number."""
        asked = {name: getattr(self, name) for name in RunRequest.model_fields}
        filled = {"name": filled_name(self.name, fired_at, count), "arranged_versions": tuple(versions)}
        return StartRun(**{**asked, **filled})

    def conduct(self, procedure_ids: tuple[UUID, ...]) -> ConductRun:
        """Return the command that conducts the registered phases."""
        listed = zip(procedure_ids, self.phases, strict=True)
        return ConductRun(phases=tuple(Phase(procedure_id=id, conduct=phase.arrangement) for id, phase in listed), wait=0)


Target = Annotated[ConductRecipe | ConductPlan, Field(discriminator="kind")]
StoredTarget = Annotated[
    dict[str, Any], TextsMayContainPersonalData(codes=frozenset({"command", "kind", "procedure_kind", "substrate"}))
]  # A target on an event.
FORM: TypeAdapter[ConductRecipe | ConductPlan] = TypeAdapter(Target)


def stored_target(target: ConductRecipe | ConductPlan) -> dict[str, Any]:
    """Return a target as it is stored, with all defaults filled in."""
    form: dict[str, Any] = target.model_dump(mode="json", by_alias=True)
    detail = [form] if isinstance(target, ConductRecipe) else form["phases"]
    for one in detail:
        one["conduct"] = one["conduct"] or DEFAULT_ARRANGEMENT.stored_form()
    return form


def target_of(stored: Mapping[str, Any]) -> ConductRecipe | ConductPlan:
    """Return the target that was stored."""
    return FORM.validate_python(stored)


def recipes_of(target: ConductRecipe | ConductPlan) -> tuple[RecipeConduct, ...]:
    """Return every procedure that is registered for a target."""
    return (target,) if isinstance(target, ConductRecipe) else target.phases


def filled_name(name: str, fired_at: datetime, count: int) -> str:
    """Return a name with its placeholders filled in."""
    return name.replace(FIRED_AT, instant(fired_at.replace(microsecond=0))).replace(COUNT, str(count))
