"""What the loader of a region asks the service, as the person who looks and once for each question."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from baton.api.errors import RequestValidationError
from baton.api.parsing import uuid_from
from baton.application.caller import Caller
from baton.application.queries import ShownAnswer, plain_answer
from baton.application.service import Service
from baton.application.settings import Settings
from baton.domain.kernel import NamesOnRequest, Query
from baton.domain.registry import Operation
from baton.domain.shared.refusals import Forbidden, Refusal

if TYPE_CHECKING:
    from baton.console.health import ServiceHealth

A = TypeVar("A")
Shown = Mapping[str, Any]  # An answer as plain data: JSON, with the names of what it refers to.
MOST_AT_ONCE = 4  # questions of one rendering that the database answers at a time


class MissingPermissionError(Forbidden):
    """The person who looks holds no permission for what a page asks."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.needed = tuple(dict.fromkeys(operation.command_name for operation in operations))
        named = " and ".join(self.needed)
        super().__init__(
            f"This takes the permission {named}; ask an administrator for it.", reason="principal_not_permitted"
        )


@dataclass(frozen=True)
class DeploymentRules:
    """What pages must know of the deployment's settings to say what counts here."""

    policies_enforced: bool = False
    four_eyes: bool = False
    observation_seconds: int = 120  # how old the observation of a permit may be
    monitored_seconds: int = 10  # the same, of one that the service's own monitor watches
    logbook: str | None = None  # the facility's own logbook, where one is copied to

    @classmethod
    def of(cls, settings: Settings) -> "DeploymentRules":
        """Return the rules that these settings make."""
        seconds = settings.enclosure_observation_ttl_seconds, settings.monitored_permit_ttl_seconds
        mirrored = settings.logbook_mirror_directory is not None
        logbook = (settings.logbook_mirror_target or settings.self_facility_code) if mirrored else None
        return cls(settings.enforced, settings.four_eyes, *seconds, logbook)


@dataclass(frozen=True)
class HeldPermissions:
    """The permissions of somebody: what they may do at once, and what becomes a proposal when they do it."""

    at_once: frozenset[str] = frozenset()
    with_approval: frozenset[str] = frozenset()

    @property
    def holds_any(self) -> bool:
        """Whether they hold any permission at all."""
        return bool(self.at_once or self.with_approval)

    def may(self, operation: Operation) -> bool:
        """Return whether they may ask or do this, or propose it."""
        return operation.open or operation.command_name in self.at_once or operation.command_name in self.with_approval


@dataclass
class PageQueries:
    """The questions of one rendering, as one person; the same question is asked once."""

    service: Service
    caller: Caller
    held: HeldPermissions
    zone: ZoneInfo
    now: datetime
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    position: int = 0  # lists show everything up to this place of the log
    recorded: bool = True  # whether each question is a verdict on record; a rendering that repeats itself is not
    facility: str = ""
    rules: DeploymentRules = DeploymentRules()
    health: "ServiceHealth | None" = None
    _answers: "dict[tuple[type[Query], UUID | None, str], asyncio.Task[ShownAnswer[Any]]]" = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_AT_ONCE))

    def may(self, *inputs: "type[Query] | Operation") -> bool:
        """Return whether the person may ask or do all of these, or propose those that they hold with approval."""
        operations = (one if isinstance(one, Operation) else one.operation for one in inputs)
        return all(map(self.held.may, operations))

    def proposes(self, operation: Operation) -> bool:
        """Return whether a command becomes a proposal when the person gives it."""
        return operation.command_name in self.held.with_approval

    @property
    def permitted(self) -> frozenset[str]:
        """What the person may do at once."""
        return self.held.at_once

    def require(self, operations: Iterable[Operation]) -> None:
        """Raise where the person may not ask all of these."""
        if missing := [one for one in operations if not self.may(one)]:
            raise MissingPermissionError(missing)

    def id(self, name: str) -> UUID:
        """Return the id at a place of the path, or of the query."""
        return uuid_from(self.path.get(name) or self.query.get(name, ""), "path", name)

    async def ask(self, query: type[Query[A]], target: UUID | str | None = None, /, **fields: object) -> A:
        """Return the answer to a query, as it is declared."""
        return (await self._load_answer(query, target, fields)).answer

    async def show(self, query: type[Query[A]], target: UUID | str | None = None, /, **fields: object) -> Shown:
        """Return the answer to a query as plain data, with the names of what it refers to: what templates show."""
        shown: Shown = plain_answer((await self._load_answer(query, target, fields)).shown)
        return shown

    async def show_if_permitted(
        self, query: type[Query], target: UUID | str | None = None, /, **fields: object
    ) -> Shown | None:
        """Return the answer to a query as plain data, or None where the person may not ask it."""
        return await self.show(query, target, **fields) if self.may(query) else None

    async def find(self, query: type[Query[A]], target: UUID | str, /, **fields: object) -> A | None:
        """Return the answer about one thing, or None where there is no such thing or the person may not see it."""
        if not self.may(query):
            return None
        answer: A | None = await unless_missing(self.ask(query, target, **fields))
        return answer

    async def show_found(self, query: type[Query], target: UUID | str, /, **fields: object) -> Shown | None:
        """Return the answer about one thing as plain data, or None where there is none or the person may not see it."""
        return await unless_missing(self.show(query, target, **fields)) if self.may(query) else None

    async def _load_answer(
        self, query: type[Query[A]], target: UUID | str | None, fields: Mapping[str, object]
    ) -> ShownAnswer[A]:
        self.require([query.operation])
        target_id = uuid_from(str(target), "path", query.operation.target or "id") if target is not None else None
        request = self._input(query, fields)
        key = (query, target_id, request.model_dump_json())
        if key not in self._answers:
            self._answers[key] = asyncio.create_task(self._answer(request, target_id))
        return await self._answers[key]

    def _input(self, query: type[Query[A]], fields: Mapping[str, object]) -> Query[A]:
        given = {name: value for name, value in fields.items() if value is not None}
        if issubclass(query, NamesOnRequest) and "include" not in fields:  # None asks for no names
            given["include"] = "names"
        if self.position and query.operation.reads_own_writes:
            given.setdefault("min_position", self.position)
        try:
            return query.model_validate(given)
        except ValidationError as error:
            raise RequestValidationError.of(error, "query") from None

    async def _answer(self, request: Query[A], target_id: UUID | None) -> ShownAnswer[A]:
        ask = self.service.show if self.recorded else self.service.queries.answer
        async with self.turns:
            return await ask(request, self.caller, target_id=target_id)


async def unless_missing(asking: Awaitable[A]) -> A | None:
    """Return what is awaited, or None where there is no such thing."""
    try:
        return await asking
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        return None
