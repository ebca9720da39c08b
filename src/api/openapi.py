"""The OpenAPI document, derived from the registry: typed inputs and answers, every refusal, and where each is declared."""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import baton
from baton.api import errors
from baton.api.origins import ForeignRequestError
from baton.api.parsing import MAX_KEY_LENGTH
from baton.application import identity
from baton.application.ports import StoreUnavailableError
from baton.application.settings import Settings
from baton.domain.access.edge_queries import EventView, StreamEvents
from baton.domain.kernel import Command, History, Query
from baton.domain.operation.conduct.views import StreamProcedureConduct
from baton.domain.registry import Operation, Registry
from baton.domain.shared import refusals as domain
from baton.domain.shared.refusals import Refusal

PACKAGE = Path(baton.__file__).parent
REF = "#/components/schemas/{model}"
ALWAYS_POSSIBLE: tuple[type[Refusal], ...] = (
    *(identity.UnauthenticatedError, identity.InvalidTokenError, domain.UnauthorizedError, ForeignRequestError),
    *(errors.RepeatedHeaderError, errors.RequestTimeoutError, errors.RequestValidationError),
    *(errors.InternalError, errors.ServiceStoppingError),
    *(StoreUnavailableError, identity.KeySetUnavailableError, identity.IntrospectionUnavailableError),
)
COMMAND_REFUSALS: tuple[type[Refusal], ...] = (
    *(domain.ConcurrencyError, domain.IdempotencyClaimLostError, domain.IdempotencyConflictError),
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
ITERATIONS = "Number of iterations in a row that did not converge"
COUNTS = {
    "attempt": "Number of the attempt, from 1.",
    "byte_size": "In bytes.",
    "closing_count": "Number of closing steps.",
    "completed_count": "Number of steps or phases that were completed.",
    "consecutive_failures": "Number of failures in a row.",
    "consecutive_unconverged_iterations": f"{ITERATIONS}.",
    "count": "Number of readings.",
    "daily_token_cap": "Number of tokens in a day, at most.",
    "depth": "Number of levels below the root.",
    "entry_count": "Number of entries.",
    "input_tokens": "Number of tokens.",
    "iterations_remaining": "Number of iterations.",
    "limit": "Number of items on a page, at most.",
    "max_consecutive_unconverged_iterations": f"{ITERATIONS}, at most.",
    "max_depth": "Number of levels, at most.",
    "min_observations": "Number of observations.",
    "missed_count": "Number of firings that were missed.",
    "num_restarts": "Number of restarts of the search.",
    "output_tokens": "Number of tokens.",
    "points_per_axis": "Number of points on each axis.",
    "raw_samples": "Number of samples.",
    "request_max_tokens": "Number of tokens, at most.",
    "scanned": "Number of assets.",
    "skipped_count": "Number of steps or firings that were skipped.",
    "staged_threshold": "Number of observations.",
    "unprocessed": "Number of events.",
}  # Descriptions by property name, for names other than `<thing>_count`.
NUMERIC = frozenset({"integer", "number"})


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
        for role, form in (("answer", operation.returns), ("accepted", operation.accepted)):
            if form is not None:
                wanted.append(((operation.name, role), "serialization", TypeAdapter(form)))
    for role, model in (("error", errors.ErrorBody), ("event", EventView)):
        wanted.append((("", role), "serialization", TypeAdapter(model)))
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
        text += f"\n\nAllowed from: {', '.join(sorted(state.value for state in operation.allowed))}."
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
    elif operation.media_types:
        success["content"] = {media_type: {} for media_type in operation.media_types}
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
    return (domain.InvalidCursorError,) if "cursor" in operation.input.model_fields else ()


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
    properties = {
        operation.aggregate.id_name: UUID_SCHEMA,
        "items": {"type": "array", "items": {"$ref": REF.format(model="EventView")}},
        "next_cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def describe_counts(form: Any) -> Any:
    """Return the schema or document with a description of every count that has none."""
    match form:
        case {"name": str(name), "in": str(), "schema": dict(schema)}:
            return {**form, "schema": describe_property(name, describe_counts(schema))}
        case {"properties": dict(properties), **rest}:
            members = {name: describe_property(name, describe_counts(schema)) for name, schema in properties.items()}
            return {key: members if key == "properties" else describe_counts(rest[key]) for key in form}
        case dict():
            return {key: describe_counts(part) for key, part in form.items()}
        case list():
            return [describe_counts(part) for part in form]
        case _:
            return form


def describe_property(name: str, schema: Any) -> Any:
    """Return the schema of a property, described where it is a count without description."""
    if not isinstance(schema, dict):
        return schema
    options: list[dict[str, Any]] = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not any(part.get("type") in NUMERIC for part in options) or any(part.get("description") for part in options):
        return schema
    thing = name.removesuffix("_count").replace("_", " ")
    description = COUNTS.get(name) or (f"Number of {thing}s." if name.endswith("_count") else None)
    return schema if description is None else {**schema, "description": description}


def operation_source(operation: Operation) -> str | None:
    """Return `src/...py:line` of the class that declares an operation, or of its aggregate where that generates it."""
    source = class_source(operation.input)
    return refusal_source(operation.aggregate.NotFound) if source is None and operation.aggregate else source


def refusal_source(refusal: type[Refusal]) -> str | None:
    """Return `src/...py:line` of a refusal, or of the declaration that generates it."""
    if refusal.declared_at is None:
        return class_source(refusal)
    module, line = refusal.declared_at
    return f"{repository_path(module)}:{line}"


def class_source(cls: type[Any]) -> str | None:
    """Return `src/...py:line` of a class statement; None for a generated class."""
    line = class_lines(cls.__module__).get(cls.__name__)
    return None if line is None else f"{repository_path(cls.__module__)}:{line}"


def repository_path(module: str) -> str:
    """Return the path of a module in the repository, or its name where it belongs to another distribution."""
    path = Path(sys.modules[module].__file__ or "")
    return f"src/{path.relative_to(PACKAGE)}" if path.is_relative_to(PACKAGE) else module


@cache
def class_lines(module: str) -> dict[str, int]:
    """Return the lines of a module's class statements."""
    try:
        text = Path(sys.modules[module].__file__ or "").read_text()
    except (OSError, UnicodeDecodeError):
        return {}
    return {match[1]: text.count("\n", 0, match.start()) + 1 for match in re.finditer(r"^class (\w+)", text, re.MULTILINE)}
