"""Much that waits for a person at once: lost, failed and unsafe work, stopped queues and a wrong copy."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from baton.application.conduct.conduct_work import ProcedureConductWork, Reconciler, RunConductWork
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.client import Baton
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.conduct.run_messages import run_workflow_id
from baton.infrastructure.control.simulator import EntryKind, SimulatedFault
from baton.infrastructure.wall_clock import clock
from tests.support.console.console_stack import ConsoleStack
from tests.support.console.furnishing import describe_file
from tests.support.infrastructure.pictures import write_array
from tests.support.waiting import until

SHUTTER, OVERWRITTEN = "bl7:shutter", "https://archive.lumen.example/darks.h5"
SHUT = {"kind": "setpoint", "address": SHUTTER, "value": 0}
FIRST, SECOND = "Tomography", "Radiography"
AJAR = {"kind": "check", "address": "bl7:door", "criterion": {"kind": "equals", "expected": 0}}
WAIT = {"kind": "check", "address": "bl7:door", "criterion": {"kind": "equals", "expected": 1}, "timeout": 600}


class Trouble(NamedTuple):
    """Something that waits: its name, its page, the beginning of why, and a button with the command that resolves it."""

    name: str
    page: str
    why: str
    button: str
    command: str
    is_wrong: bool = True  # and not only held

    @property
    def is_lost(self) -> bool:
        """Whether nobody conducts it any more."""
        return self.command.startswith("conduct_")


@dataclass(frozen=True)
class TroubledNight:
    """What brings everything about, at a beamline whose shutter refuses to be moved."""

    console: ConsoleStack

    @property
    def client(self) -> Baton:
        return self.console.client

    async def bring_about(self) -> list[Trouble]:
        """Bring everything about, and return what waits then."""
        self.jam_shutter()
        self.client.activate_asset(self.client.register_asset(name=SECOND, tier="Unit", facility_code="facility").asset_id)
        ended = await asyncio.to_thread(lambda: [*self.fail_work(), *self.stop_queues(), self.overwrite_copy()])
        return [*await self.lose_work(), *ended]

    def jam_shutter(self) -> None:
        """Have the shutter refuse to be moved."""
        entry = {"kind": EntryKind.FAULT, "address": SHUTTER, "at": datetime.now(UTC).isoformat()}
        self.console.journal.append({**entry, "fault": SimulatedFault.REJECTING})

    def fail_work(self) -> Iterator[Trouble]:
        """Have a run fail by itself, and a procedure leave the shutter as it was."""
        run_id, _ = self.conduct_run("Bar 6, load step 9", [SHUT], wait=60)
        sentence = f"{SHUTTER} refuses to be written."
        yield Trouble("Bar 6, load step 9", f"/runs/{run_id}", "phase Projections", "I have looked at it", "acknowledge_run")
        capability = next(self.client.every("list_capabilities", code="baton.capability.console_wait")).capability_id
        steps = {"steps": [AJAR], "closing_steps": [SHUT]}
        recipe = self.client.define_recipe(name="Align", capability_id=capability, **steps).recipe_id
        named = {"name": "Align the axis", "kind": "alignment"}
        id = self.client.register_procedure_from_recipe(recipe, **named).procedure_id
        assert self.client.conduct_procedure(id, wait=60).succeeded
        why = f"Closing step of {SHUTTER} failed: {sentence}"
        yield Trouble("Align the axis", f"/procedures/{id}", why, "I have looked at it", "acknowledge_procedure")

    def stop_queues(self) -> Iterator[Trouble]:
        """Open a queue with an item whose sample is not mounted, and hold another one."""
        held = self.client.open_queue(name="Weekend", asset_id=self.client.assets[SECOND].id).queue_id
        self.client.hold_queue(held, reason="search the hutch")
        yield Trouble("Weekend", f"/queues/{held}", "search the hutch", "Resume", "resume_queue", is_wrong=False)
        queue = self.client.open_queue(name="Tonight", asset_id=self.client.assets[FIRST].id).queue_id
        sample = self.client.register_subject(name="Bar 9").subject_id
        plan = {"kind": "ConductPlan", "plan_id": self.client.plans["Fast tomography"].id, "name": "Bar 9, load step 1"}
        recipe = {"recipe_id": self.client.recipes["Twelve projections"].id, "name": "Projections"}
        item = {"title": "Bar 9, load step 1", "target": {**plan, "subject_id": sample, "phases": [recipe]}}
        self.client.add_queue_items(queue, items=[item])
        why = "The subject is Received"
        yield Trouble("Bar 9, load step 1 in Tonight", f"/queues/{queue}", why, "Remove item", "remove_queue_item")

    def overwrite_copy(self) -> Trouble:
        """Register a file where the copy of another dataset is."""
        supply_id = self.client.register_supply(kind="Storage", name="Scratch disk", facility_code="facility").supply_id
        self.client.mark_supply_available(supply_id, reason="mounted")
        ids = []
        for row, name in enumerate(("darks_0041.h5", "darks_0043.h5")):
            file = describe_file(write_array(self.console.files / name, [[row]]))
            dataset_id = self.client.register_dataset(name=name, **file).dataset_id
            copy = {**file, "uri": OVERWRITTEN, "access_protocol": "HTTPS", "supply_id": supply_id}
            ids.append(self.client.register_distribution(dataset_id=dataset_id, **copy).distribution_id)
        return Trouble("darks_0041.h5", f"/distributions/{ids[0]}", OVERWRITTEN, "Check again", "record_attestation")

    async def lose_work(self) -> list[Trouble]:
        """Have the engine lose a run, the phase that it was at, and a procedure by itself."""
        run_id, phase_ids = await asyncio.to_thread(self.conduct_run, "Bar 6, load step 8", [WAIT], [WAIT])
        named = {"name": "Dark fields", "kind": "darks", "target_asset_ids": [self.client.assets[SECOND].id]}
        own_id = self.client.register_procedure(**named).procedure_id
        self.client.conduct_procedure(own_id, steps=[WAIT], wait=0)
        conducted = (phase_ids[0], own_id)
        for id in conducted:
            await until(lambda id=id: self.client.get_procedure_conduct(id).phase == "Walking")
        await self.forget(run_workflow_id(run_id), *map(conduct_workflow_id, conducted))
        why = "The engine does not know of "
        lost = [Trouble("Bar 6, load step 8", f"/runs/{run_id}", why, "Conduct", "conduct_run")]
        for id, name in zip(conducted, ("Projections", "Dark fields"), strict=True):
            lost.append(Trouble(name, f"/procedures/{id}", why, "Conduct from", "conduct_from_procedure"))
        return lost

    def conduct_run(self, name: str, *phases: Any, wait: float = 0) -> tuple[UUID, list[UUID]]:
        """Start a run and conduct phases with these steps; return the run and its phases."""
        run_id = self.client.start_run(name=name, plan_id=self.client.plans["Fast tomography"].id).run_id
        names = ("Projections", "Flat fields")[: len(phases)]
        own = {"kind": "scan", "parent_run_id": run_id, "target_asset_ids": [self.client.assets[FIRST].id]}
        ids = [self.client.register_procedure(name=one, **own).procedure_id for one in names]
        conducts = ({"command": "conduct_procedure", "steps": steps} for steps in phases)
        listed = [{"procedure_id": id, "conduct": conduct} for id, conduct in zip(ids, conducts, strict=True)]
        self.client.conduct_run(run_id, phases=listed, wait=wait)
        return run_id, ids

    async def forget(self, *workflow_ids: str) -> None:
        """Take workflows from the engine, and compare it with the record, as workers do each minute."""
        servers = {name: self.console.stack.address(name) for name in ("database_url", "temporal_address")}
        async with Runtime(Settings(**servers, app_env="test")) as runtime:
            for id in workflow_ids:
                await runtime.engine.terminate(id, "lost with its server")
            works = [runtime.works.of(ProcedureConductWork), runtime.works.of(RunConductWork)]
            await Reconciler(works, runtime.engine, clock, timedelta(minutes=5)).compare()
