"""An actor: a principal known to the service. Every event elsewhere that names "who" holds an actor's id and nothing else:
names, contacts and token subjects live in mutable rows that `forget_actor` erases."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain import kernel
from baton.domain.access.proposal_content import ProposalContent
from baton.domain.kernel import Aggregate, Call, Command, Creation, Event, JudgedVerb, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.listing import NamedListQuery, Page, Summary, Where
from baton.domain.shared.reads import (
    Reads,
    Rows,
    TextPart,
    find_all,
    is_permitted,
    permitted_commands,
    record_of,
    records_of,
)
from baton.domain.shared.refusals import Invalid, UnauthorizedError
from baton.domain.shared.text import unnameable_character
from baton.domain.shared.writes import Drop, Put, Record

DELETED_USER = "<deleted user>"
CONTACT_BOUNDS = {"email": 320, "phone": 50, "affiliation": 200, "external_id": 200, "external_id_scheme": 50}


class ActorKind(StrEnum):
    HUMAN = "human"
    AGENT = "agent"
    SERVICE_ACCOUNT = "service_account"


class ActorStatus(StrEnum):
    ACTIVE = "active"
    DEACTIVATED = "deactivated"


@dataclass(frozen=True, kw_only=True)
class Actor(State):
    """An actor is a principal known to the service: a person, a software agent or a machine account."""

    kind: ActorKind
    active: bool = True

    @property
    def status(self) -> ActorStatus:
        return ActorStatus.ACTIVE if self.active else ActorStatus.DEACTIVATED


@dataclass(frozen=True)
class ActorProfile(Record):
    """What is known of a person; no copy of it exists anywhere else."""

    relation: ClassVar[str] = "access_actor_profile"
    key: ClassVar[tuple[str, ...]] = ("actor_id",)
    actor_id: UUID
    name: str
    email: str | None
    phone: str | None
    affiliation: str | None
    external_id: str | None
    external_id_scheme: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class SubjectBinding(Record):
    """Whose principal a token of this issuer and subject stands for."""

    relation: ClassVar[str] = "access_subject_binding"
    key: ClassVar[tuple[str, ...]] = ("issuer", "subject")
    issuer: str
    subject: str
    actor_id: UUID
    created_at: datetime


actor = Aggregate(Actor, "/actors", context="access")


class ActorRegistered(Event, of=actor):
    """The actor was made known to the service."""

    kind: ActorKind


class ActorDeactivated(Event, of=actor, overwrites=True):
    """The actor was barred: whatever it asks for is refused."""


class ActorReactivated(Event, of=actor, overwrites=True):
    """The actor was let call again."""


class ActorProfileUpdated(Event, of=actor, inert=True):
    """These fields of the actor's profile were changed; what they hold is nowhere in the log."""

    updated_fields: tuple[str, ...]


class ActorProfileForgotten(Event, of=actor, inert=True):
    """The actor's profile and token bindings were erased."""


@actor.evolve
def evolve(actor: Actor, event: ActorDeactivated | ActorReactivated) -> Actor:
    return copy_with(actor, active=isinstance(event, ActorReactivated))


class InvalidActorKindError(Invalid, context="access"):
    """Actors of kind agent come only from define_agent."""


class InvalidActorProfileError(Invalid, context="access"):
    """A contact field is too long or holds control characters, or only one half of the external identifier was given."""


ActorName = Annotated[str, actor.text("name", 200)]


class ProfileFields(Command):
    """The fields of a profile; how long contact data may be is judged by `check_profile`."""

    name: ActorName
    email: str | None = None
    phone: str | None = None
    affiliation: str | None = None
    external_id: str | None = None
    external_id_scheme: str | None = None


@actor.creation()
class RegisterActor(ProfileFields, Creation):
    """Make a person or a machine account known to the service."""

    kind: ActorKind = ActorKind.HUMAN
    """Whether it is a person (human) or a machine account (service_account)."""

    def decide(self, call: Call) -> Outcome:
        if self.kind is ActorKind.AGENT:
            raise InvalidActorKindError("Actors of kind agent come only from define_agent; use that operation.")
        own = self.model_dump(exclude={"kind"})
        profile = ActorProfile(actor_id=call.new_id, **own, created_at=call.now, updated_at=call.now)
        check_profile(profile)
        return [ActorRegistered(kind=self.kind), Put(profile)]


@actor.command(post="/{actor_id}/deactivate", allowed=[ActorStatus.ACTIVE], records=ActorDeactivated, destructive=True)
class DeactivateActor(Verb[Actor]):
    """Refuse everything this actor asks for from now on; its past stays."""


@actor.command(
    post="/{actor_id}/reactivate", allowed=[ActorStatus.DEACTIVATED], leads_to=ActorStatus.ACTIVE, records=ActorReactivated
)
class ReactivateActor(JudgedVerb[Actor, None]):
    """Let a deactivated actor call again; it adds no grant."""

    def gather(self, actor: Actor, call: Call) -> Reads[None]:
        if call.principal_id == actor.id:
            detail = "Nobody reactivates themselves; ask an administrator to do it."
            raise UnauthorizedError(detail, reason="self_reactivation")
        return None
        yield


@actor.command(patch="/{actor_id}/profile")
class UpdateActorProfile(ProfileFields, JudgedVerb[Actor, ActorProfile]):
    """Change name or contact fields: a key left out stays, null clears."""

    name: ActorName = kernel.omittable()

    def gather(self, actor: Actor, call: Call) -> Reads[ActorProfile]:
        profile = yield from record_of(ActorProfile, actor_id=actor.id)
        if profile is None:
            raise self.cannot("profile_forgotten", "This actor's profile was forgotten; register a new actor instead.")
        return profile

    def decide(self, actor: Actor, call: Call, profile: ActorProfile) -> Outcome:
        given = self.model_dump(exclude_unset=True)
        differing = {name: value for name, value in given.items() if getattr(profile, name) != value}
        if not differing:
            return []
        renewed = replace(profile, **differing, updated_at=call.now)
        check_profile(renewed)
        return [ActorProfileUpdated(updated_fields=tuple(sorted(differing))), Put(renewed)]


@actor.command(delete="/{actor_id}/profile", destructive=True)
class ForgetActor(Verb[Actor]):
    """Erase everything personal about this actor: profile, token bindings, proposals. References to its id stay valid."""

    def decide(self, actor: Actor, call: Call) -> Outcome:
        erased, proposed = {"actor_id": actor.id}, Drop(ProposalContent, {"target_id": actor.id})
        return [ActorProfileForgotten(), Drop(ActorProfile, erased), Drop(SubjectBinding, erased), proposed]


def check_profile(profile: ActorProfile) -> None:
    """Refuse contact values beyond their bounds and a half-filled external identifier, without repeating them."""
    for name, bound in CONTACT_BOUNDS.items():
        text = getattr(profile, name) or ""
        if len(text) > bound:
            detail = f"{name} is longer than {bound} characters; shorten it."
            raise InvalidActorProfileError(detail, reason="too_long", facts={"field": name})
        if (character := unnameable_character(text)) is not None:
            detail = f"{name} holds {character}; leave it out."
            raise InvalidActorProfileError(detail, reason="control_character", facts={"field": name})
    if (profile.external_id is None) != (profile.external_id_scheme is None):
        detail = "external_id and external_id_scheme go together; give both or neither."
        raise InvalidActorProfileError(detail, reason="half_external_id")


class PastActorView(Value):
    """An actor as it was; profiles have no past, so it has no name."""

    id: UUID
    kind: ActorKind
    active: bool
    """Whether the actor may call."""
    actor_id: UUID
    created_at: datetime


class ActorView(PastActorView):
    """An actor as it is, with the name its profile has now."""

    name: str


@actor.query(get="/{actor_id}", returns=ActorView | PastActorView)
class GetActor(kernel.TimeTravel[PastActorView]):
    """One actor, folded from its stream, with the name its profile has now."""

    def answer(self, actor: Actor, call: Call) -> Reads[PastActorView]:
        shown = kernel.values_of(actor, PastActorView)
        if self.travels:
            return PastActorView(**shown)
        profile = yield from record_of(ActorProfile, actor_id=actor.id)
        return ActorView(**shown, name=profile.name if profile else DELETED_USER)


class BindingView(Value):
    """A token subject that acts as the actor."""

    issuer: str
    subject: str
    """The `sub` claim of the tokens that act as the actor."""


class ActorProfileView(Value):
    """Everything personal that is kept about an actor."""

    actor_id: UUID
    name: str
    email: str | None
    phone: str | None
    affiliation: str | None
    external_id: str | None
    external_id_scheme: str | None
    subject_bindings: tuple[BindingView, ...]
    """The token subjects that act as the actor."""
    created_at: datetime | None
    updated_at: datetime | None


@actor.query(get="/{actor_id}/profile", returns=ActorProfileView)
class GetActorProfile(kernel.Query[ActorProfileView]):
    """The personal data kept about an actor; a forgotten profile shows as deleted."""

    def answer(self, actor: Actor, call: Call) -> Reads[ActorProfileView]:
        profile = yield from record_of(ActorProfile, actor_id=actor.id)
        bindings = yield from records_of(SubjectBinding, actor_id=actor.id)
        shown: dict[str, Any] = dict.fromkeys(ActorProfileView.model_fields)
        shown |= vars(profile) if profile else {"actor_id": actor.id, "name": DELETED_USER}
        shown["subject_bindings"] = tuple(BindingView(issuer=b.issuer, subject=b.subject) for b in bindings)
        return ActorProfileView(**shown)


class ActorRow(Value):
    """An actor in a list."""

    actor_id: UUID
    name: str
    kind: ActorKind
    status: ActorStatus
    created_at: datetime


class ActorSummary(Summary):
    actor_id: UUID
    kind: ActorKind
    status: ActorStatus
    created_at: datetime


@actor.listing(ActorSummary, returns=ActorRow, refuses=[UnauthorizedError])
class ListActors(NamedListQuery[ActorRow]):
    """Actors in order of registration, with the names their profiles have now; to look for a name takes `GetActor`."""

    status: ActorStatus | None = None
    kind: tuple[ActorKind, ...] = ()
    actor_id: Annotated[tuple[UUID, ...], Field(max_length=100)] = ()
    """Only these actors."""

    @classmethod
    def name_column(cls) -> str:
        return "name"

    def answer(self, *known: State | Call) -> Reads[Page[Any]]:
        wanted = [one for one in (self.name, self.q and TextPart(self.q)) if one is not None]
        if wanted and not (yield from is_permitted(GetActor.__name__)):
            detail = "To look for actors by name takes GetActor; list them without name and q, or have it granted."
            raise UnauthorizedError(detail, reason="denied")
        conditions = list(self.where())
        for name in wanted:
            profiles = yield from records_of(ActorProfile, name=name)
            conditions.append(Where("actor_id", "in", tuple(profile.actor_id for profile in profiles)))
        page: Page[Any] = yield Rows(self.summary, self, tuple(conditions))
        return Page((yield from self.present(page.items)), page.next_cursor)

    def present(self, rows: tuple[Any, ...]) -> Reads[tuple[ActorRow, ...]]:
        profiles = yield from records_of(ActorProfile, actor_id=tuple(row.actor_id for row in rows))
        names = {profile.actor_id: profile.name for profile in profiles}
        return tuple(ActorRow(name=names.get(row.actor_id, DELETED_USER), **dict(row)) for row in rows)


SYSTEM_NAME = "Baton"
NOT_SIGNED_IN = "not signed in"
Appearance = tuple[UUID, UUID | None]  # A principal, and the surface it called on where that is known.
Names = Mapping[Appearance, str | None]

actor.absences[kernel.NIL] = (
    f"The nil id is no actor: it stands for {SYSTEM_NAME} itself and for callers who were not signed in; histories and "
    "list_events say in principal_name which of them it was."
)


def appearance(event: kernel.Event) -> Appearance:
    """Return who recorded an event, and on which surface."""
    return event.caller_id, event.caller_surface_id


def names_of(appearances: Iterable[Appearance], *, own: bool = False) -> Reads[Names]:
    """Return the name of each principal; a person's is None unless the caller may read actors, or it is their `own`.

    The nil id stands for the service and for callers without a token; only the service calls on no surface.
    """
    wanted = frozenset(appearances)
    ids = tuple(sorted({principal_id for principal_id, _ in wanted} - {kernel.NIL}))
    actors = yield from find_all(Actor, ids)
    profiles = (yield from records_of(ActorProfile, actor_id=ids)) if ids else ()
    names = {profile.actor_id: profile.name for profile in profiles}
    people_shown = own or "GetActor" in (yield from permitted_commands())

    def name_of(principal_id: UUID, surface_id: UUID | None) -> str | None:
        if principal_id == kernel.NIL:
            either = f"{SYSTEM_NAME}, or {NOT_SIGNED_IN}"  # In events from before surfaces were recorded.
            return either if surface_id is None else SYSTEM_NAME if surface_id == kernel.NIL else NOT_SIGNED_IN
        if (known := actors.get(principal_id)) is None:
            return "not registered"  # A development client claims to be it, and no actor stands for it.
        if known.kind is ActorKind.HUMAN and not people_shown:
            return None
        return names.get(principal_id, DELETED_USER)

    return {appearance: name_of(*appearance) for appearance in wanted}


def seeded_id(number: int) -> UUID:
    """Return the id of a seeded agent: a constant, for every decision it ever made refers to it."""
    return UUID(f"019a0000-0000-7000-8000-{number:012}")


def monitor_id(name: str) -> UUID:
    """Return the actor id of a seeded monitor; the time in it is any constant, kept for ever."""
    return derived_uuid7(1_760_000_000_000, "monitor", name)


SEEDED_AGENT_IDS = frozenset(seeded_id(number) for number in range(1, 6))
SEEDED_ACTOR_IDS = SEEDED_AGENT_IDS | {monitor_id("SupplyMonitor"), monitor_id("EnclosureMonitor")}
"""The service's own agents and monitors, which act without tokens."""
