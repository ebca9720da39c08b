"""What each refusal means and which operations answer with it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from baton.api import errors
from baton.api.mcp.toolbox import UnknownOperationError
from baton.api.refusal_catalogue import ALWAYS_POSSIBLE, COMMAND_REFUSALS, common_refusals
from baton.application.ports import EngineUnavailableError
from baton.domain.registry import Operation, Registry, snake_case
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.sources import refusal_source
from tests.documents.reference.forms import paragraph, table
from tests.documents.reference.lives import OF_AGGREGATE
from tests.documents.reference.order import operations_in_order
from tests.support.domain.lifecycle_table import EVERY, Verb

OF_THE_EDGE = tuple(
    dict.fromkeys(
        (
            *ALWAYS_POSSIBLE,
            *COMMAND_REFUSALS,
            EngineUnavailableError,
            errors.RouteNotFoundError,
            errors.MethodNotAllowedError,
            errors.TooManyStreamsError,
            UnknownOperationError,
        )
    )
)
"""What any request may be refused with, whatever it asks for."""


def refusals_of(operation: Operation) -> tuple[type[Refusal], ...]:
    """The classes that an operation has beside those of every request."""
    own = dict.fromkeys((*operation.refusals, *common_refusals(operation)))
    return tuple(refusal for refusal in own if refusal not in OF_THE_EDGE)


def sentence(refusal: type[Refusal], operations: Iterable[Operation]) -> str:
    """What a refusal says; the one that a verb has of its own says when that verb is possible."""
    verbs = [operation for operation in operations if is_own(refusal, operation)]
    return " ".join(map(own_meaning, verbs)) if verbs else paragraph(refusal.__doc__ or "")


def is_own(refusal: type[Refusal], operation: Operation) -> bool:
    return operation.kind == "command" and refusal is operation.input.Cannot  # type: ignore[union-attr]


def own_meaning(operation: Operation) -> str:
    """Return when a verb is refused by its own class, and by which reasons."""
    assert operation.aggregate is not None, "a verb belongs to an aggregate"
    life = OF_AGGREGATE[operation.aggregate.name]
    verb = life.verbs.get(operation.name, Verb())
    refused = [
        state for state in next(iter(life.ways.values()), ()) if verb.allowed != EVERY and state not in verb.allowed.split()
    ]
    possible = f"is possible only from {', '.join(verb.allowed.split())}" if refused else "cannot be done now"
    stated = [verb.reason] if verb.reason else [snake_case(state) for state in refused]
    reasons = ", ".join(f"`{reason}`" for reason in dict.fromkeys((*stated, *operation.own_reasons)))
    return f"`{operation.name}` {possible}. Reasons: {reasons}."


@cache
def raisers(registry: Registry) -> dict[type[Refusal], list[Operation]]:
    """The operations that answer with each class."""
    found: dict[type[Refusal], list[Operation]] = defaultdict(list)
    for operation in operations_in_order(registry):
        for refusal in refusals_of(operation):
            found[refusal].append(operation)
    return found


def refusals_page(registry: Registry, link: dict[str, str]) -> Iterator[str]:
    """Yield the page of every refusal class, by name."""
    yield "# Refusals"
    yield (
        "Every class that can stand in the `code` of a refusal, by name. The `detail` of the answer says what to do in the "
        "case at hand, `reason` is the cause for programs. A 4xx has changed nothing. After a 5xx look first, or repeat the "
        "request with the same `Idempotency-Key`."
    )
    yield "## Of any request"
    yield table(
        ("class", "status", "meaning", "declared in"),
        ((f"`{one.__name__}`", str(one.status), sentence(one, ()), source_link(refusal_source(one))) for one in OF_THE_EDGE),
    )
    yield "## Of single operations"
    found = raisers(registry)
    yield table(
        ("class", "status", "meaning", "answered by", "declared in"),
        (
            (
                f"`{one.__name__}`",
                str(one.status),
                sentence(one, found[one]),
                answered_by(one, found[one], link),
                source_link(refusal_source(one)),
            )
            for one in sorted(found, key=lambda one: (one.__name__, one.context))
        ),
    )


def answered_by(refusal: type[Refusal], operations: list[Operation], link: dict[str, str]) -> str:
    """The operations that answer with a class; one that everything about an aggregate answers with is named as that."""
    for aggregate in (operation.aggregate for operation in operations):
        if aggregate is not None and refusal is aggregate.NotFound:
            operations = [operation for operation in operations if operation not in aggregate.operations]
            rest = "".join(f", {link[operation.name]}" for operation in operations)
            return f"whatever names one [{aggregate.label}]({page_of(aggregate.name)}){rest}"
    return ", ".join(link[operation.name] for operation in operations)


def source_link(source: str | None) -> str:
    """A link from a page of the reference to the line of a declaration."""
    assert source is not None, "every operation and refusal is declared somewhere"
    path, _, line = source.rpartition(":")
    return f"[{path}](../../{path}#L{line})"


def page_of(aggregate: str) -> str:
    """Return the file name of an aggregate's page."""
    return f"{snake_case(aggregate).replace('_', '-')}.md"
