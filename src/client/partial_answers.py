"""Answers of another version of the service, as far as they can be read: what is missing is None, and a value that is not
known is left as it came."""

import types
import typing
from collections.abc import Mapping
from typing import Any, Union

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined

from baton.domain.shared.listing import Page

SEQUENCES: dict[Any, Any] = {tuple: tuple, list: list, frozenset: frozenset, set: frozenset}


def is_recognizable(form: Any, data: Any) -> bool:
    """Return whether data has anything of a form that consists of keys."""
    forms = [typing.get_origin(one) or one for one in members_of(form)]
    keys: set[str] = set()
    for one in forms:
        keys |= {"items"} if one is Page else set(getattr(one, "model_fields", ()))
    return isinstance(data, Mapping) and not keys.isdisjoint(data)


def read_partly(form: Any, data: Any) -> Any:
    """Return data in a form, as far as it fits."""
    while typing.get_origin(form) is typing.Annotated:
        form = typing.get_args(form)[0]
    try:
        return TypeAdapter(form).validate_python(data, extra="ignore")
    except ValidationError:
        pass
    origin, arguments = typing.get_origin(form), typing.get_args(form)
    if origin in (Union, types.UnionType):
        fitting = (one for one in members_of(form) if is_recognizable(one, data))
        return read_partly(next(fitting), data) if is_recognizable(form, data) else data
    if origin is Page and isinstance(data, Mapping):
        items = tuple(read_partly(arguments[0], one) for one in data.get("items", ()))
        return Page(items, data.get("next_cursor"))
    if origin in SEQUENCES and isinstance(data, list):
        return SEQUENCES[origin](read_partly(arguments[0], one) for one in data)
    if origin in (dict, Mapping) and isinstance(data, Mapping):
        return {key: read_partly(arguments[1], one) for key, one in data.items()}
    if isinstance(form, type) and issubclass(form, BaseModel) and isinstance(data, Mapping):
        known = {
            name: read_partly(info.annotation, data[name]) if name in data else info.get_default(call_default_factory=True)
            for name, info in form.model_fields.items()
        }
        return form.model_construct(**{name: None if value is PydanticUndefined else value for name, value in known.items()})
    return data


def members_of(form: Any) -> tuple[Any, ...]:
    """Return the forms that a union allows; another form is its only one."""
    return typing.get_args(form) if typing.get_origin(form) in (Union, types.UnionType) else (form,)
