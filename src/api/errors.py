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


class RouteNotFoundError(Refusal, status=404):
    """There is nothing at this path."""


class MethodNotAllowedError(Refusal, status=405):
    """This path exists but does not take this method."""


class RepeatedHeaderError(Refusal, status=400):
    """A header that may stand once stands more often."""


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
    """Return the error body; a refusal without a context of its own gets that of the operation."""
    optional = {"reason": refusal.reason, "facts": refusal.facts}
    return {
        "detail": refusal.errors if isinstance(refusal, RequestValidationError) else refusal.detail,
        "code": refusal.code,
        "context": context if refusal.context == "edge" else refusal.context,
        "correlation_id": str(correlation_id),
        **{name: value for name, value in optional.items() if value is not None},
    }
