"""The OpenAPI document, derived from the registry: typed inputs and answers, every refusal, and where each is declared."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from inspect import getdoc
from typing import Any

import baton
from baton.api.parsing import MAX_KEY_LENGTH
from baton.api.refusal_catalogue import ALWAYS_POSSIBLE, STREAMS, possible_refusals, refusal_catalogue
from baton.api.schemas import Forms, generate_forms
from baton.api.service_paths import SERVICE_PATHS, SERVICE_TAG
from baton.domain.conduct.views import StreamProcedureConduct
from baton.domain.registry import Operation, Registry
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.examples import fill
from baton.domain.shared.field_meanings import describe
from baton.domain.shared.json_schema import COMPONENTS, Schema, reachable
from baton.domain.shared.sources import operation_source
from baton.domain.trust.policy import approvable_commands
from baton.domain.views.event_log import StreamEvents

UUID_SCHEMA = {"type": "string", "format": "uuid"}
JSON, PROBLEM = "application/json", "application/problem+json"
STREAM_ID_SCHEMAS: dict[type[Any], Schema] = {
    StreamEvents: {"type": "integer", "minimum": 0},
    StreamProcedureConduct: {"type": "string", "pattern": "^[0-9a-fA-F-]{36}:[0-9]{1,10}$"},
}  # The streams, each with the schema of its frame ids.
TAGS = {
    "access": "Who acts: people and service accounts, their profiles, and the subjects of their tokens.",
    "agent": "Software agents, the language models that they use, and what they react to.",
    "calibration": "Calibrations of assets, their revisions and publication, and results that rest on replaced ones.",
    "campaign": "Campaigns: runs that belong together.",
    "caution": "Cautions: what people must know before they use something.",
    "data": "Datasets, their copies and checks, acquisitions, editions and provenance.",
    "decision": "Decisions, what they rest on, and what overrides them.",
    "edge": "The log of events, and what the caller may do.",
    "enclosure": "Enclosures such as hutches, and whether they are permitted.",
    "equipment": "Assets and their tree, families, models, roles, frames, mounts, assemblies and fixtures.",
    "federation": "Facilities, their credentials, permits and seals, and artifacts that peers exchange.",
    "operation": "Procedures, how they are conducted and steered, signals, and schedules.",
    "recipe": "Capabilities, methods, practices, plans and recipes: what can be done, and how.",
    "run": "Runs: the gates they pass, their conduct, their logbooks and observations.",
    "safety": "Clearances: safety forms, their templates and their review.",
    "subject": "Subjects: the samples that are measured.",
    "supply": "Supplies such as beam, power and cooling, and whether they are available.",
    "trust": "Zones, conduits, surfaces and policies: who may do what from where; visits.",
    **SERVICE_TAG,
}  # The contexts, each with what it is about.
HEADERS: dict[str, Schema] = {
    "Baton-Version": {"description": "The version of the service.", "schema": {"type": "string"}},
    "X-Correlation-Id": {"description": "Names this request in logs and events.", "schema": UUID_SCHEMA},
    "X-Baton-Position": {
        "description": "The log position of this command; lists accept it as `min_position` to show its effect.",
        "schema": {"type": "integer"},
    },
    "X-Baton-Next-Cursor": {
        "description": "The `cursor` of the next page; absent on the last one.",
        "schema": {"type": "string"},
    },
    "Idempotency-Replayed": {
        "description": "Present when this is the stored answer to an earlier request.",
        "schema": {"type": "string"},
    },
    "Preference-Applied": {"description": "`handling=dry-run` on the answer to a dry run.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds to wait before the request is repeated.", "schema": {"type": "integer"}},
    "WWW-Authenticate": {"description": "Where a token is got.", "schema": {"type": "string"}},
    "Allow": {"description": "The methods that the path takes.", "schema": {"type": "string"}},
}
REFUSED = {
    400: ("BadRequest", "A value breaks a rule, or a header repeats."),
    401: ("Unauthorized", "No valid token was sent."),
    403: ("Forbidden", "The caller may not do this."),
    404: ("NotFound", "What was named does not exist."),
    408: ("RequestTimeout", "The request did not arrive as a whole in time."),
    409: ("Conflict", "The stored state does not allow this now."),
    413: ("ContentTooLarge", "The body is larger than the service takes."),
    415: ("UnsupportedMediaType", "A page sent a body that it does not call application/json."),
    422: ("UnprocessableContent", "The request has the wrong form, or its idempotency key was used for another one."),
    429: ("TooManyRequests", "The caller has as much open as one principal may."),
    500: ("InternalServerError", "Something failed inside the service."),
    502: ("BadGateway", "What another service answered cannot be used."),
    503: ("ServiceUnavailable", "Something that the answer depends on cannot be reached."),
}  # The names of the shared responses by status, each with what it means.
EXTRA_HEADERS = {401: ("WWW-Authenticate",), 503: ("Retry-After",)}
PARAMETERS: dict[str, Schema] = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "A text of your choice that names this call; repeated with it, the call is carried out once.",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[ -~]+$"},
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "required": False,
        "description": "`handling=dry-run` answers what the command would record, or its refusal, and records nothing.",
        "schema": {"type": "string"},
    },
}
PROPOSED = "Where you hold it only with approval: it waits for a second person, and nothing has happened yet."


def registry_document(registry: Registry) -> dict[str, Any]:
    """Return what the document says of every deployment; its components come last, because a deployment adds to them."""
    forms = generate_forms(registry)
    paths: dict[str, dict[str, Any]] = defaultdict(dict, {path: dict(entries) for path, entries in SERVICE_PATHS.items()})
    requests: dict[str, Schema] = {}
    for operation in registry:
        paths[operation.path][operation.method.lower()] = operation_entry(operation, forms)
        if operation.has_body:
            requests[request_name(operation)] = request_schema(operation, forms.inputs[operation.name])
    shared = {name: refused_response(status, meaning) for status, (name, meaning) in REFUSED.items()}
    shared |= {"Done": {"description": "Done.", "headers": command_headers()}, "DryRun": dry_run_response(None)}
    shared["Proposed"] = proposed_response()
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": baton.__version__,
            "description": "Operations control for experiment facilities. Every operation is also an MCP tool at `/mcp`.",
        },
        "paths": dict(sorted(paths.items())),
        "tags": [{"name": name, "description": meaning} for name, meaning in sorted(TAGS.items())],
        "x-refusals": [refusal.__name__ for refusal in ALWAYS_POSSIBLE],
        "components": {"responses": shared, "parameters": PARAMETERS, "headers": HEADERS},
    }
    components = describe({**reachable([document, requests], {**forms.components, **requests}), **requests})
    described: dict[str, Any] = describe(document)
    described["components"]["schemas"] = {name: {**components[name], "title": name} for name in sorted(components)}
    described["components"]["x-refusals"] = refusal_entries(registry)
    return described


def operation_entry(operation: Operation, forms: Forms) -> Schema:
    """Return what the document says of one operation."""
    form = forms.inputs[operation.name]
    example: Mapping[str, object] = {} if operation.example is None else example_values(operation)
    entry: Schema = {
        "operationId": operation.name,
        "tags": [operation.context],
        "summary": operation.summary,
        "description": f"{description_of(operation)}{refusal_links(operation)}",
        "parameters": list(parameters(operation, form, example)),
        "responses": dict(responses(operation, forms)),
        "x-command-name": operation.command_name,
        "x-source": operation_source(operation),
        "x-refusals": [refusal.__name__ for refusal in possible_refusals(operation) if refusal not in ALWAYS_POSSIBLE],
    }
    if operation.has_body:
        content: Schema = {"schema": {"$ref": COMPONENTS + request_name(operation)}}
        if operation.example is not None:
            content["example"] = {name: part for name, part in example.items() if name in body_members(operation, form)}
        needed = bool(set(form.get("required", ())) & body_members(operation, form).keys())
        entry["requestBody"] = {"required": needed, "content": {JSON: content}}
    return entry


def request_name(operation: Operation) -> str:
    """Return the name of the component that is an operation's body."""
    return f"{operation.command_name}Request"


def body_members(operation: Operation, form: Schema) -> Schema:
    """Return the members of an operation's body with their schemas."""
    return {name: schema for name, schema in form["properties"].items() if name not in operation.path_fields}


def request_schema(operation: Operation, form: Schema) -> Schema:
    """Return the schema of an operation's body."""
    members = body_members(operation, form)
    required = [name for name in form.get("required", ()) if name in members]
    body: Schema = {
        "title": operation.input.__name__,
        "description": f"The body of `{operation.name}`.",
        "type": "object",
        "properties": members,
        "additionalProperties": False,
    }
    return {**body, "required": required} if required else body


def example_values(operation: Operation) -> dict[str, Any]:
    """Return the arguments of an operation's example, with ids that are the same wherever the same thing is meant."""
    values: dict[str, object] = fill(operation.example, lambda name: str(derived_uuid7(0, "example", name)))
    return values


def description_of(operation: Operation) -> str:
    """Return what an operation does, the states it is allowed from, and its reasons of refusal."""
    text = getdoc(operation.input) or ""  # without indentation, as Python 3.13 keeps it
    if operation.allowed is not None and operation.aggregate is not None:
        text += f"\n\nAllowed from: {', '.join(sorted(state.value for state in operation.allowed))}."
    if operation.own_reasons:
        text += f"\n\nReasons of refusal: {', '.join(f'`{reason}`' for reason in operation.own_reasons)}."
    return text


def refusal_links(operation: Operation) -> str:
    """Return links to the pages of an operation's own refusals."""
    links = ", ".join(f"[{refusal.__name__}](/refusals/{refusal.__name__})" for refusal in operation.refusals)
    return f"\n\nRefused with: {links}." if links else ""


def parameters(operation: Operation, form: Schema, example: Mapping[str, object]) -> Iterator[Schema]:
    """Yield the parameters of path, query and headers."""

    def parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
        shown = {"example": example[name]} if name in example else {}
        return {"name": name, "in": place, "required": required, "schema": schema, **shown}

    if operation.target is not None:
        label = operation.aggregate.label if operation.aggregate is not None else "record"
        described = {**UUID_SCHEMA, "description": f"The id of the {label}."}
        yield parameter(operation.target, "path", described, required=True)
    for name in operation.path_fields:
        yield parameter(name, "path", form["properties"][name], required=True)
    if operation.kind == "command":
        yield from ({"$ref": f"#/components/parameters/{name}"} for name in PARAMETERS)
    if operation.has_body:
        return
    for name, schema in body_members(operation, form).items():
        yield parameter(name, "query", without_null(schema), required=name in form.get("required", ()))
    if operation.input in STREAM_ID_SCHEMAS:
        after = {**STREAM_ID_SCHEMAS[operation.input], "description": "The id of the last frame that was received."}
        yield parameter("Last-Event-ID", "header", after, required=False)


def without_null(schema: Schema) -> Schema:
    """Return a query parameter's schema without null, which is expressed by leaving it out."""
    if "anyOf" not in schema:
        return schema
    options = [option for option in schema["anyOf"] if option != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}


def responses(operation: Operation, forms: Forms) -> Iterator[tuple[str, Schema]]:
    """Yield the answers of an operation by their status, then its refusals."""
    yield from command_responses(operation, forms) if operation.kind == "command" else query_responses(operation, forms)
    for status in sorted({refusal.status for refusal in possible_refusals(operation)}):
        yield str(status), {"$ref": f"#/components/responses/{REFUSED[status][0]}"}


def query_responses(operation: Operation, forms: Forms) -> Iterator[tuple[str, Schema]]:
    """Yield the answers of a query."""
    paged = operation.media_types and "cursor" in operation.input.model_fields
    headers = header_references("Baton-Version", "X-Correlation-Id", *(["X-Baton-Next-Cursor"] if paged else ()))
    if operation.input in STREAMS:
        content: Schema = {"text/event-stream": {"schema": {"type": "string"}}}
    elif operation.media_types:
        content = {media_type: {"schema": document_schema(media_type)} for media_type in operation.media_types}
    else:
        content = {JSON: {"schema": forms.answers[operation.name]}}
    yield "200", {"description": "The answer.", "headers": headers, "content": content}
    if operation.input is StreamProcedureConduct:
        yield "204", {"description": "Everything was told; there is nothing to come.", "headers": headers}


def document_schema(media_type: str) -> Schema:
    """Return the schema of a document, whose members others define."""
    if media_type.endswith("json"):
        return {"type": "object", "additionalProperties": True}
    return {"type": "string", "format": "binary"} if media_type == "image/png" else {"type": "string"}


def command_responses(operation: Operation, forms: Forms) -> Iterator[tuple[str, Schema]]:
    """Yield the answers of a command, that to a dry run among them."""
    answer, headers = forms.answers.get(operation.name), command_headers()
    if answer is not None and (operation.status == 200 or operation.accepted is not None):
        yield "200", dry_run_response(answer)
    else:
        yield "200", {"$ref": "#/components/responses/DryRun"}
    if operation.accepted is None:
        if operation.command_name in approvable_commands():
            yield "202", {"$ref": "#/components/responses/Proposed"}
    else:
        yield "202", accepted_response(operation, forms.accepted[operation.name])
    if answer is None or operation.status == 204:
        yield str(operation.status), {"$ref": "#/components/responses/Done"}
    elif operation.status != 200:
        content = {JSON: {"schema": answer}}
        yield str(operation.status), {"description": "Done.", "headers": headers, "content": content}


def accepted_response(operation: Operation, form: Schema) -> Schema:
    """Return the response with status 202 of a command that begins long work, which may be proposed like any other."""
    description = "Accepted and still running."
    if operation.command_name in approvable_commands():
        form, description = {"anyOf": [form, {"$ref": f"{COMPONENTS}Proposed"}]}, f"Accepted and still running. {PROPOSED}"
    return {"description": description, "headers": command_headers(), "content": {JSON: {"schema": form}}}


def proposed_response() -> Schema:
    """Return the response to a command that its caller holds only with approval."""
    content = {JSON: {"schema": {"$ref": f"{COMPONENTS}Proposed"}}}
    return {"description": PROPOSED, "headers": command_headers(), "content": content}


def dry_run_response(answer: Schema | None) -> Schema:
    """Return the response with status 200 of a command: that of a dry run, and its own answer where that has this status."""
    dry_run = {"$ref": f"{COMPONENTS}DryRun"}
    headers = {**command_headers(), **header_references("Preference-Applied")}
    if answer is None:
        return {"description": "What a dry run found.", "headers": headers, "content": {JSON: {"schema": dry_run}}}
    content = {JSON: {"schema": {"anyOf": [answer, dry_run]}}}
    return {"description": "Done, or what a dry run found.", "headers": headers, "content": content}


def command_headers() -> Schema:
    """Return the headers of a command's answer."""
    return header_references("Baton-Version", "X-Correlation-Id", "X-Baton-Position", "Idempotency-Replayed")


def header_references(*names: str) -> Schema:
    """Return headers of a response."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def refused_response(status: int, meaning: str) -> Schema:
    """Return the response that every operation refuses with by this status."""
    headers = header_references("Baton-Version", "X-Correlation-Id", *EXTRA_HEADERS.get(status, ()))
    return {"description": meaning, "headers": headers, "content": {PROBLEM: {"schema": {"$ref": f"{COMPONENTS}Problem"}}}}


def refusal_entries(registry: Registry) -> Schema:
    """Return every refusal of an operation by its code, with status, meaning and the source of its declaration."""
    possible = {refusal.__name__ for operation in registry for refusal in possible_refusals(operation)}
    entries = refusal_catalogue(registry)
    return {
        code: {
            "status": entries[code].status,
            "description": entries[code].meaning,
            "x-source": ", ".join(entries[code].sources),
        }
        for code in sorted(possible)
    }
