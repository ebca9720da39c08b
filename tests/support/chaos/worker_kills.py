"""Conducts that lose their worker: all get stuck in one, which is killed, and another one continues them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import (
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
)
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.conduct.steered_conduct import (
    AdviseProcedure,
    ConductUntilAdvised,
    ConductUntilAdvisedFrom,
    GetProcedureSteering,
)
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.kernel import Command
from tests.support.chaos.crash_moments import TAKEN_UP, CrashCase, OpeningCommand, StepInQuestion
from tests.support.chaos.stuck_worker import ACTIONS, run_stuck_worker
from tests.support.forked_commands import forked_process
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import action, capture, check, compute, criterion, setpoint, steered_value

T = TypeVar("T")

TIMEOUT_SECONDS = 240.0
LONGER_THAN_THE_LIMIT = "400 s"
CHECK_SECONDS = 2
ADVICE = {"verdict": "Stop", "rationale": "Seen from outside."}
MEASURING = """echo '{"measurements": [{"name": "found", "value": 1}]}'"""


@dataclass(frozen=True)
class KilledConduct:
    """A case as it is played; by its number it is told from the others wherever it leaves a trace on the plant."""

    case: CrashCase
    number: int
    procedure_id: UUID
    asset_id: UUID
    conduct_id: UUID


class WorkerKills:
    """Plays cases, all at once."""

    def __init__(self, stack: ConductStack, directory: Path, environment: Mapping[str, str]) -> None:
        self.stack = stack
        self.tally = directory / "tally"
        self.journal = directory / "journal"
        self._plan = directory / "plan.json"
        self._log = directory / "doomed.log"
        self._environment = environment

    async def play(self, cases: Sequence[CrashCase]) -> list[KilledConduct]:
        """Open a conduct for each case, kill its worker, and return the conducts once they are over."""
        numbered = list(enumerate(cases, start=1))
        registered = await for_each_at_once(self._register, numbered)
        await until(self._is_nothing_live, TIMEOUT_SECONDS)
        known = list(zip(numbered, registered, strict=True))
        await for_each_at_once(self._wait_for_workflow, [id for (_, case), (id, _) in known if case.way in TAKEN_UP])
        await self.stack.stop_worker()
        conducts = await for_each_at_once(lambda one: self._open_conduct(*one[0], *one[1]), known)
        await self._lose_the_worker(conducts)
        await self._age_conducts([one.conduct_id for one in conducts if one.case.stands_still])
        await self.stack.start_worker()
        await until(self._is_nothing_live, TIMEOUT_SECONDS)
        await for_each_at_once(self._wait_for_workflow, [one.procedure_id for one in conducts])
        return conducts

    async def _register(self, numbered: tuple[int, CrashCase]) -> tuple[UUID, UUID]:
        """Register a procedure and its asset; where the conduct goes on from an earlier one, open that."""
        number, case = numbered
        asset = await self.stack.do(RegisterAsset(name=f"Stage {number}", tier="Unit", facility_code="facility"))
        asset_id = UUID((asset.body or {})["asset_id"])
        steps, closing_steps = self._steps(case, number)
        id = await self.stack.register_from_recipe(steps, closing_steps, target_asset_ids=[asset_id])
        if case.kind is StepInQuestion.DONE_ACTION:
            await self.stack.do(ConductOrHoldProcedure(wait=0), id)
        elif case.way in (OpeningCommand.FROM, OpeningCommand.CLOSING):
            await self.stack.do(ConductProcedure(wait=0), id)
            await self.stack.do(HoldProcedure(reason="to be taken up"), id)
        elif case.way is OpeningCommand.ADVISED_FROM:
            nobody = {"substrate": "caller", "advice_timeout": 1}
            await self.stack.do(ConductUntilAdvised(**search(number), decide=nobody), id)
        return id, asset_id

    async def _open_conduct(self, number: int, case: CrashCase, procedure_id: UUID, asset_id: UUID) -> KilledConduct:
        opened = await self.stack.do(opening_command(case, number), procedure_id)
        return KilledConduct(case, number, procedure_id, asset_id, UUID((opened.body or {})["conduct_id"]))

    async def _lose_the_worker(self, conducts: Sequence[KilledConduct]) -> None:
        """Have a worker get stuck in every conduct, and kill it then."""
        self._plan.write_text(json.dumps({str(one.procedure_id): asdict(one.case.moment) for one in conducts}))
        awaited = {one.procedure_id: str(one.case) for one in conducts}
        stuck = self._log.with_suffix(".out")
        with forked_process(run_stuck_worker, (str(self._plan),), self._environment, stuck, self._log) as worker:
            await self._advise([one.procedure_id for one in conducts if one.case.by_caller])

            def are_all_stuck() -> bool:
                assert worker.is_alive(), f"the worker ended by itself: {self._log.read_text()}"
                for line in stuck.read_text().split() if stuck.exists() else ():
                    awaited.pop(UUID(line), None)
                return not awaited

            try:
                await until(are_all_stuck, TIMEOUT_SECONDS)
            except AssertionError:
                pytest.fail(f"these did not come to their moment: {sorted(awaited.values())}\n{self._log.read_text()}")

    async def _advise(self, procedure_ids: Sequence[UUID]) -> None:
        """Tell searches that wait for advice to stop."""
        for id in procedure_ids:

            async def is_waiting(id: UUID = id) -> bool:
                return bool((await self.stack.ask(GetProcedureSteering(), id)).waiting)

            await until(is_waiting, TIMEOUT_SECONDS)
            await self.stack.do(AdviseProcedure(iteration_index=1, advice=ADVICE), id)

    async def _age_conducts(self, conduct_ids: list[UUID]) -> None:
        """Let more time pass for these conducts than anybody wants to wait for."""
        async with self.stack.runtime.pool.connection() as connection:
            await connection.execute(
                "UPDATE conduct_progress SET active_at = active_at - %s::interval WHERE conduct_id = ANY(%s)",
                [LONGER_THAN_THE_LIMIT, conduct_ids],
            )

    async def _is_nothing_live(self) -> bool:
        async with self.stack.runtime.pool.connection() as connection:
            live = await connection.execute("SELECT FROM conduct_progress WHERE phase <> 'Ended' LIMIT 1")
            return await live.fetchone() is None

    async def _wait_for_workflow(self, procedure_id: UUID) -> None:
        """Wait for the engine too: the record ends before the workflow does."""
        await self.stack.client.get_workflow_handle(conduct_workflow_id(procedure_id)).result()

    def _steps(self, case: CrashCase, number: int) -> tuple[list[Any], list[Any]]:
        """What is conducted, the step in question among it, and what closes."""
        question, closing_steps = [self._step(case.kind, number)], [setpoint("shutter", number)]
        if case.in_closing:
            question, closing_steps = [], question + closing_steps
        if case.kind is StepInQuestion.DONE_ACTION:
            question.append(check("ready", 2))
        match case.way:
            case OpeningCommand.CONVERGED:
                return [*question, capture(f"level {number}", "level"), setpoint(f"level {number}", 1)], closing_steps
            case OpeningCommand.ADVISED | OpeningCommand.ADVISED_FROM:
                return [setpoint("axis", steered_value("axis")), *question, capture("ready", "level")], closing_steps
        return [*question, setpoint("next", number)], closing_steps

    def _step(self, kind: StepInQuestion, number: int) -> dict[str, Any]:
        match kind:
            case StepInQuestion.SETPOINT:
                return setpoint("motor", number)
            case StepInQuestion.ACTION | StepInQuestion.DONE_ACTION:
                return action("tally", tally=str(self.tally), token=f"action {number}")
            case StepInQuestion.CHECK:
                return check("ready", 1)
            case StepInQuestion.UNMET_CHECK:
                return check("ready", 2, timeout=CHECK_SECONDS)
            case StepInQuestion.LONG_CHECK:
                return check("ready", 1, timeout=600)
            case StepInQuestion.CAPTURE:
                return capture("ready", "seen")
            case StepInQuestion.COMPUTE:
                return compute("/bin/sh", "-c", f"echo compute {number} >> {self.tally}; {MEASURING}", capture_name="found")


def search(number: int) -> dict[str, Any]:
    """A search along an interval of its own."""
    return {
        "objective": {"kind": "Maximize", "target_measurement_name": "level"},
        "space": {"axes": [{"name": "axis", "lower": float(number), "upper": number + 0.5}]},
        "objective_capture_name": "level",
        "wait": 0,
    }


def opening_command(case: CrashCase, number: int) -> Command:
    """The command that opens the conduct in question."""
    walk = {"decide": {"substrate": "grid_walk"}, "budget": {"iterations_remaining": case.passes}}
    match case.way:
        case OpeningCommand.CONDUCT:
            return ConductProcedure(wait=0)
        case OpeningCommand.OR_HOLD:
            return ConductOrHoldProcedure(wait=0)
        case OpeningCommand.FROM:
            return ConductFromProcedure(re_establishment_boundary=0, wait=0)
        case OpeningCommand.CONVERGED:
            return ConductUntilConverged(convergence_capture_name="level", criterion=criterion(1), wait=0)
        case OpeningCommand.ADVISED:
            return ConductUntilAdvised(**search(number), **({"decide": {"substrate": "caller"}} if case.by_caller else walk))
        case OpeningCommand.ADVISED_FROM:
            return ConductUntilAdvisedFrom(**search(number), **walk)
        case OpeningCommand.CLOSING:
            return AbortProcedure(reason="given up", run_closing=True)


async def for_each_at_once(do: Callable[[Any], Awaitable[T]], things: Iterable[Any]) -> list[T]:
    """Do something for each of many things, a few at a time, and return the answers."""
    few = asyncio.Semaphore(8)

    async def one(thing: Any) -> T:
        async with few:
            return await do(thing)

    return await asyncio.gather(*map(one, things))


@asynccontextmanager
async def open_worker_kills(
    database_url: str, temporal: EmbeddedTemporal, directory: Path, cases: Sequence[CrashCase]
) -> AsyncIterator[WorkerKills]:
    """A plant and programs that all processes share and that outlive them; each loop has a level that it brings to 1."""
    signals = {"motor": 0, "next": 0, "shutter": 0, "axis": 0, "ready": 1}
    signals |= {f"level {number}": int(case.passes == 1) for number, case in enumerate(cases, start=1)}
    shared = {
        "simulated_signals": signals,
        "simulation_journal": str(directory / "journal"),
        "compute_substrate": "local_process",
        "compute_programs": ["/bin/sh"],
        "compute_job_directory": str(directory / "jobs"),
    }
    told = {name.upper(): value if isinstance(value, str) else json.dumps(value) for name, value in shared.items()}
    servers = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": temporal.address, "APP_ENV": "test"}
    async with open_conduct_stack(database_url, temporal.address, actions=ACTIONS, **shared) as stack:
        yield WorkerKills(stack, directory, clean_environment(**servers, **told))
