"""A role: a functional contract (Detector, Positioner) that families and assemblies can present.
It names the affordances its presenter must have; it has no instances, settings or ports of its own."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.affordance import Affordance
from baton.domain.kernel import Aggregate, Call, Creation, Event, Outcome, SortedSet, State
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text, name_key
from baton.domain.shared.writes import Claim

ROLE_NAME = "role-name"  # Claim kind: the role that holds a name.


@dataclass(frozen=True, kw_only=True)
class Role(State):
    """A role is a functional contract, such as Detector, that families and assemblies can present."""

    name: str
    description: str
    required_affordances: SortedSet[Affordance]
    optional_affordances: SortedSet[Affordance]
    produces: SortedSet[str]
    consumes: SortedSet[str]


role = Aggregate(Role, "/roles", context="equipment")


class RoleDefined(Event, of=role):
    """The role was defined by the affordances that its presenters must have."""

    name: str
    description: str
    required_affordances: SortedSet[Affordance]
    optional_affordances: SortedSet[Affordance]
    produces: SortedSet[str]
    consumes: SortedSet[str]


class InvalidRoleError(Invalid, context="equipment"):
    """A role's name, description or signal label is blank, or an affordance is both required and optional."""


SignalLabels = Annotated[SortedSet[Annotated[str, Text(50, InvalidRoleError, "signal label")]], Field(max_length=100)]


@role.creation()
class DefineRole(Creation):
    """Define a functional contract by the affordances that its presenters must have."""

    name: Annotated[str, Text(200, InvalidRoleError, "name")]
    description: Annotated[str, Text(2000, InvalidRoleError, "description")]
    required_affordances: SortedSet[Affordance]
    optional_affordances: SortedSet[Affordance] = frozenset()
    produces: SignalLabels = frozenset()
    consumes: SignalLabels = frozenset()

    def decide(self, call: Call) -> Outcome:
        if both := sorted(self.required_affordances & self.optional_affordances):
            detail = f"{', '.join(both)} cannot be both required and optional; keep each in one of the two sets."
            raise InvalidRoleError(detail, reason="overlap", facts={"affordances": both})
        detail = f"A role named {self.name} exists already; use it or choose another name."
        taken = role.AlreadyExists(detail, reason="name_taken")
        return [RoleDefined(**dict(self)), Claim(ROLE_NAME, name_key(self.name), taken)]


GetRole = role.get()


class RoleSummary(Summary):
    role_id: UUID
    name: str
    description: str
    required_affordances: SortedSet[Affordance]
    optional_affordances: SortedSet[Affordance]
    produces: SortedSet[str]
    consumes: SortedSet[str]
    created_at: datetime


@role.listing(RoleSummary)
class ListRoles(NamedListQuery[RoleSummary]):
    """Roles in order of definition."""
