"""What conductors read and write on the record: the plan of a conduct, its stream, and its submitter's standing."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar, cast
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_work import submitter
from baton.application.conduct.ledger import Ledger, StreamVersions
from baton.application.ports import Clock, EventRow, Store
from baton.application.unit_of_work import decode_event, load_events, require_state
from baton.domain.access.actor import Actor
from baton.domain.agent.agent import Agent
from baton.domain.conduct import messages
from baton.domain.conduct.conduct import tighter
from baton.domain.conduct.iterations import EndProcedureIteration
from baton.domain.conduct.messages import MAX_REASON_LENGTH, ConductRequest, ConductVerdict, StepPlace
from baton.domain.conduct.plan_progress import PlacedPlanNews
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.conduct.signals import GONE, ConductSignals, read_conduct_signals
from baton.domain.kernel import Command, Event, StoredEvent
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import ConductMode, Procedure
from baton.domain.recipe.conduct_options import ConductOptions, OnUnknownOutcome, conduct_options
from baton.domain.recipe.steps import RecipeStep
from baton.domain.run.run import HoldRun
from baton.domain.shared.refusals import ConcurrencyError, Refusal
from baton.domain.step.results import Failure

log = structlog.get_logger()
MAX_CACHED_STEPS = 200_000  # steps of all cached plans together
MAX_CACHED_PLANS = 1_000
MAX_KEPT_SIGNALS = 1_000  # conducts of which the signals are kept
Opening = procedures.ProcedureStarted | procedures.ProcedureResumed | procedures.ProcedureAbortRequested
OPENINGS = (procedures.ProcedureStarted, procedures.ProcedureResumed, procedures.ProcedureAbortRequested)
E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class StepPlan:
    """The plan of one conduct."""

    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    mode: ConductMode | None  # None where only the closing steps are walked
    steps: tuple[RecipeStep, ...]
    closing_steps: tuple[RecipeStep, ...]
    boundary: int  # the first step of the main list that is walked
    stated_boundary: int | None  # the step at which the opening takes an earlier conduct up; None where it takes none up
    skipped_count: int  # steps that the opening leaves out
    convergence: procedures.Convergence | None
    steering: procedures.ProcedureSteeringDeclared | None
    iterations_before: int  # passes that were begun before this conduct was opened
    run_id: UUID | None
    logbook_id: UUID
    caller: Caller  # the submitter, as whom every command of the conduct is authorized
    started_at: datetime
    options: ConductOptions
    plan_digests: Mapping[str, str]  # what each Bluesky plan was when it was pinned, by the name of its action

    @property
    def holds_unknown(self) -> bool:
        """Return whether a step whose outcome is unknown holds the procedure for a person."""
        return self.options.on_unknown_outcome is OnUnknownOutcome.HOLD

    @property
    def ends_directly(self) -> bool:
        """Return whether there is nothing to close and no run to wait for, so that its end needs nothing before it."""
        return not self.closing_steps and self.run_id is None

    @property
    def total_steps(self) -> int:
        return len(self.steps) + len(self.closing_steps)

    @property
    def closing_only(self) -> bool:
        return self.mode is None

    @property
    def is_resumed(self) -> bool:
        """Return whether it continues an earlier conduct, whose acquisitions it must not repeat."""
        return self.stated_boundary is not None and self.mode is ConductMode.FLAT

    @property
    def between(self) -> StepPlace:
        """Return the place for heartbeats between two steps."""
        return StepPlace(procedure_id=self.procedure_id, conduct_id=self.conduct_id, step_index=0)

    @property
    def loops(self) -> bool:
        """Return whether its steps are walked in passes."""
        return self.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)

    def first_index(self, place: StepPlace) -> int:
        """Return the first step that is walked of this list."""
        return 0 if place.closing else self.boundary

    def has(self, place: StepPlace) -> bool:
        """Return whether there is such a step to walk: only loops have passes, and closing steps are in none."""
        count = len(self.list_of(place))
        in_pass = self.loops and not place.closing
        return self.first_index(place) <= place.step_index < count and (place.iteration_index > 0) is in_pass

    def last(self, iteration_index: int = 0, *, closing: bool = False) -> StepPlace | None:
        """Return the last step to walk of a list; None where there is none."""
        count = len(self.closing_steps if closing else self.steps)
        at = {"iteration_index": iteration_index, "closing": closing, "step_index": count - 1}
        place = self.between.model_copy(update=at)
        return place if count > self.first_index(place) else None

    def step(self, place: StepPlace) -> RecipeStep:
        """Return the step at a place."""
        return self.list_of(place)[place.step_index]

    def list_of(self, place: StepPlace) -> tuple[RecipeStep, ...]:
        """Return the list that a place is in."""
        return self.closing_steps if place.closing else self.steps

    def passes(self, procedure: Procedure) -> int:
        """Return how many passes this conduct has begun."""
        return procedure.iteration_count - self.iterations_before


class StepPlans:
    """The plans of the conducts that this process works on, loaded once each."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[UUID, StepPlan] = OrderedDict()
        self._step_count = 0

    async def load(self, request: ConductRequest) -> StepPlan | None:
        """Return the plan of a conduct; None where it is not the live one."""
        procedure_id, conduct_id = request.procedure_id, request.conduct_id
        if (known := self._known.get(conduct_id)) is not None:
            self._known.move_to_end(conduct_id)
            return known if known.procedure_id == procedure_id else None
        plan = await self._read(procedure_id, conduct_id)
        if plan is not None and conduct_id not in self._known:
            self._known[conduct_id] = plan
            self._step_count += plan.total_steps
            while len(self._known) > 1 and (self._step_count > MAX_CACHED_STEPS or len(self._known) > MAX_CACHED_PLANS):
                self._step_count -= self._known.popitem(last=False)[1].total_steps
        return plan

    def forget(self, conduct_id: UUID) -> None:
        """Drop the plan of a conduct that has ended."""
        if (plan := self._known.pop(conduct_id, None)) is not None:
            self._step_count -= plan.total_steps

    async def _read(self, procedure_id: UUID, conduct_id: UUID) -> StepPlan | None:
        aggregate = Procedure.aggregate
        async with self._store.session() as session:
            procedure = aggregate.replay(await session.load(aggregate.name, [procedure_id]))
            if procedure is None or procedure.live_conduct_id != conduct_id:
                return None
            wanted = (procedures.ProcedureStepsResolved, procedures.ProcedureSteeringDeclared, *OPENINGS)
            rows = await session.load_of(aggregate.name, (procedure_id,), [event.__name__ for event in wanted])
            begun = await session.load_of(aggregate.name, (procedure_id,), [procedures.ProcedureIterationStarted.__name__])
            (opened,) = await session.records(OpenedConduct, {"conduct_id": conduct_id})
        events = await asyncio.to_thread(lambda: [decode_event(aggregate, row) for row in rows])
        pin = next(event for event in reversed(events) if isinstance(event, procedures.ProcedureStepsResolved))
        designs = [event for event in events if isinstance(event, procedures.ProcedureSteeringDeclared)]
        openings = [(row.version, event) for row, event in zip(rows, events, strict=True) if isinstance(event, OPENINGS)]
        version, opening = next(found for found in openings if found[1].conduct_id == conduct_id)
        resumption = opening if isinstance(opening, procedures.ProcedureResumed) else None
        assert procedure.activity_logbook_id is not None, "the opening opens the logbook"
        return StepPlan(
            procedure_id=procedure_id,
            conduct_id=conduct_id,
            command_name=opened.command_name,
            mode=None if isinstance(opening, procedures.ProcedureAbortRequested) else pin.conduct_mode,
            steps=pin.resolved_steps,
            closing_steps=pin.resolved_closing_steps,
            boundary=boundary_of(opening, pin),
            stated_boundary=None if resumption is None else resumption.re_establishment_boundary,
            skipped_count=0 if resumption is None else resumption.skipped_count,
            convergence=convergence_of(opening, pin),
            steering=designs[-1] if designs else None,
            iterations_before=sum(row.version < version for row in begun),
            run_id=procedure.parent_run_id,
            logbook_id=procedure.activity_logbook_id,
            caller=submitter(opened),
            started_at=opening.occurred_at,
            options=options_of(openings, version, pin),
            plan_digests=pin.plan_digests,
        )


def options_of(
    openings: Sequence[tuple[int, Opening]], version: int, pin: procedures.ProcedureStepsResolved
) -> ConductOptions:
    """Return the options of a conduct: those of the pin, with what it and earlier resumptions changed."""
    resumed = [event for at, event in openings if isinstance(event, procedures.ProcedureResumed) and at <= version]
    return conduct_options(*reversed(resumed), pin)


def boundary_of(opening: Opening, pin: procedures.ProcedureStepsResolved) -> int:
    """Return the first step to walk; a conduct of closing steps alone walks none of the main list."""
    if isinstance(opening, procedures.ProcedureAbortRequested):
        return len(pin.resolved_steps)
    flat = pin.conduct_mode is ConductMode.FLAT
    return opening.re_establishment_boundary if isinstance(opening, procedures.ProcedureResumed) and flat else 0


def convergence_of(opening: Opening, pin: procedures.ProcedureStepsResolved) -> procedures.Convergence | None:
    """Return when a loop is done, with the tightest cap on passes without convergence."""
    pinned = pin.convergence
    if pinned is None or not isinstance(opening, procedures.ProcedureResumed):
        return pinned
    cap = tighter(opening.max_consecutive_unconverged_iterations, pinned.max_consecutive_unconverged_iterations)
    return pinned.model_copy(update={"max_consecutive_unconverged_iterations": cap})


@dataclass(frozen=True)
class ConductRecord:
    """The stream of a procedure that is conducted."""

    store: Store
    commands: Commands

    async def procedure(self, plan: StepPlan) -> Procedure:
        """Return the current procedure."""
        return await require_state(self.store, Procedure, plan.procedure_id)

    async def events(self, plan: StepPlan, *events: type[E]) -> Sequence[E]:
        """Return the events of these types, oldest first."""
        return await load_events(self.store, plan.procedure_id, *events)

    async def events_after(self, plan: StepPlan, version: int, *events: type[E]) -> tuple[Sequence[E], int]:
        """Return the events of these types after a version, and the version that was read up to."""
        names = [event.__name__ for event in events]
        rows: Sequence[StoredEvent | EventRow]
        if version:
            rows = await self.store.newer(Procedure.__name__, {plan.procedure_id: version})
        else:
            async with self.store.session() as session:
                rows = await session.load_of(Procedure.__name__, (plan.procedure_id,), names)
        decoded = [cast("E", decode_event(Procedure.aggregate, row)) for row in rows if row.event_type in names]
        return decoded, rows[-1].version if rows else version

    async def execute(self, plan: StepPlan, command: Command) -> None:
        """Execute a command as the submitter of the conduct."""
        await self.commands.execute(command, plan.caller, target_id=plan.procedure_id)

    async def execute_as_service(self, plan: StepPlan, command: Command) -> None:
        """Execute a command as the service itself, until it is on the record."""
        caller = Caller.system(plan.caller.correlation_id)
        await execute_with_retry(self.commands, command, caller, target_id=plan.procedure_id)

    async def end_pass(self, plan: StepPlan, index: int, reason: str, *, discarded: bool = False) -> None:
        """End a pass as the service, so that a submitter who may not end a conduct leaves no pass open."""
        reason, conduct_id = reason[:MAX_REASON_LENGTH], plan.conduct_id
        command = EndProcedureIteration(
            iteration_index=index, converged=None, reason=reason, conduct_id=conduct_id, discarded=discarded
        )
        await self.execute_as_service(plan, command)


@dataclass(frozen=True)
class WatchedSignals:
    """What the record said to a conduct, and the versions of all streams that it was read from."""

    signals: ConductSignals
    versions: StreamVersions


@dataclass(frozen=True)
class RecordWatch:
    """What the record says to the conducts of this process, read again whenever the ledger finds it outdated."""

    commands: Commands
    clock: Clock
    _kept: OrderedDict[UUID, WatchedSignals] = field(default_factory=OrderedDict)

    async def poll(self, plan: StepPlan) -> WatchedSignals:
        """Return what was read last, while nobody has found it outdated and the gates were observed recently enough."""
        kept = self._kept.get(plan.conduct_id)
        until = None if kept is None else kept.signals.open_until
        return await self.read(plan) if kept is None or (until is not None and self.clock() >= until) else kept

    async def read(self, plan: StepPlan) -> WatchedSignals:
        """Return what the record says now."""
        standing = await self.commands.authorizer.read_principal_status(plan.caller)
        known = ((Actor.__name__, standing.actor_version), (Agent.__name__, standing.agent_version))
        versions = [(name, standing.principal_id, version) for name, version in known if version is not None]
        async with self.commands.store.session() as session:
            unit = self.commands.unit_of_work(session, plan.caller)
            call = plan.caller.call(self.clock(), plan.conduct_id)
            signals = await unit.fulfil(read_conduct_signals(plan.procedure_id, plan.conduct_id, plan.options.watch, call))
        if plan.closing_only:
            signals = replace(signals, run=None)
        watched = WatchedSignals(replace(signals, objection=standing.objection), (*versions, *unit.versions))
        self._kept[plan.conduct_id] = watched
        self._kept.move_to_end(plan.conduct_id)
        while len(self._kept) > MAX_KEPT_SIGNALS:
            self._kept.popitem(last=False)
        return watched

    async def beat(
        self, ledger: Ledger, plan: StepPlan, place: StepPlace, effect_id: UUID | None, news: PlacedPlanNews | None = None
    ) -> ConductSignals:
        """Send a heartbeat, and return what the record says."""
        watched = await self.poll(plan)
        while (heard := await ledger.beat(place, effect_id, watched.versions, news)).moved:
            watched = await self.read(plan)
        return watched.signals if heard.live else GONE

    async def signals(self, ledger: Ledger, plan: StepPlan) -> ConductSignals:
        """Send a heartbeat between two steps, and return what the record says; gates are judged when a step is to begin."""
        return replace(await self.beat(ledger, plan, plan.between, None), closed_gate=None)

    async def is_inactive(self, caller: Caller) -> bool:
        """Return whether the submitter may not act any more, by the latest event."""
        return (await self.commands.authorizer.read_principal_status(caller)).objection is not None

    async def read_denial(self, caller: Caller, target: str, denied: Refusal) -> tuple[ConductVerdict, Failure | None]:
        """Return verdict and failure of a denied command: the submitter stood down, or one permission was withdrawn."""
        if await self.is_inactive(caller):
            return ConductVerdict.STOOD_DOWN, None
        return ConductVerdict.DENIED, messages.lifecycle_failure(target, denied.code, denied.detail)

    async def hold_run(self, plan: StepPlan, gate: Failure) -> None:
        """Hold the parent run as the service because a gate has closed; where it is held already, that hold stands."""
        assert plan.run_id is not None, "a phase has a run"
        caller = Caller.system(plan.caller.correlation_id)
        with suppress(ConcurrencyError, HoldRun.Cannot):
            await self.commands.execute(HoldRun(reason=gate.message[:MAX_REASON_LENGTH]), caller, target_id=plan.run_id)


def reject(event: str, request: messages.OwnedRequest, **said: object) -> ConductVerdict:
    """Log a request that the record does not agree with; nothing is written, and the workflow ends."""
    ids = request.model_dump(mode="json", include={"procedure_id", "run_id", "conduct_id"})
    log.warning(event, **ids, **said)
    return ConductVerdict.GONE
