"""Whether those who asked for conducts may still act, as this process has folded their streams."""

from uuid import UUID

from baton.application.conduct.conduct_plan import ConductPlan
from baton.application.conduct.ledger import Ledger, ConductSignals
from baton.application.ports import Authorizer, Caller, FoldedStanding
from baton.domain.operation.conduct.messages import submitter_stood_down
from baton.domain.operation.conduct.results import Failure


class Submitters:
    """Keeps the folded standing of each submitter; the ledger says with each step whether it is still the latest."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._folded: dict[UUID, FoldedStanding] = {}

    async def standing(self, caller: Caller) -> FoldedStanding:
        """Return the standing that was folded last; it is read only if it never was."""
        return self._folded.get(caller.principal_id) or await self.fold(caller)

    async def fold(self, caller: Caller) -> FoldedStanding:
        """Return the standing by the very latest event."""
        standing = self._folded[caller.principal_id] = await self._authorizer.standing(caller)
        return standing

    async def lost(self, caller: Caller) -> bool:
        """Return whether the submitter may not act any more, by the very latest event."""
        return (await self.fold(caller)).objection is not None

    async def orders(self, ledger: Ledger, score: ConductPlan) -> ConductSignals:
        """Give a sign of life between two steps, and return what the record says, the submitter's standing included."""
        while True:
            submitter = await self.standing(score.caller)
            orders = await ledger.beat(score.between, None, score.run_id, submitter)
            if not orders.submitter_moved:
                return orders
            await self.fold(score.caller)

    async def failure(self, score: ConductPlan) -> Failure:
        """Return the failure of a conduct whose submitter stood down."""
        standing = await self.standing(score.caller)
        return submitter_stood_down(standing.objection, steers=score.steering is not None and standing.is_agent)
