"""The client's own exchanges, carried out inside the process as the person who is signed in: the same calls, the same
command path and the same refusals as from outside."""

import asyncio
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from baton.api.edge import OperationRoutes
from baton.application.caller import Caller
from baton.client.exchanges import CallScript, ClientSession, Wait
from baton.client.index import OPERATIONS, OperationEntry
from baton.client.refusals import ClientError, ReceivedRefusal
from baton.client.requests import HttpRequest, HttpResponse
from baton.domain.registry import Operation
from baton.domain.shared.refusals import Refusal

T = TypeVar("T")
AnyRefusal = Refusal | ReceivedRefusal  # of the service in this process, or as the client's exchanges receive it
REFUSALS = (Refusal, ReceivedRefusal)
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class InProcessClient:
    """Carries out exchanges as one caller."""

    operations: OperationRoutes
    caller: Caller
    session: ClientSession

    @classmethod
    def of(cls, operations: OperationRoutes, caller: Caller, position: int = 0) -> "InProcessClient":
        session = ClientSession("the service", give_up_seconds=PATIENCE_SECONDS, position=position, answered=True)
        return cls(operations, caller, session)

    async def carry_out(self, exchange: CallScript[T]) -> T:
        """Return the result of an exchange."""
        answer: object = None
        while True:
            try:
                request = exchange.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(request, Wait):
                await asyncio.sleep(request.seconds)
                answer = None
            else:
                answer = await self._answer(request)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        query = urlencode(request.query).encode()
        response = await self.operations.answer(
            request.method, request.path, query, request.headers, request.body or b"", self.caller
        )
        headers = {name.decode(): value.decode() for name, value in response.headers}
        return HttpResponse(response.status, headers, response.body)


def entry_of(operation: Operation) -> OperationEntry:
    """Return an operation as the client knows it."""
    return OPERATIONS[operation.name]


def problem_of(error: AnyRefusal | ClientError) -> dict[str, Any]:
    """Return why a call was refused, as its problem says it; what was not sent at all has no code that leads to a page."""
    if isinstance(error, ClientError):
        return {"detail": str(error), "code": "", "status": 422}
    told = {"detail": error.detail, "code": error.code, "status": error.status, "reason": error.reason}
    return dict(getattr(error, "problem", None) or {**told, "facts": error.facts or {}})
