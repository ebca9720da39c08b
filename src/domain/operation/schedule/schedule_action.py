"""The action of a schedule: conduct a recipe, or start a run on a plan and conduct its phases."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue, TypeAdapter

from baton.domain.kernel import IdSet, Value, instant
from baton.domain.operation.procedure.registration import RegisterProcedureFromRecipe
from baton.domain.operation.schedule.arranged_conduct import DEFAULT_ARRANGEMENT, Arrangement, ArrangementInput
from baton.domain.run.conduct import MAX_PHASES, ConductRun, Phase
from baton.domain.run.start import MAX_PINS, RunRequest, StartRun
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text

MAX_NAME_LENGTH = 200
FIRED_AT, COUNT = "{fired_at}", "{count}"  # The placeholders of a name: the time a firing was due, and its number.


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

    def registration(self, fired_at: datetime, count: int, run_id: UUID | None = None) -> RegisterProcedureFromRecipe:
        """Return the command that registers the procedure of a firing."""
        own = {name: getattr(self, name) for name in ("recipe_id", "bindings", "target_asset_ids")}
        name, kind = filled_name(self.name, fired_at, count), self.procedure_kind
        return RegisterProcedureFromRecipe(**own, name=name, kind=kind, parent_run_id=run_id)


class ConductRecipe(RecipeConduct):
    """Register a procedure from a recipe and conduct it."""

    kind: Literal["ConductRecipe"]


class ConductPlan(RunRequest):
    """Start a run with all its gates, register its phases, and conduct them; what they leave unbound the run binds."""

    kind: Literal["ConductPlan"]
    phases: Annotated[tuple[RecipeConduct, ...], Field(max_length=MAX_PHASES)]

    def start(self, fired_at: datetime, count: int) -> StartRun:
        """Return the command that starts the run of a firing."""
        asked = {name: getattr(self, name) for name in RunRequest.model_fields}
        return StartRun(**{**asked, "name": filled_name(self.name, fired_at, count)})

    def conduct(self, procedure_ids: tuple[UUID, ...]) -> ConductRun:
        """Return the command that conducts the registered phases of a firing."""
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


def target_of(stored: Mapping[str, Any]) -> ConductRecipe | ConductPlan:
    """Return the target that was stored."""
    return FORM.validate_python(stored)


def recipes_of(target: ConductRecipe | ConductPlan) -> tuple[RecipeConduct, ...]:
    """Return every procedure that a firing registers."""
    return (target,) if isinstance(target, ConductRecipe) else target.phases


def filled_name(name: str, fired_at: datetime, count: int) -> str:
    """Return a name with its placeholders filled in."""
    return name.replace(FIRED_AT, instant(fired_at.replace(microsecond=0))).replace(COUNT, str(count))


def check_target(target: ConductRecipe | ConductPlan, now: datetime) -> None:
    """Refuse a target that no firing could carry out."""
    for one in recipes_of(target):
        check_name(one.name, now)
        if getattr(one.arrangement, "steps", ()):
            raise unfit("steps_forbidden", "A recipe brings its own steps; leave out the steps of its conduct.")
    if isinstance(target, ConductPlan):
        if not target.name.strip():
            raise unfit("blank", "The name of the run is blank; give it at least one visible character.")
        check_name(target.name, now)
        if not target.phases:
            raise unfit("phases_missing", "A run without phases has nothing to conduct; list at least one phase.")
        if (count := len(target.pinned_calibration_ids)) > MAX_PINS:
            raise unfit("too_many", f"A run pins at most {MAX_PINS} calibration revisions, and {count} are given.")
        trimmed_refs(target.external_refs, InvalidScheduleTargetError)


def check_name(name: str, now: datetime) -> None:
    """Refuse a name that cannot be filled in, or not within its length."""
    if unknown := sorted(set(re.findall(r"{[^{}]*}", name)) - {FIRED_AT, COUNT}):
        detail = f"Nothing is known to be filled in for {unknown[0]}; use {FIRED_AT} or {COUNT}."
        raise unfit("unknown_placeholder", detail, placeholders=unknown)
    if len(filled_name(name, now, 10**9)) > MAX_NAME_LENGTH:
        raise unfit("too_long", f"Filled in, the name {name!r} is longer than {MAX_NAME_LENGTH} characters; shorten it.")


def unfit(reason: str, detail: str, **facts: Any) -> InvalidScheduleTargetError:
    """Return the refusal of a target."""
    return InvalidScheduleTargetError(detail, reason=reason, facts=facts)
