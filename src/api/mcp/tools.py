"""Operations as MCP tools: schemas, titles and hints, derived from the registry, and the parsing of their arguments."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar
from uuid import UUID

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from baton.api.errors import RequestValidationError
from baton.api.openapi import UUID_SCHEMA, describe_counts, description_of
from baton.api.parsing import MAX_KEY_LENGTH, from_json, idempotency_key, refuse_internal, uuid_from
from baton.domain.access.edge_queries import EventView
from baton.domain.kernel import Command, History, Query
from baton.domain.registry import Operation

PLACE = "arguments"
M = TypeVar("M", bound=BaseModel)
KEY = "idempotency_key"
KEY_MEANING = "A text of your choice that names this call; repeated with it, the call is carried out once."
Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH, description=KEY_MEANING)]
KEY_SCHEMA = TypeAdapter(Key).json_schema()
REPEATABLE_METHODS = frozenset({"PUT", "DELETE"})


class _Untitled(GenerateJsonSchema):
    """Generates schemas without titles that repeat field names, because models pay for the length of a listing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def tool_of(input: type[Command] | type[Query]) -> Tool:
    """Return the tool of the operation with this input."""
    operation = input.operation
    name, text, destructive = operation.name, description_of(operation), operation.destructive
    query, forms = operation.kind == "query", (input_schema(operation), output_schema(operation))
    repeatable = query or operation.method in REPEATABLE_METHODS
    return make_tool(name, text, *forms, read_only=query, destructive=destructive, idempotent=repeatable)


def make_tool(
    name: str,
    description: str,
    input: dict[str, Any],
    output: dict[str, Any] | None,
    *,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
) -> Tool:
    """Return a tool with a readable title and hints; none reaches beyond this service."""
    title = name.replace("_", " ").capitalize()
    hints = {"read_only_hint": read_only, "destructive_hint": destructive, "idempotent_hint": idempotent}
    annotations = ToolAnnotations(title=title, open_world_hint=False, **hints)
    forms = {"input_schema": describe_counts(input), "output_schema": describe_counts(output)}
    return Tool(name=name, title=title, description=description, annotations=annotations, **forms)


def input_schema(operation: Operation) -> dict[str, Any]:
    """Return the schema of an operation's arguments: the ids of its path, its fields and a command's idempotency key."""
    form = model_schema(operation.input)
    for name in operation.internal:
        del form["properties"][name]
    if operation.target is not None:
        label = operation.aggregate.label if operation.aggregate else "record"
        target = {operation.target: {**UUID_SCHEMA, "description": f"The id of the {label}."}}
        form["properties"] = {**target, **form["properties"]}
        form["required"] = [operation.target, *form.get("required", ())]
    if operation.kind == "command":
        form["properties"] = {**form["properties"], KEY: KEY_SCHEMA}
    return form


def model_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the self-contained schema of a model, without title and description, which the tool has."""
    form = model.model_json_schema(schema_generator=_Untitled)
    members = {name: part for name, part in form.items() if name not in ("title", "description")}
    return {"properties": {}, **members, "type": "object", "additionalProperties": False}


def output_schema(operation: Operation) -> dict[str, Any] | None:
    """Return the schema of an operation's answer, if it has one; long work may answer with its ids instead."""
    answer = history_answer(operation) if issubclass(operation.input, History) else operation.returns
    if answer is None:
        return None
    return answer_schema(answer if operation.accepted is None else answer | operation.accepted)


def answer_schema(answer: Any) -> dict[str, Any]:
    """Return the schema of an answer, which is always an object."""
    return {**TypeAdapter(answer).json_schema(mode="serialization", schema_generator=_Untitled), "type": "object"}


def history_answer(operation: Operation) -> type[BaseModel]:
    """Return the model of a history, which names the aggregate's id."""
    assert operation.aggregate is not None, "only an aggregate has a history"
    page: dict[str, Any] = {"items": (tuple[EventView, ...], ...), "next_cursor": (str | None, ...)}
    return create_model(f"{operation.aggregate.name}History", **{operation.aggregate.id_name: (UUID, ...), **page})


def tool_request(operation: Operation, arguments: Mapping[str, Any]) -> tuple[Command | Query, UUID | None, str | None]:
    """Return the request in these arguments, the id of its target and its idempotency key."""
    fields = dict(arguments)
    target_id = None
    if operation.target is not None:
        if operation.target not in fields:
            refuse_arguments(operation.target, msg="Field required", type="missing")
        target_id = uuid_from(fields.pop(operation.target), PLACE, operation.target)
    keyed = operation.kind == "command" and KEY in fields
    key = fields.pop(KEY) if keyed else None
    request = validate_arguments(operation.input, fields)
    refuse_internal(operation, request, PLACE)
    return request, target_id, idempotency_key(key, PLACE, KEY) if keyed else None


def validate_arguments(model: type[M], fields: Mapping[str, Any]) -> M:
    """Return a model from decoded arguments; they are encoded again, because only JSON text is parsed strictly."""
    try:
        text = json.dumps(fields, allow_nan=False)
    except (ValueError, RecursionError):
        refuse_arguments(msg="Numbers must be finite and nesting shallow", type="json_invalid")
    return from_json(model, text.encode(), PLACE)


def refuse_arguments(*loc: str, msg: str, type: str) -> NoReturn:
    """Raise the refusal of an argument."""
    raise RequestValidationError.at(PLACE, *loc, msg=msg, type=type)
