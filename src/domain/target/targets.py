"""What is launched: a recipe, or a run on a plan with its phases. Schedules take these forms as they are."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue, TypeAdapter

from baton.domain.conduct.arranged_conduct import DEFAULT_ARRANGEMENT, Arrangement, ArrangementInput, arranged_command
from baton.domain.conduct.conduct import Conduct
from baton.domain.conduct.run_conduct import MAX_PHASES, ConductRun, Phase
from baton.domain.kernel import IdSet, Value, instant
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.start.run_start import RunRequest, StartRun

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

    def registration(self, run_id: UUID | None = None, launch_id: UUID | None = None) -> RegisterProcedureFromRecipe:
        """Return the command that registers the procedure, for a run and a launch where there are such."""
        own = {name: getattr(self, name) for name in ("recipe_id", "bindings", "name", "target_asset_ids")}
        return RegisterProcedureFromRecipe(**own, kind=self.procedure_kind, parent_run_id=run_id, launch_id=launch_id)

    def conduct_command(self) -> Conduct:
        """Return the command that conducts the procedure."""
        return arranged_command(self.arrangement.stored_form())


class ConductRecipe(RecipeConduct):
    """Register a procedure from a recipe and conduct it."""

    kind: Literal["ConductRecipe"]


class ConductPlan(RunRequest):
    """Start a run with all its gates, register its phases, and conduct them; what they leave unbound the run binds."""

    kind: Literal["ConductPlan"]
    phases: Annotated[tuple[RecipeConduct, ...], Field(max_length=MAX_PHASES)]

    def start(self, launch_id: UUID | None = None) -> StartRun:
        """Return the command that starts the run, for a launch where there is one."""
        return StartRun(**{name: getattr(self, name) for name in RunRequest.model_fields}, launch_id=launch_id)

    def conduct(self, procedure_ids: tuple[UUID, ...]) -> ConductRun:
        """Return the command that conducts the registered phases."""
        listed = zip(procedure_ids, self.phases, strict=True)
        return ConductRun(phases=tuple(Phase(procedure_id=id, conduct=phase.arrangement) for id, phase in listed), wait=0)


Target = Annotated[ConductRecipe | ConductPlan, Field(discriminator="kind")]
FORM: TypeAdapter[ConductRecipe | ConductPlan] = TypeAdapter(Target)


def stored_target(target: ConductRecipe | ConductPlan) -> dict[str, Any]:
    """Return a target as it is stored, with all defaults filled in."""
    form: dict[str, Any] = target.model_dump(mode="json", by_alias=True)
    detail = [form] if isinstance(target, ConductRecipe) else form["phases"]
    for one in detail:
        one["conduct"] = one["conduct"] or DEFAULT_ARRANGEMENT.stored_form()
    return form


def target_of(stored: Mapping[str, object]) -> ConductRecipe | ConductPlan:
    """Return the target that was stored."""
    return FORM.validate_python(stored)


def recipes_of(target: ConductRecipe | ConductPlan) -> tuple[RecipeConduct, ...]:
    """Return every procedure that is registered for a target."""
    return (target,) if isinstance(target, ConductRecipe) else target.phases


def with_filled_names(target: ConductRecipe | ConductPlan, at: datetime, count: int) -> ConductRecipe | ConductPlan:
    """Return a target whose names are filled in with a time and a number."""
    named = {"name": filled_name(target.name, at, count)}
    if isinstance(target, ConductRecipe):
        return target.model_copy(update=named)
    phases = tuple(one.model_copy(update={"name": filled_name(one.name, at, count)}) for one in target.phases)
    return target.model_copy(update={**named, "phases": phases})


def filled_name(name: str, fired_at: datetime, count: int) -> str:
    """Return a name with its placeholders filled in."""
    return name.replace(FIRED_AT, instant(fired_at.replace(microsecond=0))).replace(COUNT, str(count))
