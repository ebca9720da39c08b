"""A rehearsal of conducts: conductor, steps and ledger in memory, on a simulated plant; the test plays the engine."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.application.authorization import PermissiveAuthorizer, PrincipalStatuses
from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.conduct.actions import ActionBody
from baton.application.conduct.conduct_record import ConductRecord, RecordWatch, StepPlan, StepPlans
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.deciders import Deciders
from baton.application.conduct.ledger import Ledger
from baton.application.conduct.passes import Passes
from baton.application.conduct.step_effects import StepEffects
from baton.application.conduct.step_execution import Limits, StepRunner, Worker
from baton.application.control import Control, Timekeeper
from baton.application.plant import ControlRoute, SimulatedMotor, Substrate
from baton.application.ports import Authorizer, Batch, CommandResult, JudgedPrincipal, StreamAppend
from baton.application.unit_of_work import decode_event
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.messages import (
    ConductEnd,
    ConductOutcome,
    ConductRequest,
    Finish,
    JobRequest,
    Mark,
    PassRequest,
    StepPlace,
    StepReport,
    StepRequest,
    lifecycle_failure,
)
from baton.domain.conduct.progress import ConductProgress
from baton.domain.kernel import Call, Command, Event
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.procedure.procedure import Procedure, ProcedureIterationStarted
from baton.domain.recipe.capability import CODE_PREFIX, DefineCapability, ExecutorShape
from baton.domain.recipe.method import MethodDefined
from baton.domain.recipe.plan import PlanDefined
from baton.domain.recipe.practice import PracticeDefined
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.safety.clearance import CURRENT, ClearanceActivated, ClearanceRegistered, binding_keys
from baton.domain.safety.hazards import RecordBinding
from baton.domain.shared.writes import Enlist
from baton.domain.start.registration import RegisterProcedure, RegisterProcedureFromRecipe
from baton.domain.steering.steering import SELECTABLE
from baton.domain.step.results import Failure, Measured
from baton.domain.trust.authorization import Access, AuthzResult, deny
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.control.devices import Motor
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.decide.configured import ConfiguredDeciders
from baton.infrastructure.plugins import ActionRegistry
from baton.testing.ledger import MemoryLedger
from baton.testing.store import MemoryStore
from tests.support.application.ports import ports_of
from tests.support.domain.lifecycles.run import run_started
from tests.support.domain.world import OPERATOR, new_id
from tests.support.fast_clock import LoopTime
from tests.support.infrastructure.ledger_cases import PORTS, LedgerConduct, row

HERE, ELSEWHERE = "here/1/1", "elsewhere/2/2"
LIMITS = Limits(action=3600.0, compute=3600.0, restart=300.0)
ROUTES = (
    ControlRoute(prefix="bl7:", substrate=Substrate.IN_MEMORY),
    ControlRoute(prefix="sim:", substrate=Substrate.IN_MEMORY, simulated=True),
    ControlRoute(prefix="ro:", substrate=Substrate.IN_MEMORY, read_only=True),
)
SIGNALS = {"bl7:a": 0, "bl7:b": 1.5, "bl7:c": 0, "bl7:shutter": 1, "sim:a": 0, "ro:a": 0}
ENDING: dict[str, Any] = {"decided_by_decision_id": None, "actuation_kind": None}
"""What nobody says of how a run ends."""
STOOD_DOWN = ConductOutcome(
    finish=Finish.STOOD_DOWN, failure=lifecycle_failure("hold", "SteeringDriverStoodDown", "Nobody is there to go on.")
)


class WorkAttempt:
    """One try at a piece of work, as the engine makes it."""

    def __init__(self, is_cancelled: bool = False, is_abandoned: bool = False, is_repeated: bool = False) -> None:
        self.is_repeated = is_repeated
        self.is_cancelled = is_cancelled
        self.is_abandoned = is_abandoned
        self.signs = 0
        self.places: list[str] = []

    def heartbeat(self, place: str | None = None) -> None:
        self.signs += 1
        self.places += [] if place is None else [place]


@dataclass
class RevocablePermits:
    """An authorization seam that lets the service do everything, and others what was not withdrawn from them."""

    standings: PrincipalStatuses
    withdrawn: set[str] = field(default_factory=set)
    enforced: bool = False
    """Whether who stood down is denied everything, as policies do."""

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        if caller.surface_id == SYSTEM_HTTP and command_name in self.withdrawn:
            return deny("command_not_permitted")
        if self.enforced and (objection := (await self.read_principal_status(caller)).objection) is not None:
            return deny(objection)
        return await PermissiveAuthorizer().authorize(caller, command_name, surface_id)

    async def permitted_commands(self, caller: Caller) -> frozenset[str]:
        return await PermissiveAuthorizer().permitted_commands(caller) - self.withdrawn

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        return await PermissiveAuthorizer().proven_groups(caller)

    async def access(self, caller: Caller) -> Access:
        return await PermissiveAuthorizer().access(caller)

    async def read_principal_status(self, caller: Caller) -> JudgedPrincipal:
        return await PermissiveAuthorizer(self.standings).read_principal_status(caller)


@dataclass(frozen=True)
class OpenedConduct:
    """A conduct that was opened."""

    plan: StepPlan

    @property
    def procedure_id(self) -> UUID:
        return self.plan.procedure_id

    @property
    def conduct_id(self) -> UUID:
        return self.plan.conduct_id

    @property
    def request(self) -> ConductRequest:
        return ConductRequest(procedure_id=self.procedure_id, conduct_id=self.conduct_id)

    def pass_request(self, iteration_index: int) -> PassRequest:
        return PassRequest(**self.request.model_dump(), iteration_index=iteration_index)

    def end(self, outcome: ConductOutcome, closed: bool = False) -> ConductEnd:
        return ConductEnd(**self.request.model_dump(), outcome=outcome, closed=closed)

    def at(self, step_index: int, iteration_index: int = 0, closing: bool = False) -> StepPlace:
        return LedgerConduct(self.procedure_id, self.conduct_id).at(step_index, iteration_index, closing)


@dataclass
class MemoryConduct:
    """Commands as an operator, steps as one worker or several, and everything there is to see of their results."""

    time: LoopTime
    plant: Simulator
    control: Control
    routes: tuple[ControlRoute, ...] = ()
    actions: dict[str, ActionBody] = field(default_factory=dict)
    compute: SimulatedCompute = field(default_factory=SimulatedCompute)
    store: MemoryStore = field(default_factory=MemoryStore)
    permits: Authorizer | None = None
    deciders: Deciders = field(default_factory=lambda: ConfiguredDeciders(SELECTABLE))
    dead: set[str] = field(default_factory=set)
    """The names of workers that are known to have ended."""
    taken_for_done: set[UUID] = field(default_factory=set)
    """The rows of steps that nobody did, so that a later one can be tried."""
    monitored_enclosures: set[str] = field(default_factory=set)
    monitored_supplies: set[str] = field(default_factory=set)
    caller: Caller = field(default_factory=lambda: Caller(OPERATOR, SYSTEM_HTTP, new_id()))
    make_ledger: Callable[[MemoryStore, LoopTime], Ledger] = MemoryLedger

    def __post_init__(self) -> None:
        self.permits = self.permits or RevocablePermits(PrincipalStatuses(self.store))
        self.ledger = self.make_ledger(self.store, self.time)
        self.commands = Commands(self.store, self.permits, self.time, new_id, self.ports())
        self.plans = StepPlans(self.store)
        self.steps = self.worker(HERE)
        self.take_the_stand()

    def ports(self) -> Any:
        own = (self.actuation_kind, self.completed_step_count, self.deployment, self.monitor_term)
        return ports_of(PORTS, **{port.__name__: port for port in own})

    async def deployment(self) -> Any:
        facts = await PORTS.deployment.deployment()
        facts.monitored_enclosures = frozenset(self.monitored_enclosures)
        facts.monitored_supplies = frozenset(self.monitored_supplies)
        return facts

    async def monitor_term(self, enclosure_names: Sequence[str]) -> int | None:
        return next(iter(self.store.leases.values()), None)

    async def actuation_kind(self, conduct_id: UUID) -> Any:
        return (await self.ledger.tally(conduct_id, 0)).actuation_kind

    async def completed_step_count(self, conduct_id: UUID) -> int:
        return (await self.ledger.tally(conduct_id, 0, of_pass=True)).completed_count

    def worker(self, name: str = ELSEWHERE) -> StepRunner:
        """Somebody who does steps."""
        actions = ActionRegistry(self.actions)
        effects = StepEffects(self.control, actions, self.time, self.routes, LIMITS.action)
        worker = Worker(name, self.dead.__contains__)
        watch = RecordWatch(self.commands, self.time)
        return StepRunner(
            self.ledger,
            self.plans,
            effects,
            self.compute,
            self.time,
            LIMITS,
            worker,
            watch,
            lambda: self.time.elapsed_seconds,
        )

    def take_the_stand(self) -> None:
        """Conduct as somebody who has just come to work and knows nothing but the record."""
        record, plans = ConductRecord(self.store, self.commands), StepPlans(self.store)
        watch = RecordWatch(self.commands, self.time)
        self.conductor = Conductor(self.store, record, self.time, self.ledger, plans, self.steps, watch)
        self.passes = Passes(self.store, record, watch, self.time, self.ledger, plans, self.deciders)

    def other_worker(self) -> "MemoryConduct":
        """The same conducts, somebody else on the stand."""
        other = copy(self)
        other.take_the_stand()
        return other

    async def do(self, command: Command, on: UUID | None = None) -> CommandResult:
        return await self.commands.execute(command, self.caller, target_id=on)

    async def create(self, command: Command) -> UUID:
        return UUID(next(iter(((await self.do(command)).body or {}).values())))

    async def register_procedure(self, steps: Sequence[Any], closing_steps: Sequence[Any] = (), **fields: Any) -> UUID:
        """A procedure from a recipe of these steps."""
        capability_id = await self.create(
            DefineCapability(
                code=f"{CODE_PREFIX}{new_id()}",
                name="Task",
                required_affordances=frozenset(),
                executor_shapes=frozenset({ExecutorShape.PROCEDURE}),
            )
        )
        recipe_id = await self.create(
            DefineRecipe(name="steps", capability_id=capability_id, steps=tuple(steps), closing_steps=tuple(closing_steps))
        )
        task = {"name": "Alignment", "kind": "alignment", "recipe_id": recipe_id}
        return await self.create(RegisterProcedureFromRecipe(**{**task, **fields}))

    async def open_conduct(
        self,
        steps: Sequence[Any],
        closing_steps: Sequence[Any] = (),
        how: type[Any] = ConductProcedure,
        run_id: UUID | None = None,
        conduct: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> OpenedConduct:
        """A conduct of these steps that has just been opened."""
        if run_id is not None:
            fields["parent_run_id"] = run_id
        literal = not closing_steps and all(step["kind"] != "compute" for step in steps) and "steps" in how.model_fields
        if literal:
            procedure_id = await self.create(RegisterProcedure(**{"name": "Alignment", "kind": "alignment", **fields}))
            command = how(steps=tuple(steps), **(conduct or {}))
        else:
            procedure_id = await self.register_procedure(steps, closing_steps, **fields)
            command = how(**(conduct or {}))
        return await self.live(command, procedure_id)

    async def live(self, command: Command, procedure_id: UUID) -> OpenedConduct:
        """The conduct that a command opens."""
        conduct_id = UUID(((await self.do(command, procedure_id)).body or {})["conduct_id"])
        plan = await self.plans.load(ConductRequest(procedure_id=procedure_id, conduct_id=conduct_id))
        assert plan is not None
        return OpenedConduct(plan)

    async def step(
        self,
        conduct: OpenedConduct,
        step_index: int = 0,
        iteration_index: int = 0,
        *,
        closing: bool = False,
        point: Mapping[str, Any] | None = None,
        deadline: datetime | None = None,
        by: StepRunner | None = None,
        attempt: WorkAttempt | None = None,
    ) -> StepReport:
        """Do one step to its end, as the engine would have it done."""
        steps, place, attempt = by or self.steps, conduct.at(step_index, iteration_index, closing), attempt or WorkAttempt()
        where = dict(point or {})
        await self.reach(conduct, place, where)
        report = await steps.do(StepRequest(place=place, point=where, deadline=deadline), attempt)
        if report.job_id is None:
            return report
        return await steps.collect(JobRequest(place=place, point=where, job_id=report.job_id), attempt)

    async def reach(self, conduct: OpenedConduct, place: StepPlace, point: Mapping[str, Any]) -> None:
        """Have the record show what comes before a step; rows that only say so are not among those that are looked at."""
        if self.procedure(conduct).live_conduct_id != conduct.conduct_id:
            return
        if place.closing and self.progress(conduct).phase != "Ended":
            await self.ledger.begin_closing(place.procedure_id, place.conduct_id)
        if place.iteration_index and self.procedure(conduct).current_iteration_index != place.iteration_index:
            begun = ProcedureIterationStarted(iteration_index=place.iteration_index, point=dict(point) or None)
            await self.append_events(place.procedure_id, begun)
        for index in range(conduct.plan.first_index(place), place.step_index):
            before = place.model_copy(update={"step_index": index})
            if not await self.ledger.has_passed(before):
                passed = row(before, Mark.OUTCOME, kind=conduct.plan.step(before).kind, result="skipped")
                await self.ledger.settle(passed)
                self.taken_for_done.add(passed.event_id)

    async def mark_list_done(self, conduct: OpenedConduct, *, closing: bool = False) -> None:
        """Have the record show one of the lists done to its end."""
        count = len(conduct.plan.closing_steps if closing else conduct.plan.steps)
        await self.reach(conduct, conduct.at(count, closing=closing), {})

    async def record_failure(self, conduct: OpenedConduct, failure: Failure) -> None:
        """Have the record show that a step failed so."""
        says = failure.model_dump(mode="json", include={"target", "error_class", "message"})
        place = conduct.at(failure.step_index or 0)
        await self.ledger.settle(row(place, Mark.OUTCOME, kind=failure.source_kind, **says, result="failed"))

    async def value(self, address: str) -> Any:
        """What a signal reads."""
        return (await self.plant.read(address)).value

    def rows(self, conduct: OpenedConduct | None = None) -> list[dict[str, Any]]:
        """What the rows of the ledger say, in the order they were written."""
        return [row.payload for row in self.activities(conduct)]

    def marks(self, conduct: OpenedConduct | None = None) -> list[tuple[str, str, str]]:
        """Of every row the kind of its step, its mark and its result."""
        return [(row.step_kind, row.mark or "", row.payload["result"]) for row in self.activities(conduct)]

    def activities(self, conduct: OpenedConduct | None = None) -> list[Activity]:
        rows: Any = self.store.entries[Activity.relation]
        return [
            row
            for row in rows
            if row.event_id not in self.taken_for_done and (conduct is None or row.conduct_id == conduct.conduct_id)
        ]

    def procedure(self, conduct: OpenedConduct) -> Procedure:
        state = self.store.state((Procedure.__name__, conduct.procedure_id))
        assert isinstance(state, Procedure)
        return state

    def progress(self, conduct: OpenedConduct) -> ConductProgress:
        row = self.store.rows[ConductProgress.relation, conduct.procedure_id]
        assert isinstance(row, ConductProgress)
        return row

    def events(self, conduct: OpenedConduct) -> list[Any]:
        """Everything on the procedure's stream."""
        rows = self.store.streams[Procedure.__name__, conduct.procedure_id]
        return [decode_event(Procedure.aggregate, row) for row in rows]

    def event_types(self, conduct: OpenedConduct) -> list[str]:
        return [type(event).__name__ for event in self.events(conduct)]

    async def run(self) -> UUID:
        """A run of a plan without any needs, covered by a clearance."""
        event = run_started()
        method_id, practice_id = new_id(), new_id()
        await self.append_events(method_id, method())
        await self.append_events(
            practice_id, PracticeDefined(name="any", method_id=method_id, site_id=None, family_ids=frozenset())
        )
        await self.append_events(event.plan_id, plan(practice_id, method_id))
        run_id = new_id()
        await self.append_events(run_id, event)
        form, keys = clearance(run_id)
        await self.append_events(new_id(), form, ClearanceActivated(), found_by=[Enlist(CURRENT, key) for key in keys])
        return run_id

    async def append_events(self, stream_id: UUID, *events: Event, found_by: Sequence[Enlist] = ()) -> None:
        """Put events on a stream, whatever commands would say to that."""
        name, now = events[0].aggregate.name, self.time()
        stamped = [(new_id(), event.stamp(stream_id, now)) for event in events]
        after = len(self.store.streams.get((name, stream_id), ()))
        call = Call(OPERATOR, SYSTEM_HTTP, now, new_id(), new_id())
        async with self.store.session() as session:
            rows = [(one, stream_id) for one in found_by]
            appended = [StreamAppend(name, stream_id, after, stamped)]
            await session.append(Batch(call, "Rehearse", appended, enlistments=rows))


def memory_conduct(time: LoopTime, **parts: Any) -> MemoryConduct:
    """A rehearsal with a plant that has something of everything."""
    plant = Simulator(SIGNALS, [Motor(SimulatedMotor(address="bl7:x", velocity=1.0))], time=time)
    return MemoryConduct(time, plant, RoutedControl(ROUTES, {Substrate.IN_MEMORY: plant}), ROUTES, **parts)


async def finish_at_once(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an action that is done at once."""
    return {}


def failing_body(error: Exception) -> ActionBody:
    """The body of an action that fails so."""

    async def body(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
        raise error

    return body


def endless_body(time: LoopTime, stopped: list[float]) -> ActionBody:
    """The body of an action that never ends by itself, and tells when it was stopped."""

    async def body(control: Control, _: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(time.elapsed_seconds)
        return {}

    return body


def measurement(name: str, value: Any, **more: Any) -> Measured:
    return Measured(**{"name": name, "value": value, "kind": "Scalar", "quality": "Good", **more})


def method() -> MethodDefined:
    return MethodDefined(
        name="any",
        capability_id=new_id(),
        needed_family_ids=frozenset(),
        needed_supplies=frozenset(),
        parameters_schema=None,
    )


def clearance(run_id: UUID) -> tuple[ClearanceRegistered, list[str]]:
    """A clearance of a run, and the keys by which it is found."""
    bindings = frozenset({RecordBinding.model_validate({"kind": "Run", "id": run_id})})
    form = ClearanceRegistered(
        template_id=new_id(),
        template_code="ESAF",
        facility_code="facility",
        title="Alignment",
        bindings=bindings,
        declarations=frozenset(),
        risk_band=None,
        external_id=None,
        external_id_scheme=None,
        valid_from=None,
        valid_until=None,
        parent_id=None,
    )
    return form, binding_keys(bindings)


def plan(practice_id: UUID, method_id: UUID) -> PlanDefined:
    return PlanDefined(
        name="any",
        practice_id=practice_id,
        method_id=method_id,
        asset_ids=frozenset(),
        window_starts_at=None,
        window_ends_at=None,
        method_needed_family_ids_snapshot=frozenset(),
        asset_families_snapshot={},
    )
