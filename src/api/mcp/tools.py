"""Operations as MCP tools: schemas, titles and hints, derived from the registry, and the parsing of their arguments."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from inspect import getdoc
from typing import Annotated, NoReturn, TypeVar
from uuid import UUID

import orjson
from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, Field

from baton.api.errors import RequestValidationError
from baton.api.mcp.slim_schemas import listed_schema, slim_schema
from baton.api.openapi import UUID_SCHEMA
from baton.api.parsing import MAX_KEY_LENGTH, from_json, idempotency_key, refuse_internal, uuid_from
from baton.api.schemas import input_schema
from baton.domain.kernel import Command, Query
from baton.domain.registry import Operation
from baton.domain.shared.field_faults import needed_text
from baton.domain.shared.json_schema import Schema

PLACE = "arguments"
M = TypeVar("M", bound=BaseModel)
KEY, DRY_RUN = "idempotency_key", "dry_run"
KEY_MEANING = "Repeated with it, a call runs once."
DRY_RUN_MEANING = "Only say what it would record."
Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH, description=KEY_MEANING)]
COMMAND_ARGUMENTS = {
    KEY: {"type": "string", "description": KEY_MEANING},
    DRY_RUN: {"type": "boolean", "description": DRY_RUN_MEANING},
}
REPEATABLE_METHODS = frozenset({"PUT", "DELETE"})


@cache
def tool_of(input: type[Command] | type[Query]) -> Tool:
    """Return the tool of the operation with this input."""
    operation = input.operation
    text, form = tool_description(operation), listed_schema(arguments_schema(operation))
    if operation.kind == "query":
        return make_tool(operation.name, text, form)
    repeatable = operation.method in REPEATABLE_METHODS
    return make_tool(operation.name, text, form, changes=True, destructive=operation.destructive, idempotent=repeatable)


def tool_description(operation: Operation) -> str:
    """Return what an operation does, from which states, and an example of its arguments."""
    text = getdoc(operation.input) or ""
    if operation.allowed is not None and operation.aggregate is not None:
        text += f"\n\nAllowed from: {', '.join(sorted(state.value for state in operation.allowed))}."
    if operation.example is not None:
        text += f"\n\nExample: {orjson.dumps(operation.example).decode()}"
    return text


def make_tool(
    name: str,
    description: str,
    input: dict[str, object],
    *,
    changes: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
) -> Tool:
    """Return a tool with those hints that differ from what the protocol assumes; none reaches beyond this service. Its title
    would repeat its name, and the schema of its answer is as long as everything else together: both are left out."""
    hints = {"destructive_hint": None if destructive else False, "idempotent_hint": idempotent or None}
    annotations = ToolAnnotations(open_world_hint=False, **(hints if changes else {"read_only_hint": True}))
    return Tool(name=name, description=description, annotations=annotations, input_schema=input)


def arguments_schema(operation: Operation) -> Schema:
    """Return the schema of an operation's arguments: the ids of its path, its fields and what every command takes."""
    form = tool_schema(input_schema(operation))
    if operation.target is not None:
        label = operation.aggregate.label if operation.aggregate else "record"
        target = {operation.target: {**UUID_SCHEMA, "description": f"The id of the {label}."}}
        form["properties"] = {**target, **form["properties"]}
        form["required"] = [operation.target, *form.get("required", ())]
    if operation.kind == "command":
        form["properties"] = {**form["properties"], **COMMAND_ARGUMENTS}
    return form


@cache
def argument_names(input: type[Command] | type[Query]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the arguments that an operation needs and those that it takes besides, without what every command takes."""
    form = arguments_schema(input.operation)
    needed = tuple(form.get("required", ()))
    return needed, tuple(name for name in form["properties"] if name not in {*needed, *COMMAND_ARGUMENTS})


def tool_schema(form: Schema) -> Schema:
    """Return the schema of a model as a tool has it: without title and description, which are the tool's, and slim."""
    members = {name: part for name, part in form.items() if name not in ("title", "description")}
    return slim_schema({"properties": {}, **members, "type": "object"})


@dataclass(frozen=True)
class ToolRequest:
    """What the arguments of a tool ask for."""

    input: Command | Query
    target_id: UUID | None
    key: str | None = None
    dry_run: bool = False


def tool_request(operation: Operation, arguments: Mapping[str, object]) -> ToolRequest:
    """Return what these arguments ask of an operation."""
    fields = dict(arguments)
    target_id = None
    if operation.target is not None:
        if operation.target not in fields:
            refuse_arguments(operation.target, msg=needed_text(operation.target), type="missing")
        target_id = uuid_from(fields.pop(operation.target), PLACE, operation.target)
    own = {name: fields.pop(name) for name in COMMAND_ARGUMENTS if operation.kind == "command" and name in fields}
    request = validate_arguments(operation.input, fields)
    refuse_internal(operation, request, PLACE)
    key = idempotency_key(own[KEY], PLACE, KEY) if KEY in own else None
    if type(dry_run := own.get(DRY_RUN, False)) is not bool:
        refuse_arguments(DRY_RUN, msg="True or false is expected", type="bool_type")
    return ToolRequest(request, target_id, key, dry_run)


def validate_arguments(model: type[M], fields: Mapping[str, object]) -> M:
    """Return a model from decoded arguments; they are encoded again, because only JSON text is parsed strictly."""
    try:
        text = json.dumps(fields, allow_nan=False)
    except (ValueError, RecursionError):
        refuse_arguments(msg="Numbers must be finite and nesting shallow", type="json_invalid")
    return from_json(model, text.encode(), PLACE)


def refuse_arguments(*loc: str, msg: str, type: str) -> NoReturn:
    """Raise the refusal of an argument."""
    raise RequestValidationError.at(PLACE, *loc, msg=msg, type=type)
