"""The service as its surfaces see it: one way in for commands, one for queries, whatever the transport."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from application.commands import Commands
from application.ports import Authorizer, Caller, Executed
from application.queries import Queries
from domain.kernel import Command, Operation, Query


@dataclass(frozen=True)
class Service:
    """Commands, queries and the seam that judges both."""

    commands: Commands
    queries: Queries
    authorizer: Authorizer

    async def call(
        self,
        operation: Operation,
        request: Command | Query,
        caller: Caller,
        target_id: UUID | None = None,
        key: str | None = None,
    ) -> Executed | Any:
        """Carry out a command or answer a query."""
        if isinstance(request, Command):
            return await self.commands.execute(request, caller, target_id=target_id, key=key)
        return await self.queries.ask(request, caller, target_id=target_id)
