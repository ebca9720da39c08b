"""Agents to arrange worlds with: defined ones, seeded ones, and what they decided."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.agent.agent import Agent, DefineAgent, VersionAgent
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import Decision, RegisterDecision
from baton.domain.kernel import NIL, Call
from tests.support.domain.world import OPERATOR, World, new_id


def definition(**fields: Any) -> dict[str, Any]:
    """What defines an agent, as small as it may be."""
    model_ref = {"provider": "acme", "model": "large-4"}
    return {"kind": "RunDebriefer", "name": "Second debriefer", "version": "2.1", "model_ref": model_ref, **fields}


def set_approved_models(world: World, *, approved_models_only: bool = False) -> World:
    """The same world, in a deployment that asks for approved models or does not."""
    deployment = world.ports.setdefault("deployment", SimpleNamespace())
    deployment.approved_models_only = approved_models_only
    return world


def agent_world() -> World:
    return set_approved_models(World())


def agent_of(world: World, id: UUID) -> Agent:
    state: Agent = world.state(Agent, id)
    return state


def versioned_agent(world: World, **fields: Any) -> UUID:
    """An agent that is Versioned."""
    id = world.create(DefineAgent(**definition(**fields)))
    world.when(VersionAgent(), on=id)
    return id


def drafter(world: World, **fields: Any) -> UUID:
    return versioned_agent(world, **{"kind": "CautionDrafter", "name": "Second drafter", **fields})


def seed_agent(world: World, kind: str) -> UUID:
    """The agent of a kind that every deployment starts with."""
    agent = SEEDED[kind]
    world.apply(agent.begin(Call(NIL, NIL, world.now, agent.id, new_id())), agent.id)
    return agent.id


def register_decision(world: World, by: UUID, context: str, choice: str, **fields: Any) -> UUID:
    """A decision that whoever made it has registered."""
    caller, world.principal_id = world.principal_id, by
    id = world.create(RegisterDecision(decided_by=by, context=context, choice=choice, **fields))
    world.principal_id = caller
    return id


def decision_of(world: World, id: UUID) -> Decision:
    state: Decision = world.state(Decision, id)
    return state


def person(world: World, id: UUID = OPERATOR) -> UUID:
    """Somebody who is known to be human."""
    world.given(id, ActorRegistered(kind=ActorKind.HUMAN))
    return id
