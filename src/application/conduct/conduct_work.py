"""Conducts as long work: the workflow that runs one, where its answer is read, and how the record is kept to the engine."""

from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_reader import ConductFeed
from baton.application.long_work import AwaitedWork
from baton.application.ports import Clock, Engine, EngineView, Job, StallRecord, Store, WorkItem, WorkProgress
from baton.application.telemetry import error_location
from baton.application.unit_of_work import load_events, load_row, require_state
from baton.domain.conduct import progress as progress_rows
from baton.domain.conduct.conduct import options_of
from baton.domain.conduct.endings import EXPIRED, LOST, RecordConductEnd, lost_result
from baton.domain.conduct.estimates import remaining_text
from baton.domain.conduct.messages import ConductOrder, reason_of
from baton.domain.conduct.progress import ConductPhase, OpenedConduct, OpenedRunConduct, RunWaitingFor
from baton.domain.conduct.run_conduct import RecordRunConductEnd, load_phase_question
from baton.domain.conduct.run_messages import RunConductOrder
from baton.domain.conduct.steered_conduct import SteeringView, load_followed, load_waiting_question
from baton.domain.conduct.views import LOOPS, progress_text
from baton.domain.equipment.asset import Asset
from baton.domain.kernel import Command, Event, State
from baton.domain.procedure.procedure import MODES, Procedure, ProcedureConducted
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import Recipe
from baton.domain.run.run import Run, RunConducted
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import Conflict, Unavailable
from baton.domain.shared.text import shorten
from baton.domain.step.results import CONDUCT_LOST

log = structlog.get_logger()
MAX_TITLE_BYTES = 200  # what the engine takes
MAX_NAMED_ASSETS = 3
START_GRACE = timedelta(seconds=2)  # for the process that opened a conduct to start its workflow
MAX_KEPT = 1_000  # conducts whose opening is remembered
LIVE = tuple(phase.value for phase in ConductPhase if phase is not ConductPhase.ENDED)
WAITING = {
    RunWaitingFor.RUN: "waiting for the run to be resumed",
    RunWaitingFor.PHASE: "waiting for somebody to take it up again",
    RunWaitingFor.GATE: "not allowed to start; waiting for the run to be resumed",
}


@dataclass(frozen=True)
class LiveConduct:
    """A conduct that has not ended according to the record."""

    conduct_id: UUID
    workflow_id: str
    begun: bool
    started_at: datetime


@dataclass(eq=False)
class ConductWork(AwaitedWork):
    """Conducts of procedures, or of runs. One that no worker has begun a while after it was opened is unfinished."""

    order: ClassVar[type[ConductOrder | RunConductOrder]]  # the argument of the workflow
    state: ClassVar[type[State]]
    opened: ClassVar[type[progress_rows.Submission]]
    progress_row: ClassVar[type[Any]]  # the type of the row that says where the latest conduct of an aggregate is
    ended: ClassVar[type[Event]]  # the event that has the result of a conduct
    store: Store
    commands: Commands
    stalls: StallRecord
    facility_code: str
    _opened: dict[UUID, Any] = field(init=False, default_factory=dict)  # rows that never change, as read last

    @abstractmethod
    def _attributes(self, state: Any) -> Mapping[str, str]:
        """Return the search attributes besides those of all conducts."""

    @abstractmethod
    async def _title_parts(self, opened: Any, state: Any) -> Sequence[str]:
        """Return what is conducted, in words that name nobody: names of recipes, plans and assets, never free text."""

    @abstractmethod
    async def _describe(self, opened: Any, progress: Any) -> WorkProgress:
        """Return how far a conduct is, in words."""

    @abstractmethod
    def _load_question(self, progress: Any) -> Reads[SteeringView | None]:
        """Return what a conduct waits to be advised on."""

    @abstractmethod
    def _end(self, opened: Any, *, expired: bool) -> Command:
        """Return the end of a conduct that no worker began in time, or of one that the engine lost, for a person to see."""

    async def job(self, work_id: UUID) -> Job | None:
        """Return the workflow to start; None where it was started, or the conduct is not the live one any more."""
        opened, progress = await self._load(work_id)
        if opened is None or progress is None or progress.phase != ConductPhase.OPENED:
            return None
        subject_id, id_name = self._subject_id(opened), self.state.aggregate.id_name
        order = self.order.model_validate({id_name: subject_id, "begins_locally": True, **opened.submission()})
        attributes = search_attributes(self.facility_code, opened.command_name, opened.principal_id)
        state = await require_state(self.store, self.state, subject_id)
        attributes |= self._attributes(state)
        title = title_of(*await self._title_parts(opened, state), opened.command_name)
        return Job(self.workflow, f"{self.workflow}:{subject_id}", order, attributes, title, succeeds=True)

    async def _asset_names(self, ids: Iterable[UUID]) -> str:
        """Return the names of assets, three at most."""
        shown, left = sorted(ids)[:MAX_NAMED_ASSETS], len(set(ids)) - MAX_NAMED_ASSETS
        names = [(await require_state(self.store, Asset, id)).name for id in shown]
        return ", ".join(shorten(name, 40) for name in names) + (f" and {left} more" if left > 0 else "")

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return the result of a conduct, once it has ended."""
        opened, progress = await self._load(work_id)
        if opened is None or progress is not None:
            return None
        ends: list[Any] = await load_events(self.store, self._subject_id(opened), self.ended)
        return next((end.result.model_dump(mode="json") for end in ends if end.conduct_id == work_id), None)

    async def unfinished_ids(self) -> Sequence[UUID]:
        """Return the conducts that no worker has begun although they were opened a while ago."""
        before = self.commands.clock() - START_GRACE
        return [row.conduct_id for row in await self._rows((ConductPhase.OPENED.value,)) if row.started_at < before]

    async def item(self, work_id: UUID) -> WorkItem | None:
        """Return what the work is about."""
        opened, aggregate = (await self._load(work_id))[0], self.state.aggregate
        if opened is None:
            return None
        ids = {aggregate.id_name: str(self._subject_id(opened)), "conduct_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(opened.principal_id, f"Get{aggregate.name}", ids, opened.correlation_id)

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        """Return how far a live conduct is."""
        opened, progress = await self._load(work_id)
        return None if opened is None or progress is None else await self._describe(opened, progress)

    async def question(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return what a live conduct waits to be advised on, as it is shown."""
        opened, progress = await self._load(work_id)
        if opened is None or progress is None:
            return None
        reads = self._load_question(progress)
        asked = await self.commands.read(reads, Caller.system(opened.correlation_id))
        return None if asked is None else asked.model_dump(mode="json")

    async def live(self) -> Sequence[LiveConduct]:
        """Return every conduct that has not ended."""
        named = [(row, f"{self.workflow}:{self._subject_id(row)}") for row in await self._rows(LIVE)]
        return [LiveConduct(row.conduct_id, id, row.phase != ConductPhase.OPENED, row.started_at) for row, id in named]

    async def is_live(self, conduct_id: UUID) -> bool:
        """Return whether a conduct has not ended."""
        return (await self._load(conduct_id))[1] is not None

    async def give_up(self, conduct_id: UUID, *, expired: bool) -> None:
        """End a conduct that no worker began in time, or that the engine has lost."""
        opened, _ = await self._load(conduct_id)
        assert opened is not None, "what ends was opened"
        command, caller = self._end(opened, expired=expired), Caller.system(opened.correlation_id)
        await execute_with_retry(self.commands, command, caller, target_id=self._subject_id(opened))

    async def stall(self, conduct_id: UUID) -> None:
        """Record that the engine cannot make progress with a conduct."""
        await self.stalls.mark_stalled(self.progress_row, conduct_id)

    async def _load(self, conduct_id: UUID) -> tuple[Any, Any]:
        """Return the conduct as it was opened (None where there is none), and its progress while it is live (else None)."""
        async with self.store.session() as session:
            if (opened := self._opened.get(conduct_id)) is None:
                found: Any = await session.records(self.opened, {"conduct_id": conduct_id})
                if not found:
                    return None, None
                opened = self._opened[conduct_id] = found[0]
                while len(self._opened) > MAX_KEPT:
                    del self._opened[next(iter(self._opened))]
            rows: Any = await session.records(self.progress_row, {self.state.aggregate.id_name: self._subject_id(opened)})
        live = [row for row in rows if row.conduct_id == conduct_id and row.phase != ConductPhase.ENDED]
        return opened, live[0] if live else None

    async def _rows(self, phases: tuple[str, ...]) -> Sequence[Any]:
        async with self.store.session() as session:
            return await session.records(self.progress_row, {"phase": phases})

    def _subject_id(self, row: Any) -> UUID:
        id: UUID = getattr(row, self.state.aggregate.id_name)
        return id


@dataclass(eq=False)
class ProcedureConductWork(ConductWork):
    """Conducts of procedures. An adviser of one waits for what the conduct asks next."""

    workflow = "conduct"
    order = ConductOrder
    state = Procedure
    opened = OpenedConduct
    progress_row = progress_rows.ConductProgress
    ended = ProcedureConducted
    conduct_feed: ConductFeed

    async def next_question(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return what a conduct asks its adviser next, or how it ended."""
        opened = await load_row(self.store, OpenedConduct, conduct_id=work_id)
        assert opened is not None, "what is advised is conducted"
        reads = load_followed(opened.procedure_id, work_id, self.commands.clock())
        followed = await self.commands.read(reads, Caller.system(opened.correlation_id))
        return None if followed is None else followed.model_dump(mode="json")

    def _attributes(self, procedure: Procedure) -> Mapping[str, str]:
        judged = procedure.judged_asset_ids or procedure.target_asset_ids
        assets = {"BatonAsset": str(min(judged))} if judged else {}
        return assets if procedure.parent_run_id is None else {**assets, "BatonRun": str(procedure.parent_run_id)}

    async def _title_parts(self, opened: OpenedConduct, procedure: Procedure) -> Sequence[str]:
        recipe = None if procedure.recipe_id is None else await require_state(self.store, Recipe, procedure.recipe_id)
        gates = sorted(options_of(procedure).watch)
        watch = f"watching {', '.join(gates)}" if gates else "watching no gate"
        judged = procedure.judged_asset_ids or procedure.target_asset_ids
        parts = [procedure.kind, "own steps" if recipe is None else recipe.name, await self._asset_names(judged), watch]
        return [part for part in parts if part]

    async def _describe(self, opened: OpenedConduct, progress: progress_rows.ConductProgress) -> WorkProgress:
        """Return how many steps are done, of how many where there are no passes, and how long the rest takes."""
        looping = MODES.get(opened.command_name) in LOOPS
        measured = (
            await self.conduct_feed.reader.measured_objective(opened.procedure_id, opened.conduct_id) if looping else None
        )
        remaining = remaining_text(await self.conduct_feed.estimate(opened.procedure_id, progress))
        passed = max(0, (progress.iteration_index or 1) - 1) + (progress.phase == ConductPhase.CLOSING)
        done = (progress.step_index or 0) + opened.step_count * passed
        total = None if looping else float(opened.step_count + opened.closing_count)
        message = progress_text(opened, progress, measured, self.conduct_feed.clock())
        return WorkProgress(done, total, message if remaining is None else f"{message}, {remaining}")

    def _load_question(self, progress: progress_rows.ConductProgress) -> Reads[SteeringView | None]:
        return load_waiting_question(progress.procedure_id, self.commands.clock())

    def _end(self, opened: OpenedConduct, *, expired: bool) -> Command:
        failure = EXPIRED if expired else LOST
        result = lost_result(opened.procedure_id, opened.conduct_id, opened.command_name, failure)
        return RecordConductEnd(result=result, abort_reason=reason_of(EXPIRED) if expired else None)


class RunConductWork(ConductWork):
    """Conducts of runs."""

    workflow = "conduct-run"
    order = RunConductOrder
    state = Run
    opened = OpenedRunConduct
    progress_row = progress_rows.RunConductProgress
    ended = RunConducted

    def _attributes(self, run: Run) -> Mapping[str, str]:
        return {"BatonRun": str(run.id)}

    async def _title_parts(self, opened: OpenedRunConduct, run: Run) -> Sequence[str]:
        plan = await require_state(self.store, Plan, run.plan_id)
        return ["run", plan.name, await self._asset_names(plan.asset_ids), f"{opened.phase_count} phases"]

    async def _describe(self, opened: OpenedRunConduct, progress: progress_rows.RunConductProgress) -> WorkProgress:
        index = progress.phase_index or 0
        waiting = "" if progress.waiting is None else f", {WAITING[RunWaitingFor(progress.waiting['for'])]}"
        place = f"phase {min(index + 1, opened.phase_count)} of {opened.phase_count}"
        return WorkProgress(index, opened.phase_count, f"{place}{waiting}")

    def _load_question(self, progress: progress_rows.RunConductProgress) -> Reads[SteeringView | None]:
        return load_phase_question(progress, self.commands.clock())

    def _end(self, opened: OpenedRunConduct, *, expired: bool) -> Command:
        return (RecordRunConductEnd.for_expired if expired else RecordRunConductEnd.for_lost)(opened.conduct_id)


def title_of(*parts: str) -> str:
    """Return the title of a workflow, within what the engine shows."""
    title = " · ".join(shorten(part, 60) for part in parts)
    return title.encode()[:MAX_TITLE_BYTES].decode(errors="ignore")


def search_attributes(facility_code: str, command_name: str, principal_id: UUID) -> dict[str, str]:
    """Return what people find all conducts by in the engine."""
    who = {"BatonFacility": facility_code, "BatonCommand": command_name, "BatonPrincipal": str(principal_id)}
    return {**who, "BatonState": ConductPhase.OPENED.value}


def submitter(opened: progress_rows.Submission) -> Caller:
    """Return the caller as whom every command of a conduct is authorized."""
    work = (opened.correlation_id, opened.conduct_id)
    groups = frozenset(opened.proven_group_ids)
    return Caller(opened.principal_id, opened.surface_id, *work, conduit_id=opened.conduit_id, proven_group_ids=groups)


@dataclass(frozen=True)
class Reconciler:
    """Gives up conducts that no worker began in time or that the engine has lost; marks others as stalled."""

    works: Sequence[ConductWork]
    engine: Engine
    clock: Clock
    restart_limit: timedelta

    async def compare(self) -> None:
        """Compare every live conduct once; raise EngineUnavailableError only after what needs no engine is done."""
        live = [(work, conduct) for work in self.works for conduct in await work.live()]
        for work, conduct in live:
            if not conduct.begun and self.clock() - conduct.started_at > self.restart_limit:
                await self._log_errors(self._give_up(work, conduct, expired=True), conduct)
        for work, conduct in live:
            if conduct.begun:
                await self._log_errors(self._compare(work, conduct), conduct)

    async def _log_errors(self, comparison: Awaitable[None], conduct: LiveConduct) -> None:
        """Log what goes wrong with one conduct, so that the others are still compared."""
        try:
            await comparison
        except Unavailable:
            raise
        except Exception as error:
            log.error("conduct_not_compared", conduct_id=str(conduct.conduct_id), **error_location(error))

    async def _compare(self, work: ConductWork, conduct: LiveConduct) -> None:
        match await self.engine.view(conduct.workflow_id):
            case EngineView.ABSENT:
                if await work.is_live(conduct.conduct_id):  # the record ends before the workflow does
                    await self._give_up(work, conduct, expired=False)
            case EngineView.STALLED:
                await work.stall(conduct.conduct_id)
            case EngineView.OPEN:
                pass

    async def _give_up(self, work: ConductWork, conduct: LiveConduct, *, expired: bool) -> None:
        because = "ConductStartExpired" if expired else CONDUCT_LOST
        try:
            await work.give_up(conduct.conduct_id, expired=expired)
        except Conflict as refusal:
            log.info("conduct_ended_meanwhile", conduct_id=str(conduct.conduct_id), code=refusal.code)
        else:
            log.warning("conduct_given_up", conduct_id=str(conduct.conduct_id), because=because)
