"""What claims the time of a beamline: the events of its runs, conducts, supplies, hutches, assets and queue as spans, each
with the state that it gives to every second in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from baton.domain.enclosure import enclosure as enclosures
from baton.domain.equipment import asset as assets
from baton.domain.kernel import Event
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import HoldCause
from baton.domain.queue import queue as queues
from baton.domain.run import run as runs
from baton.domain.step.results import CONDUCT_LOST
from baton.domain.supply import supply as supplies
from baton.domain.supply.supply import SupplyStatus
from baton.domain.views.time_states import END, TimeClaim, TimeSpan, TimeState, intersect, union

E = TypeVar("E", bound=Event)
Types = tuple[type[Event], ...]
Closed = tuple[TimeSpan, Event]  # A span, and the event that opened it.

FAILED_FOR = timedelta(minutes=30)  # How long a failed step keeps a beamline, unless something begins.
RUN_TYPES: Types = (*runs.BEGINNINGS, runs.RunHeld, runs.RunResumed, runs.RunConductStarted, *runs.ENDINGS)
BEGUN: Types = (procedures.ProcedureStarted, procedures.ProcedureResumed)
ENDED: Types = (procedures.ProcedureCompleted, procedures.ProcedureAborted, procedures.ProcedureTruncated)
PROCEDURE_TYPES: Types = (*BEGUN, procedures.ProcedureHeld, procedures.ProcedureAbortRequested, *ENDED)
SUPPLY_TYPES: Types = (
    *(supplies.SupplyRegistered, supplies.SupplyMarkedAvailable, supplies.SupplyDegraded, supplies.SupplyMarkedUnavailable),
    *(supplies.SupplyMarkedRecovering, supplies.SupplyRestored, supplies.SupplyDeregistered),
)
ENCLOSURE_TYPES: Types = (
    enclosures.EnclosureRegistered,
    enclosures.EnclosurePermitObserved,
    enclosures.EnclosureDecommissioned,
)
ASSET_TYPES: Types = (
    *(assets.AssetMaintenanceEntered, assets.AssetMaintenanceExited, assets.AssetDecommissioned),
    *(assets.AssetDegraded, assets.AssetFaulted, assets.AssetRestored),
)
QUEUE_TYPES: Types = (
    *(queues.QueueItemBlocked, queues.QueueItemStarted, queues.QueueItemRemoved, queues.QueueItemRefused),
    *(queues.QueueHeld, queues.QueueRetired),
)
GONE = frozenset({SupplyStatus.DECOMMISSIONED, None})
WORKING = frozenset({SupplyStatus.AVAILABLE, SupplyStatus.DEGRADED})


@dataclass(frozen=True, kw_only=True)
class TimeRecord:
    """What the record has of a beamline for the time that is looked at: events by the things that they are about."""

    runs: Mapping[UUID, Sequence[Event]] = field(default_factory=dict)
    plans: Mapping[UUID, UUID] = field(default_factory=dict)  # By run.
    parents: Mapping[UUID, UUID | None] = field(default_factory=dict)  # Of procedures, the run that they are a phase of.
    conducts: Mapping[UUID, Sequence[Event]] = field(default_factory=dict)
    lost: Mapping[UUID, Sequence[procedures.ProcedureConducted]] = field(default_factory=dict)
    supplies: Mapping[UUID, Sequence[Event]] = field(default_factory=dict)
    beam_ids: frozenset[UUID] = frozenset()
    enclosures: Mapping[UUID, Sequence[Event]] = field(default_factory=dict)
    assets: Mapping[UUID, Sequence[Event]] = field(default_factory=dict)
    queue: Sequence[Event] = ()
    proposals: Sequence[tuple[TimeSpan, UUID, str]] = ()  # When each was open, its id and its command.
    names: Mapping[UUID, str] = field(default_factory=dict)


def spans_of(events: Iterable[Event], opens: Types, closes: Types) -> Iterator[Closed]:
    """Yield the spans between an event of the one kind and the next of the other; what opens again opens anew."""
    opened: Event | None = None
    for event in sorted(events, key=lambda one: one.occurred_at):
        if opened is not None and isinstance(event, (*closes, *opens)):
            yield TimeSpan(opened.occurred_at, event.occurred_at), opened
            opened = None
        if isinstance(event, opens):
            opened = event
    if opened is not None:
        yield TimeSpan(opened.occurred_at, END), opened


def claims_of(record: TimeRecord) -> list[TimeClaim]:
    """Return every claim that the record makes."""
    return [
        *work_claims(record),
        *beam_claims(record),
        *equipment_claims(record),
        *service_claims(record),
        *gate_claims(record),
        *person_claims(record),
        *handling_claims(record),
    ]


def walked_spans(events: Iterable[Event]) -> list[TimeSpan]:
    """Return when a conduct of a procedure walked."""
    closed = spans_of(events, BEGUN, (procedures.ProcedureHeld, *ENDED))
    return union(span for span, opened in closed if getattr(opened, "conduct_id", None) is not None)


def work_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield what was measured, and what was conducted without a run."""
    phases: dict[UUID, list[TimeSpan]] = {}
    for id, events in record.conducts.items():
        walked, run_id = walked_spans(events), record.parents.get(id)
        if run_id is not None:
            phases.setdefault(run_id, []).extend(walked)
            continue
        for span in walked:
            yield TimeClaim(span, TimeState.PREPARING, record.names.get(id), "Procedure", id)
    for id, events in record.runs.items():
        ran = union(span for span, _ in spans_of(events, (*runs.BEGINNINGS, runs.RunResumed), (runs.RunHeld, *runs.ENDINGS)))
        if any(isinstance(one, runs.RunConductStarted) for one in events):
            ran = intersect(ran, union(phases.get(id, ())))
        for span in ran:
            yield TimeClaim(span, TimeState.MEASURING, record.names.get(id), "Run", id, record.plans.get(id))


def beam_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield when no photon beam was there, from when the first one was on record."""
    known, working = list[TimeSpan](), list[TimeSpan]()
    for id in record.beam_ids:
        for span, status in supply_spans(record.supplies.get(id, ())):
            known += [] if status in GONE else [span]
            working += [span] if status in WORKING else []
    there = union(working)
    for part in union(known):
        gaps, at = intersect([part], there), part.begins
        for one in gaps:
            if one.begins > at:
                yield TimeClaim(TimeSpan(at, one.begins), TimeState.BEAM, *beam_of(record))
            at = one.ends
        if at < part.ends:
            yield TimeClaim(TimeSpan(at, part.ends), TimeState.BEAM, *beam_of(record))


def beam_of(record: TimeRecord) -> tuple[str | None, str, UUID | None]:
    """Return the beam that an outage is of, where there is only one."""
    [id, *more] = sorted(record.beam_ids)
    return ("photon beam", "Supply", None) if more else (record.names.get(id), "Supply", id)


def supply_spans(events: Iterable[Event]) -> Iterator[tuple[TimeSpan, SupplyStatus]]:
    """Yield the statuses of a supply, each with the time in which it had it."""
    every = (supplies.SupplyRegistered, supplies.SupplyTransition)
    for span, opened in spans_of(events, every, ()):
        yield span, opened.to_status if isinstance(opened, supplies.SupplyTransition) else SupplyStatus.UNKNOWN


def equipment_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield when work waited while an asset was Faulted or in Maintenance, and the time behind failed steps."""
    waiting = union([*(span for span, _ in held_spans(record)), *(span for span, _ in blocked_spans(record))])
    for id, events in record.assets.items():
        faulted = spans_of(events, (assets.AssetFaulted,), (assets.AssetRestored, assets.AssetDegraded))
        maintained = spans_of(events, (assets.AssetMaintenanceEntered,), (assets.AssetMaintenanceExited,))
        broken = union([*(span for span, _ in faulted), *(span for span, _ in maintained)])
        for span in intersect(broken, waiting):
            yield TimeClaim(span, TimeState.EQUIPMENT, record.names.get(id), "Asset", id)
    begun = sorted(event.occurred_at for event in record_events(record) if isinstance(event, (*BEGUN, *runs.BEGINNINGS)))
    for event, id in failures(record):
        at = event.occurred_at
        ends = min([at + FAILED_FOR, *(one for one in begun if at < one < at + FAILED_FOR)])
        yield TimeClaim(TimeSpan(at, ends), TimeState.EQUIPMENT, "a step failed", "Procedure", id)


def record_events(record: TimeRecord) -> Iterator[Event]:
    """Yield the events of all runs and procedures."""
    for group in (record.runs, record.conducts):
        for events in group.values():
            yield from events


def failures(record: TimeRecord) -> Iterator[tuple[Event, UUID]]:
    """Yield the ends and holds of procedures that a failed step brought about."""
    for id, events in record.conducts.items():
        asked = any(isinstance(one, procedures.ProcedureAbortRequested) for one in events)
        for event in events:
            if (isinstance(event, procedures.ProcedureHeld) and event.cause is HoldCause.STEP_FAULT) or (
                isinstance(event, procedures.ProcedureAborted) and not asked
            ):
                yield event, id


def held_spans(record: TimeRecord) -> Iterator[tuple[TimeSpan, UUID]]:
    """Yield when runs and procedures were held."""
    for id, events in record.runs.items():
        for span, _ in spans_of(events, (runs.RunHeld,), (runs.RunResumed, *runs.ENDINGS)):
            yield span, id
    for id, events in record.conducts.items():
        for span, _ in spans_of(events, (procedures.ProcedureHeld,), (procedures.ProcedureResumed, *ENDED)):
            yield span, id


def blocked_spans(record: TimeRecord) -> Iterator[tuple[TimeSpan, queues.QueueItemBlocked]]:
    """Yield when the head of the queue was blocked."""
    closes = tuple(one for one in QUEUE_TYPES if one is not queues.QueueItemBlocked)
    for span, opened in spans_of(record.queue, (queues.QueueItemBlocked,), closes):
        assert isinstance(opened, queues.QueueItemBlocked), "only such an event opens it"
        yield span, opened


def service_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield when the engine had lost a conduct that nobody had settled."""
    for id, ends in record.lost.items():
        for end in ends:
            failure = end.result.failure
            if failure is None or failure.error_class != CONDUCT_LOST:
                continue
            later = [one.occurred_at for one in record.conducts.get(id, ()) if one.occurred_at > end.occurred_at]
            yield TimeClaim(
                TimeSpan(end.occurred_at, min(later, default=END)), TimeState.SERVICE, CONDUCT_LOST, "Procedure", id
            )


def gate_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield when the head of the queue was blocked, and when work was held by a gate."""
    for span, blocked in blocked_spans(record):
        yield TimeClaim(span, TimeState.GATE, blocked.code, "Queue", blocked.stream_id)
    for id, events in record.conducts.items():
        for span, held in spans_of(events, (procedures.ProcedureHeld,), (procedures.ProcedureResumed, *ENDED)):
            if isinstance(held, procedures.ProcedureHeld) and held.cause is HoldCause.GATE_CLOSED:
                yield TimeClaim(span, TimeState.GATE, held.cause.value, "Procedure", id)


def person_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield when work was held, when an approval was waited for, and when a supply was Recovering."""
    for span, id in held_spans(record):
        yield TimeClaim(span, TimeState.PERSON, "held", "Run" if id in record.runs else "Procedure", id)
    for span, id, command in record.proposals:
        yield TimeClaim(span, TimeState.PERSON, f"{command} proposed", "Proposal", id)
    for id, events in record.supplies.items():
        for span, status in supply_spans(events):
            if status is SupplyStatus.RECOVERING:
                yield TimeClaim(span, TimeState.PERSON, f"{record.names.get(id)} recovering", "Supply", id)


def handling_claims(record: TimeRecord) -> Iterator[TimeClaim]:
    """Yield when a hutch was not Permitted, from when it was on record."""
    permitted = enclosures.EnclosurePermitStatus.PERMITTED
    for id, events in record.enclosures.items():
        for span, opened in spans_of(events, ENCLOSURE_TYPES, ()):
            if isinstance(opened, enclosures.EnclosureDecommissioned):
                continue
            if isinstance(opened, enclosures.EnclosurePermitObserved) and opened.to_status is permitted:
                continue
            yield TimeClaim(span, TimeState.HANDLING, record.names.get(id), "Enclosure", id)
