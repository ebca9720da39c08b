"""The preflight of a procedure: every gate of starting or resuming it, by hand and by a conduct, asked at once.
The rules are those that the commands themselves are judged by, in the same order."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.conduct.conduct import (
    every_rival_of,
    first_undone_step,
    judged_assets,
    options_of,
    refuse_begun,
    refuse_not_held,
    refuse_rivals,
    refuse_unresolved,
    witnessed_uses,
)
from baton.domain.conduct.estimates import Estimate, conduct_estimate, load_estimate
from baton.domain.conduct.pins import pinned_steps, prepare_steps
from baton.domain.conduct.progress import ConductProgress
from baton.domain.kernel import Call, Query
from baton.domain.procedure.procedure import (
    DEFINED,
    HELD,
    RUNNING,
    ConductMode,
    Procedure,
    ProcedureSteeringDeclared,
    ProcedureStepsResolved,
    procedure,
)
from baton.domain.procedure.touched import (
    TouchedSignals,
    WrittenSignals,
    load_written_signals,
    refuse_out_of_limits,
    refuse_unowned,
    unowned_sentence,
    written_values,
)
from baton.domain.recipe.conduct_options import ConductOptions
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.step_actions import action_names, check_actions, load_actions, unconfirmed_actions
from baton.domain.registry import REGISTRY
from baton.domain.run.gates import Preconditions
from baton.domain.run.run import Run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.gates import Commands, CommandVerdict, GateReport, GateVerdict
from baton.domain.shared.reads import Reads, events_of, record_of, require_if_given
from baton.domain.shared.refusals import Refusal
from baton.domain.start import procedure_start as start
from baton.domain.start.procedure_start import ResumeProcedure, StartProcedure
from baton.domain.step.output_names import OverwrittenOutputs, overwritten_outputs
from baton.domain.step.plan_steps import load_plan_steps, refuse_invalid_parameters, refuse_unknown_plans
from baton.domain.step.signal_units import NO_UNITS, SignalUnits, UnknownUnits, load_units

FIRST_CONDUCTS = ("conduct_procedure", "conduct_or_hold_procedure", "conduct_until_converged")
STEERED_CONDUCTS = (*FIRST_CONDUCTS, "conduct_until_advised")  # The conducts that begin a procedure with a recipe.


UnitLoader = Callable[[Expansion], Reads[SignalUnits]]


class ProcedurePreflight(AnswerForm):
    """Every gate's verdict in order, and what that means for beginning or going on by hand and by a conduct.

    A command that is not listed would be refused for the procedure's status, for how it was conducted, or for want of a
    recipe to steer. `passed` is said of the command that takes a held procedure up and, before that, of start_procedure and
    conduct_procedure.
    The cautions are those that a conduct would acknowledge now; none, where what they are on cannot be loaded.
    """

    procedure_id: UUID
    resuming: bool
    """Whether the verdicts are about going on rather than beginning."""
    taken_up_by: str | None  # The command that takes a held procedure up; null where it is not held.
    """The command that takes the held procedure up."""
    passed: bool
    commands: tuple[CommandVerdict, ...]
    gates: tuple[GateVerdict, ...]
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]
    touched: Annotated[
        TouchedSignals | None,
        Field(description="The signals that a conduct writes and reads; null where its steps cannot be prepared."),
    ]
    judged_asset_ids: Annotated[
        tuple[UUID, ...],
        Field(description="The assets that a conduct is judged on: the targets, and the owners of what it writes."),
    ]
    overwrites_registered: OverwrittenOutputs = ()
    units_unknown: UnknownUnits = ()
    options: Annotated[
        ConductOptions, Field(description="The options of conduct_procedure or, from Held, of the command that takes it up.")
    ]
    estimate: Annotated[
        Estimate | None,
        Field(
            description="How long a conduct would take, or what remains. Null where no steps are known, or none may begin."
        ),
    ] = None


@procedure.query(get="/{procedure_id}/preflight", returns=ProcedurePreflight)
class PreflightProcedure(Query[ProcedurePreflight]):
    """Ask every gate whether this procedure could start now or, from Held, go on; and change nothing."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
        by_hand, conducts = asked_commands(procedure)
        resuming = procedure.status is HELD
        commands = (by_hand.operation.name, *conducts)
        report = GateReport()
        cautions, steps, signals, units, _ = yield from ask_gates(report, procedure, call, by_hand, conducts)
        verdicts = tuple(map(report.command_verdict, commands))
        required = (commands[-1],) if resuming else ("start_procedure", "conduct_procedure")
        return ProcedurePreflight(
            procedure_id=procedure.id,
            resuming=resuming,
            taken_up_by=commands[-1] if resuming else None,
            passed=all(verdict.passed for verdict in verdicts if verdict.command in required),
            commands=verdicts,
            gates=tuple(report.verdicts),
            acknowledged_cautions=cautions,
            touched=None if signals is None else signals.touched,
            judged_asset_ids=tuple(sorted(judged_by_conduct(procedure, signals))),
            overwrites_registered=() if steps is None else (yield from overwritten_outputs(steps.every_step, {})),
            units_unknown=() if units is None else units.unknown_addresses,
            options=options_of(procedure),
            estimate=(yield from preflight_estimate(procedure, call, steps)),
        )


def asked_commands(procedure: Procedure) -> tuple[StartProcedure | ResumeProcedure, Commands]:
    """Return the command by hand and the conducts that the gates are asked for."""
    if procedure.status is not HELD:
        return StartProcedure(), FIRST_CONDUCTS if procedure.recipe_id is None else STEERED_CONDUCTS
    return ResumeProcedure(), () if procedure.conduct_mode is None else (start.RESUMING[procedure.conduct_mode],)


def preflight_estimate(procedure: Procedure, call: Call, steps: Expansion | None) -> Reads[Estimate | None]:
    """Return how long a conduct of these steps takes or, from Held, what remains of the latest one."""
    if procedure.status is HELD:
        progress = yield from record_of(ConductProgress, procedure_id=procedure.id)
        return None if progress is None else (yield from conduct_estimate(procedure, progress, call.now))
    begun = procedure.conduct_mode is not None or procedure.status not in (DEFINED, RUNNING)
    if begun or steps is None or not steps.step_count:
        return None
    return (yield from load_estimate(steps.steps, steps.closing_steps))


class AskedGates(NamedTuple):
    """What the gates of a procedure were asked about; None is what could not be loaded."""

    cautions: tuple[AcknowledgedCaution, ...]
    steps: Expansion | None
    signals: WrittenSignals | None
    units: SignalUnits | None
    facts: Preconditions | None  # Those that a conduct is judged by.


def ask_gates(
    report: GateReport,
    procedure: Procedure,
    call: Call,
    by_hand: StartProcedure | ResumeProcedure,
    conducts: Commands,
    load: UnitLoader = load_units,
) -> Reads[AskedGates]:
    """Ask every gate of the command by hand and of the conducts."""
    resuming, hand = isinstance(by_hand, ResumeProcedure), (by_hand.operation.name,)
    both = hand + conducts
    needed = {name: start.needed_grants(REGISTRY.operations[name].command_name) for name in both}
    yield from start.ask_grants(report, needed, hand)
    report.ask("status_allowed", hand, lambda: refuse_status(by_hand, procedure))
    report.ask("conduct_allowed", conducts, lambda: refuse_not_held(procedure) if resuming else refuse_begun(procedure))
    parent = () if procedure.parent_run_id is None else (procedure.parent_run_id,)
    run, run_missing, steps = None, None, None
    try:
        run = yield from require_if_given(Run, procedure.parent_run_id)
    except Refusal as refusal:
        run_missing = refusal
        report.note("parent_run_running", both, refusal, parent)
    else:
        report.ask("parent_run_running", both, lambda: start.refuse_idle_run(run, type(by_hand)), parent)
    if isinstance(by_hand, ResumeProcedure):
        report.ask("conduct_unpinned", hand, lambda: start.refuse_pinned(by_hand, procedure))
        report.ask("outcome_known", conducts, lambda: refuse_unresolved(procedure))
        if pins := (yield from events_of(procedure.id, ProcedureStepsResolved)):
            steps = yield from report.ask_reads("programs_allowed", conducts, pinned_steps(pins[-1]))
    else:
        recipe = () if procedure.recipe_id is None else (procedure.recipe_id,)
        steps = yield from report.ask_reads("steps_prepared", conducts, prepare_steps(procedure, (), run), recipe)
    signals = None if steps is None else (yield from load_written_signals((*steps.steps, *steps.closing_steps)))
    targets, judged = procedure.target_asset_ids, judged_by_conduct(procedure, signals)
    asking = {targets: both} if judged == targets else {targets: hand, judged: conducts}
    loaded: dict[frozenset[UUID], Preconditions | None] = {}
    for asset_ids, commands in asking.items() if run_missing is None else ():
        loading = start.start_preconditions(procedure, run, call, asset_ids, resuming=resuming)
        loaded[asset_ids] = yield from report.ask_reads("targets_found", commands, loading, asset_ids)
    if run_missing is not None:
        report.skip(["targets_found"], both)
    if steps is not None and signals is not None:
        yield from ask_actions(report, conducts, steps)
        yield from ask_plans(report, call, conducts, steps, signals)
    units = yield from ask_signals(report, procedure, conducts, steps, signals, load)
    for asset_ids, commands in asking.items():
        if (facts := loaded.get(asset_ids)) is None:
            report.skip([gate.name for gate in start.GATES], commands)
        else:
            report.ask_all(start.GATES, commands, facts)
    facts = loaded.get(judged)
    cautions = () if facts is None else (yield from start.acknowledged_cautions(procedure, run, facts))
    rivals = yield from every_rival_of(procedure, judged, call.now)
    elsewhere = sorted({run.name for _, run in (yield from witnessed_uses(judged))})
    remark = f"A RunEngine uses what this is for or writes to, and keeps no conduct away: {', '.join(elsewhere)}."
    report.ask("targets_unclaimed", conducts, lambda: refuse_rivals(rivals), judged, remark if elsewhere else None)
    return AskedGates(cautions, steps, signals, units, facts)


def judged_by_conduct(procedure: Procedure, signals: WrittenSignals | None) -> frozenset[UUID]:
    """Return the assets that a conduct is judged on; the targets alone, where what it writes is not known."""
    return procedure.target_asset_ids if signals is None else judged_assets(procedure, signals)


def ask_actions(report: GateReport, conducts: Commands, steps: Expansion) -> Reads[None]:
    """Ask the gate on the actions of the steps, where there are any."""
    if names := action_names(steps.steps, steps.closing_steps):
        known = yield from load_actions(names)
        remark = unconfirmed_actions(steps.steps, steps.closing_steps, known)
        report.ask("actions_known", conducts, lambda: check_actions(steps.steps, steps.closing_steps, known), (), remark)


def ask_plans(report: GateReport, call: Call, conducts: Commands, steps: Expansion, signals: WrittenSignals) -> Reads[None]:
    """Ask the gates on the Bluesky plans of the steps, where there are any."""
    plans = yield from load_plan_steps(steps, call)
    if not plans.located:
        return
    report.ask("plans_known", conducts, lambda: refuse_unknown_plans(plans))
    report.ask("plan_parameters_valid", conducts, lambda: refuse_invalid_parameters(plans))
    if free := [step.name for _, step in plans.located if not any(written_values(step, signals.executors))]:
        remark = f"What {', '.join(sorted(set(free)))} sets its devices to is not known here, and no limits are judged."
        report.ask("limits_of_plan_not_known", conducts, lambda: None, (), remark)


def ask_signals(
    report: GateReport,
    procedure: Procedure,
    conducts: Commands,
    steps: Expansion | None,
    signals: WrittenSignals | None,
    load: UnitLoader,
) -> Reads[SignalUnits | None]:
    """Ask the gates on the signals that a conduct would write and read; return their units."""
    if steps is None or signals is None:
        report.skip(["signals_owned", "units_agree", "setpoints_within_limits"], conducts)
        return None
    remark = f"{unowned_sentence(signals)}; this deployment allows that." if signals.unowned_addresses else None
    report.ask("signals_owned", conducts, lambda: refuse_unowned(signals), signals.owner_ids, remark)
    units = yield from report.ask_reads("units_agree", conducts, load(steps), signals.owner_ids)
    first, space = 0, None
    if procedure.status is HELD and procedure.conduct_mode is ConductMode.FLAT:
        first = yield from first_undone_step(procedure)
    if procedure.status is HELD and procedure.conduct_mode is ConductMode.ADVISED:
        space = (yield from events_of(procedure.id, ProcedureSteeringDeclared))[-1].space
    judge = partial(refuse_out_of_limits, steps, signals, units or NO_UNITS, first_step=first, space=space)
    report.ask("setpoints_within_limits", conducts, judge, signals.owner_ids)
    return units


def refuse_status(by_hand: StartProcedure | ResumeProcedure, procedure: Procedure) -> None:
    """Refuse a start or resumption by hand that the status or a live conduct does not allow."""
    by_hand.operation.check(by_hand, procedure)
    if procedure.live_conduct_id is not None:
        raise start.live_conduct_refusal(by_hand, procedure)
