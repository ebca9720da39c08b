"""The OpenAPI document, derived from the registry: typed inputs and answers, every refusal, and where each is declared."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter

import baton
from baton.api import errors
from baton.api.counts import describe_counts
from baton.api.origins import ForeignRequestError
from baton.api.parsing import MAX_KEY_LENGTH
from baton.api.source_lines import operation_source, refusal_source
from baton.application.identity import (
    IntrospectionUnavailableError,
    InvalidTokenError,
    KeySetUnavailableError,
    UnauthenticatedError,
)
from baton.application.ports import StoreUnavailableError
from baton.application.settings import Settings
from baton.domain.access.edge_queries import EventView, StreamEvents
from baton.domain.kernel import Command, History, Query
from baton.domain.operation.conduct.views import StreamProcedureConduct
from baton.domain.registry import Operation, Registry
from baton.domain.shared.refusals import (
    ConcurrencyError,
    IdempotencyClaimLostError,
    IdempotencyConflictError,
    InvalidCursorError,
    Refusal,
    UnauthorizedError,
)

REF = "#/components/schemas/{model}"
ALWAYS_POSSIBLE: tuple[type[Refusal], ...] = (
    *(UnauthenticatedError, InvalidTokenError, UnauthorizedError, ForeignRequestError),
    *(errors.RepeatedHeaderError, errors.RequestTimeoutError, errors.RequestValidationError),
    *(errors.InternalError, errors.ServiceStoppingError),
    *(StoreUnavailableError, KeySetUnavailableError, IntrospectionUnavailableError),
)
COMMAND_REFUSALS: tuple[type[Refusal], ...] = (
    *(ConcurrencyError, IdempotencyClaimLostError, IdempotencyConflictError),
    *(errors.RequestTooLargeError, errors.UnsupportedMediaTypeError),
)
UUID_SCHEMA = {"type": "string", "format": "uuid"}
POSITION_HEADER = {
    "description": "The log position of this command; lists accept it as `min_position` to show its effect.",
    "schema": {"type": "integer"},
}
REPLAYED_HEADER = {
    "description": "Present when this is the stored answer to an earlier request.",
    "schema": {"type": "string"},
}
CORRELATION_HEADER = {"description": "Names this request in logs and events.", "schema": UUID_SCHEMA}
STREAM_ID_SCHEMAS: dict[type[Any], dict[str, Any]] = {
    StreamEvents: {"type": "integer", "minimum": 0},
    StreamProcedureConduct: {"type": "string", "pattern": "^[0-9a-fA-F-]{36}:[0-9]{1,10}$"},
}  # The streams, each with the schema of its frame ids.


def openapi_document(registry: Registry, settings: Settings) -> dict[str, Any]:
    """Return the whole document."""
    forms, components = schemas(registry)
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for operation in registry:
        paths[operation.path][operation.method.lower()] = operation_entry(operation, forms)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": baton.__version__,
            "description": "Operations control for experiment facilities. Every operation is also an MCP tool at `/mcp`.",
        },
        "paths": dict(sorted(paths.items())),
        "tags": [{"name": context} for context in sorted({operation.context for operation in registry})],
        "components": {
            "schemas": components,
            "x-refusals": refusal_entries(registry),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
        "security": [{"bearer": []}] if settings.identity_providers else [],
    }
    counted: dict[str, Any] = describe_counts(document)
    return counted


def schemas(registry: Registry) -> tuple[dict[tuple[str, str], Any], dict[str, Any]]:
    """Return the schema of every input and answer, and the components they refer to."""
    wanted: list[tuple[tuple[str, str], Any, TypeAdapter[Any]]] = []
    for operation in registry:
        wanted.append(((operation.name, "input"), "validation", TypeAdapter(operation.input)))
        if operation.returns is not None:
            wanted.append(((operation.name, "answer"), "serialization", TypeAdapter(operation.returns)))
        if operation.accepted is not None:
            wanted.append(((operation.name, "accepted"), "serialization", TypeAdapter(operation.accepted)))
    wanted.append((("", "error"), "serialization", TypeAdapter(errors.ErrorBody)))
    wanted.append((("", "event"), "serialization", TypeAdapter(EventView)))
    generated, definitions = TypeAdapter.json_schemas(wanted, ref_template=REF)
    return {key: schema for (key, _), schema in generated.items()}, definitions.get("$defs", {})


def operation_entry(operation: Operation, forms: dict[tuple[str, str], Any]) -> dict[str, Any]:
    form = input_schema(operation.input)
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.context],
        "summary": operation.summary,
        "description": description_of(operation),
        "parameters": list(parameters(operation, form)),
        "responses": dict(responses(operation, forms)),
        "x-command-name": operation.command_name,
        "x-source": operation_source(operation),
    }
    if operation.has_body:
        members = {name: schema for name, schema in form["properties"].items() if name not in operation.path_fields}
        required = [name for name in form.get("required", ()) if name in members]
        body: dict[str, Any] = {"type": "object", "properties": members, "additionalProperties": False}
        if required:
            body["required"] = required
        entry["requestBody"] = {"required": bool(required), "content": {"application/json": {"schema": body}}}
    return entry


def input_schema(model: type[Command] | type[Query]) -> dict[str, Any]:
    """Return an input's schema, with references into the components and without internal fields."""
    form = model.model_json_schema(ref_template=REF)
    form.setdefault("properties", {})
    for name in model.operation.internal:
        del form["properties"][name]
    return form


def description_of(operation: Operation) -> str:
    text = (operation.input.__doc__ or "").strip()
    if operation.allowed is not None and operation.aggregate is not None:
        states = ", ".join(sorted(state.value for state in operation.allowed))
        text += f"\n\nAllowed from: {states}."
    if operation.own_reasons:
        text += f"\n\nReasons of refusal: {', '.join(f'`{reason}`' for reason in operation.own_reasons)}."
    return text


def parameters(operation: Operation, form: dict[str, Any]) -> Iterable[dict[str, Any]]:
    if operation.target is not None:
        yield {"name": operation.target, "in": "path", "required": True, "schema": UUID_SCHEMA}
    for name in operation.path_fields:
        yield {"name": name, "in": "path", "required": True, "schema": form["properties"][name]}
    if operation.kind == "command":
        schema = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[ -~]+$"}
        yield {"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema}
    if operation.has_body:
        return
    for name, schema in form["properties"].items():
        if name not in operation.path_fields:
            required = name in form.get("required", ())
            yield {"name": name, "in": "query", "required": required, "schema": without_null(schema)}
    if operation.input in STREAM_ID_SCHEMAS:
        yield {"name": "Last-Event-ID", "in": "header", "required": False, "schema": STREAM_ID_SCHEMAS[operation.input]}


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a query parameter's schema without null, which is expressed by leaving it out."""
    if "anyOf" not in schema:
        return schema
    options = [option for option in schema["anyOf"] if option != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}


def responses(operation: Operation, forms: dict[tuple[str, str], Any]) -> Iterable[tuple[str, Any]]:
    headers: dict[str, Any] = {"X-Correlation-Id": CORRELATION_HEADER}
    success: dict[str, Any] = {"description": "Done." if operation.kind == "command" else "The answer.", "headers": headers}
    if operation.kind == "command":
        headers |= {"X-Baton-Position": POSITION_HEADER, "Idempotency-Replayed": REPLAYED_HEADER}
    if operation.input in STREAM_ID_SCHEMAS:
        success["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
        if operation.input is StreamProcedureConduct:
            yield "204", {"description": "Everything was told; there is nothing to come.", "headers": headers}
    elif issubclass(operation.input, History):
        success["content"] = {"application/json": {"schema": history_schema(operation)}}
    elif (operation.name, "answer") in forms:
        success["content"] = {"application/json": {"schema": forms[operation.name, "answer"]}}
    if operation.accepted is not None:
        accepted = {"application/json": {"schema": forms[operation.name, "accepted"]}}
        yield "202", {"description": "Accepted and still running.", "headers": headers, "content": accepted}
        if operation.status != 200:
            yield "200", {**success, "description": "Done; the answer to a repeat of the request."}
    yield str(operation.status), success
    by_status: dict[int, list[type[Refusal]]] = defaultdict(list)
    for refusal in dict.fromkeys((*ALWAYS_POSSIBLE, *common_refusals(operation), *operation.refusals)):
        by_status[refusal.status].append(refusal)
    for status, refusals in sorted(by_status.items()):
        yield str(status), refusal_response(refusals)


def common_refusals(operation: Operation) -> tuple[type[Refusal], ...]:
    """Return the refusals that every operation of this kind has."""
    if operation.kind == "command":
        created = (operation.aggregate.AlreadyExists,) if operation.creates and operation.aggregate else ()
        return (*COMMAND_REFUSALS, *created)
    if operation.input in STREAM_ID_SCHEMAS:
        return (errors.TooManyStreamsError,)
    return (InvalidCursorError,) if "cursor" in operation.input.model_fields else ()


def refusal_response(refusals: list[type[Refusal]]) -> dict[str, Any]:
    lines = "\n".join(f"- `{refusal.__name__}`: {(refusal.__doc__ or '').strip()}" for refusal in refusals)
    codes = {"properties": {"code": {"enum": [refusal.__name__ for refusal in refusals]}}}
    schema = {"allOf": [{"$ref": REF.format(model="ErrorBody")}, codes]}
    return {"description": lines, "content": {"application/json": {"schema": schema}}}


def refusal_entries(registry: Registry) -> dict[str, Any]:
    """Return every refusal by its code, with status, meaning and the source of its declaration."""
    found = dict.fromkeys(ALWAYS_POSSIBLE)
    for operation in registry:
        found |= dict.fromkeys((*common_refusals(operation), *operation.refusals))
    entries: dict[str, Any] = {}
    for refusal in sorted(found, key=lambda refusal: (refusal.__name__, refusal.context)):
        source = refusal_source(refusal)
        if (known := entries.get(refusal.__name__)) is not None:  # one code that several contexts declare
            known["x-source"] = f"{known['x-source']}, {source}"
        else:
            meaning = (refusal.__doc__ or "").strip()
            entries[refusal.__name__] = {"status": refusal.status, "description": meaning, "x-source": source}
    return entries


def history_schema(operation: Operation) -> dict[str, Any]:
    assert operation.aggregate is not None, "only an aggregate has a history"
    id_name = operation.aggregate.id_name
    return {
        "type": "object",
        "properties": {
            id_name: UUID_SCHEMA,
            "items": {"type": "array", "items": {"$ref": REF.format(model="EventView")}},
            "next_cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": [id_name, "items", "next_cursor"],
    }
