"""Answers: objects whose members are those of the JSON that the service writes, with ids and times as Python has them. One
reading serves any version of the service: what it leaves out is None, and a value that is not known stays as it came."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import cache
from typing import Any, ClassVar, SupportsFloat, SupportsIndex
from uuid import UUID

from baton.client.index import FORMS, FormEntry, Kind
from baton.client.notebook import data_frame, html_of

SCALARS: dict[str, Callable[[Any], Any]] = {"uuid": UUID, "datetime": datetime.fromisoformat, "date": date.fromisoformat}
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "list": list, "set": frozenset}


class ServiceAnswer:
    """One answer of the service, or a part of one; the forms are its subclasses, and `operations.pyi` has their types."""

    _form: ClassVar[FormEntry]

    def __init__(self, **members: object) -> None:
        form = self._form
        missing = {name: form.defaults.get(name) for name in form.fields if name not in members}
        vars(self).update({name: read_value(form.fields[name], value) for name, value in missing.items()}, **members)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is an answer of the service, and stays as it came")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self._form.fields)))

    def _repr_html_(self) -> str:
        return html_of(vars(self))

    def to_pandas(self) -> Any:
        """Return the answer as a data frame of pandas: a row for each item of a page, else one row."""
        items = getattr(self, "items", None)
        return data_frame(items if isinstance(items, list | tuple) else [self])

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON data, under the names that the service writes."""
        names = self._form.json_names
        return {names.get(name, name): json_value(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class AnsweredDocument:
    """An answer that is a file of another form than the service's own JSON: a manifest, a picture, a foreign record."""

    media_type: str
    content: bytes
    next_cursor: str | None = None
    """Where the next page begins, of one that is answered in pages; None on the last one."""

    @property
    def items(self) -> list[Any]:
        """The lines of a file of JSON lines, each as JSON data."""
        return [json.loads(line) for line in self.content.splitlines()]


@cache
def form_class(name: str) -> type[ServiceAnswer]:
    """Return the class of a form, whose name it has."""
    return type(name, (ServiceAnswer,), {"_form": FORMS[name], "__module__": "baton.client.operations"})


def read_value(kind: Kind, value: object, *, keep_others: bool = False) -> Any:
    """Return a value of a JSON document as its kind says; members that its forms do not declare are kept where wanted."""
    if kind is None or value is None:
        return value
    if isinstance(kind, str):
        return read_scalar(kind, value) if kind in SCALARS else read_form(kind, value, keep_others)
    container, *inner = kind
    if container == "union":
        chosen = chosen_kind(inner, value)
        return value if chosen is None else read_value(chosen, value, keep_others=keep_others)
    if container == "map" and isinstance(value, dict):
        keys, values = inner
        return {read_value(keys, key): read_value(values, one, keep_others=keep_others) for key, one in value.items()}
    if container in CONTAINERS and isinstance(value, list):
        item = inner[0] if inner else None
        items = value if item is None else [read_value(item, one, keep_others=keep_others) for one in value]
        try:
            return CONTAINERS[container](items)
        except TypeError:
            return tuple(items)  # members of a set that another version of the service has given what no set can hold
    return value


def read_scalar(kind: str, value: object) -> object:
    """Return an id or a time; what is none is left as it came."""
    try:
        return SCALARS[kind](value)
    except (ValueError, TypeError, AttributeError):
        return value


def read_form(name: str, value: object, keep_others: bool) -> object:
    """Return an object as the form of this name; what is no object is left as it came."""
    if not isinstance(value, dict):
        return value
    made = form_class(name)
    form, members = made._form, {}
    for key, (member, kind) in form.keys.items():
        given = value[key] if key in value else form.defaults.get(member)
        members[member] = given if kind is None else read_value(kind, given, keep_others=keep_others)
    if keep_others:
        members |= {key: one for key, one in value.items() if key not in form.keys}
    answer = made.__new__(made)
    vars(answer).update(members)
    return answer


def chosen_kind(kinds: list[Any], value: Any) -> Kind:
    """Return the kind of a union that a value is of: the form with its marks and most of its keys, or the container."""
    if isinstance(value, list):
        return next((kind for kind in kinds if not isinstance(kind, str)), None)
    if not isinstance(value, dict):
        return None
    forms = [FORMS[kind] for kind in kinds if isinstance(kind, str)]
    marked = [form for form in forms if all(value.get(name) == mark for name, mark in form.marks.items())]
    best = max(marked or forms, key=lambda form: similarity(form, value), default=None)
    return best.name if best is not None and is_recognizable(best.name, value) else None


def similarity(form: FormEntry, value: Mapping[str, object]) -> tuple[int, int]:
    """Return how well an object fits a form: the keys they share, then how few the form has besides."""
    return len(form.keys.keys() & value.keys()), -len(form.keys.keys() - value.keys())


def is_recognizable(kind: Kind, value: object) -> bool:
    """Return whether a value has anything of a kind that consists of keys."""
    if isinstance(kind, list) and kind[0] == "union":
        return any(is_recognizable(one, value) for one in kind[1:])
    if isinstance(kind, str) and kind not in SCALARS:
        return isinstance(value, dict) and not FORMS[kind].keys.keys().isdisjoint(value)
    return kind is None or value is not None


def json_value(value: object) -> Any:
    """Return a value as JSON data, as the service reads and writes it."""
    match value:
        case Enum():
            return json_value(value.value)
        case None | str() | bool() | int() | float():
            return value
        case UUID():
            return str(value)
        case datetime() | time():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case ServiceAnswer():
            return value.to_dict()
        case Mapping():
            return {str(json_value(key)): json_value(one) for key, one in value.items()}
        case set() | frozenset():
            return sorted((json_value(one) for one in value), key=str)
        case list() | tuple():
            return [json_value(one) for one in value]
        case SupportsIndex():
            return int(value)
        case SupportsFloat():
            return float(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: json_value(getattr(value, one.name)) for one in fields(value)}
    if hasattr(value, "model_dump"):  # a model of pydantic, which writes itself
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    raise TypeError(f"{value!r} cannot be written as JSON")
