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
    """The smallest fields that define an agent."""
    model_ref = {"provider": "acme", "model": "large-4"}
    return {"kind": "RunDebriefer", "name": "Second debriefer", "version": "2.1", "model_ref": model_ref, **fields}


def set_approved_models(world: World, *, approved_models_only: bool = False) -> World:
    """Set whether the deployment asks for approved models, and return the world."""
    deployment = world.ports.setdefault("deployment", SimpleNamespace())
    deployment.approved_models_only = approved_models_only
    return world


def agent_world() -> World:
    return set_approved_models(World())


def agent_of(world: World, id: UUID) -> Agent:
    state: Agent = world.state(Agent, id)
    return state


def versioned_agent(world: World, **fields: Any) -> UUID:
    """Define and version an agent, and return its id."""
    id = world.create(DefineAgent(**definition(**fields)))
    world.when(VersionAgent(), on=id)
    return id


def drafter(world: World, **fields: Any) -> UUID:
    return versioned_agent(world, **{"kind": "CautionDrafter", "name": "Second drafter", **fields})


def seed_agent(world: World, kind: str) -> UUID:
    """Seed the agent of a kind that every deployment starts with, and return its id."""
    agent = SEEDED[kind]
    world.apply(agent.begin(Call(NIL, NIL, world.now, agent.id, new_id())), agent.id)
    return agent.id


def register_decision(world: World, by: UUID, context: str, choice: str, **fields: Any) -> UUID:
    """Register a decision as its author and return its id."""
    caller, world.principal_id = world.principal_id, by
    id = world.create(RegisterDecision(decided_by=by, context=context, choice=choice, **fields))
    world.principal_id = caller
    return id


def decision_to_cite(world: World) -> UUID:
    """A decision of somebody that other records can name."""
    return register_decision(world, person(world, new_id()), "RunControl", "GoOn")


def decision_of(world: World, id: UUID) -> Decision:
    state: Decision = world.state(Decision, id)
    return state


def person(world: World, id: UUID = OPERATOR) -> UUID:
    """An actor who is known to be a person."""
    world.given(id, ActorRegistered(kind=ActorKind.HUMAN))
    return id
