"""How an agent of the service acts: as its own actor, in process, through the one command path."""

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

import structlog

from baton.application.commands import Commands, execute_with_retry
from baton.application.ports import Authorizer, Caller, CommandResult, Store
from baton.application.unit_of_work import UnitOfWork
from baton.domain.agent.decision_records import RecordAgentDecision
from baton.domain.decision.decision import Decision, RegisterDecision
from baton.domain.decision.inferences import Span
from baton.domain.kernel import NIL, Command
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import UnauthorizedError

log = structlog.get_logger()

T = TypeVar("T")


class AgentClient:
    """What every agent reads and writes with."""

    def __init__(self, store: Store, commands: Commands, authorizer: Authorizer, ports: Ports) -> None:
        self._store = store
        self._commands = commands
        self._authorizer = authorizer
        self._ports = ports

    async def read(self, reads: Reads[T], caller: Caller) -> T:
        """Fulfil what a rule asks to know."""
        async with self._store.session() as session:
            return await UnitOfWork(session, caller, self._authorizer, self._ports).fulfil(reads)

    async def denied(self, caller: Caller, commands: Iterable[str]) -> list[str]:
        """Those of these commands that the agent may not give now."""
        return [name for name in sorted(commands) if not (await self._authorizer.authorize(caller, name)).allowed]

    async def execute(
        self, command: Command, caller: Caller, *, target_id: UUID | None = None, new_id: UUID | None = None
    ) -> CommandResult:
        """Give a command; whoever is faster only makes it be decided again."""
        return await execute_with_retry(self._commands, command, caller, target_id=target_id, new_id=new_id)

    async def record(
        self, choice: RegisterDecision, decision_id: UUID, caller: Caller, calls: tuple[Span, ...] = ()
    ) -> bool:
        """Put a decision on record, once; false where the agent is not permitted to."""
        command = RecordAgentDecision(choice=choice, calls=calls)
        try:
            executed = await self.execute(command, caller, new_id=decision_id)
        except Decision.aggregate.AlreadyExists:
            return True
        except UnauthorizedError as refusal:
            log.error("agent_denied", agent_id=str(caller.principal_id), reason=refusal.reason, **spent_on(calls))
            return False
        if executed.body is not None and not executed.body["calls_kept"]:
            log.error("calls_not_kept", agent_id=str(caller.principal_id), decision_id=str(decision_id), **spent_on(calls))
        return True


def in_process(
    agent_id: UUID, correlation_id: UUID, causation_id: UUID | None = None, *, completing: bool = False
) -> Caller:
    """An agent of the service as a caller."""
    return Caller(agent_id, NIL, correlation_id, causation_id, completing=completing)


def spent_on(calls: tuple[Span, ...]) -> dict[str, Any]:
    """What calls took, for the log."""
    return {
        "input_tokens": sum(call.input_tokens or 0 for call in calls),
        "output_tokens": sum(call.output_tokens or 0 for call in calls),
        "cost": sum(call.cost or 0 for call in calls),
    }
