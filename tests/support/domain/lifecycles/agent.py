"""The lives of an agent and of a catalog entry as the specification tabulates them."""

from typing import Any
from uuid import UUID

from tests.support.domain.agents import agent_world, definition
from tests.support.domain.language_models import entry
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, reason_fields
from tests.support.domain.world import World

IN_USE = "Defined Versioned Suspended"


def agent_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("define_agent", definition())), Scene()


def one_tool(scene: Scene) -> dict[str, Any]:
    return {"tool_name": "get_run"}


def caps(scene: Scene) -> dict[str, Any]:
    return {"monthly_cost_cap": 40.0, "daily_token_cap": 200_000}


AGENT = Lifecycle(
    "Agent",
    "define_agent",
    agent_begins,
    {
        "status": {
            "Defined": "",
            "Versioned": "version_agent",
            "Suspended": "version_agent suspend_agent",
            "Deprecated": "deprecate_agent",
        }
    },
    {
        "version_agent": Verb("Defined", at("Versioned"), "AgentCannotVersionError"),
        "suspend_agent": Verb("Versioned", at("Suspended"), "AgentCannotSuspendError", given=reason_fields),
        "resume_agent": Verb("Suspended", at("Versioned"), "AgentCannotResumeError"),
        "deprecate_agent": Verb(IN_USE, at("Deprecated"), "AgentCannotDeprecateError", given=reason_fields),
        "grant_tool_to_agent": Verb(IN_USE, {}, "AgentCannotGrantToolError", given=one_tool),
        "revoke_tool_from_agent": Verb(
            IN_USE, {}, "AgentCannotRevokeToolError", given=one_tool, before=(("grant_tool_to_agent", one_tool),)
        ),
        "update_agent_budget": Verb(IN_USE, {}, "AgentCannotUpdateBudgetError", given=caps),
    },
    agent_world,
)


def language_model_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("define_language_model", entry())), Scene()


LANGUAGE_MODEL = Lifecycle(
    "LanguageModel",
    "define_language_model",
    language_model_begins,
    {
        "status": {
            "Defined": "",
            "Approved": "approve_language_model",
            "RetirementAnnounced": "approve_language_model announce_language_model_retirement",
            "Retired": "approve_language_model retire_language_model",
            "Deprecated": "deprecate_language_model",
        }
    },
    {
        "approve_language_model": Verb("Defined", at("Approved"), "LanguageModelCannotApproveError"),
        "announce_language_model_retirement": Verb(
            "Approved", at("RetirementAnnounced"), "LanguageModelCannotAnnounceRetirementError", given=reason_fields
        ),
        "retire_language_model": Verb("Approved RetirementAnnounced", at("Retired"), "LanguageModelCannotRetireError"),
        "deprecate_language_model": Verb(
            "Defined Approved RetirementAnnounced",
            at("Deprecated"),
            "LanguageModelCannotDeprecateError",
            given=reason_fields,
        ),
    },
)

LIVES = (AGENT, LANGUAGE_MODEL)
STATELESS = ()
