"""A group: actors that policies permit together, listed one by one or told by a claim of their tokens. A claim is read from
the token of each call; nothing of it is stored, so that who loses it at the identity provider is no member any more."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.access.identity_provider import IdentityPort
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Enlist

GROUPS, IN_USE = "group", "in use"  # Look-up kind and key: every group that is not Retired.
PERSONAL_CLAIMS = frozenset(
    {
        *("sub", "name", "given_name", "family_name", "nickname", "preferred_username", "email", "phone_number"),
        *("birthdate", "upn", "unique_name", "mail", "uid", "oid", "orcid", "sid", "jti"),
    }
)  # The claims that tell one person or token from another: nothing personal goes into the log.
ClaimText = Annotated[str, Field(min_length=1, max_length=500)]


class GroupStatus(StrEnum):
    ACTIVE = "Active"
    RETIRED = "Retired"


ACTIVE, RETIRED = GroupStatus


@dataclass(frozen=True)
class TokenClaims:
    """What the token of one call says, and who says it; it is never stored, logged or shown."""

    issuer: str
    content: Mapping[str, Any] = field(repr=False)


class GroupClaim(Value):
    """A claim that makes its holder a member: the value that a token of this issuer has at this path, by itself or
    in a list. A path is the name of a claim, or names with dots between them where claims hold others."""

    issuer: ClaimText
    path: ClaimText
    """The name of the claim in the token; names with dots between them where claims hold others."""
    value: ClaimText
    """What the token must have there, by itself or in a list."""

    def is_in(self, claims: TokenClaims | None) -> bool:
        """Return whether a token says so."""
        if claims is None or claims.issuer != self.issuer:
            return False
        found = value_at(claims.content, self.path)
        return self.value in found if isinstance(found, list) else found == self.value


def value_at(content: object, path: str) -> object:
    """Return what stands at a path; a name that has dots itself is found too. None where there is nothing."""
    if not isinstance(content, Mapping):
        return None
    if path in content:
        return content[path]
    places = (place for place, letter in enumerate(path) if letter == ".")
    found = (value_at(content[path[:place]], path[place + 1 :]) for place in places if path[:place] in content)
    return next((value for value in found if value is not None), None)


@dataclass(frozen=True, kw_only=True)
class Group(State):
    """A group is a set of actors that policies permit together: those that are listed, and those whose token tells so."""

    name: str
    claim: GroupClaim | None = None
    member_ids: IdSet = frozenset()
    """The actors who are listed as members."""
    status: GroupStatus = ACTIVE

    def has(self, principal_id: UUID, claims: TokenClaims | None) -> bool:
        """Return whether a caller belongs to it; nobody belongs to one that is Retired."""
        told = self.claim is not None and self.claim.is_in(claims)
        return self.status is ACTIVE and (principal_id in self.member_ids or told)


group = Aggregate(Group, "/groups", context="access")


class GroupDefined(Event, of=group):
    """The group was defined, without listed members."""

    name: str
    claim: GroupClaim | None


class GroupMemberAdded(Event, of=group):
    """An actor was listed as a member."""

    actor_id: UUID


class GroupMemberRemoved(Event, of=group):
    """An actor was taken off the list of members."""

    actor_id: UUID


class GroupRenamed(Event, of=group):
    """The group was given another name."""

    name: str


class GroupRetired(Event, of=group):
    """The group was closed: it has no members any more."""

    reason: FreeText | None


@group.evolve
def evolve(group: Group, event: GroupMemberAdded | GroupMemberRemoved | GroupRenamed | GroupRetired) -> Group:
    match event:
        case GroupMemberAdded():
            return copy_with(group, member_ids=group.member_ids | {event.actor_id})
        case GroupMemberRemoved():
            return copy_with(group, member_ids=group.member_ids - {event.actor_id})
        case GroupRenamed():
            return copy_with(group, name=event.name)
        case GroupRetired():
            return copy_with(group, status=RETIRED)
        case _:
            assert_never(event)


class InvalidGroupClaimError(Invalid, context="access"):
    """The claim is of an issuer that is no configured identity provider, is blank, or tells one person from another."""


GroupName = Annotated[str, group.text("name", 200)]


@group.creation()
class DefineGroup(JudgedCreation[bool]):
    """Define a group that policies can permit; with a claim, everybody whose token has it is a member for that call."""

    name: GroupName
    claim: GroupClaim | None = None

    def gather(self, call: Call) -> Reads[bool]:
        if self.claim is None:
            return True
        provider = yield from ask(IdentityPort.identity_provider, self.claim.issuer, "")
        return provider.known or not provider.any_configured

    def decide(self, call: Call, is_accepted: bool) -> Outcome:
        if self.claim is not None:
            check_claim(self.claim, is_accepted)
        return [GroupDefined(name=self.name, claim=self.claim), Enlist(GROUPS, IN_USE)]


def check_claim(claim: GroupClaim, is_accepted: bool) -> None:
    """Refuse a claim that no token can have, or that would put a person into the log."""
    if not all(map(str.strip, (claim.issuer, claim.path, claim.value))):
        raise InvalidGroupClaimError("Issuer, path and value must not be blank; copy them from a token.", reason="blank")
    if {claim.path.lower(), claim.path.rpartition(".")[2].lower()} & PERSONAL_CLAIMS:
        detail = f"The claim {claim.path} tells one person from another; list that actor with add_group_member instead."
        raise InvalidGroupClaimError(detail, reason="identifies_a_person")
    if not is_accepted:
        detail = "No identity provider with this issuer is configured; add it to IDENTITY_PROVIDERS first."
        raise InvalidGroupClaimError(detail, reason="unknown_issuer")


@group.command(post="/{group_id}/rename", allowed=[ACTIVE])
class RenameGroup(Verb[Group]):
    """Give the group another name; who belongs to it stays."""

    name: GroupName

    def decide(self, group: Group, call: Call) -> Outcome:
        return [] if self.name == group.name else [GroupRenamed(name=self.name)]


GetGroup = group.get("id", "name", "claim", "member_ids", "status")


class GroupSummary(Summary):
    group_id: UUID
    name: str
    status: GroupStatus
    created_at: datetime


@group.listing(GroupSummary)
class ListGroups(NamedListQuery[GroupSummary]):
    """Groups in order of definition."""

    status: GroupStatus | None = None
