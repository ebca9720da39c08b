"""The conditions of a start: everything that it asks for, now and at a later time, and who can change what is missing.
The gates themselves are judged at that time; where they rest on observations, the answer says that it is not known."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from baton.domain.access.actor import Actor
from baton.domain.access.group import Group, GroupStatus
from baton.domain.caution.caution import Caution, CautionTarget, cautions_in_force
from baton.domain.conduct.conduct import conducted_assets, witnessed_rivals
from baton.domain.enclosure.enclosure import enclosure_finding
from baton.domain.equipment.asset import Asset
from baton.domain.kernel import NIL, instant
from baton.domain.procedure.procedure import Procedure
from baton.domain.queue.forecast import live_estimate
from baton.domain.queue.queue import Queue
from baton.domain.recipe.plan import Plan
from baton.domain.registry import REGISTRY
from baton.domain.run.gates import Preconditions
from baton.domain.run.run import Run
from baton.domain.schedule.schedule import Schedule
from baton.domain.schedule.views import upcoming_firings
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.gates import Gate
from baton.domain.shared.listing import Page
from baton.domain.shared.monitoring import Contact, observation_age
from baton.domain.shared.reads import (
    Reads,
    Rows,
    all_members_of,
    ask,
    find_all,
    missing_grants,
    permitted_commands,
    records_of,
)
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import FreeText
from baton.domain.start.procedure_start import OBJECTIONS, assets_ready
from baton.domain.start.run_start import GATES, RunStart
from baton.domain.supply.coverage import supply_finding
from baton.domain.target.targets import ConductPlan, ConductRecipe, recipes_of
from baton.domain.trust.authorization import own_access
from baton.domain.trust.policy import POLICIES_BY_SURFACE, Policy
from baton.domain.trust.surface import SurfaceControl
from baton.domain.trust.visit import PRESENT, TERMINAL, ListVisits, Visit, VisitSummary
from baton.domain.views.armed_work import is_armed, load_armed_work, targets_of

F = TypeVar("F")
MOST_VISITS = 5  # Visits that are looked at.


class Holding(StrEnum):
    """Whether a condition is met; what rests on an observation is not known ahead."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Basis(StrEnum):
    """What the answer for a later time rests on."""

    RECORD = "record"
    FORECAST = "forecast"


class ConditionSubject(AnswerForm):
    """The thing that a condition is about."""

    type: str
    """The kind of thing, such as Asset or Clearance."""
    id: UUID | None
    name: FreeText


class CommandHolders(AnswerForm):
    """Who could give a command: groups, the number of active actors, and whether the caller could."""

    groups: tuple[str, ...]
    """The names of the groups whose members could give it."""
    count: int | None
    """Number of active actors who could give it; null where no policy is enforced."""
    you: bool
    """Whether the caller could give it at once."""


class ConditionChange(AnswerForm):
    """A command that changes what a condition asks for, and who could give it."""

    command: str
    """The name of the operation."""
    who: CommandHolders
    """Who could give it."""


class Condition(AnswerForm):
    """Something that a start asks for, or that is shown beside it: whether it holds now, and at the time asked for."""

    condition: str
    """The name of the gate that asks for it, or of what is shown besides."""
    about: ConditionSubject
    """The thing that it is about."""
    required: bool
    """Whether a start is refused, or its conduct held, without it; what is not required is only shown."""
    holds_now: Holding
    """Whether it holds now."""
    holds_then: Holding
    """Whether it holds at the time asked for."""
    until: datetime | None = None
    """When what holds lapses; null where nothing says so."""
    opens_at: datetime | None = None
    """When what does not hold begins to; null where nothing says so."""
    why: FreeText
    """What the answer rests on, in a sentence."""
    change: tuple[ConditionChange, ...] = ()
    """The commands that change it, where it does not surely hold."""
    rests_on: Basis = Basis.RECORD
    """Whether the answer for that time rests on the record or on a forecast."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A condition before it is known who can change it."""

    condition: str
    about: ConditionSubject
    now: Holding
    then: Holding
    why: str
    required: bool = True
    until: datetime | None = None
    opens_at: datetime | None = None
    commands: tuple[str, ...] = ()
    rests_on: Basis = Basis.RECORD

    def rank(self, ends_at: datetime | None) -> int:
        """Return its place: what fails then, what lapses before the end, what is not known, what holds."""
        if self.then is Holding.YES:
            lapses = ends_at is not None and self.until is not None and self.until < ends_at
            return 1 if lapses else 3
        return 0 if self.then is Holding.NO else 2


CHANGES: Mapping[str, tuple[str, ...]] = {
    "clearance_active": ("activate_clearance", "register_clearance"),
    "enclosure_permitted": ("observe_enclosure_status",),
    "supply_available": ("mark_supply_available", "restore_supply"),
    "calibrations_valid": ("append_calibration_revision",),
    "plan_current": ("define_plan",),
    "subject_mounted": ("mount_subject",),
    "assets_ready": ("restore_asset", "exit_asset_maintenance"),
    "families_covered": ("add_asset_family",),
    "parameters_valid": ("update_plan_default_parameters",),
    "wires_connected": ("add_plan_wire",),
    "roles_played": ("bind_plan_role",),
    "targets_unclaimed": ("hold_procedure", "abort_procedure"),
    "plan_window": ("reschedule_plan",),
    "caution": ("retire_caution",),
    "grants_present": ("extend_policy",),
}  # The commands that change what a condition asks for, where its refusal names none.
APART = frozenset(
    {"clearance_present", "supply_present", "supply_available", "enclosure_permitted", "calibrations_valid"}
)  # The gates whose conditions have a row for each thing that they ask about, or that another gate implies.


def load_conditions(
    start: RunStart, at: datetime, commands: Collection[str], ends_at: datetime | None = None
) -> Reads[tuple[Condition, ...]]:
    """Return what starting a run by these commands asks for, now and at a later time, what fails then first."""
    rows = [*gate_rows(start, at), *permit_rows(start), *supply_rows(start, at), *calibration_rows(start, at)]
    rows += [*caution_rows(start, at), *window_rows(start, at)]
    rows += yield from claim_rows(start, at)
    rows += yield from armed_rows(start, at)
    rows += yield from grant_rows(commands)
    rows += yield from visit_rows(start.now, at)
    rows.sort(key=lambda row: (row.rank(ends_at), not row.required))
    return (yield from with_changes(rows))


def yes_or_no(holds: bool) -> Holding:
    """Return whether something holds, as answers say it."""
    return Holding.YES if holds else Holding.NO


def refusal_of(gate: Gate[F], facts: F) -> Refusal | None:
    """Return the refusal of a gate that is closed, or None."""
    try:
        gate.rule(facts)
    except Refusal as refusal:
        return refusal
    return None


def gate_rows(start: RunStart, at: datetime) -> Iterator[Row]:
    """Yield a row for each gate that the record alone decides, judged now and at that time."""
    then = replace(start, now=at)
    gates: Sequence[Gate[RunStart]] = (*GATES, Gate(assets_ready, lambda facts: facts.asset_ids))
    for gate in gates:
        if gate.name in APART:
            continue
        now, later = refusal_of(gate, start), refusal_of(gate, then)
        present, coming = gate.window(start), gate.window(then)
        said = later or now
        yield Row(
            condition=gate.name,
            about=subject_of(gate.name, start, at),
            now=yes_or_no(now is None),
            then=yes_or_no(later is None),
            until=present.until if later is not None else coming.until,
            opens_at=coming.opens_at if later is not None else present.opens_at,
            why=(gate.rule.__doc__ or gate.name) if said is None else said.detail,
            commands=() if said is None else tuple(one.operation for one in said.next_steps),
        )


def subject_of(gate: str, start: RunStart, at: datetime) -> ConditionSubject:
    """Return the one thing that a gate is about: the form, the sample or the campaign, or else the plan."""
    if gate == "clearance_active" and start.clearances:
        form = max(start.clearances, key=lambda one: (one.valid_until is None or one.valid_until > at, one.id))
        return ConditionSubject(type="Clearance", id=form.id, name=form.title)
    if gate == "subject_mounted" and start.subject is not None:
        return ConditionSubject(type="Subject", id=start.subject.id, name=start.subject.name)
    if gate == "campaign_open" and start.campaign is not None:
        return ConditionSubject(type="Campaign", id=start.campaign.id, name=start.campaign.name)
    return ConditionSubject(type="Plan", id=start.plan.id, name=start.plan.name)


def age_text(contact: Contact | None, now: datetime) -> str:
    """Return how old the last observation is, in words."""
    age = observation_age(contact, now)
    return "never observed" if age is None else f"last observed {age:.0f} s ago"


def permit_rows(facts: Preconditions) -> Iterator[Row]:
    """Yield a row for each hutch: its permit is an observation, and not known ahead."""
    for id in sorted(facts.scope.enclosure_ids):
        finding = enclosure_finding((id,), facts.enclosures, facts.contacts, facts.now, facts.deployment)
        name = facts.enclosures[id].name if id in facts.enclosures else str(id)
        age = age_text(facts.contacts.get(id), facts.now)
        yield Row(
            condition="enclosure_permitted",
            about=ConditionSubject(type="Enclosure", id=id, name=name),
            now=yes_or_no(finding is None),
            then=Holding.UNKNOWN,
            why=f"The permit is {age}." if finding is None else finding.detail,
        )


def supply_rows(facts: Preconditions, at: datetime) -> Iterator[Row]:
    """Yield a row for each kind of supply: not known ahead, unless an outage is announced."""
    for kind in sorted(facts.needed_supplies):
        known = [one for one in facts.supplies if one.kind == kind]
        observed = (facts.supply_contacts, facts.now, facts.deployment)
        finding = supply_finding((kind,), known, *observed, facts.resuming)
        ages = ", ".join(f"{one.name} {age_text(facts.supply_contacts.get(one.id), facts.now)}" for one in known)
        outage = next((one for one in facts.deployment.planned_outages if one.covers(kind, at)), None)
        announced = "" if outage is None else f" An outage is announced from {instant(outage.starts_at)}."
        yield Row(
            condition="supply_available",
            about=ConditionSubject(type="Supply", id=known[0].id if known else None, name=kind),
            now=yes_or_no(finding is None),
            then=Holding.UNKNOWN if outage is None else Holding.NO,
            opens_at=None if outage is None else outage.ends_at,
            why=(f"A supply is available: {ages}." if finding is None else finding.detail) + announced,
            rests_on=Basis.RECORD if outage is None else Basis.FORECAST,
        )


def calibration_rows(start: RunStart, at: datetime) -> Iterator[Row]:
    """Yield a row for each pinned revision: valid until its end or, without one, as old as it will be."""
    for one, pin in start.pinned:
        age = (at - pin.established_at).days
        unending = f"It names no end; it is {age} days old then."
        yield Row(
            condition="calibrations_valid",
            about=ConditionSubject(type="Calibration", id=one.id, name=one.quantity),
            required=start.deployment.lapsed_calibrations_refused,
            now=yes_or_no(pin.is_valid(start.now)),
            then=yes_or_no(pin.is_valid(at)),
            until=pin.valid_until,
            why=unending if pin.valid_until is None else f"It lapses at {instant(pin.valid_until)}.",
        )


def caution_rows(start: RunStart, at: datetime) -> Iterator[Row]:
    """Yield a row for each caution that warns now or then; none keeps a start from beginning."""
    targets = frozenset({CautionTarget.model_validate({"kind": "Plan", "id": start.plan.id})})
    scope = (start.scope.bound_ids, start.scope.ancestor_ids, targets)
    warning: dict[UUID, Caution] = {}
    for moment in (start.now, at):
        warning |= {one.id: one for one in cautions_in_force(start.cautions, *scope, moment)}
    for caution in warning.values():
        yield Row(
            condition="caution",
            about=ConditionSubject(type="Caution", id=caution.id, name=caution.text[:200]),
            required=False,
            now=yes_or_no(not caution.in_effect(start.now)),
            then=yes_or_no(not caution.in_effect(at)),
            opens_at=caution.expires_at,
            why=f"A {caution.severity} warns of this; a start acknowledges it.",
        )


def window_rows(start: RunStart, at: datetime) -> Iterator[Row]:
    """Yield a row for the plan's window, where it has one; it informs only."""
    begins, ends = start.plan.window_starts_at, start.plan.window_ends_at
    if begins is not None and ends is not None:
        yield window_row("plan_window", ("Plan", start.plan.id, start.plan.name), (begins, ends), start.now, at)


def window_row(
    condition: str, about: tuple[str, UUID, str], window: tuple[datetime, datetime], now: datetime, at: datetime
) -> Row:
    """Return the row of what holds from a begin until just before an end, and is only shown."""
    begins, ends = window
    return Row(
        condition=condition,
        about=ConditionSubject(type=about[0], id=about[1], name=about[2]),
        required=False,
        now=yes_or_no(begins <= now < ends),
        then=yes_or_no(begins <= at < ends),
        until=ends,
        opens_at=begins if now < begins else None,
        why=f"It is planned from {instant(begins)} to {instant(ends)}.",
    )


def claim_rows(facts: RunStart, at: datetime) -> Reads[list[Row]]:
    """Return a row for each piece of live work that has assets to itself, by its estimated end; one row where none has."""
    found = yield from conducted_assets(facts.asset_ids)
    holders: dict[UUID, Procedure | Run] = {**found, **(yield from witnessed_rivals(facts.asset_ids, facts.now))}
    used: dict[UUID, list[Asset]] = {}
    for asset_id, holder in sorted(holders.items()):
        used.setdefault(holder.id, []).append(facts.scope.assets[asset_id])
    works = {holder.id: holder for holder in holders.values()}
    rows = [] if works else [unclaimed_row(facts)]
    for id, assets in used.items():
        ends = yield from expected_end(works[id], facts.now)
        names = ", ".join(asset.name for asset in assets)
        said = f"and is expected to end at {instant(ends)}" if ends else "and nobody knows when it ends"
        rows.append(
            Row(
                condition="targets_unclaimed",
                about=ConditionSubject(type=type(works[id]).__name__, id=id, name=works[id].name),
                now=Holding.NO,
                then=Holding.UNKNOWN if ends is None else yes_or_no(ends <= at),
                opens_at=ends,
                why=f"{works[id].name} has {names} to itself, {said}.",
                rests_on=Basis.FORECAST,
            )
        )
    return rows


def unclaimed_row(start: RunStart) -> Row:
    """Return the row of assets that no live work has to itself; the work of later is not on record."""
    return Row(
        condition="targets_unclaimed",
        about=subject_of("targets_unclaimed", start, start.now),
        now=Holding.YES,
        then=Holding.YES,
        why="No live work has the assets to itself.",
        rests_on=Basis.FORECAST,
    )


def expected_end(holder: Procedure | Run, now: datetime) -> Reads[datetime | None]:
    """Return when live work is expected to end: the whole run, where a phase has the assets; None where it is not known."""
    if isinstance(holder, Run):
        return None
    estimate = yield from live_estimate(None if holder.parent_run_id else holder.id, holder.parent_run_id, now)
    if estimate is None and holder.parent_run_id is not None:
        estimate = yield from live_estimate(holder.id, None, now)
    return None if estimate is None else estimate.ends_at


def armed_rows(start: RunStart, at: datetime) -> Reads[list[Row]]:
    """Return a row for each queue with items that wait, and each schedule that fires before that time, on these assets."""
    if not {"GetQueue", "GetSchedule"} <= (yield from permitted_commands()):
        return []
    armed = [one for one in (yield from load_armed_work(None)) if is_armed(one)]
    aims = {one.id: targets_of(one) for one in armed}
    plan_ids = {aim.plan_id for some in aims.values() for aim in some if isinstance(aim, ConductPlan)}
    plans = yield from find_all(Plan, sorted(plan_ids))
    near = [one for one in armed if any(not start.asset_ids.isdisjoint(aimed_assets(aim, plans)) for aim in aims[one.id])]
    said = ((one, coming_work(one, start.now, at)) for one in near)
    return [
        Row(
            condition=type(one).__name__.lower(),
            about=ConditionSubject(type=type(one).__name__, id=one.id, name=one.name),
            required=False,
            now=Holding.YES,
            then=Holding.UNKNOWN,
            why=why,
            commands=("hold_queue" if isinstance(one, Queue) else "hold_schedule",),
            rests_on=Basis.FORECAST,
        )
        for one, why in said
        if why is not None
    ]


def coming_work(armed: Queue | Schedule, now: datetime, at: datetime) -> str | None:
    """Return what a queue or a schedule would start until that time, in a sentence; None where it starts nothing."""
    if isinstance(armed, Queue):
        return f"{len(armed.ahead)} items wait in this queue, and may have the assets then." if armed.ahead else None
    ahead = upcoming_firings(armed.status, armed.calendar, armed.time_zone, now, 1)
    return f"It fires at {instant(ahead[0])}, and may have the assets then." if ahead and ahead[0] <= at else None


def aimed_assets(target: ConductPlan | ConductRecipe, plans: Mapping[UUID, Plan]) -> frozenset[UUID]:
    """Return the assets that a target names, or that its plan binds; not those whose signals its recipes write besides."""
    own = frozenset[UUID]().union(*(one.target_asset_ids for one in recipes_of(target)))
    plan = plans.get(target.plan_id) if isinstance(target, ConductPlan) else None
    return own if plan is None else own | plan.asset_ids


def grant_rows(commands: Collection[str]) -> Reads[list[Row]]:
    """Return a row for the permissions of the caller, and one for the approval that they need, if any."""
    objection, missing = yield from missing_grants(*commands)
    access = yield from own_access()
    approved = access.with_approval & set(missing)
    lacking = sorted(set(missing) - approved)
    granted = yes_or_no(objection is None and not lacking)
    own = ConditionSubject(type="Actor", id=None, name="you")
    why = f"You do not hold {', '.join(lacking)} here." if lacking else "Your policies permit it."
    why = why if objection is None else f"{OBJECTIONS[objection]}."
    rows = [Row(condition="grants_present", about=own, now=granted, then=granted, why=why)]
    if approved:
        said = f"{', '.join(sorted(approved))} becomes a proposal, which a second person approves."
        rows.append(
            Row(
                condition="approval",
                about=own,
                now=Holding.NO,
                then=Holding.UNKNOWN,
                why=said,
                commands=("approve_proposal",),
            )
        )
    return rows


def visit_rows(now: datetime, at: datetime) -> Reads[list[Row]]:
    """Return rows that inform: of the caller's visits now or then, those that drive their surface, and their people."""
    if not {"ListVisits", "GetVisit", "GetSurfaceControl"} <= (yield from permitted_commands()):
        return []
    query = ListVisits(planned_from=now, planned_to=at, limit=MOST_VISITS)
    page: Page[VisitSummary] = yield Rows(VisitSummary, query, tuple(query.where()))
    found = yield from find_all(Visit, [one.visit_id for one in page.items if one.status not in TERMINAL])
    policies = {policy.id for policy in (yield from own_access()).policies}
    visits = [one for one in found.values() if not policies or one.policy_id in policies]
    surface_ids = tuple({one.surface_id for one in visits})
    controls = (yield from records_of(SurfaceControl, surface_id=surface_ids)) if surface_ids else ()
    driving = {one.visit_id for one in controls}
    rows = []
    for visit in visits:
        about, window = ("Visit", visit.id, f"{visit.type} visit"), (visit.planned_start_at, visit.planned_end_at)
        rows.append(window_row("visit_window", about, window, now, at))
        if visit.id in driving:
            rows.append(window_row("surface_control", about, window, now, at))
        if visit.status in PRESENT:
            rows.append(people_row(visit, window_row("people", about, window, now, at)))
    return rows


def people_row(visit: Visit, planned: Row) -> Row:
    """Return the row of the people of a visit: checked in now, and expected by its plan."""
    count = sum(one.check_out_at is None for one in visit.presence_entries)
    then = Holding.UNKNOWN if planned.then is Holding.YES else planned.then
    why = f"Checked in now: {count}. {planned.why}"
    return replace(planned, now=yes_or_no(count > 0), then=then, why=why, rests_on=Basis.FORECAST)


def with_changes(rows: Sequence[Row]) -> Reads[tuple[Condition, ...]]:
    """Return rows as conditions, each with the commands that change it and who could give them."""
    named = [changing_commands(row) for row in rows]
    holders = yield from holders_of({name for names in named for name in names})
    return tuple(as_condition(row, names, holders) for row, names in zip(rows, named, strict=True))


def changing_commands(row: Row) -> tuple[str, ...]:
    """Return the commands that change what a row asks for; none where it holds and nothing lapses."""
    surely = row.now is row.then is Holding.YES and row.until is None
    return () if surely else tuple(dict.fromkeys(row.commands or CHANGES.get(row.condition, ())))


def as_condition(row: Row, commands: Iterable[str], holders: Mapping[str, CommandHolders]) -> Condition:
    """Return a row with the commands that change it; it says so where nobody can give one of them."""
    change = tuple(ConditionChange(command=name, who=holders[name]) for name in commands)
    nobody = bool(change) and all(one.who.count == 0 for one in change)
    return Condition(
        condition=row.condition,
        about=row.about,
        required=row.required,
        holds_now=row.now,
        holds_then=row.then,
        until=row.until,
        opens_at=row.opens_at,
        why=f"{row.why} Nobody may change that." if nobody else row.why,
        change=change,
        rests_on=row.rests_on,
    )


def holders_of(operations: Collection[str]) -> Reads[dict[str, CommandHolders]]:
    """Return who could give each of these at once: groups, how many active actors, and whether the caller could."""
    if not operations:
        return {}
    names = {name: REGISTRY.operations[name].command_name for name in operations}
    permitted = yield from permitted_commands()
    if not (yield from ask(DeploymentPort.deployment)).policies_enforced:
        return {name: CommandHolders(groups=(), count=None, you=True) for name in names}
    found = yield from find_all(Policy, (yield from all_members_of(POLICIES_BY_SURFACE)))
    policies = [one for one in found.values() if one.surface_id != NIL and one.approval is None]
    groups = yield from find_all(Group, sorted({id for one in policies for id in one.permitted_group_ids}))
    serving = {id: group for id, group in groups.items() if group.status is GroupStatus.ACTIVE}
    listed = [group.member_ids for group in serving.values()]
    people = frozenset[UUID]().union(*(one.permitted_principal_ids for one in policies), *listed)
    actors: dict[UUID, Actor] = yield from find_all(Actor, sorted(people))
    answer = {}
    for name, command in names.items():
        granting = [one for one in policies if one.permits(command)]
        own = [serving[id] for id in sorted({id for one in granting for id in one.permitted_group_ids}) if id in serving]
        ids = frozenset[UUID]().union(*(one.permitted_principal_ids for one in granting), *(one.member_ids for one in own))
        count = sum(id in actors and actors[id].active for id in ids)
        answer[name] = CommandHolders(groups=tuple(sorted(one.name for one in own)), count=count, you=command in permitted)
    return answer
