"""A small beamline on a real service, a worker on a simulated plant beside it, and the command line as a person calls it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

from baton.client import Baton
from baton.infrastructure.plugins import BUILT_IN, ActionRegistry
from tests.support.forked_commands import forked_command
from tests.support.service import Api, running_api
from tests.support.stack import clean_environment, run_baton
from tests.support.workflows.conduct_service import PAUSE, SIGNALS, PausingAction
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import setpoint

PLAN, RECIPE, UNIT, CAMERA, SUBJECT = "Spring block", "Quick scan", "Tomography", "Camera", "Bar 7"
APPROVAL = {"role": "BeamlineScientist", "decision": "Approved"}
PARAMETERS = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"exposure": {"type": "number", "unit": {"system": "udunits", "code": "s"}}},
    "additionalProperties": False,
}


@dataclass(frozen=True)
class DailyService:
    """The service of a small beamline, and the commands of a person who works there."""

    api: Api
    config: Path
    pauses: PausingAction
    stack: ConductStack

    @property
    def url(self) -> str:
        return self.api.base_url

    @property
    def environment(self) -> dict[str, str]:
        return {"BATON_URL": self.url, "XDG_CONFIG_HOME": str(self.config)}

    async def baton(self, *arguments: str, **environment: str) -> "CompletedProcess[str]":
        """Run a command to its end, in a process of its own."""
        return await asyncio.to_thread(run_baton, *arguments, **{**self.environment, **environment})

    async def answer(self, *arguments: str) -> Any:
        """Return the one JSON document that a command prints when it succeeds."""
        done = await self.baton(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    async def refusal(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and the sentence of a command that is refused; it prints nothing else."""
        done = await self.baton(*arguments)
        assert done.stdout == "", done.stdout
        [sentence] = done.stderr.splitlines()
        return done.returncode, sentence.removeprefix("baton: ")

    @contextmanager
    def open_command(self, *arguments: str, directory: Path) -> Iterator[Path]:
        """A command that goes on until the end of the block; its output is in the file."""
        output = directory / f"{uuid4()}.txt"
        environment = clean_environment(**self.environment)
        with forked_command(arguments, environment, output, directory / "errors.txt"):
            yield output


def build_beamline(client: Baton) -> None:
    """Put a beamline on record whose plan can be run: beam, a camera, a clearance, a recipe with a step that waits."""
    supply = client.register_supply(kind="photon_beam", name="Beam", facility_code="facility").supply_id
    client.mark_supply_available(supply, reason="shutter open")
    client.register_asset(name=UNIT, tier="Unit", facility_code="facility")
    client.register_asset(name=CAMERA, tier="Device", parent_id=UNIT)
    template = next(client.every("list_clearance_templates")).template_id
    clearance = client.register_clearance(
        template_id=template,
        facility_code="facility",
        title="Load frame",
        bindings=[{"kind": "Asset", "id": client.assets[UNIT].id}],
    ).clearance_id
    client.submit_clearance(clearance)
    client.start_clearance_review(clearance, first_reviewer_role="BeamlineScientist")
    client.append_clearance_review_step(clearance, step_index=0, **APPROVAL)
    client.approve_clearance(clearance)
    client.activate_clearance(clearance)
    capability = client.define_capability(
        code="baton.capability.scan",
        name="Scan",
        required_affordances=[],
        executor_shapes=["METHOD", "PROCEDURE"],
        parameters_schema=PARAMETERS,
    ).capability_id
    method = client.define_method(
        name="Tomography", capability_id=capability, needed_supplies=["photon_beam"], parameters_schema=PARAMETERS
    ).method_id
    site = next(client.every("list_facilities")).facility_id
    practice = client.define_practice(name="Tomography at 7B", method_id=method, site_id=site).practice_id
    client.define_plan(name=PLAN, practice_id=practice, asset_ids=[CAMERA])
    client.define_recipe(name=RECIPE, capability_id=capability, steps=[setpoint("a", 3), PAUSE, setpoint("b", 4)])
    client.register_subject(name=SUBJECT)
    client.activate_asset(CAMERA)
    client.mount_subject(SUBJECT, asset_id=CAMERA, reason="first load step")


@asynccontextmanager
async def open_daily_service(database_url: str, temporal_address: str, config: Path) -> AsyncIterator[DailyService]:
    """The service with its beamline on record, until the end of the block."""
    pauses = PausingAction()
    furniture = {"simulated_signals": SIGNALS, "actions": ActionRegistry({**BUILT_IN, "pause": pauses})}
    async with (
        open_conduct_stack(database_url, temporal_address, **furniture) as stack,
        running_api(database_url, temporal_address=temporal_address) as api,
    ):
        with Baton(api.base_url) as client:
            await asyncio.to_thread(build_beamline, client)
        yield DailyService(api, config, pauses, stack)
