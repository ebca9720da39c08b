"""Any sequence of commands on access and trust: what the store holds is what was decided, and a refusal wrote nothing.

Each command is given to the world of plain data first, which knows no store and no JSON; the command path must then
decide the same and its stored streams must fold to the same states.
"""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from application.authorization import PermissiveAuthorizer
from application.commands import Commands
from application.ports import Caller
from domain.access.actor import (
    BindActorSubject,
    DeactivateActor,
    ForgetActor,
    ReactivateActor,
    RegisterActor,
    UnbindActorSubject,
    UpdateActorProfile,
)
from domain.kernel import NIL, Command
from domain.shared.refusals import Refusal
from domain.trust.conduit import DefineConduit
from domain.trust.policy import DefinePolicy, RevokePolicyGrant
from domain.trust.surface import SYSTEM_HTTP, DefineSurface
from domain.trust.visit import (
    AbortVisit,
    CancelVisit,
    CheckInVisit,
    CheckOutVisit,
    CompleteVisit,
    HoldVisit,
    RecordVisitArrival,
    RegisterVisit,
    ReleaseControlOfSurface,
    ResumeVisit,
    StartVisit,
    TakeControlOfSurface,
    VoidVisit,
)
from domain.trust.zone import DefineZone
from infrastructure.memory.store import MemoryStore
from infrastructure.runtime import ProviderFacts
from tests.domain.world import OPERATOR, START, World, new_id

ISSUER = "https://login.example.org"
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
contacts = st.none() | texts
subjects = {"issuer": st.sampled_from([ISSUER, "https://stranger.example.org"]), "subject": st.sampled_from("abc ")}
reasons = {"reason": st.just("beam dump") | texts}
times = st.integers(-2, 2).map(lambda days: START + timedelta(days=days))
references = st.dictionaries(texts, texts, max_size=2)

on_actors = st.one_of(
    st.builds(DeactivateActor),
    st.builds(ReactivateActor),
    st.builds(ForgetActor),
    st.fixed_dictionaries({}, optional={"name": texts, "phone": contacts, "external_id": contacts}).map(
        lambda fields: UpdateActorProfile(**fields)
    ),
    st.builds(BindActorSubject, **subjects),
    st.builds(UnbindActorSubject, **subjects),
)


def on_visits(actors: st.SearchStrategy[UUID], surfaces: st.SearchStrategy[UUID]) -> st.SearchStrategy[Command]:
    return st.one_of(
        st.builds(RecordVisitArrival),
        st.builds(StartVisit),
        st.builds(HoldVisit, **reasons),
        st.builds(ResumeVisit),
        st.builds(CompleteVisit),
        st.builds(CancelVisit, **reasons),
        st.builds(AbortVisit, **reasons),
        st.builds(VoidVisit, **reasons),
        st.builds(CheckInVisit, actor_id=st.none() | actors, mode=st.sampled_from(["physical", "remote"])),
        st.builds(CheckOutVisit, actor_id=st.none() | actors),
        st.builds(TakeControlOfSurface, surface_id=surfaces),
        st.builds(ReleaseControlOfSurface, surface_id=surfaces),
    )


def several(one: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(one, min_size=1, max_size=12)


class Lives(RuleBasedStateMachine):
    actors = Bundle("actors")
    conduits = Bundle("conduits")
    surfaces = Bundle("surfaces")
    policies = Bundle("policies")
    visits = Bundle("visits")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = MemoryStore()
        self.world = World(ports={"identity_provider": provider})
        self.ids: list[UUID] = []
        self.commands = Commands(
            self.store,
            PermissiveAuthorizer(),
            lambda: self.world.now,
            lambda: self.ids.pop() if self.ids else new_id(),
            {"identity_provider": asked},
        )

    def teardown(self) -> None:
        self.loop.close()

    @initialize(target=surfaces)
    def two_consoles(self) -> Any:
        return multiple(*(self.do(DefineSurface(name=f"Endstation {name}", kind="HTTP")) for name in "AB"))

    @initialize(target=actors)
    def an_operator_and_a_machine(self) -> Any:
        kinds = {"Operator": "human", "Bridge": "service_account"}
        return multiple(*(self.do(RegisterActor(name=name, kind=kind)) for name, kind in kinds.items()))

    @initialize(target=conduits)
    def a_conduit(self) -> Any:
        zone = self.do(DefineZone(name="Hutch"))
        return self.do(DefineConduit(name="Gate", source_zone_id=zone, target_zone_id=zone))

    @rule(target=actors, name=texts, kind=st.sampled_from(["human", "agent", "service_account"]), email=contacts)
    def register_actor(self, name: str, kind: str, email: str | None) -> Any:
        return self.do(RegisterActor(name=name, kind=kind, email=email))

    @rule(actor=actors | st.builds(new_id), commands=several(on_actors), principal=actors)
    def act_on_actor(self, actor: UUID, commands: list[Command], principal: UUID) -> None:
        for command in commands:
            self.do(command, on=actor, principal=principal)

    @rule(target=conduits, name=texts, source=st.builds(new_id))
    def define_conduit(self, name: str, source: UUID) -> Any:
        return self.do(DefineConduit(name=name, source_zone_id=source, target_zone_id=source))

    @rule(name=texts)
    def define_zone(self, name: str) -> None:
        self.do(DefineZone(name=name))

    @rule(
        target=policies,
        conduit=conduits,
        surface=surfaces | st.sampled_from([NIL, OPERATOR]),
        principals=st.frozensets(actors, max_size=3),
        commands=st.frozensets(st.sampled_from(["GetVisit", "DefineZone", "Unheard"]), max_size=2),
    )
    def define_policy(self, conduit: UUID, surface: UUID, principals: frozenset[UUID], commands: frozenset[str]) -> Any:
        return self.do(
            DefinePolicy(
                name="Crew",
                conduit_id=conduit,
                surface_id=surface,
                permitted_principal_ids=principals,
                permitted_commands=commands,
            )
        )

    @rule(policy=policies, principals=several(actors), reason=texts)
    def revoke(self, policy: UUID, principals: list[UUID], reason: str) -> None:
        for principal in principals:
            self.do(RevokePolicyGrant(permitted_principal_id=principal, reason=reason), on=policy)

    @rule(target=visits, surface=surfaces, parent=st.none() | visits, begins=times, ends=times, references=references)
    def register_visit(self, surface: UUID, parent: UUID | None, begins: Any, ends: Any, references: Any) -> Any:
        return self.do(
            RegisterVisit(
                policy_id=new_id(),
                surface_id=surface,
                type="user",
                planned_start_at=begins,
                planned_end_at=ends,
                parent_id=parent,
                external_refs=references,
            )
        )

    @rule(target=visits, surface=surfaces, commands=several(on_visits(actors, surfaces)), principal=actors)
    def a_visit_in_progress(self, surface: UUID, commands: list[Command], principal: UUID) -> Any:
        visit = self.register_visit(surface, None, START, START + timedelta(days=1), {})
        self.act_on_visit(visit, [RecordVisitArrival(), StartVisit(), *commands], principal)
        return visit

    @rule(visit=visits, commands=several(on_visits(actors, surfaces)), principal=actors)
    def act_on_visit(self, visit: UUID, commands: list[Command], principal: UUID) -> None:
        for command in commands:
            self.do(command, on=visit, principal=principal)

    @invariant()
    def the_store_holds_what_was_decided(self) -> None:
        decided = {key: events for key, events in self.world.streams.items() if events}
        assert set(self.store.streams) == set(decided)
        for key, events in decided.items():
            stored = self.store.streams[key]
            assert [row.version for row in stored] == list(range(1, len(events) + 1))
            assert [row.payload for row in stored] == [event.payload() for event in events]
            aggregate: Any = events[0].aggregate
            assert self.store.state(key) == aggregate.replay(stored) == aggregate.fold(events)
        assert self.store.claims == self.world.claims
        assert self.store.look_ups == {(*place, id) for place, ids in self.world.members.items() for id in ids}
        assert set(self.store.rows.values()) == set(self.world.records.values())

    def do(self, command: Command, on: UUID | None = None, principal: UUID | None = None) -> Any:
        """The same command in both worlds; a creation answers its id."""
        if principal is not None:
            self.world.principal_id = principal
        caller = Caller(self.world.principal_id, SYSTEM_HTTP, new_id())
        try:
            events = self.world.when(command, on=on)
        except Refusal as refusal:
            self.refused_alike(command, caller, on, refusal)
            return multiple()
        if on is None:
            self.ids = [events[0].stream_id]
        executed = self.loop.run_until_complete(self.commands.execute(command, caller, target_id=on))
        if on is None:
            assert executed.body == {command.operation.aggregate.id_name: str(events[0].stream_id)}
            return events[0].stream_id
        positions = [row.position for row in self.store.streams[events[0].aggregate.name, on]] if events else []
        assert not positions or executed.position == max(positions)
        return None

    def refused_alike(self, command: Command, caller: Caller, on: UUID | None, refusal: Refusal) -> None:
        before = self.everything()
        with pytest.raises(Refusal) as caught:
            self.loop.run_until_complete(self.commands.execute(command, caller, target_id=on))
        stored = caught.value
        assert (stored.code, stored.reason, stored.facts) == (refusal.code, refusal.reason, refusal.facts)
        assert self.everything() == before

    def everything(self) -> Any:
        store = self.store
        streams = {key: tuple(rows) for key, rows in store.streams.items()}
        return streams, dict(store.claims), set(store.look_ups), dict(store.rows), dict(store.keys)


def provider(issuer: str, subject: str) -> ProviderFacts:
    return ProviderFacts(known=issuer == ISSUER, bound=subject == "c")


async def asked(caller: Caller, issuer: str, subject: str) -> ProviderFacts:
    return provider(issuer, subject)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
