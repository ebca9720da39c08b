"""The people of the demonstration, each a client with their own token and permissions."""

import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from time import monotonic, sleep
from typing import Any, TypeVar
from uuid import UUID

from baton.beamline.catalog import starter_roles
from baton.beamline.commands import apply_content
from baton.client import Baton
from baton.client.refusals import Refusal
from baton.demo.identity_provider import MCP, REST, DemoIdentityProvider
from baton.domain.start.procedure_start import issued_commands

BEAMLINE: dict[str, Any] = json.loads(files(__package__).joinpath("beamline.json").read_bytes())
POLL_SECONDS = 0.1
WAIT_SECONDS = 90.0  # how long anything may take
CONDUIT = "00000000-0000-0000-0000-000000000010"
ADMINISTRATOR = "administrator"
FOCUSING = "ConductUntilAdvised"  # what the agent does only once somebody approves
FOCUS_COMMANDS = ("AdviseProcedure", "GetProcedure", "GetProcedureSteering", "GetWork", *issued_commands(FOCUSING))
WITNESS_COMMANDS = (
    *("WitnessRun", "WitnessRunChange", "AppendObservations", "RegisterRunFiles", "TruncateRun"),
    *("RegisterDataset", "RegisterDistribution", "RecordAcquisition"),
    *("GetMethod", "GetPlan", "GetRun", "ListPlans", "ListSubjects", "PreflightRun"),
)  # what a witness tells, and what its gate asks
T = TypeVar("T")


class StageError(Exception):
    """Something did not happen as it should; the message says what was seen instead."""


class StaffMember(Baton):
    """Somebody who works at the beamline: a client of the service, with a token of their own."""

    def __init__(self, url: str, name: str, id: UUID, token: str) -> None:
        super().__init__(url, token)
        self.name, self.id, self.token = name, id, token

    def wait_for_row(self, operation: str, otherwise: str = "", **filters: object) -> Any:
        """Return the first row of a list that these filters let through, as soon as there is one."""
        wanted = otherwise or f"{operation} has none with {filters}"
        return wait_for(lambda: next(self.every(operation, **filters), None), wanted)


def expect_refusal(code: str, call: Callable[[], object]) -> Refusal:
    """Return the refusal of a call, or raise StageError where it is not refused, or otherwise."""
    try:
        answer = call()
    except Refusal as refusal:
        if refusal.code == code:
            return refusal
        raise StageError(f"this should be refused with {code}; it was with {refusal}") from None
    raise StageError(f"this should be refused with {code}; it answered {answer}")


def wait_for(look: Callable[[], T | None], otherwise: str) -> T:
    """Return the first truthy result of repeated looks, or raise StageError."""
    deadline = monotonic() + WAIT_SECONDS
    while not (seen := look()):
        if monotonic() > deadline:
            raise StageError(f"{otherwise}, not within {WAIT_SECONDS:.0f} s")
        sleep(POLL_SECONDS)
    return seen


@dataclass(frozen=True)
class Staff:
    engineer: StaffMember
    safety_officer: StaffMember
    scientist: StaffMember
    agent_token: str
    witness_token: str


def register_staff(url: str, provider: DemoIdentityProvider, administrator_id: str) -> Staff:
    administrator = StaffMember(url, ADMINISTRATOR, UUID(administrator_id), provider.token(ADMINISTRATOR))
    office = StaffOffice(url, administrator, provider)
    office.apply_roles()
    engineer = office.register_person("Ada Lindqvist", "Engineers")
    safety_officer = office.register_person("Samir Haddad", "Approvers")
    scientist = office.register_person("Mira Okafor", "Operators", "Scientists")
    agent_token = office.register_agent(engineer, approver=scientist)
    return Staff(engineer, safety_officer, scientist, agent_token, office.register_witness())


@dataclass(frozen=True)
class StaffOffice:
    url: str
    administrator: StaffMember
    provider: DemoIdentityProvider

    def apply_roles(self) -> None:
        """Put the groups and policies on record that a site begins with, and the administrator into theirs."""
        with redirect_stdout(StringIO()) as said:
            code = apply_content(self.administrator, [starter_roles()])
        if code:
            raise StageError(said.getvalue())
        self.administrator.add_group_member("Administrators", actor_id=self.administrator.id)

    def register_person(self, name: str, *groups: str) -> StaffMember:
        """Register somebody who belongs to these groups."""
        actor_id = self.administrator.register_actor(name=name).actor_id
        subject = name.split()[0].lower()
        token = self.bind_subject(actor_id, subject, REST)
        for group in groups:
            self.administrator.add_group_member(group, actor_id=actor_id)
        self.provider.people[subject] = name
        return StaffMember(self.url, name, actor_id, token)

    def register_agent(self, engineer: StaffMember, approver: StaffMember) -> str:
        """Register the agent that finds the focus, and may do just that once somebody approves; return its token."""
        agent_id = engineer.define_agent(**BEAMLINE["agent"]).agent_id
        engineer.version_agent(agent_id)
        token = self.bind_subject(agent_id, "focus-finder", MCP)
        self.permit(agent_id, FOCUS_COMMANDS)
        self.permit(agent_id, [FOCUSING], approval={"principals": [approver.id], "expires_after": 600})
        return token

    def register_witness(self) -> str:
        """Register the account that records what a RunEngine does, and may do just that; return its token."""
        account = self.administrator.register_actor(name="Bluesky at beamline 7", kind="service_account")
        self.permit(account.actor_id, WITNESS_COMMANDS, surface=REST)
        return self.bind_subject(account.actor_id, "bluesky", REST)

    def bind_subject(self, actor_id: UUID, subject: str, surface: str) -> str:
        self.administrator.bind_actor_subject(actor_id, issuer=self.provider.issuer, subject=subject)
        return self.provider.token(subject, surface)

    def permit(self, actor_id: UUID, commands: Sequence[str], surface: str = MCP, **more: Any) -> None:
        self.administrator.define_policy(
            name="Work of the night",
            conduit_id=CONDUIT,
            surface_id=surface,
            permitted_principal_ids=[actor_id],
            permitted_commands=commands,
            **more,
        )
