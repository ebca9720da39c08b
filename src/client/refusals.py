"""Refusals as a caller meets them: exceptions of their own class name, with `detail`, `reason` and `facts`. Any refusal of
the service is an attribute of this module: `from baton.client.refusals import RunCannotStartError`."""

import json
import types
from functools import cache
from typing import Any

from pydantic import ValidationError

from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared import refusals as families
from baton.domain.shared.refusals import Conflict, Forbidden, Invalid, NotFound, Refusal, Unavailable, Unprocessable
from baton.domain.trust.proposal import Proposed

__all__ = ["Conflict", "Forbidden", "Invalid", "NotFound", "Refusal", "Unavailable", "Unprocessable"]
FAMILIES: dict[int, type[Refusal]] = {
    family.status: family for family in (Invalid, Forbidden, NotFound, Conflict, Unprocessable, Unavailable)
}
OF_THE_EDGE: dict[str, int] = {
    "RepeatedHeaderError": 400,
    "UnauthenticatedError": 401,
    "InvalidTokenError": 401,
    "ForeignRequestError": 403,
    "RouteNotFoundError": 404,
    "MethodNotAllowedError": 405,
    "RequestTimeoutError": 408,
    "RequestTooLargeError": 413,
    "UnsupportedMediaTypeError": 415,
    "RequestValidationError": 422,
    "InternalError": 500,
    "IntrospectionUnavailableError": 503,
    "KeySetUnavailableError": 503,
    "ServiceStoppingError": 503,
    "StoreUnavailableError": 503,
    "TooManyStreamsError": 503,
}  # The refusals that no operation declares, with their status; a test compares them with those of the service.


class ClientError(Exception):
    """A call that no service has refused: it was not sent, or not answered."""

    @property
    def sentences(self) -> list[str]:
        """What is wrong, a sentence for each fault."""
        return [str(self)]


class ArgumentsError(ClientError, ValueError):
    """The arguments do not fit the operation; nothing was sent."""

    def __init__(self, operation: Operation, detail: str) -> None:
        super().__init__(detail)
        self.operation = operation

    @classmethod
    def of(cls, operation: Operation, error: ValidationError) -> "ArgumentsError":
        """Return the sentence about what does not fit."""
        faults = (f"{'.'.join(map(str, fault['loc'])) or 'the input'}: {fault['msg']}" for fault in error.errors())
        return cls(operation, f"{operation.name} does not take these arguments: {'; '.join(faults)}.")


class ProposedError(ClientError):
    """A call that waits for the approval of a second person: nothing has happened yet. `proposed` has the ids, until when it
    may be approved, and what it would record; `get_work` tells under `proposed.work_id` what becomes of it."""

    def __init__(self, operation: Operation, proposed: Proposed) -> None:
        until = f"{proposed.expires_at:%Y-%m-%d %H:%M:%S}Z"
        super().__init__(f"{operation.name} needs the approval of a second person, and is proposed until {until}.")
        self.operation = operation
        self.proposed = proposed


class ServiceUnreachableError(ClientError):
    """Nothing answers at the address of the service."""


class InvalidAddressError(ClientError, ValueError):
    """What was given as the address of the service is no URL."""


class NotBatonError(ClientError):
    """What answers at this address does not speak as this version of the service does."""


class AmbiguousNameError(ClientError, LookupError):
    """Several things have this name; `candidates` are their ids."""

    def __init__(self, label: str, name: str, candidates: dict[str, str]) -> None:
        listed = "; ".join(f"{id} ({about})" if about else id for id, about in candidates.items())
        super().__init__(f"{len(candidates)} things of kind {label} are called {name!r}; name one by its id: {listed}.")
        self.candidates = candidates


class UnknownNameError(ClientError, LookupError):
    """Nothing has this name; `candidates` are names like it."""

    def __init__(self, label: str, name: str, candidates: list[str]) -> None:
        like = f" Did you mean {' or '.join(map(repr, candidates))}?" if candidates else ""
        super().__init__(f"There is no {label} called {name!r}.{like}")
        self.candidates = candidates


def refusal_of(status: int, content: bytes) -> Refusal:
    """Return the refusal in the body of a response."""
    try:
        body = json.loads(content)
        code, detail = body["code"], body["detail"]
    except (ValueError, KeyError, TypeError):
        raise NotBatonError(f"It answered {status} without a refusal that can be read.") from None
    kind = refusal_classes().get(code) or edge_refusal(code, status)
    refusal = kind(detail, reason=body.get("reason"), facts=body.get("facts"))
    refusal.problem = body
    return refusal


@cache
def refusal_classes() -> dict[str, type[Refusal]]:
    """Return every class of refusal by its code."""
    common = {name: one for name, one in vars(families).items() if isinstance(one, type) and issubclass(one, Refusal)}
    declared = {one.__name__: one for operation in REGISTRY for one in operation.refusals}
    return {**common, **{code: edge_refusal(code, status) for code, status in OF_THE_EDGE.items()}, **declared}


@cache
def edge_refusal(code: str, status: int) -> type[Refusal]:
    """Return a class for a refusal that the domain does not declare, or that is newer than this client."""
    made: type[Refusal] = types.new_class(code, (FAMILIES.get(status, Refusal),), {"status": status})
    made.__module__ = __name__
    return made


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what importing asks for; the refusals are found when one of them is wanted
        raise AttributeError(name)
    try:
        return refusal_classes()[name]
    except KeyError:
        raise AttributeError(f"there is no refusal {name}") from None
