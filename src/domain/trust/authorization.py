"""The authorization rule: whether a principal may call a command on a conduit and surface, and which policies say so."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.kernel import NIL
from baton.domain.registry import REGISTRY, Operation
from baton.domain.trust.conduit import AccessDecision
from baton.domain.trust.surface import SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP

if TYPE_CHECKING:
    from baton.domain.trust.policy import Policy


COMPLETING = frozenset({"RecordAgentDecision", "AppendInferences", "AppendRunLogbookEntries"})
"""The commands by which an agent that was suspended meanwhile may complete the work of a lease it holds."""


@dataclass(frozen=True)
class AuthzResult:
    """A verdict; on Deny no policy determined it, since nothing permits by default."""

    decision: AccessDecision
    reason: str | None = None
    determining_policies: tuple[UUID, ...] = ()

    @property
    def allowed(self) -> bool:
        return self.decision is AccessDecision.ALLOW


@dataclass(frozen=True)
class Standing:
    """What is known of a principal: its actor, if it has one, and the state of its agent."""

    actor: Actor | None
    agent_versioned: bool = True
    agent_suspended: bool = False

    @property
    def objection(self) -> str | None:
        """Why the principal may not act at all, if so."""
        if self.actor is None:
            return None
        if not self.actor.active:
            return "principal_deactivated"
        return None if self.agent_versioned else "agent_not_versioned"

    def objection_to(self, command_name: str, completing: bool) -> str | None:
        """Return why the principal may not call a command; a suspended agent may complete what it began."""
        lenient = completing and self.agent_suspended and command_name in COMPLETING
        objection = self.objection
        return None if lenient and objection == "agent_not_versioned" else objection


def deny(reason: str) -> AuthzResult:
    """Return the denial for this reason."""
    return AuthzResult(AccessDecision.DENY, reason)


def judge(
    standing: Standing,
    policies: "Iterable[Policy]",
    principal_id: UUID,
    command_name: str,
    conduit_id: UUID,
    surface_id: UUID,
    *,
    completing: bool = False,
) -> AuthzResult:
    """Allow when a policy of exactly this conduit and surface lists the principal and the command."""
    if objection := standing.objection_to(command_name, completing):
        return deny(objection)
    applicable = [policy for policy in policies if policy.conduit_id == conduit_id and policy.surface_id == surface_id]
    if not applicable:
        return deny("no_applicable_policy")
    listing = [policy for policy in applicable if principal_id in policy.permitted_principal_ids]
    if not listing:
        return deny("principal_not_permitted")
    permitting = [policy.id for policy in listing if policy.permits(command_name)]
    if not permitting:
        return deny("command_not_permitted")
    return AuthzResult(AccessDecision.ALLOW, determining_policies=tuple(sorted(permitting)))


def permitted_commands(
    standing: Standing, policies: "Iterable[Policy]", principal_id: UUID, conduit_id: UUID, surface_id: UUID
) -> frozenset[str]:
    """Return every command the principal could call here: the union over the policies that would allow."""
    if standing.objection:
        return frozenset()
    return frozenset(
        command_name
        for policy in policies
        if policy.conduit_id == conduit_id
        and policy.surface_id == surface_id
        and principal_id in policy.permitted_principal_ids
        for command_name in policy.permitted_commands
    )


def reachable_commands(permitted: frozenset[str], kind: ActorKind | None, surface_id: UUID) -> frozenset[str]:
    """Return those of the permitted names that a call by this kind of actor on this surface can reach.

    Left out are operations for other kinds of actor, those that this surface does not have, and inner commands.
    """
    if surface_id == NIL:
        return permitted
    reached = {operation.command_name for operation in REGISTRY if is_reachable(operation, kind, surface_id)}
    return permitted & (reached | (REGISTRY.permissions - REGISTRY.inner))


def is_reachable(operation: Operation, kind: ActorKind | None, surface_id: UUID) -> bool:
    """Return whether a call by this kind of actor on this surface can reach an operation, whatever policies permit."""
    if operation.callers and kind not in operation.callers:
        return False
    return operation.mcp or surface_id not in (SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP)
