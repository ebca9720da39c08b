"""Launches that an earlier release has half begun: it started the run or registered procedures in transactions of their own,
and the conduct was refused or never opened. What is left of one is aborted with the record of its refusal, or continues as
a part of the launch, whose end is then written with its own."""

from typing import NamedTuple
from uuid import UUID

from baton.domain.kernel import Call
from baton.domain.launch.launch_ids import LaunchIds
from baton.domain.procedure.procedure import DEFINED, Procedure, ProcedureAborted, ProcedureLaunched
from baton.domain.run.run import LIVE, AbortRun, Run, RunLaunched
from baton.domain.shared.reads import Reads, Suppose, find, find_all
from baton.domain.shared.writes import Also
from baton.domain.target.targets import ConductPlan, ConductRecipe, recipes_of


class HalfBegun(NamedTuple):
    """What there is of a launch that was not opened: whether anything was made, and what ends that."""

    made: bool
    ends: tuple[Also, ...]


def load_half_begun(ids: LaunchIds, target: ConductRecipe | ConductPlan, reason: str, call: Call) -> Reads[HalfBegun]:
    """Return what there is of a launch, and what aborts it for this reason."""
    ends: list[Also] = []
    run = (yield from find(Run, ids.run_id)) if isinstance(target, ConductPlan) else None
    if run is not None and run.status in LIVE:
        abortion = AbortRun(reason=reason)
        ends.append(Also(Run, run.id, (yield from abortion.operation.decision(abortion, run, call))))
    registered = yield from find_all(Procedure, ids.former_procedure_ids(len(recipes_of(target))))
    aborted = ProcedureAborted(reason=reason, actuation_kind=None)
    ends += [Also(Procedure, one.id, [aborted]) for one in registered.values() if one.status is DEFINED]
    return HalfBegun(run is not None or bool(registered), tuple(ends))


def join_launch(part: Run | Procedure, launch_id: UUID, call: Call) -> Reads[Also]:
    """Make a run or a procedure that an earlier release has begun a part of its launch."""
    joined = RunLaunched(launch_id=launch_id) if isinstance(part, Run) else ProcedureLaunched(launch_id=launch_id)
    also = Also(type(part), part.id, [joined])
    yield Suppose(also, call.now)
    return also
