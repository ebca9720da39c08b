"""The index that the client works from: every operation, kind of thing, form of answer and refusal, as far as a caller has
to know them. `client/index.py` reads it."""

import typing
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from keyword import iskeyword
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, JsonValue

from baton.api import errors
from baton.api.refusal_catalogue import ALWAYS_POSSIBLE, COMMAND_REFUSALS, common_refusals
from baton.api.schemas import input_schema
from baton.cli.generated.answer_types import (
    NO_DEFAULT,
    answer_forms,
    bare_type,
    form_fields,
    form_name,
    forms_in,
    is_form,
    union_members,
)
from baton.domain.conduct.frames import EndFrame, IterationFrame, StepFrame
from baton.domain.conduct.point_list import PointFrame
from baton.domain.conduct.views import ConductView, StreamProcedureConduct
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate
from baton.domain.registry import Operation, snake_case
from baton.domain.shared import refusals as families
from baton.domain.shared.dry_run import DryRun
from baton.domain.shared.event_view import EventView
from baton.domain.shared.listing import ListQuery, Page
from baton.domain.shared.naming import name_field, referred_aggregate
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.sources import operation_source, refusal_source
from baton.domain.trust.proposal import Proposed
from baton.domain.views import event_log

STREAMS = frozenset({event_log.StreamEvents.operation.name, StreamProcedureConduct.operation.name})
"""The operations that never answer as a whole."""
OTHER_FORMS = (ConductView, StepFrame, IterationFrame, PointFrame, EndFrame, EventView, DryRun, Proposed)
"""The forms that a client meets besides those that operations declare: frames of streams, dry runs, proposals."""
SCALARS = {UUID: "uuid", datetime: "datetime", AwareDatetime: "datetime", date: "date"}
PLAIN = (str, int, float, bool, dict, object, None, type(None), Any, JsonValue)
CONTAINERS = {tuple: "tuple", list: "list", set: "set", frozenset: "set"}
Kind = str | list[Any] | None  # of a value: None is as JSON has it, a text is a scalar or a form, a list a container


def index_document() -> dict[str, object]:
    """Return the whole index."""
    return {
        "operations": {one.name: operation_entry(one) for one in REGISTRY},
        "aggregates": {name: aggregate_entry(one) for name, one in sorted(REGISTRY.aggregates.items())},
        "forms": form_entries(),
        "refusals": refusal_entries(),
    }


def members_said(**members: object) -> dict[str, Any]:
    """Return the members that say something; the reader knows what the others are."""
    return {name: value for name, value in members.items() if value not in (None, False, "", [], {}, ())}


def operation_entry(operation: Operation) -> dict[str, Any]:
    """Return what the client has to know of an operation."""
    returns = None if operation.media_types else kind_of(operation.returns)
    if returns is None and operation.returns is not None and not operation.media_types:
        raise TypeError(f"{operation.name} answers no object, and the client would read nothing")
    return members_said(
        kind=operation.kind,
        method=operation.method,
        path=operation.path,
        target=operation.target,
        target_kind=named_kind(operation.aggregate) if operation.target else None,
        input=operation.input.__name__,
        permission=operation.command_name,
        summary=operation.summary,
        source=operation_source(operation),
        arguments=dict(argument_entries(operation)),
        returns=returns,
        accepted=kind_of(operation.accepted),
        media_types=list(operation.media_types),
        refusals=sorted({one.__name__ for one in operation.refusals}),
        streams=operation.name in STREAMS,
    )


def argument_entries(operation: Operation) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the arguments of an operation by their names, those of its path that are fields among them."""
    schemas = input_schema(operation)["properties"]
    for field, info in operation.input.model_fields.items():
        if field not in operation.internal:
            name = info.alias or field
            yield (
                name,
                members_said(
                    required=info.is_required(),
                    text=wanted_text(schemas[name]),
                    refers_to=named_kind(referred_aggregate(name, operation.aggregate)),
                ),
            )


def named_kind(aggregate: Aggregate | None) -> str | None:
    """Return the name of an aggregate whose things have names."""
    return aggregate.name if aggregate is not None and name_field(aggregate) is not None else None


def wanted_text(schema: Mapping[str, Any]) -> Literal["always", "or null", ""]:
    """Return whether nothing but a text fits a schema, or a text and null, or something else."""
    if schema.get("type") == "string":
        return "always"
    options = schema.get("anyOf")
    return "or null" if options and all(one.get("type") == "null" or wanted_text(one) for one in options) else ""


def aggregate_entry(aggregate: Aggregate) -> dict[str, Any]:
    """Return what the client has to know of a kind of thing."""
    return members_said(
        label=aggregate.label,
        id_name=aggregate.id_name,
        name_field=name_field(aggregate),
        axis=aggregate.axis,
        collection=collection_name(aggregate),
        lists=next((one.name for one in aggregate.operations if is_list(one)), None),
        verbs={short_name(one, aggregate): one.name for one in verbs_of(aggregate)},
        makers={short_name(one, aggregate): one.name for one in makers_of(aggregate)},
    )


def collection_name(aggregate: Aggregate) -> str:
    """Return the name of all things of a kind, which is the last part of their path."""
    return aggregate.path.rsplit("/", 1)[-1].replace("-", "_")


def is_list(operation: Operation) -> bool:
    """Return whether an operation lists things and needs no target."""
    return issubclass(operation.input, ListQuery) and operation.target is None


def verbs_of(aggregate: Aggregate) -> list[Operation]:
    """Return the operations on one thing by their names."""
    return sorted((one for one in aggregate.operations if one.target == aggregate.id_name), key=lambda one: one.name)


def makers_of(aggregate: Aggregate) -> list[Operation]:
    """Return the operations on all things of a kind, apart from its lists, by their names."""
    own = (one for one in aggregate.operations if one.target is None and not issubclass(one.input, ListQuery))
    return sorted(own, key=lambda one: one.name)


def short_name(operation: Operation, aggregate: Aggregate) -> str:
    """Return the name of an operation without that of its aggregate; `return_subject` is `return_`."""
    name = operation.name.replace(f"_{snake_case(aggregate.name)}", "", 1)
    return f"{name}_" if iskeyword(name) else name


def kind_of(form: object) -> Kind:
    """Return how the client reads a value of a type."""
    kinds = [single_kind(one) for one in union_members(form)]
    special = [one for one in kinds if one is not None]
    if len(kinds) < 2 or not special:
        return special[0] if special else None
    if any(one in SCALARS.values() for one in special):
        return None  # a text that may be something else than a text is left as it is
    return ["union", *special]


def single_kind(form: object) -> Kind:
    """Return how the client reads a value of a type that is no union."""
    origin, arguments = typing.get_origin(form), typing.get_args(form)
    if origin is Page or is_form(form):
        return form_name(form)
    if form in SCALARS:
        return SCALARS[form]
    if origin in CONTAINERS:
        inner = {repr(one): one for one in map(kind_of, (one for one in arguments if one is not Ellipsis))}
        if len(inner) > 1:
            raise TypeError(f"the client cannot read {form}")
        return [CONTAINERS[origin], *(one for one in inner.values() if one is not None)]
    if origin in (dict, Mapping):
        keys, values = map(kind_of, arguments)
        return None if keys is None and values is None else ["map", keys, values]
    if origin is Literal or form in PLAIN or (isinstance(form, type) and issubclass(form, Enum)):
        return None
    raise TypeError(f"the client cannot read {form}")


def form_entries() -> dict[str, object]:
    """Return every form of an answer, and those inside of them, by their names."""
    entries: dict[str, object] = {}
    waiting = [one for operation in REGISTRY for form in answer_forms(operation) for one in forms_in(form)]
    waiting += OTHER_FORMS
    while waiting:
        form = waiting.pop()
        name, entry = form_name(form), form_entry(form)
        if name not in entries:
            waiting += [one for field in form_fields(form) for one in forms_in(field.type)]
        elif entries[name] != entry:
            raise TypeError(f"two forms are called {name}")
        entries[name] = entry
    return dict(sorted(entries.items()))


def form_entry(form: object) -> dict[str, object]:
    """Return the fields of a form: how each is read, what it is where it is left out, and which tell it from others."""
    fields = form_fields(form)
    return members_said(
        fields={one.name: kind_of(one.type) for one in fields},
        defaults={one.name: one.default for one in fields if one.default not in (NO_DEFAULT, None)},
        json_names={one.name: one.json_name for one in fields if one.json_name != one.name},
        marks={one.name: mark for one in fields if (mark := only_value(one.type)) is not None},
    )


def only_value(form: object) -> object:
    """Return the only value that a field may have; None where it may have others."""
    literal = bare_type(form)
    if typing.get_origin(literal) is not Literal:
        return None
    values = [one.value if isinstance(one, Enum) else one for one in typing.get_args(literal)]
    return values[0] if len(values) == 1 else None


def refusal_entries() -> dict[str, Any]:
    """Return every refusal by its code: those of operations, and those that any request may get."""
    common = [one for module in (families, errors) for one in vars(module).values() if is_refusal(one)]
    common += [*ALWAYS_POSSIBLE, *COMMAND_REFUSALS, *(one for operation in REGISTRY for one in common_refusals(operation))]
    classes: dict[str, list[type[Refusal]]] = {}
    for one in dict.fromkeys((*(one for operation in REGISTRY for one in operation.refusals), *common)):
        classes.setdefault(one.__name__, []).append(one)
    return {code: refusal_entry(declared) for code, declared in sorted(classes.items())}


def is_refusal(one: object) -> bool:
    """Return whether an object is a class of refusal that can be answered."""
    return isinstance(one, type) and issubclass(one, Refusal) and one.__name__.endswith("Error")


def refusal_entry(declared: list[type[Refusal]]) -> dict[str, object]:
    """Return what there is to say of a refusal; contexts may share its code."""
    first = declared[0]
    sources = [source for one in declared if (source := refusal_source(one)) is not None]
    return members_said(status=first.status, meaning=" ".join((first.__doc__ or "").split()), sources=sources)
