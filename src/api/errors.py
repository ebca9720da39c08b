"""The error body that every surface answers with, and the refusals of the API itself."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from baton.domain.shared.refusals import Refusal, Unavailable, Unprocessable

# Texts in place of those messages that quote what was sent.
UNQUOTED = {"union_tag_invalid": "Input should be of one of the kinds listed for it"}


class FieldError(BaseModel):
    """What is wrong with one part of a request."""

    loc: list[str | int]
    msg: str
    type: str


class ErrorBody(BaseModel):
    """Why a request was refused: `detail` for people, `code`, `reason` and `facts` for programs."""

    detail: str | list[FieldError]
    code: str
    context: str
    reason: str | None = None
    facts: dict[str, Any] | None = None
    correlation_id: UUID


class RequestValidationError(Unprocessable):
    """The request has the wrong form: a wrong type, a missing or unknown field, a length out of bounds."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__("The request has the wrong form; see the listed fields.")
        self.errors = errors

    @classmethod
    def of(cls, error: ValidationError, place: str) -> "RequestValidationError":
        """Return the validation failures of a model, without the values that were sent."""
        details = error.errors(include_url=False, include_context=False, include_input=False)
        messages = [(detail, UNQUOTED.get(detail["type"], detail["msg"])) for detail in details]
        return cls([{"loc": [place, *detail["loc"]], "msg": msg, "type": detail["type"]} for detail, msg in messages])

    @classmethod
    def at(cls, *loc: str, msg: str, type: str = "value_error") -> "RequestValidationError":
        """Return the refusal for one failure."""
        return cls([{"loc": list(loc), "msg": msg, "type": type}])


class RouteNotFoundError(Refusal):
    """There is nothing at this path."""

    status = 404


class MethodNotAllowedError(Refusal):
    """This path exists but does not take this method."""

    status = 405


class RepeatedHeaderError(Refusal):
    """A header that may stand once stands more often."""

    status = 400


class RequestTimeoutError(Refusal):
    """The request did not arrive as a whole in time."""

    status = 408


class UnsupportedMediaTypeError(Refusal):
    """A page sent a body that it does not call application/json."""

    status = 415


class RequestTooLargeError(Refusal):
    """The request body is larger than this service takes."""

    status = 413


class ServiceStoppingError(Unavailable):
    """This process of the service is stopping; another one, or the next, answers."""


class TooManyStreamsError(Unavailable):
    """This process serves as many live streams as it may."""


class InternalError(Refusal):
    """Something failed inside the service; the correlation id leads to the log."""

    status = 500


def error_body(refusal: Refusal, context: str, correlation_id: UUID) -> dict[str, Any]:
    """Return the error body; a refusal without a context of its own gets that of the operation."""
    body: dict[str, Any] = {
        "detail": refusal.errors if isinstance(refusal, RequestValidationError) else refusal.detail,
        "code": refusal.code,
        "context": context if refusal.context == "edge" else refusal.context,
        "correlation_id": str(correlation_id),
    }
    if refusal.reason is not None:
        body["reason"] = refusal.reason
    if refusal.facts is not None:
        body["facts"] = refusal.facts
    return body
