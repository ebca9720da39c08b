"""What opens and follows the conduct of a target, for schedules and queues alike. Everything here may be repeated: every id
follows from the launch, and the streams say what was done."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_work import ConductWork
from baton.application.ports import Store
from baton.application.service import Service
from baton.application.unit_of_work import load_state
from baton.domain.kernel import Command
from baton.domain.operation.conduct.messages import MAX_REASON_LENGTH
from baton.domain.operation.launch.arranged_conduct import arranged_command
from baton.domain.operation.launch.launch_ids import LaunchIds
from baton.domain.operation.launch.target_checks import load_templates
from baton.domain.operation.launch.targets import ConductPlan, ConductRecipe, RecipeConduct, recipes_of
from baton.domain.operation.procedure.endings import HoldProcedure
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.recipe.template_versions import TemplateVersion, refuse_changed
from baton.domain.run.run import LIVE, AbortRun, HoldRun, Run
from baton.domain.shared.refusals import Refusal, Unavailable

IsDone = Callable[[], Awaitable[bool]]


@dataclass(frozen=True)
class TargetLaunch:
    """One target to conduct: as whom, under which ids, the time and the number that its names are filled in with, and the
    versions of what it names; nothing is compared where there are none."""

    ids: LaunchIds
    target: ConductRecipe | ConductPlan
    caller: Caller
    due_at: datetime
    number: int
    versions: tuple[TemplateVersion, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether it starts a run."""
        return isinstance(self.target, ConductPlan)

    @property
    def procedure_ids(self) -> tuple[UUID, ...]:
        """Everything that it registers."""
        return tuple(self.ids.procedure_id(index) for index in range(len(recipes_of(self.target))))


@dataclass(frozen=True)
class Launches:
    store: Store
    commands: Commands
    service: Service
    conducts: ConductWork
    run_conducts: ConductWork

    async def open(self, launch: TargetLaunch) -> None:
        """Open the conduct of a launch, or raise the refusal that keeps it from opening."""
        if launch.versions and not await self.is_begun(launch):
            templates = await self.service.commands.read(load_templates([launch.target]), launch.caller)
            refuse_changed(launch.versions, templates.of(launch.target))
        match launch.target:
            case ConductRecipe():
                await self._conduct_recipe(launch, launch.target)
            case ConductPlan():
                await self._conduct_plan(launch, launch.target)

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

    async def abort_run(self, launch: TargetLaunch, reason: str, caller: Caller) -> None:
        """Abort a run that was started and cannot be conducted, so that nothing goes on of a refused launch."""
        run = await load_state(self.store, Run, launch.ids.run_id)
        if run is not None and run.status in LIVE:
            await self.execute(AbortRun(reason=reason[:MAX_REASON_LENGTH]), caller, launch.ids.run_id, launch.ids.id)

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

    async def _conduct_recipe(self, launch: TargetLaunch, target: ConductRecipe) -> None:
        await self._register(launch, target)
        conduct, ids = arranged_command(target.arrangement.stored_form()), launch.ids
        await self.execute(conduct, launch.caller, ids.procedure_id(), ids.conduct_id, lambda: self.is_open(launch))

    async def _conduct_plan(self, launch: TargetLaunch, target: ConductPlan) -> None:
        ids = launch.ids
        if not await self.is_begun(launch):
            start = target.start(launch.due_at, launch.number, launch.versions)
            await self.execute(start, launch.caller, None, ids.run_id, lambda: self.is_begun(launch))
        for index, phase in enumerate(target.phases):
            await self._register(launch, phase, index, ids.run_id)
        conduct = target.conduct(launch.procedure_ids)
        await self.execute(conduct, launch.caller, ids.run_id, ids.conduct_id, lambda: self.is_open(launch))

    async def _register(self, launch: TargetLaunch, what: RecipeConduct, index: int = 0, run_id: UUID | None = None) -> None:
        id = launch.ids.procedure_id(index)

        async def is_registered() -> bool:
            return await load_state(self.store, Procedure, id) is not None

        if not await is_registered():
            command = what.registration(launch.due_at, launch.number, run_id, launch.versions)
            await self.execute(command, launch.caller, None, id, is_registered)
