"""A proposal: a command that its caller holds only with approval, waiting for a second person. It is carried out as the
proposer once somebody approves whom the policy names and who holds the command. What was asked for is kept beside the stream
until the proposal is closed; after that only what the command itself would have recorded is kept."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol
from uuid import UUID

from pydantic import Field

from baton.domain.access.proposal_content import ProposalContent
from baton.domain.kernel import (
    Aggregate,
    Call,
    Command,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    State,
    TimeTravel,
    Value,
    copy_with,
)
from baton.domain.registry import REGISTRY, OpenedWork, Operation
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.dry_run import WouldRecord
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import AskPort, Reads, ask, find_all, members_of, permitted_commands, record_of
from baton.domain.shared.refusals import Conflict, Forbidden, Refusal
from baton.domain.shared.text import FreeText, StateReason
from baton.domain.shared.writes import Answer, Delist, Enlist, Put
from baton.domain.trust.authorization import own_access
from baton.domain.trust.policy import Policy
from baton.domain.trust.proposal_basis import (
    Difference,
    KeptBasis,
    ProposalBasis,
    ProposalChangedError,
    StreamVersion,
    without_texts,
)

PROPOSAL_WORK = "proposal"  # The kind of long work that a proposal is.
ShownDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
OPEN_PROPOSALS = "proposal-open"  # Look-up kind: every proposal that is not closed.
OPEN_BY_PROPOSER = "proposal-open-by"  # Look-up kind, by principal: what each has proposed and is not closed.
MOST_OPEN = 50  # Proposals of one principal that are not closed.


class ProposalStatus(StrEnum):
    OPEN = "Open"
    CARRIED_OUT = "CarriedOut"
    REFUSED = "Refused"
    REJECTED = "Rejected"
    WITHDRAWN = "Withdrawn"
    EXPIRED = "Expired"


OPEN, CARRIED_OUT, REFUSED, REJECTED, WITHDRAWN, EXPIRED = ProposalStatus


class ProposedPart(Value):
    """A command that a proposed one stands for, and the policies that permit it with approval; none where it is held at
    once."""

    command_name: str
    policy_ids: IdSet


@dataclass(frozen=True, kw_only=True)
class Proposal(State):
    """A proposal is a command that waits for the approval of a second person, and what became of it."""

    command_name: str
    target_id: UUID | None
    proposed_by: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    policy_ids: IdSet
    parts: tuple[ProposedPart, ...] = ()  # Of a command that stands for others.
    expires_at: datetime
    """Until when it may be approved."""
    status: ProposalStatus = OPEN
    approved_by: UUID | None = None  # Set while it is Open too: then it is being carried out.
    approved_at: datetime | None = None
    approved_under: IdSet = frozenset()  # Those of its policies that name the approver.
    digest: str | None = None  # Of what was approved, or else proposed; none in proposals from before it was kept.
    rests_on: tuple[StreamVersion, ...] = ()  # The streams that this rested on.
    differs: tuple[Difference, ...] = ()  # What had changed when it was to be carried out, until it is approved again.
    closed_at: datetime | None = None
    reason: FreeText | None = None  # Of its approval, rejection or withdrawal.
    code: str | None = None  # The class by which the command was refused.

    @property
    def operation(self) -> Operation | None:
        """The operation that is proposed; None where this release does not have it any more."""
        return next((one for one in REGISTRY if one.command_name == self.command_name), None)


proposal = Aggregate(Proposal, "/proposals", context="trust")


class ProposalOpened(Event, of=proposal, version=3, upcasters={1: dict, 2: dict}):
    """A command was proposed that its caller holds only with approval; since version 3 with those that it stands for."""

    command_name: str
    target_id: UUID | None
    proposed_by: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID
    policy_ids: IdSet
    expires_at: datetime
    digest: str | None = None
    rests_on: tuple[StreamVersion, ...] = ()
    parts: tuple[ProposedPart, ...] = ()


class ProposalApproved(Event, of=proposal, version=2, upcasters={1: dict}):
    """A second person approved what this digest is of, whom these policies name; it is carried out as the proposer."""

    approved_by: UUID
    policy_ids: IdSet
    reason: FreeText | None
    digest: str | None = None
    rests_on: tuple[StreamVersion, ...] = ()


class ProposalChanged(Event, of=proposal):
    """What was approved had changed before it was carried out: nothing was done, and it waits for approval again."""

    differs: tuple[Difference, ...]


class ProposalCarriedOut(Event, of=proposal):
    """The command was carried out; its own events tell what it did."""

    status: int


class ProposalRefused(Event, of=proposal):
    """The command was approved, and refused when it was given."""

    code: str
    cause: str | None
    detail: StateReason


class ProposalRejected(Event, of=proposal):
    """A second person did not approve."""

    rejected_by: UUID
    reason: StateReason


class ProposalWithdrawn(Event, of=proposal):
    """The proposer took the proposal back."""

    reason: StateReason


class ProposalExpired(Event, of=proposal):
    """Nobody approved in time."""


@proposal.evolve
def evolve(proposal: Proposal, event: Event) -> Proposal:
    closed = {"closed_at": event.occurred_at}
    match event:
        case ProposalApproved():
            own = {"approved_by": event.approved_by, "approved_under": event.policy_ids, "reason": event.reason}
            basis = {"digest": event.digest, "rests_on": event.rests_on, "differs": ()}
            return copy_with(proposal, approved_at=event.occurred_at, **own, **basis)
        case ProposalChanged():
            nobody = {"approved_by": None, "approved_at": None, "approved_under": frozenset[UUID](), "reason": None}
            return copy_with(proposal, differs=event.differs, **nobody)
        case ProposalCarriedOut():
            return copy_with(proposal, status=CARRIED_OUT, **closed)
        case ProposalRefused():
            return copy_with(proposal, status=REFUSED, code=event.code, **closed)
        case ProposalRejected():
            return copy_with(proposal, status=REJECTED, reason=event.reason, **closed)
        case ProposalWithdrawn():
            return copy_with(proposal, status=WITHDRAWN, reason=event.reason, **closed)
        case ProposalExpired():
            return copy_with(proposal, status=EXPIRED, **closed)
        case _:
            raise TypeError(f"{type(event).__name__} cannot follow on a proposal")


class OwnProposalError(Forbidden, context="trust", reason="own_proposal"):
    """Nobody approves or rejects what they proposed themselves."""


class NotAnApproverError(Forbidden, context="trust", reason="not_named"):
    """The policy that asks for the approval does not name the caller."""


class ApproverLacksCommandError(Forbidden, context="trust", reason="command_not_permitted"):
    """Only who holds a command without approval may approve it."""


class ProposalOfAnotherError(Forbidden, context="trust", reason="not_the_proposer"):
    """Only who proposed something takes it back."""


class ProposalNotCarriedOutError(Conflict, context="trust"):
    """The proposed command was not carried out."""


class ProposalRejectedError(ProposalNotCarriedOutError, context="trust", reason="rejected"):
    """A second person did not approve what was proposed."""


class ProposalWithdrawnError(ProposalNotCarriedOutError, context="trust", reason="withdrawn"):
    """What was proposed was taken back."""


class ProposalExpiredError(ProposalNotCarriedOutError, context="trust", reason="expired"):
    """Nobody approved what was proposed in time."""


class TooManyProposalsError(Refusal, status=429, context="trust"):
    """The caller has as many open proposals as one principal may."""


class Proposed(AnswerForm):
    """The answer to a command that its caller holds only with approval: nothing has happened yet.

    `get_work` tells under `work_id` how it ends, and then the new ids; `would` is what the command would record now.
    """

    proposal_id: UUID
    work_id: UUID
    expires_at: datetime
    """Until when it may be approved."""
    would: tuple[WouldRecord, ...]
    """The events that the command would record now."""


class OpeningFacts(NamedTuple):
    """What a new proposal is judged by: the policies that ask for the approval, and how much its proposer has open."""

    policies: Collection[Policy]
    open_count: int


@proposal.internal_command(creates=True, lock="proposal-opening", refuses=[TooManyProposalsError])
class OpenProposal(JudgedCreation[OpeningFacts]):
    """Record a command that was asked for by somebody who holds it only with approval."""

    command_name: str
    target_id: UUID | None
    request: dict[str, Any]
    would: list[dict[str, Any]]
    policy_ids: IdSet
    parts: tuple[ProposedPart, ...] = ()
    digest: str | None = None
    rests_on: tuple[StreamVersion, ...] = ()

    def gather(self, call: Call) -> Reads[OpeningFacts]:
        policies = yield from find_all(Policy, self.policy_ids)
        return OpeningFacts(policies.values(), len((yield from members_of(OPEN_BY_PROPOSER, call.principal_id))))

    def decide(self, call: Call, facts: OpeningFacts) -> Outcome:
        if facts.open_count >= MOST_OPEN:
            detail = f"You have {MOST_OPEN} proposals that nobody has decided about; withdraw some, or wait."
            raise TooManyProposalsError(detail)
        seconds = min(policy.approval.expires_after for policy in facts.policies if policy.approval is not None)
        expires_at = call.now + timedelta(seconds=seconds)
        opened = ProposalOpened(
            command_name=self.command_name,
            target_id=self.target_id,
            proposed_by=call.principal_id,
            surface_id=call.surface_id,
            conduit_id=call.conduit_id,
            correlation_id=call.correlation_id,
            policy_ids=self.policy_ids,
            expires_at=expires_at,
            digest=self.digest,
            rests_on=self.rests_on,
            parts=self.parts,
        )
        told = {"proposal_id": str(call.new_id), "work_id": str(call.new_id), "expires_at": expires_at.isoformat()}
        groups = sorted(call.proven_group_ids)
        content = ProposalContent(call.new_id, self.target_id, self.request, self.would, proven_group_ids=groups)
        listed = [Enlist(OPEN_PROPOSALS, ""), Enlist(OPEN_BY_PROPOSER, str(call.principal_id))]
        return [opened, *listed, Put(content), Answer(told, status=202)]


@dataclass(frozen=True)
class ApproverFacts:
    """What somebody who is to approve or reject is judged by."""

    policies: tuple[Policy, ...]
    group_ids: frozenset[UUID]
    holds_command: bool  # And everything that it stands for.

    def policies_naming(self, principal_id: UUID) -> IdSet:
        """Return those of the proposal's policies that name them as approver."""
        asking = [(policy.id, policy.approval) for policy in self.policies if policy.approval is not None]
        return frozenset(id for id, one in asking if principal_id in one.principals or self.group_ids & one.groups)


def approver_facts(proposal: Proposal) -> Reads[ApproverFacts]:
    """Load what the caller is judged by as an approver of this proposal."""
    policies = yield from find_all(Policy, proposal.policy_ids)
    access, permitted = (yield from own_access()), (yield from permitted_commands())
    return ApproverFacts(tuple(policies.values()), access.group_ids, holds_all(proposal, permitted))


def holds_all(proposal: Proposal, permitted: frozenset[str]) -> bool:
    """Return whether the command that is proposed, and everything that it stands for, is among these."""
    return permitted >= {proposal.command_name, *(part.command_name for part in proposal.parts)}


def approver_objection(proposal: Proposal, principal_id: UUID, facts: ApproverFacts) -> Refusal | None:
    """Return why somebody may not approve or reject a proposal, or None."""
    if principal_id == proposal.proposed_by:
        return OwnProposalError("You proposed this yourself; have somebody else decide, or withdraw it.")
    naming = facts.policies_naming(principal_id)
    if not naming or any(part.policy_ids and not part.policy_ids & naming for part in proposal.parts):
        return NotAnApproverError("The policy names others to approve this; get_proposal says whom.")
    return None


def awaits_approval(proposal: Proposal, now: datetime) -> bool:
    """Return whether a proposal can still be approved."""
    return proposal.status is OPEN and proposal.approved_by is None and now < proposal.expires_at


def approvable_proposals(proposals: Iterable[Proposal], call: Call) -> Reads[list[Proposal]]:
    """Return those of these proposals that the caller may approve now."""
    open_now = [one for one in proposals if awaits_approval(one, call.now)]
    if not open_now:
        return []
    policies = yield from find_all(Policy, frozenset().union(*(one.policy_ids for one in open_now)))
    group_ids, permitted = (yield from own_access()).group_ids, (yield from permitted_commands())

    def may_approve(one: Proposal) -> bool:
        named = tuple(policies[id] for id in one.policy_ids if id in policies)
        facts = ApproverFacts(named, group_ids, holds_all(one, permitted))
        return facts.holds_command and approver_objection(one, call.principal_id, facts) is None

    return [one for one in open_now if may_approve(one)]


class ClosingCommand(Command):
    """A command that a proposal which is being carried out refuses."""

    def require(self, proposal: Proposal) -> None:
        if proposal.approved_by is not None:
            raise self.cannot(
                "approved", "The proposal was approved and is being carried out; get_proposal tells how it goes."
            )

    def refuse_late(self, proposal: Proposal, now: datetime) -> None:
        """Refuse where the time to approve is over, whether that is on record already or not."""
        if now >= proposal.expires_at:
            raise self.cannot("expired", "The time to approve is over; have the command proposed again.")


@dataclass(frozen=True)
class ApprovalFacts:
    """What an approval is judged by: who gives it, what is kept of the proposal, and what it would do now."""

    approver: ApproverFacts
    content: ProposalContent | None
    basis: ProposalBasis | None  # None where the approval is refused for another reason.


class ProposalOutcome(AnswerForm):
    """What came of an approval: the command's answer, or the refusal it got."""

    proposal_id: UUID
    status: ProposalStatus
    answer: dict[str, Any] | None
    """What the command answered; null where it was refused."""
    refusal: dict[str, Any] | None
    """How the command was refused; null where it was not."""


class ProposalAccepted(AnswerForm):
    """An approval that is on record, whose command is still being carried out."""

    proposal_id: UUID
    work_id: UUID


@proposal.command(
    post="/{proposal_id}/approve",
    allowed=[OPEN],
    status=200,
    returns=ProposalOutcome,
    accepted=ProposalAccepted,
    work=OpenedWork(PROPOSAL_WORK, answer="outcome"),
    refuses=[ProposalChangedError],
)
class ApproveProposal(ClosingCommand, JudgedVerb[Proposal, ApprovalFacts]):
    """Let a proposed command be carried out at once, as its proposer; the outcome is on the proposal.

    It takes somebody whom the policy names, who holds the command without approval and did not propose it. The digest says
    what was looked at: where the command would do something else by now, nothing is approved.
    """

    digest: ShownDigest
    """The `digest` of the proposal as you looked at it, which get_proposal shows."""
    reason: Annotated[str, proposal.text("approval_reason", 500, label="reason", personal=True)] | None = None
    """Why it is approved; it stays on the record."""
    wait: Annotated[int, Field(ge=0, le=60, description="Seconds to wait for the outcome.")] = 30

    def gather(self, proposal: Proposal, call: Call) -> Reads[ApprovalFacts]:
        approver, content = (yield from approver_facts(proposal)), (yield from content_of(proposal))
        is_possible = proposal.status is OPEN and proposal.approved_by is None and call.now < proposal.expires_at
        if not is_possible or not approver.holds_command or approver_objection(proposal, call.principal_id, approver):
            return ApprovalFacts(approver, content, None)
        return ApprovalFacts(approver, content, (yield from ask(ProposalPort.examine_proposal, proposal)))

    def decide(self, proposal: Proposal, call: Call, facts: ApprovalFacts) -> Outcome:
        if (objection := approver_objection(proposal, call.principal_id, facts.approver)) is not None:
            raise objection
        if not facts.approver.holds_command:
            detail = f"You do not hold {proposal.command_name} without approval yourself; have somebody approve who does."
            raise ApproverLacksCommandError(detail)
        self.refuse_late(proposal, call.now)
        content, basis = facts.content, facts.basis
        assert basis is not None, "what may be approved was looked at"
        kept_basis(proposal, content).refuse_changed(basis, self.digest)
        ids = ProposalAccepted(proposal_id=proposal.id, work_id=proposal.id)
        approved = ProposalApproved(
            approved_by=call.principal_id,
            policy_ids=facts.approver.policies_naming(call.principal_id),
            reason=self.reason,
            digest=basis.digest,
            rests_on=basis.rests_on,
        )
        would = [event.model_dump(mode="json") for event in basis.would]
        kept = [] if content is None else [Put(replace(content, would=would))]
        return [approved, *kept, Answer(ids.model_dump(mode="json"))]


@proposal.command(post="/{proposal_id}/reject", allowed=[OPEN], leads_to=REJECTED)
class RejectProposal(ClosingCommand, JudgedVerb[Proposal, tuple[ApproverFacts, "ProposalContent | None"]]):
    """Do not approve a proposed command; it takes somebody whom the policy names as approver."""

    reason: Annotated[str, proposal.text("rejection_reason", 500, label="reason", personal=True)]

    def gather(self, proposal: Proposal, call: Call) -> Reads[tuple[ApproverFacts, ProposalContent | None]]:
        return (yield from approver_facts(proposal)), (yield from content_of(proposal))

    def decide(self, proposal: Proposal, call: Call, facts: tuple[ApproverFacts, ProposalContent | None]) -> Outcome:
        approver, content = facts
        if (objection := approver_objection(proposal, call.principal_id, approver)) is not None:
            raise objection
        self.refuse_late(proposal, call.now)
        return [ProposalRejected(rejected_by=call.principal_id, reason=self.reason), *close_content(proposal, content)]


@proposal.command(post="/{proposal_id}/withdraw", allowed=[OPEN], leads_to=WITHDRAWN, open=True)
class WithdrawProposal(ClosingCommand, JudgedVerb[Proposal, "ProposalContent | None"]):
    """Take back what you proposed; that takes no permission."""

    reason: Annotated[str, proposal.text("withdrawal_reason", 500, label="reason", personal=True)]

    def gather(self, proposal: Proposal, call: Call) -> Reads[ProposalContent | None]:
        return (yield from content_of(proposal))

    def decide(self, proposal: Proposal, call: Call, content: ProposalContent | None) -> Outcome:
        if call.principal_id != proposal.proposed_by:
            raise ProposalOfAnotherError(
                "Somebody else proposed this; an approver rejects it, and only the proposer withdraws it."
            )
        self.refuse_late(proposal, call.now)
        return [ProposalWithdrawn(reason=self.reason), *close_content(proposal, content)]


def content_of(proposal: Proposal) -> Reads[ProposalContent | None]:
    """Return what is kept of a proposal beside its stream."""
    return (yield from record_of(ProposalContent, proposal_id=proposal.id))


def kept_basis(proposal: Proposal, content: ProposalContent | None) -> KeptBasis:
    """Return what a proposed command would have done when it was approved, or else proposed."""
    return KeptBasis(proposal.digest, shown_events(content, texts=True), proposal.rests_on)


def close_content(proposal: Proposal, content: ProposalContent | None, **outcome: Any) -> Outcome:
    """Return what closes a proposal beside its stream: its outcome is kept, and nothing of its request and its groups."""
    kept = [] if content is None else [Put(replace(content, request=None, proven_group_ids=[], **outcome))]
    return [Delist(OPEN_PROPOSALS, ""), Delist(OPEN_BY_PROPOSER, str(proposal.proposed_by)), *kept]


@proposal.internal_command()
class ExpireProposal(JudgedVerb[Proposal, "ProposalContent | None"]):
    """Record that nobody approved in time; one that was approved, or is closed, stays as it is."""

    def gather(self, proposal: Proposal, call: Call) -> Reads[ProposalContent | None]:
        return (yield from content_of(proposal))

    def decide(self, proposal: Proposal, call: Call, content: ProposalContent | None) -> Outcome:
        is_due = proposal.status is OPEN and proposal.approved_by is None and call.now >= proposal.expires_at
        return [ProposalExpired(), *close_content(proposal, content)] if is_due else []


@proposal.internal_command()
class RecordProposalOutcome(JudgedVerb[Proposal, "ProposalContent | None"]):
    """Record what came of an approved command, once; one that had changed meanwhile waits for approval again."""

    status: int | None = None
    answer: dict[str, Any] | None = None
    refusal: dict[str, Any] | None = None
    differs: tuple[Difference, ...] | None = None

    def gather(self, proposal: Proposal, call: Call) -> Reads[ProposalContent | None]:
        return (yield from content_of(proposal))

    def decide(self, proposal: Proposal, call: Call, content: ProposalContent | None) -> Outcome:
        if proposal.status is not OPEN or proposal.approved_by is None:
            return []
        if self.differs is not None:
            return [ProposalChanged(differs=self.differs)]
        if self.refusal is not None:
            known = {"code": self.refusal["code"], "cause": self.refusal["reason"], "detail": self.refusal["detail"]}
            return [ProposalRefused(**known), *close_content(proposal, content, refusal=self.refusal)]
        assert self.status is not None, "what was not refused was answered"
        return [ProposalCarriedOut(status=self.status), *close_content(proposal, content, answer=self.answer)]


class Rehearsal(AnswerForm):
    """What the proposed command would do if it was carried out now: what it would record, or how it would be refused."""

    would: tuple[WouldRecord, ...] | None
    """The events that the command would record now; null where it would be refused."""
    refusal: dict[str, Any] | None
    """How the command would be refused now; null where it would not."""


class FarthestMove(AnswerForm):
    """The signal that is moved farthest."""

    address: str
    distance: float
    """The sum of all moves, in the unit of the signal."""
    unit: str | None


class Foresight(AnswerForm):
    """What a rehearsal says of the conduct that the proposed command would open; nothing moved."""

    verdict: str
    """Whether it goes through, and if not, whether it stops: goes_through, may_stop_at or stops_at."""
    message: str
    """What would stop it first, in a sentence."""
    seconds: float | None
    """Number of seconds that it takes; null where that is not known."""
    farthest: FarthestMove | None
    """The signal that is moved farthest; null where none is."""


class ProposalView(AnswerForm):
    """A proposal: the command, who may approve it, and how it ended.

    `would` is what the command would have recorded when it was approved, or else proposed, and `rehearsal` what it would do
    now; `digest` is of the latter, and what approve_proposal takes. These three, `differs`, `answer` and `refusal` are shown
    to its proposer, to who may approve, and to readers of free texts; `request` is shown to its proposer and to who may
    approve, while it is open.
    """

    id: UUID
    proposal_id: UUID
    created_at: datetime
    command_name: str
    target_id: UUID | None
    request: dict[str, Any] | None
    """The fields of the command, for its proposer and its approvers while it is open."""
    would: tuple[WouldRecord, ...]
    """The events that the command would have recorded when it was approved, or else proposed."""
    rehearsal: Rehearsal | None
    """What the command would do now; null once nobody has to approve any more."""
    foresight: Foresight | None
    """What its conduct would come to now; null where it opens none, or nobody could rehearse it just now."""
    digest: str | None
    """The digest of what it would do now, for approve_proposal; null where that is not shown."""
    differs: tuple[Difference, ...]
    """What had changed when it was to be carried out after an approval; empty while nothing had."""
    proposed_by: UUID
    surface_id: UUID
    policy_ids: IdSet
    """The policies that permit the command with approval."""
    approver_ids: IdSet
    """The actors who may approve by their own name."""
    approver_group_ids: IdSet
    """The groups whose members may approve."""
    may_approve: bool
    """Whether the caller may approve it now."""
    may_reject: bool
    """Whether the caller may reject it now; that takes no permission for the command itself."""
    why_not: str | None
    """Why the caller may not approve it; null for an approver."""
    expires_at: datetime
    """Until when it may be approved."""
    status: ProposalStatus
    approved_by: UUID | None
    reason: FreeText | None
    """Why it was approved, rejected or withdrawn."""
    answer: dict[str, Any] | None
    """What the command answered; null where it was not carried out."""
    refusal: dict[str, Any] | None
    """How the command was refused; null where it was not."""
    closed_at: datetime | None


class ProposalPort(Protocol):
    """Says what the commands of proposals would do now."""

    async def rehearse_proposal(self, proposal: Proposal, view: ProposalView, texts: bool) -> ProposalView:
        """Return the view of a proposal with what its command would do now, if it was carried out as its proposer."""

    async def examine_proposal(self, proposal: Proposal) -> ProposalBasis:
        """Return what a proposed command would do now, if it was carried out as its proposer, and what that rests on."""


@proposal.query(get="/{proposal_id}", returns=ProposalView)
class GetProposal(TimeTravel[ProposalView]):
    """One proposal: the command, what it would do now, who may approve it, and whether you may."""

    personal: ClassVar[bool] = True

    def answer(self, proposal: Proposal, call: Call) -> Reads[Any]:
        content = yield from content_of(proposal)
        facts = yield from approver_facts(proposal)
        objection = approver_objection(proposal, call.principal_id, facts)
        may_reject = objection is None
        if objection is None and not facts.holds_command:
            objection = ApproverLacksCommandError(f"You do not hold {proposal.command_name} without approval yourself.")
        approvals = [policy.approval for policy in facts.policies if policy.approval is not None]
        is_party = call.principal_id == proposal.proposed_by or bool(facts.policies_naming(call.principal_id))
        texts = "ReadEventTexts" in (yield from permitted_commands())
        is_open = proposal.status is OPEN and not self.travels
        is_shown = texts or is_party
        shown = content if is_shown else None
        view = ProposalView(
            id=proposal.id,
            proposal_id=proposal.id,
            created_at=proposal.created_at,
            command_name=proposal.command_name,
            target_id=proposal.target_id,
            request=content.request if content is not None and is_open and is_party else None,
            would=shown_events(shown, texts),
            rehearsal=None,
            foresight=None,
            digest=None,
            differs=proposal.differs if is_shown else (),
            proposed_by=proposal.proposed_by,
            surface_id=proposal.surface_id,
            policy_ids=proposal.policy_ids,
            approver_ids=frozenset().union(*(one.principals for one in approvals)),
            approver_group_ids=frozenset().union(*(one.groups for one in approvals)),
            may_approve=objection is None and is_open and proposal.approved_by is None,
            may_reject=may_reject and is_open and proposal.approved_by is None,
            why_not=None if objection is None else objection.detail,
            expires_at=proposal.expires_at,
            status=proposal.status,
            approved_by=proposal.approved_by,
            reason=proposal.reason if texts or is_party else None,
            answer=shown.answer if shown is not None and proposal.status is CARRIED_OUT else None,
            refusal=shown.refusal if shown is not None and proposal.status is REFUSED else None,
            closed_at=proposal.closed_at,
        )
        if not is_open or proposal.approved_by is not None or not is_shown:
            return view
        return AskPort(ProposalPort.rehearse_proposal, (proposal, view, texts))


def shown_events(content: ProposalContent | None, texts: bool) -> tuple[WouldRecord, ...]:
    """Return what a proposed command would have recorded; free texts are null where they may not be read."""
    events = () if content is None else tuple(map(WouldRecord.model_validate, content.would))
    return events if texts else tuple(without_texts(event) for event in events)


class ProposalSummary(Summary):
    proposal_id: UUID
    command_name: str
    target_id: UUID | None
    proposed_by: UUID
    status: ProposalStatus
    approved_by: UUID | None
    expires_at: datetime
    closed_at: datetime | None
    created_at: datetime


@proposal.listing(ProposalSummary)
class ListProposals(ListQuery[ProposalSummary]):
    """Proposals in the order they were made."""

    status: ProposalStatus | None = None
    command_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Only proposals of this command, such as StartRun."""
    proposed_by: UUID | None = None
    """Only proposals of this actor."""
