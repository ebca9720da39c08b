"""The command and query paths as tests call them: over any store, by a clock that only moves when told."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.application.authorization import PermissiveAuthorizer
from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.ports import Authorizer, CommandResult, Store
from baton.application.queries import Queries
from baton.domain.kernel import Command, Query
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.visit import RegisterVisit
from tests.support.application.ports import ports_of
from tests.support.domain.world import LENIENT, OPERATOR, START, new_id

SECOND = timedelta(seconds=1)


@dataclass
class HandSetClock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now


async def lenient() -> Any:
    """A deployment for development."""
    return SimpleNamespace(**LENIENT)


@dataclass
class CommandCaller:
    """One caller of the service; every command comes a second after the one before it."""

    store: Store
    authorizer: Authorizer = field(default_factory=PermissiveAuthorizer)
    caller: Caller = field(default_factory=lambda: Caller(OPERATOR, SYSTEM_HTTP, new_id()))
    ports: Any = field(default_factory=lambda: ports_of(deployment=lenient))
    clock: HandSetClock = field(default_factory=HandSetClock)
    new_id: Callable[[], UUID] = new_id

    def acting_as(self, principal_id: UUID, surface_id: UUID = SYSTEM_HTTP) -> "CommandCaller":
        """The same service, called by somebody else."""
        return replace(self, caller=Caller(principal_id, surface_id, new_id()))

    @property
    def commands(self) -> Commands:
        return Commands(self.store, self.authorizer, self.clock, self.new_id, self.ports)

    async def do(self, command: Command, on: UUID | None = None, key: str | None = None) -> CommandResult:
        self.clock.now += SECOND
        return await self.commands.execute(command, self.caller, target_id=on, key=key)

    async def create(self, command: Command) -> UUID:
        executed = await self.do(command)
        assert executed.body is not None
        return UUID(next(iter(executed.body.values())))

    async def ask(self, query: Query, on: UUID | None = None) -> Any:
        queries = Queries(self.store, self.authorizer, self.clock, self.new_id, self.ports)
        return await queries.ask(query, self.caller, target_id=on)

    async def versions(self, stream_type: str, id: UUID) -> list[int]:
        async with self.store.session() as session:
            return [row.version for row in await session.load(stream_type, [id])]


def planned_visit(surface_id: UUID | None = None, **fields: Any) -> RegisterVisit:
    """A visit of two days, to be registered."""
    values = {"policy_id": new_id(), "surface_id": surface_id or new_id(), "type": "user", "planned_start_at": START}
    return RegisterVisit(**{**values, "planned_end_at": START + timedelta(days=2), **fields})


__all__ = ["OPERATOR", "SECOND", "START", "CommandCaller", "HandSetClock", "new_id", "planned_visit"]
