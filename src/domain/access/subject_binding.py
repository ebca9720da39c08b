"""Which token subjects act as an actor, bound and unbound at run time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import (
    Actor,
    ActorProfile,
    ActorSubjectBound,
    ActorSubjectUnbound,
    InvalidActorSubjectError,
    SubjectBinding,
    actor,
)
from baton.domain.access.seeded_actors import SEEDED_ACTOR_IDS
from baton.domain.kernel import Call, Command, Outcome
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, enlisted, every, record_of
from baton.domain.shared.writes import Drop, Put
from baton.domain.trust.policy import LISTENERS, Policy

TokenText = Annotated[str, Field(min_length=1, max_length=500)]


@dataclass(frozen=True)
class BindingFacts:
    """What a binding is judged by: every policy where policies are enforced, and what is known of actor and subject."""

    policies: tuple[Policy, ...]
    profile_present: bool
    provider: Any


def held_commands(policies: Iterable[Policy], principal_id: UUID) -> frozenset[str]:
    """Every command that these policies permit a principal, on whatever conduit and surface, active or not."""
    listing = [policy for policy in policies if principal_id in policy.permitted_principal_ids]
    return frozenset().union(*(policy.permitted_commands for policy in listing))


class SubjectCommand(Command):
    """A command about one (issuer, subject) pair, matched exactly as the token spells it."""

    issuer: TokenText
    subject: TokenText

    def check_subject(self) -> None:
        if not (self.issuer.strip() and self.subject.strip()):
            raise InvalidActorSubjectError("Issuer and subject must not be blank; copy them from a token.", reason="blank")


@actor.command(post="/{actor_id}/subject-bindings/add")
class BindActorSubject(SubjectCommand):
    """Let tokens of this issuer and subject act as this actor, who may do no more than the caller."""

    def gather(self, actor: Actor, call: Call) -> Reads[BindingFacts]:
        deployment = yield from ask(Ports.deployment)
        policies = (yield from every(Policy, (yield from enlisted(LISTENERS)))) if deployment.policies_enforced else {}
        profile = yield from record_of(ActorProfile, actor_id=actor.id)
        provider = yield from ask(Ports.identity_provider, self.issuer, self.subject)
        return BindingFacts(tuple(policies.values()), profile is not None, provider)

    def decide(self, actor: Actor, call: Call, facts: BindingFacts) -> Outcome:
        provider = facts.provider
        if actor.id in SEEDED_ACTOR_IDS:
            raise self.cannot(
                "seeded", "This actor is the service's own and acts without a token; bind an actor that was registered."
            )
        if held_commands(facts.policies, actor.id) - held_commands(facts.policies, call.principal_id):
            raise self.cannot(
                "more_privileged",
                "This actor may do what you may not; ask somebody who may do all of it to bind the subject.",
            )
        if not facts.profile_present:
            raise self.cannot("profile_forgotten", "This actor's profile was forgotten; it takes no new binding.")
        self.check_subject()
        if not provider.known:
            raise InvalidActorSubjectError(
                "No identity provider with this issuer is configured; add it to IDENTITY_PROVIDERS first.",
                reason="unknown_issuer",
            )
        taken = self.cannot("already_bound", "This issuer and subject are bound already; unbind them first.")
        if provider.bound:
            raise taken
        binding = SubjectBinding(issuer=self.issuer, subject=self.subject, actor_id=actor.id, created_at=call.now)
        return [ActorSubjectBound(issuer=self.issuer), Put(binding, rival=taken)]


@actor.command(post="/{actor_id}/subject-bindings/remove", destructive=True)
class UnbindActorSubject(SubjectCommand):
    """Stop tokens of this issuer and subject from acting as this actor."""

    def gather(self, actor: Actor, call: Call) -> Reads[SubjectBinding | None]:
        return (yield from record_of(SubjectBinding, issuer=self.issuer, subject=self.subject, actor_id=actor.id))

    def decide(self, actor: Actor, call: Call, binding: SubjectBinding | None) -> Outcome:
        self.check_subject()
        if binding is None:
            raise self.cannot("not_bound", "This actor has no such binding; read its profile for the ones it has.")
        pair = {"issuer": self.issuer, "subject": self.subject}
        return [ActorSubjectUnbound(issuer=self.issuer), Drop(SubjectBinding, pair)]
