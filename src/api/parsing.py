"""Strict parsing of bodies, query strings and tool arguments; every fault is the same 422 refusal."""

import json
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError

from baton.api.errors import RequestValidationError, UnstorableTextError
from baton.api.http import Scope
from baton.domain.registry import Operation
from baton.domain.shared.text import UNSTORABLE

M = TypeVar("M", bound=BaseModel)

MAX_KEY_LENGTH = 255
DRY_RUN = "dry-run"


def from_json(model: type[M], body: bytes, place: str = "body", path: Mapping[str, str] | None = None) -> M:
    """Return a model from JSON text and the fields that the path gives, without coercion, unknown or repeated keys."""
    body = body or b"{}"  # read twice: the model's own reader, alone strict as JSON wants it, takes repeated keys and NaN
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestValidationError.at(place, msg=f"Invalid JSON: {error.msg}", type="json_invalid") from None
    refuse_repeated_keys(body, content, place)
    if path:
        content = with_path_fields(content, path)
        body = orjson.dumps(content)
    if b"\\u0000" in body:
        refuse_nul(content, place)
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise RequestValidationError.of(error, place) from None


def with_path_fields(content: object, path: Mapping[str, str]) -> dict[str, object]:
    """Return the members of a body and the fields of the path; raise where the body names one of those."""
    if not isinstance(content, dict):
        raise RequestValidationError.at("body", msg="An object is expected", type="model_type")
    for name in path:
        if name in content:
            raise RequestValidationError.at("body", name, msg="This field is given by the path", type="extra_forbidden")
    return {**content, **path}


def from_query(model: type[M], query: bytes, path: dict[str, str]) -> M:
    """Return a model from a query string and the path; only parameters of collection type may repeat."""
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
    """Raise for fields that only the service itself may set, as for unknown ones."""
    for name in sorted(operation.internal & request.model_fields_set):
        raise RequestValidationError.at(place, name, msg="There is no such field", type="extra_forbidden")


def uuid_from(text: Any, *place: str) -> UUID:
    """Return the id at this place of a request."""
    try:
        return UUID(text)
    except (ValueError, TypeError, AttributeError):
        raise RequestValidationError.at(*place, msg="An id is expected", type="uuid_parsing", given=text) from None


def idempotency_key(key: object, *place: str) -> str:
    """Return the idempotency key at this place of a request."""
    if not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_LENGTH and key.isprintable()):
        raise RequestValidationError.at(*place, msg=f"Give 1 to {MAX_KEY_LENGTH} printable characters", type="key_length")
    return key


def wants_dry_run(prefer: str | None) -> bool:
    """Return whether a `Prefer` header (RFC 7240) asks for a dry run; a handling that is unknown here is refused, because it
    may be a dry run that was spelled wrongly."""
    if prefer is None:
        return False
    named = {name.strip().lower(): value.strip().strip('"').lower() for name, _, value in map(preference, prefer.split(","))}
    handling = named.get("handling")
    if handling not in (None, "strict", "lenient", DRY_RUN):
        raise RequestValidationError.at("header", "Prefer", msg=f"Give handling={DRY_RUN}, or no handling", type="enum")
    return handling == DRY_RUN


def preference(text: str) -> tuple[str, str, str]:
    """Return name and value of one preference, without its parameters."""
    return text.partition(";")[0].partition("=")


@cache
def repeatable_fields(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, info in model.model_fields.items() if _is_collection(info.annotation))


def _is_collection(annotation: object) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_is_collection(part) for part in get_args(annotation))
    return get_origin(annotation) in (tuple, frozenset)


def refuse_repeated_keys(body: bytes, content: object, place: str) -> None:
    """Raise where an object names a key twice: another reader of the same text may have used the other value."""
    # Content written again lacks the members that reading dropped, so it has fewer colons, unless a colon was escaped.
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


def distinct_members(members: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object of these members; raise where two have the same key."""
    content = dict(members)
    if len(content) != len(members):
        raise RepeatedKeyError
    return content


def refuse_unstorable(scope: Scope) -> None:
    """Raise where the path or a header of a request holds what no text on record holds."""
    if UNSTORABLE.search(scope["path"]) or any(b"\0" in value for _, value in scope["headers"]):
        detail = "The path or a header holds NUL or half of a surrogate pair, which no text has; leave it out."
        raise UnstorableTextError(detail)


def refuse_nul(content: Any, place: str) -> None:
    """Raise for NUL characters and halves of surrogate pairs, which JSON can express and the store cannot hold."""
    parts = [content]
    for part in parts:
        if type(part) is dict:
            parts += part.keys()
            parts += part.values()
        elif type(part) is list:
            parts += part
        elif type(part) is str and UNSTORABLE.search(part):
            raise RequestValidationError.at(place, msg="Text must not contain NUL", type="string_nul")
