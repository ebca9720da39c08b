"""Launches of what a queue or a schedule has arranged. Everything here may be repeated: every id follows from the launch,
and the record says what was done."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_work import ConductWork
from baton.application.ports import Store
from baton.application.service import Service
from baton.application.unit_of_work import load_state
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.messages import MAX_REASON_LENGTH
from baton.domain.kernel import Command
from baton.domain.launch.launch_ids import LaunchIds
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import HoldRun, Run
from baton.domain.shared.refusals import Refusal, Unavailable
from baton.domain.target.start_launch import ArrangedLaunch, StartLaunch
from baton.domain.target.targets import ConductPlan

IsDone = Callable[[], Awaitable[bool]]


@dataclass(frozen=True)
class TargetLaunch:
    """One arranged target to launch: under which ids, and as whom."""

    ids: LaunchIds
    arranged: ArrangedLaunch
    caller: Caller

    @property
    def runs(self) -> bool:
        """Whether it starts a run."""
        return isinstance(self.arranged.target, ConductPlan)


@dataclass(frozen=True)
class Launches:
    store: Store
    commands: Commands
    service: Service
    conducts: ConductWork
    run_conducts: ConductWork

    async def open(self, launch: TargetLaunch) -> Refusal | None:
        """Launch a target, or return the refusal that keeps it from opening."""
        command = StartLaunch(arranged=launch.arranged)
        try:
            await self.execute(command, launch.caller, None, launch.ids.id, lambda: self.is_open(launch))
        except Unavailable:
            raise
        except Refusal as refusal:
            return refusal
        return None

    async def is_open(self, launch: TargetLaunch) -> bool:
        """Return whether the conduct was opened, however it goes."""
        return await self._works(launch).item(launch.ids.conduct_id) is not None

    async def is_begun(self, launch: TargetLaunch) -> bool:
        """Return whether the run was started, or the procedure registered."""
        if launch.runs:
            return await load_state(self.store, Run, launch.ids.run_id) is not None
        return await load_state(self.store, Procedure, launch.ids.procedure_id()) is not None

    async def start_workflow(self, launch: TargetLaunch) -> None:
        """Start the workflow of an open conduct."""
        await self.service.start_work(self._works(launch), launch.ids.conduct_id)

    async def hold(self, launch: TargetLaunch, reason: str | None, caller: Caller) -> None:
        """Hold what was opened while the queue or the schedule that opened it was being held; it may be held already."""
        why = (reason or "It was opened while it was being held.")[:MAX_REASON_LENGTH]
        held = HoldRun(reason=why) if launch.runs else HoldProcedure(reason=why)
        target_id = launch.ids.run_id if launch.runs else launch.ids.procedure_id()
        with suppress(type(held).Cannot):
            await self.execute(held, caller, target_id, launch.ids.id)

    async def execute(
        self, command: Command, caller: Caller, target_id: UUID | None, new_id: UUID, is_done: IsDone | None = None
    ) -> None:
        """Execute a command; a refusal counts for nothing where what it should do was done meanwhile."""
        try:
            await execute_with_retry(self.commands, command, caller, target_id=target_id, new_id=new_id)
        except Unavailable:
            raise
        except Refusal:
            if is_done is None or not await is_done():
                raise

    def _works(self, launch: TargetLaunch) -> ConductWork:
        return self.run_conducts if launch.runs else self.conducts
