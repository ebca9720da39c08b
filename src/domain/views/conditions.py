"""The conditions of a start: everything that it asks for, now and at a later time, and who can change what is missing.
The gates themselves are judged at that time; where they rest on observations, the answer says that it is not known."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from baton.domain.access.actor import Actor
from baton.domain.access.group import Group, GroupStatus
from baton.domain.calibration.calibration import Calibration, Revision
from baton.domain.caution.caution import Caution, CautionTarget, cautions_in_force, cautions_in_scope
from baton.domain.conduct.conduct import conducted_assets, witnessed_rivals
from baton.domain.enclosure.enclosure import enclosure_finding
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.partition import LookupTable
from baton.domain.kernel import NIL, Call, instant
from baton.domain.next_steps import steps_to_state
from baton.domain.procedure.procedure import Procedure
from baton.domain.queue.forecast import FORECAST, forecast_queue, live_estimate
from baton.domain.queue.queue import Queue
from baton.domain.recipe.plan import Plan
from baton.domain.registry import REGISTRY
from baton.domain.run.gates import Preconditions
from baton.domain.run.run import Run
from baton.domain.safety.clearance import ClearanceReview, ClearanceStatus, barred_reviewers
from baton.domain.safety.coverage import is_in_force
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
from baton.domain.start import procedure_start, run_start
from baton.domain.start.procedure_start import OBJECTIONS, assets_ready
from baton.domain.start.run_start import RunStart
from baton.domain.supply.coverage import supply_finding
from baton.domain.target.targets import ConductPlan, ConductRecipe, recipes_of
from baton.domain.trust.authorization import own_access
from baton.domain.trust.policy import POLICIES_BY_SURFACE, Policy
from baton.domain.trust.surface import SurfaceControl
from baton.domain.trust.visit import PRESENT, TERMINAL, ListVisits, Visit, VisitSummary
from baton.domain.views.armed_work import is_armed, load_armed_work, targets_of

F = TypeVar("F")
MOST_VISITS = 5  # Visits that are looked at.
NAMED = 3  # Items of a queue that are named.


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
    barred: frozenset[UUID] = frozenset()
    """The actors who may not judge it, whatever they hold."""
    rests_on: Basis = Basis.RECORD

    @property
    def key(self) -> tuple[str, str, UUID | None, str]:
        """Return what makes two rows tell of the same."""
        return (self.condition, self.about.type, self.about.id, self.about.name)

    def rank(self, ends_at: datetime | None) -> int:
        """Return its place: what fails then, what lapses before the end, what is not known, what holds."""
        if self.then is Holding.YES:
            lapses = ends_at is not None and self.until is not None and self.until < ends_at
            return 1 if lapses else 3
        return 0 if self.then is Holding.NO else 2


CHANGES: Mapping[str, tuple[str, ...]] = {
    "clearance_active": ("activate_clearance", "register_clearance"),
    "clearance_in_force": ("activate_clearance", "register_clearance"),
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
    {
        *("clearance_present", "supply_present", "supply_available", "supplies_available"),
        *("enclosure_permitted", "enclosures_permitted", "calibrations_valid"),
    }
)  # The gates whose conditions have a row for each thing that they ask about, or that another gate implies.


@dataclass(frozen=True)
class ForeseenStart:
    """The start of a plan, a recipe or a procedure at a later time, and what it is judged by."""

    facts: Preconditions
    work: ConditionSubject
    at: datetime
    asset_ids: frozenset[UUID]
    """The assets that its conduct would have to itself."""


def load_conditions(
    call: Call,
    starts: Sequence[ForeseenStart],
    commands: Collection[str],
    ends_at: datetime | None = None,
    own_ids: Collection[UUID] = (),
) -> Reads[tuple[Condition, ...]]:
    """Return what these starts ask for, now and then, what fails then first; what several starts share has one row, of
    the worst of them. The work with these ids is in nobody's way, and without commands no permission is asked for."""
    if not starts:
        return ()
    rows = list[Row]()
    for start in starts:
        rows += [*gate_rows(start), *permit_rows(start.facts), *supply_rows(start.facts, start.at)]
        rows += yield from caution_rows(start)
        rows += yield from review_rows(start)
        rows += yield from table_rows(start)
        if isinstance(start.facts, RunStart):
            rows += [*calibration_rows(start.facts, start), *window_rows(start.facts, start.at)]
    first = starts[0]
    asset_ids = frozenset[UUID]().union(*(start.asset_ids for start in starts))
    rows += yield from claim_rows(first, asset_ids, own_ids)
    rows += yield from armed_rows(first, asset_ids, own_ids, call)
    rows += (yield from grant_rows(commands)) if commands else []
    rows += yield from visit_rows(first.facts.now, first.at)
    rows.sort(key=lambda row: (row.rank(ends_at), not row.required))
    kept = dict[tuple[str, str, UUID | None, str], Row]()
    for row in rows:
        kept.setdefault(row.key, row)
    return (yield from with_changes([*kept.values()], call.principal_id))


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


def gate_rows(start: ForeseenStart) -> Iterator[Row]:
    """Yield a row for each gate that the record alone decides, judged now and at that time."""
    facts, then = start.facts, replace(start.facts, now=start.at)
    if isinstance(facts, RunStart) and isinstance(then, RunStart):
        gates = (*run_start.GATES, Gate[RunStart](assets_ready, lambda facts: facts.asset_ids))
        yield from judged_rows(gates, facts, then, start)
    else:
        yield from judged_rows(procedure_start.GATES, facts, then, start)


def judged_rows(gates: Sequence[Gate[F]], facts: F, facts_then: F, start: ForeseenStart) -> Iterator[Row]:
    """Yield the rows of gates by the facts of now and of then."""
    for gate in gates:
        if gate.name in APART:
            continue
        now, later = refusal_of(gate, facts), refusal_of(gate, facts_then)
        present, coming = gate.window(facts), gate.window(facts_then)
        said = later or now
        yield Row(
            condition=gate.name,
            about=subject_of(gate.name, start),
            now=yes_or_no(now is None),
            then=yes_or_no(later is None),
            until=present.until if later is not None else coming.until,
            opens_at=coming.opens_at if later is not None else present.opens_at,
            why=(gate.rule.__doc__ or gate.name) if said is None else said.detail,
            commands=() if said is None else tuple(one.operation for one in said.next_steps),
        )


def subject_of(gate: str, start: ForeseenStart) -> ConditionSubject:
    """Return the one thing that a gate is about: the form, the sample or the campaign, or else the work itself."""
    facts = start.facts
    if gate in ("clearance_active", "clearance_in_force") and facts.clearances:
        form = max(facts.clearances, key=lambda one: (one.valid_until is None or one.valid_until > start.at, one.id))
        return ConditionSubject(type="Clearance", id=form.id, name=form.title)
    if not isinstance(facts, RunStart):
        return start.work
    if gate == "subject_mounted" and facts.subject is not None:
        return ConditionSubject(type="Subject", id=facts.subject.id, name=facts.subject.name)
    if gate == "campaign_open" and facts.campaign is not None:
        return ConditionSubject(type="Campaign", id=facts.campaign.id, name=facts.campaign.name)
    return start.work


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


def calibration_rows(facts: RunStart, start: ForeseenStart) -> Iterator[Row]:
    """Yield a row for each pinned revision."""
    required = facts.deployment.lapsed_calibrations_refused
    yield from (calibration_row(one, pin, start, required=required) for one, pin in facts.pinned)


def calibration_row(one: Calibration, pin: Revision, start: ForeseenStart, *, required: bool) -> Row:
    """Return the row of a revision: valid until its end or, without one, as old as it will be."""
    age = (start.at - pin.established_at).days
    return Row(
        condition="calibrations_valid",
        about=ConditionSubject(type="Calibration", id=one.id, name=one.quantity),
        required=required,
        now=yes_or_no(pin.is_valid(start.facts.now)),
        then=yes_or_no(pin.is_valid(start.at)),
        until=pin.valid_until,
        why=f"It names no end; it is {age} days old then."
        if pin.valid_until is None
        else f"It lapses at {instant(pin.valid_until)}.",
    )


def caution_rows(start: ForeseenStart) -> Reads[list[Row]]:
    """Return a row for each caution that warns now or then; none keeps a start from beginning."""
    facts, work = start.facts, start.work
    targets = frozenset({CautionTarget.model_validate({"kind": work.type, "id": work.id})})
    scope = (facts.scope.bound_ids, facts.scope.ancestor_ids, targets)
    known = facts.cautions if isinstance(facts, RunStart) else (yield from cautions_in_scope(*scope))
    warning: dict[UUID, Caution] = {}
    for moment in (facts.now, start.at):
        warning |= {one.id: one for one in cautions_in_force(known, *scope, moment)}
    return [
        Row(
            condition="caution",
            about=ConditionSubject(type="Caution", id=caution.id, name=caution.text[:200]),
            required=False,
            now=yes_or_no(not caution.in_effect(facts.now)),
            then=yes_or_no(not caution.in_effect(start.at)),
            opens_at=caution.expires_at,
            why=f"A {caution.severity} warns of this; a start acknowledges it.",
        )
        for caution in warning.values()
    ]


def review_rows(start: ForeseenStart) -> Reads[list[Row]]:
    """Return a row for each form on its way into force, with the steps left and who may take them; none where a form is in
    force then."""
    rows, forms = list[Row](), start.facts.clearances
    for form in () if any(is_in_force(one, start.at) for one in forms) else forms:
        if not (left := [call.operation for call in steps_to_state(form, ClearanceStatus.ACTIVE)]):
            continue
        words = ", ".join(name.replace("_clearance", "").replace("_", " ") for name in left)
        rows.append(
            Row(
                condition="clearance_review",
                about=ConditionSubject(type="Clearance", id=form.id, name=form.title),
                required=False,
                now=Holding.NO,
                then=Holding.UNKNOWN,
                why=f"It is {form.status.value}; left until it is in force: {words}.",
                commands=tuple(left),
                barred=(yield from barred_reviewers(form)) or frozenset(),
            )
        )
    return rows


def table_rows(start: ForeseenStart) -> Reads[list[Row]]:
    """Return a row for each calibration that a virtual axis follows among the assets of the work."""
    rules = (asset.partition_rule for asset in start.facts.scope.assets.values())
    tables = [rule for rule in rules if isinstance(rule, LookupTable)]
    found = yield from find_all(Calibration, sorted({table.calibration_id for table in tables}))
    followed = [
        (found[table.calibration_id], revision)
        for table in tables
        if table.calibration_id in found
        and (revision := found[table.calibration_id].revision(table.calibration_revision_id)) is not None
    ]
    return [calibration_row(one, pin, start, required=False) for one, pin in followed]


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


def claim_rows(start: ForeseenStart, asset_ids: frozenset[UUID], own_ids: Collection[UUID]) -> Reads[list[Row]]:
    """Return a row for each piece of live work that has assets to itself, by its estimated end; one row where none has."""
    now = start.facts.now
    found = yield from conducted_assets(asset_ids)
    holders: dict[UUID, Procedure | Run] = {**found, **(yield from witnessed_rivals(asset_ids, now))}
    assets = yield from find_all(Asset, holders)
    used: dict[UUID, list[Asset]] = {}
    for asset_id, holder in sorted(holders.items()):
        if holder.id not in own_ids:
            used.setdefault(holder.id, []).append(assets[asset_id])
    works = {holder.id: holder for holder in holders.values()}
    rows = [] if used else [unclaimed_row(start)]
    for id, held in used.items():
        ends = yield from expected_end(works[id], now)
        names = ", ".join(asset.name for asset in held)
        said = f"and is expected to end at {instant(ends)}" if ends else "and nobody knows when it ends"
        rows.append(
            Row(
                condition="targets_unclaimed",
                about=ConditionSubject(type=type(works[id]).__name__, id=id, name=works[id].name),
                now=Holding.NO,
                then=Holding.UNKNOWN if ends is None else yes_or_no(ends <= start.at),
                opens_at=ends,
                why=f"{works[id].name} has {names} to itself, {said}.",
                rests_on=Basis.FORECAST,
            )
        )
    return rows


def unclaimed_row(start: ForeseenStart) -> Row:
    """Return the row of assets that no live work has to itself; the work of later is not on record."""
    return Row(
        condition="targets_unclaimed",
        about=start.work,
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


def load_wanting(
    asset_ids: frozenset[UUID], own_ids: Collection[UUID]
) -> Reads[list[tuple[Queue | Schedule, frozenset[UUID]]]]:
    """Return the queues and schedules whose targets name some of these assets, with those; none to a caller who may not see
    them."""
    if not {"GetQueue", "GetSchedule"} <= (yield from permitted_commands()):
        return []
    armed = [one for one in (yield from load_armed_work(None)) if is_armed(one) and one.id not in own_ids]
    aims = {one.id: targets_of(one) for one in armed}
    plan_ids = {aim.plan_id for some in aims.values() for aim in some if isinstance(aim, ConductPlan)}
    plans = yield from find_all(Plan, sorted(plan_ids))
    wanted = [
        (one, asset_ids & frozenset[UUID]().union(*(aimed_assets(aim, plans) for aim in aims[one.id]))) for one in armed
    ]
    return [(one, assets) for one, assets in wanted if assets]


def armed_rows(start: ForeseenStart, asset_ids: frozenset[UUID], own_ids: Collection[UUID], call: Call) -> Reads[list[Row]]:
    """Return a row for each queue with items that wait, and each schedule that fires before that time, on these assets."""
    rows = list[Row]()
    for one, _ in (yield from load_wanting(asset_ids, own_ids)):
        if isinstance(one, Queue):
            rows += yield from queue_rows(one, start, call)
        elif (fires := next_firing(one, start.facts.now)) is not None and fires <= start.at:
            rows.append(armed_row(one, f"It fires at {instant(fires)}, and may have the assets then.", "hold_schedule"))
    return rows


def armed_row(
    armed: Queue | Schedule, why: str, command: str, then: Holding = Holding.UNKNOWN, ends: datetime | None = None
) -> Row:
    """Return the row of a queue or a schedule that may have the assets at that time."""
    return Row(
        condition=type(armed).__name__.lower(),
        about=ConditionSubject(type=type(armed).__name__, id=armed.id, name=armed.name),
        required=False,
        now=Holding.YES,
        then=then,
        opens_at=ends,
        why=why,
        commands=(command,),
        rests_on=Basis.FORECAST,
    )


def queue_rows(queue: Queue, start: ForeseenStart, call: Call) -> Reads[list[Row]]:
    """Return a row for the items that wait in a queue: when the last of them is expected to end, as far as that is known."""
    if not queue.ahead:
        return []
    names = ", ".join(item.title for item in queue.ahead[:NAMED])
    more = f" and {len(queue.ahead) - NAMED} more" if len(queue.ahead) > NAMED else ""
    ends = None
    if len(queue.ahead) <= FORECAST:
        ends = (yield from forecast_queue(queue, call, rehearsed=False))[-1].expected_end
    said = "nobody knows when they end" if ends is None else f"they are expected to end at {instant(ends)}"
    then = Holding.UNKNOWN if ends is None or ends > start.at else Holding.YES
    return [armed_row(queue, f"{names}{more} wait in this queue, and {said}.", "hold_queue", then, ends)]


def next_firing(schedule: Schedule, now: datetime) -> datetime | None:
    """Return when a schedule fires next; None where it does not."""
    ahead = upcoming_firings(schedule.status, schedule.calendar, schedule.time_zone, now, 1)
    return ahead[0] if ahead else None


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


def with_changes(rows: Sequence[Row], principal_id: UUID) -> Reads[tuple[Condition, ...]]:
    """Return rows as conditions, each with the commands that change it and who could give them."""
    named = [changing_commands(row) for row in rows]
    holders = yield from load_holders({name for names in named for name in names})
    return tuple(
        as_condition(row, {name: holders.of(name, barred_from(name, row), principal_id) for name in names})
        for row, names in zip(rows, named, strict=True)
    )


def barred_from(operation: str, row: Row) -> frozenset[UUID]:
    """Return who may not give a command on what a row is about, whatever they hold."""
    return row.barred if issubclass(REGISTRY.operations[operation].input, ClearanceReview) else frozenset()


def changing_commands(row: Row) -> tuple[str, ...]:
    """Return the commands that change what a row asks for; none where it holds and nothing lapses."""
    surely = row.now is row.then is Holding.YES and row.until is None
    return () if surely else tuple(dict.fromkeys(row.commands or CHANGES.get(row.condition, ())))


def as_condition(row: Row, holders: Mapping[str, CommandHolders]) -> Condition:
    """Return a row with the commands that change it; it says so where nobody can give one of them."""
    change = tuple(ConditionChange(command=name, who=who) for name, who in holders.items())
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


@dataclass(frozen=True)
class GrantingPolicies:
    """The policies that permit commands at once, with the groups and the actors that they name."""

    permitted: frozenset[str]
    """The commands that the caller may give."""
    enforced: bool
    policies: tuple[Policy, ...] = ()
    groups: Mapping[UUID, Group] = field(default_factory=dict)
    actors: Mapping[UUID, Actor] = field(default_factory=dict)

    def of(self, operation: str, barred: frozenset[UUID], principal_id: UUID) -> CommandHolders:
        """Return who could give a command at once, without those who are barred from it here."""
        if not self.enforced:
            return CommandHolders(groups=(), count=None, you=principal_id not in barred)
        command = REGISTRY.operations[operation].command_name
        granting = [one for one in self.policies if one.permits(command)]
        named = sorted({id for one in granting for id in one.permitted_group_ids} & self.groups.keys())
        own = [self.groups[id] for id in named]
        ids = frozenset[UUID]().union(*(one.permitted_principal_ids for one in granting), *(one.member_ids for one in own))
        count = sum(id in self.actors and self.actors[id].active for id in ids - barred)
        you = command in self.permitted and principal_id not in barred
        return CommandHolders(groups=tuple(sorted(one.name for one in own)), count=count, you=you)


def load_holders(operations: Collection[str]) -> Reads[GrantingPolicies]:
    """Load who could give these operations at once."""
    permitted = yield from permitted_commands()
    enforced = (yield from ask(DeploymentPort.deployment)).policies_enforced
    if not enforced or not operations:
        return GrantingPolicies(permitted, enforced)
    found = yield from find_all(Policy, (yield from all_members_of(POLICIES_BY_SURFACE)))
    policies = tuple(one for one in found.values() if one.surface_id != NIL and one.approval is None)
    groups = yield from find_all(Group, sorted({id for one in policies for id in one.permitted_group_ids}))
    serving = {id: group for id, group in groups.items() if group.status is GroupStatus.ACTIVE}
    listed = [group.member_ids for group in serving.values()]
    people = frozenset[UUID]().union(*(one.permitted_principal_ids for one in policies), *listed)
    actors: dict[UUID, Actor] = yield from find_all(Actor, sorted(people))
    return GrantingPolicies(permitted, enforced, policies, serving, actors)
