"""The preflight of a run: every gate of its start asked at once, and what would have to be true at a later time."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.kernel import Call, IdSet, Query
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.expansion import binding_units
from baton.domain.recipe.recipe import Recipe
from baton.domain.recipe.steps import located_steps
from baton.domain.run.run import run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.gates import CommandVerdict, GateReport, GateVerdict
from baton.domain.shared.reads import Reads, find_all, require_all
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.times import Instant
from baton.domain.start.procedure_start import RUN_ISSUED, ask_grants, needed_grants
from baton.domain.start.run_start import GATES, REFUSALS, RunRequest, effective_parameters, load_start
from baton.domain.step.output_names import OverwrittenOutputs, overwritten_outputs, template_words
from baton.domain.step.signal_units import NO_UNITS, CountedSignal, SignalUnits, UnknownUnits, compare_units, units_in
from baton.domain.views.conditions import Condition, ConditionSubject, ForeseenStart, load_conditions

FARTHEST = timedelta(days=366)
"""The farthest time ahead that conditions are told for."""


class InvalidPreflightTimeError(Invalid, context="run"):
    """Conditions are told for a time that lies ahead, and by a year at the most."""


CONDUCTING = ("ConductRun", *RUN_ISSUED, *needed_grants("ConductProcedure"))  # For phases that walk their steps once.


class Preflight(AnswerForm):
    """Every gate's verdict in order; `passed` is that of start_run, and parameters that no run could have are null.

    Of conduct_run, which may follow, only the permissions are asked for here; its phases are judged when they are given.
    """

    passed: bool
    commands: tuple[CommandVerdict, ...]
    gates: tuple[GateVerdict, ...]
    effective_parameters: dict[str, Any] | None
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]
    overwrites_registered: OverwrittenOutputs = ()
    units_unknown: UnknownUnits = ()
    conditions: tuple[Condition, ...] = ()
    """What the start asks for, now and at the time given as `at`; none without it."""


@run.query(post="/preflight", returns=Preflight, refuses=[*REFUSALS, InvalidPreflightTimeError])
class PreflightRun(RunRequest, Query):
    """Ask every gate whether this run could start now, and change nothing."""

    recipe_ids: Annotated[IdSet, Field(max_length=100, description="The recipes of its phases.")] = frozenset()
    at: Instant | None = None
    """Answer `conditions` for this time."""

    def answer(self, call: Call) -> Reads[Preflight]:
        refuse_far_time(self.at, call.now)
        recipes = yield from require_all(Recipe, self.recipe_ids)
        start = yield from load_start(self, call)
        steps = [step for recipe in recipes.values() for step in (*recipe.steps, *recipe.closing_steps)]
        words = template_words(call.new_id, self.subject_id, call.now)
        report, wanted = GateReport(), {"start_run": ("StartRun",), "conduct_run": CONDUCTING}
        yield from ask_grants(report, wanted, by_hand=("start_run",))
        report.ask_all(GATES, ("start_run",), start)
        units = NO_UNITS
        if recipes:
            counted = units_of_recipes(recipes.values())
            units = (yield from report.ask_reads("units_agree", ("conduct_run",), counted)) or NO_UNITS
        passed = {verdict.gate: verdict.passed for verdict in report.verdicts}
        conditions: tuple[Condition, ...] = ()
        if self.at is not None:
            work = ConditionSubject(type="Plan", id=start.plan.id, name=start.plan.name)
            foreseen = ForeseenStart(start, work, self.at, start.asset_ids)
            conditions = yield from load_conditions(call, [foreseen], ("StartRun", *CONDUCTING))
        commands = tuple(map(report.command_verdict, wanted))
        return Preflight(
            passed=commands[0].passed,
            commands=commands,
            gates=tuple(report.verdicts),
            effective_parameters=effective_parameters(start) if passed["parameters_valid"] else None,
            acknowledged_cautions=start.acknowledged_cautions,
            overwrites_registered=(yield from overwritten_outputs(steps, words)),
            units_unknown=units.unknown_addresses,
            conditions=conditions,
        )


def refuse_far_time(at: datetime | None, now: datetime) -> None:
    """Refuse to tell conditions for a time that is over, or farther ahead than a year."""
    if at is not None and at < now:
        raise InvalidPreflightTimeError("This time is over; give a later one, or leave out `at`.", reason="past")
    if at is not None and at > now + FARTHEST:
        detail = f"Conditions are told for {FARTHEST.days} days ahead; give an earlier time."
        raise InvalidPreflightTimeError(detail, reason="too_far")


def units_of_recipes(recipes: Collection[Recipe]) -> Reads[SignalUnits]:
    """Compare the units that recipes and their parameters declare with those of the signals that they write and read."""
    capabilities = yield from find_all(Capability, (recipe.capability_id for recipe in recipes))
    counted: list[CountedSignal] = []
    for recipe in recipes:
        capability, steps = capabilities.get(recipe.capability_id), (recipe.steps, recipe.closing_steps)
        schema = None if capability is None else capability.parameters_schema
        counted += units_in(located_steps(*steps), binding_units((*steps[0], *steps[1]), schema))
    return (yield from compare_units(counted))
