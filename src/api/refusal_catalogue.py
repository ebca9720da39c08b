"""Every refusal of the service: which requests may get it, what it means, and its page."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Annotated, Any

import orjson
from fastapi import Header, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from baton.api import errors
from baton.api.origins import ForeignRequestError
from baton.api.pages import page_headers
from baton.application import identity
from baton.application.ports import StoreUnavailableError
from baton.domain.conduct.views import StreamProcedureConduct
from baton.domain.registry import REGISTRY, Operation, Registry, snake_case
from baton.domain.shared import refusals as domain
from baton.domain.shared.refusals import NotFound, Refusal
from baton.domain.shared.sources import refusal_source
from baton.domain.trust.proposal import TooManyProposalsError
from baton.domain.views.event_log import StreamEvents

STREAMS: tuple[type[Any], ...] = (StreamEvents, StreamProcedureConduct)
ALWAYS_POSSIBLE: tuple[type[Refusal], ...] = (
    *(identity.UnauthenticatedError, identity.InvalidTokenError, domain.UnauthorizedError, ForeignRequestError),
    *(errors.RepeatedHeaderError, errors.UnstorableTextError, errors.RequestTimeoutError, errors.RequestValidationError),
    *(errors.InternalError, errors.ServiceStoppingError),
    *(StoreUnavailableError, identity.KeySetUnavailableError, identity.IntrospectionUnavailableError),
)
COMMAND_REFUSALS: tuple[type[Refusal], ...] = (
    *(domain.ConcurrencyError, domain.IdempotencyClaimLostError, domain.IdempotencyConflictError),
    *(errors.RequestTooLargeError, errors.UnsupportedMediaTypeError, TooManyProposalsError),
)
ADVICE = {
    400: "Correct the value that the detail names, and send the request again.",
    401: "Send a valid bearer token; the WWW-Authenticate header says where to get one.",
    403: "Call as somebody who may do this, or ask an administrator for the permission.",
    404: "Check the id or the path; a list shows what exists.",
    405: "Use a method that the Allow header lists.",
    408: "Send the request again, without pauses.",
    409: "Read the record again and do first what the detail asks for; then repeat the request.",
    410: "Cite what took its place, where there is something; the page for people says when and why it was withdrawn.",
    413: "Send less, or in parts.",
    415: "Send the body as application/json, and say so in Content-Type.",
    429: "Wait until some of what you have open is decided about, or take it back.",
    422: "Correct what the problem lists under errors; needed and example show what fits.",
    500: "Give the correlation id to the operators of the service.",
    503: "Wait for the seconds that Retry-After names, and repeat the request with the same Idempotency-Key.",
}  # What to do about a refusal of each status, besides what its detail says of the case at hand.


class RefusalCodeNotFoundError(NotFound):
    """No refusal has this code."""


class RefusalEntry(BaseModel):
    """One refusal: what it means, what to do, its reasons, the operations that answer with it, and where it is declared."""

    code: str
    status: int
    meaning: str
    advice: str
    reasons: tuple[str, ...]
    operations: tuple[str, ...]
    sources: tuple[str, ...]


def common_refusals(operation: Operation) -> tuple[type[Refusal], ...]:
    """Return the refusals that every operation of this kind has."""
    if operation.kind == "command":
        created = (operation.aggregate.AlreadyExists,) if operation.creates and operation.aggregate else ()
        return (*COMMAND_REFUSALS, *created)
    if operation.input in STREAMS:
        return (errors.TooManyStreamsError,)
    return (domain.InvalidCursorError,) if "cursor" in operation.input.model_fields else ()


def possible_refusals(operation: Operation) -> tuple[type[Refusal], ...]:
    """Return every refusal that a request for an operation may get."""
    return tuple(dict.fromkeys((*ALWAYS_POSSIBLE, *common_refusals(operation), *operation.refusals)))


def own_reasons(refusal: type[Refusal], operation: Operation) -> Iterator[str]:
    """Yield the machine causes by which an operation refuses with its own class."""
    if operation.kind == "command" and refusal is getattr(operation.input, "Cannot", None):
        if operation.allowed is not None and operation.aggregate is not None:
            refused = (state for state in type(next(iter(operation.allowed))) if state not in operation.allowed)
            yield from [operation.state_reason] if operation.state_reason else (snake_case(state.value) for state in refused)
        yield from operation.own_reasons


@cache
def refusal_catalogue(registry: Registry = REGISTRY) -> dict[str, RefusalEntry]:
    """Return every refusal by its code; a code that several contexts declare is one entry."""
    operations: dict[type[Refusal], list[Operation]] = defaultdict(list)
    for operation in registry:
        for refusal in dict.fromkeys((*common_refusals(operation), *operation.refusals)):
            operations[refusal].append(operation)
    classes: dict[str, list[type[Refusal]]] = defaultdict(list)
    for one in sorted(dict.fromkeys((*subclasses(Refusal), *operations)), key=lambda one: (one.__name__, one.context)):
        if one.__name__.endswith("Error"):
            classes[one.__name__].append(one)
    entries = {}
    for code, declared in classes.items():
        first, askers = declared[0], [(one, operation) for one in declared for operation in operations[one]]
        stated = (one.default_reason for one in declared if one.default_reason)
        reasons = dict.fromkeys((*stated, *(reason for pair in askers for reason in own_reasons(*pair))))
        entries[code] = RefusalEntry(
            code=code,
            status=first.status,
            meaning=errors.refusal_meaning(first),
            advice=ADVICE.get(first.status, ADVICE[500]),
            reasons=tuple(reasons),
            operations=tuple(dict.fromkeys(operation.name for _, operation in askers)),
            sources=tuple(dict.fromkeys(source for one in declared if (source := refusal_source(one)) is not None)),
        )
    return entries


def subclasses(refusal: type[Refusal]) -> Iterator[type[Refusal]]:
    """Yield every class below one."""
    for below in refusal.__subclasses__():
        yield below
        yield from subclasses(below)


async def refusal_page(code: str, accept: Annotated[str, Header()] = "") -> Response:
    """Answer `GET /refusals/{code}`: the page that the `type` of a problem leads to, as HTML or as JSON."""
    entry = refusal_catalogue().get(code)
    if entry is None:
        raise RefusalCodeNotFoundError("No refusal has this code; it stands in the code of a problem.")
    if "text/html" not in accept:
        return Response(orjson.dumps(entry.model_dump()), headers={"Vary": "accept"}, media_type="application/json")
    page = html_page(entry)
    return HTMLResponse(page, headers={**page_headers(page), "Vary": "accept"})


STYLE = "body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}dt{font-weight:600;margin-top:1em}"


def html_page(entry: RefusalEntry) -> str:
    """Return the page of a refusal."""
    contexts = {operation.name: operation.context for operation in REGISTRY}
    linked = ", ".join(f'<a href="/docs#/{contexts[name]}/{name}">{name}</a>' for name in entry.operations)
    parts = {
        "Status": str(entry.status),
        "What to do": f"{escape(entry.advice)} The <code>detail</code> of the answer says it for the case at hand.",
        "Reasons": ", ".join(f"<code>{escape(reason)}</code>" for reason in entry.reasons),
        "Answered by": linked or "any request",
        "Declared in": ", ".join(escape(source) for source in entry.sources),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in parts.items() if text)
    head = f'<meta charset="utf-8"><title>{entry.code}</title><style>{STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head>'
        f"<body><h1>{entry.code}</h1><p>{escape(entry.meaning)}</p><dl>{listed}</dl></body></html>"
    )
