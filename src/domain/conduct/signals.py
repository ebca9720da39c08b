"""What the record says to a conduct between two steps: requests of people, its run, its submitter, and the gates it watches.
One order of precedence decides what that means; the gates are those that the procedure passed to start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from baton.domain.conduct.messages import ConductVerdict, lifecycle_failure
from baton.domain.kernel import Call
from baton.domain.procedure.procedure import PendingRequest, Procedure, ProcedureIterationStarted
from baton.domain.recipe.conduct_options import WatchedGate, WatchedGates
from baton.domain.run.run import Run, RunStatus
from baton.domain.shared.gates import NOT_CONFIRMED
from baton.domain.shared.reads import Reads, ask, latest_events, require, require_if_given
from baton.domain.shared.refusals import Refusal
from baton.domain.start import procedure_start as start
from baton.domain.steering.steering import Point
from baton.domain.step.results import Failure, PlacedStep

GATES = {WatchedGate.SUPPLY: start.supplies_available, WatchedGate.ENCLOSURE: start.enclosures_permitted}


@dataclass(frozen=True, kw_only=True)
class ConductSignals:
    """What there is to say to a conduct."""

    live: bool = True
    asked: PendingRequest | None = None
    run: RunStatus | None = None
    objection: str | None = None  # why the submitter may not act any more
    closed_gate: Failure | None = None  # the refusal of the first gate that is watched and closed
    open_pass: tuple[int, Point] | None = None  # the pass that is open, and where it measures
    skipped_waits: tuple[PlacedStep, ...] = ()  # checks whose wait a person has ended
    open_until: datetime | None = None  # from when on the gates are judged again although nothing happened
    monitor_term: int | None = None  # the term of the monitor that the gates rest on; None where they rest on none

    @property
    def verdict(self) -> ConductVerdict | None:
        """Return what the conduct must do between two steps, the gravest first; None where it may continue."""
        if not self.live:
            return ConductVerdict.GONE
        if self.asked is PendingRequest.ABORT:
            return ConductVerdict.ABORT
        if self.run is RunStatus.ABORTED:
            return ConductVerdict.RUN_ABORTED
        if self.asked is PendingRequest.HOLD:
            return ConductVerdict.HOLD
        if self.run not in (None, RunStatus.RUNNING, RunStatus.HELD):
            return ConductVerdict.RUN_STOPPED
        if self.objection is not None:
            return ConductVerdict.STOOD_DOWN
        if self.run is RunStatus.HELD:
            return ConductVerdict.RUN_HELD
        return None if self.closed_gate is None else ConductVerdict.GATE_CLOSED

    @property
    def is_unconfirmed(self) -> bool:
        """Return whether a gate counts as closed only because nobody confirms just now what was observed."""
        return self.closed_gate is not None and self.closed_gate.facts.get("reason") == NOT_CONFIRMED

    def before_closing(self, *, completed: bool, may_hold: bool) -> ConductVerdict | None:
        """Return what keeps closing steps from beginning: an abort, a hold that still counts and, of a list that was
        completed, a run that is held or over; neither gates nor the submitter's standing do."""
        asked = self.asked if may_hold or self.asked is PendingRequest.ABORT else None
        run = self.run if completed or self.run is RunStatus.ABORTED else None
        return replace(self, asked=asked, run=run, objection=None, closed_gate=None).verdict


GONE = ConductSignals(live=False)


class MonitorPort(Protocol):
    """Knows the monitor that leads."""

    async def monitor_term(self, enclosure_names: Sequence[str]) -> int | None:
        """Return the term of the monitor that leads, where it has said so of late and has read each of these permits."""


def read_conduct_signals(procedure_id: UUID, conduct_id: UUID, watch: WatchedGates, call: Call) -> Reads[ConductSignals]:
    """Read everything that speaks to a conduct except its submitter's standing; every stream read here is one to watch."""
    procedure = yield from require(Procedure, procedure_id)
    if procedure.live_conduct_id != conduct_id:
        return GONE
    run = yield from require_if_given(Run, procedure.parent_run_id)
    status = None if run is None else run.status
    signals = ConductSignals(asked=procedure.pending_request, run=status, skipped_waits=procedure.skipped_waits)
    if procedure.current_iteration_index is not None:
        (begun,) = yield from latest_events(procedure.id, ProcedureIterationStarted, count=1)
        signals = replace(signals, open_pass=(begun.iteration_index, begun.point or {}))
    if not watch:
        return signals
    try:
        facts = yield from start.procedure_preconditions(procedure, run, call, resuming=True)
        for gate in sorted(watch):
            GATES[gate](facts)
        names = facts.monitored_enclosures if WatchedGate.ENCLOSURE in watch else []
        if names or (facts.has_monitored_supply and WatchedGate.SUPPLY in watch):
            term = yield from ask(MonitorPort.monitor_term, names)
            start.permits_confirmed(facts, term)
            signals = replace(signals, monitor_term=term)
    except Refusal as refusal:
        gate_closed = lifecycle_failure("hold", refusal.code, refusal.detail)
        if refusal.reason == NOT_CONFIRMED:
            gate_closed = gate_closed.model_copy(update={"facts": {"reason": refusal.reason}})
        return replace(signals, closed_gate=gate_closed, open_until=call.now)
    return replace(signals, open_until=facts.fresh_until)
