"""What conductors read and write on the record: the stream of the procedure, and the standing of the submitter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast
from uuid import UUID

from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.ledger import ConductSignals, Ledger
from baton.application.conduct.step_plan import StepPlan
from baton.application.ports import Authorizer, Caller, EventRow, FoldedStanding, Store
from baton.application.record_reader import load_events, require_state
from baton.application.unit_of_work import decode_event
from baton.domain.kernel import Command, Event, StoredEvent
from baton.domain.operation.conduct.messages import MAX_REASON_LENGTH, submitter_stood_down
from baton.domain.operation.conduct.results import Failure
from baton.domain.operation.procedure.iterations import EndProcedureIteration
from baton.domain.operation.procedure.procedure import Procedure

E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class ConductRecord:
    """The stream of a procedure that is conducted."""

    store: Store
    commands: Commands

    async def procedure(self, plan: StepPlan) -> Procedure:
        """Return the current procedure."""
        return await require_state(self.store, Procedure, plan.procedure_id)

    async def events(self, plan: StepPlan, *events: type[E]) -> Sequence[E]:
        """Return the events of these types, oldest first."""
        return await load_events(self.store, plan.procedure_id, *events)

    async def events_after(self, plan: StepPlan, version: int, *events: type[E]) -> tuple[Sequence[E], int]:
        """Return the events of these types after a version, and the version that was read up to."""
        names = [event.__name__ for event in events]
        rows: Sequence[StoredEvent | EventRow]
        if version:
            rows = await self.store.newer(Procedure.__name__, {plan.procedure_id: version})
        else:
            async with self.store.session() as session:
                rows = await session.load_of(Procedure.__name__, plan.procedure_id, names)
        decoded = [cast("E", decode_event(Procedure.aggregate, row)) for row in rows if row.event_type in names]
        return decoded, rows[-1].version if rows else version

    async def execute(self, plan: StepPlan, command: Command) -> None:
        """Execute a command as the submitter of the conduct."""
        await self.commands.execute(command, plan.caller, target_id=plan.procedure_id)

    async def execute_as_service(self, plan: StepPlan, command: Command) -> None:
        """Execute a command as the service itself, until it is on the record."""
        caller = Caller.system(plan.caller.correlation_id)
        await execute_with_retry(self.commands, command, caller, target_id=plan.procedure_id)

    async def end_pass(self, plan: StepPlan, index: int, reason: str, *, discarded: bool = False) -> None:
        """End a pass as the service, so that a submitter who may not end a conduct leaves no pass open."""
        reason, conduct_id = reason[:MAX_REASON_LENGTH], plan.conduct_id
        command = EndProcedureIteration(
            iteration_index=index, converged=None, reason=reason, conduct_id=conduct_id, discarded=discarded
        )
        await self.execute_as_service(plan, command)


@dataclass(frozen=True)
class Submitters:
    """Whether submitters may still act, as this process has folded their streams; the ledger says when that is outdated."""

    authorizer: Authorizer
    _folded: dict[UUID, FoldedStanding] = field(default_factory=dict)

    async def read_standing(self, caller: Caller) -> FoldedStanding:
        """Return the standing that was folded last; it is read only if it never was."""
        return self._folded.get(caller.principal_id) or await self.fold(caller)

    async def fold(self, caller: Caller) -> FoldedStanding:
        """Return the standing by the latest event."""
        standing = self._folded[caller.principal_id] = await self.authorizer.read_standing(caller)
        return standing

    async def has_stood_down(self, caller: Caller) -> bool:
        """Return whether the submitter may not act any more, by the latest event."""
        return (await self.fold(caller)).objection is not None

    async def signals(self, ledger: Ledger, plan: StepPlan) -> ConductSignals:
        """Send a heartbeat between two steps, and return what the record says, with the submitter's standing."""
        while True:
            submitter = await self.read_standing(plan.caller)
            signals = await ledger.beat(plan.between, None, plan.run_id, submitter)
            if not signals.submitter_moved:
                return signals
            await self.fold(plan.caller)

    async def failure(self, plan: StepPlan) -> Failure:
        """Return the failure of a conduct whose submitter stood down."""
        standing = await self.read_standing(plan.caller)
        return submitter_stood_down(standing.objection, steers=plan.steering is not None and standing.is_agent)


def denial_reason(principal_id: UUID, failure: Failure) -> str:
    """Return why the service aborts for a submitter who was denied a command."""
    return f"The principal {principal_id} may not go on with this: {failure.message}"[:MAX_REASON_LENGTH]
