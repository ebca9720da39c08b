"""The names of people, read from profiles in memory."""

from baton.domain.access.actor import Actor, ActorKind, ActorProfile
from baton.domain.agent.redaction import NameBook, Person, book_of
from baton.testing.store import MemoryStore


class MemoryPeople:
    """Keeps the book with the profiles that it was made of."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._profiles: list[ActorProfile] = []
        self._book = NameBook()

    async def book(self) -> NameBook:
        profiles = [row for row in self._store.kept(ActorProfile) if isinstance(row, ActorProfile)]
        if profiles != self._profiles:
            self._book = book_of(
                Person(one.name, one.email, one.phone, one.external_id) for one in profiles if self._is_person(one)
            )
            self._profiles = profiles
        return self._book

    def _is_person(self, profile: ActorProfile) -> bool:
        actor = self._store.state((Actor.__name__, profile.actor_id))
        return not isinstance(actor, Actor) or actor.kind is ActorKind.HUMAN
