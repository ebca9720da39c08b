"""The supervisor's rule: runs that need beam are held when it is lost, and stopped where that was asked for.

It winds down and nothing else: it starts and resumes no run, and whoever resumes one during an outage is left alone. All
it goes by is on the record, so it remembers nothing from one look to the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from baton.domain.agent.decision_records import decision_id_of
from baton.domain.decision.decision import Decision, RegisterDecision
from baton.domain.equipment.scope import AssetScope, asset_scope
from baton.domain.kernel import Call, Command, Outcome, instant
from baton.domain.run.endings import Phases, kind_of, phases_of
from baton.domain.run.gates import execution_of
from baton.domain.run.run import HELD, RUNNING, Run, RunHeld, RunStopped, run
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, every, happened, required
from baton.domain.supply.beam import PHOTON_BEAM, Outage

RUN_SUPERVISOR = "RunSupervisor"
SUPERVISION = "RunSupervision"


class Verb(StrEnum):
    """What the supervisor decides about a run in an outage, at most once each."""

    HOLD = "hold"
    STOP = "stop"
    DEFER = "defer"


CHOICES = {Verb.HOLD: "Hold", Verb.STOP: "Stop", Verb.DEFER: "SupervisionDeferred"}
REASONS = {
    Verb.HOLD: "The beam is lost: {detail}. Resume the run once it is back.",
    Verb.STOP: "The beam has been lost for too long: {detail}.",
    Verb.DEFER: "Somebody resumed the run during this outage, and that is respected: {detail}.",
}


@dataclass(frozen=True)
class Watched:
    """A run in an outage, with what happened to it so far."""

    run: Run
    outage: Outage
    holds: Sequence[RunHeld]
    decided: frozenset[UUID]
    """Which of the decisions about this run and outage exist."""


def needs_beam(run: Run) -> Reads[AssetScope | None]:
    """The scope of a run whose method needs beam; None for any other."""
    execution = yield from execution_of(run.plan_id)
    if PHOTON_BEAM not in execution.method.needed_supplies:
        return None
    return (yield from asset_scope(execution.plan.asset_ids))


def watched(run_id: UUID, outage: Outage, agent_id: UUID) -> Reads[Watched]:
    """Load what the rule looks at: the run after its holds, lest a hold of another look pass for one that somebody ended."""
    holds = yield from happened(run_id, RunHeld)
    decisions = yield from every(Decision, [decision_of(verb, run_id, outage, agent_id) for verb in Verb])
    run = yield from required(Run, run_id)
    return Watched(run, outage, holds, frozenset(decisions))


def verb_for(watched: Watched, agent_id: UUID, now: datetime, stop_after: timedelta | None) -> Verb | None:
    """What is to be done about a run now: held, stopped, noted as resumed by somebody, or nothing."""
    run, outage = watched.run, watched.outage
    own_hold = decision_of(Verb.HOLD, run.id, outage, agent_id)
    if run.status is RUNNING:
        if not any(hold.decided_by_decision_id == own_hold for hold in watched.holds):
            return Verb.HOLD
        noted = decision_of(Verb.DEFER, run.id, outage, agent_id) in watched.decided
        return None if noted else Verb.DEFER
    if run.status is HELD and stop_after is not None:
        held_here = bool(watched.holds) and watched.holds[-1].decided_by_decision_id == own_hold
        return Verb.STOP if held_here and now - outage.since >= stop_after else None
    return None


def decision_of(verb: Verb, run_id: UUID, outage: Outage, agent_id: UUID) -> UUID:
    """The id of a decision about a run in an outage."""
    return decision_id_of(outage.since, agent_id, f"{verb.value}:{run_id}:{outage.event_id}")


def reason_of(verb: Verb, outage: Outage) -> str:
    """Why, in a sentence for whoever looks at the run."""
    return REASONS[verb].format(detail=outage.detail)[:500]


def supervised(verb: Verb, run_id: UUID, outage: Outage, agent_id: UUID) -> RegisterDecision:
    """The decision as it is put on record."""
    return RegisterDecision(
        decided_by=agent_id,
        context=SUPERVISION,
        choice=CHOICES[verb],
        rule=f"agent:{RUN_SUPERVISOR}:v1",
        reasoning=reason_of(verb, outage),
        inputs={
            "run_id": str(run_id),
            "outage_event_id": str(outage.event_id),
            "outage_since": instant(outage.since),
            "beam": outage.detail,
        },
    )


class WindingDown(Command):
    """Something the supervisor has decided about a run, judged once more where it is done: it may have come late."""

    decision_id: UUID
    outage_event_id: UUID
    reason: str
    beam: Callable[..., Any]
    """Where it is read whether the beam is lost."""

    def still_called_for(self, run: Run, own_facility_code: str) -> Reads[Sequence[RunHeld]]:
        """The holds of the run; refused where the beam is back, or is lost by another event."""
        scope = yield from needs_beam(run)
        outage = None if scope is None else (yield from self.beam(scope, own_facility_code))
        if outage is None or outage.event_id != self.outage_event_id:
            raise self.cannot("outage_over", "The outage that this was decided for is over.")
        return (yield from happened(run.id, RunHeld))


@run.inner(allowed=[RUNNING], command_name="HoldRun", attempts=3)
class HoldForBeam(WindingDown):
    """Hold a run as the supervisor, once in an outage: whoever resumes it is not overruled."""

    def gather(self, run: Run, call: Call) -> Reads[Sequence[RunHeld]]:
        deployment = yield from ask(Ports.deployment)
        return (yield from self.still_called_for(run, deployment.self_facility_code))

    def decide(self, run: Run, call: Call, holds: Sequence[RunHeld]) -> Outcome:
        if any(hold.decided_by_decision_id == self.decision_id for hold in holds):
            raise self.cannot("held_before", "The run was held for this outage before, and somebody resumed it.")
        return [RunHeld(reason=self.reason, decided_by_decision_id=self.decision_id)]


@run.inner(allowed=[HELD], command_name="StopRun", attempts=3)
class StopForBeam(WindingDown):
    """Stop a run that the supervisor itself has held."""

    hold_id: UUID

    def gather(self, run: Run, call: Call) -> Reads[tuple[Sequence[RunHeld], Phases]]:
        deployment = yield from ask(Ports.deployment)
        holds = yield from self.still_called_for(run, deployment.self_facility_code)
        return holds, (yield from phases_of(run))

    def decide(self, run: Run, call: Call, facts: tuple[Sequence[RunHeld], Phases]) -> Outcome:
        holds, phases = facts
        if not holds or holds[-1].decided_by_decision_id != self.hold_id:
            raise self.cannot("held_by_another", "Somebody else holds the run now.")
        return [RunStopped(reason=self.reason, decided_by_decision_id=self.decision_id, actuation_kind=kind_of(run, phases))]
