"""Refusals as a caller meets them: exceptions of their own class name, with `detail`, `reason` and `facts`. Any refusal of
the service is an attribute of this module: `from baton.client.refusals import RunCannotStartError`."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, ClassVar

from baton.client.index import REFUSALS, OperationEntry


class ReceivedRefusal(Exception):
    """The request was understood and refused; nothing was changed. The service has the same classes for what it raises:
    those of a caller are made here, by the codes in the index, so that no name is declared twice."""

    status: ClassVar[int] = 500
    problem: Mapping[str, Any] | None = None  # The whole body it was answered with.

    def __init__(self, detail: str, *, reason: str | None = None, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason
        self.facts = facts or None

    @property
    def code(self) -> str:
        return type(self).__name__

    @property
    def next_steps(self) -> tuple[Mapping[str, Any], ...]:
        """The calls that lead to what was asked for, each with its operation, the arguments known, and those needed."""
        return tuple((self.problem or {}).get("next_steps") or ())

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" + (f" [{self.reason}]" if self.reason else "")


def derived_class(base: type[ReceivedRefusal], code: str, status: int, meaning: str) -> type[ReceivedRefusal]:
    """Return a class of refusals of this code."""
    return type(code, (base,), {"status": status, "__doc__": meaning, "__module__": __name__})


Refusal = ReceivedRefusal
Invalid = derived_class(Refusal, "Invalid", 400, "A value breaks a rule of the domain.")
Forbidden = derived_class(Refusal, "Forbidden", 403, "The caller may not do this.")
NotFound = derived_class(Refusal, "NotFound", 404, "What was named does not exist.")
Conflict = derived_class(Refusal, "Conflict", 409, "The stored state does not allow this now.")
Unprocessable = derived_class(Refusal, "Unprocessable", 422, "The request has the wrong form.")
Unavailable = derived_class(Refusal, "Unavailable", 503, "A service this answer depends on cannot be reached.")
FAMILIES = {family.status: family for family in (Invalid, Forbidden, NotFound, Conflict, Unprocessable, Unavailable)}


class ClientError(Exception):
    """A call that no service has refused: it was not sent, or not answered."""

    @property
    def sentences(self) -> list[str]:
        """What is wrong, a sentence for each fault."""
        return [str(self)]


class ArgumentsError(ClientError, ValueError):
    """The arguments do not fit the operation; nothing was sent. `faults` says by their names what is wrong with them."""

    def __init__(self, operation: OperationEntry, faults: Mapping[str, str]) -> None:
        listed = "; ".join(f"{name} {fault}" for name, fault in faults.items())
        super().__init__(f"{operation.name} does not take these arguments: {listed}.")
        self.operation = operation
        self.faults = dict(faults)


def unknown_argument(operation: OperationEntry, name: str) -> str:
    """Return what is wrong with an argument that an operation does not have."""
    known = dict.fromkeys((*operation.placeholders, *operation.arguments))
    like = get_close_matches(name, known, n=1)
    return f"is not known, did you mean {like[0]}" if like else f"is not known, it takes {', '.join(known) or 'nothing'}"


class ProposedError(ClientError):
    """A call that waits for the approval of a second person: nothing has happened yet. `proposed` has the ids, until when it
    may be approved, and what it would record; `get_work` tells under `proposed.work_id` what becomes of it."""

    def __init__(self, operation: OperationEntry, proposed: Any) -> None:
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
        code, detail = str(body["code"]), body["detail"]
    except (ValueError, KeyError, TypeError):
        raise NotBatonError(f"It answered {status} without a refusal that can be read.") from None
    kind = refusal_class(code) if code in REFUSALS else newer_class(code, status)
    refusal = kind(detail, reason=body.get("reason"), facts=body.get("facts"))
    refusal.problem = body
    return refusal


@cache
def refusal_class(code: str) -> type[Refusal]:
    """Return the class of a refusal that the index has."""
    known = REFUSALS[code]
    return derived_class(FAMILIES.get(known.status, Refusal), code, known.status, known.meaning)


@cache
def newer_class(code: str, status: int) -> type[Refusal]:
    """Return a class for a refusal that is newer than this client."""
    return derived_class(FAMILIES.get(status, Refusal), code, status, "A refusal that this version does not know.")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what importing asks for; the refusals are found when one of them is wanted
        raise AttributeError(name)
    try:
        return refusal_class(name)
    except KeyError:
        raise AttributeError(f"there is no refusal {name}") from None
