"""What the conductor of a run does: it opens its phases, waits for them, and ends the run, each time on the record.

Everything here may be repeated: the streams say whether it was done already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import structlog

from baton.application.commands import Commands
from baton.application.conduct.conduct_work import ConductWork, submitter
from baton.application.conduct.heartbeat import Attempt
from baton.application.conduct.submitters import Submitters
from baton.application.ports import Caller, Clock, Store
from baton.application.record_reader import FIRST_LOOK, StreamWatch, load_events, wait_longer, load_row, require_state
from baton.domain.kernel import Command
from baton.domain.operation.conduct.messages import MAX_REASON_LENGTH, lifecycle_failure, reason_of, submitter_stood_down
from baton.domain.operation.conduct.progress import OpenedConduct
from baton.domain.operation.conduct.results import ConductResult, Failure
from baton.domain.operation.procedure.procedure import ABORTED, COMPLETED, TRUNCATED, Procedure, ProcedureConducted
from baton.domain.operation.schedule.arranged_conduct import arranged
from baton.domain.run.conduct import HOLDING, RecordRunConductEnd, failure_of
from baton.domain.run.endings import AbortRun, CompleteRun
from baton.domain.run.messages import PhaseJob, PhaseReport, PhaseVerdict, RunFinish, RunOutcome, phase_conduct_id
from baton.domain.run.progress import OpenedRunConduct, RunConductProgress, Waiting, RunWaitingFor
from baton.domain.run.run import HELD, LIVE, RUNNING, HoldRun, ListedPhase, Run, RunConductStarted, RunStatus
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable

log = structlog.get_logger()

ABORT_REASON = 480
"""Characters of the reason that a run is aborted with."""
CANCELLED = lifecycle_failure("abort", "CancelledError", "The conduct was cancelled in the engine.")


class RunProgress(Protocol):
    """Where the conduct of a run leaves signs of life."""

    async def note(self, run_id: UUID, conduct_id: UUID, phase_index: int, waiting: Waiting | None) -> None:
        """Say at which phase the conduct is, and what it waits for; one that is not live says nothing."""
        ...


@dataclass(frozen=True)
class RunConductPlan:
    """One conduct of a run, as it was opened."""

    opened: OpenedRunConduct
    phases: tuple[ListedPhase, ...]
    started_at: datetime

    @property
    def run_id(self) -> UUID:
        return self.opened.run_id

    @property
    def conduct_id(self) -> UUID:
        return self.opened.conduct_id

    @property
    def caller(self) -> Caller:
        return submitter(self.opened)


class RunConductor:
    """Acts for conducts of runs through the command path, as whoever asked for them."""

    def __init__(
        self,
        store: Store,
        commands: Commands,
        clock: Clock,
        progress: RunProgress,
        conducts: ConductWork,
        run_conducts: ConductWork,
        restart_limit: float,
        submitters: Submitters,
    ) -> None:
        self._store = store
        self._commands = commands
        self._clock = clock
        self._progress = progress
        self._conducts = conducts
        self._run_conducts = run_conducts
        self._restart_limit = timedelta(seconds=restart_limit)
        self._submitters = submitters

    async def brief(self, run_id: UUID, conduct_id: UUID) -> int | None:
        """How many phases there are; None where the conduct is not the live one, or it was left too long to begin."""
        drive = await self._drive(conduct_id)
        if (await self._run(run_id)).live_conduct_id != conduct_id:
            return None
        if self._clock() - drive.started_at > self._restart_limit:
            await self._run_conducts.expire(conduct_id)
            return None
        await self._progress.note(run_id, conduct_id, 0, None)
        return len(drive.phases)

    async def open_phase(self, run_id: UUID, conduct_id: UUID, index: int) -> PhaseReport:
        """Open the conduct of a phase as whoever asked for the run's; a gate that stays closed holds the run."""
        drive = await self._drive(conduct_id)
        if await self._phase(drive, index) is None or not await self._are_completed(drive, index):
            return PhaseReport(verdict=disbelieved(drive, "open_phase"))
        listed = drive.phases[index]
        own_id = phase_conduct_id(conduct_id, listed.procedure_id)
        while True:
            run = await self._run(run_id)
            if run.live_conduct_id != conduct_id:
                return PhaseReport(verdict=PhaseVerdict.GONE)
            if await self._is_open(own_id):
                await self._progress.note(run_id, conduct_id, index, None)
                return PhaseReport(verdict=PhaseVerdict.OPENED, job=await self._job(own_id))
            if run.status not in LIVE:
                return PhaseReport(verdict=PhaseVerdict.RUN_ENDED)
            if await self._submitters.lost(drive.caller):
                return PhaseReport(verdict=PhaseVerdict.STOOD_DOWN)
            if run.status is HELD:
                return PhaseReport(verdict=PhaseVerdict.RUN_HELD)
            command = arranged(listed.conduct)
            try:
                await self._commands.execute(command, drive.caller, target_id=listed.procedure_id, new_id=own_id)
            except UnauthorizedError as denied:
                return await self._denied(drive, "start", denied)
            except HOLDING as gate:
                if (report := await self._hold(drive, index, gate)) is not None:
                    return report
            except Unavailable:
                raise
            except ConcurrencyError:
                continue
            except Refusal as refusal:
                if refusal.reason != "parent_run_not_running" and not await self._is_open(own_id):
                    return failed(PhaseVerdict.FAILED, "start", refusal)

    async def _hold(self, drive: RunConductPlan, index: int, gate: Refusal) -> PhaseReport | None:
        """Hold the run because a phase may not start, so that a person looks at what the gate says.

        None where the run is not Running any more, and is to be looked at again.
        """
        waiting = Waiting(
            for_=RunWaitingFor.GATE, procedure_id=drive.phases[index].procedure_id, code=gate.code, detail=gate.detail
        )
        await self._progress.note(drive.run_id, drive.conduct_id, index, waiting)
        try:
            await self._commands.execute(HoldRun(reason=gate.detail[:MAX_REASON_LENGTH]), drive.caller, target_id=drive.run_id)
        except UnauthorizedError as denied:
            return await self._denied(drive, "hold", denied)
        except (ConcurrencyError, HoldRun.Cannot):
            return None
        return PhaseReport(verdict=PhaseVerdict.RUN_HELD)

    async def _denied(self, drive: RunConductPlan, target: str, denied: UnauthorizedError) -> PhaseReport:
        """What a denied command means: the submitter stood down, or one permission was withdrawn."""
        if await self._submitters.lost(drive.caller):
            return PhaseReport(verdict=PhaseVerdict.STOOD_DOWN)
        return failed(PhaseVerdict.DENIED, target, denied)

    async def await_run(self, run_id: UUID, conduct_id: UUID, index: int, attempt: Attempt) -> PhaseReport:
        """Wait while the run is held; what a gate said of the phase stays to be read meanwhile."""
        drive = await self._drive(conduct_id)
        waiting = await self._gate(run_id, conduct_id) or Waiting(for_=RunWaitingFor.RUN)
        watch, pause = StreamWatch(self._store, Run, run_id), FIRST_LOOK
        while True:
            attempt.alive()
            run = await watch.look()
            if run.live_conduct_id != conduct_id:
                return PhaseReport(verdict=PhaseVerdict.GONE)
            if run.status is not HELD:
                await self._progress.note(run_id, conduct_id, index, None)
                return PhaseReport(verdict=PhaseVerdict.RUN_RESUMED if run.status in LIVE else PhaseVerdict.RUN_ENDED)
            if await self._submitters.lost(drive.caller):
                return PhaseReport(verdict=PhaseVerdict.STOOD_DOWN)
            await self._progress.note(run_id, conduct_id, index, waiting)
            pause = await wait_longer(pause)

    async def await_phase(self, run_id: UUID, conduct_id: UUID, index: int, attempt: Attempt) -> PhaseReport:
        """Wait until a phase has come to its end; one that is held or halted is waited for until somebody ends it."""
        drive = await self._drive(conduct_id)
        if (known := await self._phase(drive, index)) is None:
            return PhaseReport(verdict=disbelieved(drive, "await_phase"))
        watched_run, watched = StreamWatch(self._store, Run, run_id), StreamWatch(self._store, Procedure, known.id)
        pause = FIRST_LOOK
        while True:
            attempt.alive()
            run, phase = await watched_run.look(), await watched.look()
            if run.live_conduct_id != conduct_id:
                return PhaseReport(verdict=PhaseVerdict.GONE)
            if phase.status is COMPLETED:
                return PhaseReport(verdict=PhaseVerdict.COMPLETED)
            if phase.status in (ABORTED, TRUNCATED):
                return PhaseReport(verdict=PhaseVerdict.FAILED)
            if run.status not in LIVE and phase.live_conduct_id is None:
                return PhaseReport(verdict=PhaseVerdict.RUN_ENDED)
            if run.status in LIVE and await self._submitters.lost(drive.caller):
                return PhaseReport(verdict=PhaseVerdict.STOOD_DOWN)
            await self._progress.note(run_id, conduct_id, index, await self._waiting_for(run, phase))
            pause = await wait_longer(pause)

    async def _waiting_for(self, run: Run, phase: Procedure) -> Waiting | None:
        """What a phase waits for that is under way; None while its conduct is at work."""
        if run.status is HELD:
            return Waiting(for_=RunWaitingFor.RUN)
        if phase.live_conduct_id is not None:
            return None
        waiting = Waiting(for_=RunWaitingFor.PHASE, procedure_id=phase.id)
        if phase.hold_cause is not None:
            return waiting.model_copy(update={"code": phase.hold_cause.value, "detail": phase.last_status_reason})
        failure = failure_of(phase, await self._ends(phase.id))
        if failure is None:
            return waiting
        return waiting.model_copy(update={"code": failure.error_class, "detail": failure.message})

    async def end(self, run_id: UUID, conduct_id: UUID, outcome: RunOutcome, attempt: Attempt) -> PhaseVerdict:
        """End the run as its phases came to their end, and put on the record what came of the conduct.

        Where the run is held although all is done, nothing is ended yet. Where the submitter stood down, the service holds
        the run instead of completing it and ends the conduct, so that somebody else can conduct what is left.
        """
        drive = await self._drive(conduct_id)
        if not await self._agrees(drive, outcome):
            return disbelieved(drive, f"end_run_conduct, {outcome.finish.value}")
        failure = CANCELLED if outcome.finish is RunFinish.CANCELLED else outcome.failure
        while True:
            attempt.alive()
            run = await self._run(run_id)
            if run.live_conduct_id != conduct_id:
                return PhaseVerdict.GONE
            if run.status is RunStatus.COMPLETED:
                failure = None
            if run.status not in LIVE:
                break
            lost = await self._submitters.lost(drive.caller)
            if lost and outcome.finish is RunFinish.COMPLETED:
                outcome = RunOutcome(finish=RunFinish.STOOD_DOWN)
            if outcome.finish is RunFinish.STOOD_DOWN:
                failure = failure or submitter_stood_down(
                    (await self._submitters.standing(drive.caller)).objection, steers=False
                )
                if run.status is HELD:
                    break
            if outcome.finish is RunFinish.COMPLETED and run.status is HELD:
                return PhaseVerdict.RUN_HELD
            command = await self._ending(drive, outcome, failure)
            as_service = lost or outcome.finish in (RunFinish.DENIED, RunFinish.STOOD_DOWN)
            caller = Caller.system(drive.opened.correlation_id) if as_service else drive.caller
            try:
                await self._commands.execute(command, caller, target_id=run_id)
            except UnauthorizedError as denied:
                if await self._submitters.lost(drive.caller):
                    continue
                target = "complete" if outcome.finish is RunFinish.COMPLETED else "abort"
                denial = lifecycle_failure(target, denied.code, denied.detail)
                failure = failure or denial
                outcome = RunOutcome(finish=RunFinish.DENIED, phase_index=outcome.phase_index, failure=denial)
            except ConcurrencyError:
                continue
            except Unavailable:
                raise
            except Refusal as refusal:
                if outcome.finish is not RunFinish.COMPLETED:
                    break
                if (await self._run(run_id)).status is RUNNING:
                    failure = lifecycle_failure("complete", refusal.code, refusal.detail)
                    break
        await self._settled(drive, attempt)
        failed_phase = await self._phase(drive, outcome.phase_index)
        failed_id = None if failed_phase is None else failed_phase.id
        command = RecordRunConductEnd(conduct_id=conduct_id, failure=failure, failed_id=failed_id)
        await self._run_conducts.end(drive.opened, command)
        return PhaseVerdict.COMPLETED

    async def _agrees(self, drive: RunConductPlan, outcome: RunOutcome) -> bool:
        """Whether the record shows the end that the phases are said to have come to; giving up needs nothing."""
        match outcome.finish:
            case RunFinish.COMPLETED:
                return await self._are_completed(drive, len(drive.phases))
            case RunFinish.FAILED:
                phase = await self._phase(drive, outcome.phase_index)
                return phase is not None and (outcome.failure is not None or phase.status in (ABORTED, TRUNCATED))
            case RunFinish.ENDED:
                return (await self._run(drive.run_id)).status not in LIVE
            case RunFinish.DENIED:
                return outcome.failure is not None
            case RunFinish.CANCELLED | RunFinish.STOOD_DOWN:
                return True
            case RunFinish.GONE:
                return False

    async def _are_completed(self, drive: RunConductPlan, count: int) -> bool:
        """Whether the first so many phases are on record as Completed."""
        phases = [await self._phase(drive, index) for index in range(count)]
        return all(phase is not None and phase.status is COMPLETED for phase in phases)

    async def _phase(self, drive: RunConductPlan, index: int | None) -> Procedure | None:
        """The procedure of a phase; None where there is no such phase."""
        if index is None or not 0 <= index < len(drive.phases):
            return None
        return await require_state(self._store, Procedure, drive.phases[index].procedure_id)

    async def _ending(self, drive: RunConductPlan, outcome: RunOutcome, failure: Failure | None) -> Command:
        """The command that ends the run, or holds it where nobody stands behind its conduct any more."""
        match outcome.finish:
            case RunFinish.COMPLETED:
                return CompleteRun(conduct_id=drive.conduct_id)
            case RunFinish.CANCELLED:
                return AbortRun(reason="conduct cancelled")
            case RunFinish.DENIED:
                assert outcome.failure is not None, "something was denied"
                principal = drive.opened.principal_id
                return AbortRun(
                    reason=f"The principal {principal} may not go on with this: {outcome.failure.message}"[:MAX_REASON_LENGTH]
                )
            case RunFinish.FAILED:
                return AbortRun(reason=await self._why(drive, outcome))
            case RunFinish.STOOD_DOWN:
                assert failure is not None, "there is a reason"
                return HoldRun(reason=reason_of(failure))
            case RunFinish.ENDED | RunFinish.GONE:
                raise AssertionError("what has ended is not ended again")

    async def _why(self, drive: RunConductPlan, outcome: RunOutcome) -> str:
        """Why a run is aborted: the phase that failed, and what failed there."""
        assert outcome.phase_index is not None, "some phase failed"
        phase = await require_state(self._store, Procedure, drive.phases[outcome.phase_index].procedure_id)
        failure = outcome.failure or failure_of(phase, await self._ends(phase.id))
        said = phase.status.value if failure is None else reason_of(failure)
        return f"phase {phase.name}: {said}"[:ABORT_REASON]

    async def _settled(self, drive: RunConductPlan, attempt: Attempt) -> None:
        """Wait until no phase is at work any more: what a run's end leads it to belongs to what came of the conduct."""
        for index, listed in enumerate(drive.phases):
            watch, pause = StreamWatch(self._store, Procedure, listed.procedure_id), FIRST_LOOK
            while (await watch.look()).live_conduct_id is not None:
                attempt.alive()
                await self._progress.note(drive.run_id, drive.conduct_id, index, None)
                pause = await wait_longer(pause)

    async def _drive(self, conduct_id: UUID) -> RunConductPlan:
        opened = await load_row(self._store, OpenedRunConduct, conduct_id=conduct_id)
        assert opened is not None, "what is conducted was opened"
        openings = await load_events(self._store, opened.run_id, RunConductStarted)
        opening = next(event for event in openings if event.conduct_id == conduct_id)
        return RunConductPlan(opened, opening.phases, opening.occurred_at)

    async def _run(self, run_id: UUID) -> Run:
        return await require_state(self._store, Run, run_id)

    async def _gate(self, run_id: UUID, conduct_id: UUID) -> Waiting | None:
        """The gate that holds the run, where one does."""
        progress = await load_row(self._store, RunConductProgress, run_id=run_id, conduct_id=conduct_id)
        said = None if progress is None else progress.waiting
        return Waiting(**said) if said is not None and said["for"] == RunWaitingFor.GATE.value else None

    async def _is_open(self, conduct_id: UUID) -> bool:
        return await load_row(self._store, OpenedConduct, conduct_id=conduct_id) is not None

    async def _job(self, conduct_id: UUID) -> PhaseJob | None:
        """What the engine is to be told of a phase's conduct; None where it was taken up already."""
        job = await self._conducts.job(conduct_id)
        if job is None:
            return None
        return PhaseJob(id=job.id, order=job.argument, attributes=dict(job.attributes), summary=job.summary)

    async def _ends(self, procedure_id: UUID) -> Sequence[ConductResult]:
        return [end.result for end in await load_events(self._store, procedure_id, ProcedureConducted)]


def disbelieved(drive: RunConductPlan, asked: str) -> PhaseVerdict:
    """The verdict on what the record does not agree with: nothing is written, and whoever asked for it is gone."""
    log.warning("run_conduct_disbelieved", run_id=str(drive.run_id), conduct_id=str(drive.conduct_id), activity=asked)
    return PhaseVerdict.GONE


def failed(verdict: PhaseVerdict, target: str, refusal: Refusal) -> PhaseReport:
    """The report of a command that was refused."""
    return PhaseReport(verdict=verdict, failure=lifecycle_failure(target, refusal.code, refusal.detail))
