"""Agents: defined together with their actors, held to approved models, with tools and a budget."""

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.access.actor import Actor, ActorKind, ActorProfile
from baton.domain.agent.agent import (
    Budget,
    DefineAgent,
    DeprecateAgent,
    GrantToolToAgent,
    ResumeAgent,
    RevokeToolFromAgent,
    SpentAmounts,
    SuspendAgent,
    UpdateAgentBudget,
    VersionAgent,
    agents_of_kind,
)
from baton.domain.agent.language_model import (
    AnnounceLanguageModelRetirement,
    ApproveLanguageModel,
    DefineLanguageModel,
    DeprecateLanguageModel,
    RetireLanguageModel,
)
from baton.domain.agent.prompts import CAUTION_DRAFT, PROMPTS, RUN_DEBRIEF
from baton.domain.kernel import instant
from baton.domain.registry import REGISTRY
from tests.support.domain.agents import agent_of, agent_world, definition, set_approved_models, versioned_agent
from tests.support.domain.language_models import entry
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return agent_world()


def define_agent(world: World, **fields: Any) -> UUID:
    return world.create(DefineAgent(**definition(**fields)))


def payloads(world: World, name: str, id: UUID) -> list[tuple[str, dict[str, Any]]]:
    return [(type(event).__name__, json.loads(event.payload())) for event in world.streams[name, id]]


def test_an_agent_begins_with_its_actor_and_its_profile(world: World) -> None:
    id = define_agent(world, capabilities=["debrief", "compare"], prompt_template_id=RUN_DEBRIEF.id)
    at = instant(world.now)
    assert payloads(world, "Agent", id) == [
        (
            "AgentDefined",
            {
                "agent_id": str(id),
                "kind": "RunDebriefer",
                "name": "Second debriefer",
                "version": "2.1",
                "model_ref": {"provider": "acme", "model": "large-4", "snapshot_pin": None},
                "description": None,
                "canonical_uri": None,
                "prompt_template_id": str(RUN_DEBRIEF.id),
                "capabilities": ["compare", "debrief"],
                "occurred_at": at,
            },
        )
    ]
    assert payloads(world, "Actor", id) == [("ActorRegistered", {"actor_id": str(id), "kind": "agent", "occurred_at": at})]
    (profile,) = world.records.values()
    assert isinstance(profile, ActorProfile)
    assert (profile.actor_id, profile.name, profile.email, profile.created_at) == (id, "Second debriefer", None, world.now)
    actor = world.state(Actor, id)
    assert (actor.kind, actor.active) == (ActorKind.AGENT, True)


def test_an_agent_shows_all_that_is_known_of_it(world: World) -> None:
    id = define_agent(world, description="Debriefs the night shift", canonical_uri="https://agents.example/debriefer")
    started = world.now
    world.when(VersionAgent(), on=id)
    in_force = world.now
    world.when(GrantToolToAgent(tool_name="get_run"), on=id)
    world.when(UpdateAgentBudget(monthly_cost_cap=40.0, daily_token_cap=None), on=id)
    world.when(SuspendAgent(reason="Too wordy"), on=id)
    world.ports["spent_amounts"] = SpentAmounts(12.5, 40_000)
    shown = world.show(REGISTRY.operations["get_agent"].input(), on=id).model_dump(mode="json")
    assert shown | {"created_at": None} == {
        "id": str(id),
        "agent_id": str(id),
        "created_at": None,
        "kind": "RunDebriefer",
        "name": "Second debriefer",
        "version": "2.1",
        "model_ref": {"provider": "acme", "model": "large-4", "snapshot_pin": None},
        "description": "Debriefs the night shift",
        "canonical_uri": "https://agents.example/debriefer",
        "prompt_template_id": None,
        "capabilities": [],
        "tools": ["get_run"],
        "budget": {"monthly_cost_cap": 40.0, "daily_token_cap": None},
        "cost_in_month": 12.5,
        "tokens_on_day": 40_000,
        "status": "Suspended",
        "suspension_reason": "Too wordy",
        "suspended_at": instant(world.now),
        "suspended_by": str(OPERATOR),
        "resumed_at": None,
        "resumed_by": None,
        "deprecation_reason": None,
        "defined_at": instant(started),
        "versioned_at": instant(in_force),
        "deprecated_at": None,
    }


def test_what_is_written_over_an_agents_life(world: World) -> None:
    id = versioned_agent(world)
    for verb in (
        SuspendAgent(reason=" Too wordy "),
        ResumeAgent(),
        GrantToolToAgent(tool_name="get_run"),
        RevokeToolFromAgent(tool_name="get_run"),
        UpdateAgentBudget(monthly_cost_cap=None, daily_token_cap=0),
        DeprecateAgent(),
    ):
        world.when(verb, on=id)
    events = [
        (name, {key: payload[key] for key in payload if key != "occurred_at"})
        for name, payload in payloads(world, "Agent", id)
    ]
    own = {"agent_id": str(id)}
    assert events[1:] == [
        ("AgentVersioned", {**own, "version": "2.1"}),
        ("AgentSuspended", {**own, "reason": "Too wordy", "suspended_by": str(OPERATOR)}),
        ("AgentResumed", {**own, "resumed_by": str(OPERATOR)}),
        ("AgentToolGranted", {**own, "tool_name": "get_run"}),
        ("AgentToolRevoked", {**own, "tool_name": "get_run"}),
        ("AgentBudgetUpdated", {**own, "monthly_cost_cap": None, "daily_token_cap": 0}),
        ("AgentDeprecated", {**own, "reason": None}),
    ]


def test_resuming_clears_the_reason_of_the_suspension_and_nothing_else(world: World) -> None:
    id = versioned_agent(world)
    world.when(SuspendAgent(reason="Too wordy"), on=id)
    suspended_at = world.now
    world.when(ResumeAgent(), on=id)
    agent = agent_of(world, id)
    assert (agent.suspension_reason, agent.suspended_at, agent.suspended_by) == (None, suspended_at, OPERATOR)
    assert (agent.resumed_at, agent.resumed_by) == (world.now, OPERATOR)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"kind": " "}, "InvalidAgentKindError"),
        ({"name": " "}, "InvalidAgentNameError"),
        ({"version": " "}, "InvalidAgentVersionError"),
        ({"description": " "}, "InvalidAgentDescriptionError"),
        ({"canonical_uri": " "}, "InvalidAgentCanonicalUriError"),
        ({"canonical_uri": "http://agents.example"}, "InvalidAgentCanonicalUriError"),
        ({"canonical_uri": "HTTPS://agents.example"}, "InvalidAgentCanonicalUriError"),
        ({"canonical_uri": "https://agents.example/#one"}, "InvalidAgentCanonicalUriError"),
        ({"capabilities": ["debrief", " "]}, "InvalidAgentCapabilityError"),
        ({"capabilities": [f"capability {number}" for number in range(33)]}, "InvalidAgentCapabilitiesError"),
        ({"model_ref": {"provider": " ", "model": "large-4"}}, "InvalidModelRefError"),
        ({"model_ref": {"provider": "acme", "model": " "}}, "InvalidModelRefError"),
        ({"model_ref": {"provider": "acme", "model": "large-4", "snapshot_pin": " "}}, "InvalidModelRefError"),
        ({"prompt_template_id": new_id()}, "InvalidAgentPromptTemplateError"),
    ],
)
def test_values_are_refused_by_their_own_class(world: World, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        define_agent(world, **fields)
    assert not world.streams
    assert not world.records


def test_an_agent_claims_up_to_32_capabilities(world: World) -> None:
    claimed = [f"capability {number}" for number in range(32)]
    assert agent_of(world, define_agent(world, capabilities=[*claimed, "capability 7 "])).capabilities == set(claimed)


def test_prompts_are_known_by_ids_that_follow_from_name_and_version(world: World) -> None:
    assert set(PROMPTS) == {RUN_DEBRIEF.id, CAUTION_DRAFT.id}
    for id, prompt in PROMPTS.items():
        assert id.version == 7
        assert agent_of(world, define_agent(world, prompt_template_id=id)).prompt_template_id == prompt.id


class TestApprovedModelsOnly:
    """A deployment may hold its agents to the models that staff approved."""

    @pytest.fixture
    def world(self) -> World:
        return set_approved_models(World(), approved_models_only=True)

    def entry(self, world: World, **fields: Any) -> UUID:
        return world.create(DefineLanguageModel(**entry(**fields)))

    def test_an_approved_one_is_taken_whatever_snapshot_is_pinned(self, world: World) -> None:
        world.when(ApproveLanguageModel(), on=self.entry(world))
        define_agent(world)
        define_agent(world, model_ref={"provider": "acme", "model": "large-4", "snapshot_pin": "large-4-20260601"})
        for other in ({"provider": "bolt", "model": "large-4"}, {"provider": "acme", "model": "large-5"}):
            with expect_refusal("LanguageModelNotApprovedError", "model_not_approved"):
                define_agent(world, model_ref=other)

    def test_only_approved_counts_as_approved(self, world: World) -> None:
        id = self.entry(world)
        for verb in (None, AnnounceLanguageModelRetirement(reason="notice"), RetireLanguageModel()):
            if verb is not None:
                world.when(verb, on=id)
            with expect_refusal("LanguageModelNotApprovedError"):
                define_agent(world)
            if verb is None:
                world.when(ApproveLanguageModel(), on=id)
        world.when(DeprecateLanguageModel(), on=self.entry(world, model="large-5"))
        with expect_refusal("LanguageModelNotApprovedError"):
            define_agent(world, model_ref={"provider": "acme", "model": "large-5"})

    @pytest.mark.parametrize("provider", ["deterministic", "setting"])
    def test_rules_and_settings_need_no_entry(self, world: World, provider: str) -> None:
        define_agent(world, model_ref={"provider": provider, "model": "RUN_DEBRIEFER_MODEL"})

    def test_values_come_before_the_catalog(self, world: World) -> None:
        with expect_refusal("InvalidAgentCanonicalUriError"):
            define_agent(world, canonical_uri="ftp://agents.example")


def test_a_tool_is_granted_once_and_revoked_once(world: World) -> None:
    id = define_agent(world)
    assert world.when(GrantToolToAgent(tool_name="get_run"), on=id)
    assert world.when(GrantToolToAgent(tool_name=" get_run "), on=id) == []
    assert agent_of(world, id).tools == {"get_run"}
    assert world.when(RevokeToolFromAgent(tool_name="get_run"), on=id)
    assert world.when(RevokeToolFromAgent(tool_name="get_run"), on=id) == []
    assert agent_of(world, id).tools == frozenset()


def test_an_agent_has_at_most_32_tools(world: World) -> None:
    id = define_agent(world)
    for number in range(32):
        world.when(GrantToolToAgent(tool_name=f"tool_{number}"), on=id)
    with expect_refusal("InvalidAgentToolsError"):
        world.when(GrantToolToAgent(tool_name="one_more"), on=id)
    assert world.when(GrantToolToAgent(tool_name="tool_7"), on=id) == []
    world.when(RevokeToolFromAgent(tool_name="tool_7"), on=id)
    world.when(GrantToolToAgent(tool_name="one_more"), on=id)


@pytest.mark.parametrize("verb", [GrantToolToAgent, RevokeToolFromAgent])
def test_a_tool_has_a_name(world: World, verb: Any) -> None:
    with expect_refusal("InvalidToolNameError"):
        world.when(verb(tool_name=" "), on=define_agent(world))


@pytest.mark.parametrize(
    ("verb", "refusal"),
    [(SuspendAgent, "InvalidAgentSuspensionReasonError"), (DeprecateAgent, "InvalidAgentDeprecationReasonError")],
)
def test_a_reason_is_never_blank(world: World, verb: Any, refusal: str) -> None:
    with expect_refusal(refusal):
        world.when(verb(reason=" "), on=versioned_agent(world))


def test_state_comes_before_values(world: World) -> None:
    id = define_agent(world)
    with expect_refusal("AgentCannotSuspendError", "defined"):
        world.when(SuspendAgent(reason=" "), on=id)
    world.when(DeprecateAgent(), on=id)
    with expect_refusal("AgentCannotUpdateBudgetError", "deprecated"):
        world.when(UpdateAgentBudget(monthly_cost_cap=-1.0, daily_token_cap=None), on=id)


def test_a_budget_is_replaced_whole_and_both_null_clear_it(world: World) -> None:
    id = define_agent(world)

    def update_budget(monthly: float | None, daily: int | None) -> Budget | None:
        update = UpdateAgentBudget(monthly_cost_cap=monthly, daily_token_cap=daily)
        world.when(update, on=id)
        assert world.when(update, on=id) == []
        return agent_of(world, id).budget

    assert update_budget(None, None) is None
    assert update_budget(40.0, 200_000) == Budget(monthly_cost_cap=40.0, daily_token_cap=200_000)
    assert update_budget(None, 7) == Budget(monthly_cost_cap=None, daily_token_cap=7)
    assert update_budget(0.0, None) == Budget(monthly_cost_cap=0.0, daily_token_cap=None)
    assert update_budget(None, 0) == Budget(monthly_cost_cap=None, daily_token_cap=0)
    assert update_budget(None, None) is None


@pytest.mark.parametrize("caps", [(-0.01, None), (None, -1), (40.0, -1), (1e300, None), (None, 2**60)])
def test_a_cap_is_not_negative_and_has_a_bound(world: World, caps: tuple[float | None, int | None]) -> None:
    with expect_refusal("InvalidAgentBudgetError"):
        world.when(UpdateAgentBudget(monthly_cost_cap=caps[0], daily_token_cap=caps[1]), on=define_agent(world))


def test_a_cap_is_a_finite_number_in_a_declared_unit() -> None:
    with pytest.raises(ValidationError):
        UpdateAgentBudget(monthly_cost_cap=float("inf"), daily_token_cap=None)
    cap, _ = UpdateAgentBudget.model_json_schema()["properties"]["monthly_cost_cap"]["anyOf"]
    assert cap["unit"] == {"system": "qudt", "code": "CCY_USD"}


def test_agents_are_found_by_their_kind_whatever_their_status(world: World) -> None:
    one, other = define_agent(world), versioned_agent(world, name="Third debriefer")
    versioned_agent(world, kind="CautionDrafter")
    world.when(DeprecateAgent(), on=one)
    assert {agent.id for agent in world.fulfil(agents_of_kind("RunDebriefer"))} == {one, other}
    assert world.fulfil(agents_of_kind("Unheard")) == ()
