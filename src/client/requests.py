"""Calls as requests, and responses as answers, in the domain's own models; no I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from baton.client.partial_answers import is_recognizable, read_partly
from baton.client.refusals import ArgumentsError, NotBatonError, ProposedError, refusal_of
from baton.domain.kernel import Document
from baton.domain.registry import Operation
from baton.domain.shared.dry_run import DryRun
from baton.domain.trust.proposal import Proposed

POSITION, RETRY_AFTER, REPLAYED = "x-baton-position", "retry-after", "idempotency-replayed"
DRY_RUN = {"Prefer": "handling=dry-run"}


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request of an operation."""

    operation: Operation
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
    operation: Operation, arguments: Mapping[str, Any], *, key: str | None = None, dry_run: bool = False
) -> HttpRequest:
    """Return the request that calls an operation with these arguments, ids of its path among them."""
    given = {name: value for name, value in arguments.items() if name != operation.target}
    try:
        fields = operation.input.model_validate(given).model_dump(mode="json", exclude_unset=True, by_alias=True)
    except ValidationError as error:
        raise ArgumentsError.of(operation, error) from None
    places = {name: fields.pop(name) for name in operation.path_fields}
    if operation.target is not None:
        places[operation.target] = target_of(operation, arguments)
    path = operation.path
    for name, value in places.items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    if not operation.has_body:
        return HttpRequest(operation, path, query_of(fields))
    headers = {
        "Content-Type": "application/json",
        **({"Idempotency-Key": key} if key else {}),
        **(DRY_RUN if dry_run else {}),
    }
    return HttpRequest(operation, path, body=json.dumps(fields).encode(), headers=headers)


def target_of(operation: Operation, arguments: Mapping[str, Any]) -> UUID:
    """Return the id that the path of an operation names."""
    assert operation.target is not None
    try:
        return UUID(str(arguments[operation.target]))
    except KeyError:
        raise ArgumentsError(operation, f"{operation.name} needs {operation.target}.") from None
    except ValueError:
        raise ArgumentsError(operation, f"{operation.target} must be an id or a name.") from None


def query_of(fields: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the parameters of an address; a list repeats its own, and what is null is left out."""
    pairs = ((name, one) for name, value in fields.items() for one in (value if isinstance(value, list) else [value]))
    return tuple((name, one if isinstance(one, str) else json.dumps(one)) for name, one in pairs if one is not None)


def answer_of(request: HttpRequest, response: HttpResponse) -> Any:
    """Return the answer in a response; raise the refusal in it."""
    operation = request.operation
    if not response.is_success:
        raise refusal_of(response.status, response.content)
    if request.headers.get("Prefer") and operation.kind == "command":
        return parse(DryRun, response.content)
    if operation.media_types:
        return Document(response.headers.get("content-type", ""), response.content)
    if response.status == 202 and "would" in json.loads(response.content or b"{}"):
        raise ProposedError(operation, parse(Proposed, response.content))
    form = operation.accepted if response.status == 202 and operation.accepted is not None else operation.returns
    if form is None or not response.content:
        return None
    names_wanted = any(name == "include" for name, _ in request.query)  # they stand beside what the form declares
    return parse(form, response.content, extra="allow" if names_wanted else "ignore")


def parse(form: Any, content: bytes, *, extra: Literal["ignore", "allow"] = "ignore") -> Any:
    """Return the model in a body; keys of a newer service are passed over, and what an older one leaves out is None."""
    try:
        return adapter_of(form).validate_json(content, extra=extra)
    except ValidationError as error:
        if any(fault["type"] == "json_invalid" for fault in error.errors()) or not is_recognizable(
            form, json.loads(content)
        ):
            raise NotBatonError(f"The answer is not of the form {getattr(form, '__name__', form)}: {error}") from None
        return read_partly(form, json.loads(content))


@cache
def adapter_of(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)
