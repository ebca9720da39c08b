"""The record and the engine compared: what one says is under way and the other does not know of is given up."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import structlog

from baton.application.ports import Clock, Engine, EngineView
from baton.application.telemetry import error_location
from baton.domain.shared.refusals import Conflict, Unavailable

log = structlog.get_logger()


@dataclass(frozen=True)
class LiveConduct:
    """A conduct that the record says has not ended."""

    conduct_id: UUID
    workflow_id: str
    begun: bool
    started_at: datetime


class ConductsOnRecord(Protocol):
    """Conducts of one kind, and what is said of those that nobody works on; what has ended meanwhile stays as it is."""

    async def live(self) -> Sequence[LiveConduct]:
        """Every conduct that has not ended."""
        ...

    async def is_live(self, conduct_id: UUID) -> bool:
        """Whether a conduct has not ended by now."""
        ...

    async def expire(self, conduct_id: UUID) -> None:
        """Give up a conduct that nobody began in time."""
        ...

    async def lose(self, conduct_id: UUID) -> None:
        """Say that nobody works on a conduct any more."""
        ...

    async def stall(self, conduct_id: UUID) -> None:
        """Say that the engine cannot make progress with a conduct."""
        ...


class Reconciler:
    """Gives up conducts that nobody began in time, or that the engine has lost; says of others that they are stalled."""

    def __init__(self, kinds: Sequence[ConductsOnRecord], engine: Engine, clock: Clock, restart_limit: timedelta) -> None:
        self._kinds = kinds
        self._engine = engine
        self._clock = clock
        self._restart_limit = restart_limit

    async def compare(self) -> None:
        """Look at every live conduct once; raises EngineUnavailableError, after what needs no engine."""
        live = [(kind, conduct) for kind in self._kinds for conduct in await kind.live()]
        for kind, conduct in live:
            if not conduct.begun and self._clock() - conduct.started_at > self._restart_limit:
                await self._one_by_one(self._give_up(kind.expire, conduct, "ConductStartExpired"), conduct)
        for kind, conduct in live:
            if conduct.begun:
                await self._one_by_one(self._compare(kind, conduct), conduct)

    async def _one_by_one(self, looking: Awaitable[None], conduct: LiveConduct) -> None:
        """A conduct that cannot be judged does not keep the others from being."""
        try:
            await looking
        except Unavailable:
            raise
        except Exception as error:
            log.error("conduct_not_compared", conduct_id=str(conduct.conduct_id), **error_location(error))

    async def _compare(self, kind: ConductsOnRecord, conduct: LiveConduct) -> None:
        match await self._engine.look(conduct.workflow_id):
            case EngineView.ABSENT:
                if await kind.is_live(conduct.conduct_id):  # the record ends before the workflow does
                    await self._give_up(kind.lose, conduct, "ConductLost")
            case EngineView.STALLED:
                await kind.stall(conduct.conduct_id)
            case EngineView.OPEN:
                pass

    async def _give_up(self, how: Callable[[UUID], Awaitable[None]], conduct: LiveConduct, because: str) -> None:
        try:
            await how(conduct.conduct_id)
        except Conflict as refusal:
            log.info("conduct_ended_meanwhile", conduct_id=str(conduct.conduct_id), code=refusal.code)
        else:
            log.warning("conduct_given_up", conduct_id=str(conduct.conduct_id), because=because)
