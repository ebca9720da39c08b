"""From bytes to checked inputs: bodies, query strings and tool arguments, all refused with the same 422."""

import json
import types
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError

from baton.api.errors import RequestValidationError
from baton.domain.registry import Operation

M = TypeVar("M", bound=BaseModel)

MAX_KEY_LENGTH = 255


def from_json(model: type[M], body: bytes, place: str = "body") -> M:
    """A model from JSON text, strictly: no coercion of types, no unknown keys, none twice."""
    content = decoded(body, place) if body else None
    if b"\\u0000" in body:
        refuse_nul(content, place)
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
    """What JSON text says; what a store cannot hold, numbers beyond a double, is no JSON here."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestValidationError.at(place, msg=f"Invalid JSON: {error.msg}", type="json_invalid") from None
    refuse_repeated_keys(body, content, place)
    return content


def refuse_repeated_keys(body: bytes, content: Any, place: str) -> None:
    """Refuse text in which an object names a key twice: whoever read it before may have believed the other value.

    What is written again without the members that reading dropped has fewer colons. Only an escaped colon could hide that,
    and text with such an escape is read the slow way.
    """
    try:
        if body.count(b":") == orjson.dumps(content).count(b":") and b"\\u003" not in body:
            return
        json.loads(body, object_pairs_hook=distinct_members)
    except (orjson.JSONEncodeError, RecursionError):
        return  # nested deeper than any model takes, which is refused as such
    except RepeatedKeyError:
        raise RequestValidationError.at(place, msg="An object names a key twice; give it once", type="repeated") from None


class RepeatedKeyError(Exception):
    """An object of JSON text names a key twice."""


def distinct_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, if each has a key of its own."""
    content = dict(members)
    if len(content) != len(members):
        raise RepeatedKeyError
    return content


def refuse_nul(content: Any, place: str) -> None:
    """Refuse text with NUL characters, which JSON can spell and the store cannot hold."""
    parts = [content]
    for part in parts:
        if type(part) is dict:
            parts += part.keys()
            parts += part.values()
        elif type(part) is list:
            parts += part
        elif type(part) is str and "\0" in part:
            raise RequestValidationError.at(place, msg="Text must not contain NUL", type="string_nul")
