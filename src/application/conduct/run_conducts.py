"""Conducts of runs, as kinds of long work are told apart."""

from collections.abc import Mapping

from baton.application.ports import Progress
from baton.domain.kernel import Command, Event, State
from baton.domain.operation.conduct.progress import Submission
from baton.domain.run.conduct import RecordRunConductEnd
from baton.domain.run.messages import RunConductOrder
from baton.domain.run.progress import OpenedRunConduct, RunConductProgress, RunWaitingFor
from baton.domain.run.run import Run, RunConducted


class RunConductKind:
    """The phases of a run, conducted."""

    workflow = "conduct-run"
    state: type[State] = Run
    opened: type[Submission] = OpenedRunConduct
    progress = RunConductProgress
    ended: type[Event] = RunConducted

    async def order(self, opened: OpenedRunConduct) -> RunConductOrder:
        return RunConductOrder(run_id=opened.run_id, **opened.submitted())

    async def attributes(self, opened: OpenedRunConduct) -> Mapping[str, str]:
        return {"BatonRun": str(opened.run_id)}

    async def told(self, opened: OpenedRunConduct, progress: RunConductProgress) -> Progress:
        at = progress.phase_index or 0
        waiting = "" if progress.waiting is None else f", {WAITING[RunWaitingFor(progress.waiting['for'])]}"
        place = f"phase {min(at + 1, opened.phase_count)} of {opened.phase_count}"
        return Progress(at, opened.phase_count, f"{place}{waiting}")

    def expired(self, opened: OpenedRunConduct) -> Command:
        return RecordRunConductEnd.expired(opened.conduct_id)

    def lost(self, opened: OpenedRunConduct) -> Command:
        return RecordRunConductEnd.lost(opened.conduct_id)


WAITING = {
    RunWaitingFor.RUN: "waiting for the run to be resumed",
    RunWaitingFor.PHASE: "waiting for somebody to take it up again",
    RunWaitingFor.GATE: "not allowed to start; waiting for the run to be resumed",
}
