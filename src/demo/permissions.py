"""Who works here and what each may do, put on record by the administrator."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from baton.demo.identity import MCP, REST, IdentityProvider
from baton.demo.people import Person

CONDUIT = "00000000-0000-0000-0000-000000000010"
ADMINISTRATOR = "administrator"
ADVISING = ("AdviseProcedure", "ConductUntilAdvised", "GetProcedure", "GetProcedureSteering")
CONDUCTING = ("StartProcedureIteration", "EndProcedureIteration", "HoldProcedure", "CompleteProcedure", "AbortProcedure")
"""What a conduct does in the name of whoever asked for it, which is authorized again each time."""


@dataclass(frozen=True)
class Staff:
    """The people of the night, and the token of the agent they have."""

    engineer: Person
    safety_officer: Person
    scientist: Person
    agent_token: str


def staffed(client: httpx.Client, provider: IdentityProvider, administrator_id: str) -> Staff:
    """Everybody registered, known by their tokens, and permitted what they need and nothing else."""
    office = Office(Person(client, ADMINISTRATOR, administrator_id, provider.token(ADMINISTRATOR)), provider)
    office.permit(administrator_id, REST, sets=["access.commands", "trust.commands", "queries"])
    engineer = office.hired("Ada Lindqvist", "agent", "caution", "equipment", "recipe", "subject", "supply")
    return Staff(
        engineer,
        office.hired("Samir Haddad", "safety"),
        office.hired("Mira Okafor", "campaign", "operation", "run", "supply"),
        office.agent(engineer),
    )


@dataclass(frozen=True)
class Office:
    """Where people are hired."""

    administrator: Person
    provider: IdentityProvider

    def hired(self, name: str, *contexts: str) -> Person:
        """Somebody who asks what they like, and commands in these contexts."""
        actor_id = self.administrator.create("/actors", {"name": name})
        token = self.known(actor_id, name.split()[0].lower(), REST)  # before they may do what the administrator may not
        self.permit(actor_id, REST, sets=["queries", *(f"{context}.commands" for context in contexts)])
        return Person(self.administrator.client, name, actor_id, token)

    def agent(self, engineer: Person) -> str:
        """The agent that finds the focus, and may do just that; its token."""
        definition = {
            "kind": "Alignment",
            "name": "Focus finder",
            "version": "1",
            "model_ref": {"provider": "deterministic", "model": "parabola:v1"},
            "description": "Finds the focus of the camera: it looks where a parabola has its top.",
        }
        agent_id = engineer.create("/agents", definition)
        engineer.post(f"/agents/{agent_id}/version")
        token = self.known(agent_id, "focus-finder", MCP)
        self.permit(agent_id, MCP, commands=[*ADVISING, *CONDUCTING])
        return token

    def known(self, actor_id: str, subject: str, surface: str) -> str:
        """Bind a subject of the identity provider to an actor; its token for a surface."""
        bound = {"issuer": self.provider.issuer, "subject": subject}
        self.administrator.post(f"/actors/{actor_id}/subject-bindings/add", bound)
        return self.provider.token(subject, surface)

    def permit(self, actor_id: str, surface: str, *, commands: Sequence[str] = (), sets: Sequence[str] = ()) -> None:
        """Let one principal do so much over one surface."""
        permitted = {"permitted_principal_ids": [actor_id], "permitted_commands": commands, "permitted_command_sets": sets}
        place = {"conduit_id": CONDUIT, "surface_id": surface}
        self.administrator.create("/policies", {"name": "Work of the night", **place, **permitted})
