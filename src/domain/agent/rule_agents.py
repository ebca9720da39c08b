"""The rules of two agents that ask no model: the supervisor of runs, and the expirer of clearances.
Runs that need beam are held when it is lost, and stopped where that was asked for. The supervisor starts and resumes no
run, and leaves one alone that somebody resumed during an outage. All it goes by is recorded, so that it keeps nothing
from one look to the next. An Active clearance whose validity has run out is expired."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from baton.domain.agent.conclusions import decision_id_of
from baton.domain.decision.decision import Decision, RegisterDecision
from baton.domain.equipment.asset_tree import AssetScope, asset_scope
from baton.domain.kernel import Call, Command, JudgedVerb, Outcome, Value, instant
from baton.domain.run.gates import load_plan
from baton.domain.run.run import (
    HELD,
    RUNNING,
    Phases,
    Run,
    RunHeld,
    RunStopped,
    end_of,
    kind_of,
    load_end,
    refuse_unheld,
    refuse_witnessed,
    run,
)
from baton.domain.safety.clearance import ACTIVE, Clearance
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, events_of, find_all, require
from baton.domain.supply.coverage import PHOTON_BEAM, Outage

RUN_SUPERVISOR = "RunSupervisor"
CLEARANCE_EXPIRER = "ClearanceExpirer"
EXPIRY_REASON = "The clearance's validity has run out."


class SupervisorAction(StrEnum):
    """What the supervisor decides about a run in an outage, at most once each."""

    HOLD = "hold"
    STOP = "stop"
    DEFER = "defer"


HOLD, STOP, DEFER = SupervisorAction
CHOICES = {
    HOLD: ("Hold", "The beam is lost: {detail}. Resume the run once it is back."),
    STOP: ("Stop", "The beam has been lost for too long: {detail}."),
    DEFER: ("SupervisionDeferred", "Somebody resumed the run during this outage, and that is respected: {detail}."),
}  # The choice that each action is recorded as, and its reason.


@dataclass(frozen=True)
class WatchedRun:
    """A run in an outage, with what happened to it so far."""

    run: Run
    outage: Outage
    holds: Sequence[RunHeld]
    decided: frozenset[UUID]  # The decisions about this run and outage that exist.


def needs_beam(run: Run) -> Reads[AssetScope | None]:
    """Return the scope of a run whose method needs beam, or None."""
    plan, method = yield from load_plan(run.plan_id)
    return (yield from asset_scope(plan.asset_ids)) if PHOTON_BEAM in method.needed_supplies else None


def load_watched_run(run_id: UUID, outage: Outage, agent_id: UUID) -> Reads[WatchedRun]:
    """Load what the rule judges: the run after its holds, so that a hold made meanwhile does not count as one that ended."""
    holds = yield from events_of(run_id, RunHeld)
    ids = [supervision_decision_id(action, run_id, outage, agent_id) for action in SupervisorAction]
    decisions = yield from find_all(Decision, ids)
    run = yield from require(Run, run_id)
    return WatchedRun(run, outage, holds, frozenset(decisions))


def next_action(watched: WatchedRun, agent_id: UUID, now: datetime, stop_after: timedelta | None) -> SupervisorAction | None:
    """Return what is to be done about a run now: hold it, stop it, record that somebody resumed it, or None."""
    run, outage = watched.run, watched.outage
    own_hold = supervision_decision_id(HOLD, run.id, outage, agent_id)
    if run.status is RUNNING:
        if not any(hold.decided_by_decision_id == own_hold for hold in watched.holds):
            return HOLD
        return None if supervision_decision_id(DEFER, run.id, outage, agent_id) in watched.decided else DEFER
    if run.status is HELD and stop_after is not None and watched.holds:
        held_by_supervisor = watched.holds[-1].decided_by_decision_id == own_hold
        return STOP if held_by_supervisor and now - outage.since >= stop_after else None
    return None


def supervision_decision_id(action: SupervisorAction, run_id: UUID, outage: Outage, agent_id: UUID) -> UUID:
    """Return the id of a decision about a run in an outage."""
    return decision_id_of(outage.since, agent_id, f"{action.value}:{run_id}:{outage.event_id}")


def outage_reason(action: SupervisorAction, outage: Outage) -> str:
    """Return why, in a sentence for those who look at the run."""
    return CHOICES[action][1].format(detail=outage.detail)[:500]


def supervision_decision(action: SupervisorAction, run_id: UUID, outage: Outage, agent_id: UUID) -> RegisterDecision:
    """Return the supervisor's decision about a run, as it is recorded."""
    outage_facts = {"outage_event_id": str(outage.event_id), "outage_since": instant(outage.since)}
    return RegisterDecision(
        decided_by=agent_id,
        context="RunSupervision",
        choice=CHOICES[action][0],
        rule=f"agent:{RUN_SUPERVISOR}:v1",
        reasoning=outage_reason(action, outage),
        inputs={"run_id": str(run_id), **outage_facts, "beam": outage.detail},
    )


class SupervisorCommand(Command):
    """What the supervisor has decided about a run, judged once more where it is done, since it may have come late."""

    decision_id: UUID
    outage_event_id: UUID
    reason: str
    beam: Callable[[AssetScope, str], Reads[Outage | None]]  # The read that tells whether the beam is lost.

    def require_outage(self, run: Run) -> Reads[Sequence[RunHeld]]:
        """Return the holds of the run; refuse where the beam is back, or is lost by another event."""
        deployment = yield from ask(DeploymentPort.deployment)
        scope = yield from needs_beam(run)
        outage = None if scope is None else (yield from self.beam(scope, deployment.self_facility_code))
        if outage is None or outage.event_id != self.outage_event_id:
            raise self.cannot("outage_over", "The outage that this was decided for is over.")
        return (yield from events_of(run.id, RunHeld))


@run.internal_command(allowed=[RUNNING], command_name="HoldRun", attempts=3)
class HoldForBeam(SupervisorCommand, JudgedVerb[Run, Sequence[RunHeld]]):
    """Hold a run as the supervisor, once in an outage: who resumes it is not overruled."""

    def require(self, run: Run) -> None:
        refuse_unheld(self, run)

    def gather(self, run: Run, call: Call) -> Reads[Sequence[RunHeld]]:
        return (yield from self.require_outage(run))

    def decide(self, run: Run, call: Call, holds: Sequence[RunHeld]) -> Outcome:
        if any(hold.decided_by_decision_id == self.decision_id for hold in holds):
            raise self.cannot("held_before", "The run was held for this outage before, and somebody resumed it.")
        return [RunHeld(reason=self.reason, decided_by_decision_id=self.decision_id)]


@run.internal_command(allowed=[HELD], command_name="StopRun", attempts=3)
class StopForBeam(SupervisorCommand, JudgedVerb[Run, tuple[Sequence[RunHeld], Phases]]):
    """Stop a run that the supervisor itself has held."""

    hold_id: UUID

    def require(self, run: Run) -> None:
        refuse_witnessed(self, run)

    def gather(self, run: Run, call: Call) -> Reads[tuple[Sequence[RunHeld], Phases]]:
        holds = yield from self.require_outage(run)
        return holds, (yield from load_end(run))

    def decide(self, run: Run, call: Call, facts: tuple[Sequence[RunHeld], Phases]) -> Outcome:
        holds, phases = facts
        if not holds or holds[-1].decided_by_decision_id != self.hold_id:
            raise self.cannot("held_by_another", "Somebody else holds the run now.")
        stopped = RunStopped(
            reason=self.reason, decided_by_decision_id=self.decision_id, actuation_kind=kind_of(run, phases)
        )
        return end_of(run, stopped)


class DuePage(Value):
    """Clearances that have run out, and where more of them are."""

    clearance_ids: tuple[UUID, ...] = ()
    next_cursor: str | None = None


def is_due(clearance: Clearance, now: datetime) -> bool:
    """Return whether a clearance is to be expired now; one without an end never is."""
    return clearance.status is ACTIVE and clearance.valid_until is not None and clearance.valid_until <= now


def expiry_decision_id(clearance_id: UUID, valid_until: datetime, agent_id: UUID) -> UUID:
    """Return the id of the decision that expires a clearance."""
    return decision_id_of(valid_until, agent_id, f"expire:{clearance_id}")


def expiry_decision(clearance_id: UUID, valid_until: datetime, agent_id: UUID) -> RegisterDecision:
    """Return the decision that expires a clearance, as it is recorded."""
    return RegisterDecision(
        decided_by=agent_id,
        context="ClearanceExpiry",
        choice="Expire",
        rule=f"agent:{CLEARANCE_EXPIRER}:v1",
        reasoning=EXPIRY_REASON,
        inputs={"clearance_id": str(clearance_id), "valid_until": instant(valid_until)},
    )
