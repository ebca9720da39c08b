"""What waits for a person: lost, held and failed work, unknown outcomes, closing steps that failed, queues that are held or
blocked, wrong copies, supplies that come back, clearances in review, proposed cautions, refused firings, and proposals, each
with the commands that resolve it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field
from pydantic_core import to_jsonable_python

from baton.domain.access.actor import Appearance, Names, appearance, names_of
from baton.domain.agent import caution_proposal as proposals
from baton.domain.agent.agent import Agent
from baton.domain.caution.caution import Caution, CautionTarget, CautionTargetKind
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import LOST
from baton.domain.conduct.estimates import AT_A_STEP
from baton.domain.conduct.live_work import load_lost_work
from baton.domain.conduct.plan_progress import PlanStepView, running_plan, unknown_plan
from baton.domain.conduct.progress import CLOSING_FAILED, ConductProgress
from baton.domain.conduct.run_conduct import phases_left
from baton.domain.data.dataset import Dataset
from baton.domain.data.distribution import STALE, Distribution, ListDistributions
from baton.domain.decision.decision import Decision, ListDecisions
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, ancestors_of, related_asset_ids
from baton.domain.kernel import Call, CursorText, LogPosition, PageLimit, Query, Value
from baton.domain.procedure.procedure import ListProcedures, Procedure, ProcedureHeld, ProcedureStatus
from baton.domain.queue.queue import ACTIVE, Queue, QueueHeld, QueueItemBlocked, QueueStatus
from baton.domain.queue.views import ListQueues
from baton.domain.recipe.plan import Plan
from baton.domain.registry import REGISTRY, Operation, standalone_query
from baton.domain.run.run import FAILED_RUNS, HELD, ListRuns, Run, RunAborted, RunHeld, RunWitnessed
from baton.domain.run.witness import PAST_GATE
from baton.domain.safety.clearance import ClearanceStatus
from baton.domain.safety.clearance_views import BoundRecords, ListClearances
from baton.domain.schedule.schedule import Schedule, ScheduleStatus
from baton.domain.schedule.views import LAST, ListSchedules
from baton.domain.shared.listing import Cursor, ListQuery, Order, Page, Where
from baton.domain.shared.monitoring import TriggerSource
from baton.domain.shared.reads import Reads, Rows, all_members_of, find_all, latest_events, permitted_commands, records_of
from baton.domain.shared.text import FreeText
from baton.domain.start.procedure_start import resuming_command
from baton.domain.supply.supply import ListSupplies, SupplyStatus
from baton.domain.target.targets import ConductPlan, recipes_of
from baton.domain.trust.proposal import ListProposals, Proposal, ProposalStatus, approvable_proposals, awaits_approval

PAGE = 100  # Rows that one look at a list takes.
PROPOSALS_WAIT = timedelta(days=30)  # A proposal that nobody took up for so long is not waited for any more.


class WaitingKind(StrEnum):
    LOST_CONDUCT = "lost_conduct"
    HELD_RUN = "held_run"
    HELD_PROCEDURE = "held_procedure"
    UNKNOWN_OUTCOME = "unknown_outcome"
    SILENT_PLAN = "silent_plan"
    CLOSING_FAILED = "closing_failed"
    FAILED_RUN = "failed_run"
    WITNESSED_PAST_GATE = "witnessed_past_gate"
    HELD_QUEUE = "held_queue"
    BLOCKED_QUEUE_ITEM = "blocked_queue_item"
    WRONG_COPY = "wrong_copy"
    SUPPLY_RECOVERING = "supply_recovering"
    CLEARANCE_IN_REVIEW = "clearance_in_review"
    CAUTION_PROPOSAL = "caution_proposal"
    REFUSED_FIRING = "refused_firing"
    PROPOSAL = "proposal"


@dataclass(frozen=True)
class Waiting:
    """Something that waits: since when, why, on which assets or in which facility, and the commands that resolve it, with
    what is known of their arguments. The first command is one of the thing itself."""

    kind: WaitingKind
    id: UUID
    name: str
    since: datetime
    why: str
    commands: tuple[str, ...]
    asset_ids: Collection[UUID] = ()
    facility_code: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    holder: Appearance | None = None  # Of what is held.
    plan_step: PlanStepView | None = None  # Of a step whose plan is silent, or whose outcome is unknown.
    withheld: frozenset[str] = frozenset()  # Commands that this thing keeps from the caller, whatever the policies permit.


class ResolvingCommand(Value):
    """A command that resolves what waits, or a query that shows it: its address, what is known of its arguments, and
    whether the caller's policies permit it."""

    name: str
    permitted: bool
    """Whether the caller's policies permit it."""
    method: str
    path: str
    arguments: dict[str, Any]
    """The arguments that are known: the id of what waits, and what belongs to it."""


class WaitingItem(Value):
    """Something that waits for a person: `id` of what, `about` what kind of thing; `asset_id` is null where it is about
    several assets or none."""

    kind: WaitingKind
    id: UUID
    about: str
    """The kind of thing that waits, such as Run or Queue."""
    name: FreeText
    since: datetime
    why: FreeText
    """What it waits for, in a sentence."""
    asset_id: UUID | None
    asset_ids: tuple[UUID, ...]
    held_by: UUID | None
    """Who holds it; null where it is not held."""
    held_by_name: str | None
    commands: tuple[ResolvingCommand, ...]
    """The commands that resolve it."""
    plan_step: PlanStepView | None = None
    """The Bluesky plan of a step whose outcome is unknown, or that is silent; null for all else."""


def rows_where(query: type[ListQuery], *where: Where) -> Reads[list[Any]]:
    """Return every row of a list that meets these conditions."""
    rows: list[object] = []
    cursor: str | None = None
    while True:
        page: Page[object] = yield Rows(query.summary, query(limit=PAGE, cursor=cursor), where)
        rows += page.items
        if (cursor := page.next_cursor) is None:
            return rows


def lost_conducts(call: Call) -> Reads[list[Waiting]]:
    """Return the runs and procedures that are Running on the record alone, since the engine lost their conducts."""
    lost = yield from load_lost_work(None)
    found = [waiting_lost_procedure(one.procedure, one.since) for one in lost.procedures]
    for one in lost.runs:
        left = yield from phases_left(one.run)
        go_on, arguments = ("conduct_run", {"phases": left}) if left else ("complete_run", {})
        commands = ("get_run_conduct", go_on, "abort_run")
        why = "The engine does not know of the conduct of this run any more; look at its phases before going on."
        kind, since, asset_ids = WaitingKind.LOST_CONDUCT, one.run.updated_at, one.plan.asset_ids
        found.append(Waiting(kind, one.run.id, one.run.name, since, why, commands, asset_ids, arguments=arguments))
    return found


def waiting_lost_procedure(procedure: Procedure, since: datetime) -> Waiting:
    """Return a procedure whose conduct the engine lost."""
    return Waiting(
        WaitingKind.LOST_CONDUCT,
        procedure.id,
        procedure.name,
        since,
        LOST.message,
        ("get_procedure_conduct", resuming_command(procedure), "abort_procedure"),
        procedure.judged_asset_ids,
    )


def failed_closings(call: Call) -> Reads[list[Waiting]]:
    """Return the procedures with a closing step that failed and that nobody has looked at."""
    found = yield from find_all(Procedure, (yield from all_members_of(CLOSING_FAILED)))
    waiting = []
    for one in found.values():
        if one.closing_failures and one.live_conduct_id is None:
            first, more = one.closing_failures[0], len(one.closing_failures) - 1
            others = f" ({more} more closing step{'' if more == 1 else 's'} failed)" if more else ""
            why = f"Closing step of {first.target} failed: {first.message}{others}"
            commands = ("acknowledge_procedure", "get_procedure_conduct")
            since, kind = one.ended_at or one.last_status_changed_at, WaitingKind.CLOSING_FAILED
            waiting.append(Waiting(kind, one.id, one.name, since, why, commands, one.judged_asset_ids))
    return waiting


def failed_runs(call: Call) -> Reads[list[Waiting]]:
    """Return the runs that failed by themselves, until somebody has written a note or says that they have looked."""
    runs = yield from find_all(Run, (yield from all_members_of(FAILED_RUNS)))
    plans = yield from find_all(Plan, (run.plan_id for run in runs.values()))
    found = []
    for run in runs.values():
        (aborted,) = yield from latest_events(run.id, RunAborted, count=1)
        commands = ("acknowledge_run", "append_run_logbook_entries", "get_run_conduct")
        kind, since = WaitingKind.FAILED_RUN, aborted.occurred_at
        found.append(Waiting(kind, run.id, run.name, since, aborted.reason, commands, plans[run.plan_id].asset_ids))
    return found


def runs_past_gates(call: Call) -> Reads[list[Waiting]]:
    """Return the runs elsewhere that began with a gate closed or overridden, until a person has written a note."""
    runs = yield from find_all(Run, (yield from all_members_of(PAST_GATE)))
    plans = yield from find_all(Plan, (run.plan_id for run in runs.values()))
    found = []
    for run in runs.values():
        (witnessed,) = yield from latest_events(run.id, RunWitnessed, count=1)
        closed = [gate.detail for gate in witnessed.gates or () if not gate.passed and gate.detail]
        reason = (witnessed.override_reason or "").rstrip(".")
        overridden = [f"The gates were overridden: {reason}."] if reason else []
        commands, kind = ("append_run_logbook_entries", "get_run"), WaitingKind.WITNESSED_PAST_GATE
        asset_ids, why = plans[run.plan_id].asset_ids | run.used_asset_ids, " ".join((*overridden, *closed))
        found.append(Waiting(kind, run.id, run.name, witnessed.occurred_at, why, commands, asset_ids))
    return found


def stopped_queues(call: Call) -> Reads[list[Waiting]]:
    """Return the queues that are held, and those whose first item is blocked until somebody does something."""
    held = yield from rows_where(ListQueues, Where("status", "is", QueueStatus.HELD))
    blocked = yield from rows_where(ListQueues, Where("blocked", "is", True))
    queues = yield from find_all(Queue, (row.queue_id for row in (*held, *blocked)))
    found: list[Waiting] = []
    for queue in queues.values():
        if queue.status is QueueStatus.HELD:
            (event,) = yield from latest_events(queue.id, QueueHeld, count=1)
            why, commands = event.reason, ("resume_queue", "retire_queue")
            kind, asset_ids = WaitingKind.HELD_QUEUE, (queue.asset_id,)
            thing, since, holder = (kind, queue.id, queue.name), event.occurred_at, appearance(event)
            found.append(Waiting(*thing, since, why, commands, asset_ids, holder=holder))
        elif queue.status is ACTIVE and queue.blocked and queue.ahead[0].code not in PASS_BY_THEMSELVES:
            (blocking,) = yield from latest_events(queue.id, QueueItemBlocked, count=1)
            found.append(waiting_item_of(queue, blocking))
    return found


PASS_BY_THEMSELVES = frozenset({ConductProcedure.Cannot.__name__})
"""The refusals of a queue's item that nobody has to do anything about: another conduct has its asset."""


def waiting_item_of(queue: Queue, blocked: QueueItemBlocked) -> Waiting:
    """Return the first item of a queue, which is blocked."""
    item = queue.ahead[0]
    return Waiting(
        WaitingKind.BLOCKED_QUEUE_ITEM,
        queue.id,
        f"{item.title} in {queue.name}",
        blocked.occurred_at,
        item.detail or blocked.detail,
        ("edit_queue_item", "remove_queue_item", "hold_queue"),
        (queue.asset_id,),
        arguments={"item_id": item.item_id},
    )


def wrong_copies(call: Call) -> Reads[list[Waiting]]:
    """Return the copies whose bytes were read and have another checksum; what somebody says of a copy, somebody knows."""
    rows = yield from rows_where(ListDistributions, Where("status", "is", STALE))
    copies = yield from find_all(Distribution, (row.distribution_id for row in rows))
    wrong = [one for one in copies.values() if one.status is STALE and one.stale_trigger is not TriggerSource.OPERATOR]
    datasets = yield from find_all(Dataset, (one.dataset_id for one in wrong))
    runs = yield from find_all(Run, (one.producing_run_id for one in datasets.values() if one.producing_run_id is not None))
    plans = yield from find_all(Plan, (run.plan_id for run in runs.values()))
    found = []
    for one in wrong:
        dataset = datasets[one.dataset_id]
        run = None if dataset.producing_run_id is None else runs.get(dataset.producing_run_id)
        asset_ids = () if run is None else plans[run.plan_id].asset_ids
        since, why = one.marked_stale_at or one.registered_at, f"{one.uri}: {one.stale_reason}"
        commands, ids = ("discard_distribution", "record_attestation"), {"dataset_id": dataset.id, "distribution_id": one.id}
        kind = WaitingKind.WRONG_COPY
        found.append(Waiting(kind, one.id, dataset.name, since, why, commands, asset_ids, arguments=ids))
    return found


def held_runs(call: Call) -> Reads[list[Waiting]]:
    """Return the runs that are held."""
    rows = yield from rows_where(ListRuns, Where("status", "is", HELD))
    runs = yield from find_all(Run, (row.run_id for row in rows))
    plans = yield from find_all(Plan, (run.plan_id for run in runs.values()))
    found = []
    for run in (one for one in runs.values() if one.status is HELD):
        (held,) = yield from latest_events(run.id, RunHeld, count=1)
        ends = ("truncate_run",) if run.witnessed else ("stop_run", "abort_run")
        why, commands = held.reason or "It was held without a reason.", ("resume_run", *ends)
        thing, asset_ids = (WaitingKind.HELD_RUN, run.id, run.name), plans[run.plan_id].asset_ids
        found.append(Waiting(*thing, held.occurred_at, why, commands, asset_ids, holder=appearance(held)))
    return found


def held_procedures(call: Call) -> Reads[list[Waiting]]:
    """Return the procedures that are held, and among them those with a step whose outcome nobody knows."""
    rows = yield from rows_where(ListProcedures, Where("status", "is", ProcedureStatus.HELD))
    found = []
    for one in (yield from find_all(Procedure, (row.procedure_id for row in rows))).values():
        if one.status is ProcedureStatus.HELD and one.live_conduct_id is None:
            (held,) = yield from latest_events(one.id, ProcedureHeld, count=1)
            waiting = waiting_procedure(one, appearance(held))
            if waiting.kind is WaitingKind.UNKNOWN_OUTCOME and (plan := (yield from unknown_plan(one))) is not None:
                waiting = replace(waiting, why=f"{waiting.why} Known: {plan.evidence}.", plan_step=plan)
            found.append(waiting)
    return found


def silent_plans(call: Call) -> Reads[list[Waiting]]:
    """Return the conducts that wait for a Bluesky plan of which nothing was heard for two minutes."""
    rows = yield from records_of(ConductProgress, phase=tuple(phase.value for phase in AT_A_STEP))
    at_plans = [row for row in rows if row.plan_step is not None]
    procedures = yield from find_all(Procedure, (row.procedure_id for row in at_plans))
    found = []
    for row in at_plans:
        one, plan = procedures[row.procedure_id], (yield from running_plan(row, call.now))
        if plan is None or plan.silent_since is None or one.live_conduct_id != row.conduct_id:
            continue
        why = f"Nothing was heard of its plan for two minutes; look at {plan.executor}. Known: {plan.evidence}."
        thing, commands = (WaitingKind.SILENT_PLAN, one.id, one.name), ("get_procedure_conduct", *ENDING)
        found.append(Waiting(*thing, plan.silent_since, why, commands, one.judged_asset_ids, plan_step=plan))
    return found


ENDING = ("hold_procedure", "abort_procedure")


def waiting_procedure(procedure: Procedure, holder: Appearance) -> Waiting:
    """Return a held procedure, as one to resolve first where a step of it may or may not have been done."""
    unknown = procedure.unknown_step
    resolved = {(one.conduct_id, one.iteration_index, one.step_index) for one in procedure.resolved_steps}
    open_step = unknown is not None and (unknown.conduct_id, unknown.iteration_index, unknown.step_index) not in resolved
    return Waiting(
        WaitingKind.UNKNOWN_OUTCOME if open_step else WaitingKind.HELD_PROCEDURE,
        procedure.id,
        procedure.name,
        procedure.last_status_changed_at,
        procedure.last_status_reason or "It was held without a reason.",
        ("resolve_procedure_step" if open_step else resuming_command(procedure), "abort_procedure"),
        procedure.judged_asset_ids,
        holder=holder,
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
    """Return the schedules that still fire and whose last firing was refused."""
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
    """Return the open proposals, those that the caller may not approve as well."""
    rows = yield from rows_where(ListProposals, Where("status", "is", ProposalStatus.OPEN))
    proposed = yield from find_all(Proposal, (row.proposal_id for row in rows))
    approvable = {one.id for one in (yield from approvable_proposals(proposed.values(), call))}
    open_now = (one for one in proposed.values() if awaits_approval(one, call.now))
    return [waiting_approval(one, call.principal_id, may_decide=one.id in approvable) for one in open_now]


DECIDING = ("approve_proposal", "reject_proposal")


def waiting_approval(proposal: Proposal, principal_id: UUID, *, may_decide: bool) -> Waiting:
    """Return a proposal that waits for its approval; one about an asset is about that."""
    operation = proposal.operation
    name = operation.name.replace("_", " ").capitalize() if operation is not None else proposal.command_name
    is_about_asset = operation is not None and operation.aggregate is Asset.aggregate
    return Waiting(
        WaitingKind.PROPOSAL,
        proposal.id,
        name,
        proposal.created_at,
        f"It is proposed, and waits for approval until {proposal.expires_at:%Y-%m-%d %H:%M:%S}Z.",
        (*DECIDING, "withdraw_proposal") if principal_id == proposal.proposed_by else DECIDING,
        (proposal.target_id,) if is_about_asset and proposal.target_id is not None else (),
        withheld=frozenset() if may_decide else frozenset(DECIDING),
    )


Source = Callable[[Call], Reads[list[Waiting]]]
SOURCES: dict[Source, frozenset[WaitingKind]] = {
    lost_conducts: frozenset({WaitingKind.LOST_CONDUCT}),
    held_runs: frozenset({WaitingKind.HELD_RUN}),
    held_procedures: frozenset({WaitingKind.HELD_PROCEDURE, WaitingKind.UNKNOWN_OUTCOME}),
    silent_plans: frozenset({WaitingKind.SILENT_PLAN}),
    failed_closings: frozenset({WaitingKind.CLOSING_FAILED}),
    failed_runs: frozenset({WaitingKind.FAILED_RUN}),
    runs_past_gates: frozenset({WaitingKind.WITNESSED_PAST_GATE}),
    stopped_queues: frozenset({WaitingKind.HELD_QUEUE, WaitingKind.BLOCKED_QUEUE_ITEM}),
    wrong_copies: frozenset({WaitingKind.WRONG_COPY}),
    recovering_supplies: frozenset({WaitingKind.SUPPLY_RECOVERING}),
    reviewed_clearances: frozenset({WaitingKind.CLEARANCE_IN_REVIEW}),
    proposed_cautions: frozenset({WaitingKind.CAUTION_PROPOSAL}),
    refused_firings: frozenset({WaitingKind.REFUSED_FIRING}),
    approvals: frozenset({WaitingKind.PROPOSAL}),
}  # What finds each kind.


@standalone_query("/waiting", context="operation", returns=Page[WaitingItem], refuses=[AncestorWalkDepthExceededError])
class ListWaiting(Query[Page[WaitingItem]]):
    """Everything that waits for a person, the newest last, with the commands that resolve it and whether you may.

    With `asset_id`, what is about it, its parts and what it is part of; supplies of its facility included.
    """

    reads_projections: ClassVar[bool] = True
    asset_id: UUID | None = None
    kind: tuple[WaitingKind, ...] = ()
    permitted: Annotated[bool, Field(description="Only what the caller may resolve by its first command.")] = False
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
        permitted = yield from permitted_commands()
        if self.permitted:
            found = [one for one in found if may_give(REGISTRY.operations[one.commands[0]], one, permitted)]
        listed = sorted((yield from self._in_scope(found)), key=lambda one: (one.since, one.id))
        rest = [one for one in listed if after is None or (one.since, one.id) > (after.time, after.id)]
        shown = rest[: self.limit]
        more = Cursor(order=Order.ASC, time=shown[-1].since, id=shown[-1].id) if len(rest) > self.limit else None
        names = yield from names_of(one.holder for one in shown if one.holder is not None)
        return Page(tuple(waiting_item(one, permitted, names) for one in shown), None if more is None else str(more))

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


def waiting_item(waiting: Waiting, permitted: Collection[str], names: Names) -> WaitingItem:
    """Return something that waits as it is shown to a caller with these permissions."""
    operations = [REGISTRY.operations[name] for name in waiting.commands]
    return WaitingItem(
        kind=waiting.kind,
        id=waiting.id,
        about=operations[0].aggregate.name if operations[0].aggregate is not None else "",
        name=waiting.name,
        since=waiting.since,
        why=waiting.why,
        asset_id=next(iter(waiting.asset_ids)) if len(waiting.asset_ids) == 1 else None,
        asset_ids=tuple(sorted(waiting.asset_ids)),
        held_by=None if waiting.holder is None else waiting.holder[0],
        held_by_name=None if waiting.holder is None else names[waiting.holder],
        commands=tuple(resolving_command(one, waiting, may_give(one, waiting, permitted)) for one in operations),
        plan_step=waiting.plan_step,
    )


def may_give(operation: Operation, waiting: Waiting, permitted: Collection[str]) -> bool:
    """Return whether a caller with these permissions may give a command on something that waits."""
    return (operation.open or operation.command_name in permitted) and operation.name not in waiting.withheld


def resolving_command(operation: Operation, waiting: Waiting, permitted: bool) -> ResolvingCommand:
    """Return a command that resolves something, with the arguments of it that are known."""
    target = {} if operation.target is None else {operation.target: str(waiting.id)}
    known = {name: value for name, value in waiting.arguments.items() if name in operation.input.model_fields}
    return ResolvingCommand(
        name=operation.name,
        permitted=permitted,
        method=operation.method,
        path=operation.path.replace(f"{{{operation.target}}}", str(waiting.id)),
        arguments={**target, **to_jsonable_python(known)},
    )
