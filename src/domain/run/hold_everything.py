"""Hold everything: every live run and conduct is asked to hold by its ordinary verb, as the caller, each in a transaction
of its own, so that one refusal keeps no other from being held."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple
from uuid import UUID

from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, related_asset_ids
from baton.domain.kernel import Call, JudgedCreation, Outcome
from baton.domain.operation.procedure.endings import HoldProcedure
from baton.domain.operation.procedure.procedure import PendingRequest, Procedure
from baton.domain.run.live_work import LiveWork, load_live_work
from baton.domain.run.run import HELD, HoldRun, Run, run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Answer


class LiveKind(StrEnum):
    RUN = "run"
    PROCEDURE = "procedure"


class HeldWork(AnswerForm):
    """A run, or a procedure that is conducted, that was asked to hold; `already` where it was before.

    A phase whose run holds is held with it, and needs nothing but its run to be resumed.
    """

    kind: LiveKind
    id: UUID
    name: FreeText
    already: bool = False
    run_id: UUID | None = None


class UnheldWork(AnswerForm):
    """A run or procedure that goes on: its hold was refused like this."""

    kind: LiveKind
    id: UUID
    name: FreeText
    code: str
    detail: str
    reason: str | None


class HeldEverything(AnswerForm):
    """Everything that was live in scope: what was asked to hold, and what goes on. A conduct finishes its step first."""

    held: tuple[HeldWork, ...]
    refused: tuple[UnheldWork, ...]


class HoldResult(NamedTuple):
    """What became of the hold of a run or a procedure: it was held before, it was asked to hold, or it was refused."""

    target: Run | Procedure
    already: bool = False
    refusal: Refusal | None = None
    run_id: UUID | None = None  # The run that a phase is held with.


HoldResults = Sequence[HoldResult]


@run.command(
    post="",
    path="/hold-everything",
    context="operation",
    status=200,
    returns=HeldEverything,
    attempts=3,
    refuses=[AncestorWalkDepthExceededError],
)
class HoldEverything(JudgedCreation[HoldResults]):
    """Hold every live run and conduct, or all on one asset, its parts and what it is part of; it can be repeated.

    Each is held as by `hold_run` or `hold_procedure` by the caller: what the caller may not hold is named in `refused`.
    """

    reason: Annotated[str, run.text("hold_reason", 500, label="reason", personal=True)]
    asset_id: UUID | None = None

    def gather(self, call: Call) -> Reads[HoldResults]:
        self.operation.check(self, None)
        asset_ids = None if self.asset_id is None else (yield from related_asset_ids(self.asset_id))
        live = yield from load_live_work(asset_ids)
        runs = tuple(one.run for one in live.runs)
        results = yield from self._hold(call, [*runs, *conducted_alone(live)])
        holding = {one.target.id for one in results if one.refusal is None}
        phases = [one.procedure for one in live.conducts if one.procedure.parent_run_id in {run.id for run in runs}]
        before = {run.id for run in runs if run.status is HELD}
        with_run = [
            HoldResult(phase, already=phase.parent_run_id in before, run_id=phase.parent_run_id)
            for phase in phases
            if phase.parent_run_id in holding
        ]
        others = yield from self._hold(call, [phase for phase in phases if phase.parent_run_id not in holding])
        return [*results, *with_run, *others]

    def _hold(self, call: Call, targets: Iterable[Run | Procedure]) -> Reads[HoldResults]:
        wanted = tuple(targets)
        due = [one for one in wanted if not is_holding(one)]
        orders = [(HoldRun if isinstance(one, Run) else HoldProcedure)(reason=self.reason) for one in due]
        given = [(order, one.id) for order, one in zip(orders, due, strict=True)]
        refusals = (yield from ask(Ports.execute_each, call, given, False)) if given else ()
        by_id = {one.id: refusal for one, refusal in zip(due, refusals, strict=True)}
        return [HoldResult(one, already=one.id not in by_id, refusal=by_id.get(one.id)) for one in wanted]

    def decide(self, call: Call, results: HoldResults) -> Outcome:
        return [Answer(answer_of(results).model_dump(mode="json"))]


def conducted_alone(live: LiveWork) -> list[Procedure]:
    """Return the procedures whose conduct is no phase of a live run."""
    runs = {one.run.id for one in live.runs}
    return [one.procedure for one in live.conducts if one.procedure.parent_run_id not in runs]


def is_holding(work: Run | Procedure) -> bool:
    """Return whether a run is held, or a procedure was asked to hold."""
    return work.status is HELD if isinstance(work, Run) else work.pending_request is PendingRequest.HOLD


def answer_of(results: HoldResults) -> HeldEverything:
    """Return what was held and what was not."""
    held: list[HeldWork] = []
    refused: list[UnheldWork] = []
    for target, already, refusal, run_id in results:
        kind = LiveKind.RUN if isinstance(target, Run) else LiveKind.PROCEDURE
        if refusal is None:
            held.append(HeldWork(kind=kind, id=target.id, name=target.name, already=already, run_id=run_id))
        else:
            why = {name: getattr(refusal, name) for name in ("code", "detail", "reason")}
            refused.append(UnheldWork(kind=kind, id=target.id, name=target.name, **why))
    return HeldEverything(held=tuple(held), refused=tuple(refused))
