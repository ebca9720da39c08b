"""The problem (RFC 9457) that every surface answers a refused request with, and the refusals of the API itself."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from baton.domain.shared.field_faults import fault_text
from baton.domain.shared.refusals import NextCall, Refusal, Unavailable, Unprocessable
from baton.domain.shared.text import UNSTORABLE

PROBLEM = b"application/problem+json"
NO_ID = frozenset({"uuid_parsing", "uuid_type"})
"""The faults of what is no id; it may be a name."""
MAX_FAULTS = 3  # the faults that one sentence names
MAX_NAME = 200


class FieldError(BaseModel):
    """What is wrong with one part of a request."""

    loc: list[str | int]
    """Where in the request it is wrong."""
    msg: str
    """What is wrong with it."""
    type: str
    """The rule that is broken, by name."""


class NeededField(BaseModel):
    """A field that a request must give."""

    name: str
    """The name of the field."""
    type: str
    """What kind of value the field takes."""
    description: str | None = None
    """What the field means."""


class Problem(BaseModel):
    """Why a request was refused (RFC 9457): `detail` for people, `code`, `reason` and `facts` for programs. Where it has
    the wrong form, `errors` lists what is wrong, `needed` the fields it must have, and `example` shows one that is right."""

    type: str
    """The page about the refusal."""
    title: str
    """What the refusal means."""
    status: int
    """The HTTP status number."""
    detail: str
    instance: str
    """This refusal among all others: its correlation id as a URN."""
    code: str
    """The class name of the refusal."""
    context: str
    """The context whose rule refused."""
    reason: str | None = None
    """The machine-readable cause of the refusal."""
    facts: dict[str, Any] | None = None
    next_steps: list[NextCall] | None = None
    """The calls that lead from here to what was asked for, where there is a way."""
    errors: list[FieldError] | None = None
    """What is wrong with the form of the request."""
    needed: list[NeededField] | None = None
    """The fields that the request must have."""
    example: dict[str, Any] | None = None
    """Arguments that the operation takes, with ids as placeholders."""
    correlation_id: UUID


class RequestValidationError(Unprocessable):
    """The request has the wrong form: a wrong type, a missing or unknown field, a length out of bounds."""

    needed: Sequence[NeededField] | None = None
    example: dict[str, Any] | None = None

    def __init__(self, errors: list[dict[str, Any]], names: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(fault_sentence(errors))
        self.errors = errors
        self.names = names  # each field that wants an id, with the text that was sent for it

    @classmethod
    def of(cls, error: ValidationError, place: str) -> "RequestValidationError":
        """Return the validation failures of a model, without the values that were sent."""
        details = error.errors(include_url=False)
        faults = [{"loc": [place, *one["loc"]], "msg": fault_text(one), "type": one["type"]} for one in details]
        return cls(
            faults, [(field_of(one["loc"]), one["input"]) for one in details if may_be_name(one["type"], one["input"])]
        )

    @classmethod
    def at(cls, *loc: str, msg: str, type: str = "value_error", given: Any = None) -> "RequestValidationError":
        """Return the refusal for one failure."""
        return cls([{"loc": list(loc), "msg": msg, "type": type}], [(loc[-1], given)] if may_be_name(type, given) else [])


def field_of(loc: Iterable[str | int]) -> str:
    """Return the name of the innermost field at a place of a request."""
    return next((part for part in reversed(tuple(loc)) if isinstance(part, str)), "")


def may_be_name(fault: str, given: Any) -> bool:
    """Return whether what was sent in place of an id may be the name of a thing."""
    is_text = isinstance(given, str) and 0 < len(given.strip()) <= MAX_NAME
    return fault in NO_ID and is_text and not UNSTORABLE.search(given)


def fault_sentence(errors: Sequence[dict[str, Any]]) -> str:
    """Return what is wrong with a request, as one sentence."""
    named = [f"{'.'.join(str(part)[:60] for part in fault['loc'])}: {fault['msg'].rstrip('.')}" for fault in errors]
    more = [f"and {len(named) - MAX_FAULTS} more"] if len(named) > MAX_FAULTS else []
    return f"The request has the wrong form: {'; '.join((*named[:MAX_FAULTS], *more))}."


class RouteNotFoundError(Refusal, status=404):
    """There is nothing at this path."""


class MethodNotAllowedError(Refusal, status=405):
    """This path exists but does not take this method."""

    methods: Sequence[str] = ()


class RepeatedHeaderError(Refusal, status=400):
    """A header that may stand once stands more often."""


class UnstorableTextError(Refusal, status=400):
    """The path or a header holds a character that nothing can be called by: NUL, or half of a surrogate pair."""


class RequestTimeoutError(Refusal, status=408):
    """The request did not arrive as a whole in time."""


class UnsupportedMediaTypeError(Refusal, status=415):
    """A page sent a body that it does not call application/json."""


class RequestTooLargeError(Refusal, status=413):
    """The request body is larger than this service takes."""


class ServiceStoppingError(Unavailable):
    """This process of the service is stopping; another one, or the next, answers."""


class TooManyStreamsError(Unavailable):
    """This process serves as many live streams as it may."""


class InternalError(Refusal, status=500):
    """Something failed inside the service; the correlation id leads to the log."""


def error_body(refusal: Refusal, context: str, correlation_id: UUID) -> dict[str, Any]:
    """Return the problem of a refused request; a refusal without a context of its own gets that of the operation."""
    optional: dict[str, Any] = {"reason": refusal.reason, "facts": refusal.facts}
    if refusal.next_steps:
        optional["next_steps"] = [asdict(step) for step in refusal.next_steps]
    if isinstance(refusal, RequestValidationError):
        needed = None if refusal.needed is None else [field.model_dump(exclude_none=True) for field in refusal.needed]
        optional |= {"errors": refusal.errors, "needed": needed, "example": refusal.example}
    return {
        "type": f"/refusals/{refusal.code}",
        "title": refusal_meaning(type(refusal)),
        "status": refusal.status,
        "detail": refusal.detail,
        "instance": f"urn:uuid:{correlation_id}",  # the path may hold what a caller put where an id belongs
        "code": refusal.code,
        "context": context if refusal.context == "edge" else refusal.context,
        "correlation_id": str(correlation_id),
        **{name: value for name, value in optional.items() if value is not None},
    }


def refusal_meaning(refusal: type[Refusal]) -> str:
    """Return what a class of refusals means: its documentation on one line."""
    return " ".join((refusal.__doc__ or "").split())
