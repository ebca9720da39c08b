"""REST: every operation of the registry at its path, parsed strictly and answered from the one service."""

from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import BaseModel

from baton.api.errors import RequestValidationError
from baton.api.http import Request, Response
from baton.api.parsing import decoded, from_json, from_query, idempotency_key, refuse_internal, uuid_from
from baton.application.ports import Caller, Executed
from baton.application.queries import HistoryPage
from baton.application.service import Service
from baton.domain.registry import Operation
from baton.domain.shared.listing import Page


class OperationEndpoint:
    """One operation over HTTP."""

    def __init__(self, operation: Operation, service: Service) -> None:
        self.operation = operation
        self._service = service

    async def __call__(self, request: Request, caller: Caller) -> Response:
        operation = self.operation
        target_id = uuid_from(request.path[operation.target], "path", operation.target) if operation.target else None
        asked: Any = await self._input(request)
        if operation.kind == "query":
            return Response(200, answer_json(await self._service.ask(asked, caller, target_id=target_id)))
        given = request.header(b"idempotency-key")
        key = None if given is None else idempotency_key(given, "header", "Idempotency-Key")
        return executed_response(await self._service.execute(asked, caller, target_id=target_id, key=key))

    async def _input(self, request: Request) -> Any:
        operation = self.operation
        if not operation.has_body:
            fields = {name: request.path[name] for name in operation.path_fields}
            return from_query(operation.input, request.query, fields)
        if request.query:
            raise RequestValidationError.at("query", msg="This takes no query parameters", type="extra_forbidden")
        asked = from_json(operation.input, await self._body(request))
        refuse_internal(operation, asked)
        return asked

    async def _body(self, request: Request) -> bytes:
        """The request body, with the fields that the path names put in."""
        body = await request.body()
        if not self.operation.path_fields:
            return body
        members = decoded(body or b"{}", "body")
        if not isinstance(members, dict):
            raise RequestValidationError.at("body", msg="Input should be an object", type="model_type")
        for name in self.operation.path_fields:
            if name in members:
                raise RequestValidationError.at("body", name, msg="This field is given by the path", type="extra_forbidden")
            members[name] = request.path[name]
        return orjson.dumps(members)


def executed_response(executed: Executed) -> Response:
    headers = [(b"x-baton-position", str(executed.position).encode())]
    if executed.replayed:
        headers.append((b"idempotency-replayed", b"true"))
    body = b"" if executed.body is None else orjson.dumps(executed.body)
    return Response(executed.status, body, headers)


def answer_json(answer: Any) -> bytes:
    """A query's answer as JSON text."""
    match answer:
        case BaseModel():
            return answer.model_dump_json().encode()
        case Page(items, next_cursor):
            return b'{"items":[%b],"next_cursor":%b}' % (items_json(items), orjson.dumps(next_cursor))
        case HistoryPage(id_name, id, items, next_cursor):
            return plain_json({id_name: id, "items": items, "next_cursor": next_cursor})
        case _:
            return plain_json(answer)


def items_json(items: Sequence[Any]) -> bytes:
    return b",".join(
        item.model_dump_json(warnings=False).encode() if isinstance(item, BaseModel) else plain_json(item) for item in items
    )


def plain_json(data: Any) -> bytes:
    """What is no model, in the same form: times end with Z."""
    return orjson.dumps(data, option=orjson.OPT_UTC_Z)
