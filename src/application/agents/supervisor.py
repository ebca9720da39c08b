"""The supervisor at work: one look at every run that is on, with no memory of the one before."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.ports import Caller, Clock, IdGenerator
from baton.application.queries import Queries
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.agent.supervision import (
    RUN_SUPERVISOR,
    HoldForBeam,
    StopForBeam,
    Verb,
    decision_of,
    needs_beam,
    reason_of,
    supervised,
    verb_for,
    watched,
)
from baton.domain.equipment.scope import AssetScope
from baton.domain.run.run import LIVE, ListRuns, Run
from baton.domain.shared.reads import Reads, existing
from baton.domain.shared.refusals import Conflict, NotFound, Refusal, UnauthorizedError, Unavailable
from baton.domain.supply.beam import Outage, outage_in

log = structlog.get_logger()

Beam = Callable[[AssetScope, str], Reads[Outage | None]]
"""Where it is read whether the beam is lost to some equipment: by default from its supplies."""
Outages = dict[frozenset[UUID], Outage | None]
"""What was seen at one look, by the assets it was looked at for."""
ACTING = frozenset({"HoldRun", "StopRun"})
"""What it is refused, if it is, when it comes to that."""
PAGE = 100


class Supervisor:
    """Holds runs that need beam when it is lost, as the seeded agent; a decision comes before every command."""

    def __init__(
        self,
        hands: AgentClient,
        queries: Queries,
        clock: Clock,
        new_id: IdGenerator,
        facility_code: str,
        stop_after: timedelta | None,
        beam: Beam = outage_in,
    ) -> None:
        self._hands = hands
        self._queries = queries
        self._clock = clock
        self._new_id = new_id
        self._facility_code = facility_code
        self._stop_after = stop_after
        self._beam = beam
        self._agent_id = SEEDED[RUN_SUPERVISOR].id
        self._stood_down = False

    async def look(self) -> None:
        """Look at every run once, and do what the rule says."""
        caller = in_process(self._agent_id, self._new_id())
        if denied := await self._hands.denied(caller, SEEDED[RUN_SUPERVISOR].commands - ACTING):
            if not self._stood_down:
                log.warning("supervisor_stands_down", denied=denied)
            self._stood_down = True
            return
        self._stood_down = False
        outages: Outages = {}
        for run_id in [id async for id in self._runs(caller)]:
            try:
                await self._supervise(run_id, caller, outages)
            except Unavailable:
                raise
            except Refusal as refusal:
                log.error("run_not_supervised", run_id=str(run_id), code=refusal.code, reason=refusal.reason)

    async def _runs(self, caller: Caller) -> AsyncIterator[UUID]:
        for status in LIVE:
            cursor = None
            while True:
                page = await self._queries.ask(ListRuns(status=status, limit=PAGE, cursor=cursor), caller)
                for row in page.items:
                    yield row.run_id
                if (cursor := page.next_cursor) is None:
                    break

    async def _supervise(self, run_id: UUID, caller: Caller, outages: Outages) -> None:
        run = await self._hands.read(existing(Run, run_id), caller)
        if run is None or run.status not in LIVE:
            return
        scope = await self._hands.read(needs_beam(run), caller)
        if scope is None:
            return
        if scope.bound_ids not in outages:
            outages[scope.bound_ids] = await self._hands.read(self._beam(scope, self._facility_code), caller)
        outage = outages[scope.bound_ids]
        if outage is None:
            return
        seen = await self._hands.read(watched(run_id, outage, self._agent_id), caller)
        verb = verb_for(seen, self._agent_id, self._clock(), self._stop_after)
        if verb is not None:
            await self._act(verb, run_id, outage, caller)

    async def _act(self, verb: Verb, run_id: UUID, outage: Outage, caller: Caller) -> None:
        """Decide first, then act on it; a run that has moved on meanwhile is left alone."""
        decision_id = decision_of(verb, run_id, outage, self._agent_id)
        if not await self._hands.record(supervised(verb, run_id, outage, self._agent_id), decision_id, caller):
            return
        told: dict[str, Any] = {"decision_id": decision_id, "outage_event_id": outage.event_id}
        told |= {"reason": reason_of(verb, outage), "beam": self._beam}
        try:
            match verb:
                case Verb.HOLD:
                    await self._hands.execute(HoldForBeam(**told), caller, target_id=run_id)
                case Verb.STOP:
                    hold_id = decision_of(Verb.HOLD, run_id, outage, self._agent_id)
                    stop = StopForBeam(**told, hold_id=hold_id)
                    await self._hands.execute(stop, caller, target_id=run_id)
                case Verb.DEFER:
                    return
        except UnauthorizedError as refusal:
            log.error("supervisor_denied", run_id=str(run_id), verb=verb.value, reason=refusal.reason)
        except (Conflict, NotFound) as refusal:
            log.info("run_moved_on", run_id=str(run_id), verb=verb.value, code=refusal.code)
