"""Runs on a conduct stack: a camera with beam and a clearance, phases to conduct, and what is recorded of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.application.ports import CommandResult
from baton.application.unit_of_work import decode_event
from baton.domain.conduct.progress import ConductPhase, ConductProgress
from baton.domain.conduct.run_conduct import ConductRun, GetRunConduct, RunConductView
from baton.domain.kernel import Event
from baton.domain.run.run import Run, RunStatus
from baton.domain.start.run_start import StartRun
from baton.infrastructure.wall_clock import new_id
from tests.support.api.rest_beamline import DEFAULTS, PARAMETERS
from tests.support.domain.lifecycle_table import command
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack

FACILITY = "facility"
SIGNALS = {"a": 0, "b": 0, "c": 0, "gate": 0, "shutter": 1}
PLANT = {
    "control_routes": ({"prefix": "", "substrate": "in_memory"},),
    "simulated_signals": SIGNALS,
    "simulated_devices": ({"kind": "peak", "address": "sharpness", "centres": {"a": 1}, "width": 1},),
}
APPROVED = {"role": "BeamlineScientist", "decision": "Approved"}


@dataclass(frozen=True)
class RunStack:
    """A conduct stack with a plan that runs can be started on, as long as there is beam."""

    stack: ConductStack
    plan_id: UUID
    supply_id: UUID

    async def start(self) -> "StartedRun":
        """A run on a plant that stands as at the beginning."""
        self.stack.reset_plant(SIGNALS)
        run = await self.stack.do(StartRun(name="Load step 1", plan_id=self.plan_id))
        return StartedRun(self.stack, UUID((run.body or {})["run_id"]), self.supply_id)


@dataclass(frozen=True)
class StartedRun:
    """A run that is on."""

    stack: ConductStack
    run_id: UUID
    supply_id: UUID

    async def give(self, verb: str, on: UUID | None = None, **fields: Any) -> CommandResult:
        """Give a command by its name; to the run, where nothing else is said."""
        return await self.stack.do(command(verb, fields), on or self.run_id)

    async def phase(self, name: str = "Flat field", **fields: Any) -> UUID:
        """A phase whose steps come with the request."""
        return await self.stack.register_procedure(name=name, parent_run_id=self.run_id, **fields)

    async def recipe_phase(self, steps: Sequence[Any], closing_steps: Sequence[Any] = (), **fields: Any) -> UUID:
        return await self.stack.register_from_recipe(steps, closing_steps, parent_run_id=self.run_id, **fields)

    async def conduct(self, *phases: Any, wait: float = 60, key: str | None = None) -> CommandResult:
        """Conduct these phases; each is a procedure, or one with how it is conducted."""
        listed = [{"procedure_id": phase} if isinstance(phase, UUID) else phase for phase in phases]
        return await self.stack.do(ConductRun(phases=listed, wait=wait), self.run_id, key=key)

    async def run(self) -> Run:
        async with self.stack.runtime.store.session() as session:
            rows = await session.load(Run.__name__, [self.run_id])
        run: Run | None = Run.aggregate.replay(rows)
        assert run is not None
        return run

    async def events(self) -> list[Event]:
        """Everything on the run's stream."""
        async with self.stack.runtime.store.session() as session:
            rows = await session.load_of(Run.__name__, (self.run_id,), list(Run.aggregate.events))
        return [decode_event(Run.aggregate, row) for row in rows]

    async def event_types(self) -> list[str]:
        return [type(event).__name__ for event in await self.events()]

    async def view(self) -> RunConductView:
        view: RunConductView = await self.stack.ask(GetRunConduct(), self.run_id)
        return view

    async def wait_until_waiting_for(self, what: str, **known: Any) -> RunConductView:
        """What is shown once the conduct waits for this."""

        async def waiting_view() -> RunConductView | None:
            view = await self.view()
            return view if view.waiting is not None and view.waiting.for_ == what else None

        view: RunConductView = await until(waiting_view)
        assert view.waiting is not None
        assert {name: getattr(view.waiting, name) for name in known} == known
        return view

    async def result(self) -> Any:
        """What came of the conduct, once it has ended."""

        async def ended_result() -> Any:
            return (await self.view()).result

        return (await until(ended_result)).model_dump(mode="json")

    async def wait_for_status(self, status: RunStatus) -> None:
        async def has_reached() -> bool:
            return (await self.run()).status is status

        await until(has_reached)

    async def wait_until_conducted(self, procedure_id: UUID) -> None:
        """Wait until somebody conducts a phase."""

        async def is_taken_up() -> bool:
            async with self.stack.runtime.store.session() as session:
                rows: Any = await session.records(ConductProgress, {"procedure_id": procedure_id})
            return bool(rows) and rows[0].phase == ConductPhase.WALKING.value and rows[0].step_index is not None

        await until(is_taken_up)

    async def wait_for_ledger_rows(self, procedure_id: UUID, rows: int) -> None:
        """Wait until the ledger of a phase has this many rows."""

        async def has_rows() -> bool:
            return len(await self.stack.ledger(procedure_id)) >= rows

        await until(has_rows)

    async def lose_beam(self) -> None:
        await self.give("mark_supply_unavailable", self.supply_id, reason="beam dump")

    async def restore_beam(self) -> None:
        await self.give("mark_supply_recovering", self.supply_id, reason="injecting")
        await self.give("restore_supply", self.supply_id, reason="beam back")


async def build_run_stack(stack: ConductStack) -> RunStack:
    """Register a camera that needs beam and has it, a clearance, and a plan."""

    async def create(verb: str, **fields: Any) -> UUID:
        body = (await stack.do(command(verb, fields))).body or {}
        return UUID(next(str(value) for key, value in body.items() if key.endswith("_id")))

    async def give_command(verb: str, on: UUID, **fields: Any) -> None:
        await stack.do(command(verb, fields), on)

    mark = new_id().hex
    supply = await create("register_supply", kind="photon_beam", name="Beam", facility_code=FACILITY)
    await give_command("mark_supply_available", supply, reason="shutter open")
    unit = await create("register_asset", name="Tomography", tier="Unit", facility_code=FACILITY)
    camera = await create("register_asset", name="Camera", tier="Device", parent_id=unit)
    form = await create("define_clearance_template", code=f"ESAF-{mark[:12]}", title="Safety form", facility_code=FACILITY)
    await give_command("activate_clearance_template", form)
    bindings = [{"kind": "Asset", "id": unit}]
    clearance = await create(
        "register_clearance", template_id=form, facility_code=FACILITY, title="Tomography", bindings=bindings
    )
    await give_command("submit_clearance", clearance)
    await give_command("start_clearance_review", clearance, first_reviewer_role="BeamlineScientist")
    await give_command("append_clearance_review_step", clearance, step_index=0, **APPROVED)
    await give_command("approve_clearance", clearance)
    await give_command("activate_clearance", clearance)
    capability = await create(
        "define_capability",
        code=f"baton.capability.{mark}",
        name="Imaging",
        required_affordances=[],
        executor_shapes=["METHOD"],
        parameters_schema=PARAMETERS,
    )
    technique = {"capability_id": capability, "needed_supplies": ["photon_beam"], "parameters_schema": PARAMETERS}
    method = await create("define_method", name="tomography", **technique)
    site = await create("register_facility", code=f"s-{mark[:12]}", display_name="Lumen", kind="Site")
    practice = await create("define_practice", name="Tomography", method_id=method, site_id=site)
    plan = await create("define_plan", name="Spring block", practice_id=practice, asset_ids=[camera])
    await give_command("update_plan_default_parameters", plan, default_parameters_patch=DEFAULTS)
    return RunStack(stack, plan, supply)
