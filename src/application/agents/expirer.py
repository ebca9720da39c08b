"""The expirer at work: which clearances have run out, and each of them taken out of force."""

from datetime import datetime
from uuid import UUID

import structlog

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.ports import Caller, Clock, IdGenerator, Store
from baton.application.queries import Queries
from baton.domain.agent.expiry import CLEARANCE_EXPIRER, REASON, DuePage, expired, expiry_of, is_due
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.safety.clearance import ACTIVE, Clearance, ClearanceExpired, ExpireClearance
from baton.domain.safety.clearance_views import ListClearances
from baton.domain.shared.reads import existing
from baton.domain.shared.refusals import Conflict, NotFound, UnauthorizedError

log = structlog.get_logger()

PAGE = 100


class Expirer:
    """Expires clearances as the seeded agent; what it has expired, it says so of, once."""

    def __init__(self, hands: AgentClient, queries: Queries, store: Store, clock: Clock, new_id: IdGenerator) -> None:
        self._hands = hands
        self._queries = queries
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._agent_id = SEEDED[CLEARANCE_EXPIRER].id

    async def due(self, after: str | None) -> DuePage:
        """A page of the clearances that have run out by now, and where the next one begins."""
        caller = in_process(self._agent_id, self._new_id())
        if denied := await self._hands.denied(caller, SEEDED[CLEARANCE_EXPIRER].commands):
            log.warning("expirer_stands_down", denied=denied)
            return DuePage()
        page = await self._queries.ask(ListClearances(status=ACTIVE, due_by=self._clock(), limit=PAGE, cursor=after), caller)
        return DuePage(clearance_ids=tuple(row.clearance_id for row in page.items), next_cursor=page.next_cursor)

    async def expire(self, clearance_id: UUID) -> None:
        """Take a clearance out of force if it has run out, and put on record that this agent did."""
        caller = in_process(self._agent_id, self._new_id())
        clearance = await self._hands.read(existing(Clearance, clearance_id), caller)
        if clearance is None or clearance.valid_until is None:
            return
        if is_due(clearance, self._clock()) and not await self._expired(clearance_id, caller):
            return
        if await self._was_own(clearance_id):
            await self._say_so(clearance_id, clearance.valid_until, caller)

    async def _expired(self, clearance_id: UUID, caller: Caller) -> bool:
        """Expire a clearance; false where the agent may not."""
        try:
            await self._hands.execute(ExpireClearance(reason=REASON), caller, target_id=clearance_id)
        except UnauthorizedError as refusal:
            log.warning("expirer_denied", clearance_id=str(clearance_id), reason=refusal.reason)
            return False
        except (Conflict, NotFound) as refusal:
            log.info("clearance_moved_on", clearance_id=str(clearance_id), code=refusal.code)
        return True

    async def _was_own(self, clearance_id: UUID) -> bool:
        """Whether it was this agent that expired a clearance."""
        async with self._store.session() as session:
            rows = await session.load_of(Clearance.__name__, clearance_id, [ClearanceExpired.__name__])
        return bool(rows) and rows[-1].principal_id == self._agent_id

    async def _say_so(self, clearance_id: UUID, valid_until: datetime, caller: Caller) -> None:
        decision_id = expiry_of(clearance_id, valid_until, self._agent_id)
        await self._hands.record(expired(clearance_id, valid_until, self._agent_id), decision_id, caller)
