"""What principals are called: people and accounts by their profiles, the service itself and callers without a token by rule.

The nil id stands for both of the latter. Which of them it was shows by the surface: only the service calls on none.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from baton.domain.access.actor import DELETED_USER, Actor, ActorKind, ActorProfile, actor
from baton.domain.kernel import NIL
from baton.domain.shared.reads import Reads, every, permitted_commands, records_of

SYSTEM_NAME = "Baton"
NOT_SIGNED_IN = "not signed in"
EITHER = f"{SYSTEM_NAME}, or {NOT_SIGNED_IN}"
"""Of whom only the nil id is kept, as in events from before surfaces were."""
NOT_REGISTERED = "not registered"
"""A principal that a development client claims to be and that no actor stands for."""

Appearance = tuple[UUID, UUID | None]
"""A principal, and the surface it called on where that is known."""
Names = Mapping[Appearance, str | None]

actor.absences[NIL] = (
    f"The nil id is no actor: it stands for {SYSTEM_NAME} itself and for callers who were not signed in; histories and "
    "list_events say in principal_name which of them it was."
)


def names_of(appearances: Iterable[Appearance], *, own: bool = False) -> Reads[Names]:
    """The name of each principal; that of a person is null unless the caller may read actors, or it is their `own`."""
    wanted = frozenset(appearances)
    ids = tuple(sorted({principal_id for principal_id, _ in wanted} - {NIL}))
    actors = yield from every(Actor, ids)
    profiles = (yield from records_of(ActorProfile, actor_id=ids)) if ids else ()
    names = {profile.actor_id: profile.name for profile in profiles}
    people_shown = own or "GetActor" in (yield from permitted_commands())

    def name_of(principal_id: UUID, surface_id: UUID | None) -> str | None:
        if principal_id == NIL:
            return EITHER if surface_id is None else SYSTEM_NAME if surface_id == NIL else NOT_SIGNED_IN
        if (known := actors.get(principal_id)) is None:
            return NOT_REGISTERED
        if known.kind is ActorKind.HUMAN and not people_shown:
            return None
        return names.get(principal_id, DELETED_USER)

    return {appearance: name_of(*appearance) for appearance in wanted}
