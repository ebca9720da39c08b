"""What a schedule does when it fires: it conducts a recipe, or starts a run on a plan and conducts its phases."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue, TypeAdapter

from baton.domain.kernel import IdSet, Value, instant
from baton.domain.operation.procedure.registration import RegisterProcedureFromRecipe
from baton.domain.operation.schedule.arranged_conduct import USUALLY, Arranged, Arrangement
from baton.domain.run.conduct import MOST_PHASES, ConductRun, Phase
from baton.domain.run.start import MOST_PINS, RunRequest, StartRun
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text

LONGEST_NAME = 200
FIRED_AT, COUNT = "{fired_at}", "{count}"
"""What is filled into a name when the schedule fires: the time it was due, and the number it had when it was opened."""
PLACEHOLDER = re.compile(r"{[^{}]*}")
LONGEST_COUNT = 10**9


class InvalidScheduleTargetError(Invalid, context="operation"):
    """What the schedule is to do is not said in a way that could be done."""


class RecipeConduct(Value):
    """A procedure to register from a recipe, and how it is conducted; where that is not said, its steps once."""

    recipe_id: UUID
    bindings: dict[str, JsonValue] = {}
    name: Annotated[str, Text(LONGEST_NAME, InvalidScheduleTargetError, "name", personal=True)]
    procedure_kind: Annotated[str, Text(50, InvalidScheduleTargetError, "procedure kind")] = "scheduled"
    target_asset_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    conduct: Arranged | None = None

    @property
    def arrangement(self) -> Arrangement:
        return self.conduct or USUALLY

    def registration(self, fired_at: datetime, count: int, run_id: UUID | None = None) -> RegisterProcedureFromRecipe:
        """The command that registers the procedure of a firing."""
        return RegisterProcedureFromRecipe(
            name=titled(self.name, fired_at, count),
            kind=self.procedure_kind,
            target_asset_ids=self.target_asset_ids,
            parent_run_id=run_id,
            recipe_id=self.recipe_id,
            bindings=self.bindings,
        )


class ConductRecipe(RecipeConduct):
    """Register a procedure from a recipe and conduct it."""

    kind: Literal["ConductRecipe"]


class ConductPlan(RunRequest):
    """Start a run with all its gates, register its phases, and conduct them; what they leave unbound the run binds."""

    kind: Literal["ConductPlan"]
    phases: Annotated[tuple[RecipeConduct, ...], Field(max_length=MOST_PHASES)]

    def start(self, fired_at: datetime, count: int) -> StartRun:
        """The command that starts the run of a firing."""
        asked = {name: getattr(self, name) for name in RunRequest.model_fields}
        return StartRun(**{**asked, "name": titled(self.name, fired_at, count)})

    def conduct(self, procedure_ids: tuple[UUID, ...]) -> ConductRun:
        """The command that conducts the phases of a firing, once they are registered."""
        listed = zip(procedure_ids, self.phases, strict=True)
        return ConductRun(phases=tuple(Phase(procedure_id=id, conduct=phase.arrangement) for id, phase in listed), wait=0)


Target = Annotated[ConductRecipe | ConductPlan, Field(discriminator="kind")]
FORM: TypeAdapter[ConductRecipe | ConductPlan] = TypeAdapter(Target)


def written(target: ConductRecipe | ConductPlan) -> dict[str, Any]:
    """A target as it is stored, whatever was left out of it filled in."""
    form: dict[str, Any] = target.model_dump(mode="json", by_alias=True)
    said = [form] if isinstance(target, ConductRecipe) else form["phases"]
    for one in said:
        one["conduct"] = one["conduct"] or USUALLY.written()
    return form


def target_of(stored: Mapping[str, Any]) -> ConductRecipe | ConductPlan:
    """The target that was stored."""
    return FORM.validate_python(stored)


def recipes_of(target: ConductRecipe | ConductPlan) -> tuple[RecipeConduct, ...]:
    """Every procedure that a firing registers."""
    return (target,) if isinstance(target, ConductRecipe) else target.phases


def titled(name: str, fired_at: datetime, count: int) -> str:
    """A name as a firing fills it in."""
    return name.replace(FIRED_AT, instant(fired_at.replace(microsecond=0))).replace(COUNT, str(count))


def check_target(target: ConductRecipe | ConductPlan, now: datetime) -> None:
    """Refuse what no firing could do, whatever it finds."""
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
        if (count := len(target.pinned_calibration_ids)) > MOST_PINS:
            raise unfit("too_many", f"A run pins at most {MOST_PINS} calibration revisions, and {count} are given.")
        trimmed_refs(target.external_refs, InvalidScheduleTargetError)


def check_name(name: str, now: datetime) -> None:
    """Refuse a name that cannot be filled in, or not within its length."""
    if unknown := sorted(set(PLACEHOLDER.findall(name)) - {FIRED_AT, COUNT}):
        detail = f"Nothing is known to be filled in for {unknown[0]}; use {FIRED_AT} or {COUNT}."
        raise unfit("unknown_placeholder", detail, placeholders=unknown)
    if len(titled(name, now, LONGEST_COUNT)) > LONGEST_NAME:
        raise unfit("too_long", f"Filled in, the name {name!r} is longer than {LONGEST_NAME} characters; shorten it.")


def unfit(reason: str, detail: str, **facts: Any) -> InvalidScheduleTargetError:
    """The refusal of a target."""
    return InvalidScheduleTargetError(detail, reason=reason, facts=facts)
