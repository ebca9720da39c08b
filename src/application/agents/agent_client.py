"""How an agent of the service acts: as its own actor, in process, through the one command path."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.ports import CommandResult
from baton.domain.agent.conclusions import RecordAgentDecision
from baton.domain.decision.decision import Decision, RegisterDecision, Span
from baton.domain.kernel import NIL, Command
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import UnauthorizedError

log = structlog.get_logger()
T = TypeVar("T")


@dataclass
class AgentClient:
    commands: Commands

    async def read(self, reads: Reads[T], caller: Caller) -> T:
        return await self.commands.read(reads, caller)

    async def denied_commands(self, caller: Caller, commands: Iterable[str]) -> list[str]:
        """Return those of these commands that the agent may not give now."""
        authorizer = self.commands.authorizer
        return [name for name in sorted(commands) if not (await authorizer.authorize(caller, name)).is_allowed]

    async def execute(
        self, command: Command, caller: Caller, *, target_id: UUID | None = None, new_id: UUID | None = None
    ) -> CommandResult:
        """Execute a command, again while it loses races."""
        return await execute_with_retry(self.commands, command, caller, target_id=target_id, new_id=new_id)

    async def record(
        self, choice: RegisterDecision, decision_id: UUID, caller: Caller, calls: tuple[Span, ...] = ()
    ) -> bool:
        """Register a decision, once; return false where the agent is not permitted to."""
        try:
            result = await self.execute(RecordAgentDecision(choice=choice, calls=calls), caller, new_id=decision_id)
        except Decision.aggregate.AlreadyExists:
            return True
        except UnauthorizedError as refusal:
            log.error("agent_denied", agent_id=str(caller.principal_id), reason=refusal.reason, **usage_of(calls))
            return False
        if result.body is not None and not result.body["calls_kept"]:
            log.error("calls_not_kept", agent_id=str(caller.principal_id), decision_id=str(decision_id), **usage_of(calls))
        return True


def in_process(
    agent_id: UUID, correlation_id: UUID, causation_id: UUID | None = None, *, completing: bool = False
) -> Caller:
    """Return an agent of the service as a caller."""
    return Caller(agent_id, NIL, correlation_id, causation_id, completing=completing)


def usage_of(calls: tuple[Span, ...]) -> dict[str, object]:
    return {
        "input_tokens": sum(call.input_tokens or 0 for call in calls),
        "output_tokens": sum(call.output_tokens or 0 for call in calls),
        "cost": sum(call.cost or 0 for call in calls),
    }
