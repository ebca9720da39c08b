"""From bytes to checked inputs: bodies, query strings and tool arguments, all refused with the same 422."""

import math
import types
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError

from api.errors import RequestValidationError
from domain.registry import Operation

M = TypeVar("M", bound=BaseModel)

MAX_KEY_LENGTH = 255


def from_json(model: type[M], body: bytes, place: str = "body") -> M:
    """A model from JSON text, strictly: no coercion of types, no unknown keys."""
    if b"\\u0000" in body or b"e" in body or b"E" in body:
        refuse_unstorable(body, place)
    try:
        return model.model_validate_json(body or b"{}", strict=True)
    except ValidationError as error:
        raise RequestValidationError.of(error, place) from None


def from_query(model: type[M], query: bytes, path: dict[str, str]) -> M:
    """A model from a query string and the path; a parameter may repeat only where any of its values may match."""
    repeatable = repeatable_fields(model)
    values: dict[str, Any] = dict(path)
    try:
        pairs = parse_qsl(query.decode("ascii", "strict"), keep_blank_values=True, max_num_fields=1000, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise RequestValidationError.at("query", msg="The query string cannot be read", type="query_parsing") from None
    for name, value in pairs:
        if "\0" in value:
            raise RequestValidationError.at("query", name, msg="Text must not contain NUL", type="string_nul")
        if name in repeatable:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise RequestValidationError.at("query", name, msg="Give this parameter once", type="repeated")
        else:
            values[name] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RequestValidationError.of(error, "query") from None


def refuse_internal(operation: Operation, request: BaseModel, place: str = "body") -> None:
    """Refuse fields that only the service itself may set, as if they did not exist."""
    for name in sorted(operation.internal & request.model_fields_set):
        raise RequestValidationError.at(place, name, msg="Extra inputs are not permitted", type="extra_forbidden")


def uuid_from(text: Any, *place: str) -> UUID:
    """An id, from this place of a request."""
    try:
        return UUID(text)
    except (ValueError, TypeError, AttributeError):
        raise RequestValidationError.at(*place, msg="Input should be a valid UUID", type="uuid_parsing") from None


def idempotency_key(key: Any, *place: str) -> str:
    """The caller's idempotency key, from this place of a request."""
    if not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_LENGTH and key.isprintable()):
        raise RequestValidationError.at(*place, msg=f"Give 1 to {MAX_KEY_LENGTH} printable characters", type="key_length")
    return key


@cache
def repeatable_fields(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, info in model.model_fields.items() if _is_collection(info.annotation))


def _is_collection(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_is_collection(part) for part in get_args(annotation))
    return get_origin(annotation) in (tuple, frozenset)


def decoded(body: bytes, place: str) -> Any:
    """What JSON text says."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestValidationError.at(place, msg=f"Invalid JSON: {error.msg}", type="json_invalid") from None


def refuse_unstorable(body: bytes, place: str) -> None:
    """Refuse what JSON can spell and the store cannot hold: NUL characters and numbers beyond a double."""
    parts = [decoded(body, place)]
    for part in parts:
        if type(part) is dict:
            parts += part.keys()
            parts += part.values()
        elif type(part) is list:
            parts += part
        elif type(part) is str:
            if "\0" in part:
                raise RequestValidationError.at(place, msg="Text must not contain NUL", type="string_nul")
        elif type(part) is float and not math.isfinite(part):
            raise RequestValidationError.at(place, msg="Numbers must be finite", type="finite_number")
