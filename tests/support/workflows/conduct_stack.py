"""A stack to conduct on: the command path, a worker and a simulated plant in this process, on a real database and engine."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from temporalio.client import Client

from baton.application.caller import Caller
from baton.application.conduct.actions import Actions
from baton.application.conduct.compute import Compute
from baton.application.conduct.ledger import Ledger
from baton.application.control import WRITE_TIMEOUT, Control, ControlLimits, Fence, Reading, limits_of
from baton.application.ports import CommandResult
from baton.application.settings import Settings
from baton.application.unit_of_work import decode_event
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import build_worker, open_conduct_engine
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus
from baton.domain.kernel import Command, Event, Query
from baton.domain.procedure.procedure import Procedure, ProcedureStatus
from baton.domain.recipe.capability import CODE_PREFIX, DefineCapability, ExecutorShape
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.start.registration import RegisterProcedure, RegisterProcedureFromRecipe
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import Simulator, simulated_plant
from baton.infrastructure.telemetry.tracing import Tracing
from baton.infrastructure.temporal.engine import connect
from baton.infrastructure.wall_clock import new_id
from tests.support.waiting import until
from tests.support.workflows.step_json import PROGRAMS

OPERATOR = UUID("0197a100-0000-7000-8000-00000000000a")


class RecordingControl:
    """A control that keeps what was written through it, in order, whatever the ledger says."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.writes: list[tuple[str, Any]] = []

    async def read(self, address: str) -> Reading:
        return await self._control.read(address)

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        self.writes.append((address, value))
        await self._control.write(address, value, wait, timeout, fence)

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        return self._control.subscribe(address)

    async def limits(self, address: str) -> ControlLimits | None:
        return await limits_of(self._control, address)

    async def close(self) -> None:
        await self._control.close()


@dataclass
class ConductStack:
    """Commands as an operator, and everything that is recorded of their conducts."""

    runtime: Runtime
    client: Client
    plant: Simulator
    control: RecordingControl
    actions: Actions | None
    compute: Compute | None
    caller: Caller
    used_ledger: Ledger | None = None
    _working: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start_worker(self) -> None:
        """Start a worker."""
        self._working = AsyncExitStack()
        wired = await self._working.enter_async_context(
            open_conduct_engine(
                self.runtime, self.control, actions=self.actions, compute=self.compute, ledger=self.used_ledger
            )
        )
        await self._working.enter_async_context(build_worker(self.client, self.runtime, wired))

    async def stop_worker(self) -> None:
        """Stop the worker; what is in progress is handed back."""
        await self._working.aclose()

    def reset_plant(self, signals: Mapping[str, Any]) -> None:
        """Connect these signals with their values and without faults, and forget what was written."""
        for address, value in signals.items():
            self.plant.simulate_fault(address, None)
            self.plant.set_reading(address, Reading(value=value))
        self.control.writes.clear()

    async def do(self, command: Command, on: UUID | None = None, **options: Any) -> CommandResult:
        """Give a command as the operator."""
        return await self.runtime.service.execute(command, self.caller, target_id=on, **options)

    async def ask(self, query: Query, on: UUID | None = None) -> Any:
        return await self.runtime.service.ask(query, self.caller, target_id=on)

    async def register_procedure(self, **fields: Any) -> UUID:
        """Register a procedure, and return its id."""
        executed = await self.do(RegisterProcedure(**{"name": "Alignment", "kind": "alignment", **fields}))
        assert executed.body is not None
        return UUID(executed.body["procedure_id"])

    async def register_from_recipe(
        self, steps: Sequence[Any], closing_steps: Sequence[Any] = (), schema: Any = None, plot: Any = None, **fields: Any
    ) -> UUID:
        """Register a procedure from a recipe of these steps, with parameters of this schema and this plot; return its id."""
        contract = {"required_affordances": frozenset(), "executor_shapes": frozenset({ExecutorShape.PROCEDURE})}
        code = f"{CODE_PREFIX}{new_id()}"
        capability = await self.do(DefineCapability(code=code, name="Task", parameters_schema=schema, **contract))
        asked = {"name": "steps", "capability_id": (capability.body or {})["capability_id"]}
        recipe = await self.do(DefineRecipe(**asked, steps=tuple(steps), closing_steps=tuple(closing_steps), plot=plot))
        task = {"name": "Alignment", "kind": "alignment", "recipe_id": (recipe.body or {})["recipe_id"], **fields}
        executed = await self.do(RegisterProcedureFromRecipe(**task))
        return UUID((executed.body or {})["procedure_id"])

    async def conduct(self, command: Command, on: UUID, **options: Any) -> Any:
        """Conduct, and return the result."""
        return (await self.do(command, on, **options)).body

    async def conduct_steps(
        self, steps: Sequence[Any], how: type[Any] = ConductProcedure, **fields: Any
    ) -> tuple[UUID, Any]:
        """Conduct these steps, and return the procedure's id and the result."""
        procedure_id = await self.register_procedure()
        executed = await self.do(how(steps=tuple(steps), **{"wait": 60, **fields}), procedure_id)
        return procedure_id, executed.body

    async def procedure(self, procedure_id: UUID) -> Procedure:
        async with self.runtime.store.session() as session:
            rows = await session.load(Procedure.__name__, [procedure_id])
        procedure: Procedure | None = Procedure.aggregate.replay(rows)
        assert procedure is not None
        return procedure

    async def wait_for_status(self, procedure_id: UUID, status: ProcedureStatus) -> None:
        async def has_status() -> bool:
            return (await self.procedure(procedure_id)).status is status

        await until(has_status)

    async def wait_until_over(self, procedure_id: UUID) -> None:
        """Wait until nobody conducts a procedure any more."""

        async def is_over() -> bool:
            return (await self.procedure(procedure_id)).live_conduct_id is None

        await until(is_over)

    async def observe_permit(self, enclosure_id: UUID, status: str) -> None:
        """Report the permit of a hutch as the interlock does."""
        monitor = {"source_kind": "ProcessVariable", "source_id": "PSS:B:SEARCHED"}
        command = ObserveEnclosureStatus(new_status=status, reason="search complete", monitor_ref=monitor)
        await self.runtime.commands.execute(command, Caller.system(new_id()), target_id=enclosure_id)

    async def events(self, procedure_id: UUID) -> list[Event]:
        """Return every event of the procedure's stream."""
        every = list(Procedure.aggregate.events)
        async with self.runtime.store.session() as session:
            rows = await session.load_of(Procedure.__name__, (procedure_id,), every)
        return [decode_event(Procedure.aggregate, row) for row in rows]

    async def event_types(self, procedure_id: UUID) -> list[str]:
        """Return the types of the events of the procedure's stream."""
        return [type(event).__name__ for event in await self.events(procedure_id)]

    async def ledger(self, procedure_id: UUID) -> list[Mapping[str, Any]]:
        """Return the rows of the ledger, in the order they were written."""
        async with self.runtime.pool.connection() as connection:
            found = await connection.execute(
                "SELECT step_kind, mark, closing, payload FROM entries_procedure_activities WHERE procedure_id = %s "
                "ORDER BY recorded_at, attempt",
                [procedure_id],
            )
            rows = await found.fetchall()
        return [{"kind": kind, "mark": mark, "is_closing": closing, **payload} for kind, mark, closing, payload in rows]


@asynccontextmanager
async def open_conduct_stack(
    database_url: str,
    temporal_address: str,
    *,
    actions: Actions | None = None,
    compute: Compute | None = None,
    control: Control | None = None,
    tracing: Tracing | None = None,
    **settings: Any,
) -> AsyncIterator[ConductStack]:
    """A stack with a worker, until the end of the block; its plant is simulated unless a control is given."""
    settings = {"compute_programs": PROGRAMS, **settings}
    chosen = Settings(
        database_url=database_url, temporal_address=temporal_address, app_env="test", database_pool_size=8, **settings
    )
    plant = simulated_plant(chosen)
    routes = chosen.control_routes
    if control is None:
        control = RoutedControl(routes, {route.substrate: plant for route in routes}) if routes else plant
    caller = Caller(OPERATOR, SYSTEM_HTTP, new_id())
    async with Runtime(chosen, tracing) as runtime:
        await runtime.plant_seeds()
        stack = ConductStack(
            runtime, await connect(chosen, tracing), plant, RecordingControl(control), actions, compute, caller
        )
        await stack.start_worker()
        try:
            yield stack
        finally:
            await stack.stop_worker()
