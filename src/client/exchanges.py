"""What a client does for one call, whichever way it sends: resolve names, make a key, repeat what was not answered, read
its own writes. An exchange is a generator that yields requests and pauses, so that both kinds of client share every line."""

import random
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID, uuid4

from baton.client.index import AGGREGATES, OPERATIONS, AggregateEntry, OperationEntry
from baton.client.refusals import AmbiguousNameError, ServiceUnreachableError, UnknownNameError, refusal_of
from baton.client.requests import POSITION, RETRY_AFTER, HttpRequest, HttpResponse, answer_of, check_names, request_of

GIVE_UP_SECONDS = 30.0  # how long a service that is away, or asks for patience, is asked again
FIRST_CONTACT_SECONDS = 2.0  # the same where it has never answered this client
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 3.0
ASSET, PATH_SEPARATOR = "Asset", re.compile(r"(?<!\\)/")  # a slash within a name is written \/
CLAIM_LOST = "IdempotencyClaimLostError"  # the first try of this very call is still being worked on
T = TypeVar("T")


@dataclass(frozen=True)
class Wait:
    """Nothing is sent for a while."""

    seconds: float


@dataclass(frozen=True)
class NoAnswer:
    """A request that was not answered, and why; the service may have carried it out."""

    reason: str


CallScript = Generator[HttpRequest | Wait, Any, T]


@dataclass
class ClientSession:
    """What a client remembers between calls: the last position it was answered, and the names it has resolved."""

    url: str
    give_up_seconds: float = GIVE_UP_SECONDS
    position: int = 0
    names: dict[tuple[str, str], UUID] = field(default_factory=dict)
    answered: bool = False  # whether the service has ever answered

    def call(
        self, operation: OperationEntry, arguments: Mapping[str, Any], *, key: str | None = None, dry_run: bool = False
    ) -> CallScript[Any]:
        """Call an operation: a name may stand where an id belongs, and a list shows what this client did before."""
        check_names(operation, arguments)  # before anything is asked for the sake of a name
        resolved = yield from self.resolve(operation, arguments)
        if operation.reads_own_writes and self.position:
            resolved.setdefault("min_position", self.position)
        if operation.kind == "command":
            key = key or uuid4().hex
        request = request_of(operation, resolved, key=key, dry_run=dry_run)
        response = yield from self.deliver(request)
        self.position = max(self.position, int(response.headers.get(POSITION, 0)))
        return answer_of(request, response)

    def deliver(self, request: HttpRequest) -> CallScript[HttpResponse]:
        """Send a request, and again while it is not answered or the answer asks to come again. Repeating is harmless: a
        command carries its key, and a query changes nothing."""
        begun, pause = monotonic(), FIRST_PAUSE_SECONDS
        while True:
            response: HttpResponse | NoAnswer = yield request
            self.answered = self.answered or isinstance(response, HttpResponse)
            if isinstance(response, HttpResponse) and not comes_again(response):
                return response
            patience = self.give_up_seconds if self.answered else min(FIRST_CONTACT_SECONDS, self.give_up_seconds)
            if monotonic() + pause > begun + patience:
                if isinstance(response, NoAnswer):
                    raise ServiceUnreachableError(f"No service answers at {self.url} ({response.reason}).")
                return response
            yield Wait(wanted_pause(response, pause))
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def resolve(self, operation: OperationEntry, arguments: Mapping[str, Any]) -> CallScript[dict[str, Any]]:
        """Return the arguments with an id wherever a name stands for one."""
        resolved = dict(arguments)
        for name, value in arguments.items():
            if (kind := operation.referred_kind(name)) is None:
                continue
            if isinstance(value, list | tuple | set | frozenset):
                resolved[name] = yield from self.ids_of(kind, value)
            elif isinstance(value, str | UUID):
                resolved[name] = yield from self.id_of(kind, value)
        return resolved

    def ids_of(self, kind: str, names: Iterable[str | UUID]) -> CallScript[list[UUID]]:
        """Return the ids of things of a kind with these names."""
        ids: list[UUID] = []
        for name in names:
            ids += [(yield from self.id_of(kind, name))]
        return ids

    def id_of(self, kind: str, name: str | UUID) -> CallScript[UUID]:
        """Return the id of the one thing of a kind with this name; an id is its own."""
        if isinstance(name, UUID) or is_id(name):
            return UUID(str(name))
        known = (kind, name)
        if known not in self.names:
            aggregate = AGGREGATES[kind]
            listing = list_operation(aggregate)
            rows = yield from self.rows(listing, {"name": name})
            if not rows and kind == ASSET:
                rows = yield from self.assets_at(listing, [part.replace("\\/", "/") for part in PATH_SEPARATOR.split(name)])
            if not rows:
                raise UnknownNameError(aggregate.label, name, (yield from self.names_like(aggregate, listing, name)))
            if len(rows) > 1:
                candidates = {str(getattr(row, aggregate.id_name)): describe_row(row, aggregate) for row in rows}
                raise AmbiguousNameError(aggregate.label, name, candidates)
            self.names[known] = getattr(rows[0], aggregate.id_name)
        return self.names[known]

    def assets_at(self, listing: OperationEntry, parts: Sequence[str]) -> CallScript[list[Any]]:
        """Return the assets at a path, which may begin anywhere: `First beamline/Camera`."""
        if len(parts) < 2 or not all(parts):
            return []
        rows: list[Any] = yield from self.rows(listing, {"name": parts[-1]})
        above: list[Any] = []
        if rows:
            whole = (
                yield from self.rows(listing, {"name": parts[0]}) if len(parts) == 2 else self.assets_at(listing, parts[:-1])
            )
            above = [row.asset_id for row in whole]
        return [row for row in rows if row.parent_id in above]

    def names_like(self, aggregate: AggregateEntry, listing: OperationEntry, name: str) -> CallScript[list[str]]:
        """Return the names of things that hold this text or, where there are none, are spelt like it."""
        holding = yield from self.call(listing, {"limit": 5, "q": name[:100]})
        if holding.items:
            return [getattr(row, aggregate.name_field or "") for row in holding.items]
        newest = yield from self.call(listing, {"limit": 100, "order": "desc"})
        known = {getattr(row, aggregate.name_field or "").casefold(): row for row in newest.items}
        like = get_close_matches(name.rpartition("/")[2].casefold() or name.casefold(), known, n=3)
        return [getattr(known[one], aggregate.name_field or "") for one in like]

    def rows(self, operation: OperationEntry, filters: Mapping[str, Any]) -> CallScript[list[Any]]:
        """Return the items of a list, all pages of it."""
        items: list[Any] = []
        wanted: dict[str, Any] = {"limit": 100, **filters}
        while True:
            page = yield from self.call(operation, wanted)
            items += page.items
            if page.next_cursor is None:
                return items
            wanted["cursor"] = page.next_cursor

    def items(
        self, operation: OperationEntry, filters: Mapping[str, Any], present: Callable[[Any], Any] | None = None
    ) -> Generator[Any, Any, None]:
        """Yield every item of a list, page by page, as this function presents it."""
        wanted: dict[str, Any] = {"limit": 100, **filters}
        while True:
            page = yield from self.call(operation, wanted)
            yield from page.items if present is None else map(present, page.items)
            if page.next_cursor is None:
                return
            wanted["cursor"] = page.next_cursor


def only_result(exchange: CallScript[T]) -> Generator[Any, Any, None]:
    """Yield the result of an exchange behind its requests."""
    yield (yield from exchange)


def comes_again(response: HttpResponse) -> bool:
    """Return whether a response asks for the same request later."""
    if response.status == 503 and RETRY_AFTER in response.headers:
        return True
    return response.status == 409 and refusal_of(409, response.content).code == CLAIM_LOST


def wanted_pause(response: HttpResponse | NoAnswer, otherwise: float) -> float:
    """Return how long to wait before the next try: what the service asks for, or a growing and scattered time."""
    wanted = None if isinstance(response, NoAnswer) else response.headers.get(RETRY_AFTER)
    return min(float(wanted), LONGEST_PAUSE_SECONDS) if wanted and wanted.isdigit() else otherwise * random.uniform(0.5, 1)


def list_operation(aggregate: AggregateEntry) -> OperationEntry:
    """Return the operation that lists the things of a kind."""
    if aggregate.lists is None:
        raise LookupError(f"There is no list of every {aggregate.label}.")
    return OPERATIONS[aggregate.lists]


def describe_row(row: Any, aggregate: AggregateEntry) -> str:
    """Return what tells a thing from others of its name."""
    shown = (getattr(row, name, None) for name in (aggregate.axis, "kind", "facility_code", "created_at", "registered_at"))
    return ", ".join(str(value) for value in shown if value is not None)


def is_id(text: str) -> bool:
    """Return whether a text is an id rather than a name."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True
