"""Refusals: every way the service says no, as classes that a person and a program can both read.

A refusal's class name is its machine code, its docstring the sentence shown in the documentation, its `detail` the one
sentence a person can act on, its `reason` the machine-readable cause and its `facts` whatever the reader needs to mend it.
"""

import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar


class Refusal(Exception):
    """The request was understood and refused; nothing was changed."""

    status: ClassVar[int] = 500
    context: ClassVar[str] = "edge"
    declared_at: ClassVar[tuple[str, int] | None] = None
    """Module and line of the declaration that generated this class; None where it has a class statement."""

    default_reason: ClassVar[str | None] = None  # The reason of a class that has only one.

    def __init_subclass__(cls, context: str | None = None, reason: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.context, cls.default_reason = context or cls.context, reason or cls.default_reason

    def __init__(self, detail: str, *, reason: str | None = None, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason or self.default_reason
        self.facts = dict(facts) if facts else None

    @property
    def code(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" + (f" [{self.reason}]" if self.reason else "")


class Invalid(Refusal):
    """A value breaks a rule of the domain."""

    status = 400


class Forbidden(Refusal):
    """The caller may not do this."""

    status = 403


class NotFound(Refusal):
    """What was named does not exist."""

    status = 404


class Conflict(Refusal):
    """The stored state does not allow this now."""

    status = 409


class Unprocessable(Refusal):
    """The request has the wrong form."""

    status = 422


class Unavailable(Refusal):
    """A service this answer depends on cannot be reached."""

    status = 503


class UnauthorizedError(Forbidden):
    """The caller's policies do not permit this operation on this surface."""


class ConcurrencyError(Conflict):
    """Somebody else changed the same record first; read it again and repeat the request."""


class IdempotencyConflictError(Unprocessable):
    """This idempotency key was already used for a different request."""


class IdempotencyClaimLostError(Conflict):
    """A request with this idempotency key is still being worked on."""


class InvalidCursorError(Unprocessable):
    """The cursor is not one this list handed out for this order."""


class ExternalIdMintError(Refusal):
    """The identifier registry did not issue an identifier; nothing was recorded."""

    status = 502


class ExternalIdMintingNotConfiguredError(Conflict):
    """No registry is configured that issues such identifiers, and none is made up."""


def kept_form(refusal: Refusal) -> dict[str, Any]:
    """A refusal as it is kept with the work that it ended."""
    return {"code": refusal.code, "detail": refusal.detail, "reason": refusal.reason, "facts": refusal.facts}


def kept_refusal(kept: Mapping[str, Any], among: Iterable[type[Refusal]]) -> Refusal:
    """The refusal that was kept, which is one of these."""
    told = dict(kept)
    kinds = {kind.__name__: kind for kind in among}
    return kinds[told.pop("code")](**told)


def refusal_class(family: type[Refusal], name: str, doc: str, context: str) -> type[Refusal]:
    """Return a refusal class that a declaration of this context generates; it knows the line of that declaration."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, "baton.domain.kernel"):
        frame = frame.f_back
    body = {"__doc__": doc, "declared_at": (frame.f_globals["__name__"], frame.f_lineno)}
    return types.new_class(name, (family,), {"context": context}, lambda namespace: namespace.update(body))
