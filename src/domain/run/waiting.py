"""What waits for a person: held work, unknown outcomes, supplies that come back, clearances in review, proposed cautions,
refused firings, and what the caller may approve, each with the commands that resolve it."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from baton.domain.agent import caution_proposal as proposals
from baton.domain.agent.agent import Agent
from baton.domain.caution.caution import Caution, CautionTarget, CautionTargetKind
from baton.domain.decision.decision import Decision, ListDecisions
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, ancestors_of, related_asset_ids
from baton.domain.kernel import Call, CursorText, LogPosition, PageLimit, Query, Value
from baton.domain.operation.launch.targets import ConductPlan, recipes_of
from baton.domain.operation.procedure.procedure import ListProcedures, Procedure, ProcedureStatus
from baton.domain.operation.procedure.start import RESUMING
from baton.domain.operation.schedule.schedule import Schedule, ScheduleStatus
from baton.domain.operation.schedule.views import LAST, ListSchedules
from baton.domain.recipe.plan import Plan
from baton.domain.registry import REGISTRY, question
from baton.domain.run.run import HELD, ListRuns, Run
from baton.domain.safety.clearance import ClearanceStatus
from baton.domain.safety.clearance_views import BoundRecords, ListClearances
from baton.domain.shared.listing import Cursor, ListQuery, Order, Page, Where
from baton.domain.shared.reads import Reads, Rows, find_all, permitted_commands
from baton.domain.shared.text import FreeText
from baton.domain.supply.supply import ListSupplies, SupplyStatus
from baton.domain.trust.proposal import ListProposals, Proposal, ProposalStatus, approvable_proposals

PAGE = 100  # Rows that one look at a list takes.
PROPOSALS_WAIT = timedelta(days=30)  # A proposal that nobody took up for so long is not waited for any more.


class WaitingKind(StrEnum):
    HELD_RUN = "held_run"
    HELD_PROCEDURE = "held_procedure"
    UNKNOWN_OUTCOME = "unknown_outcome"
    SUPPLY_RECOVERING = "supply_recovering"
    CLEARANCE_IN_REVIEW = "clearance_in_review"
    CAUTION_PROPOSAL = "caution_proposal"
    REFUSED_FIRING = "refused_firing"
    PROPOSAL = "proposal"


@dataclass(frozen=True)
class Waiting:
    """Something that waits: since when, why, on which assets or in which facility, and the commands that resolve it."""

    kind: WaitingKind
    id: UUID
    name: str
    since: datetime
    why: str
    commands: tuple[str, ...]
    asset_ids: Collection[UUID] = ()
    facility_code: str | None = None


class ResolvingCommand(Value):
    """A command that resolves what waits, its address, and whether the caller's policies permit it."""

    name: str
    permitted: bool
    method: str
    path: str


class WaitingItem(Value):
    """Something that waits for a person; `asset_id` is null where it is about several assets or none."""

    kind: WaitingKind
    id: UUID
    name: FreeText
    since: datetime
    why: FreeText
    asset_id: UUID | None
    commands: tuple[ResolvingCommand, ...]


def rows_where(query: type[ListQuery], *where: Where) -> Reads[list[Any]]:
    """Return every row of a list that meets these conditions."""
    rows: list[Any] = []
    cursor: str | None = None
    while True:
        page: Page[Any] = yield Rows(query.summary, query(limit=PAGE, cursor=cursor), where)
        rows += page.items
        if (cursor := page.next_cursor) is None:
            return rows


def held_runs(call: Call) -> Reads[list[Waiting]]:
    """Return the runs that are held."""
    rows = yield from rows_where(ListRuns, Where("status", "is", HELD))
    runs = yield from find_all(Run, (row.run_id for row in rows))
    plans = yield from find_all(Plan, (run.plan_id for run in runs.values()))
    return [
        Waiting(
            WaitingKind.HELD_RUN,
            run.id,
            run.name,
            run.last_held_at or run.updated_at,
            run.last_hold_reason or "It was held without a reason.",
            ("resume_run", "stop_run", "abort_run"),
            plans[run.plan_id].asset_ids,
        )
        for run in runs.values()
        if run.status is HELD
    ]


def held_procedures(call: Call) -> Reads[list[Waiting]]:
    """Return the procedures that are held, and among them those with a step whose outcome nobody knows."""
    rows = yield from rows_where(ListProcedures, Where("status", "is", ProcedureStatus.HELD))
    held = (yield from find_all(Procedure, (row.procedure_id for row in rows))).values()
    return [waiting_procedure(one) for one in held if one.status is ProcedureStatus.HELD and one.live_conduct_id is None]


def waiting_procedure(procedure: Procedure) -> Waiting:
    """Return a held procedure, as one to resolve first where a step of it may or may not have been done."""
    unknown = procedure.unknown_step
    resolved = {(one.conduct_id, one.iteration_index, one.step_index) for one in procedure.resolved_steps}
    open_step = unknown is not None and (unknown.conduct_id, unknown.iteration_index, unknown.step_index) not in resolved
    resume = "resume_procedure" if procedure.conduct_mode is None else RESUMING[procedure.conduct_mode]
    return Waiting(
        WaitingKind.UNKNOWN_OUTCOME if open_step else WaitingKind.HELD_PROCEDURE,
        procedure.id,
        procedure.name,
        procedure.last_status_changed_at,
        procedure.last_status_reason or "It was held without a reason.",
        ("resolve_procedure_step" if open_step else resume, "abort_procedure"),
        procedure.judged_asset_ids,
    )


def recovering_supplies(call: Call) -> Reads[list[Waiting]]:
    """Return the supplies that are coming back, until somebody declares them good."""
    return [
        Waiting(
            WaitingKind.SUPPLY_RECOVERING,
            row.supply_id,
            row.name,
            row.last_status_changed_at,
            row.last_status_reason,
            ("restore_supply", "degrade_supply", "mark_supply_unavailable"),
            () if row.containing_asset_id is None else (row.containing_asset_id,),
            row.facility_code,
        )
        for row in (yield from rows_where(ListSupplies, Where("status", "is", SupplyStatus.RECOVERING)))
    ]


REVIEWS = {
    ClearanceStatus.SUBMITTED: ("It was handed in; nobody reviews it yet.", ("start_clearance_review",)),
    ClearanceStatus.UNDER_REVIEW: (
        "It is under review.",
        ("append_clearance_review_step", "approve_clearance", "reject_clearance"),
    ),
    ClearanceStatus.APPROVED: ("It is approved; nobody has put it into force.", ("activate_clearance",)),
}  # Why a clearance waits in each status on its way into force, and what takes it on.


def reviewed_clearances(call: Call) -> Reads[list[Waiting]]:
    """Return the clearances on their way from being handed in to being in force."""
    found = []
    for row in (yield from rows_where(ListClearances, Where("status", "in", tuple(REVIEWS)))):
        why, commands = REVIEWS[ClearanceStatus(row.status)]
        since = row.last_status_changed_at or row.registered_at
        asset_ids = BoundRecords.model_validate(row.bindings).asset_ids
        kind = WaitingKind.CLEARANCE_IN_REVIEW
        found.append(Waiting(kind, row.clearance_id, row.title, since, why, commands, asset_ids))
    return found


def proposed_cautions(call: Call) -> Reads[list[Waiting]]:
    """Return the proposals of cautions that nobody has promoted or rated, as far as they are not old."""
    rows = yield from rows_where(
        ListDecisions,
        Where("context", "is", proposals.DRAFT.context),
        Where("choice", "in", tuple(sorted(proposals.ACTIONABLE))),
        Where("created_at", "from", call.now - PROPOSALS_WAIT),
    )
    decisions = (yield from find_all(Decision, (row.decision_id for row in rows))).values()
    authors = yield from find_all(Agent, (one.decided_by for one in decisions))
    drafted = (one for one in decisions if proposals.concerns_promoter(one, authors.get(one.decided_by)) and not one.ratings)
    unrated = [(one, target) for one in drafted if (target := proposals.target_of(one)) is not None]
    promoted = yield from find_all(Caution, (proposals.caution_id_of(one) for one, _ in unrated))
    open = [(one, target) for one, target in unrated if proposals.caution_id_of(one) not in promoted]
    plans = yield from find_all(Plan, (target.id for _, target in open if target.kind is CautionTargetKind.PLAN))
    return [waiting_proposal(one, target, plans.get(target.id)) for one, target in open]


def waiting_proposal(proposal: Decision, target: CautionTarget, plan: Plan | None) -> Waiting:
    """Return a proposal that waits; one about a plan is about its assets."""
    proposed = proposals.raw_proposal(proposal.inputs)
    title = str(proposed.get("title") or proposal.choice)
    asset_ids = (target.id,) if target.kind is CautionTargetKind.ASSET else () if plan is None else plan.asset_ids
    why = proposal.reasoning or f"An agent proposes a caution about a {target.kind.value.lower()}."
    commands = ("promote_caution_proposal", "rate_decision")
    return Waiting(WaitingKind.CAUTION_PROPOSAL, proposal.id, title, proposal.decided_at, why, commands, asset_ids)


def refused_firings(call: Call) -> Reads[list[Waiting]]:
    """Return the schedules that still fire and whose last firing came to nothing."""
    statuses = (ScheduleStatus.ACTIVE, ScheduleStatus.HELD)
    rows = yield from rows_where(ListSchedules, Where("status", "in", statuses))
    refused = {row.schedule_id for row in rows if (last := LAST.validate_python(row.last_firing)) and last.code}
    schedules = (yield from find_all(Schedule, sorted(refused))).values()
    plan_ids = {one.id: one.aim.plan_id for one in schedules if isinstance(one.aim, ConductPlan)}
    plans = yield from find_all(Plan, plan_ids.values())
    found = []
    for one in schedules:
        if (last := one.last_firing) is not None and last.code is not None:
            asset_ids = frozenset[UUID]().union(*(recipe.target_asset_ids for recipe in recipes_of(one.aim)))
            if (plan := plans.get(plan_ids.get(one.id, one.id))) is not None:
                asset_ids |= plan.asset_ids
            commands = ("trigger_schedule", "hold_schedule", "retire_schedule")
            why = last.detail or last.code
            kind = WaitingKind.REFUSED_FIRING
            found.append(Waiting(kind, one.id, one.name, last.scheduled_at, why, commands, asset_ids))
    return found


def approvals(call: Call) -> Reads[list[Waiting]]:
    """Return the proposals that the caller may approve."""
    rows = yield from rows_where(ListProposals, Where("status", "is", ProposalStatus.OPEN))
    proposed = yield from find_all(Proposal, (row.proposal_id for row in rows))
    return [waiting_approval(one) for one in (yield from approvable_proposals(proposed.values(), call))]


def waiting_approval(proposal: Proposal) -> Waiting:
    """Return a proposal that waits for its approval; one about an asset is about that."""
    operation = proposal.operation
    name = operation.name.replace("_", " ").capitalize() if operation is not None else proposal.command_name
    is_about_asset = operation is not None and operation.aggregate is Asset.aggregate
    why = f"It is proposed, and waits for approval until {proposal.expires_at:%Y-%m-%d %H:%M:%S}Z."
    commands = ("approve_proposal", "reject_proposal")
    asset_ids = (proposal.target_id,) if is_about_asset and proposal.target_id is not None else ()
    return Waiting(WaitingKind.PROPOSAL, proposal.id, name, proposal.created_at, why, commands, asset_ids)


Source = Callable[[Call], Reads[list[Waiting]]]
SOURCES: dict[Source, frozenset[WaitingKind]] = {
    held_runs: frozenset({WaitingKind.HELD_RUN}),
    held_procedures: frozenset({WaitingKind.HELD_PROCEDURE, WaitingKind.UNKNOWN_OUTCOME}),
    recovering_supplies: frozenset({WaitingKind.SUPPLY_RECOVERING}),
    reviewed_clearances: frozenset({WaitingKind.CLEARANCE_IN_REVIEW}),
    proposed_cautions: frozenset({WaitingKind.CAUTION_PROPOSAL}),
    refused_firings: frozenset({WaitingKind.REFUSED_FIRING}),
    approvals: frozenset({WaitingKind.PROPOSAL}),
}  # What finds each kind.


@question("/waiting", context="operation", returns=Page[WaitingItem], refuses=[AncestorWalkDepthExceededError])
class ListWaiting(Query):
    """Everything that waits for a person, the newest last, with the commands that resolve it and whether you may.

    Of proposals, those are listed that you may approve. With `asset_id`, what is about that asset, its parts and what it is
    part of; supplies of its facility included.
    """

    reads_projections: ClassVar[bool] = True
    asset_id: UUID | None = None
    kind: tuple[WaitingKind, ...] = ()
    limit: PageLimit = 50
    cursor: CursorText | None = None
    min_position: LogPosition | None = None

    def answer(self, call: Call) -> Reads[Page[WaitingItem]]:
        after = None if self.cursor is None else Cursor.parse(self.cursor, Order.ASC)
        wanted = frozenset(self.kind or WaitingKind)
        found: list[Waiting] = []
        for source, kinds in SOURCES.items():
            if wanted & kinds:
                found += (one for one in (yield from source(call)) if one.kind in wanted)
        listed = sorted((yield from self._in_scope(found)), key=lambda one: (one.since, one.id))
        rest = [one for one in listed if after is None or (one.since, one.id) > (after.time, after.id)]
        shown, permitted = rest[: self.limit], (yield from permitted_commands())
        more = Cursor(order=Order.ASC, time=shown[-1].since, id=shown[-1].id) if len(rest) > self.limit else None
        return Page(tuple(waiting_item(one, permitted) for one in shown), None if more is None else str(more))

    def _in_scope(self, found: Iterable[Waiting]) -> Reads[Iterable[Waiting]]:
        if self.asset_id is None:
            return found
        asset_ids = yield from related_asset_ids(self.asset_id)
        codes = {one.facility_code for one in (yield from ancestors_of([self.asset_id])).values()} - {None}
        return [
            one
            for one in found
            if (one.facility_code in codes if not one.asset_ids else not asset_ids.isdisjoint(one.asset_ids))
        ]


def waiting_item(waiting: Waiting, permitted: Collection[str]) -> WaitingItem:
    """Return something that waits as it is shown to a caller with these permissions."""
    operations = [REGISTRY.operations[name] for name in waiting.commands]
    return WaitingItem(
        kind=waiting.kind,
        id=waiting.id,
        name=waiting.name,
        since=waiting.since,
        why=waiting.why,
        asset_id=next(iter(waiting.asset_ids)) if len(waiting.asset_ids) == 1 else None,
        commands=tuple(
            ResolvingCommand(
                name=one.name,
                permitted=one.command_name in permitted,
                method=one.method,
                path=one.path.replace(f"{{{one.target}}}", str(waiting.id)),
            )
            for one in operations
        ),
    )
