"""Principals: their names, and the ids of those that every deployment has.

People and accounts are named by their profiles, the service itself and callers without a token by rule. The nil id stands
for both of the latter; the surface shows which of them it was, since only the service calls on none.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from baton.domain.access.actor import DELETED_USER, Actor, ActorKind, ActorProfile, actor
from baton.domain.kernel import NIL
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, every, permitted_commands, records_of

SYSTEM_NAME = "Baton"
NOT_SIGNED_IN = "not signed in"
SYSTEM_OR_NOT_SIGNED_IN = f"{SYSTEM_NAME}, or {NOT_SIGNED_IN}"  # The nil id in events from before surfaces were recorded.
NOT_REGISTERED = "not registered"  # A principal that a development client claims to be and that no actor stands for.

Appearance = tuple[UUID, UUID | None]  # A principal, and the surface it called on where that is known.
Names = Mapping[Appearance, str | None]

actor.absences[NIL] = (
    f"The nil id is no actor: it stands for {SYSTEM_NAME} itself and for callers who were not signed in; histories and "
    "list_events say in principal_name which of them it was."
)


def names_of(appearances: Iterable[Appearance], *, own: bool = False) -> Reads[Names]:
    """Return the name of each principal; a person's is None unless the caller may read actors, or it is their `own`."""
    wanted = frozenset(appearances)
    ids = tuple(sorted({principal_id for principal_id, _ in wanted} - {NIL}))
    actors = yield from every(Actor, ids)
    profiles = (yield from records_of(ActorProfile, actor_id=ids)) if ids else ()
    names = {profile.actor_id: profile.name for profile in profiles}
    people_shown = own or "GetActor" in (yield from permitted_commands())

    def name_of(principal_id: UUID, surface_id: UUID | None) -> str | None:
        if principal_id == NIL:
            return SYSTEM_OR_NOT_SIGNED_IN if surface_id is None else SYSTEM_NAME if surface_id == NIL else NOT_SIGNED_IN
        if (known := actors.get(principal_id)) is None:
            return NOT_REGISTERED
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
