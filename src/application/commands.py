"""The authorized command path: the only way anything is ever appended.

authorize, claim the idempotency key, load and fold, gather, decide, and write everything in one transaction.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from baton.application.authorization import is_system
from baton.application.ports import (
    Authorizer,
    Batch,
    Caller,
    Clock,
    CommandResult,
    IdGenerator,
    KeyClaim,
    Session,
    Store,
    StreamAppend,
)
from baton.application.record_reader import load_state
from baton.application.unit_of_work import UnitOfWork
from baton.domain.access.actor import Actor
from baton.domain.kernel import Call, Command, Event, Outcome
from baton.domain.registry import Operation
from baton.domain.shared.canonical import content_hash, derived_uuid7
from baton.domain.shared.ports import Ports
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError
from baton.domain.shared.writes import Also, Answer, Claim, Delist, Drop, Enlist, Enter, Put, Release
from baton.domain.trust.authorization import AuthzResult

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 1.0
"""Seconds before a command that lost a race is given again, if it lost more than one."""


class Commands:
    """Executes commands for callers on every surface, workflows, agents and monitors alike."""

    def __init__(
        self,
        store: Store,
        authorizer: Authorizer,
        clock: Clock,
        new_id: IdGenerator,
        ports: Ports,
        lock_stale_after: timedelta = timedelta(seconds=60),
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._clock = clock
        self._new_id = new_id
        self._ports = ports
        self._lock_stale_after = lock_stale_after

    async def execute(
        self,
        command: Command,
        caller: Caller,
        *,
        target_id: UUID | None = None,
        key: str | None = None,
        new_id: UUID | None = None,
    ) -> CommandResult:
        """Carry out one command, or refuse it and change nothing; `new_id` is what it opens or creates."""
        operation = command.operation
        refuse_denied(operation, await self._authorizer.authorize(caller, operation.command_name))
        await self._refuse_other_kinds(operation, caller)
        claim = self._claim(operation, command, caller, target_id, key) if key is not None else None
        if claim is not None:
            stored = await self._store.claim_key(claim, claim.claimed_at - self._lock_stale_after)
            if stored is not None:
                return stored
            new_id = new_id or work_id(claim)
        try:
            return await self._until_won(operation, command, caller, target_id, claim, new_id)
        except Refusal:
            if claim is not None:
                await self._store.release_key(claim)
            raise

    async def _refuse_other_kinds(self, operation: Operation, caller: Caller) -> None:
        """Refuse a caller whose actor is not of a kind the operation is for, before anything of the target is read."""
        if not operation.callers or is_system(caller, caller.surface_id):
            return
        actor = await load_state(self._store, Actor, caller.principal_id)
        if actor is None or actor.kind not in operation.callers:
            kinds = " or ".join(sorted(kind.value for kind in operation.callers))
            raise UnauthorizedError(
                f"{operation.command_name} is for actors of kind {kinds} only; call it with such an account's token.",
                reason="caller_kind_not_permitted",
            )

    async def _until_won(
        self,
        operation: Operation,
        command: Command,
        caller: Caller,
        target_id: UUID | None,
        claim: KeyClaim | None,
        new_id: UUID | None,
    ) -> CommandResult:
        for remaining in reversed(range(operation.attempts)):
            try:
                async with self._store.session(operation.lock) as session:
                    call = caller.call(self._clock(), new_id or self._new_id())
                    return await self._attempt(session, operation, command, call, caller, target_id, claim)
            except ConcurrencyError:
                if not remaining:
                    raise
        raise AssertionError("a command has at least one attempt")

    async def _attempt(
        self,
        session: Session,
        operation: Operation,
        command: Command,
        call: Call,
        caller: Caller,
        target_id: UUID | None,
        claim: KeyClaim | None,
    ) -> CommandResult:
        if hasattr(command, "examine"):
            command.examine()
        unit = UnitOfWork(session, caller, self._authorizer, self._ports)
        state = None
        if operation.target is not None and operation.aggregate is not None and target_id is not None:
            state = await unit.target(operation.aggregate, target_id)
        outcome = await unit.fulfil(operation.decision(command, state, call))
        stream_id = call.new_id if target_id is None else target_id
        batch = Batch(call, operation.command_name)
        add_outcome(batch, outcome, stream_id, unit.version, self._new_id)
        answer = next((effect for effect in outcome if isinstance(effect, Answer)), None)
        body = None if answer is None else answer.body
        if body is None and operation.creates and operation.aggregate is not None:
            body = {operation.aggregate.id_name: str(stream_id)}
        status = answer.status if answer is not None and answer.status is not None else operation.status
        replayed = answer is not None and answer.replayed
        executed = CommandResult(status, body, unit.position, replayed)
        if claim is not None:
            batch.outcome = (claim, executed)
        if batch.empty and claim is None:
            return executed
        try:
            position = await session.append(batch)
        except ConcurrencyError:
            if operation.creates and operation.aggregate is not None and not any(append.after for append in batch.appends):
                raise operation.aggregate.AlreadyExists(
                    f"The {operation.aggregate.label} {stream_id} exists already."
                ) from None
            raise
        return CommandResult(status, body, position or unit.position, replayed)

    def _claim(self, operation: Operation, command: Command, caller: Caller, target_id: UUID | None, key: str) -> KeyClaim:
        beside = {"wait"} if operation.work is not None else None  # how long somebody waits is not what is asked for
        asked = command.model_dump(mode="json", exclude_unset=True, exclude=beside)
        request = [operation.command_name, target_id, asked]
        fingerprint = content_hash(request)
        return KeyClaim(caller.principal_id, key, caller.surface_id, operation.command_name, fingerprint, self._clock())


def add_outcome(
    batch: Batch, outcome: Outcome, stream_id: UUID, version: Callable[[str, UUID], int], new_id: IdGenerator
) -> None:
    """Add the outcome of one stream to what is written; `version` is what was last seen of a stream."""
    if events := [effect for effect in outcome if isinstance(effect, Event)]:
        name = events[0].aggregate.name
        stamped = [(event.known_id or new_id(), event.stamped(stream_id, batch.call.now)) for event in events]
        batch.appends.append(StreamAppend(name, stream_id, version(name, stream_id), stamped))
    for effect in outcome:
        match effect:
            case Claim():
                batch.claims.append((effect, stream_id))
            case Release():
                batch.releases.append((effect, stream_id))
            case Enlist():
                batch.enlistments.append((effect, stream_id))
            case Delist():
                batch.delistments.append((effect, stream_id))
            case Also(_, other, others):
                add_outcome(batch, others, other, version, new_id)
            case Put():
                batch.puts.append(effect)
            case Drop():
                batch.drops.append(effect)
            case Enter(entries):
                batch.entries.append(entries)
            case Event() | Answer():
                pass


async def execute_with_retry(
    commands: Commands, command: Command, caller: Caller, *, target_id: UUID | None = None, new_id: UUID | None = None
) -> CommandResult:
    """Give a command however often somebody else comes first: that only makes it be decided again."""
    pause = 0.0
    while True:
        try:
            return await commands.execute(command, caller, target_id=target_id, new_id=new_id)
        except ConcurrencyError:
            await asyncio.sleep(pause)
            pause = min(pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)


def work_id(claim: KeyClaim) -> UUID:
    """The id of what a request with a key opens; it is kept with the outcome of the key, so a repeat finds it there."""
    at = int(claim.claimed_at.timestamp() * 1000)
    return derived_uuid7(at, f"{claim.principal_id}:{claim.surface_id}:{claim.key}", claim.fingerprint)


DENIALS: dict[str, str] = {
    "principal_deactivated": "Your actor is deactivated; ask an administrator to reactivate it.",
    "agent_not_versioned": "This agent is not in service; version or resume it first.",
    "no_applicable_policy": "No policy is defined for this surface; ask an administrator to define one.",
    "principal_not_permitted": "No policy on this surface lists you; ask an administrator for a grant.",
    "command_not_permitted": "Your policies do not permit this operation here; ask an administrator for it.",
}


def refuse_denied(operation: Operation, verdict: AuthzResult) -> None:
    """Refuse a call that the authorization seam denied; which policies exist stays unsaid."""
    if not verdict.allowed:
        reason = verdict.reason or "denied"
        advice = DENIALS.get(reason, "Ask an administrator for it.")
        raise UnauthorizedError(f"{operation.command_name} was refused. {advice}", reason=reason)
