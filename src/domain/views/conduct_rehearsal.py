"""The rehearsal of conducts as it is asked for: of a target, of a procedure as it is, or of the next items of a queue."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID, uuid5

from pydantic import Field, JsonValue, model_validator

from baton.domain.conduct.conduct import Conduct, conducted_assets, first_undone_step
from baton.domain.conduct.control_signals import (
    MAX_READ,
    ReadSignals,
    ReadSignalsRequest,
    SignalError,
    SignalPort,
    SignalSample,
    SignalsUnreadableError,
)
from baton.domain.conduct.estimates import (
    UNLIMITED,
    ConductTimePort,
    EstimateBasis,
    start_position,
    step_key,
    sum_estimates,
    walk_of,
)
from baton.domain.conduct.pins import words_of
from baton.domain.conduct.preflight import ask_gates, asked_commands
from baton.domain.conduct.progress import FilledSlot
from baton.domain.conduct.rehearsal import (
    InvalidRehearsalError,
    NearLimit,
    RehearsalBasis,
    RehearsalPart,
    RehearsalPort,
    RehearsalsBusyError,
    RehearsalVerdict,
    Rehearsed,
    RehearsedStep,
    RehearsedVerdict,
    TimedRehearsal,
    durations_wanted,
    part_times,
)
from baton.domain.conduct.rehearsal_basis import NOTHING_KNOWN, SignalBasis, load_signal_basis
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.conduct.twin import TwinSignal, TwinValue, ValueSource
from baton.domain.equipment.signals import SignalLimits
from baton.domain.equipment.values import value_field
from baton.domain.kernel import Call, Command, Query, SortedSet
from baton.domain.procedure.procedure import (
    HELD,
    ConductMode,
    Procedure,
    ProcedureSteeringDeclared,
    ProcedureStepsResolved,
    procedure,
)
from baton.domain.procedure.touched import WrittenSignals, load_written_signals
from baton.domain.queue.queue import Queue
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.steps import RecipeCheckStep, declared_capture
from baton.domain.registry import REGISTRY, Internal
from baton.domain.run.run import Run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.gates import GateReport, GateVerdict
from baton.domain.shared.reads import Reads, ask, events_of, is_permitted, records_of, require, require_if_given
from baton.domain.shared.refusals import Refusal, UnauthorizedError
from baton.domain.shared.text import shorten
from baton.domain.shared.thinning import thin
from baton.domain.start import procedure_start
from baton.domain.start.fingerprint import short_hash
from baton.domain.start.procedure_start import RUN_ISSUED, needed_grants
from baton.domain.start.run_start import RunStart, run_fingerprint
from baton.domain.step.signal_units import NO_UNITS, SignalUnits
from baton.domain.step.step_values import is_number
from baton.domain.target.start_launch import StartLaunch
from baton.domain.target.target_checks import check_form, load_sources
from baton.domain.target.target_gates import ask_plan, ask_recipe
from baton.domain.target.target_rehearsal import known_signals, load_parts
from baton.domain.target.targets import ConductPlan, ConductRecipe, Target, recipes_of, with_filled_names
from baton.domain.views.conditions import Condition, ConditionSubject, ForeseenStart, Holding, load_conditions, load_wanting

MAX_ASSUMED = 50
MOST_WAITS = 20  # That are told of.
MOST_PLACES = 100  # Of the course of an address.
MAX_READS = 4  # Times that a worker is asked for the signals of one rehearsal.
LATEST = timedelta(days=366)


class AnsweredPart(StrEnum):
    CONDITIONS = "conditions"  # What a start would ask for.
    WALK = "walk"  # What each step would come to.


CONDITIONS, WALK = AnsweredPart


class StartingValues(StrEnum):
    LAST_KNOWN = "last_known"
    NOW = "now"


class RehearsedStepView(AnswerForm):
    """The foretold outcome of one step."""

    phase_index: int
    """The index of the phase that the step belongs to."""
    closing: bool
    step_index: int
    label: str
    """What the step does, in a few words."""
    verdict: RehearsedVerdict
    """Whether the step would go well; what is unknown is never counted as good."""
    code: str | None
    """The class name of the failure that it would have."""
    detail: str | None
    facts: dict[str, Any] | None
    value: Annotated[Any, Field(description="The value that it sets, reads or judges, where that is known.")]
    source: ValueSource | None
    """Where that value comes from."""


class RehearsedPhase(AnswerForm):
    """One procedure of what is rehearsed, and its times."""

    name: str
    step_count: int
    begins_at: datetime
    """When it would begin, by medians."""
    ends_at: datetime | None
    """When it would end, by medians; null where no step of it was done before."""
    ends_late_at: datetime | None
    """When it would end if all took their 90th percentiles."""


class RehearsedWait(AnswerForm):
    """A check that is not met yet, and for how long it waits."""

    phase_index: int
    """The index of the phase that the step belongs to."""
    closing: bool
    step_index: int
    label: str
    """What the step does, in a few words."""
    begins_at: datetime | None
    """When it would begin to wait, by medians; null where the times before it are not known."""
    seconds: float
    """Number of seconds that it waits, at most."""


class RehearsedLimit(AnswerForm):
    """An address that comes within 5 % of a limit, or beyond it."""

    address: str
    value: float
    """The value that comes nearest to the limit, in the unit of the signal."""
    limits: SignalLimits
    whose: str
    """Whose limit it is: owners or control_system."""
    margin: float
    """How far the value lies within the limit, in the unit of the signal; negative beyond it."""
    phase_index: int
    """The index of the phase that the step belongs to."""
    closing: bool
    step_index: int


class RehearsedTravel(AnswerForm):
    """How far an address is moved."""

    address: str
    first: float | None
    """Where it is before, in the unit of the signal; null where nobody knows."""
    last: float
    """Where it ends, in the unit of the signal."""
    lowest: float
    """The lowest value, in the unit of the signal."""
    highest: float
    """The highest value, in the unit of the signal."""
    distance: float
    """The sum of all moves, in the unit of the signal."""
    moves: int
    """The number of moves."""
    unit: str | None
    course: tuple[tuple[int, float], ...]
    """The values, each with the number of steps walked before; at most 100 of them, spikes kept."""


class TwinSignalView(AnswerForm):
    """A signal of the twin, as it is before the first step."""

    address: str
    value: Annotated[Any, Field(description="The value that the rehearsal begins with.")]
    source: ValueSource | None
    """Where the value comes from; null where nobody knows it."""
    at: datetime | None
    """When it was written, read or observed."""
    unit: str | None
    limits: SignalLimits | None
    """Those that the owners of the signal set."""
    control_limits: SignalLimits | None
    """Those that the control system declared when it was read."""
    owner_ids: tuple[UUID, ...]
    """The assets that own the signal."""
    error: SignalError | None
    """Why it could not be read now, so that its last known value counts."""


class RehearsedClaim(AnswerForm):
    """An asset that a conduct would have to itself, with those that have it now or wait for it."""

    asset_id: UUID
    procedure_id: UUID | None
    """The procedure whose live conduct has the asset now."""
    wanted_by: tuple[UUID, ...]
    """The queues and schedules that wait to conduct something on the asset."""


class RehearsalView(AnswerForm):
    """What a conduct would come to; nothing was recorded, and nothing moved."""

    verdict: RehearsalVerdict | None
    """Whether it goes through, or the first step at which it may stop or stops; null where no walk was asked for."""
    message: str
    """What would stop it, in a sentence."""
    gates: tuple[GateVerdict, ...]
    """The gates of a start, as they are now."""
    conditions: tuple[Condition, ...]
    """What the start asks for, now and when it would begin; none where they were not asked for."""
    phases: tuple[RehearsedPhase, ...]
    """The procedures that are rehearsed, in their order."""
    waits: tuple[RehearsedWait, ...]
    """The first 20 checks that would wait, in the order they would be walked."""
    steps: tuple[RehearsedStepView, ...]
    """The steps that are shown, in the order they would be walked."""
    trouble: RehearsedStepView | None
    """The step that decides the verdict."""
    walked_count: int
    """The number of steps that were walked."""
    cut: bool
    """Whether there are more steps than a rehearsal walks."""
    limits: tuple[RehearsedLimit, ...]
    """The addresses that come within 5 % of a limit, or beyond it."""
    travel: tuple[RehearsedTravel, ...]
    """How far each address is moved."""
    files: tuple[str, ...]
    """The files that would be written, as far as that is known."""
    claims: tuple[RehearsedClaim, ...]
    """The assets that it would have to itself; none where no walk was asked for."""
    twin: tuple[TwinSignalView, ...]
    """The signals that the steps touch, and the values they begin with."""
    unknown_signal_count: int
    """The number of signals whose value nobody knows."""
    basis: EstimateBasis
    """Whether the times of all steps are known, of some or of none."""
    fingerprint: str | None
    """What the verdict rests on, as hashes, which a start may name; null where no walk was asked for."""


@dataclass(frozen=True)
class Loaded:
    """What is to be rehearsed, and the gates that were asked on the way."""

    report: GateReport = field(default_factory=GateReport)
    parts: list[RehearsalPart] = field(default_factory=list)
    asset_ids: set[UUID] = field(default_factory=set)
    starts: list[ForeseenStart] = field(default_factory=list)
    commands: dict[str, None] = field(default_factory=dict)
    """The permissions that the caller would need."""
    runs: list[str] = field(default_factory=list)
    """The fingerprints of the runs that would be started."""


@dataclass(frozen=True)
class TwinBasis:
    """The signals of a twin, with what is shown of them besides."""

    signals: tuple[TwinSignal, ...]
    known: SignalBasis
    errors: Mapping[str, SignalError]


NOT_WALKED = Rehearsed((), (), (), {}, {}, (), {}, cut=False)
NO_TWIN = TwinBasis((), NOTHING_KNOWN, {})


@procedure.query(
    post="",
    path="/rehearsals",
    returns=RehearsalView,
    refuses=[InvalidRehearsalError, RehearsalsBusyError, UnauthorizedError],
)
class Rehearse(Query[RehearsalView]):
    """Walk a conduct on a twin: what stops it, how far it moves, how long. Give target, procedure_id or queue_id."""

    personal: ClassVar[bool] = True
    target: Target | None = None
    """A recipe or plan."""
    procedure_id: UUID | None = None
    """A procedure as it is."""
    queue_id: UUID | None = None
    """Its next items."""
    items: Annotated[int, Field(strict=True, ge=1, le=50)] = 5
    """Number of items."""
    at: datetime | None = None
    """When it begins; else now."""
    start_from: StartingValues = StartingValues.LAST_KNOWN
    """`now` reads them."""
    assume: Annotated[dict[str, JsonValue], Field(max_length=MAX_ASSUMED)] = {}
    """By address or capture."""
    launch: Annotated[StartLaunch | None, Internal()] = None
    procedure_ids: Annotated[tuple[UUID, ...], Internal()] = ()
    parts: SortedSet[AnsweredPart] | None = None
    """Else the walk; with `at`, both."""
    first_step: Annotated[int, Field(strict=True, ge=0)] = 0
    """Number left out."""
    limit: Annotated[int, Field(strict=True, ge=0, le=1000)] = 200
    """Number of steps shown."""

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        given = (self.target, self.procedure_id, self.queue_id, self.launch, self.procedure_ids or None)
        if sum(one is not None for one in given) != 1:
            raise ValueError("give one of target, procedure_id and queue_id")
        return self

    def answer(self, call: Call) -> Reads[RehearsalView]:
        at = self.begins_at(call.now)
        wanted = self.parts or ({WALK} if self.at is None else {WALK, CONDITIONS})
        loaded = yield from self.load(call)
        steps = [step for part in loaded.parts for step in part.steps.every_step]
        signals = yield from load_written_signals(steps)
        asset_ids = frozenset(loaded.asset_ids | signals.owner_ids)
        durations = yield from ask(ConductTimePort.step_durations, durations_wanted(loaded.parts))
        basis, twin = RehearsalBasis(parts=tuple(loaded.parts), signals=(), at=at, durations=durations), NO_TWIN
        if WALK in wanted:
            slots = {name for step in steps if (name := declared_capture(step)) is not None}
            twin = yield from self.load_twin(call, signals, slots)
            deployment = yield from ask(DeploymentPort.deployment)
            basis = replace(
                basis,
                signals=twin.signals,
                known=twin.known,
                run=loaded.runs[0] if len(loaded.runs) == 1 else short_hash(loaded.runs),
                actions=deployment.action_signals,
                executors=signals.executors,
                assumed={
                    name: value for name, value in self.assume.items() if name in slots and isinstance(value, int | float)
                },
                unit_policy=deployment.unit_policy,
            )
            found = yield from ask(RehearsalPort.rehearse, basis)
        else:
            found = TimedRehearsal(NOT_WALKED, tuple(part_times(basis, {})), "")
        conditions: tuple[Condition, ...] = ()
        if CONDITIONS in wanted:
            conditions = yield from self.load_conditions(call, loaded, at, found)
        claims = (yield from self.load_claims(asset_ids)) if WALK in wanted else ()
        view = self.view(loaded, basis, twin, found, claims, conditions)
        return view if WALK in wanted else view.model_copy(update={"verdict": None, "fingerprint": None})

    def load_claims(self, asset_ids: frozenset[UUID]) -> Reads[tuple[RehearsedClaim, ...]]:
        """Return the assets that it would have to itself, with what has or wants them."""
        holders = yield from conducted_assets(asset_ids)
        wanting = yield from load_wanting(asset_ids, () if self.queue_id is None else (self.queue_id,))
        return tuple(
            RehearsedClaim(
                asset_id=id,
                procedure_id=holders[id].id if id in holders else None,
                wanted_by=tuple(one.id for one, wanted in wanting if id in wanted),
            )
            for id in sorted(asset_ids)
        )

    def load_conditions(
        self, call: Call, loaded: Loaded, at: datetime, found: TimedRehearsal
    ) -> Reads[tuple[Condition, ...]]:
        """Return what the starts ask for; who added an item of a queue needs permissions, and not the caller."""
        ends = [one.ends_at for one in found.times[-1:]]
        commands = () if self.queue_id is not None else tuple(loaded.commands)
        own = tuple(id for id in (self.procedure_id, self.queue_id) if id is not None)
        starts = [replace(start, at=max(at, start.at)) for start in loaded.starts]
        return (yield from load_conditions(call, starts, commands, next(iter(ends), None), own))

    def begins_at(self, now: datetime) -> datetime:
        """Return when it would begin; refuse a time in the past, and one too far ahead."""
        if self.at is None:
            return now
        if self.at < now:
            raise InvalidRehearsalError("at lies in the past; give a time ahead, or none for now.", reason="past")
        if self.at > now + LATEST:
            raise InvalidRehearsalError(
                f"at lies more than {LATEST.days} days ahead; give an earlier time.", reason="too_far"
            )
        return self.at

    def load(self, call: Call) -> Reads[Loaded]:
        """Load the procedures that are to be rehearsed, and ask the gates of their start."""
        loaded = Loaded()
        target = self.target if self.launch is None else (yield from self.launch.find_target(call))
        if target is not None:
            yield from load_sources([target])
            check_form(target, call.now, InvalidRehearsalError)
            yield from load_target(loaded, with_filled_names(target, self.at or call.now, 1), call)
        elif self.queue_id is None:
            alone = () if self.procedure_id is None else (self.procedure_id,)
            for id in self.procedure_ids or alone:
                yield from load_procedure(loaded, (yield from require(Procedure, id)), call)
        else:
            queue = yield from require(Queue, self.queue_id)
            for group, item in enumerate(queue.ahead[: self.items]):
                target = with_filled_names(item.aim, call.now, item.number)
                yield from load_target(loaded, target, call, group, item.not_before)
        return loaded

    def load_twin(self, call: Call, signals: WrittenSignals, slots: set[str]) -> Reads[TwinBasis]:
        """Load what is known of the signals that the steps touch; refuse to assume what they do not touch."""
        basis = yield from load_signal_basis(signals.touched)
        addresses = tuple(basis.owners)
        samples: Mapping[str, SignalSample] = {}
        if self.start_from is StartingValues.NOW and addresses:
            samples = yield from read_now(call, addresses)
        found = known_signals(basis, samples)
        errors = {address: sample.error for address, sample in samples.items() if sample.error is not None}
        return TwinBasis(tuple(self.with_assumed(found, slots)), basis, errors)

    def with_assumed(self, signals: Sequence[TwinSignal], slots: set[str]) -> Iterable[TwinSignal]:
        """Yield the signals with what the caller assumes of them; refuse what is not touched, or of the wrong kind."""
        by_key = {value_field(signal.address): signal for signal in signals}
        for name, value in self.assume.items():
            signal = by_key.get(value_field(name))
            if name in slots:
                refuse_wrong_kind(name, "a number", is_number(value))
            elif signal is None:
                detail = f"No step touches {shorten(name)}; assume values of signals and captures of the steps."
                raise InvalidRehearsalError(detail, reason="not_touched", facts={"name": name})
            else:
                counts = is_number(signal.first.value)
                refuse_wrong_kind(name, "a number", not counts or is_number(value))
                refuse_wrong_kind(
                    name, "a number, a text, true, false or a list", isinstance(value, str | int | float | list)
                )
                by_key[value_field(name)] = replace(signal, first=TwinValue(value, ValueSource.ASSUMED))
        return by_key.values()

    def view(
        self,
        loaded: Loaded,
        basis: RehearsalBasis,
        twin: TwinBasis,
        found: TimedRehearsal,
        claims: tuple[RehearsedClaim, ...],
        conditions: tuple[Condition, ...],
    ) -> RehearsalView:
        """Return the answer."""
        rehearsed, units = found.rehearsed, {value_field(one.address): one.unit for one in basis.signals}
        shown = rehearsed.steps[self.first_step : self.first_step + self.limit]
        closed = [gate for gate in loaded.report.verdicts if not gate.passed]
        verdict = RehearsalVerdict.STOPS_AT if not loaded.parts else rehearsed.verdict
        unknown = sum(not signal.first.known for signal in basis.signals)
        times = [one.estimate for one in found.times]
        return RehearsalView(
            verdict=verdict,
            message=message_of(rehearsed, basis, closed, unknown, found, conditions),
            gates=tuple(loaded.report.verdicts),
            conditions=conditions,
            phases=tuple(
                RehearsedPhase(
                    name=part.name,
                    step_count=part.steps.step_count,
                    begins_at=one.begins_at,
                    ends_at=one.ends_at,
                    ends_late_at=one.ends_late_at,
                )
                for part, one in zip(basis.parts, found.times, strict=True)
            ),
            waits=tuple(islice(waits_of(rehearsed, basis, found), MOST_WAITS)),
            steps=tuple(map(step_view, shown)),
            trouble=None if rehearsed.trouble is None else step_view(rehearsed.trouble),
            walked_count=len(rehearsed.steps),
            cut=rehearsed.cut,
            limits=tuple(limit_view(one) for one in rehearsed.near_limits.values()),
            travel=tuple(
                RehearsedTravel(
                    address=address,
                    unit=units.get(value_field(address)),
                    course=tuple(thin(rehearsed.courses[address], MOST_PLACES, lambda place: place[1])),
                    **one._asdict(),
                )
                for address, one in rehearsed.travel.items()
            ),
            files=tuple(rehearsed.files),
            claims=claims,
            twin=tuple(signal_view(signal, twin) for signal in basis.signals),
            unknown_signal_count=unknown,
            basis=sum_estimates(times, None).basis if times else EstimateBasis.NONE,
            fingerprint=found.fingerprint,
        )


def rehearsal_of(command: Command, target_id: UUID | None) -> Rehearse | None:
    """Return the rehearsal of the conduct that a command would open; None where it opens none."""
    match command:
        case StartLaunch():
            return Rehearse(launch=command, limit=0)
        case ConductRun():
            return Rehearse(procedure_ids=tuple(one.procedure_id for one in command.listed_phases()), limit=0)
        case Conduct():
            return Rehearse(procedure_id=target_id, limit=0)
        case _:
            return None


def refuse_wrong_kind(name: str, words: str, fits: bool) -> None:
    """Refuse to assume a value of another kind than a signal or a capture has."""
    if not fits:
        detail = f"What is assumed of {shorten(name)} must be {words}."
        raise InvalidRehearsalError(detail, reason="wrong_kind", facts={"name": name})


def load_target(
    loaded: Loaded, target: ConductRecipe | ConductPlan, call: Call, group: int = 0, not_before: datetime | None = None
) -> Reads[None]:
    """Add the procedures that a target would register, each as its steps would be pinned."""
    if isinstance(target, ConductPlan):
        asked = yield from ask_plan(loaded.report, target, call)
        loaded.commands.update(dict.fromkeys(("StartRun", "RegisterProcedureFromRecipe", "ConductRun", *RUN_ISSUED)))
    else:
        asked = yield from ask_recipe(loaded.report, target, call)
        loaded.commands["RegisterProcedureFromRecipe"] = None
    facts, asset_ids = asked.facts, asked.asset_ids
    loaded.asset_ids.update(asset_ids)
    for one in recipes_of(target):
        loaded.commands.update(dict.fromkeys(needed_grants(one.conduct_command().operation.command_name)))
    if isinstance(facts, RunStart):
        with suppress(Refusal):  # One whose parameters are refused is not started.
            loaded.runs.append(run_fingerprint(facts))
    if facts is not None:
        type, id = ("Recipe", target.recipe_id) if isinstance(target, ConductRecipe) else ("Plan", target.plan_id)
        work = ConditionSubject(type=type, id=id, name=target.name)
        loaded.starts.append(ForeseenStart(facts, work, not_before or call.now, asset_ids))
    loaded.parts.extend((yield from load_parts(loaded.report, target, asked, call, group, not_before)))


def load_procedure(loaded: Loaded, procedure: Procedure, call: Call) -> Reads[None]:
    """Add a procedure as it is; from Held, what is left of it."""
    by_hand, conducts = asked_commands(procedure)
    asked = yield from ask_gates(loaded.report, procedure, call, by_hand, conducts, load_no_units)
    steps = asked.steps
    loaded.asset_ids.update(procedure.target_asset_ids)
    if asked.facts is not None:
        work = ConditionSubject(type="Procedure", id=procedure.id, name=procedure.name)
        loaded.starts.append(ForeseenStart(asked.facts, work, call.now, asked.facts.asset_ids))
        names = (REGISTRY.operations[name].command_name for name in (by_hand.operation.name, *conducts)[-1:])
        loaded.commands.update(dict.fromkeys(grant for name in names for grant in needed_grants(name)))
    pins = (yield from events_of(procedure.id, ProcedureStepsResolved)) if procedure.conduct_mode is not None else ()
    if pins:
        steps = Expansion(steps=pins[-1].resolved_steps, closing_steps=pins[-1].resolved_closing_steps)
    if steps is None:
        return
    mode = procedure.conduct_mode or ConductMode.FLAT
    boundary = (yield from first_undone_step(procedure)) if pins and mode is ConductMode.FLAT else 0
    designs = (yield from events_of(procedure.id, ProcedureSteeringDeclared)) if mode is ConductMode.ADVISED else ()
    design = designs[-1] if designs else None
    kept = pins[-1].convergence if pins else None
    run = yield from require_if_given(Run, None if pins else procedure.parent_run_id)
    walk = replace(
        walk_of(steps.steps, steps.closing_steps),
        mode=mode,
        boundary=boundary,
        unconverged_cap=None if kept is None else kept.max_consecutive_unconverged_iterations,
        budget=(None if design is None else design.budget) or UNLIMITED,
    )
    position = start_position(walk, procedure)
    rows = (yield from records_of(FilledSlot, procedure_id=procedure.id)) if boundary else ()
    captures = {row.slot: row.content["value"] for row in rows if "value" in row.content and row.step_index < boundary}
    name = procedure_start.RESUMING[mode] if procedure.status is HELD else conducts[0]
    loaded.parts.append(
        RehearsalPart(
            procedure.name,
            steps,
            walk,
            replace(position, step_index=boundary) if boundary else position,
            REGISTRY.operations[name].command_name,
            None if design is None else design.space,
            None if design is None else design.first_point or design.space.first_point,
            captures,
            words={} if pins else words_of(procedure, run),
        )
    )


def load_no_units(steps: Expansion) -> Reads[SignalUnits]:
    """Ask the control system for no units: a rehearsal reads only where that is asked for."""
    yield from ()
    return NO_UNITS


def read_now(call: Call, addresses: Sequence[str]) -> Reads[Mapping[str, SignalSample]]:
    """Have a worker read signals; those that it does not read have the reason as their error."""
    if not (yield from is_permitted(ReadSignals.operation.command_name)):
        detail = "Starting from now needs ReadSignals, which your policies do not permit; start from last_known."
        raise UnauthorizedError(detail, reason="denied")
    found: dict[str, SignalSample] = {}
    for number, first in enumerate(range(0, len(addresses), MAX_READ)):
        part = tuple(addresses[first : first + MAX_READ])
        try:
            if number == MAX_READS:
                raise SignalsUnreadableError(f"Only {MAX_READS * MAX_READ} signals are read for one rehearsal.")
            request = ReadSignalsRequest(request_id=uuid5(call.new_id, str(number)), addresses=part)
            samples = yield from ask(SignalPort.read_signals, request)
        except SignalsUnreadableError as refusal:
            error = SignalError(code=refusal.code, detail=refusal.detail)
            found |= dict.fromkeys(addresses[first:], SignalSample(error=error))
            break
        found |= zip(part, samples, strict=True)
    return found


def step_view(step: RehearsedStep) -> RehearsedStepView:
    """Return a step as it is shown."""
    facts = None if step.facts is None else dict(step.facts)
    own = {name: getattr(step, name) for name in ("closing", "step_index", "label", "verdict", "code", "detail")}
    return RehearsedStepView(phase_index=step.part, **own, facts=facts, value=step.value, source=step.source)


def waits_of(rehearsed: Rehearsed, basis: RehearsalBasis, found: TimedRehearsal) -> Iterator[RehearsedWait]:
    """Yield the checks that would wait, each with when that begins by the medians of the steps before it."""
    if all(step.verdict is not RehearsedVerdict.WAITS for step in rehearsed.steps):
        return
    known = {key: one.median for key, one in basis.durations.items()} | dict(rehearsed.action_seconds)
    part, at = -1, None
    for step in rehearsed.steps:
        if step.part != part:
            part, at = step.part, found.times[step.part].begins_at
        if step.verdict is RehearsedVerdict.WAITS and isinstance(step.step, RecipeCheckStep):
            own = {name: getattr(step, name) for name in ("closing", "step_index", "label")}
            yield RehearsedWait(phase_index=part, begins_at=at, seconds=step.step.timeout or 0.0, **own)
        seconds = known.get(step_key(step.step))
        at = None if at is None or seconds is None else at + timedelta(seconds=seconds)


def limit_view(near: NearLimit) -> RehearsedLimit:
    """Return the value nearest to a limit as it is shown."""
    own = near._asdict()
    return RehearsedLimit(phase_index=own.pop("part"), **own)


def signal_view(signal: TwinSignal, twin: TwinBasis) -> TwinSignalView:
    """Return a signal of the twin as it is shown."""
    return TwinSignalView(
        address=signal.address,
        value=signal.first.value,
        source=signal.first.source,
        at=signal.first.at,
        unit=signal.unit,
        limits=signal.limits.get("owners"),
        control_limits=signal.limits.get("control_system"),
        owner_ids=tuple(owner.id for owner in twin.known.owners.get(signal.address, ())),
        error=twin.errors.get(signal.address),
    )


def message_of(
    rehearsed: Rehearsed,
    basis: RehearsalBasis,
    closed: Sequence[GateVerdict],
    unknown: int,
    found: TimedRehearsal,
    conditions: Sequence[Condition],
) -> str:
    """Return what would stop it, in a sentence or two."""
    said = [f"A start would be refused now: {closed[0].detail}"] if closed else []
    said += [conditions_sentence(conditions, basis.at)] if conditions else []
    step = rehearsed.trouble
    if rehearsed is NOT_WALKED:
        return " ".join(said)
    if not basis.parts:
        said.append("No step can be rehearsed.")
    elif step is not None:
        said.append(step.sentence(basis.parts[step.part].name))
    else:
        ends = found.times[-1].ends_at
        when = "" if ends is None else f", until about {ends:%Y-%m-%d %H:%M} UTC"
        said.append(f"It goes through its {len(rehearsed.steps)} steps{when}.")
    if unknown:
        said.append(f"Nothing is known of the values of {unknown} of {len(basis.signals)} signals.")
    return " ".join(said)


def conditions_sentence(conditions: Sequence[Condition], at: datetime) -> str:
    """Return how many conditions are missing at a time and the first of them, in a sentence."""
    needed = [one for one in conditions if one.required]
    missing = [one for one in needed if one.holds_then is Holding.NO]
    unknown = sum(one.holds_then is Holding.UNKNOWN for one in needed)
    when, ahead = f"At {at:%Y-%m-%d %H:%M} UTC", f"{unknown} of {len(needed)} conditions are not known ahead"
    if missing:
        return (
            f"{when}, {len(missing)} of {len(needed)} conditions do not hold, first {missing[0].condition}: {missing[0].why}"
        )
    return f"{when}, {ahead}, and the others hold." if unknown else f"{when}, all {len(needed)} conditions hold."
