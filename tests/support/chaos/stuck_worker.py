"""A worker that is wired like any other, and gets stuck in every conduct at a moment chosen beforehand.

It prints which conducts have come so far; the test that started it kills it once all of them have.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from temporalio import activity

from baton.application.conduct.ledger import BeginRequest, BeginResult
from baton.application.control import Control, Timekeeper
from baton.application.settings import Settings
from baton.cli import worker as wiring
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import build_worker
from baton.domain.conduct.messages import StepPlace
from baton.domain.conduct.progress import WaitingFor
from baton.domain.conduct.steered_conduct import RecordProcedureOutcome
from baton.domain.kernel import Command
from baton.domain.procedure.activity_logbook import Activity
from baton.infrastructure.compute.local_process import configured_compute
from baton.infrastructure.control.routes import open_control
from baton.infrastructure.plugins import ActionRegistry
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.temporal.engine import connect

SIGN_OF_LIFE = 0.5
"""Seconds between two signs of life to the engine, which is not to take the stuck for lost before all are."""
WATCHED = ("begin", "settle", "settle_and_begin", "begin_closing", "mark_waiting", "mark_walking", "submit", "execute")
STEP: ContextVar[StepPlace] = ContextVar("STEP")
"""The step that is being done; what is settled or submitted does not say it."""


@dataclass(frozen=True, kw_only=True)
class StuckMoment:
    """The time just before or just after a call.

    `begin`, `outcome` and `deposit` are rows of the ledger and `submit` a program, each at its place. Of the conduct as a
    whole are `brief`, `advice` (which it says it waits for) and `begin_closing`. Everything else is a command by its name.
    """

    call: str
    after: bool = False
    step_index: int | None = None
    closing: bool = False
    iteration_index: int | None = None
    """In which pass; None where there is none, or the first that comes is meant."""

    def is_met(self, now: "StuckMoment") -> bool:
        return self in (now, replace(now, iteration_index=None))

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} {self.call}"


Fates = Mapping[UUID, StuckMoment]
"""The moment at which the conduct of each procedure gets stuck."""


class StuckPart:
    """A part of a worker, as it is but for the moments it gets stuck at."""

    def __init__(self, part: Any, fates: Fates) -> None:
        self._part = part
        self._fates = fates

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._part, name)
        if name not in WATCHED:
            return call

        async def call_watched(*given: Any, **named: Any) -> Any:
            moments = moments_of_call(name, given, named)
            for procedure_id, moment in moments:
                await self._pass(procedure_id, moment)
            answer = await call(*given, **named)
            begun = answer[1] if name == "settle_and_begin" else answer
            asked_again = isinstance(begun, BeginResult) and begun.moved
            for procedure_id, moment in moments:
                if not (asked_again and moment.call == "begin"):
                    await self._pass(procedure_id, replace(moment, after=True))
            return answer

        return call_watched

    async def _pass(self, procedure_id: UUID | None, moment: StuckMoment) -> None:
        """Go on, unless the conduct is to get stuck now; the engine then believes that work goes on."""
        if procedure_id not in self._fates or not self._fates[procedure_id].is_met(moment):
            return
        print(procedure_id, flush=True)
        while True:
            activity.heartbeat()
            await asyncio.sleep(SIGN_OF_LIFE)


def moments_of_call(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Sequence[tuple[UUID | None, StuckMoment]]:
    """Which procedure a call is about, and the moment before it; one that does two things has two."""
    match name, given:
        case "settle_and_begin", [Activity(mark=str(mark)) as row, BeginRequest(place=place)]:
            STEP.set(place)
            return moment_at(StepPlace.model_validate(row, from_attributes=True), mark), moment_at(place, "begin")
    return (moment_of_call(name, given, named),)


def moment_of_call(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[UUID | None, StuckMoment]:
    """Which procedure a call is about, and the moment before it."""
    match name, given:
        case "begin", [BeginRequest(place=place)]:
            STEP.set(place)
            return moment_at(place, "begin")
        case "settle", [Activity(mark=str(mark))]:
            return moment_at(STEP.get(), mark)
        case "submit", _:
            return moment_at(STEP.get(), "submit")
        case "mark_waiting", [UUID() as procedure_id, _, WaitingFor() as waiting_for, *_]:
            return procedure_id, StuckMoment(call=waiting_for.value)
        case "mark_walking", [UUID() as procedure_id, *_]:
            return procedure_id, StuckMoment(call="brief")
        case "begin_closing", [UUID() as procedure_id, *_]:
            return procedure_id, StuckMoment(call="begin_closing")
        case "execute", [Command() as command, *_]:
            of = command.outcome if isinstance(command, RecordProcedureOutcome) else command
            iteration_index = getattr(of, "iteration_index", None)
            return named.get("target_id"), StuckMoment(call=type(command).__name__, iteration_index=iteration_index)
    raise AssertionError(f"nobody thought of this call: {name}{given}")


def moment_at(place: StepPlace, call: str) -> tuple[UUID, StuckMoment]:
    """The moment before something is done about a step."""
    where = {"step_index": place.step_index, "closing": place.closing, "iteration_index": place.iteration_index or None}
    return place.procedure_id, StuckMoment(call=call, **where)


async def tally_action(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
    """An action that is counted in a file, apart from everything that the service writes down."""
    line = f"{params['token']}\n".encode()
    descriptor = os.open(params["tally"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)  # in one piece, also while others write
    finally:
        os.close(descriptor)
    return {}


ACTIONS = ActionRegistry({"tally": tally_action})


async def run(fates: Fates) -> None:
    """Work until killed."""
    settings = Settings()
    async with Runtime(settings) as runtime, open_control(settings) as control:
        runtime.commands = StuckPart(runtime.commands, fates)  # type: ignore[assignment]
        compute: Any = StuckPart(configured_compute(settings), fates)
        with patch.object(wiring, "PostgresLedger", lambda store: StuckPart(PostgresLedger(store), fates)):
            wired = wiring.open_conduct_engine(runtime, control, actions=ACTIONS, compute=compute)
            async with wired as parts, build_worker(await connect(settings), runtime, parts):
                await asyncio.Event().wait()


def run_stuck_worker(plan: str) -> None:
    told = json.loads(Path(plan).read_text())
    asyncio.run(run({UUID(procedure_id): StuckMoment(**moment) for procedure_id, moment in told.items()}))
