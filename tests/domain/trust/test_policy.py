"""Policies that name command sets: what a set holds is asked when a call is judged."""

import json
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from baton.domain.contexts import REGISTRY
from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.trust.authorization import PrincipalStatus, judge
from baton.domain.trust.conduit import ConduitDefined
from baton.domain.trust.policy import ABOUT_OTHERS, OF_THE_PLANT, DefinePolicy, Policy, command_sets
from baton.domain.trust.surface import SYSTEM_HTTP, SurfaceDefined, SurfaceKind
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id

TOMORROWS = "BatonTomorrowsCommand"


@pytest.fixture
def world() -> World:
    world = World()
    world.given(SYSTEM_CONDUIT, ConduitDefined(name="System", source_zone_id=new_id(), target_zone_id=new_id()))
    return world.given(SYSTEM_HTTP, SurfaceDefined(name="System HTTP", kind=SurfaceKind.HTTP))


def define_policy(world: World, *sets: str, commands: tuple[str, ...] = ()) -> UUID:
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [OPERATOR]}
    named = {"permitted_commands": commands, "permitted_command_sets": sets}
    return world.create(DefinePolicy(name="Crew", **place, **named))


def allows(policy: Policy, command_name: str) -> bool:
    return judge(PrincipalStatus(None), [policy], OPERATOR, command_name, SYSTEM_CONDUIT, SYSTEM_HTTP).is_allowed


@pytest.fixture
def next_release() -> Iterator[None]:
    """A release that has one more command of the context operation."""
    known = REGISTRY.operations["hold_procedure"]
    REGISTRY.operations["tomorrows_command"] = replace(known, name="tomorrows_command", command_name=TOMORROWS)
    yield
    del REGISTRY.operations["tomorrows_command"]


def test_the_name_of_a_set_is_stored_and_what_it_holds_today_is_shown(world: World) -> None:
    id = define_policy(world, "operation.commands", commands=("GetVisit",))
    payload = json.loads(world.streams["Policy", id][0].payload())
    assert (payload["permitted_commands"], payload["permitted_command_sets"]) == (["GetVisit"], ["operation.commands"])
    shown = world.ask(REGISTRY.operations["get_policy"].input(), on=id)
    assert shown.permitted_command_sets == {"operation.commands"}
    assert shown.permitted_commands == command_sets()["operation.commands"] | {"GetVisit"}


@pytest.mark.usefixtures("next_release")
def test_a_set_grows_with_releases_and_a_list_does_not(world: World) -> None:
    listed = define_policy(world, commands=tuple(sorted(command_sets()["operation.commands"] - {TOMORROWS})))
    named = define_policy(world, "operation.commands")
    assert allows(world.state(Policy, named), TOMORROWS)
    assert not allows(world.state(Policy, listed), TOMORROWS)
    assert allows(world.state(Policy, listed), "HoldProcedure")


def test_what_an_older_release_stored_keeps_its_meaning() -> None:
    stored = {
        "policy_id": str(new_id()),
        "name": "Readers",
        "conduit_id": str(SYSTEM_CONDUIT),
        "surface_id": str(SYSTEM_HTTP),
        "permitted_principal_ids": [str(OPERATOR)],
        "permitted_commands": ["GetActorProfile", "ListVisits"],
        "occurred_at": "2026-10-06T08:00:00Z",
    }
    event = Policy.aggregate.decode("PolicyDefined", json.dumps(stored), new_id(), START)
    policy = Policy.aggregate.fold([event])
    assert policy is not None
    assert policy.permitted_commands == {"GetActorProfile", "ListVisits"}
    assert (allows(policy, "GetActorProfile"), allows(policy, "GetVisit")) == (True, False)


def test_a_set_that_this_release_does_not_know_permits_nothing(world: World) -> None:
    policy = replace(
        world.state(Policy, define_policy(world, commands=("GetVisit",))), permitted_command_sets=frozenset({"gone"})
    )
    assert policy.permitted_commands == {"GetVisit"}
    assert not allows(policy, "ListVisits")
    with expect_refusal("InvalidPolicyCommandError", "unknown_command"):
        define_policy(world, "gone")


def test_the_queries_tell_neither_contact_data_nor_what_others_may_do(world: World) -> None:
    assert REGISTRY.command_names() >= ABOUT_OTHERS
    queries = {operation.command_name for operation in REGISTRY if operation.kind == "query"}
    assert command_sets()["queries"] == queries - ABOUT_OTHERS - OF_THE_PLANT
    assert command_sets()["all"] == REGISTRY.command_names()
    readers = world.state(Policy, define_policy(world, "queries"))
    assert [name for name in sorted(ABOUT_OTHERS) if allows(readers, name)] == []
    assert allows(readers, "GetActor")


def test_what_reaches_into_the_control_system_is_in_no_set_but_all(world: World) -> None:
    assert REGISTRY.command_names() >= OF_THE_PLANT
    assert [name for name, commands in command_sets().items() if commands & OF_THE_PLANT] == ["all"]
    assert allows(world.state(Policy, define_policy(world, commands=("ReadSignals",))), "ReadSignals")
