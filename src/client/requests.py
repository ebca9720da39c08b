"""Calls as requests, and responses as answers, by the index of operations; no I/O. Which arguments an operation takes is
known here; what their values must be is judged by the service."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

from baton.client.answers import AnsweredDocument, is_recognizable, json_value, read_value
from baton.client.index import Kind, OperationEntry
from baton.client.refusals import ArgumentsError, NotBatonError, ProposedError, refusal_of, unknown_argument

NEXT_CURSOR = "x-baton-next-cursor"
POSITION, RETRY_AFTER, REPLAYED = "x-baton-position", "retry-after", "idempotency-replayed"
DRY_RUN = {"Prefer": "handling=dry-run"}
NEEDED = "is needed"


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request of an operation."""

    operation: OperationEntry
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return self.operation.method


@dataclass(frozen=True)
class HttpResponse:
    """One HTTP response, read to its end; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def request_of(
    operation: OperationEntry, arguments: Mapping[str, object], *, key: str | None = None, dry_run: bool = False
) -> HttpRequest:
    """Return the request that calls an operation with these arguments, ids of its path among them."""
    check_names(operation, arguments)
    fields = {name: json_value(value) for name, value in arguments.items()}
    path = operation.path
    for name in operation.placeholders:
        value = fields.pop(name)
        if name == operation.target:
            value = target_id(operation, value)
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    if not operation.has_body:
        return HttpRequest(operation, path, query_of(fields))
    headers = {
        "Content-Type": "application/json",
        **({"Idempotency-Key": key} if key else {}),
        **(DRY_RUN if dry_run else {}),
    }
    return HttpRequest(operation, path, body=json.dumps(fields).encode(), headers=headers)


def check_names(operation: OperationEntry, given: Mapping[str, object]) -> None:
    """Refuse arguments that the operation does not have, and the lack of those that it needs."""
    known = {*operation.placeholders, *operation.arguments}
    faults = {name: unknown_argument(operation, name) for name in given if name not in known}
    needed = (*operation.placeholders, *(name for name, one in operation.arguments.items() if one.required))
    faults |= {name: NEEDED for name in needed if name not in given}
    if faults:
        raise ArgumentsError(operation, faults)


def target_id(operation: OperationEntry, value: Any) -> UUID:
    """Return the id that the path of an operation names."""
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise ArgumentsError(operation, {str(operation.target): "must be an id or a name"}) from None


def query_of(fields: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the parameters of an address; a list repeats its own, and what is null is left out."""
    pairs = ((name, one) for name, value in fields.items() for one in (value if isinstance(value, list) else [value]))
    return tuple((name, one if isinstance(one, str) else json.dumps(one)) for name, one in pairs if one is not None)


def answer_of(request: HttpRequest, response: HttpResponse) -> Any:
    """Return the answer in a response; raise the refusal in it."""
    operation = request.operation
    if not response.is_success:
        raise refusal_of(response.status, response.content)
    if request.headers.get("Prefer") and operation.kind == "command":
        return parse("DryRun", response.content)
    media_type = response.headers.get("content-type", "")
    if operation.media_types or media_type.startswith("text/csv"):
        return AnsweredDocument(media_type, response.content, response.headers.get(NEXT_CURSOR))
    if response.status == 202 and "would" in json.loads(response.content or b"{}"):
        raise ProposedError(operation, parse("Proposed", response.content))
    kind = operation.accepted if response.status == 202 and operation.accepted is not None else operation.returns
    if kind is None or not response.content:
        return None
    names_wanted = any(name == "include" for name, _ in request.query)  # they stand beside what the form declares
    return parse(kind, response.content, keep_others=names_wanted)


def parse(kind: Kind, content: bytes, *, keep_others: bool = False) -> Any:
    """Return the answer in a body; keys of a newer service are passed over, and what an older one leaves out is None."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise NotBatonError(f"The answer is no JSON: {error}.") from None
    if not is_recognizable(kind, document):
        raise NotBatonError(f"The answer is not of the form {kind}.")
    return read_value(kind, document, keep_others=keep_others)
