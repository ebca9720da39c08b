"""Live work: the runs that have not ended and the conducts that are under way, everywhere or on some assets."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.domain.conduct.progress import LOST_CONDUCTS, ConductPhase, ConductProgress, OpenedConduct
from baton.domain.procedure.procedure import Procedure, ProcedureConducted
from baton.domain.recipe.plan import Plan
from baton.domain.run.run import LIVE, LIVE_RUNS, RUNNING, Run
from baton.domain.shared.reads import Reads, all_members_of, find_all, latest_events, records_of

OPEN = tuple(phase.value for phase in ConductPhase if phase is not ConductPhase.ENDED)


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, and its plan."""

    run: Run
    plan: Plan


@dataclass(frozen=True)
class ConductUnderWay:
    """A procedure that is being conducted: how that was opened, and how far it is."""

    procedure: Procedure
    opened: OpenedConduct
    progress: ConductProgress


@dataclass(frozen=True)
class LiveWork:
    """Runs in the order of their starts, and conducts in the order of theirs."""

    runs: tuple[LiveRun, ...]
    conducts: tuple[ConductUnderWay, ...]


def load_live_work(asset_ids: AbstractSet[UUID] | None) -> Reads[LiveWork]:
    """Return the live work, or that which touches one of these assets; a run and its phases count as one."""
    found = yield from find_all(Run, (yield from all_members_of(LIVE_RUNS)))
    runs = {id: run for id, run in found.items() if run.status in LIVE}
    plans = yield from find_all(Plan, (run.plan_id for run in runs.values()))
    conducts = yield from _load_conducts()
    touched = {id: frozenset(plans[run.plan_id].asset_ids) | run.used_asset_ids for id, run in runs.items()}
    for one in conducts:
        if (run_id := one.procedure.parent_run_id) in touched:
            touched[run_id] |= one.procedure.judged_asset_ids

    def is_touched(ids: frozenset[UUID]) -> bool:
        return asset_ids is None or not ids.isdisjoint(asset_ids)

    return LiveWork(
        runs=tuple(
            LiveRun(run, plans[run.plan_id])
            for run in sorted(runs.values(), key=lambda run: (run.created_at, run.id))
            if is_touched(touched[run.id])
        ),
        conducts=tuple(
            one
            for one in conducts
            if is_touched(touched.get(one.procedure.parent_run_id or one.procedure.id, one.procedure.judged_asset_ids))
        ),
    )


@dataclass(frozen=True)
class LostProcedure:
    """A procedure whose conduct the engine lost, and since when that is known."""

    procedure: Procedure
    since: datetime


@dataclass(frozen=True)
class LostWork:
    """What is Running on the record alone, since the engine lost its conduct: runs, and procedures."""

    runs: tuple[LiveRun, ...]
    procedures: tuple[LostProcedure, ...]


def load_lost_work(asset_ids: AbstractSet[UUID] | None) -> Reads[LostWork]:
    """Return the work whose conducts were lost, or that which touches one of these assets."""
    runs = yield from find_all(Run, (yield from all_members_of(LIVE_RUNS)))
    lost = [run for run in runs.values() if run.lost and run.status is RUNNING]
    plans = yield from find_all(Plan, (run.plan_id for run in lost))
    found = yield from find_all(Procedure, (yield from all_members_of(LOST_CONDUCTS)))
    procedures = []
    for one in found.values():
        if one.lost:
            (end,) = yield from latest_events(one.id, ProcedureConducted, count=1)
            procedures.append(LostProcedure(one, end.occurred_at))

    def is_touched(ids: frozenset[UUID]) -> bool:
        return asset_ids is None or not ids.isdisjoint(asset_ids)

    return LostWork(
        tuple(LiveRun(run, plans[run.plan_id]) for run in lost if is_touched(plans[run.plan_id].asset_ids)),
        tuple(one for one in procedures if is_touched(one.procedure.judged_asset_ids)),
    )


def _load_conducts() -> Reads[tuple[ConductUnderWay, ...]]:
    rows = {row.conduct_id: row for row in (yield from records_of(ConductProgress, phase=OPEN))}
    if not rows:
        return ()
    opened = yield from records_of(OpenedConduct, conduct_id=tuple(rows))
    procedures = yield from find_all(Procedure, (row.procedure_id for row in rows.values()))
    found = (ConductUnderWay(procedures[one.procedure_id], one, rows[one.conduct_id]) for one in opened)
    live = (one for one in found if one.procedure.live_conduct_id == one.opened.conduct_id)
    return tuple(sorted(live, key=lambda one: (one.progress.started_at, one.opened.conduct_id)))
