"""Binding a token subject: who could act as somebody else by it, and who could not."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import SEEDED_ACTOR_IDS, ActorRegistered, DeactivateActor, RegisterActor
from baton.domain.access.group import DefineGroup, Group
from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.trust.authorization import Access
from baton.domain.trust.conduit import ConduitDefined
from baton.domain.trust.group_members import AddGroupMember
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.domain.trust.subject_binding import BindActorSubject
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP, SurfaceDefined, SurfaceKind
from tests.support.domain.world import World, expect_refusal, new_id

BIND = BindActorSubject(issuer="https://id.example.org", subject="mira")
CLERK = ("BindActorSubject", "RegisterActor", "ReactivateActor", "UnbindActorSubject")


@pytest.fixture
def world() -> World:
    world = World()
    world.given(SYSTEM_CONDUIT, ConduitDefined(name="System", source_zone_id=new_id(), target_zone_id=new_id()))
    for surface_id in (SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP):
        world.given(surface_id, SurfaceDefined(name="Surface", kind=SurfaceKind.HTTP))
    world.ports["deployment"].policies_enforced = True
    world.ports["identity_provider"] = SimpleNamespace(known=True, bound=False)
    world.principal_id = world.create(RegisterActor(name="Clerk"))
    permit(world, world.principal_id, *CLERK)
    return world


def permit(world: World, principal_id: UUID, *commands: str, surface_id: UUID = SYSTEM_HTTP, **sets: Any) -> UUID:
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
    who = {"permitted_principal_ids": [principal_id], "permitted_commands": commands}
    return world.create(DefinePolicy(name="Work", **place, **who, **sets))


def person(world: World) -> UUID:
    return world.create(RegisterActor(name="Mira Okafor"))


def test_somebody_without_grants_is_bound(world: World) -> None:
    assert [type(event).__name__ for event in world.when(BIND, on=person(world))] == ["ActorSubjectBound"]


def test_somebody_who_may_as_much_is_bound_and_so_is_oneself(world: World) -> None:
    colleague = person(world)
    permit(world, colleague, *CLERK[:2], surface_id=SYSTEM_MCP_STREAMABLE_HTTP)
    world.when(BIND, on=colleague)
    world.when(BindActorSubject(issuer=BIND.issuer, subject="clerk-2"), on=world.principal_id)


@pytest.mark.parametrize("surface_id", [SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP])
def test_somebody_who_may_do_more_is_not_bound_whatever_the_surface(world: World, surface_id: UUID) -> None:
    mira = person(world)
    permit(world, mira, "DefinePolicy", surface_id=surface_id)
    with expect_refusal("ActorCannotBindSubjectError", "more_privileged") as caught:
        world.when(BIND, on=mira)
    assert not caught.value.facts, "what others may do is not told"


def test_a_set_counts_for_what_it_holds(world: World) -> None:
    mira = person(world)
    permit(world, mira, permitted_command_sets=["operation.commands"])
    with expect_refusal("ActorCannotBindSubjectError", "more_privileged"):
        world.when(BIND, on=mira)
    permit(world, world.principal_id, permitted_command_sets=["all"])
    world.when(BIND, on=mira)


def test_being_deactivated_makes_nobody_less_privileged(world: World) -> None:
    mira = person(world)
    policy_id = permit(world, mira, "DefinePolicy")
    world.when(DeactivateActor(), on=mira)
    with expect_refusal("ActorCannotBindSubjectError", "more_privileged"):
        world.when(BIND, on=mira)
    world.when(RevokePolicyGrant(permitted_principal_id=mira, reason="left"), on=policy_id)
    world.when(BIND, on=mira)


@pytest.mark.parametrize("seeded_id", sorted(SEEDED_ACTOR_IDS))
@pytest.mark.parametrize("enforced", [True, False])
def test_the_services_own_actors_are_not_bound(world: World, seeded_id: UUID, enforced: bool) -> None:
    world.ports["deployment"].policies_enforced = enforced
    world.given(seeded_id, ActorRegistered(kind="agent"))
    with expect_refusal("ActorCannotBindSubjectError", "seeded"):
        world.when(BIND, on=seeded_id)


def test_where_everybody_may_do_everything_there_is_nothing_to_compare(world: World) -> None:
    mira = person(world)
    permit(world, mira, "DefinePolicy")
    world.ports["deployment"].policies_enforced = False
    world.when(BIND, on=mira)


def test_what_a_group_gives_counts_for_both(world: World) -> None:
    mira, group_id = person(world), world.create(DefineGroup(name="Crew"))
    revoked = RevokePolicyGrant(permitted_principal_id=world.principal_id, reason="not by name")
    world.when(revoked, on=permit(world, world.principal_id, "StartRun", permitted_group_ids=[group_id]))
    world.denied = set()
    world.when(AddGroupMember(actor_id=mira), on=group_id)
    with expect_refusal("ActorCannotBindSubjectError", "more_privileged"):
        world.when(BIND, on=mira)
    world.access = Access((world.state(Group, group_id),), ())
    world.when(BIND, on=mira)


def test_who_holds_only_with_approval_what_the_other_holds_at_once_does_not_bind(world: World) -> None:
    mira = person(world)
    permit(world, mira, "StartRun")
    permit(world, world.principal_id, "StartRun", approval={"principals": [mira]})
    with expect_refusal("ActorCannotBindSubjectError", "more_privileged"):
        world.when(BIND, on=mira)
