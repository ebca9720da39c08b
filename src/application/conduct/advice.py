"""Who says where a search measures next: a program of ours, or somebody outside who is waited for."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from baton.application.conduct.conduct_plan import ConductPlan
from baton.application.conduct.deciders import FAULTS, Deciders, advice_from
from baton.application.conduct.heartbeat import Attempt, must_stop
from baton.application.conduct.ledger import Ledger
from baton.application.conduct.procedure_stream import ConductRecord
from baton.application.conduct.submitters import Submitters
from baton.application.ports import Clock
from baton.domain.kernel import Event
from baton.domain.operation.conduct.messages import DRIVER_STOOD_DOWN, MAX_REASON_LENGTH, PassDecision, ConductVerdict, lifecycle_failure
from baton.domain.operation.conduct.progress import WaitingFor
from baton.domain.operation.conduct.results import Failure
from baton.domain.operation.procedure.procedure import (
    Procedure,
    ProcedureAdvised,
    ProcedureIterationStarted,
    ProcedureOutcomeRecorded,
)
from baton.domain.operation.steering.decider_choice import CallerDecide
from baton.domain.operation.steering.steered_conduct import advice_given, evidence_of, remaining
from baton.domain.operation.steering.steering import SteeringAdvice

POLL = 1.0
"""Seconds between two looks at the record while a decider thinks."""
FIRST_POLL = 0.05
"""Seconds before the first look for advice, which a program may give at once; the longer it takes, the more."""


class Advisers:
    """Asks the decider of a conduct, and keeps an eye on the record until it has spoken."""

    def __init__(
        self, record: ConductRecord, clock: Clock, ledger: Ledger, deciders: Deciders, submitters: Submitters
    ) -> None:
        self._record = record
        self._clock = clock
        self._ledger = ledger
        self._deciders = deciders
        self._submitters = submitters

    async def advice(
        self, score: ConductPlan, procedure: Procedure, iteration_index: int, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | PassDecision:
        """What the decider says, and who it is where that is somebody; a decider that fails fails the conduct."""
        assert score.steering is not None, "only a steered conduct is advised"
        if await self._submitters.lost(score.caller):
            return PassDecision(verdict=ConductVerdict.STOOD_DOWN)
        try:
            return await self._said(score, procedure, iteration_index, attempt)
        except FAULTS as fault:
            failure = Failure(
                source_kind="decide",
                target=score.steering.objective_capture_name,
                error_class=type(fault).__name__,
                message=str(fault)[:MAX_REASON_LENGTH],
            )
            return PassDecision(verdict=ConductVerdict.FAILED, failure=failure)

    async def _said(
        self, score: ConductPlan, procedure: Procedure, iteration_index: int, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | PassDecision:
        """The advice and who gave it; or what came up while it was waited for."""
        assert score.steering is not None, "only a steered conduct is advised"
        decide = score.steering.decide
        if isinstance(decide, CallerDecide):
            within = procedure.current_iteration_index is not None
            return await self._told(score, iteration_index, within, decide, attempt)
        outcomes = await self._record.happened(score, ProcedureOutcomeRecorded)
        passes = procedure.iteration_count - score.iterations_before
        left = remaining(score.steering, passes, score.started_at, self._clock())
        decider = await self._deciders.decider(decide)
        asking = asyncio.ensure_future(advice_from(decider, evidence_of(procedure, score.steering, outcomes, left)))
        try:
            while not (await asyncio.wait({asking}, timeout=POLL))[0]:
                attempt.alive()
                orders = await self._submitters.orders(self._ledger, score)
                if (verdict := orders.verdict) is not None and (must_stop(orders) or verdict is ConductVerdict.STOOD_DOWN):
                    return PassDecision(verdict=verdict)
            return await asking, None
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await decider.close()

    async def _told(
        self, score: ConductPlan, iteration_index: int, within: bool, decide: CallerDecide, attempt: Attempt
    ) -> tuple[SteeringAdvice, UUID | None] | PassDecision:
        """What an outside decider says, as soon as it does; a hold or an abort is served while it is waited for."""
        deadline = await self._deadline(score, iteration_index, decide)
        await self._ledger.wait(score.procedure_id, score.conduct_id, WaitingFor.ADVICE, deadline)
        heard = await self._listened(score, iteration_index, within, deadline, attempt)
        since = heard.occurred_at if isinstance(heard, ProcedureAdvised) else None
        await self._ledger.go_on(score.procedure_id, score.conduct_id, since)
        return (heard.advice, heard.advised_by) if isinstance(heard, ProcedureAdvised) else heard

    async def _listened(
        self, score: ConductPlan, iteration_index: int, within: bool, deadline: datetime, attempt: Attempt
    ) -> ProcedureAdvised | PassDecision:
        """What is said until the deadline, looked for again and again."""
        pause, heard = FIRST_POLL, AdviceEvents(self._record, score)
        while True:
            attempt.alive()
            said = advice_given(await heard.events(), score.conduct_id, iteration_index, within=within)
            if said is not None:
                return said
            orders = await self._submitters.orders(self._ledger, score)
            if (verdict := orders.verdict) is not None and verdict is not ConductVerdict.RUN_HELD:
                return PassDecision(verdict=verdict)
            if self._clock() >= deadline:
                return PassDecision(verdict=ConductVerdict.HOLD, stood_down=True, failure=stood_down("Nobody advised in time."))
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, POLL)

    async def _deadline(self, score: ConductPlan, iteration_index: int, decide: CallerDecide) -> datetime:
        """Until when advice is waited for: counted from what was recorded last, so that a restart grants no more."""
        outcomes = [
            one
            for one in await self._record.happened(score, ProcedureOutcomeRecorded)
            if one.iteration_index == iteration_index
        ]
        since = outcomes[-1].occurred_at if outcomes else score.started_at
        return since + timedelta(seconds=decide.advice_timeout)


class AdviceEvents:
    """What was advised, and when passes began; what was read once is not read again."""

    def __init__(self, record: ConductRecord, score: ConductPlan) -> None:
        self._record = record
        self._score = score
        self._events: list[Event] = []
        self._version = 0

    async def events(self) -> Sequence[Event]:
        """All there is by now."""
        wanted = (ProcedureIterationStarted, ProcedureAdvised)
        found, self._version = await self._record.behind(self._score, self._version, *wanted)
        self._events += found
        return self._events


def stood_down(message: str) -> Failure:
    """Why a search waits for somebody to steer it."""
    return lifecycle_failure("hold", DRIVER_STOOD_DOWN, message)
