"""A rehearsal: the walk of conducts on a twin. The rules are those of the conduct: its walk, its limits, its criteria. Only
the effects of steps are replaced, and where nothing is known of a value, the verdict says so."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, assert_never

from baton.domain.conduct.estimates import (
    ConductWalk,
    Estimate,
    StepDuration,
    StepKey,
    WalkPosition,
    estimate_walk,
    step_key,
)
from baton.domain.conduct.messages import (
    ConductOutcome,
    ConductStart,
    ConductVerdict,
    Finish,
    PassDecision,
    StepReport,
    describe_step,
    step_failure,
)
from baton.domain.conduct.rehearsal_basis import NOTHING_KNOWN, SignalBasis, steps_hash_of
from baton.domain.conduct.twin import UNKNOWN, Twin, TwinSignal, TwinValue, ValueSource
from baton.domain.conduct.walk import Action, Walk
from baton.domain.equipment.values import SignalLimits
from baton.domain.procedure.touched import Executors, known_values, touched_signals
from baton.domain.recipe import steps as kinds
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.step_actions import sent_params
from baton.domain.recipe.steps import RecipeStep
from baton.domain.shared.action_signals import ActionForecast, ActionSignals
from baton.domain.shared.refusals import Invalid, Unavailable
from baton.domain.shared.units import UnitPolicy
from baton.domain.start.fingerprint import Fingerprint, StepsBasis, short_hash
from baton.domain.steering.steering import Point, SteeringSpace
from baton.domain.step import signal_rules, step_values
from baton.domain.step.plan_steps import plan_name
from baton.domain.step.results import Artifact
from baton.domain.step.signal_rules import UnitEdge
from baton.domain.step.step_values import Memory, StepFault

MAX_STEPS = 20_000  # Steps that one rehearsal walks.
NEAR_LIMIT = 0.05  # The part of a range, or of a lone limit, within which a value counts as near it.
UNIT_UNKNOWN = "The step counts {0.address} in {0.unit}, and the unit of the signal is not known."
DONE = StepReport(verdict=ConductVerdict.DONE)
NO_RUN = short_hash([])


class InvalidRehearsalError(Invalid, context="operation"):
    """What is to be rehearsed is not said in a way that could be rehearsed."""


class RehearsalsBusyError(Unavailable, context="operation", reason="busy"):
    """Other rehearsals are under way, and this process walks one at a time."""


class RehearsedVerdict(StrEnum):
    OK = "ok"
    WAITS = "waits"  # A check is not met yet, and waits.
    REFUSED = "refused"  # Nothing is touched: a limit or an action refuses it.
    FAILS = "fails"
    UNKNOWN = "unknown"  # It depends on what the twin does not know.


class RehearsalVerdict(StrEnum):
    GOES_THROUGH = "goes_through"
    MAY_STOP_AT = "may_stop_at"  # Its first trouble is a step that waits or is unknown.
    STOPS_AT = "stops_at"


OK, WAITS, REFUSED, FAILS, UNSURE = RehearsedVerdict
STOPPING = (REFUSED, FAILS)


@dataclass(frozen=True)
class RehearsalPart:
    """One procedure as it would be conducted."""

    name: str
    steps: Expansion
    walk: ConductWalk
    position: WalkPosition = field(default_factory=WalkPosition)
    command_name: str = "ConductProcedure"
    space: SteeringSpace | None = None
    point: Point | None = None
    captures: Mapping[str, float] = field(default_factory=dict)
    """The slots that an earlier conduct has filled."""
    group: int = 0
    """The run or queue item that it belongs to, whose other parts are left out once it stops."""
    begins_at: datetime | None = None
    """Before when it does not begin."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What the template words in its steps were replaced with."""

    @property
    def steps_basis(self) -> StepsBasis:
        """Return its steps as a start compares them."""
        return StepsBasis(self.steps, self.words, self.walk.boundary, self.space)

    @property
    def document(self) -> dict[str, Any]:
        """Return what else decides the verdicts on it, as JSON."""
        return {
            "name": self.name,
            "command": self.command_name,
            "point": dict(self.point or {}),
            "captures": dict(self.captures),
            "group": self.group,
        }


@dataclass(frozen=True)
class RehearsalBasis:
    """Everything that a rehearsal rests on."""

    parts: tuple[RehearsalPart, ...]
    signals: tuple[TwinSignal, ...]
    at: datetime
    durations: Mapping[StepKey, StepDuration] = field(default_factory=dict)
    actions: Mapping[str, ActionSignals] = field(default_factory=dict)
    executors: Executors = field(default_factory=dict)
    assumed: Mapping[str, float] = field(default_factory=dict)
    """The numbers that captures are assumed to take, by their names."""
    unit_policy: UnitPolicy = UnitPolicy.CONVERT
    known: SignalBasis = NOTHING_KNOWN
    """What the record says of the signals."""
    run: str = NO_RUN
    """The hash of the plans and parameters of its runs."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Return the hashes of all that decides the verdicts."""
        given = {
            "parts": [part.document for part in self.parts],
            "signals": [signal.document for signal in self.signals],
            "assumed": dict(self.assumed),
            "unit_policy": self.unit_policy,
        }
        known, steps = self.known, steps_hash_of([part.steps_basis for part in self.parts])
        return Fingerprint(self.run, steps, known.limits_hash, known.values_hash, short_hash(given))


class RehearsedStep(NamedTuple):
    """One step of a part, and what it would come to."""

    part: int
    closing: bool
    step_index: int
    step: RecipeStep
    verdict: RehearsedVerdict
    code: str | None = None
    detail: str | None = None
    facts: Mapping[str, Any] | None = None
    source: ValueSource | None = None  # Of the value that it sets, reads or judges.
    value: Any = None

    @property
    def label(self) -> str:
        """Return what the step does, in a few words."""
        return describe_step(self.step, 0.0, 0.0).label

    def sentence(self, name: str) -> str:
        """Return where the procedure of this name stops or may stop, and why."""
        verb = "stops" if self.verdict in STOPPING else "may stop"
        which = f"{'closing step' if self.closing else 'step'} {self.step_index}"
        return f"It {verb} at {which} of {name} ({self.label}): {self.detail}"


class NearLimit(NamedTuple):
    """The value of an address that comes nearest to a limit, or lies farthest beyond it."""

    address: str
    value: float
    limits: SignalLimits
    whose: str
    margin: float  # How far it lies within; negative beyond.
    part: int
    closing: bool
    step_index: int


class Travel(NamedTuple):
    """How far a signal is moved."""

    first: float | None
    last: float
    lowest: float
    highest: float
    distance: float
    moves: int


class PartTimes(NamedTuple):
    """When a part begins and ends, as far as that is known; the later ones by 90th percentiles."""

    begins_at: datetime
    ends_at: datetime | None
    ends_late_at: datetime | None
    estimate: Estimate


class Writing(NamedTuple):
    """A value that a step writes."""

    address: str
    value: Any


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal came to."""

    steps: Sequence[RehearsedStep]
    ends: Sequence[ConductOutcome]  # How each part ends that is walked.
    writings: Sequence[Writing]
    near_limits: Mapping[str, NearLimit]
    travel: Mapping[str, Travel]
    files: Sequence[str]
    action_seconds: Mapping[StepKey, float]  # How long actions say that they take.
    cut: bool
    courses: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    """The values that each address is set to, with the number of steps that were walked before."""

    @property
    def trouble(self) -> RehearsedStep | None:
        """Return the step that decides the verdict."""
        return first_trouble(self.steps)

    def trouble_of(self, group: Collection[int]) -> RehearsedStep | None:
        """Return the step that decides the verdict on some of the parts."""
        return first_trouble([step for step in self.steps if step.part in group])

    @property
    def verdict(self) -> RehearsalVerdict:
        if (step := self.trouble) is None:
            return RehearsalVerdict.MAY_STOP_AT if self.cut else RehearsalVerdict.GOES_THROUGH
        return RehearsalVerdict.STOPS_AT if step.verdict in STOPPING else RehearsalVerdict.MAY_STOP_AT


def first_trouble(steps: Sequence[RehearsedStep]) -> RehearsedStep | None:
    """Return the first step that stops, else the first that may; None where all go through."""
    stops = (step for step in steps if step.verdict in STOPPING)
    return next(stops, None) or next((step for step in steps if step.verdict is not OK), None)


Forecast = Callable[[str, ActionSignals, Mapping[str, Any]], ActionForecast | None]
"""Asks an action what it would do; None where it does not say."""


def forecast_action(name: str, signals: ActionSignals, params: Mapping[str, Any]) -> ActionForecast | None:
    """Return what an action says that it would do."""
    return None if signals.rehearse is None else signals.rehearse(params)


def rehearse(basis: RehearsalBasis, forecast: Forecast = forecast_action) -> Rehearsed:
    """Walk all parts on a twin, one after the other."""
    twin_walk = TwinWalk(basis, Twin(basis.signals), forecast)
    ends: list[ConductOutcome] = []
    stopped: set[int] = set()
    for index, part in enumerate(basis.parts):
        if part.group not in stopped and not twin_walk.cut:
            ends.append(twin_walk.walk_part(index, part))
            stopped |= set() if ends[-1].finish is Finish.COMPLETED else {part.group}
    found = (
        twin_walk.steps,
        ends,
        twin_walk.writings,
        twin_walk.near,
        twin_walk.travel,
        [*twin_walk.files],
        twin_walk.seconds,
        twin_walk.cut,
        twin_walk.courses,
    )
    return Rehearsed(*found)


def part_times(basis: RehearsalBasis, action_seconds: Mapping[StepKey, float]) -> Iterator[PartTimes]:
    """Yield when each part begins and ends, by the estimates of conducts; what was never done takes as long as it says."""
    said = {key: StepDuration(0, seconds, seconds) for key, seconds in action_seconds.items()}
    known = {**said, **basis.durations}
    late = {key: replace(found, median=found.p90) for key, found in known.items()}
    begins, begins_late = basis.at, basis.at
    for part in basis.parts:
        begins, begins_late = (max(one, part.begins_at or one) for one in (begins, begins_late))
        usual, longest = (estimate_walk(part.walk, found, part.position) for found in (known, late))
        ends, ends_late = (
            None if seconds is None else start + timedelta(seconds=seconds)
            for start, seconds in ((begins, usual.remaining_seconds), (begins_late, longest.remaining_seconds))
        )
        yield PartTimes(begins, ends, ends_late, usual)
        begins, begins_late = ends or begins, ends_late or begins_late


class TwinWalk:
    """The state of one rehearsal: its twin, and what came of the steps so far."""

    def __init__(self, basis: RehearsalBasis, twin: Twin, forecast: Forecast) -> None:
        self.basis = basis
        self.twin = twin
        self.forecast = forecast
        self.steps: list[RehearsedStep] = []
        self.writings: list[Writing] = []
        self.near: dict[str, NearLimit] = {}
        self.travel: dict[str, Travel] = {}
        self.courses: dict[str, list[tuple[int, float]]] = {}
        self.files: dict[str, None] = {}
        self.seconds: dict[StepKey, float] = {}
        self.cut = False
        self._part = RehearsalPart("", Expansion(steps=(), closing_steps=()), ConductWalk((), ()))
        self._place = (0, False, 0)
        self._captures: dict[str, Any] = {}
        self._sources: dict[str, ValueSource | None] = {}
        self._outputs: dict[str, Artifact] = {}
        self._memory = Memory()

    def walk_part(self, index: int, part: RehearsalPart) -> ConductOutcome:
        """Walk one procedure as its conduct would, loops for one pass."""
        self._part = part
        self._captures, self._sources, self._outputs = dict(part.captures), {}, {}
        self._memory = Memory(captures=self._captures, outputs=self._outputs, coordinates=part.point or {})
        lists = (part.steps.steps, part.steps.closing_steps)
        start = ConductStart(
            command_name=part.command_name,
            mode=part.walk.mode,
            step_count=len(lists[0]),
            closing_count=len(lists[1]),
            boundary=part.walk.boundary,
        )
        walk = Walk.begin(start)
        while walk.action is not Action.NOTHING and not self.cut:
            match walk.action:
                case Action.DO_STEPS | Action.COLLECT:
                    walk = walk.after_step(self._do_stretch(index, walk, lists[walk.at.closing]))
                case Action.BEGIN_CLOSING:
                    walk = walk.after_closing_begun(ConductVerdict.DONE)
                case Action.AWAIT_RUN:
                    walk = walk.after_wait(ConductVerdict.DONE)
                case Action.END:
                    walk = walk.after_end(ConductVerdict.DONE)
                case Action.RECORD_OUTCOME:
                    walk = walk.after_pass(PassDecision(verdict=ConductVerdict.DONE))
                case Action.START_PASS | Action.TAKE_UP_SEARCH:
                    walk = walk.after_pass(PassDecision(verdict=ConductVerdict.DONE, iteration_index=1))
                case Action.JUDGE_PASS | Action.ASK_ADVICE:
                    walk = walk.after_pass(PassDecision(verdict=ConductVerdict.DONE, stop=True))
                case _:
                    assert_never(walk.action)
        return walk.outcome or ConductOutcome(finish=Finish.COMPLETED)

    def _do_stretch(self, part: int, walk: Walk, listed: Sequence[RecipeStep]) -> StepReport:
        """Do the steps from the cursor on, until one does not end well or all are done, as a worker does quick ones."""
        passing = (ConductVerdict.DONE, ConductVerdict.FAILED) if walk.at.closing else (ConductVerdict.DONE,)
        report, first = DONE, walk.at.step_index
        for step_index in range(first, len(listed)):
            self._place = (part, walk.at.closing, step_index)
            report = self._do(listed[step_index])
            if report.verdict not in passing:
                return report.model_copy(update={"done_count": step_index - first})
            if self.cut:
                break
        return report.model_copy(update={"done_count": len(listed) - first})

    def _do(self, step: RecipeStep) -> StepReport:
        """Do one step on the twin, and report it as the worker would."""
        if len(self.steps) == MAX_STEPS:
            self.cut = True
            return DONE
        try:
            row = self._judge(step)
        except StepFault as fault:
            verdict = REFUSED if fault.label == signal_rules.OUT_OF_LIMITS else FAILS
            row = self._row(step, verdict, fault=fault)
        self.steps.append(row)
        if row.verdict not in STOPPING:
            return DONE
        failure = step_failure(step, row.step_index, row.code or "", row.detail or "", dict(row.facts or {}))
        return StepReport(verdict=ConductVerdict.FAILED, failure=failure)

    def _judge(self, step: RecipeStep) -> RehearsedStep:
        match step:
            case kinds.RecipeSetpointStep():
                return self._set(step)
            case kinds.RecipeCheckStep():
                return self._check(step)
            case kinds.RecipeCaptureStep():
                return self._capture(step)
            case kinds.RecipeActionStep():
                return self._act(step)
            case kinds.RecipeComputeStep():
                return self._compute(step)
            case _:
                assert_never(step)

    def _set(self, step: kinds.RecipeSetpointStep) -> RehearsedStep:
        """Set a signal within its limits; a search is judged wherever it may go."""
        found, signal = self._operand(step.value), self.twin.signal(step.address)
        if not found.known:
            self._write(step, UNKNOWN)
            return self._unsure(step, f"What {step.address} would be set to depends on what is captured before.")
        if self._lacks_unit(step.address, signal_rules.setpoint_edge(step, found.value, self.basis.unit_policy).unit):
            self._write(step, UNKNOWN)
            return self._unsure(step, UNIT_UNKNOWN.format(step))
        for value in (
            *(known_values(step, self._part.space) if isinstance(step.value, kinds.SteeringRef) else ()),
            found.value,
        ):
            edge = signal_rules.setpoint_edge(step, value, self.basis.unit_policy)
            written = edge.to_signal(value, signal.unit, step.address)
            self._judge_limits(step.address, written)
        self._write(step, TwinValue(written, ValueSource.SET))
        return self._row(step, OK, source=found.source, value=found.value)

    def _write(self, step: kinds.RecipeSetpointStep, value: TwinValue) -> None:
        self._move(step.address, value)
        if isinstance(step.verify, kinds.Verification) and step.verify.address is not None:
            read = self.twin.signal(step.verify.address)
            edge = UnitEdge(self.twin.signal(step.address).unit, self.basis.unit_policy)
            carried = edge.to_signal(value.value, read.unit, read.address) if value.known else None
            self.twin.set(step.verify.address, value._replace(value=carried))

    def _move(self, address: str, value: TwinValue) -> None:
        """Set a signal, and add the move to its travel."""
        before = self.twin.ask(address).value
        self.twin.set(address, value)
        self.writings.append(Writing(address, value.value if value.known else None))
        if not value.known or not step_values.is_number(value.value):
            return
        number, begun = float(value.value), self.travel.get(address)
        at = float(before) if step_values.is_number(before) else None
        if begun is None:
            known = [number] if at is None else [number, at]
            begun = Travel(at, number, min(known), max(known), 0.0, 0)
        distance = 0.0 if at is None else abs(number - at)
        ends = (min(begun.lowest, number), max(begun.highest, number))
        course = self.courses.setdefault(address, [] if at is None else [(0, at)])
        course.append((len(self.steps), number))
        self.travel[address] = Travel(begun.first, number, *ends, begun.distance + distance, begun.moves + 1)

    def _judge_limits(self, address: str, value: object) -> None:
        """Note a value that comes near a limit, and refuse one beyond it as the conduct does."""
        limits = self.twin.signal(address).limits
        for whose, found in limits.items():
            for number in () if found is None else signal_rules.finite_numbers(value):
                self._note_margin(address, number, found, whose)
        signal_rules.refuse_out_of_limits(address, value, limits)

    def _note_margin(self, address: str, number: float, limits: SignalLimits | None, whose: str) -> None:
        if limits is None or (margin := margin_of(number, limits)) is None:
            return
        if (known := self.near.get(address)) is None or margin < known.margin:
            self.near[address] = NearLimit(address, number, limits, whose, margin, *self._place)

    def _check(self, step: kinds.RecipeCheckStep) -> RehearsedStep:
        """Judge what the twin reads; what is not met may come true by itself only while a check waits."""
        expected, now = self._operand(step.criterion.expected), self.twin.ask(step.address)
        if not now.known:
            return self._unsure(step, f"Nothing is known of the value of {step.address}; assume one, or start from now.")
        if not expected.known:
            return self._unsure(step, f"What {step.address} is to read depends on what is captured before.")
        if self._lacks_unit(step.address, step.unit):
            return self._unsure(step, UNIT_UNKNOWN.format(step))
        edge = UnitEdge(step.unit, self.basis.unit_policy)
        value = edge.from_signal(now.value, self.twin.signal(step.address).unit, step.address)
        if signal_rules.satisfies(step, expected.value, value, step_values.GOOD):
            return self._row(step, OK, source=now.source, value=now.value)
        fault = signal_rules.unmet(step.address, now.value, step_values.GOOD)
        if isinstance(value, str) != isinstance(expected.value, str):
            return self._unsure(step, f"{fault} Whether a label and a number mean the same choice is not known.", now)
        if now.source is ValueSource.SET:
            return self._row(step, FAILS, fault=fault, source=now.source, value=now.value)
        if step.timeout is not None:
            return self._row(step, WAITS, fault=fault, source=now.source, value=now.value)
        if now.source in (ValueSource.ASSUMED, ValueSource.READ):
            return self._row(step, FAILS, fault=fault, source=now.source, value=now.value)
        return self._unsure(step, f"{fault} That was its last known value.", now)

    def _capture(self, step: kinds.RecipeCaptureStep) -> RehearsedStep:
        """Capture what the twin reads, or what the caller assumes."""
        step_values.refuse_refill(step.capture_name, self._captures)
        if (assumed := self.basis.assumed.get(step.capture_name)) is not None:
            return self._fill(step, step.capture_name, TwinValue(assumed, ValueSource.ASSUMED))
        now = self.twin.ask(step.address)
        if not now.known:
            self._fill(step, step.capture_name, UNKNOWN)
            return self._unsure(step, f"Nothing is known of the value of {step.address}; assume one, or start from now.")
        if self._lacks_unit(step.address, step.unit):
            self._fill(step, step.capture_name, UNKNOWN)
            return self._unsure(step, UNIT_UNKNOWN.format(step))
        edge, unit = UnitEdge(step.unit, self.basis.unit_policy), self.twin.signal(step.address).unit
        number = signal_rules.captured_number(step.address, now.value, step_values.GOOD, edge, unit)
        return self._fill(step, step.capture_name, now._replace(value=number))

    def _fill(self, step: RecipeStep, slot: str, found: TwinValue) -> RehearsedStep:
        self._captures[slot] = found.value if found.known else UNKNOWN
        self._sources[slot] = found.source
        return self._row(step, OK, source=found.source, value=found.value)

    def _act(self, step: kinds.RecipeActionStep) -> RehearsedStep:
        """Take an action at its word; what one leaves that says nothing is not known."""
        declared = self.basis.actions.get(step.name)
        touched = touched_signals([step], self.basis.actions, self.basis.executors)
        says = None if declared is None or plan_name(step) else self.forecast(step.name, declared, sent_params(step))
        if says is not None and says.refusal is not None:
            return self._row(step, REFUSED, fault=StepFault(*says.refusal))
        for address in touched.written:
            self.twin.forget(address)
        if says is None:
            return self._unsure(step, f"What {step.name} does is not known here; it says nothing before it is done.")
        for address, value in says.moves:
            self._judge_limits(address, value)
            self._move(address, TwinValue(value, ValueSource.SET))
        self.files |= dict.fromkeys(says.files)
        self.seconds |= {} if says.seconds is None else {step_key(step): says.seconds}
        return self._row(step, OK)

    def _compute(self, step: kinds.RecipeComputeStep) -> RehearsedStep:
        """Resolve what a program is given; what it returns is not known."""
        for _, operand in kinds.operands(step):
            self._operand(operand)
        if step.output_uri is not None:
            self.files[step.output_uri] = None
        if (name := step.output_ref_name) is not None and step.output_uri is not None:
            artifact = Artifact(uri=step.output_uri, checksum_algorithm="", checksum_value="", byte_size=0)
            step_values.deposit_of(step, (), (artifact,), self._memory)
            self._outputs[name] = artifact
        if (slot := step.capture_name) is not None:
            step_values.refuse_refill(slot, self._captures)
            assumed = self.basis.assumed.get(slot)
            return self._fill(step, slot, UNKNOWN if assumed is None else TwinValue(assumed, ValueSource.ASSUMED))
        return self._row(step, OK)

    def _lacks_unit(self, address: str, unit: str | None) -> bool:
        """Return whether a value of a step cannot be carried to its signal, for nobody knows what that counts in."""
        return UnitEdge(unit, self.basis.unit_policy).is_asked and not self.twin.signal(address).unit_known

    def _operand(self, operand: object) -> TwinValue:
        """Return the value of an operand with the mark that it inherits; raise the conduct's own fault where it has none."""
        value: Any = self._memory.value(operand)
        if isinstance(value, TwinValue):
            return UNKNOWN
        if isinstance(operand, kinds.CaptureRef):
            return TwinValue(value, self._sources.get(operand.capture_name, ValueSource.LEDGER))
        return TwinValue(value, ValueSource.SET)

    def _unsure(self, step: RecipeStep, detail: str, now: TwinValue = UNKNOWN) -> RehearsedStep:
        return self._row(step, UNSURE, source=now.source, value=now.value)._replace(detail=detail)

    def _row(
        self,
        step: RecipeStep,
        verdict: RehearsedVerdict,
        *,
        fault: StepFault | None = None,
        source: ValueSource | None = None,
        value: object = None,
    ) -> RehearsedStep:
        row = RehearsedStep(*self._place, step, verdict, source=source, value=value)
        return row if fault is None else row._replace(code=fault.label, detail=str(fault), facts=fault.facts or None)


def margin_of(number: float, limits: SignalLimits) -> float | None:
    """Return how far a number lies within limits that it is near, negative beyond them; None where it is not near."""
    ends = [one for one in (limits.low, limits.high) if one is not None]
    if not ends:
        return None
    near = NEAR_LIMIT * (ends[1] - ends[0] if len(ends) == 2 else abs(ends[0]))
    room = [number - limits.low] if limits.low is not None else []
    margin = min([*room, limits.high - number] if limits.high is not None else room)
    return margin if margin <= near else None


def durations_wanted(parts: Sequence[RehearsalPart]) -> tuple[StepKey, ...]:
    """Return the kinds and targets of steps that estimates of these parts ask for, each once."""
    return tuple(dict.fromkeys(key for part in parts for key in part.walk.keys))


class TimedRehearsal(NamedTuple):
    """A rehearsal with its times, and the fingerprint of what it rests on."""

    rehearsed: Rehearsed
    times: Sequence[PartTimes]
    fingerprint: str


class RehearsalPort(Protocol):
    """Walks rehearsals beside everything else."""

    async def rehearse(self, basis: RehearsalBasis) -> TimedRehearsal:
        """Return the rehearsal; raise RehearsalsBusyError where others take too long."""
