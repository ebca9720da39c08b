"""The types that answers are made of: what a declared type is without its marks, and which fields a form has."""

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ForwardRef, Union

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticUndefined, to_jsonable_python
from typing_extensions import TypeAliasType

from baton.domain.registry import Operation
from baton.domain.shared.listing import Page

NO_DEFAULT: Any = PydanticUndefined


@dataclass(frozen=True)
class AnswerField:
    """One field of an answer: its declared type, its name in JSON, and its value where an older service leaves it out."""

    name: str
    type: Any
    json_name: str
    default: Any = NO_DEFAULT


def bare_type(form: Any) -> Any:
    """Return a type without its marks and aliases; one that refers to itself is any."""
    while True:
        if typing.get_origin(form) is typing.Annotated:
            form = typing.get_args(form)[0]
        elif isinstance(form, TypeAliasType) and form is not JsonValue:
            form = form.__value__
        elif isinstance(form, typing.NewType):
            form = form.__supertype__
        elif isinstance(form, ForwardRef):
            return Any
        else:
            return form


def union_members(form: object) -> tuple[object, ...]:
    """Return the types that a union allows besides None; another type is its only one."""
    bare = bare_type(form)
    if typing.get_origin(bare) not in (Union, types.UnionType):
        return () if bare is type(None) else (bare,)
    return tuple(member for one in typing.get_args(bare) for member in union_members(one))


def is_form(kind: object) -> bool:
    """Return whether a type is an object with fields of its own."""
    return isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))


def form_name(kind: Any) -> str:
    """Return the name of a form; that of a page says what it lists."""
    if typing.get_origin(kind) is Page:
        return f"Page[{form_name(bare_type(typing.get_args(kind)[0]))}]"
    name: str = kind.__name__
    return name


@cache
def form_fields(kind: Any) -> tuple[AnswerField, ...]:
    """Return the fields of a form in their order."""
    if typing.get_origin(kind) is Page:
        items = tuple.__class_getitem__((typing.get_args(kind)[0], ...))
        return AnswerField("items", items, "items"), AnswerField("next_cursor", str | None, "next_cursor")
    if issubclass(kind, BaseModel):
        return tuple(
            AnswerField(name, info.annotation, info.serialization_alias or info.alias or name, default_of(info))
            for name, info in kind.model_fields.items()
        )
    hints = typing.get_type_hints(kind)
    return tuple(AnswerField(one.name, hints[one.name], one.name) for one in fields(kind))


def default_of(info: Any) -> Any:
    """Return the default of a field as JSON data, or NO_DEFAULT."""
    value = info.get_default(call_default_factory=True)
    if value is NO_DEFAULT:
        return value
    plain = to_jsonable_python(value)
    return sorted(plain) if isinstance(value, set | frozenset) else plain


def forms_in(form: object) -> Iterator[object]:
    """Yield every form that a type names, without those that are inside of them."""
    for one in union_members(form):
        origin = typing.get_origin(one)
        if origin is Page or is_form(one):
            yield one
        elif origin in (tuple, list, set, frozenset, dict, Mapping):
            for inner in typing.get_args(one):
                if inner is not Ellipsis:
                    yield from forms_in(inner)


def answer_forms(operation: Operation) -> Iterator[object]:
    """Yield the types that an operation answers with."""
    if not operation.media_types:
        forms = (form for form in (operation.returns, operation.accepted) if form is not None)
        yield from dict.fromkeys(one for form in forms for one in union_members(form))
