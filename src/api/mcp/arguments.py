"""From a tool's arguments to a checked request, as strictly as REST parses its bodies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from pydantic import BaseModel

from api.errors import RequestValidationError
from api.mcp.tools import KEY
from api.parsing import MAX_KEY_LENGTH, from_json, refuse_internal
from domain.kernel import Command, Query
from domain.registry import Operation

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
    key = fields.pop(KEY, None) if operation.kind == "command" else None
    request = checked(operation.input, fields)
    refuse_internal(operation, request, PLACE)
    if KEY in arguments and operation.kind == "command":
        check_key(key)
    return Requested(request, target_id, key)


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
    try:
        return UUID(fields.pop(name))
    except (ValueError, TypeError, AttributeError):
        refuse(name, msg="Input should be a valid UUID", type="uuid_parsing")


def check_key(key: Any) -> None:
    """Refuse an idempotency key that REST would refuse as a header."""
    if not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_LENGTH and key.isprintable()):
        refuse(KEY, msg=f"Give 1 to {MAX_KEY_LENGTH} printable characters", type="key_length")


def refuse(*loc: str, msg: str, type: str) -> NoReturn:
    raise RequestValidationError.at(PLACE, *loc, msg=msg, type=type)
