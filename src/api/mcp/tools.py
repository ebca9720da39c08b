"""Operations as MCP tools: their schemas, titles and hints, all derived from the registry."""

from functools import cache
from typing import Annotated, Any
from uuid import UUID

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from baton.api.counts import describe_counts
from baton.api.openapi import UUID_SCHEMA, described
from baton.api.parsing import MAX_KEY_LENGTH
from baton.application.feed import EventView
from baton.domain.kernel import Command, History, Query
from baton.domain.registry import Operation

KEY = "idempotency_key"
Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_KEY_LENGTH,
        description="A text of your choice that names this call; repeated with it, the call is carried out once.",
    ),
]
KEY_SCHEMA = TypeAdapter(Key).json_schema()
REPEATABLE_METHODS = frozenset({"PUT", "DELETE"})


class _Untitled(GenerateJsonSchema):
    """Schemas without the titles that only repeat the names of fields; a listing is read by models that pay for length."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def tool_of(input: type[Command] | type[Query]) -> Tool:
    """The tool of the operation that this input belongs to, made once."""
    operation = input.operation
    query = operation.kind == "query"
    return described_tool(
        operation.name,
        described(operation),
        input_schema(operation),
        output_schema(operation),
        read_only=query,
        destructive=operation.destructive,
        idempotent=query or operation.method in REPEATABLE_METHODS,
    )


def described_tool(
    name: str,
    description: str,
    input: dict[str, Any],
    output: dict[str, Any] | None,
    *,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
) -> Tool:
    """A tool with a readable title and hints that say nothing beyond this service is touched."""
    title = name.replace("_", " ").capitalize()
    hints = ToolAnnotations(
        title=title,
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=False,
    )
    forms = {"input_schema": describe_counts(input), "output_schema": describe_counts(output)}
    return Tool(name=name, title=title, description=description, annotations=hints, **forms)


def input_schema(operation: Operation) -> dict[str, Any]:
    """The arguments of an operation: the ids in its path, its own fields, and the key that makes a command repeatable."""
    form = form_of(operation.input)
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


def form_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model that stands for itself: its definitions are inside, its description is the tool's."""
    form = model.model_json_schema(schema_generator=_Untitled)
    kept = {name: part for name, part in form.items() if name not in ("title", "description")}
    return {"properties": {}, **kept, "type": "object", "additionalProperties": False}


def output_schema(operation: Operation) -> dict[str, Any] | None:
    """The form of an operation's answer, if it has one; long work may answer with its ids instead."""
    answer = history_answer(operation) if issubclass(operation.input, History) else operation.returns
    if answer is None:
        return None
    return answer_form(answer if operation.accepted is None else answer | operation.accepted)


def answer_form(answer: Any) -> dict[str, Any]:
    """The schema of an answer; every answer is an object, whichever of several it is."""
    return {**TypeAdapter(answer).json_schema(mode="serialization", schema_generator=_Untitled), "type": "object"}


def history_answer(operation: Operation) -> type[BaseModel]:
    """The form of a history, which names its aggregate's id."""
    assert operation.aggregate is not None, "only an aggregate has a history"
    fields: dict[str, Any] = {
        operation.aggregate.id_name: (UUID, ...),
        "items": (tuple[EventView, ...], ...),
        "next_cursor": (str | None, ...),
    }
    return create_model(f"{operation.aggregate.name}History", **fields)
