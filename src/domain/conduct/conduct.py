"""How a conduct is opened: in one append to the record, which the engine follows.
Everything that can refuse a conduct does so here, before anything is written; everything later is an outcome."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.conduct import pins
from baton.domain.conduct.ledger import LedgerPort
from baton.domain.conduct.messages import SKIPPED, Mark, StepPlace, target_of
from baton.domain.conduct.progress import LOST_CONDUCTS, ConductProgress, OpenedConduct, submission_fields
from baton.domain.conduct.rehearsal_basis import refuse_outdated_steps
from baton.domain.decision.decision import Decision
from baton.domain.equipment.asset import Asset
from baton.domain.kernel import Call, Command, Event, JudgedVerb, Outcome
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.procedure.procedure import HELD, ConductMode, Procedure, ProcedureStepsResolved, procedure
from baton.domain.procedure.touched import WrittenSignals, load_written_signals, refuse_out_of_limits, refuse_unowned
from baton.domain.recipe.conduct_options import (
    DEFAULT_OPTIONS,
    HOLDING_OPTIONS,
    UNWATCHED,
    ChosenOptions,
    ConductOptions,
    conduct_options,
    first_choices,
)
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.step_actions import KnownActions, action_names, check_actions, load_actions
from baton.domain.recipe.step_checks import DocumentedForm
from baton.domain.recipe.steps import PlainCriterion, RecipeStep, Step
from baton.domain.registry import OpenedWork
from baton.domain.run.gates import Preconditions
from baton.domain.run.run import Run
from baton.domain.run.witness import CLAIMS, WITNESSED_ASSETS, WitnessContact
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.gates import pass_gates
from baton.domain.shared.logbooks import open_logbook
from baton.domain.shared.reads import Holders, Reads, ask, events_of, find_all, members_by_key, records_of, require_if_given
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import Text
from baton.domain.shared.writes import Answer, Claim, Delist, Enter, Put
from baton.domain.start import procedure_start as start
from baton.domain.start.fingerprint import RehearsalFingerprint, StepsBasis
from baton.domain.start.procedure_start import ResumeProcedure, StartProcedure
from baton.domain.start.registration import check_cap
from baton.domain.steering.steering import SteeringSpace
from baton.domain.step.plan_steps import PlanSteps, load_plan_steps, refuse_invalid_parameters, refuse_unknown_plans
from baton.domain.step.results import ConductResult, PlacedStep, StepVerdict
from baton.domain.step.signal_units import SignalUnits, load_units

CONDUCTED_ASSETS = "conducted-asset"  # Claim kind: the procedure whose live conduct has an asset to itself.

Wait = Annotated[float, Field(strict=True, ge=0, le=60, description="Seconds to wait for the result.")]
Steps = Annotated[tuple[Any, ...], DocumentedForm(tuple[Step, ...]), Field(max_length=500)]
Boundary = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
SkipReason = Annotated[str, Text(500, start.InvalidProcedureReEstablishmentBoundaryError, "skip reason", personal=True)]


class Rival(NamedTuple):
    """A live conduct or a run elsewhere, and the asset that it has to itself."""

    asset: Asset
    holder: Procedure | Run


Rivals = Sequence[Rival]


class ConductAccepted(AnswerForm):
    """A conduct under way, with the cautions it began under; `get_work` and `get_procedure_conduct` show its progress."""

    procedure_id: UUID
    conduct_id: UUID
    work_id: UUID
    acknowledged_cautions: tuple[AcknowledgedCaution, ...] = ()


class Opening(NamedTuple):
    """What the opening of a conduct is judged by; the cautions never refuse it, opening it acknowledges them."""

    preconditions: Preconditions
    steps: Expansion
    signals: WrittenSignals
    rivals: Rivals
    cautions: tuple[AcknowledgedCaution, ...]
    units: SignalUnits
    plans: PlanSteps
    actions: KnownActions


def judged_assets(procedure: Procedure, signals: WrittenSignals) -> frozenset[UUID]:
    """Return the assets that a conduct is judged on and has to itself: its targets, and the owners of what it writes."""
    return procedure.target_asset_ids | signals.owner_ids


def conducted_assets(asset_ids: frozenset[UUID]) -> Reads[dict[UUID, Procedure]]:
    """Return the procedures whose live conducts have any of these assets to themselves, by asset."""
    keys = tuple(map(str, sorted(asset_ids)))
    holders: dict[str, UUID] = (yield Holders(CONDUCTED_ASSETS, keys)) if keys else {}
    found = yield from find_all(Procedure, holders.values())
    return {UUID(key): found[holder] for key, holder in holders.items() if holder in found}


def with_assets(holders: Mapping[UUID, Procedure | Run]) -> Reads[Rivals]:
    """Return what has these assets to itself, in the order of the assets' ids."""
    assets = yield from find_all(Asset, holders)
    return [Rival(assets[id], holders[id]) for id in sorted(assets)]


def rivals_of(procedure: Procedure, asset_ids: frozenset[UUID]) -> Reads[Rivals]:
    """Return the other procedures whose live conducts have these assets."""
    found = yield from conducted_assets(asset_ids)
    return (yield from with_assets({id: rival for id, rival in found.items() if rival.id != procedure.id}))


def witnessed_uses(asset_ids: frozenset[UUID]) -> Reads[list[tuple[UUID, Run]]]:
    """Return the live runs elsewhere that use these assets, each with the asset."""
    users = (yield from members_by_key(WITNESSED_ASSETS, *map(str, sorted(asset_ids)))) if asset_ids else {}
    runs = yield from find_all(Run, sorted({id for ids in users.values() for id in ids}))
    return [(UUID(key), runs[id]) for key, ids in users.items() for id in ids if id in runs]


def witnessed_rivals(asset_ids: frozenset[UUID], now: datetime) -> Reads[dict[UUID, Run]]:
    """Return the live runs elsewhere that use these assets, by asset, where their witnesses gave word a moment ago and this
    deployment keeps conducts from their devices."""
    uses = yield from witnessed_uses(asset_ids)
    if not uses or not (yield from ask(DeploymentPort.deployment)).witnessed_runs_claim:
        return {}
    contacts = yield from records_of(WitnessContact, run_id=tuple({run.id for _, run in uses}))
    heard = {contact.run_id for contact in contacts if now - contact.heard_at < CLAIMS}
    return {asset_id: run for asset_id, run in uses if run.id in heard}


def every_rival_of(procedure: Procedure, asset_ids: frozenset[UUID], now: datetime) -> Reads[Rivals]:
    """Return whatever else has these assets to itself."""
    witnessed = yield from with_assets((yield from witnessed_rivals(asset_ids, now)))
    return [*(yield from rivals_of(procedure, asset_ids)), *witnessed]


def refuse_rivals(rivals: Rivals) -> None:
    """Refuse a conduct on an asset that another one has to itself."""
    for rival in rivals:
        raise asset_in_use(rival)


def refuse_rivals_of(procedure: Procedure, run: Run, call: Call) -> Reads[None]:
    """Refuse a phase whose first conduct would find an asset that another one has to itself."""
    steps = yield from pins.prepare_steps(procedure, (), run)
    signals = yield from load_written_signals(steps.every_step)
    refuse_rivals((yield from every_rival_of(procedure, judged_assets(procedure, signals), call.now)))


def asset_in_use(rival: Rival) -> Refusal:
    """Return the refusal of a conduct whose asset another one has, or a run elsewhere."""
    asset, holder = rival
    if isinstance(holder, Run):
        detail = f"The run {holder.name} uses {asset.name} in a RunEngine, which this conduct needs; wait for its end."
        return in_use(asset.id, detail, run_id=holder.id)
    detail = (
        f"The conduct of {holder.name} has {asset.name} to itself, which this one needs; see get_procedure_conduct, wait "
        "for its end, or use hold_procedure or abort_procedure."
    )
    return in_use(asset.id, detail, procedure_id=holder.id, conduct_id=holder.live_conduct_id)


def claim_lost(asset_id: UUID) -> Refusal:
    """Return the refusal of a conduct that another one has overtaken."""
    detail = "Another conduct has an asset to itself that this one is for or writes to; wait for it, or hold or abort it."
    return in_use(asset_id, detail)


def in_use(asset_id: UUID, detail: str, **facts: object) -> Refusal:
    return ConductProcedure.Cannot(detail, reason="asset_in_use", facts={"asset_id": asset_id, **facts}, passing=True)


def refuse_live(procedure: Procedure) -> None:
    """Refuse a second conduct beside a live one."""
    if procedure.live_conduct_id is not None:
        facts = {"conduct_id": procedure.live_conduct_id}
        raise ConductProcedure.Cannot(start.LIVE_CONDUCT, reason="conduct_live", facts=facts)


def refuse_begun(procedure: Procedure) -> None:
    """Refuse to conduct a procedure from the beginning that is not at its beginning."""
    refuse_live(procedure)
    if procedure.status not in (procedures.DEFINED, procedures.RUNNING):
        detail = f"The procedure is {procedure.status.value}; a conduct begins with a Defined or Running one."
        raise StartProcedure.Cannot(detail, reason=procedure.status.value.lower())
    if procedure.conduct_mode is not None:
        detail = "The procedure was conducted and keeps those steps; hold it and take it up again, or register it again."
        raise StartProcedure.Cannot(detail, reason="pinned")
    if procedure.current_iteration_index is not None:
        raise StartProcedure.Cannot("An iteration is open; end it first.", reason="iteration_open")


def refuse_not_held(procedure: Procedure) -> None:
    """Refuse to resume a procedure that is neither Held nor has lost its conduct."""
    refuse_live(procedure)
    if procedure.status is not HELD and not procedure.lost:
        detail = f"The procedure is {procedure.status.value}; only a Held one is taken up again."
        raise ResumeProcedure.Cannot(detail, reason=procedure.status.value.lower())


def refuse_other_mode(procedure: Procedure, mode: ConductMode) -> None:
    """Refuse to resume a procedure in another mode than it was conducted in."""
    if procedure.conduct_mode is not mode:
        if procedure.conduct_mode is None:
            known, command = "never conducted", "resume_procedure"
        else:
            known, command = f"conducted in mode {procedure.conduct_mode.value}", start.RESUMING[procedure.conduct_mode]
        detail = f"The procedure was {known}; take it up with {command}."
        raise ResumeProcedure.Cannot(detail, reason="other_mode", facts={"command": command})


def load_opening(procedure: Procedure, run: Run | None, call: Call, steps: Expansion, *, resuming: bool) -> Reads[Opening]:
    """Load what any opening is judged by besides its steps."""
    signals = yield from load_written_signals(steps.every_step)
    judged = judged_assets(procedure, signals)
    facts = yield from start.start_preconditions(procedure, run, call, judged, resuming=resuming)
    cautions = yield from start.acknowledged_cautions(procedure, run, facts)
    rivals = yield from every_rival_of(procedure, judged, call.now)
    units = yield from load_units(steps)
    actions = yield from load_actions(action_names(steps.steps, steps.closing_steps))
    return Opening(facts, steps, signals, rivals, cautions, units, (yield from load_plan_steps(steps, call)), actions)


def open_conduct(
    procedure: Procedure,
    call: Call,
    command_name: str,
    rivals: Rivals,
    asset_ids: frozenset[UUID],
    counts: tuple[int, int],
    *events: Event,
) -> Outcome:
    """Return what opens a conduct: its events, the logbook before the last of them, claims on these assets, and its rows;
    the counts are those of its steps and its closing steps."""
    refuse_rivals(rivals)
    _, logbook = open_logbook(procedure.activity_logbook_id, procedures.ProcedureActivitiesLogbookOpened, Activity, call)
    claims = [Claim(CONDUCTED_ASSETS, str(id), rival=claim_lost(id)) for id in sorted(asset_ids)]
    ids: dict[str, Any] = {"procedure_id": procedure.id, "command_name": command_name}
    progress = ConductProgress(**ids, conduct_id=call.new_id, started_at=call.now, active_at=call.now)
    opened = OpenedConduct(**ids, step_count=counts[0], closing_count=counts[1], **submission_fields(call))
    found = [Delist(LOST_CONDUCTS, "")] if procedure.lost else []
    return [*events[:-1], *logbook, events[-1], *claims, *found, Put(opened), Put(progress)]


class Conduct(ChosenOptions, Command):
    """A command that opens a conduct: after its gates, one append."""

    default_options: ClassVar[ConductOptions] = DEFAULT_OPTIONS  # Where neither it nor the procedure chooses.
    wait: Wait = 30
    fingerprint: RehearsalFingerprint | None = None

    @property
    def searched(self) -> SteeringSpace | None:
        """Where it looks; None for what is no search."""
        return None

    def refuse_outdated(self, steps: Expansion, words: Mapping[str, str] = {}, boundary: int = 0) -> Reads[None]:
        """Refuse it where what its rehearsal rested on has changed since."""
        return (yield from refuse_outdated_steps(self.fingerprint, [StepsBasis(steps, words, boundary, self.searched)]))

    def open(
        self,
        procedure: Procedure,
        call: Call,
        facts: Opening,
        *events: Event,
        first_step: int = 0,
        space: SteeringSpace | None = None,
    ) -> Outcome:
        """Judge the signals that are written from a step on, pass the gates, and return what is written and answered."""
        check_actions(facts.steps.steps, facts.steps.closing_steps, facts.actions)
        refuse_unknown_plans(facts.plans)
        refuse_invalid_parameters(facts.plans)
        refuse_unowned(facts.signals)
        refuse_out_of_limits(facts.steps, facts.signals, facts.units, first_step=first_step, space=space)
        pass_gates(start.GATES, facts.preconditions)
        accepted = ConductAccepted(
            procedure_id=procedure.id, conduct_id=call.new_id, work_id=call.new_id, acknowledged_cautions=facts.cautions
        )
        counts = (len(facts.steps.steps), len(facts.steps.closing_steps))
        judged, command_name = facts.preconditions.asset_ids, self.operation.command_name
        written = open_conduct(procedure, call, command_name, facts.rivals, judged, counts, *events)
        return [*written, Answer(accepted.model_dump(mode="json"))]

    def open_first(
        self,
        procedure: Procedure,
        call: Call,
        facts: Opening,
        *design: Event,
        loop: procedures.Convergence | None = None,
        space: SteeringSpace | None = None,
    ) -> Outcome:
        """Return what opens a conduct from the beginning: the pin of its steps, a search's design, and the start."""
        steps, command_name = facts.steps, self.operation.command_name
        options = conduct_options(self, procedure, default=self.default_options)
        pin = ProcedureStepsResolved(
            conduct_id=call.new_id,
            conduct_mode=procedures.MODES[command_name],
            resolved_steps=steps.steps,
            resolved_closing_steps=steps.closing_steps,
            step_count=steps.step_count,
            steps_hash=steps.steps_hash,
            convergence=loop,
            touched=facts.signals.touched,
            plan_digests=facts.plans.digests,
            **dict(options),
        )
        started = procedures.ProcedureStarted(
            conduct_id=call.new_id,
            command_name=command_name,
            acknowledged_cautions=facts.cautions,
            judged_asset_ids=facts.preconditions.asset_ids,
            touched=facts.signals.touched,
            options=options,
        )
        return self.open(procedure, call, facts, pin, *design, started, space=space)

    def resumed_event(self, call: Call, facts: Opening, boundary: int, **own: Any) -> procedures.ProcedureResumed:
        own |= {"conduct_id": call.new_id, "command_name": self.operation.command_name, **dict(first_choices(self))}
        own["judged_asset_ids"] = facts.preconditions.asset_ids
        return procedures.ProcedureResumed(re_establishment_boundary=boundary, acknowledged_cautions=facts.cautions, **own)


def load_first_opening(conduct: Conduct, procedure: Procedure, call: Call, sent: tuple[object, ...] = ()) -> Reads[Opening]:
    """Load what a conduct from the beginning is judged by; refuse one that cannot begin."""
    yield from start.refuse_missing_grants(start.issued_commands(conduct.operation.command_name))
    refuse_begun(procedure)
    run = yield from require_if_given(Run, procedure.parent_run_id)
    start.refuse_idle_run(run, StartProcedure)
    steps = yield from pins.prepare_steps(procedure, sent, run)
    yield from conduct.refuse_outdated(steps, pins.words_of(procedure, run))
    return (yield from load_opening(procedure, run, call, steps, resuming=False))


def load_resumption(conduct: Conduct, procedure: Procedure, call: Call) -> Reads[tuple[Opening, ProcedureStepsResolved]]:
    """Load what a conduct that resumes is judged by, and its pin; refuse one that cannot resume."""
    yield from start.refuse_missing_grants(start.issued_commands(conduct.operation.command_name))
    refuse_not_held(procedure)
    run = yield from require_if_given(Run, procedure.parent_run_id)
    start.refuse_idle_run(run, ResumeProcedure)
    refuse_other_mode(procedure, procedures.MODES[conduct.operation.command_name])
    refuse_unresolved(procedure)
    pin = (yield from events_of(procedure.id, ProcedureStepsResolved))[-1]
    steps = yield from pins.pinned_steps(pin)
    return (yield from load_opening(procedure, run, call, steps, resuming=True)), pin


CONDUCT: dict[str, Any] = {
    "status": 200,
    "returns": ConductResult,
    "work": OpenedWork("conduct"),
    "accepted": ConductAccepted,
}
CONDUCT["gated"] = True


class ForwardConduct(Conduct, JudgedVerb[Procedure, Opening]):
    """A conduct of all the steps from the beginning."""

    steps: Steps = ()

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        return (yield from load_first_opening(self, procedure, call, self.steps))

    def decide(self, procedure: Procedure, call: Call, facts: Opening) -> Outcome:
        return self.open_first(procedure, call, facts)


@procedure.command(post="/{procedure_id}/conduct", reasons=["conduct_live", "asset_in_use"], **CONDUCT)
class ConductProcedure(ForwardConduct):
    """Conduct the steps one after the other; a failure ends in Aborted, and closing steps run either way."""


@procedure.command(post="/{procedure_id}/conduct-or-hold", **CONDUCT)
class ConductOrHoldProcedure(ForwardConduct):
    """Conduct the steps; a setpoint or check that fails holds the procedure for a person instead of aborting it.

    So does an action or program whose outcome is unknown, unless `on_unknown_outcome` was chosen otherwise.
    """

    default_options = HOLDING_OPTIONS


@procedure.command(post="/{procedure_id}/reconduct", **CONDUCT)
class ConductFromProcedure(Conduct, JudgedVerb[Procedure, tuple[Opening, int, range]]):
    """Take a held procedure up at the first step that is not done, or at an earlier one, to establish what follows afresh.

    Steps are left out only where that is said: with `skip` and a reason.
    """

    re_establishment_boundary: Annotated[
        Boundary | None,
        Field(description="The index of the step to go on at, counted from 0; without it, the first that is not done."),
    ] = None
    skip: Annotated[
        bool, Field(description="Whether steps that are not done may be left out, up to `re_establishment_boundary`.")
    ] = False
    skip_reason: SkipReason | None = None
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Opening, int, range]]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        opening, _ = yield from load_resumption(self, procedure, call)
        first_undone = yield from first_undone_step(procedure)
        boundary = first_undone if self.re_establishment_boundary is None else self.re_establishment_boundary
        start.check_boundary(boundary, len(opening.steps.steps))
        if boundary > first_undone and not (self.skip and self.skip_reason):
            count = boundary - first_undone
            raise start.InvalidProcedureReEstablishmentBoundaryError(
                f"Step {first_undone} is not done, and going on at {boundary} would leave out {count}; give a boundary of "
                f"at most {first_undone} or none, or say skip and why in skip_reason.",
                reason="would_skip",
                facts={"first_undone_step": first_undone, "skipped_count": count},
            )
        yield from pins.check_closing_captures(procedure, opening.steps, boundary)
        yield from self.refuse_outdated(opening.steps, boundary=boundary)
        return opening, boundary, range(first_undone, boundary)

    def decide(self, procedure: Procedure, call: Call, facts: tuple[Opening, int, range]) -> Outcome:
        opening, boundary, skipped = facts
        own: dict[str, object] = {"decided_by_decision_id": self.decided_by_decision_id}
        if skipped:
            own |= {"skipped_count": len(skipped), "skip_reason": self.skip_reason}
        resumed = self.resumed_event(call, opening, boundary, **own)
        written = self.open(procedure, call, opening, resumed, first_step=boundary)
        places = [PlacedStep(conduct_id=call.new_id, step_index=index) for index in skipped]
        steps = opening.steps.steps
        rows = [decided_row(self, procedure, call, at, steps[at.step_index], Mark.OUTCOME, result=SKIPPED) for at in places]
        return [*written, *([Enter(rows)] if rows else ())]


def decided_row(
    command: Command, procedure: Procedure, call: Call, at: PlacedStep, step: RecipeStep, mark: Mark, **says: object
) -> Activity:
    """Return the ledger row of what a person decides about a step."""
    place = StepPlace(procedure_id=procedure.id, **dict(at))
    opened = procedures.ProcedureActivitiesLogbookOpened
    logbook_id, _ = open_logbook(procedure.activity_logbook_id, opened, Activity, call)
    says |= {"target": target_of(step), "step_index": at.step_index, "conduct_id": str(at.conduct_id), "attempt": 1}
    says |= {"iteration_index": at.iteration_index} if at.iteration_index else {}
    own: dict[str, object] = {"step_kind": step.kind, "payload": says, "sampled_at": call.now}
    own |= {"event_id": place.row_id(mark, 1), "mark": mark.value, "attempt": 1, "slot": None}
    return Activity.by(call, command, logbook_id, **dict(place), **own)


def verdict_on(procedure: Procedure, step: PlacedStep) -> StepVerdict | None:
    """Return what a person said about a step whose outcome is unknown; None while nobody has."""
    found = (one.outcome for one in procedure.resolved_steps if PlacedStep(**one.model_dump(exclude={"outcome"})) == step)
    return next(found, None)


def refuse_unresolved(procedure: Procedure) -> None:
    """Refuse to conduct a Held procedure before a person has said whether the step with the unknown outcome was done."""
    if (step := procedure.unknown_step) is not None and verdict_on(procedure, step) is None:
        detail = (
            f"Nobody knows whether step {step.step_index} was done; look at the equipment and say so with "
            "resolve_procedure_step, or abort the procedure."
        )
        raise ResumeProcedure.Cannot(detail, reason="outcome_unknown", facts=step.model_dump())


def options_of(procedure: Procedure) -> ConductOptions:
    """Return the options of the latest conduct; before any, those that conduct_procedure would have."""
    if procedure.options is not None:
        return procedure.options
    return conduct_options(procedure) if procedure.conduct_mode is None else UNWATCHED


def first_undone_step(procedure: Procedure) -> Reads[int]:
    """Return the first step that the latest conduct of the main list did not complete; one resolved as done is behind it."""
    if (step := procedure.unknown_step) is not None and verdict_on(procedure, step) is StepVerdict.DONE:
        return step.step_index + 1
    starts = yield from events_of(procedure.id, procedures.ProcedureStarted)
    resumptions = yield from events_of(procedure.id, procedures.ProcedureResumed)
    boundaries = {one.conduct_id: one.re_establishment_boundary for one in resumptions if one.conduct_id is not None}
    conduct_id = [*(one.conduct_id for one in starts if one.conduct_id is not None), *boundaries][-1]
    return boundaries.get(conduct_id, 0) + (yield from ask(LedgerPort.completed_step_count, conduct_id))


@procedure.command(post="/{procedure_id}/converge", **CONDUCT)
class ConductUntilConverged(Conduct, JudgedVerb[Procedure, Opening]):
    """Conduct the steps again and again until a captured value meets a criterion; a held loop is taken up the same way."""

    convergence_capture_name: Annotated[str, Field(min_length=1, max_length=100)]
    criterion: PlainCriterion
    """What the captured value must be."""
    steps: Steps = ()
    """The steps of each pass; left out where the procedure has them from a recipe."""
    max_consecutive_unconverged_iterations: Annotated[int, Field(strict=True, le=2**31 - 1)] | None = None
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        if procedure.status is not HELD:
            return (yield from load_first_opening(self, procedure, call, self.steps))
        facts, pin = yield from load_resumption(self, procedure, call)
        if self.steps:
            raise pins.ProcedureStepsForbiddenError("A held loop keeps its steps; take it up without any.")
        kept = pin.convergence
        if kept is None or (kept.capture_name, kept.criterion) != (self.convergence_capture_name, self.criterion):
            detail = "A held loop keeps its criterion; give the same capture name and criterion."
            raise ResumeProcedure.Cannot(detail, reason="criterion_changed")
        yield from self.refuse_outdated(facts.steps)
        return facts

    def decide(self, procedure: Procedure, call: Call, facts: Opening) -> Outcome:
        cap = self.max_consecutive_unconverged_iterations
        check_cap(cap)
        if procedure.status is HELD:
            own = {"decided_by_decision_id": self.decided_by_decision_id, "max_consecutive_unconverged_iterations": cap}
            return self.open(procedure, call, facts, self.resumed_event(call, facts, 0, **own))
        loop = procedures.Convergence(
            capture_name=self.convergence_capture_name,
            criterion=self.criterion,
            max_consecutive_unconverged_iterations=tighter(cap, procedure.max_consecutive_unconverged_iterations),
        )
        return self.open_first(procedure, call, facts, loop=loop)


def tighter(*caps: int | None) -> int | None:
    """Return the smallest of the caps that are given."""
    return min((cap for cap in caps if cap is not None), default=None)
