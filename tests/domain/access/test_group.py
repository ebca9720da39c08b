"""Groups: whose token makes a member, which claims are taken, and who lists members."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import RegisterActor
from baton.domain.access.group import DefineGroup, Group, GroupClaim, GroupMemberAdded, TokenClaims, value_at
from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.trust.authorization import Access
from baton.domain.trust.conduit import ConduitDefined
from baton.domain.trust.group_members import AddGroupMember, RemoveGroupMember, RetireGroup
from baton.domain.trust.policy import DefinePolicy
from baton.domain.trust.surface import SYSTEM_HTTP, SurfaceDefined, SurfaceKind
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each

ISSUER = "https://id.example.org"
CONTENT: dict[str, Any] = {
    "groups": ["bl7", "staff"],
    "role": "operator",
    "level": 7,
    "realm_access": {"roles": ["run", "hold"], "lead": "yes"},
    "https://example.org/claims": {"teams": ["night"]},
    "a.b": "whole",
    "a": {"b": "parts"},
    "empty": [],
    "none": None,
}


def claim(path: str, value: str, issuer: str = ISSUER) -> GroupClaim:
    return GroupClaim(issuer=issuer, path=path, value=value)


class TestClaims:
    @for_each(
        ("path", "value"),
        [
            ("groups", "bl7"),
            ("groups", "staff"),
            ("role", "operator"),
            ("realm_access.roles", "hold"),
            ("realm_access.lead", "yes"),
            ("https://example.org/claims.teams", "night"),
            ("a.b", "whole"),
        ],
    )
    def test_a_value_by_itself_or_in_a_list_makes_a_member(self, path: str, value: str) -> None:
        assert claim(path, value).is_in(TokenClaims(ISSUER, CONTENT))

    @for_each(
        ("path", "value"),
        [
            *(("groups", "bl"), ("groups", "BL7"), ("groups", "bl7 "), ("groups", "['bl7', 'staff']")),
            *(("role", "oper"), ("role", "o"), ("level", "7"), ("realm_access", "run"), ("realm_access.roles.run", "run")),
            *(("a.b", "parts"), ("empty", "x"), ("none", "None"), ("missing", "None"), ("groups.0", "bl7"), ("", "bl7")),
        ],
    )
    def test_nothing_else_does(self, path: str, value: str) -> None:
        wanted = GroupClaim.model_construct(issuer=ISSUER, path=path, value=value)
        assert not wanted.is_in(TokenClaims(ISSUER, CONTENT))

    def test_another_issuer_that_says_the_same_says_nothing(self) -> None:
        assert not claim("groups", "bl7").is_in(TokenClaims(f"{ISSUER}/", CONTENT))
        assert not claim("groups", "bl7").is_in(None)

    @for_each("content", ["groups", ["groups"], None, 7])
    def test_what_is_no_object_has_nothing_at_any_path(self, content: Any) -> None:
        assert value_at(content, "groups") is None

    def test_what_a_token_says_is_shown_nowhere(self) -> None:
        assert "bl7" not in repr(TokenClaims(ISSUER, CONTENT))


@pytest.fixture
def world() -> World:
    world = World()
    world.given(SYSTEM_CONDUIT, ConduitDefined(name="System", source_zone_id=new_id(), target_zone_id=new_id()))
    world.given(SYSTEM_HTTP, SurfaceDefined(name="Surface", kind=SurfaceKind.HTTP))
    world.ports["deployment"].policies_enforced = True
    world.ports["identity_provider"] = SimpleNamespace(known=True, any_configured=True)
    world.denied = {"DefinePolicy"}
    world.principal_id = world.create(RegisterActor(name="Clerk"))
    return world


def define_policy(world: World, **grant: Any) -> None:
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    nothing: dict[str, Any] = {"permitted_principal_ids": [], "permitted_commands": []}
    world.create(DefinePolicy(name="Work", **{**place, **nothing, **grant}))


def define_group(world: World, name: str = "Crew") -> UUID:
    return world.create(DefineGroup(name=name))


class TestDefinition:
    @pytest.mark.parametrize("path", ["sub", "email", "Preferred_Username", "user.email", "act.sub", "upn", "oid"])
    def test_what_tells_one_person_from_another_is_no_claim_of_a_group(self, world: World, path: str) -> None:
        with expect_refusal("InvalidGroupClaimError", "identifies_a_person"):
            world.create(DefineGroup(name="One", claim=claim(path, "mira")))

    @pytest.mark.parametrize(("path", "value"), [(" ", "x"), ("groups", "\t")])
    def test_a_claim_is_not_blank(self, world: World, path: str, value: str) -> None:
        with expect_refusal("InvalidGroupClaimError", "blank"):
            world.create(DefineGroup(name="One", claim=claim(path, value)))

    def test_its_issuer_is_one_that_is_configured_unless_none_is(self, world: World) -> None:
        world.ports["identity_provider"] = SimpleNamespace(known=False, any_configured=True)
        with expect_refusal("InvalidGroupClaimError", "unknown_issuer"):
            world.create(DefineGroup(name="One", claim=claim("groups", "bl7")))
        world.ports["identity_provider"] = SimpleNamespace(known=False, any_configured=False)
        world.create(DefineGroup(name="One", claim=claim("groups", "bl7")))


class TestMembers:
    def test_a_member_is_listed_once_and_taken_off_again(self, world: World) -> None:
        group_id, mira = define_group(world), world.create(RegisterActor(name="Mira Okafor"))
        assert world.when(AddGroupMember(actor_id=mira), on=group_id) == [GroupMemberAdded(actor_id=mira)]
        assert world.when(AddGroupMember(actor_id=mira), on=group_id) == []
        assert world.state(Group, group_id).has(mira, None)
        assert len(world.when(RemoveGroupMember(actor_id=mira), on=group_id)) == 1
        assert world.when(RemoveGroupMember(actor_id=mira), on=group_id) == []
        assert not world.state(Group, group_id).has(mira, None)

    def test_only_an_actor_is_listed_and_a_member_only_while_the_group_is_active(self, world: World) -> None:
        group_id, mira = define_group(world), world.create(RegisterActor(name="Mira Okafor"))
        with expect_refusal("ActorNotFoundError"):
            world.when(AddGroupMember(actor_id=new_id()), on=group_id)
        world.when(AddGroupMember(actor_id=mira), on=group_id)
        world.when(RetireGroup(), on=group_id)
        assert not world.state(Group, group_id).has(mira, None)

    def test_nobody_lists_members_who_may_do_more_than_they_may(self, world: World) -> None:
        group_id, own = define_group(world), world.principal_id
        define_policy(world, permitted_group_ids=[group_id], permitted_commands=["StartRun"])
        with expect_refusal("GroupCannotAddMemberError", "more_privileged") as caught:
            world.when(AddGroupMember(actor_id=own), on=group_id)
        assert not caught.value.facts, "what others may do is not told"
        define_policy(
            world, permitted_principal_ids=[own], permitted_commands=["StartRun"], approval={"principals": [new_id()]}
        )
        with expect_refusal("GroupCannotAddMemberError", "more_privileged"):
            world.when(AddGroupMember(actor_id=own), on=group_id)
        define_policy(world, permitted_principal_ids=[own], permitted_commands=["StartRun"])
        world.when(AddGroupMember(actor_id=own), on=group_id)

    def test_who_may_as_much_through_a_group_lists_members(self, world: World) -> None:
        group_id, leads = define_group(world), define_group(world, "EndEffect")
        define_policy(world, permitted_group_ids=[group_id], permitted_commands=["StartRun"])
        define_policy(world, permitted_group_ids=[leads], permitted_command_sets=["all"])
        world.access = Access((world.state(Group, leads),), ())
        world.when(AddGroupMember(actor_id=world.principal_id), on=group_id)

    def test_nobody_makes_themselves_an_approver(self, world: World) -> None:
        group_id, own = define_group(world), world.principal_id
        define_policy(world, permitted_principal_ids=[new_id()], approval={"groups": [group_id]})
        with expect_refusal("GroupCannotAddMemberError", "more_privileged"):
            world.when(AddGroupMember(actor_id=own), on=group_id)
        world.access = Access((world.state(Group, group_id),), ())
        world.when(AddGroupMember(actor_id=own), on=group_id)

    def test_who_defines_policies_or_may_do_everything_lists_anybody(self, world: World) -> None:
        group_id = define_group(world)
        define_policy(world, permitted_group_ids=[group_id], permitted_command_sets=["all"])
        definer, permissive = world.copy(), world.copy()
        definer.denied = set()
        permissive.ports["deployment"].policies_enforced = False
        for one in (definer, permissive):
            one.when(AddGroupMember(actor_id=world.principal_id), on=group_id)
