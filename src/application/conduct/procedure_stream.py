"""The stream of a procedure that is conducted: what its conductors read on it, and how they write on it."""

from collections.abc import Sequence
from typing import TypeVar

from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_plan import ConductPlan
from baton.application.ports import Caller, EventRow, Store
from baton.application.record_reader import load_events, require_state
from baton.application.unit_of_work import decode_event
from baton.domain.kernel import Command, Event, StoredEvent
from baton.domain.operation.conduct.messages import MAX_REASON_LENGTH, lifecycle_failure
from baton.domain.operation.conduct.results import Failure
from baton.domain.operation.procedure.iterations import EndProcedureIteration
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.shared.refusals import UnauthorizedError

E = TypeVar("E", bound=Event)


class ConductRecord:
    """Everything on it may be asked for again: the stream says whether it was done already."""

    def __init__(self, store: Store, commands: Commands) -> None:
        self._store = store
        self._commands = commands

    async def procedure(self, score: ConductPlan) -> Procedure:
        """The procedure as it stands."""
        return await require_state(self._store, Procedure, score.procedure_id)

    async def happened(self, score: ConductPlan, *events: type[E]) -> Sequence[E]:
        """The events of these types, oldest first."""
        return await load_events(self._store, score.procedure_id, *events)

    async def behind(self, score: ConductPlan, version: int, *events: type[E]) -> tuple[Sequence[E], int]:
        """The events of these types that came behind a version, and the version that was read up to."""
        names = [event.__name__ for event in events]
        rows: Sequence[StoredEvent | EventRow]
        if version:
            rows = await self._store.newer(Procedure.__name__, {score.procedure_id: version})
        else:
            async with self._store.session() as session:
                rows = await session.load_of(Procedure.__name__, score.procedure_id, names)
        found = [decode_event(Procedure.aggregate, row) for row in rows if row.event_type in names]
        return found, rows[-1].version if rows else version  # type: ignore[return-value]

    async def execute(self, score: ConductPlan, command: Command) -> None:
        """Give a command as whoever asked for the conduct."""
        await self._commands.execute(command, score.caller, target_id=score.procedure_id)

    async def as_service(self, score: ConductPlan, command: Command) -> None:
        """Give a command as the service itself, until it is on the record."""
        caller = Caller.system(score.caller.correlation_id)
        await execute_with_retry(self._commands, command, caller, target_id=score.procedure_id)

    async def end_pass(self, score: ConductPlan, index: int, reason: str, *, discarded: bool = False) -> None:
        """End a pass by the service itself: whoever may not end a conduct must not leave its pass open."""
        command = EndProcedureIteration(
            iteration_index=index, converged=None, reason=reason[:MAX_REASON_LENGTH], conduct_id=score.conduct_id, discarded=discarded
        )
        await self.as_service(score, command)


def refused(target: str, denied: UnauthorizedError) -> Failure:
    """The failure of a conduct whose submitter was denied one of its commands."""
    return lifecycle_failure(target, "UnauthorizedError", denied.detail)
