"""The same commands in two worlds: one of plain data, which knows no store and no JSON, and the command path over a store.

Both must decide the same; then the stored streams, claims, look-ups and rows must be those of the plain world.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import pytest

from baton.application.authorization import PermissiveAuthorizer
from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.ports import Batch, CommandResult, StreamAppend
from baton.domain.kernel import Call, Command
from baton.domain.shared.refusals import Conflict, Refusal
from baton.domain.shared.writes import Claim, Enlist, Put
from baton.testing.store import MemoryStore
from tests.support.application.ports import ports_of
from tests.support.domain.world import World, new_id

M = TypeVar("M", bound=MemoryStore)


@dataclass
class StoreAndWorld:
    """A world and a store that holds everything the world holds."""

    world: World
    store: MemoryStore = field(init=False)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self) -> None:
        self.store = store_of_world(self.world)

    def close(self) -> None:
        self.loop.close()

    def do(self, command: Command, on: UUID | None = None) -> CommandResult | Refusal:
        """Give a command to both; what came of it, which was the same."""
        try:
            events = self.world.when(command, on=on)
        except Refusal as refusal:
            self._refuse_alike(command, on, refusal)
            return refusal
        executed = self._execute(command, on)
        if command.operation.creates and command.operation.aggregate is not None:
            assert (executed.body or {})[command.operation.aggregate.id_name] == str(events[0].stream_id)
        if events:
            own = self.store.streams[events[0].aggregate.name, events[0].stream_id]
            assert executed.position >= own[-1].position
        return executed

    def _refuse_alike(self, command: Command, on: UUID | None, refusal: Refusal) -> None:
        before = store_contents(self.store)
        with pytest.raises(Refusal) as caught:
            self._execute(command, on)
        told = caught.value
        assert (told.code, told.reason, told.facts) == (refusal.code, refusal.reason, refusal.facts)
        assert store_contents(self.store) == before

    def _execute(self, command: Command, on: UUID | None) -> CommandResult:
        call = self.world.call
        assert call is not None
        ids = [call.new_id]
        commands = Commands(
            self.store,
            PermissiveAuthorizer(),
            lambda: call.now,
            lambda: ids.pop() if ids else new_id(),
            world_ports(self.world),
        )
        caller = Caller(call.principal_id, call.surface_id, call.correlation_id)
        return self.loop.run_until_complete(commands.execute(command, caller, target_id=on))

    def agree(self) -> None:
        """The store holds what was decided, and its streams fold to the same states."""
        decided = {key: events for key, events in self.world.streams.items() if events}
        assert set(self.store.streams) == set(decided)
        for key, events in decided.items():
            rows = self.store.streams[key]
            assert [row.version for row in rows] == list(range(1, len(events) + 1))
            assert [row.payload for row in rows] == [event.payload() for event in events]
            aggregate: Any = events[0].aggregate
            assert self.store.state(key) == aggregate.replay(rows) == aggregate.fold(events)
        assert self.store.claims == self.world.claims
        assert self.store.look_ups == {(*place, id) for place, ids in self.world.members.items() for id in ids}
        assert sorted(map(repr, self.store.rows.values())) == sorted(map(repr, self.world.records.values()))
        entered = {entry.event_id: entry for rows in self.store.entries.values() for entry in rows}  # type: ignore[attr-defined]
        assert {id: entry.model_copy(update={"recorded_at": None}) for id, entry in entered.items()} == self.world.entries


def store_of_world(world: World, kind: type[M] = MemoryStore) -> M:  # type: ignore[assignment]
    """A store with everything a world holds."""
    store = kind()
    for (name, id), events in world.streams.items():
        for version, event in enumerate(events):
            happened = Batch(Call(world.principal_id, world.surface_id, event.occurred_at, id, new_id()), "Given")
            happened.appends.append(StreamAppend(name, id, version, [(new_id(), event)]))
            store.commit(happened, store.event_rows(happened))
    beside = Batch(Call(world.principal_id, world.surface_id, world.now, new_id(), new_id()), "Given")
    beside.claims += [(Claim(kind, key, rival=Conflict("taken")), id) for (kind, key), id in world.claims.items()]
    beside.enlistments += [(Enlist(kind, key), id) for (kind, key), ids in world.members.items() for id in ids]
    beside.puts += [Put(record) for record in world.records.values()]
    beside.entries += [[entry] for entry in world.entries.values()]
    store.commit(beside, [])
    return store


def world_ports(world: World) -> Any:
    """The ports of a world, as the command path asks them."""

    def port_of(name: str) -> Any:
        async def answer_port(*arguments: Any) -> Any:
            answer = world.ports[name]
            return answer(*arguments) if callable(answer) else answer

        return answer_port

    return ports_of(**{name: port_of(name) for name in world.ports})


def store_contents(store: MemoryStore) -> Any:
    """All that a refusal must leave as it was."""
    streams = {key: tuple(rows) for key, rows in store.streams.items()}
    entries = {relation: tuple(rows) for relation, rows in store.entries.items() if rows}
    return streams, dict(store.claims), set(store.look_ups), dict(store.rows), dict(store.keys), entries
