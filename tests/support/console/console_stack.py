"""A whole stack with a small beamline on a simulated plant, people who sign in, and permissions that are enforced."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from baton.beamline.commands import DONE, apply_files
from baton.client import Baton
from baton.demo.identity_provider import REST, DemoIdentityProvider
from baton.infrastructure.control.simulator import EntryKind, FileJournal
from tests.support.stack import Stack, running_stack

BEAMLINE = Path(__file__).parents[2] / "data" / "console" / "beamline.yaml"
ADMINISTRATOR = "01900000-0000-7000-8000-0000000000ad"
CONDUIT = "00000000-0000-0000-0000-000000000010"
PLANT = [
    {"kind": "motor", "address": "bl7:rotary", "velocity": 720, "units": "deg"},
    {"kind": "detector", "address": "bl7:cam1"},
    {"kind": "peak", "address": "bl7:sharpness", "centres": {"bl7:rotary.RBV": 120}, "width": 90, "height": 100},
    {"kind": "signal", "address": "bl7:door", "value": 0},
    {"kind": "signal", "address": "bl7:shutter", "value": 1},
]
MIRA, LENA = "Mira Okafor", "Lena Brandt"


@dataclass(frozen=True)
class ConsoleStack:
    """A running stack, the provider its people sign in at, and a client with every permission."""

    stack: Stack
    provider: DemoIdentityProvider
    client: Baton
    files: Path  # what the service may read data from
    journal: FileJournal  # of the plant

    @property
    def url(self) -> str:
        return self.stack.address("url")

    def cookies(self, subject: str) -> list[dict[str, Any]]:
        """Return the cookies of a session of somebody who has signed in."""
        place = {"path": "/console", "domain": "127.0.0.1", "httpOnly": True, "sameSite": "Strict"}
        return [{"name": "baton_session", "value": self.provider.token(subject), **place}]

    def set_door(self, value: int) -> None:
        """Have the door of the hutch shut (1) or open (0): no scan is over before it was shut."""
        self.journal.append(
            {"kind": EntryKind.WRITE, "address": "bl7:door", "at": datetime.now(UTC).isoformat(), "value": value}
        )


@contextmanager
def running_console_stack(directory: Path) -> Iterator[ConsoleStack]:
    """The stack with its beamline on record, until the end of the block: Mira may do everything, Lena nothing."""
    provider = DemoIdentityProvider()
    (directory / "files").mkdir()
    settings = {
        "IDENTITY_PROVIDERS": json.dumps([provider.as_setting(administrator=ADMINISTRATOR)]),
        "AUTHORIZATION_MODE": "policy",
        "REQUIRE_AUTHENTICATED_PRINCIPAL": "true",
        "BOOTSTRAP_PRINCIPAL_ID": ADMINISTRATOR,
        "SIMULATED_DEVICES": json.dumps(PLANT),
        "SIMULATION_JOURNAL": str(directory / "plant.jsonl"),
        "FACILITY_TIME_ZONE": "Europe/Berlin",
        "CONDUCT_RESTART_LIMIT_SECONDS": "120",
        "DATA_ROOTS": json.dumps([str(directory / "files")]),
    }
    try:
        with running_stack(directory / "data", **settings) as stack:
            url = stack.address("url")
            with Baton(url, provider.token("administrator")) as administrator:
                permit_everything(administrator, ADMINISTRATOR)
                register_person(administrator, provider, LENA, permitted=False)
                register_person(administrator, provider, MIRA, permitted=True)
            token = provider.token(MIRA.split()[0].lower())
            with Baton(url, token) as client:
                assert apply_files(client, [BEAMLINE]) == DONE
                client.register_subject(name="Bar 7")
                yield ConsoleStack(stack, provider, client, directory / "files", FileJournal(directory / "plant.jsonl"))
    finally:
        provider.close()


def register_person(administrator: Baton, provider: DemoIdentityProvider, name: str, *, permitted: bool) -> None:
    """Put somebody on record who can sign in, with every permission or none."""
    subject = name.split()[0].lower()
    actor_id = administrator.register_actor(name=name).actor_id
    administrator.bind_actor_subject(actor_id, issuer=provider.issuer, subject=subject)
    provider.people[subject] = name
    if permitted:
        permit_everything(administrator, actor_id)


def permit_everything(administrator: Baton, actor_id: UUID | str) -> None:
    """Permit somebody every command and query."""
    administrator.define_policy(
        name="Everything",
        conduit_id=CONDUIT,
        surface_id=REST,
        permitted_principal_ids=[actor_id],
        permitted_commands=[],
        permitted_command_sets=["all"],
    )
