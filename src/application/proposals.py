"""Proposals: how a command that was approved is carried out, once, as its proposer; how one that nobody approves expires;
and what its proposer and its approver are answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from pydantic import ValidationError

from baton.application.caller import Caller, GivenApproval
from baton.application.commands import READ_EVENT_TEXTS, Commands, execute_with_retry
from baton.application.long_work import AwaitedWork, LookUpWork, carries_out
from baton.application.ports import Job, WorkItem, WorkProgress
from baton.application.service import Service
from baton.application.unit_of_work import load_row, load_state, require_state
from baton.domain.access.proposal_content import ProposalContent
from baton.domain.kernel import Command
from baton.domain.shared.refusals import (
    ConcurrencyError,
    IdempotencyClaimLostError,
    IdempotencyConflictError,
    Refusal,
    UnauthorizedError,
    Unavailable,
    kept_form,
    kept_refusal,
)
from baton.domain.trust import proposal as rules
from baton.domain.trust.authorization import ApprovalRequiredError
from baton.domain.trust.proposal import FarthestMove, Foresight, Proposal, ProposalStatus, ProposalView, Rehearsal
from baton.domain.trust.proposal_basis import ProposalBasis, ProposalChangedError, without_texts
from baton.domain.trust.settlement import SettlementAction, next_action
from baton.domain.views.conduct_rehearsal import RehearsalView, rehearsal_of

NOT_KEYED_OUTSIDE = "\t"  # no surface takes a key with it: what is carried out cannot be forestalled under its key
EVERYWHERE = (UnauthorizedError, ApprovalRequiredError, ConcurrencyError, IdempotencyConflictError)


@dataclass
class Proposals(LookUpWork, AwaitedWork):
    """Proposals: each is unfinished until it is settled, and everything that settles it may be repeated. Its proposer waits
    for the answer of the command, its approver for the outcome."""

    workflow = rules.PROPOSAL_WORK
    reaction = "proposals"
    wakes_on = (rules.ProposalOpened, rules.ProposalApproved, rules.ProposalRejected, rules.ProposalWithdrawn)
    listens = True
    unfinished = rules.OPEN_PROPOSALS
    commands: Commands
    service: Service

    async def job(self, work_id: UUID) -> Job:
        return Job(self.workflow, f"{self.workflow}:{work_id}", str(work_id), {}, f"Proposal {work_id}")

    async def item(self, work_id: UUID) -> WorkItem | None:
        if (proposal := await load_state(self.commands.store, Proposal, work_id)) is None:
            return None
        ids = {"proposal_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(proposal.proposed_by, READ_EVENT_TEXTS, ids, proposal.correlation_id)  # get_proposal tells others

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        proposal = await require_state(self.commands.store, Proposal, work_id)
        if proposal.approved_by is not None:
            return WorkProgress(1, 2, "approved, and being carried out")
        return WorkProgress(0, 2, f"waits for approval until {proposal.expires_at:%Y-%m-%d %H:%M:%S}Z")

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return the answer of the command, or raise why it was not carried out."""
        proposal = await require_state(self.commands.store, Proposal, work_id)
        content = await load_row(self.commands.store, ProposalContent, proposal_id=work_id)
        match proposal.status:
            case ProposalStatus.OPEN:
                return None
            case ProposalStatus.CARRIED_OUT:
                return (content and content.answer) or {}
            case ProposalStatus.REFUSED:
                raise refusal_kept(proposal, content)
            case ProposalStatus.REJECTED:
                raise rules.ProposalRejectedError(f"This was not approved: {proposal.reason}")
            case ProposalStatus.WITHDRAWN:
                raise rules.ProposalWithdrawnError("This was withdrawn before anybody approved it.")
            case ProposalStatus.EXPIRED:
                raise rules.ProposalExpiredError("Nobody approved this in time; call it again to propose it again.")

    async def outcome(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return what came of the command, be that its answer or its refusal."""
        proposal = await require_state(self.commands.store, Proposal, work_id)
        if proposal.status is rules.OPEN:
            if proposal.approved_by is None:
                raise ProposalChangedError.of(proposal.differs, "it was approved")
            return None
        content = await load_row(self.commands.store, ProposalContent, proposal_id=work_id)
        came = {} if content is None else {"answer": content.answer, "refusal": content.refusal}
        none = {"answer": None, "refusal": None}
        return {"proposal_id": str(work_id), "status": proposal.status.value, **none, **came}

    @carries_out("settle_proposal")
    async def settle(self, proposal_id: UUID) -> float | None:
        """Carry out what was approved, or expire what nobody approved in time; return in how many seconds to look again, or
        None where the proposal is closed."""
        proposal = await load_state(self.commands.store, Proposal, proposal_id)
        settlement = next_action(proposal, self.commands.clock())
        if proposal is not None and settlement.action is SettlementAction.CARRY_OUT:
            await self._carry_out(proposal)
            return await self.settle(proposal_id)
        if proposal is not None and settlement.action is SettlementAction.EXPIRE:
            await self._record(rules.ExpireProposal(), proposal)
        return settlement.seconds or None

    async def _carry_out(self, proposal: Proposal) -> None:
        """Give the command as its proposer, under a key of the proposal, and record its outcome. What lost a race, or is
        being given by another attempt, is given again; what is not any more what was approved waits for approval again."""
        try:
            command, caller = await self._load(proposal)
            if "wait" in type(command).model_fields:
                command = command.model_copy(update={"wait": 0})
            key = f"{rules.PROPOSAL_WORK}{NOT_KEYED_OUTSIDE}{proposal.id}"
            result = await self.service.execute(command, caller, target_id=proposal.target_id, key=key)
            outcome = rules.RecordProposalOutcome(status=result.status, answer=dict(result.body) if result.body else None)
        except (Unavailable, ConcurrencyError, IdempotencyClaimLostError):
            raise
        except ProposalChangedError as changed:
            outcome = rules.RecordProposalOutcome(differs=(changed.facts or {})["differs"])
        except Refusal as refusal:
            outcome = rules.RecordProposalOutcome(refusal=kept_form(refusal))
        await self._record(outcome, proposal)

    async def examine_proposal(self, proposal: Proposal) -> ProposalBasis:
        """Return what a proposed command would do now, and what that rests on."""
        try:
            command, caller = await self._load(proposal)
            return await self.commands.examine(command, caller, proposal.target_id)
        except Unavailable:
            raise
        except Refusal as refusal:
            return ProposalBasis(proposal.command_name, proposal.target_id, refusal=kept_form(refusal))

    async def rehearse_proposal(self, proposal: Proposal, view: ProposalView, texts: bool) -> ProposalView:
        """Return the view of a proposal with what its command would do now."""
        basis = await self.examine_proposal(proposal)
        shown = basis.would if texts else tuple(map(without_texts, basis.would))
        rehearsal = Rehearsal(would=None if basis.refusal is not None else shown, refusal=basis.refusal)
        foresight = None if basis.refusal is not None else await self._foresee(proposal)
        return view.model_copy(update={"rehearsal": rehearsal, "foresight": foresight, "digest": basis.digest})

    async def _foresee(self, proposal: Proposal) -> Foresight | None:
        """Return what the conduct would come to that a proposed command opens; None where it opens none."""
        try:
            command, caller = await self._load(proposal)
            if (asked := rehearsal_of(command, proposal.target_id)) is None:
                return None
            return foresight_of((await self.service.queries.answer(asked, caller)).answer)
        except Refusal:  # It is shown as that of the command, or other rehearsals took too long.
            return None

    async def _load(self, proposal: Proposal) -> tuple[Command, Caller]:
        """Return the proposed command as its surface read it, and the caller that it is carried out for."""
        content = await load_row(self.commands.store, ProposalContent, proposal_id=proposal.id)
        detail = f"This release cannot give {proposal.command_name} as it was proposed; have it proposed again."
        unknown = rules.ProposalNotCarriedOutError(detail, reason="not_known_any_more")
        if proposal.operation is None or content is None or content.request is None:
            raise unknown
        try:
            command: Any = proposal.operation.input.model_validate_json(orjson.dumps(content.request))
        except ValidationError:  # its text would quote the request
            raise unknown from None
        return command, proposer(proposal, content)

    async def _record(self, command: Command, proposal: Proposal) -> None:
        await execute_with_retry(self.commands, command, Caller.system(proposal.correlation_id), target_id=proposal.id)


def foresight_of(found: RehearsalView) -> Foresight:
    """Return what a rehearsal says in short."""
    ends = [one.ends_at for one in found.phases]
    seconds = (ends[-1] - found.phases[0].begins_at).total_seconds() if ends and ends[-1] is not None else None
    farthest = max(found.travel, key=lambda one: one.distance, default=None)
    return Foresight(
        verdict=str(found.verdict),
        message=found.message,
        seconds=seconds,
        farthest=None
        if farthest is None
        else FarthestMove(address=farthest.address, distance=farthest.distance, unit=farthest.unit),
    )


def proposer(proposal: Proposal, content: ProposalContent) -> Caller:
    """Return who proposed something, as whom it is carried out; where it was approved, with that approval."""
    approved_by, approval = proposal.approved_by, None
    if approved_by is not None:
        basis = None if proposal.digest is None else rules.kept_basis(proposal, content)
        parts = frozenset(part.command_name for part in proposal.parts)
        approval = GivenApproval(approved_by, proposal.command_name, proposal.approved_under, basis, parts)
    return Caller(
        proposal.proposed_by,
        proposal.surface_id,
        proposal.correlation_id,
        causation_id=proposal.id,
        conduit_id=proposal.conduit_id,
        proven_group_ids=frozenset(content.proven_group_ids),
        approval=approval,
    )


def refusal_kept(proposal: Proposal, content: ProposalContent | None) -> Refusal:
    """Return the refusal that an approved command got."""
    kept = None if content is None else content.refusal
    if kept is None:
        return rules.ProposalNotCarriedOutError("This was approved, and refused when it was given.", reason=proposal.code)
    known = (*(proposal.operation.refusals if proposal.operation is not None else ()), *EVERYWHERE)
    if kept["code"] not in {kind.__name__ for kind in known}:
        return rules.ProposalNotCarriedOutError(kept["detail"], reason=kept["reason"], facts={"code": kept["code"]})
    return kept_refusal(kept, known)
