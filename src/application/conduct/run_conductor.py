"""What the conduct of a run does: open its phases, wait for them, and end the run, each time on the record. Everything here
may be repeated: the streams say whether it was done already."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.conduct.conduct_record import RecordWatch, reject
from baton.application.conduct.conduct_work import ConductWork, submitter
from baton.application.conduct.end_recording import Seen, put_on_record
from baton.application.conduct.heartbeat import Attempt
from baton.application.long_work import Pace, carries_out
from baton.application.ports import Clock, Store
from baton.application.unit_of_work import StreamWatch, load_events, load_row, require_state
from baton.domain.conduct import run_messages as messages
from baton.domain.conduct.arranged_conduct import arranged_command
from baton.domain.conduct.end_decision import EndCommand, EndRecord
from baton.domain.conduct.ends import EndEffect
from baton.domain.conduct.messages import MAX_REASON_LENGTH, ConductOutcome, ConductVerdict, Finish, lifecycle_failure
from baton.domain.conduct.progress import OpenedRunConduct, RunConductProgress, RunWait, RunWaitingFor
from baton.domain.conduct.run_conduct import RecordRunConductEnd, failure_of
from baton.domain.conduct.run_messages import PhaseReport, PhaseRequest
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import ABORTED, COMPLETED, TRUNCATED, Procedure, ProcedureConducted
from baton.domain.run import run as runs
from baton.domain.run.run import HELD, LIVE, AbortRun, HoldRun, Run
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable
from baton.domain.start.procedure_start import HOLDING
from baton.domain.step.results import ConductResult


class RunProgress(Protocol):
    """Where the conduct of a run records its heartbeat."""

    async def note(self, run_id: UUID, conduct_id: UUID, phase_index: int, waiting: RunWait | None) -> None:
        """Record at which phase a live conduct is, and what it waits for."""


@dataclass(frozen=True)
class PhasePlan:
    """One conduct of a run, as it was opened."""

    opened: OpenedRunConduct
    phases: tuple[runs.ListedPhase, ...]
    started_at: datetime
    caller: Caller  # the submitter


@dataclass(frozen=True)
class RunConductor:
    """Acts for conducts of runs through the command path, as their submitters."""

    store: Store
    commands: Commands
    clock: Clock
    progress: RunProgress
    conducts: ConductWork
    run_conducts: ConductWork
    restart_limit: float
    watch: RecordWatch

    @carries_out("brief_run_conduct")
    async def brief(self, request: messages.RunConductRequest) -> int | None:
        """Return the number of phases; None where the conduct is not the live one, or no worker began it in time."""
        plan = await self._plan(request.conduct_id)
        if (await self._run(request.run_id)).live_conduct_id != request.conduct_id:
            return None
        if self.clock() - plan.started_at > timedelta(seconds=self.restart_limit):
            await self.run_conducts.give_up(request.conduct_id, expired=True)
            return None
        await self.progress.note(request.run_id, request.conduct_id, 0, None)
        return len(plan.phases)

    @carries_out("open_phase")
    async def open_phase(self, request: PhaseRequest) -> PhaseReport:
        """Open the conduct of a phase as the submitter of the run's; a gate that refuses it holds the run."""
        plan, index = await self._plan(request.conduct_id), request.phase_index
        if await self._phase(plan, index) is None or not await self._are_completed(plan, index):
            return PhaseReport(verdict=reject("run_conduct_rejected", request, activity="open_phase"))
        listed = plan.phases[index]
        own_id = messages.phase_conduct_id(request.conduct_id, listed.procedure_id)
        while True:
            run = await self._run(request.run_id)
            if run.live_conduct_id != request.conduct_id:
                return PhaseReport(verdict=ConductVerdict.GONE)
            if await self._is_open(own_id):
                await self.progress.note(request.run_id, request.conduct_id, index, None)
                return PhaseReport(verdict=ConductVerdict.DONE, job=await self._job(own_id))
            if run.status not in LIVE:
                return PhaseReport(verdict=ConductVerdict.RUN_STOPPED)
            if await self.watch.is_inactive(plan.caller):
                return PhaseReport(verdict=ConductVerdict.STOOD_DOWN)
            if run.status is HELD:
                return PhaseReport(verdict=ConductVerdict.RUN_HELD)
            command = arranged_command(listed.conduct)
            try:
                await self.commands.execute(command, plan.caller, target_id=listed.procedure_id, new_id=own_id)
            except UnauthorizedError as denied:
                verdict, failure = await self.watch.read_denial(plan.caller, "start", denied)
                return PhaseReport(verdict=verdict, failure=failure)
            except HOLDING as gate:
                if (report := await self._hold(plan, index, gate)) is not None:
                    return report
            except Unavailable:
                raise
            except ConcurrencyError:
                continue
            except Refusal as refusal:
                if refusal.reason != "parent_run_not_running" and not await self._is_open(own_id):
                    failure = lifecycle_failure("start", refusal.code, refusal.detail)
                    return PhaseReport(verdict=ConductVerdict.FAILED, failure=failure)

    async def _hold(self, plan: PhasePlan, index: int, gate: Refusal) -> PhaseReport | None:
        """Hold the run because a gate refuses a phase; return None where it is not Running any more, to be read again."""
        procedure_id = plan.phases[index].procedure_id
        waiting = RunWait(for_=RunWaitingFor.GATE, procedure_id=procedure_id, code=gate.code, detail=gate.detail)
        await self.progress.note(plan.opened.run_id, plan.opened.conduct_id, index, waiting)
        try:
            hold = HoldRun(reason=gate.detail[:MAX_REASON_LENGTH])
            await self.commands.execute(hold, plan.caller, target_id=plan.opened.run_id)
        except UnauthorizedError as denied:
            verdict, failure = await self.watch.read_denial(plan.caller, "hold", denied)
            return PhaseReport(verdict=verdict, failure=failure)
        except (ConcurrencyError, HoldRun.Cannot):
            return None
        return PhaseReport(verdict=ConductVerdict.RUN_HELD)

    @carries_out("await_run_resumed", Pace.WAITING)
    async def await_run(self, request: PhaseRequest, attempt: Attempt) -> PhaseReport:
        """Wait while the run is held; what a gate said about the phase stays readable meanwhile."""
        plan, index = await self._plan(request.conduct_id), request.phase_index
        waiting = await self._waiting_for_gate(request) or RunWait(for_=RunWaitingFor.RUN)
        watch = StreamWatch(self.store, Run, request.run_id)
        while True:
            attempt.heartbeat()
            run = await watch.poll()
            if run.live_conduct_id != request.conduct_id:
                return PhaseReport(verdict=ConductVerdict.GONE)
            if run.status is not HELD:
                await self.progress.note(request.run_id, request.conduct_id, index, None)
                return PhaseReport(verdict=ConductVerdict.DONE if run.status in LIVE else ConductVerdict.RUN_STOPPED)
            if await self.watch.is_inactive(plan.caller):
                return PhaseReport(verdict=ConductVerdict.STOOD_DOWN)
            await self.progress.note(request.run_id, request.conduct_id, index, waiting)
            await watch.wait()

    @carries_out("await_phase", Pace.WAITING)
    async def await_phase(self, request: PhaseRequest, attempt: Attempt) -> PhaseReport:
        """Wait until a phase has ended; one that is held or halted is waited for until a person ends it."""
        plan, index = await self._plan(request.conduct_id), request.phase_index
        if (known := await self._phase(plan, index)) is None:
            return PhaseReport(verdict=reject("run_conduct_rejected", request, activity="await_phase"))
        run_watch, phase_watch = StreamWatch(self.store, Run, request.run_id), StreamWatch(self.store, Procedure, known.id)
        while True:
            attempt.heartbeat()
            run, phase = await run_watch.poll(), await phase_watch.poll()
            if run.live_conduct_id != request.conduct_id:
                return PhaseReport(verdict=ConductVerdict.GONE)
            if phase.status is COMPLETED:
                return PhaseReport(verdict=ConductVerdict.DONE)
            if phase.status in (ABORTED, TRUNCATED):
                return PhaseReport(verdict=ConductVerdict.FAILED)
            if run.status not in LIVE and phase.live_conduct_id is None:
                return PhaseReport(verdict=ConductVerdict.RUN_STOPPED)
            if run.status in LIVE and await self.watch.is_inactive(plan.caller):
                return PhaseReport(verdict=ConductVerdict.STOOD_DOWN)
            await self.progress.note(request.run_id, request.conduct_id, index, await self._find_wait(run, phase))
            await run_watch.wait()

    async def _find_wait(self, run: Run, phase: Procedure) -> RunWait | None:
        """Return what a phase that has not ended waits for; None while its conduct is at work."""
        if run.status is HELD:
            return RunWait(for_=RunWaitingFor.RUN)
        if phase.live_conduct_id is not None:
            return None
        code, detail = None, None
        if phase.hold_cause is not None:
            code, detail = phase.hold_cause.value, phase.last_status_reason
        elif (failure := failure_of(phase, await self._results(phase.id))) is not None:
            code, detail = failure.error_class, failure.message
        return RunWait(for_=RunWaitingFor.PHASE, procedure_id=phase.id, code=code, detail=detail)

    @carries_out("end_run_conduct")
    async def end(self, request: messages.RunConductEnd) -> ConductVerdict:
        """End the run as its phases ended, and record the result of the conduct; a run that is held although all is done is
        not ended yet."""
        plan, said = await self._plan(request.conduct_id), request.outcome
        outcome, read = ConductOutcome(finish=said.finish, failure=said.failure), partial(self._read_end, plan, request)
        verdict, _ = await put_on_record(self.commands, plan.caller, request.run_id, outcome, read)
        return verdict or reject("run_conduct_rejected", request, activity=f"end_run_conduct, {said.finish.value}")

    async def _read_end(self, plan: PhasePlan, request: messages.RunConductEnd, outcome: ConductOutcome) -> Seen:
        """Return what the record says to an end, and what makes the commands for it."""
        run, phase = await self._run(request.run_id), await self._phase(plan, request.outcome.phase_index)
        record = EndRecord(
            principal_id=plan.opened.principal_id,
            objection=(await self.commands.authorizer.read_principal_status(plan.caller)).objection,
            live=run.live_conduct_id == request.conduct_id,
            of_run=True,
            run=run.status,
            walked=outcome.finish is Finish.COMPLETED and await self._are_completed(plan, len(plan.phases)),
            phase=phase,
            failed=None if phase is None else failure_of(phase, await self._results(phase.id)),
        )
        return record, partial(self._end_command, plan, phase)

    async def _end_command(self, plan: PhasePlan, phase: Procedure | None, end: EndCommand) -> Command:
        """Return the command that ends the run or, once no phase is conducted any more, the one that ends its conduct."""
        match end.leads_to:
            case EndEffect.COMPLETE:
                return runs.CompleteRun(conduct_id=plan.opened.conduct_id)
            case EndEffect.HOLD:
                return HoldRun(reason=end.reason)
            case EndEffect.ABORT:
                return AbortRun(reason=end.reason, conduct_id=plan.opened.conduct_id)
            case _:
                await self._await_all_phases(plan)
                failed_id = None if phase is None else phase.id
                return RecordRunConductEnd(conduct_id=plan.opened.conduct_id, failure=end.failure, failed_id=failed_id)

    async def _are_completed(self, plan: PhasePlan, count: int) -> bool:
        """Return whether the first so many phases are Completed."""
        phases = [await self._phase(plan, index) for index in range(count)]
        return all(phase is not None and phase.status is COMPLETED for phase in phases)

    async def _phase(self, plan: PhasePlan, index: int | None) -> Procedure | None:
        """Return the procedure of a phase; None where there is no such phase."""
        if index is None or not 0 <= index < len(plan.phases):
            return None
        return await require_state(self.store, Procedure, plan.phases[index].procedure_id)

    async def _await_all_phases(self, plan: PhasePlan) -> None:
        """Wait until no phase is conducted any more, since the ends of all of them belong to the result."""
        for index, listed in enumerate(plan.phases):
            watch = StreamWatch(self.store, Procedure, listed.procedure_id)
            while (await watch.poll()).live_conduct_id is not None:
                await self.progress.note(plan.opened.run_id, plan.opened.conduct_id, index, None)
                await watch.wait()

    async def _plan(self, conduct_id: UUID) -> PhasePlan:
        opened = await load_row(self.store, OpenedRunConduct, conduct_id=conduct_id)
        assert opened is not None, "what is conducted was opened"
        openings = await load_events(self.store, opened.run_id, runs.RunConductStarted)
        opening = next(event for event in openings if event.conduct_id == conduct_id)
        return PhasePlan(opened, opening.phases, opening.occurred_at, submitter(opened))

    async def _run(self, run_id: UUID) -> Run:
        return await require_state(self.store, Run, run_id)

    async def _waiting_for_gate(self, request: messages.RunConductRequest) -> RunWait | None:
        """Return the gate that holds the run, where one does."""
        progress = await load_row(self.store, RunConductProgress, run_id=request.run_id, conduct_id=request.conduct_id)
        waiting = None if progress is None or progress.waiting is None else RunWait(**progress.waiting)
        return waiting if waiting is not None and waiting.for_ is RunWaitingFor.GATE else None

    async def _is_open(self, conduct_id: UUID) -> bool:
        return await self.conducts.item(conduct_id) is not None

    async def _job(self, conduct_id: UUID) -> messages.PhaseJob | None:
        """Return the workflow to start for a phase; None where it was started already."""
        job = await self.conducts.job(conduct_id)
        if job is None:
            return None
        return messages.PhaseJob(id=job.id, order=job.argument, attributes=dict(job.attributes), summary=job.summary)

    async def _results(self, procedure_id: UUID) -> Sequence[ConductResult]:
        return [end.result for end in await load_events(self.store, procedure_id, ProcedureConducted)]
