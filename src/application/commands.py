"""The command path: authorize, claim the idempotency key, load, decide, and write everything in one transaction. Every event
comes from here: from a command, or with `Batch.add` from seeds and from a finished publication. Rows outside any command
(bookmarks, locks, the state of long work) are written with `system_batch`; conducts write their own ledger."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from pydantic_core import to_jsonable_python

from baton.application.authorization import is_system
from baton.application.caller import Caller
from baton.application.dry_runs import DryRunPorts, refuse_rivals, would_record
from baton.application.ports import (
    FACTS_CHANGED,
    Authorizer,
    Batch,
    Clock,
    CommandResult,
    IdGenerator,
    KeyClaim,
    Session,
    Store,
)
from baton.application.unit_of_work import UnitOfWork, load_state
from baton.domain.access.actor import Actor
from baton.domain.kernel import Call, Command, NeededPermissions
from baton.domain.ports import Ports
from baton.domain.registry import OpenedWork, Operation, WokenWork, defines
from baton.domain.shared.canonical import content_hash, derived_uuid7
from baton.domain.shared.dry_run import DryRun
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError
from baton.domain.shared.writes import Answer, Drop, Put
from baton.domain.trust.authorization import ApprovalRequiredError, AuthzResult
from baton.domain.trust.proposal import OpenProposal, ProposedPart
from baton.domain.trust.proposal_basis import KeptBasis, ProposalBasis, StreamVersion

READ_EVENT_TEXTS = "ReadEventTexts"
MOMENT = timedelta(seconds=1)  # so that times in names, which are written to the second, show as times
DECIDED_ANEW = 5  # how often a gated command is decided while what it was judged by changes under it
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 1.0  # seconds before a command that lost more than one race is given again
T = TypeVar("T")
NOT_PERMITTED = "command_not_permitted"
DENIALS: dict[str, str] = {
    "principal_deactivated": "Your actor is deactivated; ask an administrator to reactivate it.",
    "agent_not_versioned": "This agent is not in service; version or resume it first.",
    "no_applicable_policy": "No policy is defined for this surface; ask an administrator to define one.",
    "principal_not_permitted": "No policy on this surface lists you; ask an administrator for a grant.",
    NOT_PERMITTED: "Your policies do not permit this operation here; ask an administrator for it.",
}


@dataclass(frozen=True)
class PreparedWrite:
    """What a command comes to: what it writes, the stream it is about or begins, and what it answers."""

    batch: Batch
    stream_id: UUID
    status: int
    body: Mapping[str, Any] | None
    replayed: bool


@dataclass
class Commands:
    """Executes commands for callers on every surface, workflows, agents and monitors alike."""

    store: Store
    authorizer: Authorizer
    clock: Clock
    new_id: IdGenerator
    ports: Ports
    lock_stale_after: timedelta = timedelta(seconds=60)

    async def execute(
        self,
        command: Command,
        caller: Caller,
        *,
        target_id: UUID | None = None,
        key: str | None = None,
        new_id: UUID | None = None,
    ) -> CommandResult:
        """Execute one command, or refuse it and change nothing; `new_id` is what it opens or creates."""
        operation = command.operation
        await self._authorize(command, caller)
        begins = isinstance(operation.work, OpenedWork | WokenWork)
        if begins and caller.claims is not None:
            caller = replace(caller, proven_group_ids=await self.authorizer.proven_groups(caller))
        claim = self._claim(operation, command, caller, target_id, key) if key is not None else None

        async def write(new_id: UUID | None) -> CommandResult:
            return await self._write(command, caller, target_id, claim, new_id)

        return await self._under_idempotency_key(claim, write, new_id)

    async def propose(
        self, command: Command, caller: Caller, needed: ApprovalRequiredError, target_id: UUID | None, key: str | None
    ) -> CommandResult:
        """Open a proposal of a command that its caller holds only with approval, or refuse it as a dry run of it is refused.
        An idempotency key is that of the command: a repeat finds the proposal."""
        claim = self._claim(command.operation, command, caller, target_id, key) if key is not None else None
        proposer = replace(caller, proven_group_ids=await self.authorizer.proven_groups(caller))

        async def write(new_id: UUID | None) -> CommandResult:
            basis = await self.examine(command, caller, target_id)
            opening = OpenProposal(
                command_name=command.operation.command_name,
                target_id=target_id,
                request=command.model_dump(mode="json", by_alias=True, exclude_unset=True),
                would=[event.model_dump(mode="json") for event in basis.would],
                policy_ids=frozenset(needed.policy_ids),
                parts=tuple(ProposedPart(command_name=name, policy_ids=ids) for name, ids in needed.parts.items()),
                digest=basis.digest,
                rests_on=basis.rests_on,
            )
            return await self._write(opening, proposer, None, claim, new_id)

        return await self._under_idempotency_key(claim, write, None)

    async def _under_idempotency_key(
        self, claim: KeyClaim | None, write: Callable[[UUID | None], Awaitable[CommandResult]], new_id: UUID | None
    ) -> CommandResult:
        """Write under an idempotency key, or return what was answered under it; a refusal gives the key back."""
        if claim is None:
            return await write(new_id)
        if (stored := await self.store.claim_key(claim, claim.claimed_at - self.lock_stale_after)) is not None:
            return stored
        at, whose = claim.claimed_at.timestamp() * 1000, f"{claim.principal_id}:{claim.surface_id}:{claim.key}"
        try:
            # a repeat finds it with the key's outcome
            return await write(new_id or derived_uuid7(int(at), whose, claim.fingerprint))
        except Refusal:
            await self.store.release_key(claim)
            raise

    async def _write(
        self, command: Command, caller: Caller, target_id: UUID | None, claim: KeyClaim | None, new_id: UUID | None
    ) -> CommandResult:
        """Decide and write a command that was admitted; it is decided again while it loses races that it may lose."""
        operation = command.operation
        attempts = {FACTS_CHANGED: DECIDED_ANEW}
        while True:
            try:
                async with self.store.session(operation.lock) as session:
                    call = caller.call(self.clock(), new_id or self.new_id())
                    return await self._attempt(session, command, call, caller, target_id, claim)
            except ConcurrencyError as race:
                cause = race.reason or ""
                attempts[cause] = attempts.get(cause, operation.attempts) - 1
                if not attempts[cause]:
                    raise

    async def dry_run(self, command: Command, caller: Caller, *, target_id: UUID | None = None) -> DryRun:
        """Return what a command would record and answer, or refuse it as its execution would; nothing is written. A
        caller who holds the command only with approval may ask this too."""
        decided = await self.rehearse(command, caller, target_id)
        approval_needed = False
        try:
            await self._authorize(command, caller)
        except ApprovalRequiredError:
            approval_needed = True
        texts = READ_EVENT_TEXTS in await self.authorizer.permitted_commands(caller)
        answer = None if decided.body is None else to_jsonable_python(decided.body)
        would = tuple(would_record(decided.batch, command, texts=texts))
        return DryRun(would=would, answer=answer, approval_needed=approval_needed)

    async def rehearse(self, command: Command, caller: Caller, target_id: UUID | None) -> PreparedWrite:
        """Decide a command as its execution would, on ports that reach nothing outside."""
        async with self._rehearse(command, caller, target_id) as (_, decided):
            return decided

    async def examine(self, command: Command, caller: Caller, target_id: UUID | None) -> ProposalBasis:
        """Return what a command would record, and the versions of the streams that this rests on."""
        async with self._rehearse(command, caller, target_id) as (unit, decided):
            return await self._basis(unit, decided, command, target_id)

    @asynccontextmanager
    async def _rehearse(
        self, command: Command, caller: Caller, target_id: UUID | None
    ) -> AsyncIterator[tuple[UnitOfWork, PreparedWrite]]:
        operation = command.operation
        try:
            await self._authorize(command, caller)
        except ApprovalRequiredError:
            await self._refuse_other_kinds(operation, caller)
        async with self.store.session() as session:
            unit = UnitOfWork(session, caller, self.authorizer, DryRunPorts(self.ports))
            decided = await self._decide(unit, command, caller.call(self.clock(), self.new_id()), target_id)
            await refuse_rivals(session, decided.batch)
            begun = [one for one in decided.batch.appends if one.stream_id == decided.stream_id and not one.after]
            if begun and await session.load(begun[0].stream_type, [decided.stream_id]):
                refuse_existing(operation, decided.stream_id)
            yield unit, decided

    async def _basis(
        self, unit: UnitOfWork, decided: PreparedWrite, command: Command, target_id: UUID | None
    ) -> ProposalBasis:
        """Return what a decided command rests on. It is decided again, a moment later and under another id, to find out
        which values are times and new ids."""
        call = replace(decided.batch.call, now=decided.batch.call.now + MOMENT, new_id=self.new_id())
        again = await self._decide(unit, command, call, target_id)
        streams = sorted((name, id, version) for name, id, version in unit.versions if version)
        return ProposalBasis(
            command.operation.command_name,
            target_id,
            tuple(would_record(decided.batch, command, texts=True)),
            tuple(would_record(again.batch, command, texts=True)),
            tuple(StreamVersion(stream=name, stream_id=id, version=version) for name, id, version in streams),
        )

    async def read(self, reads: Reads[T], caller: Caller) -> T:
        """Fulfil what a rule asks to know, in a session of its own."""
        async with self.store.session() as session:
            return await self.unit_of_work(session, caller).fulfil(reads)

    def unit_of_work(self, session: Session, caller: Caller) -> UnitOfWork:
        """Return a unit of work of this caller."""
        return UnitOfWork(session, caller, self.authorizer, self.ports)

    async def _authorize(self, command: Command, caller: Caller) -> None:
        """Refuse a caller who may not give this command, or any that it stands for."""
        operation = command.operation
        if defines(type(command), "needs"):
            needed: NeededPermissions = command.needs()
            verdicts = {name: await self.authorizer.authorize(caller, name) for name in needed.given}
            permitted = await self.authorizer.permitted_commands(caller) if needed.issued else frozenset()
            refuse_lacking(operation, verdicts, [name for name in needed.issued if name not in permitted])
        else:
            refuse_denied(operation.command_name, await self.authorizer.authorize(caller, operation.command_name))
        await self._refuse_other_kinds(operation, caller)

    async def _refuse_other_kinds(self, operation: Operation, caller: Caller) -> None:
        """Refuse a caller whose actor is not of a kind the operation is for, before anything of the target is read."""
        if not operation.callers or is_system(caller, caller.surface_id):
            return
        actor = await load_state(self.store, Actor, caller.principal_id)
        if actor is None or actor.kind not in operation.callers:
            kinds = " or ".join(sorted(kind.value for kind in operation.callers))
            detail = f"{operation.command_name} is for actors of kind {kinds} only; call it with such an account's token."
            raise UnauthorizedError(detail, reason="caller_kind_not_permitted")

    async def _decide(self, unit: UnitOfWork, command: Command, call: Call, target_id: UUID | None) -> PreparedWrite:
        """Load what a command is about, decide it, and put together what it writes and answers."""
        operation = command.operation
        unit.begin_decision()
        if defines(type(command), "examine"):
            command.examine()
        state = None
        if operation.target is not None and operation.aggregate is not None and target_id is not None:
            state = await unit.target(operation.aggregate, target_id)
        outcome = await unit.fulfil(operation.decision(command, state, call))
        stream_id = operation.begun_stream(command, call) if target_id is None else target_id
        batch = Batch(call, operation.command_name)
        batch.add(outcome, stream_id, unit.version, self.new_id)
        answer = next((effect for effect in outcome if isinstance(effect, Answer)), None)
        body = None if answer is None else answer.body
        if answer is None and operation.creates and operation.aggregate is not None:
            body = {operation.aggregate.id_name: str(stream_id)}
        status = answer.status if answer is not None and answer.status is not None else operation.status
        return PreparedWrite(batch, stream_id, status, body, answer is not None and answer.replayed)

    async def _attempt(
        self, session: Session, command: Command, call: Call, caller: Caller, target_id: UUID | None, claim: KeyClaim | None
    ) -> CommandResult:
        operation, unit = command.operation, self.unit_of_work(session, caller)
        approved = None if caller.approval is None else caller.approval.basis_for(operation.command_name)
        if approved is None:
            decided = await self._decide(unit, command, call, target_id)
        else:
            decided = await self._decide_approved(unit, command, call, target_id, approved)
        batch = decided.batch
        batch.facts = unit.facts if operation.gated or approved is not None else None
        batch.lease = caller.lease
        result = CommandResult(decided.status, decided.body, unit.position, decided.replayed)
        if claim is not None:
            batch.outcome = (claim, result)
        if batch.empty and claim is None:
            return result
        try:
            position = await session.append(batch)
        except ConcurrencyError as race:
            if (
                operation.attempts == 1
                and race.reason != FACTS_CHANGED
                and not any(append.after for append in batch.appends)
            ):
                refuse_existing(operation, decided.stream_id)
            raise
        return replace(result, position=position or unit.position)

    async def _decide_approved(
        self, unit: UnitOfWork, command: Command, call: Call, target_id: UUID | None, approved: KeptBasis
    ) -> PreparedWrite:
        """Decide a command that was approved, or refuse it where it comes to something else. Nothing outside is reached
        before that is known."""
        unit.ports = rehearsing = DryRunPorts(self.ports)
        decided = await self._decide(unit, command, call, target_id)
        approved.refuse_changed(await self._basis(unit, decided, command, target_id), approved.digest)
        unit.ports = self.ports
        return await self._decide(unit, command, call, target_id) if rehearsing.made_up else decided

    def _claim(self, operation: Operation, command: Command, caller: Caller, target_id: UUID | None, key: str) -> KeyClaim:
        ignored = {"wait"} if operation.opens_work else None  # how long the caller waits is not what it asks for
        request = command.model_dump(mode="json", exclude_unset=True, exclude=ignored)
        fingerprint = content_hash([operation.command_name, target_id, request])
        return KeyClaim(caller.principal_id, key, caller.surface_id, operation.command_name, fingerprint, self.clock())


def refuse_existing(operation: Operation, stream_id: UUID) -> None:
    """Refuse a creation of what exists."""
    if operation.creates and operation.aggregate is not None:
        raise operation.aggregate.AlreadyExists(f"The {operation.aggregate.label} {stream_id} exists already.") from None


def system_batch(command_name: str, clock: Clock, new_id: IdGenerator, *rows: Put | Drop, work: UUID | None = None) -> Batch:
    """Return a batch of rows that the service writes outside any command: bookmarks, locks, the state of long work."""
    batch = Batch(Caller.system(work or new_id()).call(clock(), new_id()), command_name)
    batch.puts += [row for row in rows if isinstance(row, Put)]
    batch.drops += [row for row in rows if isinstance(row, Drop)]
    return batch


async def execute_with_retry(
    commands: Commands, command: Command, caller: Caller, *, target_id: UUID | None = None, new_id: UUID | None = None
) -> CommandResult:
    """Execute a command again and again while it loses races: after each loss it is decided again."""
    pause = 0.0
    while True:
        try:
            return await commands.execute(command, caller, target_id=target_id, new_id=new_id)
        except ConcurrencyError:
            await asyncio.sleep(pause)
            pause = min(pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)


def refuse_denied(command_name: str, verdict: AuthzResult) -> None:
    """Refuse a call that the authorizer denied; which policies exist stays unsaid."""
    if verdict.needs_approval:
        raise ApprovalRequiredError.for_command(command_name, verdict.determining_policies)
    if not verdict.is_allowed:
        reason = verdict.reason or "denied"
        advice = DENIALS.get(reason, "Ask an administrator for it.")
        raise UnauthorizedError(f"{command_name} was refused. {advice}", reason=reason)


def refuse_lacking(operation: Operation, verdicts: Mapping[str, AuthzResult], lacking: Sequence[str]) -> None:
    """Refuse a command that stands for others where the caller lacks any of them, or of what they lead to; all that is
    missing is one refusal. Where some are held only with approval, the command becomes a proposal as a whole."""
    denied = {name: one for name, one in verdicts.items() if not one.is_allowed and not one.needs_approval}
    for name, verdict in denied.items():
        if verdict.reason != NOT_PERMITTED or (len(denied) == 1 and not lacking):
            refuse_denied(name, verdict)
    if missing := sorted({*denied, *lacking}):
        detail = (
            f"{operation.command_name} stands for {', '.join(missing)}, which your policies do not permit here; ask an "
            "administrator for that, or have somebody do it who may."
        )
        raise UnauthorizedError(detail, reason="grants_missing", facts={"missing": missing})
    parts = {name: frozenset(one.determining_policies if one.needs_approval else ()) for name, one in verdicts.items()}
    if any(parts.values()):
        asking = [ids for ids in parts.values() if ids]
        policy_ids = frozenset.intersection(*asking) or frozenset.union(*asking)
        own = operation.command_name
        name = own if own in parts else next(name for name, ids in parts.items() if ids)
        raise ApprovalRequiredError.for_command(name, tuple(sorted(policy_ids)), parts)
