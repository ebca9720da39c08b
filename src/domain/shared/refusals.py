"""Refusals: a class's name is the machine code, its docstring the sentence of the documentation; `detail` is the sentence
that a person can act on, `reason` the machine-readable cause, and `facts` are whatever the reader needs to mend it."""

import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic_core import to_jsonable_python


@dataclass(frozen=True)
class NextCall:
    """One call on the way to what was asked for."""

    operation: str
    """The name of the operation to call."""
    arguments: dict[str, Any]
    """Those of its arguments that are known."""
    needed: tuple[str, ...] = ()
    """The names of the arguments that it needs besides."""


class Refusal(Exception):
    """The request was understood and refused; nothing was changed."""

    status: ClassVar[int] = 500
    context: ClassVar[str] = "edge"
    declared_at: ClassVar[tuple[str, int] | None] = (
        None  # The module and line that generated it, unless a class statement did.
    )
    default_reason: ClassVar[str | None] = None  # The reason of a class that has only one.
    next_steps: tuple[NextCall, ...] = ()  # The calls from here to what was asked for, where there is a way.
    passing: bool = False  # Whether it may pass by itself, so that waiting is of use: a closed gate, a claimed asset.

    def __init_subclass__(
        cls, status: int | None = None, context: str | None = None, reason: str | None = None, passing: bool | None = None
    ) -> None:
        cls.status, cls.context = status or cls.status, context or cls.context
        cls.default_reason = reason or cls.default_reason
        cls.passing = cls.passing if passing is None else passing

    def __init__(
        self,
        detail: str,
        *,
        reason: str | None = None,
        facts: Mapping[str, object] | None = None,
        passing: bool | None = None,
    ) -> None:
        super().__init__(detail)
        self.passing = type(self).passing if passing is None else passing
        self.detail = detail
        self.reason = reason or self.default_reason
        self.facts: dict[str, Any] | None = to_jsonable_python(facts) if facts else None  # ids are written as text

    @property
    def code(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" + (f" [{self.reason}]" if self.reason else "")


class Invalid(Refusal, status=400):
    """A value breaks a rule of the domain."""


class Forbidden(Refusal, status=403):
    """The caller may not do this."""


class NotFound(Refusal, status=404):
    """What was named does not exist."""


class Conflict(Refusal, status=409):
    """The stored state does not allow this now."""


class Unprocessable(Refusal, status=422):
    """The request has the wrong form."""


class Unavailable(Refusal, status=503):
    """A service this answer depends on cannot be reached."""


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


class ExternalIdMintError(Refusal, status=502):
    """The identifier registry did not issue an identifier; nothing was recorded."""


class ExternalIdMintingNotConfiguredError(Conflict):
    """No registry is configured that issues such identifiers, and none is made up."""


def kept_form(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as it is kept with the work that it ended."""
    return {"code": refusal.code, "detail": refusal.detail, "reason": refusal.reason, "facts": refusal.facts}


def kept_refusal(kept: Mapping[str, Any], among: Iterable[type[Refusal]]) -> Refusal:
    """Return the refusal that was kept, which is of one of these classes."""
    kinds = {kind.__name__: kind for kind in among}
    return kinds[kept["code"]](kept["detail"], reason=kept["reason"], facts=kept["facts"])


def refusal_class(family: type[Refusal], name: str, doc: str, context: str) -> type[Refusal]:
    """Return a refusal class that a declaration of this context generates; it knows the line of that declaration."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, "baton.domain.kernel"):
        frame = frame.f_back
    body = {"__doc__": doc, "declared_at": (frame.f_globals["__name__"], frame.f_lineno)}
    return types.new_class(name, (family,), {"context": context}, lambda namespace: namespace.update(body))
