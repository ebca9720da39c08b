"""Who calls: the envelope that every command and query comes in."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from baton.domain.access.group import TokenClaims
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Call
from baton.domain.trust.proposal_basis import KeptBasis


@dataclass(frozen=True)
class GivenApproval:
    """An approval of one command and of those that it stands for: who gave it, under which policies, which named that
    person, and what was approved; None where that was given before it was kept."""

    approved_by: UUID
    command_name: str
    policy_ids: frozenset[UUID]
    basis: KeptBasis | None = field(default=None, repr=False, compare=False)
    parts: frozenset[str] = frozenset()

    def policies_for(self, command_name: str) -> frozenset[UUID]:
        """Return the policies under which a command was approved: none for another one."""
        return self.policy_ids if command_name in {self.command_name, *self.parts} else frozenset()

    def basis_for(self, command_name: str) -> KeptBasis | None:
        """Return what a command must still come to; None for another one."""
        return self.basis if command_name == self.command_name else None


class Lease(NamedTuple):
    """The right to do for all processes what one does at a time; the next one who takes over begins another term."""

    lock: int
    term: int


@dataclass(frozen=True)
class Caller:
    """Who is calling, through which surface, as part of which work: the envelope of every command and query."""

    principal_id: UUID
    surface_id: UUID
    correlation_id: UUID
    causation_id: UUID | None = None
    conduit_id: UUID = SYSTEM_CONDUIT
    expires_at: datetime | None = None
    completing: bool = False  # an agent completes what it held the lease for; no transport can say so
    claims: TokenClaims | None = field(default=None, repr=False, compare=False)  # what its token says, for this call alone
    proven_group_ids: frozenset[UUID] = frozenset()  # the groups that its token told when it began what is gone on with
    approval: GivenApproval | None = None  # of the proposal that is carried out; no transport can say so
    lease: Lease | None = None  # under which the service acts for all its processes

    @classmethod
    def system(cls, correlation_id: UUID) -> "Caller":
        """Return the service itself as a caller, which only in-process code can form."""
        return cls(principal_id=NIL, surface_id=NIL, correlation_id=correlation_id)

    @classmethod
    def of(cls, call: Call) -> "Caller":
        """Return the caller that made a call; an approval is of that call alone."""
        ids = (call.principal_id, call.surface_id, call.correlation_id, call.causation_id, call.conduit_id)
        return cls(*ids, claims=call.claims, proven_group_ids=call.proven_group_ids)

    def call(self, now: datetime, new_id: UUID) -> Call:
        """Return one call of this caller, as decisions and answers see it."""
        ids = (self.principal_id, self.surface_id, now, new_id, self.correlation_id)
        return Call(
            *ids,
            conduit_id=self.conduit_id,
            causation_id=self.causation_id,
            claims=self.claims,
            proven_group_ids=self.proven_group_ids,
            approved_by=None if self.approval is None else self.approval.approved_by,
        )
