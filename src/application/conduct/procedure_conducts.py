"""Conducts of procedures, as kinds of long work are told apart."""

from collections.abc import Mapping
from datetime import datetime

from baton.application.conduct.conduct_reader import ConductReader
from baton.application.ports import Clock, Progress, Store
from baton.application.record_reader import require_state
from baton.domain.kernel import Command, Event, State
from baton.domain.operation.conduct.messages import ConductOrder, reason_of
from baton.domain.operation.conduct.progress import ConductPhase, ConductProgress, OpenedConduct, Submission
from baton.domain.operation.conduct.views import LOOPS, MeasuredObjective, told_of
from baton.domain.operation.procedure.endings import EXPIRED, LOST, RecordConductEnd, given_up
from baton.domain.operation.procedure.procedure import MODES, Procedure, ProcedureConducted


class ProcedureConductKind:
    """The steps of a procedure, conducted."""

    workflow = "conduct"
    state: type[State] = Procedure
    opened: type[Submission] = OpenedConduct
    progress = ConductProgress
    ended: type[Event] = ProcedureConducted

    def __init__(self, store: Store, sights: ConductReader, clock: Clock) -> None:
        self._store = store
        self._sights = sights
        self._clock = clock

    async def order(self, opened: OpenedConduct) -> ConductOrder:
        return ConductOrder(procedure_id=opened.procedure_id, **opened.submitted())

    async def attributes(self, opened: OpenedConduct) -> Mapping[str, str]:
        """Of several target assets, the first."""
        procedure = await require_state(self._store, Procedure, opened.procedure_id)
        found = {}
        if procedure.target_asset_ids:
            found["BatonAsset"] = str(min(procedure.target_asset_ids))
        if procedure.parent_run_id is not None:
            found["BatonRun"] = str(procedure.parent_run_id)
        return found

    async def told(self, opened: OpenedConduct, progress: ConductProgress) -> Progress:
        looping = MODES.get(opened.command_name) in LOOPS
        measured = await self._sights.measured(opened.procedure_id, opened.conduct_id) if looping else None
        return told(opened, progress, measured, self._clock())

    def expired(self, opened: OpenedConduct) -> Command:
        result = given_up(opened.procedure_id, opened.conduct_id, opened.command_name, EXPIRED)
        return RecordConductEnd(result=result, abort_reason=reason_of(EXPIRED))

    def lost(self, opened: OpenedConduct) -> Command:
        return RecordConductEnd(result=given_up(opened.procedure_id, opened.conduct_id, opened.command_name, LOST))


def told(opened: OpenedConduct, progress: ConductProgress, measured: MeasuredObjective | None, now: datetime) -> Progress:
    """How many steps lie behind a conduct, of how many where there are no passes, and where it stands."""
    at, passes = progress.step_index or 0, max(0, (progress.iteration_index or 1) - 1)
    if progress.phase == ConductPhase.CLOSING.value:
        at += opened.step_count
    looping = MODES.get(opened.command_name) in LOOPS
    total = None if looping else float(opened.step_count + opened.closing_count)
    return Progress(passes * opened.step_count + at, total, told_of(opened, progress, measured, now))
