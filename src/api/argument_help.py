"""Help with arguments of the wrong form: the fields that an operation needs, an example, and what a name may stand for."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError

from baton.api.errors import NeededField, RequestValidationError
from baton.api.http import Endpoint, Request, Response
from baton.api.schemas import input_form
from baton.application.caller import Caller
from baton.application.service import Service
from baton.domain.kernel import Aggregate
from baton.domain.registry import Operation
from baton.domain.shared.field_meanings import meaning_of
from baton.domain.shared.json_schema import name_in
from baton.domain.shared.naming import name_field, referred_aggregate
from baton.domain.shared.refusals import Refusal

MAX_CANDIDATES = 5
TOP_LEVEL = 2  # Parts of the place of a field that is in no other: where the fields are, and its name.


@dataclass(frozen=True)
class HelpfulEndpoint:
    """The endpoint of an operation, whose refusals of wrong arguments say what it needs."""

    endpoint: Endpoint
    operation: Operation
    service: Service

    async def __call__(self, request: Request, caller: Caller) -> Response:
        try:
            return await self.endpoint(request, caller)
        except RequestValidationError as error:
            raise await with_help(error, self.operation, self.service, caller) from None


async def with_help(
    error: RequestValidationError, operation: Operation, service: Service, caller: Caller
) -> RequestValidationError:
    """Return the refusal with the fields that are needed, an example, and the things that a name in place of an id may mean,
    as far as the caller may list them."""
    error.needed, error.example = needed_fields(operation), operation.example
    if any(fault["type"] == "extra_forbidden" and len(fault["loc"]) == TOP_LEVEL for fault in error.errors):
        taken = ", ".join(input_form(operation)["properties"]) or "no fields"
        error.detail = f"{error.detail} {operation.name} takes {taken}."
    candidates: list[dict[str, str]] = []
    wanting = [(field, text, aggregate) for field, text in error.names if (aggregate := named_aggregate(operation, field))]
    for field, text, aggregate in wanting:
        candidates += [{"field": field, **found} for found in await find_candidates(aggregate, text, service, caller)]
    if wanting:
        fields = " and ".join(dict.fromkeys(field for field, _, _ in wanting))
        listed = "facts.candidates lists what has such a name" if candidates else "nothing that you may list has such a name"
        error.detail = f"{error.detail} Give {fields} as an id, not as a name; {listed}."
    if candidates:
        error.facts = {"candidates": candidates[:MAX_CANDIDATES]}
    return error


@cache
def needed_fields(operation: Operation) -> tuple[NeededField, ...]:
    """Return the fields that a call of an operation must give, those of the path first."""
    return tuple(_needed_fields(operation))


def _needed_fields(operation: Operation) -> Iterator[NeededField]:
    if operation.target is not None:
        label = operation.aggregate.label if operation.aggregate is not None else "record"
        yield NeededField(name=operation.target, type="uuid", description=f"The id of the {label}.")
    schema = input_form(operation)
    for name in schema.get("required", ()):
        form = schema["properties"][name]
        meaning = form.get("description") or meaning_of(name, operation.input.__name__)
        yield NeededField(name=name, type=type_name(form, schema), description=meaning)


def type_name(form: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the name of a field's type: its format, or what kind of JSON value it is."""
    if "$ref" in form:
        return type_name(schema["$defs"][name_in(form["$ref"])], schema)
    if options := form.get("anyOf") or form.get("oneOf"):
        return " or ".join(dict.fromkeys(type_name(option, schema) for option in options))
    return str(form.get("format") or form.get("type") or "any")


def named_aggregate(operation: Operation, field: str) -> Aggregate | None:
    """Return the aggregate that an id field refers to, where its things have names and can be listed."""
    owner = operation.aggregate
    aggregate = owner if field == operation.target else referred_aggregate(field, owner)
    return aggregate if aggregate is not None and name_field(aggregate) and list_by_name(aggregate) else None


@cache
def list_by_name(aggregate: Aggregate) -> Operation | None:
    """Return the list of an aggregate that takes names."""
    lists = (one for one in aggregate.operations if one.target is None and {"name", "q"} <= one.input.model_fields.keys())
    return next((one for one in lists if one.kind == "query"), None)


async def find_candidates(aggregate: Aggregate, text: str, service: Service, caller: Caller) -> list[dict[str, str]]:
    """Return id and name of the things with this name, or of those whose name holds it, if the caller may list them."""
    operation, name = list_by_name(aggregate), name_field(aggregate)
    if (
        operation is None
        or name is None
        or operation.command_name not in await service.authorizer.permitted_commands(caller)
    ):
        return []
    for wanted in ({"name": text}, {"q": text}):
        with suppress(Refusal, ValidationError):
            query: Any = operation.input.model_validate({**wanted, "limit": MAX_CANDIDATES})
            page = await service.ask(query, caller)
            if page.items:
                return [{"id": str(getattr(row, aggregate.id_name)), "name": str(getattr(row, name))} for row in page.items]
    return []
