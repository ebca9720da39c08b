"""REST endpoints: parse each operation's input strictly and answer it from the service."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel

from baton.api.errors import RequestValidationError
from baton.api.http import Request, Response
from baton.api.parsing import from_json, from_query, idempotency_key, refuse_internal, uuid_from, wants_dry_run
from baton.application.caller import Caller
from baton.application.ports import CommandResult
from baton.application.service import Service
from baton.domain.kernel import Document, HistoryPage, State
from baton.domain.registry import Operation
from baton.domain.shared.listing import Page

INERT = (
    b"content-security-policy",
    b"default-src 'none'; style-src 'unsafe-inline'; img-src data:",
)  # a document runs no script, and loads nothing
DIGEST = b"x-baton-sha256"  # of a document that names its own digest
NEXT_CURSOR = b"x-baton-next-cursor"  # of a document that is answered in pages
NO_CONTENT = 204
LARGE_BODY = 32 * 1024  # bytes; what is larger keeps the process busy for milliseconds at a time


@dataclass(frozen=True)
class OperationEndpoint:
    """Serves one operation over HTTP. Requests with a large body take turns, so that others wait for one of them at most."""

    operation: Operation
    service: Service
    turn: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)

    async def __call__(self, request: Request, caller: Caller) -> Response:
        operation = self.operation
        target_id = uuid_from(request.path[operation.target], "path", operation.target) if operation.target else None
        body = await self._body(request)
        if len(body) > LARGE_BODY and not operation.opens_work:  # long work is waited for
            async with self.turn:
                return await self._answer(request, body, caller, target_id)
        return await self._answer(request, body, caller, target_id)

    async def _answer(self, request: Request, body: bytes, caller: Caller, target_id: UUID | None) -> Response:
        request_input = self._input(request, body)
        if self.operation.kind == "query":
            return query_response((await self.service.show(request_input, caller, target_id=target_id)).shown)
        if wants_dry_run(request.header(b"prefer")):
            rehearsed = await self.service.dry_run(request_input, caller, target_id=target_id)
            return Response(200, rehearsed.model_dump_json().encode(), [(b"preference-applied", b"handling=dry-run")])
        given = request.header(b"idempotency-key")
        key = None if given is None else idempotency_key(given, "header", "Idempotency-Key")
        return executed_response(await self.service.execute(request_input, caller, target_id=target_id, key=key))

    async def _body(self, request: Request) -> bytes:
        if not self.operation.has_body:
            return b""
        if request.query:
            raise RequestValidationError.at("query", msg="This takes no query parameters", type="extra_forbidden")
        return await request.body()

    def _input(self, request: Request, body: bytes) -> Any:
        operation = self.operation
        fields = {name: request.path[name] for name in operation.path_fields}
        if not operation.has_body:
            return from_query(operation.input, request.query, fields)
        request_input = from_json(operation.input, body, path=fields)
        refuse_internal(operation, request_input)
        return request_input


def query_response(answer: object) -> Response:
    """Return the response to a query."""
    if isinstance(answer, Document):
        told = ((NEXT_CURSOR, answer.next_cursor), (DIGEST, answer.digest))
        further = [(name, value.encode()) for name, value in told if value is not None]
        return Response(200, answer.content, [INERT, *further], content_type=answer.media_type.encode())
    return Response(200, answer_json(answer))


def executed_response(executed: CommandResult) -> Response:
    """Return the response to a command, with its log position."""
    headers = [(b"x-baton-position", str(executed.position).encode())]
    if executed.replayed:
        headers.append((b"idempotency-replayed", b"true"))
    empty = executed.body is None or executed.status == NO_CONTENT  # which has more for agents, and no body here
    body = b"" if empty else orjson.dumps(executed.body)
    return Response(executed.status, body, headers)


def answer_json(answer: object) -> bytes:
    """Return a query's answer as JSON text."""
    match answer:
        case State():
            return answer.aggregate.show(answer).model_dump_json().encode()
        case BaseModel():
            return answer.model_dump_json().encode()
        case Page(items, next_cursor):
            rows = b",".join(map(item_json, items))
            return b'{"items":[%b],"next_cursor":%b}' % (rows, orjson.dumps(next_cursor))
        case HistoryPage(id_name, id, items, next_cursor):
            return plain_json({id_name: id, "items": items, "next_cursor": next_cursor})
        case _:
            return plain_json(answer)


def item_json(item: object) -> bytes:
    """Return one item of a page as JSON text."""
    return item.model_dump_json(warnings=False).encode() if isinstance(item, BaseModel) else plain_json(item)


def plain_json(data: object) -> bytes:
    """Return plain data as JSON text in the form that models have: times end with Z."""
    return orjson.dumps(data, option=orjson.OPT_UTC_Z)
