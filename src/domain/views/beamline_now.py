"""What is going on at a beamline: what is permitted, what supplies it, what warns and what is live, in one answer."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, ClassVar
from uuid import UUID

from baton.domain.caution import caution as cautions
from baton.domain.caution.caution import AcknowledgedCaution, CautionTarget, CautionTargetKind
from baton.domain.conduct.live_views import ConductNow, LostNow, RunNow, describe_live_work, lost_now
from baton.domain.conduct.live_work import LiveWork, load_live_work, load_lost_work
from baton.domain.enclosure import enclosure as enclosures
from baton.domain.equipment.asset import Asset, asset
from baton.domain.equipment.asset_tree import (
    AncestorWalkDepthExceededError,
    AssetScope,
    NotABeamlineError,
    load_root_scope,
    refuse_part,
)
from baton.domain.kernel import Call, Query, Value
from baton.domain.queue.views import QueueNow, queue_now
from baton.domain.safety.coverage import clearances_in_force
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.deployment import Deployment, DeploymentPort
from baton.domain.shared.monitoring import observation_age
from baton.domain.shared.reads import Reads, ask, records_of
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Record
from baton.domain.supply.coverage import contacts_of, every_supply_in_scope, is_monitored
from baton.domain.supply.supply import SupplyStatus

ENDS_SOON = timedelta(hours=24)  # A clearance that ends within this time ends soon.
WORKER = "worker"  # The kind of process that conducts.


@dataclass(frozen=True)
class ProcessContact(Record):
    """When a process last said that it runs; one that stops takes its row away."""

    relation: ClassVar[str] = "process_reports"
    key: ClassVar[tuple[str, ...]] = ("process_id",)
    process_id: UUID
    kind: str
    reported_at: datetime


class PermitNow(Value):
    """The permit of an enclosure, and how old its last observation is; `fresh` where it is recent enough for work."""

    enclosure_id: UUID
    name: str
    lifecycle: enclosures.EnclosureLifecycle
    permit_status: enclosures.EnclosurePermitStatus
    changed_at: datetime | None
    observation_age: Annotated[float | None, Seconds]
    fresh: bool
    """Whether the last observation is recent enough for work."""
    monitored: bool
    last_contact_at: datetime | None
    remark: str | None
    """Who can have the enclosure watched, where nobody watches it."""


class SupplyNow(Value):
    """A supply that work here can draw on, since when it has its status, why, and how old its last observation is."""

    supply_id: UUID
    kind: str
    name: str
    status: SupplyStatus
    since: datetime
    reason: FreeText | None
    containing_asset_id: UUID | None
    observation_age: Annotated[float | None, Seconds]
    monitored: bool
    last_contact_at: datetime | None


class ClearanceNow(Value):
    """A clearance in force; `ends_soon` where it ends within 24 hours."""

    clearance_id: UUID
    title: FreeText
    valid_until: datetime | None
    ends_soon: bool
    """Whether it ends within 24 hours."""


class WorkerNow(Value):
    """The workers that report, and when one of them last did; null where none has within the last hour."""

    count: int
    """Number of workers that report."""
    last_heard_at: datetime | None
    """When a worker last reported."""


class BeamlineNow(Value):
    """A beamline at one moment: everything in the scope of its root asset."""

    asset_id: UUID
    name: str
    at: datetime
    """The moment that is shown."""
    permits: tuple[PermitNow, ...]
    """The permits of the hutches, and how old their last observations are."""
    supplies: tuple[SupplyNow, ...]
    clearances: tuple[ClearanceNow, ...]
    cautions: tuple[AcknowledgedCaution, ...]
    """The cautions in force."""
    runs: tuple[RunNow, ...]
    conducts: tuple[ConductNow, ...]
    """The conducts that go on."""
    lost: tuple[LostNow, ...]
    queue: QueueNow | None
    """The queue of the beamline, and what is next in it."""
    worker: WorkerNow
    """The workers that report."""


@asset.query(
    get="/{asset_id}/now",
    context="operation",
    returns=BeamlineNow,
    refuses=[NotABeamlineError, AncestorWalkDepthExceededError],
)
class GetBeamlineNow(Query[BeamlineNow]):
    """What is going on at a beamline: permits, supplies, clearances, cautions, live runs and conducts, queue, workers.

    The asset must be a root. `runs` and `conducts` are those under way on anything below it, `lost` the procedures whose
    conduct the engine lost.
    """

    of_one_moment: ClassVar[bool] = True

    def answer(self, asset: Asset, call: Call) -> Reads[BeamlineNow]:
        yield from refuse_part(asset)
        scope = yield from load_root_scope(asset)
        deployment = yield from ask(DeploymentPort.deployment)
        live = yield from load_live_work(scope.bound_ids)
        runs, conducts = yield from describe_live_work(live, call.now)
        return BeamlineNow(
            asset_id=asset.id,
            name=asset.name,
            at=call.now,
            permits=(yield from permits_in(scope, deployment, call.now)),
            supplies=(yield from supplies_in(scope, deployment, call.now)),
            clearances=(yield from clearances_on(scope, live, call.now)),
            cautions=(yield from cautions_on(scope, live, call.now)),
            runs=runs,
            conducts=conducts,
            lost=tuple(lost_now(one) for one in (yield from load_lost_work(scope.bound_ids)).procedures),
            queue=(yield from queue_now(asset.id, call)),
            worker=(yield from worker_now()),
        )


def permits_in(scope: AssetScope, deployment: Deployment, now: datetime) -> Reads[tuple[PermitNow, ...]]:
    """Return the permits of the enclosures that assets in scope stand in, by name."""
    found, contacts = yield from enclosures.enclosures_with_contacts(scope.enclosure_ids)
    permits = []
    for one in found.values():
        contact = contacts.get(one.id)
        permits.append(
            PermitNow(
                enclosure_id=one.id,
                name=one.name,
                lifecycle=one.lifecycle,
                permit_status=one.permit_status,
                changed_at=one.last_permit_status_changed_at,
                observation_age=observation_age(contact, now),
                fresh=enclosures.is_fresh(one, contact, now, deployment),
                monitored=enclosures.is_monitored(one, deployment),
                last_contact_at=None if contact is None else contact.contacted_at,
                remark=enclosures.watch_remark(one, contact, now, deployment),
            )
        )
    return tuple(sorted(permits, key=lambda permit: (permit.name, permit.enclosure_id)))


def supplies_in(scope: AssetScope, deployment: Deployment, now: datetime) -> Reads[tuple[SupplyNow, ...]]:
    """Return the live supplies in scope, by kind and name."""
    found = yield from every_supply_in_scope(scope, deployment.self_facility_code)
    contacts = yield from contacts_of(found)
    supplies = []
    for one in found:
        contact = contacts.get(one.id)
        supplies.append(
            SupplyNow(
                supply_id=one.id,
                kind=one.kind,
                name=one.name,
                status=one.status,
                since=one.last_status_changed_at or one.registered_at,
                reason=one.last_status_reason,
                containing_asset_id=one.containing_asset_id,
                observation_age=observation_age(contact, now),
                monitored=is_monitored(one, deployment),
                last_contact_at=None if contact is None else contact.contacted_at,
            )
        )
    return tuple(sorted(supplies, key=lambda supply: (supply.kind, supply.name, supply.supply_id)))


def clearances_on(scope: AssetScope, live: LiveWork, now: datetime) -> Reads[tuple[ClearanceNow, ...]]:
    """Return the clearances in force on the assets in scope and on the live runs, those that end first at the front."""
    runs = [one.run for one in live.runs]
    ids = ([run.id for run in runs], [run.subject_id for run in runs], scope.bound_ids)
    return tuple(
        ClearanceNow(
            clearance_id=one.id,
            title=one.title,
            valid_until=one.valid_until,
            ends_soon=one.valid_until is not None and one.valid_until - now <= ENDS_SOON,
        )
        for one in (yield from clearances_in_force(*ids, now))
    )


def cautions_on(scope: AssetScope, live: LiveWork, now: datetime) -> Reads[tuple[AcknowledgedCaution, ...]]:
    """Return the cautions in effect on the assets in scope and on what live work is done by, the most severe first."""
    procedures = [one.procedure for one in live.conducts]
    targets = (
        *((CautionTargetKind.PLAN, one.plan.id) for one in live.runs),
        *((CautionTargetKind.PROCEDURE, one.id) for one in procedures),
        *((CautionTargetKind.RECIPE, one.recipe_id) for one in procedures if one.recipe_id is not None),
    )
    work = frozenset(CautionTarget(kind=kind, id=id) for kind, id in targets)
    found = yield from cautions.cautions_in_scope(scope.bound_ids, (), work)
    return cautions.banner(found, scope.bound_ids, (), work, now, cautions.CautionSeverity.NOTICE)


def worker_now() -> Reads[WorkerNow]:
    """Return when a worker was last heard of."""
    rows = yield from records_of(ProcessContact, kind=WORKER)
    return WorkerNow(count=len(rows), last_heard_at=max((row.reported_at for row in rows), default=None))
