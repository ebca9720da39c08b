"""Any sequence of commands on access and trust, with any texts and times: what the store holds is what was decided."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from baton.domain.access.actor import DeactivateActor, ForgetActor, ReactivateActor, RegisterActor, UpdateActorProfile
from baton.domain.access.identity_provider import ProviderFacts
from baton.domain.kernel import NIL, Command
from baton.domain.shared.refusals import Refusal
from baton.domain.trust.conduit import DefineConduit
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.domain.trust.subject_binding import BindActorSubject, UnbindActorSubject
from baton.domain.trust.surface import DefineSurface
from baton.domain.trust.visit import (
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
from baton.domain.trust.zone import DefineZone
from tests.support.application.store_and_world import StoreAndWorld
from tests.support.domain.world import LENIENT, OPERATOR, START, World, new_id

pytestmark = pytest.mark.slow

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
        self.both = StoreAndWorld(World(ports={"identity_provider": provider, "deployment": SimpleNamespace(**LENIENT)}))

    def teardown(self) -> None:
        self.both.close()

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
        self.both.agree()

    def do(self, command: Command, on: UUID | None = None, principal: UUID | None = None) -> Any:
        """The same command in both worlds; a creation answers its id."""
        if principal is not None:
            self.both.world.principal_id = principal
        executed = self.both.do(command, on)
        if isinstance(executed, Refusal):
            return multiple()
        return UUID(executed.body[command.operation.aggregate.id_name]) if on is None else None


def provider(issuer: str, subject: str) -> ProviderFacts:
    return ProviderFacts(known=issuer == ISSUER, bound=subject == "c")


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=max(10, settings().max_examples // 4), stateful_step_count=40, deadline=None)
