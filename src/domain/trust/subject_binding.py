"""Which token subjects act as an actor, bound and unbound at run time."""

from collections.abc import Collection
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import SEEDED_ACTOR_IDS, Actor, ActorProfile, SubjectBinding, actor
from baton.domain.access.identity_provider import IdentityPort, ProviderFacts
from baton.domain.kernel import Call, Command, Event, JudgedVerb, Outcome
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, all_members_of, ask, find_all, record_of
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.writes import Drop, Put
from baton.domain.trust.authorization import exceeds, listed_groups, own_access
from baton.domain.trust.policy import POLICIES_BY_SURFACE, Policy

TokenText = Annotated[str, Field(min_length=1, max_length=500)]


class ActorSubjectBound(Event, of=actor, inert=True):
    """A token subject of this issuer was bound to the actor; which one is not in the log."""

    issuer: str


class ActorSubjectUnbound(Event, of=actor, inert=True):
    """A token subject of this issuer was unbound from the actor; which one is not in the log."""

    issuer: str


class InvalidActorSubjectError(Invalid, context="access"):
    """The issuer is no configured identity provider, or the issuer or subject is blank."""


class BindingFacts(NamedTuple):
    """What a binding is judged by; there are no policies where none are enforced."""

    policies: Collection[Policy]
    groups_of_actor: frozenset[UUID]  # Those that list it: what its tokens will claim is not known.
    groups_of_caller: frozenset[UUID]
    profile: ActorProfile | None
    provider: ProviderFacts


class SubjectCommand(Command):
    """A command about one (issuer, subject) pair, matched exactly as the token spells it."""

    issuer: TokenText
    subject: TokenText

    def check_subject(self) -> None:
        """Raise InvalidActorSubjectError when the issuer or the subject is blank."""
        if not (self.issuer.strip() and self.subject.strip()):
            raise InvalidActorSubjectError("Issuer and subject must not be blank; copy them from a token.", reason="blank")


@actor.command(post="/{actor_id}/subject-bindings/add")
class BindActorSubject(SubjectCommand, JudgedVerb[Actor, BindingFacts]):
    """Let tokens of this issuer and subject act as this actor, who may do no more than the caller."""

    def gather(self, actor: Actor, call: Call) -> Reads[BindingFacts]:
        deployment = yield from ask(DeploymentPort.deployment)
        enforced = (yield from all_members_of(POLICIES_BY_SURFACE)) if deployment.policies_enforced else ()
        policies = (yield from find_all(Policy, enforced)).values()
        groups = (yield from listed_groups(policies, actor.id)), (yield from own_access()).group_ids
        profile = yield from record_of(ActorProfile, actor_id=actor.id)
        provider = yield from ask(IdentityPort.identity_provider, self.issuer, self.subject)
        return BindingFacts(policies, *groups, profile, provider)

    def decide(self, actor: Actor, call: Call, facts: BindingFacts) -> Outcome:
        if actor.id in SEEDED_ACTOR_IDS:
            detail = "This actor is the service's own and acts without a token; bind an actor that was registered."
            raise self.cannot("seeded", detail)
        if exceeds(facts.policies, (actor.id, facts.groups_of_actor), (call.principal_id, facts.groups_of_caller)):
            detail = "This actor may do what you may not; ask somebody who may do all of it to bind the subject."
            raise self.cannot("more_privileged", detail)
        if facts.profile is None:
            raise self.cannot("profile_forgotten", "This actor's profile was forgotten; it takes no new binding.")
        self.check_subject()
        if not facts.provider.known:
            raise InvalidActorSubjectError(
                "No identity provider with this issuer is configured; add it to IDENTITY_PROVIDERS first.",
                reason="unknown_issuer",
            )
        taken = self.cannot("already_bound", "This issuer and subject are bound already; unbind them first.")
        if facts.provider.bound:
            raise taken
        binding = SubjectBinding(issuer=self.issuer, subject=self.subject, actor_id=actor.id, created_at=call.now)
        return [ActorSubjectBound(issuer=self.issuer), Put(binding, rival=taken)]


@actor.command(post="/{actor_id}/subject-bindings/remove", destructive=True)
class UnbindActorSubject(SubjectCommand, JudgedVerb[Actor, SubjectBinding | None]):
    """Stop tokens of this issuer and subject from acting as this actor."""

    def gather(self, actor: Actor, call: Call) -> Reads[SubjectBinding | None]:
        return (yield from record_of(SubjectBinding, issuer=self.issuer, subject=self.subject, actor_id=actor.id))

    def decide(self, actor: Actor, call: Call, binding: SubjectBinding | None) -> Outcome:
        self.check_subject()
        if binding is None:
            raise self.cannot("not_bound", "This actor has no such binding; read its profile for the ones it has.")
        return [ActorSubjectUnbound(issuer=self.issuer), Drop(SubjectBinding, dict(self))]
