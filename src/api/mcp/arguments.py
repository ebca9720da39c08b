"""Parsing of tool arguments, as strict as that of REST bodies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from pydantic import BaseModel

from baton.api.errors import RequestValidationError
from baton.api.mcp.tools import KEY
from baton.api.parsing import from_json, idempotency_key, refuse_internal, uuid_from
from baton.domain.kernel import Command, Query
from baton.domain.registry import Operation

PLACE = "arguments"
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class ToolRequest:
    """The request of a tool call."""

    request: Command | Query
    target_id: UUID | None
    key: str | None


def tool_request(operation: Operation, arguments: Mapping[str, Any]) -> ToolRequest:
    """Return the request in these arguments."""
    fields = dict(arguments)
    target_id = take_id(fields, operation.target) if operation.target is not None else None
    keyed = operation.kind == "command" and KEY in fields
    key = fields.pop(KEY) if keyed else None
    request = validated(operation.input, fields)
    refuse_internal(operation, request, PLACE)
    return ToolRequest(request, target_id, idempotency_key(key, PLACE, KEY) if keyed else None)


def validated(model: type[M], fields: Mapping[str, Any]) -> M:
    """Return a model from decoded arguments; they are encoded again, because only JSON text is parsed strictly."""
    try:
        text = json.dumps(fields, allow_nan=False)
    except (ValueError, RecursionError):
        refuse_arguments(msg="Numbers must be finite and nesting shallow", type="json_invalid")
    return from_json(model, text.encode(), PLACE)


def take_id(fields: dict[str, Any], name: str) -> UUID:
    """Remove the target's id from the arguments and return it."""
    if name not in fields:
        refuse_arguments(name, msg="Field required", type="missing")
    return uuid_from(fields.pop(name), PLACE, name)


def refuse_arguments(*loc: str, msg: str, type: str) -> NoReturn:
    """Raise the refusal of an argument."""
    raise RequestValidationError.at(PLACE, *loc, msg=msg, type=type)
