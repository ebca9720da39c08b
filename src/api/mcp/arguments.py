"""From a tool's arguments to a checked request, as strictly as REST parses its bodies."""

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
class Requested:
    """What a tool call asks for."""

    request: Command | Query
    target_id: UUID | None
    key: str | None


def requested(operation: Operation, arguments: Mapping[str, Any]) -> Requested:
    """The request in these arguments."""
    fields = dict(arguments)
    target_id = id_in(fields, operation.target) if operation.target is not None else None
    keyed = operation.kind == "command" and KEY in fields
    key = fields.pop(KEY) if keyed else None
    request = checked(operation.input, fields)
    refuse_internal(operation, request, PLACE)
    return Requested(request, target_id, idempotency_key(key, PLACE, KEY) if keyed else None)


def checked(model: type[M], fields: Mapping[str, Any]) -> M:
    """A model from decoded arguments; encoded once more, because only JSON text is parsed strictly."""
    try:
        text = json.dumps(fields, allow_nan=False)
    except (ValueError, RecursionError):
        refuse(msg="Numbers must be finite and nesting shallow", type="json_invalid")
    return from_json(model, text.encode(), PLACE)


def id_in(fields: dict[str, Any], name: str) -> UUID:
    """Take the target's id out of the arguments."""
    if name not in fields:
        refuse(name, msg="Field required", type="missing")
    return uuid_from(fields.pop(name), PLACE, name)


def refuse(*loc: str, msg: str, type: str) -> NoReturn:
    raise RequestValidationError.at(PLACE, *loc, msg=msg, type=type)
